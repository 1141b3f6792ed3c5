"""Operations with a derivative of the user's own: `Function`, its context, and `once_differentiable`.

The context of a call is the node of its results, as in PyTorch: what `Function.forward` leaves on it, ``backward``
finds there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from srcgrad.ir.types import ArrayType
from srcgrad.torch.autograd.saved import SavedTensor
from srcgrad.torch.autograd.traced_function import apply_traced
from srcgrad.torch.dispatch import rebase, refuse_leaf
from srcgrad.torch.errors import AutogradError, TensorError, TensorNotImplementedError, TensorTypeError
from srcgrad.torch.graph import FREED_MESSAGE, NUMBERS, Edge, GraphNode, moved_on
from srcgrad.torch.modes import MODE
from srcgrad.torch.tensor import Tensor, edge_of, wrapped


class FunctionCtx(GraphNode):
    """What `Function.forward` is given as ``ctx``: it carries values to ``backward``, and is the results' ``grad_fn``.

    Any attribute may be set on it.
    """

    forward_class: ClassVar[Any] = None
    runs_undefined = True

    def __init__(self, edges: Sequence[Edge | None], needs: tuple[bool, ...]) -> None:
        self.edges = edges
        self.number = next(NUMBERS)
        self.needs_input_grad = needs
        """Which of the inputs require grad."""
        self.positions: tuple[int, ...] = ()
        self.to_save: tuple[Any, ...] = ()
        self.forward_saved: tuple[Any, ...] | None = None
        self.dirty_tensors: tuple[Tensor, ...] = ()
        self.non_differentiable: tuple[Tensor, ...] = ()
        self.materialize_grads = True
        self.saved: list[SavedTensor] | None = []
        self.result_count = 0
        self.types: list[ArrayType | None] = []

    def name(self) -> str:
        return type(self).__name__

    def result_type(self, index: int) -> ArrayType | None:
        return self.types[index]

    # --- what forward calls ------------------------------------------------------------------------
    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for ``saved_tensors``: inputs, outputs or others; None stays None."""
        for k, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TensorTypeError(
                    f"save_for_backward can only save variables, but argument {k} is of type {type(tensor).__name__}",
                    hint="keep other values as attributes: ctx.exponent = 2",
                )
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for ``saved_tensors`` inside ``jvp``."""
        self.forward_saved = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs were changed in place; each must be returned."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient; ``backward`` is given zeros for them."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that nothing gave reach ``backward`` as zeros (the default) or as None."""
        self.materialize_grads = bool(value)

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was saved.

        Raises:
            AutogradError: it was freed by an earlier backward, or changed in place.
        """
        if self.forward_saved is not None:
            return self.forward_saved
        if self.saved is None:
            raise AutogradError(FREED_MESSAGE)
        return tuple([saved.tensor(self) for saved in self.saved])

    # --- what the engine calls ---------------------------------------------------------------------
    def free(self) -> None:
        if self.saved:
            self.saved = None

    def gradients(self, given: Sequence[Any]) -> list[Any]:
        """The arguments of ``backward``: tensors, or None."""
        found: list[Any] = []
        for cotangent, type_ in zip(given, self.types, strict=True):
            if cotangent is None and self.materialize_grads and type_ is not None:
                cotangent = np.zeros(type_.static_shape, type_.dtype)
            found.append(cotangent if cotangent is None or isinstance(cotangent, Tensor) else wrapped(cotangent))
        return found

    def run(self, given: Sequence[Any]) -> list[Any]:
        """Cotangents of the inputs that are tensors, as arrays."""
        return [None if x is None else x._data for x in self.run_recorded(given)]

    def run_recorded(self, given: Sequence[Any]) -> list[Any]:
        """The same as tensors; what they compute is recorded if the mode says so."""
        returned = type(self).forward_class.pull(self, self.gradients(given))
        returned = returned if isinstance(returned, tuple) else (returned,)
        count = len(self.needs_input_grad)
        while len(returned) > count and returned[-1] is None:
            returned = returned[:-1]
        if len(returned) != count:
            raise AutogradError(
                f"function {self.name()} returned an incorrect number of gradients (expected {count}, got "
                f"{len(returned)})",
                hint="return one gradient per argument of forward, None for what has none",
            )
        for k, gradient in enumerate(returned):
            if gradient is not None and k not in self.positions:
                raise AutogradError(
                    f"function {self.name()} returned a gradient different than None at position {k + 1}, but the "
                    "corresponding forward input was not a Variable",
                )
        return [
            None if edge is None else self.fitting(k, returned[position], edge)
            for k, (position, edge) in enumerate(zip(self.positions, self.edges, strict=True))
        ]

    def fitting(self, k: int, gradient: Any, edge: Edge) -> Any:
        """A gradient of the input's shape and dtype: summed over what was broadcast, and cast.

        Raises:
            AutogradError: its shape does not fit, or it is no tensor.
        """
        if gradient is None:
            return None
        if not isinstance(gradient, Tensor):
            raise AutogradError(f"expected Variable or None (got {type(gradient).__name__})")
        type_ = edge[0].result_type(edge[1])
        if type_ is None:
            return gradient
        shape = type_.static_shape
        if gradient._data.shape != shape:
            gradient = self.summed(k, gradient, shape)
        if gradient._data.dtype == type_.dtype:
            return gradient
        if gradient._data.dtype.kind == "c" and type_.dtype.kind == "f":
            gradient = gradient.real
        return gradient.to(wrapped(np.empty(0, type_.dtype)).dtype)

    def summed(self, k: int, gradient: Tensor, shape: tuple[int, ...]) -> Tensor:
        given = gradient._data.shape
        extra = len(given) - len(shape)
        padded = (1,) * extra + shape
        if extra < 0 or any(n not in (1, m) for n, m in zip(padded, given, strict=True)):
            raise AutogradError(
                f"Function {self.name()} returned an invalid gradient at index {k} - got {list(given)} but expected "
                f"shape compatible with {list(shape)}",
                hint="a gradient has the shape of its input",
            )
        axes = tuple(axis for axis, (n, m) in enumerate(zip(padded, given, strict=True)) if axis < extra or n != m)
        found: Tensor = gradient.sum(axes, keepdim=True).reshape(shape)
        return found


class FunctionMeta(type):
    """Gives each subclass of `Function` the class of its nodes."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        cls._backward_cls = type(
            f"{name}Backward", (FunctionCtx,), {"forward_class": cls, "__module__": cls.__module__}
        )


