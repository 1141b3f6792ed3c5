"""Rules of ``scipy.ndimage`` for images between their elements: splines of order 0 to 5, and what moves images by them.

An image is first filtered so that the spline goes through its elements; the value at a place is then the sum of the
coefficients around it, each times a piece of the basis spline, which is a polynomial in the place (M. Unser, A.
Aldroubi, M. Eden, B-spline signal processing, 1993). Importing this module imports SciPy.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
import scipy.ndimage
import scipy.special

from srcgrad.errors import DTypeError, EvaluationError, ShapeError
from srcgrad.tracing.functions.padding import pad
from srcgrad.tracing.functions.registry import as_array, axis_of, cast, ordered_axes
from srcgrad.tracing.functions.scipy_ndimage import PADDING, correlated, filter_rule, listed, target
from srcgrad.tracing.tracer import contains_tracer

FILTERED_AS: Final = {
    "constant": "mirror", "grid-constant": "mirror", "mirror": "mirror", "wrap": "mirror", "grid-wrap": "grid-wrap",
    "nearest": "reflect", "reflect": "reflect", "grid-mirror": "reflect",
}  # fmt: skip
"""How an image goes on beyond its edges where its coefficients are found, for each mode."""
PREPADDED: Final = 12
"""How many elements SciPy adds to an image at each edge where it goes on in a way that has no coefficients."""

SCIPY_FILTER: Final[Any] = scipy.ndimage.spline_filter1d


class Manner(NamedTuple):
    """How an image is read: the spline's order, the mode beyond the edges, and the number that may stand there."""

    order: int
    mode: str
    cval: Any
    prefilter: bool


def manner(order: Any, mode: Any, cval: Any, prefilter: Any) -> Manner:
    """The options, if SciPy takes them.

    Raises:
        EvaluationError: SciPy's RuntimeError.
    """
    if order < 0 or order > 5:
        raise EvaluationError("spline order not supported")
    if mode not in PADDING:
        raise EvaluationError("boundary mode not supported")
    return Manner(int(order), "reflect" if mode == "grid-mirror" else mode, cval, bool(prefilter))


# --- splines ---------------------------------------------------------------------------------------------------------


