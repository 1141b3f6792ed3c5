"""Reading IR text back. The grammar stands at the top of ``core.py``; ``text.py`` prints it.

The parser checks the grammar and the names; the rest of what IR must satisfy is for `srcgrad.ir.verify.verify` to say,
so that broken IR can be written down. It goes line by line and keeps open blocks on a stack: no nesting is too deep.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

import srcgrad.ir.ops  # noqa: F401  (registers the ops)
from srcgrad.ir.core import Function, Literal, Operation, Region, Value
from srcgrad.ir.errors import ParseError, nearest_hint
from srcgrad.ir.opdef import REGISTRY, Op
from srcgrad.ir.source import Span
from srcgrad.ir.text import NO_SOURCE, region_label
from srcgrad.ir.types import BOOL, DTYPES, FLOAT64, INT64, ArrayType, Dim, DType, Size, TapeType

__all__ = ["parse"]

FILE: Final = "<ir>"

_REAL: Final = r"(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|inf|nan)"
_TOKEN: Final = re.compile(
    rf"""(?P<space>\s+)
    | (?P<comment>\#.*)
    | (?P<complex>\([+-]?{_REAL}[+-]{_REAL}j\))
    | (?P<number>-?{_REAL}(?![\w.]))
    | (?P<value>%[\w.]+)
    | (?P<function>@[\w.]+)
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<word>[^\W\d][\w.]*)
    | (?P<mark>->|<=|[(){{}}\[\],:=!<>])
    | (?P<unknown>.)""",
    re.VERBOSE | re.DOTALL,
)
_COMPLEX: Final = re.compile(rf"\(([+-]?{_REAL})([+-]{_REAL})j\)")
_SOURCE: Final = re.compile(r"#\s*(?P<place>.+?):(?P<line>\d+)(?: \| (?P<text>.*))?")


class _Token(NamedTuple):
    kind: str
    text: str
    column: int


_END: Final = "end of line"


class _Line:
    """The tokens of one line, and the position in them."""

    __slots__ = ("comment", "number", "position", "text", "tokens")

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.text = text
        self.position = 0
        self.comment = ""
        self.tokens: list[_Token] = []
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup or ""
            if kind == "comment":
                self.comment = match.group().rstrip()
            elif kind != "space":
                self.tokens.append(_Token(kind, match.group(), match.start()))
        self.tokens.append(_Token(_END, "", len(text)))

    def error(self, message: str, token: _Token | None = None, hint: str | None = None) -> ParseError:
        """The error at a token, or at the next one; the end of a line is marked at its last token."""
        token = self.tokens[self.position] if token is None else token
        if token.kind == _END and len(self.tokens) > 1:
            token = self.tokens[-2]
        end = token.column + len(token.text)
        return ParseError(message, span=Span.at(FILE, self.number, token.column, end, text=self.text), hint=hint)

    def expected(self, what: str) -> ParseError:
        token = self.tokens[self.position]
        return self.error(f"expected {what}, found {token.text or _END}", token)

    @property
    def empty(self) -> bool:
        return len(self.tokens) == 1

    @property
    def opens_region(self) -> bool:
        tokens = self.tokens
        return len(tokens) > 3 and tokens[0].kind == "word" and tokens[1].text == "(" and tokens[-2].text == "{"

    @property
    def next(self) -> _Token:
        return self.tokens[self.position]

    def at(self, text: str) -> bool:
        """Whether the next token is this mark or word."""
        return self.tokens[self.position].text == text

    def take(self) -> _Token:
        token = self.tokens[self.position]
        if token.kind != _END:
            self.position += 1
        return token

    def accept(self, text: str) -> bool:
        found = self.at(text)
        self.position += found
        return found

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.expected(f"'{text}'")

    def expect_kind(self, kind: str, what: str) -> _Token:
        if self.next.kind != kind:
            raise self.expected(what)
        return self.take()

    def expect_end(self) -> None:
        if self.next.kind != _END:
            raise self.expected(_END)

    def listed(self, element: Callable[[_Line], Any], closing: str) -> list[Any]:
        """Elements separated by commas, up to the closing mark, which is taken."""
        found: list[Any] = []
        while not self.accept(closing):
            if found and not self.accept(","):
                raise self.expected(f"',' or '{closing}'")
            found.append(element(self))
        return found

    def nested(self, atom: Callable[[_Line], Any]) -> tuple[Any, ...]:
        """A bracketed list of atoms and lists, as nested tuples."""
        self.expect("[")
        open_lists: list[list[Any]] = [[]]
        while True:
            innermost = open_lists[-1]
            if self.accept("]"):
                done = tuple(open_lists.pop())
                if not open_lists:
                    return done
                open_lists[-1].append(done)
                continue
            if innermost and not self.accept(","):
                raise self.expected("',' or ']'")
            if self.accept("["):
                open_lists.append([])
            else:
                innermost.append(atom(self))


# --- types, literals, attributes --------------------------------------------------------------------------------------


def _dtype(line: _Line) -> DType:
    token = line.expect_kind("word", "a type")
    if token.text not in DTYPES:
        raise line.error(f"unknown dtype {token.text!r}", token, nearest_hint(token.text, DTYPES))
    return DTYPES[token.text]


def _size(line: _Line) -> Size:
    token = line.take()
    if token.kind == "word":
        line.expect("<=")
        return Dim(token.text, _integer(line))
    if not token.text.isdecimal():
        raise line.error("expected a size: an int, or a name and its bound as in n<=10", token)
    return int(token.text)


def _integer(line: _Line) -> int:
    token = line.expect_kind("number", "an int")
    if not token.text.isdecimal():
        raise line.error("expected an int", token)
    return int(token.text)


def _type(line: _Line) -> ArrayType:
    if line.at("tape"):
        line.take()
        line.expect("<")
        element = _type(line)
        line.expect(">")
        return TapeType(element)
    dtype = _dtype(line)
    line.expect("[")
    return ArrayType(dtype, line.listed(_size, "]"))


def _is_int(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _number_token(line: _Line) -> _Token:
    if line.next.kind in ("number", "complex") or line.next.text in ("true", "false"):
        return line.take()
    raise line.expected("a number")


def _implied_dtype(token: _Token) -> DType:
    if token.kind == "word":
        return BOOL
    if token.kind == "complex":
        return DTYPES["c128"]
    return INT64 if _is_int(token.text) else FLOAT64


def _scalar(line: _Line, token: _Token, dtype: DType) -> Any:
    """The number of a token in a dtype; it must be of a kind that the dtype holds."""
    kind, text = dtype.kind, token.text
    allowed = {"b": ("word",), "c": ("number", "complex")}.get(kind, ("number",))
    if token.kind not in allowed or (kind in "iu" and not _is_int(text)):
        raise line.error(f"{text} is not a number of dtype {dtype.name}", token)
    if kind == "b":
        return np.bool_(text == "true")
    try:
        with np.errstate(over="ignore"):
            number = _convert(text, token.kind, dtype)
    except OverflowError:
        raise line.error(f"{text} does not fit in dtype {dtype.name}", token) from None
    if np.isinf(number) and "inf" not in text:
        raise line.error(f"{text} does not fit in dtype {dtype.name}", token)
    return number


def _convert(text: str, token_kind: str, dtype: DType) -> Any:
    if dtype.kind in "iu":
        return np.array(int(text), dtype)[()]
    if dtype.kind == "f":
        return _real(text, dtype)
    part = np.empty(0, dtype).real.dtype
    number = np.zeros((), dtype)
    match = _COMPLEX.fullmatch(text)
    if token_kind == "complex" and match is not None:
        number.real, number.imag = _real(match[1], part), _real(match[2], part)
    else:
        number.real = _real(text, part)
    return number[()]


def _real(text: str, dtype: DType) -> Any:
    if dtype.itemsize <= 8:
        return dtype.type(float(text))
    with warnings.catch_warnings():  # NumPy warns of an overflow for subnormal numbers too
        warnings.simplefilter("ignore", RuntimeWarning)
        return dtype.type(text)


def _literal(line: _Line) -> Literal:
    if line.at("dense"):
        return _dense(line)
    token = _number_token(line)
    type = _type(line) if line.accept(":") else ArrayType(_implied_dtype(token))
    return Literal(_scalar(line, token, type.dtype), type)


def _dense(line: _Line) -> Literal:
    start = line.take()
    line.expect("(")
    nested = line.nested(_number_token)
    line.expect(")")
    line.expect(":")
    type = _type(line)
    level: list[Any] = [nested]
    for size in type.shape:
        if any(not _is_list(item) or len(item) != size for item in level):
            raise line.error(f"the lists do not have the shape of {type}", start)
        level = [item for items in level for item in items]
    if not type.shape or any(map(_is_list, level)):
        raise line.error(f"the lists do not have the shape of {type}", start)
    array = np.empty(len(level), type.dtype)
    for index, token in enumerate(level):
        array[index] = _scalar(line, token, type.dtype)
    array = array.reshape(type.static_shape)
    array.flags.writeable = False
    return Literal(array, type)


def _is_list(item: Any) -> bool:
    return not isinstance(item, _Token)


def _attr(line: _Line) -> Any:
    return line.nested(_attr_atom) if line.at("[") else _attr_atom(line)


def _attr_atom(line: _Line) -> Any:
    token = line.next
    if token.kind == "number" or token.kind == "complex" or token.text in ("true", "false"):
        line.take()
        return _scalar(line, token, FLOAT64).item() if _is_real(token) else _exact(line, token)
    if token.kind == "string":
        return _string(line, line.take())
    if token.text == "!":
        raise line.error("an attribute that exists only in memory cannot be read", token)
    if token.kind != "word":
        raise line.expected("an attribute's value")
    following = line.tokens[line.position + 1].text
    if following == "<=":
        return _size(line)
    if following in ("[", "<"):
        return _type(line)
    if line.accept("none"):
        return None
    return _dtype(line)


def _is_real(token: _Token) -> bool:
    return token.kind == "number" and not _is_int(token.text)


def _exact(line: _Line, token: _Token) -> Any:
    """Python ints have no bound; bools and complex numbers are as in literals."""
    return int(token.text) if token.kind == "number" else _scalar(line, token, _implied_dtype(token)).item()


def _string(line: _Line, token: _Token) -> str:
    try:
        text: str = json.loads(token.text, strict=False)
    except json.JSONDecodeError:
        raise line.error("the string has an escape that JSON does not", token) from None
    return text


# --- blocks -----------------------------------------------------------------------------------------------------------


class _Pending(NamedTuple):
    """An operation that may still get regions."""

    op: Op
    operands: tuple[Value, ...]
    attrs: dict[str, Any]
    results: list[tuple[_Token, ArrayType, bool]]
    span: Span | None
    regions: list[Region]
    line: _Line


class _Block:
    """A block being read. ``name`` and ``types`` are the function's; a region has neither."""

    __slots__ = ("header", "name", "operations", "params", "pending", "results", "scope", "span", "types")

    def __init__(self, header: _Line, span: Span | None) -> None:
        self.header = header
        self.span = span
        self.name: str | None = None
        self.types: list[ArrayType] = []
        self.params: list[Value] = []
        self.operations: list[Operation] = []
        self.results: list[Value] | None = None
        self.scope: dict[str, Value] = {}
        self.pending: _Pending | None = None

    @property
    def terminator(self) -> str:
        return "yield" if self.name is None else "return"

    def define(self, line: _Line, token: _Token, value: Value, linear: bool) -> None:
        name = token.text[1:]
        if name in self.scope:
            raise line.error(f"{token.text} is defined twice", token)
        value.name = None if name.isdecimal() else name
        value.linear = linear
        self.scope[name] = value

    def flush(self) -> None:
        """Make the pending operation: no region of it follows."""
        pending, self.pending = self.pending, None
        if pending is None:
            return
        types = [type for _, type, _ in pending.results]
        operation = Operation(pending.op, pending.operands, pending.attrs, tuple(pending.regions), types, pending.span)
        self.operations.append(operation)
        for result, (token, _, linear) in zip(operation.results, pending.results, strict=True):
            self.define(pending.line, token, result, linear)


