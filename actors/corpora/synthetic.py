"""A corpus of any size without meaning: documents around planted topics, and questions about topics. Nothing is read.

Every document is a function of its row, so any span of rows can be made anywhere. A question names words of its topic, from the
bottom of the tree of topics up, in the first wording, and a few words of one of the documents that answer it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from actors.algorithms import topic_texts
from actors.algorithms.topic_texts import Language
from actors.algorithms.topics import NO_LEAF, Rows, Topics, hashed, uniform
from actors.corpora.records import Document, Judgement, Query
from conf.schema import Queries, Synthetic

VERSION = "1"  # raise it when the same settings give other documents or questions
BLOCK = 4096  # rows made at once
QUESTION, HINT = 48, 49  # what is drawn
WORDS_BY_LEVEL = (3, 2, 1)  # of a question, from the bottom up; topics further up are not named
HINTS = 3  # words of a document that answers it
OF_TOPIC, OF_SIBLING = 2, 1  # relevance


def files(node: Synthetic | Queries) -> list[Path]:
    """None: it is made of its settings alone."""
    return []


def documents(corpus: Synthetic) -> Iterator[Document]:
    """The documents in row order."""
    for first in range(0, corpus.documents, BLOCK):
        ids, texts = span(corpus, first, min(first + BLOCK, corpus.documents))
        yield from (Document(i, t, i) for i, t in zip(ids.to_pylist(), texts.to_pylist(), strict=True))


def span(corpus: Synthetic, first: int, last: int) -> tuple[pa.StringArray, pa.StringArray]:
    """Ids and texts of the rows first..last."""
    rows = np.arange(first, last)
    letters, offsets = topic_texts.spelled(topic_texts.tokens(topics_of(corpus), language_of(corpus), rows))
    return _ids(rows, corpus.documents), _strings(letters, offsets)


def topics_of(corpus: Synthetic) -> Topics:
    return Topics.of(vars(corpus))


def language_of(corpus: Synthetic) -> Language:
    return Language.of(vars(corpus))


def _ids(rows: Rows, documents: int) -> pa.StringArray:
    """`s` and the row, all of one length."""
    width = len(str(documents - 1))
    letters = np.full((len(rows), width + 1), ord("s"), np.uint8)
    letters[:, 1:] = rows[:, None] // 10 ** np.arange(width - 1, -1, -1) % 10 + ord("0")
    return _strings(letters.ravel(), np.arange(len(rows) + 1) * (width + 1))


def _strings(letters: np.ndarray, offsets: Rows) -> pa.StringArray:
    places = pa.py_buffer(offsets.astype(np.int32))
    return pa.StringArray.from_buffers(len(offsets) - 1, places, pa.py_buffer(letters))


def queries(queries: Queries, corpus: Synthetic) -> Iterator[Query]:
    """`queries.limit` questions, each about another topic at the bottom of the tree; at most as many as there are."""
    for number, (leaf, rows, _) in enumerate(_asked(topics_of(corpus), queries.limit)):
        yield Query(f"q{number}", _question(corpus, leaf, rows), (), f"topic {leaf}")


def judgements(queries: Queries, corpus: Synthetic) -> Iterator[Judgement]:
    """2 for a document of the topic, 1 for those of a topic beside it below the same parent."""
    for number, (leaf, rows, beside) in enumerate(_asked(topics_of(corpus), queries.limit)):
        for found, relevance in ((rows, OF_TOPIC), (beside, OF_SIBLING)):
            for doc_id in _ids(np.array(found, np.int64), corpus.documents).to_pylist():
                yield Judgement(f"q{number}", doc_id, relevance, f"topic {leaf}")


@functools.lru_cache(maxsize=2)
def _asked(topics: Topics, limit: int) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Topics in random order with their rows and those of the topic beside; topics without documents are passed over."""
    order = np.argsort(hashed(topics.seed, QUESTION, np.arange(topics.leaves)), kind="stable")
    wanted = order[: 2 * limit] if limit else order
    beside = [topics.sibling(leaf) for leaf in wanted.tolist()]
    rows = _rows_of(topics, np.union1d(wanted, beside))
    asked = [(leaf, rows[leaf], rows.get(near, ())) for leaf, near in zip(wanted.tolist(), beside, strict=True) if leaf in rows]
    return asked[: limit or None]


def _rows_of(topics: Topics, leaves: Rows) -> dict[int, tuple[int, ...]]:
    """The rows of these leaves, ascending; one pass over all rows, a block at a time."""
    found: dict[int, list[int]] = {}
    for first in range(0, topics.documents, 16 * BLOCK):
        rows = np.arange(first, min(first + 16 * BLOCK, topics.documents))
        leaf_of = topics.leaf_of(rows)
        for row in np.flatnonzero(np.isin(leaf_of, leaves) & (leaf_of != NO_LEAF)).tolist():
            found.setdefault(int(leaf_of[row]), []).append(first + row)
    return {leaf: tuple(rows) for leaf, rows in found.items()}


def _question(corpus: Synthetic, leaf: int, rows: tuple[int, ...]) -> str:
    topics, language = topics_of(corpus), language_of(corpus)
    words: list[int] = []
    for node, count in zip(topics.path(np.array([leaf]))[0, ::-1], WORDS_BY_LEVEL, strict=False):
        drawn = uniform(hashed(topics.seed, QUESTION, np.full(count, node), np.arange(count)))
        rank = topic_texts.zipf(drawn, language.node_words)
        words += topic_texts.node_word(topics, language, np.full(count, node), np.zeros(count, np.int64), rank).tolist()
    which, *places = uniform(hashed(topics.seed, HINT, np.full(HINTS + 1, leaf), np.arange(HINTS + 1)))
    said = topic_texts.tokens(topics, language, np.array([rows[int(which * len(rows))]])).words
    return topic_texts.spell(dict.fromkeys([*words, *(int(said[int(place * len(said))]) for place in places)]))
