"""Which template suits a backbone before any training: PromptBERT's greedy search (section 4.2, Table 4) or a list.

A template is scored by the Spearman correlation of STS-B dev with the untrained backbone's vectors at [MASK].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from cse.benchmark.published import TEMPLATES
from cse.data import Pair, text_lines
from cse.encoder import Encoder
from cse.evaluation.metrics import spearman
from cse.evaluation.sts import with_final_period
from cse.methods import UNTRAINED, When
from cse.templates import Template

Score = Callable[[Template], float]

RELATIONS = ("", "is ", "mean ", "means ")  # stage 1: between [X] and [MASK]
FRAMES = ("This [X]", "This sentence of [X]", 'This sentence of "[X]"', 'This sentence : "[X]"')  # stage 2: around [X]


def published(template: Template) -> float | None:
    """Table 4's number of a template, whatever its spaces; None where it has none."""
    scores = {_squeezed(text): score for text, score in TEMPLATES.items()}
    return scores.get(_squeezed(template.text))


def greedy(score: Score) -> dict[Template, float]:
    """The scores of Table 4's search in its order: the relations, then the frames with the best relation."""
    relations = {relation: Template(f"[X] {relation}[MASK] .") for relation in RELATIONS}
    scores = {template: score(template) for template in relations.values()}
    best = max(RELATIONS, key=lambda relation: scores[relations[relation]])
    for frame in FRAMES:
        template = Template(f"{frame} {best}[MASK] .")
        scores[template] = score(template)
    return scores


def read_templates(path: Path) -> list[Template]:
    """The templates of a text file, one a line; empty lines are skipped.

    Raises ValueError with file and line for a template without exactly one [X] and one [MASK], for one with [P] or
    one that is there twice, and for a file without any.
    """
    found: dict[str, int] = {}
    for number, line in enumerate(text_lines(path), start=1):
        text = line.strip()
        if not text:
            continue
        if (text.count("[X]"), text.count("[MASK]")) != (1, 1):
            raise ValueError(f"{path}: line {number}: {text!r} needs one [X] and one [MASK]")
        if "[P]" in text:
            raise ValueError(f"{path}: line {number}: [P] is a learned vector, an untrained backbone has none; drop it")
        if text in found:
            raise ValueError(f"{path}: line {number} repeats line {found[text]}: {text!r}; remove one of them")
        found[text] = number
    if not found:
        raise ValueError(f'{path}: no template in it; give lines such as This sentence : "[X]" means [MASK].')
    return [Template(text) for text in found]


def dev_score(encoder: Encoder, pairs: Sequence[Pair], *, denoise: bool = False, final_period: bool = False) -> Score:
    """A function from a template to Spearman x 100 of the pairs, two decimals, with `encoder`'s backbone.

    The vectors are those at [MASK], with `denoise` minus the template's bias. `final_period` ends sentences as
    PromptBERT's released evaluation does.
    """
    prompt = replace(UNTRAINED["prompt"], denoise=When.ALWAYS if denoise else When.NEVER)
    if final_period:
        pairs = [(grade, with_final_period(first), with_final_period(second)) for grade, first, second in pairs]

    def score(template: Template) -> float:
        method = replace(prompt, views=((template,),))
        asked = Encoder(encoder.model, encoder.tokenizer, method, name=template.text)
        return round(spearman(lambda texts: asked.encode(texts, batch_size=128), pairs), 2)

    return score


def _squeezed(text: str) -> str:
    return "".join(text.split())
