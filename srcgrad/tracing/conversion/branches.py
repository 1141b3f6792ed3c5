"""``if``, ``x if c else y``, ``and``, ``or``, ``not``, comparisons, ``assert`` and ``raise`` of converted code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Literal, Value, literal
from srcgrad.ir.opdef import Elementwise
from srcgrad.ir.types import BOOL, ArrayType
from srcgrad.tracing.conversion.aliases import settled
from srcgrad.tracing.conversion.asked_objects import tested
from srcgrad.tracing.conversion.binding import FLAG, Flag, flag_of, is_pending, unchecked
from srcgrad.tracing.conversion.classes import adopt_records
from srcgrad.tracing.conversion.effects import (
    answered,
    emit_error,
    emit_raise,
    innermost_attempt,
    is_conditional,
    is_unfinished,
    stands_otherwise,
)
from srcgrad.tracing.conversion.identity import Choice, note_choices, outermost
from srcgrad.tracing.conversion.joined_texts import join_texts
from srcgrad.tracing.conversion.objects import Attributes, Left
from srcgrad.tracing.conversion.shares import SIDES, Slot, bound_where, shares_of
from srcgrad.tracing.conversion.sites import mark, take
from srcgrad.tracing.conversion.state import (
    UNBOUND,
    UNSET,
    Inside,
    Kind,
    Marker,
    Raised,
    Snapshot,
    State,
    Undefined,
    ask_unread,
    described_kind,
    emit_region,
    entered,
    has_effects,
    join_kinds,
    kind_beneath,
    kind_of,
    lifted_by,
    may_be_none,
    region_of,
    same_handle,
    shown,
    truth,
    undecided,
    unknown,
)
from srcgrad.tracing.pytree import TreeDef
from srcgrad.tracing.refusing import require_told
from srcgrad.tracing.storage import Doubt, Pending, Storage
from srcgrad.tracing.trace import Refused, Trace, current_trace
from srcgrad.tracing.tracer import Tracer, from_value

DEEPEST: Final = 100
"""How deep conditionals are nested at most: a recursion that a traced condition ends has no end in a trace."""
DEEP: Final = 8
MOST_DEEP: Final = 256
"""How many blocks there are at most that lie so deep: of a recursion that calls itself twice each level has twice as
many as the one before, and of its program a call needs a small part.
"""
CHEAP: Final = 16
"""The second operand of ``and`` and ``or`` is computed in any case if it is at most so many elementwise operations."""


class Block:
    """A block of statements, traced as a region of its own."""

    def __init__(self, label: str, under: tuple[Value, bool] | None = None) -> None:
        parent = current_trace()
        depth = parent.name.count(": ")
        if depth >= DEEP:
            root = outermost(parent)
            root.deep_blocks += 1
            if depth >= DEEPEST or root.deep_blocks > MOST_DEEP:
                raise Refused("a recursion ends where a traced value says")
        self.trace = Trace(parent, False, f"{parent.name}: {label}", region=True)
        self.trace.under = under
        self.after: Snapshot | None = None
        self.error: BaseException | None = None

    def run(self, body: Callable[[], Any], state: State, before: Snapshot) -> None:
        with entered(self.trace):
            try:
                body()
                take(state, before)
            except Raised as raised:
                self.error = raised.error
                raised.__traceback__ = None  # whose frames would hold objects of the user's
            except Exception as error:
                if not is_conditional(error):
                    raise
                self.error = error
                error.__traceback__ = None
            self.after = state.capture()

    def end(self) -> None:
        """The block's trace is over, and holds no memory any longer."""
        self.trace.alive = False
        self.trace.overlay.clear()

    def written(self) -> dict[Storage, Value]:
        """The memory from outside that the block changes."""
        return self.trace.overlay

    def says(self, x: Any) -> bool | None:
        """Whether a traced condition holds, where that this block runs says so: ``x`` is what was asked, or its not."""
        if not isinstance(x, Tracer) or self.trace.under is None or x.dtype != BOOL or x.ndim or x.chain:
            return None
        if is_pending(x) or any(x.storage in trace.overlay for trace in self.trace.around()):
            return None
        (condition, holds), value = self.trace.under, x.storage.value
        made = condition.producer
        if value is condition:
            return holds
        negated = made is not None and made.op.name == "logical_not" and made.operands[0] is value
        return not holds if negated else None

    def value(self, x: Any, kind: Kind) -> Value:
        with entered(self.trace):
            return flag_of(x.variable) if isinstance(x, Flag) else unchecked(x, kind)


