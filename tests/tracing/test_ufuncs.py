"""Every ufunc, on every dtype and with Python numbers, gives NumPy's value and dtype; and so do the operators."""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import scipy.special

import srcgrad as sg
from srcgrad.errors import DTypeError, ShapeError, SrcgradError, UnsupportedError
from srcgrad.tracing.tracer import FUNCTIONS
from srcgrad.tracing.ufuncs import ELEMENTWISE, UFUNCS, UNTRACED
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

COMPLEX_NAMES = """
    airy dawsn digamma erf erfc erfcx erfi eval_chebyc eval_chebys eval_chebyt eval_chebyu eval_gegenbauer
    eval_genlaguerre eval_jacobi eval_laguerre eval_legendre eval_sh_chebyt eval_sh_chebyu eval_sh_jacobi
    eval_sh_legendre exp1 expi expm1 gamma hankel1 hankel2 hyp0f1 hyp1f1 hyp2f1 iv jn jv kv log1p loggamma psi rgamma
    shichi sici wofz wrightomega xlogy xlog1py yv
"""
COMPLEX = frozenset(COMPLEX_NAMES.split())
"""The ufuncs of SciPy that are traced for complex numbers too; the others that SciPy has of them are refused."""
SPECIAL = {value for value in vars(scipy.special).values() if isinstance(value, np.ufunc)}


def left(dtype: str) -> Any:
    return np.array(LEFT[np.dtype(dtype).kind]).astype(dtype)


def right(dtype: str) -> Any:
    return np.array(RIGHT[np.dtype(dtype).kind]).astype(dtype)


def all_ufuncs() -> list[np.ufunc]:
    run(lambda x: scipy.special.expit(x), (np.array([0.25, 0.5]),))  # now the rules of scipy.special are known
    return [ufunc for ufunc in dict.fromkeys([*ELEMENTWISE, *UFUNCS]) if not ufunc.__name__.startswith("_")]


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
    """Most special functions are of real numbers, and SciPy's Mathieu functions are nan of float32."""
    dtype = np.result_type(*arguments)
    if ufunc.__name__ in MATHIEU.split() and dtype.itemsize < 8 and dtype not in (np.int32, np.uint32):
        return True
    return ufunc in SPECIAL and ufunc.__name__ not in COMPLEX and dtype.kind == "c"


def candidates(ufunc: np.ufunc, dtype: str) -> list[tuple[Any, ...]]:
    x = left(dtype)
    if ufunc.nin == 1:
        return [(x,), (x[1],)]
    if ufunc.nin == 2:
        return [(x, right(dtype)), (x[0], right(dtype)), (x[0], right(dtype)[0]), (x, right(dtype)[:, None])]
    return [(x, *[right(dtype)] * (ufunc.nin - 1))]


@contextmanager
def named(*arguments: Any) -> Iterator[None]:
    """An error within says what the arguments were."""
    try:
        yield
    except Exception as error:
        error.add_note(f"on {arguments}")
        raise


@pytest.mark.parametrize("ufunc", UFUNCS_WITH_RULES, ids=lambda ufunc: ufunc.__name__)
def test_ufunc_equals_numpy(ufunc: np.ufunc) -> None:
    for arguments in itertools.chain.from_iterable(candidates(ufunc, dtype) for dtype in DTYPES):
        with named(*arguments):
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


@pytest.mark.parametrize("ufunc", [u for u in UFUNCS_WITH_RULES if u.nin == 2], ids=lambda ufunc: ufunc.__name__)
def test_python_numbers_are_weak(ufunc: np.ufunc) -> None:
    for dtype, number in itertools.product(DTYPES, WEAK):
        x = left(dtype)
        for arguments in ((x, number), (number, x), (x[0], number)):
            if numpy_takes(ufunc, arguments) and not is_refused(ufunc, arguments):
                with named(*arguments):
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


COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("ufunc", COMPARISONS)
def test_comparisons_of_integers_are_exact(ufunc: np.ufunc, backend: str) -> None:
    """Of signed with unsigned ones, and with numbers of Python's that their dtype does not hold."""
    small = np.array([0, 1, 127, 255], np.uint8)
    signed = np.array([-(2**63), -1, 5, 2**63 - 1])
    unsigned = np.array([2**63, 2**64 - 1, 5, 2**63 - 1], np.uint64)
    numbers = (-1, 255, 256, 2**40, 2**63, 2**64 - 1, -(2**63))
    cases: list[tuple[Any, tuple[Any, ...]]] = [
        (lambda x, y: (ufunc(x, y), ufunc(y, x), ufunc(x[1], y)), (signed, unsigned)),
        (lambda x, y: (ufunc(x, y), ufunc(y, x)), (signed.astype(np.int8), unsigned)),
        (lambda x: [f for n in numbers for f in (ufunc(x, n), ufunc(n, x), ufunc(x[0], n))], (small,)),
        (lambda x: [f for n in numbers for f in (ufunc(x, n), ufunc(n, x))], (unsigned,)),
        (lambda x: [ufunc(x, n) for n in numbers], (signed,)),
    ]
    for f, arrays in cases:
        for found, expected in zip(sg.jit(f, backend=backend)(*arrays), f(*arrays), strict=True):
            assert type(found) is type(expected) and found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


