"""Arrays, lists and dicts that a class has for all its objects, and sets and collections that a function reads."""

from __future__ import annotations

import copy
import dataclasses
import types
import warnings
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([1.0, 2.0])


def made() -> tuple[Any, Any, Any]:
    """Classes of its own for each test: they are changed."""

    class Lattice:
        velocities: Any = np.array([1.0, 2.0])
        weights: Any = [1.0, 2.0]  # noqa: RUF012
        table: Any = {"k": np.ones(2)}  # noqa: RUF012
        names: Any = {"p", "q"}  # noqa: RUF012
        order = 2

        @classmethod
        def counted(cls) -> int:
            return len(cls.weights)

        def twice(self) -> Any:
            return type(self)() if self.order else self.__class__()

        def energy(self, x: Any) -> Any:
            total = self.weights[0] * np.sum(self.velocities * x) + len(self.names) * np.sum(self.table["k"] * x)
            return total * self.order * np.sum(x)

    class Shifted(Lattice):
        def energy(self, x: Any) -> Any:
            return super().energy(x) + np.sum(np.sin(x))

    class Through(Lattice):
        def energy(self, x: Any) -> Any:
            return super().energy(x) + np.sum(super().velocities * x)

    return Lattice, Shifted, Through


def functions(kinds: tuple[Any, Any, Any]) -> list[tuple[Callable[[Any], Any], bool]]:
    """Functions that read class attributes, and whether they are one program."""
    lattice, shifted, through = kinds
    one, other, third, fourth = lattice(), lattice(), shifted(), through()
    return [
        (one.energy, True),
        (lambda x: one.energy(x) + 3.0 * other.energy(x * x), True),
        (lambda x: third.energy(x), True),
        (lambda x: one.energy(x) * np.sum(lattice.velocities * x), True),
        (lambda x: one.energy(x) * np.sum(type(one).velocities * x), False),
        (lambda x: one.energy(x) * lattice().energy(x), True),
        (fourth.energy, True),
        (lambda x: one.energy(x) * one.counted(), True),
        (lambda x: through().energy(x) * lattice.counted() + np.sum(one.twice().velocities * x), True),
    ]


def is_one_program(derivative: Any, x: Any = X) -> bool:
    return "One program" in sg.explain(derivative)(x)["how it runs"]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("number", range(9))
def test_attributes_of_a_class_are_never_stale(number: int) -> None:
    kinds = made()
    lattice, shifted, _ = kinds
    function, single = functions(kinds)[number]
    derivative = sg.value_and_grad(function)
    assert is_one_program(derivative) == single

    def change(step: int) -> None:
        match step:
            case 1:
                lattice.velocities = np.array([3.0, 4.0])
            case 2:
                lattice.weights[0] = 5.0
            case 3:
                lattice.table["k"] = np.array([7.0, 8.0])
            case 4:
                lattice.table["k"][0] = 9.0
            case 5:
                shifted.velocities = np.array([6.0, 7.0])
            case 6:
                lattice.names.add("r")
            case 7:
                lattice.order = 5
            case 8:
                lattice.velocities[0] = 11.0
            case 9:
                del shifted.velocities
            case 10:
                lattice.weights.append(2.0)
                lattice.weights[0] = np.float64(2.0)
            case 11:
                lattice.table = OrderedDict(k=np.full(2, 2.0))
            case 12:
                lattice.velocities = 2.0

    for step in range(13):
        change(step)
        for _ in range(5):  # the later ones may be answered by machine code
            value, slope = derivative(X)
            assert value == pytest.approx(function(X), rel=1e-12)
        expected = [(function(X + h) - function(X - h)) / 2e-6 for h in 1e-6 * np.eye(2)]
        np.testing.assert_allclose(slope, expected, rtol=1e-6)


