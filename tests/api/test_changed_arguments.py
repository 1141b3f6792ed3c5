"""What jit leaves behind in arguments that a function changes is what the function itself leaves there."""

from __future__ import annotations

import copy
import dataclasses
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.api import changing_programs as programs

BACKENDS = ("llvm", "numpy")
ERRORS = (np.linalg.LinAlgError, IndexError, ValueError)


def assert_same(one: Any, other: Any, place: str) -> None:
    """Equal in structure, order, classes and numbers; Python's floats stay what they are."""
    assert type(one) is type(other), f"{place}: {type(one)} {type(other)}"
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype and one.shape == other.shape, place
        np.testing.assert_allclose(one, other, rtol=1e-13, err_msg=place)
    elif isinstance(one, dict):
        assert list(one) == list(other), place
        for key in one:
            assert_same(one[key], other[key], f"{place}[{key!r}]")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), place
        for k, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{place}[{k}]")
    elif dataclasses.is_dataclass(one) or isinstance(one, programs.Plain):
        names = [*getattr(one, "__dict__", {}), *getattr(one, "__slots__", ())]
        assert names == [*getattr(other, "__dict__", {}), *getattr(other, "__slots__", ())], place
        for name in names:
            assert_same(getattr(one, name), getattr(other, name), f"{place}.{name}")
    elif isinstance(one, (float, np.floating)):
        assert one == pytest.approx(other, rel=1e-13), place
    elif not callable(one) or isinstance(one, np.ufunc):
        assert one == other, place


def arrays(x: Any, seen: set[int]) -> list[Any]:
    """Every array in containers, in order."""
    if isinstance(x, np.ndarray):
        return [x]
    if id(x) in seen:
        return []
    seen.add(id(x))
    items = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else vars(x).values() \
        if hasattr(x, "__dict__") and not callable(x) else ()  # fmt: skip
    return [array for item in items for array in arrays(item, seen)]


def sharing(args: Any) -> list[tuple[int, int, bool]]:
    """Which arrays in the arguments are one, or share memory."""
    found = arrays(args, set())
    pairs = [(i, j) for j in range(len(found)) for i in range(j)]
    return [(i, j, found[i] is found[j]) for i, j in pairs if np.shares_memory(found[i], found[j])]


