"""Convolutions and pooling: sums over the places of a window, each of which is a slice."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.jaxprs.arrays import padded, part
from srcgrad.jaxprs.elementwise import converted
from srcgrad.jaxprs.table import Equation, filled, permuted, reshaped, rule, size_of, sizes
from srcgrad.tracing.tracer import Tracer, emit

MOST_PLACES: Final = 4096
"""How many slices a window may become."""
POOLS: Final = {"reduce_window_sum": "add", "reduce_window_max": "maximum", "reduce_window_min": "minimum"}


def places(
    e: Equation, x: Tracer, window: Sequence[int], dilation: Sequence[int], strides: Sequence[int], out: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], Tracer]]:
    """Each place of a window over the last axes, with the elements that it meets."""
    if size_of(window) > MOST_PLACES:
        raise e.unsupported(f"a window of {size_of(window)} places is too large", "use jnp.fft, or write it in NumPy")
    front = x.ndim - len(window)
    for place in itertools.product(*map(range, window)):
        starts = [0] * front + [k * step for k, step in zip(place, dilation, strict=True)]
        spans = [(n - 1) * step + 1 for n, step in zip(out, strides, strict=True)]
        limits = [*x.shape[:front], *[a + n for a, n in zip(starts[front:], spans, strict=True)]]
        yield place, part(x, starts, limits, [1] * front + list(strides))


@rule("conv_general_dilated")
def convolution(e: Equation) -> Tracer:
    """A sum, over the places of the kernel, of products summed over the input's features."""
    numbers, groups = e.params["dimension_numbers"], int(e.params["feature_group_count"])
    if int(e.params["batch_group_count"]) != 1:
        raise e.unsupported("a convolution with groups of batches has no counterpart", "use groups of features")
    x, kernel = (converted(operand, e.dtype) for operand in e.tracers)
    x, kernel = permuted(x, numbers.lhs_spec), permuted(kernel, numbers.rhs_spec)
    edges = zip(e.params["padding"], sizes(e.params["lhs_dilation"]), strict=True)
    config = [(0, 0, 0), (0, 0, 0), *[(int(low), int(high), step - 1) for (low, high), step in edges]]
    x = padded(x, filled(0, (), e.dtype), config)
    out = [e.shape[axis] for axis in numbers.out_spec[2:]]
    window, features = kernel.shape[2:], kernel.shape[0]
    total: Tracer | None = None
    dilation, strides = sizes(e.params["rhs_dilation"]), sizes(e.params["window_strides"])
    for place, patch in places(e, x, window, dilation, strides, out):
        limits = (*kernel.shape[:2], *[k + 1 for k in place])
        weights = part(kernel, (0, 0, *place), limits)
        grouped = reshaped(patch, (patch.shape[0], groups, patch.shape[1] // groups, *out))
        weights = reshaped(weights, (groups, features // groups, kernel.shape[1]))
        term = emit("dot_general", grouped, weights, contract=((2,), (2,)), batch=((1,), (0,)))
        total = term if total is None else emit("add", total, term)
    if total is None:
        return filled(0, e.shape, e.dtype)
    last = total.ndim - 1  # the axes are (groups, batch, space, features of a group)
    found = permuted(total, (1, 0, last, *range(2, last)))
    found = reshaped(found, (found.shape[0], features, *out))
    return permuted(found, np.argsort(numbers.out_spec))


@rule(*POOLS)
def pooling(e: Equation) -> Tracer:
    """Sums or extrema over windows; what is padded does not count."""
    kind = e.dtype.kind
    info: Any = np.finfo(e.dtype) if kind == "f" else np.iinfo(e.dtype) if kind in "iu" else None
    if info is None and e.name != "reduce_window_sum":
        raise e.unsupported(f"{e.name} of {e.dtype} has no counterpart", "use numbers")
    neutral: Any = 0
    if e.name != "reduce_window_sum":
        low, high = (-np.inf, np.inf) if kind == "f" else (info.min, info.max)
        neutral = low if e.name == "reduce_window_max" else high
    edges = zip(e.params["padding"], sizes(e.params["base_dilation"]), strict=True)
    config = [(int(low), int(high), step - 1) for (low, high), step in edges]
    x = padded(e.x, filled(neutral, (), e.dtype), config)
    window, strides = sizes(e.params["window_dimensions"]), sizes(e.params["window_strides"])
    total: Tracer | None = None
    for _, patch in places(e, x, window, sizes(e.params["window_dilation"]), strides, e.shape):
        total = patch if total is None else emit(POOLS[e.name], total, patch)
    return filled(neutral, e.shape, e.dtype) if total is None else total
