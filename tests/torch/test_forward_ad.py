"""Forward mode with dual tensors: tangents through every kind of operation, errors, agreement with reverse mode."""

from __future__ import annotations

import pytest

import srcgrad.torch as torch
from tests.torch import agreement, facts, sessions

SESSIONS: dict[str, str] = {
    "the basics": """
fwAD = load('autograd.forward_ad')
x, v = torch.tensor([1., 2.]), torch.tensor([1., 10.])
with fwAD.dual_level():
    d = fwAD.make_dual(x, v)
    print(fwAD.unpack_dual(d))
    y = d.sin() * d + 2
    print(fwAD.unpack_dual(y).tangent)
    print(fwAD.unpack_dual(x).tangent, fwAD.unpack_dual(d * 0 + x).tangent)
    print(fwAD.unpack_dual((d * d).sum()).tangent, fwAD.unpack_dual(d @ d).tangent)
    print(d, d * 2)
    p, t = fwAD.unpack_dual(d.detach())
    print(t)
    print(fwAD.unpack_dual(d > 1).tangent, fwAD.unpack_dual(torch.cat([d, x])).tangent)
    z = d * 2
print(fwAD.unpack_dual(z))
""",
    "errors": """
fwAD = load('autograd.forward_ad')
x = torch.tensor([1., 2.])
print(raised(lambda: fwAD.make_dual(x, x)))
print(raised(lambda: fwAD.exit_dual_level()))
with fwAD.dual_level():
    print(raised(lambda: fwAD.enter_dual_level()))
    print(raised(lambda: fwAD.make_dual(x, torch.ones(3))))
    print(raised(lambda: fwAD.make_dual(torch.tensor([1, 2]), x)))
    print(raised(lambda: fwAD.make_dual(x, torch.tensor([1, 2]))))
    print(raised(lambda: fwAD.make_dual(x, x.double())).split(',')[0])
print(fwAD.enter_dual_level())
fwAD.exit_dual_level()
print(fwAD.unpack_dual(x))
""",
    "views and in-place changes": """
fwAD = load('autograd.forward_ad')
x, v = torch.tensor([1., 2., 3.]), torch.tensor([1., 10., 100.])
t = lambda z: fwAD.unpack_dual(z).tangent
with fwAD.dual_level():
    d = fwAD.make_dual(x.clone(), v.clone())
    w = d[1:]
    print(t(w))
    w.mul_(2)
    print(t(w), t(d))
    d.mul_(d)
    print(t(w), t(d))
    d[0] = 7.
    print(t(d), d.detach())
    a = torch.zeros(3)
    a[:2] = d[1:]
    print(t(a))
    b = torch.ones(3)
    b.add_(d)
    print(t(b), t(d.view(3, 1).expand(3, 2)), t(d.reshape(1, 3).T))
    c = torch.zeros(2, 2)
    c[0].copy_(d[:2])
    print(t(c))
""",
    "over reverse mode, and reverse mode over it": """
fwAD = load('autograd.forward_ad')
x, v = torch.tensor([1., 2.]), torch.tensor([1., 10.])
f = lambda x: (x**3).sum() * x[0]
with fwAD.dual_level():
    d = fwAD.make_dual(x.clone().requires_grad_(), v)
    g, = torch.autograd.grad(f(d), d, create_graph=True)
    print(fwAD.unpack_dual(g).primal.detach(), fwAD.unpack_dual(g).tangent.detach())
leaf = x.clone().requires_grad_()
with fwAD.dual_level():
    y = f(fwAD.make_dual(leaf, v))
    tangent = fwAD.unpack_dual(y).tangent
    print(tangent.requires_grad)
    print(torch.autograd.grad(tangent, leaf)[0].detach())
tv = v.clone().requires_grad_()
with fwAD.dual_level():
    tangent = fwAD.unpack_dual(f(fwAD.make_dual(x, tv))).tangent
    print(torch.autograd.grad(tangent, tv)[0].detach())
""",
    "functions of the user's own": """
fwAD = load('autograd.forward_ad')
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_forward(x)
        ctx.n = n
        return x**3, x + 1.
    @staticmethod
    def jvp(ctx, t, n):
        x, = ctx.saved_tensors
        print(t, n, ctx.n)
        return 3 * x**2 * t, t * 0 + 4
x = torch.tensor([1., 2.])
with fwAD.dual_level():
    a, b = Cube.apply(fwAD.make_dual(x, torch.ones(2)), 5)
    print(fwAD.unpack_dual(a).tangent, fwAD.unpack_dual(b).tangent)
class No(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
with fwAD.dual_level():
    print(raised(lambda: No.apply(fwAD.make_dual(x, torch.ones(2)))))
""",
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_prints_what_pytorch_prints(name: str) -> None:
    assert sessions.printed(SESSIONS[name], torch) == sessions.recorded("forward_ad")[name]


NO_TANGENT = {"mean of nothing", "std of nothing", "var of nothing", "std_mean of nothing", "var_mean of nothing"}
NO_TANGENT |= {"mean of nothing at all", "mse_loss of nothing"}
"""Reverse mode has no element to give a gradient to; forward mode has the tangent 0/0 of an undefined value."""
CLAMPED = {"gaussian_nll_loss of small variance"}
"""The gradient passes a clamp that holds back the value, in reverse mode alone."""


@pytest.mark.parametrize("group", facts.GROUPS, ids="-".join)
def test_tangents_agree_with_gradients_for_every_operation(group: tuple[str, str]) -> None:
    found = {
        problem.case.name: agreement.forward_difference(problem)
        for problem in agreement.problems(group)
        if problem.case.name not in NO_TANGENT | CLAMPED
    }
    assert not {name: text for name, text in found.items() if text}
