"""The gradients of by_hand.cpp as Python functions, where g++ is there to build them."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import compiled_c  # and sets one thread, before NumPy is imported

# isort: split
import numpy as np

SOURCE = Path(__file__).with_name("by_hand.cpp")
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-std=c++17")
Function = Callable[..., Any]


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled functions; None where there is no g++."""
    return compiled_c("g++", SOURCE, FLAGS)


def pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def size(number: int) -> ctypes.c_size_t:
    return ctypes.c_size_t(number)


def gradients() -> dict[str, Function] | None:
    """The gradients by eval, with the arguments of `by_hand`'s; None where there is no g++."""
    run: Any = library()
    if run is None:
        return None

    def lse(x: Any) -> Any:
        found = np.empty_like(x)
        run.lse(pointer(x), size(x.size), pointer(found))
        return found

    def llsq(x: Any, t: Any) -> Any:
        found = np.empty_like(x)
        run.llsq(pointer(x), size(x.size), pointer(t), size(t.size), pointer(found))
        return found

    def gmm(alpha: Any, mu: Any, q: Any, l: Any, x: Any, gamma: float, m: int) -> tuple[Any, ...]:  # noqa: E741
        found = tuple(np.empty_like(given) for given in (alpha, mu, q, l))
        sizes = (size(len(x)), size(x.shape[1]), size(len(alpha)), ctypes.c_double(gamma), ctypes.c_double(m))
        run.gmm(*map(pointer, (alpha, mu, q, l, x)), *sizes, *map(pointer, found))
        return found

    def ode_last(x: Any, steps: int) -> Any:
        found = np.empty_like(x)
        run.ode_last(pointer(x), size(x.size), size(steps), pointer(found))
        return found

    return {"lse": lse, "llsq": llsq, "gmm": gmm, "ode_last": ode_last}
