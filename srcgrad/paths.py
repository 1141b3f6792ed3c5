"""Programs of a function that cannot be one: each is of one path, valid where Python asks and gets the same answers.

At most `LIMIT` are kept per entry (code, argument types, static values, captured state), the one hit last first. A call
tries their guards, each a program of its own that computes the values that Python asked for; where none holds, the
function is traced once more. Beyond the limit, and where a path cannot be traced, it is traced again at each call.
"""

from __future__ import annotations

import dis
import functools
import types
import weakref
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from srcgrad.boundary import Changed, from_outside, is_fault
from srcgrad.cache import PROGRAMS, Known, Trivial, code_of, find_captures, watching
from srcgrad.compiler import Runner, backend_name, compiled
from srcgrad.errors import SrcgradError
from srcgrad.ir.collector import without_gc
from srcgrad.ir.core import Function, Operation
from srcgrad.ir.locks import new_lock
from srcgrad.ir.ops.effects import is_unforeseen
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.types import ArrayType
from srcgrad.signatures import argument_reason
from srcgrad.tracing.aliasing import AliasPattern
from srcgrad.tracing.capture import Uncacheable
from srcgrad.tracing.conversion.state import MustRetrace
from srcgrad.tracing.function import LeafSpec, Traced, as_array, leaf_spec
from srcgrad.tracing.guards import Guard, Guide, has_effect
from srcgrad.tracing.jax_arrays import to_numpy
from srcgrad.tracing.room import with_more_room
from srcgrad.tracing.trace import Unread
from srcgrad.ways import reason_as_it_is

if TYPE_CHECKING:
    from srcgrad.building import Job, Program
    from srcgrad.transformed import Transformed
    from srcgrad.ways import Verdict, Way

LIMIT: Final = 8
"""How many paths of one entry are compiled."""
PATIENCE: Final = 32
"""After how many calls in a row that took none of all paths it counts as settled that later ones take none either."""
MOST_COMPARED: Final = 1 << 20
"""Of fewer bytes than these machine code asks whether they are what they were; it holds a copy of them."""
SAME: Final = frozenset(
    {"abs", "broadcast", "cast", "ceil", "concatenate", "equal", "floor", "greater", "greater_equal", "less"}
    | {"less_equal", "maximum", "minimum", "mul", "neg", "not_equal", "reduce_max", "reduce_min", "reshape", "rint"}
    | {"select", "slice", "transpose", "trunc"}
)
"""Ops that give the same floats on all backends."""
LOCK: Final = new_lock()
NO_PATH: Final = object()
"""What `run_path` returns where the call is to be traced again."""


class Path(NamedTuple):
    """A program, and the questions that must have the same answers."""

    number: int
    program: Program
    asked: Runner | None
    """Computes the guarded values from the program's inputs; None if Python asked nothing."""
    answers: tuple[Any, ...]
    identity: Hashable
    deciding: tuple[int, ...] | None
    """The inputs that the answers follow from, if later calls are likely to have the same ones."""

    def holds(self, inputs: Sequence[Any]) -> bool:
        if self.asked is None:
            return True
        try:
            found = self.asked(inputs[: len(self.program.traced)])
        except Exception as error:  # what this path computes may fail where another path is taken
            if from_outside(error) and not isinstance(error, MemoryError):
                raise
            return False
        return all(map(is_answer, found, self.answers))


def is_answer(number: Any, answer: Any) -> bool:
    """Whether Python got this answer: arrays of one type, and as such compared without a look at what they are."""
    same = number == answer
    return bool(same.all() if type(same) is np.ndarray else same)


class Paths:
    """The paths of one entry, safe under threads."""

    def __init__(self) -> None:
        self.found: tuple[Path, ...] = ()
        self.errors = 0
        self.missed = 0
        """How many calls in a row took none of these paths, and were given no new one."""
        self.closed: str | None = None
        """Why no path is traced any more."""
        self.answering: Answering | None = None
        self.final = False
        """Whether no other way of tracing is to be tried either."""

    def hit(self, inputs: Sequence[Any]) -> Path | None:
        for path in self.found:
            if path.holds(inputs):
                self.missed = 0
                if self.found[0] is not path:
                    with LOCK:
                        self.found = (path, *(other for other in self.found if other is not path))
                return path
        return None

    def open(self) -> bool:
        """Whether more paths are traced in this way, as far as this way knows."""
        return self.closed is None and self.errors < LIMIT

    def add(self, path: Path) -> None:
        """Keep a path, unless another thread has found it meanwhile or there are enough."""
        with LOCK:
            if len(self.found) < LIMIT and all(other.identity != path.identity for other in self.found):
                self.found = (path, *self.found)


