"""Functions that read large containers: what cannot be watched is not looked at in vain again and again."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad import cache, waiting


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What is found where functions are analysed at length."""
    sg.clear_caches()
    found: list[Any] = []
    analyse = cache.analyse

    def counted(*given: Any) -> Any:
        result = analyse(*given)
        if isinstance(result, cache.Uncacheable) and result.reads >= waiting.MUCH:
            found.append(result)
        return result

    monkeypatch.setattr(cache, "analyse", counted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield found


def test_what_reads_too_much_is_analysed_ever_less_often(analysed: list[Any]) -> None:
    neighbours = [[(7 * k) % 5, (3 * k) % 5] for k in range(2000)]

    def energy(x: Any) -> Any:
        return sum(x[j] * x[k] for k in range(4) for j in neighbours[k])

    x, gradient = np.linspace(0.1, 1.0, 5), sg.grad(energy)
    counts = []
    for _ in range(40):
        np.testing.assert_allclose(gradient(x)[4], sg.jvp(energy, (x,), (np.eye(5)[4],))[1])
        counts.append(len(analysed))
    assert counts[0] > 0 and counts[-1] < 8 * counts[0], "at the calls 1, 3, 6, 11, 20 and 37 of each"
    neighbours[1] = [0, 0]  # which each call reads anew
    np.testing.assert_allclose(gradient(x), expected(x))


def expected(x: Any) -> Any:
    """Of the pairs (0, 0) twice, (1, 0) twice, (2, 4), (2, 1), (3, 1), (3, 4)."""
    pairs = [(0, 0), (0, 0), (1, 0), (1, 0), (2, 4), (2, 1), (3, 1), (3, 4)]
    found = np.zeros(5)
    for k, j in pairs:
        found[k] += x[j]
        found[j] += x[k]
    return found


def test_what_becomes_small_is_one_program_again(analysed: list[Any], programs: cache.Table) -> None:
    table: list[Any] = [[k] for k in range(2000)]

    def total(x: Any) -> Any:
        return np.sum(x * x) * len(table[3])

    x, gradient = np.linspace(0.1, 1.0, 5), sg.grad(total)
    for _ in range(20):
        np.testing.assert_allclose(gradient(x), 2 * x)
    del table[5:]
    table[3] = [1, 2]
    for _ in range(waiting.LONGEST + 1):
        np.testing.assert_allclose(gradient(x), 4 * x)
    analysed.clear()
    for _ in range(5):
        np.testing.assert_allclose(gradient(x), 4 * x)
    assert analysed == [] and len(programs.entries) > 0


def test_nothing_is_looked_at_behind_the_most() -> None:
    sg.clear_caches()
    table = [[k] for k in range(100_000)]

    def total(x: Any) -> Any:
        return np.sum(x * x) * len(table[3])

    found = cache.find_captures(total, False, True)
    assert isinstance(found, cache.Uncacheable) and "more than 512" in found.reason
    assert found.reads < 2000


CHANGES: dict[str, Any] = {
    "another number": lambda held: held.__setitem__(3, 50),
    "another type": lambda held: held.__setitem__(1, True),
    "another text": lambda held: held.__setitem__(4, "50"),
    "an array": lambda held: held.__setitem__(5, np.full(3, 2.0)),
    "a float": lambda held: held.__setitem__(6, 2.5),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["list", "dict"])
def test_a_change_of_one_of_many_constants_is_seen(kind: str, change: str) -> None:
    """They have one guard together."""
    held: Any = list(range(500)) if kind == "list" else {k: k for k in range(500)}

    def weight(k: int) -> Any:
        return np.sum(held[k]) + (100.0 if held[k] is True else 0.0) if not isinstance(held[k], str) else 7.0

    def loss(x: Any) -> Any:
        return np.sum(x) * (sum(weight(k) for k in range(8)) + len(held))

    x = np.ones(2)
    gradient = sg.grad(loss)
    for _ in range(5):
        np.testing.assert_allclose(gradient(x), 528.0)
    CHANGES[change](held)
    for _ in range(3):
        np.testing.assert_allclose(gradient(x), loss(np.array([1.0, 0.0])))
    if kind == "list":
        held.append(0)
    else:
        held[500] = 0
    np.testing.assert_allclose(gradient(x), loss(np.array([1.0, 0.0])))


def test_many_constants_that_are_equal_are_the_same_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they are other objects, made anew."""
    held = list(range(1000, 1500))

    def loss(x: Any) -> Any:
        return np.sum(x) * held[499]

    gradient, x = sg.grad(loss), np.ones(2)
    np.testing.assert_allclose(gradient(x), 1499.0)
    monkeypatch.setattr(cache, "analyse", None)
    for _ in range(4):
        held = [int(str(number)) for number in held]
        np.testing.assert_allclose(gradient(x), 1499.0)


OTHERS: dict[str, Callable[[], Any]] = {
    "another number": lambda: 7.5,
    "a zero with a sign": lambda: -0.0,
    "a whole number": lambda: 0,
    "a truth value": lambda: False,
    "a scalar of NumPy's": lambda: np.float64(0.0),
    "an equal one": lambda: float("0"),
}


@pytest.mark.parametrize("kind", [list, tuple, dict, "records"])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_items_that_are_replaced_are_seen_although_the_others_are_the_same_objects(other: str, kind: Any) -> None:
    """Which objects a container holds is compared first: an equal one of another kind or sign is another one."""
    numbers: list[Any] = [float(k) for k in range(200)]

    def holding(items: list[Any]) -> Any:
        if kind == "records":
            return [(item, 2.0) for item in items]
        return dict(enumerate(items)) if kind is dict else kind(items)

    held = [holding(numbers)]

    def f(x: Any) -> Any:
        first = held[0][0][0] if kind == "records" else held[0][0]
        return np.arctan2(first, -1.0) * x, isinstance(first, int)

    run = sg.jit(f)
    for item in (0.0, OTHERS[other](), 0.0, OTHERS[other]()):
        held[0] = holding([item, *numbers[1:]])
        for _ in range(5):
            found, expected = run(2.0), f(2.0)
            assert found[0] == expected[0]
            assert found[1] is expected[1]
    if kind is list:
        held[0][0] = 3.0
        assert run(2.0)[0] == f(2.0)[0]


def test_lists_in_large_lists_may_change_where_they_are() -> None:
    records = [[float(k), 1.0] for k in range(200)]
    slope = sg.grad(lambda x: x * records[3][0])
    for value in (3.0, 4.0, 5.0):
        records[3][0] = value
        assert [slope(1.0) for _ in range(4)] == [value] * 4


def test_constants_that_are_replaced_by_equal_ones_are_other_constants() -> None:
    flags: list[Any] = [1] * 200
    run = sg.jit(lambda x: x * (2.0 if flags[5] is True else 1.0))
    for value, factor in ((1, 1.0), (True, 2.0), (1, 1.0), (int("1"), 1.0)):
        flags[5] = value
        assert [run(3.0) for _ in range(4)] == [3.0 * factor] * 4


class Sized:
    """A model whose table is too large to be watched, or is not."""

    def __init__(self, size: int) -> None:
        self.weights = np.arange(1.0, 4.0)
        self.table = [[k] for k in range(size)]

    def loss(self, x: Any) -> Any:
        return np.sum(self.weights * x * x) * len(self.table[2])


def bound(model: Any) -> Any:
    return lambda x: model.loss(x)


def read_at_once(model: Any) -> Any:
    return lambda x: np.sum(model.weights * x * x) * len(model.table[2])


def bound_partial(model: Any) -> Any:
    return functools.partial(weighed, model)


def weighed(model: Any, x: Any) -> Any:
    return np.sum(model.weights * x * x) * len(model.table[2])


MODEL: Any = None


def of_a_global(x: Any) -> Any:
    return weighed(MODEL, x)


def set_global(model: Any) -> Any:
    globals()["MODEL"] = model
    return of_a_global


WAYS = [bound, read_at_once, bound_partial, set_global, lambda model: model.loss]


@pytest.mark.parametrize("make", WAYS)
@pytest.mark.parametrize("order", [(3, 600, 4, 5), (600, 4, 5)])
def test_a_large_model_keeps_no_small_one_of_the_same_code_from_a_program(make: Any, order: tuple[int, ...]) -> None:
    sg.clear_caches()
    x = np.ones(3)
    for size in order:
        model = Sized(size)
        gradient = sg.grad(make(model))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if size > 500 else "error")
            for _ in range(8 if size > 500 else 1):  # so that it waits for some calls
                np.testing.assert_array_equal(gradient(x), 2.0 * model.weights)
            model.weights[1] = 7.0
            model.table[2] = [0, 0]
            np.testing.assert_array_equal(gradient(x), 4.0 * model.weights)
        said = sg.explain(gradient)(x)["how it runs"]
        assert ("more than 512" in said) == (size > 500)


@pytest.mark.parametrize("make", WAYS)
def test_many_large_models_of_one_code_are_not_all_analysed_in_vain(monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    sg.clear_caches()
    count, analyse = [0], cache.analyse

    def counted(function: Any, floats_static: bool, converted: bool, classes: Any) -> Any:
        count[0] += converted
        return analyse(function, floats_static, converted, classes)

    monkeypatch.setattr(cache, "analyse", counted)
    models = [Sized(600) for _ in range(12)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in models:
            before = count[0]
            np.testing.assert_array_equal(sg.grad(make(model))(np.ones(3)), 2.0 * model.weights)
    assert count[0] == before, "at the last call"


@pytest.mark.parametrize("transform", [sg.jit, sg.grad])
def test_one_object_is_one_program_again_when_a_global_leads_to_a_small_model(transform: Any) -> None:
    sg.clear_caches()
    transformed, x = transform(of_a_global), np.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for size in (600, 3):
            set_global(Sized(size))
            for _ in range(3):
                np.testing.assert_array_equal(transformed(x), 6.0 if transform is sg.jit else 2.0 * MODEL.weights)
    assert sg.explain(transformed)(x)["how it runs"].startswith("One program")
    assert not isinstance(cache.find_captures(of_a_global, False, True), cache.Uncacheable)
