"""Results files, published rows, scoreboards, ledgers and figures."""

import json
from dataclasses import replace

import pytest
from scipy.stats import ttest_ind

from cse.evaluation import figures, sts
from cse.evaluation.metrics import Figure, over_seeds
from cse.evaluation.reproduction import LedgerEntry, judged, markdown, write_ledger
from cse.evaluation.results import (
    PAPERS,
    ROWS,
    ModelRecord,
    Protocol,
    Results,
    open_results,
    scoreboard,
    table,
    warnings,
)
from cse.evaluation.tasks import find_task
from cse.methods.catalogue import METHODS, SUPERVISED, UNTRAINED
from cse.models.names import PUBLISHED_IDS

RECORD = {"model": "m", "fingerprint": "f", "scores": {"STS12": {"spearman": 1.0}}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": {"m": {"scores": {}}}}, "the record of m lacks model or fingerprint or scores"),
        ({"models": {"m": 1}}, "not a results file .* pass `overwrite`"),
        ({"models": {"m": {**RECORD, "colour": "red"}}}, "not a results file"),
        ({"protocol": {"details": False}}, "not a results file"),
    ],
)
def test_a_file_of_something_else_is_refused_and_left(tmp_path, change, message):
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"task": "sts", "protocol": {"data": "d"}, "models": {"m": RECORD}, **change}))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        open_results(path, Results("sts", Protocol("d"), "command"))
    assert path.read_bytes() == before


def test_what_an_older_file_leaves_out_has_its_default(tmp_path):
    path = tmp_path / "r.json"
    record = {"model": "m", "fingerprint": "f", "scores": {"MR": {"accuracy": 50.0}}}
    path.write_text(json.dumps({"task": "transfer", "protocol": {"data": "d"}, "models": {"m": record}}))
    again = open_results(path, Results("transfer", Protocol("d"), "command"))
    assert again.models == {"m": ModelRecord("m", "f", scores={"MR": {"accuracy": 50.0}})}
    with pytest.raises(ValueError, match="'points': True"):
        open_results(path, Results("transfer", Protocol("d", points=True), "command"))


STS, TRANSFER = find_task("sts"), find_task("transfer")


def record(scores: dict, **more: object) -> ModelRecord:
    return ModelRecord("m", "f", scores=scores, **more)


def test_a_model_is_a_line_under_its_columns_and_what_is_missing_is_a_dash():
    models = {"one": record({"MR": {"accuracy": 50.0}}), "two": record({"MRPC": {"accuracy": 66.5, "f1": 0.25}})}
    assert [line.split() for line in table(TRANSFER, models)] == [
        ["MR", "MRPC", "MRPC", "f1", "average"], ["one", "50.00", "-", "-", "-"], ["two", "-", "66.50", "0.25", "-"],
    ]  # fmt: skip
    assert len({len(line) for line in table(TRANSFER, models)}) == 1
    assert warnings(TRANSFER, models) == ["no files for CR, SUBJ, MPQA, SST2, TREC: no average over the papers' sets"]


def of_sts(value: float, **more: object) -> ModelRecord:
    scores = {name: {"spearman": value, "pairs": pairs} for name, pairs in sts.PAIRS.items()}
    return ModelRecord("m", "f", scores=scores, **more)


def results(task: str, **models: ModelRecord) -> Results:
    return Results(task, Protocol("d"), "command", models)


def geometry(**scores: float) -> ModelRecord:
    return ModelRecord("m", "f", scores={"anisotropy": scores})


