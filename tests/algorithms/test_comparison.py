"""Methods on the same queries: means and p by hand and by SciPy, and that no order of anything matters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from actors.algorithms.comparison import compare

# Two runs each of three queries. Means of the queries: ours .4 .6 .8, theirs .3 .3 .6, bad 0 .1 0.
OURS = [{"a": 0.3, "b": 0.6, "c": 0.9}, {"a": 0.5, "b": 0.6, "c": 0.7}]
THEIRS = [{"a": 0.3, "b": 0.3, "c": 0.6}, {"c": 0.6, "b": 0.3, "a": 0.3}]
BAD = [{"a": 0.0, "b": 0.1, "c": 0.0}, {"a": 0.0, "b": 0.1, "c": 0.0}]


def one(**values: Sequence[float]) -> dict[str, list[dict[str, float]]]:
    """One run of each method."""
    return {method: [{f"q{i}": value for i, value in enumerate(column)}] for method, column in values.items()}


def test_means_are_over_queries_and_runs() -> None:
    found = compare({"ours": OURS, "theirs": THEIRS, "bad": BAD}, 0.05)
    assert found["ours"].mean == pytest.approx(0.6)
    assert found["theirs"].mean == pytest.approx(0.4)
    assert found["bad"].mean == pytest.approx(0.1 / 3)
    assert [found[m].rival for m in ("ours", "theirs", "bad")] == ["theirs", "ours", "ours"]


def test_std_is_over_the_means_of_the_runs() -> None:
    runs = [{"a": 0.1, "b": 0.3}, {"a": 0.5, "b": 0.3}, {"a": 0.6, "b": 0.6}]  # means .2 .4 .6
    found = compare({"ours": runs, "once": runs[:1]}, 0.05)
    assert found["ours"].std == pytest.approx(0.2), "n - 1: sqrt((.04 + 0 + .04) / 2)"
    assert found["once"].std == 0.0


def test_p_by_hand_over_queries_that_are_means_of_their_runs() -> None:
    """Differences .1 .3 .2: mean .2, standard error .1 / sqrt 3, so t = 2 sqrt 3 with 2 degrees of freedom."""
    found = compare({"ours": OURS, "theirs": THEIRS}, 0.05)
    t = 2 * math.sqrt(3)
    assert found["ours"].p == pytest.approx(1 - t / math.sqrt(2 + t * t))  # the two tails of Student's t, closed for 2
    assert found["ours"].p == found["theirs"].p == pytest.approx(0.0741799, abs=1e-6)


def test_only_the_best_is_marked_and_only_below_the_level() -> None:
    values = one(best=[0.9, 0.8, 0.95, 0.7], next=[0.5, 0.45, 0.5, 0.35], last=[0.1, 0.0, 0.1, 0.0])
    found = compare(values, 0.05)
    assert found["best"].p == pytest.approx(stats.ttest_rel([0.9, 0.8, 0.95, 0.7], [0.5, 0.45, 0.5, 0.35]).pvalue)
    assert found["best"].p < 0.001 and found["last"].p < 0.05 and found["next"].p == found["best"].p
    assert [m for m in found if found[m].significant] == ["best"]
    assert not compare(values, found["best"].p)["best"].significant, "p is to lie below the level"
    assert compare(values, found["best"].p * 1.001)["best"].significant


def test_a_method_alone_has_no_rival() -> None:
    (found,) = compare({"ours": OURS}, 0.05).values()
    assert (found.rival, found.p, found.significant) == ("", 1.0, False)


def test_equal_methods_do_not_differ() -> None:
    values = [0.1, 0.2, 0.7]
    for other in (values, [value + 1e-15 for value in values]):
        for found in compare(one(ours=values, theirs=other), 1.0).values():
            assert (found.p, found.significant) == (1.0, False)


def test_the_same_difference_everywhere_is_no_chance() -> None:
    found = compare(one(ours=[0.2, 0.5, 0.9], theirs=[0.1, 0.4, 0.8]), 0.05)
    assert (found["ours"].p, found["ours"].significant) == (0.0, True)
    assert (found["theirs"].p, found["theirs"].significant) == (0.0, False)


def test_one_query_proves_nothing() -> None:
    assert [(f.p, f.significant) for f in compare(one(ours=[0.9], theirs=[0.1]), 0.05).values()] == [(1.0, False)] * 2


@pytest.mark.parametrize("other", [[{"a": 1.0, "b": 1.0}], [{"a": 1.0, "b": 1.0, "d": 1.0}], [OURS[0], {"a": 1.0}]])
def test_different_queries_are_refused(other: Sequence[Mapping[str, float]]) -> None:
    with pytest.raises(ValueError, match="compared on the same queries and these runs have different ones"):
        compare({"ours": OURS, "theirs": other}, 0.05)


def test_of_equally_good_rivals_the_order_of_methods_chooses_none() -> None:
    values = one(ours=[0.9, 0.9, 0.6], b=[0.25, 0.5, 0.75], a=[0.75, 0.5, 0.25])
    assert compare(values, 0.05) == compare(dict(reversed(values.items())), 0.05)


VALUES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1), min_size=4, max_size=4)


@settings(max_examples=40)
@given(st.lists(st.lists(VALUES, min_size=2, max_size=2), min_size=1, max_size=4), st.permutations(range(4)), st.randoms())
def test_the_order_of_queries_and_methods_changes_nothing(tables: list, order: list[int], draw) -> None:  # type: ignore[no-untyped-def, type-arg]
    runs = {f"m{i}": [dict(zip("abcd", run, strict=True)) for run in table] for i, table in enumerate(tables)}
    methods = draw.sample(list(runs), len(runs))
    other = {m: [{"abcd"[i]: run["abcd"[i]] for i in order} for run in runs[m]] for m in methods}
    found = compare(runs, 0.05)
    assert compare(other, 0.05) == found
    best = max(each.mean for each in found.values())
    for each in found.values():
        assert 0 <= each.p <= 1 and each.std >= 0
        assert each.mean == best or not each.significant
