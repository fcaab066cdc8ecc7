"""From configuration to a judge."""

from __future__ import annotations

from actors.engines.build import Place
from actors.judges.embedding import EmbeddingJudge, QueryEmbedder
from actors.judges.judge import Judge
from actors.judges.replay import ReplayJudge
from actors.judges.simulated import SimulatedJudge
from actors.judges.table import TableJudge
from conf import schema


async def build_judge(node: schema.Reranker | schema.Navigator, role: str, place: Place | None) -> Judge:
    """The judge that a node of the configuration names, ready to answer. role: reranker or navigator. place: for its engine."""
    match node:
        case schema.TableJudge():
            return TableJudge(node.path, node.missing)
        case schema.ReplayJudge():
            return ReplayJudge(node.path, role, node.missing)
        case schema.SimulatedJudge():
            return SimulatedJudge(node.noise, node.bias, node.seed, node.plan_steps, QueryEmbedder(place))
        case schema.EmbeddingReranker():
            return EmbeddingJudge(node.lexical_weight, node.plan_steps, QueryEmbedder(place))
        case schema.EmbeddingNavigator():
            return EmbeddingJudge(0.0, 0, QueryEmbedder(place), node.vector)
        case schema.ListwiseReranker() | schema.PointwiseJudge():
            if place is None:
                raise ValueError(f"{role}.judge={node.judge} asks a model: it answers in jobs.search and jobs.run_queries.")
            from actors.judges.model import build_model_judge  # with its templates and parsers: only where there is a model

            return await build_model_judge(node, place)
    raise TypeError(f"no judge for {node!r}")
