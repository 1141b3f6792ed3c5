"""``sliding_window_view`` and ``as_strided`` are views: what is written into their base is seen through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import srcgrad as sg
from srcgrad.errors import MutationError
from srcgrad.lowering import lower

X = np.array([0.7, -0.4, 1.2, 0.5, 0.9, -1.1])


def windows_of_a_scaled_base(x: Any) -> Any:
    z = x.copy()
    v = sliding_window_view(z, 2)
    z *= 2.0
    return v[:, 0] * v[:, 1]


def strided_over_an_overwritten_base(x: Any) -> Any:
    z = x.copy()
    v = as_strided(z, (3, 2), (16, 8))
    before = v.sum()
    z[1] = z[0] ** 2
    return v * before


def strided_over_a_reversed_base(x: Any) -> Any:
    z = x.reshape(2, 3).T.copy()[::-1]
    v = as_strided(z, (2, 2, 2), (-16, -16, 8))
    z[1, 0] *= 3.0
    return v * v


def a_part_of_the_windows_keeps_seeing(x: Any) -> Any:
    z = x.copy()
    part = sliding_window_view(z, (2,))[1:3].T
    z[2] = np.sin(z[0])
    return part * x[:2, None]


def two_axes(x: Any) -> Any:
    z = x.reshape(2, 3) * 1.0
    v = sliding_window_view(z, (2, 2))
    z[0] = z[1] * x[:3]
    return v.sum(axis=(2, 3)) * v[0, :, 1, 1]


def no_axes(x: Any) -> Any:
    z = x.copy()
    v = sliding_window_view(z, (), axis=())
    z *= x
    return v


def windows_in_a_loop(x: Any) -> Any:
    v = sliding_window_view(x, 3)
    total = 0.0
    for k in range(len(v)):
        total += np.sin(v[k] @ v[k])
    return total


def base_written_in_a_loop(x: Any) -> Any:
    z = x.copy()
    v = sliding_window_view(z, 2)
    total = 0.0
    for k in range(len(v)):
        z[k + 1] = z[k + 1] * v[k].sum()
        total += v[k, 0] * v[k, 1]
    return total + v.sum()


def base_written_in_a_branch(x: Any) -> Any:
    z = x.copy()
    v = as_strided(z, (5, 2), (8, 8))
    first = v[0].sum()
    if x[0] > 0.5:
        z[3] = x[0] ** 3
        first = first * v[3, 0]
    return v.sum(axis=1) * first


def view_chosen_by_a_branch(x: Any) -> Any:
    z = x.copy()
    v = sliding_window_view(z, 2)
    if x[0] > 0.5:
        v = sliding_window_view(x[1:] * 2, 1)[:, [0, 0]]
    return v[0] * x[0]


def windows_of_windows(x: Any) -> Any:
    z = x.copy()
    v = sliding_window_view(sliding_window_view(z, 3), 2, axis=1)
    z[1:] += z[:-1]
    return v.sum(axis=-1)


def a_loop_that_is_unrolled(x: Any) -> Any:
    z = x.copy()
    v = sliding_window_view(z, 2)
    parts = []
    for k in range(4):
        z[k] = z[k] * 2.0
        parts.append(v[k : k + 2].sum(axis=0)[: 1 + k % 2])
    return np.concatenate(parts)


def a_long_loop_that_is_unrolled(x: Any) -> Any:
    """It is tried as one region first, and what that gathered is taken back."""
    z = np.tile(x, 8)
    v = sliding_window_view(z, 2)
    total = 0.0
    for k in range(40):
        total = total + np.sin(v[k].sum()) * np.diag(z[: k + 1])[k, k]
    return total


PROGRAMS: list[Callable[[Any], Any]] = [
    windows_of_a_scaled_base,
    strided_over_an_overwritten_base,
    strided_over_a_reversed_base,
    a_part_of_the_windows_keeps_seeing,
    two_axes,
    no_axes,
    windows_in_a_loop,
    base_written_in_a_loop,
    base_written_in_a_branch,
    view_chosen_by_a_branch,
    windows_of_windows,
    a_loop_that_is_unrolled,
    a_long_loop_that_is_unrolled,
]


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_derivatives(f: Callable[[Any], Any], backend: str) -> None:
    def total(x: Any) -> Any:
        found = f(x)
        return np.sum(np.cos(np.arange(np.size(found)).reshape(np.shape(found))) * found)

    np.testing.assert_allclose(sg.jit(f, backend=backend)(X), f(X), rtol=1e-12, atol=1e-14)
    step = 1e-6 * np.eye(len(X))
    slope = np.array([(total(X + e) - total(X - e)) / 2e-6 for e in step])
    gradient = sg.grad(total, backend=backend)
    np.testing.assert_allclose(gradient(X), slope, rtol=1e-6, atol=1e-8)
    pushed = [sg.jvp(total, (X,), (e,), backend=backend)[1] for e in np.eye(len(X))]
    np.testing.assert_allclose(pushed, gradient(X), rtol=1e-9)
    second = np.array([(gradient(X + e) - gradient(X - e)) / 2e-6 for e in step])
    np.testing.assert_allclose(sg.hessian(total, backend=backend)(X), second, rtol=1e-5, atol=1e-7)


def test_a_loop_over_windows_gathers_once() -> None:
    """Before the loop: a gather of all windows in each trip would cost the square of their number."""
    program = lower(sg.jit(windows_in_a_loop), (np.ones(400),), {}).traced
    whole = [operation for operation in program.walk() if operation.results[0].type.shape == (398, 3)]
    assert [operation.op.name for operation in whole] == ["gather"]
    assert whole[0] in program.operations


def test_the_long_loop_is_unrolled() -> None:
    assert "unrolled" in sg.explain(sg.jit(a_long_loop_that_is_unrolled))(X)["how it runs"]


@pytest.mark.parametrize("write", [lambda v: v.fill(1.0), lambda v: v[0].__setitem__(1, 2.0)])
def test_they_are_not_written_through(write: Callable[[Any], Any]) -> None:
    for view in (lambda z: sliding_window_view(z, 2), lambda z: as_strided(z, (3, 2), (8, 8))):
        with pytest.raises(MutationError):
            sg.grad(lambda x, view=view: write(view(x * 1.0)) or x.sum())(X)


def test_they_share_memory_with_their_base() -> None:
    def f(x: Any) -> Any:
        v = sliding_window_view(x, 2)
        return np.shares_memory(v, x), np.shares_memory(v[:2], x[3:]), np.shares_memory(v[:2].copy(), x)

    assert sg.jit(f)(X) == f(X) == (True, False, False)


CUBE = np.cos(np.arange(9.0 * 8 * 7) ** 1.5).reshape(9, 8, 7)
SLICED: dict[str, Callable[[Any], Any]] = {
    "every second": lambda x: sliding_window_view(x, 3, axis=1)[:, ::2],
    "along two axes": lambda x: sliding_window_view(x, (3, 2), axis=(0, 2))[1:, :, ::3, 1:, 0:1],
    "twice along one": lambda x: sliding_window_view(x, (2, 2), axis=(0, 0))[::2],
    "of the last, and other axes": lambda x: sliding_window_view(x, 4, axis=-1)[2:5, 1::3, 0:2, 1:3],
    "along all": lambda x: sliding_window_view(x, (2, 3, 2))[::2, ::2, ::2],
    "backwards": lambda x: sliding_window_view(x, 3, axis=1)[:, ::-2],
    "one": lambda x: sliding_window_view(x, 3, axis=0)[2],
    "one place": lambda x: sliding_window_view(x, 3, axis=0)[..., 1],
    "none": lambda x: sliding_window_view(x, 3, axis=1)[:, 5:2],
    "twice": lambda x: sliding_window_view(x, 3, axis=1)[1:5][:, 1:3],
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", SLICED)
def test_a_slice_of_windows_gathers_no_others(name: str, backend: str) -> None:
    program = SLICED[name]
    np.testing.assert_array_equal(sg.jit(program, backend=backend)(CUBE), program(CUBE))

    def loss(x: Any) -> Any:
        return np.sum(program(x) ** 3)

    step = np.sin(np.arange(CUBE.size)).reshape(CUBE.shape)
    slope = np.sum(sg.grad(loss, backend=backend)(CUBE) * step)
    np.testing.assert_allclose(slope, (loss(CUBE + 1e-6 * step) - loss(CUBE - 1e-6 * step)) / 2e-6, rtol=1e-6)


def test_windows_that_are_far_apart_take_the_memory_of_those_alone() -> None:
    """All windows would take 400 GB."""
    size = 10_000_000
    spread = sg.jit(lambda x: np.sum(sliding_window_view(x, 5000)[::5000] ** 2))
    np.testing.assert_allclose(spread(np.ones(size)), size)
