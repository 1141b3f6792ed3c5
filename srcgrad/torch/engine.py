"""Backward: from cotangents of results to gradients of leaves, over the recorded graph."""

from __future__ import annotations

import heapq
import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, Final

import numpy as np

from srcgrad.torch import programs
from srcgrad.torch.dispatch import apply
from srcgrad.torch.errors import AutogradError, TensorError, TensorTypeError, TensorValueError
from srcgrad.torch.graph import AccumulateGrad, Edge, GraphNode, Node, moved_on, type_name
from srcgrad.torch.modes import MODE
from srcgrad.torch.operation import Op, silently
from srcgrad.torch.roots import Root, as_list, on_tensors, roots_of, target_edge
from srcgrad.torch.tensor import Tensor, wrapped


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """`torch.autograd.backward`: add the gradients of tensors to ``grad`` of their leaves; see `Tensor.backward`."""
    outputs = as_list(tensors)
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise AutogradError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please "
                "only use "
                "`grad_tensors`."
            )
        grad_tensors = grad_variables
    keep = create_graph if retain_graph is None else retain_graph
    only: list[Edge] | None = None
    if inputs is not None:
        targets = as_list(inputs)
        if not targets:
            raise AutogradError("`inputs` argument to `backward()` cannot be empty.")
        for target in targets:
            if isinstance(target, Tensor):
                target.retain_grad()
        only = [target_edge(target) for target in targets]
    roots = roots_of(outputs, grad_tensors, create_graph)
    if create_graph:
        warn_cycle()
    execute(roots, keep, create_graph, None, only)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """`torch.autograd.grad`: the gradients of the sum of outputs in the inputs.

    Args:
        outputs, inputs: tensors or sequences of them; the inputs must require grad.
        grad_outputs: cotangents of the outputs' shapes; 1 for scalars. With ``is_grads_batched``, with a leading axis
            that the gradients then have too.
        retain_graph, create_graph: as in `Tensor.backward`.
        allow_unused: inputs that the outputs do not depend on give None, and no error.
        materialize_grads: they give zeros.

    Raises:
        AutogradError: no inputs; an input that requires no grad, or is not used; a freed graph.

    >>> import srcgrad.torch as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.grad(x**2, x)
    (tensor(6.),)
    """
    output_list, targets = as_list(outputs), as_list(inputs)
    if not targets:
        raise AutogradError("`inputs` argument to `grad()` cannot be empty.")
    keep = create_graph if retain_graph is None else retain_graph
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other "
            "parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if materialize_grads and allow_unused is False:
        raise TensorValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False"
        )
    if is_grads_batched:
        given = [None] * len(output_list) if grad_outputs is None else as_list(grad_outputs)
        return batched_grad(output_list, targets, given, keep, create_graph, allow_unused, materialize_grads)
    roots = roots_of(output_list, grad_outputs, create_graph)
    found = execute(roots, keep, create_graph, [target_edge(target) for target in targets])
    results: list[Any] = []
    for k, (target, cotangent) in enumerate(zip(targets, found, strict=True)):
        if cotangent is not None:
            results.append(cotangent if isinstance(cotangent, Tensor) else wrapped(cotangent))
        elif materialize_grads:
            results.append(wrapped(np.zeros_like(target._data)))
        elif allow_unused:
            results.append(None)
        else:
            raise AutogradError(
                f"The differentiated Tensor at index {k} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
    return tuple(results)


def batched_grad(
    outputs: list[Tensor],
    inputs: list[Tensor],
    given: Sequence[Any],
    keep: bool,
    create_graph: bool,
    allow_unused: bool | None,
    materialize: bool,
) -> tuple[Any, ...]:
    """`grad` for each of a batch of cotangents, stacked."""
    for cotangent, output in zip(given, outputs, strict=False):
        if cotangent is None:
            continue
        if cotangent._data.shape[1:] != output._data.shape or not cotangent._data.ndim:
            raise TensorError(
                f"If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                f"dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[0] has a shape of {cotangent.shape} and "
                "output[0] has "
                f"a shape of {output.shape}. If you only want some tensors in `grad_output` to be considered batched, "
                "consider using vmap."
            )
    count = len(next(cotangent for cotangent in given if cotangent is not None)._data)
    rows = [
        grad(
            outputs,
            inputs,
            [None if cotangent is None else cotangent[k] for cotangent in given],
            retain_graph=keep or k + 1 < count,
            create_graph=create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize,
        )
        for k in range(count)
    ]
    from srcgrad.torch import stack

    return tuple(None if column[0] is None else stack(column) for column in zip(*rows, strict=True))


# --- the walk ---------------------------------------------------------------------------------------


def reachable(roots: Iterable[GraphNode]) -> list[GraphNode]:
    """All nodes below the roots."""
    found: list[GraphNode] = []
    seen: set[GraphNode] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        found.append(node)
        for edge in node.edges:
            if edge is not None:
                stack.append(edge[0])
    return found


def execute(
    roots: Sequence[Root],
    keep: bool,
    create: bool,
    targets: Sequence[Edge] | None,
    only: Sequence[Edge] | None = None,
) -> list[Any]:
    """Run the graph. Without targets, gradients are added to the leaves; else the targets' cotangents are returned.

    ``only``: the walk goes no further than to these.
    """
    nodes = reachable(node for node, _, _ in roots)
    ends = only if targets is None else targets
    if ends is not None:
        nodes = leading_to(nodes, {node for node, _ in ends})
    if not create and MODE.get().plain:
        found = programs.run(nodes, roots, keep, targets)
        if found is not None:
            if targets is None:
                for leaf, cotangent in found:
                    if takes_gradient(leaf):
                        accumulate(leaf, cotangent, False, fresh=True)
                return []
            return found  # type: ignore[no-any-return]
    walk = Walk(nodes, keep, create, targets)
    token = MODE.set(MODE.get()._replace(grad=create))
    run_token = RUNS.set(walk)
    try:
        return walk.run(roots)
    finally:
        RUNS.reset(run_token)
        MODE.reset(token)


def leading_to(nodes: list[GraphNode], targets: set[GraphNode]) -> list[GraphNode]:
    """The nodes from which a target can be reached, and the targets."""
    needed: set[GraphNode] = set()
    kept = []
    for node in sorted(nodes, key=oldest_first):
        if node in targets or any(edge is not None and edge[0] in needed for edge in node.edges):
            needed.add(node)
            kept.append(node)
    return kept


def oldest_first(node: GraphNode) -> float:
    return -1 if isinstance(node, AccumulateGrad) else node.number


NUMBERS: Final = itertools.count(1)


class Walk:
    """One run over the graph, node by node, in PyTorch's order: the node made last that is ready runs first."""

    def __init__(self, nodes: list[GraphNode], keep: bool, create: bool, targets: Sequence[Edge] | None) -> None:
        self.number = next(NUMBERS)
        """What no other run has had."""
        self.keep = keep
        self.create = create
        self.on_tensors = on_tensors(create)
        self.targets = targets
        self.wanted: dict[GraphNode, list[Edge]] = {}
        for edge in dict.fromkeys(targets or ()):
            self.wanted.setdefault(edge[0], []).append(edge)
        self.nodes = set(nodes)
        self.pending = dict.fromkeys(nodes, 0)
        for node in nodes:
            for below in node.edges:
                if below is not None and below[0] in self.pending:
                    self.pending[below[0]] += 1
        self.buffers: dict[GraphNode, dict[int, Any]] = {}
        self.found: dict[Edge, Any] = {}
        self.held: dict[int, Any] = {}
        """Arrays that others than the walk may hold, by identity: a leaf gets a copy of them as its gradient."""
        mode = MODE.get()
        self.anomaly, self.check_nan = mode.anomaly, mode.check_nan
        self.profilers = [watcher for watcher in mode.watchers if hasattr(watcher, "enter_node")]

    def run(self, roots: Sequence[Root]) -> list[Any]:
        for node, index, cotangent in roots:
            if node in self.nodes:
                self.hold(cotangent)
                self.put(node, index, cotangent)
        ready = [(-node.number, k, node) for k, node in enumerate(self.pending) if not self.pending[node]]
        heapq.heapify(ready)
        number = len(self.pending)
        while ready:
            node = heapq.heappop(ready)[2]
            outgoing = self.visit(node, self.buffers.pop(node, {}))
            for edge, cotangent in zip(node.edges, outgoing, strict=True):
                if edge is None or edge[0] not in self.nodes:
                    continue
                if cotangent is not None:
                    self.put(edge[0], edge[1], cotangent)
                self.pending[edge[0]] -= 1
                if not self.pending[edge[0]]:
                    number += 1
                    heapq.heappush(ready, (-edge[0].number, number, edge[0]))
        return [] if self.targets is None else [self.found.get(edge) for edge in self.targets]

    def put(self, node: GraphNode, index: int, cotangent: Any) -> None:
        buffer = self.buffers.setdefault(node, {})
        known = buffer.get(index)
        buffer[index] = cotangent if known is None else summed(known, cotangent)

    def hold(self, cotangent: Any) -> None:
        array = cotangent._data if isinstance(cotangent, Tensor) else cotangent
        self.held[id(array)] = array

    def visit(self, node: GraphNode, buffer: dict[int, Any]) -> Sequence[Any]:
        """One node, with the hooks of its results; cotangents per edge.

        A target that is run for the sake of others gives its cotangent before its hooks, one at the end of the walk
        after them: so does PyTorch.
        """
        wanted = self.wanted.get(node)
        if wanted is not None:
            runs_on = any(edge is not None and edge[0] in self.nodes for edge in node.edges)
            given = buffer if runs_on else self.hooked(node, buffer)
            for edge in wanted:
                self.found[edge] = given.get(edge[1])
                self.hold(given.get(edge[1]))
            if not runs_on:
                return [None] * len(node.edges)
        buffer = self.hooked(node, buffer)
        if node.pre_hooks:
            buffer = self.before(node, buffer)
        if not (self.anomaly or self.profilers):
            return self.step(node, buffer)
        return self.watched_step(node, buffer)

    def hooked(self, node: GraphNode, buffer: dict[int, Any]) -> dict[int, Any]:
        """The cotangents after the hooks on the node's results; retained gradients are those.

        Hooks of a result that has none are called with None.
        """
        if isinstance(node, AccumulateGrad):
            if node.variable._hooks:
                found = self.through(node.variable._hooks, buffer.get(0))
                return {} if found is None else {0: found}
            return buffer
        if node.result_hooks is not None:
            buffer = dict(buffer)
            for index, hooks in node.result_hooks.items():
                found = self.through(hooks, buffer.get(index))
                if found is not None:
                    buffer[index] = found
        if node.retained is not None:
            for index, reference in node.retained.items():
                tensor = reference()
                if tensor is not None and index in buffer:
                    accumulate(tensor, buffer[index], self.create)
        return buffer

    def as_tensor(self, cotangent: Any) -> Any:
        if cotangent is None or isinstance(cotangent, Tensor):
            return cotangent
        self.hold(cotangent)
        return wrapped(cotangent)

    def as_value(self, cotangent: Any) -> Any:
        if cotangent is None or self.on_tensors:
            return cotangent
        self.hold(cotangent)
        return cotangent._data

    def through(self, hooks: Any, cotangent: Any) -> Any:
        """A cotangent after hooks that may each replace it."""
        tensor = self.as_tensor(cotangent)
        for hook in list(hooks.values()):
            tensor = replaced(hook, hook(tensor), tensor)
        return self.as_value(tensor)

    def before(self, node: GraphNode, buffer: dict[int, Any]) -> dict[int, Any]:
        assert node.pre_hooks is not None
        given = tuple(self.as_tensor(buffer.get(k)) for k in range(hooked_count(node)))
        for hook in list(node.pre_hooks.values()):
            given = replaced_all(hook, hook(given), given)
        return {k: self.as_value(value) for k, value in enumerate(given) if value is not None}

    def watched_step(self, node: GraphNode, given: dict[int, Any]) -> Sequence[Any]:
        """A step whose errors name the forward line, and whose time is taken, where these are asked for."""
        from srcgrad.torch.autograd.anomaly_mode import RUNNING, check_results, describe_forward

        for profiler in self.profilers:
            profiler.enter_node(node)
        token = RUNNING.set(node if self.anomaly else None)
        outgoing: Sequence[Any] = ()
        try:
            outgoing = self.step(node, given)
            if self.anomaly and self.check_nan:
                check_results(node, outgoing)
            return outgoing
        except Exception:
            if self.anomaly:
                describe_forward(node)
            raise
        finally:
            RUNNING.reset(token)
            for profiler in reversed(self.profilers):
                profiler.leave_node(outgoing)

    def step(self, node: GraphNode, given: dict[int, Any]) -> Sequence[Any]:
        """Run one node; cotangents per edge."""
        if isinstance(node, AccumulateGrad):
            if 0 in given and self.targets is None and takes_gradient(node.variable):
                array = given[0]._data if isinstance(given[0], Tensor) else given[0]
                accumulate(node.variable, given[0], self.create, fresh=id(array) not in self.held)
            if node.post_hooks:
                self.after(node, (), [given.get(0)])
            return ()
        if not given and not node.runs_undefined:
            nothing: Sequence[Any] = [None] * len(node.edges)
            return self.after(node, nothing, [None] * result_count(node)) if node.post_hooks else nothing
        cotangents = [given.get(k) for k in range(result_count(node))]
        outgoing: Sequence[Any]
        if self.on_tensors:
            outgoing = node.run_recorded(cotangents)  # type: ignore[attr-defined]
        else:
            outgoing = node.run(cotangents)  # type: ignore[attr-defined]
            if len(outgoing) > 1:
                self.hold_shared(outgoing)
        if not self.keep:
            node.free()  # type: ignore[attr-defined]
        if node.post_hooks:
            outgoing = self.after(node, outgoing, cotangents)
        return outgoing

    def hold_shared(self, outgoing: Sequence[Any]) -> None:
        """Remember an array that is the cotangent of two operands."""
        for k, array in enumerate(outgoing):
            if array is not None and any(array is other for other in outgoing[:k]):
                self.hold(array)

    def after(self, node: GraphNode, outgoing: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
        assert node.post_hooks is not None
        inputs = tuple(
            None if edge is None or edge[0] not in self.nodes else self.as_tensor(cotangent)
            for edge, cotangent in zip(node.edges, outgoing, strict=True)
        )
        outputs = tuple(map(self.as_tensor, cotangents[: hooked_count(node)]))
        for hook in list(node.post_hooks.values()):
            inputs = replaced_all(hook, hook(inputs, outputs), inputs)
        return [self.as_value(value) for value in inputs]


def summed(known: Any, cotangent: Any) -> Any:
    """The sum of two cotangents; NumPy warns of nothing."""
    if isinstance(known, Tensor) or isinstance(cotangent, Tensor):
        return known + cotangent
    return silently(np.add, (known, cotangent), ())


RUNS: Final[ContextVar[Walk | None]] = ContextVar("srcgrad_torch_walk", default=None)
"""The walk in progress, the innermost of those that hooks have started."""


def result_count(node: GraphNode) -> int:
    if isinstance(node, AccumulateGrad):
        return 1
    count: int | None = getattr(node, "result_count", None)
    return len(node.signature.results) if count is None else count  # type: ignore[attr-defined]


def hooked_count(node: GraphNode) -> int:
    """How many cotangents the hooks of a node see: none for indices that come after the values."""
    if not isinstance(node, Node):
        return result_count(node)
    if node.signature.op.outputs is not None:
        return node.signature.op.outputs
    return max((k + 1 for k, type in enumerate(node.signature.results) if type.dtype.kind in "fc"), default=0)


def replaced(hook: Callable[..., Any], returned: Any, before: Any) -> Any:
    """What a hook's return value makes of a cotangent.

    Raises:
        TensorTypeError: it is no tensor. AutogradError: of another shape or dtype.
    """
    if returned is None:
        return before
    if not isinstance(returned, Tensor):
        raise TensorTypeError(f"expected Variable, but hook returned '{type(returned).__name__}'")
    if before is None:
        raise AutogradError("can't replace a None gradient with a non-None value")
    name = getattr(hook, "__name__", type(hook).__name__)
    if returned._data.dtype != before._data.dtype:
        raise AutogradError(
            f"hook '{name}' has changed the type of value (was {type_name(before._data.dtype)} got "
            f"{type_name(returned._data.dtype)})"
        )
    if returned._data.shape != before._data.shape:
        raise AutogradError(f"hook '{name}' has changed the size of value")
    return returned


def replaced_all(hook: Callable[..., Any], returned: Any, before: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same for a hook of a node, which returns one value per cotangent."""
    if returned is None:
        return before
    given = returned if isinstance(returned, tuple) else (returned,)
    if len(given) != len(before):
        name = getattr(hook, "__name__", type(hook).__name__)
        raise AutogradError(
            f"hook '{name}' has returned an incorrect number of values (got {len(given)}, but expected {len(before)})"
        )
    return tuple(replaced(hook, x, known) for x, known in zip(given, before, strict=True))


def copied(array: Any) -> Any:
    return array.copy()


COPY_GRADIENT: Final = Op("copy_", "CopyBackwards", copied, quiet=True)


def takes_gradient(leaf: Tensor) -> bool:
    """Whether a gradient that came to a leaf is added to its ``grad``: not if it was taken out of the graph since.

    Raises:
        AutogradError: it is a leaf no longer.
    """
    if leaf._node is not None or (leaf._base is not None and leaf.grad_fn is not None):
        raise AutogradError(
            "leaf variable has been moved into the graph interior",
            hint="it, or the memory it shows, was changed in place after it was used as a leaf; change a clone()",
        )
    return leaf._requires


def accumulate(tensor: Tensor, cotangent: Any, create: bool, fresh: bool = False) -> None:
    """Add a gradient to ``tensor.grad``; ``fresh``: nobody else holds it."""
    known = tensor._grad
    if cotangent.shape != tensor._data.shape:
        raise AutogradError(
            f"a gradient of shape {list(cotangent.shape)} came to a tensor whose shape is {list(tensor._data.shape)} "
            "now",
            hint="do not change the shape of a leaf in place between its use and backward()",
        )
    if create:
        given = cotangent if isinstance(cotangent, Tensor) else wrapped(cotangent)
        tensor._grad = apply(COPY_GRADIENT, (given,)) if known is None else known + given
    elif known is None:
        array = np.asarray(cotangent._data if isinstance(cotangent, Tensor) else cotangent)
        owned = fresh and array.base is None and array.flags.writeable
        tensor._grad = wrapped(array if owned else array.copy())
    else:
        value = cotangent._data if isinstance(cotangent, Tensor) else cotangent
        silently(np.add, (known._data, value), (known._data,))  # in its memory, and its place in a graph is kept
        moved_on(known._counter)
    if tensor._post_hooks:
        for hook in list(tensor._post_hooks.values()):
            returned = hook(tensor)
            if returned is not None:
                raise TensorTypeError(f"expected Variable, but hook returned '{type(returned).__name__}'")


WARNED: Final = [False]
"""Whether the warning about reference cycles was given: once is enough."""


def warn_cycle() -> None:
    if WARNED[0]:
        return
    WARNED[0] = True
    from srcgrad.boundary import user_stack_level

    warnings.warn(
        "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
        "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
        "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break "
        "the cycle and avoid the leak.",
        UserWarning,
        stacklevel=user_stack_level(),
    )
