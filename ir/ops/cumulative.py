"""Running extremes and running logarithms of sums of exponentials, and extremes and sums that start anew at marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.errors import DTypeError, ShapeError
from srcgrad.ir.opdef import (
    REGISTRY,
    Elementwise,
    Linear,
    LinearEmitter,
    Op,
    Sample,
    Tangent,
    Term,
    Zero,
    batch_all,
    require_arity,
    require_kinds,
)
from srcgrad.ir.ops.recurrences import cut, from_second
from srcgrad.ir.ops.shapes import require_axes
from srcgrad.ir.types import BOOL, ArrayType, Size


class Cumulative(Op, abstract=True):
    """An op of one operand along ``axis`` whose element k depends on the operand's elements 0 to k."""

    kinds: ClassVar[str] = "f"

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_kinds(self, types[0], self.kinds)
        require_axes(self.name, types[0], (attrs["axis"],))
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"{self.meaning}.accumulate({operands[0]}, axis={attrs['axis']})"

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], axis=attrs["axis"] + 1)

    def samples(self) -> Iterator[Sample]:
        values = np.array([[1.5, -2.0, 2.5, 0.5], [3.0, 0.25, -1.0, -3.5]])
        for axis in (0, 1):
            yield Sample((values,), {"axis": axis})
        yield Sample((values[1, ::-1],), {"axis": 0}, label="increasing")
        yield Sample((values.astype(np.float32),), {"axis": 1}, label="float32")
        yield Sample((values[:0],), {"axis": 0}, label="empty")


def extreme_tangent(
    s: LinearEmitter, operand: Term, extreme: Term, tangent: Tangent, marks: Term | None, axis: int
) -> Tangent:
    """The mean of the tangents of what is equal to the extreme, since the extreme last changed or started anew."""
    size = extreme.type.static_shape[axis]
    if size < 2:
        return tangent
    is_nan = REGISTRY["is_nan"]
    chosen = (operand == extreme) | is_nan(operand)
    piece, absent = REGISTRY["slice"], Zero(operand.type)
    before, after = piece(extreme, **cut(extreme, axis, 0, size - 1)), piece(extreme, **cut(extreme, axis, 1, size))
    changed = (before != after) & ~is_nan(before)
    first = piece(extreme, **cut(extreme, axis, 0, 1))
    restart = REGISTRY["concatenate"](first.like(False, BOOL), changed, axis=axis)
    if marks is not None:
        restart = restart | marks
    span = {"axis": axis, "reverse": False}
    summed = REGISTRY["restarting_cumsum"]
    count = summed(REGISTRY["cast"](chosen, dtype=operand.dtype), restart, **span)
    part = s.select(chosen, tangent, absent)
    return s.apply(REGISTRY["div"], [s.apply(summed, [part, restart], span), count])


class RunningExtreme(Cumulative, abstract=True):
    """The extreme of the elements up to each one; nan from the first nan on.

    The derivative is that of the extreme of these elements: those equal to it share it equally, and so do all nan once
    there is one. What is not chosen does not contribute.
    """

    kinds = "biuf"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        return (extreme_tangent(s, operands[0], results[0], tangents[0], None, attrs["axis"]),)

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        ties = np.array([[1.0, 1.0, 0.0, 1.0, -1.0], [0.0, -0.0, 2.0, 2.0, -3.0], [1.0, np.nan, 3.0, np.nan, -np.inf]])
        yield Sample((ties,), {"axis": 1}, smooth=False, label="ties and nan")
        yield Sample((np.array([3, 1, 4, 1, 5]),), {"axis": 0}, label="integers")
        yield Sample((np.array([False, True, False]),), {"axis": 0}, label="booleans")


class Cummax(RunningExtreme):
    """The largest element so far along ``axis``."""

    meaning = "np.maximum"


class Cummin(RunningExtreme):
    """The smallest element so far along ``axis``."""

    meaning = "np.minimum"


def require_marks(name: str, types: Sequence[ArrayType]) -> None:
    """Refuse what are no booleans, one for each element."""
    if types[1].dtype != BOOL:
        raise DTypeError(f"{name}: the marks are {types[1]}, not booleans")
    if types[1].shape != types[0].shape:
        raise ShapeError(f"{name}: {types[0]} and the marks {types[1]} differ")


