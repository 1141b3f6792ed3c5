"""Functions of matrices in branches, and vectors that are turned in place where the determinant asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.hard_points.spectra import (  # noqa: F401  the fixtures work where they are imported
    RANDOM,
    B,
    Function,
    H,
    K,
    X,
    close,
    la,
    on_numpy,
    same_numbers,
)
from tests.hard_points.test_spectra_spellings import check_spelling, passes


def clipped(a: Any) -> Any:
    w, v = la.eigh(a)
    if np.any(w < 0):
        w = np.maximum(w, 0.0)
    return (v * np.sqrt(w)) @ v.T


def one_of_two(a: Any) -> Any:
    w, v = la.eigh(a)
    if w[0] > 0:
        return (v * np.sqrt(w)) @ v.T
    return (v * np.exp(w)) @ v.T


def logarithm_or_nothing(a: Any) -> Any:
    w = la.eigvalsh(a)
    if w[0] > 0:
        return np.sum(np.log(w))
    return -np.inf * np.sum(w)


def one_of_three(a: Any) -> Any:
    w, v = la.eigh(a)
    c = v.T @ X
    if w[0] > 10:
        return v @ (c / w)
    elif w[0] > 0.5:
        return v @ (c * np.sin(w))
    return v @ (c * w)


BRANCHES: dict[str, Function] = {f.__name__: f for f in (clipped, one_of_two, logarithm_or_nothing, one_of_three)}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches(name: str) -> None:
    assert "spectral" in passes(BRANCHES[name], B)
    check_spelling(BRANCHES[name], B, H, K)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_branch_has_the_slope_of_the_root(backend: str) -> None:
    """At the unit matrix it was 0 beside the diagonal."""
    for f in (clipped, one_of_two):
        close(f(np.eye(3)), sg.jit(f, backend=backend)(np.eye(3)), 1e-14)
        close(sg.jvp(f, (np.eye(3),), (H,), backend=backend)[1], H / 2, 1e-14)
    close(sg.grad(lambda a: np.sum(one_of_two(a)), backend=backend)(-np.eye(3)), np.exp(-1.0) * np.ones((3, 3)), 1e-14)


def of_a_rotation(a: Any) -> Any:
    u, _, vt = la.svd(a)
    r = vt.T @ u.T
    if la.det(r) < 0:
        vt[2, :] *= -1
        r = vt.T @ u.T
    return r


def by_the_last_column(a: Any) -> Any:
    u, _, vt = la.svd(a)
    if la.det(u) * la.det(vt) < 0:
        u[:, -1] = -u[:, -1]
    return u @ vt


def by_a_diagonal_matrix(a: Any) -> Any:
    u, _, vt = la.svd(a)
    d = np.eye(3)
    d[2, 2] = np.sign(la.det(vt.T @ u.T))
    return vt.T @ d @ u.T


def with_values(a: Any) -> Any:
    u, s, vt = la.svd(a)
    if la.det(u @ vt) < 0:
        s[-1] = -s[-1]
        vt[-1] = -vt[-1]
    return np.concatenate([[np.sum(s)], ((vt.T * np.abs(s)) @ u.T).ravel()])


def by_the_determinant(a: Any) -> Any:
    u, _, vt = la.svd(a)
    return u @ np.diag([1.0, 1.0, la.det(u @ vt)]) @ vt


def by_determinants(a: Any) -> Any:
    u, _, vt = la.svd(a)
    return (vt.T * np.array([1.0, 1.0, la.det(vt.T) * la.det(u)])) @ u.T


def by_constants(a: Any) -> Any:
    u, _, vt = la.svd(a)
    return vt.T @ u.T if la.det(vt.T @ u.T) > 0 else (vt.T * np.array([1, 1, -1.0])) @ u.T


ROTATIONS: list[Callable[[Any], Any]] = [
    of_a_rotation, by_the_last_column, by_a_diagonal_matrix, with_values, by_the_determinant, by_determinants,
    by_constants,
]  # fmt: skip


@pytest.mark.parametrize("f", ROTATIONS)
@pytest.mark.parametrize("sign", [1, -1])
def test_the_nearest_rotation(f: Callable[[Any], Any], sign: int) -> None:
    """Of two equal singular values, and a smaller one: it is smooth there with either sign of the determinant."""
    u, _, vt = la.svd(RANDOM.normal(size=(3, 3)))
    a, (h, k) = sign * (u * [1.5, 1.5, 0.75]) @ vt, RANDOM.normal(size=(2, 3, 3))
    close(f(a), sg.jit(f)(a), 1e-13)
    check_spelling(f, a, h, k)


def test_the_determinant_of_other_vectors_has_a_derivative() -> None:
    """Of complex vectors it is a phase, of some with numbers it is their product."""

    def scaled(a: Any) -> Any:
        w, v = la.eigh(a)
        return la.det(v * w) * la.det(v)

    a = np.diag([1.0, 2.0, 4.0])
    close(sg.grad(scaled)(a), np.diag([8.0, 4.0, 2.0]), 1e-13)

    def polar(a: Any) -> Any:
        u, _, vh = la.svd(a)
        return np.angle(la.det(u @ vh))

    z, h = 2 * np.eye(2) + 0j, np.array([[1j, 0], [0, 2j]])
    close(sg.jvp(polar, (z,), (h,))[1], 1.5, 1e-14)


def other_part(w: Any, v: Any) -> Any:
    v[:, 0] = 2 * v[:, 1]
    return (v * w) @ v.T


def a_row(w: Any, v: Any) -> Any:
    v[0] *= -3.0
    return (v * w) @ v.T


def part_of_a_column(w: Any, v: Any) -> Any:
    v[:2, 0] *= -3.0
    return (v * w) @ v.T


def numbers(w: Any, v: Any) -> Any:
    v[:, 0] *= np.arange(3.0)
    return (v * w) @ v.T


def beside_the_diagonal(w: Any, v: Any) -> Any:
    d = np.eye(3)
    d[0, 1] = 5.0 * w[0]
    return v @ d @ v.T


def a_failing_branch(w: Any, v: Any) -> Any:
    if w[0] > 0:
        return (v * w) @ v.T
    return la.cholesky(-np.eye(3) + 0 * v)


LEFT_ALONE: list[Callable[[Any, Any], Any]] = [
    other_part, a_row, part_of_a_column, numbers, beside_the_diagonal, a_failing_branch
]  # fmt: skip


@pytest.mark.parametrize("f", LEFT_ALONE)
def test_what_is_written_otherwise_keeps_its_derivatives(f: Callable[[Any, Any], Any]) -> None:
    a = (lambda q: (q * [1.0, 2.0, 4.0]) @ q.T)(la.qr(RANDOM.normal(size=(3, 3)))[0])

    def g(x: Any) -> Any:
        return f(*la.eigh((x + x.T) / 2))

    close(g(a), sg.jit(g)(a), 1e-13)
    check_spelling(g, a, H, K)
