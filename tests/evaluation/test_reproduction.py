"""The commands of a reproduction, where their artefacts lie, and which of them are not run again."""

from pathlib import Path

from cse.evaluation.published import rows
from cse.evaluation.reproduction import Plan


def test_names_stay_so_that_earlier_runs_are_gone_on_with() -> None:
    plan = Plan(Path("/d"), Path("/o"), "w.txt", "n.csv", "bundled", (1,), "--max-steps 1")
    trained, untrained = rows("promptbert", "8")[0], rows("promptbert", "5")[0]
    assert plan.checkpoint(trained, 1) == Path("/o/checkpoints/bundled-promptbert-same-1-1155ce68")
    assert plan.results(trained, 1) == Path("/o/results/sts-bundled-promptbert-same-1-1155ce68-final-period.json")
    assert plan.results(untrained, None) == Path("/o/results/sts-bundled-4c4164b5-mean.json")
    assert plan.template_scores == Path("/o/results/templates-bundled-bf7ab265.json")


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
