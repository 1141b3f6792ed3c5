"""What `test_front` calls: functions, what changes between two calls of them, and arguments of all kinds."""

from __future__ import annotations

import builtins
import functools
import itertools
import linecache
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import srcgrad as sg

_numbers = itertools.count()


@dataclass(frozen=True)
class Change:
    """The source of a function ``f`` of one number, and statements after which it is another function."""

    name: str
    source: str
    change: str


CHANGES = [
    Change("global_float", "s = 2.0\ndef f(x): return s * np.sin(x)", "s = 5.0"),
    Change("global_float_to_int", "s = 2.0\ndef f(x): return s * np.sin(x)", "s = 5"),
    Change("global_float_to_array", "s = 2.0\ndef f(x): return np.sum(s * np.sin(x))", "s = np.arange(3.0)"),
    Change("global_int", "n = 2\ndef f(x): return np.sin(x) * n", "n = 3"),
    Change("global_bool", "n = True\ndef f(x): return np.sin(x) * (2.0 if n else 3.0)", "n = False"),
    Change("global_text", "mode = 'a'\ndef f(x): return np.sin(x) * (2.0 if mode == 'a' else 3.0)", "mode = 'b'"),
    Change("global_tuple", "n = (1, 2)\ndef f(x): return np.sin(x) * n[1]", "n = (1, 3)"),
    Change("global_removed", "s = 2.0\ndef f(x): return s * np.sin(x)", "del s"),
    Change("names_cleared", "s = 2.0\ndef f(x): return s * np.sin(x)", "globals().pop('s')\ns = 7.0"),
    Change(
        "numpy_replaced",
        "import types\nother = types.ModuleType('other')\nother.sin = np.cos\ndef f(x): return np.sin(x)",
        "np = other",
    ),
    Change("numpy_function", "g = np.sin\ndef f(x): return g(x)", "g = np.cos"),
    Change("helper_redefined", "def h(x): return np.sin(x)\ndef f(x): return h(x) * x", "def h(x): return np.cos(x)"),
    Change(
        "helper_code",
        "def h(x): return np.sin(x)\ndef k(x): return np.cos(x)\ndef f(x): return h(x) * x",
        "h.__code__ = k.__code__",
    ),
    Change("own_code", "def k(x): return np.cos(x)\ndef f(x): return np.sin(x)", "f.__code__ = k.__code__"),
    Change("default_float", "def f(x, s=2.0): return np.sin(x) * s", "f.__defaults__ = (3.0,)"),
    Change("default_int", "def f(x, s=2): return np.sin(x) * s", "f.__defaults__ = (3,)"),
    Change("default_removed", "def f(x, s=2): return np.sin(x) * s", "f.__defaults__ = None"),
    Change("keyword_default", "def f(x, *, s=2): return np.sin(x) * s", "f.__kwdefaults__['s'] = 3"),
    Change("keyword_defaults", "def f(x, *, s=2.0): return np.sin(x) * s", "f.__kwdefaults__ = {'s': 3.0}"),
    Change("helper_default", "def h(x, s=2): return np.sin(x) * s\ndef f(x): return h(x) + x", "h.__defaults__ = (5,)"),
    Change(
        "closure_float",
        "def make():\n    s = 2.0\n    def f(x): return np.sin(x) * s\n"
        "    def set(v):\n        nonlocal s\n        s = v\n    return f, set\nf, set_s = make()",
        "set_s(3.0)",
    ),
    Change(
        "closure_int",
        "def make():\n    s = 2\n    def f(x): return np.sin(x) * s\n    return f\nf = make()",
        "f.__closure__[0].cell_contents = 3",
    ),
    Change(
        "closure_function",
        "def make():\n    h = lambda x: np.sin(x)\n    def f(x): return h(x) * x\n    return f\nf = make()",
        "f.__closure__[0].cell_contents = lambda x: np.cos(x)",
    ),
    Change(
        "closure_emptied",
        "def make():\n    s = 2\n    def f(x): return np.sin(x) * s\n    return f\nf = make()",
        "del f.__closure__[0].cell_contents",
    ),
    Change("builtin_shadowed", "def f(x): return abs(x) * x", "def abs(x): return 3.0 * x"),
    Change("builtin_replaced", "def f(x): return abs(x) * x", "__builtins__['abs'] = lambda x: 3.0 * x"),
    Change("array_rebound", "a = np.arange(3.0)\ndef f(x): return np.sum(a * np.sin(x))", "a = 2.0 * np.ones(3)"),
    Change("array_in_place", "a = np.arange(3.0)\ndef f(x): return np.sum(a * np.sin(x))", "a[1] = 7.0"),
    Change(
        "array_shape",
        "a = np.arange(6.0)\ndef f(x): return np.sum(a * np.sin(x)) * len(a)",
        "a.resize((2, 3), refcheck=False)",
    ),
    Change(
        "array_dtype", "a = np.arange(3.0)\ndef f(x): return np.sum(a * np.sin(x))", "a = np.full(3, 2, np.float32)"
    ),
    Change("array_strides", "a = np.arange(3.0)\ndef f(x): return np.sum(a * np.sin(x))", "a = np.arange(6.0)[::2]"),
    Change("array_class", "a = np.arange(3.0)\ndef f(x): return np.sum(a * np.sin(x))", "a = np.ma.array(np.ones(3))"),
    Change(
        "arrays_become_one",
        "a, b = np.arange(3.0), np.ones(3)\ndef f(x): return np.sum(a * np.sin(x)) * (2.0 if a is b else 1.0)",
        "b = a",
    ),
    Change(
        "arrays_overlap",
        "a, b = np.arange(3.0), np.ones(3)\ndef f(x): return np.sum(a * np.sin(x) * b)",
        "both = np.arange(4.0)\na, b = both[1:], both[:-1]",
    ),
    Change("complex_number", "s = 2.0 - 1j\ndef f(x): return np.abs(s) * np.sin(x)", "s = 1.0 + 3j"),
    Change("complex_kind", "s = np.complex64(2j)\ndef f(x): return np.sin(x) * np.abs(s)", "s = np.complex128(1.1j)"),
    Change("scalar_kind", "s = np.float64(2.0)\ndef f(x): return s * np.sin(x)", "s = np.float32(3.0)"),
    Change("transform_rebound", "k = lambda x: x**3\nh = sg.grad(k)\ndef f(x): return h(x)", "h = sg.grad(np.sin)"),
    Change(
        "transform_with_other_options",
        "k = lambda x, y: x**3 * y\nh = sg.grad(k)\ndef f(x): return h(x, 2.0 * x)",
        "h = sg.grad(k, 1)",
    ),
    Change("transform_inside", "s = 2.0\ndef k(x): return np.sin(x) * s\nf = sg.grad(k)", "s = 3.0"),
    Change("partial_rebound", "f = partial(lambda s, x: np.sin(x) * s, 2.0)\n", "f.keywords['x'] = 1.0"),
    Change(
        "module_function",
        "import types\nm = types.ModuleType('m')\nm.h = lambda x: np.sin(x)\ndef f(x): return m.h(x) * x",
        "m.h = lambda x: np.cos(x)",
    ),
    Change(
        "module_float",
        "import types\nm = types.ModuleType('m')\nm.s = 2.0\ndef f(x): return m.s * np.sin(x)",
        "m.s = 3.0",
    ),
    Change(
        "method",
        "class Model:\n    def __init__(self): self.w = 2.0\n    def loss(self, x): return np.sin(x) * self.w\n"
        "model = Model()\nf = model.loss",
        "model.w = 3.0",
    ),
    Change(
        "method_replaced",
        "class Model:\n    def loss(self, x): return np.sin(x) * self.scale()\n    def scale(self): return 2.0\n"
        "model = Model()\nf = model.loss",
        "Model.scale = lambda self: 3.0",
    ),
    Change(
        "class_attribute",
        "class Model:\n    n = 2\n    def loss(self, x): return np.sin(x) * self.n\nf = Model().loss",
        "Model.n = 3",
    ),
    Change(
        "class_swapped",
        "class Model:\n    def loss(self, x): return np.sin(x) * self.n()\n    def n(self): return 2.0\n"
        "class Other(Model):\n    def n(self): return 3.0\nmodel = Model()\nf = model.loss",
        "model.__class__ = Other",
    ),
    Change(
        "property_replaced",
        "class Model:\n    def __init__(self): self.w = 2.0\n    @property\n    def n(self): return self.w\n"
        "    def loss(self, x): return np.sin(x) * self.n\nf = Model().loss",
        "Model.n = property(lambda self: self.w * 2.0)",
    ),
    Change(
        "static_method_replaced",
        "class Model:\n    @staticmethod\n    def n(): return 2.0\n    def loss(self, x): return np.sin(x) * self.n()\n"
        "f = Model().loss",
        "Model.n = staticmethod(lambda: 3.0)",
    ),
    Change(
        "attributes_replaced",
        "class Model:\n    def __init__(self): self.w, self.v = 2.0, 1.0\n"
        "    def loss(self, x): return np.sin(x) * self.w\nmodel = Model()\nf = model.loss",
        "model.__dict__ = {'w': 3.0, 'v': 1.0}",
    ),
    Change(
        "object_attribute",
        "class Model:\n    def __init__(self): self.n = 2\nmodel = Model()\n"
        "def f(x):\n    if x > 100.0:\n        x = x + 1.0\n    return np.sin(x) * model.n",
        "model.n = 3",
    ),
    Change(
        "list_element",
        "w = [1.0, 2.0]\ndef f(x):\n    if x > 100.0:\n        x = x + 1.0\n    return np.sin(x) * w[1]",
        "w[1] = 3.0",
    ),
    Change(
        "list_length",
        "w = [1.0, 2.0]\ndef f(x):\n    for v in w:\n        x = x * v\n    return np.sin(x)",
        "w.append(3.0)",
    ),
    Change(
        "dict_value",
        "w = {'a': 1.0, 'b': 2.0}\ndef f(x):\n    if x > 100.0:\n        x = x + 1.0\n    return np.sin(x) * w['b']",
        "w['b'] = 3.0",
    ),
    Change(
        "dict_order",
        "w = {'a': 1.0, 'b': 2.0}\ndef f(x):\n    for v in w.values():\n        x = np.sin(x) * v\n    return x",
        "w = {'b': 2.0, 'a': 1.0}",
    ),
]


