"""Messages to loggers: made when the program runs, of the numbers of that call, with the place in the user's code."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

from srcgrad.ir.source import Span
from srcgrad.tracing.conversion.texts import HostSite, emit_site, known_arguments
from srcgrad.tracing.hosts import LEVELS
from srcgrad.tracing.lasting import done_for_good
from srcgrad.tracing.trace import Refused, current_span, current_trace

OURS: Final = 2
"""The frames of this package between the user's code and the logger."""


def of_module(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A function of ``logging``: a logger by its name, or a message to the root of them, which is set up first.

    Raises:
        Refused: only the program knows the name.
    """
    if function.__name__ in LEVELS:
        import logging

        return logged(getattr(logging.root, function.__name__), args, kwargs, emitted_by_root)
    if not all(name is None or isinstance(name, str) for name in (*args, *kwargs.values())):
        raise Refused("a logger is asked for by what only the program knows")
    return function(*args, **kwargs)


def logged(function: Any, args: Sequence[Any], kwargs: dict[str, Any], emitter: Any = None) -> Any:
    """``logger.info(text, *values)``: at each run of the program, in order; at once where the numbers are known.

    Raises:
        Refused: it asks for what the logger knows, or for the exception that is handled.
    """
    trace = current_trace()
    done_for_good(function)
    name = function.__name__
    if name not in LEVELS or not kwargs.keys() <= {"extra"}:
        if trace.concrete:
            if name in LEVELS or name == "exception":
                args, kwargs = (
                    known_arguments(tuple(args)),
                    {**kwargs, "stacklevel": kwargs.get("stacklevel", 1) + OURS},
                )
            return function(*args, **kwargs)
        raise Refused(f"{name} of a logger is not called when the program runs")
    level, args = (args[0], args[1:]) if name == "log" else (LEVELS[name], args)
    emit = functools.partial(emitter or emitted, function.__self__, level, current_span(), kwargs.get("extra"))
    if trace.concrete:
        emit(*known_arguments(tuple(args)))
        return None
    emit_site(HostSite(emit, tuple(args), {}))
    return None


def emitted_by_root(logger: Any, *args: Any) -> None:
    """As ``logging.info``: without handlers there will be one."""
    if not logger.handlers:
        import logging

        logging.basicConfig()
    emitted(logger, *args)


def emitted(logger: Any, level: int, span: Span | None, extra: Any, message: Any, *values: Any) -> None:
    """Log a message of a line of the user's, if the logger takes it."""
    if not logger.isEnabledFor(level):
        return
    file, line, function = (
        ("<unknown>", 0, None) if span is None else (span.file, span.line, span.function.rpartition(".")[2])
    )
    logger.handle(logger.makeRecord(logger.name, level, file, line, message, values, None, function, extra))
