"""Ops that move elements without computing: broadcast, reshape, transpose, reverse, concatenate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.errors import AxisError, ShapeError
from srcgrad.ir.opdef import REGISTRY, Linear, LinearEmitter, Sample, Tangent, Term, Zero, batch_all, require_arity
from srcgrad.ir.types import ArrayType, Shape, Size


def move_samples(attrs: dict[str, Any], shape: tuple[int, ...]) -> Iterator[Sample]:
    """The same movement of float64, float32 and complex elements."""
    values = np.arange(float(np.prod(shape))).reshape(shape) - 2.0
    yield Sample((values,), attrs)
    yield Sample((values.astype(np.float32),), attrs, label="float32")
    yield Sample((values * (1 - 2j),), attrs, label="complex")


class Broadcast(Linear):
    """Repeat along new axes or axes of size 1: operand axis i becomes axis ``dims[i]`` of a result of ``shape``."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        operand, shape, dims = types[0], attrs["shape"], attrs["dims"]
        increasing = all(a < b for a, b in pairwise(dims))
        if len(dims) != operand.rank or not increasing or (dims and dims[-1] >= len(shape)):
            raise ShapeError(f"broadcast: dims {dims} do not place the axes of {operand} in {shape}")
        for size, dim in zip(operand.shape, dims, strict=True):
            if size not in (1, shape[dim]):
                raise ShapeError(f"broadcast: {operand} does not broadcast to {shape} with dims {dims}")
        return operand.with_shape(shape)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        placed = aligned(operands[0], types[0], result.rank, attrs["dims"])
        return f"np.broadcast_to({placed}, {result.static_shape})"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        """The sum over the repeated axes."""
        operand, shape, dims = operands[0].type, attrs["shape"], attrs["dims"]
        kept = {dim for size, dim in zip(operand.shape, dims, strict=True) if size == shape[dim]}
        axes = tuple(axis for axis in range(len(shape)) if axis not in kept)
        total = s.apply(REGISTRY["reduce_sum"], [cotangents[0]], {"axes": axes}) if axes else cotangents[0]
        if total.type.shape != operand.shape:
            total = s.apply(REGISTRY["reshape"], [total], {"shape": operand.shape})
        return (total,)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], shape=(size, *attrs["shape"]), dims=(0, *(dim + 1 for dim in attrs["dims"])))

    def samples(self) -> Iterator[Sample]:
        yield from move_samples({"shape": (2, 3), "dims": (1,)}, (3,))
        yield from move_samples({"shape": (3, 2), "dims": (0, 1)}, (3, 1))
        yield Sample((np.array(2.0),), {"shape": (2, 2), "dims": ()}, label="0-d")
        yield Sample((np.array([2.0]),), {"shape": (0,), "dims": (0,)}, label="to empty")


def aligned(name: str, operand: ArrayType, rank: int, dims: Sequence[int]) -> str:
    """NumPy text that puts operand axes at ``dims`` of ``rank`` axes, by inserting axes of size 1."""
    if rank == 0 or operand.rank == 0 or tuple(dims) == tuple(range(rank - operand.rank, rank)):
        return name
    first = min(dims)
    parts = [":" if axis in dims else "None" for axis in range(first, rank)]
    return f"{name}[{', '.join(parts)}]"


