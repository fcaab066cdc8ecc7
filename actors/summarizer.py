"""The summarizer: a batch worker that writes a concept and a summary for each group of a span, and embeds them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from actors.algorithms import bm25
from actors.algorithms.extract import ExtractLimits, extract
from actors.artifacts.corpus import open_corpus
from actors.artifacts.embeddings import open_vectors
from actors.artifacts.groups import open_groups
from actors.artifacts.lexicon import open_lexicon
from actors.artifacts.summaries import Summary, write_part
from actors.engines.build import build_embedder
from conf import schema

Spans = dict[str, NDArray[np.int64]]


class ExtractPart:
    """Summarises the groups of each span by their own sentences and writes them as one part."""

    def __init__(
        self, inputs: dict[str, str], draft: str, node: schema.ExtractiveSummaries, model: schema.Embeddings, cache: str
    ) -> None:
        """inputs: kind -> folder of the corpus, embeddings, groups and lexicon artifacts."""
        self._corpus = open_corpus(Path(inputs["corpus"]))
        self._vectors = open_vectors(Path(inputs["embeddings"]))
        self._groups = open_groups(Path(inputs["groups"]))
        self._lexicon = open_lexicon(Path(inputs["lexicon"]))
        self._analyzer = bm25.Analyzer(self._lexicon.stemmer, self._lexicon.stop_words)
        self._draft = Path(draft)
        self._limits = ExtractLimits(
            concept_words=node.concept_words,
            sentences=(node.min_sentences, node.max_sentences),
            sentence_characters=node.sentence_characters,
            documents=node.documents,
            document_characters=node.document_characters,
            duplicate_similarity=node.duplicate_similarity,
            relevance=node.relevance,
        )
        self._embedder = build_embedder(model, cache)

    def __call__(self, spans: Spans) -> Spans:
        for first, last in zip(spans["first"].tolist(), spans["last"].tolist(), strict=True):
            summaries = [self._summarise(group) for group in range(first, last)]
            vectors, _ = self._embedder.embed_documents([s.text for s in summaries])
            write_part(self._draft, summaries, vectors)
        return {"rows": spans["last"] - spans["first"]}

    def _summarise(self, group: int) -> Summary:
        rows = self._groups.members(group)
        texts = [self._corpus.text(row) for row in rows.tolist()]
        found = extract(
            texts,
            self._vectors[rows].astype(np.float32),
            self._analyzer.tokens,
            self._frequency,
            self._lexicon.documents,
            self._limits,
        )
        shown = tuple(int(rows[i]) for i in found.documents)
        return Summary(group, found.concept, " ".join(found.sentences), shown, "extractive")

    def _frequency(self, terms: list[str]) -> NDArray[np.int64]:
        return bm25.document_frequency(self._lexicon, terms)