def test_a_traced_counter_is_compared_as_pythons() -> None:
    def hits(x: Any, y: Any) -> Any:
        k = 0
        while y < 100.0:
            y, k = y * 2.0, k + 64
        return np.sum(x == k) + y

    labels = np.array([0, 128, 255], np.uint8)
    for y in (50.0, 2.0, 0.3):
        assert sg.jit(hits)(labels, y) == hits(labels, y)


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


def test_bitwise_operations() -> None:
    x = np.array([[3, 5, 250], [7, 0, 12]], np.uint8)
    compare(lambda x: (x & 3, x | np.uint8(4), x ^ x[::-1], ~x, x << 2, x >> 1, 3 & x, 200 >> x, 1 << x), (x,))
    compare(lambda x: (~x, x & -2, x >> 70, x << 70, x >> 1), (np.array([-5, 7, 0]),))
    compare(lambda x: (np.bitwise_count(x), np.gcd(x, 6), np.lcm(x, 6)), (np.array([-5, 7, 0]),))


def namespace_ufuncs(module: Any) -> list[np.ufunc]:
    return list(dict.fromkeys(value for value in vars(module).values() if isinstance(value, np.ufunc)))


def is_traced(ufunc: np.ufunc) -> bool:
    return ufunc in ELEMENTWISE or ufunc in UFUNCS or ufunc in FUNCTIONS


@pytest.mark.parametrize("module", [np, scipy.special], ids=lambda module: module.__name__)
def test_every_ufunc_has_a_rule_or_a_reason(module: Any) -> None:
    """The whole namespace: no ufunc is forgotten, none has both, and each reason says something."""
    for ufunc in namespace_ufuncs(module):
        assert is_traced(ufunc) != (ufunc in UNTRACED), ufunc.__name__
    assert all(len(reason.split()) >= 4 for reason in UNTRACED.values())


@pytest.mark.parametrize("ufunc", list(UNTRACED), ids=lambda ufunc: ufunc.__name__)
def test_unsupported_ufuncs_say_why(ufunc: np.ufunc) -> None:
    with pytest.raises(UnsupportedError, match=f"{ufunc.__name__} has no derivative rule in srcgrad: .* .* .* "):
        run(lambda x: ufunc(*[x] * ufunc.nin), (np.array([1.0, 2.0]),))


X = np.arange(12.0).reshape(3, 4) - 4.3


def reductions(x: Any) -> Any:
    return (
        np.logaddexp2.reduce(x, axis=1),
        np.hypot.reduce(x, axis=None, keepdims=True),
        np.fmax.reduce(x, axis=(0, 1)),
        np.subtract.reduce(x, axis=1),
        np.true_divide.reduce(x),
        np.power.reduce(np.abs(x)),
        np.logical_xor.reduce(x > 0),
        np.fmax.reduce(x, initial=3.0),
        np.fmin.reduce(x, where=x > 0, initial=100.0),
    )


def accumulations(x: Any) -> Any:
    return (
        np.maximum.accumulate(x),
        np.logaddexp.accumulate(x, 1),
        np.subtract.accumulate(x, axis=1),
        np.fmin.accumulate(x, axis=-1),
        np.logical_and.accumulate(x > -3),
        np.maximum.accumulate(x[:1]),
    )


def segments(x: Any) -> Any:
    return (
        np.add.reduceat(x, [0, 2, 1], axis=1),
        np.multiply.reduceat(x, [0, 1]),
        np.maximum.reduceat(x, [0, 2, 1, 1], axis=-1),
        np.logaddexp.reduceat(x, [0, 2], 1),
    )


@pytest.mark.parametrize("program", [reductions, accumulations, segments], ids=lambda program: program.__name__)
def test_methods_of_any_ufunc(program: Callable[..., Any]) -> None:
    compare(program, (X,))
    directional(program, (X,))


