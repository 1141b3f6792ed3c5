"""What calls do to the world: the caller's arrays, threads, backends, pickles."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import UnknownBackendError

X = np.array([0.5, 2.0, -1.0])
COUNTER = np.zeros(2)


# --- the caller's arrays ---------------------------------------------------------------------------------------
def changing(x: Any) -> Any:
    x *= 2.0
    x[0] += x[1]
    return np.sum(x**2)


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "jacfwd", "jacrev", "jacobian", "hessian"])
def test_derivatives_leave_arguments_as_they_are(name: str) -> None:
    x = X.copy()
    getattr(sg, name)(changing)(x)
    assert np.array_equal(x, X)
    x.flags.writeable = False
    getattr(sg, name)(lambda x: np.sum(x**2))(x)


def test_calls_leave_arguments_as_they_are() -> None:
    x, t = X.copy(), np.ones(3)
    sg.vjp(changing, x)[1](1.0)
    sg.jvp(changing, (x,), (t,))
    sg.linearize(changing, x)[1](t)
    sg.hvp(changing, (x,), (t,))
    sg.vmap(changing)(np.stack([x, x]))
    assert np.array_equal(x, X) and np.array_equal(t, np.ones(3))


def test_gradients_of_functions_that_change_their_arguments() -> None:
    expected = sg.grad(lambda x: np.sum((2 * x) ** 2) + (2 * x[0] + 2 * x[1]) ** 2 - 4 * x[0] ** 2)(X)
    np.testing.assert_allclose(sg.grad(changing)(X), expected)
    np.testing.assert_allclose(sg.jacfwd(changing)(X), expected)


def test_derivatives_leave_captured_arrays_as_they_are() -> None:
    buffer = np.zeros(3)

    def f(x: Any) -> Any:
        buffer[...] = x
        buffer[0] += 1.0
        return np.sum(buffer**2)

    np.testing.assert_allclose(sg.grad(f)(X), 2 * (X + np.array([1.0, 0.0, 0.0])))
    assert np.array_equal(buffer, np.zeros(3)) and type(buffer) is np.ndarray
    np.testing.assert_allclose(sg.jacfwd(f)(X), 2 * (X + np.array([1.0, 0.0, 0.0])))
    assert np.array_equal(buffer, np.zeros(3))


def test_jit_writes_back_what_the_function_changes() -> None:
    buffer = np.zeros(3)

    @sg.jit
    def step(state: Any, x: Any) -> Any:
        state["v"] *= 0.5
        state["v"] += x
        buffer[1:] = x[:-1]
        x[0] = 9.0
        return np.sum(state["v"])

    plain = {"v": X.copy()}, X.copy()
    compiled = {"v": X.copy()}, X.copy()
    expected = step.f(*plain)
    kept = buffer.copy()
    for _ in range(2):
        buffer[...] = 0.0
        assert step(*compiled) == expected
        assert np.array_equal(compiled[0]["v"], plain[0]["v"]) and np.array_equal(compiled[1], plain[1])
        assert np.array_equal(buffer, kept)
        compiled = {"v": X.copy()}, X.copy()


def test_jit_writes_back_views_and_captured_globals() -> None:
    @sg.jit
    def count(x: Any) -> Any:
        COUNTER[0] += 1.0
        COUNTER[1] += x
        return COUNTER[1] * 2.0

    COUNTER[...] = 0.0
    found = [count(float(k)) for k in range(4)]
    assert found == [0.0, 2.0, 6.0, 12.0] and np.array_equal(COUNTER, [4.0, 6.0])
    base = np.arange(6.0).reshape(2, 3)

    @sg.jit
    def double(x: Any) -> None:
        x *= 2.0

    double(base[:, 1])
    double(base[0])
    assert np.array_equal(base, [[0.0, 4.0, 4.0], [3.0, 8.0, 5.0]])


def test_jit_of_arguments_that_share_memory() -> None:
    @sg.jit
    def shift(a: Any, b: Any) -> Any:
        a[...] = b
        b += 1.0
        return np.sum(a)

    x, y = np.arange(4.0), np.arange(4.0)
    assert shift(x[1:], x[:-1]) == shift.f(y[1:], y[:-1])
    assert np.array_equal(x, y)


def test_no_tracer_is_left_in_a_container() -> None:
    state: dict[str, Any] = {"x": 1.0}
    grown: list[Any] = []

    def f(x: Any) -> Any:
        state["x"] = 2.0
        grown.append(1)
        return x * state["x"]

    with pytest.warns(sg.RetraceWarning):
        assert sg.grad(f)(3.0) == 2.0
    assert type(state["x"]) is float


# --- backends --------------------------------------------------------------------------------------------------
def test_backends() -> None:
    assert sg.grad(np.sin, backend="numpy")(0.0) == 1.0
    sg.set_backend("numpy")
    with sg.use_backend("numpy"):
        assert sg.jit(np.sin, backend="numpy")(0.0) == 0.0
        assert sg.vjp(np.sin, 0.0, backend="numpy")[1](1.0) == (1.0,)
        assert sg.jvp(np.sin, (0.0,), (1.0,), backend="numpy")[1] == 1.0
        assert sg.linearize(np.sin, 0.0, backend="numpy")[1](1.0) == 1.0
        assert sg.hvp(np.sin, (0.0,), (1.0,), backend="numpy") == 0.0
    for call in (
        lambda: sg.set_backend("nump"),
        lambda: sg.use_backend("nump").__enter__(),
        lambda: sg.grad(np.sin, backend="nump")(0.0),
        lambda: sg.jvp(np.sin, (0.0,), (1.0,), backend="nump"),
    ):
        with pytest.raises(UnknownBackendError, match="nump"):
            call()
    assert sg.grad(np.sin)(0.0) == 1.0


def test_the_environment_chooses_the_backend() -> None:
    program = "import srcgrad as sg, numpy as np; print(sg.grad(np.sin)(0.0))"
    for name, code in (("numpy", 0), ("nonsense", 1)):
        environment = {**os.environ, "SRCGRAD_BACKEND": name}
        found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        assert found.returncode == code, found.stderr
        assert found.stdout.strip() == "1.0" if code == 0 else "nonsense" in found.stderr


# --- threads -----------------------------------------------------------------------------------------------------
def in_threads(work: Callable[[int], Any], count: int = 8) -> list[Any]:
    barrier, found = threading.Barrier(count), [None] * count

    def run(k: int) -> None:
        barrier.wait()
        try:
            found[k] = work(k)
        except BaseException as error:
            found[k] = error  # type: ignore[call-overload]

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_eight_threads_with_the_same_first_call() -> None:
    for _ in range(5):
        sg.clear_caches()
        gradient = sg.grad(lambda x: np.sum(np.sin(x) ** 2) + sg.grad(lambda y: np.sum(x * y**2))(x)[0])
        expected = sg.jacfwd(gradient.f)(X)
        sg.clear_caches()
        for found in in_threads(lambda k, gradient=gradient: gradient(X)):
            np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_eight_threads_with_different_work() -> None:
    def work(k: int) -> list[Any]:
        scale = float(k + 1)
        results = []
        for _ in range(20):
            results.append(sg.grad(lambda x: scale * np.sum(x**3))(X + k)[0] / (3 * scale * (X[0] + k) ** 2))
            results.append(sg.hessian(lambda x: scale * np.sum(x[: k % 3 + 1] ** 2))(X)[0, 0] / (2 * scale))
            results.append(sg.vmap(lambda x: x * scale)(X)[1] / (2 * scale))
        return results

    for found in in_threads(work):
        np.testing.assert_allclose(found, np.ones(60), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_eight_threads_in_a_function_that_is_traced_at_each_call() -> None:
    def f(x: Any) -> Any:
        return x**2 if x > 0 else -(x**3)

    gradient = sg.grad(f)
    for k, found in enumerate(in_threads(lambda k: gradient(float(k - 4)))):
        x = k - 4.0
        assert found == (2 * x if x > 0 else -3 * x**2)


def test_backends_are_chosen_per_thread() -> None:
    def work(k: int) -> Any:
        with sg.use_backend("numpy"):
            return sg.grad(np.sin)(0.0)

    assert in_threads(work) == [1.0] * 8


# --- pickle and deepcopy -----------------------------------------------------------------------------------------
@sg.grad
def decorated(x: Any) -> Any:
    return np.sum(x**3)


@sg.jit
def compiled(x: Any) -> Any:
    return np.sum(x**3)


@sg.custom_jvp
def ruled(x: Any) -> Any:
    return x**3


@ruled.defjvp
def ruled_rule(primals: Any, tangents: Any) -> Any:
    return primals[0] ** 3, 7.0 * tangents[0]


@sg.checkpoint
def checkpointed(x: Any) -> Any:
    return x**3


def plain(x: Any, y: Any = 1.0) -> Any:
    return np.sum(x**3 * y)


TRANSFORMED: dict[str, Any] = {
    "decorated": decorated,
    "compiled": compiled,
    "grad": sg.grad(plain),
    "argnums": sg.value_and_grad(plain, argnums=(0,)),
    "nested": sg.jacfwd(sg.grad(plain)),
    "vmap": sg.vmap(sg.grad(plain), in_axes=0),
    "hessian": sg.hessian(plain),
    "of a decorated one": sg.jacobian(decorated),
    "of a custom rule": sg.vmap(sg.grad(ruled)),
    "a checkpoint": checkpointed,
    "a custom rule": ruled,
    "of a checkpoint": sg.vmap(sg.grad(checkpointed)),
    "a checkpoint made of a function": sg.checkpoint(plain),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])
def test_copies(name: str, copier: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or sys.modules[plain.__module__])
    f = TRANSFORMED[name]
    expected = f(X)
    other = copier(f)
    found = other(X)
    assert type(found) is type(expected)
    for one, two in zip(
        np.atleast_1d(np.asarray(found, object)), np.atleast_1d(np.asarray(expected, object)), strict=True
    ):
        np.testing.assert_allclose(np.asarray(one, float), np.asarray(two, float))
    assert other.__name__ == f.__name__


def test_deep_copies_of_methods_have_their_own_state() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = np.ones(3)

        def loss(self, x: Any) -> Any:
            return np.sum(self.w * x**2)

    model = Model()
    gradient = sg.grad(model.loss)
    first = gradient(X)
    other = copy.deepcopy(gradient)
    model.w[...] = 5.0
    np.testing.assert_allclose(first, 2 * X)
    np.testing.assert_allclose(gradient(X), 10 * X)
    np.testing.assert_allclose(other(X), 2 * X)
