"""Backward over the recorded graph: accumulation, targets, errors, order, large graphs, and what is left alive."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import srcgrad.torch as torch
from tests.torch import sessions

SESSIONS: dict[str, str] = {
    "accumulation": """
x = torch.tensor([1., 2.], requires_grad=True)
for _ in range(3):
    (x**2).sum().backward()
    print(x.grad)
g = x.grad
x.grad = None
(x * 3).sum().backward()
print(x.grad, g is x.grad)
g = x.grad
(x * 3).sum().backward()
print(x.grad is g)
""",
    "a leaf's gradient is its own array": """
x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
for _ in range(3):
    x.grad = y.grad = None
    g = torch.ones(2)
    (x + y).backward(g)
    g.zero_()
    x.grad.add_(5)
    print(x.grad, y.grad, g)
x.grad = None
g = torch.ones(2)
x.backward(g)
g.zero_()
print(x.grad)
""",
    "roots": """
x = torch.tensor([1., 2.], requires_grad=True)
y, z = x * 2, x * 3
torch.autograd.backward([y.sum(), z], [None, torch.tensor([1., 10.])])
print(x.grad)
print(raised(lambda: torch.autograd.backward([(x * 2).sum(), torch.ones(1)])))
print(raised(lambda: (x * 2).backward()))
print(raised(lambda: torch.ones(1).backward()))
print(raised(lambda: torch.autograd.grad(x * 2, x, torch.ones(3))))
print(raised(lambda: torch.autograd.grad([x * 2, x * 3], x, [torch.ones(2)])))
print(torch.autograd.grad([x * 2], [x], [torch.ones(2), torch.ones(2)]))
print(raised(lambda: torch.autograd.grad(x * 2, x, torch.ones(2, dtype=torch.complex64))))
print(torch.autograd.grad(x * 2, x, torch.ones(2, dtype=torch.float64)))
print(raised(lambda: (x * 2).backward(3)))
""",
    "targets": """
x = torch.tensor([1., 2.], requires_grad=True)
w = torch.ones(2, requires_grad=True)
print(raised(lambda: torch.autograd.grad((x * 2).sum(), torch.ones(1))))
print(raised(lambda: torch.autograd.grad((x * 2).sum(), w)))
print(raised(lambda: torch.autograd.grad((x * 2).sum(), [x, w])))
print(torch.autograd.grad((x * 2).sum(), [w, x], allow_unused=True))
print(torch.autograd.grad((x * 2).sum(), [w, x], materialize_grads=True))
print(raised(lambda: torch.autograd.grad((x * 2).sum(), w, allow_unused=False, materialize_grads=True)))
h = x * 2
print(torch.autograd.grad((h * w).sum(), [h, x, w], retain_graph=True))
print(torch.autograd.grad(h.sum(), [h, x, x]))
print(x.grad, w.grad)
print(warned(lambda: torch.autograd.grad((x * 2).sum(), x, only_inputs=False)))
""",
    "backward to some inputs": """
x, w = torch.tensor([1., 2.], requires_grad=True), torch.tensor([3., 4.], requires_grad=True)
(x * w).sum().backward(inputs=[x])
print(x.grad, w.grad)
h = x * w
(h * h).sum().backward(inputs=[h, w])
print(h.grad, w.grad, x.grad)
print(raised(lambda: (x * w).sum().backward(inputs=[])))
print(raised(lambda: (x * w).sum().backward(inputs=[torch.ones(1)])))
(x * w).sum().backward(inputs=w)
print(w.grad)
""",
    "twice": """
x = torch.tensor([1., 2.], requires_grad=True)
y = x.exp().sum()
y.backward(retain_graph=True)
y.backward()
print(x.grad)
print(raised(lambda: y.backward()))
y = (x + 1).sum()
y.backward()
y.backward()
print(x.grad)
h = x.exp()
a, b = h.sum(), (h * 2).sum()
a.backward()
print(raised(lambda: b.backward()))
""",
    "create_graph": """
