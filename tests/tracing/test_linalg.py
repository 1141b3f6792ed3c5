"""Rules of ``np.linalg`` and ``scipy.linalg``: their values, kinds of result, derivatives and errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import srcgrad as sg
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.errors import MatrixError, ShapeError, UnsupportedError
from srcgrad.ir.transforms.linearize import jvp
from srcgrad.testing import check_grads
from srcgrad.tracing.tracer import FUNCTIONS
from tests.tracing.linalg_cases import EMPTY, HERMITIAN, NUMPY, PC, SCIPY, STRUCTURES, A, B, C, L
from tests.tracing.trace_support import Case, compare, compare_result, directional, run, trace_function

NOT_SMOOTH = {"cond singular", "lstsq rank"}


@pytest.mark.parametrize("concrete", [False, True], ids=["abstract", "concrete"])
@pytest.mark.parametrize("case", NUMPY, ids=lambda case: case[0])
def test_function_equals_numpy(case: Case, concrete: bool) -> None:
    _, f, arrays = case
    compare(f, arrays, concrete)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("concrete", [False, True], ids=["abstract", "concrete"])
@pytest.mark.parametrize("case", SCIPY, ids=lambda case: case[0])
def test_function_equals_scipy(case: Case, concrete: bool) -> None:
    _, f, arrays = case
    if case[0] == "expm_frechet" or case[0].startswith("tan"):  # other roundings than SciPy's own
        found, expected = run(f, arrays, concrete), f(*arrays)
        for (value, _), wanted in zip(found, expected if isinstance(expected, tuple) else (expected,), strict=False):
            np.testing.assert_allclose(value, wanted[0] if isinstance(wanted, tuple) else wanted, rtol=1e-12)
        return
    compare(f, arrays, concrete)


DIFFERENTIABLE = [
    case
    for case in [*NUMPY, *SCIPY]
    if case[0] not in NOT_SMOOTH
    and not case[0].startswith(HERMITIAN)
    and all(np.asarray(a).size and np.asarray(a).dtype.name in ("float64", "complex128") for a in case[2])
]


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=lambda case: case[0])
def test_derivative(case: Case) -> None:
    _, f, arrays = case
    directional(f, arrays)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("kind", ["cho_solve", "solve", "inv"])
def test_derivative_on_hermitian_matrices(kind: str, lower: bool) -> None:
    programs: dict[str, Any] = {
        "cho_solve": lambda a: L.cho_solve(L.cho_factor(a, lower=lower), B),
        "solve": lambda a: L.solve(a, B, assume_a="pos", lower=lower),
        "inv": lambda a: L.inv(a, assume_a="pos", lower=lower),
    }
    f = programs[kind]
    change = C + C.conj().T
    function, _ = trace_function(f, [PC])
    found = evaluate(jvp(function, [True]), [PC, change])[1]
    step = 1e-6
    np.testing.assert_allclose(found, (f(PC + step * change) - f(PC - step * change)) / (2 * step), atol=1e-6)


CUT_OFF: dict[str, Any] = {
    "pinv": lambda x: np.linalg.pinv(x, rcond=0.3),
    "SciPy's pinv": lambda x: L.pinv(x, rtol=0.3),
    "stacked pinv": lambda x: np.linalg.pinv(np.stack([x, 2 * x + 0.1]), rcond=0.3),
    "Hermitian pinv": lambda x: np.linalg.pinv(x @ x.T - np.eye(len(x)), rcond=0.3, hermitian=True),
    "lstsq": lambda x: np.linalg.lstsq(x, np.arange(1.0, 1.0 + len(x)), rcond=0.3)[0],
    "SciPy's lstsq": lambda x: L.lstsq(x, x[:, :2] ** 2, cond=0.3)[0],
}


@pytest.mark.parametrize(
    ("name", "shape", "backend"),
    [
        # LLVM takes a second or more for each: the normal run has one shape of each there, the slow one both
        pytest.param(name, shape, backend, marks=[pytest.mark.slow] * (backend == "llvm" and (k + j) % 2))
        for k, name in enumerate(CUT_OFF)
        for j, shape in enumerate(("tall", "wide"))
        for backend in ("numpy", "llvm")
    ],
)
def test_singular_values_that_are_cut_off_have_the_derivative_of_the_function(
    name: str, shape: str, backend: str
) -> None:
    tall = np.array([[3.0, 1.0, 0.2], [0.4, 0.7, 0.1], [0.2, 0.9, -0.5], [1.0, 0.3, 0.5]])
    with sg.use_backend(backend):
        check_grads(CUT_OFF[name], (tall if shape == "tall" else tall.T,), order=2)


def test_scipys_determinant_of_float32_is_float64() -> None:
    ((value, is_scalar),) = run(lambda a: L.det(a), (A.astype(np.float32),))
    assert value.dtype == np.float64
    assert is_scalar
    np.testing.assert_allclose(value, np.linalg.det(A.astype(np.float32).astype(float)), rtol=1e-13)


def test_least_squares_knows_its_rank_where_the_numbers_are_known() -> None:
    a, b = np.ones((3, 2)), np.arange(3.0)
    found = run(lambda a: np.linalg.lstsq(a, b), (a,), concrete=True)
    for (value, scalar), wanted in zip(found, np.linalg.lstsq(a, b), strict=True):
        if np.shape(wanted) == (2,):
            np.testing.assert_allclose(value, wanted, atol=1e-14)
        else:
            compare_result(value, scalar, wanted)


SINGULAR = np.diag([1.0, 0.0])
ERRORS: list[tuple[str, Any, tuple[Any, ...]]] = [
    ("inv", lambda a: np.linalg.inv(a), (SINGULAR,)),
    ("inv stack", lambda a: np.linalg.inv(a), (np.stack([np.eye(2), SINGULAR]),)),
    ("solve", lambda a: np.linalg.solve(a, np.ones(2)), (SINGULAR,)),
    ("matrix_power", lambda a: np.linalg.matrix_power(a, -1), (SINGULAR,)),
    ("cholesky", lambda a: np.linalg.cholesky(a), (-np.eye(2),)),
    ("scipy cholesky", lambda a: L.cholesky(a), (-np.eye(2),)),
    ("scipy inv", lambda a: L.inv(a), (SINGULAR,)),
    ("scipy solve pos", lambda a: L.solve(a, np.ones(2), assume_a="pos"), (-np.eye(2),)),
    ("scipy solve_triangular", lambda a: L.solve_triangular(a, np.ones(2)), (SINGULAR,)),
    ("cond empty", lambda a: np.linalg.cond(a), (EMPTY,)),
]


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case[0])
def test_errors_are_linalg_errors_as_in_numpy(case: Case) -> None:
    _, f, arrays = case
    with pytest.raises(np.linalg.LinAlgError):
        f(*arrays)
    with pytest.raises(np.linalg.LinAlgError):
        run(f, arrays)


REFUSED: list[tuple[str, Any, type[Exception]]] = [
    ("det of a vector", lambda x: np.linalg.det(x[0]), MatrixError),
    ("det of a rectangle", lambda x: np.linalg.det(x[:2]), MatrixError),
    ("qr raw", lambda x: np.linalg.qr(x, "raw"), UnsupportedError),
    ("qr of a vector", lambda x: np.linalg.qr(x[0]), MatrixError),
    ("norm order", lambda x: np.linalg.norm(x, 3), ShapeError),
    ("pinv rcond and rtol", lambda x: np.linalg.pinv(x, 1e-3, rtol=1e-3), ShapeError),
    ("pinv rcond array", lambda x: np.linalg.pinv(x, np.ones(2)), UnsupportedError),
    ("lstsq rank", lambda x: np.linalg.lstsq(x[None], x[0]), MatrixError),
    ("lstsq rows", lambda x: np.linalg.lstsq(x, x[:2]), MatrixError),
    ("scipy structure", lambda x: L.solve(x, x, assume_a="banana"), ShapeError),
    ("scipy transposed", lambda x: L.solve(x * 1j, x, transposed=True), UnsupportedError),
    ("scipy qr raw", lambda x: L.qr(x, mode="raw"), UnsupportedError),
    ("scipy qr pivoting of stacks", lambda x: L.qr(np.stack([x, x]), pivoting=True), UnsupportedError),
    ("scipy pinv below 0", lambda x: L.pinv(x, atol=-1e-3), ValueError),
    ("scipy solve shapes", lambda x: L.solve(x, x[:2]), ShapeError),
    ("sqrtm disp", lambda x: L.sqrtm(x, disp=False), UnsupportedError),
    ("expm_frechet", lambda x: L.expm_frechet(x, x[:2, :2]), ShapeError),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_refusal(case: tuple[str, Any, type[Exception]]) -> None:
    _, f, error = case
    with pytest.raises(error):
        run(f, (A,))


NOT_SQUARE: dict[str, Any] = {
    "det": np.linalg.det,
    "inv": np.linalg.inv,
    "slogdet": np.linalg.slogdet,
    "cholesky": np.linalg.cholesky,
    "eig": np.linalg.eig,
    "eigh": np.linalg.eigh,
    "eigvals": np.linalg.eigvals,
    "eigvalsh": np.linalg.eigvalsh,
    "matrix_power": lambda x: np.linalg.matrix_power(x, 2),
    "solve": lambda x: np.linalg.solve(x, x[:, 0]),
    "tensorsolve": lambda x: np.linalg.tensorsolve(x, x[:, 0]),
    "lstsq": lambda x: np.linalg.lstsq(x, x[0]),
    "inv of a vector": lambda x: np.linalg.inv(x[0]),
    "svd of a vector": lambda x: np.linalg.svd(x[0]),
    "cond of nothing": lambda x: np.linalg.cond(x[:0]),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", NOT_SQUARE)
def test_errors_of_matrices_that_are_not_square_are_linalg_errors(name: str, backend: str) -> None:
    f, x = NOT_SQUARE[name], A[:2]
    for call in (f, sg.jit(f, backend=backend), sg.grad(lambda x: np.sum(f(x)), backend=backend)):
        with pytest.raises(np.linalg.LinAlgError):
            call(x)


def test_a_function_may_do_without_what_needs_a_square_matrix() -> None:
    def f(x: Any) -> Any:
        try:
            return np.linalg.det(x)
        except np.linalg.LinAlgError:
            return np.sum(x**2)

    np.testing.assert_array_equal(sg.grad(f)(A[:2]), 2 * A[:2])
    np.testing.assert_allclose(sg.grad(f)(A), np.linalg.det(A) * np.linalg.inv(A).T, rtol=1e-10)


@pytest.mark.parametrize(
    "dtypes", [("c16", "f8"), ("f8", "c16"), ("f4", "f8"), ("f8", "f4"), ("i8", "f4"), ("f4", "f4")]
)
def test_a_pencil_of_two_dtypes_has_the_wider_one(dtypes: tuple[str, str]) -> None:
    a, b = (
        m.astype(d) for m, d in zip(([[2.0, 1.0], [1.0, 1.0]] * np.ones(1), np.diag([2.0, 3.0])), dtypes, strict=True)
    )
    compare(lambda x, y: L.eigvalsh(x, y), (a, b))
    compare(lambda x, y: L.eigh(x, y)[0], (a, b))
    if a.dtype.kind != "i":
        slope = sg.grad(lambda x, y: np.sum(L.eigvalsh(x, y) ** 2), argnums=(0, 1))(a, b)
        wide = sg.grad(lambda x, y: np.sum(L.eigvalsh(x, y) ** 2), argnums=(0, 1))(
            *(m.astype(float) for m in (a.real, b.real))
        )
        assert [found.dtype for found in slope] == [a.dtype, b.dtype]
        for found, expected in zip(slope, wide, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_structures_are_those_of_scipy() -> None:
    text = inspect.getdoc(scipy.linalg.solve) or ""
    assert all(kind is None or kind in text for kind in STRUCTURES)


def test_rules_have_scipys_parameters() -> None:
    for function, rule in FUNCTIONS.items():
        if not getattr(function, "__module__", "").startswith("scipy.linalg"):
            continue
        wanted = {name for name, p in inspect.signature(function).parameters.items() if p.kind is not p.VAR_POSITIONAL}
        assert wanted <= set(inspect.signature(rule).parameters), function


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 3.0, 0.0]],
        [[2.0, 1.0], [0.0, 2.0]],
        [[1.0, 0.0], [0.0, 1.0]],
        [[0.5]],
    ],
    ids=["nilpotent", "defective", "identity", "single"],
)
def test_the_characteristic_polynomial_of_a_matrix_without_eigenvectors_has_its_derivative(matrix: Any) -> None:
    a = np.array(matrix)
    n = len(a)
    forward, reverse = sg.jacfwd(np.poly)(a), sg.jacrev(np.poly)(a)
    np.testing.assert_array_equal(forward, reverse)
    # d det(t - a) = -tr(adj(t - a) da): the last coefficient by the cofactors, the first below t**n by the trace.
    np.testing.assert_allclose(forward[1], -np.eye(n), atol=1e-15)
    cofactors = np.array(
        [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)] for i in range(n)]
    )
    np.testing.assert_allclose(forward[n], (-1) ** n * cofactors, atol=1e-12)
    np.testing.assert_array_equal(sg.jit(np.poly)(a), np.poly(a))


K = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 1.0], [0.5, 1.0, 2.0]])
REFUSES: dict[str, Callable[[Any], Any]] = {
    "solve": lambda a: scipy.linalg.solve(a, K[0]),
    "solve of columns": lambda b: scipy.linalg.solve(K, b),
    "inv": lambda a: scipy.linalg.inv(a),
    "det": lambda a: scipy.linalg.det(a),
    "det of rows": lambda a: scipy.linalg.det([[1.0, 2.0], [3.0, a[0, 0]]]),
    "norm": lambda a: scipy.linalg.norm(a),
    "svd": lambda a: scipy.linalg.svd(a)[1],
    "svdvals": lambda a: scipy.linalg.svdvals(a),
    "pinv": lambda a: scipy.linalg.pinv(a),
    "lstsq": lambda a: scipy.linalg.lstsq(a, K)[0],
    "eigh": lambda a: scipy.linalg.eigh(a)[0],
    "eigvals": lambda a: scipy.linalg.eigvals(a),
    "qr": lambda a: scipy.linalg.qr(a)[1],
    "cholesky": lambda a: scipy.linalg.cholesky(a),
    "lu": lambda a: scipy.linalg.lu(a)[2],
    "lu_solve": lambda b: scipy.linalg.lu_solve(scipy.linalg.lu_factor(K), b),
    "polar": lambda a: scipy.linalg.polar(a)[0],
    "solve_toeplitz": lambda a: scipy.linalg.solve_toeplitz((a[0], a[1]), K[0]),
    "solve_sylvester": lambda a: scipy.linalg.solve_sylvester(a, K, K),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("name", REFUSES)
def test_an_infinite_number_is_scipys_error_before_lapack_is_given_it(name: str, number: float, backend: Any) -> None:
    """LAPACK's singular values of a matrix with an infinite number are never found."""
    matrix = K.copy()
    program = sg.jit(REFUSES[name], backend=backend)
    program(matrix)
    matrix[0, 0] = number
    with pytest.raises(ValueError, match="must not contain infs or NaNs"):
        program(matrix)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", ["svdvals", "pinv", "lstsq", "eigh", "qr", "polar"])
