"""Random programs with views, writes and nested control flow: NumPy's values, derivatives equal to differences."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.random_programs import point, program

SEEDS = range(40)
ALL = 2000
REFUSALS = ("may or may not share", "is set in a for", "in a way that has no one type")
"""What keeps a random program from being one program."""


@pytest.mark.parametrize("seed", SEEDS)
def test_random_program(seed: int) -> None:
    require_agreement(seed)


@pytest.mark.parametrize("seed", range(3, 40, 6))
def test_random_program_on_xla(seed: int) -> None:
    pytest.importorskip("jax")
    text, function = program(seed)
    slope = sg.value_and_grad(function, backend="xla")
    for x in (point(seed), point(7 * seed + 1)):
        value, found = slope(x.copy())
        np.testing.assert_allclose(value, function(x.copy()), rtol=1e-9, err_msg=text)
        np.testing.assert_allclose(found, sg.grad(function, backend="numpy")(x.copy()), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, ALL, 100))
def test_all_random_programs(start: int) -> None:
    """None differs, and at most one in twenty is not one program."""
    rejected = []
    for seed in range(start, start + 100):
        require_agreement(seed)
        try:
            sg.jit(program(seed)[1], strict=True)(point(seed))
        except sg.errors.ArgumentError as error:
            assert any(reason in str(error) for reason in REFUSALS)
            rejected.append(seed)
    assert len(rejected) <= 5
    sg.clear_caches()


def require_agreement(seed: int) -> None:
    text, function = program(seed)
    x = point(seed)
    slope = sg.value_and_grad(function)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error", sg.RetraceWarning)
        value, found = slope(x.copy())
        for other in (x, *(point(7 * seed + k) for k in range(1, 4))):
            np.testing.assert_allclose(slope(other.copy())[0], function(other.copy()), rtol=1e-9, err_msg=text)
        np.testing.assert_allclose(value, function(x.copy()), rtol=1e-9)
        one, other = (differences(function, x, step) for step in (1e-6, 2.5e-7))
    scale = 1.0 + np.max(np.abs(other))
    if np.max(np.abs(one - other)) < 1e-4 * scale:  # no kink in between
        np.testing.assert_allclose(found, other, rtol=2e-4, atol=1e-5 * scale, err_msg=text)


def differences(function: Any, x: Any, step: float) -> Any:
    moves = step * np.eye(len(x))
    return np.array([(function(x + move) - function(x - move)) / (2 * step) for move in moves])
