"""Random programs with views, writes and nested control flow: NumPy's values, derivatives equal to differences."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.random_programs import point, program

SEEDS = range(40)
ALIASING = "may or may not share, depending on a traced condition"


@pytest.mark.parametrize("seed", SEEDS)
def test_random_program(seed: int) -> None:
    text, function = program(seed)
    x = point(seed)
    slope = sg.value_and_grad(function)
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        value, found = slope(x.copy())
        for other in (x, *(point(7 * seed + k) for k in range(1, 4))):
            np.testing.assert_allclose(slope(other.copy())[0], function(other.copy()), rtol=1e-9, err_msg=text)
    assert all(ALIASING in str(entry.message) for entry in caught), [str(entry.message) for entry in caught]
    np.testing.assert_allclose(value, function(x.copy()), rtol=1e-9)
    one, other = (differences(function, x, step) for step in (1e-6, 2.5e-7))
    scale = 1.0 + np.max(np.abs(other))
    if np.max(np.abs(one - other)) < 1e-4 * scale:  # no kink in between
        np.testing.assert_allclose(found, other, rtol=2e-4, atol=1e-5 * scale, err_msg=text)


def differences(function: Any, x: Any, step: float) -> Any:
    moves = step * np.eye(len(x))
    return np.array([(function(x + move) - function(x - move)) / (2 * step) for move in moves])
