"""Powers: ``x ** y``, its derivatives as a closed family, and integer powers.

The derivatives are the limits at x = 0: those of x**0, x**1, x**2, … are right there at every order, also where the
exponent is an array. Negative bases are right in x where y is an integer; there is no derivative in y (nan).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from srcgrad.ir.core import Attrs, Literal
from srcgrad.ir.opdef import REGISTRY, Elementwise, Operand, Sample, Term, Unary
from srcgrad.ir.ops.elementary import ElementwiseFamily
from srcgrad.ir.types import ArrayType


def splat_number(term: Term) -> complex | None:
    """The number that fills a literal; None if the term is no such literal."""
    value = term.value
    if not (isinstance(value, Literal) and value.splat):
        return None
    number = complex(value.value)
    if number != value.value:  # nan, or a long double that is no double
        return None
    return number if number.imag else number.real


def hard_powers(dtype: Any = np.float64) -> tuple[np.ndarray[Any, Any], ...]:
    """All pairs of bases and exponents at which powers or their derivatives are special."""
    bases = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, np.inf, -np.inf, np.nan], dtype)
    exponents = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, -1.0, -2.5, np.inf, -np.inf, np.nan], dtype)
    return tuple(axis.ravel() for axis in np.meshgrid(bases, exponents, indexing="ij"))


class Pow(Elementwise):
    """x ** y."""

    meaning = "{0} ** {1}"
    arity = 2
    kinds = "iufc"
    intervals = ((0.5, 2.0), (-2.0, 2.0))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """y x**(y-1), and 0 at (0, 0); x**y log(x)."""
        x, y = operands
        if index == 1:
            base = splat_number(x)
            if isinstance(base, float) and base > 0.0:
                return result * math.log(base)
            return REGISTRY["pow_log"](x, y, n=1)
        exponent = splat_number(y)
        if exponent is None:
            return REGISTRY["select"]((x == 0.0) & (y == 0.0), 0.0, y * self(x, y - 1.0))
        if exponent in (0, 1):
            return exponent
        return exponent * (x if exponent == 2 else self(x, exponent - 1))

    def samples(self) -> Iterator[Sample]:
        yield from (sample for sample in super().samples() if sample.label not in ("integers", "special points"))
        yield Sample((np.array([-2, 1, 3, 7]), np.array([3, 0, 1, 2])), smooth=False, label="integers")
        yield Sample(hard_powers(), smooth=False, label="special points")
        yield Sample((np.array([-1.5, -0.5, 2.0]), np.array([3.0, 2.0, 1.0])), smooth=False, label="negative bases")


class PowLog(ElementwiseFamily):
    """x**y log(x)**n, n >= 1: the n-th derivative of x**y in y; at x = 0, its limit.

    The derivative in x is y x**(y-1) log(x)**n + n x**(y-1) log(x)**(n-1). Where x is 0 one term alone is the limit (a
    sum of infinities of two signs would be nan): the second where y is 0 too, else the first.
    """

    arity = 2
    intervals = ((0.5, 2.0), (-2.0, 2.0))
    helpers: ClassVar[tuple[str, ...]] = ("pow_log",)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"pow_log({operands[0]}, {operands[1]}, {attrs['n']})"

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        (x, y), n = operands, attrs["n"]
        if index == 1:
            return self(x, y, n=n + 1)
        select = REGISTRY["select"]
        lower = float(n) * (REGISTRY["pow"](x, y - 1.0) if n == 1 else self(x, y - 1.0, n=n - 1))
        leading = y * self(x, y - 1.0, n=n)
        return select(x == 0.0, select(y == 0.0, lower, leading), leading + lower)

    def samples(self) -> Iterator[Sample]:
        for k, sample in enumerate(super().samples()):
            yield replace(sample, attrs={"n": 1 + k % 3})
        for n in (1, 2):
            yield Sample(hard_powers(), {"n": n}, smooth=False, label="special points")


class IntegerPow(ElementwiseFamily, Unary):
    """x ** y, y an int that is known when the program is made."""

    kinds = "iufc"
    intervals = ((0.5, 2.0),)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"np.square({operands[0]})" if attrs["y"] == 2 else f"{operands[0]} ** {attrs['y']}"

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        x, y = operands[0], attrs["y"]
        if y in (0, 1):
            return int(y)
        return float(y) * (x if y == 2 else self(x, y=y - 1))

    def samples(self) -> Iterator[Sample]:
        base = list(super().samples())
        for y in (0, 1, 2, 3, -1, -2):
            for sample in base:
                if not (y < 0 and sample.label == "integers"):
                    yield replace(sample, attrs={"y": y})
        for y in (0, 1, 2, 3, 4):
            yield Sample((np.array([0.0, -1.5, 2.0]),), {"y": y}, label="polynomials at 0")
