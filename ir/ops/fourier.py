"""Discrete Fourier, cosine and sine transforms along axes: linear, with exact transposes.

A transform is a matrix, and cotangents pair with tangents as Re(sum(u * t)), without a conjugate: so the transpose of
a complex transform, whose matrix is symmetric, is the same transform. Those between real and complex numbers are
transposes of each other, up to a conjugate and a weight: an element of the half spectrum that ``irfft`` reads stands
for itself and for its conjugate, but for those of frequency 0 and, of even lengths, of the highest frequency.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

import numpy as np

from srcgrad.ir.core import Attrs, literal
from srcgrad.ir.errors import AxisError, ShapeError
from srcgrad.ir.opdef import (
    REGISTRY,
    Linear,
    LinearEmitter,
    Sample,
    Tangent,
    Term,
    Zero,
    broadcast_to,
    require_arity,
    require_kinds,
)
from srcgrad.ir.ops.reductions import spread
from srcgrad.ir.types import ArrayType, Shape, Size, complex_dtype, real_dtype

REVERSED: Final = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The ``norm`` that gives the inverse direction of a transform the same factor."""


def option(name: str, value: str | int | bool | None, default: str | int | bool | None) -> str:
    """The text of a keyword argument; nothing for its default."""
    return "" if value == default else f", {name}={value!r}"


def require_transformed(name: str, type: ArrayType, axes: Sequence[int], least: int = 1) -> None:
    """The axes must be distinct axes of at least ``least`` elements."""
    if any(not 0 <= axis < type.rank for axis in axes) or len(set(axes)) < len(axes) or not axes:
        raise AxisError(f"{name}: axes {tuple(axes)} do not fit {type}")
    for axis in axes:
        if type.static_shape[axis] < least:
            raise ShapeError(f"{name}: {type} has fewer than {least} elements along axis {axis}")


def with_size(shape: Shape, axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


class Transform(Linear, abstract=True):
    """Every result depends on every operand along the transformed axes."""

    masking = "mix"

    def transformed(self, attrs: Attrs) -> tuple[int, ...]:
        """The axes that are mixed."""
        return (attrs["axis"],)

    def mask(self, operands: Sequence[Term], attrs: Attrs) -> Term:
        """Whether any element along the axes is there, for each of the results."""
        axes = self.transformed(attrs)
        mask = operands[0]
        found = REGISTRY["reduce_or"](mask, axes=tuple(sorted(axes)))
        return spread(found, self.mixed_shape(mask.shape, attrs), axes)

    def mixed_shape(self, shape: Shape, attrs: Attrs) -> Shape:
        """The shape of the result for operands of ``shape``."""
        return shape

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], **{**attrs, "axis": attrs["axis"] + 1})


# --- complex ----------------------------------------------------------------------------------------------------------


class ComplexTransform(Transform, abstract=True):
    """A transform of complex numbers along ``axes``, in that order; ``norm`` as in NumPy."""

    meaning: ClassVar[str]

    def transformed(self, attrs: Attrs) -> tuple[int, ...]:
        axes: tuple[int, ...] = attrs["axes"]
        return axes

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_kinds(self, types[0], "c")
        require_transformed(self.name, types[0], attrs["axes"])
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        axes, norm = attrs["axes"], option("norm", attrs["norm"], "backward")
        if len(axes) == 1:
            return f"{self.meaning}({operands[0]}, axis={axes[0]}{norm})"
        return f"{self.meaning}n({operands[0]}, axes={tuple(axes)}{norm})"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        """The matrix is symmetric."""
        return (s.apply(self, [cotangents[0]], attrs),)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], axes=tuple(axis + 1 for axis in attrs["axes"]), norm=attrs["norm"])

    def samples(self) -> Iterator[Sample]:
        random = np.random.default_rng(1)
        values = random.normal(size=(3, 4)) + 1j * random.normal(size=(3, 4))
        for axes, norm in (((1,), "backward"), ((0,), "ortho"), ((1, 0), "forward"), ((0, 1), "backward")):
            yield Sample((values,), {"axes": axes, "norm": norm}, label=norm)
        yield Sample((values[0, :1],), {"axes": (0,), "norm": "forward"}, label="one element")
        yield Sample((values[0].astype(np.complex64),), {"axes": (0,), "norm": "backward"}, label="complex64")
        yield Sample((values[:0],), {"axes": (1,), "norm": "backward"}, label="empty")


class Fft(ComplexTransform):
    """The discrete Fourier transform along ``axes``: result k is the sum of x[j] exp(-2πi jk/n)."""

    meaning = "np.fft.fft"


