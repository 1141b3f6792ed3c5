"""A copy of a function with every hidden input replaced, and of the helpers through which it reaches one."""

from __future__ import annotations

import functools
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.boundary import Changed
from srcgrad.tracing.asked_signatures import with_annotations
from srcgrad.tracing.built_on import bare_like, built_on, filled, items_in, own_attributes, viewed
from srcgrad.tracing.conversion.classes import adopt, twin_with
from srcgrad.tracing.conversion.state import SHARED
from srcgrad.tracing.held import held_by, hold, holding, is_slotted
from srcgrad.tracing.jitted import made_of, plain_of
from srcgrad.tracing.kept_results import Kept, note_owner
from srcgrad.tracing.on_demand import is_made
from srcgrad.tracing.rebound import watch_rebound
from srcgrad.tracing.refusing import Untold
from srcgrad.tracing.storage import ASK, Classed, Watched
from srcgrad.tracing.tables import copied_table
from srcgrad.tracing.trace import CURRENT

__all__ = ["Edge", "Hidden", "Node", "Plan", "rebuild", "wrapped_functions"]


class Hidden(NamedTuple):
    """A value that is read at each call: `path` says where ("global W", "closure alpha of helper"), `kind` what it is.

    `kind` is "array", "float", "complex", "numpy scalar", "generator", "tape" (of a pullback), "floats" (those of a
    container, as an array) or "journal": it is only written.
    """

    path: str
    kind: str


class Edge(NamedTuple):
    """One value read from outside: from a namespace ("global"), or from the node `holder`.

    `source` is "global", one of `PARTS`, "result", "method result" or, for all floats of a container, "items"; `key` is
    a name, an index, or how these are packed. At most one of `hidden` (an index into the hidden inputs) and `node` is
    set; guards have neither.
    """

    source: str
    holder: int
    key: Any
    hidden: int | None
    node: int | None


@dataclass
class Node:
    """A function, partial, transformed function or module that is reached.

    `edges` are what it reads, `cells` the places of some of them in its closure; `namespace` is that of a function or
    module.
    """

    kind: str
    label: str
    namespace: int = -1
    edges: list[int] = field(default_factory=list)
    cells: list[tuple[int, int]] = field(default_factory=list)
    kept: bool = False
    """Of a function with a cache: whether a trace has a `Kept` for it."""
    unsteady: bool = False
    """And whether the function reads values from outside, so that its results are not of what these are now."""


@dataclass
class Plan:
    """What `analyze` found: nodes (the first is the function itself), the edges in the order of discovery, the owners
    of the namespaces.
    """

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    namespaces: list[int] = field(default_factory=list)
    stores: bool = False
    """Whether it is known how the attributes of objects are stored, which only few functions do."""
    assigned: set[str] = field(default_factory=set)
    """The attributes that any code assigns, maybe of a class."""
    rebinds: bool = False
    """Whether code may assign globals, of which a trace then has copies."""
    rebound: dict[tuple[int, str], str] = field(default_factory=dict)
    """Those that it assigns, by namespace and name, and what is said of it."""
    rebinders: set[int] = field(default_factory=set)
    """The functions that read or assign one."""

    def dirty(self) -> list[bool]:
        """For each node, whether it reaches a hidden input."""
        found = [
            node.kind in COPIED or node.kept or any(self.edges[edge].hidden is not None for edge in node.edges)
            for node in self.nodes
        ]
        for index in self.rebinders:
            found[index] = True
        changed = True
        while changed:
            changed = False
            for index, node in enumerate(self.nodes):
                if not found[index] and any(self._leads(edge, found) for edge in node.edges):
                    found[index] = changed = True
        return found

    def _leads(self, edge: int, found: list[bool]) -> bool:
        node = self.edges[edge].node
        return node is not None and found[node]


COLLECTIONS: Final = (OrderedDict, defaultdict, Counter, deque)
"""Containers of the standard library's that hold what a list or a dict holds."""
INNER: Final = ("function", "wrapped", "pyfunc", "jitted", "viewed")
"""How a node leads to what alone is inside of it."""
COPIED: Final = ("container", "object", "table")
"""The kinds of nodes of which a trace gets a copy in any case: it must not change the user's own."""


