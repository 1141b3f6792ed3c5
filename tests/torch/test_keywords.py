"""Functions and methods take the keywords that PyTorch's take: NumPy's names, and those of sizes given one by one."""

from __future__ import annotations

from typing import Any

import pytest

import srcgrad.torch as torch

AXES: dict[str, tuple[Any, ...]] = {
    "cumsum": (), "cumprod": (), "softmax": (), "log_softmax": (), "squeeze": (), "unsqueeze": (), "sort": (),
    "argsort": (), "topk": (2,), "unbind": (), "chunk": (2,), "mode": (), "kthvalue": (1,), "logsumexp": (),
    "cummax": (), "diff": (), "logcumsumexp": (), "count_nonzero": (), "quantile": (0.5,), "tensor_split": (2,),
    "sum": (), "mean": (), "max": (), "std": (),
}  # fmt: skip
SIZES: dict[str, tuple[str, Any]] = {
    "permute": ("dims", (1, 0)),
    "expand": ("size", (2, 2, 3)),
    "repeat": ("repeats", (1, 2)),
    "reshape": ("shape", (6,)),
    "view": ("size", (6,)),
    "tile": ("dims", (2,)),
    "flip": ("dims", (0,)),
    "new_zeros": ("size", (2,)),
    "new_ones": ("size", (2,)),
    "split": ("split_size", 1),
}


def plain(found: Any) -> Any:
    return [part.tolist() for part in found] if isinstance(found, (tuple, list)) else found.tolist()


@pytest.mark.parametrize("name", AXES)
def test_axis_is_dim(name: str) -> None:
    x, more = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]]), AXES[name]
    for function, given in ((getattr(torch, name), (x, *more)), (getattr(x, name), more)):
        assert plain(function(*given, axis=0)) == plain(function(*given, dim=0))


def test_keepdims_is_keepdim() -> None:
    x = torch.ones(2, 3)
    assert torch.logsumexp(x, axis=1, keepdims=True).shape == (2, 1)
    with pytest.raises(TypeError):
        torch.cumsum(x, axis=0, dim=1)


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_taken_by_their_name(name: str) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    argument, size = SIZES[name]
    assert plain(getattr(x, name)(**{argument: size})) == plain(getattr(x, name)(size))


def test_axes_are_swapped_by_their_names() -> None:
    assert torch.ones(2, 3).swapaxes(axis0=0, axis1=1).shape == (3, 2)
