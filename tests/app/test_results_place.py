"""Results: figures, marks and intervals of the shipped scores, the papers' numbers, and the corpus's labels."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from app_models import write_model
from given_corpus import GivenCorpus
from scipy.stats import t
from typer.testing import CliRunner

import cse
from cse.app.files import WIDTHS, as_json, as_latex, as_markdown, figure, python_code
from cse.app.models.models import Column, columns
from cse.app.models.naming import title
from cse.app.results import Similarity
from cse.app.results.models import Models
from cse.app.results.scores import (
    HELD_OUT,
    Labels,
    Ledger,
    Scores,
    held_out,
    names_of,
    scoring_command,
)
from cse.app.show import answer, ask, page_html
from cse.app.state import Session, open_boards, open_session, open_state
from cse.app.validation import FieldError
from cse.evaluation import sts as sts_task
from cse.evaluation.clustering import label_scores, neighbour_values
from cse.evaluation.metrics import mean_difference
from cse.evaluation.results import ModelRecord, Protocol, Results, scoreboard
from cse.evaluation.tasks import TASKS
from cse.models.names import BUNDLED_NAMES

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
    return replace(open_state(models, ()), boards=boards)


def shown(boards, *models: str, **values):
    return answer(Scores(**values), open_session(state(boards, *models)))


def cells(page: str) -> list[list[str]]:
    """The text of a table's rows, what is only read aloud included."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    found = [[re.sub(r"<.*?>", " ", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)] for row in rows]
    return [[" ".join(cell.split()) for cell in row] for row in found]


def test_every_figure_has_its_deviation_its_interval_and_its_mark_and_the_best_comes_first() -> None:
    made = board(c=[50.0, 50.1, 50.2], raw=[40.0], b=[60.5, 60.6, 60.7], a=[60.0, 61.0, 62.0])
    found = shown({"sts": made}, "simcse")
    head, *rows = cells(page_html(found))
    assert head[:2] == ["Model", "average Spearman × 100"]
    assert "Ordered by average, best first." in page_html(found)
    assert [(row[0].split()[0], row[1]) for row in rows] == [
        ("a", "61.00 ± 1.00 (best)"), ("b", "≈ 60.60 ± 0.10 (not significantly different from the best)"),
        ("c", "50.10 ± 0.10"), ("raw", "40.00"),
    ]  # fmt: skip
    first = found.frame.iloc[0]
    half = t.ppf(0.975, 2) * 1.0 / 3**0.5
    assert (first["low"], first["high"]) == pytest.approx((61 - half, 61 + half))
    assert np.isnan(found.frame[found.frame["model"] == "raw"]["low"].iloc[0])
    assert "mean of the last layer" in rows[3][0]


def test_a_score_is_bold_for_a_paper_only_where_it_is_significantly_better() -> None:
    level = shown({"sts": board(a=[60.0, 61.0, 62.0], b=[60.5, 60.6, 60.7], c=[50.0, 50.1, 50.2])}, "simcse")
    assert level.result.sheet(level.frame)["average"].tolist() == ["*61.00* ± 1.00", "≈ 60.60 ± 0.10", "50.10 ± 0.10"]
    assert r"$\approx$ 60.60 $\pm$ 0.10" in as_latex(level)
    assert r"a & \textit{61.00} $\pm$ 1.00 & " in as_latex(level)
    assert "| a | *61.00* ± 1.00 | " in as_markdown(level)
    for typeset in (as_latex(level), as_markdown(level)):
        assert " Italics: the best of a column, not known to be so significantly." in typeset
        assert "Bold:" not in typeset
    clear = shown({"sts": board(a=[60.0, 60.1], c=[50.0, 50.1])}, "simcse")
    assert clear.result.sheet(clear.frame)["average"].tolist() == ["**60.05** ± 0.07", "50.05 ± 0.07"]
    typeset = as_latex(clear)
    assert "a & \\textbf{60.05} $\\pm$ 0.07 & " in typeset
    assert "Bold: the best of a column, significantly (95 \\% interval of the difference, Welch's)." in typeset
    assert "Italics:" not in typeset
    assert json.loads(as_json(clear))["corpus"] is None  # they are of no corpus of the page
    single = shown({"sts": board(a=[60.0], c=[50.0])}, "simcse")
    assert "**" not in single.result.sheet(single.frame).to_csv()