def test_an_infinite_number_is_scipys_error_in_derivatives_too(name: str, backend: Any) -> None:
    """There the check is computed with what follows LAPACK."""
    matrix = K.copy()
    slope = sg.grad(lambda a: np.sum(np.abs(REFUSES[name](a))), backend=backend)
    slope(matrix)
    matrix[0, 0] = np.inf
    with pytest.raises(ValueError, match="must not contain infs or NaNs"):
        slope(matrix)


def test_what_is_not_to_be_checked_is_not() -> None:
    matrix = np.array([[np.nan, 1.0], [1.0, 2.0]])
    assert np.isnan(sg.jit(lambda a: scipy.linalg.norm(a, check_finite=False))(matrix))
    assert np.isnan(sg.jit(lambda a: scipy.linalg.matmul_toeplitz(a[0], a[1]))(matrix)).all()
    with pytest.raises(ValueError, match="must not contain infs or NaNs"):
        sg.jit(lambda a: scipy.linalg.matmul_toeplitz(a[0], a[1], True))(matrix)


def test_columns_sorted_by_their_lengths_have_the_slopes_of_their_factors() -> None:
    """The order is a whole number for each column: what moves is what it was factored into."""
    check_grads(lambda x: L.qr(x, mode="economic", pivoting=True)[1], (A,), order=2)
    for matrix in (np.eye(3), np.ones((3, 3)), np.vander([1.0, 2.0, 3.0]), np.diag([1.0, 3.0, 0.0])):
        found = sg.jit(lambda x: L.qr(x, pivoting=True)[2])(matrix)
        np.testing.assert_array_equal(found, L.qr(matrix, pivoting=True)[2])


