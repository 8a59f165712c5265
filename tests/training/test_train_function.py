"""`cse.train`: the run of the command, from lists, datasets and files, with callbacks and one-line errors."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import SENTENCES
from datasets import Dataset, IterableDataset
from typer.testing import CliRunner

import cse
from cse.commands.train import app

DEV = [(float(i % 6), SENTENCES[i % 7], SENTENCES[(3 * i + 1) % 7]) for i in range(10)]
SMALL = {"batch_size": 3, "eval_every": 1, "seed": 5, "learning_rate": 1e-3}


def weights(folder: Path | str) -> bytes:
    return (Path(folder) / "model.safetensors").read_bytes()


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    return tmp_path / "text.txt"


def test_the_function_and_the_command_write_the_same_checkpoint_and_scores(bert_folder, text, tmp_path):
    (tmp_path / "dev.tsv").write_text("".join("{}\t{}\t{}\n".format(*pair) for pair in DEV))
    words = ["promptbert", "--data", text, "--backbone", bert_folder, "--dev", tmp_path / "dev.tsv", "--json"]
    options = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    done = CliRunner().invoke(app, [str(word) for word in [*words, *options, "--output", tmp_path / "command"]])
    summary = json.loads(done.stdout)
    columns = Dataset.from_dict({"text": SENTENCES})
    stream = columns.to_iterable_dataset()
    frame = pd.DataFrame(DEV, columns=["score", "sentence1", "sentence2"])
    given = [(SENTENCES, DEV), (columns, frame), (stream, DEV), (text, tmp_path / "dev.tsv")]
    for number, (data, dev) in enumerate(given):
        output = tmp_path / str(number)
        result = cse.train("promptbert", data, output=output, backbone=bert_folder, dev=dev, progress=False, **SMALL)
        assert weights(output) == weights(tmp_path / "command")
        scores = {"start": result.start, "best": result.best, "best_step": result.best_step, "last": result.last}
        assert scores == {name: summary[name] for name in scores}
        assert (result.output, result.steps) == (str(output), summary["steps"])
    np.testing.assert_array_equal(result.load().encode(SENTENCES), cse.load(result.output).encode(SENTENCES))


def test_a_list_of_tuples_is_supervised(bert_folder, tmp_path):
    rows = list(zip(SENTENCES, SENTENCES[1:], SENTENCES[2:], strict=False))
    cse.train("promptbert", iter(rows), output=tmp_path / "out", backbone=bert_folder, max_steps=1, progress=False)
    assert cse.load(str(tmp_path / "out")).method.supervised
    recorded = json.loads((tmp_path / "out" / "cse_checkpoint.json").read_text())["settings"]
    assert (recorded["data"], recorded["examples"]) == ("texts in memory", len(rows))


def test_callbacks_get_step_loss_scores_and_the_rate_that_decays_to_zero(bert_folder, tmp_path, capsys):
    entries: list[dict] = []
    again: list[int] = []
    options = {**SMALL, "eval_every": 2, "epochs": 2}
    result = cse.train(
        "simcse", SENTENCES, output=tmp_path / "out", backbone=bert_folder, dev=DEV, progress=False,
        callbacks=[entries.append, lambda entry: again.append(entry["step"])], **options,
    )  # fmt: skip
    assert again == [entry["step"] for entry in entries] == [1, 2, 3, 4]
    assert [entry["learning_rate"] for entry in entries] == pytest.approx([1e-3, 7.5e-4, 5e-4, 2.5e-4])
    log = [json.loads(line) for line in (tmp_path / "out" / "train_log.jsonl").read_text().splitlines()]
    for key in ("loss", "dev"):
        assert [entry.get(key) for entry in entries] == [entry.get(key) for entry in log]
    assert entries[-1]["dev"] == result.last
    assert entries[-1]["best"] == result.best == max(entries[1]["dev"], entries[3]["dev"])
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "bert"}, "unknown method 'bert'; choose from simcse"),
        ({"learning_rat": 0.1}, "unknown settings: learning_rat; choose from batch_size, learning_rate"),
        ({"data": ["one"]}, "texts in memory: contrastive training needs at least 2 examples, got 1"),
        ({"data": ["news", "sport"] * 50}, "100 rows hold only 2 different short texts, which look like labels"),
        ({"data": "missing.txt"}, "missing.txt: no such file"),
    ],
)
def test_bad_arguments_are_one_line_and_leave_nothing(bert_folder, tmp_path, options, message):
    arguments = {"method": "simcse", "data": SENTENCES, "backbone": bert_folder, **options}
    with pytest.raises(ValueError, match=message) as error:
        cse.train(arguments.pop("method"), arguments.pop("data"), output=tmp_path / "out", progress=False, **arguments)
    assert "\n" not in str(error.value)
    assert not any(tmp_path.iterdir())


def endless() -> Iterator[dict[str, object]]:
    yield from ({"id": number, "text": f"{SENTENCES[number % 7]} number {number}"} for number in count())


def test_a_stream_without_end_is_read_as_far_as_its_steps_take(bert_folder, tmp_path):
    stream = IterableDataset.from_generator(endless).shuffle(buffer_size=5, seed=1)
    options = {"backbone": bert_folder, "max_steps": 4, "batch_size": 3, "progress": False}
    result = cse.train("simcse", stream, output=tmp_path / "stream", **options)
    texts = [row["text"] for row in stream.take(12)]
    cse.train("simcse", texts, output=tmp_path / "list", **options)
    assert result.steps == 4
    assert weights(tmp_path / "stream") == weights(tmp_path / "list")
    cse.train("simcse", stream, output=tmp_path / "auto", dev="auto", **options)
    settings = json.loads((tmp_path / "auto" / "cse_checkpoint.json").read_text())["settings"]
    assert (settings["examples"], settings["held_out"]) == (425, 87)


def test_a_killed_run_of_a_stream_is_resumed_exactly_and_refuses_other_rows(bert_folder, tmp_path):
    def stream(seed: int) -> IterableDataset:
        return IterableDataset.from_generator(endless).shuffle(buffer_size=5, seed=seed)

    def killed(entry: dict) -> None:
        if entry["step"] == 3:
            raise InterruptedError

    options = {"backbone": bert_folder, "max_steps": 4, "dev": DEV, "progress": False, **SMALL}
    cse.train("simcse", stream(1), output=tmp_path / "whole", **options)
    with pytest.raises(InterruptedError):
        cse.train("simcse", stream(1), output=tmp_path / "out", callbacks=killed, **options)
    with pytest.raises(ValueError, match="texts") as raised:
        cse.train("simcse", stream(2), output=tmp_path / "out", resume=True, **options)
    assert "\n" not in str(raised.value)
    cse.train("simcse", stream(1), output=tmp_path / "out", resume=True, **options)
    assert weights(tmp_path / "out") == weights(tmp_path / "whole")
