"""Memory that is shared, depending on a traced condition: what shares it, and under which condition.

The result of a conditional or of a loop is memory of its own; on one of the paths it may have been memory of another
variable, or a view of it. The two are *linked*: a `Way` says that where a predicate holds the one is a view of the
other. A write into one of them is done to the other too where the predicate holds, unless nothing in the program holds
the other. Where no such way is known (parts of one array that overlap), a write is refused.
"""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import BOOL, ArrayType, DType
from srcgrad.tracing.indexing import IndexView
from srcgrad.tracing.layout import Strides, strides_of
from srcgrad.tracing.storage import Doubt, Storage
from srcgrad.tracing.trace import CURRENT, Refused, Trace, current_trace
from srcgrad.tracing.tracer import Tracer, cast_value
from srcgrad.tracing.views import Chain, ReadOnlyView, ReverseView, TransposeView, View, put_through, seen_through

LONGEST: Final = 4
"""The most views in a way from memory to memory that are followed from trip to trip of a loop."""
MOST_FLAGS: Final = 32
"""The most predicates that a loop carries to know what shares memory."""
TRUTH: Final = ArrayType(BOOL)


class Way(NamedTuple):
    """Where the predicate holds, one memory is the chain's view of another; seen from either of them."""

    predicate: Value | None
    """None if it is so in any case."""
    home: Trace | None
    """The trace that the predicate is a value of."""
    chain: Chain
    view: bool
    """Whether the memory that the way is noted of is the view; else it is what is viewed."""

    def turned(self) -> Way:
        return self._replace(view=not self.view)


Ways = tuple[Way, ...] | None
"""The ways in which two memories may be one; None where that is not known."""


class Link(NamedTuple):
    """Memory that may be shared. ``name``: the variable for which it depends on a condition."""

    name: str
    ways: Ways


def link(one: Storage, other: Storage, name: str, ways: Ways) -> None:
    """Note that two memories may be one; ``ways`` are those seen from the first."""
    if one is other:
        return
    turned = None if ways is None else tuple(way.turned() for way in ways)
    for first, second, seen in ((one, other, ways), (other, one, turned)):
        for trace in current_trace().around():
            trace.note(first)
        if first.aliases is None:
            first.aliases = weakref.WeakKeyDictionary()
        known = first.aliases.get(second)
        if known is not None:
            seen = None if seen is None or known.ways is None else (*known.ways, *seen)
        first.aliases[second] = Link(name if known is None else known.name, seen)


def in_progress(trace: Trace) -> bool:
    found = CURRENT.get()
    while found is not None:
        if found is trace:
            return True
        found = found.parent
    return False


def lasting(chain: Chain) -> bool:
    """Whether the traced indices of a chain of views are known here: not those of a block that has ended."""
    traced = [index for view in chain if isinstance(view, IndexView) for index in view.traced()]
    return all(in_progress(index.storage.trace) for index in traced)


def array_storage(x: Any) -> Storage | None:
    """The memory of a traced array; scalars have none that can be written."""
    return x.storage if isinstance(x, Tracer) and not x.scalar else None


# --- which memory a handle may be a view of -----------------------------------------------------------------------


def chained(first: Chain, then: Chain) -> Chain:
    """The views one after the other; one that is taken back is none."""
    found = list(first)
    for view in then:
        if found and undone(found[-1], view):
            found.pop()
        else:
            found.append(view)
    return tuple(found)


def undone(one: View, other: View) -> bool:
    """Whether the second view takes back the first."""
    if isinstance(one, TransposeView) and isinstance(other, TransposeView):
        return all(one.perm[axis] == k for k, axis in enumerate(other.perm))
    return isinstance(one, ReverseView) and one == other


def of_view(ways: Ways, chain: Chain) -> Ways:
    """The ways seen from a view of the memory that they are noted of."""
    if ways is None:
        return None
    found = []
    for way in ways:
        if way.view:
            found.append(way._replace(chain=chained(way.chain, chain)))
        elif chain[: len(way.chain)] == way.chain:
            found.append(way._replace(chain=chain[len(way.chain) :], view=True))
        elif way.chain[: len(chain)] == chain:
            found.append(way._replace(chain=way.chain[len(chain) :]))
        else:
            return None
    return tuple(found)


