"""Encoding of a corpus in parts, one file each: processes share the work, and a killed run can be resumed.

The folder holds `part-00000-of-00004.npy` and so on, (n, d) float32 rows in the order of the sentences, or Parquet
tables with these rows as the last column, and `manifest.json` (`_manifest.json` beside tables). During the run,
`plan.json` holds the plan, and a `.json` next to each complete part its checksum.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import MISSING, asdict, dataclass, fields
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.corpus.corpus import Corpus, text_blocks
from cse.corpus.output import with_vectors
from cse.encoder.encoder import Update
from cse.encoder.processes import processes, together
from cse.errors import ArtefactError, command_line
from cse.files.checksums import checksum, feed_texts
from cse.files.replace import sweep
from cse.files.writing import FolderKind, check_folder, partial_folder, read_json, reserved, write_file, write_json

if TYPE_CHECKING:
    import pyarrow as pa

    from cse.encoder.encoder import Encoder

PLAN, MANIFEST = "plan.json", "manifest.json"
BLOCK = 4096  # sentences encoded at a time
SHARD_CURE = "encode it again"

Encode = Callable[[list[str]], np.ndarray]
Cells = Callable[[range], "pa.Table"]  # the columns of sentences by their positions


@dataclass(frozen=True)
class ShardPlan:
    """The corpus, the model and the number of parts; runs of equal plans on one machine give the same bytes.

    `model`, `pooling` and `family` open the model of this `fingerprint` again. `sha256` is that of the `count`
    sentences, each followed by a newline. `normalized` rows have length 1. `batch_size` changes the last bits of the
    vectors. They were made with `document_prompt`, and queries go with `query_prompt`, as an index records both. The
    `form` of the parts is npy or parquet; `columns` is a digest of those beside the vectors of parquet.
    """

    model: str
    pooling: str | None
    family: str | None
    fingerprint: str
    dimension: int
    normalized: bool
    count: int
    sha256: str
    shards: int
    batch_size: int | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    form: str = "npy"
    columns: str | None = None
    format: str = "cse-vectors"
    version: int = 1

    def rows(self, shard: int) -> range:
        """Return the numbers of the sentences in part `shard`, from 0; part sizes differ by at most one."""
        return range(self.count * shard // self.shards, self.count * (shard + 1) // self.shards)

    def name(self, shard: int) -> str:
        """Return the file name of part `shard`."""
        return f"part-{shard:05}-of-{self.shards:05}.{self.form}"


DEFAULTS = {field.name: field.default for field in fields(ShardPlan) if field.default is not MISSING}


def encode_in_parts(
    folder: Path,
    plan: ShardPlan,
    texts: Iterable[str],
    encode: Encode,
    resume: bool,
    report: Update,
    cells: Cells | None = None,
) -> None:
    """Encode `texts`, all sentences of the plan, into `folder`; each process of a launch encodes some of the parts.

    `cells` has the columns of Parquet parts. Raises ValueError as `begin` and `write_parts` do.
    """
    state = processes()
    with together():
        if state.is_main_process:
            begin(folder, plan, resume)
    with together():
        mine = range(state.process_index, plan.shards, state.num_processes)
        write_parts(folder, plan, texts, encode, mine, report, cells)
    with together():
        if state.is_main_process:
            finish(folder, plan)


def count_texts(texts: Iterable[str]) -> tuple[int, str]:
    """Return the number of sentences and the sha256 of all of them, each followed by a newline."""
    sha = hashlib.sha256()
    return feed_texts(sha, texts), sha.hexdigest()


def columns_digest(tables: Iterable[pa.Table]) -> str:
    """Return the sha256 of the cells of tables that follow one another, and of the names of their columns."""
    sha = hashlib.sha256()
    for number, table in enumerate(tables):
        if not number:
            feed_texts(sha, table.schema.names)
        for batch in table.to_batches():
            sha.update(memoryview(batch.serialize()))
    return sha.hexdigest()


def begin(folder: Path, plan: ShardPlan, resume: bool, cure: str = "give another `output`") -> None:
    """Create `folder` for `plan` or, with `resume`, continue in that of an unfinished run of the same plan.

    Raises ValueError if it holds anything else, such as a finished run, and if `shards` does not fit the text; `cure`
    is what to do if the plan is another one.
    """
    if not plan.count:
        raise ValueError("the text has no sentences; give one that has")
    if not 1 <= plan.shards <= plan.count:
        raise ValueError(f"`shards` is {plan.shards}, but there are {plan.count} sentences; give at most as many")
    if folder.is_file():
        raise ValueError(f"{folder}: is a file; give `output` the name of a folder")
    if _manifest(folder).exists():
        raise ValueError(f"{folder}: is finished; give another `output`, or delete it")
    sweep(folder / PLAN)  # temporary files of a killed run
    if folder.is_dir() and any(folder.iterdir()):
        _check_same(folder, plan, resume, cure)
    write_json(folder / PLAN, asdict(plan))


def _check_same(folder: Path, plan: ShardPlan, resume: bool, cure: str) -> None:
    if not (folder / PLAN).is_file():
        raise ValueError(f"{folder}: holds something else; give another `output`")
    begun = {**DEFAULTS, **read_json(folder / PLAN)}  # earlier plans have fewer fields
    if not resume:
        raise ValueError(f"{folder}: holds an unfinished run; continue it with `resume`, or give another `output`")
    expected = asdict(plan)
    if begun["sha256"] != plan.sha256:
        raise ValueError(f"{folder}: was begun with other sentences; give the corpus it was begun with, or {cure}")
    if begun["form"] == plan.form and begun["columns"] != plan.columns:
        raise ValueError(f"{folder}: was begun with other columns; give the table it was begun with, or {cure}")
    if odd := next((name for name in expected if begun.get(name) != expected[name]), None):
        raise ValueError(
            f"{folder}: was begun with {odd} {begun.get(odd)!r}, not {expected[odd]!r}; repeat its options, or {cure}"
        )


def write_parts(
    folder: Path,
    plan: ShardPlan,
    texts: Iterable[str],
    encode: Encode,
    mine: Sequence[int],
    report: Update,
    cells: Cells | None = None,
) -> None:
    """Encode those of the parts `mine` that are missing; `texts` are all sentences, of which the others are skipped.

    `cells` returns the table that stands before the vectors of these sentences, in Parquet parts; without it the parts
    are arrays. `report` gets the number of sentences of each block and of each existing part. Raises ValueError if
    there are fewer sentences than planned.
    """
    stream, position = iter(texts), 0
    for shard in sorted(mine):
        rows, path = plan.rows(shard), folder / plan.name(shard)
        record_file = path.with_suffix(".json")
        # A damaged part is written again.
        if record_file.is_file() and path.is_file() and read_json(record_file) == record(path):
            report(len(rows))
            continue
        for _ in islice(stream, rows.start - position):
            pass
        position = rows.stop
        vectors = _encoded(islice(stream, len(rows)), len(rows), encode, report)
        if cells is None:
            write_file(path, partial(_write_array, shape=(len(rows), plan.dimension), vectors=vectors))
        else:
            write_file(path, partial(_write_parquet, rows=rows, vectors=vectors, cells=cells))
        write_json(path.with_suffix(".json"), record(path))


def _encoded(texts: Iterator[str], count: int, encode: Encode, report: Update) -> Iterator[np.ndarray]:
    """Yield the vectors (n, d) of `count` sentences, a block at a time. Raises ValueError if there are fewer."""
    done = 0
    while block := list(islice(texts, BLOCK)):
        yield encode(block)
        done += len(block)
        report(len(block))
    if done != count:
        raise ValueError(f"the text changed while it was read: {count - done} sentences are missing; {SHARD_CURE}")


def _write_array(path: Path, shape: tuple[int, int], vectors: Iterable[np.ndarray]) -> None:
    array, done = np.lib.format.open_memmap(path, "w+", np.dtype(np.float32), shape), 0
    for block in vectors:
        array[done : done + len(block)] = block
        done += len(block)
    array.flush()


def _write_parquet(path: Path, rows: range, vectors: Iterable[np.ndarray], cells: Cells) -> None:
    """Write the table of sentences `rows` with their vectors as the last column."""
    import pyarrow.parquet as pq

    with ExitStack() as stack:
        writer, done = None, rows.start
        for block in vectors:
            table = with_vectors(cells(range(done, done + len(block))), block)
            writer = writer or stack.enter_context(pq.ParquetWriter(path, table.schema))
            writer.write_table(table)
            done += len(block)


def record(path: Path) -> dict[str, Any]:
    """Return size and checksum of a file."""
    return {"bytes": path.stat().st_size, "sha256": checksum(path)}


def finish(folder: Path, plan: ShardPlan) -> None:
    """Write the manifest of a folder with all its parts, and delete the files of the run."""
    names = [plan.name(shard) for shard in range(plan.shards)]
    parts = {name: read_json((folder / name).with_suffix(".json")) for name in names}
    # Engines that read a folder of Parquet skip files that begin with an underscore.
    name = f"_{MANIFEST}" if plan.form == "parquet" else MANIFEST
    write_json(folder / name, {**asdict(plan), "parts": parts})
    for path in (folder / PLAN, *((folder / name).with_suffix(".json") for name in names)):
        path.unlink()


def _manifest(folder: Path) -> Path:
    """Return the manifest of a finished folder; the path of that of arrays if there is none."""
    path = folder / f"_{MANIFEST}"
    return path if path.is_file() else folder / MANIFEST


def read_plan(folder: Path) -> ShardPlan:
    """Read the plan of a finished folder. Raises ArtefactError if it is none, is unfinished or lacks a part."""
    if (folder / PLAN).is_file() and not _manifest(folder).is_file():
        raise ArtefactError(f"{folder}: is an unfinished run; continue it by {command_line('encode')} with `resume`")
    values = {**DEFAULTS, **read_json(_manifest(folder))}
    names = [field.name for field in fields(ShardPlan)]
    missing = [name for name in (*names, "parts") if name not in values]
    if missing or (values["format"], values["version"]) != (ShardPlan.format, ShardPlan.version):
        raise ArtefactError(
            f"{folder}: its {MANIFEST} is not that of encoded parts; give a folder of {command_line('encode')}"
        )
    plan = ShardPlan(**{name: values[name] for name in names})
    for shard in range(plan.shards):
        path = folder / plan.name(shard)
        recorded = values["parts"].get(path.name, {}).get("bytes")
        if not path.is_file() or path.stat().st_size != recorded:
            raise ArtefactError(f"{path}: is missing or damaged; {SHARD_CURE}")
    return plan


def read_blocks(folder: Path) -> Iterator[np.ndarray]:
    """Yield the rows (n, d) float32 of a finished folder in order, at most `BLOCK` at a time, memory-mapped.

    Raises ArtefactError as `read_plan` does, and if a part does not match the manifest.
    """
    plan, recorded = read_plan(folder), read_json(_manifest(folder))["parts"]
    for shard in range(plan.shards):
        path = folder / plan.name(shard)
        if checksum(path) != recorded[path.name]["sha256"]:
            raise ArtefactError(f"{path}: damaged (its sha256 is not the one recorded); {SHARD_CURE}")
        yield from part_blocks(path)


def part_blocks(path: Path) -> Iterator[np.ndarray]:
    """Yield the rows (n, d) float32 of a part in order, at most `BLOCK` at a time; an array is memory-mapped."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as part:
            for batch in part.iter_batches(BLOCK, columns=[part.schema_arrow.names[-1]]):
                yield batch.column(0).flatten().to_numpy().reshape(batch.num_rows, -1)
        return
    part = np.load(path, mmap_mode="r", allow_pickle=False)
    for first in range(0, len(part), BLOCK):
        yield part[first : first + BLOCK]


