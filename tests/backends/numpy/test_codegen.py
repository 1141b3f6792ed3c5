"""Generated programs: equal to the interpreter, alias nothing, change no argument, and read well."""

from __future__ import annotations

import linecache
import traceback
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from srcgrad.backends.numpy.backend import BACKEND
from srcgrad.backends.numpy.codegen import generate
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Function, Literal, literal
from srcgrad.ir.opdef import REGISTRY, Elementwise, Op, Sample
from srcgrad.ir.source import Span
from srcgrad.ir.types import FLOAT64, INT64, ArrayType
from tests.backends.numpy.programs import SITES, arguments, on_every_sample, one_operation, same

VECTOR = ArrayType(FLOAT64, (3,))


def agree(function: Function, args: list[Any]) -> None:
    """The program's results are the interpreter's, are the caller's own, and its arguments stay as they are."""
    before = [np.array(arg) for arg in args]
    found = BACKEND.compile(function, SITES)(*args)
    expected = evaluate(function, args, SITES)
    assert len(found) == len(expected)
    for left, right in zip(found, expected, strict=True):
        assert same(left, right) or (rounds(function) and close(left, right))
    for arg, copy in zip(args, before, strict=True):
        assert same(np.asarray(arg), copy)
    check_owned(found, args)


def rounds(function: Function) -> bool:
    """Whether scalars and arrays round differently: NumPy's complex products, and helpers that sum."""
    values = [value for operation in function.walk() for value in (*operation.operands, *operation.results)]
    return any(value.type.dtype.kind == "c" for value in values) or any(
        getattr(operation.op, "helpers", ()) for operation in function.walk()
    )


def close(left: Any, right: Any) -> bool:
    """Equal to rounding errors."""
    if type(left) is not type(right) or left.dtype != right.dtype or left.dtype.kind not in "fc":
        return False
    eps = np.finfo(left.dtype).eps
    return left.shape == right.shape and np.allclose(left, right, rtol=4 * eps, atol=4 * eps, equal_nan=True)


def check_owned(results: tuple[Any, ...], args: list[Any]) -> None:
    arrays = [result for result in results if isinstance(result, np.ndarray)]
    assert all(array.flags.writeable for array in arrays)
    for left, right in combinations(arrays, 2):
        assert not np.shares_memory(left, right)
    for array in arrays:
        assert not any(isinstance(arg, np.ndarray) and np.shares_memory(array, arg) for arg in args)


@on_every_sample
def test_every_sample(op: Op, sample: Sample) -> None:
    agree(one_operation(op, sample), arguments(sample))


@on_every_sample
def test_every_sample_with_literals(op: Op, sample: Sample) -> None:
    """Each operand in turn as a constant, and all of them; splats where the op is elementwise."""
    count = len(sample.operands)
    if isinstance(op, Elementwise) and sample.operands and np.size(sample.operands[0]):
        first = tuple(np.full(np.shape(operand), np.asarray(operand).flat[0]) for operand in sample.operands)
        sample = Sample(first, sample.attrs)
    cases = [[position == constant for position in range(count)] for constant in range(count)]
    for constants in [*cases, [True] * count]:
        args = [arg for arg, constant in zip(arguments(sample), constants, strict=True) if not constant]
        agree(one_operation(op, sample, constants), args)


@on_every_sample
def test_strided_arguments(op: Op, sample: Sample) -> None:
    args = []
    for arg in arguments(sample):
        if isinstance(arg, np.ndarray):
            wide = np.zeros([2 * size for size in arg.shape], arg.dtype)
            view = wide[tuple(slice(None, None, -2) for _ in arg.shape)].T.reshape(arg.shape[::-1]).T
            strided = wide[tuple(slice(None, None, -2) for _ in arg.shape)] if arg.size else view
            strided[...] = arg
            strided.flags.writeable = False
            arg = strided
        args.append(arg)
    agree(one_operation(op, sample), args)


