// Topic names at the median of their points, and numbers next to points; labels that would overlap are moved or hidden.
const OFFSETS = [0, -1, 1, -2, 2, -3, 3];  // moves of a name, in its heights

const apart = (one, other) => one.left >= other.right || other.left >= one.right
  || one.top >= other.bottom || other.top >= one.bottom;

function median(numbers) {
  return numbers.sort((one, other) => one - other)[numbers.length >> 1];
}

function middle(label) {
  const members = props.value.labels.flatMap((each, index) => (each === label ? [place(index)] : []));
  return [median(members.map(([x]) => x)), median(members.map(([, y]) => y))];
}

function box(x, y, width, height) {
  return {left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2};
}

function placeNames() {
  const width = side(), taken = [];
  parts.names.forEach((name, label) => {
    const [x, y] = middle(label), {offsetWidth, offsetHeight} = name;
    const free = OFFSETS.map(step => box(x, y + step * offsetHeight, offsetWidth, offsetHeight))
      .find(spot => taken.every(other => apart(spot, other)));
    const seen = x > 0 && y > 0 && x < width && y < width && free !== undefined;
    name.style.visibility = seen ? '' : 'hidden';
    name.style.borderBottomColor = state.lossy ? 'transparent' : colour(label);
    if (!seen) return;
    taken.push(free);
    const left = Math.min(Math.max(free.left, 0), width - offsetWidth);
    name.style.transform = `translate(${left}px, ${Math.min(Math.max(free.top, 0), width - offsetHeight)}px)`;
  });
}

function drawNumbers(context, size) {
  const style = getComputedStyle(root), taken = [];
  context.font = `600 12px ${style.fontFamily}`;
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  context.lineWidth = 3;
  context.strokeStyle = getComputedStyle(parts.canvas).backgroundColor;
  context.fillStyle = style.color;
  for (let i = 0; i < props.value.texts.length; i++) {
    const number = String(i + 1), [x, y] = place(i), width = context.measureText(number).width;
    const spot = box(x + size + 3 + width / 2, y, width, 12);
    if (!taken.every(other => apart(spot, other))) continue;
    taken.push(spot);
    context.globalAlpha = dimmed(i) ? 0.2 : 1;
    context.strokeText(number, spot.left, y);
    context.fillText(number, spot.left, y);
  }
  context.lineWidth = 1;
}
