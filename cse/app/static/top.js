// Panels are popovers: a press on their button opens them, Escape or a press beside them closes them.
for (const id of ['corpus-panel', 'models-panel', 'share-panel']) {
  const made = () => {
    const panel = document.getElementById(id);
    if (panel) panel.popover = 'auto';
    return panel;
  };
  if (!made()) {
    const watching = new MutationObserver(() => made() && watching.disconnect());
    watching.observe(document.body, {childList: true, subtree: true});
  }
}
// A link within the page fills and runs what its address names, without loading the page again.
document.addEventListener('click', event => {
  const link = event.target.closest?.('a.cse-go');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  document.querySelectorAll(':popover-open').forEach(panel => panel.hidePopover());
  history.pushState(null, '', link.getAttribute('href'));
  window.dispatchEvent(new Event('cse-filled'));
});