MANY = """
class Model:
    rate = 2
    def __init__(self): self.w, self.v = np.ones(3), 2.0
    def scale(self): return self.v * self.rate
def make(c):
    def h(x, e=2): return np.cos(x) * e * c
    return h
n, a, w, d, h, model = 2, np.ones(3), [1.0, 2.0], {"k": 1.5}, make(3.0), Model()
def f(x): return np.sum(np.sin(x) * model.w * a) * model.scale() * h(x) * n * w[1] * d["k"]
"""
STEPS = [
    "n = 2", "n = 3", "a = np.arange(3.0)", "a = np.ones(3)", "a = np.arange(6.0)[::2]", "a[0] += 1.0", "w[1] = 5.0",
    "w[0] = 7", "w[0] = 7.0", "w = [1.0, 4.0]", "d['k'] = 2.5", "d = {'k': 3.5}", "d['k'] = 2", "h.__defaults__ = (3,)",
    "h.__defaults__ = (2,)", "h = make(4.0)", "h = make(4)", "h.__closure__[0].cell_contents = 5.0", "model.v = 3.0",
    "model.w = np.full(3, 4.0)", "model.v = 3", "model.extra = 1", "Model.rate = 3", "Model.rate = 2.5", "other = n",
    "Model.scale = lambda self: self.v", "sin = np.cos", "model.__dict__ = dict(model.__dict__)",
]  # fmt: skip
"""Changes of what `MANY` reads, in any order."""


