"""Sparse matrices of ``scipy.sparse`` whose elements a program assigns one by one: ``lil_matrix``, ``dok_matrix``.

What is assigned is kept as a list, in order: a loop that assigns elements is one that appends to a list, and its places
are known where the matrix is read. SciPy's own ``dok_matrix`` of the numbers of values says which of a part goes where.
Importing this module imports SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import scipy.sparse

from srcgrad.errors import DTypeError, IndexingError, ShapeError, UnsupportedError
from srcgrad.tracing.conversion.calls import call, call_rule
from srcgrad.tracing.functions.registry import as_array, cast, concrete_array
from srcgrad.tracing.functions.scipy_sparse import UNTRACED, Sparse, added
from srcgrad.tracing.rows import row_of
from srcgrad.tracing.tracer import Tracer, contains_tracer, from_value

Change = tuple[tuple[Any, ...], Any, bool]
"""A key, a value, and whether it is added to what is there: `part_of_key` and `value_of` say how both are written."""
OF_THE_CLASS: Final = frozenset({"__init__", "__getitem__", "__setitem__", "__module__", "__doc__", "__annotations__"})


class Assembled(Sparse):
    """A matrix to whose elements a program assigns; whatever reads it is given what was assigned so far."""

    def __init__(self, shape: tuple[int, int], dtype: Any, original: Any, changes: Sequence[Change] = ()) -> None:
        self.shape, self.number, self.original, self.changes = shape, np.dtype(dtype), original, list(changes)
        self.matrix = issubclass(original, scipy.sparse.spmatrix)

    @classmethod
    def from_matrix(cls, thing: Any, original: Any) -> Assembled:
        """With the elements of another matrix."""
        found = Sparse.of(thing)
        known = not isinstance(thing, Sparse)
        made = cls(found.shape, found.dtype, original)
        made[found.rows, found.columns] = thing.tocsr().tocoo().data if known else found.data
        return made

    @property
    def dtype(self) -> Any:
        return self.number

    @property
    def format(self) -> str:
        return "dok" if "dok" in self.original.__name__ else "lil"

    def __setitem__(self, key: Any, value: Any) -> None:
        adds = isinstance(value, Increment)
        self.changes.append((key_of(key), value_of(value.value if adds else value), adds))

    def __getitem__(self, key: Any) -> Any:
        return self.whole()[key]

    def in_place(self) -> Increments:
        return Increments(self)

    def setdiag(self, values: Any, k: int = 0) -> None:
        """As many of them as there are, or the diagonal has."""
        size = min(self.shape[0] - max(-k, 0), self.shape[1] - max(k, 0))
        if size <= 0:
            raise IndexingError("k exceeds array dimensions")
        numbers: Any = as_array(values) if contains_tracer(values) else np.asarray(values)
        part = numbers[:size] if numbers.ndim else numbers
        places = np.arange(part.shape[0] if numbers.ndim else size)
        self[places + max(-k, 0), places + max(k, 0)] = part

    def copy(self) -> Assembled:
        return Assembled(self.shape, self.number, self.original, self.changes)

    def tolil(self, copy: bool = False) -> Assembled:
        return self.in_format("lil", copy)

    def todok(self, copy: bool = False) -> Assembled:
        return self.in_format("dok", copy)

    def in_format(self, name: str, copy: bool) -> Assembled:
        if self.format == name and not copy:
            return self
        return Assembled(self.shape, self.number, kind_of(name, self.matrix), self.changes)

    def whole(self) -> Any:
        """SciPy's own matrix where all of its elements are known."""
        return self.settled() if contains_tracer([value for _, value, _ in self.changes]) else self.known()

    def known(self) -> Any:
        places, chains, values = elements_of(self)
        found = self.original(self.shape, dtype=self.number)
        if len(places):
            numbers = np.zeros(len(places), self.number)
            np.add.at(numbers, chains[1], np.asarray(values, self.number)[chains[0]])
            found[places // self.shape[1], places % self.shape[1]] = numbers
        return found

    def settled(self) -> Sparse:
        """The matrix as it is now."""
        places, chains, values = elements_of(self)
        order, numbers = in_runs(values)
        if numbers.dtype.kind == "c" and self.number.kind != "c":
            raise DTypeError(
                f"complex numbers are assigned to elements of a sparse matrix of {self.number}",
                hint="pass dtype=complex where the matrix is made",
            )
        data = added(cast(numbers, self.number)[order[chains[0]]], chains[1], len(places))
        return Sparse(data, places // max(self.shape[1], 1), places % max(self.shape[1], 1), self.shape, self.matrix)


def of_the_whole(name: str) -> Any:
    """A method of `Sparse` or of SciPy's for the matrix as it is when it is read."""
    return lambda self, *args, **kwargs: call(getattr(self.whole(), name), *args, **kwargs)


for _name in sorted({*vars(Sparse), *dir(scipy.sparse.lil_matrix), *dir(scipy.sparse.dok_matrix)}):
    _member = getattr(Sparse, _name, None) or getattr(scipy.sparse.dok_matrix, _name, None)
    if _name in vars(Assembled) or _name in OF_THE_CLASS or (_name.startswith("_") and _name not in vars(Sparse)):
        continue
    if callable(_member):
        setattr(Assembled, _name, of_the_whole(_name))
    elif isinstance(_member, property):
        setattr(Assembled, _name, property(lambda self, name=_name: getattr(self.whole(), name)))  # type: ignore[misc]
for _name in ("data", "rows", "columns"):
    setattr(Assembled, _name, property(lambda self, name=_name: getattr(self.settled(), name)))  # type: ignore[misc]


class Part(NamedTuple):
    """A number of an array that is assigned."""

    whole: Tracer
    place: int


class Increments:
    """A matrix of which a part is changed by ``+=`` or the like: to add to elements these need not be read."""

    def __init__(self, matrix: Assembled) -> None:
        self.matrix = matrix

    def __getitem__(self, key: Any) -> Increment:
        return Increment(self.matrix, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.matrix[key] = value


class Increment:
    """What is added to a part of a matrix."""

    def __init__(self, matrix: Assembled, key: Any, value: Any = 0) -> None:
        self.matrix, self.key, self.value = matrix, key, value

    def __add__(self, other: Any) -> Increment:
        is_number = not isinstance(other, (Sparse, *UNTRACED)) and np.size(other) == 1
        if is_number and not all(np.ndim(part) == 0 and not isinstance(part, slice) for part in parts_of(self.key)):
            raise UnsupportedError("adding a nonzero scalar to a sparse matrix is not supported")  # as in SciPy
        return Increment(self.matrix, self.key, other)

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __getattr__(self, name: str) -> Any:
        return getattr(self.matrix[self.key], name)

    def __mul__(self, other: Any) -> Any:
        return self.matrix[self.key] * other

    def __truediv__(self, other: Any) -> Any:
        return self.matrix[self.key] / other

    def __pow__(self, other: Any) -> Any:
        return self.matrix[self.key] ** other


# --- how changes are written -----------------------------------------------------------------------------------------


def parts_of(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def key_of(key: Any) -> tuple[Any, ...]:
    """A key as numbers in tuples, which a loop may append to a list."""
    return tuple(map(part_of_key, parts_of(key)))


def part_of_key(part: Any) -> Any:
    if isinstance(part, slice):
        return ("slice", part.start, part.stop, part.step)
    if isinstance(part, Tracer) and part.dtype.kind in "iu":
        flat = part.reshape(-1)
        items = tuple(from_value(flat[k].read(), True, True) for k in range(part.size))
        return ("array", part.shape, items) if part.ndim else items[0]
    if not isinstance(part, (int, np.integer)):
        numbers = concrete_array(part, "a place in a sparse matrix")
        numbers = np.flatnonzero(numbers) if numbers.dtype == np.bool_ else numbers
        if numbers.dtype.kind not in "iu" and numbers.size:
            raise IndexingError(f"elements of a sparse matrix are found by whole numbers and slices, not by {part!r}")
        return ("array", numbers.shape, tuple(numbers.astype(np.int64).reshape(-1).tolist()))
    return int(part)


def value_of(given: Any) -> Any:
    """A number, or a shape and the numbers one after the other: traced, or in a tuple where all are known."""
    value: Any = given.toarray() if hasattr(type(given), "toarray") else given
    if not contains_tracer(value):
        known = np.asarray(value)
        return known.item() if known.size == 1 else (known.shape, tuple(known.reshape(-1).tolist()))
    numbers = as_array(value)
    if numbers.size == 1:
        return from_value(numbers.reshape(()).read(), True)
    return (numbers.shape, from_value(numbers.reshape(-1).read()))


def place(part: Any) -> Any:
    """What `part_of_key` has written, with its numbers known."""
    if isinstance(part, Tracer):
        return int(concrete_array(part, "a place in a sparse matrix"))
    if not isinstance(part, tuple):
        return part
    if part[0] == "slice":
        return slice(*map(place, part[1:]))
    return np.array(list(map(place, part[2])), np.int64).reshape(part[1])


# --- what they come to -----------------------------------------------------------------------------------------------


def elements_of(matrix: Assembled) -> tuple[Any, tuple[Any, Any], list[Any]]:
    """The places that have elements, in order; pairs of values and the elements they are added to; the values."""
    chains: dict[int, list[int]] = {}
    values: list[Any] = []
    for key, value, adds in matrix.changes:
        shape, numbers = value if isinstance(value, tuple) else ((), (value,))
        first, size = len(values), math.prod(shape)
        values += map(Part, [numbers] * size, range(size)) if shape and isinstance(numbers, Tracer) else numbers
        found = [place(part) for part in key]
        for position, label in labelled(matrix, found, shape, first):
            if adds and position in chains:
                chains[position].append(label)
            else:
                chains[position] = [label]
    for position, chain in list(chains.items()):
        kept = [label for label in chain if isinstance(values[label], (Tracer, Part)) or values[label] != 0]
        if kept:
            chains[position] = kept
        else:
            del chains[position]
    places = np.array(sorted(chains), np.int64)
    pairs = [(label, k) for k, position in enumerate(places.tolist()) for label in chains[position]]
    first_of, second_of = np.array(pairs, np.int64).reshape(-1, 2).T
    return places, (first_of, second_of), values


def labelled(matrix: Assembled, key: list[Any], shape: tuple[int, ...], first: int) -> list[tuple[int, int]]:
    """The places that a key means, and the number of the value that each is given; the last where there are more."""
    height, width = matrix.shape
    if len(key) == 2 and isinstance(key[0], int) and isinstance(key[1], int) and not shape:
        row, column = key
        if not (-height <= row < height and -width <= column < width):
            raise IndexingError(f"index ({row}, {column}) is out of bounds for a matrix of shape {matrix.shape}")
        return [(row % height * width + column % width, first)]
    probe = scipy.sparse.dok_matrix(matrix.shape, dtype=np.int64)
    try:
        probe[tuple(key)] = np.arange(first + 1, first + 1 + math.prod(shape)).reshape(shape)
    except ValueError as error:
        raise ShapeError(f"an array of shape {shape} is assigned to a part of a sparse matrix: {error}") from None
    except IndexError as error:
        raise IndexingError(str(error)) from None
    return [(int(row) * width + int(column), int(label) - 1) for (row, column), label in probe.items()]


def in_runs(values: Sequence[Any]) -> tuple[Any, Any]:
    """The place of each value in an array of all, where those that are rows of one array are next to each other."""
    numbers = [k for k, value in enumerate(values) if not isinstance(value, Part)]
    found = {k: row_of(values[k]) for k in numbers}
    first: dict[int, int] = {}
    for k, it in found.items():
        first.setdefault(0 if it is None else id(it.source.storage), k)
    keys = {k: (first[0], k) if it is None else (first[id(it.source.storage)], it.place) for k, it in found.items()}
    order = sorted(numbers, key=lambda k: (keys[k], k))
    parts = [as_array([values[k] for k in order])] if order else []
    by_size: dict[int, dict[int, Tracer]] = {}
    members: dict[int, list[int]] = {}
    for k, value in enumerate(values):
        if isinstance(value, Part):
            by_size.setdefault(len(value.whole), {})[id(value.whole)] = value.whole
            members.setdefault(id(value.whole), []).append(k)
    for arrays in by_size.values():
        parts.append(as_array(list(arrays.values())).reshape(-1))
        order += [k for name in arrays for k in members[name]]
    place = np.empty(len(values), np.int64)
    place[order] = np.arange(len(values))
    return place, np.concatenate(parts) if parts else as_array(np.zeros(0))


# --- making them -----------------------------------------------------------------------------------------------------


def kind_of(name: str, matrix: bool) -> Any:
    return getattr(scipy.sparse, f"{name}_{'matrix' if matrix else 'array'}")


def maker(original: Any) -> Callable[..., Any]:
    def rule(arg1: Any, *args: Any, **kwargs: Any) -> Assembled:
        if isinstance(arg1, Sparse) or contains_tracer(arg1):
            made = arg1 if isinstance(arg1, Sparse) else call(kind_of("csr", True), arg1)
            return Assembled.from_matrix(made, original)
        found = original(arg1, *args, **kwargs)
        if found.nnz == 0 and found.ndim == 2:
            return Assembled(found.shape, found.dtype, original)
        return Assembled.from_matrix(found, original)

    return rule


def converter(name: str) -> Callable[..., Any]:
    def rule(matrix: Any, copy: bool = False) -> Assembled:
        return Assembled.from_matrix(matrix, kind_of(name, isinstance(matrix, (scipy.sparse.spmatrix, Sparse))))

    return rule


for _format in ("lil", "dok"):
    for _kind in ("matrix", "array"):
        _original = getattr(scipy.sparse, f"{_format}_{_kind}")
        call_rule(_original)(maker(_original))
    for _name in ("csr", "csc", "coo", "dia", "bsr"):
        call_rule(getattr(getattr(scipy.sparse, f"{_name}_array"), f"to{_format}"))(converter(_format))
