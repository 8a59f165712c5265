// A heat map of all pairs of a list, for one model or the difference of two. A cell shows its pair in every model.
const root = element.querySelector('.cse-pairs');
const UNITS = {cosine: 'cosines', percentile: 'percentiles'};
let active = [0, 1], cells = [], readout;

const found = name => props.value.models.find(model => model.name === name) || {};
const percent = () => props.value.measure === 'percentile';

function shown() {  // the matrix, and for differences the largest absolute value
  const {model, minus, measure} = props.value, whole = found(model)[UNITS[measure]];
  if (!minus || !whole) return {matrix: whole};
  const other = found(minus)[UNITS[measure]];
  const matrix = other && whole.map((row, i) => row.map((value, j) => value - other[i][j]));
  const step = percent() ? 5 : 0.05, most = matrix ? Math.max(...matrix.flat().map(Math.abs)) : 0;
  return {matrix, span: Math.max(step, Math.ceil(most / step - 1e-9) * step)};
}

function written(value, signed) {
  const digits = percent() ? 0 : 2, size = Math.abs(value).toFixed(digits);
  if (Number(size) === 0) return '0';
  const sign = value < 0 ? '−' : signed ? '+' : '';
  return sign + size.replace(/^0/, '').replace(/^1\.00$/, '1');
}

function style(value, span) {  // the colour of -1 to 1 on a ramp
  const ramp = span ? props.ramps.differences : props.ramps.values;
  const place = span ? value / span : percent() ? value / 100 : value;
  return ramp[Math.round((Math.min(Math.max(place, -1), 1) + 1) / 2 * (ramp.length - 1))];
}

function sentence(parent, place) {
  const line = add(parent, 'div', 'cse-read');
  add(line, 'b', '', `${place + 1}`);
  line.append(' ');
  addText(line, props.value.sentences[place]);
}

function share(percentile) {  // to the precision of a sample of random pairs
  return percentile >= 99.95 ? '> 99.9 %' : percentile < 0.05 ? '< 0.1 %' : `${percentile.toFixed(1)} %`;
}

function describe() {
  const [i, j] = active;
  readout.replaceChildren();
  sentence(readout, i);
  sentence(readout, j);
  const list = add(readout, 'dl');
  props.value.models.filter(model => !model.error).forEach(model => {
    const item = add(list, 'div');
    addModel(add(item, 'dt'), model.name);
    const value = add(item, 'dd', '', model.cosines[i][j].toFixed(3).replace('-', '−'));
    add(value, 'small', '', ` ${share(model.percentiles[i][j])}`);
  });
}

function select(i, j, focus) {
  const [before, now] = [cells[active[0]][active[1]], cells[i][j]];
  before.tabIndex = -1;
  before.classList.remove('cse-active');
  active = [i, j];
  now.tabIndex = 0;
  now.classList.add('cse-active');
  if (focus) now.focus();
  describe();
}

function key(event) {
  const last = cells.length - 1, [i, j] = active;
  const places = {
    ArrowRight: [i, j + 1], ArrowLeft: [i, j - 1], ArrowDown: [i + 1, j], ArrowUp: [i - 1, j], Home: [i, 0], End: [i, last],
  };
  const place = places[event.key];
  if (!place) return;
  event.preventDefault();
  select(...place.map(number => Math.min(Math.max(number, 0), last)), true);
}

function over(event) {
  const cell = event.target.closest('td');
  if (cell) select(cell.parentElement.rowIndex - 1, cell.cellIndex - 1, event.type === 'pointerdown');
}

function head(table, name) {
  add(table, 'caption', 'cse-hidden', name);
  const row = add(add(table, 'thead'), 'tr');
  add(add(row, 'th'), 'span', 'cse-hidden', 'sentence');
  props.value.sentences.forEach((_, place) => add(row, 'th', '', `${place + 1}`));
  [...row.cells].forEach(cell => { cell.scope = 'col'; });
}

function table(parent, name, {matrix, span}) {
  const made = add(add(parent, 'div', 'cse-grid'), 'table', 'cse-heat');
  made.setAttribute('role', 'grid');
  head(made, name);
  const body = add(made, 'tbody');
  cells = matrix.map((values, place) => {
    const row = add(body, 'tr'), label = add(row, 'th');
    label.scope = 'row';
    add(label, 'b', '', `${place + 1}`);
    label.append(` ${props.value.sentences[place]}`);
    return values.map(value => {
      const cell = add(row, 'td', 'cse-tint', written(value, span));
      cell.style.cssText = style(value, span);
      cell.tabIndex = -1;
      return cell;
    });
  });
  made.addEventListener('keydown', key);
  ['pointerover', 'pointerdown', 'focusin'].forEach(kind => made.addEventListener(kind, over));
}

function legend(parent, span) {
  const {model, minus} = props.value, made = add(parent, 'div', 'cse-ramp'), bar = add(made, 'div');
  const low = span ? -span : percent() ? 0 : -1, high = span || (percent() ? 100 : 1);
  bar.setAttribute('aria-hidden', 'true');
  for (let place = 0; place <= 20; place++) add(bar, 'i', 'cse-tint').style.cssText = style(low + (high - low) * place / 20, span);
  const ends = span ? [`${modelName(minus)} closer`, `${modelName(model)} closer`] : ['less alike', 'more alike'];
  add(made, 'span', '', `${written(low, span)} ${ends[0]}`);
  add(made, 'span', '', written((low + high) / 2, span));
  add(made, 'span', '', `${written(high, span)} ${ends[1]}`);
}

function meaning(span) {
  const {model, minus} = props.value;
  const unit = percent() ? 'Share of random pairs that a pair is closer than, in percent' : 'Cosine of each two sentences';
  return span ? `${unit}: ${modelName(model)} minus ${modelName(minus)}` : `${unit}: ${modelName(model)}`;
}

function build() {
  root.replaceChildren();
  const {models, sentences, model, minus} = props.value || {};
  if (!sentences) return;
  for (const {name, error} of models.filter(each => each.error)) {
    const line = add(root, 'p', 'cse-failure');
    add(line, 'b', '', `${modelName(name)}.`);
    line.append(` ${error}`);
  }
  const {matrix, span} = shown();
  if (!matrix) {
    add(root, 'p', 'cse-hint', `No map of ${modelName(minus && !found(model).error ? minus : model)}; choose another model.`);
    return;
  }
  add(root, 'p', 'cse-hint', `${meaning(span)}. Point at a cell, or move through the map with the arrow keys, to read its pair.`);
  legend(root, span);
  root.style.setProperty('--cse-count', sentences.length);
  const row = add(root, 'div', 'cse-row');
  readout = add(row, 'div', 'cse-readout');
  readout.setAttribute('role', 'status');
  table(row, meaning(span), {matrix, span});
  if (Math.max(...active) >= sentences.length) active = [0, 1];
  select(...active);
}

watch('value', build);
build();