class RestartingExtreme(Op, abstract=True):
    """Running extremes along ``axis`` that start anew at each element where the second operand is true.

    The derivative is that of the extreme of these elements, as of running extremes.
    """

    meaning: ClassVar[str]
    helpers: ClassVar[tuple[str, ...]] = ("restarting_cumsum",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        require_kinds(self, types[0], "biuf")
        require_axes(self.name, types[0], (attrs["axis"],))
        require_marks(self.name, types)
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"restarting_cumsum({operands[0]}, {operands[1]}, {attrs['axis']}, False, {self.meaning})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        return (extreme_tangent(s, operands[0], results[0], tangents[0], operands[1], attrs["axis"]),)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(*batch_all(size, operands, batched), axis=attrs["axis"] + 1)

    def samples(self) -> Iterator[Sample]:
        values = np.array([[1.5, -2.0, 0.5, 4.0, 0.25], [3.0, 0.25, -1.0, 2.0, 7.0]])
        marks = np.array([[False, False, True, False, True], [True, False, False, False, True]])
        for axis in (0, 1):
            yield Sample((values, marks), {"axis": axis})
        ties = np.array(
            [[1.0, 1.0, 1.0, 1.0, -1.0], [2.0, np.nan, 2.0, 2.0, np.inf], [np.nan, 1.0, 3.0, np.nan, -np.inf]]
        )
        anew = np.array([[False, False, True, False, True]] * 3)
        yield Sample((ties, anew), {"axis": 1}, smooth=False, label="ties and nan")
        yield Sample((values.astype(np.float32), marks), {"axis": 1}, label="float32")
        yield Sample((np.array([3, 1, 4, 1, 5]), marks[0]), {"axis": 0}, label="integers")
        yield Sample((values > 1, marks), {"axis": 1}, label="booleans")
        yield Sample((values[:0], marks[:0]), {"axis": 0}, label="empty")


class RestartingCummax(RestartingExtreme):
    """The largest element since the last mark along ``axis``."""

    meaning = "np.maximum"


class RestartingCummin(RestartingExtreme):
    """The smallest element since the last mark along ``axis``."""

    meaning = "np.minimum"


class RestartingCumsum(Linear):
    """Cumulative sums along ``axis`` that start anew at each element where the second operand is true.

    From the end if ``reverse``: a sum then ends with the element that starts anew. Of booleans, the disjunction. No
    sum is the difference of others: each is as accurate as if it stood alone.
    """

    masking = "mix"
    helpers: ClassVar[tuple[str, ...]] = ("restarting_cumsum",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        require_axes(self.name, types[0], (attrs["axis"],))
        require_marks(self.name, types)
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"restarting_cumsum({operands[0]}, {operands[1]}, {attrs['axis']}, {attrs['reverse']})"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        restart = operands[1]
        if isinstance(restart, Zero):
            return (None, None)
        back = {"axis": attrs["axis"], "reverse": not attrs["reverse"]}
        return (s.apply(self, [cotangents[0], restart], back), None)

    def mask(self, operands: Sequence[Term], attrs: Attrs) -> Term:
        return self(*operands, **attrs)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(*batch_all(size, operands, batched), axis=attrs["axis"] + 1, reverse=attrs["reverse"])

    def samples(self) -> Iterator[Sample]:
        values = np.array([[1.5, -2.0, 0.5, 4.0, 0.25], [3.0, 0.25, -1.0, 2.0, 7.0]])
        marks = np.array([[False, False, True, False, True], [True, False, False, False, True]])
        for reverse in (False, True):
            for axis in (0, 1):
                yield Sample((values, marks), {"axis": axis, "reverse": reverse})
            inner = {"axis": 1, "reverse": reverse}
            yield Sample((values.astype(np.float32), marks), inner, label="float32")
            yield Sample((values * (1 - 2j), marks), inner, label="complex")
            yield Sample((values > 1, marks), inner, label="booleans")
            yield Sample((values[:0], marks[:0]), {"axis": 0, "reverse": reverse}, label="empty")


class Cumlogsumexp(Cumulative):
    """The logarithm of the sum of the exponentials of the elements so far along ``axis``, none of which overflows."""

    meaning = "np.logaddexp"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """Of y[k] = logaddexp(y[k - 1], x[k]): each partial derivative is a share, and their sum 1."""
        axis, (x,), (y,) = attrs["axis"], operands, results
        size = y.type.static_shape[axis]
        if size < 2:
            return (tangents[0],)
        op, part = REGISTRY["logaddexp"], REGISTRY["slice"]
        if not isinstance(op, Elementwise):
            raise TypeError("logaddexp is elementwise")
        terms = part(y, **cut(y, axis, 0, size - 1)), part(x, **cut(x, axis, 1, size))
        result = part(y, **cut(y, axis, 1, size))
        kept, own = (op.partial(k, result, *terms) for k in range(2))
        assert isinstance(kept, Term) and isinstance(own, Term)
        factors = REGISTRY["concatenate"](part(x, **cut(x, axis, 0, 1)).like(0), kept, axis=axis)
        tangent = from_second(s, tangents[0], own, axis)
        return (s.apply(REGISTRY["linear_recurrence"], [tangent, factors], {"axis": axis, "reverse": False}),)

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        yield Sample((np.array([-800.0, 0.5, 800.0, 799.0, 0.0]),), {"axis": 0}, label="large")
