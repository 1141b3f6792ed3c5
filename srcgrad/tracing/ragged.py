"""Parts of arrays whose length is not known while tracing: slices between numbers of loops, and what masks select.

``x[:i]`` is all of ``x`` and the bounds 0 and ``i``, ``x[x > 0]`` all of ``x`` and the mask. What is computed with it
is computed for the whole axis, and what does not count counts nowhere: reductions take a neutral element for it, and
assignments leave it as it is. A slice is taken so where its bounds are sums of the loops' indices that are never
negative (`affine`). What is not known here of such arrays is refused: then a loop is unrolled, and each slice has its
own shape; of masks there is a program for each path.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from srcgrad.errors import DTypeError, ShapeError
from srcgrad.ir.registry import Registry
from srcgrad.tracing.affine import ZERO, Affine, affine_of
from srcgrad.tracing.floating_errors import raised_kinds
from srcgrad.tracing.indexing import (
    IndexView,
    Whole,
    Window,
    add_at,
    known_integer,
    normalise,
    picking,
    stored,
    with_windows,
)
from srcgrad.tracing.listed import rows_between
from srcgrad.tracing.operators import BINARY, COMPARE, UNARY
from srcgrad.tracing.parts import Part
from srcgrad.tracing.trace import Refused
from srcgrad.tracing.tracer import Deferring, Tracer, as_tracer
from srcgrad.tracing.ufuncs import call
from srcgrad.tracing.views import View

RULES: Final[Registry[Any, Callable[..., Any]]] = Registry()
"""What NumPy's functions are of arrays with such axes: NumPy's own signatures."""
METHODS: Final[Registry[str, Callable[..., Any]]] = Registry()
LONG: Final = 16
MOST_MASKED: Final = 1024
"""Of a longer axis, of which all slices have nearly the same part, each trip reads its own in the unrolled loop."""
HINT: Final = "compute with arrays of one length: np.where(np.arange(n) < i, x, 0), np.where(mask, x, 0)"


def refused(what: str) -> Refused:
    return Refused(f"{what} a part of an array whose length is not known", hint=HINT)


def require_silence() -> None:
    """
    Raises:
        Refused: errors are to be raised, which elements that do not count would raise too.
    """
    if raised_kinds():
        raise refused("errors that np.errstate asks for of")


@dataclass(frozen=True, eq=False)
class Extent(Part):
    """A slice: ``start : stop``, cut off at ``size``, none of which is negative."""

    start: Tracer | int
    stop: Tracer | int
    size: int
    first: Affine
    end: Affine

    @property
    def exact(self) -> bool:
        """Whether the part surely has ``stop - start`` elements."""
        return self.end.most() <= self.size and self.end.plus(self.first, -1).least() >= 0

    def alike(self, other: Part) -> bool:
        if not isinstance(other, Extent):
            return False
        if (self.first, self.end, self.size) == (other.first, other.end, other.size):
            return True
        if not (self.exact and other.exact):
            return False
        return self.end.plus(self.first, -1) == other.end.plus(other.first, -1)

    def length(self) -> Any:
        if self.exact:
            return self.stop - self.start
        ends = [call(np.minimum, bound, self.size, weak=True) for bound in map(whole, (self.stop, self.start))]
        return call(np.maximum, ends[0] - ends[1], 0, weak=True)

    def least(self) -> int:
        return max(self.end.plus(self.first, -1).least(), 0) if self.exact else 0

    def within(self, place: Any) -> Any:
        return place - self.start

    def mask(self) -> Any:
        places: Any = as_tracer(np.arange(self.size))
        above = None if self.first == ZERO else places >= self.start
        below = None if self.end == Affine({}, self.size) else places < self.stop
        found = [part for part in (above, below) if part is not None]
        return np.logical_and(*found) if len(found) == 2 else found[0] if found else places >= 0

    def inside(self, first: Tracer | int, stop: Tracer | int) -> Extent:
        """A part of this part, by its places on the axis."""
        return Extent(first, stop, self.size, known(first), known(stop))


def known(x: Any) -> Affine:
    found = affine_of(x)
    assert found is not None
    return found


def whole(x: Any) -> Any:
    """A Python integer as a traced one."""
    return x if isinstance(x, Tracer) else as_tracer(x)


def bound_of(bound: Any, size: int, default: int) -> tuple[Any, Affine] | None:
    """A bound of a slice, counted from the front; None if nobody knows whether it is negative."""
    bound = known_integer(default if bound is None else bound)
    if not isinstance(bound, Tracer):
        place = operator.index(bound)
        place = min(place, size) if place >= 0 else max(place + size, 0)
        return place, Affine({}, place)
    found = affine_of(bound)
    if found is None:
        return None
    if found.most() < 0 and found.least() >= -size:
        bound = bound + size
        found = known(bound)
    return None if found.least() < 0 else (bound, found)


def extent_of(entry: slice, size: int) -> Extent | None:
    """The part of an axis that a slice with traced bounds takes (turned round for a step of -1), if it is known."""
    step = known_integer(1 if entry.step is None else entry.step)
    if not isinstance(step, int) or step not in (1, -1):
        return None
    if step == 1:
        start, stop = bound_of(entry.start, size, 0), bound_of(entry.stop, size, size)
    else:
        highest = bound_of(entry.start, size, size - 1)
        if highest is None or highest[1].most() >= size:
            return None
        stop = (highest[0] + 1, highest[1].plus(Affine({}, 1)))
        lowest = None if entry.stop is None else bound_of(entry.stop, size, 0)
        if entry.stop is not None and lowest is None:
            return None
        start = (0, ZERO) if lowest is None else (lowest[0] + 1, lowest[1].plus(Affine({}, 1)))
    if start is None or stop is None:
        return None
    found = Extent(start[0], stop[0], size, start[1], stop[1])
    spread = sum(bound.most() - bound.least() for bound in (found.first, found.end))
    if size > LONG * spread and size > MOST_MASKED:
        return None
    return found if step == 1 or found.exact else None


def is_traced(entry: Any) -> bool:
    return isinstance(entry, slice) and any(
        isinstance(known_integer(bound), Tracer) for bound in (entry.start, entry.stop, entry.step)
    )


def part_of(x: Tracer, index: Any) -> Ragged | None:
    """``x[index]`` if a slice of it has a length that is not known but bounds that are.

    Raises:
        Refused: a slice is one of these, beside an array that picks elements.
    """
    given = normalise(x, index).entries
    if any(isinstance(entry, Whole) for entry in given):
        return None
    entries = with_windows(x, given)
    if not any(map(is_traced, entries)):
        return None
    base, axis = list(given), 0
    extents: list[Extent | None] = []
    turned: list[int] = []
    for k, entry in enumerate(entries):
        if entry is None:
            extents.append(None)
            continue
        found: Extent | None = None
        if is_traced(entry):
            rows = rows_between(entry, x.shape[axis])
            if rows is None:
                found, base[k] = extent_of(entry, x.shape[axis]), slice(None)
            elif rows.counted is not None:
                found, base[k] = Extent(0, rows.counted, rows.window.length, ZERO, rows.number), rows.window
            if found is None:
                return None
            if known_integer(entry.step) == -1:
                turned.append(len(extents))
            extents.append(found)
        elif isinstance(entry, (np.ndarray, Tracer)) and np.ndim(entry):
            raise refused("an array of indices beside")
        elif not isinstance(entry, (int, Tracer, np.ndarray)):
            extents.append(None)
        axis += 1
    ragged = Ragged(x[tuple(base)], tuple(extents))
    for place in turned:
        ragged = ragged.turned(place)
    return ragged


class Ragged(Deferring):
    """An array of which parts of some axes count.

    ``base`` holds the whole axes: it may be a view, whose memory is read and written through. ``extents`` has a part
    for each axis, or None.
    """

    __slots__ = ("base", "extents")
    __srcgrad_unfinished__ = True
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, base: Tracer, extents: tuple[Part | None, ...]) -> None:
        self.base, self.extents = base, extents

    # --- what it is --------------------------------------------------------------------------------
    @property
    def dtype(self) -> Any:
        return self.base.dtype

    @property
    def ndim(self) -> int:
        return self.base.ndim

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(
            size if extent is None else extent.length()
            for size, extent in zip(self.base.shape, self.extents, strict=True)
        )

    @property
    def size(self) -> Any:
        found: Any = 1
        for size in self.shape:
            found = found * size
        return found

    @property
    def T(self) -> Any:
        return Ragged(self.base.T, self.extents[::-1])

    @property
    def real(self) -> Any:
        return Ragged(self.base.real, self.extents)

    @property
    def imag(self) -> Any:
        return Ragged(self.base.imag, self.extents)

    def copy(self, order: str = "C") -> Ragged:
        return Ragged(self.base.copy(), self.extents)

    def astype(self, dtype: Any, **options: Any) -> Ragged:
        return Ragged(self.base.astype(dtype), self.extents)

    def mask(self) -> Any:
        """Which elements of the base count, in its shape."""
        found: Any = None
        for axis, extent in enumerate(self.extents):
            if extent is not None:
                along = extent.mask().reshape((extent.size,) + (1,) * (self.ndim - axis - 1))
                found = along if found is None else np.logical_and(found, along)
        return np.broadcast_to(found, self.base.shape)

    def filled(self, value: Any) -> Any:
        """The base with a number for what does not count."""
        return np.where(self.mask(), self.base, np.asarray(value, self.dtype))

    def like(self, base: Any) -> Ragged:
        """A result of the same parts."""
        return Ragged(as_tracer(base), self.extents)

    def turned(self, axis: int) -> Ragged:
        """Its elements along an axis in the other order."""
        extent = self.extents[axis]
        if extent is None:
            return Ragged(self.base[(*[slice(None)] * axis, slice(None, None, -1))], self.extents)
        if not isinstance(extent, Extent) or not extent.exact:
            raise refused("the other order of")
        last = Window(whole(extent.start + extent.stop - 1), extent.size, -1, around=extent.size)
        return Ragged(IndexView(axis, (last,)).of(self.base), self.extents)

    # --- parts -------------------------------------------------------------------------------------
    def located(self, index: Any) -> tuple[tuple[Any, ...], list[Part | None], list[int]]:
        """An index into this as one into the base, the parts of the axes that are left, and those turned round."""
        given = list(index) if isinstance(index, tuple) else [index]
        used = sum(entry is not None and entry is not Ellipsis for entry in given)
        if used > self.ndim:
            raise refused("too many indices of")
        fill: list[Any] = [slice(None)] * (self.ndim - used)
        at = next((k for k, entry in enumerate(given) if entry is Ellipsis), None)
        entries = [*given, *fill] if at is None else [*given[:at], *fill, *given[at + 1 :]]
        places: list[Any] = []
        left: list[Part | None] = []
        turned: list[int] = []
        axis = 0
        for entry in entries:
            if entry is None:
                places.append(None)
                left.append(None)
                continue
            place, extent = taken(entry, self.extents[axis])
            places.append(place)
            if isinstance(entry, slice):
                if self.extents[axis] is not None and known_integer(entry.step) == -1:
                    turned.append(len(left))
                left.append(extent)
            axis += 1
        return tuple(places), left, turned

    def __getitem__(self, index: Any) -> Any:
        places, left, turned = self.located(index)
        base = self.base[places]
        if isinstance(base, Ragged):
            raise refused("a part of")
        if not any(extent is not None for extent in left):
            return base
        found = Ragged(base, tuple(left))
        for axis in turned:
            found = found.turned(axis)
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        places, left, turned = self.located(index)
        if not any(extent is not None for extent in left):
            self.base[places] = value
            return
        part = Ragged(self.base[places], tuple(left))
        for axis in turned:
            part = part.turned(axis)
        part.write(value)

    def write(self, value: Any) -> None:
        """Set the elements that count.

        Raises:
            Refused: the value may have another shape.
        """
        if isinstance(value, Ragged) and self.same(value):
            return  # ``x[:i] += v`` stores what it has written
        (_, new), extents = aligned([self, value])
        if len(extents) > self.ndim:
            raise refused("an array of more axes assigned to")
        new = stored(self.base, new)
        if any(mine is None and other is not None for mine, other in zip(self.extents, extents, strict=True)):
            raise refused("an axis of one length assigned from")
        self.base[...] = np.where(self.mask(), new, self.base)

    def same(self, other: Ragged) -> bool:
        """Whether both are surely the same memory."""
        mine, others = self.base, other.base
        if mine.storage is not others.storage or len(mine.chain) != len(others.chain):
            return False
        pairs = zip(self.extents, other.extents, strict=True)
        return all(map(same_view, mine.chain, others.chain)) and all(same_part(*pair) for pair in pairs)

    # --- NumPy's protocols ---------------------------------------------------------------------------
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc in RULES and method == "__call__" and not kwargs:
            return RULES[ufunc](*inputs)
        if method == "at" and ufunc in (np.add, np.subtract) and isinstance(inputs[0], Tracer) and picking(inputs[1]):
            value: Any = inputs[2] if isinstance(inputs[2], Ragged) else as_tracer(inputs[2])
            return add_at(inputs[0], inputs[1], -value if ufunc is np.subtract else value)
        if method != "__call__" or kwargs or ufunc.signature is not None:
            raise refused(f"np.{ufunc.__name__} in this form of")
        return elementwise(ufunc, *inputs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        if func not in RULES:
            raise refused(f"np.{func.__name__} of")
        return with_options(RULES[func], func.__name__, *args, **kwargs)

    def __matmul__(self, other: Any) -> Any:
        return RULES[np.matmul](self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return RULES[np.matmul](other, self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in METHODS:
            raise refused(f"{name!r} of")
        return functools.partial(with_options, METHODS[name], name, self)

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise refused("what Python asks of")

    def __len__(self) -> int:
        if not self.extents or self.extents[0] is not None:
            raise refused("Python's length of")
        return self.base.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter([self[k] for k in range(len(self))])

    __array__ = __bool__ = __float__ = __int__ = __complex__ = __index__ = __contains__ = _refuse
    __format__ = __divmod__ = __rdivmod__ = __round__ = _refuse

    def __str__(self) -> str:
        raise refused("an argument, a result or a text that is")


def sized(count: Any, make: Callable[[int], Any]) -> Ragged | None:
    """``make(count)``, a new array of as many elements, if it is known between which numbers the count is."""
    number = affine_of(count) if isinstance(count, Tracer) and count.scalar and count.dtype.kind == "i" else None
    if number is None or not number.terms or number.least() < 0:
        return None
    size = number.most()
    return Ragged(as_tracer(make(size)).copy(), (Extent(0, count, size, ZERO, number),))


def with_options(rule: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
    require_silence()
    try:
        return rule(*args, **kwargs)
    except TypeError as error:  # an option that the rule does not know
        raise refused(f"np.{name} with these options of") from error


def taken(entry: Any, extent: Part | None) -> tuple[Any, Part | None]:
    """An index along one axis as one into the base, and the part that it leaves of that axis."""
    if extent is None:
        if is_traced(entry) or not isinstance(entry, (slice, int, np.integer, Tracer)):
            raise refused("such an index of")
        return entry, None
    if isinstance(entry, slice) and entry.start is entry.stop is None and known_integer(entry.step) in (None, 1, -1):
        return slice(None), extent
    if not isinstance(extent, Extent):
        raise refused("an index of")
    if isinstance(entry, slice):
        found = cut(entry, extent)
        if not found.end.plus(found.first, -1).terms:  # it lies within a part, and is no longer one
            return slice(found.start, found.stop), None
        return slice(None), found
    place = known_integer(entry)
    number = affine_of(place) if isinstance(place, (int, np.integer, Tracer)) and not np.ndim(place) else None
    if number is None or not extent.exact:
        raise refused("such an index of")
    length = extent.end.plus(extent.first, -1)
    if number.least() >= 0 and length.plus(number, -1).least() > 0:
        return extent.start + place, None
    if number.most() < 0 and length.plus(number).least() >= 0:
        return extent.stop + place, None
    raise refused("an index that may be out of bounds of")


def cut(entry: slice, extent: Extent) -> Extent:
    """The part of a part that a slice takes; of one with a step of -1, before it is turned round.

    Raises:
        Refused: it is not sure that it lies within.
    """
    if known_integer(entry.step) not in (None, 1) or not extent.exact:
        raise refused("such steps through")
    ends = []
    for bound, default in ((entry.start, extent.start), (entry.stop, extent.stop)):
        bound = known_integer(bound)
        number = None if bound is None else affine_of(bound)
        if bound is None:
            ends.append(default)
        elif number is not None and number.least() >= 0:
            ends.append(extent.start + bound)
        elif number is not None and number.most() < 0:
            ends.append(extent.stop + bound)
        else:
            raise refused("such a part of")
    found = extent.inside(ends[0], ends[1])
    within = (found.first.plus(extent.first, -1), found.end.plus(found.first, -1), extent.end.plus(found.end, -1))
    if any(distance.least() < 0 for distance in within):
        raise refused("a part that may reach over the ends of")
    return found


def same_part(one: Part | None, other: Part | None) -> bool:
    """Whether two parts of an axis surely are the same."""
    if isinstance(one, Extent) and isinstance(other, Extent):
        return (one.first, one.end) == (other.first, other.end)
    return one is None if other is None else one is not None and one.alike(other)


def same_index(one: Any, other: Any) -> bool:
    if isinstance(one, Window) and isinstance(other, Window):
        return one.same(other)
    return one is other or (isinstance(one, int) and isinstance(other, int) and one == other)


def same_view(one: View, other: View) -> bool:
    """Whether two views of the same memory surely are the same part of it."""
    if isinstance(one, IndexView) and isinstance(other, IndexView):
        pairs = zip(one.indices, other.indices, strict=False)
        alike = one.axis == other.axis and len(one.indices) == len(other.indices)
        return alike and all(map(same_index, *zip(*pairs, strict=True)))
    return one == other


# --- operations on several ----------------------------------------------------------------------------------------


def aligned(operands: Sequence[Any]) -> tuple[list[Any], list[Part | None]]:
    """Operands as arrays of whole axes whose parts stand at the same places, and these parts.

    Raises:
        Refused: they may have different lengths.
    """
    ranks = [np.ndim(x) if not isinstance(x, (Tracer, Ragged)) else x.ndim for x in operands]
    rank = max(ranks)
    extents: list[Part | None] = [None] * rank
    for x, own in zip(operands, ranks, strict=True):
        for axis, extent in enumerate(x.extents if isinstance(x, Ragged) else ()):
            place = axis + rank - own
            extents[place] = extents[place] or extent
    found = []
    for x, own in zip(operands, ranks, strict=True):
        if not isinstance(x, Ragged) and own and not isinstance(x, Tracer):
            x = as_tracer(x)
        base = x.base if isinstance(x, Ragged) else x
        for place, extent in enumerate(extents):
            axis = place - (rank - own)
            mine = x.extents[axis] if isinstance(x, Ragged) and axis >= 0 else None
            if extent is None or axis < 0 or (mine is None and base.shape[axis] == 1):
                continue
            if mine is None or not mine.alike(extent):
                raise refused("other lengths beside")
            base = moved(base, axis, mine, extent)
        found.append(base)
    return found, extents


def moved(base: Tracer, axis: int, extent: Part, wanted: Part) -> Tracer:
    """An array whose part along an axis stands where another one's does."""
    if not isinstance(extent, Extent) or not isinstance(wanted, Extent):
        return base
    if extent.first == wanted.first and extent.size == wanted.size:
        return base
    before: tuple[Any, ...] = (slice(None),) * axis
    shift = wanted.first.plus(extent.first, -1)
    if not shift.terms:  # as slices and zeros, which are loops without indices in derivatives too
        front = min(max(shift.constant, 0), wanted.size)
        part = base[(*before, slice(max(-shift.constant, 0), max(wanted.size - shift.constant, 0)))]
        rest = (front, wanted.size - front - part.shape[axis])
        widths = [rest if k == axis else (0, 0) for k in range(base.ndim)]
        return as_tracer(np.pad(part, widths))
    places: Any = np.arange(wanted.size) + (extent.start - wanted.start)
    return base[(*before, np.clip(places, 0, extent.size - 1))]


