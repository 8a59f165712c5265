"""Results files: read as they were written, gone on with under the same protocol, refused otherwise."""

import json
from pathlib import Path

import pytest
from conftest import ROOT

from cse.evaluation.results import (
    ModelRecord,
    Protocol,
    Results,
    open_results,
    read_results,
    save_results,
)
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
