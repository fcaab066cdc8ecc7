"""The encoder: compares texts with documents. A shell like the reranker's, around the embedding model of the index."""

from __future__ import annotations

from collections.abc import Sequence

from actors.judges.judge import Ask, Judge, Scores
from actors.judges.replay import ReplayJudge
from actors.judges.similarity import SimilarityJudge
from conf import schema


class Encoder:
    """sim(s, d) of REPAIR, by the model that embedded the corpus."""

    def __init__(self, reranker: schema.Reranker) -> None:
        """reranker: where it is a replay, the similarities are replayed with it."""
        replayed = isinstance(reranker, schema.ReplayJudge)
        self._judge: Judge = ReplayJudge(reranker.path, "encoder", reranker.missing) if replayed else SimilarityJudge()

    async def answer(self, asks: Sequence[Ask]) -> list[Scores]:
        """One cosine per text and document of each request, the first text's documents first."""
        return await self._judge.scores(asks)
