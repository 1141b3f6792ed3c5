"""autograd.functional: products, Jacobians and Hessians, strict mode, the graph of the results, errors."""

from __future__ import annotations

import pytest

import srcgrad.torch as torch
from tests.torch import sessions

SESSIONS: dict[str, str] = {
    "jacobian": """
F = torch.autograd.functional
f = F.jacobian
x, y, v = torch.tensor([1., 2.]), torch.tensor([3., 4.]), torch.ones(2)
g = lambda x: x**3
two = lambda x, y: (x**2 * y, y.sum())
const = lambda x: torch.ones(2)
line = lambda x: x * 2
a = ()
print(f(g, x, *a))
print(f(g, x, *a, create_graph=True))
print(f(two, (x, y), *()))
print(f(const, x, *a))
print(raised(lambda: f(const, x, *a, strict=True)))
print(f(line, x, *a), raised(lambda: f(line, x, *a, strict=True, create_graph=True)))
print(raised(lambda: f(lambda x, y: g(x), (x, y), *(), strict=True)))
print(raised(lambda: f(lambda x: 3, x, *a)))
print(raised(lambda: f(g, 3, *a)))
print(raised(lambda: f(g, [x], *a)))
print(raised(lambda: f(g, (x, 3), *a)))
r = x.clone().requires_grad_()
print(f(g, r, *a))
out = f(g, r, *a, create_graph=True)
out = out[1] if isinstance(out, tuple) else out
print(torch.autograd.grad(out.sum(), r))
print(raised(lambda: f(line, x, strategy='forward-mode')).split(' is')[0])
print(raised(lambda: f(line, x, strategy='forward-mode', vectorize=True, create_graph=True)))
print(raised(lambda: f(line, x, strict=True, vectorize=True)))
print(f(g, x, strategy='forward-mode', vectorize=True))
print(f(lambda x: x.sum(), torch.ones(2, 3)).shape, f(lambda x: x * x, torch.ones(2, 3)).shape)
""",
    "vjp": """
F = torch.autograd.functional
f = F.vjp
x, y, v = torch.tensor([1., 2.]), torch.tensor([3., 4.]), torch.ones(2)
g = lambda x: x**3
two = lambda x, y: (x**2 * y, y.sum())
const = lambda x: torch.ones(2)
line = lambda x: x * 2
a = (v,)
print(f(g, x, *a))
print(f(g, x, *a, create_graph=True))
print(f(two, (x, y), *((v, torch.tensor(1.)),)))
print(f(const, x, *a))
print(raised(lambda: f(const, x, *a, strict=True)))
print(f(line, x, *a), raised(lambda: f(line, x, *a, strict=True, create_graph=True)))
print(raised(lambda: f(lambda x, y: g(x), (x, y), *(v,), strict=True)))
print(raised(lambda: f(lambda x: 3, x, *a)))
print(raised(lambda: f(g, 3, *a)))
print(raised(lambda: f(g, [x], *a)))
print(raised(lambda: f(g, (x, 3), *a)))
r = x.clone().requires_grad_()
print(f(g, r, *a))
out = f(g, r, *a, create_graph=True)
out = out[1] if isinstance(out, tuple) else out
print(torch.autograd.grad(out.sum(), r))
print(raised(lambda: f(g, x)))
print(f(lambda x: x.sum(), x))
print(raised(lambda: f(g, x, torch.ones(3))))
print(raised(lambda: f(g, x, (v, v))))
""",
    "jvp": """
F = torch.autograd.functional
f = F.jvp
x, y, v = torch.tensor([1., 2.]), torch.tensor([3., 4.]), torch.ones(2)
g = lambda x: x**3
two = lambda x, y: (x**2 * y, y.sum())
const = lambda x: torch.ones(2)
line = lambda x: x * 2
a = (v,)
print(f(g, x, *a))
print(f(g, x, *a, create_graph=True))
print(f(two, (x, y), *((v, v),)))
print(f(const, x, *a))
print(raised(lambda: f(const, x, *a, strict=True)))
print(f(line, x, *a), raised(lambda: f(line, x, *a, strict=True, create_graph=True)))
print(raised(lambda: f(lambda x, y: g(x), (x, y), *((v, v),), strict=True)))
print(raised(lambda: f(lambda x: 3, x, *a)))
print(raised(lambda: f(g, 3, *a)))
print(raised(lambda: f(g, [x], *a)))
print(raised(lambda: f(g, (x, 3), *a)))
r = x.clone().requires_grad_()
print(f(g, r, *a))
out = f(g, r, *a, create_graph=True)
out = out[1] if isinstance(out, tuple) else out
print(torch.autograd.grad(out.sum(), r))
print(raised(lambda: f(g, x)))
print(f(lambda x: x * 2, torch.tensor(1.)))
print(raised(lambda: f(g, x, torch.ones(3))))
print(raised(lambda: f(two, (x, y), (v,))))
""",
    "hessian": """
F = torch.autograd.functional
f = F.hessian
x, y, v = torch.tensor([1., 2.]), torch.tensor([3., 4.]), torch.ones(2)
g = lambda x: (x**3).sum()
two = lambda x, y: (x**2 * y).sum()
const = lambda x: torch.ones(())
line = lambda x: (x * 2).sum()
a = ()
print(f(g, x, *a))
print(f(g, x, *a, create_graph=True))
print(f(two, (x, y), *()))
print(f(const, x, *a))
print(raised(lambda: f(const, x, *a, strict=True)))
print(f(line, x, *a), raised(lambda: f(line, x, *a, strict=True, create_graph=True)))
print(raised(lambda: f(lambda x, y: g(x), (x, y), *(), strict=True)))
print(raised(lambda: f(lambda x: 3, x, *a)))
print(raised(lambda: f(g, 3, *a)))
print(raised(lambda: f(g, [x], *a)))
print(raised(lambda: f(g, (x, 3), *a)))
r = x.clone().requires_grad_()
print(f(g, r, *a))
out = f(g, r, *a, create_graph=True)
out = out[1] if isinstance(out, tuple) else out
print(torch.autograd.grad(out.sum(), r))
print(raised(lambda: f(lambda x: x * 2, x)))
print(f(g, x, outer_jacobian_strategy='forward-mode', vectorize=True).detach())
""",
    "vhp": """
F = torch.autograd.functional
f = F.vhp
x, y, v = torch.tensor([1., 2.]), torch.tensor([3., 4.]), torch.ones(2)
g = lambda x: (x**3).sum()
two = lambda x, y: (x**2 * y).sum()
const = lambda x: torch.ones(())
line = lambda x: (x * 2).sum()
a = (v,)
print(f(g, x, *a))
print(f(g, x, *a, create_graph=True))
print(f(two, (x, y), *((v, v),)))
print(f(const, x, *a))
print(raised(lambda: f(const, x, *a, strict=True)))
print(f(line, x, *a), raised(lambda: f(line, x, *a, strict=True, create_graph=True)))
print(raised(lambda: f(lambda x, y: g(x), (x, y), *((v, v),), strict=True)))
print(raised(lambda: f(lambda x: 3, x, *a)))
print(raised(lambda: f(g, 3, *a)))
print(raised(lambda: f(g, [x], *a)))
print(raised(lambda: f(g, (x, 3), *a)))
r = x.clone().requires_grad_()
print(f(g, r, *a))
out = f(g, r, *a, create_graph=True)
out = out[1] if isinstance(out, tuple) else out
print(torch.autograd.grad(out.sum(), r))
print(raised(lambda: f(lambda x: x * 2, x, v)))
print(raised(lambda: f(g, x)))
""",
    "hvp": """
F = torch.autograd.functional
f = F.hvp
x, y, v = torch.tensor([1., 2.]), torch.tensor([3., 4.]), torch.ones(2)
g = lambda x: (x**3).sum()
two = lambda x, y: (x**2 * y).sum()
const = lambda x: torch.ones(())
line = lambda x: (x * 2).sum()
a = (v,)
print(f(g, x, *a))
print(f(g, x, *a, create_graph=True))
print(f(two, (x, y), *((v, v),)))
print(f(const, x, *a))
print(raised(lambda: f(const, x, *a, strict=True)))
print(f(line, x, *a), raised(lambda: f(line, x, *a, strict=True, create_graph=True)))
print(raised(lambda: f(lambda x, y: g(x), (x, y), *((v, v),), strict=True)))
print(raised(lambda: f(lambda x: 3, x, *a)))
print(raised(lambda: f(g, 3, *a)))
print(raised(lambda: f(g, [x], *a)))
print(raised(lambda: f(g, (x, 3), *a)))
r = x.clone().requires_grad_()
print(f(g, r, *a))
out = f(g, r, *a, create_graph=True)
out = out[1] if isinstance(out, tuple) else out
print(torch.autograd.grad(out.sum(), r))
print(raised(lambda: f(lambda x: x * 2, x, v)))
print(raised(lambda: f(g, x, torch.ones(3))))
""",
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_prints_what_pytorch_prints(name: str) -> None:
    assert sessions.printed(SESSIONS[name], torch) == sessions.recorded("functional")[name]


def test_results_of_forward_mode_require_grad_where_an_input_does() -> None:
    functional = torch.autograd.functional
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    forward = {"vectorize": True}
    jacobian = functional.jacobian(lambda x: x**3, x, strategy="forward-mode", **forward)
    hessian = functional.hessian(lambda x: (x**3).sum(), x, outer_jacobian_strategy="forward-mode", **forward)
    assert jacobian.requires_grad and hessian.requires_grad
    (found,) = torch.autograd.grad(jacobian.sum(), x)
    assert found.tolist() == [6.0, 12.0]
    assert not functional.jacobian(lambda x: x**3, x.detach(), strategy="forward-mode", **forward).requires_grad
