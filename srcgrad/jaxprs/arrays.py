"""Primitives that move, make, join, reduce and sort."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from srcgrad.jaxprs.elementwise import converted
from srcgrad.jaxprs.table import Equation, broadcast, filled, permuted, reshaped, rule, size_of, sizes
from srcgrad.tracing.tracer import Tracer, emit

REDUCTIONS: Final = {
    "reduce_sum": "reduce_sum", "reduce_prod": "reduce_prod", "reduce_max": "reduce_max", "reduce_min": "reduce_min",
    "reduce_and": "reduce_and", "reduce_or": "reduce_or",
}  # fmt: skip


@rule("broadcast_in_dim")
def broadcast_in_dim(e: Equation) -> Tracer:
    dims = sizes(e.params["broadcast_dimensions"])
    if e.x.shape == e.shape and dims == tuple(range(len(e.shape))):
        return e.x
    return emit("broadcast", e.x, shape=e.shape, dims=dims)


@rule("reshape", "squeeze", "expand_dims")
def reshape(e: Equation) -> Tracer:
    dimensions = e.params.get("dimensions") if e.name == "reshape" else None
    x = e.x if dimensions is None else permuted(e.x, dimensions)
    return reshaped(x, e.shape)


@rule("transpose")
def transpose(e: Equation) -> Tracer:
    return permuted(e.x, e.params["permutation"])


@rule("rev")
def reverse(e: Equation) -> Tracer:
    return emit("reverse", e.x, axes=sizes(e.params["dimensions"])) if e.params["dimensions"] else e.x


@rule("iota")
def iota(e: Equation) -> Tracer:
    return emit("iota", shape=e.shape, axis=int(e.params["dimension"]), dtype=e.dtype)


@rule("concatenate")
def concatenate(e: Equation) -> Tracer:
    return emit("concatenate", *e.tracers, axis=int(e.params["dimension"]))


@rule("stack")
def stack(e: Equation) -> Tracer:
    axis = int(e.params["axis"])
    rows = [reshaped(x, (*x.shape[:axis], 1, *x.shape[axis:])) for x in e.tracers]
    return emit("concatenate", *rows, axis=axis) if len(rows) > 1 else rows[0]


@rule("unstack")
def unstack(e: Equation) -> list[Tracer]:
    axis = int(e.params["axis"])
    found = []
    for k in range(e.x.shape[axis]):
        starts, limits = [0] * e.x.ndim, list(e.x.shape)
        starts[axis], limits[axis] = k, k + 1
        found.append(reshaped(part(e.x, starts, limits), e.shape))
    return found


@rule("tile")
def tile(e: Equation) -> Any:
    return np.tile(e.x, sizes(e.params["reps"]))


@rule("split")
def split(e: Equation) -> list[Tracer]:
    axis, ends = int(e.params["axis"]), np.cumsum([0, *e.params["sizes"]])
    parts = []
    for start, limit in itertools.pairwise(ends):
        starts, limits = [0] * e.x.ndim, list(e.x.shape)
        starts[axis], limits[axis] = int(start), int(limit)
        parts.append(part(e.x, starts, limits))
    return parts


def part(x: Tracer, starts: Any, limits: Any, strides: Any = None) -> Tracer:
    """The elements from ``starts`` to ``limits`` by ``strides``."""
    steps = (1,) * x.ndim if strides is None else sizes(strides)
    if sizes(starts) == (0,) * x.ndim and sizes(limits) == x.shape and steps == (1,) * x.ndim:
        return x
    return emit("slice", x, starts=sizes(starts), limits=sizes(limits), strides=steps)


@rule("slice")
def slice_(e: Equation) -> Tracer:
    return part(e.x, e.params["start_indices"], e.params["limit_indices"], e.params["strides"])


@rule("pad")
def pad(e: Equation) -> Tracer:
    x, value = e.tracers
    return padded(x, value, [sizes(entry) for entry in e.params["padding_config"]])


def padded(x: Tracer, value: Tracer, config: Sequence[tuple[int, ...]]) -> Tracer:
    """By axis, ``(low, high, interior)``: ``interior`` copies of the value between elements, then ``low`` and ``high``
    at the ends, where negative ones cut.
    """
    spread = [max(n + (n - 1) * step, 0) for n, (_, _, step) in zip(x.shape, config, strict=True)]
    room = [n + max(low, 0) + max(high, 0) for n, (low, high, _) in zip(spread, config, strict=True)]
    full = broadcast(value, room)
    if size_of(x.shape):
        starts = [max(low, 0) for low, _, _ in config]
        limits = [start + n for start, n in zip(starts, spread, strict=True)]
        strides = [step + 1 for _, _, step in config]
        full = emit("slice_set", full, x, starts=sizes(starts), limits=sizes(limits), strides=sizes(strides))
    starts = [max(-low, 0) for low, _, _ in config]
    limits = [n - max(-high, 0) for n, (_, high, _) in zip(room, config, strict=True)]
    return part(full, starts, limits)


@rule(*REDUCTIONS)
def reduction(e: Equation) -> Tracer:
    axes = sizes(e.params["axes"])
    return emit(REDUCTIONS[e.name], e.x, axes=axes) if axes else e.x


@rule("argmax", "argmin")
def arg_extremum(e: Equation) -> Tracer:
    return emit(e.name, e.x, axis=int(e.params["axes"][0]))


@rule("cumsum", "cumprod")
def cumulative(e: Equation) -> Tracer:
    axis = int(e.params["axis"])
    if e.name == "cumsum":
        return emit("cumsum", e.x, axis=axis, reverse=bool(e.params["reverse"]))
    if not e.params["reverse"]:
        return emit("cumprod", e.x, axis=axis)
    return emit("reverse", emit("cumprod", emit("reverse", e.x, axes=(axis,)), axis=axis), axes=(axis,))


@rule("cummax", "cummin", "cumlogsumexp")
def scanned(e: Equation) -> Tracer:
    """By doubling: after step k each element has met the 2**k elements before it."""
    op = {"cummax": "maximum", "cummin": "minimum", "cumlogsumexp": "logaddexp"}[e.name]
    x, axis = e.x, int(e.params["axis"])
    if e.params["reverse"]:
        x = emit("reverse", x, axes=(axis,))
    step, length = 1, x.shape[axis]
    while step < length:
        starts, limits = [0] * x.ndim, list(x.shape)
        limits[axis] = length - step
        earlier = part(x, starts, limits)
        starts[axis], limits[axis] = step, length
        joined = emit(op, earlier, part(x, starts, limits))
        starts[axis], limits[axis] = 0, step
        x = emit("concatenate", part(x, starts, limits), joined, axis=axis)
        step *= 2
    return emit("reverse", x, axes=(axis,)) if e.params["reverse"] else x


@rule("sort")
def sort(e: Equation) -> list[Tracer]:
    """Sort by the first ``num_keys`` operands, the first of which counts most, and move all operands with them."""
    axis = int(e.params["dimension"])
    operands = e.tracers
    if len(operands) == 1:
        return [emit("sort", operands[0], axis=axis)]
    order: Tracer | None = None
    for key in reversed(operands[: e.params["num_keys"]]):
        moved = key if order is None else emit("take_along_axis", key, order, axis=axis)
        found = emit("argsort", moved, axis=axis)
        order = found if order is None else emit("take_along_axis", order, found, axis=axis)
    assert order is not None  # there is at least one key
    return [emit("take_along_axis", x, order, axis=axis) for x in operands]


@rule("top_k")
def top_k(e: Equation) -> list[Tracer]:
    x, axis = e.x, int(e.params.get("axis", -1)) % e.x.ndim
    order = emit("argsort", emit("neg", x), axis=axis)
    limits = list(x.shape)
    limits[axis] = int(e.params["k"])
    order = part(order, [0] * x.ndim, limits)
    return [emit("take_along_axis", x, order, axis=axis), converted(order, np.dtype(e.results[1].dtype))]


@rule("reduce_xor")
def parity(e: Equation) -> Tracer:
    if e.x.dtype != np.bool_:
        raise e.unsupported("reduce_xor of integers has no counterpart", "compute it outside")
    count = emit("reduce_sum", converted(e.x, np.dtype(np.int64)), axes=sizes(e.params["axes"]))
    return emit(
        "equal", emit("remainder", count, filled(2, count.shape, count.dtype)), filled(1, count.shape, np.int64)
    )
