"""Shared by the tests of pretraining: a tiny recipe and a corpus whose held-out documents are marked."""

from pathlib import Path
from typing import Any

import numpy as np
from conftest import SENTENCES, WORDS
from transformers import AutoTokenizer

from cse.training.pretraining import Report, pretrain
from cse.training.pretraining_data import PretrainConfig, PretrainRequest, TokenFile

CONFIG = PretrainConfig(
    vocabulary=90,
    layers=1,
    hidden=16,
    heads=2,
    positions=40,
    tokens=64 * 12,
    batch_tokens=64,
    lengths=(8, 16, 40),
    seed=3,
)


def write_corpus(folder: Path) -> Path:
    """250 documents of two sentences; document 100 and 200 (counted from 1) are marked."""
    documents = []
    for number in range(250):
        mark = "rain rain rain" if number % 100 == 99 else "sun"
        documents.append(f"{SENTENCES[number % 7]} {mark}\n{' '.join(WORDS[number % 40 : number % 40 + 9])}\n")
    (folder / "corpus.txt").write_text("\n".join(documents))
    return folder / "corpus.txt"


def curve(result: dict) -> list[float]:
    return [entry["held_out_loss"] for entry in result["curve"]]


def kill_at(step: int) -> Report:
    """A report that ends the run at the evaluation of a step."""

    def report(entry: Any) -> None:
        if entry["step"] == step:
            raise KeyboardInterrupt

    return report


def repeated_sentences(bert_folder: str) -> TokenFile:
    """The sentences forty times over, in word pieces of the small test model."""
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    encoded = tokenizer(SENTENCES * 40, add_special_tokens=False)["input_ids"]
    lengths = np.array([len(ids) for ids in encoded])
    return TokenFile(np.concatenate(encoded).astype(np.uint16), np.cumsum(lengths) - lengths)


def run_pretraining(
    corpus: Path, output: Path, config: PretrainConfig, report: Report = lambda entry: None, **options: Any
) -> dict[str, Any]:
    return pretrain(PretrainRequest([corpus], output, config, **options), report)
