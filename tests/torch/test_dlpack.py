"""Memory that tensors share with other libraries, and what they take of each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad.torch as torch


def test_from_numpy_shares_memory() -> None:
    array = np.arange(3.0)
    x = torch.from_numpy(array)
    array[0] = 7
    x[1] = 8
    assert x.tolist() == array.tolist() == [7, 8, 2]
    assert x.numpy() is array


def test_tensor_copies_and_as_tensor_shares() -> None:
    array = np.arange(3.0)
    copied, shared = torch.tensor(array), torch.as_tensor(array)
    array[0] = 7
    assert copied[0] == 0
    assert shared[0] == 7
    assert torch.as_tensor(shared) is shared
    assert torch.asarray(array, copy=True)[0] == 7


def test_numpy_reads_a_tensor_by_dlpack() -> None:
    x = torch.arange(6.0).reshape(2, 3).t()
    array = np.from_dlpack(x)
    x[0, 1] = -1
    assert array.tolist() == x.tolist()
    assert array.shape == (3, 2)


def test_a_tensor_reads_an_array_by_dlpack() -> None:
    array = np.arange(4, dtype=np.int32)
    x = torch.from_dlpack(array)
    array[2] = 9
    assert x.tolist() == [0, 1, 9, 3]
    assert x.dtype == torch.int32


def test_pytorch_and_the_facade_share_memory() -> None:
    real = pytest.importorskip("torch")
    theirs = real.arange(3.0)
    ours = torch.from_dlpack(theirs)
    ours[0] = 5
    assert theirs.tolist() == [5, 1, 2]
    back = real.from_dlpack(torch.ones(2))
    assert back.tolist() == [1, 1]


def test_what_requires_grad_is_not_exported() -> None:
    x = torch.ones(2, requires_grad=True)
    for export in (lambda: np.from_dlpack(x), lambda: x.numpy(), lambda: np.asarray(x)):
        with pytest.raises(RuntimeError, match="detach"):
            export()
    assert x.detach().numpy().tolist() == [1, 1]
    assert x.numpy(force=True).tolist() == [1, 1]


def test_numpy_takes_tensors() -> None:
    x = torch.tensor([1.0, 4.0])
    assert np.asarray(x).dtype == np.float32
    assert np.sqrt(x.detach().numpy()).tolist() == [1, 2]
    assert np.asarray(x, dtype=np.float64).tolist() == [1, 4]
    copied = np.array(x)
    copied[0] = 9
    assert x[0] == 1
    assert np.mean(np.asarray(x)) == 2.5


def test_an_operator_between_array_and_tensor_is_the_tensors() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    for found in (x + np.ones(2), np.ones(2) + x, np.float64(1) + x):
        assert isinstance(found, torch.Tensor)
        assert found.tolist() == [2, 3]


def test_matplotlib_plots_what_is_detached() -> None:
    pyplot: Any = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    x = torch.linspace(0, 1, 5, requires_grad=True)
    (line,) = pyplot.plot(x.detach(), (x**2).detach())
    assert line.get_ydata()[-1] == 1
    pyplot.close("all")


def test_the_default_dtype_is_that_of_floats() -> None:
    assert torch.tensor(1.0).dtype == torch.get_default_dtype() == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor(1.0).dtype == torch.zeros(1).dtype == torch.rand(1).dtype == torch.float64
        assert torch.tensor(1j).dtype == torch.complex128
        assert (torch.tensor([1]) / 2).dtype == torch.float64
        assert torch.nn.Linear(1, 1).weight.dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.tensor(1j).dtype == torch.complex64


def test_numpy_has_the_array_where_no_gradients_are_recorded() -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert x.numpy().tolist() == [1, 1] and np.asarray(x).tolist() == [1, 1]
    with torch.inference_mode():
        assert x.numpy().tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()


def test_an_element_of_a_tensor_cannot_be_deleted() -> None:
    with pytest.raises(TypeError, match="does not support deleting items"):
        del torch.ones(2)[0]
