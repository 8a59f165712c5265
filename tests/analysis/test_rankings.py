"""Overlap and rank-biased overlap: closed forms, known values, a slow sum over many more ranks."""

import pytest

from cse.analysis.perturbations import PERSISTENCE, agreements, overlap, rank_biased_overlap, shared


def slow(first: list[int], second: list[int], depth: int = 2000) -> float:
    """The definition, (1 - p) sum p^(d-1) A_d, with the last agreement going on for ever."""
    total, last = 0.0, 0.0
    for rank in range(1, depth + 1):
        if rank <= len(first):
            last = len(set(first[:rank]) & set(second[:rank])) / rank
        total += (1 - PERSISTENCE) * PERSISTENCE ** (rank - 1) * last
    return total


@pytest.mark.parametrize(
    ("first", "second"),
    [([1, 2, 3], [1, 2, 3]), ([1, 2, 3, 4], [4, 3, 2, 1]), ([1, 2, 3], [4, 5, 6]), ([1, 2, 3, 4, 5], [1, 9, 3, 2, 8])],
)
def test_rank_biased_overlap_is_its_definition(first: list[int], second: list[int]) -> None:
    assert rank_biased_overlap(first, second) == pytest.approx(slow(first, second), abs=1e-9)


def test_known_values() -> None:
    assert rank_biased_overlap("abcde", "abcde") == pytest.approx(1)
    assert rank_biased_overlap("abc", "xyz") == 0
    assert rank_biased_overlap("ab", "ba") == pytest.approx(0.9)  # nothing at rank 1, all from rank 2 on
    assert (rank_biased_overlap([], []), rank_biased_overlap([1], [])) == (1, 0)
    assert overlap("abc", "cxb") == 2


def test_each_two_lists_are_compared_and_a_list_with_itself_is_1() -> None:
    lists = ["abcd", "abcd", "badc", "wxyz"]
    assert agreements(lists, shared) == [[1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]]
    assert (shared("abcd", "abxy"), shared("abcd", "ab"), shared([], [])) == (0.5, 0.5, 1)
    permuted = 0.1 * (0 + 0.9 + 0.81 * 2 / 3 + 0.729) + 0.9**4  # agreements 0, 1, 2/3, 1, and 1 for ever
    table = agreements(lists, rank_biased_overlap)
    assert table[0] == pytest.approx([1, 1, permuted, 0])
    assert [row[0] for row in table] == pytest.approx(table[0])  # both ways the same
