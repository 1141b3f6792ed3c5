"""Functions of a module that keep their results: one program where what they give never changes."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([0.5, 2.0])
FACTOR = 3
WEIGHTS = np.array([1.0, 2.0])


@functools.cache
def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@functools.lru_cache(maxsize=8)
def coefficient(n: int, k: int) -> float:
    return math.comb(n, k) / fibonacci(n)


@functools.cache
def squared(x: Any) -> Any:
    return x * x


@functools.cache
def factor(k: int) -> int:
    return k * FACTOR


@functools.cache
def weight(k: int) -> Any:
    return WEIGHTS[k]


@functools.cache
def settings() -> dict[str, float]:
    return {"scale": 2.0}


def of_numbers(x: Any) -> Any:
    return sum(coefficient(6, k) * np.sum(x**k) for k in range(4)) * fibonacci(12)


def of_traced_values(x: Any) -> Any:
    return squared(x[0]) * x[1] + coefficient(4, 2)


def of_a_global(x: Any) -> Any:
    return np.sum(x) * factor(2)


def of_a_captured_array(x: Any) -> Any:
    return np.sum(x) * weight(1)


def of_what_changes(x: Any) -> Any:
    return np.sum(x) * settings()["scale"]


def that_clears(x: Any) -> Any:
    factor.cache_clear()
    return np.sum(x) * factor(2)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize(
    "f", [of_numbers, of_traced_values, of_a_global, of_a_captured_array, of_what_changes, that_clears]
)
def test_cached_results_are_those_of_python(f: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    derivative = sg.value_and_grad(f)

    def expected() -> Any:
        return X[0] ** 2 * X[1] + coefficient(4, 2) if f is of_traced_values else f(X)

    def check() -> None:
        for _ in range(5):
            assert derivative(X)[0] == pytest.approx(expected(), rel=1e-12)

    for function in (factor, weight, settings):
        function.cache_clear()
    check()
    assert ("One program" in sg.explain(derivative)(X)["how it runs"]) == (f is not that_clears)
    monkeypatch.setitem(globals(), "FACTOR", 4)
    monkeypatch.setitem(settings(), "scale", 5.0)
    WEIGHTS[1] += 3.0
    check()
    factor.cache_clear()
    weight.cache_clear()
    check()


class Rule:
    """Methods that keep their results."""

    def __init__(self, weight: Any = 1.0) -> None:
        self.weight = weight

    @functools.lru_cache(maxsize=None)  # noqa: B019, UP033
    def weighted(self, x: Any) -> Any:
        return x * x * self.weight

    @functools.cache  # noqa: B019
    def fibonacci(self, n: int) -> int:
        return n if n < 2 else self.fibonacci(n - 1) + self.fibonacci(n - 2)

    @functools.cache  # noqa: B019
    def nodes(self, n: int) -> Any:
        return np.polynomial.legendre.leggauss(n)

    @staticmethod
    @functools.cache
    def power(x: Any, n: int) -> Any:
        return x**n

    @property
    @functools.cache  # noqa: B019
    def tripled(self) -> Any:
        return 3.0 * self.weight


RULE = Rule(2.0)


def of_an_object_made_here(x: Any) -> Any:
    return Rule().weighted(x) + Rule(x).weighted(x) + Rule(x).weighted(2.0)


def of_whole_numbers(x: Any) -> Any:
    return Rule().fibonacci(60) * x


def of_arrays(x: Any) -> Any:
    places, weights = Rule().nodes(4)
    return np.sum(weights * np.exp(x * places))


def without_an_object(x: Any) -> Any:
    return Rule.power(x, 3) + Rule().power(x, 2) * Rule(x).tripled


def of_an_object_outside(x: Any) -> Any:
    return RULE.weighted(x) * RULE.fibonacci(20)


def of_a_rule_that_changes(x: Any) -> Any:
    rule = Rule()
    before = rule.fibonacci(3)
    change(rule)
    return x * before * rule.fibonacci(3)


def change(rule: Any) -> None:
    rule.weight = 5.0


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    "f", [of_an_object_made_here, of_whole_numbers, of_arrays, without_an_object, of_an_object_outside,
          of_a_rule_that_changes],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_methods_that_keep_their_results(f: Callable[[Any], Any], backend: str) -> None:
    g = sg.value_and_grad(f, backend=backend)
    for x in (1.3, 1.4, 1.3):
        value, slope = g(x)
        assert value == pytest.approx(f(x), rel=1e-12)
        assert slope == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-6)
    one = f not in (of_an_object_outside, of_a_rule_that_changes)  # of which a traced value is asked
    assert ("One program" in sg.explain(g)(1.3)["how it runs"]) == one


def test_an_object_outside_that_changes_keeps_its_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python finds what an object gave before it was changed."""

    def f(x: Any) -> Any:
        return x * RULE.weighted(3.0)

    g = sg.grad(f)
    for _ in range(6):
        assert g(1.0) == RULE.weighted(3.0) == 18.0
    monkeypatch.setattr(RULE, "weight", 7.0)
    assert g(1.0) == RULE.weighted(3.0) == 18.0