def test_alike_is_what_welchs_test_does_not_tell_from_the_best():
    runs = {"a": [70.0, 71.0, 72.5], "b": [69.0, 70.5, 71.5], "c": [66.0, 66.1, 66.2], "d": [69.2, 69.3, 69.4]}
    models = {
        f"{name}{seed}": of_sts(run, group=name, seed=seed) for name in runs for seed, run in enumerate(runs[name])
    }
    verdict = scoreboard(results("sts", **models)).verdicts[0]
    expected = {name: ttest_ind(runs["a"], runs[name], equal_var=False).pvalue >= 0.05 for name in "bcd"}
    assert set(expected.values()) == {True, False}
    assert verdict.best == ("a0",)
    assert verdict.alike == tuple(f"{name}0" for name, same in expected.items() if same)
    assert verdict.apart == tuple(f"{name}0" for name, same in expected.items() if not same)


def test_less_is_better_where_the_task_says_so():
    low, high = geometry(anisotropy=0.2, separation=0.1), geometry(anisotropy=0.6, separation=0.4)
    board = scoreboard(results("geometry", low=low, high=high))
    assert {c.score: v.best for c, v in zip(board.columns, board.verdicts, strict=True)} == {
        "anisotropy": ("low",), "separation": ("high",),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("task", "scores", "expected"),
    [
        ("few-shot", {"accuracy": 55.0, "deviation": 2.5, "runs": [52.5, 57.5]}, {"accuracy": 2.5}),
        ("clustering", {"accuracy": 60.0, "accuracy_deviation": 2.0, "nmi": 50.0, "nmi_deviation": 1.0},
         {"accuracy": 2.0, "nmi": 1.0}),
    ],
)  # fmt: skip
def test_a_deviation_within_one_evaluation_belongs_to_its_score_and_is_no_column(task, scores, expected):
    board = scoreboard(results(task, a=ModelRecord("m", "f", scores={"set": scores})))
    figures = dict(zip([column.score for column in board.columns], board.rows["a"].figures, strict=True))
    assert figures == {score: Figure(scores[score], deviation, 10) for score, deviation in expected.items()}


def test_an_untrained_model_has_noise_where_its_scoring_is_repeated():
    """ConPVP against the untrained mean on AG News: t = 1.43, p = .17."""
    scores = {"accuracy": 77.78, "accuracy_deviation": 10.52}
    untrained = {"accuracy": 70.17, "accuracy_deviation": 13.10}
    models = {"a": record({"agnews": scores}), "b": record({"agnews": untrained}, key="x mean")}
    board = scoreboard(results("clustering", **models))
    assert board.rows["b"].pooling == "mean"
    assert (board.verdicts[0].best, board.verdicts[0].alike) == (("a",), ("b",))


RUNNABLE = [row for row in ROWS if not row.copied]


def test_published_averages_are_the_means_of_their_rounded_rows():
    whole = [row for row in ROWS if row.values]
    assert len(whole) > 15
    for row in whole:
        assert row.average is not None
        sets = find_task("sts" if row.task == "geometry" else row.task).sets
        mean = sum(row.values[name] for name in sets) / len(sets)
        # Means over seeds do not add up to the last digit, nor does SimCSE's transfer row that PromptBERT repeats.
        slack = 0.021 if row.seeds > 1 or row.task == "transfer" else 0.0051
        assert mean == pytest.approx(row.average, abs=slack), row.name


def test_every_row_that_is_not_copied_names_something_this_project_has():
    for row in RUNNABLE:
        reader = row.reading.split()[0]
        if row.checkpoint:
            assert row.reading == PUBLISHED_IDS[row.backbone].name
        elif row.method:
            assert row.method in (SUPERVISED if row.supervised else METHODS), row
            assert reader == row.method
        else:
            assert reader in (*UNTRAINED, "top-tokens", "top-tokens-denoised"), row
    assert {row.paper for row in ROWS} == set(PAPERS)
    assert all(row.source for row in ROWS if row.copied)


