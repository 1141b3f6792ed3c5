"""``np.nditer`` of traced arrays, which does not dispatch: real arrays of these layouts say in which order it goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.errors import UnsupportedError
from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.conversion.fresh_arrays import lifted
from srcgrad.tracing.functions.registry import as_array
from srcgrad.tracing.tracer import Tracer, contains_tracer

KNOWN: Final = frozenset({"multi_index", "c_index", "f_index", "refs_ok", "zerosize_ok", "copy_if_overlap"})
"""The flags of which the items are single elements of the arrays themselves."""


@call_rule(np.nditer)
def nditer(
    op: Any, flags: Any = None, op_flags: Any = None, op_dtypes: Any = None, order: Any = "K", **options: Any
) -> Any:
    """
    Raises:
        UnsupportedError: it asks for chunks, for buffers or other dtypes, or for other axes.
    """
    if not contains_tracer(op):
        named = {"flags": flags, "op_flags": op_flags, "op_dtypes": op_dtypes, "order": order}
        return np.nditer(op, **{name: value for name, value in named.items() if value is not None}, **options)
    unknown = [*(set(flags or ()) - KNOWN), *options, *(["op_dtypes"] if op_dtypes is not None else [])]
    if unknown:
        raise UnsupportedError(
            f"np.nditer with {sorted(unknown)[0]} is not supported on traced arrays",
            hint="write a loop over np.ndindex(x.shape)",
        )
    return Elements(op, flags or (), op_flags, order)


class Elements:
    """What ``np.nditer`` is for traced arrays: its items are views of single elements."""

    def __init__(self, op: Any, flags: Sequence[str], op_flags: Any, order: Any) -> None:
        several = isinstance(op, (list, tuple))
        given = [None if x is None else as_array(x) for x in (op if several else [op])]
        asked = ["readonly" if x is not None else "writeonly" for x in given] if op_flags is None else op_flags
        asked = [[one] if isinstance(one, str) else list(one) for one in asked]
        if len(asked) != len(given):
            asked = asked * len(given)
        for x, own, access in zip(op if several else [op], given, asked, strict=True):
            if own is not None and not isinstance(x, Tracer) and "readonly" not in access:
                raise UnsupportedError(
                    "np.nditer writes into an array that is not traced",
                    hint="make it in the function: np.zeros_like(x)",
                )
        ghosts: Any = [None if x is None else x.ghost() for x in given]
        wanted: Any = [*({*flags, "multi_index", "zerosize_ok"} - {"copy_if_overlap"})]
        kinds: Any = [kind if x is not None else [*kind, "allocate"] for x, kind in zip(given, asked, strict=True)]
        self.order: Any = np.nditer(ghosts, flags=wanted, op_flags=kinds, order=order)
        self.operands: tuple[Any, ...] = tuple(
            lifted(np.zeros_like(ghost)) if x is None else x
            for x, ghost in zip(given, self.order.operands, strict=True)
        )
        self.views = [
            x if "readonly" not in kind else read_only(x) for x, kind in zip(self.operands, asked, strict=True)
        ]
        self.views = [np.broadcast_to(x, self.order.shape) if x.shape != self.order.shape else x for x in self.views]
        self.begun = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.order, name)

    def __len__(self) -> int:
        return len(self.views)

    def __enter__(self) -> Elements:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def close(self) -> None:
        """Nothing was buffered."""

    def reset(self) -> None:
        self.order.reset()
        self.begun = False

    def item(self, which: int) -> Any:
        return self.views[which][(*self.order.multi_index, ...)]

    @property
    def value(self) -> Any:
        items = tuple(map(self.item, range(len(self.views))))
        return items if len(items) > 1 else items[0]

    def __getitem__(self, which: Any) -> Any:
        return (
            [self.item(k) for k in range(len(self))[which]]
            if isinstance(which, slice)
            else self.item(range(len(self))[which])
        )

    def __setitem__(self, which: int, value: Any) -> None:
        self.item(range(len(self))[which])[...] = value

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.order.finished or (self.begun and not self.order.iternext()):
            raise StopIteration
        self.begun = True
        return self.value


def read_only(x: Any) -> Any:
    """A copy that cannot be written into."""
    found = x.copy()
    found.storage.writable = False
    return found
