(label) => {  // the largest visible canvas, or table of coloured cells, of a result, as a PNG that the page makes
  const visible = [...document.querySelectorAll((PICTURES)[label] || 'canvas')].filter(found => found.offsetParent);
  const area = found => found.offsetWidth * found.offsetHeight;
  const shown = visible.sort((one, other) => area(other) - area(one))[0];
  if (!shown) return;
  const scale = shown.tagName === 'CANVAS' ? shown.width / shown.offsetWidth : 2;
  const picture = document.createElement('canvas'), context = picture.getContext('2d');
  [picture.width, picture.height] = [scale * shown.offsetWidth, scale * shown.offsetHeight];
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, picture.width, picture.height);
  if (shown.tagName === 'CANVAS') context.drawImage(shown, 0, 0);
  else {
    context.scale(scale, scale);
    context.textBaseline = 'middle';
    const corner = shown.getBoundingClientRect();
    shown.querySelectorAll('th, td').forEach(cell => {
      const box = cell.getBoundingClientRect(), style = getComputedStyle(cell);
      context.save();
      context.translate(box.left - corner.left, box.top - corner.top);
      context.beginPath();
      context.rect(0, 0, box.width, box.height);
      context.clip();
      context.fillStyle = style.backgroundColor;
      context.fillRect(0, 0, box.width, box.height);
      context.fillStyle = style.color;
      context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
      context.textAlign = style.textAlign === 'center' ? 'center' : 'left';
      context.fillText(cell.innerText, style.textAlign === 'center' ? box.width / 2 : 0, box.height / 2);
      context.restore();
    });
  }
  picture.toBlob(blob => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = 'picture.png';
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
}