def relations(x: Tracer) -> Iterator[tuple[Storage, Ways]]:
    """The memory that an array is or may be a view of, and in which ways."""
    yield x.storage, (Way(None, None, x.chain, True),)
    if x.storage.aliases is not None:
        for other, noted in list(x.storage.aliases.items()):
            yield other, of_view(noted.ways, x.chain)


def outlasting(x: Tracer) -> Iterator[tuple[Storage, Ways]]:
    """Of these, what the traces in progress made: it outlives a block that has ended."""
    for storage, ways in relations(x):
        if in_progress(storage.trace):
            known = ways is not None and all(lasting(way.chain) for way in ways)
            yield storage, ways if known else None


def between(one: Tracer, other: Tracer) -> Ways:
    """The ways in which an array is a view of another or the other of it; none if they share no memory."""
    for storage, ways in relations(one):
        if storage is other.storage:
            seen = of_view(None if ways is None else tuple(way.turned() for way in ways), other.chain)
            known = seen is not None and all(lasting(way.chain) for way in seen)
            return tuple(way.turned() for way in seen) if seen is not None and known else None
    return ()


def predicate_here(way: Way) -> Value:
    """The predicate of a way as a value of the current trace."""
    if way.predicate is None or way.home is None:
        return literal(True, TRUTH)
    return current_trace().reached(way.predicate, way.home)


def either(ways: Sequence[Way]) -> Value:
    """Whether one of the ways is taken."""
    found = predicate_here(ways[0])
    for way in ways[1:]:
        found = current_trace().emit(REGISTRY["logical_or"], [found, predicate_here(way)])
    return found


# --- writes -----------------------------------------------------------------------


def sharers(storage: Storage) -> list[tuple[Storage, tuple[Way, ...]]]:
    """The memory that a write into this one is to be done to as well.

    Raises:
        Refused: an array of the program may share this memory in a way that is not known.
    """
    found: list[tuple[Storage, tuple[Way, ...]]] = []
    if storage.aliases is None:
        return found
    for reference in storage.aliases.keyrefs():
        if not held(reference):
            continue
        other = reference()
        if other is None or not in_progress(other.trace):  # nothing can read what a block had that has ended
            continue
        noted = storage.aliases[other]
        if noted.ways is None or not all(map(usable, noted.ways)):
            raise ambiguous(noted.name)
        found.append((other, noted.ways))
        del other  # which would count as another reference
    return found


def usable(way: Way) -> bool:
    """Whether a write can be followed here along a way."""
    if way.home is not None and not in_progress(way.home):
        return False
    return lasting(way.chain) and not (way.view and any(isinstance(view, ReadOnlyView) for view in way.chain))


def ambiguous(name: str) -> Refused:
    named = name.isidentifier() and not name.startswith("_")
    return Refused(
        f"a write into memory that {repr(name) if named else 'a conditional expression'} may or may not share, "
        "depending on a traced condition",
        hint=f"write {name} = {name}.copy() where {name} is set" if named else "write into a copy: x = x.copy()",
    )


def follow(storage: Storage, others: Iterable[tuple[Storage, tuple[Way, ...]]]) -> None:
    """Do what was written into a memory to those that share it."""
    trace = current_trace()
    for other, ways in others:
        written = trace.content(storage)
        base = trace.content(other)
        for way in ways:
            if way.view:
                changed = put_through(trace, base, way.chain, cast_value(written, base.type.dtype))
            else:
                changed = cast_value(seen_through(trace, written, way.chain), base.type.dtype)
            if way.predicate is None:
                base = changed
            else:
                base = trace.emit(REGISTRY["select"], [predicate_here(way), changed, base])
        trace.write(other, base)


def held(reference: weakref.ref[Storage]) -> bool:
    """Whether an object of the program holds a view of a memory: not snapshots, and not tables of the traces.

    Python's reference counts tell. A view that snapshots alone hold is one of another path.
    """
    count = memory_references(reference) - NO_REFERENCE
    storage = reference()
    if storage is None:
        return False
    return count - tables(storage) - noted_only(storage) > 0


