"""Answering a query: first stage, loop, reranker, navigator."""

from __future__ import annotations

from dataclasses import dataclass

from conf.schema.models import Model
from conf.schema.node import PROMPT, value


@dataclass
class Bm25FirstStage:
    method: str = value("bm25", choices=("bm25",))
    depth: int = value("documents in the pool at most", minimum=1)
    weighting: str = value(
        "plain, or bm25: the query's terms are weighed by BM25 as well (BRIGHT's variant)", choices=("plain", "bm25")
    )


SEARCH = "exact: every document is compared; lists: those of the nearest inverted lists"
PROBES = "search=lists: lists that are read for a query"


@dataclass
class DenseFirstStage:
    method: str = value("dense: by the vectors of the corpus", choices=("dense",))
    depth: int = value("documents in the pool at most", minimum=1)
    search: str = value(SEARCH, choices=("exact", "lists"))
    probes: int = value(PROBES, minimum=1)


@dataclass
class HybridFirstStage:
    method: str = value("hybrid: BM25 and vectors, a weighted sum of their normalised scores", choices=("hybrid",))
    depth: int = value("documents in the pool, and in each of the two that it is made of, at most", minimum=1)
    lexical_weight: float = value("share of BM25 in a document's score", minimum=0.0, maximum=1.0)
    weighting: str = value("of BM25's query terms, as in first_stage=bm25", choices=("plain", "bm25"))
    search: str = value(SEARCH, choices=("exact", "lists"))
    probes: int = value(PROBES, minimum=1)


@dataclass
class RunFirstStage:
    method: str = value("run: a ranking that was brought in", choices=("run",))
    path: str = value("a TREC run, also the run.tsv of a run of ours; it may be compressed (.gz)", identity=False)
    depth: int = value("documents in the pool at most", minimum=1)


@dataclass
class Sources:
    groups: int = value("new documents of an iteration that come from groups", minimum=0)
    neighbours: int = value("those that are neighbours of the kept documents (SlideGAR's rule)", minimum=0)
    pool: int = value("those that are the next of the pool", minimum=0)


@dataclass
class GarenLoop:
    method: str = value("garen", choices=("garen",))
    w: int = value("window: documents in one reranker call", minimum=1)
    h: int = value("keep size: documents of a ranked window that stay in the next", minimum=0)
    budget: int = value("distinct documents shown to the reranker", minimum=1)
    K_g: int = value("groups newly scored by the navigator in one iteration", minimum=1)
    tau_switch: int = value("explore up to this iteration, exploit after it", minimum=0)
    eligible: str = value("which scored groups may be expanded", choices=("candidates", "all_scored"))
    group_score: str = value("the navigator's, or the group's votes without any model", choices=("navigator", "votes"))
    sources: Sources = value("where the w - h new documents of an iteration come from")
    p: float = value("decay of a rank's weight in the propagation", minimum=0.0, maximum=1.0)
    alpha: float = value("weight of a group's evidence in the propagation; 0: none", minimum=0.0)


@dataclass
class SlidingLoop:
    method: str = value(
        "retrieve_and_rerank: the pool alone; slidegar: the graph's neighbours and the pool in turn",
        choices=("retrieve_and_rerank", "slidegar"),
    )
    w: int = value("window: documents in one reranker call", minimum=1)
    h: int = value("keep size: documents that two windows share", minimum=0)
    budget: int = value("distinct documents shown to the reranker", minimum=1)


@dataclass
class GarLoop:
    method: str = value("gar: documents scored one by one, the graph's neighbours and the pool in turn", choices=("gar",))
    batch: int = value("documents scored together", minimum=1)
    budget: int = value("distinct documents scored", minimum=1)


@dataclass
class RgsLoop:
    method: str = value("rgs: best-first search on the corpus graph, guided by the reranker", choices=("rgs",))
    w: int = value("window: documents in one reranker call", minimum=1)
    h: int = value("documents that two windows share", minimum=0)
    budget: int = value("distinct documents shown to the reranker", minimum=1)
    seeds: int = value("documents of the pool that the search starts from", minimum=1)
    beam: int = value("documents that are kept for expansion", minimum=1)
    neighbours: str = value("another graph: an .npy file of rows, [N, k], -1 for none; empty: the corpus graph", identity=False)


@dataclass
class RepairLoop:
    method: str = value("repair: steps of the reranker's plan choose documents from pool and graph", choices=("repair",))
    w: int = value("window: documents in one reranker call", minimum=1)
    h: int = value("keep size: documents of a ranked window that stay in the next", minimum=0)
    budget: int = value("distinct documents shown to the reranker", minimum=1)
    first_adaptive: int = value("first window, counted from 1, whose new documents a step chooses", minimum=2)
    last_adaptive: int = value("last window whose new documents a step chooses", minimum=1)
    base_weight: float = value("weight of what a step lacks in the kept documents, in its reward", minimum=0.0)
    consistency_weight: float = value("weight of its agreement with the rankings so far in its reward", minimum=0.0)


