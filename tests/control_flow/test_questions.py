"""What a function asks of its process: loggers, the environment and context variables are asked again at each call."""

from __future__ import annotations

import contextvars
import functools
import logging
import os
import sys
import types
import warnings
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

LOGGER = logging.getLogger("srcgrad.tests.questions")
MODE: contextvars.ContextVar[str] = contextvars.ContextVar("MODE", default="plain")
WEIGHTS: contextvars.ContextVar[Any] = contextvars.ContextVar("WEIGHTS")
X = np.array([0.5, 2.0])


class Solver:
    def __init__(self) -> None:
        self.log = LOGGER
        self.weights = WEIGHTS

    def loss(self, x: Any) -> Any:
        if self.log.isEnabledFor(logging.INFO):
            return np.sum(x**3)
        return np.sum(x**2) * self.log.getEffectiveLevel()

    def weighted(self, x: Any) -> Any:
        return np.sum(self.weights.get(None) * x)


SOLVER = Solver()


def by_the_level(x: Any) -> Any:
    return np.sum(x * x) * (3.0 if LOGGER.isEnabledFor(logging.DEBUG) else 1.0)


def by_the_environment(x: Any) -> Any:
    return np.sum(x) * len(os.environ.get("SRCGRAD_QUESTION", "a"))


def by_getenv(x: Any) -> Any:
    return np.sum(x) * (1.0 if os.getenv("SRCGRAD_QUESTION") is None else 2.0)


def by_an_item(x: Any) -> Any:
    return np.sum(x) * len(os.environ["SRCGRAD_QUESTION"]) if "SRCGRAD_QUESTION" in os.environ else np.sum(x * x)


def by_an_import(x: Any) -> Any:
    return np.sum(x * x) if "question_of_srcgrad" in sys.modules else np.sum(x)


def by_a_context(x: Any) -> Any:
    return np.sum(x * x) if MODE.get() == "plain" else np.sum(x)


def by_a_context_with_an_array(x: Any) -> Any:
    return np.sum(WEIGHTS.get() * x)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    "f",
    [by_the_level, SOLVER.loss, by_the_environment, by_getenv, by_an_item, by_an_import, by_a_context,
     by_a_context_with_an_array, SOLVER.weighted],
    ids=lambda f: f.__qualname__,
)  # fmt: skip
def test_a_process_is_asked_at_each_call(f: Any, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    g = sg.value_and_grad(f, backend=backend)

    def check() -> None:
        for _ in range(6):
            value, slope = g(X)
            assert value == pytest.approx(f(X), rel=1e-12)
            for k, step in enumerate(np.eye(2) * 1e-6):
                assert slope[k] == pytest.approx((f(X + step) - f(X - step)) / 2e-6, rel=1e-5)
        assert "One program" in sg.explain(g)(X)["how it runs"]

    weights = np.array([2.0, 3.0])
    tokens = MODE.set("plain"), WEIGHTS.set(weights)
    monkeypatch.delenv("SRCGRAD_QUESTION", raising=False)
    monkeypatch.setattr(LOGGER, "level", logging.WARNING)
    LOGGER.manager._clear_cache()  # type: ignore[attr-defined]
    check()
    monkeypatch.setenv("SRCGRAD_QUESTION", "abc")
    monkeypatch.setitem(sys.modules, "question_of_srcgrad", types.ModuleType("question_of_srcgrad"))
    LOGGER.setLevel(logging.DEBUG)
    MODE.set("other")
    weights *= 5.0
    check()
    WEIGHTS.set(np.array([7.0, 1.0]))
    monkeypatch.delenv("SRCGRAD_QUESTION")
    LOGGER.setLevel(logging.WARNING)
    check()
    MODE.reset(tokens[0])
    WEIGHTS.reset(tokens[1])


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_item_of_the_environment_that_is_not_there_is_pythons_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any, name: str = "SRCGRAD_QUESTION") -> Any:
        return np.sum(x) * float(os.environ[name]) * len(os.environ["SRCGRAD_OTHER"])

    slope = sg.grad(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for text, other in (("2.5", "a"), ("4", "a"), ("4", "ab")):
            monkeypatch.setenv("SRCGRAD_QUESTION", text)
            monkeypatch.setenv("SRCGRAD_OTHER", other)
            assert slope(X)[0] == float(text) * len(other)
    monkeypatch.delenv("SRCGRAD_QUESTION")
    with pytest.raises(KeyError, match="SRCGRAD_QUESTION"):
        slope(X)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize(
    "f",
    [lambda x: x * len(list(os.environ)), lambda x: x * (sys.modules.get("question") is None),
     lambda x: x * len(dict(os.environ)["SRCGRAD_QUESTION"])],
)  # fmt: skip
def test_all_of_the_environment_or_of_the_modules_is_no_question(f: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slope = sg.grad(f)
    for text in ("a", "abc"):
        monkeypatch.setenv("SRCGRAD_QUESTION", text)
        monkeypatch.setenv(f"SRCGRAD_{text}", text)
        monkeypatch.setitem(sys.modules, "question" if text == "abc" else "other_question", types)
        assert slope(2.0) == f(1.0)


HELD = types.SimpleNamespace(settings=os.environ)


def by_a_default(x: Any, settings: Any = os.environ) -> Any:
    return x * len(settings["SRCGRAD_QUESTION"])


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize(
    "f",
    [by_a_default, functools.partial(lambda settings, x: x * len(settings["SRCGRAD_QUESTION"]), os.environ),
     lambda x: x * len(HELD.settings["SRCGRAD_QUESTION"]),
     lambda x: by_a_default(x) * len(os.environ["SRCGRAD_QUESTION"])],
)  # fmt: skip
def test_the_environment_by_another_name_is_read_at_each_call(f: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slope = sg.grad(f)
    for text in ("a", "abc", "ab"):
        monkeypatch.setenv("SRCGRAD_QUESTION", text)
        assert slope(2.0) == f(1.0)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_what_is_changed_is_not_asked_in_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SRCGRAD_QUESTION", "a")

    def setting(x: Any) -> Any:
        MODE.set("other")
        return np.sum(x * x) * len(MODE.get())

    def held(x: Any) -> Any:
        SOLVER.weights.set(2.0)
        return np.sum(SOLVER.weights.get() * x)

    def assigning(x: Any) -> Any:
        os.environ["SRCGRAD_QUESTION"] += "b"
        return np.sum(x) * len(os.environ["SRCGRAD_QUESTION"])

    token = MODE.set("plain"), WEIGHTS.set(X)
    np.testing.assert_array_equal(sg.grad(setting)(X), 2.0 * X * len("other"))
    assert MODE.get() == "other"
    g = sg.grad(held)
    for _ in range(5):
        WEIGHTS.set(X)
        np.testing.assert_array_equal(g(X), [2.0, 2.0])
        assert WEIGHTS.get() == 2.0
    g = sg.grad(assigning)
    assert [g(X)[0] for _ in range(3)] == [2.0, 3.0, 4.0]
    MODE.reset(token[0])
    WEIGHTS.reset(token[1])


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_the_environment_is_asked_again_by_code_without_source(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {"os": os, "np": np, "sg": sg}
    exec("def f(x):\n    return np.sum(x) * len(os.environ.get('SRCGRAD_QUESTION', 'a'))", names)
    g = sg.grad(names["f"])
    for text in ("a", "abc", "ab"):
        monkeypatch.setenv("SRCGRAD_QUESTION", text)
        assert g(X)[0] == len(text)
