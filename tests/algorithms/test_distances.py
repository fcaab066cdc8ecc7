"""Hops by hand on the twelve documents, and against scipy's own search on random graphs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from actors.algorithms import distances
from actors.algorithms.distances import UNREACHABLE, document_graph, group_graph, hops, nearest_hops, nearest_missed_gold
from tests import toy

ALL = range(12)


# --- the twelve documents: 2-0, 2-1, 0-1, 0-4, 4-3, 4-5, 3-5, 3-7, 7-6, 7-8, 6-8, 6-9, 9-10, 10-11 -------------------------


def test_documents_by_hand() -> None:
    graph = document_graph(toy.NEIGHBOURS)
    assert hops(graph, [0], ALL).tolist() == [0, 1, 1, 2, 1, 2, 4, 3, 4, 5, 6, 7]
    assert hops(graph, [0, 9], ALL).tolist() == [0, 1, 1, 2, 1, 2, 1, 2, 2, 0, 1, 2]
    assert hops(graph, [11], [8, 2, 11]).tolist() == [4, 8, 0]  # the order of the targets


def test_directed_is_as_the_neighbours_point() -> None:
    graph = document_graph(toy.NEIGHBOURS, directed=True)
    assert hops(graph, [11], ALL).tolist() == [-1, -1, -1, -1, -1, -1, 3, 4, 5, 2, 1, 0]  # no neighbour of 6 to 11 is below 6


def test_groups_by_hand() -> None:
    both = group_graph(toy.NEIGHBOURS, toy.GROUP_OF)  # mining - wires - roofs - coins
    assert hops(both, [11], ALL).tolist() == [3, 3, 3, 2, 2, 2, 1, 1, 1, 0, 0, 0]
    pointing = group_graph(toy.NEIGHBOURS, toy.GROUP_OF, directed=True)  # mining -> wires -> roofs <-> coins
    assert hops(pointing, [11], ALL).tolist() == [-1] * 6 + [1, 1, 1, 0, 0, 0]
    assert hops(pointing, [2], ALL).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_a_maximum_of_hops() -> None:
    graph = document_graph(toy.NEIGHBOURS)
    assert hops(graph, [0], ALL, max_hops=3).tolist() == [0, 1, 1, 2, 1, 2, -1, 3, -1, -1, -1, -1]
    assert hops(graph, [0], ALL, max_hops=0).tolist() == [0] + [-1] * 11
    assert [nearest_hops(graph, [0], [11, 6], most) for most in (3, 4, None)] == [UNREACHABLE, 4, 4]


def test_no_seed_reaches_nothing_and_no_target_is_no_distance() -> None:
    graph = document_graph(toy.NEIGHBOURS)
    assert hops(graph, [], [0, 1]).tolist() == [-1, -1]
    assert hops(graph, [0], []).tolist() == []
    assert nearest_hops(graph, [], [0]) == UNREACHABLE


def test_the_nearest_gold_that_is_no_seed() -> None:
    seeds = {"q1": [0, 3], "q2": [0, 3], "q3": [11]}
    gold = {"q1": [3, 6, 11], "q2": [0, 3], "q3": [1], "q4": [5]}  # q2: all are seeds; q4: an empty pool
    assert nearest_missed_gold(document_graph(toy.NEIGHBOURS), seeds, gold) == {"q1": 2, "q3": 8, "q4": -1}
    assert nearest_missed_gold(group_graph(toy.NEIGHBOURS, toy.GROUP_OF), seeds, gold) == {"q1": 1, "q3": 3, "q4": -1}


def test_a_missed_gold_in_the_group_of_a_seed_is_at_0() -> None:
    assert nearest_missed_gold(group_graph(toy.NEIGHBOURS, toy.GROUP_OF), {"q": [0]}, {"q": [2]}) == {"q": 0}


@pytest.mark.parametrize("row", [-1, 12])
def test_a_document_that_the_graph_lacks_is_refused(row: int) -> None:
    with pytest.raises(ValueError, match=f"document {row}: expected a row of the graph, 0..11"):
        hops(document_graph(toy.NEIGHBOURS), [0, row], [1])
    with pytest.raises(ValueError, match=f"document {row}"):
        nearest_hops(document_graph(toy.NEIGHBOURS), [0], [1, row])


@pytest.mark.parametrize("row", [-2, 12])
def test_a_neighbour_outside_the_corpus_is_refused(row: int) -> None:
    neighbours = toy.NEIGHBOURS.copy()
    neighbours[4, 1] = row
    with pytest.raises(ValueError, match="neighbours of row 4"):
        document_graph(neighbours)


def test_groups_of_another_corpus_are_refused() -> None:
    with pytest.raises(ValueError, match="group_of has 11 documents, the graph 12"):
        group_graph(toy.NEIGHBOURS, toy.GROUP_OF[:11])


# --- random graphs ----------------------------------------------------------------------------------------------------


@st.composite
def graphs(draw: st.DrawFn) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    n, k = draw(st.integers(1, 25)), draw(st.integers(1, 3))
    numbers = st.integers(0, 2**32 - 1)
    rng = np.random.default_rng(draw(numbers))
    neighbours = rng.integers(0, n, (n, k), dtype=np.int32)
    neighbours[rng.random((n, k)) < draw(st.sampled_from([0.0, 0.4, 0.8]))] = -1
    return neighbours, rng.integers(0, draw(st.integers(1, n)), n, dtype=np.int32)


def all_pairs(arcs: set[tuple[int, int]], n: int, directed: bool) -> NDArray[np.float64]:
    """scipy's distances between all nodes; infinite without a path."""
    rows, columns = zip(*arcs, strict=True) if arcs else ((), ())
    matrix = coo_array((np.ones(len(rows)), (np.array(rows, int), np.array(columns, int))), shape=(n, n)).tocsr()
    return shortest_path(matrix, directed=directed, unweighted=True)


@given(graphs(), st.booleans(), st.booleans(), st.data())
def test_as_scipy_finds_them(
    graph: tuple[NDArray[np.int32], NDArray[np.int32]], groups: bool, directed: bool, data: st.DataObject
) -> None:
    neighbours, group_of = graph
    n = len(neighbours)
    node = group_of if groups else np.arange(n)
    arcs = {(int(node[d]), int(node[x])) for d in range(n) for x in neighbours[d] if x >= 0}
    docs = st.lists(st.integers(0, n - 1), min_size=1, max_size=4)
    seeds, targets = data.draw(docs), data.draw(docs)
    expected = all_pairs(arcs, n, directed)[node[seeds]][:, node[targets]].min(axis=0)
    walked = group_graph(neighbours, group_of, directed) if groups else document_graph(neighbours, directed)
    found = hops(walked, seeds, targets)
    assert found.dtype == np.int32
    assert np.where(found < 0, np.inf, found).tolist() == expected.tolist()
    assert nearest_hops(walked, seeds, targets) == (expected.min() if np.isfinite(expected.min()) else UNREACHABLE)


def test_a_frontier_of_many_blocks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    neighbours = np.random.default_rng(3).integers(0, 500, (500, 2), dtype=np.int32)
    whole = hops(document_graph(neighbours), [7], range(500))
    monkeypatch.setattr(distances, "ROWS", 3)
    assert hops(document_graph(neighbours), [7], range(500)).tolist() == whole.tolist()
