// The scores of the maps, and the panel next to the map: the pinned text with its neighbours, and the selection.
const SCORES = [
  ['Trustworthy', 'Trustworthiness: of near points, how many are near among the vectors'],
  ['Continuous', 'Continuity: of near vectors, how many are near on the map'],
  ['Same label', 'The share of the five nearest vectors whose text has the same label'],
];

function table(parent, className, caption, heads) {
  const box = add(parent, 'div', 'cse-scroll');
  box.tabIndex = 0;
  box.setAttribute('role', 'group');
  box.setAttribute('aria-label', caption);
  const made = add(box, 'table', `cse-table ${className}`);
  add(made, 'caption', 'cse-hidden', caption);
  const row = add(add(made, 'thead'), 'tr');
  heads.forEach(([name, meaning]) => {
    const head = add(row, 'th', '', name);
    head.scope = 'col';
    if (meaning) head.title = meaning;
  });
  return add(made, 'tbody');
}

// The "?" of a term, as in cse/app/drawing/glossary.py.
function addQuestion(parent, place, question) {
  const made = add(parent, 'button', 'cse-term');
  made.type = 'button';
  made.ariaLabel = question;
  made.setAttribute('popovertarget', place);
}

function rowHead(body) {
  const head = add(add(body, 'tr'), 'th');
  head.scope = 'row';
  return head;
}

function showScores() {
  parts.scores.replaceChildren();
  if (props.value.says) add(parts.scores, 'p', 'cse-says', props.value.says);
  const known = maps.filter(map => map.scores);
  const used = SCORES.map((_, place) => place).filter(place => known.some(map => map.scores[place] !== null));
  if (!known.length) return;
  if (!used.length) {
    add(parts.scores, 'p', 'cse-note', 'No scores of fewer than ten points: such a map is nearly always right.');
    return;
  }
  const body = table(parts.scores, 'cse-faithful', 'How faithful the maps are', [
    ['Model'], ...used.map(place => SCORES[place])]);
  const heads = body.parentElement.querySelectorAll('th:not(:first-child)');
  used.forEach((place, at) => addQuestion(heads[at], ...props.asking[place]));
  known.forEach(map => {
    const head = rowHead(body);
    addModel(head, map.name);
    used.forEach(place => add(head.parentElement, 'td', '', map.scores[place].toFixed(2)));
  });
  add(parts.scores, 'p', 'cse-note', `${used.map(place => SCORES[place][1]).join('. ')}. 1 is best.`);
}

// A text that is pinned by a click; a long one is opened first and then has a button.
function sentence(parent, index) {
  const act = () => pin(index);
  if (text(index).length <= LONG) addButton(parent, 'cse-sentence', text(index), act);
  else addButton(addText(parent, text(index)), 'cse-tool', 'Pin it', act);
}

function showDetails() {
  const box = parts.details;
  box.replaceChildren();
  box.toggleAttribute('data-open', state.pinned >= 0 || state.filters.length > 0);
  if (state.pinned >= 0) showPinned(box);
  if (state.filters.length) showSelection(box);
}

function titled(box, title, action, act) {
  const head = add(box, 'div', 'cse-detail-head');
  add(head, 'h3', '', title);
  addButton(head, 'cse-tool', action, act);
}

// Neighbours by the full vectors, ordered by mean rank, each with its rank in the models that have it.
function showPinned(box) {
  const known = maps.filter(map => map.near), lists = known.map(map => map.near(state.pinned)), beyond = 6;
  const rank = (list, index) => (list.includes(index) ? list.indexOf(index) + 1 : beyond);
  const sum = index => lists.reduce((total, list) => total + rank(list, index), 0);
  titled(box, 'Pinned', 'Unpin', () => pin(-1));
  const quote = add(box, 'div', 'cse-quote');
  quote.dir = 'auto';
  addText(quote, text(state.pinned));
  const found = [...new Set(lists.flat())].sort((one, other) => sum(one) - sum(other));
  listed(box, 'Nearest texts, with their rank in each model', found, (item, index) => {
    sentence(item, index);
    const ranks = add(item, 'small'), finders = known.filter((_, place) => lists[place].includes(index));
    const alone = finders.length === 1 && known.length > 1 ? 'only ' : '';
    finders.forEach(map => {
      add(ranks, 'span', alone && 'cse-badge', `${alone}${modelName(map.name)} ${rank(map.near(state.pinned), index)}`);
    });
  });
}
