"""Nodes and weights of Gauss's rules in the parameters of their weight functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import srcgrad as sg

RULES: list[tuple[Callable[..., Any], tuple[float, ...]]] = [
    (lambda a, b: sp.roots_jacobi(4, a, b), (0.3, 0.7)),
    (lambda a, b: sp.roots_jacobi(4, a, b), (0.0, 0.0)),  # where SciPy has Legendre's
    (lambda a, b: sp.roots_jacobi(4, a, b, mu=True), (0.3, 0.3)),  # Gegenbauer's
    (lambda a, b: sp.roots_jacobi(5, a, b), (-0.5, -0.5)),  # Chebyshev's
    (lambda a, b: sp.roots_jacobi(3, a, b), (0.3, -0.3)),
    (lambda a, b: sp.roots_jacobi(1, a, b), (0.3, 0.2)),
    (lambda p, q: sp.roots_sh_jacobi(3, p, q, True), (2.0, 1.5)),
    (lambda a: sp.roots_gegenbauer(4, a), (1.3,)),
    (lambda a: sp.roots_gegenbauer(3, alpha=a, mu=True), (0.5,)),
    (lambda a: sp.roots_genlaguerre(4, a, True), (0.0,)),
    (lambda a: sp.roots_genlaguerre(1, a), (0.4,)),
]


@pytest.mark.parametrize(("rule", "places"), RULES)
def test_rules_of_gauss_have_derivatives_in_their_parameters(
    rule: Callable[..., Any], places: tuple[float, ...]
) -> None:
    for k in range(len(places)):
        seed = np.eye(len(places))[k]
        values, slopes = sg.jvp(lambda *given: tuple(rule(*given)), places, tuple(seed))
        step = 1e-3 * seed
        for value, slope, expected, above, below in zip(
            values, slopes, rule(*places), rule(*(places + step)), rule(*(places - step)), strict=True
        ):
            np.testing.assert_allclose(value, expected, 1e-13, 1e-15)
            np.testing.assert_allclose(slope, (above - below) / 2e-3, 3e-5, 1e-6)


def test_the_weights_of_chebyshevs_rule_change_with_the_parameter_that_is_0_there() -> None:
    # SciPy's own values beside 0 are not exact enough for differences: the rule is that of Jacobi with a = b = -1/2
    slope = sg.jvp(lambda a: sp.roots_gegenbauer(4, a), (0.0,), (1.0,))[1]
    expected = sg.jvp(lambda a: sp.roots_jacobi(4, a - 0.5, a - 0.5), (0.0,), (1.0,))[1]
    np.testing.assert_allclose(slope, expected, 1e-13, 1e-15)
    assert np.abs(slope[0]).max() > 0.1


def test_rules_of_gauss_integrate_what_they_are_for_and_so_do_their_gradients() -> None:
    def moment(a: Any) -> Any:
        nodes, weights = sp.roots_genlaguerre(2, a)
        return weights @ nodes**3

    # the integral of x**(a + 3) exp(-x)
    assert np.isclose(sg.grad(moment)(0.7), sp.gamma(4.7) * sp.digamma(4.7), 1e-12)
    assert np.isclose(
        sg.grad(sg.grad(moment), backend="numpy")(0.7), sp.gamma(4.7) * (sp.digamma(4.7) ** 2 + sp.polygamma(1, 4.7))
    )


def test_parameters_that_no_rule_of_gauss_has_are_refused() -> None:
    with pytest.raises(ValueError, match="alpha and beta must be greater than -1"):
        sg.grad(lambda a: np.sum(sp.roots_jacobi(3, a, 1.0)[0]))(-1.0)
    with pytest.raises(ValueError, match="n must be a positive integer"):
        sg.grad(lambda a: np.sum(sp.roots_genlaguerre(0, a)[0]))(1.0)
    with pytest.raises(ValueError, match="more than one element"):
        sg.grad(lambda a: np.sum(sp.roots_genlaguerre(2, a)[0]))(np.ones(2))
