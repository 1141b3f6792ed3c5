"""Options of NumPy's functions that NumPy refuses whatever the array: it is asked itself, with one number.

A rule reads its options with Python's leniency (``if keepdims:``), NumPy's C code does not: ``keepdims="yes"``,
``order="wrong"`` and ``decimals=1.5`` are errors there. What they are differs from function to function and from one
NumPy to the next, so no table here says it.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from srcgrad.errors import ArgumentError, DTypeError, SrcgradError
from srcgrad.tracing.tracer import contains_tracer

ASKED: Final = frozenset({
    "N", "casting", "copy", "decimals", "device", "dtype", "increasing", "k", "keepdims", "kind", "like", "mode",
    "offset", "order", "subok",
})  # fmt: skip
"""The names of options that mean the same whatever the array."""
NEVER_TRACED: Final = frozenset({"casting", "device", "dtype", "kind", "order"})
"""Those that are no numbers. Others may be numbers that the program computes, and are the rule's to read."""
SAMPLES: Final = (np.ones(1), np.ones((1, 1)))
REQUIRED: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
LARGEST: Final = 64
"""Whole numbers from 0 to this one need no question: they are counts and places."""
BY_FIELDS: Final = frozenset({np.sort, np.argsort, np.partition, np.argpartition})
"""Those whose ``order`` names fields of the array."""
PLAIN: Final = (bool, int, float, str, bytes, type(None))


def asking_numpy(function: Callable[..., Any], rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule, which asks NumPy's function first where options are given; itself where it has none of them."""
    code = getattr(rule, "__code__", None)
    if code is None:
        return rule
    names = [*ASKED.intersection(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])]
    if not names:
        return rule
    places = [(place, name) for place, name in enumerate(code.co_varnames[: code.co_argcount]) if name in ASKED]
    first = places[0][0] if places else code.co_argcount

    @functools.wraps(rule)
    def asked(*args: Any, **kwargs: Any) -> Any:
        if len(args) > first:
            for place, name in places:
                if place < len(args):
                    require_option(function, name, args[place])
        if kwargs:
            require_options(function, kwargs)
        return rule(*args, **kwargs)

    return asked


def require_options(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """`require_option` of each of the options that are `ASKED` about."""
    for name, value in options.items():
        if name in ASKED:
            require_option(function, name, value)


def require_option(function: Callable[..., Any], name: str, value: Any) -> None:
    """Refuse what NumPy's function refuses as the value of an option.

    Raises:
        DTypeError: it raises a TypeError.
        ArgumentError: it raises something else.
    """
    if value is None or value is np._NoValue or type(value) is bool:
        return
    if contains_tracer(value):
        if name in NEVER_TRACED:
            raise DTypeError(f"{name}= of a function of NumPy's is no array and no number of the program's")
        return
    if name == "dtype":
        if type(value) in (int, float, complex) or isinstance(value, np.ndarray):
            refuse_unless(np.dtype, value, f"dtype={value!r}: ")
        return
    if type(value) is int and 0 <= value <= LARGEST and name not in ("keepdims", "order", "casting", "kind", "device"):
        return
    if name == "order" and function in BY_FIELDS:
        return
    arguments = arguments_for(function)
    if arguments is not None:
        ask = known if type(value) in PLAIN else raised_by
        refuse_unless(lambda given: ask(function, arguments, name, given), value, f"{name}={value!r}: ")


def refuse_unless(ask: Callable[[Any], Any], value: Any, label: str = "") -> None:
    """Raise as an error of srcgrad's what asking about a value raises, after a label that says what is meant."""
    try:
        ask(value)
    except SrcgradError:
        raise
    except TypeError as error:
        raise DTypeError(f"{label}{error}") from None
    except Exception as error:
        raise ArgumentError(f"{label}{error}") from None


def raised_by(function: Callable[..., Any], arguments: tuple[int, int], name: str, value: Any) -> None:
    """Call NumPy's function with an option: it raises what it raises."""
    count, sample = arguments
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        function(*[SAMPLES[sample].copy() for _ in range(count)], **{name: value})


known = functools.lru_cache(maxsize=1024, typed=True)(raised_by)
"""`raised_by`, which asks about plain values once: what raises is not remembered."""


@functools.cache
def arguments_for(function: Callable[..., Any]) -> tuple[int, int] | None:
    """How many samples the function takes, and which: None where it takes none of them."""
    if isinstance(function, np.ufunc):
        count = function.nin
    elif isinstance(getattr(function, "__self__", None), np.ufunc):
        count = 1
    else:
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            return None
        count = sum(one.kind in REQUIRED and one.default is inspect.Parameter.empty for one in parameters)
    for sample in range(len(SAMPLES)):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                function(*[SAMPLES[sample].copy() for _ in range(count)])
        except Exception:
            continue
        return count, sample
    return None
