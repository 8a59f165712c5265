// What a visitor does on the maps and beside them: pointers, keys, filters, and the pinned text (map.js draws).
const REACH = 18, SLACK = 5;  // pixels: radius of a point's hit area; movement allowed in a click
const WAYS = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
const FAR = 1e9;  // squared pixels, farther than any point
const DELAY = 300;  // milliseconds before the server is asked
const WORDS = 'words', ENTRY = 'entry', LASSO = 'lasso', SHARED = 'shared';  // kinds of filters
const pointers = new Map();
let gesture = null;  // press, pan, pinch or lasso
let waiting = 0;

// Filters add up; one of a kind takes the place of the one before, but for lassos. The last can be undone.
function filter(kind, title, points, more = {}) {
  if (kind !== LASSO) state.filters = state.filters.filter(each => each.kind !== kind);
  if (points) state.filters.push({kind, title, points, ...more});
  refilter();
}

function undo() {
  if (state.filters.pop()?.kind === WORDS) parts.words.value = '';
  refilter();
}

function clearFilters() {
  state.filters = [];
  parts.words.value = '';
  refilter();
}

const having = test => new Set([...visible.keys()].filter(test));

function find(typed) {
  const plain = each => each.toLowerCase().normalize('NFC'), asked = plain(typed).split(/\s+/).filter(Boolean);
  const points = having(index => asked.every(word => plain(text(index)).includes(word)));
  filter(WORDS, `“${typed.trim()}”`, asked.length ? points : null);
}

// An entry is that of the first map: the others show where its texts are for their models.
function filterEntry(entry, title = painted.names[entry], of = painted.of(panes[0].map)) {
  const same = state.filters.some(each => each.kind === ENTRY && each.title === title);
  filter(ENTRY, title, same ? null : having(index => of[index] === entry));
}

function filterShared(bar, kept) {
  if (panes.length < 2) return;
  const bars = new Set(state.filters.find(each => each.kind === SHARED)?.bars);
  if (!bars.delete(bar) || kept) bars.add(bar);
  const [one, other] = panes.map(pane => pane.map), both = shared(one, other);
  const title = `${[...bars].sort().join(', ')} of ${one.near(0).length} shared`;
  filter(SHARED, title, bars.size ? having(index => bars.has(both[index])) : null, {bars});
}

// Show what all filters have, and after a while ask the server for these rows.
function refilter() {
  visible = new Uint8Array(count()).map((_, index) => (state.filters.every(({points}) => points.has(index)) ? 1 : 0));
  const titles = state.filters.map(each => each.title), points = titles.length ? [...having(index => visible[index])] : [];
  parts.count.textContent = titles.length
    ? `${points.length.toLocaleString('en')} of ${count().toLocaleString('en')}: ${titles.join(' + ')}` : '';
  [parts.undo, parts.clear].forEach(tool => offer(tool, titles.length, parts.words));
  drawKeys();
  drawAll();
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    trigger('submit', {points});
    if (`${typed()} ${only()}` !== state.told) tell();
  }, DELAY);
}

const typed = () => (state.filters.some(each => each.kind === WORDS) ? parts.words.value : '');
const only = () => state.filters.find(each => each.kind === ENTRY)?.title ?? '';

// The pinned text, the models shown, the colouring, and filters by words and by an entry go into the address.
function tell() {
  state.told = `${typed()} ${only()}`;
  trigger('select', {});
}

cse.looks = () => [
  state.pinned < 0 ? '' : String(props.value.positions[state.pinned]),
  state.picked ? state.shown.slice(0, state.count).join(',') : '',
  state.by, typed(), only(),
];

// Filter by the entry of a title, of the colouring or else of the groups.
function filterTitle(title) {
  const entry = painted.names.indexOf(title), group = props.value.groups.names.indexOf(title);
  if (entry >= 0) filterEntry(entry);
  else if (group >= 0) filterEntry(group, title, panes[0].map.of);
}

function pin(index) {
  if (index === state.pinned) return;
  state.pinned = index;
  tell();
  showPinned();
  drawAll();
}

