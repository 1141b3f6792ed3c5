"""The variables and containers that a block of statements may change: read, restored, compared and joined."""

from __future__ import annotations

import functools
import operator
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np

from srcgrad.ir.core import Operation, Region, Value, literal, zeros
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.source import internal
from srcgrad.ir.types import BOOL, ArrayType
from srcgrad.tracing.built_on import built_on, items_in, own_attributes
from srcgrad.tracing.conversion.convert import library_file
from srcgrad.tracing.guards import answer
from srcgrad.tracing.hosts import is_logger
from srcgrad.tracing.pytree import TreeDef, flatten
from srcgrad.tracing.refusing import Refusing
from srcgrad.tracing.storage import Rebound
from srcgrad.tracing.trace import CURRENT, Refused, Trace, current_span, current_trace
from srcgrad.tracing.tracer import Tracer, as_tracer, cast_value
from srcgrad.tracing.unasked import attribute


class MustRetrace(Refused):
    """One whose meaning a trace without conversion would miss too: the function is traced at each call."""


SHARED: Final = "__srcgrad_shared__"
"""In the class of objects of a trace: the copies of what the user's class has for all of them."""


class Passing(BaseException):
    """What goes through the user's own handlers."""


class Inside(Passing):
    """Something may fail in a block inside the body of a ``try``, depending on a traced value."""

    def __init__(self, attempt: Any) -> None:
        super().__init__()
        self.attempt = attempt


class Raised(Passing):
    """A ``raise`` was reached in a block that runs on a traced condition."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class Marker:
    """What stands for the value of a variable that has none."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


UNBOUND: Final = Marker("unbound")
"""A variable that is not bound."""
UNSET: Final = Marker("unset")
"""The result of a function that has not returned yet; a flag says so wherever it matters."""


class Mistaken(Refused):
    """A copy stands for one of several containers, at a traced place, and may not: the trace begins again without."""


class Undefined(Refusing):
    """The value of a variable that has one on one path only: every use of it is refused."""

    __srcgrad_unfinished__ = True

    def __init__(self, name: str, why: str) -> None:
        object.__setattr__(self, "_refusal", (name, why))

    def refuse(self) -> NoReturn:
        name, why = object.__getattribute__(self, "_refusal")
        raise Refused(f"{shown(name)} {why}", hint="set it to values of one kind on all paths")


def require_defined(x: Any) -> None:
    """Refuse what is one kind of object or another, depending on a traced condition."""
    if isinstance(x, Refusing):
        x.refuse()
    if may_be_none(x):
        raise none_or_not(x)
    if isinstance(x, Tracer) and x.storage.pending is not None:
        x.read()  # which checks that the variable is bound


def may_be_none(x: Any) -> bool:
    """Whether a traced condition decides if this is None."""
    return isinstance(x, Tracer) and x.storage.pending is not None and x.storage.pending.none


def none_or_not(x: Tracer) -> Refused:
    assert x.storage.pending is not None
    return Refused(
        f"{shown(x.storage.pending.name)} is {described_kind(x)} or None, depending on a traced condition",
        hint="ask `is None` first, or begin with a number",
    )


def read(variable: Callable[[], Any]) -> Any:
    """A variable's value, or `UNBOUND`."""
    try:
        return variable()
    except NameError:
        return UNBOUND


def unknown(x: Any) -> bool:
    """Whether this is traced and its number not known, and not a question that the path in progress answers."""
    if not isinstance(x, Tracer):
        if type(x) is list and x and isinstance(x[0], Undefined):
            raise Refused("whether a list is empty is asked in a loop that assigns its items")
        return False
    if may_be_none(x):
        return True
    if x.number() is not None:
        return False
    return x.dtype.kind not in "biu" or x.size != 1 or answer(x, "a condition") is None


def undecided(test: Any) -> bool:
    """`unknown` of a test, of which only its truth is asked: the path in progress answers this of a float too."""
    if not unknown(test):
        return False
    return may_be_none(test) or test.dtype.kind in "biu" or test.size != 1 or answer(test, "bool()") is None


