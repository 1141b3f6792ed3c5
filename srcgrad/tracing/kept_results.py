"""What functions with a cache give for constants: read of the caches anew at each call, as what they have captured.

A trace comes to such a call and finds no constant, or a function that reads what can change. It begins again, once the
analysis knows the call (`cache.watching`): guards and inputs then read its result of the user's own cache, at each call
of the program. So a result is what Python would find: the same array, or another one since the cache was cleared.
"""

from __future__ import annotations

import contextvars
import os
import sys
import types
from collections.abc import Hashable
from typing import Any, Final, NamedTuple

from srcgrad.tracing.built_on import items_in
from srcgrad.tracing.held import holding, is_slotted
from srcgrad.tracing.hosts import ASKED_OF_LOGGERS, is_logger
from srcgrad.tracing.purity import hidden_kind, static_key
from srcgrad.tracing.storage import Watched
from srcgrad.tracing.trace import CURRENT, Refused, Unread
from srcgrad.tracing.unasked import attribute

MOST_RESULTS: Final = 128
"""The most results that are read for one program."""


class Reference(NamedTuple):
    """Stands for a captured object among arguments: which node of the analysis it is."""

    node: int


class Result(NamedTuple):
    """A call of a function with a cache, of this code."""

    code: types.CodeType
    key: Hashable
    """Which tells apart arguments that are equal, as 1 and 1.0 are: of a cache they may find what the other has put
    there.
    """
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    method: bool = False
    """Whether the first argument is an object, which stands before these."""

    @property
    def nodes(self) -> tuple[int, ...]:
        """Of the captured objects among the arguments, in order."""
        return tuple([argument.node for argument in self.args if type(argument) is Reference])

    def of(self, cache: Any, *objects: Any) -> Any:
        """What a cache gives now; ``objects``: whose method it is, and those among the arguments.

        Raises:
            KeyError: the function raises an error.
        """
        left = iter(objects)
        owner = [next(left)] if self.method else []
        args = [next(left) if type(argument) is Reference else argument for argument in self.args]
        try:
            return cache(*owner, *args, **dict(self.kwargs))
        except Exception as error:
            raise KeyError(cache) from error

    @property
    def label(self) -> str:
        return ", ".join([*map(repr, self.args), *[f"{name}={value!r}" for name, value in self.kwargs]])


class Question(NamedTuple):
    """A call of what belongs to the process: a logger's method, or that of the environment or of a context variable."""

    function: Any
    key: Hashable
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]

    def of(self) -> Any:
        """The answer now.

        Raises:
            KeyError: there is none.
        """
        try:
            return self.function(*self.args, **dict(self.kwargs))
        except Exception as error:
            raise KeyError(self.function) from error

    @property
    def label(self) -> str:
        owner = attribute(self.function, "__self__")
        name = (
            "sys.modules"
            if owner is sys.modules
            else attribute(owner, "name") or type(owner).__name__.strip("_").lower()
        )
        return f"{name}.{self.function.__name__}({', '.join(map(repr, self.args))})"


CHANGING: Final = frozenset({"set", "reset"})
"""What a context variable has by which it is changed."""


def is_asked(thing: Any) -> bool:
    """Whether this is the environment, a context variable, or what has been imported."""
    return thing is os.environ or thing is sys.modules or type(thing) is contextvars.ContextVar


def is_question(function: Any) -> bool:
    """Whether this asks for what anything in the process may change."""
    owner = attribute(function, "__self__")
    if is_logger(owner):
        return function.__name__ in ASKED_OF_LOGGERS
    return is_asked(owner) and bool(function.__name__ == ("__contains__" if owner is sys.modules else "get"))


def is_asked_by_item(x: Any) -> bool:
    """Whether ``k in x`` is a question; so is ``x[k]`` of the environment."""
    return x is os.environ or x is sys.modules


