"""Index the words of every document for BM25.

Reads: corpus. Writes: lexicon.   python -m jobs.build_lexicon corpus=scifact lexicon.k1=1.2
Cost: one pass over the texts, in tasks of cluster.lexicon.block_rows documents, which are resumed; then the vocabulary in one
task, and two passes over the pairs of a document and a word. Disk while building: twice what stays.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ray

from actors import lexicon_builder as builder
from actors.algorithms.bm25_building import TOKENS
from actors.artifacts.corpus import open_corpus
from actors.artifacts.lexicon import SETTINGS, open_lexicon
from actors.artifacts.store import Address
from conf import schema
from jobs import building, session
from jobs.batch import run_tasks

CHARACTERS_PER_WORD = 5  # that is kept, with the space and the words that are not: at least, in most languages
PROCESS = 250  # MiB of a Ray worker, with scipy and pyarrow, before it has read anything
BYTES_PER_WORD = 60  # of a task's shard: ids, pairs and weights while they are sorted by term
BYTES_PER_TERM = 150  # of the vocabulary: roughly what a job with 5.8 million terms took beside all else
DISK_PER_WORD = 24  # shards by row and by term, and the arrays beside the blocks they are joined of


def run(settings: schema.Settings) -> Address:
    """Build the lexicon artifact."""
    return building.build(settings, "lexicon", make, needs=needs(settings))


def needs(settings: schema.Settings) -> dict[str, float]:
    """Foreseen MiB: of all tasks at once, each with the largest shard, or of the one that takes the vocabularies together."""
    documents, characters = (building.count_of(settings, "corpus", name) for name in ("documents", "characters"))
    tasks, words = settings.cluster.lexicon, characters / CHARACTERS_PER_WORD
    at_once = (settings.cluster.num_cpus or os.cpu_count() or 1) / max(tasks.num_cpus, 0.01)
    of_task = min(words, TOKENS, words / max(documents, 1) * tasks.block_rows)
    memory = at_once * (PROCESS + of_task * BYTES_PER_WORD / 2**20)
    memory = max(memory, PROCESS + 60 * words**0.6 * BYTES_PER_TERM / 2**20)  # terms by Heaps' law
    return {"memory": memory if documents else 0.0, "disk": words * DISK_PER_WORD / 2**20}


def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    node, tasks, documents = settings.lexicon, settings.cluster.lexicon, len(open_corpus(inputs["corpus"]))

    def work(step: Callable[..., int], arguments: Sequence[tuple[Any, ...]], what: str, total: int, unit: str, left: int) -> None:
        task = ray.remote(num_cpus=tasks.num_cpus)(step)
        run_tasks([task.remote(*some) for some in arguments], (f"lexicon, {what}", total, unit), total - left)

    spans = builder.missing_rows(folder, documents, tasks.block_rows)
    left = sum(last - first for first, last in spans)
    work(builder.read_rows, [(node, inputs["corpus"], folder, *span) for span in spans], "reading", documents, "documents", left)
    if not (folder / SETTINGS).exists():
        work(builder.take_together, [(node, folder)], "vocabulary", documents, "documents", documents)
    shards = builder.missing_shards(folder)
    left = sum(rows for _, rows in shards)
    work(builder.weigh, [(node, folder, first) for first, _ in shards], "weights", documents, "documents", left)
    pairs = builder.pairs(folder)
    work(builder.join_rows, [(folder,)], "joining rows", pairs, "pairs", pairs)
    ranges = builder.missing_postings(folder, tasks.block_rows * builder.POSTINGS_PER_ROW)
    left = sum(end - start for start, end in ranges)
    work(builder.gather, [(folder, *span) for span in ranges], "postings", pairs, "pairs", left)
    work(builder.join_postings, [(folder,)], "joining postings", pairs, "pairs", pairs)
    built = open_lexicon(folder)
    return {"terms": len(built.term_offsets) - 1, "postings": len(built.posting_rows), "terms per document": built.average_length}


main = session.job(run)

if __name__ == "__main__":
    main()
