"""The navigator: scores groups by their summaries. A shell around one judge, the same inside a Serve replica and
inside a searcher.
"""

from __future__ import annotations

from collections.abc import Sequence

from actors.judges.build import build_judge
from actors.judges.judge import Ask, Judge, Scores
from conf import schema


class Navigator:
    """Judges groups with the judge that the configuration names."""

    def __init__(self, node: schema.Navigator, embeddings: schema.Embeddings, cache: str) -> None:
        self._judge: Judge = build_judge(node, "groups", embeddings, cache)

    def score(self, asks: Sequence[Ask]) -> list[Scores]:
        """Navigate(q, G) of Eq. 6 for each request."""
        return self._judge.scores(asks)
