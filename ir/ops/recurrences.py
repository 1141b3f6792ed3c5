"""Linear recurrences of first order, in one pass: what derivatives of running products and logarithms are.

They are computed in the order of the elements. Joined in pairs, as sums may be, products of many coefficients would
overflow or vanish where no result does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from srcgrad.ir.core import Attrs, Region
from srcgrad.ir.opdef import (
    REGISTRY,
    Lin,
    Linear,
    LinearEmitter,
    LinearOperand,
    Sample,
    Tangent,
    Term,
    Zero,
    batch_all,
    require_arity,
    require_kinds,
    require_same,
)
from srcgrad.ir.ops.linear_control import masked
from srcgrad.ir.ops.shapes import require_axes
from srcgrad.ir.types import BOOL, ArrayType, Size


def cut(x: Term | Tangent, axis: int, start: int, limit: int) -> Attrs:
    """What a slice along one axis takes."""
    shape = x.type.static_shape
    return {
        "starts": tuple(start if k == axis else 0 for k in range(len(shape))),
        "limits": tuple(limit if k == axis else size for k, size in enumerate(shape)),
        "strides": (1,) * len(shape),
    }


def running_product(s: LinearEmitter, x: Term, y: Term, tangent: Tangent, axis: int) -> Tangent:
    """The tangent of a running product y of x: of y[k] = x[k] y[k - 1] it is dx[k] y[k - 1] + x[k] dy[k - 1]."""
    size = y.type.static_shape[axis]
    if size < 2:
        return tangent
    own = from_second(s, tangent, REGISTRY["slice"](y, **cut(y, axis, 0, size - 1)), axis)
    return s.apply(REGISTRY["linear_recurrence"], [own, x], {"axis": axis, "reverse": False})


def from_second(s: LinearEmitter, tangent: Tangent, factor: Term, axis: int) -> Tangent:
    """The tangent along an axis, from the second element on times a factor that has one element less."""
    size = tangent.type.static_shape[axis]
    slices = [cut(tangent, axis, 0, 1), cut(tangent, axis, 1, size)]
    first, rest = (s.apply(REGISTRY["slice"], [tangent], attrs) for attrs in slices)
    return s.apply(REGISTRY["concatenate"], [first, s.scale(rest, factor)], {"axis": axis})


class LinearRecurrence(Linear):
    """y[k] = x[k] + a[k] y[k - 1] along ``axis``, of x and a; from the end, if ``reverse``, x[k] + a[k + 1] y[k + 1].

    So one is the transpose of the other, and the coefficient at 0 has no meaning.
    """

    helpers: ClassVar[tuple[str, ...]] = ("linear_recurrence",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        require_axes(self.name, types[0], (attrs["axis"],))
        require_kinds(self, types[0], "fc")
        require_same(self, types)
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"linear_recurrence({operands[0]}, {operands[1]}, {attrs['axis']}, {attrs['reverse']})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """The same recurrence of dx[k] + da[k] y[k - 1]."""
        (tangent, change), y, axis = tangents, results[0], attrs["axis"]
        size = y.type.static_shape[axis]
        if isinstance(change, Lin) and size > 1:
            one = Zero(y.type.with_shape((*y.shape[:axis], 1, *y.shape[axis + 1 :])))
            change = s.apply(REGISTRY["slice"], [change], cut(change, axis, 1, size))
            beside = cut(y, axis, 1, size) if attrs["reverse"] else cut(y, axis, 0, size - 1)
            part = s.scale(change, REGISTRY["slice"](y, **beside))
            parts = [part, one] if attrs["reverse"] else [one, part]
            tangent = s.add(tangent, s.apply(REGISTRY["concatenate"], parts, {"axis": axis}))
        return (s.apply(self, [tangent, operands[1]], attrs),)

    def apply_linear(
        self, s: LinearEmitter, operands: Sequence[LinearOperand], attrs: Attrs, regions: Sequence[Region]
    ) -> list[Tangent]:
        """Until something has come in, what is carried is structurally zero, whatever it is multiplied by."""
        emitter, (tangent, a) = masked(s), operands
        assert isinstance(tangent, Lin) and isinstance(a, Term)
        axis, size, builder = attrs["axis"], a.type.static_shape[attrs["axis"]], s.builder
        if tangent.mask is None or not a.type.size:
            return [Lin(builder.emit(self, [tangent.value, a.value], attrs), tangent.mask)]
        mask = Term(builder, emitter.full_mask(tangent))
        begun: Term = REGISTRY["restarting_cumsum"](mask, mask.like(False), **attrs)
        carried = begun
        if not attrs["reverse"]:
            one = REGISTRY["slice"](begun, **cut(begun, axis, 0, 1))
            rest = REGISTRY["slice"](begun, **cut(begun, axis, 0, size - 1))
            carried = REGISTRY["concatenate"](one.like(False, BOOL), rest, axis=axis)
        known = emitter.patterns.of(carried.value)
        factor = a if known is not None and known.always else REGISTRY["select"](carried, a, a.like(0))
        return [emitter.lin(builder.emit(self, [emitter.blend(tangent), factor.value], attrs), begun.value, True)]

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        a = operands[1]
        if isinstance(a, Zero):
            return (cotangents[0], None)
        return (s.apply(self, [cotangents[0], a], {"axis": attrs["axis"], "reverse": not attrs["reverse"]}), None)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(*batch_all(size, operands, batched), axis=attrs["axis"] + 1, reverse=attrs["reverse"])

    def samples(self) -> Iterator[Sample]:
        values = np.array([[1.5, -2.0, 0.5, 4.0], [3.0, 0.25, -1.0, 2.0], [0.5, 0.0, 7.0, -3.0]])
        factors = np.array([[0.5, 2.0, -0.25, 0.0], [1.0, -1.5, 0.75, 3.0], [0.0, 0.5, 1.25, -2.0]])
        for reverse in (False, True):
            for axis in (0, 1):
                yield Sample((values, factors), {"axis": axis, "reverse": reverse})
            inner = {"axis": 1, "reverse": reverse}
            yield Sample((values.astype(np.float32), factors.astype(np.float32)), inner, label="float32")
            yield Sample((values * (1 - 2j), factors * (0.5 + 1j)), inner, label="complex")
            yield Sample((values[:0], factors[:0]), {"axis": 0, "reverse": reverse}, label="empty")
            yield Sample((values[:, :1], factors[:, :1]), inner, label="one element")
