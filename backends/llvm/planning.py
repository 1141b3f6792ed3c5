"""Where the arrays of a native program lie: which values share memory, how long it is needed, and at which place.

A *root* is a piece of memory: of a parameter, of a result, or in the arena of the program. A value in memory is all of
a root or a part of it. Memory whose values are all read is *dead*: an operation that can writes its result over it, and
later roots take its place in the arena. Regions are planned for each set of parameters whose memory is theirs.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from srcgrad.backends.llvm import scalars
from srcgrad.ir.core import Operation, Region, Value
from srcgrad.ir.types import ArrayType, TapeType

ALIGNMENT: Final = 64
_LOOKED_AT: Final = 64
UPDATES: Final = frozenset({"scatter_add", "scatter_set", "slice_set"})
"""Operations that write into their first operand's memory where they may."""


def overwritten(operation: Operation) -> Sequence[Value]:
    """The operands that an operation may write over."""
    if operation.regions:
        return operation.operands
    if operation.op.name in UPDATES:
        return operation.operands[:1]
    return [operation.operands[k] for k in operation.attrs.get("updates", ())]


def in_memory(type: ArrayType) -> bool:
    """Whether values of this type lie in memory; the others are numbers in registers, or tapes."""
    return not isinstance(type, TapeType) and (bool(type.shape) or not scalars.is_register(type.dtype))


def bytes_of(type: ArrayType) -> int:
    return type.size * type.dtype.itemsize


class Root:
    """A piece of memory, from the operation ``first`` that writes it to the ``last`` one that reads it.

    ``local``: it begins in this block; ``owned``: the block may write over it when it is dead. ``home`` is the pointer
    to it where it does not lie in the arena. ``updates``: in order, the operations that may write over what it is known
    to hold.
    """

    __slots__ = ("first", "home", "last", "local", "offset", "owned", "size", "updates")

    def __init__(self, size: int, first: int, local: bool, owned: bool) -> None:
        self.size = size
        self.first = first
        self.last = first
        self.local = local
        self.owned = owned
        self.home: str | None = None
        self.offset = 0
        self.updates: list[int] = []


@dataclass(frozen=True)
class Effect:
    """What one operation does with memory.

    ``shows``: result 0 is a part of operand 0, at this offset in bytes (None: known at run time). ``in_place``: the
    operand whose memory result 0 may have. ``over``: results, each with the operands whose memory it may have.
    ``scratch``: bytes that it needs beside.
    """

    shows: bool = False
    offset: int | None = 0
    in_place: int | None = None
    over: Mapping[Value, Sequence[Value]] = field(default_factory=dict)
    scratch: int = 0


Effects = Callable[[Operation], Effect]


@dataclass
class CondPlan:
    """Both branches; ``in_place``: per result, the operand whose memory it has."""

    branches: tuple[Plan, Plan]
    in_place: list[int | None]
    size: int = 0


@dataclass
class LoopPlan:
    """The regions of a loop, and per carry how its arrays are handed on.

    ``number``: in registers, as tapes are. ``still``: it never changes. ``place``: all in one piece of memory, that of
    the operand where ``taken``. ``swing``: each trip writes to the piece that the one before did not. ``column``: what
    a trip begins with is kept in a column, where the trip before writes it.
    """

    condition: Plan | None
    body: Plan
    modes: list[str]
    taken: list[bool]
    others: dict[int, Root] = field(default_factory=dict)
    """Per swinging carry its second piece of memory."""
    columns: dict[int, int] = field(default_factory=dict)
    """Per carry that lies in a column, which of the columns that the loop makes."""
    size: int = 0


