"""Judgements with seeded errors, on the toy: what is right without errors, and how the errors are drawn."""

from __future__ import annotations

import asyncio
import math
import statistics
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from actors.artifacts import queries
from actors.artifacts.queries import Query
from actors.index import Index
from actors.judges import simulated
from actors.judges.judge import GROUPS, Ask, Scores, best_first
from actors.judges.simulated import SimulatedJudge
from tests import toy

QRELS = {
    "doc 0": 1,
    "doc 4": 3,
    "doc 5": 1,
    "doc 8": 2,
    "doc 1": 0,
    "doc 7": -2,
    "elsewhere": 9,
}  # groups: 0 has 1, 1 has 4, 2 has 2


def judged(folder: Path, qrels: Mapping[str, Mapping[str, int]]) -> str:
    """A folder of queries with these judgements."""
    lines = [(query_id, doc_id, grade) for query_id, grades in qrels.items() for doc_id, grade in grades.items()]
    queries.write(folder, [Query(query_id, toy.QUERY, ()) for query_id in qrels], lines)
    return str(folder)


@pytest.fixture
def ask(toy_index: Index, tmp_path: Path) -> Ask:
    """All twelve documents."""
    return Ask(str(toy_index.folder), "q1", toy.QUERY, list(range(12)), queries=judged(tmp_path, {"q1": QRELS, "q2": QRELS}))


async def towards_y(index: str, query: str) -> np.ndarray:
    return np.array([0, 1], np.float32)


def answer(ask: Ask, noise: float = 0.0, bias: float = 0.0, seed: int = 0, plan_steps: int = 0) -> Scores:
    (scores,) = asyncio.run(SimulatedJudge(noise, bias, seed, plan_steps, towards_y).scores([ask]))
    assert (scores.outcome, scores.usage, scores.comparable) == ("ok", {}, True)
    return scores


def errors(ask: Ask, noise: float = 1.0, seed: int = 0) -> list[float]:
    return [one - other for one, other in zip(answer(ask, noise, seed=seed).values, answer(ask).values, strict=True)]


# --- without errors ---------------------------------------------------------------------------------------------------


def test_a_document_has_its_judgement_over_the_query_s_highest(ask: Ask) -> None:
    assert answer(ask).values == pytest.approx([1 / 3, 0, 0, 0, 1, 1 / 3, 0, 0, 2 / 3, 0, 0, 0])
    assert (best_first(ask.rows, answer(ask).values) or [])[:4] == [4, 8, 0, 5]


def test_a_group_has_its_share_of_the_richest(ask: Ask) -> None:
    assert answer(ask._replace(of=GROUPS, rows=[3, 1, 0, 2])).values == [0, 1, 0.25, 0.5]


def test_a_query_without_judgements_of_its_own_finds_nothing_relevant(ask: Ask) -> None:
    assert answer(ask._replace(query_id="q9")).values == [0.0] * 12
    assert answer(ask._replace(query_id="q9", of=GROUPS, rows=[0, 1])).values == [0.0, 0.0]


@pytest.mark.parametrize("of_none", ["", "empty"])
def test_no_judgements_at_all_is_said(ask: Ask, of_none: str, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    queries.write(folder, [Query("q1", toy.QUERY, ())], [])
    with pytest.raises(ValueError, match="simulated judges answer from relevance judgements and there are none. Use queries"):
        answer(ask._replace(queries=str(folder) if of_none else ""))


def test_bias_goes_from_judgement_to_similarity(ask: Ask) -> None:
    four = ask._replace(rows=[0, 1, 3, 4])  # similarities 0, .6, 1 and 0
    assert answer(four, bias=0.25).values == pytest.approx([0.75 / 3, 0.15, 0.25, 0.75], abs=1e-3)
    assert answer(four, bias=1.0).values == pytest.approx([0, 0.6, 1, 0], abs=1e-3)
    groups = ask._replace(of=GROUPS, rows=[0, 1])  # summaries 1 and .8
    assert answer(groups, bias=0.5).values == pytest.approx([0.5 * 0.25 + 0.5, 0.5 + 0.4], abs=1e-3)


def test_a_plan_when_it_is_asked_for(ask: Ask) -> None:
    assert answer(ask._replace(plan=True), plan_steps=2).steps == [toy.TEXTS[4], toy.TEXTS[8]]
    assert not answer(ask, plan_steps=2).steps


# --- errors -----------------------------------------------------------------------------------------------------------


def test_the_same_seed_errs_the_same_and_another_does_not(ask: Ask) -> None:
    assert answer(ask, 0.3, seed=5) == answer(ask, 0.3, seed=5)
    assert not set(errors(ask, seed=5)) & set(errors(ask, seed=6))


def test_queries_documents_and_groups_have_errors_of_their_own(ask: Ask) -> None:
    four = ask._replace(rows=[0, 1, 2, 3])
    drawn = [answer(other, 1.0).values for other in (four, four._replace(query_id="q2"), four._replace(of=GROUPS))]
    plain = [answer(other).values for other in (four, four._replace(query_id="q2"), four._replace(of=GROUPS))]
    apart = {
        round(one - other, 9)
        for values, without in zip(drawn, plain, strict=True)
        for one, other in zip(values, without, strict=True)
    }
    assert len(apart) == 12


def test_a_row_s_value_depends_on_neither_its_request_nor_its_batch(ask: Ask) -> None:
    judge = SimulatedJudge(0.3, 0.0, 1, 0, towards_y)
    whole = answer(ask, 0.3, seed=1).values
    asks = [ask._replace(rows=rows) for rows in ([7], [3, 0], [11, 7, 4])]
    assert [scores.values for scores in asyncio.run(judge.scores(asks))] == [[whole[row] for row in a.rows] for a in asks]


def test_errors_are_noise_times_a_standard_normal_number(ask: Ask) -> None:
    """Of 200,000 rows: mean, spread, tails and neighbouring rows, each within five standard errors."""
    many = ask._replace(of=GROUPS, query_id="q9", rows=list(range(200_000)))
    drawn = np.array(answer(many, noise=0.5).values) / 0.5
    within = 5 / math.sqrt(len(drawn))
    assert abs(drawn.mean()) < within
    assert abs(drawn.std() - 1) < within / math.sqrt(2)
    for bound in (-2.5, -1.0, 0.0, 1.0, 2.5):
        share = statistics.NormalDist().cdf(bound)
        assert abs((drawn < bound).mean() - share) < within * math.sqrt(share * (1 - share))
    for apart in (1, 2, 10, 16):
        assert abs((drawn[apart:] * drawn[:-apart]).mean()) < within
    assert np.isfinite(drawn).all() and len(np.unique(drawn)) == len(drawn)


def test_errors_of_seeds_and_queries_have_nothing_to_do_with_each_other(ask: Ask) -> None:
    rows = list(range(50_000))

    def drawn(query_id: str, seed: int) -> np.ndarray:
        return np.array(answer(ask._replace(of=GROUPS, query_id=query_id, rows=rows), noise=1.0, seed=seed).values)

    one = drawn("x", 0)
    for other in (drawn("x", 1), drawn("y", 0)):
        assert abs((one * other).mean()) < 5 / math.sqrt(len(rows))


def test_these_numbers_stay_as_they_are(ask: Ask) -> None:
    """SplitMix64's own numbers: of the seed 0, its first outputs."""
    first = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    uniform = [statistics.NormalDist().inv_cdf((x >> 11) * 2.0**-53 + 2.0**-54) for x in first]
    assert simulated._normal(np.uint64(0), [1, 2, 3]).tolist() == pytest.approx(uniform, abs=1e-9)
