"""Random functions with nested control flow over arrays, elements read and written, sorts and tapes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.ir.core import Function, Region, Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import ArrayType, TapeType
from srcgrad.ir.verify import verify
from tests.backends.llvm.random_programs import COMPARISONS, STEPS, Array, Drawing, require_agreement

COUNT = ArrayType(np.dtype(np.int64))
DEPTH = 2
SMALL = 600
"""The most elements of what control flow hands on."""


class Structured(Drawing):
    """The state of drawing one function, or one of its regions."""

    depth = 0

    def step(self) -> None:
        if self.random.random() < 0.5:
            super().step()
            return
        steps = ("element", "written", "moved") + ("branch", "loop", "loop", "going") * (self.depth < DEPTH)
        getattr(self, self.pick(steps))()

    def add(self, values: Sequence[Value]) -> None:
        self.values += [
            value for value in values if value.type.size <= 1 << 16 and not isinstance(value.type, TapeType)
        ]

    # --- elements ----------------------------------------------------------------------------------
    def index(self, size: int) -> Value:
        """An index within bounds, also a negative one, known or computed."""
        found = [value for value in self.values if value.type == COUNT]
        if not found or self.random.random() < 0.4:
            return literal(int(self.random.integers(-size, size)), COUNT)
        return self.builder.emit(REGISTRY["remainder"], [self.pick(found), literal(size, COUNT)])

    def indices(self, value: Value) -> list[Value]:
        count = int(self.random.integers(1, value.type.rank + 1))
        return [self.index(size) for size in value.type.static_shape[:count]]

    def element(self) -> None:
        value = self.pick(self.values)
        if value.type.rank and value.type.size:
            self.add([self.builder.emit(REGISTRY["gather"], [value, *self.indices(value)], {"axis": 0})])

    def written(self) -> None:
        value = self.pick(self.values)
        if value.type.rank and value.type.size:
            indices = self.indices(value)
            part = self.like(value.type.with_shape(value.type.shape[len(indices) :]))
            name = self.pick(("scatter_set", "scatter_set", "scatter_add"))
            self.add([self.builder.emit(REGISTRY[name], [value, part, *indices], {"axis": 0})])

    def moved(self) -> None:
        value = self.pick(self.values)
        if value.type.rank and value.type.dtype.kind != "b":
            self.emit("sort", value, axis=int(self.random.integers(value.type.rank)))

    # --- control flow ------------------------------------------------------------------------------
    def predicate(self) -> Value:
        value = self.pick(self.values)
        found = self.builder.emit(REGISTRY[self.pick(COMPARISONS)], [value, self.like(value.type)])
        if value.type.rank:
            found = self.builder.emit(REGISTRY["reduce_or"], [found], {"axes": tuple(range(value.type.rank))})
        return found

    def operands(self) -> list[Value]:
        """Some values that are not too large, each perhaps several times."""
        small = [value for value in self.values if value.type.size <= SMALL]
        return [self.pick(small) for _ in range(int(self.random.integers(1, 5)))] if small else []

    def region(self, types: Sequence[ArrayType], wanted: Sequence[ArrayType], columns: int = 0) -> Region:
        """A region on parameters of these types that gives what is wanted, and columns."""
        inner = Structured(0, self.steps)
        inner.random, inner.depth = self.random, self.depth + 1
        inner.values = [inner.builder.param(type) for type in types]
        for _ in range(int(self.random.integers(1, 5))):
            inner.step()
        results = [inner.like(type) for type in wanted]
        small = [value for value in inner.values if value.type.size <= SMALL]
        results += [inner.pick(small) for _ in range(columns if small else 0)]
        return inner.builder.region(results)

    def branch(self) -> None:
        operands = self.operands()
        if operands:
            types = [value.type for value in operands]
            wanted = [self.pick(types) for _ in range(int(self.random.integers(1, 4)))]
            regions = [self.region(types, wanted) for _ in range(2)]
            operation = self.builder.emit_operation(REGISTRY["cond"], [self.predicate(), *operands], {}, regions)
            self.add(operation.results)

    def loop(self) -> None:
        """A loop, and one that reads its columns, which are tapes where the number of trips is a value."""
        operands = self.operands()
        if not operands:
            return
        types = [value.type for value in operands]
        carries, trips = int(self.random.integers(len(operands) + 1)), int(self.random.integers(4))
        counted = self.random.random() < 0.5
        given = [literal(trips, COUNT)] if counted else []

        def attrs(carries: int, consts: int) -> dict[str, Any]:
            reverse = bool(self.random.random() < 0.5)
            return {"trips": None if counted else trips, "carries": carries, "consts": consts, "reverse": reverse}

        body = self.region([COUNT, *types], types[:carries], int(self.random.integers(3)))
        made = attrs(carries, len(operands) - carries)
        found = self.builder.emit_operation(REGISTRY["for"], [*given, *operands], made, [body]).results
        self.add(found)
        columns = found[carries:]
        if columns:
            elements = [value.type for value in body.results[carries:]]
            again = self.region([COUNT, types[0], *elements], types[:1])
            operands = [*given, operands[0], *columns]
            self.add(self.builder.emit_operation(REGISTRY["for"], operands, attrs(1, 0), [again]).results)

    def going(self) -> None:
        """A loop that ends after so many trips at the latest, with tapes that another loop reads."""
        operands = self.operands()
        if not operands:
            return
        types = [COUNT, *[value.type for value in operands]]
        limit = literal(int(self.random.integers(5)), COUNT)
        test = Structured(0)
        test.random, test.depth = self.random, DEPTH
        test.values = [test.builder.param(type) for type in types]
        below = test.builder.emit(REGISTRY["less"], [test.values[0], limit])
        below = test.builder.emit(REGISTRY["logical_and"], [below, test.predicate()])
        if self.random.random() < 0.5:
            below = test.builder.emit(REGISTRY["less"], [test.values[0], limit])
        condition = test.builder.region([below])
        body = self.region(types, types, int(self.random.integers(3)))
        trip = Structured(0).builder
        params = [trip.param(type) for type in types]
        # The count is the body's own carry: it goes up by one, whatever the drawn region gives for it.
        inner = trip.emit_operation(REGISTRY["cond"], [literal(True, ArrayType(np.dtype(np.bool_))), *params], {},
                                    [body, body]).results  # fmt: skip
        one = trip.emit(REGISTRY["add"], [params[0], literal(1, COUNT)])
        region = trip.region([one, *inner[1:]])
        operands = [literal(0, COUNT), *operands]
        attrs = {"carries": len(types)}
        found = self.builder.emit_operation(REGISTRY["while"], operands, attrs, [condition, region]).results
        self.add(found)
        tapes = found[len(types) + 1 :]
        if tapes:
            elements = [value.type.element for value in tapes if isinstance(value.type, TapeType)]
            again = self.region([COUNT, types[1], *elements], types[1:2])
            made = {"trips": None, "carries": 1, "consts": 0, "reverse": True}
            given = [found[len(types)], operands[1], *tapes]
            self.add(self.builder.emit_operation(REGISTRY["for"], given, made, [again]).results)


def random_structured(seed: int, steps: int = 8, kinds: Sequence[str] = STEPS) -> tuple[Function, list[Array]]:
    """A function with control flow and arguments for it; the same for the same seed."""
    drawing = Structured(seed, kinds)
    for _ in range(3):
        drawing.param()
    for _ in range(steps):
        drawing.step()
    made = drawing.values[3:]
    count = min(len(made), int(drawing.random.integers(1, 6)))
    return drawing.builder.function("random", [made[-1 - k] for k in range(count)]), drawing.arguments


def check(seed: int, steps: int = 8, kinds: Sequence[str] = STEPS) -> None:
    """The llvm backend gives what each op means, on exact types and to rounding."""
    function, arguments = random_structured(seed, steps, kinds)
    verify(function)
    given = [argument[()] for argument in arguments]
    copies = [argument.copy() for argument in arguments]
    found = BACKEND.compile(function).run(*given)
    for argument, copy in zip(arguments, copies, strict=True):
        np.testing.assert_array_equal(argument, copy)
    require_agreement(function, given, found, {4: 2e-3, 8: 1e-8})


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        check(number)
    print(f"{sys.argv[1]} to {sys.argv[2]} agree")
