"""``dataclasses.asdict``, ``astuple`` and ``is_dataclass``: one program, in which all fields are watched."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass, field, is_dataclass
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


@dataclass
class Rates:
    fast: float
    past: list[float] = field(default_factory=list)


@dataclass
class Model:
    size: float
    rates: Rates
    count: int = 3


class Named:
    def __str__(self) -> str:
        return "named"


class Sized(Named):
    def __init__(self, size: Any) -> None:
        self.size = size

    def __str__(self) -> str:
        return f"{Named.__str__(self)} {self.size}"


MODEL = Model(1.0, Rates(2.0, [1.0, 2.0]))


def area(size: Any, rates: Any) -> Any:
    return size * rates["fast"] + rates["past"][0]


def of_items(x: Any) -> Any:
    return sum(v * x for k, v in asdict(MODEL.rates).items() if k == "fast") * MODEL.count


def of_nested_items(x: Any) -> Any:
    items = dataclasses.asdict(MODEL)
    return items["size"] * x + items["rates"]["fast"] * x**2 + sum(items["rates"]["past"]) * items["count"]


def of_keywords(x: Any) -> Any:
    return area(**{k: v for k, v in asdict(MODEL).items() if k != "count"}) * x


def of_a_tuple(x: Any) -> Any:
    return np.sum(np.array(astuple(Rates(x))[:1]) ** 2) * astuple(MODEL)[0] * astuple(MODEL)[2]


def of_a_factory(x: Any) -> Any:
    return asdict(Rates(x), dict_factory=lambda items: dict(items[:1]))["fast"] ** 2 * MODEL.size


def of_a_class(x: Any) -> Any:
    return x**2 * (MODEL.size if is_dataclass(MODEL) and not is_dataclass(x) else 0.0)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("f", [of_items, of_nested_items, of_keywords, of_a_tuple, of_a_factory, of_a_class])
def test_fields_are_read_at_each_call(f: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    slope = sg.value_and_grad(f)
    for k in range(1, 8):
        monkeypatch.setattr(MODEL, "size", float(k))
        monkeypatch.setattr(MODEL.rates, "fast", 2.0 * k)
        monkeypatch.setattr(MODEL, "count", 3 + k // 4)
        monkeypatch.setattr(MODEL.rates, "past", [0.5 * k, 2.0])
        value, found = slope(2.0)
        np.testing.assert_allclose(value, f(2.0))
        np.testing.assert_allclose(found, (f(2.01) - f(1.99)) / 0.02, rtol=1e-9)
    assert sg.explain(slope)(2.0)["how it runs"].startswith("One program")


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_records_among_the_arguments() -> None:
    slope = sg.grad(lambda rates: astuple(rates)[0] ** 2 + asdict(rates)["past"][0] ** 3)
    assert slope(Rates(2.0, [3.0])) == Rates(4.0, [27.0])


def test_copies_are_pythons() -> None:
    for f in (of_items, of_nested_items, of_keywords, of_a_tuple, of_a_factory):
        np.testing.assert_allclose(sg.jit(f)(1.5), f(1.5))
    with pytest.raises(TypeError, match="dataclass instances"):
        sg.grad(lambda x: asdict(x)["x"])(1.0)  # type: ignore[call-overload]


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_a_class_whose_text_is_made_of_its_base_classs_is_one_program() -> None:
    slope = sg.grad(lambda x: Sized(x).size ** 2)
    assert slope(3.0) == 6.0
    assert sg.explain(slope)(3.0)["how it runs"].startswith("One program")
