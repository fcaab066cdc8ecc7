"""The approximate graph against faiss' NN-Descent and exact search: CPU seconds and recall on the same vectors.

Reads: embeddings. Writes: nothing.   python -m jobs.bench_graph corpus=synthetic embeddings=synthetic corpus.documents=200000
All on the first documents, a sixteenth, a quarter and all of them, in alternating rounds, each side in one thread of a process of
its own. NN-Descent keeps the fewest documents of RIVAL_KS with which its recall is ours, else the most. Up to RIVALS_UP_TO
documents; exact is told from some documents, as each costs the same. The last line is JSON: ratios are rival / ours, over 1 where
ours is cheaper. Cost: minutes of one core; NN-Descent takes about 2 KB per document.
"""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import replace

from actors.artifacts.store import open_manifest
from conf import schema
from conf.load import BadConfig
from jobs import building, session
from jobs.benches.graph_sides import SIDES, Task, Took, measure
from jobs.benches.measuring import alone, spread
from jobs.console import say, table
from jobs.stages import Addresses

ROUNDS = 3
PARTS = (16, 4, 1)  # of the documents that are taken: one in so many
RIVALS_UP_TO = 250_000  # documents
RIVAL_KS = (16, 20, 24, 32, 48, 64)
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def run(settings: schema.Settings) -> None:
    """Alternate all sides at every size, and print what they took and the ratios at the largest that all could do."""
    if not isinstance(settings.graph, schema.ApproximateGraph):
        raise BadConfig("graph.method", settings.graph.method, "auto or approximate", "Choose graph=approximate.")
    folder = Addresses(settings)["embeddings"].folder
    open_manifest(folder, "embeddings")
    whole = building.count_of(settings, "embeddings", "documents")
    took: dict[int, dict[str, list[Took]]] = {}
    os.environ |= ONE_THREAD  # the sides' processes read them when they start
    for documents in sorted({max(whole // part, 1) for part in PARTS}):
        task = Task("ours", settings.graph, folder, documents)
        sides = [replace(task, side=side) for side in SIDES if side == "ours" or documents <= RIVALS_UP_TO]
        took[documents] = rounds(sides)
        say(f"\n{settings.corpus.name}: {documents:,} documents, {ROUNDS} rounds, medians")
        head = ("side", "CPU s", f"recall@{settings.graph.k}", "MiB", "microseconds a document")
        say(table(head, [(side, *line(documents, results)) for side, results in took[documents].items()]))
    compared = max((n for n in took if len(took[n]) == len(SIDES)), default=0)
    ratios = {side: ratio(took[compared], side) for side in SIDES if side != "ours"} if compared else {}
    growth = {documents: dict(zip(("seconds", "recall", "memory"), line(documents, sides["ours"]), strict=False))
              for documents, sides in took.items()}  # fmt: skip
    say(json.dumps({"corpus": settings.corpus.name, "documents": compared, "ratios": ratios, "growth": growth}))


def rounds(sides: list[Task]) -> dict[str, list[Took]]:
    """Every side once a round. The first round also finds NN-Descent's K."""
    took: dict[str, list[Took]] = {task.side: [] for task in sides}
    for number in range(ROUNDS):
        for at, task in enumerate(sides):
            tries = RIVAL_KS if task.side == "NN-Descent" and number == 0 else (task.rival_k,)
            for k in tries:
                sides[at] = replace(task, rival_k=k)
                result = alone(measure, sides[at])
                if task.side == "ours" or result.recall >= took["ours"][0].recall:
                    break
            took[task.side].append(result)
    return took


def line(documents: int, results: list[Took]) -> list[float]:
    """Medians over the rounds: seconds, recall, memory, microseconds a document."""
    seconds, recall, memory = (statistics.median(getattr(r, name) for r in results) for name in ("seconds", "recall", "memory"))
    return [round(seconds, 2), round(recall, 4), round(memory), round(1e6 * seconds / documents, 1)]


def ratio(took: dict[str, list[Took]], rival: str) -> dict[str, float]:
    """Rival / ours of every round: median, least and most; and both recalls."""
    ratios = [a.seconds / b.seconds for a, b in zip(took[rival], took["ours"], strict=True)]
    recalls = {"recall": took[rival][0].recall, "our recall": took["ours"][0].recall}
    return {**spread(ratios), **{name: round(value, 3) for name, value in recalls.items()}}


main = session.job(run)

if __name__ == "__main__":
    main()
