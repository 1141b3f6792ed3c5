"""Methods behind ``super()``, called by their class, or asked for by ``isinstance`` read what has changed."""

from __future__ import annotations

import abc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.traced_once import agrees_after_changes

RATE, ARRAY = {"a": 1.5}, np.array([1.0, 2.0])


class Base(abc.ABC):
    def __init__(self, w: Any) -> None:
        self.w = w * RATE["a"]

    @abc.abstractmethod
    def energy(self, x: Any) -> Any: ...

    def total(self, x: Any) -> Any:
        return self.energy(x) + RATE["a"] * x

    @property
    def weight(self) -> Any:
        return self.w * ARRAY[0] if self.w > 0 else self.w * ARRAY[1]

    @classmethod
    def made(cls, w: Any) -> Any:
        return cls(w * RATE["a"])

    @staticmethod
    def fixed(x: Any) -> Any:
        return x * RATE["a"]

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Base):
            return self.w + other.w * RATE["a"]
        return self.w + (other if type(other) is not str else 0.0)

    def __call__(self, x: Any) -> Any:
        return x * ARRAY[1]

    def described(self, x: Any) -> Any:
        return x * RATE["a"] * len(self.__class__.__name__) * len(type(self).__name__)


class Middle(Base):
    def __init__(self, w: Any) -> None:
        super().__init__(w)
        self.v = RATE["a"]

    def energy(self, x: Any) -> Any:
        return x * x * RATE["a"] + self.v

    def total(self, x: Any) -> Any:
        found = 0.0
        for k in range(3):
            found = found + super().total(x) * (k + 1)
        return found

    @property
    def weight(self) -> Any:
        return super().weight * 2.0 + RATE["a"]

    @classmethod
    def made(cls, w: Any) -> Any:
        return super().made(w * ARRAY[0])


class Mixed:
    def total(self, x: Any) -> Any:
        return super().total(x) * RATE["a"]  # type: ignore[misc]


class Last(Mixed, Middle):
    def __init__(self, w: Any) -> None:
        super(Last, self).__init__(w)  # noqa: UP008
        self.u = 1.0

    def energy(self, x: Any) -> Any:
        return Middle.energy(self, x) + super().energy(x)

    def total(self, x: Any) -> Any:
        return super().total(x) + self.weight * x

    @staticmethod
    def fixed(x: Any) -> Any:
        return Middle.fixed(x) * 2.0

    def __add__(self, other: Any) -> Any:
        return super().__add__(other) * RATE["a"]

    def __call__(self, x: Any) -> Any:
        return super().__call__(x) + 1.0

    def handed_on(self, x: Any) -> Any:
        return sum(map(super().total, [x, 2.0 * x]))

    def names_its_class(self, x: Any) -> Any:
        return __class__.fixed(x)  # type: ignore[name-defined]


def called_and_asked_about(x: Any) -> Any:
    made = Last(x)
    return Middle(x)(x) * (2.0 if isinstance(made, Middle) else 1.0)


MIDDLE, LAST = Middle(1.1), Last(0.7)
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "a base's method": lambda x: MIDDLE.total(x),
    "several bases": lambda x: LAST.total(x),
    "a bound method": LAST.energy,
    "a method of the class": lambda x: Middle.energy(LAST, x),
    "a property": lambda x: LAST.weight * x,
    "an operator": lambda x: LAST + x,
    "isinstance": lambda x: (LAST + MIDDLE) * x,
    "a call": lambda x: LAST(x),
    "a static method": lambda x: LAST.fixed(x),
    "handed on": lambda x: LAST.handed_on(x),
    "the name of the class": lambda x: LAST.described(x),
    "made inside": lambda x: Last(x).total(x),
    "of both classes made inside": lambda x: (Last(x) + Middle(x)) * x + (Middle(x) + Last(x)),
    "a class that is called and asked about": called_and_asked_about,
    "properties of what is made inside": lambda x: Middle(x).weight * Last(x).weight,
    "a class method": lambda x: Last.made(x).total(x),
    "one of several classes": lambda x: x * RATE["a"] if isinstance(MIDDLE, (int, Last)) else Middle(x)(x),
}


def change(k: int) -> None:
    RATE["a"] = 1.0 + 0.3 * k
    ARRAY[:] = [k + 1.0, k - 0.5]


def agrees(f: Callable[[Any], Any], backend: str) -> None:
    agrees_after_changes(f, backend, change, [0.7, 1.3, -0.4, 1.9])


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_methods_above_see_what_has_changed(name: str, backend: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        agrees(PROGRAMS[name], backend)
    one_program = sg.jit(PROGRAMS[name], strict=True, backend=backend)
    np.testing.assert_allclose(one_program(0.7), PROGRAMS[name](0.7), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize(
    "f",
    [
        lambda x: LAST.names_its_class(x),
        lambda x: type(LAST)(x).total(x),
        lambda x: LAST.total(x) if type(LAST) is Last else x,
        lambda x: Last(x).total(x) if [Last][0] is Last else x,
    ],
)
def test_what_is_found_by_the_class_itself_is_read_anew(f: Callable[[Any], Any]) -> None:
    agrees(f, "llvm")


def test_a_name_that_no_class_above_has_is_an_attribute_error() -> None:
    class Child(Middle):
        def lacking(self, x: Any) -> Any:
            try:
                return super().nowhere(x)  # type: ignore[misc]
            except AttributeError:
                return self.energy(x)

    child = Child(0.4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        agrees(lambda x: child.lacking(x), "llvm")
