"""What IR must satisfy beyond its grammar; in tests, what transforms and passes make is checked with it.

Rules of every stage:

- a value is defined once, before its uses, in the region that uses it;
- the op accepts the operands' types and the attributes, and gives the types that are recorded for the results;
- a literal holds what its type says; a size is not negative; a named size has one bound throughout;
- only ops whose class says so take tapes;
- a linear value is an operand only where its operation is linear: at one position if the op is linear in each of them
  separately (``mul``), else together with linear values and literal zeros only (``add %t, 1.0`` is affine);
- an operation's results are linear exactly if an operand is;
- a function with linear parameters has them last, and returns linear values and literal zeros.

`STAGES` adds what holds of a program on its way to a backend. The time is linear in the size of the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from srcgrad.ir import core
from srcgrad.ir.core import Function, Operation, Region, Value, is_splat
from srcgrad.ir.errors import SrcgradError, VerifyError
from srcgrad.ir.text import Names, Printer
from srcgrad.ir.types import ArrayType, Dim, TapeType, dtype_name

__all__ = ["STAGES", "Rules", "Stage", "verify"]

Stage = Literal["traced", "differentiated", "linear", "lowered"]


class Rules(NamedTuple):
    """What a stage allows: a linear program or an ordinary one, and which ops are gone by then."""

    linear: bool = False
    gone: frozenset[str] = frozenset()


STAGES: Final[dict[Stage, Rules]] = {
    "traced": Rules(),
    "differentiated": Rules(),
    "linear": Rules(linear=True),
    # What only steers derivatives means nothing to a backend.
    "lowered": Rules(gone=frozenset({"stop_gradient", "identity", "slope_of_abs", "slope_of_norm", "share_of_tie"})),
}

_CONTEXT: Final = 30
"""How many lines around the bad one an error shows."""

_DIM_NAME: Final = re.compile(r"[^\W\d][\w.]*")


def verify(function: Function, stage: Stage | None = None) -> None:
    """Check the rules of the language, and those of a stage.

    Raises:
        VerifyError: a rule is broken. The error shows the function's text (around the place, if it is long) with the
            bad line underlined.

    >>> from srcgrad.ir.parser import parse
    >>> try:
    ...     verify(parse('''
    ...         func @f(%x: f64[3]) -> (f64[2]) {
    ...           %y: f64[2] = sin %x
    ...           return %y
    ...         }'''))
    ... except VerifyError as error:
    ...     print(error)
    sin gives f64[3], and %y is f64[2]
      func @f(%x: f64[3]) -> (f64[2]) {
        %y: f64[2] = sin %x
        ^~~~~~~~~~~~~~~~~~~
        return %y
      }
    """
    _Verifier(function, stage).run()


class _BrokenRule(Exception):
    """A rule that does not hold, and what to do: its place is known to who catches it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def _regions(function: Function) -> Iterator[Region]:
    """All regions, each once, whatever the depth of their nesting."""
    pending: list[Region] = [function]
    seen: set[int] = set()
    while pending:
        region = pending.pop()
        if id(region) not in seen:  # closed regions may be shared
            seen.add(id(region))
            yield region
            for operation in region.operations:
                pending.extend(operation.regions)


