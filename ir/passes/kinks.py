"""Second derivatives at the kink of abs: what is smooth there although it is written in abs(x).

d/dx g(|x|) is g'(|x|) s with s the slope of abs, which is 0 at 0; the second derivative has the factor s s, each of
another differentiation. From either side s s is 1, and so it is here, at 0 too: where g'(0) is 0, as of
log(2 cosh x) = |x| + log1p(exp(-2|x|)), or where another kink makes up for it, as in max(x, 0) + log1p(exp(-|x|)), that
is the derivative. Slopes of one differentiation, as in the square of a gradient, are numbers, and 0 times 0 is 0.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

from srcgrad.ir.core import Builder, Function, Literal, Operation, Region, Value, zeros
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.passes.matching import emit, is_zero
from srcgrad.ir.passes.rewrite import Fired, Rule, RuleSet, rebuilt, rewrite, with_operands
from srcgrad.ir.types import Shape

SLOPE: Final = "slope_of_abs"
AnyRegion = TypeVar("AnyRegion", bound=Region)
LOOKED, MANY = 64, 16
"""How many ops a factor is looked for through, and how many a value may have."""
OF_ONE: Final = frozenset({"neg", "cast", "div"})
MOVES: Final = frozenset({"broadcast", "reduce_sum", "reshape", "transpose"})
OF_BOTH: Final = frozenset({"add", "sub", "select"})


class Slope(NamedTuple):
    """A slope of abs(x) as a factor: the axes of the value that are those of x, and its differentiation."""

    x: Value
    axes: tuple[int, ...]
    order: int


NONE: Final = frozenset[Slope]()


def has_slopes(function: Region) -> bool:
    return any(operation.op.name == SLOPE for operation in function.walk())


def aged(function: Function) -> Function:
    """The function with the slopes that it has told from those of the differentiation to come."""
    return with_older(function) if has_slopes(function) else function


def with_older(region: AnyRegion) -> AnyRegion:
    moved: dict[Value, Value] = {}
    operations = []
    for operation in region.operations:
        operands = tuple(moved.get(value, value) for value in operation.operands)
        regions = tuple(with_older(inner) for inner in operation.regions)
        if operation.op.name == SLOPE:
            attrs = {"order": operation.attrs["order"] + 1}
            types = [result.type for result in operation.results]
            operation = with_results(
                operation, Operation(operation.op, operands, attrs, (), types, operation.span), moved
            )
        elif operands != operation.operands or regions != operation.regions:
            operation = with_results(operation, with_operands(operation, operands, regions), moved)
        operations.append(operation)
    return rebuilt(region, operations, [moved.get(value, value) for value in region.results])


def with_results(old: Operation, new: Operation, moved: dict[Value, Value]) -> Operation:
    moved.update(zip(old.results, new.results, strict=True))
    return new


def smoothed(function: Function, fired: list[Fired] | None) -> Function:
    """The function with products of two slopes as from either side, and the slopes that are left as signs."""
    pairs = Rule("mul(slope, slope) -> 1", "mul", "f", Slopes().pair, (), None, "final")
    return rewrite(rewrite(function, RuleSet([pairs]), None, fired), SIGNS)


# --- pairs ------------------------------------------------------------------------------------------------------------


class Slopes:
    """The slopes that are factors of values, or of terms of them; those of a value that has many are not looked at."""

    def __init__(self) -> None:
        self.known: dict[Value, frozenset[Slope]] = {}

    def of(self, value: Value, depth: int = LOOKED) -> frozenset[Slope]:
        if value.producer is None or depth == 0:
            return NONE
        found = self.known.get(value)
        if found is None:
            found = self.behind(value.producer, depth - 1)
            found = self.known[value] = found if len(found) <= MANY else NONE
        return found

    def behind(self, made: Operation, depth: int) -> frozenset[Slope]:
        name, operands = made.op.name, made.operands
        if name == SLOPE:
            return frozenset({Slope(operands[0], tuple(range(made.results[0].type.rank)), made.attrs["order"])})
        if name == "mul" or name in OF_BOTH:
            return NONE.union(*[self.of(operand, depth) for operand in operands])
        if name in OF_ONE:
            return self.of(operands[0], depth)
        if name not in MOVES:
            return NONE
        inner = [(slope, axes_behind(made, slope.axes)) for slope in self.of(operands[0], depth)]
        return frozenset(slope._replace(axes=axes) for slope, axes in inner if axes is not None)

    def pair(self, operation: Operation, builder: Builder) -> Value | None:
        """(s a + b) (t c + d) with s and t the slopes of one abs(x) from two differentiations: a c + b d at 0."""
        left, right = operation.operands
        behind = self.of(right)
        for one in self.of(left) if behind else ():
            for other in behind:
                if one.x is other.x and one.axes == other.axes and one.order != other.order:
                    return product(builder, self, (left, right), (one, other))
        return None


def axes_behind(made: Operation, axes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The axes of the result that these of the operand become; None if one is summed over."""
    if made.op.name == "broadcast":
        return tuple(made.attrs["dims"][axis] for axis in axes)
    if made.op.name == "transpose":
        return tuple(made.attrs["perm"].index(axis) for axis in axes)
    if made.op.name == "reshape":
        return axes_reshaped(made.operands[0].type.shape, made.results[0].type.shape, axes)
    gone = made.attrs["axes"]
    if not set(gone).isdisjoint(axes):
        return None
    return tuple(axis - sum(each < axis for each in gone) for axis in axes)


