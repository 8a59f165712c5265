"""optimum's reading of an ONNX folder: what sentence-transformers calls, for which optimum has no version (2026-11).

optimum 2.1 needs transformers below 5. As there, a graph is found in `subfolder`, an unknown option is an error, inputs
are those that the graph names, and of its outputs `last_hidden_state` is read.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import onnxruntime
import pytest
import torch
from transformers import AutoConfig
from transformers.modeling_outputs import BaseModelOutput

HUB_OPTIONS = {"cache_dir", "force_download", "local_files_only", "revision", "token", "trust_remote_code"}


class ORTModelForFeatureExtraction:
    """A graph of onnxruntime as a model of transformers."""

    def __init__(self, config: Any, session: onnxruntime.InferenceSession) -> None:
        self.config, self.session = config, session
        self.device = torch.device("cpu")

    @classmethod
    def from_pretrained(
        cls,
        folder: str,
        config: Any = None,
        export: bool = False,
        provider: str = "CPUExecutionProvider",
        subfolder: str = "",
        file_name: str = "model.onnx",
        **options: Any,
    ) -> ORTModelForFeatureExtraction:
        assert not export
        assert options.keys() <= HUB_OPTIONS
        files = [path for path in (Path(folder) / subfolder).rglob("*.onnx") if path.name == file_name]
        assert len(files) == 1, files
        config = config or AutoConfig.from_pretrained(folder)
        return cls(config, onnxruntime.InferenceSession(str(files[0]), providers=["CPUExecutionProvider"]))

    def _save_pretrained(self, folder: Path) -> None:
        raise NotImplementedError

    def __call__(self, **inputs: Any) -> BaseModelOutput:
        return self.forward(**inputs)

    def to(self, *_: object) -> ORTModelForFeatureExtraction:
        return self

    def eval(self) -> ORTModelForFeatureExtraction:
        return self

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any = None, **_: Any) -> BaseModelOutput:
        offered = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
        inputs = {item.name: offered[item.name].numpy() for item in self.session.get_inputs()}
        (states,) = self.session.run(["last_hidden_state"], inputs)
        return BaseModelOutput(last_hidden_state=torch.from_numpy(states))


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `import optimum.onnxruntime` find this."""
    package, module = ModuleType("optimum"), ModuleType("optimum.onnxruntime")
    others = ("ORTModelForCausalLM", "ORTModelForMaskedLM", "ORTModelForSequenceClassification")
    names = {"ORTModelForFeatureExtraction": ORTModelForFeatureExtraction, "ONNX_WEIGHTS_NAME": "model.onnx"}
    module.__dict__.update(names, **dict.fromkeys(others, object))
    package.__dict__.update(__path__=[], onnxruntime=module)
    monkeypatch.setitem(sys.modules, "optimum", package)
    monkeypatch.setitem(sys.modules, "optimum.onnxruntime", module)
