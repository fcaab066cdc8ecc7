"""A model behind an endpoint with OpenAI's interface: a hosted one, a server of vLLM, Ray Serve LLM.

Requests are written and answers are read here; `endpoint.py` makes them. The openai package is not used: with its retries
turned off it is one POST at seven times the CPU (4.1 to 5.1 ms against 0.6), and it reads environment variables of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.prompts import Prompt, Tokens
from actors.engines.endpoint import EndpointClient, Payload, tokens_used
from actors.engines.endpoint_tokens import load_tokens
from actors.engines.engine import EngineError, Generated, Judged, Sampling, Usage
from actors.engines.limits import Timing
from conf import schema

Read = TypeVar("Read")

EMBEDDED_AT_ONCE = 32  # texts of a request: with 8,192 tokens each they are within what hosted endpoints take
TOP_LOGPROBS = 20  # what OpenAI allows, and vLLM unless it is told otherwise
MISSING = -10.0
"""Log-probability of a side that is not among the first 20 tokens, as in Qwen3-Reranker's recipe for vLLM."""


class OpenAIEngine:
    """`Engine` over an endpoint. Holds one session with it, and belongs to the event loop of its first request.

    A model that can think is told whether it may by vLLM's `chat_template_kwargs`. An endpoint that refuses this key, the seed or
    the temperature, and names it, is asked without it from then on (logged). Besides EngineError the methods raise BadInput, with
    the remedy, when no request can succeed: the key, the model or the path is refused, or a quota is used up.
    """

    def __init__(self, node: schema.OpenAIModel, endpoint: schema.Endpoint, timing: Timing | None = None) -> None:
        """Sends nothing. Raises BadInput when the key's variable is not set, or the URL or the tokenizer cannot be used."""
        self._node, self._limited = node, endpoint.tokens_per_minute > 0
        self._tokens = load_tokens(node.tokenizer)
        self._client = EndpointClient(node, endpoint, timing or Timing())

    @property
    def tokens(self) -> Tokens:
        return self._tokens

    async def generate(self, prompt: Prompt, sampling: Sampling) -> Generated:
        answer, usage = await self._ask(prompt, sampling, self._node.thinking, {})
        return Generated(_read(_text, answer), _read(_finish_reason, answer) == "stop", usage)

    async def yes_no(self, prompt: Prompt) -> Judged:
        """The model is told not to think: the first token is the answer."""
        raw = isinstance(prompt.text, str)
        wanted = {"logprobs": TOP_LOGPROBS} if raw else {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        answer, usage = await self._ask(prompt, Sampling(max_tokens=1), False, wanted)
        return Judged(probability_of_yes(_read(_first_token, answer)), usage)

    async def embed(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], Usage]:
        """[n, d] float32, L2-normalised; [0, 0] of no text. A text that is too long fails the call: cut it before."""
        starts = range(0, len(texts), EMBEDDED_AT_ONCE)
        failed: Exception | None = None
        try:
            async with asyncio.TaskGroup() as group:  # when one fails, the others are not paid for
                tasks = [group.create_task(self._embed(texts[start : start + EMBEDDED_AT_ONCE])) for start in starts]
        except ExceptionGroup as failures:
            failed = failures.exceptions[0]
        if failed:
            raise failed
        parts = [task.result() for task in tasks]
        if len({vectors.shape[1] for vectors, _ in parts}) > 1:
            raise EngineError("malformed answer")
        usage = {name: sum(used[name] for _, used in parts) for name in _usage({}, 0)}
        return np.concatenate([vectors for vectors, _ in parts] or [np.empty((0, 0), np.float32)]), usage

    async def rerank(self, query: str, documents: Sequence[str]) -> list[float]:
        """A relevance score per document by a cross-encoder at the endpoint's /rerank (vLLM's, as Cohere's); higher is better."""
        if not documents:
            return []
        payload = {"model": self._node.name, "query": query, "documents": list(documents)}
        answer, _ = await self._client.post("rerank", payload, self._estimate(documents) + len(documents) * self._estimate([query]))
        return _read(lambda read: [float(score) for score in _in_order(read["results"], "relevance_score", len(documents))], answer)

    async def close(self) -> None:
        await self._client.close()

    async def _ask(self, prompt: Prompt, sampling: Sampling, thinking: bool, more: Payload) -> tuple[Payload, Usage]:
        """Messages go to /chat/completions; a string, which has the model's interface in it already, to /completions."""
        payload: Payload = {"model": self._node.name, **more}
        payload |= {"max_tokens": sampling.max_tokens, "temperature": sampling.temperature, "seed": sampling.seed}
        if sampling.schema is not None:
            form = {"name": "answer", "schema": json.loads(sampling.schema), "strict": True}
            payload["response_format"] = {"type": "json_schema", "json_schema": form}
        if isinstance(prompt.text, str):
            path, texts = "completions", [prompt.text]
            payload["prompt"] = prompt.text
        else:
            path, texts = "chat/completions", [message["content"] for message in prompt.text]
            payload |= {"messages": prompt.text, "chat_template_kwargs": {"enable_thinking": thinking}}
        answer, retries = await self._client.post(path, payload, self._estimate(texts) + sampling.max_tokens)
        return answer, _usage(answer, retries)

    async def _embed(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], Usage]:
        payload = {"model": self._node.name, "input": list(texts), "encoding_format": "float"}
        answer, retries = await self._client.post("embeddings", payload, self._estimate(texts))
        return _read(lambda read: _normalised(_in_order(read["data"], "embedding", len(texts))), answer), _usage(answer, retries)

    def _estimate(self, texts: Sequence[str]) -> int:
        return sum(map(self._tokens.count, texts)) if self._limited else 0


