"""Convolution: a window of the full convolution, which is closed under transposition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from srcgrad.ir.core import Attrs, literal
from srcgrad.ir.errors import DTypeError, ShapeError
from srcgrad.ir.opdef import (
    REGISTRY,
    Linear,
    LinearEmitter,
    Sample,
    Tangent,
    Term,
    Zero,
    batch_all,
    require_arity,
)
from srcgrad.ir.types import BOOL, ArrayType, Size

NATIVE_MODES = ("full", "valid", "same")


def native_window(mode: str, left: int, right: int) -> tuple[int, int]:
    """The start and the size of what NumPy's ``mode`` keeps of the full convolution of two lengths."""
    long, short = max(left, right), min(left, right)
    if mode == "full":
        return 0, long + short - 1
    if mode == "valid":
        return short - 1, long - short + 1
    return (short - 1) // 2, long


class Convolve(Linear):
    """Elements of the full convolution over the last axes: from ``starts`` on, ``sizes`` of them.

    Element k of the full convolution of x and y is the sum over j of x[k - j] y[j]; elements outside of it are 0. The
    axes before the last ``len(starts)`` ones are the same in both operands, and each of their examples is convolved
    with its own. Linear in each operand; complex operands are not conjugated; of booleans, the disjunction of
    conjunctions. Structural zeros are kept from result to result, as in a dot product.
    """

    linear = (0, 1)
    separate = True
    masking = "mix"
    keeps_zero = False
    helpers: ClassVar[tuple[str, ...]] = ("convolve",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        left, right = types
        starts, sizes = attrs["starts"], attrs["sizes"]
        if left.dtype != right.dtype:
            raise DTypeError(f"convolve: operands differ, {left} and {right}")
        examples = left.rank - len(starts)
        if len(starts) != len(sizes) or not starts or left.rank != right.rank or examples < 0:
            raise ShapeError(f"convolve: {left} and {right} do not fit a window of {len(starts)} axes")
        if left.shape[:examples] != right.shape[:examples]:
            raise ShapeError(f"convolve: the first axes of {left} and {right} differ")
        if 0 in left.static_shape[examples:] or 0 in right.static_shape[examples:] or any(size < 0 for size in sizes):
            raise ShapeError(f"convolve: {left} and {right} over {len(starts)} axes, a window of {sizes}: one is empty")
        return left.with_shape((*left.shape[:examples], *sizes))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        starts, sizes = tuple(attrs["starts"]), tuple(attrs["sizes"])
        if types[0].rank == 1 and result.dtype != BOOL:
            (left,), (right,) = types[0].static_shape, types[1].static_shape
            for mode in NATIVE_MODES:
                if native_window(mode, left, right) == (starts[0], sizes[0]):
                    option = "" if mode == "full" else f', "{mode}"'
                    return f"np.convolve({operands[0]}, {operands[1]}{option})"
        return f"convolve({operands[0]}, {operands[1]}, {starts}, {sizes})"

    def mask(self, operands: Sequence[Term], attrs: Attrs) -> Term:
        """The convolution of the mask with an operand that is there everywhere."""
        masks = [
            operand if operand.dtype == BOOL else Term(operand.builder, literal(True, operand.type.with_dtype(BOOL)))
            for operand in operands
        ]
        return self(*masks, **attrs)

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        """sum over k of u[k] y[start + k - i]: the convolution with the reversed y, m elements, from m - 1 - start."""
        starts = attrs["starts"]
        if 0 in attrs["sizes"]:
            return [None if isinstance(operand, Term) else Zero(operand.type) for operand in operands]
        for k, (own, other) in enumerate((operands, operands[::-1])):
            if isinstance(other, Term):
                rank = len(starts)
                axes = tuple(range(other.rank - rank, other.rank))
                lengths = [other.type.static_shape[axis] for axis in axes]
                window = {
                    "starts": tuple(length - 1 - start for length, start in zip(lengths, starts, strict=True)),
                    "sizes": tuple(own.type.static_shape[-rank:]),
                }
                found = s.apply(self, [cotangents[0], REGISTRY["reverse"](other, axes=axes)], window)
                return (found, None) if k == 0 else (None, found)
        return (None, None)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(*batch_all(size, operands, batched), **attrs)

    def samples(self) -> Iterator[Sample]:
        x, y = np.array([1.5, -2.0, 0.5, 3.0, 0.25]), np.array([0.5, -1.0, 2.0])
        for mode in NATIVE_MODES:
            start, size = native_window(mode, 5, 3)
            attrs = {"starts": (start,), "sizes": (size,)}
            yield Sample((x, y), attrs, label=mode)
            yield Sample((y, x), attrs, label=f"{mode}, short operand first")
        for start, size in ((-2, 4), (5, 6), (1, 2), (3, 0)):
            yield Sample((x, y), {"starts": (start,), "sizes": (size,)}, label="another window")
        inner: dict[str, Any] = {"starts": (1,), "sizes": (4,)}
        for dtype in (np.float32, np.complex128, np.int32, np.bool_):
            yield Sample((x.astype(dtype), y.astype(dtype)), inner, label=np.dtype(dtype).name)
        yield Sample((x[:4].reshape(2, 2), y[:2].reshape(2, 1)), {"starts": (0,), "sizes": (2,)}, label="examples")
        long, short = np.stack([x, x[::-1]]), np.stack([y, -y])
        yield Sample((long, short), inner, label="two examples")
        image, stencil = np.outer(y, x[:3]), np.outer(x[:2], y[:2]) + 1.0
        for starts, sizes in (((0, 0), (4, 4)), ((1, 1), (2, 2)), ((-1, 2), (3, 3))):
            yield Sample((image, stencil), {"starts": starts, "sizes": sizes}, label="two axes")
        yield Sample((image[None], stencil[None]), {"starts": (1, 0), "sizes": (2, 3)}, label="examples of two axes")
