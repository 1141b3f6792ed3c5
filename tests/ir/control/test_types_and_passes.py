"""The types of control flow, its text, and what passes leave of it; and that loops write in place."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import srcgrad.ir.ops  # noqa: F401  registers the ops
from srcgrad.backends.numpy.evaluate import evaluate, evaluate_operation
from srcgrad.ir.core import Builder, Function, literal
from srcgrad.ir.errors import VerifyError
from srcgrad.ir.opdef import REGISTRY, Lin, Term, Zero
from srcgrad.ir.parser import parse
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.loops import has_literals, tidy
from srcgrad.ir.passes.pipeline import optimise
from srcgrad.ir.transforms import residuals
from srcgrad.ir.transforms.derivatives import hvp, value_and_grad
from srcgrad.ir.transforms.linear import Masked
from srcgrad.ir.types import BOOL, INT64, ArrayType, TapeType
from srcgrad.ir.verify import verify
from tests.ir.control.programs import PROGRAMS, compiled, derivative, interpreted, nestings, trace
from tests.ir.control.tracing import F64, apply, at, check, cond, exp, for_, put, sin, total, vector, while_

# --- types and text ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_reads_back(name: str) -> None:
    function = trace(PROGRAMS[name][0], F64)
    for each in (function, *(nested for order in (1, 2) for _, nested in nestings(function, order))):
        text = str(each)
        again = parse(text)
        verify(again)
        assert str(again) == text
        x = PROGRAMS[name][1]
        np.testing.assert_array_equal(interpreted(again, x)[0], interpreted(each, x)[0])


def test_tapes_are_types_of_their_own() -> None:
    tape = TapeType(vector(3))
    assert tape != vector(3) and vector(3) != tape and tape == TapeType(vector(3))
    assert hash(tape) == hash(TapeType(vector(3))) and str(tape) == "tape<f64[3]>"
    assert tape.with_dtype(BOOL).with_shape(()) == TapeType(ArrayType(BOOL))
    assert str(TapeType(tape)) == "tape<tape<f64[3]>>"
    assert pickle.loads(pickle.dumps(tape)) == tape


HEAD = "func @f(%x: f64[], %n: i64[], %v: f64[3], %p: bool[]) -> (f64[]) {\n%r: f64[]"
AS_IT_IS = "(%a: f64[]) {\n yield %a\n }\n"
BRANCHES = f" then {AS_IT_IS} else {AS_IT_IS}"
COUNTED = "carries=1, consts=0, reverse=false}\n body"
BROKEN: dict[str, tuple[str, str]] = {
    "predicate": (f" = cond %x, %x\n{BRANCHES}", "predicate"),
    "branches": (f" = cond %p, %x\n then {AS_IT_IS} else (%a: f64[]) {{\n yield 1\n }}\n", "else"),
    "operands": (f" = cond %p, %n\n{BRANCHES}", "takes"),
    "condition": (f", %k: i64[] = while %x {{carries=1}}\n condition {AS_IT_IS} body {AS_IT_IS}", "condition"),
    "carry": (
        ", %k: i64[] = while %x {carries=1}\n condition (%a: f64[]) {\n yield true\n }\n"
        " body (%a: f64[]) {\n yield 1\n }\n",
        "carry 0",
    ),
    "count": (f" = for %x, %x {{trips=none, {COUNTED} (%i: i64[], %a: f64[]) {{\n yield %a\n }}\n", "trip count"),
    "column": (f" = for %x, %v {{trips=4, {COUNTED} (%i: i64[], %a: f64[], %e: f64[]) {{\n yield %a\n }}\n", "column"),
    "index": (f" = for %x {{trips=4, {COUNTED} {AS_IT_IS}", "takes"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_does_not_fit_is_refused(name: str) -> None:
    text, message = BROKEN[name]
    with pytest.raises(VerifyError, match=message):
        verify(parse(f"{HEAD}{text} return %r\n}}"))


def test_only_control_flow_takes_tapes() -> None:
    text = "func @f(%t: tape<f64[]>) -> (tape<f64[]>) {\n %r: tape<f64[]> = add %t, %t\n return %r\n}"
    with pytest.raises(VerifyError, match="takes arrays, not tapes"):
        verify(parse(text))


def test_literal_tapes_fit_every_length() -> None:
    text = """func @f(%n: i64[]) -> (f64[], i64[]) {
  %s: f64[] = for %n, 0.0, 2.5:tape<f64[]> {trips=none, carries=1, consts=0, reverse=false}
    body (%i: i64[], %s: f64[], %e: f64[]) {
      %0: f64[] = add %s, %e
      yield %0
    }
  %k: i64[] = tape_length 2.5:tape<f64[]>
  return %s, %k
}"""
    function = parse(text)
    verify(function)
    for run in (lambda n: evaluate(function, [n]), compiled(function), compiled(function, "xla")):
        for n in (0, 1, 5, -2):
            assert [float(v) for v in run(np.int64(n))] == [2.5 * max(n, 0), -1.0]


def test_recomputed_ops_exist() -> None:
    assert set(REGISTRY) >= residuals.SAFE
    assert not any(REGISTRY[name].effect for name in residuals.SAFE)


# --- passes -----------------------------------------------------------------------------------------------------------


def shape_of(function: Function, name: str) -> tuple[int, int]:
    """The numbers of operands and results of the only operation of this name."""
    (found,) = [operation for operation in function.walk() if operation.op.name == name]
    return len(found.operands), len(found.results)


def test_dead_carries_leave_by_a_fixed_point() -> None:
    """``b`` feeds ``c``, which nobody reads; ``a`` is read by the condition; ``d`` by the result, through ``e``."""

    def program(x: Any) -> Any:
        def body(a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
            return a + 1.0, b * x, c + b, d + e, e * 0.5

        return while_(lambda a, b, c, d, e: a < 4.0, body, 0.0, x, x, x, x)[3]

    function = trace(program, F64)
    assert shape_of(function, "while") == (3, 4)  # a, d, e, and the trip count
    np.testing.assert_allclose(interpreted(function, 2.0)[0], 2.0 + 2.0 + 1.0 + 0.5 + 0.25)


def test_dead_columns_and_branches_leave() -> None:
    def program(x: Any, v: Any) -> Any:
        _, first, _ = for_(3, lambda i, s, e: (s * x, s + e, s - e), x, columns=[v])
        picked, _ = cond(x > 0.0, lambda a, b: (a, sin(b)), lambda a, b: (a * 2.0, b), x, total(v))
        return total(first) + picked

    function = trace(program, F64, vector(3))
    assert shape_of(function, "cond") == (2, 1)
    (loop,) = [operation for operation in function.walk() if operation.op.name == "for"]
    assert len(loop.regions[0].results) == 2


def test_effects_keep_what_they_read() -> None:
    def program(x: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            check(s < 10.0, "large")
            return s * 2.0

        for_(3, body, x)
        return x

    function = trace(program, F64)
    assert compiled(function)(np.float64(1.0))[0] == 1.0
    with pytest.raises(ValueError, match="large"):
        compiled(function)(np.float64(6.0))


def test_what_does_not_change_leaves_loops() -> None:
    def program(x: Any) -> Any:
        return for_(3, lambda i, s, same, one: (s + sin(x) * same * one, same, one), x, x, 1.0)[0]

    function = trace(program, F64)
    tidied = dce(tidy(function))
    verify(tidied)
    (loop,) = [operation for operation in tidied.operations if operation.op.name == "for"]
    assert loop.attrs["carries"] == 1
    assert "sin" not in [operation.op.name for operation in loop.regions[0].operations]
    np.testing.assert_allclose(interpreted(tidied, 0.7)[0], interpreted(function, 0.7)[0])


def test_control_flow_that_does_not_change_leaves_loops_with_what_reads_it() -> None:
    """Also a loop that reads literals alone, and what stands in a loop of a loop."""

    def program(x: Any) -> Any:
        def inner(i: Any, s: Any) -> Any:
            picked = cond(x > 0.5, sin, lambda y: y * 3.0, x)[0]
            grown = for_(4, lambda j, t: t * x + 1.0, x)[0]
            known = for_(5, lambda j, t: sin(t) + 1.0, 0.3)[0]
            return sin(s) + exp(picked) * grown + known

        return for_(3, lambda i, s: for_(2, inner, s * 0.5)[0], x)[0]

    function = trace(program, F64)
    tidied = dce(tidy(function))
    verify(tidied)
    *before, last = [operation for operation in tidied.operations if operation.regions]
    assert [operation.op.name for operation in before] == ["cond", "for", "for"]
    kept = [operation.op.name for operation in last.regions[0].walk()]
    assert sorted(kept) == ["add", "add", "for", "mul", "sin"]
    for x in (0.7, 0.2):
        np.testing.assert_allclose(interpreted(tidied, x)[0], interpreted(function, x)[0], rtol=1e-14)


def test_what_may_raise_stays_in_its_loop() -> None:
    """A loop of no trip does not index."""

    def reads_past_the_end(x: Any, v: Any) -> Any:
        return for_(apply("cast", x, dtype=INT64), lambda i, s: s + at(v, np.int64(7)), x)[0]

    program = trace(reads_past_the_end, F64, vector(3))
    tidied = tidy(program)
    assert interpreted(tidied, 0.0, np.ones(3))[0] == 0.0
    assert compiled(derivative_of_first(program))(np.float64(0.0), np.ones(3))[1] == 1.0
    with pytest.raises(IndexError):
        interpreted(tidied, 1.0, np.ones(3))


def derivative_of_first(function: Function) -> Function:
    return value_and_grad(function, [True, False])


def test_a_known_branch_is_taken() -> None:
    function = trace(lambda x: cond(x > 0.0, sin, lambda y: y, x)[0], F64)
    (operation,) = [operation for operation in function.operations if operation.op.name == "cond"]
    operation.operands = (literal(True, ArrayType(BOOL)), *operation.operands[1:])
    assert [operation.op.name for operation in dce(tidy(function)).operations] == ["sin"]


def test_what_becomes_a_literal_stands_in_the_regions() -> None:
    """Constants that are known once they are computed before a loop are no operands of it."""

    def program(x: Any) -> Any:
        first = for_(3, lambda i, s: sin(s) * exp(x) * 0.5, x)[0]
        second = while_(lambda s: s < 50.0, lambda s: s * 3.0 + 1.0, first * first)[0]
        return cond(second > 60.0, lambda y: y * second, lambda y: y - 1.0, second * 2.0)[0]

    function = derivative(trace(program, F64), "R")
    swept = optimise(function, evaluate_operation)
    verify(swept)
    assert not has_literals(swept)
    for found, wanted in zip(interpreted(swept, 0.7), interpreted(function, 0.7), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


@pytest.mark.parametrize("kind", ["for", "while", "cond"])
def test_which_operands_of_control_flow_are_constants(kind: str) -> None:
    body = "%1: f64[] = mul %s, %c\n      yield %1"
    texts = {
        "for": f"""func @f(%x: f64[], %n: i64[]) -> (f64[]) {{
  %0: f64[] = for %n, %x, 2.0 {{trips=none, carries=1, consts=1, reverse=false}}
    body (%i: i64[], %s: f64[], %c: f64[]) {{
      {body}
    }}
  return %0
}}""",
        "while": f"""func @f(%x: f64[]) -> (f64[]) {{
  %0: f64[], %n: i64[] = while %x, 2.0 {{carries=1}}
    condition (%s: f64[], %c: f64[]) {{
      %1: bool[] = less %s, 9.0
      yield %1
    }}
    body (%s: f64[], %c: f64[]) {{
      {body}
    }}
  return %0
}}""",
        "cond": f"""func @f(%p: bool[], %s: f64[]) -> (f64[]) {{
  %0: f64[] = cond %p, %s, 2.0
    then (%s: f64[], %c: f64[]) {{
      {body}
    }}
    else (%s: f64[], %c: f64[]) {{
      yield %c
    }}
  return %0
}}""",
    }
    function = parse(texts[kind])
    assert has_literals(function)
    tidied = tidy(function)
    verify(tidied)
    assert not has_literals(tidied)
    (operation,) = tidied.operations
    assert 2.0 not in [getattr(value, "value", None) for value in operation.operands]


def test_a_second_run_finds_nothing() -> None:
    for program, _ in PROGRAMS.values():
        once = dce(derivative(trace(program, F64), "R"))
        assert str(dce(once)) == str(once)


# --- what a trip costs on the NumPy backend ---------------------------------------------------------------------------

SIZE = 5000


def writer(x: Any) -> Any:
    return total(for_(SIZE, lambda i, a: put(a, i, sin(at(x, i)) * 1.5), x * 0.0)[0])


def recurrence(x: Any) -> Any:
    a = for_(SIZE - 1, lambda i, a: put(a, i + 1, at(a, i) * 0.5 + at(x, i)), x * 0.0)[0]
    return total(a * a)


def reader(x: Any) -> Any:
    return for_(SIZE, lambda i, s: s * 0.5 + sin(at(x, i)) * at(x, i), 0.0)[0]


def conditional_writer(x: Any) -> Any:
    def body(i: Any, a: Any) -> Any:
        return cond(at(x, i) > 0.5, lambda a: put(a, i, at(x, i) * 2.0), lambda a: a, a)[0]

    return total(for_(SIZE, body, x * 0.0)[0])


def nested_reader(x: Any) -> Any:
    def row(i: Any, s: Any) -> Any:
        return for_(3, lambda j, t: t + at(x, i + j) * at(x, i), s)[0]

    return for_(SIZE - 3, row, 0.0)[0]


def counted_writer(x: Any) -> Any:
    def body(i: Any, a: Any) -> Any:
        return i + 1, put(a, i, at(x, i) * at(a, i - 1))

    return total(while_(lambda i, a: i < SIZE, body, np.int64(1), x * 1.0)[1])


@pytest.mark.parametrize("program", [writer, recurrence, reader, conditional_writer, nested_reader, counted_writer])
def test_a_trip_touches_no_whole_array(program: Any) -> None:
    """In loops, every update is in place, and nothing of the array's size is made or added."""
    function = trace(program, vector(SIZE))
    for derived in (function, value_and_grad(function, [True]), hvp(function, [True])):
        executable = compiled(derived)
        inner = [line for line in executable.source.splitlines() if line.startswith("        ")]
        for line in inner:
            assert "scatter_" not in line or "reuse=True" in line, executable.source
            assert f"({SIZE},)" not in line and "out=" not in line and ".copy()" not in line, executable.source


