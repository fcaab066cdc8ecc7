"""Inverted lists: what k-means must hold to, and that rows get their nearest list however they are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from actors.algorithms import inverted_lists
from actors.algorithms.inverted_lists import How, assign, centroids, groups, number_of_lists


def unit(documents: int, dimension: int, seed: int = 0) -> NDArray[np.float16]:
    vectors = np.random.default_rng(seed).standard_normal((documents, dimension))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)


def test_far_topics_share_no_list() -> None:
    topics = np.eye(9, 16)
    of = np.arange(900) % 9
    vectors = topics[of] + 0.01 * np.random.default_rng(0).standard_normal((900, 16))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    found = centroids(vectors, How(36, 10, 900, 0))
    list_of = assign(vectors, found, 0, 900)
    assert found.shape == (36, 16) and found.dtype == np.float32
    assert len(set(zip(of, list_of, strict=True))) == len(set(list_of)) > 18
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-3)


@pytest.mark.parametrize(("documents", "lists"), [(1, 1), (2, 2), (50, 7), (50, 50), (400, 100)])
def test_there_are_as_many_as_asked_for_and_the_seed_decides(documents: int, lists: int) -> None:
    vectors = unit(documents, 8)
    how = How(lists, 4, 10**6, 3)
    assert centroids(vectors, how).shape == (lists, 8)
    assert centroids(vectors, how).tobytes() == centroids(vectors, how).tobytes()
    if lists < documents:
        assert centroids(vectors, how).tobytes() != centroids(vectors, How(lists, 4, 10**6, 4)).tobytes()


def test_training_documents_are_a_sample_but_one_for_each_list_at_least() -> None:
    vectors = unit(500, 8)
    assert centroids(vectors, How(40, 4, 10, 0)).shape == (40, 8)
    assert centroids(vectors, How(40, 4, 60, 0)).tobytes() != centroids(vectors, How(40, 4, 500, 0)).tobytes()


def test_equal_documents_are_no_trouble() -> None:
    vectors = np.repeat(unit(3, 8), 100, axis=0)
    found = centroids(vectors, How(20, 4, 300, 0))
    assert found.shape == (20, 8) and np.isfinite(found).all()
    list_of = assign(vectors, found, 0, 300)
    assert [len(set(list_of[row : row + 100])) for row in (0, 100, 200)] == [1, 1, 1]


def test_the_nearest_list_is_found_where_all_cells_are_looked_at() -> None:
    vectors, found = unit(700, 12), unit(60, 12, seed=1).astype(np.float32)  # 8 cells
    nearest = (vectors.astype(np.float64) @ found.astype(np.float64).T).argmax(axis=1)
    np.testing.assert_array_equal(assign(vectors, found, 0, 700), nearest)


def test_most_rows_get_their_nearest_list_where_they_are_not() -> None:
    vectors, found = unit(2000, 12), unit(900, 12, seed=1).astype(np.float32)  # 30 cells
    nearest = (vectors.astype(np.float64) @ found.astype(np.float64).T).argmax(axis=1)
    assert (assign(vectors, found, 0, 2000) == nearest).mean() > 0.9


def test_of_equal_lists_the_first() -> None:
    found = np.repeat(unit(5, 8).astype(np.float32), 4, axis=0)
    assert set(assign(unit(300, 8, seed=2), found, 0, 300)) <= set(range(0, 20, 4))


def test_however_rows_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inverted_lists, "CHUNK", 64)
    vectors, found = unit(500, 12), unit(100, 12, seed=1).astype(np.float32)
    whole = assign(vectors, found, 0, 500)
    for first, last in ((0, 64), (64, 500), (100, 130), (37, 400), (499, 500), (128, 128)):
        np.testing.assert_array_equal(assign(vectors, found, first, last), whole[first:last])


def test_what_is_not_finite_is_named() -> None:
    vectors = unit(300, 8)
    vectors[123, 4] = np.nan
    for call in (lambda: centroids(vectors, How(5, 4, 300, 0)), lambda: assign(vectors, np.eye(8, dtype=np.float32), 0, 300)):
        with pytest.raises(ValueError, match="vector of row 123 holds NaN"):
            call()


def test_more_lists_than_documents_are_refused() -> None:
    with pytest.raises(ValueError, match="lists=4 of 3 documents: expected from 1"):
        centroids(unit(3, 8), How(4, 4, 10, 0))


def test_the_number_of_lists_grows_slower_than_the_documents() -> None:
    assert [number_of_lists(n) for n in (1, 2, 1000, 10**6)] == [1, 2, 63, 3981]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(1, 100))
def test_groups_are_whole_lists_and_no_larger_than_they_must_be(sizes: list[int], size: int) -> None:
    offsets = np.cumsum([0, *sizes])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inverted_lists, "GROUP", size)
        bounds = groups(offsets)
    assert bounds[0] == 0 and bounds[-1] == len(sizes) and (np.diff(bounds) > 0).all()
    held = np.diff(offsets[bounds])
    assert (held[:-1] >= size).all()
    for first, last in zip(bounds[:-1], bounds[1:], strict=True):
        assert offsets[last - 1] - offsets[first] < size


@given(st.lists(st.integers(0, 20), min_size=1, max_size=12), st.data())
def test_shares_add_up_and_fit(sizes: list[int], data: st.DataObject) -> None:
    used = sum(size > 0 for size in sizes)
    if used:
        total = data.draw(st.integers(used, sum(sizes)))
        shares = inverted_lists._shares(np.array(sizes), total)
        assert shares.sum() == total
        assert all(min(1, size) <= share <= size for share, size in zip(shares, sizes, strict=True))
