// Helpers that add elements to the page. Texts are only set as textContent.
function add(parent, tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  parent.appendChild(made);
  return made;
}

// The name of a model on the page, alone and after a mark of its colour.
const modelName = name => props.titles[name] || name;

function addModel(parent, name) {
  const chip = add(parent, 'i', 'cse-chip');
  if (props.colours[name]) chip.style.setProperty('--cse-model', props.colours[name]);
  else chip.dataset.model = name;  // its colour is in the styles of the line of models
  parent.append(modelName(name));
}

// Add a text to a list; a long one, as in cse/app/drawing/html.py, shows three lines until a click or a key opens it.
const LONG = 160;

function addText(parent, text) {
  if (text.length <= LONG) return add(parent, 'span', '', text);
  const made = add(parent, 'details', 'cse-long');
  add(add(made, 'summary'), 'span', '', text);
  return made;
}
