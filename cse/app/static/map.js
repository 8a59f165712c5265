// Maps side by side: data, colours, drawing and the elements around them. What a visitor does there is in gestures.js,
// which shares this scope (cse/app/places/clusters.py). Texts are only set as textContent.
const HELP = 'Near points are texts that a model finds alike (t-SNE of its vectors). The maps are aligned as far as they '
  + 'go; how much the neighbours of a text differ is in Changes. Groups of two models with a third of their texts in common '
  + 'are one, with the name that the first model gives it; where colours are too few a further group has hollow marks. '
  + 'Click or tap a point to pin it, drag to move, wheel or pinch to zoom, shift and drag to draw a lasso. Keys: arrows go '
  + 'from point to point, Enter pins, Escape clears, + and - zoom, 0 shows all, u undoes a filter.';
const HOLLOW = 'hollow ', HOLE = 0.6;  // of a mark's width
const CORNERS = {  // of the shapes of cse/app/results/colourings.py but circles
  square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]], 'triangle-up': [[0, -1.25], [1.15, 0.85], [-1.15, 0.85]],
  diamond: [[0, -1.35], [1.35, 0], [0, 1.35], [-1.35, 0]],
};
const MAX_SCALE = 24, MARGIN = 0.04;  // around the points
const ALPHA = 0.9, FAINT = 0.1;  // of a point, and of one that a filter leaves out
const MANY = 400, CROWD = 3000;  // points, which are drawn smaller
const UPPER = 0.1;  // of the densest half of an entry's points lie above its name
const OFFSETS = [0, -1, 1, -2, 2];  // moves of a name, in its heights
const LONG = 160;  // characters, as in cse/app/html.py
const root = element.querySelector('.cse-maps');
const state = {
  count: 2,        // of maps side by side
  shown: [],       // the models of the maps, also of those that are not drawn yet
  picked: false,   // by a person or an address; else the server chooses them
  active: -1,      // the point under the pointer or reached by a key, on the map `over`
  pinned: -1,
  pointed: -1,     // the entry under the pointer in the legend
  by: '',          // the colouring
  filters: [],     // {kind, title, points}, the newest last
  lassoing: false, // the next drag is a lasso
  told: ' ',       // the filters that the address has
  named: '',       // the words that the address named last
};
let models = [], columns = [];
let panes = [], parts = {};  // the maps side by side: {map, canvas, frame, tip, names}
let painted = {names: [], of: () => []}, visible = new Uint8Array(0);  // 1 for the points that all filters have
let view = {scale: 1, x: 0, y: 0}, extent = [];  // what is seen, for all maps; and where the points are, across and down
let drawnTexts = null, lastRequest = '', newest = 0;

const text = index => props.value.texts[index], count = () => props.value.texts.length;
const modelName = name => models.find(each => each.name === name)?.title ?? name;
const bytes = base64 => Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
const words = base64 => new Uint16Array(bytes(base64).buffer);

function add(parent, tag, className = '', content = '', more = {}) {
  const made = Object.assign(document.createElement(tag), {className, textContent: content, ...more});
  parent.append(made);
  return made;
}

function addButton(parent, className, content, onclick, more) {
  return add(parent, 'button', className, content, {type: 'button', onclick, ...more});
}

// Add a text to a list; a long one shows three lines until a click or a key opens it.
function addText(parent, content) {
  if (content.length <= LONG) return add(parent, 'span', '', content);
  const made = add(parent, 'details', 'cse-long');
  add(add(made, 'summary'), 'span', '', content);
  return made;
}

function read(map) {
  const near = words(map.near), width = near.length / count();
  return {
    name: map.name, title: map.title, colour: map.colour, of: words(map.of),
    points: Float32Array.from(words(map.xy), step => step / 65535),
    near: index => [...near.subarray(index * width, (index + 1) * width)],
  };
}

// How many of a text's nearest texts both maps have, for each text.
function shared(one, other) {
  return Uint8Array.from({length: count()}, (_, index) => {
    const list = other.near(index);
    return one.near(index).filter(near => list.includes(near)).length;
  });
}

const colour = entry => painted[root.closest('.dark') ? 'dark' : 'light'][entry];

