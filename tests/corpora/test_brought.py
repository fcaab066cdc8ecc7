"""What is brought: taken as it is, put right and counted, or refused with the file, the place and a remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.corpora import brought
from actors.corpora.records import BadInput

DOC_IDS = pa.chunked_array([["a", "b"], ["c d", "e"]])


def saved(folder: Path, array: Any) -> str:
    np.save(folder / "x.npy", np.asarray(array))
    return str(folder / "x.npy")


def written(folder: Path, text: str) -> str:
    (folder / "x.tsv").write_text(text)
    return str(folder / "x.tsv")


def as_parquet(folder: Path, **columns: Any) -> str:
    pq.write_table(pa.table(columns), folder / "x.parquet")
    return str(folder / "x.parquet")


# --- vectors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_vectors_are_made_unit_length_and_those_that_were_not_are_counted(dtype: type, tmp_path: Path) -> None:
    path = saved(tmp_path, np.array([[1, 0], [0, 2], [0.6, 0.8], [3e-4, 4e-4]], dtype))
    found = brought.vectors(path, 4)
    assert isinstance(found, np.memmap)
    units = brought.units(found[1:], 1, path)
    assert units.vectors.dtype == np.float32 and units.scaled == 2
    assert np.allclose(units.vectors, [[0, 1], [0.6, 0.8], [0.6, 0.8]], atol=2e-3)


def test_unit_vectors_of_half_precision_are_not_counted(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).standard_normal((300, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert brought.units(vectors.astype(np.float16), 0, "x").scaled == 0


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((3, 2)), r"float64 \(3, 2\); expected floating numbers \[4, any\], a line for each document"),
        (np.ones(4), r"float64 \(4,\); expected floating"),
        (np.ones((4, 0)), r"float64 \(4, 0\); expected floating"),
        (np.ones((4, 2), int), r"int64 \(4, 2\); expected floating"),
        (np.array(["a"] * 4)[:, None], r"<U1 \(4, 1\); expected floating"),
    ],
)
def test_arrays_that_do_not_fit(array: np.ndarray, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^embeddings\.path=.*x\.npy: " + message):
        brought.vectors(saved(tmp_path, array), 4)


def test_files_that_are_no_arrays(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no such file"):
        brought.vectors(str(tmp_path / "none.npy"), 4)
    for content in (b"", b"text", b"\x93NUMPY\x01\x00"):
        (tmp_path / "x.npy").write_bytes(content)
        with pytest.raises(BadInput, match=r"no \.npy file of numbers"):
            brought.vectors(str(tmp_path / "x.npy"), 4)


@pytest.mark.parametrize(("value", "what"), [(0.0, "is 0"), (np.nan, "not finite"), (np.inf, "not finite")])
def test_a_vector_without_a_direction_is_named(value: float, what: str) -> None:
    block = np.full((3, 2), 1.0, np.float32)
    block[1] = value
    with pytest.raises(BadInput, match=f"embeddings.path=x: the vector of row 11 .*{what}"):
        brought.units(block, 10, "x")


# --- neighbours -------------------------------------------------------------------------------------------------------

LINES = np.array([[2, 0, 1], [1, -1, 3], [-1, -1, -1], [3, 2, 0]])  # of the rows 0..3 of 5


def test_neighbours_without_themselves_and_without_gaps() -> None:
    found = brought.edges(LINES, 0, 5, 2, "x")
    assert found.neighbours.dtype == np.int32
    assert found.neighbours.tolist() == [[2, 1], [3, -1], [-1, -1], [2, 0]]
    values = np.arange(12, dtype=np.float16).reshape(4, 3)
    assert brought.taken(values, found, 0, "y").tolist() == [[0, 2], [5, 0], [0, 0], [10, 11]]


def test_a_block_knows_its_own_rows() -> None:
    assert brought.edges(LINES[1:], 1, 5, 2, "x").neighbours.tolist() == brought.edges(LINES, 0, 5, 2, "x").neighbours.tolist()[1:]
    assert brought.edges(LINES[:1], 2, 5, 3, "x").neighbours.tolist() == [[0, 1, -1]]


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32])
def test_any_whole_numbers(dtype: type, tmp_path: Path) -> None:
    path = saved(tmp_path, np.array([[1, 2], [0, 2], [0, 1]], dtype))
    found = brought.neighbours(path, 3, 2)
    assert brought.edges(found[:], 0, 3, 2, path).neighbours.tolist() == [[1, 2], [0, 2], [0, 1]]
    with pytest.raises(BadInput, match=r"2 neighbours for each document; expected at least graph\.k=3\. Set graph\.k=2"):
        brought.neighbours(path, 3, 3)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ([1, 5], "row 10 has the neighbour 5; expected rows of the corpus, 0 to 4"),
        ([-2, 1], "row 10 has the neighbour -2; expected"),
        ([3, 3], "row 10 has the neighbour 3 twice"),
    ],
)
def test_neighbours_that_cannot_be(line: list[int], message: str) -> None:
    with pytest.raises(BadInput, match=r"graph\.path=x: " + message):
        brought.edges(np.array([line]), 10, 5, 2, "x")


def test_similarities_of_the_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brought, "LINES", 2)
    vectors = np.random.default_rng(1).standard_normal((5, 8)).astype(np.float16)
    neighbours = brought.edges(LINES, 0, 5, 2, "x").neighbours
    whole = vectors.astype(np.float32) @ vectors.astype(np.float32).T
    expected = [[whole[row, n] if n >= 0 else 0 for n in near] for row, near in enumerate(neighbours.tolist())]
    assert np.allclose(brought.cosines(neighbours, 0, vectors), expected, atol=1e-5)
    assert np.allclose(brought.cosines(neighbours[1:], 1, vectors), expected[1:], atol=1e-5)


def test_similarities_that_are_not_finite() -> None:
    values = np.ones((4, 3))
    values[2] = np.nan  # of no edge
    brought.taken(values, brought.edges(LINES, 0, 5, 2, "x"), 0, "y")
    values[3, 1] = np.inf
    with pytest.raises(BadInput, match=r"graph\.similarities=y: row 3 holds a value that is not finite"):
        brought.taken(values, brought.edges(LINES, 0, 5, 2, "x"), 0, "y")


# --- groups -----------------------------------------------------------------------------------------------------------


def test_groups_by_row(tmp_path: Path) -> None:
    found = brought.membership(saved(tmp_path, [1, -1, 0, -1]), DOC_IDS, 4)
    assert found.group_of.dtype == np.int32
    assert (found.group_of.tolist(), found.alone, found.unknown) == ([1, 2, 0, 3], 2, 0)


def test_groups_by_id(tmp_path: Path) -> None:
    """In any order; "z" is none of the corpus, and "b" has no line."""
    expected = ([0, 2, 1, 0], 1, 1)
    for path in (
        written(tmp_path, "doc_id\tgroup\nz\t0\ne\t0\nc d\t1\na\t0\n"),
        as_parquet(tmp_path, group=pa.array([0, 0, 1, 0], pa.int32()), doc_id=["z", "e", "c d", "a"], other=[1, 2, 3, 4]),
    ):
        found = brought.membership(path, DOC_IDS, 4)
        assert (found.group_of.tolist(), found.alone, found.unknown) == expected


def test_ids_of_digits_are_no_numbers(tmp_path: Path) -> None:
    found = brought.membership(written(tmp_path, "doc_id\tgroup\n007\t0\n7\t1\n"), pa.chunked_array([["7", "007"]]), 2)
    assert found.group_of.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("doc_id\tgroup\nz\t0\n", "none of its documents is in the corpus, which holds 'a'"),
        ("doc_id\tgroup\na\t0\na\t1\n", "doc_id 'a' is there more than once"),
        ("doc_id\tgroup\na\t0\nb\t2\n", "no document is in group 1, and groups go up to 2"),
        ("doc_id\tgroup\na\t-3\nb\t0\n", "the group -3; expected numbers from 0"),
        ("doc_id\tgroup\na\tx\n", "Expected doc_id, group"),
        ("doc_id\tgroup\na\t\n", "1 values of group are empty"),
        ("doc\tgroup\na\t0\n", "found doc, group. Expected doc_id, group"),
        ("", "Expected doc_id, group, in Parquet or separated by TABs"),
    ],
)
def test_groups_that_cannot_be(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^groups\.path=.*" + message):
        brought.membership(written(tmp_path, text), DOC_IDS, 4)


def test_an_array_of_groups_of_another_length(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"groups\.path=.*expected integer numbers \[4\]"):
        brought.membership(saved(tmp_path, [0, 0, 0]), DOC_IDS, 4)


# --- summaries --------------------------------------------------------------------------------------------------------


def test_summaries_in_any_order(tmp_path: Path) -> None:
    expected = [
        {"concept": "ships", "summary": 'of "sail"'},
        {"concept": None, "summary": None},
        {"concept": "b", "summary": "two"},
    ]
    for path in (
        written(tmp_path, 'group\tconcept\tsummary\n2\tb\ttwo\n0\tships\tof "sail"\n'),
        as_parquet(tmp_path, summary=["two", 'of "sail"'], concept=["b", "ships"], group=[2, 0]),
    ):
        assert brought.summaries(path, 3).to_pylist() == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3\tc\ts", "the group 3; expected 0 to 2"),
        ("-1\tc\ts", "the group -1; expected 0 to 2"),
        ("0\tc\ts", "group 0 is there more than once"),
        ("1\t \ts", "group 1 has an empty concept"),
        ("1\tc\t", "group 1 has an empty summary"),
        ("1\tc", "Expected group, concept, summary"),
    ],
)
def test_summaries_that_cannot_be(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^summaries\.path=.*" + message):
        brought.summaries(written(tmp_path, f"group\tconcept\tsummary\n0\ta\tb\n{line}\n"), 3)


# --- questions --------------------------------------------------------------------------------------------------------


def test_vectors_of_questions(tmp_path: Path) -> None:
    for vector in ([[3.0, 4.0], [0.0, 2.0]], pa.array([[3.0, 4.0], [0.0, 2.0]], pa.list_(pa.float64(), 2))):
        texts, vectors = brought.question_vectors(as_parquet(tmp_path, text=[" why?\n", "how?"], vector=vector))
        assert texts == ["why?", "how?"]
        assert np.allclose(vectors, [[0.6, 0.8], [0, 1]])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": ["a", "b"], "vector": [[1.0], [1.0, 2.0]]}, r"vectors of \[1, 2\] values; expected .* all of one dimension"),
        ({"text": ["a"], "vector": [[0.0, 0.0]]}, "the vector of row 0 is 0"),
        ({"text": ["a"]}, "found text. Expected text, vector"),
        ({"text": ["a"], "vector": ["b"]}, "Expected text, vector"),
    ],
)
def test_vectors_of_questions_that_cannot_be(columns: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^embeddings\.queries=.*" + message):
        brought.question_vectors(as_parquet(tmp_path, **columns))
