"""Exports for sentence-transformers, peft and ONNX, each with a README: its origin, how to open it, and warnings."""

from __future__ import annotations

import copy
import importlib.util
import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from cse.encoder.backbone import first_position, opened_commit, run_behind
from cse.encoder.heads import mean_of_layers, pooled_states
from cse.encoder.torch_encoder import TorchEncoder
from cse.files.hub import split_revision
from cse.files.writing import FolderKind, replacing
from cse.methods.method import LAST_LAYER, LAYERS, Pooling
from cse.methods.settings import to_json
from cse.models.config import BUNDLED_LICENCE, MASK_WARNING, base_model
from cse.models.loading import ADAPTER, BASE, FORMAT, PROMPTS
from cse.models.names import BACKBONE, EXPORT_RECORD, START, location
from cse.models.pipeline import PIPELINE_FILES, SENTENCE_TRANSFORMERS
from cse.models.pipeline_writer import (
    PlainModel,
    plain_model,
    write_json,
    write_pipeline,
    write_tokenizer,
    write_weights,
)
from cse.versions import check_versions

EXPORT = FolderKind(
    "an export", EXPORT_RECORD, ("format", "to"),
    (
        EXPORT_RECORD, "README.md", *PIPELINE_FILES, "modeling_prefix.py", "onnx", "onnx/model.onnx",
        "onnx/model.onnx.data", "model.onnx", "model.onnx.data",
        "adapter_config.json", "adapter_model.safetensors", "base", "base/*.json", "base/model*.safetensors",
        "data-*.arrow", "dataset_info.json", "state.json", "vectors.faiss", "index.parquet", "vectors.tsv",
        "metadata.tsv",
    ),
)  # fmt: skip
PREFIX_CODE = "modeling_prefix.py"
PREFIXED = {"bert": "PrefixBertModel", "roberta": "PrefixRobertaModel"}


def write_record(target: Path, to: str, encoder: TorchEncoder, **facts: Any) -> None:
    """Write the record that `cse.load` opens the folder with: the method for encoding, and the model exported."""
    record = {
        "format": FORMAT, "version": 1, "to": to, "model": encoder.name, "fingerprint": encoder.fingerprint,
        "method": to_json(encoder.method.in_encoding), "max_length": encoder.max_seq_length, "prompts": encoder.prompts,
        "default_prompt_name": encoder.default_prompt_name,
        "truncate_dim": encoder.truncate_dim, "similarity_fn_name": encoder.similarity_fn_name,
    }  # fmt: skip
    write_json(target / EXPORT_RECORD, {**record, **facts})


def fill_sentence_transformers(encoder: TorchEncoder, target: Path) -> None:
    """Write an encoder to an empty folder. Raises ValueError for an unsupported encoder."""
    config: dict[str, Any] = {}
    if encoder.prefix is not None:
        family = encoder.model.config.model_type
        if family not in PREFIXED:
            raise ValueError(f"{encoder.name}: prefixes are exported for {' and '.join(PREFIXED)}, not for {family}")
        kind = PREFIXED[family]
        config = {
            "architectures": [kind], "auto_map": {"AutoModel": f"{Path(PREFIX_CODE).stem}.{kind}"},
            "prefix_length": encoder.reading.prefix,
        }  # fmt: skip
    plain = write_pipeline(encoder, target, **config)
    if config:
        shutil.copyfile(Path(__file__).with_name(PREFIX_CODE), target / PREFIX_CODE)
    write_record(target, SENTENCE_TRANSFORMERS, encoder, slots=plain.slots)


PEFT = "peft"
PEFT_VECTORS = {  # what the vector is, and the code that reads it of the states
    Pooling.TOKEN: ("the first token's state", ("    vectors = states[:, 0]",)),
    Pooling.MEAN: ("the mean of the tokens' states", (
        '    mask = inputs["attention_mask"].unsqueeze(2)', "    vectors = (states * mask).sum(1) / mask.sum(1)",
    )),
}  # fmt: skip


def fill_peft(encoder: TorchEncoder, target: Path) -> None:
    """Write an encoder to an empty folder. Raises ValueError unless it is a prefix on a frozen backbone."""
    from safetensors.torch import save_file

    method = encoder.method
    if encoder.prefix is None or not method.reading.frozen:
        raise ValueError(f"{encoder.name} is not a prefix on a frozen backbone, as `to` peft requires; "
                         "give `to` sentence-transformers")  # fmt: skip
    plain = plain_model(encoder)
    if plain.head is not None:
        raise ValueError(f"{encoder.name} has a head, which peft cannot store; give `to` sentence-transformers")
    if method.reading.pooling not in PEFT_VECTORS:
        raise ValueError(f"{encoder.name} is read by {method.reading.pooling.value}; give `to` sentence-transformers")
    base, revision = base_of(encoder)
    if base == BASE:
        write_weights(target / BASE, plain, plain.tensors)
        write_tokenizer(target / BASE, encoder, plain.tokenizer)
    config: Any = encoder.model.config
    write_json(target / "adapter_config.json", {
        "peft_type": "PREFIX_TUNING", "task_type": "FEATURE_EXTRACTION", "base_model_name_or_path": base,
        "revision": revision, "inference_mode": True, "num_virtual_tokens": method.reading.prefix,
        "num_layers": config.num_hidden_layers, "num_attention_heads": config.num_attention_heads,
        "token_dim": encoder.dim, "encoder_hidden_size": encoder.dim, "num_transformer_submodules": 1,
        "prefix_projection": False,
    })  # fmt: skip
    save_file({PROMPTS: encoder.prefix.detach().float().cpu().contiguous()}, target / ADAPTER)
    write_tokenizer(target, encoder, plain.tokenizer)
    write_record(target, PEFT, encoder, base=base, revision=revision)


