"""Model and dataset cards for the hub: front matter, content of the folder, and usage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cse.files.hub import split_revision
from cse.models.config import EMBEDDED, CheckpointConfig
from cse.models.names import BACKBONE, START

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

LIBRARY, TASK = "cse", "sentence-similarity"
ELSEWHERE = "sentence-transformers"
MASK_WARNING = (
    "The vector is read at the template's mask: `1_WordWeights` gives every other token the weight 0. Servers and "
    "converters that read only `1_Pooling/config.json` or a pooling's name average all tokens instead, which gives "
    "different, worse vectors."
)
HALF_NOTE = (
    "Use float32 or bfloat16: float16 cannot hold that weight of the mask. A folder of `cse export` can use float16."
)
BUNDLED_FROM, BUNDLED_LICENCE = "sentence-transformers/all-MiniLM-L6-v2", "apache-2.0"


@dataclass(frozen=True)
class CardFacts:
    """Facts that the files do not hold: the name to open them by, their licence, hub ids of their training data.

    Without `licence`, checkpoints on the bundled backbone get its licence, and others none.
    """

    name: str = "THIS_FOLDER"
    licence: str | None = None
    datasets: Sequence[str] = ()


def model_card(config: CheckpointConfig, facts: CardFacts | None = None) -> str:
    """Return a checkpoint's card in the hub's format, with its dev score as a `model-index` result."""
    from huggingface_hub import ModelCardData

    facts = facts or CardFacts()
    bundled = config.backbone.name == BACKBONE
    results = _results(config)
    data = ModelCardData(
        base_model=base_model(config.backbone.name), license=facts.licence or (BUNDLED_LICENCE if bundled else None),
        datasets=list(facts.datasets) or None, pipeline_tag=TASK,
        library_name=ELSEWHERE if opens_elsewhere(config) else LIBRARY,
        model_name=_title(config) if results else None, eval_results=results or None,
    )  # fmt: skip
    return f"---\n{data.to_yaml()}\n---\n{_body(config, facts)}"


def opens_elsewhere(config: CheckpointConfig) -> bool:
    """True if sentence-transformers opens a checkpoint's folder with the same vectors."""
    return config.whole and not config.reason


def openers(config: CheckpointConfig) -> str:
    """Return which tools open a checkpoint's folder, and why others cannot, as a phrase after its name."""
    if opens_elsewhere(config):
        return "opens in cse, sentence-transformers and transformers"
    if config.whole:
        return (
            f"opens in cse and, as a masked language model, in transformers, but not in sentence-transformers: "
            f"{config.method.name} {config.reason}"
        )
    return (
        "holds only what was learned and needs its backbone; opens in cse, and `export` writes a folder for other tools"
    )


def _title(config: CheckpointConfig) -> str:
    return f"{config.method.name}{' (supervised)' if config.method.supervised else ''}"


def base_model(backbone: str) -> str | None:
    """Return the hub id of a backbone or of the model it was trained from; None for a folder and if unknown."""
    if backbone == BACKBONE:
        return BUNDLED_FROM
    repository, _ = split_revision(backbone)
    return (repository or None) if not repository.startswith((".", "/")) and repository.count("/") <= 1 else None


def _results(config: CheckpointConfig) -> list[EvalResult]:
    """Return the dev score by which the state was selected, with its protocol; none for a run without dev pairs."""
    from huggingface_hub import EvalResult

    settings, dev = config.training.get("settings", {}), config.training.get("dev", {})
    if "best" not in dev or "held_out" in settings:  # whose score is no correlation
        return []
    protocol = {
        "seed": settings.get("seed"), "step": dev.get("best_step"), "selection": config.training.get("selection"),
        "note": "the state was selected on these pairs",
    }  # fmt: skip
    result = EvalResult(
        task_type=TASK, dataset_type="scored-pairs", dataset_split="dev",
        dataset_name=f"{settings.get('dev_pairs', 'all')} scored dev pairs of the run",
        metric_type="spearman_cosine", metric_name="Spearman x 100 of cosines", metric_value=dev["best"],
        metric_args={key: value for key, value in protocol.items() if value is not None},
    )  # fmt: skip
    return [result]


def _body(config: CheckpointConfig, facts: CardFacts) -> str:
    method, backbone = config.method, config.backbone
    recorded = {**config.training.get("settings", {}), **config.training.get("dev", {})}
    location = f"in the folder `{EMBEDDED}`" if backbone.name == f"./{EMBEDDED}" else backbone.name
    measure = f"percent; {config.training.get('selection')}" if "held_out" in recorded else "Spearman x 100"
    return "\n".join(
        [
            f"# {_title(config)}", "", f"{method.summary} ({method.citation}).", "",
            f"Backbone: {location} ({backbone.fingerprint}). Learned numbers: {config.learned_numbers:,}.",
            "", f"This folder {openers(config)}.", "", *([START, ""] if backbone.name == BACKBONE else []),
            "```python", "import cse", "", f'encoder = cse.load("{facts.name}")  # of a hub id, @COMMIT pins a version',
            'sentences = ["A man is playing a guitar.", "Someone plays an instrument."]',
            "vectors = encoder.encode(sentences, normalize_embeddings=True)", "print(float(vectors[0] @ vectors[1]))",
            "```", "", *(_elsewhere(config, facts) if opens_elsewhere(config) else ()),
            f"Settings and dev scores ({measure}):", "",
            *(f"- {key}: {value}" for key, value in recorded.items()), "",
        ]
    )  # fmt: skip


def _elsewhere(config: CheckpointConfig, facts: CardFacts) -> list[str]:
    """Return how sentence-transformers opens the folder, and which tools would read it wrongly."""
    mask = config.method.reading.at_mask
    return [
        "The same vectors without cse (the tokenizer adds the template):", "", "```python",
        "from sentence_transformers import SentenceTransformer", "",
        f'model = SentenceTransformer("{facts.name}")', "vectors = model.encode(sentences, normalize_embeddings=True)",
        "```", "", *([MASK_WARNING, HALF_NOTE, ""] if mask else []),
    ]  # fmt: skip


def index_card(facts: CardFacts, model: str, rows: int, factory: str) -> str:
    """Return the card of an index: `rows` sentences as vectors of `model` in a FAISS index of type `factory`."""
    from huggingface_hub import DatasetCardData

    data = DatasetCardData(
        license=facts.licence, tags=["cse-index", TASK], source_datasets=list(facts.datasets) or None
    )
    return "\n".join(
        [
            "---", data.to_yaml(), "---", "# A search index", "",
            f"{rows:,} sentences with the columns of their table, and vectors by {model} in a FAISS index ({factory}).",
            "", "```bash", f'cse search {facts.name} "A man is playing a guitar." -k 3', "```", "",
        ]
    )  # fmt: skip
