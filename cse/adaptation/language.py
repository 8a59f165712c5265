"""Masked language modelling on a user's texts, before vectors are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cse.encoding.encoder import Encoder

BATCH_TOKENS, STEPS, RATE = 1024, 75, 5e-5


def learn_language(name: str, texts: Sequence[str], folder: Path, *, steps: int, seed: int) -> str:
    """Continue the masked language modelling of a backbone on texts, and return the folder of the new backbone.

    It is written in `folder`; a run that was killed is started again. Raises ValueError if the texts are too few word
    pieces or the backbone cannot be pretrained.
    """
    from cse.pretraining.config import MODEL_FOLDER, PretrainConfig, PretrainRequest
    from cse.pretraining.loop import pretrain

    corpus = folder.with_suffix(".txt")
    corpus.write_text("\n".join(" ".join(text.split()) for text in texts), encoding="utf-8")
    config = PretrainConfig(tokens=steps * BATCH_TOKENS, batch_tokens=BATCH_TOKENS, learning_rate=RATE, seed=seed)
    precision = training_precision()
    pretrain(PretrainRequest([corpus], folder, config, name, overwrite=True, eval_every=steps, precision=precision))
    return str(folder / MODEL_FOLDER)


def tokens_per_text(encoder: Encoder, texts: Sequence[str]) -> float:
    """Return the mean number of tokens of texts, without special ones, as a model reads them."""
    template = encoder.views[0][0]
    contents = encoder.tokenise(texts, [template] * len(texts))
    return sum(map(len, contents)) / len(contents)


def training_precision() -> str:
    """Return the precision of a training: bf16 where the device is fast at it."""
    from cse.engines.devices import best_device
    from cse.engines.precision import computes_in_bf16

    return "bf16" if computes_in_bf16("auto", str(best_device())) else "no"
