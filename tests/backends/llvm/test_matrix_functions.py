"""Exponentials, roots, logarithms and powers of matrices, and Sylvester's equation, as steps: against 40 digits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.linalg

import srcgrad as sg
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.steps.exponential_derivatives import LIMITS as DERIVATIVE_LIMITS
from srcgrad.backends.llvm.steps.exponentials import LIMITS, MOST
from srcgrad.backends.llvm.target import TARGET, Target
from tests.backends.llvm import steps_support
from tests.backends.llvm.steps_support import expected, make_operation, native, target_of

Array = np.ndarray[Any, Any]
EXP: dict[str, Any] = {"kind": "exp", "exponent": 0.0}
random = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def nan_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What results and scratch memory hold before is nan."""
    monkeypatch.setattr(steps_support, "_FILL", 0xFF)


def normal(n: int, norm: float = 1.0, seed: int = 0) -> Array:
    found = np.random.default_rng(100 * n + seed).normal(size=(n, n))
    return found * norm / np.linalg.norm(found, 1)


def of_digits(f: Callable[[Any], Any], a: Array) -> Array:
    """A function of an mpmath matrix."""
    with mpmath.workdps(40):
        found = f(mpmath.matrix(a.tolist())).tolist()
        numbers = np.array([[complex(x) for x in row] for row in found])
    return numbers if a.dtype.kind == "c" else numbers.real


def exponential(a: Array) -> Array:
    return of_digits(lambda x: mpmath.expm(x, method="taylor"), a)


def run(name: str, *operands: Array, target: Target = TARGET, **attrs: Any) -> tuple[int, Array]:
    compiled = native(make_operation(name, *operands, **attrs)[0], target)
    assert compiled is not None
    status, (found,) = compiled(*operands)
    return status, found


def require_near(found: Array, wanted: Array, ulps: float) -> None:
    """So many units of the last place of the largest number."""
    assert found.dtype == wanted.dtype or found.dtype.itemsize < wanted.dtype.itemsize
    scale = np.abs(wanted).max(initial=0.0) * np.finfo(found.dtype).eps
    assert np.abs(found - wanted).max(initial=0.0) <= ulps * scale


# --- exponentials -------------------------------------------------------------------------------------------------

U = np.linalg.qr(random.normal(size=(6, 6)))[0]
N = np.triu(random.normal(size=(6, 6)), 1)
EXPONENTIALS: dict[str, tuple[Any, float]] = {
    "zero": (np.zeros((4, 4)), 1),
    "diagonal": (np.diag([0.0, -3.0, 5.0, 700.0]), 2),
    "diagonal, underflow": (np.diag([-2000.0, 1.0, 2.0]), 2),
    "nilpotent": (N, 4),
    "nilpotent, large": (N * 1e6, 256),
    "nilpotent, turned": (U @ N @ U.T * 10, 256),
    "nilpotent of order 2, turned": (U @ np.triu(N, 3) @ U.T * 30, 2e4),
    "cancelling": (np.array([[1e3, -1e3, 1.0], [1e3, -1e3, 2.0], [3.0, 4.0, 5.0]]), 1e6),
    "cancelling in blocks": (np.kron(np.eye(2) + 1, np.array([[20.0, -20.0], [20.0, -20.0]])) + np.eye(4), 2e4),
    "triangular": (np.triu(normal(5, 8.0)), 16),
    "triangular, equal": (np.triu(np.full((5, 5), 3.0)), 16),
    "triangular, far apart": (np.triu(normal(5, 9.0)) + np.diag(np.linspace(-300, 10, 5)), 16),
    "triangular, nearly equal": (np.array([[9.0, 1e3], [0.0, 9.0 + 1e-9]]), 16),
    "far from normal": (np.array([[1.0, 1e6], [0.0, -1.0]]), 8),
    "skew": (normal(5, 20.0) - normal(5, 20.0).T, 64),
    "graded": (np.array([[0.0, 1e25], [-1e-25, 0.0]]), 8),
    "Ward": (np.array([[-131.0, 19.0, 18.0], [-390.0, 56.0, 54.0], [-387.0, 57.0, 52.0]]), 2000),
    "negative": (-normal(4) @ normal(4).T * 400, 1000),
    "complex": ((normal(4, 6.0) + 1j * normal(4, 9.0, 1)), 64),
    "complex, triangular": (np.triu(normal(4, 9.0) + 1j * normal(4, 9.0, 1)), 32),
    "complex, nearly equal": (np.array([[1, 1e3], [0, 1 + 1e-9j]]) * 10j, 16),
    "complex, diagonal": (np.diag([1j, 2.0, 3 - 40j]), 4),
    "float32": (normal(5, 3.0).astype(np.float32), 2),
    "complex64": ((normal(3, 3.0) * (1 + 1j)).astype(np.complex64), 2),
}
"""Matrices, and how far their exponentials may be from the exact ones."""


