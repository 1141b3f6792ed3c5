"""What leaves srcgrad when something goes wrong: an error of `srcgrad.errors` at the user's line, or the user's own.

NumPy validates part of what rules are given (dtypes, axes, orders), and says so with plain errors raised below the
frames of srcgrad. They become srcgrad's errors here. What user code raises, and what NumPy raises for its concrete
arrays, passes through untouched.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import re
import sys
from collections.abc import Callable
from dataclasses import is_dataclass
from types import FrameType, TracebackType
from typing import Any, Final, ParamSpec, TypeGuard, TypeVar

import numpy as np

from srcgrad.errors import (
    ArgumentError,
    AxisError,
    IndexingError,
    InternalError,
    RangeError,
    SrcgradError,
    UnsupportedError,
)
from srcgrad.ir.errors import prune_traceback
from srcgrad.ir.source import Span, internal_frame, render, user_span

P = ParamSpec("P")
R = TypeVar("R")

TRANSLATED: dict[type[Exception], type[SrcgradError]] = {
    TypeError: UnsupportedError,
    ValueError: ArgumentError,
    IndexError: IndexingError,
    OverflowError: RangeError,
    np.exceptions.AxisError: AxisError,
}
"""NumPy's plain errors; subclasses (`LinAlgError`) and warnings turned into errors keep their meaning and pass."""
PLACE = re.compile(r"\s*# (?:.* of )?(?P<file>\S+):(?P<line>\d+)(?: \| (?P<text>.*))?$")
TRACER = re.compile(r"\b(Tracer|Shown)\b")
"""By which Python's and a library's errors name what they were given: a traced value, or its text."""
RAISING = ("check", "raise_first", "KeySite.__call__", "RaiseSite.__call__", "UnboundSite.__call__")
"""The functions of srcgrad that raise errors of the user's."""
OWN_WORK = ("Building.build_checked", "Building.compile_program", "find_captures", "serve")
"""The functions of srcgrad below which no plain error is about what the user has written or given."""
BROKEN = (AttributeError, KeyError, AssertionError, NameError, NotImplementedError, ZeroDivisionError)
"""What only a fault of srcgrad's own raises below its frames."""


def own_frame(frame: FrameType) -> bool:
    """Whether srcgrad's own code (not NumPy's) runs in the frame."""
    module = frame.f_globals.get("__name__")
    return isinstance(module, str) and module.partition(".")[0] == "srcgrad" and internal_frame(frame)


def last_user_entry(error: BaseException) -> tuple[TracebackType | None, bool, bool]:
    """The innermost entry of user code in a traceback; whether srcgrad's code, and any of `OWN_WORK`, runs below it."""
    entry, found, below, at_work = error.__traceback__, None, False, False
    while entry is not None:
        if not internal_frame(entry.tb_frame):
            found, below, at_work = entry, False, False
        elif own_frame(entry.tb_frame):
            below = True
            at_work = at_work or entry.tb_frame.f_code.co_qualname in OWN_WORK
        entry = entry.tb_next
    return found, below, at_work


def translated(error: Exception) -> SrcgradError | None:
    """srcgrad's error for a plain one that was raised below its own frames; None for those of user code."""
    if is_of_a_tracer(error):
        return of_a_tracer(error)
    kind = TRANSLATED.get(type(error))
    if (kind is None and type(error) not in BROKEN) or raised_by_program(error):
        return None
    entry, below, at_work = last_user_entry(error)
    if not below:
        return None
    if at_work:
        kind = None
    elif entry is None and kind is UnsupportedError:  # no user code was reached: the call does not fit the function
        kind = ArgumentError
    span = Span.of(entry.tb_frame.f_code, entry.tb_lasti) if entry is not None else program_span(error) or user_span(1)
    if kind is not None:
        return kind(str(error), span=span)
    return InternalError(
        f"{type(error).__name__}: {error}",
        span=span,
        hint="this is a fault of srcgrad: please report it with the code above",
    )


