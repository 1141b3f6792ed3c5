"""Trading time for memory: what a part of the forward pass computes is not kept, and computed again in backward."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from typing import Any

from srcgrad.torch.autograd.function import Function
from srcgrad.torch.autograd.graph import saved_tensors_hooks
from srcgrad.torch.engine import RUNS, backward
from srcgrad.torch.errors import AutogradError, TensorValueError
from srcgrad.torch.modes import MODE, enable_grad, no_grad
from srcgrad.torch.tensor import Tensor

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential"]


class CheckpointError(AutogradError):
    """The second run of a checkpointed function did not save what the first did."""


class Stop(Exception):
    """Ends a second run that has saved all that is needed."""


class KeptState:
    """The state of the random numbers where a function first ran."""

    def __init__(self, preserve: bool) -> None:
        from srcgrad.torch import get_rng_state

        self.state = get_rng_state() if preserve else None

    def __enter__(self) -> None:
        from srcgrad.torch import get_rng_state, set_rng_state

        if self.state is not None:
            self.now = get_rng_state()
            set_rng_state(self.state)

    def __exit__(self, *error: object) -> None:
        from srcgrad.torch import set_rng_state

        if self.state is not None:
            set_rng_state(self.now)


class CheckpointFunction(Function):
    """The reentrant form: a function of the user's own whose backward runs forward and backward of the part."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], state: KeptState, *args: Any) -> Any:
        ctx.function, ctx.state = function, state
        ctx.places = [k for k, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.others = [None if isinstance(x, Tensor) else x for x in args]
        ctx.save_for_backward(*[args[k] for k in ctx.places])
        with no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        walk = RUNS.get()
        if walk is not None and walk.targets is not None:
            raise AutogradError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        args = list(ctx.others)
        for k, saved in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[k] = saved.detach()
            args[k].requires_grad_(saved.requires_grad)
        with enable_grad(), ctx.state:
            outputs = ctx.function(*args)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [
            (output, gradient)
            for output, gradient in zip(outputs, gradients, strict=True)
            if isinstance(output, Tensor) and output.requires_grad
        ]
        if not pairs:
            raise AutogradError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([output for output, _ in pairs], [gradient for _, gradient in pairs])
        return (None, None, *(x.grad if isinstance(x, Tensor) and x.requires_grad else None for x in args))


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] | None = None,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Run a function without keeping what its backward needs; backward runs it again.

    Args:
        function: a function of the arguments. It must do the same in both runs.
        use_reentrant: True for the older form: a backward inside the backward, which takes no keywords, no
            `autograd.grad`, and needs an argument that requires grad. Pass False.
        context_fn: gives two context managers, for the first and the second run.
        determinism_check: ``"default"`` compares shapes and dtypes of what the two runs save, ``"none"`` nothing.
        early_stop: the second run ends as soon as it has saved what is needed. debug: accepted.
        preserve_rng_state: random numbers are the same in both runs; True by default.

    Raises:
        TensorValueError: unknown keywords with ``use_reentrant=True``. CheckpointError (in backward): the runs differ.

    >>> import srcgrad.torch as torch
    >>> from srcgrad.torch.utils.checkpoint import checkpoint
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> y = checkpoint(lambda x: x.exp() * x, x, use_reentrant=False)
    >>> torch.autograd.grad(y, x)
    (tensor(22.1672),)
    """
    if use_reentrant is None:
        from srcgrad.boundary import user_stack_level

        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, "
            "calling checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but "
            "if you need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for "
            "more details on the differences between the two variants.",
            UserWarning,
            stacklevel=user_stack_level(),
        )
        use_reentrant = True
    preserve = bool(kwargs.pop("preserve_rng_state", True))
    if kwargs and use_reentrant:
        raise TensorValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant:
        if context_fn is not None or debug:
            raise TensorValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        if MODE.get().grad and not any(isinstance(x, Tensor) and x.requires_grad for x in args):
            warnings.warn(
                "None of the inputs have requires_grad=True. Gradients will be None", UserWarning, stacklevel=2
            )
        return CheckpointFunction.apply(function, KeptState(preserve), *args)
    if determinism_check not in ("default", "none"):
        raise TensorValueError(f"determinism_check should be one of 'default', 'none', but got {determinism_check}")
    first, second = context_fn() if context_fn is not None else (None, None)
    frame = Frame(function, args, kwargs, KeptState(preserve), second, determinism_check == "default", early_stop)
    if not MODE.get().grad:
        return function(*args, **kwargs)
    with saved_tensors_hooks(frame.pack, frame.unpack):
        if first is None:
            return function(*args, **kwargs)
        with first:
            return function(*args, **kwargs)


class Frame:
    """One checkpointed call: what it saves is replaced by numbers, and found again by a second run.

    The second run's values are kept until each was asked for once; backward with ``retain_graph`` runs it again.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        state: KeptState,
        context: Any,
        checks: bool,
        early: bool,
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.state, self.context, self.checks, self.early = state, context, checks, early
        self.described: list[tuple[Any, Any]] = []
        self.known: dict[int, Tensor] = {}

    def pack(self, tensor: Tensor) -> int:
        self.described.append((tensor.dtype, tuple(tensor.shape)))
        return len(self.described) - 1

    def unpack(self, number: int) -> Tensor:
        if number not in self.known:
            self.run_again()
        return self.known.pop(number)

    def run_again(self) -> None:
        """Fill ``known``.

        Raises:
            CheckpointError: the run saves something else than the first.
        """
        found: list[Tensor] = []

        def keep(tensor: Tensor) -> int:
            if len(found) < len(self.described) and self.checks:
                self.compare(len(found), tensor)
            found.append(tensor.detach())
            if self.early and len(found) == len(self.described):
                raise Stop
            return len(found) - 1

        args = [x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in self.args]
        context = nullcontext() if self.context is None else self.context
        with suppress(Stop), enable_grad(), self.state, saved_tensors_hooks(keep, found.__getitem__), context:
            self.function(*args, **self.kwargs)
        if len(found) != len(self.described):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.described)}\nNumber of tensors "
                "saved "
                f"during recomputation: {len(found)}.",
                hint="the function must do the same in both runs",
            )
        self.known = dict(enumerate(found))

    def compare(self, number: int, tensor: Tensor) -> None:
        again = (tensor.dtype, tuple(tensor.shape))
        if again != self.described[number]:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                "during "
                f"the forward pass.\ntensor at position {number}:\nsaved metadata: "
                f"{self.described[number]}\nrecomputed "
                f"metadata: {again}",
                hint="the function must do the same in both runs",
            )


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run a chain of functions (or a Sequential) in segments, of which all but the last are checkpointed.

    ``preserve_rng_state`` is `checkpoint`'s.
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise TensorValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant is None:
        from srcgrad.boundary import user_stack_level

        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly.",
            UserWarning,
            stacklevel=user_stack_level(),
        )
        use_reentrant = True
    children = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 0 < segments <= len(children):
        raise TensorValueError(f"segments must be between 1 and {len(children)}, not {segments}")
    size = len(children) // segments
    start = 0
    for _ in range(segments - 1):
        input = checkpoint(
            chained(children[start : start + size]),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
        start += size
    return chained(children[start:])(input)


def chained(functions: Sequence[Callable[..., Any]]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for function in functions:
            x = function(x)
        return x

    return run