def in_base(cls: type, key: tuple[int, str]) -> Any:
    """What a class has under a name in one of its bases: ``key`` is the base's place in the method resolution order,
    and the name.
    """
    number, name = key
    return vars(cls.__mro__[number])[name]


def member_function(cls: type, key: tuple[int, str]) -> Any:
    """The function of a member of a class."""
    member = in_base(cls, key)
    for part in ("fget", "__func__", "func", "__wrapped__"):
        if not isinstance(member, types.FunctionType) and hasattr(member, part):
            member = getattr(member, part)
    return member


def transform_in(member: Any) -> Any:
    """What a static or class method holds, or the member itself: a transformed function, perhaps."""
    return member.__func__ if isinstance(member, (classmethod, staticmethod)) else member


def is_first(cls: type, number: int, name: str) -> bool:
    """Whether objects of a class find a name in its base of that number."""
    return not any(name in vars(base) for base in cls.__mro__[:number])


def wrapped_again(member: Any, function: Any, part: str) -> Any:
    """A function as the member of a class that it is a copy of, or the part of a property."""
    if isinstance(member, property):
        parts = {name: getattr(member, name) for name in ("fget", "fset", "fdel")}
        return property(**{**parts, (part if part in parts else "fget"): function}, doc=member.__doc__)
    if isinstance(member, (classmethod, staticmethod, functools.cached_property)):
        return type(member)(function)
    return function


def _namespace(owner: Any) -> dict[str, Any]:
    found: dict[str, Any] = owner.__globals__ if isinstance(owner, types.FunctionType) else vars(owner)
    return found


def attribute_at(holder: Any, name: str) -> Any:
    return (holding(holder) if built_on(type(holder)) is None else vars(holder))[name]


PARTS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "cell": lambda holder, number: holder.__closure__[number].cell_contents,
    "import": lambda _, name: sys.modules[name],
    "default": lambda holder, number: holder.__defaults__[number],
    "keyword default": lambda holder, name: holder.__kwdefaults__[name],
    "function": lambda holder, _: holder.func,
    "function attribute": lambda holder, name: vars(holder)[name],
    "argument": lambda holder, number: holder.args[number],
    "keyword": lambda holder, name: holder.keywords[name],
    "item": lambda holder, key: items_in(holder)[key],
    "attribute": attribute_at,
    "class attribute": lambda holder, key: in_base(holder if isinstance(holder, type) else type(holder), key),
    "class": lambda holder, _: type(holder),
    "func": lambda holder, _: holder.__func__,
    "registered": lambda holder, kind: holder.registry[kind],
    "cached": lambda holder, _: holder.__wrapped__,
    "question": lambda _, question: question.of(),
    "factory": lambda holder, _: holder.default_factory,
    "pyfunc": lambda holder, _: holder.pyfunc,
    "viewed": lambda holder, _: viewed(holder),
    "jitted": lambda holder, _: made_of(holder),
    "self": lambda holder, _: holder.__self__,
    "argument class": lambda _, cls: cls,
    "key": lambda _, cls: cls,
    "dispatcher": lambda holder, key: in_base(holder, key).dispatcher,
    "descriptor": lambda holder, key: type(in_base(holder, key)),
    "described": lambda holder, key: held_by(in_base(holder, key[:2]))[key[2]],
    "member": member_function,
    "field": lambda cls, name: cls.__dataclass_fields__[name].default_factory,
    "fset": lambda cls, key: in_base(cls, key).fset,
    "fdel": lambda cls, key: in_base(cls, key).fdel,
    "transformed member": lambda holder, key: transform_in(in_base(holder, key)),
    "wrapped": lambda holder, number: wrapped_functions(holder)[number],
}
"""By the source of an edge, what is there of the object that it leads away from, and of its key."""


