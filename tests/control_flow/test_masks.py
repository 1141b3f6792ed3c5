"""What masks select is one program whatever the mask is: all elements are computed, and those that it selects count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.sliced import BACKENDS, check


def sums(x: Any) -> Any:
    y = x[x > 0]
    return np.array([y.sum(), y.mean(), y.std(), y.max() - y.min(), y @ y, np.prod(y), np.linalg.norm(y), len(y)])


def rewritten(x: Any) -> Any:
    x = x.copy()
    x[x > 0] = x[x > 0] ** -1.5
    x[np.abs(x) < 0.5] *= x[np.abs(x) < 0.5]
    return x


def from_another(x: Any) -> Any:
    near, y = np.abs(x) < 1, np.zeros_like(x)
    y[near] = np.sqrt(1 - x[near] ** 2) + x[0, 0]
    return y


def rows_and_columns(x: Any) -> Any:
    x = 2 * x
    x[x[:, 1] > 0, 1:] = np.sin(x[x[:, 1] > 0, 1:])
    return x[:, x[0] > -1.0].sum(axis=1) + x[..., x[0] < 0.5].max(axis=1) + x[x[:, 2] > -2.0].mean()


def in_a_loop(x: Any) -> Any:
    path = x.copy()
    for k in range(40):
        better = path[k % 4, 0] + path[0] < path[k % 4]
        path[k % 4, better] = 0.9 * path[k % 4, better] + path[0, better] ** 2
    return path


def own_memory(x: Any) -> Any:
    y = x[x > 0]
    y += 1.0
    z = y.copy()
    z[:] = 2.0 * z + y
    return x * np.sum(z) + y.argmax()


def a_mask_changed_later(x: Any) -> Any:
    mask = x > 0
    y = x[mask]
    mask[0, 0] = ~mask[0, 0]
    return np.sum(y**2) + np.sum(x[mask])


X = np.array([[0.3, -1.2, 0.8, 0.4], [-0.7, 0.6, -0.2, 1.5], [0.9, -0.4, 2.1, -1.6], [-2.2, 0.7, 0.1, -0.9]])
FUNCTIONS = [sums, rewritten, from_another, rows_and_columns, in_a_loop, own_memory, a_mask_changed_later]


@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=[pytest.mark.slow] * (name == "xla")) for name in BACKENDS]
)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_what_a_mask_selects(f: Any, backend: str) -> None:
    x = X.ravel() if f is sums else X
    for point in (x, x[::-1].copy(), x + 0.15):
        check(f, point, backend, 1e-5)
    assert sg.explain(sg.grad(lambda x: np.sum(f(x))))(x)["how it runs"].startswith("One program")


def test_what_is_not_selected_has_no_derivative_whatever_it_is() -> None:
    """As in `np.where`: the square root and its slope are nan where the mask does not hold."""

    def f(x: Any) -> Any:
        y = np.ones_like(x)
        y[x > 0] = np.sqrt(x[x > 0])
        return y.sum() + np.log(x[x > 0]).sum()

    x = np.array([4.0, 0.0, -1.0, np.nan])
    for backend in ("llvm", "numpy"):
        np.testing.assert_array_equal(sg.grad(f, backend=backend)(x), [0.5, 0.0, 0.0, 0.0])
        np.testing.assert_array_equal(sg.jacfwd(f, backend=backend)(x), [0.5, 0.0, 0.0, 0.0])
        np.testing.assert_array_equal(np.diag(sg.hessian(f, backend=backend)(x)), [-3.0 / 32.0, 0.0, 0.0, 0.0])


def test_a_mask_that_selects_nothing() -> None:
    def f(x: Any) -> Any:
        return x[x > 9].sum(), np.prod(x[x > 9]), np.any(x[x > 9] > 0), x[x > 9].size

    assert sg.jit(f)(X) == f(X) == (0.0, 1.0, False, 0)
    with pytest.raises(ValueError, match="zero-size array to reduction operation maximum"):
        sg.jit(lambda x: x[x > 9].max())(X)


def ended_by_break(a: Any, of_each_trip: Any) -> Any:
    """Newton's steps where they are not yet small."""
    x, active = np.ones_like(a), np.full(a.shape, True)
    for _ in range(30):
        of_each_trip = x[active] ** 3 + x[active] - a[active]
        x[active] -= of_each_trip / (3 * x[active] ** 2 + 1)
        active = np.abs(x**3 + x - a) > 1e-9
        if not active.any():
            break
    return np.sum(x)


def ended_by_its_test(a: Any, of_each_trip: Any) -> Any:
    x, active = np.ones_like(a), np.full(a.shape, True)
    while active.any():
        of_each_trip = x[active] ** 3 + x[active] - a[active]
        x[active] -= of_each_trip / (3 * x[active] ** 2 + 1)
        active = np.abs(x**3 + x - a) > 1e-9
    return np.sum(x)


