"""What a function changes of its arguments, and how the caller's own come to be changed after a call of its program.

A trace works on copies of lists, dicts and records, and on tracers in place of arrays. What the copies hold at its end
is noted by where it comes from: an argument itself, a view of one, a result of the program, or what is compiled in.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, cast

import numpy as np

from srcgrad.ir.core import Value
from srcgrad.signatures import UNKEYED, leaf_key
from srcgrad.tracing.aliasing import alias_groups
from srcgrad.tracing.conversion.classes import original
from srcgrad.tracing.conversion.state import MustRetrace, Slots, contents, reachable, slots_of
from srcgrad.tracing.doubts import require_dtype, require_number
from srcgrad.tracing.function import Traced
from srcgrad.tracing.hosts import HostObject
from srcgrad.tracing.pytree import TreeDef, record_fields
from srcgrad.tracing.storage import Storage
from srcgrad.tracing.trace import Refused, Trace
from srcgrad.tracing.tracer import Tracer
from srcgrad.tracing.views import Chain

DICTS: Final = (dict, OrderedDict, defaultdict)
NUMBERS: Final = (type(None), bool, int, float, complex, str, bytes, np.generic)
Given = tuple[tuple[Any, ...], dict[str, Any]]
"""The arguments of a call, by position and by name."""
Parts = tuple[Any, list[Any]]
"""The keys or the length of a container, or the names of an object's attributes; and what is there."""
Step = tuple[bool, Any]
"""Whether an attribute is read, and its name; or the index or key."""


# --- where the containers are ------------------------------------------------------------------------------------


def steps(tree: TreeDef) -> list[Step]:
    """How the children of a container are read; of a registered class nobody knows."""
    kind, names = tree.kind, cast(Any, tree.auxiliary)
    if kind in DICTS:
        return [(False, key) for key in (names[1] if kind is defaultdict else names)]
    if kind in (list, tuple) or (kind is not None and issubclass(kind, tuple) and record_fields(kind) is not None):
        return [(False, number) for number in range(len(tree.children))]
    return [(True, name) for name in names] if kind is not None and record_fields(kind) is not None else []


def held(container: Any, step: Step) -> Any:
    return getattr(container, step[1]) if step[0] else container[step[1]]


def places(tree: TreeDef, before: tuple[Step, ...] = ()) -> Iterator[tuple[tuple[Step, ...], type]]:
    """The lists, dicts, records and instances of registered classes in a structure, and the way to each."""
    kind = tree.kind
    if kind is not None and kind is not type(None) and not issubclass(kind, tuple):
        yield before, kind
    for step, child in zip(steps(tree), tree.children, strict=False):
        yield from places(child, (*before, step))


def places_of_arguments(tree: TreeDef) -> list[tuple[tuple[Step, ...], type]]:
    """Those in the arguments, by position and by name; the dict of the latter is new at each call."""
    return [found for found in places(tree) if found[0] and found[0] != ((False, 1),)]


def shown(place: Sequence[Step], parameters: Sequence[str]) -> str:
    """A container of the arguments, as a function with these parameters writes it."""
    (_, by_name), (_, first), *rest = place
    name = first if by_name else parameters[first] if first < len(parameters) else f"argument {first}"
    return str(name) + "".join([f".{key}" if attribute else f"[{key!r}]" for attribute, key in rest])


def parts(x: Any) -> Parts:
    if isinstance(x, (list, *DICTS)):
        return contents(x)
    attributes = getattr(x, "__dict__", {})
    names, values = contents(Slots(x, slots_of(type(x))))
    return (*attributes, *names), [*attributes.values(), *values]


def seen(kind: type, x: Any) -> Parts:
    """`parts`; of an instance of a registered class also what is in its containers."""
    if kind in (list, *DICTS) or record_fields(kind) is not None:
        return parts(x)
    found = [parts(x), *map(contents, reachable([x]))]
    return tuple([structure for structure, _ in found]), [value for _, values in found for value in values]


def same(one: Parts, other: Parts) -> bool:
    return one[0] == other[0] and all(a is b for a, b in zip(one[1], other[1], strict=True))


# --- where what is put into them comes from ----------------------------------------------------------------------


class Argument(NamedTuple):
    """A leaf of the arguments, or a hidden input."""

    number: int

    def get(self, call: Call) -> Any:
        return call.leaves[self.number]


