"""Every ufunc, on every dtype and with Python numbers, gives NumPy's value and dtype; and so do the operators."""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

from srcgrad.errors import DTypeError, ShapeError, SrcgradError, UnsupportedError
from srcgrad.tracing.tracer import FUNCTIONS
from srcgrad.tracing.ufuncs import ELEMENTWISE, UFUNCS
from tests.tracing.trace_support import compare, directional, run

DTYPES = ["bool", "int8", "int64", "uint8", "float16", "float32", "float64", "complex64", "complex128"]

LEFT = {
    "b": [True, False, True, True],
    "i": [3, 1, -2, 7],
    "u": [3, 1, 2, 7],
    "f": [0.25, -0.5, 0.75, 1.5],
    "c": [0.25 + 1j, -0.5 - 0.25j, 0.75, 1.5j],
}
RIGHT = {
    "b": [True, True, False, True],
    "i": [2, 3, 1, 2],
    "u": [2, 3, 1, 2],
    "f": [0.5, 2.0, 0.25, 3.0],
    "c": [0.5 - 1j, 2.0, 0.25j, 3.0 + 0.5j],
}
WEAK = [2, 0.5, 1.5 + 0.5j, True]

BITWISE = {np.bitwise_and, np.bitwise_or, np.bitwise_xor}


def left(dtype: str) -> Any:
    return np.array(LEFT[np.dtype(dtype).kind]).astype(dtype)


def right(dtype: str) -> Any:
    return np.array(RIGHT[np.dtype(dtype).kind]).astype(dtype)


def all_ufuncs() -> list[np.ufunc]:
    scipy_ufuncs = (
        scipy.special.expit,
        scipy.special.logit,
        scipy.special.ndtr,
        scipy.special.entr,
        scipy.special.rel_entr,
    )
    run(lambda x: [f(*[x] * f.nin) for f in scipy_ufuncs], (np.array([0.25, 0.5]),))
    return list(dict.fromkeys([*ELEMENTWISE, *UFUNCS]))


UFUNCS_WITH_RULES = all_ufuncs()


def numpy_takes(ufunc: np.ufunc, arguments: tuple[Any, ...]) -> bool:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            ufunc(*arguments)
        except (TypeError, ValueError, OverflowError):
            return False
    return True


def is_refused(ufunc: np.ufunc, arguments: tuple[Any, ...]) -> bool:
    """There is no op of bits (`test_bitwise_operations_on_integers`), and special functions are of real numbers."""
    dtype = np.result_type(*arguments)
    return (ufunc in BITWISE and dtype != np.bool_) or (ufunc is scipy.special.psi and dtype.kind == "c")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ufunc", UFUNCS_WITH_RULES, ids=lambda ufunc: ufunc.__name__)
def test_ufunc_equals_numpy(ufunc: np.ufunc, dtype: str) -> None:
    if ufunc.nin == 1:
        candidates: list[tuple[Any, ...]] = [(left(dtype),), (left(dtype)[1],)]
    else:
        x = left(dtype)
        candidates = [(x, right(dtype)), (x[0], right(dtype)), (x[0], right(dtype)[0]), (x, right(dtype)[:, None])]
    for arguments in candidates:
        if not numpy_takes(ufunc, arguments):
            with pytest.raises(SrcgradError):
                run(lambda *xs: ufunc(*xs), arguments)
        elif not is_refused(ufunc, arguments):
            compare(lambda *xs: ufunc(*xs), arguments)


@pytest.mark.parametrize("ufunc", [u for u in UFUNCS_WITH_RULES if u.nin == 2], ids=lambda ufunc: ufunc.__name__)
def test_mixed_dtypes(ufunc: np.ufunc) -> None:
    for one, other in itertools.combinations(DTYPES, 2):
        arguments = (left(one), right(other))
        if numpy_takes(ufunc, arguments) and not is_refused(ufunc, arguments):
            compare(lambda *xs: ufunc(*xs), arguments)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ufunc", [u for u in UFUNCS_WITH_RULES if u.nin == 2], ids=lambda ufunc: ufunc.__name__)
def test_python_numbers_are_weak(ufunc: np.ufunc, dtype: str) -> None:
    x = left(dtype)
    for number in WEAK:
        for arguments in ((x, number), (number, x), (x[0], number)):
            if numpy_takes(ufunc, arguments) and not is_refused(ufunc, arguments):
                if isinstance(arguments[0], np.ndarray | np.generic):
                    compare(lambda y, number=number: ufunc(y, number), (arguments[0],))
                else:
                    compare(lambda y, number=number: ufunc(number, y), (arguments[1],))


