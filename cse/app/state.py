"""The state that the page and the endpoints share, the models that visitors add to it, and what a result may touch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from cse.app import validation
from cse.app.corpus.corpora import DEMO_KEY, FIELD, OWN_KEY, ChosenCorpus, Demo, IndexedCorpus, indexed_corpora
from cse.app.corpus.own import BLOCK, GONE, KEPT, OwnCorpora, OwnCorpus
from cse.app.models.models import (
    UNNAMED,
    Column,
    Failure,
    Models,
    before,
    error_line,
    fingerprint_of,
    free_name,
    numbered,
    opened_by,
)
from cse.app.models.naming import BEFORE, POOLED, Admission, title
from cse.app.models.recent import Bounds, Recent
from cse.app.training.trainings import Trainings
from cse.models.names import BUNDLED
from cse.training.records import Report, silent

if TYPE_CHECKING:
    import pandas as pd

    from cse.analysis.duplicates import NearDuplicates
    from cse.analysis.votes import Judgement, Question
    from cse.encoder.encoder import Encoder
    from cse.evaluation.results import Scoreboard

T = TypeVar("T")
RESULTS = BUNDLED / "results"
MAX_MAPS = Bounds(64, 32 * 2**20)  # of a model each; so for groups
MAX_NEAR = Bounds(16, 32 * 2**20)  # 1.3 MB each for 50,000 texts
MAX_FRAMES, ROW_BYTES = Bounds(16, 32 * 2**20), 300  # tables of maps; bytes of a row, whose texts are the corpus's
MAX_BALLOTS = Bounds(64, own=8, seconds=KEPT)
MAX_ASKED, MANY_ANSWERS = 120, 1000  # questions of a ballot; more than it can have answers
MAX_SHOWN = 300  # characters kept of a text: a ballot takes at most 400 kB
NONE_YET = "Your texts"
LEAST_PAIRED = 20  # different texts; fewer have too few random pairs
STEPS = 1000  # more than the encodings of one corpus
PATHS = ("/", "~", ".", "\\")  # begin a path


@dataclass
class Ballot:
    """Blind questions on two models with the votes so far; `texts` are those of the questions and lists, by row.

    `differing` is the share of the compared texts whose neighbours differ; `ended` is true if the visitor asked for the
    verdict before the last vote. `corpus` is the key of that of the texts, and `number` tells one ballot from another.
    """

    judgement: Judgement
    questions: tuple[Question, ...]
    texts: Mapping[int, str]
    differing: float
    ended: bool = False
    corpus: str = DEMO_KEY
    number: int = field(default_factory=partial(next, count(1)))

    @property
    def mark(self) -> int:
        """What tells the next question from any other of any ballot."""
        return self.number * MANY_ANSWERS + len(self.judgement.answers)

    @property
    def question(self) -> Question | None:
        """The next question; None if the votes wanted are given, if there is no other, or if the visitor has ended."""
        if self.ended or self.judgement.counted >= self.judgement.target:
            return None
        return next(self.judgement.open(self.questions, self.texts), None)


@dataclass(frozen=True)
class AppState:
    """The state of one app.

    `boards` are the shipped results by task, or why they cannot be read; `admission` says which models visitors may
    add; `maps`, `groups` and near-duplicates (`near`) are cached; `own_corpora` and `ballots` are kept by the secret
    key of a visitor (`opened` of static/page.js), as `trainings` are; `corpora` are indexes.
    """

    models: Models
    demo: Demo
    own_corpora: OwnCorpora
    corpora: dict[str, IndexedCorpus]
    boards: dict[str, Scoreboard] | Failure
    admission: Admission = field(default_factory=Admission)
    maps: Recent[Any] = field(default_factory=lambda: Recent(MAX_MAPS))
    groups: Recent[tuple[np.ndarray, np.ndarray]] = field(default_factory=lambda: Recent(MAX_MAPS))
    frames: Recent[tuple[pd.DataFrame, dict[str, str], tuple[str, ...]]] = field(
        default_factory=lambda: Recent(MAX_FRAMES, size=lambda kept: ROW_BYTES * len(kept[0]))
    )
    near: Recent[NearDuplicates] = field(default_factory=lambda: Recent(MAX_NEAR))
    ballots: Recent[Ballot] = field(default_factory=lambda: Recent(MAX_BALLOTS))
    trainings: Trainings = field(default_factory=Trainings)


def open_state(
    models: Sequence[str],
    indexes: Sequence[Path | str],
    family: str | None = None,
    pooling: str | None = None,
    admission: Admission | None = None,
) -> AppState:
    """Make the state of an app, without reading weights. Raises IndexFolderError for a bad index."""
    admitted = admission or Admission()
    opened = Models(models, family, pooling, fetch=admitted.fetch)
    corpora = {corpus.key: corpus for corpus in indexed_corpora(indexes, opened)}
    return AppState(opened, Demo(), OwnCorpora(opened), corpora, open_boards(), admitted)


def open_boards(folder: Path = RESULTS) -> dict[str, Scoreboard] | Failure:
    """Return the scoreboards of the results files in a folder, or a Failure if one is damaged."""
    from cse.evaluation.results import read_scoreboards

    try:
        return read_scoreboards(folder)
    except ValueError as error:
        return Failure(error_line(error))


def admit_model(state: AppState, name: Any, key: str = "", archive: str | None = None) -> Column:
    """Open a model and add it to the current visitor's columns: that of a name or, for the owner, a folder's path."""
    requested, pooling = str(name or "").strip(), None
    if archive is None and not requested.startswith(PATHS):
        model, pooling = state.admission.model(name), POOLED.get(requested.lower())
        heading = requested.lower() if pooling else Path(model).name
        names: Iterable[str] = (heading, requested, f"{requested} again")
    else:
        trainings = state.trainings
        made = trainings.unpack(key, Path(archive)) if archive else trainings.local_model(requested)
        model, heading, requested, names = str(made.folder), made.name, UNNAMED, numbered(made.name)
    column = None
    try:
        column = put_column(state, model, requested, names, pooling)
        if column is None:
            raise ValueError(f"{title(heading)} is on your page already.")
    finally:
        if archive and column is None:
            trainings.discard(made)
    return column


def put_column(
    state: AppState, model: str, requested: str, names: Iterable[str], pooling: str | None = None
) -> Column | None:
    """Add a model to the current visitor's columns under the first of the `names` that is free; None if it is one."""
    models = state.models
    with models.admitting():
        reading = opened_by(model, pooling=pooling)
    if any(column.opened_by == reading for column in models.columns):
        return None
    column = Column(free_name(names, [column.name for column in models.columns]), *reading, added=requested)
    models.add(column)
    answer = models.apply(lambda _, encoder: encoder.dim, [column])[column.name]
    if isinstance(answer, Failure):
        models.remove_added(column)
        raise ValueError(f"{column.name} was not added: {answer.reason}")
    return column


