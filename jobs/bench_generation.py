"""Tokens per second of a run's reranker, loop, searchers and Serve around it: against vLLM's offline generate on the same prompts.

Reads: index, queries. Writes: nothing.   python -m jobs.bench_generation corpus=scifact loop=retrieve_and_rerank reranker=listwise
Both sides have the same model with the same arguments. Queries are dealt into rounds, so that no round finds its prompts in a
cache; a first round warms both and does not count. The last line is JSON. Cost: two engines, minutes.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from actors.algorithms.loops.methods import METHODS
from actors.artifacts.queries import Query, open_queries
from actors.artifacts.run import Result
from actors.artifacts.store import open_manifest
from actors.engines.build import Place
from actors.engines.engine import EngineError
from actors.engines.vllm import VllmEngine
from actors.engines.vllm_start import prepared, require
from actors.judges.judge import Ask
from actors.judges.listwise import ListwiseJudge
from actors.judges.pointwise import PointwiseJudge
from conf import schema
from conf.load import BadConfig
from jobs import session
from jobs.benches.measuring import spread
from jobs.console import say, table
from jobs.online import service
from jobs.stages import Addresses

ROUNDS = 3
Node = schema.ListwiseReranker | schema.PointwiseJudge


class Collector(VllmEngine):
    """Renders and encodes what it is asked, and answers nothing."""

    async def _answer(self, ask: Callable[..., Any], ids: list[int], parameters: Any) -> Any:
        self.asked.append((self._vllm.inputs.tokens_input(ids), parameters))
        raise EngineError("collected")

    def generate_collected(self, asks: list[Ask], node: Node) -> tuple[float, int]:
        """Seconds and prompts of one offline generate over all that these requests ask."""
        self.asked: list[tuple[Any, Any]] = []
        judge = ListwiseJudge(node, self) if isinstance(node, schema.ListwiseReranker) else PointwiseJudge(node, self)
        asyncio.run(judge.scores(asks))
        start = time.perf_counter()
        answers = self._llm.generate(*map(list, zip(*self.asked, strict=True)), use_tqdm=False)
        return time.perf_counter() - start, len(answers)


def offline_engine(*given: Any) -> Any:
    """vLLM's LLM, with the arguments that our own engine would have."""
    return require("vllm").LLM(**prepared(*given))


def offline(pipe: Connection, node: Node, place: Place) -> None:
    """The rival's process: an engine, and a generate for every list of requests that comes."""
    verb = "generate" if isinstance(node, schema.ListwiseReranker) else "yes_no"
    assert isinstance(node.model, schema.VllmModel)
    collector = Collector(node.model, [verb], place.tensor_parallel_size, place.gpu_memory_utilization, offline_engine)
    while asks := pipe.recv():
        pipe.send(collector.generate_collected(asks, node))


def asks_of(index: Path, results: Sequence[Result], queries: Sequence[Query]) -> list[Ask]:
    """What the reranker was asked for these results, in that order."""
    text = {query.query_id: query.text for query in queries}
    asked = [(r.query_id, a) for r in results for a in r.answers if a["role"] == "reranker"]
    return [Ask(str(index), query_id, text[query_id], a["rows"]) for query_id, a in asked]


def run(settings: schema.Settings) -> None:
    """Alternate both sides and print the ratio of their times."""
    node = settings.reranker
    if not isinstance(node, Node) or not isinstance(node.model, schema.VllmModel):
        raise BadConfig("reranker", node.judge, "a reranker with a model of vLLM", "For example reranker=listwise.")
    if METHODS[settings.loop.method].asks != ("reranker",):
        raise BadConfig("loop", settings.loop.method, "a method that asks the reranker alone", "Give loop=retrieve_and_rerank.")
    index, asked = (Addresses(settings)[kind].folder for kind in ("index", "queries"))
    open_manifest(index, "index")
    open_manifest(asked, "queries")
    queries = open_queries(asked)
    pipe, theirs = multiprocessing.get_context("spawn").Pipe()
    place = Place.of(settings.cluster.reranker, settings.cluster.endpoint)
    rival = multiprocessing.get_context("spawn").Process(target=offline, args=(theirs, node, place))
    lines = []
    rival.start()
    try:
        with service(settings.cluster) as ours:
            for number in range(ROUNDS + 1):
                mine = queries[number :: ROUNDS + 1]
                start = time.perf_counter()
                results = list(ours.answer(settings, index, asked, mine))
                seconds = time.perf_counter() - start
                pipe.send(asks_of(index, results, mine))
                offline_seconds, prompts = pipe.recv()
                used = sum(r.usage["reranker"].get(f"{kind}_tokens", 0) for r in results for kind in ("prompt", "generated"))
                lines.append((number, prompts, used, used / seconds, used / offline_seconds, offline_seconds / seconds))
        pipe.send([])
        rival.join(60)
    finally:
        rival.kill()
    ratios = [line[-1] for line in lines[1:]]
    say(f"\n{len(queries)} queries of {settings.corpus.name}, {node.model.name}; round 0 warms both and does not count")
    say(table(("round", "prompts", "tokens", "tokens/s of the run", "offline", "ratio"), lines))
    say(json.dumps(spread(ratios)))


main = session.job(run)

if __name__ == "__main__":
    main()
