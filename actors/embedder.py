"""The embedder: batch workers that turn parts of a corpus into vectors on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from actors.artifacts.corpus import open_corpus
from actors.artifacts.embeddings import write_part
from actors.corpora import brought
from actors.engines.build import Place, build_embedder
from actors.engines.synthetic import vectors
from conf import schema

Spans = dict[str, NDArray[np.int64]]


class EmbedPart:
    """Embeds the rows of each span it is given and writes them as one part. Loads its model once."""

    def __init__(self, corpus: str, draft: str, model: schema.Embeddings, cache: str, place: Place) -> None:
        self._corpus = open_corpus(Path(corpus))
        self._draft = Path(draft)
        self._embedder = build_embedder(model, cache, place)

    def __call__(self, spans: Spans) -> Spans:
        for first, last in zip(spans["first"].tolist(), spans["last"].tolist(), strict=True):
            vectors, usage = self._embedder.embed_documents(list(self._corpus.texts(first, last)))
            write_part(self._draft, first, vectors, usage)
        return {"rows": spans["last"] - spans["first"]}


class BringPart:
    """Takes the rows of each span from a file of vectors that was brought, and writes them as one part."""

    def __init__(self, draft: str, path: str, rows: int) -> None:
        self._draft, self._path = Path(draft), path
        self._vectors = brought.vectors(path, rows)

    def __call__(self, spans: Spans) -> Spans:
        for first, last in zip(spans["first"].tolist(), spans["last"].tolist(), strict=True):
            found = brought.units(self._vectors[first:last], first, self._path)
            write_part(self._draft, first, found.vectors, {"normalised": found.scaled})
        return {"rows": spans["last"] - spans["first"]}


class DrawPart:
    """Draws the vectors of each span of a synthetic corpus' rows and writes them as one part. No text is read."""

    def __init__(self, draft: str, node: schema.SyntheticEmbeddings) -> None:
        self._draft, self._node = Path(draft), node

    def __call__(self, spans: Spans) -> Spans:
        for first, last in zip(spans["first"].tolist(), spans["last"].tolist(), strict=True):
            write_part(self._draft, first, vectors(self._node, first, last), {})
        return {"rows": spans["last"] - spans["first"]}
