"""Which results, carries, constants and columns of control flow are not needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

from srcgrad.ir.core import Literal, Operation, Region, Value

CONTROL: Final = frozenset({"cond", "for", "while"})


class Shrunk(NamedTuple):
    """What is left of an operation: its operands and results by their positions, its attributes and regions."""

    operands: tuple[int, ...]
    results: tuple[int, ...]
    attrs: dict[str, Any]
    regions: tuple[Region, ...]


Eliminate = Callable[[Region], Region]


def shrunk(operation: Operation, live: Collection[Value], eliminate: Eliminate) -> Shrunk:
    """The operation without what no live result needs; ``eliminate`` clears its regions of dead operations."""
    return (shrunk_cond if operation.op.name == "cond" else shrunk_loop)(operation, live, eliminate)


def used_by(region: Region) -> set[Value]:
    """The values that a region reads."""
    found = set(region.results)
    for operation in region.operations:
        found.update(operation.operands)
    return found


def picked(items: Sequence[Value], positions: Sequence[int]) -> list[Value]:
    return [items[position] for position in positions]


def shrunk_cond(operation: Operation, live: Collection[Value], eliminate: Eliminate) -> Shrunk:
    results = tuple(k for k, value in enumerate(operation.results) if value in live)
    regions = [
        eliminate(Region(region.params, region.operations, picked(region.results, results)))
        for region in operation.regions
    ]
    used = [used_by(region) for region in regions]
    count = len(operation.operands) - 1
    kept = [k for k in range(count) if any(r.params[k] in u for r, u in zip(regions, used, strict=True))]
    regions = [Region(picked(region.params, kept), region.operations, region.results) for region in regions]
    return Shrunk((0, *(1 + k for k in kept)), results, dict(operation.attrs), tuple(regions))


def shrunk_loop(operation: Operation, live: Collection[Value], eliminate: Eliminate) -> Shrunk:
    attrs, body = dict(operation.attrs), operation.regions[-1]
    counted, carries = operation.op.name == "for", attrs["carries"]
    condition = None if counted else eliminate(operation.regions[0])
    dynamic = counted and attrs["trips"] is None
    shift, place, extra = int(counted), int(dynamic), int(not counted)
    others = len(operation.operands) - place
    columns = [k for k in range(len(body.results) - carries) if operation.results[carries + extra + k] in live]
    read = used_by(condition) if condition is not None else set()
    roots = {k for k in range(carries) if operation.results[k] in live}
    if condition is not None:
        roots |= {k for k in range(carries) if condition.params[k] in read}
    wanted = reached(body, shift, carries, roots, columns)
    while True:
        kept = sorted(wanted)
        results = [*picked(body.results, kept), *picked(body.results[carries:], columns)]
        cleared = eliminate(Region(body.params, body.operations, results))
        # What regions inside do not need any more may free more carries.
        wanted = reached(cleared, shift, len(kept), roots, range(len(columns)), kept)
        if len(wanted) == len(kept):
            break
    used = used_by(cleared)
    if condition is not None:
        used |= {body.params[k] for k, param in enumerate(condition.params) if param in read}
    rest = [k for k in range(carries, others) if body.params[shift + k] in used]
    positions = [*kept, *rest]
    params = [*body.params[:shift], *(body.params[shift + k] for k in positions)]
    regions: tuple[Region, ...] = (Region(params, cleared.operations, cleared.results),)
    attrs["carries"] = len(kept)
    if counted:
        attrs["consts"] = sum(k < carries + operation.attrs["consts"] for k in rest)
    if condition is not None:
        regions = (Region(picked(condition.params, positions), condition.operations, condition.results), *regions)
    found = [*kept, *([carries] if extra else []), *(carries + extra + k for k in columns)]
    operands = [*range(place), *(place + k for k in positions)]
    return Shrunk(tuple(operands), tuple(found), attrs, regions)


def reached(
    body: Region,
    shift: int,
    carries: int,
    wanted: Collection[int],
    columns: Collection[int],
    names: Sequence[int] | None = None,
) -> set[int]:
    """The carries that the wanted ones, columns and effects need, by way of the trips before; in one pass.

    ``names``: which carries of the loop those of this body are.
    """
    names = range(carries) if names is None else names
    positions = {body.params[shift + name]: k for k, name in enumerate(names)}
    found = set(wanted)
    sources = Sources()
    pending = [body.results[names.index(k)] for k in wanted] + [body.results[carries + k] for k in columns]
    pending += sources.of_effects(body)
    met: set[Value] = set()
    while pending and len(found) < len(names):
        value = pending.pop()
        if value in met or isinstance(value, Literal):
            continue
        met.add(value)
        if value not in positions:
            pending += sources.of(value)
        elif names[positions[value]] not in found:
            found.add(names[positions[value]])
            pending.append(body.results[positions[value]])
    return found


class Sources:
    """What values are computed from, through the regions of control flow: of a loop one carry, say, and not the rest.

    So a carry that a loop inside hands on, and nobody reads, is not needed there because it is needed outside, and
    outside because it is needed there.
    """

    def __init__(self) -> None:
        self.homes: dict[Value, tuple[Operation, int]] = {}
        """The operations of parameters, and their positions."""

    def enter(self, operation: Operation) -> None:
        first = operation.regions[0].params
        if not first or first[0] not in self.homes:
            for region in operation.regions:
                self.homes.update((param, (operation, k)) for k, param in enumerate(region.params))

    def of(self, value: Value) -> Sequence[Value]:
        home = self.homes.get(value)
        if home is not None:
            return of_param(*home)
        operation = value.producer
        if operation is None:
            return ()
        if operation.op.name not in CONTROL:
            return operation.operands
        self.enter(operation)
        return of_result(operation, operation.results.index(value))

    def of_effects(self, region: Region) -> list[Value]:
        """What the effects in a region read, and what decides how often they happen."""
        found: list[Value] = []
        for operation in region.operations:
            if operation.op.name in CONTROL:
                if operation.acts:
                    self.enter(operation)
                    found += [value for inner in operation.regions for value in self.of_effects(inner)]
                    found += deciding(operation)
            elif operation.acts:
                found += operation.operands
        return found


def all_sources(values: Iterable[Value]) -> set[Value]:
    """Everything that values are computed from, and themselves."""
    sources, found, pending = Sources(), set[Value](), list(values)
    while pending:
        value = pending.pop()
        if value not in found:
            found.add(value)
            pending += sources.of(value)
    return found


def deciding(operation: Operation) -> Sequence[Value]:
    """The values that say which region of control flow runs, and how often."""
    if operation.op.name == "while":
        return operation.regions[0].results
    return operation.operands[: int(operation.op.name == "cond" or operation.attrs["trips"] is None)]


def of_result(operation: Operation, position: int) -> list[Value]:
    """What a result of control flow is computed from, in its regions and before them."""
    found = list(deciding(operation))
    if operation.op.name == "cond":
        return [*found, *(region.results[position] for region in operation.regions)]
    carries, body = operation.attrs["carries"], operation.regions[-1]
    if position < carries:
        return [*found, body.results[position], given(operation, position)]
    if operation.op.name == "for":
        return [*found, body.results[position]]
    return found if position == carries else [*found, body.results[position - 1]]


def of_param(operation: Operation, position: int) -> list[Value]:
    """What a parameter of a region of control flow is computed from."""
    if operation.op.name == "cond":
        return [operation.operands[1 + position]]
    place = position - int(operation.op.name == "for")
    if place < 0:
        return []
    found = [given(operation, place)]
    return [*found, operation.regions[-1].results[place]] if place < operation.attrs["carries"] else found


def given(loop: Operation, position: int) -> Value:
    """What a loop is handed for its carries, constants and columns."""
    return loop.operands[position + int(loop.op.name == "for" and loop.attrs["trips"] is None)]
