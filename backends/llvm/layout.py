"""Where the fields of Python's and NumPy's objects lie in memory, as machine code reads them.

The offsets are those of one version of CPython, and are compared with objects at import; on any other, and where one
differs, `KNOWN` is false and no machine code looks into objects but the kernels' own.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import types
from typing import Any, Final

import numpy as np

TYPE: Final = 8
SIZE: Final = 16
"""The length of a tuple, list or dict; of an int, the number of its digits and its sign."""
ITEMS: Final = 24
"""Of a tuple, its items; of a list, the pointer to them; of an int, its first digit of 30 bits."""
VERSION: Final = 24
"""Of a dict, a number that no other dict has had and that changes with the dict."""
BASE: Final = 48
"""Of an array, the owner of its memory."""
METHOD: Final = 16
SELF: Final = 24
"""Of a built-in function, its definition and what it is called with."""
CODE: Final = 8
"""Of the definition of a built-in function, its machine code."""
FLAGS: Final = 16
"""Of the definition of a built-in function, how it is called."""
FASTCALL: Final = 0x80
NEW: Final = 312
"""Of a class, what makes its instances."""
CLASS_VERSION: Final = 384
"""Of a class, 4 bytes that no other class has had and that change with it and its bases; 0 where nobody has asked."""
KEYS: Final = 872
"""Of a class, the names of its instances' attributes, whose values lie in this order."""
VALUES: Final = -32
"""Of an instance of a class with the flag `MANAGED`, its attributes; null where it has a dict of them."""
BUFFER: Final = 16
"""Of a ctypes array, the pointer to its memory."""
FIELDS: Final[dict[type, dict[str, int]]] = {
    types.FunctionType: {
        "__globals__": 16, "__builtins__": 24, "__code__": 48, "__defaults__": 56, "__kwdefaults__": 64,
        "__closure__": 72,
    },
    types.ModuleType: {"__dict__": 16},
    types.CellType: {"cell_contents": 16},
    types.MethodType: {"__func__": 16, "__self__": 24},
    functools.partial: {"func": 16, "args": 24, "keywords": 32},
    property: {"fget": 16},
    classmethod: {"__func__": 16},
    staticmethod: {"__func__": 16},
}  # fmt: skip
"""By class, where an object holds the pointers that are its attributes; null for None and for what is not bound."""
CLASS_NAMES: Final = 264
"""Of a class, the dict of its names."""
ATTRIBUTES: Final = -24
"""Of an instance of a class with the flag `MANAGED`, the dict of its attributes; null until Python asks for it."""
MANAGED: Final = 1 << 4
LARGEST_DIGIT: Final = 2**30 - 1


def word(object: Any, offset: int) -> int:
    return ctypes.c_int64.from_address(id(object) + offset).value


def member_offset(descriptor: Any) -> int:
    """Where the instances of a class have the slot of this member."""
    return ctypes.c_int64.from_address(word(descriptor, 40) + 16).value


class _Probe:
    __slots__ = ("first", "second")

    first: Any
    second: Any


class _Plain:
    attribute: Any


def _samples() -> list[Any]:
    outside = object()

    def function(x: Any, y: Any = 1.0, *, z: Any = 2.0) -> Any:
        return outside, x, y, z

    assert function.__closure__ is not None
    return [
        function, types, function.__closure__[0], types.MethodType(function, outside),
        functools.partial(function, outside, z=outside), property(function), classmethod(function),
        staticmethod(function),
    ]  # fmt: skip


def names_of(thing: Any) -> int | None:
    """Where a class or an instance has the dict of its names, if that is one of these places."""
    names = getattr(thing, "__dict__", None)
    if isinstance(thing, type):
        return CLASS_NAMES if word(thing, CLASS_NAMES) == word(names, SIZE) else None
    if not type(thing).__flags__ & MANAGED or word(thing, ATTRIBUTES) != id(names):
        return None
    return ATTRIBUTES


def class_version(cls: type) -> int:
    """The version of a class, given one if it has none; 0 where there are no more."""
    getattr(cls, "__init__", None)  # which is looked up in the class
    return ctypes.c_uint32.from_address(id(cls) + CLASS_VERSION).value


