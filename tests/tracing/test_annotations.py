"""Annotations are nobody's business: from Python 3.14 on they are code, which may fail, and does not matter."""

from __future__ import annotations

import functools
import linecache
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

SOURCE = """
class Base:
    scale: note() = 3.0

class Model(Base):
    w: note()

    def __init__(self, w: note()) -> note():
        self.w = w

    def __call__(self, x: note()) -> note():
        total: note() = 0.0
        for k in range(2):
            total = total + self.w * x**k * self.scale
        return total

def plain(x: note(), *, n: note() = 2) -> note():
    def inner(y: float) -> float:
        for _ in range(n):
            y = y * x
        return y
    return inner(x)

@sg.custom_vjp
def with_rule(x: note()) -> note():
    return x**3

with_rule.defvjp(lambda x: (x**3, x), lambda x, g: (3 * x**2 * g,))

@sg.custom_jvp
def with_jvp(x: note()) -> note():
    return x**3

@with_jvp.defjvp
def with_jvp_rule(primals: note(), tangents: note()) -> note():
    return primals[0] ** 3, 3 * primals[0] ** 2 * tangents[0]

model = Model(0.5)

def through_an_object(x: note()) -> note():
    return model(x) * x**2 / 1.5 - x**2
"""
"""Each but the class itself computes ``x**3``; Python before 3.14 runs the annotations where the ``def`` stands."""


@pytest.fixture
def made() -> Any:
    names: dict[str, Any] = {"sg": sg, "__name__": "annotated", "note": lambda: None}
    linecache.cache["<annotated>"] = (len(SOURCE), None, SOURCE.splitlines(True), "<annotated>")
    exec(compile(SOURCE, "<annotated>", "exec", dont_inherit=True), names)
    del names["note"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        yield names


@pytest.mark.parametrize("name", ["plain", "with_rule", "with_jvp", "through_an_object"])
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_annotations_need_not_mean_anything(made: dict[str, Any], name: str, backend: str) -> None:
    f = made[name]
    for x in (2.0, 3.0):
        np.testing.assert_allclose(sg.grad(f, backend=backend)(x), 3 * x**2)
        np.testing.assert_allclose(sg.jit(lambda x: f(x), backend=backend)(x), x**3)
    np.testing.assert_allclose(sg.grad(sg.grad(f, backend=backend), backend=backend)(2.0), 12.0)
    np.testing.assert_allclose(sg.vmap(f)(np.array([1.0, 2.0])), [1.0, 8.0])


def test_an_object_of_an_annotated_class_is_called(made: dict[str, Any]) -> None:
    model = made["model"]
    np.testing.assert_allclose(sg.grad(model)(2.0), 1.5)
    np.testing.assert_allclose(sg.grad(lambda x: model(x))(2.0), 1.5)
    model.w = 1.0
    np.testing.assert_allclose(sg.grad(model)(2.0), 3.0)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="partial has no placeholders")
def test_a_partial_with_a_placeholder_is_one_program() -> None:
    f: Any = functools.partial(lambda a, b, c: a * b + c, functools.Placeholder, 5.0, 1.0)  # type: ignore[attr-defined]
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        assert (sg.grad(f)(2.0), sg.jit(lambda x: f(x))(2.0)) == (5.0, 11.0)
