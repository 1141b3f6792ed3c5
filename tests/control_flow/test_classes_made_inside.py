"""Classes, named tuples and dataclasses that a function defines itself are part of its program."""

# mypy: ignore-errors
from __future__ import annotations

import abc
import functools
import warnings
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.traced_once import require_one_program

K = np.array([1.0, 2.0])
SC = 3.0


class P(Protocol):
    def val(self) -> float: ...


def named_tuple(x: Any) -> Any:
    Point = namedtuple("Point", "x y")
    p = Point(x[0], x[1])
    return p.x * p.y + p._replace(x=2.0).x


def data_class(x: Any) -> Any:
    @dataclass
    class S:
        a: float
        b: float = 2.0

        def area(self):
            return self.a * self.b

    return S(x[0]).area() * x[1]


def reads_what_is_around(x: Any) -> Any:
    class State:
        scale = 2.0

        def __init__(self, a):
            self.a = a

        def val(self):
            return self.a * self.scale * SC * x[1] + K.sum()

        def __add__(self, o):
            return State(self.a + o.a)

    return (State(x[0]) + State(x[1])).val()


def typed_tuple(x: Any) -> Any:
    class P(NamedTuple):
        x: float
        y: float = 1.0

        def prod(self):
            return self.x * self.y

    return P(x[0], x[1]).prod()


def accumulates(x: Any) -> Any:
    class Acc:
        def __init__(self):
            self.total = 0.0

        def add(self, v):
            self.total += v * v

    acc = Acc()
    for k in range(100):
        acc.add(x[0] * k)
    return acc.total * x[1]


def a_tuple_in_a_loop(x: Any) -> Any:
    St = namedtuple("St", "p v")
    s = St(x[0], x[1])
    for _ in range(100):
        s = St(s.p + 0.01 * s.v, s.v - 0.01 * s.p)
    return s.p


def one_of_two_classes(x: Any) -> Any:
    class A:
        def f(self):
            return 2.0

    class B(A):
        def f(self):
            return super().f() * 3.0

    o = B() if x[0] > 0 else A()
    return o.f() * x[1] * x[0]


def derived(x: Any) -> Any:
    class A:
        def __init__(self, v):
            self.v = v

        def f(self):
            return self.v

    class B(A):
        def __init__(self, v, w):
            super().__init__(v)
            self.w = w

        def f(self):
            return super().f() * self.w

    return B(x[0], x[1]).f()


def methods_of_all_kinds(x: Any) -> Any:
    class C:
        def __init__(self, v):
            self._v = v

        @property
        def v(self):
            return self._v**2

        @staticmethod
        def k(y):
            return y * 2.0

        @classmethod
        def make(cls, y):
            return cls(y)

    return C.make(C.k(x[0])).v * x[1]


def own_error(x: Any) -> Any:
    class Bad(Exception):
        pass

    try:
        if x[0] > 0:
            raise Bad("no")
        return x[0]
    except Bad:
        return x[0] * x[1]


def with_slots(x: Any) -> Any:
    class C:
        __slots__ = ("a",)

        def __init__(self, a):
            self.a = a

    return C(x[0]).a * x[1]


def summed(x: Any) -> Any:
    P = namedtuple("P", "a b")
    return sum(P(x[0], x[1] * x[0]))


def annotated(x: Any) -> Any:
    @dataclass
    class S:
        a: Any
        b: float | None = None
        c: list[float] = field(default_factory=list)
        d: np.ndarray | None = None
        n: ClassVar[int] = 3

    s = S(x[0])
    s.c.append(x[1])
    return s.a * s.c[0] * s.n


def reads_captured(x: Any) -> Any:
    class S:
        scale = SC
        w = K * 2.0

        def f(self):
            return self.scale * self.w.sum() * x[0] * x[1]

    return S().f()


def matched(x: Any) -> Any:
    @dataclass
    class A:
        v: float

    @dataclass
    class B:
        w: float

    total = 0.0
    for o in (A(x[0]), B(x[1])):
        match o:
            case A(v):
                total += v * v
            case B(w=w):
                total += w * x[0]
    return total


def totally_ordered(x: Any) -> Any:
    @functools.total_ordering
    class C:
        def __init__(self, v):
            self.v = v

        def __eq__(self, o):
            return self.v == o.v

        def __lt__(self, o):
            return self.v < o.v

    a, b = C(x[0]), C(x[1])
    return a.v if a >= b else b.v * x[0]


