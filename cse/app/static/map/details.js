// The panel next to the map: scores of the maps, the pinned sentence with its neighbours, and the lasso's sentences.
const LISTED = 200;  // sentences of a lasso shown
const SCORES = [
  ['Trustworthy', 'Trustworthiness: of near points, how many are near among the vectors'],
  ['Continuous', 'Continuity: of near vectors, how many are near on the map'],
  ['Same topic', 'The share of the five nearest vectors whose sentence has the same topic'],
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

function rowHead(body) {
  const head = add(add(body, 'tr'), 'th');
  head.scope = 'row';
  return head;
}

function showScores() {
  parts.scores.replaceChildren();
  const known = maps.filter(map => map.scores);
  const used = SCORES.map((_, place) => place).filter(place => known.some(map => map.scores[place] !== null));
  if (!known.length) return;
  if (!used.length) {
    add(parts.scores, 'p', 'cse-note', 'No scores of fewer than ten points: such a map is nearly always right.');
    return;
  }
  const body = table(parts.scores, 'cse-faithful', 'How faithful the maps are', [
    ['Model'], ...used.map(place => SCORES[place])]);
  known.forEach(map => {
    const head = rowHead(body);
    head.textContent = map.name;
    used.forEach(place => add(head.parentElement, 'td', '', map.scores[place].toFixed(2)));
  });
  add(parts.scores, 'p', 'cse-note', `${used.map(place => SCORES[place][1]).join('. ')}. 1 is best.`);
}

// A sentence that is pinned by a click; a long one is opened first and then has a button.
function sentence(parent, index) {
  const words = (props.value.numbered ? `${index + 1} ` : '') + text(index), act = () => pin(index);
  if (words.length <= LONG) addButton(parent, 'cse-sentence', words, act);
  else addButton(addText(parent, words), 'cse-tool', 'Pin it', act);
}

function showDetails() {
  const box = parts.details;
  box.replaceChildren();
  if (state.pinned >= 0) showPinned(box);
  if (state.circled) showCircled(box);
  if (state.pinned < 0 && !state.circled) {
    add(box, 'p', 'cse-hint', 'Pin a sentence to list its five nearest in each model: click or tap it, or press Enter.');
  }
}

function titled(box, title, action, act) {
  const head = add(box, 'div', 'cse-detail-head');
  add(head, 'h3', '', title);
  addButton(head, 'cse-tool', action, act);
}

// Neighbours by the full vectors, one per row, ordered by mean rank.
function showPinned(box) {
  const known = maps.filter(map => map.near), lists = known.map(map => map.near(state.pinned)), beyond = 6;
  const rank = (list, index) => (list.includes(index) ? list.indexOf(index) + 1 : beyond);
  const sum = index => lists.reduce((total, list) => total + rank(list, index), 0);
  titled(box, 'Pinned', 'Unpin', () => pin(-1));
  const quote = add(box, 'div', 'cse-quote');
  quote.dir = 'auto';
  addText(quote, text(state.pinned));
  const body = table(box, 'cse-near', 'Nearest sentences and their rank in each model',
    [['Nearest in the vectors'], ...known.map(map => [map.name])]);
  [...new Set(lists.flat())].sort((one, other) => sum(one) - sum(other)).forEach(index => {
    const finders = known.filter((_, place) => lists[place].includes(index)), head = rowHead(body);
    sentence(head, index);
    if (finders.length === 1 && known.length > 1) add(head, 'span', 'cse-badge', `only ${finders[0].name}`);
    lists.forEach(list => {
      const cell = add(head.parentElement, 'td');
      if (list.includes(index)) add(cell, 'span', 'cse-rank cse-found', String(rank(list, index)));
      else {
        add(cell, 'span', 'cse-rank', '·').setAttribute('aria-hidden', 'true');
        add(cell, 'span', 'cse-hidden', 'not among its five');
      }
    });
  });
}

function showCircled(box) {
  const chosen = [...state.circled], counts = new Map();
  chosen.forEach(index => counts.set(topic(index), (counts.get(topic(index)) || 0) + 1));
  titled(box, `${chosen.length} in the lasso`, 'Clear', () => circle(null));
  const topics = [...counts].sort((one, other) => other[1] - one[1]).map(([name, count]) => `${name} ${count}`);
  add(box, 'p', 'cse-note', topics.join(', '));
  const list = add(box, 'ul', 'cse-circled');
  list.tabIndex = 0;
  list.setAttribute('aria-label', 'Sentences in the lasso');
  chosen.slice(0, LISTED).forEach(index => {
    const item = add(list, 'li');
    sentence(item, index);
    add(item, 'small', '', topic(index));
  });
  if (chosen.length > LISTED) add(box, 'p', 'cse-note', `and ${chosen.length - LISTED} more`);
}
