"""Objects whose operators and properties are converted: Python itself calls these, so that no call is intercepted.

While a trace is in progress an object that it makes is of a *twin* of its class: a subclass with the same layout, in
which properties and operator methods are converted. When the trace ends it is of its own class again.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from srcgrad.tracing.built_on import IN_C, bare, is_bare_first
from srcgrad.tracing.conversion.convert import is_straight, is_user_function
from srcgrad.tracing.conversion.sources import Unconvertible
from srcgrad.tracing.descriptors import is_descriptor
from srcgrad.tracing.members import calls_nothing
from srcgrad.tracing.purity import METACLASSES, is_generated, makes_plain_objects
from srcgrad.tracing.pytree import TreeDef, is_registered
from srcgrad.tracing.trace import CURRENT
from srcgrad.tracing.tracer import Tracer

CALLED: Final = frozenset(
    f"__{name}__"
    for name in ("init", "new", "post_init", "call", "del", "init_subclass", "class_getitem", "set_name", "hash")
)
"""Methods with double underscores that are intercepted where they are called, or are no operators."""
ACCESS: Final = frozenset(f"__{name}__" for name in ("getattribute", "setattr", "delattr"))
"""Methods that run whenever an attribute is read or assigned, by srcgrad too; not where none is found."""
TWINS: Final[dict[type, tuple[tuple[Any, ...], type | None]]] = {}
"""The twin of a class, and the members of which it was made."""
KEPT: Final = 256
"""How many classes are remembered."""


def original(cls: type) -> type:
    """The user's class of a twin; any other class itself."""
    found: type = vars(cls).get("__srcgrad_original__", cls)
    return found


def originals(classes: Any) -> Any:
    """The user's classes of those that ``isinstance`` is given: objects of a twin's subclass are not of the twin."""
    if isinstance(classes, tuple):
        return tuple(map(originals, classes))
    return original(classes) if isinstance(classes, type) else classes


def adopt(instance: Any) -> None:
    """Make an object one of its class's twin until the trace in progress ends."""
    trace, cls = CURRENT.get(), type(instance)
    if trace is None or not trace.converting or cls.__module__ in ("builtins", "numpy"):
        return
    if not makes_plain_objects(type(cls)):
        return
    if "__srcgrad_original__" in vars(cls) or is_registered(cls):
        return
    twin = trace.twins.get(cls) or twin_of(cls)
    if twin is None:
        return
    try:
        object.__setattr__(instance, "__class__", twin)
    except TypeError:  # it has a layout of its own
        return
    trace.adopted.append(instance)


def adopt_records(made: Any) -> Any:
    """What was built of a structure, with its dataclasses and named tuples adopted."""
    if isinstance(made, (list, tuple, dict)):
        for item in made.values() if isinstance(made, dict) else made:
            adopt_records(item)
    elif dataclasses.is_dataclass(made):
        for field in dataclasses.fields(made):
            adopt_records(getattr(made, field.name, None))
    if dataclasses.is_dataclass(made) or hasattr(type(made), "_fields"):
        adopt(made)
    return made


def rebuilt(tree: TreeDef | None, leaves: Sequence[Any]) -> Any:
    """What a loop carries or runs over, of its parts: another object than the program's own, which ``is`` must know."""
    for leaf in leaves:
        if isinstance(leaf, Tracer):
            leaf.rebuilt = True
    return leaves[0] if tree is None else adopt_records(tree.unflatten(list(leaves)))


