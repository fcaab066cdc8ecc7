"""BM25 first stage: terms to a pool of rows, or to the scores of any rows. `bm25_building` makes the lexicon from texts.

Weights are those of BM25 in the form that Lucene computes (Kamphuis et al., ECIR 2020, "accurate" Lucene):
`idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5))`, `weight(t, d) = idf(t) * tf / (tf + k1 * (1 - b + b * |d| / avgdl))`.
They are held twice, by term (postings) and by row (forward), so that scoring a document costs its length and not N.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from math import isqrt
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actors.algorithms.terms import require

WEIGHTINGS = ("plain", "bm25")
# Rows that are scored at a time: their scores, half a megabyte, stay in a core's cache. 65,536 and 262,144 took 1.1 and 1.4
# times as long for terms that every fifth document holds.
RANGE = 131_072


class Lexicon(Protocol):
    """What searching needs; arrays may be memory-mapped. V terms in the order of their UTF-8 bytes, N rows, P postings."""

    posting_offsets: NDArray[np.int64]  # [V+1] where a term's postings begin; their number is its document frequency
    posting_rows: NDArray[np.int32]  # [P] ascending within a term
    posting_weights: NDArray[np.float32]  # [P]
    forward_offsets: NDArray[np.int64]  # [N+1] where a row's terms begin
    forward_terms: NDArray[np.int32]  # [P] term ids, ascending within a row
    forward_weights: NDArray[np.float32]  # [P] the same weights as the postings
    term_offsets: NDArray[np.int64]  # [V+1] into term_bytes
    term_bytes: NDArray[np.uint8]  # the terms' UTF-8, one after another
    average_length: float  # avgdl: terms per document, repetitions included
    k1: float
    b: float


def document_frequency(lexicon: Lexicon, rows: ArrayLike) -> dict[str, int]:
    """How many documents of the corpus hold each term of some rows. Nothing is searched: the rows' own term ids lead to it."""
    places, _ = _places(lexicon.forward_offsets, _rows(rows, len(lexicon.forward_offsets) - 1))
    ids = np.unique(lexicon.forward_terms[places]).astype(np.int64)
    frequencies = lexicon.posting_offsets[ids + 1] - lexicon.posting_offsets[ids]
    starts, ends = (np.asarray(lexicon.term_offsets[at]).tolist() for at in (ids, ids + 1))
    spellings = lexicon.term_bytes.data
    terms = [str(spellings[start:end], "utf-8") for start, end in zip(starts, ends, strict=True)]
    return dict(zip(terms, frequencies.tolist(), strict=True))


