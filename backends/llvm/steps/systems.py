"""Systems of equations as steps: products of triangles, solutions, inverses, determinants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from srcgrad.backends.llvm.emitter import F64, Number
from srcgrad.backends.llvm.steps import Step, StepWriter, small_systems, stacked_systems, wide_systems
from srcgrad.backends.llvm.steps.cells import BYTE
from srcgrad.backends.llvm.steps.lapack import Lapack
from srcgrad.backends.llvm.steps.matrices import copy_rows
from srcgrad.backends.llvm.steps.writer import INT32
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation


def write_cholesky(operation: Operation, name: str, target: Target) -> Step | None:
    """The transposed matrix is that of Fortran, and so is the transposed factor: its upper triangle is asked for.

    A diagonal that is not finite is left to NumPy.
    """
    w = Lapack(operation, target)
    if not w.fits:
        return None
    if small_systems.is_small(w, small_systems.MOST_TRIANGLE):
        w.attempt(lambda: small_systems.write_cholesky(w))
    elif stacked_systems.is_stacked(w):
        w.attempt(lambda: stacked_systems.write_cholesky(w))
    n = w.rows
    factor = "" if w.own == w.dtype else w.space(n * n)

    def body(example: Number) -> None:
        result = w.result(example)
        place = factor or result
        factorise(w, place, example)
        w.require(w.succeeded())
        require_finite_diagonal(w, place)
        w.clear_triangle(place, n, n, w.dtype, below=False)
        if factor:
            copy_rows(w, result, place, n * n, w.own, w.dtype)

    w.each(body)
    return w.step(name, operation)


def factorise(w: Lapack, place: str, example: Number) -> None:
    """A copy of a matrix and, in its lower triangle, the factor."""
    copy_rows(w, place, w.matrix("%in0", w.given, example), w.rows**2, w.dtype, w.own)
    w.run("potrf", w.letter_at("U"), w.integer_at(w.rows), place, w.integer_at(w.rows))


def require_finite_diagonal(w: Lapack, place: str) -> None:
    w.loop(w.rows, lambda k: w.require(is_finite(w, w.load(w.at(place, 0, (k, (w.rows + 1) * w.size)), w.real))))


def write_is_indefinite(operation: Operation, name: str, target: Target) -> Step | None:
    w = Lapack(operation, target)
    if not w.fits:
        return None
    place = w.space(w.rows**2)

    def body(example: Number) -> None:
        factorise(w, place, example)
        failed = w.invert(w.succeeded())
        done, after = w.label("done"), w.label("after")
        w.branch(failed, after, done)
        w.start(done)
        require_finite_diagonal(w, place)
        w.jump(after)
        w.start(after)
        w.store(w.convert("zext", failed, BYTE), w.result(example))

    if w.rows:
        w.each(body)
    else:
        w.clear("%out0", operation.results[0].type.size)
    return w.step(name, operation)


def is_finite(w: Lapack, x: Number) -> Number:
    return w.compare("olt", magnitude(w, x), float("inf"))


def require_finite(w: Lapack, place: str, count: int) -> None:
    """Give up where one of so many numbers is infinite or nan: LAPACK's iterations need not end then."""
    step = w.real.itemsize
    w.loop(count * (w.size // step), lambda k: w.require(is_finite(w, w.load(w.at(place, 0, (k, step)), w.real))))


def magnitude(w: Lapack, x: Number) -> Number:
    """The absolute value of a real number."""
    suffix = "f64" if x.dtype == F64 else "f32"
    w.declarations.add(f"declare {x.type} @llvm.fabs.{suffix}({x.type})")
    return x._replace(text=w.emit(f"call {x.type} @llvm.fabs.{suffix}({x.type} {x.text})"))


def write_solve(operation: Operation, name: str, target: Target) -> Step | None:
    w = Lapack(operation, target)
    if not w.fits:
        return None
    right = operation.operands[1].type
    n, count = w.rows, right.static_shape[-1]
    if small_systems.is_small(w, small_systems.MOST_ROWS, count):
        w.attempt(lambda: small_systems.write_solve(w, count))
    elif stacked_systems.is_stacked(w, count):
        w.attempt(lambda: stacked_systems.write_solve(w, count))
    sides = wide_systems.Sides(w, n, count) if wide_systems.is_wide(w, count) else None
    matrix, pivots = w.space(n * n), w.space(n, INT32)
    solution = w.space(n * count) if sides is None else ""

    def body(example: Number) -> None:
        w.take(matrix, w.matrix("%in0", w.given, example), n, n)
        if sides is not None:
            wide_systems.solve(w, sides, matrix, pivots, w.matrix("%in1", right, example), w.result(example))
            return
        w.take(solution, w.matrix("%in1", right, example), n, count)
        solve(w, matrix, pivots, solution, n, count)
        w.require(w.succeeded())
        w.give(w.result(example), solution, n, count, n)

    w.each(body)
    return w.step(name, operation)


def solve(w: Lapack, matrix: str, pivots: str, solution: str, n: int, count: int) -> None:
    size = w.integer_at(n)
    w.run("gesv", size, w.integer_at(count), matrix, size, pivots, solution, size)


def write_triangular_solve(operation: Operation, name: str, target: Target) -> Step | None:
    """For rows of C, from the right: x^T op(A)^T = b^T, where Fortran has A^T for A."""
    w = Lapack(operation, target, wide=False)
    if not w.fits:
        return None
    attrs, right = operation.attrs, operation.operands[1].type
    n, count = w.rows, right.static_shape[-1]
    parts = 2 if w.dtype.kind == "c" else 1
    if small_systems.is_small(w, small_systems.MOST_TRIANGLE, count):
        w.attempt(lambda: small_systems.write_triangular_solve(w, count))
    elif stacked_systems.is_stacked(w, count):
        w.attempt(lambda: stacked_systems.write_triangular_solve(w, count))

    sides = wide_systems.Sides(w, n, count) if wide_systems.is_wide(w, count) else None

    def regular(example: Number) -> None:
        start = w.matrix("%in0", w.given, example)

        def test(k: Number) -> None:
            found = [
                w.compare("une", w.load(w.at(start, part * w.real.itemsize, (k, (n + 1) * w.size)), w.real), 0.0)
                for part in range(parts)
            ]
            w.require(found[0] if parts == 1 else w.binary("or", *found))

        w.loop(n, test)

    def body(example: Number) -> None:
        if not attrs["unit"]:
            regular(example)
        result = w.result(example)
        if sides is not None:
            start = w.matrix("%in0", w.given, example)
            wide_systems.solve_triangle(w, sides, start, w.matrix("%in1", right, example), result)
            return
        w.copy(result, w.matrix("%in1", right, example), n * count * w.size)
        matrix, size = w.matrix("%in0", w.given, example), w.integer_at(n)
        triangle, unit = w.letter_at("U" if attrs["lower"] else "L"), w.letter_at("U" if attrs["unit"] else "N")
        if count == 1 and (parts == 1 or attrs["trans"] != "C"):
            opposite = w.letter_at("T" if attrs["trans"] == "N" else "N")
            w.run("trsv", triangle, opposite, unit, size, matrix, size, result, w.integer_at(1), informs=False)
            return
        at_once = count if n > wide_systems.MOST_ROWS else wide_systems.MOST_ALONE
        whole = count // at_once * at_once

        def some(start: Number, columns: int) -> None:
            w.run(
                "trsm", w.letter_at("R"), triangle, w.letter_at(attrs["trans"]), unit, w.integer_at(columns), size,
                w.number_at(1, w.dtype), matrix, size, w.at(result, 0, (start, w.size)), w.integer_at(count),
                informs=False,
            )  # fmt: skip

        w.loop(whole, lambda j: some(j, at_once), 0, at_once)
        if count > whole:
            some(w.index(whole), count - whole)

    w.each(body)
    return w.step(name, operation)


def write_inv(operation: Operation, name: str, target: Target) -> Step | None:
    w = Lapack(operation, target)
    return write_inverse(w, name, strict=operation.attrs["strict"], transposed=False) if w.fits else None


def write_slogdet_gradient(operation: Operation, name: str, target: Target) -> Step | None:
    """The transposed inverse; where it does not exist, the status is 1."""
    w = Lapack(operation, target)
    return write_inverse(w, name, strict=True, transposed=True) if w.fits else None


def write_inverse(w: Lapack, name: str, strict: bool, transposed: bool) -> Step:
    """The solution of A x = 1. Of a singular matrix the status is 1, or all of it nan unless ``strict``."""
    n = w.rows
    if small_systems.is_small(w, small_systems.MOST_ROWS):
        w.attempt(lambda: small_systems.write_inverse(w, transposed))
    elif stacked_systems.is_stacked(w):
        w.attempt(lambda: stacked_systems.write_inverse(w, transposed))
    sides = wide_systems.Sides(w, n, n) if wide_systems.is_wide(w, n) else None
    matrix, pivots = w.space(n * n), w.space(n, INT32)
    inverse = w.space(n * n) if sides is None else ""

    def body(example: Number) -> None:
        result, given = w.result(example), w.matrix("%in0", w.given, example)
        if sides is not None:
            wide_systems.invert(w, sides, matrix, pivots, given, result, strict, transposed)
            return
        w.take(matrix, given, n, n)
        w.identity(inverse, n)
        solve(w, matrix, pivots, inverse, n, n)
        if strict:
            w.require(w.succeeded())
        else:
            w.fill_if_failed(inverse, n * n)
        if transposed:
            copy_rows(w, result, inverse, n * n, w.own, w.dtype)
        else:
            w.give(result, inverse, n, n, n)

    w.each(body)
    return w.step(name, w.operation)


WRITERS: Final[Mapping[str, StepWriter]] = {
    "cholesky": write_cholesky,
    "inv": write_inv,
    "is_indefinite": write_is_indefinite,
    "slogdet_gradient": write_slogdet_gradient,
    "solve": write_solve,
    "triangular_solve": write_triangular_solve,
}
