"""Show the path of one query: what was in the window, which groups were weighed, which were expanded, where the gold came from.

Reads: run, queries, index. Writes: nothing.   python -m jobs.show_trace corpus=scifact query_id=1 loop=garen
Cost: seconds.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from actors.algorithms.loops.dialogue import source_name
from actors.artifacts import run as run_files
from actors.artifacts.queries import open_qrels, open_queries
from actors.artifacts.store import open_manifest
from actors.index import Index
from conf import schema
from conf.load import BadConfig
from jobs import session
from jobs.console import say
from jobs.stages import Addresses

SHOWN = 5  # groups and documents of one iteration


def run(settings: schema.Settings) -> None:
    """Print the query's iterations, then its answer."""
    addresses = Addresses(settings)
    for kind in ("run", "queries"):
        open_manifest(addresses[kind].folder, kind)
    queries = {q.query_id: q for q in open_queries(addresses["queries"].folder)}
    if settings.query_id not in queries:
        some = ", ".join(list(queries)[:8])
        raise BadConfig(
            "query_id",
            settings.query_id,
            f"one of the run's {len(queries):,} query ids ({some}, ...)",
            "Give query_id=..., or query_id='\"007\"' for 007.",
        )
    show(settings, settings.query_id, queries[settings.query_id].text, addresses)


def show(settings: schema.Settings, query_id: str, text: str, addresses: Addresses) -> None:
    index = Index.open(addresses["index"].folder)
    trace = run_files.open_trace(addresses["run"].folder, query_id)
    answer = list(run_files.open_run(addresses["run"].folder).get(query_id, {}))
    qrels = open_qrels(addresses["queries"].folder).get(query_id, {})
    rows = index.corpus.rows_of(d for d, relevance in qrels.items() if relevance > 0)
    gold = {row: doc_id for doc_id, row in rows.items()}
    say(f"\n{query_id}: {text}\n  method {settings.loop.method}; gold: {', '.join(rows) or 'none known'}")
    for turn in trace:
        _show_turn(index, turn, gold)
    say(f"\n  the answer's first ten of {len(answer)}:")
    for rank, doc_id in enumerate(answer[:10], 1):
        say(f"    {rank:>3}  {'*' if doc_id in rows else ' '} {doc_id}")
    for doc_id, row in rows.items():
        rank = answer.index(doc_id) + 1 if doc_id in answer else None
        say(f"  gold {doc_id}: {_origin(trace, row)}; {f'ranked {rank}' if rank else 'not observed'}")


def _show_turn(index: Index, turn: dict[str, Any], gold: dict[int, str]) -> None:
    say(f"\n  iteration {turn['iteration']}: window of {len(turn['window'])}, best now: {_names(index, turn['ranked'][:SHOWN])}")
    if turn["candidates"]:
        known = f", {turn['reused_scores']} scored before" if turn["reused_scores"] else ""
        say(f"    weighed: {len(turn['candidates'])} groups around the window{known}; {len(turn['navigated'])} newly scored, "
            f"{turn['navigated_from_pool']} of them from the pool")  # fmt: skip
    if turn["step"] >= 0:
        say(f"    step {turn['step'] + 1} of {len(turn['steps'])} leads on: {turn['steps'][turn['step']]}")
    expanded = Counter(turn["added_from"])
    if expanded and not turn["candidates"]:
        say(f"    added {', '.join(f'{count} from {source_name(source)}' for source, count in expanded.items())}")
    score = dict(zip(turn["eligible"], turn["eligible_scores"], strict=True))
    if expanded and turn["candidates"]:
        say(f"    {'explored' if turn['explore'] else 'exploited'} {len(expanded)} sources for {len(turn['added'])} documents:")
    for group, count in list(expanded.items())[:SHOWN] if turn["candidates"] else ():
        if group < 0:
            say(f"      {count} from {source_name(group)}")
        else:
            say(f"      {count} from group {group} ({score.get(group, float('nan')):.3f}: {index.summaries[group].concept})")
    if len(expanded) > SHOWN and turn["candidates"]:
        say(f"      and {len(expanded) - SHOWN} more")
    for doc, source in zip(turn["added"], turn["added_from"], strict=True):
        if doc in gold:
            say(f"    * gold {gold[doc]} comes in from {source_name(source)}")


def _names(index: Index, rows: list[int]) -> str:
    return ", ".join(index.corpus.doc_id(row) for row in rows)


def _origin(trace: list[dict[str, Any]], row: int) -> str:
    for turn in trace:
        if row in turn["added"]:
            source = dict(zip(turn["added"], turn["added_from"], strict=True))[row]
            return f"added in iteration {turn['iteration']} from {source_name(source)}"
    return "in the first window, from the pool" if trace and row in trace[0]["window"] else "never reached"


main = session.job(run)

if __name__ == "__main__":
    main()
