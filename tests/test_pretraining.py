"""Pretraining: counts and PMI against loops, masking as BERT's, held-out documents, exact resume, clear refusals."""

import errno
import inspect
import json
import math
import shutil
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import ROOT, SENTENCES, WORDS
from transformers import AutoModelForMaskedLM, AutoTokenizer

from cse.backbone import load_backbone
from cse.errors import ArtefactError
from cse.model_names import BUNDLED
from cse.pretraining.batches import bag_loss, draw_rows, masked_loss, read
from cse.pretraining.corpus import TokenFile, tokenise, train_tokenizer
from cse.pretraining.flops import training_flops
from cse.pretraining.loop import PretrainConfig, learning_rate, pretrain
from cse.pretraining.word_vectors import count_pairs, positive_pmi, word_vectors
from cse.templates import MEANS, render
from scripts.pretrain import main

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


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """250 documents of two sentences; document 100 and 200 (counted from 1) are marked."""
    documents = []
    for number in range(250):
        mark = "rain rain rain" if number % 100 == 99 else "sun"
        documents.append(f"{SENTENCES[number % 7]} {mark}\n{' '.join(WORDS[number % 40 : number % 40 + 9])}\n")
    (tmp_path / "corpus.txt").write_text("\n".join(documents))
    return tmp_path / "corpus.txt"


def test_window_counts_are_a_double_loop() -> None:
    tokens = np.random.default_rng(0).integers(0, 6, 60).astype(np.uint16)
    expected = np.zeros((6, 6))
    for i in range(60):
        for j in range(60):
            if i != j and abs(i - j) <= 5:
                expected[tokens[i], tokens[j]] += 1
    np.testing.assert_array_equal(count_pairs(tokens, 6).numpy(), expected)


def test_positive_pmi_is_its_formula() -> None:
    counts = torch.tensor([[4.0, 1.0, 0.0], [1.0, 2.0, 3.0], [0.0, 3.0, 0.0]])
    total, smooth = counts.sum(), counts.sum(1) ** 0.75
    found = positive_pmi(counts.clone())
    for i in range(3):
        for j in range(3):
            joint, word, context = counts[i, j] / total, counts[i].sum() / total, smooth[j] / smooth.sum()
            expected = max(0.0, math.log(joint / (word * context))) if joint > 0 else 0.0
            assert float(found[i, j]) == pytest.approx(expected, abs=1e-5)


def test_words_of_like_company_get_like_vectors_and_equal_length() -> None:
    rng = np.random.default_rng(1)
    text = [[a, 2 + int(rng.integers(3)), a] for a in rng.integers(0, 2, 400)]
    text += [[5 + int(rng.integers(2)), 7 + int(rng.integers(2))] * 2 for _ in range(400)]
    vectors = word_vectors(np.array(sum(text, []), np.uint16), 40, 4)  # noqa: RUF017
    assert vectors.pow(2).mean(1).sqrt().numpy() == pytest.approx(np.full(40, 0.05), rel=1e-4)
    unit = torch.nn.functional.normalize(vectors, dim=1)
    assert float(unit[5] @ unit[6]) > float(unit[5] @ unit[2])
    with pytest.raises(ValueError, match="counted vectors need"):
        word_vectors(np.arange(9, dtype=np.uint16), 9, 64)


def test_every_hundredth_document_is_held_out_and_rows_begin_with_sentences(corpus: Path, tmp_path: Path) -> None:
    tokenizer = train_tokenizer([corpus], 90)
    tokenise([corpus], tokenizer, tmp_path / "tokens")
    train, valid = (TokenFile.open(tmp_path / "tokens", split) for split in ("train", "valid"))
    assert tokenizer.decode(valid.ids).count("rain rain rain") == 2
    assert "rain rain rain" not in tokenizer.decode(train.ids)
    assert (len(train.starts), len(valid.starts)) == (496, 4)
    starts = {tuple(train.ids[start : start + 3]) for start in train.starts}
    for row in train.rows(50, 6, np.random.default_rng(0)):
        assert tuple(row[:3]) in starts


