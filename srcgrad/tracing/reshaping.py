"""The shape of a traced array: its views of another shape, and the copies that NumPy makes where there is none."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from srcgrad.errors import ArgumentError, AxisError, ShapeError
from srcgrad.ir.types import ArrayType, DType
from srcgrad.tracing.views import ReshapeView, TransposeView

if TYPE_CHECKING:
    from srcgrad.tracing.storage import Storage
    from srcgrad.tracing.tracer import Tracer
    from srcgrad.tracing.views import Chain, View


class Reshaped:
    """What a tracer has of ndarray's methods for its shape; NumPy itself says what shape comes of them."""

    __slots__ = ()

    if TYPE_CHECKING:
        storage: Storage
        chain: Chain
        scalar: bool

        @property
        def shape(self) -> tuple[int, ...]: ...
        @property
        def dtype(self) -> DType: ...
        @property
        def ndim(self) -> int: ...
        def copy(self, order: str | None = "C") -> Tracer: ...
        def ghost(self) -> np.ndarray[Any, Any]: ...
        def in_c_order(self) -> bool: ...
        def require_layout(self) -> None: ...
        def shown_as(self, view: View, type: ArrayType) -> Tracer: ...

    def transpose(self, *axes: Any) -> Tracer:
        try:
            from_ghost = np.broadcast_to(np.empty(()), self.shape).transpose(*axes).shape
        except np.exceptions.AxisError as error:
            raise AxisError(str(error)) from None
        except ValueError as error:
            raise ShapeError(str(error)) from None
        if self.ndim < 2:
            return cast("Tracer", self)
        if len(axes) == 1:  # of two axes or more: a sequence, or None
            axes = () if axes[0] is None else tuple(axes[0])
        perm = [operator.index(axis) % self.ndim for axis in axes] if axes else list(range(self.ndim))[::-1]
        return self.shown_as(TransposeView(tuple(perm)), ArrayType(self.dtype, from_ghost))

    def swapaxes(self, axis1: int, axis2: int) -> Tracer:
        perm = list(range(self.ndim))
        for axis in (axis1, axis2):
            if not -self.ndim <= axis < self.ndim:
                raise AxisError(f"axis {axis} is out of bounds for array of dimension {self.ndim}")
        perm[axis1], perm[axis2] = perm[axis2], perm[axis1]
        return self.transpose(perm)

    def target_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape that NumPy's reshape gives; -1 is worked out."""
        try:
            target: tuple[int, ...] = np.broadcast_to(np.empty((), np.int8), self.shape).reshape(shape).shape
        except ValueError as error:
            raise ShapeError(str(error)) from None
        return target

    def reshape_is_view(self, shape: Any) -> bool:
        if self.scalar:
            return False
        self.require_layout()
        if not self.chain and self.storage.strides is None:
            return True
        try:
            self.ghost().reshape(shape, copy=False)
        except ValueError:  # it would be a copy, and nothing is copied to see that
            return False
        return True

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Tracer:
        requested = shape[0] if len(shape) == 1 else shape
        order = order.upper()
        if order == "F":
            return self.transpose().reshape(tuple(reversed(self.target_shape(requested)))).transpose()
        if order == "A" and not self.in_c_order() and self.ghost().flags.fnc:
            return self.reshape(requested, order="F", copy=copy)
        if order not in ("C", "A"):
            raise ArgumentError(f"order {order!r} is not permitted for reshaping", hint="use order='C', 'F' or 'A'")
        target = self.target_shape(requested)
        if not copy and self.reshape_is_view(target):
            return self.shown_as(ReshapeView(target), ArrayType(self.dtype, target))
        if copy is False:
            raise ShapeError("Unable to avoid creating a copy while reshaping.")
        from srcgrad.tracing.tracer import emit  # which needs this module

        return emit("reshape", cast("Tracer", self), scalar=self.scalar and not target, shape=target)

    def ravel(self, order: str = "C") -> Tracer:
        order = order.upper()
        if order in ("A", "K") and not self.in_c_order():
            ghost = self.ghost()
            if order == "K":
                perm = sorted(range(self.ndim), key=lambda k: -abs(ghost.strides[k]))
                return (self if perm == list(range(self.ndim)) else self.transpose(perm)).ravel()
            order = "F" if ghost.flags.fnc else "C"
        if order == "C" and not self.in_c_order():
            return self.reshape(-1, copy=True)
        return self.reshape(-1, order="C" if order in ("A", "K") else order)

    def flatten(self, order: str = "C") -> Tracer:
        return self.ravel(order).copy()

    def squeeze(self, axis: Any = None) -> Tracer:
        try:
            shape = np.squeeze(np.broadcast_to(np.empty(()), self.shape), axis).shape
        except np.exceptions.AxisError as error:
            raise AxisError(str(error)) from None
        except ValueError as error:
            raise ShapeError(str(error)) from None
        if shape == self.shape:
            return cast("Tracer", self)
        return self.shown_as(ReshapeView(shape), ArrayType(self.dtype, shape))
