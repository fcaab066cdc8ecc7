"""The reranker: judges documents. A shell around one judge, the same in a Serve replica and inside a searcher."""

from __future__ import annotations

from collections.abc import Sequence

from actors.judges.build import build_judge
from actors.judges.judge import Ask, Scores
from conf import schema


class Reranker:
    """Rerank(q, W) of Eq. 1, by the judge that the configuration names."""

    def __init__(self, node: schema.Reranker) -> None:
        self._judge = build_judge(node, "reranker")

    async def answer(self, asks: Sequence[Ask]) -> list[Scores]:
        """One value per document of each request; sorted by them, best first, the documents are ranked."""
        return await self._judge.scores(asks)
