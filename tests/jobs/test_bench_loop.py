"""What bench_loop takes for the cost of the loop."""

from __future__ import annotations

import asyncio

import pytest

from actors.artifacts.queries import Query
from actors.first_stage import Start
from actors.index import Index
from actors.searcher import Searcher
from jobs.bench_loop import Timed, answer, table_roles
from tests import toy

WAITS = 0.3  # seconds


def test_waiting_in_the_first_stage_is_nobodys_cpu_time(toy_index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were it, what is left for the loop would be below zero."""
    begin = Searcher.begin

    async def slow(self: Searcher, query: Query) -> Start:
        await asyncio.sleep(WAITS)
        return await begin(self, query)

    monkeypatch.setattr(Searcher, "begin", slow)
    searcher = Timed(toy_index, toy_index.answering, table_roles(toy_index))
    loop, iteration, first_stage = asyncio.run(answer(searcher, [Query("q1", toy.QUERY, ())]))
    assert 0 < iteration <= loop
    assert 0 < first_stage < 1000 * WAITS
