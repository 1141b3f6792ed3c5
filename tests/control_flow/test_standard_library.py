"""Functions of the standard library that call functions, hand on iterators or sum numbers are parts of programs."""

from __future__ import annotations

import contextlib
import functools
import heapq
import inspect
import itertools
import math
import operator
import statistics
import types
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.special

import srcgrad as sg
from tests.control_flow.traced_once import require_one_program

SC = 3.0


@functools.singledispatch
def area(s: Any, x: Any) -> Any:
    return x[0]


@area.register
def _(s: int, x: Any) -> Any:
    return x[0] * s


@area.register(str)
def _(s: Any, x: Any) -> Any:
    return x[1] * len(s) * SC


@area.register(float)
def _(s: Any, x: Any) -> Any:
    return s * x[1]


@area.register(np.ndarray)
def _(s: Any, x: Any) -> Any:
    total = 0.0
    for v in s * x:
        total += v
    return total


SUM = operator.methodcaller("sum", axis=0)


@functools.total_ordering
class Num:
    def __init__(self, v: Any) -> None:
        self.v = v

    def __eq__(self, o: Any) -> bool:
        return self.v == o.v

    def __lt__(self, o: Any) -> bool:
        return self.v < o.v


class Powers:
    def m(self, y: Any, k: int = 2) -> Any:
        t = 0.0
        for j in range(k):
            t = t + y * j
        return t


MO = Powers()


def dispatched(x: Any) -> Any:
    return area(3, x) * area("ab", x)


def dispatched_by_arrays(x: Any) -> Any:
    return area(x, x) + area(2.0, x)


def compared(x: Any) -> Any:
    s = sorted([x[1], x[0]], key=functools.cmp_to_key(lambda a, b: -1 if a < b else 1))
    return s[0] * 3.0 + s[1] * x[0]


def compared_constants(x: Any) -> Any:
    return sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: a - b))[0] * x[0] * x[1]


def chained(x: Any) -> Any:
    return sum(itertools.chain.from_iterable([[x[0], x[1]], [x[0] * x[1]]]))


def teed(x: Any) -> Any:
    a, b = itertools.tee([x[0], x[1], x[0] * x[1]])
    next(b)
    return sum(u * v for u, v in zip(a, b, strict=False))


def grouped(x: Any) -> Any:
    total = 0.0
    for k, g in itertools.groupby([(0, x[0]), (0, x[1]), (1, x[0])], key=lambda p: p[0]):
        total = total + (k + 1) * sum(v for _, v in g)
    return total * x[1]


def calls_methods(x: Any) -> Any:
    return operator.methodcaller("sum")(x) * operator.methodcaller("dot", x)(x)


def calls_a_captured_method(x: Any) -> Any:
    return SUM(x) * x[1]


def totally_ordered(x: Any) -> Any:
    a, b = Num(x[0]), Num(x[1])
    return (a.v if a >= b else b.v * 2.0) * x[0]


def exitstack(x: Any) -> Any:
    with contextlib.ExitStack() as s:
        s.enter_context(np.errstate(divide="ignore"))
        s.enter_context(contextlib.nullcontext())
        return x[0] * x[1]


def exitstack2(x: Any) -> Any:
    out = []
    with contextlib.ExitStack() as s:
        s.callback(out.append, x[0])
        y = x[0] * x[1]
    return y * out[0]


def mean_of_an_array(x: Any) -> Any:
    return statistics.mean(x) * x[0]


def mean_of_numbers(x: Any) -> Any:
    return statistics.mean([x[0], x[1] ** 2]) * x[0]


def float_mean(x: Any) -> Any:
    return statistics.fmean([x[0], x[1] ** 2]) * x[0]


def stdev(x: Any) -> Any:
    return statistics.stdev([x[0], x[1] ** 2, x[0] * x[1]])


def variance(x: Any) -> Any:
    return statistics.variance([float(x[0]), float(x[1]) ** 2, 1.0])


def largest(x: Any) -> Any:
    return sum(heapq.nlargest(2, [x[1], x[0], x[0] * x[1]])) + heapq.nsmallest(1, list(x))[0]


def merged(x: Any) -> Any:
    return sum(a * (k + 1) for k, a in enumerate(heapq.merge([x[0]], [x[1]])))


def calls_a_method_of_the_users(x: Any) -> Any:
    return operator.methodcaller("m", x[0], k=3)(MO) * x[1]


def term(p: Any, d: Any, times: Any = 1.0) -> Any:
    return scipy.special.logsumexp(p * d) * times


TERM = functools.partial(term, d=np.array([1.0, -0.5]))


def maps_partials(x: Any) -> Any:
    """What a partial calls is converted where Python calls it."""
    data = [x, x[::-1], np.array([1.0, 2.0])]
    found = sum(map(functools.partial(term, x), data)) + np.sum([*map(functools.partial(term, times=x[0], d=x), data)])
    again = functools.partial(functools.partial(term, x), times=2.0)
    return found + list(map(again, data))[-1] + max(map(TERM, data)) + sum(map(functools.partial(math.pow, 2.0), x))


def hands_on_partials(x: Any) -> Any:
    near = functools.partial(term, np.array([0.3, 0.1]))
    kept = filter(functools.partial(operator.lt, 1.0), x)
    return (sorted([x, 2.0 * x], key=near)[0].sum() + sum(kept) * min([x, x + 1.0], key=near)[0]
            + functools.reduce(functools.partial(term, times=0.5), [x, x * 2.0, x[::-1]]))  # fmt: skip


