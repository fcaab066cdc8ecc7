"""Text to vectors with a small ONNX model on the CPU: the packaged MiniLM, or a local folder.

A vector depends on its text and the model alone. Dynamic int8 takes its scales from everything in the batch, padding
included, so one text is run at a time, unpadded, on one thread; a batch would be slower as well. Use more actors, not
more threads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from actors.corpora.records import BadInput
from actors.engines.minilm import RECIPE, file_sha256, find_minilm, quantised, require

Vectors = NDArray[np.float32]

POOLINGS: dict[str, Callable[[Vectors], Vectors]] = {
    "mean": lambda tokens: tokens.mean(axis=0),
    "cls": lambda tokens: tokens[0].copy(),
    "last": lambda tokens: tokens[-1].copy(),
}
POOLING_NAMES = {"mean_tokens": "mean", "cls_token": "cls", "lasttoken": "last", "mean": "mean", "cls": "cls"}
INPUTS: dict[str, Callable[[list[int]], Sequence[int]]] = {
    "input_ids": lambda ids: ids,
    "attention_mask": lambda ids: [1] * len(ids),
    "token_type_ids": lambda ids: [0] * len(ids),
    "position_ids": lambda ids: range(len(ids)),
}
TOKENISED_AT_ONCE = 256  # bounds memory: a tokenised text weighs some hundred bytes a token
GOLDEN_PAIR = (
    "how does the heart move blood through the body",
    "The heart is a muscle whose beats pump blood through arteries and veins.",
    "The stock exchange closes at noon on the last trading day of the year.",
)


class ModelFiles(NamedTuple):
    """A model as it lies on disk. `data`: files beside it that hold its larger weights. `max_tokens` 0: not said."""

    model: Path
    tokenizer: Path
    data: tuple[Path, ...]
    pooling: str
    max_tokens: int


class Usage(NamedTuple):
    """What was embedded: `tokens` as the model saw them, `truncated` texts that were longer, `empty` texts (blanks only)."""

    texts: int = 0
    tokens: int = 0
    truncated: int = 0
    empty: int = 0

    def plus(self, other: Usage) -> Usage:
        return Usage(*(mine + more for mine, more in zip(self, other, strict=True)))


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


class OnnxEmbedder:
    """One model, one thread. Built from plain values inside the process that uses it; refuses to start when it fails `self_test`.

    `dimension` is the length d of a vector; `usage` counts everything embedded since the start.
    """

    def __init__(
        self,
        model: str,
        sha256: str,
        quantise: bool,
        cache: str,
        pooling: str,
        max_tokens: int,
        query_prefix: str,
        document_prefix: str,
    ) -> None:
        self._name = model
        self._files = find_model(model, sha256, pooling, max_tokens)
        self._prefix = {"query": query_prefix, "document": document_prefix}
        self._quantise = quantise
        path = self._files.model
        if quantise:
            path = quantised(path, file_sha256(path), _absolute(cache))
        self._session = _session(path)
        self._input_types = _input_types(self._session, self._files.model)
        self._output = _token_output(self._session, self._files.model)
        self._tokenizer = _tokenizer(self._files)
        self._pool = POOLINGS[self._files.pooling]
        self.usage = Usage()
        self.dimension = int(self.self_test().shape[1])
        self.usage = Usage()

    def digest(self) -> str:
        """`embedding_digest` of this embedder: what enters the identity of an artifact made with it."""
        return embedding_digest(self._files, self._quantise, self._prefix["query"], self._prefix["document"])

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Vectors:
        """float32 [len(texts), dimension], L2-normalised; row i depends on texts[i] and `kind` alone.

        An empty text is embedded as the model's own marks around nothing, as other engines do, and counted.
        """
        if kind not in self._prefix:
            raise BadInput(f"kind = {kind!r}: expected document or query")
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        return np.stack([self._vector(ids) for ids in self._token_ids(texts, self._prefix[kind])])

    def self_test(self) -> Vectors:
        """The vectors of a query, its answer and another text; BadInput unless the answer is the nearer one.

        A wrong file, tokenizer, pooling or prefix gives plausible nonsense otherwise.
        """
        query, relevant, irrelevant = GOLDEN_PAIR
        vectors = np.concatenate([self.embed([query], "query"), self.embed([relevant, irrelevant], "document")])
        near, far = vectors[1:] @ vectors[0]
        if not near > far:  # also when either is NaN
            raise BadInput(
                f"embeddings.model = {self._name}: self-test failed: {query!r} has similarity {near:.3f} to "
                f"{relevant!r} and {far:.3f} to {irrelevant!r}, expected the first to be larger; check the "
                f"model and tokenizer files, embeddings.pooling = {self._files.pooling} and the prefixes"
            )
        return vectors

    def _token_ids(self, texts: Sequence[str], prefix: str) -> Iterator[list[int]]:
        for start in range(0, len(texts), TOKENISED_AT_ONCE):
            some = texts[start : start + TOKENISED_AT_ONCE]
            encoded = self._tokenizer.encode_batch_fast([prefix + text for text in some])
            ids = [text.ids for text in encoded]
            self.usage = self.usage.plus(
                Usage(
                    len(ids),
                    sum(map(len, ids)),
                    sum(bool(text.overflowing) for text in encoded),
                    sum(not text.strip() for text in some),
                )
            )
            yield from ids

    def _vector(self, ids: list[int]) -> Vectors:
        if not ids:
            raise BadInput(f"embeddings.model = {self._name}: an empty text has no tokens with this tokenizer; drop empty texts")
        feed = {name: np.array([INPUTS[name](ids)], dtype) for name, dtype in self._input_types.items()}
        (tokens,) = self._session.run([self._output], feed)
        vector: Vectors = self._pool(tokens[0].astype(np.float32, copy=False))
        vector /= np.sqrt(np.square(vector).sum())
        return vector


def _absolute(cache: str) -> Path:
    if not Path(cache).is_absolute():
        raise BadInput(f"embeddings.cache = {cache!r}: expected the absolute path of a folder for the quantised model")
    return Path(cache)


def _session(path: Path) -> Any:
    runtime = require("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
    try:  # the fused SkipLayerNormalization is slower on CPU than its parts: 29.0 against 31.9 documents a second
        return runtime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=["SkipLayerNormFusion"]
        )
    except Exception as broken:  # onnxruntime's own exceptions share no public parent
        raise BadInput(f"{path}: onnxruntime cannot load it ({broken}); copy or export the model again") from broken


def _tokenizer(files: ModelFiles) -> Any:
    try:
        tokenizer = require("tokenizers").Tokenizer.from_file(str(files.tokenizer))
    except BadInput:
        raise
    except Exception as broken:  # tokenizers raises plain Exception
        raise BadInput(f"{files.tokenizer}: not a tokenizer ({broken}); copy the model folder again") from broken
    tokenizer.no_padding()
    tokenizer.enable_truncation(files.max_tokens)
    return tokenizer


def _input_types(session: Any, path: Path) -> dict[str, str]:
    """The inputs that this model asks for, and their integer type."""
    inputs = {node.name: "int32" if node.type == "tensor(int32)" else "int64" for node in session.get_inputs()}
    if unknown := set(inputs) - set(INPUTS):
        raise BadInput(
            f"{path}: the model asks for {', '.join(sorted(unknown))}, expected only {', '.join(INPUTS)}; "
            "export it for feature extraction"
        )
    return inputs


def _token_output(session: Any, path: Path) -> str:
    """The output that has a vector per token."""
    for node in session.get_outputs():
        if len(node.shape) == 3:
            return str(node.name)
    raise BadInput(f"{path}: no output of shape [batch, tokens, dimension]; export it for feature extraction")
