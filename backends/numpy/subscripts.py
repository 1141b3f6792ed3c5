"""Operations as people write them: ``x[1]`` for a slice that is reshaped, ``np.stack`` for what is set part by part.

Indexing with integers, and unpacking, are slices and reshapes in the IR, and their transposes fill zeros with a slice
for each. As text they are what was written: an index of an axis, or an array of its parts. Numbers along one axis of an
array are those of one axis, which NumPy broadcasts where they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from srcgrad.backends.numpy.chunks import Env
from srcgrad.ir.core import Attrs, Literal, Operation, Value
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.ops.indexing import Slice, SliceSet, slice_text
from srcgrad.ir.ops.shapes import Concatenate, unit_axes
from srcgrad.ir.types import ArrayType, DType

MOST_PARTS: Final = 64
MOST_BYTES: Final = 4096
"""Of a larger array, the parts would lie in memory beside it, where one after the other is written into it."""

Axes = tuple[int, ...]


class _Indexed(Slice, abstract=True):
    """A slice without its axes ``dropped``, each of size 1: they are indexed with integers."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        sliced, dropped = super().result_type(types, attrs), attrs["dropped"]
        return sliced.with_shape(size for axis, size in enumerate(sliced.shape) if axis not in dropped)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"{operands[0]}[{slice_text(types[0], attrs, attrs['dropped'])}]"


class _IndexedSet(SliceSet, abstract=True):
    """The first operand with a slice replaced by the second, which lacks the slice's axes ``dropped``."""

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"slice_set({operands[0]}, {operands[1]}, np.s_[{slice_text(types[0], attrs, attrs['dropped'])}])"