def test_a_table_wider_than_the_line_of_a_paper_is_scaled_to_it() -> None:
    state = open_state(BUNDLED_NAMES, ())
    wide, narrow = (as_latex(ask(state, kind, {})) for kind in (Scores, Similarity))
    assert wide.startswith("% \\usepackage{booktabs,graphicx}\n")
    assert "\\resizebox{\\linewidth}{!}{\\begin{tabular}{lrrrrrrrr}" in wide
    assert "\\bottomrule\n\\end{tabular}}\n\\end{table}" in wide
    assert narrow.startswith("% \\usepackage{booktabs}\n")
    assert "resizebox" not in narrow


@pytest.mark.parametrize("width", WIDTHS.values())
def test_the_legend_of_a_saved_figure_is_whole(width) -> None:
    names = [each for name in BUNDLED_NAMES for each in (name, f"{name} (before)")]
    found = ask(open_state(BUNDLED_NAMES, ()), Scores, {"models": names})
    drawing = ElementTree.fromstring(figure(found, "svg", width))
    ends = {name: float(drawing.get(name).removesuffix("pt")) for name in ("width", "height")}
    seen = []

    def walk(part, x: float, y: float) -> None:
        if moved := re.match(r"translate\(([-\d.]+),([-\d.]+)\)", part.get("transform", "")):
            x, y = x + float(moved[1]), y + float(moved[2])
        if part.tag.endswith("text") and part.text in map(title, names):
            seen.append(part.text)
            assert 8 <= y <= ends["height"]
            assert 0 <= x <= ends["width"] - 4 * len(part.text)  # points of a letter of 8 points
        for inner in part:
            walk(inner, x, y)

    walk(drawing, 0, 0)
    names.remove("simcse (before)")  # "Untrained (mean)" has its numbers
    assert {*seen} == {*map(title, names)}


def test_a_paper_is_told_which_start_an_untrained_reading_stands_for() -> None:
    found = ask(open_state(BUNDLED_NAMES, ()), Scores, {})
    assert "SimCSE before training is Untrained (mean)." in as_latex(found)
    assert "SimCSE before training &" not in as_latex(found)


def test_a_paper_is_told_of_which_columns_the_lower_is_better() -> None:
    found = ask(open_state(BUNDLED_NAMES, ()), Scores, {"task": "geometry"})
    assert "Ordered by anisotropy, best first." in page_html(found)
    for typeset in (as_latex(found), as_markdown(found)):
        assert "anisotropy (lower is better) " in typeset
        assert "separation (lower" not in typeset


def test_a_model_stands_beside_its_own_start() -> None:
    made = board(simcse=[60.0, 61.0], raw=[40.0])
    for name, value in {"simcse-start": 50.0, "second": 52.0}.items():
        scores = {unit: {"spearman": value, "pairs": 5} for unit in sts_task.PAIRS}
        seed = len(made.results.models)
        made.results.models[name] = ModelRecord("simcse", name, group="simcse", seed=seed, scores=scores, start=True)
    found = shown({"sts": scoreboard(made.results)}, "simcse")
    assert found.frame.iloc[0]["before"] == 51.0
    assert "before 51.00" in cells(page_html(found))[1][1]
    assert found.result.sheet(found.frame).iloc[1].tolist()[:2] == ["SimCSE before training", "51.00"]


def test_the_best_is_that_of_the_models_shown() -> None:
    made = board(simcse=[70.0, 71.0, 72.0], conpvp=[60.5, 60.6, 60.7], dcpcse=[60.0, 61.0, 60.4], raw=[40.0])
    whole = open_session(state({"sts": made}, "simcse", "conpvp", "dcpcse"))
    marks = answer(Scores(), whole).frame.groupby("model")["mark"].first().to_dict()
    assert (marks["simcse"], marks["conpvp"]) == ("best", "")
    two = answer(Scores(), replace(whole, columns=whole.columns[1:]))
    assert two.frame.groupby("model")["mark"].first().to_dict() == {
        "conpvp": "best", "dcpcse": "alike", "raw": "",
    }  # fmt: skip
    alone = answer(Scores(), replace(whole, columns=whole.columns[1:2]))
    assert {*alone.frame["model"]} == {"conpvp", "raw"}  # the untrained reading stays
    assert "≈" not in page_html(alone)