@functools.cache
def pieces(order: int) -> Any:
    """The polynomials, lowest powers first, of the basis spline at a place and its neighbours, first to last.

    The variable is how far the place lies after the whole number below it, or for even orders the nearest one. With
    n = ``order`` the spline is the sum over k of (-1)**k binom(n + 1, k) max(x + (n + 1)/2 - k, 0)**n / n!.
    """
    rows = []
    for neighbour in range(order + 1):
        powers = [Fraction(0)] * (order + 1)
        for k in range(neighbour + 1, order + 2):  # by symmetry the terms that are not 0 count from the other end
            at = Fraction(k) - Fraction(order + 1, 2) - (neighbour - order // 2)
            scale = Fraction((-1) ** (order + 1 - k) * math.comb(order + 1, k), math.factorial(order))
            for power in range(order + 1):
                powers[power] += scale * math.comb(order, power) * at ** (order - power)
        rows.append([float(value) for value in powers])
    return np.array(rows)


@functools.cache
def inverse_filter(order: int) -> Any:
    """The coefficients of the spline through a 1 among zeros, as far as they are not lost to rounding."""
    far = 80
    impulse = np.zeros(2 * far + 1)
    impulse[far] = 1.0
    found = SCIPY_FILTER(impulse, order, mode="mirror")
    reach = int(np.flatnonzero(np.abs(found) > 1e-19)[-1]) - far
    return found[far - reach : far + reach + 1]


def coefficients(x: Any, order: int, axis: int, mode: str) -> Any:
    """Those along one axis of the spline through the elements, in double precision."""
    x = cast(x, np.complex128 if x.dtype.kind == "c" else np.float64)
    if order < 2 or x.shape[axis] < 2 or not x.size:
        return x
    kernel, size = inverse_filter(order), x.shape[axis]
    if size <= len(kernel):  # SciPy's own numbers, which near two edges at once are not those of the spline
        matrix = SCIPY_FILTER(np.eye(size), order, 0, mode=FILTERED_AS[mode])
        return np.moveaxis(np.tensordot(matrix.astype(x.dtype), np.moveaxis(x, axis, 0), 1), 0, axis)
    shaped = kernel.reshape(tuple(-1 if k == axis else 1 for k in range(x.ndim)))
    befores = [len(kernel) // 2 if k == axis else 0 for k in range(x.ndim)]
    return correlated(x, shaped, befores, [FILTERED_AS[mode]] * x.ndim, 0.0)


@filter_rule(scipy.ndimage.spline_filter1d)
def spline_filter1d(input: Any, order: int = 3, axis: int = -1, output: Any = np.float64, mode: str = "mirror") -> Any:
    x = as_array(input)
    how = manner(order, mode, 0.0, True)
    dtype = target(x, x, output)
    return cast(coefficients(x, how.order, axis_of(axis, x.ndim), how.mode), dtype)


@filter_rule(scipy.ndimage.spline_filter)
def spline_filter(input: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror") -> Any:
    x = as_array(input)
    if order < 2:
        raise EvaluationError("spline order not supported")
    for axis in range(x.ndim):
        x = spline_filter1d(x, order, axis, output, mode)
    return x if x.ndim else cast(x, target(x, x, output))


def prepared(x: Any, how: Manner, count: int) -> tuple[Any, int]:
    """The coefficients along the last ``count`` axes, and how many elements were put before the first."""
    if not how.prefilter or how.order < 2:
        return x, 0
    padded = PREPADDED if how.mode in ("nearest", "grid-constant") else 0
    if padded:
        widths = [(padded * (k >= x.ndim - count),) * 2 for k in range(x.ndim)]
        options = {"constant_values": how.cval} if how.mode == "grid-constant" else {}
        x = pad(x, widths, PADDING[how.mode], **options)
    for axis in range(x.ndim - count, x.ndim):
        x = coefficients(x, how.order, axis, how.mode)
    return x, padded


def period(size: int, mode: str) -> int:
    return {"mirror": 2 * size - 2, "reflect": 2 * size, "wrap": size - 1, "grid-wrap": size}[mode]


def folded(at: Any, size: int, mode: str) -> Any:
    """Where a place beyond the edges reads the array, in SciPy's arithmetic: quotients are cut off."""
    last = size - 1
    if mode in ("constant", "grid-constant"):
        return at
    if mode == "nearest":
        return np.clip(at, 0, last)
    if size <= 1:
        return np.where((at < 0) | (at > last), np.zeros_like(at), at)
    span = period(size, mode)
    if mode == "mirror":
        low = at + span * np.trunc(-at / span)
        low = np.where(low <= -last, low + span, -low)
    elif mode == "reflect":
        low = np.where(at < -span, at + span * np.trunc(-at / span), at)
        low = np.where(low < -size, low + span, -low - 1)
    else:
        low = at + span * (np.trunc((-at - (mode == "grid-wrap")) / span) + 1)
    high = at - span * np.trunc(at / span)
    if mode in ("mirror", "reflect"):
        high = np.where(high >= size, span - high - (mode == "reflect"), high)
    return np.where(at < 0, low, np.where(at > last, high, at))


class Neighbours(NamedTuple):
    """For one axis the indices of the coefficients around each place and their weights, along a new first axis.

    ``share`` is the sum of the weights of those that are there, where others are the number beyond the edges, and
    ``inside`` says of each place whether the axis has it at all.
    """

    index: Any
    weight: Any
    whole: Any
    share: Any
    inside: Any


def neighbours(at: Any, size: int, padded: int, how: Manner) -> Neighbours:
    at = at + float(padded)
    inside: Any = (at >= 0) & (at <= size - 1) if how.mode == "constant" else None
    if how.mode != "nearest":
        at = folded(at, size, how.mode)
    if inside is not None:
        at = np.where(inside, at, 0.0)
    low = np.floor(at if how.order % 2 else at + 0.5)
    column = (-1, *(1,) * at.ndim)
    step = np.arange(how.order + 1).reshape(column)
    index = low.astype(np.int64) - how.order // 2 + step
    polynomials = pieces(how.order)
    weight: Any = np.broadcast_to(polynomials[:, -1].reshape(column), index.shape)
    for power in range(how.order - 1, -1, -1):
        weight = weight * (at - low) + polynomials[:, power].reshape(column)
    if how.mode != "grid-constant":
        mode = "mirror" if how.mode in ("constant", "wrap") else how.mode
        index = folded(index.astype(np.float64), size, mode).astype(np.int64)
        return Neighbours(index, weight, None, None, inside)
    there: Any = (index >= 0) & (index < size)
    weight = np.where(there, weight, 0.0)
    return Neighbours(
        np.clip(index, 0, size - 1), weight, np.all(there, axis=0), np.sum(weight, axis=0), inside
    )  # fmt: skip


def beyond(total: Any, around: Sequence[Neighbours], cval: Any) -> Any:
    """The sums, with the number that stands beyond the edges; what is said of each axis broadcasts to their shape."""
    for near in around:
        if near.inside is not None:
            total = np.where(near.inside, total, cval)
    if around and around[0].whole is not None:
        whole = functools.reduce(np.logical_and, [near.whole for near in around])
        share = functools.reduce(np.multiply, [near.share for near in around])
        total = np.where(whole, total, total + cval * (1.0 - share))
    return total


def at_places(x: Any, places: Sequence[Any], how: Manner) -> Any:
    """The image of the last axes at places, whose coordinates are arrays of one shape."""
    count = len(places)
    x, padded = prepared(x, how, count)
    sizes = x.shape[x.ndim - count :]
    around = [neighbours(at, size, padded, how) for at, size in zip(places, sizes, strict=True)]
    shape = np.broadcast_shapes(*(at.shape for at in places))
    flat: Any = 0
    for axis, (near, size) in enumerate(zip(around, sizes, strict=True)):
        ones = [1] * count
        ones[axis] = how.order + 1
        flat = flat * size + near.index.reshape((*ones, *near.index.shape[1:]))
    total = x.reshape((*x.shape[: x.ndim - count], -1))[..., flat]
    leading = x.ndim - count
    for axis, near in enumerate(around):  # each sum takes the first of the axes of neighbours away
        weight = near.weight.reshape((how.order + 1, *(1,) * (count - axis - 1), *near.weight.shape[1:]))
        total = np.sum(total * weight, axis=leading)
    return beyond(np.broadcast_to(total, (*total.shape[:leading], *shape)), around, how.cval)


def on_grid(x: Any, places: Sequence[Any], how: Manner) -> Any:
    """The image where places along each of its axes cross: axis by axis."""
    x, padded = prepared(x, how, x.ndim)
    around = []
    for axis, at in enumerate(places):
        near = neighbours(at, x.shape[axis], padded, how)
        column = (-1, *(1,) * (x.ndim - axis - 1))
        parts = np.moveaxis(x[(slice(None),) * axis + (near.index,)], axis, 0)
        x = np.sum(parts * near.weight.reshape((how.order + 1, *(1,) * axis, *column)), axis=0)
        told = [None if part is None else part.reshape(column) for part in near[2:]]
        around.append(Neighbours(near.index, near.weight, *told))
    return beyond(x, around, how.cval)


def as_type(total: Any, dtype: Any) -> Any:
    """As SciPy writes the sums: of integers the nearest that there is, halves away from zero."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        total = np.clip(np.trunc(total + np.copysign(0.5, total)), limits.min, limits.max)
    return cast(total, dtype)


# --- what moves images -----------------------------------------------------------------------------------------------


def image(input: Any, output: Any) -> tuple[Any, Any]:
    """The image, and the dtype of the result."""
    x = as_array(input)
    if x.ndim < 1:
        raise EvaluationError("input and output rank must be > 0")
    return x, target(x, x, output)


@filter_rule(scipy.ndimage.map_coordinates)
def map_coordinates(
    input: Any, coordinates: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:  # fmt: skip
    how = manner(order, mode, cval, prefilter)
    places = as_array(coordinates) if contains_tracer(coordinates) else np.asarray(coordinates)
    if places.dtype.kind == "c":
        raise DTypeError("Complex type not supported")
    x, dtype = image(input, output)
    if places.ndim < 2:
        raise EvaluationError("input and output rank must be > 0")
    if places.shape[0] != x.ndim:
        raise EvaluationError("invalid shape for coordinate array")
    return as_type(at_places(x, list(places.astype(np.float64)), how), dtype)


@filter_rule(scipy.ndimage.shift)
def shift(
    input: Any, shift: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:  # fmt: skip
    how = manner(order, mode, cval, prefilter)
    x, dtype = image(input, output)
    offsets = listed(shift, x.ndim)
    places = [np.arange(float(size)) - offset for size, offset in zip(x.shape, offsets, strict=True)]
    return as_type(on_grid(x, places, how), dtype)


@filter_rule(scipy.ndimage.zoom)
def zoom(
    input: Any, zoom: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: Any = 0.0,
    prefilter: bool = True, *, grid_mode: bool = False,
) -> Any:  # fmt: skip
    """To the nearest whole number of elements, which is all that the factors decide."""
    how = manner(order, mode, cval, prefilter)
    x, dtype = image(input, output)
    factors = listed(zoom, x.ndim)
    shape = [round(float(size * factor)) for size, factor in zip(x.shape, factors, strict=True)]
    if how.prefilter and all(factor == 1 for factor in factors):
        return cast(x, dtype)
    places = []
    for size, new in zip(x.shape, shape, strict=True):
        old, spaces = (size, new) if grid_mode else (size - 1, new - 1)
        step = old / spaces if spaces else 1.0
        number = np.arange(float(new))
        places.append((number + 0.5) * step - 0.5 if grid_mode else number * step)
    return as_type(on_grid(x, places, how), dtype)


@filter_rule(scipy.ndimage.affine_transform)
def affine_transform(
    input: Any, matrix: Any, offset: Any = 0.0, output_shape: Any = None, output: Any = None, order: int = 3,
    mode: str = "constant", cval: Any = 0.0, prefilter: bool = True,
) -> Any:  # fmt: skip
    how = manner(order, mode, cval, prefilter)
    x, dtype = image(input, output)
    shape = x.shape if output_shape is None else tuple(output_shape)
    factors: Any = as_array(matrix) if contains_tracer(matrix) else np.asarray(matrix, np.float64)
    count = x.ndim
    if factors.ndim not in (1, 2) or factors.shape[0] < 1:
        raise EvaluationError("no proper affine matrix provided")
    if factors.ndim == 2 and factors.shape[1] == count + 1 and factors.shape[0] in (count, count + 1):
        offset, factors = factors[:count, count], factors[:count, :count]
    if factors.shape[0] != count:
        raise EvaluationError("affine matrix has wrong number of rows")
    if factors.ndim == 2 and factors.shape[1] != len(shape):
        raise EvaluationError("affine matrix has wrong number of columns")
    offsets = listed(offset, count)
    if factors.ndim == 1:
        places = [
            (np.arange(float(size)) + start / factor) * factor
            for size, start, factor in zip(shape, offsets, list(factors), strict=True)
        ]
        return as_type(on_grid(x, places, how), dtype)
    return as_type(at_places(x, affine_places(factors, offsets, shape), how), dtype)


def affine_places(factors: Any, offsets: Sequence[Any], shape: Sequence[int]) -> list[Any]:
    """The coordinates that an affine map gives each element of the result."""
    grid = np.ogrid[tuple(slice(0.0, float(size)) for size in shape)]
    places = []
    for row, start in zip(list(factors), offsets, strict=True):
        total: Any = np.zeros(tuple(shape))
        for number, factor in zip(grid, list(row), strict=True):
            total = total + number * factor
        places.append(total + start)
    return places


@filter_rule(scipy.ndimage.rotate)
def rotate(
    input: Any, angle: Any, axes: Any = (1, 0), reshape: bool = True, output: Any = None, order: int = 3,
    mode: str = "constant", cval: Any = 0.0, prefilter: bool = True,
) -> Any:  # fmt: skip
    """In the plane of two axes; how large the result is, the angle decides as a number that is known."""
    how = manner(order, mode, cval, prefilter)
    x, dtype = image(input, output)
    if x.ndim < 2:
        raise ShapeError("input array should be at least 2D")
    if len(axes) != 2:
        raise ShapeError("axes should contain exactly two values")
    try:
        plane = sorted(ordered_axes(tuple(int(axis) for axis in axes), x.ndim))
    except ValueError:
        raise ShapeError("invalid rotation plane specified") from None
    cosine, sine = scipy.special.cosdg(angle), scipy.special.sindg(angle)
    turn: Callable[[Any, Any], tuple[Any, Any]] = lambda y, z: (cosine * y + sine * z, cosine * z - sine * y)  # noqa: E731
    sizes = [x.shape[axis] for axis in plane]
    shape = list(sizes)
    if reshape:
        corners = turn(np.array([0, 0, sizes[0], sizes[0]]), np.array([0, sizes[1], 0, sizes[1]]))
        shape = [int(np.max(bound) - np.min(bound) + 0.5) for bound in corners]
    centre = turn((shape[0] - 1) / 2, (shape[1] - 1) / 2)
    offsets = [(size - 1) / 2 - middle for size, middle in zip(sizes, centre, strict=True)]
    moved = np.moveaxis(x, plane, (-2, -1))
    found = at_places(moved, affine_places([[cosine, sine], [-sine, cosine]], offsets, shape), how)
    return as_type(np.moveaxis(found, (-2, -1), plane), dtype)
