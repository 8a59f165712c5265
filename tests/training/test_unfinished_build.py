"""A build interrupted anywhere and resumed gives the bytes of an uninterrupted one, and encodes nothing twice."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from app_models import write_model
from index_corpus import FACTORIES, in_batches
from typer.testing import CliRunner, Result

from cse.commands import build_index, encode
from cse.encoding.torch_encoder import TorchEncoder
from cse.storage.replace import Replacement
from cse.training.unfinished_build import UnfinishedBuild
from index import BuildSettings, VectorIndex, engine, states

TEXTS = [f"a dog and {number} cats" for number in range(13)]
BLOCK = 4


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def always_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the state after each change; train on heads shorter than the corpus."""
    monkeypatch.setattr(states, "SECONDS", -1.0)
    monkeypatch.setattr(states, "SHARE", 0)
    monkeypatch.setattr(engine, "TRAINING_FLOOR", 150)
    monkeypatch.setattr(engine, "TRAINING_CAP", 150)


@pytest.mark.usefixtures("always_written")
@pytest.mark.parametrize("factory", [*FACTORIES, "IDMap,HNSW8", "PCA16,IVF8_HNSW8,SQ8"])
def test_an_index_goes_on_from_its_state_to_the_same_bytes(
    tmp_path: Path, factory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = BuildSettings(factory=factory, corpus="demo")
    VectorIndex.build(in_batches(97), tmp_path / "whole", settings=settings)
    added: list[int] = []
    really, state = engine.add, tmp_path / "state"

    def adding(index: Any, block: np.ndarray, first_row: int) -> None:
        added.append(first_row)
        if len(added) == 3:
            raise KeyboardInterrupt
        really(index, block, first_row)

    monkeypatch.setattr(engine, "add", adding)
    with pytest.raises(KeyboardInterrupt):
        VectorIndex.build(in_batches(97), tmp_path / "out", settings=settings, state=state)
    broken_off = added[-1]
    VectorIndex.build(in_batches(97), tmp_path / "out", settings=settings, state=state)
    assert added[3] == broken_off > 0  # what was in the state is not added again
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.mark.usefixtures("always_written")
@pytest.mark.parametrize("harm", ["factory", "seed", "damaged", "cut", "no record"])
def test_a_state_that_does_not_fit_is_not_used(tmp_path: Path, harm: str) -> None:
    def build(name: str, state: Path | None = None, **changed: Any) -> dict[str, bytes]:
        settings = BuildSettings(**{"factory": "IVF8,SQ8", "corpus": "demo", **changed})
        VectorIndex.build(in_batches(97), tmp_path / name, settings=settings, state=state)
        return contents(tmp_path / name)

    state = tmp_path / "state"
    build("first", state)
    path, changed = state / "index.faiss", {}
    if harm == "damaged":
        path.write_bytes(path.read_bytes()[:-9] + b"\x7f" * 9)
    elif harm == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    elif harm == "no record":
        (state / "state.json").unlink()
    else:
        changed = {"factory": {"factory": "IVF4,SQ8"}, "seed": {"seed": 7}}[harm]
    assert build("second", state, **changed) == build("third", **changed)


@pytest.mark.usefixtures("always_written")
def test_a_state_of_more_rows_than_come_again_is_refused(tmp_path: Path) -> None:
    settings, state = BuildSettings(factory="SQ8"), tmp_path / "state"
    VectorIndex.build(in_batches(100), tmp_path / "out", settings=settings, state=state)
    with pytest.raises(ValueError, match="has 600 rows, but the corpus only 500; give the corpus it was started with"):
        VectorIndex.build(in_batches(100, 500), tmp_path / "out", settings=settings, state=state)
    assert len(VectorIndex.load(tmp_path / "out")) == 600


@pytest.mark.usefixtures("always_written")
@pytest.mark.parametrize("stop", [0, 2])
@pytest.mark.parametrize("changed", [0, 160])
def test_a_state_of_other_vectors_is_refused(
    tmp_path: Path, stop: int, changed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted when trained or when it has rows; with another row in the head or after it."""
    settings, state = BuildSettings(factory="IVF2,SQ8"), tmp_path / "state"
    batches = list(in_batches(97))
    really, calls = engine.add, iter(range(9))

    def adding(index: Any, block: np.ndarray, first_row: int) -> None:
        if next(calls) == stop:
            raise KeyboardInterrupt
        really(index, block, first_row)

    with monkeypatch.context() as patched:
        patched.setattr(engine, "add", adding)
        with pytest.raises(KeyboardInterrupt):
            VectorIndex.build(batches, tmp_path / "out", settings=settings, state=state)
    others = [(texts, vectors.copy()) for texts, vectors in batches]
    others[changed // 97][1][changed % 97] *= -1
    if stop or not changed:
        with pytest.raises(ValueError, match=r"has other vectors in its first .* rows; give the corpus it was started"):
            VectorIndex.build(others, tmp_path / "out", settings=settings, state=state)
        assert not (tmp_path / "out").exists()
    else:  # the state has none of what changed
        VectorIndex.build(others, tmp_path / "out", settings=settings, state=state)
        VectorIndex.build(others, tmp_path / "whole", settings=settings)
        assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_little_work_writes_no_state(tmp_path: Path) -> None:
    VectorIndex.build(in_batches(97), tmp_path / "out", settings=BuildSettings(factory="SQ8"), state=tmp_path / "state")
    assert not (tmp_path / "state").exists()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("checkpoints")
    return {name: write_model(folder / name, bert_folder, name) for name in ("promptbert", "simcse")}


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The batches of sentences given to a model; "stop" as the first one interrupts the model."""
    given: list[str] = []
    really = TorchEncoder.encode

    def encoding(self: TorchEncoder, texts: list[str], **options: Any) -> Any:
        if given[:1] == ["stop"] and len(given) > int(given[1]) * BLOCK + 1:
            raise KeyboardInterrupt
        given.extend(texts)
        return really(self, texts, **options)

    monkeypatch.setattr(TorchEncoder, "encode", encoding)
    monkeypatch.setattr("index.building.BLOCK", BLOCK)
    return given


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


def run(*words: object) -> Result:
    return CliRunner().invoke(build_index.app, [str(word) for word in words])


def built(*words: object) -> None:
    result = run(*words)
    assert result.exit_code == 0, result.output


def interrupted(seen: list[str], blocks: int, *words: object) -> None:
    """A build that is interrupted after so many encoded blocks."""
    seen[:] = ["stop", str(blocks)]
    assert run(*words).exit_code == 130
    assert seen[2:] == TEXTS[: blocks * BLOCK]
    seen.clear()


def refused(result: Result, code: int, *parts: str) -> None:
    assert result.exit_code == code, result.output
    for part in parts:
        assert part in result.stderr.splitlines()[-1]


@pytest.mark.usefixtures("always_written")
@pytest.mark.parametrize("blocks", [1, 2, 3])
@pytest.mark.parametrize("factory", ["Flat", "HNSW8,SQ8"])
def test_a_broken_off_build_encodes_the_rest_alone_and_ends_in_the_same_bytes(
    corpus: Path, tmp_path: Path, models: dict[str, Path], seen: list[str], blocks: int, factory: str
) -> None:
    given = (corpus, "--model", models["promptbert"], "--factory", factory, "--output")
    built(*given, tmp_path / "whole")
    interrupted(seen, blocks, *given, tmp_path / "out", "--resume")
    assert not (tmp_path / "out").exists()
    built(*given, tmp_path / "out", "--resume")
    assert seen == TEXTS[blocks * BLOCK :]
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "out", "whole"]


def test_a_build_of_encoded_parts_goes_on_from_the_state(
    corpus: Path, tmp_path: Path, models: dict[str, Path], always_written: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cse.encoding.shards.BLOCK", BLOCK)
    monkeypatch.setattr(engine, "TRAINING_FLOOR", 1)
    monkeypatch.setattr(engine, "TRAINING_CAP", 1)
    parts = ("--model", models["simcse"], "--input", corpus, "--output", tmp_path / "parts", "--shards", 2)
    assert CliRunner().invoke(encode.app, [str(word) for word in parts]).exit_code == 0
    given = (corpus, "--vectors", tmp_path / "parts", "--factory", "HNSW8", "--output")
    built(*given, tmp_path / "whole")
    added: list[int] = []
    really = engine.add

    def adding(index: Any, block: np.ndarray, first_row: int) -> None:
        added.append(first_row)
        if len(added) == 4:
            raise KeyboardInterrupt
        really(index, block, first_row)

    monkeypatch.setattr(engine, "add", adding)
    assert run(*given, tmp_path / "out", "--resume").exit_code == 130
    changed = (corpus, "--model", models["simcse"], "--output", tmp_path / "out", "--resume")
    refused(run(*changed), 3, "out.partial: was begun with vectors '", "not None; repeat its options")
    built(*given, tmp_path / "out", "--resume")
    assert added[4] == added[3] > 0
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert not (tmp_path / "out.partial").exists()


def test_what_does_not_fit_an_unfinished_build_is_refused_and_left_alone(
    corpus: Path, tmp_path: Path, models: dict[str, Path], seen: list[str]
) -> None:
    output, work = tmp_path / "out", tmp_path / "out.partial"
    given = (corpus, "--model", models["promptbert"], "--output", output)
    interrupted(seen, 2, *given, "--resume")
    before = contents(work)
    refused(run(*given), 3, "out.partial: holds an unfinished build; --resume goes on with it, --overwrite drops it")
    other = (corpus, "--model", models["simcse"], "--output", output, "--resume")
    refused(run(*other), 3, "was begun with fingerprint", "drop it by --overwrite without --resume")
    refused(run(*given, "--resume", "--batch-size", 2), 3, "was begun with batch_size None, not 2")
    corpus.write_text("\n".join(["another", *TEXTS[1:]]))
    refused(run(*given, "--resume"), 3, "block-000000.npy: is of other sentences; give the corpus")
    assert contents(work) == before
    assert seen == []
    corpus.write_text("\n".join(TEXTS))
    (work / "thesis.tex").write_text("years of work")
    refused(run(*given, "--overwrite"), 3, "out.partial: holds thesis.tex")
    refused(run(*given, "--resume"), 3, "out.partial: holds thesis.tex")
    (work / "thesis.tex").unlink()
    built(*given, "--overwrite")
    assert seen == TEXTS
    assert not work.exists()


def test_a_build_that_another_process_goes_on_with_is_refused_and_left_alone(
    corpus: Path, tmp_path: Path, models: dict[str, Path], seen: list[str]
) -> None:
    output, work = tmp_path / "out", tmp_path / "out.partial"
    given = (corpus, "--model", models["promptbert"], "--output", output)
    interrupted(seen, 2, *given, "--resume")
    before = contents(work)
    with (work / "build.json").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        for option in ([], ["--resume"], ["--overwrite"]):
            refused(run(*given, *option), 3, "out.partial: another run is writing there; give another --output")
    assert contents(work) == before
    assert seen == []
    built(*given, "--resume")
    assert seen == TEXTS[2 * BLOCK :]
    assert not work.exists()


@pytest.mark.parametrize("stop", ["before", "mark", "first", "mark last"])
@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_a_build_killed_when_the_index_is_there_goes_on_to_the_same(
    corpus: Path,
    tmp_path: Path,
    models: dict[str, Path],
    seen: list[str],
    stop: str,
    overwrite: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output, work = tmp_path / "out", tmp_path / "out.partial"
    given = (corpus, "--model", models["promptbert"], "--output", output)

    def dropping(self: UnfinishedBuild) -> None:
        if stop != "before":
            self._mark_done()
        if stop in ("first", "mark last"):
            (work / "block-000000.npy").unlink()
        if stop == "mark last":
            shutil.rmtree(work)
            work.mkdir()
        raise KeyboardInterrupt

    def killed() -> dict[str, bytes]:
        shutil.rmtree(output, ignore_errors=True)
        with monkeypatch.context() as patched:
            patched.setattr(UnfinishedBuild, "drop", dropping)
            assert run(*given, "--resume").exit_code == 130
        seen.clear()
        return contents(output)

    whole = killed()
    result = run(*given, "--resume", *overwrite)
    assert result.exit_code == 0, result.output
    assert f"{output}: {len(TEXTS)} rows" in result.stdout
    assert seen == []
    assert contents(output) == whole
    assert not work.exists()
    if stop != "before":
        killed()
        refused(run(*given), 3, "holds an index already")
        assert not work.exists()
        killed()
        corpus.write_text("another\n")
        refused(run(*given, "--resume"), 3, "holds an index already")
        assert contents(output) == whole


def test_what_comes_there_during_a_build_stays_and_is_no_error(
    corpus: Path, tmp_path: Path, models: dict[str, Path], seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "out.partial"
    really = VectorIndex.build

    def coming(*given: Any, **options: Any) -> VectorIndex:
        found = really(*given, **options)
        (work / ".DS_Store").write_text("icons")
        (work / "notes").mkdir()
        return found

    monkeypatch.setattr(VectorIndex, "build", coming)
    built(corpus, "--model", models["promptbert"], "--output", tmp_path / "out", "--resume")
    assert sorted(path.name for path in work.iterdir()) == [".DS_Store", "notes"]
    assert VectorIndex.load(tmp_path / "out").manifest.count == len(TEXTS)


def test_a_folder_of_that_name_that_is_no_unfinished_build_is_left_alone(
    corpus: Path, tmp_path: Path, models: dict[str, Path]
) -> None:
    given = (corpus, "--model", models["promptbert"], "--output", tmp_path / "out")
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial" / "thesis.tex").write_text("years of work")
    refused(run(*given, "--resume"), 3, "out.partial: holds thesis.tex")
    built(*given)
    built(*given, "--overwrite")
    assert contents(tmp_path / "out.partial") == {"thesis.tex": b"years of work"}


def test_what_a_kill_in_the_first_writing_left_goes_with_the_build(
    corpus: Path, tmp_path: Path, models: dict[str, Path], seen: list[str]
) -> None:
    given = (corpus, "--model", models["promptbert"], "--output", tmp_path / "out", "--resume")
    interrupted(seen, 1, *given)
    killed = Replacement.begin(tmp_path / "out.partial")  # its lock stays where a kill follows the change of names
    assert killed.held is not None
    killed.held.close()
    built(*given)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "out"]


def test_another_factory_takes_the_vectors_that_are_there(
    corpus: Path, tmp_path: Path, models: dict[str, Path], seen: list[str]
) -> None:
    given = (corpus, "--model", models["promptbert"], "--output", tmp_path / "out", "--resume")
    refused(run(*given, "--factory", "IVF64,Flat"), 3, "needs at least 64 sentences")
    seen.clear()
    built(*given, "--factory", "IVF2,Flat")
    assert seen == []
    assert VectorIndex.load(tmp_path / "out").manifest.factory == "IVF2,Flat"


@pytest.mark.parametrize("harm", ["flipped", "cut", "no record", "no part", "no JSON"])
def test_a_damaged_block_is_encoded_again(
    corpus: Path, tmp_path: Path, models: dict[str, Path], seen: list[str], harm: str
) -> None:
    given = (corpus, "--model", models["promptbert"], "--output")
    built(*given, tmp_path / "whole")
    interrupted(seen, 3, *given, tmp_path / "out", "--resume")
    part = tmp_path / "out.partial" / "block-000001.npy"
    if harm == "flipped":
        part.write_bytes(part.read_bytes()[:-1] + b"\x7f")
    elif harm == "cut":
        part.write_bytes(part.read_bytes()[:-1])
    elif harm == "no part":
        part.unlink()
    elif harm == "no record":
        part.with_suffix(".json").unlink()
    else:
        part.with_suffix(".json").write_text("{")
    built(*given, tmp_path / "out", "--resume")
    assert seen == [*TEXTS[BLOCK : 2 * BLOCK], *TEXTS[3 * BLOCK :]]
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.mark.parametrize("words", [["--output", "out", "--append"], ["--store", "milvus://127.0.0.1:1/demo"]])
def test_what_makes_no_new_folder_is_not_resumed(
    corpus: Path, tmp_path: Path, models: dict[str, Path], words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(build_index, "_check_output", lambda *given, **options: None)
    refused(run(corpus, "--model", models["simcse"], *words, "--resume"), 2, "scripts.encode --shards")
