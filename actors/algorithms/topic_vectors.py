"""Vectors of a synthetic corpus, drawn without a model: a document's lies near the directions of its topics, from the top down.

    v(row) = sum over levels l of weight(l) * s(node of level l) + drift(N) * M z(row) + noise * s(row), normalised
    drift(N) = drift * (100,000 / N) ** (1 / intrinsic_dimension)

s(.) are random signs over the square root of d, so that different ones are nearly at right angles; z(row) is normally distributed
in few dimensions, of variances 1, 1/2, 1/3, ... as principal components of texts have them, and times a factor of the row's own;
M is the same for all documents; a near-duplicate has its source's. A text that is no document has the mean of
the directions of the topics that its words name. The drift is what makes the vectors as hard to search as those of real texts:
documents of one topic lie scattered along directions that all topics share, and so across the lists of a coarse quantiser. It
shrinks as neighbours of points in so many dimensions draw nearer when there are more of them; were it constant, every document
more would make the others harder to find.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from actors.algorithms.topics import NO_LEAF, STEP, Hashes, Rows, Topics, hashed, mixed, uniform

Vectors = NDArray[np.float32]
NODE, ROW, DRIFT, AXIS, COPY, ALONE = 32, 33, 34, 35, 36, 37  # what is drawn
BITS = ((np.arange(256)[:, None] >> np.arange(8)) & 1).astype(np.float32) * 2 - 1  # [256, 8] the signs of a byte
DRIFT_DOCUMENTS = 100_000  # documents at which the drift is `drift`
GRAIN, MOST = 2.0**-12, 2.0**16  # MOST times 256 dimensions: float32 holds whole numbers up to 2**24
BLOCK = 2048  # rows at once: what they need stays in the cache


@dataclass(frozen=True)
class Mixture:
    """dimension: d. decay: weight of a level against the level above, the top one's being 1. drift, noise: see above.

    intrinsic_dimension: how fast the drift falls with N. drift_dimensions: of z. drift_spread: standard deviation of the
    logarithm of a row's own factor. copy_noise: length of a near-duplicate's own noise, beside its source's vector of length 1.
    """

    dimension: int
    decay: float
    drift: float
    intrinsic_dimension: float
    drift_dimensions: int
    drift_spread: float
    noise: float
    copy_noise: float

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Mixture:
        """From values of which some have the names of the fields."""
        return cls(**{f.name: values[f.name] for f in dataclasses.fields(cls)})


def vectors(topics: Topics, mixture: Mixture, first: int, last: int) -> Vectors:
    """[last - first, d] float32, L2-normalised: the vectors of these rows."""
    found = np.empty((last - first, mixture.dimension), np.float32)
    for start in range(first, last, BLOCK):
        rows = np.arange(start, min(start + BLOCK, last))
        found[start - first : rows[-1] + 1 - first] = vectors_of(topics, mixture, rows)
    return found


def vectors_of(topics: Topics, mixture: Mixture, rows: Rows) -> Vectors:
    """[n, d] the vectors of any rows, all at once."""
    sources, leaves = topics.sources(rows), topics.leaf_of(rows)
    found = scattered(topics, mixture, sources)
    themed, alone = np.flatnonzero(leaves != NO_LEAF), np.flatnonzero(leaves == NO_LEAF)
    path = topics.path(leaves[themed])
    topical = np.zeros((len(themed), mixture.dimension), np.float32)
    for level, weight in enumerate(level_weights(topics, mixture)):
        topical += weight * signs(hashed(topics.seed, NODE, path[:, level]), mixture.dimension)
    found[themed] += topical
    found[alone] += signs(hashed(topics.seed, ALONE, rows[alone]), mixture.dimension)
    normalise(found)
    copies = np.flatnonzero(sources != rows)
    found[copies] += mixture.copy_noise * signs(hashed(topics.seed, COPY, rows[copies]), mixture.dimension)
    normalise(found)
    return found


def vectors_of_texts(topics: Topics, mixture: Mixture, nodes: Sequence[Rows], keys: Rows) -> Vectors:
    """[n, d] of texts that are no documents. nodes: of each word that belongs to a topic. keys: a number for each text, which
    decides the direction of one without such words.
    """
    at = np.repeat(np.arange(len(nodes)), [len(each) for each in nodes])
    named = np.concatenate([np.zeros(0, np.int64), *nodes])
    level = topics.levels(named) - 1
    words = np.bincount(at * topics.depth + level, minlength=len(nodes) * topics.depth)  # of each text and level
    share = level_weights(topics, mixture)[level] / words[at * topics.depth + level]
    pairs, pair = np.unique(at * topics.first_nodes[-1] + named, return_inverse=True)  # a node is often named many times
    weight = np.bincount(pair, share, minlength=len(pairs)).astype(np.float32)
    text, node = np.divmod(pairs, topics.first_nodes[-1])
    found = np.zeros((len(nodes), mixture.dimension), np.float32)
    if len(text):
        starts = np.flatnonzero(np.diff(text, prepend=-1))
        directions = weight[:, None] * signs(hashed(topics.seed, NODE, node), mixture.dimension)
        found[text[starts]] = np.add.reduceat(directions, starts)
    bare = np.setdiff1d(np.arange(len(nodes)), text)
    found[bare] = signs(hashed(topics.seed, ALONE, keys[bare]), mixture.dimension)
    normalise(found)
    return found


def scattered(topics: Topics, mixture: Mixture, keys: Rows) -> Vectors:
    """[n, d] what moves each document, or question, from its topics: drift and noise."""
    found = mixture.noise * signs(hashed(topics.seed, ROW, keys), mixture.dimension)
    found += drifts(topics, mixture, keys)
    return found


def level_weights(topics: Topics, mixture: Mixture) -> NDArray[np.float32]:
    """[depth] the weight of each level's direction, of length 1 together."""
    weights = mixture.decay ** np.arange(topics.depth)
    return np.asarray(weights / np.linalg.norm(weights), np.float32)


