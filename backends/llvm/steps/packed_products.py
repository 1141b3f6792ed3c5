"""Products of large matrices in registers of 64 bytes: operands are copied in the order in which tiles read them.

The loops are those of Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008). A tile of the
result is in registers; it reads a strip of ``b``, which stays in the nearest cache, and one of ``a``, of a block of
strips in the next cache. Sums run over a slab of the depth, and then those over the next slab are added. There is one
library for all programs, made at the first such product, which reads sizes from a block of 64-bit words. The workers'
threads share its parts; an element's sum does not depend on who computes it. Of a product of a matrix with its
transposed one, tiles above the diagonal are left out, and what is below it is mirrored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from srcgrad.backends.llvm.emitter import BOOL, DType, Number
from srcgrad.backends.llvm.native import Library
from srcgrad.backends.llvm.steps.matrices import turned
from srcgrad.backends.llvm.steps.small_products import Product
from srcgrad.backends.llvm.steps.writer import INT64, Writer
from srcgrad.backends.llvm.target import TARGET, Target
from srcgrad.backends.llvm.workers import SYMBOL

ROWS: Final = 8
VECTORS: Final = 2
"""The rows of a tile, and the vectors of each."""
DEPTH: Final = 256
"""The most products of a slab."""
STRIPS: Final = 12
"""The most strips of ``a`` in a block, which is on the stack."""
COLUMNS: Final = 2048
"""About the most columns of ``b`` that are copied at once."""
PARTS: Final = 32
PART: Final = 512
"""How many parts threads should have, and the least columns of one, for which a block of ``a`` is copied again."""
LINE: Final = 64
DTYPES: Final = ("float32", "float64")
WORDS: Final = (
    "a", "a_row", "a_column", "b", "b_row", "b_column", "c", "c_row", "packed", "rows", "columns", "depth",
    "block", "blocks", "panel", "part", "slab", "half", "first_column", "width", "first", "length",
)  # fmt: skip
"""What a block holds: pointers and the bytes from one row or column to the next; sizes, of the whole and of parts;
whether half of the result is computed; what is under way."""
_LIBRARIES: Final[dict[str, Library]] = {}


def is_available(target: Target, dtype: DType) -> bool:
    """Whether a product should come here; with narrower registers BLAS is as fast."""
    return target.vector_bytes == LINE and target.masked and dtype.name in DTYPES


def write_packed(w: Writer, dtype: DType, product: Product, alike: bool) -> None:
    """Call the library for a product whose operands each have neighbours along their rows or their columns.

    ``alike``: of one array it is a product of a matrix with the transposed one.
    """
    rows, columns, depth = product.rows, product.columns, product.depth
    width = VECTORS * LINE // dtype.itemsize
    strips, slabs, panels = -(-rows // ROWS), -(-depth // DEPTH), -(-columns // COLUMNS)
    blocks = -(-strips // STRIPS)
    panel = rounded(-(-columns // panels), width)
    parts = max(1, min(-(-PARTS // blocks), panel // PART))
    a, b, c = product.a, product.b, product.c
    values: list[str | int] = [
        a.pointer, a.row, a.column, b.pointer, b.row, b.column, c.pointer, c.row,
        w.reserve(panel * DEPTH * dtype.itemsize), rows, columns, depth,
        -(-strips // blocks) * ROWS, blocks, panel, rounded(-(-panel // parts), width), -(-depth // slabs),
        w.emit(f"icmp eq ptr {a.pointer}, {b.pointer}") if alike else "false",
    ]  # fmt: skip
    block = w.variable(f"[{len(WORDS)} x i64]")
    for k, value in enumerate(values):
        text = f"ptr {value}" if isinstance(value, str) else f"i64 {int(value)}"
        if WORDS[k] == "half":
            text = f"i64 {w.emit(f'zext i1 {value} to i64')}"
        w.do(f"store {text}, ptr {w.at(block, 8 * k)}, align 8")
    name = f"srcgrad_product_{dtype.name}"
    w.symbols[name] = product_of(dtype.name)
    w.declarations.add(f"declare void @{name}(ptr)")
    w.do(f"call void @{name}(ptr {block})")


def rounded(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def product_of(name: str) -> int:
    """The address of the product of a dtype."""
    return library(np.dtype(name)).address(f"srcgrad_product_{name}")


def library(dtype: DType) -> Library:
    """The library for a dtype; programs hold addresses in it, so it is never freed."""
    found = _LIBRARIES.get(dtype.name)
    return found or _LIBRARIES.setdefault(dtype.name, Library(library_text(dtype, TARGET)))


# --- the library -------------------------------------------------------------------------------
class Part(Writer):
    """A function of the library for one dtype: its parameters are pointers and 64-bit integers."""

    def __init__(self, target: Target, dtype: DType) -> None:
        super().__init__(target)
        self.dtype = dtype
        self.size = dtype.itemsize
        self.width = VECTORS * LINE // self.size

    def function(self, name: str, params: Sequence[str], linkage: str = "internal ") -> str:
        """Its text, when all of its body is written."""
        bits = 8 * LINE
        attributes = f'noinline nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'
        head = f"define {linkage}void @{name}({', '.join(params)}) {attributes} {{"
        return "\n".join([head, "entry:", *self.allocated, *self.lines, "  ret void", "}", ""])

    def run(self, function: str, *arguments: str | Number) -> None:
        given = [f"i64 {x.text}" if isinstance(x, Number) else f"ptr {x}" for x in arguments]
        self.do(f"call void {function}({', '.join(given)})")

    def params(self, *names: str) -> list[Number]:
        return [Number(f"%{name}", INT64, 1) for name in names]

    def words(self, *names: str) -> list[Number]:
        places = [self.at("%block", 8 * WORDS.index(name)) for name in names]
        return [Number(self.emit(f"load i64, ptr {place}, align 8"), INT64, 1) for place in places]

    def pointer(self, name: str) -> str:
        return self.emit(f"load ptr, ptr {self.at('%block', 8 * WORDS.index(name))}, align 8")

    def put(self, name: str, value: Number) -> None:
        self.do(f"store i64 {value.text}, ptr {self.at('%block', 8 * WORDS.index(name))}, align 8")

    def moved(self, pointer: str, *steps: tuple[Number, Number | int]) -> str:
        """The pointer moved by the products of indices and bytes."""
        for index, stride in steps:
            pointer = self.at(pointer, 0, (self.integer("mul", index, stride), 1))
        return pointer

    def smaller(self, a: Number, b: Number) -> Number:
        return self.select(self.compare("slt", a, b), a, b)

    def divided(self, a: Number, b: Number) -> Number:
        """The quotient of positive integers, rounded up."""
        return self.integer("udiv", self.integer("sub", self.integer("add", a, b), 1), b)

    def each(self, count: Number, step: Number, body: Callable[[Number, Number], None]) -> None:
        """Parts of ``count``: their starts, and their lengths, which are ``step`` but for the last."""

        def part(k: Number) -> None:
            start = self.integer("mul", k, step)
            body(start, self.smaller(step, self.integer("sub", count, start)))

        self.loop(self.divided(count, step), part)

    def mask(self, count: Number, lanes: int, start: int = 0) -> Number:
        """The lanes of a vector, which are places from ``start`` on, that are before ``count``."""
        limit = self.splat(count, lanes)
        places = f"<{', '.join(f'i64 {start + k}' for k in range(lanes))}>"
        return Number(self.emit(f"icmp sgt {limit.type} {limit.text}, {places}"), BOOL, lanes)


def library_text(dtype: DType, target: Target) -> str:
    """The module with ``@srcgrad_product_DTYPE(block)``."""
    writers = (write_strip, write_tile, write_copy, write_multiply, write_mirror, write_share, write_whole)
    parts = [Part(target, dtype) for _ in writers]
    texts = [write(part) for write, part in zip(writers, parts, strict=True)]
    declarations = sorted(set().union(*[part.declarations for part in parts]))
    return "\n".join([f"@{SYMBOL} = external global ptr", *declarations, *texts])


def write_strip(w: Part) -> str:
    """Copy a strip: for each of ``length`` products, ``width`` elements, of which the first ``count`` are there.

    ``along`` is the way from one element to the next, ``step`` from one product to the next: one of the two is the size
    of an element. What stands in the place of elements that are not there does not matter.
    """
    along, step, count, length, width = w.params("along", "step", "count", "length", "width")
    rows, columns, after = w.label("rows"), w.label("columns"), w.label("after")
    row_bytes, last = w.integer("mul", width, w.size), w.integer("sub", count, 1)
    w.branch(w.compare("eq", along, w.size), rows, columns)
    w.start(rows)

    def some(start: Number) -> None:
        mask = w.mask(w.integer("sub", count, start), ROWS)
        source, target = w.moved("%source", (start, w.size)), w.moved("%target", (start, w.size))

        def copy(k: Number) -> None:
            w.store(w.load_some(w.moved(source, (k, step)), w.dtype, mask), w.moved(target, (k, row_bytes)))

        w.loop(length, copy)

    w.loop(width, some, 0, ROWS)
    w.jump(after)
    w.start(columns)

    def others(start: Number) -> None:
        places = [w.smaller(w.integer("add", start, lane), last) for lane in range(ROWS)]
        sources = [w.moved("%source", (place, along)) for place in places]
        target = w.moved("%target", (start, w.size))

        def square(k: Number) -> None:
            mask = w.mask(w.integer("sub", length, k), ROWS)
            found = [w.load_some(w.moved(source, (k, w.size)), w.dtype, mask) for source in sources]
            for lane, vector in enumerate(turned(w, found)):
                w.store(vector, w.moved(target, (w.integer("add", k, lane), row_bytes)))

        w.loop(length, square, 0, ROWS)

    w.loop(width, others, 0, ROWS)
    w.jump(after)
    w.start(after)
    names = ("along", "step", "count", "length", "width")
    return w.function("strip", ["ptr %source", "ptr %target", *(f"i64 %{name}" for name in names)])


def write_tile(w: Part) -> str:
    """The products of two strips: a tile of the result, of which ``rows`` by ``columns`` are there, stored or added.

    A row that is not there is taken for the last one, which is stored after it.
    """
    c_row, length, rows, columns, first = w.params("c_row", "length", "rows", "columns", "first")
    lanes, last = LINE // w.size, w.integer("sub", rows, 1)
    starts = [w.moved("%c", (w.smaller(w.index(row), last), c_row)) for row in range(ROWS)]
    pointers = [w.at(start, vector * LINE) for start in starts for vector in range(VECTORS)]
    for pointer in pointers:
        w.prefetch(pointer, writing=True)

    def body(k: Number, sums: list[Number]) -> list[Number]:
        a, b = w.moved("%a", (k, ROWS * w.size)), w.moved("%b", (k, VECTORS * LINE))
        right = [w.load(w.at(b, vector * LINE), w.dtype, lanes) for vector in range(VECTORS)]
        left = [w.splat(w.load(w.at(a, row * w.size), w.dtype), lanes) for row in range(ROWS)]
        pairs = [(x, y) for x in left for y in right]
        return [w.fma(x, y, sum) for sum, (x, y) in zip(sums, pairs, strict=True)]

    sums = w.fold(length, [w.constant(0, w.dtype, lanes)] * (ROWS * VECTORS), body)
    masks = [w.mask(columns, lanes, vector * lanes) for vector in range(VECTORS)] * ROWS
    more, store, before = w.label("more"), w.label("store"), w.block
    w.branch(w.compare("sgt", first, 0), more, store)
    w.start(more)
    added = [w.add(x, w.load_some(start, w.dtype, mask)) for x, start, mask in zip(sums, pointers, masks, strict=True)]
    w.jump(store)
    w.start(store)
    totals = [w.phi((x, before), (y, more)) for x, y in zip(sums, added, strict=True)]
    for value, pointer, mask in reversed(list(zip(totals, pointers, masks, strict=True))):
        w.store_some(value, pointer, mask)
    names = ("c_row", "length", "rows", "columns", "first")
    return w.function("tile", ["ptr %a", "ptr %b", "ptr %c", *(f"i64 %{name}" for name in names)])


def write_copy(w: Part) -> str:
    """Copy one strip of the panel and slab of ``b`` that are under way."""
    (index,) = w.params("index")
    b_row, b_column, first_column, width, first, length = w.words(
        "b_row", "b_column", "first_column", "width", "first", "length"
    )
    start = w.integer("mul", index, w.width)
    source = w.moved(w.pointer("b"), (w.integer("add", first_column, start), b_column), (first, b_row))
    target = w.moved(w.pointer("packed"), (start, DEPTH * w.size))
    w.run("@strip", source, target, b_column, b_row, w.integer("sub", width, start), length, w.index(w.width))
    return w.function("copy", ["ptr %block", "i64 %index"])


def write_multiply(w: Part) -> str:
    """A block of rows, copied, times a part of the columns of the panel and slab that are under way."""
    (index,) = w.params("index")
    a_row, a_column, c_row, block, blocks, part = w.words("a_row", "a_column", "c_row", "block", "blocks", "part")
    first_column, width, first, length, all_rows = w.words("first_column", "width", "first", "length", "rows")
    (half,) = w.words("half")
    first_row = w.integer("mul", w.integer("urem", index, blocks), block)
    rows = w.smaller(block, w.integer("sub", all_rows, first_row))
    start = w.integer("mul", w.integer("udiv", index, blocks), part)
    stop = w.smaller(width, w.integer("add", start, part))
    packed = w.pointer("packed")
    a = w.moved(w.pointer("a"), (first_row, a_row), (first, a_column))
    c = w.moved(w.pointer("c"), (first_row, c_row), (first_column, w.size))
    room = w.variable(f"[{STRIPS * ROWS * DEPTH * w.size} x i8]")

    def copy(i: Number) -> None:
        source, target = w.moved(a, (i, a_row)), w.moved(room, (i, DEPTH * w.size))
        w.run("@strip", source, target, a_row, a_column, w.integer("sub", rows, i), length, w.index(ROWS))

    def columns(j: Number) -> None:
        strip = w.moved(packed, (j, DEPTH * w.size))
        left = w.integer("sub", stop, j)
        above = w.integer("sub", w.integer("add", first_column, j), first_row)
        beginning = w.select(w.compare("sgt", w.integer("mul", above, half), 0), above, 0)
        beginning = w.integer("and", w.smaller(beginning, rows), -ROWS)

        def tile(i: Number) -> None:
            own, target = w.moved(room, (i, DEPTH * w.size)), w.moved(c, (i, c_row), (j, w.size))
            w.run("@tile", own, strip, target, c_row, length, w.integer("sub", rows, i), left, first)

        w.loop(rows, tile, beginning, ROWS)

    w.loop(rows, copy, 0, ROWS)
    w.loop(stop, columns, start, w.width)
    return w.function("multiply", ["ptr %block", "i64 %index"])


def write_mirror(w: Part) -> str:
    """Some rows of the result, up to the diagonal, stored as columns."""
    (index,) = w.params("index")
    (rows, c_row), c = w.words("rows", "c_row"), w.pointer("c")
    start, last = w.integer("mul", index, ROWS), w.integer("sub", rows, 1)
    places = [w.smaller(w.integer("add", start, lane), last) for lane in range(ROWS)]
    sources = [w.moved(c, (place, c_row)) for place in places]
    target, mask = w.moved(c, (start, w.size)), w.mask(w.integer("sub", rows, start), ROWS)

    def square(k: Number) -> None:
        found = [w.load(w.moved(source, (k, w.size)), w.dtype, ROWS) for source in sources]
        for lane, vector in enumerate(turned(w, found)):
            w.store_some(vector, w.moved(target, (w.integer("add", k, lane), c_row)), mask)

    w.loop(start, square, 0, ROWS)
    return w.function("mirror", ["ptr %block", "i64 %index"])


def write_share(w: Part) -> str:
    """Run a function for all indices before ``count``: on all threads, or one after the other."""
    together, alone, after = (w.label(stem) for stem in ("together", "alone", "after"))
    (count,) = w.params("count")
    workers = w.emit(f"load atomic ptr, ptr @{SYMBOL} monotonic, align 8")
    w.branch(Number(w.emit(f"icmp eq ptr {workers}, null"), BOOL, 1), alone, together)
    w.start(together)
    w.run(workers, "%function", "%block", count)
    w.jump(after)
    w.start(alone)
    w.loop(count, lambda index: w.run("%function", "%block", index))
    w.jump(after)
    w.start(after)
    return w.function("share", ["ptr %function", "ptr %block", "i64 %count"])


def write_whole(w: Part) -> str:
    """All panels of columns, and of each all slabs of the depth."""
    columns, depth, panel, slab, part, blocks = w.words("columns", "depth", "panel", "slab", "part", "blocks")

    def each_panel(column: Number, width: Number) -> None:
        w.put("first_column", column)
        w.put("width", width)
        strips = w.divided(width, w.index(w.width))
        parts = w.integer("mul", w.divided(width, part), blocks)

        def each_slab(first: Number, length: Number) -> None:
            w.put("first", first)
            w.put("length", length)
            w.run("@share", "@copy", "%block", strips)
            w.run("@share", "@multiply", "%block", parts)

        w.each(depth, slab, each_slab)

    w.each(columns, panel, each_panel)
    rows, half = w.words("rows", "half")
    w.run("@share", "@mirror", "%block", w.integer("mul", half, w.divided(rows, w.index(ROWS))))
    return w.function(f"srcgrad_product_{w.dtype.name}", ["ptr %block"], linkage="")
