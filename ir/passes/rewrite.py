"""The sweep that the forward passes share: rebuild a function once, merging, folding and rewriting on the way.

Operations are visited in order, so each one sees operands that are already simplified. One whose operands did not
change is kept as it is; one that equals an earlier one is merged with it; then a folder and rules may replace its
results. What a rule emits goes through the same steps, so rules apply until none fires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar
from typing import Literal as OneOf

from srcgrad.ir.core import NO_ATTRS, Attrs, Builder, Function, Literal, Operation, Region, Value
from srcgrad.ir.errors import InternalError
from srcgrad.ir.opdef import Op, Term
from srcgrad.ir.source import Span

AnyRegion = TypeVar("AnyRegion", bound=Region)

Folder = Callable[[Operation], Sequence[Literal] | None]
"""The values of an operation's results, or None; asked about pure operations without regions, on literals only."""

KINDS: Final = "biufc"
"""The dtype kinds: booleans, integers, unsigned integers, floating and complex numbers."""

DEPTH_LIMIT: Final = 16
"""How deep what rules emit is rewritten by rules in turn: a bound on recursion, which no program's length reaches."""


@dataclass(frozen=True, eq=False, slots=True)
class Rule:
    """An equation, from left to right.

    ``name`` is the equation. ``op`` is the outermost op of its left side and ``kinds`` the dtype kinds of that op's
    last operand for which it holds. ``apply`` gives what replaces the result of an operation, or None where the left
    side does not match; it emits with ``builder.emit`` or through terms. ``examples`` are left sides on which the
    equation is checked: functions of terms, named ``p, q`` for booleans, of ``shape`` (of any shape, if None).

    ``stage``: an ``exact`` rule keeps every bit of the value, and the derivatives with their structural zeros; a
    ``limit`` rule keeps the value to rounding and gives derivatives their limit at a singular point, so it belongs
    before differentiation; a ``final`` rule keeps values only, so it belongs after. An exact rule that is ``early``
    is used before differentiation too: what it leaves out would come back several times in derivatives.
    """

    name: str
    op: str
    kinds: str
    apply: Callable[[Operation, Builder], Value | None]
    examples: tuple[Callable[..., Term], ...]
    shape: tuple[int, ...] | None
    stage: OneOf["exact", "limit", "final"]
    early: bool = False

    def __repr__(self) -> str:
        return f"<rule {self.name}>"


class RuleSet:
    """Rules, found by the op they rewrite and tried in the order given.

    >>> from srcgrad.ir.passes.rules import EXACT
    >>> [rule.name for rule in EXACT.table["neg"]["f"]][0]
    'neg(neg(x)) -> x'
    """

    __slots__ = ("rules", "table")

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules = tuple(rules)
        table: dict[str, dict[str, tuple[Rule, ...]]] = {}
        for rule in self.rules:
            of_op = table.setdefault(rule.op, dict.fromkeys(KINDS, ()))
            for kind in rule.kinds:
                of_op[kind] = (*of_op[kind], rule)
        self.table: Final[Mapping[str, Mapping[str, tuple[Rule, ...]]]] = table
        """By the name of the op and the dtype kind of its last operand."""

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)


NO_RULES: Final = RuleSet()
FOLD: Final = "fold"


class Fired(NamedTuple):
    """A rule that fired (``"fold"`` for constant folding), and the place in user code of the operation it replaced."""

    rule: str
    span: Span | None


def rewrite(
    function: AnyRegion, rules: RuleSet = NO_RULES, folder: Folder | None = None, fired: list[Fired] | None = None
) -> AnyRegion:
    """The function after one forward sweep; regions inside operations are swept too.

    Equal pure operations are merged; ``folder`` and ``rules`` replace results; what was replaced is left out, what it
    was computed from stays for dead code elimination. A function in which nothing changes is returned itself. Each rule
    that fires is appended to ``fired``.

    Raises:
        InternalError: a rule gave a value of another type.
    """
    return Sweep(rules, folder, fired).run(function)


def with_operands(operation: Operation, operands: tuple[Value, ...], regions: tuple[Region, ...]) -> Operation:
    """The same application of other operands of the same types, with the same span, names and linear marks."""
    linear = False
    for operand in operands:
        if operand.linear:
            linear = True
            break
    types = [result.type for result in operation.results]
    copy = Operation(operation.op, operands, operation.attrs, regions, types, operation.span, linear)
    for position, result in enumerate(operation.results):
        if result.name is not None:
            copy.results[position].name = result.name
    return copy


def rebuilt(region: AnyRegion, operations: Sequence[Operation], results: Sequence[Value]) -> AnyRegion:
    """A region with the same parameters (and name)."""
    if isinstance(region, Function):
        return Function(region.name, region.params, operations, results)  # type: ignore[return-value]
    return Region(region.params, operations, results)  # type: ignore[return-value]


