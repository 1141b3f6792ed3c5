"""What passes keep: effects in order, spans, names, linear marks, regions, and the function they are given."""

from __future__ import annotations

import numpy as np
import pytest

import srcgrad.ir.ops  # noqa: F401  (registers the ops)
from srcgrad.backends.numpy.evaluate import evaluate, evaluate_operation
from srcgrad.ir.core import Builder, Function, Literal, Operation, literal
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.ops.generate import iota
from srcgrad.ir.passes.cse import cse
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.fold import fold
from srcgrad.ir.passes.pipeline import DCE, LIMITS, Pass, Pipeline, optimisation, optimise, prepare
from srcgrad.ir.passes.rewrite import NO_RULES, Fired, Rule, RuleSet, rewrite
from srcgrad.ir.passes.rules import simplify
from srcgrad.ir.source import Span
from srcgrad.ir.transforms.linearize import linearize
from srcgrad.ir.types import BOOL, FLOAT64, INT64, ArrayType
from srcgrad.ir.verify import verify

VECTOR = ArrayType(FLOAT64, (3,))
R = REGISTRY


def start(*names, type=VECTOR):
    builder = Builder()
    return builder, *(Term(builder, builder.param(type, name)) for name in names)


def ops(region):
    return [operation.op.name for operation in region.operations]


def check(builder, term, message):
    """Emit a check that the elements of a term are positive."""
    attrs = {"message": message, "kind": "ValueError"}
    return builder.emit_operation(R["check"], [(term > 0.0).value], attrs)


# --- dce -------------------------------------------------------------------------------------------------------------


def test_dce_keeps_effects_in_order():
    builder, x = start("x")
    check(builder, x, "first")
    _unused = R["sin"](x)
    check(builder, x, "second")
    check(builder, x, "first")
    function = dce(builder.function("f", [x.value]))
    checks = [operation.attrs["message"] for operation in function.operations if operation.op.effect]
    assert checks == ["first", "second", "first"]
    assert ops(function) == ["greater", "check", "check", "check"]


def test_dce_keeps_an_operation_if_one_result_is_used():
    builder, x, y = start("x", "y")
    passed = builder.emit_operation(R["barrier"], [x.value, y.value])
    builder.emit_operation(R["barrier"], [x.value])
    assert dce(builder.function("f", [passed.results[1]])).operations == (passed,)


def test_dce_keeps_parameters_and_returns_what_has_nothing_dead():
    builder, x, y = start("x", "y")
    function = builder.function("f", [(x * 2.0).value])
    assert dce(function) is function
    assert dce(function).params == (x.value, y.value)


def call(builder, body, *operands):
    return builder.emit_operation(R["checkpoint"], [operand.value for operand in operands], {}, (body,))


def test_passes_go_into_regions():
    inner, a = start("a")
    _unused = R["exp"](a)
    body = inner.region([(R["sin"](a) - (-(R["sin"](a)))).value])
    builder, x = start("x")
    builder.span = Span.at("demo.py", 4, text="y = f(x)")
    result = call(builder, body, x)
    result.results[0].name = "y"
    function = builder.function("f", [(Term(builder, result.results[0]) * 2.0).value])
    (swept, scaled) = optimise(function).operations
    assert ops(swept.regions[0]) == ["sin", "add"]
    assert swept.span is builder.span
    assert swept.results[0].name == "y"
    assert scaled.operands[0] is swept.results[0]
    assert ops(body) == ["exp", "sin", "neg", "sub"], "the input changed"
    assert ops(dce(function).operations[0].regions[0]) == ["sin", "neg", "sub"]
    verify(optimise(function))


def test_dce_keeps_a_region_with_an_effect():
    inner, a = start("a")
    check(inner, a, "inside")
    builder, x = start("x")
    call(builder, inner.region([a.value]), x)
    inner, a = start("a")
    call(builder, inner.region([R["sin"](a).value]), x)
    function = dce(builder.function("f", [x.value]))
    assert len(function.operations) == 1
    assert ops(function.operations[0].regions[0]) == ["greater", "check"]


# --- cse -------------------------------------------------------------------------------------------------------------


def repeated(op_name, operands, attrs=None, times=2):
    """A function that applies an op several times without a builder's merging."""
    params = [operand for operand in operands if not isinstance(operand, Literal)]
    types = R[op_name].result_types([operand.type for operand in operands], attrs or {})
    found = [Operation(R[op_name], tuple(operands), attrs or {}, (), types, None) for _ in range(times)]
    return Function("f", params, found, [operation.results[0] for operation in found if operation.results])


def test_cse_merges_equal_operations():
    _, x, y = start("x", "y")
    function = cse(repeated("add", [x.value, y.value], times=3))
    assert len(function.operations) == 1
    assert len(set(function.results)) == 1


