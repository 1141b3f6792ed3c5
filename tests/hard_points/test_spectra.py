"""Functions of eigenvalues and singular values where those are equal, or nearly so: values and both derivatives."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.passes.pipeline import prepare
from srcgrad.ir.transforms.linearize import jvp
from tests.hard_points.high_precision import eigen_function, singular_function, trace, value_and_derivatives
from tests.hard_points.spectra import (  # noqa: F401  the fixtures work where they are imported
    HC,
    KC,
    RANDOM,
    UNIT,
    WC,
    XS,
    Array,
    B,
    Function,
    H,
    K,
    W,
    X,
    check,
    close,
    hermitian,
    la,
    on_numpy,
    rotated,
    same_numbers,
    second_by_differences,
)
from tests.tracing.linalg_cases import L
from tests.tracing.trace_support import run, trace_function

# --- functions of Hermitian matrices ----------------------------------------------------------------------------------

FUNCTIONS: dict[str, tuple[Function, Function]] = {
    "exp": (np.exp, mpmath.exp),
    "log": (np.log, mpmath.log),
    "sqrt": (np.sqrt, mpmath.sqrt),
    "power": (lambda w: w**1.7, lambda x: x ** mpmath.mpf(1.7)),
    "inverse": (lambda w: 1 / w, lambda x: 1 / x),
    "tanh": (np.tanh, mpmath.tanh),
}
SPECTRA = {
    "identity": np.eye(3),
    "repeated": np.diag([2.0, 0.5, 2.0]),
    "repeated, rotated": rotated([1.0, 1.0, 2.0]),
    "gap 1e-12": rotated([1.0, 1.0 + 1e-12, 2.0]),
    "gap 1e-8": rotated([1.0, 1.0 + 1e-8, 1.0 + 2e-8]),
    "gap 1e-5": rotated([1.0, 1.0 + 1e-5, 2.0]),
    "gap 1e-3": rotated([1.0, 1.001, 1.002]),
    "gap 0.03": rotated([1.0, 1.03, 2.0]),
    "distinct": rotated([0.5, 1.5, 3.0]),
}


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_matrix_functions(name: str, spectrum: str) -> None:
    g, reference = FUNCTIONS[name]

    def f(a: Any) -> Any:
        w, v = la.eigh(a)
        return (v * g(w)) @ v.T

    check(f, eigen_function(reference), SPECTRA[spectrum], H, K, W)


@pytest.mark.parametrize("spectrum", ["identity", "repeated", "gap 1e-8", "distinct"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sums_of_functions_of_eigenvalues(name: str, spectrum: str) -> None:
    g, reference = FUNCTIONS[name]
    check(lambda a: np.sum(g(la.eigvalsh(a))), trace(eigen_function(reference)), SPECTRA[spectrum], H, K, np.ones(()))


@pytest.mark.parametrize("name", ["exp", "tanh"])
def test_the_zero_matrix(name: str) -> None:
    g, reference = FUNCTIONS[name]
    zero = np.zeros((3, 3))

    def f(a: Any) -> Any:
        w, v = la.eigh(a)
        return (v * g(w)) @ v.T

    check(f, eigen_function(reference), zero, H, K, W)
    check(lambda a: np.sum(g(la.eigvalsh(a))), trace(eigen_function(reference)), zero, H, K, np.ones(()))


@pytest.mark.parametrize("spectrum", [[1.0, 1.0, 2.0], [1.0, 1 + 1e-7, 2.0], [0.5, 1.0, 3.0]])
@pytest.mark.parametrize("name", ["exp", "sqrt", "inverse"])
def test_complex_hermitian_matrices(name: str, spectrum: list[float]) -> None:
    g, reference = FUNCTIONS[name]
    a = rotated(spectrum, True)

    def f(x: Any) -> Any:
        w, v = la.eigh(x)
        return (v * g(w)) @ v.conj().T

    check(f, eigen_function(reference), a, HC, KC, WC)
    check(lambda x: np.sum(g(la.eigvalsh(x))), trace(eigen_function(reference)), a, HC, KC, np.ones(()))


def test_a_complex_function_of_a_real_matrix() -> None:
    """The propagator exp(-i t A), and its derivative in t, at a repeated energy."""
    a, time = np.diag([1.0, 2.0, 1.0]), 0.7

    def f(x: Any, t: Any) -> Any:
        w, v = la.eigh(x)
        return (v * np.exp(-1j * t * w)) @ v.T

    reference = eigen_function(lambda x: mpmath.exp(-1j * mpmath.mpf(time) * x))
    value, first, second = value_and_derivatives(reference, a + 0j, H + 0j, K + 0j)
    found, slope = sg.jvp(lambda x: f(x, time), (a,), (H,))
    close(found, value, 1e-14)
    close(slope, first, 1e-14)
    close(sg.jvp(lambda x: sg.jvp(lambda y: f(y, time), (x,), (H,))[1], (a,), (K,))[1], second, 1e-13)
    change = sg.jvp(lambda t: f(a, t), (time,), (1.0,))[1]
    close(change, -1j * a @ value, 1e-14)

    def energy(x: Any, t: Any) -> Any:
        return np.sum(np.abs(f(x, t) - W) ** 2)

    gradient = sg.grad(energy)(a, time)
    close(np.sum(gradient * H), 2 * np.sum(((value - W).conj() * first).real), 1e-13)


def test_one_degenerate_matrix_in_a_stack() -> None:
    stack = np.stack([np.eye(3) * 2, rotated([0.5, 1.0, 3.0]), np.diag([1.0, 3.0, 1.0])])

    def f(a: Any) -> Any:
        w, v = la.eigh(a)
        return np.sum(((v * np.sqrt(w)[:, None, :]) @ v.swapaxes(-1, -2)) * W) + np.sum(np.log(w))

    found = sg.hessian(f)(stack)
    for i in range(3):
        for j in range(3):
            block = found[i, :, :, j]
            if i != j:
                assert not block.any()
                continue
            _, _, root = value_and_derivatives(eigen_function(mpmath.sqrt), stack[i], H, K)
            _, _, logarithm = value_and_derivatives(trace(eigen_function(mpmath.log)), stack[i], H, K)
            expected = np.sum(root * W) + logarithm.item()
            close(np.einsum("ab,abcd,cd", H, block, K), expected, 1e-13)


# --- parameters -------------------------------------------------------------------------------------------------------


def test_parameters_are_differentiated() -> None:
    """g(w; p): mixed second derivatives at a repeated eigenvalue."""

    def f(p: Any, a: Any) -> Any:
        w, v = la.eigh(a)
        return np.sum(((v * np.exp(p[0] * w + p[1])) @ v.T) * W) + np.sum(np.log(w + p[0]))

    p, a, step = np.array([0.3, -0.2]), rotated([1.0, 1.0, 2.0]), 1e-5
    jacobian = sg.jacfwd(sg.grad(f, 1))(p, a)
    crossed = sg.jacrev(sg.grad(f, 0), 1)(p, a)
    np.testing.assert_allclose(np.moveaxis(jacobian, -1, 0), crossed, atol=1e-13)
    for k in range(2):
        e = step * np.eye(2)[k]
        expected = (sg.grad(f, 1)(p + e, a) - sg.grad(f, 1)(p - e, a)) / (2 * step)
        close(crossed[k], expected, 1e-8)
    hessian = sg.hessian(f)(p, a)
    expected = (sg.grad(f)(p + step * UNIT, a) - sg.grad(f)(p - step * UNIT, a)) / (2 * step)
    close(hessian[0], expected, 1e-8)


def test_weights_that_are_differentiated() -> None:
    """One number for each eigenvector: with distinct eigenvalues as ever, and finite at ties."""

    def f(d: Any, a: Any) -> Any:
        w, v = la.eigh(a)
        return np.sum(((v * (d * np.exp(w))) @ v.T) * W)

    d, a = np.array([1.0, 2.0, -1.0]), rotated([0.5, 1.0, 2.0])
    sg.testing.check_grads(lambda x: f(x, a), (d,), order=2)
    h = RANDOM.normal(size=3)
    expected = second_by_differences(lambda x: f(d, x), a, H, K)
    close(sg.jvp(lambda x: sg.jvp(lambda y: f(d, y), (x,), (H,))[1], (a,), (K,))[1], expected, 1e-9)
    mixed = np.sum(sg.jvp(sg.grad(f), (d, a), (np.zeros(3), H))[1] * h)
    other = np.sum(sg.jvp(sg.grad(f, 1), (d, a), (h, np.zeros((3, 3))))[1] * H)
    close(mixed, other, 1e-12)
    assert np.isfinite(sg.grad(f, 1)(d, np.eye(3))).all()


# --- singular values --------------------------------------------------------------------------------------------------

SHAPES = {"square": (3, 3), "tall": (4, 2), "wide": (2, 4)}
SINGULAR_FUNCTIONS = {
    "tanh": (np.tanh, mpmath.tanh),
    "one": (lambda s: s**0, lambda x: mpmath.mpf(1)),
    "inverse": (lambda s: 1 / s, lambda x: 1 / x),
    "log": (np.log, mpmath.log),
}
BLOCKS: dict[str, Function] = {
    "cross": lambda u, g, vh: (u * g) @ vh,
    "left": lambda u, g, vh: (u * g) @ u.conj().T,
    "right": lambda u, g, vh: (vh.conj().T * g) @ vh,
}


def with_values(shape: tuple[int, int], values: list[float], complex_: bool = False) -> Array:
    def unitary(size: int) -> Array:
        x = RANDOM.normal(size=(size, size)) + (1j * RANDOM.normal(size=(size, size)) if complex_ else 0)
        return la.qr(x)[0]

    count = min(shape)
    return (unitary(shape[0])[:, :count] * values[:count]) @ unitary(shape[1])[:count]


@pytest.mark.parametrize("values", [[2.0, 2.0, 2.0], [2.0, 2 + 1e-9, 0.5], [2.0, 0.75, 0.5]], ids=str)
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("shape", SHAPES)
def test_functions_of_singular_values(shape: str, block: str, values: list[float]) -> None:
    a = with_values(SHAPES[shape], values)
    h, k = RANDOM.normal(size=(2, *a.shape))
    for g, reference in SINGULAR_FUNCTIONS.values():

        def f(x: Any, g: Function = g) -> Any:
            u, s, vh = la.svd(x, full_matrices=False)
            return BLOCKS[block](u, g(s), vh)

        check(f, singular_function(reference, block), a, h, k, RANDOM.normal(size=f(a).shape))


@pytest.mark.parametrize("block", BLOCKS)
def test_functions_of_singular_values_of_complex_matrices(block: str) -> None:
    a = with_values((3, 2), [2.0, 2.0], True)
    h, k, w = (RANDOM.normal(size=a.shape) + 1j * RANDOM.normal(size=a.shape) for _ in range(3))

    def f(x: Any) -> Any:
        u, s, vh = la.svd(x, full_matrices=False)
        return BLOCKS[block](u, np.tanh(s), vh)

    size = f(a).shape
    w = RANDOM.normal(size=size) + 1j * RANDOM.normal(size=size)
    check(f, singular_function(mpmath.tanh, block), a, h, k, w)


def test_the_nuclear_norm() -> None:
    """Its gradient is the polar factor; at a singular matrix the part of the null space contributes 0."""
    q = with_values((3, 3), [1.0, 1.0, 1.0])
    close(sg.grad(lambda a: la.norm(a, "nuc"))(2 * q), q, 1e-14)
    close(sg.grad(lambda a: la.norm(a, "nuc"))(np.ones((3, 3))), np.full((3, 3), 1 / 3), 1e-14)
    np.testing.assert_array_equal(sg.grad(lambda a: la.norm(a, "nuc"))(np.zeros((3, 2))), np.zeros((3, 2)))
    assert np.isfinite(sg.hessian(lambda a: la.norm(a, "nuc"))(np.ones((3, 3)))).all()
    a = with_values((4, 2), [2.0, 2.0])
    h, k = RANDOM.normal(size=(2, 4, 2))
    reference = trace(singular_function(lambda x: x, "right"))
    check(lambda x: la.norm(x, "nuc"), reference, a, h, k, np.ones(()))


def test_norms_and_condition_numbers() -> None:
    a = with_values((3, 3), [3.0, 2.0, 0.5])
    h = RANDOM.normal(size=(3, 3))
    for f in (
        lambda x: la.norm(x, 2),
        lambda x: la.norm(x, -2),
        lambda x: la.norm(x, "nuc"),
        lambda x: la.cond(x),
        lambda x: la.cond(x, 2),
        lambda x: la.cond(x, -2),
        lambda x: la.matrix_norm(x, ord=2),
    ):
        found, slope = sg.jvp(f, (a,), (h,))
        np.testing.assert_allclose(found, f(a), rtol=1e-14)
        np.testing.assert_allclose(slope, (f(a + 1e-6 * h) - f(a - 1e-6 * h)) / 2e-6, rtol=1e-7)
    np.testing.assert_allclose(
        sg.grad(lambda x: la.norm(x, 2, axis=(0, 2)).sum())(np.ones((2, 1, 3))).sum(), np.sqrt(6)
    )


# --- decompositions ---------------------------------------------------------------------------------------------------


@jax.enable_x64(True)
def test_jax_agrees_at_distinct_values() -> None:
    a, s = rotated([0.5, 1.0, 3.0]), with_values((3, 3), [3.0, 2.0, 0.5])

    def eigen(xp: Any) -> Function:
        def f(x: Any) -> Any:
            w, v = xp.linalg.eigh((x + x.T) / 2)
            return xp.sum(xp.sin(w) * X) + xp.sum((v**2) * W) + xp.sum(v[:, 0] ** 2 * xp.exp(w))

        return f

    def singular(xp: Any) -> Function:
        def f(x: Any) -> Any:
            u, s, vh = xp.linalg.svd(x, full_matrices=False)
            return xp.sum(xp.sin(s) * X) + xp.sum((u**2) * W) + xp.sum((vh**2) * H) + u[0, 0] * vh[0, 1]

        return f

    for make, at in ((eigen, a), (singular, s)):
        np.testing.assert_allclose(sg.grad(make(np))(at), jax.grad(make(jnp))(at), atol=1e-12)
        np.testing.assert_allclose(sg.hessian(make(np))(at), jax.hessian(make(jnp))(at), atol=1e-10)


@jax.enable_x64(True)
def test_jax_agrees_on_complex_vectors() -> None:
    """Gauge-invariant functions of complex vectors that are no matrix functions."""
    a = rotated([0.5, 1.0, 3.0], True)
    b = with_values((3, 2), [3.0, 1.0], True)

    def eigen(xp: Any) -> Function:
        def f(x: Any) -> Any:
            w, v = xp.linalg.eigh((x + xp.conj(x.T)) / 2)
            return xp.sum(xp.abs(v) ** 2 * W) + xp.sum(xp.cos(w) * X)

        return f

    def singular(xp: Any) -> Function:
        def f(x: Any) -> Any:
            u, s, vh = xp.linalg.svd(x, full_matrices=False)
            return xp.sum(xp.abs(u) ** 2 * XS) + xp.real(u[0, 0] * vh[0, 1]) + xp.sum(s**2)

        return f

    for make, at in ((eigen, a), (singular, b)):
        np.testing.assert_allclose(sg.grad(make(np))(at), jax.grad(make(jnp))(at), atol=1e-12)


@jax.enable_x64(True)
def test_general_eigenvalues() -> None:
    a = np.array([[1.0, -2.0, 0.25], [1.0, 1.5, 0.5], [0.5, -0.25, 4.0]])

    def f(xp: Any) -> Function:
        return lambda x: xp.sum(xp.abs(xp.linalg.eigvals(x)) ** 2 * X) + xp.sum(xp.real(xp.exp(xp.linalg.eigvals(x))))

    np.testing.assert_allclose(sg.grad(f(np))(a), jax.grad(f(jnp))(a), atol=1e-12)
    expected = second_by_differences(f(np), a, H, K)
    np.testing.assert_allclose(np.einsum("ab,abcd,cd", H, sg.hessian(f(np))(a), K), expected, rtol=1e-9)

    def vectors(x: Any) -> Any:
        w, v = la.eig(x)
        return np.sum(v.real * H + v.imag * K) + np.sum(w.imag**2)

    slope = sg.jvp(vectors, (a,), (W,))[1]
    np.testing.assert_allclose(slope, (vectors(a + 1e-6 * W) - vectors(a - 1e-6 * W)) / 2e-6, rtol=1e-7)
    assert sg.jit(la.eigvals)(a).dtype == np.complex128
    assert sg.jit(la.eigvals)(np.eye(2, dtype=np.float32)).dtype == np.complex64
    assert np.isfinite(sg.grad(lambda x: np.sum(np.abs(la.eig(x)[1]) * W))(np.eye(3))).all()


def test_values_and_types_are_numpys() -> None:
    a, b = rotated([0.5, 1.0, 3.0]), RANDOM.normal(size=(2, 4, 3))
    for f, x in (
        (la.eigh, a),
        (lambda x: la.eigh(x), a + np.triu(np.ones((3, 3)), 1)),
        (la.eigvalsh, a),
        (lambda x: la.eigvalsh(x, "U"), a.astype(np.float32)),
        (la.svd, b),
        (lambda x: la.svd(x, full_matrices=False), b),
        (lambda x: la.svd(x, compute_uv=False), b),
        (lambda x: la.svd(x, hermitian=True), a),
        (lambda x: la.svd(x, compute_uv=False, hermitian=True), -a),
        (la.svdvals, b),
        (la.matrix_rank, b),
        (la.matrix_rank, np.ones((3, 3))),
        (la.matrix_rank, np.zeros(3)),
        (lambda x: la.matrix_rank(x, tol=1.0), b),
        (lambda x: la.matrix_rank(x, rtol=0.5), b),
        (lambda x: la.matrix_rank(x, hermitian=True), a),
        (lambda x: la.eigvalsh(x), np.array([[2, 1], [1, 2]])),
    ):
        found, expected = sg.jit(f)(x), f(x)
        assert isinstance(found, type(expected) if not isinstance(expected, int) else np.integer)
        for one, other in zip(*(y if isinstance(y, tuple) else (y,) for y in (found, expected)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6 if x.dtype == np.float32 else 1e-13, atol=1e-14)
            assert np.asarray(one).dtype == np.asarray(other).dtype
    assert sg.grad(lambda x: x[0, 0] * la.matrix_rank(x))(a)[0, 0] == 3


def test_the_other_triangle() -> None:
    a = rotated([0.5, 1.0, 3.0])
    f = sg.grad(lambda x: np.sum(np.exp(la.eigvalsh(x, "U"))))
    close(f(a), f(a + np.tril(np.ones((3, 3)), -1)), 1e-14)
    close(f(a), sg.grad(lambda x: np.sum(np.exp(la.eigvalsh(x))))(a), 1e-14)
    found, expected = (
        g(lambda x: la.eigh(x, UPLO="U"))(a + np.tril(np.ones((3, 3)), -1)) for g in (sg.jit, lambda g: g)
    )
    close(found.eigenvalues, expected.eigenvalues, 1e-14)
    close(np.abs(found.eigenvectors), np.abs(expected.eigenvectors), 1e-14)  # their signs are LAPACK's


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_refusals(shape: tuple[int, ...]) -> None:
    for f in (la.eigh, la.eigvalsh, la.eig, la.eigvals):
        with pytest.raises(la.LinAlgError):
            f(np.ones(shape))
        with pytest.raises((la.LinAlgError, ValueError)):
            sg.jit(f)(np.ones(shape))
    with pytest.raises(ValueError, match="UPLO"):
        sg.jit(lambda x: la.eigh(x, "X"))(np.eye(2))
    with pytest.raises(TypeError, match="float16"):
        sg.jit(la.eigh)(np.eye(2, dtype=np.float16))


# --- with the rest of the system --------------------------------------------------------------------------------------


def test_the_decomposition_is_computed_once() -> None:
    def f(a: Any) -> Any:
        w, v = la.eigh(a)
        return np.sum(((v * np.sqrt(w)) @ v.T) * W) + np.sum(np.log(w)) + w[0]

    text = sg.source(sg.value_and_grad(f))(B)
    assert text.count("np.linalg.eigh(") == 1
    assert "eigvalsh" not in text
    assert "np.linalg.eigvalsh(" in sg.source(lambda a: np.sum(np.log(la.eigvalsh(a))))(B)


def mixed(a: Any) -> Any:
    w, v = la.eigh(a)
    u, s, vh = la.svd(a + 0.5 * np.eye(3))
    return np.sum(((v * np.sqrt(w)) @ v.T) * W) + np.sum(((u * np.log(s)) @ vh) * H) + np.sum(np.log(w)) + np.sum(s**3)


def test_xla_agrees() -> None:
    for a in (np.eye(3), B, rotated([1.0, 1.0 + 1e-9, 2.0])):
        np.testing.assert_allclose(sg.grad(mixed, backend="xla")(a), sg.grad(mixed)(a), atol=1e-12)
        np.testing.assert_allclose(sg.hessian(mixed, backend="xla")(a), sg.hessian(mixed)(a), atol=1e-11)


def test_vmap_checkpoint_and_retraced_functions() -> None:
    stack = np.stack([np.eye(3), B, rotated([0.5, 1.0, 3.0])])
    singles = np.stack([sg.hessian(mixed)(a) for a in stack])
    np.testing.assert_allclose(sg.vmap(sg.hessian(mixed))(stack), singles, atol=1e-11)
    np.testing.assert_allclose(sg.hessian(sg.checkpoint(mixed))(B), singles[1], atol=1e-12)
    np.testing.assert_allclose(sg.jacfwd(sg.jacfwd(mixed))(B), singles[1], atol=1e-11)
    np.testing.assert_allclose(sg.jacrev(sg.jacrev(mixed))(B), singles[1], atol=1e-11)

    def stepped(a: Any) -> Any:
        while np.trace(a) > 2:
            a = a / 2
        return mixed(a)

    np.testing.assert_allclose(sg.grad(stepped)(4 * B), sg.grad(lambda a: mixed(a / 16))(4 * B), atol=1e-13)


def test_examples_that_share_a_matrix_share_its_decomposition() -> None:
    program = sg.source(sg.hessian(mixed))(B)
    assert program.count("np.linalg.eigh(") == 1
    assert "np.broadcast_to(a, (9" not in program


def test_third_derivatives() -> None:
    """At a multiple of the unit matrix the derivatives are those of the scalar function."""
    a = 2.0 * np.eye(2)

    def f(t: Any) -> Any:
        w, v = la.eigh(a + t * np.array([[1.0, 0.5], [0.5, -0.25]]))
        return (v * np.log(w)) @ v.T

    step = np.array([[1.0, 0.5], [0.5, -0.25]])
    third = sg.jacfwd(sg.jacfwd(sg.jacfwd(f)))(0.0)
    close(third, 2 * la.matrix_power(step, 3) / 8, 1e-12)
    fourth = sg.jacrev(sg.jacfwd(sg.jacfwd(sg.jacfwd(f))))(0.0)
    close(fourth, -6 * la.matrix_power(step, 4) / 16, 1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_single_precision(dtype: Any) -> None:
    a = np.eye(3, dtype=dtype) * 2

    def f(x: Any) -> Any:
        w, v = la.eigh(x)
        return np.sum(np.abs((v * np.sqrt(w)) @ v.conj().T) ** 2) + np.sum(np.log(w))

    found = sg.grad(f)(a)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, 1.5 * np.eye(3), atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("values", [la.svdvals, la.eigvalsh, lambda x: la.svd(x, compute_uv=False)])
def test_values_of_single_precision_meet_wider_numbers(values: Any, dtype: Any) -> None:
    a = (hermitian(3) + 2 * np.eye(3)).astype(dtype)
    weights = np.array([1.0, 2.0, 3.0])

    for f in (
        lambda x: np.sum(values(x) * weights),
        lambda x: np.sum(np.exp(values(x).astype(float))),
        lambda x: np.sum(values(x) * weights) ** 2,
    ):
        wide = a.astype(np.result_type(dtype, float))
        for backend in ("numpy", "llvm"):
            found = sg.grad(f, backend=backend)(a)
            assert found.dtype == dtype
            np.testing.assert_allclose(found, sg.grad(f)(wide), rtol=2e-5, atol=2e-4)
            tangents = [sg.jvp(f, (x,), (x,))[1] for x in (a, wide)]
            np.testing.assert_allclose(tangents[0], tangents[1], rtol=2e-5)
            seconds = [sg.hvp(f, (x,), (x,)) for x in (a, wide)]
            np.testing.assert_allclose(seconds[0], seconds[1], rtol=2e-4, atol=2e-3)


def test_empty_matrices() -> None:
    def f(a: Any) -> Any:
        w, v = la.eigh(a)
        u, s, vh = la.svd(a)
        return np.sum((v * np.exp(w)) @ v.T) + np.sum(np.log(w)) + np.sum((u * s) @ vh) + np.sum(s)

    assert sg.value_and_grad(f)(np.zeros((0, 0)))[0] == 0.0
    assert sg.hessian(f)(np.zeros((0, 0))).shape == (0, 0, 0, 0)


SCIPY: dict[str, Function] = {
    "eigh": lambda a: (L.eigh(a)[0], np.abs(L.eigh(a)[1])),
    "eigh, upper": lambda a: L.eigvalsh(a, lower=False),
    "eigvalsh": lambda a: L.eigvalsh(a),
    "some eigenvalues": lambda a: L.eigh(a, eigvals_only=True, subset_by_index=[1, 2]),
    "generalised": lambda a: L.eigh(a @ a.T - 1.0, a, eigvals_only=True),
    "generalised vectors": lambda a: np.abs(L.eigh(a @ a.T - 1.0, a)[1]),
    "eigvals": lambda a: L.eigvals(a),
    "svd": lambda a: L.svd(a[:, :2], full_matrices=False),
    "svdvals": lambda a: L.svdvals(a[:, :2]),
    "polar": lambda a: L.polar(a[:, :2]),
    "left polar": lambda a: L.polar(a[:, :2], "left"),
}


@pytest.mark.parametrize("name", SCIPY)
def test_scipy(name: str) -> None:
    a = rotated([0.5, 1.0, 3.0])
    found, expected = run(SCIPY[name], (a,)), SCIPY[name](a)
    for (one, _), other in zip(found, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_the_polar_factors_of_scipy() -> None:
    a = with_values((3, 3), [2.0, 2.0, 2.0])
    h, k = RANDOM.normal(size=(2, 3, 3))
    function, _ = trace_function(lambda x: L.polar(x), [a])
    first = jvp(prepare(function), [True])
    second = evaluate(jvp(first, [True, False]), [a, h, k])
    for position, (g, block) in enumerate(((lambda s: mpmath.mpf(1), "cross"), (lambda s: s, "right"))):
        expected = value_and_derivatives(singular_function(g, block), a, h, k)
        for found, wanted in zip((second[position], second[2 + position], second[6 + position]), expected, strict=True):
            close(found, wanted, 1e-13)
