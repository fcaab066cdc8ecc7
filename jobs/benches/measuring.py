"""What all benches do: a side in a process of its own, and a ratio with its spread."""

from __future__ import annotations

import multiprocessing
import statistics
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import ParamSpec, TypeVar

P, R = ParamSpec("P"), TypeVar("R")


def alone(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The result of a function in a fresh process, so that its CPU time and its peak of memory are its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *args, **kwargs).result()


def spread(ratios: Iterable[float]) -> dict[str, float]:
    """Median, least and most of the rounds."""
    found = list(ratios)
    return {"ratio": round(statistics.median(found), 3), "least": round(min(found), 3), "most": round(max(found), 3)}
