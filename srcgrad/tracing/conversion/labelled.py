"""What traced places pick of an array of texts, dates or records: ``labels[order] == "a"``, ``dates[rows] - start``.

It is the levels, which are constants, and a traced place among them for each element. What is computed of it is what
is computed of the levels, or of all pairs of levels, picked by the places: numbers then are traced arrays as others.
One text is a `PlacedText`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, NoReturn

import numpy as np

from srcgrad.tracing.conversion.calls import constant_array
from srcgrad.tracing.conversion.placed_texts import MOST, is_known, text_at
from srcgrad.tracing.tables import KINDS
from srcgrad.tracing.trace import Refused
from srcgrad.tracing.tracer import Deferring, Tracer, as_tracer

PAIRS: Final = 1 << 16
"""The most pairs of levels of which something is computed."""
OPERATORS: Final[dict[Any, Callable[[Any, Any], Any]]] = {
    np.equal: operator.eq, np.not_equal: operator.ne, np.less: operator.lt, np.less_equal: operator.le,
    np.greater: operator.gt, np.greater_equal: operator.ge, np.add: operator.add, np.subtract: operator.sub,
    np.multiply: operator.mul, np.divide: operator.truediv, np.floor_divide: operator.floordiv,
    np.remainder: operator.mod,
}  # fmt: skip
"""By which NumPy's functions give numbers of objects too."""
COMPARISONS: Final = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
USED: Final = "texts, dates or records that a traced index picks are used in a way that is not known"


class Labelled(Deferring):
    """An array of ``levels``, by their places."""

    __slots__ = ("levels", "places")
    __srcgrad_unfinished__ = True

    def __init__(self, levels: Any, places: Any) -> None:
        self.levels, self.places = levels, places

    ndim: Any = property(lambda self: self.places.ndim)
    shape: Any = property(lambda self: self.places.shape)
    size: Any = property(lambda self: self.places.size)
    dtype: Any = property(lambda self: self.levels.dtype)
    T: Any = property(lambda self: Labelled(self.levels, self.places.T))

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Any:
        return iter([self[k] for k in range(len(self))])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str) and self.levels.dtype.names:
            return picked(self.levels[index], self.places)
        found = self.places[index]
        if not found.ndim and self.levels.dtype.kind in "UO":
            texts = self.levels.tolist()
            if all(map(is_known, texts)) and len(texts) <= MOST:
                return text_at(texts, found)
        return Labelled(self.levels, found)

    def astype(self, dtype: Any) -> Any:
        return picked(self.levels.astype(dtype), self.places)

    def copy(self, *_: Any) -> Labelled:
        return self

    def reshape(self, *shape: Any) -> Labelled:
        return Labelled(self.levels, self.places.reshape(*shape))

    def ravel(self) -> Labelled:
        return self.reshape(-1)

    flatten = ravel

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options or len(inputs) > 2:
            raise Refused(USED)
        if len(inputs) == 1:
            return picked(ufunc(self.levels), self.places)
        return combined(OPERATORS.get(ufunc, ufunc), *inputs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        if func is np.isin and len(args) == 2 and isinstance(args[0], Labelled) and not isinstance(args[1], Labelled):
            return picked(np.isin(self.levels, args[1], **kwargs), self.places)
        raise Refused(USED)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Refused(USED)

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise Refused(USED)

    __array__ = __bool__ = __contains__ = __setitem__ = __float__ = __int__ = __index__ = _refuse
    __str__ = __repr__ = __format__ = __hash__ = _refuse


def binary(function: Callable[[Any, Any], Any], turned: bool) -> Any:
    def method(self: Labelled, other: Any) -> Any:
        return combined(function, other, self) if turned else combined(function, self, other)

    return method


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Labelled, f"__{_name}__", binary(getattr(operator, _name), False))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
    setattr(Labelled, f"__{_name}__", binary(getattr(operator, _name), False))
    setattr(Labelled, f"__r{_name}__", binary(getattr(operator, _name), True))


def labelled(table: Any) -> Labelled:
    """All of an array of constants, or one of them."""
    if isinstance(table, (Tracer, Deferring)):
        if isinstance(table, Labelled):
            return table
        raise Refused(USED)
    array = np.asarray(table)
    items = array.reshape(-1)
    if array.dtype.hasobject:
        known = {item: place for place, item in enumerate(dict.fromkeys(items.tolist()))}
        levels = np.empty(len(known), object)
        levels[:] = list(known)
        places = np.array([known[item] for item in items.tolist()], np.int64)
    elif array.dtype.names:
        levels, places = items.copy(), np.arange(len(items))
    else:
        levels, places = np.unique(items, return_inverse=True, equal_nan=False)
    return Labelled(levels, constant_array(np.asarray(places, np.int64).reshape(array.shape)))


def picked(values: Any, places: Any) -> Any:
    """One of these constants for each place: numbers are a traced array."""
    if values.dtype.kind == "O" and all(isinstance(value, (bool, np.bool_)) for value in values.tolist()):
        values = values.astype(bool)  # what comparisons of objects give
    return Labelled(values, places) if values.dtype.kind in KINDS else constant_array(values)[places]


def combined(function: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    """A function of two numbers, element by element, of all pairs of levels.

    Raises:
        Refused: there are too many pairs, or one of the arrays is traced.
    """
    one, other = labelled(one), labelled(other)
    if len(one.levels) * len(other.levels) > PAIRS:
        if function in COMPARISONS and is_ordered(one.levels) and is_ordered(other.levels):
            _, ranks = np.unique(np.concatenate([one.levels, other.levels]), return_inverse=True)
            first, second = np.split(np.asarray(ranks, np.int64), [len(one.levels)])
            return function(constant_array(first)[one.places], constant_array(second)[other.places])
        raise Refused(f"{len(one.levels)} and {len(other.levels)} texts or dates are combined by traced indices")
    values = np.asarray(function(one.levels[:, None], other.levels[None]))
    if values.shape != (len(one.levels), len(other.levels)):
        raise Refused(USED)
    return picked(values.reshape(-1), one.places * len(other.levels) + other.places)


def is_ordered(levels: Any) -> bool:
    """Whether comparisons of these are those of their ranks."""
    return levels.dtype.kind in "US" or (levels.dtype.kind in "Mm" and not np.any(np.isnat(levels)))


def entry(mapping: dict[Any, Any], key: Labelled) -> Any:
    """What a dict has for a level that a traced place picks.

    Raises:
        Refused: it has nothing for some level, or no numbers.
    """
    levels = key.levels.tolist()
    if key.ndim or any(level not in mapping for level in levels):
        raise Refused("a dict is indexed by a text that a traced index picks, and has not all of them")
    values = [mapping[level] for level in levels]
    if not all(isinstance(value, (Tracer, float, int, np.number)) and np.ndim(value) == 0 for value in values):
        raise Refused("a dict is indexed by a text that a traced index picks, and holds other things than numbers")
    return as_tracer(np.stack([as_tracer(value) for value in values]))[key.places]
