"""Calls of transformed functions that are answered in machine code: for which signatures, and with what checks.

A signature that is called often enough gets a table of `backends.llvm.front`: the arguments' classes, dtypes, shapes
and static values, the backend that is chosen, the guards of what the function reads, and the program. What the machine
finds different goes on as every call does, in `Transformed.__call__`, which may add another table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from sys import intern
from typing import Any, Final

import numpy as np

from srcgrad.backends.llvm import layout
from srcgrad.backends.llvm.front import (
    KNOWN_DTYPES,
    POSSIBLE,
    Place,
    Table,
    TooLong,
    is_native,
    machine,
)
from srcgrad.cache import Known, Trivial
from srcgrad.compiler import DEFAULT
from srcgrad.front_guards import FUNCTION, Guards, UnknownGuard
from srcgrad.tracing.function import as_array
from srcgrad.tracing.trace import ACTIVE
from srcgrad.transformed import Job, Program, Transformed
from srcgrad.vectorcall import allowed, set_function

BACKEND: Final = intern("llvm")
"""The backend whose programs have tables."""
MOST_TABLES: Final = 4
"""How many signatures of an object have a table; they are tried in turn, the newest first."""
NUMBERS: Final = (float, np.float64, np.float32, np.float16)
"""The classes of numbers that a program in machine code takes."""
CONSTANTS: Final = (type(None), bool, int, float, complex, str, bytes)
"""What a result may hold besides arrays, and be made once."""


class Unserved(Exception):
    """A call that machine code cannot answer."""


class Result:
    """Stands for a result of a program in the structure that the caller gets."""

    __slots__ = ()


def serve(transformed: Transformed, args: tuple[Any, ...], job: Job, captures: Known, program: Program) -> None:
    """Let calls like this one, which this program serves, be answered in machine code from now on, if they can."""
    if not POSSIBLE or not allowed(type(transformed)):
        return
    bound = captures.bind(transformed.f)
    if bound is None or bound[1] is not None or len(bound[0]) != len(captures.hidden):
        return
    try:
        try:
            table = written(transformed, args, job, captures, program, bound[0], machine_guards=True)
        except (UnknownGuard, TooLong):
            table = written(transformed, args, job, captures, program, bound[0], machine_guards=False)
    except (Unserved, TooLong):
        return
    install(transformed, program, table)


def install(transformed: Transformed, program: Program, table: Table) -> None:
    """Put a table first, in place of one for the same arguments."""
    words, kept = table.finished()
    old = transformed.tables if hasattr(transformed, "tables") else ()
    others = [old[k : k + 2] for k in range(0, len(old), 2) if old[k + 1][0] is not program.run]
    entries = [(words, (program.run, *kept)), *others[: MOST_TABLES - 1]]
    transformed.tables = tuple([part for entry in entries for part in entry])
    set_function(transformed, machine(Place(TABLES, ACTIVE, failed)))


TABLES: Final = layout.member_offset(Transformed.tables) if layout.KNOWN else 0


def failed(transformed: Transformed, error: BaseException) -> None:
    """Raise what leaves a call in which a program raised this."""
    shown = transformed.reported(error) if isinstance(error, Exception) else None
    if shown is None:
        raise error
    raise shown from shown.__cause__


def written(
    transformed: Transformed, args: tuple[Any, ...], job: Job, captures: Known, program: Program,
    hidden: Sequence[Any], machine_guards: bool,
) -> Table:  # fmt: skip
    """The table of a call.

    Raises:
        Unserved: arguments, captured values or a program that the machine does not take.
        UnknownGuard: with ``machine_guards``, guards that have no form in machine code.
        TooLong: there is not enough room.
    """
    table = Table(len(args))
    leaves = [pair for number, argument in enumerate(args) for pair in signature(table, 1 + number, argument)]
    if [id(leaf) for _, leaf in leaves] != [id(leaf) for leaf in job.leaves]:
        raise Unserved
    if transformed.backend is None:
        default = table.load(table.load(table.constant(DEFAULT), layout.ITEMS), 0)
        table.require_is(default, BACKEND)  # not what is the default now: use_backend may have chosen
    registers = captured(table, transformed, captures, len(hidden), machine_guards)
    if len(hidden) > 1 and machine_guards:
        require_apart(table, list(zip(registers, hidden, strict=True)))
    for register, value in zip(registers, hidden, strict=True):
        require_leaf(table, register, value)
        leaves.append((register, value))
    for position in program.traced:
        table.give(leaves[position][0])
    finish(table, program, [leaves[position][1] for position in program.traced])
    return table


def signature(table: Table, register: int, argument: Any) -> Iterator[tuple[int, Any]]:
    """Check an argument to be like this one; its leaves and their registers, in the order of the pytree."""
    kind = type(argument)
    if kind not in (tuple, list, dict):
        if argument is None:
            table.require_is(register, None)  # which has no leaves
        else:
            require_leaf(table, register, argument)
            yield register, argument
        return
    table.require_type(register, kind)
    table.require_word(register, layout.SIZE, len(argument))
    if kind is dict:
        if not all(type(key) is str for key in argument):
            raise Unserved
        for key in sorted(argument):
            yield from signature(table, table.item(register, key), argument[key])
        return
    first = layout.ITEMS
    if kind is list and argument:
        register, first = table.load(register, layout.ITEMS), 0
    for number, item in enumerate(argument):
        yield from signature(table, table.load(register, first + 8 * number), item)


def require_leaf(table: Table, register: int, leaf: Any) -> None:
    """Check that something is traced as this leaf is, or is the same static value."""
    kind = type(leaf)
    if kind is np.ndarray:
        if not (leaf.flags.c_contiguous and leaf.flags.aligned and id(leaf.dtype) in KNOWN_DTYPES):
            raise Unserved
        table.require_array(register, leaf.dtype, leaf.shape)
    elif kind in NUMBERS or kind is complex:
        table.require_type(register, kind)
    elif kind is bool or kind is str:
        table.require_is(register, leaf)
    elif kind is int and abs(leaf) <= layout.LARGEST_DIGIT:
        table.require_int(register, leaf)
    else:
        raise Unserved


def captured(table: Table, transformed: Transformed, captures: Known, count: int, machine_guards: bool) -> list[int]:
    """Check the guards; the registers of the hidden inputs."""
    function = table.load(0, FUNCTION)
    if isinstance(captures, Trivial):
        table.require_is(function, captures.function)
        return []
    if machine_guards:
        return [place.register for place in Guards(table, captures, transformed.f, function).hidden(count)]
    bound = table.bind(captures.bind, function)
    values = table.load(bound, layout.ITEMS)
    table.require_is(table.load(bound, layout.ITEMS + 8), None)
    return [table.load(values, layout.ITEMS + 8 * number) for number in range(count)]


def require_apart(table: Table, hidden: Sequence[tuple[int, Any]]) -> None:
    """Check that captured arrays own their memory and are different ones, which is how they share none."""
    arrays = [register for register, value in hidden if type(value) is np.ndarray]
    if any(type(value) is np.ndarray and value.base is not None for _, value in hidden):
        raise UnknownGuard("arrays that may share memory")
    for number, register in enumerate(arrays):
        table.require_word(register, layout.BASE, 0)
        for other in arrays[:number]:
            table.require_other(register, other)


def finish(table: Table, program: Program, inputs: Sequence[Any]) -> None:
    """Run the program on what was given, and return what the caller gets."""
    executable = getattr(program.run, "executable", None)
    numbers = all(type(value) is np.ndarray or type(value) in NUMBERS for value in inputs)
    if executable is None or not numbers or not is_native(executable.run):
        table.python(whole(program))
        return
    table.native(executable.run)
    if program.arranged is not None:
        results = [Result() for _ in range(program.arranged)]
        template = program.finish(results, ())
        if is_arrangement(template):
            table.arranged(template, results)
            return
    table.finish(program.finish, program.stages)


def is_arrangement(template: Any) -> bool:
    kind = type(template)
    if kind is dict:
        return all(map(is_arrangement, template.values()))
    if kind is tuple or kind is list:
        return all(map(is_arrangement, template))
    return kind is Result or kind in CONSTANTS


def whole(program: Program) -> Any:
    """A program that is a Python function, from the call's arguments to its result."""
    run, finish, stages = program.run, program.finish, program.stages

    def call(*inputs: Any) -> Any:
        return finish(run([as_array(value) for value in inputs]), stages)

    return call
