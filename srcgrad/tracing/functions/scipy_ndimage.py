"""Rules of ``scipy.ndimage``: filters that are correlations, extremes of windows, and interpolation of order 0 and 1.

Importing this module imports SciPy.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import scipy.ndimage

from srcgrad.errors import ArgumentError, ShapeError, UnsupportedError
from srcgrad.tracing.functions.padding import pad
from srcgrad.tracing.functions.products import promoted
from srcgrad.tracing.functions.registry import (
    Rule,
    as_array,
    axis_of,
    cast,
    finish,
    function_rule,
    ordered_axes,
    refuse,
)
from srcgrad.tracing.functions.shapes import flip
from srcgrad.tracing.functions.signal import sliding_window_view
from srcgrad.tracing.tracer import FUNCTIONS, Tracer, emit

PADDING: Final = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "nearest": "edge", "mirror": "reflect", "wrap": "wrap",
    "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip
"""NumPy's names of how an array goes on beyond its edges."""
for _function in (scipy.ndimage.generate_binary_structure, scipy.ndimage.iterate_structure):  # of constants
    FUNCTIONS[_function] = _function


def each(value: Any, count: int) -> list[Any]:
    """An argument for each of some axes, given once or as a sequence."""
    if isinstance(value, str) or not isinstance(value, (list, tuple, np.ndarray)):
        return [value] * count
    if len(value) != count:
        raise ShapeError(f"sequence argument must have length equal to input rank: {len(value)} and {count}")
    return list(value)


def places_of(axes: Any, ndim: int) -> tuple[int, ...]:
    """The axes that a filter runs along: all of them for None."""
    return tuple(range(ndim)) if axes is None else ordered_axes(axes, ndim)


def widened(x: Any, axis: int, before: int, after: int, mode: str, cval: Any) -> Any:
    """The array with what lies beyond its edges along one axis."""
    if mode not in PADDING:
        raise ShapeError(f"boundary mode not supported: {mode!r}")
    widths = [(before, after) if k == axis else (0, 0) for k in range(x.ndim)]
    if PADDING[mode] == "constant":
        return pad(x, widths, "constant", constant_values=cval)
    if PADDING[mode] == "reflect" and x.shape[axis] == 1:
        return pad(x, widths, "edge")
    return pad(x, widths, PADDING[mode])


def span(size: int, origin: int) -> tuple[int, int]:
    """How far a window of this size reaches before and after its place."""
    before = size // 2 + origin
    if not 0 <= before < size:
        raise ShapeError("invalid origin")
    return before, size - 1 - before


def filter_rule(function: Callable[..., Any]) -> Callable[[Rule], Rule]:
    """Register a rule whose ``output=`` is a dtype: an array instead is of one, and the result is written into it."""

    def register(rule: Rule) -> Rule:
        parameters = inspect.signature(rule)

        @functools.wraps(rule)
        def writing(*args: Any, **kwargs: Any) -> Any:
            given = parameters.bind(*args, **kwargs)
            output = given.arguments.get("output")
            if not isinstance(output, (Tracer, np.ndarray)):
                return rule(*args, **kwargs)
            given.arguments["output"] = output.dtype
            return finish(rule(*given.args, **given.kwargs), output)

        return function_rule(function)(writing)  # type: ignore[return-value]

    return register


def target(x: Any, weights: Any, output: Any) -> Any:
    """The dtype of a filter's result, of which the sums are made before: complex where an operand is."""
    dtype = x.dtype if output is None else np.dtype(output)
    return np.result_type(dtype, np.complex64) if "c" in (x.dtype.kind, weights.dtype.kind) else dtype


def rounded(total: Any, dtype: Any) -> Any:
    """Sums in a dtype, as SciPy's loops write them: negative ones wrap round in one without a sign."""
    return cast(cast(total, np.int64), dtype) if dtype.kind == "u" and total.dtype.kind == "f" else cast(total, dtype)


def correlated(x: Any, weights: Any, befores: Sequence[int], modes: Sequence[str], cval: Any) -> Any:
    """The sum over a window of the array times the weights; the window begins so far before each place."""
    if np.iscomplexobj(cval) and not np.iscomplexobj(x):
        raise ArgumentError("Cannot provide a complex-valued cval when the input is real.")
    for axis, (before, mode) in enumerate(zip(befores, modes, strict=True)):
        x = widened(x, axis, before, weights.shape[axis] - 1 - before, mode, cval)
    sizes = tuple(n - k + 1 for n, k in zip(x.shape, weights.shape, strict=True))
    starts = tuple(k - 1 for k in weights.shape)
    return emit("convolve", *promoted(x, flip(weights)), starts=starts, sizes=sizes)