class Reshape(Linear):
    """The same elements, in C order, in another shape."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        result = types[0].with_shape(attrs["shape"])
        if result.size != types[0].size:
            raise ShapeError(
                f"reshape: {types[0]} has {types[0].size} elements, the shape {result.shape} {result.size}"
            )
        return result

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        shape, array = result.static_shape, types[0].static_shape
        if array and (dropped := unit_axes(array, shape)):
            return f"{operands[0]}[{_subscript(len(array), dropped, '0')}]"
        if array and (added := unit_axes(shape, array)):
            return f"{operands[0]}[{_subscript(len(shape), added, 'None')}]"
        return f"np.reshape({operands[0]}, {shape})"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        return (s.apply(self, [cotangents[0]], {"shape": operands[0].type.shape}),)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], shape=(size, *attrs["shape"]))

    def samples(self) -> Iterator[Sample]:
        yield from move_samples({"shape": (2, 3)}, (3, 2))
        yield Sample((np.zeros((0, 3)),), {"shape": (3, 0, 2)}, label="empty")
        yield Sample((np.array(2.0),), {"shape": (1, 1)}, label="0-d")


def unit_axes(shape: Shape, kept: Shape) -> tuple[int, ...]:
    """The axes of size 1 without which ``shape`` is ``kept``, the first that do; none where others are missing too."""
    axes, left = list[int](), len(kept)
    for axis in reversed(range(len(shape))):
        if left and shape[axis] == kept[left - 1]:
            left -= 1
        elif shape[axis] == 1:
            axes.append(axis)
        else:
            return ()
    return () if left else tuple(axes[::-1])


def _subscript(rank: int, axes: Sequence[int], text: str) -> str:
    """The axes as ``text`` between brackets, up to the last of them."""
    return ", ".join([text if axis in axes else ":" for axis in range(rank)][: axes[-1] + 1])


class Transpose(Linear):
    """Permute the axes: result axis i is operand axis ``perm[i]``."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        perm = attrs["perm"]
        if sorted(perm) != list(range(types[0].rank)):
            raise AxisError(f"transpose: {perm} does not permute the axes of {types[0]}")
        return types[0].with_shape(types[0].shape[axis] for axis in perm)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        perm = attrs["perm"]
        if tuple(perm) == tuple(reversed(range(len(perm)))):
            return f"{operands[0]}.T"
        return f"np.transpose({operands[0]}, {tuple(perm)})"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        perm = attrs["perm"]
        inverse = tuple(sorted(range(len(perm)), key=perm.__getitem__))
        return (s.apply(self, [cotangents[0]], {"perm": inverse}),)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], perm=(0, *(axis + 1 for axis in attrs["perm"])))

    def samples(self) -> Iterator[Sample]:
        yield from move_samples({"perm": (1, 0)}, (3, 2))
        yield from move_samples({"perm": (1, 2, 0)}, (2, 3, 2))
        yield Sample((np.array(2.0),), {"perm": ()}, label="0-d")


class Reverse(Linear):
    """Reverse the order of the elements along ``axes``."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_axes(self.name, types[0], attrs["axes"])
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        parts = ["::-1" if axis in attrs["axes"] else ":" for axis in range(max(attrs["axes"]) + 1)]
        return f"{operands[0]}[{', '.join(parts)}]"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        return (s.apply(self, [cotangents[0]], attrs),)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], axes=tuple(axis + 1 for axis in attrs["axes"]))

    def samples(self) -> Iterator[Sample]:
        yield from move_samples({"axes": (0,)}, (3, 2))
        yield from move_samples({"axes": (0, 1)}, (3, 2))
        yield Sample((np.zeros((0, 3)),), {"axes": (0,)}, label="empty")


class Concatenate(Linear):
    """Join the operands along ``axis``. It is linear in all operands together."""

    linear = ()

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        axis, first = attrs["axis"], types[0]
        require_axes(self.name, first, (axis,))
        total = 0
        for type in types:
            rest = type.shape[:axis] + type.shape[axis + 1 :]
            if type.dtype != first.dtype or rest != first.shape[:axis] + first.shape[axis + 1 :]:
                raise ShapeError(f"concatenate: {first} and {type} differ beside axis {axis}")
            total += type.static_shape[axis]
        return first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :]))

    def linear_positions(self, arity: int, attrs: Attrs) -> tuple[int, ...]:
        return tuple(range(arity))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        comma, axis = "," if len(operands) == 1 else "", f", axis={attrs['axis']}" if attrs["axis"] else ""
        return f"np.concatenate(({', '.join(operands)}{comma}){axis})"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        axis, pieces, start = attrs["axis"], [], 0
        rank = cotangents[0].type.rank
        for operand in operands:
            shape = operand.type.static_shape
            starts = tuple(start if k == axis else 0 for k in range(rank))
            limits = tuple(start + shape[axis] if k == axis else shape[k] for k in range(rank))
            pieces.append(
                s.apply(
                    REGISTRY["slice"],
                    [cotangents[0]],
                    {"starts": starts, "limits": limits, "strides": (1,) * rank},
                )
            )
            start += shape[axis]
        return pieces

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(*batch_all(size, operands, batched), axis=attrs["axis"] + 1)

    def samples(self) -> Iterator[Sample]:
        a, b = np.arange(6.0).reshape(3, 2), np.ones((1, 2))
        yield Sample((a, b, a[:0]), {"axis": 0})
        yield Sample((a, a + 1), {"axis": 1})
        yield Sample((a.astype(np.float32), a.astype(np.float32)), {"axis": 1}, label="float32")
        yield Sample((a * 1j, b - 1j), {"axis": 0}, label="complex")


def require_axes(name: str, type: ArrayType, axes: Sequence[int]) -> None:
    """Axes must be distinct, in range and increasing."""
    if any(not 0 <= axis < type.rank for axis in axes) or list(axes) != sorted(set(axes)):
        raise AxisError(f"{name}: axes {tuple(axes)} do not fit {type}")


def without_axes(shape: Shape, axes: Sequence[int]) -> Shape:
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)
