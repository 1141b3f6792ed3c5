from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.tracing.capture_support import captures_of, module, reason_of

# ---- refusals


REFUSED = [
    ("return items[0]", "reads the list 'items'"),
    ("return table['a']", "reads the dict 'table'"),
    ("return pair[0]", "reads the tuple 'pair'"),
    ("return floats[0]", "reads the tuple 'floats'"),
    ("return thing.alpha", "reads the object_like 'thing'"),
    ("x.alpha = 3", "assigns the attribute 'alpha'"),
    ("del x.alpha", "deletes the attribute 'alpha'"),
    ("global alpha; alpha = x", "assigns the global 'alpha'"),
    ("global alpha; del alpha", "deletes the global 'alpha'"),
    ("return np.random.normal()", "numpy.random.normal draws at each call"),
    ("return normal()", "normal draws at each call"),
    ("return bits.random_raw()", "reads the PCG64 'bits'"),
    ("return time", "passes the module 'time' around"),
    (
        "m = np.random\n    return m.normal()",
        "passes the module 'numpy.random' around: numpy.random.normal draws at each call",
    ),
    ("return [np][0].random.normal()", "passes the module 'numpy' around: numpy.random.normal draws at each call"),
    ("y = (np if x else math).frexp(x)\n    return y", "numpy.frexp is not known to be pure"),
    ("return np.frexp(x)", "numpy.frexp is not known to be pure"),
    ("return time.time()", "time.time reads the clock"),
    ("print(x)", "print writes at each call"),
    ("return input()", "input reads at each call"),
    ("return open('a')", "open opens a file"),
    ("return eval('x')", "eval runs code"),
    ("exec('x')", "exec runs code"),
    ("return globals()", "globals reads what"),
    ("return locals()", "locals reads what"),
    ("return vars(x)", "vars reads what"),
    ("return getattr(x, 'T')", "getattr reads what"),
    ("return x.__dict__", "reads the attribute '__dict__'"),
    ("return (lambda: x.__globals__)()", "reads the attribute '__globals__'"),
    ("import os\n    return os.environ", "reads the _Environ 'os.environ'"),
    ("import os as o\n    return (lambda: o)()", "passes the module 'os' around"),
    ("from os import getcwd\n    return getcwd()", "os.getcwd is not known to be pure"),
    ("import sys\n    return x * sys.maxsize", "reads 'sys.maxsize', which can change"),
    ("from string import digits\n    return x * len(digits)", "reads 'string.digits', which can change"),
    ("import numpy.nothing", "imports 'numpy.nothing'"),
    ("from . import other", "imports ''"),
    ("class C: pass", "defines a class"),
    ("import string as m\n    m = x\n    return m.sin(x)", "assigns 'm', which is also the name of a module"),
    ("import numpy as m\n    m = m if x is None else x\n    return m.frexp(x)", "numpy.frexp is not known to be pure"),
    ("import numpy as m\n    return (m, m)[0].frexp(x)", "numpy.frexp is not known to be pure"),
    ("import numpy.random as r\n    return r.normal()", "numpy.random.normal draws"),
    ("from numpy import random\n    return random.normal()", "numpy.random.normal draws"),
    ("from numpy.random import normal\n    return normal()", "numpy.random.normal draws"),
    ("return helper.state", "reads the attribute 'state' of 'helper'"),
    ("h = helper\n    return h.state", "reads the attribute 'state', which the function helper has"),
    ("return Custom(x)", "Custom.__init__ runs code of its own"),
    ("return np.vectorize(x)", "numpy.vectorize is a class that is not known to be pure"),
    ("return cached(x)", "cached is not known to be pure"),
    ("return method(x)", "bound method reads attributes: 'method'"),
    ("return objects[0]", "reads 'objects', an array of type ndarray and dtype object"),
    ("return (y for y in x if print(y))", "print writes at each call"),
]


