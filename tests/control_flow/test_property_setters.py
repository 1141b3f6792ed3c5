"""What assigning or deleting a property of a captured object runs: what that reads is an input or a guard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import srcgrad as sg

pytestmark = pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
SCALE = 2.0
ORDER = 1


class Model:
    def __init__(self) -> None:
        self.held, self.log = 1.0, []  # type: ignore[var-annotated]

    @property
    def rate(self) -> Any:
        return self.held * 2.0

    @rate.setter
    def rate(self, value: Any) -> None:
        self.log.append(value)
        self.held = value * SCALE

    @rate.deleter
    def rate(self) -> None:
        self.held = SCALE

    def put(self, value: Any) -> None:
        self.kept = value**ORDER

    written = property(None, put)


class Inherited(Model):
    @Model.rate.setter
    def rate(self, value: Any) -> None:
        self.held = value * SCALE + 1.0


class Other(Model):
    rate = 5.0  # type: ignore[assignment]


MODEL, INHERITED = Model(), Inherited()


def assigns(x: Any) -> Any:
    MODEL.rate = x
    return MODEL.rate * x


def assigns_in_a_branch(x: Any) -> Any:
    if x > 2.0:
        MODEL.rate = x
    return MODEL.held * x


def assigns_above(x: Any) -> Any:
    INHERITED.rate = x
    return INHERITED.rate * x


def makes_one(x: Any) -> Any:
    made = Model()
    made.rate = x
    return made.held * x


def by_name(x: Any) -> Any:
    setattr(MODEL, "rate", x)  # noqa: B010
    return MODEL.held * x


def by_a_name_that_is_read(x: Any) -> Any:
    setattr(MODEL, "rate", x)  # noqa: B010
    return MODEL.rate * x


def only_written(x: Any) -> Any:
    MODEL.written = x  # type: ignore[assignment]
    return MODEL.kept * x


def deletes(x: Any) -> Any:
    MODEL.rate = x
    if x > 2.0:
        del MODEL.rate
    return MODEL.held * x


def changes_its_class(x: Any) -> Any:
    MODEL.__class__ = Other if x > 2.0 else Model  # type: ignore[assignment]
    return MODEL.rate * x


CASES = [
    assigns,
    assigns_in_a_branch,
    assigns_above,
    makes_one,
    by_name,
    by_a_name_that_is_read,
    only_written,
    deletes,
    changes_its_class,
]


def followed(f: Callable[[Any], Any]) -> list[Any]:
    global SCALE, ORDER
    found = []
    MODEL.__class__ = Model
    for model in (MODEL, INHERITED):
        vars(model).clear()
        model.__init__()  # type: ignore[misc]
    for scale, order, x in [(2.0, 1, 1.5), (2.0, 1, 2.5), (3.0, 1, 1.5), (3.0, 2, 2.5), (3.0, 2, 1.25)]:
        SCALE, ORDER = scale, order
        value = float(f(x))
        found.append((value, repr(vars(MODEL)), repr(vars(INHERITED)), type(MODEL)))
    return found


def value_of(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: sg.value_and_grad(f)(x)[0]


@pytest.mark.parametrize("f", CASES)
@pytest.mark.parametrize("transform", [sg.jit, value_of])
def test_what_a_setter_reads_and_leaves_is_that_of_each_call(
    f: Callable[[Any], Any], transform: Callable[..., Any]
) -> None:
    assert followed(transform(f)) == followed(f)
    MODEL.__class__ = Model