def value_place(cls: type, name: str) -> int | None:
    """Where among an instance's values the attribute of this name is, if the class has met it."""
    keys = word(cls, KEYS)
    if not keys or not cls.__flags__ & MANAGED:
        return None
    first = keys + 32 + (1 << ctypes.c_uint8.from_address(keys + 9).value)
    count = ctypes.c_int64.from_address(keys + 24).value
    names = [ctypes.c_int64.from_address(first + 16 * k).value for k in range(count)]
    return names.index(id(name)) if id(name) in names else None


def plain_member(cls: Any, name: str) -> Any:
    """What reading an attribute of an instance finds in its class: a slot, or None where the instance's own is found.

    Raises:
        LookupError: something else decides what is read.
    """
    if cls.__getattribute__ is not object.__getattribute__:
        raise LookupError(name)
    member = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
    if isinstance(member, types.MemberDescriptorType):
        return member
    if hasattr(type(member), "__set__") or hasattr(type(member), "__delete__"):
        raise LookupError(name)
    return None


def _values_are_known() -> bool:
    instance, other = _Plain(), _Plain()
    instance.attribute = item = object()
    other.attribute = vars(other)  # which now has a dict
    place = value_place(_Plain, "attribute")
    if place is None or not word(instance, VALUES) or word(other, VALUES):
        return False
    version = class_version(_Plain)
    _Plain.later = 1  # type: ignore[attr-defined]
    changed = class_version(_Plain)
    return (
        ctypes.c_int64.from_address(word(instance, VALUES) + 8 * place).value == id(item)
        and value_place(_Plain, "no such") is None
        and 0 != version != changed != 0
        and word(object, NEW) == word(_Plain, NEW) != word(tuple, NEW)
    )


def _versions_change() -> bool:
    """Whether every change of a dict changes its version."""
    found: dict[str, Any] = {"a": 1}
    versions = [word(found, VERSION), word({"a": 1}, VERSION)]
    exec("a = 2", found)
    versions.append(word(found, VERSION))
    exec("def f():\n    global a\n    a = 3\nf()", found)
    versions.append(word(found, VERSION))
    for change in (lambda: found.pop("a"), lambda: found.update(b=1), lambda: found.setdefault("c", 2), found.clear):
        change()
        versions.append(word(found, VERSION))
    holder = types.ModuleType("holder")
    for value in (1, 2):
        holder.value = value  # type: ignore[attr-defined]
        versions.append(word(holder.__dict__, VERSION))
    instance, values = _Plain(), [object(), object()]
    names = instance.__dict__
    for turn in range(64):  # often enough that the interpreter has its own way of doing it
        instance.attribute = values[turn % 2]
        versions.append(word(names, VERSION))
    return len(set(versions)) == len(versions) and 0 not in versions


def _is_known() -> bool:
    if sys.implementation.name != "cpython" or sys.version_info[:2] != (3, 11) or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    probe, array, item = _Probe(), np.arange(3.0), object()
    probe.second = item
    view, buffer, items = array[1:], (ctypes.c_int64 * 2)(5, 7), [item]
    sized: list[Any] = [(item,), [item] * 2, {1: 1, 2: 2, 3: 3}, 4, -4]
    return (
        all(
            word(sample, offset) == id(getattr(sample, name))
            for sample in _samples()
            for name, offset in FIELDS[type(sample)].items()
        )
        and all(word(object, TYPE) == id(type(object)) for object in (*sized, 1.0, buffer))
        and [word(object, SIZE) for object in sized] == [1, 2, 3, 1, -1]
        and word((item, item), ITEMS) == id(item)
        and ctypes.c_int64.from_address(word(items, ITEMS)).value == id(item)
        and ctypes.c_int32.from_address(id(LARGEST_DIGIT) + ITEMS).value == LARGEST_DIGIT
        and word(probe, member_offset(vars(_Probe)["second"])) == id(item)
        and (word(array, BASE), word(view, BASE)) == (0, id(array))
        and word(buffer, BUFFER) == ctypes.addressof(buffer)
        and word(abs, SELF) == id(sys.modules["builtins"])
        and ctypes.c_int64.from_address(word(abs, METHOD) + CODE).value != 0
        and ctypes.c_int32.from_address(word(isinstance, METHOD) + FLAGS).value == FASTCALL
        and names_of(_Plain) == CLASS_NAMES
        and names_of(_Plain()) == ATTRIBUTES
        and _versions_change()
        and _values_are_known()
    )


KNOWN: Final = _is_known()
