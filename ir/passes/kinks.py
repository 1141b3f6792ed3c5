"""Second derivatives at kinks: what is smooth there although it is written in abs, in the norm or in extremes.

d/dx g(|x|) is g'(|x|) s with s the slope of abs, which is 0 at 0; the second derivative has the factor s s, each of
another differentiation. From either side s s is 1, and so it is here, at 0 too: where g'(0) is 0, as of
log(2 cosh x) = |x| + log1p(exp(-2|x|)), or where another kink makes up for it, as in max(x, 0) + log1p(exp(-|x|)), that
is the derivative. Of different kinks s t has the mean 0. Slopes of one differentiation, as in the square of a gradient,
are numbers, and 0 times 0 is 0.

Of a norm r = |x| the slope is u = x/r. The Hessian of g(r) is g'' u u^T + g'/r (1 - u u^T), and where g'(0) is 0, both
g'' and g'/r have the limit g''(0): so u_i u_j is 1 at the kink where i = j, and else 0. The larger of two is
(x + y)/2 + |x - y|/2, of which x has the slope (1 + s)/2.
"""

from __future__ import annotations

from typing import Final, TypeVar

from srcgrad.ir.core import Builder, Function, Operation, Region, Value
from srcgrad.ir.opdef import REGISTRY, Term, broadcast_to
from srcgrad.ir.ops.dot import permuted
from srcgrad.ir.passes.rewrite import Fired, Rule, RuleSet, rebuilt, rewrite, with_operands
from srcgrad.ir.passes.same_kinks import place_of
from srcgrad.ir.passes.slopes import (
    LARGE,
    LEAVES,
    SUMMED,
    Kink,
    Slope,
    Slopes,
    diagonal,
    dot_labels,
    number,
    same_index,
    size_of,
    slope_shape,
    summed,
    where,
)
from srcgrad.ir.types import Size

AnyRegion = TypeVar("AnyRegion", bound=Region)


def has_slopes(function: Region) -> bool:
    return any(operation.op.name in LEAVES for operation in function.walk())


def has_signs(function: Region) -> bool:
    """Whether there are slopes, or signs that may be multiplied by some to come."""
    return any(operation.op.name in LEAVES or operation.op.name == "sign" for operation in function.walk())


def aged(function: Function) -> Function:
    """The function with the slopes that it has told from those of the differentiation to come.

    So are signs of what it has the absolute value of: sign(x) g(|x|) is smooth where g(0) is 0.
    """
    return with_older(function) if has_signs(function) else function


def with_older(region: AnyRegion) -> AnyRegion:
    moved: dict[Value, Value] = {}
    operations = []
    sizes = {
        place_of(operation.operands[0])
        for operation in region.operations
        if operation.op.name == "abs" and is_real(operation.operands[0])
    }
    for operation in region.operations:
        operands = tuple(moved.get(value, value) for value in operation.operands)
        regions = tuple(with_older(inner) for inner in operation.regions)
        is_sign = operation.op.name == "sign" and is_real(operands[0]) and place_of(operation.operands[0]) in sizes
        if operation.op.name in LEAVES or is_sign:
            op = REGISTRY["slope_of_abs"] if is_sign else operation.op
            attrs = {**operation.attrs, "order": operation.attrs.get("order", 0) + 1}
            types = [result.type for result in operation.results]
            operation = with_results(operation, Operation(op, operands, attrs, (), types, operation.span), moved)
        elif operands != operation.operands or regions != operation.regions:
            operation = with_results(operation, with_operands(operation, operands, regions), moved)
        operations.append(operation)
    return rebuilt(region, operations, [moved.get(value, value) for value in region.results])


def is_real(value: Value) -> bool:
    return value.type.dtype.kind == "f"


def with_results(old: Operation, new: Operation, moved: dict[Value, Value]) -> Operation:
    moved.update(zip(old.results, new.results, strict=True))
    return new


def smoothed(function: Function, fired: list[Fired] | None) -> Function:
    """The function with products of two slopes as from either side, and the slopes that are left as numbers."""
    if len({operation.attrs["order"] for operation in function.walk() if operation.op.name in LEAVES}) > 1:
        pair, name = Pairs().pair, "{0}(slope, slope) -> {0}(a, b) at the kink"
        pairs = [Rule(name.format(op), op, "fc", pair, (), None, "final") for op in PRODUCTS]
        function = rewrite(function, RuleSet(pairs), None, fired)
    return rewrite(function, NUMBERS, None, fired)


# --- pairs ------------------------------------------------------------------------------------------------------------


