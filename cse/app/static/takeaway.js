// Save a text or base64 as a file, or show a text as code with a button to copy it.
const [said, code, copy] = ['p', 'pre', 'button'].map(tag => element.querySelector(`.cse-taken > ${tag}`));
const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));

function show() {
  const {file, type, text, lacking, notes, base64} = props.value || {};
  if (!text) return;
  code.hidden = copy.hidden = Boolean(type);
  code.textContent = type ? '' : text;
  const without = lacking.length ? ` Without a result: ${lacking.join(', ')}.` : '';
  said.textContent = type ? [`Saved ${file}.${without}`, ...(notes || [])].join(' ') : 'Runs against this app:';
  if (type) save(file, base64 ? new Blob([bytes(text)], {type}) : new Blob([text], {type: `${type};charset=utf-8`}));
}

copy.addEventListener('click', async () => {
  try {
    await navigator.clipboard.writeText(code.textContent);
    said.textContent = 'Copied.';
  } catch {  // a page that came by plain HTTP from another machine has no clipboard
    getSelection().selectAllChildren(code);
    said.textContent = 'Not copied: the browser does not allow it. The code is selected: press Ctrl+C.';
  }
});
watch('value', show);
