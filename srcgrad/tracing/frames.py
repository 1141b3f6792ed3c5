"""What pandas holds, where a function captures it or is given it: constants of the program, compared at each call.

pandas is not imported here: who has none of its objects needs none. A DataFrame or a Series is blocks, arrays of one
dtype each, and indices, which nobody can change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from srcgrad.tracing.frozen import Same, key_of
from srcgrad.tracing.unasked import attribute

__all__ = ["FUNCTIONS_OF_PANDAS", "SameFrame", "as_plain", "is_frame"]

KINDS: Final = frozenset({"DataFrame", "Series"})
PARTS: Final = ("_ndarray", "_data", "_mask")
"""The arrays by which pandas' own kinds of arrays hold what they hold."""
FUNCTIONS_OF_PANDAS: Final = frozenset(
    {"concat", "merge", "get_dummies", "cut", "qcut", "to_datetime", "to_timedelta", "to_numeric", "isna", "notna"}
    | {"isnull", "notnull", "factorize", "unique", "date_range", "timedelta_range", "period_range", "crosstab"}
    | {"pivot", "pivot_table", "melt", "merge_asof", "Series", "DataFrame", "Index", "Categorical", "MultiIndex"}
)
"""Those that give the same of the same."""


def is_pandas(value: Any) -> bool:
    return str(type(value).__module__).partition(".")[0] == "pandas"


def is_index(value: Any) -> bool:
    return is_pandas(value) and any(base.__name__ == "Index" for base in type(value).__mro__)


def is_frame(value: Any) -> bool:
    """Whether it is a table, a column or an index of pandas, all of whose elements are known kinds of constants."""
    if is_index(value):
        return True
    if not is_pandas(value) or type(value).__name__ not in KINDS:
        return False
    blocks = attribute(attribute(value, "_mgr"), "blocks")
    return isinstance(blocks, tuple) and all(is_constant_block(block.values) for block in blocks)


def is_constant_block(values: Any) -> bool:
    if attribute(values, "_pa_array") is not None:
        return True
    parts = arrays_of(values)
    return bool(parts) and not any(part.dtype.hasobject and key_of(part) is None for part in parts)


def arrays_of(values: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays that a block's values are, or hold."""
    if isinstance(values, np.ndarray):
        return [values]
    return [part for name in PARTS if isinstance(part := attribute(values, name), np.ndarray)]


class SameValues:
    """Whether a block holds what another one holds now."""

    __slots__ = ("arrow", "dtype", "parts", "places")

    def __init__(self, block: Any) -> None:
        values = block.values
        self.places, self.dtype = tuple(block.mgr_locs), values.dtype
        self.arrow = attribute(values, "_pa_array")
        self.parts = [] if self.arrow is not None else list(map(Same, arrays_of(values)))

    def __call__(self, block: Any) -> bool:
        values = block.values
        if tuple(block.mgr_locs) != self.places or not same_dtype(values.dtype, self.dtype):
            return False
        if self.arrow is not None:  # which nobody can change
            arrow = attribute(values, "_pa_array")
            return arrow is self.arrow or (arrow is not None and bool(arrow.equals(self.arrow)))
        parts = arrays_of(values)
        return len(parts) == len(self.parts) and all(same(part) for same, part in zip(self.parts, parts, strict=True))


class SameFrame:
    """A guard: whether a table, a column or an index holds what another one holds now."""

    __slots__ = ("axes", "blocks", "kind", "name")

    def __init__(self, value: Any) -> None:
        self.kind = type(value)
        self.axes, blocks, self.name = parts_of(value)
        self.blocks = list(map(SameValues, blocks))

    def __call__(self, value: Any) -> bool:
        if type(value) is not self.kind:
            return False
        axes, blocks, name = parts_of(value)
        if len(axes) != len(self.axes) or len(blocks) != len(self.blocks) or name != self.name:
            return False
        if not all(same(block) for same, block in zip(self.blocks, blocks, strict=True)):
            return False
        return all(map(same_index, axes, self.axes))


def parts_of(value: Any) -> tuple[Sequence[Any], Sequence[Any], Any]:
    """Its indices, its blocks, and the name of a column."""
    if is_index(value):
        return (value,), (), None
    manager = value._mgr
    return manager.axes, manager.blocks, value._name if len(manager.axes) == 1 else None


def same_index(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is not type(other) or one.names != other.names or not same_dtype(one.dtype, other.dtype):
        return False
    return getattr(one, "freq", None) == getattr(other, "freq", None) and bool(one.equals(other))


def same_dtype(one: Any, other: Any) -> bool:
    """Whether they are equal, and categories, by whose places a column holds them, have one order."""
    if one is other:
        return True
    categories = getattr(one, "categories", None)
    return bool(one == other) and (categories is None or same_index(categories, other.categories))


def as_plain(x: Any) -> Any:
    """The array of what pandas holds, beside a traced one; anything else as it is."""
    return x.to_numpy() if is_pandas(x) and hasattr(x, "to_numpy") else x
