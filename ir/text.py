"""The printed form of IR. The grammar stands at the top of ``core.py``; ``parser.py`` reads the text back.

Names are cosmetic: `Names` makes them unique within a region, and numbers what has none. A comment with the user's line
stands once above a run of operations that come from it, and holds until the next one in the same block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Function, Literal, Operation, Region, Value
from srcgrad.ir.errors import DTypeError
from srcgrad.ir.opdef import Op
from srcgrad.ir.source import Span
from srcgrad.ir.types import BOOL, FLOAT64, INT64, ArrayType, Dim, DType, TapeType, dtype_name

__all__ = [
    "NO_SOURCE",
    "Names",
    "Printer",
    "attr_text",
    "clean_name",
    "literal_text",
    "region_label",
    "show",
    "show_operation",
]

NO_SOURCE: Final = "(no source)"
"""The comment above operations without a span that follow some with one."""

_INDENT: Final = "  "
_NOT_IN_NAMES: Final = re.compile(r"[^\w.]")
_IMPLIED: Final = frozenset((BOOL, INT64, FLOAT64, np.dtype(np.complex128)))


# --- names ------------------------------------------------------------------------------------------------------------


def clean_name(name: str) -> str:
    """A name as it can stand in text: letters, digits, ``_`` and ``.``, and not a number alone.

    >>> clean_name("<lambda>"), clean_name("7")
    ('_lambda_', '_7')
    """
    cleaned = _NOT_IN_NAMES.sub("_", name)
    return f"_{cleaned}" if not cleaned or cleaned.isdecimal() else cleaned


class Names:
    """The printed names of what a region defines, unique in it: ``x``, ``x.1``, and numbers for the unnamed."""

    __slots__ = ("_counts", "_names", "_unnamed", "_used")

    def __init__(self, values: Iterable[Value] = ()) -> None:
        self._names: dict[Value, str] = {}
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}
        self._unnamed = 0
        for value in values:
            self.add(value)

    @classmethod
    def of(cls, region: Region) -> Names:
        names = cls(region.params)
        for operation in region.operations:
            for result in operation.results:
                names.add(result)
        return names

    def add(self, value: Value) -> None:
        if value in self._names:
            return
        if not value.name:
            self._names[value] = str(self._unnamed)
            self._unnamed += 1
            return
        base = name = clean_name(value.name)
        while name in self._used:
            self._counts[base] = self._counts.get(base, 0) + 1
            name = f"{base}.{self._counts[base]}"
        self._used.add(name)
        self._names[value] = name

    def __getitem__(self, value: Value) -> str:
        """The name; what the region does not define (the verifier refuses it) keeps its own, with a ``?``."""
        found = self._names.get(value)
        return found if found is not None else f"?{clean_name(value.name) if value.name else ''}"

    def operand(self, value: Value) -> str:
        return literal_text(value) if isinstance(value, Literal) else f"%{self[value]}"

    def definition(self, value: Value) -> str:
        return f"%{self[value]}: {'lin ' if value.linear else ''}{value.type}"


# --- literals ---------------------------------------------------------------------------------------------------------


def literal_text(literal: Literal) -> str:
    """The literal; its bits are read back exactly, the payload and sign of a nan excepted.

    >>> literal_text(Literal(np.float32(0.1), ArrayType(np.dtype(np.float32), (3,))))
    '0.1:f32[3]'
    """
    value, type = literal.value, literal.type
    if not literal.splat:
        return f"dense({_dense_text(np.asarray(value))}):{type}"
    text = _formatter(value.dtype)(np.asarray(value)[()])
    implied = not type.shape and type.dtype in _IMPLIED and not isinstance(type, TapeType)
    return text if implied else f"{text}:{type}"


def _dense_text(array: np.ndarray[Any, Any]) -> str:
    texts = list(map(_formatter(array.dtype), array.reshape(-1)))
    groups = array.size
    for axis in reversed(range(array.ndim)):
        size, groups = array.shape[axis], int(np.prod(array.shape[:axis], dtype=np.int64))
        texts = [f"[{', '.join(texts[group * size : (group + 1) * size])}]" for group in range(groups)]
    return texts[0]


def _formatter(dtype: DType) -> Callable[[Any], str]:
    if dtype.kind == "b":
        return _bool_text
    if dtype.kind in "iu":
        return _int_text
    return _complex_text if dtype.kind == "c" else _real_text


def _bool_text(number: Any) -> str:
    return "true" if number else "false"


def _int_text(number: Any) -> str:
    return str(int(number))


def _real_text(number: Any) -> str:
    """The fewest digits that give the number back."""
    if isinstance(number, float):  # float64 too
        return float.__repr__(number)
    if not np.isfinite(number):
        return str(float(number))
    magnitude = abs(float(number))
    if number == 0 or 1e-4 <= magnitude < 1e16:
        text = np.format_float_positional(number, unique=True, trim="0")
    else:
        text = np.format_float_scientific(number, unique=True, trim="0")
    if number.dtype.itemsize < 8:
        # Reading goes through float64; where its rounding would change the digits' meaning, they are float64's.
        with np.errstate(over="ignore"):
            if number.dtype.type(float(text)) != number:
                return repr(float(number))
    return text


def _complex_text(number: Any) -> str:
    real, imag = (_real_text(part).removesuffix(".0") for part in (number.real, number.imag))
    return f"({real}{'' if imag.startswith('-') else '+'}{imag}j)"


# --- attributes -------------------------------------------------------------------------------------------------------


def attr_text(value: Any) -> str:
    """An attribute's value. What exists only in memory (a callable) is named after ``!``, which the parser refuses.

    >>> attr_text((1, 2.0, None, True, "a", (FLOAT64, Dim("n", 10))))
    '[1,2.0,none,true,"a",[f64,n<=10]]'
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return "none"
    if isinstance(value, bool):
        return _bool_text(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, complex):
        return _complex_text(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        return f"[{','.join(map(attr_text, value))}]"
    if isinstance(value, ArrayType | Dim):
        return repr(value)
    if isinstance(value, np.dtype):
        try:
            return dtype_name(value)
        except DTypeError:
            return f"!{json.dumps(str(value))}"
    return f"!{json.dumps(getattr(value, '__qualname__', type(value).__qualname__))}"


def region_label(op: Op, index: int) -> str:
    """What stands before region ``index``: an op may give words for it in ``region_labels``."""
    labels: Sequence[str] = getattr(op, "region_labels", ())
    return labels[index] if index < len(labels) else f"region{index}"


# --- operations, regions, functions -----------------------------------------------------------------------------------


def _head(operation: Operation, names: Names) -> str:
    """One line: results, op, operands, attributes."""
    text = operation.op.name
    if operation.results:
        text = f"{', '.join(map(names.definition, operation.results))} = {text}"
    if operation.operands:
        text = f"{text} {', '.join(map(names.operand, operation.operands))}"
    if operation.attrs:
        text = f"{text} {{{', '.join(f'{name}={attr_text(value)}' for name, value in operation.attrs.items())}}}"
    return text


def _listed(word: str, names: Names, values: Sequence[Value]) -> str:
    return f"{word} {', '.join(map(names.operand, values))}" if values else word


class _Block:
    """A region being printed: how far, and the source comment that holds."""

    __slots__ = ("described", "names", "pending", "position", "region")

    def __init__(self, region: Region, described: str) -> None:
        self.region = region
        self.names = Names.of(region)
        self.described = described
        self.position = 0
        self.pending: list[tuple[str, Region]] = []


class Printer:
    """Prints into ``lines``, and remembers where: ``sites[id(region), position]`` is the index of a line.

    The position is that of an operation in the region; -1 for the region's header, the operations' count for its end.
    Nested regions stand on a stack of blocks, so that no nesting is too deep.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.sites: dict[tuple[int, int], int] = {}
        self._blocks: list[_Block] = []
        self._margin = -1
        self._descriptions: dict[Span | None, str] = {None: NO_SOURCE}

    def function(self, function: Function) -> None:
        block = _Block(function, NO_SOURCE)
        params = ", ".join(map(block.names.definition, function.params))
        types = ", ".join(map(str, function.result_types))
        self._open(block, f"func @{clean_name(function.name)}({params}) -> ({types}) {{", 0)
        self._run("return")

    def operation(self, operation: Operation, names: Names) -> None:
        """One operation with its regions, without a source comment."""
        self._margin = 0
        self._write(_head(operation, names), 0)
        for index, region in enumerate(operation.regions):
            self._open_region(region_label(operation.op, index), region, self._describe(operation.span))
            self._run("yield")

    def _run(self, outermost: str) -> None:
        blocks = self._blocks
        while blocks:
            block = blocks[-1]
            if block.pending:
                self._open_region(*block.pending.pop(), block.described)
            elif block.position < len(block.region.operations):
                self._next_operation(block)
            else:
                depth = self._depth()
                word = outermost if len(blocks) == 1 else "yield"
                self.sites.setdefault((id(block.region), block.position), len(self.lines))
                self._write(_listed(word, block.names, block.region.results), depth)
                self._write("}", depth - 1)
                blocks.pop()

    def _next_operation(self, block: _Block) -> None:
        operation, depth = block.region.operations[block.position], self._depth()
        described = self._describe(operation.span)
        if described != block.described:
            self._write(f"# {described}", depth)
            block.described = described
        self.sites.setdefault((id(block.region), block.position), len(self.lines))
        self._write(_head(operation, block.names), depth)
        block.position += 1
        labelled = [(region_label(operation.op, index), region) for index, region in enumerate(operation.regions)]
        block.pending = labelled[::-1]

    def _open_region(self, label: str, region: Region, described: str) -> None:
        block = _Block(region, described)
        self._open(block, f"{label} ({', '.join(map(block.names.definition, region.params))}) {{", self._depth() + 1)

    def _open(self, block: _Block, header: str, depth: int) -> None:
        self.sites.setdefault((id(block.region), -1), len(self.lines))
        self._write(header, depth)
        self._blocks.append(block)

    def _depth(self) -> int:
        """The indentation of the innermost block: a region stands two levels inside the block of its operation."""
        return 2 * len(self._blocks) + self._margin

    def _write(self, text: str, depth: int) -> None:
        self.lines.append(_INDENT * depth + text)

    def _describe(self, span: Span | None) -> str:
        found = self._descriptions.get(span)
        if found is None and span is not None:
            found = self._descriptions[span] = " ".join(span.describe().splitlines())
        return found or NO_SOURCE


def show(function: Function) -> str:
    """The text of a function, which `srcgrad.ir.parser.parse` reads back.

    >>> from srcgrad.ir.core import Builder
    >>> from srcgrad.ir.ops import elementary
    >>> from srcgrad.ir.opdef import REGISTRY
    >>> builder = Builder()
    >>> x = builder.param(ArrayType(FLOAT64, (3,)), "x")
    >>> print(show(builder.function("f", [builder.emit(REGISTRY["sin"], [x])])))
    func @f(%x: f64[3]) -> (f64[3]) {
      %0: f64[3] = sin %x
      return %0
    }
    """
    printer = Printer()
    printer.function(function)
    return "\n".join(printer.lines)


def show_operation(operation: Operation, names: Names | None = None) -> str:
    """The text of one operation and its regions; without ``names``, unnamed values are numbered from its operands."""
    if names is None:
        names = Names(value for value in operation.operands if not isinstance(value, Literal))
        for result in operation.results:
            names.add(result)
    printer = Printer()
    printer.operation(operation, names)
    return "\n".join(printer.lines)
