"""A planted tree of topics: to which topic a document of a synthetic corpus belongs, as a function of its row and a seed alone.

Nothing is stored: every property of a row or a node is a hash of its number, so that any task can make any span of rows, in any
order, and gets the same. Levels count from 1, the root's children, to `depth`, the leaves; nodes are numbered level by level.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Hashes = NDArray[np.uint64]

STEP = np.uint64(0x9E3779B97F4A7C15)  # of SplitMix64's counter
KIND, SOURCE, LEAF = 1, 2, 3  # what is drawn; other modules of the synthetic corpus go on from 16
NO_LEAF = -1


def mixed(x: Hashes) -> Hashes:
    """SplitMix64's output function (Steele et al., 2014) of each number."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def hashed(seed: int, what: int, *numbers: NDArray[Any]) -> Hashes:
    """A random number of 64 bits for each tuple of `numbers`, arrays of one shape. what: the purpose, so that draws are apart."""
    x = np.asarray(mixed(np.array([seed], np.uint64) * STEP + np.uint64(what)))
    for number in numbers:
        x = mixed(x + (number.astype(np.uint64) + np.uint64(1)) * STEP)
    return x


def uniform(x: Hashes) -> NDArray[np.float64]:
    """Each hash as a number in [0, 1)."""
    return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53


@dataclass(frozen=True)
class Topics:
    """documents: N. leaf_documents: documents of a leaf, on average. branching: about so many children of a node.

    near_duplicates, isolated: shares of documents that are a copy of another with few words changed, and that have no topic.
    """

    documents: int
    leaf_documents: float
    branching: int
    near_duplicates: float
    isolated: float
    seed: int

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Topics:
        """From values of which some have the names of the fields."""
        return cls(**{f.name: values[f.name] for f in dataclasses.fields(cls)})

    @cached_property
    def leaves(self) -> int:
        return max(1, round(self.documents * (1 - self.isolated) / self.leaf_documents))

    @cached_property
    def depth(self) -> int:
        """Levels of the tree."""
        return max(1, round(math.log(self.leaves) / math.log(self.branching)))

    @cached_property
    def fan(self) -> int:
        """Children of a node: the least number with which `depth` levels hold all leaves."""
        guess = max(1, round(self.leaves ** (1 / self.depth)) - 1)
        return next(fan for fan in range(guess, guess + 4) if fan**self.depth >= self.leaves)

    @cached_property
    def spans(self) -> Rows:
        """[depth] leaves below a full node of each level."""
        return np.array([self.fan ** (self.depth - level) for level in range(1, self.depth + 1)], np.int64)

    @cached_property
    def first_nodes(self) -> Rows:
        """[depth + 1] number of each level's first node; last, the number of all nodes."""
        return np.concatenate([[0], np.cumsum(-(-self.leaves // self.spans))])

    def path(self, leaves: Rows) -> Rows:
        """[n, depth] the nodes from the top down to each leaf, which is the last."""
        return self.first_nodes[:-1] + leaves[:, None] // self.spans

    def levels(self, nodes: Rows) -> Rows:
        """[n] the level of each node, from 1."""
        return np.searchsorted(self.first_nodes, nodes, side="right").astype(np.int64)

    def sibling(self, leaf: int) -> int:
        """A leaf with the same parent, the next or else the one before; NO_LEAF where there is none."""
        near = (leaf + 1, leaf - 1)
        return next((n for n in near if 0 <= n < self.leaves and n // self.fan == leaf // self.fan), NO_LEAF)

    def _is(self, rows: Rows) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether each row is a near-duplicate, and whether it is isolated. Row 0 is neither: a chain of copies ends there."""
        drawn = uniform(hashed(self.seed, KIND, rows))
        drawn[rows == 0] = 1.0
        return drawn < self.near_duplicates, (drawn >= self.near_duplicates) & (drawn < self.near_duplicates + self.isolated)

    def are_isolated(self, rows: Rows) -> NDArray[np.bool_]:
        """[n] whether the documents have no topic."""
        return self._is(rows)[1]

    def sources(self, rows: Rows) -> Rows:
        """[n] the row that each document is a copy of: an earlier one with a topic; its own where it is no near-duplicate."""
        sources = rows.copy()
        left = np.flatnonzero(self._is(rows)[0])
        while len(left):
            at = sources[left]
            sources[left] = (uniform(hashed(self.seed, SOURCE, at)) * at).astype(np.int64)
            duplicate, isolated = self._is(sources[left])
            left = left[duplicate | isolated]
        return sources

    def leaf_of(self, rows: Rows) -> Rows:
        """[n] the leaf of each document, a near-duplicate's that of its source; NO_LEAF for isolated ones."""
        sources = self.sources(rows)
        leaf = (uniform(hashed(self.seed, LEAF, sources)) * self.leaves).astype(np.int64)
        return np.where(self.are_isolated(sources), NO_LEAF, leaf)
