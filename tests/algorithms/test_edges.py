"""The undirected graph of a neighbour array, and its modularity, against sets of pairs and igraph."""

from __future__ import annotations

import igraph
import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from actors.algorithms import edges
from actors.algorithms.edges import each_once, foreseen, modularity, strength, union
from tests.algorithms.test_partition import TRIANGLES, neighbours_of

Array = NDArray[np.int32]


def test_union_by_hand() -> None:
    edges = union(neighbours_of([1, 1, 0], [0, 2], [-1], [0]))  # 0-1 named three times, 0 names itself
    assert edges.pairs.tolist() == [[0, 1], [0, 3], [1, 2]]
    assert (edges.weights, edges.self_loops, edges.not_positive) == (None, 1, 0)


def test_union_weights_take_the_larger_direction_and_count_what_is_not_positive() -> None:
    similarities = np.array([[0.5, 0.25], [0.75, 0], [-0.5, 0]], np.float16)
    edges = union(np.array([[1, 2], [0, -1], [1, -1]], np.int32), similarities)
    assert edges.pairs.tolist() == [[0, 1], [0, 2]]
    assert edges.weights is not None
    assert edges.weights.tolist() == [0.75, 0.25]
    assert edges.not_positive == 1


def test_keys_do_not_overflow_32_bits() -> None:
    neighbours = np.full((70_000, 1), -1, np.int32)
    neighbours[69_998] = 69_999
    assert union(neighbours).pairs.tolist() == [[69_998, 69_999]]


@pytest.mark.parametrize("row", [6, -2])
def test_neighbour_outside_the_corpus_is_refused(row: int) -> None:
    neighbours = TRIANGLES.copy()
    neighbours[4, 1] = row
    with pytest.raises(ValueError, match="neighbours of row 4"):
        union(neighbours)


@st.composite
def arrays(draw: st.DrawFn) -> tuple[Array, NDArray[np.float16]]:
    """A neighbour array with its similarities: itself, repeated rows and gaps occur."""
    documents, k = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    return rng.integers(-1, documents, (documents, k)).astype(np.int32), rng.integers(-2, 5, (documents, k)).astype(np.float16)


def pairs_of(neighbours: Array, similarities: NDArray[np.float16] | None) -> dict[tuple[int, int], float]:
    """Edge -> weight, entry by entry."""
    found: dict[tuple[int, int], float] = {}
    for (source, column), target in np.ndenumerate(neighbours):
        weight = 1.0 if similarities is None else float(similarities[source, column])
        if target >= 0 and target != source and weight > 0:
            pair = (min(source, int(target)), max(source, int(target)))
            found[pair] = max(weight, found.get(pair, 0.0))
    return found


@given(arrays(), st.booleans(), st.integers(1, 40))
def test_union_is_that_of_sets_whatever_the_blocks(given: tuple[Array, NDArray[np.float16]], weighted: bool, entries: int) -> None:
    neighbours, similarities = given[0], given[1] if weighted else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edges, "ENTRIES", entries)
        found = union(neighbours, similarities)
        degree = strength(len(neighbours), found)
    expected = pairs_of(neighbours, similarities)
    assert [tuple(pair) for pair in found.pairs.tolist()] == sorted(expected)
    assert found.weights is None or found.weights.tolist() == [expected[pair] for pair in sorted(expected)]
    assert degree.tolist() == [sum(w for pair, w in expected.items() if row in pair) for row in range(len(neighbours))]


@given(arrays(), st.integers(1, 40), st.integers(0, 99))
def test_every_edge_comes_once_and_gives_igraph_s_modularity(
    given: tuple[Array, NDArray[np.float16]], entries: int, seed: int
) -> None:
    neighbours = given[0]
    group_of = np.random.default_rng(seed).integers(0, 4, len(neighbours)).astype(np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edges, "ENTRIES", entries)
        once = [tuple(sorted(pair)) for block in each_once(neighbours) for pair in block.tolist()]
        found = modularity(neighbours, group_of)
    expected = pairs_of(neighbours, None)
    assert sorted(once) == sorted(expected)
    graph = igraph.Graph(len(neighbours), sorted(expected))
    assert found == (pytest.approx(graph.modularity(group_of.tolist())) if expected else 0.0)


def test_edges_are_foreseen_from_a_sample() -> None:
    assert foreseen(TRIANGLES) == 7
    assert foreseen(neighbours_of([1], [0], [-1], [0])) == 2  # 0-1, which both name, and 3-0
    assert foreseen(np.empty((0, 3), np.int32)) == 0
    ring = (np.arange(10_000)[:, None] + [1, 2, -1, 5]).astype(np.int32) % 10_000  # +1 and -1 are one edge
    assert foreseen(ring, sample=100) == 30_000
