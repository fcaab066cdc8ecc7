"""Embed every document.

Reads: corpus. Writes: embeddings.   python -m jobs.build_embeddings corpus=scifact cluster.embedder.actors=4
Cost: model time; resumed by parts of cluster.embedder.part_rows documents. embeddings=synthetic
and embeddings=brought: about 15 us a document.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray

from actors.artifacts import embeddings as vectors
from actors.artifacts.corpus import open_corpus
from actors.artifacts.store import Address
from actors.corpora import brought
from actors.embedder import BringPart, DrawPart, EmbedPart
from actors.engines.build import Place
from conf import schema
from jobs import building, costs, session
from jobs.batch import map_spans

DRAWN_ROWS = 16384  # of a part that asks no model: a second's work
FORESEEN_DIMENSION = 1024  # the model is not loaded to foresee the disk: parts and the file they become, 2 bytes a value


def run(settings: schema.Settings) -> Address:
    """Build the embeddings artifact."""
    documents = building.count_of(settings, "corpus", "documents")
    node = settings.embeddings
    dimension = getattr(node, "dimension", FORESEEN_DIMENSION)
    address = building.build(settings, "embeddings", make, needs={"disk": 2 * documents * dimension * 2 / 2**20})
    if isinstance(node, schema.ModelEmbeddings):
        used = building.counts(address) if address.built else {}
        if address.built:
            tokens = {"model_calls": used["documents"], "prompt_tokens": used.get("tokens", 0)}
            costs.show({"embedder": tokens}, {"embedder": node.model}, settings.prices, foreseen=False)
        elif settings.plan and documents:
            foreseen = costs.of_embeddings(node, building.inputs_of(address)["corpus"])
            costs.show({"embedder": foreseen}, {"embedder": node.model}, settings.prices, foreseen=True)
    return address


def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    pool = settings.cluster.embedder
    rows = len(open_corpus(inputs["corpus"]))
    worker, arguments, step = _worker(settings, inputs["corpus"], folder)
    spans = vectors.missing_parts(folder, rows, step)
    map_spans(settings.cluster, pool, worker, arguments, spans, ("embeddings", rows, "documents"))
    used: dict[str, int] = ray.get(ray.remote(num_cpus=1)(vectors.join).remote(folder, rows))
    return {"documents": rows, **used}


def _worker(settings: schema.Settings, corpus: Path, folder: Path) -> tuple[type, dict[str, Any], int]:
    """What makes the vectors, with its arguments, and the rows of a part."""
    pool, node = settings.cluster.embedder, settings.embeddings
    if isinstance(node, schema.SyntheticEmbeddings):
        return DrawPart, {"draft": str(folder), "node": node}, DRAWN_ROWS
    if isinstance(node, schema.BroughtEmbeddings):
        rows = len(open_corpus(corpus))
        brought.vectors(node.path, rows)  # said here, before any worker starts
        return BringPart, {"draft": str(folder), "path": node.path, "rows": rows}, DRAWN_ROWS
    arguments = {
        "corpus": str(corpus),
        "draft": str(folder),
        "model": node,
        "cache": str(Path(settings.artifacts.root) / "models"),
        "place": Place.of(pool, settings.cluster.endpoint),
    }
    return EmbedPart, arguments, pool.part_rows


main = session.job(run)

if __name__ == "__main__":
    main()