def drifts(topics: Topics, mixture: Mixture, rows: Rows) -> Vectors:
    """[n, d] drift(N) * M z(row), of length drift(N) in the mean of squares.

    z is rounded to whole numbers of GRAIN, so that the product is exact: a row's does not depend on those multiplied beside it.
    """
    m, spread = mixture.drift_dimensions, mixture.drift_spread
    counter = hashed(topics.seed, DRIFT, rows)[:, None] + np.arange(m + 1, dtype=np.uint64) * STEP
    z = ndtri(uniform(mixed(counter)) + 2.0**-54).astype(np.float32)
    own = np.exp(spread * z[:, m:] - spread**2)  # its square is 1 in the mean
    lengths = 1 / np.sqrt(np.arange(1, m + 1))
    whole = np.clip(np.rint(own * z[:, :m] * (lengths / GRAIN).astype(np.float32)), -MOST, MOST)
    axes = np.sign(signs(hashed(topics.seed, AXIS, np.arange(m)), mixture.dimension))
    drift = mixture.drift * (DRIFT_DOCUMENTS / topics.documents) ** (1 / mixture.intrinsic_dimension)
    scale = drift * GRAIN / np.linalg.norm(lengths) / np.sqrt(mixture.dimension)
    along: Vectors = (whole @ axes) * np.float32(scale)
    return along


def signs(keys: Hashes, dimension: int) -> Vectors:
    """[n, d] random signs over the square root of d, the same for the same key."""
    words = -(-dimension // 64)
    bits = mixed(keys[:, None] + np.arange(words, dtype=np.uint64) * STEP)
    table = BITS / np.float32(np.sqrt(dimension))
    found: Vectors = table[bits.astype("<u8").view(np.uint8)].reshape(len(keys), 64 * words)[:, :dimension]
    return found


def normalise(found: Vectors) -> None:
    """Give every row the length 1, in place."""
    found /= np.sqrt(np.einsum("ij,ij->i", found, found))[:, None]