def with_texts(folder: Path, texts: Sequence[str] | Corpus) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield the rows of a finished folder with their texts; errors as `paired`."""
    return paired(folder, read_plan(folder).sha256, read_blocks(folder), texts)


def paired(
    folder: Path, sha256: str, blocks: Iterable[np.ndarray], texts: Sequence[str] | Corpus
) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield the `blocks` of rows in a folder with their texts, blocks of a list or a `Corpus`.

    Raises ValueError at the end if their sentences, of this `sha256`, were not the encoded ones; discard all then.
    """
    stream, sha, left = iter(blocks), hashlib.sha256(), np.empty((0, 0), np.float32)
    for block, sentences in text_blocks(texts, BLOCK):
        feed_texts(sha, sentences)
        while len(left) < len(sentences) and (more := next(stream, None)) is not None:
            left = np.concatenate([left, more]) if len(left) else more
        if len(left) >= len(sentences):
            yield block, left[: len(sentences)]
        left = left[len(sentences) :]
    if sha.hexdigest() != sha256 or len(left) or next(stream, None) is not None:
        raise ValueError(f"{folder}: was encoded from other sentences; give the corpus it was made of")


UNFINISHED = FolderKind(
    "an unfinished build", PLAN, ("fingerprint", "sha256"), ("part-*", ".part-*", PLAN, f".{PLAN}.*")
)
DROP_UNFINISHED = "drop it by `overwrite` without `resume`"


