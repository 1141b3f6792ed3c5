"""The bases of special functions; logistic functions, entropies, relative exponentials, powers less one, and sinc.

Derivatives are families of ops where a formula in elementary functions would lose accuracy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.errors import DTypeError, MissingRuleError, ShapeError
from srcgrad.ir.opdef import (
    REGISTRY,
    Elementwise,
    Lin,
    LinearEmitter,
    Operand,
    Sample,
    Tangent,
    Term,
    Unary,
    require_arity,
    require_kinds,
    require_same,
)
from srcgrad.ir.ops.elementary import ElementwiseFamily
from srcgrad.ir.types import ArrayType, real_dtype


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


class SpecialFamily(Special, ElementwiseFamily, abstract=True):
    """The derivatives of a function, by their order ``n``: the derivative of the n-th one is the next."""

    orders: ClassVar[tuple[int, ...]] = (1, 2, 3)

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        return self(*operands, **{**attrs, "n": attrs["n"] + 1})

    def samples(self) -> Iterator[Sample]:
        for k, sample in enumerate(super().samples()):
            yield replace(sample, attrs={"n": self.orders[k % len(self.orders)]})


class Parametric(Special, ElementwiseFamily, abstract=True):
    """A special function that is not differentiated in all operands: orders and degrees are parameters.

    A degree may be an integer; parameters beside complex arguments are real numbers.
    """

    parameters: ClassVar[dict[int, str]] = {0: "order"}
    degree: ClassVar[str] = "f"
    """The dtype kinds of operand 0."""
    whole: ClassVar[bool] = False
    """Whether operand 0, a real number, is a whole one."""
    kinds = "f"
    arity = 2

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, self.arity)
        require_kinds(self, types[0], self.degree)
        for type in types[1:]:
            require_kinds(self, type, self.kinds)
        last = types[-1]
        real = last.with_dtype(real_dtype(last.dtype))
        for k, type in enumerate(types):
            if k or type.dtype.kind == "f":
                require_same(self, [type, real if k in self.parameters else last])
        if types[0].shape != types[-1].shape:
            raise ShapeError(f"{self.name}: operands differ in shape, {types[0]} and {types[-1]}")
        if types[-1].dtype.itemsize > (16 if types[-1].dtype.kind == "c" else 8):
            raise DTypeError(f"{self.name} does not take {types[-1]}", hint="SciPy has it up to double precision")
        return types[-1]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        text = Elementwise.source(self, operands, types, result, attrs)
        exact = real_dtype(result.dtype).itemsize in ((4, 8) if self.degree == "f" else (8,))
        return text if exact else f"np.{result.dtype.name}({text})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        for index, word in self.parameters.items():
            if isinstance(tangents[index], Lin) and not self.varies(index, operands):
                raise MissingRuleError(
                    f"{self.name} has no derivative in its {word} (operand {index})",
                    hint=f"differentiate in the argument only, or hold the {word} fixed: srcgrad.stop_gradient",
                )
        return super().jvp(s, operands, tangents, results, attrs)

    def varies(self, index: int, operands: Sequence[Term]) -> bool:
        """Whether there is a derivative in a parameter of these operands."""
        return False

    def samples(self) -> Iterator[Sample]:
        for sample in super().samples():
            first, *rest = sample.operands
            if sample.label == "complex":
                parts = enumerate(sample.operands)
                yield replace(sample, operands=tuple(np.real(x) if k in self.parameters else x for k, x in parts))
            elif self.whole:
                yield replace(sample, operands=(np.rint(first), *rest))
            elif "i" not in self.degree:
                yield sample
            elif sample.label != "special points":
                yield replace(sample, operands=(np.rint(np.asarray(first)).astype(np.int64), *rest))


def scaled(factor: Operand, term: Term) -> Term:
    """``factor * term``, the factor a number or a term of any kind."""
    return (beside(factor, term) if isinstance(factor, Term) else factor) * term


def beside(factor: Term, term: Term) -> Term:
    """An integer or a parameter in the dtype of an argument."""
    return factor if factor.dtype == term.dtype else REGISTRY["cast"](factor, dtype=term.dtype)


# --- logistic functions, entropies -----------------------------------------------------------------


class Expit(Special, Unary):
    """The logistic function 1/(1 + exp(-x)). The derivative, expit(x)*expit(-x), is accurate in both tails."""

    meaning = "scipy.special.expit"
    kinds = "f"
    longdouble = True

    def derivative(self, result: Term, operand: Term) -> Operand:
        return result * self(-operand)


class Sinc(Unary):
    """sin(pi x)/(pi x), and 1 at 0."""

    meaning = "np.sinc"
    kinds = "fc"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["sinc_derivative"](operand, n=1)

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        yield Sample((np.array([0.0, -0.0, 1.0, 1e-9, 0.3]),), label="removable singularity")


class SincDerivative(ElementwiseFamily):
    """The n-th derivative of sinc, n >= 1, at 0 too."""

    kinds = "fc"
    helpers: ClassVar[tuple[str, ...]] = ("sinc_derivative",)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"sinc_derivative({operands[0]}, {attrs['n']})"

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        return self(operands[0], n=attrs["n"] + 1)

    def samples(self) -> Iterator[Sample]:
        for k, sample in enumerate(super().samples()):
            yield replace(sample, attrs={"n": 1 + k % 4})
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


class Logit(Special, Unary):
    """log(x/(1 - x)), accurate also where x is near 1/2."""

    meaning = "scipy.special.logit"
    kinds = "f"
    longdouble = True
    intervals = ((0.2, 0.8),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        """1/(x(1 - x)); near 0 and 1 as the sum 1/x + 1/(1 - x), at whose poles no derivative has a factor 0."""
        rest = 1.0 - operand
        inner = REGISTRY["abs"](operand - 0.5) < 0.25
        return REGISTRY["select"](inner, 1.0 / (operand * rest), 1.0 / operand + 1.0 / rest)


class LogRatio(Special):
    """log(x/y), accurate where x is near y."""

    arity = 2
    kinds = "f"
    intervals = ((0.5, 2.0), (0.5, 2.0))
    meaning = "log_ratio"
    helpers: ClassVar[tuple[str, ...]] = ("log_ratio",)

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        return 1.0 / operands[0] if index == 0 else -1.0 / operands[1]


class RelEntr(Special):
    """x log(x/y), and 0 where x is 0 and y >= 0; inf, without a derivative, outside of the first quadrant."""

    meaning = "scipy.special.rel_entr"
    arity = 2
    kinds = "f"
    intervals = ((0.5, 2.0), (0.5, 2.0))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        x, y = operands
        select, outside = REGISTRY["select"], (x < 0.0) | (y < 0.0)
        if index == 0:
            return select(outside, 0.0, REGISTRY["log_ratio"](x, y) + 1.0)
        return select(outside | (x == 0.0), 0.0, -(x / y))


class KlDiv(Special):
    """x log(x/y) - x + y, and y where x is 0 and y >= 0; inf, without a derivative, outside of the first quadrant."""

    meaning = "scipy.special.kl_div"
    arity = 2
    kinds = "f"
    intervals = ((0.5, 2.0), (0.5, 2.0))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """log(x/y) and 1 - x/y, the latter as (y - x)/y where x is near y: so neither it nor its derivative cancels."""
        x, y = operands
        select, outside = REGISTRY["select"], (x < 0.0) | (y < 0.0)
        if index == 0:
            return select(outside, 0.0, REGISTRY["log_ratio"](x, y))
        return select(outside, 0.0, select(x == 0.0, 1.0, select(x < 0.5 * y, 1.0 - x / y, (y - x) / y)))


# --- relative exponentials, powers less one --------------------------------------------------------


class Exprel(Special, Unary):
    """(exp(x) - 1)/x, and 1 at 0."""

    meaning = "scipy.special.exprel"
    kinds = "f"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["exprel_derivative"](operand, n=1)


class ExprelDerivative(SpecialFamily):
    """The n-th derivative of exprel, n >= 1, at 0 too."""

    kinds = "f"
    meaning = "exprel_derivative({0}, {n})"
    helpers: ClassVar[tuple[str, ...]] = ("exprel_derivative",)


class Log1pRatio(SpecialFamily):
    """The n-th derivative of log(1 + x)/x, n >= 0, at 0 too."""

    kinds = "f"
    orders = (0, 1, 2)
    intervals = ((-0.8, 2.0),)
    meaning = "log1p_ratio({0}, {n})"
    helpers: ClassVar[tuple[str, ...]] = ("log1p_ratio",)


class Cosm1(Special, Unary):
    """cos(x) - 1, accurate near 0."""

    meaning = "scipy.special.cosm1"
    kinds = "f"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return -REGISTRY["sin"](operand)


class Powm1(Special):
    """x**y - 1, accurate where the power is near 1."""

    meaning = "scipy.special.powm1"
    arity = 2
    kinds = "f"
    intervals = ((0.5, 2.0), (-2.0, 2.0))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        x, y = operands
        if index == 1:
            return REGISTRY["pow_log"](x, y, n=1)
        return REGISTRY["select"]((x == 0.0) & (y == 0.0), 0.0, y * REGISTRY["pow"](x, y - 1.0))


class Boxcox(Special):
    """(x**c - 1)/c, and log(x) where c is 0."""

    meaning = "scipy.special.boxcox"
    arity = 2
    kinds = "f"
    intervals = ((0.5, 2.0), (-2.0, 2.0))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        x, c = operands
        return REGISTRY["pow"](x, c - 1.0) if index == 0 else REGISTRY["boxcox_derivative"](x, c, n=1, plus_one=False)


class Boxcox1p(Special):
    """((1 + x)**c - 1)/c, and log(1 + x) where c is 0."""

    meaning = "scipy.special.boxcox1p"
    arity = 2
    kinds = "f"
    intervals = ((-0.5, 1.0), (-2.0, 2.0))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        x, c = operands
        if index == 1:
            return REGISTRY["boxcox_derivative"](x, c, n=1, plus_one=True)
        return power_of_one_more(x, c - 1.0, 0)


def power_of_one_more(x: Term, c: Term, n: int) -> Term:
    """(1 + x)**c log(1 + x)**n: where x is small, by log1p."""
    logarithm = REGISTRY["log1p"](x)
    near = REGISTRY["exp"](c * logarithm)
    far = REGISTRY["pow"](1.0 + x, c)
    if n:
        near, far = near * REGISTRY["integer_pow"](logarithm, y=n), REGISTRY["pow_log"](1.0 + x, c, n=n)
    return REGISTRY["select"](REGISTRY["abs"](x) < 0.5, near, far)


class BoxcoxDerivative(SpecialFamily):
    """The n-th derivative in c of boxcox(x, c), or of boxcox1p if ``plus_one``: a power of log(x) times one of exprel.

    Its derivative in x is x**(c - 1) log(x)**n.
    """

    arity = 2
    kinds = "f"
    intervals = ((0.5, 2.0), (-2.0, 2.0))
    meaning = "boxcox_derivative({0}, {1}, {n}, {plus_one})"
    helpers: ClassVar[tuple[str, ...]] = ("boxcox_derivative",)

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        if index == 1:
            return super().member_partial(index, attrs, result, *operands)
        x, c = operands
        if attrs["plus_one"]:
            return power_of_one_more(x, c - 1.0, attrs["n"])
        return REGISTRY["pow_log"](x, c - 1.0, n=attrs["n"])

    def samples(self) -> Iterator[Sample]:
        for k, sample in enumerate(super().samples()):
            yield replace(sample, attrs={**sample.attrs, "plus_one": k % 2 == 1})


class InvBoxcox(Special):
    """(1 + c y)**(1/c), and exp(y) where c is 0: the x of which y is boxcox(x, c)."""

    meaning = "scipy.special.inv_boxcox"
    arity = 2
    kinds = "f"
    intervals = ((-0.4, 1.0), (-0.5, 1.5))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """As exp(y L(c y)), L(u) = log(1 + u)/u: x/(1 + c y) and x y² L'(c y)."""
        y, c = operands
        if index == 0:
            return result / (1.0 + c * y)
        return result * (y * y * REGISTRY["log1p_ratio"](c * y, n=1))


class InvBoxcox1p(InvBoxcox):
    """(1 + c y)**(1/c) - 1, and exp(y) - 1 where c is 0: the x of which y is boxcox1p(x, c)."""

    meaning = "scipy.special.inv_boxcox1p"
    arity = 2
    kinds = "f"
    intervals = ((-0.4, 1.0), (-0.5, 1.5))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        return InvBoxcox.partial(self, index, REGISTRY["inv_boxcox"](*operands), *operands)