class Sweep(Builder):
    """A builder that simplifies what is emitted into it, and runs one region through itself."""

    __slots__ = ("created", "depth", "fired", "folder", "inside", "moved", "replaced", "rules", "table")

    def __init__(self, rules: RuleSet, folder: Folder | None, fired: list[Fired] | None, inside: bool = False) -> None:
        super().__init__()
        self.inside = inside
        """Whether what is swept is a region of an operation."""
        self.rules = rules
        self.table = rules.table
        self.folder = folder
        self.fired = fired
        self.replaced: dict[Value, Value] = {}  # results of operations in `operations` -> simpler values
        self.moved: dict[Value, Value] = {}  # values of the region -> values of the new one, where they differ
        self.created: Operation | None = None
        self.depth = 0

    # --- what rules emit -------------------------------------------------------------------------
    def emit_operation(
        self, op: Op, operands: Sequence[Value], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Operation:
        count = len(self.operations)
        operation = super().emit_operation(op, operands, attrs, regions)
        if len(self.operations) != count:
            self.created = operation
            if self.depth < DEPTH_LIMIT:
                self.depth += 1
                self.simplify(operation)
                self.depth -= 1
        return operation

    def emit(self, op: Op, operands: Sequence[Value], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()) -> Value:
        """The value of an op that has one result, simplified."""
        result = self.emit_operation(op, operands, attrs, regions).results[0]
        return self.replaced.get(result, result)

    # --- the sweep -------------------------------------------------------------------------------
    def run(self, region: AnyRegion) -> AnyRegion:
        moved, replaced, memo = self.moved, self.replaced, self.memo
        changed = False
        key: Any
        found: Operation | None
        for operation in region.operations:
            op, operands, attrs = operation.op, operation.operands, operation.attrs
            if moved:  # only results of operations move
                operands = tuple([v if v.producer is None else moved.get(v, v) for v in operands])
            if op.effect or operation.regions or not op.mergeable:
                found = self.keep(operation, operands)
                changed = changed or found is not operation
            else:
                key = (op, operands, tuple(attrs.items())) if attrs else (op, operands)
                found = self.equal(key)
                if found is None:
                    found = operation if operands == operation.operands else with_operands(operation, operands, ())
                    memo[key] = found
                    self.operations.append(found)
                    self.span = operation.span
                    self.simplify(found)
            for old, new in zip(operation.results, found.results, strict=True):
                value = replaced.get(new, new) if replaced else new
                if value is not old:
                    moved[old] = value
                    if old.name is not None:
                        self.name(value, old.name)
        if not (changed or moved or replaced):
            return region
        operations = self.operations
        if replaced:
            operations = [kept for kept in operations if not kept.results or kept.results[0] not in replaced]
        return rebuilt(region, operations, [moved.get(value, value) for value in region.results])

    def keep(self, operation: Operation, operands: tuple[Value, ...]) -> Operation:
        """Emit an operation that is not merged: it has an effect or regions, or separates computations."""
        regions = operation.regions
        if regions:
            swept = [Sweep(self.rules, self.folder, self.fired, True).run(region) for region in regions]
            if any(new is not old for new, old in zip(swept, regions, strict=True)):
                regions = tuple(swept)
        if regions is not operation.regions or operands != operation.operands:
            operation = with_operands(operation, operands, regions)
        self.operations.append(operation)
        return operation

    def name(self, value: Value, name: str) -> None:
        """Give what a rule made the name of what it replaces; other values belong to the function that is swept."""
        if value.name is None and value.producer is not None and value.producer is self.created:
            value.name = name

    def simplify(self, operation: Operation) -> None:
        """Replace the results of a new operation, if the folder or a rule can."""
        operands = operation.operands
        if not operands:
            return
        if isinstance(operands[-1], Literal) and self.folder is not None:
            folded = self.folder(operation) if all(isinstance(value, Literal) for value in operands) else None
            if folded is not None:
                self.replaced.update(zip(operation.results, folded, strict=True))
                self.note(FOLD)
                return
        of_op = self.table.get(operation.op.name)
        if of_op is None:
            return
        for rule in of_op[operands[-1].type.dtype.kind]:
            value = rule.apply(operation, self)
            if value is not None:
                self.accept(rule, operation, value)
                return

    def accept(self, rule: Rule, operation: Operation, value: Value) -> None:
        (result,) = operation.results
        if value.type != result.type:
            raise InternalError(f"rule {rule.name}: {result.type} became {value.type}", span=self.span)
        self.replaced[result] = value
        self.note(rule.name)

    def note(self, name: str) -> None:
        if self.fired is not None:
            self.fired.append(Fired(name, self.span))
