// The panel of lessons. The address names the lesson and the step: `?lesson=negation&step=2`, and `&present=1` for large type.
const panel = element.querySelector('.cse-lesson');
const NAMES = ['lesson', 'step', 'present'];
const FIELDS = 'input, textarea, select, canvas, [contenteditable="true"], [role="tab"], [role="listbox"], .cse-scroll, .cse-grid, .cse-lines';
const INSIDE = ['attention', 'prefix', 'prototypes'];  // results in the fold of the place Tokens
const answers = new Map();  // of the questions, by the key of their step
let shown = null;  // the key of the step in the panel

const wide = matchMedia('(min-width: 1001px)');  // as in lessons.css
const query = () => new URLSearchParams(location.search);
const presenting = () => query().get('present') === '1';

// The step that the address names, or null.
function here() {
  const lesson = props.lessons.find(each => each.name === query().get('lesson'));
  if (!lesson) return null;
  const number = /^[0-9]+$/.test(query().get('step')) ? Number(query().get('step')) : 1;
  return at(lesson, number >= 1 && number <= lesson.steps.length ? number : 1);
}

function at(lesson, number) {
  return {lesson, number, step: lesson.steps[number - 1], key: `${lesson.name} ${number}`};
}

// Write an address; names of the present one that stay are added to it.
function write(address, method) {
  const given = new URLSearchParams(address);
  for (const name of ['present', '__theme']) if (query().has(name) && !given.has(name)) given.set(name, query().get(name));
  history[method](null, '', `?${given}`);
}

function go(place) {
  write(place.step.address, 'pushState');
  window.dispatchEvent(new Event('cse-filled'));  // fills and runs the fields that the address names
  draw();
  panel.querySelector('h2').focus({preventScroll: true});
}

function move(by) {
  const place = here(), number = place.number + by;
  if (number >= 1 && number <= place.lesson.steps.length) go(at(place.lesson, number));
}

function following(lesson) {
  return props.lessons[props.lessons.indexOf(lesson) + 1];
}

function close() {
  const left = query();
  NAMES.forEach(name => left.delete(name));
  history.pushState(null, '', `?${left}`);
  draw();
  document.querySelector(props.opener)?.focus();
}

function present(wanted) {
  const left = query();
  if (wanted) left.set('present', '1'); else left.delete('present');
  history.replaceState(null, '', `?${left}`);
  draw();
  reach(here());
}

function button(parent, text, act, className) {
  const made = add(parent, 'button', className, text);
  made.type = 'button';
  made.addEventListener('click', act);
  return made;
}

function ask(place, guess) {
  if (answers.has(place.key)) return;
  panel.querySelectorAll('[data-choice]').forEach(each => each.setAttribute('aria-pressed', each.dataset.choice === guess));
  panel.querySelector('[role="status"]').replaceChildren('Measuring …');
  trigger('select', {lesson: place.lesson.name, step: place.number, guess});
}

function draw() {
  const place = here();
  panel.hidden = !place;
  document.documentElement.style.fontSize = place && presenting() && wide.matches ? '125%' : '';
  panel.classList.toggle('cse-present', presenting());
  if (!place) {
    shown = null;
    panel.classList.remove('cse-guessing');
    return;
  }
  if (shown !== place.key) fill(place);
  panel.querySelector('[data-present]').setAttribute('aria-pressed', presenting());
  tell(place);
}