def test_the_rate_warms_up_and_decays_to_nothing() -> None:
    config = PretrainConfig(tokens=100 * 4096, warmup=0.1, learning_rate=1.0)
    rates = [learning_rate(config, step) for step in range(config.steps)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == pytest.approx(rates[10])
    assert rates[-1] == pytest.approx(1 / 90)


def test_the_commands_options_default_to_the_recipe() -> None:
    options = {name: parameter.default for name, parameter in inspect.signature(main).parameters.items()}
    shared = {field.name: field.default for field in fields(PretrainConfig) if field.name in options}
    assert len(shared) >= 10
    assert {name: options[name] for name in shared} == shared


def curve(result: dict) -> list[float]:
    return [entry["held_out_loss"] for entry in result["curve"]]


def test_a_killed_pretraining_resumes_to_the_same_model(corpus: Path, tmp_path: Path) -> None:
    whole = pretrain([corpus], tmp_path / "whole", CONFIG, eval_every=4)

    def kill(entry: dict) -> None:
        if entry["step"] == 8:
            raise KeyboardInterrupt

    # Ties between word pieces may fall either way when a vocabulary is learned, so both runs take one.
    shutil.copytree(tmp_path / "whole" / "tokenizer", tmp_path / "killed" / "tokenizer")
    shutil.copy(tmp_path / "whole" / "source.json", tmp_path / "killed")
    with pytest.raises(KeyboardInterrupt):
        pretrain([corpus], tmp_path / "killed", CONFIG, eval_every=4, report=kill)
    resumed = pretrain([corpus], tmp_path / "killed", CONFIG, eval_every=4, resume=True)
    assert curve(resumed) == curve(whole)
    models = [AutoModelForMaskedLM.from_pretrained(tmp_path / name / "model") for name in ("whole", "killed")]
    for first, second in zip(*(model.state_dict().values() for model in models), strict=True):
        assert torch.equal(first, second)
    recipe = json.loads((tmp_path / "whole" / "model" / "pretraining.json").read_text())
    assert recipe["recipe"]["seed"] == 3
    with pytest.raises(ArtefactError, match="another recipe"):
        pretrain([corpus], tmp_path / "killed", replace(CONFIG, learning_rate=0.5), resume=True)


def test_pretraining_learns_and_goes_on_from_the_model_it_is_given(corpus: Path, tmp_path: Path) -> None:
    corpus.write_text("\n".join([*SENTENCES, ""] * 150))  # the held-out documents say what the others say
    config = replace(CONFIG, vocabulary=60, hidden=48, tokens=512 * 120, batch_tokens=512, learning_rate=5e-3)
    first = pretrain([corpus], tmp_path / "a", config, eval_every=20)
    assert curve(first)[-1] < curve(first)[0] - 0.2
    start = str(tmp_path / "a" / "model")
    more = pretrain([corpus], tmp_path / "b", replace(config, tokens=512, learning_rate=1e-9), init=start)
    assert more["before"]["recipe"]["tokens"] == config.tokens
    assert curve(more)[0] == pytest.approx(curve(first)[-1], abs=0.01)  # the model is stored in half precision
    vocabularies = [AutoTokenizer.from_pretrained(folder).get_vocab() for folder in (start, tmp_path / "b" / "model")]
    assert vocabularies[0] == vocabularies[1]


def test_a_step_in_parts_is_the_whole_step(corpus: Path, tmp_path: Path) -> None:
    config = replace(CONFIG, tokens=512 * 6, batch_tokens=512)
    whole = pretrain([corpus], tmp_path / "whole", config, eval_every=2)
    parts = tmp_path / "parts"
    shutil.copytree(tmp_path / "whole" / "tokenizer", parts / "tokenizer")
    shutil.copy(tmp_path / "whole" / "source.json", parts)
    accumulated = pretrain([corpus], parts, replace(config, accumulate=5), eval_every=2)
    losses = [[entry["loss"] for entry in result["curve"]] for result in (whole, accumulated)]
    assert losses[1] == pytest.approx(losses[0], abs=2e-4)
    assert curve(accumulated) == pytest.approx(curve(whole), abs=2e-4)


def test_a_part_with_nothing_to_guess_costs_nothing() -> None:
    assert masked_loss(torch.zeros(0, 9), torch.zeros(0, dtype=torch.long)).item() == 0.0


def test_the_bag_of_words_teaches_a_prompt_what_its_text_is_about(corpus: Path, tmp_path: Path) -> None:
    config = replace(CONFIG, hidden=32, tokens=512 * 150, batch_tokens=512, learning_rate=5e-3)
    losses = {}
    for weight in (0.0, 1.0):
        output = tmp_path / str(weight)
        pretrain([corpus], output, replace(config, bag_weight=weight))
        model, tokenizer = load_backbone(output / "model")
        tokens = TokenFile.open(output / "corpus", "train")
        form, rng = render(MEANS, tokenizer), np.random.default_rng(0)
        rows = draw_rows(tokens, form, tokenizer, tokens=4000, length=12, longest=40, rng=rng)
        with torch.no_grad():
            spoken = read(model, rows, bag=True)[1]
        losses[weight] = float(bag_loss(spoken, rows.bag[:, :10], torch.ones(len(tokenizer))))  # the row's own words
    assert losses[1.0] < losses[0.0] - 0.3


def test_training_flops_are_six_a_weight_and_token_plus_attention(bert_folder: str) -> None:
    model = AutoModelForMaskedLM.from_pretrained(bert_folder)
    width, layers, inner, vocabulary = 32, 2, 64, model.config.vocab_size
    block = 4 * width * width + 2 * width * inner
    attention = 2 * 2 * 10 * width  # scores and weighted sum of ten tokens: a multiply-add per head width and token
    head = 0.15 * (width * width + vocabulary * width)
    expected = 6 * (layers * block + layers * attention / 2 + head)
    assert training_flops(model, 10) == pytest.approx(expected)
    spoken = width * width + vocabulary * width  # of one position in ten
    assert training_flops(model, 10, bag=True) == pytest.approx(expected + 6 * spoken / 10)


def test_the_log_has_speed_and_its_share_of_the_measured_rate(corpus: Path, tmp_path: Path) -> None:
    result = pretrain([corpus], tmp_path / "out", CONFIG, eval_every=6)
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "out" / "model")
    flops = np.mean([training_flops(model, length, bag=True) for length in (8, 16, 40)])
    assert result["matrix_rate"] > 1e8
    for entry in result["curve"]:
        expected = entry["tokens_per_second"] * flops / result["matrix_rate"]
        assert entry["mfu"] == pytest.approx(expected, rel=0.01, abs=6e-4)


