"""A model in this process' own vLLM: continuous batching, so requests are simply made at once, and a cache of what prompts share.

vllm and torch are imported when an engine is made: no other part of the house needs them. The computing itself is done by a child
process that vLLM starts and that ends with this one.

Where an engine lies is Ray's business: an actor with `num_gpus` of n sees n GPUs. With `tensor_parallel_size` of n the model is
spread over them by vLLM's own processes (its "mp" executor), all on one node. Its "ray" executor would span nodes, but asks Ray
for GPUs beside those of the actor that waits for it: twice the GPUs, or a deadlock. To use more nodes, take more replicas.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.prompts import Message, Prompt, Tokens
from actors.corpora.records import BadInput
from actors.engines.endpoint_tokens import FileTokens
from actors.engines.engine import EngineError, Generated, Judged, Sampling, Usage
from actors.engines.vllm_start import require, start
from conf import schema

ANSWERS = {"yes": ("yes", "Yes", "YES", " yes", " Yes", " YES"), "no": ("no", "No", "NO", " no", " No", " NO")}


class VllmEngine:
    """An `Engine` that either generates and says yes or no, or embeds. All requests are made on one event loop.

    verbs: which of generate, yes_no and embed will be asked. The other two: as in schema.Replicas. started: takes the same
    four and gives vLLM's AsyncLLM. Starting it takes seconds to minutes. Raises BadInput when the model cannot be started,
    saying what to check.
    """

    def __init__(
        self,
        node: schema.VllmModel,
        verbs: Collection[str],
        tensor_parallel_size: int,
        gpu_memory_utilization: float,
        started: Callable[..., Any] = start,
    ) -> None:
        self._llm = started(node, verbs, tensor_parallel_size, gpu_memory_utilization)
        self._vllm = require("vllm")
        self._node = node
        self._numbers = itertools.count()
        self._closed = False
        tokenizer = self._llm.get_tokenizer()
        self._chat: Callable[..., str] = tokenizer.apply_chat_template
        self._encode = tokenizer.backend_tokenizer.encode
        self._tokens = FileTokens(tokenizer.backend_tokenizer)
        self._truncating = _truncating(tokenizer.backend_tokenizer, node.max_model_len)
        self._first_tokens = {side: self._single_tokens(side) for side in ANSWERS} if "yes_no" in verbs else {}

    @property
    def tokens(self) -> Tokens:
        return self._tokens

    async def generate(self, prompt: Prompt, sampling: Sampling) -> Generated:
        """With a schema the model answers without thinking: the first token is the answer's already."""
        ids = self._ids(prompt, self._node.thinking and sampling.schema is None)
        parameters = self._sampling(
            max_tokens=sampling.max_tokens,
            temperature=sampling.temperature,
            seed=sampling.seed if sampling.temperature > 0 else None,
            structured_outputs=sampling.schema and self._vllm.sampling_params.StructuredOutputsParams(json=sampling.schema),
        )
        output = await self._answer(self._llm.generate, ids, parameters)
        completion = _completion(output)
        return Generated(completion.text, completion.finish_reason == "stop", _usage(output, len(completion.token_ids)))

    async def yes_no(self, prompt: Prompt) -> Judged:
        """A chat model's answer may begin with any spelling of the word; the interface of Qwen3-Reranker has one of each."""
        spelled = slice(1) if isinstance(prompt.text, str) else slice(None)
        sides = {side: ids[spelled] for side, ids in self._first_tokens.items()}
        parameters = self._sampling(max_tokens=1, temperature=0.0, logprob_token_ids=sides["yes"] + sides["no"])
        output = await self._answer(self._llm.generate, self._ids(prompt, thinking=False), parameters)
        [first] = _completion(output).logprobs
        yes, no = (np.logaddexp.reduce([first[token].logprob for token in sides[side]]) for side in ("yes", "no"))
        return Judged(float(np.exp(yes - np.logaddexp(yes, no))), _usage(output, 1))

    async def embed(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], Usage]:
        """A text that is longer than the model allows is cut, its end marks kept; `truncated` in the usage counts them."""
        encoded = self._truncating.encode_batch(list(texts))
        parameters = self._vllm.PoolingParams(task="embed")
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._answer(self._llm.encode, text.ids, parameters)) for text in encoded]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        outputs = [task.result() for task in tasks]
        vectors = np.array([output.outputs.data.float().numpy() for output in outputs], np.float32)
        vectors = vectors.reshape(len(texts), self._llm.model_config.embedding_size)  # of no texts, too
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(vectors).all():
            raise EngineError("not finite")
        usage = Counter({"truncated": sum(bool(text.overflowing) for text in encoded)})
        for output in outputs:
            usage.update(_usage(output, 0))
        return vectors, dict(usage)

    async def close(self) -> None:
        """Requests that still wait get an EngineError, and so does every later one."""
        self._closed = True
        if not self._llm.get_num_unfinished_requests() and (reading := self._llm.output_handler):
            reading.cancel()  # else it logs the end as an error
        await asyncio.to_thread(self._llm.shutdown)

    def _ids(self, prompt: Prompt, thinking: bool) -> list[int]:
        text = prompt.text if isinstance(prompt.text, str) else self._rendered(prompt.text, thinking)
        ids: list[int] = self._encode(text, add_special_tokens=False).ids
        if len(ids) >= self._node.max_model_len:  # one token of the answer must fit
            raise EngineError("too long")
        return ids

    def _rendered(self, messages: list[Message], thinking: bool) -> str:
        """The model's own chat template, told both names by which templates ask whether to think: others ignore them."""
        try:
            return self._chat(messages, tokenize=False, add_generation_prompt=True, enable_thinking=thinking, thinking=thinking)
        except Exception as refused:  # none at all, or one that knows no system message
            raise EngineError("chat template") from refused

    def _single_tokens(self, side: str) -> list[int]:
        """The tokens that begin the answer `side`, that of its plain spelling first."""
        spellings = [self._encode(text, add_special_tokens=False).ids for text in ANSWERS[side]]
        if len(spellings[0]) != 1:
            raise BadInput(f"model.name = {self._node.name}: its tokenizer has no single token {side!r}; choose another model")
        return list(dict.fromkeys(ids[0] for ids in spellings if len(ids) == 1))

    def _sampling(self, **parameters: Any) -> Any:
        kinds = self._vllm.sampling_params
        return kinds.SamplingParams(output_kind=kinds.RequestOutputKind.FINAL_ONLY, **parameters)

    async def _answer(self, ask: Callable[..., AsyncIterator[Any]], ids: list[int], parameters: Any) -> Any:
        """The one output of a request. An abandoned request is taken out of the engine by vLLM."""
        if self._closed:
            raise EngineError("closed")
        output = None
        try:
            async for answer in ask(self._vllm.inputs.tokens_input(ids), parameters, str(next(self._numbers))):
                output = answer
        except Exception as failed:  # refused, or the engine died: the others' requests go on in the first case
            raise EngineError("engine dead" if self._llm.errored else "refused") from failed
        if output is None or not output.finished:
            raise EngineError("no answer")
        return output


def _truncating(tokenizer: Any, max_tokens: int) -> Any:
    """The tokenizer with the marks that it adds by itself, cut to `max_tokens` with them: what embedding models are fed."""
    copy = type(tokenizer).from_str(tokenizer.to_str())
    copy.no_padding()
    copy.enable_truncation(max_tokens)
    return copy


def _completion(output: Any) -> Any:
    completion = output.outputs[0]
    if completion.finish_reason not in ("stop", "length"):  # a closing engine hands out what there is by then
        raise EngineError("aborted")
    return completion


def _usage(output: Any, generated: int) -> Usage:
    return {
        "prompt_tokens": len(output.prompt_token_ids),
        "generated_tokens": generated,
        "cached_tokens": output.num_cached_tokens or 0,
        "retries": 0,
    }
