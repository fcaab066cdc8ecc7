"""How similar texts are to documents: cosines of their vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from actors.index import open_index
from actors.judges.embedding import Embed
from actors.judges.judge import OK, Ask, Scores


class SimilarityJudge:
    """Embeds the texts of a request as queries and compares them with the corpus' own vectors."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed

    async def scores(self, asks: Sequence[Ask]) -> list[Scores]:
        return [await self._answer(ask) for ask in asks]

    async def _answer(self, ask: Ask) -> Scores:
        texts = np.stack([await self._embed(ask.index, text) for text in ask.texts])
        documents = open_index(ask.index).vectors[ask.rows].astype(np.float32)
        return Scores((texts @ documents.T).ravel().tolist(), OK, {"texts": len(ask.texts)})