# --- containers -----------------------------------------------------------------------------


def contents(container: Any) -> tuple[Any, list[Any]]:
    """What makes up a container's structure, and its values."""
    if type(container) is dict:
        return tuple(container), list(container.values())
    if type(container) is list:
        return len(container), container.copy()
    if isinstance(container, (dict, list)):
        container = items_in(container)
    if isinstance(container, dict):
        return tuple(container), list(container.values())
    if isinstance(container, (set, frozenset)):
        return frozenset(container), []
    if isinstance(container, Slots):
        held = tuple(name for name in container.names if hasattr(container.holder, name))
        return held, [getattr(container.holder, name) for name in held]
    if isinstance(container, Rebound):
        bound = container.bound()
        return tuple(bound), list(bound.values())
    if isinstance(container, types.CellType):
        try:
            return True, [container.cell_contents]
        except ValueError:
            return False, []
    return len(container), list(container)


def refill(container: Any, structure: Any, values: Sequence[Any]) -> None:
    """Give a container this structure and these values."""
    if isinstance(container, dict):
        base: Any = OrderedDict if isinstance(container, OrderedDict) else dict  # a Counter's update adds
        base.clear(container)
        for key, value in zip(structure, values, strict=True):
            base.__setitem__(container, key, value)
    elif isinstance(container, set):
        container.clear()
        container.update(structure)
    elif isinstance(container, deque):
        container.clear()
        container.extend(values)
    elif isinstance(container, Slots):
        for name in container.names:
            if hasattr(container.holder, name) and name not in structure:
                object.__delattr__(container.holder, name)
        for name, value in zip(structure, values, strict=True):
            object.__setattr__(container.holder, name, value)
    elif isinstance(container, Rebound):
        container.bind(structure, values)
    elif isinstance(container, types.CellType):
        if structure:
            container.cell_contents = values[0]
        else:
            del container.cell_contents
    else:
        list.__setitem__(container, slice(None), values)


class Slots:
    """The attributes that an object has in slots."""

    def __init__(self, holder: Any, names: list[str]) -> None:
        self.holder, self.names = holder, names


_SLOTS: Final[weakref.WeakKeyDictionary[type, list[str]]] = weakref.WeakKeyDictionary()
"""What is known of classes: guards ask at each call."""


def slots_of(cls: type) -> list[str]:
    """The attributes in slots of a class of the user's."""
    found = _SLOTS.get(cls)
    if found is None:
        found = _SLOTS[cls] = found_slots(cls)
    return found


def found_slots(cls: type) -> list[str]:
    found: list[str] = []
    for base in cls.__mro__[:-1]:
        members = [name for name, member in vars(base).items() if isinstance(member, types.MemberDescriptorType)]
        if "__slots__" in vars(base) and base.__module__.partition(".")[0] not in ("builtins", "numpy", "srcgrad"):
            found += members
    return found


def reachable(values: Sequence[Any], kept: Container[int] = (), iterators: bool = False) -> list[Any]:
    """The lists, dicts, sets, attributes of objects and variables of closures that values lead to, each once.

    ``kept``: what is not looked into; ``iterators``: whether there may be iterators, which are not looked into either.

    Raises:
        Refused: an iterator is among them, whose place nobody can restore.
    """
    found: dict[int, Any] = {}
    waiting = list(values)
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, (Tracer, np.ndarray, np.generic, str, int, float, complex, bytes)) or value is None:
            continue
        if isinstance(value, type):
            waiting += vars(value).get(SHARED, ())
            continue
        if isinstance(value, (types.ModuleType, Undefined, Marker)) or id(value) in seen or is_logger(value):
            continue
        if id(value) in kept:
            continue
        seen.add(id(value))
        if isinstance(value, types.FunctionType):
            if value.__closure__ is not None and not library(value.__code__):
                for cell in value.__closure__:
                    if id(cell) not in found:
                        found[id(cell)] = cell
                        waiting += contents(cell)[1]
                waiting += value.__defaults__ or ()
            continue
        if isinstance(value, Iterator) and not isinstance(value, Undefined):
            if iterators:
                continue
            raise Refused(f"a block on a traced condition uses a {type(value).__name__}, which moves on as it is read")
        if isinstance(value, functools.partial):
            waiting += [value.func, *value.args, *value.keywords.values()]
            continue
        if isinstance(value, (list, dict, set, deque)):
            found[id(value)] = value
            waiting += contents(value)[1] if isinstance(value, (dict, list)) else value
            own = own_attributes(value) if built_on(type(value)) is not None else None
            if own is not None:
                waiting.append(own)
        elif isinstance(value, (tuple, frozenset)):
            waiting += value
        elif isinstance(value, types.MethodType):
            waiting += [value.__self__, value.__func__]
        else:
            attributes = attribute(value, "__dict__")
            waiting += vars(type(value)).get(SHARED, ())
            if type(attributes) is dict:
                waiting.append(attributes)
            names = slots_of(type(value))
            if names:
                found[id(value)] = Slots(value, names)
                waiting += contents(found[id(value)])[1]
    return list(found.values())


