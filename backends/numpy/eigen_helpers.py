"""Helper functions of programs: eigenvectors by the routines of LAPACK that SciPy is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np


def eigenvectors_by(matrices: Any, driver: Any, lower: bool, select: Any, band: int) -> Any:
    """All eigenvalues and vectors of the Hermitian matrices, with the signs that a routine of SciPy gives to those that
    it finds: of which a triangle is read, and of ``driver`` "band" and of tridiagonal ones ``band`` diagonals beside
    the middle."""
    import scipy.linalg

    size = matrices.shape[-1]
    values = np.empty(matrices.shape[:-1], np.finfo(matrices.dtype).dtype)
    vectors = np.empty_like(matrices, order="C")
    for example in np.ndindex(matrices.shape[:-2] if matrices.size else (0,)):
        a = matrices[example]
        if driver in ("ev", "evr", "evx"):
            part = {f"subset_by_{select[0]}": select[1:]} if select else {}
            w, v = scipy.linalg.eigh(a, lower=lower, driver=driver, check_finite=False, **part)
        else:
            below = a if lower else np.conj(a.T)
            part = {"select": select[0][0], "select_range": select[1:]} if select else {}
            if driver == "band":
                bands = np.zeros((band + 1, size), a.dtype)
                for k in range(band + 1):
                    beside = np.diagonal(below, -k)
                    row, start = (k, 0) if lower else (band - k, k)
                    bands[row, start : start + size - k] = beside if lower else np.conj(beside)
                w, v = scipy.linalg.eig_banded(bands, lower, check_finite=False, **part)
            else:
                beside = np.diagonal(below, -1)
                w, v = scipy.linalg.eigh_tridiagonal(np.diagonal(below), beside, lapack_driver=driver, **part)
        if len(w) < size:
            found, (w, v) = v, scipy.linalg.eigh(a, lower=lower, check_finite=False)
            start = np.sum(w <= select[1]) if select[0] == "value" else select[1]
            mine = v[:, start : start + found.shape[1]]
            turn = np.sum(np.conj(mine) * found[:, : mine.shape[1]], axis=0)
            mine *= np.where(turn == 0, 1, turn / np.where(turn == 0, 1, np.abs(turn)))
        values[example], vectors[example] = w, v
    return values, vectors
