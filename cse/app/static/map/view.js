// The visible part of the map, and the animation of points from one model's map to another's.
const DEEPEST = 24, GLIDE = 700;  // largest scale; milliseconds
const MARGIN = 0.04;  // around the points
let view = {scale: 1, x: 0, y: 0}, shown = new Float32Array(0), frame = 0;
let extent = [{least: 0, length: 1}, {least: 0, length: 1}];  // of the points of all maps, across and down

const size = () => [parts.canvas.clientWidth, parts.canvas.clientHeight];
const side = () => Math.min(...size().map((pixels, axis) => pixels / extent[axis].length));  // of the unit square at scale 1

function measureExtent() {
  extent = [0, 1].map(axis => {
    let [least, most] = [1, 0];
    maps.forEach(map => map.points && map.points.forEach((at, place) => {
      if (place % 2 === axis) [least, most] = [Math.min(least, at), Math.max(most, at)];
    }));
    return {least: least - MARGIN, length: Math.max(most - least, 0.05) + 2 * MARGIN};
  });
}

function onScreen([x, y]) {
  const scale = view.scale * side();
  return [(x - view.x) * scale, (y - view.y) * scale];
}

const place = index => onScreen([shown[2 * index], shown[2 * index + 1]]);

function look(scale, x, y) {
  const inside = (start, seen, {least, length}) => (
    seen >= length ? least + (length - seen) / 2 : Math.min(Math.max(start, least), least + length - seen));
  scale = Math.min(Math.max(scale, 1), DEEPEST);
  const [width, height] = size().map(pixels => pixels / side() / scale);
  view = {scale, x: inside(x, width, extent[0]), y: inside(y, height, extent[1])};
  parts.canvas.style.touchAction = scale > 1 || state.lassoing ? 'none' : 'pan-y';  // otherwise a finger scrolls the page
  parts.reset.disabled = parts.out.disabled = scale === 1;
  drawLarge();
}

// Zoom around (x, y) in pixels.
function zoom(factor, x = size()[0] / 2, y = size()[1] / 2) {
  const scale = Math.min(Math.max(view.scale * factor, 1), DEEPEST), closer = 1 / view.scale - 1 / scale;
  look(scale, view.x + x / side() * closer, view.y + y / side() * closer);
}

function pan(x, y) {
  look(view.scale, view.x - x / side() / view.scale, view.y - y / side() / view.scale);
}

function whole() {
  look(1, 0, 0);
}

// Pan so that a point reached by a key is visible.
function reveal(index) {
  const edge = side() * 0.06, beyond = (at, end) => Math.min(at - edge, 0) + Math.max(at - end + edge, 0);
  const [x, y] = place(index).map((at, axis) => beyond(at, size()[axis]));
  if (view.scale > 1 && (x || y)) pan(-x, -y);
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
