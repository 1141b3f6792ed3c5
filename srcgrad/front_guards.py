"""The guards of a function's captures as operations of `backends.llvm.front`: compiled from the text of `bind`.

That text is the one place where guards are written, and each of its conditions becomes one that is at least as strong:
of alternatives the identity with what is there now, of a transform that of its options. What has no such form is asked
in Python, by a function that the machine calls first (`front_asked.py`), or all of it by `bind` itself
(``UnknownGuard``).
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import itertools
import operator
import types
from collections import Counter, defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from srcgrad.backends.llvm import layout
from srcgrad.backends.llvm.front import Table
from srcgrad.front_asked import Asked, assigned
from srcgrad.ir.parsing import parse
from srcgrad.tracing.alike import same_keys
from srcgrad.tracing.built_on import built_on, items_in
from srcgrad.tracing.capture import Captures
from srcgrad.tracing.conversion.state import slots_of
from srcgrad.tracing.frozen import Same
from srcgrad.tracing.held import holding, is_slotted
from srcgrad.tracing.resolution import Resolution
from srcgrad.transformed import Transformed

FUNCTION: Final = layout.member_offset(Transformed.f) if layout.KNOWN else 0
OPTIONS: Final = layout.member_offset(Transformed.options) if layout.KNOWN else 0
"""Where a transformed function has its function and its options."""
MOST_LINES: Final = 2_000
"""The most lines of ``bind`` that are parsed: what more of them ask has no room in a table."""
MOST_DIFFERENT: Final = 24
"""Of how many objects every two are compared."""
_OF_A_TRANSFORM: Final = ("__srcgrad_static__", "__srcgrad_wrapped__")


class _Cells(tuple[Any, ...]):
    """Stands for the class of a tuple that holds cells only."""


_SIZED: Final = (tuple, list, dict)
IN_ORDER: Final = (dict, defaultdict, Counter)
"""The classes of dicts of which the order of the keys is that of their table."""
UNCHANGING: Final = (operator.attrgetter, operator.itemgetter, operator.methodcaller)
_GONE: Final = (AttributeError, KeyError, IndexError, ValueError)
"""What reading something raises that another thread has taken away meanwhile."""
_CLASSES: Final[dict[str, type]] = {
    "__globals__": dict, "__builtins__": dict, "__kwdefaults__": dict, "__dict__": dict, "keywords": dict,
    "__defaults__": tuple, "__closure__": _Cells, "args": tuple,
}  # fmt: skip
"""The classes of attributes, where they are not null."""


class UnknownGuard(Exception):
    """A guard that has no form in machine code."""


class Place:
    """A register, the class of the object in it where that is known, and the object that was there when compiled."""

    __slots__ = ("kind", "object", "register")

    def __init__(self, register: int, kind: type | None, object: Any) -> None:
        self.register = register
        self.kind = kind
        self.object = object


class Imagined(Place):
    """Stands for an object that `bind` is given and that the machine does not make."""

    __slots__ = ()

    @property
    def register(self) -> int:  # type: ignore[override]
        raise UnknownGuard(f"a {type(self.object)} that is not there")


class Holder(Imagined):
    """Stands for a `Job.holder`: a function, and the registers of the objects that it is called with."""

    __slots__ = ("function", "held")

    def __init__(self, function: Place, holder: functools.partial[Any], held: Mapping[str, int]) -> None:
        self.kind, self.object = functools.partial, holder
        self.function, self.held = function, held
        inner = function.object.func if self.is_own else function.object
        if holder.func is not inner:
            raise UnknownGuard("a partial that holds what another class holds")

    @property
    def is_own(self) -> bool:
        """Whether the function is a partial of the user's, of which the holder is one as well."""
        return type(self.function.object) is functools.partial


class Keywords(Imagined):
    """Stands for the keywords of a `Holder`: those of the user's partial, then the objects."""

    __slots__ = ("held", "own")

    def __init__(self, keywords: dict[str, Any], own: Place | None, held: Mapping[str, int]) -> None:
        self.kind, self.object = dict, keywords
        self.own, self.held = own, held