class _Stack(Concatenate, abstract=True):
    """The operands along a new ``axis``."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        shape = list(types[0].shape)
        shape.insert(attrs["axis"], len(types))
        return types[0].with_shape(shape)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        if not types[0].rank:
            return f"np.array([{', '.join(operands)}])"  # of NumPy's scalars, which have the dtype
        axis = f", axis={attrs['axis']}" if attrs["axis"] else ""
        return f"np.stack(({', '.join(operands)}){axis})"


_WRITTEN_OTHERWISE: Final = frozenset({"broadcast", "concatenate", "iota", "slice", "slice_set"})
_INDEXED: Final = _Indexed()
_INDEXED_SET: Final = _IndexedSet()
_STACK: Final = _Stack()


def as_subscripts(
    operations: Sequence[Operation], results: Sequence[Value]
) -> tuple[Sequence[Operation], Sequence[Value]]:
    """The operations with those replaced that have a shorter text together, and the results."""
    if not any(operation.op.name in _WRITTEN_OTHERWISE for operation in operations):
        return operations, results
    return _Rewriter(operations, results).rewritten()


class _Rewriter:
    def __init__(self, operations: Sequence[Operation], results: Sequence[Value]) -> None:
        self.operations, self.results = operations, results
        self.uses: dict[Value, int] = {}
        for value in (*(value for operation in operations for value in operation.operands), *results):
            self.uses[value] = self.uses.get(value, 0) + 1
        self.makers = {operation.results[0]: operation for operation in operations if len(operation.results) == 1}
        self.written: list[Operation] = []
        self.env: Env = {}
        self.merged: set[Operation] = set()
        """What may have no use any more."""
        self.counters: dict[tuple[int, DType], Value] = {}
        self.elements: dict[tuple[Value, Axes], Value] = {}
        """What slices are without some axes, as it is written."""

    def rewritten(self) -> tuple[Sequence[Operation], Sequence[Value]]:
        for operation in self.operations:
            found = self.replaced(operation)
            if found is None and operation.results and operation.results[0] in self.env:
                continue
            if found is None:
                operands = self.looked_up(operation.operands)
                if operands == operation.operands:
                    self.written.append(operation)
                    continue
                found = (operation.op, operands, operation.attrs)
            self.emit(operation, *found)
            if operation.op.name == "reshape" and found[0] is _INDEXED:
                self.elements[operation.operands[0], found[2]["dropped"]] = self.env[operation.results[0]]
        results = self.looked_up(self.results)
        return self.without_merged(results), results

    def emit(self, operation: Operation, op: object, operands: Sequence[Value], attrs: Attrs) -> None:
        types = [value.type for value in operation.results]
        new = Operation(op, tuple(operands), attrs, operation.regions, types, operation.span)  # type: ignore[arg-type]
        for old, value in zip(operation.results, new.results, strict=True):
            value.name = old.name
            self.env[old] = value
        self.written.append(new)

    def looked_up(self, values: Sequence[Value]) -> tuple[Value, ...]:
        return tuple([self.env.get(value, value) for value in values])

    def replaced(self, operation: Operation) -> tuple[object, Sequence[Value], Attrs] | None:
        """Op, operands and attributes of what is written for an operation, where that is something else."""
        if operation.op.name == "reshape":
            return self.indexed(operation) or self.reshaped_once(operation)
        if operation.op.name == "iota":
            return self.counted_along_one_axis(operation)
        if operation.op.name == "concatenate" and len(operation.operands) > 1:
            return self.stacked(operation.operands, operation.attrs["axis"])
        if operation.op.name == "slice_set":
            return self.joined(operation) or self.set_at_index(operation)
        return None

    def made_by(self, value: Value, name: str) -> Operation | None:
        maker = self.makers.get(value)
        return maker if maker is not None and maker.op.name == name else None

    def indexed(self, operation: Operation) -> tuple[object, Sequence[Value], Attrs] | None:
        """A slice that is reshaped to lack some axes."""
        sliced = self.made_by(operation.operands[0], "slice")
        if sliced is None:
            return None
        dropped = unit_axes(sliced.results[0].type.shape, operation.results[0].type.shape)
        if not dropped:
            return None
        self.merged.add(sliced)
        return _INDEXED, self.looked_up(sliced.operands), {**sliced.attrs, "dropped": dropped}

    def reshaped_once(self, operation: Operation) -> tuple[object, Sequence[Value], Attrs] | None:
        """A broadcast that adds axes of size 1, which a reshape takes away or puts elsewhere."""
        spread = self.made_by(operation.operands[0], "broadcast")
        if spread is None or spread.operands[0].type.size != spread.results[0].type.size:
            return None
        self.merged.add(spread)
        (source,), result = self.looked_up(spread.operands), operation.results[0]
        if source.type.shape != result.type.shape:
            return operation.op, (source,), operation.attrs
        self.env[result] = source
        return None

    def counted_along_one_axis(self, operation: Operation) -> tuple[object, Sequence[Value], Attrs] | None:
        """Numbers along one of several axes: those of an axis alone, for all such arrays, and spread."""
        shape, axis, dtype = operation.results[0].type.shape, operation.attrs["axis"], operation.attrs["dtype"]
        size = operation.results[0].type.static_shape[axis]
        if len(shape) < 2:
            return None
        if (size, dtype) not in self.counters:
            type = ArrayType(dtype, (size,))
            attrs = {"shape": type.shape, "axis": 0, "dtype": dtype}
            self.written.append(Operation(operation.op, (), attrs, (), [type], operation.span))
            self.counters[size, dtype] = self.written[-1].results[0]
        return REGISTRY["broadcast"], (self.counters[size, dtype],), {"shape": shape, "dims": (axis,)}

    def set_at_index(self, operation: Operation) -> tuple[object, Sequence[Value], Attrs] | None:
        """A slice that is set to an array with further axes of size 1."""
        array, part = operation.operands
        inner, dropped = self.without_unit_axes(part)
        if not dropped:
            return None
        return _INDEXED_SET, self.looked_up((array, inner)), {**operation.attrs, "dropped": dropped}

    def without_unit_axes(self, part: Value) -> tuple[Value, Axes]:
        """What has been reshaped to have further axes of size 1, and these."""
        reshaped = self.made_by(part, "reshape") or self.made_by(part, "broadcast")
        if reshaped is None or reshaped.operands[0].type.size != part.type.size:
            return part, ()
        inner = reshaped.operands[0]
        dropped = unit_axes(part.type.shape, inner.type.shape)
        if not dropped:
            return part, ()
        self.merged.add(reshaped)
        return inner, dropped

    def joined(self, operation: Operation) -> tuple[object, Sequence[Value], Attrs] | None:
        """The last of slices that fill a small array along one axis."""
        type = operation.results[0].type
        if type.size * type.dtype.itemsize > MOST_BYTES:
            return None
        links = [operation]
        while (
            self.uses[links[-1].operands[0]] == 1
            and (inner := self.made_by(links[-1].operands[0], "slice_set")) is not None
            and len(links) < MOST_PARTS
        ):
            links.append(inner)
        axis = _filled_axis(links)
        if axis is None:
            return None
        links.sort(key=lambda link: link.attrs["starts"][axis])
        self.merged.update(links)
        parts = [link.operands[1] for link in links]
        return self.stacked(parts, axis) or (REGISTRY["concatenate"], self.looked_up(parts), {"axis": axis})

    def stacked(self, parts: Sequence[Value], axis: int) -> tuple[object, Sequence[Value], Attrs] | None:
        """Parts of size 1 along an axis, of which one has been reshaped to have it."""
        if any(part.type.shape[axis] != 1 for part in parts):
            return None
        elements = [self.without_axis(part, axis) for part in parts]
        if any(isinstance(element, Value) and not isinstance(element, Literal) for element in elements):
            elements = [element or self.element_of(part, axis) for element, part in zip(elements, parts, strict=True)]
        found = [element for element in elements if element is not None]
        return (_STACK, self.looked_up(found), {"axis": axis}) if len(found) == len(parts) else None

    def without_axis(self, part: Value, axis: int) -> Value | None:
        """What has been reshaped to have this axis, of size 1."""
        if isinstance(part, Literal):
            shape = (*part.type.shape[:axis], *part.type.shape[axis + 1 :])
            single = part.splat and part.type.shape[axis] == 1
            return Literal(part.value, part.type.with_shape(shape)) if single else None
        inner, dropped = self.without_unit_axes(part)
        return inner if dropped == (axis,) else None

    def element_of(self, part: Value, axis: int) -> Value | None:
        """What a slice is without this axis, of size 1: beside others that have been reshaped to have it."""
        sliced = self.made_by(part, "slice")
        if sliced is None:
            return None
        self.merged.add(sliced)
        known = self.elements.get((part, (axis,)))
        if known is None:
            attrs = {**sliced.attrs, "dropped": (axis,)}
            types = [_INDEXED.result_type([sliced.operands[0].type], attrs)]
            self.written.append(Operation(_INDEXED, self.looked_up(sliced.operands), attrs, (), types, sliced.span))
            known = self.elements[part, (axis,)] = self.written[-1].results[0]
        return known

    def without_merged(self, results: Sequence[Value]) -> Sequence[Operation]:
        """What is written, but for what nothing reads since it is part of something else."""
        merged = {self.env.get(value, value) for operation in self.merged for value in operation.results}
        read, kept = set(results), list[Operation]()
        for operation in reversed(self.written):
            if merged.issuperset(operation.results) and read.isdisjoint(operation.results) and operation.results:
                continue
            read.update(operation.operands)
            kept.append(operation)
        return kept[::-1]


def _filled_axis(links: Sequence[Operation]) -> int | None:
    """The axis along which slices fill an array without gaps, each element once."""
    shape = links[0].results[0].type.static_shape
    if len(links) < 2 or 0 in shape:
        return None
    for axis, size in enumerate(shape):
        ranges = sorted((link.attrs["starts"][axis], link.attrs["limits"][axis]) for link in links)
        if ranges[0][0] == 0 and ranges[-1][1] == size and all(a[1] == b[0] for a, b in pairwise(ranges)):
            break
    else:
        return None
    for link in links:
        bounds = zip(link.attrs["starts"], link.attrs["limits"], link.attrs["strides"], shape, strict=True)
        for place, (start, limit, stride, size) in enumerate(bounds):
            if stride != 1 or (place != axis and (start, limit) != (0, size)):
                return None
    return axis
