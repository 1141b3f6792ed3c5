"""Nothing keeps a dead graph alive, and long graphs take as long as they are."""

from __future__ import annotations

import gc
import sys
import tracemalloc
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad.torch as torch
from srcgrad.torch.operation import SIGNATURES
from srcgrad.torch.programs import PROGRAMS

LONG = 100_000
pytestmark = pytest.mark.usefixtures("older_objects_left_alone")


def chain(x: Any, steps: int) -> Any:
    for _ in range(steps):
        x = x * 0.9999
    return x


@pytest.fixture
def no_collection() -> Iterator[None]:
    """What goes must go with its last reference: there are no cycles."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


# --- memory stays -----------------------------------------------------------------------------------


def perceptron() -> Callable[[], Any]:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.ones(3, 4)

    def step() -> None:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

    return step


def accumulating() -> Callable[[], Any]:
    x = torch.ones(5, requires_grad=True)

    def step() -> None:
        (x.sin() * x).sum().backward()

    return step


def second_order() -> Callable[[], Any]:
    x = torch.ones(5, requires_grad=True)

    def step() -> None:
        (slope,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        torch.autograd.grad(slope.sum(), x)

    return step


def in_place() -> Callable[[], Any]:
    x = torch.ones(5, requires_grad=True)

    def step() -> None:
        y = x * 2
        y[1:3] = y[:2] * 3
        y.mul_(2)
        y.sum().backward()

    return step


def hooked() -> Callable[[], Any]:
    x = torch.ones(5, requires_grad=True)

    def step() -> None:
        y = x * 2
        y.register_hook(lambda gradient: gradient * 2)
        y.retain_grad()
        y.exp().sum().backward()

    return step


def never_run() -> Callable[[], Any]:
    x = torch.ones(5, requires_grad=True)
    return lambda: (x * 2).exp().sum() and None


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradient * 2 + x * 0


def custom() -> Callable[[], Any]:
    x = torch.ones(5, requires_grad=True)

    def step() -> None:
        Doubled.apply(x).sum().backward()

    return step


@pytest.mark.parametrize(
    "make",
    [perceptron, accumulating, second_order, in_place, hooked, never_run, custom],
    ids=lambda make: make.__name__,
)
def test_ten_thousand_steps_leave_nothing_behind(make: Callable[[], Callable[[], Any]]) -> None:
    step = make()
    for _ in range(100):
        step()
    gc.collect()
    known = len(SIGNATURES), len(PROGRAMS)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(1000 if make is not accumulating else 10_000):
            step()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 10_000  # less than the smallest object a step
    assert (len(SIGNATURES), len(PROGRAMS)) == known


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("runs", [True, False])
def test_a_graph_goes_with_its_last_tensor(runs: bool) -> None:
    x = torch.ones(3, requires_grad=True)
    y = (x * 2).exp()
    z = (y * y).sum()
    nodes = [weakref.ref(node) for node in (y.grad_fn, z.grad_fn, y.grad_fn.next_functions[0][0])]
    tensors = [weakref.ref(y), weakref.ref(z)]
    if runs:
        z.backward()
    del y, z
    assert [reference() for reference in [*tensors, *nodes]] == [None] * 5


@pytest.mark.usefixtures("no_collection")
def test_gradients_keep_no_graph() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    node = weakref.ref(y.grad_fn)
    y.sum().backward()
    gradient = x.grad
    del y
    assert node() is None
    assert gradient.grad_fn is None


@pytest.mark.usefixtures("no_collection")
def test_arrays_are_freed_when_the_graph_has_run() -> None:
    x = torch.ones(3, requires_grad=True)
    array = np.ones(3, np.float32)
    count = sys.getrefcount(array)
    factor = torch.from_numpy(array)
    y = x * factor
    assert sys.getrefcount(array) > count + 1  # the graph saves it
    y.sum().backward()
    del factor
    assert sys.getrefcount(array) == count


@pytest.mark.usefixtures("no_collection")
def test_a_view_keeps_its_base_and_no_more() -> None:
    base = torch.zeros(4)
    reference = weakref.ref(base)
    view = base[1:]
    del base
    assert reference() is not None
    del view
    assert reference() is None


def test_a_cycle_through_grad_is_collected() -> None:
    """``create_graph`` makes one, as in PyTorch: the collector breaks it."""
    x = torch.ones(3, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x**3).sum().backward(create_graph=True)
    reference = weakref.ref(x)
    del x
    gc.collect()
    assert reference() is None


# --- long graphs ------------------------------------------------------------------------------------


def calls(action: Callable[[], Any]) -> int:
    """How many functions an action calls."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def test_a_long_chain_runs_and_goes_without_recursion() -> None:
    x = torch.ones(2, requires_grad=True)
    y = chain(x, LONG)
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([0.9999**LONG] * 2, rel=1e-2)
    del y


def test_a_long_chain_that_was_never_run_goes_without_recursion() -> None:
    x = torch.ones(2, requires_grad=True)
    y = chain(x, LONG)
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


def test_a_node_of_a_long_chain_costs_as_much_as_one_of_a_short_chain() -> None:
    def cost(steps: int) -> float:
        x = torch.ones(2, requires_grad=True)

        def run() -> None:
            chain(x, steps).sum().backward()

        return calls(run) / steps

    short, long = cost(3000), cost(30_000)
    assert long < 1.5 * short


def test_a_long_graph_is_differentiated_twice() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x
    for _ in range(3000):
        y = y * 0.999 + 0.0001 * y * y
    (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), x)
    assert torch.isfinite(second).all()


def test_a_wide_graph_adds_up() -> None:
    x = torch.ones(2, requires_grad=True)
    total = x * 0
    for _ in range(20_000):
        total = total + x
    total.sum().backward()
    assert x.grad.tolist() == [20_000.0] * 2
