"""What answers a call in machine code: checks of the arguments and of what the function reads, then the program.

An object with a fast way has the machine `_TEXT` as its vectorcall function, and in its slot a tuple of tables, one for
each signature, each followed by what it refers to. A table is operations for the machine: words of its own, so that a
signature costs no compilation. Where no table fits, or a trace, a debugger or a choice of backend is in progress
anywhere, the call goes to the class's ``__call__``; nothing was done by then.

References: registers borrow. What a program is given is held while it runs, since others may then run; so is the slot's
tuple. What `bind` returned is held until the end.
"""

from __future__ import annotations

import ctypes
import dataclasses
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np

from srcgrad.backends.llvm import layout, native
from srcgrad.ir.locks import new_lock
from srcgrad.ir.types import DTYPES

MOST_ARGUMENTS: Final = 4096
MOST_REGISTERS: Final = 8192
MOST_RESULTS: Final = 4096
"""What a table needs of these lies on the stack, of which some systems give a thread half a megabyte."""
HEADER: Final = 4
"""The words of a table before the names."""
FINISHED: Final = 2
"""What `Table.finish` hands to its function."""
MOST_DIGITS: Final = 16
"""Of an int that decides the program."""
WORD: Final = 8


class Code(IntEnum):
    """The operations of a table: a word for each, and words for the operands, as `Table` writes them."""

    CONSTANT = 0
    LOAD = 1
    ITEM = 2
    ABSENT = 3
    IS = 4
    SAME = 5
    DIFFER = 6
    WORD = 7
    HALF = 8
    ARRAY = 9
    GIVE = 10
    NATIVE = 11
    PYTHON = 12
    BIND = 13
    RESULT = 14
    KEEP = 15
    PICK = 16
    TUPLE = 17
    LIST = 18
    DICT = 19
    DONE = 20
    FINISH = 21
    VALUE = 22
    RECORD = 23
    INSTANCE = 24
    ORDER = 25
    FILL = 26
    MOVE = 27
    REST = 28
    NAMES = 29
    WRITABLE = 30
    APART = 31
    CONTENTS = 32
    ATTRIBUTES = 33
    STRIDED = 34
    COPIED = 35


class TooLong(Exception):
    """A table needs more registers, arguments or results than the machine has."""


