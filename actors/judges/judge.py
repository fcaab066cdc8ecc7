"""What is asked of a judge and what it answers. A judge decides how relevant documents, or groups, are for a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

OK = "ok"
FAILED = "failed"


class Ask(NamedTuple):
    """One request of one query. rows: documents for a reranker, groups for a navigator. index: the index' folder."""

    index: str
    query_id: str
    query: str
    rows: list[int]


class Scores(NamedTuple):
    """One float per row asked for, NaN where the judge failed. outcome: "ok" or what went wrong; usage: counters such as tokens."""

    values: list[float]
    outcome: str
    usage: dict[str, int]


class Judge(Protocol):
    """Answers the requests of several queries in one call, each by itself: an answer never depends on its batch mates."""

    def scores(self, asks: Sequence[Ask]) -> list[Scores]: ...
