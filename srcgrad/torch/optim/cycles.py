"""Schedules that go up and down: warm restarts, one cycle, many cycles."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

from srcgrad.torch.errors import TensorValueError
from srcgrad.torch.optim.optimizer import Optimizer
from srcgrad.torch.optim.schedule import (
    LRScheduler,
    cycles_momentum,
    known_optimizer,
    per_group,
    set_momentum,
    set_rate,
)


class CosineAnnealingWarmRestarts(LRScheduler):
    """`CosineAnnealingLR` that starts again after ``T_0`` steps, then each time ``T_mult`` times as many (SGDR)."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise TensorValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise TensorValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Go on by one step, or to ``epoch``, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise TensorValueError(f"Expected non-negative epoch, but got {epoch}")
            self.T_cur, self.T_i = epoch, self.T_0
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        self.last_epoch = math.floor(epoch)
        self.assign(self.get_lr())


class OneCycleLR(LRScheduler):
    """Up to ``max_lr`` and down again, once (Smith and Topin 2018, arXiv:1708.07120); momentum runs the other way."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise TensorValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        if anneal_strategy not in ("cos", "linear"):
            raise TensorValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not 0 <= pct_start <= 1:
            raise TensorValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if total_steps is None:
            assert epochs is not None and steps_per_epoch is not None
            total_steps = positive("epochs", epochs) * positive("steps_per_epoch", steps_per_epoch)
        self.total_steps = positive("total_steps", total_steps)
        self._schedule_phases = phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        peaks = per_group("max_lr", known_optimizer(optimizer), max_lr)
        if last_epoch == -1:
            for group, peak in zip(optimizer.param_groups, peaks, strict=True):
                group["initial_lr"] = peak / div_factor
                group["max_lr"] = peak
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = cycles_momentum(optimizer)
            if last_epoch == -1:
                start_momentum(optimizer, base_momentum, max_momentum, self.use_beta1)
        super().__init__(optimizer, last_epoch)

    def annealed(self, start: float, end: float, share: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list[Any]:
        step = self.last_epoch
        if step > self.total_steps:
            raise TensorValueError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
            )
        rates = []
        for group in self.optimizer.param_groups:
            start: float = 0
            for k, phase in enumerate(self._schedule_phases):
                end = phase["end_step"]
                if step <= end or k == len(self._schedule_phases) - 1:
                    share = (step - start) / (end - start)
                    rates.append(self.annealed(group[phase["start_lr"]], group[phase["end_lr"]], share))
                    if self.cycle_momentum:
                        found = self.annealed(group[phase["start_momentum"]], group[phase["end_momentum"]], share)
                        set_momentum(group, found, self.use_beta1)
                    break
                start = end
        return rates


def positive(name: str, value: int) -> int:
    """Raise a TensorValueError unless it is a positive integer."""
    if not isinstance(value, int) or value <= 0:
        raise TensorValueError(f"Expected positive integer {name}, but got {value}")
    return value


def phases(total: int, share: float, three: bool) -> list[dict[str, Any]]:
    """The phases of one cycle: where each ends, and between what rate and momentum lie."""

    def phase(end: float, rates: tuple[str, str], momenta: tuple[str, str]) -> dict[str, Any]:
        start, stop = rates
        first, last = (f"{name}_momentum" for name in momenta)
        return {
            "end_step": end, "start_lr": start, "end_lr": stop, "start_momentum": first, "end_momentum": last
        }  # fmt: skip

    rise = phase(float(share * total) - 1, ("initial_lr", "max_lr"), ("max", "base"))
    if not three:
        return [rise, phase(total - 1, ("max_lr", "min_lr"), ("base", "max"))]
    fall = phase(float(2 * share * total) - 2, ("max_lr", "initial_lr"), ("base", "max"))
    return [rise, fall, phase(total - 1, ("initial_lr", "min_lr"), ("max", "max"))]


def start_momentum(optimizer: Optimizer, base: Any, highest: Any, use_beta1: bool) -> None:
    """Give each group the momentum that the cycle starts with, and its bounds."""
    lows, highs = per_group("base_momentum", optimizer, base), per_group("max_momentum", optimizer, highest)
    for group, low, high in zip(optimizer.param_groups, lows, highs, strict=True):
        set_momentum(group, high, use_beta1)
        group["max_momentum"], group["base_momentum"] = high, low


class CyclicLR(LRScheduler):
    """Up and down between two rates (Smith 2017, arXiv:1506.01186)."""

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise TensorValueError("mode is invalid and scale_fn is None")
        lows = per_group("base_lr", known_optimizer(optimizer), base_lr)
        if last_epoch == -1:
            for group, low in zip(optimizer.param_groups, lows, strict=True):
                set_rate(group, low)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size, self.step_ratio = float(step_size_up + down), step_size_up / (step_size_up + down)
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else ("iterations" if mode == "exp_range" else "cycle")
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = cycles_momentum(optimizer)
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                start_momentum(optimizer, base_momentum, max_momentum, self.use_beta1)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def state_dict(self) -> dict[str, Any]:
        """All but the optimiser; of a function ``scale_fn`` that is an object, its attributes."""
        function = self._scale_fn_custom
        known = None if function is None or isinstance(function, FunctionType) else dict(function.__dict__)
        return super().state_dict() | {"_scale_fn_custom": known}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        name = "_scale_fn_custom"
        super().load_state_dict({key: value for key, value in state_dict.items() if key != name})
        if state_dict[name] is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(state_dict[name])

    def scale_fn(self, x: float) -> float:
        """The factor of the height in a cycle, or at a step."""
        if self._scale_fn_custom is not None:
            return float(self._scale_fn_custom(x))
        if self.mode == "triangular2":
            return float(0.5 ** (x - 1))
        return float(self.gamma**x) if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[Any]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, lowest, highest in bounds:
                set_momentum(group, highest - (highest - lowest) * height * scale, self.use_beta1)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]
