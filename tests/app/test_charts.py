"""Pictures of scores, and the names of models."""

import pytest
from test_results_tab import HOSTILE, board

from cse.app.drawing import html
from cse.app.drawing.curve import padded
from cse.app.drawing.palette import MODELS, OWN, own_colours
from cse.app.models.columns import Column
from cse.app.models.naming import choices, title
from cse.app.scoreboard.charts import Axis, axis_of, charts_html
from cse.app.scoreboard.planes import cost_at, parameters_plane, speed_plane, times_of
from cse.app.scoreboard.scores import names_of, opened_by
from cse.app.state.app_state import open_boards, open_state
from cse.app.state.records import record_of
from cse.evaluation import sts
from cse.evaluation.results import ModelRecord
from cse.evaluation.scoreboard import scoreboard


@pytest.mark.parametrize(
    ("values", "axis"),
    [
        ([64.7, 81.6], Axis(60, 85, 5)),
        ([71.0, 74.9], Axis(71, 75, 1)),
        ([50.0], Axis(50, 51, 1)),
        ([3, 97], Axis(0, 100, 20)),
    ],
)
def test_an_axis_holds_its_values_between_whole_ends(values, axis) -> None:
    assert axis_of(values) == axis
    assert len(axis.ticks) <= 7


def test_a_dot_stands_at_its_figure_and_a_bar_spans_its_deviation() -> None:
    made = board(simcse=[60.0, 61.0, 62.0], dcpcse=[70.0, 70.0, 70.0])
    page = charts_html(made, names_of(made, []))
    axis = axis_of([60.0, 62.0, 70.0])
    for value in (61.0, 70.0):
        assert page.count(f'class="cse-dot " style="left:{axis.at(value):.2f}%') == len(made.columns)
    assert page.count(f'"cse-span" style="left:{axis.at(60):.2f}%;width:{axis.at(62) - axis.at(60):.2f}%') == len(
        made.columns
    )
    assert page.count("--cse-model:#3d8eff") == page.count("--cse-model:#178267") + len(
        made.columns
    )  # which has no bar
    assert "before" not in page


def test_the_gain_over_the_own_start_is_drawn_and_said() -> None:
    made = board(simcse=[60.0, 61.0])
    scores = {unit: {"spearman": 50.25, "pairs": 5} for unit in sts.PAIRS}
    made.results.models["start"] = ModelRecord("simcse", "s", group="simcse", seed=9, scores=scores, start=True)
    made = scoreboard(made.results)
    page = charts_html(made, {"simcse": HOSTILE})
    assert "<span>+9.8</span>" in page  # 60 of the table's seed minus 50.25
    assert "<script" not in page


def test_the_cost_of_a_model_is_on_a_logarithmic_axis_that_begins_with_nothing() -> None:
    assert [round(cost_at(count), 1) for count in (0, 10_000, 18_432, 1_000_000, 10**8, 10**9)] == [
        4.0, 12.0, 17.6, 54.0, 96.0, 96.0,
    ]  # fmt: skip
    made = board(simcse=[60.0, 61.0], dcpcse=[70.0, 71.0])
    assert made.columns[0].unit == "average"
    page = parameters_plane(made, names_of(made, []) | {"simcse": HOSTILE})
    axis = axis_of([60.5, 70.5])
    for name, score in (("simcse", 60.5), ("dcpcse", 70.5)):
        trained = record_of(name).trained
        place = f"left:{cost_at(trained):.2f}%;top:{100 - axis.at(score):.2f}%;--cse-model:{MODELS[name]}"
        assert place in page
        assert f"{trained:,} trained parameters, {score:.2f}" in page
    assert "<script" not in page
    assert (
        parameters_plane(board(mine=[1.0], yours=[2.0]), {"mine": "mine", "yours": "yours"}) == ""
    )  # costs are not known


def test_the_plane_of_times_has_a_dot_where_the_time_of_a_sentence_and_the_score_meet() -> None:
    made = board(simcse=[60.0, 61.0], dcpcse=[70.0, 71.0])
    page = speed_plane(made, names_of(made, []) | {"simcse": HOSTILE}, {"simcse": 5.0, "dcpcse": 7.5})
    axis = axis_of([60.5, 70.5])
    for name, across, score in (("simcse", 4 + 92 * 5 / 8, 60.5), ("dcpcse", 4 + 92 * 7.5 / 8, 70.5)):
        assert f"left:{across:.2f}%;top:{100 - axis.at(score):.2f}%;--cse-model:{MODELS[name]}" in page
    assert "7.5 ms a sentence, 70.50" in page
    assert "<script" not in page
    assert speed_plane(made, names_of(made, []), {"simcse": 5.0}) == ""  # no comparison


def test_times_of_a_board_are_those_measured_by_the_reading_of_its_rows() -> None:
    made = board(simcse=[60.0], dcpcse=[70.0])
    state = open_state([], ())
    state.speeds.put(opened_by(made.rows["dcpcse"]), 7.5)
    assert times_of(state, made) == {"dcpcse": 7.5}


def test_boards_of_several_units_and_those_where_lower_is_better_have_no_picture() -> None:
    boards = open_boards()
    assert charts_html(boards["geometry"], names_of(boards["geometry"], [])) == ""
    assert charts_html(boards["sts"], names_of(boards["sts"], [])).count("<figure") >= 1


def test_a_model_has_the_name_of_its_paper_and_its_colour_everywhere() -> None:
    assert [title(name) for name in ("simcse", "promptbert", "dcpcse", "conpvp", "bundled", "mine")] == [
        "SimCSE", "PromptBERT", "DCPCSE", "ConPVP", "Untrained", "mine",
    ]  # fmt: skip
    assert choices(["dcpcse", "mine"]) == [("DCPCSE", "dcpcse"), ("mine", "mine")]
    assert title("untrained (cls)") == "Untrained (cls)"
    assert html.model("conpvp") == '<i class="cse-chip" style="--cse-model:#ca499f"></i>ConPVP'
    assert "<script" not in html.model(HOSTILE)


def test_models_of_ones_own_have_colours_in_the_order_of_the_columns_and_untrained_ones_none() -> None:
    names = ["simcse", "mine", "bundled", '</style>" é']
    found = own_colours([Column(name, name) for name in names])
    assert found == {"mine": OWN[0], names[3]: OWN[1]}
    styles = html.colour_styles(found)
    assert f'[data-model="mine"]{{--cse-model:{OWN[0]}}}' in styles
    assert r'[data-model="\3c \2f style\3e \22 \20 \e9 "]' in styles
    assert styles.count("</style>") == 1
    assert html.chip("mine") == '<i class="cse-chip" data-model="mine"></i>'
    assert html.colour_styles({}) == ""


def test_the_axis_of_a_curve_is_below_zero_only_where_a_value_is() -> None:
    assert padded(0.0, 2.0) == (0.0, 2.1)
    assert padded(1.0, 2.0) == pytest.approx((0.95, 2.05))
    assert padded(-1.0, 1.0) == pytest.approx((-1.1, 1.1))
    assert padded(0.0, 0.0) == pytest.approx((0.0, 0.05))  # equal values have room too
