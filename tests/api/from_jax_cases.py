"""jax functions for ``from_jax``: each with its arguments, all of double precision."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


class Case(NamedTuple):
    f: Callable[..., Any]
    args: tuple[Any, ...]


X = np.array([0.3, -1.2, 0.8, 2.1])
P = np.array([0.4, 1.7, 0.9, 2.5])
"""Positive numbers."""
M = np.array([[0.5, -0.3, 1.1, 0.2], [0.9, 0.1, -0.7, 1.3], [0.25, 0.75, 0.35, -1.6]])
A = np.array([[4.0, 1.0, 0.5], [0.8, 3.0, -0.4], [0.3, 0.6, 5.0]])
S = A @ A.T
B = np.array([1.0, -2.0, 0.5])
I = np.array([2, 0, 3, 0])  # noqa: E741


@jax.custom_jvp
def clipped(x: Any) -> Any:
    """Its rule is not its derivative."""
    return jnp.clip(x, -1.0, 1.0)


@clipped.defjvp
def clipped_rule(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return clipped(x), 3.0 * x * t


@jax.custom_vjp
def scaled(x: Any, y: Any) -> Any:
    """Its rule is not its derivative."""
    return jnp.sin(x) * y


scaled.defvjp(lambda x, y: (scaled(x, y), (x, y)), lambda r, ct: (5.0 * r[1] * ct, jnp.cos(r[0]) * ct))


def mlp(params: Any, x: Any) -> Any:
    """A small network: layers as a list of dicts."""
    for layer in params[:-1]:
        x = jax.nn.gelu(x @ layer["w"] + layer["b"])
    out = jax.nn.log_softmax(x @ params[-1]["w"] + params[-1]["b"])
    return -jnp.mean(out[:, 0] * 0.3 + out[:, 1] * 0.7)


def parameters() -> Any:
    generator = np.random.default_rng(3)
    sizes = [4, 6, 5, 2]
    return [
        {"w": generator.standard_normal((a, b)), "b": generator.standard_normal(b)}
        for a, b in itertools.pairwise(sizes)
    ]


def branch(x: Any) -> Any:
    return lax.cond(x[0] > 0, lambda y: jnp.sum(jnp.sin(y)), lambda y: jnp.sum(y**3), x)


def looped(x: Any) -> Any:
    total, rows = lax.scan(lambda c, r: (c * 0.5 + jnp.sin(r), c * r), jnp.zeros_like(x[0]), x)
    return jnp.sum(total) + jnp.sum(rows[1:] ** 2)


def long_scan(x: Any, m: Any) -> Any:
    """Too long to be unrolled: what is carried, read row by row, given twice, constant, and counted."""

    def step(c: Any, r: Any) -> Any:
        return (jnp.tanh(m[:, :3] @ c[0] + r[0]), c[1] + 1), (c[0], c[0] * r[1], jnp.arange(2.0), c[1] * r[1], c[0])

    given = (jnp.outer(jnp.sin(jnp.arange(400.0)), x[:3]), jnp.cos(jnp.arange(400.0)) * x[3])
    (last, count), rows = lax.scan(step, (x[:3], 0), given, reverse=True)
    return jnp.sum(last) * count + sum(jnp.sum(r**2) * (k + 1) for k, r in enumerate(rows))


def transforms(x: Any, m: Any) -> Any:
    """All kinds of Fourier transforms, with lengths of their own."""
    found = [jnp.fft.fft(m, n=5, axis=0), jnp.fft.ifft2(m + 1j * x), jnp.fft.rfftn(m, norm="ortho")]
    found += [jnp.fft.irfft2(m + 1j * x**2), jnp.fft.irfft(m * 1j + x, n=5), jnp.fft.hfft(x + 1j * x)]
    weights = [jnp.cos(jnp.arange(float(f.size))).reshape(f.shape) for f in found]
    return sum(jnp.sum(jnp.abs(f) ** 2 * w) for f, w in zip(found, weights, strict=True))


def extremes_at_places(x: Any, m: Any) -> Any:
    """Places out of bounds, places twice, places that values decide, all of an array."""
    large = jnp.argmax(x)
    found = [m.at[jnp.array([0, 2, 7])].max(x), m.at[:, jnp.array([3, 3])].min(x[:2]), m.at[...].min(0.3 * x)]
    found += [
        m.at[jnp.array([1, 2])].multiply(x, unique_indices=True),
        m.at[large % 3].multiply(x[1], unique_indices=True),
        m.at[large % 3, 1:].max(x[:3]),
    ]
    return sum(jnp.sum(f**2 * (k + 1)) for k, f in enumerate(found)) + jnp.sum(jax.ops.segment_max(x, I // 2, 2))


def factors(a: Any, b: Any) -> Any:
    p, lower, upper = jax.scipy.linalg.lu(a[::-1])
    packed = jax.scipy.linalg.lu_factor(a[::-1])
    solved = [jax.scipy.linalg.lu_solve(packed, b, trans=k) for k in (0, 1)]
    return jnp.sum(p @ lower * upper.T**2) + jnp.sum(solved[0] * jnp.sin(solved[1]))


def stacked_systems(a: Any, b: Any) -> Any:
    """Right-hand sides before and behind a stack of matrices."""
    many = jnp.stack([a, 2 * a + jnp.eye(3)])
    columns = b[:, None] * jnp.arange(1.0, 3.0)
    found = [jnp.linalg.solve(many, jnp.stack([columns, columns**2])), jax.vmap(jnp.linalg.solve, (0, None))(many, b)]
    found += [jnp.linalg.inv(many), lax.custom_linear_solve(
        lambda v: b * v, a, lambda _, v: v / b, lambda _, v: v / b
    )]  # fmt: skip
    return sum(jnp.sum(jnp.sin(f)) for f in found)


def counted(x: Any) -> Any:
    return jnp.sum(lax.fori_loop(0, 3, lambda k, y: jnp.sin(y) + k * y, x))


def root(x: Any) -> Any:
    """The square root, by a rule of its own for the derivative: the search for it has none."""

    def search(f: Any, guess: Any) -> Any:
        return lax.stop_gradient(lax.fori_loop(0, 8, lambda k, y: y - f(y) / (2 * y), guess))

    found = lax.custom_root(lambda y: y * y - x, jnp.ones_like(x), search, lambda g, y: y / g(jnp.ones_like(y)))
    return jnp.sum(found * jnp.cos(x))


def exponents(x: Any) -> Any:
    mantissa, exponent = jnp.frexp(x)
    return jnp.sum(jnp.sin(mantissa) * jnp.ldexp(x * x, exponent))


def places(x: Any) -> Any:
    """Places that numbers decide."""
    large = x[jnp.nonzero(x > 0.2, size=2)[0]]
    return jnp.sum(jnp.sin(large)) + jnp.sum(x * jnp.searchsorted(jnp.arange(-1.0, 2.0), x))


def multi_sort(x: Any) -> Any:
    keys, values = lax.sort((x, jnp.arange(4.0) * x), num_keys=1)
    return jnp.sum(jnp.cos(keys) * values)


CASES: dict[str, Case] = {
    "arithmetic": Case(lambda x: jnp.sum(x * x - 2.0 / (1.0 + x * x) + x**3 - jnp.square(x) ** 1.5), (X,)),
    "trigonometry": Case(lambda x: jnp.sum(jnp.sin(x) * jnp.cos(x) + jnp.tan(x / 3) + jnp.arctan(x)), (X,)),
    "inverse": Case(lambda x: jnp.sum(jnp.arcsin(x / 3) + jnp.arccos(x / 4) + jnp.arctanh(x / 5)), (X,)),
    "hyperbolic": Case(lambda x: jnp.sum(jnp.sinh(x) - jnp.cosh(x) + jnp.arcsinh(x) * jnp.tanh(x)), (X,)),
    "exponentials": Case(lambda x: jnp.sum(jnp.exp(x) + jnp.expm1(x) + jnp.exp2(x) + jnp.log1p(x * x)), (X,)),
    "roots": Case(lambda x: jnp.sum(jnp.sqrt(x) + lax.rsqrt(x) + jnp.cbrt(x) + jnp.log(x) + jnp.log2(x)), (P,)),
    "small_arguments": Case(
        lambda x: jnp.sum(jnp.sinc(x) * jnp.sinc(1e-3 * x) + jax.jvp(jnp.tanh, (x,), (x,))[1]), (X,)
    ),
    "exponents": Case(exponents, (X,)),
    "places": Case(places, (X,)),
    "custom_root": Case(root, (P,)),
    "powers": Case(lambda x, y: jnp.sum(x**y + jnp.power(x, 2) + jnp.float_power(x, 0.3)), (P, X)),
    "special": Case(
        lambda x: jnp.sum(jax.scipy.special.erf(x) + jax.scipy.special.gammaln(x) + jax.scipy.special.digamma(x)), (P,)
    ),
    "errors": Case(lambda x: jnp.sum(jax.scipy.special.erfc(x) + jax.scipy.stats.norm.logpdf(x)), (X,)),
    "arctan2": Case(lambda x, y: jnp.sum(jnp.arctan2(x, y) + jnp.hypot(x, y)), (X, P)),
    "mod": Case(lambda x: jnp.sum(jnp.mod(x, 0.7) * x + jnp.fmod(x, 0.9) + jnp.floor(x) * x), (X,)),
    "extrema": Case(lambda x: jnp.sum(jnp.maximum(x, 0.1) * jnp.minimum(x, 1.0)) + jnp.max(x) * jnp.min(x), (X,)),
    "clip": Case(lambda x: jnp.sum(jnp.clip(x, -0.5, 1.0) * x) + jnp.sum(lax.clamp(-1.0, x, 0.9) * x), (X,)),
    "where": Case(lambda x: jnp.sum(jnp.where(x > 0, jnp.exp(-x), x**2)), (X,)),
    "select": Case(lambda x: jnp.sum(jnp.select([x < 0, x < 1], [x**2, jnp.sin(x)], x)), (X,)),
    "reductions": Case(lambda m: jnp.sum(jnp.prod(m, axis=0) * jnp.mean(m, axis=0)) + jnp.var(m) + jnp.std(m), (M,)),
    "logsumexp": Case(lambda m: jnp.sum(jax.nn.logsumexp(m, axis=1) ** 2), (M,)),
    "softmax": Case(lambda m: jnp.sum(jax.nn.softmax(m, axis=-1)[:, 1] * jax.nn.log_softmax(m)[:, 0]), (M,)),
    "activations": Case(
        lambda x: jnp.sum(jax.nn.relu(x) * x + jax.nn.gelu(x) + jax.nn.silu(x) + jax.nn.softplus(x) + jax.nn.elu(x)),
        (X,),
    ),
    "more_activations": Case(
        lambda x: jnp.sum(
            jax.nn.sigmoid(x) + jax.nn.leaky_relu(x) + jax.nn.selu(x) + jax.nn.gelu(x, approximate=False)
        ),
        (X,),
    ),
    "logaddexp": Case(lambda x, y: jnp.sum(jnp.logaddexp(x, y) + jax.scipy.special.xlogy(y, y)), (X, P)),
    "shapes": Case(
        lambda m: (
            jnp.sum(jnp.sin(m.T.reshape(2, 6)[::-1]) * jnp.flip(m).ravel()[:12].reshape(2, 6))
            + jnp.sum(jnp.squeeze(m[None]) * jnp.expand_dims(m[0], 0))
        ),
        (M,),
    ),
    "joins": Case(
        lambda x, m: (
            jnp.sum(jnp.concatenate([x, m[1]]) ** 2)
            + jnp.sum(jnp.stack([x, m[0]], 1)[:, 1] * x)
            + jnp.sum(jnp.tile(x, 2) * jnp.repeat(x, 2))
        ),
        (X, M),
    ),
    "pads": Case(
        lambda x: (
            jnp.sum(jnp.pad(x, (1, 2)) ** 2 * jnp.arange(7.0))
            + jnp.sum(lax.pad(x, x[0], [(-1, 2, 1)]) * jnp.arange(8.0))
        ),
        (X,),
    ),
    "slices": Case(lambda m: jnp.sum(m[1:, ::2] * m[:-1, 1::2]) + m[-1, -1] * m[0, 0] + jnp.sum(m[..., 2] ** 2), (M,)),
    "rolls": Case(lambda x: jnp.sum(jnp.roll(x, 1) * x + jnp.diff(x, append=0.0) * jnp.cumsum(x[::-1])), (X,)),
    "gathers": Case(
        lambda x, m: (
            jnp.sum(x[I] ** 2 * jnp.arange(4.0))
            + jnp.sum(m[jnp.array([0, 2]), I[:2]] * 3.0)
            + jnp.sum(m[:, I] ** 2)
            + jnp.sum(jnp.take(m, I, axis=1)[0])
        ),
        (X, M),
    ),
    "traced_index": Case(
        lambda x, m: x[jnp.argmax(x)] ** 2 * m[jnp.argmin(x) % 3, 1] + jnp.sum(m[jnp.argsort(x)[:2] % 3]), (X, M)
    ),
    "traced_slice": Case(
        lambda x: (
            jnp.sum(lax.dynamic_slice(x, (jnp.argmax(x) - 2,), (2,)) ** 2)
            + jnp.sum(lax.dynamic_update_slice(x, x[:2] * 3, (jnp.argmin(x),)) ** 2)
        ),
        (X,),
    ),
    "scatters": Case(
        lambda x: jnp.sum(x.at[I].add(x**2) ** 2 * jnp.arange(4.0)) + jnp.sum(x.at[1:3].set(x[:2] * 2) ** 3),
        (X,),
    ),
    "out_of_bounds": Case(
        lambda x: (
            jnp.sum(x.at[jnp.array([1, 9])].set(x[:2] ** 2) ** 2)
            + jnp.sum(jnp.take(x, jnp.array([1, 7]), mode="fill", fill_value=0.5) * 2)
            + jnp.sum(jnp.take(x, jnp.argsort(x) + 2, mode="clip") * x)
        ),
        (X,),
    ),
    "take_along": Case(lambda m: jnp.sum(jnp.take_along_axis(m, jnp.argsort(m, axis=1)[:, :2], axis=1) ** 3), (M,)),
    "sorts": Case(lambda x: jnp.sum(jnp.sort(x) * jnp.arange(4.0)) + jnp.median(x) * jnp.quantile(x, 0.3), (X,)),
    "multi_sort": Case(multi_sort, (X,)),
    "top_k": Case(lambda x: jnp.sum(lax.top_k(x, 2)[0] ** 2), (X,)),
    "cumulative": Case(
        lambda m: (
            jnp.sum(jnp.cumsum(m, 1) * jnp.cumprod(m, 0))
            + jnp.sum(lax.cummax(m, 1) * lax.cummin(m, 0))
            + jnp.sum(lax.cumlogsumexp(m, 1, reverse=True) * m)
        ),
        (M,),
    ),
    "products": Case(lambda m, x: jnp.sum((m @ x) ** 2) + jnp.einsum("ij,kj,j->", m, m, x) + jnp.vdot(x, x), (M, X)),
    "outer": Case(
        lambda x, b: jnp.sum(jnp.outer(x, b) ** 2) + jnp.sum(jnp.kron(x, b) * 2) + jnp.trace(jnp.outer(x, x)), (X, B)
    ),
    "norms": Case(
        lambda m: jnp.linalg.norm(m) + jnp.sum(jnp.linalg.norm(m, axis=1) ** 3) + jnp.linalg.norm(m, 1), (M,)
    ),
    "solve": Case(
        lambda a, b: jnp.sum(jnp.linalg.solve(a, b) ** 2) + jnp.sum(jnp.linalg.solve(a, a.T * 0.5)[1]), (A, B)
    ),
    "inverse_matrix": Case(lambda a: jnp.sum(jnp.linalg.inv(a) ** 2), (A,)),
    "solve_stack": Case(
        lambda a, b: jnp.sum(jax.vmap(jnp.linalg.solve)(jnp.stack([a, a.T]), jnp.stack([b, b])) ** 2), (A, B)
    ),
    "solve_many": Case(
        lambda a, b: jnp.sum(jax.vmap(jnp.linalg.solve, (None, 0))(a, jnp.stack([b, b * b])) ** 2), (A, B)
    ),
    "cholesky": Case(
        lambda s, b: (
            jnp.sum(jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(s), b, lower=True) ** 2)
            + jnp.sum(jnp.log(jnp.diag(jnp.linalg.cholesky(s))))
        ),
        (S, B),
    ),
    "triangular": Case(
        lambda a, b: (
            jnp.sum(lax.linalg.triangular_solve(a, jnp.stack([b, b * b]), left_side=False, lower=False) ** 2)
            + jnp.sum(jax.scipy.linalg.solve_triangular(a, b, trans=1, unit_diagonal=True) ** 2)
        ),
        (A, B),
    ),
    "slogdet": Case(lambda a: jnp.linalg.slogdet(a)[1] * 2.0, (A,)),
    "det": Case(lambda a: jnp.linalg.det(a) + jnp.linalg.det(jnp.kron(a[:2, :2], a[1:, 1:])) ** 2 * 1e-6, (S,)),
    "small_dets": Case(lambda a: jnp.linalg.det(a[:2, :2]) * jnp.sum(jnp.linalg.det(jnp.stack([a, a @ a]))), (S,)),
    "convolution": Case(
        lambda m, x: (
            jnp.sum(jnp.convolve(m[0], x[:3], mode="same") ** 2)
            + jnp.sum(jax.scipy.signal.convolve(m, jnp.outer(x, x)[:2, :2]) ** 2)
        ),
        (M, X),
    ),
    "grouped_convolution": Case(
        lambda m: jnp.sum(
            lax.conv_general_dilated(
                jnp.stack([m, m**2], 2)[None],
                jnp.cos(jnp.arange(24.0)).reshape(4, 1, 2, 3) * m[0, 0],
                (2, 1),
                ((1, 0), (0, 1)),
                lhs_dilation=(1, 2),
                rhs_dilation=(2, 1),
                dimension_numbers=("NHWC", "OIHW", "NHWC"),
                feature_group_count=2,
            )
            ** 2
        ),
        (M,),
    ),
    "pooling": Case(
        lambda m: (
            jnp.sum(lax.reduce_window(m, -jnp.inf, lax.max, (2, 2), (1, 2), "SAME") ** 2)
            + jnp.sum(lax.reduce_window(m, 0.0, lax.add, (2, 3), (1, 1), "VALID") ** 2)
        ),
        (M,),
    ),
    "eigh": Case(lambda s: jnp.sum(jnp.linalg.eigvalsh(s) ** 2) + jnp.linalg.eigh(s)[1][0, 0] ** 2, (S,)),
    "svd": Case(lambda a: jnp.sum(jnp.linalg.svd(a)[1] ** 3) + jnp.linalg.norm(a, 2) + jnp.linalg.cond(a), (A,)),
    "qr": Case(lambda a: jnp.sum(jnp.abs(jnp.linalg.qr(a)[1]) * a), (A,)),
    "rounding": Case(lambda x: jnp.sum(jnp.round(x * 3) * x + lax.round(x + 0.5) * x), (X,)),
    "vmap": Case(lambda m, x: jnp.sum(jax.vmap(lambda r: jnp.dot(jnp.sin(r), x) * r[1])(m) ** 2), (M, X)),
    "vmap_gather": Case(lambda m: jnp.sum(jax.vmap(lambda r: r[jnp.argmax(r)] * r[0])(m)), (M,)),
    "vmap_scatter": Case(lambda m: jnp.sum(jax.vmap(lambda r: r.at[jnp.argmin(r)].set(r[0] ** 2))(m) ** 2), (M,)),
    "inner_grad": Case(lambda x: jnp.sum(jax.grad(lambda y: jnp.sum(jnp.sin(y) ** 3))(x) ** 2), (X,)),
    "jit": Case(lambda x: jax.jit(lambda y, n: jnp.sum(y**n), static_argnums=1)(x, 3), (X,)),
    "remat": Case(lambda x: jnp.sum(jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x)), (X,)),
    "custom_jvp": Case(lambda x: jnp.sum(clipped(x) * x), (X,)),
    "custom_vjp": Case(lambda x, y: jnp.sum(scaled(x, y) ** 2), (X, P)),
    "stop_gradient": Case(lambda x: jnp.sum(lax.stop_gradient(jnp.sin(x)) * x), (X,)),
    "cond": Case(branch, (X,)),
    "scan": Case(looped, (M,)),
    "long_scan": Case(long_scan, (X, M)),
    "fori_loop": Case(counted, (X,)),
    "transforms": Case(transforms, (X, M)),
    "extremes_at_places": Case(extremes_at_places, (X, M)),
    "factors": Case(factors, (A, B)),
    "stacked_systems": Case(stacked_systems, (A, B)),
    "incomplete_beta": Case(lambda x: jnp.sum(jax.scipy.special.betainc(2.0, 1.5, x / 3)), (P,)),
    "eigenvalues": Case(lambda a: jnp.sum(jnp.abs(jnp.linalg.eigvals(a)) ** 3), (A,)),
    "random": Case(lambda x: jnp.sum(x * jax.random.normal(jax.random.key(1), (4,), dtype=float)), (X,)),
    "bits": Case(
        lambda x: jnp.sum(jnp.where((x > 0) & ~(x > 1) | (x < -1), x**2, x)) * jnp.sum(jnp.arange(4) // 3), (X,)
    ),
    "interpolation": Case(lambda x: jnp.sum(jnp.interp(x, jnp.arange(4.0), P) ** 2), (X,)),
    "complex": Case(lambda x: jnp.sum(jnp.abs(jnp.exp(1j * x) + x) ** 2 + jnp.real(x * jnp.conj(1j * x + 1))), (X,)),
}
MLP = Case(mlp, (parameters(), np.random.default_rng(5).standard_normal((3, 4))))
