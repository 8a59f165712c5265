// Build the maps: tools, one, two or four maps of one size, and the legend.
const HELP = 'Near points are texts that a model finds alike (t-SNE of its vectors). The maps are aligned: a text that lies '
  + 'elsewhere on another map is one on which models disagree. Click or tap a point to pin it, drag to move, wheel or pinch to '
  + 'zoom, shift and drag to draw a lasso. Keys: arrows go from point to point, Enter pins, Escape clears, + and - zoom, '
  + '0 shows all, u undoes a filter.';
let drawnTexts = null, lastRequest = '', newest = 0;

function lasso(on) {
  state.lassoing = on;
  parts.lasso.setAttribute('aria-pressed', on);
  look(view.scale, view.x, view.y);
}

function field(parent, name, tag) {
  return add(add(parent, 'label', '', `${name} `), tag);
}

function addTools(parent) {
  const bar = add(parent, 'div', 'cse-tools');
  parts.number = field(bar, 'Maps', 'select');
  parts.number.className = 'cse-narrow';
  parts.number.append(...[1, 2, 4].map(number => new Option(number, number, false, number === state.count)));
  parts.number.addEventListener('change', () => { state.count = Number(parts.number.value); showPanes(); tell(); });
  parts.by = field(bar, 'Colour', 'select');
  parts.by.addEventListener('change', () => {
    state.by = parts.by.value;
    filter(ENTRY, '', null);
    paint();
    tell();
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

// The models of the maps: those chosen, and others in their order where there are more maps.
function showPanes() {
  const known = models.map(map => map.name), chosen = state.shown.filter(name => known.includes(name));
  const shown = [...new Set([...chosen, ...known])].slice(0, Math.min(state.count, known.length));
  state.shown = [...shown, ...state.shown.filter(name => !shown.includes(name))];
  const before = panes;
  parts.panes.replaceChildren();
  parts.panes.dataset.count = shown.length;
  panes = shown.map((name, number) => {
    const box = add(parts.panes, 'section', 'cse-pane'), head = add(box, 'h3', 'cse-map-name');
    const frame = add(box, 'div', 'cse-frame'), canvas = add(frame, 'canvas'), tip = add(frame, 'div', 'cse-tip');
    const map = models.find(each => each.name === name);
    const pane = {map, canvas, frame, tip, names: [], points: before[number]?.points || map.points};
    addModel(head, name);
    head.lastChild.remove();  // its name is that of the choice
    const choice = add(head, 'select');
    choice.setAttribute('aria-label', `Model of map ${number + 1}`);
    choice.append(...known.map(each => new Option(modelName(each), each, false, each === name)));
    choice.addEventListener('change', () => choose(number, choice.value));
    canvas.tabIndex = 0;
    canvas.setAttribute('role', 'application');  // screen readers pass the arrow keys on
    canvas.setAttribute('aria-label', `Map of ${count().toLocaleString('en')} texts by ${modelName(name)}`);
    canvas.setAttribute('aria-describedby', 'cse-map-help');
    tip.hidden = true;
    tip.setAttribute('role', 'status');
    listen(pane);
    return pane;
  });
  state.filters = state.filters.filter(each => each.kind !== SHARED && each.kind !== ENTRY);  // those of other maps
  paint();
  look(view.scale, view.x, view.y);
  refilter();
  panes.forEach(glide);
}

// A model that another map shows changes places with the one before.
function choose(number, name) {
  const other = state.shown.indexOf(name);
  if (other >= 0) state.shown[other] = state.shown[number];
  state.shown[number] = name;
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
  parts.legend = add(root, 'ul', 'cse-legend');
  parts.legend.setAttribute('aria-label', 'Legend');
  add(root, 'p', 'cse-note', HELP).id = 'cse-map-help';
}

function clear(hint) {
  [drawnTexts, parts, panes] = [null, {}, []];
  root.replaceChildren();
  if (hint) add(root, 'p', 'cse-hint', hint);
  showPinned();
}

function update() {
  const value = props.value || {}, texts = JSON.stringify(value.texts);
  if ((value.request || 0) < newest) return;  // of an older request; answers may overtake each other
  newest = value.request || 0;
  if (!value.maps) return clear(value.hint);
  const others = texts !== drawnTexts, request = `${value.request} ${value.pin} ${value.shown} ${value.colour}`;
  lengths = words(value.lengths);
  columns = value.columns.map(column => ({...column, of: bytes(column.of)}));
  models = value.maps.map(read);
  measureExtent();
  if (others) build();
  if (others || request !== lastRequest) {  // one request has an answer for each map
    [state.pinned, state.by] = [value.pin, value.colour || state.by];
    if (others || !state.shown.length) {
      state.shown = [...value.shown];
      if (value.shown.length > 2) parts.number.value = state.count = 4;
    }
  }
  [drawnTexts, lastRequest] = [texts, request];
  showPanes();
  showPinned();
}

new ResizeObserver(() => {
  if (panes.length) look(view.scale, view.x, view.y);
}).observe(root);
new MutationObserver(() => {
  if (panes.length) paint();
}).observe(document.body, {attributes: true, attributeFilter: ['class']});  // on a change of the colour scheme
watch('value', update);
update();
