"""Functions that are no single program: a program for each path, valid where Python gets the same answers."""

from __future__ import annotations

import gc
import math
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import srcgrad as sg
from srcgrad import paths
from srcgrad.cache import PROGRAMS
from srcgrad.tracing import guards
from srcgrad.tracing.jax_arrays import double_precision

SOURCES = {
    "branches": """
def f(x):
    if x[0] > 0:
        return np.sum(x ** 2) if x[1] > 0 else np.prod(x)
    return np.sin(x[0]) * x[1]
""",
    "loop": """
def f(x):
    y, n = np.sum(x ** 2) + 0.1, 0
    while y < 4.0:
        y, n = y * 1.9, n + 1
    return y * n + x[0]
""",
    "mask": "def f(x):\n    return np.sum(np.sort(x[x > 0]) ** 3) + np.sum(x)",
    "size": "def f(x):\n    return np.sum(np.ones(int(abs(x[0]))) * x[1] ** 2) + x[2]",
    "index": "def f(x):\n    return [np.sin, np.cos, np.exp][int(np.argmax(x))](x[0]) * x[1]",
    "dict": "def f(x):\n    return {0: np.sin, 1: np.cos, 2: np.exp}[int(x[0] > 0)](x[1]) * x[2]",
    "slice": "def f(x):\n    return np.prod(x[: 1 + int(x[0] > 0)]) * x[2]",
    "structure": "def f(x):\n    parts = [v for v in x if v > 0]\n    return sum(parts) * len(parts) + x[0] ** 2",
    "in place": """
def f(x):
    x = x * 1.0
    if x[0] > 0:
        x[1] = x[0] * x[2]
    x += 1.0
    return np.prod(x)
""",
    "truth": "def f(x):\n    return np.sum(x ** 2) if np.maximum(x[0], 0.0) else np.sum(x)",
}
"""Without source, so that nothing is converted."""


