"""Casts between dtypes, and the parts of complex numbers: linear over the reals.

Transposition pairs a cotangent c with a tangent t as Re(sum(c * t)), without a conjugate. So the transpose of ``real``
is c -> c + 0i, that of ``imag`` c -> 0 - ci, that of ``conj`` is ``conj``, that of ``complex`` c -> (Re c, -Im c).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from srcgrad.ir.core import Attrs, is_splat
from srcgrad.ir.errors import DTypeError
from srcgrad.ir.opdef import (
    REGISTRY,
    Elementwise,
    Linear,
    LinearEmitter,
    Sample,
    Tangent,
    Term,
    Zero,
    require_arity,
    require_kinds,
    require_same,
)
from srcgrad.ir.ops.arithmetic import LinearElementwise
from srcgrad.ir.types import ArrayType, DType, complex_dtype


def dtype_text(dtype: DType) -> str:
    """The NumPy name of a dtype: ``np.float32``; extended precision has no portable name with a size."""
    if dtype.kind in "fc" and dtype.itemsize > (16 if dtype.kind == "c" else 8):
        return "np.clongdouble" if dtype.kind == "c" else "np.longdouble"
    return f"np.{dtype.name}"


def as_dtype(s: LinearEmitter, tangent: Tangent, dtype: DType) -> Tangent:
    """The tangent itself, or cast."""
    return tangent if tangent.type.dtype == dtype else s.apply(REGISTRY["cast"], [tangent], {"dtype": dtype})


class Cast(LinearElementwise):
    """The same numbers in another dtype. The way from complex to real numbers is ``real``.

    Casts between floating and complex dtypes are linear; the tangent of a cast to integers or booleans is zero.
    """

    kinds = "biufc"

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        dtype: DType = attrs["dtype"]
        if types[0].dtype.kind == "c" and dtype.kind not in "bc":
            raise DTypeError(f"cast: {types[0]} is complex, {dtype} is not", hint="take the real part first")
        return types[0].with_dtype(dtype)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        name = operands[0] if operands[0].isidentifier() else f"np.array({operands[0]})"
        return f"{name}.astype({dtype_text(result.dtype)})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        if not results[0].type.differentiable:
            return (Zero(results[0].type),)
        return (s.apply(self, tangents, attrs),)

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        cotangent, dtype = cotangents[0], operands[0].type.dtype
        if cotangent.type.dtype.kind == "c" and dtype.kind == "f":
            cotangent = s.apply(REGISTRY["real"], [cotangent])
        return (as_dtype(s, cotangent, dtype),)

    def samples(self) -> Iterator[Sample]:
        real, whole = np.array([[1.5, -2.0], [0.25, -0.0]]), np.array([3, -1, 0])
        f32, f64, c64, c128 = map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128))
        for source, target in ((f64, f32), (f32, f64), (f64, f64), (f64, c128), (f32, c128), (c128, c64), (c64, c128)):
            yield Sample((real.astype(source),), {"dtype": target}, label=f"{source} to {target}")
        yield Sample((np.array([0.25, -1.75]),), {"dtype": np.dtype(np.int64)}, label="to integers")
        yield Sample((np.array([0.25, -1.75]),), {"dtype": np.dtype(np.bool_)}, label="to booleans")
        yield Sample((whole,), {"dtype": f32}, label="from integers")
        yield Sample((whole,), {"dtype": np.dtype(np.int8)}, label="between integers")
        yield Sample((whole > 0,), {"dtype": f64}, label="from booleans")
        yield Sample((np.array(0.5),), {"dtype": c128}, label="0-d")
        yield Sample((real[:0],), {"dtype": f32}, label="empty")
        yield Sample((np.array([np.inf, np.nan]),), {"dtype": c128}, smooth=False, label="special points")


class Conj(LinearElementwise):
    """The complex conjugate."""

    meaning = "np.conj"
    kinds = "c"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        return (s.apply(self, [cotangents[0]]),)


class Real(LinearElementwise):
    """The real part of a complex number."""

    meaning = "np.real"
    kinds = "c"
    result_kind = "real"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        return (s.apply(REGISTRY["complex"], [cotangents[0], Zero(cotangents[0].type)]),)

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        yield Sample((np.array([1 + 2j, 3 - 0.5j], np.complex64),), label="complex64")
        yield Sample((np.array(1 + 2j),), label="0-d")


class Imag(LinearElementwise):
    """The imaginary part of a complex number."""

    meaning = "np.imag"
    kinds = "c"
    result_kind = "real"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        return (s.apply(REGISTRY["complex"], [Zero(cotangents[0].type), s.neg(cotangents[0])]),)

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        yield Sample((np.array([1 + 2j, 3 - 0.5j], np.complex64),), label="complex64")
        yield Sample((np.array(1 + 2j),), label="0-d")


class Complex(Linear, Elementwise):
    """The complex number of a real and an imaginary part. (Not x + 1j*y, in which an infinite y would give nan.)"""

    arity = 2
    kinds = "f"
    linear = (0, 1)
    masking = "mix"
    jvp = Linear.jvp
    helpers: ClassVar[tuple[str, ...]] = ("make_complex",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        require_same(self, types)
        require_kinds(self, types[0], self.kinds)
        return types[0].with_dtype(complex_dtype(types[0].dtype))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"make_complex({operands[0]}, {operands[1]}, {dtype_text(result.dtype)})"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        cotangent, dtype = cotangents[0], operands[0].type.dtype
        real = s.apply(REGISTRY["real"], [cotangent])
        imaginary = s.apply(REGISTRY["imag"], [cotangent])
        return (as_dtype(s, real, dtype), s.neg(as_dtype(s, imaginary, dtype)))

    def mask(self, operands: Sequence[Term], attrs: Attrs) -> Term:
        """The disjunction; a part that is absent leaves the other's mask as it is."""
        left, right = operands
        if is_splat(left.value, True) or is_splat(right.value, False):
            return left
        if is_splat(right.value, True) or is_splat(left.value, False):
            return right
        return left | right

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        yield Sample((np.array([0.5, 1.5], np.float16), np.array([1.0, 2.0], np.float16)), label="float16")
