// Draw the large map and the small ones.
const ALPHA = 0.9;  // of a point
const MANY = 400, CROWD = 3000;  // points, which are drawn smaller

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

function markSize() {
  const usual = count() > CROWD ? 2.2 : count() > MANY ? 3.2 : 4.6;
  return usual * Math.min(view.scale, 3) ** 0.4;
}

function drawLarge() {
  const map = current(), context = parts.canvas && prepare(parts.canvas);
  if (!map || !context) return;
  const radius = markSize(), [width, height] = size();
  drawJoints(context);
  drawNeighbours(context, map);
  const inks = painted.names.map((_, entry) => [colour(entry), shape(entry)]);
  for (const faint of [true, false]) {  // what is dimmed lies beneath
    context.globalAlpha = faint ? 0.12 : ALPHA;
    for (let i = 0; i < count(); i++) {
      const [x, y] = place(i);
      if (dimmed(i) !== faint || x < -9 || y < -9 || x > width + 9 || y > height + 9) continue;
      const [ink, kind] = inks[painted.of[i]];
      context.fillStyle = ink;
      mark(context, kind, x, y, radius);
    }
  }
  for (const index of new Set([state.pinned, state.active])) if (index >= 0) ring(context, index, radius);
  drawLasso(context);
  placeNames();
  placeTip();
}

function drawJoints(context) {
  for (let i = 0; props.value.joined && i < count(); i += 2) {
    context.globalAlpha = dimmed(i) ? 0.1 : ALPHA;
    context.strokeStyle = colour(painted.of[i]);
    line(context, place(i), place(i + 1));
  }
}

function drawNeighbours(context, map) {
  if (state.pinned < 0) return;
  context.globalAlpha = 0.7;
  context.strokeStyle = getComputedStyle(root).color;
  map.near(state.pinned).forEach(other => line(context, place(state.pinned), place(other)));
}

function line(context, from, to) {
  context.beginPath();
  context.moveTo(...from);
  context.lineTo(...to);
  context.stroke();
}

function ring(context, index, radius) {
  const [x, y] = place(index), entry = painted.of[index];
  context.globalAlpha = 1;
  context.fillStyle = colour(entry);
  mark(context, shape(entry), x, y, radius * 1.5);
  context.strokeStyle = getComputedStyle(root).color;
  context.lineWidth = index === state.pinned ? 3 : 1.5;
  context.beginPath();
  context.arc(x, y, radius * 2.6, 0, 7);
  context.stroke();
  context.lineWidth = 1;
}

function drawLasso(context) {
  if (!gesture || gesture.kind !== LASSO) return;
  context.globalAlpha = 1;
  context.strokeStyle = getComputedStyle(root).color;
  context.setLineDash([5, 4]);
  context.beginPath();
  gesture.path.forEach(point => context.lineTo(...point));
  context.stroke();
  context.setLineDash([]);
}

function drawSmall(map) {
  const context = prepare(map.canvas);
  if (!context) return;
  const width = map.canvas.clientWidth, radius = count() > CROWD ? 0.7 : count() > MANY ? 1.1 : 1.6;
  const dot = (index, wide) => {
    const [x, y] = [map.points[2 * index] * width, map.points[2 * index + 1] * width];
    context.fillRect(x - wide, y - wide, 2 * wide, 2 * wide);
  };
  const inks = painted.names.map((_, entry) => colour(entry));
  for (let i = 0; i < count(); i++) {
    context.globalAlpha = visible[i] ? ALPHA : 0.12;
    context.fillStyle = inks[painted.of[i]];
    dot(i, radius);
  }
  context.globalAlpha = 1;
  context.fillStyle = getComputedStyle(root).color;
  if (state.pinned >= 0) dot(state.pinned, 4);
}

function redraw() {
  if (!parts.canvas || !current()) return;
  readScheme();
  drawLarge();
  maps.forEach(map => map.canvas && drawSmall(map));
  parts.keys.forEach(drawKey);
}

function placeTip() {
  const {tip} = parts, index = state.active;
  tip.hidden = index < 0;
  if (index < 0) return;
  const [x, y] = place(index), [width, height] = size();
  tip.style.left = `${Math.max(0, Math.min(x - tip.offsetWidth / 2, width - tip.offsetWidth))}px`;
  tip.style.top = y > height / 2 ? `${y - tip.offsetHeight - 16}px` : `${y + 16}px`;
}