def without_source(text: str) -> Any:
    made: dict[str, Any] = {"np": np}
    exec(text, made)
    return made["f"]


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the functions whose paths have been traced; a re-trace at each call is an error."""
    sg.clear_caches()
    found: list[str] = []
    traced = paths.trace_path

    def counted(transformed: Any, job: Any, entry: Any) -> Any:
        made = traced(transformed, job, entry)
        found.append(transformed.name)
        return made

    monkeypatch.setattr(paths, "trace_path", counted)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        yield found
    sg.clear_caches()


def points(count: int) -> Any:
    return np.random.default_rng(5).uniform(-1.9, 1.9, (count, 3))


def slopes(f: Callable[..., Any], x: Any) -> Any:
    return np.array([(f(x + step) - f(x - step)) / 2e-6 for step in 1e-6 * np.eye(len(x))])


@pytest.mark.parametrize("name", SOURCES)
def test_values_and_derivatives_on_inputs_that_switch_paths(name: str, traces: list[str]) -> None:
    f = without_source(SOURCES[name])
    gradient, value = sg.grad(f), sg.jit(f)
    for x in points(40):
        expected = slopes(f, x)
        np.testing.assert_allclose(value(x.copy()), f(x.copy()), rtol=1e-13)
        np.testing.assert_allclose(gradient(x), expected, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(sg.jvp(f, (x,), (np.ones(3),))[1], np.sum(expected), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(sg.vjp(f, x)[1](2.0)[0], 2 * expected, rtol=1e-6, atol=1e-6)
    assert 0 < len(traces) <= 4 * paths.LIMIT


@pytest.mark.parametrize("name", SOURCES)
def test_second_derivatives(name: str, traces: list[str]) -> None:
    f = without_source(SOURCES[name])
    hessian, gradient = sg.hessian(f), sg.grad(f)
    for x in points(12):
        np.testing.assert_allclose(hessian(x), slopes(gradient, x), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(sg.jacfwd(sg.jacrev(f))(x), hessian(x), rtol=1e-12, atol=1e-12)
    assert traces


def test_each_path_is_traced_once(traces: list[str]) -> None:
    f = without_source("def f(x):\n    return x * x if x > 0 else -3.0 * x")
    g = sg.grad(f)
    for x in (1.0, -1.0, 2.0, -2.0, 3.0, -3.0):
        assert g(x) == (2 * x if x > 0 else -3.0)
        assert sg.grad(f)(x) == g(x)
    assert len(traces) == 2
    g(np.float32(1.0))  # another type, another entry
    assert len(traces) == 3


def test_a_path_is_not_used_where_an_answer_differs(traces: list[str]) -> None:
    f = without_source("def f(x):\n    return x[int(x[0])] ** 2 * (2.0 if x[1] > x[2] else 3.0)")
    for x in ([0.0, 1.0, 2.0], [1.0, 2.0, 1.0], [2.0, 1.0, 0.0], [1.0, 1.0, 2.0], [0.0, 2.0, 1.0], [2.0, 1.0, 2.0]):
        expected = np.zeros(3)
        expected[int(x[0])] = 2 * x[int(x[0])] * (2.0 if x[1] > x[2] else 3.0)
        np.testing.assert_array_equal(sg.grad(f)(np.array(x)), expected)


def test_at_most_eight_paths_then_each_call_is_traced_again() -> None:
    sg.clear_caches()
    f = without_source("def f(x):\n    return x ** int(x)")
    g = sg.grad(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for n in range(1, 9):
            np.testing.assert_allclose(g(n + 0.5), n * (n + 0.5) ** (n - 1))
    with pytest.warns(sg.RetraceWarning, match="int\\(\\) needs the value"):
        np.testing.assert_allclose(g(9.5), 9 * 9.5**8)
    for n in (10, 3, 9, 1):
        np.testing.assert_allclose(g(n + 0.25), n * (n + 0.25) ** (n - 1))
    found = [entry for entry in PROGRAMS.entries.values() if isinstance(entry, paths.Paths)]
    assert sum(len(entry.found) for entry in found) == 8
    (full,) = [entry for entry in found if entry.found]
    assert full.found[0].number == 1  # hit last
    assert "traced again" in sg.explain(g)(11.5)["how it runs"]
    assert sg.explain(g)(3.5)["how it runs"].startswith("Path 3 of at most 8")


def test_paths_are_evicted_as_programs_are(traces: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    f = without_source("def f(x):\n    return x * x if x > 0 else -3.0 * x")
    assert sg.grad(f)(2.0) == 4.0
    monkeypatch.setattr(PROGRAMS, "capacity", 4)
    for n in range(6):
        sg.grad(lambda x, n: x * n)(1.0, n)
    assert sg.grad(f)(2.0) == 4.0
    assert len(traces) == 2


def test_captured_state_opens_an_entry_of_its_own(traces: list[str]) -> None:
    made: dict[str, Any] = {"np": np, "scale": 2.0, "mode": "a", "limit": 0.0, "table": np.ones(2)}
    exec(
        "def f(x):\n    y = scale * x if x > limit else -x\n"
        "    return y * np.sum(table) * (1.0 if mode == 'a' else 5.0)",
        made,
    )
    g = sg.grad(made["f"])
    assert (g(1.0), g(-1.0)) == (4.0, -2.0)
    made["scale"] = 3.0
    made["table"][0] = 2.0
    assert (g(1.0), g(-1.0), len(traces)) == (9.0, -3.0, 2)  # hidden inputs
    made["limit"] = 1.5
    assert (g(1.0), g(2.0), len(traces)) == (-3.0, 9.0, 2)  # and what is asked of them
    made["mode"] = "b"
    assert (g(1.0), g(2.0), len(traces)) == (-15.0, 45.0, 4)


def test_masks_that_are_too_large_and_too_many_questions_are_traced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sg.clear_caches()
    x = np.linspace(-1.0, 1.0, guards.LARGEST + 1)
    large = without_source("def f(x):\n    return np.sum(np.sort(x[x > 0]) ** 2)")
    with pytest.warns(sg.RetraceWarning):
        np.testing.assert_array_equal(sg.grad(large)(x), 2 * x * (x > 0))
    asks = without_source("def f(x):\n    n = 0\n    while x < 100.0:\n        x = x * 1.01\n    return x")
    with pytest.warns(sg.RetraceWarning):
        assert sg.grad(asks)(1.0) == pytest.approx(1.01**463)


EFFECTS = {
    "print": "def f(x):\n    print('seen')\n    return x * x if x > 0 else -x",
    "draw": "def f(x):\n    np.random.rand()\n    return x * x if x > 0 else -x",
    "captured list": "log = []\ndef f(x):\n    log.append(1)\n    return x * x if x > 0 else -x",
}


@pytest.mark.parametrize("name", EFFECTS)
def test_effects_happen_at_each_call(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    sg.clear_caches()
    f = without_source(EFFECTS[name])
    np.random.seed(0)
    with pytest.warns(sg.RetraceWarning):
        assert [sg.grad(f)(x) for x in (2.0, 3.0, -1.0)] == [4.0, 6.0, -1.0]
    if name == "print":
        assert capsys.readouterr().out == "seen\n" * 3
    elif name == "draw":
        assert np.random.rand() == np.random.RandomState(0).rand(4)[3]
    else:
        assert len(f.__globals__["log"]) == 3


def test_a_handler_sees_the_error_of_each_call() -> None:
    f = without_source("""
