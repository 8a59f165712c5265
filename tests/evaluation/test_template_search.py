"""Template search: the greedy order, the score of one template by hand, files of templates, and the command."""

import json
from functools import partial
from itertools import combinations
from pathlib import Path

import command_line
import pytest
import torch
from conftest import SENTENCES, fresh_backbone
from scipy.stats import spearmanr
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

import cse
from cse.corpus.supervised import scored_pairs
from cse.encoder.torch_encoder import TorchEncoder
from cse.evaluation import template_search
from cse.evaluation.results import TEMPLATES
from cse.evaluation.template_search import (  # fmt: skip
    WORD_DEFINITIONS,
    dev_score,
    generated,
    greedy,
    read_templates,
    template_of,
)
from cse.files.checksums import with_digest
from cse.methods.catalogue import UNTRAINED
from cse.methods.method import When
from cse.methods.templates import Template
from cse.vectors import cosines

run = partial(command_line.run, "search_templates")


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    file = tmp_path / "dev.tsv"
    file.write_text("".join(f"{i % 6}\t{SENTENCES[i % 7]}\t{SENTENCES[(3 * i + 1) % 7]}\n" for i in range(14)))
    return file


def test_greedy_search_is_table_4_where_its_numbers_are_the_scores():
    scores = {template.text: score for template, score in greedy(lambda template: TEMPLATES[template.text]).items()}
    assert list(scores.items()) == list(TEMPLATES.items())


@pytest.mark.parametrize(("denoise", "final_period"), [(False, True), (True, False)])
def test_a_score_is_spearman_of_the_vectors_at_the_mask(bert_folder, denoise, final_period):
    template = Template("[X] means [MASK] .")
    pairs = [(float(n % 6), *pair) for n, pair in enumerate(combinations(SENTENCES[:7], 2))]  # none twice: no ties
    when = When.ALWAYS if denoise else When.NEVER
    prompted = TorchEncoder(
        *fresh_backbone(bert_folder), UNTRAINED["prompt"].replaced(template=template, denoise=when), name=""
    )
    stop = "." if final_period else ""
    first, second = (prompted.encode([pair[side] + stop for pair in pairs]) for side in (1, 2))
    expected = 100 * spearmanr(cosines(first, second), [pair[0] for pair in pairs]).statistic
    score = dev_score(cse.load(str(bert_folder)), pairs, denoise=denoise, final_period=final_period)
    assert score(template) == pytest.approx(expected, abs=0.006)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[X] [MASK]\nThis means [MASK]\n", "line 2: 'This means [MASK]' needs one [X] and one [MASK]"),
        ("[X] [P] [MASK]\n", "line 1: an untrained backbone has no learned vector"),
        ("[X] [MASK]\n\n[X] [MASK]\n", "line 3 repeats line 1: '[X] [MASK]'; remove one"),
    ],
)
def test_a_bad_template_is_named_with_file_and_line(tmp_path, dev, text, message):
    file = tmp_path / "templates.txt"
    file.write_text(text)
    done = run("--model", "bundled", "--dev", dev, "--templates", file)
    assert done.exit_code == 3
    assert done.stdout == ""
    assert f"Error: {file}: {message}" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_command_prints_table_4_and_marks_the_best(bert_folder, dev, tmp_path):
    file = tmp_path / "out" / "scores.json"
    done = run("--model", bert_folder, "--dev", dev, "--json", file)
    assert done.exit_code == 0, done.output
    score = dev_score(cse.load(str(bert_folder)), scored_pairs(dev))
    expected = greedy(score)
    written = json.loads(file.read_text())
    assert [(row["template"], row["score"]) for row in written["templates"]] == [
        (template.text, value) for template, value in expected.items()
    ]
    killed = {**written, "templates": [{"template": "[X] [MASK] .", "score": -99.0}]}  # as a kill leaves it
    file.write_text(json.dumps(with_digest(killed)))
    assert run("--model", bert_folder, "--dev", dev, "--json", file).exit_code == 0
    resumed = {row["template"]: row["score"] for row in json.loads(file.read_text())["templates"]}
    assert resumed["[X] [MASK] ."] == -99.0
    assert {**resumed, "[X] [MASK] .": 0} == {**{t.text: v for t, v in expected.items()}, "[X] [MASK] .": 0}
    other = run("--model", bert_folder, "--dev", dev, "--json", file, "--denoise")
    assert (other.exit_code, "holds scores of other settings" in other.stderr) == (3, True)
    best = max(expected, key=lambda template: expected[template])
    _, *lines = done.stdout.splitlines()
    assert [line for line in lines if line.endswith("  (best)")] == [
        line for line in lines if f"  {best.text}  (best)" in line and line.startswith(f"{expected[best]:6.2f} ")
    ]
    assert lines[0].split(maxsplit=2) == [f"{expected[Template('[X] [MASK] .')]:.2f}", "39.34", "[X] [MASK] ."]


GAPS = ["<extra_id_0>", "<extra_id_1>", "<extra_id_2>"]
WRITTEN = [GAPS[0], "Also", "called", GAPS[1], ".", GAPS[2], "</s>"]
BEST = "Also called [MASK]. [X]"
WORD_FIRST, WORD_LAST = ("[MASK]", "[X]"), ("[X]", "[MASK]")


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a T5 of one layer that knows the pairs' words and has learned to write `WRITTEN`."""
    folder = tmp_path_factory.mktemp("t5")
    words = dict.fromkeys(word for pair in WORD_DEFINITIONS for text in pair for word in text.split())
    pieces = ["<pad>", "</s>", "<unk>", *GAPS, "Also", "called", ".", *words]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    rules = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    rules.pre_tokenizer = WhitespaceSplit()
    rules.post_processor = TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=rules, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", additional_special_tokens=GAPS
    )
    torch.manual_seed(0)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2, "dropout_rate": 0.0}
    model = T5ForConditionalGeneration(
        T5Config(vocab_size=len(vocabulary), pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, **sizes)
    )
    word, text = WORD_DEFINITIONS[0]
    inputs = tokenizer([f"<extra_id_0> {word} <extra_id_1> {text} <extra_id_2>"], return_tensors="pt")["input_ids"]
    labels = torch.tensor([[vocabulary[piece] for piece in WRITTEN]])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(80):
        model(input_ids=inputs, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("filled", "parts", "expected"),
    [
        ("<pad><extra_id_0> Also called<extra_id_1>.<extra_id_2></s>", WORD_FIRST, BEST),
        ("<extra_id_0> A  <extra_id_1>\n: <extra_id_2> , no ? <extra_id_3> more", WORD_FIRST, "A [MASK]: [X], no?"),
        ("<extra_id_0> a <extra_id_1> b </s>", WORD_FIRST, None),  # a gap is missing
        ("<extra_id_0> the Island <extra_id_1> is <extra_id_2></s>", WORD_FIRST, None),  # the word itself
    ],
)
def test_what_fills_the_gaps_becomes_a_template_or_nothing(filled, parts, expected):
    assert template_of(filled, parts, ("island", "land with water on every side")) == expected


def test_the_command_writes_candidates_scores_them_and_takes_an_existing_file(t5, bert_folder, tmp_path, monkeypatch):
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
