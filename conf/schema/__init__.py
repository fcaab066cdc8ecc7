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
)
from conf.schema.answering import (
    Bm25FirstStage as Bm25FirstStage,
)
from conf.schema.answering import (
    Bm25Loop as Bm25Loop,
)
from conf.schema.answering import (
    DenseFirstStage as DenseFirstStage,
)
from conf.schema.answering import (
    DocumentsLoop as DocumentsLoop,
)
from conf.schema.answering import (
    EmbeddingNavigator as EmbeddingNavigator,
)
from conf.schema.answering import (
    EmbeddingReranker as EmbeddingReranker,
)
from conf.schema.answering import (
    FirstStage as FirstStage,
)
from conf.schema.answering import (
    GarenLoop as GarenLoop,
)
from conf.schema.answering import (
    GarLoop as GarLoop,
)
from conf.schema.answering import (
    HybridFirstStage as HybridFirstStage,
)
from conf.schema.answering import (
    ListwiseReranker as ListwiseReranker,
)
from conf.schema.answering import (
    Loop as Loop,
)
from conf.schema.answering import (
    Navigator as Navigator,
)
from conf.schema.answering import (
    PointwiseJudge as PointwiseJudge,
)
from conf.schema.answering import (
    RepairLoop as RepairLoop,
)
from conf.schema.answering import (
    ReplayJudge as ReplayJudge,
)
from conf.schema.answering import (
    Reranker as Reranker,
)
from conf.schema.answering import (
    RgsLoop as RgsLoop,
)
from conf.schema.answering import (
    RunFirstStage as RunFirstStage,
)
from conf.schema.answering import (
    SimulatedJudge as SimulatedJudge,
)
from conf.schema.answering import (
    SlidingLoop as SlidingLoop,
)
from conf.schema.answering import (
    Sources as Sources,
)
from conf.schema.answering import (
    TableJudge as TableJudge,
)
from conf.schema.cluster import (
    ActorPool as ActorPool,
)
from conf.schema.cluster import (
    Cluster as Cluster,
)
from conf.schema.cluster import (
    Endpoint as Endpoint,
)
from conf.schema.cluster import (
    GpuTasks as GpuTasks,
)
from conf.schema.cluster import (
    Replicas as Replicas,
)
from conf.schema.cluster import (
    Searchers as Searchers,
)
from conf.schema.cluster import (
    Tasks as Tasks,
)
from conf.schema.corpus import (
    Beir as Beir,
)
from conf.schema.corpus import (
    Corpus as Corpus,
)
from conf.schema.corpus import (
    Folder as Folder,
)
from conf.schema.corpus import (
    Jsonl as Jsonl,
)
from conf.schema.corpus import (
    Parquet as Parquet,
)
from conf.schema.corpus import (
    PythonDocs as PythonDocs,
)
from conf.schema.corpus import (
    Queries as Queries,
)
from conf.schema.corpus import (
    Synthetic as Synthetic,
)
from conf.schema.corpus import (
    Table as Table,
)
from conf.schema.evaluation import (
    Compare as Compare,
)
from conf.schema.evaluation import (
    Metrics as Metrics,
)
from conf.schema.evaluation import (
    Price as Price,
)
from conf.schema.evaluation import (
    Prices as Prices,
)
from conf.schema.models import (
    Model as Model,
)
from conf.schema.models import (
    OpenAIModel as OpenAIModel,
)
from conf.schema.models import (
    VllmModel as VllmModel,
)
from conf.schema.node import (
    choose as choose,
)
from conf.schema.node import (
    chooser as chooser,
)
from conf.schema.node import (
    identity as identity,
)
from conf.schema.node import (
    merged as merged,
)
from conf.schema.node import (
    places as places,
)
from conf.schema.node import (
    revive as revive,
)
from conf.schema.node import (
    value as value,
)
from conf.schema.offline import (
    ApproximateGraph as ApproximateGraph,
)
from conf.schema.offline import (
    AutoGraph as AutoGraph,
)
from conf.schema.offline import (
    BroughtEmbeddings as BroughtEmbeddings,
)
from conf.schema.offline import (
    BroughtGraph as BroughtGraph,
)
from conf.schema.offline import (
    BroughtGroups as BroughtGroups,
)
from conf.schema.offline import (
    BroughtSummaries as BroughtSummaries,
)
from conf.schema.offline import (
    Embeddings as Embeddings,
)
from conf.schema.offline import (
    ExactGraph as ExactGraph,
)
from conf.schema.offline import (
    ExtractiveSummaries as ExtractiveSummaries,
)
from conf.schema.offline import (
    Graph as Graph,
)
from conf.schema.offline import (
    Groups as Groups,
)
from conf.schema.offline import (
    KMeansGroups as KMeansGroups,
)
from conf.schema.offline import (
    Leiden as Leiden,
)
from conf.schema.offline import (
    Lexicon as Lexicon,
)
from conf.schema.offline import (
    Lists as Lists,
)
from conf.schema.offline import (
    LlmSummaries as LlmSummaries,
)
from conf.schema.offline import (
    ModelEmbeddings as ModelEmbeddings,
)
from conf.schema.offline import (
    OnnxEmbeddings as OnnxEmbeddings,
)
from conf.schema.offline import (
    RandomGroups as RandomGroups,
)
from conf.schema.offline import (
    Summaries as Summaries,
)
from conf.schema.offline import (
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
