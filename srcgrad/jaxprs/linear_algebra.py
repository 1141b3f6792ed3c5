"""Products of arrays, factorisations and the solution of linear systems."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from srcgrad.jaxprs.elementwise import converted
from srcgrad.jaxprs.table import Equation, permuted, reshaped, rule, sizes, traced
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


class Factors(NamedTuple):
    """What a factorisation by jax gave: a part that only `custom_linear_solve` reads, and does without."""

    type: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.type.shape)


@rule("lu")
def lu(e: Equation) -> list[Any]:
    return [Factors(type) for type in e.results]


@rule("custom_linear_solve")
def custom_linear_solve(e: Equation) -> list[Tracer]:
    """``jnp.linalg.solve`` and ``inv``: the matrix is what the product that defines the system is taken with.

    jax keeps the right-hand sides in rows where there are several.
    """
    count = e.params["const_lengths"].matvec
    matrices = [operand for operand in e.operands[:count] if not isinstance(operand, Factors)]
    right = e.operands[sum(e.params["const_lengths"]) :]
    if len(matrices) != 1 or len(right) != 1 or not is_product(e.params["jaxprs"].matvec, count):
        raise e.unsupported("a custom_linear_solve of this form has no counterpart", "use jnp.linalg.solve")
    a, b = traced(matrices[0]), traced(right[0])
    rows = b.ndim > a.ndim - 1  # axes in front of the matrix's own stack count right-hand sides
    stack = a.shape[:-2]
    if not rows:
        column = reshaped(b, (*b.shape, 1))
        return [reshaped(emit("solve", a, column), b.shape)]
    extra = b.ndim - (a.ndim - 1)
    if stack and b.shape[extra:-1] != stack:
        raise e.unsupported("a custom_linear_solve of this form has no counterpart", "use jnp.linalg.solve")
    n = b.shape[-1]
    front = list(range(extra))
    perm = [*range(extra, b.ndim), *front]
    columns = reshaped(permuted(b, perm), (*stack, n, int(np.prod(b.shape[:extra]))))
    solved = reshaped(emit("solve", a, columns), (*stack, n, *b.shape[:extra]))
    return [permuted(solved, np.argsort(perm))]


def is_product(closed: Any, count: int) -> bool:
    """Whether a linear function is the product of its first input, a stack of matrices, with vectors in the last axis
    of its second: tried on numbers, which tells a matrix from its transpose.
    """
    import jax
    from jax.extend.core import jaxpr_as_fun

    types = [value.aval for value in closed.jaxpr.invars]
    if count != 1 or len(types) != 2 or len(types[0].shape) < 2:
        return False
    generator = np.random.default_rng(0)
    a, b = [generator.standard_normal(t.shape).astype(t.dtype) for t in types]
    with jax.ensure_compile_time_eval():
        found = np.asarray(jaxpr_as_fun(closed)(a, b)[0])
    if b.ndim + 1 < a.ndim or found.shape != b.shape:
        return False
    return bool(np.allclose(found, np.einsum("...ij,...j->...i", a, b), rtol=1e-3, atol=1e-3))
