"""Straight lists of operations: inlined, and cut into parts that Python compiles in linear time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from srcgrad.backends.numpy.literals import Names
from srcgrad.ir.core import Literal, Operation, Region, Value

WHOLE: Final = 2000
"""Operations up to which a function stays in one piece: Python takes ever longer per line of a long function."""

PART: Final = 500
_NAMES_PER_LINE: Final = 8

Env = dict[Value, Value]


def flatten(region: Region) -> tuple[Sequence[Operation], Sequence[Value]]:
    """The operations and results of a region, without those that only wrap a region, or rename or spread a value.

    An op whose class says ``transparent = True`` means its only region, applied to its operands.
    """
    if not any(_dissolves(operation) for operation in region.operations):
        return region.operations, region.results
    env: Env = {}
    operations = list(_flat(region.operations, env, False))
    return operations, [env.get(value, value) for value in region.results]


def _dissolves(operation: Operation) -> bool:
    op = operation.op
    # A barrier orders and separates for the passes; here the order is settled.
    wrapper = bool(operation.regions) and getattr(op, "transparent", False)
    return wrapper or op.meaning == "{0}" or op.name == "barrier" or _spreads(operation, operation.operands)


def _spreads(operation: Operation, operands: Sequence[Value]) -> bool:
    """Whether the operation broadcasts a splat, which gives a splat."""
    return operation.op.name == "broadcast" and isinstance(operands[0], Literal) and operands[0].splat


def _flat(operations: Iterable[Operation], env: Env, copied: bool) -> Iterator[Operation]:
    # A region may be that of several operations: what is in one is copied, so that each value has one definition.
    for operation in operations:
        operands = tuple([env.get(value, value) for value in operation.operands])
        if _spreads(operation, operands) and isinstance(operands[0], Literal):
            env[operation.results[0]] = Literal(operands[0].value, operation.results[0].type)
        elif not _dissolves(operation):
            if copied or operands != operation.operands:
                yield _copy(operation, operands, env)
            else:
                yield operation
        elif not operation.regions:
            env.update(zip(operation.results, operands, strict=True))
        else:
            region = operation.regions[0]
            inner: Env = dict(zip(region.params, operands, strict=True))
            yield from _flat(region.operations, inner, True)
            for outer, value in zip(operation.results, region.results, strict=True):
                env[outer] = inner.get(value, value)


def _copy(operation: Operation, operands: tuple[Value, ...], env: Env) -> Operation:
    types = [value.type for value in operation.results]
    copy = Operation(operation.op, operands, operation.attrs, operation.regions, types, operation.span)
    for old, new in zip(operation.results, copy.results, strict=True):
        new.name = old.name
        env[old] = new
    return copy


class Chunks:
    """The parts of a function, and what each takes from and adds to the list ``saved`` that they share.

    ``saved`` begins with the parameters. ``folded`` maps a value that has no line of its own to the one it shows.
    """

    def __init__(
        self,
        name: str,
        names: Names,
        operations: Sequence[Operation],
        params: Sequence[Value],
        results: Sequence[Value],
        folded: Mapping[Value, Value],
    ) -> None:
        self.total = len(operations)
        count = 1 if self.total <= WHOLE else -(-self.total // PART)
        self.names: list[str] = []
        self.loaded: list[list[Value]] = [[] for _ in range(count)]
        self.stored: list[list[Value]] = [[] for _ in range(count)]
        self.slots: dict[Value, int] = {}
        self.last: dict[Value, int] = {}
        if count > 1:
            self.names = [names.named(f"{name}_part{number + 1}") for number in range(count)]
            self._distribute(operations, params, results, folded)

    def __len__(self) -> int:
        return len(self.loaded)

    def _distribute(
        self,
        operations: Sequence[Operation],
        params: Sequence[Value],
        results: Sequence[Value],
        folded: Mapping[Value, Value],
    ) -> None:
        home: dict[Value, int] = dict.fromkeys(params, -1)
        loaded: list[dict[Value, None]] = [{} for _ in self.loaded]

        def read(values: Iterable[Value], number: int) -> None:
            for value in values:
                if not isinstance(value, Literal):
                    value = folded.get(value, value)
                    if home[value] != number:
                        loaded[number][value] = None
                        self.last[value] = number

        for index, operation in enumerate(operations):
            number = index // PART
            if not (operation.results and operation.results[0] in folded):
                read(operation.operands, number)
            for value in operation.results:
                home[value] = number
        read(results, len(self) - 1)
        self.slots.update((param, slot) for slot, param in enumerate(params))
        for value, number in home.items():
            if number >= 0 and value in self.last:
                self.stored[number].append(value)
                self.slots[value] = len(self.slots)
        self.loaded = [sorted(values, key=self.slots.__getitem__) for values in loaded]

    def bounds(self, number: int) -> tuple[int, int]:
        """The indices of the first operation of a part and of the first after it."""
        return number * PART, min(self.total, (number + 1) * PART)

    def loads(self, number: int, atoms: Mapping[Value, str], large: Callable[[Value], bool]) -> list[str]:
        """Lines that take values from ``saved``; a large one is let go where it is taken for the last time."""
        lines = []
        for run in self._runs(self.loaded[number]):
            first = self.slots[run[0]]
            if len(run) == 1:
                lines.append(f"    {atoms[run[0]]} = saved[{first}]")
            else:
                lines.append(f"    {', '.join([atoms[value] for value in run])} = saved[{first}:{first + len(run)}]")
        for value in self.loaded[number]:
            if self.last[value] == number and large(value):
                lines.append(f"    saved[{self.slots[value]}] = None")
        return lines

    def _runs(self, values: Sequence[Value]) -> Iterator[list[Value]]:
        run: list[Value] = []
        for value in values:
            if run and (len(run) == _NAMES_PER_LINE or self.slots[value] != self.slots[run[-1]] + 1):
                yield run
                run = []
            run.append(value)
        if run:
            yield run

    def stores(self, number: int, atoms: Mapping[Value, str]) -> list[str]:
        """Lines that add a part's values to ``saved``."""
        values = [atoms[value] for value in self.stored[number]]
        pieces = [values[start : start + _NAMES_PER_LINE] for start in range(0, len(values), _NAMES_PER_LINE)]
        return [f"    saved += [{', '.join(piece)}]" for piece in pieces] or ["    pass"]

    def calls(self, params: Sequence[str]) -> list[str]:
        """The body of the function that runs the parts."""
        return [
            f"    saved = [{', '.join(params)}]",
            *[f"    {name}(saved)" for name in self.names[:-1]],
            f"    return {self.names[-1]}(saved)",
        ]
