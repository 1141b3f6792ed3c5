"""f-strings, ``%``, methods of texts and ``print`` of traced values: texts known only when the program runs."""

from __future__ import annotations

import functools
import operator
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.tracing.asked import shown_of
from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.conversion.effects import emit_call, finished, is_unfinished
from srcgrad.tracing.conversion.placed_texts import PlacedText, refuse
from srcgrad.tracing.conversion.state import require_defined, unknown
from srcgrad.tracing.held import holding, is_slotted
from srcgrad.tracing.hosts import STREAMS
from srcgrad.tracing.journals import StandIn
from srcgrad.tracing.shown_texts import EXACT, joined, noted, shown_in
from srcgrad.tracing.trace import CURRENT, NeedsConcrete, Refused
from srcgrad.tracing.tracer import Deferring, Tracer, contains_tracer
from srcgrad.tracing.unasked import attribute

CONVERSIONS: dict[int, Callable[[Any], str]] = {ord("s"): str, ord("r"): repr, ord("a"): ascii}
METHODS: Final = frozenset(
    {
        "capitalize", "casefold", "center", "expandtabs", "ljust", "lower", "lstrip", "removeprefix", "removesuffix",
        "replace", "rjust", "rstrip", "strip", "swapcase", "title", "upper", "zfill",
    }
)  # fmt: skip
"""The methods of texts that give another text."""
Part = Any


class Made(NamedTuple):
    """A part of a text that a function makes of values and texts."""

    function: Callable[..., str]
    arguments: tuple[Any, ...]
    options: dict[str, Any]


class Text:
    """A text with traced values in it; only ``print`` knows what to do with it."""

    __srcgrad_unfinished__ = True

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)

    def __add__(self, other: Any) -> Any:
        return Text([*self.parts, other]) if isinstance(other, (str, Text)) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return Text([other, *self.parts]) if isinstance(other, str) else NotImplemented

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(f"'str' object has no attribute {name!r}") if not hasattr(str, name) else needed()
        return lambda *args, **options: Text([Made(getattr(str, name), (self, *args), options)])

    def refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise needed()

    __str__ = __format__ = __len__ = __iter__ = __eq__ = __hash__ = __getitem__ = __contains__ = __mod__ = refuse
    __float__ = __int__ = __complex__ = __lt__ = __le__ = __gt__ = __ge__ = __mul__ = __rmul__ = refuse

    def __repr__(self) -> str:
        return "Text"


def needed() -> NeedsConcrete:
    """The error of what asks a text that is not known yet what it says."""
    return NeedsConcrete(
        "formatting needs the value of a traced array", hint="print() the text, or pass it on as it is"
    )


def text(*parts: Part) -> Any:
    """An f-string: constant texts, and triples of value, conversion and format."""
    if not any(isinstance(part, tuple) and (unknown(part[0]) or isinstance(part[0], Text)) for part in parts):
        if len(parts) == 1:  # which may know its value
            return formatted(parts[0], None)
        return joined([formatted(part, None) for part in parts])
    return Text(parts)


def formatted(part: Part, numbers: dict[int, Any] | None) -> str:
    """One part as text; ``numbers`` has the values of traced ones, by the tracer's identity."""
    if isinstance(part, str):
        return part
    if isinstance(part, Text):
        return "".join(formatted(inner, numbers) for inner in part.parts)
    if isinstance(part, Made):
        return part.function(*part.arguments, **part.options)
    value, conversion, spec = part
    if isinstance(spec, Text):
        spec = formatted(spec, numbers)
    if numbers is not None and id(value) in numbers:
        value = numbers[id(value)]
    if isinstance(value, Text):
        value = formatted(value, numbers)
    converted = CONVERSIONS.get(conversion)
    return format(value if converted is None else converted(value), spec)


def tracers_in(things: Sequence[Any]) -> list[Tracer]:
    found: list[Tracer] = []
    for thing in things:
        if isinstance(thing, Tracer):
            require_defined(thing)
            found.append(thing)
        elif isinstance(thing, Deferring):
            str(thing)  # which refuses
        elif isinstance(thing, Text):
            found += tracers_in([part for part in thing.parts if not isinstance(part, str)])
        elif type(thing) is PlacedText:
            found += tracers_in([thing.place, *thing.texts])
        elif isinstance(thing, (list, tuple)):
            found += tracers_in(thing)
        elif isinstance(thing, dict):
            found += tracers_in(list(thing.values()))
        elif own_attributes_hold_some(thing):
            raise needed()
    return found


