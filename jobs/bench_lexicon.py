"""The lexicon against bm25s and tantivy: documents indexed per second of CPU, peak of memory, milliseconds of CPU of a query.

Reads: corpus. Writes: nothing.   python -m jobs.bench_lexicon corpus=synthetic corpus.documents=200000
All on the first documents of the corpus, a sixteenth, a quarter and all of them; rivals up to RIVALS_UP_TO documents, in
alternating rounds, each side in a process of its own. Rivals take part where they are installed (pip install -e '.[bench]').
The last line is JSON: ratios are rival / ours, over 1 where ours is cheaper. Cost: minutes; bm25s holds 4 KB per document.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from actors.algorithms.terms import Analyzer
from actors.artifacts.corpus import open_corpus
from actors.artifacts.store import open_manifest
from conf import schema
from jobs import session
from jobs.benches.lexicon_sides import SIDES, Task, Took, measure
from jobs.benches.measuring import alone, spread
from jobs.console import say, table
from jobs.stages import Addresses

ROUNDS = 3
PARTS = (16, 4, 1)  # of the corpus that are indexed: one in so many documents
RIVALS_UP_TO = 250_000  # documents
QUERIES = 200
WORDS = 15  # of a query: the first of a document
DEPTH = 1000


def run(settings: schema.Settings) -> None:
    """Alternate all sides at every size, and print what they took and the ratios at the largest that all could do."""
    folder = Addresses(settings)["corpus"].folder
    open_manifest(folder, "corpus")
    whole = len(open_corpus(folder))
    queries = list(queries_of(settings.lexicon, folder))
    task = Task(settings.lexicon, folder, whole, settings.cluster.lexicon.block_rows, queries, DEPTH)
    rivals = [side for side in SIDES if side == "ours" or find_spec(side)]
    took: dict[int, dict[str, list[Took]]] = {}
    for documents in sorted({max(whole // part, 1) for part in PARTS}):
        sides = rivals if documents <= RIVALS_UP_TO else ["ours"]
        took[documents] = rounds(replace(task, documents=documents), sides)
        say(f"\n{settings.corpus.name}: {documents:,} documents, {len(queries)} queries of {WORDS} words, {ROUNDS} rounds, medians")
        head = ("side", "documents per CPU second", "reading s", "indexing s", "peak MiB", "query ms", "slowest ms")
        say(table(head, [(side, *line(documents, results)) for side, results in took[documents].items()]))
    compared = max((n for n in took if len(took[n]) == len(rivals)), default=0)
    ratios = {side: ratios_of(took[compared], side) for side in rivals[1:]} if compared else {}
    growth = {documents: growing(documents, sides["ours"]) for documents, sides in took.items()}
    say(json.dumps({"corpus": settings.corpus.name, "documents": compared, "ratios": ratios, "growth": growth}))


def queries_of(node: schema.Lexicon, folder: Path) -> Iterator[list[str]]:
    """Terms of the beginnings of documents that lie evenly in the corpus."""
    analyzer, corpus = Analyzer(node.stemmer, node.stop_words), open_corpus(folder)
    for number in range(QUERIES):
        if terms := analyzer.terms(corpus.text(number * len(corpus) // QUERIES))[:WORDS]:
            yield terms


def rounds(task: Task, sides: Iterable[str]) -> dict[str, list[Took]]:
    """Every side once a round, each time in a fresh process."""
    took: dict[str, list[Took]] = {side: [] for side in sides}
    for _ in range(ROUNDS):
        for side, results in took.items():
            results.append(alone(measure, side, task))
    return took


def line(documents: int, results: list[Took]) -> list[float]:
    """Medians over the rounds."""
    names = ("building", "reading", "indexing", "memory", "query_milliseconds", "slowest_milliseconds")
    building, *others = (statistics.median(getattr(took, name) for took in results) for name in names)
    return [documents / building, *others]


def growing(documents: int, results: list[Took]) -> dict[str, float]:
    """What is kept of how cost grows."""
    speed, _, _, memory, query, _ = line(documents, results)
    return {"documents per second": round(speed), "memory": round(memory), "query": round(query, 3)}


def ratios_of(took: dict[str, list[Took]], rival: str) -> dict[str, Any]:
    """Rival / ours of every round: median, least and most; and the share of queries with the same best document."""
    pairs = list(zip(took[rival], took["ours"], strict=True))
    same = statistics.mean(a == b for a, b in zip(pairs[0][0].best, pairs[0][1].best, strict=True))
    return {
        "building": spread(a.building / b.building for a, b in pairs),
        "memory": spread(a.memory / b.memory for a, b in pairs),
        "query": spread(a.query_milliseconds / b.query_milliseconds for a, b in pairs),
        "same best document": round(same, 3),
    }


main = session.job(run)

if __name__ == "__main__":
    main()
