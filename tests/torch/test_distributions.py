"""Draws have the moments of their distributions, and gradients where they should."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import srcgrad.torch as torch

D = torch.distributions
MADE: dict[str, Callable[[Any, Any], Any]] = {
    "normal": lambda a, b: D.Normal(a, b),
    "lognormal": lambda a, b: D.LogNormal(a / 4, b / 4),
    "uniform": lambda a, b: D.Uniform(a - 3, a + b),
    "exponential": lambda a, b: D.Exponential(b),
    "laplace": lambda a, b: D.Laplace(a, b),
    "gamma": lambda a, b: D.Gamma(b, b + 1),
    "beta": lambda a, b: D.Beta(b, b + 1),
    "dirichlet": lambda a, b: D.Dirichlet(b),
    "bernoulli": lambda a, b: D.Bernoulli(torch.sigmoid(a)),
    "poisson": lambda a, b: D.Poisson(b),
    "vectors": lambda a, b: D.MultivariateNormal(a, torch.diag(b) + 0.2),
    "independent": lambda a, b: D.Independent(D.Normal(a, b), 1),
}
A = torch.tensor([0.5, -1.0, 0.2], dtype=torch.float64)
B = torch.tensor([0.7, 2.0, 1.3], dtype=torch.float64)


@pytest.mark.parametrize("name", MADE)
def test_draws_have_the_moments(name: str) -> None:
    torch.manual_seed(0)
    made = MADE[name](A, B)
    drawn = made.sample((20000,))
    assert ((drawn.mean(0) - made.mean).abs() < 6 * made.stddev / 20000**0.5).all()
    assert ((drawn.var(0) / made.variance - 1).abs() < 0.2).all()
    assert torch.isfinite(made.log_prob(drawn)).all()


def test_classes_are_drawn_as_often_as_they_should() -> None:
    torch.manual_seed(0)
    probs = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
    drawn = D.Categorical(probs).sample((20000,))
    often = torch.stack([(drawn == k).float().mean(0) for k in range(3)], -1)
    assert (often - probs).abs().max() < 0.02


@pytest.mark.parametrize("name", [name for name in MADE if MADE[name](A, B).has_rsample])
def test_gradients_of_draws_are_those_of_the_mean(name: str) -> None:
    torch.manual_seed(0)
    a, b = A.clone().requires_grad_(), B.clone().requires_grad_()
    drawn = torch.autograd.grad(MADE[name](a, b).rsample((20000,)).mean(0).sum(), (a, b), allow_unused=True)
    known = torch.autograd.grad(MADE[name](a, b).mean.sum() + 0 * (a + b).sum(), (a, b))
    for mine, other in zip(drawn, known, strict=True):
        assert (((0 if mine is None else mine) - other).abs() < 0.06).all()


def test_draws_without_gradients_say_what_to_do() -> None:
    with pytest.raises(NotImplementedError, match=r"score-function"):
        D.Gamma(A.exp().requires_grad_(), B).rsample()


def test_a_divergence_of_the_users_own() -> None:
    @D.register_kl(D.Normal, D.Laplace)
    def estimated(p: Any, q: Any) -> Any:
        return p.loc * 0 + 1

    assert D.kl_divergence(D.Normal(A, B), D.Laplace(A, B)).tolist() == [1, 1, 1]
