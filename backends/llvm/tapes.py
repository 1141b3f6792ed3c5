"""Tapes that a kernel is given or gives: what a loop leaves in memory for its derivative, which another program is.

A tape is two words to machine code: where its elements begin, and how many there are, or -1 where one element is at
every index; an element that is a tape is such words itself. So a kernel takes and gives an array of two whole numbers
for each (`WORDS`), and one more where it gives tapes: its first word is the list of the memory that these lie in, which
a `Keeper` frees with the last of them. To Python a tape is a `Tape`, a sequence as the lists of the NumPy backend are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcgrad.backends.llvm import native
from srcgrad.backends.llvm.entry import given_types, laid
from srcgrad.backends.numpy.helpers import filled_tape
from srcgrad.ir.types import ArrayType, TapeType


class Keeper:
    """The memory of the tapes that one call gives: its blocks, and what may lie elsewhere."""

    __slots__ = ("elsewhere", "first")

    def __init__(self, first: int, elsewhere: Any) -> None:
        self.first = first
        self.elsewhere = elsewhere

    def __del__(self) -> None:
        native.POOL.give_all(self.first)


class _Memory:
    """Elements in memory as NumPy asks for them."""

    __slots__ = ("__array_interface__", "keeper")

    def __init__(self, place: int, shape: tuple[int, ...], dtype: np.dtype[Any], keeper: Any) -> None:
        self.keeper = keeper
        self.__array_interface__ = {"version": 3, "data": (place, True), "shape": shape, "typestr": dtype.str}


class Tape(Sequence[Any]):
    """A tape in memory that it shares; nobody writes to it."""

    __slots__ = ("elements", "keeper", "type", "words")

    def __init__(self, type: TapeType, words: np.ndarray[Any, Any], keeper: Any) -> None:
        self.type = type
        self.words = words
        self.keeper = keeper
        self.elements: np.ndarray[Any, Any] | None = None

    def __len__(self) -> int:
        return int(self.words[1])

    def __getitem__(self, index: Any) -> Any:
        if self.elements is None:
            self.elements = elements_at(self.type.element, int(self.words[0]), len(self), self.keeper)
        element, found = self.type.element, self.elements[index]
        return shown(element, found, self.keeper) if isinstance(element, TapeType) else found

    def __reduce__(self) -> tuple[Any, ...]:
        return list, ([*self],)


def elements_at(type: ArrayType, place: int, count: int, keeper: Any) -> np.ndarray[Any, Any]:
    laid_out = laid(type)
    shape = (count, *laid_out.static_shape)
    if 0 in shape:
        return np.empty(shape, laid_out.dtype)
    return np.asarray(_Memory(place, shape, laid_out.dtype, keeper))


def shown(type: TapeType, words: np.ndarray[Any, Any], keeper: Any) -> Any:
    """A tape in memory, for Python."""
    if words[1] >= 0:
        return Tape(type, words, keeper)
    (only,) = elements_at(type.element, int(words[0]), 1, keeper)
    return filled_tape(shown(type.element, only, keeper) if isinstance(type.element, TapeType) else only)


def in_memory(type: TapeType, tape: Any) -> Tape:
    """A tape in memory; of one that Python made a copy."""
    if isinstance(tape, Tape):
        return tape
    element = type.element
    items = tape if isinstance(tape, list) else [tape[0]]
    inner = [in_memory(element, item) for item in items] if isinstance(element, TapeType) else None
    words = items if inner is None else [item.words for item in inner]
    laid_out = laid(element)
    elements = np.empty((len(items), *laid_out.static_shape), laid_out.dtype)
    for position, item in enumerate(words):
        elements[position] = item
    count = len(items) if isinstance(tape, list) else -1
    return Tape(type, np.array([elements.ctypes.data, count], np.int64), (elements, inner))


def tapes_of(types: Sequence[ArrayType]) -> list[tuple[int, TapeType]]:
    """Which are tapes, and of which type."""
    return [(k, type) for k, type in enumerate(types) if isinstance(type, TapeType)]


def kernel(
    library: native.Library, name: str, params: Sequence[ArrayType], inputs: Sequence[int],
    outputs: Sequence[ArrayType], results: Sequence[int], as_tuple: bool,
    otherwise: Callable[..., Any] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """`native.kernel`, of which parameters and results may be tapes."""
    if not any(isinstance(type, TapeType) for type in (*params, *outputs)):
        return native.kernel(library, name, params, inputs, outputs, results, as_tuple, otherwise)
    taken, made = tapes_of(params), tapes_of([outputs[k] for k in results])
    given = given_types(outputs)
    more = range(len(outputs), len(given))

    def in_python(*arguments: Any) -> Any:
        """What NumPy gives, as a list: its tapes are Python's."""
        assert otherwise is not None
        seen = [*arguments]
        for k, tape in taken:
            seen[k] = shown(tape, arguments[k], None)
        found = otherwise(*seen)
        return [*found] if as_tuple or len(results) > 1 else [found]

    run = native.kernel(
        library, name, [*map(laid, params)], inputs, given, [*results, *more], True,
        None if otherwise is None else in_python,
    )  # fmt: skip

    def call(*arguments: Any) -> Any:
        laid_out = [*arguments]
        tapes = [in_memory(kind, arguments[k]) for k, kind in taken]
        for (k, _), tape in zip(taken, tapes, strict=True):
            laid_out[k] = tape.words
        answer = run(*laid_out)
        found = [*answer] if type(answer) in (tuple, list) else [answer]  # machine code gives one result as it is
        if made and type(answer) is tuple:
            keeper = Keeper(int(found.pop()[0]), (library, tapes))
            for k, kind in made:
                found[k] = shown(kind, found[k], keeper)
        return found[0] if len(found) == 1 and not as_tuple else tuple(found)

    return call
