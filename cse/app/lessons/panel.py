"""The panel of lessons beside the page, below it on a narrow screen, and the list that opens them."""

from __future__ import annotations

from typing import Any

import gradio as gr

from cse.app.drawing import html
from cse.app.drawing.components import script
from cse.app.drawing.glossary import sheet
from cse.app.forms.events import PRIVATE
from cse.app.lessons.lesson import LESSON, Lesson, address
from cse.app.lessons.reveal import answered
from cse.app.lessons.tours import LESSONS
from cse.app.state.app_state import AppState

SHEET = "lessons"  # the id of the list
REVEAL = "watch('value', () => window.dispatchEvent(new CustomEvent('cse-revealed', {detail: props.value})));"


def lessons_html() -> str:
    """Return a button that opens the list of lessons, and the list."""
    items = "".join(
        f'<li><a href="?{LESSON}={lesson.name}">{html.escape(lesson.title)}</a><p>{html.escape(lesson.about)}</p></li>'
        for lesson in LESSONS
    )
    about = "<p>Guided tours of this page. You guess first, then the models answer.</p>"
    return f'<button type="button" class="cse-lessons" popovertarget="{SHEET}">Lessons</button>' + sheet(
        SHEET, "Lessons", f'{about}<ol class="cse-list-of-lessons">{items}</ol>'
    )


def plain_lesson(lesson: Lesson) -> dict[str, Any]:
    """Return a lesson as JSON values for lessons.js, with the address of each step."""
    steps = [
        {
            "title": step.title, "text": step.text, "question": step.question, "shows": step.shows,
            "choices": [[key, choice.label] for key, choice in step.choices.items()],
            "measured": step.measure is not None, "address": address(lesson, number),
        }
        for number, step in enumerate(lesson.steps, start=1)
    ]  # fmt: skip
    return {"name": lesson.name, "title": lesson.title, "steps": steps}


def lesson_panel(state: AppState) -> None:
    """Add the panel, which shows the step that the address names."""
    panel = gr.HTML(
        "", html_template='<section class="cse-lesson" aria-label="Lesson" hidden></section>', elem_id="lesson",
        js_on_load=script("elements", "lessons"), apply_default_css=False, lessons=list(map(plain_lesson, LESSONS)),
    )  # fmt: skip
    answer = gr.HTML({}, html_template="", js_on_load=REVEAL, visible="hidden", apply_default_css=False)

    def reveal(event: gr.EventData) -> dict[str, Any]:
        sent = event._data if isinstance(event._data, dict) else {}
        place = {name: sent.get(name) for name in ("lesson", "step", "guess")}
        try:
            lines = answered(state, *place.values())
        except ValueError as error:
            lines = {"outcome": str(error), "numbers": [], "conclusion": "", "answer": "", "right": None}
        return {**place, **lines}

    panel.select(reveal, None, answer, trigger_mode="multiple", show_progress="hidden", **PRIVATE)
