"""Does a model that was just started say what it must where the answer is known?

A wrong template, tokenizer, pooling or file gives plausible nonsense and no error: scores of .5, vectors of any text near any
other. So nothing answers requests before it has answered these, in the judge's own template and with the embedder's own
prefixes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection

import numpy as np

from actors.algorithms.prompts import Limits, Message, Prompt, Template, yes_no
from actors.corpora.records import BadInput
from actors.engines.engine import Engine, EngineError, Sampling

# Each query's answer is the second of its pair, and not that of another pair. The answers begin alike: by the first token's
# vector (a wrong pooling) they are all the same to a model that reads from left to right, and the test fails.
PAIRS = (
    ("how does the heart move blood through the body", "The heart is a muscle whose beats pump blood through arteries and veins."),
    ("what makes bread dough rise", "The yeast in it ferments sugar, and the gas that is given off swells the dough to a loaf."),
    ("who invented the telephone", "The first patent for speaking over a telephone wire was given to Alexander Graham Bell."),
    ("what causes earthquakes", "The earth shakes when tectonic plates slip along a fault and release seismic energy."),
)
LIMITS = Limits(document=256, query=256, prompt=4096)
MARGIN = 1e-3  # of similarities; less is noise
ANSWER_TOKENS = 100
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"colour": {"type": "string", "enum": ["black", "white"]}},
        "required": ["colour"],
        "additionalProperties": False,
    }
)
QUESTION = 'Is fresh snow black or white? Answer with a JSON object that has one key, "colour", and nothing else.'


async def check(
    engine: Engine,
    verbs: Collection[str],
    timeout_seconds: float,
    *,
    template: Template | None = None,
    limits: Limits = LIMITS,
    query_prefix: str = "",
    document_prefix: str = "",
    enforce: bool = True,
) -> list[str]:
    """Try each of `verbs` (embed, yes_no, generate) on `engine`, all of them within `timeout_seconds`.

    template: the judge's own, for yes_no; limits: its limits. enforce: whether a wrong order of relevant and irrelevant is refused;
    False, for models known to be too weak, returns it instead (one line each; empty: all was right). No answer, vectors that are
    no unit vectors and JSON that is none are refused always. Raises BadInput with what happened and what to check.
    """
    tests: dict[str, Callable[[], Awaitable[str]]] = {
        "embed": lambda: _embed(engine, query_prefix, document_prefix),
        "yes_no": lambda: _yes_no(engine, template, limits),
        "generate": lambda: _generate(engine),
    }
    if unknown := set(verbs) - set(tests):
        raise ValueError(f"verbs {sorted(unknown)}: expected some of {', '.join(tests)}")
    end = asyncio.get_running_loop().time() + timeout_seconds
    wrong = [
        f"self-test of {verb}: {said}" for verb in tests if verb in verbs and (said := await _answered(verb, tests[verb], end))
    ]
    if wrong and enforce:
        raise BadInput("; ".join(wrong))
    return wrong


async def _answered(verb: str, test: Callable[[], Awaitable[str]], end: float) -> str:
    try:
        async with asyncio.timeout_at(end):
            return await test()
    except TimeoutError:
        raise BadInput(
            f"self-test of {verb}: no answer within the time limit; check that the machine has memory and processors enough "
            "for the model, that an endpoint can be reached, or allow more time"
        ) from None
    except EngineError as none:
        raise BadInput(
            f"self-test of {verb}: no answer ({none}); check that the model can {verb} (weights, chat template, interface), "
            "that max_model_len leaves room for a short prompt, and the memory of the machine"
        ) from none


async def _embed(engine: Engine, query_prefix: str, document_prefix: str) -> str:
    """Every query's vector is nearest to that of its own answer."""
    queries, answers = zip(*PAIRS, strict=True)
    vectors, _ = await engine.embed([query_prefix + text for text in queries] + [document_prefix + text for text in answers])
    lengths = np.linalg.norm(vectors, axis=1)
    if not np.allclose(lengths, 1.0, atol=1e-3):  # also when one is NaN
        raise BadInput(
            f"self-test of embed: vectors of length {lengths.min()} to {lengths.max()}, expected 1; check dtype and weights"
        )
    similarity = vectors[: len(PAIRS)] @ vectors[len(PAIRS) :].T
    for row, query in enumerate(queries):
        own, best_other = similarity[row, row], np.delete(similarity[row], row).max()
        if not own > best_other + MARGIN:
            return (
                f"{query!r} has similarity {own:.3f} to its answer and {best_other:.3f} to another text, expected the first to be "
                "larger; check pooling, query and document prefix, and that weights and tokenizer belong together"
            )
    return ""


async def _yes_no(engine: Engine, template: Template | None, limits: Limits) -> str:
    """P(yes) is greater for a query's own answer than for another text: for two queries, so that a preferred text does not pass."""
    if template is None:
        raise ValueError("yes_no is tested with the judge's own template: pass it")
    for own, other in ((0, 1), (1, 0)):
        query, texts = PAIRS[own][0], [PAIRS[own][1], PAIRS[other][1]]
        prompts = yes_no(template, query, texts, engine.tokens, limits)
        relevant, irrelevant = [judged.yes for judged in await asyncio.gather(*map(engine.yes_no, prompts))]
        if not relevant > irrelevant:
            return (
                f"{query!r} has P(yes) {relevant:.3f} with its answer and {irrelevant:.3f} with another text, expected the first "
                "to be larger; check that the prompt template is the model's (Qwen3-Reranker: a template of one instruct part; "
                "any other: a chat template) and that the weights are those of an instructed model"
            )
    return ""


async def _generate(engine: Engine) -> str:
    """JSON that follows a schema."""
    prompt = Prompt([Message(role="user", content=QUESTION)], 0)
    generated = await engine.generate(prompt, Sampling(max_tokens=ANSWER_TOKENS, schema=SCHEMA))
    try:
        colour = json.loads(generated.text)["colour"]
    except (ValueError, TypeError, KeyError):
        colour = None
    if colour not in ("black", "white"):
        raise BadInput(
            f"self-test of generate: expected JSON like {{'colour': 'white'}}, got {generated.text[:80]!r}"
            f"{'' if generated.finished else f', cut off after {ANSWER_TOKENS} tokens'}; check that the engine or endpoint "
            "supports JSON schemas and that the chat template is the model's"
        )
    return ""
