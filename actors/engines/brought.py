"""Vectors of questions that were brought with those of the documents: looked up by the question's text, for no model is there."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

import numpy as np
from numpy.typing import NDArray

from actors.corpora.brought import question_vectors
from actors.corpora.records import BadInput
from conf import schema

SHOWN = 80  # characters of a question in a message


class BroughtEmbedder:
    """Gives each question its vector."""

    def __init__(self, node: schema.BroughtEmbeddings) -> None:
        """Raises BadInput naming the file when it cannot be used. Without a file there is no vector for any question."""
        self._path = node.queries
        texts, self._vectors = question_vectors(node.queries) if node.queries else ([], np.zeros((0, 0), np.float32))
        self._place = {text: place for place, text in enumerate(texts)}

    @property
    def dimension(self) -> int:
        """d of the questions' vectors, 0 where there are none."""
        return int(self._vectors.shape[1])

    def check(self, questions: Sequence[str]) -> None:
        """Raises BadInput when a question has no vector."""
        lacking = [text for text in questions if text.strip() not in self._place]
        if lacking:
            raise self._missing(lacking[0], len(lacking), len(questions))

    def embed_documents(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], dict[str, int]]:
        """Raises BadInput: new texts have no vectors."""
        raise BadInput(f"embeddings=brought: there is no model for the text {texts[0][:SHOWN]!r}. Choose embeddings with a model.")

    def embed_query(self, text: str) -> Future[NDArray[np.float32]]:
        """[d] float32, L2-normalised. Raises BadInput when it was not brought."""
        place = self._place.get(text.strip())
        if place is None:
            raise self._missing(text, 1, 1)
        done: Future[NDArray[np.float32]] = Future()
        done.set_result(self._vectors[place])
        return done

    def _missing(self, text: str, count: int, of: int) -> BadInput:
        return BadInput(
            f"embeddings.queries={self._path!r}: {count:,} of {of:,} questions have no vector, {text[:SHOWN]!r} among them; "
            "expected a Parquet file of text and vector with a line for each. Bring them, or choose what compares no vectors with "
            "questions: first_stage=bm25 or run, and reranker and navigator table, listwise, pointwise or simulated."
        )