def rebound_in(trace: Trace | None) -> list[Rebound]:
    """The globals that code may assign in a trace, or in those around it."""
    found: list[Rebound] = []
    while trace is not None:
        found += trace.rebound
        trace = trace.parent
    return found


def library(code: types.CodeType) -> bool:
    """Whether this is code of a library or of srcgrad itself, which keeps nothing of a program's."""
    return internal(code) or library_file(code.co_filename)


class Snapshot:
    """The variables and the containers' contents at one moment."""

    __slots__ = ("__weakref__", "elements", "structures", "variables")

    def __init__(
        self, variables: tuple[Any, ...], structures: tuple[Any, ...], elements: tuple[tuple[Any, ...], ...]
    ) -> None:
        self.variables, self.structures, self.elements = variables, structures, elements
        current_trace().snapshots.add(self)

    def groups(self) -> list[tuple[Any, ...]]:
        return [self.variables, *self.elements]

    def cells(self) -> list[Any]:
        return [*self.variables, *(element for held in self.elements for element in held)]


class State:
    """What a block may change: its variables, and the containers that it can reach through what it reads."""

    def __init__(
        self, get: Callable[[], tuple[Any, ...]], put: Callable[[tuple[Any, ...]], None], names: tuple[str, ...],
        visible: Callable[[], tuple[Any, ...]],
    ) -> None:  # fmt: skip
        self.get, self.put, self.names = get, put, names
        read, rebound = visible(), rebound_in(current_trace())
        held = [value for globals_ in rebound for value in globals_.bound().values()]
        self.containers = [*reachable([*get(), *read, *held]), *rebound]
        self.arrays = [weakref.ref(x.storage) if isinstance(x, Tracer) and not x.scalar else None for x in read]
        """The memory of the arrays among what it only reads."""
        current_trace().states.add(self)

    def capture(self) -> Snapshot:
        held = [contents(container) for container in self.containers]
        return Snapshot(
            self.get(), tuple(structure for structure, _ in held), tuple(tuple(values) for _, values in held)
        )

    def changed(self, snapshot: Snapshot) -> bool:
        """Whether anything is not as it was."""
        now = self.capture()
        return now.structures != snapshot.structures or not all(map(operator.is_, now.cells(), snapshot.cells()))

    def holds(self, snapshot: Snapshot) -> bool:
        """Whether the containers hold what they did then."""
        now = [contents(container) for container in self.containers]
        return snapshot.structures == tuple(structure for structure, _ in now) and all(
            all(map(operator.is_, held, then)) for (_, held), then in zip(now, snapshot.elements, strict=True)
        )

    def restore(self, snapshot: Snapshot) -> None:
        self.put(snapshot.variables)
        for container, structure, values in zip(self.containers, snapshot.structures, snapshot.elements, strict=True):
            now, held = contents(container)
            if now != structure or not all(map(operator.is_, held, values)):
                refill(container, structure, values)

    def rebuilt(self, template: Snapshot, cells: Sequence[Any]) -> Snapshot:
        """A snapshot of the template's structure with other values."""
        values = iter(cells)
        variables = tuple(next(values) for _ in template.variables)
        elements = tuple(tuple(next(values) for _ in held) for held in template.elements)
        return Snapshot(variables, template.structures, elements)

    def cell_names(self, snapshot: Snapshot) -> list[str]:
        found = list(self.names)
        for container, structure, held in zip(self.containers, snapshot.structures, snapshot.elements, strict=True):
            keys = structure if isinstance(container, (dict, Slots, Rebound)) else range(len(held))
            found += [item_name(key) if type(key) in (str, int) else f"[{key!r}]" for key in keys]
        return found


