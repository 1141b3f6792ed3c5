"""A trace in progress: the builder it emits into, what it has lifted from outside, and what it has written.

Traces nest as transforms do. A value of an enclosing trace that an inner function closes over becomes a parameter of
the inner Function (it is *lifted*), so that every Function is closed and derivatives with respect to the inner
arguments never see the outer ones: there is no perturbation confusion.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from threading import get_ident
from typing import Any, Final

import numpy as np

from srcgrad.backends.numpy.evaluate import evaluate_operation
from srcgrad.errors import ConcretizationError, LeakedTracerError
from srcgrad.ir.core import NO_ATTRS, Attrs, Builder, Literal, Operation, Region, Value, literal
from srcgrad.ir.opdef import REGISTRY, Op
from srcgrad.ir.source import Span, internal_frame, is_storing, user_span
from srcgrad.ir.types import ArrayType, TapeType
from srcgrad.tracing.guards import Guide
from srcgrad.tracing.kept import KeptTape, require_readable
from srcgrad.tracing.storage import Classed, Noted, Rebound, Storage, Use, Watched

STORES: Final = "="
"""What a trace asks for by `Unread` that stores attributes of captured objects."""
REBINDING: Final = "global"
"""What it asks for where it comes to a block that was passed over since it assigns globals; no name of an attribute."""
FOLD_LIMIT = 64
"""Operations on literals whose result has at most this many elements are evaluated while tracing."""


class NeedsConcrete(ConcretizationError):
    """An abstract trace met Python code that needs the value of a traced array (``if x > 0``).

    The traces remember it: user code may catch this error, and what it does then is not what it would do with the
    value.
    """

    def __init__(self, message: str, **options: Any) -> None:
        super().__init__(message, **options)
        self.storing = is_storing(sys._getframe(1))
        trace = CURRENT.get()
        while trace is not None and not trace.concrete:
            trace.needed = trace.needed or self
            trace = trace.parent


class Refused(NeedsConcrete):
    """A construct that cannot be part of one program; the message names it."""


class Unread(Exception):
    """An abstract trace reads attributes by names that are not watched, or what a cache gives: it begins again when it
    is.

    The traces remember it: it may be raised where they end, which then know of more names.
    """

    def __init__(self, name: Hashable) -> None:
        super().__init__(f"{name!r} is not watched")
        self.names = {name}
        trace = CURRENT.get()
        while trace is not None and not trace.concrete:
            if trace.unread is not None:
                self.names |= trace.unread.names
            trace.unread = self
            trace = trace.parent


class RaisingSite:
    """The callable of an operation that raises an error or does nothing: for many examples, in any order."""


class UnboundSite(RaisingSite):
    """The callable of an operation that asks whether a variable is bound."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, bound: Any) -> None:
        if not bound:
            if self.name.endswith("]"):  # see `conversion.histories`
                raise IndexError("list index out of range")
            raise UnboundLocalError(
                f"cannot access local variable {self.name!r} where it is not associated with a value"
            )


Watch = Callable[[Operation, Sequence[Any]], Sequence[Any]]
"""Runs an operation of a concrete trace on the numbers of its operands, and looks at what comes out."""
WATCH: ContextVar[Watch | None] = ContextVar("srcgrad_watch", default=None)
"""What watches the operations of the concrete traces that begin in this thread or task."""


