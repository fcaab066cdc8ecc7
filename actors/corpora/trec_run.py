"""A ranking of documents for each query that was brought in: a TREC run, ours or another system's."""

from __future__ import annotations

import math
from array import array
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from actors.corpora.lines import Fault, decoded, lines
from actors.corpora.records import BadInput

COLUMNS = "query_id Q0 doc_id rank score tag"


class TrecRun(NamedTuple):
    """doc_ids: each once. rankings: query_id -> int32 places in doc_ids, best first."""

    doc_ids: list[str]
    rankings: dict[str, NDArray[np.int32]]


def read(path: Path) -> TrecRun:
    """Read a run: six columns, separated by TABs where a line holds one (ids may then hold spaces), else by white space.

    As trec_eval does, a query's documents are ordered by score, whatever their rank says; equal scores by rank, then as they come.
    24 bytes are held per line, and each id once. Raises BadInput naming file, line and value: a line that has other columns, a
    rank or score that is no number, a document that a query has twice.
    """
    queries: dict[str, int] = {}
    docs: dict[str, int] = {}
    query_of, doc_of, ranks, scores = array("i"), array("i"), array("q"), array("d")
    for number, raw in lines(path):
        if not raw.strip():
            continue
        query_id, doc_id, rank, score = _parsed(path, number, raw)
        query_of.append(queries.setdefault(query_id, len(queries)))
        doc_of.append(docs.setdefault(doc_id, len(docs)))
        scores.append(score)
        ranks.append(rank)
    query, doc = np.asarray(query_of, np.int32), np.asarray(doc_of, np.int32)
    order = np.lexsort((np.asarray(ranks), -np.asarray(scores), query))
    doc_ids, query_ids = list(docs), list(queries)
    cuts = np.searchsorted(query[order], np.arange(1, len(queries)))
    rankings = dict(zip(query_ids, np.split(doc[order], cuts), strict=True)) if queries else {}
    for query_id, ranking in rankings.items():
        if len(np.unique(ranking)) < len(ranking):
            twice = doc_ids[int(np.argmax(np.bincount(ranking)))]
            raise BadInput(f"{path}: query {query_id} has document {twice} more than once. Keep one of its lines.")
    return TrecRun(doc_ids, rankings)


def _parsed(path: Path, number: int, raw: bytes) -> tuple[str, str, int, float]:
    try:
        line = decoded(raw).rstrip("\r\n")
        query_id, _, doc_id, rank, score, _ = line.split("\t") if "\t" in line else line.split()
        found = query_id, doc_id, int(rank), float(score)
        if not (math.isfinite(found[3]) and abs(found[2]) < 2**63):
            raise ValueError("rank or score is out of range")
        return found
    except (Fault, ValueError) as error:
        shown = raw[:80].decode("utf-8", "replace").strip()
        raise BadInput(
            f"first_stage.path={path}: line {number} is {shown!r} ({error}); expected {COLUMNS}, separated by TABs or spaces."
        ) from None