class Above:
    """What ``super(cls, instance)`` is where methods of the classes behind have copies that read what the trace has."""

    def __init__(self, cls: type, instance: Any, members: Mapping[tuple[type, str], Any]) -> None:
        kind = instance if isinstance(instance, type) else type(instance)
        order = kind.__mro__
        put = object.__setattr__
        put(self, "_classes", order[order.index(original(cls)) + 1 :])
        put(self, "_held", (None, kind) if kind is instance else (instance, kind))
        put(self, "_members", members)

    def __getattribute__(self, name: str) -> Any:
        known = functools.partial(object.__getattribute__, self)
        instance, kind = known("_held")
        for cls in known("_classes"):
            if name in vars(cls):
                member = known("_members").get((cls, name), vars(cls)[name])
                if isinstance(member, property):
                    member = converted(member) or member
                bind = getattr(type(member), "__get__", None)
                return member if bind is None else bind(member, instance, kind)
        raise AttributeError(f"'super' object has no attribute {name!r}")


def above(function: Any, *given: Any, **keywords: Any) -> Any:
    """``super(cls, instance)`` in a method, or another function of that name."""
    trace = CURRENT.get()
    if function is not super or trace is None or not trace.members or len(given) < 2:
        return function(*given, **keywords)
    return Above(given[0], given[1], trace.members)


def give_back(instances: list[Any]) -> None:
    """Let objects be of their own classes again."""
    for instance in instances:
        object.__setattr__(instance, "__class__", original(type(instance)))
    instances.clear()


def twin_of(cls: type) -> type | None:
    """The twin of a class; None where it needs none."""
    members: dict[str, Any] = {}
    for base in reversed(cls.__mro__[:-1]):
        members.update((name, member) for name, member in vars(base).items() if is_implicit(name, member))
    found = tuple(members.values())
    known = TWINS.get(cls)
    if len(TWINS) > KEPT:
        TWINS.clear()
    if known is None or len(known[0]) != len(found) or any(a is not b for a, b in zip(known[0], found, strict=True)):
        known = TWINS[cls] = found, made_twin(cls, members)
    return known[1]


def twin_with(cls: type, members: dict[str, Any]) -> type:
    """A twin for one trace, with some of the members replaced: these read what the trace has in place of the user's."""
    own = {name: (converted(x) if is_implicit(name, x) else None) or x for name, x in members.items()}

    def make(twin: Any, *args: Any, **kwargs: Any) -> Any:
        instance = bare(twin)
        trace = CURRENT.get()
        if trace is not None:  # it is the user's class's when the trace ends
            trace.adopted.append(instance)
        return instance

    names = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")}
    marks = {"__slots__": (), "__srcgrad_original__": cls, "__hash__": cls.__hash__, "__new__": make}
    return subclass(cls, twin_of(cls) or cls, {**names, **frozen(cls), **own, **marks})


def may_have_twin(cls: type) -> bool:
    """Whether a class can be replaced by a twin wherever it makes objects."""
    plain = makes_plain_objects(type(cls)) and is_bare_first(cls)
    return plain and not has_access(cls) and not is_registered(cls) and not is_always_told(cls)


def has_access(cls: type) -> bool:
    """Whether code of the user's runs whenever an attribute is read or assigned: what Python calls is not converted."""
    found = [vars(base)[name] for base in cls.__mro__[:-1] for name in ACCESS.intersection(vars(base))]
    return not all(is_generated(member) or type(member) in IN_C for member in found)


def is_implicit(name: str, member: Any) -> bool:
    """Whether Python calls this by itself: a property or another descriptor, or the method of an operator."""
    if isinstance(member, property) or is_descriptor(member):
        return True
    return name[:2] == "__" == name[-2:] and name not in CALLED and isinstance(member, types.FunctionType)


def made_twin(cls: type, members: dict[str, Any]) -> type | None:
    special = ACCESS.intersection(members)
    if special and not all(is_generated(members[name]) for name in special):
        return None
    namespace = {name: twin for name, member in members.items() if (twin := converted(member)) is not None}
    if not namespace or is_always_told(cls):
        return None
    own: dict[str, Any] = {"__slots__": (), "__srcgrad_original__": cls, "__hash__": cls.__hash__}
    if issubclass(cls, tuple):
        own["_make"] = classmethod(remade)
    names = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")}
    return subclass(cls, cls, {**names, **frozen(cls), **namespace, **own})


