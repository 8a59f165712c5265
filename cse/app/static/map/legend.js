// The legend: a button for each entry of the colouring, with its number of points, that filters by it.
function showLegend() {
  const {names, sizes, notes, title} = painted;
  parts.legend.replaceChildren();
  add(parts.legend, 'h3', '', title);
  const list = add(parts.legend, 'ul', 'cse-legend');
  parts.keys = names.map((name, entry) => {
    const item = addButton(add(list, 'li'), '', '', () => pressEntry(entry)), canvas = add(item, 'canvas');
    canvas.width = canvas.height = 28;
    canvas.setAttribute('aria-hidden', 'true');
    add(item, 'span', '', name);
    add(item, 'small', '', notes && notes[entry] ? `${sizes[entry]}, ${notes[entry]}` : String(sizes[entry]));
    const point = at => () => { state.pointed = at; drawLarge(); };
    ['pointerenter', 'focus'].forEach(kind => item.addEventListener(kind, point(entry)));
    ['pointerleave', 'blur'].forEach(kind => item.addEventListener(kind, point(-1)));
    return {item, canvas, entry, name};
  });
  pressLegend();
}

function pressLegend() {
  parts.keys.forEach(({item, name}) => {
    item.setAttribute('aria-pressed', state.filters.some(each => each.kind === ENTRY && each.title === name));
  });
}

function drawKey({canvas, entry}) {
  const context = canvas.getContext('2d');
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = colour(entry);
  mark(context, shape(entry), 14, 14, 9);
}
