"""Transposed products: the same numbers from the operands in the other order."""

from __future__ import annotations

import numpy as np
import pytest

from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Function
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes.products import turned_products
from srcgrad.ir.types import ArrayType
from srcgrad.ir.verify import verify

F64 = np.dtype(np.float64)


def program(perm: tuple[int, ...], read_twice: bool = False) -> Function:
    """A batch of products of (batch, i, j, k) with (k, batch, l), their axes permuted."""
    builder = Builder()
    left = builder.param(ArrayType(F64, (2, 3, 4, 5)))
    right = builder.param(ArrayType(F64, (5, 2, 6)))
    product = builder.emit(REGISTRY["dot_general"], [left, right], {"contract": ((3,), (0,)), "batch": ((0,), (1,))})
    moved = builder.emit(REGISTRY["transpose"], [product], {"perm": perm})
    return builder.function("f", [moved, product] if read_twice else [moved])


def names(function: Function) -> list[str]:
    return [operation.op.name for operation in function.operations]


@pytest.mark.parametrize("perm", [(0, 3, 1, 2), (0, 3, 2, 1), (3, 0, 1, 2), (0, 1, 3, 2), (0, 2, 3, 1)])
@pytest.mark.parametrize("read_twice", [False, True])
def test_products_are_turned_where_that_is_all(perm: tuple[int, ...], read_twice: bool) -> None:
    function = program(perm, read_twice)
    found = turned_products(function)
    verify(found)
    turned = perm == (0, 3, 1, 2) and not read_twice
    assert names(found) == (["dot_general"] if turned else ["dot_general", "transpose"])
    generator = np.random.default_rng(0)
    arguments = [generator.standard_normal(param.type.static_shape) for param in function.params]
    for one, other in zip(evaluate(found, arguments), evaluate(function, arguments), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
