"""Distributions of real numbers and vectors."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

import srcgrad.torch as torch
from srcgrad.torch.distributions import constraints
from srcgrad.torch.distributions.constraints import Constraint
from srcgrad.torch.distributions.distribution import Distribution, broadcast_all
from srcgrad.torch.dtypes import finfo
from srcgrad.torch.errors import TensorValueError
from srcgrad.torch.random import gamma
from srcgrad.torch.tensor import Tensor, wrapped

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def normals(shape: Any, like: Any) -> Any:
    return torch.randn(shape, dtype=like.dtype)


def uniforms(shape: Any, like: Any) -> Any:
    """Numbers between 0 and 1, neither of them."""
    return torch.rand(shape, dtype=like.dtype).clamp(min=finfo(like.dtype).tiny)


class Normal(Distribution):
    """The normal distribution of a mean ``loc`` and a standard deviation ``scale``.

    >>> import srcgrad.torch as torch
    >>> torch.distributions.Normal(0.0, 2.0).log_prob(torch.tensor(2.0))
    tensor(-2.1121)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc: Any
        self.scale: Any
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc  # type: ignore[no-any-return]

    mode = mean

    @property
    def stddev(self) -> Tensor:
        return self.scale  # type: ignore[no-any-return]

    @property
    def variance(self) -> Tensor:
        return self.scale**2  # type: ignore[no-any-return]

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc + normals(self._extended_shape(sample_shape), self.loc) * self.scale  # type: ignore[no-any-return]

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return -((value - self.loc) ** 2) / (2 * self.scale**2) - self.scale.log() - HALF_LOG_TWO_PI

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 0.5 * (1 + torch.erf((value - self.loc) / self.scale / math.sqrt(2)))

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * torch.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        return 0.5 + HALF_LOG_TWO_PI + torch.log(self.scale)


class LogNormal(Normal):
    """The distribution of exp(x) with x normal."""

    support = constraints.positive

    @property
    def mean(self) -> Any:
        return (self.loc + self.scale**2 / 2).exp()

    @property
    def mode(self) -> Any:
        return (self.loc - self.scale**2).exp()

    @property
    def variance(self) -> Any:
        square = self.scale**2
        return square.expm1() * (2 * self.loc + square).exp()

    @property
    def stddev(self) -> Any:
        return self.variance.sqrt()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return super().rsample(sample_shape).exp()  # type: ignore[no-any-return]

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        at = value.log()
        return -((at - self.loc) ** 2) / (2 * self.scale**2) - self.scale.log() - HALF_LOG_TWO_PI - at

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 0.5 * (1 + torch.erf((value.log() - self.loc) / self.scale / math.sqrt(2)))

    def icdf(self, value: Any) -> Any:
        return super().icdf(value).exp()

    def entropy(self) -> Any:
        return super().entropy() + self.loc


class Uniform(Distribution):
    """The uniform distribution from ``low`` to ``high``."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"low": constraints.real, "high": constraints.real}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low: Any
        self.high: Any
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, (), validate_args)
        if self._validate_args and not bool((self.low < self.high).all()):
            raise TensorValueError("Uniform is not defined when low>= high")

    @property
    def support(self) -> Constraint:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Any:
        return (self.high + self.low) / 2

    @property
    def variance(self) -> Any:
        return (self.high - self.low) ** 2 / 12

    @property
    def stddev(self) -> Any:
        return (self.high - self.low) / math.sqrt(12)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = torch.rand(self._extended_shape(sample_shape), dtype=self.low.dtype)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        inside = (self.low <= value) & (self.high > value)
        return torch.log(inside.to(self.low.dtype)) - torch.log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return torch.log(self.high - self.low)


class Exponential(Distribution):
    """The exponential distribution of a ``rate``."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self.rate: Any
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.rate.reciprocal()

    stddev = mean

    @property
    def mode(self) -> Any:
        return torch.zeros_like(self.rate)

    @property
    def variance(self) -> Any:
        return self.rate**-2

    def rsample(self, sample_shape: Any = ()) -> Any:
        return -uniforms(self._extended_shape(sample_shape), self.rate).log() / self.rate

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 1 - torch.exp(-self.rate * value)

    def icdf(self, value: Any) -> Any:
        return -torch.log1p(-value) / self.rate

    def entropy(self) -> Any:
        return 1.0 - torch.log(self.rate)


