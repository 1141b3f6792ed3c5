"""Roundings, signs and absolute values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.opdef import (
    REGISTRY,
    Elementwise,
    LinearEmitter,
    NonDifferentiable,
    Sample,
    Tangent,
    Term,
    Unary,
    Zero,
)


class Rounding(NonDifferentiable, Unary, abstract=True):
    """A rounding to whole numbers: piecewise constant."""

    kinds = "f"
    intervals = ((0.1, 0.4),)
    jvp = NonDifferentiable.jvp


class Floor(Rounding):
    """The largest whole number that is not above x."""

    meaning = "np.floor"


class Ceil(Rounding):
    """The smallest whole number that is not below x."""

    meaning = "np.ceil"


class Trunc(Rounding):
    """x rounded towards 0."""

    meaning = "np.trunc"


class Rint(Rounding):
    """The nearest whole number; halves go to the even one."""

    meaning = "np.rint"
    kinds = "fc"


def along(s: LinearEmitter, z: Term, tangent: Tangent, length: Term) -> Tangent:
    """Re(conj(z) t) over a length, and 0 where that is 0: by parts, each of which has a slope of the length."""
    parts = []
    for part, op in enumerate((REGISTRY["real"], REGISTRY["imag"])):
        slope = REGISTRY["select"](length == 0.0, 0.0, op(z) / length)
        slope = REGISTRY["slope_of_norm"](slope, length, order=0, part=part)
        parts.append(s.scale(s.apply(op, [tangent]), slope))
    return s.add(*parts)


class Abs(Elementwise):
    """The absolute value, real also of complex numbers; at the kink 0 the derivative is 0."""

    meaning = "np.abs"
    kinds = "iufc"
    result_kind = "real"
    intervals = ((0.5, 2.0),)

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """sign(x) t of a real x; Re(conj(z) t)/|z| of a complex z, and 0 at 0."""
        operand = operands[0]
        if operand.dtype.kind != "c":
            return (s.scale(tangents[0], REGISTRY["slope_of_abs"](operand, order=0)),)
        return (along(s, operand, tangents[0], results[0]),)

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        yield Sample((np.array([-1.5, 2.5]),), label="both signs")
        yield Sample((np.array([-1.5 + 0.5j, 2j, -3 + 0j]),), label="complex plane")
        yield Sample((np.array([0j, 1 + 1j]),), smooth=False, label="complex kink")


class Sign(Elementwise):
    """The sign, -1, 0 or 1; of a complex number z, z/|z|, and 0 at 0. Of reals it is piecewise constant."""

    meaning = "np.sign"
    kinds = "iufc"
    intervals = ((0.5, 2.0),)

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """(t - u Re(conj(u) t))/|z| of a complex z, u = z/|z|: the part of t across z."""
        operand, result = operands[0], results[0]
        if operand.dtype.kind != "c":
            return (Zero(result.type),)
        cast, dtype = REGISTRY["cast"], {"dtype": operand.dtype}
        along = s.apply(REGISTRY["real"], [s.scale(tangents[0], REGISTRY["conj"](result))])
        across = s.add(tangents[0], s.neg(s.scale(s.apply(cast, [along], dtype), result)))
        return (s.apply(REGISTRY["div"], [across, cast(REGISTRY["abs"](operand), **dtype)]),)

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        yield Sample((np.array([-1.5, 2.5]),), label="both signs")
        yield Sample((np.array([-1.5 + 0.5j, 2j, -3 + 0j]),), label="complex plane")