class Function(metaclass=FunctionMeta):
    """An operation with its own derivative. Subclass it, write static methods, and call ``apply``.

    ``forward(ctx, *args)`` computes (or ``forward(*args)`` and ``setup_context(ctx, inputs, output)``);
    ``backward(ctx, *grad_outputs)`` gives one gradient per argument, None where there is none; ``jvp(ctx, *tangents)``
    gives the outputs' tangents in forward mode.

    >>> import srcgrad.torch as torch
    >>> class Cube(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         x, = ctx.saved_tensors
    ...         return grad_output * 3 * x * x
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> y = Cube.apply(x)
    >>> y
    tensor(8., grad_fn=<CubeBackward>)
    >>> y.backward()
    >>> x.grad
    tensor(12.)
    """

    _backward_cls: ClassVar[type[FunctionCtx]]
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke "
            "them on the class itself. Instantiating an autograd function will raise an error in a future version of "
            "PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AutogradError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method.",
            hint=f"write @staticmethod above forward and backward, and {type(self).__name__}.apply(...)",
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The result: a tensor, or a tuple of them; to be overridden."""
        raise TensorNotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fill the context, where ``forward`` does not take it."""
        raise TensorNotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the inputs; to be overridden."""
        raise TensorNotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The outputs' tangents; to be overridden."""
        raise TensorNotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Refused: functions of the user's own are not mapped by a rule."""
        raise TensorNotImplementedError(
            "autograd.Function has no vmap rule here", hint="write it with torch operations"
        )

    @classmethod
    def pull(cls, ctx: FunctionCtx, gradients: Sequence[Any]) -> Any:
        """``backward`` (or ``vjp``) of these gradients."""
        own_backward, own_vjp = cls.backward is not Function.backward, cls.vjp is not Function.vjp
        if own_backward and own_vjp:
            raise AutogradError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement "
                "one of them."
            )
        return (cls.vjp if own_vjp else cls.backward)(ctx, *gradients)

    @classmethod
    def only_pushes(cls) -> bool:
        """Whether it has ``jvp``, and neither ``backward`` nor ``vjp``."""
        pulls = cls.backward is not Function.backward or cls.vjp is not Function.vjp
        return cls.jvp is not Function.jvp and not pulls

    @classmethod
    def separate(cls) -> bool:
        """Whether ``forward`` takes no context."""
        return cls.setup_context is not Function.setup_context

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Call ``forward`` and give its results their node."""
        positions = tuple(k for k, x in enumerate(args) if isinstance(x, Tensor))
        mode = MODE.get()
        needs = tuple(isinstance(x, Tensor) and x.requires_grad for x in args)
        if any(type(args[k]._data) is not np.ndarray for k in positions):
            return apply_traced(cls, args, positions)
        executable = mode.grad and any(needs)
        edges = [edge_of(args[k]) if executable and needs[k] else None for k in positions]
        ctx = cls._backward_cls(edges, needs)
        ctx.positions = positions
        # PyTorch runs forward without recording and without forward mode.
        watchers = tuple(watcher for watcher in mode.watchers if not getattr(watcher, "pushes", False))
        token = MODE.set(mode._replace(grad=False, watchers=watchers))
        try:
            if cls.separate():
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args)
        finally:
            MODE.reset(token)
        return finished(cls, ctx, args, output, executable)


class Place(NamedTuple):
    """An output before it has its node."""

    tensor: Tensor
    is_input: bool
    is_dirty: bool
    is_differentiable: bool


def finished(cls: Any, ctx: FunctionCtx, args: Sequence[Any], output: Any, executable: bool) -> Any:
    """The outputs of ``forward`` as the caller gets them."""
    single = not isinstance(output, tuple)
    outputs = (output,) if single else output
    inputs = {id(x) for x in args if isinstance(x, Tensor)}
    memory = {id(x._counter) for x in args if isinstance(x, Tensor)}
    dirty = {id(x) for x in ctx.dirty_tensors}
    constant = {id(x) for x in ctx.non_differentiable}
    if not dirty <= {id(x) for x in outputs}:
        raise AutogradError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function."
        )
    ctx.result_count = len(outputs)
    found: list[Any] = []
    for index, x in enumerate(outputs):
        if not isinstance(x, Tensor):
            ctx.types.append(None)
            found.append(x)
            continue
        ctx.types.append(ArrayType(x._data.dtype, x._data.shape))
        differentiable = executable and id(x) not in constant and x._data.dtype.kind in "fc"
        place = Place(x, id(x) in inputs, id(x) in dirty, differentiable)
        found.append(placed_output(ctx, index, place, shares=id(x._counter) in memory))
    if executable:
        save(ctx, args, outputs)
        if MODE.get().anomaly:
            remember_forward(ctx)
    else:
        ctx.saved = [SavedTensor.plain(x) for x in ctx.to_save]
    push(cls, ctx, args, found)
    ctx.to_save = ctx.dirty_tensors = ctx.non_differentiable = ()
    ctx.forward_saved = None
    return found[0] if single else tuple(found)


def remember_forward(ctx: FunctionCtx) -> None:
    from srcgrad.torch.autograd.anomaly_mode import forward_trace

    ctx.forward_stack = forward_trace()


def placed_output(ctx: FunctionCtx, index: int, place: Place, shares: bool) -> Tensor:
    """An output of ``forward`` with its place in the graph."""
    x = place.tensor
    if not place.is_differentiable:
        if place.is_input and not place.is_dirty:
            return x.detach()
        if x._node is not None or x._requires:
            x._node, x._output, x._requires = None, 0, False
        return x
    if place.is_dirty:
        if x._node is None and x._requires:
            raise AutogradError("a leaf Variable that requires grad has been used in an in-place operation.")
        refuse_leaf(x)
        moved_on(x._counter)
        x._node, x._output = ctx, index
        rebase(x)
        return x
    if place.is_input or shares:
        x = x.detach()
        x._custom_view = f"Output {index} of {ctx.name().removesuffix('Backward')}"
    x._node, x._output, x._requires = ctx, index, False
    return x


def save(ctx: FunctionCtx, args: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Keep what `FunctionCtx.save_for_backward` named. An output is kept by its number, so that nothing holds "
    "itself."""
    numbers = {id(x): k for k, x in enumerate(outputs) if isinstance(x, Tensor)}
    for x in args:
        numbers.pop(id(x), None)
    dirty = {id(x): k for k, x in enumerate(outputs) if any(x is changed for changed in ctx.dirty_tensors)}
    ctx.saved = [
        SavedTensor.plain(None) if x is None else SavedTensor.of(x, ctx, numbers.get(id(x), dirty.get(id(x))))
        for x in ctx.to_save
    ]