RAGGED = np.cumsum(np.random.default_rng(0).permutation(np.repeat(np.arange(1, 12), 3))) - 1
"""Where segments of eleven lengths start, after one element."""


def long_segments(x: Any) -> Any:
    return (
        np.add.reduceat(x, RAGGED, axis=1),
        np.maximum.reduceat(x, RAGGED, axis=1),
        np.minimum.reduceat(x.T, RAGGED),
        np.multiply.reduceat(x, RAGGED, axis=1),
        np.logaddexp.reduceat(x, RAGGED + 2, axis=1),
        np.add.reduceat(x, RAGGED[::-1], axis=1),
        np.multiply.reduceat(x, np.arange(3, 200, 7), axis=-1),
        np.add.reduceat(x.T, np.arange(0, 200, 5)),
        np.add.reduceat(-0.0 * x[0], RAGGED),
    )


def test_segments_of_ufuncs_are_folded_by_their_lengths() -> None:
    """One by one they were two operations each: of 20,000 segments the program crashed."""
    x = np.random.default_rng(1).normal(size=(2, RAGGED[-1] + 5))
    compare(long_segments, (x,))
    directional(long_segments, (x,))
    signs = np.signbit(np.add.reduceat(np.full(RAGGED[-1] + 1, -0.0), RAGGED))
    assert np.array_equal(
        np.signbit(sg.jit(lambda v: np.add.reduceat(v, RAGGED))(np.full(RAGGED[-1] + 1, -0.0))), signs
    )
    for dtype in ("f4", "i4", "c16", "?"):
        numbers = (10 * x[0]).astype(dtype)
        found = sg.jit(lambda v: np.add.reduceat(v, RAGGED))(numbers)
        wanted = np.add.reduceat(numbers, RAGGED)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    y = np.random.default_rng(2).normal(size=100_000)
    slope = sg.grad(lambda v: np.sum(np.add.reduceat(v, np.arange(0, v.size, 5)) ** 2))(y)
    np.testing.assert_allclose(slope, np.repeat(2 * y.reshape(-1, 5).sum(1), 5), rtol=1e-9, atol=1e-12)


FOLDS = (np.add, np.maximum, np.minimum, np.multiply)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("ufunc", FOLDS, ids=lambda ufunc: ufunc.__name__)
def test_segments_of_any_lengths_are_as_many_operations(ufunc: np.ufunc, backend: str) -> None:
    """They were some for each length: of 1,000 segments among a million numbers nothing was compiled within 40 s."""

    def fold(starts: Any) -> Any:
        return lambda x: np.sum(ufunc.reduceat(x, starts) ** 2)

    operations = set()
    for count in (40, 400):
        random = np.random.default_rng(3)
        starts = np.sort(random.choice(10_000, count, replace=False))
        x = random.uniform(0.99, 1.01, 10_000)
        x[::3] = x[starts[0]]  # ties
        found, slope = sg.value_and_grad(fold(starts), backend=backend)(x)
        assert found == pytest.approx(fold(starts)(x), rel=1e-10)
        folds, number = ufunc.reduceat(x, starts), np.cumsum(np.isin(np.arange(x.size), starts)) - 1
        inside = number >= 0
        number = np.maximum(number, 0)
        if ufunc is np.add:
            share = np.ones(x.size)
        elif ufunc is np.multiply:
            share = folds[number] / x
        else:
            chosen = x == folds[number]
            share = chosen / np.bincount(number, chosen & inside)[number]
        np.testing.assert_allclose(slope, np.where(inside, 2 * folds[number] * share, 0.0), rtol=1e-9)
        text = sg.explain(sg.grad(fold(starts), backend=backend))(x)["ir"]
        operations.add(sum(" = " in line for line in text.splitlines() if not line.strip().startswith("#")))
    assert max(operations) <= 25


def test_sums_of_long_segments_are_as_exact_as_numpys() -> None:
    x = np.full(3_000_000, 0.1, np.float32)
    starts = np.cumsum(np.arange(0, 10)) * 50_000
    found = sg.jit(lambda v: np.add.reduceat(v, starts))(x)
    exact = np.diff(np.append(starts, x.size)) * float(np.float32(0.1))
    np.testing.assert_allclose(found, exact, rtol=2e-5)
    np.testing.assert_allclose(np.add.reduceat(x, starts), exact, rtol=2e-5)


def test_the_hypot_of_one_number_is_its_magnitude_where_it_is_reduced() -> None:
    compare(
        lambda x: (np.hypot.reduce(x[:1], axis=0), np.hypot.reduceat(x[0], [0, 1]), np.hypot.reduce(x[0, 1:2])), (X,)
    )


