"""The candidates of the visitor's newest adaptation on two axes, grouping and finding, and the dial between them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from cse.adaptation import choice
from cse.app.charts import chart, tips
from cse.app.html import printed
from cse.app.result import Result, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cse.app.state import Session

COLOURS = {choice.GROUPING: "#a27246", choice.FINDING: "#9080c0"}  # of no model
PURPOSES = [("Both", choice.BOTH), ("Topics and groups", choice.GROUPS), ("Search", choice.SEARCH)]
DIAL_LEAST, DIAL_MOST, DIAL_STEP = -0.5, 0.5, 0.125
NONE_YET = "There is no adaptation of yours on this server; press Adapt."


@dataclass(frozen=True)
class Adaptation(Result):
    """The candidates of the visitor's newest adaptation."""

    key = "adaptation"
    title = "Better at what?"
    bold = "better than your model, by a 95 % interval above zero"
    words = ("grouping", "finding", "dial")
    reads_corpus = False  # but the one that it was adapted to
    live = False
    ships = False
    public = False
    lane = "none"
    plots = 1

    dial: float = number(
        "From finding to grouping", 0.0, "The dial", "the exponent of the spectrum.", DIAL_LEAST, DIAL_MOST, DIAL_STEP
    )

    def frame(self, session: Session) -> pd.DataFrame:
        """Return a row for each candidate of the first answer, or of the report (`scores_of`)."""
        runs = [run for run in session.state.trainings.of(session.key) if run.outcome and run.outcome.report]
        if not runs or runs[0].outcome is None or runs[0].outcome.report is None:
            raise ValueError(NONE_YET)
        return report_frame(runs[0].outcome.report)

    def says(self, frame: pd.DataFrame) -> str:
        return on_page(str(frame["verdict"].iloc[0]))

    def view(self, frame: pd.DataFrame) -> dict[str, Any]:
        axes = [axis for axis in choice.AXES if axis in frame]
        unmeasured = [axis for axis in choice.AXES if axis not in axes]
        named = frame.assign(name=frame["name"].map(on_page))
        return {"axes": axes, "scored": named.to_dict("records"), "unmeasured": unmeasured}

    def charts(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        points = dial_points(frame)
        if points.empty:
            return []
        axes = [axis for axis in choice.AXES if axis in frame]
        at = points["dial"] == at_dial(points, self.dial)["dial"]
        rows = pd.concat(
            pd.DataFrame({
                "axis": axis, "dial": points["dial"], "gain": points[f"{axis}_gain"], "low": points[f"{axis}_low"],
                "high": points[f"{axis}_high"], "at": at,
            })
            for axis in axes
        )  # fmt: skip
        colour = {
            "field": "axis", "type": "nominal", "sort": None,
            "legend": {"title": None, "orient": "top", "symbolOpacity": 1},
            "scale": {"domain": axes, "range": [COLOURS[axis] for axis in axes]},
        }  # fmt: skip
        across = {
            "field": "dial",
            "type": "quantitative",
            "title": "dial: finding ← → grouping",
            "axis": {"values": points["dial"].tolist(), "format": ".3~g"},  # by default -0.25 stands there as -0.3
        }
        up = {"field": "gain", "type": "quantitative", "title": "points over the start"}
        layers = [
            {"mark": {"type": "rule", "aria": False, "color": "#8391a7", "strokeDash": [4, 3]},
             "encoding": {"y": {"datum": 0}}},
            {"transform": [{"filter": f"datum.axis == '{axes[0]}' && datum.at"}],
             "mark": {"type": "rule", "color": "#8391a7"}, "encoding": {"x": across}},
            {"mark": {"type": "area", "opacity": 0.15},
             "encoding": {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"}, "color": colour}},
            {"mark": {"type": "line", "strokeWidth": 2, "point": True},
             "encoding": {"x": across, "y": up, "color": colour,
                          "tooltip": tips(axis="Axis", dial="Dial", gain="Gain#", low="from#", high="to#")}},
        ]  # fmt: skip
        return [chart(rows, "Gains over the start on both axes along the dial", height=220, layer=layers)]

    def sheet(self, frame: pd.DataFrame) -> pd.DataFrame:
        shown = pd.DataFrame({"candidate": frame["name"]})
        for axis in [axis for axis in choice.AXES if axis in frame]:
            pairs = zip(frame[axis], frame[f"{axis}_low"], strict=True)
            shown[axis] = [f"**{value:.1f}**" if low > 0 else f"{value:.1f}" for value, low in pairs]
        return shown


def on_page(line: str) -> str:
    """Return a line of the command with the fields of the page in place of its option and key.

    The first candidate that is offered is on the page, those of other purposes are not.
    """
    line = re.sub(r"`--for \w+` takes it", "it stands below, to judge and to take", line, count=1)
    for label, word in PURPOSES:
        line = line.replace(f"`--for {word}` takes it", f"to take it, adapt again with “What for: {label}”")
    # "Your model" is the name of the place, and the start is a field of it.
    words = {"Ctrl-C": "Stop", "Keep your model": "Keep the start", "keep your model": "keep the start"}
    for word, there in words.items():
        line = line.replace(word, there)
    return re.sub(r"(?<=[ (])-(?=\d)", "\N{MINUS SIGN}", line)


def scores_of(stages: Mapping[str, Any], result: str, judged: str | None, verdict: str) -> pd.DataFrame:
    """Return a row for each candidate of the stages: its name, dial, scores and gains with their intervals."""
    rows = []
    for name, scores in choice.candidates(stages).items():
        stage, _, variant = name.partition(" ")
        made = choice.VARIANTS.get(variant)
        row: dict[str, Any] = {
            "candidate": name, "name": choice.called(name), "stage": stage, "dimension": scores["dimension"],
            "dial": made.exponent if made else None,
            "family": f"{stage} {made.towards}" if made else "",
            "chosen": name == result, "judged": name == judged,
        }  # fmt: skip
        gains = choice.gains_of(scores)
        for axis, measure in choice.MEASURES.items():
            if measure in scores["scores"]:
                row[axis] = scores["scores"][measure]
                gain = gains.get(axis)
                ends = (gain.value, gain.low, gain.high) if gain else (None, None, None)
                row |= dict(zip((f"{axis}_gain", f"{axis}_low", f"{axis}_high"), ends, strict=True))
        rows.append(row)
    return pd.DataFrame(rows).assign(verdict=verdict)


def report_frame(report: Mapping[str, Any]) -> pd.DataFrame:
    """Return the table of a finished adaptation's report."""
    return scores_of(report["stages"], report["decision"], report["candidate"], report["verdict"])


def first_answer(stages: Mapping[str, Any], purpose: str) -> pd.DataFrame:
    """Return the table of an unfinished adaptation, with what would be taken now."""
    now = choice.choose(stages, purpose)
    return scores_of(stages, now.result, now.candidate, now.sentence)


def dial_points(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the candidates that differ in the dial alone, by the dial: those of the chosen one, else of the one that
    is offered, else the most others.
    """
    families = {name: rows for name, rows in frame.groupby("family", sort=False) if name and len(rows) > 1}
    own = frame.loc[frame["chosen" if (frame["chosen"] & (frame["family"] != "")).any() else "judged"], "family"]
    if not families:
        return frame.iloc[:0]
    largest = max(families, key=lambda name: len(families[name]))
    name = own.iloc[0] if len(own) and own.iloc[0] in families else largest
    return families[name].sort_values("dial")


def at_dial(points: pd.DataFrame, dial: float) -> Any:
    """Return the candidate whose dial is nearest."""
    return points.loc[(points["dial"] - dial).abs().idxmin()]


def dial_sentence(points: pd.DataFrame, dial: float) -> str:
    """Return what a place of the dial that was tried gains on each axis, and whether its model is the chosen one."""
    row = at_dial(points, dial)
    gains = [
        f"{axis} {printed('%+.1f', row[f'{axis}_gain'])} ({printed('%+.1f', row[f'{axis}_low'])} to "
        f"{printed('%+.1f', row[f'{axis}_high'])})"
        for axis in choice.AXES if axis in points
    ]  # fmt: skip
    kind = "chosen" if points["chosen"].any() else "offered"
    said = f" This is the model that was {kind}." if row["chosen"] or row["judged"] else ""
    towards = choice.FINDING if row["dial"] < 0 else choice.GROUPING if row["dial"] > 0 else ""
    if f"{towards}_gain" in points:
        best = points.loc[points[f"{towards}_gain"].idxmax()]
        if best[f"{towards}_gain"] > row[f"{towards}_gain"]:
            said = f" {towards.capitalize()} is best at dial {printed('%g', best['dial'])}.{said}"
    return f"Dial {printed('%g', row['dial'])}: {', '.join(gains)}, in points over the start.{said}"
