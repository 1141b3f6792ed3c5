"""What modules make when they are asked for it, and objects in `sys.modules` that stand in for modules.

A module may have a ``__getattr__`` (PEP 562), be of a class of its own, or be replaced by an object that passes
questions on to it. Such a name is asked for again by the guards of each call, as the code itself would ask.
"""

from __future__ import annotations

import types
import warnings
from typing import Any, Final

from srcgrad.tracing.lookups import MISSING
from srcgrad.tracing.unasked import attribute

__all__ = ["MISSING", "is_made", "made", "made_of", "stands_in"]

EQUAL: Final = (int, float, complex, bool, str, bytes, type(None))
"""Of what is made anew, the kinds that are the same if they are equal: nobody can change them."""


def stands_in(module: Any) -> bool:
    """Whether this takes the place of a module: it is asked for names, and nothing else of it matters."""
    cls: Any = type(module)
    if isinstance(module, types.ModuleType):
        return "__getattribute__" not in own_names(cls)
    plain = cls.__hash__ is object.__hash__ and cls.__eq__ is object.__eq__ and type(cls) is type
    return plain and "__getattribute__" not in own_names(cls) and isinstance(attribute(module, "__dict__"), dict)


def own_names(cls: type) -> set[str]:
    return {name for base in cls.__mro__ if base not in (object, types.ModuleType) for name in vars(base)}


def is_made(module: Any, name: str) -> bool:
    """Whether a module does not simply hold what it has under a name."""
    return type(module) is not types.ModuleType or (name not in vars(module) and "__getattr__" in vars(module))


def made(module: Any, name: str) -> Any:
    """What a module gives when it is asked; `MISSING` where there is nothing, or it raises."""
    try:
        return getattr(module, name)
    except Exception:
        return MISSING


def made_of(module: Any, name: str) -> Any:
    """What a module has under a name, or makes steadily; `MISSING` where there is nothing, where each question has
    another answer, and where it warns, which each call is to do.
    """
    if not is_made(module, name):
        return vars(module).get(name, MISSING)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        first, second = made(module, name), made(module, name)
    same = first is second or (type(first) in EQUAL and type(first) is type(second) and first == second)
    return first if same and not said else MISSING
