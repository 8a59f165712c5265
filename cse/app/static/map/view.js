// Positions, drawing, and the part of the maps that is seen, which all maps share as they are aligned.
const DEEPEST = 24, GLIDE = 700;  // largest scale; milliseconds
const MARGIN = 0.04;  // around the points
const ALPHA = 0.9, FAINT = 0.1;  // of a point, and of one that a filter leaves out
const MANY = 400, CROWD = 3000;  // points, which are drawn smaller
const OFFSETS = [0, -1, 1, -2, 2, -3, 3];  // moves of a name, in its heights
let view = {scale: 1, x: 0, y: 0};
let extent = [{least: 0, length: 1}, {least: 0, length: 1}];  // of the points of all maps, across and down

const size = () => [panes[0].canvas.clientWidth, panes[0].canvas.clientHeight];
const side = () => Math.min(...size().map((pixels, axis) => pixels / extent[axis].length));  // of the unit square at scale 1

function measureExtent() {
  extent = [0, 1].map(axis => {
    let [least, most] = [1, 0];
    models.forEach(map => map.points.forEach((at, place) => {
      if (place % 2 === axis) [least, most] = [Math.min(least, at), Math.max(most, at)];
    }));
    return {least: least - MARGIN, length: Math.max(most - least, 0.05) + 2 * MARGIN};
  });
}

function onScreen(x, y) {
  const scale = view.scale * side();
  return [(x - view.x) * scale, (y - view.y) * scale];
}

const spot = (pane, index) => onScreen(pane.points[2 * index], pane.points[2 * index + 1]);

function look(scale, x, y) {
  const inside = (start, seen, {least, length}) => (
    seen >= length ? least + (length - seen) / 2 : Math.min(Math.max(start, least), least + length - seen));
  scale = Math.min(Math.max(scale, 1), DEEPEST);
  const [width, height] = size().map(pixels => pixels / side() / scale);
  view = {scale, x: inside(x, width, extent[0]), y: inside(y, height, extent[1])};
  panes.forEach(({canvas}) => { canvas.style.touchAction = scale > 1 || state.lassoing ? 'none' : 'pan-y'; });  // otherwise a finger scrolls the page
  parts.reset.disabled = parts.out.disabled = scale === 1;
  drawAll();
}

// Zoom around (x, y) in pixels.
function zoom(factor, x = size()[0] / 2, y = size()[1] / 2) {
  const scale = Math.min(Math.max(view.scale * factor, 1), DEEPEST), closer = 1 / view.scale - 1 / scale;
  look(scale, view.x + x / side() * closer, view.y + y / side() * closer);
}

function pan(x, y) {
  look(view.scale, view.x - x / side() / view.scale, view.y - y / side() / view.scale);
}

const whole = () => look(1, 0, 0);

// Pan so that a point reached by a key is visible.
function reveal(pane, index) {
  const edge = side() * 0.06, beyond = (at, end) => Math.min(at - edge, 0) + Math.max(at - end + edge, 0);
  const [x, y] = spot(pane, index).map((at, axis) => beyond(at, size()[axis]));
  if (view.scale > 1 && (x || y)) pan(-x, -y);
}

// Move the points of a map to those of another model.
function glide(pane) {
  cancelAnimationFrame(pane.moving);
  const from = pane.points, to = pane.map.points, start = performance.now(), moves = !still.matches && from.length === to.length;
  const step = now => {
    const share = moves ? Math.min(Math.max((now - start) / GLIDE, 0), 1) : 1, eased = share * share * (3 - 2 * share);
    pane.points = share < 1 ? to.map((end, place) => from[place] + (end - from[place]) * eased) : to;
    if (share < 1) pane.moving = requestAnimationFrame(step);
    drawPane(pane);
  };
  step(start);
}

