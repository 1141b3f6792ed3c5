"""Where the fields of Python's and NumPy's objects lie in memory, as machine code reads them.

The offsets are those of the versions of CPython that are named here, and are compared with objects at import; on any
other, and where one differs, `KNOWN` is false and no machine code looks into objects but the kernels' own.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
import sysconfig
import types
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

import numpy as np

VERSION: Final = sys.version_info[:2]
INTERPRETER_IS_KNOWN: Final = (
    sys.implementation.name == "cpython"
    and VERSION in ((3, 11), (3, 12), (3, 13), (3, 14))
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
    and ctypes.sizeof(ctypes.c_void_p) == 8
)
IMMORTAL: Final = VERSION >= (3, 12)
"""Whether there are objects whose references nobody counts: those whose count of 32 bits is negative."""
TYPE: Final = 8
SIZE: Final = 16
"""The length of a tuple, list or dict; of an int, a number that its sign and its number of digits decide."""
ITEMS: Final = tuple.__basicsize__
"""Of a tuple, its items, which lie behind its hash from Python 3.14 on."""
HASH: Final = 24
LIST_ITEMS: Final = 24
"""Of a list, the pointer to its items."""
DIGIT: Final = 24
"""Of an int, its first digit of 30 bits."""
TABLE: Final = 32
"""Of a dict, its keys."""
SPLIT: Final = 40
"""Of a dict, the values in the order of the keys; null where they stand beside the keys."""
INDEX_BYTES: Final = 9
"""Of keys, a byte: the logarithm of the size of the index that comes before the entries."""
KIND: Final = 10
"""Of keys, a byte: 0 where they are not all text, and the entries are longer."""
ENTRY: Final = 16
GENERAL_ENTRY: Final = 24
"""How long an entry is: a key and a value, of keys that are not all text behind a hash."""
GENERAL_KEY: Final = 8
KEYS_VERSION: Final = 12
"""Of keys, 4 bytes that tell which keys there are, and in which order; 0 where the interpreter has not asked."""
COUNT: Final = 24
"""Of keys, the number of entries, with those that are gone."""
ENTRIES: Final = 32
"""Of keys, the index; behind it the entries, each a key and a value."""
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
CLASS_KEYS: Final = 872 if VERSION < (3, 12) else 880
"""Of a class, the names of its instances' attributes, whose values lie in this order."""


class Values(Enum):
    """Where an instance of a class with the flag `MANAGED` has its attributes while no dict of its own has them."""

    APART = "a pointer of their own, null where there are none"
    TAGGED = "the pointer to the dict, less one"
    INLINE = "behind the instance, as a byte says"


VALUES: Final = Values.APART if VERSION < (3, 12) else Values.TAGGED if VERSION < (3, 13) else Values.INLINE
VALUES_FIELD: Final = -32
"""Of an instance, the pointer to its values where these are `APART`."""
VALUES_HEADER: Final = 8 if VALUES is Values.INLINE else 0
"""Of values, the first one."""
VALID: Final = 3
"""Of values behind an instance, a byte: 1 where they are its attributes."""
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
    slice: {"start": 16, "stop": 24, "step": 32},
    range: {"start": 16, "stop": 24, "step": 32},
}  # fmt: skip
"""By class, where an object holds the pointers that are its attributes; null for None and for what is not bound."""
CLASS_NAMES: Final = 264
"""Of a class, the dict of its names."""
ATTRIBUTES: Final = -24
"""Of an instance of a class with the flag `MANAGED`, the dict of its attributes, once Python has asked for it."""
MANAGED: Final = 1 << 4
INLINE: Final = 1 << 2
TYPE_FLAGS: Final = 168
"""Of a class, its flags."""
HEAP: Final = 1 << 9
"""The flag of classes that are made while a program runs, as all that are written in Python."""
IS_DICT: Final = 1 << 29
"""The flag of dict and of the classes that are built on it."""
DIGIT_BITS: Final = 30
LARGEST_DIGIT: Final = 2**DIGIT_BITS - 1
NUMBER: Final = 16
"""Of a NumPy scalar, its bytes."""


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


class _Mapping(dict[Any, Any]):
    pass


def _samples() -> list[Any]:
    outside = object()

    def function(x: Any, y: Any = 1.0, *, z: Any = 2.0) -> Any:
        return outside, x, y, z

    assert function.__closure__ is not None
    return [
        function, types, function.__closure__[0], types.MethodType(function, outside),
        functools.partial(function, outside, z=outside), property(function), classmethod(function),
        staticmethod(function), slice(outside, function, types), range(1000, 2000, 300),
    ]  # fmt: skip


