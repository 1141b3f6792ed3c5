"""``x[mask] op= v`` for a traced mask: each element is changed or not, so that no size depends on a value."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.tracing.indexing import is_unknown_mask
from srcgrad.tracing.trace import CURRENT
from srcgrad.tracing.tracer import Deferring, Tracer


def augmented(container: Any) -> Any:
    """The base of an augmented assignment to elements."""
    if isinstance(container, Tracer):
        return MaskedTarget(container) if CURRENT.get() is not None else container
    return accumulated(container)


def accumulated(container: Any) -> Any:
    """The base of an augmented assignment to an element by several indices: what need not be read to be added to."""
    in_place = getattr(type(container), "in_place", None) if isinstance(container, Deferring) else None
    return container if in_place is None else in_place(container)


class MaskedTarget:
    """A traced array of which elements are changed in place."""

    __slots__ = ("array",)

    def __init__(self, array: Tracer) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> Any:
        whole = is_unknown_mask(self.array, index) and index.ndim == self.array.ndim
        return Selected(self.array, index) if whole else self.array[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(value, Selected):
            self.array[index] = value


def changed(operation: Callable[[Any, Any], Any]) -> Callable[[Selected, Any], Any]:
    def change(selected: Selected, value: Any) -> Any:
        array, mask = selected.array, selected.mask
        if not isinstance(value, Deferring) and np.size(value) == 1 and array.dtype.kind in "fc":
            number: Any = np.reshape(value, ()) if np.ndim(value) else value
            new = operation(np.where(mask, array, np.ones((), array.dtype)), number)  # a 1 fails nowhere
            if new.dtype == array.dtype:
                array[...] = np.where(mask, new, array)
                return selected
        return operation(array[mask], value)

    return change


class Selected:
    """The elements where a mask holds, to be changed by a number or by elements that it selects too."""

    __slots__ = ("array", "mask")

    def __init__(self, array: Tracer, mask: Tracer) -> None:
        self.array, self.mask = array, mask

    __iadd__, __isub__ = changed(operator.add), changed(operator.sub)
    __imul__, __itruediv__ = changed(operator.mul), changed(operator.truediv)
    __ipow__, __imod__ = changed(operator.pow), changed(operator.mod)
    __ifloordiv__ = changed(operator.floordiv)
