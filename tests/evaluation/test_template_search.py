"""Template search: the greedy order, the score of one template by hand, files of templates, and the command."""

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from conftest import SENTENCES, fresh_backbone
from scipy.stats import spearmanr
from typer.testing import CliRunner, Result

import cse
from cse.commands.search_templates import app
from cse.corpus.supervised import scored_pairs
from cse.encoder.encoder import Encoder
from cse.encoder.torch_encoder import TorchEncoder
from cse.evaluation.published import TEMPLATES
from cse.evaluation.template_search import (  # fmt: skip
    SearchSettings,
    TemplateScores,
    dev_score,
    greedy,
    open_scores,
    published_score,
    read_scores,
    read_templates,
    resumed,
)
from cse.files.checksums import with_digest
from cse.methods.catalogue import UNTRAINED
from cse.methods.method import When
from cse.methods.templates import MEANS, Template
from cse.vectors import cosines


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    file = tmp_path / "dev.tsv"
    file.write_text("".join(f"{i % 6}\t{SENTENCES[i % 7]}\t{SENTENCES[(3 * i + 1) % 7]}\n" for i in range(14)))
    return file


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    file = tmp_path / "templates.txt"
    file.write_text('[X] [MASK] .\n\n  "[X]" is a [MASK] one \n')
    return file


def test_greedy_search_is_table_4_where_its_numbers_are_the_scores() -> None:
    scores = {template.text: score for template, score in greedy(lambda template: TEMPLATES[template.text]).items()}
    assert list(scores.items()) == list(TEMPLATES.items())


def test_the_second_stage_keeps_the_best_relation() -> None:
    liked = {"[X] is [MASK] .": 2.0, "[X] mean [MASK] .": 1.0}
    texts = [template.text for template in greedy(lambda template: liked.get(template.text, 0.0))]
    assert texts[4:] == [
        "This [X] is [MASK] .", "This sentence of [X] is [MASK] .", 'This sentence of "[X]" is [MASK] .',
        'This sentence : "[X]" is [MASK] .',
    ]  # fmt: skip
    assert [t.text for t in greedy(lambda _: 1.0)][4] == "This [X] [MASK] ."  # no relation, one space


def test_published_numbers_are_found_whatever_the_spaces() -> None:
    assert published_score(MEANS) == 73.44
    assert published_score(Template("[X] is[MASK].")) == 47.26
    assert published_score(Template("[X] was [MASK] .")) is None


@pytest.mark.parametrize("denoise", [False, True])
@pytest.mark.parametrize("final_period", [False, True])
def test_a_score_is_spearman_of_the_vectors_at_the_mask(backbone: str, denoise: bool, final_period: bool) -> None:
    template = Template("[X] means [MASK] .")
    pairs = [(float(n % 6), *pair) for n, pair in enumerate(combinations(SENTENCES[:7], 2))]  # none twice: no ties
    when = When.ALWAYS if denoise else When.NEVER
    prompted = TorchEncoder(
        *fresh_backbone(backbone), UNTRAINED["prompt"].replaced(template=template, denoise=when), name=""
    )
    stop = "." if final_period else ""
    first, second = (prompted.encode([pair[side] + stop for pair in pairs]) for side in (1, 2))
    expected = 100 * spearmanr(cosines(first, second), [pair[0] for pair in pairs]).statistic
    score = dev_score(cse.load(backbone), pairs, denoise=denoise, final_period=final_period)
    assert score(template) == pytest.approx(expected, abs=0.006)


