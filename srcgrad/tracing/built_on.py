"""Objects of users' classes that are dicts or lists and more, as attribute dictionaries are.

What they hold is read and written here as Python's own classes do, whatever methods the user's class has for it.
"""

from __future__ import annotations

import gc
import inspect
import types
from typing import TYPE_CHECKING, Any, Final

from srcgrad.tracing.unasked import attribute

if TYPE_CHECKING:
    from srcgrad.tracing.reached_nodes import NodeAnalysis

BUILT_ON: Final = (dict, list)
IN_C: Final = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
"""The kinds of methods that a class may have of these: ``__getattr__ = dict.__getitem__``."""
_MADE: Final = {vars(base)["__new__"]: base for base in (object, *BUILT_ON)}


def built_on(cls: type) -> Any:
    """The class of Python's whose items the objects of another one have; None if there is none.

    >>> from collections import Counter
    >>> class Settings(dict):
    ...     pass
    >>> built_on(Settings), built_on(dict), built_on(Counter)
    (<class 'dict'>, None, None)
    """
    if cls.__module__ in ("builtins", "collections"):
        return None
    found = [base for base in BUILT_ON if base in cls.__mro__]
    return found[0] if found and cls not in BUILT_ON else None


def bare(cls: Any) -> Any:
    """An object of a class before its ``__init__``; None if code of another one makes it."""
    base = _MADE.get(inspect.getattr_static(cls, "__new__"))
    return None if base is None else base.__new__(cls)


def is_bare_first(cls: Any) -> bool:
    """Whether `bare` makes objects of a class, if it is not abstract."""
    return inspect.getattr_static(cls, "__new__") in _MADE


def items_in(x: Any) -> Any:
    """A dict or list of the items of such an object; anything else as it is.

    >>> class Backwards(list):
    ...     def __iter__(self):
    ...         return reversed(self)
    >>> items_in(Backwards([1, 2]))
    [1, 2]
    """
    base = built_on(type(x))
    if base is dict:
        return dict(dict.items(x))
    return x if base is None else list.copy(x)


def viewed(view: types.MappingProxyType[Any, Any]) -> Any:
    """The dict that is read through a view of it."""
    return gc.get_referents(view)[0]


def is_view_of_dict(x: Any) -> bool:
    """Whether this is a view of a dict, by which nobody changes it.

    >>> is_view_of_dict(types.MappingProxyType({"a": 1.0})), viewed(types.MappingProxyType({"a": 1.0}))
    (True, {'a': 1.0})
    """
    return type(x) is types.MappingProxyType and type(viewed(x)) is dict


def own_attributes(x: Any) -> dict[str, Any] | None:
    """The attributes that such an object has beside its items; None if it has none, or its items are they."""
    found = attribute(x, "__dict__")
    return found if type(found) is dict else None


def guard_items(analysis: NodeAnalysis, index: int, value: Any) -> str:
    """The class of such an object, and which attributes it has; how its items are read."""
    name, own = f"n{index}", own_attributes(value)
    analysis.require(f"type({name}) is {analysis.constant(type(value))}")
    if attribute(value, "__dict__") is value:
        analysis.require(f"{name}.__dict__ is {name}")
    elif own is not None:
        analysis.require(f"{name}.__dict__.keys() == {analysis.constant(frozenset(own))}")
    analysis.constants["items_in"] = items_in
    analysis.lines.append(f"i{index} = items_in({name})")
    return f"i{index}"


def copied(original: Any, items: Any, attributes: dict[str, Any]) -> Any:
    """An object of the same class with these items, and these attributes beside them."""
    return filled(bare_like(original), original, items, attributes)


def bare_like(original: Any) -> Any:
    cls = type(original)
    return built_on(cls).__new__(cls)


def filled(copy: Any, original: Any, items: Any, attributes: dict[str, Any]) -> Any:
    """``items``: by keys or numbers."""
    if isinstance(copy, dict):
        dict.update(copy, items)
    else:
        list.extend(copy, items.values())
    if attribute(original, "__dict__") is original:
        object.__setattr__(copy, "__dict__", copy)
    elif attributes:
        attribute(copy, "__dict__").update(attributes)
    return copy
