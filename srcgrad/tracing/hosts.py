"""Calls that run whenever the program runs, in the order of the user's code: random draws, clocks and warnings.

The language has arrays only. A random generator that a program works with is an int64 in it, the object's number in
`OBJECTS`; user code holds a `HostObject` in its place. What a draw gives depends on its arguments and on what happened
before, so that it is never computed while tracing: its type is that of the same draw from another generator.
"""

from __future__ import annotations

import random
import sys
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

import numpy as np

from srcgrad.ir.locks import new_lock
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.registry import Registry
from srcgrad.ir.source import Span, internal_frame
from srcgrad.ir.types import ArrayType
from srcgrad.tracing.lasting import done_for_good
from srcgrad.tracing.pytree import TreeDef, flatten
from srcgrad.tracing.trace import CURRENT, Refused, current_span, current_trace, warning_filters
from srcgrad.tracing.tracer import Tracer, as_tracer, emit, from_value
from srcgrad.tracing.unasked import attribute, is_among

NUMBER: Final = ArrayType(np.dtype(np.int64))
"""The type of an object's number."""
KEPT: Final = 4096
"""How many objects are remembered: those used last."""


def draws_by_numpy(thing: Any = None) -> bool:
    """Whether there may be a generator of NumPy's, of whose module nothing here needs to be loaded before it is."""
    return "numpy.random" in sys.modules


OTHERS: Final[Registry[type, Callable[[], Any]]] = Registry(draws_by_numpy)
OTHERS[random.Random] = lambda: random.Random(0)
OTHERS.filled_by("srcgrad.tracing", ["generators"])
"""The kinds of objects that programs work with, and how to make another one of the kind."""
CLOCKS: Final = frozenset(
    {
        *(time.time, time.perf_counter, time.monotonic, time.process_time, time.thread_time),
        *(time.time_ns, time.perf_counter_ns, time.monotonic_ns, time.process_time_ns, time.thread_time_ns),
    }
)
SILENT: Final[Registry[Any, None]] = Registry(draws_by_numpy)
SILENT.update({time.sleep: None, warnings.warn: None})
SILENT.filled_by("srcgrad.tracing", ["generators"])
"""Functions that give nothing, and that are not called to find that out."""
MAKERS: Final[Registry[Any, type]] = Registry(draws_by_numpy)
MAKERS[random.Random] = random.Random
MAKERS.filled_by("srcgrad.tracing", ["generators"])
"""What makes such objects, and of which kind."""
LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50, "log": 0}
"""The methods of loggers that are called when a program runs, and the levels of their messages."""
ASKED_OF_LOGGERS: Final = frozenset({"isEnabledFor", "getEffectiveLevel"})
"""The methods of loggers whose answers are read at each call."""
LOGGERS_KNOW: Final = frozenset(
    {
        *("disabled", "filters", "handlers", "hasHandlers", "level", "parent"),
        *("propagate", "setLevel"),
    }
)
"""What of a logger may be another at each call."""
STREAMS: Final = {"sys.stdout": "stdout", "sys.stderr": "stderr"}
"""What ``print`` may be told to print to; each call finds the stream that is there then."""
STREAMS_DO: Final = frozenset(
    {
        *("buffer", "close", "detach", "encoding", "fileno", "flush", "isatty", "read", "readline", "readlines"),
        *("reconfigure", "seek", "truncate", "write", "writelines"),
    }
)
"""What of a stream is done or asked without ``print``, which would be while tracing."""
CACHED: Final = type(lru_cache(len))
"""A function with the results that it has given."""


class Objects:
    """Python objects by number, safe under threads; those that were used least recently are forgotten.

    The shared generators have numbers of their own, which are the same in each process.
    """

    def __init__(self, kept: int) -> None:
        self.kept = kept
        self.lock = new_lock()
        self.held: OrderedDict[int, Any] = OrderedDict()

    def number(self, thing: Any) -> np.int64:
        for place, generator in enumerate(shared_generators()):
            if thing is generator:
                return np.int64(-1 - place)
        with self.lock:
            self.held[id(thing)] = thing
            self.held.move_to_end(id(thing))
            while len(self.held) > self.kept:
                self.held.popitem(last=False)
        return np.int64(id(thing))

    def find(self, number: Any) -> Any:
        if number < 0:
            return shared_generators()[-1 - int(number)]
        with self.lock:
            found = self.held.get(int(number))
        if found is None:
            raise RuntimeError(f"a random generator was forgotten: a program works with at most {self.kept}")
        return found


OBJECTS: Final = Objects(KEPT)


def is_host_object(thing: object) -> bool:
    """Whether a program can work with this object at each call."""
    return type(thing) in OTHERS


def is_logger(thing: object) -> bool:
    """Whether this is a logger of the standard library's, which is loaded then."""
    kind = type(thing)
    return kind.__module__ == "logging" and kind.__name__ in ("Logger", "RootLogger")


