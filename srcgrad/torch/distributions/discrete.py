"""Distributions of truth values, classes and counts."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import srcgrad.torch as torch
from srcgrad.torch.distributions import constraints
from srcgrad.torch.distributions.constraints import Constraint
from srcgrad.torch.distributions.distribution import Distribution, broadcast_all
from srcgrad.torch.dtypes import finfo, int64
from srcgrad.torch.errors import TensorValueError
from srcgrad.torch.modes import no_grad
from srcgrad.torch.tensor import Tensor


def inside(probs: Any) -> Any:
    """Probabilities at a rounding error's distance from 0 and 1, so that their logarithms are finite."""
    least = finfo(probs.dtype).eps
    return probs.clamp(min=least, max=1 - least)


def one_of(probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise TensorValueError("Either `probs` or `logits` must be specified, but not both.")


class Bernoulli(Distribution):
    """1 with probability ``probs``, or with log odds ``logits``; else 0."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        one_of(probs, logits)
        self._given = "logits" if probs is None else "probs"
        (value,) = broadcast_all(logits if probs is None else probs)
        self.__dict__[self._given] = value
        super().__init__(value.shape, (), validate_args)

    def __getattr__(self, name: str) -> Any:
        if name == "logits":
            near = inside(self.__dict__["probs"])
            return torch.log(near) - torch.log1p(-near)
        if name == "probs":
            return torch.sigmoid(self.__dict__["logits"])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        found = (self.probs >= 0.5).to(self.probs)
        return found.masked_fill(self.probs == 0.5, math.nan)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logits, value = torch.broadcast_tensors(self.logits, value)
        return -torch.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        return torch.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        values = torch.arange(2, dtype=self.probs.dtype).view(2, *[1] * len(self._batch_shape))
        return values.expand(2, *self._batch_shape) if expand else values


class Categorical(Distribution):
    """A class from 0 on, with probabilities in proportion to ``probs``, or to exp(``logits``).

    >>> import srcgrad.torch as torch
    >>> policy = torch.distributions.Categorical(logits=torch.zeros(4))
    >>> policy.log_prob(torch.tensor(2)), policy.entropy()
    (tensor(-1.3863), tensor(1.3863))
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        one_of(probs, logits)
        name, value = ("logits", logits) if probs is None else ("probs", probs)
        if value.dim() < 1:
            raise TensorValueError(f"`{name}` parameter must be at least one-dimensional.")
        value = value - value.logsumexp(-1, True) if probs is None else value / value.sum(-1, True)
        self.__dict__[name] = self._param = value
        self._num_events = value.size(-1)
        super().__init__(value.shape[:-1], (), validate_args)

    def __getattr__(self, name: str) -> Any:
        if name == "logits":
            return torch.log(inside(self.__dict__["probs"]))
        if name == "probs":
            return torch.softmax(self.__dict__["logits"], -1)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def param_shape(self) -> Any:
        return self._param.shape

    @property
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Any:
        return torch.full(self._batch_shape, math.nan, dtype=self._param.dtype)

    variance = mean

    @property
    def mode(self) -> Any:
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            count = math.prod(sample_shape)
            drawn = torch.multinomial(rows, count, True) if count else torch.zeros(len(rows), 0, dtype=int64)
            return drawn.mT.reshape((*sample_shape, *self._batch_shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        places, logits = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, places[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        logits = self.logits.clamp(min=finfo(self._param.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = torch.arange(self._num_events).view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class Poisson(Distribution):
    """Counts of a ``rate``."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self.rate: Any
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.rate

    variance = mean

    @property
    def mode(self) -> Any:
        return self.rate.floor()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return torch.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return torch.xlogy(value, self.rate) - self.rate - torch.lgamma(value + 1)
