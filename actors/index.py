"""An index: everything that answers a query, opened from one folder, memory-mapped, without Ray.

from actors.index import Index
for hit in Index.open("/path/to/index-0123456789ab").search("my nested list changes when I change its copy"):
    print(hit.rank, hit.doc_id, hit.concept)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from actors.algorithms import bm25
from actors.algorithms.loops.dialogue import CorpusGraph
from actors.algorithms.terms import Analyzer
from actors.artifacts.corpus import Corpus, open_corpus
from actors.artifacts.embeddings import open_vectors
from actors.artifacts.graph import Graph, open_graph
from actors.artifacts.groups import Groups, open_groups
from actors.artifacts.lexicon import Lexicon, open_lexicon
from actors.artifacts.store import BadArtifact, is_built, open_manifest
from actors.artifacts.summaries import Summaries, open_summaries
from conf import schema

OPEN_INDEXES = 8  # a replica that serves more than this reopens the oldest; opening maps files and reads next to nothing


@dataclass(frozen=True)
class Hit:
    """One document of an answer. group and concept: where it belongs; source: what brought it in, the pool or a group."""

    rank: int
    doc_id: str
    text: str
    group: int
    concept: str
    source: str


Scorer = Callable[[Sequence[int]], NDArray[np.float32]]


class Lexical(NamedTuple):
    """BM25's ranking: rows int32 and scores float32, best first, equal ones by row. score: of any rows, in their order."""

    rows: NDArray[np.int32]
    scores: NDArray[np.float32]
    score: Scorer


