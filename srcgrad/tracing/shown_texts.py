"""Texts that show all digits of a traced value: a number read of one, or of a part of it, would lose the derivative.

What rounds (``f"{x:.3f}"``) is a step: its text is an ordinary one.
"""

from __future__ import annotations

import functools
import io
import os
import pathlib
import re
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from srcgrad.errors import ConcretizationError
from srcgrad.tracing.trace import CURRENT, Trace, asked_by_debugger
from srcgrad.tracing.unasked import attribute, is_among

PROBE: Final = 1.234567890123456
DIGITS: Final = "123456789012345"
EXACT: Final = re.compile(r"%[^%a-zA-Z]*\.(1[5-9]|[2-9]\d|\d{3,}|\*)[eEfFgG]")
"""What ``%`` shows all digits with, besides ``%s`` and ``%r``."""
READING: Final = frozenset(
    {
        ("builtins", "complex"), ("builtins", "eval"), ("decimal", "Decimal"), ("fractions", "Fraction"),
        ("json", "loads"), ("ast", "literal_eval"), ("numpy", "fromstring"), (None, "float.fromhex"),
        ("_io", "StringIO"), ("_io", "BytesIO"), ("_csv", "reader"), ("csv", "DictReader"),
        ("numpy", "loadtxt"), ("numpy", "genfromtxt"),
    }
)  # fmt: skip
"""What makes numbers of a text, and does not ask it for one as ``float`` does, by module and name: most processes
import none of them."""
MATCHES: Final = type(re.finditer("", ""))


class Shown(str):
    """Such a text. One that outlives its trace is a text like any other, and keeps nothing of it."""

    __slots__ = ("trace",)
    trace: weakref.ref[Trace]

    def like(self, made: Any) -> Any:
        """The same of what a method or function has made of it.

        Raises:
            SrcgradError: it is an array of texts, which NumPy reads numbers of.
        """
        if isinstance(made, str):
            return shown(made, self.trace)
        if type(made) in (list, tuple):
            return type(made)(map(self.like, made))
        if type(made) is dict:
            return {key: self.like(item) for key, item in made.items()}
        if type(made) is bytes:
            return ShownBytes(made, self)
        if type(made) is re.Match:
            return ShownMatch(made, self)
        if type(made) is MATCHES:
            return map(self.like, made)
        if type(made) in (np.ndarray, np.str_, np.bytes_) and made.dtype.kind in "US":
            self.require_unread("an array")
        return made

    def require_unread(self, what: str) -> None:
        """Raise what ``float`` of the value raises, where a function makes a number of the text.

        Raises:
            SrcgradError: the trace is not over.
        """
        trace = self.trace()
        if len(self) > 1 and trace is not None and trace.alive and not asked_by_debugger():  # a digit is a step
            from srcgrad.tracing.asked import escaped  # which is written with this module

            message = f"{what} of the text of a traced value would lose its derivative"
            error = escaped(trace, message, "use the value as it is; np.round rounds it", True, sys._getframe(2))
            if isinstance(error, ConcretizationError):
                error.of_text = True
            raise error

    def __float__(self) -> float:
        self.require_unread("float()")
        return float(plain(self))

    def __complex__(self) -> complex:
        self.require_unread("complex()")
        return complex(plain(self))

    def __str__(self) -> str:
        return self if self.lives else plain(self)

    def __format__(self, spec: str) -> str:
        found: str = self.like(format(plain(self), spec))
        return found

    def __iter__(self) -> Iterator[str]:
        return map(self.like, str.__iter__(self))

    def __radd__(self, other: Any) -> Any:
        return self.like(str.__add__(other, self)) if isinstance(other, str) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        return self.like(str.__mod__(other, plain(self))) if isinstance(other, str) else NotImplemented

    def __reduce_ex__(self, protocol: Any) -> Any:
        return str, (plain(self),)

    @property
    def lives(self) -> bool:
        trace = self.trace()
        return trace is not None and trace.alive


def plain(text: str) -> str:
    return str.__str__(text)


def kept_in(name: str) -> Callable[..., Any]:
    method = getattr(str, name)

    @functools.wraps(method)
    def of_part(self: Shown, *args: Any, **options: Any) -> Any:
        found = method(self, *args, **options)
        return found if found is NotImplemented else self.like(found)

    return of_part


for _name in (
    "__add__", "__getitem__", "__mul__", "__rmul__", "__mod__", "capitalize", "casefold", "center", "encode",
    "expandtabs", "format", "format_map", "join", "ljust", "lower", "lstrip", "partition", "removeprefix",
    "removesuffix", "replace", "rjust", "rpartition", "rsplit", "rstrip", "split", "splitlines", "strip", "swapcase",
    "title", "translate", "upper", "zfill",
):  # fmt: skip
    setattr(Shown, _name, kept_in(_name))


class ShownBytes(bytes):
    """The same of bytes."""

    text: Shown

    def __new__(cls, made: bytes, text: Shown) -> ShownBytes:
        found = super().__new__(cls, made)
        found.text = text
        return found

    def decode(self, *args: Any, **options: Any) -> str:
        found: str = self.text.like(super().decode(*args, **options))
        return found

    def __float__(self) -> float:
        self.text.require_unread("float()")
        return float(bytes(self))


class ShownMatch:
    """What a regular expression has found in such a text."""

    def __init__(self, match: re.Match[str], text: Shown) -> None:
        self.match, self.text = match, text

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.match, name)
        if not callable(found):
            return self.text.like(found) if name == "string" else found
        return lambda *args, **options: self.text.like(found(*args, **options))

    def __getitem__(self, group: Any) -> Any:
        return self.text.like(self.match[group])


