// Marks, colourings, the legend and the filters. A colour and a shape for each entry, as in cse/app/drawing/palette.py.
const SHAPES = ['circle', 'square', 'triangle', 'diamond'];
const TINTS = {  // least, middle and most
  light: [[122, 137, 160], [210, 92, 25], [105, 0, 55]], dark: [[100, 118, 145], [232, 138, 62], [255, 236, 140]],
};
const FIFTHS = 5;  // of an ordered colouring, beside none
const TYPED = 'typed', WORDS = 'words', ENTRY = 'entry', LASSO = 'lasso', SHARED = 'shared';
let scheme = 'light';

// An entry of an ordered colouring has a tint, another one of the hues; beyond the hues entries are grey,
// and so is that of texts without a label.
function colour(entry) {
  const hues = props.value.colours[scheme];
  if (entry === painted.missing) return tint(0);
  if (painted.ordered) return tint(entry / Math.max(1, painted.names.length - 1));
  return entry < hues.length ? hues[entry] : tint(0);
}

const shape = entry => SHAPES[painted.ordered ? 0 : entry % SHAPES.length];

function tint(share) {
  const at = 2 * share, from = Math.min(Math.floor(at), 1), [one, other] = TINTS[scheme].slice(from);
  return `rgb(${one.map((part, place) => Math.round(part + (other[place] - part) * (at - from))).join(' ')})`;
}

function readScheme() {
  scheme = root.closest('.dark') ? 'dark' : 'light';  // the colours of the page may still be fading
}

function mark(context, kind, x, y, wide) {
  const corners = {
    square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]], triangle: [[0, -1.25], [1.15, 0.85], [-1.15, 0.85]],
    diamond: [[0, -1.35], [1.35, 0], [0, 1.35], [-1.35, 0]],
  }[kind];
  context.beginPath();
  if (corners) corners.forEach(([right, down]) => context.lineTo(x + right * wide, y + down * wide));
  else context.arc(x, y, wide, 0, 7);
  context.fill();
}

// Fifths of the texts by their length in characters; equal lengths stay together.
function byLength() {
  const sorted = [...lengths].sort((one, other) => one - other);
  const ends = [...new Set(Array.from({length: FIFTHS}, (_, step) => sorted[Math.ceil((step + 1) * sorted.length / FIFTHS) - 1]))];
  const names = ends.map((end, place) => (place ? `${ends[place - 1] + 1} to ${end} characters` : `up to ${end} characters`));
  const of = lengths.map(length => ends.findIndex(end => length <= end));
  return {names, of: () => of, ordered: true};
}

function byDisagreement() {
  const [one, other] = panes.map(pane => pane.map), most = one.near(0).length, both = shared(one, other);
  const names = Array.from({length: most + 1}, (_, lost) => `${lost} of ${most} nearest differ`);
  return {names, of: () => both.map(same => most - same), ordered: true};
}

function byLoss() {
  const names = ['all nearest shown', ...Array.from({length: FIFTHS}, (_, step) => `${20 * step || 1} to ${20 * step + 20} % not shown`)];
  return {names, of: map => map.lost.map(share => Math.ceil(share / 255 * FIFTHS - 0.01)), ordered: true};
}

// The choices: key, label and function. Without a chosen one the first is used.
function colourings() {
  const {groups} = props.value;
  return [
    ['group', 'Group', () => ({names: groups, of: map => map.of, named: true})],
    ...columns.map(({title, names, of, missing}) => [title, title, () => ({names, of: () => of, named: true, missing})]),
    ['length', 'Length', byLength],
    ...(panes.length > 1 ? [['differing', 'Disagreement', byDisagreement]] : []),
    ['lost', 'Lost by the map', byLoss],
  ];
}

function paint() {
  const all = colourings(), [key, , made] = all.find(([name]) => name === state.by) || all[0];
  parts.by.replaceChildren(...all.map(([name, label]) => new Option(label, name, false, name === key)));
  painted = made();
  readScheme();
  showLegend();
  panes.forEach(showNames);
  drawAll();
}