def read_edge(plan: Plan, edge: Edge, objects: list[Any]) -> Any:
    """The value at `edge`, given the objects found so far for the nodes."""
    if edge.source == "global":
        owner = objects[plan.namespaces[edge.holder]]
        if not isinstance(owner, types.FunctionType) and is_made(owner, edge.key):
            return getattr(owner, edge.key)
        return _namespace(owner)[edge.key]
    holder = objects[edge.holder]
    if edge.source == "result":
        return edge.key.of(holder, *[objects[node] for node in edge.key.nodes])
    if edge.source == "method result":
        number, name, result = edge.key
        return result.of(in_base(type(holder), (number, name)), holder, *[objects[node] for node in result.nodes])
    return PARTS[edge.source](holder, edge.key)


def copied_set(original: set[Any]) -> set[Any]:
    """A copy that has the elements in the same order, which depends on how both were made.

    Raises:
        ValueError: none was found.
    """
    order = list(original)
    for copy in (original.copy(), set(order)):  # tables of the same size; elements that came one after the other
        if list(copy) == order:
            return copy
    raise ValueError("a copy of a set has another order")


def wrapped_functions(transformed: Any) -> tuple[Any, ...]:
    """The functions inside a transformed function: one, or several where it carries rules of its own."""
    wrapped = transformed.__srcgrad_wrapped__
    return wrapped if isinstance(wrapped, tuple) else (wrapped,)


def reached(plan: Plan, function: Any) -> list[Any]:
    """The object of each node, beginning with the function itself."""
    objects: list[Any] = [None] * len(plan.nodes)
    objects[0] = function
    for edge in plan.edges:
        if edge.node is not None and objects[edge.node] is None:
            objects[edge.node] = read_edge(plan, edge, objects)
    return objects


BUILTINS: Final = "__builtins__"
"""Where the globals of a function say which built-ins it has, that of ``import`` among them."""


def importing(original: Callable[..., Any], copies: dict[Any, Any]) -> Callable[..., Any]:
    """What ``import`` calls in a copy of a function: ``copies`` of modules stand for these."""

    def find(name: str, names: Any = None, local: Any = None, of: Any = (), level: int = 0) -> Any:
        found = original(name, names, local, of, level)
        return copies.get(found, found)

    return find


