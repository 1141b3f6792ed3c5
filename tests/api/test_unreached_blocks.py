"""What stands where a call does not come to is no reason to trace a function again, and is seen where one does."""

from __future__ import annotations

import functools
import os
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

import srcgrad as sg

X = np.array([1.0, 2.0, 3.0])


class Slotted:
    """What no guard can watch."""

    __slots__ = ("value",)

    def __init__(self, value: float) -> None:
        self.value = value


DEBUG = False
STATE = Slotted(2.0)


def plotted(x: Any) -> Any:
    if DEBUG:
        plt.plot(x)
    return np.sum(x**2)


def saved(x: Any, path: Any = None) -> Any:
    if path is not None:
        np.save(path, x)
    return np.sum(x**2)


def of_another_library(x: Any, backend: str = "numpy") -> Any:
    if backend == "torch":
        import torch

        return torch.sum(x**2)
    return np.sum(x**2)


def logged_to_a_file(x: Any, verbose: bool = False) -> Any:
    if verbose:
        with open(os.devnull, "a") as file:
            file.write("called")
    return np.sum(x**2)


def dumped(x: Any, path: str = "") -> Any:
    if path:
        pickle.dump(x, open(path, "wb"))  # noqa: SIM115
    return np.sum(x**2)


def timed(x: Any, timeit: bool = False) -> Any:
    if timeit:
        sys.stderr.write("called")
    return np.sum(x**2)


def raising(x: Any, n: int = 2) -> Any:
    if n > 4:
        raise RuntimeError(open(os.devnull).read())  # noqa: SIM115
    return np.sum(x**n)


def debugged(x: Any, debug: bool = False) -> Any:
    if debug:
        import pdb

        pdb.set_trace()
    if debug:
        breakpoint()
    return np.sum(x**2)


def with_a_function_that_nothing_calls(x: Any, plot: bool = False) -> Any:
    def show(y: Any) -> None:
        import matplotlib.pyplot

        matplotlib.pyplot.plot(y)

    if plot:
        show(x)
    return np.sum(x**2)


def returning_early(x: Any, log: Any = None) -> Any:
    y = np.sum(x**2)
    if log is None:
        return y
    with open(log, "a") as file:
        file.write("called")
    return y


def helper(x: Any, verbose: bool) -> Any:
    if verbose:
        os.system("true")
    for _ in range(2):
        x = x * 1.0
    return x


def by_a_helper(x: Any) -> Any:
    return np.sum(helper(x, False) ** 2)


def chosen(x: Any) -> Any:
    return (np.sum(x**2) if not DEBUG else plt.plot(x)) * 1.0


def both(x: Any) -> Any:
    DEBUG and plt.plot(x)
    return np.sum(x**2)


def handled(x: Any) -> Any:
    try:
        y = np.sum(x**2)
    except ValueError:
        plt.title("failed")
        raise
    return y


def matched(x: Any, mode: str = "sum") -> Any:
    match mode:
        case "plot":
            plt.plot(x)
        case _:
            pass
    return np.sum(x**2)


class Model:
    def __init__(self, verbose: bool) -> None:
        self.verbose = verbose
        self.w = np.ones(3)

    def show(self, y: Any) -> None:
        plt.plot(y)

    def __call__(self, x: Any) -> Any:
        y = np.sum(self.w * x**2)
        if self.verbose:
            os.system("true")
            self.show(y)
        return y


FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(plotted, saved, of_another_library, logged_to_a_file, dumped, timed, raising, debugged),
    *(with_a_function_that_nothing_calls, returning_early, by_a_helper, chosen, both, handled, matched),
    Model(False).__call__,
)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_block_that_static_values_rule_out_is_no_reason_to_trace_again(f: Callable[..., Any], backend: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        np.testing.assert_allclose(sg.grad(f, backend=backend)(X), 2.0 * X)
        np.testing.assert_allclose(sg.jit(f, backend=backend, strict=True)(X), np.sum(X**2))


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_argument_that_leads_into_a_block_does_what_stands_there(tmp_path: Path) -> None:
    path, log, f = tmp_path / "x.npy", str(tmp_path / "log"), sg.jit(saved)
    for k in (1.0, 2.0):
        assert f(k * X) == np.sum((k * X) ** 2)
        assert f(k * X, path) == np.sum((k * X) ** 2)
        np.testing.assert_array_equal(np.load(path), k * X)
        np.testing.assert_allclose(sg.grad(returning_early)(X), 2.0 * X)
        np.testing.assert_allclose(sg.grad(returning_early)(X, log), 2.0 * X)
    assert Path(log).read_text() == "calledcalled"


def test_the_reason_to_trace_again_is_what_stands_in_the_block() -> None:
    with pytest.warns(sg.RetraceWarning, match=r"open opens a file at each call \(.*test_unreached_blocks"):
        sg.grad(logged_to_a_file)(X, True)
    with pytest.raises(sg.errors.ArgumentError, match="open opens a file at each call"):
        sg.jit(logged_to_a_file, strict=True)(X, True)
    assert "not looked at: open opens a file" in sg.explain(sg.grad(logged_to_a_file))(X)["how it runs"]


FLAG = True


def scaled(t: Any) -> Any:
    if FLAG:
        return STATE.value * t
    return t


def bare(x: Any) -> Any:
    if FLAG:
        return np.sum(x) * STATE.value
    return np.sum(x)


def in_a_try(x: Any) -> Any:
    try:
        k = scaled(1.0)
    except Exception:
        k = 100.0
    return np.sum(x) * k


def as_a_key(x: Any) -> Any:
    return np.sum(x) * sorted([1.0, -3.0], key=scaled)[0] * sum(map(scaled, [1.0, 2.0]))


def vectorized(x: Any) -> Any:
    return np.sum(x) * np.vectorize(scaled)(np.array([1.0, 2.0])).sum()


def along_an_axis(x: Any) -> Any:
    return np.sum(x) * np.apply_along_axis(functools.partial(scaled), 0, np.array([1.0, 2.0])).sum()


def piecewise(x: Any) -> Any:
    return np.sum(x) * np.piecewise(np.array([1.0, 2.0]), [np.array([True, False])], [scaled, scaled]).sum()


class Scales:
    kept = 1.0

    @property
    def read(self) -> Any:
        return scaled(self.kept)

    @functools.cached_property
    def cached(self) -> Any:
        return scaled(self.kept)

    def __add__(self, other: Any) -> Any:
        return scaled(other)

    def __call__(self, t: Any) -> Any:
        return scaled(t)


SCALES = Scales()


def of_a_property(x: Any) -> Any:
    return np.sum(x) * SCALES.read


def of_a_cached_property(x: Any) -> Any:
    return np.sum(x) * Scales().cached


def of_an_operator(x: Any) -> Any:
    return np.sum(x) * (SCALES + 2.0)


def of_an_object_that_is_called(x: Any) -> Any:
    return np.sum(x) * np.apply_along_axis(SCALES, 0, np.array([1.0, 2.0])).sum()


@functools.cache
def remembered(n: int) -> Any:
    return scaled(float(n))


def of_a_cache(x: Any) -> Any:
    return np.sum(x) * remembered(2)


WITHOUT_SOURCE: dict[str, Any] = {}
exec("def applied(f, t):\n    return f(t)\n", WITHOUT_SOURCE)
applied = WITHOUT_SOURCE["applied"]


def of_code_without_source(x: Any) -> Any:
    return np.sum(x) * applied(scaled, 2.0)


READING = (
    *(bare, in_a_try, as_a_key, vectorized, along_an_axis, piecewise, of_a_property, of_a_cached_property),
    *(of_an_operator, of_an_object_that_is_called, of_a_cache, of_code_without_source),
)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("f", READING, ids=lambda f: f.__name__)
def test_what_a_block_reads_is_seen_however_code_comes_to_it(
    f: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    slope, value = sg.grad(f), sg.jit(f)
    for flag in (False, True, False, True):
        for number in (2.0, 3.0):
            monkeypatch.setitem(globals(), "FLAG", flag)
            monkeypatch.setattr(STATE, "value", number)
            remembered.cache_clear()
            expected = f(X)
            np.testing.assert_allclose(value(X), expected)
            np.testing.assert_allclose(slope(X), np.full(3, expected / 6.0))


factor = 5.0


def binding(x: Any) -> Any:
    if DEBUG:
        factor = open(os.devnull)  # noqa: SIM115
    return np.sum(x) * factor  # type: ignore[operator]


def test_a_name_that_a_block_binds_stays_a_variable() -> None:
    for transform in (sg.grad, sg.jit):
        with pytest.raises(UnboundLocalError):
            transform(binding)(X)


def of_values(x: Any) -> Any:
    total = np.sum(x)
    if total > 10.0:
        with open(os.devnull) as file:
            return total * (2.0 + len(file.read()))
    return total


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_block_that_traced_values_decide_on_is_run_where_they_do() -> None:
    f = sg.grad(of_values)
    for x, slope in ((X, 1.0), (10.0 * X, 2.0), (X, 1.0), (9.0 * X, 2.0)):
        np.testing.assert_allclose(f(x), np.full(3, slope))


def counted(x: Any, n: int = 5) -> Any:
    for digit in format(n, "b"):
        x = x * 2.0 if digit == "1" else x
    return np.sum(x) * bin(n).count("1") * len(hex(n) + oct(n)) * ord(chr(n + 60))


def test_texts_of_pythons_own_numbers_are_part_of_a_program() -> None:
    for n in (5, 6, 7):
        assert sg.jit(counted, strict=True)(X, n) == counted(X, n)
        np.testing.assert_allclose(sg.grad(counted)(X, n), np.full(3, counted(X, n) / 6.0))