x = torch.tensor([1., 2.], requires_grad=True)
y = (x**3).sum()
y.backward(create_graph=True)
print(x.grad)
g = x.grad
x.grad = None
g.sum().backward()
print(x.grad)
x.grad = None
(x**2).sum().backward(create_graph=True)
(x**2).sum().backward(create_graph=True)
print(x.grad)
z = torch.tensor(2., requires_grad=True)
d = z**4
for _ in range(4):
    d, = torch.autograd.grad(d, z, create_graph=True)
    print(d.item())
""",
    "batched cotangents": """
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x**2
print(torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True))
z = (x * x).sum()
print(torch.autograd.grad(z, x, torch.tensor([1., 2.]), is_grads_batched=True))
print(raised(lambda: torch.autograd.grad(x * 1, x, torch.eye(2), is_grads_batched=True)))
""",
    "walking the graph": """
x = torch.tensor([1., 2.], requires_grad=True)
y = x.sin() * x + 1
node = y.grad_fn
while node is not None:
    print(node.name(), type(node).__name__, len(node.next_functions))
    node = node.next_functions[0][0] if node.next_functions else None
print(y.grad_fn.next_functions[0][0].next_functions[1][0].variable is x)
print(y.grad_fn.next_functions)
y.grad_fn.metadata['k'] = 1
print(y.grad_fn.metadata, x.grad_fn, x.is_leaf, y.is_leaf, y.output_nr)
""",
    "saved values by name": """
x = torch.tensor([1., 2.], requires_grad=True)
y = x.exp()
print(y.grad_fn._saved_result)
z = x.sin()
print(z.grad_fn._saved_self)
z.sum().backward()
print(raised(lambda: z.grad_fn._saved_self))
""",
    "a non-leaf's grad": """
x = torch.tensor([1., 2.], requires_grad=True)
y = x * 2
print(warned(lambda: y.grad))
y.retain_grad()
print(warned(lambda: y.grad))
(y * y).sum().backward()
print(y.grad, x.grad)
print(raised(lambda: torch.ones(2).retain_grad()))
x.retain_grad()
""",
    "assigning grad": """
x = torch.tensor([1., 2.], requires_grad=True)
x.grad = torch.ones(2)
(x * 2).sum().backward()
print(x.grad)
def assign(value):
    x.grad = value
print(raised(lambda: assign(torch.ones(3))))
print(raised(lambda: assign(x)))
print(raised(lambda: assign(3)))
""",
    "complex": """
z = torch.tensor([1. + 2.j, 3. - 1.j], requires_grad=True)
(z * z.conj()).real.sum().backward()
print(z.grad)
z.grad = None
w = z * z
print(raised(lambda: w.sum().backward()))
w.backward(torch.tensor([1. + 0.j, 0. + 1.j]))
print(z.grad)
x = torch.tensor([1., 2.], requires_grad=True)
(x * z.detach()).abs().sum().backward()
print(x.grad)
""",
    "no graph": """
x = torch.tensor([1., 2.], requires_grad=True)
with torch.no_grad():
    y = x * 2
print(y.requires_grad, raised(lambda: y.sum().backward()))
with torch.no_grad():
    print(raised(lambda: torch.autograd.grad((x * 2).sum(), x)))
y = (x * 2).sum()
with torch.no_grad():
    y.backward()
print(x.grad)
print((x.detach() * 2).requires_grad, x.detach().requires_grad)
""",
    "gradient edges": """
graph = torch.autograd.graph
x = torch.tensor([1., 2.], requires_grad=True)
z = (x * x).sum()
a, b = graph.get_gradient_edge(x), graph.get_gradient_edge(z)
print(type(a).__name__, a.node.name(), a.output_nr, b.node.name())
print(torch.autograd.grad(z, [a], retain_graph=True))
print(torch.autograd.grad(b, x, retain_graph=True))
torch.autograd.backward(b)
print(x.grad)
print(raised(lambda: graph.get_gradient_edge(torch.ones(1))))
print(isinstance(z.grad_fn, graph.Node))
""",
    "unused results of an operation": """
