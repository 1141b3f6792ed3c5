"""Arrays made of nothing but attributes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from srcgrad.ir.core import Attrs, Builder
from srcgrad.ir.opdef import REGISTRY, NonDifferentiable, Sample, Term, require_arity
from srcgrad.ir.ops.complexes import dtype_text
from srcgrad.ir.ops.shapes import require_axes
from srcgrad.ir.types import FLOAT64, INT64, ArrayType


class Iota(NonDifferentiable):
    """0, 1, 2, … along ``axis`` of an array of ``shape`` and ``dtype``, the same along all other axes. No operands."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 0)
        result = ArrayType(attrs["dtype"], attrs["shape"])
        require_axes(self.name, result, (attrs["axis"],))
        return result

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        shape, axis = result.static_shape, attrs["axis"]
        dtype = "" if result.dtype == INT64 else f", dtype={dtype_text(result.dtype)}"
        numbers = f"np.arange({shape[axis]}{dtype})"
        if len(shape) == 1:
            return numbers
        after = ", None" * (len(shape) - axis - 1)
        return f"np.broadcast_to({numbers}{f'[:{after}]' if after else ''}, {shape})"

    def samples(self) -> Iterator[Sample]:
        yield Sample((), {"shape": (4,), "axis": 0, "dtype": INT64})
        yield Sample((), {"shape": (2, 3), "axis": 0, "dtype": FLOAT64}, label="rows")
        yield Sample((), {"shape": (2, 3), "axis": 1, "dtype": np.dtype(np.float32)}, label="columns")
        yield Sample((), {"shape": (0, 3), "axis": 0, "dtype": np.dtype(np.complex128)}, label="empty")


def iota(builder: Builder, type: ArrayType, axis: int = 0) -> Term:
    """Emit `Iota`, which has no operand to take the builder from."""
    attrs = {"shape": type.shape, "axis": axis, "dtype": type.dtype}
    return Term(builder, builder.emit(REGISTRY["iota"], (), attrs))
