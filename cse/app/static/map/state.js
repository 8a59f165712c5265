// The state of the map. The scripts of this folder share one scope (cse/app/drawing/canvas.py). Texts are only set as textContent.
const root = element.querySelector('.cse-maps');
const still = window.matchMedia('(prefers-reduced-motion: reduce)');
const state = {
  chosen: '',      // the model of the large map
  wanted: '',      // the model that the visitor chose for it, whose map may not be drawn yet
  active: -1,      // the point under the pointer or reached by a key
  pinned: -1,
  pointed: -1,     // the entry under the pointer in the legend
  by: 'group',     // the colouring
  filters: [],     // {kind, title, points}, the newest last
  lassoing: false, // the next drag is a lasso
};
let maps = [], parts = {}, labels = [], lengths = [];
let painted = {names: [], of: []};  // the colouring in use
let visible = new Uint8Array(0);    // 1 for the points that all filters have

const current = () => maps.find(map => map.name === state.chosen);
const text = index => props.value.texts[index];
const count = () => props.value.texts.length;

function addButton(parent, className, content, act) {
  const button = add(parent, 'button', className, content);
  button.type = 'button';
  button.addEventListener('click', act);
  return button;
}

function bytes(base64) {
  return Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
}

function words(base64) {
  return new Uint16Array(bytes(base64).buffer);
}

function read(map) {
  if (map.error !== undefined) return map;
  const points = Float32Array.from(words(map.xy), step => step / 65535);
  const near = words(map.near), width = 2 * near.length / points.length;
  return {
    name: map.name, scores: map.scores, points, lost: bytes(map.lost),
    groups: {...map.groups, of: bytes(map.groups.of)},
    near: index => [...near.subarray(index * width, (index + 1) * width)],
  };
}

function dimmed(index) {
  return !visible[index] || (state.pointed >= 0 && painted.of[index] !== state.pointed);
}