class Container(NamedTuple):
    """A container of the arguments."""

    number: int

    def get(self, call: Call) -> Any:
        return call.containers[self.number]


class Result(NamedTuple):
    """A result of the program; ``plain``: as a number of Python's."""

    number: int
    plain: bool = False

    def get(self, call: Call) -> Any:
        found = call.results[self.number]
        return found.item() if self.plain else found


class Seen(NamedTuple):
    """A view of an array; without a chain, of all of it."""

    source: Source
    chain: Chain

    def get(self, call: Call) -> Any:
        if id(self) not in call.views:
            found = self.source.get(call)
            for view in self.chain:
                found = view.apply(found)
            call.views[id(self)] = found if self.chain else found[...]
        return call.views[id(self)]


class Constant(NamedTuple):
    """What is compiled in."""

    value: Any

    def get(self, call: Call) -> Any:
        return self.value


class New(NamedTuple):
    """A container that the function makes."""

    number: int

    def get(self, call: Call) -> Any:
        if self.number not in call.made:
            call.make(self.number)
        return call.made[self.number]


Source = Argument | Container | Result | Seen | Constant | New


class Content(NamedTuple):
    """What a container is to hold, or its parts that are to be others."""

    kind: type
    keys: tuple[Any, ...]
    sources: tuple[Source, ...]
    whole: bool = True
    """Whether it is all of a list or dict."""
    gone: tuple[str, ...] = ()
    """The attributes that an object is to lose."""

    def values(self, call: Call) -> list[Any]:
        return [source.get(call) for source in self.sources]

    def put(self, container: Any, values: Sequence[Any]) -> None:
        if self.kind is list and self.whole:
            container[:] = values
        elif self.kind in (list, *DICTS):
            if self.whole:
                container.clear()
            for key, value in zip(self.keys, values, strict=True):
                container[key] = value
        else:
            for name in self.gone:
                object.__delattr__(container, name)
            for name, value in zip(self.keys, values, strict=True):
                object.__setattr__(container, name, value)


class Made(NamedTuple):
    """A container to be made: what makes an empty one, None for tuples; and what it holds."""

    empty: Callable[[], Any] | None
    content: Content


class Call:
    """What there is when a call's program has run."""

    def __init__(
        self, leaves: Sequence[Any], containers: Sequence[Any], results: Sequence[Any], new: Sequence[Made]
    ) -> None:
        self.leaves, self.containers, self.results, self.new = leaves, containers, results, new
        self.made: dict[int, Any] = {}
        self.views: dict[int, Any] = {}

    def make(self, number: int) -> None:
        empty, content = self.new[number]
        if empty is None:
            self.made[number] = tuple.__new__(content.kind, content.values(self))
            return
        self.made[number] = made = empty()  # before its items, which may hold it
        content.put(made, content.values(self))


class Changes(NamedTuple):
    """What a program changes for its caller."""

    arrays: tuple[int, ...]
    """The inputs of the program that are written; the new values are its last results."""
    places: tuple[tuple[Step, ...], ...] = ()
    """Where the containers of the arguments are, if one of them is to hold something else."""
    contents: tuple[tuple[int, Content], ...] = ()
    """By the place's number, what it is to hold."""
    new: tuple[Made, ...] = ()
    results: int = 0
    """How many results of the program are for the containers: those before the values of arrays."""

    def shown(self, parameters: Sequence[str]) -> list[str]:
        """The containers that are to hold something else, as a function with these parameters writes them."""
        return [shown(self.places[number], parameters) for number, _ in self.contents]

    def containers(self, given: Given, captured: Sequence[Any]) -> list[Any] | None:
        """The caller's containers; None if one is there twice or captured too: then it was two in the trace."""
        found = []
        for place in self.places:
            container: Any = given
            for step in place:
                container = held(container, step)
            found.append(container)
        different = {id(container) for container in found}
        if len(different) < len(found) or any(id(thing) in different for thing in captured):
            return None
        return found

    def writable(self, inputs: Sequence[Any]) -> bool:
        """Whether each array that is written can be, and nothing else that is given shares its memory."""
        for number in self.arrays:
            array = inputs[number]
            if not isinstance(array, np.ndarray) or not array.flags.writeable or overlaps_itself(array):
                return False
        found = alias_groups(inputs) if self.arrays else None
        if found is None:
            return True
        shared = [(k, group) for k, group in enumerate(found.groups) if k != group]
        return not any(k in self.arrays for pair in (*shared, *found.overlapping) for k in pair)

    def write(self, leaves: Sequence[Any], containers: Sequence[Any], inputs: Sequence[Any], results: Any) -> None:
        """Change what the caller has."""
        first = len(results) - len(self.arrays)
        for number, value in zip(self.arrays, results[first:], strict=True):
            np.copyto(inputs[number], value)
        if self.contents:
            call = Call(leaves, containers, results[first - self.results : first], self.new)
            values = [content.values(call) for _, content in self.contents]
            for (number, content), held_now in zip(self.contents, values, strict=True):
                content.put(containers[number], held_now)


