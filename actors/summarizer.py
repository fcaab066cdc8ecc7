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
from actors.algorithms.means import mean_directions
from actors.algorithms.terms import Analyzer
from actors.artifacts.corpus import open_corpus
from actors.artifacts.embeddings import open_vectors
from actors.artifacts.groups import open_groups
from actors.artifacts.lexicon import open_lexicon
from actors.artifacts.summaries import GroupJournal, Summary, open_brought, write_part
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
        self._analyzer = Analyzer(self._lexicon.stemmer, self._lexicon.stop_words)
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
        self._no_model = isinstance(model, schema.BroughtEmbeddings)
        if not self._no_model:
            self._embedder = build_embedder(model, cache, place)

    def __call__(self, spans: Spans) -> Spans:
        for first, last in zip(spans["first"].tolist(), spans["last"].tolist(), strict=True):
            summaries = self._summarise(range(first, last))
            write_part(self._draft, summaries, self._embedded(summaries))
        return {"rows": spans["last"] - spans["first"]}

    def _embedded(self, summaries: list[Summary]) -> NDArray[np.float32]:
        """A vector for each summary: its own, or, where no model is there to embed it, the mean of its group's documents."""
        if self._no_model:
            return mean_directions(self._vectors, [self._groups.members(s.group) for s in summaries])
        vectors, _ = self._embedder.embed_documents([s.text for s in summaries])
        return vectors

    def _summarise(self, groups: range) -> list[Summary]:
        return [self._extract(group) for group in groups]

    def _extract(self, group: int) -> Summary:
        rows = self._groups.members(group)
        found = extract(
            [self._corpus.text(row) for row in rows.tolist()],
            self._vectors[rows].astype(np.float32),
            self._analyzer.tokens,
            bm25.document_frequency(self._lexicon, rows),
            self._lexicon.documents,
            self._limits,
        )
        shown = tuple(int(rows[i]) for i in found.documents)
        return Summary(group, found.concept, " ".join(found.sentences), shown, "extractive")


class BroughtPart(ExtractPart):
    """Takes the descriptions of each span from those that were brought; the extractive summary stands in for a group without."""

    def __init__(
        self,
        inputs: dict[str, str],
        draft: str,
        node: schema.BroughtSummaries,
        model: schema.Embeddings,
        cache: str,
        place: Place,
    ) -> None:
        super().__init__(inputs, draft, node.stand_in, model, cache, place)
        self._brought = open_brought(self._draft)

    def _summarise(self, groups: range) -> list[Summary]:
        told = self._brought.slice(groups.start, len(groups)).to_pylist()
        return [
            self._extract(group) if line["concept"] is None else Summary(group, line["concept"], line["summary"], (), "brought")
            for group, line in zip(groups, told, strict=True)
        ]


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