def f(x):
    try:
        y = np.linalg.inv(x)
    except np.linalg.LinAlgError:
        y = x
    return np.sum(y) if x[0, 0] > 0 else np.sum(x ** 2)
""")
    regular, singular = np.array([[2.0, 0.0], [0.0, 1.0]]), np.ones((2, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        for x in (regular, singular, regular):
            expected = np.ones((2, 2)) if x is singular else -np.array([[0.25, 0.5], [0.5, 1.0]])
            np.testing.assert_allclose(sg.grad(f)(x), expected)


def test_an_error_of_the_users_is_raised_at_each_call_and_paths_stay(traces: list[str]) -> None:
    f = without_source("def f(x):\n    if x < 0:\n        raise KeyError('negative')\n    return x * x if x > 1 else x")
    g = sg.grad(f)
    for _ in range(3):
        assert (g(2.0), g(0.5)) == (4.0, 1.0)
        with pytest.raises(KeyError, match="negative"):
            g(-1.0)


def test_jit_writes_what_the_path_changes(traces: list[str]) -> None:
    f = sg.jit(without_source("def f(x):\n    if x[0] > 0:\n        x[1] = x[0]\n    return np.sum(x)"))
    for first in (1.0, -1.0, 2.0):
        x = np.array([first, 5.0])
        assert f(x) == first + (first if first > 0 else 5.0)
        assert x[1] == (first if first > 0 else 5.0)
    assert len(traces) == 2


def test_threads_share_paths() -> None:
    sg.clear_caches()
    f = without_source("def f(x):\n    return x ** int(x)")
    g, wrong = sg.grad(f), []
    start = threading.Barrier(4)

    def run(seed: int) -> None:
        start.wait()
        for n in np.random.default_rng(seed).integers(1, 7, 40):
            if not np.isclose(g(n + 0.5), n * (n + 0.5) ** (n - 1.0)):
                wrong.append(n)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    found = [entry for entry in PROGRAMS.entries.values() if isinstance(entry, paths.Paths)]
    assert sum(len(entry.found) for entry in found) == 6


def test_questions_inside_an_inner_transform_are_guards_too(traces: list[str]) -> None:
    made: dict[str, Any] = {"sg": sg}
    exec("def h(y):\n    return y ** 3 if y > 1 else y * y\ndef f(x):\n    return sg.grad(h)(x * 2) * x", made)
    g = sg.grad(made["f"])
    for x in (0.25, 2.0, 0.125, 3.0):
        assert g(x) == (36 * x**2 if 2 * x > 1 else 8 * x)
    assert len(traces) == 2


@pytest.mark.parametrize("name", SOURCES)
def test_paths_on_xla_are_guarded_on_the_host(name: str, traces: list[str]) -> None:
    pytest.importorskip("jax")
    f = without_source(SOURCES[name])
    gradient, value = sg.grad(f, backend="xla"), sg.jit(f, backend="xla")
    for x in points(6):
        np.testing.assert_allclose(value(x.copy()), f(x.copy()), rtol=1e-12)
        np.testing.assert_allclose(gradient(x), slopes(f, x), rtol=1e-6, atol=1e-7)
    assert 0 < len(traces) <= 2 * paths.LIMIT


def test_paths_of_jax_arrays(traces: list[str]) -> None:
    jax = pytest.importorskip("jax")
    f = without_source(SOURCES["mask"])
    gradient = sg.grad(f, backend="xla")
    with double_precision():
        for x in points(4):
            found = gradient(jax.numpy.asarray(x))
            assert isinstance(found, jax.Array)
            np.testing.assert_allclose(np.asarray(found), slopes(f, x), rtol=1e-6, atol=1e-7)
    assert traces


def writes_and_selects(x: Any) -> Any:
    y = np.zeros(3)
    y += x
    np.multiply(y, 2.0, out=y)
    return np.sum(y * x) + np.sum(np.exp(np.sort(x[x > 0.5])))


def adds_and_selects(x: Any) -> Any:
    y = np.zeros(2)
    np.add.at(y, [0, 1, 1], x**2)
    y[y > 1.0] *= 3.0
    return np.sum(np.sort(y[y > 0.5]))


@pytest.mark.parametrize("function", [writes_and_selects, adds_and_selects], ids=lambda f: f.__name__)
def test_what_only_conversion_can_write_has_paths(function: Callable[[Any], Any], traces: list[str]) -> None:
    """As it is, the function writes what is traced into arrays of NumPy's; converted, it asks for values."""
    gradient = sg.grad(function)
    for x in (np.array([0.25, 2.0, 1.5]), np.array([0.75, 0.125, 1.25]), np.array([0.2, 2.5, 1.75])):
        np.testing.assert_allclose(gradient(x), slopes(function, x), rtol=1e-6, atol=1e-7)
        assert "Path" in sg.explain(gradient)(x)["how it runs"]
    assert traces


