"""Passes keep every bit of the results of random programs, on inputs where arithmetic is special."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import srcgrad.ir.ops  # noqa: F401  (registers the ops)
from srcgrad.backends.numpy.evaluate import evaluate, evaluate_operation
from srcgrad.ir.core import Builder, Function, Literal, Operation
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.passes.cse import cse
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.fold import fold
from srcgrad.ir.passes.pipeline import optimise, prepare
from srcgrad.ir.passes.rules import simplify
from srcgrad.ir.transforms.linearize import jvp
from srcgrad.ir.types import BOOL, FLOAT64, ArrayType
from srcgrad.ir.verify import verify
from tests.ir.passes.checking import assert_same_bits, special_values

SHAPE = (2, 4)
R = REGISTRY
PASSES = {
    "cse": cse,
    "dce": dce,
    "fold": lambda function: fold(function, evaluate_operation),
    "simplify": simplify,
    "prepare": prepare,
    "optimise": lambda function: optimise(function, evaluate_operation),
}

NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, np.inf, np.nan, 5e-324])
UNARY = ("neg", "neg", "neg", "identity", "stop_gradient", "sin", "sqrt", "abs")
BINARY = ("add", "sub", "mul", "div", "maximum")
LOGIC = ("logical_and", "logical_or", "logical_xor")


def moved(term, choice):
    """There and back again, in one of several ways."""
    return (
        lambda: R["transpose"](R["transpose"](term, perm=(1, 0)), perm=(1, 0)),
        lambda: R["reshape"](R["reshape"](term, shape=(8,)), shape=SHAPE),
        lambda: R["reverse"](R["reverse"](term, axes=(0, 1)), axes=(1,)),
        lambda: R["broadcast"](R["reduce_sum"](term, axes=(0,)), shape=SHAPE, dims=(1,)),
        lambda: R["broadcast"](R["broadcast"](row(term), shape=(1, 4), dims=(0, 1)), shape=SHAPE, dims=(0, 1)),
        lambda: R["concatenate"](row(term), row(term), axis=0),
    )[choice]()


def row(term):
    whole = R["slice"](term, starts=(0, 0), limits=SHAPE, strides=(1, 1))
    return R["slice"](whole, starts=(1, 0), limits=(2, 4), strides=(1, 1))


@st.composite
def programs(draw):
    """A function of two matrices. Half of the programs are emitted without merging."""
    builder = Builder()
    numbers = [Term(builder, builder.param(ArrayType(FLOAT64, SHAPE), name)) for name in "xy"]
    booleans = [numbers[0] > numbers[1]]
    unmerged = draw(st.booleans())

    def any_of(terms):
        return terms[draw(st.integers(0, len(terms) - 1))]

    for _ in range(draw(st.integers(1, 14))):
        if unmerged:
            builder.memo.clear()
        kind = draw(st.integers(0, 7))
        if kind == 0:
            numbers.append(numbers[0].like(draw(NUMBERS)))
        elif kind == 1:
            numbers.append(R[draw(st.sampled_from(UNARY))](any_of(numbers)))
        elif kind in (2, 3):
            numbers.append(R[draw(st.sampled_from(BINARY))](any_of(numbers), any_of(numbers)))
        elif kind == 4:
            numbers.append(R["select"](any_of(booleans), any_of(numbers), any_of(numbers)))
        elif kind == 5:
            numbers.append(moved(any_of(numbers), draw(st.integers(0, 5))))
        elif kind == 6:
            booleans.append(R[draw(st.sampled_from(LOGIC))](any_of(booleans), any_of(booleans)))
        else:
            literal = numbers[0].like(draw(st.booleans()), BOOL)
            booleans += [~any_of(booleans), R["select"](any_of(booleans), any_of(booleans), literal)]
    return builder.function("random", [numbers[-1].value, any_of(numbers).value, booleans[-1].value])


def same_results(before, after, arguments):
    for found, expected in zip(evaluate(after, arguments), evaluate(before, arguments), strict=True):
        assert_same_bits(found, expected, f"{before}\n{after}")


def arguments(count, shift):
    return [np.roll(special_values(FLOAT64), k * shift).reshape(SHAPE) for k in range(count)]


@pytest.mark.parametrize("name", PASSES)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(function=programs(), shift=st.integers(0, 7))
def test_values(name, function, shift):
    after = PASSES[name](function)
    verify(after)
    same_results(function, after, arguments(2, shift))
    assert PASSES[name](after).result_types == function.result_types


@settings(max_examples=60, deadline=None, derandomize=True)
@given(function=programs(), shift=st.integers(0, 7))
def test_values_of_derivatives(function, shift):
    """The derivative's code after the passes, and the derivative of simplified code: it is the same derivative."""
    derivative = jvp(function, [True, True])
    seeds = [np.ones(SHAPE), np.full(SHAPE, -0.5)]
    same_results(derivative, optimise(derivative, evaluate_operation), [*arguments(2, shift), *seeds])
    tangents = [k for k, result in enumerate(derivative.results) if k >= 3 and result.type.differentiable]
    of_simplified = jvp(simplify(function), [True, True])
    at = [*arguments(2, shift), *seeds]
    for k in tangents:
        found, expected = evaluate(of_simplified, at)[k], evaluate(derivative, at)[k]
        np.testing.assert_array_equal(found, expected, f"{function}\n{simplify(function)}")


@settings(max_examples=40, deadline=None, derandomize=True)
@given(function=programs())
def test_never_more_operations_and_nothing_left_to_do(function):
    after = optimise(function, evaluate_operation)
    assert len(after.operations) <= len(dce(cse(function)).operations)
    assert dce(after) is after
    assert cse(after) is after
    for operation in after.operations:
        assert isinstance(operation, Operation)
        assert not all(isinstance(operand, Literal) for operand in operation.operands)
    assert isinstance(after, Function)
