"""How alike two sentences are to each model, and all pairs of a list as a heat map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import gradio as gr
import numpy as np

from cse.input_notes import input_notes
from cse.progress import Report, silent
from ui import html, validation
from ui.components import heading, result, submit
from ui.distribution import Placed, placed_html
from ui.events import PROGRESS, Run, guarded, private, reporter
from ui.links import Linked
from ui.models import Column, Failure, Models, divided
from ui.state import AppState

if TYPE_CHECKING:
    from cse.encoder import Encoder

LEAST, MOST = 2, 40
LABEL_WIDTH, CELL_WIDTH = 6.8, 1.875  # rem, as in style.css
PAIRS: dict[str, tuple[str, str]] = {
    "paraphrase": ("A man is playing a guitar on stage.", "Someone plays the guitar for an audience."),
    "negation": ("The restaurant is open on Sundays.", "The restaurant is not open on Sundays."),
    "word order": ("The dog chased the cat.", "The cat chased the dog."),
    "unrelated": ("She planted tomatoes in the garden.", "The train to Berlin leaves at noon."),
}
LESSONS = {
    "paraphrase": "Other words, the same event: this should be closer than almost every random pair.",
    "negation": "One word turns the meaning round. A model that places this pair high does not hear the word.",
    "word order": "The same words, another meaning. A model that places this pair high reads a bag of words.",
    "unrelated": "Nothing in common: this should lie among the random pairs.",
}
LIST = """A man is playing a guitar on stage.
Someone plays the guitar for an audience.
The restaurant is open on Sundays.
You can eat there on Sundays.
She planted tomatoes in the garden.
The train to Berlin leaves at noon."""
# Orange below zero, the page's own colour at zero, blue above: distinct for every kind of colour vision.
STOPS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
LIGHT_RAMP = np.array([[153, 52, 4], [246, 163, 83], [247, 248, 250], [107, 174, 214], [8, 48, 107]], np.float64)
DARK_RAMP = np.array([[255, 196, 128], [178, 98, 42], [30, 41, 59], [52, 116, 178], [170, 212, 255]], np.float64)
BLACK, WHITE = (0, 0, 0), (255, 255, 255)  # one of the two has a contrast of 4.58 or more with any colour


def similarity(models: Models, s1: str, s2: str) -> dict[str, float | Failure]:
    """Each model's cosine of the two sentences."""
    pair = pair_of(s1, s2)
    return models.apply(lambda column, encoder: cosine(encoder, pair))


def placed(
    state: AppState, s1: str, s2: str, report: Report = silent
) -> tuple[dict[str, Placed | Failure], dict[str, list[str]]]:
    """Each model's cosine of the two sentences among those of random pairs, and notes on each sentence."""
    from cse.calibration import histogram, percentile

    pair = pair_of(s1, s2)
    notes: dict[str, dict[str, list[str]]] = {"Sentence A": {}, "Sentence B": {}}

    def place(column: Column, encoder: Encoder) -> Placed:
        reference, found = state.demo.random_cosines(column, encoder), cosine(encoder, pair)
        for what, text in zip(notes, pair, strict=True):
            for note in input_notes(encoder, text):
                notes[what].setdefault(note, []).append(column.name)
        return Placed(found, percentile(found, reference), histogram(reference))

    answers = state.models.apply(place, report=report)
    count = len(divided(answers)[0])
    said = {
        what: [note if len(names) == count else f"{note} ({', '.join(names)})" for note, names in about.items()]
        for what, about in notes.items()
    }
    return answers, said


def pair_of(s1: str, s2: str) -> list[str]:
    """Two sentences with something in them."""
    return [validation.sentence(s1, "Sentence A"), validation.sentence(s2, "Sentence B")]


def cosine(encoder: Encoder, pair: list[str]) -> float:
    """An encoder's cosine of two sentences."""
    from cse.vectors import cosines

    vectors = encoder.encode(pair)
    return float(cosines(vectors[:1], vectors[1:])[0])


def heat_map(models: Models, text: str, report: Report = silent) -> tuple[list[str], dict[str, np.ndarray | Failure]]:
    """The N sentences of the list, and each model's (N, N) cosines."""
    sentences = validation.lines(text, LEAST, MOST)

    def matrix(column: Column, encoder: Encoder) -> np.ndarray:
        rows = encoder.encode(sentences, normalize_embeddings=True)
        return rows @ rows.T

    return sentences, models.apply(matrix, report=report)


