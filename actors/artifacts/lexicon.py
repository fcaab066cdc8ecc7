"""The lexicon on disk: one .npy file per array, its dtype in the name; `lexicon.json` holds the numbers and names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actors.artifacts.blocks import open_array, save_array, write_bytes

FILES = {
    "posting_offsets": "posting_offsets.i64.npy",
    "posting_rows": "posting_rows.i32.npy",
    "posting_weights": "posting_weights.f32.npy",
    "forward_offsets": "forward_offsets.i64.npy",
    "forward_terms": "forward_terms.i32.npy",
    "forward_weights": "forward_weights.f32.npy",
    "term_offsets": "term_offsets.i64.npy",
    "term_bytes": "term_bytes.u8.npy",
}
DTYPES = {"i64": np.dtype(np.int64), "i32": np.dtype(np.int32), "f32": np.dtype(np.float32), "u8": np.dtype(np.uint8)}
SETTINGS = "lexicon.json"
# Each offsets array ends with the length of the arrays it cuts.
CUTS = {
    "posting_offsets": ("posting_rows", "posting_weights"),
    "forward_offsets": ("forward_terms", "forward_weights"),
    "term_offsets": ("term_bytes",),
}
REMEDY = "delete the folder and build the lexicon again"


@dataclass
class Lexicon:
    """BM25 weights of V terms in N documents (P pairs), by term and by row, and how text becomes terms."""

    posting_offsets: NDArray[np.int64]  # [V+1]
    posting_rows: NDArray[np.int32]  # [P] ascending within a term
    posting_weights: NDArray[np.float32]  # [P]
    forward_offsets: NDArray[np.int64]  # [N+1]
    forward_terms: NDArray[np.int32]  # [P] ascending within a row
    forward_weights: NDArray[np.float32]  # [P]
    term_offsets: NDArray[np.int64]  # [V+1] into term_bytes
    term_bytes: NDArray[np.uint8]  # UTF-8, terms in the order of their bytes
    average_length: float  # terms per document, repetitions included
    k1: float
    b: float
    stemmer: str
    stop_words: str

    @property
    def documents(self) -> int:
        return len(self.forward_offsets) - 1


def write(folder: Path, lexicon: Lexicon) -> None:
    """Writes `lexicon` into `folder`, made if missing; the same lexicon gives the same bytes. ValueError: a wrong dtype."""
    folder.mkdir(parents=True, exist_ok=True)
    write_arrays(folder, **{name: getattr(lexicon, name) for name in FILES})
    write_settings(folder, lexicon.documents, lexicon.average_length, vars(lexicon))


def write_arrays(folder: Path, **arrays: NDArray[Any]) -> None:
    """Writes some of the arrays of FILES, each whole or not at all. ValueError: a wrong dtype."""
    for name, values in arrays.items():
        _check_dtype(folder / FILES[name], values)
        save_array(folder / FILES[name], values)


def write_settings(folder: Path, documents: int, average_length: float, settings: Mapping[str, Any]) -> None:
    """Writes the numbers and, of `settings`, how weights are made and text becomes terms."""
    of_all = {"documents": documents, "k1": settings["k1"], "b": settings["b"], "average_length": average_length}
    names = {name: settings[name] for name in ("stemmer", "stop_words")}
    write_bytes(folder / SETTINGS, (json.dumps({**of_all, **names}, indent=1) + "\n").encode())


def read_settings(folder: Path) -> dict[str, Any]:
    """The numbers and names; documents among them."""
    settings: dict[str, Any] = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    return settings


def open_one(folder: Path, name: str) -> NDArray[Any]:
    """One of the arrays of FILES, memory-mapped and read-only."""
    path = folder / FILES[name]
    values = open_array(path)
    _check_dtype(path, values)
    return values


def open_lexicon(folder: Path) -> Lexicon:
    """The lexicon in `folder`, every array memory-mapped and read-only; takes milliseconds at any size.

    Raises FileNotFoundError, or ValueError where a dtype or a length is not what it must be; both name the file.
    """
    settings = read_settings(folder)
    documents = settings.pop("documents")
    arrays: dict[str, Any] = {name: open_one(folder, name) for name in FILES}
    for offsets, cut in CUTS.items():
        for name in cut:
            _check_length(folder / FILES[name], len(arrays[name]), int(arrays[offsets][-1]))
    _check_length(folder / FILES["forward_offsets"], len(arrays["forward_offsets"]), documents + 1)
    _check_length(folder / FILES["term_offsets"], len(arrays["term_offsets"]), len(arrays["posting_offsets"]))
    return Lexicon(**arrays, **settings)


def _check_dtype(path: Path, values: NDArray[Any]) -> None:
    expected = DTYPES[path.name.split(".")[1]]
    if values.dtype != expected:
        raise ValueError(f"{path}: holds {values.dtype}; expected {expected}. {REMEDY}")


def _check_length(path: Path, length: int, expected: int) -> None:
    if length != expected:
        raise ValueError(f"{path}: {length} values; expected {expected}. {REMEDY}")
