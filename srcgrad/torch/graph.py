"""The recorded graph: nodes, their edges, and what they save.

A node belongs to the results of one operation. Its edges lead to the nodes of the operands, or to the accumulators of
leaves. Nodes are numbered as they are made, so a larger number never depends on the other way round: sorting by number
is a topological order.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from srcgrad.ir.source import Span, user_span
from srcgrad.ir.types import ArrayType
from srcgrad.torch import dtypes
from srcgrad.torch.errors import AutogradError, TensorTypeError, TensorValueError
from srcgrad.torch.modes import MODE
from srcgrad.torch.operation import Op, Signature

if TYPE_CHECKING:
    from srcgrad.torch.tensor import Tensor

Edge = tuple["GraphNode", int]
"""A node, and which of its results."""

NUMBERS: Final = count()
FREED_MESSAGE: Final = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


class RemovableHandle:
    """Takes a hook away again: ``handle.remove()``, or at the end of ``with handle:``."""

    __slots__ = ("hooks", "key")
    numbers: ClassVar[Any] = count()

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self.hooks: Any = weakref.ref(hooks) if isinstance(hooks, Hooks) else (lambda: hooks)
        self.key: int = next(self.numbers)
        hooks[self.key] = hook

    @property
    def id(self) -> int:
        return self.key

    def remove(self) -> None:
        hooks = self.hooks()
        if hooks is not None:
            hooks.pop(self.key, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class Hooks(dict[int, Any]):
    """Hooks in the order in which they were registered."""

    __slots__ = ("__weakref__",)


class SavedValue:
    """An array that a node keeps for its derivative, and the version it must still have."""

    __slots__ = ("counter", "hooks", "packed", "version", "where")

    def __init__(self, array: Any, counter: list[Any], where: str = "") -> None:
        self.counter = counter
        self.version = counter[0]
        self.where = where
        self.hooks: Any = None
        self.packed = array

    def array(self) -> Any:
        """The value.

        Raises:
            AutogradError: it was changed in place since it was saved.
        """
        if self.counter[0] != self.version:
            raise changed_in_place(self)
        return self.packed if self.hooks is None else unpacked(self)


def unpacked(saved: SavedValue) -> Any:
    from srcgrad.torch.tensor import Tensor

    found = saved.hooks[1](saved.packed)
    if not isinstance(found, Tensor):
        raise TensorTypeError(
            f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(found).__name__}"
        )
    return found._data


def packed_value(saved: SavedValue, tensor: Tensor) -> SavedValue:
    """The value as the innermost pair of saved-tensors hooks keeps it."""
    hooks = MODE.get().saved_hooks[-1]
    saved.hooks = hooks
    saved.packed = hooks[0](tensor)
    return saved


def moved_on(counter: list[Any]) -> None:
    """One more in-place change of the memory of this counter, which keeps where it was for `changed_in_place`."""
    counter[0] += 1
    counter[1:] = (user_span(),)


def output_of(edge: Edge | None) -> str:
    """What PyTorch calls the value at an edge: nothing for a leaf."""
    if edge is None or isinstance(edge[0], AccumulateGrad):
        return ""
    return f"output {edge[1]} of {edge[0].name().partition('Backward')[0]}"


def changed_in_place(saved: SavedValue, where: str = "") -> AutogradError:
    """The error of a saved value that was changed; it names the line that changed it."""
    where = where or saved.where
    which = f", which is {where}," if where else ""
    array = saved.packed
    kind = type_name(array.dtype) if hasattr(array, "dtype") else "torch.Tensor"
    error = AutogradError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{kind} {list(getattr(array, 'shape', ()))}]{which} is at version {saved.counter[0]}; "
        f"expected version {saved.version} instead.",
        hint="write y = y + 1 in place of y += 1, or change a clone()",
    )
    span: Span | None = saved.counter[1] if len(saved.counter) > 1 else None
    return error.add_context(f"changed in place at {span.describe()}") if span is not None else error


TYPE_NAMES: Final = {
    "float16": "HalfTensor",
    "float32": "FloatTensor",
    "float64": "DoubleTensor",
    "complex64": "ComplexFloatTensor",
    "complex128": "ComplexDoubleTensor",
    "int8": "CharTensor",
    "uint8": "ByteTensor",
    "int16": "ShortTensor",
    "int32": "IntTensor",
    "int64": "LongTensor",
    "bool": "BoolTensor",
}


def type_name(dtype: Any) -> str:
    """PyTorch's name of the tensor type of a dtype: ``torch.FloatTensor``."""
    return "torch." + TYPE_NAMES.get(np.dtype(dtype).name, "Tensor")