x = torch.tensor([3., 1., 2.], requires_grad=True)
values, places = x.sort()
print(values.requires_grad, places.requires_grad)
values[0].backward()
print(x.grad)
a, b = torch.split(x * 2, [1, 2])
b.sum().backward()
print(x.grad)
""",
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_prints_what_pytorch_prints(name: str) -> None:
    torch.engine.WARNED[0] = True
    assert sessions.printed(SESSIONS[name], torch) == sessions.recorded("engine")[name]


def chain(x: Any, count: int) -> Any:
    for _ in range(count):
        x = x + 1.0
    return x


@pytest.mark.parametrize("hooked", [False, True])
def test_a_chain_of_1e5_nodes_runs_and_is_deleted(hooked: bool) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = chain(x * 2, 100_000)
    if hooked:
        y.register_hook(lambda g: g * 2)
    node = weakref.ref(y.grad_fn)
    limit = sys.getrecursionlimit()
    y.sum().backward()
    assert x.grad.tolist() == ([4.0, 4.0] if hooked else [2.0, 2.0])
    del y
    assert node() is None
    assert sys.getrecursionlimit() == limit


def test_a_graph_that_is_1e5_wide_runs() -> None:
    x = torch.tensor(1.0, requires_grad=True)
    total = x * 0
    for _ in range(50_000):
        total = total + x * 2
    total.backward()
    assert x.grad.item() == 100_000.0


def test_a_deep_graph_of_functions_runs_and_is_deleted() -> None:
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = Same.apply(y)
    y.backward(retain_graph=True)
    assert x.grad.item() == 1.0
    del y


@pytest.mark.parametrize("how", ["backward", "grad", "create_graph", "hook", "retain", "unused"])
def test_nothing_keeps_a_dead_graph_alive(how: str) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        y = (x * x).exp().sum()
        nodes = [weakref.ref(y.grad_fn), weakref.ref(y.grad_fn.next_functions[0][0])]
        if how == "backward":
            y.backward()
        elif how == "grad":
            torch.autograd.grad(y, x)
        elif how == "create_graph":
            (g,) = torch.autograd.grad(y, x, create_graph=True)
            torch.autograd.grad(g.sum(), x)
            del g
        elif how == "hook":
            y.register_hook(lambda g: g * 2)
            y.backward()
        elif how == "retain":
            y.retain_grad()
            y.backward(retain_graph=True)
        del y
        assert all(node() is None for node in nodes)
    finally:
        gc.enable()


def test_what_backward_frees_is_freed_at_once() -> None:
    x = torch.ones(3, requires_grad=True)
    h = (x * 2).exp()
    saved = weakref.ref(h._data)
    y = h.sum() * 1.0
    del h
    y.backward()
    assert saved() is None


def test_a_structure_met_again_is_one_program_with_the_same_gradients() -> None:
    torch.engine.programs.forget()
    found = []
    for k in range(4):
        x = torch.tensor([1.0 + k, 2.0], requires_grad=True)
        w = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        ((w @ x).sin() * x).sum().backward()
        again = torch.tensor([1.0 + k, 2.0], requires_grad=True)
        y = ((w.detach() @ again).sin() * again).sum()
        y.register_hook(lambda g: None)
        y.backward()
        np.testing.assert_allclose(x.grad.numpy(), again.grad.numpy(), rtol=1e-6)
        found.append(w.grad.numpy())
    assert not np.array_equal(found[0], found[1])


def test_the_cycle_warning_is_given_once() -> None:
    torch.engine.WARNED[0] = False
    x = torch.tensor(1.0, requires_grad=True)
    with pytest.warns(UserWarning, match="create_graph=True will create a reference cycle"):
        (x * x).backward(create_graph=True)
    (x * x).backward(create_graph=True)
    x.grad = None


def test_gradients_in_no_inputs_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `grad\(\)` cannot be empty"):
        torch.autograd.grad(torch.tensor(1.0, requires_grad=True) * 2, [])


@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_gradient_with_a_graph_is_added_to_in_its_memory() -> None:
    """As PyTorch does: who holds it sees the sum, and it stays where it is in its graph."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    (first**2).sum().backward()
    assert x.grad is first and first.requires_grad
    np.testing.assert_allclose(first.detach().numpy(), [39.0, 300.0])
    x.grad = None
