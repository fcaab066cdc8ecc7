"""Judges that ask a language model, started and tested."""

from __future__ import annotations

from actors.engines import self_test
from actors.engines.build import Place, build_engine
from actors.judges.judge import Judge
from actors.judges.listwise import ListwiseJudge
from actors.judges.pointwise import PointwiseJudge
from conf import schema

START_SECONDS = 1800.0  # to read weights of a hundred gigabytes from a disk that nodes share
TEST_SECONDS = 120.0


async def build_model_judge(node: schema.ListwiseReranker | schema.PointwiseJudge, place: Place) -> Judge:
    """Raises BadInput when the model does not start, or says what it must not of texts whose relevance is known."""
    listwise = isinstance(node, schema.ListwiseReranker)
    engine = await build_engine(node.model, ("generate",) if listwise else ("yes_no",), place)
    if isinstance(node, schema.ListwiseReranker):
        return ListwiseJudge(node, engine)
    wrong = await self_test.check(
        engine, ("yes_no",), TEST_SECONDS, template=node.prompt, enforce=node.self_test == "enforce"
    )
    for line in wrong:
        print(line, flush=True)
    return PointwiseJudge(node, engine)
