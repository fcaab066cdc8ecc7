"""A run: the ranking of every query, how it came to be, and what it cost.

While it is made, each finished query is one line of `journal.jsonl`; a line that was torn by a kill is done again. At the end:
`run.parquet` (query_id, doc_id, rank int32, score float64), `run.tsv` (TREC's columns, TAB-separated: ids may hold spaces),
`trace.parquet` (one row per query and iteration; documents are rows of the corpus), `answers.parquet` (everything that was asked of
the models, with the answers), `ledger.parquet` (query_id, role, counter, number), `timings.parquet` (seconds by query).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from actors.artifacts.store import add_timings

JOURNAL = "journal.jsonl"
ANSWERS = "answers.parquet"
LEDGER = pa.schema([("query_id", pa.string()), ("role", pa.string()), ("counter", pa.string()), ("number", pa.int64())])
RUN = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("rank", pa.int32()), ("score", pa.float64())])
_ROWS, _REALS = pa.list_(pa.int64()), pa.list_(pa.float64())
TRACE = pa.schema(
    [("query_id", pa.string()), ("iteration", pa.int32())]
    + [(name, _ROWS) for name in ("window", "ranked", "candidates", "votes", "navigated", "eligible", "added", "added_from")]
    + [(name, _REALS) for name in ("navigated_scores", "eligible_scores")]
    + [("explore", pa.bool_()), ("rerank_failed", pa.bool_()), ("navigated_from_pool", pa.int32()), ("reused_scores", pa.int32())]
    + [("steps", pa.list_(pa.string())), ("step", pa.int32()), ("usage", pa.string())]
)  # usage: JSON, role -> calls, tokens, outcomes
EXCHANGE = pa.schema(
    [("query_id", pa.string()), ("iteration", pa.int32()), ("role", pa.string()), ("of", pa.string())]
    + [("rows", _ROWS), ("texts", pa.list_(pa.string())), ("values", _REALS), ("steps", pa.list_(pa.string()))]
    + [("comparable", pa.bool_()), ("outcome", pa.string()), ("usage", pa.string())]
)


@dataclass(frozen=True)
class Exchange:
    """One request to a role and its answer. rows: documents or groups, as `of` says. values: one per row, or per text and row."""

    role: str
    of: str
    rows: list[int]
    texts: list[str]
    values: list[float]
    steps: list[str]
    comparable: bool
    outcome: str
    usage: dict[str, int]


@dataclass(frozen=True)
class Result:
    """One query's answer. trace: one mapping per iteration with TRACE's columns. answers: EXCHANGE's columns. usage: role ->
    counters. timings: what -> seconds.
    """

    query_id: str
    doc_ids: list[str]
    trace: list[dict[str, Any]]
    answers: list[dict[str, Any]]
    usage: dict[str, dict[str, int]]
    timings: dict[str, float]


class Journal:
    """The results that are finished so far; one line each, appended by the driver alone."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / JOURNAL
        whole = list(self._read())
        if self._path.exists():  # cut a torn last line off, so that the next one starts on a line of its own
            with self._path.open("r+b") as file:
                file.truncate(sum(len(line) for line in whole))
        self.done = {json.loads(line)["query_id"] for line in whole}

    def append(self, results: Iterable[Result]) -> None:
        """Keep results for good."""
        with self._path.open("ab") as file:
            for result in results:
                file.write(json.dumps(result.__dict__).encode() + b"\n")
                self.done.add(result.query_id)

    def results(self) -> Iterator[Result]:
        """Everything finished, in the order it was finished."""
        return (Result(**json.loads(line)) for line in self._read())

    def _read(self) -> Iterator[bytes]:
        if self._path.exists():
            with self._path.open("rb") as file:
                yield from (line for line in file if line.endswith(b"\n"))


