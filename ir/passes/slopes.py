"""Which slopes at kinks a value has as factors, and what stands beside them.

A value is s_i a + b in each slope s_i of a kink: `Slopes.of` says of which, `Slopes.beside` gives a. A number of the
value has the slopes of some places of the kink: those at its own index, along some axes, and all along those that have
been summed over, which a has as further axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from srcgrad.ir.core import Builder, Operation, Value, zeros
from srcgrad.ir.opdef import REGISTRY, Term, broadcast_to
from srcgrad.ir.ops.dot import permuted, sides
from srcgrad.ir.passes.same_kinks import compared
from srcgrad.ir.types import INT64, Shape

LEAVES: Final = frozenset({"slope_of_abs", "slope_of_norm", "share_of_tie"})
LOOKED, MANY = 64, 16
"""How many ops a factor is looked for through, and how many a value may have."""
LARGE: Final = 1 << 22
"""How many numbers may stand beside slopes that are summed over."""
MIXED_LARGE: Final = 1 << 11
"""How many where an op that mixes them is applied to each."""
TERMS: Final = frozenset({"add", "sub", "select", "complex"})
PLAIN: Final = frozenset({"neg", "cast", "div", "real", "imag", "conj"})
MOVES: Final = frozenset({"broadcast", "reduce_sum", "reshape", "transpose", "slice", "cumsum", "reverse"})
PARTS: Final = frozenset({"slice_set", "concatenate"})
INDEXED: Final = frozenset({"gather", "scatter_add", "scatter_set"})
MIXED: Final = {
    **dict.fromkeys(("fft", "ifft", "rfft", "irfft", "take_along_axis", "add_along_axis"), (0,)),
    "convolve": (0, 1),
    "solve": (1,),
    "triangular_solve": (1,),
}
"""Ops whose results are sums along axes, with the operands that they are linear in, one at a time."""

SUMMED: Final = -1


class Kink(NamedTuple):
    """A kink by what says where it is: the values that are equal there (of a norm, it and its part)."""

    first: Value
    second: Value | int | None
    shape: Shape


class Slope(NamedTuple):
    """A slope as a factor: its kink, the axes of the value that are those of the kink, and its differentiation.

    Axes of the kink of size 1 have none, those that are summed over have `SUMMED`.
    """

    kink: Kink
    axes: tuple[int, ...]
    order: int


NONE: Final = frozenset[Slope]()


def long_axes(shape: Shape) -> tuple[int, ...]:
    return tuple(axis for axis, size in enumerate(shape) if size != 1)


def summed(slope: Slope) -> tuple[int, ...]:
    """The places in ``slope.axes`` of the axes that are summed over."""
    return tuple(place for place, axis in enumerate(slope.axes) if axis == SUMMED)


class Slopes:
    """The slopes that are factors of values, or of terms of them; those of a value that has many are not looked at."""

    def __init__(self) -> None:
        self.known: dict[Value, frozenset[Slope]] = {}
        self.factors: dict[tuple[Value, Slope], Term | None] = {}
        self.numbers: dict[tuple[Value, Kink], Value] = {}
        self.ordered: set[tuple[Value, Value]] = set()
        """Pairs of values that may be equal, in the order in which they were met first."""

    def written(self) -> int:
        """How much has been written of factors, and of values without slopes."""
        return len(self.factors) + len(self.numbers)

    def of(self, value: Value, depth: int = LOOKED) -> frozenset[Slope]:
        if value.producer is None or depth == 0 or value.type.dtype.kind not in "fc":
            return NONE
        found = self.known.get(value)
        if found is None:
            found = self.behind(value.producer, depth - 1)
            found = self.known[value] = found if len(found) <= MANY else NONE
        return found

    def behind(self, made: Operation, depth: int) -> frozenset[Slope]:
        name, operands = made.op.name, made.operands
        if name in LEAVES:
            kink = self.kink_of(made)[0]
            axes = tuple(range(made.results[0].type.rank))
            return frozenset({Slope(kink, tuple(axes[axis] for axis in long_axes(kink.shape)), made.attrs["order"])})
        if name in PLAIN:
            return self.of(operands[0], depth)
        if name == "mul" or name in TERMS:
            return NONE.union(*[self.of(operand, depth) for operand in operands])
        if name in MOVES or name in PARTS or name in INDEXED or name in MIXED or name == "dot_general":
            found: set[Slope] = set()
            for position, operand in followed(made):
                found.update(moved(made, position, slope) for slope in self.of(operand, depth))
            return frozenset(found)
        return NONE

    # --- kinks --------------------------------------------------------------------------------------------------------
    def kink_of(self, made: Operation) -> tuple[Kink, float]:
        """The kink of a slope, and what it is times where the first value is larger (1 of a norm, in any direction)."""
        operands, shape = made.operands, made.results[0].type.shape
        if made.op.name == "slope_of_norm":
            return Kink(operands[1], made.attrs["part"], shape), 1.0
        if made.op.name == "slope_of_abs":
            weight = 1.0
            first, second, sign = compared(operands[0], None)
        else:
            wins, weight = operands[0].producer, 0.5 * made.attrs["side"]
            if wins is None or wins.op.name not in ("greater", "less"):
                return Kink(operands[0], operands[1], shape), weight
            first, second, sign = compared(*(wins.operands if wins.op.name == "greater" else wins.operands[::-1]))
        if second is not None and (second, first) in self.ordered:
            return Kink(second, first, shape), -sign * weight
        if second is not None:
            self.ordered.add((first, second))
        return Kink(first, second, shape), sign * weight

    # --- what stands beside one ---------------------------------------------------------------------------------------
    def beside(self, builder: Builder, value: Value, slope: Slope) -> Term | None:
        """The factor of the slope, with the axes of the value, then those that are summed over; None if too large."""
        if (value, slope) not in self.factors:
            self.factors[value, slope] = self.factor(builder, value, slope)
        return self.factors[value, slope]

    def factor(self, builder: Builder, value: Value, slope: Slope) -> Term | None:
        made = value.producer
        assert made is not None
        extra = tuple(slope_shape(slope)[place] for place in summed(slope))
        shape = (*value.type.shape, *extra)
        if size_of(shape) > (MIXED_LARGE if made.op.name in MIXED else LARGE):
            return None
        if made.op.name in LEAVES:
            return Term(builder, value).like(self.kink_of(made)[1])
        parts: list[Term | None] = []
        for position, operand in followed(made):
            for inner in self.of(operand):
                if moved(made, position, inner) == slope:
                    factor = self.beside(builder, operand, inner)
                    parts.append(None if factor is None else applied(made, position, factor, inner, slope, builder))
        total: Term | None = None
        for part in parts:
            if part is None:
                return None
            total = part if total is None else total + part
        return total

    def without(self, builder: Builder, value: Value, kink: Kink) -> Value:
        """The value with numbers for the slopes of a kink: no others are looked for behind them."""
        made = value.producer
        if made is None or all(slope.kink != kink for slope in self.of(value)):
            return value
        found = self.numbers.get((value, kink))
        if found is None:
            if made.op.name in LEAVES:
                found = number(made, builder)
            else:
                operands = [self.without(builder, operand, kink) for operand in made.operands]
                found = builder.emit(made.op, operands, made.attrs)
            self.numbers[value, kink] = found
        return found


def followed(made: Operation) -> list[tuple[int, Value]]:
    """The operands, by position, whose slopes are factors of the result."""
    positions = (0,) if made.op.name in PLAIN else MIXED.get(made.op.name, range(len(made.operands)))
    return [(position, made.operands[position]) for position in positions]


def number(made: Operation, builder: Builder) -> Value:
    """What a slope is where it is none of a pair."""
    if made.op.name == "slope_of_abs":
        return REGISTRY["sign"](Term(builder, made.operands[0])).value
    if made.op.name == "slope_of_norm":
        return made.operands[0]
    return Term(builder, made.results[0]).like(0.5).value


def size_of(shape: Shape) -> float:
    """How many numbers there are; infinitely many where a size is not known."""
    return math.prod(size if isinstance(size, int) else float("inf") for size in shape)


def slope_shape(slope: Slope) -> Shape:
    return tuple(slope.kink.shape[axis] for axis in long_axes(slope.kink.shape))


# --- kinks ------------------------------------------------------------------------------------------------------------


def where(builder: Builder, kink: Kink) -> Term:
    """Where the kink is."""
    first = Term(builder, kink.first)
    if first.dtype.kind == "b":
        assert isinstance(kink.second, Value)
        return ~(first | Term(builder, kink.second))
    return first == (Term(builder, kink.second) if isinstance(kink.second, Value) else 0.0)


# --- moves ------------------------------------------------------------------------------------------------------------


def moved(made: Operation, position: int, slope: Slope) -> Slope:
    """The slope behind an operation that has one in an operand: axes that cannot be followed are summed over."""
    places = places_behind(made, position)
    if places is None:
        return slope
    return slope._replace(axes=tuple(SUMMED if axis == SUMMED else places[axis] for axis in slope.axes))


def places_behind(made: Operation, position: int) -> list[int] | None:
    """Where the axes of an operand are in the result, or `SUMMED`; None where all stay."""
    name, attrs = made.op.name, made.attrs
    before, after = made.operands[position].type.shape, made.results[0].type.shape
    if name in MIXED:
        gone = axes_mixed(made)
        return [SUMMED if axis in gone else axis for axis in range(len(before))]
    if name == "broadcast":
        return list(attrs["dims"])
    if name == "transpose":
        return [attrs["perm"].index(axis) for axis in range(len(before))]
    if name == "reduce_sum":
        kept = [axis for axis in range(len(before)) if axis not in attrs["axes"]]
        return [kept.index(axis) if axis in kept else SUMMED for axis in range(len(before))]
    if name == "reshape":
        return axes_reshaped(before, after)
    if name in ("slice", "slice_set"):
        whole = made.operands[0].type.shape
        same = [
            start == 0 and stride == 1 and limit == size
            for size, start, limit, stride in zip(
                whole, attrs["starts"], attrs["limits"], attrs["strides"], strict=True
            )
        ]
        if name == "slice_set" and position == 0:
            return None
        return [axis if kept else SUMMED for axis, kept in enumerate(same)]
    if name == "concatenate":
        return [SUMMED if axis == attrs["axis"] else axis for axis in range(len(before))]
    if name in ("cumsum", "reverse"):
        gone = (attrs["axis"],) if name == "cumsum" else attrs["axes"]
        return [SUMMED if axis in gone else axis for axis in range(len(before))]
    if name in INDEXED:
        return places_indexed(made, position)
    if name == "dot_general":
        labels = dot_labels(made)
        return [labels[2].index(label) if label in labels[2] else SUMMED for label in labels[position]]
    return None


def axes_mixed(made: Operation) -> tuple[int, ...]:
    """The axes along which an op of `MIXED` sums."""
    name, attrs, rank = made.op.name, made.attrs, made.results[0].type.rank
    if name == "convolve":
        return tuple(range(rank - len(attrs["starts"]), rank))
    if name in ("solve", "triangular_solve"):
        return (rank - 2,)
    return (attrs["axis"],) if "axis" in attrs else tuple(attrs["axes"])


def places_indexed(made: Operation, position: int) -> list[int] | None:
    """Where the axes of what is read or added at indices are: those of the indices cannot be followed."""
    if made.op.name != "gather" and position == 0:
        return None
    indices = made.operands[1 if made.op.name == "gather" else 2 :]
    axis, own, others = made.attrs["axis"], indices[0].type.rank, len(indices)
    if made.op.name == "gather":
        own, others = others, own
    rank = made.operands[position].type.rank
    return [each if each < axis else SUMMED if each < axis + own else each - own + others for each in range(rank)]


def axes_reshaped(before: Shape, after: Shape) -> list[int]:
    """Where axes are after a reshape; those are followed that have as many numbers before them, and are as long."""
    ends = {(size_of(after[:axis]), size): axis for axis, size in enumerate(after) if size != 1}
    return [ends.get((size_of(before[:axis]), size), SUMMED) for axis, size in enumerate(before)]


def dot_labels(made: Operation) -> tuple[list[int], list[int], list[int]]:
    """A label for each axis of the operands of a product and of its result."""
    rank, other_rank = (operand.type.rank for operand in made.operands)
    lhs, rhs = sides(rank, other_rank, made.attrs)
    left, right = list(range(rank)), [rank + axis for axis in range(other_rank)]
    for one, other in zip((*lhs.batch, *lhs.contract), (*rhs.batch, *rhs.contract), strict=True):
        right[other] = left[one]
    result = [left[axis] for axis in (*lhs.batch, *lhs.free)] + [right[axis] for axis in rhs.free]
    return left, right, result


def applied(made: Operation, position: int, factor: Term, inner: Slope, slope: Slope, builder: Builder) -> Term:
    """What stands beside a slope behind an operation, given what does in an operand."""
    operand, result = made.operands[position].type, made.results[0].type
    before, after = summed(inner), summed(slope)
    sizes = [slope_shape(slope)[place] for place in after]
    name, rank = made.op.name, operand.rank
    keys: list[Any] = [*range(rank), *(("summed", place) for place in before)]
    gone = [place for place in after if place not in before]
    if name == "dot_general":
        return product(made, position, factor, keys, {inner.axes[place]: place for place in gone}, after, builder)
    if name == "reduce_sum":
        axes = [axis for axis in made.attrs["axes"] if axis not in {inner.axes[place] for place in gone}]
        total = REGISTRY["reduce_sum"](factor, axes=tuple(axes)) if axes else factor
        keys = [key for key in keys if key not in axes]
        for place in gone:
            keys[keys.index(inner.axes[place])] = ("summed", place)
        rest = [key for key in keys if not isinstance(key, tuple)]
        return permuted(total, tuple(keys.index(key) for key in [*rest, *(("summed", place) for place in after)]))
    for place in gone:
        factor = along_diagonal(factor, inner.axes[place], rank + after.index(place), slope_shape(slope)[place])
    count = len(sizes)
    if name in MIXED:
        return of_each(made, position, factor, tuple(sizes))
    if name == "broadcast":
        dims = (*made.attrs["dims"], *range(result.rank, result.rank + count))
        return REGISTRY["broadcast"](factor, shape=(*result.shape, *sizes), dims=dims)
    if name == "transpose":
        return REGISTRY["transpose"](factor, perm=(*made.attrs["perm"], *range(rank, rank + count)))
    if name == "reshape":
        return REGISTRY["reshape"](factor, shape=(*result.shape, *sizes))
    if name in ("cumsum", "reverse", "gather"):
        return made.op(factor, *[Term(builder, index) for index in made.operands[1:]], **made.attrs)
    if name == "slice":
        attrs = {key: tuple(made.attrs[key]) for key in ("starts", "limits", "strides")}
        return REGISTRY["slice"](
            factor,
            starts=(*attrs["starts"], *[0] * count),
            limits=(*attrs["limits"], *sizes),
            strides=(*attrs["strides"], *[1] * count),
        )
    return combined(made, position, factor, tuple(sizes), builder)


def of_each(made: Operation, position: int, factor: Term, sizes: Shape) -> Term:
    """An operation for each of the places that the last axes of a factor are of."""
    count, rank = len(sizes), factor.rank - len(sizes)
    first = permuted(factor, (*range(rank, rank + count), *range(rank)))
    total = math.prod(size for size in sizes if isinstance(size, int))
    terms = [Term(factor.builder, operand) for operand in made.operands]
    terms[position] = REGISTRY["reshape"](first, shape=(total, *made.operands[position].type.shape))
    (found,) = made.op.batch_operation(total, terms, [place == position for place in range(len(terms))], made)
    after = made.results[0].type
    found = REGISTRY["reshape"](found, shape=(*sizes, *after.shape))
    return permuted(found, (*range(count, count + after.rank), *range(count)))


def combined(made: Operation, position: int, factor: Term, sizes: Shape, builder: Builder) -> Term:
    """An operation of several operands of which one is replaced: those that are terms beside it are 0."""
    name, terms = made.op.name, []
    for place, operand in enumerate(made.operands):
        term = Term(builder, operand)
        if place == position:
            terms.append(factor)
        elif name in TERMS and not (name == "select" and place == 0):
            terms.append(factor.like(0.0))
        elif name in INDEXED and place > 1:
            terms.append(term)
        elif name in PARTS or name in INDEXED:
            shape = (*term.shape, *sizes)
            terms.append(Term(builder, zeros(operand.type.with_shape(shape))))
        elif term.rank and sizes:
            terms.append(broadcast_to(term, (*term.shape, *sizes), tuple(range(term.rank))))
        else:
            terms.append(term if term.rank or name == "select" else broadcast_to(term, factor.shape, ()))
    attrs = dict(made.attrs)
    if name == "slice_set":
        count = len(sizes)
        attrs["starts"] = (*attrs["starts"], *[0] * count)
        attrs["limits"] = (*attrs["limits"], *sizes)
        attrs["strides"] = (*attrs["strides"], *[1] * count)
    return made.op(*terms, **attrs)


def product(
    made: Operation,
    position: int,
    factor: Term,
    keys: list[Any],
    gone: dict[int, int],
    after: Sequence[int],
    builder: Builder,
) -> Term:
    """What stands beside a slope in an operand of a product: what it is summed over with the slope stays apart."""
    labels = dot_labels(made)
    own: list[Any] = [labels[position][key] if isinstance(key, int) else key for key in keys]
    other: list[Any] = list(labels[1 - position])
    names = {labels[position][axis]: ("summed", place) for axis, place in gone.items()}
    own = [names.get(label, label) for label in own]
    other = [names.get(label, label) for label in other]
    wanted: list[Any] = [*labels[2], *(("summed", place) for place in after)]
    shared = [label for label in own if label in other]
    batch = [label for label in shared if label in wanted]
    contract = [label for label in shared if label not in wanted]
    sides_of = (own, other)
    result = REGISTRY["dot_general"](
        factor,
        Term(builder, made.operands[1 - position]),
        batch=tuple(tuple(side.index(label) for label in batch) for side in sides_of),
        contract=tuple(tuple(side.index(label) for label in contract) for side in sides_of),
    )
    rest = [[label for label in side if label not in shared] for side in sides_of]
    order = [*batch, *rest[0], *rest[1]]
    return permuted(result, tuple(order.index(label) for label in wanted))


def same_index(term: Term, axis: int, other: int) -> Term:
    """Where two axes of a term have the same index."""
    iota = [
        Term(term.builder, term.builder.emit(REGISTRY["iota"], [], {"dtype": INT64, "shape": term.shape, "axis": each}))
        for each in (axis, other)
    ]
    return iota[0] == iota[1]


def along_diagonal(factor: Term, axis: int, place: int, size: Any) -> Term:
    """A further axis of this size at a place, 0 but where its index is that of the axis."""
    dims = tuple(each + (each >= place) for each in range(factor.rank))
    shape = (*factor.shape[:place], size, *factor.shape[place:])
    wide = REGISTRY["broadcast"](factor, shape=shape, dims=dims)
    return REGISTRY["select"](same_index(wide, axis, place), wide, 0.0)


def diagonal(factor: Term, axis: int, place: int) -> Term:
    """The numbers where the index of an axis is that of a later one, which goes."""
    made = factor.value.producer
    if made is not None and made.op.name == "broadcast":
        dims = list(made.attrs["dims"])
        if axis not in dims and place in dims:
            inner = Term(factor.builder, made.operands[0])
            order = sorted(range(len(dims)), key=lambda k: axis if dims[k] == place else dims[k])
            dims[dims.index(place)] = axis
            shape = factor.shape[:place] + factor.shape[place + 1 :]
            placed = tuple(dims[k] - (dims[k] > place) for k in order)
            return REGISTRY["broadcast"](permuted(inner, tuple(order)), shape=shape, dims=placed)
    return REGISTRY["reduce_sum"](REGISTRY["select"](same_index(factor, axis, place), factor, 0.0), axes=(place,))
