// Keys for the buttons of a vote. They work while the buttons are visible and no field has the focus.
const FIELDS = 'input, textarea, select, [contenteditable], [role=slider], [role=listbox], [role=option]';

document.addEventListener('keydown', event => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(FIELDS)) return;
  const button = document.getElementById(`vote-${event.key.toLowerCase()}`);
  if (!button?.offsetParent || button.disabled) return;
  event.preventDefault();
  button.click();
});
