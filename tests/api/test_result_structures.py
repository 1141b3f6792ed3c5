"""Which result is which: the order of gradients, auxiliary outputs, tangents, mapped axes, arrays of the caller."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import HolomorphicError, IntegerInputError

pytestmark = pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
X = np.array([1.0, 2.0, 3.0])


def product(x: Any, y: Any, z: Any) -> Any:
    return x**2 * y**3 * z


@pytest.mark.parametrize("argnums", [(0, 1), (1, 0), (2, 0, 1), (-1, 0), (-2,)])
def test_gradients_stand_in_the_order_of_argnums(argnums: tuple[int, ...]) -> None:
    x, y, z = 2.0, 3.0, 5.0
    first = [2 * x * y**3 * z, 3 * x**2 * y**2 * z, x**2 * y**3]
    second = [
        [2 * y**3 * z, 6 * x * y**2 * z, 2 * x * y**3],
        [6 * x * y**2 * z, 6 * x**2 * y * z, 3 * x**2 * y**2],
        [2 * x * y**3, 3 * x**2 * y**2, 0.0],
    ]
    assert sg.grad(product, argnums)(x, y, z) == tuple(first[k] for k in argnums)
    assert sg.jacobian(product, argnums)(x, y, z) == tuple(first[k] for k in argnums)
    assert sg.hessian(product, argnums)(x, y, z) == tuple(tuple(second[j][k] for k in argnums) for j in argnums)


def test_arguments_of_several_leaves() -> None:
    def f(first: Any, second: Any) -> Any:
        return np.sum(first["a"] * first["b"]) + np.sum(second**2)

    by_second, by_first = sg.grad(f, argnums=(1, 0))({"a": X, "b": 2.0 * X}, 3.0 * X)
    np.testing.assert_array_equal(by_first["a"], 2.0 * X)
    np.testing.assert_array_equal(by_first["b"], X)
    np.testing.assert_array_equal(by_second, 6.0 * X)


def test_auxiliary_outputs_come_back() -> None:
    """Of the output itself, of other arrays, and of what is no array."""

    def f(x: Any) -> Any:
        value = np.sum(x**2)
        return value, {"self": value, "other": 5.0 * x, "name": "n", "more": 7.0 * x[0]}

    gradient, aux = sg.grad(f, has_aux=True)(X)
    (value, paired), again = sg.value_and_grad(f, has_aux=True)(X)
    jacobian, beside = sg.jacobian(f, has_aux=True)(X)
    for found in (aux, paired, beside):
        assert (found["self"], found["more"], found["name"]) == (14.0, 7.0, "n")
        np.testing.assert_array_equal(found["other"], 5.0 * X)
    assert value == 14.0
    for found in (gradient, again, jacobian):
        np.testing.assert_array_equal(found, 2.0 * X)


def test_a_hessian_of_several_outputs() -> None:
    """With array arguments of two sizes: the output's axes, the first argument's, the second's."""

    def f(x: Any, y: Any) -> Any:
        return {"cubes": x**3, "mixed": np.sum(x) * np.sum(y**2)}

    x, y = X, np.array([4.0, 5.0])
    found = sg.hessian(f, argnums=(0, 1))(x, y)
    identity = np.einsum("ij,jk->ijk", np.eye(3), np.eye(3))
    np.testing.assert_array_equal(found["cubes"][0][0], 6.0 * identity * x)
    np.testing.assert_array_equal(found["cubes"][0][1], np.zeros((3, 3, 2)))
    np.testing.assert_array_equal(found["mixed"][0][1], np.tile(2.0 * y, (3, 1)))
    np.testing.assert_array_equal(found["mixed"][1][0], np.tile(2.0 * y, (3, 1)).T)
    np.testing.assert_array_equal(found["mixed"][1][1], 2.0 * x.sum() * np.eye(2))


def test_other_shapes_have_other_programs() -> None:
    gradient = sg.grad(lambda x: np.sum(x) * x.size)
    for size in (3, 5, 3):
        np.testing.assert_array_equal(gradient(np.ones(size)), np.full(size, float(size)))