def test_no_text_of_a_results_file_is_markup() -> None:
    page = page_html(shown({"sts": board(**{HOSTILE: [60.0, 61.0], "raw": [1.0]})}, "simcse"))
    for tag in ("<script", "<img", 'alert(1)"'):
        assert tag not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 3  # sentence, row, command


def test_models_have_the_names_of_the_other_places_and_those_not_chosen_are_left_out() -> None:
    made = board(simcse=[60.0, 61.0], raw=[50.0])
    assert names_of(made, columns(["simcse"])) == {"simcse": "simcse", "raw": "raw"}
    assert names_of(made, [Column("simcse", "/own/simcse")]) == {"simcse": "shipped simcse", "raw": "raw"}
    opened = open_state(BUNDLED_NAMES, ())
    shown = set(ask(opened, Scores, {"models": ["dcpcse"]}).frame["model"])
    assert {name for name in shown if not name.startswith("untrained")} == {"dcpcse"}
    assert "untrained (mean)" in shown  # what training has to beat


def test_what_has_no_results_is_named_with_the_command_that_makes_them(tmp_path, bert_folder, sts, monkeypatch) -> None:
    from cse.commands.evaluate import app

    mine = columns(["simcse", str(write_model(tmp_path / "my model", bert_folder, "simcse"))])
    found = shown(open_boards(), "simcse", mine[1].model)
    command = scoring_command("sts", mine[1:])
    (note,) = found.notes
    assert note.startswith("No shipped scores of my model. To score them: download the model")
    assert note.endswith(command)
    assert str(tmp_path) not in page_html(found)
    assert shown(open_boards(), "simcse").notes == ()
    monkeypatch.chdir(Path(sts).parent)
    words = [mine[1].model if word == "FOLDER" else word for word in shlex.split(command)]
    assert words[:3] == ["python", "-m", "scripts.evaluate"]
    done = CliRunner().invoke(app, [*words[3:], "--json", str(tmp_path / "r.json")])
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "r.json").read_text())["models"]["my model"]["scores"]["STS12"]


def test_every_task_is_shown_without_a_model_and_the_endpoint_has_the_same_numbers() -> None:
    opened = open_state(BUNDLED_NAMES, ())
    for task, made in open_boards().items():
        found = ask(opened, Scores, {"task": task})
        rows = cells(page_html(found))
        assert len(rows) == len(made.rows) + 1
        assert len(found.frame["column"].unique()) == len(made.columns)
        label, row = next(iter(made.rows.items()))
        own = found.json()[names_of(made, opened.models.columns)[label]]
        assert [record["value"] for record in own] == [figure.value for figure in row.figures if figure]
    assert {name for _, name in Scores.asks()["task"].choices} == set(TASKS)
    ledger = ask(opened, Ledger, {})
    assert len(cells(page_html(ledger))) == len(ledger.frame) + 1
    assert opened.models._encoders == {}


def test_the_papers_numbers_stand_beside_those_obtained() -> None:
    frame = ask(open_state(BUNDLED_NAMES, ()), Ledger, {}).frame
    row = frame[frame["row"].str.startswith("SimCSE, bert-base-uncased")].iloc[0]
    average = open_boards()["sts"].rows["simcse"].figures[0].value
    assert row["published"] == 76.25
    assert row["obtained"] == pytest.approx(average, abs=0.006)
    assert row["difference"] == pytest.approx(average - 76.25, abs=0.006)
    sheet = Ledger().sheet(frame)
    assert sheet.columns.tolist() == ["row", "published", "obtained", "difference", "remarks"]
    assert sheet["remarks"].tolist() == frame["remarks"].tolist()


