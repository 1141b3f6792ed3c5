"""Reductions over axes, and cumulative sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.errors import ShapeError
from srcgrad.ir.opdef import (
    REGISTRY,
    Linear,
    LinearEmitter,
    NonDifferentiable,
    Op,
    Sample,
    Tangent,
    Term,
    Zero,
    broadcast_to,
    require_arity,
    require_kinds,
)
from srcgrad.ir.ops.rounding import along
from srcgrad.ir.ops.shapes import require_axes, without_axes
from srcgrad.ir.types import INT64, ArrayType, DType, Shape, Size, real_dtype


class Reduction(Op, abstract=True):
    """A reduction over ``axes`` (increasing, not negative); the axes disappear."""

    kinds: ClassVar[str] = "iufc"

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_axes(self.name, types[0], attrs["axes"])
        require_kinds(self, types[0], self.kinds)
        return types[0].with_shape(without_axes(types[0].shape, attrs["axes"]))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"{self.meaning}({operands[0]}{axis_argument(types[0], attrs['axes'])})"

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], **{**attrs, "axes": tuple(axis + 1 for axis in attrs["axes"])})

    def samples(self) -> Iterator[Sample]:
        values = np.array([[1.5, -2.0, 0.5], [3.0, 0.25, -1.0]])
        dtypes: list[DType] = [np.dtype(name) for name in ("float64", "float32", "complex128")]
        arrays: list[Any] = [values.astype(dtype) for dtype in dtypes if dtype.kind in self.kinds]
        for array in arrays or [values > 0]:
            for axes in ((0,), (1,), (0, 1), ()):
                yield Sample((array,), {"axes": axes}, label=array.dtype.name)


def axis_argument(type: ArrayType, axes: Sequence[int]) -> str:
    """The text of NumPy's axis argument; nothing where all axes are meant."""
    if len(axes) == type.rank:
        return ""
    return f", axis={axes[0] if len(axes) == 1 else tuple(axes)}"


def spread(term: Term, shape: Shape, axes: Sequence[int]) -> Term:
    """A result of a reduction over ``axes`` as an array of the operand's shape."""
    return broadcast_to(term, shape, tuple(axis for axis in range(len(shape)) if axis not in axes))


class ReduceSum(Reduction, Linear):
    """The sum over ``axes``."""

    meaning = "np.sum"
    masking = "mix"

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"np.sum({operands[0]}{axis_argument(types[0], attrs['axes'])}{exact_dtype(types[0])})"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        shape, axes = operands[0].type.shape, attrs["axes"]
        if not axes:
            return (cotangents[0],)
        dims = tuple(axis for axis in range(len(shape)) if axis not in axes)
        return (s.apply(REGISTRY["broadcast"], [cotangents[0]], {"shape": shape, "dims": dims}),)

    def mask(self, operands: Sequence[Term], attrs: Attrs) -> Term:
        return REGISTRY["reduce_or"](operands[0], axes=attrs["axes"])

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        yield Sample((np.zeros((0, 3)),), {"axes": (0,)}, label="empty")
        yield Sample((np.array(1.5),), {"axes": ()}, label="0-d")
        yield Sample((np.array([100, 100], np.int8),), {"axes": (0,)}, label="small integers")


def exact_dtype(type: ArrayType) -> str:
    """The text of NumPy's dtype argument where an accumulator would be wider than its operands."""
    return f", dtype=np.{type.dtype.name}" if type.dtype.kind in "iu" and type.dtype.itemsize < 8 else ""


class BooleanReduction(Reduction, NonDifferentiable, abstract=True):
    """A reduction of booleans."""

    kinds = "b"
    jvp = NonDifferentiable.jvp


class ReduceOr(BooleanReduction):
    """Whether any element over ``axes`` is true."""

    meaning = "np.any"


class ReduceAnd(BooleanReduction):
    """Whether all elements over ``axes`` are true."""

    meaning = "np.all"


def require_elements(name: str, type: ArrayType, axes: Sequence[int]) -> None:
    """Refuse axes without elements, of which there is no extreme."""
    if any(type.shape[axis] == 0 for axis in axes):
        raise ShapeError(f"{name} of {type} over axes {tuple(axes)}: there are no elements")


class ExtremeReduction(Reduction, abstract=True):
    """The largest or smallest element over ``axes``; nan if there is one.

    The elements equal to the result share its tangent equally, and so do all nan if it is nan. What is not chosen does
    not contribute.
    """

    kinds = "biuf"

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        result = super().result_type(types, attrs)
        require_elements(self.name, types[0], attrs["axes"])
        return result

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """sum(t where x is extreme) / count(x is extreme)."""
        operand, axes = operands[0], attrs["axes"]
        chosen = (operand == spread(results[0], operand.shape, axes)) | REGISTRY["is_nan"](operand)
        count = REGISTRY["reduce_sum"](REGISTRY["cast"](chosen, dtype=operand.dtype), axes=axes)
        part = s.select(chosen, tangents[0], Zero(operand.type))
        total = s.apply(REGISTRY["reduce_sum"], [part], {"axes": axes})
        return (s.apply(REGISTRY["div"], [total, count]),)

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        ties = np.array([[2.0, 2.0, 1.0], [0.0, -0.0, 0.0], [np.nan, 1.0, np.nan], [np.inf, np.inf, -np.inf]])
        yield Sample((ties,), {"axes": (1,)}, smooth=False, label="ties and nan")
        yield Sample((np.zeros((0, 2)),), {"axes": (1,)}, label="empty result")
        yield Sample((np.array(1.5),), {"axes": ()}, label="0-d")
        yield Sample((np.array([[3, 1], [2, 5]]),), {"axes": (0,)}, smooth=False, label="integers")


