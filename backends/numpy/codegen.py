"""Python source of a function: one line per operation, in the user's names, under the lines that they come from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from srcgrad.backends.numpy.chunks import Chunks, flatten
from srcgrad.backends.numpy.control import write_control
from srcgrad.backends.numpy.expressions import HELPERS, Meaning, namespace
from srcgrad.backends.numpy.literals import Names, full_text, native, typed_text, weak_text
from srcgrad.backends.numpy.reuse import FREED, Buffers, Flat, bytes_of, foldable_broadcasts, sunk
from srcgrad.backends.numpy.subscripts import as_subscripts
from srcgrad.ir.core import Function, Literal, Operation, Region, Value
from srcgrad.ir.errors import UnsupportedError
from srcgrad.ir.opdef import Elementwise
from srcgrad.ir.ops.shapes import aligned
from srcgrad.ir.source import Span
from srcgrad.ir.types import TapeType

_INDENT: Final = "    "
_NESTED_DEPTH: Final = 3
_NESTED_LENGTH: Final = 80
"""How deep and how long an expression may grow from values that are used once."""
_SIGNATURE_LIMIT: Final = 12


@dataclass(frozen=True, slots=True)
class Program:
    """Generated source: ``text`` defines ``name`` in a namespace that holds ``constants``, helpers and libraries."""

    name: str
    text: str
    constants: dict[str, np.ndarray[Any, Any]]
    helpers: tuple[str, ...]
    scipy: tuple[str, ...]

    def namespace(self) -> dict[str, Any]:
        """The globals of the text."""
        names = namespace(self.scipy, self.helpers)
        names.update(self.constants)
        return names


class _ControlMeaning(Meaning):
    """The meaning of control flow, which is lines and not a text."""

    __slots__ = ()

    def __init__(self) -> None:
        self.text, self.into, self.helpers, self.scipy = "", None, (), []
        self.fresh = self.read_only = self.scalars = self.updates = self.weak = False


CONTROL_MEANING: Final = _ControlMeaning()
CONTROL: Final = frozenset({"cond", "for", "while"})
VIEWS: Final = frozenset({"reshape", "reverse", "slice", "transpose"})
"""Ops whose texts are subscripts, attributes or calls, and which cannot raise."""


def generate(function: Function, names: Names | None = None, *, bare: bool = False) -> Program:
    """The program of a function; it takes the parameters' arrays and returns a tuple.

    ``bare``: one result is returned without a tuple around it, and floating-point warnings are off in it: the form for
    people. ``names`` are those of the module that the program is for.

    Raises:
        UnsupportedError: an op that the NumPy backend cannot run.
    """
    return _Writer(function, Names(HELPERS) if names is None else names, bare).program()


_meanings: Final[dict[Any, Meaning]] = {}
_CACHED_MEANINGS: Final = 4096


def meaning_of(operation: Operation) -> Meaning:
    """The meaning of an application, made once for each op, attributes and types.

    Raises:
        UnsupportedError: an op that the NumPy backend cannot run.
    """
    op, operands, attrs = operation.op, operation.operands, operation.attrs
    if operation.regions:
        if op.name in CONTROL:
            return CONTROL_MEANING
        raise UnsupportedError(f"the NumPy backend cannot run op {op.name!r}", span=operation.span)
    # One operand and one result in most programs: the tuples of types are made for the others.
    key: Any
    if len(operands) == 1 and not attrs and len(operation.results) == 1:
        key = (op, operands[0].type, operation.results[0].type)
    else:
        key = (
            op,
            tuple([value.type for value in operands]),
            tuple([value.type for value in operation.results]),
            tuple(attrs.items()),
        )
    found = _meanings.get(key)
    if found is None:
        if len(_meanings) >= _CACHED_MEANINGS:
            _meanings.clear()
        found = _meanings[key] = Meaning(operation)
    return found


@lru_cache(maxsize=4096)
def only_arguments(template: str) -> bool:
    """Whether every operand of a template stands between commas or brackets, so that it needs none of its own."""
    return re.search(r"(?<![(\[])(?<!, )\{\d+\}|\{\d+\}(?![,)\]])", template) is None


class Shared:
    """What the blocks of one function share: names, constants, flat regions, and the meanings of all operations."""

    def __init__(self, function: Function, module_names: Names) -> None:
        self.module_names = module_names
        self.name = module_names.named(function.name)
        self.flats: dict[int, Flat] = {}
        self.meanings: dict[Meaning, None] = {}
        self.fills_tapes = False
        operations, results = as_subscripts(*flatten(function))
        operations = sunk(function.params, operations)
        self.function = Flat(function.params, operations, results, self.meanings_of(operations, results))
        found = [name for meaning in self.meanings for name in meaning.helpers]
        found += ["filled_tape"] if self.fills_tapes else []
        found += ["copied_tape"] if any(isinstance(value.type, TapeType) for value in results) else []
        self.helpers = tuple(dict.fromkeys(found))
        self.names = Names([self.name, *self.helpers])
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.literals: dict[Value, str] = {}
        self.labels: dict[Span, str] = {}

    def meanings_of(self, operations: Sequence[Operation], results: Sequence[Value]) -> list[Meaning]:
        """The meanings of a straight list of operations; those in regions are found too."""
        found = [meaning_of(operation) for operation in operations]
        self.meanings.update(dict.fromkeys(found))
        for operation in operations:
            for region in operation.regions:
                self.flatten(region)
            if operation.regions:
                lifted = bool(operation.attrs.get("lifted", False))
                self.fills_tapes = self.fills_tapes or lifted or any(map(is_filled_tape, operation.operands))
        self.fills_tapes = self.fills_tapes or any(map(is_filled_tape, results))
        return found

    def flatten(self, region: Region) -> Flat:
        known = self.flats.get(id(region))
        if known is None:
            operations, results = as_subscripts(*flatten(region))
            known = Flat(region.params, operations, results, self.meanings_of(operations, results))
            self.flats[id(region)] = known
        return known


def is_filled_tape(value: Value) -> bool:
    return isinstance(value, Literal) and isinstance(value.type, TapeType)


class Block:
    """The state of writing one straight list of operations."""

    def __init__(self, shared: Shared, flat: Flat, buffers: Buffers, indent: str) -> None:
        self.shared = shared
        self.params, self.operations, self.results, self.meaning_of = flat
        self.buffers = buffers
        self.indent = indent
        self.atoms: dict[Value, str] = {}
        self.folded = foldable_broadcasts(self.operations, self.results)
        self.consumers = {} if buffers.any_large else self.only_consumers()
        self.depth: dict[Value, int] = {}
        self.bare_text: dict[Value, str] = {}
        """Nested expressions without parentheses, as arguments of calls are written."""
        self.held: dict[Value, list[str]] = {}
        """For each large root, the names bound to its buffer."""
        self.gone: set[str] = set()
        self.lines: list[str] = []
        self.label = ""
        self.in_region = True
        self._used: set[Value] | None = None

    def inner(self, flat: Flat, buffers: Buffers) -> Block:
        """The block of a region."""
        block = Block(self.shared, flat, buffers, self.indent + _INDENT)
        block.label = self.label
        return block

    def used(self) -> set[Value]:
        """The values that an operation or the caller reads."""
        if self._used is None:
            self._used = {value for operation in self.operations for value in operation.operands}
            self._used.update(self.results)
        return self._used

    def only_consumers(self) -> dict[Value, int]:
        """For each value that one operation uses once, and nothing else uses, that operation's index."""
        found: dict[Value, int] = {}
        repeated = set(self.results)
        for index, operation in enumerate(self.operations):
            for value in operation.operands:
                if type(value) is not Value:  # a literal has no line to save
                    continue
                if value in found:
                    repeated.add(value)
                found[value] = index
        return {value: index for value, index in found.items() if value not in repeated}

    def nests(self, operation: Operation, text: str, stop: int) -> bool:
        """Whether an operation's text is written into the expression that uses its value, instead of a line of its own.

        Only elementwise operations and views, which cannot raise, move so, within their source line and where no buffer
        is reused.
        """
        result = operation.results[0]
        index = self.consumers.get(result, stop)
        if index >= stop or result.name is not None or len(text) > _NESTED_LENGTH:
            return False
        consumer = self.operations[index]
        while consumer.results and consumer.results[0] in self.folded:  # which has no text of its own
            result = consumer.results[0]
            index = self.consumers.get(result, stop)
            if index >= stop:
                return False
            consumer = self.operations[index]
        views = operation.op.name in VIEWS
        if not views and not isinstance(operation.op, Elementwise):
            return False
        if consumer.span is not operation.span and self.label_of(consumer.span) != self.label_of(operation.span):
            return False
        position = consumer.operands.index(result)
        depth = (not views) + max([self.depth.get(value, 0) for value in operation.operands])
        if depth > _NESTED_DEPTH or consumer.op.effect:
            return False
        if self.meaning_of[index].text.count(f"{{{position}}}") != 1:
            return False
        self.depth[operation.results[0]] = depth
        return True

    def body(self, start: int, stop: int) -> None:
        lines, last = self.lines, None
        for index in range(start, stop):
            operation = self.operations[index]
            span = operation.span
            if span is not last and span is not None:
                last = span
                self.comment(span)
            text = self.line(index, operation, stop)
            if text is not None:
                lines.append(text)

    def comment(self, span: Span) -> None:
        """The user's line, where it is another than that of the operation before."""
        label = self.label_of(span)
        if label != self.label:
            self.label = label
            self.lines.append(self.indent + label)

    def label_of(self, span: Span | None) -> str:
        if span is None:
            return ""
        labels = self.shared.labels
        label = labels.get(span)
        if label is None:
            place = span.origin.describe()
            label = labels[span] = f"# {span.role} of {place}" if span.role else f"# {place}"
        return label

    # --- operations ------------------------------------------------------------------------------
    def line(self, index: int, operation: Operation, stop: int) -> str | None:
        """The line of an operation; None for what is written where it is used."""
        meaning, results = self.meaning_of[index], operation.results
        if operation.regions:
            return self.control(index, operation)
        if results and results[0] in self.folded:
            self.fold(operation)
            return None
        operands = self.operands(operation, meaning)
        template, out, dead = meaning.text, "", []
        if self.buffers.any_large:
            dead = self.buffers.dead(operation, index)
            out = self.take_over(operation, meaning, dead)
        if out or (meaning.updates and isinstance(operation.operands[0], Literal) and operation.operands[0].splat):
            template = meaning.into or template
        text = template.format(*operands, out=out)
        if self.consumers and len(results) == 1 and self.nests(operation, text, stop):
            self.bare_text[results[0]] = text
            atom = template.startswith("np.") or operation.op.name in VIEWS
            self.atoms[results[0]] = text if atom else f"({text})"
            return None
        if results:
            text = f"{', '.join([self.bind(result) for result in results])} = {text}"
        freed = self.freed(dead) if dead and index < len(self.operations) - 1 else ""
        return f"{self.indent}{text}{freed}"

    def control(self, index: int, operation: Operation) -> str:
        """The lines of an operation with regions."""
        lines = write_control(self, operation)
        dead = self.buffers.dead(operation, index) if self.buffers.any_large else []
        freed = self.freed(dead) if dead and index < len(self.operations) - 1 else ""
        self.label = "" if lines else self.label
        return "\n".join(lines) + freed

    def fold(self, operation: Operation) -> None:
        source, result = operation.operands[0], operation.results[0]
        self.depth[result] = self.depth.get(source, 0)
        self.atoms[result] = aligned(self.atoms[source], source.type, result.type.rank, operation.attrs["dims"])

    def take_over(self, operation: Operation, meaning: Meaning, dead: Sequence[Value]) -> str:
        """The name of the dead buffer that the result is written into, which then is the result's; empty if none is."""
        if meaning.into is None or not dead:
            return ""
        target = self.buffers.target(operation, dead)
        if target is None or (meaning.updates and target is not operation.operands[0]):
            return ""
        self.held[operation.results[0]] = self.held.pop(target)
        return self.atoms[target]

    def operands(self, operation: Operation, meaning: Meaning) -> list[str]:
        atoms = self.atoms
        bare = self.bare_text if self.bare_text and only_arguments(meaning.text) else {}
        found = []
        shaped = not meaning.scalars
        for value in operation.operands:
            if type(value) is Value:
                found.append(bare.get(value) or atoms[value])
                shaped = True
            else:
                found.append(self.literal(value, meaning.scalars, meaning.weak))
        if not shaped or (operation.op.name == "select" and meaning.scalars):
            self.give_dtype(operation, found)
        return found

    def give_dtype(self, operation: Operation, found: list[str]) -> None:
        """Write one literal as a NumPy array or scalar where no operand says the shape or the dtype of the result."""
        if operation.op.name != "select":
            found[0] = self.literal(operation.operands[0], False)
            return
        predicate, *branches = operation.operands
        if isinstance(predicate, Literal):
            found[0] = self.literal(predicate, False)
        true, false = branches
        splats = isinstance(true, Literal) and true.splat and isinstance(false, Literal) and false.splat
        if isinstance(true, Literal) and splats and not native(true.type.dtype):
            found[1] = typed_text(true)

    def literal(self, value: Value, scalar: bool, weak: bool = True) -> str:
        """A literal as a scalar, a Python number if ``weak``; or else as an array or a NumPy scalar of its type."""
        if not isinstance(value, Literal):
            return self.atoms[value]
        if isinstance(value.type, TapeType):
            element = self.literal(Literal(value.value, value.type.element), False)
            return f"filled_tape({element})"
        if scalar and not weak and value.splat:
            return typed_text(value)
        found = self.shared.literals.get(value) if scalar or not value.splat else None
        if found is not None:
            return found
        if not value.splat:
            text = self.shared.module_names.numbered("c")
            self.shared.constants[text] = np.asarray(value.value)
        elif not scalar:
            return full_text(value) if value.type.rank else typed_text(value)
        else:
            text = weak_text(value)
        self.shared.literals[value] = text
        return text

    # --- names and buffers -----------------------------------------------------------------------
    def bind(self, value: Value) -> str:
        names = self.shared.names
        name = names.numbered("v") if value.name is None else names.named(value.name)
        self.atoms[value] = name
        if self.buffers.any_large:
            self.note_name(value, name)
        return name

    def note_name(self, value: Value, name: str) -> None:
        for root in self.buffers.roots(value):
            if root in self.buffers.last_use:
                self.held.setdefault(root, []).append(name)

    def freed(self, dead: Sequence[Value]) -> str:
        if self.in_region:  # the names are bound again in the next trip, or soon forgotten
            return ""
        # A view of several buffers is bound to a name that is freed with the first of them.
        freed = [root for root in dead if bytes_of(root.type) >= FREED]
        names = list(dict.fromkeys(name for root in freed for name in self.held.pop(root, ()) if name not in self.gone))
        self.gone.update(names)
        return f"\n{self.indent}del {', '.join(names)}" if names else ""


