"""Sorting by merging, and search: stable, nan last, complex numbers by their real parts first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import Emitter, Number, scalar_name
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.body import Body, parts_of, split
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation
from srcgrad.ir.types import INT64, DType, dtype_name, real_dtype

RUN: Final = 16
"""The length of what is sorted by insertion, before runs are merged."""
Parts = Sequence[Number]


def _both(w: Body, a: Number, b: Number) -> Number:
    return w.e.binary("and", a, b)


def _either(w: Body, a: Number, b: Number) -> Number:
    return w.e.binary("or", a, b)


def _is_nan(w: Body, x: Number) -> Number:
    return w.e.compare("uno", x, x)


def _greater(w: Body, a: Number, b: Number) -> Number:
    return scalars.TABLE["greater"](w.e, a, b)


def rank(e: Emitter, x: Number, nan_last: bool = True) -> Number:
    """A whole number that is ordered as x is: both zeros are 0, and nan is the largest number, or else the least.

    Comparing floats and choosing by it takes several times as long.
    """
    if x.dtype.kind != "f":
        return x
    bits = e.bits(x)
    most = int(np.iinfo(bits.dtype).max)
    size, sign = e.integer("and", bits, most), e.integer("ashr", bits, 8 * bits.dtype.itemsize - 1)
    value = e.integer("sub", e.integer("xor", size, sign), sign)
    infinity = int(np.array(np.inf, x.dtype).view(bits.dtype))
    return e.select(e.compare("sgt", size, infinity), most if nan_last else -most - 1, value)


def less(w: Body, a: Parts, b: Parts) -> Number:
    """Whether a stands before b, of whole numbers or of the parts of complex ones: NumPy's order."""
    e = w.e
    if a[0].dtype.kind != "f":
        return _greater(w, b[0], a[0])
    if len(a) == 1:
        return _either(w, _greater(w, b[0], a[0]), _both(w, _is_nan(w, b[0]), e.compare("ord", a[0], a[0])))
    before, after = less(w, a[:1], b[:1]), less(w, b[:1], a[:1])
    # A nan in one part alone stands after all numbers without, whatever the other part is.
    own, other, reals = _is_nan(w, a[1]), _is_nan(w, b[1]), e.compare("ord", a[0], b[0])
    settled = _both(w, before, _either(w, e.invert(reals), _either(w, e.invert(own), other)))
    turned = _both(w, after, _both(w, reals, _both(w, other, e.invert(own))))
    tied = _both(w, e.invert(_either(w, before, after)), less(w, a[1:], b[1:]))
    return _either(w, settled, _either(w, turned, tied))


def keys_of(w: Body, parts: Parts) -> Parts:
    """What `less` compares: the rank of a real number."""
    return parts if len(parts) == 2 else [rank(w.e, parts[0])]


# --- sorting ------------------------------------------------------------------------------------------------------


