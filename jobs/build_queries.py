"""Read the queries of a corpus and their relevance judgements.

Reads: the files that `queries` names, and the corpus. Writes: queries.   python -m jobs.build_queries corpus=scifact
queries.limit=50
Cost: seconds. Excluded and judged ids that the corpus does not have are counted and shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray

from actors.artifacts import corpus as corpus_files, queries as query_files
from actors.artifacts.store import Address
from actors.corpora import readers
from actors.corpora.admission import admit_judgements, admit_queries
from conf import schema
from jobs import building, session
from jobs.console import say


def run(settings: schema.Settings) -> Address:
    """Build the queries artifact."""
    size = sum(file.stat().st_size for file in readers.files(settings.queries))
    return building.build(settings, "queries", make, needs={"disk": size / 2**20})


def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    task = ray.remote(num_cpus=1)(read)
    counts: dict[str, Any] = ray.get(task.remote(settings.queries, settings.corpus, inputs["corpus"], folder))
    lost = {"excluded unknown": "excluded ids are not in the corpus", "judged unknown": "judged documents are not in the corpus"}
    for name, words in lost.items():
        if counts[name]:
            say(f"  queries: {counts[name]:,} {words}")
    return counts


def read(node: schema.Queries, corpus: schema.Corpus, corpus_folder: Path, folder: Path) -> dict[str, Any]:
    """Admit queries and judgements, and turn excluded ids into rows."""
    asked = admit_queries(readers.queries(node, corpus), node.on_bad)
    judged = admit_judgements(readers.judgements(node, corpus), node.on_bad)
    queries, judgements = list(asked), list(judged)
    if node.limit:
        with_gold = {j.query_id for j in judgements if j.relevance > 0}
        queries = [q for q in queries if q.query_id in with_gold or not judgements][: node.limit]
        kept = {q.query_id for q in queries}
        judgements = [j for j in judgements if j.query_id in kept]
    wanted = {name for q in queries for name in q.excluded} | {j.doc_id for j in judgements}
    row = corpus_files.open_corpus(corpus_folder).rows_of(wanted)
    if judgements and not any(j.doc_id in row for j in judgements):
        named, held = judgements[0].doc_id, corpus_files.open_corpus(corpus_folder).doc_id(0)
        raise ValueError(
            f"qrels: none of their documents is in the corpus; they name {named!r}, the corpus {held!r}. Mend the ids."
        )
    found = [query_files.Query(q.query_id, q.text, tuple(sorted({row[d] for d in q.excluded if d in row}))) for q in queries]
    query_files.write(folder, found, [(j.query_id, j.doc_id, j.relevance) for j in judgements])
    corpus_files.write_refused(folder, [*asked.refused, *judged.refused])
    return {
        "queries": len(queries),
        "judgements": len(judgements),
        "excluded unknown": sum(d not in row for q in queries for d in q.excluded),
        "judged unknown": sum(j.doc_id not in row for j in judgements),
        "refused": {**asked.counts(), **judged.counts()},
    }


main = session.job(run)

if __name__ == "__main__":
    main()
