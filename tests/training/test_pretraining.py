"""Pretraining: it learns, resumes exactly and accumulates gradients; its folders are kept, resumed or refused."""

import errno
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import SENTENCES
from model_files import check_opens_everywhere
from pretraining_runs import CONFIG, curve, kill_at, run_pretraining, write_corpus
from transformers import AutoModelForMaskedLM, AutoTokenizer

from cse.errors import ArtefactError
from cse.training import pretraining


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path)


def test_a_killed_pretraining_resumes_to_the_same_model(corpus, tmp_path):
    whole = run_pretraining(corpus, tmp_path / "whole", CONFIG, eval_every=4)
    with pytest.raises(KeyboardInterrupt):
        run_pretraining(corpus, tmp_path / "killed", CONFIG, eval_every=4, report=kill_at(8))
    with pytest.raises(ArtefactError, match="killed: begun in precision no, not bf16; give that `precision`"):
        run_pretraining(corpus, tmp_path / "killed", CONFIG, eval_every=4, resume=True, precision="bf16")
    resumed = run_pretraining(corpus, tmp_path / "killed", CONFIG, eval_every=4, resume=True)
    assert curve(resumed) == curve(whole)
    assert resumed["precision"] == "no"
    models = [AutoModelForMaskedLM.from_pretrained(tmp_path / name / "model") for name in ("whole", "killed")]
    for first, second in zip(*(model.state_dict().values() for model in models), strict=True):
        assert torch.equal(first, second)
    recipe = json.loads((tmp_path / "whole" / "model" / "pretraining.json").read_text())
    assert recipe["recipe"]["seed"] == 3
    with pytest.raises(ArtefactError, match="another recipe"):
        run_pretraining(corpus, tmp_path / "killed", replace(CONFIG, learning_rate=0.5), resume=True)


def test_pretraining_learns_and_goes_on_from_the_model_it_is_given(corpus, tmp_path):
    corpus.write_text("\n".join([*SENTENCES, ""] * 150))  # the held-out documents say what the others say
    config = replace(CONFIG, vocabulary=60, hidden=48, tokens=512 * 120, batch_tokens=512, learning_rate=5e-3)
    first = run_pretraining(corpus, tmp_path / "a", config, eval_every=20)
    assert curve(first)[-1] < curve(first)[0] - 0.2
    start = str(tmp_path / "a" / "model")
    rest = replace(config, vocabulary=None, tokens=512, learning_rate=1e-9)
    more = run_pretraining(corpus, tmp_path / "b", rest, init=start)
    assert more["before"]["recipe"]["tokens"] == config.tokens
    assert curve(more)[0] == pytest.approx(curve(first)[-1], abs=0.01)  # the model is stored in half precision
    vocabularies = [AutoTokenizer.from_pretrained(folder).get_vocab() for folder in (start, tmp_path / "b" / "model")]
    assert vocabularies[0] == vocabularies[1]


def test_a_step_in_parts_is_the_whole_step(corpus, tmp_path):
    config = replace(CONFIG, tokens=512 * 6, batch_tokens=512)
    whole = run_pretraining(corpus, tmp_path / "whole", config, eval_every=2)
    accumulated = run_pretraining(corpus, tmp_path / "parts", replace(config, accumulate=5), eval_every=2)
    losses = [[entry["loss"] for entry in result["curve"]] for result in (whole, accumulated)]
    assert losses[1] == pytest.approx(losses[0], abs=2e-4)
    assert curve(accumulated) == pytest.approx(curve(whole), abs=2e-4)


def test_a_full_disk_leaves_the_last_state_to_go_on_from(corpus, tmp_path, monkeypatch):
    import cse.training.resume

    save, calls = cse.training.resume.save_file, []

    def full(tensors: dict, path: Path) -> None:
        calls.append(path)
        if len(calls) > 2:  # two files a state: the second evaluation finds the disk full
            Path(path).write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        save(tensors, path)

    monkeypatch.setattr(cse.training.resume, "save_file", full)
    with pytest.raises(OSError, match=r"state: cannot be written .*No space left.*free some space"):
        run_pretraining(corpus, tmp_path / "out", CONFIG, eval_every=4)
    monkeypatch.undo()
    assert json.loads((tmp_path / "out" / "state" / "meta.json").read_text())["step"] == 4
    assert run_pretraining(corpus, tmp_path / "out", CONFIG, eval_every=4, resume=True)["step"] == CONFIG.steps