def elementwise(function: Callable[..., Any], *operands: Any) -> Any:
    """An elementwise function of operands of which some have parts that count."""
    require_silence()
    bases, extents = aligned(operands)
    found = function(*bases)
    if isinstance(found, tuple):
        return tuple(Ragged(part, tuple(extents)) for part in found)
    return Ragged(found, tuple(extents))


def power(base: Any, exponent: Any) -> Any:
    whole_base = isinstance(base, int) or (isinstance(base, Tracer) and base.dtype.kind in "biu")
    if whole_base and isinstance(exponent, Tracer) and exponent.ndim and exponent.dtype.kind in "iu":
        raise refused("a power, which no negative integer may be the exponent of, in")
    return base**exponent


def install_operators() -> None:
    """Give `Ragged` its operators: those of the arrays of whole axes."""

    def forward(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        return lambda self, other: elementwise(function, self, other)

    def reflected(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        return lambda self, other: elementwise(function, other, self)

    def alone(function: Callable[..., Any]) -> Callable[[Any], Any]:
        return lambda self: elementwise(function, self)

    def augmented(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        def change(self: Ragged, other: Any) -> Ragged:
            found = elementwise(function, self, other)
            if found.ndim > self.ndim:
                raise ShapeError("non-broadcastable output operand: the result has more axes")
            if not np.can_cast(found.dtype, self.dtype, "same_kind"):
                raise DTypeError(f"cannot cast the result from {found.dtype} to {self.dtype}")
            self.write(found)
            return self

        return change

    for name in BINARY:
        if name != "matmul":
            function = power if name == "pow" else getattr(operator, f"{name}_" if name in ("and", "or") else name)
            setattr(Ragged, f"__{name}__", forward(function))
            setattr(Ragged, f"__r{name}__", reflected(function))
            setattr(Ragged, f"__i{name}__", augmented(function))
    for name in COMPARE:
        setattr(Ragged, f"__{name}__", forward(getattr(operator, name)))
    for name in UNARY:
        setattr(Ragged, f"__{name}__", alone(getattr(operator, name)))
    Ragged.__hash__ = None  # type: ignore[assignment]


install_operators()