@dataclass
class DocumentsLoop:
    method: str = value("documents: the navigator scores neighbour documents instead of groups", choices=("documents",))
    w: int = value("window: documents in one reranker call", minimum=1)
    h: int = value("keep size: documents of a ranked window that stay in the next", minimum=0)
    budget: int = value("distinct documents shown to the reranker", minimum=1)


@dataclass
class Bm25Loop:
    method: str = value("bm25: the pool as it is", choices=("bm25",))
    budget: int = value("documents in the answer", minimum=1)


PLAN_STEPS = "loop=repair: first sentences of so many best documents stand in for a plan, as these judges do not reason"


SELF_TEST = "a known relevant and a known irrelevant text in the wrong order: enforce stops the job, report only says so"


@dataclass
class EmbeddingReranker:
    judge: str = value("embedding: similarity of the query's vector with the document's", choices=("embedding",))
    lexical_weight: float = value(
        "share of the BM25 score, normalised within the window, in a document's score", minimum=0.0, maximum=1.0
    )
    plan_steps: int = value(PLAN_STEPS, minimum=0)


@dataclass
class EmbeddingNavigator:
    judge: str = value("embedding: similarity of the query's vector with the group's", choices=("embedding",))
    vector: str = value("of the group: its summary's, or the mean of its documents'", choices=("summary", "documents"))


@dataclass
class TableJudge:
    judge: str = value("table: scores that were brought in", choices=("table",))
    path: str = value(
        "TSV or Parquet file of query_id, id, score; id = doc_id for a reranker, group number for a navigator", identity=False
    )
    missing: float = value("score of what is not in the table (counted)")


@dataclass
class ListwiseReranker:
    judge: str = value("listwise: a language model orders a whole window", choices=("listwise",))
    model: Model = value("the model")
    prompt: dict[str, str] = value(PROMPT, prompt="listwise")
    least: int = value("documents of a window that the answer must name; the others follow in window order", minimum=1)
    document_tokens: int = value("longer documents are cut to this many tokens", minimum=8)
    query_tokens: int = value("longer queries are cut to this many tokens", minimum=8)
    answer_tokens: int = value("tokens of an answer at most, its reasoning among them", minimum=8)
    temperature: float = value("0: the most probable answer", minimum=0.0)
    seed: int = value("seed of the model's sampling", minimum=0)
    self_test: str = value(SELF_TEST, choices=("enforce", "report"))


@dataclass
class PointwiseJudge:
    judge: str = value("pointwise: a language model says yes or no, and its probability is the score", choices=("pointwise",))
    model: Model = value("the model")
    prompt: dict[str, str] = value(PROMPT, prompt="yes_no")
    document_tokens: int = value("longer documents are cut to this many tokens", minimum=8)
    query_tokens: int = value("longer queries are cut to this many tokens", minimum=8)
    self_test: str = value(SELF_TEST, choices=("enforce", "report"))


@dataclass
class ReplayJudge:
    judge: str = value("replay: the answers of a finished run", choices=("replay",))
    path: str = value("the folder of that run", identity=False)
    missing: float = value("score of what was never judged there (counted)")


@dataclass
class SimulatedJudge:
    judge: str = value("simulated: relevance judgements with seeded errors; says nothing about any model", choices=("simulated",))
    noise: float = value("standard deviation of the error; a relevant document's value is 1, another's 0", minimum=0.0)
    bias: float = value("share of the similarity with the query in a value", minimum=0.0, maximum=1.0)
    seed: int = value("seed of the errors", minimum=0)
    plan_steps: int = value(PLAN_STEPS, minimum=0)


FirstStage = Bm25FirstStage | DenseFirstStage | HybridFirstStage | RunFirstStage
Loop = GarenLoop | SlidingLoop | GarLoop | RgsLoop | RepairLoop | DocumentsLoop | Bm25Loop
Reranker = EmbeddingReranker | ListwiseReranker | PointwiseJudge | TableJudge | ReplayJudge | SimulatedJudge
Navigator = EmbeddingNavigator | PointwiseJudge | TableJudge | ReplayJudge | SimulatedJudge


@dataclass
class Answering:
    """How a query is answered over an index."""

    first_stage: FirstStage
    loop: Loop
    reranker: Reranker
    navigator: Navigator

    def node_of(self, role: str) -> Reranker | Navigator:
        """The judge of a role. The encoder is the index' model, or what the run of a replayed reranker recorded."""
        return self.navigator if role == "navigator" else self.reranker

    @property
    def finds(self) -> bool:
        """Whether the first stage asks the encoder for the query's nearest documents."""
        return isinstance(self.first_stage, DenseFirstStage | HybridFirstStage)

    @property
    def reads_lists(self) -> bool:
        """Whether the first stage searches inverted lists."""
        return isinstance(self.first_stage, DenseFirstStage | HybridFirstStage) and self.first_stage.search == "lists"