// The legend: a button for each entry, with its number of points in the first map, that filters by it.
function showLegend() {
  const sizes = new Uint32Array(painted.names.length);
  painted.of(panes[0].map).forEach(entry => { sizes[entry] += 1; });
  parts.legend.replaceChildren();
  parts.keys = painted.names.map((name, entry) => {
    const item = addButton(add(parts.legend, 'li'), '', '', () => filterEntry(entry)), canvas = add(item, 'canvas');
    Object.assign(canvas, {width: 28, height: 28});
    canvas.setAttribute('aria-hidden', 'true');
    add(item, 'span', '', name);
    add(item, 'small', '', String(sizes[entry]));
    const point = at => () => { state.pointed = at; drawAll(); };
    ['pointerenter', 'focus'].forEach(kind => item.addEventListener(kind, point(entry)));
    ['pointerleave', 'blur'].forEach(kind => item.addEventListener(kind, point(-1)));
    return {item, canvas, entry, name};
  });
  drawKeys();
}

function drawKeys() {
  parts.keys.forEach(({item, canvas, entry, name}) => {
    const context = canvas.getContext('2d');
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = colour(entry);
    mark(context, shape(entry), 14, 14, 9);
    item.setAttribute('aria-pressed', state.filters.some(each => each.kind === ENTRY && each.title === name));
  });
  document.querySelectorAll('#neighbours [data-shared]').forEach(bar => {
    bar.setAttribute('aria-pressed', state.filters.some(each => each.kind === SHARED && each.bars.has(Number(bar.dataset.shared))));
  });
}

// Filters add up; one of a kind takes the place of the one before. The last can be undone.
function filter(kind, title, points, replaced = [kind], more = {}) {
  state.filters = state.filters.filter(each => !replaced.includes(each.kind));
  if (points) state.filters.push({kind, title, points, ...more});
  refilter();
}

function undo() {
  if (state.filters.pop().kind === TYPED) parts.words.value = '';
  refilter();
}

function clearFilters() {
  state.filters = [];
  parts.words.value = '';
  refilter();
}

const having = test => new Set([...visible.keys()].filter(test));

// While words are typed they are one filter; Enter keeps it, so that more words can follow.
function find(typed, kind) {
  const plain = each => each.toLowerCase().normalize('NFC'), asked = plain(typed).split(/\s+/).filter(Boolean);
  const points = having(index => asked.every(word => plain(text(index)).includes(word)));
  filter(kind, `“${typed.trim()}”`, asked.length ? points : null, [TYPED]);
}

// An entry is that of the first map: the others show where its texts are for their models.
function filterEntry(entry, title = painted.names[entry], of = painted.of(panes[0].map)) {
  const same = state.filters.some(each => each.kind === ENTRY && each.title === title);
  filter(ENTRY, title, same ? null : having(index => of[index] === entry));
}

function filterShared(bar, kept) {
  if (panes.length < 2) return;
  const before = state.filters.find(each => each.kind === SHARED), bars = new Set(before ? before.bars : []);
  if (!bars.delete(bar) || kept) bars.add(bar);
  const both = shared(panes[0].map, panes[1].map), title = `${[...bars].sort().join(', ')} of ${panes[0].map.near(0).length} shared`;
  filter(SHARED, title, bars.size ? having(index => bars.has(both[index])) : null, [SHARED], {bars});
}

function refilter() {
  visible = new Uint8Array(count()).map((_, index) => (state.filters.every(({points}) => points.has(index)) ? 1 : 0));
  const titles = state.filters.map(each => each.title), points = having(index => visible[index]);
  parts.count.textContent = titles.length ? `${points.size.toLocaleString('en')} of ${count().toLocaleString('en')}: ${titles.join(' + ')}` : '';
  parts.undo.disabled = parts.clear.disabled = !titles.length;
  drawKeys();
  drawAll();
  sendSelection(titles.length ? [...points] : []);
}
