"""Templates written by a T5: what becomes of its text, and a tiny one that has learned the paper's best template."""

from functools import partial
from pathlib import Path

import command_line
import pytest
import torch
from conftest import SENTENCES

from cse.errors import ArtefactError
from cse.evaluation import template_search
from cse.evaluation.template_search import (
    WORD_DEFINITIONS,
    compared,
    generated,
    load_seq2seq,
    read_templates,
    template_of,
)
from cse.methods.templates import Template

GAPS = ["<extra_id_0>", "<extra_id_1>", "<extra_id_2>"]
WRITTEN = [GAPS[0], "Also", "called", GAPS[1], ".", GAPS[2], "</s>"]
BEST = "Also called [MASK]. [X]"
WORD_FIRST, WORD_LAST = ("[MASK]", "[X]"), ("[X]", "[MASK]")

run = partial(command_line.run, "search_templates")


def tiny_t5(folder: Path, gaps: list[str], learn: bool) -> Path:
    """Write a T5 of one layer that knows the pairs' words, and where asked for has learned to write `WRITTEN`."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    words = dict.fromkeys(word for pair in WORD_DEFINITIONS for text in pair for word in text.split())
    pieces = ["<pad>", "</s>", "<unk>", *gaps, "Also", "called", ".", *words]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    rules = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    rules.pre_tokenizer = WhitespaceSplit()
    rules.post_processor = TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=rules, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", additional_special_tokens=gaps
    )
    torch.manual_seed(0)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2, "dropout_rate": 0.0}
    model = T5ForConditionalGeneration(
        T5Config(vocab_size=len(vocabulary), pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, **sizes)
    )
    if learn:
        inputs = tokenizer(
            [f"<extra_id_0> {word} <extra_id_1> {text} <extra_id_2>" for word, text in WORD_DEFINITIONS[:1]]
        )
        labels = torch.tensor([[vocabulary[piece] for piece in WRITTEN]])
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for _ in range(80):
            model(input_ids=torch.tensor(inputs["input_ids"]), labels=labels).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_t5(tmp_path_factory.mktemp("t5"), GAPS, learn=True)


@pytest.mark.parametrize(
    ("filled", "parts", "expected"),
    [
        ("<pad><extra_id_0> Also called<extra_id_1>.<extra_id_2></s>", WORD_FIRST, BEST),
        ("<pad> <extra_id_0> <extra_id_1> is a <extra_id_2> .</s><pad><pad>", WORD_LAST, "[X] is a [MASK]."),
        ("<extra_id_0> A  <extra_id_1>\n: <extra_id_2> , no ? <extra_id_3> more", WORD_FIRST, "A [MASK]: [X], no?"),
        ("<extra_id_0> a <extra_id_1> b </s>", WORD_FIRST, None),  # a gap is missing
        ("<extra_id_0><extra_id_1><extra_id_2></s>", WORD_FIRST, None),  # nothing written
        ("<extra_id_0> the Island <extra_id_1> is <extra_id_2></s>", WORD_FIRST, None),  # the word itself
        ("<extra_id_0> [X] <extra_id_1> is <extra_id_2></s>", WORD_FIRST, None),
    ],
)
def test_what_fills_the_gaps_becomes_a_template_or_nothing(
    filled: str, parts: tuple[str, str], expected: str | None
) -> None:
    assert template_of(filled, parts, ("island", "land with water on every side")) == expected


def test_a_t5_that_learned_the_papers_best_template_writes_it_first_in_both_orders(t5: Path) -> None:
    templates = generated(load_seq2seq(str(t5)), beams=4)
    assert templates[0].text in (BEST, "Also called [X]. [MASK]")
    assert {Template(BEST), Template("Also called [X]. [MASK]")} <= set(templates)
    assert len(set(templates)) == len(templates) > 2
    assert compared({BEST: 0.0})[0].published == 64.75


def test_the_command_writes_candidates_scores_them_and_takes_an_existing_file(
    t5: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template_search, "generated", partial(generated, pairs=WORD_DEFINITIONS[:1], beams=2))
    (tmp_path / "dev.tsv").write_text(
        "".join(f"{i % 6}\t{SENTENCES[i % 7]}\t{SENTENCES[3 * i % 7]}\n" for i in range(9))
    )
    file = tmp_path / "new" / "templates.txt"
    arguments = ("--model", bert_folder, "--dev", tmp_path / "dev.tsv", "--templates", file)
    done = run(*arguments, "--generate", t5)
    assert done.exit_code == 0, done.stderr
    assert Template(BEST) in read_templates(file)
    assert f"64.75  {BEST}" in done.stdout
    again = run(*arguments, "--generate", tmp_path / "nothing")
    assert (again.exit_code, again.stdout) == (0, done.stdout)
    assert "exists; its templates are scored" in again.stderr


def test_what_cannot_write_templates_is_refused_in_one_line(bert_folder: Path, tmp_path: Path) -> None:
    for model in ("google/none", str(bert_folder)):
        with pytest.raises(ArtefactError, match=r"cannot open .* to write templates: .*; give a T5") as caught:
            load_seq2seq(model)
        assert "\n" not in str(caught.value)
    without = tiny_t5(tmp_path / "gapless", ["<extra_id_0>"], learn=False)
    with pytest.raises(ArtefactError, match="its tokenizer has no <extra_id_0>, which marks a gap; give a T5"):
        load_seq2seq(str(without))
    done = run("--model", bert_folder, "--dev", tmp_path / "dev.tsv", "--generate", "google/none")
    assert (done.exit_code, "--generate needs --templates" in done.stderr) == (2, True)
    done = run("--model", "x", "--dev", tmp_path / "d", "--templates", tmp_path / "t", "--generate", "google/none")
    assert (done.exit_code, len(done.stderr.strip().splitlines())) == (4, 1)