def test_carries_that_are_shared_are_copied() -> None:
    """A carry is not written in place where its start, a tape or another carry is read later."""

    def program(x: Any) -> Any:
        start = x * 2.0
        swapped = for_(4, lambda i, a, b: (put(b, i, at(a, i) + 1.0), a), start, start)
        kept, column = for_(3, lambda i, a: (put(a, i, 7.0), a), start)
        same, other = for_(2, lambda i, a, b: (put(a, i, -1.0), a), start, start * 1.0)
        return total(start) + total(swapped[0] * swapped[1]) + total(column) + total(kept) + total(same * other)

    x = np.linspace(0.0, 1.0, 1000)
    function = trace(program, vector(1000))
    np.testing.assert_allclose(compiled(function)(x)[0], interpreted(function, x)[0], rtol=1e-14)
    gradient = value_and_grad(function, [True])
    np.testing.assert_allclose(compiled(gradient)(x)[1], interpreted(gradient, x)[1], rtol=1e-14)


def test_arguments_are_not_written() -> None:
    function = trace(lambda x: for_(3, lambda i, a: put(a, i, 9.0), x)[0], vector(1000))
    x = np.zeros(1000)
    found = compiled(function)(x)[0]
    assert not x.any() and found[:3].tolist() == [9.0] * 3