@pytest.mark.parametrize("concrete", [False, True])
def test_traced_python_numbers_are_weak(concrete: bool) -> None:
    """A float argument is weak, arithmetic between such stays weak, and a ufunc's result is a NumPy scalar."""
    f32, i8 = np.array([1.5, 2.0], np.float32), np.array([1, 2], np.int8)

    def program(a: Any, x: Any, i: Any) -> Any:
        b = a * 2 + 1
        return (
            a * x,
            b * x,
            x**b,
            i * a,
            np.sin(a) * x,
            np.add(a, 1.0) * x,
            (-b) / x,
            abs(b) * x,
            (a**2) * x,
            x + (a > b),
        )

    compare(program, (0.5, f32, i8), concrete)
    compare(lambda c, x: (c * x, (c + 1) * x, abs(c) * x), (1.0 + 2.0j, f32), concrete)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name)
    for name in [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "and_",
        "or_",
        "xor",
        "iadd",
        "isub",
        "imul",
        "itruediv",
        "ifloordiv",
        "imod",
        "ipow",
    ]
}
OPERATORS["divmod"] = divmod


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    f = OPERATORS[name]
    boolean = name in ("and_", "or_", "xor")
    x, y = (
        (left("bool"), right("bool")) if boolean else (np.array([1.5, -2.0, 0.5, 4.0]), np.array([2.0, 3.0, -1.0, 0.5]))
    )
    for a, b in ((x, y), (x, y[1]), (x[1], y), (x[0], y[0]), (x, np.array(y[1]))):
        if name == "ipow" or not (isinstance(a, np.generic) and name.startswith("i")):
            compare(lambda p, q: f(p if not np.ndim(p) else p.copy(), q), (a, b))
    if boolean:
        compare(lambda p: (f(p, True), f(p, y)), (x,))
        return
    compare(lambda p: (f(p.copy(), 3), f(p.copy(), 0.5), f(p.copy(), y), f(p.copy(), np.float32(2))), (x,))
    if not name.startswith("i"):
        compare(lambda p: (f(3, p), f(0.5, p), f(y, p), f(np.float32(2), p), f([1.0, 2.0, 3.0, 4.0], p)), (np.abs(x),))
        compare(lambda p: (f(p, 3), f(3, p), f(p, p)), (np.array([1, 5, 2], np.int32),))


def test_unary_operators() -> None:
    compare(lambda x: (-x, +x, abs(x)), (left("float64"),))
    compare(lambda x: (~x, ~(x & x)), (left("bool"),))
    compare(lambda x: (~x, -x, +x, abs(x)), (left("int8"),))
    compare(lambda x: (abs(x), -x), (left("complex128"),))
    compare(lambda x: (round(x[0], 1), abs(round(x[1])) * 1.0), (left("float64"),))


def test_integer_powers_are_exact() -> None:
    x = np.array([0.0, -2.0, 3.0])
    compare(lambda x: (x**2, x**3, x**0, x**1, (x + 1) ** -2), (x,))
    compare(lambda x: (x**2, x**3, x**0), (np.array([2, -3], np.int8),))
    compare(lambda x: (x**2, x**-1, x**0.5), (left("complex128"),))


def test_in_place() -> None:
    def program(x: Any) -> Any:
        y = x.copy()
        z = y[1:]
        y += 1
        z *= y[:-1]
        y[0] -= 5.0
        y /= 2
        y **= 2
        y %= 3.0
        y //= 0.5
        return y, z

    compare(program, (np.array([1.5, 2.5, -3.0]),))
    compare(lambda x: operator.imatmul(x.copy(), x), (np.eye(3) + 0.5,))
    directional(lambda x: operator.imul(x.copy()[::-1], x), (np.array([1.5, 2.5, -3.0]),))


def test_out_and_where() -> None:
    def program(x: Any) -> Any:
        y, z = np.zeros_like(x), np.ones_like(x)
        found = np.sin(x, out=y)
        np.add(x, 1.0, out=z, where=x > 0)
        np.divmod(x, 0.75, out=(y, z))
        return found, y, z

    compare(program, (np.array([1.5, -2.5, 3.0]),))


