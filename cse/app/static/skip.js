// The first stop of the Tab key: it goes on from the chosen tab, past the models and the corpus.
element.querySelector('.cse-skip').addEventListener('click', event => {
  event.preventDefault();  // the address stays as it is
  document.querySelector('[role="tab"][aria-selected="true"]').focus();
});
