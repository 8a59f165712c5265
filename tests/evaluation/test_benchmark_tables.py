"""Tables of results: columns, missing sets, published rows and seeds, each from records made by hand."""

from cse.evaluation import sts
from cse.evaluation.results import ModelRecord, seed_lines, table, warnings
from cse.evaluation.tasks import find_task

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
