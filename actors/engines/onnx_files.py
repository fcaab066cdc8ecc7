"""The files of an ONNX model: where they lie, how its tokens become a vector, and the digest of all that decides its vectors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from actors.corpora.records import BadInput
from actors.engines.minilm import RECIPE, file_sha256, find_minilm

Vectors = NDArray[np.float32]

POOLINGS: dict[str, Callable[[Vectors], Vectors]] = {
    "mean": lambda tokens: tokens.mean(axis=0),
    "cls": lambda tokens: tokens[0].copy(),
    "last": lambda tokens: tokens[-1].copy(),
}
POOLING_NAMES = {"mean_tokens": "mean", "cls_token": "cls", "lasttoken": "last", "mean": "mean", "cls": "cls"}


class ModelFiles(NamedTuple):
    """A model as it lies on disk. `data`: files beside it that hold its larger weights. `max_tokens` 0: not said."""

    model: Path
    tokenizer: Path
    data: tuple[Path, ...]
    pooling: str
    max_tokens: int


def find_model(model: str, sha256: str, pooling: str, max_tokens: int) -> ModelFiles:
    """The files of "minilm" or of a folder, with `pooling` and `max_tokens` settled ("" and 0: the folder's own).

    `sha256` is what the model file's digest must be; empty: it is not checked. Opens no session.
    """
    found = ModelFiles(*find_minilm(), (), "mean", 256) if model == "minilm" else _folder(Path(model))
    if sha256 and (actual := file_sha256(found.model)) != sha256:
        raise BadInput(
            f"embeddings.sha256: {found.model} has sha256 {actual}, expected {sha256}; "
            "reinstall or copy the model again, or set embeddings.sha256 if this file is the one you mean"
        )
    pooling, max_tokens = pooling or found.pooling, max_tokens or found.max_tokens
    if pooling not in POOLINGS:
        raise BadInput(
            f"embeddings.pooling = {pooling!r}: {model} can be pooled by one of {', '.join(POOLINGS)}"
            + ("" if pooling else "; the folder does not say which, so set embeddings.pooling")
        )
    if max_tokens < 1:
        raise BadInput(
            f"embeddings.max_tokens = {max_tokens}: {model} does not say how long a text may be; "
            "give a number of tokens, such as 512"
        )
    return found._replace(pooling=pooling, max_tokens=max_tokens)


def _folder(folder: Path) -> ModelFiles:
    """An ONNX export, or a sentence-transformers folder with its modules.json, pooling and longest text."""
    if not folder.is_absolute() or not folder.is_dir():
        raise BadInput(
            f"embeddings.model = {str(folder)!r}: expected minilm, or the absolute path of a folder that "
            "exists on every machine that embeds"
        )
    model = next((path for path in (folder / "onnx/model.onnx", folder / "model.onnx") if path.is_file()), None)
    if model is None or not (folder / "tokenizer.json").is_file():
        raise BadInput(
            f"embeddings.model = {folder}: expected tokenizer.json and model.onnx (or onnx/model.onnx) in it, "
            f"found {sorted(path.name for path in folder.iterdir())[:20]}; export the model to ONNX first"
        )
    data = tuple(sorted(model.parent.glob("model.onnx?*")))
    sentence = _json(folder / "sentence_bert_config.json", {})
    if sentence.get("do_lower_case"):
        raise BadInput(
            f"{folder / 'sentence_bert_config.json'}: do_lower_case = true is not supported; "
            "expected false and the lower-casing in tokenizer.json's normalizer"
        )
    return ModelFiles(model, folder / "tokenizer.json", data, _pooling(folder), sentence.get("max_seq_length") or 0)


def _pooling(folder: Path) -> str:
    """The pooling that a folder's modules.json leads to, "" where it has none. Vectors are normalised in any case."""
    modules = {module["type"].rpartition(".")[2]: module["path"] for module in _json(folder / "modules.json", [])}
    if unknown := set(modules) - {"Transformer", "Pooling", "Normalize"}:
        raise BadInput(
            f"{folder / 'modules.json'}: the onnx engine cannot run {', '.join(sorted(unknown))}; "
            "expected Transformer, Pooling, Normalize; use the vllm or openai engine for this model"
        )
    if "Pooling" not in modules:
        return ""
    path = folder / modules["Pooling"] / "config.json"
    asked = {
        key.removeprefix("pooling_mode_") for key, on in _json(path, {}).items() if key.startswith("pooling_mode_") and on is True
    } or {_json(path, {}).get("pooling_mode", "")}
    names = {POOLING_NAMES.get(mode, "") for mode in asked}
    if len(names) == 1 and "" not in names:
        return names.pop()
    raise BadInput(f"{path}: pooling {sorted(asked)}; expected one of {', '.join(POOLING_NAMES)}; use another engine")


def _json(path: Path, absent: Any) -> Any:
    if not path.is_file():
        return absent
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as broken:
        raise BadInput(f"{path}: not JSON ({broken}); copy the model folder again") from broken


def embedding_digest(files: ModelFiles, quantise: bool, query_prefix: str, document_prefix: str) -> str:
    """What decides the vectors, as sha256: every file read, the quantisation recipe, pooling, longest text and prefixes.

    Versions of onnxruntime do not enter: they belong to the manifest, as a new one should not make hours of vectors stale.
    """
    decides = {
        "files": [file_sha256(path) for path in (files.model, *files.data, files.tokenizer)],
        "quantise": RECIPE if quantise else "",
        "pooling": files.pooling,
        "max_tokens": files.max_tokens,
        "prefixes": [query_prefix, document_prefix],
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