class Entry(NamedTuple):
    """One way of tracing a call, and the paths that are known of it."""

    way: Way
    captures: Known
    hidden: Sequence[Any]
    aliases: AliasPattern | None
    paths: Paths
    key: Hashable

    def answering(self, job: Job) -> Answering:
        """What answers calls like this one; one object for all of them."""
        if self.paths.answering is None:
            places = traced_places((*job.leaves, *self.hidden))
            self.paths.answering = Answering(self._replace(hidden=()), places)
        return self.paths.answering


Given = tuple[tuple[Any, ...], dict[str, Any]]
"""The arguments of a call."""


def entries(transformed: Transformed, job: Job, ways: Sequence[Way]) -> Iterator[Entry]:
    """Those of the ways in which paths of this call may be traced."""
    if not transformed.takes_paths():
        return
    holder = job.holder(transformed.f)
    for way in ways:
        found = find_captures(holder, way.floats_static, way.converted, job.treedef)
        if isinstance(found, Uncacheable):
            continue
        captures, (hidden, aliases) = found
        if not way.converted and (has_handlers(holder, captures) or reason_as_it_is(holder, captures)):
            continue
        if argument_reason(captures, job.leaves, job.treedef) is not None:
            continue
        key = ("paths", way.trusting, transformed.program_key(captures, hidden, aliases, job, way))
        paths = PROGRAMS.get(key)
        yield Entry(way, captures, hidden, aliases, paths or Paths(), key)


def has_handlers(function: Any, captures: Known) -> bool:
    """Whether code that is run as it is has ``try`` or ``with``: errors on values would be raised in the program."""
    codes = [] if isinstance(captures, Trivial) else captures.code_key
    return any(handles(code) for code in (code_of(function), *codes) if isinstance(code, types.CodeType))


def handles(code: types.CodeType) -> bool:
    if code.co_exceptiontable and any(i.opname == "PUSH_EXC_INFO" for i in dis.get_instructions(code)):
        return True
    return any(handles(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))


def inputs_of(job: Job, hidden: Sequence[Any], places: Sequence[int] | None = None) -> list[Any]:
    """The numbers of the program's inputs on the host, where guards are computed whatever the backend is.

    ``places``: which of the leaves these are, where that is known.
    """
    leaves = (*job.leaves, *hidden)
    chosen = traced_places(leaves) if places is None else places
    return [to_numpy(as_array(leaves[place])) for place in chosen]


def traced_places(leaves: Sequence[Any]) -> list[int]:
    """Which leaves are inputs of a program."""
    return [place for place, leaf in enumerate(leaves) if leaf_spec(leaf) is not None]


def run_path(transformed: Transformed, job: Job, ways: Sequence[Way], given: Given | None = None) -> Any:
    """The result by a compiled path, traced and compiled now if need be; `NO_PATH` where there can be none.

    ``ways``: those in which what the function reads can be watched, the preferred one first. ``given``: what is called
    with, where later calls may be answered in machine code.
    """
    known: list[Entry] = []
    for entry in entries(transformed, job, ways):
        inputs = inputs_of(job, entry.hidden)
        path = entry.paths.hit(inputs)
        if path is not None:
            if given is not None:
                counted(transformed, given, job, entry, path, inputs)
            return transformed.execute(path.program, job, entry.hidden, entry.captures)
        known.append(entry)
    for entry in openings(known):
        PROGRAMS.put(entry.key, entry.paths)
        path = new_path(transformed, job, entry, 1 + count(known))
        if path is not None:
            return transformed.execute(path.program, job, entry.hidden, entry.captures)
    for entry in known:
        entry.paths.missed += 1
    return NO_PATH


def counted(transformed: Transformed, given: Given, job: Job, entry: Entry, path: Path, inputs: Sequence[Any]) -> None:
    """One more call on a path. Machine code answers later ones as a whole, or finds all but the path."""
    if not path.program.native or job.extras:
        return
    contents = None if path.deciding is None else [(place, inputs[place]) for place in path.deciding]
    if contents is not None and sum([held.nbytes for _, held in contents]) < MOST_COMPARED:
        transformed.one_call_more(*given, job, entry.captures, path.program, contents)
    else:
        transformed.one_call_more(*given, job, entry.captures, path.program, by_paths=entry.answering(job))