@dataclass(frozen=True)
class UnfinishedBuild:
    """The parts of a build of the index folder `output` that is in progress or was killed."""

    output: Path

    @property
    def folder(self) -> Path:
        """The folder of the parts."""
        return partial_folder(self.output)

    @property
    def begun(self) -> bool:
        """True if the folder holds parts of a build."""
        return UNFINISHED.is_marked(self.folder)

    @contextmanager
    def held(self, *, resume: bool, overwrite: bool) -> Iterator[None]:
        """Lock the output in the block, and delete the parts when it ends without an error.

        Raises ValueError if another process builds there, for a build that is neither resumed nor overwritten, and, to
        resume, for files of something else. Touches no file there if no build was begun and none is to be kept.
        """
        check_folder(self.output)
        with reserved(self.output):
            sweep(self.folder)
            with suppress(OSError):  # missing, or not empty as a killed deletion may leave it
                self.folder.rmdir()
            if not (resume or self.begun):
                yield
                return
            sweep(self.folder / PLAN)
            UNFINISHED.check_replaceable(self.folder)
            if self.begun and not (resume or overwrite):
                raise ValueError(
                    f"{self.folder}: holds an unfinished build; `resume` goes on with it, `overwrite` drops it"
                )
            yield
            UNFINISHED.delete(self.folder)

    def encoded(
        self,
        opened_by: tuple[str, str | None, str | None],
        encoder: Encoder,
        texts: Sequence[str] | Corpus,
        batch_size: int | None,
        report: Update,
    ) -> Iterator[tuple[Any, np.ndarray]]:
        """Encode the texts whose part is missing or damaged, then yield all with their vectors, a block at a time.

        `opened_by` are the name, pooling and family of the model. `report` gets the number of rows of each block and of
        each part that is there. Raises ValueError for parts of other texts, another model or another batch size.
        """

        def sentences() -> Iterator[str]:
            return chain.from_iterable(sentences for _, sentences in text_blocks(texts, BLOCK))

        count, sha256 = count_texts(sentences())
        plan = ShardPlan(
            *opened_by, encoder.fingerprint, encoder.get_embedding_dimension(), normalized=False,
            count=count, sha256=sha256, shards=-(-count // BLOCK), batch_size=batch_size,
            query_prompt=encoder.query_prompt, document_prompt=encoder.document_prompt,
        )  # fmt: skip
        encode = partial(encoder.encode, prompt=encoder.document_prompt, batch_size=batch_size, show_progress_bar=False)
        begin(self.folder, plan, resume=True, cure=DROP_UNFINISHED)
        write_parts(self.folder, plan, sentences(), encode, range(plan.shards), report)
        parts = (self.folder / plan.name(shard) for shard in range(plan.shards))
        blocks = chain.from_iterable(map(part_blocks, parts))
        return paired(self.folder, sha256, blocks, texts)
