"""Lists whose length a loop's number decides: ``[p * v[i + 1] + q * v[i] for i in range(j)]`` in a loop over ``j``.

Such a list, or tuple (``t = (*t, x)``), is an array of the largest length of which a part counts (`ragged`), and what
kind of numbers its items are. Nothing changes it while its loop is traced, so that it may stand at several places. What
is not known here of such a list is refused: then the loop is unrolled, and each list has a length of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from srcgrad.tracing.affine import ZERO, Affine
from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.conversion.carries import is_settled
from srcgrad.tracing.conversion.filled import array_of
from srcgrad.tracing.conversion.state import Kind, join_kinds, kind_of
from srcgrad.tracing.ragged import Extent, Ragged, known
from srcgrad.tracing.rows import row
from srcgrad.tracing.trace import Refused
from srcgrad.tracing.tracer import Deferring, as_tracer, from_value

FEW: Final = 8
"""As many items are written one by one behind those of a list."""
USED: Final = "a list whose length a loop's number decides is used in another way than by its items"


class Varying(Deferring):
    """A list of numbers, as an array with a part that counts."""

    __slots__ = ("item", "part")
    __srcgrad_unfinished__ = True
    __hash__ = None  # type: ignore[assignment]
    stands_for: type[Any] = list
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
            return type(self)(found, self.item)
        if not isinstance(index, slice):
            return self.number(found)
        return self.stands_for(rows_of(from_value(found.read()), self.item))

    def __bool__(self) -> bool:
        number = known(self.shape[0])
        if number.least() < 1 <= number.most():
            raise Refused("whether a list is empty is asked whose length a loop's number decides")
        return number.least() >= 1

    def __add__(self, other: Any) -> Any:
        return joined([self, other], self.stands_for)

    def __radd__(self, other: Any) -> Any:
        return joined([other, self], self.stands_for)

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


class VaryingTuple(Varying):
    """A tuple of numbers: ``t += (x,)`` makes another one."""

    __slots__ = ()
    __hash__ = None
    stands_for = tuple

    def __iadd__(self, other: Any) -> Any:
        return self + other


VARYING: Final[dict[type, type[Varying]]] = {list: Varying, tuple: VaryingTuple}


def array_for(x: Any) -> Any:
    """What NumPy makes of such a list, also among others."""
    if type(x) in (list, tuple):
        return type(x)(map(array_for, x)) if any(isinstance(part, Varying) for part in x) else x
    return x.array() if isinstance(x, Varying) else x


def joined(parts: Sequence[Any], kind: type) -> Any:
    """A list, or a tuple, of the items of several such, of which one has a length that a number decides.

    Raises:
        Refused: their numbers are of several kinds; or they are no sequences of this kind, which Python does not join.
    """
    if any((x.stands_for if isinstance(x, Varying) else type(x)) is not kind for x in parts):
        raise Refused(USED)
    parts = [x for x in parts if isinstance(x, Varying) or x]
    kinds = [item for x in parts for item in ([item_kind(x)] if isinstance(x, Varying) else map(kind_of, x))]
    found = kind_among(list(dict.fromkeys(kinds)))
    if found is None:
        raise Refused("lists of numbers of several kinds are joined in a loop whose number decides their length")
    dtype = found.type.dtype
    longer = lengthened(parts, dtype)
    if longer is not None:
        return VARYING[kind](longer, found)
    arrays = [x.part.astype(dtype) if isinstance(x, Varying) else array_of(list(x), dtype) for x in parts]
    whole: Any = np.concatenate(arrays) if len(arrays) > 1 else arrays[0]
    return VARYING[kind](whole, found) if isinstance(whole, Ragged) else kind(rows_of(whole, found))


class Settled(Ragged):
    """A part of an array that is 0 wherever it does not count, as what a trip is given (`moving.Moving`)."""

    __slots__ = ()
    __hash__ = None


def lengthened(parts: Sequence[Any], dtype: Any) -> Settled | None:
    """A list and a few items behind it, which are written into the room that there is; None where there is none.

    A trip of ``v = [*v, x]`` is one write so, and no copy of all items.
    """
    first = parts[0].part if isinstance(parts[0], Varying) else None
    items = [item for x in parts[1:] if not isinstance(x, Varying) for item in x]
    if not isinstance(first, Settled) or first.dtype != dtype or any(isinstance(x, Varying) for x in parts[1:]):
        return None
    (extent,) = first.extents
    if not isinstance(extent, Extent) or not extent.exact or extent.first != ZERO or len(items) > FEW:
        return None
    end = extent.end.plus(Affine({}, len(items)), 1)
    if end.most() > extent.size:
        return None
    base: Any = first.base.copy()
    for k, item in enumerate(items):
        base[extent.stop + k] = item
    return Settled(base, (Extent(0, extent.stop + len(items), extent.size, ZERO, end),))


def spliced(items: Any, more: Any) -> Any:
    """``[*items, *more]``, where the first are a list already."""
    if not isinstance(items, Varying) and not isinstance(more, Varying):
        return [*items, *more]
    return joined([items, list_(more)], list)


@call_rule(list)
def list_(iterable: Any = (), /) -> Any:
    return Varying(iterable.part, iterable.item) if isinstance(iterable, Varying) else list(iterable)


@call_rule(tuple)
def tuple_(iterable: Any = (), /) -> Any:
    return VaryingTuple(iterable.part, iterable.item) if isinstance(iterable, Varying) else tuple(iterable)


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
    if type(x) not in VARYING:
        return None
    kinds = [kind_of(item) if is_settled(item) else None for item in x]
    return kind_among(list(dict.fromkeys(kinds)))