class ReduceMax(ExtremeReduction):
    """The largest element over ``axes``."""

    meaning = "np.max"


class ReduceMin(ExtremeReduction):
    """The smallest element over ``axes``."""

    meaning = "np.min"


class IndexReduction(NonDifferentiable, abstract=True):
    """The position of an element along ``axis``, int64; the axis disappears."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_kinds(self, types[0], "biuf")
        require_axes(self.name, types[0], (attrs["axis"],))
        require_elements(self.name, types[0], (attrs["axis"],))
        return ArrayType(INT64, without_axes(types[0].shape, (attrs["axis"],)))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"{self.meaning}({operands[0]}, axis={attrs['axis']})"

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], axis=attrs["axis"] + 1)

    def samples(self) -> Iterator[Sample]:
        values = np.array([[1.5, -2.0, 1.5], [-1.0, 0.25, -1.0]])
        for axis in (0, 1):
            yield Sample((values,), {"axis": axis}, label="ties")
        yield Sample((np.array([1.0, np.nan, np.nan, np.inf]),), {"axis": 0}, label="nan")
        yield Sample((values.astype(np.float32),), {"axis": 0}, label="float32")
        yield Sample((np.array([3, 1, 3]),), {"axis": 0}, label="integers")
        yield Sample((np.array([False, True, True]),), {"axis": 0}, label="booleans")
        yield Sample((np.zeros((0, 2)),), {"axis": 1}, label="empty result")


class Argmax(IndexReduction):
    """The first position of the largest element along ``axis``; of a nan, if there is one."""

    meaning = "np.argmax"


class Argmin(IndexReduction):
    """The first position of the smallest element along ``axis``; of a nan, if there is one."""

    meaning = "np.argmin"


class ReduceNorm(Reduction):
    """The Euclidean norm over ``axes``, real also of complex numbers; at the kink, a norm of 0, the derivative is 0."""

    kinds = "fc"

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        result = super().result_type(types, attrs)
        return result.with_dtype(real_dtype(result.dtype))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        size = f"np.abs({operands[0]})" if types[0].dtype.kind == "c" else operands[0]
        return f"np.sqrt(np.sum(np.square({size}){axis_argument(types[0], attrs['axes'])}))"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """sum(Re(conj(x) t))/norm."""
        operand, axes = operands[0], attrs["axes"]
        norm = spread(results[0], operand.shape, axes)
        if operand.dtype.kind == "c":
            part = along(s, operand, tangents[0], norm)
        else:
            slope = REGISTRY["select"](norm == 0.0, 0.0, operand / norm)
            part = s.scale(tangents[0], REGISTRY["slope_of_norm"](slope, norm, order=0, part=0))
        return (s.apply(REGISTRY["reduce_sum"], [part], {"axes": axes}),)

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        yield Sample((np.array([[1.5, 1j], [2 - 1j, -0.5 + 0.25j]]),), {"axes": (1,)}, label="complex plane")
        yield Sample((np.array([[0.0, 0.0], [3.0, -0.0]]),), {"axes": (1,)}, smooth=False, label="kink")
        yield Sample((np.zeros(2, np.complex128),), {"axes": (0,)}, smooth=False, label="complex kink")
        yield Sample((np.zeros((0, 2)),), {"axes": (0,)}, smooth=False, label="empty")


class Cumsum(Linear):
    """The cumulative sum along ``axis``, from the end if ``reverse``; of booleans, the cumulative disjunction."""

    masking = "mix"

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_axes(self.name, types[0], (attrs["axis"],))
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        axis, name = attrs["axis"], operands[0]
        function = "np.logical_or.accumulate" if result.dtype.kind == "b" else "np.cumsum"
        arguments = f"axis={axis}{exact_dtype(result)}"
        if not attrs["reverse"]:
            return f"{function}({name}, {arguments})"
        return f"np.flip({function}(np.flip({name}, {axis}), {arguments}), {axis})"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        return (s.apply(self, [cotangents[0]], {"axis": attrs["axis"], "reverse": not attrs["reverse"]}),)

    def mask(self, operands: Sequence[Term], attrs: Attrs) -> Term:
        return self(operands[0], **attrs)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], axis=attrs["axis"] + 1, reverse=attrs["reverse"])

    def samples(self) -> Iterator[Sample]:
        values = np.array([[1.5, -2.0, 0.5], [3.0, 0.25, -1.0]])
        for reverse in (False, True):
            for axis in (0, 1):
                yield Sample((values,), {"axis": axis, "reverse": reverse})
            yield Sample((values.astype(np.float32),), {"axis": 1, "reverse": reverse}, label="float32")
            yield Sample((values * (1 - 2j),), {"axis": 1, "reverse": reverse}, label="complex")
            yield Sample((np.zeros((0, 2)),), {"axis": 0, "reverse": reverse}, label="empty")
            yield Sample((np.array([False, True, False]),), {"axis": 0, "reverse": reverse}, label="booleans")
            yield Sample((np.array([100, 100], np.int8),), {"axis": 0, "reverse": reverse}, label="small integers")
