"""Running an operation: NumPy computes it, and its result owns a node if an operand requires grad."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from srcgrad.ir.source import user_span
from srcgrad.torch.errors import AutogradError, TensorError
from srcgrad.torch.graph import Edge, Node, SavedValue, moved_on, node_class, packed_value
from srcgrad.torch.messages import explained
from srcgrad.torch.modes import MODE
from srcgrad.torch.operation import SIGNATURES, Op, Signature, remembered, signature, silently
from srcgrad.torch.tensor import Tensor, edge_of, wrapped
from srcgrad.torch.writing import (
    IDEMPOTENT,
    INFERENCE,
    MULTIPLE,
    UNRECORDED,
    check_fits,
    check_overlap,
    refuse_creation,
    refuse_inference,
)
from srcgrad.torch.writing import (
    named as named,
)
from srcgrad.torch.writing import (
    refuse_leaf as refuse_leaf,
)
from srcgrad.tracing.function import inline_function
from srcgrad.tracing.tracer import as_tracer

View = tuple[Op, tuple[Any, ...], int | None]
"""A view: its operation, the statics, and which of its results if it has several."""


def apply(op: Op, operands: Sequence[Tensor], statics: tuple[Any, ...] = (), dtype: Any = None) -> Any:
    """The operation's result, or the tuple of its results, recorded if an operand requires grad.

    Args:
        operands: tensors; ``dtype``, if given, is what they are cast to first.
        statics: hashable arguments that are no tensors.
    """
    mode = MODE.get()
    if mode.watchers:
        return mode.watchers[-1].intercept(op, operands, statics, dtype)
    out = compute(op, operands, statics, dtype)
    if type(out) is tuple:
        results = tuple([wrapped(x) for x in out])
        if mode.grad and op.node is not None and any(x.requires_grad for x in operands):
            record(op, operands, statics, dtype, results)
        if mode.inference:
            for result in results:
                result._inference = True
        return results
    result = wrapped(out)
    if mode.grad and op.node is not None:
        for operand in operands:
            if operand._node is not None or operand._requires or (operand._base is not None and operand.requires_grad):
                record(op, operands, statics, dtype, (result,))
                break
    if mode.inference:
        result._inference = True
    return result


def compute(op: Op, operands: Sequence[Tensor], statics: tuple[Any, ...], dtype: Any) -> Any:
    """What the operation's function gives for the operands' arrays."""
    arrays = [operand._data for operand in operands]
    if dtype is not None:
        arrays = [array if array.dtype == dtype else silently(cast, (array,), (dtype,)) for array in arrays]
    try:
        if op.quiet:
            return op.function(*arrays, *statics)
        return silently(op.function, arrays, statics)
    except (ValueError, TypeError, IndexError) as error:
        if isinstance(error, TensorError):
            raise
        raise explained(op, operands, error) from None


def cast(array: Any, dtype: Any) -> Any:
    return array.astype(dtype)


def edges_of(operands: Sequence[Tensor], values: Sequence[Any]) -> tuple[list[Edge | None], tuple[bool, ...]]:
    """Where the gradients of the operands go, and whether they go anywhere."""
    edges = [
        edge_of(operand) if value.dtype.kind in "fc" else None for operand, value in zip(operands, values, strict=True)
    ]
    if len(operands) == 1 and edges[0] is None:
        return edges, (is_aside(operands[0]),)
    return edges, tuple([edge is not None for edge in edges])


def is_aside(tensor: Tensor) -> bool:
    """Whether the tensor requires grad, as its base does, but takes none: a view made in no_grad.

    An operation on it alone saves what its derivative would read all the same, as in PyTorch.
    """
    return tensor._base is not None and tensor._data.dtype.kind in "fc" and tensor.requires_grad


def record(
    op: Op,
    operands: Sequence[Tensor],
    statics: tuple[Any, ...],
    dtype: Any,
    results: Sequence[Tensor],
    arrays: Sequence[Any] | None = None,
) -> Node | None:
    """Give the results a node. ``arrays``: the operands' values, where they are no longer what the tensors hold."""
    values = [operand._data for operand in operands] if arrays is None else arrays
    first = results[0]._data
    if type(first) is not np.ndarray:
        return None
    if first.dtype.kind not in "fc" and not any(result._data.dtype.kind in "fc" for result in results):
        return None
    key: list[Any] = [op, statics, dtype]
    edges: list[Edge | None] = []
    for k, operand in enumerate(operands):
        value = values[k]
        kind = value.dtype
        edge = edge_of(operand) if kind.kind in "fc" else None
        edges.append(edge)
        key += (kind, value.shape, edge is not None)
    if edges[0] is None and len(edges) == 1:
        key[-1] = is_aside(operands[0])
    if statics:
        key.extend(map(type, statics))
    found = SIGNATURES.get(tuple(key))
    if found is None:
        found = remembered(tuple(key), values)
    saved = []
    for k in found.saved_inputs:
        operand, value = operands[k], values[k]
        if operand._inference:
            refuse_saved_inference(operands, found)
        saved.append(SavedValue(value, operand._counter if value is operand._data else [0]))
    return attached(found, edges, saved, operands, results)


