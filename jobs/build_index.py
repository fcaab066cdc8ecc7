"""Build everything that answers queries, stage after stage; what is built already is taken as it is.

Reads: the files that `corpus` and `queries` name. Writes: corpus, embeddings, graph, groups, lexicon, summaries, index, queries.
python -m jobs.build_index corpus=folder corpus.path=/home/me/notes
Cost: that of the stages; embedding takes most of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actors.artifacts.store import Address
from conf import schema
from jobs import (
    build_corpus,
    build_embeddings,
    build_graph,
    build_groups,
    build_lexicon,
    build_lists,
    build_queries,
    build_summaries,
    building,
    session,
)
from jobs.console import say
from jobs.stages import Addresses

MANIFEST_KB = 16  # an index is no more than that


def run(settings: schema.Settings) -> Address:
    """Run the stages in order. Returns the index, which holds the names of what it is made of."""
    for stage in (build_corpus, build_embeddings, build_graph, build_groups, build_lexicon, build_summaries, build_queries):
        stage.run(settings)
    if settings.answering.reads_lists:
        build_lists.run(settings)
    address = building.build(settings, "index", make, ray=False, needs={"disk": MANIFEST_KB / 1024})
    say(f"index: {address.folder}")
    return address


def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    """An index has no files of its own: its manifest names its parts."""
    return {"documents": building.counts(Addresses(settings)["corpus"])["documents"]}


main = session.job(run)

if __name__ == "__main__":
    main()
