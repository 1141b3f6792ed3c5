"""What the methods of a class read matters where code that is reached may call them, and only there."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

START = np.linspace(0.5, 1.0, 3)
DRAWS = np.random.default_rng(0)
SCALES = {"a": np.ones(3)}
ASK = getattr
PART = "sca"
X = np.linspace(0.1, 0.3, 3)


def scales() -> Any:
    return SCALES["a"]


class Begun:
    """What makes it reads an array."""

    def __init__(self) -> None:
        self.w = START * 2.0

    def loss(self, x: Any) -> Any:
        return np.sum(np.sin(x) * self.w)


class Drawn(Begun):
    """What makes it draws numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.w = DRAWS.normal(size=3)
        self.log = logging.getLogger("unread")


class Busy(Begun):
    """Its other methods do what no program can."""

    def save(self, path: str) -> None:
        np.save(path, self.w)
        self.count = input()

    @property
    def scaled(self) -> Any:
        return self.w * SCALES["a"]

    @staticmethod
    def told() -> None:
        print(open(START))  # noqa: SIM115


@pytest.mark.parametrize("cls", [Begun, Drawn, Busy], ids=lambda cls: cls.__name__)
def test_what_nothing_calls_does_not_matter(cls: Any) -> None:
    model = cls()
    f = sg.grad(model.loss, backend="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for scale in (1.0, 2.0, 3.0):
            model.w = np.full(3, scale)
            assert np.allclose(f(X), scale * np.cos(X))


class Named:
    def loss(self, x: Any) -> Any:
        return np.sum(np.sin(x) * self.scale())

    def scale(self) -> Any:
        return scales()


class Property(Named):
    def loss(self, x: Any) -> Any:
        return np.sum(np.sin(x) * self.kept)

    @property
    def kept(self) -> Any:
        return scales()


class Asked(Named):
    def loss(self, x: Any) -> Any:
        return np.sum(np.sin(x) * getattr(self, f"{PART}le")())


class AskedOtherwise(Named):
    def loss(self, x: Any) -> Any:
        return np.sum(np.sin(x) * ASK(self, "scale")())


class Matched(Property):
    def loss(self, x: Any) -> Any:
        match self:
            case Property(kept=found):
                return np.sum(np.sin(x) * found)
        return np.sum(x)


class Made:
    def __init__(self) -> None:
        self.w = SCALES["a"]

    def loss(self, x: Any) -> Any:
        return np.sum(np.sin(x) * type(self)().w)


class MadeByClass(Made):
    def loss(self, x: Any) -> Any:
        return np.sum(np.sin(x) * self.made().w)

    @classmethod
    def made(cls) -> Any:
        return cls()


class MadeByAttribute(Made):
    def loss(self, x: Any) -> Any:
        return np.sum(np.sin(x) * self.__class__().w)


class MadeByCell(Made):
    def loss(self, x: Any) -> Any:
        return np.sum(np.sin(x) * __class__().w)  # type: ignore[name-defined]


class MadeByName(Made):
    def loss(self, x: Any) -> Any:
        return np.sum(np.sin(x) * Made().w)


class MadeAgain(Made):
    def loss(self, x: Any) -> Any:
        self.__init__()  # type: ignore[misc]
        return np.sum(np.sin(x) * self.w)


class MadeFromAttribute(Made):
    def __init__(self) -> None:
        super().__init__()
        self.kind = MadeFromAttribute

    def loss(self, x: Any) -> Any:
        return np.sum(np.sin(x) * self.kind().w)


CALLED = [
    Named, Property, Asked, AskedOtherwise, Matched, Made, MadeByClass, MadeByAttribute, MadeByCell, MadeByName,
    MadeAgain, MadeFromAttribute,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("cls", CALLED, ids=lambda cls: cls.__name__)
def test_what_may_be_called_is_never_stale(cls: Any) -> None:
    f = sg.grad(cls().loss, backend="numpy")
    before = SCALES["a"]
    try:
        for scale in (1.0, 2.0, 3.0):
            SCALES["a"] = np.full(3, scale)
            assert np.allclose(f(X), scale * np.cos(X))
    finally:
        SCALES["a"] = before


class Matching:
    n: int

    def loss(self, x: Any) -> Any:
        match self:
            case Matching(n=2):
                return 3.0 * np.sum(np.sin(x))
        return np.sum(np.sin(x))


class Pattern(Matching):
    def __init__(self) -> None:
        self.n = 2


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_attribute_that_a_pattern_reads_is_compared() -> None:
    model = Pattern()
    f = sg.grad(model.loss, backend="numpy")
    for n, scale in ((2, 3.0), (5, 1.0), (2, 3.0)):
        model.n = n
        assert np.allclose(f(X), scale * np.cos(X))


def test_a_method_that_is_replaced_is_the_new_one() -> None:
    class Changing(Begun):
        def loss(self, x: Any) -> Any:
            return np.sum(np.sin(x)) * self.scale()

        def scale(self) -> float:
            return 2.0

    f = sg.grad(Changing().loss, backend="numpy")
    assert np.allclose(f(X), 2.0 * np.cos(X))
    Changing.scale = lambda self: 3.0  # type: ignore[method-assign]
    assert np.allclose(f(X), 3.0 * np.cos(X))
