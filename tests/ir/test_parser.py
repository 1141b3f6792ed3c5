"""Reading text back: round trips of every op's programs, of random literals and attributes; errors at their place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from srcgrad.ir.compare import same
from srcgrad.ir.core import Builder, Function, Literal, Operation, literal
from srcgrad.ir.errors import MissingRuleError, ParseError, VerifyError
from srcgrad.ir.opdef import REGISTRY, Op, Sample
from srcgrad.ir.parser import parse
from srcgrad.ir.source import Span
from srcgrad.ir.text import show
from srcgrad.ir.transforms.linearize import jvp, linearize
from srcgrad.ir.transforms.transpose import transpose
from srcgrad.ir.types import DTYPES, FLOAT64, ArrayType, Dim
from srcgrad.ir.verify import Stage, verify

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.ir"))


def require_round_trip(function: Function) -> None:
    text = show(function)
    read = parse(text)
    assert same(read, function), text
    assert show(read) == text


# --- every op ------------------------------------------------------------------------------------


def program(op: Op, sample: Sample) -> Function:
    builder = Builder()
    operands = [
        builder.param(ArrayType(array.dtype, array.shape), f"x{index}")
        for index, array in enumerate(map(np.asarray, sample.operands))
    ]
    builder.span = Span.at("demo.py", 4, text=f"y = {op.name}(x)")
    operation = builder.emit_operation(op, operands, dict(sample.attrs))
    return builder.function(op.name, operation.results)


def derived(function: Function) -> Iterator[tuple[Stage, Function]]:
    """The function and its derivatives, as far as its op has the rules."""
    yield "traced", function
    active = [param.type.differentiable for param in function.params]
    if not any(active):
        return
    try:
        yield "differentiated", jvp(function, active)
        linearized = linearize(function, active)
        yield "differentiated", linearized.primal
        yield "linear", linearized.linear
        yield "differentiated", transpose(linearized.linear)
        yield "differentiated", transpose(linearized.linear, masked=True)
    except MissingRuleError:
        return


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_programs_of_every_op_round_trip_and_verify(name: str) -> None:
    op = REGISTRY[name]
    for sample in op.samples():
        for stage, function in derived(program(op, sample)):
            require_round_trip(function)
            verify(function, stage)
            verify(parse(show(function)), stage)


# --- random attributes and literals --------------------------------------------------------------

NAMES = st.from_regex(r"[a-z_][a-z0-9_.]{0,5}", fullmatch=True).filter(lambda name: name not in ("inf", "nan"))
DIMS = st.builds(Dim, NAMES, st.integers(0, 100))
TYPES = st.builds(ArrayType, st.sampled_from(list(DTYPES.values())), st.lists(DIMS | st.integers(0, 9), max_size=3))
ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(),
    DIMS,
    TYPES,
    st.sampled_from(list(DTYPES.values())),
)
ATTRS = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=8)


@given(st.dictionaries(NAMES, ATTRS, max_size=3))
@settings(deadline=None, max_examples=100)
def test_attributes_round_trip(attrs: dict[str, Any]) -> None:
    x = literal(1.0, ArrayType(FLOAT64))
    require_round_trip(Function("f", [], [Operation(REGISTRY["neg"], (x,), attrs, (), [x.type], None)], []))


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_literals_round_trip(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(list(DTYPES.values())))
    shape = data.draw(npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
    parts = np.empty(0, dtype).real.dtype
    if dtype.kind == "b":
        array = data.draw(npst.arrays(np.bool_, shape))
    elif dtype.kind in "iu":
        array = data.draw(npst.arrays(dtype, shape))
    else:
        real, imag = (data.draw(npst.arrays(parts, shape, elements=numbers(parts))) for _ in range(2))
        array = np.zeros(shape, dtype)
        array.real = real
        if dtype.kind == "c":
            array.imag = imag
    require_round_trip(Function("f", [], [], [Literal(array if shape else array[()], ArrayType(dtype, shape))]))
    splat = ArrayType(dtype, (*shape, Dim("n", 3)))
    require_round_trip(Function("f", [], [], [Literal(array.reshape(-1)[0], splat)] if array.size else []))


def numbers(dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    if dtype.itemsize <= 8:
        return npst.from_dtype(dtype, allow_nan=True)
    # Hypothesis draws doubles: the low bits of a longdouble come from a second one, small beside the first.
    scale = np.longdouble(2) ** -60
    return st.builds(lambda high, low: np.longdouble(high) * (1 + scale * low), st.floats(), st.integers(-31, 31))


@pytest.mark.parametrize("name", [name for name, dtype in DTYPES.items() if dtype.kind in "fc"])
def test_bits_of_hard_numbers_survive(name: str) -> None:
    dtype = DTYPES[name]
    real = np.empty(0, dtype).real.dtype
    info, one = np.finfo(real), real.type(1)
    values = [info.max, info.tiny, info.smallest_subnormal, one / 3, np.nextafter(one, 2 * one), info.eps, -0.0 * one]
    for value in values:
        number = np.zeros((), dtype)
        number.real = value
        read = parse(show(Function("f", [], [], [Literal(number[()], ArrayType(dtype))]))).results[0]
        assert isinstance(read, Literal)
        assert read.value == number
        assert np.signbit(read.value.real) == np.signbit(value)


def test_the_grammar_allows_what_the_printer_does_not_write() -> None:
    function = parse(
        """
        # a comment
        func   @f ( %b : f64 [ 2 ] )->( f64[2] , f64[] ){  # another
            # see the notes
          %5:f64[2]=mul %b ,2:f64[2]

          return %5, 1.e0
        }
        """
    )
    assert show(function) == (
        "func @f(%b: f64[2]) -> (f64[2], f64[]) {\n  %0: f64[2] = mul %b, 2.0:f64[2]\n  return %0, 1.0\n}"
    )


def test_windows_line_ends() -> None:
    text = "func @f(%x: f64[]) -> (f64[]) {\n  return %x\n}"
    assert show(parse(text.replace("\n", "\r\n"))) == text


# --- differences ---------------------------------------------------------------------------------

BASE = """\
func @f(%x: f64[3], %p: bool[3]) -> (f64[3]) {
  %y: f64[3] = select %p, %x, 1.0:f64[3]
  %z: f64[3] = reverse %y {axes=[0]}
  return %z
}"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("@f", "@g"),
        ("%x", "%w"),
        ("%y", "%y2"),
        ("%x: f64", "%x: lin f64"),
        ("1.0:", "2.0:"),
        ("1.0:f64[3]", "dense([1.0, 1.0, 1.0]):f64[3]"),
        ("1.0:f64[3]", "%x"),
        ("%p, %x, 1.0:f64[3]", "%p, 1.0:f64[3], %x"),
        ("1.0:f64[3]", "1.0:f64[3] {a=1}"),
        ("[0]", "[true]"),
        ("[0]", "[0,0]"),
        ("axes", "axis"),
        ("reverse", "neg"),
        ("return %z", "return %y"),
        ("  %y: f64[3]", "  %y: lin f64[3]"),
        ("%y: f64[3]", "%y: f64[3], %u: f64[3]"),
        ("bool[3]", "bool[4]"),
        ("{axes=[0]}", "{axes=[0]}\n    region0 () {\n      yield\n    }"),
        ("  %z", "  %u: f64[3] = neg %x\n  %z"),
        ("(%x", "(%u: f64[], %x"),
    ],
)
def test_what_differs_is_not_the_same(old: str, new: str) -> None:
    assert BASE.count(old) >= 1
    base, other = parse(BASE), parse(BASE.replace(old, new))
    assert same(base, parse(BASE))
    assert not same(base, other)
    assert not same(other, base)


