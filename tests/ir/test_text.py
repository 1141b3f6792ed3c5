"""The printed form: names, literals, attributes, source comments, regions."""

from __future__ import annotations

import numpy as np
import pytest

from srcgrad.ir.compare import same
from srcgrad.ir.core import Builder, Function, Literal, Operation, Region, Value, literal, zeros
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.parser import parse
from srcgrad.ir.source import Span
from srcgrad.ir.text import Names, attr_text, clean_name, literal_text, region_label, show, show_operation
from srcgrad.ir.types import BOOL, DTYPES, FLOAT64, INT64, ArrayType, Dim

F3 = ArrayType(FLOAT64, (3,))
SCALAR = ArrayType(FLOAT64)


def chain(*names: str | None) -> Function:
    """A chain of sines whose values have the given names, the parameter's first."""
    builder = Builder()
    value = builder.param(F3, names[0])
    for name in names[1:]:
        value = builder.emit(REGISTRY["sin"], [value])
        value.name = name
    return builder.function("f", [value])


def printed_names(function: Function) -> list[str]:
    names = Names.of(function)
    values = [*function.params, *(result for operation in function.operations for result in operation.results)]
    return [names[value] for value in values]


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ((None, None, None), ["0", "1", "2"]),
        (("x", "x", "x"), ["x", "x.1", "x.2"]),
        (("x.1", "x", "x"), ["x.1", "x", "x.2"]),
        (("x", "x", "x.1"), ["x", "x.1", "x.1.1"]),
        (("x", None, "", "y"), ["x", "0", "1", "y"]),
        (("0", None), ["_0", "0"]),
        (("a b", "a-b", "σ", "α.bar"), ["a_b", "a_b.1", "σ", "α.bar"]),
    ],
)
def test_names_are_unique_and_stay_when_read_back(given: tuple[str | None, ...], printed: list[str]) -> None:
    function = chain(*given)
    assert printed_names(function) == printed
    assert printed_names(parse(show(function))) == printed


def test_function_names_are_made_printable() -> None:
    function = Function("loss.<lambda>", [], [], [])
    assert show(function).splitlines()[0] == "func @loss._lambda_() -> () {"
    assert clean_name("") == "_"


def test_str_of_a_function_is_its_text() -> None:
    function = chain("x", "y")
    assert str(function) == repr(function) == show(function)


@pytest.mark.parametrize(
    ("value", "type", "text"),
    [
        (2.0, SCALAR, "2.0"),
        (3, ArrayType(INT64), "3"),
        (True, ArrayType(BOOL), "true"),
        (1 + 2j, ArrayType(DTYPES["c128"]), "(1+2j)"),
        (-0.0, SCALAR, "-0.0"),
        (complex(-0.0, -0.0), ArrayType(DTYPES["c128"]), "(-0-0j)"),
        (complex(np.nan, -np.inf), ArrayType(DTYPES["c128"]), "(nan-infj)"),
        (1e22, SCALAR, "1e+22"),
        (5e-324, SCALAR, "5e-324"),
        (-np.inf, SCALAR, "-inf"),
        (np.nan, F3, "nan:f64[3]"),
        (2.0, ArrayType(FLOAT64, (4, 2)), "2.0:f64[4,2]"),
        (0.1, ArrayType(DTYPES["f32"], (3,)), "0.1:f32[3]"),
        (3, ArrayType(DTYPES["u8"]), "3:u8[]"),
        (0.1 + 1.5j, ArrayType(DTYPES["c64"]), "(0.1+1.5j):c64[]"),
        ([[1.0, 2.0], [3.0, 4.0]], ArrayType(FLOAT64, (2, 2)), "dense([[1.0, 2.0], [3.0, 4.0]]):f64[2,2]"),
        ([True, False], ArrayType(BOOL, (2,)), "dense([true, false]):bool[2]"),
        (1.0, ArrayType(FLOAT64, (Dim("n", 10),)), "1.0:f64[n<=10]"),
    ],
)
def test_literals(value: object, type: ArrayType, text: str) -> None:
    assert literal_text(literal(value, type)) == text


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 2), (2, 0, 3)])
def test_empty_dense_literals_keep_their_shape(shape: tuple[int, ...]) -> None:
    type = ArrayType(FLOAT64, shape)
    function = Function("f", [], [], [Literal(np.zeros(shape), type)])
    assert same(parse(show(function)), function)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((0, 1), "[0,1]"),
        ((), "[]"),
        (((1,), ()), "[[1],[]]"),
        (-3, "-3"),
        (np.int32(3), "3"),
        (1.5, "1.5"),
        (float("nan"), "nan"),
        (1 - 2j, "(1-2j)"),
        (False, "false"),
        (None, "none"),
        ('say "hi"\n', '"say \\"hi\\"\\n"'),
        (np.dtype(np.float32), "f32"),
        (F3, "f64[3]"),
        ((Dim("n", 10), 3), "[n<=10,3]"),
        (chain, '!"chain"'),
        (np.dtype("S3"), '!"|S3"'),
    ],
)
def test_attributes(value: object, text: str) -> None:
    assert attr_text(value) == text


