"""One linear layer fitted on the vectors of a user's texts: principal components, weighted or towards neighbours."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cse.encoder.encoder import Encoder
from cse.files import hub
from cse.files.checksums import CHECKSUM_FILE, write_checksums
from cse.files.weights import SINGLE, find_weights, read_arrays
from cse.files.writing import read_json, write_json
from cse.methods.method import TRAINED_POOLINGS, Head, Pooling, When
from cse.models.fitted_texts import FITTED_TEXTS
from cse.models.loading import on_torch, open_model
from cse.models.names import Kind, ModelReference, location, model_folder
from cse.models.pipeline import PIPELINE_FILES
from cse.models.sentence_transformers import CALLS, TRANSFORMER, transformer_options
from cse.vectors import nearest_others, unit_rows

# With fewer a text is found less often by a short form of it (docs/own-text.md).
MAX_COMPONENTS, TEXTS_PER_COMPONENT = 256, 4  # the most that are kept by default; texts that each of them needs
MIN_TEXTS_WITH_NEIGHBOURS = 1000  # texts; with fewer, neighbours share too few labels (docs/own-text.md)
NEIGHBOURS = 5  # of a text, from that many texts on
OWN_SHARE, RIDGE = 0.5, 0.01  # of a text in its target; of the mean variance


@dataclass(frozen=True)
class Projection:
    """The `mean` (d,) that is subtracted from vectors, and the `components` (k, d) that then multiply them, in float64.

    `explained` is the share of the variance of the layer's outputs that the components keep. The components are
    weighted by their singular values (k,), relative to the first, the `spectrum`, to the power `exponent`.
    """

    mean: np.ndarray
    components: np.ndarray
    explained: float
    spectrum: np.ndarray
    exponent: float = 0.0

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The weight (k, d) and bias (k,) of the linear layer, float32, by the names of a head."""
        bias = -(self.components @ self.mean)
        return {"0.weight": self.components.astype(np.float32), "0.bias": bias.astype(np.float32)}

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """Return the (N, k) float32 projections of vectors (N, d), as the layer computes them."""
        weight, bias = self.arrays.values()
        return vectors.astype(np.float32) @ weight.T + bias