def noted_only(storage: Storage) -> int:
    """How many views of a memory there are that only snapshots hold."""
    groups = [group for snapshot in list(current_trace().snapshots) for group in snapshot.groups()]
    noted = Counter(id(x) for group in groups for x in group if isinstance(x, Tracer) and x.storage is storage)
    found = set()
    for group in groups:
        for x in group:
            if id(x) in noted and references(x) - noted[id(x)] < ALONE:
                found.add(id(x))
    return len(found)


def tables(storage: Storage) -> int:
    """How many tables of the traces in progress hold a memory."""
    count = 0
    trace = CURRENT.get()
    while trace is not None:
        count += storage in trace.overlay
        for table in trace.tables:
            count += storage in table
        trace = trace.parent
    return count


def references(x: Any) -> int:
    """How many references there are to a handle."""
    return sys.getrefcount(x)


def memory_references(reference: weakref.ref[Any]) -> int:
    storage = reference()
    return sys.getrefcount(storage)


class Held:
    """An object to count the references of."""


def references_of_one() -> int:
    """What `references` gives for what one snapshot alone holds: Python's versions count differently."""
    group = (Held(),)
    for x in group:
        return references(x)
    raise AssertionError


ALONE: Final = references_of_one()


def references_of_none() -> int:
    """What `memory_references` adds to the references that there are."""
    held_once = Held()
    return memory_references(weakref.ref(held_once)) - 1


NO_REFERENCE: Final = references_of_none()


# --- what of the memory depends on a condition ---------------------------------------------------


class Memory:
    """The dtypes and layouts of the arrays that one array stands for."""

    def __init__(self) -> None:
        self.dtypes: dict[DType, None] = {}
        self.layouts: dict[Strides | None, None] = {}
        self.doubts: dict[Doubt, None] = {}
        self.numbers: dict[bool, None] = {}
        """Whether what has no axes is a number, or an array."""

    def note(self, x: Any) -> bool:
        """Take up an array that it may be; whether that is anything new."""
        before = len(self.dtypes), len(self.layouts), len(self.doubts), len(self.numbers)
        self.note_number(x)
        if isinstance(x, (Tracer, np.ndarray)) and x.ndim:
            self.dtypes[x.dtype] = None
            if x.ndim > 1:
                laid_out = x.ghost() if isinstance(x, Tracer) and (x.chain or x.storage.strides) else x
                self.layouts[None if isinstance(laid_out, Tracer) else strides_of(laid_out)] = None
            if isinstance(x, Tracer) and x.storage.doubt is not None:
                self.doubts[x.storage.doubt] = None
        return (len(self.dtypes), len(self.layouts), len(self.doubts), len(self.numbers)) != before

    def note_number(self, x: Any) -> None:
        """Take up what has no axes: a number or an array."""
        if isinstance(x, (Tracer, np.ndarray, np.generic, bool, int, float, complex)) and not np.ndim(x):
            self.numbers[x.scalar if isinstance(x, Tracer) else not isinstance(x, np.ndarray)] = None
            doubt = x.storage.doubt if isinstance(x, Tracer) else None
            if doubt is not None and (doubt.memory or doubt.listed):
                self.doubts[doubt] = None

    def copy(self) -> Memory:
        found = Memory()
        for one, other in zip(found.tables(), self.tables(), strict=True):
            one.update(other)
        return found

    def holds(self, other: Memory) -> bool:
        """Whether all that another one has noted is noted here too."""
        return all(there.keys() <= here.keys() for here, there in zip(self.tables(), other.tables(), strict=True))

    def tables(self) -> tuple[dict[Any, None], ...]:
        return self.dtypes, self.layouts, self.doubts, self.numbers

    def settle(self, result: Tracer, name: str) -> None:
        """Tell the array that stands for all of them what depends on the condition."""
        result.storage.decided = True
        if result.scalar:
            if len(self.numbers) > 1 or any(doubt.memory for doubt in self.doubts):
                result.storage.doubt = Doubt(name, dtype=False, layout=False, memory=True)
            return
        dtype = len(self.dtypes) > 1 or any(doubt.dtype for doubt in self.doubts)
        layout = len(self.layouts) > 1 or any(doubt.layout for doubt in self.doubts)
        result.storage.strides = next((strides for strides in self.layouts if strides is not None), None)
        listed = any(doubt.listed for doubt in self.doubts)
        if dtype or layout or listed:
            result.storage.doubt = Doubt(name, dtype, layout, listed=listed)


