async () => {  // save the verdict as a PNG, with its current styles
  const SCALE = 2, MARGIN = 12;
  const shown = document.querySelector('#verdict');
  if (!shown?.offsetParent) return;
  const probes = new Map();
  const behind = part => {
    const {backgroundColor} = getComputedStyle(part);
    return part.parentElement && backgroundColor === 'rgba(0, 0, 0, 0)' ? behind(part.parentElement) : backgroundColor;
  };

  function usual(tag) {  // the default styles of an element of this kind
    if (!probes.has(tag)) {
      const style = getComputedStyle(shadow.appendChild(document.createElement(tag)));
      probes.set(tag, Object.fromEntries([...style].map(name => [name, style[name]])));
    }
    return probes.get(tag);
  }

  function copied(part, parent) {
    if (part.nodeType === Node.TEXT_NODE) return part.cloneNode();
    if (part.nodeType !== Node.ELEMENT_NODE || part.tagName === 'SCRIPT') return document.createComment('');
    const copy = part.tagName === 'CANVAS' ? document.createElement('img') : part.cloneNode();
    if (part.tagName === 'CANVAS') copy.src = part.toDataURL();
    const style = getComputedStyle(part), known = usual(part.localName);
    const own = [...style].filter(name => style[name] !== known[name] || style[name] !== parent?.[name]
      || name.startsWith('border'));  // keep border widths, which depend on the style
    copy.removeAttribute('id');
    copy.style.cssText = own.map(name => `${name}:${style.getPropertyValue(name)}`).join(';');
    if (/auto|scroll/.test(style.overflow)) copy.style.overflow = 'visible';
    copy.append(...[...part.childNodes].map(child => copied(child, style)));
    return copy;
  }

  const host = document.body.appendChild(document.createElement('div')), shadow = host.attachShadow({mode: 'open'});
  const copy = copied(shown);
  host.remove();
  const corner = shown.getBoundingClientRect();  // tables may overflow a scrolling part
  const boxes = [shown, ...shown.querySelectorAll('*')].map(part => part.getBoundingClientRect());
  const width = Math.max(...boxes.map(box => box.right)) - corner.left + 2 * MARGIN;
  const height = Math.max(...boxes.map(box => box.bottom)) - corner.top + 2 * MARGIN;
  copy.style.margin = `${MARGIN}px`;
  const text = new XMLSerializer().serializeToString(copy).replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, '');
  const drawing = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">`
    + `<foreignObject width="100%" height="100%">${text}</foreignObject></svg>`;
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawing)}`;
  await image.decode();
  const picture = document.createElement('canvas'), context = picture.getContext('2d');
  [picture.width, picture.height] = [SCALE * width, SCALE * height];
  context.fillStyle = behind(shown);
  context.fillRect(0, 0, picture.width, picture.height);
  context.drawImage(image, 0, 0, picture.width, picture.height);
  const link = document.createElement('a');
  link.href = picture.toDataURL();
  link.download = 'verdict.png';
  link.click();
}
