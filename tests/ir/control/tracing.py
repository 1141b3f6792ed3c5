"""Programs with control flow as Python functions of terms: what regions read from outside becomes operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import srcgrad.ir.ops  # noqa: F401  registers the ops
from srcgrad.ir.core import NO_ATTRS, Attrs, Builder, Function, Literal, Operation, Region, Value, literal
from srcgrad.ir.opdef import REGISTRY, Op, Term
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.types import FLOAT64, INT64, ArrayType

F64, I64 = ArrayType(FLOAT64), ArrayType(INT64)


def vector(size: int) -> ArrayType:
    return ArrayType(FLOAT64, (size,))


class Closing(Builder):
    """A builder that emits into the innermost region being traced; values of the regions around become parameters."""

    __slots__ = ("lifted", "own", "parent")

    def __init__(self, parent: Closing | None) -> None:
        super().__init__()
        self.parent = parent
        self.lifted: dict[Value, Value] = {}
        self.own: set[Value] = set()

    def param(self, type: ArrayType, name: str | None = None, linear: bool = False) -> Value:
        found = super().param(type, name, linear)
        self.own.add(found)
        return found

    def emit_operation(
        self, op: Op, operands: Sequence[Value], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Operation:
        builder = CURRENT[-1]
        given = [builder.lift(value) for value in operands]
        found = super(Closing, builder).emit_operation(op, given, attrs, regions)
        builder.own.update(found.results)
        return found

    def lift(self, value: Value) -> Value:
        if isinstance(value, Literal) or value in self.own:
            return value
        assert self.parent is not None, "a value of a region is read outside of it"
        outer = self.parent.lift(value)
        found = self.lifted.get(outer)
        if found is None:
            found = self.lifted[outer] = Value(outer.type, None, outer.name)
            self.own.add(found)
        return found


CURRENT: list[Closing] = []


def read(item: Any) -> Value:
    """The value of a term or number in the region that is being traced."""
    if isinstance(item, Term):
        return CURRENT[-1].lift(item.value)
    return literal(item, ArrayType(np.asarray(item).dtype, np.shape(item)))


def apply(name: str, *operands: Any, **attrs: Any) -> Term:
    return REGISTRY[name](*operands, **attrs)


sin, cos, exp, log, sqrt, tanh = (
    lambda x, name=name: apply(name, x) for name in ("sin", "cos", "exp", "log", "sqrt", "tanh")
)


def where(predicate: Term, true: Any, false: Any) -> Term:
    return apply("select", predicate, true, false)


def total(x: Term) -> Term:
    return apply("reduce_sum", x, axes=tuple(range(x.rank)))


def spread(x: Term, size: int) -> Term:
    return apply("broadcast", x, shape=(size,), dims=())


def at(x: Term, index: Any) -> Term:
    return Term(CURRENT[-1], CURRENT[-1].emit(REGISTRY["gather"], [read(x), read(index)], {"axis": 0}))


def put(x: Term, index: Any, part: Any) -> Term:
    operands = [read(x), read(part), read(index)]
    return Term(CURRENT[-1], CURRENT[-1].emit(REGISTRY["scatter_set"], operands, {"axis": 0}))


Results = Any
Block = tuple[Closing, list[Value]]


def block(function: Callable[..., Results], types: Sequence[ArrayType]) -> Block:
    builder = Closing(CURRENT[-1])
    CURRENT.append(builder)
    found = function(*[Term(builder, builder.param(type)) for type in types])
    results = [read(item) for item in (found if isinstance(found, (tuple, list)) else (found,))]
    CURRENT.pop()
    return builder, results


def closed(blocks: Sequence[Block], shown: Sequence[int]) -> tuple[list[Value], list[Region]]:
    """Regions whose parameters from ``shown`` on are what any of them reads from outside; and that, as operands."""
    outer = list(dict.fromkeys(value for builder, _ in blocks for value in builder.lifted))
    regions = []
    for (builder, results), place in zip(blocks, shown, strict=True):
        extra = [builder.lifted.get(value) or Value(value.type) for value in outer]
        params = [*builder.params[:place], *extra, *builder.params[place:]]
        regions.append(Region(params, builder.operations, results))
    return outer, regions


def terms(results: Sequence[Value]) -> list[Term]:
    return [Term(CURRENT[-1], value) for value in results]


def cond(predicate: Term, then: Callable[..., Results], orelse: Callable[..., Results], *operands: Any) -> list[Term]:
    values = [read(operand) for operand in operands]
    types = [value.type for value in values]
    outer, regions = closed([block(then, types), block(orelse, types)], [len(types)] * 2)
    return terms(CURRENT[-1].emit_operation(REGISTRY["cond"], [read(predicate), *values, *outer], {}, regions).results)


def while_(
    condition: Callable[..., Term], body: Callable[..., Results], *initial: Any, checkpoint: bool = False
) -> list[Term]:
    """The carries, and the trip count."""
    values = [read(item) for item in initial]
    types = [value.type for value in values]
    outer, regions = closed([block(condition, types), block(body, types)], [len(types)] * 2)
    attrs = {"carries": len(values), **({"checkpoint": True} if checkpoint else {})}
    return terms(CURRENT[-1].emit_operation(REGISTRY["while"], [*values, *outer], attrs, regions).results)


def for_(
    trips: Any,
    body: Callable[..., Results],
    *initial: Any,
    columns: Sequence[Any] = (),
    reverse: bool = False,
    checkpoint: bool = False,
) -> list[Term]:
    """The carries, then columns; ``trips`` is an int, or a term."""
    values, rows = [read(item) for item in initial], [read(column) for column in columns]
    elements = [value.type.with_shape(value.type.shape[1:]) for value in rows]
    found = block(body, [I64, *(value.type for value in values), *elements])
    outer, regions = closed([found], [1 + len(values)])
    count = [read(trips)] if isinstance(trips, Term) else []
    attrs = {
        "trips": None if count else trips, "carries": len(values), "consts": len(outer), "reverse": reverse,
        **({"checkpoint": True} if checkpoint else {}),
    }  # fmt: skip
    operands = [*count, *values, *outer, *rows]
    return terms(CURRENT[-1].emit_operation(REGISTRY["for"], operands, attrs, regions).results)


def check(predicate: Term, message: str, kind: str = "ValueError") -> None:
    CURRENT[-1].emit_operation(REGISTRY["check"], [read(predicate)], {"message": message, "kind": kind})


def trace(function: Callable[..., Results], *types: ArrayType, name: str = "f") -> Function:
    builder = Closing(None)
    CURRENT.append(builder)
    try:
        found = function(*[Term(builder, builder.param(type, "xyzuvw"[k])) for k, type in enumerate(types)])
        results = [read(item) for item in (found if isinstance(found, (tuple, list)) else (found,))]
    finally:
        CURRENT.clear()
    return dce(builder.function(name, results))
