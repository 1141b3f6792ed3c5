"""Classes and objects that change after a function was traced: names turn up where none were, or elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import srcgrad as sg
from srcgrad import cache
from tests.backends.llvm.front_cases import world

SOURCE = """
class Base:
    c = 2.0
    def scale(self): return self.w * self.c
    @staticmethod
    def rest(): return 1.5
class Middle(Base):
    pass
class Model(Middle):
    def __init__(self, w=2.0): self.w = w
    def loss(self, x): return np.sin(x) * self.scale() * self.rest()
class Holder:
    def __init__(self): self.inner, self.k = Model(3.0), 2
    def loss(self, x): return self.inner.loss(x) * self.k
model, other, holder = Model(), Model(), Holder()
other.more = 1
"""
FUNCTIONS = ["model.loss", "other.loss", "holder.loss", "lambda x: model.loss(x) * 2.0", "lambda x: other.scale() * x"]
CHANGES = {
    "a method of the class": "Model.scale = lambda self: 7.0",
    "a method of a base": "Middle.scale = lambda self: 7.0",
    "an attribute of the class": "Model.c = 9.0",
    "an attribute of a base": "Middle.c = 9.0",
    "another value": "Base.c = 9.0",
    "a static method": "Model.rest = staticmethod(lambda: 4.0)",
    "a property before an attribute": "Model.w = property(lambda self: 5.0)",
    "a property of a base": "Middle.w = property(lambda self: 5.0)",
    "a property before a class attribute": "Model.c = property(lambda self: 5.0)",
    "other bases": "class Other(Base):\n    c = 20.0\nModel.__bases__ = (Other,)",
    "a way of reading": "Model.__getattribute__ = lambda s, n: 11.0 if n == 'w' else object.__getattribute__(s, n)",
    "a method of an object": "model.scale = lambda: 8.0",
    "an attribute of an object": "model.c = 8.0",
    "an attribute of an object inside": "holder.inner.c = 8.0",
    "one attribute for another": "del other.more\nother.c = 8.0",
    "the class of an object": "class New(Model):\n    c = 5.0\nmodel.__class__ = New",
    "nothing that is read": "Model.unread = 5.0\nother.unread = 1\nMiddle.unread = print",
}


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_class_or_an_object_is_seen(change: str, backend: str) -> None:
    names = world(SOURCE)
    functions = [eval(text, names) for text in FUNCTIONS]
    gradients = [sg.grad(function, backend=backend) for function in functions]

    def agree(function: Callable[[Any], Any], gradient: Callable[[Any], Any]) -> None:
        slope = (function(0.7 + 1e-6) - function(0.7 - 1e-6)) / 2e-6
        assert gradient(0.7) == pytest.approx(slope, rel=1e-7)

    pairs = [*zip(functions, gradients, strict=True)] * 6
    for function, gradient in pairs:
        agree(function, gradient)
    exec(CHANGES[change], names)
    for function, gradient in pairs:
        agree(function, gradient)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_class_that_is_registered_later_is_an_instance(backend: str) -> None:
    names = world(
        "import abc\nclass Kind(abc.ABC): pass\nclass Plain: pass\nthing = Plain()\n"
        "def f(x): return np.sin(x) * (2.0 if isinstance(thing, Kind) else 1.0)"
    )
    f = sg.grad(names["f"], backend=backend)
    for _ in range(6):
        assert f(0.5) == pytest.approx(0.8775825618903728)
    names["Kind"].register(names["Plain"])
    for _ in range(6):
        assert f(0.5) == pytest.approx(2.0 * 0.8775825618903728)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_class_that_changes_at_each_call_is_not_traced_again(backend: str) -> None:
    names = world(
        "class Model:\n    calls = 0\n    def scale(self): return 3.0\n"
        "    def loss(self, x): return np.sin(x) * self.scale()\nmodel = Model()"
    )
    f = sg.grad(names["model"].loss, backend=backend)
    f(0.5)
    before = len(cache.PROGRAMS.entries)
    for _ in range(40):
        names["Model"].calls += 1
        assert f(0.5) == pytest.approx(3.0 * 0.8775825618903728)
    assert len(cache.PROGRAMS.entries) == before
