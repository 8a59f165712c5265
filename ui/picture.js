(label) => {  // the largest visible canvas with its names, or table of coloured cells, of a result, as a PNG of the page
  const visible = [...document.querySelectorAll((PICTURES)[label] || 'canvas')].filter(found => found.offsetParent);
  const area = found => found.offsetWidth * found.offsetHeight;
  const shown = visible.sort((one, other) => area(other) - area(one))[0];
  if (!shown) return;
  const drawn = shown.tagName === 'CANVAS', scale = drawn ? shown.width / shown.offsetWidth : 2;
  const picture = document.createElement('canvas'), context = picture.getContext('2d');
  [picture.width, picture.height] = [scale * shown.offsetWidth, scale * shown.offsetHeight];
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, picture.width, picture.height);
  if (drawn) context.drawImage(shown, 0, 0);
  context.scale(scale, scale);
  context.textBaseline = 'middle';
  const corner = shown.getBoundingClientRect();
  const written = drawn ? shown.parentElement.querySelectorAll(':scope > .cse-name') : shown.querySelectorAll('th, td');
  written.forEach(part => {
    const box = part.getBoundingClientRect(), style = getComputedStyle(part);
    if (style.visibility === 'hidden') return;
    const line = drawn ? parseFloat(style.borderBottomWidth) : 0, middle = (box.height - line) / 2;
    const centred = drawn || style.textAlign === 'center';
    context.save();
    context.translate(box.left - corner.left, box.top - corner.top);
    context.beginPath();
    context.rect(0, 0, box.width, box.height);
    context.clip();
    context.fillStyle = style.backgroundColor;
    context.fillRect(0, 0, box.width, box.height);
    context.fillStyle = style.borderBottomColor;
    context.fillRect(0, box.height - line, box.width, line);
    context.fillStyle = style.color;
    context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    context.textAlign = centred ? 'center' : 'left';
    context.fillText(part.innerText, centred ? box.width / 2 : 0, middle);
    context.restore();
  });
  picture.toBlob(blob => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = 'picture.png';
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
}
