"""The cluster: speed only."""

from __future__ import annotations

from dataclasses import dataclass

from conf.schema.node import value


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
