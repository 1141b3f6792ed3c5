"""What `inspect.signature` reads of functions and classes beside their code and their defaults, which are watched."""

from __future__ import annotations

import inspect
import sys
from types import FunctionType
from typing import Any, Final

from srcgrad.tracing.unasked import is_among

SIGNATURES: Final = frozenset(
    {inspect.signature, inspect.getfullargspec, inspect.Signature, inspect.Parameter, inspect.Parameter.empty}
)
"""What tells which parameters a function has: in a trace with the defaults that it has there."""
ANNOTATIONS: Final = "__annotate__" if sys.version_info >= (3, 14) else "__annotations__"
OVERRIDING: Final = ("__signature__", "__wrapped__", "__text_signature__")
NOTHING: Final = object()


def asks_for_signatures(value: Any) -> bool:
    return is_among(value, SIGNATURES)


def with_annotations(copy: FunctionType, original: FunctionType) -> None:
    """Give a copy of a function the annotations that its signature has."""
    setattr(copy, ANNOTATIONS, getattr(original, ANNOTATIONS))


class Told:
    """What a function or a class says of its signature now."""

    def __init__(self, thing: Any) -> None:
        self.parts = parts_of(thing)

    def __call__(self, thing: Any) -> bool:
        """Whether it says the same."""
        parts = parts_of(thing)
        return len(parts) == len(self.parts) and all(map(same, parts, self.parts))


def parts_of(thing: Any) -> list[Any]:
    if isinstance(thing, type):
        return [vars(base).get("__signature__", NOTHING) for base in thing.__mro__]
    found = [vars(thing).get(name, NOTHING) for name in OVERRIDING]
    annotations = getattr(thing, ANNOTATIONS)
    return [*found, *annotations, *annotations.values()] if isinstance(annotations, dict) else [*found, annotations]


def same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) is str and one == other)
