"""What code does with a class that it loads, told by the steps around."""

from __future__ import annotations

import abc
import fractions
import importlib
import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.tracing.bytecode import Scope
from srcgrad.tracing.class_uses import is_asked_for_methods, is_compared, is_only_called, is_only_compared
from srcgrad.tracing.members import is_above, names_its_class

g: Any = None


class A:
    k = 1

    def step(self, x: Any = None) -> Any: ...

    def above(self) -> Any:
        return super().__init__()

    def named(self) -> Any:
        return super(), __class__  # type: ignore[name-defined]

    def inside(self) -> Any:
        return [lambda: super(A, self).step, super().__init__]


def marks(f: Callable[..., Any], name: str, ask: Callable[[Any, int], bool]) -> str:
    """For each time that a name is loaded, in the order of the code, a letter."""
    steps = Scope(f.__code__, None, lambda name: True, deep=True, stores=True).steps
    found = [k for k, step in enumerate(steps) if step.kind == "global" and step.name == name]
    return "".join("y" if ask(steps, k + 1) else "n" for k in found)


def asked(f: Callable[..., Any]) -> str:
    return marks(f, "A", lambda steps, position: is_asked_for_methods(A, steps, position - 1, position))


def compared(f: Callable[..., Any]) -> str:
    return marks(f, "type", is_only_compared)


def test_a_class_that_is_asked_for_methods_or_about_an_object() -> None:
    assert asked(lambda x: A.step(x, 1)) == "y"
    assert asked(lambda x: A.k) == "y"
    assert asked(lambda x: (A.other, A.__dict__)) == "nn"  # type: ignore[attr-defined]
    assert asked(lambda x: isinstance(x.a[0], A)) == "y"
    assert asked(lambda x: isinstance(x, (A, int, A))) == "yy"
    assert asked(lambda x: (isinstance(x, (int, A)), g(x, A))) == "yn"
    assert asked(lambda x: super(A, x).step(x)) == "y"
    assert asked(lambda x: isinstance(x.f(x, A), int)) == "n"
    assert asked(lambda x: isinstance(g(x, A), int)) == "n"
    assert asked(lambda x: g(isinstance(x, A), A)) == "yn"
    assert asked(lambda x: [A, (A, x)]) == "nn"
    assert asked(lambda x: isinstance(x, int) and A) == "n"


def test_the_class_of_a_value_that_is_only_compared_or_named() -> None:
    assert compared(lambda x: type(x) is str) == "y"
    assert compared(lambda x: type(x.a[0]) in [list, tuple, g.ndarray]) == "y"
    assert compared(lambda x: type(x) is not A and x) == "y"
    assert compared(lambda x: type(x).__name__) == "y"
    assert compared(lambda x: type(x) is type(g)) == "yy"
    assert compared(lambda x: type(x) is not x.__class__) == "y"
    assert compared(lambda x: [type(x) is x.step, type(x) is (lambda: x)]) == "nn"
    assert compared(lambda x: type(x)(2)) == "n"
    assert compared(lambda x: type(x).step) == "n"
    assert compared(lambda x: [type(x), A] == x) == "n"
    assert compared(lambda x: [type(x), [A]]) == "n"
    assert compared(lambda x: (type(x), A) in x) == "n"
    assert compared(lambda x: type(g(x)) is A) == "n"
    assert compared(lambda x: g(type(x), A)) == "n"


def test_the_class_of_a_value_that_is_called_at_once() -> None:
    def called(f: Callable[..., Any]) -> str:
        return marks(f, "type", is_only_called)

    assert called(lambda x: type(x)(2, k=-x)) == "y"
    assert called(lambda x: type(x)()) == "y"
    assert called(lambda x: g(type(x)(*x), type(x)([y + 1 for y in x]))) == "yy"
    assert called(lambda x: type(x).step(2)) == "n"
    assert called(lambda x: g(type(x), g()(x))) == "n"
    assert called(lambda x: (k := type(x))(k)) == "n"
    assert called(lambda x: [type(x), g(x)]) == "n"


def test_a_method_that_asks_for_its_class_by_super_alone() -> None:
    for method, its_class, above in ((A.step, False, False), (A.above, True, True), (A.named, True, False)):
        assert names_its_class(method.__code__) == its_class
        assert is_above(method.__code__) == above
    assert names_its_class(A.inside.__code__) and not is_above(A.step.__code__)


class Unreadable:
    """A class that no analysis could follow, which is only asked about."""

    def __getattr__(self, name: str) -> Any:
        return len(io.StringIO(name).read())


class Shape(abc.ABC):  # noqa: B024
    """One that others are registered as."""


def of_another_class(x: Any) -> Any:
    if isinstance(x, Unreadable) or isinstance(x, (Unreadable, io.StringIO)):  # noqa: SIM101
        return x.value
    return x**2


def of_an_abstract_class(x: Any) -> Any:
    return x**2 if isinstance(FRACTION, Shape) else x**3


FRACTION = fractions.Fraction(1, 2)


