"""Classes that converted functions reach: their members, what their objects read in them, and guards for both.

`reach.ObjectAnalysis` is a `ClassAnalysis` that follows what holds classes and objects.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from srcgrad.annotations import ANNOTATE, ASKING
from srcgrad.tracing.analysis import Analysis
from srcgrad.tracing.built_on import IN_C as OF_C
from srcgrad.tracing.bytecode import Refusal
from srcgrad.tracing.conversion.calls import MANAGING, generator_of
from srcgrad.tracing.conversion.classes import converted, has_access, is_implicit, may_have_twin
from srcgrad.tracing.descriptors import is_descriptor, read_descriptor, read_dispatcher
from srcgrad.tracing.dispatching import BOUND
from srcgrad.tracing.hosts import is_cache
from srcgrad.tracing.members import (
    IGNORED_MEMBERS,
    Wrapped,
    calls_nothing,
    is_above,
    names_in,
    names_its_class,
    wrapped,
)
from srcgrad.tracing.purity import (
    METACLASSES,
    hidden_kind,
    is_generated,
    is_trusted_module,
    members_of_metaclass,
    static_key,
)
from srcgrad.tracing.rebuild import Edge, member_function, transform_in, wrapped_functions
from srcgrad.tracing.resolution import Resolution, version_cell
from srcgrad.tracing.ruled_out import Reader
from srcgrad.tracing.unasked import attribute, is_special
from srcgrad.tracing.users_classes import KNOWN, bases_of, is_namespace, is_user_class

SHOWN: Final = ("__str__", "__repr__", "__format__", "__hash__")
"""What makes texts of constants, of which nothing is traced."""
COPYING: Final = ("reduce", "reduce_ex", "getstate", "setstate", "getnewargs", "getnewargs_ex", "copy", "deepcopy")
PASSIVE: Final = frozenset(f"__{name}__" for name in ("dir", "sizeof", *COPYING))
"""What Python calls where an object is listed, which has a function traced again, or copied."""
WHERE_MADE: Final = ("__init_subclass__", "__set_name__")
"""What Python calls where a class is made, which functions that are converted do not."""

AS_THEY_ARE: Final = ("__new__", "__class_getitem__")
"""What Python calls of a class itself, which is not converted."""

IN_C: Final = (
    types.BuiltinFunctionType,
    types.ClassMethodDescriptorType,
    types.GenericAlias,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)
"""The kinds of methods of Python's own classes."""


SHARED_KINDS: Final = ("container", "view", "object", "frozen", "table")
"""The kinds of nodes that may be attributes of an object where its class has them."""


class Member(NamedTuple):
    """A function in a class whose node is ``holder``: in which base, under which name."""

    holder: int
    cls: type
    base: int
    name: str
    wrapped: Wrapped


SETTERS: Final = ("fset", "fdel")


class Setter(NamedTuple):
    """What a property in a class whose node is ``holder`` calls when it is assigned or deleted."""

    holder: int
    cls: type
    base: int
    name: str
    part: str


class Shared(NamedTuple):
    """What else a class has for all its objects; ``holder`` is the node of the class, or of an object of it."""

    holder: int
    cls: type
    base: int
    name: str


def is_called(member: Any) -> bool:
    """Whether a member of a class that is no function runs code when it is called or bound, and not that of C."""
    member = transform_in(member)
    if isinstance(member, (*IN_C, *IGNORED_MEMBERS)) or (isinstance(member, type) and not is_user_class(member)):
        return False
    return callable(member) or hasattr(type(member), "__get__")


def is_of_python(factory: Any) -> bool:
    """Whether this is a class whose objects begin as all others do: ``list``, ``deque``."""
    return isinstance(factory, type) and factory.__module__ in ("builtins", "collections", "numpy")


def has_class_cell(transformed: Any) -> bool:
    """Whether a function inside of a transformed one asks for its class, as ``super()`` does."""
    pending = [transformed]
    while pending:
        found = pending.pop()
        if isinstance(found, types.FunctionType):
            if "__class__" in found.__code__.co_freevars:
                return True
        elif attribute(type(found), "__srcgrad_static__") is not None:
            pending += wrapped_functions(found)
    return False


