"""The Kullback-Leibler divergence of two distributions, by a table of their classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeVar

import srcgrad.torch as torch
from srcgrad.torch.distributions.continuous import (
    Beta,
    Dirichlet,
    Exponential,
    Gamma,
    Laplace,
    LogNormal,
    MultivariateNormal,
    Normal,
    Uniform,
)
from srcgrad.torch.distributions.discrete import Bernoulli, Categorical, Poisson
from srcgrad.torch.distributions.distribution import Distribution, Independent
from srcgrad.torch.errors import TensorNotImplementedError, TensorValueError

F = TypeVar("F", bound=Callable[[Any, Any], Any])
FORMULAS: Final[dict[tuple[type, type], Callable[[Any, Any], Any]]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[F], F]:
    """Take a function as the divergence of two classes: ``@register_kl(P, Q)``."""

    def register(function: F) -> F:
        FORMULAS[type_p, type_q] = function
        return function

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The expectation of log p - log q under p.

    Raises:
        TensorNotImplementedError: no formula is known for the two classes.
    """
    for one in type(p).__mro__:
        for other in type(q).__mro__:
            if (one, other) in FORMULAS:
                return FORMULAS[one, other](p, q)
    raise TensorNotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}",
        hint="use the mean of p.log_prob(x) - q.log_prob(x) over x = p.sample((n,)), or register_kl",
    )


@register_kl(Normal, Normal)
@register_kl(LogNormal, LogNormal)
def normals(p: Normal, q: Normal) -> Any:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(Bernoulli, Bernoulli)
def truths(p: Bernoulli, q: Bernoulli) -> Any:
    softplus = torch.nn.functional.softplus
    first = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    second = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    first = torch.where(q.probs == 0, math.inf, first).masked_fill(p.probs == 0, 0)
    return first + torch.where(q.probs == 1, math.inf, second).masked_fill(p.probs == 1, 0)


@register_kl(Categorical, Categorical)
def classes(p: Categorical, q: Categorical) -> Any:
    found = p.probs * (p.logits - q.logits)
    found = torch.where((q.probs == 0).expand_as(found), math.inf, found)
    return found.masked_fill((p.probs == 0).expand_as(found), 0).sum(-1)


@register_kl(MultivariateNormal, MultivariateNormal)
def vectors(p: MultivariateNormal, q: MultivariateNormal) -> Any:
    if p.event_shape != q.event_shape:
        raise TensorValueError(
            "KL-divergence between two Multivariate Normals with\n                          different event shapes "
            "cannot be computed"
        )
    solve = torch.linalg.solve_triangular
    spread = solve(q._factor, p._factor, upper=False)
    away = solve(q._factor, (q.loc - p.loc).unsqueeze(-1), upper=False)
    size = (spread**2).sum((-2, -1)) + (away**2).sum((-2, -1))
    return q._half_log_det() - p._half_log_det() + 0.5 * (size - p.event_shape[0])


@register_kl(Exponential, Exponential)
def exponentials(p: Exponential, q: Exponential) -> Any:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Poisson, Poisson)
def counts(p: Poisson, q: Poisson) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Laplace, Laplace)
def laplaces(p: Laplace, q: Laplace) -> Any:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * torch.exp(-away / p.scale) - 1


@register_kl(Gamma, Gamma)
def gammas(p: Gamma, q: Gamma) -> Any:
    a, b = p.concentration, q.concentration
    more = (a - b) * torch.digamma(a) + (q.rate - p.rate) * (a / p.rate)
    return b * (p.rate / q.rate).log() + torch.lgamma(b) - torch.lgamma(a) + more


@register_kl(Dirichlet, Dirichlet)
def simplices(p: Dirichlet, q: Dirichlet) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    volumes = torch.lgamma(total) - torch.lgamma(b.sum(-1)) - (torch.lgamma(a) - torch.lgamma(b)).sum(-1)
    return volumes + ((a - b) * (torch.digamma(a) - torch.digamma(total).unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def betas(p: Beta, q: Beta) -> Any:
    return simplices(p._pair, q._pair)


@register_kl(Uniform, Uniform)
def uniforms(p: Uniform, q: Uniform) -> Any:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return found.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(Independent, Independent)
def independents(p: Independent, q: Independent) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise TensorNotImplementedError("the two have other numbers of reinterpreted dimensions")
    return p._summed(kl_divergence(p.base_dist, q.base_dist))
