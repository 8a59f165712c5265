// The state of the maps. The scripts of this folder share one scope (cse/app/places/clusters.py). Texts are only set as textContent.
const root = element.querySelector('.cse-maps');
const still = window.matchMedia('(prefers-reduced-motion: reduce)');
const state = {
  count: 2,        // of maps side by side
  shown: [],       // the models of the maps, also of those that are not drawn yet
  active: -1,      // the point under the pointer or reached by a key
  pinned: -1,
  pointed: -1,     // the entry under the pointer in the legend
  by: '',          // the colouring
  filters: [],     // {kind, title, points}, the newest last
  lassoing: false, // the next drag is a lasso
};
let models = [], columns = [], lengths = [];
let panes = [], parts = {};         // the maps side by side: {map, canvas, frame, tip, names, points}
let painted = {names: [], of: () => []};
let visible = new Uint8Array(0);    // 1 for the points that all filters have

const text = index => props.value.texts[index];
const count = () => props.value.texts.length;
const shownNames = () => panes.map(pane => pane.map.name);

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
  const near = words(map.near), width = near.length / count();
  return {
    name: map.name, points: Float32Array.from(words(map.xy), step => step / 65535), lost: bytes(map.lost), of: bytes(map.of),
    near: index => [...near.subarray(index * width, (index + 1) * width)],
  };
}

// How many of a text's nearest texts both maps have, for each text.
function shared(one, other) {
  return Uint8Array.from({length: count()}, (_, index) => {
    const list = other.near(index);
    return one.near(index).filter(near => list.includes(near)).length;
  });
}
