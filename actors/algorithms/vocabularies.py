"""Sorted vocabularies of parts of a corpus, and the one of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

TERMS_AT_ONCE = 2**23  # of the parts' terms that are merged, or looked up, together


class Vocabulary(NamedTuple):
    """Distinct terms in the order of their UTF-8 bytes, which is that of their code points."""

    offsets: NDArray[np.int64]  # [V+1] into bytes
    bytes: NDArray[np.uint8]

    def arrow(self) -> pa.LargeBinaryArray:
        """The same memory as an Arrow array."""
        buffers = [None, pa.py_buffer(np.ascontiguousarray(self.offsets)), pa.py_buffer(np.ascontiguousarray(self.bytes))]
        return pa.Array.from_buffers(pa.large_binary(), len(self.offsets) - 1, buffers)


def merge(vocabularies: Iterable[Vocabulary]) -> Vocabulary:
    """All terms of all. Held: the distinct terms, and TERMS_AT_ONCE terms beside them."""
    terms = pa.array([], pa.large_binary())
    for some in _together(vocabularies):
        terms = pc.unique(pa.chunked_array([terms, *(vocabulary.arrow() for vocabulary in some)]))
    terms = terms.take(pc.sort_indices(terms))
    _, offsets, data = terms.buffers()
    size = len(terms)
    ends = np.frombuffer(offsets, np.int64, size + 1) if size else np.zeros(1, np.int64)
    return Vocabulary(ends, np.frombuffer(data, np.uint8, int(ends[-1])) if size else np.empty(0, np.uint8))


def places(vocabularies: Iterable[Vocabulary], whole: Vocabulary) -> Iterator[NDArray[np.int32]]:
    """For each vocabulary the ids int32 [v] of its terms in the whole one, ascending."""
    everything = whole.arrow()
    for some in _together(vocabularies):
        sizes = [len(vocabulary.offsets) - 1 for vocabulary in some]
        chunks = pa.chunked_array([vocabulary.arrow() for vocabulary in some], pa.large_binary())
        found = pc.index_in(chunks, value_set=everything).combine_chunks().to_numpy(zero_copy_only=False).astype(np.int32)
        yield from np.split(found, np.cumsum(sizes)[:-1])


def _together(vocabularies: Iterable[Vocabulary]) -> Iterator[list[Vocabulary]]:
    """Lists of vocabularies with TERMS_AT_ONCE terms or a little more: a table of the whole one is made once for each list."""
    some: list[Vocabulary] = []
    for vocabulary in vocabularies:
        some.append(vocabulary)
        if sum(len(v.offsets) for v in some) >= TERMS_AT_ONCE:
            yield some
            some = []
    if some:
        yield some
