// Draw the large map and the small ones.
const ALPHA = 0.9;  // of a point

function prepare(canvas) {
  const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
  if (!width) return null;  // the tab is hidden
  if (canvas.width !== Math.round(width * ratio)) canvas.width = canvas.height = Math.round(width * ratio);
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, width);
  return context;
}

function drawLarge() {
  const map = current(), context = parts.canvas && prepare(parts.canvas);
  if (!map || !context) return;
  const count = props.value.texts.length, size = (count > 400 ? 3.2 : 4.6) * Math.min(view.scale, 3) ** 0.4;
  drawJoints(context);
  drawNeighbours(context, map);
  for (let i = 0; i < count; i++) {
    const label = props.value.labels[i], share = state.lossy ? map.lost[i] : 0;
    context.globalAlpha = dimmed(i) ? 0.12 : ALPHA;
    context.fillStyle = state.lossy ? tint(share) : colour(label);
    mark(context, shape(label), ...place(i), state.lossy ? size * (0.7 + share) : size);
  }
  if (props.value.numbered) drawNumbers(context, size);
  for (const index of new Set([state.pinned, state.active])) if (index >= 0) ring(context, index, size);
  drawLasso(context);
  placeNames();
  placeTip();
}

function drawJoints(context) {
  for (let i = 0; props.value.joined && i < props.value.texts.length; i += 2) {
    context.globalAlpha = dimmed(i) ? 0.1 : ALPHA;
    context.strokeStyle = colour(props.value.labels[i]);
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

function ring(context, index, size) {
  const [x, y] = place(index), label = props.value.labels[index];
  context.globalAlpha = 1;
  context.fillStyle = colour(label);
  mark(context, shape(label), x, y, size * 1.5);
  context.strokeStyle = getComputedStyle(root).color;
  context.lineWidth = index === state.pinned ? 3 : 1.5;
  context.beginPath();
  context.arc(x, y, size * 2.6, 0, 7);
  context.stroke();
  context.lineWidth = 1;
}

function drawLasso(context) {
  if (!gesture || gesture.kind !== 'lasso') return;
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
  const width = map.canvas.clientWidth, size = props.value.texts.length > 400 ? 1.1 : 1.6;
  const at = index => [map.points[2 * index] * width, map.points[2 * index + 1] * width];
  const dot = (index, radius) => {
    context.beginPath();
    context.arc(...at(index), radius, 0, 7);
    context.fill();
  };
  props.value.labels.forEach((label, index) => {
    context.globalAlpha = dimmed(index) ? 0.12 : ALPHA;
    context.fillStyle = state.lossy ? tint(map.lost[index]) : colour(label);
    dot(index, size);
  });
  context.globalAlpha = 1;
  context.fillStyle = getComputedStyle(root).color;
  for (const index of new Set([state.pinned, state.active])) if (index >= 0) dot(index, 4);
}

function redraw() {
  if (!parts.canvas) return;
  readScheme();
  drawLarge();
  maps.forEach(map => map.canvas && drawSmall(map));
  keys.forEach(drawKey);
}

function placeTip() {
  const {tip, canvas} = parts, index = state.active;
  tip.hidden = index < 0;
  if (index < 0) return;
  const [x, y] = place(index), width = canvas.clientWidth;
  tip.style.left = `${Math.max(0, Math.min(x - tip.offsetWidth / 2, width - tip.offsetWidth))}px`;
  tip.style.top = y > width / 2 ? `${y - tip.offsetHeight - 16}px` : `${y + 16}px`;
}
