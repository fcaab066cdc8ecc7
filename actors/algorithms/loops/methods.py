"""The methods by name. Adding one is adding its file and its line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from actors.algorithms.loops.bm25 import bm25
from actors.algorithms.loops.dialogue import Loop
from actors.algorithms.loops.documents import documents
from actors.algorithms.loops.gar import gar
from actors.algorithms.loops.garen import garen
from actors.algorithms.loops.repair import repair
from actors.algorithms.loops.retrieve_and_rerank import retrieve_and_rerank
from actors.algorithms.loops.rgs import rgs
from actors.algorithms.loops.slidegar import slidegar


class Method(NamedTuple):
    """A loop and the roles it asks: what it does not ask need not be deployed."""

    loop: Callable[..., Loop]
    asks: tuple[str, ...]


METHODS: dict[str, Method] = {
    "bm25": Method(bm25, ()),
    "documents": Method(documents, ("reranker", "navigator")),
    "gar": Method(gar, ("reranker",)),
    "garen": Method(garen, ("reranker", "navigator")),
    "repair": Method(repair, ("reranker", "encoder")),
    "retrieve_and_rerank": Method(retrieve_and_rerank, ("reranker",)),
    "rgs": Method(rgs, ("reranker",)),
    "slidegar": Method(slidegar, ("reranker",)),
}
