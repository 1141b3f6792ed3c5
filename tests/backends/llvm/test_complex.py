"""Complex numbers in loops: values, special values, layouts, control flow, and that chains of them are one pass."""

from __future__ import annotations

import itertools
import mmap
from typing import Any

import numpy as np
import pytest
from mpmath import mp

import srcgrad as sg
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.complexes import PARTS, in_parts
from srcgrad.backends.llvm.loops import Group
from srcgrad.backends.llvm.natives import fused_kind
from srcgrad.backends.llvm.sections import sectioned
from srcgrad.backends.numpy.evaluate import evaluate
from tests.backends.llvm.support import OPS, build, normal

SIZES = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 40]


def numbers(*shape: int, seed: int = 0, dtype: Any = np.complex128) -> np.ndarray[Any, Any]:
    return (normal(*shape, seed=seed) + 1j * normal(*shape, seed=seed + 1)).astype(dtype)


def agree(f: Any, *arguments: Any, argnums: Any = None, rtol: float = 1e-12) -> None:
    """Values, and gradients, are the NumPy backend's."""
    transforms = [sg.jit] if argnums is None else [sg.jit, lambda f, **more: sg.value_and_grad(f, argnums, **more)]
    for transform in transforms:
        found = flat(transform(f, backend="llvm")(*arguments))
        for actual, wanted in zip(found, flat(transform(f, backend="numpy")(*arguments)), strict=True):
            assert actual.dtype == wanted.dtype and actual.shape == wanted.shape
            np.testing.assert_allclose(actual, wanted, rtol=rtol, atol=rtol * np.max(np.abs(wanted), initial=0.0))


def flat(found: Any) -> list[Any]:
    return [leaf for item in found for leaf in flat(item)] if isinstance(found, tuple) else [np.asarray(found)]


# --- numbers ---------------------------------------------------------------------------------------
def special(dtype: Any) -> np.ndarray[Any, Any]:
    """All pairs of what numbers may be."""
    f = np.finfo(dtype)
    sizes = [
        0.0,
        1.0,
        2.25,
        0.6,
        np.inf,
        f.max / 4,
        f.tiny,
        f.smallest_subnormal,
        np.sqrt(f.max) * 3,
        np.log(f.max) + 1,
    ]
    parts = np.array([sign * size for size in sizes for sign in (1, -1)] + [np.nan, 0.8, 1 - f.eps / 2], dtype)
    pairs = np.array(list(itertools.product(parts, parts)), dtype)
    return pairs.view(np.result_type(dtype, np.complex64)).ravel()


def require_alike(found: Any, wanted: Any, what: str) -> None:
    """Equal within some ulps, nan and infinite at the same places, zeros with their signs."""
    pairs = [(found, wanted)]
    if wanted.dtype.kind == "c":
        pairs = [(found.real, wanted.real), (found.imag, wanted.imag)]
    for actual, expected in pairs:
        np.testing.assert_allclose(actual, expected, rtol=64 * np.finfo(wanted.dtype).eps, atol=0.0, err_msg=what)
        zero = expected == 0
        np.testing.assert_array_equal(np.signbit(actual[zero]), np.signbit(expected[zero]), err_msg=what)


UNARY = [
    "neg", "conj", "reciprocal", "exp", "log", "sqrt", "sinh", "cosh", "tanh", "sech", "sin", "cos", "tan", "abs",
    "real", "imag", "expm1", "exp2", "log2", "log10",
]  # fmt: skip
INVERSE = ["arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", UNARY)
def test_special_values_are_those_of_numpy(name: str, dtype: Any) -> None:
    z = special(dtype)
    function = build(OPS[name], z)
    assert all(fused_kind(operation) != "other" for operation in in_parts(function).operations if operation.op != PARTS)
    with np.errstate(all="ignore"):
        (found,), (wanted,) = BACKEND.compile(function).run(z), evaluate(function, [z])
    require_alike(found, np.asarray(wanted), name)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", INVERSE)
