"""What all distributions share: shapes, checks, and draws."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import srcgrad.torch as torch
from srcgrad.torch.distributions.constraints import Constraint
from srcgrad.torch.dtypes import Size, get_default_dtype
from srcgrad.torch.errors import TensorNotImplementedError, TensorValueError
from srcgrad.torch.modes import no_grad
from srcgrad.torch.tensor import Tensor


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers take the dtype of the tensors."""
    kind = next((x.dtype for x in values if isinstance(x, Tensor)), get_default_dtype())
    given = [x if isinstance(x, Tensor) else torch.tensor(x, dtype=kind) for x in values]
    return tuple(torch.broadcast_tensors(*given))


class Distribution:
    """The base of the distributions.

    A subclass lists its parameters in ``arg_constraints`` and gives `log_prob` and `sample`, or `rsample` where draws
    have gradients.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    has_rsample = False
    has_enumerate_support = False
    _validate_args = True

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if not self._validate_args:
            return
        for name, constraint in self.arg_constraints.items():
            value = self.__dict__.get(name)
            if value is not None and not bool(constraint.check(value).all()):
                raise TensorValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether parameters and values are checked where ``validate_args`` is not given."""
        Distribution._validate_args = value

    @property
    def batch_shape(self) -> Size:
        """The shape of independent distributions that it stands for."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw of one of them."""
        return self._event_shape

    @property
    def support(self) -> Constraint:
        """Where its values lie."""
        raise TensorNotImplementedError(f"{type(self).__name__} has no support")

    def _missing(self, what: str) -> TensorNotImplementedError:
        return TensorNotImplementedError(f"{type(self).__name__} has no {what}")

    @property
    def mean(self) -> Tensor:
        raise self._missing("mean")

    @property
    def mode(self) -> Tensor:
        """The likeliest value."""
        raise self._missing("mode")

    @property
    def variance(self) -> Tensor:
        raise self._missing("variance")

    @property
    def stddev(self) -> Tensor:
        """The root of the variance."""
        return self.variance.sqrt()  # type: ignore[no-any-return]

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at a value."""
        raise self._missing("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most this value."""
        raise self._missing("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`."""
        raise self._missing("icdf")

    def entropy(self) -> Tensor:
        raise self._missing("entropy")

    def perplexity(self) -> Tensor:
        """exp of the entropy."""
        return torch.exp(self.entropy())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, one after the other in a first dimension."""
        raise self._missing("enumerate_support")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws through which gradients reach the parameters."""
        raise TensorNotImplementedError(
            f"{type(self).__name__} has no rsample: its draws have no gradients",
            hint="use sample(), and log_prob of it for the score-function estimator",
        )

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws of shape ``sample_shape``, the batch's and the event's."""
        with no_grad():
            return self.rsample(sample_shape)

    def expand(self, batch_shape: Any) -> Distribution:
        """The distribution with its batch broadcast to a shape."""
        found = copy.copy(self)
        for name, constraint in self.arg_constraints.items():
            value = self.__dict__.get(name)
            if value is not None:
                events = value.shape[value.dim() - constraint.event_dim :]
                found.__dict__[name] = value.expand(*batch_shape, *events)
        found._batch_shape = Size(batch_shape)
        return found

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Any) -> None:
        """Raise a TensorValueError unless a value may come from it."""
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise TensorValueError("The value argument to log_prob must be a Tensor")
        shape, known = tuple(value.shape), (*self._batch_shape, *self._event_shape)
        if shape[len(shape) - len(self._event_shape) :] != tuple(self._event_shape):
            raise TensorValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        if any(a not in (1, b) and b != 1 for a, b in zip(reversed(shape), reversed(known), strict=False)):
            raise TensorValueError(
                f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {Size(known)}."
            )
        if not bool(self.support.check(value).all()):
            raise TensorValueError(
                f"Expected value argument ({type(value).__name__} of shape {shape}) to be within the support "
                f"({self.support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        given = [(name, self.__dict__[name]) for name in self.arg_constraints if self.__dict__.get(name) is not None]
        shown = ", ".join(f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in given)
        return f"{type(self).__name__}({shown})"


class Independent(Distribution):
    """A distribution whose last batch dimensions are taken as part of the event."""

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        count, batch = reinterpreted_batch_ndims, base_distribution.batch_shape
        if count > len(batch):
            raise TensorValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{count} vs {len(batch)}"
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = count
        self.has_rsample = base_distribution.has_rsample
        cut = len(batch) - count
        super().__init__(batch[:cut], (*batch[cut:], *base_distribution.event_shape), validate_args)

    def _summed(self, x: Tensor) -> Tensor:
        count = self.reinterpreted_batch_ndims
        return x.sum(tuple(range(-count, 0))) if count else x

    @property
    def support(self) -> Constraint:
        base, count = self.base_dist.support, self.reinterpreted_batch_ndims

        def holds(x: Any) -> Any:
            found = base.check(x)
            return found.flatten(-count).all(-1) if count else found

        return Constraint(f"IndependentConstraint({base!r}, {count})", holds, base.event_dim + count)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self._summed(self.base_dist.entropy())

    def expand(self, batch_shape: Any) -> Distribution:
        batch = self.base_dist.batch_shape
        kept = batch[len(batch) - self.reinterpreted_batch_ndims :]
        return Independent(self.base_dist.expand((*batch_shape, *kept)), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