def test_methods_of_ufuncs() -> None:
    x = np.arange(6.0).reshape(2, 3) - 2.5
    compare(
        lambda x: (
            np.add.reduce(x),
            np.add.reduce(x, axis=None),
            np.multiply.reduce(x, axis=1, keepdims=True),
            np.maximum.reduce(x, 1),
            np.add.reduce(x, where=x > 0),
            np.minimum.reduce(x, initial=0.0),
            np.logical_or.reduce(x > 2),
        ),
        (x,),
    )
    compare(
        lambda x: (np.add.accumulate(x), np.multiply.accumulate(x, axis=1), np.add.accumulate(x, 1, np.float32)), (x,)
    )
    compare(lambda x: (np.add.outer(x, x[0]), np.multiply.outer(x[0], 2.0), np.logaddexp.outer(x[0], x[1])), (x,))
    compare(lambda x: (np.add(x, 1, dtype=np.float32), np.sin(x, dtype=np.float32)), (np.arange(3),))


def test_bitwise_operations_on_integers() -> None:
    for f in (operator.and_, operator.or_, operator.xor):
        with pytest.raises(UnsupportedError, match="arithmetic"):
            run(lambda x, f=f: f(x, 1), (np.array([1, 2]),))


def unsupported() -> list[np.ufunc]:
    found = [value for value in vars(np).values() if isinstance(value, np.ufunc)]
    return [f for f in dict.fromkeys(found) if f not in ELEMENTWISE and f not in UFUNCS and f not in FUNCTIONS]


@pytest.mark.parametrize("ufunc", unsupported(), ids=lambda ufunc: ufunc.__name__)
def test_unsupported_ufuncs_say_so(ufunc: np.ufunc) -> None:
    with pytest.raises(UnsupportedError, match=f"np.{ufunc.__name__} has no derivative rule"):
        run(lambda x: ufunc(*[x] * ufunc.nin), (np.array([1.0, 2.0]),))


def test_errors() -> None:
    x, y = np.arange(3.0), np.arange(4.0)
    cases: list[tuple[Callable[..., Any], tuple[Any, ...], type[Exception]]] = [
        (lambda a, b: a + b, (x, y), ShapeError),
        (lambda a, b: operator.iadd(a, b), (x, y[:, None]), ShapeError),
        (lambda a, b: operator.iadd(a, b), (np.arange(3), x), DTypeError),
        (lambda a, b: np.add(a, b, out=np.zeros(3)), (x, x), UnsupportedError),
        (lambda a, b: np.add(a, b, where=a > 1), (x, x), UnsupportedError),
        (lambda a, b: np.hypot.reduce(a), (x, x), UnsupportedError),
        (lambda a, b: np.maximum.at(a, [0], 1.0), (x, x), UnsupportedError),
        (lambda a, b: np.add.reduceat(a, [0, 1]), (x, x), UnsupportedError),
        (lambda a, b: np.negative(a > 0), (x, x), DTypeError),
        (lambda a, b: np.add(a, b, signature="ff->f"), (x, x), UnsupportedError),
        (lambda a, b: a < 1j, (x, x), DTypeError)
        if not numpy_takes(np.less, (x, 1j))
        else (lambda a, b: a @ b, (x, y), ShapeError),
    ]
    for program, arguments, error in cases:
        with pytest.raises(error):
            run(program, arguments)
    with pytest.raises(TypeError):
        run(lambda a: a + "text", (x,))


SMOOTH_UNARY = {
    "log log2 log10 sqrt arccosh": (1.2, 3.0),
    "log1p cbrt": (0.3, 2.0),
    "reciprocal": (0.5, 2.0),
    "logit entr": (0.1, 0.9),
}


@pytest.mark.parametrize("ufunc", UFUNCS_WITH_RULES, ids=lambda ufunc: ufunc.__name__)
def test_derivatives(ufunc: np.ufunc) -> None:
    low, high = next((span for names, span in SMOOTH_UNARY.items() if ufunc.__name__ in names.split()), (0.15, 0.85))
    x = np.random.default_rng(5).uniform(low, high, (2, 3))
    arguments = (x,) if ufunc.nin == 1 else (x, np.random.default_rng(6).uniform(0.9, 1.8, 3))
    if numpy_takes(ufunc, arguments):
        directional(lambda *xs: ufunc(*xs), arguments)