// The pinned text, and its neighbours by the full vectors, ordered by mean rank, each with its rank in the models that
// have it.
function showPinned() {
  const box = document.querySelector('#pinned .cse-pinned');
  if (!box) return;
  const focused = box.contains(document.activeElement);
  box.replaceChildren();
  box.toggleAttribute('data-open', state.pinned >= 0);
  if (state.pinned < 0) {
    if (focused) panes[0]?.canvas.focus();
    return;
  }
  const head = add(box, 'div', 'cse-detail-head'), beyond = 6;
  add(head, 'h3', '', `Pinned (row ${props.value.rows[state.pinned]})`);
  const unpin = addButton(head, 'cse-tool', 'Unpin', () => pin(-1));
  if (focused) unpin.focus();
  addText(add(box, 'div', 'cse-quote', '', {dir: 'auto'}), text(state.pinned));
  add(box, 'h4', '', 'Nearest texts, with their rank in each model');
  const list = add(box, 'ul', 'cse-texts'), lists = models.map(map => map.near(state.pinned));
  const rank = (near, index) => (near.indexOf(index) + 1 || beyond);
  const sum = index => lists.reduce((total, near) => total + rank(near, index), 0);
  [...new Set(lists.flat())].sort((one, other) => sum(one) - sum(other)).forEach(index => {
    const item = add(list, 'li'), finders = models.filter((_, place) => lists[place].includes(index));
    if (text(index).length <= LONG) addButton(item, 'cse-sentence', text(index), () => pin(index));
    else addButton(addText(item, text(index)), 'cse-tool', 'Pin it', () => pin(index));
    const ranks = add(item, 'small'), alone = finders.length === 1 && models.length > 1 ? 'only ' : '';
    finders.forEach(map => {
      add(ranks, 'span', alone && 'cse-badge', `${alone}${modelName(map.name)} ${rank(map.near(state.pinned), index)}`);
    });
  });
}

function lasso(on) {
  state.lassoing = on;
  parts.lasso.ariaPressed = String(on);
  look(view.scale, view.x, view.y);
}

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
    filter(LASSO, `lasso of ${points.size.toLocaleString('en')}`, points);
    document.querySelector('#clusters-views input[value="Selection"]')?.click();
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

const pinActive = () => { if (state.active >= 0) pin(state.active); };
const ACTIONS = {
  Enter: pinActive, ' ': pinActive, '+': () => zoom(1.5), '=': () => zoom(1.5), '-': () => zoom(1 / 1.5), 0: whole, u: undo,
  Escape: () => { select(-1, null); pin(-1); clearFilters(); },
};

function key(pane, event) {
  const way = WAYS[event.key], act = ACTIONS[event.key];
  if (event.ctrlKey || event.metaKey || event.altKey || (!way && !act)) return;
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

// Presses beside the maps filter and pin here.
document.addEventListener('click', event => {
  const beside = event.target.closest?.('#clusters-beside :is([data-pin], [data-group], [data-shared])');
  if (!beside || !panes.length) return;
  const {pin: row, group, shared: bar} = beside.dataset;
  if (row !== undefined) pin(Number(row));
  else if (bar !== undefined) filterShared(Number(bar));
  else {
    const opens = !beside.parentElement.open, title = props.value.groups.names[group - 1];
    const filtered = state.filters.some(each => each.kind === ENTRY && each.title === title);
    if (opens !== filtered) filterEntry(group - 1, title, panes[0].map.of);
  }
});
document.addEventListener('pointerover', event => {  // a drag over bars adds them
  const bar = event.buttons === 1 && event.target.closest?.('#neighbours [data-shared]');
  if (bar && event.relatedTarget && !bar.contains(event.relatedTarget)) filterShared(Number(bar.dataset.shared), true);
});
new ResizeObserver(() => { if (panes.length) look(view.scale, view.x, view.y); }).observe(root);
new MutationObserver(() => { if (panes.length) paint(); })  // on a change of the colour scheme
  .observe(document.body, {attributes: true, attributeFilter: ['class']});
watch('value', update);
update();
