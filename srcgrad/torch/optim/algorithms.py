"""The optimisers: stochastic gradient descent and the adaptive ones.

Each ``update`` is the algorithm of its paper as PyTorch's documentation writes it, in the order of its operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.torch.errors import TensorNotImplementedError, TensorValueError
from srcgrad.torch.optim.optimizer import Group, Optimizer, as_pairs, buffer, checked, counted, number
from srcgrad.torch.tensor import Tensor, wrapped


def checked_rate(lr: Any) -> None:
    """Raise a TensorValueError unless it is a learning rate."""
    if isinstance(lr, Tensor) and lr._data.size != 1:
        raise TensorValueError("Tensor lr must be 1-element")
    checked(number(lr) >= 0.0, "learning rate", lr)


def refuse_differentiable(differentiable: bool) -> None:
    """Raise where gradients through the steps are asked for."""
    if differentiable:
        raise TensorNotImplementedError(
            "optimizers with differentiable=True are not there",
            hint="write the update as functions of tensors (as in MAML), with torch.autograd.grad(create_graph=True)",
        )


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum (Polyak 1964; Nesterov 1983 with ``nesterov``).

    >>> import srcgrad.torch as torch
    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.SGD([w], lr=0.1)
    >>> (w**2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8000], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        checked_rate(lr)
        refuse_differentiable(differentiable)
        checked(momentum >= 0.0, "momentum value", momentum)
        checked(weight_decay >= 0.0, "weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise TensorValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def update(self, value: Any, gradient: Any, state: dict[str, Any], group: Group) -> None:
        momentum = group["momentum"]
        if group["weight_decay"]:
            gradient = gradient + group["weight_decay"] * value
        if momentum:
            known = state.get("momentum_buffer")
            if known is None:
                state["momentum_buffer"] = wrapped(np.array(gradient))
                velocity = gradient
            else:
                velocity = known._data
                velocity *= momentum
                velocity += (1 - group["dampening"]) * gradient
            gradient = gradient + momentum * velocity if group["nesterov"] else velocity
        value -= number(group["lr"]) * gradient


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015, arXiv:1412.6980); ``amsgrad``: Reddi et al. 2018."""

    decoupled = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        checked_rate(lr)
        refuse_differentiable(differentiable)
        checked(eps >= 0.0, "epsilon value", eps)
        for k, beta in enumerate(betas):
            checked(0.0 <= beta < 1.0, f"beta parameter at index {k}", beta)
        checked(weight_decay >= 0.0, "weight_decay value", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay or self.decoupled,
            },
        )

    def update(self, value: Any, gradient: Any, state: dict[str, Any], group: Group) -> None:
        first, second = group["betas"]
        rate = number(group["lr"])
        step = counted(state)
        if group["weight_decay"]:
            if group["decoupled_weight_decay"]:
                value *= 1 - rate * group["weight_decay"]
            else:
                gradient = gradient + group["weight_decay"] * value
        mean, square = buffer(state, "exp_avg", value), buffer(state, "exp_avg_sq", value)
        whole, value, gradient = value, as_pairs(value), as_pairs(gradient)
        mean += (gradient - mean) * (1 - first)
        square *= second
        square += (1 - second) * (gradient * gradient)
        if group["amsgrad"]:
            largest = buffer(state, "max_exp_avg_sq", whole)
            np.maximum(largest, square, out=largest)
            square = largest
        size = np.sqrt(square) / (1 - second**step) ** 0.5 + group["eps"]
        value -= (rate / (1 - first**step)) * (mean / size)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101)."""

    decoupled = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)


class RMSprop(Optimizer):
    """RMSprop (Hinton's lecture 6e, 2012); ``centered``: Graves 2013, arXiv:1308.0850."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        checked_rate(lr)
        refuse_differentiable(differentiable)
        checked(eps >= 0.0, "epsilon value", eps)
        checked(momentum >= 0.0, "momentum value", momentum)
        checked(weight_decay >= 0.0, "weight_decay value", weight_decay)
        checked(alpha >= 0.0, "alpha value", alpha)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def update(self, value: Any, gradient: Any, state: dict[str, Any], group: Group) -> None:
        alpha = group["alpha"]
        counted(state)
        if group["weight_decay"]:
            gradient = gradient + group["weight_decay"] * value
        square = buffer(state, "square_avg", value)
        whole, value, gradient = value, as_pairs(value), as_pairs(gradient)
        square *= alpha
        square += (1 - alpha) * (gradient * gradient)
        variance = square
        if group["centered"]:
            mean = buffer(state, "grad_avg", whole)
            mean += (gradient - mean) * (1 - alpha)
            variance = square - mean * mean
        scaled = gradient / (np.sqrt(variance) + group["eps"])
        if group["momentum"] > 0:
            velocity = buffer(state, "momentum_buffer", whole)
            velocity *= group["momentum"]
            velocity += scaled
            scaled = velocity
        value -= number(group["lr"]) * scaled


class Adagrad(Optimizer):
    """Adagrad (Duchi, Hazan and Singer 2011)."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        checked_rate(lr)
        refuse_differentiable(differentiable)
        checked(lr_decay >= 0.0, "lr_decay value", lr_decay)
        checked(weight_decay >= 0.0, "weight_decay value", weight_decay)
        checked(initial_accumulator_value >= 0.0, "initial_accumulator_value value", initial_accumulator_value)
        checked(eps >= 0.0, "epsilon value", eps)
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        for group in self.param_groups:
            for parameter in group["params"]:
                value = parameter._data
                start = complex(initial_accumulator_value, initial_accumulator_value)
                filled = np.full_like(value, start if value.dtype.kind == "c" else start.real)
                self.state[parameter] = {"step": wrapped(np.zeros((), np.float32)), "sum": wrapped(filled)}

    def update(self, value: Any, gradient: Any, state: dict[str, Any], group: Group) -> None:
        step = counted(state)
        if group["weight_decay"]:
            gradient = gradient + group["weight_decay"] * value
        rate = number(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        total = buffer(state, "sum", value)
        value, gradient = as_pairs(value), as_pairs(gradient)
        total += gradient * gradient
        value -= rate * gradient / (np.sqrt(total) + group["eps"])