class Planner:
    """Plans of the regions of one program, each made once for the parameters that it owns."""

    def __init__(self, effects: Effects) -> None:
        self.effects = effects
        self.known: dict[tuple[int, frozenset[int]], tuple[Operation, CondPlan | LoopPlan]] = {}

    def control(self, operation: Operation, movable: frozenset[int], used: Container[Value]) -> CondPlan | LoopPlan:
        """``used``: the values that are read where the operation stands."""
        key = (id(operation), movable)
        found = self.known.get(key)
        if found is None:
            is_cond = operation.op.name == "cond"
            plan = self.cond(operation, movable) if is_cond else self.loop(operation, movable, used)
            found = self.known[key] = (operation, plan)
        return found[1]

    def region(self, region: Region, owned: Collection[Value]) -> Plan:
        return Plan(self, region.params, region.operations, region.results, owned)

    def cond(self, operation: Operation, movable: frozenset[int]) -> CondPlan:
        plans = []
        for region in operation.regions:
            plans.append(self.region(region, {region.params[k - 1] for k in movable if k}))
        found: list[int | None] = []
        for position, result in enumerate(operation.results):
            common = None
            if in_memory(result.type):
                own = [plan.whole_param(region.results[position]) for plan, region in self.pairs(plans, operation)]
                if own[0] is not None and own[0] == own[1] and own[0] + 1 in movable:
                    common = own[0] + 1
            found.append(None if common in found else common)
        for position, result in enumerate(operation.results):
            if in_memory(result.type) and found[position] is None:
                for plan, region in self.pairs(plans, operation):
                    plan.claim(region.results[position], f"result {position}")
        size = max(plan.layout() for plan in plans)
        return CondPlan((plans[0], plans[1]), found, size)

    @staticmethod
    def pairs(plans: Sequence[Plan], operation: Operation) -> list[tuple[Plan, Region]]:
        return list(zip(plans, operation.regions, strict=True))

    def loop(self, operation: Operation, movable: frozenset[int], used: Container[Value]) -> LoopPlan:
        attrs, body = operation.attrs, operation.regions[-1]
        carries = attrs["carries"]
        first = int(operation.op.name == "for" and attrs["trips"] is None)
        params = body.params[int(operation.op.name == "for") :][:carries]
        given = list(body.results[:carries])
        still = [given[k] is params[k] for k in range(carries)]
        owned = [in_memory(param.type) and not still[k] for k, param in enumerate(params)]
        while True:
            plan = self.region(body, {param for param, flag in zip(params, owned, strict=True) if flag})
            places = [plan.whole_param(value) for value in given]
            start = len(body.params) - len(body.params[int(operation.op.name == "for") :])
            still_owned = [flag and places[k] == start + k for k, flag in enumerate(owned)]
            if still_owned == owned:
                break
            owned = still_owned
        rows = body.results[carries:]
        read = [value in used for value in operation.results[len(operation.results) - len(rows) :]]
        columns = {value: k for k, value in reversed([*enumerate(rows)]) if read[k]}  # the first of several
        modes = []
        others = {}
        for k, param in enumerate(params):
            if still[k]:
                modes.append("still")
            elif not in_memory(param.type):
                modes.append("number")
            elif owned[k]:
                modes.append("place")
            else:
                modes.append("column" if param in columns else "swing")
        size = 0
        for k, mode in enumerate(modes):
            if mode == "swing":
                others[k] = root = Root(bytes_of(params[k].type), 0, True, True)
                root.offset, size = size, size + rounded(root.size)
            if mode in ("swing", "column"):
                plan.claim(given[k], f"carry {k}")
        for k, value in enumerate(body.results[carries:]):
            if in_memory(value.type):
                plan.claim(value, f"column {k}")
        plan.base = size
        test = self.region(operation.regions[0], ()) if operation.op.name == "while" else None
        if test is not None:
            test.base = size
        size += max(plan.layout(), test.layout() if test is not None else 0)
        taken = [mode == "place" and first + k in movable for k, mode in enumerate(modes)]
        kept = {k: columns[params[k]] for k, mode in enumerate(modes) if mode == "column"}
        return LoopPlan(test, plan, modes, taken, others, kept, size)


