"""``if``, ``x if c else y``, ``and``, ``or``, ``not``, comparisons, ``assert`` and ``raise`` of converted code."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Value
from srcgrad.ir.opdef import REGISTRY, Elementwise
from srcgrad.ir.types import BOOL
from srcgrad.tracing.conversion.aliases import array_storage, link, may_be_one, outside
from srcgrad.tracing.conversion.state import (
    UNBOUND,
    UNSET,
    Kind,
    Marker,
    Raised,
    Snapshot,
    State,
    Undefined,
    described_kind,
    emit_check,
    emit_raise,
    emit_region,
    entered,
    has_effects,
    join_kinds,
    kind_of,
    lifted_by,
    region_of,
    require_no_attempt,
    same_handle,
    shown,
    tree_of,
    truth,
    unknown,
    value_as,
)
from srcgrad.tracing.conversion.texts import Text
from srcgrad.tracing.pytree import TreeDef
from srcgrad.tracing.trace import CURRENT, Refused, Storage, Trace, current_trace
from srcgrad.tracing.tracer import Tracer, from_value

CHEAP: Final = 16
"""The second operand of ``and`` and ``or`` is computed in any case if it is at most so many elementwise operations."""
COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Is": operator.is_,
    "IsNot": operator.is_not,
}


class Block:
    """A block of statements, traced as a region of its own."""

    def __init__(self, label: str) -> None:
        parent = current_trace()
        self.trace = Trace(parent, False, f"{parent.name}: {label}", region=True)
        self.after: Snapshot | None = None
        self.error: BaseException | None = None

    def run(self, body: Callable[[], Any], state: State) -> None:
        with entered(self.trace):
            try:
                body()
            except Raised as raised:
                self.error = raised.error
            self.after = state.capture()

    def end(self) -> None:
        """The block's trace is over, and holds no memory any longer."""
        self.trace.alive = False
        self.trace.overlay.clear()

    def written(self) -> dict[Storage, Value]:
        """The memory from outside that the block changes."""
        return self.trace.overlay

    def value(self, x: Any, kind: Kind) -> Value:
        with entered(self.trace):
            return value_as(x, kind)


class Slot:
    """A result of the two blocks: the objects they give, and the kind that holds both."""

    def __init__(self, name: str, one: Any, other: Any, kind: Kind) -> None:
        self.name, self.one, self.other, self.kind = name, one, other, kind
        self.result: Any = None


