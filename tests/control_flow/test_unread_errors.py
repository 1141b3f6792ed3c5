"""Linear algebra whose result nobody reads: its error is Python's all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import srcgrad as sg
from srcgrad.lowering import lower

NEGATIVE, ZERO, REGULAR = -np.eye(2), np.zeros((2, 2)), np.eye(2) + 0.25
Program = Callable[[Any, Any], Any]


def in_a_branch(k: Any, t: Any) -> Any:
    if t > 0:
        np.linalg.cholesky(k)
    return np.sum(k) * t


def in_a_branch_beside_a_value(k: Any, t: Any) -> Any:
    if t > 0:
        np.linalg.inv(k)
        t = t * 2
    return np.sum(k) * t


def in_a_loop(k: Any, t: Any) -> Any:
    for _ in range(3):
        np.linalg.inv(k * t)
        t = t * 2
    return t


def in_a_function(k: Any, t: Any) -> Any:
    def require_definite(k: Any) -> bool:
        np.linalg.cholesky(k)
        return True

    return t * 2 if require_definite(k) else t


def handled(k: Any, t: Any) -> Any:
    try:
        np.linalg.cholesky(k)
    except np.linalg.LinAlgError:
        return t * 5
    return t


PROGRAMS: dict[str, tuple[Program, Any]] = {
    "cholesky": (lambda k, t: (np.linalg.cholesky(k), t)[1], NEGATIVE),
    "inv": (lambda k, t: (np.linalg.inv(k), t)[1], ZERO),
    "solve": (lambda k, t: (np.linalg.solve(k, k[0]), t)[1], ZERO),
    "scipy's solve": (lambda k, t: (scipy.linalg.solve(k, k), t)[1], ZERO),
    "triangle": (lambda k, t: (scipy.linalg.solve_triangular(k, k), t)[1], ZERO),
    "bands": (lambda k, t: (scipy.linalg.solveh_banded(k, np.ones(2)), t)[1], NEGATIVE),
    "cho_factor": (lambda k, t: (scipy.linalg.cho_factor(k), t)[1], NEGATIVE),
    "what has none": (lambda k, t: (np.linalg.pinv(k), t)[1], ZERO),
    "in a branch": (in_a_branch, NEGATIVE),
    "in a branch beside a value": (in_a_branch_beside_a_value, ZERO),
    "in a loop": (in_a_loop, ZERO),
    "in a function": (in_a_function, NEGATIVE),
    "handled": (handled, NEGATIVE),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_nobody_reads_raises_its_error(name: str, backend: str) -> None:
    program, failing = PROGRAMS[name]
    transformed: tuple[Program, ...] = (
        sg.jit(program, backend=backend),
        lambda k, t: sg.value_and_grad(program, 1, backend=backend)(k, t)[0],
        lambda k, t: sg.jvp(program, (k, t), (k, 1.0), backend=backend)[0],
    )
    for call in transformed:
        np.testing.assert_allclose(call(REGULAR, 3.0), program(REGULAR, 3.0))
        try:
            expected = program(failing, 3.0)
        except np.linalg.LinAlgError:
            with pytest.raises(np.linalg.LinAlgError):
                call(failing, 3.0)
        else:
            assert call(failing, 3.0) == expected


def test_what_is_read_is_not_asked_twice() -> None:
    for program in (lambda k: np.linalg.solve(k, k[0]), lambda k: np.linalg.cholesky(k), lambda k: np.linalg.inv(k)[0]):
        found = lower(sg.jit(program), (NEGATIVE,), {})
        assert not any(operation.op.name == "check" for operation in found.traced.walk())


def element(x: Any, k: Any) -> Any:
    x[k]
    return np.sum(x)


def elements(x: Any, k: Any) -> Any:
    x[np.array([0, 1]) * k]
    return np.sum(x)


def taken(x: Any, k: Any) -> Any:
    np.take(x, k)
    return np.sum(x)


def assigned(x: Any, k: Any) -> Any:
    y = np.zeros(3)
    y[k] = x[0]
    return np.sum(x)


def of_a_list(x: Any, k: Any) -> Any:
    [1.0, 2.0, 3.0][k]
    return np.sum(x)


def of_two_axes(x: Any, k: Any) -> Any:
    np.outer(x, x)[1, k]
    return np.sum(x)


def in_a_long_loop(x: Any, k: Any) -> Any:
    for _ in range(40):
        x[k]
        x = x * 0.5
    return np.sum(x)


ELEMENTS = [element, elements, taken, assigned, of_a_list, of_two_axes, in_a_long_loop]


@pytest.mark.parametrize("backend", ["numpy", "llvm", "xla"])
@pytest.mark.parametrize("program", ELEMENTS)
def test_what_nobody_reads_of_an_array_must_be_there(program: Program, backend: str) -> None:
    """Python's ``x[k]`` is an IndexError there, whoever reads the element."""
    x, found = np.ones(3), []
    transformed = sg.grad(lambda x, k: program(x, int(k[0])), backend=backend), sg.jit(program, backend=backend)
    for k in (2, -3, 3, -4):
        for call, place in zip(transformed, (np.array([k]), k), strict=True):
            if -3 <= k < 3:
                call(x, place)
            else:
                with pytest.raises(IndexError):
                    call(x, place)
                found.append(place)
    assert len(found) == 4


def test_what_surely_is_there_is_not_asked_for() -> None:
    def program(x: Any, k: Any) -> Any:
        for i in range(len(x)):
            x[i], x[i - 1], x[k[i] % 40]
            x = x * 0.5
        return np.sum(x)

    found = lower(sg.jit(program), (np.ones(40), np.arange(40)), {})
    assert not any(operation.op.name == "check" for operation in found.traced.walk())
