// Show the error of an input, announced to screen readers, until the field is edited: under the field, or above the
// `output` where the field is outside of the tab, since that is out of sight of what was pressed.
const block = id => document.getElementById(id), tab = () => element.closest('[role=tabpanel]') || document;
const field = id => block(id)?.querySelector('textarea, input');

function clear(id) {
  tab().querySelectorAll(`.cse-refusal[data-about="${id}"]`).forEach(line => line.remove());
  ['aria-invalid', 'aria-describedby'].forEach(name => field(id)?.removeAttribute(name));
}

function show() {
  const {fields = [], about, reason, output} = props.value || {};
  fields.forEach(clear);
  if (!about) return;
  const line = document.createElement('p'), inside = field(about) && tab().contains(block(about));
  line.className = 'cse-refusal';
  line.dataset.about = about;
  line.setAttribute('role', 'alert');
  line.textContent = reason;
  if (inside) block(about).append(line);
  else (block(output) || element.closest('.block')).before(line);
  block(about)?.addEventListener('input', () => clear(about), {once: true});
  if (!inside) return;
  line.id = `${about}-refusal`;
  field(about).setAttribute('aria-invalid', 'true');
  field(about).setAttribute('aria-describedby', line.id);
}

watch('value', show);