def is_log_function(thing: object) -> bool:
    """Whether this is `logging.getLogger`, or a function of `logging` with a message for the root of loggers."""
    known = isinstance(thing, FunctionType) and thing.__module__ == "logging"
    return known and (thing.__name__ == "getLogger" or thing.__name__ in LEVELS)  # type: ignore[attr-defined]


def is_global_cache(thing: Any) -> bool:
    """Whether this is a function of a module that keeps the results which it has given."""
    return is_cache(thing) and "<locals>" not in thing.__wrapped__.__qualname__


def is_cache(thing: Any) -> bool:
    """Whether this is a Python function that keeps the results which it has given."""
    return type(thing) is CACHED and isinstance(attribute(thing, "__wrapped__"), FunctionType)


@lru_cache(maxsize=1)
def shared_generators() -> tuple[Any, ...]:
    """The generators behind the functions of ``np.random`` and ``random``."""
    return tuple(getattr(function, "__self__", None) for function in (np.random.normal, random.gauss))


def is_host_function(thing: object) -> bool:
    """Whether this is a draw from a shared generator, a clock, or what makes a generator."""
    owner = attribute(thing, "__self__")
    if type(owner) in OTHERS:
        return any(owner is shared for shared in shared_generators())
    return any(is_among(thing, known) for known in (CLOCKS, SILENT, MAKERS, OTHERS))


