"""Largest and smallest elements, and where they are.

What names an index (``max`` along a dimension, ``cummax``) has the derivative of the element chosen; what does not
(``amax``, ``max`` of all) shares it equally among those that tie.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.torch.dispatch import apply
from srcgrad.torch.errors import TensorError, TensorIndexError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import (
    axes_of,
    named_result,
    need_ordered,
    need_tensor,
    no_elements,
    numpy_names,
    one_axis,
)
from srcgrad.torch.ops.define import method, store
from srcgrad.torch.tensor import Tensor


def chosen(x: Any, indices: Any, axis: int, keep: bool) -> Any:
    """The elements at indices that lack the dimension, and the indices."""
    kept = np.expand_dims(indices, axis)
    values = np.take_along_axis(x, kept, axis)
    return (values, kept) if keep else (np.squeeze(values, axis), indices)


def extreme_along(x: Any, axis: int, keep: bool, reduce: Callable[..., Any], find: Callable[..., Any]) -> Any:
    if not x.ndim:
        return np.copy(x), np.zeros((), np.int64)
    if type(x) is np.ndarray:  # the same values, in less time
        return reduce(x, axis=axis, keepdims=keep), find(x, axis=axis, keepdims=keep)
    return chosen(x, find(x, axis=axis), axis, keep)


def need_elements(name: str, x: Any, axes: tuple[int, ...]) -> None:
    for axis in axes:
        if not x.shape[axis]:
            raise no_elements(name, axis)


def extreme_function(name: str, node: str, reduce: Any, find: Any) -> Callable[..., Any]:
    """``max`` or ``min``: of all, along a dimension (with indices), or of two tensors."""
    whole = Op(name, f"{node}Backward1", lambda x: reduce(x, axis=None), saves_result=True)
    along = Op(
        name, f"{node}Backward0", lambda x, axis, keep: extreme_along(x, axis, keep, reduce, find), saves_result=True
    )
    result = named_result(name, "values", "indices")

    def call(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, **names: Any) -> Any:
        if names:
            dim = names.pop("other", dim)
            dim, keepdim = numpy_names(name, names, dim, keepdim)
        need_tensor(name, input)
        if isinstance(dim, Tensor):
            found = getattr(input, f"{name}imum")(dim)
            return found if out is None else store(out, found)
        need_ordered(name, input)
        if dim is None:
            if not input._data.size:
                raise TensorError(
                    f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
                    "dim with the 'dim' argument."
                )
            found = apply(whole, (input,))
            return found if out is None else store(out, found)
        axis = one_axis(dim, input._data.ndim, name)
        if input._data.ndim and not input._data.shape[axis]:
            raise no_elements(name, axis)
        return stored(result(*apply(along, (input,), (axis, keepdim))), out)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`torch.{name}` of all elements, along a dimension (values and indices), or of two tensors."
    setattr(Tensor, name, call)
    return call


def stored(found: Any, out: Any) -> Any:
    """``out=``: a pair of tensors for a named pair of results."""
    if out is None:
        return found
    return type(found)(*(store(tensor, value) for tensor, value in zip(out, found, strict=True)))


def shared_function(name: str, node: str, reduce: Any) -> Callable[..., Tensor]:
    """``amax`` or ``amin``."""
    op = Op(name, node, lambda x, axes, keep: reduce(x, axis=axes, keepdims=keep), saves_result=True)

    def call(input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Any = None, **names: Any) -> Tensor:
        if names:
            dim, keepdim = numpy_names(name, names, dim, keepdim)
        need_tensor(name, input)
        need_ordered(name, input)
        axes = axes_of(dim, input._data.ndim, name)
        if not input._data.size and (dim is None or dim == ()):
            raise TensorError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                "with the 'dim' argument."
            )
        need_elements(name, input._data, axes)
        found = apply(op, (input,), (axes, keepdim))
        return found if out is None else store(out, found)  # type: ignore[no-any-return]

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`torch.{name}` over dimensions (all by default); ties share the derivative equally."
    setattr(Tensor, name, call)
    return call


def place_function(name: str, find: Any) -> Callable[..., Tensor]:
    """``argmax`` or ``argmin``."""
    op = Op(name, None, lambda x, axis, keep: find(x, axis=axis, keepdims=keep), quiet=True)

    def call(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, **names: Any) -> Tensor:
        if names:
            dim, keepdim = numpy_names(name, names, dim, keepdim)
        need_tensor(name, input)
        need_ordered(name, input)
        data = input._data
        if data.dtype == np.bool_:
            raise TensorError(f"{name}(): does not support bool input", hint="convert it first: x.int()")
        axis = None if dim is None else one_axis(dim, data.ndim, name)
        if axis is None and not data.size:
            raise TensorIndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        if axis is not None and data.ndim:
            need_elements(name, data, (axis,))
        found = apply(op, (input,), (axis if data.ndim else None, keepdim))
        return found if out is None else store(out, found)  # type: ignore[no-any-return]

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`torch.{name}`: the index of the first extreme element along a dimension, or of all in a row."
    setattr(Tensor, name, call)
    return call


max = extreme_function("max", "Max", np.maximum.reduce, np.argmax)
min = extreme_function("min", "Min", np.minimum.reduce, np.argmin)
amax = shared_function("amax", "AmaxBackward0", np.maximum.reduce)
amin = shared_function("amin", "AminBackward0", np.minimum.reduce)
argmax = place_function("argmax", np.argmax)
argmin = place_function("argmin", np.argmin)


def both(x: Any, axis: Any, keep: bool) -> Any:
    return np.min(x, axis=axis, keepdims=keep), np.max(x, axis=axis, keepdims=keep)


AMINMAX: Final = Op("aminmax", "AminmaxBackward0", both, saves_result=True)
AMINMAX_RESULT: Final = named_result("aminmax", "min", "max")


@method("aminmax")
def aminmax(input: Tensor, *, dim: Any = None, keepdim: bool = False, out: Any = None) -> Any:
    """The smallest and the largest element, of all or along a dimension."""
    need_tensor("aminmax", input)
    need_ordered("aminmax", input)
    axis = None if dim is None else one_axis(dim, input._data.ndim, "aminmax")
    need_elements("aminmax", input._data, axes_of(axis, input._data.ndim, "aminmax"))
    axis = axis if input._data.ndim else None
    return stored(AMINMAX_RESULT(*apply(AMINMAX, (input,), (axis, keepdim))), out)


def running(x: Any, axis: int, accumulate: Callable[..., Any]) -> Any:
    """The running extreme and where it was last reached; from the first nan on it is nan."""
    if not x.ndim:
        return np.copy(x), np.zeros((), np.int64)
    extremes = accumulate(x, axis=axis)
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    places = np.arange(x.shape[axis]).reshape(shape)
    reached = (x == extremes) | np.isnan(x) if x.dtype.kind == "f" else x == extremes
    indices = np.maximum.accumulate(np.where(reached, places, 0), axis=axis)
    return np.take_along_axis(x, indices, axis), indices


def running_function(name: str, node: str, accumulate: Any) -> Callable[..., Any]:
    op = Op(name, node, lambda x, axis: running(x, axis, accumulate), saves_result=True)
    result = named_result(name, "values", "indices")

    def call(input: Tensor, dim: int, *, out: Any = None) -> Any:
        need_tensor(name, input)
        need_ordered(name, input)
        axis = one_axis(dim, input._data.ndim, name)
        return stored(result(*apply(op, (input,), (axis,))), out)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`torch.{name}`: the extreme of what comes before along a dimension, and its index."
    setattr(Tensor, name, call)
    return call


cummax = running_function("cummax", "CummaxBackward0", np.maximum.accumulate)
cummin = running_function("cummin", "CumminBackward0", np.minimum.accumulate)

__all__ = ["amax", "amin", "aminmax", "argmax", "argmin", "cummax", "cummin", "max", "min"]
