"""Experiments with `adapt` and the papers' methods: what is measured is kept, and what is said of it by hand."""

import json
from itertools import count, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from command_line import ran
from conftest import SENTENCES, WORDS

import cse
from cse.adaptation.candidates import Trial, left_out
from cse.evaluation import retrieval
from cse.evaluation.clustering import neighbour_values
from cse.evaluation.sts import SETS
from tests.bench import adapt, finding, recipes
from tests.bench.plain import CONFIGURATIONS, GRIDS, trial_name
from tests.bench.plain_page import BLOCKS, CLAIMS, FAILS, HOLDS, MISSING, NOISE, verdict, write_page


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """A file of different texts with four labels, which are their first words."""
    words = [word for word in WORDS if word.isalpha()]
    rows = [f"{first}\t{first} {second} {third}\n" for first in words[:4] for second in words for third in words[:4]]
    (tmp_path / "set.tsv").write_text("".join(rows))
    return tmp_path / "set.tsv"


def test_layers_are_fitted_on_other_texts_than_they_are_scored_on(
    labelled: Path, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = cse.load(str(bert_folder), "cls")
    asked: list[list[str]] = []
    read = adapt.raw_vectors
    monkeypatch.setattr(adapt, "raw_vectors", lambda model, texts: asked.append(list(texts)) or read(model, texts))
    scores = adapt.measure(labelled, encoder, fit=300, scored=60, seed=3)
    (held, forms, fit), joined = asked[:3], asked[3:]
    assert joined == asked[:3]
    assert (len(held), len(fit), set(held) & set(fit)) == (60, 300, set())
    assert forms == [" ".join(text.split()[::2]) for text in held]
    expected = 100 * neighbour_values(encoder.encode(held), np.array([text.split()[0] for text in held])).mean()
    assert scores["start"]["neighbours"] == pytest.approx(expected, abs=0.01)
    gains = adapt.summary([{"scores": scores, "seed": 3, "texts": "set", "model": "cls"}])
    assert gains["start"] == {"neighbours": [0, 0, 0], "recall@1": [0, 0, 0], "mrr": [0, 0, 0]}


def test_a_choice_by_one_seed_is_scored_on_another() -> None:
    start = {"neighbours": 50.0, "recall@1": 90.0, "taken": False}
    near = {"neighbours": 60.0, "recall@1": 80.0, "taken": False}
    good, fair = ({"neighbours": near, "recall@1": 89.5, "taken": True} for near in (56.0, 53.0))
    first, second = (
        {"start": start, "near": near, "a": one, "b": other} for one, other in ((good, fair), (fair, good))
    )
    assert (adapt.chosen(first), adapt.chosen(second), adapt.chosen({"start": start})) == ("a", "b", "start")
    trials = [{"seed": seed, "texts": "set", "model": "m", "scores": rows} for seed, rows in enumerate((first, second))]
    assert adapt.summary(trials)["chosen"] == {"neighbours": [3, 3, 3], "recall@1": [-0.5, -0.5, -0.5]}


def test_every_recipe_starts_from_the_same_model_and_what_is_measured_is_not_repeated(
    labelled: Path, tmp_path: Path, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Half a second between two looks at the clock: three batches of SimCSE in a pass, and the stop some later.
    monkeypatch.setattr(recipes, "time", SimpleNamespace(process_time=count(0, 0.5).__next__))
    output, trial = tmp_path / "trials.jsonl", recipes.Trial(str(bert_folder), "cls", 4, 0)
    ways = {name: recipes.WAYS[name] for name in ("projection", "simcse", "tsdae")}
    row = recipes.measure(labelled, trial, ways, output, fit=330, scored=40)
    assert list(row["scores"]) == ["start", "projection", "simcse", "tsdae"]
    assert all(0 < scores["end"]["neighbours"] <= 100 for scores in row["scores"].values())
    assert all(row["scores"][name]["seconds"] > 4 for name in ("simcse", "tsdae"))
    assert row["scores"]["simcse"]["one pass"] != row["scores"]["start"]["end"]
    ways |= {name: recipes.WAYS[name] for name in ("smoothing", "adapt")}
    more = recipes.measure(labelled, trial, ways, output, fit=330, scored=40)
    assert more["scores"].pop("smoothing")["end"]["neighbours"] > 0
    assert more["scores"].pop("adapt")["decision"]
    assert more == row
    assert [list(kept["scores"]) for kept in recipes.rows_of(output)] == [[*row["scores"], "smoothing", "adapt"]]
    with pytest.raises(ValueError, match="different texts, but 9000 to fit"):
        recipes.measure(labelled, recipes.Trial(str(bert_folder), "mean", 1, 0), ways, output, fit=9000, scored=40)


def test_the_ndcg_of_each_candidate_is_that_on_the_whole_set_and_is_measured_once(
    tmp_path: Path, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, rng = tmp_path / "set", np.random.default_rng(0)
    folder.mkdir()
    texts = {" ".join(rng.choice(WORDS[4:40], 6)): number for number in range(380)}
    (folder / "corpus.tsv").write_text("".join(f"d{number}\t{text}\n" for text, number in texts.items()))
    asked = list(texts.items())[:30]
    (folder / "queries.tsv").write_text("".join(f"q{number}\t{text[2:-2]}\n" for text, number in asked))
    (folder / "qrels.tsv").write_text("".join(f"q{number}\td{number}\t1\n" for _, number in asked))
    monkeypatch.setattr(Trial, "training", lambda self: left_out("not tried"))
    row = finding.measure(folder, f"{bert_folder}:mean", 3, tmp_path / "rows.jsonl", lambda line: None)
    expected = retrieval.score(cse.load(str(bert_folder), "mean").encode, folder, finding.search)[finding.NDCG]
    assert row["scores"]["start"][finding.NDCG] == pytest.approx(expected, abs=0.01)
    assert {"projection 0", "projection 0.5"} <= row["scores"].keys()
    monkeypatch.setattr(finding, "tried", None)
    assert finding.measure(folder, f"{bert_folder}:mean", 3, tmp_path / "rows.jsonl", print) == row
    assert [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()] == [row]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven STS tasks, STS-B dev, labelled sets, and a corpus whose hundredth document is held out."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    pairs = "".join(f"{rng.integers(6)}\t{first}\t{second}\n" for first, second in product(SENTENCES, SENTENCES))
    labelled = "".join(
        f"{n % 2}\t{first} {second}\n" for n, (first, second) in enumerate(product(WORDS[:6], WORDS[:7]))
    )
    documents = [f"{first} {second}\n" for first, second in product(WORDS[:18], WORDS[:12])]
    documents[99] = "held out\n"
    files = {f"sts/{pattern.replace('*', 'all')}": pairs for pattern in (*SETS.values(), "STSB/dev.tsv")}
    names = ("transfer/TREC/train", "transfer/TREC/test", "clustering/words")
    files |= {f"{name}.tsv": labelled for name in names} | {"corpus/wiki_a.txt": "\n".join(documents)}
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def run_plain(data: Path, backbone: Path, folder: Path, *words: object) -> dict[str, Any]:
    """Run rows of the papers' tables; return the records."""
    options = ("--data", data, "--backbone", backbone, "--work", folder / "work", "--sentences", 200, "--steps", 2)
    ran("bench", "plain", *options, "--results", folder / "made.json", *words)
    return json.loads((folder / "made.json").read_text())


def test_runs_are_kept_and_the_page_has_their_numbers(data: Path, bert_folder: Path, tmp_path: Path) -> None:
    rows = ("--only", "static-bias", "--only", "templates", "--only", "simcse", "--seeds", 2)
    records = run_plain(data, bert_folder, tmp_path, *rows)["records"]
    assert list(records) == ["static-bias", "templates", "simcse 42", "simcse 43"]
    assert "held out" not in (tmp_path / "work" / "sentences-200.txt").read_text()
    first, second = (records[f"simcse {seed}"] for seed in (42, 43))
    assert first["average"] == pytest.approx(np.mean(list(first["sts"].values())), abs=0.006)
    assert first["settings"] == GRIDS["simcse"][0]  # before any was tried
    assert first["sts"] != second["sts"]
    before = (tmp_path / "made.json").stat().st_mtime_ns
    run_plain(data, bert_folder, tmp_path, *rows)
    assert (tmp_path / "made.json").stat().st_mtime_ns == before  # nothing was run again
    run_plain(data, bert_folder, tmp_path, "--page")
    page = (tmp_path / "made.md").read_text()
    averages = [record["average"] for record in (first, second)]
    assert f"| SimCSE | 2 | {np.mean([first['sts']['STS12'], second['sts']['STS12']]):.2f} |" in page
    assert f"| {np.mean(averages):.2f} ± {np.std(averages, ddof=1):.2f} | 76.25 |" in page
    assert f"| `static` | {records['static-bias']['removal']['static']:.2f} | 56.02 |" in page
    *_, quoted, colon = records["templates"]["templates"].values()
    assert f'beats the "of" in the quoted template | *{"holds" if colon > quoted else "does not hold"}* |' in page
    assert (tmp_path / "made-average.svg").read_text().count("SimCSE")


def test_trials_choose_the_settings_and_more_tasks_are_added(data: Path, bert_folder: Path, tmp_path: Path) -> None:
    results = run_plain(data, bert_folder, tmp_path, "--only", "simcse", "--trials")
    assert list(results["trials"]) == [trial_name("simcse", point) for point in GRIDS["simcse"]]
    first = results["records"]["simcse 42"]
    assert first["dev"] == max(trial["dev"] for trial in results["trials"].values())
    longer = run_plain(
        data, bert_folder, tmp_path, "--only", "simcse", "--vary", "max_steps=1", "--vary", "words=1", "--more"
    )
    record = longer["records"]["simcse 42"]
    shorter, cut = longer["variations"].values()
    assert shorter["settings"] == cut["settings"] == first["settings"]
    measured = [{name: scores[name] for name in ("sts", "anisotropy", "alignment")} for scores in (first, shorter, cut)]
    assert len(set(map(str, measured))) == 3, measured  # on some CPUs two of them rank the few pairs alike
    texts = (tmp_path / "work" / "sentences-200-1.txt").read_text().split("\n")
    assert all(len(text.split()) == 1 for text in texts[:-1])
    assert first.items() <= record.items()
    assert (list(record["transfer"]), list(record["clustering"])) == (["TREC"], ["words"])
    run_plain(data, bert_folder, tmp_path, "--page")
    shown = f"| {record['transfer']['TREC']:.2f} | {record['clustering']['words']:.2f} |"
    page = (tmp_path / "made.md").read_text()
    assert shown in page
    for setting, scores in (("as in the tables", first), ("batches 1", shorter), ("words 1", cut)):
        assert f"| SimCSE | {setting} | {scores['average']:.2f} | {scores['dev']:.2f} |" in page


def test_a_page_keeps_its_prose(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Mine\n\n" + "".join(f"A word.\n<!-- {name} -->\nold\n<!-- /{name} -->\n" for name in BLOCKS))
    write_page({"trials": {}, "records": {"cls": {"average": 55.0, "sts": {"STS12": 41.5}}}}, page)
    text = page.read_text()
    assert text.startswith("# Mine\n\nA word.\n<!-- scores -->")
    assert (text.count("A word."), text.count("old\n")) == (len(BLOCKS), 0)
    assert "| untrained, cls | – | 41.50 | – |" in text
    assert f"| untrained, mean | {MISSING} | – |" in text
    page.write_text("# Mine\n")
    with pytest.raises(ValueError, match="no marks <!-- scores -->"):
        write_page({"trials": {}, "records": {}}, page)


def records(**averages: list[float]) -> dict[str, dict]:
    """Results with a record for each average of a row, from seed 42 on; an untrained row has one."""
    kept = {}
    for name, values in averages.items():
        row = name.replace("_", "-")
        for seed, value in enumerate(values, start=42):
            kept[f"{row} {seed}" if CONFIGURATIONS[row].family else row] = {"average": value}
    return {"trials": {}, "records": kept}


@pytest.mark.parametrize(
    ("claim", "averages", "word", "difference"),
    [
        ("PromptBERT beats SimCSE", {"promptbert": [60.0, 64.0, 62.0], "simcse": [59.0, 63.5, 61.0]}, NOISE, ""),
        # t(2) of 97.5 % is 4.303: 4.303 * 1 / sqrt(3) = 2.48 around 64 - 60.
        ("OptiPrompt beats the untrained prompt", {"optiprompt": [63.0, 64.0, 65.0], "prompt": [60.0]}, HOLDS,
         "+4.00 [+1.52, +6.48]"),
        ("averaged word embeddings beat the averaged last layer", {"static": [47.1], "mean": [53.2]}, FAILS, "-6.10"),
        # F(2, 2) has .025 at 1/39 and .975 at 39; deviations 1 and 10: .1 times sqrt(39) and 1/sqrt(39).
        ("PromptBERT varies less with the seed than SimCSE",
         {"promptbert": [61.0, 62.0, 63.0], "simcse": [50.0, 60.0, 70.0]}, HOLDS, "0.10 times [0.02, 0.62]"),
    ],
)  # fmt: skip
def test_the_word_of_a_claim_is_that_of_welchs_interval(
    claim: str, averages: dict[str, list[float]], word: str, difference: str
) -> None:
    (one,) = (candidate for candidate in CLAIMS if candidate.text == claim)
    said, interval = verdict(one, records(**averages))
    assert said == word
    assert interval == difference or not difference