def dtype_of_type(kind: Any) -> dtypes.dtype:
    """The dtype of what ``x.type(...)`` takes: a dtype, or the name of a tensor type."""
    if not isinstance(kind, str):
        return dtypes.as_dtype(kind)
    for name, suffix in TYPE_NAMES.items():
        if kind == f"torch.{suffix}":
            return dtypes.named(name)
    raise TensorValueError(f"invalid type: '{kind}'", hint="torch.float32, or 'torch.FloatTensor'")


class GraphNode:
    """A function of the graph: ``grad_fn`` of the tensors it made."""

    edges: Sequence[Edge | None] = ()
    number: float = 0
    pre_hooks: Hooks | None = None
    """Called with the cotangents of the results before the node runs."""
    result_hooks: dict[int, Hooks] | None = None
    """Tensor hooks, by result: called with its cotangent, before ``pre_hooks``."""
    post_hooks: Hooks | None = None
    retained: dict[int, weakref.ref[Tensor]] | None = None
    span: Span | None = None
    forward_stack: Any = None
    metadata_: dict[str, Any] | None = None
    tangents: tuple[int, Sequence[Tensor | None]] | None = None
    """In forward mode: its level, and the tangents of what is saved."""
    runs_undefined: bool = False
    """Whether it is run though none of its results has a gradient."""

    def name(self) -> str:
        """What PyTorch calls this node."""
        raise NotImplementedError

    @property
    def next_functions(self) -> tuple[tuple[GraphNode | None, int], ...]:
        """The nodes of the operands, each with the number of its result; None for what needs no gradient."""
        return tuple((None, 0) if edge is None else edge for edge in self.edges)

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's own notes."""
        if self.metadata_ is None:
            self.metadata_ = {}
        return self.metadata_

    @property
    def hooked(self) -> bool:
        return not (self.pre_hooks is None and self.result_hooks is None and self.post_hooks is None)

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after this node; what it returns replaces ``grad_inputs``."""
        if self.post_hooks is None:
            self.post_hooks = Hooks()
        return RemovableHandle(self.post_hooks, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` before this node; what it returns replaces them."""
        if self.pre_hooks is None:
            self.pre_hooks = Hooks()
        return RemovableHandle(self.pre_hooks, hook)

    def result_type(self, index: int) -> ArrayType | None:
        """The type of a result; None where it is not known before the gradient comes."""
        return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {hex(id(self))}>"


