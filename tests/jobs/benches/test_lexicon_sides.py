from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from actors.algorithms.terms import Analyzer
from actors.artifacts import corpus
from conf import schema
from jobs import bench_lexicon
from jobs.benches.lexicon_sides import SIDES, Task, Took, measure

NODE = schema.Lexicon(0.9, 0.4, "english", "english")


@pytest.fixture
def task(tmp_path: Path) -> Task:
    draw = np.random.default_rng(2)
    texts = [" ".join(f"w{n}" for n in draw.integers(0, 400, 30)) for _ in range(80)]
    corpus.write(tmp_path, ((str(row), text) for row, text in enumerate(texts)))
    queries = [Analyzer("english", "english").terms(text)[:15] for text in texts[:60]]
    return Task(NODE, tmp_path, 60, 25, queries, 10)


@pytest.mark.parametrize("side", SIDES)
def test_every_side_finds_the_document_whose_words_are_asked(side: str, task: Task):
    if side != "ours" and not find_spec(side):
        pytest.skip(f"{side} is not installed: pip install -e '.[bench]'")
    took = measure(side, task)
    assert took.best == list(range(60))
    assert took.building > 0 and took.memory > 10 and 0 < took.query_milliseconds <= took.slowest_milliseconds


def test_ratios_by_hand():
    """Two rounds: the rival took 3 and 4 times as long to build, the same memory and half the time for a query."""
    ours = [Took(1, 1, 100, 4, 5, [1, 2]), Took(0, 1, 100, 4, 5, [1, 2])]
    rival = [Took(2, 4, 100, 2, 5, [1, -1]), Took(0, 4, 100, 2, 5, [1, 2])]
    ratios = bench_lexicon.ratios_of({"ours": ours, "rival": rival}, "rival")
    assert ratios["building"] == {"ratio": 3.5, "least": 3, "most": 4}
    assert ratios["memory"] == {"ratio": 1, "least": 1, "most": 1} and ratios["query"]["ratio"] == 0.5
    assert ratios["same best document"] == 0.5
    assert bench_lexicon.line(60, ours) == [40, 0.5, 1, 100, 4, 5]
