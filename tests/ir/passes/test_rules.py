"""Each rule is an equation that holds bit by bit, in value and derivative; and a wrong one is caught."""

from __future__ import annotations

import numpy as np
import pytest

from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, literal, zeros
from srcgrad.ir.errors import InternalError
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.pipeline import prepare
from srcgrad.ir.passes.rewrite import Rule, RuleSet, rewrite
from srcgrad.ir.passes.rules import EARLY, EXACT, FINAL, RULES
from srcgrad.ir.passes.unit_vectors import UNIT_RULES
from srcgrad.ir.transforms.linearize import jvp
from srcgrad.ir.types import BOOL, FLOAT64, ArrayType
from tests.ir.passes.checking import check_derivatives, check_rule, compare, left_side, special_values


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule(rule):
    assert rule.examples
    assert rule.op in REGISTRY
    check_rule(rule)


def test_names_are_unique():
    assert len({rule.name for rule in RULES}) == len(RULES)


def first(operation, builder):
    return operation.operands[0]


def second(operation, builder):
    return operation.operands[1]


def zero(operation, builder):
    return zeros(operation.results[0].type)


def swapped(operation, builder):
    left, right = operation.operands[0].producer.operands
    return builder.emit(REGISTRY["sub"], (right, left))


def inner(operation, builder):
    return operation.operands[0].producer.operands[0]


def op(name):
    return lambda *operands, **attrs: REGISTRY[name](*operands, **attrs)


WRONG = [
    Rule("add(x, 0.0) -> x", "add", "f", first, (lambda x: x + 0.0,), None, "exact"),
    Rule("mul(x, 0) -> 0", "mul", "f", zero, (lambda x: x * 0.0,), None, "exact"),
    Rule("sub(x, x) -> 0", "sub", "f", zero, (lambda x: x - x,), None, "exact"),
    Rule("div(0, x) -> 0", "div", "f", zero, (lambda x: 0.0 / x,), None, "exact"),
    Rule("neg(sub(a, b)) -> sub(b, a)", "neg", "f", swapped, (lambda a, b: -(a - b),), None, "exact"),
    Rule("mul(x, 1) -> x", "mul", "c", first, (lambda x: x * 1.0,), None, "exact"),
    Rule("div(x, 1) -> x", "div", "c", first, (lambda x: x / 1.0,), None, "exact"),
    Rule("maximum(x, x) -> x", "maximum", "f", first, (lambda x: op("maximum")(x, x),), None, "exact"),
    Rule("stop_gradient(x) -> x", "stop_gradient", "f", first, (lambda x: op("stop_gradient")(x),), None, "exact"),
    Rule("select(p, a, b) -> b", "select", "f", second, (lambda p, a, b: op("select")(p, a, b),), None, "exact"),
    Rule("never fires", "neg", "f", lambda operation, builder: None, (lambda x: -x,), None, "exact"),
]


@pytest.mark.parametrize("rule", WRONG, ids=lambda rule: f"{rule.name} ({rule.kinds})")
def test_a_wrong_rule_is_caught(rule):
    with pytest.raises(AssertionError):
        check_rule(rule)


def test_a_rule_that_only_changes_a_structural_zero_is_caught():
    rule = Rule("real(complex(x, y)) -> x", "real", "c", inner, (), None, "exact")
    left = left_side(lambda a, b: op("real")(op("complex")(a, b)), FLOAT64, (8,))
    right = dce(rewrite(left, RuleSet([rule])))
    arguments = [special_values(FLOAT64)] * 2
    compare(left, right, arguments, rule.name)
    with pytest.raises(AssertionError, match="mask"):
        check_derivatives(left, right, arguments, rule.name, rule)


def cast(x, *names):
    for name in names:
        x = REGISTRY["cast"](x, dtype=np.dtype(name))
    return x


def norm(x):
    return REGISTRY["reduce_norm"](x, axes=(0,))


def any_repeated(p, shape, dims, axes):
    return REGISTRY["reduce_or"](REGISTRY["broadcast"](p, shape=shape, dims=dims), axes=axes)


def part(x, start, limit, stride=1):
    return op("slice")(x, starts=(start,), limits=(limit,), strides=(stride,))


