// The visible part of the unit square, and the animation of points from one model's map to another's.
const DEEPEST = 24, GLIDE = 700;  // largest scale; milliseconds
let view = {scale: 1, x: 0, y: 0}, shown = new Float32Array(0), frame = 0;

const side = () => parts.canvas.clientWidth;

function place(index) {
  const scale = view.scale * side();
  return [(shown[2 * index] - view.x) * scale, (shown[2 * index + 1] - view.y) * scale];
}

function look(scale, x, y) {
  const inside = (start, size) => Math.min(Math.max(start, 0), 1 - size);
  scale = Math.min(Math.max(scale, 1), DEEPEST);
  view = {scale, x: inside(x, 1 / scale), y: inside(y, 1 / scale)};
  parts.canvas.style.touchAction = scale > 1 || state.lassoing ? 'none' : 'pan-y';  // otherwise a finger scrolls the page
  parts.reset.disabled = parts.out.disabled = scale === 1;
  drawLarge();
}

// Zoom around (x, y) in pixels.
function zoom(factor, x = side() / 2, y = side() / 2) {
  const scale = Math.min(Math.max(view.scale * factor, 1), DEEPEST), width = side();
  look(scale, view.x + x / width * (1 / view.scale - 1 / scale), view.y + y / width * (1 / view.scale - 1 / scale));
}

function pan(x, y) {
  look(view.scale, view.x - x / side() / view.scale, view.y - y / side() / view.scale);
}

function whole() {
  look(1, 0, 0);
}

// Pan so that a point reached by a key is visible.
function reveal(index) {
  const [x, y] = place(index), edge = side() * 0.06;
  const beyond = at => Math.min(at - edge, 0) + Math.max(at - side() + edge, 0);
  if (view.scale > 1 && (beyond(x) || beyond(y))) pan(-beyond(x), -beyond(y));
}

function glideTo(points) {
  cancelAnimationFrame(frame);
  const from = shown, start = performance.now();
  const moves = !still.matches && from.length === points.length && points.some((end, place) => Math.abs(end - from[place]) > 0.005);
  const step = now => {
    const share = moves ? Math.min(Math.max((now - start) / GLIDE, 0), 1) : 1, eased = share * share * (3 - 2 * share);
    shown = points.map((end, place) => (share < 1 ? from[place] + (end - from[place]) * eased : end));
    root.toggleAttribute('data-gliding', share < 1);
    if (share < 1) frame = requestAnimationFrame(step);
    drawLarge();
  };
  step(start);
}