def test_pretraining_needs_no_data_index_or_app_library(corpus: Path, tmp_path: Path) -> None:
    """A rented GPU machine may have torch, transformers, tokenizers, accelerate, numpy and typer alone."""
    options = ["--vocabulary", "90", "--layers", "1", "--hidden", "16", "--tokens", "128", "--batch-tokens", "64"]
    arguments = [str(corpus), "--output", str(tmp_path / "out"), *options]
    code = f"""
import sys
from scripts.pretrain import app
try:
    app({arguments})
finally:
    print([name for name in ("datasets", "faiss", "gradio", "pyarrow", "pandas", "matplotlib") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "held-out loss" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_full_disk_leaves_the_last_state_to_go_on_from(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cse.training_state

    save, calls = cse.training_state.save_file, []

    def full(tensors: dict, path: Path) -> None:
        calls.append(path)
        if len(calls) > 2:  # two files a state: the second evaluation finds the disk full
            Path(path).write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        save(tensors, path)

    monkeypatch.setattr(cse.training_state, "save_file", full)
    with pytest.raises(OSError, match=r"state: cannot be written .*No space left.*free some space"):
        pretrain([corpus], tmp_path / "out", CONFIG, eval_every=4)
    monkeypatch.undo()
    assert json.loads((tmp_path / "out" / "state" / "meta.json").read_text())["step"] == 4
    assert pretrain([corpus], tmp_path / "out", CONFIG, eval_every=4, resume=True)["step"] == CONFIG.steps


def test_resuming_needs_a_run_and_begins_again_where_none_was_saved(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="nothing to resume; run once without `resume`"):
        pretrain([corpus], tmp_path / "out", CONFIG, resume=True)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ValueError, match="supports only"):
        pretrain([corpus], tmp_path / "out", replace(CONFIG, vocabulary=5000))  # begun, nothing saved
    shutil.rmtree(tmp_path / "out" / "corpus", ignore_errors=True)
    entries: list[dict] = []
    pretrain([corpus], tmp_path / "out", CONFIG, eval_every=6, resume=True, report=entries.append)
    assert [entry["step"] for entry in entries] == [0, 6, 12]
    assert "no saved state; the run begins again" in entries[0]["note"]


def test_pretraining_goes_on_from_the_bundled_backbone(corpus: Path, tmp_path: Path) -> None:
    config = replace(CONFIG, tokens=64, lengths=(8,), bag_weight=0.0)
    more = pretrain([corpus], tmp_path / "out", config, init="bundled")
    assert more["recipe"]["init"] == "bundled"
    assert more["before"] == json.loads((BUNDLED / "backbone" / "pretraining.json").read_text())


def test_too_little_text_is_refused_with_the_number_it_supports(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny.txt").write_text("a b c\n")
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(ValueError, match="supports only"):
        pretrain([tmp_path / "tiny.txt"], tmp_path / "out", CONFIG)
    with pytest.raises(ValueError, match="no sentence in it"):
        pretrain([tmp_path / "empty.txt"], tmp_path / "out2", CONFIG)
    assert pretrain([corpus], tmp_path / "out2", CONFIG)["step"] == CONFIG.steps  # the mistake claimed no folder


def test_a_folder_of_something_else_or_of_other_text_is_left_alone(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / "model").mkdir(parents=True)
    (tmp_path / "mine" / "model" / "precious.txt").write_text("mine")
    with pytest.raises(ValueError, match="already holds something else"):
        pretrain([corpus], tmp_path / "mine", CONFIG)
    assert (tmp_path / "mine" / "model" / "precious.txt").read_text() == "mine"
    pretrain([corpus], tmp_path / "out", CONFIG)
    with pytest.raises(ValueError, match="pass `resume` to go on or `overwrite` to begin anew"):
        pretrain([corpus], tmp_path / "out", CONFIG)
    other = tmp_path / "other.txt"
    other.write_text(corpus.read_text() + "one more line\n")
    with pytest.raises(ValueError, match="begun with other text"):
        pretrain([other], tmp_path / "out", CONFIG, overwrite=True)
    assert pretrain([corpus], tmp_path / "out", CONFIG, overwrite=True)["step"] == CONFIG.steps


def test_a_word_of_a_megabyte_does_not_hold_up_the_vocabulary(corpus: Path) -> None:
    corpus.write_text(corpus.read_text() + "\n" + "a" * 1_000_000 + "\n")
    assert len(train_tokenizer([corpus], 90)) == 90
