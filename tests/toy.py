"""A corpus of twelve documents whose answers are worked by hand, and what drives a loop without any model.

The query is the one word "copper". A text that holds it holds it once, so that BM25 puts the shorter text first; the texts'
words are counted to give the pool 0 3 1 6 8 9, with 5 and then 4 next outside it, and nothing for 2, 7, 10 and 11.
Graph, vectors and scores are each chosen for the tests that read them, and do not follow from one another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actors.algorithms import bm25_building
from actors.algorithms.loops.dialogue import (
    Answer,
    Loop,
    Navigate,
    NavigateDocuments,
    Outcome,
    Pool,
    Reason,
    Reasoned,
    Request,
    Rerank,
    Score,
    Similarity,
)
from actors.algorithms.terms import Analyzer
from actors.artifacts import corpus, embeddings, graph, groups, lexicon, store, summaries
from actors.index import Index
from conf import schema

QUERY = "copper"
IDS = [f"doc {row}" for row in range(12)]  # a space, as ids may have
TEXTS = [
    "copper kettle",  # 0
    "copper ore is dug",  # 1
    "a smelter roasts sulphides",  # 2
    "copper wire bends",  # 3
    "wire of copper carries current to every last house",  # 4
    "current flows where copper runs on unbroken downhill",  # 5
    "roofs of copper turn green",  # 6
    "verdigris is a green crust",  # 7
    "rain makes copper roofs slowly green",  # 8
    "a coin of copper buys you bread",  # 9
    "money is minted from metal",  # 10
    "bread costs money",  # 11
]
GROUP_OF = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], np.int32)  # mining, wires, roofs, coins
NEIGHBOURS = np.array(
    [[1, 4], [0, 2], [1, 0], [4, 7], [3, 5], [4, 3], [7, 9], [6, 8], [7, 6], [10, 6], [9, 11], [10, -1]], np.int32
)
SIMILARITIES = np.where(NEIGHBOURS >= 0, np.array([0.75, 0.5]), 0.0).astype(np.float16)
VECTORS = np.array([[1, 0], [0.8, 0.6], [0.6, 0.8], [0, 1]] * 3, np.float32)
CONCEPTS = ["mining", "wires", "roofs", "coins"]
SUMMARY_VECTORS = np.array([[0, 1], [0.6, 0.8], [0.8, 0.6], [1, 0]], np.float32)

POOL = [0, 3, 1, 6, 8, 9]
DOCUMENT_SCORE = [0.5, 0.1, 0.7, 0.3, 0.95, 0.6, 0.4, 0.2, 0.8, 0.05, 0.9, 0.0]
GROUP_SCORE = [0.2, 0.9, 0.6, 0.4]
LOOP = {"w": 4, "h": 2, "budget": 8, "K_g": 2, "tau_switch": 1, "eligible": "candidates", "group_score": "navigator",
        "sources": {"groups": 2, "neighbours": 0, "pool": 0}, "p": 0.6, "alpha": 0.1}  # fmt: skip


@dataclass
class Graph:
    """A corpus graph in memory."""

    neighbours: NDArray[np.int32]
    group_of: NDArray[np.int32]

    def members(self, group: int) -> NDArray[np.int32]:
        return np.flatnonzero(self.group_of == group).astype(np.int32)


def small(letters: str, near: Mapping[int, Sequence[int]]) -> Graph:
    """`letters` holds one group per document ("aab": documents 0 and 1 in group 0, 2 in group 1); `near` the neighbours of some."""
    k = max([1, *map(len, near.values())])
    rows = [[*near.get(d, ()), *[-1] * (k - len(near.get(d, ())))] for d in range(len(letters))]
    return Graph(np.array(rows, np.int32), np.array([ord(letter) - ord("a") for letter in letters], np.int32))


@dataclass
class Talk:
    """Drives loops by two functions and remembers everything that was asked."""

    rerank: Callable[[list[int]], Sequence[int] | None] = list
    score: Callable[[int], float] = lambda group: 1.0 - group / 100  # group a is best, then b, ...
    judge: Callable[[int], float] = lambda doc: 1.0 - doc / 100  # a document by itself, by either judge
    steps: Sequence[str] = ()  # of the plan
    similarity: Callable[[str, int], float] = lambda text, doc: 0.0
    turns: list[tuple[Request, ...]] = field(default_factory=list)

    def __call__(self, loop: Loop) -> Outcome:
        answers: tuple[Answer, ...] | None = None
        while True:
            try:
                requests = next(loop) if answers is None else loop.send(answers)
            except StopIteration as end:
                outcome: Outcome = end.value
                return outcome
            assert requests and all(request[0] for request in requests), "nothing is asked about nothing"
            self.turns.append(requests)
            answers = tuple(self._answer(request) for request in requests)

    def _answer(self, request: Request) -> Answer:
        match request:
            case Rerank(docs):
                return self.rerank(list(docs))
            case Reason(docs):
                ranking = self.rerank(list(docs))
                return None if ranking is None else Reasoned(list(ranking), list(self.steps))
            case Score(docs) | NavigateDocuments(docs):
                return [self.judge(doc) for doc in docs]
            case Navigate(groups):
                return [self.score(group) for group in groups]
            case Similarity(docs, texts):
                return [[self.similarity(text, doc) for doc in docs] for text in texts]
        raise TypeError(request)

    @property
    def windows(self) -> list[list[int]]:
        return [r.docs for requests in self.turns for r in requests if isinstance(r, Rerank | Reason | Score)]

    @property
    def navigated(self) -> list[list[int]]:
        return [r.groups for requests in self.turns for r in requests if isinstance(r, Navigate)]


def by(scores: Sequence[float] | Mapping[int, float]) -> Callable[[list[int]], list[int]]:
    """A reranker that sorts by a table."""
    return lambda docs: sorted(docs, key=lambda d: -scores[d])


def pool() -> Pool:
    """The pool as BM25 gives it: the shorter of two texts with the word scores higher, a text without it has 0."""
    score = {5: 0.2, 4: 0.1}
    return Pool(list(POOL), lambda docs: [score.get(d, 0.0) for d in docs])


# --- on disk ----------------------------------------------------------------------------------------------------------


def answering(tables: Path, **loop: Any) -> schema.Answering:
    """Both judges are tables below `tables`; `loop` changes parameters of LOOP."""
    return schema.Answering(
        schema.Bm25FirstStage("bm25", depth=len(POOL), weighting="plain"),
        schema.revive(schema.Loop, {"method": "garen", **LOOP, **loop}),
        schema.TableJudge("table", str(tables / "documents.tsv"), missing=0.0),
        schema.TableJudge("table", str(tables / "groups.tsv"), missing=0.0),
    )


def write_tables(folder: Path, query_ids: Iterable[str] = ("query", "q1")) -> Path:
    """The score tables of documents and groups, the same for every query id."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, scores in (
        ("documents", dict(zip(IDS, DOCUMENT_SCORE, strict=True))),
        ("groups", dict(enumerate(GROUP_SCORE))),
    ):
        lines = [f"{query_id}\t{key}\t{score}\n" for query_id in query_ids for key, score in scores.items()]
        (folder / f"{name}.tsv").write_text("query_id\tid\tscore\n" + "".join(lines))
    return folder