def attach(state: AppState, key: str) -> tuple[list[str], list[str]]:
    """Add the models of a visitor's key that are not on the page; return their names and their starts', and why others
    were not added.
    """
    names, refused = list[str](), list[str]()
    for made, request in state.trainings.models(key):
        try:
            column = put_column(state, str(made.folder), UNNAMED, numbered(made.name))
            if column is None:
                continue
            names.append(column.name)
            start = f"{column.name}{BEFORE}"
            started = before(column) is not None
            if request and not started:
                started = put_column(state, request.start, UNNAMED, [start], request.pooling) is not None
            names += [start] * started
        except ValueError as error:
            refused.append(str(error))
    return names, list(dict.fromkeys(refused))


def chosen_corpus(state: AppState, corpus: str, key: str | None) -> ChosenCorpus:
    """Return the corpus of a name; `key` is the visitor's, for the visitor's own texts."""
    if corpus == DEMO_KEY:
        return state.demo
    if corpus != OWN_KEY:
        return state.corpora[validation.one_of(corpus, FIELD, [DEMO_KEY, OWN_KEY, *state.corpora])]
    own = state.own_corpora.corpus(key)
    if own is None:
        raise validation.FieldError(FIELD, GONE)
    return own


def reference_corpus(state: AppState, corpus: str, key: str | None) -> ChosenCorpus:
    """Return the corpus whose random pairs a cosine is compared with: the chosen one, the demo if that has too few."""
    with suppress(ValueError):  # its texts may be gone
        chosen = chosen_corpus(state, corpus, key)
        return chosen if len(set(chosen.texts)) >= LEAST_PAIRED else state.demo
    return state.demo


def version(state: AppState, corpus: str, own: OwnCorpus | None) -> int:
    """Return a number that differs if another corpus is chosen, or if the visitor's `own` one has other vectors."""
    if corpus == OWN_KEY:
        return 0 if own is None else own.number * STEPS + own.complete
    known = [DEMO_KEY, *state.corpora]
    return -1 - known.index(corpus) if corpus in known else 0  # one that is not there is refused where it is asked


def choice_mark(state: AppState, corpus: str, models: Sequence[str], key: str) -> str:
    """Return what differs if a choice has another corpus, other vectors of a visitor's own one, or other models."""
    return f"{version(state, corpus, state.own_corpora.corpus(key))} {list(models or ())}"


def choices_of(state: AppState, key: str = "") -> list[tuple[str, str]]:
    """Return the label and key of each corpus; the visitor's own is among them even before it exists."""
    own = state.own_corpora.corpus(key)
    indexed = [(each.label, each.key) for each in state.corpora.values()]
    return [(state.demo.label, DEMO_KEY), *indexed, (own.label if own else NONE_YET, OWN_KEY)]