@functools.lru_cache(maxsize=4096)
def item_name(key: str | int) -> str:
    return f"[{key!r}]"


# --- what values are -----------------------------------------------------------------------------


class Kind(NamedTuple):
    """A number or array as a region's result: its type, and what Python object it stands for."""

    type: ArrayType
    scalar: bool
    weak: bool


PYTHON_KINDS: Final = {
    bool: Kind(ArrayType(BOOL), True, True),
    int: Kind(ArrayType(np.dtype(np.int64)), True, True),
    float: Kind(ArrayType(np.dtype(np.float64)), True, True),
    complex: Kind(ArrayType(np.dtype(np.complex128)), True, True),
}
WEAK_NUMBERS: Final[dict[str, Any]] = {"i": 0, "f": 0.0, "c": 0j}


def kind_of(x: Any) -> Kind | None:
    """The kind of a number or array; None for anything else, and for what may be None."""
    return None if may_be_none(x) else kind_beneath(x)


def kind_beneath(x: Any) -> Kind | None:
    """The kind of a number or array, and of one that may be None."""
    if isinstance(x, Tracer):
        return Kind(x.type, x.scalar, x.weak)
    found = PYTHON_KINDS.get(type(x))
    if found is not None:
        return found
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biufc":
        return Kind(ArrayType(x.dtype, x.shape), isinstance(x, np.generic), False)
    return None


def joined(name: str, one: Kind, other: Kind) -> Kind:
    """The kind that holds values of both.

    Raises:
        Refused: shapes differ, or dtypes that nothing exact holds.
    """
    found = join_kinds(name, one, other)
    if isinstance(found, str):
        raise Refused(found)
    return found


def shown(name: str) -> str:
    """A variable in a message: values that have no name are described."""
    if name.startswith("_sg_"):
        return "a conditional expression" if name == "_sg_value" else "what the function returns"
    return f"the element {name}" if name.startswith("[") else repr(name)


def described_kind(x: Any) -> str:
    """A value in a message."""
    if isinstance(x, Tracer):
        return "an array" if x.ndim else "a number"
    return "None" if x is None else f"a {type(x).__name__}"


def join_kinds(name: str, one: Kind, other: Kind) -> Kind | str:
    """The kind that holds values of both, or why there is none."""
    if one == other:
        return one
    if one.type.shape != other.type.shape:
        return f"the shape of {shown(name)} depends on a traced condition: {one.type} or {other.type}"
    first, second = one.type.dtype, other.type.dtype
    if first == second:
        dtype = first
    elif "b" in (first.kind, second.kind):
        return f"{shown(name)} is a truth value or a number, depending on a traced condition"
    elif one.weak != other.weak:
        strong, number = (second, WEAK_NUMBERS[first.kind]) if one.weak else (first, WEAK_NUMBERS[second.kind])
        dtype = np.result_type(strong, number)
    else:
        dtype = np.promote_types(first, second)
        # Whole numbers of another size overflow elsewhere; what is neither dtype would round unlike both.
        if not one.weak and (first.kind == second.kind or {first.kind, second.kind} == {"i", "u"}
                             or dtype not in (first, second)):  # fmt: skip
            return f"the dtype of {shown(name)} depends on a traced condition: {first} or {second}"
    return Kind(ArrayType(dtype, one.type.shape), one.scalar or other.scalar, one.weak and other.weak)


