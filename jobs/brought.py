"""What was made elsewhere and is brought in place of an artifact, as the stages take it: checked and put into our form by tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import ray

from actors.artifacts import graph as graph_files, summaries as summary_files
from actors.artifacts.corpus import open_corpus
from actors.artifacts.embeddings import open_vectors
from actors.artifacts.queries import Query
from actors.corpora import brought
from actors.engines.brought import BroughtEmbedder
from actors.index import open_index
from actors.roles import asked_by
from conf import schema
from conf.load import BadConfig
from jobs.batch import run_tasks

PASS_ROWS = 262_144  # rows of a file that are looked through at once


def check_questions(settings: schema.Settings, index: Path, queries: Sequence[Query]) -> None:
    """Whether every question has a vector, where vectors were brought and something compares them with questions."""
    node = settings.embeddings
    if not isinstance(node, schema.BroughtEmbeddings) or not _compares(settings.answering):
        return
    embedder = BroughtEmbedder(node)
    embedder.check([query.text for query in queries])
    d = open_index(str(index)).vectors.shape[1]
    if embedder.dimension != d:
        expected = f"vectors of {d} values, as the documents have"
        raise BadConfig("embeddings.queries", node.queries, expected, "Embed the questions by the model of the documents.")


def _compares(answering: schema.Answering) -> bool:
    """Whether answering compares vectors with questions."""
    nodes = [answering.node_of(role) for role in asked_by(answering) if role != "encoder"]
    judges = (schema.EmbeddingReranker, schema.EmbeddingNavigator)
    biased = any(isinstance(node, schema.SimulatedJudge) and node.bias for node in nodes)
    return biased or "encoder" in asked_by(answering) or any(isinstance(node, judges) for node in nodes)


def graph(node: schema.BroughtGraph, embeddings: Path, folder: Path, tasks: schema.Tasks) -> dict[str, Any]:
    """The graph artifact's files of a neighbour array. Similarities that are not brought are those of the vectors."""
    rows = len(open_vectors(embeddings))
    found = brought.neighbours(node.path, rows, node.k)  # said here, before any task starts
    if node.similarities:
        brought.similarities(node.similarities, found.shape)
    spans = graph_files.missing_blocks(folder, rows, tasks.block_rows)
    task = ray.remote(num_cpus=tasks.num_cpus)(graph_block)
    waiting = [task.remote(node, embeddings, folder, first, last) for first, last in spans]
    run_tasks(waiting, ("graph", rows, "documents"), rows - sum(last - first for first, last in spans))
    counts: dict[str, Any] = ray.get(ray.remote(num_cpus=tasks.num_cpus)(graph_end).remote(node, folder, rows))
    return {"documents": rows, "k": node.k, **counts}


def graph_block(node: schema.BroughtGraph, embeddings: Path, folder: Path, first: int, last: int) -> int:
    """The rows first..last, checked and written; returns their number."""
    vectors = open_vectors(embeddings)
    file = brought.neighbours(node.path, len(vectors), node.k)
    edges = brought.edges(file[first:last], first, len(vectors), node.k, node.path)
    if node.similarities:
        values = brought.similarities(node.similarities, file.shape)
        similarities = brought.taken(values[first:last], edges, first, node.similarities)
    else:
        similarities = brought.cosines(edges.neighbours, first, vectors)
    graph_files.write_block(folder, first, edges.neighbours, similarities.astype(np.float16))
    return last - first


def graph_end(node: schema.BroughtGraph, folder: Path, rows: int) -> dict[str, int]:
    """Join the blocks and count: edges, and lines that named the document itself."""
    graph_files.join(folder, rows, node.k)
    neighbours = graph_files.open_graph(folder).neighbours
    file = brought.neighbours(node.path, rows, node.k)
    edges = selves = 0
    for first in range(0, rows, PASS_ROWS):
        last = min(first + PASS_ROWS, rows)
        edges += int((neighbours[first:last] >= 0).sum())
        selves += int((file[first:last] == np.arange(first, last)[:, None]).any(axis=1).sum())
    return {"edges": edges, "left out themselves": selves}


def summaries(node: schema.BroughtSummaries, folder: Path, number: int) -> None:
    """Keep the descriptions of so many groups in the draft, in their order; a task. Raises ValueError when too many are missing."""
    table = brought.summaries(node.path, number)
    missing = table["concept"].null_count
    if missing > node.stand_ins * number:
        raise ValueError(
            f"summaries.path={node.path}: {missing:,} of {number:,} groups have no line, expected at most "
            f"{math.floor(node.stand_ins * number):,} (summaries.stand_ins). Bring the others, or allow more stand-ins."
        )
    summary_files.write_brought(folder, table)


def groups(node: schema.BroughtGroups, corpus: Path) -> tuple[np.ndarray, dict[str, int]]:
    """The group of every document, and what is counted beside their sizes."""
    opened = open_corpus(corpus)
    found = brought.membership(node.path, opened.doc_ids(), len(opened))
    return found.group_of, {"without a group": found.alone, "unknown documents": found.unknown}