class Joining:
    """What two blocks leave, joined: objects that are the same are kept, numbers and arrays become results."""

    def __init__(self, then: Block, orelse: Block, one: Left, other: Left) -> None:
        self.then, self.orelse = then, orelse
        self.one, self.other = one, other
        self.slots: list[Slot] = []
        self.known: dict[tuple[int, int], Callable[[], Any]] = {}
        self.choices: list[tuple[str, list[Any], Callable[[], Any], set[int] | None]] = []
        self.kept: set[int] | None = None
        """What the parts of an object that is made of two are in both."""
        self.depth = 0

    def join(self, name: str, one: Any, other: Any) -> Callable[[], Any]:
        """A function that gives the joined object once the results are there."""
        key = (id(one), id(other))
        if key not in self.known:
            why = f"is another {type(one).__name__} depending on a traced condition"
            self.known[key] = lambda: Undefined(name, why)  # in itself
            self.known[key] = self.joined(name, one, other)
        return self.known[key]

    def joined(self, name: str, one: Any, other: Any) -> Callable[[], Any]:
        if same_handle(one, other):
            if self.kept is not None and one is other:
                self.kept.add(id(one))
            return lambda: one
        for x, y, block in ((one, other, self.orelse), (other, one, self.then)):
            if isinstance(x, bool) and block.says(y) is x:
                return lambda: x
        optional = self.optional(name, one, other)
        if optional is not None:
            return optional
        if is_pending(one) or is_pending(other):
            return self.maybe_bound(name, one, other)
        if isinstance(one, Undefined) or isinstance(other, Undefined):
            return lambda: one if isinstance(one, Undefined) else other
        if isinstance(one, Marker) or isinstance(other, Marker):
            return self.half_bound(name, one, other)
        kinds = kind_of(one), kind_of(other)
        if kinds[0] is not None and kinds[1] is not None:
            kind = join_kinds(name, kinds[0], kinds[1])
            if isinstance(kind, Kind):
                return self.slot(name, one, other, kind)
            if not name.startswith(("_sg_", "[")):  # it may never be used
                return lambda: Undefined(name, f"has no one kind: {kind}")
            raise Refused(kind)
        text = join_texts(self, name, one, other)
        if text is not None:
            return text
        require_told(one)
        require_told(other)
        (ones, tree), (others, other_tree) = self.one.tree(one), self.other.tree(other)
        if tree is not None and tree == other_tree:
            return self.chosen(name, [one, other], lambda: self.tree(name, tree, ones, others))
        attributes, others_of = self.one.attributes(one), self.other.attributes(other)
        if attributes is not None and others_of is not None and attributes.alike(others_of):
            return self.object(name, [one, other], attributes, attributes.values(), others_of.values())
        kinds_of_both = f"{described_kind(one)} or {described_kind(other)}"
        if one is None or other is None or type(one) is not type(other):
            why = f"is {kinds_of_both}, depending on a traced condition"
        else:
            why = f"is another {type(one).__name__} depending on a traced condition"
        if name.startswith(("_sg_", "[")):
            raise Refused(f"{shown(name)} {why}")
        return lambda: Undefined(name, why)

    def maybe_bound(self, name: str, one: Any, other: Any) -> Callable[[], Any]:
        """A variable that is bound or not inside of one of the blocks: its value, and a flag."""
        kinds = [kind_of(x) for x in (one, other) if x is not UNBOUND]
        first, last = kinds[0], kinds[-1]
        kind = None if first is None or last is None else join_kinds(name, first, last)
        if not isinstance(kind, Kind) or name.startswith("["):
            return lambda: Undefined(name, "is set on one path of a traced condition only")
        made = self.slot(name, one, other, kind)
        slot = self.slots[-1]
        self.slot(name, Flag(one), Flag(other), FLAG)
        slot.flag = self.slots[-1]
        return made

    def optional(self, name: str, one: Any, other: Any) -> Callable[[], Any] | None:
        """A number or an array that is None on a path; None if this is anything else."""
        pair = one, other
        if not any(x is None or may_be_none(x) for x in pair):
            return None
        if any(is_pending(x) and not may_be_none(x) for x in pair):
            return None
        kinds = [kind_beneath(x) for x in pair if x is not None]
        first, last = kinds[0], kinds[-1]
        kind = None if first is None or last is None else join_kinds(name, first, last)
        if not isinstance(kind, Kind):
            return None
        made = self.slot(name, one, other, kind)
        slot = self.slots[-1]
        slot.optional = True
        if any(map(may_be_none, pair)):
            self.slot(name, Flag(one), Flag(other), FLAG)
            slot.flag = self.slots[-1]
        return made

    def slot(self, name: str, one: Any, other: Any, kind: Kind) -> Callable[[], Any]:
        found = Slot(name, one, other, kind)
        self.slots.append(found)
        return lambda: found.result

    def tree(self, name: str, tree: TreeDef, ones: Sequence[Any], others: Sequence[Any]) -> Callable[[], Any]:
        parts = [self.join(name, a, b) for a, b in zip(ones, others, strict=True)]
        made: list[Any] = []

        def build() -> Any:
            if not made:
                made.append(adopt_records(tree.unflatten([part() for part in parts])))
            return made[0]

        return build

    def object(
        self, name: str, sources: list[Any], like: Attributes, ones: Sequence[Any], others: Sequence[Any]
    ) -> Callable[[], Any]:
        """An object of the user's class that two blocks have made."""
        if self.kept is None:
            self.kept = set()

        def build() -> Callable[[], Any]:
            parts = [self.join(name, a, b) for a, b in zip(ones, others, strict=True)]
            return functools.cache(lambda: like.made([part() for part in parts]))

        return self.chosen(name, sources, build)

    def chosen(self, name: str, sources: list[Any], build: Callable[[], Callable[[], Any]]) -> Callable[[], Any]:
        """Join two containers or objects, and note that what is made stands for them and all in them."""
        self.depth += 1
        made = build()
        self.depth -= 1
        if not self.depth:
            self.choices.append((name, sources, made, self.kept))
            self.kept = None
        return made

    def half_bound(self, name: str, one: Any, other: Any) -> Callable[[], Any]:
        """A variable that only one block binds."""
        marker, value = (one, other) if isinstance(one, Marker) else (other, one)
        if isinstance(value, Marker):
            return lambda: value
        kind = kind_of(value)
        if marker is UNSET:
            left = self.other if one is marker else self.one
            leaves, tree = left.tree(value)
            attributes = left.attributes(value)
            if kind is not None:
                return self.slot(name, one, other, kind)
            if attributes is not None:
                leaves, empty = attributes.values(), [UNSET] * len(attributes.values())
                pair = (empty, leaves) if one is marker else (leaves, empty)
                return self.object(name, [value], attributes, *pair)
            if tree is not None:
                empty = [UNSET] * len(leaves)
                return self.tree(name, tree, *((empty, leaves) if one is marker else (leaves, empty)))
            raise Refused(f"what the function returns is a {type(value).__name__} or something else, "
                          "depending on a traced condition")  # fmt: skip
        if kind is not None and not name.startswith("["):
            return self.slot(name, one, other, kind)
        return lambda: Undefined(name, "is set on one path of a traced condition only")