def test_a_fault_of_srcgrad_is_not_hidden_by_tracing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sg.clear_caches()

    def broken(*args: Any) -> Any:
        raise KeyError("no such rule")

    ours = types.FunctionType(broken.__code__.replace(co_filename=paths.__file__), vars(paths))  # as if it stood there
    monkeypatch.setattr(paths, "guard_function", ours)
    with pytest.raises(sg.errors.InternalError, match="no such rule"):
        sg.grad(without_source(SOURCES["mask"]))(np.ones(3))
    sg.clear_caches()


@pytest.mark.parametrize("one", [np.uint8, np.float32])
@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_array_has_the_dtype_of_its_path(one: Any) -> None:
    """What wraps around at 256, or is rounded to 24 bits, does so on its path only."""

    def f(x: Any) -> Any:
        y = (x * 100.7).astype(one) if x[0] > 0.0 else (x * 100.7).astype(np.int64)
        return y * y

    for x in (np.array([2.0, 1.0]), np.array([-2.0, 1.0])):
        found = sg.jit(f)(x)
        assert found.dtype == f(x).dtype
        np.testing.assert_array_equal(found, f(x))


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_error_on_a_path_that_no_call_takes() -> None:
    """Tracing meets it; what cannot be written as the function is run as it is (``out=``) is no reason to give up."""

    def f(x: Any) -> Any:
        y = np.ones(1)
        np.maximum(x, 2.0 * x, out=y)
        if x[0] > 9.0:
            y[0] = y[1]
        return y[0] * x[0]

    np.testing.assert_array_equal(sg.grad(f)(np.array([0.5])), [2.0])
    with pytest.raises(IndexError, match="index 1 is out of bounds"):
        sg.grad(f)(np.array([10.0]))


def test_an_error_of_each_call_is_the_users_and_not_of_code_that_is_run_as_it_is() -> None:
    """As it is, the code stops before, at what is not supported there (``out=``)."""

    def f(x: Any) -> Any:
        y = np.ones(1)
        np.maximum(x, 2.0 * x, out=y)
        return y[1] * x[0]

    with pytest.raises(IndexError, match="index 1 is out of bounds"):
        sg.grad(f)(np.array([0.5]))


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_error_of_the_users_on_a_path_shows_their_line() -> None:
    def f(x: Any, n: int) -> Any:
        y = np.zeros(2)
        y[:] = x[0]
        if x[0] > 9.0:
            y[0] = 7 % n
        return np.sum(y)

    assert sg.grad(f)(np.array([0.5]), 0) == [2.0]
    with pytest.raises(ZeroDivisionError) as caught:
        sg.grad(f)(np.array([10.0]), 0)
    assert caught.traceback[-1].name == "f"


@pytest.mark.parametrize("function", [math.sqrt, math.log, math.acos], ids=lambda f: f.__name__)
def test_a_domain_error_on_a_path_is_no_refusal_of_code_that_is_run_as_it_is(function: Any) -> None:
    def f(x: Any) -> Any:
        return x[1] * np.ones(int(4.0 * x[0])).sum() + function(x[1])

    slope = sg.grad(f)
    assert np.isfinite(slope(np.array([0.5, 0.3]))).all()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"math domain error|expected a"):
            slope(np.array([0.5, -1.3]))


