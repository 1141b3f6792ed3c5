"""Messages to loggers: made when the program runs, with its numbers, at the user's lines."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

LOGGER = logging.getLogger("srcgrad.tests.messages")
HEARD = io.StringIO()
POINTS = (np.array([1.0, 1.0]), np.array([0.1, 0.2]), np.array([0.7, -0.1]))


class Solver:
    def __init__(self) -> None:
        self.log = LOGGER

    def solve(self, x: Any) -> Any:
        for k in range(3):
            x = x * 0.5
            self.log.info("step %d sum=%.3f %s", k, x.sum(), x)
            if x.sum() > 0.3:
                LOGGER.warning(f"large: {x.max():.2f}")
            else:
                LOGGER.log(logging.ERROR, "small", extra={"why": "tests"})
        return np.sum(x**2)


SOLVER = Solver()


def plain(x: Any) -> Any:
    LOGGER.debug("hello")
    return np.sum(x) * 2


def long_loop(x: Any) -> Any:
    total = 0.0
    for k in range(40):
        total = total + np.sum(x) * k
        if k % 10 == 0:
            LOGGER.debug("%d: %r", k, total)
    return total * np.sum(x)


def asking(x: Any) -> Any:
    if LOGGER.isEnabledFor(logging.INFO):
        LOGGER.info("on %s", x[0])
    return np.sum(x)


def that_reads_the_level(x: Any) -> Any:
    LOGGER.debug("reads")
    return np.sum(x) * (2 if SOLVER.log.level == logging.DEBUG else 3)


def that_handles(x: Any) -> Any:
    try:
        return np.sum(x) / {"a": 1}["b"]
    except KeyError:
        LOGGER.exception("no b")
        return np.sum(x * x)


def by_its_name(x: Any) -> Any:
    log = logging.getLogger("srcgrad.tests.messages")
    if x[0] > 0.5:
        log.warning("large: %.2f", x[0])
    return np.sum(x) * np.sum(x)


def that_asks_one_by_its_name(x: Any) -> Any:
    log = logging.getLogger("srcgrad.tests.messages")
    return np.sum(x) * (2 if log.level == logging.DEBUG else 3)


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    handler = logging.StreamHandler(HEARD)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(filename)s:%(lineno)d %(funcName)s %(message)s"))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG)
    LOGGER.propagate = False
    yield
    LOGGER.removeHandler(handler)
    LOGGER.setLevel(logging.NOTSET)
    LOGGER.propagate = True


def said() -> str:
    found = HEARD.getvalue()
    HEARD.seek(0)
    HEARD.truncate()
    return found


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    "f",
    [
        SOLVER.solve,
        plain,
        long_loop,
        by_its_name,
        asking,
        that_reads_the_level,
        that_handles,
        that_asks_one_by_its_name,
    ],
    ids=lambda f: f.__name__,
)
def test_messages_are_those_of_numpy(f: Callable[[Any], Any], backend: str) -> None:
    derivative = sg.value_and_grad(f, backend=backend)
    for level in (logging.DEBUG, logging.WARNING, logging.DEBUG):
        LOGGER.setLevel(level)
        for x in POINTS:
            value = f(x)
            messages = said().split("Traceback")[0]
            found, slope = derivative(x)
            assert said().split("Traceback")[0] == messages
            assert found == pytest.approx(value, rel=1e-12)
            expected = [(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * np.eye(2)]
            np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-8)
            said()
    one = "One program" in sg.explain(derivative)(POINTS[0])["how it runs"]
    assert one == (not f.__name__.startswith("that"))
    said()


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_values_in_messages_are_numbers_where_numbers_are_known() -> None:
    def f(x: Any) -> Any:
        LOGGER.info("%.2f %s", x.sum(), x.tolist()[:1])
        LOGGER.isEnabledFor(10)
        return np.sum(x**2)

    sg.grad(f)(POINTS[0])
    assert said().endswith("f 2.00 [1.0]\n")


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_functions_of_logging_have_messages_for_the_root(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    def f(x: Any) -> Any:
        logging.debug("unheard")
        if x > 1.0:
            logging.warning("%.1f is large", x)
        return x * x

    slope = sg.grad(f, backend=backend)
    for x in (0.5, 2.0, 3.0):
        assert slope(x) == 2.0 * x
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("root", "2.0 is large"),
        ("root", "3.0 is large"),
    ]
    assert sg.explain(slope)(2.0)["how it runs"].startswith("One program")


def test_the_root_is_set_up_by_the_first_message(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        logging.error("at %.1f", x)
        return x * x

    root, slope = logging.getLogger(), sg.grad(f)
    before = root.handlers[:]
    try:
        root.handlers[:] = []
        assert slope(1.0) == 2.0
        assert len(root.handlers) == 1
    finally:
        root.handlers[:] = before
    assert capsys.readouterr().err == "ERROR:root:at 1.0\n"
