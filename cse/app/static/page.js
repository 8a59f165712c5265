// The page's own script, which is loaded once, before the page is drawn. Texts are only set as textContent.
const KEPT = ['lesson', 'step', 'present', '__theme'];  // names that stay in the address whatever the visitor does
const MAX_CHARACTERS = 2000;  // of a value in the address
const OWN_MACHINE = ['localhost', '127.0.0.1', '[::1]'];
const SAID = 15000;  // milliseconds that a saved file is named
const PAUSE = 400;  // milliseconds without a key
const FIELDS = 'input, textarea, select, [contenteditable], [role=slider], [role=listbox], [role=option]';

// Make panels of the row popovers, which Escape or a press beside them closes. Returns the visitor's secret key, under
// which the server keeps texts and votes; it is in no address, and the same in all tabs and after a reload. 128 random
// bits: `randomUUID` is missing on pages that come over plain HTTP from another machine.
function opened() {
  document.querySelectorAll('.cse-panel').forEach(panel => { panel.popover = 'auto'; });
  const messages = document.querySelector('.toast-wrap');  // an open panel would cover them: they open after it
  messages.popover = 'manual';
  new MutationObserver(() => {
    messages.hidePopover();
    if (messages.childElementCount) messages.showPopover();
  }).observe(messages, {childList: true});
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const fresh = Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');
  try {
    const kept = localStorage.getItem('cse-visitor');
    if (/^[0-9a-f]{32}$/.test(kept)) return kept;
    localStorage.setItem('cse-visitor', fresh);
  } catch {}  // a browser that refuses to store it has it as long as the page
  return fresh;
}

// Keep the addresses of places as they last were outside of a lesson, which fills the fields with values of its own.
function remember() {
  const now = new URLSearchParams(location.search);
  if (!now.has('lesson')) cse.places[now.get('tab') || cse.first] = location.search;
}

// Write what a tab shows into the address. One that was just `chosen` makes no entry in the history if the address
// names it already, as after opening, or if nobody pressed it: after a quick second Back the first one's tab is chosen
// while the address is further back. A tab that is not shown writes nothing. Gradio reports the first tab as chosen
// while it draws the page, before the address is read. What is typed takes the entry of what was typed before it, but
// not of what Enter asked for. In a lesson Back leads to the step before. Until the address that was `asked` last is
// read nothing is written, and from the press of a link until its tab is `filled` only that: what is shown is what was
// there before. The models are always written, as another server may begin with others, and a field that has its
// `initial` value is not; of a corpus other than the first it is, since texts of that corpus would take the place of
// examples.
function write({tab, first, names, initial, method, chosen, filled}, asked, values) {
  cse.first = first;
  remember();
  const now = new URLSearchParams(location.search), query = new URLSearchParams({tab});
  const pressed = chosen && cse.pressed === `place-${tab}-button`;
  if (chosen) Object.assign(cse, {tab, pressed: pressed ? '' : cse.pressed});
  if (filled && now.get('tab') !== tab) return;
  if (!chosen && (asked.number !== cse.asked?.number || cse.filling !== Boolean(filled))) return;
  cse.filling = false;
  if (!window.cseOpened || cse.tab !== tab || (chosen && (!pressed || (now.get('tab') || first) === tab))) return;
  const [texts, begun] = [values, initial].map(all => all.map(value => String(value ?? '')));
  const unsaid = (name, place) => texts[place] === begun[place] && texts[0] === begun[0] && name !== 'models';
  names.forEach((name, place) => {
    if (texts[place].length <= MAX_CHARACTERS && !unsaid(name, place)) query.set(name, texts[place]);
  });
  cse.cut = texts.some(text => text.length > MAX_CHARACTERS);
  KEPT.filter(name => now.has(name)).forEach(name => query.set(name, now.get(name)));
  const same = `${query}` === `${now}`, typed = method === 'replaceState' && !filled;
  if (typed && cse.entered) method = 'pushState';
  if (!chosen && !filled) cse.entered = !typed || (same && cse.entered);
  if (!same) history[now.has('lesson') && !chosen ? 'replaceState' : method](null, '', address(query));
  remember();
}

const address = query => `?${query}`.replaceAll('%2C', ',');  // commas part the models

// Fill and run what the address names. An address that names nothing is not read: whatever happens later, Gradio goes
// through all outputs of the events that a page had.
function read() {
  if (location.search) cse.fill();
  else window.cseOpened = true;
}

