"""Published settings of methods by backbone, and lookup of a method by name and backbone."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from cse.methods.catalogue import METHODS, SUPERVISED
from cse.methods.method import Method
from cse.methods.settings import TrainConfig

# (method, supervised, backbone) -> differences from the defaults of TrainConfig and from the method's fields.
PUBLISHED: dict[tuple[str, bool, str], dict[str, Any]] = {
    # SimCSE, released training scripts
    ("simcse", False, "bert-base"): {"batch_size": 64, "learning_rate": 3e-5},
    ("simcse", False, "bert-large"): {"batch_size": 64, "learning_rate": 1e-5},
    ("simcse", False, "roberta-base"): {"batch_size": 512, "learning_rate": 1e-5},
    ("simcse", False, "roberta-large"): {"batch_size": 512, "learning_rate": 3e-5},
    ("simcse", True, "bert-base"): {"batch_size": 512, "learning_rate": 5e-5, "epochs": 3},
    ("simcse", True, "bert-large"): {"batch_size": 512, "learning_rate": 1e-5, "epochs": 3},
    ("simcse", True, "roberta-base"): {"batch_size": 512, "learning_rate": 5e-5, "epochs": 3},
    ("simcse", True, "roberta-large"): {"batch_size": 512, "learning_rate": 1e-5, "epochs": 3},
    # ESimCSE, released training scripts
    ("esimcse", False, "bert-base"): {"batch_size": 64, "learning_rate": 3e-5},
    ("esimcse", False, "bert-large"): {"batch_size": 64, "learning_rate": 1e-5},
    ("esimcse", False, "roberta-base"): {"batch_size": 64, "learning_rate": 1e-5, "repetition": 0.30},
    ("esimcse", False, "roberta-large"): {
        "batch_size": 64, "learning_rate": 1e-5, "dropout": 0.15, "repetition": 0.28, "queue": 128,
    },
    # ConSERT, released training script
    ("consert", False, "bert-base"): {
        "batch_size": 96, "learning_rate": 5e-7, "epochs": 10, "max_length": 64, "temperature": 0.1, "dropout": 0.0,
    },
    # PromptBERT, appendix A and the released settings
    ("promptbert", False, "bert-base"): {"batch_size": 256, "learning_rate": 1e-5},
    ("promptbert", False, "bert-large"): {"batch_size": 256, "learning_rate": 3e-5},  # the author's, in its issue 3
    ("promptbert", False, "roberta-base"): {"batch_size": 256, "learning_rate": 1e-5},
    ("promptbert", True, "bert-base"): {"batch_size": 512, "learning_rate": 5e-5, "epochs": 3},
    ("promptbert", True, "roberta-base"): {"batch_size": 512, "learning_rate": 5e-5, "epochs": 3},
    ("optiprompt", False, "bert-base"): {"batch_size": 256, "learning_rate": 3e-5, "epochs": 5, "eval_every": 1000},
    # DCPCSE, Table 4
    ("dcpcse", False, "bert-base"): {"batch_size": 256, "learning_rate": 3e-2, "prefix": 16},
    ("dcpcse", False, "bert-large"): {"batch_size": 256, "learning_rate": 3e-2, "prefix": 10},
    ("dcpcse", False, "roberta-base"): {"batch_size": 64, "learning_rate": 3e-2, "prefix": 14, "mlm_weight": 0.1},
    ("dcpcse", False, "roberta-large"): {"batch_size": 64, "learning_rate": 1e-2, "prefix": 10, "mlm_weight": 0.1},
    ("dcpcse", True, "bert-base"): {"batch_size": 256, "learning_rate": 5e-3, "epochs": 10, "prefix": 12},
    ("dcpcse", True, "bert-large"): {"batch_size": 256, "learning_rate": 5e-3, "epochs": 10, "prefix": 12},
    ("dcpcse", True, "roberta-base"): {"batch_size": 256, "learning_rate": 1e-2, "epochs": 10, "prefix": 10},
    ("dcpcse", True, "roberta-large"): {"batch_size": 256, "learning_rate": 5e-3, "epochs": 10, "prefix": 10},
    ("scpcse", False, "bert-base"): {"batch_size": 256, "learning_rate": 1e-3, "epochs": 5},  # DCPCSE, appendix A
    # ConPVP, Table 2
    ("conpvp", False, "bert-base"): {"batch_size": 128, "learning_rate": 3e-5},
    ("conpvp", False, "bert-large"): {"batch_size": 128, "learning_rate": 1e-5},
    ("conpvp", False, "roberta-base"): {"batch_size": 128, "learning_rate": 1e-5},
    ("conpvp", False, "roberta-large"): {"batch_size": 256, "learning_rate": 1e-5},
    # This project, chosen on STS-B dev with the bundled backbone (docs/bundled-models.md)
    ("simcse", False, "bert-small"): {"batch_size": 64, "learning_rate": 1e-4, "temperature": 0.1, "dropout": 0.1},
    ("esimcse", False, "bert-small"): {"batch_size": 64, "learning_rate": 1e-4, "temperature": 0.1, "dropout": 0.1},
    ("consert", False, "bert-small"): {"batch_size": 96, "learning_rate": 1e-4, "temperature": 0.1, "dropout": 0.0},
    ("promptbert", False, "bert-small"): {"batch_size": 64, "learning_rate": 1e-4, "dropout": 0.1},
    ("optiprompt", False, "bert-small"): {"batch_size": 64, "learning_rate": 1e-3},
    ("dcpcse", False, "bert-small"): {
        "batch_size": 64, "learning_rate": 1e-2, "temperature": 0.1, "dropout": 0.05, "prefix": 4,
    },
    ("scpcse", False, "bert-small"): {"batch_size": 64, "learning_rate": 3e-3},
    ("conpvp", False, "bert-small"): {"batch_size": 64, "learning_rate": 1e-4, "temperature": 0.1, "dropout": 0.05},
}  # fmt: skip

BUNDLED_ROW = "bert-small"
# Variant -> the method whose published settings it has, and its differences from them.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "promptbert-same": ("promptbert", {}),
    "promptbert-no-denoising": ("promptbert", {}),
    "dcpcse-mlm": ("dcpcse", {"mlm_weight": 0.1}),
    "dcpcse-no-mlm": ("dcpcse", {"mlm_weight": 0.0}),
    "conpvp-manual": ("conpvp", {}),
    "conpvp-no-negative": ("conpvp", {}),
    "conpvp-no-prototypes": ("conpvp", {}),
}


def backbone_key(model_type: str, hidden: int) -> str:
    """Return the backbone's row in the published tables: its family and size, such as `bert-base`."""
    family = "roberta" if "roberta" in model_type else "bert"
    return f"{family}-{'large' if hidden >= 1024 else 'base' if hidden >= 512 else 'small'}"


def preset(name: str, backbone: str, supervised: bool = False) -> tuple[Method, TrainConfig]:
    """Return the method and its published settings on `backbone` (a `backbone_key`).

    If a paper has no row for the backbone, its row for the base model of the family, or of BERT, is used; variants
    use their method's. Raises ValueError for an unknown method and for one without a supervised form.
    """
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}; choose from {', '.join(METHODS)}")
    if supervised and name not in SUPERVISED:
        raise ValueError(f"{name} has no supervised form; choose from {', '.join(SUPERVISED)}")
    method = (SUPERVISED if supervised else METHODS)[name]
    family = backbone.split("-")[0]
    method = method.on_roberta() if family == "roberta" else method
    parent, differences = VARIANTS.get(name, (name, {}))
    keys = ((parent, supervised, key) for key in (backbone, f"{family}-base", "bert-base"))
    settings = next((PUBLISHED[key] for key in keys if key in PUBLISHED), {}) | differences
    of_training = {field.name for field in fields(TrainConfig)} & settings.keys()
    config = TrainConfig(**{key: settings.pop(key) for key in of_training})
    return method.replaced(**settings), config
