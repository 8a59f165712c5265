// Filters of the points, which add up: words, an entry of the legend, a lasso. The last one can be undone.
const TYPED = 'typed', WORDS = 'words', ENTRY = 'entry', LASSO = 'lasso';

function filter(kind, title, points, replaced = []) {
  state.filters = state.filters.filter(each => !replaced.includes(each.kind));
  if (points) state.filters.push({kind, title, points});
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

// While words are typed they are one filter; Enter keeps it, so that more words can follow.
function find(words, kind) {
  const plain = text => text.toLowerCase().normalize('NFC');
  const wanted = plain(words).split(/\s+/).filter(Boolean);
  const has = each => wanted.every(word => plain(each).includes(word));
  const found = new Set(props.value.texts.flatMap((each, index) => (has(each) ? [index] : [])));
  filter(kind, `“${words.trim()}”`, wanted.length ? found : null, [TYPED]);
}

function pressEntry(entry) {
  const before = state.filters.find(each => each.kind === ENTRY), title = painted.names[entry];
  const same = before && before.title === title;
  const members = new Set([...painted.of.keys()].filter(index => painted.of[index] === entry));
  filter(ENTRY, title, same ? null : members, [ENTRY]);
}

const chosenPoints = () => [...visible.keys()].filter(index => visible[index]);

function refilter() {
  visible = new Uint8Array(count()).map((_, index) => (state.filters.every(({points}) => points.has(index)) ? 1 : 0));
  const titles = state.filters.map(each => each.title);
  parts.count.textContent = titles.length ? `${chosenPoints().length.toLocaleString('en')} of ${count().toLocaleString('en')}: ${titles.join(' + ')}` : '';
  parts.undo.disabled = parts.clear.disabled = !titles.length;
  pressLegend();
  askSelection();
  redraw();
}
