"""Index the words of every document for BM25.

Reads: corpus. Writes: lexicon.   python -m jobs.build_lexicon corpus=scifact lexicon.k1=1.2
Cost: one pass in one process; memory 12 bytes per distinct word of a document, and the vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray

from actors.algorithms import bm25
from actors.artifacts import lexicon as lexicon_files
from actors.artifacts.corpus import open_corpus
from actors.artifacts.store import Address
from conf import schema
from jobs import building, session


def run(settings: schema.Settings) -> Address:
    """Build the lexicon artifact."""
    characters = building.count_of(settings, "corpus", "characters")
    return building.build(settings, "lexicon", make, needs={"memory": 8 * characters / 2**20, "disk": 4 * characters / 2**20})


def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    counts: dict[str, Any] = ray.get(ray.remote(num_cpus=1)(read).remote(settings.lexicon, inputs["corpus"], folder))
    return counts


def read(node: schema.Lexicon, corpus: Path, folder: Path) -> dict[str, Any]:
    """A task, so that the driver holds no postings."""
    analyzer = bm25.Analyzer(node.stemmer, node.stop_words)
    built = bm25.build(open_corpus(corpus).texts(), analyzer, node.k1, node.b)
    lexicon_files.write(folder, lexicon_files.Lexicon(**vars(built), stemmer=node.stemmer, stop_words=node.stop_words))
    return {"terms": len(built.term_offsets) - 1, "postings": len(built.posting_rows), "terms per document": built.average_length}


main = session.job(run)

if __name__ == "__main__":
    main()
