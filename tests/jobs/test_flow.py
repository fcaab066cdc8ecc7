"""From a collection to metrics and answers, as jobs are called: one Ray for all of them, and what they say on the way."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval

from actors.artifacts.metrics import open_metrics
from actors.artifacts.queries import open_qrels
from actors.artifacts.store import BadArtifact
from actors.index import Hit
from conf import schema
from conf.load import BadConfig, compose
from jobs import build_index, run_queries, score_run, search, session, show_trace
from jobs.stages import STAGES, Addresses
from tests.jobs.conftest import StartJob, a_scratch, artifact, payload, take, write_collection
from tests.jobs.test_resume import STAGE_JOBS, start_here

DOCUMENTS, QUERIES, BUDGET = 60, 5, 30
QUESTION = "what is said about honey, a queen and her hive?"


@dataclass
class Flow:
    """A root in which everything was built by jobs, and what each of them said."""

    settings: schema.Settings
    root: Path
    said: dict[str, str] = field(default_factory=dict)
    hits: list[Hit] = field(default_factory=list)


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory, models: Path) -> Iterator[Flow]:
    folder = tmp_path_factory.mktemp("flow")
    root = take(folder / "root", Path(), "", models)
    (folder / "question").write_text(QUESTION)
    settings = compose((
        f"artifacts.root={root}", "corpus=beir", f"corpus.path={write_collection(folder / 'c', DOCUMENTS, QUERIES)}",
        f"loop.budget={BUDGET}", f"ask={folder / 'question'}", "query_id=q0", "cluster.num_cpus=4", "cluster.in_process=true",
        "cluster.embedder.actors=1", "cluster.summarizer.actors=1", "cluster.searchers.actors=1",
    ))  # fmt: skip
    flow = Flow(settings, root)
    with own_ray():
        for job in (build_index, run_queries, score_run, search, show_trace):
            found = said(flow, job.__name__, job.run)
        flow.hits = found["jobs.search"]
    return flow