def answer_now(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The answer to a question, which is read anew at each call of the program."""
    from srcgrad.cache import is_convertible  # which is written with this module

    trace, given = CURRENT.get(), tuple(kwargs.items())
    key = static_key((args, given), is_convertible, True)
    if trace is None or trace.concrete:
        return function(*args, **kwargs)
    question = None if key is None else Question(function, key, args, given)
    if question in trace.answers:
        return trace.answers[question]
    return require_read(function, question, function(*args, **kwargs))


def called_with(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], method: bool = False) -> Result | None:
    """The call of a function, if its arguments are constants."""
    from srcgrad.cache import is_convertible  # which is written with this module

    trace, given = CURRENT.get(), tuple(kwargs.items())
    owners = {} if trace is None else trace.owners
    args = tuple([Reference(owners[id(x)].node) if id(x) in owners else x for x in args])
    others = tuple([None if type(x) is Reference else x for x in args])
    key = static_key((others, given), is_convertible, True)
    return None if key is None else Result(function.__wrapped__.__code__, key, args, given, method)


def originals(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The user's own objects for their copies among arguments, by which a cache finds what it has.

    Raises:
        Refused: the function has changed a captured object, so that these are not as it finds them.
    """
    trace = CURRENT.get()
    owners = {} if trace is None else trace.owners
    found = tuple([owners[id(x)].original if id(x) in owners else x for x in args])
    while trace is not None and any(own is not x for own, x in zip(found, args, strict=True)):
        if any(map(has_changed, trace.watched)):
            raise Refused("asks a cache by an object, where it has changed one")
        trace = trace.parent
    return found


def has_changed(watched: Watched) -> bool:
    """Whether a trace has put something else into its copy of a container, an object or an array of labels."""
    if callable(watched.before):
        return not watched.before(watched.copy)
    held = holding(watched.copy) if is_slotted(watched.copy) else items_in(watched.copy)
    now, before = ([*x, *x.values()] if isinstance(x, dict) else list(x) for x in (held, watched.before))
    return len(now) != len(before) or any(one is not other for one, other in zip(now, before, strict=True))


def is_constant(found: Any) -> bool:
    """Whether what a cache gives stays what it is: SciPy's caches give modules of its own too, by which it calls."""
    if type(found) is tuple:
        return all(map(is_constant, found))
    if type(found) is types.ModuleType:
        return found.__name__.partition(".")[0] in ("numpy", "scipy")
    return static_key(found, lambda _: False, True) is not None


def require_read(function: Any, result: Result | Question | None, found: Any) -> Any:
    """Have the trace begin again with a result that is read at each call.

    Returns:
        What stands for it in the rest of a trace that will be given up: other results are found by that, too.

    Raises:
        Unread: it could be changed there.
        Refused: it cannot be read.
    """
    trace = CURRENT.get()
    while trace is not None and trace.parent is not None:
        trace = trace.parent
    if result is None or trace is None or result in trace.results or len(trace.results) >= MOST_RESULTS:
        raise Refused(f"{function.__name__} keeps the {type(found).__name__} that it gives, which can change")
    unread = Unread(result)  # which the trace remembers
    if (stand_in := inert(found)) is None:
        raise unread
    return stand_in


def inert(found: Any) -> Any:
    """A result that a trace cannot change; None where there is none."""
    if hidden_kind(found) == "array":
        view = found.view()
        view.flags.writeable = False
        return view
    if type(found) is tuple:
        items = tuple(map(inert, found))
        return None if any(item is None for item in items) else items
    return found if is_constant(found) else None


def result_of(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function with a cache gives for what is not traced."""
    own = originals(args)
    found, trace = function(*own, **kwargs), CURRENT.get()
    captured = any(one is not other for one, other in zip(own, args, strict=True))
    if trace is None or trace.concrete or (is_constant(found) and not captured):
        return found
    return require_read(function, called_with(function, args, kwargs), found)


class Owner(NamedTuple):
    """A copy of a captured object, the object, which node of the analysis it is, and what its methods keep."""

    copy: Any
    original: Any
    node: int
    results: dict[Result, Any]


def note_owner(copy: Any, original: Any, node: int, results: dict[Result, Any]) -> None:
    """Let the trace in progress know a copy of an object by which caches would look up what they have."""
    trace = CURRENT.get()
    if trace is not None:
        trace.owners[id(copy)] = Owner(copy, original, node, results)


def result_of_method(cache: Any, owner: Owner, args: tuple[Any, ...], kwargs: dict[str, Any], traced: bool) -> Any:
    """What a method with a cache gives of a captured object.

    Raises:
        Refused: an argument is no constant. What the object itself is may be other than it was when the cache was asked
            for the like.
    """
    result = None if traced else called_with(cache, args, kwargs, method=True)
    if result is None:
        raise Refused(f"{cache.__qualname__} keeps its results, which an object that has changed may find again")
    if result in owner.results:
        return owner.results[result]
    return require_read(cache, result, cache(owner.original, *originals(args), **kwargs))


class Kept:
    """Stands in a trace for a function with a cache of which results are read, or that reads what can change."""

    def __init__(self, cache: Any, wrapped: Any, results: dict[Result, Any], steady: bool) -> None:
        """``wrapped``: the function as the trace has it; ``steady``: it reads nothing that can change."""
        self.cache, self.wrapped, self.results, self.steady = cache, wrapped, results, steady

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from srcgrad.tracing.caches import require_keys
        from srcgrad.tracing.conversion.calls import call, traced_among  # which are written with this module

        trace = CURRENT.get()
        if trace is None:
            return self.cache(*args, **kwargs)
        if traced_among(args, kwargs):
            require_keys((*args, *kwargs.values()))
            if not self.steady:
                raise Refused(f"{self.cache.__name__} is cached and reads what can change")
            return call(self.wrapped, *args, **kwargs)
        result = called_with(self.cache, args, kwargs)
        if result in self.results:
            return self.results[result]
        own = originals(args)
        found = self.cache(*own, **kwargs)
        captured = any(one is not other for one, other in zip(own, args, strict=True))
        if trace.concrete or (self.steady and is_constant(found) and not captured):
            return found
        return require_read(self.cache, result, found)
