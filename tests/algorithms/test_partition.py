from __future__ import annotations

import random
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import igraph
import leidenalg
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from actors.algorithms.edges import modularity, union
from actors.algorithms.knn import nearest
from actors.algorithms.partition import Leiden, batches, by_first_row, combine, level0, refine, sizes

Array = NDArray[np.int32]
HOW = Leiden(max_size=20, resolution=1.0, randomness=0.001, iterations=2, seed=7)


def neighbours_of(*lists: list[int]) -> Array:
    k = max(len(row) for row in lists)
    return np.array([row + [-1] * (k - len(row)) for row in lists], np.int32)


# Two triangles, 0 1 2 and 3 4 5, and the bridge 2-3.
TRIANGLES = neighbours_of([1, 2], [0, 2], [0, 1, 3], [4, 5], [3, 5], [3, 4])


@pytest.fixture(scope="module")
def planted() -> tuple[Array, NDArray[np.float16]]:
    """2,000 documents around 30 centres, each centre with 5 centres of its own."""
    rng = np.random.default_rng(1)
    outer = rng.standard_normal((30, 1, 32))
    centres = (outer + 0.7 * rng.standard_normal((30, 5, 32))).reshape(150, 32)
    vectors = centres[rng.integers(0, 150, 2000)] + 0.5 * rng.standard_normal((2000, 32))
    return nearest((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16), 0, 2000, 16)


def groups(neighbours: Array, how: Leiden, per_batch: int = 25_000, order: Callable[[list[Array]], list[Array]] = list) -> Array:
    labels = level0(neighbours, how).labels
    sets = order(batches(neighbours, labels, how.max_size, per_batch))
    return combine(labels, [(rows, refine(neighbours, rows, labels[rows], how)) for rows in sets])


def test_level0_and_modularity_by_hand() -> None:
    found = level0(TRIANGLES, HOW)
    assert found.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert (found.edges, found.isolated) == (7, 0)
    assert modularity(TRIANGLES, found.labels) == pytest.approx(6 / 7 - 2 * (7 / 14) ** 2)
    assert modularity(TRIANGLES, found.labels, resolution=2.0) == pytest.approx(6 / 7 - 2 * 2 * (7 / 14) ** 2)
    assert modularity(TRIANGLES, np.zeros(6, np.int32)) == pytest.approx(0)


def test_refine_by_hand() -> None:
    rows = np.arange(6, dtype=np.int32)
    assert refine(TRIANGLES, rows, np.zeros(6, np.int32), replace(HOW, max_size=5)).tolist() == [0, 0, 0, 1, 1, 1]
    assert refine(TRIANGLES, rows, np.zeros(6, np.int32), replace(HOW, max_size=6)).tolist() == [0] * 6
    assert refine(TRIANGLES, rows, np.zeros(6, np.int32), replace(HOW, max_size=2)).tolist() == [0, 0, 0, 1, 1, 1]


def test_documents_without_edges_stay_alone_and_are_counted() -> None:
    neighbours = neighbours_of([1], [0], [-1], [3], [-1])
    found = level0(neighbours, HOW)
    assert found.labels.tolist() == [0, 0, 1, 2, 3]
    assert (found.isolated, found.self_loops) == (3, 1)
    assert modularity(neighbours, found.labels) == 0.0  # one edge: 1 - (2/2)^2
    nothing = np.full((4, 2), -1, np.int32)
    assert level0(nothing, HOW).labels.tolist() == [0, 1, 2, 3]
    assert modularity(nothing, np.arange(4, dtype=np.int32)) == 0.0
    # A brought group without edges falls apart too.
    assert refine(nothing, np.arange(4, dtype=np.int32), np.zeros(4, np.int32), replace(HOW, max_size=2)).tolist() == [0, 1, 2, 3]
    assert level0(np.full((1, 3), -1, np.int32), HOW).labels.tolist() == [0]


