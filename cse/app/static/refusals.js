// Show the error of an input under its field, announced to screen readers, until the field is edited.
const field = id => document.getElementById(id)?.querySelector('textarea, input');

function clear(id) {
  document.getElementById(`${id}-refusal`)?.remove();
  ['aria-invalid', 'aria-describedby'].forEach(name => field(id)?.removeAttribute(name));
}

function show() {
  const {fields = [], about, reason} = props.value || {};
  fields.forEach(clear);
  if (!about || !field(about)) return;
  const block = document.getElementById(about), line = document.createElement('p');
  line.className = 'cse-refusal';
  line.id = `${about}-refusal`;
  line.setAttribute('role', 'alert');
  line.textContent = reason;
  block.append(line);
  field(about).setAttribute('aria-invalid', 'true');
  field(about).setAttribute('aria-describedby', line.id);
  block.addEventListener('input', () => clear(about), {once: true});
}

watch('value', show);
