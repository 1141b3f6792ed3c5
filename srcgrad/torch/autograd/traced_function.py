"""A function of the user's own inside a transform of `torch.func`: its derivative is its backward, or else its jvp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.custom import custom_jvp, custom_vjp
from srcgrad.torch.errors import AutogradError
from srcgrad.torch.ruled import conjugate
from srcgrad.torch.tensor import Tensor, wrapped

SAVED = frozenset({"saved_tensors", "forward_saved"})
"""The attributes of a context that hold values of a trace."""


class TracedContext:
    """The context of a traced call: attributes are kept, saved tensors are values of the trace."""

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs
        self.saved_tensors: tuple[Any, ...] = ()
        self.forward_saved: tuple[Any, ...] = ()
        self.materialize_grads = True

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Forward mode is the transpose of backward, and needs this where there is no backward."""
        self.forward_saved = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """What has no gradient gives no cotangent that backward would use."""

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Changes in place are values like others in a trace."""

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize_grads = bool(value)


def apply_traced(cls: Any, args: Sequence[Any], positions: Sequence[int]) -> Any:
    """Call a `Function` on traced tensors.

    Raises:
        AutogradError: it has no ``setup_context``.
    """
    if not cls.separate():
        raise AutogradError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
            "override the setup_context staticmethod. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html",
            hint="split forward(ctx, ...) into forward(...) and setup_context(ctx, inputs, output)",
        )
    call = TracedCall(cls, args, positions)
    rule: Any
    if cls.only_pushes():
        rule = custom_jvp(call.plain)
        rule.defjvp(call.push)
    else:
        rule = custom_vjp(call.plain)
        rule.defvjp(call.forward, call.backward)
    found = rule(*[args[k]._data for k in positions])
    return tuple(map(wrapped, found)) if call.several else wrapped(found[0])


class TracedCall:
    """One call: its functions of arrays, as a custom rule takes them."""

    def __init__(self, cls: Any, args: Sequence[Any], positions: Sequence[int]) -> None:
        self.cls, self.args, self.positions = cls, list(args), positions
        self.several = False
        self.attributes: dict[str, Any] = {}
        self.kept: list[int | None] = []

    def run(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], TracedContext]:
        args = list(self.args)
        for k, array in zip(self.positions, arrays, strict=True):
            args[k] = wrapped(array)
        output = self.cls.forward(*args)
        self.several = isinstance(output, tuple)
        context = TracedContext(tuple(isinstance(x, Tensor) for x in args))
        self.cls.setup_context(context, tuple(args), output)
        outputs = output if isinstance(output, tuple) else (output,)
        return tuple(x._data for x in outputs), context

    def plain(self, *arrays: Any) -> Any:
        return self.run(arrays)[0]

    def forward(self, *arrays: Any) -> Any:
        found, context = self.run(arrays)
        saved = context.saved_tensors
        # What is no tensor stays here; the tensors are values that backward is given.
        self.attributes = {name: x for name, x in vars(context).items() if name not in SAVED}
        self.kept = [None if x is None else k for k, x in enumerate(saved)]
        return found, (tuple(x._data for x in saved if x is not None), found, arrays)

    def push(self, primals: Any, tangents: Any) -> Any:
        """The rule of a class that has ``jvp`` alone."""
        found, context = self.run(primals)
        context.saved_tensors = context.forward_saved
        given: list[Any] = [None] * len(self.args)
        for k, primal, tangent in zip(self.positions, primals, tangents, strict=True):
            given[k] = wrapped(tangent) if primal.dtype.kind in "fc" else None
        returned = self.cls.jvp(context, *given)
        pushed = returned if isinstance(returned, tuple) else (returned,)
        return found, tuple(np.zeros_like(y) if x is None else x._data for x, y in zip(pushed, found, strict=True))

    def backward(self, residuals: Any, cotangents: Any) -> Any:
        saved, found, arrays = residuals
        context = TracedContext(())
        vars(context).update(self.attributes)
        values = iter(saved)
        context.saved_tensors = tuple(None if k is None else wrapped(next(values)) for k in self.kept)
        given = [
            wrapped(conjugate(ct)) if x.dtype.kind in "fc" else wrapped(np.zeros(x.shape, x.dtype))
            for ct, x in zip(cotangents, found, strict=True)
        ]
        returned = self.cls.pull(context, given)
        returned = returned if isinstance(returned, tuple) else (returned,)
        gradients = [returned[k] for k in self.positions]
        return tuple(
            None
            if x.dtype.kind not in "fc"
            else np.zeros(x.shape, x.dtype)
            if gradient is None
            else conjugate(gradient._data).astype(x.dtype)
            for gradient, x in zip(gradients, arrays, strict=True)
        )
