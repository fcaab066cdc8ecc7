"""Runs as trec_eval reads them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from actors.artifacts import run as run_files
from actors.artifacts.run import Journal, Result
from actors.corpora import trec_run
from actors.corpora.records import BadInput


def rankings(path: Path) -> dict[str, list[str]]:
    run = trec_run.read(path)
    return {query_id: [run.doc_ids[place] for place in places] for query_id, places in run.rankings.items()}


def write(folder: Path, text: str) -> Path:
    path = folder / "their.run"
    path.write_text(text, encoding="utf-8")
    return path


def test_score_decides_then_rank_then_place(tmp_path: Path) -> None:
    lines = ["q2 Q0 d1 1 0.5 x", "q1 Q0 d3 1 1.0 x", "q2  Q0  d9   3  7e-1  x", "q1 Q0 d1 2 2.0 x", "", "q2 Q0 d3 2 0.5 x"]
    lines.append("q2 Q0 d2 2 0.5 x")
    path = write(tmp_path, "\n".join(lines))
    assert rankings(path) == {"q2": ["d9", "d1", "d3", "d2"], "q1": ["d1", "d3"]}
    assert trec_run.read(path).doc_ids == ["d1", "d3", "d9", "d2"]


def test_tabs_let_ids_hold_spaces(tmp_path: Path) -> None:
    assert rankings(write(tmp_path, "q 1\tQ0\ta doc\t1\t1.0\tx\nq2 Q0 b 1 1.0 x\r\n")) == {"q 1": ["a doc"], "q2": ["b"]}


def test_compressed_and_empty(tmp_path: Path) -> None:
    packed = tmp_path / "run.gz"
    packed.write_bytes(gzip.compress(b"q Q0 d 1 1 x\n"))
    assert rankings(packed) == {"q": ["d"]}
    assert rankings(write(tmp_path, "\n")) == {}


def test_our_own_run_comes_back(tmp_path: Path) -> None:
    answers = {"q one": ["doc 2", "doc 0", "doc 11"], "q2": [], "q3": ["doc 1"]}
    Journal(tmp_path).append([Result(query_id, doc_ids, [], [], {}, {}) for query_id, doc_ids in answers.items()])
    run_files.write(tmp_path, list(answers), "tag")
    assert rankings(tmp_path / "run.tsv") == {query_id: doc_ids for query_id, doc_ids in answers.items() if doc_ids}


@pytest.mark.parametrize(
    "line", ["q Q0 d 1 1.0", "q Q0 d 1 1.0 x y", "q Q0 d one 1.0 x", "q Q0 d 1 high x", "q Q0 d 1 nan x", "q Q0 d 1 inf x",
             f"q Q0 d {2**63} 1.0 x", "q\tQ0\td\t1\t1.0"],
)  # fmt: skip
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, f"q Q0 first 1 1.0 x\n{line}\n")
    with pytest.raises(BadInput, match=rf"first_stage\.path={path}: line 2 is .*; expected query_id Q0 doc_id rank score tag"):
        trec_run.read(path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(b"q Q0 d\xff 1 1.0 x\n")
    with pytest.raises(BadInput, match="line 1 is .*not UTF-8"):
        trec_run.read(tmp_path / "run")


def test_a_document_twice(tmp_path: Path) -> None:
    path = write(tmp_path, "q1 Q0 d 1 1 x\nq2 Q0 d 1 1 x\nq2 Q0 e 2 0.5 x\nq2 Q0 e 3 0.4 x\n")
    with pytest.raises(BadInput, match=f"{path}: query q2 has document e more than once"):
        trec_run.read(path)