def attached(
    found: Signature,
    edges: Sequence[Edge | None],
    saved: list[SavedValue],
    operands: Sequence[Tensor],
    results: Sequence[Tensor],
) -> Node:
    """A node with these edges and saved operands, and the results as its own."""
    kind = found.node_class
    if kind is None:
        kind = found.node_class = node_class(str(found.op.node))
    node: Node = kind(found, edges)
    for index, result in enumerate(results):
        if result._data.dtype.kind in "fc":
            result._node = node
            result._output = index
    for k in found.saved_results:
        saved.append(SavedValue(results[k]._data, results[k]._counter))
    node.saved = saved
    mode = MODE.get()
    if mode.saved_hooks:
        pack(node, operands, results)
    if mode.anomaly:
        from srcgrad.torch.autograd.anomaly_mode import forward_trace

        node.span = user_span()
        node.forward_stack = forward_trace()
    return node


def refuse_saved_inference(operands: Sequence[Tensor], found: Signature) -> None:
    for k in found.saved_inputs:
        if operands[k]._inference:
            raise AutogradError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode "
                "in computation tracked by autograd. To work around this, you can make a clone to get a normal tensor "
                "and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
            )


def pack(node: Node, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
    """Hand what the node saves to the hooks of `saved_tensors_hooks`."""
    assert node.saved is not None
    signature = node.signature
    tensors = [*(operands[k] for k in signature.saved_inputs), *(results[k] for k in signature.saved_results)]
    for saved, tensor in zip(node.saved, tensors, strict=True):
        packed_value(saved, tensor.detach() if tensor._data is saved.packed else wrapped(saved.packed))


# --- views ------------------------------------------------------------------------------------------

RECAST: Final[dict[Op, Callable[..., Any]]] = {}
"""Views that show all elements in another shape or dtype: ``inverse(base, new, *statics)`` is what the base becomes."""

FIXED: Final[dict[Op, Op]] = {}
"""The operation with static integers, of each view that takes them as operands."""

SCATTERED: Final[set[Op]] = set()
"""Views that show elements of the base more than once, or that a trace has only as copies: they go by places."""


def apply_view(op: Op, tensor: Tensor, statics: tuple[Any, ...] = (), others: Sequence[Tensor] = ()) -> Any:
    """A view of a tensor (or the tuple of them): shares its memory and its version.

    ``others``: integers after the tensor, so that views at many places have one signature; as a part of a chain of
    views they are statics, and `FIXED` has the operation that takes them so.
    """
    found = apply(op, (tensor, *others), statics)
    if others:
        op, statics = FIXED[op], (*statics, *[int(x._data) for x in others])
    if type(found) is tuple:
        for index, result in enumerate(found):
            shares(result, tensor, op, statics, index)
    else:
        shares(found, tensor, op, statics, None)
    return found


def shares(result: Tensor, tensor: Tensor, op: Op, statics: tuple[Any, ...], index: int | None) -> None:
    """Make a result a view of the tensor."""
    result._inference = tensor._inference
    if tensor._inference:
        return
    mode = MODE.get()
    result._base = tensor if tensor._base is None else tensor._base
    result._views = (*tensor._views, (op, statics, index))
    result._counter = tensor._counter
    result._seen = tensor._counter[0]
    creation = INFERENCE if mode.inference else UNRECORDED if not mode.grad else 0 if index is None else MULTIPLE
    result._creation = creation or tensor._creation


def replayed(base: Any, views: Sequence[View]) -> Any:
    """The chain of views on an array."""
    for op, statics, index in views:
        base = op.function(base, *statics)
        if index is not None:
            base = base[index]
    return base


def shown(base: Any, views: Sequence[View]) -> Any:
    """What the chain of views shows of an array: a view or a copy."""
    for k, (op, statics, _) in enumerate(views):
        if op in RECAST:
            return shown(op.function(shown(base, views[:k]), *statics), views[k + 1 :])
    if any(op in SCATTERED for op, _, _ in views):
        return base.reshape(-1)[places_of(base, views)]
    return replayed(base, views)


def places_of(base: Any, views: Sequence[View]) -> Any:
    """The places in the flat base of what the views show."""
    return replayed(np.arange(base.size).reshape(base.shape), views)


def updated(base: Any, views: Sequence[View], change: Callable[[Any], Any]) -> Any:
    """The array with ``change(part)`` in the place of the part that the chain of views shows; written into no array."""
    for k, (op, statics, _) in enumerate(views):
        if op in RECAST:

            def inner(part: Any, k: int = k, op: Op = op, statics: tuple[Any, ...] = statics) -> Any:
                return RECAST[op](part, updated(op.function(part, *statics), views[k + 1 :], change), *statics)

            return updated(base, views[:k], inner)
    if not views:
        return change(base)
    base = base.copy()
    if any(op in SCATTERED for op, _, _ in views):
        flat = base.reshape(-1)
        places = places_of(base, views)
        flat[places] = change(flat[places])
        return flat.reshape(base.shape)
    part = replayed(base, views)
    part[...] = change(part)
    return base


def copy_slices(base: Any, *rest: Any) -> Any:
    """An in-place operation on a view, as a function of the view's base.

    ``rest``: the other operands, then the operation's signature, how many others there are, and the views.
    """
    *others, inner, _, views = rest
    return updated(base, views, lambda part: changed_part(part, part, others, inner))


def copy_part(base: Any, part: Any, *rest: Any) -> Any:
    """`copy_slices`, where the part of the base is given as an operand of its own."""
    *others, inner, _, views = rest
    return updated(base, views, lambda shown: changed_part(shown, part, others, inner))


def changed_part(target: Any, part: Any, others: Sequence[Any], inner: Signature) -> Any:
    operands = [part, *others]
    if inner.dtype is not None:
        operands = [x if x.dtype == inner.dtype else x.astype(inner.dtype) for x in operands]
    return stored(inner.op.function(*operands, *inner.statics), target)


def slices_pullback(cotangent: Any, result: Any, base: Any, *rest: Any) -> tuple[Any, ...]:
    """Cotangents of `copy_slices`: the operation's own adjoint on the part, the rest as it is."""
    *others, inner, _, views = rest
    outgoing = part_pullback(cotangent, result, shown(base, views), others, inner, views)
    return updated(cotangent, views, lambda part: outgoing[0]), *outgoing[1:]


def copied_part_pullback(cotangent: Any, result: Any, base: Any, part: Any, *rest: Any) -> tuple[Any, ...]:
    *others, inner, _, views = rest
    outgoing = part_pullback(cotangent, result, part, others, inner, views)
    return updated(cotangent, views, np.zeros_like), *outgoing


def part_pullback(
    cotangent: Any, result: Any, part: Any, others: Sequence[Any], inner: Signature, views: Sequence[View]
) -> list[Any]:
    """The cotangents of the part and of the other operands; for those without one, the operand in its place."""
    operands = [part, *others]
    values = [operands[k] for k in inner.saved_inputs]
    values += [shown(result, views) for _ in inner.saved_results]
    values.append(shown(cotangent, views))
    found = iter(inline_function(inner.adjoint, [as_tracer(value).read() for value in values]))
    return [next(found) if active else x for x, active in zip(operands, inner.active, strict=True)]


def stored(value: Any, part: Any) -> Any:
    """A value as it is written over a part of an array."""
    if value.dtype != part.dtype:
        value = silently(cast, (value,), (part.dtype,))
    return value if value.shape == part.shape else np.broadcast_to(value, part.shape)


COPY_SLICES = Op("copy_slices", "CopySlices", copy_slices, pullback=slices_pullback, quiet=True)
COPY_PART = Op("copy_slices", "CopySlices", copy_part, pullback=copied_part_pullback, quiet=True)
REPLAY = Op("as_strided", "AsStridedBackward0", shown, quiet=True)
REPLAYS: Final = {
    f"{name}Backward0": Op(name, f"{name}Backward0", shown, quiet=True) for name in ("ViewAsReal", "ViewAsComplex")
}
"""The views that PyTorch takes anew as they are; all others as strides of the base."""
OVERWRITE = Op("copy", "CopyBackwards", lambda x, value: stored(value, x), quiet=True)


def regenerate(view: Tensor) -> None:
    """Give a view whose memory was changed in place the node of the same view of the base as it is now.

    Raises:
        AutogradError: the view must not be changed in place.
    """
    base = view._base
    assert base is not None
    if view._node is None and not base.requires_grad:
        return
    refuse_creation(view, indirect=True)
    view._seen = view._counter[0]
    old = view._node, view._output
    view._node = None
    op = REPLAYS.get(str(view._views[-1][0].node), REPLAY)
    node = record(op, (base,), ((*base._undo, *view._views),), None, (view,))
    if view._retains and node is not None:
        retain_on(view, old, node)


# --- in place ---------------------------------------------------------------------------------------


def apply_inplace(
    op: Op, tensor: Tensor, others: Sequence[Tensor] = (), statics: tuple[Any, ...] = (), dtype: Any = None
) -> Tensor:
    """The operation on the tensor and the others, written into the tensor, which is returned.

    Raises:
        TensorError: the result does not fit the tensor; the tensor is a leaf that requires grad.
    """
    mode = MODE.get()
    if mode.watchers:
        return mode.watchers[-1].intercept_inplace(op, tensor, others, statics, dtype)  # type: ignore[no-any-return]
    operands = (tensor, *others)
    recording = mode.grad and any(x.requires_grad for x in operands)
    if recording:
        refuse_leaf(tensor)
    refuse_inference(tensor)
    out = compute(op, operands, statics, dtype)
    data = tensor._data
    check_fits(tensor, out)
    if type(data) is np.ndarray:
        check_overlap(data, others, op.node in IDEMPOTENT)
    if out.dtype != data.dtype:
        out = silently(cast, (out,), (data.dtype,))
        if recording:
            op = narrowed(op, data.dtype)
    if not recording or type(data) is not np.ndarray:
        data[...] = out
        moved_on(tensor._counter)
    elif op.node is None:
        data[...] = out
        moved_on(tensor._counter)
        cut(tensor)
    elif tensor._base is None:
        write_recorded(op, tensor, others, statics, dtype, out)
    else:
        write_view(op, tensor, others, statics, dtype, out)
    return tensor


@lru_cache(512)
def narrowed(op: Op, dtype: Any) -> Op:
    """The operation whose result is cast to the dtype of the tensor that it is written into."""

    def function(*operands: Any) -> Any:
        return op.function(*operands).astype(dtype)

    options: dict[str, Any] = {"saves_result": op.saves_result, "pullback": op.pullback, "quiet": op.quiet}
    return Op(op.name, op.node, function, **options, shown=op.shown)


def cut(tensor: Tensor) -> None:
    """The tensor no longer depends on anything."""
    tensor._node, tensor._output = None, 0
    if tensor._base is None:
        tensor._requires = False


def write_recorded(
    op: Op, tensor: Tensor, others: Sequence[Tensor], statics: tuple[Any, ...], dtype: Any, out: Any
) -> None:
    """Write the result over a tensor that is no view; what the derivative reads is as it was before."""
    operands = (tensor, *others)
    data = tensor._data
    values = [x._data for x in operands]
    edges, active = edges_of(operands, values)
    found = signature(op, statics, values, dtype, active)
    refuse_saved_inference(operands, found)
    saved = [
        SavedValue(data.copy(), [0]) if k == 0 else SavedValue(values[k], others[k - 1]._counter)
        for k in found.saved_inputs
    ]
    old = tensor._node, tensor._output
    data[...] = out
    moved_on(tensor._counter)
    tensor._requires = False
    node = attached(found, edges, saved, operands, (tensor,))
    if tensor._retains:
        retain_on(tensor, old, node)


def write_view(
    op: Op, tensor: Tensor, others: Sequence[Tensor], statics: tuple[Any, ...], dtype: Any, out: Any
) -> None:
    """Write the result over a view: its base gets the node `CopySlices`, and all views of it theirs anew."""
    base = tensor._base
    assert base is not None
    views = (*base._undo, *tensor._views)
    operands = (base, *others)
    values = [x._data for x in operands]
    edges, active = edges_of(operands, values)
    inner = signature(op, statics, [tensor._data, *[x._data for x in others]], dtype, active)
    settings = (inner, len(others), views)
    found = signature(COPY_SLICES, settings, values, None, active)
    if 0 in found.saved_inputs:
        operands = (base, tensor, *others)
        values = [base._data, tensor._data.copy(), *[x._data for x in others]]
        edges, active = edges_of(operands, values)
        found = signature(COPY_PART, settings, values, None, active)
    refuse_saved_inference(operands, found)
    given = len(operands) - len(others)
    saved = [SavedValue(values[k], operands[k]._counter if k >= given else [0]) for k in found.saved_inputs]
    old = base._node, base._output
    tensor._data[...] = out
    moved_on(tensor._counter)
    base._requires = False
    node = attached(found, edges, saved, operands, (base,))
    if base._base is None and base._retains:
        retain_on(base, old, node)
    regenerate(tensor)


def retain_on(tensor: Tensor, old: tuple[Any, int], node: Node) -> None:
    """``grad`` of a tensor that retains it is that of its value from now on."""
    before, index = old
    if before is not None and before.retained is not None:
        before.retained.pop(index, None)
    node.retained = {tensor._output: weakref.ref(tensor)}


def apply_restride(op: Op, tensor: Tensor, statics: tuple[Any, ...], inverse: View) -> Tensor:
    """A view that the tensor itself becomes: ``x.t_()``. ``inverse`` is the view that takes it back.

    Raises:
        AutogradError: the tensor is a leaf that requires grad.
    """
    recording = MODE.get().grad and tensor.requires_grad
    if recording:
        refuse_leaf(tensor)
    refuse_inference(tensor)
    before = tensor._data
    out = compute(op, (tensor,), statics, None)
    found: Signature | None = None
    edges: list[Edge | None] = []
    if recording and type(before) is np.ndarray:
        edges, active = edges_of((tensor,), (before,))
        found = signature(op, statics, (before,), None, active)
    old = tensor._node, tensor._output
    tensor._data = out
    tensor._accumulator = None
    tensor._views = (*tensor._views, (op, statics, None))
    if tensor._base is None:
        tensor._undo = (inverse, *tensor._undo)
    moved_on(tensor._counter)
    if found is not None:
        node = attached(found, edges, [], (tensor,), (tensor,))
        tensor._seen = tensor._counter[0]
        if tensor._retains:
            retain_on(tensor, old, node)
    if tensor._tangent is not None:
        token = MODE.set(MODE.get()._replace(watchers=()))
        try:
            tensor._tangent = apply_view(op, tensor._tangent, statics)
        finally:
            MODE.reset(token)
    return tensor


def rebase(tensor: Tensor) -> None:
    """After a change in place that gave the tensor a node of its own: the base of a view gets the node `CopySlices`."""
    base = tensor._base
    if base is None:
        return
    value = wrapped(tensor._data)
    value._node, value._output = tensor._node, tensor._output
    inner = signature(OVERWRITE, (), (tensor._data, tensor._data), None, (edge_of(base) is not None, True))
    record(COPY_SLICES, (base, value), (inner, 1, (*base._undo, *tensor._views)), None, (base,))
    base._requires = False
    regenerate(tensor)