def test_a_number_of_pythons_that_a_float32_does_not_hold_has_a_path_of_its_own() -> None:
    def by_statement(x: Any) -> Any:
        y = 0.1
        if x.sum() < 0.0:
            y = x[0]
        return y

    def nested(x: Any) -> Any:
        return (x[1] if x[1] > 9.0 else 0.1) if x[0] > 0.0 else x[0]

    def given(x: Any, rate: float = 0.3) -> Any:
        return rate if x[0] > 0.0 else x[0]

    def in_a_dict(x: Any) -> Any:
        return {"y": 0.1 if x[0] > 0.0 else x[0]}

    x = np.array([1.0, 2.0], np.float32)
    for f in (by_statement, nested, given, in_a_dict):
        compiled = sg.jit(f)
        for _ in range(2):
            for z in (x, -x):
                one, other = f(z), compiled(z)
                if isinstance(one, dict):
                    one, other = one["y"], other["y"]
                assert one == other and np.asarray(one).dtype == other.dtype
    rounded = sg.jit(lambda x: 0.5 if x[0] > 0.0 else x[0], strict=True)  # which it holds
    assert rounded(x) == 0.5 and rounded(-x) == -1.0
    smallest = sg.jit(lambda x: min(1e10, *x), strict=True)
    assert smallest(x) == 1.0


def test_calls_that_take_a_known_path_look_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """They took 80 us: the ways of tracing and their verdicts were looked up before the paths."""
    f = without_source("def f(x):\n    return np.sum(x[x > 0] ** 2) * np.sum(x)")
    loss, slope = sg.jit(f), sg.grad(f)
    x = np.array([1.0, -2.0, 3.0])

    def gradient(v: Any) -> Any:
        return 2 * np.maximum(v, 0.0) * v.sum() + np.sum(np.maximum(v, 0.0) ** 2)

    for v in (x, -x, x):
        np.testing.assert_allclose(loss(v), f(v))
        np.testing.assert_allclose(slope(v), gradient(v))
    with monkeypatch.context() as patch:
        patch.setattr(sg.transformed.Transformed, "dispatch", None)
        for v in (x, -x, 2 * x):
            np.testing.assert_allclose(loss(v), f(v))
            np.testing.assert_allclose(slope(v), gradient(v))
    for v in (x[::-1].copy(), np.ones(3), np.array([0.5, 1.0]), x[::-1]):  # a new path, shapes and strides
        np.testing.assert_allclose(slope(v), gradient(v))
        np.testing.assert_allclose(slope(v), gradient(v))


LABELS = np.array([0, 2, 1, 2, 0])


def weights_by_label(w: Any) -> Any:
    return np.sum(np.bincount(LABELS, w, minlength=2) ** 2)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_calls_with_captured_arrays_take_a_known_path_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """They took 230 us with an array of labels; what is captured is read anew at each call."""
    loss, slope, w = sg.jit(weights_by_label), sg.grad(weights_by_label), np.arange(1.0, 6.0)

    def gradient(labels: Any) -> Any:
        return 2 * np.bincount(labels, w)[labels]

    for _ in range(3):
        assert loss(w) == weights_by_label(w)
        np.testing.assert_array_equal(slope(w), gradient(LABELS))
    with monkeypatch.context() as patch:
        patch.setattr(sg.transformed.Transformed, "dispatch", None)
        for labels in (LABELS, LABELS[::-1].copy(), np.array([2, 2, 2, 0, 1])):
            patch.setitem(globals(), "LABELS", labels)
            assert loss(w) == weights_by_label(w)
            np.testing.assert_array_equal(slope(w), gradient(labels))
    for other in ([0, 7, 7, 1, 3], [1, 0, 1, 0, 0]):  # more labels, and fewer
        for labels in (np.array(other), np.array(other, np.uint8), LABELS):
            with monkeypatch.context() as patch:
                patch.setitem(globals(), "LABELS", labels)
                assert loss(w) == weights_by_label(w)
                np.testing.assert_array_equal(slope(w), gradient(labels))


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("minlength", [0, 9])
def test_only_the_largest_element_decides_the_path_of_bincount(minlength: int, traces: list[str]) -> None:
    """All of a long array would not be compared at each call: it was traced again."""
    rng = np.random.default_rng(3)
    weights = rng.normal(size=10_000)

    def loss(w: Any, places: Any) -> Any:
        return np.sum(np.bincount(places, w, minlength) ** 3), np.bincount(places, minlength=minlength)

    compiled, slope = sg.jit(loss), sg.grad(lambda w, places: loss(w, places)[0])
    for seed in range(3):
        places = np.random.default_rng(seed).integers(0, 7, 10_000)
        (value, counts), (wanted, known) = compiled(weights, places), loss(weights, places)
        np.testing.assert_allclose(value, wanted)
        np.testing.assert_array_equal(counts, known)
        assert counts.dtype == known.dtype
        np.testing.assert_allclose(slope(weights, places), 3 * np.bincount(places, weights)[places] ** 2)
    places[5] = -1
    with pytest.raises(ValueError, match="no negative elements"):
        compiled(weights, places)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_bincount_has_one_path_for_all_that_the_given_bins_hold(traces: list[str]) -> None:
    """Each largest element had its own, and after eight of them the function was traced at each call."""
    slope = sg.grad(lambda w, places: np.sum(np.bincount(places, w, minlength=40) ** 2))
    for largest in range(1, 40, 3):
        places, w = np.arange(60) % largest, np.cos(np.arange(60.0))
        np.testing.assert_allclose(slope(w, places), 2 * np.bincount(places, w)[places])
    assert len(traces) == 1
    places[7] = 90
    np.testing.assert_allclose(slope(w, places), 2 * np.bincount(places, w)[places])


