"""Calls of transformed functions that are answered in machine code: for which signatures, and with what checks.

A signature that is called often enough gets a table of `backends.llvm.front`: the arguments' classes, dtypes, shapes
and static values, the backend that is chosen, the guards of what the function reads, and the program. What the machine
finds different goes on as every call does, in `Transformed.__call__`, which may add another table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from sys import intern
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from srcgrad.backends.llvm import (
    front_machine,  # noqa: F401  # which `machine` imports: a fork must not come in the middle of that
    layout,
)
from srcgrad.backends.llvm.front import (
    KNOWN_DTYPES,
    POSSIBLE,
    Place,
    Table,
    TooLong,
    held_items,
    is_native,
    machine,
)
from srcgrad.building import Contents, Job, Program, holding
from srcgrad.cache import Known, Trivial
from srcgrad.compiler import DEFAULT
from srcgrad.directional import Pushed, has_tangent
from srcgrad.front_asked import Asked
from srcgrad.front_guards import FUNCTION, Answers, Guards, UnknownGuard
from srcgrad.ir.ops.effects import is_unforeseen
from srcgrad.signatures import UNKEYED, leaf_key, unread_key
from srcgrad.tracing.aliasing import AliasPattern
from srcgrad.tracing.function import as_array, leaf_spec
from srcgrad.tracing.pytree import TreeDef, record_fields
from srcgrad.tracing.tables import KINDS
from srcgrad.tracing.trace import ACTIVE
from srcgrad.transformed import MACHINE, Transformed
from srcgrad.vectorcall import allowed

if TYPE_CHECKING:
    from srcgrad.paths import Answering

BACKEND: Final = intern("llvm")
"""The backend whose programs have tables."""
MOST_TABLES: Final = 4
"""How many signatures of an object have a table; they are tried in turn, the newest first."""
NUMBERS: Final = (float, np.float64, np.float32, np.float16, complex, np.complex128, np.complex64)
"""The classes of numbers that a program in machine code takes."""
MOST_PAIRS: Final = 512
"""Of how many pairs of arrays a table asks whether they share memory."""
CONSTANTS: Final = (type(None), bool, int, float, complex, str, bytes)
"""What a result may hold besides arrays, and be made once."""


class Unserved(Exception):
    """A call that machine code cannot answer."""


def are_apart(aliases: AliasPattern | None, program: Program) -> bool:
    """Whether captured arrays are different ones, which share no memory where the program is for such alone."""
    if aliases is None:
        return True
    return not program.writes and aliases.groups == tuple(range(len(aliases.groups)))


class Result:
    """Stands for a result of a program in the structure that the caller gets."""

    __slots__ = ()


class Call(NamedTuple):
    """One call, and what `dispatch` has found for it."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    job: Job
    captures: Known
    program: Program
    contents: Contents = ()
    by_paths: Answering | None = None
    overlaps: bool = False
    """Whether captured arrays share memory."""

    @property
    def identity(self) -> Any:
        """What no other table of an object has."""
        return self.by_paths or self.program.run


def serve(
    transformed: Transformed, args: tuple[Any, ...], kwargs: dict[str, Any], job: Job, captures: Known,
    program: Program, contents: Contents = (), by_paths: Answering | None = None,
) -> None:  # fmt: skip
    """Let calls like this one, which this program serves, be answered in machine code from now on, if they can.

    ``contents``: the numbers that inputs of the program have, by their places, if it is for calls with these alone.
    ``by_paths``: what runs the program of the path that a call takes.
    """
    if not POSSIBLE or not allowed(type(transformed)):
        return
    bound = captures.bind(job.holder(transformed.f))
    if bound is None or len(bound[0]) != len(captures.hidden) or not are_apart(bound[1], program):
        return
    call = Call(args, kwargs, job, captures, program, contents, by_paths, bound[1] is not None)
    try:
        try:
            unknown: list[Guards] = []
            table = written(transformed, call, bound[0], machine_guards=True, unknown=unknown)
            if unknown:
                asked = Asked(unknown[0].statements, frozenset(unknown[0].unknown), captures.bind.__globals__)
                table = written(transformed, call, bound[0], machine_guards=True, asked=asked)
        except (UnknownGuard, TooLong):
            table = written(transformed, call, bound[0], machine_guards=False)
    except (Unserved, TooLong, LookupError):
        return
    install(transformed, call, table)


