"""Exact neighbours with faiss-gpu: the same bytes as on a CPU. Runs with `make test-gpu` where faiss sees a GPU."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

from actors.algorithms.knn import nearest, nearest_of


def gpus() -> int:
    return int(faiss.get_num_gpus()) if hasattr(faiss, "StandardGpuResources") else 0


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(gpus() == 0, reason="no GPU that faiss can see")]


@pytest.mark.parametrize("base_rows", [700, 5000])
def test_the_same_bytes_as_on_a_cpu(base_rows: int) -> None:
    vectors = np.random.default_rng(0).standard_normal((5000, 384))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    vectors[::40] = vectors[0]
    on_gpu, on_cpu = nearest(vectors, 100, 900, 16, base_rows=base_rows, gpu=True), nearest(vectors, 100, 900, 16)
    for found, expected in zip(on_gpu, on_cpu, strict=True):
        assert found.tobytes() == expected.tobytes()
    rows = np.array([7, 4000, 12])
    assert nearest_of(vectors, rows, 16, gpu=True)[0].tobytes() == nearest_of(vectors, rows, 16)[0].tobytes()
