"""Functions in classes, by what they are wrapped in, and what code says by its names and operations."""

from __future__ import annotations

import dis
import functools
import itertools
import types
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from srcgrad.tracing.bytecode import SUPER, instructions, opnames
from srcgrad.tracing.hosts import CACHED
from srcgrad.tracing.purity import is_generated
from srcgrad.tracing.unasked import attribute


class Wrapped(NamedTuple):
    """A function in a class: the attribute by which what stands there holds it, "" for the function itself."""

    part: str
    function: types.FunctionType


WRAPPERS: Final = (
    (property, "fget"),
    (classmethod, "__func__"),
    (staticmethod, "__func__"),
    (functools.cached_property, "func"),
    (CACHED, "__wrapped__"),
)
"""What may be around a function in a class, the outer ones first, and the attribute by which it holds it."""
ARITHMETIC: Final = frozenset(
    {
        "ZeroDivisionError",
        "OverflowError",
        "FloatingPointError",
        "ArithmeticError",
        "ValueError",
        "Exception",
        "BaseException",
    }
)
"""The errors of arithmetic and of ``math``, and what handles these too."""
ABSENCE: Final = frozenset({"AttributeError", "Exception", "BaseException"})
"""What handles that an object has no such attribute."""
HARMLESS: Final = frozenset({"errstate", "nullcontext", "catch_warnings", "use_backend", "debug"})
"""The names of context managers that handle no errors."""
IGNORED_MEMBERS: Final = (
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    type(attribute(Wrapped, "part")),  # the field of a named tuple
)
OPERATORS: Final = (
    "abs add and contains divmod eq floordiv ge getitem gt invert le lt matmul mod mul ne neg or pos pow radd rand "
    "rdivmod rfloordiv rmatmul rmod rmul ror rpow rsub rtruediv rxor sub truediv xor"
)
ASKED_FOR: Final = frozenset(
    f"__{name}__" for name in ("init", "post_init", "call", "class", "args", "array", "str", "repr", *OPERATORS.split())
)
"""What code may name of Python's: methods, as ``super().__add__(x)``, of which none changes an object, and the parts of
what is written of classes.
"""


def calls_nothing(code: types.CodeType) -> bool:
    """Since Python 3.12 one instruction calls ``super()`` and reads an attribute, which may be a property."""
    return not any("CALL" in step.opname or step.opname in SUPER for step in dis.get_instructions(code))


def names_in(code: types.CodeType) -> Iterator[str]:
    """The names that code reads or writes outside of itself, and those of attributes."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_in(constant)


OF_CODE: Final = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
PLAIN: Final = (str, bytes, int, float, bool, types.NoneType)
ASSIGNING: Final = frozenset({"STORE_ATTR", "DELETE_ATTR"})
_NAMED: Final = 2
"""The bit of LOAD_SUPER_ATTR that says that `super` is given a class and an object."""


def names_its_class(code: types.CodeType) -> bool:
    """Whether a method, or a function in it, asks for the class that it is written in: as ``super()`` does."""
    return "__class__" in code.co_freevars or any(names_its_class(inner) for inner in inner_codes(code))


def is_above(code: types.CodeType) -> bool:
    """Whether a method, and no function in it, asks for its class by ``super()`` alone."""
    if any(names_its_class(inner) for inner in inner_codes(code)):
        return False
    steps = [*dis.get_instructions(code)]
    loads = sum([step.opname.startswith("LOAD") and step.argval == "__class__" for step in steps])
    alone = sum([step.opname in SUPER and not (step.arg or 0) & _NAMED for step in steps])
    return "super" in code.co_names and loads == alone


def inner_codes(code: types.CodeType) -> list[types.CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def has_class_patterns(code: types.CodeType) -> bool:
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return dis.opmap["MATCH_CLASS"] in code.co_code[::2] or any(map(has_class_patterns, inner))


def stored_attributes(code: types.CodeType) -> set[str]:
    """The attributes that code assigns or deletes, and the code in it."""
    found: set[str] = set()
    if not ASSIGNING.isdisjoint(opnames(code)):
        found = {argument for operation, argument, *_ in instructions(code) if operation in ASSIGNING}
    return found.union(*[stored_attributes(inner) for inner in code.co_consts if isinstance(inner, types.CodeType)])


def asks_for_truths(code: types.CodeType) -> bool:
    """Whether code compares something with True or False by ``is``, as ``case True`` does too."""
    if dis.opmap["IS_OP"] in code.co_code[::2]:
        asked = (one for one, then in itertools.pairwise(dis.get_instructions(code)) if then.opname == "IS_OP")
        if any(type(one.argval) is bool for one in asked):
            return True
    return any(asks_for_truths(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))


def handles(code: types.CodeType, errors: frozenset[str]) -> bool:
    """Whether code has a ``try``, or a ``with``, that may handle an error of these names."""
    found = list(dis.get_instructions(code)) if code.co_exceptiontable else []
    names = {instruction.opname for instruction in found}
    if "PUSH_EXC_INFO" in names:
        entered = sum(instruction.opname == "WITH_EXCEPT_START" for instruction in found)
        if entered > sum(instruction.argval in HARMLESS for instruction in found):
            return True
        bare = names.isdisjoint(("CHECK_EXC_MATCH", "WITH_EXCEPT_START"))
        if bare or not errors.isdisjoint(code.co_names):
            return True
    return any(handles(constant, errors) for constant in code.co_consts if isinstance(constant, types.CodeType))


def compares_objects(code: types.CodeType) -> bool:
    """Whether the code asks by ``is`` for anything but a constant, as None."""
    if dis.opmap["IS_OP"] in code.co_code[::2]:
        names = [instruction.opname for instruction in dis.get_instructions(code)]
        if any(name == "IS_OP" and before != "LOAD_CONST" for before, name in itertools.pairwise(names)):
            return True
    return any(compares_objects(inner) for inner in code.co_consts if isinstance(inner, types.CodeType))


def wrapped(member: Any) -> Wrapped | None:
    """The function of a method, property, class method, static method, cached property or method with a cache."""
    parts = []
    for kind, part in WRAPPERS:
        if isinstance(member, kind):
            parts.append(part)
            member = getattr(member, part)
    return Wrapped(".".join(parts), member) if isinstance(member, types.FunctionType) else None


class Read(NamedTuple):
    """A variable of a module that a method reads."""

    names: dict[str, Any]
    name: str

    @property
    def value(self) -> Any:
        return self.names[self.name]


def read_by_errors(cls: type) -> Iterator[Read | None]:
    """What the methods of a class of errors may read from outside, besides functions and classes; None for what no name
    of a module says.
    """
    for base in cls.__mro__:
        for member in list(vars(base).values()):
            found = wrapped(member)
            if found is None or is_generated(member):
                continue
            _, function = found
            if {*function.__code__.co_freevars} - {"__class__"}:
                yield None
            names = function.__globals__
            for name in dict.fromkeys(names_in(function.__code__)):
                if name in names and not isinstance(names[name], OF_CODE):
                    yield Read(names, name)


def reads_from_outside(cls: type) -> bool:
    """Whether a method of a class of errors reads what no guard watches: no number or text that a module has."""
    return any(read is None or type(read.value) not in PLAIN for read in read_by_errors(cls))