class _Verifier:
    def __init__(self, function: Function, stage: Stage | None) -> None:
        self.function = function
        self.stage = stage
        self.types: set[ArrayType] = set()
        self.dims: dict[str, Dim] = {}
        self.region: Region = function
        self.defined: set[Value] = set()

    def run(self) -> None:
        for region in _regions(self.function):
            self.region, self.defined = region, set()
            position = -1
            try:
                self.header()
                for position, operation in enumerate(region.operations):  # noqa: B007 (the handler reads it)
                    self.operation(operation)
                position = len(region.operations)
                self.results()
            except _BrokenRule as broken:
                raise self.error(broken, position) from broken.__cause__

    def error(self, broken: _BrokenRule, position: int) -> VerifyError:
        """The error: the function's text, with the line of a position in the current region underlined."""
        error = VerifyError(broken.message, span=None, hint=broken.hint)
        printer = Printer()
        try:
            printer.function(self.function)
        except SrcgradError:  # a dtype without a name: there is no text
            return error
        lines, bad = printer.lines, printer.sites[id(self.region), position]
        indentation = len(lines[bad]) - len(lines[bad].lstrip())
        shown: list[str] = []
        previous = -1
        for index in (0, *range(max(bad - _CONTEXT, 1), min(bad + _CONTEXT + 1, len(lines)))):
            if index > previous + 1:
                shown.append("  ...")
            shown.append(lines[index])
            if index == bad:
                shown.append(" " * indentation + "^" + "~" * (len(lines[bad]) - indentation - 1))
            previous = index
        if previous + 1 < len(lines):
            shown.append("  ...")
        return error.add_context("\n  ".join(shown))

    def text(self, value: Value) -> str:
        return Names.of(self.region).operand(value)

    # --- values ------------------------------------------------------------------------------------------------------

    def define(self, value: Value, producer: Operation | None) -> None:
        if value in self.defined:
            raise _BrokenRule(f"{self.text(value)} is defined twice")
        if value.producer is not producer:
            raise _BrokenRule(f"{self.text(value)} names another operation as its producer")
        self.defined.add(value)
        self.type(value.type)

    def uses(self, values: Sequence[Value]) -> None:
        for value in values:
            if isinstance(value, core.Literal):
                self.literal(value)
            elif value not in self.defined:
                self.undefined(value)

    def undefined(self, value: Value) -> None:
        text = self.text(value)
        if any(value in operation.results for operation in self.region.operations):
            raise _BrokenRule(f"{text} is used before its definition")
        for region in _regions(self.function):
            if value in region.params or any(value in operation.results for operation in region.operations):
                raise _BrokenRule(
                    f"{text} is defined in another region", "regions are closed: pass it as an operand and a parameter"
                )
        raise _BrokenRule(f"{text} is not defined in this function")

    def literal(self, value: core.Literal) -> None:
        self.type(value.type)
        array, type = value.value, value.type
        if array.dtype != type.dtype:
            raise _BrokenRule(f"a literal of dtype {array.dtype} has type {type}")
        if not value.splat and (array.shape != type.shape or isinstance(type, TapeType)):
            raise _BrokenRule(f"a literal of shape {array.shape} has type {type}")

    def type(self, type: ArrayType) -> None:
        if type in self.types:
            return
        try:
            dtype_name(type.dtype)
        except SrcgradError as error:
            raise _BrokenRule(error.message, error.hint) from error
        for size in type.shape:
            if isinstance(size, Dim):
                self.dim(size)
            elif not isinstance(size, int | np.integer) or size < 0:
                raise _BrokenRule(f"{size} in {type} is not a size")
        self.types.add(type)

    def dim(self, dim: Dim) -> None:
        known = self.dims.setdefault(dim.name, dim)
        if known != dim:
            raise _BrokenRule(f"the size {dim.name} has two bounds, {known} and {dim}")
        if dim.bound < 0 or not _DIM_NAME.fullmatch(dim.name):
            raise _BrokenRule(
                f"{dim} is not a size", "a named size has a name such as n, and a bound that is not negative"
            )

    def attribute(self, value: Any) -> None:
        pending = [value]
        while pending:
            item = pending.pop()
            if isinstance(item, tuple):
                pending.extend(item)
            elif isinstance(item, Dim):
                self.dim(item)
            elif isinstance(item, ArrayType):
                self.type(item)

    # --- operations, regions, functions ------------------------------------------------------------------------------

    def header(self) -> None:
        params = self.region.params
        for param in params:
            self.define(param, None)
        linear = [param.linear for param in params]
        if self.region is self.function and linear != sorted(linear):
            raise _BrokenRule("the linear parameters of a function come after the others")
        if self.stage is not None and not STAGES[self.stage].linear and any(linear):
            raise _BrokenRule(f"a {self.stage} program has no linear values")

    def operation(self, operation: Operation) -> None:
        self.uses(operation.operands)
        for value in operation.attrs.values():
            self.attribute(value)
        self.result_types(operation)
        linear = self.linear(operation)
        for result in operation.results:
            if result.linear != linear:
                because = "an operand is linear" if linear else "no operand is linear"
                raise _BrokenRule(f"{self.text(result)} is {'not ' if linear else ''}linear, and {because}")
            self.define(result, operation)
        if self.stage is not None:
            rules = STAGES[self.stage]
            if operation.op.name in rules.gone:
                raise _BrokenRule(f"a {self.stage} program has no {operation.op.name}")
            if rules.linear and not linear and self.region is self.function:
                raise _BrokenRule("every operation of a linear program has a linear operand")

    def result_types(self, operation: Operation) -> None:
        op, types = operation.op, [operand.type for operand in operation.operands]
        if not op.tapes and any(isinstance(type, TapeType) for type in types):
            raise _BrokenRule(f"{op.name} takes arrays, not tapes", "read a tape as a column of a for loop")
        try:
            expected = tuple(op.result_types(types, operation.attrs, operation.regions))
            verify_regions = getattr(op, "verify_regions", None)
            if verify_regions is not None:
                verify_regions(operation)
        except SrcgradError as error:
            raise _BrokenRule(error.message, error.hint) from error
        except KeyError as error:
            missing = error.args[0] if error.args else error
            raise _BrokenRule(f"{op.name}: attribute {missing!r} is missing") from error
        except Exception as error:  # a type rule may stumble over what it does not expect in any way
            raise _BrokenRule(f"{op.name} does not take this: {type(error).__name__}: {error}") from error
        if len(expected) != len(operation.results):
            raise _BrokenRule(f"{op.name} gives {len(expected)} results, not {len(operation.results)}")
        for result, given in zip(operation.results, expected, strict=True):
            if result.type != given:
                raise _BrokenRule(f"{op.name} gives {given}, and {self.text(result)} is {result.type}")

    def linear(self, operation: Operation) -> bool:
        """Whether an operand is linear; then all of them must fit."""
        op, operands = operation.op, operation.operands
        used = [position for position, operand in enumerate(operands) if operand.linear]
        if not used:
            return False
        allowed = op.linear_positions(len(operands), operation.attrs)
        for position in used:
            if position not in allowed:
                raise _BrokenRule(f"{op.name} is not linear in its operand {position}, {self.text(operands[position])}")
        if op.separate:
            if len(used) > 1:
                raise _BrokenRule(f"{op.name} is linear in one operand at a time, not in {len(used)} together")
            return True
        for position in allowed:
            operand = operands[position]
            if not operand.linear and not is_splat(operand, 0):
                raise _BrokenRule(
                    f"{op.name} is linear in operands {list(allowed)} together, and {self.text(operand)} is not linear",
                    "only linear values and literal zeros may stand there",
                )
        return True

    def results(self) -> None:
        results = self.region.results
        self.uses(results)
        if self.region is not self.function:
            return
        if any(param.linear for param in self.region.params) or (self.stage is not None and STAGES[self.stage].linear):
            for result in results:
                if not result.linear and not is_splat(result, 0):
                    raise _BrokenRule(f"a linear function returns {self.text(result)}, which is not linear")
