"""Derivatives of small IR programs, for tests of ops at hard points."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import srcgrad.ir.ops  # noqa: F401  registers the ops
from srcgrad.ir.core import Builder, Function, Value, literal, zeros
from srcgrad.ir.opdef import REGISTRY, Lin, Term, Zero
from srcgrad.ir.transforms.interpret import push_forward
from srcgrad.ir.transforms.linear import Masked
from srcgrad.ir.transforms.linearize import record
from srcgrad.ir.transforms.transpose import pull_back
from tests.ir.ops.harness import (
    at_operands,
    pull_back_function,
    push_forward_function,
    run,
    to_reals,
    type_of,
    unit_seeds,
)

Array = np.ndarray[Any, Any]
R = REGISTRY


def program(body: Callable[..., Term], *examples: Any) -> Function:
    """The function ``body`` of terms, for operands of the examples' types."""
    builder = Builder()
    terms = [Term(builder, builder.param(type_of(example))) for example in examples]
    return builder.function("f", [body(*terms).value])


def constant(term: Term, array: Array) -> Term:
    """A literal array beside a term."""
    return Term(term.builder, literal(array, type_of(array)))


def jacobian(function: Function, operands: Sequence[Any], mode: str) -> Array:
    """The Jacobian by one-hot seeds, in all operands: ``forward`` by columns or ``reverse`` by rows."""
    arrays = [np.asarray(operand) for operand in operands]
    active = range(len(arrays))
    found = []
    if mode == "forward":
        pushed = at_operands(push_forward_function(function, active, [0], "masked"), arrays)
        for seeds in unit_seeds([param.type for param in function.params]):
            found.append(to_reals(pushed(seeds)[::2]))
        return np.array(found).T
    pulled = at_operands(pull_back_function(function, active, [0], "masked"), arrays)
    for seeds in unit_seeds([function.results[0].type], adjoint=True):
        found.append(to_reals(pulled(seeds)[::2], adjoint=True))
    return np.array(found)


def slope(function: Function, argument: int, mode: str) -> Function:
    """The derivative of an elementwise function in one argument, by a tangent or cotangent of ones."""
    builder = Builder()
    primals = [builder.param(param.type) for param in function.params]
    s = Masked(builder)

    def ones(value: Value) -> Lin:
        return Lin(literal(1.0, value.type))

    if mode == "f":
        tangents = [ones(primal) if k == argument else Zero(primal.type) for k, primal in enumerate(primals)]
        _, outgoing = push_forward(builder, s, function, primals, tangents)
    else:
        _, linear = record(builder, function, primals, [k == argument for k in range(len(primals))])
        residuals = [Term(builder, value) for value in linear.residuals]
        outgoing = pull_back(s, linear.function, residuals, [ones(function.results[0])])
    result = outgoing[0]
    value = zeros(result.type) if isinstance(result, Zero) else s.materialise(result)
    return builder.function("slope", [value])


def slopes(body: Callable[..., Term], operands: Sequence[Any], arguments: Sequence[int]) -> Iterator[tuple[str, Array]]:
    """Derivatives of an elementwise function in ``arguments``, one after the other, in every mix of the two modes."""
    for modes in itertools.product("fr", repeat=len(arguments)):
        function = program(body, *operands)
        for argument, mode in zip(arguments, modes, strict=True):
            function = slope(function, argument, mode)
        yield "".join(modes), run(function, [np.asarray(operand) for operand in operands])[0]


def check_slopes(
    body: Callable[..., Term], operands: Sequence[Any], arguments: Sequence[int], expected: Any, rtol: float = 1e-12
) -> None:
    """All mixes of modes give the expected derivatives, infinities and nan included."""
    for modes, found in slopes(body, operands, arguments):
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol, err_msg=f"modes {modes}")


def check_jacobian(body: Callable[..., Term], operands: Sequence[Any], expected: Any) -> None:
    """Both modes give the expected Jacobian, infinities and nan included."""
    function = program(body, *operands)
    for mode in ("forward", "reverse"):
        found = jacobian(function, operands, mode)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=mode)