def asks_above(cls: type) -> bool:
    """Whether a method may read what stands in a base behind the first that has a name, as ``super().order`` does."""
    members = [member for base in cls.__mro__[:-1] for member in list(vars(base).values())]
    return any(names_its_class(found.function.__code__) for found in map(wrapped, members) if found is not None)


class ClassAnalysis(Analysis):
    """What an analysis knows of classes."""

    def __init__(self, is_pure: Callable[[object], bool], floats_static: bool) -> None:
        super().__init__(is_pure, floats_static)
        self.noted: dict[str, Reader] = {}
        """Where the names of attributes are first read."""
        self.native = False
        """Whether there are methods that run as they are, of which what they give is kept."""
        self.implicit: set[int] = set()
        """Functions that classes call by themselves."""
        self.unconverted: set[int] = set()
        """Those of these that run as they are."""
        self.named: set[int] = set()
        """The classes that something holds, besides their instances."""
        self.loose: set[int] = set()
        """Those of these that code does not only call."""
        self.inner: dict[int, set[str]] = {}
        """Classes that classes and objects have, and under which names: code may read attributes of them."""
        self.whole_reads: set[str] = set()
        """The attributes of which code does not only read attributes: ``self.layer(x)``, not ``self.Config.rate``."""
        self.unread: list[Member] = []
        """The members of classes that nothing is known to call."""
        self.fields: list[tuple[int, type]] = []
        """Classes, by node, whose fields may be given by functions."""
        self.unassigned: list[Setter] = []
        """What properties call that nothing is known to assign."""
        self.resolutions: list[Resolution] = []
        self.shared: list[Shared] = []
        """The class attributes that only objects may read, which the trace's copies have as attributes of their own."""
        self.shared_edges: dict[tuple[type, str], Edge] = {}
        """What class attributes lead to, by base and name: one input for all that read it."""
        self.described: set[int] = set()
        """The classes of descriptors in classes."""
        self.keeping: list[tuple[type, str, bool]] = []
        """The methods with caches, their classes, and whether they are nothing else, as static methods."""
        self.types_asked = False
        """Whether code asks for the classes of objects, otherwise than to compare or to name them."""
        self.types_called = False
        """Whether code calls the classes of objects, as ``type(x)(y)`` does."""
        self.copying = False
        """Whether any code may copy objects as the standard library does."""
        self.matching = False
        """Whether any code has patterns of classes, which read attributes without naming them."""

    def require_resolution(self, cls: type, fields: Sequence[str] = ()) -> None:
        """The class finds the names that are read in the same of its bases, and its fields as it does now."""
        resolution, version = Resolution(cls, fields), version_cell(cls)
        self.resolutions.append(resolution)
        check = self.constant(resolution)
        unchanged = "" if version is None else f"{self.constant(version)}.value == {check}.seen or "
        self.require(f"{unchanged}{check}()")
        if type(cls) not in (*METACLASSES, enum.EnumMeta):
            self.require_resolution(type(cls))

    def visit_class(self, index: int, cls: type) -> None:
        if is_namespace(cls):
            return
        if dataclasses.is_dataclass(cls):
            self.fields.append((index, cls))
        for number, base in enumerate(cls.__mro__[:-1]):
            if base in KNOWN or base is tuple or (issubclass(cls, enum.Enum) and base not in bases_of(cls)):
                self.local_attributes |= KNOWN.get(base, frozenset())
                continue
            for name, member in list(vars(base).items()):
                if isinstance(member, property):
                    self.unassigned += [Setter(index, cls, number, name, part) for part in SETTERS]
                found = wrapped(member)
                if found is None or is_generated(member) or is_generated(found.function):
                    if is_special(name) and type(member) in OF_C:
                        self.require(f"{self.constant(base)}.__dict__[{name!r}] is {self.constant(member)}")
                    elif name in ("__getattr__", "__getattribute__", "__setattr__") and not is_generated(member):
                        raise Refusal(f"{base.__name__} has {name}")
                    if found is None and is_special(name) and is_called(member):
                        self.read_special(index, cls, name, member)
                    continue
                self.unread.append(Member(index, cls, number, name, found))
        self.read_members()

    def read_factories(self) -> bool:
        """Read what gives the fields of dataclasses that code may make; whether there was any."""
        found = [pair for pair in self.fields if self.may_give(*pair)]
        for index, cls in found:
            self.fields.remove((index, cls))
            for field in dataclasses.fields(cls):
                factory: Any = field.default_factory
                if factory is dataclasses.MISSING or is_of_python(factory):
                    continue
                place = f"{self.constant(cls)}.__dataclass_fields__[{field.name!r}].default_factory"
                self.described.add(id(factory))
                self.implicit.add(id(factory))
                self.read(index, "field", field.name, factory, place, f"{cls.__name__}.{field.name}")
        return bool(found)

    def read_special(self, index: int, cls: type, name: str, member: Any) -> None:
        """What Python calls by itself and is no function: a transformed one, a descriptor, another object.

        Objects do not find it among their attributes, so that it cannot be shared as those of classes are.
        """
        if not is_descriptor(member) and self.may_be_shared(member):
            raise Refusal(f"reads the class attribute {cls.__name__}.{name}")
        self.guard_class_attribute(index, cls, name)

    def read_members(self) -> bool:
        """Read the members that only now may be called; whether there were any."""
        found = [member for member in self.unread if self.may_call(member)]
        for member in found:
            self.unread.remove(member)
            self.read_member(*member)
        return self.read_setters() | self.read_factories() | bool(found)

    def read_setters(self) -> bool:
        """Read what assigning or deleting a property calls, where code may do that; whether there was any."""
        assigned = self.plan.assigned
        if "setattr" in assigned:  # of which the trace tells no names that are read as well
            assigned = assigned | self.local_attributes
        found = [setter for setter in self.unassigned if setter.name in assigned]
        for setter in found:
            self.unassigned.remove(setter)
            index, cls, number, name, part = setter
            base = cls.__mro__[number]
            function = getattr(vars(base)[name], part)
            if function is not None and not isinstance(function, types.FunctionType):
                raise Refusal(f"assigns the property {base.__name__}.{name}, of which another object is the setter")
            if function is not None:
                place = f"{self.constant(base)}.__dict__[{name!r}].{part}"
                self.implicit.add(id(function))
                if has_access(cls):
                    self.unconverted.add(id(function))
                self.methods.add(id(function))
                self.read(index, part, (number, name), function, place, f"{base.__name__}.{name}")
        return bool(found)

    def read_member(self, index: int, cls: type, number: int, name: str, found: Wrapped) -> None:
        base = cls.__mro__[number]
        place = f"{self.constant(base)}.__dict__[{name!r}]" + (f".{found.part}" if found.part else "")
        label = f"{base.__name__}.{name}"
        member = vars(base)[name]
        if issubclass(cls, enum.Enum):
            self.require_plain(label, name, member, found)
        self.at = self.noted.get(name, Reader(index))
        if is_implicit(name, member) or name in AS_THEY_ARE:
            self.implicit.add(id(found.function))
            if has_access(cls):
                self.unconverted.add(id(found.function))
        self.read(index, "member", (number, name), member_function(cls, (number, name)), place, label)
        manages = found.function.__code__ is MANAGING
        self.native |= not {"func", "__wrapped__"}.isdisjoint(found.part.split("."))
        self.methods.add(id(generator_of(found.function) if manages else found.function))
        if found.part.endswith("__wrapped__"):
            self.keeping.append((cls, label, is_cache(member)))

    def require_plain(self, label: str, name: str, member: Any, found: Wrapped) -> None:
        """What Python calls by itself of a constant is not converted: of what it is given a part may be traced."""
        code = found.function.__code__
        if name in SHOWN or (isinstance(member, property) and calls_nothing(code)):
            return
        if is_implicit(name, member) and converted(member) is not None:
            raise Refusal(f"{label} runs code of its own")

    def may_call(self, member: Member) -> bool:
        """Whether code that is reached may call a member of a class: by its name, or as Python does without one."""
        if member.name == "__init__":
            return self.may_make(member.holder, member.cls)
        if member.name in WHERE_MADE or (member.name in ("__init__", "__new__") and issubclass(member.cls, enum.Enum)):
            return False
        if member.name == ANNOTATE:
            return not ASKING.isdisjoint(self.local_attributes)
        if member.name in PASSIVE and not self.copying and member.name not in self.local_attributes:
            return id(member.wrapped.function) in self.node_of
        if is_special(member.name) or member.name in self.local_attributes:
            return True
        return id(member.wrapped.function) in self.node_of or self.matching

    def may_make(self, index: int, cls: type) -> bool:
        """Whether the code may make instances of a class, as far as it is known: it is only that of an object or not.

        What ``__init__`` reads does not matter else: arrays to begin with, a generator of random numbers.
        """
        return dataclasses.is_dataclass(cls) or self.may_give(index, cls)

    def may_give(self, index: int, cls: type) -> bool:
        """The same of the user's code: Python's own makes a dataclass of the fields of another one."""
        if index in self.named or not {"__class__", "__init__"}.isdisjoint(self.local_attributes):
            return True
        if self.types_asked or self.types_called:
            return True
        for name, member in [item for base in cls.__mro__[:-1] for item in list(vars(base).items())]:
            found = wrapped(member)
            if isinstance(member, classmethod):
                return True
            if found is not None and name != "__init__" and "__class__" in found.function.__code__.co_freevars:
                return True
        return False

    def read_shared(self, index: int, cls: type, name: str, slotted: bool) -> bool:
        """What an object finds in its class and is no constant: arrays, containers and objects; whether it is that.

        Raises:
            Refusal: it is, and an object with slots alone cannot have it as its own.
        """
        for number, base in enumerate(cls.__mro__[:-1]):
            if name in vars(base):
                value = vars(base)[name]
                if self.is_constant_member(value) or not self.may_be_shared(value):
                    return False
                if slotted:
                    raise Refusal(f"reads the class attribute {cls.__name__}.{name}")
                self.read_in_class(Shared(index, cls, number, name))
                return True
        return False

    def read_in_class(self, member: Shared) -> None:
        """An array, container or object that a class has: for an object of it, or for what the class itself is."""
        index, cls, number, name = member
        base, plan = cls.__mro__[number], self.plan
        known = self.shared_edges.get((base, name))
        if known is None:
            place = f"{self.constant(base)}.__dict__[{name!r}]"
            label = f"{cls.__name__}.{name}"
            edge = self.read(index, "class attribute", (number, name), vars(base)[name], place, label)
            self.shared_edges[base, name] = plan.edges[edge]
        else:
            plan.edges.append(known._replace(holder=index, key=(number, name)))
            plan.nodes[index].edges.append(len(plan.edges) - 1)

    def read_shared_by_name(self) -> bool:
        """Read what something may find in a class itself, or in objects that the trace makes; whether there was any."""
        found = [member for member in self.shared if self.may_name(member.holder, member.cls, member.name)]
        for member in found:
            self.shared.remove(member)
            self.read_in_class(member)
        return bool(found)

    def is_constant_member(self, value: Any) -> bool:
        return (
            wrapped(value) is not None
            or isinstance(value, (*IGNORED_MEMBERS, types.ModuleType))
            or static_key(value, self.is_pure, True) is not None
        )

    def may_be_shared(self, value: Any) -> bool:
        """Whether this may as well be an attribute of the object itself: it is not bound when it is read."""
        if hasattr(type(value), "__get__") or isinstance(value, type):
            return False
        return hidden_kind(value) is not None or self.node_kind(value) in SHARED_KINDS

    def guard_class_attribute(self, index: int, cls: type, name: str) -> None:
        """A number or text that all objects of a class share, compared at each call; what else its objects may read
        as if it were their own.
        """
        if issubclass(cls, enum.Enum) and name in cls.__members__:
            return  # which nobody can change
        if name in members_of_metaclass(cls):
            raise Refusal(f"reads the attribute '{name}', which the metaclass of {cls.__name__} has")
        bases = bases_of(cls) if issubclass(cls, enum.Enum) else cls.__mro__[:-1]
        found = [base for base in bases if name in vars(base) and base not in KNOWN]
        for base in found if len(found) > 1 and asks_above(cls) else found[:1]:
            self.guard_in_base(index, cls, base, name)

    def guard_in_base(self, index: int, cls: type, base: type, name: str) -> None:
        """The same of what one base of a class has under a name."""
        value, number = vars(base)[name], cls.__mro__.index(base)
        if wrapped(value) is not None or isinstance(value, IGNORED_MEMBERS):
            return
        place, label = f"{self.constant(base)}.__dict__[{name!r}]", f"{cls.__name__}.{name}"
        if isinstance(value, types.ModuleType) and is_trusted_module(value, self.is_pure):
            self.handed_on.setdefault(value, Refusal)
            self.require(f"{place} is {self.constant(value)}")
        elif isinstance(value, functools.singledispatchmethod) and BOUND is not None:
            read_dispatcher(self, index, value, (number, name), place, label)
        elif isinstance(value, staticmethod) and (static := static_key(value.__func__, self.is_pure)) is not None:
            self.guard_static(value.__func__, static, f"{place}.__func__", label)
        elif self.node_kind(transform_in(value)) == "transform":
            self.read_transform(index, transform_in(value), (number, name), place, label)
        elif is_descriptor(value) and self.node_kind(value) == "object":
            read_descriptor(self, index, value, (number, name), place, label)
        elif (static := static_key(value, self.is_pure, True)) is not None:
            self.guard_static(value, static, place, label)
        elif isinstance(value, type):
            self.read(index, "class attribute", (number, name), value, place, label)
        elif self.may_be_shared(value):
            self.shared.append(Shared(index, cls, number, name))
        else:
            raise Refusal(f"reads the class attribute {label}")

    def read_transform(self, index: int, value: Any, key: tuple[int, str], place: str, label: str) -> None:
        """A method, static method or class method with a transform or a rule: ``@sg.jit``, ``@sg.checkpoint``."""
        if has_class_cell(value):
            raise Refusal(f"{label} is a transformed function that uses super() or __class__")
        member = vars(self.objects[index].__mro__[key[0]])[key[1]]
        if isinstance(member, (classmethod, staticmethod)):
            place = f"{place}.__func__"
        self.methods.update(map(id, wrapped_functions(value)))
        self.read(index, "transformed member", key, value, place, label)

    def may_name(self, index: int, cls: type, name: str) -> bool:
        """Whether anything but its captured objects may lead to a class, to read that of it or of other instances."""
        if index in self.named or "__class__" in self.local_attributes or self.types_asked or self.types_called:
            return True
        if cls in self.followed or issubclass(cls, tuple):
            return True
        for base in cls.__mro__[:-1]:
            if base is not cls and id(base) in self.node_of and self.node_of[id(base)] in self.named:
                return True
            for member in list(vars(base).values()):
                found = wrapped(member)
                if found is not None and id(found.function) in self.node_of:
                    code = found.function.__code__
                    names = {*names_in(code)}
                    if isinstance(member, classmethod):
                        return True
                    if "__class__" in code.co_freevars and (name in names or "super" not in names):
                        return True
        return False

    def is_converted(self, function: Any) -> bool:
        """Whether a trace runs a function converted: `reach`."""
        return False

    def require_twin(self, index: int) -> None:
        """A method of a class leads to what a trace replaces: its objects find a copy of it, in a twin of the class."""
        cls, label = self.objects[index], self.plan.nodes[index].label
        inner = [found for base in cls.__mro__[:-1] for found in map(wrapped, list(vars(base).values())) if found]
        for function in {found.function for found in inner if id(found.function) in self.node_of}:
            if names_its_class(function.__code__) and not (is_above(function.__code__) and self.is_converted(function)):
                raise Refusal(f"{label} uses __class__, and a method of it reads what can change from outside")
        edges = [self.plan.edges[edge] for edge in self.plan.nodes[index].edges]
        members = [edge.key for edge in edges if edge.source == "member"]
        parts = [wrapped(vars(cls.__mro__[number])[name]) for number, name in members]
        if any(part is not None and "__wrapped__" in part.part for part in parts):
            raise Refusal(f"{label} has a method with a cache, and one that reads what can change from outside")
        handed = index in self.loose or not self.whole_reads.isdisjoint(self.inner.get(index, ()))
        handed |= self.matching and index in self.inner
        handed |= "__class__" in self.local_attributes or self.types_asked
        handed |= self.types_called and hasattr(cls, "__class_getitem__")  # type(x)[int](y) too
        if handed or not may_have_twin(cls):
            for edge in edges:
                if edge.source == "class attribute":
                    raise Refusal(f"reads the class attribute {label}.{edge.key[1]}, and {label} is not only called")
            raise Refusal(f"a method of {label} reads what can change from outside, and {label} is not only called")
