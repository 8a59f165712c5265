"""Template search: the greedy order, the score of one template by hand, files of templates, and the command."""

import json
from functools import partial
from itertools import combinations
from pathlib import Path

import command_line
import pytest
from conftest import SENTENCES, fresh_backbone
from scipy.stats import spearmanr

import cse
from cse.corpus.supervised import scored_pairs
from cse.encoder.torch_encoder import TorchEncoder
from cse.evaluation.results import TEMPLATES
from cse.evaluation.template_search import (  # fmt: skip
    dev_score,
    greedy,
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
