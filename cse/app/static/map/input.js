// Pointers and keys on a map: hover shows, click or tap pins, drag pans, two fingers zoom, a lasso selects.
const REACH = 18, SLACK = 5;  // pixels: radius of a point's hit area; movement allowed in a click
const WAYS = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
const FAR = 1e9;  // squared pixels, farther than any point
const pointers = new Map();
let gesture = null;  // the current gesture: press, pan, pinch or lasso

function at(pane, event) {
  const box = pane.canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function select(index, pane) {
  if (index === state.active && state.over === pane) return;
  [state.active, state.over] = [index, pane];
  if (pane) {
    pane.tip.replaceChildren();
    if (index >= 0) {
      add(pane.tip, 'b', '', painted.names[painted.of(pane.map)[index]]);
      add(pane.tip, 'span', '', text(index));
    }
  }
  drawAll();
}

function nearest(pane, [x, y], reach = REACH * REACH) {
  let best = -1, least = reach;
  for (let i = 0; i < count(); i++) {
    const [left, top] = spot(pane, i), away = (left - x) ** 2 + (top - y) ** 2;
    if (away < least) { least = away; best = i; }
  }
  return best;
}

function down(pane, event) {
  pointers.set(event.pointerId, at(pane, event));
  pane.canvas.setPointerCapture(event.pointerId);
  if (pointers.size === 2) gesture = {kind: 'pinch', pane, ...spread()};
  else gesture = {kind: state.lassoing || event.shiftKey ? LASSO : 'press', pane, path: [at(pane, event)]};
}

function spread() {
  const [[left, top], [right, bottom]] = [...pointers.values()];
  return {distance: Math.hypot(right - left, bottom - top) || 1, x: (left + right) / 2, y: (top + bottom) / 2};
}

function move(pane, event) {
  const here = at(pane, event), before = pointers.get(event.pointerId);
  if (!before || !gesture) { if (event.pointerType !== 'touch') select(nearest(pane, here), pane); return; }
  pointers.set(event.pointerId, here);
  const [x, y] = [here[0] - before[0], here[1] - before[1]], [start] = gesture.path || [here];
  if (gesture.kind === 'press' && Math.hypot(here[0] - start[0], here[1] - start[1]) > SLACK) gesture.kind = 'pan';
  if (gesture.kind === 'pan') pan(x, y);
  if (gesture.kind === LASSO) { gesture.path.push(here); drawPane(pane); }
  if (gesture.kind === 'pinch' && pointers.size === 2) {
    const now = spread();
    zoom(now.distance / gesture.distance, now.x, now.y);
    pan(now.x - gesture.x, now.y - gesture.y);
    gesture = {kind: 'pinch', pane, ...now};
  }
}

function up(pane, event) {
  pointers.delete(event.pointerId);
  const ended = gesture;
  if (!pointers.size) gesture = null;
  if (!ended || event.type === 'pointercancel') return;
  if (ended.kind === LASSO) {
    lasso(false);
    const points = within(pane, ended.path);
    if (!points.size) return;
    filter(LASSO, `lasso of ${points.size.toLocaleString('en')}`, points, []);
    openSelection();
  } else if (ended.kind === 'press') {
    const index = nearest(pane, at(pane, event));
    select(index, pane);
    if (index >= 0) pin(index);
  }
}

// The points within a closed path: a ray to the left crosses it an odd number of times.
function within(pane, path) {
  const inside = ([x, y]) => path.reduce((odd, [right, bottom], place) => {
    const [left, top] = path[(place + path.length - 1) % path.length];
    return (top > y) !== (bottom > y) && x < left + (y - top) / (bottom - top) * (right - left) ? !odd : odd;
  }, false);
  return having(index => inside(spot(pane, index)));
}

function wheel(pane, event) {
  if (event.deltaY > 0 && view.scale === 1 && !event.ctrlKey) return;  // at full size the page scrolls
  event.preventDefault();
  const pixels = event.deltaY * (event.deltaMode ? 16 : 1);
  zoom(Math.exp(-pixels * (event.ctrlKey ? 0.01 : 0.002)), ...at(pane, event));  // a trackpad pinch sets ctrlKey
}

// The nearest point in a direction, first those within 45 degrees.
function towards(pane, [right, down]) {
  if (state.active < 0) return state.pinned >= 0 ? state.pinned : nearest(pane, size().map(pixels => pixels / 2), FAR);
  const [x, y] = spot(pane, state.active);
  let best = state.active, least = Infinity;
  for (let i = 0; i < count(); i++) {
    const [left, top] = spot(pane, i), ahead = (left - x) * right + (top - y) * down;
    const aside = Math.abs((left - x) * down + (top - y) * right), away = ahead ** 2 + aside ** 2 + (aside > ahead ? FAR : 0);
    if (ahead > 0 && away < least) { least = away; best = i; }
  }
  return best;
}

const ACTIONS = {
  Enter: () => { if (state.active >= 0) pin(state.active); },
  ' ': () => { if (state.active >= 0) pin(state.active); },
  Escape: () => { select(-1, null); pin(-1); clearFilters(); },
  '+': () => zoom(1.5),
  '=': () => zoom(1.5),
  '-': () => zoom(1 / 1.5),
  0: whole,
  u: () => { if (state.filters.length) undo(); },
};

function key(pane, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const way = WAYS[event.key], act = ACTIONS[event.key];
  if (!way && !act) return;
  event.preventDefault();
  if (act) return act();
  select(towards(pane, way), pane);
  reveal(pane, state.active);
}

function listen(pane) {
  const on = (kind, act, options) => pane.canvas.addEventListener(kind, event => act(pane, event), options);
  on('pointerdown', down);
  on('pointermove', move);
  on('pointerup', up);
  on('pointercancel', up);
  on('pointerleave', (_, event) => { if (event.pointerType !== 'touch' && !gesture) select(-1, null); });
  on('wheel', wheel, {passive: false});
  on('touchstart', (_, event) => { if (event.touches.length > 1) event.preventDefault(); }, {passive: false});
  on('dblclick', whole);
  on('blur', () => select(-1, null));
  on('keydown', key);
}
