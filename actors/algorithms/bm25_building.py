"""Texts to a BM25 lexicon in shards, so that memory is bounded by a shard and the vocabulary: shards of rows are read on their
own, their vocabularies are merged, every shard is weighed by the statistics of the whole, and its pairs come together by term.

How the rows are cut into shards, and the terms into ranges, never changes a bit of the lexicon.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.terms import Analyzer, words
from actors.algorithms.vocabularies import Vocabulary, merge, places

TOKENS = 2**23  # of a shard at most, but for its last row: long documents make short shards


class Shard(NamedTuple):
    """Consecutive rows on their own: n rows, v terms, p pairs of a row and a term that it holds."""

    vocabulary: Vocabulary
    frequency: NDArray[np.int32]  # [v] rows that hold the term
    pair_terms: NDArray[np.int32]  # [p] ids in this vocabulary, ascending within a row
    pair_counts: NDArray[np.int32]  # [p] how often
    row_pairs: NDArray[np.int32]  # [n] pairs of each row
    lengths: NDArray[np.int32]  # [n] terms of each row, repetitions included


class Statistics(NamedTuple):
    """What a weight takes from the whole corpus."""

    average_length: float
    k1: float
    b: float


@dataclass
class BuiltLexicon:
    """A `bm25.Lexicon` in memory, as `build` returns it."""

    posting_offsets: NDArray[np.int64]
    posting_rows: NDArray[np.int32]
    posting_weights: NDArray[np.float32]
    forward_offsets: NDArray[np.int64]
    forward_terms: NDArray[np.int32]
    forward_weights: NDArray[np.float32]
    term_offsets: NDArray[np.int64]
    term_bytes: NDArray[np.uint8]
    average_length: float
    k1: float
    b: float


def build(texts: Iterable[str], analyzer: Analyzer, k1: float, b: float) -> BuiltLexicon:
    """The lexicon of `texts`, read once, in row order, in memory. Raises ValueError if no text holds a term."""
    shards = list(read(texts, analyzer, TOKENS))
    documents, tokens = sum(len(shard.lengths) for shard in shards), sum(int(shard.lengths.sum()) for shard in shards)
    check_some(documents, tokens)
    vocabulary = merge(shard.vocabulary for shard in shards)
    ids = list(places((shard.vocabulary for shard in shards), vocabulary))
    frequency = document_frequency(zip(ids, (shard.frequency for shard in shards), strict=True), len(vocabulary.offsets) - 1)
    statistics = Statistics(tokens / documents, k1, b)
    weights = [weigh(shard, idf(frequency[own], documents), statistics) for shard, own in zip(shards, ids, strict=True)]
    firsts = offsets_of([len(shard.lengths) for shard in shards])[:-1].tolist()
    parts = [
        Part(own, offsets_of(shard.frequency), *by_term(shard, of_pairs, first))
        for own, shard, of_pairs, first in zip(ids, shards, weights, firsts, strict=True)
    ]
    posting_offsets = offsets_of(frequency)
    rows, by_terms = postings(parts, posting_offsets)
    return BuiltLexicon(
        posting_offsets=posting_offsets,
        posting_rows=rows,
        posting_weights=by_terms,
        forward_offsets=offsets_of(np.concatenate([shard.row_pairs for shard in shards])),
        forward_terms=np.concatenate([own[shard.pair_terms] for own, shard in zip(ids, shards, strict=True)]),
        forward_weights=np.concatenate(weights),
        term_offsets=vocabulary.offsets,
        term_bytes=vocabulary.bytes,
        average_length=statistics.average_length,
        k1=k1,
        b=b,
    )


def check_some(documents: int, tokens: int) -> None:
    """Raises ValueError when no document holds a term."""
    if not tokens:
        raise ValueError(
            f"corpus: none of its {documents} documents holds a term, so nothing can be found; expected words that are not "
            f"all stop words. Check which field is read as the text, or set lexicon.stop_words=none"
        )


def offsets_of(sizes: Sequence[int] | NDArray[np.int32] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Where things of these sizes begin one after another, and where the last ends: int64 [len(sizes) + 1]."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


# --- one shard --------------------------------------------------------------------------------------------------------


class _Ids(dict[str, int]):
    """Word -> id of its term, -1 for a stop word. Every spelling is lowered and stemmed once: most of the work of reading."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._term = analyzer.term
        self.terms: dict[str, int] = {}

    def __missing__(self, word: str) -> int:
        term = self._term(word)
        self[word] = found = -1 if term is None else self.terms.setdefault(term, len(self.terms))
        return found


def read(texts: Iterable[str], analyzer: Analyzer, tokens: int) -> Iterator[Shard]:
    """The texts as shards, each of which ends with the text in which it reaches `tokens` words; one text is held at a time.

    Held while reading a shard: four bytes per word, and its different words.
    """
    ids, ends, met = array("i"), array("q", [0]), _Ids(analyzer)
    for text in texts:
        ids.fromlist(list(map(met.__getitem__, words(text))))  # quicker than extend, which takes one by one
        ends.append(len(ids))
        if len(ids) >= tokens:
            yield _shard(np.array(ids, np.int32), np.array(ends, np.int64), met.terms)
            ids, ends, met = array("i"), array("q", [0]), _Ids(analyzer)
    if len(ends) > 1:
        yield _shard(np.array(ids, np.int32), np.array(ends, np.int64), met.terms)


