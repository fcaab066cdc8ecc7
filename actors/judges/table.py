"""Relevance from a table that was brought in: the scores of a paper's run, of another system, or of a test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from actors.index import open_index
from actors.judges.judge import OK, Ask, Scores

COLUMNS = ("query_id", "id", "score")


class TableJudge:
    """Looks scores up by query and document id, or by query and group number."""

    def __init__(self, path: str, of: str, missing: float) -> None:
        """of: "documents" (id is a doc_id) or "groups" (id is a group number). missing: the score of what the table lacks (counted).

        Raises ValueError naming the file when it is missing, lacks a column, or holds a pair twice.
        """
        self._scores = read_table(Path(path))
        self._of = of
        self._missing = missing

    def scores(self, asks: Sequence[Ask]) -> list[Scores]:
        return [self._look_up(ask) for ask in asks]

    def _look_up(self, ask: Ask) -> Scores:
        corpus = open_index(ask.index).corpus if self._of == "documents" else None
        known = self._scores.get(ask.query_id, {})
        found = [known.get(str(row) if corpus is None else corpus.doc_id(row)) for row in ask.rows]
        missing = found.count(None)
        return Scores([self._missing if s is None else s for s in found], OK, {"missing": missing} if missing else {})


def read_table(path: Path) -> dict[str, dict[str, float]]:
    """query_id -> id -> score, from a Parquet file or a TAB-separated file with a header line."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file. Give the table's path, absolute, as reranker.path or navigator.path.")
    if path.suffix == ".parquet":
        table = pq.read_table(path)
    else:
        types = {"query_id": pa.string(), "id": pa.string(), "score": pa.float64()}
        options = pyarrow.csv.ConvertOptions(column_types=types)
        table = pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(delimiter="\t"), convert_options=options)
    if missing := [name for name in COLUMNS if name not in table.column_names]:
        raise ValueError(
            f"{path}: column {missing[0]} is missing; expected {', '.join(COLUMNS)}, found {', '.join(table.column_names)}."
        )
    scores: dict[str, dict[str, float]] = {}
    for query_id, name, score in zip(*(table.column(c).to_pylist() for c in COLUMNS), strict=True):
        known = scores.setdefault(str(query_id), {})
        if known.setdefault(str(name), float(score)) != float(score):
            raise ValueError(f"{path}: query {query_id}, id {name} has two scores. Keep one of them.")
    return scores
