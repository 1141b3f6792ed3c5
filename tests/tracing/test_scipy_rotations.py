"""``scipy.spatial.transform``: rotations of traced values, and rotations that functions capture."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

import srcgrad as sg
from srcgrad.errors import ArgumentError, UnsupportedError

random = np.random.default_rng(7)
WEIGHTS, PLACES, THREE = random.normal(size=(3, 3)), random.normal(size=(5, 3)), np.array([0.4, -0.7, 1.1])
FOUR, MANY = random.normal(size=4), random.normal(size=(3, 3))
FIXED, STACK = Rotation.from_rotvec([0.3, -0.2, 0.9]), Rotation.from_rotvec(random.normal(size=(4, 3)))
BETWEEN = Slerp([0.0, 1.0, 2.0, 3.0], STACK)
SKEWED = FIXED.as_matrix() @ np.diag([1.2, 0.9, 1.1])

CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "from_rotvec": (lambda v: np.sum(Rotation.from_rotvec(v).as_matrix() * WEIGHTS), THREE),
    "the identity": (lambda v: np.sum(Rotation.from_rotvec(v).as_matrix() * WEIGHTS), np.zeros(3)),
    "there and back at the identity": (lambda v: np.sum(Rotation.from_rotvec(v).as_rotvec() ** 3 + v), np.zeros(3)),
    "there and back": (lambda v: np.sum(Rotation.from_rotvec(v).as_rotvec() * THREE[::-1]), 0.05 * THREE),
    "degrees": (
        lambda v: np.sum(Rotation.from_rotvec(v, degrees=True).as_rotvec(degrees=True) * THREE), 30 * THREE
    ),
    "beyond pi": (lambda v: np.sum(Rotation.from_rotvec(v).as_rotvec() * THREE), 3 * THREE),
    "from_quat": (lambda q: np.sum(Rotation.from_quat(q).apply(PLACES) * PLACES[:, ::-1]), FOUR),
    "scalar_first": (
        lambda q: np.sum(Rotation.from_quat(q, scalar_first=True).as_quat(scalar_first=True) * FOUR[::-1]), FOUR
    ),
    "canonical": (lambda q: np.sum(Rotation(q).as_quat(canonical=True) * FOUR[::-1]), -FOUR),
    "extrinsic": (lambda v: np.sum(Rotation.from_euler("xyz", v).as_matrix() * WEIGHTS), THREE),
    "intrinsic": (lambda v: np.sum(Rotation.from_euler("ZYX", v, degrees=True).as_matrix() * WEIGHTS), 30 * THREE),
    "one axis": (lambda v: np.sum(Rotation.from_euler("z", v[0]).apply([1.0, 2.0, 3.0]) * v), THREE),
    "two axes": (lambda v: np.sum(Rotation.from_euler("zx", v[:2]).as_matrix() * WEIGHTS), THREE),
    **{
        f"as_euler {seq}": (
            lambda v, seq=seq: np.sum(Rotation.from_rotvec(v).as_euler(seq, degrees=seq[0] == "Z") * THREE),
            sign * THREE,
        )
        for seq, sign in (("xyz", 1.0), ("ZXZ", 1.0), ("yxz", -1.0), ("YXZ", -1.0), ("zyz", 0.5))
    },
    "mrp": (lambda v: np.sum(Rotation.from_mrp(v).as_mrp() * THREE[::-1]), 2 * THREE),
    "products": (
        lambda v: np.sum((FIXED * Rotation.from_rotvec(v) * Rotation.from_euler("x", v[1])).as_rotvec() * THREE), THREE
    ),
    "product with a captured one": (lambda v: np.sum((Rotation.from_rotvec(v) * FIXED).as_rotvec() * THREE), THREE),
    "inverse": (
        lambda v: np.sum(Rotation.from_rotvec(v).inv().apply(v + 1) * THREE)
        + np.sum(Rotation.from_rotvec(v).apply(PLACES, inverse=True) * PLACES[:, ::-1]),
        THREE,
    ),
    "magnitude": (lambda v: (FIXED * Rotation.from_rotvec(v)).magnitude(), THREE),
    "power": (lambda v: np.sum((Rotation.from_rotvec(v) ** v[0]).as_matrix() * WEIGHTS), THREE),
    "from_matrix": (lambda m: np.sum(Rotation.from_matrix(m).as_rotvec() * THREE), FIXED.as_matrix()),
    "from_matrix, not orthogonal": (lambda m: np.sum(Rotation.from_matrix(m).as_quat() * FOUR), SKEWED),
    **{
        f"from_matrix, {name}": (
            lambda v: np.sum(
                Rotation.from_matrix(Rotation.from_rotvec(v).as_matrix()).as_quat(canonical=True) * FOUR
            ),
            np.array(at),
        )
        for name, at in (("x", [2.9, 0.3, 0.2]), ("y", [0.3, 2.9, 0.2]), ("z", [0.3, 0.2, 2.9]))
    },
    "captured": (lambda v: np.sum(FIXED.apply(v) * THREE) + np.sum(STACK.apply(v) * PLACES[:4]), THREE),
    "stack": (
        lambda v: np.sum(Rotation.from_rotvec(v).apply(PLACES[:3]) * PLACES[1:4]) + len(Rotation.from_rotvec(v)), MANY
    ),
    "items": (
        lambda v: np.sum(Rotation.from_rotvec(v)[1].as_matrix() * WEIGHTS)
        + sum(each.magnitude() for each in Rotation.from_rotvec(v)),
        MANY,
    ),
    "two leading axes": (
        lambda v: np.sum(Rotation.from_rotvec(v).as_matrix() * WEIGHTS), random.normal(size=(2, 2, 3))
    ),
    "slerp": (lambda v: np.sum(Slerp([0.0, 1.0, 2.0], Rotation.from_rotvec(v))([0.3, 1.7]).as_matrix()), MANY),
    "slerp at traced times": (lambda t: np.sum(BETWEEN(t).as_rotvec() * THREE), np.array([0.3, 2.7])),
    "slerp at a traced time": (lambda t: np.sum(BETWEEN(t[0]).as_rotvec() * THREE), np.array([0.3, 2.7])),
    "mean": (lambda v: np.sum(Rotation.from_rotvec(v).mean().as_matrix() * WEIGHTS), THREE + 0.2 * MANY),
    "align_vectors": (
        lambda v: np.sum(Rotation.align_vectors(v, PLACES)[0].as_matrix() * WEIGHTS)
        + Rotation.align_vectors(v, PLACES)[1],
        FIXED.apply(PLACES) + 0.1 * random.normal(size=PLACES.shape),
    ),
    "concatenate": (
        lambda v: np.sum(Rotation.concatenate([FIXED, Rotation.from_rotvec(v)]).as_quat()[1] * FOUR), THREE
    ),
}  # fmt: skip


def differences(f: Callable[[Any], Any], x: Any) -> Any:
    steps = 1e-6 * np.eye(x.size).reshape(x.size, *x.shape)
    found = np.array([(f(x + e) - f(x - e)) / 2e-6 for e in steps])
    return np.moveaxis(found, 0, -1).reshape(*found.shape[1:], *x.shape)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_to_second_order(name: str, backend: Any) -> None:
    f, x = CASES[name]
    value, gradient = sg.value_and_grad(f, backend=backend)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(gradient, differences(f, x), rtol=1e-6, atol=1e-7)
    _, forward = sg.jvp(f, (x,), (np.ones_like(x),), backend=backend)
    np.testing.assert_allclose(forward, np.sum(gradient), rtol=1e-10, atol=1e-11)
    hessian = sg.hessian(f, backend=backend)(x)
    np.testing.assert_allclose(hessian, differences(sg.grad(f, backend=backend), x), rtol=1e-5, atol=1e-6)


def test_second_derivatives_at_the_identity_are_those_of_the_exponential() -> None:
    """The matrix of a small rotation v is 1 + [v] + [v]²/2, with [v] u the cross product of v and u."""
    units = np.array([np.cross(axis, np.eye(3)).T for axis in np.eye(3)])
    products = np.einsum("aij,bjk->abik", units, units)
    expected = np.sum((products + np.swapaxes(products, 0, 1)) / 2 * WEIGHTS, axis=(2, 3))
    hessian = sg.hessian(lambda v: np.sum(Rotation.from_rotvec(v).as_matrix() * WEIGHTS))(np.zeros(3))
    np.testing.assert_allclose(hessian, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_matrices_of_half_a_turn(axis: int) -> None:
    """The trace is -1 there: of the four products with the quaternion's numbers three may be 0."""
    matrix = np.diag(np.where(np.arange(3) == axis, 1.0, -1.0))

    def f(m: Any) -> Any:
        return np.sum(Rotation.from_matrix(m).as_matrix() * WEIGHTS)

    value, gradient = sg.value_and_grad(f)(matrix)
    np.testing.assert_allclose(value, f(matrix), rtol=1e-13)
    np.testing.assert_allclose(gradient, differences(f, matrix), rtol=1e-6, atol=1e-7)