def names_of(thing: Any) -> int | None:
    """Where a class or an instance has the dict of its names, if that is one of these places."""
    names = getattr(thing, "__dict__", None)
    if isinstance(thing, type):
        return CLASS_NAMES if word(thing, CLASS_NAMES) == word(names, SIZE) else None
    place = type(thing).__dictoffset__
    if place > 0:
        return place if word(thing, place) == id(names) else None
    if not type(thing).__flags__ & MANAGED or word(thing, ATTRIBUTES) != id(names):
        return None
    return ATTRIBUTES


def class_version(cls: type) -> int:
    """The version of a class, given one if it has none; 0 where there are no more."""
    getattr(cls, "__init__", None)  # which is looked up in the class
    return ctypes.c_uint32.from_address(id(cls) + CLASS_VERSION).value


def value_place(cls: type, name: str) -> int | None:
    """Where among an instance's values the attribute of this name is, if the class has met it."""
    needed = MANAGED | INLINE if VALUES is Values.INLINE else MANAGED
    keys = word(cls, CLASS_KEYS)
    if cls.__flags__ & needed != needed or not keys:
        return None
    first, count = entries(keys)
    names = [ctypes.c_int64.from_address(first + 16 * k).value for k in range(count)]
    return names.index(id(name)) if id(name) in names else None


def values_offset(cls: type) -> int:
    """Where instances of a class have their values, or what leads there."""
    if VALUES is Values.INLINE:
        return cls.__basicsize__
    return VALUES_FIELD if VALUES is Values.APART else ATTRIBUTES


def entries(keys: int) -> tuple[int, int]:
    """The address of the entries of keys that are all text, and how many there are."""
    size = 1 << ctypes.c_uint8.from_address(keys + INDEX_BYTES).value
    return keys + ENTRIES + size, ctypes.c_int64.from_address(keys + COUNT).value


def _read() -> Any:
    return len


def ask_version(mapping: Any) -> int:
    """The version of a dict's keys, given one if it has none; 0 where that cannot be had.

    The interpreter gives keys a version when it finds a global name in them often.
    """
    if type(mapping) is not dict:
        return 0
    read = types.FunctionType(_read.__code__.replace(), mapping)
    for _ in range(64):
        if keys_version(mapping):
            break
        with contextlib.suppress(NameError):
            read()
    return keys_version(mapping)


def keys_version(mapping: dict[Any, Any]) -> int:
    return ctypes.c_uint32.from_address(word(mapping, TABLE) + KEYS_VERSION).value


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


def _values_of(instance: Any) -> int:
    """The address of an instance's values; 0 where its attributes are in a dict."""
    offset = values_offset(type(instance))
    if VALUES is Values.INLINE:
        valid = ctypes.c_uint8.from_address(id(instance) + offset + VALID).value == 1
        return id(instance) + offset + VALUES_HEADER if valid else 0
    found = word(instance, offset)
    return found if VALUES is Values.APART else found + 1 if found & 1 else 0


def _values_are_known() -> bool:
    instance, other, names = _Plain(), _Plain(), {"attribute": 1}
    instance.attribute = item = object()
    other.attribute = item
    other.__dict__ = names
    place = value_place(_Plain, "attribute")
    if place is None or not _values_of(instance) or _values_of(other) or word(other, ATTRIBUTES) != id(names):
        return False
    version = class_version(_Plain)
    _Plain.later = 1  # type: ignore[attr-defined]
    changed = class_version(_Plain)
    return (
        ctypes.c_int64.from_address(_values_of(instance) + 8 * place).value == id(item)
        and value_place(_Plain, "no such") is None
        and 0 != version != changed != 0
        and word(object, NEW) == word(_Plain, NEW) != word(tuple, NEW)
    )


