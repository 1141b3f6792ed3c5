"""NumPy's functions of parts of arrays whose length is not known (`srcgrad.tracing.ragged`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcgrad.tracing.affine import ZERO, Affine
from srcgrad.tracing.functions.differences import on_line, with_ends
from srcgrad.tracing.functions.registry import cast, require
from srcgrad.tracing.parts import Part
from srcgrad.tracing.ragged import METHODS, RULES, Extent, Ragged, aligned, elementwise, moved, refused, whole
from srcgrad.tracing.tracer import Tracer, as_tracer


def rule(*functions: Any, method: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what functions are of these arrays, and the method of that name."""

    def register(found: Callable[..., Any]) -> Callable[..., Any]:
        RULES.update(dict.fromkeys(functions, found))
        if method is not None:
            METHODS[method] = found
        return found

    return register


def given(x: Any) -> Any:
    """An operand: an array with parts, or a traced one without."""
    return x if isinstance(x, (Ragged, Tracer)) else as_tracer(x)


def base_of(x: Any) -> Any:
    return x.base if isinstance(x, Ragged) else x


def extents_of(x: Any) -> tuple[Part | None, ...]:
    return x.extents if isinstance(x, Ragged) else (None,) * x.ndim


def built(base: Any, extents: Sequence[Part | None]) -> Any:
    """An array of which these parts count: a plain one if all counts."""
    return Ragged(base, tuple(extents)) if any(extent is not None for extent in extents) else base


# --- reductions -----------------------------------------------------------------------------------------------------


def axes_of(a: Ragged, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(a.ndim))
    return tuple(k % a.ndim for k in (axis if isinstance(axis, tuple) else (axis,)))


def left(a: Any, axes: Sequence[int], keepdims: bool) -> list[Part | None]:
    """The parts of the axes that a reduction leaves."""
    kept = [None if axis in axes else extent for axis, extent in enumerate(extents_of(a))]
    return kept if keepdims else [extent for axis, extent in enumerate(kept) if axis not in axes]


def reduced(function: Callable[..., Any], a: Ragged, neutral: Any, axis: Any, keepdims: bool) -> Any:
    axes = axes_of(a, axis)
    base = a.filled(neutral) if any(a.extents[k] is not None for k in axes) else a.base
    return built(function(base, axis=axes, keepdims=keepdims), left(a, axes, keepdims))


def count(a: Ragged, axes: Sequence[int]) -> Any:
    """How many elements are reduced to one."""
    found: Any = 1
    for axis in axes:
        found = found * a.shape[axis]
    return found


