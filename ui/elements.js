// Elements of the page, made by its scripts. Texts are only set as textContent.
function add(parent, tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  parent.appendChild(made);
  return made;
}
