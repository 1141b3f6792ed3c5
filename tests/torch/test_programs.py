"""A graph whose structure was met before runs as one program: with the same gradients, and for no other graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import srcgrad.torch as torch
from srcgrad.torch import programs

RUNS = 4


@pytest.fixture(autouse=True)
def _no_programs() -> Iterator[None]:
    programs.forget()
    yield
    programs.forget()


def compiled() -> int:
    """How many programs there are."""
    return sum(program is not None for program in programs.PROGRAMS.values())


def leaf(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def diamond(x: Any, y: Any) -> Any:
    z = x * y
    return (z * z + z.sin() * x).sum()


def parts(x: Any, y: Any) -> Any:
    """Two results of one node, and both are used."""
    first, second = (x * y).split([1, 2])
    return first.exp().sum() + (second**2).sum() * y[0]


def one_part(x: Any, y: Any) -> Any:
    _, second = (x * y).split([1, 2])
    return (second**3).sum()


def extremes(x: Any, y: Any) -> Any:
    values, _ = torch.stack([x, y * 2]).max(0)
    return (values * x).sum()


def changed(x: Any, y: Any) -> Any:
    z = x * 2
    z[1:] *= y[:2]
    return (z * y).sum()


def same_twice(x: Any, y: Any) -> Any:
    return x.dot(x) + (x + y).sum()


@pytest.mark.parametrize("function", [diamond, parts, one_part, extremes, changed, same_twice])
def test_each_run_gives_the_same_gradients(function: Callable[[Any, Any], Any]) -> None:
    found = []
    for _ in range(RUNS):
        x, y = leaf(1.0, -2.0, 0.5), leaf(0.3, 2.0, 1.5)
        function(x, y).backward()
        found.append((x.grad.tolist(), y.grad.tolist()))
    assert compiled() == 1
    for gradients in found[1:]:
        assert gradients[0] == pytest.approx(found[0][0], rel=1e-14)
        assert gradients[1] == pytest.approx(found[0][1], rel=1e-14)


@pytest.mark.parametrize("function", [diamond, parts, extremes, changed])
def test_new_values_give_new_gradients(function: Callable[[Any, Any], Any]) -> None:
    for _ in range(RUNS):
        function(leaf(1.0, -2.0, 0.5), leaf(0.3, 2.0, 1.5)).backward()
    x, y = leaf(0.1, 0.2, -0.3), leaf(1.0, 1.1, 0.9)
    function(x, y).backward()
    programs.forget()
    other, another = leaf(0.1, 0.2, -0.3), leaf(1.0, 1.1, 0.9)
    function(other, another).backward()
    assert x.grad.tolist() == pytest.approx(other.grad.tolist(), rel=1e-14)
    assert y.grad.tolist() == pytest.approx(another.grad.tolist(), rel=1e-14)


def test_graphs_that_differ_in_one_edge_are_two() -> None:
    x = leaf(1.0, 2.0, 3.0)
    for which in (0, 1, 2, 0, 1, 2, 0, 1, 2):
        x.grad = None
        (x * 2).split([1, 1, 1])[which].sum().backward()
        assert x.grad.tolist() == [2.0 * (k == which) for k in range(3)]
    assert compiled() == 3


def test_targets_belong_to_the_structure() -> None:
    x, y = leaf(2.0), leaf(3.0)
    for _ in range(RUNS):
        z = x * y
        w = z * z
        assert [g.tolist() for g in torch.autograd.grad(w, (x, z), retain_graph=True)] == [[36.0], [12.0]]
        assert [g.tolist() for g in torch.autograd.grad(w, (z, y))] == [[12.0], [24.0]]


def test_each_of_several_results_has_its_own_gradient() -> None:
    for _ in range(RUNS):
        first, second = (leaf(1.0, 2.0, 3.0) * 2).split([1, 2])
        total = (first * 3).sum() + (second**2).sum()
        assert [g.tolist() for g in torch.autograd.grad(total, (first, second))] == [[3.0], [8.0, 12.0]]


def test_a_hook_on_a_graph_that_was_compiled_runs() -> None:
    calls = []
    for number in range(RUNS + 1):
        x = leaf(2.0)
        y = x * 3
        if number == RUNS:
            y.register_hook(lambda gradient: (calls.append(1), gradient * 10)[1])
        y.exp().log().sum().backward()
    assert calls == [1]
    assert x.grad.tolist() == pytest.approx([30.0])


def test_a_hook_on_a_leaf_of_a_compiled_graph_runs() -> None:
    x = leaf(2.0)
    for _ in range(RUNS):
        x.grad = None
        (x * 3).sum().backward()
    x.register_hook(lambda gradient: gradient * 10)
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [30.0]


def test_a_gradient_that_is_retained_in_a_compiled_graph_is_kept() -> None:
    for number in range(RUNS + 1):
        y = leaf(2.0) * 3
        if number == RUNS:
            y.retain_grad()
        (y * y).sum().backward()
    assert y.grad.tolist() == [12.0]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_anomaly_detection_and_saved_hooks_look_at_each_node() -> None:
    def run() -> Any:
        x = leaf(0.0)
        (x.sqrt() * 0).sum().backward()
        return x.grad

    for _ in range(RUNS):
        assert run().isnan().all()
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="nan"):
        run()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(1) or t, lambda t: t + 1):
        assert run().tolist() != []
    assert kept


def test_leaves_do_not_share_their_gradients() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    cotangent = torch.ones(2, dtype=torch.float64)
    for _ in range(RUNS):
        x.grad = y.grad = None
        (x + y).backward(cotangent)
        x.grad += 5
        assert y.grad.tolist() == [1, 1]
        assert cotangent.tolist() == [1, 1]


def test_a_compiled_backward_frees_the_graph_unless_it_is_retained() -> None:
    x = leaf(2.0)
    for _ in range(RUNS):
        y = (x * x).sum()
        y.backward(retain_graph=True)
        y.backward()
        with pytest.raises(RuntimeError, match="second time"):
            y.backward()


def test_a_value_that_was_changed_is_an_error_in_a_compiled_graph() -> None:
    for number in range(RUNS + 1):
        x = leaf(2.0)
        y = x.exp()
        z = y.sum()
        if number == RUNS:
            y.add_(1)
            with pytest.raises(RuntimeError, match=r"which is output 0 of Exp, is at version 1"):
                z.backward()
        else:
            z.backward()


def test_shapes_and_dtypes_have_programs_of_their_own() -> None:
    for _ in range(3):
        for dtype in (torch.float32, torch.float64):
            for shape in ((2,), (3,), (2, 2)):
                x = torch.ones(shape, dtype=dtype, requires_grad=True)
                (x * x).sum().backward()
                assert x.grad.dtype == dtype
                assert x.grad.shape == torch.Size(shape)
    assert compiled() == 6


def test_no_more_structures_are_remembered_than_said() -> None:
    for n in range(1, programs.REMEMBERED + 10):
        x = torch.ones(n, requires_grad=True)
        (x * 2).sum().backward()
    assert len(programs.PROGRAMS) <= programs.REMEMBERED


def test_the_gradient_of_a_weight_lies_as_the_weight() -> None:
    model = torch.nn.Linear(5, 3)
    for _ in range(RUNS):
        model.weight.grad = None
        model(torch.ones(2, 5)).sum().backward()
    assert model.weight.grad.is_contiguous()
    assert model.weight.grad._data.base is None