def aliasing(name: str) -> Function:
    builder = Builder()
    x, flag = builder.param(ArrayType(FLOAT64, (3, 3)), "x"), builder.param(ArrayType(np.dtype(np.bool_)), "flag")

    def emit(op: str, *operands: Any, **attrs: Any) -> Any:
        return builder.emit(REGISTRY[op], operands, attrs)

    y = emit("sin", x)
    dense = literal(np.arange(9.0).reshape(3, 3), x.type)
    outputs = {
        "argument": [x],
        "argument twice": [x, x],
        "view of an argument": [emit("transpose", x, perm=(1, 0))],
        "view and its base": [y, emit("transpose", y, perm=(1, 0)), emit("reverse", y, axes=(0,))],
        "only a view": [emit("transpose", emit("cos", x), perm=(1, 0))],
        "same value twice": [y, y],
        "constants": [dense, dense, literal(2.0, x.type), emit("transpose", dense, perm=(1, 0))],
        "broadcast": [emit("broadcast", emit("reduce_sum", x, axes=(0,)), shape=(3, 3), dims=(1,))],
        "view of a broadcast": [
            emit("transpose", emit("broadcast", emit("reduce_sum", y, axes=(0,)), shape=(3, 3), dims=(1,)), perm=(1, 0))
        ],
        "one of two": [emit("select", flag, x, y)],
        "one of two, and one of them": [emit("select", flag, y, emit("cos", x)), y],
        "barrier": [*builder.emit_operation(REGISTRY["barrier"], [x, y]).results, y],
        "identity": [emit("identity", x), emit("stop_gradient", y), y],
        "iota": [emit("iota", shape=(2, 3), axis=1, dtype=FLOAT64), emit("iota", shape=(4,), axis=0, dtype=FLOAT64)],
        "view of an iota": [emit("transpose", emit("iota", shape=(2, 3), axis=1, dtype=FLOAT64), perm=(1, 0))],
        "views of a constant": [
            emit("reverse", emit("transpose", dense, perm=(1, 0)), axes=(axis,)) for axis in (0, 1)
        ],
        "part": [emit("slice", y, starts=(0, 0), limits=(1, 3), strides=(1, 1))],
        "nothing": [],
        "flag": [flag, emit("logical_not", flag)],
    }
    return builder.function("f", outputs[name])


ALIASING = [
    "argument", "argument twice", "view of an argument", "view and its base", "only a view", "same value twice",
    "constants", "broadcast", "view of a broadcast", "one of two", "one of two, and one of them", "barrier", "identity",
    "iota", "part", "nothing", "flag", "view of an iota", "views of a constant",
]  # fmt: skip


@pytest.mark.parametrize("name", ALIASING)
@pytest.mark.parametrize("flag", [False, True])
def test_results_alias_nothing(name: str, flag: bool) -> None:
    function = aliasing(name)
    program = BACKEND.compile(function)
    x = np.linspace(-1.0, 1.0, 9).reshape(3, 3)
    args = [x, np.bool_(flag)]
    agree(function, args)
    first = program(*args)
    for array in first:
        if isinstance(array, np.ndarray):
            array[...] = 99.0
    for left, right in zip(program(*args), evaluate(function, args), strict=True):
        assert same(left, right)


def test_rank_0_arguments_given_as_arrays() -> None:
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64), "x")
    function = builder.function("f", [x, builder.emit(REGISTRY["sin"], [x])])
    found = BACKEND.compile(function)(np.array(0.5))
    assert [type(value) for value in found] == [np.float64, np.float64]


