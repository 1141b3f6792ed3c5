"""Rules that are loops of Python's, converted as the user's are: each becomes one region."""

from __future__ import annotations

from typing import Any

import numpy as np


def apply_each(ufunc: np.ufunc, elements: Any, places: Any, *values: Any) -> None:
    """``ufunc.at`` of one axis: an element for each place, in their order."""
    for k in range(len(places)):
        elements[places[k]] = ufunc(elements[places[k]], *[value[k] for value in values])


def factor_bands(bands: Any) -> Any:
    """The bands of the Cholesky factor L of a matrix, both those on and below the diagonal.

    A column divided by the root of its pivot is one of L; what comes after is less by its products with itself.
    """
    rows, size = bands.shape
    rest = np.concatenate([bands, np.zeros((rows, rows - 1), bands.dtype)], axis=1)
    for k in range(size):
        pivot = np.sqrt(np.real(rest[0, k]))
        column = rest[1:, k] / pivot
        rest[0, k] = pivot
        rest[1:, k] = column
        for j in range(rows - 1):
            rest[: rows - 1 - j, k + 1 + j] -= column[j:] * np.conjugate(column[j])
    return rest[:, :size]