UNHASHABLE: Final = "unhashable type: 'Tracer'"
"""What Python says of a traced value that it is to find in a table."""
AS_A_KEY: Final = "a traced value is no key of a dict and no item of a set"


def is_of_a_tracer(error: Exception) -> TypeGuard[TypeError]:
    """Whether Python or a library was given a traced value and says what it is not; of SciPy's functions without a
    rule that ask for arrays by ``isinstance``, each such error is taken for that."""
    if type(error) is not TypeError or raised_by_program(error):
        return False
    if TRACER.search(str(error)):
        return True
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    if entry is None or not str(entry.tb_frame.f_globals.get("__name__")).startswith("scipy."):
        return False
    code, given = entry.tb_frame.f_code, entry.tb_frame.f_locals
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if not any(type(given.get(name)).__name__ == "Tracer" for name in names):
        return False
    plain = inspect.unwrap(entry.tb_frame.f_globals.get(code.co_name, is_of_a_tracer))
    return getattr(plain, "__code__", None) is code  # and not a copy that was converted, which knows what is traced


def of_a_tracer(error: TypeError) -> UnsupportedError:
    """srcgrad's error for one of Python or a library, which was given a traced value and says what it is not."""
    from srcgrad.tracing.asked import public_name  # which is written with this module, as is the next
    from srcgrad.tracing.conversion.convert import library_file

    entry, found, called = error.__traceback__, None, None
    while entry is not None:
        if not internal_frame(entry.tb_frame):
            if not library_file(entry.tb_frame.f_code.co_filename):
                found, called = entry, None
        elif called is None:
            code = entry.tb_frame.f_code
            called = public_name(str(entry.tb_frame.f_globals.get("__name__")), code.co_qualname, False)
        entry = entry.tb_next
    span = user_span(2) if found is None else Span.of(found.tb_frame.f_code, found.tb_lasti)
    if str(error) == UNHASHABLE:
        return UnsupportedError(
            f"{AS_A_KEY}: which number it is, is not known while the function is traced",
            span=span,
            hint="take a key that Python knows, such as an index or a name, or keep what belongs together in a list",
        )
    if called is not None and called.startswith(("np.", "scipy.")):
        return UnsupportedError(
            f"{called} has no derivative rule in srcgrad",
            span=span,
            hint="write it with functions that have one, or give it a rule with custom_jvp or custom_vjp",
        )
    return UnsupportedError(
        str(error),
        span=span,
        hint="a Tracer stands for an array or a number while srcgrad traces the function: call NumPy's functions on "
        "it, or give the function that fails a rule with custom_vjp",
    )


def as_unsupported(error: Exception) -> UnsupportedError | None:
    """The error, if it says that something is not supported: in Python's words or a library's too."""
    if isinstance(error, UnsupportedError):
        return error
    return of_a_tracer(error) if is_of_a_tracer(error) else None


def is_fault(error: Exception) -> bool:
    """Whether a fault of srcgrad's own raised the error, and not what the user's code does through an operator."""
    entry, module = error.__traceback__, ""
    while entry is not None:
        if own_frame(entry.tb_frame):  # what it calls, as a module's __getattr__, may raise for it
            module = str(entry.tb_frame.f_globals.get("__name__"))
        entry = entry.tb_next
    return not module.startswith("srcgrad.tracing.conversion.") and isinstance(
        error if isinstance(error, SrcgradError) else translated(error), InternalError
    )


class Changed(RuntimeError):
    """What a function reads was changed by another thread between the look at it and the copy that is traced."""


def from_outside(error: BaseException) -> bool:
    """Whether what raised the error was neither the traced function nor srcgrad: it says nothing of the function, so it
    goes on to the caller, and no verdict is kept.
    """
    # A handler of a signal runs between any two instructions, and Python gives it the frame that it interrupts: the one
    # before it in the traceback. Memory and time run out of the process, whoever is at work.
    if isinstance(error, (MemoryError, TimeoutError, Changed)):
        return True
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        interrupted, entry = entry.tb_frame, entry.tb_next
        for value in () if internal_frame(entry.tb_frame) else entry.tb_frame.f_locals.values():
            given = value if type(value) is tuple else (value,)
            if any(item is interrupted for item in given):
                return True
    return False


