"""What is asked of dense retrieval and what it answers; and the search itself, beside the model that makes the query's vector."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from actors.algorithms import dense
from actors.artifacts.lists import Lists, open_lists
from actors.index import open_index
from actors.judges.embedding import Embed
from actors.judges.judge import OK

OPEN_LISTS = 8  # as many as indexes


class Find(NamedTuple):
    """One query. index: folder. lists: folder of inverted lists over the same embeddings, of which `probes` are searched;
    empty: every document is compared. depth: documents that are wanted."""

    index: str
    lists: str
    query: str
    excluded: tuple[int, ...]
    depth: int
    probes: int


class Found(NamedTuple):
    """rows int32 and scores float64, best first, equal scores by row; vector: the query's, float32 [d], for scoring any other
    document. outcome: "ok" or what went wrong."""

    rows: NDArray[np.int32]
    scores: NDArray[np.float64]
    vector: NDArray[np.float32]
    outcome: str


def not_found(find: Find, error: str) -> Found:
    """What stands in for a finder that cannot be reached: nothing, and the ledger says why."""
    return Found(np.empty(0, np.int32), np.empty(0), np.empty(0, np.float32), error)


class Finder:
    """Embeds queries and finds their nearest documents. Queries that come together share one pass over the vectors."""

    def __init__(self, embed: Embed, gpu: bool) -> None:
        """gpu: whether this process has one, for the vectors to lie on."""
        self._embed, self._gpu = embed, gpu
        self._thread = ThreadPoolExecutor(1, "finder")  # one search at a time, and the event loop goes on answering

    async def find(self, asked: Sequence[Find]) -> list[Found]:
        """One answer for each query; none depends on the others."""
        vectors = await asyncio.gather(*(self._embed(find.index, find.query) for find in asked))
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._search, asked, vectors)

    def _search(self, asked: Sequence[Find], vectors: Sequence[NDArray[np.float32]]) -> list[Found]:
        alike: dict[tuple[str, str, int, int], list[int]] = {}
        for number, find in enumerate(asked):
            alike.setdefault((find.index, find.lists, find.depth, find.probes), []).append(number)
        found: dict[int, Found] = {}
        for (index, lists, depth, probes), numbers in alike.items():
            queries, excluded = [vectors[n] for n in numbers], [asked[n].excluded for n in numbers]
            if lists:
                ranked = dense.probed(_lists(lists), queries, depth, excluded, probes)
            elif self._gpu:
                ranked = _on_gpu(index).search(queries, depth, excluded)
            else:
                ranked = dense.exact(open_index(index).vectors, queries, depth, excluded)
            found |= {n: Found(*one, vectors[n], OK) for n, one in zip(numbers, ranked, strict=True)}
        return [found[number] for number in range(len(asked))]


@functools.lru_cache(maxsize=OPEN_LISTS)
def _lists(folder: str) -> Lists:
    return open_lists(Path(folder))


@functools.lru_cache(maxsize=1)
def _on_gpu(index: str) -> dense.OnGpu:
    return dense.OnGpu(open_index(index).vectors)
