"""The hooks of a module's call: before and after forward, and on the gradients that pass through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from srcgrad.torch.autograd.function import Function
from srcgrad.torch.errors import TensorError
from srcgrad.torch.graph import Hooks, RemovableHandle
from srcgrad.torch.modes import MODE
from srcgrad.torch.tensor import Tensor

if TYPE_CHECKING:
    from srcgrad.torch.nn.module import Module


def registered(hooks: Hooks, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    """Add a hook, after the others or before them."""
    handle = RemovableHandle(hooks, hook)
    if prepend:
        others = [(key, value) for key, value in hooks.items() if key != handle.key]
        for key, value in others:
            del hooks[key]
            hooks[key] = value
    return handle


class BackwardHookFunction(Function):
    """The identity: its node stands at the border of a module, for the hooks on gradients."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.set_materialize_grads(False)
        return args

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return grad_outputs


class Border:
    """The borders of one call of a module: what enters and what leaves, with the hooks on their gradients."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.hooks = list(module._backward_hooks.values())
        self.pre_hooks = list(module._backward_pre_hooks.values())
        self.count = 0
        self.entered: list[int] | None = None
        self.left: list[int] = []
        self.size = 0
        self.grad_outputs: tuple[Any, ...] | None = None

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, those that require grad with a node of this border."""
        self.count = len(args)
        places = requiring(args)
        if not places or not self.hooks:
            return args
        self.entered = places
        passed, node = through(args, places)
        node.register_hook(self.at_inputs)
        return passed

    def leave(self, result: Any) -> Any:
        """The result, likewise."""
        results = result if isinstance(result, tuple) else (result,)
        places = requiring(results)
        if not places:
            return result
        self.left, self.size = places, len(results)
        passed, node = through(results, places)
        node.register_prehook(self.at_outputs)
        return passed if isinstance(result, tuple) else passed[0]

    def at_outputs(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the results have come."""
        found = spread(gradients, self.left, self.size)
        for hook in self.pre_hooks:
            replaced = hook(self.module, found)
            if replaced is not None:
                found = as_many(replaced, found, "Backward pre hook", "grad_output")
        self.grad_outputs = found
        if self.entered is None:
            for hook in self.hooks:
                if hook(self.module, (None,) * self.count, found) is not None:
                    raise TensorError(
                        "Backward hook for Modules where no input requires gradient should always return None or None "
                        "for all gradients."
                    )
        return tuple(found[k] for k in self.left)

    def at_inputs(self, gradients: tuple[Any, ...], _: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the arguments are known."""
        assert self.entered is not None
        found = spread(gradients, self.entered, self.count)
        for hook in self.hooks:
            replaced = hook(self.module, found, self.grad_outputs)
            if replaced is not None:
                found = as_many(replaced, found, "Backward hook", "grad_input")
        return tuple(found[k] for k in self.entered)


def requiring(values: Sequence[Any]) -> list[int]:
    """Which of the values are tensors whose gradients are recorded."""
    if not MODE.get().grad:
        return []
    return [k for k, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad]


def through(values: tuple[Any, ...], places: list[int]) -> tuple[tuple[Any, ...], Any]:
    """The values, those at the places through the identity; and its node."""
    passed = BackwardHookFunction.apply(*[values[k] for k in places])
    found = list(values)
    for k, value in zip(places, passed, strict=True):
        found[k] = value
    return tuple(found), passed[0].grad_fn


def spread(gradients: Sequence[Any], places: list[int], count: int) -> tuple[Any, ...]:
    """One gradient per value: None for those that are not at the places."""
    found = [None] * count
    for k, gradient in zip(places, gradients, strict=False):
        found[k] = gradient
    return tuple(found)


def as_many(replaced: Any, found: tuple[Any, ...], which: str, name: str) -> tuple[Any, ...]:
    given = replaced if isinstance(replaced, tuple) else (replaced,)
    if len(given) != len(found):
        raise TensorError(f"{which} returned an invalid number of {name}, got {len(given)}, but expected {len(found)}")
    return given