@dataclass
class Session:
    """One request's view of the app. It notes which models answered, which did not and why, and what to say besides.

    `columns` are the models that are asked; `reference` is the corpus of the random pairs, which is the chosen one
    unless that has too few different texts.
    """

    state: AppState
    corpus: ChosenCorpus
    reference: ChosenCorpus
    columns: tuple[Column, ...]
    key: str = ""
    report: Report = silent
    models: dict[str, str] = field(default_factory=dict)  # fingerprints of those that answered
    failed: dict[str, str] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)  # those of the failed that still encode the corpus
    reading: tuple[str, ...] = ()  # those that are not asked, as they still encode the corpus
    notes: list[str] = field(default_factory=list)

    def each(self, function: Callable[[Column, Encoder], T], columns: Sequence[Column] | None = None) -> dict[str, T]:
        """Return the function's result for each model by name; models for which it raises an error are noted."""
        return self.each_text((), lambda column, encoder, _: function(column, encoder), columns=columns)

    def each_text(
        self,
        texts: Sequence[str],
        function: Callable[[Column, Encoder, np.ndarray], T],
        prompt: Callable[[Column, Encoder], str | None] = lambda column, encoder: None,
        columns: Sequence[Column] | None = None,
    ) -> dict[str, T]:
        """As `each`, with the (N, d) float32 vectors of N texts."""

        def answer(column: Column, encoder: Encoder, vectors: np.ndarray) -> T:
            value = function(column, encoder, vectors)
            self.models[column.name] = fingerprint_of(encoder)
            return value

        asked = self.columns if columns is None else columns
        values: dict[str, T] = {}
        for name, value in self.state.models.apply_to(texts, answer, asked, self.report, prompt).items():
            if isinstance(value, Failure):
                self.failed[name] = value.reason
                self.waiting += [name] * value.waits
                self.models.pop(name, None)
            else:
                values[name] = value
        return values

    def encoded(
        self, texts: Sequence[str], columns: Sequence[Column] | None = None, *, documents: bool = False
    ) -> dict[str, np.ndarray]:
        """Return each model's (N, d) vectors of N >= 1 texts, or `documents`; other requests go between blocks."""

        def encode(block: Sequence[str], column: Column, encoder: Encoder) -> np.ndarray:
            return encoder.encode_document(block) if documents else encoder.encode(block)

        vectors: dict[str, np.ndarray] = {}
        for column in self.columns if columns is None else columns:
            blocks: list[np.ndarray] = []
            for first in range(0, len(texts), BLOCK):
                if column.name not in self.failed:
                    blocks += self.each(partial(encode, texts[first : first + BLOCK]), [column]).values()
            if column.name not in self.failed:
                vectors[column.name] = np.concatenate(blocks)
        return vectors

    @staticmethod
    def name_of(corpus: ChosenCorpus) -> str:
        """Return the name of a corpus in a sentence."""
        return "the demo corpus" if corpus.key == DEMO_KEY else corpus.label

    @property
    def added(self) -> tuple[str, ...]:
        """The names by which the visitor added the models that answered."""
        return tuple(dict.fromkeys(
            column.added for column in self.columns if column.added and column.name in self.models
        ))  # fmt: skip


def open_session(
    state: AppState, corpus: Any = DEMO_KEY, key: Any = "", models: Sequence[str] | None = None, report: Report = silent
) -> Session:
    """Return the session of a request. Raises FieldError for a corpus that is not there."""
    chosen = chosen_corpus(state, corpus, key)
    asked, notes = list(chosen.columns or state.models.columns), list[str]()
    if models:
        able = asked
        others = [column for column in state.models.columns if column not in able]
        asked = chosen_columns([*able, *others], models)
        if chosen.columns and (lacking := [title(column.name) for column in asked if column not in able]):
            asked = [column for column in asked if column in able] or able
            notes = [f"Without an index of these sentences: {', '.join(lacking)}."]
    columns = chosen.answering(asked)
    reading = tuple(column.name for column in asked if column not in columns)
    reference = reference_corpus(state, corpus, key)
    return Session(state, chosen, reference, tuple(columns), str(key or ""), report, reading=reading, notes=notes)


def chosen_columns(columns: Sequence[Column], names: Sequence[str]) -> list[Column]:
    """Return the columns of these names in the order of `columns`, each after its own start where that is named."""
    known: dict[str, Column] = {}
    for column in columns:
        start = before(column)
        known |= {model.name: model for model in (start, column) if model is not None}
    for name in names:
        if name not in known:
            reason = f"No model is called {str(name)[:60]!r}; choose {' or '.join(known)}."
            raise validation.FieldError("The models", reason)
    return [column for name, column in known.items() if name in names]