def fit_projection(
    vectors: np.ndarray,
    components: int | None = None,
    *,
    neighbours: int = 0,
    labels: Sequence[str] = (),
    exponent: float = 0.0,
) -> Projection:
    """Return the projection that suits vectors (N, d), on `components` axes: by default min(256, 2 d / 3, N / 4).

    With `neighbours` it moves each vector towards so many others. The target of a text is the mean of its own centred
    unit vector and the mean of those of its nearest others (database-side augmentation, Arandjelović and Zisserman
    2012, with equal weights); the layer is the ridge regression of the targets on the centred vectors (Hoerl and
    Kennard 1970). With `labels` (N), "" for none, the others are all texts of its label; a text without one stays
    where it is. Without both, the layer only centres. Its outputs are then projected on their first principal
    components (Jolliffe 2002, chapter 2), each with the sign that makes the largest number of its row positive, and
    multiplied by its singular value, relative to the first, to the power `exponent`: above 0 it stresses what texts
    have in common, below 0 what tells them apart (-1 whitens). Raises ValueError for vectors that are not finite, and
    for equal ones.
    """
    count, width = vectors.shape
    if components is None:
        components = max(1, min(MAX_COMPONENTS, 2 * width // 3, count // TEXTS_PER_COMPONENT))
    if not np.isfinite(vectors).all():
        raise ValueError("vectors are not finite; the model's weights may be damaged")
    mean = vectors.mean(axis=0, dtype=np.float64)
    centred = vectors.astype(np.float64) - mean
    scatter = centred.T @ centred  # (d, d)
    if np.trace(scatter) <= count * np.square(mean).sum() * np.finfo(np.float32).eps ** 2:
        raise ValueError("all texts have the same vector; give different texts")
    layer = np.eye(width)  # (d, d)
    if neighbours or len(labels):
        unit = unit_rows(vectors - mean.astype(np.float32))
        targets = OWN_SHARE * unit + (1 - OWN_SHARE) * _means(unit, neighbours, labels)
        ridge = RIDGE * np.trace(scatter) / width * layer
        layer = np.linalg.solve(scatter + ridge, centred.T @ targets.astype(np.float64))
    variances, turns = np.linalg.eigh(layer.T @ scatter @ layer)  # of the outputs, ascending
    chosen = (layer @ turns).T[::-1][:components]
    largest = np.abs(chosen).argmax(axis=1)
    signs = np.sign(np.take_along_axis(chosen, largest[:, None], axis=1))
    spectrum = np.sqrt(variances[::-1][:components].clip(variances[-1] * np.finfo(np.float32).eps))
    spectrum /= spectrum[0]
    explained = float(variances[::-1][:components].sum() / variances.clip(0).sum())
    return Projection(mean, chosen * signs * spectrum[:, None] ** exponent, explained, spectrum, exponent)


def fit_joined(vectors: np.ndarray, readings: int, **options: Any) -> Projection:
    """Return the projection (`fit_projection`) of so many joined readings, (N, d) together, as of equal lengths.

    The lengths of a reading hardly differ between texts, so it is divided by their mean, which is part of the layer.
    """
    parts = np.linalg.norm(vectors.reshape(len(vectors), readings, -1), axis=2).mean(axis=0)
    scale = np.repeat(1 / np.where(parts > 0, parts, 1), vectors.shape[1] // readings)
    fitted = fit_projection((vectors * scale).astype(np.float32), **options)
    return replace(fitted, mean=fitted.mean / scale, components=fitted.components * scale)


def _means(unit: np.ndarray, neighbours: int, labels: Sequence[str]) -> np.ndarray:
    """Return for each unit row (N, d) the mean of its nearest others or, with `labels`, of the rows of its label."""
    if len(labels):
        means = np.empty_like(unit)
        names, label_of = np.unique(labels, return_inverse=True)
        for number, name in enumerate(names):
            rows = label_of == number
            means[rows] = unit[rows].mean(axis=0) if name else unit[rows]
        return means
    return unit[nearest_others(unit, neighbours)].mean(axis=1)


PROJECTION_RECORD = "projection.json"
COPIED_FILES = (  # files other than weights that opening a model reads, here or in sentence-transformers
    "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.json", "vocab.txt", "merges.txt", "sentence_bert_config.json", "config_sentence_transformers.json",
)  # fmt: skip
MODEL_FILES = (
    *COPIED_FILES, *PIPELINE_FILES, PROJECTION_RECORD, FITTED_TEXTS, "README.md", "cse_export.json",
    "modeling_prefix.py", CHECKSUM_FILE,
)  # fmt: skip
PLAIN_POOLINGS = ("mean", "cls")
# Model types whose class takes `add_pooling_layer`.
POOLER_OPTION_TYPES = ("bert", "roberta", "xlm-roberta", "camembert")


def raw_vectors(encoder: Encoder, texts: Sequence[str]) -> np.ndarray:
    """Return the (N, d) vectors of texts, of all dimensions and not normalised."""
    if encoder.reading.normalised:
        encoder = encoder.reading_by(replace(encoder.reading, normalised=False))
    with encoder.truncate_embeddings(None):
        return encoder.encode(list(texts))


def check_projectable(reference: ModelReference, encoder: Encoder) -> None:
    """Raise ValueError for a model that sentence-transformers cannot hold with a linear layer after its pooling."""
    if encoder.reading.head_when is When.ALWAYS:
        raise ValueError(f"{encoder.name} has a linear layer or head already; give the model that it was fitted on")
    if reference.kind is Kind.BACKBONE and reference.pooling not in PLAIN_POOLINGS:
        raise ValueError(
            f"an adaptation reads a backbone by mean or cls, not {reference.pooling}; give one of them as `pooling`"
        )
    if reference.kind not in (Kind.BACKBONE, Kind.SENTENCE_TRANSFORMERS):
        from cse.models.pipeline_writer import reason_against

        if reason := reason_against(on_torch(encoder)):
            raise ValueError(f"{encoder.name} {reason}, so sentence-transformers cannot hold it with a projection")


def write_projected(
    reference: ModelReference, encoder: Encoder, projection: Projection, texts: int, target: Path
) -> None:
    """Write a model with a projection of the encoder's reading, fitted on so many texts, to an empty folder.

    Files of a backbone or a sentence-transformers model are copied; any other model is written as `cse export` does.
    """
    if reference.kind in (Kind.BACKBONE, Kind.SENTENCE_TRANSFORMERS):
        from cse.models.pipeline_writer import write_dense, write_modules

        modules = [kind for kind in copy_plain(reference, encoder, target) if kind != "Normalize"]
        write_dense(projection.arrays, Head.LINEAR, target / f"{len(modules)}_Dense")
        write_modules(target, [*modules, "Dense", *(["Normalize"] if encoder.reading.normalised else [])])
        calls = target / CALLS
        if calls.exists():  # all dimensions of the projection are kept
            write_json(calls, {**read_json(calls), "truncate_dim": None})
    else:
        from cse.encoder.heads import head_module
        from cse.models.export import fill_sentence_transformers

        headed, pooling = on_torch(open_model(reference)), encoder.reading.pooling  # opened for this, as it is changed
        headed.method = headed.method.replaced(head=Head.LINEAR, head_when=When.ALWAYS, pooling=pooling)
        headed.head = head_module(headed.reading.head_layers, projection.arrays, headed.model.config)
        headed.dim, headed.truncate_dim = len(projection.components), None  # all of them are kept
        fill_sentence_transformers(headed, target)
    record = {
        "components": len(projection.components), "texts": texts, "explained": round(projection.explained, 4),
        "start": encoder.name, "fingerprint": encoder.fingerprint, "dial": projection.exponent,
        "spectrum": projection.spectrum.tolist(),
    }  # fmt: skip
    write_json(target / PROJECTION_RECORD, record)
    write_checksums(target)  # who opens it verifies them


def joined_reading(encoder: Encoder) -> tuple[Encoder, int]:
    """Return the encoder by first token and mean, joined, and 2; itself and 1 where it reads neither of these."""
    reading = encoder.reading
    if reading.template.prompts or reading.pooling not in TRAINED_POOLINGS.values():
        return encoder, 1
    return encoder.reading_by(replace(reading, pooling=Pooling.CLS_MEAN)), 2


def copy_plain(
    reference: ModelReference, encoder: Encoder, target: Path, weights: Mapping[str, np.ndarray] | None = None
) -> list[str]:
    """Copy a backbone, or a sentence-transformers model, as one of sentence-transformers in one weight file.

    The weights, or `weights` in their place, are written as float32, and the pooling is the encoder's; a backbone gets
    modules for it and for its length, and a tokenizer that reads typed special tokens as text, as an encoder does.
    Returns the kinds of the modules.
    """
    from safetensors.numpy import save_file

    from cse.models.pipeline_writer import TYPED_AS_TEXT, all_layers, write_modules, write_pooling

    name, model = location(reference.name), model_folder(reference.name)
    for file in COPIED_FILES:
        if (path := hub.cached_file(model if file == CALLS else name, file)) is not None:
            shutil.copyfile(path, target / file)
    stored = read_arrays(find_weights(name)) if weights is None else weights
    arrays = {
        key: np.ascontiguousarray(array, np.float32 if array.dtype.kind == "f" else None)
        for key, array in stored.items()
    }
    save_file(arrays, target / SINGLE, {"format": "pt"})
    config = read_json(target / "config.json")
    config.pop("torch_dtype", None)
    write_json(target / "config.json", {**config, **all_layers(encoder.reading), "dtype": "float32"})
    known = {} if reference.recorded is None else transformer_options(name)
    if reference.recorded is None:
        known |= {"max_seq_length": encoder.max_seq_length, "do_lower_case": False}
    if config.get("model_type") in POOLER_OPTION_TYPES and (reference.recorded is None or weights is not None):
        known["model_args"] = {**(known.get("model_args") or {}), "add_pooling_layer": False}
    if known:
        write_json(target / TRANSFORMER, known)
    if reference.recorded is None:
        tokenizer = target / "tokenizer_config.json"
        write_json(tokenizer, {**(read_json(tokenizer) if tokenizer.exists() else {}), **TYPED_AS_TEXT})
    modules = ["Transformer", *write_pooling(encoder.reading, target, 1, config)]
    modules += ["Normalize"] if encoder.reading.normalised else []
    write_modules(target, modules)
    return modules