class _Writer(Block):
    """The state of writing one function."""

    def __init__(self, function: Function, module_names: Names, bare: bool) -> None:
        shared = Shared(function, module_names)
        flat = shared.function
        super().__init__(shared, flat, Buffers(*flat, shared.flatten), _INDENT)
        self.function = function
        self.bare = bare
        self.name = shared.name
        self.in_region = False

    def program(self) -> Program:
        shared = self.shared
        params = [self.bind(param) for param in self.function.params]
        chunks = Chunks(
            self.name, shared.module_names, self.operations, self.function.params, self.results, self.folded
        )
        if len(chunks) == 1:
            self.open(self.name, params)
            self.body(0, len(self.operations))
            self.lines.append(f"{_INDENT}return {self.returned()}")
        else:
            for number in range(len(chunks)):
                self.chunk(chunks, number)
            self.open(self.name, params)
            self.lines += chunks.calls(params)
        text = "\n".join(self.lines) + "\n"
        scipy = sorted({module for meaning in shared.meanings for module in meaning.scipy})
        return Program(self.name, text, shared.constants, shared.helpers, tuple(scipy))

    def open(self, name: str, params: Sequence[str]) -> None:
        if self.bare:
            self.lines.append('@np.errstate(all="ignore")')
        self.lines.append(f"def {name}({', '.join(params)}):")
        function = self.function
        if len(function.params) + len(function.results) <= _SIGNATURE_LIMIT:
            shown = ", ".join(f"{name}: {param.type}" for name, param in zip(params, function.params, strict=True))
            results = ", ".join(str(type) for type in function.result_types)
            if len(function.results) != 1:
                results = f"({results})"
            self.lines.append(f'{_INDENT}"""({shown}) -> {results}"""')

    def chunk(self, chunks: Chunks, number: int) -> None:
        """A part of a long function: it takes what it needs from the list ``saved`` and adds what later parts need."""
        self.lines.append(f"def {chunks.names[number]}(saved):")
        self.label = ""
        self.held.clear()
        for value in chunks.loaded[number]:
            self.note_name(value, self.atoms[value])
        self.lines += chunks.loads(number, self.atoms, self.buffers.large)
        self.body(*chunks.bounds(number))
        if number == len(chunks) - 1:
            self.lines.append(f"{_INDENT}return {self.returned()}")
        else:
            self.lines += chunks.stores(number, self.atoms)
        self.lines.append("\n")

    def returned(self) -> str:
        found = []
        for value, copy in zip(self.results, self.buffers.copies(self.results), strict=True):
            text = self.literal(value, False)
            if isinstance(value.type, TapeType):
                found.append(text if isinstance(value, Literal) else f"copied_tape({text})")
                continue
            if isinstance(value, Literal):
                copy = not value.splat
            if value.type.rank == 0:
                # The caller may have given an array of rank 0.
                text = f"{text}[()]" if copy else text
            elif copy:
                text = f"{text}.copy()"
            found.append(text)
        if len(found) == 1:
            return found[0] if self.bare else f"({found[0]},)"
        return ", ".join(found) or "()"
