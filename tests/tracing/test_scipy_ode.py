"""``scipy.integrate.solve_ivp`` and ``odeint`` on traced values: SciPy's own steps, and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import srcgrad as sg
from srcgrad.errors import UnsupportedError
from srcgrad.tracing.conversion import recorded
from srcgrad.tracing.functions import scipy_ode

P = np.array([1.2, 0.8, 1.1, 0.9])
TIMES = np.linspace(0.0, 3.0, 7)


def predators(t: Any, z: Any, a: Any, b: Any) -> Any:
    return [a * z[0] - b * z[0] * z[1], -z[1] + 0.5 * z[0] * z[1]]


def evaluated(p: Any) -> Any:
    return scipy.integrate.solve_ivp(
        predators, (0.0, 3.0), p[:2], args=(p[2], p[3]), t_eval=TIMES, rtol=1e-8, atol=1e-10
    ).y


def of_low_order(p: Any) -> Any:
    times = np.linspace(0.5, 2.5, 7)
    found = scipy.integrate.solve_ivp(
        predators, (0.0, 3.0), p[:2], "RK23", times, args=(p[2], p[3]), rtol=1e-9, atol=1e-10
    )
    return found.y * found.t


def backwards(p: Any) -> Any:
    return scipy.integrate.solve_ivp(
        lambda t, y: -p[0] * y * np.cos(t), (2.0, 0.0), [1.0, p[1]], t_eval=[1.5, 0.5, 0.0], rtol=1e-7, first_step=0.01
    ).y


def until_a_traced_end(p: Any) -> Any:
    return scipy.integrate.solve_ivp(predators, (0.0, 3.0 * p[3]), p[:2], args=(p[2], 1.0), rtol=1e-8, atol=1e-10).y[
        :, -1
    ]


def with_branches(p: Any) -> Any:
    def fall(t: Any, y: Any) -> Any:
        return np.array([y[1], -9.81 - p[2] * y[1] * abs(y[1]) if y[1] < 0 else -9.81])

    found = scipy.integrate.solve_ivp(fall, (0.0, 1.0), p[:2], t_eval=[0.5, 1.0], max_step=0.01, rtol=1e-9, atol=1e-9)
    return found.y


STEPS = [evaluated, of_low_order, backwards, until_a_traced_end, with_branches]


def decay(p: Any) -> Any:
    return scipy.integrate.odeint(lambda y, t, k: -k * y + np.sin(t), p[:2], np.linspace(0, 2, 5), args=(p[2],))


def time_first(p: Any) -> Any:
    return scipy.integrate.odeint(predators, p[:2], TIMES, args=(p[2], p[3]), tfirst=True)


def at_traced_times(p: Any) -> Any:
    return scipy.integrate.odeint(lambda y, t: -p[0] * y, 1.0, np.linspace(1, 0, 4) ** p[1])


def differences(f: Any) -> Any:
    steps = 1e-4 * np.eye(4)
    return np.stack([(8 * (f(P + e) - f(P - e)) - (f(P + 2 * e) - f(P - 2 * e))) / 12e-4 for e in steps], axis=-1)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("f", STEPS)
def test_the_steps_are_scipys(f: Any, backend: str) -> None:
    np.testing.assert_allclose(sg.jit(f, backend=backend)(P), f(P), rtol=1e-12)
    np.testing.assert_allclose(sg.jacrev(f, backend=backend)(P), differences(f), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        sg.jacfwd(f, backend=backend)(P), sg.jacrev(f, backend=backend)(P), rtol=1e-10, atol=1e-12
    )


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("f", [decay, time_first, at_traced_times])
def test_odeint_is_within_its_tolerances(f: Any) -> None:
    np.testing.assert_allclose(sg.jit(f, strict=True)(P), f(P), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(sg.jacrev(f)(P), differences(sg.jit(f)), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(sg.jacfwd(f)(P), sg.jacrev(f)(P), rtol=1e-9, atol=1e-12)


def test_second_derivatives_follow_the_steps() -> None:
    """The exponential solves y' = k y, whose second derivative in k at time 1 is itself."""

    def grown(k: float) -> Any:
        return scipy.integrate.odeint(lambda y, t: k * y, 1.0, [0.0, 1.0])[1, 0]

    np.testing.assert_allclose(sg.grad(sg.grad(grown))(0.3), np.exp(0.3), rtol=1e-7)