def test_each_distinct_sentence_is_encoded_once_a_template(
    bert_folder: Path, dev: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode, seen = Encoder.encode, []

    def counting(self: Encoder, sentences: list[str], **options: int) -> np.ndarray:
        seen.append(sorted(sentences))
        return encode(self, sentences, **options)

    score = dev_score(cse.load(str(bert_folder)), scored_pairs(dev))
    monkeypatch.setattr(Encoder, "encode", counting)
    score(MEANS)
    assert seen == [sorted(SENTENCES)]


def test_a_file_gives_its_templates_in_order(listed: Path) -> None:
    assert read_templates(listed) == [Template("[X] [MASK] ."), Template('"[X]" is a [MASK] one')]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[X] [MASK]\nThis means [MASK]\n", "line 2: 'This means [MASK]' needs one [X] and one [MASK]"),
        ("\n[X] means\n", "line 2: '[X] means' needs one [X] and one [MASK]"),
        ("[X] [X] [MASK]\n", "line 1: '[X] [X] [MASK]' needs one [X]"),
        ("[X] [MASK] [MASK]\n", "line 1: '[X] [MASK] [MASK]' needs one [X]"),
        ("[X] [P] [MASK]\n", "line 1: an untrained backbone has no learned vector"),
        ("[X] [MASK]\n\n[X] [MASK]\n", "line 3 repeats line 1: '[X] [MASK]'; remove one"),
        ("\n \n", "no template in it; give lines such as"),
    ],
)
def test_a_bad_template_is_named_with_file_and_line(tmp_path: Path, dev: Path, text: str, message: str) -> None:
    file = tmp_path / "templates.txt"
    file.write_text(text)
    done = run("--model", "bundled", "--dev", dev, "--templates", file)
    assert done.exit_code == 3
    assert done.stdout == ""
    assert f"Error: {file}: {message}" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_stopped_search_goes_on_from_its_file(tmp_path: Path) -> None:
    file, settings = tmp_path / "scores.json", SearchSettings("bundled", "0" * 12, "dev.tsv", 14, False, True)
    scored, lines = [], []

    def score(template: Template) -> float:
        scored.append(template.text)
        if len(scored) == 2:
            raise KeyboardInterrupt
        return 50.0

    with pytest.raises(KeyboardInterrupt):
        greedy(resumed(score, open_scores(file, settings), file, lines.append))
    assert json.loads(file.read_text()) == with_digest({
        "model": "bundled", "backbone": "0" * 12, "dev": "dev.tsv", "pairs": 14, "denoise": False,
        "final_period": True, "templates": [{"template": "[X] [MASK] .", "score": 50.0, "published": 39.34}],
    })  # fmt: skip
    greedy(resumed(score, open_scores(file, settings), file, lines.append))
    assert len(scored) == len(set(scored)) + 1 == 9  # the one that was broken off is the only one scored twice
    assert lines[:2] == [" 50.00  [X] [MASK] ."] * 2
    assert open_scores(file, settings) == read_scores(file)


def test_scores_of_other_settings_and_other_files_are_refused(tmp_path: Path) -> None:
    file, settings = tmp_path / "scores.json", SearchSettings("bundled", "0" * 12, "dev.tsv", 14, False, True)
    assert open_scores(None, settings) == open_scores(file, settings) == TemplateScores(settings)
    resumed(lambda _: 0.0, TemplateScores(settings), file, print)
    with pytest.raises(ValueError, match=r"holds scores of other settings .*; give another `json_output`"):
        open_scores(file, replace(settings, backbone="1" * 12))
    for text in ("[]", "{", '{"templates": []}', json.dumps({**json.loads(file.read_text()), "other": 1})):
        file.write_text(text)
        with pytest.raises(ValueError, match=r"not a file of template scores .*; give another `json_output`"):
            open_scores(file, settings)
    written = json.dumps(with_digest(TemplateScores(settings, {"[X] [MASK] .": 50.0}).to_json()))
    file.write_text(written.replace("50.0", "50.5"))
    with pytest.raises(ValueError, match=r"scores\.json: damaged or edited .*; copy it again .* another `json_output`"):
        open_scores(file, settings)