def layer() -> Function:
    """Tanh of an affine map, its sum, and the derivative by the bias, from lines that are named."""
    builder = Builder()
    x, w = builder.param(ArrayType(FLOAT64, (40, 20)), "x"), builder.param(ArrayType(FLOAT64, (20,)), "w.bar")
    line = Span.at("demo.py", 4, 8, 21, "loss", "h = np.tanh(x * w)")
    builder.span = line
    wide = builder.emit(REGISTRY["broadcast"], [w], {"shape": (40, 20), "dims": (1,)})
    h = builder.emit(REGISTRY["tanh"], [builder.emit(REGISTRY["mul"], [x, wide])])
    h.name = "h"
    builder.span = Span.at("demo.py", 5, 11, 20, "loss", "return np.sum(h)")
    total = builder.emit(REGISTRY["reduce_sum"], [h], {"axes": (0, 1)})
    builder.span = line.derive("adjoint")
    square = builder.emit(REGISTRY["mul"], [h, h])
    partial = builder.emit(REGISTRY["sub"], [literal(1.0, h.type), square])
    partial.name = "lambda"
    return builder.function("grad(loss)", [total, partial])


def test_the_text_reads_well() -> None:
    assert (
        generate(layer(), bare=True).text
        == '''\
@np.errstate(all="ignore")
def grad_loss(x, w_bar):
    """(x: f64[40,20], w_bar: f64[20]) -> (f64[], f64[40,20])"""
    # demo.py:4 | h = np.tanh(x * w)
    v0 = x * w_bar
    h = np.tanh(v0, out=v0)
    # demo.py:5 | return np.sum(h)
    v1 = np.sum(h)
    # adjoint of demo.py:4 | h = np.tanh(x * w)
    v2 = np.multiply(h, h, out=h)
    lambda_ = np.subtract(1.0, v2, out=v2)
    return v1, lambda_
'''
    )


def test_long_functions_are_cut_into_parts() -> None:
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64, (600,)), "x")
    first = value = builder.emit(REGISTRY["sin"], [x])
    kept = []
    for number in range(4000):
        value = builder.emit(REGISTRY["add" if number % 7 else "sub"], [value, first if number % 1000 else x])
        value.name = "x"
        if number % 500 == 3:
            kept.append(builder.emit(REGISTRY["reverse"], [value], {"axes": (0,)}))
    for other in kept:
        value = builder.emit(REGISTRY["mul"], [value, other])
    function = builder.function("f", [value, first])
    assert BACKEND.compile(function).source.count("(saved):") == 9
    agree(function, [np.linspace(0.0, 1e-3, 600)])


def test_the_same_region_twice() -> None:
    inner = Builder()
    y = inner.param(VECTOR, "y")
    region = inner.region([inner.emit(REGISTRY["sin"], [inner.emit(REGISTRY["neg"], [y])]), y])
    builder = Builder()
    x = builder.param(VECTOR, "x")
    first = builder.emit_operation(REGISTRY["checkpoint"], [x], {}, [region]).results
    second = builder.emit_operation(REGISTRY["checkpoint"], [first[0]], {}, [region]).results
    agree(builder.function("f", [*first, *second, x]), [np.array([0.5, -1.0, 2.0])])


def test_errors_carry_on_with_their_lines() -> None:
    builder = Builder()
    a = builder.param(ArrayType(FLOAT64, (2, 2)), "a")
    b = builder.param(ArrayType(FLOAT64, (2, 1)), "b")
    program = BACKEND.compile(builder.function("f", [builder.emit(REGISTRY["solve"], [a, b])]))
    with pytest.raises(np.linalg.LinAlgError) as caught:
        program(np.zeros((2, 2)), np.ones((2, 1)))
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [frame.line for frame in frames if frame.filename.startswith("<srcgrad")] == ["v0 = np.linalg.solve(a, b)"]


def test_lines_are_forgotten_with_the_program() -> None:
    builder = Builder()
    program = BACKEND.compile(builder.function("short_lived", [builder.param(VECTOR, "x")]))
    assert any("short_lived" in name for name in linecache.cache)
    del program
    assert not any("short_lived" in name for name in linecache.cache)


