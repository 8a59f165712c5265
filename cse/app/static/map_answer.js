// Pass the server's description of selected points on to the map, and save their rows as a file.
watch('value', () => {
  const {file, text, selection, answers} = props.value || {};
  if (file) save(file, new Blob([text], {type: 'text/csv;charset=utf-8'}));
  else if (selection) window.dispatchEvent(new CustomEvent('cse-selection', {detail: {selection, answers}}));
});