def test_the_best_is_said_by_its_lead_and_of_sets_without_an_average_by_their_number() -> None:
    level = shown({"sts": board(a=[60.0, 61.0, 62.0], b=[60.5, 60.6, 60.7], c=[50.0, 50.1, 50.2])}, "simcse")
    clear = shown({"sts": board(a=[60.0, 60.1], c=[50.0, 50.1])}, "simcse")
    assert clear.result.says(clear.frame) == "a is best by average, 10.00 ahead of c, significantly."
    assert level.result.says(level.frame).startswith("a is best by average; b does not differ")
    transfer = ask(open_state(BUNDLED_NAMES, ()), Scores, {"task": "transfer", "models": ["simcse", "simcse (before)"]})
    best = transfer.frame[transfer.frame["mark"] == "best"]["model"].value_counts()
    said = transfer.result.says(transfer.frame)
    assert [f"{title(name)} in {count}" in said for name, count in best.items()] == [True] * len(best)
    assert transfer.notes[0] == "No scores of SimCSE before training on this task."
    beside = ask(open_state(BUNDLED_NAMES, ()), Scores, {"models": ["dcpcse", "dcpcse (before)", "conpvp"]}).frame
    averages = beside[beside["column"] == "average"].set_index("model")["value"]
    assert averages["dcpcse (before)"] < averages["conpvp"]
    assert averages.is_monotonic_decreasing


def test_of_several_columns_it_is_said_how_many_leads_are_significant() -> None:
    opened = open_state(BUNDLED_NAMES, ())

    def said(task: str, *models: str) -> str:
        found = ask(opened, Scores, {"task": task, "models": [*models]})
        return found.result.says(found.frame)

    assert said("few-shot", "simcse") == (
        "Best of the 5 columns: SimCSE in 4, Untrained (mean) in 1; no lead is significant."
    )
    assert said("transfer", "simcse").endswith("; whether by more than noise is not known.")
    found = ask(opened, Scores, {"task": "few-shot", "models": ["simcse", "promptbert"]})
    frame = found.frame.assign(apart=found.frame["column"].isin(["MR", "CR"]))
    assert found.result.says(frame) == "Best of the 5 columns: SimCSE in 4 (2 significantly), Untrained (mean) in 1."


def test_a_model_before_training_is_in_every_place_the_one_that_was_scored() -> None:
    opened, before = open_state(BUNDLED_NAMES, ()), [f"{name} (before)" for name in BUNDLED_NAMES]
    records = opened.boards["sts"].results.models.values()
    scored = {record.model: record.fingerprint for record in records if record.start and record.model in BUNDLED_NAMES}
    found = ask(opened, Models, {"models": before})
    assert found.models == {f"{name} (before)": scored[name] for name in BUNDLED_NAMES}
    assert found.frame["learned"].tolist() == [0] * len(before)


def test_a_start_that_is_an_untrained_reading_stands_once() -> None:
    chosen = ["simcse", "simcse (before)", "promptbert", "promptbert (before)"]
    found = ask(open_state(BUNDLED_NAMES, ()), Scores, {"models": chosen})
    assert {"promptbert (before)", "untrained (mean)"} <= set(found.frame["model"])
    assert "simcse (before)" not in set(found.frame["model"])
    simcse, reading = (found.frame[found.frame["model"] == name] for name in ("simcse", "untrained (mean)"))
    assert simcse["before"].tolist() == reading["value"].tolist()
    assert found.notes == ("SimCSE before training is Untrained (mean), whose row it has.",)
    lines = set(found.result.sheet(found.frame)["model"])
    assert {"PromptBERT before training", "Untrained (mean)"} <= lines
    assert "SimCSE before training" not in lines
    assert "Numbers: Spearman × 100." in found.result.facts(found.frame)
    sent = re.search(r"models=(\[.*?\])", python_code(found, "http://x/"))[1]
    assert {*json.loads(sent.replace("'", '"'))} == {*chosen}


# -- the labels of the corpus ----------------------------------------------------------------------------------------