def test_a_class_that_is_only_asked_about_is_not_read() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        assert sg.grad(of_another_class)(3.0) == 6.0


SHAPES = (Unreadable, (io.StringIO,))


def test_a_tuple_of_classes_that_is_only_asked_about_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    f = sg.grad(lambda x: x**2 if isinstance(FRACTION, SHAPES) else x**3 if isinstance(x, SHAPES) else x**4)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        assert f(3.0) == 108.0
        monkeypatch.setitem(globals(), "SHAPES", (*SHAPES, fractions.Fraction))
        assert f(3.0) == 6.0


RATES = [2.0, 3.0]


class Body:
    def __init__(self, size: Any) -> None:
        self.size = size

    def of(self, x: Any) -> Any:
        return self.size * RATES[0] * x


class Ball(Body):
    def is_(self, other: Any) -> Any:
        return type(other) is Ball

    def is_not(self, other: Any) -> Any:
        return type(other) is not type(self)

    def equals(self, other: Any) -> Any:
        return type(other) == Ball  # noqa: E721

    def differs(self, other: Any) -> Any:
        return other.__class__ != type(self)  # noqa: E721

    def is_one(self, other: Any) -> Any:
        return isinstance(other, self.__class__)

    def is_among(self, other: Any) -> Any:
        return type(other) in (int, Ball)

    def is_of(self, other: Any) -> Any:
        return other.__class__ is Ball

    def is_same(self, other: Any) -> Any:
        return self.__class__ is other.__class__

    def __add__(self, other: Any) -> Any:
        if type(other) is not Ball:
            return NotImplemented
        return Ball(self.size + other.size if self.size > 0.0 else other.size)

    def summed(self, other: Any) -> Any:
        if type(other) is not Ball:
            return False
        found = self + other
        return type(found) is Ball