def test_a_pseudo_inverse_above_a_number_is_smooth_at_ties() -> None:
    h = np.cos(np.arange(9.0)).reshape(3, 3)
    np.testing.assert_allclose(sg.jvp(lambda x: L.pinv(x, atol=1e-3), (2 * np.eye(3),), (h,))[1], -h / 4, atol=1e-15)


def test_the_length_of_a_vector_has_slopes_where_squares_overflow_or_vanish() -> None:
    """The scale is a power of 2 that has no slope."""
    for scale in (1e200, 1e-200, 1.0):
        x = scale * np.array([3.0, 4.0])
        np.testing.assert_allclose(sg.grad(lambda x: L.norm(x))(x), [0.6, 0.8], rtol=1e-15)
        expected = np.array([[0.128, -0.096], [-0.096, 0.072]]) / scale
        np.testing.assert_allclose(sg.hessian(lambda x: L.norm(x))(x), expected, rtol=1e-13)
    np.testing.assert_array_equal(sg.grad(lambda x: L.norm(x))(np.zeros(2)), 0.0)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_the_length_of_a_vector_is_that_of_blas(backend: Any) -> None:
    """NumPy's has squares that overflow, and stays so."""
    for x in (np.array([3e200, 4.0]), np.array([3e-200, 4e-200]), np.array([3e30, 4e30], np.float32), np.zeros(2)):
        for vector in (x, 1j * x):
            found = sg.jit(
                lambda x: (scipy.linalg.norm(x), scipy.linalg.norm(x, 2, check_finite=False), np.linalg.norm(x)),
                backend=backend,
            )
            *lengths, numpys = found(vector)
            np.testing.assert_allclose(lengths, 2 * [scipy.linalg.norm(vector)], rtol=3 * np.finfo(x.dtype).eps)
            assert {length.dtype for length in lengths} == {x.dtype}
            with np.errstate(over="ignore"):
                np.testing.assert_allclose(numpys, np.linalg.norm(vector), rtol=1e-6)
