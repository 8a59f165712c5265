"""Tiny random BERT and RoBERTa models with real tokenizers, one torch thread, no network, a cache per process."""

from __future__ import annotations

import os
import socket
import tempfile
import tracemalloc  # noqa: F401  pytest would in the midst of another import, where Python 3.11 ends in a KeyError
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

os.environ.update(
    HF_HOME=tempfile.mkdtemp(prefix="cse-tests-"),
    HF_HUB_OFFLINE="1",
    GRADIO_ANALYTICS_ENABLED="False",
    TOKENIZERS_PARALLELISM="false",
    CSE_CONFIG=os.devnull,  # not the defaults of whoever runs the tests
)
os.environ.pop("CSE_MODEL", None)

import pytest
import torch

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
WORDS = (
    "the a man woman dog cat is was running playing eating in on with park kitchen guitar red small big this sentence "
    "of means that it not by they mean article belongs to topic given we assume review positive negative related news "
    "one summary without inconsistent totally different which denotes definitely about and happy sad rain sun . , : ? !"
).split()
SENTENCES = [
    "a man is playing guitar", "the dog was running in the park", "the cat is eating", "a woman is happy in the rain",
    "the sun was big and red",
    "it was a small kitchen with a big cat and a sad dog",
    "they mean it",
]  # fmt: skip
# Files that take long come first, so that no process is left alone with one at the end.
LONG_FILES = (
    "docs package page place_your_model accessibility place_tokens place_clusters tour place_similarity "
    "place_results campaign contributing bundled any_encoder compiled_steps training without_torch scripts_evaluate "
    "trainings pretraining bench sentence_transformers"
).split()
torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files named in `LONG_FILES` first; the order within a file stays."""
    ranks = {f"test_{name}": rank for rank, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(ranks)))


def tiny_bert(folder: Path, hidden: int = 32, layers: int = 2) -> Path:
    """Write a random BERT with a WordPiece vocabulary that knows `WORDS` and single letters."""
    from transformers import BertConfig, BertForMaskedLM, BertTokenizer

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", '"', "'", "[", "]", *dict.fromkeys(WORDS)]
    pieces += [
        letter for c in "abcdefghijklmnopqrstuvwxyz0123456789" for letter in (c, f"##{c}") if letter not in pieces
    ]
    tokenizer = BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)}, do_lower_case=True)
    assert tokenizer.unk_token_id not in tokenizer("".join(WORDS[:3]) + ' the dog "')["input_ids"]
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=2,
        intermediate_size=2 * hidden, max_position_embeddings=80, initializer_range=0.2,
    )  # fmt: skip
    BertForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tiny_roberta(folder: Path) -> Path:
    """Write a random RoBERTa with a byte-level BPE tokenizer learned from `SENTENCES`."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaForMaskedLM, RobertaTokenizer

    learner = ByteLevelBPETokenizer()
    text = [*SENTENCES, "This sentence : ' x ' means it.", " ".join(WORDS)]
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    learner.train_from_iterator(text * 3, vocab_size=420, special_tokens=specials, show_progress=False)
    folder.mkdir(parents=True, exist_ok=True)
    learner.save_model(str(folder))
    tokenizer = RobertaTokenizer.from_pretrained(folder)
    assert len(tokenizer) > 300
    torch.manual_seed(1)
    config = RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=82, pad_token_id=1, bos_token_id=0, eos_token_id=2, type_vocab_size=1,
        initializer_range=0.2,
    )  # fmt: skip
    RobertaForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@lru_cache(16)
def _opened(folder: str, *changed: int) -> Any:
    from cse.encoder.backbone import load_backbone

    return load_backbone(folder)


def fresh_backbone(folder: str | Path) -> Any:
    """The model and tokenizer of a folder, copied from those first opened, which takes a tenth of the time."""
    files = sorted(Path(folder).iterdir()) if Path(folder).is_dir() else []  # none of a name on the hub
    opened = _opened if files else _opened.__wrapped__
    return deepcopy(opened(str(folder), *(file.stat().st_mtime_ns for file in files)))


@pytest.fixture(scope="session")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random BERT's folder."""
    return tiny_bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(scope="session")
def roberta_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random RoBERTa's folder."""
    return tiny_roberta(tmp_path_factory.mktemp("models") / "roberta")


@pytest.fixture(params=["bert", "roberta"])
def backbone(request: pytest.FixtureRequest, bert_folder: Path, roberta_folder: Path) -> str:
    """Both families in turn."""
    return str({"bert": bert_folder, "roberta": roberta_folder}[request.param])


@pytest.fixture
def sts(tmp_path: Path) -> Path:
    """The seven STS tasks of ten pairs each, in the real layout."""
    from cse.evaluation.sts import SETS

    folder = tmp_path / "data" / "sts"
    for number, pattern in enumerate(SETS.values()):
        file = folder / pattern.replace("*", "part")
        file.parent.mkdir(parents=True, exist_ok=True)
        rows = [f"{i % 6}\t{SENTENCES[i % 7]}\t{SENTENCES[(3 * i + 1 + number) % 7]}" for i in range(10)]
        file.write_text("\n".join(rows))
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium (`tests/support/chromium.py`)."""
    from chromium import chromium

    with chromium() as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that leaves the machine."""
    connect = socket.socket.connect

    def local_only(self: socket.socket, address: object) -> None:
        if (
            self.family != socket.AF_UNIX
            and isinstance(address, tuple)
            and address[0] not in ("127.0.0.1", "::1", "localhost")
        ):
            raise OSError(f"a test tried to reach {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", local_only)


@pytest.fixture
def open_backbone(bert_folder: Path, roberta_folder: Path) -> Callable[[str], str]:
    """The folder of a family's tiny model."""
    return lambda family: str({"bert": bert_folder, "roberta": roberta_folder}[family])
