"""What Python's floats and ``math`` raise where NumPy gives inf or nan.

Errors of arithmetic (a division by zero, a power or ``math.exp`` out of range) are raised in the body of a ``try``
that may handle them, and nowhere else: a check after each division would cost more than the division.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.tracing.conversion.effects import emit_check
from srcgrad.tracing.conversion.state import unknown
from srcgrad.tracing.trace import CURRENT
from srcgrad.tracing.tracer import Tracer

OUT_OF_RANGE: Final = "(34, 'Numerical result out of range')"
NUMBERS: Final[dict[str, Any]] = {"b": 0, "i": 0, "f": 0.0, "c": 0j}
OPERATORS: Final[dict[Any, Callable[[Any, Any], Any]]] = {
    np.true_divide: lambda x, y: x / y,
    np.floor_divide: lambda x, y: x // y,
    np.remainder: lambda x, y: x % y,
}
OVERFLOWING: Final = frozenset(
    {math.exp, math.expm1, math.exp2, math.sinh, math.cosh, math.ldexp, math.gamma, math.lgamma}
)
"""Functions whose results are infinite where they are too large, and a ``math range error`` then."""
PERIODIC: Final = frozenset({math.sin, math.cos, math.tan})
LIMITS: Final[dict[Any, Callable[[Any], Any]]] = {
    math.log: lambda x: np.logical_not(x <= 0),
    math.log2: lambda x: np.logical_not(x <= 0),
    math.log10: lambda x: np.logical_not(x <= 0),
    math.log1p: lambda x: np.logical_not(x <= -1),
    math.sqrt: lambda x: np.logical_not(x < 0),
    math.asin: lambda x: np.logical_not(np.abs(x) > 1),
    math.acos: lambda x: np.logical_not(np.abs(x) > 1),
    math.atanh: lambda x: np.logical_not(np.abs(x) >= 1),
    math.acosh: lambda x: np.logical_not(x < 1),
    math.gamma: lambda x: np.logical_not(np.logical_and(x <= 0, x == np.floor(x))),
    math.lgamma: lambda x: np.logical_not(np.logical_and(np.isfinite(x), np.logical_and(x <= 0, x == np.floor(x)))),
}
"""Where functions of one number are defined; nan is nan."""


def handled(kind: type[BaseException]) -> bool:
    """Whether the body of a ``try`` is in progress that may handle errors of this kind."""
    trace = CURRENT.get()
    return trace is not None and any(issubclass(kind, caught) for caught in trace.catching)


def require(predicate: Any, kind: type[BaseException], message: str) -> None:
    """Raise what a ``try`` in progress handles where the predicate does not hold."""
    if not handled(kind):
        return
    if not unknown(predicate) and not bool(predicate):
        raise kind(message)
    emit_check(predicate, kind.__name__, message)


def number_like(x: Any) -> Any:
    """A number of Python's that is zero, of the kind of this one."""
    return NUMBERS[x.dtype.kind] if isinstance(x, Tracer) else type(x)(0)


def said(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """The message of Python's own error, which is another one in each version."""
    try:
        function(*args, **kwargs)
    except (ArithmeticError, ValueError) as error:
        return str(error)
    return ""


def of_operator(ufunc: np.ufunc, left: Any, right: Any, found: Any) -> Any:
    """The result of an operator between numbers of Python's, where Python has one."""
    if ufunc is np.power:
        of_power(left, right, found)
    elif ufunc in OPERATORS and handled(ZeroDivisionError):
        message = said(OPERATORS[ufunc], number_like(left), number_like(right))
        require(right != 0, ZeroDivisionError, message)
    return found


def of_power(left: Any, right: Any, found: Any) -> None:
    if not isinstance(found, Tracer) or found.dtype.kind != "f":
        return
    finite = np.logical_and(np.isfinite(left), np.isfinite(right))
    if handled(ZeroDivisionError):
        divides = np.logical_and(np.logical_and(left == 0, right < 0), finite)
        require(np.logical_not(divides), ZeroDivisionError, said(lambda: 0.0**-1.0))
    if handled(OverflowError):
        finite = np.logical_and(finite, left != 0)
        require(np.logical_not(np.logical_and(finite, np.isinf(found))), OverflowError, OUT_OF_RANGE)


def domain(function: Any, *args: Any) -> None:
    """What ``math`` raises where NumPy gives nan, or the infinity of a pole."""
    if function in LIMITS:
        emit_check(LIMITS[function](args[0]), "ValueError", said(function, -2.0 if function is not math.acosh else 0.0))
    elif function is math.fmod or function is math.remainder:
        x, y = args
        defined = np.logical_not(np.logical_or(np.isinf(x), y == 0))
        unknown_number = np.logical_or(np.isnan(x), np.isnan(y))
        emit_check(np.logical_or(defined, unknown_number), "ValueError", "math domain error")
    elif function in PERIODIC:
        require(np.logical_not(np.isinf(args[0])), ValueError, said(function, math.inf))


def in_range(function: Any, args: tuple[Any, ...], found: Any) -> Any:
    """The result of a function of ``math``, where that has one and is not out of range."""
    if function is math.pow:
        return of_math_power(args[0], args[1], found)
    if function in OVERFLOWING and handled(OverflowError):
        require(
            np.logical_not(np.logical_and(np.isfinite(args[0]), np.isinf(found))), OverflowError, "math range error"
        )
    return found


def of_math_power(x: Any, y: Any, found: Any) -> Any:
    if handled(ValueError) or handled(OverflowError):
        finite = np.logical_and(np.isfinite(x), np.isfinite(y))
        pole = np.logical_or(np.isnan(found), np.logical_and(x == 0, np.isinf(found)))
        require(np.logical_not(np.logical_and(finite, pole)), ValueError, "math domain error")
        large = np.logical_and(np.isinf(found), x != 0)
        require(np.logical_not(np.logical_and(finite, large)), OverflowError, "math range error")
    return found
