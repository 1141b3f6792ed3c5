"""Each transform: its forms, its arguments, and the structures and values it returns, beside JAX's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import srcgrad as sg

X = np.array([0.5, 2.0, -1.0])
Y = np.array([1.5, -0.3, 0.7])
TRANSFORMS = ["grad", "value_and_grad", "jacobian", "jacfwd", "jacrev", "hessian"]
JAX = {name: getattr(jax, "jacrev" if name == "jacobian" else name) for name in TRANSFORMS}


@pytest.fixture(autouse=True, scope="module")
def double_precision() -> Iterator[None]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def same(found: Any, expected: Any) -> None:
    """The same containers, and numbers that agree."""
    if isinstance(expected, dict):
        assert type(found) is dict and found.keys() == expected.keys()
        for key in expected:
            same(found[key], expected[key])
    elif isinstance(expected, (tuple, list)):
        assert type(found) is type(expected) and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif expected is None or isinstance(expected, str):
        assert found == expected
    else:
        assert np.shape(found) == np.shape(expected) and np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-12, atol=1e-14)


class Pair(NamedTuple):
    left: Any
    right: Any


def scalar(x: Any, y: Any) -> Any:
    return (x**3 * y).sum() + x[0] * y[1]


def vector(x: Any, y: Any) -> Any:
    return x**2 * y + x[0] * y[1]


def tree(p: Any, q: Any) -> Any:
    return {"a": p["w"] * q[0], "b": (p["w"].sum() * p["v"], Pair(q[1] ** 2, p["v"] * q[1]))}


P, Q = {"w": X, "v": 2.0, "n": None}, [Y, 3.0]
ARGNUMS = [0, 1, -1, (0,), (0, 1), (1, 0), (-2,)]


@pytest.mark.parametrize("argnums", ARGNUMS)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_structures_and_values_of_scalar_functions(name: str, argnums: Any) -> None:
    same(getattr(sg, name)(scalar, argnums)(X, Y), JAX[name](scalar, argnums)(X, Y))


@pytest.mark.parametrize("argnums", ARGNUMS)
@pytest.mark.parametrize("name", ["jacobian", "jacfwd", "jacrev", "hessian"])
def test_structures_and_values_of_arrays(name: str, argnums: Any) -> None:
    same(getattr(sg, name)(vector, argnums)(X, Y), JAX[name](vector, argnums)(X, Y))


@pytest.mark.parametrize("argnums", [0, 1, (0, 1), (1,)])
@pytest.mark.parametrize("name", ["jacobian", "jacfwd", "jacrev", "hessian"])
def test_structures_and_values_of_pytrees(name: str, argnums: Any) -> None:
    same(getattr(sg, name)(tree, argnums)(P, Q), JAX[name](tree, argnums)(P, Q))


@pytest.mark.parametrize("name", ["grad", "value_and_grad"])
def test_gradients_of_pytrees(name: str) -> None:
    def f(p: Any, q: Any) -> Any:
        return tree(p, q)["b"][1].right * p["w"][0] + q[0].sum()

    same(getattr(sg, name)(f, (0, 1))(P, Q), JAX[name](f, (0, 1))(P, Q))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_has_aux(name: str) -> None:
    def f(x: Any, y: Any) -> Any:
        return scalar(x, y), {"products": x * y, "pair": Pair(x[0], None), "out": scalar(x, y)}

    same(getattr(sg, name)(f, 1, has_aux=True)(X, Y), JAX[name](f, 1, has_aux=True)(X, Y))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_list_of_output_and_aux_is_a_pair(name: str) -> None:
    def f(x: Any) -> Any:
        return [scalar(x, x), x]

    same(getattr(sg, name)(f, has_aux=True)(X), JAX[name](f, has_aux=True)(X))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_aux_that_is_no_array(name: str) -> None:
    found = getattr(sg, name)(lambda x: (np.sum(x * x), ("text", 3, None, x.shape)), has_aux=True)(X)
    aux = found[0][1] if name == "value_and_grad" else found[1]
    assert aux == ("text", 3, None, (3,))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_forms(name: str) -> None:
    transform = getattr(sg, name)
    expected = transform(lambda x, y: np.sum(x * x * y), argnums=1)(X, Y)

    @transform(argnums=1)
    def with_arguments(x: Any, y: Any) -> Any:
        return np.sum(x * x * y)

    @transform
    def plain(y: Any, x: Any) -> Any:
        return np.sum(x * x * y)

    same(with_arguments(X, Y), expected)
    same(plain(Y, X), expected)
    same(plain(Y, x=X), expected)  # keywords are not differentiated
    same(transform(partial(plain.f, x=X))(Y), expected)
    same(transform(plain.f, backend="numpy")(Y, X), expected)


class Model:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    @sg.grad
    def slope(self: Any, x: Any) -> Any:  # differentiates self, which is no number
        return self.scale * x

    @sg.grad(argnums=0)
    def gradient(self, x: Any) -> Any:
        return np.sum(self.scale * x**2)

    @sg.vmap
    def mapped(self, x: Any) -> Any:
        return self.scale * x

    @sg.jit
    def compiled(self, x: Any) -> Any:
        return self.scale * np.sum(x)

    @classmethod
    def of(cls, x: Any) -> Any:
        return np.sum(x**2)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_methods() -> None:
    model = Model(3.0)
    same(model.gradient(X), 6.0 * X)
    same(sg.grad(model.gradient.f)(X), 6.0 * X)
    same(model.mapped(X), 3.0 * X)
    assert model.compiled(X) == 3.0 * X.sum()
    model.scale = 5.0
    same(model.gradient(X), 10.0 * X)
    same(sg.grad(Model.of)(X), 2.0 * X)
    assert Model.gradient.__name__ == "gradient"


def test_metadata() -> None:
    def loss(x: Any, scale: float = 2.0) -> Any:
        """The loss."""
        return np.sum(x) * scale

    for transform in (*(getattr(sg, name) for name in TRANSFORMS), sg.vmap, sg.jit):
        wrapped = transform(loss)
        assert (wrapped.__name__, wrapped.__doc__, wrapped.__wrapped__) == ("loss", "The loss.", loss)
        assert wrapped.__module__ == __name__ and "loss" in repr(wrapped)


@dataclass
class Parameters:
    weights: Any
    bias: Any
    note: None = None


def test_dataclasses_and_registered_classes() -> None:
    found = sg.grad(lambda p: np.sum(p.weights) * p.bias)(Parameters(X, 2.0))
    assert type(found) is Parameters and found.note is None
    same(found.weights, np.full(3, 2.0))
    assert found.bias == X.sum()

    class Box:
        def __init__(self, value: Any) -> None:
            self.value = value

    sg.register_pytree_node(Box, lambda box: ((box.value,), None), lambda _, children: Box(*children))

    def inside(value: Any) -> Any:
        return np.sum(value.value**2)

    found = sg.grad(inside)(Box(X))
    assert type(found) is Box
    same(found.value, 2 * X)


# --- the calls ---------------------------------------------------------------------------------------------------
def test_vjp() -> None:
    out, pull = sg.vjp(tree, P, Q)
    expected, pull_jax = jax.vjp(tree, P, Q)
    same(out, expected)
    cotangent = {"a": X, "b": (np.float64(2.0), Pair(np.float64(0.5), np.float64(-1.0)))}
    same(pull(cotangent), pull_jax(cotangent))
    same(pull(cotangent), pull_jax(cotangent))  # can be called again
    out, pull, aux = sg.vjp(lambda x: (x * 2, "aux"), X, has_aux=True)
    assert aux == "aux"
    same(pull(X), (2 * X,))


def test_jvp_and_linearize() -> None:
    tangents = ({"w": Y, "v": 1.0, "n": None}, [X, -1.0])
    out, tangent = sg.jvp(tree, (P, Q), tangents)
    expected, expected_tangent = jax.jvp(tree, (P, Q), tangents)
    same((out, tangent), (expected, expected_tangent))
    out, linear = sg.linearize(tree, P, Q)
    same((out, linear(*tangents)), (expected, expected_tangent))
    same(linear(*tangents), expected_tangent)
    out, tangent, aux = sg.jvp(lambda x: (x * 2, None), (X,), (Y,), has_aux=True)
    same((out, tangent, aux), (2 * X, 2 * Y, None))


def test_hvp() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.sum(x**3 * y)

    same(sg.hvp(lambda x: f(x, Y), (X,), (Y,)), 6 * X * Y * Y)
    same(sg.hvp(f, (X, Y), (Y, X)), (6 * X * Y * Y + 3 * X**2 * X, 3 * X**2 * Y))
    same(sg.hvp(lambda p: f(p["x"], p["y"]), ({"x": X, "y": Y},), ({"x": Y, "y": X},))["y"], 3 * X**2 * Y)


def test_integer_leaves_of_calls_are_passed_through() -> None:
    def f(x: Any, n: int) -> Any:
        return x**n

    out, pull = sg.vjp(f, 3.0, 2)
    assert out == 9.0 and pull(1.0)[0] == 6.0
    assert sg.jvp(f, (3.0, 2), (1.0, 0))[1] == 6.0
    assert sg.linearize(f, 3.0, 2)[1](1.0, 0) == 6.0


# --- vmap --------------------------------------------------------------------------------------------------------
A, B = np.arange(24.0).reshape(2, 3, 4), np.linspace(-1, 1, 8).reshape(2, 4)
AXES: list[tuple[Callable[..., Any], tuple[Any, ...], Any, Any]] = [
    (lambda a: a.sum(), (A,), 0, 0),
    (lambda a: a.T, (A,), 1, 0),
    (lambda a: a.T, (A,), -1, 2),
    (lambda a: a * 2, (A,), 2, -1),
    (lambda a, b: a @ b, (A, B), (0, 0), 0),
    (lambda a, b: a @ b, (A, B[0]), (0, None), 1),
    (lambda a, b: a[..., 0] + b, (A, 2.0), (1, None), 0),
    (lambda a, b: {"s": a.sum() * b, "c": (a, b)}, (A, B), (0, 0), {"s": 0, "c": (1, 0)}),
    (lambda p: p["a"].sum() + p["b"], ({"a": A, "b": B},), ({"a": 0, "b": None},), 0),
    (lambda p, q: p[0] * q, ((A, B), 3.0), ((2, 1), None), 0),
    (lambda p, q: p[0].sum(axis=0) * p[1] * q, ((A, B), B[:, 0]), (0, 0), 1),
]


@pytest.mark.parametrize("case", range(len(AXES)))
def test_axes_of_vmap(case: int) -> None:
    f, args, in_axes, out_axes = AXES[case]
    same(sg.vmap(f, in_axes, out_axes)(*args), jax.vmap(f, in_axes, out_axes)(*args))


def counted(x: Any) -> Any:
    n = 0
    while n < 3:
        n, x = n + 1, x * 2
    return {"x": x, "n": n, "even": n % 2 == 0, "one": np.int8(1), "name": "a", "none": None}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_vmap_gives_numbers_an_axis_of_examples(backend: str) -> None:
    """Integers and booleans of Python's or NumPy's, as floats and arrays; what is no number stays as it is."""
    found = sg.vmap(counted, backend=backend)(A[0])
    expected = {"n": np.full(3, 3), "even": np.zeros(3, bool), "one": np.ones(3, np.int8)}
    for key, array in expected.items():
        assert isinstance(found[key], np.ndarray) and found[key].dtype == array.dtype
        np.testing.assert_array_equal(found[key], array)
    np.testing.assert_array_equal(found["x"], 8 * A[0])
    assert found["name"] == "a" and found["none"] is None
    axes = {"x": 1, "n": None, "even": None, "one": -1, "name": 0, "none": None}
    found = sg.vmap(counted, out_axes=axes, backend=backend)(A[0])
    assert found["n"] == 3 and type(found["n"]) is int and found["even"] is False and found["one"].shape == (3,)
    same(found["x"], 8 * A[0].T)
    same(sg.vmap(lambda x, n: (x.sum(), n), (0, None), backend=backend)(X, 2), (X, np.full(3, 2)))
    within = sg.grad(lambda x: np.sum(x * sg.vmap(lambda row: row.shape[0])(A[0])), backend=backend)
    same(within(X), np.full(3, 4.0))
    with pytest.raises(sg.errors.ShapeError, match="out_axes=1 is out of range"):
        sg.vmap(lambda x: 3, out_axes=1, backend=backend)(X)


def test_vmap_of_keywords_and_sizes() -> None:
    same(sg.vmap(lambda x, *, scale: x * scale)(X, scale=Y), X * Y)
    same(sg.vmap(lambda x: x * 2, in_axes=None, axis_size=3)(1.0), np.full(3, 2.0))
    same(sg.vmap(lambda x: 1.5)(X), np.full(3, 1.5))
    same(sg.vmap(lambda x: x)(np.zeros((0, 2))), np.zeros((0, 2)))
    same(sg.vmap(sg.vmap(lambda x, y: x * y, (None, 0)), (0, None))(X, Y), np.outer(X, Y))


# --- what comes back ---------------------------------------------------------------------------------------------
def results_of(found: Any) -> list[Any]:
    if isinstance(found, dict):
        return [leaf for value in found.values() for leaf in results_of(value)]
    if isinstance(found, (tuple, list)):
        return [leaf for value in found for leaf in results_of(value)]
    return [found]


@pytest.mark.parametrize("name", ["jacobian", "jacfwd", "jacrev", "hessian", "jit", "vmap"])
def test_results_are_writable_and_alias_nothing(name: str) -> None:
    x = X.copy() if name != "vmap" else np.stack([X, X])
    before, constant = x.copy(), np.ones(3)

    def f(x: Any) -> Any:
        return [x, x[::-1], x.T, constant, x * 1.0, constant[:, None] * x]

    transform = getattr(sg, name)
    first = transform(f)(x)
    leaves = [leaf for leaf in results_of(first) if isinstance(leaf, np.ndarray)]
    for k, leaf in enumerate(leaves):
        assert leaf.flags.writeable and not np.shares_memory(leaf, x) and not np.shares_memory(leaf, constant)
        assert not any(np.shares_memory(leaf, other) for other in leaves[k + 1 :])
        leaf[...] = 7.0
    assert np.array_equal(x, before) and np.array_equal(constant, np.ones(3))
    assert not any(np.any(leaf == 7.0) for leaf in results_of(transform(f)(x)))


def test_vjp_and_value_results_alias_nothing() -> None:
    x = X.copy()
    out, pull = sg.vjp(lambda x: x, x)
    out[...] = 7.0
    cotangent = Y.copy()
    (found,) = pull(cotangent)
    found[...] = 7.0
    assert np.array_equal(x, X) and np.array_equal(cotangent, Y)
    out, tangent = sg.jvp(lambda x: x, (x,), (cotangent,))
    tangent[...] = 7.0
    assert np.array_equal(cotangent, Y)


def test_rank_0_results_are_numpy_scalars() -> None:
    for found in (
        sg.grad(np.sin)(0.5),
        sg.value_and_grad(np.sin)(0.5),
        sg.jacfwd(np.sin)(np.float64(0.5)),
        sg.hessian(np.sin)(0.5),
        sg.jit(lambda x: (x, 2.0 * x, np.sum(X)))(0.5),
        sg.vjp(np.sin, 0.5)[0],
        sg.jvp(np.sin, (0.5,), (1.0,)),
        sg.hvp(np.sin, (0.5,), (1.0,)),
        sg.grad(np.sin)(np.array(0.5)),
    ):
        assert all(type(leaf) is np.float64 for leaf in results_of(found)), found


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "g"])
def test_dtypes_are_kept(dtype: str) -> None:
    x = np.array([0.5, 2.0], dtype)

    def f(x: Any) -> Any:
        return np.sum(x * x * 2 + 1.0)

    for found in (
        sg.grad(f)(x),
        sg.jacfwd(f)(x),
        sg.jacrev(f)(x),
        sg.hessian(f)(x),
        sg.hvp(f, (x,), (x,)),
        sg.jit(f)(x),
    ):
        assert found.dtype == x.dtype
    np.testing.assert_allclose(sg.grad(f)(x), 4 * x, rtol=1e-3)
    mixed = sg.grad(lambda x, y: np.sum(x * y).real, (0, 1))(x, np.array([1.0, 2.0], "f4"))
    assert [leaf.dtype for leaf in mixed] == [x.dtype, np.float32]


def test_shapes_at_the_edge() -> None:
    empty = np.zeros((0, 3))
    assert sg.grad(lambda x: np.sum(x * x))(empty).shape == (0, 3)
    assert sg.jacfwd(lambda x: x * x)(empty).shape == (0, 3, 0, 3)
    assert sg.jacrev(lambda x: np.sum(x * x, axis=0))(empty).shape == (3, 0, 3)
    assert sg.hessian(lambda x: np.sum(x * x))(empty).shape == (0, 3, 0, 3)
    assert sg.jacrev(lambda x: x[:0])(X).shape == (0, 3)
    assert sg.jacfwd(lambda x: x[:0])(X).shape == (0, 3)
    assert sg.vjp(lambda x: x * 2, empty)[1](empty)[0].shape == (0, 3)
    assert sg.jacfwd(lambda x: x * x)(np.array(3.0)) == 6.0
    assert sg.jacrev(lambda x: x[None])(np.array(3.0)).shape == (1,)


DEAD: dict[str, tuple[Callable[..., Any], Any]] = {
    "dead": (lambda x: np.float64(2.0), np.zeros(3)),
    "python number": (lambda x: 2.0, np.zeros(3)),
    "an element": (lambda x: x[1], np.array([0.0, 1.0, 0.0])),
    "cut off": (lambda x: np.sum(np.floor(x)), np.zeros(3)),
}


@pytest.mark.parametrize("name", DEAD)
def test_dead_arguments_and_constants(name: str) -> None:
    f, expected = DEAD[name]
    for transform in (sg.grad, sg.jacfwd, sg.jacrev, sg.jacobian):
        same(transform(f)(X), expected)
    same(sg.hessian(f)(X), np.zeros((3, 3)))
    same(sg.grad(lambda x, y: f(x), 1)(X, Y), np.zeros(3))


def test_the_same_array_twice() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.sum(x * x * y)

    same(sg.grad(f, (0, 1))(X, X), (2 * X * X, X * X))
    same(sg.jacfwd(f, (0, 1))(X, X), (2 * X * X, X * X))
    same(sg.grad(lambda p: f(p[0], p[1]))([X, X]), [2 * X * X, X * X])
    same(sg.grad(f)(X, Y), 2 * X * Y)
    same(sg.grad(f)(X, X), 2 * X * X)
    same(sg.hessian(f, (0, 1))(X, X)[0][1], np.diag(2 * X))
    same(sg.grad(f)(X[::-1], X), 2 * X[::-1] * X)
