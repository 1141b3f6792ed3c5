"""The ways in which a function may be traced, and the verdicts on them."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from srcgrad.boundary import as_unsupported
from srcgrad.cache import Known, Trivial, code_of, find_captures
from srcgrad.errors import SrcgradError, UnsupportedError
from srcgrad.signatures import leaf_key
from srcgrad.tracing.aliasing import AliasPattern
from srcgrad.tracing.capture import Captures, Uncacheable
from srcgrad.tracing.conversion.convert import convert_code, needs_conversion
from srcgrad.tracing.jitted import python_of
from srcgrad.tracing.members import ARITHMETIC, asks_for_truths, handles
from srcgrad.tracing.trace import Refused
from srcgrad.tracing.unasked import attribute


class Retrace(NamedTuple):
    """The verdict that a signature cannot be one program."""

    reason: str


class Failed(NamedTuple):
    """The verdict that a signature is no program in one way of tracing, so that the next one is tried."""

    reason: str
    refused: bool = False
    """Whether a construct was met that conversion knows and refuses."""
    converted: bool = False
    unsupported: bool = False
    """Whether what was met has no rule on any path: other errors may be raised on a path that no call takes."""
    unwatched: bool = False
    """Whether the function reads what cannot be watched, so that it was not traced."""


class Unsupported(NamedTuple):
    """The verdict that the function as it is meets what has no rule: converted, it may do without."""

    met: UnsupportedError

    def error(self) -> UnsupportedError:
        """What is raised if no other way does: a new one each time, which takes the lines of its own call."""
        found = copy.copy(self.met)
        found.context = []
        return found


class Way(NamedTuple):
    """A way of tracing: with functions converted or run as they are, with captured floats as inputs or as guards."""

    converted: bool
    floats_static: bool
    trusting: bool = True
    """Whether a program may be for calls alone in which nothing fails in a ``try``."""


class Verdict(NamedTuple):
    """Under which key the verdict on a way is kept, and on what it depends: guards, and the types of hidden inputs."""

    way: Way
    captures: Known
    hidden: tuple[Hashable, ...]
    aliases: AliasPattern | None
    key: Hashable

    def holds(self, function: Any) -> bool:
        bound = self.captures.bind(function)
        if bound is not None and isinstance(self.captures, Captures) and not self.captures.serves(function):
            return False
        return bound is not None and bound[1] == self.aliases and (*map(leaf_key, bound[0]),) == self.hidden


class Together(NamedTuple):
    """Verdicts on several ways, looked at as one."""

    verdicts: tuple[Verdict, ...]

    def bind(self, function: Any) -> Any:
        """None where one of them does not hold."""
        return () if all(verdict.holds(function) for verdict in self.verdicts) else None


CONVERTED_FIRST = (Way(True, False), Way(True, True), Way(False, False), Way(False, True))
CONVERTED_LAST = (Way(False, False), Way(True, False), Way(True, True), Way(False, True))
"""For straight-line code, which needs no conversion unless a call in it does not dispatch."""
ASKS = "what a traced value stands for is compared by 'is'"


def failed(error: Exception) -> Failed:
    """The verdict on a way in which tracing raised an error."""
    shown = as_unsupported(error) or error
    text = first_lines(shown) if isinstance(shown, SrcgradError) else str(error).partition("\n")[0]
    return Failed(f"{type(shown).__name__}: {text}", converted=True, unsupported=isinstance(error, UnsupportedError))


def require_no_handlers(function: Any, captures: Known) -> None:
    """Refuse code that is run as it is, and may have to catch what only its program raises.

    Raises:
        Refused: it has a ``try`` or ``with``.
    """
    from srcgrad.paths import has_handlers  # which is written with this module

    if has_handlers(function, captures):
        raise Refused("a try holds operations that may fail when the program runs")


def reason_as_it_is(function: Any, captures: Known) -> str | None:
    """Why a function that can be converted is not traced as it is; None where it may be.

    Python would answer ``x > 0 is True`` itself: the traced comparison is no truth value. So a ``try`` would see no
    division by zero.
    """
    codes = [] if isinstance(captures, Trivial) else captures.code_key
    for code in (code_of(function), *codes):
        if not isinstance(code, types.CodeType):
            continue
        asks = asks_for_truths(code)
        if (asks or handles(code, ARITHMETIC)) and not isinstance(convert_code(code, code.co_filename), str):
            return ASKS if asks else "a try may handle errors of arithmetic"
    return None


def why_retraced(failures: Sequence[Failed]) -> str:
    """The reason to give: what conversion refuses, else what the function as it is asks for.

    Of what cannot be watched conversion's reason counts: a function that is run as it is may read far less.
    """
    reasons = [failure.reason for failure in failures if failure.refused]
    if reasons:
        return reasons[0]
    unwatched = [failure.reason for failure in failures if failure.unwatched and failure.converted]
    if unwatched and failures[-1].unwatched:
        return unwatched[0]
    plain = failures[-1].reason
    others = [
        failure.reason for failure in failures if failure.converted and " is run as it is: " not in failure.reason
    ]
    if (
        others and " may draw at each call" in plain
    ):  # which is feared of every distribution in code that is not converted
        return others[0]
    return plain if not others or others[0] == plain else f"{plain}; converted: {others[0]}"


def function_of(f: Any) -> Any:
    """The Python function under transforms, partials, methods, ``np.vectorize`` and objects that are called."""
    while True:
        inner = attribute(f, "__srcgrad_wrapped__")
        inner = inner[0] if isinstance(inner, tuple) else inner
        if inner is None and isinstance(f, functools.partial):
            inner = f.func
        if inner is None and isinstance(f, types.MethodType):
            inner = f.__func__
        if inner is None and isinstance(f, np.vectorize):
            inner = f.pyfunc
        if inner is None:
            inner = python_of(f)
        if inner is None and not isinstance(f, (type, types.FunctionType)):
            inner = attribute(type(f), "__call__")
            inner = inner if isinstance(inner, types.FunctionType) else None
        if inner is None:
            return f
        f = inner


def prefers_conversion(f: Any) -> bool:
    """Whether the function, or one that it calls, has loops or asks what its values are."""
    found = find_captures(f, False)
    codes = [] if isinstance(found, Uncacheable) or isinstance(found[0], Trivial) else found[0].code_key
    return any(needs_conversion(code) for code in (code_of(f), *codes) if isinstance(code, types.CodeType))


def first_lines(error: SrcgradError) -> str:
    where = f" ({error.span.label()})" if error.span is not None else ""
    return f"{error.message}{where}"
