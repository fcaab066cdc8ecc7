from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from actors.algorithms import knn
from actors.algorithms.knn import SPARE, nearest, nearest_of, recall


def brute_force(vectors: NDArray[np.floating], k: int) -> tuple[NDArray[np.int32], NDArray[np.float16]]:
    """Every inner product in double precision, sorted by (-product, row)."""
    wide = vectors.astype(np.float64)
    products = wide @ wide.T
    np.fill_diagonal(products, -np.inf)
    rows = np.full((len(vectors), k), -1, np.int32)
    values = np.zeros((len(vectors), k), np.float16)
    for row, product in enumerate(products):
        order = np.lexsort((np.arange(len(vectors)), -product))[: min(k, len(vectors) - 1)]
        rows[row, : len(order)], values[row, : len(order)] = order, product[order]
    return rows, values


def unit(documents: int, dimension: int, seed: int = 0) -> NDArray[np.float16]:
    vectors = np.random.default_rng(seed).standard_normal((documents, dimension))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)


def test_by_hand() -> None:
    vectors = np.array([[1, 0], [0, 1], [0.75, 0.5], [1, 0]], np.float16)
    neighbours, similarities = nearest(vectors, 0, 4, 2)
    assert neighbours.tolist() == [[3, 2], [2, 0], [0, 3], [0, 2]]
    assert similarities.tolist() == [[1, 0.75], [0.5, 0], [0.75, 0.75], [1, 0.75]]
    assert (neighbours.dtype, similarities.dtype) == (np.int32, np.float16)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_equals_brute_force_with_ties_however_it_is_cut(data: st.DataObject) -> None:
    documents = data.draw(st.integers(1, 90))
    values = data.draw(st.sampled_from([1, 2, 3]))  # few values: duplicates, zero vectors, ties beyond the spare candidates
    vectors = np.random.default_rng(data.draw(st.integers(0, 999))).integers(0, values, (documents, 3)).astype(np.float16)
    k, base_rows = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 100))
    first = data.draw(st.integers(0, documents))
    last = data.draw(st.integers(first, documents))
    neighbours, similarities = nearest(vectors, first, last, k, base_rows=base_rows)
    rows, products = brute_force(vectors, k)
    np.testing.assert_array_equal(neighbours, rows[first:last])
    np.testing.assert_array_equal(similarities, products[first:last])


def test_same_bytes_for_every_cut_of_real_sized_vectors(tmp_path: Path) -> None:
    vectors = unit(500, 384)
    vectors[200:230], vectors[400:405] = vectors[3], 0
    np.save(tmp_path / "vectors.npy", vectors)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    whole = nearest(vectors, 0, 500, 16)
    for step, base_rows in ((500, 333), (17, 500), (130, 64)):
        parts = [nearest(mapped, row, min(row + step, 500), 16, base_rows=base_rows) for row in range(0, 500, step)]
        assert np.concatenate([part[0] for part in parts]).tobytes() == whole[0].tobytes()
        assert np.concatenate([part[1] for part in parts]).tobytes() == whole[1].tobytes()
    np.testing.assert_array_equal(whole[0], brute_force(vectors, 16)[0])


def test_near_ties_are_ordered_by_the_exact_product() -> None:
    # The products differ by 2**-26 and less, far below what single precision tells apart at 1.
    rng = np.random.default_rng(5)
    vectors = np.full((200, 64), 0.125, np.float16)
    vectors[:, :8] += (rng.integers(-2, 3, (200, 8)) * 2.0**-13).astype(np.float16)
    np.testing.assert_array_equal(nearest(vectors, 0, 200, 16)[0], brute_force(vectors, 16)[0])


def test_float32_vectors_are_not_rounded_first() -> None:
    vectors = np.random.default_rng(2).standard_normal((300, 20)).astype(np.float32)
    neighbours, similarities = nearest(vectors, 0, 300, 5, base_rows=70)
    np.testing.assert_array_equal(neighbours, brute_force(vectors, 5)[0])
    np.testing.assert_array_equal(similarities, brute_force(vectors, 5)[1])


def test_fewer_documents_than_k() -> None:
    assert nearest(np.ones((1, 2), np.float16), 0, 1, 3)[0].tolist() == [[-1, -1, -1]]
    neighbours, similarities = nearest(np.array([[1.0], [-1.0]], np.float16), 0, 2, 3)
    assert neighbours.tolist() == [[1, -1, -1], [0, -1, -1]]
    assert similarities.tolist() == [[-1, 0, 0], [-1, 0, 0]]
    assert nearest(np.ones((3, 2), np.float16), 3, 3, 4)[0].shape == (0, 4)


def test_many_duplicates_take_the_smallest_rows() -> None:
    documents = 3 * SPARE
    neighbours, _ = nearest(np.zeros((documents, 4), np.float16), 0, documents, 2, base_rows=7)
    assert neighbours[:3].tolist() == [[1, 2], [0, 2], [0, 1]]
    assert (neighbours[3:] == [0, 1]).all()


def test_threads_are_set_back() -> None:
    before = faiss.omp_get_max_threads()
    with pytest.raises(ValueError, match="row 4 holds NaN"):
        nearest(np.array([[0.0]] * 4 + [[np.nan]], np.float16), 0, 2, 1, threads=before + 1)
    assert faiss.omp_get_max_threads() == before


@pytest.mark.parametrize(("first", "last", "k"), [(0, 4, 1), (2, 1, 1), (-1, 2, 1), (0, 3, 0)])
def test_wrong_range_is_refused(first: int, last: int, k: int) -> None:
    with pytest.raises(ValueError, match="expected k >= 1"):
        nearest(np.ones((3, 2), np.float16), first, last, k)


def test_recall_by_hand() -> None:
    exact = np.array([[1, 2], [0, -1]], np.int32)
    assert recall(np.array([[2, 7], [0, -1]], np.int32), exact) == pytest.approx(2 / 3)
    assert recall(np.array([[2, 1], [5, -1]], np.int32), exact) == pytest.approx(2 / 3)
    assert recall(np.full((2, 2), -1, np.int32), np.full((2, 2), -1, np.int32)) == 1.0


def test_some_rows_in_any_order() -> None:
    vectors = unit(300, 20)
    whole, rows = nearest(vectors, 0, 300, 4), np.array([250, 3, 3, 77])
    found = nearest_of(vectors, rows, 4, base_rows=64)
    np.testing.assert_array_equal(found[0], whole[0][rows])
    np.testing.assert_array_equal(found[1], whole[1][rows])


def test_any_search_that_is_near_enough_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU proposes comes in another order and with other last bits."""
    vectors = unit(400, 48)
    vectors[::9] = vectors[4]
    expected = nearest(vectors, 0, 400, 6)

    def other(queries: NDArray[np.float32], base: NDArray[np.float32], asked: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        products = (base[:, ::-1].astype(np.float64) @ queries[:, ::-1].astype(np.float64).T).T.astype(np.float32)
        at = np.argsort(-products, axis=1)[:, :asked]
        return np.take_along_axis(products, at, axis=1), at

    monkeypatch.setattr(knn, "_gpu_search", lambda: other)
    for found, wanted in zip(nearest(vectors, 0, 400, 6, base_rows=90, gpu=True), expected, strict=True):
        assert found.tobytes() == wanted.tobytes()