def push(cls: Any, ctx: FunctionCtx, args: Sequence[Any], found: Sequence[Any]) -> None:
    """Forward mode: the outputs' tangents from ``jvp``, where an input has one."""
    from srcgrad.torch.autograd.forward_ad import level_of, tangent_of

    level = level_of()
    if level < 0 or all(tangent_of(x, level) is None for x in args if isinstance(x, Tensor)):
        return
    tangents = [tangent_of(x, level) if isinstance(x, Tensor) else None for x in args]
    watchers = tuple(watcher for watcher in MODE.get().watchers if not getattr(watcher, "pushes", False))
    token = MODE.set(MODE.get()._replace(watchers=watchers))
    try:
        pushed = cls.jvp(ctx, *tangents)
    finally:
        MODE.reset(token)
    pushed = pushed if isinstance(pushed, tuple) else (pushed,)
    if len(pushed) != len(found):
        raise AutogradError(
            f"{cls.__name__}.jvp returned {len(pushed)} tangents for {len(found)} outputs",
            hint="return one tangent per output, None where there is none",
        )
    for x, tangent in zip(found, pushed, strict=True):
        if tangent is not None and isinstance(x, Tensor):
            if tangent._data.shape != x._data.shape:
                raise TensorError(
                    f"Expected forward gradient of shape {list(x._data.shape)} from {cls.__name__}.jvp, got "
                    f"{list(tangent._data.shape)}"
                )
            x._tangent, x._level = tangent, level