def test_methods_of_ufuncs_of_integers_and_of_nothing() -> None:
    x = np.array([[3, 5, 250], [7, 0, 12]], np.uint8)
    compare(lambda x: (np.logaddexp2.reduce(x[:0]), np.hypot.reduce(x[:, :0], axis=1)), (X,))
    compare(
        lambda x: (
            np.bitwise_xor.reduce(x),
            np.bitwise_and.reduce(x, axis=1),
            np.gcd.reduce(x, axis=None),
            np.bitwise_or.accumulate(x, axis=1),
            np.add.reduceat(x, [0, 1]),
            np.bitwise_or.outer(x[0], x[1]),
        ),
        (x,),
    )


AT: list[tuple[np.ufunc, Any, tuple[Any, ...]]] = [
    (np.multiply, ([0, 0, 1, 0], [1, 1, 2, 1]), (np.array([2.0, 3.0, 4.0, 5.0]),)),
    (np.maximum, [0, 0, 2], (0.5,)),
    (np.negative, [0, 0, 2], ()),
    (np.divide, (slice(None), 1), (2.0,)),
    (np.power, (np.array([True, False, True]), slice(1, 3)), (2.0,)),
    (np.add, [0, 0], (1.5,)),
    (np.subtract, [0, 0], (X[0],)),
    (np.minimum, 1, (-1.0,)),
]


@pytest.mark.parametrize(("ufunc", "index", "values"), AT, ids=[case[0].__name__ for case in AT])
def test_at_counts_duplicates(ufunc: np.ufunc, index: Any, values: tuple[Any, ...]) -> None:
    def program(x: Any) -> Any:
        y = x.copy()
        ufunc.at(y, index, *values)
        return y

    compare(program, (X,))
    directional(program, (X,))


def test_parts_of_floating_numbers() -> None:
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 2.5])
    for x in (X, special):
        compare(
            lambda x: (
                *np.frexp(x),
                *np.modf(x),
                np.ldexp(x, 3),
                np.ldexp(x, -2000),
                np.spacing(x),
                np.nextafter(x, 0.0),
                np.signbit(x),
            ),
            (x,),
        )
    directional(lambda x: (np.frexp(x)[0], np.ldexp(x, 3), np.nextafter(x, 9.0)), (X,))
    compare(lambda x: (np.i0(x), np.i0(x[0, 0])), (X,))