class _Copier:
    def __init__(self, plan: Plan, function: Any, replacements: Sequence[object]) -> None:
        self.plan = plan
        self.replacements = replacements
        self.dirty = plan.dirty()
        self.objects = reached(plan, function)
        self.copies: dict[int, Any] = {}
        changed = {edge.holder for edge in plan.edges if edge.source == "global" and self._replaced(edge)}
        importers = {
            plan.nodes[edge.holder].namespace: self.objects[edge.holder].__builtins__
            for edge in plan.edges
            if edge.source == "import" and self._replaced(edge)
        }
        originals = [_namespace(self.objects[owner]) for owner in plan.namespaces]
        changed |= importers.keys() | {namespace for namespace, _ in plan.rebound}
        self.globals = [dict(names) if index in changed else names for index, names in enumerate(originals)]
        self.modules: dict[Any, types.ModuleType] = {}
        """By the modules themselves, the copies of those that something is replaced in."""
        for index, builtins in importers.items():
            find = importing(builtins["__import__"], self.modules)
            self.globals[index][BUILTINS] = {**builtins, "__import__": find}

    def run(self) -> Any:
        if not self.dirty[0]:
            return self.objects[0]
        # Functions and modules first, empty, so that recursive ones can be pointed at, then classes, whose members they
        # are; what is immutable is then built on demand.
        for index, node in enumerate(self.plan.nodes):
            if self.dirty[index] and node.kind == "function":
                self.copies[index] = self._shell(self.objects[index], node)
            elif self.dirty[index] and node.kind == "module":
                copy = self.copies[index] = types.ModuleType(node.label)
                self.modules[self.objects[index]] = copy
        for index, node in enumerate(self.plan.nodes):
            if self.dirty[index] and node.kind == "class":
                self.copies[index] = self._twin(self.objects[index], node)
        for index, node in enumerate(self.plan.nodes):
            if self.dirty[index] and node.kind == "class":  # what it holds may be objects of other twins
                self._fill_twin(self.copies[index], self.objects[index], node)
        for edge in self.plan.edges:
            if edge.source == "global" and self._replaced(edge):
                self.globals[edge.holder][edge.key] = self._value(edge)
        watch_rebound(self.plan, self.globals)
        for index, node in enumerate(self.plan.nodes):
            if self.dirty[index] and node.kind == "function":
                self._fill(self.copies[index], node, index)
            elif self.dirty[index] and node.kind == "module":
                vars(self.copies[index]).update(self.globals[node.namespace])
                if type(self.objects[index]) is not types.ModuleType:
                    self.copies[index].__getattr__ = functools.partial(getattr, self.objects[index])
        return self._copy(0)

    def _replaced(self, edge: Edge) -> bool:
        return edge.hidden is not None or (edge.node is not None and self.dirty[edge.node])

    def _value(self, edge: Edge) -> Any:
        if edge.hidden is not None:
            return self.replacements[edge.hidden]
        if edge.node is not None and self.dirty[edge.node]:
            return self._copy(edge.node)
        return read_edge(self.plan, edge, self.objects)

    def _replaced_cells(self, original: Any, node: Node) -> list[tuple[int, Edge]]:
        """The class that ``super()`` begins behind stays what it is, a base of its twin: `conversion.classes.above`."""
        found = [(cell, self.plan.edges[edge]) for cell, edge in node.cells]
        names = original.__code__.co_freevars
        return [(cell, edge) for cell, edge in found if self._replaced(edge) and names[cell] != "__class__"]

    def _shell(self, original: Any, node: Node) -> types.FunctionType:
        replaced = {cell for cell, edge in self._replaced_cells(original, node)}
        closure = original.__closure__
        if closure is not None:
            closure = tuple(types.CellType() if index in replaced else cell for index, cell in enumerate(closure))
        copy = types.FunctionType(original.__code__, self.globals[node.namespace], original.__name__, None, closure)
        copy.__qualname__, copy.__doc__, copy.__module__ = original.__qualname__, original.__doc__, original.__module__
        copy.__dict__.update(original.__dict__)
        with_annotations(copy, original)
        return copy

    def _twin(self, cls: type, node: Node) -> type:
        """The class with the methods that lead to hidden inputs replaced, for the trace in progress; what it has for
        all its objects is not there yet.
        """
        members: dict[str, Any] = {}
        trace = CURRENT.get()
        edges = [self.plan.edges[edge] for edge in node.edges]
        found = [edge for edge in edges if edge.source in ("member", "transformed member", "fset", "fdel")]
        made: dict[Any, Any] = {}
        for edge in sorted(found, key=lambda edge: edge.key[0]):
            number, name = edge.key
            if edge.node is None or not self.dirty[edge.node]:
                continue
            member = made.get(edge.key, vars(cls.__mro__[number])[name])
            copy = made[edge.key] = wrapped_again(member, self._copy(edge.node), edge.source)
            if trace is not None:
                trace.members[cls.__mro__[number], name] = copy
            if is_first(cls, number, name):
                members[name] = copy
        twin = twin_with(cls, members)
        if trace is not None:
            trace.twins[cls] = twin
        return twin

    def _fill_twin(self, twin: type, cls: type, node: Node) -> None:
        trace, held = CURRENT.get(), []
        for edge in map(self.plan.edges.__getitem__, node.edges):
            if edge.source == "class attribute":
                number, name = edge.key
                value = self._value(edge)
                held.append(value)
                if trace is not None:  # which ``super()`` finds
                    trace.members[cls.__mro__[number], name] = value
                if is_first(cls, number, name):
                    type.__setattr__(twin, name, value)
        type.__setattr__(twin, SHARED, tuple(held))
        if trace is not None and self.plan.assigned:
            trace.classes.append(Classed.of(twin))

    def _fill(self, copy: types.FunctionType, node: Node, index: int) -> None:
        original = self.objects[index]
        closure = copy.__closure__ or ()
        for cell, edge in self._replaced_cells(original, node):
            closure[cell].cell_contents = self._value(edge)
        copy.__defaults__ = original.__defaults__ and tuple(
            self._held(index, "default", original.__defaults__, node).values()
        )
        copy.__dict__.update(self._held(index, "function attribute", original.__dict__, node))
        copy.__kwdefaults__ = original.__kwdefaults__ and self._held(
            index, "keyword default", original.__kwdefaults__, node
        )
        trace = CURRENT.get()
        if trace is not None and self.plan.assigned:
            trace.classes.append(Classed.of(copy))

    def _held(self, index: int, source: str, originals: Any, node: Node) -> dict[Any, Any]:
        """The defaults or arguments that node `index` holds, replaced where they must be."""
        held = dict(originals if isinstance(originals, dict) else enumerate(originals))
        for edge in map(self.plan.edges.__getitem__, node.edges):
            if edge.holder == index and edge.source == source:
                held[edge.key] = self._value(edge)
        return held

    def _items(self, index: int, original: Any, node: Node) -> dict[Any, Any]:
        """The items of a container, replaced where they must be."""
        edges = [self.plan.edges[edge] for edge in node.edges]
        packed = [edge for edge in edges if edge.source == "items"]
        if not packed:
            return self._held(index, "item", original, node)
        items = packed[0].key.unpacked(self._value(packed[0]), original)
        for item in items:
            if type(item) is list:
                watch(item, node.label)
        return dict(zip(original if isinstance(original, dict) else range(len(items)), items, strict=True))

    def _shared(self, index: int, node: Node) -> dict[str, Any]:
        """What an object finds in its class, replaced where it must be: the copy has it as its own."""
        edges = [self.plan.edges[edge] for edge in node.edges]
        found = [edge for edge in edges if edge.source == "class attribute" and self._replaced(edge)]
        return {edge.key[1]: self._value(edge) for edge in found}

    def _owner(self, node: Node, original: Any) -> tuple[Any, ...]:
        """What stores attributes of an object when the program runs, and which of them decide what it is.

        One that is None becomes something else once: the next call has another program.
        """
        edges = [self.plan.edges[edge] for edge in node.edges]
        owner = next((edge for edge in edges if edge.source == "owner"), None)
        if owner is None:
            return () if self.plan.stores else (ASK,)
        read = [edge.key for edge in edges if edge.source == "attribute" and edge.hidden is None]
        return self._value(owner), frozenset(name for name in read if holding(original)[name] is not None)

    def _untold(self, node: Node, original: Any) -> dict[str, Untold]:
        """What stands for the attributes of an object that are assigned and that nothing reads before, as far as is
        known.
        """
        if not self.plan.stores:
            return {}
        edges = [self.plan.edges[edge] for edge in node.edges]
        read = {edge.key for edge in edges if edge.source == "attribute"}
        return {name: Untold(name) for name in (self.plan.assigned - read) & holding(original).keys()}

    def _copy(self, index: int) -> Any:
        if index not in self.copies:
            node, original = self.plan.nodes[index], self.objects[index]
            if node.kind in (*COPIED, "method"):
                return self._copy_object(index, node, original)
            edges = [self.plan.edges[edge] for edge in node.edges]
            inner = [self._value(edge) for edge in edges if edge.source in INNER]
            if node.kind == "partial":
                arguments = self._held(index, "argument", original.args, node).values()
                keywords = self._held(index, "keyword", original.keywords, node)
                self.copies[index] = functools.partial(inner[0], *arguments, **keywords)
            elif node.kind == "vectorized":
                options = {name: getattr(original, name) for name in ("otypes", "excluded", "cache", "signature")}
                self.copies[index] = np.vectorize(inner[0], **options)
            elif node.kind == "cached":
                (held,) = [edge for edge in edges if edge.source == "cached"]
                results = {edge.key: self._value(edge) for edge in edges if edge.source == "result"}
                steady = not node.unsteady and not self._replaced(held)
                self.copies[index] = Kept(original, self._value(held), results, steady)
            elif node.kind == "view":
                self.copies[index] = types.MappingProxyType(inner[0])
            elif node.kind == "jitted":
                self.copies[index] = plain_of(original, inner[0])
            else:
                self.copies[index] = original.__srcgrad_rewrap__(*inner)
        return self.copies[index]

    def _copy_object(self, index: int, node: Node, original: Any) -> Any:
        """A container, object or bound method with its parts replaced; the trace watches for changes of it."""
        if node.kind == "method":
            parts = {self.plan.edges[edge].source: self.plan.edges[edge] for edge in node.edges}
            self.copies[index] = types.MethodType(self._value(parts["func"]), self._value(parts["self"]))
            return self.copies[index]
        if isinstance(original, tuple):
            self.copies[index] = tuple.__new__(type(original), self._items(index, original, node).values())
            adopt(self.copies[index])
            return self.copies[index]
        if node.kind == "table":
            self.copies[index] = copied_table(original, node.label)
            return self.copies[index]
        if node.kind == "object":
            cls: Any = type(original)
            copy = object.__new__(cls) if is_slotted(original) else cls.__new__(cls)
            self.copies[index] = copy
            results = [edge for edge in map(self.plan.edges.__getitem__, node.edges) if edge.source == "method result"]
            note_owner(copy, original, index, {edge.key[2]: self._value(edge) for edge in results})
            if is_slotted(original):
                hold(copy, holding(original))  # which its parts may hold too
                hold(copy, {**self._held(index, "attribute", holding(original), node), **self._untold(node, original)})
                adopt(copy)
                watch(copy, node.label, *self._owner(node, original))
                return copy
            copy.__dict__.update(original.__dict__)
            copy.__dict__.update(self._held(index, "attribute", original.__dict__, node))
            copy.__dict__.update(self._shared(index, node))
            copy.__dict__.update(self._untold(node, original))
            adopt(copy)
            watch(copy.__dict__, node.label, *self._owner(node, original))
            return copy
        if built_on(type(original)) is not None:
            return self._copy_built(index, node, original)
        copied: Any = copied_set(original) if isinstance(original, set) else original.copy()
        self.copies[index] = copied
        if not isinstance(original, set):
            for key, value in self._items(index, original, node).items():
                copied[key] = value
        for edge in map(self.plan.edges.__getitem__, node.edges):
            if edge.source == "factory":
                copied.default_factory = self._value(edge)
        watch(copied, node.label)
        return copied

    def _copy_built(self, index: int, node: Node, original: Any) -> Any:
        """A dict or list of a class of the user's, and the attributes that it has beside its items."""
        copy = self.copies[index] = bare_like(original)  # which its parts may hold too
        attributes = own_attributes(original)
        if attributes is not None:
            attributes = {**self._held(index, "attribute", attributes, node), **self._shared(index, node)}
        filled(copy, original, self._held(index, "item", items_in(original), node), attributes or {})
        adopt(copy)
        watch(copy, node.label)
        if attributes is not None:
            watch(vars(copy), node.label)
        return copy


