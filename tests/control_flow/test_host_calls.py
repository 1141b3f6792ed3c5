"""Draws, clocks and prints run at each call of the program, in the order of the user's code, once, in every mode."""

from __future__ import annotations

import io
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import IntegerInputError
from srcgrad.tracing.hosts import Objects

RNG = np.random.default_rng(0)
BACKENDS = ("numpy", "xla")


@pytest.fixture(autouse=True)
def never_traced_again() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        yield


def seed() -> None:
    RNG.bit_generator.state = np.random.default_rng(3).bit_generator.state
    np.random.seed(3)
    random.seed(3)


def where_the_streams_are() -> tuple[float, float, float]:
    return RNG.random(), np.random.random(), random.random()


def captured(x: Any) -> Any:
    return np.sum(x * RNG.normal(size=3)) + RNG.random() * x[0]


def global_ones(x: Any) -> Any:
    x = x * np.random.rand(3) + np.random.randint(1, 4)
    return np.sum(x) * random.random() + random.gauss(0.0, 1.0)


def in_branches(x: Any) -> Any:
    if x[0] > 0:
        return x[0] * RNG.exponential()
    return x[1] * RNG.uniform(2.0, 3.0) + RNG.random()


def deciding(x: Any) -> Any:
    y = x[RNG.integers(3)]
    while RNG.random() < 0.8:
        y = y * 1.25
    for k in range(RNG.integers(1, 5)):
        y = y + k * RNG.normal()
    return y * RNG.choice([1.0, 2.0, 5.0])


def in_a_long_loop(x: Any) -> Any:
    total = 0.0
    for k in range(100):
        total = total * 0.9 + RNG.normal() * x[k % 3]
    return total


def made_inside(x: Any) -> Any:
    rng, other = np.random.default_rng(7), np.random.RandomState(5)
    order = rng.permutation(3)
    return np.sum(x * rng.normal(size=3)) * other.rand() + np.sum(x[order] * np.arange(3.0))


def arrays_in_another_order(x: Any) -> Any:
    y, table = x**2, np.arange(3.0)
    RNG.shuffle(y)
    RNG.shuffle(table)
    picked = RNG.choice(np.stack([x, y, x * y]), 2, replace=False)
    return np.sum(picked * RNG.permutation(x)) + np.sum(y * table)


def with_a_checkpoint(x: Any) -> Any:
    return np.sum(sg.checkpoint(lambda v: np.exp(np.sin(v * RNG.normal(size=3))))(x) ** 2)


FUNCTIONS = (
    captured, global_ones, in_branches, deciding, in_a_long_loop, made_inside, arrays_in_another_order,
    with_a_checkpoint,
)  # fmt: skip


def grown(y: Any) -> Any:
    while y < 1e5:
        y = y * (1.1 + 1e-6 * y)
    return y


CASES = [(f, "numpy") for f in FUNCTIONS] + [(f, "xla") for f in (captured, deciding, made_inside)]
FIRST = """
import warnings
import srcgrad as sg

def f(x):
    print(x)
    return x * x

warnings.simplefilter("error", sg.RetraceWarning)
print(sg.grad(f)(3.0))
"""
POINTS = tuple(map(np.array, ([0.5, 1.5, -0.7], [-0.5, 1.0, 2.0], [0.3, -2.0, 0.9])))


