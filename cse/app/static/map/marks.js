// Marks of points: a colour and a shape for each label, with the colours of cse/app/drawing/palette.py.
const SHAPES = ['circle', 'square', 'triangle', 'diamond'];
const TINTS = {light: [[94, 107, 128], [190, 18, 60]], dark: [[125, 140, 163], [255, 120, 130]]};  // none lost, all lost
let scheme = 'light';

const colour = label => props.value.colours[scheme][label % props.value.colours[scheme].length];
const shape = label => SHAPES[label % SHAPES.length];

function tint(share) {
  const [none, all] = TINTS[scheme];
  return `rgb(${none.map((part, place) => Math.round(part + (all[place] - part) * share)).join(' ')})`;
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

function drawKey({canvas, label}) {
  const context = canvas.getContext('2d');
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = colour(label);
  mark(context, shape(label), 14, 14, 9);
}