class Joining:
    """What two blocks leave, joined: objects that are the same are kept, numbers and arrays become results."""

    def __init__(self, then: Block, orelse: Block) -> None:
        self.then, self.orelse = then, orelse
        self.slots: list[Slot] = []
        self.known: dict[tuple[int, int], Callable[[], Any]] = {}

    def join(self, name: str, one: Any, other: Any) -> Callable[[], Any]:
        """A function that gives the joined object once the results are there."""
        key = (id(one), id(other))
        if key not in self.known:
            self.known[key] = self.joined(name, one, other)
        return self.known[key]

    def joined(self, name: str, one: Any, other: Any) -> Callable[[], Any]:
        if same_handle(one, other):
            return lambda: one
        for x in (one, other):
            if isinstance(x, Tracer) and x.storage.pending is not None:
                return lambda: Undefined(name, "is set on one path of a traced condition only")
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
        (ones, tree), (others, other_tree) = tree_of(one), tree_of(other)
        if tree is not None and tree == other_tree:
            return self.tree(name, tree, ones, others)
        kinds_of_both = f"{described_kind(one)} or {described_kind(other)}"
        if one is None or other is None or type(one) is not type(other):
            why = f"is {kinds_of_both}, depending on a traced condition"
        else:
            why = f"is another {type(one).__name__} depending on a traced condition"
        if name.startswith(("_sg_", "[")):
            raise Refused(f"{shown(name)} {why}")
        return lambda: Undefined(name, why)

    def slot(self, name: str, one: Any, other: Any, kind: Kind) -> Callable[[], Any]:
        found = Slot(name, one, other, kind)
        self.slots.append(found)
        return lambda: found.result

    def tree(self, name: str, tree: TreeDef, ones: Sequence[Any], others: Sequence[Any]) -> Callable[[], Any]:
        parts = [self.join(name, a, b) for a, b in zip(ones, others, strict=True)]
        made: list[Any] = []

        def build() -> Any:
            if not made:
                made.append(tree.unflatten([part() for part in parts]))
            return made[0]

        return build

    def half_bound(self, name: str, one: Any, other: Any) -> Callable[[], Any]:
        """A variable that only one block binds."""
        marker, value = (one, other) if isinstance(one, Marker) else (other, one)
        if isinstance(value, Marker):
            return lambda: value
        kind = kind_of(value)
        if marker is UNSET:
            leaves, tree = tree_of(value)
            if kind is not None:
                return self.slot(name, one, other, kind)
            if tree is not None:
                empty = [UNSET] * len(leaves)
                return self.tree(name, tree, *((empty, leaves) if one is marker else (leaves, empty)))
            raise Refused(f"what the function returns is a {type(value).__name__} or something else, "
                          "depending on a traced condition")  # fmt: skip
        if kind is not None and not name.startswith("["):
            return self.slot(name, one, other, kind)
        return lambda: Undefined(name, "is set on one path of a traced condition only")

    def link(self) -> None:
        """Link the results that shared memory on one of the paths, with each other or with what is outside."""
        arrays = [slot for slot in self.slots if not slot.kind.scalar]
        for side in ("one", "other"):
            found = [(slot, array_storage(getattr(slot, side))) for slot in arrays]
            for position, (slot, storage) in enumerate(found):
                if storage is None:
                    continue
                result = slot.result.storage
                for other in outside(storage):
                    link(result, other, slot.name)
                for later, memory in found[position + 1 :]:
                    if memory is not None and may_be_one(storage, memory):
                        link(result, later.result.storage, slot.name)


def if_(
    test: Any, then: Callable[[], Any], orelse: Callable[[], Any], get: Any, put: Any, names: Any, visible: Any
) -> None:
    """The statement ``if``."""
    if isinstance(test, Text):
        test.refuse()
    if not unknown(test):
        (then if test else orelse)()
        return
    condition = truth(test)
    state = State(get, put, names, visible)
    before = state.capture()
    first, second = Block("if"), Block("else")
    try:
        first.run(then, state)
        state.restore(before)
        second.trace.tables.append(first.trace.overlay)
        second.run(orelse, state)
        state.restore(before)
        if first.error is not None or second.error is not None:
            raising(test, condition, first, second, then, orelse)
            return
        join_blocks(condition, first, second, state)
    except BaseException:
        state.restore(before)
        raise
    finally:
        first.end()
        second.end()


def raising(
    test: Tracer, condition: Value, first: Block, second: Block, then: Callable[[], Any], orelse: Callable[[], Any]
) -> None:
    """A block that ends with ``raise``: a check, behind which the other block runs without a condition."""
    for block in (first, second):
        if block.error is not None and (has_effects(block.trace.builder.operations) or block.written()):
            raise Refused("a block does something else before it raises an error", hint="raise the error first")
    held = from_value(condition, scalar=True)
    opposite: Any = np.logical_not(held)
    if first.error is not None:
        emit_raise(held, first.error)
        if second.error is not None:
            emit_raise(opposite, second.error)
            raise Raised(second.error)
        orelse()
    elif second.error is not None:
        emit_raise(opposite, second.error)
        then()


def join_blocks(condition: Value, first: Block, second: Block, state: State) -> None:
    """Emit the two blocks as one operation, and give the variables and containers what it results in."""
    one, other = first.after, second.after
    assert one is not None and other is not None
    if one.structures != other.structures:
        raise Refused(
            "a list, dict or set gets another size or other keys, depending on a traced condition",
            hint="fill an array instead, or build the container outside of the condition",
        )
    joining = Joining(first, second)
    cells = [
        joining.join(name, a, b) for name, a, b in zip(state.cell_names(one), one.cells(), other.cells(), strict=True)
    ]
    storages = list(dict.fromkeys([*first.written(), *second.written()]))
    results: list[list[Value]] = []
    for block, side in ((first, "one"), (second, "other")):
        values = [block.value(getattr(slot, side), slot.kind) for slot in joining.slots]
        with entered(block.trace):
            values += [block.trace.read(storage) for storage in storages]
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
            if slot.one is UNBOUND or slot.other is UNBOUND:
                slot.result.storage.pending = (slot.name, bound_where(condition, slot.other is UNBOUND))
        joining.link()
        for storage, value in zip(storages, operation.results[len(joining.slots) :], strict=True):
            trace.write(storage, value)
    state.restore(state.rebuilt(one, [cell() for cell in cells]))