def own_attributes_hold_some(thing: Any) -> bool:
    """Whether an object has traced values, which its own code would put into a text."""
    if isinstance(thing, (type, types.ModuleType, StandIn)) or callable(thing):
        return False
    held = holding(thing) if is_slotted(thing) else attribute(thing, "__dict__")
    return type(held) is dict and contains_tracer(list(held.values()))


class HostSite:
    """The callable of an operation that prints, or does something else with numbers and texts."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.function = function
        self.tracers = tracers_in(arguments)
        self.arguments = tuple(map(detached, arguments))
        self.keys = [id(tracer) for tracer in self.tracers]
        self.kinds = [(tracer.scalar, tracer.weak) for tracer in self.tracers]
        self.options = options

    def given(self, values: Sequence[Any]) -> list[Any]:
        """The arguments with the numbers of a run."""
        numbers = {
            key: as_python(value, scalar, weak)
            for key, value, (scalar, weak) in zip(self.keys, values, self.kinds, strict=True)
        }
        return [attached(argument, numbers) for argument in self.arguments]

    def __call__(self, *values: Any) -> None:
        self.function(*self.given(values), **self.options)


def known_arguments(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with numbers in place of traced values, in a trace that knows them."""
    numbers = {id(tracer): tracer.printed("formatting") for tracer in tracers_in(arguments)}
    found: tuple[Any, ...] = attached(detached(arguments), numbers)
    return found


class Place:
    """Where a traced value stood in what is printed."""

    def __init__(self, key: int) -> None:
        self.key = key


def detached(thing: Any) -> Any:
    """An argument of ``print`` as it is now, without tracers."""
    return with_numbers(thing, lambda number: Place(id(number)))


def with_numbers(thing: Any, change: Callable[[Tracer], Any]) -> Any:
    """The same with something else in place of each traced value."""
    again = functools.partial(with_numbers, change=change)
    if isinstance(thing, Tracer):
        return change(thing)
    if isinstance(thing, Text):
        return Text([again(part) for part in thing.parts])
    if isinstance(thing, Made):
        return Made(thing.function, again(thing.arguments), again(thing.options))
    if type(thing) is PlacedText:
        return PlacedText(again(thing.texts), again(thing.place))
    if type(thing) in (list, tuple):
        return type(thing)(map(again, thing))
    if type(thing) is dict:
        return {key: again(value) for key, value in thing.items()}
    return thing


def attached(thing: Any, numbers: dict[int, Any]) -> Any:
    if isinstance(thing, Place):
        return numbers[thing.key]
    if isinstance(thing, Text):
        return "".join(formatted(attached_part(part, numbers), None) for part in thing.parts)
    if type(thing) is PlacedText:
        return attached(thing.texts[attached(thing.place, numbers)], numbers)
    if type(thing) in (list, tuple):
        return type(thing)(attached(item, numbers) for item in thing)
    if type(thing) is dict:
        return {key: attached(value, numbers) for key, value in thing.items()}
    return thing


def attached_part(part: Part, numbers: dict[int, Any]) -> Part:
    if isinstance(part, Text):
        return attached(part, numbers)
    if isinstance(part, Made):
        return Made(part.function, attached(part.arguments, numbers), attached(part.options, numbers))
    if isinstance(part, tuple):
        return tuple(attached(item, numbers) for item in part)
    return part


def as_python(value: Any, scalar: bool, weak: bool) -> Any:
    """A value as the object that the traced one stood for."""
    if weak:
        return np.asarray(value).item()
    return np.asarray(value)[()] if scalar else np.array(value)


def stream_of(file: Any) -> str | None:
    """Which of the process's streams this is: another one may be in its place when the program runs.

    Raises:
        Refused: it is both.
    """
    found = [] if file is None else [name for name in STREAMS.values() if getattr(sys, name) is file]
    if len(found) > 1:
        raise Refused("sys.stdout and sys.stderr are one stream")
    return found[0] if found else None


def print_to(stream: str, *arguments: Any, **options: Any) -> None:
    print(*arguments, **options, file=getattr(sys, stream))