// Open the folds that hold a field of the address, however long its place takes. A lesson opens those of its steps.
function unfold(folds) {
  const now = new URLSearchParams(location.search), tab = now.get('tab');
  if (now.has('lesson')) return;
  const ids = new Set([...now.keys()].map(name => folds[`${tab} ${name}`]).filter(Boolean));
  const buttons = [...ids].map(id => document.querySelector(`#${id} > .label-wrap`));
  if (buttons.every(button => button?.checkVisibility())) buttons.forEach(button => button.matches('.open') || button.click());
  else setTimeout(() => unfold(folds), 100);
}

// The page shows what the address named; a place that was chosen meanwhile is opened again.
function filled(folds) {
  unfold(folds);
  window.cseOpened = true;
  document.documentElement.classList.remove('cse-reading');
  const tab = document.getElementById(cse.wanted);
  if (tab?.ariaSelected === 'false') tab.click();
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {  // a page that came by plain HTTP from another machine has no clipboard
    return false;
  }
}

async function copyLink() {
  const done = await copied(location.href.replace('&present=1', ''));  // for who has no projector
  const cut = cse.cut ? `, without texts of more than ${MAX_CHARACTERS.toLocaleString('en')} characters` : '';
  const here = OWN_MACHINE.includes(location.hostname) ? '; it opens on this machine alone' : '';
  const told = done ? `Link copied${cut}${here}.` : 'Not copied: the browser does not allow it. Copy the address of the page.';
  return `<p class="cse-hint" role="status">${told}</p>`;
}

// Ask a while after the last key in some fields, which come and go with their tab, and once a slider or its number is
// set: Gradio tells of a slider that is released, not of one that keys move.
function live(fields, trigger) {
  let timer;
  document.addEventListener('change', ({target}) => {
    if (['range', 'number'].includes(target.type) && target.closest(fields)) trigger('submit', {});
  });
  document.addEventListener('input', event => {
    if (!event.target.closest?.(fields) || ['range', 'number'].includes(event.target.type)) return;
    clearTimeout(timer);
    timer = setTimeout(() => trigger('submit', {}), PAUSE);
  });
}

function save(name, blob) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Save a text or base64 as a file, or show a text as code with a button to copy it.
function savedFile(element, props, watch) {
  const [said, code, copy] = ['p', 'pre', 'button'].map(tag => element.querySelector(`.cse-taken > ${tag}`));
  let timer;
  copy.addEventListener('click', async () => {
    const done = await copied(code.textContent);
    if (!done) getSelection().selectAllChildren(code);
    said.textContent = done ? 'Copied.' : 'Not copied: the browser does not allow it. The code is selected: press Ctrl+C.';
  });
  watch('value', () => {
    const {file, type, text, lacking, notes = [], base64} = props.value || {};
    code.hidden = copy.hidden = Boolean(type) || !text;
    if (!text) return said.textContent = '';
    code.textContent = type ? '' : text;
    const without = lacking.length ? ` Without a result: ${lacking.join(', ')}.` : '';
    said.textContent = type ? [`Saved ${file}.${without}`, ...notes].join(' ') : 'Runs against this app:';
    const bytes = () => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    clearTimeout(timer);
    if (type && !notes.length) timer = setTimeout(() => { said.textContent = ''; }, SAID);
    if (type) save(file, base64 ? new Blob([bytes()], {type}) : new Blob([text], {type: `${type};charset=utf-8`}));
  });
}

// Show the error of an input, announced to screen readers, until the field is edited: under the field, or above the
// `output` where the field is outside of the tab, since that is out of sight of what was pressed.
function refusals(element, props, watch) {
  const block = id => document.getElementById(id), field = id => block(id)?.querySelector('textarea, input');
  const tab = () => element.closest('[role=tabpanel]') || document;
  const clear = id => {
    tab().querySelectorAll(`.cse-refusal[data-about="${id}"]`).forEach(line => line.remove());
    ['aria-invalid', 'aria-describedby'].forEach(name => field(id)?.removeAttribute(name));
  };
  watch('value', () => {
    const {fields = [], about, reason, output} = props.value || {};
    fields.forEach(clear);
    if (!about) return;
    const line = document.createElement('p'), inside = field(about) && tab().contains(block(about));
    Object.assign(line, {className: 'cse-refusal', role: 'alert', textContent: reason});
    line.dataset.about = about;
    if (inside) block(about).append(line);
    else (block(output) || element.closest('.block')).before(line);
    block(about)?.addEventListener('input', () => clear(about), {once: true});
    if (!inside) return;
    line.id = `${about}-refusal`;
    field(about).setAttribute('aria-invalid', 'true');
    field(about).setAttribute('aria-describedby', line.id);
  });
}

