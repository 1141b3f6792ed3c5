"""Derivatives leave the caller's variables, containers, attributes and arrays as they are, also where they are traced
again at each call.
"""

from __future__ import annotations

import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

pytestmark = pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
X = np.array([1.0, -2.0, 3.0])
CALLS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: sg.grad(f)(X),
    "value_and_grad": lambda f: sg.value_and_grad(f)(X),
    "jacfwd": lambda f: sg.jacfwd(f)(X),
    "hessian": lambda f: sg.hessian(f)(X),
    "grad of grad": lambda f: sg.grad(lambda x: np.sum(sg.grad(f)(x)))(X),
    "vjp": lambda f: sg.vjp(f, X)[1](1.0),
    "jvp": lambda f: sg.jvp(f, (X,), (X,)),
    "linearize": lambda f: sg.linearize(f, X)[1](X),
    "hvp": lambda f: sg.hvp(f, (X,), (X,)),
    "jit of grad": lambda f: sg.jit(sg.grad(f))(X),
}
MADE = """
import numpy as np
calls, table, kept = 0, {"a": [1]}, np.arange(3.0)

class Model:
    made = 0
    __slots__ = ("steps", "__dict__")

    def __init__(self):
        self.steps, self.last, self.history = 0, None, []

    def energy(self, x):
        global calls
        calls += 1
        self.steps += 1
        self.last = self.new = x
        self.history.append(x)
        Model.made += 1
        table["a"].append(calls)
        table["b"] = x
        kept[1:] *= 5.0
        return np.sum(x * x) + kept[0]

def loss(x, box=[0]):
    count["a"] += 1
    count["z"] += 3
    ordered["c"] = x
    ordered.move_to_end("b")
    lists["q"].append(x)
    ends.append(x)
    names.add("x")
    box[0] += 1
    loss.calls = getattr(loss, "calls", 0) + 1
    return model.energy(x) + count["a"]

model = Model()
"""


def made() -> Any:
    """A module of functions that change whatever they reach."""
    found: Any = types.ModuleType("changing")
    vars(found).update(
        count=Counter(a=2), ordered=OrderedDict(b=1, a=2), lists=defaultdict(list), ends=deque([1], maxlen=3),
        names={"y"},
    )  # fmt: skip
    exec(compile(MADE, "<changing>", "exec"), vars(found))
    return found


def state(m: Any) -> Any:
    """What a function can change of the module, with arrays as text."""
    parts = [m.calls, m.table, m.kept, m.Model.made, m.model.steps, vars(m.model), list(m.ordered.items()), m.ends]
    return repr([*parts, m.count, m.lists, m.names, m.loss.__defaults__, vars(m.loss)])


@pytest.mark.parametrize("name", CALLS)
def test_derivatives_leave_what_they_reach_as_it_is(name: str) -> None:
    m = made()
    before = state(m)
    for _ in range(2):
        CALLS[name](m.loss)
        assert state(m) == before
    np.testing.assert_array_equal(sg.grad(m.loss)(X), 2 * X)
    assert sg.jit(m.loss)(X) == 17.0  # and the function itself changes all of it
    assert (m.calls, m.Model.made, m.model.steps, m.count["z"], m.loss.calls) == (1, 1, 1, 3, 1)
    assert type(m.table["b"]) is type(m.model.last) is np.ndarray and m.kept[2] == 10.0


def test_a_derivative_that_fails_leaves_the_callers_containers_as_they_are() -> None:
    seen: list[Any] = []

    def refuses(x: Any) -> Any:
        seen.append(x)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        sg.grad(refuses)(X)
    assert seen == []


def test_variables_of_closures_are_as_before_a_derivative() -> None:
    calls, last = 0, None

    def loss(x: Any) -> Any:
        nonlocal calls, last
        calls, last = calls + 1, x
        return np.sum(x * x) * calls

    for _ in range(2):
        np.testing.assert_array_equal(sg.grad(loss)(X), 2 * X)
        assert calls == 0 and last is None


def test_objects_given_as_arguments_are_as_before_a_derivative() -> None:
    class Run:
        def __init__(self) -> None:
            self.steps: list[Any] = []
            self.count = 0

    def loss(x: Any, run: Any) -> Any:
        run.count += 1
        run.steps.append(x)
        return np.sum(x * x)

    run = Run()
    np.testing.assert_array_equal(sg.grad(loss)(X, run), 2 * X)
    assert vars(run) == {"steps": [], "count": 0}


def test_a_counter_that_a_branch_changes_is_no_sum_of_both() -> None:
    """What a block has changed is put back item by item: a Counter's update adds."""

    def f(x: Any) -> Any:
        count = Counter(a=1)
        if x > 0:
            count["a"] += 2
        else:
            count["b"] += 5
        return x * count["a"] + count["b"]

    for x in (2.0, -2.0):
        assert sg.jit(f)(x) == f(x)
        assert sg.grad(f)(x) == (3.0 if x > 0 else 1.0)
