"""A pytest plugin under which sentence-transformers' own tests meet this project's encoder in place of its class.

It takes the place of their conftest.py: fixtures that load models from the hub give the bundled backbone with mean
pooling. With STAND_IN=theirs they give the same weights in sentence-transformers' class, to tell what a difference is.
"""

from __future__ import annotations

import os
import tempfile
from copy import copy, deepcopy
from functools import lru_cache
from typing import Any

import pytest
import sentence_transformers
from exceptions import DIFFERENCES, NOT_HERE
from sentence_transformers import sentence_transformer

from cse.encoder.backbone import load_backbone
from cse.encoder.protocol import SIMILARITIES
from cse.encoder.torch_encoder import TorchEncoder
from cse.methods.catalogue import UNTRAINED
from cse.models.names import location

BACKBONE = location("bundled")
THEIRS = sentence_transformers.SentenceTransformer


@lru_cache
def _backbone() -> tuple[Any, Any]:
    """The bundled backbone, opened once: the tests change settings of models, no weights."""
    return load_backbone(BACKBONE)


class SentenceTransformer(TorchEncoder):
    """The bundled backbone, whatever name is given, with the settings of sentence-transformers' constructor."""

    SUPPORTED_SIMILARITY_FN_NAMES = SIMILARITIES

    def __init__(self, name: object = None, *, device: object = None, **settings: Any) -> None:
        super().__init__(*_backbone(), UNTRAINED["mean"], name="bundled", backbone=BACKBONE)
        self.prompts |= settings.pop("prompts", None) or {}
        for setting in ("default_prompt_name", "similarity_fn_name", "truncate_dim"):
            setattr(self, setting, settings.pop(setting, None))
        settings.pop("cache_folder", None)
        assert not settings, f"no such settings here: {settings}"


@lru_cache
def _plain() -> str:
    """A folder of the bundled backbone, stored as transformers reads it."""
    folder = tempfile.mkdtemp()
    model, tokenizer = _backbone()
    model.base_model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


class Theirs(THEIRS):
    """The same weights in sentence-transformers' own class."""

    def __init__(self, name: object = None, **settings: Any) -> None:
        from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

        transformer = Transformer(_plain())
        super().__init__(modules=[transformer, Pooling(transformer.get_embedding_dimension())], **settings)


STAND_IN: Any = Theirs if os.environ.get("STAND_IN") == "theirs" else SentenceTransformer
sentence_transformers.SentenceTransformer = sentence_transformer.model.SentenceTransformer = STAND_IN


@pytest.fixture(scope="session")
def loaded() -> Any:
    """The one model that all tests copy."""
    return STAND_IN()


def _copy(loaded: Any, request: pytest.FixtureRequest) -> Any:
    """A model whose settings a test may change, and its numbers where it halves them."""
    if "fp16" in request.node.name:
        return deepcopy(loaded)
    copied = copy(loaded)
    copied.prompts = dict(loaded.prompts)
    return copied


stsb_bert_tiny_model = pytest.fixture(name="stsb_bert_tiny_model")(_copy)
paraphrase_model = pytest.fixture(name="paraphrase_distilroberta_base_v1_model")(_copy)
static_model = pytest.fixture(name="static_retrieval_mrl_en_v1_model")(_copy)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not apply, and expect each named difference to fail; a strict one that passes is an error."""
    ours, left_out = os.environ.get("STAND_IN") is None, []
    for item in list(items):
        name = item.nodeid.removeprefix("tests/")
        if any(name.startswith(beginning) for beginning in NOT_HERE):
            left_out.append(item)
            items.remove(item)
        reason = next((why for beginning, why in DIFFERENCES.items() if name.startswith(beginning)), None)
        if ours and reason:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
    config.hook.pytest_deselected(items=left_out)