class Table:
    """The operations for one signature; a register is a number, and 0 is the object that is called.

    The arguments follow it, those by position, then those by the given names, in the order of the call.
    """

    def __init__(self, arguments: int, names: Sequence[str] = ()) -> None:
        if arguments + len(names) > MOST_ARGUMENTS:
            raise TooLong
        self.kept: list[Any] = []
        self.words: list[int] = [arguments, len(names), 0, 0, *[self.held(sys.intern(name)) for name in names]]
        """First how many arguments there are, by position and by name, and how many registers and places."""
        self.registers = 1 + arguments + len(names)
        self.given = 0
        self.places = FINISHED
        """The most that is given to a function, or waits for a container, at once."""
        self.run: int | None = None
        """Where the last operation for a run of numbers begins."""

    def held(self, object: Any) -> int:
        self.kept.append(object)
        return id(object)

    def register(self) -> int:
        if self.registers >= MOST_REGISTERS:
            raise TooLong
        self.registers += 1
        return self.registers - 1

    def constant(self, object: Any) -> int:
        found = self.register()
        self.words += [Code.CONSTANT, found, self.held(object)]
        return found

    def load(self, register: int, offset: int) -> int:
        """The pointer that lies there; no fit if it is null."""
        found = self.register()
        self.words += [Code.LOAD, found, register, offset]
        return found

    def attributes(self, instance: int) -> int:
        """The dict of the attributes of an instance, of a class with the flag `MANAGED`."""
        found = self.register()
        self.words += [Code.ATTRIBUTES, found, instance]
        return found

    def item(self, mapping: int, key: str | int) -> int:
        """What a dict has under a key; no fit if it has nothing."""
        found = self.register()
        self.words += [Code.ITEM, found, mapping, self.held(sys.intern(key) if type(key) is str else key), 0]
        return found

    def field(self, instance: int, cls: type, name: str) -> int:
        """An attribute that an instance of this class has itself; no fit if it has none.

        Raises:
            LookupError: its class decides what is read, or has not met it.
        """
        name = sys.intern(name)
        member = layout.plain_member(cls, name)
        if member is not None:
            return self.load(instance, layout.member_offset(member))
        place = layout.value_place(cls, name)
        if place is None:
            raise LookupError(name)
        found = self.register()
        where = layout.values_offset(cls), layout.VALUES_HEADER + WORD * place
        self.words += [Code.VALUE, found, instance, *where, self.held(name)]
        return found

    def require_class(self, register: int, cls: type) -> None:
        """An instance of a class that is as it is now.

        Raises:
            LookupError: changes of the class cannot be seen.
        """
        self.require_type(register, cls)
        self.require_version(cls, layout.class_version(cls))

    def require_version(self, cls: type, version: int) -> None:
        """A class that has not changed since it had this version.

        Raises:
            LookupError: it has none, as its changes cannot be seen.
        """
        if not version:
            raise LookupError(cls)
        self.words += [Code.HALF, self.constant(cls), layout.CLASS_VERSION, version]

    def absent(self, mapping: int, key: str) -> None:
        self.words += [Code.ABSENT, mapping, self.held(key), 0]

    def require_keys(self, mapping: int, keys: tuple[Any, ...]) -> None:
        """A dict with these very keys, in this order."""
        self.words += [Code.ORDER, mapping, self.held(keys), len(keys), 0]

    def require_names(self, mapping: int, names: tuple[Any, ...]) -> None:
        """A dict with these very keys, fastest in this order."""
        self.words += [Code.NAMES, mapping, self.held(names), len(names)]

    def require_is(self, register: int, object: Any) -> None:
        self.words += [Code.IS, register, self.held(object)]

    def require_same(self, register: int, other: int) -> None:
        self.words += [Code.SAME, register, other]

    def require_other(self, register: int, other: int) -> None:
        self.words += [Code.DIFFER, register, other]

    def require_word(self, register: int, offset: int, value: int) -> None:
        self.words += [Code.WORD, register, offset, value]

    def require_type(self, register: int, kind: type) -> None:
        self.require_word(register, layout.TYPE, self.held(kind))

    def require_int(self, register: int, value: int) -> None:
        """This int, by its digits."""
        self.require_type(register, int)
        self.require_word(register, layout.SIZE, layout.word(value, layout.SIZE))
        digits = -(-value.bit_length() // layout.DIGIT_BITS)
        if digits > MOST_DIGITS:
            raise TooLong
        for k in range(digits):
            digit = abs(value) >> k * layout.DIGIT_BITS & layout.LARGEST_DIGIT
            self.words += [Code.HALF, register, layout.DIGIT + 4 * k, digit]

    def require_array(self, register: int, dtype: np.dtype[Any], shape: Sequence[int]) -> None:
        self.words += [Code.ARRAY, register, self.held(dtype), len(shape), *shape]

    def require_strides(
        self, register: int, dtype: np.dtype[Any], shape: Sequence[int], strides: Sequence[int]
    ) -> None:
        """An array that is not in C order."""
        self.words += [Code.STRIDED, register, self.held(dtype), len(shape), *shape, *strides]

    def require_writable(self, register: int) -> None:
        self.words += [Code.WRITABLE, register]

    def require_apart(self, register: int, size: int, other: int, other_size: int) -> None:
        """Two arrays of so many bytes that have none of them in common."""
        self.words += [Code.APART, register, size, other, other_size]

    def require_same_array(self, register: int, array: np.ndarray[Any, Any]) -> None:
        """An array that holds what this one holds now.

        Raises:
            LookupError: it is not in C order, or its bytes do not say what it holds.
        """
        if type(array) is not np.ndarray or not array.flags.c_contiguous or array.dtype.hasobject:
            raise LookupError
        kept = array.copy()
        kept.flags.writeable = False
        self.require_array(register, array.dtype, array.shape)
        self.require_contents(register, kept)

    def require_contents(self, register: int, expected: np.ndarray[Any, Any]) -> None:
        """An array of this size that has the bytes of one in C order, which nobody writes into."""
        self.held(expected)
        self.words += [Code.CONTENTS, register, expected.ctypes.data, expected.nbytes]

    def give(self, register: int) -> None:
        """One more argument of the program."""
        self.given += 1
        self.places = max(self.places, self.given)
        if self.given > MOST_ARGUMENTS:
            raise TooLong
        self._lengthened(Code.GIVE, register)

    def copied(self, number: int) -> None:
        """An argument of the program in C order, once all are given: others may run meanwhile."""
        self.words += [Code.COPIED, number]

    def _lengthened(self, code: Code, number: int) -> None:
        """An operation for one more number: that of the numbers before it, if it comes last and they end there."""
        last = self.run
        if last is not None and last == len(self.words) - 3 and self.words[last] == code:
            first, count = self.words[last + 1 :]
            if first + count == number:
                self.words[last + 2] += 1
                return
        self.run = len(self.words)
        self.words += [code, number, 1]

    def bind(self, function: Callable[..., Any], arguments: Sequence[int]) -> int:
        """What a Python function returns, once in a table; no fit if that is None.

        Others may run meanwhile: what registers have had from containers, these may hold no longer.
        """
        assert not self.given
        for register in arguments:
            self.give(register)
        self.given = 0
        found = self.register()
        self.words += [Code.BIND, found, self.held(function)]
        return found

    def native(self, program: Callable[..., Any]) -> None:
        """Run the machine code of a built-in function, which returns the tuple of its results."""
        self.held(program)
        definition = layout.word(program, layout.METHOD)
        code = ctypes.c_int64.from_address(definition + layout.CODE).value
        self.words += [Code.NATIVE, code, layout.word(program, layout.SELF)]

    def fill(self, program: Any, count: int, copies: Sequence[tuple[int, int, int]]) -> None:
        """Run it for its results alone, so many, without a tuple of them; then copy: `arranged`."""
        self.held(program)
        own = layout.word(program, layout.SELF)
        self.words += [
            Code.FILL,
            program.__self__.table,
            own,
            count,
            len(copies),
            *(n for copy in copies for n in copy),
        ]

    def python(self, function: Callable[..., Any]) -> None:
        """Run a Python function, whose result is the call's."""
        self.words += [Code.PYTHON, self.held(function)]

    def finish(self, function: Callable[..., Any], stages: tuple[Any, ...]) -> None:
        """Return what a Python function makes of the tuple of the results."""
        self.words += [Code.FINISH, self.held(function), self.held(stages)]

    def arranged(
        self, program: Callable[..., Any], template: Any, results: Sequence[Any],
        copies: Sequence[tuple[int, int, int]] = (),
    ) -> None:  # fmt: skip
        """Run a built-in function; return the structure in which the objects ``results`` stand for its results.

        ``copies``: into which of the arguments which of the results is copied, and how many bytes. With them there is
        no fit where the program raises, or Python has made the results.
        """
        places = {id(result): number for number, result in enumerate(results)}
        if type(template) is tuple and not copies and tuple(map(id, template)) == tuple(places):
            self.native(program)
            self.words.append(Code.RESULT)
            return
        waiting = self._depth(template)
        if waiting > MOST_RESULTS:
            raise TooLong
        self.places = max(self.places, waiting)
        self.fill(program, len(results), copies)
        uses = Counter(places[id(leaf)] for leaf in leaves(template) if id(leaf) in places)
        rest = len(uses) < len(results)
        self._build(template, places, uses)
        self.words += [Code.REST, Code.DONE] if rest else [Code.DONE]

    def _depth(self, template: Any) -> int:
        """The most objects that wait for a container."""
        items = held_items(template)
        return max([1, *[number + self._depth(item) for number, item in enumerate(items or ())]])

    def _build(self, template: Any, places: dict[int, int], uses: Counter[int]) -> None:
        """``uses``: how often each result is still to come; the last time its reference moves."""
        kind, items = type(template), held_items(template)
        for item in items or ():
            self._build(item, places, uses)
        if kind is tuple:
            self.words += [Code.TUPLE, len(template)]
        elif kind is list:
            self.words += [Code.LIST, len(template)]
        elif kind is dict:
            self.words += [Code.DICT, len(template), self.held(tuple(template))]
        elif isinstance(template, tuple):
            self.words += [Code.RECORD, len(template), self.held(kind)]
        elif items is not None:
            names = tuple([sys.intern(field.name) for field in dataclasses.fields(template)])
            new = layout.word(object, layout.NEW)
            self.words += [Code.INSTANCE, len(names), self.held(names), self.held(kind), new]
        elif id(template) in places:
            place = places[id(template)]
            uses[place] -= 1
            if uses[place]:
                self.words += [Code.KEEP, place]
            else:
                self._lengthened(Code.MOVE, place)
        else:
            self.words += [Code.PICK, self.held(template)]

    def finished(self) -> tuple[Any, tuple[Any, ...]]:
        """What stands in the slot's tuple: the words in memory of their own, and what they refer to."""
        self.words[2:HEADER] = self.registers, self.places
        signed = [word - (1 << 64) if word >= 1 << 63 else word for word in self.words]
        return (ctypes.c_int64 * len(signed))(*signed), tuple(self.kept)


def held_items(template: Any) -> list[Any] | None:
    """What a container of a result holds: a tuple, list, dict, namedtuple or dataclass; None for what is none."""
    if isinstance(template, (tuple, list)):
        return list(template)
    if type(template) is dict:
        return list(template.values())
    if dataclasses.is_dataclass(template):
        return [getattr(template, field.name) for field in dataclasses.fields(template)]
    return None


def leaves(template: Any) -> Iterator[Any]:
    """What stands in the containers of a result."""
    items = held_items(template)
    if items is None:
        yield template
    for item in items or ():
        yield from leaves(item)


class Place(NamedTuple):
    """Where the machine finds what it looks at besides the call."""

    slot: int
    """The offset of the slot for tables in an object."""
    active: list[None]
    """Nothing is in progress while this is empty."""
    failed: Callable[[Any, BaseException], Any]
    """What is called with the object and the exception where a program raised one: it raises what the caller gets, or
    returns where the class is to make the call.
    """


def is_native(program: Any) -> bool:
    """Whether a table can run the machine code of a program."""
    if type(program) is not type(abs):
        return False
    definition = layout.word(program, layout.METHOD)
    return ctypes.c_int32.from_address(definition + layout.FLAGS).value == layout.FASTCALL


KNOWN_DTYPES: Final = frozenset(map(id, DTYPES.values()))
"""The dtype objects that kernels take: others may equal them."""
_FUNCTIONS: Final = (
    "PyThreadState_Get", "_PyObject_MakeTpCall", "PyDict_GetItem", "PyDict_New", "PyDict_SetItem", "PyList_New",
    "PyErr_Fetch", "PyErr_NormalizeException", "PyException_SetTraceback", "PyErr_Clear", "_Py_Dealloc",
    "PyType_GenericAlloc", "PyObject_GenericSetAttr", "PyDict_Next", "PyUnicode_Compare", "PyErr_ExceptionMatches",
    "PyObject_GenericGetDict",
)  # fmt: skip
_LOCK: Final = new_lock()
_addresses: Final[dict[int, int]] = {}
POSSIBLE: Final = (
    layout.KNOWN
    and native.LAYOUT_IS_KNOWN
    and all(hasattr(ctypes.pythonapi, name) for name in _FUNCTIONS)
)  # fmt: skip
"""Whether calls can be answered in machine code at all."""


def machine(place: Place) -> int:
    """The address of the vectorcall function of objects whose slot lies at this place.

    It is compiled once, and what it needs is never freed: objects are called until the interpreter has ended.
    """
    from srcgrad.backends.llvm.front_machine import text  # which is written with this module

    if place.slot in _addresses:
        return _addresses[place.slot]
    with _LOCK:
        for name in _FUNCTIONS:
            llvm.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
        found = {"active": place.active, "failed": place.failed, "none": None, "dict": dict, "text": str}
        found.update(empty=(), exception=Exception)
        for symbol, object in found.items():
            llvm.add_symbol(f"srcgrad_front_{symbol}", id(object))
        needed = native.Library(text(place.slot)), place
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(needed))
        return _addresses.setdefault(place.slot, needed[0].address("srcgrad_front"))