def reduction(method: str, function: Any, neutral: Any, *others: Any) -> None:
    def of(a: Ragged, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
        if dtype is not None:
            a = a.astype(dtype)
        return reduced(function, a, neutral, axis, keepdims)

    rule(function, *others, method=method)(of)


reduction("sum", np.sum, 0)
reduction("prod", np.prod, 1)
reduction("any", np.any, False)
reduction("all", np.all, True)


@rule(np.mean, method="mean")
def mean(a: Ragged, axis: Any = None, *, keepdims: bool = False) -> Any:
    axes = axes_of(a, axis)
    total = np.sum(a if a.dtype.kind in "fc" else a.astype(np.float64), axis=axes, keepdims=keepdims)
    return total / count(a, axes)


@rule(np.var, method="var")
def var(a: Ragged, axis: Any = None, *, ddof: Any = 0, keepdims: bool = False) -> Any:
    axes = axes_of(a, axis)
    distance = np.abs(a - mean(a, axes, keepdims=True))
    return np.sum(distance * distance, axis=axes, keepdims=keepdims) / np.maximum(count(a, axes) - ddof, 0)


@rule(np.std, method="std")
def std(a: Ragged, axis: Any = None, *, ddof: Any = 0, keepdims: bool = False) -> Any:
    return np.sqrt(var(a, axis, ddof=ddof, keepdims=keepdims))


def extreme(name: str, function: Any, place: Any) -> None:
    """``max`` or ``min`` and the place of it."""

    def outermost(a: Ragged) -> Any:
        """What no element is beyond."""
        if a.dtype.kind not in "fiu":
            raise refused(f"np.{name} of complex numbers or truth values in")
        if a.dtype.kind == "f":
            return -np.inf if name == "max" else np.inf
        return np.iinfo(a.dtype).min if name == "max" else np.iinfo(a.dtype).max

    def of(a: Ragged, axis: Any = None, *, keepdims: bool = False) -> Any:
        axes = axes_of(a, axis)
        require_elements(a, axes, f"zero-size array to reduction operation {function_name(name)} which has no identity")
        return reduced(function, a, outermost(a), axes, keepdims)

    def place_of(a: Ragged, axis: Any = None) -> Any:
        axis = 0 if axis is None and a.ndim == 1 else axis
        if axis is None:
            raise refused(f"np.arg{name} of several axes of")
        axes = axes_of(a, axis)
        extent = a.extents[axes[0]]
        if extent is None:
            return built(place(a.base, axis=axis), left(a, axes, False))
        require_elements(a, axes, f"attempt to get arg{name} of an empty sequence")
        found = extent.within(place(a.filled(outermost(a)), axis=axis))
        return built(np.maximum(found, 0), left(a, axes, False))  # where all elements are as far out as can be

    rule(function, method=name)(of)
    rule(place, method=f"arg{name}")(place_of)


def function_name(name: str) -> str:
    return "maximum" if name == "max" else "minimum"


def require_elements(a: Ragged, axes: Sequence[int], message: str) -> None:
    """NumPy's error where there are none, when the program runs."""
    for axis in axes:
        extent = a.extents[axis]
        if extent is not None and extent.least() < 1:
            require(extent.length() > 0, "ValueError", message)


extreme("max", np.max, np.argmax)
extreme("min", np.min, np.argmin)


@rule(np.count_nonzero)
def count_nonzero(a: Ragged, axis: Any = None) -> Any:
    return np.sum(np.not_equal(a, 0), axis=axis)


@rule(np.linalg.norm)
def norm(x: Ragged, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Of vectors, and Frobenius's of matrices: zeros add nothing to them."""
    vectors = axis is not None or x.ndim == 1
    if not (ord is None or (vectors and ord in (1, 2, math.inf))) or isinstance(axis, tuple):
        raise refused("such a norm of")
    axes = axes_of(x, axis)
    base = x.filled(0) if any(x.extents[k] is not None for k in axes) else x.base
    return built(np.linalg.norm(base, ord, axis, keepdims), left(x, axes, keepdims))


def cumulative(name: str, function: Any, neutral: Any) -> None:
    def of(a: Ragged, axis: Any = None) -> Any:
        axis = 0 if axis is None and a.ndim == 1 else axis
        if axis is None:
            raise refused(f"np.{name} of several axes of")
        base = a.base if a.extents[axis] is None else a.filled(neutral)
        return a.like(function(base, axis=axis))

    rule(function, method=name)(of)


cumulative("cumsum", np.cumsum, 0)
cumulative("cumprod", np.cumprod, 1)


@rule(np.diff)
def diff(a: Ragged, n: int = 1, axis: int = -1) -> Any:
    if n != 1:
        raise refused("differences of differences of")
    before: tuple[Any, ...] = (slice(None),) * (axis % a.ndim)
    return a[(*before, slice(1, None))] - a[(*before, slice(None, -1))]


@rule(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Over places along the axis alone or, as the values, along all axes."""
    y, places = given(y), None if x is None else given(x)
    axis %= y.ndim
    before: tuple[Any, ...] = (slice(None),) * axis
    if places is None:
        width = dx
    elif places.ndim == 1:
        width = np.diff(places)[(slice(None), *(None,) * (y.ndim - 1 - axis))]
    else:
        width = np.diff(places, axis=axis)
    return (width * (y[(*before, slice(1, None))] + y[(*before, slice(None, -1))]) / 2.0).sum(axis)


# --- products -------------------------------------------------------------------------------------------------------


@rule(np.matmul)
def matmul(a: Any, b: Any) -> Any:
    a, b = given(a), given(b)
    if not (0 < a.ndim < 3 and 0 < b.ndim < 3):
        raise refused("a product of stacks of")
    inner = (extents_of(a)[-1], extents_of(b)[0])
    bases = [base_of(a), base_of(b)]
    if inner[0] is not None or inner[1] is not None:
        if inner[0] is None or inner[1] is None or not inner[0].alike(inner[1]):
            raise refused("other lengths beside")
        first = Ragged(bases[0], (*(None,) * (a.ndim - 1), inner[0])).filled(0)
        second = Ragged(bases[1], (inner[1], *(None,) * (b.ndim - 1))).filled(0)
        bases = [first, moved_zeros(second, inner[1], inner[0])]
    return built(np.matmul(*bases), (*extents_of(a)[:-1], *extents_of(b)[1:]))


def moved_zeros(base: Any, extent: Part, wanted: Part) -> Any:
    """`moved` for an array of zeros but for its part: what is repeated at the ends is covered again."""
    found = moved(base, 0, extent, wanted)
    if found is base:
        return base
    return Ragged(found, (wanted, *(None,) * (base.ndim - 1))).filled(0)


@rule(np.dot, np.inner, method="dot")
def dot(a: Any, b: Any) -> Any:
    a, b = given(a), given(b)
    if not a.ndim or not b.ndim:
        return a * b
    return matmul(a, b)


@rule(np.vdot)
def vdot(a: Any, b: Any) -> Any:
    a, b = given(a), given(b)
    if a.ndim != 1 or b.ndim != 1:
        raise refused("np.vdot of matrices of")
    return matmul(np.conj(a), b)


@rule(np.outer)
def outer(a: Any, b: Any) -> Any:
    a, b = given(a), given(b)
    if a.ndim != 1 or b.ndim != 1:
        raise refused("np.outer of matrices of")
    return a[:, None] * b[None, :]


# --- joined ---------------------------------------------------------------------------------------------------------


def extent_along(x: Any, axis: int) -> Extent:
    """What counts along an axis, in terms of the numbers of loops."""
    extent = extents_of(x)[axis]
    if extent is None:
        size = base_of(x).shape[axis]
        return Extent(0, size, size, ZERO, Affine({}, size))
    if not isinstance(extent, Extent) or not extent.exact:
        raise refused("an array joined to")
    return extent


@rule(np.concatenate)
def concatenate(arrays: Any, axis: int | None = 0) -> Any:
    pieces = [given(x) for x in arrays]
    if axis is None or any(x.ndim != pieces[0].ndim or not x.ndim for x in pieces):
        raise refused("arrays of several axes joined to")
    axis %= pieces[0].ndim
    shapes = {base_of(x).shape[:axis] + base_of(x).shape[axis + 1 :] for x in pieces}
    if len(shapes) > 1 or any(extent is not None for x in pieces for extent in left(x, (axis,), False)):
        raise refused("other lengths joined to")
    dtype = np.result_type(*[x.dtype for x in pieces])
    extents = [extent_along(x, axis) for x in pieces]
    ends, total = [ZERO], ZERO
    for extent in extents:
        total = total.plus(extent.end).plus(extent.first, -1)
        ends.append(total)
    size, offset = total.most(), 0
    found: Any = None
    column = (size,) + (1,) * (pieces[0].ndim - axis - 1)
    for x, extent, first, end in zip(pieces, extents, ends, ends[1:], strict=False):
        stop = offset + (extent.stop - extent.start)
        if end.plus(first, -1).most() > 0:
            piece = moved(base_of(x).astype(dtype), axis, extent, Extent(offset, stop, size, first, end))
            before: Any = np.arange(size).reshape(column) < offset
            found = piece if found is None else np.where(before, found, piece)
        offset = stop
    if found is None:
        raise refused("arrays without elements joined to")
    whole = None if not total.terms else Extent(0, offset, size, ZERO, total)
    return built(found, [whole if k == axis else None for k in range(found.ndim)])


@rule(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    parts = [given(arr), given(values)]
    return concatenate([x if axis is not None else x.ravel() for x in parts], axis or 0)


@rule(np.hstack)
def hstack(tup: Any) -> Any:
    pieces = [x if x.ndim else x.reshape(1) for x in map(given, tup)]
    return concatenate(pieces, 0 if pieces[0].ndim == 1 else 1)


@rule(np.vstack)
def vstack(tup: Any) -> Any:
    return concatenate([x if x.ndim > 1 else x[None, :] for x in map(given, tup)], 0)


@rule(np.pad)
def pad(array: Ragged, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Any:
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2))
    if array.ndim != 1 or mode != "constant" or np.ndim(constant_values):
        raise refused("another border than one number around")
    number = np.where(True, constant_values, constant_values).astype(array.dtype)
    ends = [np.broadcast_to(number, (int(width),)) for width in widths[0]]
    return concatenate([ends[0], array, ends[1]])


@rule(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """With an array of known length: what lies outside of the part is 0, and adds nothing."""
    a, v = given(a), given(v)
    if isinstance(v, Ragged):
        a, v = v, a
    if isinstance(v, Ragged) or mode != "full" or a.ndim != 1 or v.ndim != 1 or a.extents[0].least() < 1:
        raise refused("such a convolution of")
    extent = extent_along(a, 0)
    more = v.shape[0] - 1
    stop, end = extent.stop + more, extent.end.plus(Affine({}, more))
    found = Extent(extent.start, stop, extent.size + more, extent.first, end)
    return Ragged(as_tracer(np.convolve(a.filled(0), v)), (found,))


# --- elements and shapes --------------------------------------------------------------------------------------------


def by_element(function: Any) -> None:
    def of(a: Ragged, *options: Any) -> Any:
        return a.like(function(a.base, *options))

    rule(function)(of)


for each in (np.real, np.imag, np.angle, np.round, np.around, np.sinc, np.i0, np.nan_to_num, np.real_if_close):
    by_element(each)
for made in (np.zeros_like, np.ones_like):
    by_element(made)


def by_element_at(place: int, function: Any) -> None:
    """A function by element of one of its arguments, of which the others are whole arrays or options."""

    def of(*arguments: Any, **options: Any) -> Any:
        a = arguments[place] if place < len(arguments) else None
        if not isinstance(a, Ragged) or sum(isinstance(x, Ragged) for x in (*arguments, *options.values())) > 1:
            raise refused(f"another argument of np.{function.__name__} than the {('first', 'second')[place]} is")
        return a.like(function(*arguments[:place], a.base, *arguments[place + 1 :], **options))

    rule(function)(of)


for name, position in {"polyval": 1, "digitize": 0, "searchsorted": 1}.items():
    by_element_at(position, getattr(np, name))


@rule(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Of places that are a part, or between nodes of which a part counts: those before it are below all places."""
    if isinstance(x, Ragged) and not isinstance(xp, Ragged) and not isinstance(fp, Ragged):
        return x.like(np.interp(x.base, xp, fp, left, right, period))
    if any(isinstance(option, Ragged) for option in (x, left, right)) or period is not None:
        raise refused("np.interp with these options of")
    (nodes, values), extents = aligned([xp, fp])
    extent = extents[0]
    if len(extents) > 1 or nodes.shape != values.shape or not isinstance(extent, Extent) or extent.least() < 1:
        raise refused("np.interp with nodes that are")
    places, nodes = cast(x, np.float64), cast(nodes, np.float64)
    values = cast(values, np.complex128 if values.dtype.kind == "c" else np.float64)
    start, last = whole(extent.start), whole(extent.stop - 1)
    index = np.arange(extent.size)
    sorted_nodes = np.where(index < start, -np.inf, np.where(index > last, np.inf, nodes))
    k: Any = np.minimum(np.maximum(np.searchsorted(sorted_nodes, places, "right") - 1, start), last - 1)
    k = np.maximum(k, start)
    after = np.minimum(k + 1, last)
    inside = on_line(places, (nodes[k], nodes[after]), (values[k], values[after]), places == nodes[last])
    low, high = (values[start] if left is None else left), (values[last] if right is None else right)
    return with_ends(places, inside, (nodes[start], low), (nodes[last], high))


@rule(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    count = len(condlist)

    def chosen(*operands: Any) -> Any:
        return np.select(operands[:count], operands[count:-1], operands[-1])

    return elementwise(chosen, *condlist, *choicelist, default)


@rule(np.where)
def where(condition: Any, x: Any, y: Any) -> Any:
    return elementwise(np.where, condition, x, y)


@rule(np.clip, method="clip")
def clip(a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    bounds = [bound for bound in (a_min, a_max) if bound is not None]
    bases, extents = aligned([a, *bounds])
    found = iter(bases[1:])
    low = None if a_min is None else next(found)
    high = None if a_max is None else next(found)
    return Ragged(np.clip(bases[0], low, high), tuple(extents))


@rule(np.copy)
def copy(a: Ragged) -> Any:
    return a.copy()


@rule(np.conjugate, method="conj")
def conjugate(a: Ragged) -> Any:
    return elementwise(np.conjugate, a)


@rule(np.transpose)
def transpose(a: Ragged, axes: Any = None) -> Any:
    order = tuple(range(a.ndim))[::-1] if axes is None else tuple(axis % a.ndim for axis in axes)
    return Ragged(a.base.transpose(order), tuple(a.extents[axis] for axis in order))


@rule(np.reshape, method="reshape")
def reshape(a: Ragged, *shape: Any) -> Any:
    """A vector as a row or a column."""
    requested = shape[0] if len(shape) == 1 else shape
    forms: dict[Any, Any] = {(-1, 1): np.s_[:, None], (1, -1): np.s_[None, :], (-1,): np.s_[:], -1: np.s_[:]}
    if a.ndim != 1 or not isinstance(requested, (int, tuple)) or requested not in forms:
        raise refused("another shape for")
    return a[forms[requested]]


@rule(np.ravel, method="ravel")
def ravel(a: Ragged) -> Any:
    return reshape(a, -1)


METHODS["flatten"] = lambda a: ravel(a).copy()
METHODS["transpose"] = lambda a, *axes: transpose(a, axes[0] if len(axes) == 1 else axes or None)


@rule(np.flip)
def flip(m: Ragged, axis: Any = None) -> Any:
    for along in axes_of(m, axis):
        m = m.turned(along)
    return m


@rule(np.ndim)
def ndim(a: Ragged) -> int:
    return a.ndim


@rule(np.shape)
def shape(a: Ragged) -> Any:
    return a.shape


@rule(np.size)
def size(a: Ragged, axis: Any = None) -> Any:
    return a.size if axis is None else a.shape[axis]