class Plan:
    """The memory of one straight list of operations.

    ``roots``: of each value in memory; ``shifts``: where it begins in its root, None if known at run time only;
    ``areas``: what an operation needs for itself. ``base`` is where the block's memory begins in what it is part of.
    """

    def __init__(
        self,
        planner: Planner,
        params: Sequence[Value],
        operations: Sequence[Operation],
        results: Sequence[Value],
        owned: Collection[Value],
    ) -> None:
        self.planner = planner
        self.params = params
        self.base = 0
        self.end = len(operations)
        self.roots: dict[Value, Root] = {}
        self.shifts: dict[Value, int | None] = {}
        self.areas: dict[Operation, Root] = {}
        self.in_place: dict[Operation, int] = {}
        self.over: dict[Operation, dict[Value, Value]] = {}
        """Per operation the results that are written over operands, and which."""
        self.control: dict[Operation, CondPlan | LoopPlan] = {}
        self.local: list[Root] = []
        self.updates: dict[Value, list[int]] = {}
        """By operand, where operations are that may write over it."""
        self.last: dict[Value, int] = {}
        for index, operation in enumerate(operations):
            for value in operation.operands:
                self.last[value] = index
            for value in overwritten(operation):
                self.updates.setdefault(value, []).append(index)
        for value in results:
            self.last[value] = self.end
        self.owners: dict[Root, int] = {}
        """The number of the parameter whose memory a root is."""
        for k, param in enumerate(params):
            if in_memory(param.type):
                root = Root(bytes_of(param.type), -1, False, param in owned)
                self.owners[root] = k
                self.attach(param, root, 0)
        for index, operation in enumerate(operations):
            self.visit(index, operation)

    # --- sharing -----------------------------------------------------------------------------------
    def attach(self, value: Value, root: Root, shift: int | None) -> None:
        self.roots[value], self.shifts[value] = root, shift
        root.last = max(root.last, self.last.get(value, root.first))
        for update in self.updates.get(value, ()):
            bisect.insort(root.updates, update)

    def new(self, size: int, index: int) -> Root:
        root = Root(size, index, True, True)
        self.local.append(root)
        return root

    def make(self, value: Value, index: int) -> None:
        self.attach(value, self.new(bytes_of(value.type), index), 0)

    def visit(self, index: int, operation: Operation) -> None:
        if operation.regions:
            self.visit_control(index, operation)
            return
        effect = self.planner.effects(operation)
        if effect.scratch:
            self.areas[operation] = self.new(effect.scratch, index)
        results = [value for value in operation.results if in_memory(value.type)]
        if effect.shows and results:
            shown = operation.operands[0]
            below = self.roots.get(shown)
            if below is not None and not self.is_outlived(below, results[0], index):
                shift = self.shifts[shown]
                known = None if shift is None or effect.offset is None else shift + effect.offset
                self.attach(results[0], below, known)
                return
        movable = self.movable(index, operation) if effect.over or effect.in_place is not None else set()
        for position, value in enumerate(results):
            place = effect.in_place
            if position == 0 and place is not None and operation.operands[place] in movable:
                self.in_place[operation] = place
                self.attach(value, self.roots[operation.operands[place]], 0)
                movable.remove(operation.operands[place])
                continue
            found = next((operand for operand in effect.over.get(value, ()) if operand in movable), None)
            if found is None:
                self.make(value, index)
                continue
            movable.remove(found)
            self.over.setdefault(operation, {})[value] = found
            self.attach(value, self.roots[found], 0)

    def is_outlived(self, root: Root, part: Value, index: int) -> bool:
        """Whether a part of an array is read up to where the array may be written over, or later.

        Then a copy of the part is less than one of the array.
        """
        if not root.owned or 2 * bytes_of(part.type) > root.size:
            return False
        place = bisect.bisect_right(root.updates, index)
        return place < len(root.updates) and root.updates[place] <= self.last.get(part, index)

    def movable(self, index: int, operation: Operation) -> set[Value]:
        """The operands that are whole roots of the block's own which only this operation reads, by this operand."""
        found: dict[Root, Value | None] = {}
        for value in operation.operands:
            root = self.roots.get(value)
            if root is None or not root.owned or root.last > index:
                continue
            whole = self.shifts[value] == 0 and root.size == bytes_of(value.type)
            found[root] = value if whole and root not in found else None
        return {value for value in found.values() if value is not None}

    def visit_control(self, index: int, operation: Operation) -> None:
        free = self.movable(index, operation)
        movable = frozenset(
            [k for k, value in enumerate(operation.operands) if value in free and in_memory(value.type)]
        )
        plan = self.control[operation] = self.planner.control(operation, movable, self.last)
        self.areas[operation] = self.new(plan.size, index)
        for position, value in enumerate(operation.results):
            if not in_memory(value.type):
                continue
            if isinstance(plan, CondPlan):
                place = plan.in_place[position]
                if place is None:
                    self.make(value, index)
                else:
                    self.attach(value, self.roots[operation.operands[place]], 0)
                continue
            if position < len(plan.modes):
                operand = operation.operands[position + int(is_counted(operation))]
                if plan.modes[position] == "still" and operand in self.roots:
                    self.attach(value, self.roots[operand], self.shifts[operand])
                    continue
                if plan.taken[position]:
                    self.attach(value, self.roots[operand], 0)
                    continue
            self.make(value, index)

    # --- results -----------------------------------------------------------------------------------
    def whole_param(self, value: Value) -> int | None:
        """The number of the parameter whose memory, all of it and its own, a value has."""
        root = self.roots.get(value)
        if root is None or root.local or not root.owned or self.shifts[value] != 0 or root.size != bytes_of(value.type):
            return None
        return self.owners.get(root)

    def claim(self, value: Value, home: str) -> bool:
        """Let a result of the block be written where it is wanted: it must be a whole root that begins here."""
        root = self.roots.get(value)
        if root is None or not root.local or root.home is not None or self.shifts[value] != 0:
            return False
        if root.size != bytes_of(value.type):
            return False
        root.home = home
        return True

    # --- places ------------------------------------------------------------------------------------
    def layout(self) -> int:
        """Give every root of the arena its offset: the bytes that are needed."""
        free: list[tuple[int, int]] = []
        """Offsets and sizes of what is free below ``size``, in order."""
        active: dict[int, list[Root]] = {}
        """By the index of the last operation that reads them."""
        size, done = 0, -1
        for root in sorted((root for root in self.local if root.home is None), key=lambda root: root.first):
            while done < root.first:
                for ended in active.pop(done, ()):
                    release(free, ended.offset, rounded(ended.size))
                done += 1
            wanted = rounded(root.size)
            place = fitting(free, wanted)
            if place is None:
                if free and free[-1][0] + free[-1][1] == size:
                    root.offset = free.pop()[0]
                else:
                    root.offset = size
                size = root.offset + wanted
            else:
                root.offset, room = free.pop(place)
                if room > wanted:
                    free.insert(place, (root.offset + wanted, room - wanted))
            active.setdefault(root.last, []).append(root)
        return size


def is_counted(operation: Operation) -> bool:
    """Whether the first operand is a trip count."""
    return operation.op.name == "for" and operation.attrs["trips"] is None


def rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def fitting(free: Sequence[tuple[int, int]], wanted: int) -> int | None:
    """The smallest piece that is large enough, of those that are looked at."""
    best = None
    for place in range(max(0, len(free) - _LOOKED_AT), len(free)):
        if free[place][1] >= wanted and (best is None or free[place][1] < free[best][1]):
            best = place
    return best


def release(free: list[tuple[int, int]], offset: int, size: int) -> None:
    """Add a piece, joined with its neighbours."""
    if not size:
        return
    low, high = 0, len(free)
    while low < high:
        middle = (low + high) // 2
        if free[middle][0] < offset:
            low = middle + 1
        else:
            high = middle
    if low < len(free) and offset + size == free[low][0]:
        size += free.pop(low)[1]
    if low and free[low - 1][0] + free[low - 1][1] == offset:
        start, before = free.pop(low - 1)
        free.insert(low - 1, (start, before + size))
    else:
        free.insert(low, (offset, size))