# --- errors --------------------------------------------------------------------------------------


def test_an_error_shows_the_line_with_a_caret() -> None:
    with pytest.raises(ParseError) as caught:
        parse("func @f(%operand: f64[3]) -> () {\n  %y: f64[3] = sin %operant\n  return\n}")
    assert str(caught.value) == (
        "%operant is not defined above\n"
        "  <ir>:2\n"
        "      %y: f64[3] = sin %operant\n"
        "                       ^^^^^^^^\n"
        "  hint: did you mean %operand?"
    )


@pytest.mark.parametrize(
    ("name", "hint"), [("reduce_summ", "reduce_sum"), ("brodcast", "broadcast"), ("concatenated", "concatenate")]
)
def test_an_unknown_op_names_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(f"func @f() -> () {{\n  {name} 1.0\n  return\n}}")
    assert caught.value.hint is not None
    assert caught.value.hint.startswith(f"did you mean {hint}?")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment"])
def test_text_without_a_function(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.message == "there is no function"


@given(
    st.lists(st.sampled_from([*BASE, "%x", "f64[3]", "(1+2j)", "dense(", "\n"]), max_size=12), st.integers(0, len(BASE))
)
@settings(deadline=None, max_examples=150)
def test_damaged_text_is_read_or_refused(inserted: list[str], at: int) -> None:
    try:
        function = parse(BASE[:at] + "".join(inserted) + BASE[at:])
    except ParseError:
        return
    require_round_trip(function)


def test_programs_are_found() -> None:
    assert len(PROGRAMS) > 20


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program(path: Path) -> None:
    """``# roundtrip``: the text is canonical. ``# error: message`` on a line: parser or verifier stops there."""
    text = path.read_text("utf-8")
    headers = [line[2:] for line in text.split("\n") if line.startswith("# ")]
    body = text[text.index("func") :].rstrip("\n") if "func" in text else text
    stage: Any = next((header.removeprefix("stage: ") for header in headers if header.startswith("stage: ")), None)
    expected = [(number, line) for number, line in enumerate(text.split("\n"), 1) if "# error: " in line]
    if "roundtrip" in headers:
        assert show(parse(text)) == body
        verify(parse(text), stage)
        return
    ((number, line),) = expected
    code, _, message = line.partition("# error: ")
    with pytest.raises((ParseError, VerifyError)) as caught:
        verify(parse(text), stage)
    error = caught.value
    assert error.message == message
    if isinstance(error, ParseError):
        assert error.span is not None
        assert error.span.line == number
    else:
        (listing,) = error.context
        lines = listing.split("\n")
        underline = next(index for index, line in enumerate(lines) if line.strip().startswith("^"))
        assert lines[underline - 1].strip() == code.strip()
        assert lines[underline].strip() == "^" + "~" * (len(code.strip()) - 1)
