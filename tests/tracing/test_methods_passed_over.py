"""A method that a call does not come to is no reason to trace a function again, though another has its name."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.testing import check_grads

X = np.array([1.0, 2.0, 3.0])
SHIFT = 1.0


class Link:
    def slope(self, p: Any) -> Any:
        from matplotlib import colors

        return p * len(colors.to_hex("red"))

    def __getstate__(self) -> Any:
        from matplotlib import colors

        return colors.to_hex("red")

    def __dir__(self) -> Any:
        return list(dir(super()))


class Log(Link):
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, p: Any) -> Any:
        return np.log(p) * self.scale

    def slope(self, p: Any) -> Any:
        return self.scale / p


class Same(Link):
    pass


class Copied:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __copy__(self) -> Any:
        return Copied(self.scale + SHIFT)


LINK, SAME = Log(2.0), Same()
HELD = Copied(2.0)


def linked(x: Any) -> Any:
    return np.sum(LINK(x) * LINK.slope(x))


def above(x: Any) -> Any:
    return np.sum(SAME.slope(x) ** 2)


def copied(x: Any) -> Any:
    return np.sum(x) * copy.copy(HELD).scale


def copied_by_another(x: Any, how: Any = copy.copy) -> Any:
    return np.sum(x) * how(HELD).scale


def copied_by_import(x: Any) -> Any:
    from copy import copy as again

    return np.sum(x) * again(HELD).scale


def test_methods_that_are_not_called_are_passed_over() -> None:
    slope = sg.grad(linked)
    assert sg.explain(slope)(X)["how it runs"].startswith("One program")
    check_grads(linked, (X,))


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_method_that_is_called_is_the_reason() -> None:
    slope = sg.grad(above)
    assert np.allclose(slope(X), 2 * 49 * X)
    assert "imports 'matplotlib'" in sg.explain(slope)(X)["how it runs"]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("function", [copied, copied_by_another, copied_by_import])
def test_what_copies_objects_reads_is_seen(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slope = sg.grad(function)
    assert np.allclose([slope(X) for _ in range(6)][-1], 3.0)
    monkeypatch.setitem(globals(), "SHIFT", 5.0)
    assert np.allclose(slope(X), 7.0)
