"""Results survive an interruption unit by unit, and texts are encoded once however many units share them."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cse.evaluation.harness import EvaluationRequest, ModelSelection, evaluate, new_results
from cse.evaluation.results import ModelRecord, open_results, read_results
from cse.evaluation.tasks import TaskData, find_task


def fail(name: str, error: Exception) -> None:
    raise error


@dataclass
class LetterCounts:
    """An encoder without tokens whose vectors are counts of `letters`; it keeps the texts it encoded."""

    fingerprint: str
    letters: str
    name: str = "letters"
    seen: list[str] = field(default_factory=list)

    def encode(self, sentences: list[str], batch_size: int = 64) -> np.ndarray:
        self.seen += sentences
        return np.array([[text.count(letter) + 0.1 for letter in self.letters] for text in sentences])


def request(task: str, folder: Path, *encoders: LetterCounts, **more: object) -> EvaluationRequest:
    candidates = [
        SimpleNamespace(name=one.name, open=lambda one=one: (one, ModelRecord("given", one.fingerprint, key="key")))
        for one in encoders
    ]
    models = SimpleNamespace(candidates=lambda: candidates, fit=None)
    return EvaluationRequest(find_task(task), TaskData(folder), models, **more)


def test_two_encoders_of_one_name_have_a_record_each_and_are_not_scored_twice(sts: Path, tmp_path: Path) -> None:
    path, lines = tmp_path / "r.json", []
    first, second = LetterCounts("f1", "aeiou"), LetterCounts("f2", "tnrs")
    asked = request("sts", sts, first, second)
    results = new_results(asked, "command")
    records = evaluate(asked, results, path, lines.append, fail)
    assert list(records) == ["letters", "letters f2"]
    assert records["letters"].scores != records["letters f2"].scores
    assert read_results(path) == results
    assert lines[0] == "letters (f1)"
    assert lines[1].startswith("  STS12  spearman ")
    first.seen.clear()
    assert evaluate(asked, open_results(path, new_results(asked, "later")), path, lines.append, fail) == records
    assert first.seen == []


def test_texts_get_a_final_period_where_it_is_asked_for(sts: Path) -> None:
    encoder = LetterCounts("f", "aeiou")
    asked = request("sts", sts, encoder, final_period=True)
    evaluate(asked, new_results(asked, "command"), None, lambda line: None, fail)
    assert encoder.seen
    assert all(text[-1] in ".?\"'" for text in encoder.seen)


def test_units_of_tokens_are_named_where_they_are_left_out(sts: Path) -> None:
    lines: list[str] = []
    asked = request("geometry", sts, LetterCounts("f", "aeiou"))
    records = evaluate(asked, new_results(asked, "command"), None, lines.append, fail)
    assert list(records["letters"].scores) == ["anisotropy", "alignment-uniformity", "distribution", "map"]
    assert lines[1].startswith("  removal and static-bias need an encoder with tokens and all of STS12/*.tsv, ")


def test_data_that_are_not_there_are_named_before_a_model_is_opened(tmp_path: Path) -> None:
    selection = ModelSelection(["no such model"])
    with pytest.raises(ValueError, match="no STS files; the layout is STS12"):
        new_results(EvaluationRequest(find_task("sts"), TaskData(tmp_path), selection), "command")


def test_a_model_that_fails_keeps_what_it_has_and_the_others_are_scored(sts: Path, tmp_path: Path) -> None:
    class Broken(LetterCounts):
        def encode(self, sentences: list[str], batch_size: int = 64) -> np.ndarray:
            if len(self.seen) > 5:
                raise RuntimeError("out of memory")
            return super().encode(sentences)

    encoders = LetterCounts("f1", "aeiou"), Broken("f2", "aeiou", "broken"), LetterCounts("f3", "tnrs", "last")
    extra = sts / "STS13" / "more.tsv"
    extra.write_text("".join(f"{i % 5}\tline {'a' * i} x\tline e {'i' * i}\n" for i in range(12)))
    asked = request("sts", sts, *encoders, compare=True)
    failures: list[tuple[str, str]] = []
    results, path = new_results(asked, "command"), tmp_path / "r.json"
    records = evaluate(asked, results, path, lambda line: None, lambda name, error: failures.append((name, str(error))))
    assert failures == [("broken", "out of memory")]
    assert {label: len(record.scores) for label, record in records.items()} == {"letters": 7, "broken": 1, "last": 7}
    assert read_results(path) == results
    assert [line.split(",")[0] for line in results.comparisons] == ["letters minus last"]
    with pytest.raises(RuntimeError, match="out of memory"):
        evaluate(asked, new_results(asked, "command"), None, lambda line: None, fail)


def test_a_selection_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="unknown 'median'; choose from"):
        ModelSelection(["m"], poolings=["median"])
    with pytest.raises(ValueError, match="give `postprocess` and `fit` together"):
        ModelSelection(["m"], postprocess="flow")
