"""Special functions: those of SciPy, and sinc with all its derivatives.

Source: NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, chapters 5 (gamma) and 7 (erf).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.errors import DTypeError
from srcgrad.ir.opdef import REGISTRY, Elementwise, Operand, Sample, Term, Unary
from srcgrad.ir.ops.elementary import ElementwiseFamily
from srcgrad.ir.types import ArrayType


class Special(Elementwise, abstract=True):
    """A function of ``scipy.special``, which has no half precision, and rarely long double."""

    longdouble: ClassVar[bool] = False

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        result = super().result_type(types, attrs)
        if not self.longdouble and result.dtype.itemsize > (16 if result.dtype.kind == "c" else 8):
            raise DTypeError(f"{self.name} does not take {result}", hint="SciPy has it up to double precision")
        return result

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        text = super().source(operands, types, result, attrs)
        return text if result.dtype.itemsize > 2 else f"np.float16({text})"


class Expit(Special, Unary):
    """The logistic function 1/(1 + exp(-x)). The derivative, expit(x)*expit(-x), is accurate in both tails."""

    meaning = "scipy.special.expit"
    kinds = "f"
    longdouble = True

    def derivative(self, result: Term, operand: Term) -> Operand:
        return result * self(-operand)


class Erf(Special, Unary):
    """The error function."""

    meaning = "scipy.special.erf"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return (2.0 / math.sqrt(math.pi)) * REGISTRY["exp"](-(operand * operand))


class Erfc(Special, Unary):
    """1 - erf(x), accurate where x is large."""

    meaning = "scipy.special.erfc"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return (-2.0 / math.sqrt(math.pi)) * REGISTRY["exp"](-(operand * operand))


class Gammaln(Special, Unary):
    """The logarithm of the absolute value of the gamma function."""

    meaning = "scipy.special.gammaln"
    kinds = "f"
    intervals = ((0.5, 3.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["digamma"](operand)


class Digamma(Special, Unary):
    """The derivative of gammaln."""

    meaning = "scipy.special.digamma"
    kinds = "f"
    intervals = ((0.5, 3.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["polygamma"](operand, n=1)


class Polygamma(Special, ElementwiseFamily):
    """The n-th derivative of digamma, n >= 1: (-1)**(n+1) n! zeta(n+1, x)."""

    kinds = "f"
    intervals = ((0.5, 3.0),)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        n = attrs["n"]
        factor = float(math.factorial(n)) * (-1.0) ** (n + 1)
        text = f"{factor} * scipy.special.zeta({n + 1}, {operands[0]})"
        return text if result.dtype.itemsize > 2 else f"np.float16({text})"

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        return self(operands[0], n=attrs["n"] + 1)

    def samples(self) -> Iterator[Sample]:
        for n, sample in zip((1, 2, 3, 1, 2), super().samples(), strict=True):
            yield replace(sample, attrs={"n": n})


class Sinc(Unary):
    """sin(pi x)/(pi x), and 1 at 0."""

    meaning = "np.sinc"
    kinds = "f"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["sinc_derivative"](operand, n=1)

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        yield Sample((np.array([0.0, -0.0, 1.0, 1e-9, 0.3]),), label="removable singularity")


class SincDerivative(ElementwiseFamily):
    """The n-th derivative of sinc, n >= 1, at 0 too."""

    kinds = "f"
    helpers: ClassVar[tuple[str, ...]] = ("sinc_derivative",)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"sinc_derivative({operands[0]}, {attrs['n']})"

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        return self(operands[0], n=attrs["n"] + 1)

    def samples(self) -> Iterator[Sample]:
        for n, sample in zip((1, 2, 3, 4, 5), super().samples(), strict=True):
            yield replace(sample, attrs={"n": n})
        yield Sample((np.array([0.0, -0.0, 1.0, 1e-9, 0.3, -2.5]),), {"n": 3}, label="removable singularity")


class Xlogy(Special):
    """x*log(y), and 0 where x is 0, whatever y. At (0, 0) the partial derivatives are log(y) = -inf and 0."""

    meaning = "scipy.special.xlogy"
    arity = 2
    intervals = ((-2.0, 2.0), (0.5, 2.0))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        x, y = operands
        if index == 0:
            return REGISTRY["log"](y)
        return REGISTRY["select"]((x == 0.0) & (y == 0.0), 0.0, x / y)


class Xlog1py(Special):
    """x*log(1 + y), and 0 where x is 0, whatever y. At (0, -1) the partial derivatives are -inf and 0."""

    meaning = "scipy.special.xlog1py"
    arity = 2
    intervals = ((-2.0, 2.0), (-0.5, 2.0))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        x, y = operands
        if index == 0:
            return REGISTRY["log1p"](y)
        return REGISTRY["select"]((x == 0.0) & (y == -1.0), 0.0, x / (1.0 + y))
