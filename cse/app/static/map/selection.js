// The points that all filters have: their words, typical and odd texts, labels, and groups in other models, which the
// server finds. An answer to an earlier question is dropped.
const PAUSE = 300, SPREAD = 3;  // milliseconds before the server is asked; groups listed of each model
let question = 0, waiting = 0, described = null;

function askSelection() {
  clearTimeout(waiting);
  question += 1;
  described = null;
  showDetails();
  const points = chosenPoints();
  if (!state.filters.length || !points.length) return;
  waiting = setTimeout(() => trigger('submit', {points, model: state.chosen, number: question}), PAUSE);
}

window.addEventListener('cse-selection', ({detail}) => {
  if (detail.answers !== question || !parts.details) return;
  described = detail.selection;
  showDetails();
});

function listed(box, title, items, show) {
  if (!items.length) return;
  add(box, 'h4', '', title);
  const list = add(box, 'ul', 'cse-texts');
  items.forEach(item => show(add(list, 'li'), item));
}

function showSelection(box) {
  const points = chosenPoints(), title = state.filters.map(each => each.title).join(' + ');
  titled(box, `${title} (${points.length})`, 'Close', clearFilters);
  if (!points.length) return add(box, 'p', 'cse-hint', 'No text passes all filters; undo the last one.');
  if (!described) return add(box, 'p', 'cse-hint', 'Looking at these texts…').setAttribute('role', 'status');
  add(box, 'p', 'cse-marking', described.words.join(' · '));
  listed(box, 'Typical', described.typical, sentence);
  listed(box, 'Odd', described.odd, sentence);
  listed(box, 'Labels', described.labels.slice(0, SPREAD), (item, [label, size]) => share(item, label, size));
  Object.entries(described.spread).forEach(([name, groups]) => showSpread(box, name, groups));
  addButton(box, 'cse-tool', 'Rows as CSV', () => trigger('download', {points}));
}

function share(item, name, size) {
  const bar = add(add(item, 'span', 'cse-bar'), 'i');
  bar.style.width = `${100 * size / described.size}%`;
  add(item, 'span', '', name);
  add(item, 'small', '', `${size}`);
}

// How the groups of a model divide the selection.
function showSpread(box, name, groups) {
  const map = maps.find(each => each.name === name), rest = groups.length - SPREAD;
  if (!map || !map.groups) return;
  listed(box, `Groups of ${modelName(name)}`, groups.slice(0, SPREAD), (item, [group, size]) => {
    share(item, joined(map.groups.words[group]) || `group ${group + 1}`, size);
  });
  if (rest > 0) add(box, 'p', 'cse-note', `and ${rest} more`);
}