@pytest.mark.parametrize("places", [np.ones(3), np.ones(3, np.uint64), np.ones((2, 2), int), np.array(1), np.zeros(0)])
def test_what_bincount_does_not_take_is_numpys_error(places: Any) -> None:
    try:
        wanted: Any = np.bincount(places)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            sg.jit(np.bincount)(places)
    else:
        np.testing.assert_array_equal(sg.jit(np.bincount)(places), wanted)


POWER = 2


def masked_power(x: Any) -> Any:
    return np.sum(x[x > 0] ** POWER)


def test_a_known_path_is_left_where_the_function_reads_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    slope, x = sg.grad(masked_power), np.array([1.0, -2.0, 3.0])
    for _ in range(3):
        np.testing.assert_allclose(slope(x), [2.0, 0.0, 6.0])
    monkeypatch.setitem(globals(), "POWER", 3)
    for _ in range(3):
        np.testing.assert_allclose(slope(x), [3.0, 0.0, 27.0])
    monkeypatch.setitem(globals(), "POWER", 2)
    np.testing.assert_allclose(slope(x), [2.0, 0.0, 6.0])
    held = weakref.ref(slope)
    gc.disable()
    try:
        del slope
        assert held() is None  # it is in no cycle
    finally:
        gc.enable()


def test_a_generator_without_an_end_that_a_value_ends() -> None:
    def estimates(x: Any) -> Iterator[Any]:
        y = x
        while True:
            y = 0.5 * (y + 2.0 / y)
            yield y

    def f(x: Any) -> Any:
        before = x
        for y in estimates(x):
            if abs(y - before) < 1e-9:
                break
            before = y
        return before * x

    slope = sg.grad(f)
    for x in (1.0, 1.5, 40.0):
        np.testing.assert_allclose(slope(x), 2**0.5, rtol=1e-6)
    assert "a value says when it ends" in sg.explain(slope)(1.0)["how it runs"]


