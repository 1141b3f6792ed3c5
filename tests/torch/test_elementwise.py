"""Elementwise functions where the facade has more than PyTorch, and what tables of cases do not show."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import srcgrad.torch as torch
from srcgrad.torch.errors import TensorError
from srcgrad.torch.operation import SIGNATURES, SILENT

ONES = (1.0, 1.0)


def gradient(function: object, *values: tuple[float, ...]) -> list[list[float]]:
    leaves = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in values]
    function(*leaves).sum().backward()  # type: ignore[operator]
    return [leaf.grad.tolist() for leaf in leaves]


def test_derivatives_that_pytorch_does_not_have() -> None:
    assert gradient(lambda x, y: x // y, (7.0, -7.0), (2.0, 2.0)) == [[0.0, 0.0], [0.0, 0.0]]
    assert gradient(lambda x: 7.0 % x, (2.0, 3.0)) == [[-3.0, -2.0]]
    assert gradient(torch.heaviside, (-1.0, 0.0), ONES) == [[0.0, 0.0], [0.0, 1.0]]
    x = (0.5, -1.5)
    assert np.allclose(gradient(lambda x: (x * 1).asinh_(), x), 1 / np.hypot(1, x))
    assert np.allclose(gradient(torch.special.bessel_j0, (0.5, 2.0)), [[-0.24226845767487387, -0.5767248077568736]])
    assert np.allclose(gradient(torch.special.airy_ai, (0.0, 1.0)), [[-0.25881940379280677, -0.15914744129679322]])
    assert np.allclose(gradient(lambda x: torch.special.legendre_polynomial_p(x, 3), (0.5,)), [[0.375]])


def test_gradients_are_finite_where_mathematics_says_so() -> None:
    far = gradient(lambda x: torch.autograd.grad(torch.erf(x).sum(), x, create_graph=True)[0], (np.inf,))
    assert far == [[0.0]]
    assert gradient(torch.sinc, (1e-9,))[0][0] == pytest.approx(-1e-9 * np.pi**2 / 3, rel=1e-6)
    x = torch.tensor([1000.0, -1000.0], requires_grad=True)
    (first,) = torch.autograd.grad(torch.logaddexp(x, torch.zeros(2)).sum(), x, create_graph=True)
    first.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_numpy_warns_of_nothing_and_keeps_its_settings() -> None:
    before = np.geterr()
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        settings = np.geterr()
        assert torch.log(torch.tensor([0.0, -1.0])).tolist()[0] == -np.inf
        assert (torch.tensor([1.0]) / 0).tolist() == [np.inf]
        assert np.geterr() == settings
    assert np.geterr() == before


def test_an_error_in_an_operation_gives_its_silent_context_back() -> None:
    torch.ones(2).exp()
    known = len(SILENT)
    with pytest.raises(TensorError, match="must match the size"):
        torch.ones(2) * torch.ones(3)
    assert len(SILENT) == known


def test_threads_compute_at_the_same_time() -> None:
    x = torch.linspace(0.1, 1.0, 2000)
    expected = x.log().tolist()
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(50):
            if x.log().tolist() != expected:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_numbers_of_one_type_share_a_signature() -> None:
    x = torch.ones(3, requires_grad=True)
    x * 1.5 + 2.5
    before = len(SIGNATURES)
    for k in range(20):
        (x * float(k) + k / 7) ** (0.1 + k / 100)
        torch.add(x, x, alpha=k + 0.5)
        x.clamp(k / 3, k + 1.0)
    assert len(SIGNATURES) <= before + 3


def test_the_gradient_of_what_is_linear_requires_no_grad() -> None:
    x, y = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    (gx, gy) = torch.autograd.grad(torch.addcmul(x, y, y).sum(), (x, y), create_graph=True)
    assert not gx.requires_grad
    assert gy.requires_grad


def test_an_in_place_result_in_a_wider_dtype_is_cast() -> None:
    x = torch.tensor([1.5, 2.5], dtype=torch.float64, requires_grad=True)
    y = torch.ones(2)
    y.mul_(x)
    y.sum().backward()
    assert y.dtype is torch.float32
    assert x.grad.dtype is torch.float64
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_resized_out_warns() -> None:
    out = torch.empty(3)
    with pytest.warns(UserWarning, match="was resized since it had shape"):
        torch.exp(torch.zeros(2), out=out)
    assert out.tolist() == [1.0, 1.0]
    assert out._version == 1


def test_the_names_of_tensor_types() -> None:
    x = torch.zeros(2)
    assert x.type("torch.DoubleTensor").dtype is torch.float64
    with pytest.raises(ValueError, match="invalid type"):
        x.type("torch.NoTensor")
