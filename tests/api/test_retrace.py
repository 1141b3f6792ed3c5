"""Functions with Python control flow on traced values: traced again at each call, right under every transform."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import ConcretizationError
from srcgrad.paths import LIMIT, PATIENCE

pytestmark = pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")

X = np.array([0.5, -1.5, 2.5])
V = np.array([1.0, 0.5, -2.0])
KEPT: dict[str, Any] = {"count": 0, "seen": []}


# Each function of the table maps R^3 to R, and has at X the gradient and the Hessian (its diagonal) given beside it.
def branch(x: Any) -> Any:
    if np.sum(x) > 0:
        return np.sum(x**3)
    return np.sum(x)


def chain_of_branches(x: Any) -> Any:
    total = 0.0
    for k in range(3):
        if x[k] > 2:
            total = total + x[k] ** 3
        elif x[k] < 0:
            total = total - x[k] ** 2
        else:
            total = total + 4.0 * x[k]
    return total


def loop_until_small(x: Any) -> Any:
    steps = 0
    while np.max(np.abs(x)) > 1.0:
        x = x / 2.0
        steps += 1
    return np.sum(x**2) * steps


def loop_with_break(x: Any) -> Any:
    total = 0.0
    for part in x:
        if part < 0:
            break
        total = total + part**2
    else:
        total = total * 100.0
    return total


def recursion(x: Any) -> Any:
    def halve(y: Any) -> Any:
        return y**2 if y < 1 else halve(y / 2.0)

    return halve(x[0]) + halve(x[2])


def chosen_elements(x: Any) -> Any:
    return np.sum(np.sort(x[x > 0]) ** 2)


def chosen_assignment(x: Any) -> Any:
    y = x * 2.0
    y[y < 0] = 1.0
    return np.sum(y**2)


def shape_from_data(x: Any) -> Any:
    n = int(np.sum(x > 0))
    return np.sum(np.ones(n)) * np.sum(x**2)


def appends(x: Any) -> Any:
    parts = []
    for part in x:
        if part > 0:
            parts.append(part * part)
    return sum(parts)


def dictionary(x: Any) -> Any:
    state = {"total": 0.0, "positive": 0}
    for part in x:
        state["total"] = state["total"] + part**2
        state["positive"] += int(part > 0)
    return state["total"] * state["positive"]


def prints(x: Any) -> Any:
    print("x:", x, "first:", x[0], f"{x[1]:.2f}")
    return np.sum(x**2)


def index_from_value(x: Any) -> Any:
    return x[int(x[2])] ** 2 * 3.0


def index_from_argmax(x: Any) -> Any:
    table = [2.0, 3.0, 5.0]
    return x[np.argmax(x)] ** 2 * table[np.argmax(x)]


def handles_errors(x: Any) -> Any:
    try:
        if x[0] < 1:
            raise ValueError("small")
        return np.sum(x)
    except ValueError:
        return np.sum(x**2)
    finally:
        KEPT["count"] += 1


def sorts_in_python(x: Any) -> Any:
    largest = sorted(x, key=lambda part: -part)[0]
    return largest**2 + min(x) ** 2 + max(x[0], x[1])


def chained_comparison(x: Any) -> Any:
    return np.sum(x**2) if -2 < x[1] < 0 and x[0] == 0.5 else np.sum(x)


def conditional_in_place(x: Any) -> Any:
    y = x.copy()
    if y[0] > 0:
        y[1:] *= 2.0
    y += x
    return np.sum(y**2)


def writes_its_argument(x: Any) -> Any:
    if x[0] > 0:
        x[0] = x[1] * 2.0
    x *= 2.0
    return np.sum(x**2)


def mutates_state(x: Any) -> Any:
    KEPT["count"] += 1
    return np.sum(x**2) * (2.0 if KEPT["count"] else 0.0)


def newton(x: Any) -> Any:
    """The square root of the sum of squares by iteration: differentiated through its steps."""
    target = np.sum(x**2)
    root = target
    while abs(root * root - target) > 1e-13:
        root = 0.5 * (root + target / root)
    return root


def with_helper_objects(x: Any) -> Any:
    class Counter:
        def __init__(self) -> None:
            self.total = 0.0

        def add(self, value: Any) -> None:
            self.total = self.total + value**2

    counter = Counter()
    for part in x:
        counter.add(part)
    return counter.total


def walrus_and_all(x: Any) -> Any:
    if (total := np.sum(x)) > 0 and all(part > -2 for part in x) and any(x > 1):
        return total**2
    return total


P = (X > 0).astype(float)
NORM = float(np.sqrt(np.sum(X**2)))
TABLE: dict[Callable[..., Any], tuple[Any, Any]] = {
    branch: (3 * X**2, np.diag(6 * X)),
    chain_of_branches: (np.array([4.0, 3.0, 3 * 2.5**2]), np.diag([0.0, -2.0, 15.0])),
    loop_until_small: (2 * 2 * X / 16, np.diag(np.full(3, 4 / 16))),
    loop_with_break: (np.array([1.0, 0.0, 0.0]), np.diag([2.0, 0.0, 0.0])),
    recursion: (np.array([1.0, 0.0, 2 * 2.5 / 16]), np.diag([2.0, 0.0, 2 / 16])),
    chosen_elements: (2 * X * P, np.diag(2 * P)),
    chosen_assignment: (8 * X * P, np.diag(8 * P)),
    shape_from_data: (4 * X, np.diag(np.full(3, 4.0))),
    appends: (2 * X * P, np.diag(2 * P)),
    dictionary: (4 * X, np.diag(np.full(3, 4.0))),
    prints: (2 * X, 2 * np.eye(3)),
    index_from_value: (np.array([0.0, 0.0, 15.0]), np.diag([0.0, 0.0, 6.0])),
    index_from_argmax: (np.array([0.0, 0.0, 25.0]), np.diag([0.0, 0.0, 10.0])),
    handles_errors: (2 * X, 2 * np.eye(3)),
    sorts_in_python: (np.array([1.0, -3.0, 5.0]), np.diag([0.0, 2.0, 2.0])),
    chained_comparison: (2 * X, 2 * np.eye(3)),
    conditional_in_place: (np.array([8.0, 18.0, 18.0]) * X, np.diag([8.0, 18.0, 18.0])),
    writes_its_argument: (np.array([0.0, 40.0, 8.0]) * X, np.diag([0.0, 40.0, 8.0])),
    mutates_state: (4 * X, 4 * np.eye(3)),
    newton: (X / NORM, np.eye(3) / NORM - np.outer(X, X) / NORM**3),
    with_helper_objects: (2 * X, 2 * np.eye(3)),
    walrus_and_all: (np.full(3, 3.0), np.full((3, 3), 2.0)),
}
FUNCTIONS = pytest.mark.parametrize("f", list(TABLE), ids=lambda f: f.__name__)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@FUNCTIONS
def test_first_derivatives(f: Any) -> None:
    gradient, _ = TABLE[f]
    x = X.copy()
    value = f(X.copy())
    for _ in range(2):
        close(sg.grad(f)(x), gradient)
        close(sg.jacfwd(f)(x), gradient)
        close(sg.jacrev(f)(x), gradient)
        close(sg.jacobian(f)(x), gradient)
    found, slope = sg.value_and_grad(f)(x)
    close(found, value)
    close(slope, gradient)
    assert np.array_equal(x, X)


@FUNCTIONS
def test_directional_derivatives(f: Any) -> None:
    gradient, hessian = TABLE[f]
    x, v = X.copy(), V.copy()
    value = f(X.copy())
    out, pushed = sg.jvp(f, (x,), (v,))
    close(out, value)
    close(pushed, gradient @ V)
    out, pull = sg.vjp(f, x)
    close(out, value)
    close(pull(2.0)[0], 2 * gradient)
    close(pull(1.0)[0], gradient)
    out, linear = sg.linearize(f, x)
    close(out, value)
    close(linear(v), gradient @ V)
    close(linear(2 * v), 2 * gradient @ V)
    close(sg.hvp(f, (x,), (v,)), hessian @ V)
    assert np.array_equal(x, X)
    assert np.array_equal(v, V)


@FUNCTIONS
def test_second_derivatives_in_every_mix(f: Any) -> None:
    _, hessian = TABLE[f]
    x = X.copy()
    close(sg.hessian(f)(x), hessian)
    for outer in (sg.jacfwd, sg.jacrev):
        for inner in (sg.jacfwd, sg.jacrev, sg.grad):
            close(outer(inner(f))(x), hessian)
    assert np.array_equal(x, X)


@FUNCTIONS
def test_under_other_transforms(f: Any) -> None:
    gradient, hessian = TABLE[f]
    x = X.copy()
    value = f(X.copy())
    close(sg.jit(f)(X.copy()), value)
    close(sg.jit(sg.grad(f))(x), gradient)
    close(sg.grad(sg.jit(f))(x), gradient)
    close(sg.grad(lambda x: 2.0 * f(x * 1.0))(x), 2 * gradient)
    close(sg.hessian(sg.checkpoint(f))(x), hessian)
    assert np.array_equal(x, X)


@FUNCTIONS
def test_mapped(f: Any) -> None:
    other = np.array([0.25, 0.5, 2.75])
    points = np.stack([X, other, X])
    kept = points.copy()
    close(sg.vmap(f)(points), [f(point.copy()) for point in points])
    close(sg.vmap(sg.grad(f))(points), [sg.grad(f)(point) for point in points])
    close(sg.vmap(f, in_axes=1)(points.T), [f(point.copy()) for point in points])
    close(sg.grad(lambda p: np.sum(sg.vmap(f)(p)))(points), [sg.grad(f)(point) for point in points])
    close(sg.jacfwd(lambda p: np.sum(sg.vmap(f)(p)))(points), [sg.grad(f)(point) for point in points])
    close(sg.vmap(sg.hessian(f))(points)[0], TABLE[f][1])
    assert np.array_equal(points, kept)


@FUNCTIONS
def test_numbers_given_to_the_function_are_numpys(f: Any) -> None:
    """A function of which nothing is differentiated runs on its arguments as they are."""
    close(sg.grad(lambda s, x: s * f(x * 1.0))(2.0, X.copy()), f(X.copy()))


# --- custom rules ----------------------------------------------------------------------------------------------------
def with_jvp_rule() -> Any:
    @sg.custom_jvp
    def f(x: Any) -> Any:
        return np.sum(x**2) if x[0] > 0 else np.sum(x)

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        if x[0] > 0:
            return f(x), np.sum(3.0 * x * t)
        return f(x), np.sum(t)

    return f


def with_vjp_rule() -> Any:
    @sg.custom_vjp
    def f(x: Any) -> Any:
        return np.sum(x**2) if x[0] > 0 else np.sum(x)

    def forward(x: Any) -> Any:
        return f(x), (x, bool(x[0] > 0))

    def backward(residuals: Any, cotangent: Any) -> Any:
        x, positive = residuals
        return (3.0 * x * cotangent if positive else cotangent * np.ones(3),)

    f.defvjp(forward, backward)
    return f


@pytest.mark.parametrize("make", [with_jvp_rule, with_vjp_rule])
def test_custom_rules_that_branch(make: Any) -> None:
    for x, slope, curvature in ((X, 3.0 * X, 3.0 * np.eye(3)), (-X, np.ones(3), np.zeros((3, 3)))):
        f = make()
        close(sg.grad(f)(x), slope)
        close(sg.jacfwd(f)(x), slope)
        close(sg.hessian(f)(x), curvature)
        close(sg.jvp(f, (x,), (V,))[1], slope @ V)
        close(sg.vjp(f, x)[1](2.0)[0], 2.0 * slope)
        close(sg.grad(sg.jit(f))(x), slope)
        close(sg.grad(lambda x: f(x) if x[0] > 0 else f(x) * 1.0)(x), slope)  # noqa: B023
        close(sg.vmap(sg.grad(f))(np.stack([x, x])), [slope, slope])


# --- other shapes of arguments and results ---------------------------------------------------------------------------
def test_results_whose_shape_depends_on_values() -> None:
    def positive(x: Any) -> Any:
        return x[x > 0] ** 2

    close(sg.jacfwd(positive)(X), [[1.0, 0.0, 0.0], [0.0, 0.0, 5.0]])
    close(sg.jacrev(positive)(X), [[1.0, 0.0, 0.0], [0.0, 0.0, 5.0]])
    close(sg.jit(positive)(X), [0.25, 6.25])
    close(sg.jit(positive)(-X), [2.25])
    out, pull = sg.vjp(positive, X)
    assert out.shape == (2,)
    close(pull(np.array([1.0, 2.0]))[0], [1.0, 0.0, 10.0])
    assert sg.jacfwd(positive)(-np.abs(X)).shape == (0, 3)


def test_trees_static_arguments_and_aux() -> None:
    def f(parameters: Any, n: int, *, scale: float) -> Any:
        total = parameters["w"] @ X
        if total > 0:
            return total**n * scale, {"total": total, "positive": True, "n": n}
        return parameters["b"] * total, {"total": total, "positive": False, "n": n}

    parameters = {"w": np.array([1.0, 0.0, 1.0]), "b": 2.0}
    gradient, aux = sg.grad(f, has_aux=True)(parameters, 2, scale=3.0)
    close(gradient["w"], 2 * 3.0 * 3.0 * X)
    assert gradient["b"] == 0.0
    assert aux == {"total": 3.0, "positive": True, "n": 2}
    (value, aux), gradient = sg.value_and_grad(f, has_aux=True)({"w": -parameters["w"], "b": 2.0}, 2, scale=3.0)
    assert (value, aux["positive"], gradient["b"]) == (-6.0, False, -3.0)
    close(gradient["w"], 2.0 * X)


def test_arguments_that_are_not_differentiated_stay_what_they_are() -> None:
    kinds: list[type] = []

    def f(x: Any, table: Any, number: Any) -> Any:
        kinds.extend([type(table), type(number)])
        return x * table[3] * number

    assert sg.grad(f)(2.0, np.arange(4.0), 5.0) == 15.0
    assert kinds == [np.ndarray, float]


def test_jit_writes_into_the_callers_arrays_and_derivatives_do_not() -> None:
    def f(x: Any) -> Any:
        if x[0] > 0:
            x[0] = 10.0
        return np.sum(x)

    x = X.copy()
    assert np.array_equal(sg.grad(f)(x), [0.0, 1.0, 1.0])
    assert np.array_equal(x, X)
    assert sg.jit(f)(x) == 11.0
    assert np.array_equal(x, [10.0, -1.5, 2.5])


def test_what_is_printed_is_what_numpy_prints(capsys: pytest.CaptureFixture[str]) -> None:
    prints(X)
    expected = capsys.readouterr().out
    for derivative in (sg.grad(prints), sg.jacfwd(prints), sg.hessian(prints), sg.jit(prints)):
        derivative(X)
        assert capsys.readouterr().out == expected


def test_texts_of_values_are_never_stale() -> None:
    def f(x: Any) -> Any:
        return x * len(f"{x:.1f}") * {"1.0": 2.0, "10.0": 3.0}[str(x)]

    assert sg.grad(f)(1.0) == 6.0
    assert sg.grad(f)(10.0) == 12.0


def test_both_branches_are_taken_by_one_object() -> None:
    def f(x: Any) -> Any:
        return x**2 if x > 0 else -3.0 * x

    g, h, j = sg.grad(f), sg.jit(f), sg.jacfwd(f)
    for x in (1.0, -1.0, 2.0, -2.0):
        expected = 2 * x if x > 0 else -3.0
        assert g(x) == j(x) == expected
        assert h(x) == f(x)


def test_memory_and_time_of_a_long_loop_stay_linear() -> None:
    def f(x: Any) -> Any:
        k = 0
        while x < 1e6 and k < 3000:
            x = x * 1.0001
            k += 1
        return x

    np.testing.assert_allclose(sg.grad(f)(1.0), 1.0001**3000, rtol=1e-10)


# --- what a call costs that has no program ---------------------------------------------------------------------------
def counts_its_calls(x: Any) -> Any:
    counts_its_calls.count += 1  # type: ignore[attr-defined]
    return np.sum(x**2)


counts_its_calls.count = 0  # type: ignore[attr-defined]


def test_a_function_that_cannot_be_watched_is_looked_at_once_for_each_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was three times, and each time all of its bytecode was decoded: 300 times what the function itself took."""
    looked: list[bool] = []
    analyse = sg.cache.analyse

    def counted(function: Any, floats_static: bool, converted: bool, classes: Any) -> Any:
        looked.append(converted)
        return analyse(function, floats_static, converted, classes)

    value = sg.jit(counts_its_calls)
    assert value(X) == counts_its_calls(X)
    monkeypatch.setattr(sg.cache, "analyse", counted)
    monkeypatch.setattr(sg.tracing.bytecode.dis, "get_instructions", None)
    before = counts_its_calls.count  # type: ignore[attr-defined]
    assert value(X) == 8.75
    assert len(looked) <= 5 and counts_its_calls.count == before + 1  # type: ignore[attr-defined]


