"""Classes that attrs writes, as those of dataclasses: what only shows their fields is passed over."""

from __future__ import annotations

import dataclasses
import linecache
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

WRITTEN = """
def __repr__(self):
    context.showing = True
    return f"{type(self).__name__}(a={self.a}, b={self.b})"
def __eq__(self, other):
    return (self.a, self.b) == (other.a, other.b)
def __init__(self, a, b=2.0):
    _setattr = _cached_setattr_get(self)
    _setattr("a", a)
    _setattr("b", b)
"""


class Frozen(AttributeError):
    pass


def frozen_setattrs(self: Any, name: str, value: Any) -> None:
    raise Frozen


def written_class(name: str, **more: Any) -> Any:
    """A class as attrs makes one: its methods have a file of their own, and what forbids assignments is in attrs."""
    file = f"<attrs generated methods {__name__}.{name}>"
    linecache.cache[file] = (len(WRITTEN), None, WRITTEN.splitlines(True), file)
    names = {"_cached_setattr_get": object.__setattr__.__get__, "context": threading.local(), "__name__": __name__}
    before = set(names)
    exec(compile(WRITTEN, file, "exec"), names)
    members = {key: value for key, value in names.items() if key not in before and key != "__builtins__"}
    home = {"Frozen": Frozen, "__name__": "attr._make"}
    members["__setattr__"] = types.FunctionType(frozen_setattrs.__code__, home)
    return type(name, (), {**members, "__slots__": ("a", "b"), "__hash__": None, **more})


Point = written_class("Point", area=lambda self: self.a * self.b)
kept = Point(3.0)


def made(x: Any) -> Any:
    return Point(x, x * x).area() * kept.area()


def compared(x: Any) -> Any:
    return x * 2.0 if Point(x) == Point(2.0) else x * kept.a


def refused(x: Any) -> Any:
    try:
        Point(x).a = 1.0
    except Frozen:
        return 3.0 * x
    return x


@pytest.mark.parametrize("f", [made, compared])
def test_they_are_programs(f: Callable[[Any], Any]) -> None:
    slope = sg.value_and_grad(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (1.5, 2.5):
            object.__setattr__(kept, "a", x + 1.0)
            value, found = slope(x)
            assert value == pytest.approx(f(x))
            assert found == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6)
    assert "traced again" not in sg.explain(slope)(1.5)["how it runs"]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_what_is_frozen_stays_so() -> None:
    assert sg.grad(refused)(1.0) == 3.0


@dataclasses.dataclass(frozen=True)
class Record:
    a: Any


class Plain:
    __slots__ = ("a",)

    def __init__(self, a: Any) -> None:
        self.a = a

    def __repr__(self) -> str:
        return f"Plain({self.a})"


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("cls", [Point, Record, Plain])
def test_an_object_that_is_printed_shows_its_numbers(cls: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        print(cls(x))
        print([cls(x)])
        return x * x

    slope = sg.grad(f)
    for x in (1.5, 2.5):
        f(x)
        wanted = capsys.readouterr().out
        assert slope(x) == 2.0 * x
        assert capsys.readouterr().out == wanted


class Meta(type):
    __module__ = property(lambda cls: "made elsewhere")  # type: ignore[assignment]


class Unusual(metaclass=Meta):
    scale = 2.0


unusual = Unusual()


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_metaclass_whose_module_is_no_text_is_no_fault() -> None:
    assert sg.grad(lambda x: unusual.scale * x * x)(3.0) == 12.0


def test_isinstance_may_ask_about_classes_that_are_not_called() -> None:
    def flat(items: Any) -> Any:
        for item in items:
            if isinstance(item, (str, bytes, bytearray, memoryview)):
                raise TypeError
            if isinstance(item, (list, tuple)):
                yield from flat(item)
            else:
                yield item

    def f(x: Any) -> Any:
        return sum(flat([x, [2.0 * x, (x * x,)]]))

    slope = sg.grad(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose([slope(1.5), slope(2.5)], [6.0, 8.0])


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_one_that_is_called_too_is_what_it_is() -> None:
    def f(x: Any) -> Any:
        return x if isinstance(x, bytearray) else bytearray([2, 3])[0] * x

    slope = sg.grad(f)
    assert slope(1.0) == 2.0
    assert not sg.explain(slope)(1.0)["how it runs"].startswith("One program")
