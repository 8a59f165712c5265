// Mark the line of a sentence in the chart, and its row in the list, when either is pointed at or has the focus.
function light(target) {
  const row = target && target.closest && target.closest('[data-row]');
  element.querySelectorAll('.cse-lit').forEach(part => part.classList.remove('cse-lit'));
  if (!row) return;
  element.querySelectorAll(`[data-row="${row.dataset.row}"]`).forEach(part => part.classList.add('cse-lit'));
}

const focused = () => element.contains(document.activeElement) ? document.activeElement : null;
element.addEventListener('pointerover', event => light(event.target));
element.addEventListener('focusin', event => light(event.target));
for (const kind of ['pointerleave', 'focusout']) element.addEventListener(kind, () => light(focused()));
