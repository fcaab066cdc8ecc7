from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from actors.algorithms import regroup
from actors.algorithms.knn import faiss_threads
from actors.algorithms.partition import by_first_row
from actors.algorithms.regroup import KMeans, assign, at_random, by_kmeans, centres

HOW = KMeans(iterations=25, training_documents=10_000, seed=3)


def of_length_1(vectors: NDArray[np.floating]) -> NDArray[np.float16]:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)


@pytest.fixture(scope="module")
def planted() -> tuple[NDArray[np.float16], NDArray[np.int32]]:
    """600 documents close around 6 directions at right angles, 100 each, in no order; and the direction of each."""
    draw = np.random.default_rng(5)
    truth = draw.permutation(np.repeat(np.arange(6), 100))
    return of_length_1(np.eye(24)[truth] + 0.05 * draw.standard_normal((600, 24))), by_first_row(truth)


@pytest.fixture(scope="module")
def anywhere() -> NDArray[np.float16]:
    """900 documents without structure, the last 300 of them copies, so that many similarities are equal."""
    vectors = of_length_1(np.random.default_rng(6).standard_normal((600, 32)))
    return np.concatenate([vectors, vectors[:300]])


# --- at random --------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(0, 99))
def test_at_random_keeps_the_sizes(labels: list[int], seed: int) -> None:
    group_of = by_first_row(np.array(labels))
    found = at_random(group_of, seed)
    assert found.dtype == np.int32
    assert sorted(np.bincount(found)) == sorted(np.bincount(group_of))
    assert found.tolist() == by_first_row(found).tolist() == at_random(group_of, seed).tolist()


def test_at_random_tears_groups_apart_differently_with_every_seed() -> None:
    group_of = by_first_row(np.repeat(np.arange(100), 10))
    first, second = at_random(group_of, 0), at_random(group_of, 1)
    assert (first != second).any()
    for found in (first, second):  # of 9 others in its group a document keeps 9 * 9 / 999 = 0.08
        kept = (found[:, None] == found) & (group_of[:, None] == group_of)
        assert kept.sum() / 1000 - 1 < 0.3
    assert group_of.tolist() == np.repeat(np.arange(100), 10).tolist(), "what it was given is as it was"


# --- k-means ----------------------------------------------------------------------------------------------------------


def test_assign_by_hand() -> None:
    towards = np.array([[1, 0], [0, 1], [0, 1], [-1, 0]], np.float16)
    vectors = np.array([[0.8, 0.6], [0.6, 0.8], [-1, 0], [0, -1], [0.7071, 0.7071]], np.float16)
    assert assign(vectors, towards).tolist() == [0, 1, 3, 0, 0]  # the last two: equal ones, the first
    assert assign(vectors[:0], towards).tolist() == []


def test_assign_is_the_nearest_centre_of_all(anywhere: NDArray[np.float16]) -> None:
    towards = of_length_1(np.random.default_rng(7).standard_normal((50, 32)))
    exact = anywhere.astype(np.float64) @ towards.astype(np.float64).T
    np.testing.assert_array_equal(assign(anywhere, towards), exact.argmax(axis=1))


@pytest.mark.parametrize("rows", [1, 7, 64, 899])
@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_and_threads_do_not_change_the_result(rows: int, threads: int, anywhere: NDArray[np.float16]) -> None:
    towards = anywhere[:80]
    with faiss_threads(threads):
        np.testing.assert_array_equal(assign(anywhere, towards, rows), assign(anywhere, towards))


def test_double_precision_decides_what_single_cannot_tell() -> None:
    """Products that differ by 2**-26: float32 holds both as 1, and the larger one is named last."""
    d, small = 64, 2.0**-13
    towards = np.zeros((2, d), np.float16)
    towards[:, 0] = 1
    towards[1, 1] = small
    vectors = np.zeros((40, d), np.float16)
    vectors[:, 0], vectors[:, 1] = 1, small
    assert np.float32(1 + small * small) == np.float32(1)
    assert assign(vectors, towards).tolist() == [1] * 40


def test_planted_groups_are_found(planted: tuple[NDArray[np.float16], NDArray[np.int32]]) -> None:
    vectors, truth = planted
    towards = centres(vectors, 6, HOW)
    assert (towards.shape, towards.dtype) == ((6, 24), np.float16)
    np.testing.assert_allclose(np.linalg.norm(towards.astype(float), axis=1), 1, atol=1e-3)
    found = [by_kmeans(vectors, 6, replace(HOW, seed=seed)) for seed in range(10)]  # some starts have two in one group
    assert any((each == truth).all() for each in found)
    assert by_kmeans(vectors, 600, HOW).tolist() == list(range(600)), "as many groups as documents: each alone"
    assert set(by_kmeans(vectors, 1, HOW).tolist()) == {0}


def test_planted_groups_are_found_from_a_sample(planted: tuple[NDArray[np.float16], NDArray[np.int32]]) -> None:
    vectors, truth = planted
    found = [by_kmeans(vectors, 6, KMeans(25, 60, seed)) for seed in range(20)]
    assert any((each == truth).all() for each in found)


class Watched(np.ndarray):
    """Counts the rows of the largest part that is taken of it."""

    largest = 0

    def __getitem__(self, key: object) -> NDArray[np.float16]:
        part = np.asarray(super().__getitem__(key))  # type: ignore[call-overload]
        Watched.largest = max(Watched.largest, len(part))
        return part


@pytest.mark.parametrize(("training", "groups", "largest"), [(100, 20, 100), (10, 70, 70)])
def test_no_more_than_the_sample_and_a_block_is_held(
    training: int, groups: int, largest: int, anywhere: NDArray[np.float16], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Watched, "largest", 0)
    how = KMeans(5, training, 0)
    towards = centres(anywhere.view(Watched), groups, how)
    assert Watched.largest == largest
    assign(anywhere.view(Watched), towards, 128)
    assert Watched.largest == max(largest, 128)


def test_the_seed_decides(anywhere: NDArray[np.float16]) -> None:
    for how in (HOW, KMeans(5, 300, 3)):  # with all documents, and with a sample of them
        with faiss_threads(2):
            first = by_kmeans(anywhere, 60, how)
        np.testing.assert_array_equal(by_kmeans(anywhere, 60, how), first)
        assert (by_kmeans(anywhere, 60, replace(how, seed=4)) != first).any()


def test_a_group_that_nothing_is_nearest_to_is_left_out(anywhere: NDArray[np.float16]) -> None:
    """Three distinct documents cannot make ten groups."""
    found = by_kmeans(np.repeat(anywhere[:3], 20, axis=0), 10, HOW)
    assert found.dtype == np.int32
    assert 1 < len(np.bincount(found)) < 10 and np.bincount(found).all()
    assert found.tolist() == by_first_row(found).tolist()


def test_iterations_and_the_end_of_their_gain(anywhere: NDArray[np.float16]) -> None:
    """More passes leave documents nearer to their centres."""

    def closeness(iterations: int) -> float:
        towards = centres(anywhere, 30, replace(HOW, iterations=iterations))
        return float(np.einsum("nd,nd->", anywhere.astype(float), towards[assign(anywhere, towards)].astype(float)))

    assert closeness(1) < closeness(3) < closeness(25)


@pytest.mark.parametrize("groups", [0, 601])
def test_a_number_of_groups_that_cannot_be_is_refused(groups: int, anywhere: NDArray[np.float16]) -> None:
    with pytest.raises(ValueError, match=f"groups={groups} of 600 documents: expected from 1"):
        regroup.by_kmeans(anywhere[:600], groups, HOW)
