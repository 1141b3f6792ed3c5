"""Factorisations and decompositions as steps: the routines that NumPy and SciPy call, with the same arguments."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Final

import numpy as np

from srcgrad.backends.llvm.emitter import F64, Number
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.lapack import Lapack
from srcgrad.backends.llvm.steps.matrices import converted, copy_rows
from srcgrad.backends.llvm.steps.systems import require_finite
from srcgrad.backends.llvm.steps.writer import INT32, INT64, Writer
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation


def lapack(operation: Operation, target: Target, wide: bool = True) -> Lapack | None:
    """The step to write; None for sizes that LAPACK does not take, and results that do not come of empty matrices."""
    w = Lapack(operation, target, wide)
    some = any(value.type.size for value in operation.results)
    return w if w.fits and (w.given.size or not some) else None


def write_qr(operation: Operation, name: str, target: Target) -> Step | None:
    w = lapack(operation, target)
    if w is None:
        return None
    m, n = w.rows, w.columns
    triangle = operation.results[-1].type
    wanted = 0 if operation.attrs["mode"] == "r" else operation.results[0].type.static_shape[-1]
    rows, count = triangle.static_shape[-2], min(m, n)
    matrix, factors = w.space(m * max(n, wanted)), w.space(count)
    space = w.workspace("geqrf", m, n, None, max(m, 1), None, kinds="W")
    stem = "ungqr" if w.dtype.kind == "c" else "orgqr"
    more = w.workspace(stem, m, wanted, count, None, max(m, 1), None, kinds="W") if wanted else []

    def body(example: Number) -> None:
        sizes = [w.integer_at(size) for size in (m, n, wanted, count)]
        w.take(matrix, w.matrix("%in0", w.given, example), m, n)
        w.run("geqrf", sizes[0], sizes[1], matrix, sizes[0], factors, *space)
        w.require(w.succeeded())
        last = w.result(example, len(operation.results) - 1)
        w.give(last, matrix, rows, n, m)
        w.clear_triangle(last, rows, n, w.own, below=True)
        if wanted:
            w.run(stem, sizes[0], sizes[2], sizes[3], matrix, sizes[0], factors, *more)
            w.require(w.succeeded())
            w.give(w.result(example), matrix, m, wanted, m)

    w.each(body)
    return w.step(name, operation)


def write_lu(operation: Operation, name: str, target: Target) -> Step | None:
    """As LAPACK's, which counts rows from 1, in the operand's precision; a zero on the diagonal is no error."""
    w = lapack(operation, target, wide=False)
    if w is None:
        return None
    m, n = w.rows, w.columns
    count = min(m, n)
    matrix = w.space(m * n)

    def body(example: Number) -> None:
        pivots = w.result(example, 1)
        w.take(matrix, w.matrix("%in0", w.given, example), m, n)
        w.run("getrf", w.integer_at(m), w.integer_at(n), matrix, w.integer_at(m), pivots)

        def subtract(k: Number) -> None:
            place = w.at(pivots, 0, (k, 4))
            w.store(w.integer("sub", w.load(place, INT32), 1), place)

        w.loop(count, subtract)
        w.give(w.result(example), matrix, m, n, m)

    w.each(body)
    return w.step(name, operation)


def write_permutation_of_pivots(operation: Operation, name: str, target: Target) -> Step | None:
    """Pivots are indices as NumPy's are: from the end, if negative; of others the status is 1."""
    given, size = operation.operands[0].type, operation.attrs["size"]
    *stack, count = given.static_shape
    if count > size:
        return None
    w = Writer(target)

    def body(example: Number) -> None:
        order = w.at("%out0", 0, (example, 8 * size))
        w.loop(size, lambda k: w.store(k, w.at(order, 0, (k, 8))))

        def exchange(k: Number) -> None:
            pivot = w.convert("sext", w.load(w.at("%in0", 0, (example, 4 * count), (k, 4)), INT32), INT64)
            pivot = w.select(w.compare("slt", pivot, 0), w.integer("add", pivot, size), pivot)
            w.require(w.compare("ult", pivot, size))
            places = [w.at(order, 0, (index, 8)) for index in (k, pivot)]
            values = [w.load(place, INT64) for place in places]
            for place, value in zip(places, reversed(values), strict=True):
                w.store(value, place)

        w.loop(count, exchange)

    w.loop(prod(stack), body)
    return w.step(name, operation)