function mark(context, entry, x, y, wide) {
  const shape = painted.shapes[entry], corners = CORNERS[shape.replace(HOLLOW, '')];
  context.beginPath();
  for (const size of shape.startsWith(HOLLOW) ? [wide, HOLE * wide] : [wide]) {
    if (corners) corners.forEach(([right, down], at) => context[at ? 'lineTo' : 'moveTo'](x + right * size, y + down * size));
    else context.moveTo(x + size, y), context.arc(x, y, size, 0, 2 * Math.PI);
    context.closePath();
  }
  context.fill('evenodd');
}

function byDisagreement() {
  const [one, other] = panes.map(pane => pane.map), most = one.near(0).length, both = shared(one, other);
  return {...props.value.disagreement, of: () => both.map(same => most - same)};
}

// Colour the points by the chosen colouring, or else the first: each has a key, a label and a function. The title of a
// column begins with no blank.
function paint() {
  const all = [
    [' group', 'Group', () => ({...props.value.groups, of: map => map.of})],
    ...columns.map(column => [column.title, column.title, () => ({...column, of: () => column.of})]),
    ...(panes.length > 1 ? [['Disagreement', 'Disagreement', byDisagreement]] : []),
  ];
  const [key, , make] = all.find(([name]) => name === state.by) || all[0];
  parts.by.replaceChildren(...all.map(([name, label]) => new Option(label, name, false, name === key)));
  painted = make();
  const pair = key === 'Disagreement' ? ` of ${panes.slice(0, 2).map(({map}) => modelName(map.name)).join(' and ')}` : '';
  parts.fold.firstChild.textContent = `Legend${pair}`;
  if (parts.fold.dataset.by !== key) Object.assign(parts.fold, {open: key !== all[0][0]}).dataset.by = key;
  showLegend();
  panes.forEach(showNames);
  drawAll();
}

// The legend: a button for each entry of the maps shown, with its number of points in the first that has it, that
// filters by it. That of groups is folded: their names are on the maps and in the list beside them.
function showLegend() {
  const sizes = new Uint32Array(painted.names.length);
  panes.forEach(pane => {
    const own = new Uint32Array(sizes.length);
    painted.of(pane.map).forEach(entry => { own[entry] += 1; });
    sizes.forEach((size, entry) => { sizes[entry] = size || own[entry]; });
  });
  parts.legend.replaceChildren();
  parts.keys = painted.names.map((name, entry) => {
    const line = add(parts.legend, 'li', '', '', {hidden: !sizes[entry]});
    const item = addButton(line, '', '', () => filterEntry(entry));
    add(item, 'canvas', '', '', {width: 28, height: 28, ariaHidden: 'true'});
    add(item, 'span', '', name);
    add(item, 'small', '', String(sizes[entry]));
    const point = at => () => { state.pointed = at; drawAll(); };
    item.onpointerenter = item.onfocus = point(entry);
    item.onpointerleave = item.onblur = point(-1);
    return item;
  });
  drawKeys();
}

// Draw the marks of the legend, and show there and on the bars of changes what filters.
function drawKeys() {
  const filtered = (kind, test) => String(state.filters.some(filter => filter.kind === kind && test(filter)));
  parts.keys.forEach((item, entry) => {
    const context = item.firstChild.getContext('2d');
    context.clearRect(0, 0, 28, 28);
    context.fillStyle = colour(entry);
    mark(context, entry, 14, 14, 9);
    item.ariaPressed = filtered(ENTRY, ({title}) => title === painted.names[entry]);
  });
  document.querySelectorAll('#neighbours [data-shared]').forEach(bar => {
    bar.ariaPressed = filtered(SHARED, ({bars}) => bars.has(Number(bar.dataset.shared)));
  });
}

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

const spot = ({map}, index) => onScreen(map.points[2 * index], map.points[2 * index + 1]);

function look(scale, x, y) {
  if (!size()[0]) return;  // the tab is hidden
  scale = Math.min(Math.max(scale, 1), MAX_SCALE);
  const [left, top] = [x, y].map((start, axis) => {
    const seen = size()[axis] / side() / scale, {least, length} = extent[axis];
    return seen >= length ? least + (length - seen) / 2 : Math.min(Math.max(start, least), least + length - seen);
  });
  view = {scale, x: left, y: top};
  const action = scale > 1 || state.lassoing ? 'none' : 'pan-y';  // with which a finger scrolls the page
  panes.forEach(({canvas}) => { canvas.style.touchAction = action; });
  offer(parts.reset, scale > 1, parts.in);
  parts.out.disabled = scale === 1;
  drawAll();
}

