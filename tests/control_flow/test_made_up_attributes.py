"""Objects of classes with ``__getattr__``: what it reads is an input or a guard as if it were written out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.traced_once import agrees_after_changes

SCALES = [2.0, 3.0]


class Parameters:
    """Finds what it is asked for in a dict; what is not there is 1."""

    def __init__(self, known: dict[str, Any]) -> None:
        self._known = known

    def __getattr__(self, name: str) -> Any:
        return self._known.get(name, 1.0)


class Inner:
    def __init__(self, k: float) -> None:
        self.k = k
        self.gain = k + 1.0

    def force(self, x: Any) -> Any:
        return -self.k * x * SCALES[0]


class Delegate:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name.removeprefix("its_"))

    def __call__(self, x: Any) -> Any:
        for _ in range(30):
            x = x - 0.01 * self.force(x) if x > -50.0 else x
        return x


class Keys:
    """Raises another error than Python expects of what is not there, as a dict does."""

    def __init__(self, **known: Any) -> None:
        self.__dict__["_known"] = known

    def __getattr__(self, name: str) -> Any:
        return self._known[name] * 2.0


PARAMETERS = Parameters({"a": 2.0, "b": np.array([1.0, 2.0])})
DELEGATE = Delegate(Inner(3.0))
KEYS = Keys(a=2.0)
NOTING: Any = None


def of_parameters(x: Any) -> Any:
    return PARAMETERS.a * x * x + PARAMETERS.b[1] * x + PARAMETERS.c * np.sin(x)


def of_a_delegate(x: Any) -> Any:
    return DELEGATE(x) * DELEGATE.its_gain + Delegate(Inner(x)).force(x)


def of_keys(x: Any) -> Any:
    return KEYS.a * x + Keys(a=x).a


def doubled(self: Any, name: str) -> Any:
    return 2.0 * self._known[name] if name != "c" else 0.0


def change(number: int) -> None:
    match number:
        case 1:
            PARAMETERS._known["a"] = 5.0
            DELEGATE.inner.k = 4.0
            DELEGATE.inner.gain = 2.5
            KEYS._known["a"] = 3.0
        case 2:
            PARAMETERS._known["b"][1] = 7.0
            DELEGATE.inner = Inner(5.0)
        case 3:
            PARAMETERS.a = 9.0
            DELEGATE.its_gain = 1.5
            KEYS.__dict__["_known"] = {"a": 4.0}
        case 4:
            PARAMETERS._known["c"] = 11.0
            SCALES[0] = 4.0
        case 5:
            Parameters.a = 0.5  # type: ignore[attr-defined]
            del PARAMETERS.a
        case 6:
            del Parameters.a  # type: ignore[attr-defined]
            Parameters.__getattr__ = doubled  # type: ignore[method-assign]
        case 7:
            del DELEGATE.its_gain


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [of_parameters, of_a_delegate, of_keys])
def test_attributes_that_a_class_makes_up_are_one_program_and_never_stale(
    f: Callable[[Any], Any], backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "SCALES", [2.0, 3.0])
    monkeypatch.setattr(Parameters, "__getattr__", Parameters.__getattr__)
    monkeypatch.setitem(globals(), "PARAMETERS", Parameters({"a": 2.0, "b": np.array([1.0, 2.0])}))
    monkeypatch.setitem(globals(), "DELEGATE", Delegate(Inner(3.0)))
    monkeypatch.setitem(globals(), "KEYS", Keys(a=2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        # The calls between two changes are answered by machine code from some on.
        agrees_after_changes(
            f, backend, lambda k: change(k // 6) if k % 6 == 0 else None, [0.3 + k / 97 for k in range(48)]
        )


def test_what_an_object_assigns_on_one_path_is_as_it_was_on_the_other() -> None:
    def f(x: Any) -> Any:
        made = Parameters({"a": x})
        made.b = 1.0
        if x > 1.0:
            made.b = x
            made._known["a"] = 3.0
        return made.a * made.b

    derivative = sg.value_and_grad(f)
    assert derivative(0.5) == (0.5, 1.0)
    assert derivative(2.0) == (6.0, 3.0)


class Noting:
    """Assigns in its own way, so that no method that Python calls by itself is converted."""

    def __init__(self, inner: Any) -> None:
        self.__dict__["inner"] = inner

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name.removeprefix("its_"))

    @property
    def first(self) -> Any:
        return getattr(self.inner, "".join(["ga", "in"]))


@pytest.mark.parametrize("f", [lambda x: NOTING.its_gain * x, lambda x: NOTING.first * x])
def test_names_that_are_computed_where_nothing_is_converted_are_never_stale(
    f: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "NOTING", Noting(Inner(3.0)))
    derivative = sg.grad(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        assert [derivative(1.0) for _ in range(6)] == [4.0] * 6
        NOTING.inner.gain = 7.0
        assert derivative(1.0) == 7.0
