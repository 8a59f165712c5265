// Names of the legend's entries at the median of their points; names that would overlap are moved or hidden.
const OFFSETS = [0, -1, 1, -2, 2, -3, 3];  // moves of a name, in its heights

const apart = (one, other) => one.left >= other.right || other.left >= one.right
  || one.top >= other.bottom || other.top >= one.bottom;

function median(numbers) {
  return numbers.sort((one, other) => one - other)[numbers.length >> 1];
}

// Make a name for each entry, where the colouring is one of names.
function showNames() {
  parts.names.forEach(name => name.label.remove());
  const members = painted.names.map(() => []);
  painted.of.forEach((entry, index) => members[entry].push(index));
  parts.names = (painted.named ? painted.names : []).flatMap((title, entry) => {
    if (!members[entry].length || entry === painted.missing) return [];
    const label = add(parts.frame, 'span', 'cse-name', title);
    label.setAttribute('aria-hidden', 'true');  // the legend names them
    const at = [0, 1].map(axis => median(members[entry].map(index => current().points[2 * index + axis])));
    return [{label, entry, at}];
  });
}

function box(x, y, width, height) {
  return {left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2};
}

function placeNames() {
  const [width, height] = size(), taken = [];
  parts.names.forEach(({label, entry, at}) => {
    const [x, y] = onScreen(at), {offsetWidth, offsetHeight} = label;
    const free = OFFSETS.map(step => box(x, y + step * offsetHeight, offsetWidth, offsetHeight))
      .find(spot => taken.every(other => apart(spot, other)));
    const seen = x > 0 && y > 0 && x < width && y < height && free !== undefined;
    label.style.visibility = seen ? '' : 'hidden';
    label.style.borderBottomColor = colour(entry);
    if (!seen) return;
    taken.push(free);
    const left = Math.min(Math.max(free.left, 0), width - offsetWidth);
    label.style.transform = `translate(${left}px, ${Math.min(Math.max(free.top, 0), height - offsetHeight)}px)`;
  });
}
