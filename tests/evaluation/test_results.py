"""Results files: read as they were written, gone on with under the same protocol, refused otherwise."""

import json
from pathlib import Path

import pytest
from conftest import ROOT

from cse.evaluation import sts
from cse.evaluation.results import (
    ModelRecord,
    Protocol,
    Results,
    open_results,
    read_results,
    save_results,
    seed_lines,
    table,
    warnings,
)
from cse.evaluation.tasks import find_task
from cse.files.checksums import DIGEST


def test_a_results_file_is_gone_on_with_and_another_protocol_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "r.json"
    record = ModelRecord("m", "f", scores={"STS12": {"spearman": 1.0}})
    fresh = Results("sts", Protocol("d"), "command", {"m": record})
    save_results(path, fresh)
    assert [file.name for file in path.parent.iterdir()] == ["r.json"]
    again = open_results(path, Results("sts", Protocol("d"), "later"))
    assert again.models == fresh.models
    assert again.command == "later"
    with pytest.raises(ValueError, match="holds sts under"):
        open_results(path, Results("sts", Protocol("d", details=True), "command"))
    whole = fresh.to_json()
    path.write_text(json.dumps({**whole, "models": {"m": {"scores": {}}}}))
    with pytest.raises(ValueError, match="the record of m lacks model or fingerprint or scores"):
        open_results(path, Results("sts", Protocol("d"), "command"))
    strange = {**whole["models"]["m"], "colour": "red"}
    for text in (
        "[]", "{", json.dumps({"task": "sts"}), json.dumps({**whole, "models": {"m": 1}}),
        json.dumps({**whole, "models": {"m": strange}}), json.dumps({**whole, "protocol": {"details": False}}),
    ):  # fmt: skip
        path.write_text(text)
        with pytest.raises(ValueError, match=r"not a results file .* give another `json_output` or pass `overwrite`"):
            open_results(path, Results("sts", Protocol("d"), "command"))
        assert path.read_text() == text


def test_a_digit_that_changed_is_refused_and_a_file_without_digest_is_taken(tmp_path: Path) -> None:
    path, fresh = tmp_path / "r.json", Results("sts", Protocol("d"), "command")
    scores = {"STS12": {"spearman": 71.25, "curve": [0.5, 1e-7]}}
    save_results(path, Results("sts", Protocol("d"), "command", {"é": ModelRecord("é", "f", scores=scores)}))
    written = path.read_text()
    damage = [("71.25", "71.35"), ("1e-07", "1e-08"), ("command", "commane"), ('"f"', '"g"'), ('"é"', '"e"')]
    digest = json.loads(written)[DIGEST]
    for old, new in [*damage, (digest, digest[::-1]), (f'"{digest}"', "null")]:
        path.write_text(written.replace(old, new))
        assert path.read_text() != written
        with pytest.raises(
            ValueError, match=r"r\.json: damaged or edited .*; copy it again .* pass `overwrite`"
        ) as error:
            open_results(path, fresh)
        assert "\n" not in str(error.value)
    path.write_text(json.dumps(json.loads(written), sort_keys=True))  # laid out otherwise
    assert open_results(path, fresh).models["é"].scores == scores
    path.write_text(written.replace("71.25", "71.35").replace(f',\n "{DIGEST}": "{digest}"', ""))
    assert open_results(path, fresh).models["é"].scores["STS12"]["spearman"] == 71.35


BUNDLED = sorted((ROOT / "cse" / "bundled" / "results").glob("*.json"))


@pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.stem)
def test_the_bundled_results_are_read_and_written_as_they_stand(path: Path) -> None:
    read = read_results(path)
    stands = {key: item for key, item in json.loads(path.read_text()).items() if key != DIGEST}
    assert json.dumps(read.to_json()) == json.dumps(stands)  # the order of keys too
    for label, record in read.models.items():
        assert label
        assert record.scores
        assert (record.key is None) == record.start


def test_what_an_older_file_leaves_out_has_its_default(tmp_path: Path) -> None:
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


def of_sts(value: float, **more: object) -> ModelRecord:
    return record({name: {"spearman": value, "pairs": pairs} for name, pairs in sts.PAIRS.items()}, **more)


def test_a_model_is_a_line_under_its_columns_and_what_is_missing_is_a_dash() -> None:
    models = {"one": record({"MR": {"accuracy": 50.0}}), "two": record({"MRPC": {"accuracy": 66.5, "f1": 0.25}})}
    assert [line.split() for line in table(TRANSFER, models)] == [
        ["MR", "MRPC", "MRPC", "f1", "average"], ["one", "50.00", "-", "-", "-"], ["two", "-", "66.50", "0.25", "-"],
    ]  # fmt: skip
    assert len({len(line) for line in table(TRANSFER, models)}) == 1
    assert warnings(TRANSFER, models) == ["no files for CR, SUBJ, MPQA, SST2, TREC: no average over the papers' sets"]


def test_the_published_row_stands_beneath_the_model_of_its_key() -> None:
    head, line, published = table(STS, {"bert": of_sts(40.0, key="bert-base-uncased mean")})
    assert head.split() == [*sts.SETS, "average"]
    assert line.split() == ["bert", *["40.00"] * 8]
    assert published.startswith("  published (promptbert table 5)")
    assert published.split()[-8:] == ["30.87", "59.89", "47.73", "60.29", "63.73", "47.29", "58.22", "52.57"]
    assert len(table(STS, {"bert": of_sts(40.0, key="bundled mean")})) == 2


def test_sets_of_another_size_than_the_papers_are_named() -> None:
    short = of_sts(40.0)
    assert warnings(STS, {"m": short}) == []
    short.scores["STS-B"]["pairs"] = 7
    assert warnings(STS, {"m": short}) == ["STS-B has 7 pairs here, 1379 in the papers: not the same task"]


def test_scores_of_static_embeddings_follow_geometry_s_table() -> None:
    removal = {
        "static": {"STS12": 1.0, "average": 40.0},
        "-Freq": {"average": 45.5},
        "groups": {"all": {"cosine": 0.1}},
    }
    models = {"m": record({"anisotropy": {"anisotropy": 0.1234, "sentences": 5}, "static-bias": removal})}
    assert [line.split() for line in table(find_task("geometry"), models)] == [
        ["anisotropy"], ["m", "0.1234"], [], ["static", "embeddings", "static", "-Freq"], ["m", "40.00", "45.50"],
    ]  # fmt: skip


def test_seeds_of_one_group_have_a_mean_and_two_groups_a_difference() -> None:
    models = {
        name: of_sts(value, group=name[0], seed=seed)
        for name, value, seed in (("a1", 60.0, 1), ("a2", 62.0, 2), ("b1", 50.0, 1), ("b2", 53.0, 2), ("c1", 1.0, 1))
    }
    first, second, difference = seed_lines(STS, models)
    assert first == "over 2 seeds: 61.00 +- 1.41  (a1, a2)"
    assert second == "over 2 seeds: 51.50 +- 2.12  (b1, b2)"
    assert difference.startswith("  a1, a2 minus b1, b2: +9.50 [")