class TracingBuilder(Builder):
    """Emits what user code does; knows the numbers where they can be known.

    In a *concrete* trace every value's number is known, since parameters come with theirs. In an abstract one only
    operations on literals are evaluated.
    """

    __slots__ = ("concrete", "known", "watch")

    def __init__(self, concrete: bool) -> None:
        super().__init__()
        self.concrete = concrete
        self.known: dict[Value, Any] = {}
        self.watch = WATCH.get() if concrete else None

    def number(self, value: Value) -> Any:
        """The array or scalar a value is known to hold, or None."""
        if isinstance(value, Literal):
            shape = value.type.static_shape
            return np.broadcast_to(value.value, shape) if shape else np.asarray(value.value)[()]
        return self.known.get(value)

    def emit_operation(
        self, op: Op, operands: Sequence[Value], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Operation:
        operation = super().emit_operation(op, operands, attrs, regions)
        if self.concrete and not op.effect and operation.results[0] not in self.known:
            numbers = [self.number(operand) for operand in operation.operands]
            if any(number is None for number in numbers):  # a cotangent of a custom rule, not known yet
                return operation
            types = [operand.type for operand in operation.operands]
            results: Sequence[Any]
            if self.watch is not None:
                results = self.watch(operation, numbers)
            else:
                results = evaluate_operation(
                    op, numbers, attrs, types, [result.type for result in operation.results], regions
                )
            self.known.update(zip(operation.results, results, strict=True))
        return operation


class OfOneProgram:
    """What the traces of one program share, which the first of them makes."""

    def __init__(self, parent: OfOneProgram | None) -> None:
        self.cleared: set[Value] = set() if parent is None else parent.cleared
        """The results of operations of which this has been asked."""
        self.sites: list[Any] = [] if parent is None else parent.sites
        """What the program's ``host_call`` operations call, by number."""
        self.twins: dict[type, type] = {} if parent is None else parent.twins
        """Twins of classes whose methods read what the trace has in place of the user's."""
        self.members: dict[tuple[type, str], Any] = {} if parent is None else parent.members
        """These methods, by the class that they are written in and their names: what ``super()`` finds."""
        self.rolled: list[str] = [] if parent is None else parent.rolled
        """What became of the loops, for `explain`."""
        self.sizes: dict[Any, int] = {} if parent is None else parent.sizes
        """Of loops, by their code: so many operations at least a trip has that is written out."""
        self.refusals: dict[Any, Any] = {} if parent is None else parent.refusals
        """Of loops, by their code: how often, and why, they were no region: `conversion.loops`."""
        self.answers: dict[Any, Any] = {} if parent is None else parent.answers
        """By question, what is read at each call of the program: `kept_results.Question`."""
        self.owners: dict[int, Any] = {} if parent is None else parent.owners
        """By identity the copies of captured objects whose methods have caches: `kept_results.Owner`."""
        self.unreached: dict[Any, frozenset[Any]] = {} if parent is None else parent.unreached
        """By code and file, the blocks of functions that the analysis has not looked at: `conversion.blocks`."""
        self.came_to: set[str] = set() if parent is None else parent.came_to
        """Why those are passed over that the trace comes to."""
        self.snapshots: weakref.WeakSet[Any] = weakref.WeakSet() if parent is None else parent.snapshots
        """What was noted of variables to be restored: no reference of the program's own."""
        self.states: weakref.WeakSet[Any] = weakref.WeakSet() if parent is None else parent.states
        """What the blocks in progress may change: no references of the program's own either."""


def warning_filters() -> Any:
    """The list of filters in force; ``warnings.catch_warnings`` puts another one there."""
    found = getattr(warnings, "_get_filters", None)
    return warnings.filters if found is None else found()


class Trace(OfOneProgram):
    """One function being traced."""

    def __init__(self, parent: Trace | None, concrete: bool, name: str, region: bool = False) -> None:
        super().__init__(parent)
        self.thread = get_ident()
        self.parent = parent
        self.concrete = concrete
        self.name = name
        self.region = region
        """Whether this is a block of the parent's function: a branch or the body of a loop."""
        self.deep_blocks = 0
        """How many blocks of it lie deep in others: `conversion.branches`."""
        self.converting: bool = parent is not None and parent.converting
        """Whether user functions are converted when they are called."""
        self.entangled: list[Storage] = []
        """What stands for memory that rows of a column may share with each other: see `Appending.columns`."""
        self.loop: Any = None
        """The loop of which this is a trip."""
        self.scope: Any = None
        """The loops that were met while it was traced, or that loop: `conversion.rounds`."""
        self.under: tuple[Value, bool] | None = None
        """The parent's condition that this block runs under, and whether it holds there."""
        self.counter: Any = None
        """That loop's index as a sum: `affine`."""
        self.attempts: list[Any] = []
        """The ``try`` statements with handlers whose bodies are in progress here."""
        self.cautious: bool = parent is not None and parent.cautious
        """Whether there are any, here or in the traces around: then it is asked whether an operation fails."""
        self.catching: tuple[type[BaseException], ...] = () if parent is None else parent.catching
        """What their handlers take."""
        self.failing: dict[Value, tuple[Any, ...]] = {}
        """Results of the user's own linear algebra and indices: of those that nothing reads the errors are asked for at
        the end. With the tracers of the indices.
        """
        self.trusting: bool = parent is not None and parent.trusting
        """Whether a call may be made again in which something fails in a ``try``, so that a program need not go on."""
        self.showing: Any = None if parent is None else parent.showing
        """The last text that was made which shows all digits of a traced value: `shown_texts`."""
        self.holders: dict[int, Any] = {} if parent is None else parent.holders
        """What has such texts written into it, as a StringIO, by its id, with the object and the text."""
        self.writes_back = False
        """Whether its arguments are changed for the caller as the function changes them."""
        self.journal: list[Noted] | None = None
        """What memory was before it was written, checked or linked, while a statement may have to be run again."""
        self.era = object()
        """What handles remember their values by: another one since some of what was emitted was taken back."""
        self.adopted: list[Any] = parent.adopted if region and parent is not None else []
        """Objects that are of the twins of their classes for now: `conversion.classes`."""
        self.outermost: Any = None
        """The outermost of short loops in each other whose first trip is in progress here: `conversion.loops`."""
        self.copies = 1
        """How many times what is traced is written out, for the loops around it that are."""
        self.attributes: frozenset[str] | None = None
        """The attributes that guards watch, if the function computes names of attributes."""
        self.results: frozenset[Any] = frozenset()
        """The results of functions with caches that are read at each call: `kept_results`."""
        self.watched: list[Watched] = []
        """Copies of captured containers and objects."""
        self.forgets = False
        """Whether a block assigns attributes before it raises an error, which nothing stores."""
        self.filters: Any = warning_filters() if parent is None else parent.filters
        """What becomes of warnings where the outermost trace begins."""
        self.appended: list[tuple[Storage, Value]] = [] if parent is None else parent.appended
        """The arrays that captured lists have from the program, with what they held then."""
        self.rebound: list[Rebound] = []
        """The globals that the function may assign."""
        self.rebinds = False
        """Whether all code that assigns globals was looked at."""
        self.acted = 0
        """Up to which of its operations none does anything for good; -1 where one does."""
        self.stored: dict[tuple[int, Any], Any] = {}
        """What the attributes of captured objects held when they were stored last, before the end: `effects`."""
        self.classes: list[Classed] = []
        """Classes whose attributes the function may assign, which are the caller's own."""
        self.chosen: list[tuple[Any, Any, str, Use | None]] = []
        """Objects of which a variable holds one or another, what they held then, and the variable."""
        self.lifting: bool = parent is not None and parent.lifting
        """Whether all arrays that NumPy makes here are traced constants: `conversion.fresh_arrays`."""
        self.picking: bool = parent is not None and parent.picking
        self.picked: set[int] = set()
        """Whether a copy may stand for one of several containers, at a traced place; and the copies, by identity."""
        self.tables: list[Any] = []
        """The tables of what a loop writes, which hold memory besides the program's own objects."""
        self.guide: Guide | None = None
        """What answers Python's questions after values, if this trace is of one path through the function."""
        self.origins: dict[Value, Value] = {}
        """The parent's value that a parameter stands for, where this function is inlined there."""
        self.alive = True
        self.builder = TracingBuilder(concrete)
        self.lifted: dict[Value, Value] = {}
        self.overlay: dict[Storage, Value] = {}
        self.captured: list[tuple[Value, Any]] = []
        self.needed: NeedsConcrete | None = None
        self.unread: Unread | None = None
        self.refused: ConcretizationError | None = None
        """The last conversion that was refused: NumPy may raise an error of its own instead of it."""
        self.swallowed: ConcretizationError | None = None
        """The first one that code of the user's has caught: what it made of that is not what the function does."""

    # --- values ----------------------------------------------------------------------------------
    def param(self, type: ArrayType, name: str | None, number: Any = None) -> Value:
        value = self.builder.param(type, name)
        if self.concrete and number is not None:
            self.builder.known[value] = number if isinstance(type, TapeType) else np.asarray(number, type.dtype)[()]
        return value

    def lift(self, outer: Value) -> Value:
        """The parameter of this trace that stands for a value of its parent."""
        if isinstance(outer, Literal):
            return outer
        found = self.lifted.get(outer)
        if found is None and self.parent is not None:
            found = Value(outer.type, None, outer.name)
            self.lifted[outer] = found
            if self.concrete:
                self.builder.known[found] = self.parent.builder.number(outer)
        if found is None:
            raise LeakedTracerError("a traced value of another trace was used here")
        return found

    def read(self, storage: Storage) -> Value:
        """The storage's current value, as a value of this trace."""
        if storage.pending is not None:
            self.require_bound(storage)
        return self.content(storage)

    def content(self, storage: Storage) -> Value:
        """What `read` gives, whether the variable is bound or not."""
        if storage.trace is self:
            return storage.value
        written = self.overlay.get(storage)
        if written is not None:
            return written
        if self.parent is None:
            raise leaked(storage.trace)
        return self.lift(self.parent.content(storage))

    def writer(self, storage: Storage) -> Trace:
        """The trace, this one or one around it, that the storage's current value is a value of."""
        trace: Trace = self
        while storage.trace is not trace and storage not in trace.overlay:
            if trace.parent is None:
                raise leaked(storage.trace)
            trace = trace.parent
        return trace

    def reached(self, value: Value, home: Trace) -> Value:
        """A value of a trace around this one, as a value of this one."""
        chain: list[Trace] = []
        trace: Trace | None = self
        while trace is not None and trace is not home:
            chain.append(trace)
            trace = trace.parent
        for inner in reversed(chain):
            value = inner.lift(value)
        return value

    def around(self) -> Iterator[Trace]:
        """This trace and those around it."""
        found: Trace | None = self
        while found is not None:
            yield found
            found = found.parent

    def require_bound(self, storage: Storage) -> None:
        """The check, when the program runs, that a variable is bound, or is not None."""
        assert storage.pending is not None
        name, predicate, none = storage.pending
        predicate = self.reached(predicate, storage.trace)
        if none and any(trace.attempts for trace in self.around()):
            raise Refused(f"{name!r} may be None in a try")
        if storage.trace is self:
            self.note(storage)
            storage.pending = None
        if none:
            self.builder.span = current_span()
            said = {"message": f"{name!r} is None", "kind": "TypeError"}
            self.builder.emit_operation(REGISTRY["check"], [predicate], said)
            return
        self.sites.append(UnboundSite(name))
        attrs = {"site": len(self.sites) - 1, "results": (), "raises": False}
        self.builder.span = current_span()
        self.builder.emit_operation(REGISTRY["host_call"], [predicate], attrs)

    def write(self, storage: Storage, value: Value) -> None:
        if storage.trace is self:
            self.note(storage)
            storage.value = value
        else:
            self.overlay[storage] = value

    def note(self, storage: Storage) -> None:
        """What memory is, before that changes."""
        if self.journal is not None:
            aliases = None if storage.aliases is None else storage.aliases.copy()
            self.journal.append(Noted(storage, storage.value, storage.pending, aliases))

    def constant(self, array: Any) -> Value:
        """A concrete array or NumPy scalar as a value: a literal, or in a concrete trace a parameter of its own.

        The array is copied: user code may change it after it was used.
        """
        type = ArrayType(np.asarray(array).dtype, np.shape(array))
        if not self.concrete or type.size <= FOLD_LIMIT:
            return literal(array, type)
        if self.parent is not None:
            return self.lift(self.parent.constant(array))
        value = Value(type)
        number = np.array(array, order="C", copy=True)
        self.captured.append((value, number))
        self.builder.known[value] = number
        return value

    def tape(self, kept: KeptTape) -> Value:
        """What a pullback holds that no function reads as its hidden input: in a concrete trace a parameter.

        Raises:
            NeedsConcrete: the trace is not concrete. ArgumentError: it is a tape of XLA's.
        """
        if not self.concrete:
            raise NeedsConcrete(
                "this pullback keeps as much as its loops had trips, and is not reached by names alone",
                hint="call vjp inside the transformed function, or give the pullback a variable of its own",
            )
        require_readable([kept], "numpy")
        if self.parent is not None:
            return self.lift(self.parent.tape(kept))
        value = Value(kept.type)
        self.captured.append((value, kept.value))
        self.builder.known[value] = kept.value
        return value

    def number(self, value: Value) -> Any:
        return self.builder.number(value)

    # --- emission --------------------------------------------------------------------------------
    def emit(self, op: Op, operands: Sequence[Value], attrs: Attrs = NO_ATTRS) -> Value:
        """Emit one operation at the user's current line; one on small literals is evaluated instead."""
        for operand in operands:
            if not isinstance(operand, Literal):
                if self.cautious:
                    return self.emit_cautiously(op, operands, attrs)
                self.builder.span = current_span()
                return self.builder.emit(op, operands, attrs)
        return self.fold(op, operands, attrs)

    def emit_cautiously(self, op: Op, operands: Sequence[Value], attrs: Attrs) -> Value:
        """`emit` in the body of a ``try``, where the operation must be able to fail while tracing."""
        from srcgrad.tracing.conversion.attempts import ask_first  # which is written with tracers

        ask_first(op, operands, attrs)
        self.builder.span = current_span()
        value = self.builder.emit(op, operands, attrs)
        self.cleared.add(value)
        return value

    def note_failing(self, value: Value, places: Sequence[Any] = ()) -> None:
        """What made a value is the user's own and may raise an error, which is asked for where nothing reads it.

        ``places``: the tracers of its last operands, of which more may be known than of their values.
        """
        if not self.cautious and not self.concrete:
            self.failing[value] = tuple(places)

    def fold(self, op: Op, operands: Sequence[Value], attrs: Attrs) -> Value:
        types = [operand.type for operand in operands]
        result = op.result_types(types, attrs)[0]
        if not operands or result.size > FOLD_LIMIT or any(type.size > FOLD_LIMIT for type in types):
            self.builder.span = current_span()
            return self.builder.emit(op, operands, attrs)
        numbers = [self.number(operand) for operand in operands]
        return literal(evaluate_operation(op, numbers, attrs, types, [result])[0], result)


class Current:
    """The innermost trace in progress in this thread or task.

    A thread may begin with a copy of the context of the one that starts it: by ``asyncio.to_thread``, and always on
    free-threaded Python from 3.14 on. The trace in it is not its own.
    """

    def __init__(self) -> None:
        self.variable: ContextVar[Trace | None] = ContextVar("srcgrad_trace", default=None)

    def get(self) -> Trace | None:
        trace = self.variable.get()
        return trace if trace is None or trace.thread == get_ident() else None

    def set(self, trace: Trace | None) -> Token[Trace | None]:
        return self.variable.set(trace)

    def reset(self, token: Token[Trace | None]) -> None:
        self.variable.reset(token)


CURRENT: Final = Current()


ACTIVE: list[None] = []
"""Has an element for each trace in progress and each choice of a backend or debugger that lasts, in all threads.

Where it is empty a call need not ask further; machine code looks at its length alone.
"""


class Mark:
    """An element of `ACTIVE` for as long as a context has this: a copied context may outlive its ``with`` block."""

    __slots__ = ()

    def __init__(self) -> None:
        ACTIVE.append(None)

    def __del__(self, pop: Callable[[], None] = ACTIVE.pop) -> None:
        pop()


MARK: ContextVar[Mark | None] = ContextVar("srcgrad_mark", default=None)


@contextmanager
def marked() -> Iterator[None]:
    """Say that calls in this context must look at what is chosen there."""
    token = MARK.set(Mark())
    try:
        yield
    finally:
        MARK.reset(token)


DEBUGGERS = frozenset({"bdb", "pdb", "IPython", "ipdb", "pudb", "debugpy", "pydevd", "_pydevd_bundle"})


def asked_by_debugger() -> bool:
    """Whether the nearest module below, besides NumPy and srcgrad, that a debugger runs is the debugger itself.

    What is typed at its prompt runs in the user's frame, so that its own code object says nothing.
    """
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_name != "<module>" and internal_frame(frame):
        frame = frame.f_back  # type: ignore[assignment]
    caller = None if frame is None or frame.f_code.co_name != "<module>" else frame.f_back
    return caller is not None and str(caller.f_globals.get("__name__")).partition(".")[0] in DEBUGGERS


def current_span() -> Span | None:
    return user_span(2)


def leaked(trace: Trace) -> LeakedTracerError:
    """The error of a traced value that is used where its trace is not in progress."""
    if trace.alive:
        return LeakedTracerError(
            f"a traced value of {trace.name!r} was used in another thread than the one that traces it",
            hint="call srcgrad in the thread itself, on the arrays; a function is traced in one thread",
        )
    return LeakedTracerError(
        f"a traced value of {trace.name!r} was used after its trace had ended",
        hint="return it from the function instead of keeping it in a list, an attribute or a global",
    )


def current_trace() -> Trace:
    trace = CURRENT.get()
    if trace is None:
        raise LeakedTracerError(
            "a traced value was used after its trace had ended, or in another thread",
            hint="return it from the function instead of keeping it in a list, an attribute or a global",
        )
    return trace


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """Make a trace the current one; it is over, and its tracers are dead, at the end."""
    ACTIVE.append(None)
    token = CURRENT.set(trace)
    try:
        yield trace
    finally:
        trace.alive = False
        for classed in trace.classes:
            classed.restore()
        CURRENT.reset(token)
        ACTIVE.pop()
