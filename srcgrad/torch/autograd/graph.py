"""Looking into the graph, and what happens to the tensors it saves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Literal, NamedTuple

from srcgrad.torch.errors import AutogradError, TensorValueError
from srcgrad.torch.graph import AccumulateGrad, GraphNode, RemovableHandle, moved_on
from srcgrad.torch.modes import MODE
from srcgrad.torch.tensor import Tensor, edge_of

__all__ = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]

Node = GraphNode
DISABLED: Final[ContextVar[str | None]] = ContextVar("srcgrad_torch_no_saved_hooks", default=None)


class GradientEdge(NamedTuple):
    """A place in the graph, which `backward` and `grad` take in place of a tensor."""

    node: GraphNode
    output_nr: int
    ownership_token: GraphNode | None = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge that a tensor's gradient comes along.

    Raises:
        AutogradError: it requires no grad.
    """
    edge = edge_of(tensor) if tensor.requires_grad else None
    if edge is None:
        raise AutogradError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(edge[0], edge[1], edge[0] if isinstance(edge[0], AccumulateGrad) else None)


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Count an in-place change that was made behind autograd's back."""
    for x in (tensor,) if isinstance(tensor, Tensor) else tensor:
        moved_on(x._counter)


class saved_tensors_hooks:
    """A ``with`` block in which ``pack_hook(tensor)`` says what the graph keeps of each tensor it saves, and
    ``unpack_hook(kept)`` gives the tensor back when backward needs it.

    >>> import srcgrad.torch as torch
    >>> x = torch.tensor([2.0], requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda kept: torch.tensor(kept)):
    ...     y = x.exp()
    >>> torch.autograd.grad(y, x)
    (tensor([7.3891]),)
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        message = DISABLED.get()
        if message is not None:
            raise AutogradError(message)
        mode = MODE.get()
        MODE.set(mode._replace(saved_hooks=(*mode.saved_hooks, (self.pack_hook, self.unpack_hook))))

    def __exit__(self, *error: object) -> None:
        mode = MODE.get()
        MODE.set(mode._replace(saved_hooks=mode.saved_hooks[:-1]))


class save_on_cpu(saved_tensors_hooks):
    """Where tensors of a GPU are saved on the CPU; here they are on the CPU already, and nothing changes."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda tensor: tensor, lambda kept: kept)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """A block in which `saved_tensors_hooks` raises an error of this message.

    Raises:
        AutogradError: hooks are in place already.
    """
    if MODE.get().saved_hooks:
        raise AutogradError(error_message)
    token = DISABLED.set(error_message)
    try:
        yield
    finally:
        DISABLED.reset(token)


class MultiHandle:
    """Takes several hooks away at once."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> MultiHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: Literal["all", "any"] = "all"
) -> MultiHandle:
    """Call ``fn`` when gradients of tensors are known: of all of them, with the sequence (None where there is none), or
    of the first of them, with it.
    """
    if mode not in ("all", "any"):
        raise TensorValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        return MultiHandle(tuple(x.register_hook(first_of_a_run(fn)) for x in tensors))
    return MultiHandle(hooks_of_all(tensors, fn))


def first_of_a_run(fn: Callable[..., None]) -> Callable[[Tensor], None]:
    ran: set[int] = set()

    def hook(gradient: Tensor) -> None:
        number = current_run()
        if number not in ran:
            ran.clear()
            ran.add(number)
            fn(gradient)

    return hook


def hooks_of_all(tensors: Sequence[Tensor], fn: Callable[..., None]) -> tuple[RemovableHandle, ...]:
    buffers: dict[int, list[Any]] = defaultdict(lambda: [None] * len(tensors))
    waiting: dict[int, int] = {}
    edges = [get_gradient_edge(x) for x in tensors]

    def hook_of(k: int) -> Callable[[Tensor], None]:
        def hook(gradient: Tensor) -> None:
            number = current_run()
            if number not in waiting:
                waiting[number] = sum(will_run(edge.node) for edge in edges)
            buffers[number][k] = gradient
            waiting[number] -= 1
            if not waiting[number]:
                del waiting[number]
                fn(buffers.pop(number))

        return hook

    return tuple(x.register_hook(hook_of(k)) for k, x in enumerate(tensors))


def current_run() -> int:
    from srcgrad.torch.engine import RUNS

    walk = RUNS.get()
    return 0 if walk is None else walk.number


def will_run(node: GraphNode) -> bool:
    from srcgrad.torch.engine import RUNS

    walk = RUNS.get()
    return walk is not None and node in walk.nodes
