"""The loop and its rival of dictionaries answer alike, so that their costs may be compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from actors.algorithms.partition import by_first_row
from actors.artifacts.groups import Groups
from conf import schema
from conf.load import compose
from jobs.benches import loop_growth
from jobs.benches.loop_growth import Graph, is_the_papers, measure, ours, pool_of
from jobs.benches.loop_rival import Dictionaries, rival


@given(
    st.integers(2, 40), st.integers(1, 5), st.integers(1, 8), st.integers(1, 30), st.integers(1, 5), st.integers(0, 3),
    st.integers(0, 9999),
)  # fmt: skip
def test_two_ways_of_writing_it_answer_alike(
    documents: int, k: int, w: int, budget: int, groups_scored: int, tau_switch: int, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    group_of = by_first_row(draw.integers(0, max(1, documents // 3), documents))
    groups = Groups(group_of, np.concatenate([[0], np.cumsum(np.bincount(group_of))]), np.argsort(group_of, kind="stable"))
    graph = Graph(draw.integers(-1, documents, (documents, k)).astype(np.int32), groups)
    pool = draw.permutation(documents)[: draw.integers(0, documents + 1)].tolist()
    scores = [draw.permutation(count).astype(float).tolist().__getitem__ for count in (documents, groups.count)]
    loop: dict[str, Any] = {"w": w, "h": w // 2, "budget": budget, "K_g": groups_scored, "tau_switch": tau_switch, "p": 0.6,
                            "alpha": 0.01, "eligible": "candidates", "group_score": "navigator",
                            "sources": {"groups": w - w // 2, "neighbours": 0, "pool": 0}}  # fmt: skip
    found = ours(graph, pool, *scores, loop)
    assert found == rival(Dictionaries.of(graph, groups.count), pool, *scores, loop)
    assert len(found[0]) == len(set(found[0])) <= budget


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> schema.GarenLoop:
    for name, value in (("QUERIES", 3), ("POOL", 200), ("ROUNDS", 2)):
        monkeypatch.setattr(loop_growth, name, value)
    node = compose(()).loop
    assert isinstance(node, schema.GarenLoop) and is_the_papers(node)
    return node


def test_each_side_is_timed_in_every_round(loop: schema.GarenLoop) -> None:
    cost = measure(1500, 16, loop, 0)
    assert len(cost.ours) == len(cost.dictionaries) == len(cost.ratios) == 2
    assert all(milliseconds > 0 for milliseconds in (*cost.ours, *cost.dictionaries))


def test_sides_that_do_not_answer_alike_are_not_compared(loop: schema.GarenLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*arguments: Any) -> tuple[list[int], int]:
        ranking, turns = rival(*arguments)
        return ranking[::-1], turns

    monkeypatch.setattr(loop_growth, "rival", wrong)
    with pytest.raises(ValueError, match="500 documents: the loop and its rival do not answer alike"):
        measure(500, 16, loop, 0)


def test_a_pool_holds_each_document_once_those_around_one_first() -> None:
    ring = ((np.arange(5000)[:, None] + [1, 2, 3]) % 5000).astype(np.int32)
    pool = pool_of(ring, np.random.default_rng(0))
    assert len(pool) == len(set(pool)) and 900 < len(pool) <= 1000
    apart = np.array([[1], [0], *[[n] for n in range(2, 5000)]], np.int32)  # no part has 500 documents
    assert len(pool_of(apart, np.random.default_rng(0))) > 400


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [((), True), (("loop.sources.pool=3",), False), (("loop.eligible=all_scored",), False), (("loop=slidegar",), False),
     (("experiment=explore_only",), True)],
)  # fmt: skip
def test_which_loops_the_rival_knows(overrides: tuple[str, ...], expected: bool) -> None:
    assert is_the_papers(compose(overrides).loop) == expected
