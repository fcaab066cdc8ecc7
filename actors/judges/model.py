"""Judges that ask a language model, started and tested."""

from __future__ import annotations

import asyncio

from actors.algorithms import answers, prompts
from actors.corpora.records import BadInput
from actors.engines import self_test
from actors.engines.build import TEST_SECONDS, Place, build_engine
from actors.engines.engine import Engine, EngineError, Sampling
from actors.judges.judge import Judge
from actors.judges.listwise import ListwiseJudge
from actors.judges.pointwise import PointwiseJudge
from conf import schema


async def build_model_judge(node: schema.ListwiseReranker | schema.PointwiseJudge, place: Place) -> Judge:
    """Raises BadInput when the model does not start, or puts texts whose relevance is known in the wrong order."""
    enforce = node.self_test == "enforce"
    if isinstance(node, schema.ListwiseReranker):
        engine = await build_engine(node.model, ("generate",), place)
        wrong = await _ranked_wrong(node, engine)
        if wrong and enforce:
            raise BadInput(wrong)
        said = [wrong] if wrong else []
        judge: Judge = ListwiseJudge(node, engine)
    else:
        engine = await build_engine(node.model, ("yes_no",), place)
        said = await self_test.check(engine, ("yes_no",), TEST_SECONDS, template=node.prompt, enforce=enforce)
        judge = PointwiseJudge(node, engine)
    for line in said:
        print(line, flush=True)  # a replica's output reaches the job's log
    return judge


async def _ranked_wrong(node: schema.ListwiseReranker, engine: Engine) -> str:
    """What is wrong with the model's order of an irrelevant and a relevant text; empty: nothing."""
    (query, relevant), (_, irrelevant) = self_test.PAIRS[:2]
    prompt = prompts.listwise(node.prompt, query, [irrelevant, relevant], 2, engine.tokens, self_test.LIMITS)
    sampling = Sampling(node.answer_tokens, node.temperature, node.seed)
    try:
        generated = await asyncio.wait_for(engine.generate(prompt, sampling), TEST_SECONDS)
    except (EngineError, TimeoutError) as error:
        raise BadInput(
            f"reranker: {node.model.name} gave no answer within {TEST_SECONDS:.0f} s ({error}). Check the model and the memory."
        ) from None
    ranking = answers.parse_ranking(generated.text, 2, 2)
    if ranking.outcome != answers.UNUSABLE and ranking.order[0] == 1:
        return ""
    return (
        f"reranker: {node.model.name} did not rank a text that answers a question above one that does not (outcome "
        f"{ranking.outcome}). Check prompt and chat template; for a model known to be weak set reranker.self_test=report."
    )
