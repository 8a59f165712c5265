// The panel of lessons. The address names the lesson and the step: `?lesson=negation&step=2`, and `&present=1` for large
// type. The template has all steps; one of them is shown.
const panel = element.querySelector('.cse-lesson'), steps = [...panel.querySelectorAll('.cse-step')];
const BUSY = 'input, textarea, select, canvas, [contenteditable="true"], [role="tab"], [role="listbox"], .cse-scroll';
const INSIDE = ['attention', 'prefix', 'prototypes'];  // results in one fold of the place Tokens
const CLOSED = ':scope > button[aria-expanded="false"], :scope > .label-wrap:not(.open)';
const wide = matchMedia('(min-width: 1001px)');  // as in lessons.css
const visited = new Set(), names = new Set();  // the places that the lesson has filled, and the names of their fields
let shown, earlier, away;  // the step, the address before the lesson, and whether another place was opened since

const query = () => new URLSearchParams(location.search), presenting = () => query().get('present') === '1';
const asks = step => Boolean(step.querySelector('[data-choice]')) && !step.dataset.told;
const named = name => steps.find(step => step.dataset.step === name);

// The step that the address names, if any: without a number the first.
function here() {
  const lesson = query().get('lesson'), number = query().get('step');
  return (/^[0-9]+$/.test(number) && named(`${lesson} ${Number(number)}`)) || named(`${lesson} 1`);
}

// Write an address, whose present names `present` and `__theme` stay.
function write(address, method) {
  const names = new URLSearchParams(address);
  for (const name of ['present', '__theme']) if (query().has(name)) names.set(name, query().get(name));
  history[method](null, '', `?${names}`);
}

// Go to a step; without a name, back to what the page showed before the lesson.
function go(name) {
  if (name) {
    if (!here()) earlier = location.search;
    write(named(name).dataset.address, 'pushState');
    cse.fill();
    draw();
    here().querySelector('h2').focus({preventScroll: true});
    return;
  }
  history.pushState(null, '', earlier || `?tab=${query().get('tab') ?? ''}`);
  dispatchEvent(new PopStateEvent('popstate'));
  document.querySelector('.cse-lessons')?.focus();
}

// The names that the lesson has filled, once it is left, and the addresses of their places before it.
function left() {
  if (here()) return {};
  const filled = [...names], places = Object.fromEntries([...visited].map(tab => [tab, cse.places[tab] ?? '']));
  for (const all of [visited, names]) all.clear();
  return {places, filled};
}

function present(on) {
  const left = query();
  if (on) left.set('present', '1'); else left.delete('present');
  history.replaceState(null, '', `?${left}`);
  draw();
  reach(here());
}

function ask(step, guess) {
  if (step.dataset.told) return;
  step.querySelectorAll('[data-choice]').forEach(choice => { choice.ariaPressed = String(choice.dataset.choice === guess); });
  step.querySelector('[role="status"]').textContent = 'Measuring …';
  const [lesson, number] = step.dataset.step.split(' ');
  trigger('select', {lesson, step: Number(number), guess});
}

// Until a step has its answer, the results of the place are hidden that it asks about.
function draw() {
  const step = here(), large = presenting();
  if (step !== shown) away = false;
  panel.hidden = !step;
  steps.forEach(each => { each.hidden = each !== step; });
  document.documentElement.style.fontSize = step && large && wide.matches ? '125%' : '';
  panel.classList.toggle('cse-present', large);
  panel.classList.toggle('cse-guessing', Boolean(step) && asks(step) && !away);
  panel.querySelector('[data-present]').ariaPressed = String(large);
  if (step) {
    const values = new URLSearchParams(step.dataset.address);
    visited.add(values.get('tab'));
    for (const name of values.keys()) names.add(name);
  }
  if (step && step !== shown) {
    panel.querySelector('.cse-lesson-name').textContent = step.dataset.lesson;
    panel.ariaLabel = `Lesson: ${step.dataset.lesson}`;
    if (step.hasAttribute('data-measured')) ask(step, '');
    reach(step);
  }
  shown = step;
}

// A number stays in a line with its sign of percent.
const together = words => words.replaceAll(' %', '\u00a0%');

