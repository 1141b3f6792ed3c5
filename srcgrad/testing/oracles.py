"""Differences as an oracle for `cross_check`: complex steps where they are exact, else extrapolated to step 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.compiler import chosen_backend
from srcgrad.ir.core import Builder, Function, Literal, Value, literal
from srcgrad.real_derivatives import Reals, divided, joined
from srcgrad.testing.policy_points import flatten_calls, run
from srcgrad.testing.problem import Difference, Problem, assemble, complex_step, largest, lower_matrix, ridders
from srcgrad.testing.programs import Directions, Subject, directions_of, matrix, product

STOPPED: Final = "stop_gradient"


class Differences(NamedTuple):
    """A matrix of derivatives with error estimates; ``note`` says why there is none."""

    name: str
    value: Reals
    error: Reals
    note: str = ""


NO_DIFFERENCES: Final = np.zeros((0, 0))


def first_differences(
    problem: Problem, found: Subject, along: Sequence[Directions] | None, complex_steps: bool
) -> Differences:
    """The Jacobian, or its products with the inward directions; by complex steps where they may be used."""
    directions = list(np.eye(problem.inputs)) if along is None else [inward for inward, _ in along]
    if any(operation.op.name == STOPPED for operation in found.raw.walk()):
        return with_stopped(problem, found, directions, 1, along)
    if complex_steps and problem.holomorphic:
        columns = [complex_step(problem, direction) for direction in directions]
        return stacked("complex steps", columns)
    terms = sizes(problem, found)
    return stacked("differences", [ridders(problem, problem.value, direction, terms) for direction in directions])


def sizes(problem: Problem, found: Subject) -> Any:
    """Per number that the function returns the largest of its leaf: what its rounding errors may come from."""
    value = problem.value(problem.point)
    terms = np.zeros(value.shape)
    for part in found.outputs:
        terms[part.start : part.stop] = largest(value[part.start : part.stop])
    return terms


def second_differences(problem: Problem, found: Subject, along: Sequence[Directions] | None) -> Differences:
    """Differences of forward-mode derivatives: the second derivatives, or their products with two equal directions."""
    stopped = any(operation.op.name == STOPPED for operation in found.raw.walk())
    if stopped:
        directions = list(np.eye(problem.inputs)) if along is None else [inward for inward, _ in along]
        return with_stopped(problem, found, directions, 2, along)
    with chosen_backend("numpy"):
        if along is None:
            lower = lower_matrix(problem, ("fwd",))
            columns = [ridders(problem, lower, direction, problem.magnitude) for direction in np.eye(problem.inputs)]
        else:
            columns = []
            for inward, outward in along:

                def vector(point: Reals, inward: Reals = inward, outward: Reals = outward) -> Reals:
                    return problem.along(("fwd",), point, False, inward, outward)

                columns.append(ridders(problem, vector, inward, problem.magnitude))
    return stacked("differences", columns)


def stacked(name: str, columns: Sequence[Difference]) -> Differences:
    return Differences(
        name,
        np.stack([column.value for column in columns], axis=1),
        np.stack([column.error for column in columns], axis=1),
    )


# --- functions that stop gradients ---------------------------------------------------------------


def with_stopped(
    problem: Problem, found: Subject, directions: Sequence[Reals], order: int, along: Sequence[Directions] | None
) -> Differences:
    """Differences of the traced program in which what ``stop_gradient`` was given keeps the value it has here."""
    name = "differences, stopped values held"
    if any(part.dtype.char not in "dD" for part in problem.parts):
        return Differences(name, NO_DIFFERENCES, NO_DIFFERENCES, "only in double precision")
    held = hold_stopped(flatten_calls(found.raw), found.arguments)
    columns = []
    for k, direction in enumerate(directions):
        if order == 1:
            columns.append(ridders(problem, evaluated(found, held, []), direction, 0.0))
        elif along is None:
            lower = evaluated(found, matrix(held, found.active, ("fwd",)), None)
            columns.append(ridders(problem, lower, direction, problem.magnitude))
        else:
            extra = directions_of(found, ("fwd",), along[k])
            lower = evaluated(found, product(held, found.active, ("fwd",)), extra)
            columns.append(ridders(problem, lower, direction, problem.magnitude))
    return stacked(name, columns)


def evaluated(found: Subject, function: Function, extra: Sequence[Any] | None) -> Callable[[Reals], Reals]:
    """A program as a function of the vector of all inputs; its results are a matrix if ``extra`` is None."""

    def value(vector: Reals) -> Reals:
        parts = iter(divided(vector, found.inputs, True))
        given = [next(parts) if flag else old for old, flag in zip(found.arguments, found.active, strict=True)]
        results = evaluate(function, [*given, *(extra or ())])
        return joined(results) if extra is not None else assemble(results, found.inputs, 1).ravel()

    return value


def hold_stopped(function: Function, arguments: Sequence[Any]) -> Function:
    """The program with results of ``stop_gradient`` replaced by the numbers they are at these arguments."""
    known = {step.operation: step.results for step in run(function, arguments)}
    builder = Builder()
    env: dict[Value, Value] = {param: builder.param(param.type, param.name) for param in function.params}
    for operation in function.operations:
        if operation.op.name == STOPPED and operation in known:
            results: Sequence[Value] = [
                literal(number, value.type) for number, value in zip(known[operation], operation.results, strict=True)
            ]
        else:
            operands = [value if isinstance(value, Literal) else env[value] for value in operation.operands]
            results = builder.emit_operation(operation.op, operands, operation.attrs, operation.regions).results
        env.update(zip(operation.results, results, strict=True))
    return builder.function(
        function.name, [value if isinstance(value, Literal) else env[value] for value in function.results]
    )