def test_weights_decide_where_counts_are_equal() -> None:
    ring = neighbours_of([1, 3], [0, 2], [1, 3], [0, 2])
    heavy = np.array([[1, 0.01], [1, 0.01], [0.01, 1], [0.01, 1]], np.float16)  # 0-1 and 2-3
    assert level0(ring, HOW, heavy).labels.tolist() == [0, 0, 1, 1]
    assert level0(ring, HOW, heavy[:, ::-1].copy()).labels.tolist() == [0, 1, 1, 0]


def test_by_first_row_and_sizes_by_hand() -> None:
    assert by_first_row(np.array([9, 4, 9, 0, 4])).tolist() == [0, 1, 0, 2, 1]
    assert sizes(np.array([0, 1, 0, 2, 0], np.int32), 2) == (3, 1, 5 / 3, 3, 1, 2)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 80), st.integers(1, 6), st.integers(1, 12), st.integers(1, 40), st.integers(0, 99))
def test_any_neighbour_array_gives_a_partition(documents: int, k: int, max_size: int, per_batch: int, seed: int) -> None:
    neighbours = np.random.default_rng(seed).integers(-1, documents, (documents, k)).astype(np.int32)
    how = replace(HOW, max_size=max_size, seed=seed)
    labels = level0(neighbours, how).labels
    sets = batches(neighbours, labels, max_size, per_batch)
    rows = np.concatenate([np.empty(0, np.int32), *sets])
    assert sorted(rows.tolist()) == np.flatnonzero(np.bincount(labels)[labels] > max_size).tolist()
    found = groups(neighbours, how, per_batch)
    assert found.dtype == np.int32
    assert by_first_row(found).tolist() == found.tolist()  # contiguous from 0, by smallest row
    assert all(len(set(labels[found == group].tolist())) == 1 for group in range(found.max() + 1))
    assert groups(neighbours, how, per_batch, lambda sets: sets[::-1]).tolist() == found.tolist()


def test_batches_keep_groups_whole_heaviest_first(planted: tuple[Array, object]) -> None:
    neighbours, labels = planted[0], level0(planted[0], HOW).labels
    sets = batches(neighbours, labels, 20, 300)
    assert 4 <= len(sets) <= 8
    assert all((np.diff(rows) > 0).all() and rows.dtype == np.int32 for rows in sets)
    owners = [set(labels[rows].tolist()) for rows in sets]
    assert len(set().union(*owners)) == sum(map(len, owners))
    edges = [[int(((labels[neighbours] == g)[labels == g]).sum()) for g in owner] for owner in owners]
    assert all(min(heavier) >= max(lighter) for heavier, lighter in zip(edges, edges[1:], strict=False))
    assert batches(neighbours, labels, 2000) == []


def test_the_seed_decides_and_nothing_else(planted: tuple[Array, object]) -> None:
    neighbours = planted[0]
    random.seed(1)
    before = random.getstate()
    found = groups(neighbours, HOW)
    assert random.getstate() == before
    random.seed(2)
    np.testing.assert_array_equal(groups(neighbours, HOW), found)
    assert (groups(neighbours, replace(HOW, seed=8)) != found).any()


def test_igraph_draws_from_python_again_afterwards() -> None:
    level0(TRIANGLES, HOW)
    random.seed(3)
    first = igraph.Graph.Erdos_Renyi(20, 0.5).get_edgelist()
    random.seed(3)
    assert igraph.Graph.Erdos_Renyi(20, 0.5).get_edgelist() == first


def test_same_groups_from_other_processes_and_threads(planted: tuple[Array, object], request: pytest.FixtureRequest) -> None:
    neighbours, labels = planted[0], level0(planted[0], HOW).labels
    sets = batches(neighbours, labels, 20, 300)[::-1]
    arguments = ([neighbours] * len(sets), sets, [labels[rows] for rows in sets], [HOW] * len(sets))
    sys.setswitchinterval(1e-6)  # threads change as often as they can
    request.addfinalizer(lambda: sys.setswitchinterval(0.005))
    with ProcessPoolExecutor(2, get_context("spawn")) as processes, ThreadPoolExecutor(4) as threads:
        for pool in (processes, threads):
            parts = zip(sets, pool.map(refine, *arguments), strict=True)
            np.testing.assert_array_equal(combine(labels, parts), groups(neighbours, HOW, 300))