def overlaps_itself(array: np.ndarray[Any, Any]) -> bool:
    """Whether two elements may be in one place."""
    if array.flags.forc:
        return False
    end = array.itemsize
    for stride, size in sorted(zip(map(abs, array.strides), array.shape, strict=True)):
        if size > 1:
            if stride < end:
                return True
            end = stride * (size - 1) + end
    return False


def changes_of(traced: Traced) -> Changes | None:
    """All that a traced function changes for its caller."""
    found: Changes | None = traced.changes
    if traced.mutated:
        found = Changes(traced.mutated) if found is None else found._replace(arrays=traced.mutated)
    return found


# --- in the trace ------------------------------------------------------------------------------------------------


class Watched(NamedTuple):
    """A container of the trace's arguments, and what it held at first."""

    kind: type
    copy: Any
    before: Parts


class Watcher:
    """Sees what a traced function does to the containers of its arguments."""

    def __init__(self, tree: TreeDef) -> None:
        self.places = places_of_arguments(tree)
        self.watched: list[Watched] = []
        self.results: list[Value] = []
        self.new: list[Made] = []
        self.known: dict[int, Source] = {}
        self.kept: list[Any] = []
        """What `known` has the address of."""

    def watch(self, given: Given) -> None:
        """Note what the copies hold that the function is about to get."""
        for place, kind in self.places:
            copy: Any = given
            for step in place:
                copy = held(copy, step)
            self.watched.append(Watched(kind, copy, seen(kind, copy)))

    def changes(self, trace: Trace, given: Sequence[Any]) -> tuple[Changes | None, list[Value]]:
        """What has been changed besides arrays, and the results that this takes. ``given``: the leaves in the trace.

        Raises:
            Refused: it depends on a traced condition. MustRetrace: nobody knows how to do the same for the caller.
        """
        if any(isinstance(leaf, Tracer) and leaf.chain for leaf in given):
            raise MustRetrace("changes the shape of an argument")
        changed = []
        for k, (kind, copy, before) in enumerate(self.watched):
            now = seen(kind, copy)
            if same(now, before):
                continue
            if kind not in (list, *DICTS) and record_fields(kind) is None:
                raise MustRetrace(f"changes an instance of {kind.__name__}, which its own code puts together")
            changed.append((k, now))
        if not changed:
            return None, []
        self.know(trace, given, changed)
        found = tuple([(k, self.changed(*self.watched[k], now)) for k, now in changed])
        ways = tuple([place for place, _ in self.places])
        return Changes((), ways, found, tuple(self.new), len(self.results)), self.results

    def know(self, trace: Trace, given: Sequence[Any], changed: Sequence[tuple[int, Parts]]) -> None:
        """Where objects come from that the caller has too, and which memory is seen in more than one way."""
        self.trace = trace
        for number, leaf in enumerate(given):
            self.known.setdefault(id(leaf), Argument(number))
        for number, (_, copy, _) in enumerate(self.watched):
            self.known[id(copy)] = Container(number)
        self.captured = {id(copy) for copy, *_ in trace.watched}
        self.memory: dict[Storage, Source] = {
            leaf.storage: Argument(number)
            for number, leaf in reversed([*enumerate(given)])
            if isinstance(leaf, Tracer) and not leaf.scalar
        }
        self.ways: dict[Storage, set[int]] = {}
        for tracer in arrays_in([values for _, (_, values) in changed], set(self.known)):
            self.ways.setdefault(tracer.storage, set()).add(id(tracer))

    def changed(self, kind: type, copy: Any, before: Parts, now: Parts) -> Content:
        """What a container is to hold, as far as it has held something else."""
        keys, values = now
        alike = keys == before[0]
        whole = not alike and kind in (list, *DICTS)
        if kind is list:
            keys = range(len(values))
        known = {} if whole else dict(zip(keys if alike else before[0], before[1], strict=True))
        other = [(key, value) for key, value in zip(keys, values, strict=True) if known.get(key, known) is not value]
        gone = () if alike or whole else tuple([name for name in before[0] if name not in keys])
        sources = tuple([self.source(value) for _, value in other])
        return Content(kind, tuple([key for key, _ in other]), sources, whole, gone)

    def source(self, x: Any) -> Source:
        found = self.known.get(id(x))
        if found is not None:
            return found
        if id(x) in self.captured:
            raise MustRetrace("puts something that is captured into an argument")
        if isinstance(x, Tracer):
            return self.traced(x)
        if isinstance(x, NUMBERS):
            return Constant(x)
        if type(x) is np.ndarray:
            found = Result(self.result(self.trace.constant(x)))
            if any(np.may_share_memory(x, other) for other in self.kept if type(other) is np.ndarray):
                raise MustRetrace("puts arrays that share memory into an argument")
            return self.note(x, found)
        kind = original(type(x))
        if kind in (list, tuple, *DICTS) or (isinstance(kind, type) and record_fields(kind) is not None):
            return self.container(kind, x)
        if isinstance(x, HostObject) or leaf_key(x) is UNKEYED:
            raise MustRetrace(f"puts a {kind.__name__} into an argument")
        return Constant(x)

    def note(self, x: Any, source: Source) -> Source:
        self.kept.append(x)
        self.known[id(x)] = source
        return source

    def result(self, value: Value) -> int:
        self.results.append(value)
        return len(self.results) - 1

    def traced(self, x: Tracer) -> Source:
        if x.scalar:
            require_dtype(x)
            require_number(x)
            return self.note(x, Result(self.result(x.read()), x.weak))
        storage = x.storage
        for other in [] if storage.aliases is None else list(storage.aliases):
            if other in self.memory or other in self.ways:
                raise Refused("what an argument is to hold is one array or another, depending on a traced condition")
        if storage not in self.memory and len(self.ways[storage]) == 1:  # nobody sees that it is a part of another
            return self.note(x, Result(self.result(x.read())))
        if any(view.varies for view in x.chain):
            raise Refused("puts a part of an array at a traced place into an argument")
        source = self.memory.get(storage)
        if source is None:
            source = self.memory[storage] = Result(self.result(self.trace.read(storage)))
            if not x.chain:
                return self.note(x, source)
        return self.note(x, Seen(source, x.chain))

    def container(self, kind: Any, x: Any) -> Source:
        number = len(self.new)
        found = self.note(x, New(number))
        empty: Callable[[], Any] | None = kind
        keys, values = ((), list(x)) if isinstance(x, (list, tuple)) else parts(x)
        if issubclass(kind, tuple):
            empty = None
        elif kind is defaultdict:
            empty = empty_default_dict(x)
        elif kind not in (list, *DICTS):
            empty = partial(object.__new__, kind)
        self.new.append(Made(empty, Content(kind, keys, ())))
        self.new[number] = Made(empty, Content(kind, keys, tuple([self.source(value) for value in values])))
        return found


def empty_default_dict(x: defaultdict[Any, Any]) -> Callable[[], Any]:
    factory = x.default_factory
    if factory is not None and leaf_key(factory) is UNKEYED:
        raise MustRetrace("puts a defaultdict with a function of the user's into an argument")
    return partial(defaultdict, factory)


def arrays_in(x: Any, known: set[int]) -> Iterator[Tracer]:
    """The traced arrays in new containers."""
    if isinstance(x, Tracer):
        if not x.scalar:
            yield x
        return
    if id(x) in known and not isinstance(x, Tracer):
        return
    known.add(id(x))
    if isinstance(x, (list, tuple)):
        for item in x:
            yield from arrays_in(item, known)
    elif isinstance(x, dict):
        yield from arrays_in(list(x.values()), known)
    elif record_fields(original(type(x))) is not None:
        yield from arrays_in(parts(x)[1], known)
