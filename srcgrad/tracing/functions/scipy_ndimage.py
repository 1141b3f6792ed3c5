"""Rules of ``scipy.ndimage``: filters that are correlations.

Importing this module imports SciPy.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import scipy.ndimage

from srcgrad.errors import ArgumentError, EvaluationError, ShapeError
from srcgrad.tracing.functions.padding import pad
from srcgrad.tracing.functions.products import promoted
from srcgrad.tracing.functions.registry import Rule, as_array, axis_of, cast, finish, function_rule, ordered_axes
from srcgrad.tracing.functions.shapes import flip
from srcgrad.tracing.tracer import FUNCTIONS, Tracer, contains_tracer, emit

PADDING: Final = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "nearest": "edge", "mirror": "reflect", "wrap": "wrap",
    "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip
"""NumPy's names of how an array goes on beyond its edges."""
for _function in (scipy.ndimage.generate_binary_structure, scipy.ndimage.iterate_structure):  # of constants
    FUNCTIONS[_function] = _function


@function_rule(scipy.ndimage.standard_deviation)
def standard_deviation(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The root of the variance; of what is constant it is 0, with a derivative of 0, as that of ``np.std`` is."""
    from srcgrad.tracing.conversion.convert import convert  # which needs the rules

    variance = as_array(convert(scipy.ndimage.variance)(input, labels, index))  # type: ignore[arg-type]
    return emit("kinked_sqrt", variance if variance.dtype.kind == "f" else cast(variance, np.float64))


def each(value: Any, count: int) -> list[Any]:
    """An argument for each of some axes, given once or as a sequence."""
    if isinstance(value, str) or not isinstance(value, (list, tuple, np.ndarray)):
        return [value] * count
    if len(value) != count:
        raise ShapeError(f"sequence argument must have length equal to input rank: {len(value)} and {count}")
    return list(value)


def listed(value: Any, count: int) -> list[Any]:
    """A number for each axis, given once or as a sequence."""
    if contains_tracer(value):
        found = as_array(value)
        return [found] * count if not found.ndim else each(list(found), count)
    return each(value, count)


def places_of(axes: Any, ndim: int) -> tuple[int, ...]:
    """The axes that a filter runs along: all of them for None."""
    return tuple(range(ndim)) if axes is None else ordered_axes(axes, ndim)


def widened(x: Any, axis: int, before: int, after: int, mode: str, cval: Any) -> Any:
    """The array with what lies beyond its edges along one axis."""
    if mode not in PADDING:
        raise EvaluationError(f"boundary mode not supported: {mode!r}")
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


@filter_rule(scipy.ndimage.correlate)
def correlate(
    input: Any, weights: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Any:  # fmt: skip
    x, w = as_array(input), np.conjugate(as_array(weights))
    dtype = target(x, w, output)
    places = places_of(axes, x.ndim)
    if not isinstance(mode, str):
        raise EvaluationError("A sequence of modes is not supported")
    if len(places) != w.ndim:
        raise EvaluationError(f"weights must have {len(places)} axes, not {w.ndim}")
    shape, befores, modes = [1] * x.ndim, [0] * x.ndim, ["reflect"] * x.ndim
    origins = dict(zip(places if w.ndim < x.ndim else range(x.ndim), each(origin, w.ndim), strict=True))
    for axis, size in zip(sorted(places), w.shape, strict=True):  # SciPy's weights have the axes in their order
        shape[axis], befores[axis], modes[axis] = size, span(size, origins[axis])[0], mode
    return rounded(correlated(x, w.reshape(shape), befores, modes, cval), dtype)


@filter_rule(scipy.ndimage.convolve)
def convolve(
    input: Any, weights: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Any:  # fmt: skip
    w = as_array(weights)
    origins = [-at - (size % 2 == 0) for size, at in zip(w.shape, each(origin, w.ndim), strict=True)]
    return correlate(input, np.conjugate(flip(w)), output, mode, cval, origins, axes=axes)


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


def gaussian_weights(sigma: Any, order: int, radius: int) -> Any:
    """A normal density at whole numbers, which sums to 1, times the polynomial of its derivative of this order.

    The derivative of p(x) exp(-x**2 / 2 sigma**2) has the polynomial p' - p x / sigma**2.
    """
    if order < 0:
        raise ShapeError("order must be non-negative")
    places = np.arange(-radius, radius + 1)
    density = np.exp(-0.5 / sigma**2 * places**2)
    powers: list[Any] = [1.0]
    for _ in range(order):
        slopes = [*[k * power for k, power in enumerate(powers)][1:], 0.0, 0.0]
        powers = [slope - power / sigma**2 for slope, power in zip(slopes, [0.0, *powers], strict=True)]
    polynomial: Any = 0.0
    for power in reversed(powers):
        polynomial = polynomial * places + power
    return density / density.sum() * polynomial


def radius_of(sigma: Any, radius: Any, truncate: float) -> int:
    """How far the weights reach; where a width that is not known decides it, it is a number of the path taken."""
    if radius is None:
        return int(truncate * sigma + 0.5)
    if not isinstance(radius, (int, np.integer)) or radius < 0:
        raise ShapeError("Radius must be a nonnegative integer.")
    return int(radius)


@filter_rule(scipy.ndimage.gaussian_filter1d)
def gaussian_filter1d(
    input: Any, sigma: Any, axis: int = -1, order: int = 0, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
    truncate: float = 4.0, *, radius: Any = None,
) -> Any:  # fmt: skip
    x = as_array(input)
    reach = radius_of(sigma, radius, truncate)
    weights: Any = gaussian_weights(sigma, order, reach)
    if contains_tracer(sigma):  # of width 0, which `gaussian_filter` leaves as it is
        weights = np.where(sigma > 1e-15, weights, np.arange(-reach, reach + 1) == 0)
    return correlate_along(x, weights[::-1], axis_of(axis, x.ndim), mode, cval, 0, output)


@filter_rule(scipy.ndimage.gaussian_filter)
def gaussian_filter(
    input: Any, sigma: Any, order: Any = 0, output: Any = None, mode: Any = "reflect", cval: Any = 0.0,
    truncate: float = 4.0, *, radius: Any = None, axes: Any = None,
) -> Any:  # fmt: skip
    x = as_array(input)
    dtype = target(x, x, output)
    places = places_of(axes, x.ndim)
    given = zip(*(listed(value, len(places)) for value in (sigma, order, mode, radius)), strict=True)
    for axis, (width, derivative, how, reach) in zip(places, given, strict=True):
        if contains_tracer(width) or width > 1e-15:
            x = gaussian_filter1d(x, width, axis, derivative, dtype, how, cval, truncate, radius=reach)
    return cast(x, dtype)


def gaussian_derivatives(
    order: int, x: Any, sigma: Any, axes: Any, dtype: Any, mode: Any, cval: Any, **kwargs: Any
) -> list[Any]:
    """The derivatives of an image of an order along each of some axes.

    Of several modes each is that of one derivative, along all axes. The Laplacian leaves axes that are not given as
    they are, and the gradient smooths along them, as SciPy's.
    """
    places = places_of(axes, x.ndim)
    smoothed = places if order == 2 else tuple(range(x.ndim))
    orders = [tuple(order * (k == axis) for k in smoothed) for axis in places]
    ways = zip(orders, each(mode, len(places)), strict=True)
    return [gaussian_filter(x, sigma, along, dtype, one, cval, axes=smoothed, **kwargs) for along, one in ways]


@filter_rule(scipy.ndimage.gaussian_laplace)
def gaussian_laplace(
    input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None,
    **kwargs: Any,
) -> Any:  # fmt: skip
    x = as_array(input)
    dtype = target(x, x, output)
    curves = gaussian_derivatives(2, x, sigma, axes, dtype, mode, cval, **kwargs)
    return sum(curves[1:], curves[0]) if curves else cast(x, dtype)


@filter_rule(scipy.ndimage.gaussian_gradient_magnitude)
def gaussian_gradient_magnitude(
    input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None,
    **kwargs: Any,
) -> Any:  # fmt: skip
    x = as_array(input)
    dtype = target(x, x, output)
    slopes = gaussian_derivatives(1, x, sigma, axes, dtype, mode, cval, **kwargs)
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