def _dicts_are_known() -> bool:
    first, second = object(), object()
    plain, general = {"gone": 0, "first": first, "second": second}, {"first": first, 2: second}
    del plain["gone"]
    keys = word(plain, TABLE)
    begin, count = entries(keys)
    instance = _Plain()
    instance.attribute = first
    split = vars(instance)
    place = value_place(_Plain, "attribute")
    return (
        count == 3
        and word(plain, SPLIT) == 0
        and [ctypes.c_int64.from_address(begin + 16 + 8 * k).value for k in range(4)]
        == [id("first"), id(first), id("second"), id(second)]
        and [ctypes.c_uint8.from_address(word(found, TABLE) + KIND).value for found in (plain, general)] == [1, 0]
        and [
            ctypes.c_int64.from_address(entries(word(general, TABLE))[0] + offset).value
            for offset in (GENERAL_KEY, GENERAL_KEY + 8, GENERAL_ENTRY + GENERAL_KEY)
        ]
        == [id("first"), id(first), id(2)]
        and place is not None
        and word(split, TABLE) == word(_Plain, CLASS_KEYS)
        and ctypes.c_int64.from_address(word(split, SPLIT) + VALUES_HEADER + 8 * place).value == id(first)
        and _versions_change()
    )


def _versions_change() -> bool:
    """Whether every change of a dict's keys takes their version away, and no two have the same."""
    changes: list[Callable[[dict[str, Any]], Any]] = [
        lambda names: names.pop("a"), lambda names: names.popitem(), lambda names: names.__delitem__("b"),
        lambda names: names.update(new=1), lambda names: names.setdefault("new", 2),
        lambda names: names.__setitem__("new", 3), lambda names: exec("new = 4", names), dict.clear,
    ]  # fmt: skip
    versions = []
    for change in changes:
        names: dict[str, Any] = {"a": 1, "b": 2}
        versions.append(ask_version(names))
        change(names)
        if keys_version(names) == versions[-1]:
            return False
    holder = types.ModuleType("holder")
    versions.append(ask_version(vars(holder)))
    for turn in range(16):  # often enough that the interpreter has its own way of doing it
        setattr(holder, f"name{turn}", turn)
        versions.append(ask_version(vars(holder)))
    return len(set(versions)) == len(versions) and 0 not in versions


def _is_known() -> bool:
    if not INTERPRETER_IS_KNOWN:
        return False
    probe, array, item = _Probe(), np.arange(3.0), object()
    probe.second = item
    view, buffer, items = array[1:], (ctypes.c_int64 * 2)(5, 7), [item]
    sized: list[Any] = [(item,), [item] * 2, {1: 1, 2: 2, 3: 3}]
    numbers = [0, 1000, -1000, LARGEST_DIGIT + 1, -LARGEST_DIGIT - 1]
    long = 5 + 3 * (LARGEST_DIGIT + 1)
    return (
        all(
            word(sample, offset) == id(getattr(sample, name))
            for sample in _samples()
            for name, offset in FIELDS[type(sample)].items()
        )
        and all(word(object, TYPE) == id(type(object)) for object in (*sized, *numbers, 1.0, buffer))
        and [word(object, SIZE) for object in sized] == [1, 2, 3]
        and len({word(number, SIZE) for number in numbers}) == len(numbers)
        and word(1000, SIZE) == word(LARGEST_DIGIT, SIZE)
        and word((item, item), ITEMS) == id(item)
        and ctypes.c_int64.from_address(word(items, LIST_ITEMS)).value == id(item)
        and ctypes.c_int32.from_address(id(LARGEST_DIGIT) + DIGIT).value == LARGEST_DIGIT
        and [ctypes.c_int32.from_address(id(long) + DIGIT + 4 * k).value for k in range(2)] == [5, 3]
        and word(np.int64(-7), NUMBER) == -7
        and word(probe, member_offset(vars(_Probe)["second"])) == id(item)
        and (word(array, BASE), word(view, BASE)) == (0, id(array))
        and word(buffer, BUFFER) == ctypes.addressof(buffer)
        and word(abs, SELF) == id(sys.modules["builtins"])
        and ctypes.c_int64.from_address(word(abs, METHOD) + CODE).value != 0
        and ctypes.c_int32.from_address(word(isinstance, METHOD) + FLAGS).value == FASTCALL
        and names_of(_Plain) == CLASS_NAMES
        and names_of(_Plain()) == ATTRIBUTES
        and all(word(cls, TYPE_FLAGS) == cls.__flags__ for cls in (dict, list, _Mapping))
        and [cls.__flags__ & IS_DICT for cls in (dict, list, _Mapping)] == [IS_DICT, 0, IS_DICT]
        and [cls.__flags__ & HEAP for cls in (dict, str, _Mapping)] == [0, 0, HEAP]
        and (ctypes.c_int32.from_address(id(None)).value < 0) == IMMORTAL
        and _values_are_known()
        and _dicts_are_known()
    )


KNOWN: Final = _is_known()