def test_euler_angles_at_a_gimbal_lock_are_scipys() -> None:
    """One angle is 0 there, and the other the sum or difference that is known."""
    for seq in ("xyz", "ZYX", "zxz", "YXY"):
        for second in (0.0, np.pi / 2, -np.pi / 2, np.pi):
            angles = np.array([0.4, second, -0.3])
            with pytest.warns(UserWarning) if second in locked(seq) else contextlib.nullcontext():
                expected = Rotation.from_euler(seq, angles).as_euler(seq)
            found = sg.jit(lambda v, seq=seq: Rotation.from_euler(seq, v).as_euler(seq))(angles)
            np.testing.assert_allclose(np.exp(1j * found), np.exp(1j * expected), rtol=0, atol=1e-7, err_msg=seq)


def locked(seq: str) -> tuple[float, ...]:
    return (0.0, np.pi) if seq[0] == seq[2] else (np.pi / 2, -np.pi / 2)


def test_a_captured_rotation_that_has_changed_is_never_stale() -> None:
    held = Rotation.from_rotvec(random.normal(size=(2, 3)))

    def f(v: Any) -> Any:
        return np.sum(held.apply(v) * PLACES[:2])

    gradient = sg.grad(f)
    for k in range(8):
        if k == 5:
            held[1] = FIXED
        np.testing.assert_allclose(gradient(THREE), np.einsum("kij,ki->j", held.as_matrix(), PLACES[:2]), rtol=1e-12)