def heat_maps_html(sentences: list[str], answers: Mapping[str, np.ndarray | Failure]) -> str:
    """A heat map per model."""
    width = max(html.WIDTH, LABEL_WIDTH + CELL_WIDTH * len(sentences))
    pages = {
        name: answer if isinstance(answer, Failure) else heat_map_html(sentences, answer, name)
        for name, answer in answers.items()
    }
    return html.columns(pages, str, width=width)


def heat_map_html(sentences: list[str], matrix: np.ndarray, name: str) -> str:
    """A model's table of coloured numbers, the sentences at its left."""
    head = '<th scope="col"><span class="cse-hidden">sentence</span></th>'
    head += "".join(f'<th scope="col">{number}</th>' for number in range(1, len(sentences) + 1))
    rows = []
    for number, (sentence, cosines) in enumerate(zip(sentences, matrix, strict=True), start=1):
        cells = "".join(cell_html(float(cosine)) for cosine in cosines)
        label = html.shortened(sentence)
        rows.append(f'<tr><th scope="row" title="{label}"><b>{number}</b> {label}</th>{cells}</tr>')
    return html.table(f"<tr>{head}</tr>{''.join(rows)}", f"Cosines of all pairs, {name}", "cse-heat")


def cell_html(cosine: float) -> str:
    """One cell with its colour and that of its text in the light (l, m) and in the dark scheme (d, e)."""
    colours = (*cell_colours(cosine), *cell_colours(cosine, DARK_RAMP))
    style = ";".join(f"--{name}:#{bytes(colour).hex()}" for name, colour in zip("lmde", colours, strict=True))
    shown = f"{cosine:.2f}".replace("0.", ".", 1) if abs(cosine) < 0.995 else f"{cosine:.0f}"
    return f'<td style="{style}">{shown}</td>'


def cell_colours(cosine: float, ramp: np.ndarray = LIGHT_RAMP) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Background and the text colour that can be read on it, each (red, green, blue) in 0..255."""
    background = tuple(round(float(np.interp(cosine, STOPS, channel))) for channel in ramp.T)
    return background, max((BLACK, WHITE), key=lambda text: contrast(text, background))


def contrast(first: tuple[int, ...], second: tuple[int, ...]) -> float:
    """The contrast ratio of two colours as WCAG 2 defines it, 1 to 21."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: tuple[int, ...]) -> float:
    """WCAG 2's relative luminance of a colour, 0 to 1."""
    share = np.array(colour) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def similarity_tab(
    state: AppState, pair: dict[str, Placed] | None = None, matrices: dict[str, np.ndarray] | None = None
) -> tuple[Linked, Run]:
    """The tab's content with its first results; what belongs into the address and fills its list comes back."""
    return pair_section(state, pair), list_section(state, matrices)


def pair_section(state: AppState, first: dict[str, Placed] | None) -> Linked:
    """Two sentences, and a row per model on one axis."""
    heading("Two sentences")
    with gr.Row(equal_height=True):
        one, other = (
            gr.Textbox(text, label=f"Sentence {name}", scale=4, min_width=240)
            for name, text in zip("AB", PAIRS["paraphrase"], strict=True)
        )
        button = submit("Compare")
    pairs = [list(pair) for pair in PAIRS.values()]
    examples = gr.Examples(pairs, [one, other], label="Try", example_labels=list(PAIRS), api_visibility="private")
    hint = html.hint("The cosine of each model appears here.")
    output = result("similarity", placed_html(first, {}, LESSONS["paraphrase"]) if first else hint)

    def compare(s1: str, s2: str, progress: gr.Progress = PROGRESS) -> str:
        lesson = next((LESSONS[name] for name, pair in PAIRS.items() if pair == (s1, s2)), "")
        return placed_html(*placed(state, s1, s2, reporter(progress)), lesson)

    run = Run(guarded(compare), [one, other], [output])
    triggers = (button.click, one.submit, other.submit)
    private(triggers, run, examples)
    return Linked(("a", "b"), run, triggers)


def list_section(state: AppState, first: dict[str, np.ndarray] | None) -> Run:
    """A list of sentences and a heat map per model."""
    heading("All pairs of a list")
    with gr.Row(equal_height=True):
        box = gr.Textbox(
            LIST, label=f"Sentences, one per line ({LEAST} to {MOST})", lines=6, max_lines=12, scale=4, min_width=240
        )
        button = submit("Draw heat maps")
    hint = html.hint("A heat map of cosines per model appears here.")
    output = result("heat-maps", heat_maps_html(LIST.splitlines(), first) if first else hint)

    def draw(text: str, progress: gr.Progress = PROGRESS) -> str:
        return heat_maps_html(*heat_map(state.models, text, reporter(progress)))

    run = Run(guarded(draw), [box], [output])
    private([button.click, box.submit], run)
    return run