def chosen(a: Any, _: Any) -> Any:
    x = np.ones_like(a)
    for _ in range(30):
        f = x**3 + x - a
        x = np.where(np.abs(f) > 1e-9, x - f / (3 * x**2 + 1), x)
    return np.sum(x)


@pytest.mark.parametrize("f", [ended_by_break, ended_by_its_test])
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_what_a_mask_selects_is_of_one_trip_of_a_loop_that_ends_early(f: Any, backend: str) -> None:
    """However often the loop runs, in one program: a variable is set anew in each trip, whatever it was before."""
    slope = sg.grad(f, backend=backend)
    for a in (np.array([0.5, 9.0, -2.0]), np.array([3.0, 3.0, 1e6])):
        np.testing.assert_allclose(slope(a, np.zeros(3)), sg.grad(chosen)(a, None), rtol=1e-12)
        assert sg.explain(slope)(a, np.zeros(3))["how it runs"].startswith("One program")
        np.testing.assert_array_equal(slope(a, None), slope(a, np.zeros(3)))
    found = sg.hessian(f, backend=backend)(a, np.zeros(3))
    np.testing.assert_allclose(found, sg.hessian(chosen)(a, None), rtol=1e-11)


@pytest.mark.parametrize("later", [True, False])
def test_what_another_trip_selected_is_read(later: bool) -> None:
    """After the loop or in the trip behind: by a program for the path."""

    def f(x: Any) -> Any:
        y, found = np.zeros(3), 0.0
        for k in range(4):
            if not later:
                found = found + y.sum()
            y = x[x > k] ** 2
            x = 1.1 * x
            if x[0] > 4.0:
                break
        return found + y.sum()

    for x in (np.array([3.0, 1.0, 2.0]), np.array([2.0, 1.0, 4.0])):
        assert f(x) == sg.jit(f)(x)
        steps = 1e-6 * np.eye(3)
        numbers = [(f(x + step) - f(x - step)) / 2e-6 for step in steps]
        np.testing.assert_allclose(sg.grad(f)(x), numbers, rtol=1e-6, atol=1e-8)


def test_elements_of_different_masks_do_not_meet() -> None:
    """As many as the other mask selects in this call: a program for the path, and NumPy's error in the next call."""

    def f(x: Any) -> Any:
        return np.sum(x[x > 0] * x[x < 0])

    x = np.array([1.0, 2.0, 5.0, -3.0, -4.0, -6.0])
    np.testing.assert_array_equal(sg.grad(f)(x), [-3.0, -4.0, -6.0, 1.0, 2.0, 5.0])
    with pytest.raises(ValueError, match="broadcast"):
        sg.grad(f)(np.array([1.0, 2.0, 3.0, 5.0, -4.0, -6.0]))


def test_a_mask_of_another_shape_is_numpys_error() -> None:
    with pytest.raises(IndexError, match="boolean index"):
        sg.jit(lambda x: x[x[0] > 0, 0])(np.ones((3, 4)))


def total(x: Any) -> Any:
    return np.sum(x**2)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(sg.grad(total)(x[x > 0])),
        lambda x: np.sum(sg.vmap(np.sin)(x[x > 0])),
        lambda x: sg.checkpoint(total)(x[x > 0]),
        lambda x: [np.median(x[x > 0]), print(x[x > 0])][0],
        lambda x: np.sum({"kept": x[x > 0]}["kept"]),
        lambda x: np.sum(np.outer(x, x)[np.ix_(x > 0, x < 1)]),
    ],
)
def test_what_a_mask_selects_is_handed_on(f: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """To other transforms, texts and containers; where its size counts it is that of the path."""
    for x in (np.array([0.3, -1.2, 0.8, 1.4]), np.array([-0.3, 1.2, -0.8, 1.4])):
        capsys.readouterr()
        found = sg.jit(f)(x)
        printed = capsys.readouterr().out
        np.testing.assert_allclose(found, f(x), rtol=1e-12)
        assert printed == capsys.readouterr().out
        step = 1e-6 * np.arange(1.0, 5.0)
        difference = (f(x + step) - f(x - step)) / 2e-6
        np.testing.assert_allclose(sg.grad(f)(x) @ np.arange(1.0, 5.0), difference, rtol=1e-6, atol=1e-8)


def test_a_mapped_function_may_select() -> None:
    f = sg.vmap(sg.grad(lambda x: np.sum(x[x > 0] ** 2)))
    np.testing.assert_array_equal(f(X), 2 * X * (X > 0))
    assert sg.explain(f)(X)["how it runs"].startswith("One program")
