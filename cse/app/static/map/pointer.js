// Pointers on the large map: hover shows, click or tap pins, drag pans, two fingers zoom, a lasso lists.
const REACH = 18, SLACK = 5;  // pixels: radius of a point's hit area; movement allowed in a click
const pointers = new Map();
let gesture = null;  // the current gesture: press, pan, pinch or lasso

function at(event) {
  const box = parts.canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function nearest([x, y], reach = REACH) {
  let best = -1, least = reach * reach;
  for (let i = 0; i < count(); i++) {
    const [left, top] = place(i), away = (left - x) ** 2 + (top - y) ** 2;
    if (away < least) { least = away; best = i; }
  }
  return best;
}

function down(event) {
  pointers.set(event.pointerId, at(event));
  parts.canvas.setPointerCapture(event.pointerId);
  if (pointers.size === 2) gesture = {kind: 'pinch', ...spread()};
  else gesture = {kind: state.lassoing || event.shiftKey ? LASSO : 'press', path: [at(event)]};
}

function spread() {
  const [[left, top], [right, bottom]] = [...pointers.values()];
  return {distance: Math.hypot(right - left, bottom - top) || 1, x: (left + right) / 2, y: (top + bottom) / 2};
}

function move(event) {
  const here = at(event), before = pointers.get(event.pointerId);
  if (!before || !gesture) { if (event.pointerType !== 'touch') select(nearest(here)); return; }
  pointers.set(event.pointerId, here);
  const [x, y] = [here[0] - before[0], here[1] - before[1]], [start] = gesture.path || [here];
  if (gesture.kind === 'press' && Math.hypot(here[0] - start[0], here[1] - start[1]) > SLACK) gesture.kind = 'pan';
  if (gesture.kind === 'pan') pan(x, y);
  if (gesture.kind === LASSO) { gesture.path.push(here); drawLarge(); }
  if (gesture.kind === 'pinch' && pointers.size === 2) {
    const now = spread();
    zoom(now.distance / gesture.distance, now.x, now.y);
    pan(now.x - gesture.x, now.y - gesture.y);
    gesture = {kind: 'pinch', ...now};
  }
}

function up(event) {
  pointers.delete(event.pointerId);
  const ended = gesture;
  if (!pointers.size) gesture = null;
  if (!ended || event.type === 'pointercancel') return;
  if (ended.kind === LASSO) {
    lasso(false);
    const found = within(ended.path);
    if (found.size) filter(LASSO, `lasso of ${found.size.toLocaleString('en')}`, found);
  } else if (ended.kind === 'press') {
    const index = nearest(at(event));
    select(index);
    if (index >= 0) pin(index);
  }
}

// The points within a closed path: a ray to the left crosses it an odd number of times.
function within(path) {
  const inside = ([x, y]) => path.reduce((odd, [right, bottom], place) => {
    const [left, top] = path[(place + path.length - 1) % path.length];
    return (top > y) !== (bottom > y) && x < left + (y - top) / (bottom - top) * (right - left) ? !odd : odd;
  }, false);
  return new Set([...visible.keys()].filter(index => inside(place(index))));
}

function wheel(event) {
  if (event.deltaY > 0 && view.scale === 1 && !event.ctrlKey) return;  // at full size the page scrolls
  event.preventDefault();
  const pixels = event.deltaY * (event.deltaMode ? 16 : 1);
  zoom(Math.exp(-pixels * (event.ctrlKey ? 0.01 : 0.002)), ...at(event));  // a trackpad pinch sets ctrlKey
}

function listen(canvas) {
  canvas.addEventListener('pointerdown', down);
  canvas.addEventListener('pointermove', move);
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('pointerleave', event => { if (event.pointerType !== 'touch' && !gesture) select(-1); });
  canvas.addEventListener('wheel', wheel, {passive: false});
  canvas.addEventListener('touchstart', event => { if (event.touches.length > 1) event.preventDefault(); }, {passive: false});
  canvas.addEventListener('dblclick', whole);
  canvas.addEventListener('blur', () => select(-1));
  canvas.addEventListener('keydown', key);
}