def test_only_what_cannot_be_split_stays_large(planted: tuple[Array, object]) -> None:
    clique = np.array([[j for j in range(30) if j != i] for i in range(30)], np.int32)
    together = np.full((2030, 29), -1, np.int32)
    together[:2000, :16], together[2000:] = planted[0], clique + 2000
    found = groups(together, HOW)
    assert set(found[2000:].tolist()) == {found[2000]}
    assert sizes(found, 20).over_max_size == 1
    assert sizes(found, 20).singletons == 0


def test_level0_is_as_good_as_leidenalg(planted: tuple[Array, object]) -> None:
    graph = igraph.Graph(2000, union(planted[0]).pairs)
    other = leidenalg.find_partition(graph, leidenalg.ModularityVertexPartition, n_iterations=2, seed=1)
    ours = level0(planted[0], HOW).labels
    assert modularity(planted[0], ours) == pytest.approx(graph.modularity(ours.tolist()))
    assert graph.modularity(ours.tolist()) > graph.modularity(other.membership) - 0.003


def test_weighted_level0_is_as_good_as_leidenalg(planted: tuple[Array, NDArray[np.float16]]) -> None:
    edges = union(*planted)
    assert edges.weights is not None
    graph, weights = igraph.Graph(2000, edges.pairs), edges.weights.tolist()
    other = leidenalg.find_partition(graph, leidenalg.ModularityVertexPartition, weights=weights, n_iterations=2, seed=1)
    ours = level0(planted[0], HOW, planted[1]).labels
    assert graph.modularity(ours.tolist(), weights) > graph.modularity(other.membership, weights) - 0.003


def one_by_one(graph: igraph.Graph, nodes: list[int]) -> list[list[int]]:
    """The recursion with modularity itself as the objective, one subgraph at a time."""
    if len(nodes) <= 20:
        return [nodes]
    found = graph.induced_subgraph(nodes).community_leiden("modularity", beta=0.001, n_iterations=2)
    if len(found) == 1:
        return [nodes]
    return [group for part in found for group in one_by_one(graph, [nodes[i] for i in part])]


def test_batched_recursion_is_as_good_as_one_subgraph_at_a_time(planted: tuple[Array, object]) -> None:
    random.seed(0)
    neighbours = planted[0]
    parts = one_by_one(igraph.Graph(2000, union(neighbours).pairs), list(range(2000)))
    other = np.empty(2000, np.int32)
    for group, nodes in enumerate(parts):
        other[nodes] = group
    found = groups(neighbours, HOW)
    assert modularity(neighbours, found) == pytest.approx(modularity(neighbours, other), abs=0.03)
    assert len(parts) * 0.9 < sizes(found, 20).groups < len(parts) * 1.1


def test_higher_resolution_gives_more_groups(planted: tuple[Array, object]) -> None:
    count = [level0(planted[0], replace(HOW, resolution=gamma)).labels.max() for gamma in (0.2, 1.0, 10.0)]
    assert count[0] < count[1] < count[2]
    finer = groups(planted[0], replace(HOW, resolution=2.0))
    assert finer.max() > groups(planted[0], HOW).max()


def test_randomness_reaches_igraph(planted: tuple[Array, object]) -> None:
    assert (groups(planted[0], replace(HOW, randomness=10.0)) != groups(planted[0], HOW)).any()


def test_a_part_passed_twice_is_refused() -> None:
    part = (np.array([1], np.int32), np.array([0], np.int32))
    with pytest.raises(ValueError, match="row 1 is in two parts"):
        combine(np.zeros(3, np.int32), [part, part])