def subclass(cls: type, base: type, namespace: dict[str, Any]) -> type:
    """A subclass by the name of a class. Code of the user's that runs where its metaclass makes a class, or where a
    subclass is made, does not: it would note the subclass as one of the user's.
    """
    kind: Any = next(kind for kind in type.mro(type(cls)) if kind in METACLASSES)

    def make(*bases: type) -> type:
        if kind is type(cls):
            made: type = kind(cls.__name__, bases, namespace)
        else:
            made = kind.__new__(type(cls), cls.__name__, bases, namespace)
        return made

    if not notes_subclasses(base):
        return make(base)
    for untold in (Untold, UntoldWithDict):
        made = make(untold, base)
        try:
            type.__dict__["__bases__"].__set__(made, (base,))
        except TypeError:  # the layouts differ
            continue
        return made
    raise TypeError(f"no subclass of {base.__name__} can be made without telling it")


class Untold:
    """Stands before the base of a class while that is made, so that the base is not told."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        pass


class UntoldWithDict:
    """The same for classes of which objects have attributes: what stands first is to have their layout."""

    def __init_subclass__(cls) -> None:
        pass


def is_always_told(cls: type) -> bool:
    """Whether a class notes its subclasses, and has a layout with which none is made without telling it."""
    if not notes_subclasses(cls):
        return False
    try:
        subclass(cls, cls, {"__slots__": ()})
    except TypeError:
        return True
    return False


def frozen(cls: type) -> dict[str, Any]:
    """What keeps objects of a frozen dataclass's twin from having more attributes, which Python asks of the class."""
    if not (dataclasses.is_dataclass(cls) and is_generated(vars(cls).get("__setattr__"))):
        return {}

    def put(self: Any, name: str, value: Any) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    return {"__setattr__": put}


def notes_subclasses(cls: type) -> bool:
    """Whether code of the user's runs where a subclass is made, which a twin would be for it."""
    run = getattr(cls.__init_subclass__, "__func__", None)
    return run is not None and run is not getattr(Protocol.__init_subclass__, "__func__", None)


def remade(cls: Any, items: Any) -> Any:
    """``_make`` of the twin of a named tuple, by which ``_replace`` makes another one."""
    instance = original(cls)._make(items)  # type: ignore[attr-defined]
    adopt(instance)
    return instance


def converted(member: Any) -> Any:
    """The converted twin of a property, descriptor or method; None if it needs none or has none."""
    if isinstance(member, property):
        given: list[Any] = [member.fget, member.fset, member.fdel]
        get, put, delete = parts = [converted(part) or part for part in given]
        return None if parts == given else property(get, put, delete, member.__doc__)
    if is_descriptor(member):
        return described(member)
    if not is_user_function(member) or is_generated(member) or is_plain(member.__code__):
        return None
    from srcgrad.tracing.conversion.convert import convert

    try:
        return convert(member)
    except Unconvertible:
        return None


def described(member: Any) -> Any:
    """A descriptor that stands for one of the user's, whose methods are converted; None if they need not be."""
    kind = type(member)
    methods = [name for name in ("__get__", "__set__", "__delete__") if hasattr(kind, name)]
    if all(converted(getattr(kind, name)) is None for name in methods):
        return None

    def run(name: str, *given: Any) -> Any:
        method = getattr(kind, name)
        return (converted(method) or method)(member, *given)

    def get(_: Any, held: Any, cls: Any = None) -> Any:
        return run("__get__", held, None if cls is None else original(cls))

    names: dict[str, Any] = {name: lambda _, *given, name=name: run(name, *given) for name in methods}
    return type("Described", (), {**names, "__get__": get} if "__get__" in names else names)()


def is_plain(code: types.CodeType) -> bool:
    """Whether code has no jumps and calls nothing, so that it runs as it is."""
    return is_straight(code) and calls_nothing(code)