def test_a_finished_run_opens_everywhere_and_only_what_it_lost_is_made_again(corpus, tmp_path):
    run_pretraining(corpus, tmp_path / "out", CONFIG, eval_every=6)
    model = tmp_path / "out" / "model"
    check_opens_everywhere(model, "the cat [MASK] in the park")
    content = {
        path.name: path.read_bytes() for path in model.iterdir() if path.name.startswith(("tokenizer", "config"))
    }
    with pytest.raises(ValueError, match="is already finished; there is nothing to resume"):
        run_pretraining(corpus, tmp_path / "out", CONFIG, eval_every=6, resume=True)
    shutil.rmtree(model)
    run_pretraining(corpus, tmp_path / "out", CONFIG, eval_every=6, resume=True)
    assert {name: (model / name).read_bytes() for name in content} == content


def test_too_little_text_is_refused_with_the_number_it_supports(corpus, tmp_path):
    (tmp_path / "tiny.txt").write_text("a b c\n")
    with pytest.raises(ValueError, match="supports only"):
        run_pretraining(tmp_path / "tiny.txt", tmp_path / "out", CONFIG)
    assert run_pretraining(corpus, tmp_path / "out", CONFIG)["step"] == CONFIG.steps  # the mistake claimed no folder


def test_a_folder_of_something_else_or_of_other_text_is_left_alone(corpus, tmp_path):
    (tmp_path / "mine" / "model").mkdir(parents=True)
    (tmp_path / "mine" / "model" / "precious.txt").write_text("mine")
    with pytest.raises(ValueError, match="already holds something else"):
        run_pretraining(corpus, tmp_path / "mine", CONFIG)
    assert (tmp_path / "mine" / "model" / "precious.txt").read_text() == "mine"
    run_pretraining(corpus, tmp_path / "out", CONFIG)
    with pytest.raises(ValueError, match="pass `resume` to go on or `overwrite` to start again"):
        run_pretraining(corpus, tmp_path / "out", CONFIG)
    assert run_pretraining(corpus, tmp_path / "out", CONFIG, overwrite=True)["step"] == CONFIG.steps
    corpus.write_text(corpus.read_text().replace("dog", "cat"))  # of the same size
    for options in ({"resume": True}, {"overwrite": True}):
        with pytest.raises(ValueError, match="begun with other text"):
            run_pretraining(corpus, tmp_path / "out", CONFIG, **options)


def test_a_table_is_read_by_its_column(corpus, tmp_path):
    table = tmp_path / "table.csv"
    lines = [line for line in corpus.read_text().splitlines() if line]
    table.write_text("number,said,again\n" + "".join(f'{row},"{line}",{line}\n' for row, line in enumerate(lines)))
    with pytest.raises(ValueError, match=r"table.csv: which column holds the texts\? Pass `column`, one of number"):
        run_pretraining(table, tmp_path / "out", CONFIG)
    assert run_pretraining(table, tmp_path / "out", CONFIG, column="said")["recipe"]["column"] == "said"
    with pytest.raises(ValueError, match="begun with other text"):
        run_pretraining(table, tmp_path / "out", CONFIG, column="again", overwrite=True)


@pytest.mark.parametrize(("weight", "message"), [(None, "the loss became nan at step 12"), (1e6, "in float16")])
def test_a_model_that_is_not_finite_is_not_published(corpus, tmp_path, monkeypatch, weight, message):
    run_pretraining(corpus, tmp_path / "out", CONFIG)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out" / "model").iterdir()}

    def large(request: Any, model: Any, *args: Any) -> None:
        model.get_input_embeddings().weight.data[3, 2] = weight
        save(request, model, *args)

    save, config = pretraining.save_model, replace(CONFIG, learning_rate=1e38)
    if weight is not None:
        config = CONFIG
        monkeypatch.setattr(pretraining, "save_model", large)
    with pytest.raises(ValueError, match=f"{message}.*lower `learning_rate`"):
        run_pretraining(corpus, tmp_path / "out", config, overwrite=True)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in (tmp_path / "out" / "model").iterdir()} == before
    assert run_pretraining(corpus, tmp_path / "out", CONFIG, overwrite=True)["step"] == CONFIG.steps