@pytest.mark.parametrize("name", EXPONENTIALS)
def test_an_exponential(name: str) -> None:
    given, ulps = EXPONENTIALS[name]
    for matrix in (given, given.T.copy()):
        status, found = run("matrix_function", matrix, **EXP)
        assert status == 0
        require_near(found, exponential(matrix), ulps)


def test_triangular_exponentials_number_by_number() -> None:
    """On the diagonal and beside it, however small these numbers are."""
    superdiagonal = np.diag([-300.0, -200.0, -301.0, -5.0]) + np.diag([1e3, 1e-3, 1.0], 1)
    for matrix in (np.triu(normal(5, 200.0)), superdiagonal, np.array([[300.0, 1e-8], [0.0, -300.0]])):
        for given, place in ((matrix, 1), (matrix.T.copy(), -1)):
            found, wanted = run("matrix_function", given, **EXP)[1], exponential(given)
            for k in (0, place):
                np.testing.assert_allclose(np.diag(found, k), np.diag(wanted, k), rtol=1e-15)
            assert not np.diag(found, -place).any()


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("n", [1, 2, 5, 11])
def test_exponentials_of_every_order_and_size(n: int, level: str) -> None:
    """Just below and above the norms where orders change, and for several squarings."""
    norms = [0.0, *(limit * factor for limit in LIMITS for factor in (0.99, 1.01)), 4.0, 9.0, 40.0]
    stack = np.stack([normal(n, norm, k) for k, norm in enumerate(norms)])
    status, found = run("matrix_function", stack, target=target_of(level), **EXP)
    assert status == 0
    for matrix, result in zip(stack, found, strict=True):
        require_near(result, exponential(matrix), 256.0)


@pytest.mark.parametrize("n", [30, 70])
def test_large_exponentials(n: int) -> None:
    for norm in (1.0, 30.0):
        status, found = run("matrix_function", normal(n, norm), **EXP)
        assert status == 0
        require_near(found, scipy.linalg.expm(normal(n, norm)), 64.0)


NOT_FINITE: dict[str, Array] = {
    "nan": np.array([[np.nan, 1.0], [1.0, 0.0]]),
    "inf": np.array([[np.inf, 1.0], [1.0, 0.0]]),
    "inf above": np.array([[0.0, np.inf], [0.0, 0.0]]),
    "diagonal": np.diag([np.nan, np.inf, -np.inf, 1.0]),
    "overflow": np.array([[1000.0, 1.0], [0.0, 1.0]]),
    "full overflow": np.array([[800.0, 1.0], [1.0, 3.0]]),
}
if np.lib.NumpyVersion(scipy.__version__) >= "1.18.0":  # whose zero below the infinity is nan
    del NOT_FINITE["inf above"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NOT_FINITE)
def test_exponentials_that_are_not_finite_are_scipys(name: str) -> None:
    for matrix in (NOT_FINITE[name], NOT_FINITE[name].T.copy()):
        status, found = run("matrix_function", matrix, **EXP)
        assert status == 0
        np.testing.assert_allclose(found, scipy.linalg.expm(matrix), rtol=1e-14)


