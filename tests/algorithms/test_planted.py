from __future__ import annotations

import numpy as np
import pytest

from actors.algorithms.partition import Leiden, level0
from actors.algorithms.planted import plant


def test_neighbours_are_other_documents_nearest_first_and_the_seed_decides() -> None:
    one, again, other = plant(500, 6, 3), plant(500, 6, 3), plant(500, 6, 4)
    assert one.neighbours.shape == (500, 6) and one.neighbours.dtype == np.int32
    assert (one.neighbours != np.arange(500)[:, None]).all() and (one.neighbours >= 0).all()
    assert all(len(set(row)) == 6 for row in one.neighbours.tolist())
    assert (one.neighbours == again.neighbours).all() and (one.neighbours != other.neighbours).any()
    assert sorted(set(one.group_of.tolist())) == list(range(one.group_of.max() + 1))


def test_groups_hold_a_dozen_and_neighbours_are_mostly_near() -> None:
    planted = plant(4000, 8, 0)
    sizes = np.bincount(planted.group_of)
    assert 5 < sizes.mean() < 14
    own = (planted.group_of[planted.neighbours] == planted.group_of[:, None]).mean()
    assert 0.3 < own < 0.95
    returned = (planted.neighbours[planted.neighbours] == np.arange(4000)[:, None, None]).any(axis=2).mean()
    assert 0.4 < returned < 0.95
    assert level0(planted.neighbours, Leiden(20, 1.0, 0.001, 2, 0)).labels.max() > 20


def test_too_few_documents_are_refused() -> None:
    with pytest.raises(ValueError, match="6 documents of 6 neighbours: expected more documents"):
        plant(6, 6, 0)
    assert plant(7, 6, 0).neighbours.shape == (7, 6)
