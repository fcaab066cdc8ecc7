"""What every configuration value means, its type and its range. The values themselves live in the YAML files beside this one.

Plain dataclasses and nothing but the standard library, so that jobs, actors and a notebook can all use them.
No field has a default: a value has one home. `conf/load.py` turns the composed YAML into these classes and checks them.

Field metadata: `help` one line for `--help`; `minimum`, `maximum`, `choices` what is accepted;
`identity=False` marks a value that says *where* and not *what*, and so does not enter an artifact's identity
(what lies there enters by its sha256); `prompt` one that names a template file
of that form (conf/templates.py) and is replaced by its parts.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def value(
    help: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    identity: bool = True,
    prompt: str = "",
) -> Any:
    return field(metadata=locals())


PROMPT = "name of a file of conf/prompts, or the absolute path of one of your own"
ON_BAD = ("stop", "skip")


@dataclass
class Artifacts:
    root: str = value("absolute folder that holds every artifact; shared by all nodes of a cluster", identity=False)
    collections: str = value(
        "folder in which the named BEIR collections lie (corpus=scifact reads <collections>/scifact)", identity=False
    )
    only: str = value("jobs.artifacts: the corpus whose artifacts are listed or pruned; empty: all", identity=False)
    keep_kinds: list[str] = value("jobs.artifacts prune: kinds that are kept, with what they are made from", identity=False)
    keep: list[str] = value(
        "jobs.artifacts prune: names of artifacts, as list shows them; given: these are kept and not all of keep_kinds",
        identity=False,
    )
    keep_unfinished: bool = value("jobs.artifacts prune: whether unfinished work stays, and what it is made from", identity=False)


# --- corpus: what is searched -----------------------------------------------------------------------------------------


@dataclass
class PythonDocs:
    reader: str = value("python_docs", choices=("python_docs",))
    name: str = value("folder name of the corpus' artifacts", identity=False)
    on_bad: str = value("what to do with a refused record", choices=ON_BAD)


@dataclass
class Beir:
    reader: str = value("beir", choices=("beir",))
    name: str = value("folder name of the corpus' artifacts", identity=False)
    path: str = value("BEIR folder: corpus.jsonl[.gz], queries.jsonl[.gz], qrels/<split>.tsv", identity=False)
    on_bad: str = value("what to do with a refused record", choices=ON_BAD)


@dataclass
class Jsonl:
    reader: str = value("jsonl", choices=("jsonl",))
    name: str = value("folder name of the corpus' artifacts", identity=False)
    path: str = value("a .jsonl or .jsonl.gz file, or a folder of them", identity=False)
    id: str = value("key that holds the document's id")
    title: str = value("key that holds the title; empty: no titles")
    text: str = value("key that holds the text")
    on_bad: str = value("what to do with a refused record", choices=ON_BAD)


@dataclass
class Parquet:
    reader: str = value("parquet", choices=("parquet",))
    name: str = value("folder name of the corpus' artifacts", identity=False)
    path: str = value("a .parquet file, or a folder of them", identity=False)
    id: str = value("column that holds the document's id")
    title: str = value("column that holds the title; empty: no titles")
    text: str = value("column that holds the text")
    on_bad: str = value("what to do with a refused record", choices=ON_BAD)


@dataclass
class Table:
    reader: str = value("table", choices=("table",))
    name: str = value("folder name of the corpus' artifacts", identity=False)
    path: str = value("a .csv or .tsv file with a header line (also .gz)", identity=False)
    id: str = value("column that holds the document's id")
    title: str = value("column that holds the title; empty: no titles")
    text: str = value("column that holds the text")
    on_bad: str = value("what to do with a refused record", choices=ON_BAD)


@dataclass
class Folder:
    reader: str = value("folder", choices=("folder",))
    name: str = value("folder name of the corpus' artifacts", identity=False)
    path: str = value("a folder; its .txt and .md files are read, subfolders too", identity=False)
    split: str = value("one document per file, or per Markdown section", choices=("file", "section"))
    on_bad: str = value("what to do with a refused record", choices=ON_BAD)


@dataclass
class Synthetic:
    reader: str = value("synthetic: documents drawn around planted topics, to try sizes", choices=("synthetic",))
    name: str = value("folder name of the corpus' artifacts", identity=False)
    documents: int = value("number of documents", minimum=1)
    leaf_documents: float = value("documents of a topic at the bottom of the tree of topics, on average", minimum=1.0)
    branching: int = value("about so many topics make one of the level above", minimum=2)
    near_duplicates: float = value("share of documents that are an earlier one with few words changed", minimum=0.0, maximum=0.5)
    changed: float = value("share of a near-duplicate's words that are changed", minimum=0.0, maximum=1.0)
    isolated: float = value("share of documents that have no topic", minimum=0.0, maximum=0.5)
    words: float = value("words of a document, on average", minimum=1.0)
    words_spread: float = value("standard deviation of the logarithm of their number", minimum=0.0, maximum=2.0)
    vocabulary: float = value("words of the language for each square root of the number of documents", minimum=1.0)
    node_words: int = value("words that a topic has of its own, in each of its two wordings", minimum=1)
    topic_share: float = value("share of a document's words that tell its topics", minimum=0.01, maximum=1.0)
    reworded: float = value("share of documents that use the second wording; questions use the first", minimum=0.0, maximum=1.0)
    seed: int = value("seed of all that is drawn", minimum=0)
    queries: int = value("questions that come with it: queries.limit, where nothing else is said", minimum=0, identity=False)


# --- queries: what is asked -------------------------------------------------------------------------------------------


@dataclass
class Queries:
    reader: str = value(
        "python_docs, synthetic: its own questions; beir: a BEIR folder; jsonl, table or parquet: one file of queries; "
        "none: the corpus has no queries of its own",
        choices=("python_docs", "synthetic", "beir", "jsonl", "table", "parquet", "none"),
    )
    path: str = value("the BEIR folder, or the file of queries; empty for python_docs and synthetic", identity=False)
    qrels: str = value(
        "TSV of query-id, corpus-id, score with a header line; empty: <path>/qrels/<split>.tsv for BEIR, else no qrels",
        identity=False,
    )
    split: str = value("which qrels of a BEIR folder")
    id: str = value("key or column that holds the query's id (jsonl, table, parquet)")
    text: str = value("key or column that holds the query's text (jsonl, table, parquet)")
    limit: int = value("use only the first so many judged queries; 0: all (synthetic: one for each topic)", minimum=0)
    on_bad: str = value("what to do with a refused record", choices=ON_BAD)


# --- offline stages ---------------------------------------------------------------------------------------------------


@dataclass
class OnnxEmbeddings:
    engine: str = value("how the model is called", choices=("onnx",))
    model: str = value(
        "minilm: the packaged all-MiniLM-L6-v2; else the absolute path of an ONNX or sentence-transformers folder", identity=False
    )
    sha256: str = value("digest that the model file must have; empty: not checked", identity=False)
    quantise: bool = value("re-quantise a weight-only int8 graph to dynamic int8, once")
    pooling: str = value("how token vectors become one; empty: as the model's folder says", choices=("", "mean", "cls", "last"))
    max_tokens: int = value("longer texts are cut to this many tokens", minimum=8, maximum=32768)
    query_prefix: str = value("written before every query")
    document_prefix: str = value("written before every document")


@dataclass
class ModelEmbeddings:
    engine: str = value("model: a model of vLLM or of an endpoint", choices=("model",))
    model: Model = value("the model")
    max_tokens: int = value("longer texts are cut to this many tokens, prefix included", minimum=8)
    query_prefix: str = value("written before every query")
    document_prefix: str = value("written before every document")


@dataclass
class SyntheticEmbeddings:
    engine: str = value("synthetic: drawn around the topics of corpus=synthetic, without a model", choices=("synthetic",))
    corpus: Corpus = value("the synthetic corpus")
    dimension: int = value("d", minimum=8, maximum=8192)
    decay: float = value("weight of a topic's direction against that of the topic above it", minimum=0.01)
    drift: float = value(
        "length of what scatters documents along directions that all topics share, beside topics of length 1: how hard it is to "
        "find neighbours",
        minimum=0.0,
    )
    drift_dimensions: int = value("number of those directions", minimum=1, maximum=256)
    drift_spread: float = value("standard deviation of the logarithm of a document's own factor to it", minimum=0.0, maximum=2.0)
    noise: float = value("length of what scatters documents in all directions", minimum=0.0)
    copy_noise: float = value("length of what moves a near-duplicate from its original of length 1", minimum=0.0, maximum=0.2)


@dataclass
class BroughtEmbeddings:
    engine: str = value("brought: vectors that were made elsewhere", choices=("brought",))
    path: str = value("an .npy file [N, d] float16 or float32: row i is document i of the corpus", identity=False)
    queries: str = value(
        "Parquet file of text and vector: the questions; empty: none, for what compares no vectors with questions",
        identity=False,
    )


@dataclass
class Lists:
    number: int = value("inverted lists; 0: the number of documents to the power 0.6", minimum=0)
    training_documents: int = value("documents that the centroids are trained on at most, but one per list at least", minimum=1)
    iterations: int = value("passes over the documents that they are trained on, at most", minimum=1)
    seed: int = value("seed of the centroids", minimum=0)


@dataclass
class ExactGraph:
    method: str = value("exact: every pair is compared", choices=("exact",))
    k: int = value("neighbours per document", minimum=1, maximum=1024)


@dataclass
class ApproximateGraph:
    method: str = value("approximate: documents of near inverted lists are compared, then neighbours of neighbours",
                        choices=("approximate",))  # fmt: skip
    k: int = value("neighbours per document", minimum=1, maximum=1024)
    lists: Lists = value("the inverted lists: those of the node `lists`, where they are changed")
    probes: int = value("lists that a document is compared with at first", minimum=1)
    passes: int = value("passes over neighbours of neighbours, at least", minimum=0)
    spare: int = value("candidates that are kept beyond k on the way", minimum=0, maximum=1024)
    hubs: int = value("neighbours that a pass follows, as many forward as backward", minimum=1, maximum=256)
    sample: int = value("documents whose exact neighbours are found to measure the recall", minimum=1)
    minimum_recall: float = value("recall@k of the sample with which the job is content", minimum=0.0, maximum=1.0)
    attempts: int = value(
        "times that it may try: below minimum_recall it makes another pass or doubles probes", minimum=1, identity=False
    )
    seed: int = value("seed of the sample", minimum=0)


@dataclass
class AutoGraph(ApproximateGraph):
    method: str = value("auto: exact for a small corpus, else approximate", choices=("auto",))
    exact_up_to: int = value("documents of a corpus that is small", minimum=0)


@dataclass
class BroughtGraph:
    method: str = value("brought: neighbours that were made elsewhere", choices=("brought",))
    path: str = value(
        "an .npy file [N, k or more] of rows of the corpus, nearest first, -1 for none; a document's own row is left out",
        identity=False,
    )
    similarities: str = value("an .npy file of the same shape; empty: the inner products of the vectors", identity=False)
    k: int = value("neighbours per document that are taken", minimum=1, maximum=1024)


@dataclass
class Leiden:
    method: str = value("leiden", choices=("leiden",))
    max_size: int = value("groups larger than this are partitioned again", minimum=2)
    resolution: float = value("gamma of the modularity", minimum=0.0)
    randomness: float = value("theta of Leiden's refinement", minimum=0.0)
    iterations: int = value("passes of Leiden over one graph", minimum=1)
    weights: str = value(
        "of edges; none: all alike; similarity: that of their documents, 0 or less: no edge", choices=("none", "similarity")
    )
    seed: int = value("seed of the partition", minimum=0)


@dataclass
class KMeansGroups:
    method: str = value("kmeans: by the vectors alone", choices=("kmeans",))
    like: Leiden = value("the Leiden groups of which there are as many")
    iterations: int = value("passes over the documents that the centres are trained on, at most", minimum=1)
    training_documents: int = value("documents that the centres are trained on at most, but one per group at least", minimum=1)
    seed: int = value("seed of the centres", minimum=0)


@dataclass
class RandomGroups:
    method: str = value("random: documents dealt at random", choices=("random",))
    like: Leiden = value("the Leiden groups whose sizes these have")
    seed: int = value("seed of the dealing", minimum=0)


@dataclass
class BroughtGroups:
    method: str = value("brought: groups that were made elsewhere", choices=("brought",))
    path: str = value(
        "an .npy file [N] of each document's group, -1 for none; or a TSV or Parquet file of doc_id and group. Groups are numbered "
        "from 0 without gaps; a document without a group becomes one of its own",
        identity=False,
    )
    max_size: int = value("groups larger than this are counted", minimum=1)


@dataclass
class Lexicon:
    k1: float = value("BM25's saturation of term frequency", minimum=0.0)
    b: float = value("BM25's length normalisation", minimum=0.0, maximum=1.0)
    stemmer: str = value("Snowball stemmer", choices=("english", "none"))
    stop_words: str = value("words that are left out", choices=("english", "none"))


@dataclass
class ExtractiveSummaries:
    method: str = value("extractive: sentences and words of the group's own documents", choices=("extractive",))
    concept_words: int = value("words of a concept at most", minimum=1, maximum=10)
    min_sentences: int = value("sentences of a summary at least, where the group has as many", minimum=1)
    max_sentences: int = value("sentences of a summary at most", minimum=1, maximum=50)
    sentence_characters: int = value("longer sentences are cut at a word", minimum=20)
    documents: int = value("documents of a group that are read at most", minimum=1)
    document_characters: int = value("characters of a document that are read at most", minimum=1)
    duplicate_similarity: float = value("documents at least this similar count as one", minimum=0.0, maximum=1.0)
    relevance: float = value("share of centrality, against diversity, in the choice of documents", minimum=0.0, maximum=1.0)


@dataclass
class LlmSummaries:
    method: str = value("llm: a language model describes the group", choices=("llm",))
    model: Model = value("the model")
    prompt: dict[str, str] = value(PROMPT, prompt="summary")
    parts_prompt: dict[str, str] = value("the same for a group that was described in parts", prompt="summary")
    document_tokens: int = value("longer documents are cut to this many tokens", minimum=8)
    answer_tokens: int = value("tokens of an answer at most", minimum=32)
    attempts: int = value("answers that are asked for until one can be used, each with another seed", minimum=1)
    temperature: float = value("0: the most probable answer", minimum=0.0)
    seed: int = value("seed of the model's sampling", minimum=0)
    duplicate_similarity: float = value("documents at least this similar count as one", minimum=0.0, maximum=1.0)
    stand_in: ExtractiveSummaries = value("what stands in for an answer that cannot be used")
    stand_ins: float = value("share of groups that may have a stand-in; with more the job stops", minimum=0.0, maximum=1.0)


@dataclass
class BroughtSummaries:
    method: str = value("brought: descriptions that were made elsewhere", choices=("brought",))
    path: str = value("a TSV or Parquet file of group, concept and summary", identity=False)
    stand_in: ExtractiveSummaries = value("what stands in for a group that the file lacks")
    stand_ins: float = value("share of groups that may have a stand-in; with more the job stops", minimum=0.0, maximum=1.0)


# --- models: an engine and all that changes its answers -----------------------------------------------------------------


@dataclass
class VllmModel:
    engine: str = value("vllm: in the actor's own process", choices=("vllm",))
    name: str = value("name at a model hub, or the absolute path of a folder with weights and tokenizer")
    revision: str = value("revision at the hub; empty: the newest")
    dtype: str = value("of the weights", choices=("auto", "bfloat16", "float16", "float32"))
    quantization: str = value("empty: as the model's own configuration says")
    max_model_len: int = value("tokens of prompt and answer together", minimum=32)
    pooling: str = value("how token vectors become one (embedding); empty: as the model says", choices=("", "mean", "cls", "last"))
    thinking: bool = value("whether a model that can think before its answer may")


@dataclass
class OpenAIModel:
    engine: str = value("openai: an endpoint with OpenAI's interface", choices=("openai",))
    name: str = value("the model's name at the endpoint")
    url: str = value("base URL of the endpoint, ending in /v1", identity=False)
    key: str = value("environment variable that holds the API key; empty: no key", identity=False)
    max_model_len: int = value("tokens of prompt and answer together", minimum=32)
    thinking: bool = value("whether a model that can think before its answer may")
    tokenizer: str = value(
        "absolute path of a tokenizer.json or of a folder with one; empty: tokens are taken as 3 characters", identity=False
    )


# --- answering a query ------------------------------------------------------------------------------------------------


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


@dataclass
class Compare:
    name: str = value("name of the comparison, and of its folder")
    collections: dict[str, list[str]] = value("name -> overrides that choose a corpus; empty: the corpus of the command line")
    variants: dict[str, list[str]] = value("name -> overrides that make a method")
    methods: list[str] = value("the variants to compare, in the order of the table; empty: all")
    seeds: list[int] = value("values of run_seed; runs that no seed changes are made once")
    significance: float = value("p below which a paired t-test is marked", minimum=0.0, maximum=1.0)


@dataclass
class Metrics:
    measures: list[str] = value("pytrec_eval measures, for example ndcg_cut_10")


@dataclass
class Price:
    prompt_price: float = value("of a million prompt tokens", minimum=0.0)
    cached_price: float = value("of a million prompt tokens that were in the prefix cache", minimum=0.0)
    generated_price: float = value("of a million generated tokens", minimum=0.0)
    prompt_speed: float = value("prompt tokens per second", minimum=0.001)
    generated_speed: float = value("generated tokens per second", minimum=0.001)


@dataclass
class Prices:
    currency: str = value("of the prices")
    reasoning_tokens: int = value("tokens that an answer with a reasoning trace is taken to have beforehand", minimum=0)
    description_tokens: int = value("tokens that a group's description is taken to have beforehand, for each document", minimum=0)
    models: dict[str, Price] = value("by the model's name; default: any other")


# --- the cluster: speed only ------------------------------------------------------------------------------------------


@dataclass
class ActorPool:
    actors: int = value("actors of the pool", minimum=1)
    num_cpus: float = value("logical CPUs of each", minimum=0.0)
    num_gpus: float = value("GPUs of each", minimum=0.0)
    part_rows: int = value("rows that are done, written and resumed together", minimum=1)
    tensor_parallel_size: int = value("vLLM: GPUs that one actor's model is spread over", minimum=1)
    gpu_memory_utilization: float = value("vLLM: share of a GPU's memory that it takes", minimum=0.0, maximum=1.0)


@dataclass
class Tasks:
    num_cpus: float = value("logical CPUs of each task", minimum=0.0)
    block_rows: int = value("rows of one task", minimum=1)


@dataclass
class GpuTasks(Tasks):
    num_gpus: float = value("GPUs of each task; 0: none, else faiss-gpu compares all pairs there", minimum=0.0)


@dataclass
class Searchers:
    actors: int = value("searcher actors", minimum=1)
    num_cpus: float = value("logical CPUs of each", minimum=0.0)
    queries_in_flight: int = value("queries that one searcher works on at once", minimum=1)


@dataclass
class Replicas:
    replicas: int = value("Serve replicas of the role", minimum=1)
    num_cpus: float = value("logical CPUs of each", minimum=0.0)
    num_gpus: float = value("GPUs of each", minimum=0.0)
    batch_size: int = value("requests of waiting queries that may share one call", minimum=1)
    calls_in_flight: int = value("calls that one searcher has under way for the role", minimum=1)
    tensor_parallel_size: int = value("vLLM: GPUs that one replica's model is spread over", minimum=1)
    gpu_memory_utilization: float = value("vLLM: share of a GPU's memory that it takes", minimum=0.0, maximum=1.0)


@dataclass
class Endpoint:
    concurrency: int = value("requests that one actor or replica has under way", minimum=1)
    timeout_seconds: float = value("for one attempt", minimum=0.1)
    attempts: int = value("of one request: after 429, 5xx and time-outs it is made again, later each time", minimum=1)
    tokens_per_minute: int = value("prompt and answer tokens that one actor or replica may use; 0: no limit", minimum=0)


@dataclass
class Cluster:
    address: str = value("local: start Ray here; auto or host:port: join a running cluster")
    num_cpus: int = value("logical CPUs of a local Ray; 0: those of the machine", minimum=0)
    object_store_mb: int = value("object store of a local Ray in MiB; 0: Ray's own choice", minimum=0)
    in_process: bool = value("answer judges that need no model server inside the searcher, without Serve")
    embedder: ActorPool = value("pool that embeds documents")
    knn: GpuTasks = value("tasks that build inverted lists and the graph; GPUs are for exact graphs")
    lexicon: Tasks = value("tasks that build the lexicon; those that gather postings take 64 for each of block_rows")
    partition_cpus: float = value("logical CPUs of each task that partitions", minimum=0.0)
    summarizer: ActorPool = value("pool that summarises groups; part_rows counts groups")
    searchers: Searchers = value("pool that answers queries")
    reranker: Replicas = value("the reranker's deployment")
    navigator: Replicas = value("the navigator's deployment")
    endpoint: Endpoint = value("how endpoints are called")
    encoder: Replicas = value("the deployment that embeds texts while queries are answered, for methods that compare texts")


Embeddings = OnnxEmbeddings | ModelEmbeddings | SyntheticEmbeddings | BroughtEmbeddings
Summaries = ExtractiveSummaries | LlmSummaries | BroughtSummaries
Model = VllmModel | OpenAIModel
Corpus = PythonDocs | Beir | Jsonl | Parquet | Table | Folder | Synthetic
FirstStage = Bm25FirstStage | DenseFirstStage | HybridFirstStage | RunFirstStage
Graph = ExactGraph | ApproximateGraph | AutoGraph | BroughtGraph
Groups = Leiden | KMeansGroups | RandomGroups | BroughtGroups
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


@dataclass
class Settings:
    """One composed configuration, checked: one attribute per node of `conf/config.yaml`."""

    artifacts: Artifacts
    corpus: Corpus
    queries: Queries
    embeddings: Embeddings
    lists: Lists
    graph: Graph
    groups: Groups
    lexicon: Lexicon
    summaries: Summaries
    first_stage: FirstStage
    loop: Loop
    reranker: Reranker
    navigator: Navigator
    metrics: Metrics
    compare: Compare
    prices: Prices
    cluster: Cluster
    seed: int
    run_seed: int
    plan: bool
    ask: str
    query_id: str
    do: str
    overrides: list[str]  # that composed it, for jobs that compose variants of it

    @property
    def answering(self) -> Answering:
        """The nodes that say how a query is answered."""
        return Answering(self.first_stage, self.loop, self.reranker, self.navigator)


def choose(union: types.UnionType, node: Mapping[str, Any]) -> type | None:
    """The dataclass of a union that the node's own key names, for example `reader: beir`; None when it names none of them."""
    return next((cls for cls in typing.get_args(union) if node.get(_chooser(cls).name) in _chooser(cls).metadata["choices"]), None)


