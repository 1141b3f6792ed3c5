"""Arguments that are objects, functions or sparse matrices: what is read of them is followed as of captured ones."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import srcgrad as sg

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
X = np.array([0.5, -1.0, 2.0])


class Layer:
    def __init__(self, w: Any) -> None:
        self.w = w

    def __call__(self, x: Any) -> Any:
        return np.tanh(self.w @ x)


class Model:
    def __init__(self, *weights: Any, power: int = 2) -> None:
        self.layers = [Layer(w) for w in weights]
        self.scale, self.power, self.calls = 1.5, power, 0
        self.buffer = np.zeros(3)

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        for layer in self.layers:
            x = layer(x)
        return self.scale * x**self.power

    def stored(self, x: Any) -> Any:
        self.buffer[0] = x[0] ** 2
        return x * self.buffer[0]


def loss(x: Any, model: Any) -> Any:
    return np.sum(model(x))


def slope(f: Callable[[Any], Any], x: Any, step: float = 1e-6) -> Any:
    return np.array([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))])


@pytest.mark.parametrize("backend", ["numpy", "llvm", "xla"])
def test_objects_of_one_structure_have_one_program(compilations: list[str], backend: str) -> None:
    differentiated = sg.grad(loss, backend=backend)
    for factor in (1.0, 0.5, -0.3):
        model = Model(factor * np.eye(3), np.full((3, 3), factor))
        for x in (X, 2.0 * X):
            apart = slope(lambda x, m=model: loss(x, m), x)
            np.testing.assert_allclose(differentiated(x, model), apart, rtol=1e-6, atol=1e-9)
    assert len(compilations) == 1
    model.scale = 3.0
    np.testing.assert_allclose(differentiated(X, model), slope(lambda x: loss(x, model), X), rtol=1e-6, atol=1e-9)
    assert len(compilations) == 1


def test_what_decides_the_structure_makes_another_program(compilations: list[str]) -> None:
    differentiated = sg.grad(loss)
    for number, model in enumerate([Model(np.eye(3)), Model(np.eye(3), power=3), Model(np.eye(3), np.eye(3))], 1):
        np.testing.assert_allclose(differentiated(X, model), slope(lambda x, m=model: loss(x, m), X), rtol=1e-6)
        assert len(compilations) == number


def test_functions_are_followed(compilations: list[str]) -> None:
    differentiated = sg.grad(loss)
    for k in (2.0, 3.0, 4.0):
        np.testing.assert_allclose(differentiated(X, lambda x, k=k: k * x**2), 2.0 * k * X)
        assert len(compilations) == 1
    model = Model(np.eye(3))
    np.testing.assert_allclose(differentiated(X, model.layers[0]), 1.0 - np.tanh(X) ** 2)
    np.testing.assert_allclose(differentiated(X, model.layers[0].__call__), 1.0 - np.tanh(X) ** 2)


def test_objects_stand_in_containers_and_keywords(compilations: list[str]) -> None:
    def total(x: Any, parts: Any, *, rest: Any) -> Any:
        return sum(np.sum(f(x)) for f in parts["functions"]) * parts["count"] + rest.shift * x[0]

    differentiated = sg.grad(total)
    for shift in (1.0, 2.0):
        parts = {"functions": [Layer(shift * np.eye(3)), lambda x: x**2], "count": 2}
        found = differentiated(X, parts, rest=SimpleNamespace(shift=shift))
        wanted = 2 * (shift * (1.0 - np.tanh(shift * X) ** 2) + 2.0 * X) + np.array([shift, 0.0, 0.0])
        np.testing.assert_allclose(found, wanted)
        assert len(compilations) == 1 if shift == 1.0 else 2


def test_a_sparse_matrix_is_compiled_in(compilations: list[str]) -> None:
    def energy(x: Any, matrix: Any) -> Any:
        return np.sum((matrix @ x) ** 2)

    differentiated = sg.grad(energy)
    for _ in range(3):
        for factor in (1.0, 2.0):
            matrix = factor * sparse.csr_matrix(np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]]))
            dense = matrix.toarray()
            np.testing.assert_allclose(differentiated(X, matrix), 2.0 * dense.T @ dense @ X)
    assert len(compilations) == 2


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_what_the_function_leaves_in_an_object_stays_there(backend: str) -> None:
    model = Model(np.eye(3))
    differentiated = sg.grad(loss, backend=backend)
    for calls in (1, 2, 3):
        differentiated(X, model)
        assert type(model.calls) is int and model.calls == calls

    def through(x: Any, model: Any) -> Any:
        return np.sum(model.stored(x))

    wanted = slope(lambda x: through(x, Model()), X)
    np.testing.assert_allclose(sg.grad(through, backend=backend)(X, model), wanted, rtol=1e-6)
    assert not model.buffer.any()  # as of all derivatives
    assert sg.jit(through, backend=backend)(X, model) == through(X, Model())
    assert model.buffer[0] == X[0] ** 2


def test_an_object_that_is_captured_too_is_the_same_one() -> None:
    model, other = Model(np.eye(3)), Model(np.eye(3))

    def chosen(x: Any, given: Any) -> Any:
        return np.sum(given(x)) if given is model else 0.0 * x[0]

    differentiated = sg.grad(chosen)
    for _ in range(2):
        np.testing.assert_allclose(differentiated(X, model), slope(lambda x: loss(x, model), X), rtol=1e-6)
        assert not differentiated(X, other).any()


def test_every_transform_takes_objects() -> None:
    model = Model(np.eye(3), 0.5 * np.eye(3))
    inner: Callable[[Any], Any] = lambda x: loss(x, model)  # noqa: E731
    np.testing.assert_allclose(sg.hessian(loss)(X, model), sg.hessian(inner)(X), rtol=1e-12)
    np.testing.assert_allclose(sg.jacfwd(loss)(X, model), sg.grad(inner)(X), rtol=1e-12)
    assert sg.jit(loss)(X, model) == pytest.approx(inner(X), rel=1e-12)
    batch = np.stack([X, 2.0 * X])
    np.testing.assert_allclose(sg.vmap(loss, in_axes=(0, None))(batch, model), [inner(x) for x in batch])
    explained = sg.explain(sg.grad(loss))(X, model)["how it runs"]
    assert explained.startswith("One program") and "model.layers[0].w: hidden input (array)" in explained


def test_an_object_that_the_function_does_not_read_decides_nothing(compilations: list[str]) -> None:
    def unread(x: Any, context: Any) -> Any:
        return np.sum(x**2)

    differentiated = sg.grad(unread)
    for _ in range(3):
        np.testing.assert_allclose(differentiated(X, iter("ab")), 2.0 * X)
    assert len(compilations) == 1


def test_what_cannot_be_followed_is_named() -> None:
    def drawn(x: Any, items: Any) -> Any:
        return sum(x[0] * item for item in items)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            np.testing.assert_allclose(sg.grad(drawn)(X, (k for k in (1.0, 2.0))), [3.0, 0.0, 0.0])
    assert "reads the generator 'items'" in str(caught[0].message)


def weighted(x: Any, model: Any, factor: float = 1.0) -> Any:
    return factor * np.sum(x * model.w)


def weighted_first(factor: float, x: Any, model: Any) -> Any:
    return weighted(x, model, factor)


def test_partials_keep_what_they_hold_beside_objects(compilations: list[str]) -> None:
    """A partial of a partial is one of the inner function: the user's factor was lost, and the slope another."""
    for f in (functools.partial(weighted, factor=3.0), functools.partial(weighted_first, 3.0)):
        sg.clear_caches()
        compilations.clear()
        slopes = sg.grad(f)
        for w in (2.0, 5.0):
            np.testing.assert_array_equal(slopes(X, Layer(w)), np.full(3, 3.0 * w))
        assert len(compilations) == 1
    default = sg.grad(functools.partial(weighted, model=Layer(7.0), factor=3.0))
    np.testing.assert_array_equal(default(X), np.full(3, 21.0))
    np.testing.assert_array_equal(default(X, model=Layer(2.0)), np.full(3, 6.0))