def test_errors() -> None:
    x, y = np.arange(3.0), np.arange(4.0)
    cases: list[tuple[Callable[..., Any], tuple[Any, ...], type[Exception]]] = [
        (lambda a, b: a + b, (x, y), ShapeError),
        (lambda a, b: operator.iadd(a, b), (x, y[:, None]), ShapeError),
        (lambda a, b: operator.iadd(a, b), (np.arange(3), x), DTypeError),
        (lambda a, b: np.add(a, b, out=np.zeros(3)), (x, x), UnsupportedError),
        (lambda a, b: np.add(a, b, where=a > 1), (x, x), UnsupportedError),
        (lambda a, b: np.maximum.reduce(a[:0]), (x, x), ShapeError),
        (lambda a, b: np.fmax.reduce(a[:0]), (x, x), ShapeError),
        (lambda a, b: np.add.reduceat(a, [0, 9]), (x, x), IndexError),
        (lambda a, b: np.divide.at(np.arange(3), [0], a[:1]), (x, x), UnsupportedError),
        (lambda a, b: np.negative(a > 0), (x, x), DTypeError),
        (lambda a, b: np.add(a, b, signature="ii->i"), (x, x), DTypeError),
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


COUNTS = {"bdtr": (3.0, 5), "bdtrc": (3.0, 5), "bdtri": (3.0, 5), "nbdtr": (3, 5), "nbdtrc": (3, 5), "nbdtri": (3, 5)}
"""Of distributions of whole numbers, these; they are differentiated in the chance."""
MATHIEU = "mathieu_cem mathieu_sem mathieu_modcem1 mathieu_modcem2 mathieu_modsem1 mathieu_modsem2"
LAST = """
    yn kn struve modstruve pbdv pbvv pbwa hankel1 hankel1e hankel2 hankel2e lpmv wright_bessel
    log_wright_bessel expn pdtri fdtri
"""
IN_THE_LAST = {*LAST.split(), *MATHIEU.split()}
"""Special functions of which the last operand alone is differentiated, beside polynomials and hypergeometric ones."""
IN_SOME = {"chndtr": (0, 2), "besselpoly": (0,), "mathieu_a": (), "mathieu_b": ()}
"""Those of which these operands are."""
OF_WHOLE_NUMBERS = {"lpmv", *MATHIEU.split()}


@pytest.mark.parametrize("ufunc", UFUNCS_WITH_RULES, ids=lambda ufunc: ufunc.__name__)
def test_derivatives(ufunc: np.ufunc) -> None:
    name = ufunc.__name__
    low, high = next((span for names, span in SMOOTH_UNARY.items() if name in names.split()), (0.15, 0.85))
    x = np.random.default_rng(5).uniform(low, high, (2, 3))
    if ufunc.nin == 1:
        directional(lambda *xs: ufunc(*xs), (x,)) if numpy_takes(ufunc, (x,)) else None
        return
    others = [np.random.default_rng(6 + k).uniform(0.9, 1.8, 3) for k in range(ufunc.nin - 1)]
    others = [0.5 * other for other in others] if name.startswith("ellip") else others
    arguments = (x, *others)
    if name in COUNTS:
        directional(lambda x: ufunc(*COUNTS[name], x), (x,))
    elif ufunc in SPECIAL and (name.startswith(("eval_", "hyp")) or name in IN_THE_LAST):
        first = np.array([0, 1, 3]) if name.startswith("eval_") else others[0]
        first = np.array([1.0, 2.0, 3.0]) if name in OF_WHOLE_NUMBERS else first
        directional(lambda x: ufunc(first, *others[1:], x), (x,))
    elif name in IN_SOME:
        chosen = IN_SOME[name]
        known = dict(enumerate(arguments))

        def function(*xs: Any) -> Any:
            return ufunc(*(known | dict(zip(chosen, xs, strict=True))).values())

        directional(function, tuple(known[k] for k in chosen))
    elif numpy_takes(ufunc, arguments):
        directional(lambda *xs: ufunc(*xs), arguments)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", ["jv", "yv", "iv", "kv", "hankel1", "hankel2"])
def test_bessel_functions_of_complex_arguments_are_holomorphic(name: str, backend: Any) -> None:
    """Along both axes they have one derivative, half the difference or sum of the neighbouring orders."""
    function = getattr(scipy.special, name)
    v, z = np.array([0.5, 2.0, 1.25]), np.array([0.3 + 0.4j, 2.0 - 3.0j, 1.5 + 0.1j])
    below, above = {"iv": (0.5, 0.5), "kv": (-0.5, -0.5)}.get(name, (0.5, -0.5))
    expected = below * function(v - 1, z) + above * function(v + 1, z)
    for direction in (1.0 + 0j, 1j):
        value, slope = sg.jvp(lambda z: function(v, z), (z,), (np.full(3, direction),), backend=backend)
        np.testing.assert_array_equal(value, function(v, z))
        np.testing.assert_allclose(slope, direction * expected, rtol=1e-13)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_second_derivatives_of_the_gamma_function_of_complex_numbers(backend: Any) -> None:
    """By its values on a circle: Cauchy's formula, to the last digits but a few."""
    z, turns = (
        np.array([0.7 + 0.3j, 3.0 - 2.0j, -4.3 + 0.2j, -20.5 - 3.0j, 15 + 9j]),
        np.exp(2j * np.pi * np.arange(32) / 32),
    )
    ones = np.ones(5, complex)
    for function in (scipy.special.loggamma, scipy.special.rgamma):

        def slope(z: Any, function: Any = function) -> Any:
            return sg.jvp(function, (z,), (ones,), backend=backend)[1]

        radius = 0.15
        around = function(z[:, None] + radius * turns)
        expected = 2 * np.mean(around * turns**-2, axis=1) / radius**2
        _, found = sg.jvp(slope, (z,), (ones,), backend=backend)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "i8", "u8", "?"])
def test_divmod_of_whole_numbers_is_numpys_at_zero_and_at_the_limits(dtype: str, backend: Any) -> None:
    """The remainder comes from the quotient: by 0 both are 0, and the least number by -1 is itself."""
    info = np.iinfo("u1" if dtype == "?" else dtype)
    numbers = np.array([0, 1, 2, 7, info.max, info.min, *([-1, -3] if info.min else [])], object)
    x, y = (part.ravel().astype(dtype) for part in np.meshgrid(numbers, numbers))
    with np.errstate(all="ignore"):
        expected = np.divmod(x, y)
        found = sg.jit(lambda x, y: np.divmod(x, y), backend=backend)(x, y)
    for result, known in zip(found, expected, strict=True):
        assert result.dtype == known.dtype
        np.testing.assert_array_equal(result, known)
