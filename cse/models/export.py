"""Exports for other tools, each with a README: its origin, how to open it, and warnings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cse.encoder.torch_encoder import TorchEncoder
from cse.files.writing import write_folder
from cse.models.card import BUNDLED_LICENCE, MASK_WARNING, base_model
from cse.models.export_formats import EXPORT, ONNX, PEFT, base_of, fill_onnx, fill_peft, fill_sentence_transformers
from cse.models.names import BACKBONE, START
from cse.models.pipeline import SENTENCE_TRANSFORMERS
from cse.models.plain import ReadAt, plain_model

SENTENCES = 'sentences = ["A man is playing a guitar.", "Someone plays an instrument."]'
PRINTED_PRODUCT = "print(float(vectors[0] @ vectors[1]))"
TOKENIZER_CALL = """
inputs = tokenizer({texts}, padding=True, truncation=True, return_tensors="{kind}")
"""
Base = tuple[str, str | None]
NO_BASE: Base = ("", None)


def export_card(encoder: TorchEncoder, to: str, base: Base = NO_BASE) -> str:
    """The text of the README; `base` is the backbone of a peft export and, for a hub id, its commit."""
    bundled = encoder.backbone == BACKBONE
    title = f"# {encoder.name} for {to}"
    summary = (
        f"{encoder.method.summary} ({encoder.method.citation or 'a pooling of a backbone'}), written by `cse export`."
    )
    notes = [
        f"- Sentences are cut to {encoder.max_seq_length} tokens, including the {encoder.views[0][0].length} of the "
        "template, before the template is added.",
        f"- Backbone: {encoder.backbone or 'not recorded'} ({encoder.backbone_fingerprint}).",
        f"- Licence: {BUNDLED_LICENCE if bundled else 'that of the backbone and of the training data'}.",
        '- `cse.load("THIS_FOLDER")` returns the same vectors.' if to != "onnx" else "- cse does not run ONNX graphs.",
        *_warnings(encoder, to),
    ]
    code = ["```python", snippet(encoder, to, base), "```"]
    return "\n".join(
        [*_front_matter(encoder, to), title, "", summary, "", *code, "", *notes, *(["", START] if bundled else []), ""]
    )


def snippet(encoder: TorchEncoder, to: str, base: Base = NO_BASE) -> str:
    """Code that opens the export in `THIS_FOLDER` and prints the product of two vectors."""
    opening = {"sentence-transformers": _of_sentence_transformers, "peft": _of_peft, "onnx": _of_onnx}[to]
    return opening(encoder, base)


def _of_sentence_transformers(encoder: TorchEncoder, base: Base) -> str:
    code = ", trust_remote_code=True" if encoder.prefix is not None else ""
    return "\n".join([
        "from sentence_transformers import SentenceTransformer", "", SENTENCES,
        f'vectors = SentenceTransformer("THIS_FOLDER"{code}).encode(sentences)', PRINTED_PRODUCT,
    ])  # fmt: skip


def _of_peft(encoder: TorchEncoder, base: Base) -> str:
    name, commit = base
    source = '"THIS_FOLDER/base"' if name == "base" else f'"{name}"' + (f', revision="{commit}"' if commit else "")
    return "\n".join([
        "import torch", "from peft import PeftModel", "from transformers import AutoModel, AutoTokenizer", "",
        SENTENCES, f'backbone = AutoModel.from_pretrained({source}, dtype=torch.float32, add_pooling_layer=False)',
        'model = PeftModel.from_pretrained(backbone, "THIS_FOLDER").eval()',
        'tokenizer = AutoTokenizer.from_pretrained("THIS_FOLDER")',
        TOKENIZER_CALL.format(texts="sentences", kind="pt").strip(),
        "with torch.no_grad():", "    vectors = model(**inputs).last_hidden_state[:, 0]", PRINTED_PRODUCT,
    ])  # fmt: skip


def _of_onnx(encoder: TorchEncoder, base: Base) -> str:
    spaced = plain_model(encoder).spaced
    return "\n".join([
        "import onnxruntime", "from transformers import AutoTokenizer", "", SENTENCES,
        'session = onnxruntime.InferenceSession("THIS_FOLDER/model.onnx")',
        'tokenizer = AutoTokenizer.from_pretrained("THIS_FOLDER")',
        TOKENIZER_CALL.format(texts='[" " + text for text in sentences]' if spaced else "sentences", kind="np").strip(),
        'vectors = session.run(["sentence_embedding"], dict(inputs))[0]', PRINTED_PRODUCT,
    ])  # fmt: skip


def _warnings(encoder: TorchEncoder, to: str) -> list[str]:
    warnings = []
    if to == "sentence-transformers":
        if plain_model(encoder).read_at is ReadAt.MASK:
            warnings.append(f"- {MASK_WARNING}")
        if encoder.prefix is not None:
            warnings.append(
                "- No module of sentence-transformers has learned keys and values in every layer, so the folder "
                "contains `modeling_prefix.py`, and opening it runs that code (`trust_remote_code=True`)."
            )
    if to == "peft":
        warnings.append("- The vector is the first token's state. In half precision it differs in the third digit.")
    return warnings


def _front_matter(encoder: TorchEncoder, to: str) -> list[str]:
    from huggingface_hub import ModelCardData

    data = ModelCardData(
        base_model=base_model(encoder.backbone),
        license=BUNDLED_LICENCE if encoder.backbone == BACKBONE else None, pipeline_tag="sentence-similarity",
        library_name=to, tags=["cse", encoder.method.name],
    )  # fmt: skip
    return ["---", data.to_yaml(), "---"]


FILLS: dict[str, Callable[[TorchEncoder, Path], None]] = {
    SENTENCE_TRANSFORMERS: fill_sentence_transformers,
    PEFT: fill_peft,
    ONNX: fill_onnx,
}


def export_model(encoder: TorchEncoder, to: str, output: Path, *, overwrite: bool = False) -> None:
    """Write an encoder to the folder `output` in one of `FILLS`' forms, with a README.

    Raises ValueError for an unknown form, for an encoder that the form does not support, and if `output` is not empty;
    with `overwrite` an earlier export is replaced, but never anything else.
    """
    if to not in FILLS:
        raise ValueError(f"unknown `to` {to!r}; choose from {', '.join(FILLS)}")
    check_output(output, overwrite=overwrite)

    def fill(target: Path) -> None:
        FILLS[to](encoder, target)
        base = base_of(encoder) if to == PEFT else NO_BASE
        (target / "README.md").write_text(export_card(encoder, to, base), encoding="utf-8")

    write_folder(output, fill, EXPORT)


def check_output(output: Path, *, overwrite: bool) -> None:
    """Raise ValueError unless an export may be written to `output`."""
    EXPORT.check_replaceable(output)
    if not overwrite and output.is_dir() and any(output.iterdir()):
        raise ValueError(f"{output} already holds an export; give another `output` or pass `overwrite`")