class Node(GraphNode):
    """The node of an operation."""

    def __init__(self, signature: Signature, edges: Sequence[Edge | None]) -> None:
        self.signature = signature
        self.edges = edges
        self.number = next(NUMBERS)
        self.saved: list[SavedValue] | None = None

    def name(self) -> str:
        name = str(self.signature.op.node)
        return QUALIFIED.get(name, name)

    @property
    def next_functions(self) -> tuple[tuple[GraphNode | None, int], ...]:
        op, edges = self.signature.op, self.edges
        if op.name == "copy_slices":
            statics = self.signature.statics
            inner: Op = statics[0].op
            others = edges[len(edges) - statics[-2] :] if statics[-2] else ()
            edges = (edges[0], *(others if inner.shown is None else others[: inner.shown - 1]))
        elif op.shown is not None:
            edges = edges[: op.shown]
        return tuple((None, 0) if edge is None else edge for edge in edges)

    def result_type(self, index: int) -> ArrayType:
        return self.signature.results[index]

    def saved_arrays(self) -> list[Any]:
        """What the adjoint reads.

        Raises:
            AutogradError: it was freed, or changed in place.
        """
        if self.saved is None:
            raise AutogradError(FREED_MESSAGE)
        return [
            saved.packed if saved.hooks is None and saved.counter[0] == saved.version else self.checked(k)
            for k, saved in enumerate(self.saved)
        ]

    def checked(self, k: int) -> Any:
        """One saved value, after the hooks of `saved_tensors_hooks`."""
        assert self.saved is not None
        saved = self.saved[k]
        if saved.counter[0] != saved.version:
            inputs, results = self.signature.saved_inputs, self.signature.saved_results
            edge = self.edges[inputs[k]] if k < len(inputs) else (self, results[k - len(inputs)])
            raise changed_in_place(saved, output_of(edge))
        return unpacked(saved)

    def free(self) -> None:
        """Let go of what was saved, if there is anything."""
        if self.saved:
            self.saved = None
        self.tangents = None

    def cotangents(self, given: Sequence[Any]) -> list[Any]:
        """One per differentiable result: zeros where there is none."""
        types = self.signature.results
        return [
            np.zeros(type.shape, type.dtype) if cotangent is None else cotangent
            for cotangent, type in zip(given, types, strict=True)
            if type.dtype.kind in "fc"
        ]

    def run(self, given: Sequence[Any]) -> list[Any]:
        """Cotangents of the operands (None for those without an edge), from those of the results, as arrays."""
        found = iter(self.signature.run(*self.saved_arrays(), *self.cotangents(given)))
        pairs = zip(self.edges, self.signature.active, strict=True)
        outgoing = [(edge, next(found) if active else None) for edge, active in pairs]
        return [None if edge is None else cotangent for edge, cotangent in outgoing]

    def run_recorded(self, given: Sequence[Any]) -> list[Any]:
        """The same on tensors, recorded."""
        from srcgrad.torch.dispatch import apply
        from srcgrad.torch.tensor import Tensor, wrapped

        tensors = [*self.saved_tensors()]
        for cotangent in self.cotangents(given):
            tensors.append(cotangent if isinstance(cotangent, Tensor) else wrapped(cotangent))
        outgoing: list[Any] = []
        parts = iter(self.signature.parts)
        for edge, active in zip(self.edges, self.signature.active, strict=True):
            op, places = next(parts) if active else (None, ())
            if edge is None or op is None:
                outgoing.append(None)
                continue
            outgoing.append(apply(op, [tensors[k] for k in places]))
        return outgoing

    def saved_tensors(self) -> list[Tensor]:
        """What the adjoint reads, as tensors that stand in the graph where the values stood."""
        from srcgrad.torch.tensor import placed

        arrays = self.saved_arrays()
        signature = self.signature
        edges: list[Edge | None] = [self.edges[k] for k in signature.saved_inputs]
        edges += [(self, k) for k in signature.saved_results]
        found = [placed(array, edge) for array, edge in zip(arrays, edges, strict=True)]
        return found if self.tangents is None else with_tangents(found, *self.tangents)

    def __getattr__(self, name: str) -> Any:
        """``_saved_self``, ``_saved_result`` and their like: the saved values by PyTorch's names."""
        if name.startswith("_saved_"):
            return saved_by_name(self, name.removeprefix("_saved_"))
        raise AttributeError(f"{self.name()!r} object has no attribute {name!r}")


def with_tangents(tensors: Sequence[Tensor], level: int, tangents: Sequence[Tensor | None]) -> list[Tensor]:
    """Saved tensors with the tangents that they had."""
    from srcgrad.torch.tensor import placed

    found = []
    for tensor, tangent in zip(tensors, tangents, strict=True):
        if tangent is not None:
            alias = placed(tensor._data, None if tensor._node is None else (tensor._node, tensor._output))
            alias._requires, alias._accumulator = tensor._requires, tensor._accumulator
            alias._tangent, alias._level = tangent, level
            tensor = alias
        found.append(tensor)
    return found


def saved_by_name(node: Node, name: str) -> Any:
    signature = node.signature
    order = ["self", "other"] if len(signature.types) == 2 else ["self"]
    names = [order[k] if k < len(order) else f"tensor{k}" for k in signature.saved_inputs]
    names += ["result"] * len(signature.saved_results)
    if name not in names:
        raise AttributeError(f"{node.name()!r} object has no attribute '_saved_{name}'")
    return node.saved_tensors()[names.index(name)]


QUALIFIED: Final = {name: f"torch::autograd::{name}" for name in ("CopySlices", "CopyBackwards", "NotImplemented")}
"""What ``name()`` says of nodes whose name has a namespace."""


class AccumulateGrad(GraphNode):
    """Where a leaf's gradient arrives: it is added to ``variable.grad``."""

    number = float("inf")

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def result_type(self, index: int) -> ArrayType:
        data = self.variable._data
        return ArrayType(data.dtype, data.shape)


def node_class(name: str) -> type[Node]:
    """The class of the nodes of one name, so that ``type(grad_fn).__name__`` is PyTorch's."""
    found = CLASSES.get(name)
    if found is None:
        found = CLASSES[name] = type(name, (Node,), {"__module__": "srcgrad.torch"})
    return found


CLASSES: Final[dict[str, type[Node]]] = {}
