"""What models take, in calls, tokens, time and money: foreseen from a sample before a job, measured after it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from actors.algorithms.duplicates import distinct
from actors.algorithms.loops.methods import METHODS
from actors.artifacts.corpus import open_corpus
from actors.artifacts.embeddings import open_vectors
from actors.artifacts.groups import open_groups
from actors.artifacts.queries import open_queries
from actors.describer import Describer
from actors.engines.dry import DryEngine, tokens_of
from actors.index import Index
from actors.judges.judge import OK, Ask, Scores
from actors.judges.listwise import ListwiseJudge
from actors.judges.pointwise import PointwiseJudge
from actors.searcher import Searcher
from conf import schema
from jobs.console import duration, say, table

SAMPLE = 30  # queries, or groups, that a plan works through without asking any model
DOCUMENTS = 300
Usage = Mapping[str, Mapping[str, int]]


def show(usage: Usage, models: Mapping[str, schema.Model], prices: schema.Prices, foreseen: bool) -> None:
    """One line per role that asks a model. foreseen: the time is what the stated speeds make of the tokens."""
    lines = []
    for role, model in models.items():
        used = usage.get(role, {})
        prompt, cached, generated = (used.get(f"{kind}_tokens", 0) for kind in ("prompt", "cached", "generated"))
        price = prices.models.get(model.name, prices.models["default"])
        seconds = (prompt - cached) / price.prompt_speed + generated / price.generated_speed
        cost = ((prompt - cached) * price.prompt_price + cached * price.cached_price + generated * price.generated_price) / 1e6
        time = [duration(seconds)] if foreseen else []
        money = f"{cost:,.2f} {prices.currency}"
        lines.append([role, model.name, used.get("model_calls", 0), prompt, cached, generated, money, *time])
    if lines:
        at_speed = ["at stated speed"] if foreseen else []
        say(table(("role", "model", "calls", "prompt tokens", "cached", "generated", "cost", *at_speed), lines))


def models_of(settings: schema.Settings) -> dict[str, schema.Model]:
    """The models that a run of these settings asks, by role."""
    nodes = {role: settings.answering.node_of(role) for role in METHODS[settings.loop.method].asks if role != "encoder"}
    return {role: node.model for role, node in nodes.items() if isinstance(node, schema.ListwiseReranker | schema.PointwiseJudge)}


def of_run(settings: schema.Settings, index: Path, queries: Path) -> dict[str, dict[str, int]]:
    """What answering all queries would take: the loop and its prompts are worked through for a sample of them, unanswered."""
    opened, asked = Index.open(index), open_queries(queries)
    sample = _spread(asked, SAMPLE)
    nodes = {role: None if role == "encoder" else settings.answering.node_of(role) for role in METHODS[settings.loop.method].asks}
    roles = {role: _dry(node, settings.prices) for role, node in nodes.items()}
    searcher = Searcher(opened, _by_words(settings.answering), roles, str(queries))

    async def answer_all() -> list[Any]:
        return [(await searcher.answer(query)).usage for query in sample]

    usage: dict[str, Counter[str]] = {}
    for one in asyncio.run(answer_all()):
        for role, counters in one.items():
            usage.setdefault(role, Counter()).update(counters)
    return {role: _scaled(counters, len(asked) / max(len(sample), 1)) for role, counters in usage.items()}


def of_summaries(node: schema.LlmSummaries, inputs: Mapping[str, Path], prices: schema.Prices) -> dict[str, int]:
    """What describing all groups would take."""
    corpus, vectors, groups = open_corpus(inputs["corpus"]), open_vectors(inputs["embeddings"]), open_groups(inputs["groups"])
    engine = DryEngine(tokens_of(node.model), 4 * prices.description_tokens, prices.description_tokens)
    describer = Describer(node, engine)
    sample = _spread(range(groups.count), SAMPLE)

    async def describe_all() -> Counter[str]:
        usage: Counter[str] = Counter()
        for group in sample:
            rows = groups.members(group)
            shown = rows[distinct(vectors[rows].astype(np.float32), node.duplicate_similarity)]
            usage.update((await describer.describe([corpus.text(row) for row in shown.tolist()])).usage)
        return usage

    return _scaled(asyncio.run(describe_all()), groups.count / max(len(sample), 1))


def of_embeddings(node: schema.ModelEmbeddings, corpus: Path) -> dict[str, int]:
    """What embedding all documents would take."""
    opened, tokens = open_corpus(corpus), tokens_of(node.model)
    sample = _spread(range(len(opened)), DOCUMENTS)
    counted = sum(min(tokens.count(node.document_prefix + opened.text(row)), node.max_tokens) for row in sample)
    return {"model_calls": len(opened), **_scaled(Counter(prompt_tokens=counted), len(opened) / max(len(sample), 1))}


def _by_words(answering: schema.Answering) -> schema.Answering:
    """The same with BM25 in place of a first stage that asks a model: its documents are others, and about as long."""
    node = answering.first_stage
    return replace(answering, first_stage=schema.Bm25FirstStage("bm25", node.depth, "plain")) if answering.finds else answering


def _dry(node: Any, prices: schema.Prices) -> Callable[[Ask], Awaitable[Scores]]:
    judge: ListwiseJudge | PointwiseJudge | None = None
    if isinstance(node, schema.ListwiseReranker):
        tokens = tokens_of(node.model)
        ids = tokens.count("<answer> " + " > ".join(f"[{i}]" for i in range(1, node.least + 1)) + " </answer>")
        reasons = "reasoning" in " ".join(node.prompt.values()).lower()
        judge = ListwiseJudge(node, DryEngine(tokens, ids + (prices.reasoning_tokens if reasons else 0)))
    elif isinstance(node, schema.PointwiseJudge):
        judge = PointwiseJudge(node, DryEngine(tokens_of(node.model), 1))

    async def answer(ask: Ask) -> Scores:
        if judge is None:
            return Scores([0.0] * len(ask.rows) * max(1, len(ask.texts)), OK, {})
        (scores,) = await judge.scores([ask])
        return scores

    return answer


def _spread(items: Sequence[Any], count: int) -> list[Any]:
    """`count` of the items, evenly over all."""
    return [items[i * len(items) // count] for i in range(count)] if len(items) > count else list(items)


def _scaled(counters: Mapping[str, int], factor: float) -> dict[str, int]:
    return {name: round(number * factor) for name, number in counters.items()}
