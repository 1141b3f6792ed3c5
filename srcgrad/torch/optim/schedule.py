"""The base of the learning-rate schedules."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from srcgrad.boundary import user_stack_level
from srcgrad.torch.errors import TensorKeyError, TensorTypeError, TensorValueError
from srcgrad.torch.optim.optimizer import Optimizer, number
from srcgrad.torch.tensor import Tensor, wrapped

EPOCH_WARNING: Final = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available."
)
ORDER_WARNING: Final = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call "
    "them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in "
    "PyTorch skipping the first value of the learning rate schedule."
)


class LRScheduler:
    """What all schedules share. A subclass gives `get_lr`: the rates after ``last_epoch`` steps, one per group.

    ``_step_count``: how often `step` was called, once by the constructor; ``_is_initial`` is True during that call,
    which sets the rates that hold before the first step.
    """

    _step_count: int = 0
    _is_initial: bool = False
    kept_out: ClassVar[tuple[str, ...]] = ("optimizer",)
    """Attributes that are no state."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = known_optimizer(optimizer)
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", own(group["lr"]))
        else:
            for k, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise TensorKeyError(
                        f"param 'initial_lr' is not specified in param_groups[{k}] when resuming scheduler with "
                        "last_epoch >= 0.",
                        hint="load the optimizer's state_dict() first, or leave last_epoch out",
                    )
        self.base_lrs = [own(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.start()

    def start(self) -> None:
        """Set the rates that hold before the first step."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    @property
    def rates(self) -> list[Any]:
        return [own(group["lr"]) for group in self.optimizer.param_groups]

    def get_lr(self) -> list[Any]:
        """The rates that hold after ``last_epoch`` steps."""
        raise NotImplementedError

    def get_last_lr(self) -> list[Any]:
        """The rates that were set last."""
        return self._last_lr

    def closed_form(self) -> list[Any] | None:
        """The rates after ``last_epoch`` steps from the initial ones alone; None where `get_lr` is all there is."""
        return None

    def step(self, epoch: int | None = None) -> None:
        """Go on by one step."""
        if self._step_count == 1 and not self.optimizer._opt_called:
            warnings.warn(ORDER_WARNING, UserWarning, stacklevel=user_stack_level())
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_WARNING, UserWarning, stacklevel=user_stack_level())
        self.move(epoch)

    def move(self, epoch: int | None = None) -> None:
        """Set the rates of the next step, or of the step ``epoch``."""
        if epoch is None:
            self.last_epoch += 1
            rates = self.get_lr()
        else:
            self.last_epoch = epoch
            known = self.closed_form()
            rates = self.get_lr() if known is None else known
        self.assign(rates)

    def assign(self, rates: Sequence[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_rate(group, rate)
        self._last_lr: list[Any] = self.rates

    def state_dict(self) -> dict[str, Any]:
        """All but the optimiser."""
        return {name: value for name, value in self.__dict__.items() if name not in self.kept_out}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def scaled(self, factor: float) -> list[Any]:
        return [rate * factor for rate in self.rates]

    def from_base(self, factor: float) -> list[Any]:
        return [base * factor for base in self.base_lrs]


def known_optimizer(optimizer: Any) -> Optimizer:
    """Raise a TensorTypeError unless it is an optimiser."""
    if not isinstance(optimizer, Optimizer):
        raise TensorTypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """An option as one value per group.

    Raises:
        TensorValueError: a list of another length.
    """
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise TensorValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups "
            f"has {count}."
        )
    return list(value)


def cycles_momentum(optimizer: Optimizer) -> bool:
    """Whether momentum is the first of ``betas``.

    Raises:
        TensorValueError: the optimiser has neither.
    """
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise TensorValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def set_momentum(group: dict[str, Any], momentum: float, use_beta1: bool) -> None:
    if use_beta1:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


def own(x: Any) -> Any:
    """A rate that nobody else holds: one that is a tensor is changed in place."""
    return wrapped(x._data.copy()) if isinstance(x, Tensor) else x


def set_rate(group: dict[str, Any], rate: Any) -> None:
    """Give a group another rate; where the rate is a tensor, it stays that tensor."""
    known = group["lr"]
    if isinstance(known, Tensor):
        known._data[...] = number(rate)
    else:
        group["lr"] = rate
