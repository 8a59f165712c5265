// Marks of points: a colour and a shape for each entry of the legend, with the colours of cse/app/drawing/palette.py.
const SHAPES = ['circle', 'square', 'triangle', 'diamond'];
const TINTS = {  // least, middle and most
  light: [[122, 137, 160], [210, 92, 25], [105, 0, 55]], dark: [[100, 118, 145], [232, 138, 62], [255, 236, 140]],
};
let scheme = 'light';

// An entry of an ordered colouring has a tint, another one of the hues; beyond the hues entries are grey,
// and so is that of texts without a label.
function colour(entry) {
  const hues = props.value.colours[scheme], total = painted.names.length - (painted.missing >= 0);
  if (entry === painted.missing) return tint(0);
  if (painted.ordered) return tint(entry / Math.max(1, total - 1));
  return entry < (total > hues.length ? hues.length - 1 : hues.length) ? hues[entry] : tint(0);
}

const shape = entry => SHAPES[painted.ordered ? 0 : entry % SHAPES.length];

function tint(share) {
  const at = 2 * share, from = Math.min(Math.floor(at), 1), [one, other] = TINTS[scheme].slice(from);
  return `rgb(${one.map((part, place) => Math.round(part + (other[place] - part) * (at - from))).join(' ')})`;
}

function readScheme() {
  const [red, green, blue] = getComputedStyle(root).color.match(/[\d.]+/g);  // the text is bright in a dark scheme
  scheme = 0.21 * red + 0.72 * green + 0.07 * blue > 128 ? 'dark' : 'light';
}

function mark(context, kind, x, y, size) {
  context.beginPath();
  if (kind === 'circle') context.arc(x, y, size, 0, 7);
  else if (kind === 'square') context.rect(x - size * 0.9, y - size * 0.9, size * 1.8, size * 1.8);
  else if (kind === 'triangle') {
    context.moveTo(x, y - size * 1.25);
    context.lineTo(x + size * 1.15, y + size * 0.85);
    context.lineTo(x - size * 1.15, y + size * 0.85);
  } else {
    context.moveTo(x, y - size * 1.35);
    context.lineTo(x + size * 1.35, y);
    context.lineTo(x, y + size * 1.35);
    context.lineTo(x - size * 1.35, y);
  }
  context.closePath();
  context.fill();
}
