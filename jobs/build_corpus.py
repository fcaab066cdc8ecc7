"""Read a corpus into documents in row order.

Reads: the files that `corpus` names. Writes: corpus.   python -m jobs.build_corpus corpus=beir corpus.path=/data/nfcorpus
Cost: one pass over the files in one process; memory holds one batch of documents and 16 bytes per id. corpus=synthetic: about
15 us a document, in tasks of one file each, which are resumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray

from actors.artifacts import corpus as corpus_files
from actors.artifacts.store import Address
from actors.corpora import readers
from actors.corpora.admission import admit
from conf import schema
from jobs import building, session
from jobs.batch import run_tasks
from jobs.console import say


def run(settings: schema.Settings) -> Address:
    """Build the corpus artifact."""
    return building.build(settings, "corpus", make, needs={"disk": readers.size(settings.corpus) / 2**20})


def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    if readers.rows(settings.corpus):
        return make_by_rows(settings.corpus, folder)
    counts: dict[str, Any] = ray.get(ray.remote(num_cpus=1)(read).remote(settings.corpus, folder))
    for reason, number in counts["refused"].items():
        say(f"  corpus: {number:,} records refused: {reason} (listed in refused.parquet)")
    return counts


def read(corpus: schema.Corpus, folder: Path) -> dict[str, Any]:
    """Stream the admitted documents to disk; a task, so that the driver holds no texts."""
    for old in folder.glob("documents-*.arrow"):
        old.unlink()
    admission = admit(readers.documents(corpus), corpus.on_bad)
    counts = corpus_files.write(folder, ((d.doc_id, d.text) for d in admission))
    corpus_files.write_refused(folder, admission.refused)
    if not counts["documents"]:
        raise ValueError(f"corpus {corpus.name}: no document was read. Check corpus.path and the refused records in {folder}.")
    return {**counts, "refused": admission.counts()}


def make_by_rows(corpus: schema.Corpus, folder: Path) -> dict[str, Any]:
    """Every file by a task of its own."""
    documents = readers.rows(corpus)
    spans = corpus_files.missing_files(folder, documents)
    task = ray.remote(num_cpus=1)(write_file)
    waiting = [task.remote(corpus, folder, first, last) for first, last in spans]
    run_tasks(waiting, ("corpus", documents, "documents"), documents - sum(last - first for first, last in spans))
    corpus_files.write_refused(folder, [])
    counts: dict[str, Any] = ray.get(ray.remote(num_cpus=1)(corpus_files.count).remote(folder))
    return {**counts, "refused": {}}


def write_file(corpus: schema.Corpus, folder: Path, first: int, last: int) -> int:
    """One file of the corpus, made a batch at a time; returns the number of its rows."""
    step = corpus_files.BATCH
    spans = ((start, min(start + step, last)) for start in range(first, last, step))
    corpus_files.write_file(folder, first, (readers.span(corpus, *span) for span in spans))
    return last - first


main = session.job(run)

if __name__ == "__main__":
    main()
