"""Functions of matrices of ``scipy.linalg``: exponential, logarithm, roots, powers, trigonometric functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from srcgrad.errors import ShapeError
from srcgrad.tracing.functions.linear_algebra import linalg_dtype, matrix_power, square_matrices
from srcgrad.tracing.functions.registry import as_array, cast, concrete_array, refuse
from srcgrad.tracing.functions.scipy_linalg import scipy_rule
from srcgrad.tracing.tracer import Tracer, emit


def doubled(*operands: Any) -> list[Any]:
    """Arrays in a dtype of double precision, in which SciPy gives what it computes in that alone."""
    arrays = [as_array(x) for x in operands]
    dtype = np.result_type(np.float64, *(x.dtype for x in arrays))
    return [cast(x, dtype) for x in arrays]


def applied(a: Any, kind: str, exponent: float = 0.0) -> Any:
    return emit("matrix_function", square_matrices(a), kind=kind, exponent=exponent)


@scipy_rule(scipy.linalg.expm)
def expm(A: Any) -> Any:
    return applied(A, "exp")


@scipy_rule(scipy.linalg.logm)
def logm(A: Any, disp: Any = True) -> Any:
    """The principal logarithm; a real matrix with a negative eigenvalue is a LinAlgError that says to pass x + 0j."""
    refuse("scipy.linalg.logm", disp=(disp, True))
    return applied(doubled(A)[0], "log")


@scipy_rule(scipy.linalg.sqrtm)
def sqrtm(A: Any, disp: Any = True, blocksize: Any = None) -> Any:
    """The principal square root, as `logm`."""
    refuse("scipy.linalg.sqrtm", disp=(disp, True))
    return applied(A, "sqrt")


@scipy_rule(scipy.linalg.fractional_matrix_power)
def fractional_matrix_power(A: Any, t: Any) -> Any:
    """A power; as `logm` if it is not an integer, or not known while tracing."""
    (matrix,) = doubled(A)
    if isinstance(t, Tracer) and t.dtype.kind in "fc":
        return expm(t * logm(matrix))
    exponent = float(concrete_array(t, "the exponent of fractional_matrix_power"))
    if exponent.is_integer():
        return matrix_power(square_matrices(A), int(exponent))
    return applied(matrix, "power", exponent)


@scipy_rule(scipy.linalg.expm_frechet, finite="A E", one=True)
def expm_frechet(A: Any, E: Any, method: Any = None, compute_expm: bool = True, check_finite: bool = True) -> Any:
    """The exponential, and its derivative in the direction E."""
    a, direction = doubled(A, E)
    a = square_matrices(a)
    if a.shape != direction.shape:
        raise ShapeError("expected A and E to be the same shape")
    derivative = emit("matrix_function_derivative", a, cast(direction, linalg_dtype(a)), kind="exp", exponent=0.0)
    return (expm(a), derivative) if compute_expm else derivative


# --- trigonometric and hyperbolic functions --------------------------------------------------------------------------


@scipy_rule(scipy.linalg.cosm)
def cosm(A: Any) -> Any:
    """(exp(i A) + exp(-i A))/2, the real part of exp(i A) for a real matrix."""
    matrix = square_matrices(A)
    if matrix.dtype.kind == "f":
        return np.real(expm(1j * matrix)).copy()
    return 0.5 * (expm(1j * matrix) + expm(-1j * matrix))


@scipy_rule(scipy.linalg.sinm)
def sinm(A: Any) -> Any:
    """(exp(i A) - exp(-i A))/2i, the imaginary part of exp(i A) for a real matrix."""
    matrix = square_matrices(A)
    if matrix.dtype.kind == "f":
        return np.imag(expm(1j * matrix)).copy()
    return -0.5j * (expm(1j * matrix) - expm(-1j * matrix))


@scipy_rule(scipy.linalg.tanm)
def tanm(A: Any) -> Any:
    return np.linalg.solve(cosm(A), sinm(A))


@scipy_rule(scipy.linalg.coshm)
def coshm(A: Any) -> Any:
    matrix = square_matrices(A)
    return 0.5 * (expm(matrix) + expm(-matrix))


@scipy_rule(scipy.linalg.sinhm)
def sinhm(A: Any) -> Any:
    matrix = square_matrices(A)
    return 0.5 * (expm(matrix) - expm(-matrix))


@scipy_rule(scipy.linalg.tanhm)
def tanhm(A: Any) -> Any:
    return np.linalg.solve(coshm(A), sinhm(A))