def spread(weights: Any, origin: Any, axes: Any, ndim: int) -> tuple[Any, list[int]]:
    """A window along some axes as one along all, and its origins; the window's own axes are in the array's order."""
    places = places_of(axes, ndim)
    if len(places) != weights.ndim:
        raise ShapeError(f"weights must have {len(places)} axes, not {weights.ndim}")
    origins = each(origin, len(places))
    if len(places) < ndim:
        named = dict(zip(places, origins, strict=True))
        origins = [named.get(axis, 0) for axis in range(ndim)]
    return np.expand_dims(weights, tuple(axis for axis in range(ndim) if axis not in places)), origins


def windowed(x: Any, weights: Any, origins: Sequence[int], mode: Any, cval: Any, output: Any) -> Any:
    """The sums over a window of weights as they are along all axes."""
    dtype = target(x, weights, output)
    befores = [span(size, at)[0] for size, at in zip(weights.shape, origins, strict=True)]
    return rounded(correlated(x, weights, befores, each(mode, x.ndim), cval), dtype)


@filter_rule(scipy.ndimage.correlate)
def correlate(
    input: Any, weights: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Any:  # fmt: skip
    x = as_array(input)
    w, origins = spread(np.conjugate(as_array(weights)), origin, axes, x.ndim)
    return windowed(x, w, origins, mode, cval, output)


@filter_rule(scipy.ndimage.convolve)
def convolve(
    input: Any, weights: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Any:  # fmt: skip
    x = as_array(input)
    w, origins = spread(as_array(weights), origin, axes, x.ndim)
    origins = [-at - (size % 2 == 0) for size, at in zip(w.shape, origins, strict=True)]
    return windowed(x, flip(w), origins, mode, cval, output)


def correlate_along(x: Any, weights: Any, axis: int, mode: str, cval: Any, origin: int, output: Any = None) -> Any:
    """Of weights as they are, along one axis."""
    w = as_array(weights)
    dtype = target(x, w, output)
    if w.ndim != 1 or not w.size:
        raise ShapeError("no filter weights given" if not w.size else "filter weights must be 1-D")
    before = [span(w.size, origin)[0] if k == axis else 0 for k in range(x.ndim)]
    shaped = w.reshape(tuple(-1 if k == axis else 1 for k in range(x.ndim)))
    return rounded(correlated(x, shaped, before, [mode] * x.ndim, cval), dtype)


@filter_rule(scipy.ndimage.correlate1d)
def correlate1d(
    input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
    origin: int = 0,
) -> Any:  # fmt: skip
    x, w = as_array(input), np.conjugate(as_array(weights))
    return correlate_along(x, w, axis_of(axis, x.ndim), mode, cval, origin, output)


@filter_rule(scipy.ndimage.convolve1d)
def convolve1d(
    input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
    origin: int = 0,
) -> Any:  # fmt: skip
    w = as_array(weights)
    return correlate1d(input, np.conjugate(flip(w)), axis, output, mode, cval, -origin - (w.size % 2 == 0))


# --- Gaussians -------------------------------------------------------------------------------------------------------


def gaussian_weights(sigma: float, order: int, radius: int) -> Any:
    """A normal density at whole numbers, which sums to 1, times the polynomial of its derivative of this order."""
    if order < 0:
        raise ShapeError("order must be non-negative")
    places = np.arange(-radius, radius + 1)
    density = np.exp(-0.5 / sigma**2 * places**2)
    polynomial = np.polynomial.Polynomial([1.0])
    for _ in range(order):
        polynomial = polynomial.deriv() - polynomial * np.polynomial.Polynomial([0.0, 1.0 / sigma**2])
    return density / density.sum() * polynomial(places)


def radius_of(sigma: float, radius: Any, truncate: float) -> int:
    if radius is None:
        return int(truncate * float(sigma) + 0.5)
    if not isinstance(radius, (int, np.integer)) or radius < 0:
        raise ShapeError("Radius must be a nonnegative integer.")
    return int(radius)


@filter_rule(scipy.ndimage.gaussian_filter1d)
def gaussian_filter1d(
    input: Any, sigma: Any, axis: int = -1, order: int = 0, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
    truncate: float = 4.0, *, radius: Any = None,
) -> Any:  # fmt: skip
    x = as_array(input)
    weights = gaussian_weights(float(sigma), order, radius_of(sigma, radius, truncate))
    return correlate_along(x, weights[::-1], axis_of(axis, x.ndim), mode, cval, 0, output)


@filter_rule(scipy.ndimage.gaussian_filter)
def gaussian_filter(
    input: Any, sigma: Any, order: Any = 0, output: Any = None, mode: Any = "reflect", cval: Any = 0.0,
    truncate: float = 4.0, *, radius: Any = None, axes: Any = None,
) -> Any:  # fmt: skip
    x = as_array(input)
    dtype = target(x, x, output)
    places = places_of(axes, x.ndim)
    given = zip(*(each(value, len(places)) for value in (sigma, order, mode, radius)), strict=True)
    for axis, (width, derivative, how, reach) in zip(places, given, strict=True):
        if width > 1e-15:
            x = gaussian_filter1d(x, width, axis, derivative, dtype, how, cval, truncate, radius=reach)
    return cast(x, dtype)


def gaussian_derivatives(
    order: int, x: Any, sigma: Any, places: tuple[int, ...], dtype: Any, mode: Any, cval: Any, **kwargs: Any
) -> list[Any]:
    """The derivatives of an image of an order along each of some axes.

    Of several modes each is that of one derivative, along all axes.
    """
    orders = [tuple(order * (k == axis) for k in range(x.ndim)) for axis in places]
    ways = zip(orders, each(mode, len(places)), strict=True)
    return [gaussian_filter(x, sigma, along, dtype, one_mode, cval, **kwargs) for along, one_mode in ways]


@filter_rule(scipy.ndimage.gaussian_laplace)
def gaussian_laplace(
    input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """Smoothed along the axes named alone."""
    x = as_array(input)
    dtype, places = target(x, x, output), places_of(axes, x.ndim)
    widths = dict(zip(places, each(sigma, len(places)), strict=True))
    everywhere = [widths.get(axis, 0) for axis in range(x.ndim)]
    curves = gaussian_derivatives(2, x, everywhere, places, dtype, mode, cval, **kwargs)
    return sum(curves[1:], curves[0]) if curves else cast(x, dtype)


@filter_rule(scipy.ndimage.gaussian_gradient_magnitude)
def gaussian_gradient_magnitude(
    input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """Of the slopes along the axes named, smoothed along all."""
    x = as_array(input)
    dtype, places = target(x, x, output), places_of(axes, x.ndim)
    slopes = gaussian_derivatives(1, x, sigma, places, dtype, mode, cval, **kwargs)
    return cast(np.sqrt(sum(slope**2 for slope in slopes)) if slopes else x, dtype)


# --- other filters of fixed weights ----------------------------------------------------------------------------------


@filter_rule(scipy.ndimage.uniform_filter1d)
def uniform_filter1d(
    input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    x = as_array(input)
    dtype = target(x, x, output)
    if "i" in (x.dtype.kind, dtype.kind) or "u" in (x.dtype.kind, dtype.kind):  # sums are exact, quotients cut off
        total = correlate1d(cast(x, np.float64), np.ones(size), axis, None, mode, cval, origin)
        return rounded(total / size, dtype)
    return correlate1d(x, np.full(size, 1.0 / size), axis, dtype, mode, cval, origin)


@filter_rule(scipy.ndimage.uniform_filter)
def uniform_filter(
    input: Any, size: Any = 3, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Any:  # fmt: skip
    x = as_array(input)
    dtype = target(x, x, output)
    places = places_of(axes, x.ndim)
    given = zip(*(each(value, len(places)) for value in (size, mode, origin)), strict=True)
    for axis, (width, how, at) in zip(places, given, strict=True):
        if width > 1:
            x = uniform_filter1d(x, int(width), axis, dtype, how, cval, at)
    return cast(x, dtype)


def edge_filter(smooth: tuple[float, ...]) -> Callable[..., Any]:
    """Differences along one axis, smoothed along the others."""

    def rule(input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0) -> Any:
        x = as_array(input)
        axis, modes = axis_of(axis, x.ndim), each(mode, x.ndim)
        x = correlate_along(x, np.array([-1.0, 0.0, 1.0]), axis, modes[axis], cval, 0, output)
        for other in range(x.ndim):
            if other != axis:
                x = correlate_along(x, np.array(smooth), other, modes[other], cval, 0)
        return x

    return rule


filter_rule(scipy.ndimage.sobel)(edge_filter((1.0, 2.0, 1.0)))
filter_rule(scipy.ndimage.prewitt)(edge_filter((1.0, 1.0, 1.0)))


@filter_rule(scipy.ndimage.laplace)
def laplace(input: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None) -> Any:
    x = as_array(input)
    places = places_of(axes, x.ndim)
    weights = np.array([1.0, -2.0, 1.0])
    given = zip(places, each(mode, len(places)), strict=True)
    curves = [correlate_along(x, weights, axis, how, cval, 0, output) for axis, how in given]
    return sum(curves[1:], curves[0]) if curves else cast(x, target(x, x, output))


def extreme_filter(choose: Callable[..., Any]) -> Callable[..., Any]:
    """The largest or smallest element of a box around each place."""

    def rule(
        input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
        cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
    ) -> Any:  # fmt: skip
        x = as_array(input)
        x = cast(x, target(x, x, output))
        refuse("scipy.ndimage", footprint=(footprint, None))
        if size is None:
            raise ShapeError("no footprint or filter size provided")
        places = places_of(axes, x.ndim)
        given = zip(*(each(value, len(places)) for value in (size, mode, origin)), strict=True)
        for axis, (width, how, at) in zip(places, given, strict=True):
            if width > 1:
                before, after = span(int(width), at)
                wide = widened(x, axis, before, after, how, cval)
                x = choose(sliding_window_view(wide, int(width), axis), axis=-1)
        return x

    return rule


filter_rule(scipy.ndimage.maximum_filter)(extreme_filter(np.max))
filter_rule(scipy.ndimage.minimum_filter)(extreme_filter(np.min))

# --- interpolation ---------------------------------------------------------------------------------------------------


def folded(k: Any, size: int, mode: str) -> Any:
    """Where an index beyond the edges reads the array."""
    if mode == "nearest":
        return np.clip(k, 0, size - 1)
    if mode == "grid-wrap":
        return np.mod(k, size)
    period = max(2 * size - 2, 1) if mode == "mirror" else 2 * size
    k = np.mod(k, period)
    return np.minimum(k, period - k) if mode == "mirror" else np.minimum(k, period - 1 - k)


@filter_rule(scipy.ndimage.map_coordinates)
def map_coordinates(
    input: Any, coordinates: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:  # fmt: skip
    """Of order 0 and 1: the nearest element, or the mean of those around weighed by their distances.

    Raises:
        UnsupportedError: splines of higher order, or the mode "wrap".
    """
    x, places = as_array(input), as_array(coordinates)
    dtype = target(x, x, output)
    if order not in (0, 1):
        raise UnsupportedError(
            f"scipy.ndimage.map_coordinates with order={order} is not supported on traced arrays", hint="order 0 or 1"
        )
    if mode not in ("constant", "grid-constant", "nearest", "mirror", "reflect", "grid-mirror", "grid-wrap"):
        raise UnsupportedError(f"scipy.ndimage.map_coordinates with mode={mode!r} is not supported on traced arrays")
    if places.shape[0] != x.ndim:
        raise ShapeError("invalid shape for coordinate array")
    lows = [np.floor(at + 0.5 * (order == 0)) for at in places]
    shares = [at - low for at, low in zip(places, lows, strict=True)]
    total: Any = 0.0
    for corner in itertools.product(range(order + 1), repeat=x.ndim):
        index: list[Any] = []
        inside: Any = True
        weight: Any = 1.0
        for axis, up in enumerate(corner):
            k = lows[axis].astype(np.int64) + up
            size = x.shape[axis]
            if mode.endswith("constant"):
                inside = inside & (k >= 0) & (k < size)
            index.append(np.clip(k, 0, size - 1) if mode.endswith("constant") else folded(k, size, mode))
            if order:
                weight = weight * (shares[axis] if up else 1.0 - shares[axis])
        total = total + weight * np.where(inside, x[tuple(index)], cval)
    if mode == "constant":  # beyond the outermost elements nothing is between two of them
        near = [(at >= 0) & (at <= size - 1) for at, size in zip(places, x.shape, strict=True)]
        total = np.where(np.all(np.stack(near), axis=0), total, cval)
    if dtype.kind in "iu":
        total = np.trunc(total + np.copysign(0.5, total))
    return cast(total, dtype)
