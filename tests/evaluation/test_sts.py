"""STS sets: subsets concatenated, missing sets named."""

from pathlib import Path

import numpy as np
import pytest
from plain_vectors import encode

from cse.evaluation.sts import score, units, with_final_period
from cse.evaluation.tasks import TaskData


def write_pairs(path: Path, *rows: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows))
    return path


def test_subsets_are_concatenated_and_ranked_once(tmp_path):
    # cosines 0.8 and 0.6 in the first subset, 0.0 and -0.995 in the second
    first = write_pairs(tmp_path / "STS12" / "x.tsv", "1\ta\tb", "5\tb\tc")
    second = write_pairs(tmp_path / "STS12" / "y.tsv", "4\ta\tc", "0\ta\td")
    scores = score(encode, [first, second], details=True)
    # ranks of cosines 4 3 2 1, of grades 2 4 3 1: 1 - 6 * (4 + 1 + 1 + 0) / 60 = 0.4
    assert scores["spearman"] == 40.0
    assert scores["subsets"] == {"x": -100.0, "y": 100.0}
    assert scores["subset_mean"] == 0.0
    together = [0.8, 0.6, 0.0, -1 / np.sqrt(1.01)]
    assert scores["pearson"] == round(100 * float(np.corrcoef(together, [1, 5, 4, 0])[0, 1]), 2)
    assert scores["cosines"] == [round(value, 6) for value in together]
    assert scores["grades"] == [1, 5, 4, 0]


def test_a_collapsed_model_has_no_score_and_a_subset_without_one_leaves_its_place_empty(tmp_path):
    first = write_pairs(tmp_path / "STS12" / "x.tsv", "1\ta\tb", "5\tb\tc")
    flat = write_pairs(tmp_path / "STS12" / "y.tsv", "4\ta\tc", "4\ta\td")
    with pytest.raises(ValueError, match="STS12: all 4 pairs have the same cosine"):
        score(lambda texts: np.ones((len(texts), 2)), [first, flat])
    scores = score(encode, [first, flat], details=True)
    assert scores["subsets"] == {"x": -100.0, "y": None}
    assert scores["subset_mean"] is None


def test_only_present_tasks_are_units_and_none_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no STS files"):
        units(TaskData(tmp_path))
    write_pairs(tmp_path / "STSB" / "test.tsv", "1\ta\tb")
    write_pairs(tmp_path / "STS13" / "headlines.tsv", "1\ta\tb", "2\ta\ta")
    assert list(units(TaskData(tmp_path))) == ["STS13", "STS-B"]


def test_tokenised_text_takes_the_place_of_a_task_where_there_is_some(tmp_path):
    for task in ("STS12", "STS13"):
        write_pairs(tmp_path / "raw" / task / "x.tsv", "1\ta\tb", "2\ta\ta")
    write_pairs(tmp_path / "cut" / "STS12" / "x.tsv", "1\tb\tb", "2\ta\td")
    with pytest.raises(ValueError, match="gone: no STS files"):
        units(TaskData(tmp_path / "raw", tmp_path / "gone"))
    tasks = units(TaskData(tmp_path / "raw", tmp_path / "cut"))
    assert {name: unit(encode)["spearman"] for name, unit in tasks.items()} == {"STS12": -100.0, "STS13": 100.0}


def test_sts_b_and_sick_are_read_in_their_published_files(tmp_path):
    for name, content in (
        ("STSB/sts-test.csv",
         'cap\tMSRvid\t2012\t0001\t5.0\tA "dog.\tA dog.\ncap\tMSRvid\t2012\t0002\t1\tMen.\tCats.\n'),
        ("SICK/SICK_test_annotated.txt",
         "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
         "6\tA dog\tA dog\t5\tENTAILMENT\n7\tMen\tCats\t1.2\tNEUTRAL\n"),
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(content)
    read = units(TaskData(tmp_path))

    def by_length(texts: list[str]) -> np.ndarray:
        return np.array([[len(text), text.count("a"), 1.0] for text in texts])

    assert [read[name](by_length)["grades"] for name in ("STS-B", "SICK-R")] == [[5.0, 1.0], [5.0, 1.2]]


def test_the_final_period_is_promptberts():
    texts = ["a dog", "a dog.", "why?", 'he said "no"', "it's the dogs'", "wow!", ""]
    assert [with_final_period(text) for text in texts] == ["a dog.", *texts[1:5], "wow!.", ""]
