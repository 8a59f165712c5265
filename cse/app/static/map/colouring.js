// Colourings of the points. Each has the names of its entries, the entry `of` each point, and a title.
const STEPS = 5;  // of an ordered colouring, beside none

const joined = names => names.slice(0, 3).join(' ');

function byGroup() {
  const {of, words: found, labels: most, notes: cut} = current().groups;
  const notes = most.map(label => (label ? `${Math.round(100 * label[1])} % ${label[0]}` : ''));
  const half = Math.max(1, Math.floor(of.length / 2)), count = `${found.length} group${found.length === 1 ? '' : 's'}`;
  const title = found.length < half ? `${count} by k-means` : `${count} by k-means, at most half as many as texts`;
  return {title: [title, ...cut].join('. '), names: found.map((each, place) => joined(each) || `group ${place + 1}`), of, notes, named: true};
}

function byLabel() {
  return {title: 'Labels', names: props.value.names, of: labels, named: !props.value.joined, missing: props.value.unlabelled};
}

// Fifths of the texts by their length in characters; equal lengths stay together.
function byLength() {
  const sorted = [...lengths].sort((one, other) => one - other);
  const ends = [...new Set(Array.from({length: STEPS}, (_, step) => sorted[Math.ceil((step + 1) * sorted.length / STEPS) - 1]))];
  const names = ends.map((end, place) => (place ? `${ends[place - 1] + 1} to ${end}` : `up to ${end}`));
  return {title: 'Characters', names, of: lengths.map(length => ends.findIndex(end => length <= end)), ordered: true};
}

const steps = shares => Uint8Array.from(shares, share => Math.ceil(share / 255 * STEPS - 0.01));

function byLoss() {
  const names = ['all shown', ...Array.from({length: STEPS}, (_, step) => `${20 * step || 1} to ${20 * step + 20} % not shown`)];
  return {title: 'Nearest ten texts that the map does not show around a point', names, of: steps(current().lost), ordered: true};
}

function byDisagreement(place) {
  const {models, shares} = props.value.differing[place];
  const names = ['same five neighbours', ...Array.from({length: STEPS - 1}, (_, step) => `${step + 1} of 5 differ`), 'no neighbour shared'];
  return {title: `${modelName(models[0])} and ${modelName(models[1])}: nearest five texts that differ`, names, of: steps(bytes(shares)), ordered: true};
}

// The choices: key, label and function. Without a chosen one the first is used.
function colourings() {
  const differing = props.value.differing.map(({models}, place) => [
    `differing ${place}`, `Disagreement: ${models.map(modelName).join(', ')}`, () => byDisagreement(place)]);
  const labelled = props.value.names.length ? [['label', 'Label', byLabel]] : [];
  const grouped = [['group', 'Group', byGroup]];
  return [
    ...(props.value.joined ? [...labelled, ...grouped] : [...grouped, ...labelled]),
    ['length', 'Length', byLength], ...differing, ['lost', 'Neighbours lost by the map', byLoss],
  ];
}

function paint() {
  const all = colourings(), [key, , made] = all.find(([each]) => each === state.by) || all[0];
  state.by = key;
  painted = made();
  painted.sizes = new Uint32Array(painted.names.length);
  painted.of.forEach(entry => { painted.sizes[entry] += 1; });
  showLegend();
  showNames();
  redraw();
}
