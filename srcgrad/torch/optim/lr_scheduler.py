"""Learning-rate schedules: each changes ``lr`` of an optimiser's groups once per ``step``.

Rates follow from the ones before where PyTorch's do, so that schedules can be chained.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, ClassVar

from srcgrad.boundary import user_stack_level
from srcgrad.torch.errors import TensorError, TensorTypeError, TensorValueError
from srcgrad.torch.optim.cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from srcgrad.torch.optim.optimizer import Optimizer, number
from srcgrad.torch.optim.schedule import EPOCH_WARNING, LRScheduler, known_optimizer, set_rate

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class FunctionLR(LRScheduler):
    """A schedule by a function of the step; one function, or one per group."""

    kept_out: ClassVar[tuple[str, ...]] = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas: list[Callable[[int], float]] = (
            list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        )
        if len(self.lr_lambdas) != count:
            raise TensorValueError(f"Expected {count} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    @property
    def factors(self) -> list[float]:
        return [function(self.last_epoch) for function in self.lr_lambdas]

    def state_dict(self) -> dict[str, Any]:
        """All but the optimiser; of functions that are objects, their attributes."""
        known = [None if isinstance(f, FunctionType) else dict(f.__dict__) for f in self.lr_lambdas]
        return super().state_dict() | {"lr_lambdas": known}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "lr_lambdas"})
        for function, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                function.__dict__.update(attributes)


class LambdaLR(FunctionLR):
    """The initial rate times ``lr_lambda(epoch)``; one function, or one per group."""

    def get_lr(self) -> list[Any]:
        return [base * factor for base, factor in zip(self.base_lrs, self.factors, strict=True)]


class MultiplicativeLR(FunctionLR):
    """The rate before times ``lr_lambda(epoch)``."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        for function in lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]:
            if not callable(function):
                raise TensorTypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> list[Any]:
        if self._is_initial:
            return self.rates
        return [rate * factor for rate, factor in zip(self.rates, self.factors, strict=True)]


class StepLR(LRScheduler):
    """Times ``gamma`` every ``step_size`` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        falls = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return self.scaled(self.gamma) if falls else self.rates

    def closed_form(self) -> list[Any]:
        return self.from_base(self.gamma ** (self.last_epoch // self.step_size))


class MultiStepLR(LRScheduler):
    """Times ``gamma`` at each of the milestones."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        times = self.milestones[self.last_epoch]
        return self.scaled(self.gamma**times) if times else self.rates

    def closed_form(self) -> list[Any]:
        return self.from_base(self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch))


