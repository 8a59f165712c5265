"""The results tab without a browser: names, words, marks, escaping, JSON, and the command for what has no results."""

import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from app_models import write_model
from typer.testing import CliRunner

from cse.app.models.columns import Column, columns
from cse.app.models.models import Failure
from cse.app.scoreboard.model_strip import count
from cse.app.scoreboard.model_strip import scores as scores_in_words
from cse.app.scoreboard.results import advice_html, board_html, digits, results_html, titles_of
from cse.app.scoreboard.scores import (
    board_of,
    names_of,
    plain_board,
    plain_row,
    protocol_lines,
    scoring_command,
    unscored,
    verdicts,
)
from cse.app.state.app_state import open_boards
from cse.evaluation import sts as sts_task
from cse.evaluation.results import ModelRecord, Protocol, Results
from cse.evaluation.scoreboard import scoreboard
from cse.evaluation.tasks import TASKS

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


def board(**models: list[float]):
    """An STS board; a model is the scores of its seeds, an untrained one has a single one."""
    table, seeds = (Results("sts", Protocol("d"), f"run {HOSTILE}") for _ in range(2))
    for name, runs in models.items():
        for seed, run in enumerate(runs):
            scores = {unit: {"spearman": run, "pairs": 5} for unit in sts_task.PAIRS}
            trained = {"group": name, "seed": seed, "key": f"b {name}"} if len(runs) > 1 else {"key": "b mean"}
            label = f"{name}{seed}" if seed else name
            (seeds if seed else table).models[label] = ModelRecord(name, label, "2026-11-22", scores=scores, **trained)
    return scoreboard(table, [seeds])


def state(boards, *models: str):
    return SimpleNamespace(boards=boards, models=SimpleNamespace(columns=columns(models)))