def written(x, start, limit, stride=1, of=None):
    """``of``, or twice what is there, written into x, which has three elements."""
    value = part(x, start, limit, stride) * 2.0 if of is None else of
    return op("slice_set")(x, value, starts=(start,), limits=(limit,), strides=(stride,))


def row(x, index, of=None):
    """A row of x, or rows, or x with ``of`` there."""
    place = np.array(index)
    given = Term(x.builder, literal(place[()], ArrayType(place.dtype, place.shape)))
    return op("gather")(x, given, axis=0) if of is None else op("scatter_set")(x, of, given, axis=0)


def repeated(x, dims):
    return op("broadcast")(x, shape=(3, 3), dims=dims)


def two_rows(x):
    rows = op("concatenate")(x, x * 2.0, x * 3.0, axis=0)
    return op("reshape")(rows, shape=(3, 3))


NOT_EQUATIONS = {
    "a slice of more than was written": lambda x: part(written(x, 0, 1), 0, 2),
    "a slice of what was written and of zeros": lambda x: part(written(x.like(0), 0, 2, of=part(x, 0, 2)), 1, 3),
    "a slice of what was not written": lambda x: part(written(x, 0, 2), 2, 3),
    "a slice between what was written": lambda x: part(written(x, 0, 3, 2), 0, 2),
    "a slice that what was written is between": lambda x: part(written(x, 1, 2), 0, 3, 2),
    "what is written next to what was": lambda x: written(written(x, 0, 2), 1, 3),
    "what is written between what was": lambda x: written(written(x, 0, 2), 0, 3, 2),
    "a slice of what is written elsewhere": lambda x: written(x, 0, 2, of=part(x, 1, 3)),
    "a row that is written elsewhere": lambda x: row(y := row(x, 1, of=row(x, 1) * 2.0), 1, of=row(y, 2)),
    "a row that was not written": lambda x: row(x, 1, of=row(x, 1)),
    "rows that were written": lambda x: row(y := row(x, (1, 1), of=part(x, 0, 2)), (1, 1), of=row(y, (1, 1))),
    "a slice of two arrays": lambda x, y: part(op("concatenate")(x, y, axis=0), 2, 4),
    "a cast that rounds": lambda x: cast(x, "f4", "f8"),
    "a cotangent that would be rounded twice": lambda x: cast(cast(x, "f2"), "f4", "f8"),
    "a cast to integers": lambda x: cast(x, "i8", "f8"),
    "any of nothing": lambda p: op("reduce_or")(Term(p.builder, literal(True, ArrayType(BOOL, (0,)))), axes=(0,)),
    "all of nothing": lambda p: op("reduce_and")(Term(p.builder, literal(False, ArrayType(BOOL, (0,)))), axes=(0,)),
    "any of no repetition": lambda p: any_repeated(p, (0, 3), (1,), (0,)),
    "any of the operand's axis": lambda p: any_repeated(p, (2, 3), (1,), (1,)),
    "two norms": lambda x, y: norm(x) * norm(y),
    "the cube of a norm": lambda x: op("integer_pow")(norm(x), y=3),
    "a norm to the third": lambda x: op("pow")(norm(x), 3.0),
    "one predicate for all": lambda p: op("select")(op("reduce_or")(p, axes=(0,)), p.like(True), p.like(False)),
    "other splats": lambda x: op("concatenate")(x.like(0.0), x.like(-0.0), axis=0),
    "other predicates": lambda p, q, x, y: op("select")(p, x, op("select")(q, x, y)),
    "a sum of -0.0": lambda x: op("reduce_sum")(x.like(-0.0), axes=(0,)),
    "x + 0.0": lambda x: x + 0.0,
    "x - -0.0": lambda x: x - -0.0,
    "x * 2.0": lambda x: x * 2.0,
    "x - x": lambda x: x - x,
    "the root of what may be 0 itself": lambda x, y: op("sqrt")(y * op("exp")(x)),
    "a power that is infinite at 0": lambda x: op("pow")(op("exp")(x), -0.5),
    "the size of a number over a number": lambda x, y: op("abs")(x / y),
    "the size of a sum with a square": lambda x, y: op("abs")(op("square")(x) + y),
    "the larger of a square and a positive number": lambda x: op("maximum")(op("square")(x), 1.0),
    "the logarithm of a sum of exponentials": lambda x, y: op("log")(op("exp")(x) + op("exp")(y)),
    "the logarithm of a sum that underflows": lambda x, y: op("log1p")(op("expit")(x)),
    "a mask and another": lambda p, q: p & ~q,
    "what is repeated once": lambda x: op("exp")(op("broadcast")(x, shape=(1, 3), dims=(1,))),
    "what is repeated along other axes": lambda x: op("arctan2")(repeated(x, (0,)), repeated(x, (1,))),
    "what is repeated, and what is not": lambda x: op("exp")(repeated(x, (0,)) * two_rows(x)),
    "a product that sums": lambda x: op("dot_general")(x, x.like(1.0), contract=((0,), (0,)), batch=((), ())),
    "a product of two": lambda x: op("dot_general")(x, x, contract=((), ()), batch=((0,), (0,))),
    "a sum of what is repeated": lambda x: 2.0 * repeated(x, (0,)) + 1.0,
}


