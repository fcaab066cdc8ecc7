"""BM25 first stage: text to terms, terms to weights, weights to a pool of rows or to the scores of any rows.

Weights are those of BM25 in the form that Lucene computes (Kamphuis et al., ECIR 2020, "accurate" Lucene), by bm25s:
`idf(t) = ln((N + 1) / (df + 0.5))`, `weight(t, d) = idf(t) * tf / (tf + k1 * (1 - b + b * |d| / avgdl))`.
They are held twice, by term (postings) and by row (forward), so that scoring a document costs its length and not N.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any, Protocol

import numpy as np
import Stemmer
from numpy.typing import ArrayLike, NDArray

# Not `\w+`: an underscore separates, as a dot does, so that "read_csv" is found by "read csv".
# Not `\w\w+`: "vitamin K", "C" and "R" are words too.
WORD = re.compile(r"[^\W_]+")

# Lucene's English list. bm25s has it too, but importing bm25s adds 85 MB to every process that only searches.
LUCENE_ENGLISH = (
    "a an and are as at be but by for if in into is it no not of on or such "
    "that the their then there these they this to was will with"
)
STEMMERS = ("english", "none")
STOP_WORDS = {"english": frozenset(LUCENE_ENGLISH.split()), "none": frozenset[str]()}
WEIGHTINGS = ("plain", "bm25")


class Analyzer:
    """Text to terms: NFC, runs of letters and digits, lower case, stop words out, Snowball stems.

    Pickles as its two names. One per thread: a Snowball stemmer must not be shared between threads.
    """

    def __init__(self, stemmer: str, stop_words: str) -> None:
        """`stemmer`: a name of STEMMERS; `stop_words`: a name of STOP_WORDS. Raises ValueError for any other."""
        _require("stemmer", stemmer, STEMMERS)
        _require("stop_words", stop_words, STOP_WORDS)
        self.stemmer, self.stop_words = stemmer, stop_words
        self._dropped = STOP_WORDS[stop_words]
        self._stem = Stemmer.Stemmer(stemmer) if stemmer != "none" else None

    def __reduce__(self) -> tuple[type[Analyzer], tuple[str, str]]:
        return Analyzer, (self.stemmer, self.stop_words)

    def tokens(self, text: str) -> list[tuple[str, str]]:
        """(surface, term) of every word that is kept, in text order; the surface is spelled as in the text."""
        surfaces = [word for word in _words(text) if word.lower() not in self._dropped]
        return list(zip(surfaces, self._stems([word.lower() for word in surfaces]), strict=True))

    def terms(self, text: str) -> list[str]:
        """The terms alone, repeated as often as they occur."""
        lowered = map(str.lower, _words(text))
        return self._stems([word for word in lowered if word not in self._dropped])

    def _stems(self, words: list[str]) -> list[str]:
        stems: list[str] = words if self._stem is None else self._stem.stemWords(words)
        return stems


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


@dataclass
class BuiltLexicon:
    """A `Lexicon` in memory, as `build` returns it."""

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
    """The lexicon of `texts`, read once, in row order. Held while reading: four bytes per token, and the vocabulary.

    The same texts give the same bytes. Raises ValueError if no text holds a term.
    """
    token_ids, token_offsets, terms = _read(texts, analyzer)
    documents = len(token_offsets) - 1
    if not terms:
        raise ValueError(
            f"corpus: none of its {documents} documents holds a term, so nothing can be found; expected words that are not "
            f"all stop words. Check which field is read as the text, or set lexicon.stop_words=none"
        )
    by_term = _weights(token_ids, token_offsets, len(terms), k1, b)
    by_row = by_term.tocsr()
    spellings = [term.encode() for term in terms]
    return BuiltLexicon(
        posting_offsets=by_term.indptr.astype(np.int64),
        posting_rows=by_term.indices.astype(np.int32, copy=False),
        posting_weights=by_term.data,
        forward_offsets=by_row.indptr.astype(np.int64),
        forward_terms=by_row.indices.astype(np.int32, copy=False),
        forward_weights=by_row.data,
        term_offsets=np.cumsum([0, *map(len, spellings)], dtype=np.int64),
        term_bytes=np.frombuffer(b"".join(spellings), dtype=np.uint8),
        average_length=len(token_ids) / documents,
        k1=k1,
        b=b,
    )


def document_frequency(lexicon: Lexicon, terms: Sequence[str]) -> NDArray[np.int64]:
    """How many documents hold each term: int64 [len(terms)], 0 for a term that none holds."""
    ids = np.array(_ids(lexicon, terms), dtype=np.int64)
    return np.where(ids < 0, 0, np.asarray(lexicon.posting_offsets[ids + 1] - lexicon.posting_offsets[ids]))


def query_weights(lexicon: Lexicon, terms: Iterable[str], weighting: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Ids int32, ascending, and weights float32 of the query's terms; terms that no document holds are left out.

    `weighting`: "plain" counts a term as often as it occurs; "bm25" weighs the query as if it were a document.
    """
    _require("weighting", weighting, WEIGHTINGS)
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
    and for an excluded row that the corpus does not have.
    """
    if depth < 1:
        raise ValueError(f"depth: {depth}; expected 1 or more documents in the pool")
    documents = len(lexicon.forward_offsets) - 1
    scores = np.zeros(documents, dtype=np.float32)
    for term, weight in zip(*query_weights(lexicon, terms, weighting), strict=True):
        span = slice(lexicon.posting_offsets[term], lexicon.posting_offsets[term + 1])
        np.add.at(scores, lexicon.posting_rows[span], lexicon.posting_weights[span] * weight)
    scores[_rows(excluded, documents)] = 0
    return _best(scores, depth)


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


def _best(scores: NDArray[np.float32], depth: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    rows = np.flatnonzero(scores > 0)
    kept = scores[rows]
    if len(rows) > depth:
        # Everything that ties with the last place stays, so that the stable sort below decides by row.
        at_least = np.flatnonzero(kept >= np.partition(kept, -depth)[-depth])
        rows, kept = rows[at_least], kept[at_least]
    order = np.argsort(-kept, kind="stable")[:depth]
    return rows[order].astype(np.int32), kept[order]


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


def _words(text: str) -> list[str]:
    return WORD.findall(unicodedata.normalize("NFC", text))


def _require(key: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise ValueError(f"{key}: {value!r}; expected one of {', '.join(known)}")


def _read(texts: Iterable[str], analyzer: Analyzer) -> tuple[NDArray[np.int32], NDArray[np.int64], list[str]]:
    """Token ids of all texts in one array, where each text's begin [N+1], and the sorted terms the ids stand for."""
    ids, ends = array("i"), array("q", [0])
    met: defaultdict[str, int] = defaultdict(count().__next__)
    for text in texts:
        ids.extend(map(met.__getitem__, analyzer.terms(text)))
        ends.append(len(ids))
    terms = sorted(met)  # by code point, which is also the order of their UTF-8 bytes
    rank = np.empty(len(terms), dtype=np.int32)
    rank[[met[term] for term in terms]] = np.arange(len(terms))
    return rank[np.asarray(ids, dtype=np.int32)], np.asarray(ends, dtype=np.int64), terms


@dataclass
class _TokenLists:
    """The documents as bm25s wants them, lists of ids, each made when it is asked for."""

    token_ids: NDArray[np.int32]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[list[int]]:
        return (self.token_ids[start:end].tolist() for start, end in pairwise(self.offsets.tolist()))


def _weights(token_ids: NDArray[np.int32], offsets: NDArray[np.int64], size: int, k1: float, b: float) -> Any:
    """scipy.sparse.csc_array [N, V] of BM25 weights, rows ascending within a term."""
    import bm25s  # here and not above: a process that only searches is spared 85 MB (bm25s brings scipy and numba)
    from scipy.sparse import csc_array

    model = bm25s.BM25(k1=k1, b=b, method="lucene", csc_backend="scipy")
    built = model.build_index_from_ids(range(size), _TokenLists(token_ids, offsets), show_progress=False)
    return csc_array((built["data"], built["indices"], built["indptr"]), shape=(len(offsets) - 1, size))
