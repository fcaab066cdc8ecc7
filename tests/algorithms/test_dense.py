"""Dense retrieval against brute force, against faiss, and by hand; never an excluded document, whatever the blocks."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace

import faiss
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from actors.algorithms import dense
from actors.artifacts.lists import Lists

VECTORS = np.array([[1, 0], [0.75, 0.5], [0.5, 0.75], [0, 1], [0.75, 0.5], [-1, 0]], np.float16)
EAST = np.array([1, 0], np.float32)


def brute(
    vectors: NDArray[np.float16], query: NDArray[np.float32], depth: int, excluded: Sequence[int]
) -> list[tuple[int, Fraction]]:
    """Rows and exact scores, in rational numbers."""
    on_grid = [Fraction(round(Fraction(float(q)) * 2**24), 2**24) for q in query]
    scores = [(row, sum(Fraction(float(x)) * q for x, q in zip(v, on_grid, strict=True))) for row, v in enumerate(vectors)]
    return sorted((s for s in scores if s[0] not in excluded), key=lambda s: (-s[1], s[0]))[:depth]


def in_lists(vectors: NDArray[np.float16], list_of: Sequence[int], count: int) -> Lists:
    """Lists with the mean of their vectors as centroids; an empty list has one far from everything."""
    order = np.argsort(list_of, kind="stable").astype(np.int32)
    sizes = np.bincount(list_of, minlength=count)
    centroids = np.array([vectors[np.asarray(list_of) == n].astype(np.float32).mean(axis=0) if sizes[n] else np.full(
        vectors.shape[1], -9, np.float32) for n in range(count)], np.float32)  # fmt: skip
    return Lists(centroids, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), order, vectors[order])


@st.composite
def cases(draw: st.DrawFn) -> tuple[NDArray[np.float16], list[NDArray[np.float32]], list[list[int]], int]:
    """Few distinct numbers, so that many scores are equal, and some that are not multiples of anything."""
    n, d, q = draw(st.integers(0, 30)), draw(st.integers(1, 5)), draw(st.integers(0, 3))
    few = st.sampled_from([0.0, 0.5, -0.5, 0.25, 0.1, 2**-14])
    vectors = draw(arrays.arrays(np.float16, (n, d), elements=few.map(lambda x: float(np.float16(x)))))
    queries = draw(arrays.arrays(np.float32, (q, d), elements=few.map(lambda x: float(np.float32(x)))))
    excluded = [draw(st.lists(st.integers(0, n - 1), max_size=n)) if n else [] for _ in range(q)]
    return vectors, list(queries), excluded, draw(st.integers(1, 12))


@given(cases(), st.integers(1, 40))
def test_the_best_documents_whatever_the_blocks(case: tuple, block_rows: int) -> None:
    vectors, queries, excluded, depth = case
    found = dense.exact(vectors, queries, depth, excluded, block_rows)
    assert len(found) == len(queries)
    for ranked, query, gone in zip(found, queries, excluded, strict=True):
        expected = brute(vectors, query, depth, gone)
        assert ranked.rows.tolist() == [row for row, _ in expected]
        assert ranked.scores.tolist() == [float(score) for _, score in expected]
        assert not set(ranked.rows.tolist()) & set(gone)
        assert dense.scores(vectors, ranked.rows, query).tobytes() == ranked.scores.tobytes()


@given(cases(), st.data())
def test_all_lists_hold_everything_and_some_the_best_of_theirs(case: tuple, data: st.DataObject) -> None:
    vectors, queries, excluded, depth = case
    count = data.draw(st.integers(1, 4))
    list_of = data.draw(st.lists(st.integers(0, count - 1), min_size=len(vectors), max_size=len(vectors)))
    lists = in_lists(vectors, np.array(list_of, np.int64), count)
    every = dense.probed(lists, queries, depth, excluded, count)
    for ranked, whole in zip(every, dense.exact(vectors, queries, depth, excluded), strict=True):
        assert [a.tobytes() for a in ranked] == [a.tobytes() for a in whole]
    for ranked, query, gone in zip(dense.probed(lists, queries, depth, excluded, 1), queries, excluded, strict=True):
        nearest = int(np.argmax(lists.centroids @ dense.on_grid(query).astype(np.float32)))
        others = [row for row in range(len(vectors)) if list_of[row] != nearest]
        assert ranked.rows.tolist() == [row for row, _ in brute(vectors, query, depth, [*gone, *others])]


def test_by_hand() -> None:
    (ranked,) = dense.exact(VECTORS, [EAST], 4, [()])
    assert ranked.rows.tolist() == [0, 1, 4, 2] and ranked.scores.tolist() == [1, 0.75, 0.75, 0.5]
    assert ranked.rows.dtype == np.int32 and ranked.scores.dtype == np.float64
    (ranked,) = dense.exact(VECTORS, [EAST], 9, [(0, 4)])
    assert ranked.rows.tolist() == [1, 2, 3, 5] and ranked.scores[-1] == -1, "a pool is filled, also from the other side"
    assert dense.scores(VECTORS, [5, 1], EAST).tolist() == [-1, 0.75]
    assert dense.exact(VECTORS, [], 4, []) == [] and dense.exact(VECTORS[:0], [EAST], 4, [()])[0].rows.tolist() == []


def test_faiss_finds_the_same() -> None:
    draw = np.random.default_rng(1)
    vectors = draw.standard_normal((5000, 96))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    queries = draw.standard_normal((7, 96)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    scores, rows = faiss.knn(queries, vectors.astype(np.float32), 300, metric=faiss.METRIC_INNER_PRODUCT)
    found = dense.exact(vectors, list(queries), 300, [()] * 7, 999)
    for n, ranked in enumerate(found):
        assert np.allclose(ranked.scores, scores[n], atol=1e-6)
        assert len(set(ranked.rows.tolist()) & set(rows[n].tolist())) >= 299, "but for the last place, where scores nearly tie"
    alone = [dense.exact(vectors, [query], 300, [()])[0] for query in queries]
    assert [a.tobytes() for one in alone for a in one] == [a.tobytes() for one in found for a in one]


def test_more_equal_documents_than_the_pool_holds() -> None:
    """Thousands of copies tie for the last places: the first rows win, in every cut."""
    vectors = np.repeat(np.array([[0.6, 0.8], [0.8, 0.6]], np.float16), [5000, 3], axis=0)
    for block_rows in (1, 7, 4096, 0):
        (ranked,) = dense.exact(vectors, [EAST], 5, [(1,)], block_rows)
        assert ranked.rows.tolist() == [5000, 5001, 5002, 0, 2]


def test_lists_that_are_larger_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = in_lists(VECTORS, [0, 0, 0, 1, 1, 1], 3)
    monkeypatch.setattr(dense, "BLOCK", 4)  # two vectors
    (ranked,) = dense.probed(lists, [EAST], 9, [(1,)], 3)
    assert ranked.rows.tolist() == [0, 4, 2, 3, 5]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """faiss' exact search of a CPU in place of a GPU's; how many were asked for in each search."""
    asked: list[int] = []

    class Index(faiss.IndexFlatIP):
        def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
            asked.append(k)
            return super().search(queries, k)

    monkeypatch.setattr(faiss, "GpuIndexFlatConfig", lambda: SimpleNamespace(useFloat16=False), raising=False)
    monkeypatch.setattr(faiss, "StandardGpuResources", lambda: None, raising=False)
    monkeypatch.setattr(faiss, "GpuIndexFlatIP", lambda resources, dimension, config: Index(dimension), raising=False)
    return asked


def test_what_a_gpu_finds_is_scored_and_ordered_as_everywhere(gpu: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(2)
    vectors = draw.standard_normal((3000, 24))
    vectors = np.concatenate([vectors / np.linalg.norm(vectors, axis=1, keepdims=True)] * 2).astype(np.float16)  # all twice
    queries = [v / np.linalg.norm(v) for v in draw.standard_normal((3, 24)).astype(np.float32)]
    excluded = [(), tuple(range(40)), (5,)]
    for depth, asked in ((9, 9 + 16 + 40), (2000, None)):
        found = dense.OnGpu(vectors).search(queries, depth, excluded)
        expected = dense.exact(vectors, queries, depth, excluded)
        assert [a.tobytes() for one in found for a in one] == [a.tobytes() for one in expected for a in one]
        assert gpu == ([asked] if asked else []), "no GPU finds more than 2048"
        gpu.clear()
    monkeypatch.setattr(dense, "BLOCK", 24 * 100)  # it is filled in blocks
    assert dense.OnGpu(vectors).search(queries, 3, excluded)[0].rows.tolist() == expected[0].rows[:3].tolist()


@pytest.mark.parametrize(
    ("depth", "probes", "query", "said"),
    [
        (0, 1, EAST, "depth: 0; expected 1 or more"),
        (1, 0, EAST, "probes: 0; expected 1 or more"),
        (1, 1, np.zeros(3, np.float32), r"query vector: shape \(3,\); expected \(2,\)"),
    ],
)
def test_what_cannot_be_searched(depth: int, probes: int, query: NDArray[np.float32], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        dense.probed(in_lists(VECTORS, [0] * 6, 1), [query], depth, [()], probes)
