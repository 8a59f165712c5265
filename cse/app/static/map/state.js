// The state of the map. The scripts of this folder share one scope (cse/app/drawing/canvas.py). Texts are only set as textContent.
const root = element.querySelector('.cse-maps');
const still = window.matchMedia('(prefers-reduced-motion: reduce)');
const state = {
  chosen: '',      // the model of the large map
  active: -1,      // the point under the pointer or reached by a key
  pinned: -1,
  group: -1,       // the label under the pointer in the legend
  held: -1,        // the label pressed in the legend
  found: null,     // the set of points with the search words; null without words
  circled: null,   // points within the lasso
  lassoing: false, // the next drag is a lasso
  lossy: false,    // tint points by their lost neighbours
};
let maps = [], parts = {}, keys = [];

const current = () => maps.find(map => map.name === state.chosen);
const text = index => props.value.texts[index];
const topic = index => props.value.names[props.value.labels[index]];

function addButton(parent, className, content, act) {
  const button = add(parent, 'button', className, content);
  button.type = 'button';
  button.addEventListener('click', act);
  return button;
}

function bytes(base64) {
  return Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
}

function read(map) {
  if (map.error !== undefined) return map;
  const points = Float32Array.from(new Uint16Array(bytes(map.xy).buffer), step => step / 65535);
  const near = new Uint16Array(bytes(map.near).buffer), width = 2 * near.length / points.length;
  return {
    name: map.name, scores: map.scores, points, lost: Float32Array.from(bytes(map.lost), share => share / 255),
    near: index => [...near.subarray(index * width, (index + 1) * width)],
  };
}

// True if a point has the given label, if any, and is within the lasso, if any.
function kept(index, label = state.held) {
  return (label < 0 || props.value.labels[index] === label) && (state.circled === null || state.circled.has(index));
}

function dimmed(index) {
  return !kept(index, state.group >= 0 ? state.group : state.held) || (state.found !== null && !state.found.has(index));
}