def test_the_command_prints_table_4_and_marks_the_best(bert_folder: Path, dev: Path, tmp_path: Path) -> None:
    file = tmp_path / "out" / "scores.json"
    done = run("--model", bert_folder, "--dev", dev, "--json", file)
    assert done.exit_code == 0, done.output
    score = dev_score(cse.load(str(bert_folder)), scored_pairs(dev))
    expected = greedy(score)
    written = json.loads(file.read_text())
    assert [(row["template"], row["score"]) for row in written["templates"]] == [
        (template.text, value) for template, value in expected.items()
    ]
    assert [row["published"] for row in written["templates"]] == [published_score(template) for template in expected]
    assert (written["pairs"], written["denoise"], written["final_period"]) == (14, False, False)
    killed = {**written, "templates": [{"template": "[X] [MASK] .", "score": -99.0}]}  # as a kill leaves it
    file.write_text(json.dumps(with_digest(killed)))
    assert run("--model", bert_folder, "--dev", dev, "--json", file).exit_code == 0
    resumed = {row["template"]: row["score"] for row in json.loads(file.read_text())["templates"]}
    assert resumed["[X] [MASK] ."] == -99.0
    assert {**resumed, "[X] [MASK] .": 0} == {**{t.text: v for t, v in expected.items()}, "[X] [MASK] .": 0}
    other = run("--model", bert_folder, "--dev", dev, "--json", file, "--denoise")
    assert (other.exit_code, "holds scores of other settings" in other.stderr) == (3, True)
    best = max(expected, key=lambda template: expected[template])
    title, *lines = done.stdout.splitlines()
    assert title.split() == ["here", "BERT-base", "template"]
    assert [line for line in lines if line.endswith("  (best)")] == [
        line for line in lines if f"  {best.text}  (best)" in line and line.startswith(f"{expected[best]:6.2f} ")
    ]
    assert lines[0].split(maxsplit=2) == [f"{expected[Template('[X] [MASK] .')]:.2f}", "39.34", "[X] [MASK] ."]
    assert len(done.stderr.splitlines()) == 1 + 8
    assert done.stderr.startswith("dev.tsv: 14 pairs\n")


def test_the_command_scores_a_list_with_its_options(bert_folder: Path, dev: Path, listed: Path) -> None:
    done = run("--model", bert_folder, "--dev", dev, "--templates", listed, "--denoise", "--final-period")
    score = dev_score(cse.load(str(bert_folder)), scored_pairs(dev), denoise=True, final_period=True)
    values = [score(template) for template in read_templates(listed)]
    rows = done.stdout.splitlines()[1:]
    assert [float(row.split()[0]) for row in rows] == values
    plain = dev_score(cse.load(str(bert_folder)), scored_pairs(dev))
    assert values != [plain(template) for template in read_templates(listed)]


def test_a_trained_model_and_a_folder_for_json_are_refused(dev: Path, tmp_path: Path) -> None:
    done = run("--model", "simcse", "--dev", dev)
    assert (done.exit_code, done.stdout) == (4, "")
    assert "simcse is a trained checkpoint; give a backbone: bundled" in done.stderr
    done = run("--model", "bundled", "--dev", dev, "--json", tmp_path)
    assert (done.exit_code, done.stdout) == (3, "")
    assert f"{tmp_path}: not a file of template scores" in done.stderr
    done = run("--model", "bundled", "--dev", tmp_path / "none.tsv")
    assert done.exit_code == 3
    assert "no such file" in done.stderr


def test_scores_of_other_pairs_under_the_same_name_are_not_taken(dev: Path, tmp_path: Path) -> None:
    arguments = ("--model", "bundled", "--dev", dev, "--json", tmp_path / "scores.json")
    assert run(*arguments).exit_code == 0
    rows = [line.split("\t") for line in dev.read_text().splitlines()]
    dev.write_text("\n".join("\t".join([str(5 - float(grade)), *texts]) for grade, *texts in rows))
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (3, "")
    assert "holds scores of other settings" in done.stderr


def test_help_shows_an_example() -> None:
    assert "python -m scripts.search_templates --model bundled" in " ".join(run("--help").stdout.split())
    assert run().exit_code == 2
