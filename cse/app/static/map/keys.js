// Keys on the large map: arrows move to the nearest point in that direction.
const WAYS = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
const FAR = 1e9;  // squared pixels, farther than any point

function towards([right, down]) {
  if (state.active < 0) return state.pinned >= 0 ? state.pinned : nearest(size().map(pixels => pixels / 2), FAR);
  const [x, y] = place(state.active);
  let best = state.active, least = Infinity;
  for (let i = 0; i < count(); i++) {
    const [left, top] = place(i), ahead = (left - x) * right + (top - y) * down;
    const aside = Math.abs((left - x) * down + (top - y) * right);
    const away = ahead ** 2 + aside ** 2 + (aside > ahead ? FAR : 0);  // points within 45 degrees first
    if (ahead > 0 && away < least) { least = away; best = i; }
  }
  return best;
}

const ACTIONS = {
  Enter: () => { if (state.active >= 0) pin(state.active); },
  ' ': () => { if (state.active >= 0) pin(state.active); },
  Escape: () => { select(-1); pin(-1); clearFilters(); },
  '+': () => zoom(1.5),
  '=': () => zoom(1.5),
  '-': () => zoom(1 / 1.5),
  0: whole,
  u: () => { if (state.filters.length) undo(); },
};

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const way = WAYS[event.key], act = ACTIONS[event.key];
  if (!way && !act) return;
  event.preventDefault();
  if (act) return act();
  select(towards(way));
  reveal(state.active);
}
