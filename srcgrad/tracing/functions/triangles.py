"""Matrices of which one triangle alone is filled, for what reads no more of a Hermitian matrix than that.

The derivatives of ``eigh`` and ``cholesky`` take the tangent's Hermitian part, as of matrices that are Hermitian. Where
an element varies and the one across the diagonal is a constant of the program, that is half of the derivative.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from srcgrad.ir.core import Literal, Operation, Value
from srcgrad.tracing.tracer import Tracer

LARGEST: Final = 4096
"""The most elements of a matrix that is looked at."""
ELEMENTWISE: Final = frozenset({"add", "sub", "mul", "div", "neg", "cast", "conj", "real"})


def from_triangle(matrix: Tracer) -> Any:
    """The Hermitian matrix of the lower triangle, where it is seen that only one triangle was filled; else itself."""
    if matrix.ndim != 2 or matrix.size > LARGEST:
        return matrix
    fixed = constants(matrix.read(), {})
    if (fixed == fixed.T).all():
        return matrix
    return np.tril(matrix) + np.conjugate(np.tril(matrix, -1)).T


def constants(value: Value, known: dict[int, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Which elements are numbers of the program, whatever its inputs are: False where that is not seen."""
    if id(value) not in known:
        known[id(value)] = found_in(value, known)
    return known[id(value)]


def found_in(value: Value, known: dict[int, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    shape, producer = value.type.static_shape, value.producer
    if isinstance(value, Literal):
        return np.ones(shape, bool)
    varies = np.zeros(shape, bool)
    if producer is None or producer.regions or any(operand.type.size > LARGEST for operand in producer.operands):
        return varies
    return moved(producer, [constants(operand, known) for operand in producer.operands], varies)


def moved(operation: Operation, parts: list[NDArray[np.bool_]], varies: NDArray[np.bool_]) -> NDArray[np.bool_]:
    name, attrs = operation.op.name, operation.attrs
    if name == "concatenate":
        return np.concatenate(parts, attrs["axis"])
    if name == "reshape":
        return parts[0].reshape(varies.shape)
    if name == "transpose":
        return parts[0].transpose(attrs["perm"])
    if name in ("slice", "slice_set"):
        place = tuple(map(slice, attrs["starts"], attrs["limits"], attrs["strides"]))
        if name == "slice":
            return parts[0][place]
        whole = parts[0].copy()
        whole[place] = parts[1]
        return whole
    if name in ELEMENTWISE:
        found: NDArray[np.bool_] = np.all(np.stack(np.broadcast_arrays(~varies, *parts)), axis=0)
        return found
    return varies
