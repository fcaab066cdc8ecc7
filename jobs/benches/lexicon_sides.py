"""The sides of bench_lexicon: each builds a BM25 index of the first documents of a corpus and answers queries, in a process of
its own, so that its CPU time and its peak of memory are its own.
"""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from actors.algorithms.terms import Analyzer
from actors.artifacts.corpus import open_corpus
from conf import schema

Answer = Callable[[list[str]], Sequence[int]]  # terms of a query -> rows, best first


@dataclass(frozen=True)
class Task:
    node: schema.Lexicon
    corpus: Path
    documents: int
    block_rows: int
    queries: list[list[str]]  # terms
    depth: int


@dataclass(frozen=True)
class Took:
    """CPU seconds and MiB of one side."""

    reading: float
    indexing: float
    memory: float
    query_milliseconds: float
    slowest_milliseconds: float
    best: list[int]  # the first row of every query, -1 where none was found

    @property
    def building(self) -> float:
        return self.reading + self.indexing


def ours(task: Task, folder: Path) -> tuple[float, Answer]:
    """The steps of build_lexicon one after another, then the memory-mapped lexicon. Returns the clock when texts were read."""
    from actors import lexicon_builder as builder
    from actors.algorithms import bm25
    from actors.artifacts.lexicon import open_lexicon

    for span in builder.missing_rows(folder, task.documents, task.block_rows):
        builder.read_rows(task.node, task.corpus, folder, *span)
    read = time.process_time()
    builder.take_together(task.node, folder)
    for first, _ in builder.missing_shards(folder):
        builder.weigh(task.node, folder, first)
    builder.join_rows(folder)
    for start_and_end in builder.missing_postings(folder, task.block_rows * builder.POSTINGS_PER_ROW):
        builder.gather(folder, *start_and_end)
    builder.join_postings(folder)
    lexicon = open_lexicon(folder)
    return read, lambda terms: bm25.retrieve(lexicon, terms, task.depth)[0].tolist()


def by_bm25s(task: Task, folder: Path) -> tuple[float, Answer]:
    """bm25s, compiled where numba is there, of the terms that our analyzer makes."""
    import bm25s

    analyzer = Analyzer(task.node.stemmer, task.node.stop_words)
    terms = [analyzer.terms(text) for text in open_corpus(task.corpus).texts(0, task.documents)]
    read = time.process_time()
    backend = "numba" if find_spec("numba") else "numpy"
    model = bm25s.BM25(k1=task.node.k1, b=task.node.b, method="lucene", backend=backend)
    model.index(terms, show_progress=False)
    depth = min(task.depth, task.documents)

    def answer(terms: list[str]) -> Any:
        return model.retrieve([terms], k=depth, show_progress=False, n_threads=1, return_as="documents")[0].tolist()

    return read, answer


def by_tantivy(task: Task, folder: Path) -> tuple[float, Answer]:
    """tantivy with one thread, its English stemmer and its own k1 and b. It reads while it indexes."""
    import tantivy

    fields = tantivy.SchemaBuilder()
    fields.add_text_field("text", stored=False, tokenizer_name="en_stem", index_option="freq")
    fields.add_unsigned_field("row", stored=True)
    index = tantivy.Index(fields.build(), path=str(folder))
    writer = index.writer(num_threads=1)
    start = time.process_time()
    for row, text in enumerate(open_corpus(task.corpus).texts(0, task.documents)):
        writer.add_document(tantivy.Document(text=text, row=row))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def answer(terms: list[str]) -> list[int]:
        found = searcher.search(index.parse_query(" ".join(terms), ["text"]), task.depth, count=False).hits
        return [searcher.doc(address)["row"][0] for _, address in found[:1]]  # of the others no row is looked up

    return start, answer


SIDES: dict[str, Callable[[Task, Path], tuple[float, Answer]]] = {"ours": ours, "bm25s": by_bm25s, "tantivy": by_tantivy}


def measure(side: str, task: Task) -> Took:
    """Build and answer every query twice, of which the second counts: maps are warm and code is compiled."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        read, answer = SIDES[side](task, Path(folder))
        built, memory = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        found, milliseconds = [], []
        for again in (False, True):
            for terms in task.queries:
                before = time.process_time()
                rows = answer(terms)
                if again:
                    milliseconds.append(1e3 * (time.process_time() - before))
                    found.append(rows[0] if len(rows) else -1)
    return Took(read - start, built - read, memory, statistics.median(milliseconds), max(milliseconds), found)
