"""Embed every document.

Reads: corpus. Writes: embeddings.   python -m jobs.build_embeddings corpus=scifact cluster.embedder.actors=4
Cost: model time; resumed by parts of cluster.embedder.part_rows documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actors.artifacts import embeddings as vectors
from actors.artifacts.corpus import open_corpus
from actors.artifacts.store import Address
from actors.embedder import EmbedPart
from actors.engines.build import Place
from conf import schema
from jobs import building, costs, session
from jobs.batch import map_spans

FORESEEN_DIMENSION = 1024  # the model is not loaded to foresee the disk: parts and the file they become, 2 bytes a value


def run(settings: schema.Settings) -> Address:
    """Build the embeddings artifact."""
    documents = building.count_of(settings, "corpus", "documents")
    address = building.build(settings, "embeddings", make, needs={"disk": 2 * documents * FORESEEN_DIMENSION * 2 / 2**20})
    node = settings.embeddings
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
    spans = vectors.missing_parts(folder, rows, pool.part_rows)
    worker = {
        "corpus": str(inputs["corpus"]),
        "draft": str(folder),
        "model": settings.embeddings,
        "cache": str(Path(settings.artifacts.root) / "models"),
        "place": Place.of(settings.cluster.embedder, settings.cluster.endpoint),
    }
    map_spans(settings.cluster, pool, EmbedPart, worker, spans, ("embeddings", rows, "documents"))
    return {"documents": rows, **vectors.join(folder, rows)}


main = session.job(run)

if __name__ == "__main__":
    main()