ROW = next(row for row in ROWS if not row.copied)
HEAD = {
    "row": "same template", "published": 78.16, "published_deviation": 0.17, "published_seeds": 10,
    "published_on": "bert-base-uncased", "task": "sts", "source": "a table", "copied": False,
    "commands": ["python -m scripts.train", "python -m scripts.evaluate"],
}  # fmt: skip
RUN = {**HEAD, "backbone": "bundled", "seeds": [1, 2], "runs": [77.5, 78.0]}
ON_DISK = [
    {**HEAD, "copied": True, "commands": []},
    {**RUN, "mean": 77.75, "deviation": 0.35, "difference": -0.41, "verdict": "inside the noise"},
    {**RUN, "seeds": [], "runs": [77.5], "published": None, "mean": 77.5, "deviation": None},
    {**RUN, "runs": [77.5, None], "note": "no number to compare: sets are missing"},
]
MARKDOWN = [
    "| same template | 78.16 ± 0.17 | copied, not run |  |  | a table |",
    "| same template | 78.16 ± 0.17 | 77.75 ± 0.35 | -0.41 inside the noise | bundled, 1 2 "
    "| bert-base-uncased, a table |",
    "| same template |  | 77.5 |  | bundled, untrained | bert-base-uncased, a table |",
    "| same template | 78.16 ± 0.17 | no number to compare: sets are missing |  | bundled, 1 2 "
    "| bert-base-uncased, a table |",
]


def of_json(value: dict) -> LedgerEntry:
    return LedgerEntry(**{key: tuple(item) if isinstance(item, list) else item for key, item in value.items()})


def test_a_difference_is_judged_by_the_scatter_of_both_sides():
    row = replace(ROW, average=78.54, deviation=0.15, seeds=10)
    near, far = (judged(over_seeds(runs), row) for runs in ([78.0, 78.5, 77.5], [75.0, 75.5, 74.5]))
    assert near == {"mean": 78.0, "deviation": 0.5, "difference": -0.54, "verdict": "inside the noise"}
    assert far["verdict"] == "a difference"
    one = judged(Figure(74.60), replace(row, average=75.42, deviation=0.86, seeds=10))  # less than a deviation away
    assert one["verdict"] == "inside the noise"
    alone = replace(row, deviation=None, seeds=1)
    assert judged(Figure(78.0), replace(alone, method="simcse"))["verdict"] is None
    untrained = [judged(Figure(value), replace(alone, method=None))["verdict"] for value in (78.0, 78.544)]
    assert untrained == ["a difference", "inside the noise"]  # of rounding: no seed moves either
    assert judged(Figure(78.0), replace(row, average=None)) == {"mean": 78.0, "deviation": None}
    assert judged(Figure(0.0312), replace(row, average=0.0235, deviation=None, seeds=1))["difference"] == 0.0077


@pytest.mark.parametrize(("value", "line"), list(zip(ON_DISK, MARKDOWN, strict=True)))
def test_a_row_on_disk_is_read_and_written_key_for_key(value, line):
    entry = of_json(value)
    assert json.dumps(entry.to_json()) == json.dumps(value)
    assert markdown([entry])[2:] == [line]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": [{}]}', json.dumps({"rows": [{**ON_DISK[0], "other": 1}]})])
def test_another_file_in_its_place_is_refused_and_left(tmp_path, text):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(ValueError, match=r"t\.json: not a ledger .*; move it away or give another `output`"):
        write_ledger(tmp_path / "t", "promptbert", "8", [])
    assert (tmp_path / "t.json").read_text() == text


SEEDS = {"MR": {"a": [60.0, 62.0, 64.0], "b": [70.0, 70.0, 70.0]}, "CR": {"b": [55.0, 58.0, 58.0]}}


def test_a_figure_is_a_picture_and_nothing_to_draw_is_refused(tmp_path):
    path = figures.violins(SEEDS, tmp_path / "new" / "figure.png", "$x$ model, seed 42")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    for draw in (figures.violins, figures.similarity_by_grade, figures.removal_curves, figures.token_picture):
        with pytest.raises(ValueError, match="nothing to draw for 'title'"):
            draw({}, tmp_path / "x.png", "title")
