"""What bench_graph measures with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from actors.algorithms import knn
from actors.artifacts import embeddings as vector_files
from conf import schema
from conf.load import compose
from jobs.bench_graph import ratio, rounds
from jobs.benches.graph_sides import SIDES, Task, Took, as_near, measure


@pytest.fixture
def task(tmp_path: Path) -> Task:
    draw = np.random.default_rng(0)
    topics = draw.standard_normal((60, 24))
    vectors = topics[draw.integers(0, 60, 1500)] + 0.5 * draw.standard_normal((1500, 24))
    vector_files.write_part(tmp_path, 0, (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), {})
    vector_files.join(tmp_path, 1500)
    node = compose(["artifacts.root=/x", "graph=approximate", "graph.k=8", "graph.sample=200"]).graph
    assert isinstance(node, schema.ApproximateGraph)
    return Task("ours", node, tmp_path, 1400, 24)


@pytest.mark.parametrize("side", SIDES)
def test_every_side_finds_neighbours(side: str, task: Task) -> None:
    took = measure(Task(side, task.node, task.embeddings, task.documents, 24))
    assert took.recall > 0.9 and took.seconds > 0 and took.memory > 10
    vectors = vector_files.open_vectors(task.embeddings)[:1400]
    found = SIDES[side](vectors, task)
    assert knn.recall(found, knn.nearest(vectors, 0, len(found), 8)[0]) > 0.9


def test_recall_by_hand_takes_any_of_equally_near_ones() -> None:
    vectors = np.array([[1, 0], [1, 0], [1, 0], [0.5, 0], [0.25, 0], [0, 0]], np.float16)
    rows = np.array([3, 0])
    assert as_near(vectors, rows, np.array([[1, 2], [2, 1]], np.int32), 2) == 1.0
    assert as_near(vectors, rows, np.array([[1, 4], [2, 3]], np.int32), 2) == 0.5
    for wrong in ([[3, 1], [1, 2]], [[1, 1], [1, 2]], [[-1, 1], [1, 2]]):
        with pytest.raises(ValueError, match="1 documents have themselves"):
            as_near(vectors, rows, np.array(wrong, np.int32), 2)


def test_the_rival_keeps_as_few_documents_as_give_our_recall(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def alone(_: object, task: Task) -> Took:
        asked.append((task.side, task.rival_k))
        return Took(10.0, 0.9 if task.side == "ours" else {16: 0.5, 20: 0.7, 24: 0.8, 32: 0.95}[task.rival_k], 1.0)

    monkeypatch.setattr("jobs.bench_graph.alone", alone)
    took = rounds([task, Task("NN-Descent", task.node, task.embeddings, 100)])
    assert [call for call in asked if call[0] != "ours"] == [("NN-Descent", k) for k in (16, 20, 24, 32, 32, 32)]
    assert {side: len(results) for side, results in took.items()} == {"ours": 3, "NN-Descent": 3}


def test_ratios_by_hand() -> None:
    took = {"ours": [Took(s, 0.97, 1.0) for s in (1.0, 2.0, 4.0)], "exact": [Took(s, 1.0, 1.0) for s in (10.0, 30.0, 16.0)]}
    assert ratio(took, "exact") == {"ratio": 10, "least": 4, "most": 15, "recall": 1.0, "our recall": 0.97}
