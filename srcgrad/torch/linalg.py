"""`torch.linalg`: linear algebra."""

from __future__ import annotations

from srcgrad.torch.errors import LinAlgError
from srcgrad.torch.ops.linalg import (
    cholesky_ex,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lstsq,
    lu,
    lu_factor,
    solve,
    solve_ex,
    solve_triangular,
    svdvals,
    tensorinv,
    tensorsolve,
)
from srcgrad.torch.ops.linalg import linalg_cholesky as cholesky
from srcgrad.torch.ops.linalg import linalg_lu_solve as lu_solve
from srcgrad.torch.ops.linalg import linalg_qr as qr
from srcgrad.torch.ops.linalg import linalg_svd as svd
from srcgrad.torch.ops.matrices import (
    cond,
    det,
    diagonal,
    inv,
    inv_ex,
    matrix_exp,
    matrix_norm,
    matrix_power,
    matrix_rank,
    norm,
    pinv,
    vander,
    vecdot,
)
from srcgrad.torch.ops.matrices import linalg_cross as cross
from srcgrad.torch.ops.matrices import linalg_slogdet as slogdet
from srcgrad.torch.ops.norms import vector_norm
from srcgrad.torch.ops.products import matmul, multi_dot

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "inv", "inv_ex", "lstsq", "lu", "lu_factor", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power",
    "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd",
    "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm",
]  # fmt: skip