def cells(page: str) -> list[list[str]]:
    """The text of a table's rows, what is only read aloud included."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    return [[re.sub(r"<.*?>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)] for row in rows]


def test_every_figure_has_its_deviation_and_its_mark() -> None:
    made = board(a=[60.0, 61.0, 62.0], b=[60.5, 60.6, 60.7], c=[50.0, 50.1, 50.2], raw=[40.0])
    head, *rows = cells(board_html(made, names_of(made, [])))
    assert head[:2] == ["Model", "averageSpearman × 100"]
    assert [row[1] for row in rows] == [
        "61.00 ± 1.00 (best)", "≈ 60.60 ± 0.10 (not significantly different from the best)", "50.10 ± 0.10", "40.00",
    ]  # fmt: skip
    assert [row[0] for row in rows] == ["a3 seeds; shipped 0: 60.00", *rows_of("b", 60.5), *rows_of("c", 50.0), RAW]


RAW = "rawuntrained mean of the last layer"


def rows_of(name: str, value: float) -> list[str]:
    return [f"{name}3 seeds; shipped 0: {value:.2f}"]


def test_a_model_stands_beside_its_own_start_and_the_strongest_untrained_reading_stands_once() -> None:
    made = board(simcse=[60.0, 61.0], raw=[40.0], weak=[39.0])
    made.results.models["raw"].key = "b cls"
    for name, value in {"simcse-start": 50.0, "second": 52.0}.items():
        scores = {unit: {"spearman": value, "pairs": 5} for unit in sts_task.PAIRS}
        seed = len(made.results.models)
        made.results.models[name] = ModelRecord("simcse", name, group="simcse", seed=seed, scores=scores, start=True)
    made = scoreboard(made.results)
    page = state({"sts": made}, "simcse")
    rows = cells(board_html(made, titles_of(made, page.models.columns)))[1:]
    assert [row[0].split("seed")[0] for row in rows] == [
        "SimCSE", "rawstrongest untrained last layer at the first token", "weakuntrained mean of the last layer",
    ]  # fmt: skip
    assert [row[1] for row in rows] == ["60.00 (best) before 51.00", "40.00", "39.00"]
    assert plain_row(made.rows["simcse"])["before_training"][0]["value"] == 51.0
    (column,) = page.models.columns
    short, said = scores_in_words(page, column)
    assert re.sub(r"<.*?>", "", short) == "51.0 →before training, now 60.0"
    assert said == "60.0; before training 51.0"
    for boards in ({"sts": made}, Failure("no file")):
        assert scores_in_words(state(boards, "other"), Column("other", "other")) == ("", "")
    assert [count(number) for number in (18_432, 10_844_928)] == ["18,432", "10.8 M"]


def test_words_say_what_is_inside_the_noise() -> None:
    made = board(a=[60.0, 61.0, 62.0], b=[60.5, 60.6, 60.7], c=[50.0, 50.1, 50.2])
    every = ["average", *sts_task.SETS]
    assert verdicts(made, names_of(made, [])) == {
        "No significant difference": "; ".join(f"{unit} (a ≈ b)" for unit in every)
    }
    clear = board(a=[60.0, 60.1], c=[50.0, 50.1])
    assert verdicts(clear, names_of(clear, [])) == {"Significantly best": f"a ({', '.join(every)})"}
    single = board(a=[60.0], c=[50.0])
    assert verdicts(single, names_of(single, [])) == {"Best score; significance not tested": f"a ({', '.join(every)})"}
    same = board(a=[60.0, 61.0], c=[60.0, 60.9])
    assert "STS12 (all models)" in verdicts(same, names_of(same, []))["No significant difference"]


def test_the_protocol_names_seeds_sets_and_day() -> None:
    lines = " ".join(protocol_lines(board(a=[60.0, 61.0], raw=[50.0])))
    assert "standard deviation over the training seeds 0, 1;" in lines
    assert "STS12 (5 pairs), STS13 (5 pairs)" in lines
    assert "Scored 2026-11-22, data digest d." in lines
    assert "STS12 has 5 pairs here, 3108 in the papers: not the same task." in lines
    assert protocol_lines(board(a=[60.0]))[0].startswith("One run of one checkpoint each")


def test_no_text_of_a_results_file_is_markup() -> None:
    made = board(**{HOSTILE: [60.0, 61.0], "raw": [1.0]})
    page = board_html(made, names_of(made, []))
    page += advice_html({"sts": made}, [Column(HOSTILE, f"/{HOSTILE}")])
    page += results_html(state(Failure(HOSTILE)))
    for tag in ("<script", "<img", 'alert(1)"'):
        assert tag not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 5  # row, verdict, command, advice, failure


def test_models_have_the_names_of_the_other_tabs() -> None:
    made = board(simcse=[60.0, 61.0], raw=[50.0])
    assert names_of(made, columns(["simcse"])) == {"simcse": "simcse", "raw": "raw"}
    assert names_of(made, [Column("mine", "raw", "mean")]) == {"simcse": "simcse", "raw": "mine"}
    assert names_of(made, [Column("simcse", "/own/simcse")]) == {"simcse": "shipped simcse", "raw": "raw"}


def test_what_has_no_results_is_named_with_the_command_that_makes_them(tmp_path, bert_folder, sts, monkeypatch) -> None:
    from cse.commands.evaluate import app

    boards = open_boards()
    mine = columns(["simcse", str(write_model(tmp_path / "my model", bert_folder, "simcse"))])
    missing = unscored(boards, mine)
    assert [column.name for column in missing] == ["my model"]
    command = scoring_command("sts", missing)
    assert "No shipped results of my model. Score them: <code>python -m scripts.evaluate sts" in advice_html(
        boards, mine
    )
    assert advice_html(boards, mine[:1]) == ""
    monkeypatch.chdir(Path(sts).parent)
    words = shlex.split(command)
    assert words[:3] == ["python", "-m", "scripts.evaluate"]
    done = CliRunner().invoke(app, [*words[3:], "--json", str(tmp_path / "r.json")])
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "r.json").read_text())["models"]["my model"]["scores"]["STS12"]


def test_the_command_reads_backbones_and_published_checkpoints_as_the_page_does() -> None:
    found = scoring_command("sts", [Column("a", "x/a", "cls"), Column("b", "x/b", None, "simcse")])
    assert found == "python -m scripts.evaluate sts --model x/a --model x/b --pooling cls --family simcse --data sts"


def test_the_tab_has_a_table_for_every_shipped_task() -> None:
    page = results_html(state(open_boards(), "simcse"))
    assert page.count("<table") == page.count("<caption") == page.count("<h2") == len(TASKS) + 1  # the ledger
    for task, made in open_boards().items():
        assert f'id="results-{task}"' in page
        assert len(cells(board_html(made, names_of(made, [])))) == len(made.rows) + 1
    assert page.count("(best)") >= sum(len(made.columns) for made in open_boards().values())


def test_a_damaged_file_is_told_in_the_tab(tmp_path) -> None:
    (tmp_path / "sts.json").write_text("{")
    broken = open_boards(tmp_path)
    assert "sts.json: not a results file" in results_html(state(broken))
    with pytest.raises(ValueError, match="not a results file"):
        board_of(state(broken), "sts")


def test_a_board_as_json_has_its_figures_and_verdicts() -> None:
    made = board(a=[60.0, 61.0, 62.0], b=[60.5, 60.6, 60.7], raw=[40.0])
    value = plain_board(made, names_of(made, []))
    assert json.loads(json.dumps(value)) == value
    assert value["columns"][1] == {
        "unit": "STS12", "score": "spearman", "lower_is_better": False, "best": ["a"], "inside_the_noise": ["b"],
    }  # fmt: skip
    assert value["models"]["a"]["figures"][0] == {"value": 61.0, "deviation": 1.0, "runs": 3}
    assert value["models"]["a"]["seeds"] == [0, 1, 2]
    assert value["models"]["raw"]["untrained"] == "mean"
    assert value["models"]["raw"]["figures"][-1] == {"value": 40.0, "deviation": None, "runs": 1}


def test_cosines_have_three_decimals_and_percentages_two() -> None:
    made = open_boards()["geometry"]
    kinds = {c.score: digits([row.figures[i] for row in made.rows.values()]) for i, c in enumerate(made.columns)}
    assert kinds["uniformity"] == kinds["anisotropy"] == 3
    average = open_boards()["sts"]
    assert digits([row.figures[-1] for row in average.rows.values()]) == 2