def write_eigh(operation: Operation, name: str, target: Target) -> Step | None:
    """Eigenvalues, and with two results eigenvectors."""
    w = lapack(operation, target)
    if w is None or (operation.attrs.get("upper") and w.own.kind == "c"):  # whose rows are not the columns
        return None
    if "select" in operation.attrs or operation.attrs.get("driver", "evr") != "evr":
        return None
    if operation.attrs.get("driver") == "evr":
        return write_relatively_robust(w, name)
    n, vectors = w.rows, len(operation.results) == 2
    matrix, values = w.space(n * n), w.space(n, F64)
    job = "V" if vectors else "N"
    if w.dtype.kind == "c":
        stem, kinds = "heevd", "WRI"
    else:
        stem, kinds = "syevd", "WI"
    triangle = "U" if operation.attrs.get("upper") else "L"
    space = w.workspace(stem, job, triangle, n, None, max(n, 1), None, kinds=kinds)
    real = operation.results[0].type.dtype

    def body(example: Number) -> None:
        size = w.integer_at(n)
        take_triangle(w, matrix, example)
        w.run(stem, w.letter_at(job), w.letter_at(triangle), size, matrix, size, values, *space)
        w.require(w.succeeded())
        copy_rows(w, w.result(example), values, n, real, F64)
        if vectors:
            w.give(w.result(example, 1), matrix, n, n, n)

    w.each(body)
    return w.step(name, operation)


def take_triangle(w: Lapack, matrix: str, example: Number) -> None:
    """The matrix by columns; of one whose transpose's upper triangle is read, its rows are the columns."""
    given, n = w.matrix("%in0", w.given, example), w.rows
    if w.operation.attrs.get("upper"):
        copy_rows(w, matrix, given, n * n, w.dtype, w.own)
    else:
        w.take(matrix, given, n, n)


def write_relatively_robust(w: Lapack, name: str) -> Step:
    """Eigenvalues and vectors by the routine that SciPy takes, which does not stop for what is not finite."""
    n, (values_of, vectors_of) = w.rows, w.operation.results
    matrix, values, vectors, support = w.space(n * n), w.space(n, F64), w.space(n * n), w.space(2 * n, INT32)
    stem, kinds = ("heevr", "WRI") if w.dtype.kind == "c" else ("syevr", "WI")
    triangle = "U" if w.operation.attrs.get("upper") else "L"
    asked = ("V", "A", triangle, n, None, max(n, 1), None, None, 1, n, None, None, None, None, max(n, 1), None)
    space = w.workspace(stem, *asked, kinds=kinds)
    found = w.space(1, INT32)

    def body(example: Number) -> None:
        size, first, zero = w.integer_at(n), w.integer_at(1), w.number_at(0, F64)
        letters = [w.letter_at(letter) for letter in ("V", "A", triangle)]
        take_triangle(w, matrix, example)
        require_finite(w, matrix, n * n)
        bounds = (zero, zero, first, size, zero)
        w.run(stem, *letters, size, matrix, size, *bounds, found, values, vectors, size, support, *space)
        w.require(w.succeeded())
        copy_rows(w, w.result(example), values, n, values_of.type.dtype, F64)
        w.give(w.result(example, 1), vectors, n, n, n, vectors_of.type.dtype)

    w.each(body)
    return w.step(name, w.operation)


def write_svd(operation: Operation, name: str, target: Target) -> Step | None:
    w = lapack(operation, target)
    if w is None:
        return None
    m, n, count = w.rows, w.columns, min(w.rows, w.columns)
    full = bool(operation.attrs.get("full_matrices"))
    vectors = len(operation.results) == 3
    left, right = (m, n) if full else (count, count)
    job = ("A" if full else "S") if vectors else "N"
    matrix, values = w.space(m * n), w.space(count, F64)
    u, vh = (w.space(m * left), w.space(right * n)) if vectors else (matrix, matrix)
    kinds, least = "Wi", [8 * count]
    if w.dtype.kind == "c":
        kinds, least = "Wri", [count * max(5 * count + 7, 2 * max(m, n) + 2 * count + 1), 8 * count]
    sizes = (max(m, 1), max(right if vectors else 1, 1))
    space = w.workspace(
        "gesdd", job, m, n, None, sizes[0], None, None, sizes[0], None, sizes[1], kinds=kinds, least=least
    )
    real = operation.results[1 if vectors else 0].type.dtype

    def body(example: Number) -> None:
        rows, columns, leading = w.integer_at(m), w.integer_at(n), w.integer_at(sizes[1])
        w.take(matrix, w.matrix("%in0", w.given, example), m, n)
        require_finite(w, matrix, m * n)
        w.run("gesdd", w.letter_at(job), rows, columns, matrix, rows, values, u, rows, vh, leading, *space)
        w.require(w.succeeded())
        copy_rows(w, w.result(example, 1 if vectors else 0), values, count, real, F64)
        if vectors:
            w.give(w.result(example), u, m, left, m)
            w.give(w.result(example, 2), vh, right, n, right)

    w.each(body)
    return w.step(name, operation)