@pytest.mark.whole
@pytest.mark.parametrize("name", NOT_EQUATIONS)
def test_no_rule_fires(name):
    fired = []
    left = left_side(NOT_EQUATIONS[name], FLOAT64, (3,))
    rewrite(left, RuleSet(RULES), fired=fired)
    assert fired == []


def test_a_rule_that_changes_the_type_is_refused():
    rule = Rule("reduce_sum(x) -> x", "reduce_sum", "f", first, (), None, "exact")
    left = left_side(lambda x: REGISTRY["reduce_sum"](x, axes=(0,)), FLOAT64, (3,))
    with pytest.raises(InternalError, match=r"reduce_sum\(x\) -> x: f64\[\] became f64\[3\]"):
        rewrite(left, RuleSet([rule]))


def test_rules_are_known_by_their_stage():
    assert "stop_gradient(x) -> x" not in {rule.name for rule in EXACT}
    final = {rule.name for rule in FINAL} - {rule.name for rule in EXACT}
    assert {name for name in final if not name.startswith("broadcast(") and "(broadcast(" not in name} == {
        "stop_gradient(x) -> x",
        "dot_general(transpose(x), y) -> dot_general(x, y)",
        "scatter_add(scatter_set(x, 0), gather(x)) -> x",
        "dot_general(x, 1) -> broadcast(x)",
        "dot_general(x, c) -> mul(x, c)",
        "dot_general(units, a) -> a",
        "dot_general(units of arrays, a) -> select(place, a, 0)",
        "reduce_or(units) -> True",
    }
    assert {rule.stage for rule in EARLY} == {"limit", "exact"}
    assert all(rule.early == (rule.stage == "exact") for rule in EARLY)
    assert set(FINAL) | set(EARLY) == {*RULES, *UNIT_RULES}


@pytest.mark.parametrize("square", ["integer_pow", "pow", "mul", "keepdims"])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_the_hessian_of_a_squared_norm_at_zero(square, dtype):
    builder = Builder()
    x = Term(builder, builder.param(ArrayType(np.dtype(dtype), (3,)), "x"))
    norm = REGISTRY["reduce_norm"](x, axes=(0,))
    squared = {
        "integer_pow": lambda: REGISTRY["integer_pow"](norm, y=2),
        "pow": lambda: REGISTRY["pow"](norm, 2.0),
        "mul": lambda: norm * norm,
        "keepdims": lambda: REGISTRY["integer_pow"](REGISTRY["reshape"](norm, shape=(1,)), y=2),
    }[square]()
    function = prepare(builder.function("f", [squared.value]))
    assert not [operation for operation in function.operations if operation.op.name == "reduce_norm"]
    second = jvp(jvp(function, [True]), [True, False])
    tangents = [np.eye(3, dtype=dtype)[k] for k in (1, 1)]
    value, _, _, curvature = evaluate(second, [np.zeros(3, dtype), *tangents])
    assert np.all(value == 0.0)
    assert np.all(curvature == 2.0)
