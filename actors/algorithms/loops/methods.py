"""The methods by name. Adding one is adding its file and its line here."""

from __future__ import annotations

from collections.abc import Callable

from actors.algorithms.loops.bm25 import bm25
from actors.algorithms.loops.dialogue import Loop
from actors.algorithms.loops.garen import garen
from actors.algorithms.loops.retrieve_and_rerank import retrieve_and_rerank

METHODS: dict[str, Callable[..., Loop]] = {
    "bm25": bm25,
    "garen": garen,
    "retrieve_and_rerank": retrieve_and_rerank,
}