def write_pinv(operation: Operation, name: str, target: Target) -> Step | None:
    """With conj(A) = U diag(s) V^H it is V^H^T diag(1/s) U^T, which in rows is U diag(1/s) V^H by columns."""
    w = lapack(operation, target)
    if w is None or operation.attrs["hermitian"] or not w.rows * w.columns:  # LAPACK prints that it wants no empty ones
        return None
    m, n, count = w.rows, w.columns, min(w.rows, w.columns)
    matrix, values, u, vh = w.space(m * n), w.space(count, F64), w.space(m * count), w.space(count * n)
    found = w.space(m * n)
    kinds, least = "Wi", [8 * count]
    if w.dtype.kind == "c":
        kinds, least = "Wri", [count * max(5 * count + 7, 2 * max(m, n) + 2 * count + 1), 8 * count]
    leading = max(count, 1)
    space = w.workspace("gesdd", "S", m, n, None, m, None, None, m, None, leading, kinds=kinds, least=least)

    def body(example: Number) -> None:
        sizes = [w.integer_at(size) for size in (m, n, count)]
        w.take(matrix, w.matrix("%in0", w.given, example), m, n)
        require_finite(w, matrix, m * n)
        if w.dtype.kind == "c":
            w.loop(m * n, lambda k: negate(w, w.at(matrix, 8, (k, w.size))))
        w.run("gesdd", w.letter_at("S"), *sizes[:2], matrix, sizes[0], values, u, sizes[0], vh, sizes[2], *space)
        w.require(w.succeeded())
        cutoff = w.mul(w.constant(operation.attrs["rcond"], F64, 1), w.load(values, F64))
        parts = w.size // 8

        def scale(column: Number) -> None:
            value = w.load(w.at(values, 0, (column, 8)), F64)
            factor = w.select(w.compare("ogt", value, cutoff), w.div(1.0, value), 0.0)

            def element(row: Number) -> None:
                place = w.at(u, 0, (column, m * w.size), (row, 8))
                w.store(w.mul(w.load(place, F64), factor), place)

            w.loop(m * parts, element)

        w.loop(count, scale)
        no = w.letter_at("N")
        one, zero = w.number_at(1, w.dtype), w.number_at(0, w.dtype)
        w.run("gemm", no, no, *sizes, one, u, sizes[0], vh, sizes[2], zero, found, sizes[0], informs=False)
        copy_rows(w, w.result(example), found, m * n, w.own, w.dtype)

    w.each(body)
    return w.step(name, operation)


def negate(w: Lapack, place: str) -> None:
    w.store(w.neg(w.load(place, F64)), place)


def write_eig(operation: Operation, name: str, target: Target) -> Step | None:
    """Eigenvalues, and with two results eigenvectors, all complex; of what is not finite the status is 1."""
    w = lapack(operation, target)
    if w is None:
        return None
    n, vectors = w.rows, len(operation.results) == 2
    is_complex = w.dtype.kind == "c"
    matrix, values = w.space(n * n), w.space(n * (1 if is_complex else 2))
    imaginary = [] if is_complex else [w.at(values, n * 8)]
    found = w.space(n * n) if vectors else matrix
    job = "V" if vectors else "N"
    space = w.workspace(
        "geev", "N", job, n, None, max(n, 1), None, *([] if is_complex else [None]), None, 1, None, max(n, 1),
        kinds="Wr" if is_complex else "W", least=[2 * n],
    )  # fmt: skip

    def body(example: Number) -> None:
        size, one = w.integer_at(n), w.integer_at(1)
        w.take(matrix, w.matrix("%in0", w.given, example), n, n)
        require_finite(w, matrix, n * n)
        w.run(
            "geev", w.letter_at("N"), w.letter_at(job), size, matrix, size, values, *imaginary, matrix, one,
            found, size, *space,
        )  # fmt: skip
        w.require(w.succeeded())
        if is_complex:
            copy_rows(w, w.result(example), values, n, w.own, w.dtype)
            if vectors:
                w.give(w.result(example, 1), found, n, n, n)
        else:
            write_pairs(w, values, imaginary[0], found, example)

    w.each(body)
    return w.step(name, operation)


