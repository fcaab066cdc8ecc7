"""From configuration to a judge."""

from __future__ import annotations

from actors.engines.build import build_embedder
from actors.judges.embedding import EmbeddingJudge
from actors.judges.judge import Judge
from actors.judges.table import TableJudge
from conf import schema


def build_judge(node: schema.Reranker | schema.Navigator, of: str, embeddings: schema.Embeddings, cache: str) -> Judge:
    """A judge of documents or groups (`of`). embeddings: the model of the corpus' vectors; cache: folder for prepared models."""
    match node:
        case schema.TableJudge():
            return TableJudge(node.path, of, node.missing)
        case schema.EmbeddingReranker():
            return EmbeddingJudge(build_embedder(embeddings, cache).embed_query, of, node.lexical_weight)
        case schema.EmbeddingNavigator():
            return EmbeddingJudge(build_embedder(embeddings, cache).embed_query, of, 0.0)
    raise TypeError(f"no judge for {node!r}")
