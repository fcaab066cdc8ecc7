"""Vectors for a synthetic corpus without a model: a document's are drawn, another text's follow the topics that its words name."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Sequence
from concurrent.futures import Future

import numpy as np
from numpy.typing import NDArray

from actors.algorithms import topic_texts, topic_vectors
from actors.algorithms.topic_texts import NO_NODE, Language
from actors.algorithms.topic_vectors import Mixture
from actors.algorithms.topics import Topics
from conf import schema

VERSION = "2"  # raise it when the same settings give other vectors
WORD = re.compile("[a-z]+")
REMEMBERED_WORDS = 1 << 18


def vectors(node: schema.SyntheticEmbeddings, first: int, last: int) -> NDArray[np.float32]:
    """[last - first, d] float32, L2-normalised: the vectors of these rows of the synthetic corpus."""
    return topic_vectors.vectors(Topics.of(vars(node.corpus)), Mixture.of(vars(node)), first, last)


class TopicEmbedder:
    """Embeds texts about the topics of a synthetic corpus. A question lies as far from its topics as a document does."""

    def __init__(self, node: schema.SyntheticEmbeddings) -> None:
        self._topics, self._mixture = Topics.of(vars(node.corpus)), Mixture.of(vars(node))
        self._language = Language.of(vars(node.corpus))
        self._node_of = functools.lru_cache(maxsize=REMEMBERED_WORDS)(self._look_up)

    def embed_documents(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], dict[str, int]]:
        """[n, d] float32, L2-normalised, of texts such as summaries: without anything but their topics."""
        named = [[node for word in WORD.findall(text.lower()) if (node := self._node_of(word)) != NO_NODE] for text in texts]
        keys = np.array([_key(text) for text in texts], np.int64)
        nodes = [np.array(each, np.int64) for each in named]
        return topic_vectors.vectors_of_texts(self._topics, self._mixture, nodes, keys), {}

    def embed_query(self, text: str) -> Future[NDArray[np.float32]]:
        """[d] float32, L2-normalised."""
        found, _ = self.embed_documents([text])
        found += topic_vectors.scattered(self._topics, self._mixture, np.array([_key(text)], np.int64))
        topic_vectors.normalise(found)
        done: Future[NDArray[np.float32]] = Future()
        done.set_result(found[0])
        return done

    def _look_up(self, word: str) -> int:
        return topic_texts.node_of(self._topics, self._language, topic_texts.number_of(word))


def _key(text: str) -> int:
    """A number of 63 bits for a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1