def axes_reshaped(before: Shape, after: Shape, axes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The axes behind a reshape that only adds and removes axes of size 1."""
    long = [[axis for axis, size in enumerate(shape) if size != 1] for shape in (before, after)]
    if [before[axis] for axis in long[0]] != [after[axis] for axis in long[1]]:
        return () if not axes else None
    return tuple(long[1][long[0].index(axis)] for axis in axes) if set(axes) <= set(long[0]) else None


class Factor:
    """A value as s a + b, with s the slope that is nearest to the result: others of its differentiation are numbers."""

    def __init__(self, builder: Builder, slopes: Slopes, slope: Slope) -> None:
        self.builder, self.slopes, self.slope = builder, slopes, slope
        self.alone = True
        """Whether b is 0 by the structure of the value."""

    def at_one(self, value: Value, axes: tuple[int, ...]) -> Value:
        """a where x is 0, and the value elsewhere; the slope must be a factor behind these axes."""
        made = value.producer
        assert made is not None
        operands, position = list(made.operands), 0
        if made.op.name == SLOPE:
            x = Term(self.builder, self.slope.x)
            return REGISTRY["select"](x == 0.0, x.like(1.0), REGISTRY["sign"](x)).value
        if made.op.name in OF_BOTH:
            for position in range(len(operands) == 3, len(operands)):
                term = operands[position]
                found = self.is_in(term, axes)
                operands[position] = self.at_one(term, axes) if found else self.left_out(term, axes)
            return self.builder.emit(made.op, operands, made.attrs)
        if made.op.name == "mul":
            position = int(self.distance(operands[1], axes) < self.distance(operands[0], axes))
        elif made.op.name in MOVES:
            axes = next(each.axes for each in self.slopes.of(operands[0]) if self.leads_to(made, each, axes))
        operands[position] = self.at_one(operands[position], axes)
        return self.builder.emit(made.op, operands, made.attrs)

    def is_in(self, value: Value, axes: tuple[int, ...]) -> bool:
        return self.slope._replace(axes=axes) in self.slopes.of(value)

    def leads_to(self, made: Operation, inner: Slope, axes: tuple[int, ...]) -> bool:
        return inner._replace(axes=()) == self.slope._replace(axes=()) and axes_behind(made, inner.axes) == axes

    def distance(self, value: Value, axes: tuple[int, ...]) -> int:
        """How many products and sums the slope is behind, at least."""
        made = value.producer
        if made is None or not self.is_in(value, axes):
            return LOOKED
        if made.op.name == "mul" or made.op.name in OF_BOTH:
            return 1 + min(self.distance(operand, axes) for operand in made.operands)
        return 0

    def left_out(self, term: Value, axes: tuple[int, ...]) -> Value:
        if isinstance(term, Literal) and is_zero(term):
            return term
        self.alone = False
        return emit(self.builder, "select", self.at_kink(term, axes), zeros(term.type), term)

    def at_kink(self, like: Value, axes: tuple[int, ...]) -> Value:
        zero = Term(self.builder, self.slope.x) == 0.0
        order = sorted(range(len(axes)), key=axes.__getitem__)  # those of a broadcast increase
        if order != list(range(len(axes))):
            zero = REGISTRY["transpose"](zero, perm=tuple(order))
        if zero.shape == like.type.shape:
            return zero.value
        return REGISTRY["broadcast"](zero, shape=like.type.shape, dims=tuple(sorted(axes))).value


def product(builder: Builder, slopes: Slopes, sides: tuple[Value, Value], both: tuple[Slope, Slope]) -> Value:
    factors = [Factor(builder, slopes, slope) for slope in both]
    at_one = [factor.at_one(side, both[0].axes) for factor, side in zip(factors, sides, strict=True)]
    found = emit(builder, "mul", *at_one)
    if any(factor.alone for factor in factors):
        return found
    others = [emit(builder, "identity", side) for side in sides]  # numbers: no slope is looked for behind them
    where = factors[0].at_kink(found, both[0].axes)
    return emit(builder, "add", found, emit(builder, "select", where, emit(builder, "mul", *others), zeros(found.type)))


def signed(operation: Operation, builder: Builder) -> Value:
    return emit(builder, "sign", operation.operands[0])


SIGNS: Final = RuleSet([Rule("slope_of_abs(x) -> sign(x)", SLOPE, "f", signed, (), None, "final")])