def query_weights(lexicon: Lexicon, terms: Iterable[str], weighting: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Ids int32, ascending, and weights float32 of the query's terms; terms that no document holds are left out.

    `weighting`: "plain" counts a term as often as it occurs; "bm25" weighs the query as if it were a document.
    """
    require("weighting", weighting, WEIGHTINGS)
    counted = Counter(terms)
    known = sorted(pair for pair in zip(_ids(lexicon, counted), counted.values(), strict=True) if pair[0] >= 0)
    ids = np.array([term for term, _ in known], dtype=np.int32)
    counts = np.array([occurrences for _, occurrences in known], dtype=np.float64)
    weights = counts if weighting == "plain" else _bm25_query(lexicon, ids, counts)
    return ids, weights.astype(np.float32)


def retrieve(
    lexicon: Lexicon, terms: Iterable[str], depth: int, excluded: ArrayLike = (), *, weighting: str = "plain"
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The pool: rows int32 [<= depth] by score descending, ties by row ascending, and their scores float32.

    A row that scores 0 (it holds none of the terms) or is `excluded` is not in it. Raises ValueError for a depth below 1
    and for an excluded row that the corpus does not have. Memory: RANGE scores and a few times `depth`, whatever N.
    """
    if depth < 1:
        raise ValueError(f"depth: {depth}; expected 1 or more documents in the pool")
    documents = len(lexicon.forward_offsets) - 1
    out = np.sort(_rows(excluded, documents))
    rows, scores = np.empty(0, np.int32), np.empty(0, np.float32)
    for first, of_range in _ranges(lexicon, *query_weights(lexicon, terms, weighting)):
        inside = slice(*np.searchsorted(out, (first, first + len(of_range))))
        of_range[out[inside] - first] = 0
        # rows ascend: whoever only equals the last of a full pool comes behind it
        least = scores[-1] if len(scores) == depth else _floor(of_range, depth)
        better = np.flatnonzero(of_range > least)
        if len(better):
            rows = np.concatenate([rows, (better + first).astype(np.int32)])
            rows, scores = _best(rows, np.concatenate([scores, of_range[better]]), depth)
    return rows, scores


def _floor(scores: NDArray[np.float32], depth: int) -> np.float32:
    """A score that `depth` rows or more exceed, read off a sixteenth of them, or 0: most rows hold a common word and no more, and
    to sort out the best of them all took longer than to score them.
    """
    some, expected = scores[::16], depth // 16
    place = expected + 4 * isqrt(expected + 1) + 4  # four standard deviations further down
    if place >= len(some):
        return np.float32(0)
    guess: np.float32 = np.partition(some, -place)[-place]
    return guess if np.count_nonzero(scores > guess) >= depth else np.float32(0)


def _ranges(lexicon: Lexicon, ids: NDArray[np.int32], weights: NDArray[np.float32]) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """The scores of RANGE rows after another and the first of these rows; ranges without a term are passed over.

    One array holds them all in turn, and the caller may write into it.
    """
    documents = len(lexicon.forward_offsets) - 1
    # int32 as the rows are: searchsorted would copy them otherwise
    edges = np.minimum(np.arange(0, documents + RANGE, RANGE), documents).astype(np.int32)
    spans = [(int(lexicon.posting_offsets[term]), int(lexicon.posting_offsets[term + 1])) for term in ids.tolist()]
    cuts = np.array([start + np.searchsorted(lexicon.posting_rows[start:end], edges) for start, end in spans], dtype=np.int64)
    scores = np.zeros(min(RANGE, documents), dtype=np.float32)
    held = np.diff(cuts.reshape(len(spans), len(edges))).any(axis=0)
    for number in np.flatnonzero(held).tolist():
        first, last = edges[number : number + 2].tolist()
        scores[:] = 0
        for weight, start, end in zip(weights, cuts[:, number].tolist(), cuts[:, number + 1].tolist(), strict=True):
            # np.add.at is quickest with intp places: it converts others one by one
            places = np.subtract(lexicon.posting_rows[start:end], first, dtype=np.intp)
            np.add.at(scores, places, lexicon.posting_weights[start:end] * weight)
        yield first, scores[: last - first]


def score(lexicon: Lexicon, terms: Iterable[str], rows: ArrayLike, *, weighting: str = "plain") -> NDArray[np.float32]:
    """Scores float32 [len(rows)] of any rows, in the order given: bit for bit those of `retrieve`, or 0.

    Both add a row's float32 products one after another in the order of the term ids. Raises ValueError for a row that the
    corpus does not have.
    """
    return score_weighted(lexicon, *query_weights(lexicon, terms, weighting), rows)


def score_weighted(lexicon: Lexicon, ids: NDArray[np.int32], weights: NDArray[np.float32], rows: ArrayLike) -> NDArray[np.float32]:
    """`score` for a query whose `query_weights` are at hand: one that is scored again and again looks its terms up once."""
    wanted = _rows(rows, len(lexicon.forward_offsets) - 1)
    scores = np.zeros(len(wanted), dtype=np.float32)
    if not len(ids):
        return scores
    places, owners = _places(lexicon.forward_offsets, wanted)
    held = lexicon.forward_terms[places]
    nearest = np.minimum(np.searchsorted(ids, held), len(ids) - 1)
    hit = np.flatnonzero(ids[nearest] == held)
    np.add.at(scores, owners[hit], lexicon.forward_weights[places[hit]] * weights[nearest[hit]])
    return scores


def _bm25_query(lexicon: Lexicon, ids: NDArray[np.int32], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """BRIGHT's BM25 baseline (Su et al., 2024): the document formula over the query's known terms, |q| in place of |d|.

    The documents' weights hold idf already, so in the score it counts twice. Anserini calls it query-side BM25.
    """
    frequency = lexicon.posting_offsets[ids + 1] - lexicon.posting_offsets[ids]
    idf = np.log(len(lexicon.forward_offsets) / (frequency + 0.5))  # N + 1 offsets
    length = counts.sum() / lexicon.average_length
    weights: NDArray[np.float64] = idf * counts / (counts + lexicon.k1 * (1 - lexicon.b + lexicon.b * length))
    return weights


def _ids(lexicon: Lexicon, terms: Iterable[str]) -> list[int]:
    """Each term's id, or -1: bisection in the term table, which stays on disk."""
    offsets, spellings = lexicon.term_offsets.data, lexicon.term_bytes.data
    size = len(offsets) - 1

    def spelling(term: int) -> bytes:
        return spellings[offsets[term] : offsets[term + 1]].tobytes()

    def find(wanted: bytes) -> int:
        term = bisect_left(range(size), wanted, key=spelling)
        return term if term < size and spelling(term) == wanted else -1

    return [find(term.encode()) for term in terms]


def _best(rows: NDArray[np.int32], scores: NDArray[np.float32], depth: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The best `depth`. Rows that tie must come in ascending order."""
    if len(rows) > depth:
        # Everything that ties with the last place stays, so that the stable sort below decides by row.
        at_least = np.flatnonzero(scores >= np.partition(scores, -depth)[-depth])
        rows, scores = rows[at_least], scores[at_least]
    order = np.argsort(-scores, kind="stable")[:depth]
    return rows[order], scores[order]


def _places(offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every place of the forward index that belongs to `rows`, row after row, and which of `rows` it belongs to."""
    starts = np.asarray(offsets[rows])
    lengths = offsets[rows + 1] - starts
    owners = np.repeat(np.arange(len(rows)), lengths)
    shift = starts - (np.cumsum(lengths) - lengths)
    return np.arange(len(owners)) + shift[owners], owners


def _rows(given: ArrayLike, documents: int) -> NDArray[np.int64]:
    """The rows as an index. A negative one would silently mean a document at the other end."""
    rows = np.asarray(given, dtype=np.int64)
    if len(rows) and (rows.min() < 0 or rows.max() >= documents):
        wrong = rows[(rows < 0) | (rows >= documents)][0]
        raise ValueError(f"row: {wrong}; expected 0 to {documents - 1}. Are these rows from another corpus?")
    return rows