class Error(FunctionCtx):
    """Stands where a gradient that is not to be differentiated again was made."""

    def name(self) -> str:
        return "torch::autograd::Error"

    def run_recorded(self, given: Sequence[Any]) -> NoReturn:
        raise AutogradError(
            "trying to differentiate twice a function that was marked with @once_differentiable",
            hint="take the decorator away, if backward is written with torch operations",
        )


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator for ``backward``: what it computes is not recorded, and differentiating it again is an error."""

    @wraps(backward)
    def wrapper(ctx: Any, *gradients: Any) -> Any:
        mode = MODE.get()
        token = MODE.set(mode._replace(grad=False))
        try:
            returned = backward(ctx, *gradients)
        finally:
            MODE.reset(token)
        requiring = [x for x in gradients if isinstance(x, Tensor) and x.requires_grad]
        if not mode.grad or not requiring:
            return returned
        outputs = returned if isinstance(returned, tuple) else (returned,)
        node = Error([edge_of(x) for x in requiring], (True,) * len(requiring))
        node.result_count = len(outputs)
        node.types = [None if x is None else ArrayType(x._data.dtype, x._data.shape) for x in outputs]
        marked = []
        for index, x in enumerate(outputs):
            found = x.detach() if isinstance(x, Tensor) else x
            if found is not None:
                found._node, found._output = node, index
            marked.append(found)
        return tuple(marked) if isinstance(returned, tuple) else marked[0]

    return wrapper
