"""Numbers too large for a dtype, infinities without warnings, and names that the module lacks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import srcgrad.torch as torch
from srcgrad.torch.operation import SIGNATURES

WHERE = torch.tensor([True])
PLACE = torch.tensor([0])


def assigned(x: Any, value: float) -> Any:
    x[0] = value
    return x


TOO_LARGE: dict[str, tuple[Callable[[], Any], str]] = {
    "fill_": (lambda: torch.zeros(1).fill_(1e300), "float"),
    "fill_ of int8": (lambda: torch.zeros(1, dtype=torch.int8).fill_(300), "int8_t"),
    "full": (lambda: torch.full((1,), 1e300), "float"),
    "full of uint8": (lambda: torch.full((1,), 300, dtype=torch.uint8), "uint8_t"),
    "full_like": (lambda: torch.full_like(torch.ones(1), 1e300), "float"),
    "masked_fill": (lambda: torch.zeros(1).masked_fill(WHERE, -1e300), "float"),
    "masked_fill of half": (lambda: torch.zeros(1).half().masked_fill(WHERE, -1e9), "c10::Half"),
    "index_fill": (lambda: torch.zeros(1).index_fill(0, PLACE, 1e300), "float"),
    "scatter": (lambda: torch.zeros(1).scatter(0, PLACE, 1e300), "float"),
    "assignment": (lambda: assigned(torch.zeros(1), 1e300), "float"),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_number_that_the_dtype_does_not_hold_is_an_error(name: str) -> None:
    call, kind = TOO_LARGE[name]
    with pytest.raises(RuntimeError, match=f"value cannot be converted to type {kind} without overflow"):
        call()


def test_numbers_that_become_infinite_or_wrap_where_pytorch_lets_them() -> None:
    assert (torch.ones(1) * 1e300).tolist() == [torch.inf]
    assert torch.zeros(1).half().fill_(1e5).tolist() == [torch.inf]
    assert torch.zeros(1).fill_(-torch.inf).tolist() == [-torch.inf]
    assert torch.full((1,), -3, dtype=torch.uint8).tolist() == [253]


SILENT: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x + (-x),
    "add_": lambda x: x.detach().clone().add_(-x.detach()),
    "cast": lambda x: x.float(),
    "cast operands": lambda x: x.detach().half() + x[0],
    "copy_": lambda x: torch.zeros(3).copy_(x),
    "assigned": lambda x: torch.zeros(3).index_put((torch.tensor([0, 1, 2]),), x.float()),
    "sum of dtype": lambda x: x.sum(dtype=torch.float32),
    "index_add": lambda x: torch.zeros(1).double().index_add(0, torch.tensor([0, 0, 0]), x, alpha=2),
    "index_put": lambda x: torch.zeros(1).double().index_put((torch.tensor([0, 0, 0]),), x, accumulate=True),
    "scatter_add": lambda x: torch.zeros(1).double().scatter_add(0, torch.tensor([0, 0, 0]), x),
    "two uses": lambda x: x * x + x / x,
    "number": lambda x: torch.ones(3) * 1e300 * x,
}


@pytest.mark.parametrize("name", SILENT)
def test_no_warning_of_numpy_from_infinities_forward_or_backward(name: str) -> None:
    x = torch.tensor([torch.inf, -torch.inf, 1e300], dtype=torch.float64, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            found = SILENT[name](x)
            if found.requires_grad:
                found.sum().backward()


def test_factors_of_added_products_are_operands_not_signatures() -> None:
    a = torch.ones(2, 2, requires_grad=True)
    torch.addmm(a, a, a, beta=0.3, alpha=0.7).sum().backward()
    torch.ones(2, 2).index_add(0, torch.tensor([0, 1]), a, alpha=0.3)
    known = len(SIGNATURES)
    for k in range(5):
        torch.addmm(a, a, a, beta=k + 0.5, alpha=k + 2).sum().backward()
        torch.ones(2, 2).index_add(0, torch.tensor([0, 1]), a, alpha=k + 0.5)
    assert len(SIGNATURES) == known


def test_a_name_that_does_not_exist_says_what_is_near() -> None:
    with pytest.raises(AttributeError, match="did you mean ones_like"):
        torch.ones_lik  # noqa: B018
    with pytest.raises(AttributeError, match="NumPy has no bfloat16"):
        torch.bfloat16  # noqa: B018
    assert not hasattr(torch, "compile_me") and torch.newaxis is None
    assert (torch.pi, torch.e, torch.inf) == (3.141592653589793, 2.718281828459045, float("inf"))


REDUCED: dict[tuple[str, bool], list[float]] = {
    ("prod", True): [6.0, 2.0, 12.0],
    ("prod", False): [6.0, 2.0, 4.0],
    ("mean", True): [2.0, 2.0, 3.5],
    ("mean", False): [2.5, 2.0, 4.0],
    ("amax", True): [3.0, 2.0, 4.0],
    ("amin", False): [2.0, 2.0, 4.0],
}


@pytest.mark.parametrize(("reduce", "include"), REDUCED)
def test_index_reduce_reduces_parts_at_places(reduce: str, include: bool) -> None:
    x, source = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([2.0, 3.0, 4.0], requires_grad=True)
    found = x.index_reduce(0, torch.tensor([0, 0, 2]), source, reduce, include_self=include)
    assert found.tolist() == REDUCED[reduce, include]
    assert found.grad_fn.name() == "IndexReduceBackward0"
    assert torch.autograd.gradcheck(
        lambda x, s: x.index_reduce(0, torch.tensor([0, 0, 2]), s, reduce, include_self=include),
        (x.detach().double().requires_grad_(), source.detach().double().requires_grad_()),
    )
