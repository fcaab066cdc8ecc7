"""What is asked of a judge and what it answers. A judge decides how relevant documents, or groups, are for a query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

OK = "ok"
FAILED = "failed"
DOCUMENTS, GROUPS = "documents", "groups"


class Ask(NamedTuple):
    """One request of one query. It names all that its answer depends on, so that one judge serves many indexes.

    index, queries: folders of the artifacts; queries is empty where a question was typed. of: what the rows are, documents or
    groups. plan: whether the steps that lead to the order are wanted too. texts: what documents are compared with, if with texts.
    """

    index: str
    query_id: str
    query: str
    rows: list[int]
    of: str = DOCUMENTS
    queries: str = ""
    plan: bool = False
    texts: Sequence[str] = ()


class Scores(NamedTuple):
    """One float per row asked for, NaN where the judge failed; for texts, a row of floats after the other.

    outcome: "ok" or what went wrong. usage: counters such as tokens. steps: of the plan. comparable: whether values of different
    requests are on one scale; those that only stand for an order are not.
    """

    values: list[float]
    outcome: str
    usage: dict[str, int]
    steps: Sequence[str] = ()
    comparable: bool = True


class Judge(Protocol):
    """Answers the requests of several queries in one call, each by itself: an answer never depends on its batch mates."""

    async def scores(self, asks: Sequence[Ask]) -> list[Scores]: ...


def failed(ask: Ask, error: str) -> Scores:
    """What stands in for a judge that cannot be reached: no score, and the ledger says why."""
    return Scores([float("nan")] * (len(ask.rows) * max(1, len(ask.texts))), error, {})


def best_first(rows: Sequence[int], values: Sequence[float]) -> list[int] | None:
    """Rows by value, equal ones in the order they came; None when a value is missing, for then there is no order to be had."""
    if any(math.isnan(value) for value in values):
        return None
    return [row for _, row in sorted(zip(values, rows, strict=True), key=lambda pair: -pair[0])]
