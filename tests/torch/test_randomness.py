"""Random tensors: shapes, dtypes, ranges, the same numbers from the same seed, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import srcgrad.torch as torch

MAKERS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], str]] = {
    "rand": (lambda g: torch.rand(2, 3, generator=g), (2, 3), "torch.float32"),
    "rand size": (lambda g: torch.rand(size=(2,), generator=g, dtype=torch.float64), (2,), "torch.float64"),
    "randn": (lambda g: torch.randn((4,), generator=g), (4,), "torch.float32"),
    "randn complex": (lambda g: torch.randn(4, dtype=torch.complex64, generator=g), (4,), "torch.complex64"),
    "randint": (lambda g: torch.randint(5, (3, 2), generator=g), (3, 2), "torch.int64"),
    "randint low": (lambda g: torch.randint(2, 9, (30,), generator=g, dtype=torch.int32), (30,), "torch.int32"),
    "randperm": (lambda g: torch.randperm(20, generator=g), (20,), "torch.int64"),
    "normal": (lambda g: torch.normal(1.0, 2.0, (3,), generator=g), (3,), "torch.float32"),
    "normal tensors": (lambda g: torch.normal(torch.zeros(3), torch.ones(3), generator=g), (3,), "torch.float32"),
    "normal of mean": (
        lambda g: torch.normal(torch.zeros(3, dtype=torch.float64), generator=g),
        (3,),
        "torch.float64",
    ),
    "bernoulli": (lambda g: torch.bernoulli(torch.full((40,), 0.5), generator=g), (40,), "torch.float32"),
    "poisson": (lambda g: torch.poisson(torch.full((20,), 4.0), generator=g), (20,), "torch.float32"),
    "multinomial": (lambda g: torch.multinomial(torch.ones(20), 9, generator=g), (9,), "torch.int64"),
    "multinomial rows": (lambda g: torch.multinomial(torch.ones(2, 9), 3, True, generator=g), (2, 3), "torch.int64"),
    "uniform_": (lambda g: torch.empty(5).uniform_(1, 2, generator=g), (5,), "torch.float32"),
    "normal_": (lambda g: torch.empty(5).normal_(1, 2, generator=g), (5,), "torch.float32"),
    "random_": (lambda g: torch.empty(9, dtype=torch.int64).random_(3, 9, generator=g), (9,), "torch.int64"),
    "bernoulli_": (lambda g: torch.empty(40).bernoulli_(0.5, generator=g), (40,), "torch.float32"),
    "exponential_": (lambda g: torch.empty(5).exponential_(generator=g), (5,), "torch.float32"),
}


@pytest.mark.parametrize("name", MAKERS)
def test_the_same_seed_gives_the_same_numbers(name: str) -> None:
    make, shape, dtype = MAKERS[name]
    generator = torch.Generator().manual_seed(3)
    first, second = make(generator), make(generator)
    assert tuple(first.shape) == shape
    assert str(first.dtype) == dtype
    assert not torch.equal(first, second)
    assert torch.equal(make(torch.Generator().manual_seed(3)), first)
    torch.manual_seed(3)
    assert torch.equal(make(None), first)


def test_the_state_can_be_put_back() -> None:
    torch.manual_seed(0)
    state = torch.get_rng_state()
    first = torch.rand(3)
    torch.set_rng_state(state)
    assert state.dtype == torch.uint8
    assert torch.equal(torch.rand(3), first)
    assert torch.initial_seed() == 0


def test_ranges() -> None:
    torch.manual_seed(1)
    assert ((torch.rand(1000) >= 0) & (torch.rand(1000) < 1)).all()
    assert set(torch.randint(2, 5, (200,)).tolist()) == {2, 3, 4}
    assert sorted(torch.randperm(30).tolist()) == list(range(30))
    assert abs(float(torch.randn(4000).mean())) < 0.1
    assert abs(float(torch.randn(4000).std()) - 1) < 0.1
    assert set(torch.bernoulli(torch.tensor([0.0, 1.0])).tolist()) == {0.0, 1.0}


def test_out_is_written() -> None:
    x = torch.zeros(3)
    assert torch.rand(3, out=x) is x
    assert (x != 0).all()
    y = torch.zeros(2)
    assert torch.bernoulli(torch.ones(2), out=y) is y
    assert y.tolist() == [1, 1]


def test_random_numbers_written_into_a_leaf() -> None:
    x = torch.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x.normal_()
    with torch.no_grad():
        x.normal_()
    assert x._version == 1


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        (lambda: torch.randint(5, 5, (2,)), RuntimeError),
        (lambda: torch.rand(-1), RuntimeError),
        (lambda: torch.rand(2.5), TypeError),
        (lambda: torch.bernoulli(torch.tensor([1.5])), RuntimeError),
        (lambda: torch.multinomial(torch.ones(3), 4), RuntimeError),
        (lambda: torch.multinomial(-torch.ones(3), 1), RuntimeError),
        (lambda: torch.rand(2, dtype=torch.int64), (RuntimeError, NotImplementedError)),
        (lambda: torch.randperm(-1), RuntimeError),
        (lambda: torch.normal(0.0, -1.0, (2,)), RuntimeError),
        (lambda: torch.rand(2, sise=(2,)), TypeError),
        (lambda: torch.rand_like([1.0]), TypeError),
    ],
)
def test_what_makes_no_sense_is_refused(action: Callable[[], Any], kind: Any) -> None:
    with pytest.raises(kind):
        action()
