"""The commands of a reproduction, where their artefacts lie, and which of them are not run again."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from cse.evaluation.published import ROWS, TEMPLATES, rows
from cse.evaluation.reproduction import Plan, run_command
from cse.evaluation.template_search import SearchSettings, TemplateScores
from cse.files.writing import write_json


def test_other_settings_are_other_work(tmp_path: Path) -> None:
    row = next(row for row in ROWS if row.method == "simcse")
    plan = Plan(tmp_path, tmp_path / "out", "a.txt", None, "bundled", (1,), "--max-steps 1")
    plans = [
        plan,
        replace(plan, train_data="b.txt"),
        replace(plan, train_options=""),
        replace(plan, backbone="x/bundled"),
    ]
    assert len({one.checkpoint(row, 1) for one in plans}) == len({one.results(row, 1) for one in plans}) == 4


def test_names_stay_so_that_earlier_runs_are_gone_on_with() -> None:
    plan = Plan(Path("/d"), Path("/o"), "w.txt", "n.csv", "bundled", (1,), "--max-steps 1")
    trained, untrained = rows("promptbert", "8")[0], rows("promptbert", "5")[0]
    assert plan.checkpoint(trained, 1) == Path("/o/checkpoints/bundled-promptbert-same-1-1155ce68")
    assert plan.results(trained, 1) == Path("/o/results/sts-bundled-promptbert-same-1-1155ce68-final-period.json")
    assert plan.results(untrained, None) == Path("/o/results/sts-bundled-4c4164b5-mean.json")
    assert plan.template_scores == Path("/o/results/templates-bundled-bf7ab265.json")


def test_the_papers_text_is_scored_where_it_is_there(tmp_path: Path) -> None:
    plan = Plan(tmp_path, tmp_path / "out", "a.txt", "n.csv", "bundled", (1,), "", tmp_path / "wiki.txt")
    bare, last = rows("promptbert", "5")[0], rows("promptbert", "1")[-1]
    before = [plan.results(row, None) for row in (bare, last)]
    assert "--tokenised" not in plan.commands(bare)[0]
    (tmp_path / "sts_senteval").mkdir()
    for row, extra in ((bare, ""), (last, f" --sentences {tmp_path / 'wiki.txt'}")):
        (command,) = map(" ".join, plan.commands(row))
        assert f"--data {tmp_path / 'sts'} --tokenised {tmp_path / 'sts_senteval'}{extra} " in command
        assert plan.results(row, None) not in before
    (templates,) = map(" ".join, plan.commands(rows("promptbert", "4")[0]))
    assert f"--dev {tmp_path / 'sts' / 'STSB' / 'dev.tsv'}" in templates
    (tmp_path / "sts_senteval" / "STSB").mkdir()
    (tmp_path / "sts_senteval" / "STSB" / "dev.tsv").touch()
    (templates,) = map(" ".join, plan.commands(rows("promptbert", "4")[0]))
    assert f"--dev {tmp_path / 'sts_senteval' / 'STSB' / 'dev.tsv'}" in templates


def test_transfer_is_scored_as_the_papers_did() -> None:
    plan = Plan(Path("/d"), Path("/o"), "a.txt", "n.csv", "bundled", (1,), "")
    options = {row.name: " ".join(plan.commands(row)[-1]) for row in (*rows("promptbert", "15"), *rows("conpvp", "5"))}
    assert all("--classifier senteval" in command for command in options.values())
    assert {name for name, command in options.items() if "--final-period" in command} == {
        name for name in options if name.startswith("Prompt")
    }
    assert {name for name, command in options.items() if "--bare" in command} == {
        name for name in options if name.endswith("supervised")
    }


def test_a_template_search_that_was_stopped_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def note(words: list[str], **_: object) -> AbstractContextManager:
        ran.append(words)
        return nullcontext(SimpleNamespace(wait=lambda: 0))

    monkeypatch.setattr("cse.evaluation.reproduction.start_command", note)
    plan, row, lines = Plan(tmp_path, tmp_path / "out", None, None, "bundled", (1,), ""), rows("promptbert", "4")[0], []
    (command,) = plan.commands(row)
    settings = SearchSettings("bundled", "0" * 12, "dev.tsv", 10, False, True)
    some = dict(list(TEMPLATES.items())[:3])
    for scores, runs in ((None, 1), ({}, 2), (some, 3), (TEMPLATES, 3)):
        if scores is not None:
            write_json(plan.template_scores, TemplateScores(settings, scores).to_json())
        run_command(command, plan, row, lines.append)
        assert len(ran) == len(lines) == runs
    assert (tmp_path / "out" / "templates.txt").read_text().splitlines() == list(TEMPLATES)