@pytest.mark.parametrize(("body", "message"), REFUSED, ids=[body for body, _ in REFUSED])
def test_refusals_name_the_reason_and_the_line(body: str, message: str) -> None:
    class Custom:
        def __init__(self, x: Any) -> None:
            self.x = x

        def method(self) -> None:
            pass

    def helper(x: Any) -> Any:
        return x

    helper.state = 3  # type: ignore[attr-defined]
    names = {
        "items": [1.0],
        "table": {"a": 1},
        "pair": (np.ones(1), 2),
        "floats": (1.0, 2),
        "thing": type("object_like", (), {"alpha": 1})(),
        "normal": np.random.normal,
        "bits": np.random.PCG64(0),
        "time": __import__("time"),
        "helper": helper,
        "Custom": Custom,
        "cached": functools.lru_cache(lambda x: x),
        "method": Custom(1).method,
        "objects": np.array([None]),
        "alpha": 1.0,
    }
    reason = reason_of(module(f"def f(x):\n    {body}\n", **names)["f"])
    assert message in reason
    if "Custom(x)" not in body and "h = helper" not in body:
        assert "(user_code.py:" in reason


def test_refusals_of_other_kinds_of_functions() -> None:
    class Model:
        alpha = 2.0

        def loss(self, x: Any) -> Any:
            return x

        def up(self, x: Any) -> Any:
            return super().__hash__()

        def cls(self, x: Any) -> Any:
            return __class__  # type: ignore[name-defined]

    assert "bound method reads attributes" in reason_of(Model().loss)
    assert "super" in reason_of(Model.up)
    assert "__class__" in reason_of(Model.cls)
    assert "asynchronous" in reason_of(module("async def f(x): return x")["f"])
    assert "asynchronous" in reason_of(module("def f(x):\n    async def g(): return x\n    return g")["f"])
    assert "print" in reason_of(print)
    assert "Model" in reason_of(Model())
    assert "module" in reason_of(np)
    many = module("\n".join(f"def f{i}(x): return f{i + 1}(x)" for i in range(600)) + "\ndef f600(x): return x")
    assert "more than 512 functions" in reason_of(many["f0"])
    assert "print writes" in reason_of(module("def g(x): print(x)\ndef f(x): return g(x)")["f"])


def test_imports_inside_a_function() -> None:
    space = module(
        "def f(x):\n"
        "    import numpy as n, math\n"
        "    import numpy.linalg as nl\n"
        "    import numpy.linalg\n"
        "    from numpy import sin, linalg as la\n"
        "    def g(y): return n.cos(y) + math.pi\n"
        "    return sin(x) + n.sin(x) + nl.solve(x, x) + numpy.linalg.solve(x, x) + la.solve(x, x) + g(x)"
    )
    captures = captures_of(space["f"])
    assert captures.hidden == () and captures.bind(space["f"]) is not None


def test_annotations_and_assertions_are_no_reads() -> None:
    space = module(
        "from __future__ import annotations\n"
        "def f(x: list[Missing]) -> Missing:\n"
        "    def g(y: Missing) -> Missing: return y\n"
        "    if x is None: raise ValueError('no x')\n"
        "    assert x is not None\n"
        "    return isinstance(x, np.ndarray) and g(x)"
    )
    assert captures_of(space["f"]).bind(space["f"]) is not None


class Point(NamedTuple):
    x: Any
    y: Any = 0


@dataclass(frozen=True)
class State:
    w: Any
    b: Any = 1.0

    @property
    def norm(self) -> Any:
        return abs(self.w)


@dataclass
class Loud:
    w: Any

    def __post_init__(self) -> None:
        print("made")


def test_record_classes() -> None:
    space = module(
        "def f(x): return State(x), Point(x, 1)\ndef g(x): return State(x).norm", Point=Point, State=State, Loud=Loud
    )
    captures = captures_of(space["f"])
    assert captures.bind(space["f"]) is not None
    space["Point"] = State
    assert captures.bind(space["f"]) is None
    assert "State.norm runs code of its own" in reason_of(space["g"])
    exec("def h(x): return Loud(x)", space)
    assert "Loud.__post_init__ runs code of its own" in reason_of(space["h"])


def test_classes_of_arguments() -> None:
    class Vector(NamedTuple):
        x: Any

        def __add__(self, other: Any) -> Any:
            return Vector(self.x + other.x)

    captures = captures_of(lambda p: p.w + p.b)
    assert captures.class_reason(State) is None and captures.class_reason(Point) is None
    assert captures.class_reason(Loud) is None
    assert captures.class_reason(Vector) == "Vector.__add__ runs code of its own"
    assert captures_of(lambda p: p.norm).class_reason(State) == "State.norm runs code of its own"
