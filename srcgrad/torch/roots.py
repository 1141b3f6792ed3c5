"""Where a walk over the graph starts and ends: outputs with their cotangents, and what gradients are asked of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.torch.errors import AutogradError, TensorError, TensorTypeError
from srcgrad.torch.graph import Edge, GraphNode
from srcgrad.torch.modes import MODE
from srcgrad.torch.tensor import Tensor, edge_of, wrapped

Root = tuple[GraphNode, int, Any]
"""A node, one of its results, and that result's cotangent (an array, or a tensor where the graph is wanted)."""


def as_list(x: Any) -> list[Any]:
    return [x] if isinstance(x, Tensor) or x is None or hasattr(x, "output_nr") else list(x)


def target_edge(target: Any) -> Edge:
    """The edge of a tensor (or of a GradientEdge) that gradients are asked for.

    Raises:
        AutogradError: it requires no grad.
    """
    if not isinstance(target, Tensor):
        return target[0], target[1]
    if not target.requires_grad:
        raise AutogradError(
            "One of the differentiated Tensors does not require grad", hint="make it with requires_grad=True"
        )
    edge = edge_of(target)
    assert edge is not None
    return edge


def roots_of(outputs: Sequence[Any], cotangents: Any, create_graph: bool) -> list[Root]:
    """The roots of a walk.

    Raises:
        AutogradError: fewer cotangents than outputs, and what `root_of` raises.
    """
    given = [None] * len(outputs) if cotangents is None else as_list(cotangents)
    if len(given) < len(outputs):
        raise AutogradError(f"got {len(outputs)} tensors and {len(given)} gradients")
    return [root_of(k, output, cotangent, create_graph) for k, (output, cotangent) in enumerate(zip(outputs, given))]  # noqa: B905  what is too much is ignored


def root_of(number: int, output: Any, cotangent: Any, create_graph: bool) -> Root:
    """A root of the walk.

    Raises:
        AutogradError: the output has no graph, or no cotangent where it is no scalar, or one of another shape.
    """
    if isinstance(output, Tensor):
        edge = edge_of(output)
        shape, dtype = output._data.shape, output._data.dtype
    else:
        edge = output[0], output[1]
        type_ = edge[0].result_type(edge[1])
        assert type_ is not None
        shape, dtype = type_.static_shape, type_.dtype
    if edge is None:
        if cotangent is None and output._data.size != 1 and output.requires_grad:
            raise AutogradError("grad can be implicitly created only for scalar outputs")
        raise AutogradError(
            f"element {number} of tensors does not require grad and does not have a grad_fn",
            hint="make an input with requires_grad=True, and compute the output from it outside no_grad()",
        )
    if cotangent is None:
        if np.prod(shape, dtype=int) != 1:
            raise AutogradError(
                "grad can be implicitly created only for scalar outputs",
                hint="call .sum().backward(), or give gradient=, of the output's shape",
            )
        if dtype.kind == "c":
            raise AutogradError(
                "grad can be implicitly created only for real scalar outputs but got "
                f"{wrapped(np.empty(0, dtype)).dtype}"
            )
        cotangent = wrapped(np.ones(shape, dtype))
    elif not isinstance(cotangent, Tensor):
        raise TensorTypeError(
            f"gradients can be either Tensors or None, but got {type(cotangent).__name__}", hint="torch.tensor(...)"
        )
    elif cotangent._data.shape != shape:
        raise TensorError(
            f"Mismatch in shape: grad_output[{number}] has a shape of {cotangent.shape} and output[{number}] has a "
            "shape "
            f"of torch.Size({list(shape)})."
        )
    if cotangent._data.dtype != dtype:
        if (cotangent._data.dtype.kind == "c") != (dtype.kind == "c"):
            raise TensorError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                f"dtype: grad_output[{number}] has a dtype of {cotangent.dtype} and output[{number}] has a dtype of "
                f"{wrapped(np.empty(0, dtype)).dtype}."
            )
        cotangent = cotangent.to(wrapped(np.empty(0, dtype)).dtype)
    return edge[0], edge[1], cotangent if on_tensors(create_graph) else cotangent._data


def on_tensors(create_graph: bool) -> bool:
    """Whether backward computes with tensors: to be recorded, or to carry tangents."""
    return create_graph or any(getattr(watcher, "pushes", False) for watcher in MODE.get().watchers)
