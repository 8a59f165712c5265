// Build the map component: one large map, the others as buttons.
const HELP = 'Click or tap a point to pin it, drag to move, wheel or pinch to zoom, shift and drag to circle points. '
  + 'Keys: arrows go from point to point, Enter pins, Escape unpins, + and - zoom, 0 shows all.';
let drawnTexts = null, lastRequest = '';

function select(index) {
  if (index === state.active) return;
  state.active = index;
  parts.tip.replaceChildren();
  if (index >= 0) {
    add(parts.tip, 'b', '', props.value.numbered ? `${index + 1}` : topic(index));
    add(parts.tip, 'span', '', text(index));
  }
  redraw();
}

// A pin goes into the address by the sentence's id (`rows` in cse/app/sections/clusters.py).
function pin(index) {
  if (index === state.pinned) return;
  state.pinned = index;
  trigger('select', {row: index < 0 ? null : props.value.rows[index]});
  showDetails();
  redraw();
}

function circle(found) {
  state.circled = found;
  showCount();
  showDetails();
  redraw();
}

function lasso(on) {
  state.lassoing = on;
  parts.lasso.setAttribute('aria-pressed', on);
  look(view.scale, view.x, view.y);
}

function find(words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const has = sentence => wanted.every(word => sentence.toLowerCase().includes(word));
  const found = props.value.texts.flatMap((each, index) => (has(each) ? [index] : []));
  state.found = wanted.length ? new Set(found) : null;
  showCount();
  redraw();
}

// Show the number of sentences with the words, within the chosen topic and lasso.
function showCount() {
  const filters = [...(state.held < 0 ? [] : [props.value.names[state.held]]), ...(state.circled ? ['lasso'] : [])];
  const count = [...state.found || []].filter(index => kept(index)).length;
  const within = filters.length ? ` (${filters.join(', ')})` : '';
  parts.count.textContent = state.found ? `${count} found${within}` : '';
}

function choose(name) {
  state.chosen = name;
  maps.forEach(map => map.button && map.button.setAttribute('aria-pressed', map.name === name));
  parts.canvas.setAttribute('aria-label', `Map of ${props.value.texts.length} sentences by ${name}`);
  parts.title.textContent = name;
  glideTo(current().points);
  redraw();
}

function addTools(parent) {
  const bar = add(parent, 'div', 'cse-tools'), label = add(bar, 'label', '', 'Find ');
  const words = add(label, 'input');
  words.type = 'search';
  words.addEventListener('input', () => find(words.value));
  parts.count = add(label, 'span', 'cse-score');
  parts.count.setAttribute('role', 'status');
  parts.lasso = addButton(bar, 'cse-tool', 'Lasso', () => lasso(!state.lassoing));
  parts.lossy = addButton(bar, 'cse-tool', 'Lost neighbours', () => {
    state.lossy = !state.lossy;
    parts.lossy.setAttribute('aria-pressed', state.lossy);
    parts.note.textContent = state.lossy
      ? 'Red and large: the map does not show most of this point’s ten nearest sentences around it.' : HELP;
    redraw();
  });
  [parts.lasso, parts.lossy].forEach(button => button.setAttribute('aria-pressed', false));
  parts.out = addButton(bar, 'cse-tool', '−', () => zoom(1 / 1.5));
  parts.out.setAttribute('aria-label', 'Zoom out');
  addButton(bar, 'cse-tool', '+', () => zoom(1.5)).setAttribute('aria-label', 'Zoom in');
  parts.reset = addButton(bar, 'cse-tool', 'Show all', whole);
}

function addLegend(parent) {
  if (props.value.numbered) return;
  const legend = add(parent, 'div', 'cse-legend');
  props.value.names.forEach((name, label) => {
    const item = addButton(legend, '', '', () => {
      state.held = state.held === label ? -1 : label;
      showCount();
      [...legend.children].forEach((each, place) => each.setAttribute('aria-pressed', place === state.held));
      redraw();
    });
    item.setAttribute('aria-pressed', false);
    const canvas = add(item, 'canvas');
    canvas.width = canvas.height = 28;
    canvas.setAttribute('aria-hidden', 'true');
    keys.push({canvas, label});
    add(item, 'span', '', name);
    const point = at => () => { state.group = at; redraw(); };
    ['pointerenter', 'focus'].forEach(kind => item.addEventListener(kind, point(label)));
    ['pointerleave', 'blur'].forEach(kind => item.addEventListener(kind, point(-1)));
  });
}

function addMap(parent) {
  parts.title = add(parent, 'h3', 'cse-map-name');
  const frame = add(parent, 'div', 'cse-frame'), canvas = parts.canvas = add(frame, 'canvas');
  canvas.tabIndex = 0;
  canvas.setAttribute('role', 'application');  // screen readers pass the arrow keys on
  const named = !props.value.joined && !props.value.numbered ? props.value.names : [];
  parts.names = named.map(name => add(frame, 'span', 'cse-name', name));
  parts.names.forEach(name => name.setAttribute('aria-hidden', 'true'));  // the legend names them
  parts.tip = add(frame, 'div', 'cse-tip');
  parts.tip.hidden = true;
  parts.tip.setAttribute('role', 'status');
  parts.note = add(parent, 'p', 'cse-note', HELP);
  parts.note.id = 'cse-map-help';
  canvas.setAttribute('aria-describedby', parts.note.id);
  listen(canvas);
}

function showSmall() {
  parts.small.replaceChildren();
  maps.filter(map => map.points).forEach(map => {
    map.button = addButton(parts.small, 'cse-small', '', () => choose(map.name));
    map.canvas = add(map.button, 'canvas');
    map.canvas.setAttribute('aria-hidden', 'true');
    add(map.button, 'span', '', map.name);
  });
  maps.filter(map => map.error !== undefined).forEach(map => {
    const reason = add(parts.small, 'p', 'cse-failure');
    add(reason, 'b', '', `${map.name}. `);
    reason.append(map.error);
  });
}

function build() {
  Object.assign(state, {active: -1, pinned: -1, group: -1, held: -1, found: null, circled: null, lassoing: false, lossy: false});
  [maps, keys, parts, gesture, shown] = [[], [], {}, null, new Float32Array(0)];
  root.replaceChildren();
  addTools(root);
  addLegend(root);
  const columns = add(root, 'div', 'cse-map-columns');
  addMap(add(columns, 'div', 'cse-large'));
  const beside = add(columns, 'div', 'cse-map-beside');
  ['small', 'scores', 'details'].forEach(part => { parts[part] = add(beside, 'div', `cse-${part}-part`); });
  whole();
}

function update() {
  const value = props.value || {}, texts = JSON.stringify(value.texts);
  if (!value.maps) {
    drawnTexts = null;
    parts = {};
    root.replaceChildren();
    if (value.hint) add(root, 'p', 'cse-hint', value.hint);
    return;
  }
  const others = texts !== drawnTexts;
  if (others) build();
  drawnTexts = texts;
  maps = value.maps.map(read);
  const request = `${value.request} ${value.pin}`;  // the first request has the number of the opening value
  if (others || request !== lastRequest) state.pinned = value.pin;
  lastRequest = request;
  showSmall();
  showScores();
  showDetails();
  const first = maps.find(map => map.points);
  if (current() && current().points) choose(state.chosen);
  else if (first) choose(first.name);
}

new ResizeObserver(redraw).observe(root);
new MutationObserver(redraw).observe(document.body, {attributes: true, attributeFilter: ['class']});  // on a change of the colour scheme
watch('value', update);
update();
