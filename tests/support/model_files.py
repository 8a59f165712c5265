"""Model folders as other tools read and write them."""

import contextlib
import io
import json
import re
import warnings
from pathlib import Path

import torch
from safetensors import safe_open
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer, pipeline

from cse.encoder.backbone import load_backbone


def check_opens_everywhere(folder: Path, masked: str) -> None:
    """Assert that a backbone is one float16 file that every class of transformers opens with this project's numbers."""
    (file,) = folder.glob("*.safetensors*")
    with safe_open(file, framework="pt") as stored:
        assert file.name == "model.safetensors"
        assert {stored.get_slice(name).get_dtype() for name in stored.keys()} == {"F16"}  # noqa: SIM118  no mapping
    model, tokenizer = load_backbone(folder)
    theirs = AutoTokenizer.from_pretrained(folder)
    assert theirs.get_vocab() == tokenizer.get_vocab()
    rows = theirs([masked, "a man is"], padding=True, return_tensors="pt")
    assert torch.equal(
        rows["input_ids"], tokenizer([masked, "a man is"], padding=True, return_tensors="pt")["input_ids"]
    )
    with torch.no_grad():
        logits, states = model(**rows).logits, model.base_model(**rows).last_hidden_state
        assert torch.equal(AutoModelForMaskedLM.from_pretrained(folder).eval()(**rows).logits, logits)
        assert torch.equal(AutoModel.from_pretrained(folder).eval()(**rows).last_hidden_state, states)
        alone = model(**theirs(masked, return_tensors="pt")).logits[0]
    place = theirs(masked)["input_ids"].index(theirs.mask_token_id)
    expected = alone[place].softmax(-1).topk(5)
    filled = pipeline("fill-mask", model=str(folder))(masked)
    assert [entry["token"] for entry in filled] == expected.indices.tolist()
    torch.testing.assert_close(torch.tensor([entry["score"] for entry in filled]), expected.values)


def run_card(folder: Path) -> str:
    """What the snippet of a folder's README prints."""
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by an older name
        exec(code.replace("THIS_FOLDER", str(folder)), {})
    return out.getvalue()


TRANSFORMER = {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"}
POOLING = {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}


def with_pipeline(folder: Path, modules: list[dict], pooling: dict, length: int | None = None) -> Path:
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    if length:
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": length}))
    return folder
