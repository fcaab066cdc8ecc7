"""From configuration to a judge."""

from __future__ import annotations

from actors.judges.embedding import EmbeddingJudge
from actors.judges.judge import Judge
from actors.judges.replay import ReplayJudge
from actors.judges.simulated import SimulatedJudge
from actors.judges.table import TableJudge
from conf import schema


def build_judge(node: schema.Reranker | schema.Navigator, role: str) -> Judge:
    """The judge that a node of the configuration names. role: reranker or navigator."""
    match node:
        case schema.TableJudge():
            return TableJudge(node.path, node.missing)
        case schema.ReplayJudge():
            return ReplayJudge(node.path, role, node.missing)
        case schema.SimulatedJudge():
            return SimulatedJudge(node.noise, node.bias, node.seed, node.plan_steps)
        case schema.EmbeddingReranker():
            return EmbeddingJudge(node.lexical_weight, node.plan_steps)
        case schema.EmbeddingNavigator():
            return EmbeddingJudge(0.0, 0)
    raise TypeError(f"no judge for {node!r}")
