"""Attributes of functions, ``f.table``, that a function reads of another one or of itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.tracing.guard_lines import GuardFunction


def inner(x: Any) -> Any:
    return x * inner.rate * inner.weights[1]  # type: ignore[attr-defined]


def own(x: Any) -> Any:
    return x * own.rate + own.table["a"] * x**own.count + np.sum(own.weights * x)  # type: ignore[attr-defined]


def of_another(x: Any) -> Any:
    return inner(x) + inner.rate * x * inner.count  # type: ignore[attr-defined]


def looped(x: Any) -> Any:
    total = 0.0
    for k in range(40):
        total = total + np.sin(x * k) * own.rate  # type: ignore[attr-defined]
    return total


def called(x: Any) -> Any:
    return own.rule(x) * own.model.rate  # type: ignore[attr-defined]


class Model:
    rate = 2.0

    def __init__(self) -> None:
        self.rate = 3.0


FUNCTIONS: list[Callable[[Any], Any]] = [own, of_another, looped, called]


@pytest.fixture(autouse=True)
def attributes() -> None:
    for f in (inner, own):
        vars(f).update(rate=2.0, count=3, weights=np.array([1.0, 4.0]), table={"a": 1.5}, rule=np.sin, model=Model())


def slope_of(f: Callable[[Any], Any], x: float) -> float:
    return float((f(x + 1e-6) - f(x - 1e-6)) / 2e-6)


def change(name: str, value: Any) -> Callable[[], None]:
    return lambda: [setattr(f, name, value) for f in (inner, own)] and None


CHANGES: dict[str, Callable[[], None]] = {
    "rate": change("rate", 5.0),
    "whole rate": change("rate", 5),
    "count": change("count", 4),
    "weights": change("weights", np.array([2.0, 7.0])),
    "weights in place": lambda: [f.weights.fill(6.0) for f in (inner, own)] and None,  # type: ignore[attr-defined]
    "table": lambda: own.table.update(a=9.0),  # type: ignore[attr-defined]
    "other table": change("table", {"b": 1.0, "a": 4.0}),
    "rule": change("rule", np.cos),
    "own rule": change("rule", lambda x: x * inner.rate),  # type: ignore[attr-defined]
    "model": lambda: setattr(own.model, "rate", 11.0),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("f", FUNCTIONS)
def test_a_function_that_reads_attributes_of_functions_is_one_program(f: Callable[[Any], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        slope, value = sg.grad(f), sg.jit(f, strict=True)
        for x in (0.5, 0.7, 0.9, 1.1, 1.3, 1.5):
            assert slope(x) == pytest.approx(slope_of(f, x), rel=1e-5)
            assert value(x) == pytest.approx(f(x), rel=1e-12)


@pytest.mark.parametrize("name", list(CHANGES))
@pytest.mark.parametrize("f", FUNCTIONS)
def test_what_changes_of_a_function_changes_the_next_call(f: Callable[[Any], Any], name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        slope = sg.grad(f)
        for x in (0.5, 0.7, 0.9, 1.1, 1.3, 1.5):
            slope(x)
        CHANGES[name]()
        for x in (0.7, 1.3):
            assert slope(x) == pytest.approx(slope_of(f, x), rel=1e-5)


def test_an_attribute_that_is_gone_is_an_error_again() -> None:
    slope = sg.grad(own)
    for _ in range(6):
        slope(0.5)
    del own.rate  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="rate"):
        slope(0.5)


def test_a_list_of_a_function_that_is_appended_to_grows() -> None:
    def f(x: Any) -> Any:
        f.seen.append(1.0)  # type: ignore[attr-defined]
        return x * len(f.seen)  # type: ignore[attr-defined]

    f.seen = []  # type: ignore[attr-defined]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        assert [sg.grad(f)(2.0) for _ in range(6)] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_an_attribute_that_is_read_through_another_name() -> None:
    def f(x: Any) -> Any:
        g = inner
        return x * g.rate * inner.rate  # type: ignore[attr-defined]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        slope = sg.grad(f)
        assert [slope(0.5) for _ in range(6)] == [4.0] * 6
        inner.rate = 5.0  # type: ignore[attr-defined]
        assert slope(0.5) == 25.0


def test_an_attribute_that_is_assigned_through_another_name() -> None:
    def f(x: Any) -> Any:
        g = inner
        y = x * inner.rate  # type: ignore[attr-defined]
        g.rate = g.rate + 1.0  # type: ignore[attr-defined]
        return y

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        slope = sg.grad(f)
        assert [slope(0.5) for _ in range(6)] == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def test_an_attribute_that_is_only_assigned_holds_numbers() -> None:
    held = [1.0]

    def f(x: Any) -> Any:
        g = inner
        g.rate = held[0]  # type: ignore[attr-defined]
        return x * 2.0

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        slope = sg.grad(f)
        for k in range(6):
            held[0] = float(k)
            assert slope(0.5) == 2.0
            assert float(inner.rate) == k  # type: ignore[attr-defined]


def counted(x: Any) -> Any:
    counted.calls += 1  # type: ignore[attr-defined]
    return x**2


def reads_the_count(x: Any) -> Any:
    return counted(x) * counted.calls  # type: ignore[attr-defined]


def asks_for_the_count(x: Any) -> Any:
    return counted(x) * getattr(counted, "calls")  # noqa: B009


def begins_anew(x: Any) -> Any:
    counted.calls = 5  # type: ignore[attr-defined]
    return counted(x)


def assigns_by_a_local_name(x: Any) -> Any:
    found: Any = counted
    found.last = x
    found.calls = 7
    return counted(x)


def alone(x: Any) -> Any:
    return x * 2.0


def gives_another_one(x: Any) -> Any:
    found: Any = alone
    found.last = x
    return x * 2.0


def assigns_in_both_branches(x: Any) -> Any:
    """The last one that a trace comes to is what was there."""
    found: Any = counted
    if x > 1.0:
        found.calls = 3
    else:
        found.calls = 0
    return x * 2.0


def begins_anew_in_a_branch(x: Any) -> Any:
    if x > 1.0:
        counted.calls = 0  # type: ignore[attr-defined]
    else:
        counted.calls += 1  # type: ignore[attr-defined]
    return x * 2.0


def asks_and_deletes(x: Any) -> Any:
    for found in (counted, alone):
        if x > 1.0 and hasattr(found, "calls"):
            delattr(found, "calls")
    return x * 2.0


def assigns_what_every_function_has(x: Any) -> Any:
    found: Any = alone
    found.__doc__ = "once" if x < 1.0 else "more"
    return x * 2.0 if found.__doc__ == "once" else x


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize(
    "f",
    [
        counted,
        reads_the_count,
        asks_for_the_count,
        begins_anew,
        assigns_by_a_local_name,
        gives_another_one,
        assigns_in_both_branches,
        begins_anew_in_a_branch,
        asks_and_deletes,
        assigns_what_every_function_has,
    ],
)
def test_what_is_assigned_of_a_function_is_there_after_each_call(f: Callable[[Any], Any]) -> None:
    """Of functions that a local variable names it was there after the first call alone, a tracer among it."""
    found: list[Any] = []
    for run in (f, sg.jit(f), sg.grad(f)):
        vars(counted).clear()
        counted.calls, alone.__doc__ = 0, None  # type: ignore[attr-defined]
        for k, x in enumerate([0.5, 1.5, 2.0, 3.0]):
            vars(alone).clear()
            if k == 2:
                counted.calls = 10.5  # type: ignore[attr-defined]
            value = run(x)
            found.append([repr(vars(counted)), repr(vars(alone)), alone.__doc__, value])
    assert found[:4] == found[4:8]
    assert [state[:3] for state in found[:4]] == [state[:3] for state in found[8:]]


def without(x: Any) -> Any:
    return x


def asks_by_a_local_name(x: Any) -> Any:
    f: Any = without
    return x * f.rate if hasattr(f, "rate") else x


def has_a_default(x: Any) -> Any:
    f: Any = without
    return x * getattr(f, "rate", 1.0)


def handles_that_there_is_none(x: Any) -> Any:
    f: Any = without
    try:
        return x * f.rate
    except AttributeError:
        return x


@pytest.mark.parametrize("f", [asks_by_a_local_name, has_a_default, handles_that_there_is_none])
def test_a_function_that_has_an_attribute_now_is_another_one(f: Callable[[Any], Any]) -> None:
    """Its program was that of a function without: a stale number."""
    slope = sg.grad(f)
    for _ in range(2):
        assert slope(2.0) == 1.0
        for rate in (3.0, 5.0):
            without.rate = rate  # type: ignore[attr-defined]
            assert slope(2.0) == rate
        del without.rate  # type: ignore[attr-defined]


def deletes_by_a_local_name(x: Any) -> Any:
    f: Any = without
    if x < 1.0:
        del f.rate
    return x * 2.0


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("transform", [sg.jit, sg.grad])
def test_what_a_branch_deletes_of_a_function_is_there_where_it_is_not_taken(transform: Any) -> None:
    run = transform(deletes_by_a_local_name)
    for x in (2.0, 0.5, 3.0, 0.25):
        vars(without).clear()
        vars(without).update(rate=1.0, order=2)
        run(x)
        assert list(vars(without)) == ["rate", "order"][x < 1.0 :]
    with pytest.raises(AttributeError):
        run(0.125)
    vars(without).clear()


def test_functions_without_attributes_are_asked_about_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard for each function and name made a call of 40 functions in a ``try`` a hundred times as long."""
    asked: list[str] = []
    require = GuardFunction.require

    def counting(self: GuardFunction, condition: str) -> None:
        asked.append(condition)
        require(self, condition)

    monkeypatch.setattr(GuardFunction, "require", counting)

    def inner(x: Any) -> Any:
        return x.real * x.T

    def outer(x: Any) -> Any:
        try:
            return inner(x).sum() * x.size * x.ndim * x.mean() / x.max() + 0.0 * x.min()
        except Exception:
            return x

    assert sg.grad(outer)(np.array([3.0])) == [6.0]
    found = [condition for condition in asked if ".__dict__" in condition]
    assert found
    assert all(" or " in condition for condition in found)