def test_tangents_and_cotangents_of_what_has_none() -> None:
    """An integer leaf has no tangent, an auxiliary output takes no cotangent, and dtypes are the primal's."""

    def f(x: Any, n: Any, y: Any) -> Any:
        return (x * y * n, n + 1, 3.0 * y), {"aux": x}

    n = np.array(2)
    out, pull, aux = sg.vjp(f, 3.0, n, 5.0, has_aux=True)
    assert (out, aux) == ((30.0, 3, 15.0), {"aux": 3.0})
    assert pull((1.0, None, 10.0)) == (10.0, 0, 36.0) or pull((1.0, 0, 10.0)) == (10.0, 0, 36.0)
    value, pushed = sg.jvp(lambda x: (x**2, 5.0 * x), (X,), (np.ones(3, np.int64),))
    np.testing.assert_array_equal(value[0], X**2)
    np.testing.assert_array_equal(pushed[0], 2.0 * X)
    np.testing.assert_array_equal(pushed[1], np.full(3, 5.0))
    for backend in ("numpy", "llvm"):
        with sg.use_backend(backend):
            narrow = sg.jvp(lambda x: x * x, (X.astype(np.float32),), (np.ones(3),))[1]
        assert narrow.dtype == np.float32


def test_an_integer_does_not_move() -> None:
    """A tangent other than 0 of what has none was dropped, unsaid; grad refuses such an argument."""

    def scaled(x: Any, n: Any) -> Any:
        return x * n

    for still in (0, 0.0, None):
        for _ in range(7):
            assert sg.jvp(scaled, (2.0, 3), (1.0, still))[1] == 3.0
        assert sg.linearize(scaled, 2.0, 3)[1](1.0, still) == 3.0
    whole, moved = np.arange(3), np.zeros(3)
    for _ in range(7):
        assert sg.jvp(lambda x, n: np.sum(x * n), (2.0, whole), (1.0, moved))[1] == 3.0
    moved[0] = 1.0
    for call in (
        lambda: sg.jvp(scaled, (2.0, 3), (1.0, 1.0)),
        lambda: sg.jvp(lambda x, n: np.sum(x * n), (2.0, whole), (1.0, moved)),
        lambda: sg.jvp(lambda table: table["x"] * table["n"], ({"x": 2.0, "n": 3},), ({"x": 1.0, "n": 1},)),
        lambda: sg.hvp(lambda x: x * x, (3,), (1.0,)),
        lambda: sg.linearize(scaled, 2.0, 3)[1](1.0, 1.0),
    ):
        with pytest.raises(sg.errors.IntegerInputError, match=r"has a tangent other than 0"):
            call()


@pytest.mark.parametrize("branching", [False, True])
@pytest.mark.parametrize(("in_axis", "out_axis"), [(0, 0), (1, 0), (2, 1), (-1, -1), (0, 2)])
def test_mapped_axes(in_axis: int, out_axis: int, branching: bool) -> None:
    def f(x: Any, w: Any) -> Any:
        if branching and not np.all(x > 0):
            return -x * w
        return x.T * w

    x, w = np.arange(1.0, 25.0).reshape(2, 3, 4), 2.0
    examples = np.moveaxis(x, in_axis, 0)
    expected = np.stack([f(example, w) for example in examples], axis=out_axis)
    np.testing.assert_array_equal(sg.vmap(f, in_axes=(in_axis, None), out_axes=out_axis)(x, w), expected)


# --- arrays of the caller -----------------------------------------------------------------------------------


def test_a_traced_function_does_not_write_its_argument() -> None:
    """Neither as a program nor where it is traced again."""

    def f(x: Any) -> Any:
        x[0] = 10.0 * x[1]
        return np.sum(x * x)

    def branching(x: Any, y: Any) -> Any:
        y[:] = 0.0 if np.sum(x) > 0 else 1.0
        return f(x)

    def retraced(x: Any, y: Any) -> Any:
        y[:] = float(len(str(x)))
        return f(x)

    given, other = X.copy(), X.copy()
    np.testing.assert_array_equal(sg.grad(f)(given), [0.0, 2.0 * (100.0 + 1.0) * 2.0, 6.0])
    np.testing.assert_array_equal(sg.grad(branching)(given, other), [0.0, 2.0 * (100.0 + 1.0) * 2.0, 6.0])
    with pytest.warns(sg.RetraceWarning):
        np.testing.assert_array_equal(sg.grad(retraced)(given, other), [0.0, 2.0 * (100.0 + 1.0) * 2.0, 6.0])
    np.testing.assert_array_equal(given, X)
    np.testing.assert_array_equal(other, X)


