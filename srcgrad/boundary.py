"""What leaves srcgrad when something goes wrong: an error of `srcgrad.errors` at the user's line, or the user's own.

NumPy validates part of what rules are given (dtypes, axes, orders), and says so with plain errors raised below srcgrad's
frames. They become srcgrad's errors here. What user code raises, and what NumPy raises for its concrete arrays, passes
through untouched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from srcgrad.errors import ArgumentError, AxisError, IndexingError, InternalError, SrcgradError, UnsupportedError
from srcgrad.ir.errors import prune_traceback
from srcgrad.ir.source import Span, internal_frame, user_span

P = ParamSpec("P")
R = TypeVar("R")

TRANSLATED: dict[type[Exception], type[SrcgradError]] = {
    TypeError: UnsupportedError,
    ValueError: ArgumentError,
    IndexError: IndexingError,
    OverflowError: ArgumentError,
    np.exceptions.AxisError: AxisError,
}
"""NumPy's plain errors; subclasses (`LinAlgError`) and warnings turned into errors keep their meaning and pass."""
BROKEN = (AttributeError, KeyError, AssertionError, NameError, NotImplementedError, ZeroDivisionError)
"""What only a fault of srcgrad's own raises below its frames."""


def own_frame(frame: FrameType) -> bool:
    """Whether srcgrad's own code (not NumPy's) runs in the frame."""
    module = frame.f_globals.get("__name__")
    return isinstance(module, str) and module.partition(".")[0] == "srcgrad" and internal_frame(frame)


def last_user_entry(error: BaseException) -> tuple[TracebackType | None, bool]:
    """The innermost entry of user code in a traceback, and whether srcgrad's code runs below it."""
    entry, found, below = error.__traceback__, None, False
    while entry is not None:
        if not internal_frame(entry.tb_frame):
            found, below = entry, False
        elif own_frame(entry.tb_frame):
            below = True
        entry = entry.tb_next
    return found, below


def translated(error: Exception) -> SrcgradError | None:
    """srcgrad's error for a plain one that was raised below its own frames; None for those of user code."""
    kind = TRANSLATED.get(type(error))
    if kind is None and type(error) not in BROKEN:
        return None
    entry, below = last_user_entry(error)
    if not below:
        return None
    if entry is None and kind is not None:  # no user code was reached: the call itself does not fit the function
        kind = ArgumentError
    span = Span.of(entry.tb_frame.f_code, entry.tb_lasti) if entry is not None else user_span(1)
    if kind is not None:
        return kind(str(error), span=span)
    return InternalError(
        f"{type(error).__name__}: {error}", span=span, hint="this is a fault of srcgrad: please report it with the code above"
    )


def reported(error: Exception, activity: str) -> Exception:
    """The exception to raise in place of one that reached a public function; the same object where it is the user's.

    ``activity``, "while tracing grad(loss)", is added with the place of the call unless the error is about the call itself.
    """
    found = error if isinstance(error, SrcgradError) else translated(error)
    if found is None:
        return error
    call = user_span(1)
    if found.context or found.span is not call:
        found.add_context(activity if call is None else f"{activity}, called at {call.label()}")
    if found is not error:
        found.__cause__ = error if isinstance(found, InternalError) else None
        found.__suppress_context__ = True
    return prune_traceback(found)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """A public function whose errors leave with a pruned traceback."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except SrcgradError as error:
            raise prune_traceback(error) from error.__cause__

    return call


def described(value: Any) -> str:
    """A value in a message: short, and never a page of numbers."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} and shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 80 else f"a {type(value).__name__}"
