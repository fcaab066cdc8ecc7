"""Relevance from a table that was brought in: the scores of a paper's run, of another system, or of a test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from actors.index import open_index
from actors.judges.judge import DOCUMENTS, OK, Ask, Scores

COLUMNS = {"query_id": pa.string(), "id": pa.string(), "score": pa.float64()}
TSV = pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False)  # an id may hold quotes
TYPES = pyarrow.csv.ConvertOptions(column_types=COLUMNS)


class TableJudge:
    """Looks scores up by query and document id, or by query and group number."""

    def __init__(self, path: str, missing: float) -> None:
        """An id is a doc_id where documents are asked for, a group's number where groups are. missing: the score of what the table
        lacks (counted).

        Raises ValueError naming the file when it is missing, lacks a column, or holds a pair twice.
        """
        self._scores = read_table(Path(path))
        self._missing = missing

    async def scores(self, asks: Sequence[Ask]) -> list[Scores]:
        return [self._look_up(ask) for ask in asks]

    def _look_up(self, ask: Ask) -> Scores:
        corpus = open_index(ask.index).corpus if ask.of == DOCUMENTS else None
        known = self._scores.get(ask.query_id, {})
        found = [known.get(str(row) if corpus is None else corpus.doc_id(row)) for row in ask.rows]
        missing = found.count(None)
        return Scores([self._missing if s is None else s for s in found], OK, {"missing": missing} if missing else {})


def read_table(path: Path) -> dict[str, dict[str, float]]:
    """query_id -> id -> score, from a Parquet file or a TAB-separated file with a header line."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file. Give the table's path, absolute, as reranker.path or navigator.path.")
    expected = f"Expected {', '.join(COLUMNS)}, in Parquet or separated by TABs below a header line."
    try:
        if path.suffix == ".parquet":
            table = pq.read_table(path)
        else:
            table = pyarrow.csv.read_csv(path, parse_options=TSV, convert_options=TYPES)
        columns = [table.column(name).cast(kind) for name, kind in COLUMNS.items()]
    except KeyError as missing:
        raise ValueError(f"{path}: {missing.args[0]}; found {', '.join(table.column_names)}. {expected}") from None
    except pa.ArrowException as error:
        raise ValueError(f"{path}: {error}. {expected}") from None
    for name, column in zip(COLUMNS, columns, strict=True):
        if empty := pc.sum(pc.is_null(column, nan_is_null=True)).as_py():
            raise ValueError(f"{path}: {empty:,} values of {name} are empty or not a number. {expected}")
    scores: dict[str, dict[str, float]] = {}
    for query_id, name, score in zip(*(column.to_pylist() for column in columns), strict=True):
        if scores.setdefault(query_id, {}).setdefault(name, score) != score:
            raise ValueError(f"{path}: query {query_id}, id {name} has two scores. Keep one of them.")
    return scores
