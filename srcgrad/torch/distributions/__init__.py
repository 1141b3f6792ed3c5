"""`torch.distributions`: densities, draws and divergences, for policies, variational inference and flows."""

from __future__ import annotations

from srcgrad.torch.distributions import constraints as constraints
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
from srcgrad.torch.distributions.divergence import kl_divergence, register_kl

__all__ = [
    "Bernoulli", "Beta", "Categorical", "Dirichlet", "Distribution", "Exponential", "Gamma", "Independent", "Laplace",
    "LogNormal", "MultivariateNormal", "Normal", "Poisson", "Uniform", "kl_divergence", "register_kl",
]  # fmt: skip
