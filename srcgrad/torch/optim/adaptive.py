"""More optimisers that scale each element's step by what its gradients were.

Each ``update`` is the algorithm of its paper as PyTorch's documentation writes it, in the order of its operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.torch.optim.algorithms import checked_rate, refuse_differentiable
from srcgrad.torch.optim.optimizer import Group, Optimizer, as_pairs, buffer, checked, counted, number
from srcgrad.torch.tensor import wrapped


def check_common(lr: Any, eps: float, weight_decay: float, betas: tuple[float, ...] = ()) -> None:
    """Raise a TensorValueError unless the options that most methods share are in their ranges."""
    checked_rate(lr)
    checked(eps >= 0.0, "epsilon value", eps)
    for k, beta in enumerate(betas):
        checked(0.0 <= beta < 1.0, f"beta parameter at index {k}", beta)
    checked(weight_decay >= 0.0, "weight_decay value", weight_decay)


def scalar(state: dict[str, Any], name: str, start: float) -> Any:
    """A running number of a parameter, as an array of no dimensions."""
    found = state.get(name)
    if found is None:
        found = state[name] = wrapped(np.array(start, np.float32))
    return found._data


def decayed(value: Any, gradient: Any, group: Group) -> Any:
    """The gradient with that of the weight decay; a decoupled one shrinks the parameter instead."""
    decay = group["weight_decay"]
    if not decay:
        return gradient
    if group.get("decoupled_weight_decay"):
        value *= 1 - number(group["lr"]) * decay
        return gradient
    return gradient + decay * value


class Adadelta(Optimizer):
    """Adadelta (Zeiler 2012, arXiv:1212.5701)."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        checked_rate(lr)
        refuse_differentiable(differentiable)
        checked(0.0 <= rho <= 1.0, "rho value", rho)
        check_common(lr, eps, weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def update(self, value: Any, gradient: Any, state: dict[str, Any], group: Group) -> None:
        rho, eps = group["rho"], group["eps"]
        counted(state)
        gradient = as_pairs(decayed(value, gradient, group))
        square, moved = buffer(state, "square_avg", value), buffer(state, "acc_delta", value)
        square *= rho
        square += (1 - rho) * (gradient * gradient)
        step = np.sqrt(moved + eps) / np.sqrt(square + eps) * gradient
        moved *= rho
        moved += (1 - rho) * (step * step)
        value = as_pairs(value)
        value -= number(group["lr"]) * step


class Adamax(Optimizer):
    """Adam with the infinity norm (Kingma and Ba 2015, section 7.1)."""

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_common(lr, eps, weight_decay, betas)
        refuse_differentiable(differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def update(self, value: Any, gradient: Any, state: dict[str, Any], group: Group) -> None:
        first, second = group["betas"]
        step = counted(state)
        gradient = as_pairs(decayed(value, gradient, group))
        mean, largest = buffer(state, "exp_avg", value), buffer(state, "exp_inf", value)
        mean += (gradient - mean) * (1 - first)
        largest *= second
        np.maximum(largest, np.abs(gradient) + group["eps"], out=largest)
        value = as_pairs(value)
        value -= (number(group["lr"]) / (1 - first**step)) * (mean / largest)


class NAdam(Optimizer):
    """Adam with Nesterov's momentum (Dozat 2016)."""

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_common(lr, eps, weight_decay, betas)
        refuse_differentiable(differentiable)
        checked(momentum_decay >= 0.0, "momentum_decay value", momentum_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def update(self, value: Any, gradient: Any, state: dict[str, Any], group: Group) -> None:
        first, second = group["betas"]
        rate, decay = number(group["lr"]), group["momentum_decay"]
        step = counted(state)
        gradient = as_pairs(decayed(value, gradient, group))
        product = scalar(state, "mu_product", 1.0)
        mean, square = buffer(state, "exp_avg", value), buffer(state, "exp_avg_sq", value)
        momentum, following = (first * (1 - 0.5 * 0.96 ** (k * decay)) for k in (step, step + 1))
        product *= momentum
        mean += (gradient - mean) * (1 - first)
        square *= second
        square += (1 - second) * (gradient * gradient)
        size = np.sqrt(square / (1 - second**step)) + group["eps"]
        now = float(product)
        value = as_pairs(value)
        value -= (rate * (1 - momentum) / (1 - now)) * (gradient / size)
        value -= (rate * following / (1 - now * following)) * (mean / size)


class RAdam(Optimizer):
    """Adam with the variance of its first steps rectified (Liu et al. 2020, arXiv:1908.03265)."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_common(lr, eps, weight_decay, betas)
        refuse_differentiable(differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def update(self, value: Any, gradient: Any, state: dict[str, Any], group: Group) -> None:
        first, second = group["betas"]
        step = counted(state)
        gradient = as_pairs(decayed(value, gradient, group))
        mean, square = buffer(state, "exp_avg", value), buffer(state, "exp_avg_sq", value)
        mean += (gradient - mean) * (1 - first)
        square *= second
        square += (1 - second) * (gradient * gradient)
        move = mean / (1 - first**step) * number(group["lr"])
        left = 1 - second**step
        longest = 2 / (1 - second) - 1
        length = longest - 2 * step * second**step / left
        if length > 5.0:  # below, the variance of the adaptive rate has no finite bound
            ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            move = move * (left**0.5 / (np.sqrt(square) + group["eps"])) * ratio**0.5
        value = as_pairs(value)
        value -= move


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun 1993): steps from the signs of the gradients alone."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        checked_rate(lr)
        refuse_differentiable(differentiable)
        checked(0.0 < etas[0] < 1.0 < etas[1], "eta values", f"{etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def update(self, value: Any, gradient: Any, state: dict[str, Any], group: Group) -> None:
        counted(state)
        rate = number(group["lr"])
        gradient = as_pairs(gradient)
        before = buffer(state, "prev", value)
        sizes = buffer(state, "step_size", value, complex(rate, rate) if value.dtype.kind == "c" else rate)
        turn = gradient * before
        sizes *= np.where(turn > 0, group["etas"][1], np.where(turn < 0, group["etas"][0], 1)).astype(sizes.dtype)
        np.clip(sizes, *group["step_sizes"], out=sizes)
        kept = np.where(turn < 0, 0, gradient)
        value = as_pairs(value)
        value -= np.sign(kept) * sizes
        before[...] = kept


class ASGD(Optimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky 1992); the averages are ``state[p]["ax"]``."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_common(lr, 0.0, weight_decay)
        refuse_differentiable(differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def update(self, value: Any, gradient: Any, state: dict[str, Any], group: Group) -> None:
        rate, shrink = number(group["lr"]), group["lambd"]
        step = counted(state)
        eta, weight = scalar(state, "eta", rate), scalar(state, "mu", 1.0)
        average = buffer(state, "ax", value)
        gradient = as_pairs(decayed(value, gradient, group))
        value = as_pairs(value)
        value *= 1 - shrink * float(eta)
        value -= float(eta) * gradient
        average += (value - average) * float(weight)
        eta[...] = rate / (1 + shrink * rate * step) ** group["alpha"]
        weight[...] = 1 / max(1.0, step - group["t0"])
