// Build the map component: one large map, the others as buttons.
const HELP = 'Near points are texts that the chosen model finds alike (t-SNE of its vectors). Maps are aligned: points that '
  + 'jump when you choose another model are where models disagree. Click or tap a point to pin it, drag to move, wheel or '
  + 'pinch to zoom, shift and drag to draw a lasso. Keys: arrows go from point to point, Enter pins, Escape clears, '
  + '+ and - zoom, 0 shows all, u undoes a filter.';
let drawnTexts = null, lastRequest = '', newest = 0;

function select(index) {
  if (index === state.active) return;
  state.active = index;
  parts.tip.replaceChildren();
  if (index >= 0) {
    add(parts.tip, 'b', '', painted.names[painted.of[index]]);
    add(parts.tip, 'span', '', text(index));
  }
  drawLarge();
}

// A pin goes into the address by the text's id (`rows` in cse/app/sections/clusters.py).
function pin(index) {
  if (index === state.pinned) return;
  state.pinned = index;
  trigger('select', {row: index < 0 ? null : props.value.rows[index]});
  showDetails();
  redraw();
}

function lasso(on) {
  state.lassoing = on;
  parts.lasso.setAttribute('aria-pressed', on);
  look(view.scale, view.x, view.y);
}

function choose(name) {
  const other = state.chosen !== name;
  state.chosen = name;
  maps.forEach(map => map.button && map.button.setAttribute('aria-pressed', map.name === name));
  parts.canvas.setAttribute('aria-label', `Map of ${props.value.note} by ${modelName(name)}`);
  parts.title.replaceChildren();
  addModel(parts.title, name);
  parts.title.append(`: ${props.value.note}`);
  paint();
  glideTo(current().points);
  if (other && state.filters.length) askSelection();
}

function field(parent, name, tag) {
  const label = add(parent, 'label', '', `${name} `);
  return add(label, tag);
}

function addTools(parent) {
  const bar = add(parent, 'div', 'cse-tools');
  parts.title = add(bar, 'h2', 'cse-map-name');
  parts.by = field(bar, 'Colour', 'select');
  parts.by.addEventListener('change', () => {
    state.by = parts.by.value;
    filter(ENTRY, '', null, [ENTRY]);
    paint();
  });
  parts.words = field(bar, 'Filter', 'input');
  Object.assign(parts.words, {type: 'search', placeholder: 'words'});
  parts.words.addEventListener('input', () => find(parts.words.value, TYPED));
  parts.words.addEventListener('keydown', event => {
    if (event.key !== 'Enter' || !parts.words.value.trim()) return;
    find(parts.words.value, WORDS);
    parts.words.value = '';
  });
  parts.lasso = addButton(bar, 'cse-tool', 'Lasso', () => lasso(!state.lassoing));
  parts.lasso.setAttribute('aria-pressed', false);
  parts.undo = addButton(bar, 'cse-tool', 'Undo', undo);
  parts.clear = addButton(bar, 'cse-tool', 'Clear', clearFilters);
  parts.out = addButton(bar, 'cse-tool', '−', () => zoom(1 / 1.5));
  parts.out.setAttribute('aria-label', 'Zoom out');
  addButton(bar, 'cse-tool', '+', () => zoom(1.5)).setAttribute('aria-label', 'Zoom in');
  parts.reset = addButton(bar, 'cse-tool', 'Show all', whole);
  parts.count = add(bar, 'span', 'cse-score');
  parts.count.setAttribute('role', 'status');
}

function addMap(parent) {
  const frame = parts.frame = add(parent, 'div', 'cse-frame'), canvas = parts.canvas = add(frame, 'canvas');
  canvas.tabIndex = 0;
  canvas.setAttribute('role', 'application');  // screen readers pass the arrow keys on
  parts.names = [];
  parts.tip = add(frame, 'div', 'cse-tip');
  parts.tip.hidden = true;
  parts.tip.setAttribute('role', 'status');
  listen(canvas);
}

function showChoices() {
  parts.by.replaceChildren(...colourings().map(([key, label]) => new Option(label, key, false, key === state.by)));
  parts.small.replaceChildren();
  maps.filter(map => map.points).forEach(map => {
    map.button = addButton(parts.small, 'cse-small', '', () => choose(state.wanted = map.name));
    map.canvas = add(map.button, 'canvas');
    map.canvas.setAttribute('aria-hidden', 'true');
    addModel(add(map.button, 'span'), map.name);
  });
  maps.filter(map => map.error !== undefined).forEach(map => {
    const reason = add(parts.small, 'p', 'cse-failure');
    add(reason, 'b', '', `${modelName(map.name)}. `);
    reason.append(map.error);
  });
}

function build() {
  Object.assign(state, {chosen: '', active: -1, pinned: -1, pointed: -1, filters: [], lassoing: false});  // nothing is drawn yet
  [parts, gesture, shown] = [{keys: []}, null, new Float32Array(0)];
  visible = new Uint8Array(count()).fill(1);
  root.replaceChildren();
  addTools(root);
  const columns = add(root, 'div', 'cse-map-columns');
  addMap(add(columns, 'div', 'cse-large'));
  const beside = add(columns, 'div', 'cse-map-beside');
  ['small', 'details', 'legend'].forEach(part => { parts[part] = add(beside, 'div', `cse-${part}-part`); });
  const note = add(root, 'p', 'cse-note', HELP);
  note.id = 'cse-map-help';
  parts.canvas.setAttribute('aria-describedby', note.id);
  parts.scores = add(root, 'div', 'cse-scores-part');
  parts.undo.disabled = parts.clear.disabled = true;
  whole();
}

function clear(hint) {
  drawnTexts = null;
  parts = {};
  root.replaceChildren();
  add(root, 'h2', 'cse-map-name', 'Maps');
  if (hint) add(root, 'p', 'cse-hint', hint);
}

function update() {
  const value = props.value || {}, texts = JSON.stringify(value.texts);
  if ((value.request || 0) < newest) return;  // of an older request; answers may overtake each other
  newest = value.request || 0;
  if (!value.maps) return clear(value.hint);
  const others = texts !== drawnTexts;
  [labels, lengths] = [bytes(value.labels), words(value.lengths)];
  maps = value.maps.map(read);
  measureExtent();
  if (others) build();
  else look(view.scale, view.x, view.y);
  drawnTexts = texts;
  const request = `${value.request} ${value.pin}`;  // the first request has the number of the opening value
  if (others || request !== lastRequest) state.pinned = value.pin;
  lastRequest = request;
  const drawn = maps.filter(map => map.points).map(map => map.name);
  state.chosen = [state.wanted, state.chosen].find(name => drawn.includes(name)) || drawn[0] || '';
  showChoices();
  showScores();
  showDetails();
  if (drawn.length) choose(state.chosen);
}

new ResizeObserver(() => {
  if (!parts.canvas || !current()) return;
  look(view.scale, view.x, view.y);
  redraw();
}).observe(root);
new MutationObserver(redraw).observe(document.body, {attributes: true, attributeFilter: ['class']});  // on a change of the colour scheme
watch('value', update);
update();