def test_what_is_too_large_is_left_to_numpy() -> None:
    assert run("matrix_function", normal(3, MOST * 1.01), **EXP)[0] == 1
    assert run("matrix_function_derivative", normal(3, MOST * 1.01), normal(3), **EXP)[0] == 1
    assert run("matrix_function", np.full((2, 2), 1e200 + 0j), **EXP)[0] == 1


# --- their derivatives --------------------------------------------------------------------------------------------


def derivative(a: Array, h: Array) -> Array:
    n = len(a)
    whole = exponential(np.block([[a, h], [np.zeros_like(a), a]]))
    return whole[:n, n:]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_derivatives_of_every_order_and_size(n: int) -> None:
    norms = [0.0, *(limit * factor for limit in DERIVATIVE_LIMITS for factor in (0.99, 1.01)), 6.0, 40.0]
    stack = np.stack([normal(n, norm, k) for k, norm in enumerate(norms)])
    directions = np.stack([normal(n, 3.0, 50 + k) for k in range(len(norms))])
    status, found = run("matrix_function_derivative", stack, directions, **EXP)
    assert status == 0
    for matrix, direction, result in zip(stack, directions, found, strict=True):
        require_near(result, derivative(matrix, direction), 256.0)


def test_a_derivative_in_a_direction_of_any_size() -> None:
    """Nothing overflows on the way, and subnormal directions lose but what they have lost."""
    a, h = normal(3, 9.0), normal(3)
    wanted = derivative(a, h)
    for scale in (2.0**1000, 2.0**-1000):
        status, found = run("matrix_function_derivative", a, h * scale, **EXP)
        assert status == 0
        require_near(found / scale, wanted, 256.0)
    assert np.isfinite(run("matrix_function_derivative", a, h * 2.0**-1060, **EXP)[1]).all()
    assert not run("matrix_function_derivative", a, h * 0.0, **EXP)[1].any()