def _shard(ids: NDArray[np.int32], ends: NDArray[np.int64], met: dict[str, int]) -> Shard:
    """Count the words of every row. ids: -1 for what is left out, else a number of `met`. ends: [n+1]."""
    from scipy.sparse import csr_array  # late: searchers, which never build, are spared scipy

    terms = sorted(met)
    rank = np.empty(len(terms), dtype=np.int32)
    rank[np.array([met[term] for term in terms], dtype=np.int64)] = np.arange(len(terms), dtype=np.int32)
    kept = ids >= 0
    ends = offsets_of(kept.astype(np.int32))[ends]
    ids = rank[ids[kept]]
    pairs = csr_array((np.ones(len(ids), np.int32), ids, ends.astype(np.int32)), shape=(len(ends) - 1, max(len(terms), 1)))
    pairs.sum_duplicates()
    spellings = [term.encode() for term in terms]
    return Shard(
        Vocabulary(offsets_of(list(map(len, spellings))), np.frombuffer(b"".join(spellings), dtype=np.uint8)),
        np.bincount(pairs.indices, minlength=len(terms)).astype(np.int32),
        pairs.indices,
        pairs.data,
        np.diff(pairs.indptr).astype(np.int32),
        np.diff(ends).astype(np.int32),
    )


# --- the whole --------------------------------------------------------------------------------------------------------


def document_frequency(shards: Iterable[tuple[NDArray[np.int32], NDArray[np.int32]]], size: int) -> NDArray[np.int64]:
    """int64 [size] summed over (ids in the whole vocabulary, frequency) of every shard."""
    frequency = np.zeros(size, dtype=np.int64)
    for ids, of_shard in shards:
        frequency[ids] += of_shard
    return frequency


def idf(frequency: NDArray[np.int64], documents: int) -> NDArray[np.float32]:
    """Of terms with these document frequencies. Rounded to float32 before it is multiplied, as bm25s does."""
    different, which = np.unique(frequency, return_inverse=True)
    # math.log and not np.log, whose last bit depends on the machine's vector instructions
    logs = [log(1 + (documents - df + 0.5) / (df + 0.5)) for df in different.tolist()]
    return np.array(logs, dtype=np.float32)[which]


# --- from shards to the lexicon ---------------------------------------------------------------------------------------


def weigh(shard: Shard, idf_of: NDArray[np.float32], whole: Statistics) -> NDArray[np.float32]:
    """The weights float32 [p] of a shard's pairs; idf_of [v] is that of its terms. In double precision but for idf, as bm25s."""
    norm = whole.k1 * ((1 - whole.b) + whole.b * shard.lengths / whole.average_length)
    weights = np.repeat(norm, shard.row_pairs)
    weights += shard.pair_counts
    np.divide(shard.pair_counts, weights, out=weights)
    weights *= idf_of[shard.pair_terms]
    return weights.astype(np.float32)


def by_term(shard: Shard, weights: NDArray[np.float32], first: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """A shard's pairs by term and within a term by row: rows int32 [p], of which the shard's first is `first`, and weights [p]."""
    from scipy.sparse import csr_array

    shape = len(shard.lengths), max(len(shard.frequency), 1)
    turned = csr_array((weights, shard.pair_terms, offsets_of(shard.row_pairs).astype(np.int32)), shape=shape).tocsc()
    return turned.indices + np.int32(first), turned.data


class Part(NamedTuple):
    """A shard's pairs by term, as `postings` takes them together."""

    ids: NDArray[np.int32]  # [v] of the shard's terms in the whole vocabulary
    offsets: NDArray[np.int64]  # [v+1] where a term's pairs begin
    rows: NDArray[np.int32]  # [p]
    weights: NDArray[np.float32]  # [p]


def postings(
    parts: Iterable[Part], offsets: NDArray[np.int64], first: int = 0
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Rows and weights of consecutive terms. The parts come in the order of their rows.

    offsets: [terms+1] where the postings of each term begin, of which the first is number `first`.
    """
    start, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    rows, weights = np.empty(size, np.int32), np.empty(size, np.float32)
    free = offsets[:-1] - start  # the next place of each term
    for part in parts:
        some = slice(*np.searchsorted(part.ids, np.array([first, first + len(free)], np.int32)))
        ids, held = part.ids[some] - first, np.diff(part.offsets[some.start : some.stop + 1])
        pairs = slice(int(part.offsets[some.start]), int(part.offsets[some.stop]))
        to = np.repeat(free[ids] - (part.offsets[some] - pairs.start), held)
        to += np.arange(len(to))
        rows[to], weights[to] = part.rows[pairs], part.weights[pairs]
        free[ids] += held
    return rows, weights


def ranges(offsets: NDArray[np.int64], start: int, end: int, postings: int) -> list[tuple[int, int]]:
    """Cut the postings start..end, which begin and end with a term, into ranges of whole terms and about so many postings."""
    cuts = offsets[np.searchsorted(offsets, np.arange(start, end, postings))].tolist()
    return [(one, other) for one, other in zip(cuts, [*cuts[1:], end], strict=True) if one < other]
