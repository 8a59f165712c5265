"""Tables of the papers without scores: settings, which are constants of this project, and words at [MASK]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from cse.errors import command_line
from cse.evaluation.token_bias import BYTE_FREQUENT, WORDPIECE_FREQUENT
from cse.methods.presets import PUBLISHED, preset
from cse.methods.templates import NEGATIVE, POSITIVE
from cse.models.loading import load
from cse.models.names import resolve_backbone

WORD_SENTENCES = (
    "i am sad.", "i am not happy.", "the man is playing the guitar.", "the man is playing the piano.",
)  # fmt: skip
SHAPES = {"bert-base": (12, 768), "bert-large": (24, 1024), "roberta-base": (12, 768), "roberta-large": (24, 1024)}


def _table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    cells = [headings, ["---"] * len(headings), *([str(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(row)} |" for row in cells]


def settings(name: str) -> list[str]:
    """The published settings of a method on each backbone (`presets.PUBLISHED`)."""
    rows = []
    for method, supervised, backbone in PUBLISHED:
        if method == name and backbone in SHAPES:
            made, config = preset(name, backbone, supervised)
            kind = "supervised" if supervised else "unsupervised"
            shown = (config.batch_size, f"{config.learning_rate:g}", config.epochs, config.eval_every)
            weight = f"{made.mlm_weight:g}" if made.mlm_weight else ""
            rows.append((backbone, kind, *shown, made.reading.prefix or "", weight))
    headings = (
        "backbone",
        "training",
        "batch",
        "learning rate",
        "epochs",
        "steps between evaluations",
        "prefix",
        "MLM",
    )
    return _table(headings, rows)


def prefix_parameters() -> list[str]:
    """DCPCSE's numbers of learned parameters: the prefix (keys and values in every layer) and the training head."""
    rows = []
    for name, supervised, backbone in PUBLISHED:
        if name == "dcpcse" and backbone in SHAPES:
            layers, width = SHAPES[backbone]
            length = preset(name, backbone, supervised)[0].reading.prefix
            learned = (f"{length * 2 * layers * width:,}", f"{width * (width + 1):,}")
            rows.append((backbone, "supervised" if supervised else "unsupervised", length, *learned))
    return _table(("backbone", "training", "prefix", "numbers of the prefix", "of the training head"), rows)


def biased_tokens() -> list[str]:
    """The 36 frequent tokens that are removed, for BERT and RoBERTa."""
    shown = {"BERT": WORDPIECE_FREQUENT, "RoBERTa": BYTE_FREQUENT}
    return _table(("vocabulary", "tokens"), [(name, f"`{' '.join(tokens)}`") for name, tokens in shown.items()])


def prompts() -> list[str]:
    """PromptBERT's templates by backbone, the one used for encoding first."""
    rows = []
    for backbone in ("bert-base", "roberta-base"):
        for supervised in (False, True):
            views = preset("promptbert", backbone, supervised)[0].views
            texts = dict.fromkeys(f"`{view[0].text}`" for view in views)
            rows.append((backbone, "supervised" if supervised else "unsupervised", ", ".join(texts)))
    return _table(("backbone", "training", "templates"), rows)


def prototypes() -> list[str]:
    """ConPVP's positive and negative templates, as released."""
    kinds = {"positive": POSITIVE, "negative": NEGATIVE}
    return _table(("kind", "template"), [(kind, f"`{each.text}`") for kind, known in kinds.items() for each in known])


def likeliest_words(backbone: str) -> list[str]:
    """PromptBERT's Table 7: the five likeliest words at [MASK] of its sentences, before and after denoising.

    `backbone` is untrained. Raises as `cse.load` does.
    """
    encoder = load(resolve_backbone(backbone).name, pooling="prompt")
    rows = [
        (
            sentence,
            *(" ".join(token for token, _ in encoder.top_tokens(sentence, 5, denoise)) for denoise in (False, True)),
        )
        for sentence in WORD_SENTENCES
    ]
    return _table(("sentence", "words", "words, denoised"), rows)


def word_commands(backbone: str) -> list[str]:
    """The commands that print the words of `likeliest_words`: two per sentence, without and with denoising."""
    words = ["tokens", "--model", backbone, "--pooling", "prompt"]
    return [command_line(*words, text, *more) for text in WORD_SENTENCES for more in (["--no-denoise"], [])]


WORDS = ("promptbert", "7")
LISTINGS: dict[tuple[str, str], Callable[[], list[str]]] = {
    ("promptbert", "11"): biased_tokens,
    ("promptbert", "13"): prompts,
    ("promptbert", "14"): partial(settings, "promptbert"),
    ("dcpcse", "3"): prefix_parameters,
    ("dcpcse", "4"): partial(settings, "dcpcse"),
    ("conpvp", "1"): prototypes,
    ("conpvp", "2"): partial(settings, "conpvp"),
}
