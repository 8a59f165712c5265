// Sort a table by a click on a column's heading; missing figures stay at the end.
const OPPOSITE = {ascending: 'descending', descending: 'ascending'};

function order(head) {
  return OPPOSITE[head.getAttribute('aria-sort')] || head.dataset.first;
}

function compare(first, second, direction) {
  const sign = direction === 'ascending' ? 1 : -1;
  if (first === undefined || second === undefined) return (first === undefined) - (second === undefined);
  const numbers = [Number(first), Number(second)];
  return sign * (numbers.some(Number.isNaN) ? first.localeCompare(second) : numbers[0] - numbers[1]);
}

function sort(head) {
  const body = head.closest('table').tBodies[0], direction = order(head), place = head.cellIndex;
  const value = row => row.cells[place].dataset.value;
  const rows = [...body.rows].sort((one, other) => compare(value(one), value(other), direction));
  [...head.parentElement.cells].forEach(cell => cell.removeAttribute('aria-sort'));
  head.setAttribute('aria-sort', direction);
  body.append(...rows);
}

document.addEventListener('click', event => {
  const button = event.target.closest?.('.cse-sort');
  if (button) sort(button.closest('th'));
});
