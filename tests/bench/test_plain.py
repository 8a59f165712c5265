"""The papers' tables from plain text: records that are kept, the page against them, claims' words by hand."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from conftest import SENTENCES, WORDS
from typer.testing import CliRunner

from cse.evaluation.sts import SETS
from tests.bench.__main__ import app
from tests.bench.plain import CONFIGURATIONS, GRIDS, best_settings, trial_name
from tests.bench.plain_page import ALONE, BLOCKS, CLAIMS, FAILS, HOLDS, MISSING, NOISE, claim_table, verdict, write_page


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven STS tasks, STS-B dev and a corpus whose hundredth document is held out."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    pairs = [f"{rng.integers(6)}\t{first}\t{second}\n" for first, second in product(SENTENCES, SENTENCES)]
    for pattern in (*SETS.values(), "STSB/dev.tsv"):
        path = folder / "sts" / pattern.replace("*", "all")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(pairs))
    labelled = "".join(
        f"{number % 2}\t{first} {second}\n" for number, (first, second) in enumerate(product(WORDS[:6], WORDS[:7]))
    )
    for name in ("transfer/TREC/train", "transfer/TREC/test", "clustering/words"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.tsv").write_text(labelled)
    documents = [f"{first} {second}\n" for first, second in product(WORDS[:12], WORDS[:10])]
    documents[99] = "held out\n"
    (folder / "corpus").mkdir()
    (folder / "corpus" / "wiki_a.txt").write_text("\n".join(documents))
    return folder


def invoke(data: Path, backbone: Path, folder: Path, *words: str) -> str:
    options = ["plain", "--data", data, "--backbone", backbone, "--work", folder / "work", "--sentences", 100]
    done = CliRunner().invoke(app, [*map(str, options), "--steps", "2", "--results", f"{folder}/made.json", *words])
    assert done.exit_code == 0, done.output
    return done.output


def test_runs_are_kept_and_the_page_has_their_numbers(data: Path, bert_folder: Path, tmp_path: Path) -> None:
    rows = ["--only", "static-bias", "--only", "templates", "--only", "simcse"]
    invoke(data, bert_folder, tmp_path, *rows, "--seeds", "2")
    results = json.loads((tmp_path / "made.json").read_text())
    records = results["records"]
    assert list(records) == ["static-bias", "templates", "simcse 42", "simcse 43"]
    assert "held out" not in (tmp_path / "work" / "sentences-100.txt").read_text()
    first, second = (records[f"simcse {seed}"] for seed in (42, 43))
    assert first["average"] == pytest.approx(np.mean(list(first["sts"].values())), abs=0.006)
    assert first["settings"] == {"learning_rate": 1e-4, "temperature": 0.05}
    assert first["sts"] != second["sts"]

    before = (tmp_path / "made.json").stat().st_mtime_ns
    invoke(data, bert_folder, tmp_path, *rows, "--seeds", "2")
    assert (tmp_path / "made.json").stat().st_mtime_ns == before  # nothing was run again

    invoke(data, bert_folder, tmp_path, "--page")
    page = (tmp_path / "made.md").read_text()
    averages = [record["average"] for record in (first, second)]
    shown = f"{np.mean(averages):.2f} ± {np.std(averages, ddof=1):.2f}"
    assert f"| SimCSE | 2 | {np.mean([first['sts']['STS12'], second['sts']['STS12']]):.2f} |" in page
    assert f"| {shown} | 76.25 |" in page
    assert f"| `static` | {records['static-bias']['removal']['static']:.2f} | 56.02 |" in page
    scores = records["templates"]["templates"]
    *_, quoted, colon = scores
    word = "holds" if scores[colon] > scores[quoted] else "does not hold"
    assert f'beats the "of" in the quoted template | *{word}* |' in page
    assert (tmp_path / "made-average.svg").read_text().count("SimCSE")


def test_trials_choose_the_settings_and_more_tasks_are_added(data: Path, bert_folder: Path, tmp_path: Path) -> None:
    rows = ["--only", "simcse"]
    invoke(data, bert_folder, tmp_path, *rows, "--trials")
    first = json.loads((tmp_path / "made.json").read_text())
    assert list(first["trials"]) == [trial_name("simcse", point) for point in GRIDS["simcse"]]
    best = max(first["trials"].values(), key=lambda trial: trial["dev"])
    assert first["records"]["simcse 42"]["dev"] == best["dev"]
    invoke(data, bert_folder, tmp_path, *rows, "--more")
    record = json.loads((tmp_path / "made.json").read_text())["records"]["simcse 42"]
    assert first["records"]["simcse 42"].items() <= record.items()
    assert (list(record["transfer"]), list(record["clustering"])) == (["TREC"], ["words"])
    invoke(data, bert_folder, tmp_path, "--page")
    assert (
        f"| {record['transfer']['TREC']:.2f} | {record['clustering']['words']:.2f} |"
        in (tmp_path / "made.md").read_text()
    )


def test_a_page_keeps_its_prose(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Mine\n\n" + "".join(f"A word.\n<!-- {name} -->\nold\n<!-- /{name} -->\n" for name in BLOCKS))
    results = {"trials": {}, "records": {"cls": {"average": 55.0, "sts": {"STS12": 41.5}}}}
    write_page(results, page)
    text = page.read_text()
    assert text.startswith("# Mine\n\nA word.\n<!-- scores -->")
    assert text.count("A word.") == len(BLOCKS)
    assert "old" not in text.split("<!-- claims -->")[0]
    assert "| untrained, cls | – | 41.50 | – |" in text
    assert f"| untrained, mean | {MISSING} | – |" in text
    page.write_text("# Mine\n")
    with pytest.raises(ValueError, match="no marks <!-- scores -->"):
        write_page(results, page)


def records(**averages: list[float]) -> dict[str, dict]:
    """Results with a record for each average of a row, from seed 42 on; an untrained row has one."""
    kept = {}
    for name, values in averages.items():
        row = name.replace("_", "-")
        for seed, value in enumerate(values, start=42):
            kept[f"{row} {seed}" if CONFIGURATIONS[row].family else row] = {"average": value}
    return {"trials": {}, "records": kept}


@pytest.mark.parametrize(
    ("averages", "word"),
    [
        ({"promptbert": [62.0, 62.4, 62.2], "simcse": [57.0, 57.6, 57.1]}, HOLDS),
        ({"promptbert": [57.0, 57.6, 57.1], "simcse": [62.0, 62.4, 62.2]}, FAILS),
        ({"promptbert": [60.0, 64.0, 62.0], "simcse": [59.0, 63.5, 61.0]}, NOISE),
        ({"promptbert": [62.0], "simcse": [57.0, 57.6]}, ALONE),
        ({"promptbert": [62.0, 62.1]}, MISSING),
    ],
)
def test_the_word_of_a_claim_is_that_of_welchs_interval(averages: dict[str, list[float]], word: str) -> None:
    claim = next(claim for claim in CLAIMS if claim.text == "PromptBERT beats SimCSE")
    assert verdict(claim, records(**averages))[0] == word


def test_welchs_interval_by_hand_and_exact_untrained_rows() -> None:
    claim = next(claim for claim in CLAIMS if claim.text == "OptiPrompt beats the untrained prompt")
    # t(2) of 97.5 % is 4.303: 4.303 * 1 / sqrt(3) = 2.48 around 64 - 60.
    assert verdict(claim, records(optiprompt=[63.0, 64.0, 65.0], prompt=[60.0])) == (HOLDS, "+4.00 [+1.52, +6.48]")
    claim = next(claim for claim in CLAIMS if "averaged last layer" in claim.text)
    assert verdict(claim, records(static=[47.1], mean=[53.2])) == (FAILS, "-6.10")
    claim = next(claim for claim in CLAIMS if claim.deviation)
    # F(2, 2) has .025 at 1/39 and .975 at 39; deviations 1 and 10: .1 times sqrt(39) and 1/sqrt(39).
    word = verdict(claim, records(promptbert=[61.0, 62.0, 63.0], simcse=[50.0, 60.0, 70.0]))
    assert word == (HOLDS, "0.10 times [0.02, 0.62]")


def test_a_claim_about_what_was_not_run_says_so() -> None:
    lines = claim_table(records(simcse=[57.0]))
    assert len(lines) == 2 + len(CLAIMS)
    assert all(f"*{MISSING}*" in line for line in lines[2:])


def test_settings_are_the_best_on_dev_of_those_tried() -> None:
    slow = GRIDS["simcse"][1]
    assert best_settings("simcse", {}) == GRIDS["simcse"][0]
    trials = {
        trial_name("simcse", point): {"dev": dev} for point, dev in zip(GRIDS["simcse"], (60.0, 61.0), strict=False)
    }
    assert best_settings("simcse", trials) == slow
    assert {len(points) for points in GRIDS.values()} == {4}
