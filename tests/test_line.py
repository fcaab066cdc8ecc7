"""The line to a served role: who shares a call, what is tried again, and what stands in."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest

from actors.judges.judge import Ask, Scores
from actors.line import Line


def ask(number: int) -> Ask:
    return Ask("/index", f"q{number}", "text", [number, number + 1])


class Role:
    """Answers requests with their query ids, as outcomes; fails on request."""

    def __init__(self, fails: Callable[[list[str], int], bool] = lambda ids, attempt: False) -> None:
        self.calls: list[list[str]] = []
        self.at_once = self.most_at_once = 0
        self._fails = fails

    async def __call__(self, asks: list[Ask]) -> list[Scores]:
        ids = [a.query_id for a in asks]
        self.calls.append(ids)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(0)
            if self._fails(ids, self.calls.count(ids)):
                raise ConnectionError("gone")
            return [Scores([], f"answer to {query_id}", {}) for query_id in ids]
        finally:
            self.at_once -= 1


def send(role: Any, count: int, batch_size: int = 16, calls: int = 1, pauses: tuple[float, ...] = (0.0, 0.0)) -> list[str]:
    """Ask for q0, q1, ... at the same time; the outcomes."""
    return [scores.outcome for scores in answers(role, count, batch_size, calls, pauses)]


def answers(role: Any, count: int, batch_size: int = 16, calls: int = 1, pauses: tuple[float, ...] = (0.0, 0.0)) -> list[Scores]:
    async def all_of_them() -> list[Scores]:
        line = Line(role, batch_size, calls)
        line._retries = pauses
        return await asyncio.wait_for(asyncio.gather(*(line(ask(number)) for number in range(count))), 10)

    return asyncio.run(all_of_them())


def test_what_waits_together_shares_a_call() -> None:
    role = Role()
    assert send(role, 5) == [f"answer to q{n}" for n in range(5)]
    assert role.calls == [["q0", "q1", "q2", "q3", "q4"]]


def test_no_more_than_batch_size_in_a_call_and_one_call_after_the_other() -> None:
    role = Role()
    assert send(role, 5, batch_size=2) == [f"answer to q{n}" for n in range(5)]
    assert role.calls == [["q0", "q1"], ["q2", "q3"], ["q4"]] and role.most_at_once == 1


def test_as_many_calls_under_way_as_allowed() -> None:
    role = Role()
    send(role, 9, batch_size=2, calls=3)
    assert role.most_at_once == 3 and len(role.calls) == 5


def test_what_comes_while_a_call_is_under_way_goes_with_the_next() -> None:
    role = Role()

    async def in_two_waves() -> None:
        line = Line(role, 16, 1)
        first = asyncio.ensure_future(line(ask(0)))
        while not role.at_once:
            await asyncio.sleep(0)
        await asyncio.gather(first, line(ask(1)), line(ask(2)))

    asyncio.run(in_two_waves())
    assert role.calls == [["q0"], ["q1", "q2"]]


def test_a_call_is_tried_three_times() -> None:
    role = Role(lambda ids, attempt: attempt < 3)
    assert send(role, 2) == ["answer to q0", "answer to q1"]
    assert role.calls == [["q0", "q1"]] * 3


def test_it_pauses_between_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        paused.append(seconds)
        await real(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    send(Role(lambda ids, attempt: True), 1, pauses=Line(Role(), 1, 1)._retries)
    assert [seconds for seconds in paused if seconds] == [0.5, 2.0]


def test_a_poisoned_request_does_not_take_its_mates_with_it() -> None:
    role = Role(lambda ids, attempt: "q1" in ids)
    assert send(role, 3) == ["answer to q0", "failed: ConnectionError", "answer to q2"]
    assert role.calls[:3] == [["q0", "q1", "q2"]] * 3
    assert sorted(role.calls[3:]) == [["q0"], ["q1"], ["q1"], ["q1"], ["q2"]]


def test_the_line_goes_on_after_a_failure() -> None:
    role = Role(lambda ids, attempt: "q0" in ids)
    assert send(role, 4, batch_size=1) == ["failed: ConnectionError", *(f"answer to q{n}" for n in (1, 2, 3))]


@pytest.mark.parametrize("replies", [[], ["one"], ["one", "two", "three"]])
def test_a_wrong_number_of_replies_is_a_failure_and_nobody_waits_for_ever(replies: list[str]) -> None:
    async def role(asks: list[Ask]) -> list[Scores]:
        return [Scores([], reply, {}) for reply in replies]

    alone = "one" if len(replies) == 1 else None
    assert send(role, 2) == [alone or f"failed: {len(replies)} replies to 1 requests"] * 2


def test_a_cancelled_query_leaves_the_others_their_answers() -> None:
    async def cancelled() -> Scores:
        line = Line(Role(), 16, 1)
        gone, stays = (asyncio.ensure_future(line(ask(number))) for number in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        return await asyncio.wait_for(stays, 10)

    assert asyncio.run(cancelled()).outcome == "answer to q1"


def test_what_stands_in_for_an_answer_has_no_score_for_any_row() -> None:
    (scores,) = answers(Role(lambda ids, attempt: True), 1)
    assert scores.outcome == "failed: ConnectionError" and scores.usage == {}
    assert len(scores.values) == 2 and all(map(math.isnan, scores.values))


def test_without_a_stand_in_the_error_goes_to_those_who_waited_and_the_line_goes_on() -> None:
    role = Role(lambda ids, attempt: "q0" in ids)

    async def all_of_them() -> list[Any]:
        line = Line(role, 2, 1, None)
        return await asyncio.wait_for(asyncio.gather(*(line(ask(n)) for n in range(4)), return_exceptions=True), 10)

    first, mate, *others = asyncio.run(all_of_them())
    assert isinstance(first, ConnectionError) and mate is first
    assert [scores.outcome for scores in others] == ["answer to q2", "answer to q3"]
    assert role.calls == [["q0", "q1"], ["q2", "q3"]], "there are no other attempts"
