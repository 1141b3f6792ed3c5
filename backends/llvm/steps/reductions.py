"""Reductions that no group has: of complex numbers and float16 by the loops of NumPy's ufuncs, norms.

A loop of a ufunc reduces where its first operand and its result are one number, with a stride of 0: so sums along rows
are pairwise, and those of float16 are rounded where NumPy rounds them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.backends.llvm.emitter import Number
from srcgrad.backends.llvm.indices import strides_of
from srcgrad.backends.llvm.scalars import F16
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.body import Body, raw_text
from srcgrad.backends.llvm.steps.ufuncs import UfuncCall, loop_for
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Literal, Operation
from srcgrad.ir.types import ArrayType, DType, real_dtype

CHUNK: Final = 2048
"""How many squares are written down at once."""
_UFUNCS: Final[dict[str, tuple[np.ufunc, float]]] = {
    "reduce_sum": (np.add, 0.0),
    "reduce_prod": (np.multiply, 1.0),
    "reduce_max": (np.maximum, -np.inf),
    "reduce_min": (np.minimum, np.inf),
}
"""Per reduction what joins two numbers, and what it begins with."""


def call_of(w: Body, ufunc: np.ufunc, *inputs: DType) -> UfuncCall | None:
    found = loop_for(ufunc, inputs)
    return None if found is None else UfuncCall(w, ufunc, found[0], inputs)


def fill(w: Body, number: Any, dtype: DType) -> None:
    """A number in all of result 0."""
    value = np.full((), number, dtype)[()]
    if dtype.kind == "c" and number == 0:
        value = np.array([number, number], real_dtype(dtype)).view(dtype)[0]
    bits = raw_text(Literal(value, ArrayType(dtype)))
    w.each(w.results[0].size, lambda k: w.put(k, bits, dtype.itemsize))


class _Walk:
    """An operand as blocks of axes that are reduced and blocks that are kept, in turn."""

    def __init__(self, shape: Sequence[int], axes: Sequence[int]) -> None:
        self.sizes: list[int] = []
        self.reduced: list[bool] = []
        for axis, size in enumerate(shape):
            if self.reduced and self.reduced[-1] == (axis in axes):
                self.sizes[-1] *= size
            else:
                self.sizes.append(size)
                self.reduced.append(axis in axes)
        kept = [size for size, gone in zip(self.sizes, self.reduced, strict=True) if not gone]
        steps = iter(strides_of(kept))
        self.steps = [0 if gone else next(steps) for gone in self.reduced]
        self.places = strides_of(self.sizes)

    def run(self, w: Body, body: Callable[[Number, Number, int, bool], None]) -> None:
        """``body(place of the result, place of the operand, length, reduced)`` for each row of the last block."""

        def row(indices: list[Number]) -> None:
            result = w.flat(*zip(indices, self.steps[:-1], strict=True))
            body(result, w.flat(*zip(indices, self.places[:-1], strict=True)), self.sizes[-1], self.reduced[-1])

        w.nest(self.sizes[:-1], row)


def reduction(operation: Operation, name: str, target: Target) -> Step | None:
    """One loop per row; float16 where NumPy's order is that of the rows."""
    w = Body(operation, name, target)
    (type,), dtype, axes = w.types, w.types[0].dtype, operation.attrs["axes"]
    ufunc, identity = _UFUNCS[operation.op.name]
    if dtype.kind not in "fc" or 0 in w.unread:
        return None
    call = call_of(w, ufunc, dtype, dtype)
    if call is None:
        return None
    if not axes:
        w.transfer(0, 0, 0, type.size)
        return w.finish()
    walk = _Walk(type.static_shape, axes)
    if dtype == F16 and len(walk.sizes) > 2:
        return None
    fill(w, identity, dtype)
    if 0 in type.static_shape:
        return w.finish()
    size = dtype.itemsize

    def row(result: Number, source: Number, count: int, reduced: bool) -> None:
        into = w.address("%out0", result, size)
        step = 0 if reduced else size
        call([into, w.address("%in0", source, size), into], [step, size, step], count)

    walk.run(w, row)
    return w.finish()


def norm(operation: Operation, name: str, target: Target) -> Step | None:
    """The root of the sum of squares, which are written down a few at a time."""
    w = Body(operation, name, target)
    (type,), dtype, axes = w.types, w.types[0].dtype, operation.attrs["axes"]
    part = w.results[0].dtype
    if dtype == F16 or 0 in w.unread:
        return None
    size_of = call_of(w, np.absolute, dtype) if dtype.kind == "c" else None
    square, add, root = call_of(w, np.square, part), call_of(w, np.add, part, part), call_of(w, np.sqrt, part)
    if square is None or add is None or root is None or (dtype.kind == "c" and size_of is None):
        return None
    fill(w, 0.0, part)
    squares, size = w.take_scratch(CHUNK * part.itemsize), part.itemsize

    def chunk(result: Number, source: Number, count: int, reduced: bool) -> None:
        read = w.address("%in0", source, dtype.itemsize)
        if size_of is not None:
            size_of([read, squares], [dtype.itemsize, size], count)
            read = squares
        square([read, squares], [size, size], count)
        into, step = w.address("%out0", result, size), 0 if reduced else size
        add([into, squares, into], [step, size, step], count)

    def row(result: Number, source: Number, count: int, reduced: bool) -> None:
        whole, rest = divmod(count, CHUNK)

        def at(place: Number, length: int) -> None:
            chunk(result if reduced else w.plus(result, place), w.plus(source, place), length, reduced)

        w.each(whole, lambda k: at(w.times(k, CHUNK), CHUNK))
        if rest:
            at(w.i64(whole * CHUNK), rest)

    if 0 not in type.static_shape:
        _Walk(type.static_shape or (1,), axes).run(w, row)
    if w.results[0].size:
        root(["%out0", "%out0"], [size, size], w.results[0].size)
    return w.finish()


WRITERS: Final[dict[str, StepWriter]] = {
    **dict.fromkeys(_UFUNCS, reduction),
    "reduce_norm": norm,
}