class _Sort:
    """A function that sorts the first half of ``%work``, items of which the keys are known: what it returns is where.

    Runs of `RUN` items are sorted by insertion and merged from one half to the other, by twos.
    """

    def __init__(self, w: Body, item: DType, key: Callable[[Body, Number], Parts]) -> None:
        self.w, self.item = w, item
        self.key = key
        self.size = Number("%n", INT64, 1)

    def text(self, name: str) -> str:
        w = self.w
        runs = w.e.binary("udiv", w.plus(self.size, RUN - 1), RUN)
        w.each(runs, self.insert)
        _, offset = w.while_(
            [w.i64(RUN), w.i64(0)], lambda state: w.e.compare("slt", state[0], self.size), self.merge_all
        )
        head = f"define internal i64 @{name}(ptr %keys, ptr %work, i64 %n) nounwind {{"
        return "\n".join([head, "entry:", *w.e.lines, f"  ret i64 {offset.text}", "}", ""])

    def load(self, place: Number) -> Number:
        return self.w.load("%work", place, self.item)

    def smaller(self, a: Number, b: Number) -> Number:
        return self.w.e.select(self.w.e.compare("slt", a, b), a, b)

    def insert(self, run: Number) -> None:
        w = self.w
        start = w.times(run, RUN)
        end = self.smaller(w.plus(start, RUN), self.size)

        def place(k: Number) -> None:
            item = self.load(k)
            key = self.key(w, item)

            def before(j: Number) -> Number:
                """The item before j, or any where there is none."""
                inside = w.e.compare("sgt", j, start)
                return self.load(w.e.select(inside, w.plus(j, -1), start))

            def goes_on(state: list[Number]) -> Number:
                inside = w.e.compare("sgt", state[0], start)
                return _both(w, inside, less(w, key, self.key(w, before(state[0]))))

            def step(state: list[Number]) -> list[Number]:
                w.store("%work", state[0], before(state[0]))
                return [w.plus(state[0], -1)]

            (free,) = w.while_([k], goes_on, step)
            w.store("%work", free, item)

        w.each(end, place, w.plus(start, 1))

    def merge_all(self, state: list[Number]) -> list[Number]:
        w, (width, source) = self.w, state
        target = w.e.integer("sub", self.size, source)
        pair = w.times(width, 2)
        count = w.e.binary("udiv", w.plus(self.size, w.plus(pair, -1)), pair)
        w.each(count, lambda k: self.merge(w.times(k, pair), width, source, target))
        return [pair, target]

    def merge(self, low: Number, width: Number, source: Number, target: Number) -> None:
        w, e = self.w, self.w.e
        middle = self.smaller(w.plus(low, width), self.size)
        high = self.smaller(w.plus(middle, width), self.size)
        last = w.plus(high, -1)

        def take(k: Number, state: list[Number]) -> list[Number]:
            left, right = state
            items = [self.load(w.plus(source, self.smaller(j, last))) for j in (left, right)]
            sooner = less(w, *[self.key(w, item) for item in reversed(items)])
            runs_out = e.compare("sge", right, high)
            is_left = _both(w, e.compare("slt", left, middle), _either(w, runs_out, e.invert(sooner)))
            w.store("%work", w.plus(target, k), e.select(is_left, items[0], items[1]))
            taken = e.convert("zext", is_left, INT64)
            return [w.plus(left, taken), w.plus(right, e.integer("sub", w.i64(1), taken))]

        w.loop(high, take, [low, middle], low)


def _direct(w: Body, item: Number) -> Parts:
    return keys_of(w, [item])


def _by_key(dtype: DType) -> Callable[[Body, Number], Parts]:
    """The key of a position: the rank that `keys` holds, or the parts of a complex number."""
    part, count = real_dtype(dtype), parts_of(dtype)
    kept = np.dtype(f"i{dtype.itemsize}") if dtype.kind == "f" else part

    def key(w: Body, item: Number) -> Parts:
        first = w.times(item, count)
        return [w.load("%keys", w.plus(first, k), kept) for k in range(count)]

    return key


def _call(w: Body, dtype: DType, positions: bool, keys: str, work: str, size: int) -> Number:
    """Sort the items at ``work``: the numbers of a dtype, or the positions of such at ``keys``."""
    name = f"srcgrad_{'argsort' if positions else 'sort'}_{dtype_name(dtype)}"
    if name not in w.e.definitions:
        helper = Body(w.operation, name, w.target)
        item = INT64 if positions else dtype
        w.e.definitions[name] = _Sort(helper, item, _by_key(dtype) if positions else _direct).text(name)
    return Number(w.e.emit(f"call i64 @{name}(ptr {keys}, ptr {work}, i64 {size})"), INT64, 1)


def ordered(operation: Operation, name: str, target: Target) -> Step | None:
    """``sort`` and ``argsort``; complex numbers are sorted by their positions."""
    w = Body(operation, name, target)
    dtype = w.types[0].dtype
    if not scalars.is_register(real_dtype(dtype)):
        return None
    shape = w.types[0].static_shape
    outer, (size,), inner = split(shape, operation.attrs["axis"])
    if 0 in shape:
        return w.finish()
    positions, bytes_of_row = operation.op.name == "argsort", size * dtype.itemsize
    by_position = positions or dtype.kind == "c"
    keys = w.take_scratch(bytes_of_row) if by_position else "null"
    work = w.take_scratch(2 * size * (8 if by_position else dtype.itemsize))
    moved = keys if by_position else work

    def point(indices: list[Number]) -> None:
        a, b = indices
        first = w.plus(w.times(a, size * inner), b)

        def place(k: Number) -> Number:
            return w.plus(first, w.times(k, inner))

        if positions and dtype.kind == "f":
            w.each(size, lambda k: w.store(keys, k, rank(w.e, w.read(0, place(k)))))
        elif inner == 1 and 0 not in w.unread:
            w.copy(moved, w.address("%in0", first, dtype.itemsize), bytes_of_row)
        else:
            w.each(size, lambda k: w.put(k, w.raw(0, place(k)), dtype.itemsize, moved))
        if by_position:
            w.each(size, lambda k: w.store(work, k, k))
        offset = _call(w, dtype, by_position, keys, work, size)

        def write(k: Number) -> None:
            source = w.plus(offset, k)
            if positions:
                w.write(place(k), w.load(work, source, INT64))
            elif by_position:
                item = w.times(w.load(work, source, INT64), 2)
                w.write_parts(place(k), [w.load(keys, w.plus(item, j), real_dtype(dtype)) for j in range(2)])
            else:
                w.write(place(k), w.load(work, source, dtype))

        w.each(size, write)

    w.nest((outer, inner), point)
    return w.finish()


