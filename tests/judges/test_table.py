"""Scores that were brought in: by doc_id or group number, what is missing is counted, what is wrong is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.index import Index
from actors.judges.judge import GROUPS, Ask, Scores
from actors.judges.table import TableJudge, read_table

HEAD = "query_id\tid\tscore\n"


def tsv(folder: Path, lines: str, head: str = HEAD) -> str:
    (folder / "scores.tsv").write_text(head + lines)
    return str(folder / "scores.tsv")


def test_documents_by_their_id_and_what_is_missing_is_counted(toy_index: Index, tmp_path: Path) -> None:
    judge = TableJudge(tsv(tmp_path, "q1\tdoc 3\t0.5\nq1\tdoc 0\t-2\nq2\tdoc 1\t9\n"), missing=-7.0)
    asks = [Ask(str(toy_index.folder), query_id, "", [0, 1, 3]) for query_id in ("q1", "q2", "q3")]
    assert asyncio.run(judge.scores(asks)) == [
        Scores([-2.0, -7.0, 0.5], "ok", {"missing": 1}),
        Scores([-7.0, 9.0, -7.0], "ok", {"missing": 2}),
        Scores([-7.0] * 3, "ok", {"missing": 3}),
    ]


def test_groups_by_their_number(toy_index: Index, tmp_path: Path) -> None:
    judge = TableJudge(tsv(tmp_path, "q1\t3\t0.5\nq1\t0\t0.25\n"), missing=0.0)
    assert asyncio.run(judge.scores([Ask(str(toy_index.folder), "q1", "", [0, 3], GROUPS)])) == [Scores([0.25, 0.5], "ok", {})]


def test_parquet_and_tsv_are_the_same(tmp_path: Path) -> None:
    table = pa.table({"query_id": [1, 1], "id": [7, 8], "score": pa.array([1, 2], pa.int32()), "more": ["x", "y"]})
    pq.write_table(table, tmp_path / "scores.parquet")
    path = tsv(tmp_path, "x\t1\t1\t7\ny\t2\t1\t8\n", head="more\tscore\tquery_id\tid\n")
    assert read_table(tmp_path / "scores.parquet") == read_table(Path(path)) == {"1": {"7": 1.0, "8": 2.0}}


@pytest.mark.parametrize("name", ['"', '"a', 'a"b"', "NA", "null", "007", "a b", "#x", "1e5"])
def test_ids_are_taken_as_they_are(tmp_path: Path, name: str) -> None:
    assert read_table(Path(tsv(tmp_path, f"{name}\t{name}\t1\nq\td\t2\n"))) == {name: {name: 1.0}, "q": {"d": 2.0}}


def test_a_pair_may_be_there_twice_but_not_with_two_scores(tmp_path: Path) -> None:
    assert read_table(Path(tsv(tmp_path, "q\td\t1\nq\td\t1.0\n"))) == {"q": {"d": 1.0}}
    path = tsv(tmp_path, "q\td\t1\nq\td\t2\n")
    with pytest.raises(ValueError, match=f"{path}: query q, id d has two scores. Keep one of them."):
        read_table(Path(path))


@pytest.mark.parametrize(
    ("lines", "head", "says"),
    [
        ("q\td\n", "query_id\tid\n", 'Field "score" does not exist in schema; found query_id, id.'),
        ("q\td\tgood\n", HEAD, "good"),
        ("q\td\n", HEAD, "Expected 3 columns, got 2"),
        ("q\td\t\n", HEAD, "1 values of score are empty or not a number"),
        ("q\td\tnan\nq\te\tnan\n", HEAD, "2 values of score are empty or not a number"),
        ("", "", "Empty CSV"),
    ],
)
def test_a_wrong_table_is_named_with_what_was_expected(tmp_path: Path, lines: str, head: str, says: str) -> None:
    path = tsv(tmp_path, lines, head)
    with pytest.raises(ValueError) as refused:
        read_table(Path(path))
    assert str(refused.value).startswith(f"{path}: ") and says in str(refused.value)
    assert "Expected query_id, id, score, in Parquet or separated by TABs" in str(refused.value)


def test_empty_ids_in_parquet_are_refused(tmp_path: Path) -> None:
    table = pa.table({"query_id": ["q"], "id": pa.array([None], pa.string()), "score": [1.0]})
    pq.write_table(table, tmp_path / "scores.parquet")
    with pytest.raises(ValueError, match="1 values of id are empty"):
        read_table(tmp_path / "scores.parquet")


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match="nothing.tsv: no such file. Give the table's path, absolute, as reranker.path or navigator.path",
    ):
        TableJudge(str(tmp_path / "nothing.tsv"), 0.0)
