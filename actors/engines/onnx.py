"""Text to vectors with a small ONNX model on the CPU: the packaged MiniLM, or a local folder.

A vector depends on its text and the model alone. Dynamic int8 takes its scales from everything in the batch, padding
included, so one text is run at a time, unpadded, on one thread; a batch would be slower as well. Use more actors, not
more threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from actors.corpora.records import BadInput
from actors.engines.minilm import file_sha256, quantised, require
from actors.engines.onnx_files import POOLINGS, ModelFiles, Vectors, embedding_digest, find_model

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


class Usage(NamedTuple):
    """What was embedded: `tokens` as the model saw them, `truncated` texts that were longer, `empty` texts (blanks only)."""

    texts: int = 0
    tokens: int = 0
    truncated: int = 0
    empty: int = 0

    def plus(self, other: Usage) -> Usage:
        return Usage(*(mine + more for mine, more in zip(self, other, strict=True)))


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