def if_(
    test: Any, then: Callable[[], Any], orelse: Callable[[], Any], get: Any, put: Any, names: Any, visible: Any
) -> None:
    """The statement ``if``."""
    test = tested(test)
    if not undecided(test):
        (then if test else orelse)()
        return
    condition = truth(test)
    state = State(get, put, names, visible)
    before = state.capture()
    first, second = Block("if", (condition, True)), Block("else", (condition, False))
    take_back = mark(current_trace())
    taken: bool | None = None
    try:
        try:
            first.run(then, state, before)
            state.restore(before)
            second.trace.tables.append(first.trace.overlay)
            second.run(orelse, state, before)
        except Inside as inside:
            if inside.attempt.trace is not current_trace():
                raise
            first.error = inside
        state.restore(before)
        if first.error is not None or second.error is not None:
            take_back()
            taken = answered(from_value(condition, scalar=True), fails_where(first, second))
            if taken is None:
                raising(condition, first, second, then, orelse, state, before)
        else:
            note_choices(join_blocks(condition, first, second, state), state)
    except BaseException:
        state.restore(before)
        raise
    finally:
        first.end()
        second.end()
    if taken is not None:  # in the body of a try, which runs once for each answer
        (then if taken else orelse)()


def fails_where(first: Block, second: Block) -> bool | None:
    """The truth value of the condition with which something fails; None where both blocks fail, or one may."""
    if isinstance(first.error, Inside) or (first.error is not None and second.error is not None):
        return None
    return first.error is not None


