"""``with`` statements whose managers may handle errors of the body, and ``try`` statements of generators.

Their bodies cannot be run again with another answer, as those of other ``try`` statements are (`attempts`): what may
fail in them is asked on a path, where Python raises the error itself.
"""

from __future__ import annotations

import contextlib
import dis
import itertools
import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.tracing.conversion.attempts import Leaving, kinds_of
from srcgrad.tracing.conversion.classes import original
from srcgrad.tracing.conversion.convert import library_file
from srcgrad.tracing.conversion.state import Passing
from srcgrad.tracing.trace import CURRENT, Refused, Trace
from srcgrad.tracing.tracer import Tracer

ALL: Final = (BaseException,)
ASKED_FIRST: Final = (IndexError, np.linalg.LinAlgError)
"""The errors of operations, besides those of arithmetic, that are asked for before they are emitted."""


class Watching:
    """The body of such a statement: what may fail in it is refused unless a path answers."""

    trusting = False
    managing = True

    def __init__(self, trace: Trace | None, kinds: tuple[type[BaseException], ...]) -> None:
        self.trace, self.kinds = trace, kinds
        self.raised: list[BaseException] = []
        self.cautious = False

    def ask(self, condition: Tracer) -> bool:
        raise Refused("an error that a with or a generator handles depends on a traced value")

    def __enter__(self) -> None:
        trace = self.trace
        if trace is None:
            return
        trace.catching = (*trace.catching, *self.kinds)
        if not trace.concrete:
            self.cautious = trace.cautious
            trace.attempts.append(self)
            trace.cautious |= any(issubclass(error, kind) for error in ASKED_FIRST for kind in self.kinds)

    def __exit__(self, *error: Any) -> None:
        trace = self.trace
        if trace is None:
            return
        left = list(trace.catching)
        for kind in self.kinds:  # a generator is left in any order
            if kind in left:
                left.reverse()
                left.remove(kind)
                left.reverse()
        trace.catching = tuple(left)
        if not trace.concrete:
            trace.attempts[:] = [attempt for attempt in trace.attempts if attempt is not self]
            trace.cautious = self.cautious


class Managed:
    """A context manager that may handle errors."""

    def __init__(self, manager: Any, watching: Watching) -> None:
        self.manager, self.watching = manager, watching

    def __enter__(self) -> Any:
        found = type(self.manager).__enter__(self.manager)
        self.watching.__enter__()
        return found

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> Any:
        self.watching.__exit__()
        handled = type(self.manager).__exit__(self.manager, kind, error, traceback)
        return handled and not isinstance(error, Passing)


class Left:
    """A context manager that handles no errors: what it does when it is left is done where the program fails, too."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager
        self.finishing: Leaving | None = None

    def __enter__(self) -> Any:
        found = type(self.manager).__enter__(self.manager)
        self.finishing = Leaving()
        return found

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> Any:
        if self.finishing is None or kind is not None:
            return type(self.manager).__exit__(self.manager, kind, error, traceback)
        with self.finishing:
            return type(self.manager).__exit__(self.manager, kind, error, traceback)


def managed(manager: Any) -> Any:
    """What a ``with`` statement enters."""
    trace = CURRENT.get()
    if trace is None or not (hasattr(type(manager), "__enter__") and hasattr(type(manager), "__exit__")):
        return manager
    kinds = handled_by(manager)
    if kinds:
        return Managed(manager, Watching(trace, kinds))
    return manager if trace.concrete else Left(manager)


def guarded(handlers: Callable[[], Any]) -> Watching:
    """What stands around the body of a ``try`` of a generator."""
    return Watching(CURRENT.get(), kinds_of(handlers))


def handled_by(manager: Any) -> tuple[type[BaseException], ...]:
    """The errors that a context manager may handle."""
    cls = original(type(manager))
    if cls is contextlib.suppress:
        return kinds_of(lambda: manager._exceptions)
    if issubclass(cls, contextlib._GeneratorContextManager):
        code = getattr(manager.gen, "gi_code", None)
        return ALL if code is None or has_handlers(code) else ()
    leave = getattr(cls, "__exit__", None)
    if cls is contextlib.ExitStack:
        return ALL
    if not isinstance(leave, types.FunctionType) or library_file(leave.__code__.co_filename):
        return ()
    return ALL if gives_more_than_nothing(leave.__code__) else ()


def has_handlers(code: types.CodeType) -> bool:
    """Whether a generator handles an error that is thrown into it: a ``finally`` raises it again."""
    names = [instruction.opname for instruction in dis.get_instructions(code)]
    again = any(one == "POP_EXCEPT" and then != "RERAISE" for one, then in itertools.pairwise(names))
    return again or "WITH_EXCEPT_START" in names


def gives_more_than_nothing(code: types.CodeType) -> bool:
    """Whether a function may return anything but None and False."""
    found = list(dis.get_instructions(code))
    returned = [one for one, then in itertools.pairwise(found) if then.opname == "RETURN_VALUE"]
    returned += [one for one in found if one.opname == "RETURN_CONST"]
    return any("CONST" not in one.opname or not (one.argval is None or one.argval is False) for one in returned)
