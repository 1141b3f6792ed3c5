"""Random draws with traced parameters: NumPy's value, and the derivative along the draw."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")

DRAWS: dict[str, tuple[Any, tuple[float, ...]]] = {
    "normal": (lambda rng, a, b: rng.normal(a, b), (0.3, 1.2)),
    "normal of a size": (lambda rng, a, b: rng.normal(a, scale=b, size=(2, 3)).sum(), (0.3, 1.2)),
    "laplace": (lambda rng, a, b: rng.laplace(a, b), (0.3, 1.2)),
    "logistic": (lambda rng, a, b: rng.logistic(a, b), (0.3, 1.2)),
    "gumbel": (lambda rng, a, b: rng.gumbel(a, b), (0.3, 1.2)),
    "uniform": (lambda rng, a, b: rng.uniform(a, b, 4).sum(), (-0.5, 2.0)),
    "uniform of one bound": (lambda rng, a: rng.uniform(high=a), (2.0,)),
    "exponential": (lambda rng, a: rng.exponential(a), (0.7,)),
    "rayleigh": (lambda rng, a: rng.rayleigh(a), (0.7,)),
    "lognormal": (lambda rng, a, b: rng.lognormal(a, b), (0.1, 0.5)),
    "weibull": (lambda rng, a: rng.weibull(a), (1.7,)),
    "pareto": (lambda rng, a: rng.pareto(a), (2.5,)),
    "power": (lambda rng, a: rng.power(a), (2.5,)),
}


@pytest.mark.parametrize("legacy", [False, True], ids=["generator", "global"])
@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_has_numpys_value_and_the_derivative_along_it(name: str, legacy: bool) -> None:
    draw, parameters = DRAWS[name]

    def f(*parameters: float) -> Any:
        return draw(np.random.RandomState(3) if legacy else np.random.default_rng(3), *parameters)

    everywhere = tuple(range(len(parameters)))
    value, gradient = sg.value_and_grad(f, argnums=everywhere)(*parameters)
    np.testing.assert_allclose(value, f(*parameters), rtol=1e-13)
    step = 1e-6
    for k in everywhere:
        above, below = ([p + sign * step * (j == k) for j, p in enumerate(parameters)] for sign in (1, -1))
        np.testing.assert_allclose(gradient[k], (f(*above) - f(*below)) / (2 * step), rtol=1e-6)


def test_a_draw_moves_the_generator_on_as_numpy_does() -> None:
    ours, numpys = np.random.default_rng(5), np.random.default_rng(5)
    sg.grad(lambda mu: ours.normal(mu, 1.0, 3).sum())(0.5)
    numpys.normal(0.5, 1.0, 3)
    assert ours.random() == numpys.random()


def test_a_draw_without_a_pathwise_derivative_says_so() -> None:
    with pytest.raises(UnsupportedError, match="poisson cannot be drawn with traced parameters"):
        sg.grad(lambda x: np.random.default_rng(0).poisson(x) * x)(2.0)


def test_a_seed_that_the_function_sets_is_set_when_the_program_runs() -> None:
    def f(x: float, seed: int) -> Any:
        np.random.seed(seed)
        return x * x * np.random.normal()

    g = sg.value_and_grad(f)
    for seed in (3, 4, 3, 3, 3, 3, 3):
        value, slope = g(1.5, seed)
        after = np.random.normal()
        assert value == pytest.approx(f(1.5, seed), rel=1e-13)
        assert np.random.normal() == after
        assert slope == pytest.approx(2.0 * value / 1.5, rel=1e-13)
    assert "One program" in sg.explain(g)(1.5, 3)["how it runs"]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_items_that_pythons_generators_move_and_choose_may_be_traced() -> None:
    """Each was an internal fault or an error of arguments."""

    def moved(x: Any, rng: Any) -> Any:
        items, kept = list(x), [1.0, 2.0, 3.0]
        rng.shuffle(items)
        rng.shuffle(kept)
        return items[0] * 10 + rng.choice(items) + rng.sample(items, 2)[1] * kept[0] + rng.choices(items, k=3)[2]

    x = np.array([1.0, 2.0, 4.0])
    for transform in (sg.jit, sg.value_and_grad):
        found = transform(lambda x: moved(x, random.Random(3)))(x)
        value = found[0] if isinstance(found, tuple) else found
        assert value == moved(x, random.Random(3))

    def listed(x: Any, rng: Any) -> Any:
        items = list(x)
        rng.shuffle(items)
        return items[0]

    assert sg.jit(lambda x: listed(x, np.random.default_rng(1)))(x) == listed(x, np.random.default_rng(1))