MUCH: Final = 1 << 14
"""How many factors may be written: of a chain of kinks, as ten maxima that are each in the next one, three times as
many are needed for each further kink. What is left after these has second derivatives beside its kinks alone."""


class Pairs:
    """What products of two slopes of one kink are."""

    def __init__(self) -> None:
        self.slopes = Slopes()

    def pair(self, operation: Operation, builder: Builder) -> Value | None:
        """(s a + b) (t c + d) with s and t slopes of one kink from two differentiations: a c + b d at the kink."""
        left, right = operation.operands
        behind = self.slopes.of(right)
        if not behind or self.slopes.written() > MUCH:
            return None
        for one in self.slopes.of(left):
            for other in behind:
                if one.kink == other.kink and one.order != other.order:
                    return self.paired(operation, one.kink, builder)
        return None

    def paired(self, operation: Operation, kink: Kink, builder: Builder) -> Value | None:
        if operation.op.name == "dot_general":
            return written_out(operation, builder)
        left, right = operation.operands
        total: Term | None = None
        for one in self.slopes.of(left):
            for other in self.slopes.of(right):
                if one.kink == other.kink == kink and one.order != other.order:
                    part = self.at_kink(builder, (left, right), (one, other))
                    if part is None:
                        return None
                    total = part if total is None else total + part
        numbers = [Term(builder, self.slopes.without(builder, side, kink)) for side in (left, right)]
        assert total is not None
        return (numbers[0] * numbers[1] + total).value

    def at_kink(self, builder: Builder, sides: tuple[Value, Value], both: tuple[Slope, Slope]) -> Term | None:
        """The product of what stands beside the slopes, for the places of the kink that are the same in both."""
        factors: list[Term] = []
        rank, sizes = sides[0].type.rank, slope_shape(both[0])
        for side, slope, other in zip(sides, both, both[::-1], strict=True):
            factor = self.slopes.beside(builder, side, slope)
            if factor is None:
                return None
            left = list(summed(slope))
            for place in tuple(left):
                if other.axes[place] != SUMMED:
                    factor = diagonal(factor, other.axes[place], rank + left.index(place))
                    left.remove(place)
            factors.append(factor)
        shared = [place for place in summed(both[0]) if both[1].axes[place] == SUMMED]
        axes = [one if one != SUMMED else other for one, other in zip(both[0].axes, both[1].axes, strict=True)]
        for place in shared:
            axes[place] = rank + shared.index(place)
        found = factors[0] * factors[1]
        there = REGISTRY["reshape"](where(builder, both[0].kink), shape=sizes)
        order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
        there = broadcast_to(permuted(there, order), found.shape, tuple(axes[place] for place in order))
        for here, beyond in zip(both[0].axes, both[1].axes, strict=True):
            if SUMMED not in (here, beyond) and here != beyond:
                there = there & same_index(found, here, beyond)
        found = REGISTRY["select"](there, found, 0.0)
        return REGISTRY["reduce_sum"](found, axes=tuple(range(rank, found.rank))) if shared else found


def written_out(operation: Operation, builder: Builder) -> Value | None:
    """A product of arrays as a sum of products, in which the pairs are."""
    *labels, result = dot_labels(operation)
    summed_over = [label for label in labels[0] if label not in result]
    wanted = [*result, *summed_over]
    size: dict[int, Size] = {}
    for side, operand in zip(labels, operation.operands, strict=True):
        size.update(zip(side, operand.type.shape, strict=True))
    shape = tuple(size[label] for label in wanted)
    if size_of(shape) > LARGE:
        return None
    terms = []
    for side, operand in zip(labels, operation.operands, strict=True):
        order = tuple(sorted(range(len(side)), key=lambda axis: wanted.index(side[axis])))
        dims = tuple(wanted.index(side[axis]) for axis in order)
        terms.append(broadcast_to(permuted(Term(builder, operand), order), shape, dims))
    product = terms[0] * terms[1]
    if summed_over:
        product = REGISTRY["reduce_sum"](product, axes=tuple(range(len(result), len(wanted))))
    return product.value


def numbered(operation: Operation, builder: Builder) -> Value:
    return number(operation, builder)


PRODUCTS: Final = ("mul", "dot_general")
NUMBERS: Final = RuleSet(
    [
        Rule("slope_of_abs(x) -> sign(x)", "slope_of_abs", "f", numbered, (), None, "final"),
        Rule("slope_of_norm(u, r) -> u", "slope_of_norm", "f", numbered, (), None, "final"),
        Rule("share_of_tie(p, q) -> 1/2", "share_of_tie", "b", numbered, (), None, "final"),
    ]
)
