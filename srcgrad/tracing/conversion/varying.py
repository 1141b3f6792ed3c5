"""Lists whose length a loop's number decides: ``[p * v[i + 1] + q * v[i] for i in range(j)]`` in a loop over ``j``.

Such a list is an array of the largest length of which a part counts (`ragged`), and what kind of numbers its items are.
Nothing changes it while its loop is traced, so that it may stand at several places. What is not known here of such a
list is refused: then the loop is unrolled, and each list has a length of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.conversion.carries import is_settled
from srcgrad.tracing.conversion.filled import array_of
from srcgrad.tracing.conversion.state import Kind, join_kinds, kind_of
from srcgrad.tracing.ragged import Ragged, known
from srcgrad.tracing.rows import row
from srcgrad.tracing.trace import Refused
from srcgrad.tracing.tracer import Deferring, as_tracer, from_value

USED: Final = "a list whose length a loop's number decides is used in another way than by its items"


class Varying(Deferring):
    """A list of numbers, as an array with a part that counts."""

    __slots__ = ("item", "part")
    __srcgrad_unfinished__ = True
    __hash__ = None  # type: ignore[assignment]
    stands_for = list
    ndim: Final = 1

    def __init__(self, part: Ragged, item: Kind) -> None:
        """``item``: what kind of number each of its items is."""
        self.part, self.item = part, item

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.part.shape

    @property
    def dtype(self) -> Any:
        """That of an array of its items."""
        return self.part.dtype

    def array(self) -> Any:
        """A new array of its items."""
        return self.part.copy()

    def number(self, found: Any) -> Any:
        """What is computed of the items alone, as a number as they are."""
        return from_value(as_tracer(found).read(), True, self.item.weak)

    def copy(self) -> Varying:
        return self

    def __getitem__(self, index: Any) -> Any:
        found = self.part[index]
        if isinstance(found, Ragged):
            return Varying(found, self.item)
        if not isinstance(index, slice):
            return self.number(found)
        return rows_of(from_value(found.read()), self.item)

    def __bool__(self) -> bool:
        number = known(self.shape[0])
        if number.least() < 1 <= number.most():
            raise Refused("whether a list is empty is asked whose length a loop's number decides")
        return number.least() >= 1

    def __add__(self, other: Any) -> Any:
        return joined([self, other])

    def __radd__(self, other: Any) -> Any:
        return joined([other, self])

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*map(array_for, inputs), **options)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return func(*map(array_for, args), **{name: array_for(x) for name, x in kwargs.items()})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Refused(USED)

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise Refused(USED)

    __array__ = __iter__ = __len__ = __contains__ = __setitem__ = __delitem__ = __reversed__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __iadd__ = __mul__ = __rmul__ = __imul__ = _refuse
    __str__ = __repr__ = __format__ = _refuse


def array_for(x: Any) -> Any:
    """What NumPy makes of such a list, also among others."""
    if type(x) in (list, tuple):
        return type(x)(map(array_for, x)) if any(isinstance(part, Varying) for part in x) else x
    return x.array() if isinstance(x, Varying) else x


def joined(lists: Sequence[Any]) -> Any:
    """A list of the items of several, of which one is such a list.

    Raises:
        Refused: their numbers are of several kinds.
    """
    parts = [x for x in lists if type(x) is not list or x]
    kinds = [kind for x in parts for kind in (map(kind_of, x) if type(x) is list else [item_kind(x)])]
    found = kind_among(list(dict.fromkeys(kinds)))
    if found is None:
        raise Refused("lists of numbers of several kinds are joined in a loop whose number decides their length")
    dtype = found.type.dtype
    arrays = [x.part.astype(dtype) if isinstance(x, Varying) else array_of(x, dtype) for x in parts]
    whole: Any = np.concatenate(arrays) if len(arrays) > 1 else arrays[0]
    return Varying(whole, found) if isinstance(whole, Ragged) else rows_of(whole, found)


@call_rule(list)
def list_(iterable: Any = (), /) -> Any:
    return iterable if isinstance(iterable, Varying) else list(iterable)


def rows_of(array: Any, item: Kind) -> list[Any]:
    """A list of the numbers of an array that nothing else holds."""
    return [row(array, k, True, item.weak) for k in range(len(array))]


def kind_among(kinds: Sequence[Kind | None]) -> Kind | None:
    """The kind of numbers that are all floats, or all complex, of one precision, or integers among such."""
    found: Any = kinds[0] if kinds else None
    for kind in kinds[1:]:
        found = join_kinds("[k]", found, kind) if isinstance(found, Kind) and kind is not None else None
    if not isinstance(found, Kind) or not found.scalar or found.type.shape or found.type.dtype.kind not in "fc":
        return None
    same = (kind is not None and kind.scalar and kind.type.dtype in (found.type.dtype, np.int64) for kind in kinds)
    return found if all(same) else None


def item_kind(x: Any) -> Kind | None:
    """What the items of a list are, if they are such numbers and no condition decides what kind one is."""
    if isinstance(x, Varying):
        return x.item
    if type(x) is not list:
        return None
    kinds = [kind_of(item) if is_settled(item) else None for item in x]
    return kind_among(list(dict.fromkeys(kinds)))
