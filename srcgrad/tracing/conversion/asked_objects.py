"""What Python asks objects for, where it wants a number or a truth value: ``__float__``, ``__complex__``, ``__bool__``.

Python takes no traced value for an answer, so that they are asked here, as converted code.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.tracing.conversion.attributes import class_of
from srcgrad.tracing.conversion.calls import CALLS, followed
from srcgrad.tracing.conversion.placed_texts import PlacedText
from srcgrad.tracing.conversion.texts import Text
from srcgrad.tracing.tracer import Deferring, Tracer

__all__ = ["complex_of", "float_of", "tested", "with_objects"]

PLAIN: Final = (
    Tracer,
    Deferring,
    bool,
    int,
    float,
    complex,
    str,
    np.ndarray,
    np.generic,
    type(None),
    list,
    tuple,
    dict,
)
FLOATS: Final = (("__float__", float), ("__index__", int))
COMPLEX: Final = (("__complex__", complex), *FLOATS)
TRUTH: Final = (("__bool__", bool),)


def answer_of(x: Any, questions: tuple[tuple[str, type], ...]) -> Any:
    """What an object of Python's own code answers to the first of these that it knows; itself where there is none.

    Raises:
        TypeError: it is of another kind than Python wants.
    """
    if isinstance(x, PLAIN) or type(x).__module__.partition(".")[0] == "srcgrad":
        return x
    for name, kind in questions:
        method = next((vars(base)[name] for base in type(x).__mro__ if name in vars(base)), None)
        if method is None:
            continue
        if not isinstance(method, types.FunctionType):  # of C, or none at all
            return x
        found = followed(method)(x)
        if not is_of(found, kind):
            said = "should return bool, returned" if kind is bool else f"returned non-{kind.__name__}"
            raise TypeError(f"{type(x).__name__}.{name} {said} {class_of(found).__name__}")
        return found
    return x


def is_of(found: Any, kind: type) -> bool:
    if not isinstance(found, Tracer):
        return isinstance(found, kind)
    own = found.weak or (kind in (float, complex) and found.dtype.itemsize == np.dtype(kind).itemsize)
    return found.scalar and own and found.dtype.kind == np.dtype(kind).kind


def float_of(x: Any) -> Any:
    return answer_of(x, FLOATS)


def complex_of(x: Any) -> Any:
    return answer_of(x, COMPLEX)


def tested(test: Any) -> Any:
    """What is asked whether it is true: of a text at a traced place the answer is a table."""
    if isinstance(test, Text):
        test.refuse()
    return test.asked(bool) if type(test) is PlacedText else answer_of(test, TRUTH)


def with_objects(function: Any, of: Callable[[Any], Any]) -> None:
    """Have a function of numbers ask the objects among its arguments."""
    rule = CALLS[function]

    def asking(*args: Any, **options: Any) -> Any:
        return rule(*map(of, args), **{name: of(value) for name, value in options.items()})

    CALLS[function] = asking