class Ifft(ComplexTransform):
    """The inverse discrete Fourier transform along ``axes``: result j is the sum of x[k] exp(2πi jk/n), over n."""

    meaning = "np.fft.ifft"


# --- between real and complex -----------------------------------------------------------------------------------------


def spectrum_weights(s: LinearEmitter, spectrum: ArrayType, axis: int, size: int, weight: float) -> Term:
    """1 for frequency 0 and, of even sizes, for the highest one, which are their own conjugates; else ``weight``."""
    weights = np.full(size // 2 + 1, weight, spectrum.dtype)
    weights[0] = 1.0
    if size % 2 == 0:
        weights[-1] = 1.0
    term = Term(s.builder, literal(weights, ArrayType(spectrum.dtype, weights.shape)))
    return broadcast_to(term, spectrum.shape, (axis,))


class Rfft(Transform):
    """The first half, n//2 + 1 elements, of the discrete Fourier transform of n real numbers along ``axis``."""

    def mixed_shape(self, shape: Shape, attrs: Attrs) -> Shape:
        axis = attrs["axis"]
        return with_size(shape, axis, ArrayType(np.dtype(bool), shape).static_shape[axis] // 2 + 1)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_kinds(self, types[0], "f")
        require_transformed(self.name, types[0], (attrs["axis"],))
        return ArrayType(complex_dtype(types[0].dtype), self.mixed_shape(types[0].shape, attrs))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"np.fft.rfft({operands[0]}, axis={attrs['axis']}{option('norm', attrs['norm'], 'backward')})"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        """Re(sum over k of u[k] exp(-2πi jk/n)): ``irfft`` of conj(u), which counts most elements twice."""
        axis = attrs["axis"]
        size = operands[0].type.static_shape[axis]
        weights = spectrum_weights(s, cotangents[0].type, axis, size, 0.5)
        spectrum = s.scale(s.apply(REGISTRY["conj"], [cotangents[0]]), weights)
        inverse = {"axis": axis, "n": size, "norm": REVERSED[attrs["norm"]]}
        return (s.apply(REGISTRY["irfft"], [spectrum], inverse),)

    def samples(self) -> Iterator[Sample]:
        values = np.random.default_rng(2).normal(size=(3, 4))
        for axis, norm in ((1, "backward"), (0, "backward"), (1, "ortho"), (0, "forward")):
            yield Sample((values,), {"axis": axis, "norm": norm}, label=norm)
        for size in (1, 2):
            yield Sample((values[0, :size],), {"axis": 0, "norm": "backward"}, label=f"{size} elements")
        yield Sample((values[0].astype(np.float32),), {"axis": 0, "norm": "ortho"}, label="float32")
        yield Sample((values[:0],), {"axis": 1, "norm": "backward"}, label="empty")


class Irfft(Transform):
    """The ``n`` real numbers along ``axis`` of which the operand, n//2 + 1 elements, is the ``rfft``.

    The imaginary parts at frequency 0 and, for even n, at the highest one are ignored.
    """

    def mixed_shape(self, shape: Shape, attrs: Attrs) -> Shape:
        return with_size(shape, attrs["axis"], attrs["n"])

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_kinds(self, types[0], "c")
        axis, size = attrs["axis"], attrs["n"]
        require_transformed(self.name, types[0], (axis,))
        if size < 1 or types[0].static_shape[axis] != size // 2 + 1:
            raise ShapeError(f"irfft: {types[0]} does not hold {size} // 2 + 1 elements along axis {axis}")
        return ArrayType(real_dtype(types[0].dtype), self.mixed_shape(types[0].shape, attrs))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        norm = option("norm", attrs["norm"], "backward")
        return f"np.fft.irfft({operands[0]}, {attrs['n']}, axis={attrs['axis']}{norm})"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        """``w[k] conj(rfft(u))[k]``: most elements count twice."""
        axis = attrs["axis"]
        forward = s.apply(REGISTRY["rfft"], [cotangents[0]], {"axis": axis, "norm": REVERSED[attrs["norm"]]})
        weights = spectrum_weights(s, operands[0].type, axis, attrs["n"], 2.0)
        return (s.scale(s.apply(REGISTRY["conj"], [forward]), weights),)

    def samples(self) -> Iterator[Sample]:
        random = np.random.default_rng(3)
        values = random.normal(size=(3, 3)) + 1j * random.normal(size=(3, 3))
        for axis, n, norm in ((1, 4, "backward"), (0, 5, "backward"), (1, 5, "ortho"), (0, 4, "forward")):
            yield Sample((values,), {"axis": axis, "n": n, "norm": norm}, label=f"{n} {norm}")
        for n in (1, 2, 3):
            yield Sample((values[0, : n // 2 + 1],), {"axis": 0, "n": n, "norm": "backward"}, label=f"{n} elements")
        yield Sample((values[0].astype(np.complex64),), {"axis": 0, "n": 4, "norm": "ortho"}, label="complex64")
        yield Sample((values[:0],), {"axis": 1, "n": 4, "norm": "backward"}, label="empty")


# --- cosines and sines ------------------------------------------------------------------------------------------------

TRANSPOSED_TYPE: Final = {1: 1, 2: 3, 3: 2, 4: 4}


class TrigonometricTransform(Transform, abstract=True):
    """A transform of real numbers along ``axis``; ``type`` (1 to 4), ``norm`` and ``orthogonalize`` as in SciPy.

    The types 1 and 4 are symmetric, 2 and 3 transposes of each other, but for weights of the elements that the end of
    the extended signal does not repeat. ``orthogonalize`` takes these weights to the square root, on both sides.
    """

    least: ClassVar[dict[int, int]] = {}
    """How many elements a type takes at least, if not 1."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_kinds(self, types[0], "f")
        require_transformed(self.name, types[0], (attrs["axis"],), self.least.get(attrs["type"], 1))
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        norm = option("norm", attrs["norm"], "backward")
        orthogonal = option("orthogonalize", attrs["orthogonalize"], attrs["norm"] == "ortho")
        return f"{self.meaning}({operands[0]}, {attrs['type']}, axis={attrs['axis']}{norm}{orthogonal})"

    def ends(self, type: int, size: int) -> tuple[int, ...]:
        """The operand's elements that the transform of this type counts once, all others twice."""
        raise NotImplementedError

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        """M = C D with D the weights of ``ends``, and C^T the matrix without weights of the transposed type."""
        axis, kind, operand = attrs["axis"], attrs["type"], operands[0].type
        size = operand.static_shape[axis]
        back = {**attrs, "type": TRANSPOSED_TYPE[kind]}
        cotangent = cotangents[0]
        if attrs["orthogonalize"]:
            return (s.apply(self, [cotangent], back),)
        doubled = self.end_weights(s, operand, axis, self.ends(TRANSPOSED_TYPE[kind], size), 2.0)
        halved = self.end_weights(s, operand, axis, self.ends(kind, size), 0.5)
        if doubled is not None:
            cotangent = s.scale(cotangent, doubled)
        cotangent = s.apply(self, [cotangent], back)
        return (cotangent if halved is None else s.scale(cotangent, halved),)

    def end_weights(
        self, s: LinearEmitter, operand: ArrayType, axis: int, ends: tuple[int, ...], weight: float
    ) -> Term | None:
        if not ends:
            return None
        weights = np.ones(operand.static_shape[axis], operand.dtype)
        weights[list(ends)] = weight
        term = Term(s.builder, literal(weights, ArrayType(operand.dtype, weights.shape)))
        return broadcast_to(term, operand.shape, (axis,))

    def samples(self) -> Iterator[Sample]:
        values = np.random.default_rng(4).normal(size=(3, 4))
        for kind in (1, 2, 3, 4):
            for axis, norm, orthogonal in ((1, "backward", False), (0, "ortho", True), (1, "forward", True)):
                attrs = {"type": kind, "axis": axis, "norm": norm, "orthogonalize": orthogonal}
                yield Sample((values,), attrs, label=f"type {kind} {norm}")
            attrs = {"type": kind, "axis": 0, "norm": "backward", "orthogonalize": False}
            yield Sample((values[:, 0],), attrs, label=f"type {kind}, 3 elements")
            yield Sample((values[0, : self.least.get(kind, 1)],), attrs, label=f"type {kind}, fewest elements")
            yield Sample((values[0].astype(np.float32),), attrs, label=f"type {kind} float32")
        attrs = {"type": 2, "axis": 1, "norm": "backward", "orthogonalize": False}
        yield Sample((values[:0],), attrs, label="empty")


class Dct(TrigonometricTransform):
    """The discrete cosine transform along ``axis``."""

    meaning = "scipy.fft.dct"
    least: ClassVar[dict[int, int]] = {1: 2}

    def ends(self, type: int, size: int) -> tuple[int, ...]:
        return {1: (0, size - 1), 3: (0,)}.get(type, ())


class Dst(TrigonometricTransform):
    """The discrete sine transform along ``axis``."""

    meaning = "scipy.fft.dst"

    def ends(self, type: int, size: int) -> tuple[int, ...]:
        return {3: (size - 1,)}.get(type, ())