def outcome(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        result = f(*args)
    except ERRORS as error:
        result = next(kind for kind in ERRORS if isinstance(error, kind)).__name__
    return np.asarray(result) if isinstance(result, (float, int)) else result, copy.deepcopy(args), sharing(args)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_what_is_left_behind(name: str, backend: str) -> None:
    f, make = programs.PROGRAMS[name]
    compiled = sg.jit(f, backend=backend)
    with warnings.catch_warnings():
        if name in programs.RETRACED:
            warnings.simplefilter("ignore", sg.RetraceWarning)
        warnings.filterwarnings("ignore", "Setting the shape", DeprecationWarning)  # by NumPy 2.5
        kept, kept_compiled = make(), make()
        for k in range(7):
            for given, given_compiled in ((kept, kept_compiled), (make(), make())):
                one, other = outcome(f, given), outcome(compiled, given_compiled)
                assert_same(one[0], other[0], f"result {k}")
                assert_same(one[1], other[1], f"arguments {k}")
                assert one[2] == other[2]
                if np.linalg.norm([np.linalg.norm(np.asarray(a, float)) for a in arrays(given, set())]) > 1e6:
                    return


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_container_given_twice(backend: str) -> None:
    @sg.jit(backend=backend)
    def f(a: Any, b: Any, x: Any) -> Any:
        a["z"] = x * 2.0
        return b.get("z", x)

    one, other, x = {"a": np.ones(2)}, {"a": np.ones(2)}, np.ones(3)
    for _ in range(6):
        assert np.array_equal(f(one, other, x), x) and "z" not in other
        one.pop("z")
        assert np.array_equal(f(one, one, x), 2.0 * x)
        one.pop("z")


SETTINGS = {"rate": 0.5}


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_container_that_is_captured_too(backend: str) -> None:
    @sg.jit(backend=backend)
    def f(d: Any, x: Any) -> Any:
        d["rate"] = 2.0
        return x * SETTINGS["rate"]

    d = {"rate": 1.0}
    SETTINGS["rate"] = 0.5
    for _ in range(6):
        assert f(d, np.float64(1.0)) == 0.5 and d == {"rate": 2.0}
    assert f(SETTINGS, np.float64(1.0)) == 2.0 and SETTINGS == {"rate": 2.0}


def test_derivatives_leave_containers_as_they_are() -> None:
    def f(x: Any, d: Any, items: Any, record: Any) -> Any:
        d["z"] = x * 2.0
        items.append(x)
        record.w = d["z"] * x
        return np.sum(record.w)

    for transform in (sg.grad, sg.value_and_grad, sg.jacfwd, sg.hessian):
        given = {"a": np.ones(2)}, [np.ones(2)], programs.Record(np.ones(3), 1.0)
        before = copy.deepcopy(given)
        transform(f)(np.ones(3), *given)
        assert_same(before, given, transform.__name__)


def test_a_step_of_descent_with_its_gradient_in_it() -> None:
    @sg.jit(strict=True)
    def step(params: Any, x: Any) -> None:
        gradients = sg.grad(lambda p: np.sum((p["w"] * x + p["b"]) ** 2))(params)
        for key in params:
            params[key] = params[key] - 0.1 * gradients[key]

    params = {"w": np.ones(3), "b": 1.0}
    by_hand = copy.deepcopy(params)
    x = np.linspace(0.0, 1.0, 3)
    for _ in range(6):
        step(params, x)
        r = by_hand["w"] * x + by_hand["b"]
        by_hand["w"], by_hand["b"] = by_hand["w"] - 0.2 * r * x, by_hand["b"] - 0.2 * r.sum()
        assert_same(by_hand["w"], params["w"], "w")
        assert params["b"] == pytest.approx(by_hand["b"], rel=1e-13)


def test_what_is_left_behind_in_debug_mode_and_on_xla() -> None:
    def f(d: Any, items: Any, x: Any) -> Any:
        d["z"], d["w"] = x * 2.0, d["w"] + x
        items.append(x)
        return x.sum()

    for call in (sg.jit(f), sg.jit(f, backend="xla")):
        d, items, x = {"w": np.ones(3)}, [0.0], np.ones(3)
        with sg.debug():
            call(d, items, x)
        assert list(d) == ["w", "z"] and np.array_equal(d["w"], [2.0] * 3) and items[1] is x
        call(d, items, x)
        assert np.array_equal(d["w"], [3.0] * 3) and len(items) == 3 and items[2] is x
    with sg.debug():
        same = {"w": np.ones(3)}
        sg.jit(lambda a, b: a.update(v=b["w"], n=len(b)))(same, same)
        assert same["v"] is same["w"] and same["n"] == 1


def test_explain_names_what_is_changed_and_changes_nothing() -> None:
    def f(d: Any, items: Any, x: Any) -> None:
        d["k"]["z"] = x * 2.0
        items.append(x)
        x += 1.0

    d, items, x = {"k": {}}, [], np.ones(2)  # type: ignore[var-annotated]
    found = sg.explain(sg.jit(f))(d, items, x)
    assert "changed in place, and written back: x" in found["how it runs"]
    assert "given something else to hold: d['k'], items" in found["how it runs"]
    assert d == {"k": {}} and items == [] and np.array_equal(x, np.ones(2))


class Held:
    def __init__(self, w: Any, log: Any) -> None:
        self.w, self.log = w, log


sg.register_pytree_node(Held, lambda held: ((held.w, held.log), None), lambda _, parts: Held(*parts))


def test_instances_of_registered_classes_are_changed_as_they_are() -> None:
    def attribute(held: Any, x: Any) -> Any:
        held.w = held.w + x
        return held.w.sum()

    def inside(held: Any, x: Any) -> Any:
        held.log.append(x.sum())
        return x

    for f in (attribute, inside):
        one, other = Held(np.ones(3), []), Held(np.ones(3), [])
        with pytest.warns(sg.RetraceWarning, match="changes an instance of Held"):
            compiled = sg.jit(f)
            for _ in range(3):
                f(one, np.ones(3)), compiled(other, np.ones(3))
        assert np.array_equal(one.w, other.w) and one.log == other.log


def test_what_the_function_prints_before_it_fails_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    @sg.jit
    def f(x: Any) -> None:
        x += 1.0
        print("one", x.sum())
        if x.sum() > 0.0:
            raise ValueError("no")

    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            f(np.ones(3))
    assert capsys.readouterr().out.count("one") == 3


def test_threads_change_their_own_arguments() -> None:
    @sg.jit
    def step(d: Any, u: Any) -> None:
        u[1:] += u[:-1]
        d["sum"] = u.sum() + d["sum"]

    def work(found: list[Any]) -> None:
        d, u = {"sum": 0.0}, np.ones(4)
        for _ in range(200):
            step(d, u)
        found.append((d, u))

    found: list[Any] = []
    threads = [threading.Thread(target=work, args=(found,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected: list[Any] = []
    with np.errstate(all="ignore"):
        d, u = {"sum": 0.0}, np.ones(4)
        for _ in range(200):
            step.f(d, u)
        expected.append((d, u))
    assert len(found) == 6
    for one in found:
        np.testing.assert_allclose(one[1], expected[0][1])
        assert one[0]["sum"] == pytest.approx(expected[0][0]["sum"])
