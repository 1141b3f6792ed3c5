"""What a program does besides computing: errors that it raises where values say so, and calls back into Python."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np

from srcgrad.boundary import from_outside
from srcgrad.ir.core import Literal, Operation, Value
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.ops.effects import ERROR_KINDS, error_class
from srcgrad.ir.types import BOOL
from srcgrad.tracing.built_on import items_in
from srcgrad.tracing.conversion.state import Inside, Raised, truth, unknown
from srcgrad.tracing.conversion.trust import acts, is_trust
from srcgrad.tracing.held import holding, is_slotted
from srcgrad.tracing.journals import is_written
from srcgrad.tracing.storage import ASK
from srcgrad.tracing.trace import CURRENT, STORES, NeedsConcrete, RaisingSite, Unread, current_span, current_trace
from srcgrad.tracing.tracer import Tracer, as_tracer, cast_value


def innermost_attempt() -> Any:
    """The ``try`` with handlers whose body is in progress, if any."""
    trace = CURRENT.get()
    while trace is not None and not trace.concrete:
        if trace.attempts:
            return trace.attempts[-1]
        trace = trace.parent
    return None


def is_conditional(error: BaseException) -> bool:
    """Whether an error of Python's own leaves a region inside the body of a ``try``.

    The region is traced whether it runs or not: a handler that took the error would run in any case. One that is not
    seen, as that of ``contextlib.suppress`` or of a library, may take it nevertheless, which the traces remember.
    """
    if not isinstance(error, Exception) or isinstance(error, (NeedsConcrete, Unread)) or from_outside(error):
        return False
    if innermost_attempt() is not None:
        return True
    NeedsConcrete(f"{type(error).__name__} is raised on a traced condition")
    return False


def answered(condition: Tracer, fails: bool | None) -> bool | None:
    """Whether a condition is to hold in this run of a ``try``; None outside of any.

    ``fails``: where it has this truth value something fails; None: whatever it is.

    Raises:
        Inside: this is a block on another condition, inside of the body.
    """
    attempt = innermost_attempt()
    if attempt is None:
        return None
    if attempt.trusting and fails is not None:
        attempt.trust(condition, fails)
        return not fails
    if attempt.trace is not CURRENT.get() and not attempt.managing:
        raise Inside(attempt)
    found: bool = attempt.ask(condition)
    return found


def fail_if(condition: Any, make: Callable[[], BaseException]) -> bool:
    """Raise an error where a ``try`` in progress says that the condition holds. False where there is none to ask."""
    if not unknown(condition):
        if bool(condition):
            raise make()
        return True
    found = answered(condition, True)
    if found:
        error = make()
        current_trace().attempts[-1].raised.append(error)
        raise error
    return found is not None


def raised_again(error: BaseException) -> BaseException:
    """What to raise for an error that a ``try`` does not catch: in a block on a traced condition it ends the block."""
    trace = current_trace()
    if trace.attempts:
        trace.attempts[-1].raised.append(error)
        return error
    if not trace.region:
        return error
    return Raised(error)


_WHERE: ContextVar[tuple[Any, ...]] = ContextVar("srcgrad_checked_where", default=())
"""The conditions under which the errors of what is traced are raised."""


@contextmanager
def checked_where(condition: Any) -> Iterator[None]:
    """Raise no error of what is traced meanwhile where the condition, a truth value, does not hold."""
    token = _WHERE.set((*_WHERE.get(), condition))
    try:
        yield
    finally:
        _WHERE.reset(token)


def emit_check(predicate: Any, kind: str, message: str) -> None:
    """Raise the error when the program runs and the predicate does not hold; at once where it is known.

    A division by zero is raised by the program in any case: one in a trace is a fault of srcgrad's.
    """
    named = error_class(kind)
    for condition in _WHERE.get():
        predicate = np.logical_or(predicate, np.logical_not(condition))
    if not unknown(predicate):
        if bool(predicate):
            return
        if named is not ZeroDivisionError:
            raise named(message)
        predicate = as_tracer(predicate)
    if innermost_attempt() is not None:
        failed: Any = np.logical_not(predicate if predicate.size == 1 else np.all(predicate))
        if fail_if(failed, lambda: named(message)):
            return
    trace = current_trace()
    store_what_stands(trace)
    value = truth(predicate) if predicate.size == 1 else cast_value(predicate.read(), BOOL)
    trace.builder.span = current_span()
    trace.builder.emit_operation(REGISTRY["check"], [value], {"message": message, "kind": kind})


def store_what_stands(trace: Any) -> None:
    """Store the attributes of captured objects before the program may fail, not at its end, where it has done something
    for good by then: such a call cannot be made again.

    Raises:
        Unread: the trace is to be told how.
    """
    root = outermost_region(trace)
    for owner, key, value, now in standing(root) if stores_early(root, trace) else ():
        if owner is ASK:
            raise Unread(STORES)
        owner.store(key, value)
        if trace is root:  # a region may not be run
            root.stored[id(owner), key] = now


def stores_early(root: Any, trace: Any) -> bool:
    return root.watched and any(map(has_acted, regions_of(trace)))


def stands_otherwise(trace: Any, before: Callable[[], None], after: Callable[[], None]) -> bool:
    """Whether a block that ends with an error is to store attributes, which are others behind it than before.

    Where nothing was done for good until then the call will be made again, which the trace is told.
    ``before``, ``after``: what puts the variables, and what they lead to, there.
    """
    root = outermost_region(trace)
    if not root.watched:
        return False
    known = {(id(owner), key): now for owner, key, _, now in standing(root)}
    after()
    found = any(known.get((id(owner), key), root) is not now for owner, key, _, now in standing(root))
    before()
    early = stores_early(root, trace)
    root.forgets = root.forgets or (found and not early)
    return found and early


def regions_of(trace: Any) -> Iterator[Any]:
    """This trace, and those around it that it is a region of."""
    yield trace
    while trace.region and trace.parent is not None:
        trace = trace.parent
        yield trace


def outermost_region(trace: Any) -> Any:
    return list(regions_of(trace))[-1]


def standing(root: Any) -> Iterator[tuple[Any, str, Any, Any]]:
    """The attributes of captured objects that hold what is not stored yet: with the owners, and what they hold."""
    for watched in root.watched:
        held = {} if watched.owner is None or callable(watched.before) else holding_of(watched.copy)
        for key, value in held.items():
            now = value.storage.value if isinstance(value, Tracer) else value
            changed = watched.before.get(key, watched.before) is not value and key not in watched.guarded
            if changed and is_written(value) and root.stored.get((id(watched.owner), key), root) is not now:
                yield watched.owner, key, value, now


def holding_of(copy: Any) -> dict[str, Any]:
    held = holding(copy) if is_slotted(copy) else items_in(copy)
    return held if isinstance(held, dict) else {}


def has_acted(trace: Any) -> bool:
    operations = trace.builder.operations
    if trace.acted >= 0:
        trace.acted = -1 if any(map(acts, operations[trace.acted :])) else len(operations)
    return bool(trace.acted < 0)


def is_unfinished(error: BaseException) -> bool:
    """Whether the message of an error holds traced values."""
    from srcgrad.tracing.conversion.texts import Text, tracers_in  # which is written with this module

    held = [*error.args, *vars(error).values()]
    return bool(tracers_in(held)) or any(isinstance(item, Text) for item in held)


def emit_raise(condition: Tracer, error: BaseException) -> None:
    """Raise a user's error when the program runs and the condition holds."""
    name = type(error).__name__
    own = name in ERROR_KINDS and type(error) is error_class(name)
    if own and len(error.args) <= 1 and all(isinstance(a, str) for a in error.args):
        emit_check(np.logical_not(condition), name, error.args[0] if error.args else "")
        return
    for other in _WHERE.get():
        condition = np.logical_and(condition, other)
    emit_error(truth(condition), error)