def test_cse_tells_signed_zeros_and_attributes_apart():
    builder, x = start("x")
    values = [x + 0.0, x + -0.0, x + 0.0, R["integer_pow"](x, y=2), R["integer_pow"](x, y=3)]
    function = builder.function("f", [value.value for value in values])
    assert ops(cse(function)) == ["add", "add", "integer_pow", "integer_pow"]


def test_cse_merges_neither_effects_nor_barriers_nor_regions():
    builder, x = start("x")
    for _ in range(2):
        check(builder, x, "same")
        builder.emit_operation(R["barrier"], [x.value])
        inner, a = start("a")
        call(builder, inner.region([a.value]), x)
    function = builder.function("f", [x.value])
    assert cse(function) is function
    assert ops(function) == ["greater", *["check", "barrier", "checkpoint"] * 2]
    builder.memo.clear()
    check(builder, x, "same")
    assert ops(cse(builder.function("f", [x.value]))) == [*ops(function), "check"]


def test_cse_returns_what_has_nothing_to_merge():
    builder, x = start("x")
    function = builder.function("f", [(R["sin"](x) * 2.0).value])
    assert cse(function) is function


# --- fold ------------------------------------------------------------------------------------------------------------


def folded(build, type=VECTOR):
    builder, x = start("x", type=type)
    return dce(fold(builder.function("f", [build(x).value]), evaluate_operation))


@pytest.mark.parametrize("number", [0.5, -0.0, np.inf, np.nan])
def test_fold_of_splats_is_a_splat_of_any_size(number):
    function = folded(lambda x: -x.like(number), ArrayType(FLOAT64, (1000, 1000)))
    assert ops(function) == []
    assert function.results[0] == literal(-np.float64(number), ArrayType(FLOAT64, (1000, 1000)))
    assert function.results[0].splat


def test_fold_goes_on_through_operands():
    function = folded(lambda x: x * R["exp"](R["sin"](x.like(0.0)) + 1.0))
    assert ops(function) == ["mul"]
    assert function.operations[0].operands[1] == literal(np.exp(1.0), VECTOR)


def test_fold_of_small_arrays():
    values = np.arange(6.0).reshape(2, 3)
    array = literal(values, ArrayType(FLOAT64, (2, 3)))
    function = folded(lambda x: R["reduce_sum"](Term(x.builder, array), axes=(0,)))
    assert function.results[0] == literal(values.sum(0), VECTOR)


def test_fold_leaves_what_is_large():
    dense = literal(np.arange(65.0), ArrayType(FLOAT64, (65,)))
    assert ops(folded(lambda x: -Term(x.builder, dense))) == ["neg"]
    wide = ArrayType(FLOAT64, (5000,))
    assert ops(folded(lambda x: R["reduce_sum"](x.like(2.0), axes=(0,)), wide)) == ["reduce_sum"]


def test_fold_leaves_what_has_no_operands():
    builder = Builder()
    counted = iota(builder, ArrayType(INT64, (4,)), 0)
    function = builder.function("f", [counted.value])
    assert fold(function, evaluate_operation) is function


def test_fold_leaves_effects_barriers_and_failures():
    builder, x = start("x")
    check(builder, x.like(1.0), "never")
    passed = builder.emit_operation(R["barrier"], [literal(1.0, VECTOR)]).results[0]
    singular = R["cholesky"](Term(builder, literal(-np.eye(2), ArrayType(FLOAT64, (2, 2)))))
    index = literal([7], ArrayType(INT64, (1,)))
    gathered = builder.emit(R["gather"], [literal([1.0, 2.0], ArrayType(FLOAT64, (2,))), index], {"axis": 0})
    function = fold(builder.function("f", [passed, singular.value, gathered]), evaluate_operation)
    assert ops(dce(function)) == ["check", "barrier", "cholesky", "gather"]
    assert function.operations[0].operands[0] == literal(True, VECTOR.with_dtype(BOOL))


# --- rewriting -------------------------------------------------------------------------------------------------------


def test_rules_apply_until_none_fires_and_are_logged_with_spans():
    builder, x, y = start("x", "y")
    builder.span = Span.at("demo.py", 7, text="return x - -(-y)")
    function = builder.function("f", [(x - R["neg"](-(y * 1.0))).value])
    fired: list[Fired] = []
    result = dce(simplify(function, fired))
    assert ops(result) == ["sub"]
    assert result.operations[0].operands == (x.value, y.value)
    assert fired == [Fired("mul(x, 1) -> x", builder.span), Fired("neg(neg(x)) -> x", builder.span)]


def test_what_a_rule_makes_has_the_span_and_the_name_of_what_it_replaces():
    builder, x, y = start("x", "y")
    negative = -y
    builder.span = Span.at("demo.py", 9, text="total = x + -y")
    total = x + negative
    total.value.name = "total"
    (operation,) = dce(simplify(builder.function("f", [total.value]))).operations
    assert (operation.op.name, operation.results[0].name, operation.span) == ("sub", "total", builder.span)
    assert operation.results[0] is not total.value


