"""Sorting by the functions that NumPy has for arrays of its dtypes, in vectors where the processor has them.

They are not stable, and may change the signs of zeros, of which the right ones are written afterwards. Positions are
sorted as the low bits of whole numbers whose high bits are the keys, so all of these are different.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import BOOL, Number
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.body import UINT8, Body, Loop, split
from srcgrad.backends.llvm.steps.ordering import rank
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation
from srcgrad.ir.types import DTYPES, INT64, DType, dtype_name

UINT64: Final = np.dtype(np.uint64)
_FUNCTIONS_OF_DTYPE: Final = 365
"""Where NumPy's table for extensions has the function that gives the functions of a dtype."""
_COLUMNS: Final = 8
"""How many columns are copied together."""
_SORT: Final = 33
"""Where among these is the one that sorts, after 21 casts and 12 others: part of the interface of NumPy 2."""


@cache
def sorter(dtype: DType) -> int | None:
    """The address of ``int sort(void *numbers, npy_intp count, void *unused)``; None where it is not found."""
    if np.lib.NumpyVersion(np.__version__) < "2.0.0" or np.lib.NumpyVersion(np.__version__) >= "3.0.0":
        return None
    if ctypes.sizeof(ctypes.c_void_p) != 8 or not dtype.isnative:
        return None
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    table = ctypes.cast(get(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    functions_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(table[_FUNCTIONS_OF_DTYPE])
    found = ctypes.cast(functions_of(dtype), ctypes.POINTER(ctypes.c_void_p))[_SORT]
    return int(found) if found and _does_sort(found, dtype) else None


def sorter_of(name: str) -> int | None:
    """The same by the dtype's name."""
    return sorter(DTYPES[name])


def _does_sort(address: int, dtype: DType) -> bool:
    """Whether a function sorts some numbers, some of them negative."""
    function = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)(address)
    numbers = (np.arange(300) * 7919 % 251 - 100).astype(dtype)
    known = np.sort(numbers)
    return function(numbers.ctypes.data, numbers.size, None) == 0 and np.array_equal(numbers, known)


class Rows:
    """The rows of an operand along one axis, taken one by one, and sorted."""

    def __init__(self, operation: Operation, name: str, target: Target) -> None:
        self.w = w = Body(operation, name, target)
        self.dtype = w.types[0].dtype
        self.outer, (self.size,), self.inner = split(w.types[0].static_shape, operation.attrs["axis"])
        self.row = "null"
        """Where the elements of a row are, one after the other."""

    def can(self, sorted_as: DType) -> bool:
        """Whether there is a function, and something to sort."""
        if not scalars.is_register(self.dtype) or self.dtype.kind == "c" or 0 in self.w.unread:
            return False
        return self.outer * self.size * self.inner > 0 and self.bits <= 32 and sorter(sorted_as) is not None

    def call(self, dtype: DType, place: str, count: Number | int) -> None:
        w, name = self.w, f"numpy_sort_{dtype_name(dtype)}"
        address = sorter(dtype)
        assert address is not None
        w.symbols[name] = address
        w.e.declarations.add(f"declare i32 @{name}(ptr, i64, ptr)")
        text = count.text if isinstance(count, Number) else str(count)
        w.e.emit(f"call i32 @{name}(ptr {place}, i64 {text}, ptr null)")

    def key(self, pointer: str, place: Number, lanes: int = 1) -> Number:
        """Whole numbers in the order of the elements; zeros are equal, and so are nans."""
        return rank(self.w.e, self.w.load(pointer, place, UINT8 if self.dtype == BOOL else self.dtype, lanes))

    def rows(self, row: Callable[[Number, Number, str], None], itemsize: int) -> None:
        """``row(a, b, work)`` for each row: the b-th of those side by side in the a-th block.

        ``work``: where a copy of it is that may change, or "". Columns are copied some at a time, as they lie in the
        same cache lines.
        """
        w, size = self.w, self.size
        if self.inner == 1:
            w.each(self.outer, lambda a: row(a, w.i64(0), ""))
            return
        room = w.take_scratch(min(_COLUMNS, self.inner) * size * itemsize)

        def columns(a: Number, b: Number, count: int) -> None:
            first = self.first(a, b)

            def copy(k: Number) -> None:
                place = w.plus(first, w.times(k, self.inner))
                for column in range(count):
                    w.put(w.plus(k, column * size), w.raw(0, w.plus(place, column)), itemsize, room)

            w.each(size, copy)
            for column in range(count):
                row(a, w.plus(b, column), w.address(room, column * size, itemsize))

        w.each(self.outer, lambda a: w.strip(self.inner, _COLUMNS, lambda b, n: columns(a, b, n)))

    # --- numbers -------------------------------------------------------------------------------------
    def numbers(self) -> Step:
        w, itemsize = self.w, self.dtype.itemsize

        def row(a: Number, b: Number, work: str) -> None:
            first = self.first(a, b)
            self.row = work or w.address("%out0", first, itemsize)
            if not work:
                w.copy(self.row, w.address("%in0", first, itemsize), self.size * itemsize)
            signed = self.some_zero_has_a_sign() if self.dtype.kind == "f" else None
            self.call(self.dtype, self.row, self.size)
            if signed is not None:
                w.when(signed, lambda: self.order_zeros(first))
            if work:
                w.each(self.size, lambda k: w.write(self.place(first, k), w.load(work, k, self.dtype)))

        self.rows(row, itemsize)
        return w.finish()

    def first(self, a: Number, b: Number) -> Number:
        """Where the first element of a row is."""
        return self.w.plus(self.w.times(a, self.size * self.inner), b)

    def place(self, first: Number, k: Number) -> Number:
        return self.w.plus(first, self.w.times(k, self.inner))

    def some_zero_has_a_sign(self) -> Number:
        w, e, lanes = self.w, self.w.e, self.w.lanes_of(self.dtype)
        sign = int(np.iinfo(f"i{self.dtype.itemsize}").min)

        def follow(lanes: int) -> Loop:
            def trip(k: Number, carried: list[Number]) -> list[Number]:
                bits = e.bits(w.load(self.row, k, self.dtype, lanes))
                return [e.binary("or", carried[0], e.compare("eq", bits, sign))]

            return trip

        whole = self.size // lanes * lanes
        found = w.loop(whole, follow(lanes), [e.constant(False, BOOL, lanes)], 0, lanes)
        return w.loop(self.size, follow(1), [e.any(found[0])], whole)[0]

    def order_zeros(self, first: Number) -> None:
        """Zeros as they follow each other in the operand."""
        w, e = self.w, self.w.e

        def halve(state: list[Number]) -> list[Number]:
            low, high = state
            middle = e.integer("lshr", w.plus(low, high), w.i64(1))
            negative = e.compare("slt", self.key(self.row, middle), 0)
            return [e.select(negative, w.plus(middle, 1), low), e.select(negative, high, middle)]

        low, _ = w.while_([w.i64(0), w.i64(self.size)], lambda state: e.compare("slt", state[0], state[1]), halve)

        def again(k: Number, carried: list[Number]) -> list[Number]:
            place = self.place(first, k)
            zero = e.compare("eq", self.key("%in0", place), 0)
            w.when(zero, lambda: w.store(self.row, carried[0], w.load("%in0", place, self.dtype)))
            return [w.plus(carried[0], e.convert("zext", zero, INT64))]

        w.loop(self.size, again, [low])

    # --- positions -----------------------------------------------------------------------------------
    def positions(self) -> Step:
        w, itemsize = self.w, self.dtype.itemsize
        packed = w.take_scratch(8 * self.size)

        def row(a: Number, b: Number, work: str) -> None:
            first = self.first(a, b)
            self.row = work or w.address("%in0", first, itemsize)
            self.order(packed)

            def write(k: Number, lanes: int) -> None:
                found = w.e.integer("and", w.load(packed, k, INT64, lanes), self.mask)
                w.write(self.place(first, k), found)

            w.strip(self.size, 1 if work else w.lanes_of(INT64), write)

        self.rows(row, itemsize)
        return w.finish()

    @property
    def bits(self) -> int:
        """How many bits a position has."""
        return max(1, (self.size - 1).bit_length())

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1

    def order(self, packed: str) -> None:
        """Sort a row's positions by their keys above the least, as far as there is room for their bits.

        Where there is none for the lowest, positions whose other bits are equal are sorted by these.
        """
        w, e = self.w, self.w.e
        shift, equal, lowest = w.i64(0), w.i64(0), self.least_key()
        if self.dtype.itemsize == 8:
            lowest, most, differing = self.limits()
            shift = e.integer("sub", w.i64(self.bits), self.zeros("ctlz", e.integer("sub", most, lowest)))
            shift = e.select(e.compare("slt", shift, 0), w.i64(0), shift)
            equal = self.zeros("cttz", differing)

        def pack(k: Number, lanes: int) -> None:
            key = self.distance(k, lanes, lowest)
            high = e.integer("shl", e.integer("lshr", key, e.splat(shift, lanes)), self.bits)
            w.store(packed, k, e.integer("or", high, self.counted(k, lanes)))

        w.strip(self.size, w.lanes_of(INT64), pack)
        self.call(UINT64, packed, self.size)
        if self.dtype.itemsize == 8:

            def lowest_bits() -> None:
                w.when(self.has_runs(packed), lambda: self.order_lowest(packed, shift, lowest))

            w.when(e.compare("sgt", shift, equal), lowest_bits)

    def zeros(self, which: str, value: Number) -> Number:
        """The leading or trailing zeros of a whole number; 64 of 0."""
        e = self.w.e
        e.declarations.add(f"declare i64 @llvm.{which}.i64(i64, i1)")
        return Number(e.emit(f"call i64 @llvm.{which}.i64(i64 {value.text}, i1 false)"), INT64, 1)

    def counted(self, k: Number, lanes: int) -> Number:
        """k and the numbers after it."""
        if lanes == 1:
            return k
        steps = Number(f"<{', '.join(f'i64 {j}' for j in range(lanes))}>", INT64, lanes)
        return self.w.e.integer("add", self.w.e.splat(k, lanes), steps)

    def least_key(self) -> Number:
        """The least key that there may be, of less than 8 bytes."""
        kind = np.dtype(f"i{self.dtype.itemsize}") if self.dtype.kind == "f" else self.dtype
        return self.w.i64(int(np.iinfo(kind).min) if kind.kind == "i" else 0)

    def distance(self, k: Number, lanes: int, lowest: Number) -> Number:
        """How far keys are above the lowest, in 64 bits without a sign."""
        e, key = self.w.e, self.key(self.row, k, lanes)
        if key.dtype.itemsize < 8:
            key = e.convert("sext" if key.dtype.kind == "i" else "zext", key, INT64)
        return e.integer("sub", key._replace(dtype=INT64), e.splat(lowest, lanes))

    def limits(self) -> tuple[Number, Number, Number]:
        """The least and the largest key of a row, of 8 bytes, and the bits in which keys differ."""
        w, e, lanes = self.w, self.w.e, self.w.lanes_of(INT64)
        whole = self.size // lanes * lanes
        start = self.key(self.row, w.i64(0))

        def joined(one: list[Number], other: list[Number]) -> list[Number]:
            least, most = scalars.extreme(e, one[0], other[0], False), scalars.extreme(e, one[1], other[1], True)
            return [least, most, e.integer("or", one[2], other[2])]

        def follow(lanes: int) -> Loop:
            def trip(k: Number, carried: list[Number]) -> list[Number]:
                key = self.key(self.row, k, lanes)
                return joined(carried, [key, key, e.integer("xor", key, e.splat(start, lanes))])

            return trip

        same = e.integer("xor", start, start)
        state = w.loop(whole, follow(lanes), [e.splat(value, lanes) for value in (start, start, same)], 0, lanes)
        found = [start, start, same]
        for lane in range(lanes if whole else 0):
            found = joined(found, [self.lane(value, lane) for value in state])
        found = w.loop(self.size, follow(1), found, whole)
        return found[0]._replace(dtype=INT64), found[1]._replace(dtype=INT64), found[2]._replace(dtype=INT64)

    def lane(self, value: Number, lane: int) -> Number:
        if value.lanes == 1:
            return value
        text = self.w.e.emit(f"extractelement {value.type} {value.text}, i64 {lane}")
        return value._replace(text=text, lanes=1)

    def order_lowest(self, packed: str, shift: Number, lowest: Number) -> None:
        """Sort runs of equal high bits by what they have not of the keys, where they are not in order so."""
        w, e = self.w, self.w.e

        def high(k: Number) -> Number:
            return e.integer("lshr", w.load(packed, k, INT64), self.bits)

        def low(k: Number) -> tuple[Number, Number]:
            """What has been shifted out, and the position."""
            place = e.integer("and", w.load(packed, k, INT64), self.mask)
            key = self.distance(place, 1, lowest)
            return e.integer("sub", key, e.integer("shl", e.integer("lshr", key, shift), shift)), place

        def ends(k: Number, carried: list[Number]) -> list[Number]:
            start, before = carried
            last = e.compare("eq", k, self.size)
            now = high(e.select(last, w.i64(0), k))
            over = e.binary("or", last, e.compare("ne", now, before))
            several = e.compare("sgt", e.integer("sub", k, start), 1)
            w.when(e.binary("and", over, several), lambda: ordered(start, k))
            return [e.select(over, k, start), now]

        def ordered(start: Number, stop: Number) -> None:
            def falls(k: Number, carried: list[Number]) -> list[Number]:
                now, _ = low(k)
                return [now, e.binary("or", carried[1], e.compare("ult", now, carried[0]))]

            def pack(k: Number) -> None:
                bits, place = low(k)
                w.store(packed, k, e.integer("or", e.integer("shl", bits, self.bits), place))

            def again() -> None:
                w.each(stop, pack, start)
                self.call(UINT64, w.address(packed, start, 8), e.integer("sub", stop, start))

            begin = [low(start)[0], e.constant(False, BOOL, 1)]
            w.when(w.loop(stop, falls, begin, w.plus(start, 1))[1], again)

        w.loop(w.i64(self.size + 1), ends, [w.i64(0), high(w.i64(0))], 1)

    def has_runs(self, packed: str) -> Number:
        """Whether neighbours are equal but for their positions."""
        w, e, lanes = self.w, self.w.e, self.w.lanes_of(INT64)

        def follow(lanes: int) -> Loop:
            def trip(k: Number, carried: list[Number]) -> list[Number]:
                pair = [w.load(packed, w.plus(k, j), INT64, lanes) for j in range(2)]
                differing = e.integer("lshr", e.integer("xor", *pair), self.bits)
                return [e.binary("or", carried[0], e.compare("eq", differing, 0))]

            return trip

        whole = (self.size - 1) // lanes * lanes
        found = w.loop(whole, follow(lanes), [e.constant(False, BOOL, lanes)], 0, lanes)
        return w.loop(self.size - 1, follow(1), [e.any(found[0])], whole)[0]


def sort(operation: Operation, name: str, target: Target) -> Step | None:
    """``sort`` of real numbers."""
    found = Rows(operation, name, target)
    return found.numbers() if found.can(found.dtype) else None


def argsort(operation: Operation, name: str, target: Target) -> Step | None:
    """``argsort`` of real numbers."""
    found = Rows(operation, name, target)
    return found.positions() if found.can(UINT64) else None


WRITERS: Final[dict[str, StepWriter]] = {"sort": sort, "argsort": argsort}
