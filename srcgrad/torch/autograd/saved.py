"""Tensors that a `Function` keeps for its backward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from srcgrad.torch.graph import Edge, GraphNode, SavedValue, changed_in_place, packed_value, unpacked
from srcgrad.torch.modes import MODE
from srcgrad.torch.tensor import Tensor, edge_of, placed

if TYPE_CHECKING:
    from srcgrad.torch.autograd.function import FunctionCtx


class SavedTensor:
    """A tensor, the version it must still have, and its place in the graph.

    An input is kept as itself; an output of the function by its number, since it holds the node that holds this.
    """

    __slots__ = ("edge", "number", "original", "value")

    def __init__(
        self, original: Tensor | None, value: SavedValue | None, number: int | None, edge: Edge | None
    ) -> None:
        self.original = original
        self.value = value
        self.number = number
        self.edge = edge

    @staticmethod
    def plain(tensor: Tensor | None) -> SavedTensor:
        """A tensor of a call that is not recorded."""
        return SavedTensor(tensor, None, None, None)

    @staticmethod
    def of(tensor: Tensor, node: FunctionCtx, number: int | None) -> SavedTensor:
        """A tensor saved by ``node``, whose output ``number`` it is, if it is one."""
        producer: GraphNode | None = node if number is not None else tensor.grad_fn
        name = "" if producer is None else producer.name().partition("Backward")[0]
        where = "" if producer is None else f"output {number or tensor._output} of {name}"
        value = SavedValue(tensor._data, tensor._counter, where)
        edge = None if number is not None else edge_of(tensor)
        hooked = bool(MODE.get().saved_hooks)
        if hooked:
            packed_value(value, tensor.detach() if number is not None else tensor)
        return SavedTensor(None if hooked or number is not None else tensor, value, number, edge)

    def tensor(self, node: FunctionCtx) -> Tensor | None:
        """The tensor.

        Raises:
            AutogradError: it was changed in place since.
        """
        value = self.value
        if value is None:
            return self.original
        if value.counter[0] != value.version:
            raise changed_in_place(value)
        if self.original is not None:
            return self.original
        array: Any = value.packed if value.hooks is None else unpacked(value)
        found = placed(array, self.edge if self.number is None else (node, self.number))
        found._counter = value.counter
        return found