def spanned(*spans: Span | None) -> Function:
    builder = Builder()
    value = builder.param(F3, "x")
    for span in spans:
        builder.span = span
        value = builder.emit(REGISTRY["sin"], [value])
    return builder.function("f", [value])


def test_the_source_stands_once_above_a_run() -> None:
    left = Span.at("demo.py", 4, 4, 9, "loss", "    h = np.sin(x @ w)")
    right = Span.at("demo.py", 4, 11, 16, "loss", "    h = np.sin(x @ w)")
    function = spanned(None, left, right, left.derive("adjoint"), None, left.derive("adjoint").derive("tangent"))
    text = show(function)
    assert text.splitlines()[1:-2] == [
        "  %0: f64[3] = sin %x",
        "  # demo.py:4 | h = np.sin(x @ w)",
        "  %1: f64[3] = sin %0",
        "  %2: f64[3] = sin %1",
        "  # adjoint of demo.py:4",
        "  %3: f64[3] = sin %2",
        "  # (no source)",
        "  %4: f64[3] = sin %3",
        "  # tangent of adjoint of demo.py:4",
        "  %5: f64[3] = sin %4",
    ]
    read = parse(text)
    assert show(read) == text
    spans = [operation.span for operation in read.operations]
    assert [span and span.describe() for span in spans] == [
        operation.span and operation.span.describe() for operation in function.operations
    ]
    assert spans[3] is not None and spans[1] is not None
    assert spans[3].origin is spans[1]


@pytest.mark.parametrize("text", ["a = 1 | 2 # of b.py:3", 'print("%x = sin")', "x\u2028y\x0cz", ""])
@pytest.mark.parametrize("file", ["my file.py", "<ipython-input-1>", "a of b.py"])
def test_any_source_line_survives(file: str, text: str) -> None:
    function = spanned(Span.at(file, 4, text=text))
    assert show(parse(show(function))) == show(function)
    assert len(show(function).split("\n")) == 5


def test_deeply_derived_roles_survive() -> None:
    span = Span.at("demo.py", 4)
    for _ in range(5):
        span = span.derive("adjoint")
    text = show(spanned(span))
    assert "# adjoint of adjoint of adjoint of … of demo.py:4" in text
    assert show(parse(text)) == text


def with_region(linear: bool = False) -> Function:
    """A function whose only operation is a sum (which ignores them) that holds two regions."""
    builder = Builder()
    x = builder.param(F3, "x", linear)
    builder.span = Span.at("demo.py", 1, text="x = x if p else 1.0")
    inner = Builder()
    t = inner.param(F3, "x")
    inner.span = Span.at("demo.py", 2, text="sin")
    first = inner.region([inner.emit(REGISTRY["sin"], [t]), zeros(SCALAR)])
    second = Region([], [], [])
    builder.emit(REGISTRY["add"], [x, x], {}, (first, second))
    y = builder.emit(REGISTRY["neg"], [x])
    return builder.function("f", [y])


REGIONS = """\
func @f(%x: f64[3]) -> (f64[3]) {
  # demo.py:1 | x = x if p else 1.0
  %0: f64[3] = add %x, %x
    region0 (%x: f64[3]) {
      # demo.py:2 | sin
      %0: f64[3] = sin %x
      yield %0, 0.0
    }
    region1 () {
      yield
    }
  %1: f64[3] = neg %x
  return %1
}"""


def test_regions_stand_under_their_operation() -> None:
    function = with_region()
    assert show(function) == REGIONS
    assert same(parse(REGIONS), function)
    assert show(parse(REGIONS)) == REGIONS


def test_an_operation_alone() -> None:
    function = with_region()
    assert show_operation(function.operations[1]) == "%0: f64[3] = neg %x"
    assert show_operation(function.operations[1], Names.of(function)) == "%1: f64[3] = neg %x"
    assert show_operation(function.operations[0]).splitlines() == [line[2:] for line in REGIONS.splitlines()[2:11]]


def test_linear_values_are_marked() -> None:
    assert show(with_region(linear=True)).splitlines()[0] == "func @f(%x: lin f64[3]) -> (f64[3]) {"
    assert show(with_region(linear=True)).splitlines()[2] == "  %0: lin f64[3] = add %x, %x"


def test_an_op_names_its_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(REGISTRY["add"]), "region_labels", ("then", "else"), raising=False)
    function = with_region()
    text = show(function)
    assert "\n    then (%x: f64[3]) {\n" in text
    assert "\n    else () {\n" in text
    assert same(parse(text), function)
    assert region_label(REGISTRY["add"], 2) == "region2"


def test_broken_ir_prints() -> None:
    outside = Value(F3, None, "o o")
    operation = Operation(REGISTRY["add"], (outside, Value(F3)), {}, (), [F3], None)
    assert show(Function("f", [], [operation], [])).splitlines()[1] == "  %0: f64[3] = add %?o_o, %?"


def test_nesting_is_not_limited_by_recursion() -> None:
    region = Region([], [], [])
    for _ in range(2000):
        operation = Operation(REGISTRY["neg"], (zeros(SCALAR),), {}, (region,), [SCALAR], None)
        region = Region([], [operation], [])
    function = Function("f", [], region.operations, [])
    read = parse(show(function))
    assert same(read, function)
