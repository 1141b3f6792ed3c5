"""Products of matrices in registers: for small sizes, and for the dtypes that BLAS has not.

A tile of the result is held in registers while the sum runs; vectors are neighbours in a row of the result, and where
they do not fill the row, the last one overlaps the one before. Sizes and strides are constants of the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from srcgrad.backends.llvm.emitter import BOOL, Number
from srcgrad.backends.llvm.steps.cells import Cell, Cells
from srcgrad.backends.llvm.steps.matrices import Matrix, copy_elements, copy_transposed, rows_of, shuffled
from srcgrad.backends.llvm.steps.writer import Writer

UNROLLED: Final = 96
"""The most products of a tile that are written without a loop; with one, a trip has half as many at most."""
SUMS: Final = 8
"""The sums that a tile has at least, if there are so many: two are begun at a time, and take four."""
FEW: Final = 1024
"""The products of vectors up to which tiles of one vector in a row are of `FEW_ROWS`: as many sums as do not wait for
each other are code of half the length."""
FEW_ROWS: Final = 12
BLOCK: Final = 512
"""The most products that are added one after the other, if there are more than twice as many."""
LINE: Final = 64
"""The bytes that are asked for at once."""
NEXT: Final = 1 << 14
"""The most bytes of operands that are asked for while the product before them is computed: caches hold them, too."""
DOTS: Final = 8
"""The rows whose dot products with one vector are computed at once."""


class Product(NamedTuple):
    """The sums over k of ``a[i, k] * b[k, j]``, written to ``c[i, j]``, whose columns are neighbours.

    If ``adds`` is false the depth is 1 and there are no sums: so zeros keep the signs that the products have. If
    ``apart``, the last vector of a row of ``b`` does not overlap the one before, but lies after it, as the others do.
    ``mask``: the lanes of the only vector of a row that are there, if not all are.
    ``after``: where the operands of the next product begin, and their bytes. Their lines are asked for on the way, one
    or a few for each number that the sums of a tile go over: all at once would wait for each other.
    """

    rows: int
    columns: int
    depth: int
    a: Matrix
    b: Matrix
    c: Matrix
    adds: bool = True
    apart: bool = False
    mask: Number | None = None
    after: tuple[tuple[str, int], ...] = ()


def write_product(cells: Cells, product: Product) -> None:
    """The code of a product, in the best order for its sizes and strides."""
    size = cells.size
    if product.columns == 1 and product.rows > 1 and product.c.row == size:  # a row of results rather than a column
        product = product._replace(
            rows=product.columns, columns=product.rows, a=product.b.transposed, b=product.a.transposed,
            c=product.c.transposed,
        )  # fmt: skip
    b, lies_along_depth = product.b, product.columns == 1 or product.b.column != size
    along_both = product.rows == 1 and product.a.column == size and b.row == size and lies_along_depth
    if along_both and product.depth > 1 and product.adds:
        write_dots(cells, product)
        return
    if product.columns > 1 and lies_along_depth:
        product = write_transposed(cells, product)
    elif cells.masks(product.columns):
        lanes = 1 << product.columns.bit_length()
        there = ", ".join(f"i1 {int(lane < product.columns)}" for lane in range(lanes))
        product = product._replace(mask=Number(f"<{there}>", BOOL, lanes))
    write_tiles(cells, product)


# --- tiles -------------------------------------------------------------------------------------
def write_tiles(cells: Cells, product: Product) -> None:
    """Tiles of some rows by some vectors: ``b``'s columns are neighbours, ``a`` may have any strides."""
    w, columns = cells.w, product.columns
    lanes = cells.lanes(columns) if product.mask is None else product.mask.lanes
    most = (24 if "avx512f" in w.features or "neon" in w.features else 12) // cells.registers
    vectors = min(-(-columns // lanes), 4 if most > 12 else 2)
    few = vectors == 1 and product.rows * product.depth <= FEW
    rows = max(1, min(product.rows, FEW_ROWS if few else most // vectors))
    block = vectors * lanes
    whole = columns // block
    again = columns > block or product.depth > 2 * BLOCK
    if again or sum(nbytes for _, nbytes in product.after) > NEXT:
        product = product._replace(after=())
    if whole > 1:
        w.loop(whole, lambda j: write_rows(cells, moved_columns(cells, product, 0, j, block), rows, vectors, lanes))
    elif whole:
        write_rows(cells, product, rows, vectors, lanes)
    rest = columns - whole * block
    if rest:
        narrow = moved_columns(cells, product, whole * block)
        write_rows(cells, narrow, rows, -(-rest // lanes), lanes, rest)


def moved_columns(cells: Cells, product: Product, start: int, j: Number | None = None, block: int = 0) -> Product:
    """The product from the column ``start + j * block`` on."""
    w = cells.w
    moves = () if j is None else ((j, block * cells.size),)
    b, c = (x._replace(pointer=w.at(x.pointer, start * cells.size, *moves)) for x in (product.b, product.c))
    return product._replace(b=b, c=c)


def write_rows(cells: Cells, product: Product, rows: int, vectors: int, lanes: int, columns: int = 0) -> None:
    """All rows of a block of columns, in tiles of one size: the last may overlap the one before."""
    w, count = cells.w, product.rows
    starts = [min(k * lanes, (columns or vectors * lanes) - lanes) for k in range(vectors)]
    if product.mask is not None:
        starts = [0]
    size = tile_rows(count, rows, -(-SUMS // (vectors * cells.registers)))
    tiles = -(-count // size)

    def body(i: Number) -> None:
        first = w.least(w.integer("mul", i, size), count - size) if tiles > 1 else i
        a, c = (x._replace(pointer=w.at(x.pointer, 0, (first, x.row))) for x in (product.a, product.c))
        shares = [-(-nbytes // tiles) for _, nbytes in product.after]
        after = [(w.at(start, 0, (i, share)), share) for (start, _), share in zip(product.after, shares, strict=True)]
        write_tile(cells, product._replace(a=a, c=c, after=tuple(after)), size, starts, lanes)

    w.loop(tiles, body)


def tile_rows(count: int, most: int, least: int) -> int:
    """How many rows a tile has: so many that the fewest are computed twice, and the most of such numbers."""
    few = -(-count // -(-count // most))
    best: int = min({few, *range(least, most + 1)}, key=lambda rows: (-(-count // rows) * rows, -rows))
    return best


def write_tile(cells: Cells, product: Product, rows: int, starts: Sequence[int], lanes: int) -> None:
    """A tile; long sums are added up block by block, so that their errors do not grow with their length."""
    w, depth, count = cells.w, product.depth, len(starts)

    places = [k * lanes for k in range(count)] if product.apart else starts

    def block(product: Product, size: int) -> list[Cell]:
        return tile_sums(cells, product._replace(depth=size), rows, places, lanes)

    if depth <= 2 * BLOCK or cells.sum_dtype.kind not in "fc":
        sums = block(product, depth)
    else:

        def add(number: Number, size: int, totals: list[Cell]) -> list[Cell]:
            start = w.integer("mul", number, BLOCK)
            a = product.a._replace(pointer=w.at(product.a.pointer, 0, (start, product.a.column)))
            b = product.b._replace(pointer=w.at(product.b.pointer, 0, (start, product.b.row)))
            found = block(product._replace(a=a, b=b), size)
            return [cells.add(total, sum) for total, sum in zip(totals, found, strict=True)]

        def body(number: Number, carried: list[Number]) -> list[Number]:
            return flat(add(number, BLOCK, grouped(carried, cells.registers)))

        zeros = [cells.zero(lanes) for _ in range(rows * count)]
        sums = grouped(w.fold(depth // BLOCK, flat(zeros), body), cells.registers)
        if depth % BLOCK:
            sums = add(w.index(depth // BLOCK), depth % BLOCK, sums)
    for place, sum in enumerate(sums):
        target = w.at(product.c.pointer, place // count * product.c.row + starts[place % count] * cells.size)
        if product.mask is None:
            cells.store(sum, target)
        else:
            w.store_some(sum[0], target, product.mask)


def tile_sums(cells: Cells, product: Product, rows: int, starts: Sequence[int], lanes: int) -> list[Cell]:
    w, a, b, depth = cells.w, product.a, product.b, product.depth

    def added(
        sums: list[Cell], k: int, row: Sequence[tuple[Number, int]], column: Sequence[tuple[Number, int]]
    ) -> list[Cell]:
        places = [w.at(b.pointer, k * b.row + start * cells.size, *row) for start in starts]
        if product.mask is None:
            right = [cells.load(place, lanes) for place in places]
        else:
            right = [[w.load_some(place, cells.dtype, product.mask)] for place in places]
        left = [cells.spread(a.at(w, i, k, *column), lanes) for i in range(rows)]
        pairs = [(x, y) for x in left for y in right]
        if not product.adds:
            return [cells.product(x, y) for x, y in pairs]
        return [cells.add_product(sum, x, y) for sum, (x, y) in zip(sums, pairs, strict=True)]

    sums = [cells.zero(lanes) for _ in range(rows * len(starts))]
    if len(sums) * depth * cells.registers <= UNROLLED:
        for k in range(depth):
            sums = added(sums, k, (), ())
        return sums

    step = next(step for step in (4, 2, 1) if step == 1 or len(sums) * step * cells.registers <= UNROLLED // 2)

    def body(k: Number, carried: list[Number]) -> list[Number]:
        for start, nbytes in product.after:
            share = -(-nbytes // depth)
            for place in range(0, share * step, LINE):
                w.prefetch(w.at(start, place, (k, share)))
        sums = grouped(carried, cells.registers)
        for n in range(step):
            sums = added(sums, n, ((k, b.row),), ((k, a.column),))
        return flat(sums)

    whole = depth // step * step
    sums = grouped(w.fold(whole, flat(sums), body, 0, step), cells.registers)
    for k in range(whole, depth):
        sums = added(sums, k, (), ())
    return sums


def flat(found: Sequence[Cell]) -> list[Number]:
    return [part for cell in found for part in cell]


def grouped(values: Sequence[Number], size: int) -> list[Cell]:
    return [list(values[k : k + size]) for k in range(0, len(values), size)]


# --- dot products ------------------------------------------------------------------------------
def write_dots(cells: Cells, product: Product) -> None:
    """A row times a matrix whose columns each lie together: vectors along the sum, whose lanes are added at the end."""
    w, count, size = cells.w, product.columns, cells.size
    lanes = cells.lanes(product.depth)
    at_once = min(lanes, DOTS, 1 << (count.bit_length() - 1))
    whole = count // at_once

    def write(pointer: str, target: str) -> None:
        sums = dots(cells, product.a.pointer, pointer, product.b.column, at_once, product.depth, lanes)
        cells.store_parts(folded(cells, [part for sum in sums for part in cells.parts_of_dot(sum)]), target)

    def body(j: Number) -> None:
        write(
            w.at(product.b.pointer, 0, (j, at_once * product.b.column)), w.at(product.c.pointer, 0, (j, at_once * size))
        )

    w.loop(whole, body)
    if count % at_once:  # they overlap those before
        last = count - at_once
        write(w.at(product.b.pointer, last * product.b.column), w.at(product.c.pointer, last * size))


def dots(cells: Cells, x: str, y: str, stride: int, count: int, depth: int, lanes: int) -> list[Cell]:
    """The products of ``x`` with ``count`` vectors, ``stride`` bytes apart, of which the lanes are not yet added."""
    w, size = cells.w, cells.size
    whole = depth // lanes
    copies = max(1, min(8 // (count * cells.registers), whole // 4))
    step = copies * lanes

    def body(k: Number, carried: list[Number]) -> list[Number]:
        sums, found = grouped(carried, cells.registers), []
        for copy in range(copies):
            move = (k, size)
            left = cells.factor(cells.load(w.at(x, copy * lanes * size, move), lanes))
            for row in range(count):
                right = cells.load(w.at(y, row * stride + copy * lanes * size, move), lanes)
                found.append(cells.add_product(sums[copy * count + row], left, right))
        return flat(found)

    zeros = [cells.zero(lanes) for _ in range(count * copies)]
    sums = grouped(w.fold(whole * lanes // step * step, flat(zeros), body, 0, step), cells.registers)
    for copy in range(1, copies):
        sums[:count] = map(cells.add, sums[:count], sums[copy * count :][:count])
    sums = sums[:count]
    done = whole // copies * copies * lanes
    while done < depth:
        left = cells.factor(tail(cells, x, done, depth, lanes))
        right = [tail(cells, w.at(y, row * stride), done, depth, lanes) for row in range(count)]
        sums = [cells.add_product(sum, left, other) for sum, other in zip(sums, right, strict=True)]
        done += lanes
    return sums


def tail(cells: Cells, pointer: str, start: int, depth: int, lanes: int) -> Cell:
    """The vector from ``start`` on; of one that would go beyond the end, the elements before ``start`` are zeros."""
    w = cells.w
    first = min(start, depth - lanes)
    found = cells.load(w.at(pointer, first * cells.size), lanes)
    if first == start:
        return found
    parts = found[0].lanes // lanes
    places = [k if first + k // parts >= start else parts * lanes for k in range(parts * lanes)]
    return [shuffled(w, found[0], cells.zero(lanes)[0], places)]


def folded(cells: Cells, sums: list[Number]) -> Number:
    """A vector of the sums of the lanes of each vector: vectors are folded by halves, two of them into one."""
    w = cells.w

    def halves(a: Number, b: Number | None, group: int) -> Number:
        """Groups of ``group`` lanes of ``a``, then of ``b``, folded to half their lanes."""
        parts = []
        for which in range(2):
            places = range(a.lanes if b is None else 2 * a.lanes)
            taken = [place for place in places if place % group // (group // 2) == which]
            parts.append(picked(w, a, b, taken))
        return cells.add([parts[0]], [parts[1]])[0]

    group = sums[0].lanes
    while len(sums) > 1:
        sums = [halves(sums[k], sums[k + 1], group) for k in range(0, len(sums), 2)]
        group //= 2
    found = sums[0]
    while group > 1:
        found = halves(found, None, group)
        group //= 2
    return found


def picked(w: Writer, a: Number, b: Number | None, places: list[int]) -> Number:
    if len(places) == 1:
        return Number(w.emit(f"extractelement {a.type} {a.text}, i64 {places[0]}"), a.dtype, 1)
    return shuffled(w, a, a if b is None else b, places)


# --- operands in another order -----------------------------------------------------------------
def write_transposed(cells: Cells, product: Product) -> Product:
    """The product with a copy of ``b`` in scratch memory, row by row: its columns each lie together, or anywhere.

    Vectors are written as they will be read: one that was written in two parts would be read late.
    """
    w, size, dtype, b = cells.w, cells.size, cells.dtype_in_memory, product.b
    depth, columns = product.depth, product.columns
    lanes = cells.lanes(columns)
    in_blocks = b.row == size and cells.registers == 1
    apart = in_blocks and columns % lanes > 0 and cells.lanes(depth) >= lanes and size >= 4
    width = -(-columns // lanes) * lanes if apart else columns
    found = rows_of(w.reserve(depth * width * size), width, dtype)
    if in_blocks:
        copy_transposed(w, found.transposed, b.transposed, columns, depth, dtype, dtype, apart)
    else:
        copy_elements(w, found, b, depth, columns, dtype, dtype)
    return product._replace(b=found, apart=apart)
