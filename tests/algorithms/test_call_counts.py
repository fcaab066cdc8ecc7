"""How often each method asks its models, with the configuration's own parameters: windows of 20 of which 10 stay, budget 100."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from actors.algorithms.loops.dialogue import NEIGHBOURS, POOL, Navigate, NavigateDocuments, Outcome, Pool, Reason, Similarity
from actors.algorithms.loops.methods import METHODS
from conf.load import compose
from tests.algorithms.test_garen import random_graph
from tests.toy import Talk, by

DOCUMENTS, GROUPS, IN_POOL = 800, 300, 200
ASKED_OF = {Navigate: "navigator", NavigateDocuments: "navigator", Similarity: "encoder"}


@functools.cache
def parameters(method: str, *overrides: str) -> dict[str, Any]:
    given = asdict(compose((f"loop={method}", *overrides)).loop)
    return {name: value for name, value in given.items() if name not in ("method", "neighbours")}


def answer(method: str, seed: int, *overrides: str) -> tuple[Outcome, Talk]:
    """One query over a random graph; documents and groups have random scores, and a plan has two steps."""
    random = np.random.default_rng(seed)
    graph = random_graph(random, DOCUMENTS, 16, GROUPS)
    document, group, near = (random.random(size) for size in (DOCUMENTS, GROUPS, (2, DOCUMENTS)))
    steps = ["first", "second"]
    talk = Talk(
        by(document.tolist()),
        lambda number: float(group[number]),
        lambda doc: float(document[doc]),
        steps,
        lambda text, doc: float(near[steps.index(text), doc]),
    )
    docs = random.permutation(DOCUMENTS)[:IN_POOL].tolist()
    return talk(METHODS[method].loop(Pool(docs), graph, (), **parameters(method, *overrides))), talk


def asked(talk: Talk) -> Counter[str]:
    return Counter(type(request).__name__ for turn in talk.turns for request in turn)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", METHODS)
def test_every_method_observes_its_budget_and_asks_the_roles_it_names(method: str, seed: int) -> None:
    outcome, talk = answer(method, seed)
    assert len(outcome.ranking) == len(set(outcome.ranking)) == 100
    assert {ASKED_OF.get(type(request), "reranker") for turn in talk.turns for request in turn} == set(METHODS[method].asks)
    assert len(talk.turns) == sum(turn.asked for turn in outcome.iterations)


def test_retrieve_and_rerank_asks_for_9_windows_of_20() -> None:
    _, talk = answer("retrieve_and_rerank", 0)
    assert asked(talk) == {"Rerank": 9} and [len(window) for window in talk.windows] == [20] * 9


@pytest.mark.parametrize("seed", range(3))
def test_slidegar_asks_for_9_windows_and_takes_60_of_the_pool_and_40_of_the_graph(seed: int) -> None:
    outcome, talk = answer("slidegar", seed)
    sources = Counter(source for turn in outcome.iterations for source in turn.added_from)
    assert asked(talk) == {"Rerank": 9} and [len(window) for window in talk.windows] == [20] * 9
    assert sources == {POOL: 40, NEIGHBOURS: 40} and len(outcome.iterations[0].window) == 20


@pytest.mark.parametrize("seed", range(3))
def test_garen_asks_for_9_windows_and_8_navigations_of_at_most_160_groups(seed: int) -> None:
    outcome, talk = answer("garen", seed)
    groups = [group for navigated in talk.navigated for group in navigated]
    assert asked(talk) == {"Rerank": 9, "Navigate": 8} and [len(window) for window in talk.windows] == [20] * 9
    assert len(groups) == len(set(groups)) <= 160
    assert [len(turn.added) for turn in outcome.iterations] == [10] * 8 + [0]
    assert [turn.explore for turn in outcome.iterations] == [True] * 4 + [False] * 5
    assert len({type(request) for request in talk.turns[0]}) == 2, "both are asked together"


def test_garen_by_votes_and_from_several_sources_asks_for_as_many_windows() -> None:
    assert asked(answer("garen", 0, "loop.group_score=votes")[1]) == {"Rerank": 9}
    outcome, talk = answer("garen", 0, "loop.sources.neighbours=3", "loop.sources.pool=2")
    assert asked(talk) == {"Rerank": 9, "Navigate": 8}
    sources = Counter(min(source, 0) for turn in outcome.iterations for source in turn.added_from)
    assert sources == {0: 40, NEIGHBOURS: 24, POOL: 16}


@pytest.mark.parametrize("seed", range(3))
def test_repair_lets_a_step_choose_windows_6_to_9_alone(seed: int) -> None:
    outcome, talk = answer("repair", seed)
    assert asked(talk) == {"Reason": 9, "Similarity": 4}
    chosen = [number + 1 for number, turn in enumerate(outcome.iterations, 1) if turn.step >= 0]
    assert chosen == [6, 7, 8, 9]
    assert all(NEIGHBOURS not in turn.added_from for turn in outcome.iterations[:4])
    assert any(NEIGHBOURS in turn.added_from for turn in outcome.iterations[4:8])
    kinds = [type(turn[0]) for turn in talk.turns]
    assert kinds == [Reason] * 4 + [Reason, Similarity] * 4 + [Reason]


@pytest.mark.parametrize("seed", range(3))
def test_rgs_asks_for_more_windows(seed: int) -> None:
    outcome, talk = answer("rgs", seed)
    assert set(asked(talk)) == {"Rerank"} and len(talk.windows) > 9
    assert all(len(window) <= 20 for window in talk.windows)


def test_gar_scores_each_document_once_in_7_batches() -> None:
    _, talk = answer("gar", 0)
    assert asked(talk) == {"Score": 7} and [len(batch) for batch in talk.windows] == [16] * 6 + [4]
    assert len({doc for batch in talk.windows for doc in batch}) == 100


def test_documents_weighs_each_neighbour_once_and_no_more_than_all_neighbours_of_a_window() -> None:
    _, talk = answer("documents", 0)
    assert asked(talk) == {"Rerank": 9, "NavigateDocuments": 8}
    weighed = [r.docs for turn in talk.turns for r in turn if isinstance(r, NavigateDocuments)]
    flat = [doc for docs in weighed for doc in docs]
    assert len(flat) == len(set(flat)) and all(len(docs) <= 20 * 16 for docs in weighed)


def test_bm25_asks_nothing() -> None:
    assert not answer("bm25", 0)[1].turns