LEAST = 0.0


def places_above(x: Any) -> Any:
    return np.nonzero(x > LEAST)[0]


def above(x: Any) -> Any:
    return x[x > LEAST]


@pytest.mark.parametrize("f", [places_above, above])
def test_calls_of_jit_that_have_no_program_do_not_look_for_one(f: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They took 80 to 170 us each: several ways of tracing were looked up, and the paths of each."""
    random, value = np.random.default_rng(3), sg.jit(f)
    for _ in range(PATIENCE + LIMIT + 2):
        x = random.normal(size=40)
        np.testing.assert_array_equal(value(x), f(x))
    with monkeypatch.context() as patch:
        patch.setattr(type(value), "dispatch", None)
        for _ in range(3):
            x = random.normal(size=40)
            np.testing.assert_array_equal(value(x), f(x))
    y = random.normal(size=41)
    np.testing.assert_array_equal(value(y), f(y))  # a signature of which nothing is settled


def test_what_is_settled_of_a_call_is_settled_for_what_the_function_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that reads something else may have a program, and its copies for other objects have their own."""

    def make(flag: bool) -> Any:
        def f(x: Any) -> Any:
            return np.sin(x) if flag else np.nonzero(x)[0]

        return f

    x = np.array([0.5, 0.0, 2.0])
    value = sg.jit(make(False))
    for _ in range(3):
        assert value(x).tolist() == [0, 2]
    np.testing.assert_array_equal(sg.jit(make(True))(x), np.sin(x))
    value.f.__closure__[0].cell_contents = True
    np.testing.assert_allclose(value(x), np.sin(x), rtol=1e-15)
    np.testing.assert_allclose(value(x), np.sin(x), rtol=1e-15)
    with pytest.raises(sg.errors.ArgumentError, match="strict"):
        for _ in range(3):
            sg.jit(make(False), strict=True)(x)


class Phase:
    """A class that is told what is assigned: what Python calls of it by itself is not converted."""

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def __init__(self, state: Any) -> None:
        self.state = state

    @property
    def pressure(self) -> Any:
        try:
            return self.state * math.exp(self.state)
        except:  # noqa: E722
            return self.state * 1e300

    @property
    def whole(self) -> Any:
        try:
            return float(self.state)
        except TypeError:
            return np.sum(self.state**2)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_what_the_users_handler_makes_of_a_refused_number_is_no_derivative() -> None:
    assert sg.jit(lambda x: Phase(x).pressure)(2.0) == Phase(2.0).pressure
    for transform in (sg.grad, sg.value_and_grad, sg.jacfwd):
        with pytest.raises(ConcretizationError, match="would lose its derivative") as caught:
            transform(lambda x: Phase(x).pressure)(2.0)
        assert "math.exp(self.state)" in str(caught.value)
    np.testing.assert_array_equal(sg.grad(lambda x: Phase(x).whole)(np.ones(3)), np.full(3, 2.0))


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("made", [lambda x: memoryview(x), lambda x: memoryview(x).toreadonly()])
def test_memory_that_has_no_hash_is_read_at_each_call(made: Callable[[Any], Any], given: bool) -> None:
    """``hash`` raises a ValueError of it, which was an error of srcgrad's own."""
    memory = np.array([2.0, 1.0])
    view = made(memory)
    slope = sg.grad((lambda x, view: x * x * view[0]) if given else (lambda x: x * x * view[0]))
    for _ in range(3):
        memory[0] += 1.0
        assert slope(*((3.0, view) if given else (3.0,))) == 6.0 * memory[0]