def test_a_result_is_scipys_own_rotation() -> None:
    found = sg.jit(lambda v: Rotation.from_rotvec(v))(THREE)
    assert isinstance(found, Rotation)
    np.testing.assert_allclose(found.as_rotvec(), THREE, rtol=1e-13)


def test_a_branch_gives_one_rotation_or_another() -> None:
    def f(v: Any) -> Any:
        turned = Rotation.from_rotvec(v) if v[0] > 0 else Rotation.from_euler("xyz", v)
        return np.sum(turned.as_matrix() * WEIGHTS)

    for x in (THREE, -THREE):
        np.testing.assert_allclose(sg.grad(f)(x), differences(f, x), rtol=1e-6, atol=1e-7)


BAD: list[tuple[Callable[[Any], Any], Any, type[Exception], str]] = [
    (lambda v: Rotation.from_quat(v).magnitude(), np.zeros(4), ValueError, "zero norm"),
    (lambda m: Rotation.from_matrix(m).magnitude(), -np.eye(3), ValueError, "Non-positive determinant"),
    (lambda v: Rotation.from_euler("xx", v[:2]).magnitude(), THREE, ArgumentError, "must be different"),
    (lambda v: Rotation.from_euler("xY", v[:2]).magnitude(), THREE, ArgumentError, "expected up to 3 axes"),
    (lambda v: Rotation.from_euler("xyz", v[:2]).magnitude(), THREE, ValueError, "the length 3, not 2"),
    (lambda v: Rotation.from_rotvec(v[:2]).magnitude(), THREE, ValueError, r"shape \(..., 3\), not \(2,\)"),
    (lambda t: np.sum(BETWEEN(t).as_rotvec()), THREE, ValueError, "within the range"),
    (lambda v: np.sum(Rotation.from_rotvec(v).as_davenport(np.eye(3), "e")), THREE, UnsupportedError, "as_davenport"),
]


@pytest.mark.parametrize(("f", "x", "kind", "message"), BAD)
def test_what_scipy_refuses_is_refused(f: Callable[[Any], Any], x: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        sg.grad(f)(x)


def turned_in_a_loop(v: Any) -> Any:
    turned, step = Rotation.from_rotvec(v), Rotation.from_rotvec(0.01 * v)
    for _ in range(40):
        turned = turned * step
    return np.sum(turned.apply(THREE) * v)


def test_a_loop_hands_a_rotation_on() -> None:
    slope = sg.grad(turned_in_a_loop)
    apart = [(turned_in_a_loop(THREE + e) - turned_in_a_loop(THREE - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(slope(THREE), apart, rtol=1e-6)
    assert "The loop of 40 trips" in sg.explain(slope)(THREE)["how it runs"]
    assert "one region" in sg.explain(slope)(THREE)["how it runs"]
