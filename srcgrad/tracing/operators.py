"""The operators of traced arrays and numbers: each is its ufunc, as in NumPy."""

from __future__ import annotations

import array
from collections.abc import Callable
from fractions import Fraction
from types import FunctionType
from typing import Any

import numpy as np

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.tracing.asked import concrete_class
from srcgrad.tracing.doubts import require_number
from srcgrad.tracing.floating_errors import judged, judged_function, name_of, raised_kinds
from srcgrad.tracing.jax_arrays import is_jax_array
from srcgrad.tracing.magnitude import COUNTING, counted
from srcgrad.tracing.single import require_rounding
from srcgrad.tracing.trace import CURRENT
from srcgrad.tracing.tracer import FUNCTIONS, SEQUENCES, Deferring, Tracer, cast_value, emit, from_value
from srcgrad.tracing.ufuncs import array_ufunc, assign, call, finished
from srcgrad.tracing.unasked import defers

BINARY: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "matmul": np.matmul,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
COMPARE: dict[str, np.ufunc] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
UNARY: dict[str, np.ufunc] = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}


def binary(ufunc: np.ufunc, left: Any, right: Any) -> Any:
    """An operator: between Python numbers the result stays one."""
    for other in (left, right):
        if not isinstance(other, Tracer) and is_sparse(other):
            return of_sparse(ufunc, left, right)
    if ufunc is np.matmul and not isinstance(right, Deferring):
        if isinstance(left, Tracer) and not isinstance(right, Tracer) and defers(right, "__rmatmul__"):
            return NotImplemented
        return judged_function(np.matmul, FUNCTIONS[np.matmul], (left, right), {})
    for other in (left, right):
        if not isinstance(other, Tracer) and not is_operand(other):
            return no_operand(ufunc, left, right, other)
    if ufunc is np.multiply and (type(left) in REPEATED or type(right) in REPEATED):
        require_count(right if type(left) in REPEATED else left)
    weak = is_weak(left) and is_weak(right)
    if weak and ufunc in COUNTING:
        left, right = counted(left), counted(right)
    if weak:
        found = applied(ufunc, left, right, True)
        return in_a_try(ufunc, left, right, found) if ufunc in FAILING else found
    kinds = raised_kinds()
    if not kinds:
        return applied(ufunc, left, right, False)
    return judged(kinds, ufunc, name_of(ufunc, left, right), (left, right), lambda: applied(ufunc, left, right, False))


def applied(ufunc: np.ufunc, left: Any, right: Any, weak: bool) -> Any:
    if ufunc is np.power and type(right) is int and not isinstance(left, int):
        return integer_power(left, right, weak)
    return call(ufunc, left, right, weak=weak)


FAILING = frozenset({np.true_divide, np.floor_divide, np.remainder, np.power})
"""The operators that raise errors of arithmetic between Python's numbers."""


def in_a_try(ufunc: np.ufunc, left: Any, right: Any, found: Any) -> Any:
    """What an operator gives, where a ``try`` may handle what Python raises instead."""
    trace = CURRENT.get()
    if trace is None or not trace.catching:
        return found
    from srcgrad.tracing.conversion.arithmetic import of_operator  # which is built on the operators

    return of_operator(ufunc, left, right, found)


OPERANDS = (bool, int, float, complex, np.generic, np.ndarray, *SEQUENCES, range, array.array, memoryview)
NO_OPERANDS = (str, bytes, type(None), dict, set, type, FunctionType)


def no_operand(ufunc: np.ufunc, left: Any, right: Any, other: Any) -> Any:
    """What an operator makes of an object that is no number: its class may know the operation.

    Raises:
        UnsupportedError: it is one of Python's own that does not.
    """
    met = right if left is other else left
    if type(other) is Fraction and ufunc not in COMPARE.values() and met.scalar and met.dtype.kind in "fc":
        return with_fraction(ufunc, left, right)
    if not isinstance(other, NO_OPERANDS):
        return NotImplemented
    if ufunc in (np.equal, np.not_equal):  # of an array, NumPy compares each element: no number is None or a text
        return NotImplemented if met.scalar else np.full_like(met, ufunc is np.not_equal, dtype=bool)
    texts = [str(x.type) if isinstance(x, Tracer) else type(x).__name__ for x in (left, right)]
    raise UnsupportedError(f"unsupported operands of {ufunc.__name__}: {' and '.join(texts)}")


