"""Which results, carries, constants and columns of control flow are not needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
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
    pending = [body.results[names.index(k)] for k in wanted] + [body.results[carries + k] for k in columns]
    for operation in body.operations:
        if operation.acts:
            pending.extend(operation.operands)
    met: set[Operation] = set()
    while pending:
        value = pending.pop()
        if isinstance(value, Literal):
            continue
        if value.producer is not None:
            if value.producer not in met:
                met.add(value.producer)
                pending.extend(value.producer.operands)
        elif value in positions and names[positions[value]] not in found:
            found.add(names[positions[value]])
            pending.append(body.results[positions[value]])
    return found