# --- search -------------------------------------------------------------------------------------------------------


def searchsorted(operation: Operation, name: str, target: Target) -> Step | None:
    """Binary search of each value; of several side by side where keys are one number."""
    w = Body(operation, name, target)
    nodes = w.types[0]
    if not scalars.is_register(real_dtype(nodes.dtype)):
        return None
    size, examples = nodes.static_shape[-1], math.prod(nodes.static_shape[:-1])
    each = w.types[1].size // examples if examples else 0
    together = nodes.dtype.kind in "iuf" and nodes.dtype.itemsize >= 4 and size > 0 and 0 not in w.unread
    lanes = w.lanes_of(INT64, nodes.dtype) if together else 1
    side_by_side = each // lanes * lanes if together else 0

    def some(example: Number, k: Number, lanes: int) -> None:
        place = w.plus(w.times(example, each), k)
        w.write(place, _many_places(w, w.read(1, place, lanes), w.times(example, size), size))

    def search(example: Number) -> None:
        w.each(side_by_side, lambda k: some(example, k, lanes), step=lanes)
        if together:
            w.each(each, lambda k: some(example, k, 1), side_by_side)
        else:
            w.each(each, lambda k: _place(w, w.plus(w.times(example, each), k), w.times(example, size), size))

    w.each(examples, search)
    return w.finish()


def _is_before(w: Body, node: Parts, value: Parts) -> Number:
    """Whether a value belongs behind a node."""
    return less(w, node, value) if w.operation.attrs["side"] == "left" else w.e.invert(less(w, value, node))


def _many_places(w: Body, values: Number, first: Number, size: int) -> Number:
    """Where values belong among the nodes from ``first`` on: the same halves of as many nodes are chosen for each.

    The steps are known, and so there is no branch, of which every second one would be foreseen wrongly.
    """
    e, lanes = w.e, values.lanes
    value, low = keys_of(w, [values]), e.constant(0, INT64, lanes)
    while size:
        half = (size + 1) // 2
        places = e.integer("add", e.integer("add", low, half - 1), e.splat(first, lanes))
        node = keys_of(w, [_gathered(w, places, values.dtype)])
        low = e.select(_is_before(w, node, value), e.integer("add", low, half), low)
        size -= half
    return low


def _gathered(w: Body, places: Number, dtype: DType) -> Number:
    """The nodes at some places."""
    e, lanes = w.e, places.lanes
    if lanes == 1:
        return w.load("%in0", places, dtype)
    name = scalar_name(dtype)
    vector, suffix = f"<{lanes} x {name}>", f"v{lanes}{ {'float': 'f32', 'double': 'f64'}.get(name, name) }.v{lanes}p0"
    function = f"@llvm.masked.gather.{suffix}"
    e.declarations.add(f"declare {vector} {function}(<{lanes} x ptr>, i32, <{lanes} x i1>, {vector})")
    pointers = e.emit(f"getelementptr inbounds {name}, ptr %in0, <{lanes} x i64> {places.text}")
    given = (
        f"<{lanes} x ptr> {pointers}, i32 {dtype.itemsize}, <{lanes} x i1> splat (i1 true), {vector} zeroinitializer"
    )
    return Number(e.emit(f"call {vector} {function}({given})"), dtype, lanes)


def _place(w: Body, place: Number, first: Number, size: int) -> None:
    """Where one value belongs, of numbers that have two parts."""
    value = keys_of(w, w.read_parts(1, place))

    def halve(state: list[Number]) -> list[Number]:
        low, high = state
        middle = w.e.integer("lshr", w.plus(low, high), w.i64(1))
        after = _is_before(w, keys_of(w, w.read_parts(0, w.plus(first, middle))), value)
        return [w.e.select(after, w.plus(middle, 1), low), w.e.select(after, high, middle)]

    found = w.while_([w.i64(0), w.i64(size)], lambda state: w.e.compare("slt", state[0], state[1]), halve)
    w.write(place, found[0])


WRITERS: Final[dict[str, StepWriter]] = {
    "sort": ordered,
    "argsort": ordered,
    "searchsorted": searchsorted,
}
