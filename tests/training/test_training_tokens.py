"""A run's texts as token ids: the same steps from the file as from the texts, and one file for a run and its resume."""

from pathlib import Path

import numpy as np
import pytest
from encoders import IN_FAMILIES, make
from training_runs import Killed, kill_after, losses, run_of

from cse.encoder.rows import plain_ids, tokenizer_digest
from cse.encoder.token_file import TokenFile
from cse.encoder.torch_encoder import TorchEncoder
from cse.errors import ArtefactError
from cse.files.writing import partial_folder
from cse.training.loop import train
from cse.training.step import step_data
from cse.training.tokens import TokenisedTexts, tokenised_meanwhile


def of_file(encoder: TorchEncoder, run: object, work: Path, numbers: np.ndarray) -> TokenisedTexts:
    with tokenised_meanwhile(encoder, run, work, "of these texts", True) as examples:
        while not isinstance(batch := examples(numbers), TokenisedTexts):
            pass
        return batch


@pytest.mark.parametrize(("family", "name", "supervised"), IN_FAMILIES)
def test_a_step_reads_the_same_rows_from_the_file_as_from_the_texts(
    bert_folder: str, roberta_folder: str, tmp_path: Path, family: str, name: str, supervised: bool
) -> None:
    encoder = make(str(bert_folder if family == "bert" else roberta_folder), name, supervised)
    run = run_of(encoder, max_length=9)
    for step in (0, 3):
        tokens = of_file(encoder, run, tmp_path, run.numbers(step))
        for mine, theirs in zip(
            step_data(encoder, tokens, run.config, step)[1:],
            step_data(encoder, run.batch(step), run.config, step)[1:],
            strict=True,
        ):
            assert mine.templates == theirs.templates
            for array in ("kinds", "lengths", "offsets", "read_at", "tokens"):
                np.testing.assert_array_equal(getattr(mine, array), getattr(theirs, array))


def test_texts_without_a_token_are_read_from_a_file(tmp_path: Path) -> None:
    TokenFile.write(tmp_path, ["some", "none"], [("some", [[], [7, 8], [], [70_000]]), ("none", [[], []])], np.int32)
    ids, lengths = TokenFile.open(tmp_path, "some", np.int32).texts(np.array([3, 0, 1, 2, 1]))
    assert (ids.tolist(), lengths.tolist()) == ([70_000, 7, 8, 7, 8], [1, 0, 2, 0, 2])
    ids, lengths = TokenFile.open(tmp_path, "none", np.int32).texts(np.array([1, 0]))
    assert (ids.tolist(), lengths.tolist()) == ([], [0, 0])


def test_a_resumed_run_reads_the_file_again_and_ends_as_the_whole_run_does(bert_folder: str, tmp_path: Path) -> None:
    def trained(output: Path, **options: object) -> np.ndarray:
        encoder = make(str(bert_folder), "promptbert")
        train(encoder, run_of(encoder, epochs=2), output, **options)
        return np.concatenate([array.ravel() for array in encoder.learned_arrays().values()])

    whole = trained(tmp_path / "whole")
    assert not list(tmp_path.glob("*.partial"))
    output, work = tmp_path / "killed", partial_folder(tmp_path / "killed")

    def report(entry: dict) -> None:
        if entry["step"] >= 4:
            while not list(work.glob("tokens-*")):
                pass
        kill_after(4)(entry)

    with pytest.raises(Killed):
        trained(output, report=report)
    (folder,) = work.glob("tokens-*")
    written = (folder / "texts.ids").stat()
    seen = []

    def inode(entry: dict) -> None:
        seen.append((folder / "texts.ids").stat())

    np.testing.assert_array_equal(trained(output, resume=True, report=inode), whole)
    assert {(stat.st_ino, stat.st_mtime_ns) for stat in seen} == {(written.st_ino, written.st_mtime_ns)}
    assert losses(output) == losses(tmp_path / "whole")


def test_a_damaged_file_of_tokens_is_refused_with_the_cure(bert_folder: str, tmp_path: Path) -> None:
    encoder = make(str(bert_folder), "simcse")
    run = run_of(encoder)
    of_file(encoder, run, tmp_path, run.numbers(0))
    (path,) = tmp_path.glob("tokens-*/texts.ids")
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(ArtefactError, match=r"texts\.ids: damaged .*; delete its folder to have it made again"):
        of_file(encoder, run, tmp_path, run.numbers(0))


def test_a_run_within_an_epoch_writes_no_file(bert_folder: str, tmp_path: Path) -> None:
    encoder = make(str(bert_folder), "simcse")
    run = run_of(encoder, max_steps=3)
    with tokenised_meanwhile(encoder, run, tmp_path, "of these texts", True) as examples:
        assert examples(run.numbers(0)) == run.batch(0)
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_thread_ends_the_run(bert_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cse.training.tokens.TokenFile.write", full)
    encoder = make(str(bert_folder), "simcse")
    with pytest.raises(OSError, match=r"tokens-.* cannot be written .*; free some space"):
        train(encoder, run_of(encoder, epochs=500), tmp_path / "out")


def test_texts_of_many_blocks_are_tokenised_in_their_order(bert_folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = make(str(bert_folder), "simcse").tokenizer
    texts = [" ".join(["the", "dog", "park"][: number % 4]) for number in range(1500)]
    one_by_one = [plain_ids(tokenizer, [text])[0] for text in texts]
    for cores in (1, 3):
        monkeypatch.setattr("cse.encoder.rows.cores", lambda cores=cores: cores)
        assert plain_ids(tokenizer, texts) == one_by_one


def test_the_digest_of_a_tokenizer_is_that_of_what_it_reads(bert_folder: str, roberta_folder: str) -> None:
    first, second, other = (
        make(str(folder), "simcse").tokenizer for folder in (bert_folder, bert_folder, roberta_folder)
    )
    before = tokenizer_digest(first)
    first.backend_tokenizer.enable_truncation(3)
    first.backend_tokenizer.enable_padding()
    assert tokenizer_digest(first) == before == tokenizer_digest(second) != tokenizer_digest(other)
    first.truncation_side = "left"
    assert tokenizer_digest(first) != before
