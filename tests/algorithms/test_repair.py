"""REPAIR by hand: which step, which windows, which documents; its properties; and the same method written a second time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from actors.algorithms.loops.dialogue import NEIGHBOURS, POOL, Answer, Outcome, Pool, Reason, Reasoned, Request, Similarity
from actors.algorithms.loops.repair import base_reward, best_step, consistency_reward, repair
from tests import toy
from tests.toy import Graph, Talk, by, small

PAPER = {
    "w": 20,
    "h": 10,
    "budget": 100,
    "first_adaptive": 6,
    "last_adaptive": 9,
    "base_weight": 1.0,
    "consistency_weight": 1.0,
}
SMALL = PAPER | {"w": 2, "h": 1, "first_adaptive": 2}
ORE, RUST = "find the ore", "find the rust"
DIRECTION = {ORE: np.array([1.0, 0.0]), RUST: np.array([0.0, 1.0])}


@dataclass
class Planned(Talk):
    """A talk whose plan may depend on the window, and whose embedder may fail."""

    plan: Callable[[list[int]], Sequence[str]] | None = None
    embeds: Callable[[list[int]], bool] = lambda docs: True

    def _answer(self, request: Request) -> Answer:
        if isinstance(request, Similarity) and not self.embeds(request.docs):
            return None
        answer = super()._answer(request)
        return Reasoned(answer.docs, list(self.plan(request.docs))) if self.plan and isinstance(answer, Reasoned) else answer

    @property
    def compared(self) -> list[Similarity]:
        return [r for requests in self.turns for r in requests if isinstance(r, Similarity)]


def run(graph: Graph, docs: list[int], talk: Talk | None = None, excluded: tuple[int, ...] = (), **changed: Any) -> Outcome:
    return (talk or Talk())(repair(Pool(docs), graph, excluded, **(SMALL | changed)))


def near(table: Mapping[str, Mapping[int, float]]) -> Callable[[str, int], float]:
    """Similarities by a table; 0 for what it does not hold."""
    return lambda text, doc: table.get(text, {}).get(doc, 0.0)


# --- the twelve documents ---------------------------------------------------------------------------------------------


def the_toy(steps: Sequence[str], **changed: Any) -> tuple[Outcome, Talk]:
    talk = Talk(by(toy.DOCUMENT_SCORE), steps=steps, similarity=lambda text, doc: float(toy.VECTORS[doc] @ DIRECTION[text]))
    parameters = PAPER | {"w": 4, "h": 2, "budget": 8, "first_adaptive": 2} | changed
    return talk(repair(toy.pool(), Graph(toy.NEIGHBOURS, toy.GROUP_OF), (), **parameters)), talk


def test_the_toy_from_the_first_window_to_the_answer() -> None:
    outcome, talk = the_toy([ORE, RUST])
    first, second, last = outcome.iterations

    # Window 0 3 1 6 is ranked 0 6 3 1; 0 and 6 stay, with vectors (1, 0) and (0.6, 0.8). No window came before, so that both steps
    # are as consistent: 0.5. Base: ore -(s(1) + s(.6)) / 2 = -(.7311 + .6457) / 2 = -.6884; rust -(s(0) + s(.8)) / 2 =
    # -(.5 + .6900) / 2 = -.5950. Rust lacks more.
    assert (first.window, first.ranked, first.steps, first.step, first.asked) == ([0, 3, 1, 6], [0, 6, 3, 1], [ORE, RUST], 1, 2)
    # Candidates: the pool's 8 and 9, neighbour 4 of 0 (its 1 was dropped just now), neighbour 7 of 6 (its 9 is there already).
    # Rust: 7 has 1, 9 has .6, 8 and 4 have 0.
    assert (first.added, first.added_from) == ([7, 9], [NEIGHBOURS, POOL])

    # Window 0 6 7 9 stays in this order; 0 and 6 stay. Base as before. Window 1 had 0 above 6: gamma = 1 and 0, P(0 > 6) = .7311.
    # Ore (1 and .6) has 0 above 6 too: .7311. Rust (0 and .8) has 6 above 0: .2689. Ore .0427, rust -.3261.
    assert (second.window, second.ranked, second.step) == ([0, 6, 7, 9], [0, 6, 7, 9], 0)
    # 8 was left in the pool and 4 is a neighbour of 0; both are as near to ore, and the pool's comes first.
    assert (second.added, second.added_from) == ([8, 4], [POOL, NEIGHBOURS])

    # Eight documents are observed: the last rerank, with nothing to choose.
    assert (last.window, last.step, last.added, last.asked) == ([0, 6, 8, 4], -1, [], 1)
    assert talk.turns == [
        (Reason([0, 3, 1, 6]),),
        (Similarity([0, 6, 8, 9, 4, 7], [ORE, RUST]),),
        (Reason([0, 6, 7, 9]),),
        (Similarity([0, 6, 8, 4], [ORE, RUST]),),
        (Reason([0, 6, 8, 4]),),
    ]
    assert outcome.ranking == [4, 8, 0, 6, 7, 9, 3, 1]  # the last window, then the fallen, latest first


def test_each_reward_by_itself() -> None:
    def chosen(steps: Sequence[str], **changed: Any) -> list[int]:
        return [turn.step for turn in the_toy(steps, **changed)[0].iterations]

    assert chosen([ORE, RUST], consistency_weight=0.0) == [1, 1, -1]
    # without base both are equal at first, and the first is taken: the window just ranked does not speak for itself
    assert chosen([RUST, ORE], base_weight=0.0) == [0, 1, -1]
    # in the second window rust has .0934 more of base and .4621 less of consistency: its weight turns the choice at 4.95
    assert chosen([ORE, RUST], base_weight=4.0) == [1, 0, -1]
    assert chosen([ORE, RUST], base_weight=6.0) == [1, 1, -1]


def test_base_is_less_the_more_similar_the_kept_are() -> None:
    assert base_reward([0.0, 0.0]) == -0.5
    assert base_reward([math.log(3), -math.log(3)]) == pytest.approx(-0.5)  # 3/4 and 1/4
    assert base_reward([math.log(3), 0.0]) == pytest.approx(-0.625)
    assert base_reward([]) == 0.0


def test_consistency_is_the_mean_preference_for_the_step_s_pairs() -> None:
    gamma = Counter({(7, 8): 2, (8, 9): 3, (9, 8): 2})
    # the step's order 8 7 9: (8 7) e^0 / (e^0 + e^2) = .1192, (8 9) e^3 / (e^3 + e^2) = .7311, (7 9) never compared: .5
    assert consistency_reward([0.2, 0.9, 0.1], [7, 8, 9], gamma) == pytest.approx((0.1192 + 0.7311 + 0.5) / 3, abs=1e-4)
    assert consistency_reward([0.3, 0.3, 0.3], [7, 8, 9], gamma) == pytest.approx((0.8808 + 0.5 + 0.7311) / 3, abs=1e-4)  # 7 8 9
    assert consistency_reward([0.3], [7], gamma) == consistency_reward([], [], gamma) == 0.5
    assert len(gamma) == 3  # asking leaves no trace


def test_the_first_of_equal_steps_is_chosen_whatever_the_rounding() -> None:
    assert best_step([-1.0, 0.1 + 0.2, 0.3, 0.6 / 2, 0.0]) == best_step([-1.0, 0.3, 0.1 + 0.2]) == 1


def test_preferences_add_up_over_the_earlier_windows() -> None:
    # Four windows had 0 above 1; the last of them was just ranked, so that gamma = 3: P(0 > 1) = .9526. Step a has 0 above 1, step
    # b 1 above 0, and consistency is .9526 - .0474 = .9051 in favour of a (.7616 with two windows, .9640 with four). Base is
    # (s(.5) + s(0) - s(-.5) - s(.5)) / 2 = .0612 in favour of b, for each unit of its weight.
    table = near({"a": {0: 0.5, 1: 0.0}, "b": {0: -0.5, 1: 0.5}})
    graph = small("a" * 9, {})

    def chosen(base_weight: float) -> int:
        talk = Talk(steps=["a", "b"], similarity=table)
        outcome = run(graph, list(range(9)), talk, w=3, h=2, first_adaptive=5, last_adaptive=5, base_weight=base_weight)
        assert len(talk.turns) - len(talk.windows) == 1
        return outcome.iterations[3].step

    assert chosen(14.6) == 0  # .8939
    assert chosen(15.2) == 1  # .9307


def test_a_window_that_failed_has_no_preferences() -> None:
    # similarities of the toy: without the first window's order base decides, with it consistency does
    table = near({"a": {0: 1.0, 1: 0.6}, "b": {0: 0.0, 1: 0.8}})
    talk = Talk(lambda docs: None if docs == [0, 1, 2] else docs, steps=["a", "b"], similarity=table)
    outcome = run(small("a" * 5, {}), [0, 1, 2, 3, 4], talk, w=3, h=2)
    assert [turn.rerank_failed for turn in outcome.iterations] == [True, False, False]
    assert [turn.step for turn in outcome.iterations] == [-1, 1, -1]
    assert run(small("a" * 5, {}), [0, 1, 2, 3, 4], Talk(steps=["a", "b"], similarity=table), w=3, h=2).iterations[1].step == 0


# --- which windows, which documents -----------------------------------------------------------------------------------


def test_a_hundred_documents_are_nine_windows_and_the_last_four_are_chosen_by_a_step() -> None:
    # what a step chooses are neighbours, which are all more similar than the pool
    graph = Graph((16 * np.arange(2000)[:, None] + 300 + np.arange(16)).astype(np.int32) % 2000, np.zeros(2000, np.int32))
    talk = Planned(steps=["a", "b"], similarity=lambda text, doc: doc / 2000)
    outcome = talk(repair(Pool(list(range(200))), graph, (), **PAPER))
    assert [len(window) for window in talk.windows] == [20] * 9 and len(set(outcome.ranking)) == len(outcome.ranking) == 100
    assert [type(request) for (request,) in talk.turns] == [Reason] * 5 + [Similarity, Reason] * 4
    assert [turn.asked for turn in outcome.iterations] == [1, 1, 1, 1, 2, 2, 2, 2, 1]
    assert [turn.step for turn in outcome.iterations] == [-1, -1, -1, -1, 0, 0, 0, 0, -1]
    assert [set(turn.added_from) for turn in outcome.iterations] == [{POOL}] * 4 + [{NEIGHBOURS}] * 4 + [set()]
    assert all(turn.steps == ["a", "b"] for turn in outcome.iterations)
    assert all(len(request.docs) == len(set(request.docs)) >= 10 + 10 + 100 for request in talk.compared)


@pytest.mark.parametrize(
    ("w", "h", "budget"), [(20, 10, 100), (20, 10, 95), (20, 5, 100), (10, 9, 30), (7, 3, 50), (5, 0, 23), (4, 2, 3)]
)
def test_windows_are_one_and_what_the_budget_holds_of_w_less_h(w: int, h: int, budget: int) -> None:
    talk = Planned(steps=["a"], similarity=lambda text, doc: math.sin(doc))
    graph = Graph((3 * np.arange(999)[:, None] + np.arange(5)).astype(np.int32) % 999, np.zeros(999, np.int32))
    parameters = PAPER | {"w": w, "h": h, "budget": budget, "first_adaptive": 3, "last_adaptive": 4}
    outcome = talk(repair(Pool(list(range(300))), graph, (), **parameters))
    windows = 1 + max(0, math.ceil((budget - w) / (w - h)))
    assert len(talk.windows) == windows and len(set(outcome.ranking)) == len(outcome.ranking) == budget
    assert [t for t, turn in enumerate(outcome.iterations, 1) if turn.step >= 0] == [t for t in (2, 3) if t < windows]


def test_the_nearest_to_the_step_come_in_and_the_pool_keeps_the_others() -> None:
    # Window 0 1 2 keeps 0. Candidates: 3 and 4, the pool's next two, and 7, 6, 5, the neighbours of 0; the step likes 4, then 5.
    # 5 is in the pool too, but it is not its turn: the graph brings it, and the pool does not hold it any more. 3 stays there and
    # comes next, with the graph's 7 where the pool has ended.
    graph = small("a" * 8, {0: [7, 6, 5]})
    table = near({"a": {3: 0.2, 4: 1.0, 7: 0.8, 6: 0.0, 5: 0.9}})
    talk = Planned(steps=["a"], similarity=table)
    outcome = run(graph, [0, 1, 2, 3, 4, 5], talk, w=3, h=1, first_adaptive=2, last_adaptive=2, budget=9)
    assert talk.compared == [Similarity([0, 3, 4, 7, 6, 5], ["a"])]
    assert outcome.iterations[0].added == [4, 5]
    assert outcome.iterations[0].added_from == [POOL, NEIGHBOURS]
    assert talk.windows == [[0, 1, 2], [0, 4, 5], [0, 3, 7], [0, 6]]
    assert [turn.added_from for turn in outcome.iterations[1:]] == [[POOL, NEIGHBOURS], [NEIGHBOURS], []]


def test_what_fell_out_does_not_return() -> None:
    # 1 falls out of the first window; it is 0's neighbour, and the step would like nothing more
    talk = Planned(steps=["a"], similarity=near({"a": {1: 1.0, 3: 0.5}}))
    outcome = run(small("a" * 4, {0: [1, 3]}), [0, 1, 2], talk, budget=3)
    assert talk.windows == [[0, 1], [0, 3]] and outcome.ranking == [0, 3, 1]


def test_the_last_window_takes_what_the_budget_leaves() -> None:
    talk = Planned(steps=["a"], similarity=near({"a": {4: 0.3, 5: 0.9}}))
    outcome = run(small("a" * 6, {0: [4, 5]}), [0, 1, 2, 3], talk, w=3, h=1, budget=4)
    assert talk.compared[0].docs == [0, 3, 4, 5]  # one document is left to take: the pool's next one is one
    assert outcome.iterations[0].added == [5] and len(talk.windows) == 2


def test_without_kept_documents_the_first_step_chooses_of_the_pool() -> None:
    talk = Planned(steps=["a", "b"], similarity=near({"a": {3: 1.0}, "b": {2: 1.0}}))
    outcome = run(small("a" * 5, {0: [4]}), [0, 1, 2, 3], talk, h=0)
    assert talk.windows == [[0, 1], [3, 2]] and outcome.iterations[0].step == 0


# --- what may go wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("talk", "asked"),
    [
        (Planned(), 1),
        (Planned(lambda docs: None, steps=["a"]), 1),
        (Planned(steps=["a"], embeds=lambda docs: False, similarity=lambda text, doc: doc), 2),
    ],
    ids=["no plan", "no ranking", "no similarities"],
)
def test_without_a_step_the_pool_goes_on(talk: Planned, asked: int) -> None:
    outcome = run(small("a" * 8, {0: [7, 6]}), [0, 1, 2, 3], talk, w=3, h=2, budget=4)
    (first, last) = outcome.iterations
    assert (first.added, first.added_from, first.step, first.asked) == ([3], [POOL], -1, asked)
    assert outcome.ranking == [0, 1, 3, 2] and last.asked == 1


def test_a_plan_that_comes_back_is_used_again() -> None:
    talk = Planned(plan=lambda docs: [] if docs == [0, 1] else ["a"], similarity=near({"a": {6: 1.0}}))
    outcome = run(small("a" * 8, {0: [7, 6]}), [0, 1, 2, 3], talk, budget=4)
    assert talk.windows == [[0, 1], [0, 2], [0, 6]]
    assert [turn.step for turn in outcome.iterations] == [-1, 0, -1]


def test_where_the_pool_ends_neighbours_serve() -> None:
    graph = small("a" * 8, {0: [5, 6], 1: [7]})
    ordered = by([1.0, 2.0, 0, 0, 0, 0, 0, 0])
    plain = run(graph, [0, 1, 2, 3], Talk(ordered), w=3, h=2, budget=7, first_adaptive=9)
    # 3 of the pool; then of 1 its 7, before those of 0
    assert [turn.added for turn in plain.iterations] == [[3], [7], [5], [6], []]
    assert [turn.added_from for turn in plain.iterations] == [[POOL], [NEIGHBOURS], [NEIGHBOURS], [NEIGHBOURS], []]
    chosen = run(graph, [0, 1, 2, 3], Talk(ordered, steps=["a"], similarity=lambda text, doc: doc), w=3, h=2, budget=7)
    assert [turn.added for turn in chosen.iterations] == [[7], [6], [5], [3], []]


def test_it_ends_when_nothing_is_left_and_compares_nothing_then() -> None:
    talk = Planned(steps=["a"])
    outcome = run(small("aaa", {0: [1, 2], 1: [0], 2: [0]}), [0, 1], talk)
    assert talk.windows == [[0, 1], [0, 2]] and len(talk.compared) == 1
    assert [turn.asked for turn in outcome.iterations] == [2, 1] and outcome.ranking == [0, 2, 1]


def test_excluded_documents_are_nowhere() -> None:
    talk = Planned(steps=["a"])
    outcome = run(small("a" * 6, {0: [4, 5]}), [0, 1, 2, 3], talk, (1, 4))
    assert sorted(outcome.ranking) == [0, 2, 3, 5]
    assert talk.compared[0].docs == [0, 3, 5]


def test_an_empty_pool_asks_nothing() -> None:
    talk = Talk(steps=["a"])
    assert run(small("aab", {0: [2]}), [], talk) == Outcome([], [])
    assert run(small("aab", {0: [2]}), [0, 1], talk, (0, 1)) == Outcome([], [])
    assert not talk.turns


# --- properties and the second implementation -------------------------------------------------------------------------


@dataclass
class Case:
    """A random corpus and query. Windows fail to be ranked, planned or embedded by the sum of their documents."""

    graph: Graph
    pool: list[int]
    excluded: tuple[int, ...]
    document: list[float]
    near: dict[str, list[float]]
    fails: int
    parameters: dict[str, Any]

    def plan(self, docs: list[int]) -> list[str]:
        return list(self.near)[: (sum(docs) + len(docs)) % (len(self.near) + 1)]

    def ranks(self, docs: list[int]) -> bool:
        return not self.fails or sum(docs) % self.fails != 0

    def embeds(self, docs: list[int]) -> bool:
        return not self.fails or sum(docs) % self.fails != 1

    def answer(self) -> tuple[Outcome, Planned]:
        talk = Planned(
            rerank=lambda docs: by(self.document)(docs) if self.ranks(docs) else None,
            similarity=lambda text, doc: self.near[text][doc],
            plan=self.plan,
            embeds=self.embeds,
        )
        return talk(repair(Pool(list(self.pool)), self.graph, self.excluded, **self.parameters)), talk


def random_case(seed: int) -> Case:
    random = np.random.default_rng(seed)

    def below(high: int) -> int:
        return int(random.integers(high))

    documents = 2 + below(40)
    neighbours = random.integers(-1, documents, (documents, 1 + below(4)))
    neighbours[neighbours == np.arange(documents)[:, None]] = -1
    w = 1 + below(8)
    ties = 3 if below(2) else 10**6  # few values: many equal similarities
    steps = [f"step {i}" for i in range(below(5))]
    return Case(
        Graph(neighbours.astype(np.int32), np.zeros(documents, np.int32)),
        random.permutation(documents)[: below(documents + 1)].tolist(),
        tuple(random.permutation(documents)[: below(documents // 2) if below(3) == 0 else 0].tolist()),
        random.permutation(documents).astype(float).tolist(),
        {step: (random.integers(-ties, ties, documents) / ties).tolist() for step in steps},
        below(5) if below(2) else 0,
        {"w": w, "h": below(w), "budget": 1 + below(40), "first_adaptive": 1 + below(4), "last_adaptive": 2 + below(9),
         "base_weight": [0.0, 1.0, 5.0][below(3)], "consistency_weight": [0.0, 0.5, 1.0][below(3)]},
    )  # fmt: skip


cases = st.integers(0, 10**9).map(random_case)


@settings(max_examples=100)
@given(cases)
def test_everything_observed_was_shown_and_is_in_the_answer_once(case: Case) -> None:
    outcome, talk = case.answer()
    w, h, budget = (case.parameters[name] for name in ("w", "h", "budget"))
    shown = {doc for window in talk.windows for doc in window}
    known = set(range(len(case.document))) - set(case.excluded)
    assert sorted(outcome.ranking) == sorted(shown)
    assert all(len(window) == len(set(window)) <= w for window in talk.windows)
    asked = shown | {doc for request in talk.compared for doc in request.docs}
    assert asked <= known
    assert len(shown) <= budget
    if outcome.iterations and len(shown) < budget:  # it ends early only where nothing can be reached
        kept = outcome.iterations[-1].ranked[:h]
        assert known & {*case.pool, *case.graph.neighbours[kept].ravel().tolist()} <= shown


@settings(max_examples=100)
@given(cases)
def test_the_trace_says_what_happened(case: Case) -> None:
    outcome, talk = case.answer()
    first, last = case.parameters["first_adaptive"], case.parameters["last_adaptive"]
    assert sum(turn.asked for turn in outcome.iterations) == len(talk.turns)
    assert all(len(requests) == 1 for requests in talk.turns) and len(talk.windows) == len(outcome.iterations)
    for window, turn in enumerate(outcome.iterations, 2):  # the window that this turn prepares
        assert turn.asked == 1 or (first <= window <= last and turn.steps)
        assert -1 <= turn.step < len(turn.steps) and (turn.step == -1 or turn.asked == 2)
        assert len(turn.added) == len(turn.added_from)
        assert all(doc in case.pool for doc, source in zip(turn.added, turn.added_from, strict=True) if source == POOL)


@pytest.mark.parametrize("block", range(2))
def test_a_second_implementation_does_the_same(block: int) -> None:
    chosen = 0
    for seed in range(block * 500, block * 500 + 500):
        case = random_case(seed)
        outcome, talk = case.answer()
        ranking, turns = plain_repair(case)
        assert [turn.window for turn in turns] == talk.windows, seed
        assert [turn.compared for turn in turns if turn.compared] == [set(request.docs) for request in talk.compared], seed
        for mine, its in zip(turns, outcome.iterations, strict=True):
            assert (mine.ranked, mine.step, mine.added) == (its.ranked, its.step, its.added), seed
            assert mine.of_pool == its.added_from.count(POOL), seed
        assert ranking == outcome.ranking, seed
        chosen += sum(turn.step > 0 for turn in turns)
    assert chosen > 50  # not only first steps


@dataclass
class Turn:
    window: list[int]
    ranked: list[int]
    compared: set[int] = field(default_factory=set)
    step: int = -1
    added: list[int] = field(default_factory=list)
    of_pool: int = 0


def plain_repair(case: Case) -> tuple[list[int], list[Turn]]:
    """The method as plainly as possible: whole rankings are remembered, and everything is counted anew where it is needed."""
    w, h, budget, first, last, base, consistency = case.parameters.values()
    near = {d: [n for n in row if n >= 0] for d, row in enumerate(case.graph.neighbours.tolist())}
    left = [d for d in case.pool if d not in case.excluded]
    observed: list[int] = []
    believed: list[list[int]] = []
    turns: list[Turn] = []
    window = left[: min(w, budget)]
    while window:
        observed += [d for d in window if d not in observed]
        left = [d for d in left if d not in observed]
        ranks = case.ranks(window)
        turn = Turn(window, sorted(window, key=lambda d: case.document[d], reverse=True) if ranks else window)
        turns.append(turn)
        room = min(w - h, budget - len(observed))
        if room == 0:
            break
        kept = turn.ranked[:h]
        line = left[:room]
        for parent in kept:
            for d in near[parent]:
                if d not in observed and d not in case.excluded and d not in line:
                    line.append(d)
        plan = case.plan(window) if ranks else []
        if plan and line and first <= len(turns) + 1 <= last:
            turn.compared = {*kept, *line}
            if case.embeds(kept + line):
                rewards = [_reward(case.near[step], kept, believed, base, consistency) for step in plan]
                turn.step = next(i for i, reward in enumerate(rewards) if reward > max(rewards) - 1e-11)
                step = case.near[plan[turn.step]]
                line = [d for _, _, d in sorted((-step[d], place, d) for place, d in enumerate(line))]
        turn.added = line[:room]
        turn.of_pool = sum(d in left[:room] for d in turn.added)
        if ranks:
            believed.append(turn.ranked)
        window = kept + turn.added if turn.added else []
    final: list[int] = []
    for turn in reversed(turns):  # each document stands where it was seen last
        final += [d for d in turn.ranked if d not in final]
    return final, turns


def _reward(step: list[float], kept: list[int], believed: list[list[int]], base: float, consistency: float) -> float:
    sigmoids = [math.exp(step[d]) / (math.exp(step[d]) + 1) for d in kept]
    agreement, pairs = 0.0, 0
    for p in kept:
        for q in kept:
            if step[p] > step[q] or (step[p] == step[q] and kept.index(p) < kept.index(q)):
                together = [order for order in believed if p in order and q in order]
                above = sum(order.index(p) < order.index(q) for order in together)
                below = len(together) - above
                agreement += math.e**above / (math.e**above + math.e**below)
                pairs += 1
    return base * (-sum(sigmoids) / len(sigmoids) if kept else 0) + consistency * (agreement / pairs if pairs else 0.5)
