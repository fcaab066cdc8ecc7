"""The planted tree: its arithmetic by hand, and that every row's place in it depends on the row alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from actors.algorithms.topics import NO_LEAF, Topics, hashed, mixed, uniform

SMALL = Topics(documents=100, leaf_documents=10.0, branching=3, near_duplicates=0.0, isolated=0.0, seed=0)  # 10 leaves
LARGE = Topics(documents=60_000, leaf_documents=12.0, branching=8, near_duplicates=0.03, isolated=0.02, seed=5)


def test_the_hash_is_splitmix64() -> None:
    """The first numbers of SplitMix64 with seed 1234567, as its reference implementation gives them."""
    steps = np.arange(1, 4, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert mixed(np.uint64(1234567) + steps).tolist() == expected


def test_draws_for_different_purposes_and_numbers_are_apart() -> None:
    rows = np.arange(1000)
    draws = [hashed(seed, what, rows) for seed in (0, 1) for what in (1, 2)] + [
        hashed(0, 1, rows, rows),
        hashed(0, 1, rows, rows + 1),
    ]
    assert len(np.unique(np.concatenate(draws))) == 6000
    assert abs(uniform(draws[0]).mean() - 0.5) < 0.03


def test_a_tree_worked_by_hand() -> None:
    """10 leaves, about 3 children each: two levels (log 10 / log 3 = 2.1) of 4 children (3 * 3 < 10), the last node with two."""
    assert (SMALL.leaves, SMALL.depth, SMALL.fan) == (10, 2, 4)
    assert SMALL.spans.tolist() == [4, 1]
    assert SMALL.first_nodes.tolist() == [0, 3, 13]
    assert SMALL.path(np.array([0, 3, 4, 9])).tolist() == [[0, 3], [0, 6], [1, 7], [2, 12]]
    assert SMALL.levels(np.array([0, 2, 3, 12])).tolist() == [1, 1, 2, 2]
    assert [SMALL.sibling(leaf) for leaf in (0, 3, 7, 8, 9)] == [1, 2, 6, 9, 8]


def test_a_leaf_alone_below_its_parent_has_no_sibling() -> None:
    assert Topics(90, 10.0, 3, 0.0, 0.0, 0).sibling(8) == 7
    one = Topics(5, 12.0, 8, 0.1, 0.1, 0)
    assert (one.leaves, one.depth, one.fan, one.sibling(0)) == (1, 1, 1, NO_LEAF)
    alone = Topics(50, 10.0, 2, 0.0, 0.0, 0)  # 5 leaves in pairs
    assert (alone.fan, alone.sibling(4)) == (3, 3)


@given(st.integers(1, 5_000_000), st.floats(1, 40), st.integers(2, 40))
def test_every_leaf_has_a_place_whatever_the_size(documents: int, leaf_documents: float, branching: int) -> None:
    topics = Topics(documents, leaf_documents, branching, 0.03, 0.02, 0)
    assert topics.fan**topics.depth >= topics.leaves
    path = topics.path(np.array([0, topics.leaves - 1]))
    assert (topics.levels(path.ravel()).reshape(2, -1) == np.arange(1, topics.depth + 1)).all()
    assert path[1].tolist() == (topics.first_nodes[1:] - 1).tolist()  # the last leaf goes through every level's last node


def test_shares_and_sizes() -> None:
    rows = np.arange(LARGE.documents)
    sources, leaves = LARGE.sources(rows), LARGE.leaf_of(rows)
    copies, alone = sources != rows, LARGE.are_isolated(rows)
    assert abs(copies.mean() - 0.03) < 0.003 and abs(alone.mean() - 0.02) < 0.003
    assert (sources[copies] < rows[copies]).all()
    assert (sources[sources] == sources).all() and not LARGE.are_isolated(
        sources[copies]
    ).any()  # no copy of a copy, nor of nothing
    assert (leaves[copies] == leaves[sources[copies]]).all()
    assert ((leaves == NO_LEAF) == alone).all()
    sizes = np.bincount(leaves[~alone], minlength=LARGE.leaves)
    assert abs(sizes.mean() - 12) < 0.3 and sizes.min() >= 1 and sizes.max() < 40


@pytest.mark.parametrize("order", [slice(None, None, -1), slice(7, 4000, 13)])
def test_a_row_s_place_depends_on_nothing_else(order: slice) -> None:
    rows = np.arange(5000)
    assert (LARGE.leaf_of(rows)[order] == LARGE.leaf_of(rows[order])).all()
    assert (LARGE.sources(rows)[order] == LARGE.sources(rows[order])).all()
    other = Topics(**{**vars_of(LARGE), "seed": 6})
    assert (LARGE.leaf_of(rows) != other.leaf_of(rows)).mean() > 0.9


def vars_of(topics: Topics) -> dict:
    return {name: getattr(topics, name) for name in Topics.__dataclass_fields__}