def curve(x: Any, a: Any, b: float = 2.0) -> Any:
    return a * x[0] + b * x[1] ** 2


def by_parameters(x: Any, rate: Any = inspect.Parameter.empty) -> Any:
    given = inspect.signature(curve).parameters
    known = {name: p.default for name, p in given.items() if p.default is not inspect.Parameter.empty}
    count = len(inspect.getfullargspec(curve).args) if rate is inspect.Parameter.empty else rate
    return curve(x, *[x[1]] * (len(given) - 1 - len(known)), **known) * count


RATES: dict[str, Any] = {"scale": 2.0, "parts": np.array([1.0, 3.0]), "order": 2}
VIEW = types.MappingProxyType(RATES)
BY_PLACE = types.MappingProxyType({0: 1.5, 1: 4.0})


class Viewing:
    known: ClassVar[Any] = VIEW

    def of(self, x: Any) -> Any:
        return np.sum(self.known["parts"] * x) * VIEW.get("missing", 2.0)


VIEWING = Viewing()


def of_views(x: Any) -> Any:
    made = types.MappingProxyType({"x": x[0], **VIEW})
    total = sum(np.sum(value * x) for _, value in VIEW.items()) * VIEWING.of(x) * Viewing().of(x)
    return total + made["x"] ** VIEW["order"] * BY_PLACE[int(np.argmax(x))] * (2.0 if "scale" in VIEW else 1.0)


FUNCTIONS = [
    by_parameters,
    of_views,
    maps_partials,
    hands_on_partials,
    dispatched,
    dispatched_by_arrays,
    compared,
    compared_constants,
    chained,
    teed,
    grouped,
    calls_methods,
    calls_a_captured_method,
    totally_ordered,
    exitstack,
    exitstack2,
    mean_of_an_array,
    mean_of_numbers,
    float_mean,
    stdev,
    variance,
    largest,
    merged,
    calls_a_method_of_the_users,
]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_it_is_traced_once(f: Callable[..., Any], backend: str) -> None:
    require_one_program(f, backend, np.array([1.5, 2.5]), np.array([3.0, 2.0]))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_implementations_and_what_they_read_may_change(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([1.5, 2.5])
    run = sg.jit(dispatched, backend=backend)
    for value in (3.0, 7.0):
        monkeypatch.setitem(globals(), "SC", value)
        np.testing.assert_allclose(run(x), dispatched(x), rtol=1e-12)
    before = area.registry[int]
    try:
        area.register(int)(lambda s, x: 10.0 * s * x[0])
        np.testing.assert_allclose(run(x), dispatched(x), rtol=1e-12)
    finally:
        area.register(int)(before)
    np.testing.assert_allclose(run(x), dispatched(x), rtol=1e-12)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_views_and_signatures_are_those_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([1.5, 2.5])
    run, other = sg.jit(of_views), sg.jit(by_parameters)
    for name, value in {"scale": 5.0, "parts": np.ones(2), "order": 3, "more": 1.0}.items():
        monkeypatch.setitem(RATES, name, value)
        np.testing.assert_allclose(run(x), of_views(x), rtol=1e-12)
    for curved in ((lambda x, a, b=3.0: a * x[0] + b), (lambda x, a, b=7.0: a * x[0] + b), (lambda x, a, b: a * b)):
        monkeypatch.setitem(globals(), "curve", curved)
        np.testing.assert_allclose(other(x), by_parameters(x), rtol=1e-12)


def annotated(x: Any, y: int = 2.0) -> Any:  # type: ignore[assignment]  # a float, which programs are given
    return x * y


def by_annotations(x: Any) -> Any:
    found = inspect.signature(annotated)
    return x * len(found.parameters) * (3.0 if found.parameters["y"].annotation in (int, "int") else 5.0)


def test_signatures_have_annotations_and_what_overrides_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of functions had no annotations, and programs stayed when a signature was assigned."""
    slope = sg.grad(by_annotations)
    assert slope(1.0) == 6.0
    monkeypatch.setitem(annotated.__annotations__, "y", float)
    assert slope(1.0) == 10.0
    monkeypatch.setattr(annotated, "__signature__", inspect.signature(lambda y: y), raising=False)
    assert slope(1.0) == 5.0
    monkeypatch.undo()
    assert slope(1.0) == 6.0


def test_too_few_numbers_are_an_error() -> None:
    def f(x: Any) -> Any:
        return statistics.stdev([x[0]])

    with pytest.raises(statistics.StatisticsError, match="at least two"):
        sg.grad(f)(np.ones(2))


class Configured:
    def __init__(self, a: Any, b: Any = 2.0) -> None:
        self.a, self.b = a, b


def of_its_parameters(x: Any) -> Any:
    """As scikit-learn's estimators find theirs."""
    made = Configured(x)
    names = [*inspect.getfullargspec(made.__init__)[0][1:], *inspect.signature(made.__init__).parameters]
    return sum(made.__getattribute__(name) * (k + 1) for k, name in enumerate(names))


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_signatures_of_methods_are_those_that_were_written() -> None:
    assert of_its_parameters(3.0) == 24.0 and sg.grad(of_its_parameters)(3.0) == 4.0