function prepare(canvas) {
  const {clientWidth: width, clientHeight: height} = canvas, ratio = window.devicePixelRatio || 1;
  if (!width) return null;  // the tab is hidden
  const [across, down] = [width, height].map(pixels => Math.round(pixels * ratio));
  if (canvas.width !== across || canvas.height !== down) Object.assign(canvas, {width: across, height: down});
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

const radius = () => (count() > CROWD ? 1.8 : count() > MANY ? 2.7 : 4.2) * Math.min(view.scale, 3) ** 0.4;
const drawAll = () => panes.forEach(drawPane);

function drawPane(pane) {
  const context = prepare(pane.canvas);
  if (!context) return;
  const {map} = pane, of = painted.of(map), wide = radius(), [width, height] = size(), ink = getComputedStyle(root).color;
  const line = (from, to) => { context.beginPath(); context.moveTo(...from); context.lineTo(...to); context.stroke(); };
  [context.strokeStyle, context.globalAlpha] = [ink, 0.7];
  if (state.pinned >= 0) map.near(state.pinned).forEach(other => line(spot(pane, state.pinned), spot(pane, other)));
  const looks = painted.names.map((_, entry) => [colour(entry), shape(entry)]);
  for (const faint of [true, false]) {  // what is left out lies beneath
    context.globalAlpha = faint ? FAINT : ALPHA;
    for (let i = 0; i < count(); i++) {
      const [x, y] = spot(pane, i), out = !visible[i] || (state.pointed >= 0 && of[i] !== state.pointed);
      if (out !== faint || x < -9 || y < -9 || x > width + 9 || y > height + 9) continue;
      context.fillStyle = looks[of[i]][0];
      mark(context, looks[of[i]][1], x, y, wide);
    }
  }
  context.globalAlpha = 1;
  for (const index of new Set([state.pinned, state.active])) {
    if (index < 0) continue;
    const [x, y] = spot(pane, index);
    context.fillStyle = looks[of[index]][0];
    mark(context, looks[of[index]][1], x, y, wide * 1.5);
    context.lineWidth = index === state.pinned ? 3 : 1.5;
    context.beginPath();
    context.arc(x, y, wide * 2.6, 0, 7);
    context.stroke();
  }
  context.lineWidth = 1;
  if (gesture && gesture.kind === LASSO && gesture.pane === pane) {
    context.setLineDash([5, 4]);
    context.beginPath();
    gesture.path.forEach(point => context.lineTo(...point));
    context.stroke();
    context.setLineDash([]);
  }
  placeNames(pane);
  placeTip(pane);
}

// The names of the entries at the medians of their points, where the colouring has names.
function showNames(pane) {
  pane.names.forEach(name => name.label.remove());
  const members = painted.names.map(() => []), middle = numbers => numbers.sort((one, other) => one - other)[numbers.length >> 1];
  painted.of(pane.map).forEach((entry, index) => members[entry].push(index));
  pane.names = (painted.named ? painted.names : []).flatMap((title, entry) => {
    if (!members[entry].length || entry === painted.missing) return [];
    const label = add(pane.frame, 'span', 'cse-name', title);
    label.setAttribute('aria-hidden', 'true');  // the legend names them
    return [{label, entry, at: [0, 1].map(axis => middle(members[entry].map(index => pane.map.points[2 * index + axis])))}];
  });
}

// Names that would overlap are moved or hidden.
function placeNames(pane) {
  const [width, height] = size(), spots = [];
  pane.names.forEach(({label, entry, at}) => {
    const [x, y] = onScreen(...at), {offsetWidth: across, offsetHeight: down} = label;
    const left = Math.min(Math.max(x - across / 2, 0), Math.max(0, width - across));
    const tops = OFFSETS.map(step => Math.min(Math.max(y - down / 2 + step * down, 0), height - down));
    const top = tops.find(free => spots.every(other => (
      left >= other.left + other.across || other.left >= left + across || free >= other.top + down || other.top >= free + down)));
    const seen = x > 0 && y > 0 && x < width && y < height && top !== undefined && across < width;
    label.style.visibility = seen ? '' : 'hidden';
    label.style.borderBottomColor = colour(entry);
    if (!seen) return;
    spots.push({left, top, across});
    label.style.transform = `translate(${left}px, ${top}px)`;
  });
}

function placeTip(pane) {
  const {tip} = pane, index = state.active, [width, height] = size();
  tip.hidden = index < 0 || state.over !== pane;
  if (tip.hidden) return;
  const [x, y] = spot(pane, index);
  tip.style.left = `${Math.max(0, Math.min(x - tip.offsetWidth / 2, width - tip.offsetWidth))}px`;
  tip.style.top = y > height / 2 ? `${y - tip.offsetHeight - 16}px` : `${y + 16}px`;
}