@dataclass(frozen=True, eq=False)
class Answering:
    """Answers calls with leaves of certain types of which everything but the path has been found the same."""

    entry: Entry
    places: Sequence[int]

    def __call__(self, transformed: Transformed, job: Job, hidden: Sequence[Any]) -> Any:
        path = self.entry.paths.hit(inputs_of(job, hidden, self.places))
        if path is not None:
            return transformed.execute(path.program, job, hidden, self.entry.captures)
        args, kwargs = job.given
        return transformed.dispatch(transformed.job(args, kwargs), args, kwargs)


def run_failing(transformed: Transformed, job: Job, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call in which something fails in a ``try``: by a path that asks what does, or traced again."""
    ways = [way._replace(trusting=False) for way in transformed.ways()]
    result = NO_PATH
    if not transformed.writes_back:  # or else the function itself is as fast
        try:
            result = watching(transformed.f, lambda: run_path(transformed, job, ways))
        except Changed:
            pass
        except RuntimeError as error:  # of a path that would have stored attributes behind what fails
            if not is_unforeseen(error):
                raise
    if result is not NO_PATH:
        return result
    transformed.learned.failing += 1
    few = transformed.learned.failing <= LIMIT
    return transformed.retrace(job, args, kwargs, "something fails in a try at many calls, which have no program", few)


def shortcut(transformed: Transformed, args: tuple[Any, ...], job: Job, verdicts: Sequence[Verdict]) -> None:
    """Let later calls on such arrays try the paths that there are before they look for anything else."""
    if not transformed.remember_verdicts(args, verdicts):
        return
    known = [entry for entry in entries(transformed, job, [verdict.way for verdict in verdicts]) if entry.paths.found]
    held = weakref.ref(transformed)  # or the object would hold itself
    places = [traced_places((*job.leaves, *entry.hidden)) for entry in known]
    form = job._replace(leaves=[])  # arguments of the same types are the leaves themselves

    def run(*given: Any) -> Any:
        itself = held()
        assert itself is not None
        asked = itself.job(given, {}) if form.detail is not None else form._replace(leaves=list(given))
        for entry, chosen in zip(known, places, strict=True):
            bound = entry.captures.bind(itself.f)
            if bound is None:
                break
            inputs = inputs_of(asked, bound[0], chosen)
            path = entry.paths.hit(inputs)
            if path is not None:
                counted(itself, (given, {}), asked, entry._replace(hidden=bound[0]), path, inputs)
                return itself.execute(path.program, asked, bound[0], entry.captures)
        return itself.dispatch(asked, given, {})

    transformed.remember_verdicts(args, verdicts, run)


def settled(transformed: Transformed, job: Job, ways: Sequence[Way]) -> bool:
    """Whether later calls take no path either, as far as is known."""
    known = list(entries(transformed, job, ways))
    if next(openings(known), None) is not None or any(entry.paths.errors for entry in known):
        return False
    return all(not entry.paths.found or entry.paths.missed >= PATIENCE for entry in known)


def count(known: Sequence[Entry]) -> int:
    return sum(len(entry.paths.found) for entry in known)


def openings(known: Sequence[Entry]) -> Iterator[Entry]:
    """The ways in which a path of this call is to be traced, until one works: none where there are enough."""
    for entry in known:
        if entry.paths.final or count(known) >= LIMIT:
            return
        if entry.paths.open():
            yield entry
            if entry.paths.final:
                return


def failing(transformed: Transformed, job: Job, ways: Sequence[Way]) -> bool:
    """Whether tracing a path raised an error of the user's: the re-trace of this call is no verdict on others."""
    return any(entry.paths.errors for entry in openings(list(entries(transformed, job, ways))))


def new_path(transformed: Transformed, job: Job, entry: Entry, number: int) -> Path | None:
    """Trace the path of this call, compile and keep it; the verdict where that cannot be is kept too."""
    paths = entry.paths
    try:
        with without_gc():
            traced, guards, specs = trace_path(transformed, job, entry)
            built = transformed.build_checked(traced, job, specs)
            program = transformed.compile_program(traced, built, specs, job, entry.hidden)
            function = guard_function(traced, guards)
            asked = compiled(function, guard_backend(transformed, function)) if guards else None
    except SrcgradError as error:
        if is_fault(error):
            raise
        error.with_traceback(None)
        paths.closed, paths.final = error.message, isinstance(error, MustRetrace)
        return None
    except Unread:
        raise
    except Exception as error:  # the user's own, which tracing again raises
        if is_fault(error) or from_outside(error):
            raise
        error.with_traceback(None)
        paths.errors += not isinstance(error, RecursionError)  # which is about the stack of this call
        return None
    answers = tuple(guard.answer for guard in guards)
    identity = (str(function), *(np.asarray(answer).tobytes() for answer in answers))
    path = Path(number, program, asked, answers, identity, deciding_inputs(function, program.traced, len(job.leaves)))
    paths.add(path)
    return path


def guard_function(traced: Traced, guards: Sequence[Guard]) -> Function:
    function = traced.function
    operations = [operation for operation in function.operations if not has_effect(operation)]
    return dce(Function(f"{function.name}.guards", function.params, operations, [guard.value for guard in guards]))


def deciding_inputs(guards: Function, traced: Sequence[int], own: int) -> tuple[int, ...] | None:
    """The inputs that all answers follow from, if later calls may have the same: whole numbers, and captured arrays.

    ``own``: how many leaves are the call's.
    """
    used = {value for operation in guards.walk() for value in operation.operands} | set(guards.results)
    places = [place for place, param in enumerate(guards.params) if param in used]
    for place in places:
        type = guards.params[place].type
        whole = isinstance(type, ArrayType) and type.rank and (type.dtype.kind in "biu" or traced[place] >= own)
        if not whole:
            return None
    return tuple(places)


def guard_backend(transformed: Transformed, function: Function) -> str:
    """The backend that computes guards: NumPy, which gave the first answers, unless all others give the same.

    Machine code takes a tenth of the time, and computes with whole numbers what NumPy does; of floats it does so where
    each result has one rounding at most.
    """

    def is_same(operation: Operation) -> bool:
        values = (*operation.operands, *operation.results)
        whole = all(isinstance(value.type, ArrayType) and value.type.dtype.kind in "biu" for value in values)
        return whole or operation.op.name in SAME

    if not function.operations or backend_name(transformed.backend) != "llvm":
        return "numpy"
    return "llvm" if all(map(is_same, function.walk())) else "numpy"


def trace_path(
    transformed: Transformed, job: Job, entry: Entry
) -> tuple[Traced, list[Guard], Sequence[LeafSpec | None]]:
    """The trace of the path that this call takes, valid where the guards hold.

    Raises:
        NeedsConcrete: Python asks for more than guards can answer.
    """
    leaves = [*job.leaves, *entry.hidden]
    specs = [leaf_spec(leaf) for leaf in leaves]
    rebuilt = transformed.rebuilding(entry.captures, entry.aliases, entry.hidden, job)
    converted, trusting = entry.way.converted, entry.way.trusting

    def attempt() -> tuple[Traced, list[Guard], Sequence[LeafSpec | None]]:
        guide = Guide(inputs_of(job, entry.hidden))
        numbers = [None] * len(guide.numbers)
        try:
            traced = transformed.trace(
                job, leaves, specs, False, numbers, rebuilt, converted, guide=guide, trusting=trusting
            )
        finally:
            guide.close()
        return traced, guide.guards, specs

    return with_more_room(functools.partial(transformed.lifting, attempt)) if converted else attempt()


class Described(NamedTuple):
    """The path of a call, for people who want to read it."""

    entry: Entry
    traced: Traced
    guards: tuple[Guard, ...]
    specs: Sequence[LeafSpec | None]
    number: int


def describe_path(transformed: Transformed, job: Job) -> Described | None:
    """The path that a call takes; nothing is compiled or kept. None where it would be traced again."""
    known = list(entries(transformed, job, transformed.ways()))
    hits = [(entry, path) for entry in known if (path := entry.paths.hit(inputs_of(job, entry.hidden))) is not None]
    chosen = [entry for entry, _ in hits[:1]] or list(openings(known))
    for entry in chosen:
        try:
            traced, guards, specs = trace_path(transformed, job, entry)
        except MustRetrace as error:
            error.with_traceback(None)
            return None
        except Unread:
            raise
        except Exception as error:  # a way in which this call has no path
            if is_fault(error) or from_outside(error):
                raise
            error.with_traceback(None)
            continue
        return Described(entry, traced, tuple(guards), specs, hits[0][1].number if hits else 1 + count(known))
    return None