NOUNS = ("dog", "cat", "kitchen", "guitar", "rain", "sun")
TEXTS = [f"the {size} {noun} is here {place}" for noun in NOUNS for size in ("small", "big", "red", "sad")
         for place in ("in the park", "on the big article", "with a man")]  # fmt: skip
TOPICS = [text.split()[2] if number % 7 else "" for number, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def small(tmp_path_factory, bert_folder):
    root = tmp_path_factory.mktemp("models")
    folders = [write_model(root / name, bert_folder, name, seed) for seed, name in enumerate(("simcse", "promptbert"))]
    return open_state([*map(str, folders), str(root / "none")], ())


def of_corpus(opened, texts, labels):
    corpus = GivenCorpus(texts, labels)
    return answer(Labels(), Session(opened, corpus, corpus, opened.models.columns))


def test_the_labels_score_the_models_as_the_library_does_and_a_text_without_one_is_left_out(small) -> None:
    found = of_corpus(small, TEXTS, TOPICS)
    for column in small.models.columns[:2]:
        vectors = cse.load(column.model).encode(TEXTS)
        row = found.frame[found.frame["model"] == column.name].iloc[0]
        scores = label_scores(vectors, TOPICS)
        assert {name: row[name] for name in scores} == scores
        assert row["low"] <= row["neighbours"] <= row["high"]
        assert row["texts"] == sum(map(bool, TOPICS))
    assert set(found.failed) == {"none"}
    assert found.json()["none"].keys() == {"error"}
    rows = [row for row, label in enumerate(TOPICS) if label]
    gold = np.unique([TOPICS[row] for row in rows], return_inverse=True)[1]
    models = {column.name: cse.load(column.model) for column in small.models.columns[:2]}
    best, other = (neighbour_values(models[name].encode(TEXTS)[rows], gold) for name in found.frame["model"])
    assert best.mean() >= other.mean()
    lead = mean_difference(best, other)
    assert found.frame[["lead_low", "lead_high"]].iloc[1].tolist() == [lead.low, lead.high]


def test_models_are_told_apart_by_the_interval_of_their_difference_on_the_same_texts() -> None:
    scores = {"neighbours": [80.0, 79.0, 70.0], "low": [75.0, 74.0, 65.0], "high": [85.0, 84.0, 76.0],
              "lead_low": [0.0, 0.4, 5.0], "lead_high": [0.0, 1.6, 15.0]}  # fmt: skip
    rest = {"purity": 1.0, "nmi": 1.0, "ndcg@10": 1.0, "texts": 240, "labels": 6, "fitted": 0}
    clear = pd.DataFrame({"model": ["simcse", "promptbert", "conpvp"], **scores}).assign(**rest)
    assert Labels().says(clear) == (
        "SimCSE has most neighbours of the same label, 80.0 %, significantly. "
        "On 240 texts that nothing was fitted on, with 6 labels."
    )
    assert "On 240 texts, with 6 labels." in Labels().says(clear.assign(fitted=[0, 9, 0]))
    assert Labels().sheet(clear)[HELD_OUT].tolist() == ["**80.0**", "79.0", "70.0"]
    level = clear.assign(lead_low=[0.0, -0.2, 5.0])
    assert "80.0 %; PromptBERT does not differ significantly. On 240" in Labels().says(level)
    assert Labels().sheet(level)[HELD_OUT].tolist()[0] == "80.0"


def test_of_a_corpus_that_can_be_adapted_to_the_fifth_that_is_held_out_is_scored() -> None:
    texts = [f"{text} {number}" for number in range(6) for text in TEXTS]
    rows, labels = held_out(GivenCorpus(texts, TOPICS * 6))
    assert len(rows) <= len(texts) // 5
    assert [(TOPICS * 6)[row] for row in rows] == labels
    assert all(labels)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (None, "has no labels. Upload a table"),
        ([str(number) for number in range(len(TEXTS))], "2 to 200 can be scored"),
    ],
)
def test_labels_that_cannot_be_scored_are_refused_at_the_corpus(small, labels, words) -> None:
    with pytest.raises(FieldError, match=words) as caught:
        of_corpus(small, TEXTS, labels)
    assert caught.value.field == "The corpus"
