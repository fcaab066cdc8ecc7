"""What all benches do."""

from __future__ import annotations

import os

from jobs.benches.measuring import alone, spread


def test_a_side_has_a_process_of_its_own() -> None:
    assert len({os.getpid(), alone(os.getpid), alone(os.getpid)}) == 3


def test_a_spread_by_hand() -> None:
    assert spread(iter([3.0, 1.00049, 2.5])) == {"ratio": 2.5, "least": 1.0, "most": 3.0}