def test_effects_keep_their_order() -> None:
    calls: list[int] = []
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64), "x")
    builder.emit_operation(REGISTRY["host_call"], [x], {"site": 1, "results": ()})
    builder.emit_operation(REGISTRY["host_call"], [], {"site": 0, "results": ()})
    positive = builder.emit(REGISTRY["greater"], [x, literal(0.0, x.type)])
    builder.emit_operation(REGISTRY["check"], [positive], {"message": "x must be positive", "kind": "AssertionError"})
    program = BACKEND.compile(builder.function("f", [x]), [lambda: calls.append(0), lambda value: calls.append(1)])
    assert program(np.float64(1.5)) == (1.5,)
    assert calls == [1, 0]
    with pytest.raises(AssertionError, match="x must be positive"):
        program(np.float64(-1.5))


@pytest.mark.parametrize("returns_it", [False, True])
def test_what_python_was_given_is_its_own(returns_it: bool) -> None:
    kept: list[Any] = []
    type = ArrayType(FLOAT64, (1000,))
    builder = Builder()
    x = builder.param(type, "x")
    y = builder.emit(REGISTRY["sin"], [x])
    given = builder.emit_operation(REGISTRY["host_call"], [y], {"site": 0, "results": (type,)}).results[0]
    z = builder.emit(REGISTRY["neg"], [y])
    returned = [given, z] if returns_it else [z]
    program = BACKEND.compile(builder.function("f", returned), [lambda array: kept.append(array) or array])
    x_value = np.linspace(0.0, 1.0, 1000)
    results = program(x_value)
    np.testing.assert_array_equal(kept[0], np.sin(x_value))
    np.testing.assert_array_equal(results[-1], -np.sin(x_value))
    assert not any(np.shares_memory(result, kept[0]) for result in results)


@pytest.mark.parametrize(
    "name",
    ["", "np", "lambda", "x.bar", "sum", "3", "é", "saved", "v0", "c0", "<lambda>", "f", "a b", "check", "_", "x"],
)
def test_names(name: str) -> None:
    builder = Builder()
    x, other = builder.param(VECTOR, name or None), builder.param(VECTOR, "v0")
    y = builder.emit(REGISTRY["add"], [x, literal([1.0, 2.0, 3.0], VECTOR)])
    z = builder.emit(REGISTRY["mul"], [y, other])
    z.name = name or None
    agree(builder.function(name or "f", [builder.emit(REGISTRY["sub"], [z, y])]), [np.ones(3), np.arange(3.0)])


def test_a_program_named_as_a_helper_calls_the_helper() -> None:
    builder = Builder()
    x = builder.param(VECTOR)
    doubled = builder.emit(REGISTRY["scatter_add"], [x, x, literal([0, 2, 2], ArrayType(INT64, (3,)))], {"axis": 0})
    agree(builder.function("scatter_add", [doubled]), [np.arange(3.0)])


def test_every_literal_reads_back() -> None:
    finite = [0.0, -0.0, 1.0, -1.5, 0.1, 1e300, 5e-324]
    numbers = [*finite, float("inf"), float("-inf"), float("nan")]
    dtypes = [np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128, np.clongdouble]
    builder = Builder()
    outputs: list[Literal] = []
    with np.errstate(all="ignore"):
        for dtype in dtypes:
            wide = np.array(numbers).astype(dtype) / np.array(3, dtype)
            pairs = wide[:, None] + (1j * wide if wide.dtype.kind == "c" else wide)
            outputs += [literal(value, ArrayType(np.dtype(dtype))) for value in (*wide, *pairs[0])]
            outputs += [literal(array, ArrayType(array.dtype, array.shape)) for array in (wide, pairs)]
    for integer in (np.int8, np.uint64, np.int64):
        edges = np.array([np.iinfo(integer).min, np.iinfo(integer).max, 1], integer)
        outputs += [literal(edge, ArrayType(np.dtype(integer))) for edge in edges]
        outputs.append(literal(edges, ArrayType(np.dtype(integer), (3,))))
    outputs.append(literal([True, False], ArrayType(np.dtype(np.bool_), (2,))))
    agree(builder.function("f", outputs), [])
