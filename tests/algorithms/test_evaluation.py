"""Measures against their formulas written out."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from actors.algorithms.evaluation import WHOLE, WITH_CUT, check, evaluate, mean

MEASURES = ["ndcg_cut_10", "recall_100", "map", "recip_rank"]


def run_of(*doc_ids: str) -> dict[str, float]:
    return {doc_id: 1 / rank for rank, doc_id in enumerate(doc_ids, 1)}


def test_one_query_by_hand() -> None:
    # gold a (grade 2) at rank 2 and b (grade 1) at rank 4, c is never found
    found = evaluate({"q": {"a": 2, "b": 1, "c": 1, "x": 0}}, {"q": run_of("x", "a", "y", "b")}, MEASURES)["q"]
    dcg, ideal = 2 / math.log2(3) + 1 / math.log2(5), 2 + 1 / math.log2(3) + 1 / math.log2(4)
    assert found["ndcg_cut_10"] == pytest.approx(dcg / ideal)
    assert found["recall_100"] == pytest.approx(2 / 3)
    assert found["map"] == pytest.approx((1 / 2 + 2 / 4) / 3)
    assert found["recip_rank"] == pytest.approx(1 / 2)


def test_an_unanswered_query_counts_as_zero_and_one_without_gold_does_not_count() -> None:
    qrels = {"found": {"a": 1}, "lost": {"a": 1}, "no gold": {"a": 0}}
    per_query = evaluate(qrels, {"found": run_of("a"), "no gold": run_of("a"), "unknown": run_of("a")}, ["recip_rank"])
    assert per_query == {"found": {"recip_rank": 1.0}, "lost": {"recip_rank": 0.0}}
    assert mean(per_query, ["recip_rank"]) == {"recip_rank": 0.5}


def test_nothing_to_measure() -> None:
    assert evaluate({}, {}, MEASURES) == {}
    assert mean({}, ["map"]) == {"map": 0.0}


@pytest.mark.parametrize("measure", [*WHOLE, *(f"{name}_7" for name in WITH_CUT)])
def test_names_with_and_without_a_cut(measure: str) -> None:
    assert evaluate({"q": {"a": 1}}, {"q": run_of("a", "b")}, [measure])["q"][measure] > 0


def test_no_measure_is_none_too_few() -> None:
    with pytest.raises(ValueError, match="metrics.measures: there is none"):
        check([])


@pytest.mark.parametrize(
    "measure",
    ["ndgc_cut_10", "", "ndcg_cut_x", "map_10", "recip_rank_10", "ndcg_cut", "ndcg_cut_0", "P_05", "P_-1", "gm_map"],
)
def test_an_unknown_measure_is_named(measure: str) -> None:
    """pytrec_eval alone answers some of these with another measure, and ends the process by a segmentation fault on others."""
    with pytest.raises(ValueError, match=f"metrics.measures: '{measure}' is not known"):
        evaluate({"q": {"a": 1}}, {"q": run_of("a")}, [measure])


@given(st.permutations([f"d{i:02d}" for i in range(30)]), st.integers(0, 9))
def test_ranks_decide_and_not_the_ids(ranking: list[str], gold: int) -> None:
    """trec_eval breaks ties by id: the strictly decreasing scores of a run leave it nothing to break."""
    doc_id = ranking[gold]
    found = evaluate({"q": {doc_id: 1}}, {"q": run_of(*ranking)}, ["ndcg_cut_10", "recip_rank"])["q"]
    assert found["recip_rank"] == pytest.approx(1 / (gold + 1))
    assert found["ndcg_cut_10"] == pytest.approx(1 / math.log2(gold + 2))