function tell({lesson, step: number, guess, answer, outcome, numbers, conclusion}) {
  const step = named(`${lesson} ${number}`), body = step.querySelector('.cse-lesson-body');
  const box = body.querySelector('[role="status"]');
  step.dataset.told = 'true';
  step.querySelectorAll('[data-choice]').forEach(choice => {
    Object.assign(choice, {ariaDisabled: 'true', ariaPressed: String(choice.dataset.choice === guess)});
    choice.classList.toggle('cse-right', choice.dataset.choice !== '' && choice.dataset.choice === answer);
  });
  const measured = numbers.map(line => ['cse-lesson-numbers', line]);
  const lines = [['cse-lesson-outcome', outcome], ...measured, ['cse-says', conclusion]];
  box.replaceChildren(...lines.filter(([, textContent]) => textContent).map(
    ([className, words]) => Object.assign(document.createElement('p'), {className, textContent: together(words)})));
  draw();
  if (step !== here()) return;
  if (box.offsetTop + box.offsetHeight > body.offsetTop + body.clientHeight) body.scrollTop = box.offsetTop - body.offsetTop;
  reach(step);
}

// The nearest element before a result that is or has what a selector names.
function before(result, selector) {
  let each = result;
  do each = each.previousElementSibling; while (each && !each.matches(selector) && !each.querySelector(selector));
  return each;
}

// Open the fold of what a step shows and, once its tab is there, scroll to it: to its heading and fields, on a narrow
// screen to an answered result itself if its fields are high. An answered result that waits for its button is asked for.
function reach(step) {
  if (here() !== step) return;
  const {shows, told} = step.dataset, result = document.getElementById(shows);
  if (!result?.checkVisibility()) {
    document.getElementById(INSIDE.includes(shows) ? 'inside' : `fold-${shows}`)?.querySelector(CLOSED)?.click();
    setTimeout(() => reach(step), 100);  // however long its place takes
    return;
  }
  if (told && !result.textContent.trim()) before(result, '.cse-submit')?.querySelector('.cse-submit')?.click();
  const {top} = result.getBoundingClientRect();
  if (wide.matches && top > 0 && top < innerHeight * 0.7) return;
  const head = before(result, '.cse-part-head, h2.cse-hidden');
  const target = wide.matches || !told || top - head?.getBoundingClientRect().top < innerHeight / 4 ? head : result;
  const behavior = matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth';
  (target || result).scrollIntoView({block: 'start', behavior});
}

Object.assign(cse, {reveal: tell, left});
window.addEventListener('popstate', () => { away = false; draw(); });
panel.addEventListener('click', ({target}) => {
  const {choice, go: name, present: large} = target.dataset;
  if (choice !== undefined) ask(here(), choice);
  if (name !== undefined) go(name);
  if (large !== undefined) present(!presenting());
  if (target.matches('.cse-lesson-fold')) {
    const folded = panel.classList.toggle('cse-folded');
    Object.assign(target, {ariaExpanded: String(!folded), textContent: folded ? 'Open' : 'Fold'});
  }
});
document.addEventListener('click', event => {
  const tab = event.target.closest?.('[role="tab"]');
  if (tab && here()) {
    away = tab.id !== `place-${new URLSearchParams(here().dataset.address).get('tab')}-button`;
    draw();
  }
  if (event.target.closest?.('.cse-lessons')) {
    document.getElementById('lessons').togglePopover(true);
    document.querySelector('.cse-list-of-lessons a').focus();  // for keys: the list stands far from the button
  }
  const link = event.target.closest?.('.cse-list-of-lessons a');
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  document.getElementById('lessons').hidePopover();
  go(`${new URLSearchParams(link.search).get('lesson')} 1`);
});
document.addEventListener('keydown', event => {
  const step = here();
  if (!step || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (document.querySelector(':popover-open')) return;
  if (event.key === 'Escape' && presenting()) present(false);
  const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
  if (!by || event.target.closest?.(BUSY)) return;
  event.preventDefault();
  const [lesson, number] = step.dataset.step.split(' '), name = `${lesson} ${Number(number) + by}`;
  if (named(name)) go(name);
});
if (here() && !query().has('tab')) write(here().dataset.address, 'replaceState');  // a short address stands for all of it
draw();