def write_pairs(w: Lapack, real: str, imaginary: str, vectors: str, example: Number) -> None:
    """Complex eigenvalues and vectors of a real matrix: of a pair, column j is the real part and j + 1 the other."""
    n, results = w.rows, w.operation.results
    part = np.dtype(np.float32) if results[0].type.dtype.itemsize == 8 else F64
    size = part.itemsize

    def put(place: str, *parts: Number) -> None:
        for k, number in enumerate(parts):
            w.store(converted(w, number, part), w.at(place, k * size))

    def column(j: Number, carried: list[Number]) -> list[Number]:
        """``carried``: 1 in the second column of a pair."""
        values = [w.load(w.at(start, 0, (j, 8)), F64) for start in (real, imaginary)]
        put(w.at(w.result(example), 0, (j, 2 * size)), *values)
        paired = w.compare("une", values[1], 0.0)
        second = w.compare("ne", carried[0], 0)
        first = w.binary("and", paired, w.invert(second))
        if len(results) == 2:
            start = w.integer("sub", j, w.convert("zext", second, INT64))
            sign = w.select(second, w.constant(-1.0, F64, 1), w.select(first, w.constant(1.0, F64, 1), 0.0))
            other = w.select(paired, w.integer("add", start, 1), start)

            def row(i: Number) -> None:
                x = w.load(w.at(vectors, 0, (start, n * 8), (i, 8)), F64)
                y = w.mul(w.load(w.at(vectors, 0, (other, n * 8), (i, 8)), F64), sign)
                y = w.select(paired, y, 0.0)
                put(w.at(w.result(example, 1), 0, (i, n * 2 * size), (j, 2 * size)), x, y)

            w.loop(n, row)
        return [w.convert("zext", first, INT64)]

    w.fold(n, [w.index(0)], column)


def write_lstsq(operation: Operation, name: str, target: Target) -> Step | None:
    w = lapack(operation, target)
    right, result = operation.operands[1].type, operation.results[0].type
    if w is None or (result.size and not right.size):
        return None
    m, n, count = w.rows, w.columns, right.static_shape[-1]
    leading = max(m, n, 1)
    matrix, solution, values = w.space(m * n), w.space(leading * count), w.space(min(m, n), F64)
    is_complex = w.dtype.kind == "c"
    rank, limit = w.variable("i32"), w.variable("double")
    cutoff = w.constant(operation.attrs["rcond"], F64, 1)
    space = w.workspace(
        "gelsd", m, n, count, None, max(m, 1), None, leading, None, None, None,
        kinds="Wri" if is_complex else "Wi", least=[1, 1],
    )  # fmt: skip

    def body(example: Number) -> None:
        w.store(cutoff, limit)
        w.take(matrix, w.matrix("%in0", w.given, example), m, n)
        source = w.matrix("%in1", right, example)
        w.clear(solution, leading * count * w.size)
        w.take(solution, source, m, count, leading)
        require_finite(w, matrix, m * n)
        require_finite(w, solution, leading * count)
        w.run(
            "gelsd", w.integer_at(m), w.integer_at(n), w.integer_at(count), matrix, w.integer_at(m),
            solution, w.integer_at(leading), values, limit, rank, *space,
        )  # fmt: skip
        w.require(w.succeeded())
        w.give(w.result(example), solution, n, count, leading)

    w.each(body)
    return w.step(name, operation)


WRITERS: Final[Mapping[str, StepWriter]] = {
    "eig": write_eig,
    "eigh": write_eigh,
    "eigvals": write_eig,
    "eigvalsh": write_eigh,
    "lstsq": write_lstsq,
    "lu": write_lu,
    "permutation_of_pivots": write_permutation_of_pivots,
    "pinv": write_pinv,
    "qr": write_qr,
    "svd": write_svd,
    "svdvals": write_svd,
}