class Index:
    """The artifacts of one corpus and how they answer. Arrays are opened when first used; what is not used costs nothing."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder = folder
        self.manifest = manifest
        self.embeddings: schema.Embeddings = schema.revive(
            schema.Embeddings, schema.merged(manifest["config"]["embeddings"], manifest["aside"]["embeddings"])
        )

    @classmethod
    def open(cls, folder: str | Path) -> Index:
        """Open a finished index. Raises BadArtifact naming what is missing or damaged, and the remedy."""
        path = Path(folder).expanduser().absolute()
        if there := sorted(p.name for p in path.glob("index-*") if p.is_dir() and not p.suffix):
            raise BadArtifact(f"{path} is a corpus' folder and not an index. It holds {', '.join(there)}: open one of them.")
        manifest = open_manifest(path, "index")
        for kind, name in manifest["inputs"].items():
            open_manifest(path.parent / name, kind)
        return cls(path, manifest)

    @cached_property
    def answering(self) -> schema.Answering:
        """How it was meant to be searched when it was built; a job says it anew.

        Raises BadArtifact when it was built by a version that had other settings.
        """
        node = self.manifest["aside"]["answering"]
        try:
            return schema.Answering(
                schema.revive(schema.FirstStage, node["first_stage"]),
                schema.revive(schema.Loop, node["loop"]),
                schema.revive(schema.Reranker, node["reranker"]),
                schema.revive(schema.Navigator, node["navigator"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadArtifact(
                f"{self.folder}: was built for other settings of loop and judges than this version has ({error}). Remove this "
                "folder and run jobs.build_index again, which takes seconds, or give answering=..."
            ) from None

    @property
    def models(self) -> str:
        """The folder of prepared models, beside all corpora."""
        return str(self.folder.parent.parent / "models")

    @cached_property
    def corpus(self) -> Corpus:
        return open_corpus(self._input("corpus"))

    @cached_property
    def vectors(self) -> NDArray[np.float16]:
        """[N, d] document vectors."""
        return open_vectors(self._input("embeddings"))

    @cached_property
    def graph(self) -> Graph:
        return open_graph(self._input("graph"))

    @cached_property
    def groups(self) -> Groups:
        return open_groups(self._input("groups"))

    @cached_property
    def lexicon(self) -> Lexicon:
        return open_lexicon(self._input("lexicon"))

    @cached_property
    def summaries(self) -> Summaries:
        return open_summaries(self._input("summaries"))

    @property
    def neighbours(self) -> NDArray[np.int32]:
        """N_k(G, d) of every document, as a loop reads it."""
        return self.graph.neighbours

    @property
    def group_of(self) -> NDArray[np.int32]:
        """Omega(d) of every document, as a loop reads it."""
        return self.groups.group_of

    def members(self, group: int) -> NDArray[np.int32]:
        """C_m of a group, as a loop reads it."""
        return self.groups.members(group)

    def with_neighbours(self, path: str) -> CorpusGraph:
        """The same groups over a graph that was brought in: an .npy file of rows, [N, k], -1 where there are fewer neighbours.

        Raises ValueError when it does not fit the corpus.
        """
        neighbours = np.load(path, mmap_mode="r")
        fits = neighbours.ndim == 2 and len(neighbours) == len(self.group_of) and neighbours.dtype.kind == "i"
        if not fits or (neighbours.size and not -1 <= neighbours.min() <= neighbours.max() < len(neighbours)):
            raise ValueError(
                f"{path}: {neighbours.dtype} {neighbours.shape}; expected rows of the corpus or -1, one line for each "
                f"of its {len(self.group_of):,} documents. Give loop.neighbours a graph of this corpus."
            )
        return _Neighbours(neighbours, self.group_of, self.members)

    @property
    def lists(self) -> str:
        """The folder of the inverted lists that it was first meant to be searched with, else of the only ones there are for its
        embeddings; empty where there are none, or several to choose among."""
        if name := self.manifest["aside"].get("lists"):
            return str(self.folder.parent / name)
        embeddings = self.manifest["inputs"]["embeddings"]
        made = [path for path in self.folder.parent.glob("lists-*") if is_built(path)]
        fit = [path for path in made if open_manifest(path, "lists")["inputs"]["embeddings"] == embeddings]
        return str(fit[0]) if len(fit) == 1 else ""

    def retrieve(self, query: str, excluded: Sequence[int], depth: int, weighting: str) -> Lexical:
        """The `depth` best documents by BM25 but the excluded ones, with a score for any other document on demand."""
        terms = self._analyzer.terms(query)
        rows, scores = bm25.retrieve(self.lexicon, terms, depth, excluded, weighting=weighting)
        return Lexical(rows, scores, self._scorer(terms, weighting))

    def scorer(self, query: str, weighting: str) -> Scorer:
        """Scores any rows by BM25; the query's terms are looked up once."""
        return self._scorer(self._analyzer.terms(query), weighting)

    def _scorer(self, terms: Sequence[str], weighting: str) -> Scorer:
        ids, weights = bm25.query_weights(self.lexicon, terms, weighting)
        return lambda rows: bm25.score_weighted(self.lexicon, ids, weights, rows)

    def lexical_scores(self, query: str, rows: Sequence[int]) -> NDArray[np.float32]:
        """BM25 of these documents, float32, in their order."""
        return bm25.score(self.lexicon, self._analyzer.terms(query), rows)

    def search(self, text: str, top: int = 10, answering: schema.Answering | None = None) -> list[Hit]:
        """Answer one query in this process. answering: another loop or other judges than the index was built with."""
        from actors.searcher import search_in_process  # the searcher opens indexes: it stands above this module

        return search_in_process(self, answering or self.answering, text, top)

    @cached_property
    def _analyzer(self) -> Analyzer:
        return Analyzer(self.lexicon.stemmer, self.lexicon.stop_words)

    def _input(self, kind: str) -> Path:
        return self.folder.parent / str(self.manifest["inputs"][kind])


@dataclass(frozen=True)
class _Neighbours:
    neighbours: NDArray[np.int32]
    group_of: NDArray[np.int32]
    members: Callable[[int], NDArray[np.int32]]


@functools.lru_cache(maxsize=OPEN_INDEXES)
def open_index(folder: str) -> Index:
    """Open an index once per process."""
    return Index.open(folder)
