"""Encoders of the tiny models: of a method, or read in a given way."""

from pathlib import Path

import torch
from conftest import fresh_backbone

from cse.encoder.torch_encoder import TorchEncoder
from cse.methods.catalogue import METHODS, SUPERVISED, UNTRAINED
from cse.methods.method import Method
from cse.methods.presets import backbone_key, preset

DISTINCT = [  # every other method differs from one of these by a template or the length of a prefix alone
    *((name, False) for name in ("simcse", "promptbert", "dcpcse", "conpvp", "optiprompt", "consert")),
    ("simcse", True), ("promptbert", True),
]  # fmt: skip
IN_FAMILIES = [  # by family, name, and whether it is supervised
    *(("bert", *case) for case in [*DISTINCT, ("esimcse", False)]), ("roberta", "conpvp", False),
    ("roberta", "promptbert", True),
]  # fmt: skip


def make(backbone: str, name: str, supervised: bool = False) -> TorchEncoder:
    model, tokenizer = fresh_backbone(backbone)
    method, _ = preset(name, backbone_key(model.config.model_type, model.config.hidden_size), supervised)
    torch.manual_seed(3)
    return TorchEncoder(model, tokenizer, method, name=name, backbone=backbone)


def reading(backbone: str, method: Method) -> TorchEncoder:
    return TorchEncoder(*fresh_backbone(backbone), method, name=method.name, backbone=backbone)


def encoder_of(folder: str | Path, method: str, name: str = "mine") -> TorchEncoder:
    """A method on a backbone, everything that it learns beside that made random, as training would."""
    model, tokenizer = fresh_backbone(folder)
    value = {**METHODS, **UNTRAINED, "supervised": SUPERVISED["simcse"]}[method]
    if "roberta" in model.config.model_type:
        value = value.on_roberta()
    if value.reading.prefix:
        value = value.replaced(prefix=5)
    torch.manual_seed(3)
    encoder = TorchEncoder(model, tokenizer, value, name=name, backbone=str(folder))
    for learned in (encoder.prefix, encoder.slots):
        if learned is not None:
            torch.nn.init.normal_(learned, std=0.5)
    return encoder
