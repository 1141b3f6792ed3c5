"""Operations that differ in the order of their operands only are one, of ops that commute bit by bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import srcgrad.ir.ops  # noqa: F401  (registers the ops)
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Function, Operation, Value, literal
from srcgrad.ir.opdef import REGISTRY, Elementwise
from srcgrad.ir.passes.cse import cse
from srcgrad.ir.types import ArrayType

DTYPES = {
    "b": (np.bool_,),
    "i": (np.int8, np.int64),
    "u": (np.uint8, np.uint64),
    "f": (np.float16, np.float32, np.float64),
    "c": (np.complex64, np.complex128),
}
COMMUTING = [(name, np.dtype(dtype)) for name, op in REGISTRY.items() for kind in op.commutes for dtype in DTYPES[kind]]
NOT_COMMUTING = [
    ("sub", np.float64),
    ("div", np.float64),
    ("less", np.float64),
    ("pow", np.float64),
    ("maximum", np.float64),  # of -0.0 and 0.0, and of two nans, it is one of the operands
    ("minimum", np.float64),
    ("mul", np.complex128),
    ("left_shift", np.int64),
    ("logical_and", np.bool_),  # no bits depend on it, but what masks are paths of
]
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 1e308]


def both_ways(name: str, x: Value, y: Value) -> Function:
    """An op of two operands and of the two exchanged, without a builder's merging."""
    types = REGISTRY[name].result_types([x.type, y.type])
    found = [Operation(REGISTRY[name], operands, {}, (), types, None) for operands in ((x, y), (y, x))]
    params = [value for value in (x, y) if type(value) is Value]
    return Function("f", params, found, [operation.results[0] for operation in found])


def parameters(dtype: np.dtype, count: int = 0) -> tuple[Value, Value]:
    type = ArrayType(dtype, (count,) if count else ())
    return Value(type, None, "x"), Value(type, None, "y")


def test_the_basic_ops_commute() -> None:
    assert {"add", "mul", "equal", "not_equal", "logical_or", "bitwise_xor"} <= {name for name, _ in COMMUTING}


@pytest.mark.whole
@pytest.mark.parametrize(("name", "dtype"), COMMUTING, ids=str)
def test_exchanged_operands_are_merged(name: str, dtype: np.dtype) -> None:
    function = cse(both_ways(name, *parameters(dtype)))
    assert len(function.operations) == 1
    assert function.results[0] is function.results[1] is function.operations[0].results[0]


@pytest.mark.parametrize(("name", "dtype"), NOT_COMMUTING, ids=str)
def test_what_depends_on_the_order_is_not_merged(name: str, dtype: type) -> None:
    function = both_ways(name, *parameters(np.dtype(dtype)))
    assert cse(function) is function


def test_equal_literals_on_either_side_are_merged() -> None:
    x, _ = parameters(np.dtype(np.float64))
    types = [x.type]
    left, right, other = (literal(number, x.type) for number in (2.0, 2.0, -2.0))
    mul = REGISTRY["mul"]
    found = [Operation(mul, operands, {}, (), types, None) for operands in ((left, x), (x, right), (x, other))]
    function = Function("f", [x], found, [operation.results[0] for operation in found])
    assert cse(function).operations == (found[0], found[2])


def test_a_builder_emits_exchanged_operands_once() -> None:
    builder = Builder()
    x, y = (builder.param(value.type) for value in parameters(np.dtype(np.float64)))
    assert builder.emit(REGISTRY["mul"], [x, y]) is builder.emit(REGISTRY["mul"], [y, x])
    assert builder.emit(REGISTRY["sub"], [x, y]) is not builder.emit(REGISTRY["sub"], [y, x])


def test_linear_operands_keep_their_places() -> None:
    """t*y + y*t as twice one product has the cotangent 2c, which overflows where the products c*y do not."""
    _, y = parameters(np.dtype(np.float64))
    tangent = Value(y.type, None, "t", True)
    function = both_ways("mul", tangent, y)
    assert cse(function) is function


def operands_of(dtype: np.dtype, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All pairs of special values, and many random numbers."""
    shape, kind = (2, 1000), dtype.kind
    if kind in "fc":
        with np.errstate(over="ignore"):
            points = np.array(SPECIAL).astype(np.float64 if kind == "c" else dtype)
        if kind == "c":
            points = np.ravel(points[:, None] + points * 1j).astype(dtype)
        yield tuple(map(np.ravel, np.meshgrid(points, points)))
        numbers = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)
        yield tuple((numbers + 1j * rng.standard_normal(shape) if kind == "c" else numbers).astype(dtype))
    elif kind == "b":
        yield tuple(rng.integers(0, 2, shape).astype(dtype))
    else:
        info = np.iinfo(dtype)
        yield tuple(rng.integers(info.min, info.max, shape, dtype, endpoint=True))


@pytest.mark.whole
@pytest.mark.parametrize(("name", "dtype"), COMMUTING, ids=str)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_merged_has_equal_bits(name: str, dtype: np.dtype) -> None:
    assert isinstance(REGISTRY[name], Elementwise)
    assert REGISTRY[name].arity == 2
    for x, y in operands_of(dtype, np.random.default_rng(11)):
        one, other = evaluate(both_ways(name, *parameters(dtype, len(x))), [x, y])
        parts = [(one.real, other.real), (one.imag, other.imag)] if one.dtype.kind == "c" else [(one, other)]
        for left, right in parts:
            np.testing.assert_array_equal(left, right)  # nans are equal, zeros are too
            if left.dtype.kind == "f":
                some = ~np.isnan(left)
                np.testing.assert_array_equal(np.signbit(left)[some], np.signbit(right)[some])