def settled(result: Tracer, name: str, arrays: Iterable[Any]) -> None:
    """Tell the result of a conditional what it is on the paths."""
    memory = Memory()
    for x in arrays:
        memory.note(x)
    memory.settle(result, name)


# --- loops -----------------------------------------------------------------------------

Leaf = tuple[int, int]
"""A cell of the state, and which of its leaves."""
Target = Leaf | weakref.ref[Storage]
"""What a carried array may share memory with: another one, or memory from outside the loop."""


class Flag(NamedTuple):
    """A predicate that a loop carries: whether a carried array is now a view of the target, or the target of it."""

    leaf: Leaf
    target: Target
    chain: Chain
    view: bool


Shared = tuple[Leaf, Target, Ways]


class Sharing:
    """Which carried arrays share memory at the start of the loop or at the end of a trip, and with what outside."""

    def __init__(self) -> None:
        self.flags: dict[Flag, None] = {}
        self.unknown: dict[tuple[Leaf, Target], None] = {}
        """What may share memory in ways that no flags tell."""

    def shared(self, leaves: dict[Leaf, Tracer]) -> list[Shared]:
        """What shares memory at one moment, and in which ways. Asked outside the trip."""
        found: list[Shared] = []
        arrays = list(leaves.items())
        of: dict[Storage, list[int]] = {}
        """Where the arrays of each memory are: of thousands that share nothing no two are compared."""
        for position, (_, x) in enumerate(arrays):
            of.setdefault(x.storage, []).append(position)
        for position, (leaf, x) in enumerate(arrays):
            found += [(leaf, weakref.ref(storage), ways) for storage, ways in outlasting(x)]
            near = {other for storage, _ in relations(x) for other in of.get(storage, ()) if other > position}
            pairs = [(arrays[other][0], between(x, arrays[other][1])) for other in sorted(near)]
            found += [(leaf, other, ways) for other, ways in pairs if ways != ()]
        return found

    def note(self, moment: Sequence[Shared]) -> bool:
        """Take up what shares memory at one moment; whether any of it is new."""
        before = len(self.flags), len(self.unknown)
        for leaf, target, ways in moment:
            if (leaf, target) in self.unknown:
                continue
            flags = [] if ways is None else [Flag(leaf, target, way.chain, way.view) for way in ways]
            if ways is None or any(len(flag.chain) > LONGEST for flag in flags) or len(self.flags) >= MOST_FLAGS:
                self.unknown[leaf, target] = None
                self.flags = {flag: None for flag in self.flags if (flag.leaf, flag.target) != (leaf, target)}
            else:
                self.flags.update(dict.fromkeys(flags))
        return (len(self.flags), len(self.unknown)) != before

    def values(self, moment: Sequence[Shared]) -> list[Value]:
        """The flags at one moment, as values of the current trace."""
        table: dict[Flag, list[Way]] = {}
        for leaf, target, ways in moment:
            for way in ways or ():
                table.setdefault(Flag(leaf, target, way.chain, way.view), []).append(way)
        return [either(table[flag]) if flag in table else literal(False, TRUTH) for flag in self.flags]

    def link(self, names: Sequence[str], leaves: dict[Leaf, Tracer], values: Sequence[Value]) -> None:
        """Link the memory that stands for the carried arrays, given the flags as values of the current trace."""
        found: dict[tuple[Leaf, Target], list[Way]] = {}
        for flag, value in zip(self.flags, values, strict=True):
            way = Way(value, current_trace(), flag.chain, flag.view)
            found.setdefault((flag.leaf, flag.target), []).append(way)
        for leaf, target in (*found, *self.unknown):
            other: Storage | None = None
            if isinstance(target, weakref.ref):
                other = target()
            elif target in leaves:
                other = leaves[target].storage
            if other is not None and leaf in leaves:
                known = found.get((leaf, target))
                link(leaves[leaf].storage, other, names[leaf[0]], None if known is None else tuple(known))
