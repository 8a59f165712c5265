// One canvas per model; hovering, focusing and the legend act on all of them. Texts are only ever set as textContent.
// After Paul Tol's "vibrant"; each is made darker or lighter until it has a contrast of 3 with its background (WCAG 2).
const COLOURS = {
  light: ['#00539b', '#c65d17', '#007a69', '#d6206a', '#1f86b8', '#8c1d0d'],
  dark: ['#1f88cc', '#ee7733', '#009988', '#ee4488', '#33bbee', '#dd4422'],
};
const ALPHA = 0.9;  // of a point
const SHAPES = ['circle', 'square', 'triangle', 'diamond'];
const REACH = 18;  // pixels around a point that count as being on it
const root = element.querySelector('.cse-maps');
let panels = [], keys = [], colours = COLOURS.light, active = -1, group = -1;

const colour = label => colours[label % colours.length];
// Two labels of one colour never share a shape.
const shape = label => SHAPES[(Math.floor(label / colours.length) * 2 + label % 2) % SHAPES.length];

function add(parent, tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  parent.appendChild(made);
  return made;
}

function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
  return new Uint16Array(bytes.buffer);
}

function mark(context, kind, x, y, size) {
  context.beginPath();
  if (kind === 'circle') context.arc(x, y, size, 0, 7);
  else if (kind === 'square') context.rect(x - size * 0.9, y - size * 0.9, size * 1.8, size * 1.8);
  else if (kind === 'triangle') {
    context.moveTo(x, y - size * 1.25);
    context.lineTo(x + size * 1.15, y + size * 0.85);
    context.lineTo(x - size * 1.15, y + size * 0.85);
  } else {
    context.moveTo(x, y - size * 1.35);
    context.lineTo(x + size * 1.35, y);
    context.lineTo(x, y + size * 1.35);
    context.lineTo(x - size * 1.35, y);
  }
  context.closePath();
  context.fill();
}

function place(panel, index) {
  const width = panel.canvas.clientWidth;
  return [panel.points[2 * index] / 65535 * width, panel.points[2 * index + 1] / 65535 * width];
}

function draw(panel) {
  const {canvas} = panel, value = props.value, width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
  if (!width) return;  // in a tab that is not shown
  if (canvas.width !== Math.round(width * ratio)) canvas.width = canvas.height = Math.round(width * ratio);
  const context = canvas.getContext('2d'), count = value.texts.length, size = count > 400 ? 3.2 : 4.6;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, width);
  const dimmed = label => group >= 0 && label !== group;
  for (let i = 0; value.joined && i < count; i += 2) {
    context.globalAlpha = dimmed(value.labels[i]) ? 0.1 : ALPHA;
    context.strokeStyle = colour(value.labels[i]);
    context.beginPath();
    context.moveTo(...place(panel, i));
    context.lineTo(...place(panel, i + 1));
    context.stroke();
  }
  for (let i = 0; i < count; i++) {
    context.globalAlpha = dimmed(value.labels[i]) ? 0.12 : ALPHA;
    context.fillStyle = colour(value.labels[i]);
    mark(context, shape(value.labels[i]), ...place(panel, i), size);
  }
  if (active >= 0) ring(panel, context, size);
}

function ring(panel, context, size) {
  const [x, y] = place(panel, active), label = props.value.labels[active];
  context.globalAlpha = 1;
  context.fillStyle = colour(label);
  mark(context, shape(label), x, y, size * 1.5);
  context.strokeStyle = getComputedStyle(root).color;
  context.lineWidth = 2;
  context.beginPath();
  context.arc(x, y, size * 2.6, 0, 7);
  context.stroke();
  context.lineWidth = 1;
}

function drawKey({canvas, label}) {
  const context = canvas.getContext('2d');
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = colour(label);
  mark(context, shape(label), 14, 14, 9);
}

function redraw() {
  const [red, green, blue] = getComputedStyle(root).color.match(/[\d.]+/g);  // of the text: bright in a dark scheme
  colours = 0.21 * red + 0.72 * green + 0.07 * blue > 128 ? COLOURS.dark : COLOURS.light;
  panels.forEach(draw);
  keys.forEach(drawKey);
}

