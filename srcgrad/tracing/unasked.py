"""What is asked of objects of the user's without running code of their classes.

``__getattr__``, ``__hash__`` and ``__eq__`` may raise anything (a dict whose keys are its attributes raises KeyError),
write, or claim to have every attribute.
"""

from __future__ import annotations

import types
from collections.abc import Container
from typing import Any

from srcgrad.tracing.looked_up import LOOKED_UP, PREFIXES

__all__ = ["attribute", "defers", "is_among", "is_special"]

_STANDARD = types.WrapperDescriptorType
OF_PYTHON = frozenset({types.FunctionType, types.BuiltinFunctionType, types.CodeType})
"""Classes whose objects run no code of the user's when they are asked for an attribute."""
STANDS = "__srcgrad_use__"
"""In the class of a copy that stands for one of several objects: how it notes that it is read, which this is not."""


def attribute(thing: Any, name: str, default: Any = None) -> Any:
    """As `getattr`, but what a class finds by ``__getattr__``, or cannot find for an error, is not there.

    >>> class Settings(dict):
    ...     __getattr__ = dict.__getitem__
    >>> attribute(Settings(), "__self__") is None, attribute([].append, "__self__")
    (True, [])
    """
    if type(thing) in OF_PYTHON:
        return getattr(thing, name, default)
    if STANDS in type(thing).__dict__:
        return plain(thing, name, default)
    made_up = False  # whether there is a `__getattr__`
    for base in type(thing).__mro__:
        names = base.__dict__
        made_up |= "__getattr__" in names
        if type(names.get("__getattribute__", object.__getattribute__)) is not _STANDARD:
            return default
    if made_up and isinstance(thing, (type, types.ModuleType)):
        return default
    try:
        return plain(thing, name, default) if made_up else getattr(thing, name, default)
    except Exception:  # of a property
        return default


def plain(thing: Any, name: str, default: Any) -> Any:
    try:
        return object.__getattribute__(thing, name)
    except AttributeError:
        return default


def is_special(name: str) -> bool:
    """Whether an attribute is one that Python or a library may look up by itself.

    >>> is_special("__call__"), is_special("__array_ufunc__"), is_special("__nice__"), is_special("__div__")
    (True, True, False, False)
    """
    return name in LOOKED_UP or (name.startswith(PREFIXES) and name.endswith("__"))


def is_among(thing: Any, known: Container[Any]) -> bool:
    """Whether a function, class or object of a library is in a set, or is a key of a dict; no object of a class that
    says itself what it is equal to is.

    >>> is_among(len, {len, max}), is_among([], {len, max})
    (True, False)
    """
    if isinstance(getattr(type(thing), "__hash__", None), types.FunctionType):
        return False
    try:
        return thing in known
    except (TypeError, ValueError):  # it has no hash, as a memoryview of what may be written has none
        return False


def defers(x: Any, name: str) -> bool:
    """Whether NumPy leaves an operator to the class of the other operand, as its ``__array_priority__`` asks."""
    return hasattr(type(x), name) and attribute(x, "__array_priority__", 0.0) > 0.0
