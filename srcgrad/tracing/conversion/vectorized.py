"""Calls of ``np.vectorize``: the function is called for each element, or for each place of the axes in front."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcgrad.errors import ArgumentError, ShapeError
from srcgrad.tracing.functions.registry import as_array, broadcast_shape
from srcgrad.tracing.tracer import as_tracer

Call = Callable[..., Any]


def vectorized(function: Any, args: Sequence[Any], kwargs: dict[str, Any], call: Call) -> Any:
    """``function(*args, **kwargs)``; ``call`` calls the function that it has for each element."""
    places = [place for place in range(len(args)) if place not in function.excluded]
    names = [name for name in kwargs if name not in function.excluded]

    def each(*elements: Any) -> Any:
        given, rest = list(args), iter(elements)
        for place in places:
            given[place] = next(rest)
        return call(function.pyfunc, *given, **kwargs | dict(zip(names, rest, strict=True)))

    arrays = [*(args[place] for place in places), *(kwargs[name] for name in names)]
    if function.signature is not None:
        return by_core(function, each, arrays)
    return by_element(function, each, arrays) if arrays else each()


def by_element(function: Any, each: Call, args: Sequence[Any]) -> Any:
    arrays: Any = np.broadcast_arrays(*map(as_tracer, args))
    flat = [array.ravel() for array in arrays]
    found = [each(*(array[k] for array in flat)) for k in range(flat[0].size)]
    several = len(function.otypes) > 1 if function.otypes is not None else bool(found) and isinstance(found[0], tuple)
    return outputs(function, found, several, arrays[0].shape)


def by_core(function: Any, each: Call, args: Sequence[Any]) -> Any:
    inputs, _, results = function.signature.replace(" ", "").partition("->")
    ranks = [len(re.findall(r"\w+", core)) for core in re.findall(r"\(([^()]*)\)", inputs)]
    arrays: list[Any] = [as_array(argument) for argument in args]
    if len(arrays) != len(ranks) or any(x.ndim < rank for x, rank in zip(arrays, ranks, strict=True)):
        raise ShapeError(f"the arguments do not fit the signature {function.signature} of np.vectorize")
    front = broadcast_shape([x.shape[: x.ndim - rank] for x, rank in zip(arrays, ranks, strict=True)])
    arrays = [
        np.broadcast_to(x, front + x.shape[x.ndim - rank :]).reshape((-1, *x.shape[x.ndim - rank :]))
        for x, rank in zip(arrays, ranks, strict=True)
    ]
    found = [each(*(x[k] for x in arrays)) for k in range(math.prod(front))]
    return outputs(function, found, results.count("(") > 1, front)


def outputs(function: Any, found: list[Any], several: bool, front: tuple[int, ...]) -> Any:
    """The results of all calls as arrays, in the dtypes that are asked for, or those of the first call."""
    columns: list[Any] = list(zip(*found, strict=True)) if several else [found]
    if not found:
        if function.otypes is None or function.signature is not None:
            raise ArgumentError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        columns = [()] * len(function.otypes)
    results = []
    for place, column in enumerate(columns):
        items: list[Any] = [as_array(item) for item in column]
        dtype = np.dtype(items[0].dtype if function.otypes is None else function.otypes[place])
        stacked: Any = np.stack([item.astype(dtype) for item in items]) if items else np.zeros(0, dtype)
        results.append(as_tracer(stacked.reshape(front + stacked.shape[1:])))
    return tuple(results) if several else results[0]