def revive(union: types.UnionType, node: Mapping[str, Any]) -> Any:
    """A node that was written down as a mapping, as its dataclass again."""
    cls = choose(union, node)
    if cls is None:
        raise ValueError(f"{dict(node)}: no node of the configuration looks like this. Build the artifact again.")
    kinds = typing.get_type_hints(cls)
    return cls(**{name: _revived(kinds[name], given) for name, given in node.items()})


def merged(identity: Mapping[str, Any], places: Mapping[str, Any]) -> dict[str, Any]:
    """`identity` and `places` of a node as one mapping again."""
    inner = {name: merged(identity[name], given) for name, given in places.items() if isinstance(identity.get(name), Mapping)}
    return {**identity, **places, **inner}


def _revived(kind: Any, given: Any) -> Any:
    if isinstance(kind, types.UnionType):
        return revive(kind, given)
    return kind(**given) if isinstance(kind, type) and dataclasses.is_dataclass(kind) else given


def chooser(union: types.UnionType) -> tuple[str, list[str]]:
    """The key that tells a union's dataclasses apart, and the values it may have."""
    names = [choice for cls in typing.get_args(union) for choice in _chooser(cls).metadata["choices"]]
    return _chooser(typing.get_args(union)[0]).name, names


def _chooser(cls: type) -> dataclasses.Field[Any]:
    return next(f for f in dataclasses.fields(cls) if f.name in ("reader", "method", "judge", "engine"))


def identity(node: Any) -> dict[str, Any]:
    """The values of a node that say *what*, those of a node in it too: they enter the identity of the artifacts made with it."""
    own = {f.name: getattr(node, f.name) for f in dataclasses.fields(node) if f.metadata["identity"]}
    return {name: identity(value) if dataclasses.is_dataclass(value) else value for name, value in own.items()}


def places(node: Any) -> dict[str, Any]:
    """The values of a node that say *where*; those of a node in it stay in theirs."""
    found = {}
    for f in dataclasses.fields(node):
        given = getattr(node, f.name)
        if not f.metadata["identity"]:
            found[f.name] = given
        elif dataclasses.is_dataclass(given) and (inner := places(given)):
            found[f.name] = inner
    return found
