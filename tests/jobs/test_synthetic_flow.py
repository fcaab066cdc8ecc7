"""A synthetic corpus through the whole flow, as jobs with their Ray: nothing is read from outside and no model is loaded."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from actors.artifacts.corpus import open_corpus
from actors.artifacts.store import open_manifest
from conf.load import compose
from tests.jobs.conftest import Job, a_scratch, artifact, payload
from tests.jobs.test_resume import elsewhere, start_here

SYNTHETIC = ("corpus=synthetic", "embeddings=synthetic", "queries.limit=60")


def recall(said: str) -> float:
    """recall_100 as score_run prints it: the second figure behind the method's name."""
    found = re.search(r"^ +(?:garen|bm25)[^\d\n]* \d\.\d+ +(\d\.\d+)", said, re.MULTILINE)
    assert "recall_100" in said and found, said
    return float(found[1])


@pytest.mark.slow
def test_from_nothing_to_measures(tmp_path: Path) -> None:
    given = (*SYNTHETIC, "corpus.documents=2000", "cluster.num_cpus=4", "cluster.in_process=true")
    simulated = ("reranker=simulated", "navigator=simulated")
    said = {}
    with a_scratch() as scratch:
        Job("build_index", given, tmp_path, scratch).end()
        for name, judges in {"embedding": (), "simulated": simulated, "pool": (*simulated, "loop=bm25")}.items():
            Job("run_queries", (*given, *judges), tmp_path, scratch).end()
            said[name] = Job("score_run", (*given, *judges), tmp_path, scratch).end()
    counts = open_manifest(artifact(tmp_path, "embeddings"), "embeddings", checksums=True)["counts"]
    assert counts == {"documents": 2000, "dimension": 384}
    assert open_manifest(artifact(tmp_path, "queries"), "queries")["counts"]["queries"] == 60
    assert recall(said["simulated"]) > recall(said["pool"]) + 0.05, "groups lead to what words do not find"
    assert recall(said["embedding"]) > 0.3


def test_killed_before_any_change_to_the_file_system(tmp_path: Path) -> None:
    """Corpus and embeddings, without Ray: the same bytes as in one go."""
    settings = compose([f"artifacts.root={tmp_path / 'whole'}", *SYNTHETIC, "corpus.documents=50"])
    assert start_here(settings, ["corpus", "embeddings", "queries"])
    corpus = open_corpus(artifact(tmp_path / "whole", "corpus"))
    assert len(corpus) == 50 and len(set(corpus.texts())) == 50
    assert pq.read_table(artifact(tmp_path / "whole", "corpus") / "refused.parquet").num_rows == 0
    for kill_at in range(2, 60, 5):
        other = elsewhere(settings, tmp_path / str(kill_at), 12, 3)
        whole = start_here(other, ["corpus", "embeddings"], kill_at)
        assert whole or start_here(other, ["corpus", "embeddings"])
        for kind in ("corpus", "embeddings"):
            assert payload(artifact(tmp_path / str(kill_at), kind)) == payload(artifact(tmp_path / "whole", kind)), kill_at
        if whole:
            assert kill_at > 10, "it was hardly ever killed"
            return
    raise AssertionError("it never came to an end")