@pytest.mark.parametrize(("function", "backend"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_draws_are_those_of_plain_python_in_every_mode(function: Callable[[Any], Any], backend: str) -> None:
    jacobian = sg.jacrev if function is deciding else sg.jacfwd
    modes = (
        sg.jit(function, strict=True, backend=backend),
        lambda x: sg.value_and_grad(function, backend=backend)(x)[0],
        lambda x: sg.jvp(function, (x,), (np.ones(3),))[0],
        lambda x: jacobian(lambda v: (function(v), 1.0)[0], backend=backend)(x) @ x * 0.0,
    )
    for mode in modes:
        seed()
        found = [mode(x.copy()) for x in POINTS]
        after = where_the_streams_are()
        seed()
        expected = [function(x.copy()) for x in POINTS]
        assert after == where_the_streams_are()
        if mode is not modes[3]:
            np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_derivative_holds_what_is_drawn_fixed(function: Callable[[Any], Any]) -> None:
    for x in POINTS:
        seed()
        found = sg.grad(function)(x)
        for k in range(3):
            values = []
            for sign in (1.0, -1.0):
                seed()
                values.append(function(x + sign * 1e-6 * np.eye(3)[k]))
            np.testing.assert_allclose(found[k], (values[0] - values[1]) / 2e-6, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("function", "backend"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_under_vmap_the_examples_draw_one_after_the_other(function: Callable[[Any], Any], backend: str) -> None:
    seed()
    found = sg.vmap(function, backend=backend)(np.stack(POINTS))
    slopes = sg.vmap(sg.grad(function), backend=backend)(np.stack(POINTS))
    seed()
    np.testing.assert_allclose(found, [function(x.copy()) for x in POINTS], rtol=1e-12)
    np.testing.assert_allclose(slopes, [sg.grad(function)(x) for x in POINTS], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
def test_under_vmap_prints_and_draws_keep_their_order(backend: str) -> None:
    def f(x: float) -> Any:
        print("at", x)
        y = x * RNG.normal()
        if x > 1.5:
            print("more", y)
        return y

    texts = []
    for run in (sg.vmap(f, backend=backend), lambda xs: np.stack([f(x) for x in xs])):
        seed()
        with redirect_stdout(io.StringIO()) as text:
            run(np.array([1.0, 2.0, 3.0]))
        texts.append(text.getvalue())
    assert texts[0].replace("np.float64", "") == texts[1].replace("np.float64", "")
    assert texts[0].count("more") == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_under_vmap_errors_of_the_user_do_not_serialise(backend: str) -> None:
    """A call that only raises needs no order: the examples stay one program of arrays."""

    class Low(Exception):
        pass

    def f(x: Any) -> Any:
        if x < 0:
            raise Low("low")
        return np.sin(x)

    mapped = sg.vmap(f, backend=backend)
    np.testing.assert_allclose(mapped(np.arange(3.0)), np.sin(np.arange(3.0)))
    with pytest.raises(Low):
        mapped(np.array([1.0, -1.0]))
    if backend == "numpy":
        assert "f64[3] = sin" in sg.explain(mapped)(np.arange(3.0))["optimised ir"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_generator_is_an_argument_by_its_kind(backend: str) -> None:
    def f(x: Any, rng: Any) -> Any:
        if not isinstance(rng, np.random.Generator):
            return -x
        return x * rng.normal() if rng.random() > 0.5 else x

    slope = sg.value_and_grad(f, backend=backend)
    ours, numpys = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(6):
        assert slope(2.0, ours)[0] == f(2.0, numpys)
    others = np.random.default_rng(9), np.random.default_rng(9)
    assert slope(2.0, others[0])[0] == f(2.0, others[1])
    mapped = sg.vmap(f, in_axes=(0, None), backend=backend)(np.ones(3), ours)
    np.testing.assert_allclose(mapped, [f(1.0, numpys) for _ in range(3)])
    with pytest.raises(IntegerInputError), warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        sg.grad(f, argnums=1)(2.0, ours)


def test_a_generator_that_is_bound_anew_is_the_one_that_draws() -> None:
    holder = {"rng": np.random.default_rng(1)}

    def outer(rng: Any) -> Any:
        return sg.grad(lambda x: x * rng.normal())

    assert outer(np.random.default_rng(1))(1.0) == np.random.default_rng(1).normal()
    assert outer(np.random.default_rng(2))(1.0) == np.random.default_rng(2).normal()
    from_dict = sg.grad(lambda x: x * holder["rng"].normal())
    assert from_dict(1.0) == np.random.default_rng(1).normal()
    holder["rng"] = np.random.default_rng(2)
    assert from_dict(1.0) == np.random.default_rng(2).normal()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_clock_is_read_at_each_call(backend: str) -> None:
    def f(x: Any) -> Any:
        start = time.perf_counter()
        time.sleep(0.0)
        return x * 0.0 + start, time.perf_counter() - start

    run = sg.jit(f, strict=True, backend=backend)
    first, second = run(1.0), run(1.0)
    assert first[0] < second[0] <= time.perf_counter()
    assert second[1] >= 0.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_host_calls_are_made_once_where_a_tape_grows(backend: str) -> None:
    """On XLA a loop that makes more trips than there was room for runs again; what was printed and drawn stays so."""

    def f(x: Any) -> Any:
        y = x
        print("start")
        while y < 1000.0:
            z = RNG.random()
            print("trip", z)
            y = y * (1.05 + z)
        v = y
        while v > 1.0:
            v = v / (1.01 + RNG.random() * 0.1)
        print("slope", np.round(sg.grad(grown)(y), 6))
        return y * v

    texts, values, streams = [], [], []
    for run in (sg.value_and_grad(f, backend=backend), lambda x: (f(x), 0.0)):
        seed()
        with redirect_stdout(io.StringIO()) as text:
            values.append([run(x)[0] for x in (1.0, 0.001)])
        texts.append(text.getvalue().replace("np.float64(", "").replace(")", ""))
        streams.append(where_the_streams_are())
    np.testing.assert_allclose(values[0], values[1], rtol=1e-12)
    assert texts[0] == texts[1]
    assert streams[0] == streams[1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_of_a_host_call_is_raised_once_where_a_tape_grows(backend: str) -> None:
    class Full(Exception):
        pass

    def f(x: Any) -> Any:
        y = x
        while y < 1e6:
            print("trip")
            y = y * 1.1
        if y > 0:
            raise Full("full")
        return y

    with redirect_stdout(io.StringIO()) as text, pytest.raises(Full):
        sg.grad(f, backend=backend)(1.0)
    assert text.getvalue().count("trip") == 145


def test_a_forgotten_generator_is_an_error() -> None:
    objects = Objects(2)
    numbers = [objects.number(np.random.default_rng(k)) for k in range(3)]
    assert objects.find(numbers[2]).random() == np.random.default_rng(2).random()
    with pytest.raises(RuntimeError, match="was forgotten"):
        objects.find(numbers[0])


def test_a_first_function_that_prints_is_one_program(tmp_path: Path) -> None:
    """The rules of Python's own functions are there before anything has been converted."""
    script = tmp_path / "first.py"
    script.write_text(FIRST, encoding="utf-8")
    found = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["3.0", "6.0"]


def test_a_path_prints_and_draws_when_it_runs_and_its_guards_do_not() -> None:
    def f(x: Any) -> Any:
        print("start")
        kept = x[x > 0]
        print("kept", kept)
        return np.sum(kept**2) * RNG.normal()

    texts, values = [], []
    for run in (lambda x: sg.value_and_grad(f)(x)[0], f):
        seed()
        with redirect_stdout(io.StringIO()) as text:
            values.append([run(np.array(x)) for x in ([1.0, -2.0, 3.0], [2.0, -1.0, 1.0], [-1.0, 1.0, 1.0])])
        texts.append(text.getvalue())
    np.testing.assert_allclose(values[0], values[1], rtol=1e-12)
    assert texts[0] == texts[1]


def test_what_a_draw_decides_is_no_guard() -> None:
    def f(x: Any) -> Any:
        return np.sum(x[RNG.normal(size=3) > 0] ** 2)

    seed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        found = [sg.value_and_grad(f)(x)[0] for x in POINTS]
    after = where_the_streams_are()
    seed()
    np.testing.assert_allclose(found, [f(x) for x in POINTS], rtol=1e-12)
    assert after == where_the_streams_are()


WITHOUT_SOURCE: dict[str, Any] = {"np": np}
exec("def hidden(x):\n    return x * np.random.rand()", WITHOUT_SOURCE)
DRAWS = {"draw": np.random.rand}


def drawn_by_map(x: Any) -> Any:
    return x * sum(map(np.random.normal, [0.0, 1.0, 2.0]))


def drawn_by_a_default(x: Any, draw: Any = np.random.rand) -> Any:
    return x * draw()


def drawn_by_an_entry(x: Any) -> Any:
    return x * DRAWS["draw"]()


def drawn_by_a_name(x: Any) -> Any:
    draw = np.random.rand
    return x * draw()


def drawn_by_a_helper(x: Any) -> Any:
    return WITHOUT_SOURCE["hidden"](x)


@pytest.mark.parametrize(
    "function",
    [drawn_by_map, drawn_by_a_default, drawn_by_an_entry, drawn_by_a_name, drawn_by_a_helper, WITHOUT_SOURCE["hidden"]],
    ids=lambda f: f.__name__,
)
def test_nothing_is_drawn_while_tracing_whoever_calls_the_draw(function: Callable[[Any], Any]) -> None:
    slope = sg.grad(function)
    seed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        found = [slope(1.0) for _ in range(3)]
    after = where_the_streams_are()
    seed()
    assert found == [function(1.0) for _ in range(3)]
    assert after == where_the_streams_are()


def to_the_streams(x: Any) -> Any:
    total = np.sum(x**2)
    print("out", total, file=sys.stdout)
    print(f"error {total:.1f}", end="|", file=sys.stderr, flush=True)
    return total


def to_a_stream_handed_on(x: Any) -> Any:
    def write(stream: Any) -> None:
        stream.write("now")

    write(sys.stderr)
    return np.sum(x**2)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_prints_go_to_the_stream_that_is_there(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    slope = sg.grad(to_the_streams, backend=backend)
    np.testing.assert_allclose(slope(np.ones(2)), [2.0, 2.0])
    assert capsys.readouterr() == ("out 2.0\n", "error 2.0|")
    other = io.StringIO()
    with redirect_stdout(other):
        slope(np.full(2, 2.0))
    assert other.getvalue() == "out 8.0\n"
    assert capsys.readouterr() == ("", "error 8.0|")


def test_a_stream_that_is_handed_on_is_written_to_at_each_call(capsys: pytest.CaptureFixture[str]) -> None:
    slope = sg.grad(to_a_stream_handed_on)
    with pytest.warns(sg.RetraceWarning, match="the attribute 'write', which streams have"):
        slope(np.ones(2))
    assert capsys.readouterr().err == "now"
    slope(np.ones(2))
    assert capsys.readouterr().err == "now"


def named(function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(x: Any) -> Any:
        print(function.__name__, x[0])
        return function(x) * (2.0 if function.__name__ == "one" else 3.0)

    return wrapper


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_decorator_may_tell_the_name_of_its_function(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    def one(x: Any) -> Any:
        return np.sum(x**2)

    slope = sg.grad(named(one), backend=backend)
    np.testing.assert_allclose(slope(np.ones(2)), [4.0, 4.0])
    one.__name__ = "other"
    np.testing.assert_allclose(slope(np.ones(2)), [6.0, 6.0])
    assert capsys.readouterr().out == "one 1.0\nother 1.0\n"