def test_objects_with_names_alike_are_told_apart() -> None:
    def f(x: Any, models: Any, models_0: Any) -> Any:
        return np.sum(x * models[0].w - models_0.w) + 10 * models[1].w

    value = sg.value_and_grad(f)(X, [Layer(2.0), Layer(5.0)], Layer(1.0))[0]
    np.testing.assert_allclose(value, f(X, [Layer(2.0), Layer(5.0)], Layer(1.0)))


def doubled_first(x: Any, first: Any, second: Any) -> Any:
    first.w = first.w * 2
    return np.sum(x * second.w)


@pytest.mark.parametrize("place", ["arguments", "captured"])
def test_two_objects_that_become_one_have_another_program(place: str) -> None:
    """What was stored in the one was not seen in the other, which it is."""
    first = second = Layer(3.0)
    on_arguments, on_captured = sg.jit(doubled_first), sg.jit(lambda x: doubled_first(x, first, second))
    for same in (False, False, True, False, True):
        first = Layer(3.0)
        second = first if same else Layer(3.0)
        found = on_captured(X) if place == "captured" else on_arguments(X, first, second)
        np.testing.assert_allclose(found, np.sum(X) * (6.0 if same else 3.0))


class Settings:
    rate = 2.0

    @staticmethod
    def scaled(x: Any) -> Any:
        return 3.0 * x


