"""The lexicon on disk: one .npy file per array, its dtype in the name; `lexicon.json` holds the numbers and names."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
SETTINGS = ("k1", "b", "average_length", "stemmer", "stop_words")
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
    for name, file in FILES.items():
        values = getattr(lexicon, name)
        _check_dtype(folder / file, values)
        np.save(folder / file, values)
    settings = {"documents": lexicon.documents, **{name: getattr(lexicon, name) for name in SETTINGS}}
    (folder / "lexicon.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


def open_lexicon(folder: Path) -> Lexicon:
    """The lexicon in `folder`, every array memory-mapped and read-only; takes milliseconds at any size.

    Raises FileNotFoundError, or ValueError where a dtype or a length is not what it must be; both name the file.
    """
    settings = json.loads((folder / "lexicon.json").read_text(encoding="utf-8"))
    documents = settings.pop("documents")
    arrays: dict[str, Any] = {name: _map(folder / file) for name, file in FILES.items()}
    for offsets, cut in CUTS.items():
        for name in cut:
            _check_length(folder / FILES[name], len(arrays[name]), int(arrays[offsets][-1]))
    _check_length(folder / FILES["forward_offsets"], len(arrays["forward_offsets"]), documents + 1)
    _check_length(folder / FILES["term_offsets"], len(arrays["term_offsets"]), len(arrays["posting_offsets"]))
    return Lexicon(**arrays, **settings)


def _map(path: Path) -> NDArray[Any]:
    values = np.load(path, mmap_mode="r")
    _check_dtype(path, values)
    return np.asarray(values)  # still mapped; slicing an np.memmap itself costs several times more


def _check_dtype(path: Path, values: NDArray[Any]) -> None:
    expected = DTYPES[path.name.split(".")[1]]
    if values.dtype != expected:
        raise ValueError(f"{path}: holds {values.dtype}; expected {expected}. {REMEDY}")


def _check_length(path: Path, length: int, expected: int) -> None:
    if length != expected:
        raise ValueError(f"{path}: {length} values; expected {expected}. {REMEDY}")
