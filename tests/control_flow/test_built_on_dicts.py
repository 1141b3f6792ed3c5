"""Objects of users' classes that are dicts or lists and more, mappings of the standard library's, and metaclasses."""

from __future__ import annotations

import collections
import collections.abc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.traced_once import agrees_after_changes, require_one_program

WEIGHTS = np.array([1.0, 2.0])


class Settings(dict[str, Any]):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__  # type: ignore[assignment]


class OwnDict(dict[str, Any]):
    """Has its items as its attributes."""

    def __init__(self, **items: Any) -> None:
        super().__init__(**items)
        self.__dict__ = self


class Checked(dict[str, Any]):
    scale = 2.0
    weights = np.array([1.0, 3.0])

    def __init__(self, **items: Any) -> None:
        super().__init__()
        for name, value in items.items():
            self[name] = Checked(**value) if isinstance(value, dict) else value

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(name)
        return self[name]

    def __missing__(self, name: str) -> float:
        return 0.5

    def norm(self, x: Any) -> Any:
        return self.scale * np.sum(self.weights * WEIGHTS) * x * self["nowhere"]


class Other(dict[str, Any]):
    """Reads otherwise than a dict does, in each method."""

    def __getitem__(self, key: str) -> Any:
        return 2.0 * dict.__getitem__(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(["elsewhere"])

    def __len__(self) -> int:
        return 77

    def __contains__(self, key: object) -> bool:
        return key == "b"

    def keys(self) -> Any:
        return ["nothing"]

    def items(self) -> Any:
        return [("a", 7.0)]

    def values(self) -> Any:
        return [7.0]


class Backwards(list[float]):
    unit = "m"

    def __getitem__(self, k: Any) -> Any:
        return list.__getitem__(self, -1 - k)

    def __iter__(self) -> Iterator[float]:
        return (self[k] for k in range(2))


class Parameters(collections.abc.MutableMapping[str, Any]):
    def __init__(self, **known: Any) -> None:
        self._known = dict(known)

    def __getitem__(self, key: str) -> Any:
        return self._known[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._known[key] = value

    def __delitem__(self, key: str) -> None:
        del self._known[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class Twice(collections.UserDict[str, Any]):
    def __getitem__(self, key: str) -> Any:
        return 2.0 * self.data[key]


class Registry(type):
    known: dict[str, Any] = {}  # noqa: RUF012

    def __new__(cls, name: str, bases: Any, names: Any) -> Any:
        made = super().__new__(cls, name, bases, names)
        cls.known[name] = made
        return made


class Spring(metaclass=Registry):
    def __init__(self, k: Any) -> None:
        self.k = k

    def __add__(self, other: Any) -> Any:
        return Spring(self.k + other.k) if other.k < 100.0 else self

    def force(self, x: Any) -> Any:
        return -self.k * x * WEIGHTS[1]


SETTINGS: Any = None
OWN: Any = None
CHECKED: Any = None
OTHER: Any = None
BACKWARDS: Any = None
PARAMETERS: Any = None
TWICE: Any = None
BASE: Any = None
OVER: Any = None
CHAIN: Any = None
SPRING: Any = None


@pytest.fixture(params=["numpy", "llvm"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With objects of its own for each test."""
    base, over = {"a": 2.0, "b": 1.0}, {"c": 1.5}
    fresh = {
        "WEIGHTS": np.array([1.0, 2.0]),
        "SETTINGS": Settings(a=2.0, b=np.array([1.0, 2.0]), inner=Settings(n=3)),
        "OWN": OwnDict(a=2.0, mode="sin"),
        "CHECKED": Checked(a=2.0, inner={"b": 3.0}),
        "OTHER": Other(a=2.0, b=3.0),
        "BACKWARDS": Backwards([2.0, 5.0]),
        "PARAMETERS": Parameters(a=2.0, b=3.0),
        "TWICE": Twice(a=2.0),
        "BASE": base,
        "OVER": over,
        "CHAIN": collections.ChainMap(over, base),
        "SPRING": Spring(2.0),
    }
    for name, value in fresh.items():
        monkeypatch.setitem(globals(), name, value)
    for name in ("weights", "scale", "__missing__"):
        monkeypatch.setattr(Checked, name, vars(Checked)[name])
    return str(request.param)


def of_settings(x: Any) -> Any:
    return (SETTINGS.a * x * SETTINGS.b[1]) ** SETTINGS.inner.n + SETTINGS["a"] * x


def of_own(x: Any) -> Any:
    return OWN.a * (np.sin(x) if OWN.mode == "sin" else x) + OWN["a"]


def of_checked(x: Any) -> Any:
    extra = CHECKED.extra if hasattr(CHECKED, "extra") else 1.0
    return CHECKED.a * CHECKED.inner.b * x * extra + CHECKED.norm(x)


def of_other(x: Any) -> Any:
    total = sum(value for _, value in OTHER.items()) + sum(len(key) for key in OTHER)
    return OTHER["a"] * x + len(OTHER) * x * x + total + ("a" in OTHER) + ("b" in OTHER)


def of_a_list(x: Any) -> Any:
    return BACKWARDS[0] * x + sum(BACKWARDS) * x * x * len(BACKWARDS)


def of_parameters(x: Any) -> Any:
    made = Parameters(z=x)
    made.update(w=x * PARAMETERS["a"])
    return made["z"] * made["w"] + sum(PARAMETERS.values()) * x + PARAMETERS.get("q", 1.0)


def of_a_user_dict(x: Any) -> Any:
    return TWICE["a"] * x + TWICE.get("b", 1.0)


def of_a_chain(x: Any) -> Any:
    return CHAIN["a"] * x + CHAIN["b"] * CHAIN["c"] * x * x


def of_a_spring(x: Any) -> Any:
    return (SPRING + Spring(x)).force(x)


def change_settings(k: int) -> None:
    [
        lambda: None,
        lambda: SETTINGS.__setattr__("a", 3.0),
        lambda: SETTINGS.b.__setitem__(1, 7.0),
        lambda: SETTINGS.inner.__setattr__("n", 2),
        lambda: SETTINGS.__dict__.update(a=9.0),
        lambda: SETTINGS.__dict__.update(a=10.0),
        lambda: SETTINGS.__dict__.clear(),
        lambda: SETTINGS.__setattr__("inner", Settings(n=1)),
    ][k]()


def change_own(k: int) -> None:
    OWN.a = [2.0, 5.0, 5.0, 6.0][k]
    OWN["mode"] = ["sin", "sin", "line", "line"][k]


def change_checked(k: int) -> None:
    [
        lambda: None,
        lambda: CHECKED.inner.update(b=4.0),
        lambda: CHECKED.update(extra=5.0),
        lambda: CHECKED.__delitem__("extra"),
        lambda: setattr(Checked, "weights", np.array([2.0, 2.0])),
        lambda: setattr(Checked, "scale", 3.0),
        lambda: CHECKED.__dict__.update(scale=7.0),
        lambda: CHECKED.update(nowhere=2.0),
        lambda: setattr(Checked, "__missing__", lambda self, name: 4.0),
    ][k]()


def change_other(k: int) -> None:
    dict.__setitem__(OTHER, "a", 2.0 + k // 2)
    if k == 3:
        dict.__setitem__(OTHER, "c", 1.0)


def change_list(k: int) -> None:
    list.__setitem__(BACKWARDS, 1, 5.0 + k)
    if k == 2:
        BACKWARDS.append(1.0)


def change_parameters(k: int) -> None:
    PARAMETERS["a"] = 2.0 + k // 2
    if k == 3:
        PARAMETERS["q"] = 9.0


def change_user_dict(k: int) -> None:
    [
        lambda: None,
        lambda: TWICE.data.update(a=3.0),
        lambda: TWICE.__setitem__("b", 4.0),
        lambda: setattr(TWICE, "data", {"a": 6.0}),
    ][k]()


def change_chain(k: int) -> None:
    [
        lambda: None,
        lambda: BASE.update(a=3.0),
        lambda: OVER.update(a=5.0),
        lambda: OVER.__delitem__("a"),
        lambda: CHAIN.maps.insert(0, {"b": 8.0}),
    ][k]()


def change_spring(k: int) -> None:
    SPRING.k = 2.0 + k // 2
    WEIGHTS[1] = 2.0 + k


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[int], None], int]] = {
    "settings": (of_settings, change_settings, 8),
    "items that are attributes": (of_own, change_own, 4),
    "methods": (of_checked, change_checked, 9),
    "other items": (of_other, change_other, 4),
    "a list": (of_a_list, change_list, 3),
    "a mapping": (of_parameters, change_parameters, 4),
    "a user dict": (of_a_user_dict, change_user_dict, 4),
    "a chain": (of_a_chain, change_chain, 5),
    "a metaclass": (of_a_spring, change_spring, 4),
}


@pytest.mark.parametrize("name", CASES)
def test_what_they_hold_is_read_at_each_call(name: str, backend: str) -> None:
    f, change, steps = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The calls between two changes are answered by machine code from some on.
        points = [0.7 + k / 97 for k in range(6 * steps)]
        agrees_after_changes(f, backend, lambda k: change(k // 6) if k % 6 == 0 else None, points)
        assert sg.jit(f, backend=backend)(0.5) == pytest.approx(f(0.5), rel=1e-12)


def in_a_loop(x: Any) -> Any:
    state = Settings(q=x[0], v=x[1], hits=0)
    for _ in range(40):
        state.v = state.v - 0.01 * state.q * SETTINGS.a
        if state.v < 0.0:
            state.q += 0.01 * state.v
            state["hits"] += 1
    return state.q**2 + state.hits * state.v


def under_a_condition(x: Any) -> Any:
    state = OwnDict(v=x[0])
    if x[1] > 0.0:
        state.v = state.v * 2.0 + x[1]
    else:
        state["v"] = state.v * 3.0
    return state.v**2


@pytest.mark.parametrize("f", [in_a_loop, under_a_condition])
def test_those_that_a_function_makes_are_changed_in_place(f: Any, backend: str) -> None:
    require_one_program(f, backend, np.array([0.5, 1.0]), np.array([0.5, -1.0]), np.array([-0.5, 0.3]))


def test_the_function_of_a_class_that_is_no_python_code_is_guarded(backend: str) -> None:
    class Local(dict[str, Any]):
        __getattr__ = dict.__getitem__

    held = Local(a=2.0)
    slope = sg.grad(lambda x: held.a * x, backend=backend)
    assert [slope(1.0) for _ in range(6)] == [2.0] * 6
    Local.__getattr__ = lambda self, name: 7.0  # type: ignore[method-assign, assignment]
    assert slope(1.0) == 7.0
    Local.a = 9.0  # type: ignore[attr-defined]
    assert slope(1.0) == 9.0


def test_one_that_the_function_changes_is_changed(backend: str) -> None:
    held = Settings(a=2.0, last=None)

    def f(x: Any) -> Any:
        held.last = x * held.a
        return held.last * x

    slope = sg.grad(f, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert slope(3.0) == 12.0
    assert type(held.last) is float
    assert held.last == 6.0


def test_a_metaclass_that_has_what_is_read_of_its_class_is_asked_at_each_call(backend: str) -> None:
    class Meta(type):
        gain = 2.0

    class Made(metaclass=Meta):
        pass

    slope = sg.grad(lambda x: Made.gain * x, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert slope(1.0) == 2.0
        Meta.gain = 3.0
        assert slope(1.0) == 3.0


def test_no_class_is_registered_for_a_copy_of_one(backend: str) -> None:
    before = dict(Registry.known)
    sg.grad(of_a_spring, backend=backend)(0.3)
    assert Registry.known == before
