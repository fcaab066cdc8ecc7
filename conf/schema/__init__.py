"""What every configuration value means, its type and its range. The values themselves live in the YAML files of `conf`.

Plain dataclasses and nothing but the standard library, so that jobs, actors and a notebook can all use them.
No field has a default: a value has one home. `conf/load.py` turns the composed YAML into these classes and checks them.

Field metadata: `help` one line for `--help`; `minimum`, `maximum`, `choices` what is accepted;
`identity=False` marks a value that says *where* and not *what*, and so does not enter an artifact's identity
(what lies there enters by its sha256); `prompt` one that names a template file
of that form (conf/templates.py) and is replaced by its parts.
"""

from __future__ import annotations

from dataclasses import dataclass

from conf.schema.answering import (
    Answering as Answering,
    Bm25FirstStage as Bm25FirstStage,
    Bm25Loop as Bm25Loop,
    DenseFirstStage as DenseFirstStage,
    DocumentsLoop as DocumentsLoop,
    EmbeddingNavigator as EmbeddingNavigator,
    EmbeddingReranker as EmbeddingReranker,
    FirstStage as FirstStage,
    GarenLoop as GarenLoop,
    GarLoop as GarLoop,
    HybridFirstStage as HybridFirstStage,
    ListwiseReranker as ListwiseReranker,
    Loop as Loop,
    Navigator as Navigator,
    PointwiseJudge as PointwiseJudge,
    RepairLoop as RepairLoop,
    ReplayJudge as ReplayJudge,
    Reranker as Reranker,
    RgsLoop as RgsLoop,
    RunFirstStage as RunFirstStage,
    SimulatedJudge as SimulatedJudge,
    SlidingLoop as SlidingLoop,
    Sources as Sources,
    TableJudge as TableJudge,
)
from conf.schema.cluster import (
    ActorPool as ActorPool,
    Cluster as Cluster,
    Endpoint as Endpoint,
    GpuTasks as GpuTasks,
    Replicas as Replicas,
    Searchers as Searchers,
    Tasks as Tasks,
)
from conf.schema.corpus import (
    Beir as Beir,
    Corpus as Corpus,
    Folder as Folder,
    Jsonl as Jsonl,
    Parquet as Parquet,
    PythonDocs as PythonDocs,
    Queries as Queries,
    Synthetic as Synthetic,
    Table as Table,
)
from conf.schema.evaluation import (
    Compare as Compare,
    Metrics as Metrics,
    Price as Price,
    Prices as Prices,
)
from conf.schema.models import (
    Model as Model,
    OpenAIModel as OpenAIModel,
    VllmModel as VllmModel,
)
from conf.schema.node import (
    choose as choose,
    chooser as chooser,
    identity as identity,
    merged as merged,
    places as places,
    revive as revive,
    value as value,
)
from conf.schema.offline import (
    ApproximateGraph as ApproximateGraph,
    AutoGraph as AutoGraph,
    BroughtEmbeddings as BroughtEmbeddings,
    BroughtGraph as BroughtGraph,
    BroughtGroups as BroughtGroups,
    BroughtSummaries as BroughtSummaries,
    Embeddings as Embeddings,
    ExactGraph as ExactGraph,
    ExtractiveSummaries as ExtractiveSummaries,
    Graph as Graph,
    Groups as Groups,
    KMeansGroups as KMeansGroups,
    Leiden as Leiden,
    Lexicon as Lexicon,
    Lists as Lists,
    LlmSummaries as LlmSummaries,
    ModelEmbeddings as ModelEmbeddings,
    OnnxEmbeddings as OnnxEmbeddings,
    RandomGroups as RandomGroups,
    Summaries as Summaries,
    SyntheticEmbeddings as SyntheticEmbeddings,
)


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
