// What stands beside the maps: the pinned text with its nearest ones, and presses there that filter and pin here.
const PAUSE = 300;  // milliseconds before the server is asked
let waiting = 0;

function sendSelection(points) {
  clearTimeout(waiting);
  waiting = setTimeout(() => trigger('submit', {points}), PAUSE);
}

function openSelection() {
  document.querySelector('#clusters-views input[value="Selection"]')?.click();
}

// The pinned text, the models shown and the colouring go into the address.
function tell() {
  trigger('select', {row: state.pinned < 0 ? null : state.pinned, shown: state.shown.slice(0, state.count).join(','), colour: state.by});
}

function pin(index) {
  if (index === state.pinned) return;
  state.pinned = index;
  tell();
  showPinned();
  drawAll();
}

function sentence(parent, index) {
  if (text(index).length <= LONG) addButton(parent, 'cse-sentence', text(index), () => pin(index));
  else addButton(addText(parent, text(index)), 'cse-tool', 'Pin it', () => pin(index));
}

// Neighbours by the full vectors, ordered by mean rank, each with its rank in the models that have it.
function showPinned() {
  const box = document.querySelector('#pinned .cse-pinned');
  if (!box) return;
  box.replaceChildren();
  box.toggleAttribute('data-open', state.pinned >= 0);
  if (state.pinned < 0) return;
  const head = add(box, 'div', 'cse-detail-head'), quote = add(box, 'div', 'cse-quote'), beyond = 6;
  add(head, 'h3', '', 'Pinned').append(` (row ${props.value.rows[state.pinned]})`);
  addButton(head, 'cse-tool', 'Unpin', () => pin(-1));
  quote.dir = 'auto';
  addText(quote, text(state.pinned));
  const lists = models.map(map => map.near(state.pinned)), rank = (list, index) => (list.indexOf(index) + 1 || beyond);
  const sum = index => lists.reduce((total, list) => total + rank(list, index), 0);
  add(box, 'h4', '', 'Nearest texts, with their rank in each model');
  const list = add(box, 'ul', 'cse-texts');
  [...new Set(lists.flat())].sort((one, other) => sum(one) - sum(other)).forEach(index => {
    const item = add(list, 'li'), finders = models.filter((_, place) => lists[place].includes(index));
    sentence(item, index);
    const ranks = add(item, 'small'), alone = finders.length === 1 && models.length > 1 ? 'only ' : '';
    finders.forEach(map => {
      add(ranks, 'span', alone && 'cse-badge', `${alone}${modelName(map.name)} ${rank(map.near(state.pinned), index)}`);
    });
  });
}

function pressed(event) {
  const beside = event.target.closest?.('#clusters-beside :is([data-pin], [data-group], [data-shared])');
  if (!beside || !panes.length) return;
  const {pin: row, group, shared: bar} = beside.dataset;
  if (row !== undefined) pin(Number(row));
  else if (bar !== undefined && event.type === 'click') filterShared(Number(bar));
  else if (group !== undefined) {
    const opens = !beside.parentElement.open, title = props.value.groups[group - 1];
    if (opens === !state.filters.some(each => each.kind === ENTRY && each.title === title)) filterEntry(group - 1, title, panes[0].map.of);
  }
}

// A drag over bars adds them.
function brushed(event) {
  const bar = event.buttons === 1 && event.target.closest?.('#neighbours [data-shared]');
  if (bar && event.relatedTarget && !bar.contains(event.relatedTarget)) filterShared(Number(bar.dataset.shared), true);
}

document.addEventListener('click', pressed);
document.addEventListener('pointerover', brushed);