function nearest(panel, event) {
  const box = panel.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  let best = -1, least = REACH * REACH;
  for (let i = 0; i < props.value.texts.length; i++) {
    const [left, top] = place(panel, i), away = (left - x) ** 2 + (top - y) ** 2;
    if (away < least) { least = away; best = i; }
  }
  return best;
}

function select(panel, index) {
  if (index !== active || panel.tip.hidden === (index >= 0)) {
    active = index;
    panels.forEach(other => { other.tip.hidden = other !== panel || index < 0; });
    if (index >= 0) tell(panel);
    redraw();
  }
}

function tell(panel) {
  const [x, y] = place(panel, active), {tip, canvas} = panel, value = props.value;
  tip.replaceChildren();
  add(tip, 'b', '', value.names[value.labels[active]]);
  add(tip, 'span', '', value.texts[active]);
  tip.style.left = `${Math.max(0, Math.min(x - tip.offsetWidth / 2, canvas.clientWidth - tip.offsetWidth))}px`;
  tip.style.top = y > canvas.clientWidth / 2 ? `${y - tip.offsetHeight - 16}px` : `${y + 16}px`;
}

function key(panel, event) {
  const count = props.value.texts.length, step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
  if (event.key === 'Escape') select(panel, -1);
  if (!step || !count) return;
  event.preventDefault();
  select(panel, active < 0 ? (step > 0 ? 0 : count - 1) : (active + step + count) % count);
}

function addPanel(columns, map) {
  const card = add(columns, 'section', 'cse-card');
  add(card, 'h3', '', map.name);
  if (map.error !== undefined) {
    const reason = add(card, 'p', 'cse-failure');
    add(reason, 'b', '', 'Not available. ');
    reason.append(map.error);
    return;
  }
  const frame = add(card, 'div', 'cse-frame'), canvas = add(frame, 'canvas'), tip = add(frame, 'div', 'cse-tip');
  const panel = {canvas, tip, points: unpack(map.xy)};
  canvas.tabIndex = 0;
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', `Map of ${props.value.texts.length} sentences by ${map.name}; arrow keys go through them`);
  tip.hidden = true;
  tip.setAttribute('role', 'status');
  add(card, 'p', 'cse-note', `Trustworthiness ${map.trustworthiness.toFixed(2)}`).title =
    'How many of the 5 nearest points of the map are near among the vectors too; 1 is all of them';
  canvas.addEventListener('pointermove', event => select(panel, nearest(panel, event)));
  canvas.addEventListener('pointerdown', event => select(panel, nearest(panel, event)));
  canvas.addEventListener('pointerleave', () => select(panel, -1));
  canvas.addEventListener('blur', () => select(panel, -1));
  canvas.addEventListener('keydown', event => key(panel, event));
  panels.push(panel);
}

function addLegend(names) {
  const legend = add(root, 'div', 'cse-legend');
  names.forEach((name, label) => {
    const item = add(legend, 'button', ''), canvas = add(item, 'canvas');
    item.type = 'button';
    canvas.width = canvas.height = 28;
    canvas.setAttribute('aria-hidden', 'true');
    keys.push({canvas, label});
    add(item, 'span', '', name);
    const show = chosen => () => { group = chosen; redraw(); };
    ['pointerenter', 'focus'].forEach(kind => item.addEventListener(kind, show(label)));
    ['pointerleave', 'blur'].forEach(kind => item.addEventListener(kind, show(-1)));
  });
}

function build() {
  panels = [];
  keys = [];
  active = group = -1;
  root.replaceChildren();
  if (!props.value || !props.value.maps) return;
  addLegend(props.value.names);
  const columns = add(root, 'div', 'cse-columns');
  props.value.maps.forEach(map => addPanel(columns, map));
  redraw();
}

new ResizeObserver(redraw).observe(root);
new MutationObserver(redraw).observe(document.body, {attributes: true, attributeFilter: ['class']});  // light or dark
watch('value', build);
build();