function fill(place) {
  const {lesson, number, step} = place, count = lesson.steps.length;
  shown = place.key;
  panel.replaceChildren();
  panel.setAttribute('aria-label', `Lesson: ${lesson.title}`);
  const head = add(panel, 'div', 'cse-lesson-head');
  add(head, 'p', 'cse-lesson-name', lesson.title);
  button(head, 'Present', () => present(!presenting())).dataset.present = '';
  const fold = button(head, 'Fold', () => {
    fold.setAttribute('aria-expanded', !panel.classList.toggle('cse-folded'));
  }, 'cse-lesson-fold');
  fold.setAttribute('aria-expanded', !panel.classList.contains('cse-folded'));
  button(head, 'Close', close).setAttribute('aria-label', 'Close the lesson');
  const body = add(panel, 'div', 'cse-lesson-body');
  add(body, 'h2', '', step.title).tabIndex = -1;
  add(body, 'p', '', step.text);
  if (step.question) {
    add(body, 'p', 'cse-lesson-question', step.question);
    const choices = add(body, 'div', 'cse-lesson-choices');
    choices.setAttribute('role', 'group');
    choices.setAttribute('aria-label', 'Your guess');
    for (const [key, label] of [...step.choices, ['', 'Just show me']]) {
      const made = button(choices, label, () => ask(place, key));
      made.dataset.choice = key;
      made.setAttribute('aria-pressed', 'false');
    }
  }
  add(body, 'div', 'cse-lesson-answer').setAttribute('role', 'status');
  const foot = add(panel, 'div', 'cse-lesson-foot');
  button(foot, 'Back', () => move(-1)).disabled = number === 1;
  add(foot, 'p', '', `Step ${number} of ${count}`);
  const next = following(lesson);
  if (number < count) button(foot, 'Next', () => move(1), 'cse-lesson-next');
  else if (next) button(foot, 'Next lesson', () => go(at(next, 1)), 'cse-lesson-next').title = next.title;
  else button(foot, 'Finish', close, 'cse-lesson-next');
  if (step.measured && !step.question) ask(place, '');
  reach(place);
}

// Show the answer of a step, if there is one; until then the results of the page are hidden where it asks.
function tell(place) {
  const found = answers.get(place.key);
  panel.classList.toggle('cse-guessing', Boolean(place.step.question) && !found);
  if (!found) return;
  panel.querySelectorAll('[data-choice]').forEach(each => {
    each.setAttribute('aria-disabled', 'true');
    each.setAttribute('aria-pressed', each.dataset.choice === found.guess);
    each.classList.toggle('cse-right', each.dataset.choice !== '' && each.dataset.choice === found.answer);
  });
  const answer = panel.querySelector('[role="status"]');
  answer.replaceChildren();
  if (found.outcome) add(answer, 'p', 'cse-lesson-outcome', found.outcome).dataset.right = found.right;
  found.numbers.forEach(line => add(answer, 'p', 'cse-lesson-numbers', line));
  if (found.conclusion) add(answer, 'p', 'cse-says', found.conclusion);
}

// Scroll to what a step shows, once its tab is there: to its heading, on a narrow screen to an answered result itself.
function reach(place, tries = 80) {
  if (here()?.key !== place.key || !tries) return;
  const found = document.getElementById(place.step.shows);
  if (!found?.checkVisibility()) {
    if (INSIDE.includes(place.step.shows)) document.querySelector('#inside > button[aria-expanded="false"], #inside > .label-wrap:not(.open)')?.click();
    setTimeout(() => reach(place, tries - 1), 100);
    return;
  }
  const narrow = !wide.matches, {top} = found.getBoundingClientRect();
  if (!narrow && top > 0 && top < innerHeight * 0.7) return;
  let target = found;
  if (!narrow || !answers.has(place.key)) {
    while (target && !target.querySelector('.cse-part-head')) target = target.previousElementSibling;
  }
  const behavior = matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth';
  (target || found).scrollIntoView({block: 'start', behavior});
}

window.addEventListener('cse-revealed', ({detail}) => {
  answers.set(`${detail.lesson} ${detail.step}`, detail);
  draw();
  const place = here();
  if (!place || !answers.has(place.key)) return;
  const body = panel.querySelector('.cse-lesson-body'), answer = panel.querySelector('.cse-lesson-answer');
  if (answer.offsetTop + answer.offsetHeight > body.offsetTop + body.clientHeight) body.scrollTop = answer.offsetTop - body.offsetTop;
  reach(place);
});
window.addEventListener('popstate', draw);
document.addEventListener('click', event => {
  if (event.target.closest?.(props.opener)) document.getElementById('lessons').togglePopover(true);
  const link = event.target.closest?.('.cse-list-of-lessons a');
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  document.getElementById('lessons').hidePopover();
  const wanted = new URLSearchParams(link.search).get('lesson');
  go(at(props.lessons.find(each => each.name === wanted), 1));
});
document.addEventListener('keydown', event => {
  if (!here() || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (document.querySelector(':popover-open')) return;
  if (event.key === 'Escape' && presenting()) present(false);
  const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
  if (!by || event.target.closest?.(FIELDS)) return;
  event.preventDefault();
  move(by);
});
const first = here();
if (first && !query().has('tab')) write(first.step.address, 'replaceState');  // a short address stands for all of it
draw();