def raised_by_program(error: BaseException) -> bool:
    """Whether a program raised this error because the user's code says so: a ``raise`` or ``assert`` in it."""
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    return entry is not None and entry.tb_frame.f_code.co_qualname in RAISING and own_frame(entry.tb_frame)


def program_span(error: BaseException) -> Span | None:
    """The user's line of the statement of a compiled program that raised: the comment above the statement names it.

    A program of XLA has no statements; what looks at its status knows where the user wrote what failed.
    """
    entry, found = error.__traceback__, None
    while entry is not None:
        if entry.tb_frame.f_code.co_qualname == "raise_first" and own_frame(entry.tb_frame):
            span: Span | None = entry.tb_frame.f_locals["effect"].span
            return span
        if entry.tb_frame.f_code.co_filename.startswith("<srcgrad "):
            found = entry
        entry = entry.tb_next
    if found is None:
        return None
    lines = linecache.getlines(found.tb_frame.f_code.co_filename)
    for line in reversed(lines[: found.tb_lineno]):
        place = PLACE.match(line)
        if place is not None:
            return Span.at(place["file"], int(place["line"]), text=place["text"] or "")
    return None


def is_installed(file: str) -> bool:
    """Whether a file is one of an installed package, or of Python's."""
    from srcgrad.tracing.conversion.convert import INSTALLED, STANDARD  # which is written with this module

    return os.path.realpath(file).startswith((*INSTALLED, *STANDARD))


def own_span(error: Exception) -> Span | None:
    """The innermost line on the way to an error that is in none of the installed files."""
    entry, found = error.__traceback__, None
    while entry is not None:
        if not internal_frame(entry.tb_frame) and not is_installed(entry.tb_frame.f_code.co_filename):
            found = entry
        entry = entry.tb_next
    return None if found is None else Span.of(found.tb_frame.f_code, found.tb_lasti)


def made_after_fields(instance: Any, name: str | None) -> bool:
    """Whether the ``__post_init__`` of a dataclass makes an attribute of this name that is no field."""
    finish = getattr(type(instance), "__post_init__", None) if is_dataclass(instance) else None
    return name in getattr(getattr(finish, "__code__", None), "co_names", ())


def reported(error: Exception, activity: str) -> Exception:
    """The exception to raise in place of one that reached a public function; the same object where it is the user's.

    ``activity``, "while tracing grad(loss)", is added with the place of the call unless the error is about the call
    itself.
    """
    found = error if isinstance(error, SrcgradError) else translated(error)
    if found is None:
        span = program_span(error)
        if span is not None:
            error.add_note(render(span))
        if isinstance(error, AttributeError) and made_after_fields(error.obj, error.name):
            error.add_note(
                f"  hint: a {type(error.obj).__name__} that is an argument has its fields alone in the function: make "
                f"{error.name} one, by `{error.name}: float = field(init=False)`, or a property"
            )
        return error
    call = user_span(1)
    if found.span is not None and is_installed(found.span.file):
        place = own_span(error)
        if place is not None:
            found.add_context(f"reached from {render(place).strip()}")
    if found is not error and program_span(error) is not None:
        activity = activity.replace("while tracing", "while running")
    if found.context or found.span is not call:
        found.add_context(activity if call is None else f"{activity}, called at {call.label()}")
    if found is not error:
        found.__cause__ = error if isinstance(found, InternalError) else None
        found.__suppress_context__ = True
    return prune_traceback(found)


def user_stack_level() -> int:
    """The stack level of the user's call, for a warning raised by the caller of the caller."""
    frame = sys._getframe(2)
    level = 2
    while frame.f_back is not None and internal_frame(frame):
        frame = frame.f_back
        level += 1
    return level


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
