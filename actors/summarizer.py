"""The summarizer: batch workers that write a concept and a summary for each group of a span, and embed them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from actors.algorithms import bm25
from actors.algorithms.duplicates import distinct
from actors.algorithms.extract import ExtractLimits, extract
from actors.artifacts.corpus import open_corpus
from actors.artifacts.embeddings import open_vectors
from actors.artifacts.groups import open_groups
from actors.artifacts.lexicon import open_lexicon
from actors.artifacts.summaries import GroupJournal, Summary, write_part
from actors.describer import Describer
from actors.engines import self_test
from actors.engines.build import TEST_SECONDS, Place, build_embedder, build_engine
from actors.engines.engine import Engine
from conf import schema

Spans = dict[str, NDArray[np.int64]]


class ExtractPart:
    """Summarises the groups of each span by their own sentences and writes them as one part."""

    def __init__(
        self,
        inputs: dict[str, str],
        draft: str,
        node: schema.ExtractiveSummaries,
        model: schema.Embeddings,
        cache: str,
        place: Place,
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
        self._embedder = build_embedder(model, cache, place)

    def __call__(self, spans: Spans) -> Spans:
        for first, last in zip(spans["first"].tolist(), spans["last"].tolist(), strict=True):
            summaries = self._summarise(range(first, last))
            vectors, _ = self._embedder.embed_documents([s.text for s in summaries])
            write_part(self._draft, summaries, vectors)
        return {"rows": spans["last"] - spans["first"]}

    def _summarise(self, groups: range) -> list[Summary]:
        return [self._extract(group) for group in groups]

    def _extract(self, group: int) -> Summary:
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


async def _tested_engine(model: schema.Model, place: Place) -> Engine:
    engine = await build_engine(model, ("generate",), place)
    await self_test.check(engine, ("generate",), TEST_SECONDS)
    return engine


class DescribePart(ExtractPart):
    """Describes the groups of each span by a language model, all at once; the extractive summary stands in where it cannot.

    Every description is kept as soon as it is there, so that a job that was killed asks for none of them again.
    """

    def __init__(
        self,
        inputs: dict[str, str],
        draft: str,
        node: schema.LlmSummaries,
        model: schema.Embeddings,
        cache: str,
        place: Place,
    ) -> None:
        super().__init__(inputs, draft, node.stand_in, model, cache, place)
        self._duplicate_similarity = node.duplicate_similarity
        self._runner = asyncio.Runner()  # one event loop for all spans: the engine lives in it
        self._describer = Describer(node, self._runner.run(_tested_engine(node.model, place)))

    def _summarise(self, groups: range) -> list[Summary]:
        return self._runner.run(self._describe_all(groups))

    async def _describe_all(self, groups: range) -> list[Summary]:
        journal = GroupJournal(self._draft, groups.start)
        left = [group for group in groups if group not in journal.done]
        new = dict(zip(left, await asyncio.gather(*(self._describe(group, journal) for group in left)), strict=True))
        return [journal.done.get(group) or new[group] for group in groups]

    async def _describe(self, group: int, journal: GroupJournal) -> Summary:
        rows = self._shown(group)
        described = await self._describer.describe([self._corpus.text(row) for row in rows])
        if described.concept:
            summary = Summary(group, described.concept, described.summary, tuple(rows), described.outcome)
        else:
            summary = self._extract(group)  # not kept as a description: the next run asks again
        journal.add(summary, described.usage, good=bool(described.concept))
        return summary

    def _shown(self, group: int) -> Sequence[int]:
        rows = self._groups.members(group)
        kept = distinct(self._vectors[rows].astype(np.float32), self._duplicate_similarity)
        shown: list[int] = rows[kept].tolist()
        return shown
