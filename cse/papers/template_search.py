"""Which template suits a backbone before any training: PromptBERT's greedy search (section 4.2, Table 4) or a list.

A template is scored by the Spearman correlation of STS-B dev with the untrained backbone's vectors at [MASK]. Scores
can be kept in a JSON file, from which a stopped search goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse.benchmark.published import TEMPLATES
from cse.evaluation.metrics import spearman
from cse.evaluation.sts import with_final_period
from cse.methods.method import UNTRAINED, When
from cse.methods.templates import Template
from cse.storage.checksums import DIGEST, check_digest, with_digest
from cse.storage.writing import write_json
from cse.text.sentences import Pair, text_lines

if TYPE_CHECKING:
    from cse.encoding.encoder import Encoder

Score = Callable[[Template], float]

RELATIONS = ("", "is ", "mean ", "means ")  # stage 1: between [X] and [MASK]
GENERATED = {"Also called [MASK]. [X]": 64.75}  # section 4.2: the best of 500 templates that T5 wrote
FRAMES = ("This [X]", "This sentence of [X]", 'This sentence of "[X]"', 'This sentence : "[X]"')  # stage 2: around [X]


@dataclass(frozen=True)
class SearchSettings:
    """What decides the scores of templates: the backbone by name and fingerprint, the pairs by file and digest."""

    model: str
    backbone: str
    dev: str
    pairs: int
    denoise: bool
    final_period: bool


@dataclass(frozen=True)
class TemplateScore:
    """Spearman x 100 of a template, and the number of PromptBERT's Table 4 where it has the template."""

    template: str
    score: float
    published: float | None


@dataclass
class TemplateScores:
    """The `scores` of templates by text, in the order they were made, under `settings`."""

    settings: SearchSettings
    scores: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The JSON object of a file of template scores."""
        return {**asdict(self.settings), "templates": [asdict(row) for row in compared(self.scores)]}


def read_scores(path: Path) -> TemplateScores:
    """The template scores that `path` holds. Raises ValueError, naming it, for anything else and for damaged ones."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        scores = {row["template"]: float(row["score"]) for row in value["templates"]}
        settings = {key: item for key, item in value.items() if key not in ("templates", DIGEST)}
        found = TemplateScores(SearchSettings(**settings), scores)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a file of template scores ({error}); give another `json_output`") from error
    check_digest(value, path, "copy it again or remove its digest, or give another `json_output`")
    return found


def open_scores(path: Path | None, settings: SearchSettings) -> TemplateScores:
    """The scores that `path` already holds for the same settings; none for no path and for a file not yet there.

    Raises ValueError where the file holds anything else.
    """
    if path is None or not path.exists():
        return TemplateScores(settings)
    earlier = read_scores(path)
    if earlier.settings != settings:
        raise ValueError(
            f"{path}: holds scores of other settings ({asdict(earlier.settings)}); give another `json_output`"
        )
    return earlier


def resumed(score: Score, known: TemplateScores, path: Path | None, report: Callable[[str], None]) -> Score:
    """`score` that takes what is `known`, adds what is not and writes all to `path` after each new template.

    `report` gets a line for each template. The file is also written at once, so that a place that cannot be written
    is refused before the work; raises OSError there.
    """

    def save() -> None:
        if path is not None:
            write_json(path, with_digest(known.to_json()))

    def scored(template: Template) -> float:
        if template.text not in known.scores:
            known.scores[template.text] = score(template)
            save()
        report(f"{known.scores[template.text]:6.2f}  {template.text}")
        return known.scores[template.text]

    save()
    return scored


def compared(scores: Mapping[str, float]) -> list[TemplateScore]:
    """Scores by the text of their template, each beside the published one."""
    return [TemplateScore(text, score, published_score(Template(text))) for text, score in scores.items()]


def published_score(template: Template) -> float | None:
    """PromptBERT's number of a template, whatever its spaces; None where it has none."""
    scores = {_squeezed(text): score for text, score in (TEMPLATES | GENERATED).items()}
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
            raise ValueError(f"{path}: line {number}: {text[:80]!r} needs one [X] and one [MASK]")
        if "[P]" in text:
            raise ValueError(f"{path}: line {number}: [P] is a learned vector, an untrained backbone has none; drop it")
        if text in found:
            raise ValueError(f"{path}: line {number} repeats line {found[text]}: {text[:80]!r}; remove one of them")
        found[text] = number
    if not found:
        raise ValueError(f'{path}: no template in it; give lines such as This sentence : "[X]" means [MASK].')
    return [Template(text) for text in found]


def dev_score(encoder: Encoder, pairs: Sequence[Pair], *, denoise: bool = False, final_period: bool = False) -> Score:
    """A function from a template to Spearman x 100 of the pairs, two decimals, with `encoder`'s backbone.

    The vectors are those at [MASK], with `denoise` minus the template's bias. `final_period` ends sentences as
    PromptBERT's released evaluation does. The function raises ValueError where the pairs have no correlation.
    """
    from cse.encoding.encoder import Encoder

    prompt = replace(UNTRAINED["prompt"], denoise=When.ALWAYS if denoise else When.NEVER)
    if final_period:
        pairs = [(grade, with_final_period(first), with_final_period(second)) for grade, first, second in pairs]

    def score(template: Template) -> float:
        method = replace(prompt, views=((template,),))
        prompted = Encoder(encoder.model, encoder.tokenizer, method, name=template.text)
        name = f"the template {template.text!r}"
        return round(spearman(lambda texts: prompted.encode(texts, batch_size=128), pairs, name), 2)

    return score


def _squeezed(text: str) -> str:
    return "".join(text.split())
