"""Control flow as Python source: ``if``, ``while`` and ``for``. A tape is a list, and a carry a variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from srcgrad.backends.numpy.literals import dtype_text
from srcgrad.backends.numpy.reuse import Flat, Ownership
from srcgrad.ir.core import Literal, Operation, Value
from srcgrad.ir.types import TapeType

if TYPE_CHECKING:
    from srcgrad.backends.numpy.codegen import Block


def write_control(block: Block, operation: Operation) -> list[str]:
    """The lines of one operation; its results are bound in ``block``."""
    if operation.op.name == "cond":
        return write_cond(block, operation)
    return write_loop(block, operation)


def handed(block: Block, lines: list[str], param: Value, operand: Value) -> str:
    """The name of an operand inside a region; a literal gets one."""
    if not isinstance(operand, Literal):
        return block.atoms[operand]
    name = block.shared.names.named(param.name) if param.name else block.shared.names.numbered("v")
    lines.append(f"{block.indent}{name} = {block.literal(operand, False)}")
    return name


def written(inner: Block) -> list[str]:
    inner.body(0, len(inner.operations))
    return inner.lines


def assignment(indent: str, names: Sequence[str], values: Sequence[str]) -> list[str]:
    """One line that assigns all at once, without those that would not change."""
    changed = [(name, value) for name, value in zip(names, values, strict=True) if name != value]
    if not changed:
        return []
    return [f"{indent}{', '.join(name for name, _ in changed)} = {', '.join(value for _, value in changed)}"]


def write_cond(block: Block, operation: Operation) -> list[str]:
    lines: list[str] = []
    ownership: Ownership = block.buffers.regions[operation]
    predicate = block.literal(operation.operands[0], True)
    flats = [block.shared.flatten(region) for region in operation.regions]
    atoms = []
    for position, operand in enumerate(operation.operands[1:]):
        read = any(reads(flat, flat.params[position]) for flat in flats)
        param = flats[0].params[position]
        atoms.append(handed(block, lines, param, operand) if read else "None")
    names = [block.bind(result) for result in operation.results]
    for number, (flat, buffers) in enumerate(zip(flats, ownership.buffers, strict=True)):
        inner = block.inner(flat, buffers)
        for param, atom in zip(flat.params, atoms, strict=True):
            take(inner, param, atom)
        found = written(inner)
        found += assignment(inner.indent, names, [inner.literal(value, False) for value in flat.results])
        if number == 0:
            lines += [f"{block.indent}if {predicate}:", *(found or [f"{inner.indent}pass"])]
        elif found:
            lines += [f"{block.indent}else:", *found]
    return lines


def take(inner: Block, param: Value, atom: str) -> None:
    """Make a name that exists that of a parameter."""
    inner.atoms[param] = atom
    if inner.buffers.any_large:
        inner.note_name(param, atom)


def reads(flat: Flat, param: Value) -> bool:
    return param in flat.results or any(param in operation.operands for operation in flat.operations)


def write_loop(block: Block, operation: Operation) -> list[str]:
    """The carries before the loop, its trips, and the columns after it."""
    attrs, counted = operation.attrs, operation.op.name == "for"
    ownership: Ownership = block.buffers.regions[operation]
    flats = [block.shared.flatten(region) for region in operation.regions]
    body = flats[-1]
    params = body.params[1:] if counted else body.params
    dynamic = counted and attrs["trips"] is None
    operands = operation.operands[1:] if dynamic else operation.operands
    carries = attrs["carries"]
    columns_start = carries + attrs["consts"] if counted else len(operands)
    results = list(operation.results)
    lines: list[str] = []
    atoms: list[str] = []
    used = block.used()
    for position in range(carries):
        name = block.bind(results[position])
        start = block.literal(operands[position], False)
        copied = position + int(dynamic) in ownership.copied and not (
            isinstance(operands[position], Literal) and operands[position].value.shape == ()  # type: ignore[attr-defined]
        )
        lines.append(f"{block.indent}{name} = {start}{'.copy()' if copied else ''}")
        atoms.append(name)
    for position in range(carries, columns_start):
        read = any(reads(flat, flat.params[position + int(counted)]) for flat in flats)
        atoms.append(handed(block, lines, params[position], operands[position]) if read else "None")
    if not counted:
        return lines + write_while(block, operation, flats, ownership, atoms, used)
    return lines + write_for(block, operation, body, ownership, atoms, operands[columns_start:])


def write_while(
    block: Block, operation: Operation, flats: Sequence[Flat], ownership: Ownership, atoms: list[str], used: set[Value]
) -> list[str]:
    condition, body = flats
    carries, indent = operation.attrs["carries"], block.indent
    trips, *tapes = operation.results[carries:]
    lines: list[str] = []
    counter = block.bind(trips) if trips in used else ""
    if counter:
        lines.append(f"{indent}{counter} = 0")
    names = [block.bind(tape) for tape in tapes]
    lines += [f"{indent}{name} = []" for name in names]
    test = block.inner(condition, ownership.buffers[0])
    for param, atom in zip(condition.params, atoms, strict=True):
        take(test, param, atom)
    steps = written(test)
    predicate = test.literal(condition.results[0], True)
    if len(steps) == 1 and steps[0].startswith(f"{test.indent}{predicate} = "):
        lines.append(f"{indent}while {steps[0].partition(' = ')[2]}:")
    elif not steps:
        lines.append(f"{indent}while {predicate}:")
    else:
        lines += [f"{indent}while True:", *steps, f"{test.indent}if not {predicate}:", f"{test.indent}    break"]
    inner = block.inner(body, ownership.buffers[1])
    for param, atom in zip(body.params, atoms, strict=True):
        take(inner, param, atom)
    lines += written(inner)
    found = [inner.literal(value, False) for value in body.results]
    lines += [f"{inner.indent}{name}.append({text})" for name, text in zip(names, found[carries:], strict=True)]
    lines += assignment(inner.indent, atoms[:carries], found[:carries])
    if counter:
        lines += [f"{inner.indent}{counter} += 1", f"{indent}{counter} = np.int64({counter})"]
    elif lines[-1].endswith(":"):
        lines.append(f"{inner.indent}pass")
    return lines


def write_for(
    block: Block, operation: Operation, body: Flat, ownership: Ownership, atoms: list[str], columns: Sequence[Value]
) -> list[str]:
    attrs, indent = operation.attrs, block.indent
    carries, trips, reverse = attrs["carries"], attrs["trips"], attrs["reverse"]
    lines: list[str] = []
    count = str(trips) if trips is not None else block.literal(operation.operands[0], True)
    made = operation.results[carries:]
    arrays = [trips is not None and not isinstance(value.type, TapeType) for value in body.results[carries:]]
    names = [block.bind(result) for result in made]
    appended = not reverse
    for name, result, array in zip(names, made, arrays, strict=True):
        if array:
            empty = f"np.empty({result.type.static_shape}, {dtype_text(result.type.dtype)})"
        else:
            empty = "[]" if appended else f"[None] * int({count})"
        lines.append(f"{indent}{name} = {empty}")
    row = [handed(block, lines, body.params[1 + len(atoms) + k], column) for k, column in enumerate(columns)]
    inner = block.inner(body, ownership.buffers[0])
    index, elements = body.params[0], body.params[1 + len(atoms) :]
    for param, atom in zip(body.params[1:], atoms, strict=False):
        take(inner, param, atom)
    shown = reads(body, index)
    kept = [(param, column) for param, column in zip(elements, row, strict=True) if reads(body, param)]
    needs_place = bool(kept) or any(arrays) or (bool(names) and not appended)
    place = block.shared.names.numbered("k") if shown or needs_place else "_"
    lifted = bool(attrs.get("lifted", False))
    bounds = f"range(abs({count}))" if lifted else f"range({count})"
    lines.append(f"{indent}for {place} in {f'reversed({bounds})' if reverse else bounds}:")
    start = len(lines)
    if shown:
        lines.append(f"{inner.indent}{inner.bind(index)} = np.int64({place})")
    lines += [f"{inner.indent}{inner.bind(param)} = {column}[{place}]" for param, column in kept]
    lines += written(inner)
    found = [inner.literal(value, False) for value in body.results]
    for name, array, text in zip(names, arrays, found[carries:], strict=True):
        placed = f"{name}[{place}] = {text}" if array or not appended else f"{name}.append({text})"
        lines.append(inner.indent + placed)
    lines += assignment(inner.indent, atoms[:carries], found[:carries])
    if len(lines) == start:
        lines.append(f"{inner.indent}pass")
    if lifted and names:
        lines.append(f"{indent}if {count} < 0:")
        lines += [f"{inner.indent}{name} = filled_tape({name}[0])" for name in names]
    return lines