def test_special_values_of_inverse_functions(name: str, dtype: Any) -> None:
    """Also beside 1, where a part may be subnormal: it is right to some of the least numbers."""
    f = np.finfo(dtype)
    ends = np.array([1.0, -1.0, 1 + f.eps, f.eps, f.max, -0.0, np.inf, f.smallest_subnormal, f.tiny], dtype)
    pairs = np.array(list(itertools.product(ends, ends)), dtype).view(np.result_type(dtype, np.complex64)).ravel()
    z = np.concatenate([special(dtype), pairs])
    function = build(OPS[name], z)
    assert all(fused_kind(operation) != "other" for operation in in_parts(function).operations if operation.op != PARTS)
    with np.errstate(all="ignore"):
        (found,), (wanted,) = BACKEND.compile(function).run(z), evaluate(function, [z])
    for actual, expected in ((found.real, np.asarray(wanted).real), (found.imag, np.asarray(wanted).imag)):
        least = 4.0 * float(f.smallest_subnormal)
        np.testing.assert_allclose(actual, expected, rtol=64 * float(f.eps), atol=least, err_msg=name)
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual[known]), np.signbit(expected[known]), err_msg=name)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", INVERSE)
def test_the_least_numbers_are_kept_by_inverse_functions(name: str, dtype: Any) -> None:
    f = np.finfo(dtype)
    least, kind = float(f.smallest_subnormal), np.result_type(dtype, np.complex64)
    parts = [0.0, 0.8, least, 3 * least, float(f.tiny), 40 * float(f.tiny)]
    z = np.array([complex(*pair) for pair in itertools.product(parts, parts)], kind)
    found, numpys = sg.jit(getattr(np, name), backend="llvm")(z), getattr(np, name)(z)
    require_alike(found, numpys, name)


