"""Comparing methods on the same queries: means over repeated runs, and a paired t-test against the best other method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

PerQuery = Mapping[str, float]


@dataclass(frozen=True)
class Compared:
    """One method's value of one measure. mean and std (n - 1; 0 of a single run) are over the runs' means.

    p: two-sided paired t-test over queries, each the mean of its runs, against the best other method; 1 where nothing differs.
    significant: whether it is the best and p is below the level asked for (the `*` of GAREN's Table 1).
    """

    mean: float
    std: float
    rival: str
    p: float
    significant: bool


def compare(runs: Mapping[str, Sequence[PerQuery]], level: float) -> dict[str, Compared]:
    """runs: method -> one mapping query_id -> value for each of its runs. level: p below it is significant.

    Raises ValueError when methods differ in their queries.
    """
    queries = sorted(next(iter(runs.values()))[0])
    if any(sorted(run) != queries for repeated in runs.values() for run in repeated):
        raise ValueError("methods are compared on the same queries and these runs have different ones: run them all with the same.")
    values = {method: np.array([[run[q] for q in queries] for run in repeated]) for method, repeated in runs.items()}
    mean = {method: float(table.mean()) for method, table in values.items()}
    compared = {}
    for method, table in values.items():
        rival = max((m for m in sorted(mean) if m != method), key=mean.__getitem__, default="")  # of equals, the same in any order
        p = _paired(table.mean(axis=0), values[rival].mean(axis=0)) if rival else 1.0
        by_run = table.mean(axis=1)
        std = float(by_run.std(ddof=1)) if len(by_run) > 1 else 0.0
        compared[method] = Compared(mean[method], std, rival, p, bool(rival) and mean[method] > mean[rival] and p < level)
    return compared


def _paired(ours: np.ndarray, theirs: np.ndarray) -> float:
    if len(ours) < 2 or np.allclose(ours, theirs, rtol=0, atol=1e-12):
        return 1.0
    difference = ours - theirs
    if np.ptp(difference) < 1e-12:  # the same difference everywhere: no variance to test against
        return 0.0
    return float(stats.ttest_rel(ours, theirs).pvalue)
