"""Checkpoints of one's own as columns: the path of a folder, or a .zip that is dropped on the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import gradio as gr

from cse.app.drawing import html
from cse.app.drawing.components import NUMBERS
from cse.app.train_tab.results import LANE, attach
from cse.app.training.opened import ARCHIVES_REFUSED, FOLDERS_REFUSED, OFFERED, UNOWNED
from cse.app.training.rules import Rules

if TYPE_CHECKING:
    from cse.app.state.app_state import AppState
    from cse.app.training.outcome import Made
    from cse.app.training.trainings import Trainings

TAKEN = (
    "A checkpoint of this project, a sentence-transformers model or a backbone: safetensors and JSON alone are read, "
    "never a pickle."
)


class OwnFiles(NamedTuple):
    """`attached` changes when a model became a column; the `components` depend on what a client may."""

    attached: gr.State
    components: Sequence[gr.components.Component | gr.Row]

    @staticmethod
    def permitted(rules: Rules, owner: Rules) -> list[Any]:
        """Return the updates of the components by the rules for a client."""
        shown = [gr.update(visible=visible) for visible in (rules.allowed, rules.own, rules.allowed)]
        return [html.hint(terms(rules, owner)), *shown]


def terms(rules: Rules, owner: Rules) -> str:
    """Return which checkpoints a client may open, by the rules for it and for the owner."""
    if rules.own:
        return TAKEN
    if not owner.allowed:
        return UNOWNED
    return f"{TAKEN if rules.allowed else ARCHIVES_REFUSED} {FOLDERS_REFUSED if owner.own else OFFERED}"


def own_files(state: AppState, trainings: Trainings, key: gr.Textbox) -> OwnFiles:
    """Add the form, as visitors see it."""
    rules, owner, attached = trainings.visitors, trainings.owner, gr.State(0)
    with gr.Accordion("Open a checkpoint of your own", open=False, elem_id="own-model"):
        permission = gr.HTML(html.hint(terms(rules, owner)), apply_default_css=False)
        if not owner.allowed:
            return OwnFiles(attached, [])
        with gr.Row(equal_height=True, visible=rules.allowed) as row:
            folder = gr.Textbox("", label="Folder on this computer", scale=3, min_width=240, visible=rules.own)
            file = gr.File(label="Or a .zip of it", file_types=[".zip"], scale=2, min_width=240, height=120)
            name = gr.Textbox("", label="Name of the column", placeholder="as the folder", scale=2, min_width=180)
        button = gr.Button("Open it", scale=0, min_width=130, visible=rules.allowed)
        status = gr.HTML("", apply_default_css=False, elem_id="own-model-said")

    def open_it(folder: str, path: str | None, name: str, key: str) -> tuple[Any, ...]:
        try:
            made = unpacked(trainings, key, path, name) if path else trainings.opened.folder(folder)
            column = attach(state, made, name.strip())
        except (ValueError, OSError) as error:
            return html.alert(str(error)), gr.skip(), None
        if column is None:
            return html.alert(f"{made.name} is on your page already."), gr.skip(), None
        return (
            html.hint(f"{column.name} is a column of your page now. Press a tab's button again to see it there."),
            next(NUMBERS),
            None,
        )

    button.click(open_it, [folder, file, name, key], [status, attached, file], **LANE)
    return OwnFiles(attached, [permission, row, folder, button])


def unpacked(trainings: Trainings, key: str, path: str, name: str) -> Made:
    """Return the model in an uploaded archive, which is deleted."""
    archive = Path(path)
    try:
        return trainings.opened.unpack(key, archive, name.strip() or archive.stem)
    finally:
        archive.unlink(missing_ok=True)