def beside(count: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Numbers of all sizes, round 1, -1, i, -i and 0, and on the unit circle."""
    rng = np.random.default_rng(count)
    parts = np.exp(rng.uniform(-40, 40, (2, count))) * rng.choice([-1, 1], (2, count))
    angles = np.exp(1j * rng.uniform(0.0, 2 * np.pi, count))
    near = rng.choice([1, -1, 1j, -1j, 0], count) + np.exp(rng.uniform(-30, 0, count)) * angles
    return np.concatenate([parts[0] + 1j * parts[1], near, angles]).astype(dtype)


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("name", INVERSE)
def test_both_parts_of_inverse_functions_are_accurate(name: str, dtype: Any) -> None:
    z = beside(100, dtype)
    with mp.workprec(400):
        function = getattr(mp, "a" + name.removeprefix("arc"))
        exact = [function(mp.mpc(float(c.real), float(c.imag))) for c in z]
        found = sg.jit(getattr(np, name), backend="llvm")(z)
        assert found.dtype == dtype
        for actual, part in ((found.real, mp.re), (found.imag, mp.im)):
            for value, number, given in zip(actual, exact, z, strict=True):
                assert abs(mp.mpf(float(value)) - part(number)) <= 4 * mp.mpf(float(np.spacing(abs(value)))), given


def test_the_logarithm_of_one_and_a_small_number_keeps_it() -> None:
    """NumPy's is that of the rounded sum: 0 of 1e-20."""
    z = np.concatenate([special(np.float64), 1e-20 * numbers(40), 1e-3 * numbers(40, seed=3)])
    with np.errstate(all="ignore"):
        found, numpys = sg.jit(np.log1p, backend="llvm")(z), np.log1p(z)
    usual = ~(np.abs(z) < 0.75)  # nan too
    require_alike(found[usual], numpys[usual], "log1p")
    small = z[np.abs(z) < 0.75]
    with mp.workprec(200):
        exact = [mp.log1p(mp.mpc(c.real, c.imag)) for c in small]
    known = np.array([complex(c) for c in exact])
    np.testing.assert_allclose(found[np.abs(z) < 0.75].imag, known.imag, rtol=1e-15, atol=0.0)
    np.testing.assert_allclose(found[np.abs(z) < 0.75], known, rtol=1e-15, atol=0.0)


@pytest.mark.parametrize("name", ["pow", "integer_pow"])
@pytest.mark.parametrize("y", [-5, -2, -1, 0, 1, 2, 3, 7, 40, 99, 2.5, -0.5, 150.0, 1 + 1j, -1j])
def test_known_powers(name: str, y: Any) -> None:
    """NumPy's, of 0 too; where a power of it is finite and its logarithm inexact, both are right to some digits."""
    if name == "integer_pow" and not isinstance(y, int):
        return
    z = np.concatenate([numbers(300), special(np.float64)])
    size = np.abs(z)
    with np.errstate(all="ignore"):
        z = z[(size == 0) | (np.abs(np.real(y) * np.log(size)) < 300)]
    function = build((lambda z: OPS[name](z, y=y)) if name == "integer_pow" else lambda z: OPS[name](z, z.like(y)), z)
    assert all(fused_kind(operation) != "other" for operation in in_parts(function).operations if operation.op != PARTS)
    with np.errstate(all="ignore"):
        (found,), (wanted,) = BACKEND.compile(function).run(z), evaluate(function, [z])
    np.testing.assert_allclose(found, np.asarray(wanted), rtol=2e-13, atol=0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["add", "sub", "div"])
def test_special_values_of_two_numbers(name: str, dtype: Any) -> None:
    z = special(dtype)[::7]
    a, b = (x.ravel() for x in np.meshgrid(z, z))
    function = build(OPS[name], a, b)
    with np.errstate(all="ignore"):
        (found,), (wanted,) = BACKEND.compile(function).run(a, b), evaluate(function, [a, b])
    require_alike(found, np.asarray(wanted), name)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_of_special_values(dtype: Any) -> None:
    """By their definition: NumPy's vectors fuse products with sums, its single numbers do not."""
    a, b = (x.ravel() for x in np.meshgrid(special(dtype)[::7], special(dtype)[::7]))
    (found,) = BACKEND.compile(build(OPS["mul"], a, b)).run(a, b)
    with np.errstate(all="ignore"):
        real, imag = a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real
    np.testing.assert_array_equal(found.real, real)
    np.testing.assert_array_equal(found.imag, imag)


@pytest.mark.parametrize("y", [-1, 0, 1, 2, 3, 4, 5, 8, 16])
def test_whole_powers(y: int) -> None:
    z = special(np.float64)
    z = z[np.isfinite(z) & (np.abs(z) < 10)] if y == 2 else z
    if y == 3:  # of these NumPy's products are fused, in vectors
        z = z[np.isfinite(z) & (np.abs(z) < 1e60)]
    function = build(lambda z: OPS["integer_pow"](z, y=y), z)
    with np.errstate(all="ignore"):
        (found,), (wanted,) = BACKEND.compile(function).run(z), evaluate(function, [z])
    np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-13, atol=0.0)


def test_division_by_a_real_number() -> None:
    z, x = special(np.float64), np.array([0.0, -0.0, 1.5, -3.0, np.inf, -np.inf, np.nan, 5e-324, 1e308])
    a, b = (v.ravel() for v in np.meshgrid(z, x))
    function = build(lambda a, b: a / OPS["cast"](b, dtype=np.dtype(np.complex128)), a, b.real.copy())
    with np.errstate(all="ignore"):
        (found,), (wanted,) = BACKEND.compile(function).run(a, b.real.copy()), evaluate(function, [a, b.real.copy()])
    require_alike(found, np.asarray(wanted), "div")


def test_the_product_with_the_conjugate_is_real() -> None:
    z = numbers(1000)
    assert not np.any(sg.jit(lambda z: z * np.conj(z), backend="llvm")(z).imag)


