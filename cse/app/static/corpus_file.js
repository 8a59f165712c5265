async (corpus, key, model) => {
  const root = (window.gradio_config?.root ?? '').replace(/\/$/, '');
  const body = JSON.stringify({kind: 'KIND', corpus, key, model});
  const answer = await fetch(`${root}/corpus/files`, {method: 'POST', headers: {'Content-Type': 'application/json'}, body});
  if (!answer.ok) return {status: (await answer.json().catch(() => ({}))).detail || `The server answered ${answer.status}.`};
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await answer.blob());
  link.download = decodeURIComponent(answer.headers.get('Content-Disposition').split("''")[1]);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  return {status: `Saved ${link.download}.`};
}