def install(transformed: Transformed, call: Call, table: Table) -> None:
    """Put a table first, in place of one for the same arguments; later objects of the same code begin with it."""
    words, kept = table.finished()
    entry = (words, (call.identity, tuple(call.kwargs), *kept))
    MACHINE[:] = [machine(Place(TABLES, ACTIVE, failed))]
    transformed.answer_by(with_first(entry, transformed._tables if hasattr(transformed, "_tables") else ()))
    if not any(isinstance(thing, Transformed) for thing in kept):  # which holds a function of the user's
        transformed.learned.tables = with_first(entry, transformed.learned.tables)


def with_first(entry: tuple[Any, ...], old: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tables with one more; its second part begins with the program and the order of keywords, which tell it apart."""
    pairs = [old[k : k + 2] for k in range(0, len(old), 2)]
    others = [pair for pair in pairs if pair[1][0] is not entry[1][0] or pair[1][1] != entry[1][1]]
    return tuple([part for pair in (entry, *others[: MOST_TABLES - 1]) for part in pair])


TABLES: Final = layout.member_offset(Transformed._tables) if layout.KNOWN else 0


def failed(transformed: Transformed, error: BaseException) -> None:
    """Raise what leaves a call in which a program raised this; return where the call is to be made again."""
    if is_unforeseen(error):
        return
    shown = transformed.reported(error) if isinstance(error, Exception) else None
    if shown is None:
        raise error
    raise shown from shown.__cause__


def written(
    transformed: Transformed, call: Call, hidden: Sequence[Any], machine_guards: bool,
    asked: Asked | None = None, unknown: list[Guards] | None = None,
) -> Table:  # fmt: skip
    """The table of a call. ``asked``: what the machine asks in Python before it looks at the other guards; without it
    ``unknown`` gets guards that have no form in machine code, and the table is of no use.

    Raises:
        Unserved, LookupError: arguments, captured values or a program that the machine does not take.
        UnknownGuard: with ``machine_guards``, guards that have no form in machine code.
        TooLong: there is not enough room.
    """
    job, captures, program = call.job, call.captures, call.program
    table = Table(len(call.args), tuple(call.kwargs))
    values = None if machine_guards or isinstance(captures, Trivial) else bound_values(table, transformed, call)
    answers = None if asked is None else answers_now(table, transformed, call, asked)
    leaves, extras = arguments(table, transformed, call)
    unread = transformed.leaf_facts(job.treedef).unread
    for place, (register, leaf) in enumerate(leaves):
        if place in unread and unread_key(leaf) is type(leaf):
            table.require_type(register, type(leaf))
        elif place not in job.held:  # of which the guards say what they are
            require_leaf(table, register, leaf)
    for register, leaf in extras:
        require_leaf(table, register, leaf)
    if transformed.backend is None:
        default = table.load(table.load(table.constant(DEFAULT), layout.LIST_ITEMS), 0)
        table.require_is(default, BACKEND)  # not what is the default now: use_backend may have chosen
    guards = None if values is not None else guarded(table, transformed, call, leaves, answers)
    if guards is not None and guards.unknown and unknown is not None:
        unknown.append(guards)
        return table
    registers = captured(table, guards, len(hidden), values)
    if len(hidden) > 1 and machine_guards:
        require_apart(table, list(zip(registers, hidden, strict=True)), program.writes)
    for register, value in zip(registers, hidden, strict=True):
        require_leaf(table, register, value)
        leaves.append((register, value))
    given = [*[leaves[position] for position in program.traced], *extras]
    require_contents(table, given, call.contents)
    for number in program.written:
        register, value = given[number]
        if program.refuses([value for _, value in leaves]):
            raise Unserved
        table.require_writable(register)
    copies = None
    if call.by_paths is None:
        copies = [] if program.changes is None else copied_back(table, program, given)
    if copies is None:
        for register in (0, *[register for register, _ in leaves], *range(1, 1 + len(call.args) + len(call.kwargs))):
            table.give(register)
        table.python(executed(call, len(leaves)))
        return table
    for register, _ in given:
        table.give(register)
    for number, (_, value) in enumerate(given):
        if not is_in_order(value) and native_run(program, [value]) is not None:
            table.copied(number)
    finish(table, program, [value for _, value in given], copies)
    return table


Leaf = tuple[int, Any]
"""A register, and what is in it now."""


def arguments(table: Table, transformed: Transformed, call: Call) -> tuple[list[Leaf], list[Leaf]]:
    """Check the structure of the arguments; the leaves in the order of the pytree, and those of the extras."""
    leaves, extras = parts(table, transformed, call)
    if [id(leaf) for _, leaf in leaves] != [id(leaf) for leaf in call.job.leaves]:
        raise Unserved
    return leaves, extras


def parts(table: Table, transformed: Transformed, call: Call) -> tuple[list[Leaf], list[Leaf]]:
    """`arguments`, of a pytree that may have changed."""
    if isinstance(transformed, Pushed):
        primals, tangents = call.args
        tree = call.job.treedef.children[0]
        leaves = list(taken_apart(table, 1, flat(primals), tree))
        moved = list(taken_apart(table, 2, flat(tangents), tree))
        extras = iter(call.job.extras)
        inputs = []
        for pair, leaf in zip(moved, call.job.leaves, strict=True):
            if has_tangent(leaf):
                inputs.append(pair)
            else:
                if isinstance(pair[1], np.ndarray):
                    raise Unserved  # it may come to hold something else than zeros
                table.require_is(*pair)
        if any(value is not extra for (_, value), extra in zip(inputs, extras, strict=True)):
            raise Unserved  # it is cast
        return leaves, inputs
    if call.job.extras:
        raise Unserved
    positional, named = call.job.treedef.children
    leaves = []
    for number, (argument, tree) in enumerate(zip(call.args, positional.children, strict=True)):
        leaves += taken_apart(table, 1 + number, argument, tree)
    places = {name: 1 + len(call.args) + number for number, name in enumerate(call.kwargs)}
    for name, tree in zip(sorted(call.kwargs), named.children, strict=True):
        leaves += taken_apart(table, places[name], call.kwargs[name], tree)
    return leaves, []


def flat(given: Any) -> Any:
    """The tuple or list of primals or tangents."""
    if type(given) not in (tuple, list):
        raise Unserved
    return given


def taken_apart(table: Table, register: int, value: Any, tree: TreeDef) -> Iterator[Leaf]:
    """Check something to have the structure that it has now; its leaves."""
    kind = type(value)
    if tree.kind is None:
        yield register, value
    elif value is None:
        table.require_is(register, None)
    elif kind is dict:
        if {*map(type, value)} not in ({str}, {int}, set()):
            raise Unserved
        table.require_keys(register, tuple(value))
        for key, child in zip(sorted(value), tree.children, strict=True):
            yield from taken_apart(table, table.item(register, key), value[key], child)
    elif kind is tuple or kind is list or (isinstance(value, tuple) and record_fields(kind) is not None):
        table.require_type(register, kind)
        table.require_word(register, layout.SIZE, len(value))
        first = layout.ITEMS
        if kind is list and value:
            register, first = table.load(register, layout.LIST_ITEMS), 0
        for number, (item, child) in enumerate(zip(value, tree.children, strict=True)):
            yield from taken_apart(table, table.load(register, first + 8 * number), item, child)
    else:
        names = record_fields(kind)
        if names is None or names != tree.auxiliary:
            raise Unserved
        table.require_class(register, kind)
        for name, child in zip(names, tree.children, strict=True):
            yield from taken_apart(table, table.field(register, kind, name), getattr(value, name), child)


def require_leaf(table: Table, register: int, leaf: Any) -> None:
    """Check that something is traced as this leaf is, or is the same static value."""
    kind = type(leaf)
    if kind is np.ndarray and leaf.dtype.kind in KINDS:
        table.require_same_array(register, leaf)
    elif kind is np.ndarray:
        if id(leaf.dtype) not in KNOWN_DTYPES or not (leaf.flags.aligned or not is_in_order(leaf)):
            raise Unserved
        if is_in_order(leaf):
            table.require_array(register, leaf.dtype, leaf.shape)
        else:
            table.require_strides(register, leaf.dtype, leaf.shape, leaf.strides)
    elif kind in NUMBERS or (kind is not type and leaf_key(leaf) is kind):
        table.require_type(register, kind)
    elif kind is int:
        table.require_int(register, leaf)
    elif kind is np.int64:
        table.require_type(register, kind)
        table.require_word(register, layout.NUMBER, int(leaf))
    elif kind is slice or kind is range:
        table.require_type(register, kind)
        for name, offset in layout.FIELDS[kind].items():
            part, place = getattr(leaf, name), table.load(register, offset)
            if type(part) is int:
                table.require_int(place, part)
            else:
                table.require_is(place, part)
    elif leaf_spec(leaf) is None and leaf_key(leaf) is not UNKEYED:  # what never changes
        table.require_is(register, leaf)
    else:
        raise Unserved


def captured(table: Table, guards: Guards | None, count: int, values: int | None) -> list[int]:
    """The registers of the hidden inputs. ``values``: where `bound_values` has them."""
    if values is not None:
        return [table.load(values, layout.ITEMS + 8 * number) for number in range(count)]
    return [] if guards is None else [place.register for place in guards.hidden(count)]


def guarded(
    table: Table, transformed: Transformed, call: Call, leaves: Sequence[Leaf], answers: Answers | None
) -> Guards | None:
    """Check the guards in machine code; None where a function without code is all there is."""
    function, captures, job = table.load(0, FUNCTION), call.captures, call.job
    if isinstance(captures, Trivial):
        if job.held:
            raise Unserved
        table.require_is(function, captures.function)
        return None
    held = {name: leaves[place][0] for place, name in job.held.items()}
    return Guards(table, captures, transformed.f, function, job.holder(transformed.f), held, answers)


def answers_now(table: Table, transformed: Transformed, call: Call, asked: Asked) -> Answers:
    """Let Python be asked about guards that have no form in machine code, before all else as `bind` is."""
    ask, names = asked.function, tuple(call.job.held.values())

    def ask_held(function: Any, *objects: Any) -> Any:
        return ask(holding(function, names, objects))

    found = ask(call.job.holder(transformed.f))
    if found is None:
        raise Unserved
    leaves = parts(table, transformed, call)[0] if names else []
    held = [leaves[place][0] for place in call.job.held]
    register = table.bind(ask_held if names else ask, [table.load(0, FUNCTION), *held])
    return Answers(asked, register, found)


def bound_values(table: Table, transformed: Transformed, call: Call) -> int:
    """Let `bind` check the guards; the register of the hidden inputs, which a tuple holds.

    It comes first, since what other registers have borrowed may be gone after it.
    """
    bind, names, program = call.captures.bind, tuple(call.job.held.values()), call.program

    def bind_held(function: Any, *objects: Any) -> Any:
        bound = bind(holding(function, names, objects) if names else function)
        return bound if bound is None or not are_apart(bound[1], program) else (bound[0], None)

    leaves = parts(table, transformed, call)[0] if names else []
    held = [leaves[place][0] for place in call.job.held]
    bound = table.bind(bind_held if names or call.overlaps else bind, [table.load(0, FUNCTION), *held])
    table.require_is(table.load(bound, layout.ITEMS + 8), None)
    return table.load(bound, layout.ITEMS)


def require_apart(table: Table, hidden: Sequence[tuple[int, Any]], writes: bool) -> None:
    """Check that captured arrays are different ones and, where the program ``writes`` into some, share no memory: they
    own theirs, or it lies apart.
    """
    arrays = [(register, value) for register, value in hidden if type(value) is np.ndarray]
    if not writes:
        for number, (register, _) in enumerate(arrays):
            for other, _ in arrays[:number]:
                table.require_other(register, other)
        return
    views = [value.base is not None for _, value in arrays]
    if len(arrays) > 1 and not all(is_in_order(value) for (_, value), view in zip(arrays, views, strict=True) if view):
        raise UnknownGuard("views whose elements lie apart")
    if sum(views) * len(arrays) > MOST_PAIRS:
        raise UnknownGuard("arrays that may share memory")
    for number, (register, value) in enumerate(arrays):
        if not views[number]:
            table.require_word(register, layout.BASE, 0)
        for other in range(number):
            table.require_other(register, arrays[other][0])
            if views[number] or views[other]:
                table.require_apart(register, value.nbytes, arrays[other][0], arrays[other][1].nbytes)


def require_contents(table: Table, given: Sequence[Leaf], contents: Contents) -> None:
    """Check that arrays have the numbers they have now, as those who have asked for them were told."""
    for place, expected in contents:
        register, value = given[place]
        if type(value) is not np.ndarray or not is_in_order(value):
            raise Unserved
        kept = np.array(expected, value.dtype, order="C")
        kept.flags.writeable = False
        table.require_contents(register, kept)


def finish(table: Table, program: Program, inputs: Sequence[Any], copies: Sequence[tuple[int, int, int]]) -> None:
    """Run the program on what was given, and return what the caller gets."""
    run = native_run(program, inputs)
    if run is None or program.restarts:
        table.python(whole(program))
        return
    found = arrangement(program)
    if found is not None:
        table.arranged(run, *found, copies)
        return
    table.native(run)
    table.finish(program.finish, program.stages)


def native_run(program: Program, inputs: Sequence[Any]) -> Any:
    """The built-in function that is the program, if it takes such inputs; else None."""
    executable = getattr(program.run, "executable", None)
    numbers = all(type(value) is np.ndarray or type(value) in NUMBERS for value in inputs)
    return executable.run if executable is not None and numbers and is_native(executable.run) else None


def is_in_order(value: Any) -> bool:
    """Whether an input of a program is in C order, as machine code reads it."""
    return type(value) is not np.ndarray or value.flags.c_contiguous


def arrangement(program: Program) -> tuple[Any, list[Result]] | None:
    """The structure that a call returns, and what stands in it for the program's results; None if it must be made."""
    if program.arranged is None:
        return None
    results = [Result() for _ in range(program.arranged)]
    template = program.finish(results, ())
    return (template, results) if is_arrangement(template) else None


def copied_back(table: Table, program: Program, given: Sequence[Leaf]) -> list[tuple[int, int, int]] | None:
    """Check that arrays which are written can be, and share no memory; what is to be copied then, as `arranged` has it.

    None where more is to be done than to copy.

    Raises:
        Unserved: now they cannot be written or share memory, so that the function runs as it is.
    """
    changes, inputs = program.changes, [value for _, value in given]
    if changes is not None and not changes.writable(inputs):
        raise Unserved
    plain = native_run(program, inputs) is not None and all(map(is_in_order, inputs))
    if changes is None or changes.places or program.acts or not plain:
        return None
    arrays = [k for k, value in enumerate(inputs) if type(value) is np.ndarray and value.size]
    written = [k for k in changes.arrays if inputs[k].size]
    if arrangement(program) is None or any(not inputs[k].ndim for k in written):
        return None
    if len(written) * len(arrays) > MOST_PAIRS:
        return None
    for k in written:
        table.require_writable(given[k][0])
        for other in arrays:
            if other not in written or other > k:
                table.require_apart(given[k][0], inputs[k].nbytes, given[other][0], inputs[other].nbytes)
    first = (program.arranged or 0) - len(changes.arrays)
    return [(k, first + n, inputs[k].nbytes) for n, k in enumerate(changes.arrays) if inputs[k].size]


def executed(call: Call, count: int) -> Any:
    """What Python does of a call of which everything has been checked: its leaves, ``count`` of them with what is
    captured, and its arguments follow the object that is called.
    """
    job, captures, program, by_paths = call.job, call.captures, call.program, call.by_paths
    own, last, names = len(job.leaves), count + len(call.args), tuple(call.kwargs)
    form = Job([], job.treedef, job.active, held=job.held)  # without what this call was made with

    def run(transformed: Transformed, *things: Any) -> Any:
        given = things[count:last], dict(zip(names, things[last:], strict=True))
        found = form._replace(leaves=list(things[:own]), given=given)
        if by_paths is not None:
            return by_paths(transformed, found, things[own:count])
        return transformed.execute(program, found, things[own:count], captures)

    return run


def is_arrangement(template: Any) -> bool:
    kind = type(template)
    if kind not in (tuple, list, dict) and record_fields(kind) is None:
        return kind is Result or kind in CONSTANTS
    if not isinstance(template, (tuple, list, dict)):
        try:
            any(layout.plain_member(kind, name) for name in record_fields(kind) or ())
        except LookupError:
            return False
    return all(map(is_arrangement, held_items(template) or ()))


def whole(program: Program) -> Any:
    """A program that is a Python function, from the call's arguments to its result."""
    run, finish, stages = program.results if program.restarts else program.run, program.finish, program.stages

    def call(*inputs: Any) -> Any:
        return finish(run([as_array(value) for value in inputs]), stages)

    return call