@pytest.mark.parametrize("name", ["tanh", "tan"])
def test_hyperbolic_tangents_are_accurate_beside_their_poles_and_far_out(name: str) -> None:
    """Both parts on their own, against mpmath."""
    beside = 1e-6 * numbers(60) + 0.5j * np.pi
    far = np.linspace(-23.5, 23.5, 61) + 1j * normal(61)
    z = np.concatenate([numbers(60), 1e-9 * numbers(20), beside, far, 40.0 * numbers(40, seed=5)])
    z = z if name == "tanh" else z.imag + 1j * z.real
    with mp.workprec(200):
        exact = [getattr(mp, name)(mp.mpc(c.real, c.imag)) for c in z]
        known = [np.array([float(part(c)) for c in exact]) for part in (mp.re, mp.im)]
    found = sg.jit(getattr(np, name), backend="llvm")(z)
    np.testing.assert_allclose(found.real, known[0], rtol=8e-16, atol=0.0)
    np.testing.assert_allclose(found.imag, known[1], rtol=8e-16, atol=0.0)


def test_the_logarithm_is_accurate_beside_the_unit_circle() -> None:
    angles = np.linspace(0.0, 6.0, 200)
    z = np.cos(angles) + 1j * np.sin(angles)
    found = sg.jit(np.log, backend="llvm")(z)
    np.testing.assert_allclose(found, np.log(z), rtol=1e-13, atol=0.0)
    np.testing.assert_allclose(found.real, np.log(z).real, rtol=1e-10, atol=0.0)


@pytest.mark.parametrize("x", [np.inf, -np.inf, np.nan, 1e308, 0.0, -0.0, 2.5])
def test_turns(x: float) -> None:
    """Of i x only sine and cosine are computed, and what is nan or infinite is as it would be."""
    turns = (lambda x: np.exp(1j * x), lambda x: np.exp(-2j * x * 0.5), lambda x: np.exp(1j * x + 2j * x))
    others = (lambda x: np.exp(1j * x * (0.5 + 0.25j)), lambda x: np.exp(1j * x + 0.5))
    for f in (*turns, *others):
        with np.errstate(all="ignore"):
            require_alike(sg.jit(f, backend="llvm")(np.full(3, x)), f(np.full(3, x)), "turn")
    assert "f64 = exp " not in sg.explain(sg.jit(lambda x: np.exp(1j * x), backend="llvm"))(np.ones(3))["llvm source"]


# --- arrays ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("n", SIZES)
def test_nothing_beside_an_array_is_touched(n: int, dtype: Any) -> None:
    """Arrays that end where their page does; results between guards."""
    page = mmap.mmap(-1, mmap.PAGESIZE * 2)
    z = np.frombuffer(page, dtype, n, mmap.PAGESIZE * 2 - n * np.dtype(dtype).itemsize)
    z[:] = numbers(n, dtype=dtype)
    found = sg.jit(lambda z: (z * z + 1.0, np.sum(z), z.imag), backend="llvm")(z)
    for actual, wanted in zip(found, (z * z + 1, np.sum(z), z.imag), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-5 if dtype == np.complex64 else 1e-13)


@pytest.mark.parametrize("n", [3, 8, 19])
def test_layouts(n: int) -> None:
    a, b = numbers(n, n), numbers(n, n, seed=5)
    agree(lambda a, b: np.sum(np.abs(a.T * b[::-1] + np.conj(a[:, :1])) ** 2), a, b, argnums=(0, 1))
    agree(lambda a, b: (a.T * 2 + b, a[::-1, ::2] * 1j, np.broadcast_to(b[0], (n, n)) / a), a, b)
    agree(lambda a, b: (np.roll(a * 1j, 1, 0), np.concatenate([a * b, b.conj()]), np.stack([a, a + 1], -1)), a, b)
    agree(lambda a, b: np.where(np.abs(a) > 0.5, a * b, np.log(b)), a, b)
    agree(lambda a, x: x[:, None] * a + x, a, normal(n))
    agree(lambda a: (np.sum(a * 2, 0), np.sum(a * 2, 1), np.mean(a * a)), a)


def test_arrays_of_no_elements_and_of_rank_0() -> None:
    agree(lambda z: (z * z, np.sum(z), np.abs(z)), np.zeros((0, 3), complex))
    agree(lambda z: np.abs(z * z + 1.0), np.array(1.0 + 2.0j), argnums=0)
    agree(lambda z: z * z + 1.0, np.complex128(1.0 + 2.0j))