def test_each_operation_is_run_once_for_all_questions_of_a_path(
    traces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question ran the program from its beginning."""
    run: list[int] = []
    made = guards.evaluate_operation
    monkeypatch.setattr(guards, "evaluate_operation", lambda *given: run.append(0) or made(*given))

    def f(x: Any) -> Any:
        kept = []
        for k in range(30):
            x = np.sin(x) + np.cos(x)
            if x[k % 3] > 0.5:
                kept.append(x)
        return sum(np.sum(y * y) for y in kept)

    x = points(1)[0]
    np.testing.assert_allclose(sg.grad(f)(x), slopes(f, x), rtol=1e-6, atol=1e-7)
    assert traces == ["f"]
    assert 90 < len(run) < 300


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_segments_whose_starts_are_an_argument_are_one_program(traces: list[str], backend: str) -> None:
    """Each array of starts was a program, and after eight of them all calls were traced again."""

    def loss(x, starts):  # type: ignore[no-untyped-def]
        return np.sum(np.add.reduceat(x, starts, axis=0) ** 2)

    random = np.random.default_rng(0)
    gradient = sg.value_and_grad(loss, backend=backend)
    for x in (random.normal(size=60), random.normal(size=(60, 3))):
        for dtype in (np.int64, np.int32):
            for _ in range(12):
                starts = np.sort(random.choice(60, 7, replace=False)).astype(dtype)
                sums = np.add.reduceat(x, starts, axis=0)
                value, slope = gradient(x, starts)
                wanted = np.zeros_like(x)
                wanted[starts[0] :] = np.repeat(2 * sums, np.diff(np.append(starts, 60)), axis=0)
                np.testing.assert_allclose(value, np.sum(sums**2), rtol=1e-13)
                np.testing.assert_allclose(slope, wanted, rtol=1e-12, atol=1e-13)
    assert len(traces) == 4
    for others in ([0, 4, 1, 5, 2, 6, 3], [3, 3, 3, 59, 59, 0, 1]):
        found = gradient(x, np.array(others))[0]
        np.testing.assert_allclose(found, np.sum(np.add.reduceat(x, others, axis=0) ** 2), rtol=1e-13)
    for wrong in ([0, 1, 2, 3, 4, 5, 60], [-1, 1, 2, 3, 4, 5, 6]):
        with pytest.raises(IndexError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what raises has no program
            gradient(x, np.array(wrong))


def test_sums_of_segments_without_elements_keep_their_sign() -> None:
    starts, zeros = np.array([0, 2, 5]), np.full(7, -0.0)
    found = sg.jit(lambda x, k: np.add.reduceat(x, k))(zeros, starts)
    assert np.array_equal(np.signbit(found), np.signbit(np.add.reduceat(zeros, starts)))


def test_guards_that_are_the_same_numbers_everywhere_are_machine_code_and_others_numpys() -> None:
    """Rounded otherwise, the same answer would not be found again."""

    def whole(k, x):  # type: ignore[no-untyped-def]
        return np.sum(np.bincount(k, weights=x) ** 2)

    def rounded(k, x):  # type: ignore[no-untyped-def]
        return np.sum(x[: int(np.sum(x) * 7)] ** 2) + k[0]

    def counted(k, x):  # type: ignore[no-untyped-def]
        places = np.clip(np.floor(x * 10).astype(int), 0, 3)
        return np.sum(np.bincount(places, weights=x * k) ** 2)

    chosen: list[str] = []
    made = paths.guard_backend

    def noted(transformed, function):  # type: ignore[no-untyped-def]
        chosen.append(made(transformed, function))
        return chosen[-1]

    k, x = np.array([3, 0, 3, 1]), np.array([0.12, 0.23, 0.31, 0.4])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(paths, "guard_backend", noted)
        for f in (whole, counted, rounded):
            for backend in ("numpy", "llvm"):
                g = sg.value_and_grad(f, argnums=1, backend=backend)
                for scale in (1, 1, 2, 1):
                    value, slope = g(k * scale, x)
                    np.testing.assert_allclose(value, f(k * scale, x), rtol=1e-13)
                    e = 1e-6
                    moved = [(f(k * scale, x + e * d) - f(k * scale, x - e * d)) / (2 * e) for d in np.eye(4)]
                    np.testing.assert_allclose(slope, moved, rtol=1e-6)
    assert chosen == ["numpy"] * 2 + ["llvm"] * 2 + ["numpy", "llvm"] + ["numpy"] * 2


@pytest.mark.parametrize("answer", [np.array([True, False]), np.bool_(True), np.int64(3), np.zeros((0, 2), bool)])
def test_answers_are_compared_by_their_elements(answer: Any) -> None:
    assert paths.is_answer(answer.copy(), answer)
    if answer.size:
        assert not paths.is_answer(np.logical_not(answer), answer)


def test_the_hint_says_that_scipys_function_was_not_seen_for_want_of_a_source() -> None:
    f = without_source("def f(x):\n    return linalg.fractional_matrix_power(x, 0.3).sum()")
    f.__globals__["linalg"] = scipy.linalg
    with pytest.raises(sg.errors.ConcretizationError, match="the source of f is not available, so that"):
        sg.grad(f)(np.eye(3) + 1.0)