@call_rule(print)
def print_(*arguments: Any, **options: Any) -> None:
    """``print``: at each run of the program, in order; at once where the numbers are known."""
    trace = CURRENT.get()
    if trace is None or trace.concrete:
        print(*arguments, **options)  # noqa: T201
        return
    stream = stream_of(options.get("file"))
    if stream is None:
        site = HostSite(print, arguments, options)
    else:
        options = {name: value for name, value in options.items() if name != "file"}
        site = HostSite(functools.partial(print_to, stream), arguments, options)
    emit_site(site)


def emit_site(site: HostSite) -> None:
    operands = [tracer.read() for tracer in site.tracers]
    site.tracers = []
    emit_call(site, operands)


def warn_of_values(message: Any, category: Any, file: str, line: int) -> bool:
    """Warn with the values of the run, if a message has any; whether it has."""
    if isinstance(message, Warning):
        if not is_unfinished(message):
            return False
        emit_site(HostSite(functools.partial(warned, message, file, line, {}), (message.args, vars(message)), {}))
        return True
    if not isinstance(message, (Text, Tracer)):
        return False
    emit_site(HostSite(warnings.warn_explicit, (message, category, file, line), {"registry": {}}))
    return True


def warned(
    warning: Warning, file: str, line: int, registry: dict[Any, Any], args: tuple[Any, ...], names: dict[str, Any]
) -> None:
    found = finished(warning, args, names)
    assert isinstance(found, Warning)
    warnings.warn_explicit(found, type(found), file, line, registry=registry)


@call_rule(str)
def str_(*args: Any, **options: Any) -> Any:
    if len(args) == 1 and not options and (unknown(args[0]) or isinstance(args[0], Text)):
        return args[0] if isinstance(args[0], Text) else Text([(args[0], ord("s"), "")])
    if len(args) == 1 and not options and type(args[0]) in (list, tuple, dict):
        return made(str, *args)
    return str(*args, **options)


@call_rule(repr)
def repr_(thing: Any, /) -> Any:
    if type(thing) in (list, tuple, dict):
        return made(repr, thing)
    return Text([(thing, ord("r"), "")]) if unknown(thing) else repr(thing)


@call_rule(format)
def format_(value: Any, spec: Any = "", /) -> Any:
    return Text([(value, -1, spec)]) if unknown(value) else format(value, spec)


# --- texts made of texts and values ----------------------------------------------------------------


def made(function: Callable[..., str], *arguments: Any, **options: Any) -> Any:
    """What a function makes of values: at once where they are known."""
    inner = tracers_in([*arguments, *options.values()])
    if not any(map(unknown, inner)) and not texts_in([*arguments, *options.values()]):
        numbers = {id(tracer): noted(tracer.printed("formatting")) for tracer in inner}
        known = attached(detached(arguments), numbers)
        return whole(function(*known, **attached(detached(options), numbers)), arguments, options, inner, numbers)
    return Text([Made(function, arguments, options)])


def whole(
    text: str, arguments: Sequence[Any], options: dict[str, Any], tracers: list[Tracer], numbers: dict[int, Any]
) -> str:
    """A text made of these, which shows all digits of a number if one of them does, or if it was asked to."""
    exact = type(arguments[0]) is str and EXACT.search(arguments[0]) is not None
    for tracer in tracers:
        if exact or getattr(numbers[id(tracer)], "whole", False):
            return shown_of(tracer, text)
    found = shown_in([*arguments, *options.values()])
    return text if found is None else found.like(text)


def texts_in(things: Iterable[Any]) -> bool:
    """Whether a text that is not known yet is among things, or in lists, tuples and dicts among them.

    Raises:
        Refused: one that a traced place decides is.
    """
    for thing in things:
        if type(thing) is PlacedText:
            refuse()
        inner = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, (list, tuple)) else ()
        if isinstance(thing, Text) or texts_in(inner):
            return True
    return False


def percent(template: Any, values: Any) -> Any:
    """``"%.3f" % values``."""
    return made(operator.mod, template, values) if CURRENT.get() is not None else template % values


@call_rule(str.format)
def str_format(template: str, /, *args: Any, **options: Any) -> Any:
    return made(str.format, template, *args, **options)


@call_rule(str.join)
def str_join(separator: str, items: Iterable[Any], /) -> Any:
    held = list(items)
    return made(str.join, separator, held) if texts_in(held) else whole(separator.join(held), held, {}, [], {})
