"""View chains: how a traced array reads from, and writes to, the memory it views.

A read applies the views from the storage outwards; a write puts the new value through their inverses, from the last
view back to the storage. So aliasing, in-place assignment and ``out=`` have NumPy's meaning while the IR stays pure.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from srcgrad.errors import MutationError
from srcgrad.ir.core import Value
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import DType
from srcgrad.tracing.storage import Storage
from srcgrad.tracing.trace import Trace


class View:
    """One step from a base to a view of it. Views are never changed; `dataclass` is not asked to see to it, which would
    make each process, and each view, slower.
    """

    gathers: ClassVar[bool] = False
    """Whether it shows elements more than once, so that all that it shows is much more than the base."""
    varies: ClassVar[bool] = False
    """Whether traced numbers decide what it shows."""

    @abstractmethod
    def forward(self, trace: Trace, base: Value) -> Value:
        """The view's value."""

    @abstractmethod
    def backward(self, trace: Trace, base: Value, new: Value) -> Value:
        """The base's value once the view holds ``new``."""

    @abstractmethod
    def apply(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The same view of a NumPy array, which decides strides and sharing."""


@dataclass(unsafe_hash=True, repr=False)
class SliceView(View):
    """``base[start:limit:stride, ...]`` with positive strides."""

    starts: tuple[int, ...]
    limits: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def attrs(self) -> dict[str, Any]:
        return {"starts": self.starts, "limits": self.limits, "strides": self.strides}

    def forward(self, trace: Trace, base: Value) -> Value:
        return trace.emit(REGISTRY["slice"], [base], self.attrs)

    def backward(self, trace: Trace, base: Value, new: Value) -> Value:
        return trace.emit(REGISTRY["slice_set"], [base, new], self.attrs)

    @property
    def places(self) -> tuple[slice, ...]:
        return tuple(map(slice, self.starts, self.limits, self.strides))

    def apply(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array[self.places]


@dataclass(unsafe_hash=True, repr=False)
class ReverseView(View):
    """``base[::-1]`` along some axes."""

    axes: tuple[int, ...]

    def forward(self, trace: Trace, base: Value) -> Value:
        return trace.emit(REGISTRY["reverse"], [base], {"axes": self.axes})

    def backward(self, trace: Trace, base: Value, new: Value) -> Value:
        return trace.emit(REGISTRY["reverse"], [new], {"axes": self.axes})

    def apply(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.flip(array, self.axes)


@dataclass(unsafe_hash=True, repr=False)
class TransposeView(View):
    """The axes in another order."""

    perm: tuple[int, ...]

    def forward(self, trace: Trace, base: Value) -> Value:
        return trace.emit(REGISTRY["transpose"], [base], {"perm": self.perm})

    def backward(self, trace: Trace, base: Value, new: Value) -> Value:
        inverse = tuple(int(axis) for axis in np.argsort(self.perm))
        return trace.emit(REGISTRY["transpose"], [new], {"perm": inverse})

    def apply(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array.transpose(self.perm)


@dataclass(unsafe_hash=True, repr=False)
class ReshapeView(View):
    """Another shape, where NumPy can give one without copying."""

    shape: tuple[int, ...]

    def forward(self, trace: Trace, base: Value) -> Value:
        return trace.emit(REGISTRY["reshape"], [base], {"shape": self.shape})

    def backward(self, trace: Trace, base: Value, new: Value) -> Value:
        return trace.emit(REGISTRY["reshape"], [new], {"shape": base.type.shape})

    def apply(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array.reshape(self.shape)


@dataclass(unsafe_hash=True, repr=False)
class PartView(View):
    """The real or imaginary part of a complex array."""

    part: str

    def forward(self, trace: Trace, base: Value) -> Value:
        return trace.emit(REGISTRY[self.part], [base])

    def backward(self, trace: Trace, base: Value, new: Value) -> Value:
        other = trace.emit(REGISTRY["imag" if self.part == "real" else "real"], [base])
        parts = [new, other] if self.part == "real" else [other, new]
        return trace.emit(REGISTRY["complex"], parts)

    def apply(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        view: np.ndarray[Any, Any] = getattr(array, self.part)
        return view


def as_pairs(trace: Trace, value: Value) -> Value:
    """Complex numbers as real ones, twice as many along the last axis."""
    shape = value.type.static_shape
    parts = [trace.emit(REGISTRY[part], [value]) for part in ("real", "imag")]
    parts = [trace.emit(REGISTRY["reshape"], [part], {"shape": (*shape, 1)}) for part in parts]
    joined = trace.emit(REGISTRY["concatenate"], parts, {"axis": len(shape)})
    return trace.emit(REGISTRY["reshape"], [joined], {"shape": (*shape[:-1], 2 * shape[-1])})


def as_complex(trace: Trace, value: Value) -> Value:
    """Real numbers in pairs along the last axis as complex ones."""
    shape = value.type.static_shape
    limits, every = shape[:-1], (1,) * (len(shape) - 1)
    parts = []
    for first in (0, 1):
        attrs = {"starts": (0,) * len(limits) + (first,), "limits": shape, "strides": (*every, 2)}
        parts.append(trace.emit(REGISTRY["slice"], [value], attrs))
    return trace.emit(REGISTRY["complex"], parts)


@dataclass(unsafe_hash=True, repr=False)
class NumbersView(View):
    """Complex numbers seen as pairs of real ones, or the other way round."""

    dtype: DType

    def forward(self, trace: Trace, base: Value) -> Value:
        return as_complex(trace, base) if self.dtype.kind == "c" else as_pairs(trace, base)

    def backward(self, trace: Trace, base: Value, new: Value) -> Value:
        return as_pairs(trace, new) if self.dtype.kind == "c" else as_complex(trace, new)

    def apply(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array.view(self.dtype)


class ReadOnlyView(View):
    """A view that NumPy does not let one write through."""

    def backward(self, trace: Trace, base: Value, new: Value) -> Value:
        raise MutationError("assignment destination is read-only", hint="write into a copy: x = x.copy()")


@dataclass(unsafe_hash=True, repr=False)
class LockedView(ReadOnlyView):
    """The same array, which the user has made read-only."""

    def forward(self, trace: Trace, base: Value) -> Value:
        return base

    def apply(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        view = array.view()
        view.flags.writeable = False
        return view


@dataclass(unsafe_hash=True, repr=False)
class BroadcastView(ReadOnlyView):
    """The elements repeated along new axes and axes of size 1."""

    shape: tuple[int, ...]

    def forward(self, trace: Trace, base: Value) -> Value:
        dims = tuple(range(len(self.shape) - base.type.rank, len(self.shape)))
        return trace.emit(REGISTRY["broadcast"], [base], {"shape": self.shape, "dims": dims})

    def apply(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.broadcast_to(array, self.shape)


@dataclass(unsafe_hash=True, repr=False)
class DiagonalView(ReadOnlyView):
    """A diagonal of two axes, which becomes the last axis."""

    offset: int
    axis1: int
    axis2: int

    def perm(self, rank: int) -> tuple[int, ...]:
        """The two axes before all others."""
        axes = (self.axis1, self.axis2)
        return (*axes, *(axis for axis in range(rank) if axis not in axes))

    def places(self, trace: Trace, base: Value) -> list[Value]:
        rows, columns = (base.type.static_shape[axis] for axis in (self.axis1, self.axis2))
        start, stop = max(-self.offset, 0), min(rows, columns - self.offset)
        places = np.arange(start, max(start, stop))
        return [trace.constant(places), trace.constant(places + self.offset)]

    def forward(self, trace: Trace, base: Value) -> Value:
        front = trace.emit(REGISTRY["transpose"], [base], {"perm": self.perm(base.type.rank)})
        diagonal = trace.emit(REGISTRY["gather"], [front, *self.places(trace, base)], {"axis": 0})
        return trace.emit(REGISTRY["transpose"], [diagonal], {"perm": (*range(1, diagonal.type.rank), 0)})

    def apply(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array.diagonal(self.offset, self.axis1, self.axis2)


class WritableDiagonalView(DiagonalView):
    """The diagonal as ``np.einsum`` shows it, which may be written through."""

    def backward(self, trace: Trace, base: Value, new: Value) -> Value:
        perm, rank = self.perm(base.type.rank), new.type.rank
        front = trace.emit(REGISTRY["transpose"], [base], {"perm": perm})
        rows = trace.emit(REGISTRY["transpose"], [new], {"perm": (rank - 1, *range(rank - 1))})
        written = trace.emit(REGISTRY["scatter_set"], [front, rows, *self.places(trace, base)], {"axis": 0})
        inverse = tuple(int(axis) for axis in np.argsort(perm))
        return trace.emit(REGISTRY["transpose"], [written], {"perm": inverse})

    def apply(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        view = super().apply(array)
        view.flags.writeable = array.flags.writeable
        return view


def windows(trace: Trace, base: Value, axis: int, starts: range, offsets: range) -> Value:
    """The elements at a start and an offset along an axis, which is that of the starts; the offsets are the last."""
    places = np.array(starts, np.int64)[:, None] + np.array(offsets, np.int64)
    found = trace.emit(REGISTRY["gather"], [base, trace.constant(places)], {"axis": axis})
    kept = [k for k in range(found.type.rank) if k != axis + 1]
    return found if kept[-1] == axis else trace.emit(REGISTRY["transpose"], [found], {"perm": (*kept, axis + 1)})


@dataclass(unsafe_hash=True, repr=False)
class WindowsView(ReadOnlyView):
    """The windows of some sizes along axes, as new last axes."""

    gathers = True
    sizes: tuple[int, ...]
    axes: tuple[int, ...]

    def forward(self, trace: Trace, base: Value) -> Value:
        for size, axis in zip(self.sizes, self.axes, strict=True):
            base = windows(trace, base, axis, range(base.type.static_shape[axis] - size + 1), range(size))
        return base

    def part(self, trace: Trace, base: Value, taken: SliceView) -> Value:
        """What a slice takes of the windows, of which no others are gathered: often it is each hundredth."""
        shape = list(base.type.static_shape)
        for size, axis in zip(self.sizes, self.axes, strict=True):
            shape[axis] -= size - 1
        ends = [range(size)[place] for size, place in zip((*shape, *self.sizes), taken.places, strict=True)]
        bounds = [
            (0, size, 1) if k in self.axes else (place.start, place.stop, place.step)
            for k, (size, place) in enumerate(zip(base.type.static_shape, taken.places, strict=False))
        ]
        base = SliceView(*zip(*bounds, strict=True)).forward(trace, base)
        for k, axis in enumerate(self.axes, start=len(shape)):
            base = windows(trace, base, axis, ends[axis], ends[k])
        return base

    def apply(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.lib.stride_tricks.sliding_window_view(array, self.sizes, self.axes)


@dataclass(unsafe_hash=True, repr=False)
class StridedView(ReadOnlyView):
    """The elements at some strides in memory; NumPy lets one write through it, of which the order would matter."""

    gathers = True
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    places: np.ndarray[Any, Any] = field(compare=False)
    """Which of the base's elements, in C order, each is: the strides and the base's layout decide."""

    def forward(self, trace: Trace, base: Value) -> Value:
        flat = trace.emit(REGISTRY["reshape"], [base], {"shape": (base.type.size,)})
        return trace.emit(REGISTRY["gather"], [flat, trace.constant(self.places)], {"axis": 0})

    def apply(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.lib.stride_tricks.as_strided(array, self.shape, self.strides)


Chain = tuple[View, ...]


def seen_through(trace: Trace, base: Value, chain: Chain) -> Value:
    """What the views show of a base."""
    views = list(chain)
    while views:
        view = views.pop(0)
        taken = taken_of(view, views)
        if taken is not None and isinstance(view, WindowsView):
            base = view.part(trace, base, taken)
            views.pop(0)
        else:
            base = view.forward(trace, base)
    return base


def taken_of(view: View, following: Sequence[View]) -> SliceView | None:
    """The slice that follows a view of windows, each along its own axis: the others are not gathered."""
    if not isinstance(view, WindowsView) or len(set(view.axes)) != len(view.axes) or not following:
        return None
    return following[0] if isinstance(following[0], SliceView) else None


def seen_of(trace: Trace, storage: Storage, base: Value, chain: Chain) -> Value:
    """What the views show of memory whose value is ``base``.

    What views that gather show is kept, in the trace that wrote the memory last: a loop that reads parts of it gathers
    once, before it begins.
    """
    last = max((k + 1 for k, view in enumerate(chain) if view.gathers), default=0)
    last += bool(last and taken_of(chain[last - 1], chain[last:]))
    first, rest = chain[:last], chain[last:]
    if not last or any(view.varies for view in first):
        return seen_through(trace, base, chain)
    home = trace.writer(storage)
    own, operations = home.content(storage), home.builder.operations
    kept = storage.shown.get(first) if storage.shown else None
    if kept is None or kept.base is not own or kept.trace is not home or not kept.lasts():
        value = seen_through(home, own, first)
        kept = Shown(own, home, value, len(operations), operations[-1] if operations else None)
        storage.shown = {**(storage.shown or {}), first: kept}
    return seen_through(trace, trace.reached(kept.value, home), rest)


class Shown(NamedTuple):
    """What views show of a value of memory, in a trace."""

    base: Value
    trace: Trace
    value: Value
    length: int
    last: Any
    """The number of operations of the trace at that time, and the last of them: some may be taken back since."""

    def lasts(self) -> bool:
        operations = self.trace.builder.operations
        return not self.length or (self.length <= len(operations) and operations[self.length - 1] is self.last)


def put_through(trace: Trace, base: Value, chain: Chain, new: Value) -> Value:
    """The base's value once the last of the views holds ``new``."""
    bases = [base]
    for view in chain[:-1]:
        bases.append(view.forward(trace, bases[-1]))
    for view, inner in zip(reversed(chain), reversed(bases), strict=False):
        new = view.backward(trace, inner, new)
    return new
