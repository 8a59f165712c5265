(label) => {
  const canvases = [...document.querySelectorAll((PICTURES)[label] || 'canvas')].filter(canvas => canvas.offsetParent);
  const canvas = canvases.sort((one, other) => other.width * other.height - one.width * one.height)[0];
  if (!canvas) return;
  const picture = Object.assign(document.createElement('canvas'), {width: canvas.width, height: canvas.height});
  const context = picture.getContext('2d');
  context.fillStyle = getComputedStyle(canvas).backgroundColor;
  context.fillRect(0, 0, picture.width, picture.height);
  context.drawImage(canvas, 0, 0);
  picture.toBlob(blob => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = 'picture.png';
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
}