def probability_of_yes(first: Mapping[str, float]) -> float:
    """P(yes) of yes and no alone. first: token -> log-probability of the likeliest first tokens.

    Spellings of a side ("Yes", " yes", "YES") are summed. Raises EngineError when neither side is there.
    """
    sides = {side: [p for token, p in first.items() if token.strip(" \t\r\nĠ▁").lower() == side] for side in ("yes", "no")}
    if not sides["yes"] and not sides["no"]:
        raise EngineError("no yes or no")
    yes, no = (float(np.logaddexp.reduce(sides[side])) if sides[side] else MISSING for side in ("yes", "no"))
    return float(np.exp(-np.logaddexp(0.0, no - yes)))


def _read(reader: Callable[[Payload], Read], answer: Payload) -> Read:
    with contextlib.suppress(KeyError, IndexError, TypeError, ValueError, AttributeError):
        return reader(answer)
    raise EngineError("malformed answer")  # the reason is not chained: it would hold what the endpoint wrote


def _text(answer: Payload) -> str:
    """Empty where the model was cut off before its answer began."""
    choice = answer["choices"][0]
    text = choice["message"]["content"] if "message" in choice else choice["text"]
    if not isinstance(text, str | None):
        raise TypeError(type(text))
    return text or ""


def _finish_reason(answer: Payload) -> Any:
    return answer["choices"][0]["finish_reason"]


def _first_token(answer: Payload) -> dict[str, float]:
    """Token -> log-probability, from the form of either of the two paths."""
    logprobs = answer["choices"][0].get("logprobs")
    if not logprobs:
        raise EngineError("no log-probabilities")
    if "content" in logprobs:
        first = {str(entry["token"]): float(entry["logprob"]) for entry in logprobs["content"][0]["top_logprobs"]}
    else:
        first = {token: float(logprob) for token, logprob in logprobs["top_logprobs"][0].items()}
    if not all(map(math.isfinite, first.values())):
        raise ValueError("not finite")
    return first


def _in_order(entries: Sequence[Mapping[str, Any]], name: str, n: int) -> list[Any]:
    """Each entry's value of `name`, by the entries' own indices, which must be 0..n-1."""
    values = {entry["index"]: entry[name] for entry in entries}
    if len(entries) != n:
        raise ValueError(len(entries))
    return [values[i] for i in range(n)]


def _normalised(rows: Sequence[Sequence[float]]) -> NDArray[np.float32]:
    vectors = np.array(rows, np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if vectors.ndim != 2 or not np.isfinite(lengths).all() or not lengths.all():
        raise ValueError(vectors.shape)
    normalised: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
    return normalised


def _usage(answer: Payload, retries: int) -> Usage:
    """Zeros where the endpoint does not say."""
    said = answer.get("usage")
    said = said if isinstance(said, dict) else {}
    details = said.get("prompt_tokens_details")
    generated, cached = said.get("completion_tokens"), details.get("cached_tokens") if isinstance(details, dict) else 0
    generated = generated if isinstance(generated, int) else 0
    return {
        "prompt_tokens": tokens_used(answer) - generated,
        "generated_tokens": generated,
        "cached_tokens": cached if isinstance(cached, int) else 0,
        "retries": retries,
    }