class HostObject:
    """What stands in a trace for an object of one of the kinds in `OTHERS`."""

    __slots__ = ("host_kind", "host_number")
    __srcgrad_unfinished__ = True

    def __init__(self, number: Tracer, kind: type) -> None:
        self.host_number = number
        self.host_kind = kind

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # what isinstance() asks
        return self.host_kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"{self.host_kind.__name__!r} object has no attribute {name!r}")
        if not callable(getattr(OTHERS[self.host_kind](), name)):
            raise Refused(f"reads the attribute {name!r} of a random generator")
        return HostMethod(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in HostObject.__slots__:
            raise Refused(f"sets the attribute {name!r} of a random generator")
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"HostObject({self.host_kind.__name__})"

    def __str__(self) -> str:
        raise Refused("a random generator is returned or printed")


class HostMethod:
    """A method of a `HostObject`."""

    def __init__(self, owner: HostObject, name: str) -> None:
        self.__self__ = owner
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from srcgrad.tracing.conversion.draws import drawn  # which is written with this module

        return drawn(self, args, kwargs)


def numbered(leaf: Any) -> Any:
    """A leaf of the arguments as a program takes it: an object by its number."""
    if type(leaf) is HostObject:
        return leaf.host_number
    return OBJECTS.number(leaf) if type(leaf) in OTHERS else leaf


def shared(generator: Any) -> HostObject:
    """A shared generator as a trace has it."""
    return HostObject(from_value(current_trace().constant(OBJECTS.number(generator)), scalar=True), type(generator))


class MethodSite:
    """The callable of an operation that calls a method of an object, given by its number."""

    def __init__(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.name, self.args, self.kwargs = name, tuple(map(own, args)), {k: own(v) for k, v in kwargs.items()}

    def __call__(self, number: Any) -> Any:
        return leaves_of(getattr(OBJECTS.find(number), self.name)(*self.args, **self.kwargs))


class FunctionSite:
    """The callable of an operation that calls a function."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.function, self.args, self.kwargs = function, tuple(map(own, args)), {k: own(v) for k, v in kwargs.items()}

    def __call__(self) -> Any:
        return leaves_of(self.function(*self.args, **self.kwargs))


class MakeSite(FunctionSite):
    """The callable of an operation that makes an object; it gives the object's number."""

    def __call__(self) -> Any:
        return OBJECTS.number(self.function(*self.args, **self.kwargs))


def own(argument: Any) -> Any:
    """An argument as it is now."""
    return argument.copy() if isinstance(argument, np.ndarray) else argument


def leaves_of(found: Any) -> Any:
    """What a site returns: its only value, or a tuple of several."""
    leaves = [] if found is None else flatten(found)[0]
    return leaves[0] if len(leaves) == 1 else tuple(leaves)


def call_back(site: Callable[..., Any], operands: Sequence[Tracer], like: Any, name: str) -> Any:
    """Call a site when the program runs; ``like`` has the types and the structure of what it gives.

    Raises:
        Refused: it gives what is no number or array.
    """
    from srcgrad.tracing.conversion.state import kind_of  # which is written with this module

    leaves: list[Any] = []
    tree: TreeDef | None = None
    if like is not None:
        leaves, tree = flatten(like)
    kinds = [kind_of(leaf) for leaf in leaves]
    if None in kinds:
        raise Refused(f"{name} gives a {type(like).__name__} at each call")
    trace = current_trace()
    trace.sites.append(site)
    values = [operand.read() for operand in operands]
    attrs = {"site": len(trace.sites) - 1, "results": tuple([kind.type for kind in kinds if kind is not None])}
    trace.builder.span = current_span()
    operation = trace.builder.emit_operation(REGISTRY["host_call"], values, attrs)
    if tree is None:
        return None
    made = [
        from_value(value, kind.scalar, kind.weak)
        for value, kind in zip(operation.results, kinds, strict=True)
        if kind is not None
    ]
    return tree.unflatten(made)


def ask(site: Callable[..., Any], operands: Sequence[Any], like: Any, name: str) -> Any:
    """What a function of numbers gives of traced values, through which nothing flows back: at each run of the program.

    A trace with numbers has those of its call. ``like`` has the types and the structure of what the function gives.
    """
    given = [as_tracer(emit("stop_gradient", as_tracer(x))) for x in operands]
    numbers = [x.number() for x in given] if current_trace().concrete else [None]
    if any(number is None for number in numbers):
        return call_back(site, given, like, name)
    found = site(*numbers)
    return tuple(map(as_tracer, found)) if isinstance(found, tuple) else as_tracer(found)


def call_method(owner: HostObject, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A draw whose arguments are known, at each run of the program.

    Raises:
        Refused: it changes its arguments, or gives what is no number or array.
    """
    if name == "shuffle" or kwargs.get("out") is not None:
        raise Refused(f"{name} writes into an array that is not traced")
    like = getattr(OTHERS[owner.host_kind](), name)(*args, **kwargs)
    return call_back(MethodSite(name, args, kwargs), [owner.host_number], like, name)


def call_function(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A clock, what makes a generator, or a function that gives nothing: at each run of the program."""
    name = function.__name__
    kind = MAKERS.get(function)
    if kind is not None:
        if args and isinstance(args[0], HostObject):
            if kind is args[0].host_kind:
                return args[0]
            raise Refused(f"{name} makes a generator of another one")
        site = MakeSite(function, args, kwargs)
        return HostObject(call_back(site, [], np.int64(0), name), kind)
    if function in OTHERS:
        raise Refused(f"{name} makes a generator of another object")
    if function is warnings.warn:
        from srcgrad.tracing.conversion.texts import warn_of_values  # which is written with this module

        function = warnings.warn_explicit
        args, kwargs = placed_warning(*args, **kwargs)
        if current_trace().concrete:
            return function(*args, **kwargs)
        if current_trace().filters is not warning_filters():
            raise Refused("warns where warnings.catch_warnings decides what becomes of it")
        if warn_of_values(*args):
            return None
        return call_back(FunctionSite(function, args, kwargs), [], None, name)
    like = function(*args, **kwargs) if function in CLOCKS else None
    return call_back(FunctionSite(function, args, kwargs), [], like, name)


def placed_warning(
    message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **options: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of ``warnings.warn_explicit`` that warn of the user's line, or of one that has called it.

    A program knows by itself what it has warned of; a trace with numbers warns as the user's module does.
    """
    kind = type(message) if isinstance(message, Warning) else category or UserWarning
    caller = calling_frame(max(stacklevel, 1))
    if caller is None:
        return (message, kind, "<unknown>", 0), {"registry": {}}
    span = Span.of(caller.f_code, caller.f_lasti)
    known = caller.f_globals.setdefault("__warningregistry__", {}) if current_trace().concrete else {}
    return (message, kind, span.file, span.line), {"registry": known}


def calling_frame(level: int) -> FrameType | None:
    """The frame of the user's code that a warning with this ``stacklevel`` is about.

    Blocks that were made of statements have the function's name and are no calls of the user's: of a function it is the
    frame of the block that is run. Of a level beyond the function that is traced, which is called from another line
    each time, it is that of the function.
    """
    found: list[FrameType] = []
    traced = 0
    inner: CodeType | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if internal_frame(frame):
            traced = len(found) if frame.f_code.co_name == "call_user" else traced
        else:
            code, block = frame.f_code, inner
            inner = code
            if block is None or block.co_qualname != code.co_qualname or block not in code.co_consts:
                found.append(frame)
        frame = frame.f_back
    return found[min(level, traced or len(found)) - 1] if found else None


def runs_later(function: Any) -> bool:
    """Whether this is to be called when the program runs: a host function, in a trace that does not know its numbers.
    Or a warning, which is of a line of the user's in any trace.

    Raises:
        Refused: it draws from a generator that the trace knows nothing about.
    """
    trace = CURRENT.get()
    if trace is None or trace.concrete:
        return trace is not None and function is warnings.warn  # between which and the user's code are frames of ours
    if is_host_function(function):
        return True
    if type(attribute(function, "__self__")) in OTHERS:
        raise Refused(f"{function.__name__} draws at each call")
    return False


def later(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What a call that `runs_later` gives."""
    done_for_good(function)
    owner = attribute(function, "__self__")
    if type(owner) in OTHERS:
        return HostMethod(shared(owner), function.__name__)(*args, **kwargs)
    return call_function(function, args, kwargs)