def raising(
    condition: Value, first: Block, second: Block, then: Callable[[], Any], orelse: Callable[[], Any],
    state: State, before: Snapshot,
) -> None:  # fmt: skip
    """A block that ends with ``raise``: a check, behind which the other block runs without a condition.

    What the block has written is seen where a ``try`` handles the error, and nowhere else: the program ends.
    """
    handled = innermost_attempt() is not None
    for block in (first, second):
        if block.error is not None and handled and block.written():
            raise Refused("a block changes an array before it raises an error", hint="raise the error first")
    held = from_value(condition, scalar=True)
    opposite: Any = np.logical_not(held)
    for block, fails in ((first, held), (second, opposite)):
        if block.error is None:
            continue
        assert block.after is not None
        back, there = functools.partial(state.restore, before), functools.partial(state.restore, block.after)
        stores = stands_otherwise(block.trace, back, there)
        if stores or is_unfinished(block.error) or has_effects(block.trace.builder.operations):
            there()
            raise_in_block(truth(fails), block)
            back()
        else:
            emit_raise(fails, block.error)
    if first.error is not None and second.error is not None:
        if not current_trace().region:
            raise Refused("an error is raised in any case")
        raise Raised(RuntimeError("one of two errors was raised"))
    (orelse if first.error is not None else then)()


def raise_in_block(condition: Value, block: Block) -> None:
    """All that a block does, before it raises an error with numbers that it may have computed."""
    assert block.error is not None
    with entered(block.trace):
        emit_error(literal(True, ArrayType(BOOL)), block.error)
    nothing, outer = Block("else"), lifted_by(block.trace)
    nothing.end()
    emit_region("cond", [condition, *outer], {}, [region_of(b.trace, [], outer, []) for b in (block, nothing)])


def join_blocks(condition: Value, first: Block, second: Block, state: State) -> list[Choice]:
    """Emit the two blocks as one operation, and give the variables and containers what it results in.

    Returns the containers and records that stand for one or another.
    """
    one, other = first.after, second.after
    assert one is not None and other is not None
    if one.structures != other.structures:
        raise Refused(
            "a list, dict or set gets another size or other keys, depending on a traced condition",
            hint="fill an array instead, or build the container outside of the condition",
        )
    joining = Joining(first, second, Left(state, one, other), Left(state, other, one))
    cells = [
        joining.join(name, a, b) for name, a, b in zip(state.cell_names(one), one.cells(), other.cells(), strict=True)
    ]
    storages = list(dict.fromkeys([*first.written(), *second.written()]))
    shares = shares_of(joining.slots)
    asked = shares.asked()
    results: list[list[Value]] = []
    for block, side in zip((first, second), SIDES, strict=True):
        values = [block.value(getattr(slot, side), slot.kind) for slot in joining.slots]
        with entered(block.trace):
            values += [block.trace.content(storage) for storage in storages]
            values += [share.predicate(side) for share in asked]
        ask_unread(block.trace, values)
        results.append(values)
    effects = any(has_effects(block.trace.builder.operations) for block in (first, second))
    if joining.slots or storages or effects:
        outer = lifted_by(first.trace, second.trace)
        regions = [
            region_of(block.trace, [], outer, values) for block, values in zip((first, second), results, strict=True)
        ]
        operation = emit_region("cond", [condition, *outer], {}, regions)
        trace = current_trace()
        for slot, value in zip(joining.slots, operation.results, strict=False):
            slot.result = from_value(value, slot.kind.scalar, slot.kind.weak)
            if slot.flag is None and (slot.one is UNBOUND or slot.other is UNBOUND):
                slot.result.storage.pending = Pending(slot.name, bound_where(condition, slot.other is UNBOUND))
            elif slot.flag is None and slot.optional:
                predicate = bound_where(condition, slot.other is None)
                slot.result.storage.pending = Pending(slot.name, predicate, True)
            settled(slot.result, slot.name, [slot.one, slot.other])
            if any(rounded(x, slot.kind) for x in (slot.one, slot.other)):
                doubt = slot.result.storage.doubt or Doubt(slot.name, dtype=True, layout=False)
                slot.result.storage.doubt = doubt._replace(dtype=True)
        for slot in joining.slots:
            if slot.flag is not None:
                slot.result.storage.pending = Pending(slot.name, slot.flag.result.storage.value, slot.optional)
        rest = operation.results[len(joining.slots) :]
        shares.link(condition, rest[len(storages) :])
        for storage, value in zip(storages, rest, strict=False):
            trace.write(storage, value)
    state.restore(state.rebuilt(one, [cell() for cell in cells]))
    return [Choice(name, made(), sources, kept) for name, sources, made, kept in joining.choices]