window.addEventListener('popstate', () => {
  cse.pressed = '';
  remember();
});
document.addEventListener('click', event => {
  const tab = event.target.closest?.('[role="tab"]');
  if (!tab) return;
  cse.pressed = cse.wanted = tab.id;
  if (event.isTrusted) document.querySelector('.cse-overview')?.classList.add('cse-brief');  // who goes on has read it
}, true);
document.addEventListener('click', event => {
  const pressed = selector => event.target.closest?.(selector);
  if (pressed('.cse-skip')) {  // it goes on from the chosen tab, past the models and the corpus
    event.preventDefault();
    document.querySelector('[role="tab"][aria-selected="true"]').focus();
  }
  // A chart that was drawn in a closed fold has no width until then.
  if (pressed('.label-wrap')) requestAnimationFrame(() => window.dispatchEvent(new Event('resize')));
  pressed('[data-closes]')?.parentElement.remove();
  if (pressed('[data-undo]')) document.getElementById('corpus-undo')?.click();
  const link = pressed('a[href^="?tab="]');  // within the page: it fills and runs what its address names
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  document.querySelectorAll(':popover-open').forEach(panel => panel.hidePopover());
  const query = new URLSearchParams(link.search), now = new URLSearchParams(location.search);
  // The other fields of the same place stay, in the address, too.
  const same = (now.get('tab') || cse.first) === query.get('tab');
  const stay = [...now.keys()].filter(name => !query.has(name) && (same || name === 'corpus'));
  stay.forEach(name => query.set(name, now.get(name)));
  history.pushState(null, '', address(query));
  cse.fill(stay, same);
});

// A long text that fits in its three lines offers no more of it.
const clamped = new ResizeObserver(changes => changes.forEach(({target}) => {
  const text = target.closest('.cse-long');
  if (text.open || !target.clientHeight) return;
  const whole = target.scrollHeight <= target.clientHeight + 1;
  text.classList.toggle('cse-whole', whole);
  target.parentElement.tabIndex = whole ? -1 : 0;
}));
new MutationObserver(() => document.querySelectorAll('.cse-long > summary > span:not([data-seen])').forEach(text => {
  text.dataset.seen = '';
  clamped.observe(text);
})).observe(document, {childList: true, subtree: true});

// A number typed beyond a slider's ends is its nearest end before Gradio sends it, or the server refuses it.
document.addEventListener('change', ({target: field}) => {
  if (field.type !== 'number' || field.max === '' || !field.value) return;
  const within = Math.min(Math.max(field.value, field.min), field.max);
  if (within === Number(field.value)) return;
  field.value = within;
  field.dispatchEvent(new Event('input', {bubbles: true}));
}, true);

// Escape in an open list of choices closes the list, and not the panel around it.
document.addEventListener('keydown', event => {
  if (event.key === 'Escape' && event.target.matches?.('.cse-panel input[aria-expanded=true]')) event.preventDefault();
}, true);

// Arrows go from place to place in their row, as in other rows of tabs; Enter opens one.
document.addEventListener('keydown', event => {
  const tab = event.target.closest?.('[role="tab"]'), by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
  if (!tab || !by) return;
  const tabs = [...tab.closest('[role="tablist"]').querySelectorAll('[role="tab"]')].filter(shown => shown.checkVisibility());
  tabs.at((tabs.indexOf(tab) + by) % tabs.length).focus();
  event.preventDefault();
});

// Keys for the buttons of a vote. They work while the buttons are visible and no field has the focus.
document.addEventListener('keydown', event => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(FIELDS)) return;
  const button = document.getElementById(`vote-${event.key.toLowerCase()}`);
  if (!button?.offsetParent || button.disabled) return;
  event.preventDefault();
  button.click();
});

// Until the address is read, places have values that it does not name, so that they are not shown.
if (/[?&](tab|lesson)=/.test(location.search)) document.documentElement.classList.add('cse-reading');

window.cse = {
  entered: false, opened, write, read, filled, copyLink, live, savedFile, refusals, filling: false, fill() {}, places: {},
  left: () => ({}),
};
