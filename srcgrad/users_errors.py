"""Of an error that leaves a trace with known numbers: whether the user's function raises it by itself.

Then it is what the caller gets, and the function is not run in another way, which would do again what it has done.
"""

from __future__ import annotations

import dis
from types import BuiltinFunctionType, ModuleType, TracebackType
from typing import Final

import numpy as np

from srcgrad.boundary import translated
from srcgrad.errors import SrcgradError, UnsupportedError
from srcgrad.ir.source import internal_frame
from srcgrad.tracing.asked import concrete_class
from srcgrad.tracing.caches import require_keys
from srcgrad.tracing.conversion.calls import call
from srcgrad.tracing.conversion.convert import CONVERTED_LIBRARIES, library_file
from srcgrad.tracing.conversion.effects import emit_check
from srcgrad.tracing.conversion.operands import binary
from srcgrad.tracing.conversion.raises import raise_assertion
from srcgrad.tracing.tracer import Tracer, contains_tracer
from srcgrad.tracing.unasked import attribute

CONSTANTS: Final = frozenset({bool, int, float, complex, str, bytes, type(None), np.float64, np.int64})
OF_PYTHON = frozenset({binary.__code__, require_keys.__code__, emit_check.__code__})
"""Operators that raise what Python raises of the values themselves."""


def innermost(error: Exception) -> TracebackType | None:
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    return entry


def by_raise(entry: TracebackType | None) -> bool:
    """Whether an error comes from a ``raise`` in code that is not srcgrad's."""
    if entry is None or internal_frame(entry.tb_frame):
        return False
    return entry.tb_frame.f_code.co_code[entry.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def is_of_a_raise(error: Exception) -> bool:
    """Whether a statement of the user's code raised this, not what it calls."""
    entry = innermost(error)
    return by_raise(entry) and not (entry and library_file(entry.tb_frame.f_code.co_filename))


def fails_again(error: Exception) -> bool:
    """Whether the function as it is would certainly fail in the same way, so that it is not to do again what it has
    done: by a key or an index that is missing, an attribute that no number has, or what C code says of constants.

    What a ``raise`` of the user's raises is to come from that very code, where nothing has been done.
    """
    if error.__context__ is not None or by_raise(innermost(error)):
        return False
    if isinstance(error, AttributeError) and isinstance(error.obj, Tracer):
        return not hasattr(concrete_class(error.obj), str(error.name))
    if isinstance(error, SrcgradError):
        return False
    if isinstance(error, (LookupError, ArithmeticError)):
        return is_the_users(error)
    entry, called = error.__traceback__, None
    while entry is not None:
        if entry.tb_frame.f_code is call.__code__:
            called = entry.tb_frame.f_locals
        elif not internal_frame(entry.tb_frame):
            called = None
        entry = entry.tb_next
    if called is None or type(called["function"]) not in (type, BuiltinFunctionType):
        return False
    owner = attribute(called["function"], "__self__")
    given = (*called["args"], *called["kwargs"].values(), *(() if isinstance(owner, ModuleType) else (owner,)))
    if not all(type(argument) in CONSTANTS for argument in given):
        return False
    end_in_users_code(error)
    return True


def raised_by_callee(error: Exception) -> bool:
    """Whether converted code called what raised this, in C: perhaps because it was given a traced value."""
    entry = innermost(error)
    return entry is not None and internal_frame(entry.tb_frame) and entry.tb_frame.f_code not in OF_PYTHON


def raised_by_statement(error: Exception) -> bool:
    """Whether a library's Python code raised this in a statement, as of an option's value that it does not take.

    What it does not take a traced value for is a TypeError, or is said by code that was not converted and holds one.
    """
    entry = innermost(error)
    if entry is None or not isinstance(error, (ValueError, RuntimeError, ArithmeticError, LookupError)):
        return False
    frame = entry.tb_frame
    converted = frame.f_globals.get("__name__", "").startswith(CONVERTED_LIBRARIES)
    if not converted and any(map(contains_tracer, frame.f_locals.values())):
        return False
    return frame.f_code.co_code[entry.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def went_further(converted: Exception, refused: SrcgradError) -> bool:
    """Whether converted code failed elsewhere than where the function as it is was refused: what it met there is what
    has no rule, while the latter would be no obstacle.
    """
    found = translated(converted)
    return isinstance(found, UnsupportedError) and found.span is not refused.span


def is_the_users(error: Exception) -> bool:
    """Whether an error says what it would say without a trace: then it ends where the user's code does.

    What does not take a traced value says so of its type: no list is shorter for that, and no key is missing.
    """
    entry = innermost(error)
    if entry is not None and entry.tb_frame.f_code is raise_assertion.__code__:
        end_in_users_code(error)
        return True
    if isinstance(error, SrcgradError) or not raised_by_callee(error):
        return True
    if not isinstance(error, (LookupError, ArithmeticError)) and not raised_by_statement(error):
        return False
    end_in_users_code(error)
    return True


def end_in_users_code(error: Exception) -> None:
    entry = last = error.__traceback__
    while entry is not None:
        if not internal_frame(entry.tb_frame):
            last = entry
        entry = entry.tb_next
    assert last is not None
    last.tb_next = None
