"""What Python calls where a class makes an object or is asked for an item: no call has a stale number of it."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import srcgrad as sg

RATE = 2.0
part: Any = functools.partial(abs)


class Made:
    def __new__(cls, x: Any) -> Any:
        made = object.__new__(cls)
        made.held = x * RATE
        return made


class Single:
    def __new__(cls, x: Any) -> Any:
        made = super().__new__(cls)
        made.held = x
        return made


class Item:
    def __class_getitem__(cls, number: float) -> float:
        return number * RATE


@dataclasses.dataclass
class Given:
    rate: float = dataclasses.field(default_factory=lambda: RATE)
    order: int = dataclasses.field(default_factory=lambda: 3)


class Part:
    rate = 2.0

    def __init__(self) -> None:
        self.own = self.rate

    def give(self) -> float:
        return self.rate * 2.0


PART, RATES = Part(), [2.0]


@dataclasses.dataclass
class Parts:
    part: Part = dataclasses.field(default_factory=Part)
    given: float = dataclasses.field(default_factory=PART.give)
    rates: list[float] = dataclasses.field(default_factory=functools.partial(list, RATES))


class Failed(Exception):
    def __init__(self, x: Any) -> None:
        self.held = x * RATE


class Listed(Exception):
    def __init__(self, x: Any) -> None:
        self.held = x * RATES[0]


class Setter:
    def __call__(self, model: Any, x: Any) -> None:
        model.held = x * RATE


class Model:
    held = 1.0
    rate = property(lambda self: self.held, Setter())


MODEL = Model()


def fails(x: Any) -> Any:
    try:
        raise Failed(x)
    except Failed as error:
        return error.held


def fails_with_a_list(x: Any) -> Any:
    try:
        raise Listed(x)
    except Listed as error:
        return error.held


def assigns(x: Any) -> Any:
    MODEL.rate = x  # type: ignore[assignment]
    return MODEL.held


def of_the_part(x: Any) -> Any:
    other = part
    return x * other.rate if hasattr(other, "rate") else x


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize(
    "f",
    [
        lambda x: Made(x).held,  # type: ignore[attr-defined]
        lambda x: x * Item[1.5],  # type: ignore[type-arg]
        lambda x: x * Given().rate * Given().order,
        lambda x: x * Given(order=2).rate,
        lambda x: x * Parts().part.own,
        lambda x: x * Parts().given,
        lambda x: x * Parts().rates[0],
        of_the_part,
        fails,
        fails_with_a_list,
        assigns,
    ],
)
def test_what_a_class_or_a_partial_reads_is_that_of_each_call(f: Callable[[Any], Any]) -> None:
    global RATE
    of_value, jitted = sg.value_and_grad(f), sg.jit(f)
    for rate in (2.0, 2.0, 3.0, 5.0, 2.0):
        RATE = Part.rate = PART.rate = RATES[0] = rate
        vars(part).clear()
        if rate > 2.0:
            part.rate = rate
        assert of_value(2.0)[0] == jitted(2.0) == f(2.0)


def test_a_class_that_makes_its_objects_of_what_it_is_given_is_in_one_program() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        slope = sg.grad(lambda x: Single(x).held ** 2)  # type: ignore[attr-defined]
        assert [slope(2.0), slope(3.0)] == [4.0, 6.0]


def test_errors_that_read_a_number_of_a_module_are_in_one_program() -> None:
    assert sg.jit(fails, strict=True)(2.0) == fails(2.0)
