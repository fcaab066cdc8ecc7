"""The navigator: judges groups by their summaries. A shell around one judge, the same in a Serve replica and inside a searcher."""

from __future__ import annotations

from collections.abc import Sequence

from actors.judges.build import build_judge
from actors.judges.judge import Ask, Scores
from conf import schema


class Navigator:
    """Navigate(q, G) of Eq. 6, by the judge that the configuration names."""

    def __init__(self, node: schema.Navigator) -> None:
        self._judge = build_judge(node, "navigator")

    async def answer(self, asks: Sequence[Ask]) -> list[Scores]:
        """One value per group of each request; or per document, for the method that weighs documents."""
        return await self._judge.scores(asks)
