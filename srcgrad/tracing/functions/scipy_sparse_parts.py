"""Functions of ``scipy.sparse`` that put matrices together or take parts of them, and those that make constant ones.

What only moves elements is SciPy's own function, on matrices whose elements are the numbers of the traced ones.
Importing this module imports SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.sparse

from srcgrad.tracing.conversion.calls import call_rule, traced_among
from srcgrad.tracing.functions.registry import as_array
from srcgrad.tracing.functions.scipy_sparse import UNTRACED, Sparse, moved
from srcgrad.tracing.tracer import contains_tracer

CONSTANT: Final = (
    "eye", "identity", "eye_array", "find", "isspmatrix", "isspmatrix_csr", "isspmatrix_csc", "isspmatrix_coo",
)  # fmt: skip
"""What gives the same for the same arguments."""
MOVING: Final = ("vstack", "hstack", "bmat", "block_array", "block_diag", "tril", "triu")

for _name in CONSTANT:
    if hasattr(scipy.sparse, _name):
        call_rule(getattr(scipy.sparse, _name))(getattr(scipy.sparse, _name))


def holds_traced(thing: Any) -> bool:
    if isinstance(thing, (list, tuple)):
        return any(map(holds_traced, thing))
    return isinstance(thing, Sparse) or contains_tracer(thing)


def moving(original: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of a function that puts elements of matrices into another one."""

    def rule(first: Any, *args: Any, **kwargs: Any) -> Any:
        if not holds_traced(first):
            return original(first, *args, **kwargs)
        return moved(lambda given: original(given, *args, **kwargs), first)

    return rule


for _name in MOVING:
    if hasattr(scipy.sparse, _name):
        call_rule(getattr(scipy.sparse, _name))(moving(getattr(scipy.sparse, _name)))


def sparse_of(thing: Any) -> Sparse:
    if isinstance(thing, (Sparse, *UNTRACED)):
        return Sparse.of(thing)
    dense = as_array(thing)
    dense = dense.reshape((1,) * (2 - dense.ndim) + dense.shape)
    rows, columns = (part.reshape(-1) for part in np.indices(dense.shape))
    return Sparse(dense.reshape(-1), rows, columns, dense.shape, False)


@call_rule(scipy.sparse.kron)
def kron(A: Any, B: Any, format: Any = None) -> Any:
    if not holds_traced((A, B)):
        return scipy.sparse.kron(A, B, format)
    left, right = sparse_of(A), sparse_of(B)
    rows = left.rows[:, None] * right.shape[0] + right.rows
    columns = left.columns[:, None] * right.shape[1] + right.columns
    shape = (left.shape[0] * right.shape[0], left.shape[1] * right.shape[1])
    matrix = not any(isinstance(x, scipy.sparse.sparray) or (isinstance(x, Sparse) and not x.matrix) for x in (A, B))
    return Sparse((left.data[:, None] * right.data).reshape(-1), rows.reshape(-1), columns.reshape(-1), shape, matrix)


@call_rule(scipy.sparse.kronsum)
def kronsum(A: Any, B: Any, format: Any = None) -> Any:
    """1 x A + B x 1, of Kronecker products."""
    if not holds_traced((A, B)):
        return scipy.sparse.kronsum(A, B, format)
    left, right = sparse_of(A), sparse_of(B)
    return kron(scipy.sparse.eye(right.shape[0]), left) + kron(right, scipy.sparse.eye(left.shape[0]))


@call_rule(scipy.sparse.spdiags)
def spdiags(data: Any, diags: Any, m: Any = None, n: Any = None, format: Any = None) -> Any:
    """Element j of each row of the data is in column j."""
    if not traced_among((data,), {}):
        return scipy.sparse.spdiags(data, diags, m, n, format)
    numbers = as_array(data)
    numbers = numbers.reshape((1,) * (2 - numbers.ndim) + numbers.shape)
    sizes = m if m is not None and n is None else (m, n)
    sizes = (numbers.shape[1],) * 2 if m is None else sizes
    labels = np.arange(1, numbers.size + 1).reshape(numbers.shape)
    return Sparse.at_places(numbers.reshape(-1), scipy.sparse.spdiags(labels, diags, *sizes), True)
