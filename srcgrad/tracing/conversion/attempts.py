"""``try`` around what fails where values say so.

The whole statement is run while tracing, more than once where something in its body may fail: that is a *question*,
whose condition is a traced value. The statement becomes an ``if`` on the condition; in either branch it is run again,
and the question is answered. Where the answer is that it fails, the error is raised while tracing, so that Python
itself finds the handler. A condition inside the body under which an error is raised is a question in the same way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.boundary import from_outside
from srcgrad.ir.core import Attrs, Operation, Value
from srcgrad.ir.opdef import Op
from srcgrad.tracing.affine import affine_of
from srcgrad.tracing.conversion.branches import if_
from srcgrad.tracing.conversion.effects import fail_if, may_raise, raised_again
from srcgrad.tracing.conversion.marks import Mark
from srcgrad.tracing.conversion.state import Inside, MustRetrace, Passing, Snapshot, State
from srcgrad.tracing.conversion.trust import acts, emit_trust, is_trust, is_untimely, may_trust
from srcgrad.tracing.intervals import interval_of
from srcgrad.tracing.storage import Noted
from srcgrad.tracing.trace import CURRENT, RaisingSite, Refused, Trace, current_span, current_trace
from srcgrad.tracing.tracer import Tracer, emit, from_value

MOST_QUESTIONS: Final = 16
"""How many questions of one ``try`` are answered in one program, one within the other."""


INSIDE: Final = "an error inside a try depends on a traced value, in a loop or another function"


class Question(Passing):
    """Something may fail under a condition that this run has no answer to."""

    def __init__(self, attempt: Attempt, condition: Tracer) -> None:
        super().__init__()
        self.attempt, self.condition = attempt, condition


class Attempt:
    """One run of a ``try``; a context manager around its body."""

    managing = False
    """Whether the body cannot be run again: `managing`."""

    def __init__(
        self, trace: Trace, answers: tuple[bool, ...], kinds: tuple[type[BaseException], ...], trusting: bool = False
    ) -> None:
        self.trace = trace
        self.catching = Catching(trace, kinds)
        self.answers = answers
        self.trusting = trusting
        """Whether it is taken that nothing fails: see `trust`."""
        self.asked = 0
        self.inside = False
        """Whether something was asked in a block inside of the body, which no other run can answer."""
        self.raised: list[BaseException] = []
        """The errors raised in the body on behalf of the program."""
        self.start = 0
        self.cautious = False

    def ask(self, condition: Tracer) -> bool:
        """Whether this run is to go on as where the condition holds."""
        self.asked += 1
        if self.asked > len(self.answers):
            raise Question(self, condition)
        return self.answers[self.asked - 1]

    def trust(self, condition: Tracer, fails: bool) -> None:
        """Take it that the condition is not what something fails with."""
        self.asked += 1
        self.inside = self.inside or current_trace() is not self.trace
        emit_trust(condition, fails)

    def begins_anew(self) -> bool:
        """Whether the ``try`` will be run as one in which nothing fails, where this run cannot go on."""
        return not self.trusting and not self.answers and may_trust(self.trace)

    def __enter__(self) -> None:
        trace = self.trace
        self.start, self.cautious = len(trace.builder.operations), trace.cautious
        trace.attempts.append(self)
        trace.cautious = True
        self.catching.__enter__()

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        trace = self.trace
        trace.attempts.remove(self)
        trace.cautious = self.cautious
        self.catching.__exit__()
        if isinstance(error, Passing) or (error is not None and from_outside(error)):
            return
        for operation in trace.builder.operations[self.start :]:
            if is_open(operation, trace.cleared, False):
                raise MustRetrace("a try holds operations that may fail when the program runs")


def is_open(operation: Operation, cleared: set[Value], inside: bool) -> bool:
    """Whether an operation may raise an error that nothing has been asked of. ``inside``: of a block in the body."""
    if operation.regions:
        return any(is_open(inner, cleared, True) for region in operation.regions for inner in region.operations)
    if not may_raise(operation):
        return False
    return (inside and not operation.results) or not all(result in cleared for result in operation.results)


class Finishing:
    """A context manager around what stands under ``finally``.

    A program that raises an error goes no further: where what stands there has an effect, as to append to a list, it
    would not have that.
    """

    reason = "a finally has an effect, behind what may fail"

    def __init__(self) -> None:
        self.trace = CURRENT.get()
        self.begins = self.ends = 0
        if self.trace is not None:
            self.begins = len(self.trace.builder.operations)

    def __enter__(self) -> None:
        if self.trace is not None:
            self.ends = len(self.trace.builder.operations)

    def __exit__(self, kind: Any, error: Any, place: Any) -> None:
        if self.trace is None or self.trace.concrete or kind is not None:
            return
        operations = self.trace.builder.operations
        failing = any(self.fails(operation, self.trace.sites) for operation in operations[self.begins : self.ends])
        if failing and any(map(acts, operations[self.ends :])):
            raise MustRetrace(self.reason)

    def fails(self, operation: Operation, sites: Sequence[Any]) -> bool:
        """Whether it may raise an error, of which Python goes on to what is watched: not what prints or appends."""
        if operation.regions:
            return any(self.fails(inner, sites) for region in operation.regions for inner in region.operations)
        if operation.op.name == "host_call":
            return isinstance(sites[operation.attrs["site"]], RaisingSite)
        return may_raise(operation)


class Leaving(Finishing):
    """The same around what a context manager does when it is left, for the errors that the function itself raises.

    Managers that take times stand around solvers, of which few fail: these stay programs.
    """

    reason = "a with has an effect where it is left, behind what may fail"

    def fails(self, operation: Operation, sites: Sequence[Any]) -> bool:
        raises = operation.regions or operation.op.name in ("check", "host_call")
        return bool(raises) and super().fails(operation, sites)


class Catching:
    """The body of a ``try``: what its handlers take. Where numbers are known, errors are raised at once."""

    def __init__(self, trace: Trace | None, kinds: tuple[type[BaseException], ...]) -> None:
        self.trace, self.kinds = trace, kinds
        self.before: tuple[type[BaseException], ...] = ()

    def __enter__(self) -> None:
        if self.trace is not None:
            self.before = self.trace.catching
            self.trace.catching = (*self.before, *self.kinds)

    def __exit__(self, *error: Any) -> None:
        if self.trace is not None:
            self.trace.catching = self.before


def kinds_of(handlers: Callable[[], Any]) -> tuple[type[BaseException], ...]:
    """The classes of errors that handlers take: all of them, where one names none."""
    try:
        waiting = [BaseException if kind is None else kind for kind in handlers()]
    except Exception:  # which Python meets where it looks for a handler
        return ()
    found: list[type[BaseException]] = []
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, tuple):
            waiting += kind
        elif isinstance(kind, type) and issubclass(kind, BaseException):
            found.append(kind)
    return tuple(found)


class Before:
    """What a trace and the variables were before a statement that may have to be taken back."""

    def __init__(self, trace: Trace, get: Any, put: Any, names: tuple[str, ...], visible: Any) -> None:
        self.trace = trace
        self.refused: Refused | None = None
        self.state: State | None = None
        self.snapshot: Snapshot | None = None
        try:
            self.state = State(get, put, names, visible)
            self.snapshot = self.state.capture()
        except Refused as error:  # of no account unless there is a question
            self.refused = error
        self.mark = len(trace.builder.operations)
        self.overlay = dict(trace.overlay)
        self.outermost = trace.journal is None
        if trace.journal is None:
            trace.journal = []
        self.written = len(trace.journal)
        self.tables = (self.overlay, Memories(trace.journal))
        trace.tables.append(self.overlay)
        if self.outermost:
            trace.tables.append(self.tables[1])

    def end(self) -> None:
        tables = self.trace.tables
        tables[:] = [table for table in tables if table is not self.tables[0] and table is not self.tables[1]]
        if self.outermost:
            self.trace.journal = None

    def undo(self) -> None:
        """Take back what the run of the ``try`` did.

        Raises:
            Refused: what it did cannot be taken back.
        """
        trace = self.trace
        if self.refused is not None:
            raise Refused(f"an error inside a try depends on a traced value, and {self.refused.message}")
        if any(map(acts, trace.builder.operations[self.mark :])):
            raise MustRetrace("a try has an effect before it may fail")
        self.restore()

    def restore(self) -> None:
        """Give the memory and the variables what they held."""
        trace = self.trace
        assert self.state is not None and self.snapshot is not None and trace.journal is not None
        while len(trace.journal) > self.written:
            trace.journal.pop().restore()
        trace.overlay.clear()
        trace.overlay.update(self.overlay)
        self.state.restore(self.snapshot)


class Memories:
    """The memory in a journal, as a table of the trace: `aliases.tables`."""

    def __init__(self, journal: list[Noted]) -> None:
        self.journal = journal

    def __contains__(self, storage: object) -> bool:
        return any(noted.storage is storage for noted in self.journal)


def attempt(
    run: Callable[[Any], None],
    handlers: Callable[[], Any],
    get: Any,
    put: Any,
    names: tuple[str, ...],
    visible: Callable[[], tuple[Any, ...]],
) -> None:
    """The statement ``try``: ``run(context)`` is the statement, with the context around its body."""
    trace, kinds = CURRENT.get(), kinds_of(handlers)
    if trace is None or trace.concrete:
        run(Catching(trace, kinds))
        return
    explore((), run, kinds, get, put, names, visible)


def explore(
    answers: tuple[bool, ...],
    run: Callable[[Any], None],
    kinds: tuple[type[BaseException], ...],
    get: Any,
    put: Any,
    names: tuple[str, ...],
    visible: Any,
) -> None:
    """Run a ``try`` with the answers to its first questions; where there are more, in the branches of an ``if``."""
    trace = current_trace()
    before = Before(trace, get, put, names, visible)
    try:
        condition = asked_in(Attempt(trace, answers, kinds), run, before)
    finally:
        before.end()
    if condition is None:
        return

    def branch(answer: bool) -> Callable[[], None]:
        return lambda: explore((*answers, answer), run, kinds, get, put, names, visible)

    if_(condition, branch(True), branch(False), get, put, names, visible)


def asked_in(here: Attempt, run: Callable[[Any], None], before: Before) -> Tracer | None:
    """The first question of a ``try`` that has no answer, of which nothing is done then; None where it is done."""
    try:
        run(here)
        return None
    except Question as question:
        if question.attempt is not here:
            raise
        if here.trusting:
            raise Untrusted from None
        if len(here.answers) >= MOST_QUESTIONS:
            raise Refused("a try may fail in more than 16 ways, depending on traced values") from None
        before.undo()
        condition = question.condition
    except Inside as inside:
        if inside.attempt is not here:
            raise
        if here.trusting:
            raise Untrusted from None
        if not here.begins_anew():
            raise Refused(INSIDE) from None
        before.undo()
        condition = None
    except Exception as error:
        if not any(error is known for known in here.raised):
            raise
        found = raised_again(error)
        if found is error:
            raise
        raise found from None
    if here.begins_anew() and trusted(here, run, before):
        return None
    if condition is None:
        raise Refused(INSIDE)
    return condition


class Untrusted(Passing):
    """What is certain to fail in a ``try`` is met in a run that takes it that nothing does."""


def trusted(asking: Attempt, run: Callable[[Any], None], before: Before) -> bool:
    """Run a ``try`` as one in which nothing fails; nothing is done where it has few questions, which are answered."""
    trace = asking.trace
    mark, said = Mark(trace), len(trace.rolled)
    here = Attempt(trace, (), asking.catching.kinds, trusting=True)
    try:
        asked_in(here, run, before)
        kept = here.asked > MOST_QUESTIONS or here.inside
    except (Untrusted, Refused):
        kept = False
    if kept and not is_untimely(trace.builder.operations[mark.operations :], False, is_trust, acts)[0]:
        place = current_span()
        where = "" if place is None else f" at {place.label()}"
        trace.rolled.append(
            f"the try{where}: this program is for calls in which nothing fails there, others have paths"
        )
        return True
    before.restore()
    mark.back()
    del trace.rolled[said:]
    return False


# --- operations that fail -------------------------------------------------------------------------


def singular(operands: Sequence[Tracer], attrs: Attrs) -> list[tuple[Any, BaseException]]:
    sign: Any = np.linalg.slogdet(operands[0])[0]
    return [(np.any(sign == 0), np.linalg.LinAlgError("Singular matrix"))]


def zero_pivot(operands: Sequence[Tracer], attrs: Attrs) -> list[tuple[Any, BaseException]]:
    if attrs["unit"]:
        return []
    pivots: Any = np.diagonal(operands[0], axis1=-2, axis2=-1)
    return [(np.any(pivots == 0), np.linalg.LinAlgError("singular matrix: resolution failed at a diagonal element"))]


def indefinite(operands: Sequence[Tracer], attrs: Attrs) -> list[tuple[Any, BaseException]]:
    found = emit("is_indefinite", operands[0])
    return [(np.any(found), np.linalg.LinAlgError("Matrix is not positive definite"))]


def without_solution(operands: Sequence[Tracer], attrs: Attrs) -> list[tuple[Any, BaseException]]:
    """Of finite numbers, a system of a banded matrix has nan for all of its solution if it has none."""
    if not attrs["strict"] or not operands[1].size:
        return []
    found = emit("banded_solve", *operands, **{**attrs, "strict": False})
    finite = [np.all(np.isfinite(operand), axis=(-2, -1)) for operand in operands]
    failed: Any = np.any(np.all(np.isnan(found), axis=(-2, -1)) & finite[0] & finite[1])
    message = "the matrix is not positive definite" if attrs["definite"] else "singular matrix"
    return [(failed, np.linalg.LinAlgError(message))]


def lies_within(index: Tracer, size: int) -> bool:
    """Whether indices surely are some of an axis of this length, by the loops that count them or what made them."""
    place = affine_of(index)
    if place is not None:
        return -size <= place.least() and place.most() < size
    low, high = interval_of(index.read())
    return -size <= low and high < size


def out_of_bounds(array: Tracer, operands: Sequence[Tracer], attrs: Attrs) -> list[tuple[Any, BaseException]]:
    found: list[tuple[Any, BaseException]] = []
    for axis, index in enumerate(operands, start=attrs["axis"]):
        size = array.shape[axis]
        if index.number() is not None or (isinstance(size, int) and lies_within(index, size)):
            continue  # NumPy has looked at it, or it cannot be elsewhere
        outside: Any = np.any((index < -size) | (index >= size))
        found.append((outside, IndexError(f"index is out of bounds for axis {axis} with size {size}")))
    return found


FAILING: Final[dict[str, Callable[[Sequence[Tracer], Attrs], list[tuple[Any, BaseException]]]]] = {
    "solve": singular,
    "inv": singular,
    "triangular_solve": zero_pivot,
    "cholesky": indefinite,
    "banded_solve": without_solution,
    "gather": lambda operands, attrs: out_of_bounds(operands[0], operands[1:], attrs),
    "scatter_set": lambda operands, attrs: out_of_bounds(operands[0], operands[2:], attrs),
    "scatter_add": lambda operands, attrs: out_of_bounds(operands[0], operands[2:], attrs),
}
"""Operations that may raise an error when the program runs: under which conditions, and the errors."""


def as_it_is(error: BaseException) -> BaseException:
    return error


def ask_first(op: Op, operands: Sequence[Value], attrs: Attrs) -> None:
    """In the body of a ``try``, ask whether an operation is going to fail."""
    find = FAILING.get(op.name)
    if find is None:
        return
    for condition, error in find([from_value(operand) for operand in operands], attrs):
        fail_if(condition, functools.partial(as_it_is, error))
