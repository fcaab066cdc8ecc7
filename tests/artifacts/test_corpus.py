"""The corpus on disk: by row, in order, by id, over the borders of batches and files."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from actors.artifacts import corpus

DOCUMENTS = [(f"id {row}", f"text of {row}\nwith ünïcode {'x' * row}") for row in range(23)]


@pytest.fixture(params=[0, 1, 2, 3, 11, 12, 13, 23])
def documents(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """As many documents as put the end on, before and behind the borders of a batch (3) and of a file (12)."""
    monkeypatch.setattr(corpus, "BATCH", 3)
    monkeypatch.setattr(corpus, "PART", 4)
    return DOCUMENTS[: request.param]


@pytest.fixture
def opened(documents: list[tuple[str, str]], tmp_path: Path) -> corpus.Corpus:
    counts = corpus.write(tmp_path, iter(documents))
    assert counts == {"documents": len(documents), "characters": sum(len(text) for _, text in documents)}
    assert len(list(tmp_path.glob("documents-*.arrow"))) == -(-len(documents) // 12)
    return corpus.open_corpus(tmp_path)


def test_every_row_at_random(opened: corpus.Corpus, documents: list[tuple[str, str]]) -> None:
    assert len(opened) == len(documents)
    assert [(opened.doc_id(row), opened.text(row)) for row in reversed(range(len(opened)))] == documents[::-1]


def test_every_span_in_order(opened: corpus.Corpus, documents: list[tuple[str, str]]) -> None:
    texts = [text for _, text in documents]
    assert list(opened.texts()) == texts
    for first in range(len(texts) + 1):
        for last in range(first, len(texts) + 2):
            assert list(opened.texts(first, last)) == texts[first:last]


def test_rows_of_ids(opened: corpus.Corpus, documents: list[tuple[str, str]]) -> None:
    rows = {doc_id: row for row, (doc_id, _) in enumerate(documents)}
    assert opened.rows_of(rows) == rows
    assert opened.rows_of(["id 2", "unknown", "id 2", ""]) == {key: 2 for key in ("id 2",) if "id 2" in rows}
    assert opened.rows_of([]) == {}


def test_the_same_documents_are_the_same_bytes(documents: list[tuple[str, str]], tmp_path: Path) -> None:
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
        corpus.write(tmp_path / name, iter(documents))
    files = [[p.read_bytes() for p in sorted((tmp_path / name).iterdir())] for name in ("1", "2")]
    assert files[0] == files[1]


def test_one_batch_is_held_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(corpus, "BATCH", 2)
    taken, written = 0, []

    def documents():
        nonlocal taken
        for document in DOCUMENTS[:7]:
            taken += 1
            yield document

    batches = corpus._batches(documents())
    for _ in range(3):
        written.append(next(batches))
        assert taken == 2 * len(written)


def test_refused_records_are_kept(tmp_path: Path) -> None:
    corpus.write_refused(tmp_path, [("a.jsonl:3", "no id", '{"text": 1}')])
    assert pq.read_table(tmp_path / "refused.parquet").to_pylist() == [
        {"where": "a.jsonl:3", "reason": "no id", "excerpt": '{"text": 1}'}
    ]
    corpus.write_refused(tmp_path, [])
    assert pq.read_table(tmp_path / "refused.parquet").num_rows == 0
