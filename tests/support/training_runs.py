"""Short runs of the tiny models: their texts, their losses, a kill after a step."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import SENTENCES
from datasets import Dataset

from cse.encoder.torch_encoder import TorchEncoder
from cse.files.writing import partial_folder
from cse.methods.settings import TrainConfig
from cse.training.loop import train
from cse.training.run import Run

TEXTS = [f"{one} and {two}" for one in SENTENCES for two in SENTENCES[:4]]
DEV = [(float(i % 6), SENTENCES[i % 7], SENTENCES[(2 * i) % 7]) for i in range(12)]
CONFIG = TrainConfig(batch_size=4, learning_rate=1e-3, eval_every=3, seed=5)


class OneProcess:
    num_processes = 1


def run_of(encoder: TorchEncoder, dev: object = None, **changes: object) -> Run:
    columns = {"0": TEXTS, "1": TEXTS[::-1], "2": TEXTS[3:] + TEXTS[:3]} if encoder.method.supervised else {"0": TEXTS}
    return Run(replace(CONFIG, **changes), Dataset.from_dict(columns), dev, "texts")


def losses(folder: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (folder / "train_log.jsonl").read_text().splitlines()]


class Killed(Exception):
    """The signal that ends a run."""


def kill_after(step: int) -> Callable[[dict], None]:
    def report(entry: dict) -> None:
        if entry["step"] == step:
            raise Killed

    return report


def killed_run(encoder: TorchEncoder, output: Path, step: int) -> Path:
    """The unfinished run of 7 steps, killed after `step`; it saves a state every third."""
    with pytest.raises(Killed):
        train(encoder, run_of(encoder), output, report=kill_after(step))
    return partial_folder(output)