def watch(copied: Any, label: str, owner: Any = None, guarded: frozenset[str] = frozenset()) -> None:
    """Have the trace in progress note what it changes of a copy of a captured container, or of an object.

    ``owner``: what stores attributes of the user's object, all but those that are ``guarded``.
    """
    trace = CURRENT.get()
    if trace is not None:
        if is_slotted(copied):
            before: Any = holding(copied)
        else:
            items = items_in(copied)
            before = dict(items) if isinstance(items, dict) else list(items)
        trace.watched.append(Watched(copied, before, label, owner, guarded))


def rebuild(plan: Plan, function: Any, replacements: Sequence[object]) -> Any:
    """A copy of `function` whose hidden inputs are `replacements`; what reaches none of them is shared with the
    original.

    Raises:
        Changed: another thread has taken away what was found.
    """
    try:
        copier = _Copier(plan, function, replacements)
        trace = CURRENT.get()
        if plan.assigned and trace is not None:
            kinds = zip(copier.objects, plan.nodes, strict=True)
            owners = [owner for owner, node in kinds if node.kind in ("class", "function")]
            trace.classes += map(Classed.of, owners)
        found = copier.run()
        if trace is not None:
            answers = [edge for edge in plan.edges if edge.source == "question"]
            trace.answers.update({edge.key: copier._value(edge) for edge in answers})
        return found
    except (AttributeError, IndexError, KeyError, ValueError) as error:
        raise Changed("what the function reads changes while it is looked at") from error
