"""The embedder: a batch worker that turns parts of a corpus into vectors on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from actors.artifacts.corpus import open_corpus
from actors.artifacts.embeddings import write_part
from actors.engines.build import Place, build_embedder
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
