"""What a loop and its searcher say to each other.

A loop is a generator. It yields a tuple of requests that do not depend on each other and is sent a tuple with one answer for each;
it returns an `Outcome`. It never calls a model: a dictionary answers it in a test, Serve replicas answer it in a job.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class Rerank(NamedTuple):
    """Order these documents for the query. Answer: the same rows, best first, or None when the reranker failed."""

    docs: list[int]


class Reason(NamedTuple):
    """Order these documents and tell the plan behind the order. Answer: a `Reasoned`, or None when the reranker failed."""

    docs: list[int]


class Score(NamedTuple):
    """Score these documents one by one, by the reranker. Answer: one float per document, NaN where it failed."""

    docs: list[int]


class Navigate(NamedTuple):
    """Score these groups for the query. Answer: one float per group, NaN where the navigator failed."""

    groups: list[int]


class NavigateDocuments(NamedTuple):
    """Score these documents for the query, by the navigator. Answer: one float per document, NaN where it failed."""

    docs: list[int]


class Similarity(NamedTuple):
    """Compare texts with documents. Answer: for each text one cosine per document, or None when the embedder failed."""

    docs: list[int]
    texts: list[str]


class Reasoned(NamedTuple):
    """A ranking with the plan that led to it; no steps where the reranker gave none."""

    docs: list[int]
    steps: list[str]


Request = Rerank | Reason | Score | Navigate | NavigateDocuments | Similarity
Requests = tuple[Request, ...]
Answer = Any  # each request says what it is answered with
Loop = Generator[Requests, tuple[Answer, ...], "Outcome"]


class CorpusGraph(Protocol):
    """The corpus graph and its groups. Arrays may be memory-mapped and are only read."""

    @property
    def neighbours(self) -> NDArray[np.int32]:
        """[N, k] rows, nearest first, -1 where a document has fewer: N_k(G, d)."""

    @property
    def group_of(self) -> NDArray[np.int32]:
        """[N] group of each document: Omega(d)."""

    def members(self, group: int) -> NDArray[np.int32]:
        """Rows of a group's documents, ascending: C_m."""


@dataclass(frozen=True)
class Pool:
    """R_0, the first stage's ranking of one query, best first, and the score it would give to any other document.

    `score` is None where the first stage has none to give; a group's members outside the pool are then taken by row.
    """

    docs: list[int]
    score: Callable[[list[int]], Sequence[float]] | None = None


POOL, NEIGHBOURS = -1, -2  # in added_from, beside the group numbers


def source_name(source: int) -> str:
    """What brought a document in, in words."""
    return {POOL: "the pool", NEIGHBOURS: "the graph's neighbours"}.get(source, f"group {source}")


@dataclass
class Iteration:
    """One turn of a loop, as the trace keeps it. Documents are rows; the lists of a pair have the same length.

    navigated, eligible: groups, or documents where the method weighs documents. asked: how often the loop yielded in this turn.
    steps, step: the plan of a reasoning reranker and the step that led the expansion, -1 for none.
    """

    window: list[int]
    ranked: list[int] = field(default_factory=list)
    candidates: list[int] = field(default_factory=list)
    votes: list[int] = field(default_factory=list)
    navigated: list[int] = field(default_factory=list)
    navigated_scores: list[float] = field(default_factory=list)
    navigated_from_pool: int = 0
    reused_scores: int = 0
    eligible: list[int] = field(default_factory=list)
    eligible_scores: list[float] = field(default_factory=list)
    explore: bool = False
    added: list[int] = field(default_factory=list)
    added_from: list[int] = field(default_factory=list)
    pool_fill: int = 0  # documents from the pool because the method's own sources ran out
    rerank_failed: bool = False
    steps: list[str] = field(default_factory=list)
    step: int = -1
    asked: int = 1

    def keep_ranking(self, answer: Sequence[int] | None) -> list[int]:
        """Keep the reranker's order of the window, and return it; the window's own order stands when the reranker failed."""
        self.rerank_failed = answer is None
        self.ranked = list(self.window) if answer is None else [int(doc) for doc in answer]
        return self.ranked


@dataclass
class Outcome:
    """A loop's answer: every observed document, best first, and how it came to be."""

    ranking: list[int]
    iterations: list[Iteration]
