"""`torch.fft`: discrete Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.torch import dtypes
from srcgrad.torch.dispatch import apply, named
from srcgrad.torch.errors import TensorError, TensorIndexError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import need_tensor, one_axis
from srcgrad.torch.ops.define import store
from srcgrad.torch.tensor import Tensor, wrapped

NORMS: Final = (None, "backward", "ortho", "forward")
NODES: Final = {"c2c": "FftC2CBackward0", "r2c": "FftR2CBackward0", "c2r": "FftC2RBackward0"}


def checked(name: str, input: Any, norm: Any, takes_real: bool) -> np.dtype[Any] | None:
    """The dtype to cast to; None for none.

    Raises:
        TensorError: a complex tensor where a real one is needed; no such norm.
    """
    need_tensor(f"fft_{name}", input)
    if norm not in NORMS:
        raise TensorError(f'Invalid normalization mode: "{norm}"', hint='"backward", "ortho" or "forward"')
    kind = input._data.dtype.kind
    if takes_real and kind == "c":
        raise TensorError(f"{name} expects a real input tensor, but got {named(input._data.dtype)}")
    if input._data.dtype == np.float16:
        raise TensorError("Unsupported dtype Half", hint="convert it first: x.float()")
    return None if kind in "fc" else dtypes.get_default_dtype().numpy


def node_key(name: str, x: Tensor, to_real: bool) -> str:
    if to_real:
        return "c2r"
    return "c2c" if x._data.dtype.kind == "c" else "r2c"


def line_function(name: str, takes_real: bool = False, gives_real: bool = False) -> Callable[..., Tensor]:
    """A transform along one dimension."""
    function = getattr(np.fft, name)
    ops = {
        key: Op(f"fft.{name}", node, lambda x, n, axis, norm: function(x, n, axis, norm)) for key, node in NODES.items()
    }

    def call(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Tensor:
        cast = checked(name, input, norm, takes_real)
        data = input._data
        if not data.ndim:
            raise TensorIndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        axis = one_axis(dim, data.ndim, name)
        length = data.shape[axis] if n is None else n
        if gives_real and n is None:
            length = 2 * (length - 1)
        if length < 1:
            raise TensorError(f"Invalid number of data points ({length}) specified")
        op = ops[node_key(name, input, gives_real)]
        return store(out, apply(op, (input,), (n, axis, norm), cast))  # type: ignore[no-any-return]

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`torch.fft.{name}` along a dimension, of ``n`` points; ``norm`` is backward, ortho or forward."
    return call


def grid_function(name: str, dims: Any, takes_real: bool = False, gives_real: bool = False) -> Callable[..., Tensor]:
    """A transform along several dimensions; ``dims`` are those of the default, None for all."""
    function = getattr(np.fft, name[:-1] + "n")
    ops = {
        key: Op(f"fft.{name}", node, lambda x, s, axes, norm: function(x, s, axes, norm)) for key, node in NODES.items()
    }

    def call(input: Tensor, s: Any = None, dim: Any = dims, norm: str | None = None, *, out: Any = None) -> Tensor:
        cast = checked(name, input, norm, takes_real)
        data = input._data
        if dim is None:
            axes = tuple(range(data.ndim if s is None else data.ndim - len(s), data.ndim) if s else range(data.ndim))
        else:
            axes = tuple(one_axis(d, data.ndim, name) for d in ((dim,) if isinstance(dim, int) else dim))
        if len(set(axes)) != len(axes):
            raise TensorError("FFT dims must be unique")
        sizes = None if s is None else tuple(s)
        if sizes is not None:
            if len(sizes) != len(axes):
                raise TensorError("When given, dim and shape arguments must have the same length")
            sizes = tuple(data.shape[axis] if n == -1 else n for n, axis in zip(sizes, axes, strict=True))
        for k, axis in enumerate(axes):
            length = data.shape[axis] if sizes is None else sizes[k]
            if length < 1:
                raise TensorError(f"Invalid number of data points ({length}) specified")
        if not axes:
            if takes_real or gives_real:
                raise TensorError(f"{name} must transform at least one axis")
            return input.to(input.dtype.to_complex() if cast is None else dtypes.of(cast).to_complex())  # type: ignore[no-any-return]
        op = ops[node_key(name, input, gives_real)]
        return store(out, apply(op, (input,), (sizes, axes, norm), cast))  # type: ignore[no-any-return]

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`torch.fft.{name}` along dimensions, of sizes ``s``; ``norm`` is backward, ortho or forward."
    return call


fft = line_function("fft")
ifft = line_function("ifft")
rfft = line_function("rfft", takes_real=True)
irfft = line_function("irfft", gives_real=True)
hfft = line_function("hfft", gives_real=True)
ihfft = line_function("ihfft", takes_real=True)
fft2 = grid_function("fft2", (-2, -1))
ifft2 = grid_function("ifft2", (-2, -1))
rfft2 = grid_function("rfft2", (-2, -1), takes_real=True)
irfft2 = grid_function("irfft2", (-2, -1), gives_real=True)
fftn = grid_function("fftn", None)
ifftn = grid_function("ifftn", None)
rfftn = grid_function("rfftn", None, takes_real=True)
irfftn = grid_function("irfftn", None, gives_real=True)


SWAPPED: Final = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Tensor:
    """The transform of what has a Hermitian symmetry, which is real."""
    checked("hfftn", input, norm, False)
    return irfftn(input.conj(), s, dim, SWAPPED[norm], out=out)


def ihfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Tensor:
    """The inverse of `hfftn`."""
    checked("ihfftn", input, norm, True)
    return store(out, rfftn(input, s, dim, SWAPPED[norm]).conj())  # type: ignore[no-any-return]


def hfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Tensor:
    """`hfftn` along two dimensions."""
    return hfftn(input, s, dim, norm, out=out)


def ihfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Tensor:
    """`ihfftn` along two dimensions."""
    return ihfftn(input, s, dim, norm, out=out)


def frequencies(function: Callable[..., Any], n: int, d: float, dtype: Any, requires_grad: bool) -> Tensor:
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    found = wrapped(function(n, d).astype(kind.numpy))
    return found.requires_grad_() if requires_grad else found


def fftfreq(
    n: int, d: float = 1.0, *, dtype: Any = None, requires_grad: bool = False, device: Any = None, out: Any = None
) -> Tensor:
    """The frequencies of `fft` of n points at distances d."""
    return store(out, frequencies(np.fft.fftfreq, n, d, dtype, requires_grad))  # type: ignore[no-any-return]


def rfftfreq(
    n: int, d: float = 1.0, *, dtype: Any = None, requires_grad: bool = False, device: Any = None, out: Any = None
) -> Tensor:
    """The frequencies of `rfft` of n points at distances d."""
    return store(out, frequencies(np.fft.rfftfreq, n, d, dtype, requires_grad))  # type: ignore[no-any-return]


SHIFT: Final = Op(
    "fft.fftshift", "RollBackward0", lambda x, axes: np.fft.fftshift(x, axes) if axes else np.copy(x), quiet=True
)
SHIFT_BACK: Final = Op(
    "fft.ifftshift", "RollBackward0", lambda x, axes: np.fft.ifftshift(x, axes) if axes else np.copy(x), quiet=True
)


def shifted(op: Op, input: Tensor, dim: Any) -> Tensor:
    need_tensor(op.name, input)
    rank = input._data.ndim
    dims: Any = range(rank) if dim is None else (dim,) if isinstance(dim, int) else dim
    return apply(op, (input,), (tuple(one_axis(d, rank, op.name) for d in dims),))  # type: ignore[no-any-return]


def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The frequency 0 moved to the middle, along dimensions (all by default)."""
    return shifted(SHIFT, input, dim)


def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of `fftshift`."""
    return shifted(SHIFT_BACK, input, dim)


__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip
