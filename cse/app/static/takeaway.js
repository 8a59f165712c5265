// Save a text as a file, or show it as code with a button to copy it.
const [said, code, copy] = ['p', 'pre', 'button'].map(tag => element.querySelector(`.cse-taken > ${tag}`));

function show() {
  const {file, type, text, lacking} = props.value || {};
  if (!text) return;
  code.hidden = copy.hidden = Boolean(type);
  code.textContent = type ? '' : text;
  const without = lacking.length ? ` Without a result: ${lacking.join(', ')}.` : '';
  said.textContent = type ? `Saved ${file}.${without}` : 'Runs against this app:';
  if (type) save(file, new Blob([text], {type: `${type};charset=utf-8`}));
}

copy.addEventListener('click', () => {
  navigator.clipboard.writeText(code.textContent);
  said.textContent = 'Copied.';
});
watch('value', show);