def test_what_is_read_of_a_class_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name alone had decided which program served a call."""
    differentiated = sg.grad(lambda x, settings: np.sum(settings.scaled(x) * settings.rate))
    np.testing.assert_allclose(differentiated(X, Settings), np.full(3, 6.0))
    monkeypatch.setattr(Settings, "rate", 5.0)
    np.testing.assert_allclose(differentiated(X, Settings), np.full(3, 15.0))
    monkeypatch.setattr(Settings, "scaled", staticmethod(lambda x: 4.0 * x))
    np.testing.assert_allclose(differentiated(X, Settings), np.full(3, 20.0))


def test_what_a_built_in_method_gives_is_as_it_is_at_each_call() -> None:
    names, numbers, array = {"k": 2.0}, [2.0], np.array([2.0])
    methods = (lambda: names.get("k"), names.get), (lambda: numbers[0], numbers.__getitem__), (array.sum, array.sum)
    for (read, method), key in zip(methods, [("k",), (0,), ()], strict=True):
        differentiated = sg.grad(lambda x, f, key=key: np.sum(x * f(*key)))
        for value in (2.0, 5.0):
            names["k"], numbers[0], array[0] = value, value, value
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", sg.RetraceWarning)
                np.testing.assert_allclose(differentiated(X, method), np.full(3, read()))


class Unlike:
    """An object that cannot be compared, hashed, counted or shown."""

    def __init__(self, weights: list[Any]) -> None:
        self.weights = weights

    def __call__(self, x: Any) -> Any:
        return self.weights[0] * x

    def scaled(self, x: Any) -> Any:
        return self.weights[1] * x

    def refuse(self, *others: Any) -> Any:
        raise AssertionError("was asked")

    __eq__ = __ne__ = __hash__ = __bool__ = __len__ = __iter__ = __repr__ = refuse


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_objects_that_cannot_be_compared_or_hashed_are_followed_as_others() -> None:
    model, x = Unlike([2.0, 3.0]), np.array([1.0, -1.0])

    def branching(x: Any) -> Any:
        chosen = model if x[0] > 0 else Unlike([5.0, 7.0])
        return np.sum(chosen(x))

    def looping(x: Any) -> Any:
        made, total = Unlike([x[0], 2.0]), 0.0
        for k in range(30):
            total = total + made(x[k % 2]) + model.scaled(x[k % 2])
        return total

    for f, expected in (
        (lambda x: np.sum(model(x)), [2.0, 2.0]),
        (lambda x, held={"a": [model]}: np.sum(held["a"][0].scaled(x)), [3.0, 3.0]),
        (branching, [2.0, 2.0]),
        (looping, [60.0, 60.0]),
        (functools.partial(lambda model, x: np.sum(model(x)), model), [2.0, 2.0]),
    ):
        np.testing.assert_allclose(sg.grad(f)(x), expected)
    np.testing.assert_allclose(sg.grad(lambda x, m: np.sum(m(x)))(x, model), [2.0, 2.0])
    assert sg.grad(model)(1.0) == 2.0
    assert sg.grad(model.scaled)(1.0) == 3.0
    assert sg.vmap(model)(x).tolist() == [2.0, -2.0]
