"""The encoder: compares texts with documents, and finds those nearest to a query. A shell like the reranker's, around the
embedding model of the index."""

from __future__ import annotations

from collections.abc import Sequence

from actors.engines.build import Place
from actors.finder import Find, Finder, Found
from actors.judges.embedding import QueryEmbedder
from actors.judges.judge import Ask, Judge, Scores
from actors.judges.replay import ReplayJudge
from actors.judges.similarity import SimilarityJudge
from conf import schema


class Encoder:
    """sim(s, d) of REPAIR and the dense first stage, by the model that embedded the corpus."""

    def __init__(self, reranker: schema.Reranker, place: Place | None) -> None:
        """reranker: where it is a replay, the similarities are replayed with it."""
        self._reranker, self._place = reranker, place

    async def start(self) -> None:
        """Load what is replayed; a model is loaded for the first index that is asked about."""
        node = self._reranker
        embed = QueryEmbedder(self._place)
        self._judge: Judge = SimilarityJudge(embed)
        self._finder = Finder(embed, gpu=self._place is not None and self._place.num_gpus > 0)
        if isinstance(node, schema.ReplayJudge):
            self._judge = ReplayJudge(node.path, "encoder", node.missing)

    async def answer(self, asks: Sequence[Ask]) -> list[Scores]:
        """One cosine per text and document of each request, the first text's documents first."""
        return await self._judge.scores(asks)

    async def find(self, asked: Sequence[Find]) -> list[Found]:
        """Each query's nearest documents, and its vector: searched here, where the requests of many queries come together."""
        return await self._finder.find(asked)
