"""The verifier on what text cannot say; the rules that text can break are in programs/verify_*.ir."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

import numpy as np
import pytest

from srcgrad.ir.core import NO_ATTRS, Attrs, Builder, Function, Literal, Operation, Region, Value, zeros
from srcgrad.ir.errors import ShapeError, VerifyError
from srcgrad.ir.opdef import REGISTRY, Op
from srcgrad.ir.parser import parse
from srcgrad.ir.text import show
from srcgrad.ir.types import FLOAT64, ArrayType, Dim
from srcgrad.ir.verify import STAGES, Stage, verify

F3 = ArrayType(FLOAT64, (3,))
SIN = REGISTRY["sin"]


def sin(operand: Value, name: str = "y") -> Operation:
    operation = Operation(SIN, (operand,), {}, (), [F3], None)
    operation.results[0].name = name
    return operation


def shown(error: VerifyError) -> list[str]:
    """The function's text in the error's."""
    lines = str(error).split("\n")
    start = next(index for index, line in enumerate(lines) if line.startswith("  func"))
    return [line[2:] for line in lines[start:]]


def broken(function: Function) -> tuple[str, str]:
    """The message, and the underlined line."""
    with pytest.raises(VerifyError) as caught:
        verify(function)
    lines = shown(caught.value)
    underline = next(index for index, line in enumerate(lines) if line.strip().startswith("^~"))
    assert lines[underline].index("^") == lines[underline - 1].index(lines[underline - 1].strip()[0])
    return caught.value.message, lines[underline - 1].strip()


def test_a_use_before_the_definition() -> None:
    x = Value(F3, None, "x")
    later = sin(x, "later")
    early = sin(later.results[0], "early")
    message, line = broken(Function("f", [x], [early, later], []))
    assert message == "%later is used before its definition"
    assert line == "%early: f64[3] = sin %later"


def test_an_operation_that_uses_its_own_result() -> None:
    operation = sin(zeros(F3))
    operation.operands = operation.results
    assert broken(Function("f", [], [operation], []))[0] == "%y is used before its definition"


def test_a_value_from_nowhere() -> None:
    message, line = broken(Function("f", [], [], [Value(F3, None, "x")]))
    assert message == "%?x is not defined in this function"
    assert line == "return %?x"


def test_regions_are_closed() -> None:
    x = Value(F3, None, "x")
    inner = Region([], [sin(x)], [])
    outer = Operation(SIN, (x,), {}, (inner,), [F3], None)
    with pytest.raises(VerifyError, match=r"%\?x is defined in another region") as caught:
        verify(Function("f", [x], [outer], []))
    assert caught.value.hint == "regions are closed: pass it as an operand and a parameter"
    leaking = Function("f", [x], [Operation(SIN, (x,), {}, (Region([], [sin(zeros(F3))], []),), [F3], None)], [])
    leaking = Function("f", [x], leaking.operations, leaking.operations[0].regions[0].operations[0].results)
    assert broken(leaking) == ("%?y is defined in another region", "return %?y")


def test_a_value_defined_twice() -> None:
    x = Value(F3, None, "x")
    once = sin(x)
    assert broken(Function("f", [x, x], [], [])) == (
        "%x is defined twice",
        "func @f(%x: f64[3], %x: f64[3]) -> () {",
    )
    assert broken(Function("f", [x], [once, once], []))[0] == "%y is defined twice"


def test_a_result_names_its_operation() -> None:
    x = Value(F3, None, "x")
    first, second = sin(x), sin(x, "z")
    second.results = (Value(F3, first, "z"),)
    assert broken(Function("f", [x], [first, second], []))[0] == "%z names another operation as its producer"
    assert broken(Function("f", [first.results[0]], [], []))[0] == "%y names another operation as its producer"


@pytest.mark.parametrize(
    ("literal", "message"),
    [
        (Literal(np.float32(1), F3), "a literal of dtype float32 has type f64[3]"),
        (Literal(np.ones(2), F3), "a literal of shape (2,) has type f64[3]"),
        (zeros(ArrayType(FLOAT64, (-1,))), "-1 in f64[-1] is not a size"),
        (zeros(ArrayType(FLOAT64, (Dim("n", -1),))), "n<=-1 is not a size"),
        (zeros(ArrayType(FLOAT64, (Dim("a b", 1),))), "a b<=1 is not a size"),
    ],
)
def test_bad_literals_and_sizes(literal: Literal, message: str) -> None:
    found, line = broken(Function("f", [], [sin(literal)], []))
    assert found == message
    assert line.startswith("%y: f64[3] = sin ")


def test_a_dtype_without_a_name() -> None:
    with pytest.raises(VerifyError, match="srcgrad has no type for dtype") as caught:
        verify(Function("f", [Value(ArrayType(np.dtype("S3")))], [], []))
    assert caught.value.context == []


def test_sizes_in_attributes() -> None:
    operation = sin(zeros(F3))
    operation.attrs = {"sizes": ((Dim("n", 3),), ArrayType(FLOAT64, (Dim("n", 4),)))}
    assert broken(Function("f", [], [operation], []))[0].startswith("the size n has two bounds, n<=")


def test_a_long_function_is_shown_around_the_place() -> None:
    builder = Builder()
    value = builder.param(F3, "x")
    for _ in range(200):
        value = builder.emit(SIN, [value])
    function = builder.function("f", [value])
    bad = function.operations[100]
    bad.results[0].type = ArrayType(FLOAT64, (4,))
    with pytest.raises(VerifyError) as caught:
        verify(function)
    lines = shown(caught.value)
    assert lines[0] == "func @f(%x: f64[3]) -> (f64[3]) {"
    assert lines[1] == lines[-1] == "  ..."
    assert lines[2] == "  %70: f64[3] = sin %69"
    assert lines[33] == "  ^" + "~" * (len(lines[32]) - 3)
    assert lines[32] == "  %100: f64[4] = sin %99"
    assert len(lines) == 65


def test_deep_nesting_and_shared_regions() -> None:
    region = Region([], [], [])
    for _ in range(2000):
        held = Operation(SIN, (zeros(F3),), {}, (region, region), [F3], None)
        region = Region([], [held], [])
    verify(Function("f", [], region.operations, []))


def test_every_stage_has_rules() -> None:
    assert set(STAGES) == set(get_args(Stage))


@pytest.mark.parametrize("stage", get_args(Stage))
def test_a_program_that_every_stage_accepts(stage: Stage) -> None:
    verify(parse("func @f() -> (f64[]) {\n  return 0.0\n}"), stage)


# --- an op that holds a region -------------------------------------------------------------------


@pytest.fixture
def repeat() -> Iterator[Op]:
    """An op that applies its region to its operands three times; it is registered for one test only."""

    class Repeat(Op):
        region_labels = ("body",)

        def linear_positions(self, arity: int, attrs: Attrs) -> tuple[int, ...]:
            return tuple(range(attrs["residuals"], arity))

        def result_types(
            self,
            types: Sequence[ArrayType],
            attrs: Attrs = NO_ATTRS,
            regions: Sequence[Region] = (),
        ) -> Sequence[ArrayType]:
            return regions[0].result_types

        def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
            return types[0]

        def verify_regions(self, operation: Operation) -> None:
            given = tuple(operand.type for operand in operation.operands)
            if operation.regions[0].param_types != given:
                raise ShapeError("repeat: the body does not take the operands")

    yield REGISTRY["repeat"]
    del REGISTRY["repeat"]


LOOP = """\
func @f(%c: f64[3], %t: lin f64[3]) -> (f64[3]) {
  %y: lin f64[3] = repeat %c, %t {residuals=1}
    body (%c: f64[3], %t: lin f64[3]) {
      # demo.py:7 | t = t * c
      %n: lin f64[3] = mul %t, %c
      yield %n
    }
  return %y
}"""


def test_linear_values_in_regions(repeat: Op) -> None:
    function = parse(LOOP)
    verify(function)
    verify(function, "linear")
    assert show(function) == LOOP
    message, line = broken(parse(LOOP.replace("mul %t, %c", "mul %t, %t")))
    assert message == "mul is linear in one operand at a time, not in 2 together"
    assert line == "%n: lin f64[3] = mul %t, %t"


@pytest.mark.parametrize("stage", ["traced", "differentiated", "lowered"])
def test_linear_regions_are_for_linear_programs(repeat: Op, stage: Stage) -> None:
    text = LOOP.replace("%t: lin f64[3]) ->", "%t: f64[3]) ->").replace("%y: lin", "%y:")
    verify(parse(text))
    with pytest.raises(VerifyError, match=f"a {stage} program has no linear values"):
        verify(parse(text), stage)


def test_ops_check_their_regions(repeat: Op) -> None:
    text = LOOP.replace("body (%c: f64[3]", "body (%c: f64[4]").replace("mul %t, %c", "neg %t")
    message, line = broken(parse(text))
    assert message == "repeat: the body does not take the operands"
    assert line == "%y: lin f64[3] = repeat %c, %t {residuals=1}"


def test_a_region_that_is_missing(repeat: Op) -> None:
    text = "\n".join(line for line in LOOP.split("\n") if not line.startswith("    "))
    assert broken(parse(text))[0] == "repeat does not take this: IndexError: tuple index out of range"