def build(root: Path, kind: str, write: Callable[[Path], object], inputs: Mapping[str, str] | None = None, **recipe: Any) -> str:
    """One finished artifact of the toy; returns its name."""
    address = store.Address(root / "toy", store.Recipe(kind, recipe.pop("config", {}), inputs or {}, **recipe))
    with store.draft(address) as folder:
        write(folder)
        store.finish(address, {"documents": len(IDS)})
    return address.name


def write_index(root: Path) -> Index:
    """Every artifact of the toy below `root`, and its index, opened."""
    made = {
        "corpus": build(root, "corpus", lambda folder: corpus.write(folder, zip(IDS, TEXTS, strict=True))),
        "embeddings": build(root, "embeddings", _write_vectors),
        "graph": build(root, "graph", lambda folder: graph.write(folder, NEIGHBOURS, SIMILARITIES)),
        "groups": build(root, "groups", lambda folder: groups.write(folder, GROUP_OF)),
        "lexicon": build(root, "lexicon", _write_lexicon),
        "summaries": build(root, "summaries", _write_summaries),
    }
    model = {
        "engine": "onnx",
        "quantise": False,
        "pooling": "",
        "max_tokens": 8,
        "query_prefix": "",
        "document_prefix": "",
    }
    aside = {
        "embeddings": {"model": "none", "sha256": ""},
        "answering": asdict(answering(write_tables(root / "tables"))),
    }
    name = build(root, "index", lambda folder: None, made, config={"embeddings": model}, aside=aside)
    return Index.open(root / "toy" / name)


def _write_vectors(folder: Path) -> None:
    embeddings.write_part(folder, 0, VECTORS, {"tokens": sum(len(text.split()) for text in TEXTS)})
    embeddings.join(folder, len(VECTORS))


def _write_lexicon(folder: Path) -> None:
    built = bm25_building.build(TEXTS, Analyzer("none", "none"), 0.9, 0.4)
    lexicon.write(folder, lexicon.Lexicon(**vars(built), stemmer="none", stop_words="none"))


def _write_summaries(folder: Path) -> None:
    lines = [
        summaries.Summary(group, concept, f"All about {concept}.", tuple(np.flatnonzero(group == GROUP_OF).tolist()), "extractive")
        for group, concept in enumerate(CONCEPTS)
    ]
    summaries.write_part(folder, lines, SUMMARY_VECTORS)
    summaries.join(folder, len(lines))