def value_as(x: Any, kind: Kind) -> Value:
    """A number or array as a value of the current trace, of a kind; zeros for a variable without one."""
    if x is UNBOUND or x is UNSET or x is None or isinstance(x, Undefined):
        return zeros(kind.type)
    if isinstance(x, Tracer):
        return cast_value(x.read(), kind.type.dtype)
    if type(x) in PYTHON_KINDS or isinstance(x, np.generic):
        return literal(x, kind.type)
    return cast_value(as_tracer(x).read(), kind.type.dtype)


def same_handle(one: Any, other: Any) -> bool:
    """Whether two objects are the same to every program."""
    if one is other:
        return True
    if isinstance(one, Tracer) and isinstance(other, Tracer):
        return one.storage is other.storage and one.chain == other.chain
    if type(one) is not type(other) or isinstance(one, Tracer):
        return False
    if type(one) in (int, bool, str, bytes):
        return bool(one == other)
    if isinstance(one, (float, complex, np.generic)):
        return repr(one) == repr(other)
    if type(one) in (tuple, slice, range):
        return (
            one == other if not isinstance(one, tuple) else len(one) == len(other) and all(map(same_handle, one, other))
        )
    if isinstance(one, types.MethodType):
        return one.__func__ is other.__func__ and one.__self__ is other.__self__
    return False


def tree_of(x: Any) -> tuple[list[Any], TreeDef | None]:
    """The leaves of a container of values and its structure; the value itself and None for a leaf."""
    if kind_of(x) is not None or isinstance(x, (Marker, Undefined, str, bytes)) or x is None:
        return [x], None
    leaves, treedef = flatten(x)
    if treedef.kind is None:
        return [x], None
    return leaves, treedef


# --- regions -----------------------------------------------------------------------------


@contextmanager
def entered(trace: Trace) -> Iterator[Trace]:
    """Make a trace the current one for a while."""
    token = CURRENT.set(trace)
    try:
        yield trace
    finally:
        CURRENT.reset(token)


def region_of(trace: Trace, front: Sequence[Value], outer: Sequence[Value], results: Sequence[Value]) -> Region:
    """The block of a trace as a closed region: its own parameters, then one for each value from outside."""
    params = [trace.lifted.get(value) or Value(value.type) for value in outer]
    ask_unread(trace, results)
    return Region([*front, *params], trace.builder.operations, results)


def ask_unread(trace: Trace, results: Sequence[Value]) -> None:
    """At the end of a block, ask for the errors of what nothing in it reads."""
    if trace.failing:
        from srcgrad.tracing.conversion.unread import keep_failures  # which is written with tracers

        with entered(trace):
            keep_failures(trace, results)


def lifted_by(*traces: Trace) -> list[Value]:
    """The values from outside that any of the blocks reads."""
    return list(dict.fromkeys(value for trace in traces for value in trace.lifted))


def emit_region(name: str, operands: Sequence[Value], attrs: dict[str, Any], regions: Sequence[Region]) -> Operation:
    trace = current_trace()
    op = REGISTRY.get(name)
    if op is None:
        raise Refused(f"this version has no op {name!r}")
    trace.builder.span = current_span()
    return trace.builder.emit_operation(op, operands, attrs, regions)


def has_effects(operations: Sequence[Operation]) -> bool:
    """Whether an operation does something besides computing."""
    return any(operation.acts for operation in operations)


def truth(x: Tracer) -> Value:
    """A traced condition as a value ``bool[]``."""
    if may_be_none(x):
        return truth_of_optional(x)
    if x.size != 1:
        bool(x)  # which raises NumPy's error
    element = x if not x.ndim else x.reshape(())
    return cast_value(element.read(), BOOL)


def truth_of_optional(x: Tracer) -> Value:
    """None is false."""
    pending = x.storage.pending
    if pending is None or x.size != 1 or x.chain:
        raise none_or_not(x)
    trace = current_trace()
    number = cast_value(trace.content(x.storage), BOOL)
    there = trace.reached(pending.predicate, x.storage.trace)
    if x.ndim:
        number = trace.emit(REGISTRY["reshape"], [number], {"shape": ()})
    return trace.emit(REGISTRY["logical_and"], [there, number])