def emit_error(condition: Value, error: BaseException) -> None:
    """Raise an error as it is when the program runs, with the numbers in its message."""
    store_what_stands(current_trace())
    site = RaiseSite(error)
    operands = [condition, *[tracer.read() for tracer in site.made.tracers]]
    site.made.tracers = []
    emit_call(site, operands, raises=True)


class RaiseSite(RaisingSite):
    """The callable of an operation that raises a user's error, with the numbers that its message is made of.

    Each call has an error of its own, as it would from a ``raise`` of Python's: who catches it may change it.
    """

    def __init__(self, error: BaseException) -> None:
        from srcgrad.tracing.conversion.texts import HostSite  # which is written with this module

        error = error.with_traceback(None)
        made = HostSite(functools.partial(finished, error), (error.args, vars(error)), {})
        if made.tracers:  # which would keep their traces for as long as there is a program
            error = finished(error, *made.arguments)
            made.function = functools.partial(finished, error)
        self.error, self.made = error, made

    def __call__(self, raised: Any, *values: Any) -> None:
        if not raised:
            return
        if not values and type(self.error).__module__ == "builtins":  # which may keep more than `args` and `vars` say
            raise copy.copy(self.error)
        raise finished(self.error, *self.made.given(values))


def finished(error: BaseException, args: tuple[Any, ...], names: dict[str, Any]) -> BaseException:
    """Another error with these: what the class's own code would make of them it has made."""
    found = type(error).__new__(type(error), *args)
    found.args = args
    vars(found).update(names)
    found.__cause__, found.__suppress_context__ = error.__cause__, error.__suppress_context__
    return found


def emit_call(site: Callable[..., None], operands: Sequence[Value], raises: bool = False) -> None:
    """Call back into Python when the program runs, in the order of the user's code.

    ``raises``: only to raise an error, where the first operand is true.
    """
    trace = current_trace()
    trace.sites.append(site)
    attrs = {"site": len(trace.sites) - 1, "results": (), **({"raises": True} if raises else {})}
    trace.builder.span = current_span()
    trace.builder.emit_operation(REGISTRY["host_call"], operands, attrs)


MAY_RAISE: Final = frozenset(
    {"check", "host_call", "solve", "inv", "cholesky", "eigh", "eig", "svd", "lu", "qr", "triangular_solve", "lstsq",
     "gather", "scatter_set", "scatter_add", "spectral", "singular", "banded_solve"}
)  # fmt: skip
"""Operations that may raise an error when the program runs."""


def may_raise(operation: Operation) -> bool:
    if is_trust(operation):
        return False
    if operation.op.name in ("gather", "scatter_set", "scatter_add"):
        first = 1 if operation.op.name == "gather" else 2
        return any(not isinstance(operand, Literal) for operand in operation.operands[first:])
    return operation.op.name in MAY_RAISE or any(may_raise(inner) for r in operation.regions for inner in r.operations)
