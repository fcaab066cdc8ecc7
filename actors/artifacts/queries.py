"""The queries of a corpus with their excluded documents and, where there are any, their relevance judgements.

Files: `queries.parquet` (query_id, text, excluded rows int32), `qrels.parquet` (query_id, doc_id, relevance int32),
`refused.parquet`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

QUERIES = pa.schema([("query_id", pa.string()), ("text", pa.string()), ("excluded", pa.list_(pa.int32()))])
QRELS = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("relevance", pa.int32())])


@dataclass(frozen=True)
class Query:
    """One question; `excluded` are the rows that do not exist for it."""

    query_id: str
    text: str
    excluded: tuple[int, ...]


def write(folder: Path, queries: Sequence[Query], qrels: Iterable[tuple[str, str, int]]) -> None:
    """Write the queries in the order given, and (query_id, doc_id, relevance) lines."""
    columns = [[q.query_id for q in queries], [q.text for q in queries], [list(q.excluded) for q in queries]]
    pq.write_table(
        pa.table([pa.array(c, f.type) for c, f in zip(columns, QUERIES, strict=True)], schema=QUERIES), folder / "queries.parquet"
    )
    lines = [list(column) for column in zip(*qrels, strict=True)] or [[], [], []]
    pq.write_table(
        pa.table([pa.array(c, f.type) for c, f in zip(lines, QRELS, strict=True)], schema=QRELS), folder / "qrels.parquet"
    )


def open_queries(folder: Path) -> list[Query]:
    """All queries, in order."""
    table = _columns(folder / "queries.parquet")
    return [Query(q, t, tuple(e)) for q, t, e in zip(table["query_id"], table["text"], table["excluded"], strict=True)]


def open_qrels(folder: Path) -> dict[str, dict[str, int]]:
    """query_id -> doc_id -> relevance, as pytrec_eval takes it."""
    qrels: dict[str, dict[str, int]] = {}
    table = _columns(folder / "qrels.parquet")
    for query_id, doc_id, relevance in zip(table["query_id"], table["doc_id"], table["relevance"], strict=True):
        qrels.setdefault(query_id, {})[doc_id] = relevance
    return qrels


def _columns(path: Path) -> dict[str, list[Any]]:
    """The columns of a small file. Not by `read_table`, which imports pandas and starts threads: 35 MB of a searcher's memory."""
    table = pq.ParquetFile(path).read(use_threads=False)
    return {name: table.column(name).to_pylist() for name in table.column_names}