def bound_where(condition: Value, holds: bool) -> Value:
    if holds:
        return condition
    return current_trace().emit(REGISTRY["logical_not"], [condition])


# --- expressions -----------------------------------------------------------------------------


def choose(test: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
    """``then() if test else orelse()``."""
    if isinstance(test, Text):
        test.refuse()
    if not unknown(test):
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
    with entered(block.trace):
        try:
            second = other()
        except Raised:
            raise Refused("an expression raises an error on a traced condition") from None
        finally:
            block.trace.alive = False
        cheap = not isinstance(second, Tracer) or all(
            isinstance(operation.op, Elementwise) or operation.op.name in CHEAP_OPS
            for operation in block.trace.builder.operations
        )
    if state.changed(before):
        state.restore(before)
        cheap = False
    boolean = test.dtype == BOOL and (isinstance(second, bool) or getattr(second, "dtype", None) == BOOL)
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
        return other() if test else test
    return logical(test, other, np.logical_and, True)


def or_(test: Any, other: Callable[[], Any]) -> Any:
    """``test or other()``."""
    if not unknown(test):
        return test if test else other()
    return logical(test, other, np.logical_or, False)


def not_(test: Any) -> Any:
    """``not test``."""
    if not unknown(test):
        return not test
    return np.logical_not(from_value(truth(test), scalar=True))


def compared(name: str, left: Any, right: Any) -> Any:
    if name in ("In", "NotIn"):
        found = contains(right, left)
        return found if name == "In" else not_(found)
    return COMPARISONS[name](left, right)


def contains(container: Any, item: Any) -> Any:
    """``item in container``."""
    if isinstance(container, Tracer):
        return np.any(container == item)
    if type(container) in (list, tuple) and (isinstance(item, Tracer) or any(map(unknown, container))):
        found: Any = False
        for other in container:
            found = or_(found, functools.partial(same_item, item, other))
        return found
    return item in container


def same_item(item: Any, other: Any) -> Any:
    return other is item or other == item


def compare(names: tuple[str, ...], left: Any, *operands: Callable[[], Any]) -> Any:
    """A chain of comparisons, each operand evaluated once."""
    right = operands[0]()
    result = compared(names[0], left, right)
    if len(operands) == 1:
        return result
    return and_(result, lambda: compare(names[1:], right, *operands[1:]))


# --- errors -----------------------------------------------------------------------------


def assert_(test: Callable[[], Any], message: Callable[[], Any] | None) -> None:
    """The statement ``assert``."""
    if not __debug__:
        return
    condition = test()
    if not unknown(condition):
        if not condition:
            raise_assertion(message)
        return
    said = message() if message is not None else ""
    if isinstance(said, Text):
        said.refuse()
    emit_check(from_value(truth(condition), scalar=True), "AssertionError", str(said))


def raise_assertion(message: Callable[[], Any] | None) -> None:
    error = AssertionError() if message is None else AssertionError(message())
    raise raise_(lambda: error, ...)


def raise_(make: Callable[[], Any], cause: Any) -> BaseException:
    """The error that a ``raise`` statement raises; in a block on a traced condition it ends the block."""
    error = make()
    if isinstance(error, type):
        error = error()
    if cause is not Ellipsis:
        error.__cause__ = cause
    trace = CURRENT.get()
    if trace is None or not trace.region or trace.attempts:
        return error  # type: ignore[no-any-return]
    if any(isinstance(argument, (Tracer, Text)) for argument in error.args):
        raise Refused("the message of an error holds traced values")
    require_no_attempt()
    raise Raised(error)
