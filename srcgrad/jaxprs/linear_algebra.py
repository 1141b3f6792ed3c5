"""Products of arrays, factorisations and the solution of linear systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.jaxprs.elementwise import converted
from srcgrad.jaxprs.table import Equation, permuted, reshaped, rule, sizes, traced
from srcgrad.tracing.functions.linear_algebra import emit_all
from srcgrad.tracing.tracer import Tracer, emit


@rule("dot_general")
def dot_general(e: Equation) -> Tracer:
    (left, right), (batch_left, batch_right) = e.params["dimension_numbers"]
    operands = [converted(x, e.dtype) for x in e.tracers]
    contract = (sizes(left), sizes(right))
    return emit("dot_general", *operands, contract=contract, batch=(sizes(batch_left), sizes(batch_right)))


@rule("cholesky")
def cholesky(e: Equation) -> Tracer:
    return emit("cholesky", e.x)


@rule("triangular_solve")
def triangular_solve(e: Equation) -> Tracer:
    """``op(a) x = b``, or ``x op(a) = b``: the transposed system then, ``op(a)^T x^T = b^T``."""
    a, b = e.tracers
    transposes, conjugates = bool(e.params["transpose_a"]), bool(e.params["conjugate_a"])
    lower, unit = bool(e.params["lower"]), bool(e.params["unit_diagonal"])
    if not e.params["left_side"]:
        b, transposes = last_two(b), not transposes
    if conjugates and a.dtype.kind == "c" and not transposes:
        a, conjugates = emit("conj", a), False
    trans = ("C" if conjugates and a.dtype.kind == "c" else "T") if transposes else "N"
    found = emit("triangular_solve", a, b, lower=lower, trans=trans, unit=unit)
    return found if e.params["left_side"] else last_two(found)


def last_two(x: Tracer) -> Tracer:
    """The transposed matrices."""
    return permuted(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


@rule("eigh")
def eigh(e: Equation) -> list[Any]:
    if e.params.get("subset_by_index") not in (None, (0, e.x.shape[-1])):
        raise e.unsupported("eigh of some eigenvalues only has no counterpart", "take them from all")
    values, vectors = np.linalg.eigh(e.x, UPLO="L" if e.params["lower"] else "U")
    return [vectors, values]


@rule("svd")
def svd(e: Equation) -> list[Any]:
    if e.params.get("subset_by_index") is not None:
        raise e.unsupported("svd of some singular values only has no counterpart", "take them from all")
    full, vectors = bool(e.params["full_matrices"]), bool(e.params["compute_uv"])
    decompose: Any = np.linalg.svd
    found = decompose(e.x, full_matrices=full, compute_uv=vectors)
    return [found[1], found[0], found[2]] if vectors else [found]


@rule("qr")
def qr(e: Equation) -> list[Any]:
    if e.params.get("pivoting"):
        raise e.unsupported("qr with pivoting has no counterpart", "use it without")
    mode: Any = "complete" if e.params["full_matrices"] else "reduced"
    return list(np.linalg.qr(e.x, mode=mode))


@rule("lu")
def lu(e: Equation) -> list[Tracer]:
    """The packed factors, the rows exchanged in their order, and the permutation that they make."""
    packed, pivots = emit_all("lu", e.x)
    rows = emit("permutation_of_pivots", pivots, size=e.x.shape[-2])
    return [packed, pivots, rows]


@rule("lu_pivots_to_permutation")
def lu_pivots_to_permutation(e: Equation) -> Tracer:
    return emit("permutation_of_pivots", e.x, size=int(e.params["permutation_size"]))


@rule("eig")
def eig(e: Equation) -> list[Any]:
    if e.params["compute_left_eigenvectors"]:
        raise e.unsupported("left eigenvectors have no counterpart", "take eigenvectors of the transposed matrix")
    if not e.params["compute_right_eigenvectors"]:
        return [np.linalg.eigvals(e.x)]
    return list(np.linalg.eig(e.x))


@rule("fft")
def fft(e: Equation) -> Any:
    """A transform over the last axes, which has the lengths that it has."""
    lengths = sizes(e.params["fft_lengths"])
    kind = getattr(e.params["fft_type"], "name", str(e.params["fft_type"])).upper()
    transform: Any = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}[kind]
    return transform(e.x, s=lengths, axes=tuple(range(-len(lengths), 0)))


@rule("custom_linear_solve")
def custom_linear_solve(e: Equation) -> list[Any]:
    """``jnp.linalg.solve`` and ``inv``: the matrix is what the product that defines the system is taken with.

    jax keeps the right-hand sides in rows where there are several. Of other systems the function that solves them is
    followed.
    """
    count = e.params["const_lengths"].matvec
    right = e.operands[sum(e.params["const_lengths"]) :]
    order = axes_of_product(e.params["jaxprs"].matvec) if count == 1 and len(right) == 1 else None
    if order is None:
        return solved_as_written(e)
    a, b = traced(e.operands[0]), traced(right[0])
    stack, n = a.shape[:-2], b.shape[-1]
    many = tuple(b.shape[axis] for axis in order[len(stack) + 1 :])
    columns = reshaped(permuted(b, order), (*stack, n, int(np.prod(many))))
    solved = reshaped(emit("solve", a, columns), (*stack, n, *many))
    return [permuted(solved, np.argsort(order))]


def solved_as_written(e: Equation) -> list[Any]:
    """What the function that solves the system gives: its derivative is that of its steps."""
    from srcgrad.jaxprs.walk import walk  # which is written with the rules

    lengths, body = e.params["const_lengths"], e.params["jaxprs"].solve
    first = lengths.matvec + lengths.vecmat
    given = [*e.operands[first : first + lengths.solve], *e.operands[sum(lengths) :]]
    return walk(body.jaxpr, body.consts, given)


def axes_of_product(closed: Any) -> list[int] | None:
    """Whether a linear function is the product of its first input, a stack of matrices, with vectors in the last axis
    of its second: tried on numbers, which tells a matrix from its transpose.

    Returns the axes of the vectors as those of the stack, the vector's own, and those that count right-hand sides,
    which may stand before or behind the stack's; None if it is no such product.
    """
    import jax
    from jax.extend.core import jaxpr_as_fun

    types = [value.aval for value in closed.jaxpr.invars]
    if len(types) != 2 or len(types[0].shape) < 2 or not types[1].shape:
        return None
    generator = np.random.default_rng(0)
    a, b = [generator.standard_normal(t.shape).astype(t.dtype) for t in types]
    with jax.ensure_compile_time_eval():
        found = np.asarray(jaxpr_as_fun(closed)(a, b)[0])
    stack, last = a.ndim - 2, b.ndim - 1
    extra = last - stack
    if extra < 0 or found.shape != b.shape or a.shape[-2:] != (b.shape[-1],) * 2:
        return None
    for begin, many in ((extra, range(extra)), (0, range(stack, last))):
        order = [*range(begin, begin + stack), last, *many]
        if b.shape[begin : begin + stack] != a.shape[:-2]:
            continue
        columns = np.transpose(b, order).reshape(*a.shape[:-1], -1)
        product = (a @ columns).reshape([b.shape[axis] for axis in order])
        if np.allclose(np.transpose(found, order), product, rtol=1e-3, atol=1e-3):
            return order
    return None