def test_an_attribute_of_the_object_hides_that_of_the_class() -> None:
    lattice = made()[0]
    one = lattice()
    derivative = sg.grad(one.energy)
    first = derivative(X)
    one.velocities = np.array([-1.0, 0.5])
    assert not np.array_equal(derivative(X), first)
    del one.velocities
    assert np.array_equal(derivative(X), first)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_jit_changes_the_list_and_the_array_of_the_class() -> None:
    def run(jit: Any) -> Any:
        lattice = made()[0]
        one = lattice()

        def f(x: Any) -> Any:
            one.velocities[0] += x[0]
            one.weights.append(x[1])
            return one.energy(x)

        values = [jit(f)(X * k) for k in range(1, 4)]
        return values, lattice.velocities, lattice.weights, vars(one)

    ours, numpys = run(sg.jit), run(lambda f: f)
    assert repr(ours) == repr(numpys)


ORDERED: Any = OrderedDict(a=1.0, b=2.0)
NAMED: Any = defaultdict(list)
COUNTED: Any = Counter()
WINDOW: Any = deque(maxlen=3)
CHOSEN: Any = set()


@pytest.fixture
def collections() -> Iterator[None]:
    ORDERED.clear(), ORDERED.update(a=1.0, b=2.0)
    NAMED.clear(), NAMED.update(q=[2.0])
    NAMED.default_factory = list
    COUNTED.clear(), COUNTED.update("aab")
    WINDOW.clear(), WINDOW.extend([1.0, 2.0])
    CHOSEN.clear(), CHOSEN.update((3, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        yield


def of_ordered(x: Any) -> Any:
    return sum(x**k * v for k, v in enumerate(ORDERED.values()))


def of_named(x: Any) -> Any:
    return sum(x * v for v in NAMED["q"])


def of_missing(x: Any) -> Any:
    try:
        return x * len(NAMED["new"])
    except KeyError:
        return x * 3


def of_counted(x: Any) -> Any:
    return sum(x**v for v in COUNTED.values()) * COUNTED["a"] + COUNTED["zz"]


def of_window(x: Any) -> Any:
    return sum(x * v for v in WINDOW) * WINDOW[-1] + WINDOW.maxlen


def of_chosen(x: Any) -> Any:
    return sum(x ** (i + 1) * v for i, v in enumerate(CHOSEN)) + (7 in CHOSEN)


@pytest.mark.usefixtures("collections")
@pytest.mark.parametrize("f", [of_ordered, of_named, of_missing, of_counted, of_window, of_chosen])
def test_collections_are_never_stale(f: Callable[[Any], Any]) -> None:
    derivative = sg.value_and_grad(f)
    assert f is of_missing or is_one_program(derivative, 2.0)

    def change(step: int) -> None:
        match step:
            case 1:
                ORDERED.move_to_end("a")
            case 2:
                NAMED["q"].append(3.0)
            case 3:
                COUNTED.update("abb")
            case 4 | 5:
                WINDOW.append(float(step))
            case 6:
                CHOSEN.add(7)
            case 7:
                NAMED.default_factory = None
            case 8:
                ORDERED["c"] = 9.0
                CHOSEN.discard(3)
            case 9:
                NAMED.default_factory = list
            case 10:
                COUNTED["zz"] = 4

    for step in range(11):
        change(step)
        for _ in range(5):
            NAMED.pop("new", None)
            value, slope = derivative(2.0)
            NAMED.pop("new", None)
            assert value == f(2.0)
        NAMED.pop("new", None)
        expected = (f(2.0 + 1e-6) - f(2.0 - 1e-6)) / 2e-6
        assert slope == pytest.approx(expected, rel=1e-6)


@pytest.mark.usefixtures("collections")
def test_collections_that_a_function_changes_end_as_in_numpy() -> None:
    def turned(x: Any) -> Any:
        ORDERED.move_to_end("a")
        return x * next(iter(ORDERED.values()))

    def pushed(x: Any) -> Any:
        WINDOW.append(x * 2)
        COUNTED["n"] += 1
        CHOSEN.add(7)
        return WINDOW[-1] * x

    for f in (turned, pushed):
        before = copy.deepcopy((ORDERED, WINDOW, COUNTED, CHOSEN))
        value = f(2.0)
        after = repr((ORDERED, WINDOW, COUNTED, sorted(CHOSEN)))
        for container, held in zip((ORDERED, WINDOW, COUNTED, CHOSEN), before, strict=True):
            container.clear()
            container.extend(held) if container is WINDOW else container.update(held)
        assert sg.value_and_grad(f)(2.0)[0] == value
        assert repr((ORDERED, WINDOW, COUNTED, sorted(CHOSEN))) == after


@pytest.mark.usefixtures("collections")
def test_a_dict_that_makes_what_is_missing_is_not_one_that_fails() -> None:
    def f(x: Any) -> Any:
        try:
            return x * len(NAMED["new"])
        except KeyError:
            return x * 3

    NAMED.default_factory = None
    derivative = sg.value_and_grad(f)
    assert derivative(2.0) == (6.0, 3.0)
    assert is_one_program(derivative, 2.0)
    NAMED.default_factory = list
    assert derivative(2.0) == (0.0, 0.0)


def test_what_a_base_has_beside_its_subclass_is_never_stale() -> None:
    class Base:
        order: Any = 2

    class Sub(Base):
        order = 3

        def run(self, x: Any) -> Any:
            return x * super().order + self.order

    one = Sub()
    derivative = sg.value_and_grad(lambda x: one.run(x) + Sub().run(x))
    assert derivative(2.0) == (14.0, 4.0)
    Base.order = 7
    assert derivative(2.0) == (34.0, 14.0)
    Base.order = np.array(1.5)
    assert derivative(2.0) == (12.0, 3.0)


FACTORS = [2.0, 3.0]


def test_a_class_method_of_a_class_that_reads_lists_counts_in_the_users_class() -> None:
    class Model:
        made = 0

        @classmethod
        def make(cls) -> Any:
            cls.made += 1
            return cls()

        def run(self, x: Any) -> Any:
            return x * FACTORS[0]

    derivative = sg.grad(lambda x: Model.make().run(x))
    with pytest.warns(sg.RetraceWarning, match="assigns the attribute 'made' of the class Model"):
        assert [derivative(1.0) for _ in range(3)] == [2.0, 2.0, 2.0]
    assert Model.made == 3


def test_an_object_that_is_made_by_the_class_of_another_is_twice_as_new() -> None:
    class Grid:
        points: Any = np.array([1.0, 2.0])

        def again(self) -> Any:
            return type(self)()

    one = Grid()
    derivative = sg.grad(lambda x: np.sum(one.again().points * x))
    assert derivative(2.0) == 3.0
    assert is_one_program(derivative, 2.0)
    Grid.points[0] = 5.0
    assert derivative(2.0) == 7.0


MODULE: Any = types.ModuleType("of_models")


def test_a_class_of_a_module_is_the_class_of_its_objects() -> None:
    class Model:
        def run(self, x: Any) -> Any:
            return x * FACTORS[0]

    vars(MODULE)["Model"] = Model

    def f(x: Any) -> Any:
        model = MODULE.Model()
        return model.run(x) if type(model) is MODULE.Model else x

    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        assert sg.grad(f)(1.0) == 2.0


def test_a_list_of_a_class_that_one_path_changes_and_puts_back_is_as_it_was_on_the_other() -> None:
    class Model:
        held: Any = [1.0, 2.0]  # noqa: RUF012

        def run(self, x: Any) -> Any:
            first = self.held[0]
            if x > 3.0:
                self.held[0] = x
            y = self.held[0] * x
            self.held[0] = first
            return y

    derivative = sg.value_and_grad(lambda x: Model().run(x))
    assert is_one_program(derivative, 2.0)
    assert derivative(2.0) == (2.0, 1.0)
    assert derivative(4.0) == (16.0, 8.0)
    assert Model.held == [1.0, 2.0]


def test_objects_of_a_frozen_dataclass_with_lists_get_no_more_attributes() -> None:
    @dataclasses.dataclass(frozen=True)
    class Point:
        at: Any
        weights = [1.0, 2.0]  # noqa: RUF012

        def __mul__(self, factor: Any) -> Any:
            return type(self)(self.at * factor * self.weights[1])

        def mark(self) -> None:
            self.marked = 1.0

    derivative = sg.grad(lambda x: (Point(x) * 3.0 * 2.0).at)
    assert derivative(1.0) == 24.0
    Point.weights[1] = 1.0  # type: ignore[misc]
    assert derivative(1.0) == 6.0
    assert is_one_program(derivative, 1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        sg.grad(lambda x: (Point(x) * 3.0).mark() or x)(1.0)


def test_a_function_of_numpy_as_a_static_method_is_never_stale() -> None:
    class Layer:
        act: Any = staticmethod(np.square)

        def __call__(self, x: Any) -> Any:
            return self.act(x)

    layer = Layer()
    derivative = sg.grad(lambda x: layer(x) + Layer()(x))
    assert derivative(3.0) == 12.0
    assert is_one_program(derivative, 3.0)
    Layer.act = staticmethod(np.negative)
    assert derivative(3.0) == -2.0


def test_a_method_by_a_name_of_python_2_is_the_users() -> None:
    class Gain:
        def __init__(self, rate: float) -> None:
            self.rate = rate

        def __truediv__(self, other: Any) -> Any:
            return self.__div__(other)

        def __div__(self, other: Any) -> Any:
            return Gain(self.rate / other)

    gain = Gain(3.0)
    derivative = sg.grad(lambda x: (gain / x).rate + gain.__div__(x).rate)
    assert [derivative(2.0), derivative(1.0)] == [-1.5, -6.0]
    gain.rate = 1.0
    assert derivative(1.0) == -2.0
    assert is_one_program(derivative, 1.0)
    Gain.__div__ = lambda self, other: Gain(self.rate * other)  # type: ignore[method-assign]
    assert derivative(1.0) == 2.0


def test_a_name_with_capitals_between_underscores_is_the_users() -> None:
    class Units:
        __FEET__ = 1
        __SCALE__ = 2.0

        def __init__(self, system: int) -> None:
            self.system = system

        def convert(self, x: Any) -> Any:
            return x * self.__SCALE__ if self.system is self.__FEET__ else x

    class Other(Units):
        pass

    feet, other = Units(1), Other(0)
    slope = sg.grad(lambda x: feet.convert(x * x) + other.convert(x))
    changes: list[Callable[[], Any]] = [
        lambda: None,
        lambda: setattr(Units, "__SCALE__", 3.0),
        lambda: setattr(Other, "__SCALE__", 5.0),
        lambda: setattr(Other, "__FEET__", 0),
        lambda: setattr(feet, "__SCALE__", 7.0),
        lambda: delattr(feet, "__SCALE__"),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for change, wanted in zip(changes, (13.0, 19.0, 19.0, 23.0, 47.0, 23.0), strict=True):
            change()
            for _ in range(6):
                assert slope(3.0) == wanted


def test_a_name_between_underscores_that_python_does_not_look_up_is_the_users() -> None:
    class Line:
        __type__ = "line"

        def __init__(self, rate: float) -> None:
            self.rate = rate

        def __nice__(self) -> str:
            return f"of {self!s}"

        def __rule__(self, x: Any) -> Any:
            return x * self.rate if self.__type__ == "line" else x

    line = Line(2.0)
    derivative = sg.grad(lambda x: line.__rule__(x))
    assert derivative(1.0) == 2.0
    line.rate = 3.0
    assert derivative(1.0) == 3.0
    assert is_one_program(derivative, 1.0)
    Line.__type__ = "other"
    assert derivative(1.0) == 1.0
    Line.__rule__ = lambda self, x: x * x  # type: ignore[method-assign]
    assert derivative(4.0) == 8.0
