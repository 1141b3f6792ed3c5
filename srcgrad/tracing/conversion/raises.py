"""The statements ``assert`` and ``raise``, and what stands where no program may come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from srcgrad.tracing.conversion.effects import emit_check, emit_raise, fail_if, innermost_attempt, raised_again
from srcgrad.tracing.conversion.state import truth, unknown
from srcgrad.tracing.conversion.texts import Text
from srcgrad.tracing.rebound import come_to, said_with_place
from srcgrad.tracing.trace import CURRENT
from srcgrad.tracing.tracer import Tracer, from_value


def assert_(test: Callable[[], Any], message: Callable[[], Any] | None) -> None:
    """The statement ``assert``."""
    if not __debug__:
        return
    condition = test()
    if not unknown(condition):
        if not condition:
            raise_assertion(message)
        return
    holds: Any = from_value(truth(condition), scalar=True)
    said: Any = message() if message is not None else ""
    if not isinstance(said, (Text, Tracer)):
        emit_check(holds, "AssertionError", str(said))
        return
    failed = np.logical_not(holds)
    if innermost_attempt() is None or not fail_if(failed, lambda: AssertionError(said)):
        emit_raise(failed, AssertionError(said))


def raise_assertion(message: Callable[[], Any] | None) -> None:
    error = AssertionError() if message is None else AssertionError(message())
    raise raise_(lambda: error, ...)


def raise_(make: Callable[[], Any], cause: Any) -> BaseException:
    """The error that a ``raise`` statement raises; in a block on a traced condition it ends the block."""
    error = make()
    if isinstance(error, type):
        error = error()
    if cause is not Ellipsis:
        error.__cause__ = cause
    trace = CURRENT.get()
    if trace is None:
        return error  # type: ignore[no-any-return]
    found = raised_again(error)
    if found is not error:
        raise found
    return error


def unreached(reason: str) -> NoReturn:
    """A trace comes to a block in which something stands that guards cannot watch."""
    come_to(reason)
    trace = CURRENT.get()
    if trace is not None:
        trace.came_to.add(reason)
    said_with_place(reason)