def with_fraction(ufunc: np.ufunc, left: Any, right: Any) -> Any:
    """What `Fraction` makes of itself and a floating or complex number: to its left a number of Python's."""
    if isinstance(left, Fraction):
        return binary(ufunc, float(left), right)
    kind = np.complex128 if left.dtype.kind == "c" else np.float64
    number = from_value(cast_value(left.read(), np.dtype(kind)), scalar=True, weak=True)
    return binary(ufunc, number, float(right))


REPEATED = (list, tuple)


def require_count(number: Any) -> None:
    """Refuse what repeats no list: a number that is no integer, while an array's elements are multiplied.

    Raises:
        UnsupportedError: Python's TypeError.
    """
    if isinstance(number, Tracer) and number.scalar and number.dtype.kind not in "iu":
        raise UnsupportedError(
            f"can't multiply sequence by non-int of type '{name_of_class(concrete_class(number))}'",
            hint="np.array(items) * number multiplies each item",
        )


def name_of_class(kind: type) -> str:
    return f"numpy.{kind.__name__}" if issubclass(kind, np.generic) else kind.__name__


def is_sparse(x: Any) -> bool:
    """Whether it is a matrix of ``scipy.sparse``."""
    return type(x).__module__.startswith("scipy.sparse.")


def of_sparse(ufunc: np.ufunc, left: Any, right: Any) -> Any:
    from srcgrad.tracing.functions.scipy_sparse import of_operator  # which imports SciPy

    return of_operator(ufunc, left, right)


def is_weak(x: Any) -> bool:
    return x.weak if isinstance(x, Tracer) else type(x) in (bool, int, float, complex)


def is_operand(x: Any) -> bool:
    return isinstance(x, OPERANDS) or is_jax_array(x)


def integer_power(base: Tracer, exponent: int, weak: bool) -> Any:
    """``x ** n`` for a Python int: exact at 0 to all orders, and defined for negative bases."""
    if base.dtype.kind in "fc" and (abs(exponent) < 2**31):
        return finished(emit("integer_pow", base, y=exponent), base.dtype, weak)
    if exponent == 2 and base.dtype.kind == "b" and not base.scalar:  # which NumPy squares, in int8
        return call(np.square, base)
    return call(np.power, base, exponent, weak=weak)


def in_place(ufunc: np.ufunc, target: Tracer, value: Any) -> Any:
    """``x += y``: a new value for a scalar, a write for an array."""
    require_number(target)
    result = binary(ufunc, target, value)
    if target.scalar or result is NotImplemented:
        return result
    if result.shape != target.shape:
        raise ShapeError(f"non-broadcastable output operand with shape {target.shape}: the result has {result.shape}")
    assign(target, result)
    return target


def install_operators() -> None:
    """Give `Tracer` its operators: each is its ufunc."""

    def forward(ufunc: np.ufunc) -> Callable[[Tracer, Any], Any]:
        return lambda self, other: binary(ufunc, self, other)

    def reflected(ufunc: np.ufunc) -> Callable[[Tracer, Any], Any]:
        return lambda self, other: binary(ufunc, other, self)

    def augmented(ufunc: np.ufunc) -> Callable[[Tracer, Any], Any]:
        return lambda self, other: in_place(ufunc, self, other)

    def unary(ufunc: np.ufunc) -> Callable[[Tracer], Any]:
        return lambda self: call(ufunc, counted(self) if self.weak else self, weak=self.weak)

    for name, ufunc in BINARY.items():
        setattr(Tracer, f"__{name}__", forward(ufunc))
        setattr(Tracer, f"__r{name}__", reflected(ufunc))
        setattr(Tracer, f"__i{name}__", augmented(ufunc))
    for name, ufunc in COMPARE.items():
        setattr(Tracer, f"__{name}__", forward(ufunc))
    for name, ufunc in UNARY.items():
        setattr(Tracer, f"__{name}__", unary(ufunc))
    others: dict[str, Callable[..., Any]] = {
        "__divmod__": lambda self, other: (self // other, self % other),
        "__rdivmod__": lambda self, other: (other // self, other % self),
        "__round__": rounded,
        "__array_ufunc__": array_ufunc,
    }
    for name, method in others.items():
        setattr(Tracer, name, method)
    Tracer.__hash__ = None  # type: ignore[assignment]


def rounded(self: Tracer, digits: int | None = None) -> Any:
    """The builtin ``round``: an integer without ``digits``."""
    require_rounding(self)
    if digits is None:
        from srcgrad.tracing.conversion.numbers import require_finite  # which is built on the operators

        require_finite(self)
        return np.rint(self).astype(np.int64)
    result: Any = np.round(self, digits)
    return from_value(result.read(), scalar=True, weak=True) if self.weak else result


install_operators()
