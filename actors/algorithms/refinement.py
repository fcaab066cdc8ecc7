"""Better neighbours from neighbours: a document is compared with the neighbours of its neighbours, taken in both directions
(NN-Descent; Dong, Moses and Li 2011), but not with those of the lists in which a join sought its candidates already.

Everything is counted in positions (`list_join`). A pass reads the arrays that the pass before made and writes its own, row by row,
so that rows may be dealt in any way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.compiled import Halves, as_halves, kernel, widened
from actors.algorithms.inverted_lists import Wide
from actors.algorithms.list_join import Near, Positions, insert

SEEN = 8192  # documents that a pass compares with one document, at most half of it: the size of a table of those it has seen


@kernel
def backward(positions: Positions, hubs: int) -> Positions:
    """[N, hubs] who counts a document among its first `hubs` neighbours: those that rank it highest, equal ones by position.

    positions: [N, K]; -1 where there are fewer.
    """
    found = np.full((len(positions), hubs), -1, np.int32)
    count = np.zeros(len(positions), np.int32)
    for rank in range(min(hubs, positions.shape[1])):
        for i in range(len(positions)):
            j = positions[i, rank]
            if j >= 0 and count[j] < hubs:
                found[j, count[j]] = i
                count[j] += 1
    return found


def refine(
    vectors: NDArray[np.float16], near: Near, back: Positions, probed: NDArray[np.int32], list_of: NDArray[np.int32],
    first: int, last: int,
) -> Near:  # fmt: skip
    """The candidates of positions first..last-1 after one more pass.

    vectors: [N, d]; near: [N, K]; back: [N, hubs] of `backward`; probed: [N, p] lists; list_of: [N]. As many neighbours forward as
    backward are followed.
    """
    better = Near(near.positions[first:last].copy(), near.scores[first:last].copy())
    _refine(as_halves(vectors), near.positions, back, probed, list_of, first, better.positions, better.scores)
    return better


@kernel
def _product(query: Wide, halves: Halves) -> np.float32:
    total = np.float32(0)
    for i in range(len(halves)):
        total += query[i] * widened(halves[i])
    return total


@kernel
def _refine(
    halves: Halves, positions: Positions, back: Positions, probed: NDArray[np.int32], list_of: NDArray[np.int32],
    first: int, new: Positions, scores: Wide,
) -> None:  # fmt: skip
    hubs = min(back.shape[1], positions.shape[1])
    table = np.zeros(SEEN, np.int64)  # open addressing; an entry is its row's stamp and a position
    query = np.empty(halves.shape[1], np.float32)
    via = np.empty(hubs + back.shape[1], np.int32)
    for i in range(len(new)):
        own, stamp = first + i, (i + 1) << 32
        for t in range(len(query)):
            query[t] = widened(halves[own, t])
        filled = 1
        _first_time(table, stamp, own)
        for x in positions[own]:
            if x >= 0:
                _first_time(table, stamp, x)
                filled += 1
        count = _around(positions, back, own, hubs, via)
        for c in range(count):
            y = via[c]
            for t in range(-1, hubs + back.shape[1]):
                x = y if t < 0 else positions[y, t] if t < hubs else back[y, t - hubs]
                if x < 0 or 2 * filled > SEEN or not _first_time(table, stamp, x):
                    continue
                filled += 1
                if not _has(probed[own], list_of[x]):
                    score = _product(query, halves[x])
                    if score > scores[i, -1]:
                        insert(new[i], scores[i], x, score)


@kernel
def _around(positions: Positions, back: Positions, own: int, hubs: int, via: Positions) -> int:
    """Write the neighbours of a document in both directions into `via`; their number."""
    count = 0
    for x in positions[own, :hubs]:
        if x >= 0:
            via[count] = x
            count += 1
    for x in back[own]:
        if x >= 0:
            via[count] = x
            count += 1
    return count


@kernel
def _first_time(table: NDArray[np.int64], stamp: int, x: int) -> bool:
    """Whether x was not in the table, where it is then. Entries with another stamp count as free."""
    entry, mask = stamp | x, len(table) - 1
    at = (x * 2654435761) & mask
    while table[at] >> 32 == stamp >> 32:
        if table[at] == entry:
            return False
        at = (at + 1) & mask
    table[at] = entry
    return True


@kernel
def _has(some: NDArray[np.int32], x: int) -> bool:
    found = False
    for y in some:
        found |= y == x
    return found