@pytest.mark.parametrize(
    "name", ["is_", "is_not", "equals", "differs", "is_one", "is_among", "is_of", "is_same", "summed"]
)
@pytest.mark.parametrize("captured", [True, False], ids=["captured", "made"])
def test_classes_that_are_told_apart_are_those_of_objects_of_the_trace(
    name: str, captured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, held = getattr(Ball, name), (Ball(2.0), Ball(3.0), Body(5.0))

    def f(x: Any) -> Any:
        one, same, other = held if captured else (Ball(2.0 * x), Ball(3.0), Body(5.0))
        return (same.of(x) if ask(one, same) else x * x) + (other.of(x) if ask(one, other) else x**3)

    slope = sg.grad(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for rate in (2.0, 4.0):
            monkeypatch.setitem(globals(), "RATES", [rate, 3.0])
            assert abs(slope(1.5) - (f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6) < 1e-6


def test_another_class_of_that_name_is_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    f = sg.grad(lambda x: x**2 if isinstance(FRACTION, Unreadable) else x**3)
    assert f(3.0) == 27.0
    monkeypatch.setitem(globals(), "Unreadable", fractions.Fraction)
    assert f(3.0) == 6.0


def test_a_class_that_is_registered_later_is_seen() -> None:
    f = sg.grad(of_an_abstract_class)
    assert f(3.0) == 27.0
    Shape.register(fractions.Fraction)
    assert f(3.0) == 6.0


class Registered(abc.ABC):
    """Notes its subclasses in what it has for all objects."""

    known: ClassVar[dict[str, type]] = {}

    def __init_subclass__(cls) -> None:
        Registered.known[cls.__name__] = cls

    @abc.abstractmethod
    def value(self, x: Any) -> Any: ...


class Squared(Registered):
    def value(self, x: Any) -> Any:
        return x * x


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_abstract_class_that_notes_its_subclasses() -> None:
    assert sg.grad(lambda x: Registered.known["Squared"]().value(x))(3.0) == 6.0  # type: ignore[attr-defined]


LENT = """
import numpy as np
RATE, TABLE = 3.0, np.array([1.0, 2.0])
class Model:
    def __init__(self, x):
        self.level = Model.scaled(x) * TABLE[1]
    @staticmethod
    def scaled(x):
        return RATE * x
"""
USES = """
import {0} as rules
def called(x):
    return rules.Model(x).level
def asked(x):
    return rules.Model.scaled(x) + rules.Model(x).level
def handed_on(x):
    return [kind(x).level for kind in [rules.Model]][0]
"""


def test_a_class_of_a_module_is_called_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "lent_rules_of_classes.py").write_text(LENT)
    (tmp_path / "users_of_lent_rules.py").write_text(USES.format("lent_rules_of_classes"))
    uses = importlib.import_module("users_of_lent_rules")
    for name in ("called", "asked"):
        slope = sg.grad(getattr(uses, name))
        with warnings.catch_warnings():
            warnings.simplefilter("error", sg.RetraceWarning)
            for rate in (3.0, 4.0, 5.0) * 3:
                monkeypatch.setattr(uses.rules, "RATE", rate)
                assert slope(1.5) == rate * (3.0 if name == "asked" else 2.0)
    with pytest.warns(sg.RetraceWarning, match="is not only called"):
        assert sg.grad(uses.handed_on)(1.5) == 10.0


def test_a_class_that_is_compared_with_that_of_an_object_behind_it() -> None:
    def told(f: Callable[..., Any]) -> str:
        return marks(f, "A", lambda steps, position: is_compared(steps, position - 1, position))

    assert told(lambda x: A is type(x)) == "y"
    assert told(lambda x: type(x.layers[0]) == A or A is not type(g)) == "yy"  # noqa: E721
    assert told(lambda x: (A, type(x) is int)) == "n"
    assert told(lambda x: (A if g else int) is type(x)) == "n"
    assert told(lambda x: g(A, type(x))) == "n"
    assert told(lambda x: A is type(x)(1)) == "n"
    assert told(lambda x: A is (type(x) if g else int)) == "n"


WEIGHTS = np.arange(1.0, 4.0)


class Line:
    def value(self, x: Any) -> Any:
        return WEIGHTS * x


class Curve(Line):
    def value(self, x: Any) -> Any:
        return WEIGHTS * x * x


SHAPE: Any = Line()


@pytest.mark.parametrize("same", [lambda x: Line is type(x), lambda x: Line == type(x)])  # noqa: E721
def test_what_is_compared_with_a_class_is_one_program(same: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def loss(x: Any) -> Any:
        return np.sum(SHAPE.value(x)) * (2.0 if same(SHAPE) else 1.0)

    slope, x = sg.grad(loss), np.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for _ in range(2):
            np.testing.assert_array_equal(slope(x), 2.0 * WEIGHTS)
        monkeypatch.setitem(globals(), "WEIGHTS", np.full(3, 5.0))
        np.testing.assert_array_equal(slope(x), 2.0 * WEIGHTS)
        monkeypatch.setitem(globals(), "SHAPE", Curve())
        np.testing.assert_array_equal(slope(x), 2.0 * WEIGHTS)
        monkeypatch.setitem(globals(), "SHAPE", Line())
        monkeypatch.setattr(Line, "value", lambda self, x: 3.0 * x)
        np.testing.assert_array_equal(slope(x), np.full(3, 6.0))


class Registry(abc.ABC):  # noqa: B024
    pass


class Other(Line):
    pass


def test_what_issubclass_is_asked_about() -> None:
    assert asked(lambda x: issubclass(type(x), A)) == "y"
    assert asked(lambda x: issubclass(type(x.a[0]), (int, A))) == "y"
    assert asked(lambda x: issubclass(x, A)) == "y"
    assert asked(lambda x: g(type(x), A)) == "n"
    assert asked(lambda x: issubclass(g(x), A)) == "n"
    assert asked(lambda x: issubclass(A, (int, str)) or issubclass(A, (int, A))) == "nny"
    assert set(asked(lambda x: issubclass(type(x) if g else int, A))) == {"n"}  # twice in Python 3.13's code
    assert compared(lambda x: issubclass(type(x), A)) == "y"
    assert compared(lambda x: issubclass(type(x), (A, int))) == "y"
    assert compared(lambda x: issubclass(type(x), (A, g(x)))) == "n"
    assert compared(lambda x: issubclass(type(x), A if g else int)) == "n"
    assert compared(lambda x: g(type(x), A)) == "n"
    assert compared(lambda x: (type(x), A)) == "n"
    assert compared(lambda x: issubclass(A, type(x))) == "n"


@pytest.mark.parametrize(
    "told",
    [
        lambda x: issubclass(type(x), Curve),
        lambda x: issubclass(type(x), (int, Curve)),
        lambda x: issubclass(type(x), (Registry, Curve)),
    ],
)
def test_what_issubclass_says_is_one_program(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Bent(Curve):
        pass

    def loss(x: Any) -> Any:
        return np.sum(SHAPE.value(x)) * (2.0 if told(SHAPE) else 1.0)

    def check() -> None:
        for _ in range(6):
            assert value(x) == loss(x)

    monkeypatch.setitem(globals(), "SHAPE", Bent())
    value, x = sg.jit(loss), np.array([1.0, 2.0, 4.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        check()
        assert sg.explain(value)(x)["how it runs"].startswith("One program")
        monkeypatch.setitem(globals(), "WEIGHTS", np.full(3, 5.0))
        check()
        for shape in (Curve(), Line(), Other(), Bent()):
            monkeypatch.setitem(globals(), "SHAPE", shape)
            check()
        Bent.__bases__ = (Line,)
        check()
        assert value(x) == 35.0
        monkeypatch.setattr(Line, "value", lambda self, x: x)
        check()


def test_what_issubclass_finds_is_registered_later() -> None:
    class Late:
        def value(self, x: Any) -> Any:
            return 2.0 * x

    shape: Any = Late()

    def loss(x: Any) -> Any:
        return np.sum(shape.value(x)) * (2.0 if issubclass(type(shape), Registry) else 1.0)

    value, x = sg.jit(loss), np.ones(3)
    for _ in range(6):
        assert value(x) == 6.0
    Registry.register(Late)
    assert value(x) == 12.0