@functools.lru_cache(maxsize=4)
def rule(n: int, kind: str = "legendre") -> tuple[Any, Any]:
    return np.polynomial.legendre.leggauss(n) if kind == "legendre" else (np.arange(float(n)), np.ones(n))


def quadrature(x: Any) -> Any:
    nodes, weights = rule(4)
    other = rule(3, kind="other")[0]
    return np.sum(weights * np.exp(x[0] * nodes)) + x[1] * np.sum(other)


def with_a_local_cache() -> Callable[[Any], Any]:
    factor = 2.0

    @functools.cache
    def ramp(n: int) -> Any:
        return factor * np.arange(float(n))

    def f(x: Any) -> Any:
        return np.sum(ramp(len(x)) * x * x)

    return f


class Steps:
    def __init__(self, width: float) -> None:
        self.width = width

    @functools.cache  # noqa: B019
    def matrix(self, n: int) -> Any:
        return self.width * np.eye(n)

    def loss(self, x: Any) -> Any:
        return np.sum((self.matrix(len(x)) @ x) ** 2)


def require_one_program(f: Any, g: Any) -> None:
    """``g``, the value and gradient of ``f``, gives at each of several calls what Python does, by one program."""
    for _ in range(6):
        value, slope = g(X)
        assert value == pytest.approx(f(X), rel=1e-12)
        for k, step in enumerate(np.eye(2) * 1e-6):
            assert slope[k] == pytest.approx((f(X + step) - f(X - step)) / 2e-6, rel=1e-5)
    assert "One program" in sg.explain(g)(X)["how it runs"]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    "f",
    [of_a_global, of_a_captured_array, of_what_changes, quadrature, with_a_local_cache(), Steps(2.0).loss],
    ids=["global", "captured array", "dict", "quadrature", "local", "method"],
)
def test_arrays_that_a_cache_keeps_are_read_at_each_call(f: Any, backend: str) -> None:
    """Also what is written into them between calls, and others since the cache was cleared."""
    g = sg.value_and_grad(f, backend=backend)

    def check() -> None:
        require_one_program(f, g)

    check()
    owner = getattr(f, "__self__", None)
    local = [cell.cell_contents for cell in getattr(f, "__closure__", None) or ()]
    kept = [rule(4)[1], *[cache(2) for cache in local], *([] if owner is None else [owner.matrix(2)])]
    for array in kept:
        array *= 3.0
    check()
    for cache in (factor, weight, settings, rule, Steps.matrix, *local):
        cache.cache_clear()
    if owner is not None:
        owner.width = 5.0
    check()


def test_a_cache_gives_what_an_equal_key_has_put_there() -> None:
    """As Python's, for which 2 and 2.0 are one key where it is of several arguments."""

    @functools.cache
    def doubled(n: Any, k: int) -> Any:
        return {"kind": 1.0 if type(n) is int else 7.0}

    def f(x: Any, n: Any) -> Any:
        return x * doubled(n, 1)["kind"]

    g = sg.grad(lambda x: f(x, 2))
    assert [g(1.0) for _ in range(5)] == [1.0] * 5
    doubled.cache_clear()
    doubled(2.0, 1)
    assert [g(1.0) for _ in range(5)] == [7.0] * 5