def shown(text: str, trace: weakref.ref[Trace]) -> str:
    found = Shown(plain(text))
    found.trace = trace
    current = CURRENT.get()
    while current is not None:
        current.showing, current = found, current.parent
    return found


def shows_all(spec: str) -> bool:
    """Whether a format shows all digits of a number."""
    return not spec or DIGITS in format(PROBE, spec).replace(".", "")


class Noted:
    """A number that is put into a text, which notes that the text shows all of it."""

    number: Any
    whole: bool

    def noted(self, text: str, spec: str = "") -> str:
        self.whole = self.whole or shows_all(spec)
        return text

    def __str__(self) -> str:
        return self.noted(str(self.number))

    def __repr__(self) -> str:
        return self.noted(repr(self.number))

    def __format__(self, spec: str) -> str:
        return self.noted(format(self.number, spec), spec)


@functools.lru_cache
def noted_class(cls: type) -> type:
    return type(cls.__name__, (Noted, cls), {})


def noted(number: Any) -> Any:
    """The number of a traced value as it is put into a text."""
    if not isinstance(number, (float, complex, np.floating, np.complexfloating)):
        return number
    cls: Any = type(number)
    found = noted_class(cls)(number)
    found.number, found.whole = number, False
    return found


def joined(texts: list[str]) -> str:
    """Texts one behind the other."""
    found = "".join(texts)
    for text in texts:
        if type(text) is Shown:
            return shown(found, text.trace)
    return found


def shown_in(things: Any) -> Shown | None:
    """One among things, and in lists, tuples and dicts among them, or the one that bytes are of."""
    for thing in things:
        if type(thing) in (Shown, ShownBytes):
            found: Shown = thing if type(thing) is Shown else thing.text
            return found
        inner = (
            shown_in(thing.values() if type(thing) is dict else thing) if type(thing) in (list, tuple, dict) else None
        )
        if inner is not None:
            return inner
    return None


TAKING: Final = (str, list, dict, set, type, types.ModuleType)
"""The owners of methods in C that keep no text, or the very object."""


PLAIN: Final = frozenset({str, bytes, int, bool, types.NoneType, list, tuple, dict, Shown, ShownBytes, ShownMatch})
ALONE: Final = (io.StringIO, io.BytesIO)
"""What keeps a text for itself; others may have it written into a file, or another object, that is read later."""
AWAY: Final = 0
"""In `Trace.holders`, for all that may have written a text where it is read in another way."""
OF_FILES: Final = frozenset({np.loadtxt, np.genfromtxt, np.load, np.fromfile})
"""What reads numbers of a file that is named."""


def written_elsewhere(trace: Trace, x: Any, named: bool = False) -> list[tuple[Any, Shown]]:
    """What such a text was written into, if that may be read here: from another stream, or by what parses one.

    ``named``: a file is named.
    """
    if AWAY not in trace.holders:
        return []
    streams = isinstance(x, (io.IOBase, pathlib.PurePath)) or type(x).__module__ in ("_csv", "csv")
    if not streams and not (named and isinstance(x, str)):
        return []
    place, held = place_of(x), trace.holders[AWAY].values()
    return [found for found in held if place is None or place_of(found[0]) in (None, place)]


def place_of(x: Any) -> str | None:
    """The file that is written or read; None where that is not known."""
    name = attribute(x, "name") if isinstance(x, io.IOBase) else x
    return os.path.realpath(name) if isinstance(name, (str, pathlib.PurePath)) else None


def text_in_call(trace: Trace, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Shown | None:
    """Such a text among what a function is given, or written into that or into the owner of a method.

    Raises:
        SrcgradError: the function makes numbers of it.
    """
    text = shown_in((*args, *kwargs.values()))
    name, owner = attribute(function, "__qualname__"), attribute(function, "__self__")
    if text is not None:
        hold(trace, owner, text)
    elif trace.holders:
        given = (owner, *args, *kwargs.values())
        held = [trace.holders[id(x)] for x in given if id(x) in trace.holders]
        held = held or [found for x in given for found in written_elsewhere(trace, x, is_among(function, OF_FILES))]
        if not held:
            return None
        text = held[0][1]
        if function is float or function is complex:
            text.require_unread(f"{name}()")
    if text is not None and (attribute(function, "__module__"), name) in READING:
        text.require_unread(f"{name}()")
    return text


def made_of_texts(trace: Trace, function: Any, kwargs: dict[str, Any], text: Shown | None, found: Any) -> Any:
    """What a function has given for such a text, or, without one, has made itself of values of which it knows none."""
    if text is None:
        text = trace.showing
        hold(trace, (kwargs.get("file") or sys.stdout) if function is print else attribute(function, "__self__"), text)
        if not isinstance(found, str):
            return found
    if isinstance(found, str) and type(found) not in (str, Shown):  # of a class of the user's
        trace.holders[id(found)] = found, text
        return found
    if isinstance(found, (float, complex)) and attribute(function, "__self__") is not None:
        text.require_unread(f"{attribute(function, '__name__')}()")
    elif type(found) not in PLAIN:
        trace.holders[id(found)] = found, text
    return text.like(found)


def hold(trace: Trace, owner: Any, text: Shown) -> None:
    """Remember that the owner of a method may give the text again, or a file that it writes."""
    if owner is None or isinstance(owner, TAKING):
        return
    trace.holders[id(owner)] = owner, text
    if not isinstance(owner, ALONE) and owner not in (sys.stdout, sys.stderr):
        trace.holders.setdefault(AWAY, {})[id(owner)] = owner, text


def lines_of(things: Any) -> Any:
    """What a loop is over: the lines of a stream with such a text."""
    trace = CURRENT.get()
    if trace is None or not trace.holders:
        return things
    held = [trace.holders[id(things)]] if id(things) in trace.holders else written_elsewhere(trace, things)
    return map(held[0][1].like, things) if held else things
