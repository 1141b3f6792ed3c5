"""What a function is, as bytes: the same for what runs alike, another for anything that differs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from srcgrad.ir import identity
from srcgrad.ir.core import Builder, Function, Literal, Operation
from srcgrad.ir.identity import described
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.parser import parse
from srcgrad.ir.types import FLOAT64, ArrayType

BASE = """
func @f(%x: f64[3], %n: bool[]) -> (f64[3], f64[]) {
  %y: f64[3] = sin %x
  %s: f64[] = reduce_sum %y {axes=[0]}
  %z: f64[3] = mul %y, 2.0:f64[3]
  %w: f64[3] = cond %n, %z
    then (%a: f64[3]) {
      %b: f64[3] = exp %a
      yield %b
    }
    else (%a: f64[3]) {
      yield %a
    }
  return %w, %s
}
"""
CHANGES = {
    "an op": ("sin %x", "cos %x"),
    "an operand": ("mul %y, 2.0", "mul %x, 2.0"),
    "a literal": ("2.0:f64[3]", "2.5:f64[3]"),
    "the sign of a zero": ("2.0:f64[3]", "-0.0:f64[3]"),
    "an op of a region": ("exp %a", "log %a"),
    "what a region gives": ("yield %b", "yield %a"),
    "the order of the results": ("(f64[3], f64[]) {", "(f64[], f64[3]) {"),
}


def changed(old: str, new: str) -> str:
    assert old in BASE
    text = BASE.replace(old, new, 1)
    return text.replace("return %w, %s", "return %s, %w") if old.startswith("(f64[3], f64") else text


@pytest.mark.parametrize("what", CHANGES)
def test_what_differs_has_other_bytes(what: str) -> None:
    assert described(parse(changed(*CHANGES[what]))) != described(parse(BASE))


def test_zeros_of_either_sign_and_true_and_one_differ() -> None:
    texts = [changed("2.0:f64[3]", f"{number}:f64[3]") for number in ("0.0", "-0.0", "nan", "inf")]
    assert len({described(parse(text)) for text in texts}) == 4


@pytest.mark.parametrize("axes", ["[0]", "[1]", "[0,1]"])
def test_attributes_and_shapes_count(axes: str) -> None:
    def text(given: str, size: int) -> str:
        kept = {"[0]": f"[{size}]", "[1]": "[2]", "[0,1]": "[]"}[given]
        return (
            f"func @f(%x: f64[2,{size}]) -> (f64{kept}) {{\n"
            f"  %y: f64{kept} = reduce_sum %x {{axes={given}}}\n  return %y\n}}"
        )

    others = {described(parse(text(given, size))) for given in ("[0]", "[1]", "[0,1]") for size in (4, 5)}
    assert len(others) == 6 and described(parse(text(axes, 4))) in others


def test_it_counts_which_literal_is_read_where() -> None:
    def text(last: str) -> str:
        return (
            "func @f(%x: f64[]) -> (f64[]) {\n  %a: f64[] = mul %x, 2.0:f64[]\n  %b: f64[] = add %a, 3.0:f64[]\n"
            f"  %c: f64[] = mul %b, {last}:f64[]\n  return %c\n}}"
        )

    assert described(parse(text("2.0"))) != described(parse(text("3.0")))


MANY_TYPES = """
func @f({params}) -> (f64[]) {{
  %s: f64[] = add {reads}
  return %s
}}
"""


def of_many_types(order: Sequence[int]) -> Function:
    """A parameter of each of these sizes, then two numbers, which are added."""
    sizes = [f"%x{k}: f64[{size}]" for k, size in enumerate(order)]
    return parse(MANY_TYPES.format(params=", ".join([*sizes, "%a: f64[]", "%b: f64[]"]), reads="%a, %b"))


@pytest.mark.parametrize("step", [1, -1])
def test_types_are_numbered_as_they_are_met_wherever_they_lie_in_memory(
    step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process finds what this one has written: what a type's address decides is no part of it."""
    order = [*range(1, 60)]
    expected = described(of_many_types(order))
    assert described(of_many_types(order[::-1])) != expected
    assert len({described(of_many_types(order[k:])) for k in range(20)}) == 20
    addresses: dict[int, int] = {}
    at = lambda x: addresses.setdefault(id(x), 500 + step * len(addresses))  # noqa: E731
    monkeypatch.setattr(identity, "id", at, raising=False)
    assert described(of_many_types(order)) == expected
    assert len(addresses) > 50


def test_what_an_operation_reads_and_gives_is_not_its_neighbour_s() -> None:
    """The same operands in the same order, of which another operation has one more, which is empty."""

    def joined(first: int) -> Function:
        builder = Builder()
        params = [builder.param(ArrayType(FLOAT64, (size,))) for size in (2, 0, 2)]
        concatenate = REGISTRY["concatenate"]
        return builder.function(
            "f", [builder.emit(concatenate, given, {"axis": 0}) for given in (params[:first], params[first:])]
        )

    assert described(joined(1)) == described(joined(1)) != described(joined(2))


def test_an_attribute_belongs_to_its_operation() -> None:
    def summed(first: int) -> Function:
        builder = Builder()
        x = builder.param(ArrayType(FLOAT64, (3, 3)))
        axes = [(first,), (1 - first,)]
        return builder.function("f", [builder.emit(REGISTRY["reduce_sum"], [x], {"axes": given}) for given in axes])

    assert described(summed(0)) == described(summed(0)) != described(summed(1))


def test_names_lines_and_the_function_s_name_do_not_count() -> None:
    other = BASE.replace("%x", "%other").replace("@f", "@g").replace("%b", "%c")
    assert described(parse(other)) == described(parse(BASE))


def test_dense_literals_count_by_their_bits() -> None:
    def function(*numbers: float) -> Function:
        builder = Builder()
        x = builder.param(ArrayType(FLOAT64, (2,)))
        constant = Literal(np.array(numbers), ArrayType(FLOAT64, (2,)))
        return builder.function("f", [builder.emit(REGISTRY["add"], [x, constant])])

    assert described(function(1.0, 2.0)) == described(function(1.0, 2.0))
    numbers = [(1.0, 2.0), (1.0, np.nextafter(2.0, 3.0)), (2.0, 1.0), (0.0, 1.0), (-0.0, 1.0)]
    assert len({described(function(*pair)) for pair in numbers}) == 5


def test_what_exists_in_this_process_alone_has_none() -> None:
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64, ()))
    kept = builder.function("f", [builder.emit(REGISTRY["sin"], [x])])
    (operation,) = kept.operations

    other = object.__new__(type(operation.op))
    for op, attrs in ((other, {}), (operation.op, {"call": len}), (operation.op, {"a": (1, object())})):
        made = Operation(op, operation.operands, attrs, (), [operation.results[0].type], None)
        assert described(Function("f", kept.params, [made], made.results)) is None
    assert described(kept) is not None