class Answers(NamedTuple):
    """What Python was asked first: the register of the answers, and what they are now."""

    asked: Asked
    register: int
    values: tuple[Any, ...]


class Guards:
    """One compilation; the function's guards must hold at this moment.

    ``register``: that of the function. ``holder``: what `bind` is given; ``held``: the registers of the objects that it
    holds besides the function; ``answers``: of guards that have no form in machine code, which are noted without them.

    Raises:
        UnknownGuard, TooLong: there is no such table.
    """

    def __init__(
        self, table: Table, captures: Captures, function: Any, register: int,
        holder: Any = None, held: Mapping[str, int] = MappingProxyType({}), answers: Answers | None = None,
    ) -> None:  # fmt: skip
        self.table = table
        self.constants = captures.bind.__globals__
        place = Place(register, None, function)
        self.places = {"function": Holder(place, holder, held) if held else place}
        if captures.source.count("\n") > MOST_LINES:
            raise UnknownGuard("more guards than there is room for")
        (bind,) = parse(captures.source).body
        assert isinstance(bind, ast.FunctionDef)
        (guarded,) = [statement for statement in bind.body if isinstance(statement, ast.Try)]
        self.statements = guarded.body
        self.unknown: set[int] = set()
        """The statements that have no form in machine code, and of which no answers were given."""
        try:
            for number, statement in enumerate(self.statements):
                if answers is not None and number in answers.asked.numbers:
                    self.answered(number, statement, answers)
                    continue
                try:
                    self.statement(statement)
                except UnknownGuard:
                    if answers is not None:
                        raise
                    self.note_unknown(number, statement)
        except _GONE as error:
            raise UnknownGuard("what is guarded changes") from error

    def note_unknown(self, number: int, statement: ast.stmt) -> None:
        """Go on behind what has no form, to find what else has none: the table is of no use then."""
        self.unknown.add(number)
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found = {name: place.object for name, place in self.places.items()}
                self.places[name] = Place(self.table.register(), None, eval(ast.unparse(value), self.constants, found))

    def answered(self, number: int, statement: ast.stmt, answers: Answers) -> None:
        """What Python has been asked: the objects that the machine finds are those which it was asked about."""
        name = assigned(statement)
        for (which, read), place in answers.asked.places.items():
            if which != number:
                continue
            register = self.table.load(answers.register, layout.ITEMS + 8 * place)
            if name is not None:
                self.places[name] = Place(register, None, answers.values[place])
            elif not isinstance(self.places[read], Imagined):
                self.table.require_same(register, self.places[read].register)

    def hidden(self, count: int) -> list[Place]:
        return [self.places[f"v{number}"] for number in range(count)]

    def statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.places[name] = self.place(value)
            case ast.If(test=ast.UnaryOp(op=ast.Not(), operand=condition)):
                self.require(condition)
            case _:
                raise UnknownGuard(ast.unparse(statement))

    # --- values ------------------------------------------------------------------------------------
    def place(self, node: ast.expr) -> Place:
        match node:
            case ast.Name(id=name) if name in self.places:
                return self.places[name]
            case ast.Name(id=name):
                value = self.constant(name)
                return Place(self.table.constant(value), type(value), value)
            case ast.Attribute(value=holder, attr=name):
                return self.attribute(self.place(holder), name)
            case ast.Call(func=ast.Name(id="type"), args=[value]):
                place = self.place(value)
                return Place(self.table.load(place.register, layout.TYPE), None, type(place.object))
            case ast.Subscript(value=ast.Call(func=ast.Name(id="wrapped_functions"), args=[holder])):
                return self.wrapped(self.place(holder))
            case ast.Call(func=ast.Name(id="items_in"), args=[holder]):
                place = self.place(holder)  # of a class that the guard before this one asks
                return Place(place.register, built_on(type(place.object)), items_in(place.object))
            case ast.Subscript(value=holder, slice=ast.Constant(value=key)):
                return self.element(self.place(holder), key)
            case ast.Subscript(value=holder, slice=ast.Name(id=name)):
                return self.element(self.place(holder), self.constant(name))
        raise UnknownGuard(ast.unparse(node))

    def attribute(self, holder: Place, name: str) -> Place:
        if isinstance(holder, Holder):
            return self.part(holder, name)
        if holder.kind is None and type(holder.object) in layout.FIELDS:
            self.require_type(holder, type(holder.object))
        if holder.kind is defaultdict and name == "default_factory":
            offset = layout.member_offset(inspect.getattr_static(defaultdict, name))
            return Place(self.table.load(holder.register, offset), None, holder.object.default_factory)
        if is_slotted(holder.object):
            return self.slot(holder, name)
        offset = self.offset(holder, name)
        if offset == layout.ATTRIBUTES and name == "__dict__":
            register = self.table.attributes(holder.register)
        else:
            register = self.table.load(holder.register, offset)
        return Place(register, _CLASSES.get(name), getattr(holder.object, name))

    def slot(self, holder: Place, name: str) -> Place:
        """An attribute in a slot, of an object whose class the guards before it have asked for."""
        return Place(
            self.table.load(holder.register, self.slot_offset(holder, name)), None, holding(holder.object)[name]
        )

    def slot_offset(self, holder: Place, name: str) -> int:
        member = inspect.getattr_static(type(holder.object), name)
        if holder.kind is not type(holder.object) or type(member) is not types.MemberDescriptorType:
            raise UnknownGuard(f"{name} of {holder.kind}")
        return layout.member_offset(member)

    def part(self, holder: Holder, name: str) -> Place:
        """An attribute of a partial that is not made."""
        own = self.attribute(holder.function, name) if holder.is_own else None
        match name:
            case "func":
                return own or holder.function
            case "args":
                return own or Place(self.table.constant(()), tuple, ())
            case "keywords":
                return Keywords(holder.object.keywords, own, holder.held)
        raise UnknownGuard(f"{name} of a partial")

    def offset(self, holder: Place, name: str) -> int:
        fields = layout.FIELDS.get(holder.kind, {}) if holder.kind is not None else {}
        offset = fields.get(name)
        if offset is None and name == "__dict__" and type(holder.object) is holder.kind:
            offset = layout.names_of(holder.object)
        if offset is None:
            raise UnknownGuard(f"{name} of {holder.kind}")
        return offset

    def constant(self, name: str) -> Any:
        return self.constants[name] if name in self.constants else getattr(builtins, name)

    def element(self, holder: Place, key: Any) -> Place:
        """An element whose place the guards before it have found to exist."""
        value = holder.object[key]
        if isinstance(holder, Keywords):
            if key in holder.held:
                return Place(holder.held[key], None, value)
            assert holder.own is not None
            return self.element(holder.own, key)
        if holder.kind in IN_ORDER:  # of which those guards have required the very keys, but where they are names
            register = self.table.item(holder.register, key)
        elif holder.kind in (tuple, _Cells) and type(key) is int:
            register = self.table.load(holder.register, layout.ITEMS + 8 * key)
        elif holder.kind is list and type(key) is int:
            register = self.table.load(self.table.load(holder.register, layout.LIST_ITEMS), 8 * key)
        else:
            raise UnknownGuard(f"an element of {holder.kind}")
        return Place(register, types.CellType if holder.kind is _Cells else None, value)

    def wrapped(self, holder: Place) -> Place:
        """The function of a transformed function, whose class and options have been found to be the same."""
        if not isinstance(holder.object, Transformed):
            raise UnknownGuard("the functions of a transform")
        return Place(self.table.load(holder.register, FUNCTION), None, holder.object.f)

    # --- conditions --------------------------------------------------------------------------------
    def require(self, node: ast.expr) -> None:
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                for value in values:
                    self.require(value)
            case ast.BoolOp(op=ast.Or(), values=[ast.Compare(left=left, ops=[ast.Is()]), *_]):
                self.require_present(node, left)
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                self.compare(left, operator, right)
            case ast.BoolOp(op=ast.Or(), values=[ast.Compare(), ast.Call(func=ast.Name(id=name), args=[])]):
                self.require_resolution(self.constants[name])
            case ast.Call(func=ast.Name(id="same_keys"), args=[ast.Call(args=[mapping]), ast.Name(id=name)]):
                place = self.place(mapping)
                if place.kind not in IN_ORDER or not same_keys(tuple(place.object), self.constants[name]):
                    raise UnknownGuard(f"the keys of {place.kind}")
                self.require_keys(place)
            case ast.Call(func=ast.Name(id=name), args=[table]) if type(self.constants.get(name)) is Same:
                self.require_table(self.place(table))
            case ast.Call(func=ast.Name(id="is_unbound_cell"), args=[cell]):
                self.table.require_word(self.cell(self.place(cell)).register, layout.SIZE, 0)
            case _:
                raise UnknownGuard(ast.unparse(node))

    def require_present(self, node: ast.expr, part: ast.expr) -> None:
        """The very object that a condition is about now, for which it holds."""
        place = self.place(part)
        condition = ast.unparse(node).replace(ast.unparse(part), "present")
        if not eval(condition, self.constants, {"present": place.object}):
            raise UnknownGuard(ast.unparse(node))
        if "static_key" in condition and type(place.object) is int:  # of ints the key is the value
            self.table.require_int(place.register, place.object)
        else:
            self.table.require_is(place.register, place.object)

    def require_resolution(self, resolution: Resolution) -> None:
        """A class that finds names where it did, of the version that it has now."""
        version = layout.class_version(resolution.cls)
        if not resolution():
            raise UnknownGuard(f"the bases of {resolution.cls}")
        try:
            self.table.require_version(resolution.cls, version)
        except LookupError as error:
            raise UnknownGuard(f"the version of {resolution.cls}") from error

    def cell(self, place: Place) -> Place:
        if place.kind is not types.CellType:
            raise UnknownGuard("a cell")
        return place

    def compare(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> None:
        match left, operator, right:
            case ast.Call(func=ast.Name(id="type"), args=[value]), ast.Is(), ast.Name(id=name) if (
                name not in self.places
            ):
                self.require_type(self.place(value), self.constant(name))
            case ast.Attribute(value=holder, attr=name), ast.Is(), ast.Constant(value=None):
                place = self.place(holder)
                self.table.require_word(place.register, self.offset(place, name), 0)
            case ast.Attribute(), ast.IsNot(), ast.Constant(value=None):
                self.place(left)  # which is no fit where there is none
            case ast.Call(func=ast.Attribute(value=ast.Call(args=[slotted]), attr="keys")), ast.Eq(), ast.Name(id=name):
                self.require_slots(self.place(slotted), self.constants[name])
            case ast.Call(func=ast.Attribute(value=mapping, attr="keys")), ast.Eq(), ast.Name(id=name):
                self.require_names(self.place(mapping), self.constants[name])
            case ast.Compare(left=ast.Attribute(value=holder, attr="default_factory")), ast.Is(), ast.Constant():
                self.require_factory(self.place(holder))
            case _, ast.Is(), ast.Name(id=name) if name in self.places:
                self.table.require_same(self.place(left).register, self.places[name].register)
            case _, ast.Is(), ast.Name(id=name):
                self.table.require_is(self.place(left).register, self.constant(name))
            case _, ast.Is(), ast.Subscript():
                self.table.require_same(self.place(left).register, self.place(right).register)
            case ast.Call(func=ast.Name(id="len"), args=[ast.Set(elts=elements)]), ast.Eq(), ast.Constant(
                value=int(size)
            ):
                self.require_different(elements, size)
            case ast.Call(func=ast.Name(id="len"), args=[sized]), ast.Eq(), ast.Constant(value=int(size)):
                self.require_size(sized, size)
            case ast.Call(func=ast.Name(id="tuple"), args=[mapping]), ast.Eq(), ast.Name(id=name):
                place = self.place(mapping)
                if place.kind not in IN_ORDER or tuple(place.object) != self.constants[name]:
                    raise UnknownGuard(f"the keys of {place.kind}")
                self.require_keys(place)
            case ast.Attribute(value=ast.Name() as name, attr="__srcgrad_static__"), ast.Eq(), _:
                self.require_transform(ast.Compare(left, [operator], [right]), name)
            case ast.Call(func=ast.Name(id=function), args=[thing]), ast.Eq(), ast.Name(id=name):
                self.require_same_contents(self.place(thing), self.constants.get(function), self.constants[name])
            case ast.Constant(value=str(key)), ast.NotIn(), mapping:
                place = self.place(mapping)
                if place.kind is not dict:
                    raise UnknownGuard("a name in what is no dict")
                layout.ask_version(place.object)  # while keys have none, the name is looked up at each call
                self.table.absent(place.register, key)
            case _:
                raise UnknownGuard(f"{ast.unparse(left)} {operator} {ast.unparse(right)}")

    def require_keys(self, place: Place) -> None:
        """The very keys that a dict has now, in their order."""
        if not isinstance(place, Keywords):
            self.table.require_keys(place.register, tuple(place.object))
        elif place.own is not None:
            self.table.require_keys(place.own.register, tuple(place.own.object))

    def require_different(self, ids: list[ast.expr], size: int) -> None:
        """Objects of which no two are the same."""
        if size != len(ids) or size > MOST_DIFFERENT:
            raise UnknownGuard(f"{size} of {len(ids)} objects")
        registers = [self.place(each.args[0]).register for each in ids if isinstance(each, ast.Call)]
        for one, other in itertools.combinations(registers, 2):
            self.table.require_other(one, other)

    def require_names(self, place: Place, names: frozenset[Any]) -> None:
        """The attributes of an instance, whatever they are now."""
        if type(place.object) is not dict or place.object.keys() != names:
            raise UnknownGuard("the attributes of an object")
        self.table.require_names(place.register, tuple(place.object))

    def require_slots(self, place: Place, names: frozenset[Any]) -> None:
        """An object with slots alone that has these attributes, and no others."""
        held = holding(place.object)
        if not is_slotted(place.object) or held.keys() != names:
            raise UnknownGuard("the attributes of an object")
        for name in slots_of(type(place.object)):
            if name in held:
                self.slot(place, name)  # which is no fit where there is none
            else:
                self.table.require_word(place.register, self.slot_offset(place, name), 0)

    def require_factory(self, place: Place) -> None:
        """A defaultdict that has some, of which the guards behind this one say what it is."""
        if place.kind is not defaultdict or place.object.default_factory is None:
            raise UnknownGuard("a defaultdict without a factory")

    def require_table(self, place: Place) -> None:
        """An array that holds the texts, dates or records that it holds now."""
        try:
            self.table.require_same_array(place.register, place.object)
        except LookupError as error:
            raise UnknownGuard(f"an array of {place.object.dtype}") from error

    def require_same_contents(self, place: Place, read: Any, expected: Any) -> None:
        """The very object, of those that nobody can change."""
        if type(place.object) not in UNCHANGING or read(place.object) != expected:
            raise UnknownGuard(f"what a {type(place.object)} holds")
        self.table.require_is(place.register, place.object)

    def require_transform(self, node: ast.expr, name: ast.Name) -> None:
        """The options, of which equal ones are mostly one object, of the class that the guard before this one asks."""
        place = self.places[name.id]
        transform: Any = place.object
        kind: Any = type(transform)
        known = [getattr(kind, name, None) is getattr(Transformed, name) for name in _OF_A_TRANSFORM]
        if not all(known) or place.kind is not kind:
            self.require_present(node, name)
        elif not eval(ast.unparse(node), self.constants, {name.id: transform}):
            raise UnknownGuard(ast.unparse(node))
        else:
            self.table.require_is(self.table.load(place.register, OPTIONS), transform.options)

    def require_type(self, place: Place, kind: type) -> None:
        if not isinstance(place, Holder):
            self.table.require_type(place.register, kind)
            place.kind = kind
        elif kind is not place.kind:
            raise UnknownGuard(f"a partial that is a {kind}")

    def require_size(self, node: ast.expr, size: int) -> None:
        match node:
            case ast.Call(func=ast.Name(id="wrapped_functions"), args=[ast.Name(id=name)]):
                if size != 1 or not isinstance(self.places[name].object, Transformed):
                    raise UnknownGuard("the functions of a transform")
            case _:
                place = self.place(node)
                if place.kind not in _SIZED:
                    raise UnknownGuard(f"the length of {place.kind}")
                self.table.require_word(place.register, layout.SIZE, size)