# --- expressions -----------------------------------------------------------------------------


def rounded(x: Any, kind: Kind) -> bool:
    """Whether a number is Python's, and what stands for it and for one of NumPy's does not hold it."""
    own = kind_of(x) if kind.scalar and not kind.weak else None
    if isinstance(x, Tracer) and x.storage.doubt is not None and own is not None:
        return x.storage.doubt.dtype
    if own is None or not own.weak or own.type.dtype.kind not in "fc" or own.type.dtype == kind.type.dtype:
        return False
    number = x
    if isinstance(x, Tracer):
        value = x.storage.value
        number = value.value if isinstance(value, Literal) and not x.chain else None
    return number is None or not np.array_equal(number, kind.type.dtype.type(number), equal_nan=True)


def choose(test: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
    """``then() if test else orelse()``."""
    test = tested(test)
    if not undecided(test):
        return then() if test else orelse()
    box: list[Any] = [UNSET]

    def put(values: Any) -> None:
        box[0] = values[0]

    def run(value: Callable[[], Any]) -> Callable[[], None]:
        return lambda: put((value(),))

    visible = closure_values(then, orelse)
    if_(test, run(then), run(orelse), lambda: (box[0],), put, ("_sg_value",), lambda: visible)
    return box[0]


def closure_values(*functions: Callable[..., Any]) -> tuple[Any, ...]:
    """What the thunks of an expression can reach."""
    found = []
    for function in functions:
        for cell in getattr(function, "__closure__", None) or ():
            try:
                found.append(cell.cell_contents)
            except ValueError:
                continue
    return tuple(found)


def logical(test: Any, other: Callable[[], Any], combine: Any, conjunction: bool) -> Any:
    """``and`` or ``or`` whose first operand is traced."""
    first = truth(test)
    block = Block("and" if conjunction else "or")
    reached = closure_values(other)
    state = State(tuple, lambda values: None, (), lambda: reached)
    before = state.capture()
    second: Any = None
    failed = False
    with entered(block.trace):
        try:
            second = other()
        except Raised:
            raise Refused("an expression raises an error on a traced condition") from None
        except Exception as error:
            if not is_conditional(error):
                raise
            failed = True
        finally:
            block.trace.alive = False
        operations = block.trace.builder.operations
        cheap = not (failed or has_effects(operations)) and (
            not isinstance(second, Tracer)
            or all(isinstance(operation.op, Elementwise) or operation.op.name in CHEAP_OPS for operation in operations)
        )
    if state.changed(before):
        state.restore(before)
        cheap = False
    boolean = test.dtype == BOOL and (isinstance(second, bool) or getattr(second, "dtype", None) == BOOL)
    cheap = cheap and not (may_be_none(test) or may_be_none(second))
    if cheap and boolean and isinstance(second, bool) and second is not conjunction:
        return second  # x and False, x or True
    if cheap and boolean and np.size(second) == 1 and len(block.trace.builder.operations) <= CHEAP:
        again = other()
        return combine(from_value(first, scalar=True), again)
    return choose(test, other, lambda: test) if conjunction else choose(test, lambda: test, other)


CHEAP_OPS: Final = frozenset(
    {
        *("cast", "broadcast", "reshape", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal"),
        *("logical_and", "logical_or", "logical_not", "isnan", "isfinite"),
    }
)


def and_(test: Any, other: Callable[[], Any]) -> Any:
    """``test and other()``."""
    if not unknown(test):
        return choose(test, other, lambda: test)
    return logical(test, other, np.logical_and, True)


def or_(test: Any, other: Callable[[], Any]) -> Any:
    """``test or other()``."""
    if not unknown(test):
        return choose(test, lambda: test, other)
    return logical(test, other, np.logical_or, False)


def asked(test: Any) -> Any:
    """An operand of ``and`` or ``or`` of which only the truth counts: a number is one no more."""
    test = tested(test)
    if not unknown(test):
        return bool(test) if isinstance(test, (int, float, complex, np.generic, type(None))) else test
    if test.dtype == BOOL and not may_be_none(test):
        return test
    found = from_value(truth(test), scalar=True)
    found.weak = True
    return found


def not_(test: Any) -> Any:
    """``not test``."""
    test = tested(test)
    if not unknown(test):
        return not test
    found: Tracer = np.logical_not(from_value(truth(test), scalar=True))  # type: ignore[assignment]
    found.weak = True
    return found