def test_derivatives_of_what_is_not_finite_are_nan_everywhere() -> None:
    a, h = normal(3), normal(3)
    for given in ((a * np.nan, h), (a, h * np.nan), (np.full((3, 3), np.inf), h), (a, np.full((3, 3), -np.inf))):
        operation, function = make_operation("matrix_function_derivative", *given, **EXP)
        compiled = native(operation)
        assert compiled is not None
        status, (found,) = compiled(*given)
        assert status == 0 and np.isnan(found).all() and np.isnan(expected(function, given)[0]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
def test_derivatives_of_other_dtypes(dtype: Any) -> None:
    a, h = (normal(4, 7.0, k) + (1j * normal(4, 7.0, 5) if np.dtype(dtype).kind == "c" else 0) for k in range(2))
    status, found = run("matrix_function_derivative", a.astype(dtype), h.astype(dtype), **EXP)
    assert status == 0 and found.dtype == dtype
    require_near(found, derivative(a.astype(dtype), h.astype(dtype)), 64.0)


# --- roots, logarithms, powers ------------------------------------------------------------------------------------


def by_eigenvalues(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call(matrix: Any) -> Any:
        values, vectors = mpmath.eig(matrix)
        return vectors * mpmath.diag([f(x) for x in values]) * mpmath.inverse(vectors)

    return call


KINDS: dict[str, tuple[dict[str, Any], Callable[[Any], Any], float]] = {
    "sqrt": ({"kind": "sqrt", "exponent": 0.0}, mpmath.sqrt, 64.0),
    "log": ({"kind": "log", "exponent": 0.0}, mpmath.log, 64.0),
    "power": ({"kind": "power", "exponent": 0.3}, lambda x: x ** mpmath.mpf(0.3), 64.0),
    "inverse power": ({"kind": "power", "exponent": -0.75}, lambda x: x ** mpmath.mpf(-0.75), 128.0),
}


def regular() -> Iterator[Array]:
    for n in (1, 2, 3, 5):
        definite = normal(n, 3.0) @ normal(n, 3.0).T + np.eye(n)
        yield definite
        yield normal(n) + 3 * np.eye(n)
        yield normal(n, 3.0) + 1j * normal(n, 3.0, 1) + 1e-3 * np.eye(n)
        yield definite.astype(np.float32)
    yield definite * 1e150
    yield definite * 1e-150
    yield np.array([[0.0, -1.0], [1.0, 0.0]])
    yield np.array([[0.0, -1e3, 2.0], [1e-3, 0.0, 1.0], [0.0, 0.0, 5.0]])
    yield np.diag([-1.0, -4.0 + 0.5j, 2.0])
    yield np.stack([definite, normal(5) + 3 * np.eye(5)])


@pytest.mark.parametrize("kind", KINDS)
def test_functions_by_triangles(kind: str) -> None:
    attrs, function, ulps = KINDS[kind]
    for given in regular():
        status, found = run("matrix_function", given, **attrs)
        assert status == 0
        for place in np.ndindex(given.shape[:-2]):
            require_near(found[place], of_digits(by_eigenvalues(function), given[place]), ulps)


@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_the_identity(kind: str) -> None:
    for n in (1, 3):
        status, found = run("matrix_function", np.eye(n), **KINDS[kind][0])
        assert status == 0
        np.testing.assert_allclose(found, np.eye(n) * (kind != "log"), rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_no_real_function_is_left_to_numpy(kind: str) -> None:
    attrs = KINDS[kind][0]
    for matrix in (-np.eye(2), np.diag([1.0, -1e-3]), normal(3) - 2 * np.eye(3), np.full((2, 2), np.nan)):
        assert run("matrix_function", matrix, **attrs)[0] == 1


def test_roots_of_singular_matrices() -> None:
    attrs = KINDS["sqrt"][0]
    status, found = run("matrix_function", np.stack([np.zeros((3, 3)), np.diag([4.0, 0.0, 9.0])]), **attrs)
    assert status == 0
    np.testing.assert_allclose(found, [np.zeros((3, 3)), np.diag([2.0, 0.0, 3.0])], atol=1e-15)
    assert run("matrix_function", np.array([[0.0, 1.0], [0.0, 0.0]]), **attrs)[0] == 1
    assert run("matrix_function", np.zeros((2, 2)), **KINDS["log"][0])[0] == 1


# --- Sylvester's equation -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.complex64])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 4), (3, 2), (5, 5), (12, 7)])
def test_a_solution_solves(sizes: tuple[int, int], dtype: Any) -> None:
    """In stacks, of which each has its own matrices."""
    m, n = sizes

    def drawn(rows: int, columns: int) -> Array:
        found = random.normal(size=(3, rows, columns)) + 1j * random.normal(size=(3, rows, columns))
        return np.ascontiguousarray(found if np.dtype(dtype).kind == "c" else found.real).astype(dtype)

    a, b, q = drawn(m, m) + 3 * np.eye(m, dtype=dtype), drawn(n, n), drawn(m, n)
    status, x = run("sylvester", a, b, q)
    assert status == 0
    size = np.abs(x).max() * (np.abs(a).sum() + np.abs(b).sum())
    assert np.abs(a @ x + x @ b - q).max() <= 8 * np.finfo(dtype).eps * size


def test_equations_without_one_solution_are_nan() -> None:
    q = np.ones((2, 2))
    status, found = run("sylvester", np.diag([1.0, -1.0]), np.diag([1.0, 2.0]), q)
    assert status == 0 and np.isnan(found).all()
    assert run("sylvester", np.diag([1.0, np.nan]), np.eye(2), q)[0] == 1


def test_a_solution_that_lapack_scales() -> None:
    """Of equations whose solution overflows nearly, LAPACK solves those of a smaller one."""
    given = np.eye(2) * 2.0**-900, np.eye(2) * 2.0**-900, np.eye(2) * 2.0**100
    operation, function = make_operation("sylvester", *given)
    compiled = native(operation)
    assert compiled is not None
    for found in (compiled(*given)[1][0], expected(function, given)[0]):
        np.testing.assert_array_equal(found, np.eye(2) * 2.0**999)


# --- programs -----------------------------------------------------------------------------------------------------

L, SMALL = scipy.linalg, normal(3, 0.5) + 1.5 * np.eye(3)
PROGRAMS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "expm": (L.expm, normal(3, 5.0)),
    "expm of a stack": (L.expm, np.stack([normal(3, 5.0), normal(3, 0.1)])),
    "expm of float32": (L.expm, normal(3).astype(np.float32)),
    "cosm": (L.cosm, normal(3, 4.0)),
    "sinhm": (L.sinhm, normal(3, 4.0)),
    "tanm": (L.tanm, normal(3, 0.7)),
    "sqrtm": (L.sqrtm, SMALL),
    "logm": (L.logm, SMALL),
    "power": (lambda x: L.fractional_matrix_power(x, 0.4), SMALL),
    "large power": (lambda x: L.fractional_matrix_power(x, 3.4), SMALL),
    "inverse of a large power": (lambda x: L.fractional_matrix_power(x, -2.3), SMALL),
    "sylvester": (lambda x: L.solve_sylvester(x, x.T @ x, np.sin(x)), SMALL),
    "lyapunov": (lambda x: L.solve_continuous_lyapunov(x, x + 1.0), SMALL),
    "pinv": (lambda x: np.linalg.pinv(x + x.T, hermitian=True), normal(4)),
    "pinv of rank 1": (lambda x: np.linalg.pinv(np.outer(x, x), hermitian=True), np.array([1.0, -2.0, 0.5])),
    "det": (lambda x: np.linalg.det(x) * np.ones(2), normal(4, 3.0)),
    "det of complex numbers": (lambda x: np.abs(np.linalg.det(x + 1j * x.T)) * np.ones(2), normal(4, 3.0)),
    "det of a few complex rows": (lambda x: np.abs(np.linalg.det(x + 1j * x.T)) * np.ones(2), normal(3, 3.0)),
    "powers of complex numbers": (lambda x: np.abs((x + 1j) ** (x * (2 - 1j))), np.linspace(-1.0, 2.0, 5)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_and_all_their_derivatives(name: str) -> None:
    """What the NumPy backend gives, without a line of Python."""
    f, x = PROGRAMS[name]
    direction = np.cos(np.arange(x.size)).reshape(x.shape).astype(x.dtype)

    def total(x: Any) -> Any:
        result = f(x)
        return np.sum(np.sin(np.arange(1.0, result.size + 1).reshape(result.shape)) * result)

    def forward(x: Any) -> Any:
        return sg.jvp(total, (x,), (direction,))[1]

    for g in (f, sg.grad(total), forward, sg.grad(lambda x: np.sum(sg.grad(total)(x) * direction))):
        found = sg.jit(g, backend="llvm")
        assert sg.explain(found)(x)["llvm source"].rstrip().endswith("# callbacks into Python: 0")
        wanted = np.asarray(sg.jit(g, backend="numpy")(x))
        bound = 4096 * np.finfo(x.dtype).eps * np.abs(wanted).max()
        np.testing.assert_allclose(found(x), wanted, rtol=0, atol=bound)


def test_powers_with_logarithms_of_zeros_and_infinities() -> None:
    x, y = np.meshgrid([0.0, np.inf, 2 - 1j], [1 + 1j, 0.5, -2.0, 2j])
    for n in (1, 2):
        _, function = make_operation("pow_log", x, y, n=n)
        with np.errstate(all="ignore"):
            (wanted,) = expected(function, (x, y))
            (found,) = BACKEND.compile(function).run(x, y)
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.parametrize("name", ["sqrtm", "logm", "power"])
def test_the_error_of_a_matrix_without_a_real_function(name: str) -> None:
    f = PROGRAMS[name][0]
    for backend in ("numpy", "llvm"):
        with pytest.raises(np.linalg.LinAlgError, match="pass a complex matrix"):
            sg.jit(f, backend=backend)(np.diag([1.0, -2.0]))