def test_what_a_cache_gives_is_written_into_as_in_python() -> None:
    """The next call finds it in the cache."""

    @functools.cache
    def table(n: int) -> Any:
        return np.zeros(n)

    def f(x: Any) -> Any:
        kept = table(2)
        kept += x
        return np.sum(kept * x)

    g = sg.jit(f)
    found = [g(X) for _ in range(6)]
    table.cache_clear()
    assert found == [f(X) for _ in range(6)]


def test_an_error_of_a_cached_function_is_that_of_python() -> None:
    limit = 3

    @functools.cache
    def nodes(n: int) -> Any:
        if n > limit:
            raise ZeroDivisionError("too many")
        return np.ones(n)

    def f(x: Any) -> Any:
        return np.sum(x * nodes(len(x)))

    g = sg.grad(f)
    for _ in range(5):
        np.testing.assert_array_equal(g(X), [1.0, 1.0])
    limit = 1
    nodes.cache_clear()
    with pytest.raises(ZeroDivisionError, match="too many"):
        g(X)


class Keeping:
    @functools.cache  # noqa: B019
    def scaled(self, x: Any) -> Any:
        return x * 2.0


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(squared(x)),
        lambda x: np.sum(squared((x[0], (x, 2.0)))[0]),
        lambda x: squared([x[0], 2.0])[0],
        lambda x: np.sum(squared(x=x)),
        lambda x: np.sum(Keeping().scaled(x)),
    ],
)
def test_arrays_are_no_keys_of_a_cache(f: Callable[[Any], Any], backend: str) -> None:
    with pytest.raises(TypeError, match="unhashable type") as expected:
        f(X)
    with pytest.raises(TypeError, match=str(expected.value)):
        sg.grad(f, backend=backend)(X)


def test_a_key_error_of_a_cache_is_handled_as_in_python() -> None:
    def f(x: Any) -> Any:
        try:
            return np.sum(squared(x))
        except TypeError:
            return np.sum(x * 3.0)

    np.testing.assert_array_equal(sg.grad(f)(X), [3.0, 3.0])
    assert squared(2.0) == sg.value_and_grad(lambda t: squared(t))(2.0)[0]


@dataclasses.dataclass(frozen=True)
class Grid:
    size: int
    width: float


class Named:
    def __init__(self, scale: float) -> None:
        self.scale = scale


@functools.cache
def laplacian(grid: Grid, order: int = 2) -> Any:
    return (np.eye(grid.size, k=1) - order * np.eye(grid.size)) / grid.width**2


@functools.cache
def doubled_scale(named: Named) -> float:
    return 2.0 * named.scale


GRIDS = {"now": Grid(2, 0.5)}
NAMED = Named(3.0)


def of_a_grid(x: Any) -> Any:
    return np.sum((laplacian(GRIDS["now"]) @ x) ** 2) + laplacian(GRIDS["now"], order=1)[0, 0] * np.sum(x)


def of_a_named_object(x: Any) -> Any:
    return np.sum(x * x) * doubled_scale(NAMED) * NAMED.scale


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_captured_objects_are_keys_of_a_cache(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what Python compares: the fields of records, else which object it is, whatever it holds by now."""
    laplacian.cache_clear()
    doubled_scale.cache_clear()
    derivatives = [(f, sg.value_and_grad(f, backend=backend)) for f in (of_a_grid, of_a_named_object)]

    def check() -> None:
        for f, g in derivatives:
            require_one_program(f, g)

    check()
    assert laplacian.cache_info().currsize == 2
    assert doubled_scale.cache_info().currsize == 1
    monkeypatch.setitem(GRIDS, "now", Grid(2, 0.25))
    monkeypatch.setattr(NAMED, "scale", 5.0)
    check()
    laplacian(Grid(2, 0.25))[...] *= 3.0
    doubled_scale.cache_clear()
    check()
    monkeypatch.setitem(globals(), "NAMED", Named(7.0))
    check()


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_object_that_the_function_changes_is_a_key_as_it_is_then() -> None:
    named = Named(3.0)

    def f(x: Any, changes: bool) -> Any:
        if changes:
            named.scale = 4.0
        return np.sum(x) * doubled_scale(named)

    g = sg.grad(f)
    for changes in (True, False, True, False, False, False, True, True, True):
        doubled_scale.cache_clear()
        named.scale = 3.0
        assert g(X, changes)[0] == (8.0 if changes else 6.0)
