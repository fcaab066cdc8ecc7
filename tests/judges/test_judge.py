"""What judges and those who ask them share: an order from values, and what stands in for an answer."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from actors.judges.judge import Ask, best_first, failed

NAN = math.nan


def test_best_first_and_equal_ones_as_they_came() -> None:
    assert best_first([7, 3, 1, 9], [0.5, 0.9, 0.5, 0.9]) == [3, 9, 7, 1]


def test_no_order_without_all_values() -> None:
    assert best_first([1, 2], [0.5, NAN]) is None and best_first([1], [NAN]) is None


def test_a_judge_that_answers_for_other_rows_is_not_believed() -> None:
    for values in ([0.5], [0.5, 0.4, 0.3]):
        with pytest.raises(ValueError):
            best_first([1, 2], values)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_an_order_is_the_rows_again(values: list[int]) -> None:
    rows = list(range(len(values)))[::-1]
    docs = best_first(rows, [float(value) for value in values])
    assert docs is not None and sorted(docs) == sorted(rows)
    by_row = dict(zip(rows, values, strict=True))
    assert [by_row[row] for row in docs] == sorted(values, reverse=True)
    assert all(
        rows.index(one) < rows.index(other) for one, other in zip(docs, docs[1:], strict=False) if by_row[one] == by_row[other]
    )


@pytest.mark.parametrize(("texts", "values"), [((), 3), (("a",), 3), (("a", "b"), 6)])
def test_what_stands_in_has_a_value_for_all_that_was_asked(texts: tuple[str, ...], values: int) -> None:
    scores = failed(Ask("/index", "q", "text", [4, 5, 6], texts=texts), "failed: X")
    assert len(scores.values) == values and all(map(math.isnan, scores.values))
    assert (scores.outcome, scores.usage, scores.steps) == ("failed: X", {}, ())
