"""The reranker: judges documents. A shell around one judge, the same in a Serve replica and inside a searcher."""

from __future__ import annotations

from collections.abc import Sequence

from actors.engines.build import Place
from actors.judges.build import build_judge
from actors.judges.judge import Ask, Scores
from conf import schema


class Reranker:
    """Rerank(q, W) of Eq. 1, by the judge that the configuration names."""

    def __init__(self, node: schema.Reranker, place: Place | None) -> None:
        """place: for the judge's engine; None where there is none, as in a notebook."""
        self._node, self._place = node, place

    async def start(self) -> None:
        """Load what the judge needs. Raises BadInput or ValueError when it cannot answer."""
        self._judge = await build_judge(self._node, "reranker", self._place)

    async def answer(self, asks: Sequence[Ask]) -> list[Scores]:
        """One value per document of each request; sorted by them, best first, the documents are ranked."""
        return await self._judge.scores(asks)
