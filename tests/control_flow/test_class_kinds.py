"""Classes of kinds that Python's library knows: protocols, registries of subclasses, methods that manage contexts."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pytest

import srcgrad as sg


@runtime_checkable
class Layer(Protocol):
    def run(self, x: Any) -> Any: ...


class Square(Layer):
    def run(self, x: Any) -> Any:
        return x * x


class Damped(Layer):
    def __init__(self, rate: float) -> None:
        self.rate = rate

    def run(self, x: Any) -> Any:
        while x > 1.0:
            x = x * self.rate
        return x

    @property
    def halved(self) -> Any:
        return self.rate / 2.0 if self.rate > 0.1 else self.rate

    def __add__(self, other: Any) -> Any:
        return self.run(other) if other > 2.0 else other * self.rate


DAMPED = Damped(0.8)


def of_a_protocol(x: Any) -> Any:
    return Square().run(x) * Damped(0.7).run(x)


def of_a_protocol_outside(x: Any) -> Any:
    return DAMPED.run(x) * DAMPED.halved


def operators_of_a_protocol(x: Any) -> Any:
    damped = Damped(0.6)
    return damped + x + (damped.halved if isinstance(damped, Layer) else x)


class Registered:
    known: dict[str, type] = {}  # noqa: RUF012
    count = 0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Registered.known[cls.__name__] = cls
        Registered.count += 1

    def twice(self, x: Any) -> Any:
        return 2.0 * self.run(x)

    def run(self, x: Any) -> Any:
        raise NotImplementedError


class Power(Registered):
    def __init__(self, order: int = 2) -> None:
        self.order = order

    @property
    def next(self) -> int:
        return self.order + 1

    def run(self, x: Any) -> Any:
        return x**self.order + x**self.next if x > 0.5 else x


class Chosen(Registered):
    """A property that Python calls by itself, in which a traced value decides."""

    def __init__(self, rate: Any) -> None:
        self.rate = rate

    @property
    def least(self) -> Any:
        return min(self.rate, 1.0) if self.rate > 0.0 else self.rate

    def run(self, x: Any) -> Any:
        return x * self.least


POWER = Power(3)


def of_a_registered_class(x: Any) -> Any:
    return Power(3).twice(x) + Power().run(x)


def of_a_registered_object(x: Any) -> Any:
    return POWER.twice(x) * POWER.next


def of_a_property_that_decides(x: Any) -> Any:
    return Chosen(x).twice(x)


class Trial:
    def __init__(self, scale: Any = 1.0) -> None:
        self.scale = scale

    @contextlib.contextmanager
    def of(self, x: Any) -> Iterator[Any]:
        before, self.scale = self.scale, 2.0 * self.scale
        yield x * self.scale if x > 1.0 else x
        self.scale = before


TRIAL = Trial(1.5)


class Held:
    def __init__(self, scale: Any) -> None:
        self.scale = scale

    @contextlib.contextmanager
    def of(self, x: Any) -> Iterator[Any]:
        yield x * self.scale


HELD = Held(1.5)


def of_a_managing_method(x: Any) -> Any:
    trial = Trial(3.0)
    with trial.of(x) as y, trial.of(y) as z:
        x = x * z * trial.scale
    return x + trial.scale


def of_a_managing_method_outside(x: Any) -> Any:
    with HELD.of(x) as y:
        return y * HELD.scale * x


def of_an_object_that_is_set_back(x: Any) -> Any:
    with TRIAL.of(x) as y:
        return y * TRIAL.scale


ONE_PROGRAM = [of_a_protocol, of_a_protocol_outside, operators_of_a_protocol, of_a_registered_class,
               of_a_registered_object, of_a_managing_method, of_a_managing_method_outside]  # fmt: skip


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    "f", [*ONE_PROGRAM, of_a_property_that_decides, of_an_object_that_is_set_back], ids=lambda f: f.__name__
)
def test_classes_give_what_python_does(f: Callable[[Any], Any], backend: str) -> None:
    count = Registered.count
    g = sg.value_and_grad(f, backend=backend)
    for x in (0.3, 1.3, 2.7, 9.0):
        value, slope = g(x)
        assert value == pytest.approx(f(x), rel=1e-12)
        assert slope == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-6)
    if f in ONE_PROGRAM:
        assert "One program" in sg.explain(g)(1.3)["how it runs"]
    assert Registered.count == count, "a class was made that registers itself"


def test_a_method_of_a_protocol_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    g = sg.grad(of_a_protocol_outside)
    before = g(0.5)
    monkeypatch.setattr(Damped, "run", lambda self, x: np.sin(x))
    assert before == pytest.approx(0.4)
    assert g(0.5) == pytest.approx(0.4 * np.cos(0.5))
    monkeypatch.setattr(DAMPED, "rate", 0.2)
    assert g(0.5) == pytest.approx(0.1 * np.cos(0.5))


@runtime_checkable
class Runs(Protocol):
    def run(self, x: Any) -> Any: ...


class Plain:
    pass


PLAIN = [Plain()]


def asks_for_a_protocol(x: Any) -> Any:
    return x * sum(3.0 if isinstance(one, Runs) else 1.0 for one in PLAIN)


def matches_a_protocol(x: Any) -> Any:
    match PLAIN[0]:
        case Runs():
            return x * 3.0
    return x


@pytest.mark.parametrize("f", [asks_for_a_protocol, matches_a_protocol])
def test_a_class_that_gets_the_methods_of_a_protocol_is_one_of_it_then(
    f: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program took it for what it was before."""
    g = sg.jit(f)
    assert g(1.5) == 1.5
    with monkeypatch.context() as patching:
        patching.setattr(Plain, "run", lambda self, x: x, raising=False)
        assert g(1.5) == f(1.5) == 4.5
    assert g(1.5) == 1.5


CLOSED: list[str] = []


class Closing:
    def __init__(self) -> None:
        self.rate = 2.0

    def run(self, x: Any) -> Any:
        return x * self.rate

    def __del__(self) -> None:
        CLOSED.append("closed")


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_object_is_dropped_as_often_as_in_plain_python() -> None:
    """Copies of a trace were dropped too: what such an object closes may be the caller's."""
    held = Closing()

    def both(x: Any) -> Any:
        return held.run(x) + Closing().run(x)

    CLOSED.clear()
    for transform in (sg.jit, sg.grad):
        f = transform(both)
        assert [f(1.5) for _ in range(5)] == [6.0 if transform is sg.jit else 4.0] * 5
        gc.collect()
        assert CLOSED == ["closed"] * 5
        CLOSED.clear()
