"""Fourier, cosine and sine transforms, convolution, binary search, running extremes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from srcgrad.backends.xla.program import on_cpu
from srcgrad.backends.xla.tables import HALF, SINGLE, Array, cast, full_like, is_nan

BOOL: Final = np.dtype(np.bool_)
INT32: Final = np.dtype(np.int32)
INT64: Final = np.dtype(np.int64)


# --- transforms -------------------------------------------------------------------------------------------------------


def along_each(transform: Callable[..., Array]) -> Callable[..., Array]:
    """The complex transform along one axis after the other, the last one first, as NumPy does."""

    def line(x: Array, axes: Sequence[int], norm: str) -> Array:
        for axis in reversed(axes):
            x = transform(x, axis=axis, norm=norm)
        return x

    return line


def irfft(x: Array, axis: int, n: int, norm: str) -> Array:
    """The imaginary parts that NumPy ignores are taken away: some devices read them."""
    position = lax.broadcasted_iota(INT64, x.shape, axis)
    is_real = lax.eq(position, full_like(position, 0))
    if n % 2 == 0:
        is_real = lax.bitwise_or(is_real, lax.eq(position, full_like(position, n // 2)))
    imaginary = lax.imag(x)
    found: Array = jnp.fft.irfft(
        lax.complex(lax.real(x), lax.select(is_real, full_like(imaginary, 0), imaginary)), n, axis=axis, norm=norm
    )
    return found


def rotated(x: Array, angles: np.ndarray[Any, Any]) -> Array:
    """Real or complex elements along the last axis times exp(-i angle)."""
    dtype = np.result_type(x.dtype, np.complex64)
    factors = jnp.asarray(np.exp(-1j * angles).astype(dtype))
    return lax.mul(cast(x, dtype), jnp.broadcast_to(factors, x.shape))


def spectrum(x: Array, length: int) -> Array:
    """The Fourier transform along the last axis of x followed by zeros."""
    found: Array = jnp.fft.fft(x, length, axis=-1)
    return found


def weighted(x: Array, ends: Sequence[int], factor: float) -> Array:
    """The elements ``ends`` of the last axis times a factor."""
    weights = np.ones(x.shape[-1], x.dtype)
    weights[list(ends)] = factor
    return lax.mul(x, jnp.broadcast_to(jnp.asarray(weights), x.shape))


def cosines(x: Array, kind: int) -> Array:
    """The unnormalised cosine transform along the last axis: real parts of a Fourier transform of twice the length."""
    n = x.shape[-1]
    k = np.arange(n)
    if kind == 1:
        return lax.mul(full_like(x, 2), lax.real(spectrum(weighted(x, (0, n - 1), 0.5), 2 * (n - 1))[..., :n]))
    if kind == 2:
        return lax.mul(full_like(x, 2), lax.real(rotated(spectrum(x, 2 * n)[..., :n], np.pi * k / (2 * n))))
    if kind == 3:
        inner = rotated(weighted(x, (0,), 0.5), np.pi * k / (2 * n))
        return lax.mul(full_like(x, 2), lax.real(spectrum(inner, 2 * n)[..., :n]))
    inner = spectrum(rotated(x, np.pi * k / (2 * n)), 2 * n)[..., :n]
    return lax.mul(full_like(x, 2), lax.real(rotated(inner, np.pi * (2 * k + 1) / (4 * n))))


def sines(x: Array, kind: int) -> Array:
    """The unnormalised sine transform along the last axis."""
    n = x.shape[-1]
    k = np.arange(n)
    if kind == 1:
        found = spectrum(jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(1, 0)]), 2 * (n + 1))[..., 1 : n + 1]
    elif kind == 2:
        found = rotated(spectrum(x, 2 * n)[..., 1 : n + 1], np.pi * (k + 1) / (2 * n))
    elif kind == 3:
        inner = rotated(weighted(x, (n - 1,), 0.5), np.pi * (k + 1) / (2 * n))
        inner = jnp.pad(inner, [(0, 0)] * (x.ndim - 1) + [(1, 0)])
        found = spectrum(inner, 2 * n)[..., :n]
    else:
        inner = spectrum(rotated(x, np.pi * k / (2 * n)), 2 * n)[..., :n]
        found = rotated(inner, np.pi * (2 * k + 1) / (4 * n))
    return lax.mul(full_like(x, -2), lax.imag(found))


def trigonometric(transform: Callable[[Array, int], Array], is_cosine: bool) -> Callable[..., Array]:
    """The transform along an axis with SciPy's norms and weights."""

    def line(x: Array, type: int, axis: int, norm: str, orthogonalize: bool) -> Array:
        moved = jnp.moveaxis(x, axis, -1)
        n = moved.shape[-1]
        length = 2 * (n + (-1 if is_cosine else 1)) if type == 1 else 2 * n
        before, after = orthogonal_ends(type, n, is_cosine) if orthogonalize else ((), ())
        found = weighted(transform(weighted(moved, before, math.sqrt(2)), type), after, math.sqrt(0.5))
        factor = {"backward": 1.0, "ortho": 1 / math.sqrt(length), "forward": 1 / length}[norm]
        return jnp.moveaxis(lax.mul(found, full_like(found, factor)), -1, axis)

    return line