@pytest.mark.parametrize("way", ["plain", "branching", "traced again"])
def test_results_are_not_the_arrays_of_the_caller(way: str) -> None:
    """A gradient that is the argument itself, and what a pullback returns."""

    def holds(x: Any) -> Any:
        if way == "traced again":
            return len(str(x)) > 0
        return way == "plain" or np.sum(x) > 0

    def f(x: Any, w: Any) -> Any:
        return np.sum(x * w) if holds(x) else 0.0

    weights = X.copy()
    gradient = sg.grad(f)(X.copy(), weights)
    gradient[:] = -1.0
    np.testing.assert_array_equal(weights, X)
    _, pull = sg.vjp(f, X.copy(), weights)
    first = pull(1.0)[0]
    first[:] = -1.0
    np.testing.assert_array_equal(pull(1.0)[0], X)
    _, pull = sg.vjp(lambda x: x + 0.5 if holds(x) else x, X.copy())
    seed = X.copy()
    pull(seed)[0][:] = -1.0
    np.testing.assert_array_equal(seed, X)
    constant = sg.grad(lambda x: np.sum(x) if holds(x) else 0.0)(X.copy())
    constant[:] = -1.0
    (one, other), _ = sg.jvp(lambda x: (x, x) if holds(x) else (x, 0.0 * x), (X,), (X,))
    assert not np.shares_memory(one, other) and not np.shares_memory(one, X)


def test_captured_arrays_that_overlap_are_one_memory() -> None:
    whole = X.copy()
    part = whole[1:]

    def f(x: Any) -> Any:
        whole[1] = 5.0
        return part[0] * x

    assert sg.grad(f)(2.0) == 5.0


def test_jit_writes_what_the_function_writes() -> None:
    def f(x: Any, y: Any) -> Any:
        x += 1.0
        y[0] = x[1]
        return x + y

    def both(call: Callable[..., Any], arrays: tuple[Any, ...]) -> list[Any]:
        return [call(*arrays), *arrays]

    fast = sg.jit(f)
    apart, same, overlapping = (
        lambda: (X.copy(), 2.0 * X),
        lambda: (a := X.copy(), a),
        lambda: ((a := X.copy())[:2], a[1:]),
    )
    for make in (apart, same, overlapping):
        for found, expected in zip(both(fast, make()), both(f, make()), strict=True):
            np.testing.assert_array_equal(found, expected)


# --- what is refused ----------------------------------------------------------------------------------------


def test_what_has_no_derivative_is_refused() -> None:
    with pytest.raises(IntegerInputError):
        sg.grad(lambda x: np.sum(x * 1.0))(np.arange(3))
    with pytest.raises(HolomorphicError):
        sg.jacobian(np.conj)(np.array([1j]))
    np.testing.assert_array_equal(sg.jacobian(np.square)(np.array([1j])), [[2j]])


@pytest.mark.parametrize("made", [lambda: {1, 2}, lambda: deque([1]), lambda: SimpleNamespace(held=[1])])
def test_what_a_function_makes_and_returns_is_another_one_at_each_call(made: Callable[[], Any]) -> None:
    def changed(x: Any) -> None:
        if isinstance(x, SimpleNamespace):
            x.held.append(3)
        else:
            (x.add if isinstance(x, set) else x.append)(3)

    fast, with_slope = sg.jit(lambda x: (2 * x, made())), sg.grad(lambda x: (2 * x, made()), has_aux=True)
    for _ in range(6):
        for found in (fast(1.0)[1], with_slope(1.0)[1]):
            assert found == made()
            changed(found)


def test_what_is_returned_and_has_no_copy_is_made_by_each_call() -> None:
    def numbered(x: Any) -> Any:
        return 2 * x, (k for k in range(3))

    fast = sg.jit(numbered)
    for _ in range(4):
        assert list(fast(1.0)[1]) == [0, 1, 2]
