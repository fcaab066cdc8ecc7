"""The stages before any query: embeddings, lists, graph, groups, lexicon, summaries."""

from __future__ import annotations

from dataclasses import dataclass

from conf.schema.corpus import Corpus
from conf.schema.models import Model
from conf.schema.node import PROMPT, value


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
        "length of what scatters 100,000 documents along directions that all topics share, beside topics of length 1: how hard "
        "it is to find neighbours",
        minimum=0.0,
    )
    intrinsic_dimension: float = value(
        "that length falls with the 1/intrinsic_dimension-th power of the number of documents, as the distance of neighbours does",
        minimum=1.0,
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


Embeddings = OnnxEmbeddings | ModelEmbeddings | SyntheticEmbeddings | BroughtEmbeddings
Graph = ExactGraph | ApproximateGraph | AutoGraph | BroughtGraph
Groups = Leiden | KMeansGroups | RandomGroups | BroughtGroups
Summaries = ExtractiveSummaries | LlmSummaries | BroughtSummaries