// Zoom around (x, y) in pixels.
function zoom(factor, x = size()[0] / 2, y = size()[1] / 2) {
  const scale = Math.min(Math.max(view.scale * factor, 1), MAX_SCALE), closer = 1 / view.scale - 1 / scale;
  look(scale, view.x + x / side() * closer, view.y + y / side() * closer);
}

const pan = (x, y) => look(view.scale, view.x - x / side() / view.scale, view.y - y / side() / view.scale);
const whole = () => look(1, 0, 0);

// Pan so that a point reached by a key is visible.
function reveal(pane, index) {
  const edge = side() * 0.06, beyond = (at, end) => Math.min(at - edge, 0) + Math.max(at - end + edge, 0);
  const [x, y] = spot(pane, index).map((at, axis) => beyond(at, size()[axis]));
  if (view.scale > 1 && (x || y)) pan(-x, -y);
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

const drawAll = () => panes.forEach(drawPane);

function drawPane(pane) {
  const context = prepare(pane.canvas);
  if (!context) return;
  const of = painted.of(pane.map), colours = painted.names.map((_, entry) => colour(entry));
  const [width, height] = size(), pinned = state.pinned >= 0 && spot(pane, state.pinned);
  const wide = (count() > CROWD ? 1.8 : count() > MANY ? 2.7 : 4.2) * Math.min(view.scale, 3) ** 0.4;
  const line = path => { context.beginPath(); path.forEach(point => context.lineTo(...point)); context.stroke(); };
  const point = (index, [x, y], size) => {
    context.fillStyle = colours[of[index]];
    mark(context, of[index], x, y, size);
  };
  Object.assign(context, {strokeStyle: getComputedStyle(root).color, globalAlpha: 0.7});
  if (pinned) pane.map.near(state.pinned).forEach(other => line([pinned, spot(pane, other)]));
  for (const faint of [true, false]) {  // what is left out lies beneath
    context.globalAlpha = faint ? FAINT : ALPHA;
    for (let i = 0; i < count(); i++) {
      const at = spot(pane, i), [x, y] = at, out = !visible[i] || (state.pointed >= 0 && of[i] !== state.pointed);
      if (out === faint && x > -9 && y > -9 && x < width + 9 && y < height + 9) point(i, at, wide);
    }
  }
  context.globalAlpha = 1;
  for (const index of new Set([state.pinned, state.active])) {
    if (index < 0) continue;
    const at = spot(pane, index);
    point(index, at, wide * 1.5);
    context.lineWidth = index === state.pinned ? 3 : 1.5;
    context.beginPath();
    context.arc(...at, wide * 2.6, 0, 7);
    context.stroke();
  }
  context.lineWidth = 1;
  if (gesture?.kind === LASSO && gesture.pane === pane) {
    context.setLineDash([5, 4]);
    line(gesture.path);
    context.setLineDash([]);
  }
  placeNames(pane);
  placeTip(pane);
}

const quantile = (numbers, share) => numbers.sort((one, other) => one - other)[Math.floor(numbers.length * share)];

// The half of some points, [x, y] each, around which most of them lie.
function densestHalf(points) {
  const closest = (pool, size) => {
    const [x, y] = [0, 1].map(axis => quantile(near.map(point => point[axis]), 0.5));
    const away = point => (point[0] - x) ** 2 + (point[1] - y) ** 2;
    return [...pool].sort((one, other) => away(one) - away(other)).slice(0, Math.max(1, size));
  };
  let near = points;
  for (const part of [2, 4, 8]) near = closest(near, Math.floor(points.length / part));
  return closest(points, Math.ceil(points.length / 2));
}

// The names of the entries at the upper edges of where most of their points lie, where the colouring has names.
function showNames(pane) {
  pane.names.forEach(name => name.label.remove());
  const members = painted.names.map(() => []);
  painted.of(pane.map).forEach((entry, index) => members[entry].push(index));
  pane.names = (painted.named ? painted.short : []).flatMap((title, entry) => {
    if (!members[entry].length || entry === painted.missing) return [];
    const label = add(pane.frame, 'span', 'cse-name', title, {ariaHidden: 'true'});  // the legend names them
    const near = densestHalf(members[entry].map(index => [...pane.map.points.slice(2 * index, 2 * index + 2)]));
    const [across, down] = [0, 1].map(axis => near.map(point => point[axis]));
    return [{label, entry, at: [quantile(across, 0.5), quantile(down, UPPER)]}];
  });
}

// Names that would overlap are moved or hidden.
function placeNames(pane) {
  const [width, height] = size(), spots = [];
  pane.names.forEach(({label, entry, at}) => {
    const [x, y] = onScreen(...at), {offsetWidth: across, offsetHeight: down} = label;
    const left = Math.min(Math.max(x - across / 2, 0), Math.max(0, width - across));
    const tops = OFFSETS.map(step => Math.min(Math.max(y - down + step * down, 0), height - down));
    const top = tops.find(free => spots.every(other => (
      left >= other.left + other.across || other.left >= left + across
      || free >= other.top + down || other.top >= free + down)));
    const seen = x > 0 && y > 0 && x < width && y < height && top !== undefined && across < width;
    Object.assign(label.style, {visibility: seen ? '' : 'hidden', borderBottomColor: colour(entry)});
    if (!seen) return;
    spots.push({left, top, across});
    label.style.transform = `translate(${left}px, ${top}px)`;
  });
}

function placeTip(pane) {
  const {tip} = pane;
  tip.hidden = state.active < 0 || state.over !== pane;
  if (tip.hidden) return;
  const [x, y] = spot(pane, state.active), [width, height] = size();
  tip.style.left = `${Math.max(0, Math.min(x - tip.offsetWidth / 2, width - tip.offsetWidth))}px`;
  tip.style.top = y > height / 2 ? `${y - tip.offsetHeight - 16}px` : `${y + 16}px`;
}

function addTools(parent) {
  const bar = add(parent, 'div', 'cse-tools');
  const field = (name, tag, more) => add(add(bar, 'label', '', `${name} `), tag, '', '', more);
  parts.number = field('Maps', 'select', {className: 'cse-narrow', onchange: () => {
    state.count = Number(parts.number.value);
    state.picked = true;
    showPanes();
    tell();
  }});
  parts.number.append(...[1, 2, 4].map(number => new Option(number, number, false, number === state.count)));
  parts.by = field('Colour', 'select', {onchange: () => {
    state.by = parts.by.value;
    paint();
    tell();
  }});
  parts.words = field('Filter', 'input', {type: 'search', placeholder: 'words', oninput: () => find(parts.words.value)});
  parts.lasso = addButton(bar, 'cse-tool', 'Lasso', () => lasso(!state.lassoing), {ariaPressed: 'false'});
  parts.undo = addButton(bar, 'cse-tool', 'Undo', undo);
  parts.clear = addButton(bar, 'cse-tool', 'Clear', clearFilters);
  parts.reset = addButton(bar, 'cse-tool', 'Show all', whole);
  parts.out = addButton(bar, 'cse-tool', '−', () => zoom(1 / 1.5), {ariaLabel: 'Zoom out'});
  parts.in = addButton(bar, 'cse-tool', '+', () => zoom(1.5), {ariaLabel: 'Zoom in'});
}

// A tool without a use is not seen; whoever pressed it by key goes on from `next`.
function offer(tool, useful, next) {
  if (!useful && document.activeElement === tool) next.focus();
  tool.classList.toggle('cse-idle', !useful);
}

// The models of the maps: those chosen, and others in their order where there are more maps.
function showPanes() {
  const known = models.map(map => map.name), chosen = state.shown.filter(name => known.includes(name));
  const shown = [...new Set([...chosen, ...known])].slice(0, state.count);
  // Others stand in for those that are not drawn yet.
  const drawn = !props.value.drawing || chosen.length === state.shown.length;
  if (drawn) state.shown = [...shown, ...chosen.filter(name => !shown.includes(name))];
  parts.panes.replaceChildren();
  parts.panes.dataset.count = shown.length;
  panes = shown.map((name, number) => {
    const map = models.find(each => each.name === name), box = add(parts.panes, 'section', 'cse-pane');
    const head = add(box, 'h3', 'cse-map-name'), chip = add(head, 'i', 'cse-chip');
    if (map.colour) chip.style.setProperty('--cse-model', map.colour);
    else chip.dataset.model = name;  // its colour is in the styles of the line of models
    const choice = add(head, 'select', '', '', {ariaLabel: `Model of map ${number + 1}`});
    choice.onchange = () => choose(number, choice.value);
    choice.append(...known.map(other => new Option(modelName(other), other, false, other === name)));
    const frame = add(box, 'div', 'cse-frame');
    const canvas = add(frame, 'canvas', '', '', {
      tabIndex: 0, role: 'application', ariaLabel: `Map of ${count().toLocaleString('en')} texts by ${modelName(name)}`,
    });  // with that role screen readers pass the arrow keys on
    canvas.setAttribute('aria-describedby', 'cse-map-help');
    const tip = add(frame, 'div', 'cse-tip', '', {hidden: true, role: 'status'});
    const pane = {map, canvas, frame, tip, names: []};
    listen(pane);
    return pane;
  });
  state.filters = state.filters.filter(each => each.kind !== SHARED && each.kind !== ENTRY);  // those of other maps
  paint();
  look(view.scale, view.x, view.y);
  refilter();
}

// A model that another map shows changes places with the one before.
function choose(number, name) {
  const other = state.shown.indexOf(name);
  if (other >= 0) state.shown[other] = state.shown[number];
  state.shown[number] = name;
  state.picked = true;
  showPanes();
  parts.panes.querySelectorAll('select')[number].focus();
  tell();
}

function build() {
  Object.assign(state, {active: -1, pinned: -1, pointed: -1, filters: [], lassoing: false});
  [parts, gesture, panes] = [{keys: []}, null, []];
  view = {scale: 1, x: 0, y: 0};
  visible = new Uint8Array(count()).fill(1);
  root.replaceChildren();
  add(root, 'h2', 'cse-hidden', 'Maps');
  addTools(root);
  parts.panes = add(root, 'div', 'cse-panes');
  const below = add(root, 'div', 'cse-folds'), fold = title => {
    const made = add(below, 'details', 'cse-fold');
    add(made, 'summary', '', title);
    return made;
  };
  parts.fold = fold('Legend');
  parts.legend = add(parts.fold, 'ul', 'cse-legend', '', {ariaLabel: 'Legend'});
  parts.count = add(below, 'span', 'cse-score', '', {role: 'status'});  // above the maps it would move them
  add(fold('How to read and move the maps'), 'p', 'cse-note', HELP, {id: 'cse-map-help'});
}

// Maps of another corpus than the chosen one are dim until its own come.
cse.dim = () => {
  const other = Boolean(props.value?.maps && cse.corpus && props.value.corpus !== cse.corpus);
  document.getElementById('clusters')?.toggleAttribute('data-waits', other);
};

function update() {
  const value = props.value || {}, texts = JSON.stringify(value.texts);
  if ((value.request || 0) < newest) return;  // of an older request; answers may overtake each other
  newest = value.request || 0;
  cse.dim();
  if (!value.maps) {
    [drawnTexts, parts, panes] = [null, {}, []];
    root.replaceChildren();
    if (value.hint) add(root, 'p', 'cse-hint', value.hint);
    return showPinned();
  }
  const others = texts !== drawnTexts, asked = [value.request, value.pin, value.shown, value.colour, value.words, value.only];
  const request = asked.join(' ');
  columns = value.columns.map(column => ({...column, of: bytes(column.of)}));
  models = value.maps.map(read);
  measureExtent();
  const moved = others && drawnTexts !== null;
  const written = parts.words?.value ?? value.words, writing = parts.words && document.activeElement === parts.words;
  if (others) {
    build();
    state.picked = false;
  }
  // One request has an answer for each map.
  const restored = others || request !== lastRequest, title = restored ? value.only : only();
  if (restored) {
    [state.pinned, state.by, state.told] = [value.pin, value.colour || state.by, `${value.words} ${value.only}`];
    // Words that were typed while maps were drawn stay, unless the address names others or there are other texts.
    parts.words.value = (value.words === state.named && !moved) || writing ? written : value.words;
    state.named = value.words;
    find(parts.words.value);
    if (writing) parts.words.focus();
  }
  if (!state.picked) {
    [state.shown, state.picked] = [[...value.shown], value.picked];
    if (value.picked && value.shown.length !== 2) parts.number.value = state.count = value.shown.length > 1 ? 4 : 1;
  }
  [drawnTexts, lastRequest] = [texts, request];
  showPanes();
  if (title) filterTitle(title);
  showPinned();
}
