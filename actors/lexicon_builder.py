"""The steps in which a lexicon is built on disk: each is a task that reads and writes files, and may be killed and run again.

1 `read_rows` of every span of rows, 2 `take_together` once, 3 `weigh` for every shard, 4 `join_rows`, 5 `gather` for every range
of postings, 6 `join_postings`. Whatever the spans and ranges, the files are the same as those of `bm25_building.build`.
Memory of a task: 60 bytes per word of a shard, at most TOKENS words, or per posting of a range; step 2: the vocabulary.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from actors.algorithms import bm25_building as building
from actors.algorithms.bm25_building import Part, Shard, Statistics
from actors.algorithms.terms import Analyzer
from actors.algorithms.vocabularies import Vocabulary, merge, places
from actors.artifacts import lexicon as lexicon_files, lexicon_shards as shards
from actors.artifacts.corpus import open_corpus
from conf import schema

POSTINGS_PER_ROW = 64  # a task that gathers takes so many postings for every row of a task that reads


def read_rows(node: schema.Lexicon, corpus: Path, draft: Path, first: int, last: int) -> int:
    """Read the texts of rows first..last into one or more shards. Returns the number of rows."""
    analyzer = Analyzer(node.stemmer, node.stop_words)
    row = first
    for shard in building.read(open_corpus(corpus).texts(first, last), analyzer, building.TOKENS):
        shards.save(draft, shards.READ, row, (*shard.vocabulary, *shard[1:]))
        row += len(shard.lengths)
    return last - first


def take_together(node: schema.Lexicon, draft: Path) -> int:
    """Vocabulary, document frequencies and average length of all shards, and where a row's and a term's pairs will lie.
    The settings come last: they mark it as done. Returns the number of rows. Raises ValueError when none holds a term.
    """
    firsts = shards.firsts(draft, shards.READ)
    lengths = [shards.array(draft, "lengths", first) for first in firsts]
    documents, tokens = sum(map(len, lengths)), sum(int(of_shard.sum()) for of_shard in lengths)
    building.check_some(documents, tokens)
    vocabulary = merge(_vocabulary(draft, first) for first in firsts)
    frequency = np.zeros(len(vocabulary.offsets) - 1, dtype=np.int64)
    ids = places((_vocabulary(draft, first) for first in firsts), vocabulary)
    for first, of_shard in zip(firsts, ids, strict=True):
        shards.save(draft, (shards.IDS,), first, (of_shard,))
        frequency[of_shard] += shards.array(draft, "frequency", first)
    row_pairs = np.concatenate([shards.array(draft, "row_pairs", first) for first in firsts])
    lexicon_files.write_arrays(
        draft,
        term_offsets=vocabulary.offsets,
        term_bytes=vocabulary.bytes,
        posting_offsets=building.offsets_of(frequency),
        forward_offsets=building.offsets_of(row_pairs),
    )
    lexicon_files.write_settings(draft, documents, tokens / documents, vars(node))
    return documents


def weigh(node: schema.Lexicon, draft: Path, first: int) -> int:
    """Weigh the pairs of one shard, by row as a block of the forward arrays and by term for `gather`. Returns its rows."""
    shard, ids = _shard(draft, first), shards.array(draft, shards.IDS, first)
    settings = lexicon_files.read_settings(draft)
    offsets = lexicon_files.open_one(draft, "posting_offsets")
    idf = building.idf(offsets[ids + 1] - offsets[ids], settings["documents"])
    weights = building.weigh(shard, idf, Statistics(settings["average_length"], node.k1, node.b))
    pair = int(lexicon_files.open_one(draft, "forward_offsets")[first])
    if len(weights):  # rows without a term have no pairs: their block would have the name of the next
        shards.save(draft, shards.FORWARD, pair, (ids[shard.pair_terms], weights))
    shards.save(draft, shards.TURNED, first, building.by_term(shard, weights, first))
    return len(shard.lengths)


def join_rows(draft: Path) -> int:
    """Make the forward arrays of their blocks, and remove what was read of each row."""
    shards.join(draft, shards.FORWARD, pairs(draft), ("pair_terms", "pair_counts"))
    return pairs(draft)


def gather(draft: Path, start: int, end: int) -> int:
    """The postings start..end, which are those of whole terms, from all shards. Returns their number."""
    offsets = lexicon_files.open_one(draft, "posting_offsets")
    first, last = np.searchsorted(offsets, [start, end]).tolist()
    parts = (
        Part(
            shards.array(draft, shards.IDS, row),
            building.offsets_of(shards.array(draft, "frequency", row)),
            *(shards.array(draft, name, row) for name in shards.TURNED),
        )
        for row in shards.firsts(draft, shards.READ)
    )
    shards.save(draft, shards.POSTINGS, start, building.postings(parts, offsets[first : last + 1], first))
    return end - start


def join_postings(draft: Path) -> int:
    """Make the postings of their blocks, and remove all that was in between."""
    shards.join(draft, shards.POSTINGS, pairs(draft), ())
    shards.remove(draft)
    return pairs(draft)


def missing_rows(draft: Path, rows: int, step: int) -> list[tuple[int, int]]:
    """What `read_rows` has still to do, in spans of at most `step` rows."""
    return [] if (draft / lexicon_files.SETTINGS).exists() else shards.missing(draft, shards.READ, rows, step)


def missing_shards(draft: Path) -> list[tuple[int, int]]:
    """What `weigh` has still to do: the first row of every shard, and its rows."""
    if shards.joined(draft, shards.FORWARD):
        return []
    first_rows = sorted({*shards.firsts(draft, shards.READ)} - {*shards.firsts(draft, shards.TURNED)})
    return [(first, len(shards.array(draft, "lengths", first))) for first in first_rows]


def pairs(draft: Path) -> int:
    """P, known once everything was taken together."""
    return int(lexicon_files.open_one(draft, "posting_offsets")[-1])


def missing_postings(draft: Path, step: int) -> list[tuple[int, int]]:
    """What `gather` has still to do, in ranges of whole terms and about `step` postings."""
    if shards.joined(draft, shards.POSTINGS):
        return []
    offsets = lexicon_files.open_one(draft, "posting_offsets")
    gaps = shards.missing(draft, shards.POSTINGS, pairs(draft), pairs(draft))
    return [found for start, end in gaps for found in building.ranges(offsets, start, end, step)]


def _vocabulary(draft: Path, first: int) -> Vocabulary:
    return Vocabulary(shards.array(draft, "term_offsets", first), shards.array(draft, "term_bytes", first))


def _shard(draft: Path, first: int) -> Shard:
    return Shard(_vocabulary(draft, first), *(shards.array(draft, name, first) for name in shards.READ[2:]))
