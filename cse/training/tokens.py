"""A run's texts as token ids, which a thread writes to a file in the run's folder while the first steps run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import numpy as np

from cse.encoder.rows import tokenizer_digest
from cse.encoder.token_file import TokenFile
from cse.files.checksums import check_checksums, write_checksums
from cse.files.writing import digest, write_folder
from cse.training.records import TOKENS_FOLDER

if TYPE_CHECKING:
    from typing_extensions import Self

    from cse.encoder.rows import TokenTemplate
    from cse.encoder.torch_encoder import TorchEncoder
    from cse.methods.settings import TrainConfig
    from cse.training.run import Run


def view_columns(encoder: TorchEncoder, columns: Iterable[str]) -> list[str]:
    """The column of each view's texts: those of supervised data, the first one for every view otherwise.

    Raises ValueError when supervised data has fewer than two columns.
    """
    if not encoder.method.supervised:
        return ["0"] * len(encoder.views)
    columns = sorted(columns)[: len(encoder.views)]
    if len(columns) < 2:
        raise ValueError("supervised training needs two or three columns: premise, entailed, contradicted")
    return columns


Form = tuple[str, int, bool]  # of a text as tokens: its column, how many are kept at most, whether a space is before


def form_of(column: str, template: TokenTemplate, config: TrainConfig) -> Form:
    """The form of a column's texts in a template. Each method's code decides whether `max_length` counts that."""
    return column, template.content_limit(config.max_length), template.spaced


def text_forms(encoder: TorchEncoder, columns: Sequence[str], config: TrainConfig) -> dict[Form, TokenTemplate]:
    """The forms of the texts in `columns`, those of the views, each with a template that needs it."""
    views = zip(columns, encoder.views, strict=False)  # pairs have no third view
    return {form_of(column, template, config): template for column, view in views for template in view}


@dataclass(frozen=True)
class TokenisedTexts:
    """The token ids of the examples `numbers` (B,), and the views' `columns`.

    `file` has all `count` examples in one of `text_forms` after another.
    """

    columns: list[str]
    file: TokenFile
    count: int
    numbers: np.ndarray

    @classmethod
    def of(cls, encoder: TorchEncoder, batch: Mapping[str, list[str]], config: TrainConfig) -> Self:
        """The token ids of a batch."""
        columns = view_columns(encoder, batch)
        forms = text_forms(encoder, columns, config)
        count = len(batch[columns[0]])
        ids = chain.from_iterable(
            encoder.tokenise(batch[column], [template] * count, most) for (column, most, _), template in forms.items()
        )
        return cls(columns, TokenFile.of(list(ids)), count, np.arange(count))


TEXTS_PER_READ = 4096
FILE = "texts"
Batch = dict[str, list[str]] | TokenisedTexts


class RunEndedError(Exception):
    """The run ended before all its texts were tokenised."""


@contextmanager
def tokenised_meanwhile(
    encoder: TorchEncoder, run: Run, work: Path, texts: str, main_process: bool
) -> Iterator[Callable[[np.ndarray], Batch]]:
    """Yield a function of the numbers of examples: they are texts until the file in `work` is written, then token ids.

    The main process writes it, unless there is one of the same tokenizer and `texts`, a digest, or the run ends within
    an epoch.
    """
    examples, ended = run.examples, Event()
    columns = view_columns(encoder, examples[[0]])
    forms = text_forms(encoder, columns, run.config)
    key = digest(texts, tokenizer_digest(encoder.tokenizer), json.dumps([list(forms), encoder.max_content]))
    folder = work / f"{TOKENS_FOLDER}-{key}"
    check_checksums(folder, "delete its folder to have it made again")

    def blocks() -> Iterator[tuple[str, list[list[int]]]]:
        for form, template in forms.items():
            for start in range(0, len(examples), TEXTS_PER_READ):
                if ended.is_set():
                    raise RunEndedError
                column = examples[start : start + TEXTS_PER_READ][form[0]]
                yield FILE, encoder.tokenise(column, [template] * len(column), form[1])

    def fill(fresh: Path) -> None:
        TokenFile.write(fresh, [FILE], blocks(), np.int32)
        write_checksums(fresh)

    with ThreadPoolExecutor(1) as pool:
        due = main_process and run.steps >= run.steps_per_epoch and not folder.is_dir()
        writing = pool.submit(write_folder, folder, fill) if due else None
        file: TokenFile | None = None

        def batch(numbers: np.ndarray) -> Batch:
            nonlocal file
            if writing and writing.done():
                writing.result()  # raises what the thread did
            if file is None and folder.is_dir():
                file = TokenFile.open(folder, FILE, np.int32)
            return TokenisedTexts(columns, file, len(examples), numbers) if file else examples[numbers]

        try:
            yield batch
        finally:
            ended.set()