def test_a_start_that_is_read_later_is_copied() -> None:
    def program(x: Any) -> Any:
        start = x * 2.0
        return total(for_(3, lambda i, a: put(a, i, 7.0), start)[0]) + total(start)

    x = np.ones(1000)
    assert compiled(trace(program, vector(1000)))(x)[0] == 21.0 + 2.0 * 997 + 2000.0


def test_one_start_of_two_carries_is_copied() -> None:
    def program(x: Any) -> Any:
        start = x * 2.0
        one, other = for_(3, lambda i, a, b: (put(a, i, 7.0), put(b, i, 1.0)), start, start)
        return total(one) * 1000.0 + total(other)

    found = compiled(trace(program, vector(1000)))(np.ones(1000))[0]
    assert found == (21.0 + 1994.0) * 1000.0 + 3.0 + 1994.0


def test_what_a_tape_keeps_is_not_written() -> None:
    def program(x: Any) -> Any:
        def body(i: Any, a: Any, s: Any) -> Any:
            b = put(a, i, s * 0.1)
            return i + 1, b, s + total(b * b) * 0.001

        return while_(lambda i, a, s: i < 5, body, np.int64(0), x * 1.0, at(x, np.int64(3)))[2]

    x = np.linspace(0.0, 1.0, 1000)
    gradient = value_and_grad(trace(program, vector(1000)), [True])
    np.testing.assert_allclose(compiled(gradient)(x)[1], interpreted(gradient, x)[1], rtol=1e-12)


@pytest.mark.parametrize("clean", [False, True])
def test_what_is_added_in_place_keeps_its_mask(clean: bool) -> None:
    builder = Builder()
    value, mask = builder.param(vector(3)), builder.param(vector(3).with_dtype(BOOL))
    part, index = builder.param(F64), builder.param(ArrayType(INT64))
    s = Masked(builder)
    scattered = s.apply(REGISTRY["scatter_add"], [Zero(vector(3)), Lin(part), Term(builder, index)], {"axis": 0})
    found = s.add(Lin(value, mask, clean), scattered)
    assert isinstance(found, Lin) and found.mask is not None
    function = builder.function("f", [s.materialise(found), found.mask])
    numbers = np.array([1.0, 0.0 if clean else np.nan, 0.0 if clean else np.nan])
    for place, there in ((1, [True, True, False]), (0, [True, False, False])):
        result = evaluate(function, [numbers, np.array([True, False, False]), np.float64(5.0), np.int64(place)])
        expected = np.array([1.0, 0.0, 0.0])
        expected[place] += 5.0
        np.testing.assert_array_equal(result[0], expected)
        np.testing.assert_array_equal(result[1], there)