def ordered_by_fields(x: Any) -> Any:
    @dataclass(order=True)
    class C:
        v: float
        w: float

    return max([C(x[0], 1.0), C(x[1], x[0])]).v * x[0]


def differentiated_inside(x: Any) -> Any:
    class S:
        def __init__(self, t):
            self.t = t

        def area(self):
            return self.t**3

    return sg.grad(lambda t: S(t).area())(x[0]) * x[1]


def abstract(x: Any) -> Any:
    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self): ...
        def twice(self):
            return 2.0 * self.area()

    class Sq(Shape):
        def __init__(self, s):
            self.s = s

        def area(self):
            return self.s**2

    return Sq(x[0]).twice() * x[1]


def generic(x: Any) -> Any:
    T = TypeVar("T")

    class Box(Generic[T]):
        def __init__(self, v: T):
            self.v = v

    return Box[float](x[0]).v * x[1]


def changed_in_a_while(x: Any) -> Any:
    class St:
        def __init__(self):
            self.v = x[0]
            self.n = 0

    s = St()
    while s.v < 10.0:
        s.v = s.v * 1.5 + x[1]
        s.n += 1
    return s.v * s.n


def special_methods(x: Any) -> Any:
    class C:
        def __getattr__(self, name):
            return x[0] * len(name)

        def __call__(self, y):
            return y * x[1]

        def __getitem__(self, i):
            return x[i] * 2.0

        def __len__(self):
            return 2

        def __iter__(self):
            return iter([x[0], x[1]])

        def __enter__(self):
            return self

        def __exit__(self, *a):
            return False

    c = C()
    with c as d:
        return c.foo + c(x[0]) + c[1] + len(c) + sum(d)


def told_of_subclasses(x: Any) -> Any:
    class A:
        k = 1.0

        def __init_subclass__(cls, k=2.0):
            cls.k = k

    class B(A, k=5.0):
        pass

    return B().k * x[0] * x[1]


def protocol(x: Any) -> Any:
    class V(P):
        def val(self):
            return x[0]

    return V().val() * x[1]


def defined_on_a_branch(x: Any) -> Any:
    if x[0] > 0:

        class S:
            def f(self):
                return x[0] * 2.0
    else:

        class S:
            def f(self):
                return x[1] * 3.0

    return S().f() * x[1]


def generators(x: Any) -> Any:
    class C:
        def __init__(self, v):
            self.v = v

        def steps(self):
            for k in range(3):
                yield self.v * k

    return sum(C(x[0]).steps()) * x[1]


FUNCTIONS = [
    named_tuple,
    data_class,
    reads_what_is_around,
    typed_tuple,
    accumulates,
    a_tuple_in_a_loop,
    one_of_two_classes,
    derived,
    methods_of_all_kinds,
    own_error,
    with_slots,
    summed,
    annotated,
    reads_captured,
    matched,
    totally_ordered,
    ordered_by_fields,
    differentiated_inside,
    abstract,
    generic,
    changed_in_a_while,
    special_methods,
    told_of_subclasses,
    protocol,
    defined_on_a_branch,
    generators,
]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_function_that_defines_classes_is_one_program(f: Callable[..., Any], backend: str) -> None:
    require_one_program(f, backend, np.array([1.5, 2.5]), np.array([1.5, 2.5]))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_what_such_classes_read_is_read_at_each_call(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([1.5, 2.5])
    run = sg.jit(reads_captured, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, value in [("SC", 3.0), ("SC", 7.0), ("K", np.array([5.0, 1.0])), ("SC", 2)]:
            monkeypatch.setitem(globals(), name, value)
            np.testing.assert_allclose(run(x), reads_captured(x), rtol=1e-12)


def test_objects_of_such_classes_are_returned() -> None:
    def f(x: Any) -> Any:
        pair = namedtuple("pair", "total twice")
        return pair(np.sum(x), 2.0 * x)

    found = sg.jit(f)(np.ones(2))
    assert (type(found).__name__, found._fields, found.total) == ("pair", ("total", "twice"), 2.0)
    np.testing.assert_array_equal(found.twice, [2.0, 2.0])