class _Parser:
    def __init__(self) -> None:
        self.blocks: list[_Block] = []
        self.function: Function | None = None
        self.places: dict[tuple[str, int], Span] = {}

    def read(self, text: str) -> Function:
        for number, content in enumerate(text.split("\n"), 1):
            line = _Line(number, content.rstrip())
            if line.empty:
                self.comment(line.comment)
            else:
                self.statement(line)
        if self.blocks:
            raise self.blocks[-1].header.error("this block is not closed", hint="a line with } closes it")
        if self.function is None:
            raise line.error("there is no function", hint="it starts with: func @name(...) -> (...) {")
        return self.function

    def comment(self, text: str) -> None:
        """A source comment is the span of what follows in its block."""
        if not self.blocks or not text:
            return
        match = _SOURCE.fullmatch(text)
        if match is not None:
            self.blocks[-1].span = self.span(match["place"], int(match["line"]), match["text"])
        elif text[1:].strip() == NO_SOURCE:
            self.blocks[-1].span = None

    def span(self, place: str, line: int, text: str | None) -> Span:
        if text is not None:
            found = self.places[place, line] = Span.at(place, line, text=text)
            return found
        *roles, file = place.split(" of ")
        span = self.places.get((file, line)) or Span.at(file, line)
        for role in reversed(roles):
            span = span.derive(role)
        return span

    def statement(self, line: _Line) -> None:
        if not self.blocks:
            self.open_function(line)
            return
        block = self.blocks[-1]
        if line.at("}"):
            self.close(line, block)
        elif block.results is not None:
            raise line.error(f"nothing may follow the {block.terminator}: expected }}")
        elif line.opens_region:
            self.open_region(line, block)
        else:
            block.flush()
            if line.at("return") or line.at("yield"):
                self.terminate(line, block)
            else:
                self.operation(line, block)

    def open_function(self, line: _Line) -> None:
        if self.function is not None:
            raise line.error("expected one function, and this follows it")
        line.expect("func")
        block = _Block(line, None)
        block.name = line.expect_kind("function", "a function's name, as in @f").text[1:]
        self.params(line, block)
        line.expect("->")
        line.expect("(")
        block.types = line.listed(_type, ")")
        line.expect("{")
        line.expect_end()
        self.blocks.append(block)

    def open_region(self, line: _Line, block: _Block) -> None:
        pending = block.pending
        label = line.take()
        if pending is None:
            raise line.error("a region must follow its operation", label)
        expected = region_label(pending.op, len(pending.regions))
        if label.text != expected:
            raise line.error(f"the next region of {pending.op.name} is {expected!r}, not {label.text!r}", label)
        region = _Block(line, pending.span)
        self.params(line, region)
        line.expect("{")
        line.expect_end()
        self.blocks.append(region)

    def params(self, line: _Line, block: _Block) -> None:
        line.expect("(")
        for token, type, linear in line.listed(_binder, ")"):
            param = Value(type)
            block.define(line, token, param, linear)
            block.params.append(param)

    def close(self, line: _Line, block: _Block) -> None:
        if block.results is None:
            raise line.error(f"the block has no {block.terminator}")
        line.take()
        line.expect_end()
        self.blocks.pop()
        if block.name is not None:
            self.function = Function(block.name, block.params, block.operations, block.results)
        else:
            pending = self.blocks[-1].pending
            if pending is not None:
                pending.regions.append(Region(block.params, block.operations, block.results))

    def terminate(self, line: _Line, block: _Block) -> None:
        word = line.take()
        if word.text != block.terminator:
            raise line.error(f"this block ends with {block.terminator}, not {word.text}", word)
        tokens, results = self.operands(line)
        line.expect_end()
        block.results = results
        if block.name is None:
            return
        if len(results) != len(block.types):
            raise line.error(f"{len(results)} results, where the function declares {len(block.types)}", word)
        for token, result, declared in zip(tokens, results, block.types, strict=True):
            if result.type != declared:
                raise line.error(f"{token.text} is {result.type}, where the function declares {declared}", token)

    def operation(self, line: _Line, block: _Block) -> None:
        results: list[tuple[_Token, ArrayType, bool]] = []
        if line.next.kind == "value":
            results = line.listed(_binder, "=")
        name = line.expect_kind("word", "an op's name")
        op = REGISTRY.get(name.text)
        if op is None:
            raise line.error(f"unknown op {name.text!r}", name, nearest_hint(name.text, REGISTRY))
        _, operands = self.operands(line)
        attrs = _attrs(line)
        line.expect_end()
        block.pending = _Pending(op, tuple(operands), attrs, results, block.span, [], line)

    def operands(self, line: _Line) -> tuple[list[_Token], list[Value]]:
        """The operands and their first tokens."""
        tokens: list[_Token] = []
        found: list[Value] = []
        while line.next.kind != _END and not line.at("{"):
            if found:
                line.expect(",")
            tokens.append(line.next)
            found.append(self.operand(line))
        return tokens, found

    def operand(self, line: _Line) -> Value:
        if line.next.kind != "value":
            if line.next.kind not in ("number", "complex", "word"):
                raise line.expected("a value or a literal")
            return _literal(line)
        token = line.take()
        value = self.blocks[-1].scope.get(token.text[1:])
        if value is not None:
            return value
        if any(token.text[1:] in block.scope for block in self.blocks):
            raise line.error(
                f"{token.text} is defined outside this region",
                token,
                hint="regions are closed: pass it as an operand and a parameter",
            )
        names = [f"%{name}" for name in self.blocks[-1].scope]
        raise line.error(f"{token.text} is not defined above", token, nearest_hint(token.text, names))


def _binder(line: _Line) -> tuple[_Token, ArrayType, bool]:
    token = line.expect_kind("value", "a value, as in %x: f64[3]")
    line.expect(":")
    linear = line.accept("lin")
    return token, _type(line), linear


def _attrs(line: _Line) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if not line.accept("{"):
        return found
    while not line.accept("}"):
        if found:
            line.expect(",")
        name = line.expect_kind("word", "an attribute's name")
        if name.text in found:
            raise line.error(f"attribute {name.text!r} is given twice", name)
        line.expect("=")
        found[name.text] = _attr(line)
    return found


def parse(text: str) -> Function:
    """The function that IR text describes, as `srcgrad.ir.text.show` prints it.

    Raises:
        ParseError: the text does not follow the grammar of ``srcgrad.ir.core``, names an unknown op, or uses a value
            that is not defined above in the same block. The error shows the line with a caret under the token.

    >>> function = parse('''
    ... func @f(%x: f64[3]) -> (f64[]) {
    ...   %y: f64[3] = mul %x, 2.0:f64[3]
    ...   %s: f64[] = reduce_sum %y {axes=[0]}
    ...   return %s
    ... }''')
    >>> function.operations[1].attrs
    {'axes': (0,)}
    """
    return _Parser().read(text)