@pytest.mark.parametrize("n", [5, 1000, 70_000])
def test_sums_and_dots(n: int) -> None:
    a, b = numbers(n), numbers(n, seed=3)
    agree(lambda a, b: np.abs(np.vdot(a, b)) ** 2 + np.linalg.norm(a) + np.sum(a * b).imag, a, b, argnums=(0, 1))


def test_casts() -> None:
    z, x, k = numbers(9), normal(9), np.arange(9)
    agree(lambda z, x, k: (z * x, x * 1j + k, z.astype(np.complex64), z.astype(bool), k + z), z, x, k)
    agree(lambda h: h * np.complex64(1j), normal(9, dtype=np.float16))


def test_a_whole_array_is_given_to_steps_and_read_from_them() -> None:
    a, v = numbers(6, 6), numbers(6)

    def f(a: Any, v: Any) -> Any:
        u = np.fft.ifft(np.fft.fft(a @ (v * 2.0)) * np.exp(1j * np.arange(6)))
        return np.sum(np.abs(np.linalg.solve(a + 3.0, u)) ** 2) + np.prod(u).real + np.cumsum(u)[2].imag

    agree(f, a, v, argnums=(0, 1), rtol=1e-9)


# --- one pass --------------------------------------------------------------------------------------
def test_a_chain_with_its_gradient_is_one_loop() -> None:
    def loss(x: Any, w: Any, b: Any) -> Any:
        return np.sum(np.abs(np.exp(1j * x) * w + b) ** 2)

    f = sg.value_and_grad(loss, argnums=(0, 1, 2), backend="llvm")
    source = sg.explain(f)(normal(40), numbers(40), numbers(40, seed=2))["llvm source"]
    assert [line.split()[1] for line in source.split("\n# kernel")[0].splitlines()[1:]] == [
        "alias",
        "alias",
        "kernel_1",
    ]
    agree(loss, normal(40), numbers(40), numbers(40, seed=2), argnums=(0, 1, 2))


def test_pairs_are_written_as_vectors() -> None:
    z = numbers(64)
    text = BACKEND.compile(build(lambda z: z * z, z)).source
    assert "gather" not in text and "scatter" not in text and "shufflevector" in text


def test_a_complex_array_is_kept_once_for_steps() -> None:
    """Operations on whole arrays alone are left as they are."""
    a = numbers(4, 4)
    found = sectioned(build(lambda a: OPS["transpose"](a, perm=(1, 0)), a))
    assert not any(isinstance(group, Group) for group in found.partition.groups)


# --- control flow ----------------------------------------------------------------------------------
def escape(c: Any) -> Any:
    z, n = c, 0
    while np.abs(z) < 2.0 and n < 50:
        z = z * z + c
        n = n + 1
    return np.abs(z)


def test_numbers_that_loops_carry_are_in_registers() -> None:
    agree(escape, 0.4 + 0.5j, argnums=0)
    source = sg.explain(sg.grad(escape, backend="llvm"))(0.4 + 0.5j)["llvm source"]
    assert "while -> f64[], f64[], i64[], i64[], tape<f64[]>, tape<f64[]>" in source
    assert source.strip().endswith("callbacks into Python: 0")


def test_loops_over_arrays() -> None:
    def recurrence(c: Any, x: Any) -> Any:
        z = np.zeros(7, complex)
        for k in range(40):
            z = z * c + x[k]
        return np.sum(np.abs(z) ** 2)

    def grown(c: Any) -> Any:
        z = c
        while np.max(np.abs(z)) < 1e3:
            z = z * z + c + 1.0
        return np.sum(np.abs(z))

    def stencil(z: Any) -> Any:
        u = z.copy()
        for _ in range(20):
            u[1:-1] = u[1:-1] + 0.1j * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        return np.sum(np.abs(u) ** 2)

    c = numbers(7) * 0.1 + 0.2
    agree(recurrence, c, numbers(40), argnums=(0, 1))
    agree(grown, c, argnums=0)
    agree(stencil, numbers(40), argnums=0)