class ConstantLR(LRScheduler):
    """Times ``factor`` for the first ``total_iters`` steps."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1.0:
            raise TensorValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self.scaled(self.factor)
        return self.scaled(1.0 / self.factor) if self.last_epoch == self.total_iters else self.rates

    def closed_form(self) -> list[Any]:
        return self.from_base(1.0 if self.last_epoch >= self.total_iters else self.factor)


class LinearLR(LRScheduler):
    """From ``start_factor`` to ``end_factor`` times the rate, in ``total_iters`` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1.0:
            raise TensorValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal to 1."
            )
        if not 0 <= end_factor <= 1.0:
            raise TensorValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self.scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self.rates
        rise = self.end_factor - self.start_factor
        return self.scaled(1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def closed_form(self) -> list[Any]:
        rise = self.end_factor - self.start_factor
        return self.from_base(self.start_factor + rise * min(self.total_iters, self.last_epoch) / self.total_iters)


class ExponentialLR(LRScheduler):
    """Times ``gamma`` at every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        return self.rates if self._is_initial else self.scaled(self.gamma)

    def closed_form(self) -> list[Any]:
        return self.from_base(self.gamma**self.last_epoch)


class PolynomialLR(LRScheduler):
    """The initial rate times ``(1 - epoch / total_iters) ** power``."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self.rates
        left = 1.0 - self.last_epoch / self.total_iters
        return self.scaled((left / (1.0 - (self.last_epoch - 1) / self.total_iters)) ** self.power)

    def closed_form(self) -> list[Any]:
        return self.from_base((1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate to ``eta_min`` in ``T_max`` steps (Loshchilov and Hutter 2017)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self._is_initial:
            return self.rates
        low, turn = self.eta_min, self.T_max
        if self._step_count == 1 and self.last_epoch > 0:
            return self.closed_form()
        if (self.last_epoch - 1 - turn) % (2 * turn) == 0:
            step = (1 - math.cos(math.pi / turn)) / 2
            return [rate + (base - low) * step for base, rate in zip(self.base_lrs, self.rates, strict=True)]
        ratio = (1 + math.cos(math.pi * self.last_epoch / turn)) / (
            1 + math.cos(math.pi * (self.last_epoch - 1) / turn)
        )
        return [ratio * (rate - low) + low for rate in self.rates]

    def closed_form(self) -> list[Any]:
        low = self.eta_min
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [low + (base - low) * share for base in self.base_lrs]


class CombinedLR(LRScheduler):
    """A schedule that is made of others, of the same optimiser.

    Raises:
        TensorValueError: there are none, or one of them is of another optimiser or needs a metric.
    """

    kept_out: ClassVar[tuple[str, ...]] = ("optimizer", "_schedulers")
    none_given: ClassVar[str] = ""

    def take(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        name = type(self).__name__
        if not schedulers:
            raise TensorValueError(f"{name} expects at least one scheduler{self.none_given}, but got no scheduler.")
        self._schedulers = list(schedulers)
        self.optimizer = self._schedulers[0].optimizer if optimizer is None else optimizer
        for k, scheduler in enumerate(self._schedulers):
            if isinstance(scheduler, ReduceLROnPlateau):
                raise TensorValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {k} in the given schedulers sequence."
                )
            if scheduler.optimizer is not self.optimizer:
                raise TensorValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {k} of another one."
                )

    def state_dict(self) -> dict[str, Any]:
        """All but the optimiser; of the schedules, their own."""
        return super().state_dict() | {"_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


def step_back(scheduler: LRScheduler) -> None:
    """Take the step of the constructor back, also of the schedules that one is made of."""
    if isinstance(scheduler, CombinedLR):
        for part in scheduler._schedulers:
            step_back(part)
    else:
        scheduler.last_epoch -= 1


class SequentialLR(CombinedLR):
    """Schedules one after the other, changing at the milestones."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        self.take(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise TensorValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        for scheduler in self._schedulers:
            step_back(scheduler)
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first.start()
        self._last_lr = first.get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Go on by one step."""
        self.last_epoch += 1
        k = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[k]
        if k > 0 and self._milestones[k - 1] == self.last_epoch:
            scheduler.move(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(CombinedLR):
    """Several schedules at once: each step is a step of all."""

    none_given: ClassVar[str] = " to be chained"

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self.take(schedulers, optimizer)
        self._last_lr = self.rates

    def step(self, epoch: int | None = None) -> None:
        """Go on by one step."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self.rates


class ReduceLROnPlateau(LRScheduler):
    """Times ``factor`` where a metric has not improved for more than ``patience`` steps.

    Args:
        mode: ``"min"`` or ``"max"``: what is better.
        threshold, threshold_mode: by how much it must improve, relatively (``"rel"``) or absolutely (``"abs"``).
        cooldown: steps after a change in which nothing is counted.
        min_lr: no rate falls below it; ``eps``: nor changes by less.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise TensorValueError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise TensorValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise TensorValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer = known_optimizer(optimizer)
        self.mode, self.factor, self.patience, self.eps = mode, factor, patience, eps
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        groups = optimizer.param_groups
        several = isinstance(min_lr, (list, tuple))
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(min_lr) if several else [min_lr] * len(groups)
        if len(self.min_lrs) != len(groups):
            raise TensorValueError(f"expected {len(groups)} min_lrs, got {len(self.min_lrs)}")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.best = self.mode_worse
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = self.rates

    def is_better(self, a: float, best: float) -> bool:
        """Whether ``a`` improves on ``best`` by more than the threshold."""
        if self.threshold_mode == "abs":
            return a < best - self.threshold if self.mode == "min" else a > best + self.threshold
        return a < best * (1.0 - self.threshold) if self.mode == "min" else a > best * (1.0 + self.threshold)

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take note of the metric of one more step."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_WARNING, UserWarning, stacklevel=user_stack_level())
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self.reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self.rates

    def reduce(self) -> None:
        """The rates times the factor.

        Raises:
            TensorError: groups were added, and ``min_lr`` was a list.
        """
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise TensorError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group "
                    "being added to the optimizer. Please modify the `min_lrs` field to match the length of the "
                    "`optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs, strict=True):
            rate = number(group["lr"])
            lower = max(rate * self.factor, low)
            if rate - lower > self.eps:
                set_rate(group, lower)