def base_of(encoder: TorchEncoder) -> tuple[str, str | None]:
    """The hub id and commit of a backbone that transformers opens by its id; `BASE` and None for any other."""
    backbone = location(encoder.backbone)
    if Path(backbone).is_dir():
        return BASE, None
    repository, pinned = split_revision(backbone)
    return repository, opened_commit(encoder.model) or pinned


ONNX = "onnx"  # the form, its package, and the subfolder in which other tools look for a graph
FILE = "model.onnx"
OPSET = 18
INPUTS, OUTPUTS = ("input_ids", "attention_mask"), ("sentence_embedding", "last_hidden_state")
# Two lengths, so that one is padded.
TRACED_TEXTS = ("a short one", "a sentence that is a little longer than the first")


class Graph(torch.nn.Module):
    """The module to trace: (B, L) ids and mask to (B, d) vectors and the (B, L, d) states that they are read of."""

    def __init__(self, plain: PlainModel) -> None:
        super().__init__()
        encoder = plain.encoder
        at_mask = encoder.reading.at_mask
        self.pooling = Pooling.MEAN if at_mask else encoder.reading.pooling
        self.mask_id = encoder.tokenizer.mask_token_id if at_mask else None
        self.placed, self.dim = encoder.placed, min(encoder.dim, encoder.truncate_dim or encoder.dim)
        self.base: Any = copy.deepcopy(encoder.model.base_model)
        self.words = torch.nn.Embedding.from_pretrained(plain.tensors[plain.words])
        self.head, self.prefix = copy.deepcopy(plain.head), copy.deepcopy(encoder.prefix)
        self.normalised = encoder.reading.normalised
        self.first = first_position(encoder.model) + encoder.reading.prefix

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, d) and (B, L, d) float32."""
        positions = {"position_ids": torch.arange(input_ids.shape[1])[None] + self.first} if self.placed else {}
        prefix = None if self.prefix is None else self.prefix.expand(input_ids.shape[0], -1, -1)
        layers = LAYERS.get(self.pooling, LAST_LAYER)
        output = run_behind(
            self.base, prefix, attention_mask,
            inputs_embeds=self.words(input_ids), output_hidden_states=layers != LAST_LAYER, **positions,
        )  # fmt: skip
        states = mean_of_layers(output, layers)  # which a pooling outside of the graph reads, too
        read = attention_mask if self.mask_id is None else (input_ids == self.mask_id).long()
        at = attention_mask.sum(1) - 1 if self.pooling is Pooling.LAST else torch.zeros_like(input_ids[:, 0])
        one = states.gather(1, at[:, None, None].expand(-1, 1, states.shape[2]))[:, 0]
        vectors = pooled_states(self.pooling, states, read, one)
        vectors = vectors if self.head is None else self.head(vectors)
        vectors = torch.nn.functional.normalize(vectors) if self.normalised else vectors
        return vectors[:, : self.dim].reshape(-1, self.dim), states  # with a GPU, optimum needs the width of outputs


def fill_onnx(encoder: TorchEncoder, target: Path) -> None:
    """Write an encoder to an empty folder. Raises ValueError for an unsupported encoder, or without onnx.

    The states are for sentence-transformers and optimum, which read them by the files around the graph.
    """
    if importlib.util.find_spec(ONNX) is None:
        raise ValueError(f"`to` onnx needs the package {ONNX}; pip install {ONNX}")
    check_versions(ONNX)
    if not encoder.reading.prompt_pooled:
        raise ValueError(f"{encoder.name} leaves prompts out of its pooling; export to another form")
    plain = write_pipeline(encoder, target, weights=False)
    rows = encoder.rows_of(TRACED_TEXTS, [encoder.views[0][0]] * len(TRACED_TEXTS))
    ids, _, _, mask, _ = torch.from_numpy(rows.tables(encoder.tokenizer.pad_token_id)[0])
    graph = Graph(plain).eval().cpu()
    vector, states = OUTPUTS
    axes = {name: {0: "sentences", 1: "tokens"} for name in (*INPUTS, states)} | {vector: {0: "sentences"}}
    (target / ONNX).mkdir()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # about tracing; the tests compare the result
        torch.onnx.export(
            graph, (ids, mask), str(target / ONNX / FILE), input_names=list(INPUTS), output_names=list(OUTPUTS),
            dynamic_axes=axes, opset_version=OPSET, dynamo=False,  # tracing: 15 times faster, without onnxscript
        )  # fmt: skip
    write_record(target, ONNX, encoder, spaced=plain.spaced, slots=plain.slots)


def export_card(encoder: TorchEncoder, to: str) -> str:
    """The text of the README."""
    from huggingface_hub import ModelCardData

    bundled = encoder.backbone == BACKBONE
    data = ModelCardData(
        base_model=base_model(encoder.backbone), license=BUNDLED_LICENCE if bundled else None,
        pipeline_tag="sentence-similarity", library_name=to, tags=["cse", encoder.method.name],
    )  # fmt: skip
    notes = [
        f"- Sentences are cut to {encoder.max_seq_length} tokens, in which template and special tokens "
        f"({encoder.views[0][0].length}) are counted.",
        f"- Backbone: {encoder.backbone or 'not recorded'} ({encoder.backbone_fingerprint}).",
        f"- Licence: {BUNDLED_LICENCE if bundled else 'that of the backbone and of the training data'}.",
        '- `cse.load("THIS_FOLDER")` returns the same vectors.' if to != ONNX else "- cse does not run ONNX graphs.",
    ]
    if to == ONNX:
        notes.append(
            '- sentence-transformers (`SentenceTransformer("THIS_FOLDER", backend="onnx")`) and optimum '
            '(`ORTModelForFeatureExtraction.from_pretrained("THIS_FOLDER")`) read `last_hidden_state`, the graph\'s '
            "other output: the states of all tokens."
        )
    if to in (SENTENCE_TRANSFORMERS, ONNX) and encoder.reading.at_mask:
        notes.append(f"- {MASK_WARNING}")
    if to == SENTENCE_TRANSFORMERS and encoder.prefix is not None:
        notes.append(
            "- No module of sentence-transformers has learned keys and values in every layer, so the folder contains "
            "`modeling_prefix.py`, and opening it runs that code (`trust_remote_code=True`)."
        )
    if to == PEFT:
        vector = PEFT_VECTORS[encoder.reading.pooling][0]
        notes.append(f"- The vector is {vector}. In half precision it differs in the third digit.")
    origin = encoder.method.citation or "a pooling of a backbone"
    return "\n".join([
        "---", data.to_yaml(), "---", f"# {encoder.name} for {to}", "",
        f"{encoder.method.summary} ({origin}), written by `cse export`.", "",
        "```python", snippet(encoder, to), "```", "", *notes, *(["", START] if bundled else []), "",
    ])  # fmt: skip


def snippet(encoder: TorchEncoder, to: str) -> str:
    """Code that opens the export in `THIS_FOLDER` and prints the product of two vectors."""
    call = 'inputs = tokenizer({texts}, padding=True, truncation=True, return_tensors="{kind}")'
    tokenizer = 'tokenizer = AutoTokenizer.from_pretrained("THIS_FOLDER")'
    if to == SENTENCE_TRANSFORMERS:
        code = ", trust_remote_code=True" if encoder.prefix is not None else ""
        imports = ["from sentence_transformers import SentenceTransformer"]
        lines = [f'vectors = SentenceTransformer("THIS_FOLDER"{code}).encode(sentences)']
    elif to == PEFT:
        name, commit = base_of(encoder)
        revision = f', revision="{commit}"' if commit else ""
        source = '"THIS_FOLDER/base"' if name == BASE else f'"{name}"{revision}'
        imports = ["import torch", "from peft import PeftModel", "from transformers import AutoModel, AutoTokenizer"]
        lines = [
            f"backbone = AutoModel.from_pretrained({source}, dtype=torch.float32, add_pooling_layer=False)",
            'model = PeftModel.from_pretrained(backbone, "THIS_FOLDER").eval()', tokenizer,
            call.format(texts="sentences", kind="pt"),
            "with torch.no_grad():", "    states = model(**inputs).last_hidden_state",
            *PEFT_VECTORS[encoder.reading.pooling][1],
        ]  # fmt: skip
    else:
        start = " " * plain_model(encoder).spaced + encoder.prompts.get(encoder.default_prompt_name or "", "")
        texts = f"[{json.dumps(start, ensure_ascii=False)} + text for text in sentences]" if start else "sentences"
        imports = ["import onnxruntime", "from transformers import AutoTokenizer"]
        lines = [
            'session = onnxruntime.InferenceSession("THIS_FOLDER/onnx/model.onnx")', tokenizer,
            call.format(texts=texts, kind="np"), 'vectors = session.run(["sentence_embedding"], dict(inputs))[0]',
        ]  # fmt: skip
    sentences = 'sentences = ["A man is playing a guitar.", "Someone plays an instrument."]'
    return "\n".join([*imports, "", sentences, *lines, "print(float(vectors[0] @ vectors[1]))"])


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
    with replacing(output, EXPORT) as target:
        FILLS[to](encoder, target)
        (target / "README.md").write_text(export_card(encoder, to), encoding="utf-8")


def check_output(output: Path, *, overwrite: bool) -> None:
    """Raise ValueError unless an export may be written to `output`."""
    EXPORT.check_replaceable(output)
    if not overwrite and output.is_dir() and any(output.iterdir()):
        raise ValueError(f"{output} already holds an export; give another `output` or pass `overwrite`")