def orthogonal_ends(kind: int, n: int, is_cosine: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The operand's elements times sqrt(2), and the result's over sqrt(2), that make a transform orthogonal."""
    if kind == 1:
        return ((0, n - 1), (0, n - 1)) if is_cosine else ((), ())
    end = (0,) if is_cosine else (n - 1,)
    return {2: ((), end), 3: (end, ())}.get(kind, ((), ()))


# --- convolution ------------------------------------------------------------------------------------------------------


def convolve(x: Array, y: Array, starts: Sequence[int], sizes: Sequence[int]) -> Array:
    """A window of the full convolution: jax's is a correlation of the operand, padded or cut to what is read."""
    dtype, rank = x.dtype, len(starts)
    if dtype == BOOL:
        x, y = cast(x, INT32), cast(y, INT32)
    examples, lengths, others = x.shape[:-rank], x.shape[-rank:], y.shape[-rank:]
    if 0 in examples or 0 in sizes:
        return lax.full((*examples, *sizes), np.zeros((), dtype)[()], dtype)
    padding = [
        (m - 1 - start, start + size - n) for start, size, n, m in zip(starts, sizes, lengths, others, strict=True)
    ]

    def one(left: Array, right: Array) -> Array:
        if x.dtype.kind in "iu" and not on_cpu():
            return correlated(lax.pad(left, np.zeros((), x.dtype)[()], [(*ends, 0) for ends in padding]), right)
        reversed_right = lax.rev(right, tuple(range(rank)))[None, None]
        found: Array = lax.conv_general_dilated(
            left[None, None],
            reversed_right,
            (1,) * rank,
            padding,
            precision=lax.Precision.HIGHEST,
            preferred_element_type=SINGLE if dtype == HALF else None,
        )
        return found[0, 0]

    found = jax.vmap(one)(x.reshape((-1, *lengths)), y.reshape((-1, *others))).reshape((*examples, *sizes))
    return cast(found, dtype)


def correlated(x: Array, y: Array) -> Array:
    """What is left of ``x`` where ``y``, turned round, fits into it: GPUs have no convolution of integers."""
    y = lax.rev(y, tuple(range(y.ndim)))
    for axis in reversed(range(y.ndim)):  # each axis becomes two: where a window begins, and the place in it
        count = y.shape[axis]
        begins = np.arange(x.shape[axis] - count + 1)
        x = jnp.take(x, begins[:, None] + np.arange(count), axis=axis)
        y = lax.expand_dims(y, (axis,))
    return lax.reduce_sum(lax.mul(x, lax.broadcast_in_dim(y, x.shape, range(x.ndim))), range(1, x.ndim, 2))


# --- search and running values ----------------------------------------------------------------------------------------


def searchsorted(nodes: Array, values: Array, side: str) -> Array:
    shape, examples = values.shape, nodes.shape[:-1]

    def one(own: Array, wanted: Array) -> Array:
        return cast(jnp.searchsorted(own, wanted, side=side), INT64)

    if not examples:
        return one(nodes, values)
    if not values.size:
        return lax.full(shape, 0, INT64)
    count = math.prod(examples)
    return jax.vmap(one)(nodes.reshape((count, nodes.shape[-1])), values.reshape((count, -1))).reshape(shape)


def running(name: str) -> Callable[..., Array]:
    """The extreme so far along an axis; nan stays."""

    def line(x: Array, axis: int) -> Array:
        if x.dtype.kind == "b":
            return cast(line(cast(x, INT32), axis), BOOL)
        if not x.size:
            return x
        scan = lax.cummax if name == "max" else lax.cummin
        if x.dtype.kind != "f":
            return scan(x, axis)
        nan_so_far = lax.cummax(cast(is_nan(x), INT32), axis)
        found = scan(lax.select(is_nan(x), full_like(x, -np.inf if name == "max" else np.inf), x), axis)
        return lax.select(lax.gt(nan_so_far, full_like(nan_so_far, 0)), full_like(x, np.nan), found)

    return line


def restarting(join: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """What accumulates, with the mark whether it has started since: joining them is associative."""

    def line(x: Array, restart: Array, axis: int, reverse: bool = False) -> Array:
        if not x.size:
            return x
        if reverse:  # from the end a sum starts at the element before a mark
            first = lax.full_like(lax.slice_in_dim(restart, 0, 1, axis=axis), True)
            restart = lax.concatenate([lax.slice_in_dim(restart, 1, None, axis=axis), first], axis)

        def joined(earlier: Any, later: Any) -> Any:
            (total, started), (own, own_started) = earlier, later
            return lax.select(own_started, own, join(total, own)), lax.bitwise_or(started, own_started)

        found: Array = lax.associative_scan(joined, (x, restart), reverse=reverse, axis=axis)[0]
        return found

    return line


def added(x: Array, y: Array) -> Array:
    return lax.bitwise_or(x, y) if x.dtype == BOOL else lax.add(x, y)


def linear_recurrence(x: Array, factors: Array, axis: int, reverse: bool) -> Array:
    """Element after element: joined in pairs, products of factors would overflow where no result does."""
    if not x.size:
        return x
    values, factors = jnp.moveaxis(x, axis, 0), jnp.moveaxis(factors, axis, 0)
    last = values[-1 if reverse else 0]
    others = (values[:-1], factors[1:]) if reverse else (values[1:], factors[1:])

    def step(carried: Array, given: Any) -> Any:
        found = lax.add(given[0], lax.mul(given[1], carried))
        return found, found

    found = lax.scan(step, last, others, reverse=reverse)[1]
    parts = (found, last[None]) if reverse else (last[None], found)
    return jnp.moveaxis(lax.concatenate(parts, 0), 0, axis)


def cumlogsumexp(x: Array, axis: int) -> Array:
    if not x.size:
        return x
    found: Array = lax.associative_scan(jnp.logaddexp, x, axis=axis)
    return found


TABLE: Final[dict[str, Callable[..., Any]]] = {
    "convolve": convolve,
    "cumlogsumexp": cumlogsumexp,
    "cummax": running("max"),
    "cummin": running("min"),
    "dct": trigonometric(cosines, True),
    "dst": trigonometric(sines, False),
    "fft": along_each(jnp.fft.fft),
    "ifft": along_each(jnp.fft.ifft),
    "irfft": irfft,
    "linear_recurrence": linear_recurrence,
    "restarting_cummax": restarting(lax.max),
    "restarting_cummin": restarting(lax.min),
    "restarting_cumsum": restarting(added),
    "rfft": lambda x, axis, norm: jnp.fft.rfft(x, axis=axis, norm=norm),
    "searchsorted": searchsorted,
}