def world(source: str) -> dict[str, Any]:
    """The names of a module of its own, with built-ins of its own, whose source is known."""
    file = f"<case {next(_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": "case", "__builtins__": dict(vars(builtins))}
    names |= {"np": np, "sg": sg, "partial": functools.partial}
    exec(compile(source, file, "exec"), names)
    return names


class Kind(float):
    """A float of a class of its own."""


class Matrix(np.ndarray[Any, Any]):
    """An array of a class of its own."""


def arrays() -> dict[str, Callable[[], Any]]:
    """By name, what is given where a float array of shape (2, 3) has been."""
    base = np.linspace(-1.0, 1.0, 6).reshape(2, 3)
    locked = base.copy()
    locked.flags.writeable = False
    raw = bytearray(8 * 6 + 1)
    crooked = np.frombuffer(raw, np.float64, 6, 1).reshape(2, 3)
    crooked[...] = base
    return {
        "the same": lambda: base,
        "other numbers": lambda: base + 1.0,
        "read-only": lambda: locked,
        "not aligned": lambda: crooked,
        "Fortran order": lambda: np.asfortranarray(base),
        "strided": lambda: np.repeat(base, 2, axis=1)[:, ::2],
        "reversed": lambda: base[::-1],
        "byte-swapped": lambda: base.astype(">f8"),
        "float32": lambda: base.astype(np.float32),
        "float16": lambda: base.astype(np.float16),
        "complex": lambda: base + 1j,
        "integers": lambda: np.arange(6).reshape(2, 3),
        "bools": lambda: base > 0,
        "objects": lambda: base.astype(object),
        "another shape": lambda: base.reshape(3, 2),
        "another rank": lambda: base.ravel(),
        "a rank more": lambda: base[None],
        "rank 0": lambda: np.array(2.0),
        "empty": lambda: np.empty((0, 3)),
        "a class of its own": lambda: base.view(Matrix),
        "a list": lambda: base.tolist(),
        "a float": lambda: 2.0,
        "None": lambda: None,
        "text": lambda: "text",
    }


def numbers() -> dict[str, Callable[[], Any]]:
    """By name, what is given where a Python float has been."""
    return {
        "the same": lambda: 1.5,
        "float64": lambda: np.float64(1.5),
        "float32": lambda: np.float32(1.5),
        "float16": lambda: np.float16(1.5),
        "longdouble": lambda: np.longdouble(1.5),
        "complex": lambda: 1.5 + 1j,
        "int": lambda: 2,
        "bool": lambda: True,
        "int64": lambda: np.int64(2),
        "a class of its own": lambda: Kind(1.5),
        "rank 0": lambda: np.array(1.5),
        "array": lambda: np.ones(3),
        "nan": lambda: float("nan"),
        "infinite": lambda: float("inf"),
        "None": lambda: None,
        "text": lambda: "1.5",
        "a function": lambda: len,
        "a class": lambda: float,
        "a module": lambda: types,
    }


def total(tree: Any) -> Any:
    """A sum over a structure of numbers and arrays, in which each place counts differently."""
    if isinstance(tree, dict):
        return sum(total(tree[key]) * (2.0 + len(key)) for key in sorted(tree))
    if isinstance(tree, (list, tuple)):
        return sum((total(item) * (1.0 + k) for k, item in enumerate(tree)), 0.0)
    return 0.0 if tree is None else np.sum(np.sin(tree) * tree)