class Laplace(Distribution):
    """The Laplace distribution: exponential on both sides of ``loc``."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc: Any
        self.scale: Any
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        return 2 * self.scale**2

    @property
    def stddev(self) -> Any:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Any = ()) -> Any:
        u = torch.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype) * 2 - 1
        return self.loc - self.scale * u.sign() * torch.log1p(-u.abs().clamp(max=1 - 1e-7))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return -torch.log(2 * self.scale) - torch.abs(value - self.loc) / self.scale

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * torch.expm1(-away.abs() / self.scale)

    def icdf(self, value: Any) -> Any:
        away = value - 0.5
        return self.loc - self.scale * away.sign() * torch.log1p(-2 * away.abs())

    def entropy(self) -> Any:
        return 1 + torch.log(2 * self.scale)


class Gamma(Distribution):
    """The gamma distribution of a shape ``concentration`` and a ``rate``; draws have no gradients."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.nonnegative

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration: Any
        self.rate: Any
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate**2

    def sample(self, sample_shape: Any = ()) -> Any:
        drawn = gamma(self.concentration.detach().expand(self._extended_shape(sample_shape))._data)
        return wrapped(drawn) / self.rate.detach()

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        shape, rate = self.concentration, self.rate
        return torch.xlogy(shape, rate) + torch.xlogy(shape - 1, value) - rate * value - torch.lgamma(shape)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return torch.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        shape = self.concentration
        return shape - self.rate.log() + torch.lgamma(shape) + (1 - shape) * torch.digamma(shape)


class Dirichlet(Distribution):
    """The Dirichlet distribution on the simplex; draws have no gradients."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"concentration": constraints.positive_vector}
    support = constraints.simplex

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise TensorValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def sample(self, sample_shape: Any = ()) -> Any:
        drawn = gamma(self.concentration.detach().expand(self._extended_shape(sample_shape))._data)
        return wrapped(np.asarray(drawn / drawn.sum(-1, keepdims=True)))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        shape = self.concentration
        return torch.xlogy(shape - 1, value).sum(-1) + torch.lgamma(shape.sum(-1)) - torch.lgamma(shape).sum(-1)

    def entropy(self) -> Any:
        shape, count = self.concentration, self.concentration.size(-1)
        total = shape.sum(-1)
        beta = torch.lgamma(shape).sum(-1) - torch.lgamma(total)
        return beta - (count - total) * torch.digamma(total) - ((shape - 1) * torch.digamma(shape)).sum(-1)


class Beta(Distribution):
    """The beta distribution between 0 and 1; draws have no gradients."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1: Any
        self.concentration0: Any
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, (), validate_args)
        self._pair = Dirichlet(torch.stack([self.concentration1, self.concentration0], -1), False)

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self) -> Any:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))

    def sample(self, sample_shape: Any = ()) -> Any:
        return self._pair.sample(sample_shape).select(-1, 0)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self._pair.log_prob(torch.stack([value, 1.0 - value], -1))

    def entropy(self) -> Any:
        return self._pair.entropy()

    def expand(self, batch_shape: Any) -> Distribution:
        return Beta(self.concentration1.expand(batch_shape), self.concentration0.expand(batch_shape), False)


class MultivariateNormal(Distribution):
    """The normal distribution of vectors, with one of: the covariance, its inverse, or its Cholesky factor."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        known = {name: matrix for name, matrix in given.items() if matrix is not None}
        if loc.dim() < 1:
            raise TensorValueError("loc must be at least one-dimensional.")
        if len(known) != 1:
            raise TensorValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            )
        ((name, matrix),) = known.items()
        if matrix.dim() < 2:
            raise TensorValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(*batch, -1)
        matrix = matrix.expand(*batch, -1, -1)
        self.__dict__[name] = matrix
        super().__init__(batch, self.loc.shape[-1:], validate_args)
        if name == "scale_tril":
            self._factor = matrix
        elif name == "covariance_matrix":
            self._factor = torch.linalg.cholesky(matrix)
        else:
            self._factor = torch.linalg.cholesky(torch.linalg.inv(matrix))

    def __getattr__(self, name: str) -> Any:
        if name == "scale_tril":
            return self._factor
        if name == "covariance_matrix":
            return self._factor @ self._factor.mT
        if name == "precision_matrix":
            return torch.cholesky_inverse(self._factor)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def mean(self) -> Any:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        return (self._factor**2).sum(-1)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = normals(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self._factor @ drawn.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        away = (value - self.loc).unsqueeze(-1)
        solved = torch.linalg.solve_triangular(self._factor, away, upper=False)
        size = (solved**2).sum((-2, -1))
        return -0.5 * size - self._half_log_det() - HALF_LOG_TWO_PI * self.loc.size(-1)

    def _half_log_det(self) -> Any:
        return self._factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def entropy(self) -> Any:
        return (0.5 + HALF_LOG_TWO_PI) * self.loc.size(-1) + self._half_log_det()

    def expand(self, batch_shape: Any) -> Distribution:
        loc, factor = self.loc.expand(*batch_shape, -1), self._factor.expand(*batch_shape, -1, -1)
        return MultivariateNormal(loc, scale_tril=factor, validate_args=False)
