"""`torch.distributions.constraints`: where parameters and values lie, so that others are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from srcgrad.torch.tensor import Tensor


class Constraint:
    """A set of numbers, or of tensors in their last ``event_dim`` dimensions."""

    def __init__(self, text: str, holds: Callable[[Any], Any], event_dim: int = 0, is_discrete: bool = False) -> None:
        self.text = text
        self.holds = holds
        self.event_dim = event_dim
        self.is_discrete = is_discrete

    def check(self, value: Tensor) -> Tensor:
        """For each event, whether it lies in the set."""
        found: Tensor = self.holds(value.detach())
        return found

    def __repr__(self) -> str:
        return self.text


def greater_than(bound: float) -> Constraint:
    """Numbers above a bound."""
    return Constraint(f"GreaterThan(lower_bound={bound})", lambda x: x > bound)


def greater_than_eq(bound: float) -> Constraint:
    """Numbers from a bound on."""
    return Constraint(f"GreaterThanEq(lower_bound={bound})", lambda x: x >= bound)


def interval(low: Any, high: Any) -> Constraint:
    """Numbers between two bounds, which belong to it."""
    return Constraint(f"Interval(lower_bound={low}, upper_bound={high})", lambda x: (low <= x) & (x <= high))


def integer_interval(low: int, high: int) -> Constraint:
    """Whole numbers between two bounds, which belong to it."""
    text = f"IntegerInterval(lower_bound={low}, upper_bound={high})"
    return Constraint(text, lambda x: (x % 1 == 0) & (low <= x) & (x <= high), is_discrete=True)


def symmetric(x: Any) -> Any:
    return (x - x.mT).abs().amax((-2, -1)) <= 1e-6 * x.abs().amax((-2, -1))


real = Constraint("Real()", lambda x: x == x)
real_vector = Constraint("IndependentConstraint(Real(), 1)", lambda x: (x == x).all(-1), 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean = Constraint("Boolean()", lambda x: (x == 0) | (x == 1), is_discrete=True)
nonnegative_integer = Constraint(
    "IntegerGreaterThan(lower_bound=0)", lambda x: (x % 1 == 0) & (x >= 0), is_discrete=True
)
simplex = Constraint("Simplex()", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6), 1)
positive_vector = Constraint("IndependentConstraint(GreaterThan(lower_bound=0.0), 1)", lambda x: (x > 0).all(-1), 1)
one_hot = Constraint("OneHot()", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), 1, is_discrete=True)
lower_cholesky = Constraint(
    "LowerCholesky()",
    lambda x: (x.tril() == x).all(-1).all(-1) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1),
    2,
)


def definite(x: Any) -> Any:
    from srcgrad.torch.linalg import cholesky_ex

    return symmetric(x) & (cholesky_ex(x)[1] == 0)


positive_definite = Constraint("PositiveDefinite()", definite, 2)