def write(folder: Path, order: Sequence[str], tag: str) -> dict[str, Any]:
    """Turn the journal into the run's files, queries in `order`, and remove it. Returns counts: queries, documents,
    usage by role.
    """
    results = {result.query_id: result for result in Journal(folder).results()}
    finished = [results[query_id] for query_id in order if query_id in results]
    _write_run(folder, finished, tag)
    trace = [{"query_id": r.query_id, "iteration": t, **turn} for r in finished for t, turn in enumerate(r.trace, 1)]
    pq.write_table(pa.Table.from_pylist(trace, schema=TRACE), folder / "trace.parquet")
    _write_answers(folder, finished)
    add_timings(folder, [(r.query_id, name, seconds) for r in finished for name, seconds in r.timings.items()])
    (folder / JOURNAL).unlink()
    return {
        "queries": len(finished),
        "documents": sum(len(r.doc_ids) for r in finished),
        "empty pools": sum(not r.doc_ids for r in finished),
        "usage": total_usage(r.usage for r in finished),
    }


def _write_answers(folder: Path, results: Sequence[Result]) -> None:
    answers = [{"query_id": r.query_id, **a, "usage": json.dumps(a["usage"], sort_keys=True)} for r in results for a in r.answers]
    pq.write_table(pa.Table.from_pylist(answers, schema=EXCHANGE), folder / ANSWERS)
    ledger = [
        {"query_id": r.query_id, "role": role, "counter": counter, "number": number}
        for r in results
        for role, counters in sorted(r.usage.items())
        for counter, number in sorted(counters.items())
    ]
    pq.write_table(pa.Table.from_pylist(ledger, schema=LEDGER), folder / "ledger.parquet")


def open_answers(folder: Path, role: str) -> Iterator[tuple[str, Exchange]]:
    """Every exchange with one role, with its query_id."""
    for line in pq.read_table(folder / ANSWERS, filters=[("role", "=", role)]).to_pylist():
        query_id, usage = line.pop("query_id"), json.loads(line.pop("usage"))
        del line["iteration"]
        yield query_id, Exchange(**line, usage=usage)


def open_ledger(folder: Path) -> list[dict[str, Any]]:
    """One mapping per query, role and counter."""
    ledger: list[dict[str, Any]] = pq.read_table(folder / "ledger.parquet").to_pylist()
    return ledger


def open_traces(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """query_id -> its iterations, in order."""
    traces: dict[str, list[dict[str, Any]]] = {}
    for line in pq.read_table(folder / "trace.parquet").to_pylist():
        traces.setdefault(line["query_id"], []).append(line)
    return traces


def total_usage(usages: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    """Counters summed by role."""
    total: dict[str, dict[str, int]] = {}
    for usage in usages:
        for role, counters in usage.items():
            kept = total.setdefault(role, {})
            for name, number in counters.items():
                kept[name] = kept.get(name, 0) + number
    return total


def _write_run(folder: Path, results: Sequence[Result], tag: str) -> None:
    """Scores are 1/rank: strictly decreasing, since trec_eval would order equal scores by id."""
    lines = [(r.query_id, doc_id, rank, 1.0 / rank) for r in results for rank, doc_id in enumerate(r.doc_ids, 1)]
    columns = [list(column) for column in zip(*lines, strict=True)] or [[], [], [], []]
    pq.write_table(pa.table([pa.array(c, f.type) for c, f in zip(columns, RUN, strict=True)], schema=RUN), folder / "run.parquet")
    with (folder / "run.tsv").open("w", encoding="utf-8") as file:
        file.writelines(f"{query_id}\tQ0\t{doc_id}\t{rank}\t{score!r}\t{tag}\n" for query_id, doc_id, rank, score in lines)


def open_run(folder: Path) -> dict[str, dict[str, float]]:
    """query_id -> doc_id -> score, as pytrec_eval takes it."""
    run: dict[str, dict[str, float]] = {}
    table = pq.read_table(folder / "run.parquet").to_pydict()
    for query_id, doc_id, score in zip(table["query_id"], table["doc_id"], table["score"], strict=True):
        run.setdefault(query_id, {})[doc_id] = score
    return run


def open_trace(folder: Path, query_id: str) -> list[dict[str, Any]]:
    """The iterations of one query, in order."""
    lines: list[dict[str, Any]] = pq.read_table(folder / "trace.parquet", filters=[("query_id", "=", query_id)]).to_pylist()
    return lines
