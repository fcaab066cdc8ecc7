"""What a judge reads of a row: a document's text, or a group's summary."""

from __future__ import annotations

from actors.index import open_index
from actors.judges.judge import DOCUMENTS, Ask


def texts_of(ask: Ask) -> list[str]:
    """The texts of the rows of a request, in their order."""
    index = open_index(ask.index)
    if ask.of == DOCUMENTS:
        return [index.corpus.text(row) for row in ask.rows]
    return [index.summaries[group].text for group in ask.rows]