def test_what_changes_keeps_spans_and_names_and_the_input_is_not_mutated():
    builder, x = start("x")
    builder.span = Span.at("demo.py", 3, text="y = sin(x * 1)")
    y = R["sin"](x * 1.0)
    y.value.name = "y"
    function = builder.function("f", [y.value])
    before = str(function)
    (operation,) = simplify(function).operations
    assert (operation.results[0].name, operation.span, operation.operands) == ("y", builder.span, (x.value,))
    assert str(function) == before


def test_a_value_of_the_input_does_not_take_a_name():
    builder, x = start("x")
    unnamed = R["sin"](x)
    named = unnamed * 1.0
    named.value.name = "y"
    simplified = simplify(builder.function("f", [named.value]))
    assert simplified.results == (unnamed.value,)
    assert unnamed.value.name is None


def test_a_literal_result():
    builder, x = start("x")
    function = builder.function("f", [(R["sin"](x.like(0.0)) + 1.0).value])
    assert fold(function, evaluate_operation).results == (literal(1.0, VECTOR),)


def test_rules_that_feed_each_other_end():
    def again(operation, builder):
        return builder.emit(R["neg"], [builder.emit(R["sin"], [operation.operands[0]])])

    builder, x = start("x")
    rule = Rule("neg(x) -> neg(sin(x))", "neg", "f", again, (), None, "exact")
    result = rewrite(builder.function("f", [(-x).value]), RuleSet([rule]))
    assert len(dce(result).operations) < 50


def test_linear_marks_and_structural_zeros_stay():
    builder, x, y = start("x", "y")
    p = x > 0.0
    function = builder.function("f", [R["select"](~p, (x * 1.0) * y, R["stop_gradient"](y)).value])
    linear = linearize(function, [True, True]).linear
    swept = optimise(linear, evaluate_operation)
    verify(swept)
    assert [param.linear for param in swept.params] == [param.linear for param in linear.params]
    assert [result.linear for result in swept.results] == [True]
    (select,) = [operation for operation in swept.operations if operation.op.name == "select"]
    assert sum(isinstance(operand, Literal) for operand in select.operands) == 1


# --- the pipeline ----------------------------------------------------------------------------------------------------


def test_the_log():
    builder, x = start("x")
    _unused = R["exp"](x)
    builder.span = Span.at("demo.py", 2, text="y = sin(x) * 1")
    function = builder.function("f", [(R["sin"](x) * 1.0).value])
    pipeline = Pipeline(optimisation(evaluate_operation), log=True, verify=True, text=True)
    result = pipeline.run(function)
    first, second, third = pipeline.records
    assert first[:3] == ("dce", 3, 2)
    assert second[:4] == ("simplify", 2, 1, (Fired("mul(x, 1) -> x", builder.span),))
    assert third[:4] == ("dce", 1, 1, ())
    assert third.text == str(result)
    assert Pipeline([DCE]).run(function) is not function
    assert Pipeline([]).run(function) is function


def test_a_pipeline_without_a_log_keeps_nothing():
    builder, x = start("x")
    pipeline = Pipeline([DCE, LIMITS])
    pipeline.run(builder.function("f", [x.value]))
    assert pipeline.records == []


def broken(function, fired):
    """Drops the operations and keeps the results."""
    return Function(function.name, function.params, [], function.results)


def test_verification_after_each_pass(monkeypatch):
    builder, x = start("x")
    function = builder.function("f", [R["sin"](x).value])
    passes = [Pass("broken", broken)]
    monkeypatch.delenv("SRCGRAD_VERIFY", raising=False)
    assert Pipeline(passes).run(function).operations == ()
    for pipeline in (lambda: Pipeline(passes, verify=True), lambda: Pipeline(passes)):
        monkeypatch.setenv("SRCGRAD_VERIFY", "1")
        with pytest.raises(ValueError, match="f"):
            pipeline().run(function)
    monkeypatch.setenv("SRCGRAD_VERIFY", "0")
    assert Pipeline(passes).run(function).operations == ()


def test_prepare_keeps_stop_gradient_and_optimise_does_not():
    builder, x = start("x")
    function = builder.function("f", [(R["stop_gradient"](x) * x).value])
    assert ops(prepare(function)) == ["stop_gradient", "mul"]
    assert ops(optimise(function)) == ["mul"]


def test_a_long_chain_needs_no_recursion():
    builder, x = start("x")
    total = x
    for k in range(4000):
        total = R["neg"](-R["sin"](total)) * 1.0 - (-(x * float(k)))
    function = builder.function("f", [total.value])
    assert len(function.operations) > 20_000
    small = optimise(function, evaluate_operation)
    assert ops(small).count("neg") == 0
    assert len(small.operations) < 13_000
    at = [np.array([0.5, -1.0, 0.0])]
    np.testing.assert_array_equal(evaluate(small, at)[0], evaluate(function, at)[0])
    assert rewrite(small, NO_RULES) is small
