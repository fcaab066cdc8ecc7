"""A plan for judges that do not reason: what they take for the best documents says what to look for."""

from __future__ import annotations

from collections.abc import Sequence

from actors.algorithms.sentences import split_sentences
from actors.index import open_index
from actors.judges.judge import Ask


def stand_in_plan(ask: Ask, values: Sequence[float], steps: int) -> list[str]:
    """The first sentence of each of the `steps` documents with the highest values, in their order.

    It stands in for the reasoning steps of REPAIR, which needs a reasoning model, and knows no more than the ranking it comes from.
    """
    corpus = open_index(ask.index).corpus
    best = sorted(range(len(values)), key=lambda i: -values[i])[:steps]
    firsts = (next(iter(split_sentences(corpus.text(ask.rows[i]))), "") for i in best)
    return [sentence for sentence in firsts if sentence]
