"""What the compiled loops share. Importing this brings numba (85 MB), so only offline tasks do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
Halves = NDArray[np.int16]  # float16 numbers as the integers of the same bits: numba has no float16 on a CPU
REORDERED = {"reassoc", "contract", "nsz"}  # what a sum needs to be taken several numbers at a time


def kernel(function: F) -> F:
    """The function compiled, and kept on disk beside its module for the next process. The order of its sums is the compiler's."""
    return cast(F, njit(cache=True, nogil=True, fastmath=REORDERED)(function))


def as_halves(vectors: NDArray[np.float16]) -> Halves:
    """The same memory, for kernels."""
    return vectors.view(np.int16)


def _widened(context: Any, half: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.fpext(builder.bitcast(values[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.int16), code


widened = cast(Callable[[np.int16], np.float32], intrinsic(_widened))  # in a kernel: the float32 of the same value
