"""Comparisons and boolean algebra: piecewise constant, so their tangents are structural zeros."""

from __future__ import annotations

from collections.abc import Sequence

from srcgrad.ir.core import Attrs
from srcgrad.ir.opdef import Elementwise, NonDifferentiable
from srcgrad.ir.types import ArrayType


class Comparison(NonDifferentiable, Elementwise, abstract=True):
    """A comparison of two operands, element by element."""

    arity = 2
    kinds = "biufc"
    result_kind = "bool"
    jvp = NonDifferentiable.jvp


class Equal(Comparison):
    """Equality; nan differs from everything."""

    meaning = "{0} == {1}"
    commutes = "biufc"


class NotEqual(Comparison):
    """Inequality."""

    meaning = "{0} != {1}"
    commutes = "biufc"


class Ordering(Comparison, abstract=True):
    """A comparison in NumPy's order, in which complex numbers with a nan are neither less nor greater."""

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        if types[0].dtype.kind == "c":  # between NumPy's scalars, the operators would compare the real parts alone
            return f"np.{self.name}({', '.join(operands)})"
        return super().source(operands, types, result, attrs)


class Less(Ordering):
    """Less than; complex numbers are ordered as NumPy orders them."""

    meaning = "{0} < {1}"


class LessEqual(Ordering):
    """Less than or equal."""

    meaning = "{0} <= {1}"


class Greater(Ordering):
    """Greater than."""

    meaning = "{0} > {1}"


class GreaterEqual(Ordering):
    """Greater than or equal."""

    meaning = "{0} >= {1}"


class BooleanOp(NonDifferentiable, Elementwise, abstract=True):
    """An operation on booleans."""

    arity = 2
    kinds = "b"
    jvp = NonDifferentiable.jvp


class LogicalAnd(BooleanOp):
    """Conjunction."""

    meaning = "{0} & {1}"
    # It says not that it `commutes`: masks are read as paths of predicates, the last one on the right (`MaskAlgebra`).


class LogicalOr(BooleanOp):
    """Disjunction."""

    meaning = "{0} | {1}"
    commutes = "b"


class LogicalXor(BooleanOp):
    """Exclusive disjunction."""

    meaning = "{0} ^ {1}"
    commutes = "b"


class LogicalNot(BooleanOp):
    """Negation."""

    arity = 1
    meaning = "np.logical_not"


class FloatTest(NonDifferentiable, Elementwise, abstract=True):
    """A test of each element."""

    kinds = "biufc"
    result_kind = "bool"
    jvp = NonDifferentiable.jvp


class IsNan(FloatTest):
    """Whether an element is nan."""

    meaning = "np.isnan"


class IsFinite(FloatTest):
    """Whether an element is finite."""

    meaning = "np.isfinite"


class IsInf(FloatTest):
    """Whether an element is infinite."""

    meaning = "np.isinf"


class SignBit(FloatTest):
    """Whether the sign is minus: also that of -0.0."""

    kinds = "f"
    meaning = "np.signbit"
