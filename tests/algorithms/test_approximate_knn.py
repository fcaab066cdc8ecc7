"""Approximate neighbours against exact ones, whole and step by step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from actors.algorithms import approximate_knn, inverted_lists, knn, list_join, refinement
from actors.algorithms.approximate_knn import How, nearest, rank
from actors.algorithms.list_join import Equals, Near

ALL = 10**6


def unit(documents: int, dimension: int, seed: int = 0) -> NDArray[np.float16]:
    vectors = np.random.default_rng(seed).standard_normal((documents, dimension))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)


def clustered(documents: int, dimension: int = 24, seed: int = 0) -> NDArray[np.float16]:
    """Topics of about thirty documents that overlap."""
    draw = np.random.default_rng(seed)
    topics = draw.standard_normal((max(1, documents // 30), dimension))
    vectors = topics[draw.integers(0, len(topics), documents)] + 0.7 * draw.standard_normal((documents, dimension))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)


def how(lists: int, probes: int, passes: int, hubs: int = 8) -> How:
    return How(inverted_lists.How(lists, 5, ALL, 0), probes, passes, spare=4, hubs=hubs)


# --- the whole --------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.data())
def test_exact_where_every_list_is_probed(data: st.DataObject) -> None:
    documents = data.draw(st.integers(1, 120))
    vectors = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 3, (documents, 3)).astype(np.float16)
    vectors[:, 0] += 1  # of any length: inner products are what counts
    k, lists = data.draw(st.integers(1, 6)), data.draw(st.integers(1, min(documents, 9)))
    found = nearest(vectors, k, how(lists, ALL, data.draw(st.integers(0, 1))))
    # Of more documents tied at the k-th place than are kept, any may stand: equal vectors are the exception, they all do.
    exact = knn.nearest(vectors, 0, documents, k)
    np.testing.assert_array_equal(found[1], exact[1])
    (sames,) = np.nonzero((found[0] != exact[0]).any(axis=1))
    wide = vectors.astype(np.float64)
    for row in sames:
        products = wide @ wide[row]
        products[row] = -np.inf
        assert (products == products[exact[0][row][-1]]).sum() > 4, "no wide tie"


def test_exact_bytes_of_real_sized_vectors_where_every_list_is_probed() -> None:
    vectors = unit(900, 384)
    found, exact = nearest(vectors, 16, how(20, ALL, 0)), knn.nearest(vectors, 0, 900, 16)
    assert (found[0].dtype, found[1].dtype) == (np.int32, np.float16)
    assert found[0].tobytes() == exact[0].tobytes() and found[1].tobytes() == exact[1].tobytes()


def test_passes_bring_what_the_join_missed() -> None:
    vectors = clustered(6000)
    exact = knn.nearest(vectors, 0, 6000, 10)[0]
    recalls = [knn.recall(nearest(vectors, 10, how(200, 2, passes, hubs=12))[0], exact) for passes in range(3)]
    assert recalls[0] < 0.9 < recalls[1] < recalls[2] and recalls[2] > 0.95


def test_what_is_found_has_its_exact_similarity_and_order() -> None:
    vectors = clustered(2000)
    neighbours, similarities = nearest(vectors, 10, how(60, 2, 1))
    wide = vectors.astype(np.float64)
    products = np.einsum("nd,nkd->nk", wide, wide[neighbours])
    np.testing.assert_array_equal(similarities, products.astype(np.float16))
    assert (np.diff(products) <= 0).all() and (neighbours != np.arange(2000)[:, None]).all()
    assert all(len(set(row)) == 10 for row in neighbours.tolist())


def test_many_equal_documents_and_some_that_are_alone() -> None:
    draw = np.random.default_rng(3)
    vectors = np.concatenate([np.repeat(unit(1, 32), 300, axis=0), np.repeat(unit(1, 32, 1), 40, axis=0), clustered(800, 32, 2)])
    vectors = vectors[draw.permutation(len(vectors))]
    alone = np.zeros((2, 32), np.float16)
    alone[0, 0], alone[1, 1] = 1, -1
    vectors = np.concatenate([vectors, alone])
    found, exact = nearest(vectors, 8, how(40, 6, 2)), knn.nearest(vectors, 0, len(vectors), 8)
    for equal in (unit(1, 32), unit(1, 32, 1)):
        rows = np.flatnonzero((vectors == equal).all(axis=1))
        np.testing.assert_array_equal(found[0][rows], exact[0][rows])
    assert knn.recall(found[0], exact[0]) > 0.98 and (found[0] >= 0).all()


@pytest.mark.parametrize("documents", [1, 2, 5])
def test_fewer_documents_than_k(documents: int) -> None:
    vectors = unit(documents, 4)
    found, exact = nearest(vectors, 7, how(1, 3, 2)), knn.nearest(vectors, 0, documents, 7)
    np.testing.assert_array_equal(found[0], exact[0])
    np.testing.assert_array_equal(found[1], exact[1])


# --- step by step -----------------------------------------------------------------------------------------------------


def test_equal_vectors_by_hand() -> None:
    a, b, c = [1, 0], [0, 1], [0.5, 0.5]
    vectors = np.array([a, b, a, a, b, c, a], np.float16)
    same = list_join.equals(vectors, np.array([0, 5, 7]), 0, 2)  # the last a stands in another list
    assert same.leaders.tolist() == [0, 1, 0, 0, 1, 5, 6]
    assert same.following.tolist() == [2, 4, 3, -1, -1, -1, -1]
    part = list_join.equals(vectors, np.array([0, 5, 7]), 1, 2)
    assert part.leaders.tolist() == [5, 6] and part.following.tolist() == [-1, -1]
    assert list_join.equals(vectors, np.array([0, 0, 7]), 0, 1).leaders.tolist() == []


def test_vectors_with_the_same_hash_are_not_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_join, "_hashes", lambda halves: np.zeros(len(halves), np.int64))
    same = list_join.equals(np.array([[1], [2], [1], [3]], np.float16), np.array([0, 4]), 0, 1)
    assert same.leaders.tolist() == [0, 1, 0, 3] and same.following.tolist() == [2, -1, -1, -1]


def test_the_join_compares_with_the_probed_lists_and_no_others() -> None:
    vectors = clustered(600)
    centroids = inverted_lists.centroids(vectors, inverted_lists.How(12, 5, ALL, 0))
    list_of = inverted_lists.assign(vectors, centroids, 0, 600)
    order = np.argsort(list_of, kind="stable")
    vectors, list_of = vectors[order], list_of[order]
    offsets = np.searchsorted(list_of, np.arange(13))
    near, probed = list_join.join(vectors, offsets, centroids, np.arange(600, dtype=np.int32), 3, 6, probes=4, keep=9)
    start, wide = int(offsets[3]), vectors.astype(np.float64)
    for row, (positions, scores, lists) in enumerate(zip(near.positions, near.scores, probed, strict=True)):
        best = np.argsort(-(centroids.astype(np.float64) @ wide[start + row]))[:4]
        assert set(lists) == set(best)
        products = np.where(np.isin(list_of, lists), wide @ wide[start + row], -np.inf)
        products[start + row] = -np.inf
        assert positions.tolist() == np.argsort(-products, kind="stable")[:9].tolist()
        np.testing.assert_allclose(scores, products[positions], atol=1e-6)


def test_long_lists_are_cut_into_products_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = clustered(700)
    exact = knn.nearest(vectors, 0, 700, 10)[0]
    monkeypatch.setattr(list_join, "CHUNK", 64)
    assert knn.recall(nearest(vectors, 10, how(2, ALL, 0))[0], exact) == 1.0


def test_backward_edges_by_hand() -> None:
    positions = np.array([[1, 2], [2, 0], [0, 1], [0, -1], [0, 1]], np.int32)
    assert refinement.backward(positions, 2).tolist() == [[2, 3], [0, 2], [1, 0], [-1, -1], [-1, -1]]
    assert refinement.backward(positions, 1).tolist() == [[2], [0], [1], [-1], [-1]]


def test_a_pass_finds_the_neighbours_of_neighbours() -> None:
    """A chain in which everyone knows who comes next: what is two steps away is found, in both directions, and no more."""
    n = 9
    angles = np.arange(n) * 0.2
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float16)
    positions = np.full((n, 6), -1, np.int32)
    positions[:-1, 0] = np.arange(1, n)
    scores = np.full((n, 6), -np.inf, np.float32)
    scores[:-1, 0] = np.cos(0.2)
    none, lists = np.full((n, 1), -1, np.int32), np.zeros(n, np.int32)
    near = Near(positions, scores)
    found = refinement.refine(vectors, near, refinement.backward(positions, 2), none, lists, 0, n)
    for row in range(n):
        expected = {row + step for step in (-2, -1, 1, 2) if 0 <= row + step < n}
        assert {x for x in found.positions[row].tolist() if x >= 0} == expected
        assert (np.diff(found.scores[row][: len(expected)]) <= 0).all()
    parts = [refinement.refine(vectors, near, refinement.backward(positions, 2), none, lists, *span) for span in ((0, 4), (4, 9))]
    np.testing.assert_array_equal(np.concatenate([part.positions for part in parts]), found.positions)
    probed = refinement.refine(vectors, near, refinement.backward(positions, 2), none + 1, lists, 0, n)
    np.testing.assert_array_equal(probed.positions, positions, "all stand in a list that the join looked at")


def test_ranking_by_hand() -> None:
    vectors = np.array([[1, 0], [1, 0], [0.5, 0], [0.5, 0], [0.25, 0], [1, 0]], np.float16)
    rows = np.array([10, 11, 3, 7, 5, 12], np.int32)
    same = Equals(np.array([0, 0, 2, 2, 4, 0], np.int32), np.array([1, 5, 3, -1, -1, -1], np.int32))
    candidates = np.array([[4, 2], [-1, -1], [0, 4], [-1, -1], [0, -1], [-1, -1]], np.int32)
    found, scores = rank(vectors, rows, same, candidates, np.array([0, 5, 3, 4]), 3)
    assert found.tolist() == [[11, 12, 3], [10, 11, 3], [10, 11, 12], [10, 11, 12]]
    assert scores.tolist() == [[1, 1, 0.5], [1, 1, 0.5], [0.5, 0.5, 0.5], [0.25, 0.25, 0.25]]
    found, scores = rank(vectors, rows, same, candidates, np.array([4]), 5)
    assert found.tolist() == [[10, 11, 12, -1, -1]] and scores.tolist() == [[0.25, 0.25, 0.25, 0, 0]]


def test_ranking_tells_apart_what_single_precision_does_not() -> None:
    draw = np.random.default_rng(5)
    vectors = np.full((60, 64), 0.125, np.float16)
    vectors[:, :8] += (draw.integers(-2, 3, (60, 8)) * 2.0**-13).astype(np.float16)
    one = np.arange(60, dtype=np.int32)
    alone = Equals(one, np.full(60, -1, np.int32))
    others = np.array([[x for x in range(60) if x != row] for row in range(60)], np.int32)
    found = rank(vectors, one, alone, others, np.arange(60), 8)
    np.testing.assert_array_equal(found[0], knn.nearest(vectors, 0, 60, 8)[0])


def test_every_float16_is_read_as_it_is() -> None:
    bits = np.arange(2**16, dtype=np.uint16).view(np.float16)
    numbers = bits[np.isfinite(bits)][:, None]
    product = refinement._product
    assert [product(np.ones(1, np.float32), approximate_knn.as_halves(number)) for number in numbers] == numbers[:, 0].tolist()