def test_loops_over_numbers() -> None:
    def sums(c: Any, x: Any) -> Any:
        z = c * 0.0
        for k in range(30):
            z = z * c + x[k]
        return (z * np.conj(z)).real

    def nested(z: Any) -> Any:
        total, i = 0j * z, 0
        while i < 5:
            w = z * (1 + 0.1 * i)
            while np.abs(w) > 0.5:
                w = w / 2 * 1j
            total, i = total + w, i + 1
        return np.abs(total)

    def newton(z: Any) -> Any:
        for _ in range(4):
            z = z - (z**3 - 1) / (4 * z**2)
        return z.real

    def written(z: Any) -> Any:
        out = np.zeros(12, complex)
        out[0] = z[0]
        for k in range(1, 12):
            out[k] = out[k - 1] * z[k] + 1j
        return np.sum(np.abs(out) ** 2)

    agree(sums, 0.4 + 0.5j, numbers(30), argnums=(0, 1))
    agree(nested, 0.9 + 1j, argnums=0)
    agree(newton, 0.3 + 1j, argnums=0, rtol=1e-9)
    agree(written, numbers(12), argnums=0)


@pytest.mark.parametrize("z", [0.3 + 1j, -0.3 + 1j])
def test_branches(z: complex) -> None:
    def f(z: Any) -> Any:
        w = z * z if z.real > 0 else np.exp(z)
        return np.abs(w)

    agree(f, z, argnums=0)


def test_second_derivatives() -> None:
    def f(x: Any) -> Any:
        return np.abs(np.sum(np.exp(1j * x) * np.arange(1, 4))) ** 2

    x = np.array([0.1, 0.2, 0.5])
    np.testing.assert_allclose(sg.hessian(f, backend="llvm")(x), sg.hessian(f, backend="numpy")(x), rtol=1e-12)


@pytest.mark.parametrize("z", [1.0 + 2.0j, np.complex128(1.0 + 2.0j), np.complex64(1.0 + 2.0j)])
def test_numbers_reach_machine_code_without_python(z: Any) -> None:
    """Python's and NumPy's numbers are read where they are: no call converts them."""
    kernel = BACKEND.compile(build(lambda z: z * z, np.asarray(z, getattr(z, "dtype", None)))).run
    slow: Any = kernel.__self__
    calls: list[Any] = []
    assert kernel(z)[0] == z * z
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "require", lambda *given, **more: calls.append(given))
        assert kernel(z)[0] == z * z
    assert callable(slow) and not calls


@pytest.mark.parametrize("seed", range(12))
def test_random_chains(seed: int) -> None:
    """Chains of operations on arrays that broadcast, with sums of them, are what NumPy computes."""
    random = np.random.default_rng(seed)
    steps = [
        lambda a, b: a * b,
        lambda a, b: a / (b + 3.0),
        lambda a, b: np.conj(a) - b,
        lambda a, b: np.exp(a * 0.3) * b.real,
        lambda a, b: np.where(b.imag > 0, a, b * 1j),
        lambda a, b: np.sqrt(a + 2.0) + np.log(b + 4.0),
        lambda a, b: a[::-1] + np.abs(b),
        lambda a, b: a - np.sum(b, axis=-1, keepdims=True) * 0.1,
    ]
    chosen = random.integers(0, len(steps), 6)
    shape = (int(random.integers(1, 6)), int(random.integers(1, 20)))

    def f(a: Any, b: Any) -> Any:
        for k in chosen:
            a, b = steps[k](a, b), a
        return a, np.sum(np.abs(a) ** 2)

    a, b = numbers(*shape, seed=seed), numbers(shape[1], seed=seed + 50)
    agree(f, a, np.broadcast_to(b, shape).copy())
    agree(lambda a, b: f(a, b)[1], a, np.broadcast_to(b, shape).copy(), argnums=(0, 1), rtol=1e-10)
