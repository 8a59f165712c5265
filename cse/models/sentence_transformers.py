"""Reading of the configuration of sentence-transformers models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cse.errors import ArtefactError
from cse.models.dense import RecordedDense, read_part, recorded_dense

if TYPE_CHECKING:
    from cse.encoding.encoder import Encoder

PIPELINE = ("Transformer", "Pooling", "Dense", "Normalize")  # the order of the modules that are read
RECORDED_POOLINGS = {"cls": "cls", "mean": "mean", "pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}


@dataclass(frozen=True)
class RecordedCalls:
    """Defaults of `encode` and `similarity`: prompts by name, the name of the default prompt, the dimensions kept,
    the similarity function, and the length in tokens to which the tokenizer truncates.
    """

    prompts: tuple[tuple[str, str], ...] = ()
    default_prompt_name: str | None = None
    truncate_dim: int | None = None
    similarity_fn_name: str | None = None
    tokens: int | None = None


@dataclass(frozen=True)
class RecordedPooling:
    """Pooling, maximum length in tokens (special ones included), call defaults and the linear layer after the pooling
    of a sentence-transformers model.
    """

    pooling: str
    max_length: int | None
    calls: RecordedCalls = RecordedCalls()
    dense: RecordedDense | None = None


def recorded_pooling(name: str) -> RecordedPooling | None:
    """Return the pooling that a model records; None for a plain transformers model.

    Vectors are not normalised, even if the pipeline ends with normalisation. Raises ArtefactError for a pipeline other
    than a backbone, a mean or first-token pooling, at most one linear layer, and at most one normalisation.
    """
    modules = _modules(name)
    if modules is None:
        return None
    kinds, order = dict(modules), [kind for kind, _ in modules]
    try:
        chosen = read_part(name, f"{kinds['Pooling']}/config.json") if "Pooling" in kinds else {}
        modes = [key for key, on in (chosen or {}).items() if key.startswith("pooling_mode_") and on is True]
        modes = [chosen["pooling_mode"]] if chosen and "pooling_mode" in chosen else modes
        transformer = kinds.get("Transformer", "")
        config = read_part(name, "sentence_bert_config.json") or {}
        length, lowers = config.get("max_seq_length"), config.get("do_lower_case")
    except (KeyError, TypeError, AttributeError) as error:
        raise ArtefactError(f"{name}: its sentence-transformers configuration is damaged ({error!r})") from error
    if order != [kind for kind in PIPELINE if kind in kinds] or len(modes) != 1 or modes[0] not in RECORDED_POOLINGS:
        raise ArtefactError(
            f"{name}: its pipeline ({', '.join(order)}; pooling {', '.join(map(str, modes)) or 'unknown'}) is not a "
            "backbone with mean or cls pooling and at most one linear layer; give `pooling` to read the backbone alone"
        )
    if transformer or lowers:
        odd = f"its backbone lies in {transformer}" if transformer else "it lower-cases its text itself"
        raise ArtefactError(f"{name}: {odd}, which is not supported; give `pooling` to read the backbone alone")
    dense = recorded_dense(name, kinds["Dense"]) if "Dense" in kinds else None
    return RecordedPooling(
        RECORDED_POOLINGS[modes[0]], length if isinstance(length, int) else None, recorded_calls(name), dense
    )


def module_paths(name: str) -> dict[str, str] | None:
    """Return the subfolder of each module in a model's `modules.json` by its class; None if there is none.

    Raises ArtefactError for a damaged file.
    """
    modules = _modules(name)
    return None if modules is None else dict(modules)


def _modules(name: str) -> list[tuple[str, str]] | None:
    """Class and subfolder of each module in order; None without a `modules.json`."""
    modules = read_part(name, "modules.json")
    try:
        return modules and [(module["type"].rsplit(".", 1)[-1], str(module["path"])) for module in modules]
    except (KeyError, TypeError, AttributeError) as error:
        raise ArtefactError(f"{name}: its sentence-transformers configuration is damaged ({error!r})") from error


def recorded_calls(name: str) -> RecordedCalls:
    """Return the defaults of a sentence-transformers model's calls. Raises ArtefactError for a damaged file."""
    file = "config_sentence_transformers.json"
    value = read_part(name, file) or {}
    try:
        prompts = tuple((str(key), str(text or "")) for key, text in (value.get("prompts") or {}).items())
        default, kept, function = map(value.get, ("default_prompt_name", "truncate_dim", "similarity_fn_name"))
    except AttributeError as error:
        raise ArtefactError(f"{name}: its {file} is damaged ({error}); copy it again") from error
    if default is not None and default not in dict(prompts):
        raise ArtefactError(f"{name}: {file} has no prompt for its default_prompt_name {default!r}; copy it again")
    tokens = (read_part(name, "tokenizer_config.json") or {}).get("model_max_length")  # version 6 records a length here
    return RecordedCalls(prompts, default, kept, function, tokens if isinstance(tokens, int) else None)


def call_as(recorded: RecordedCalls, encoder: Encoder, place: str) -> None:
    """Give an encoder the recorded defaults; a prompt of another name stays.

    Raises ArtefactError, beginning with `place`, for a similarity function or length that it cannot have.
    """
    encoder.prompts |= dict(recorded.prompts)
    encoder.default_prompt_name, encoder.truncate_dim = recorded.default_prompt_name, recorded.truncate_dim
    try:
        encoder.similarity_fn_name, encoder.max_seq_length = recorded.similarity_fn_name, recorded.tokens
    except ValueError as error:
        raise ArtefactError(f"{place}: its own {error}") from error