def test_with_places_it_is_one_program() -> None:
    assert sg.explain(sg.grad(lambda p: np.sum(evaluated(p))))(P)["how it runs"].startswith("One program")


def swung(p: Any, **options: Any) -> Any:
    return scipy.integrate.solve_ivp(predators, (0.0, 0.4 * p[3]), p[:2], args=(p[2], p[3]), **options)


def over_time(p: Any) -> Any:
    found = swung(p)
    by_rows = np.trapezoid(found.y.T, found.t, axis=0)
    everywhere = np.trapezoid(found.y.T, found.t[:, None] * np.ones(2), axis=0)
    return np.trapezoid(found.y, found.t) @ (by_rows + everywhere) + np.trapezoid(found.y[0] ** 2, dx=p[3])


def between_steps(p: Any) -> Any:
    found = swung(p)
    prey, hunters = found.y
    return np.interp(0.2, found.t, prey) * len(found.y) + np.sum(np.diff(found.t) * hunters[1:]) / len(found.t)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize(
    "f",
    [
        lambda p: swung(p).y[:, -1] @ p[:2],
        lambda p: np.sum(swung(p, method="RK23").y ** 2) + swung(p).t.size * p[0],
        lambda p: swung(p).y[0].max() - np.mean(swung(p).y),
        over_time,
        between_steps,
    ],
    ids=["last", "sums", "extremes", "integrals", "places"],
)
def test_without_places_it_is_one_program_with_the_derivatives_of_the_steps(
    f: Any, backend: str, monkeypatch: Any
) -> None:
    """Programs for the path of a call, in which the number of steps is known, have the same."""
    value, slope = sg.value_and_grad(f, backend=backend)(P)
    assert sg.explain(sg.grad(f, backend=backend))(P)["how it runs"].startswith("One program")
    np.testing.assert_allclose(value, f(P), rtol=1e-12)
    np.testing.assert_allclose(sg.jacfwd(f, backend=backend)(P), slope, rtol=1e-10, atol=1e-12)
    monkeypatch.setattr(scipy_ode, "may_trust", lambda trace: False)
    np.testing.assert_allclose(sg.grad(lambda p: 1.0 * f(p), backend=backend)(P), slope, rtol=1e-9, atol=1e-12)


def test_calls_with_more_steps_than_there_is_room_for_have_paths(monkeypatch: Any) -> None:
    monkeypatch.setattr(recorded, "ROOM", 8)
    monkeypatch.setattr(recorded, "LEAST_ROOM", 1)

    def stepped(p: Any) -> Any:
        found = scipy.integrate.solve_ivp(predators, (0.0, p[3]), p[:2], args=(p[2], 1.0), max_step=0.1)
        return found.y[0, -1] * found.t[-1]

    slope = sg.value_and_grad(stepped)
    for end in (0.3, 0.75, 0.85, 1.15, 0.5):  # the third takes one step too many
        p = np.array([1.2, 0.8, 1.1, end])
        value, found = slope(p)
        steps = 1e-4 * np.eye(4)
        np.testing.assert_allclose(value, stepped(p), rtol=1e-12)
        np.testing.assert_allclose(found, [(stepped(p + e) - stepped(p - e)) / 2e-4 for e in steps], rtol=1e-5)
    assert "fewer than 8" in sg.explain(slope)(p)["how it runs"]


def test_slopes_that_print_do_so_once(capsys: Any) -> None:
    """A program that finds too late that its room is not enough would print again."""

    def f(p: Any) -> Any:
        def slope(t: Any, y: Any) -> Any:
            print("*", end="")
            return -p * y

        return scipy.integrate.solve_ivp(slope, (0.0, 0.3), [1.0]).y[0, -1]

    f(2.0)
    expected = capsys.readouterr().out
    for _ in range(2):
        np.testing.assert_allclose(sg.grad(f)(2.0), -0.3 * np.exp(-0.6), rtol=1e-3)
        assert capsys.readouterr().out == expected


@pytest.mark.parametrize("options", [{"method": "BDF"}, {"dense_output": True}, {"events": lambda t, y: y[0]}])
def test_what_solve_ivp_does_not_do_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match="solve_ivp"):
        sg.grad(lambda p: np.sum(scipy.integrate.solve_ivp(predators, (0, 1), p[:2], args=(1, 1), **options).y))(P)
