"""gradcheck and gradgradcheck: right functions pass, wrong ones fail with both Jacobians."""

from __future__ import annotations

import pytest

import srcgrad.torch as torch
from tests.torch import sessions

SESSIONS: dict[str, str] = {
    "right": """
from_ = torch.autograd
x = torch.tensor([1., 2.], dtype=torch.float64, requires_grad=True)
z = torch.tensor([1. + 2.j], dtype=torch.complex128, requires_grad=True)
print(from_.gradcheck(lambda x: x**2, x), from_.gradcheck(lambda x: (x**2, x.sum()), (x,)))
print(from_.gradcheck(lambda x: x.sin() * x, x, fast_mode=True))
print(from_.gradcheck(lambda x, y: x @ y, (x, x.detach() + 1)))
print(from_.gradcheck(lambda x: x**2, x, check_forward_ad=True, check_grad_dtypes=True))
print(from_.gradcheck(lambda z: z * z, z), from_.gradcheck(lambda z: z.abs(), z))
print(from_.gradgradcheck(lambda x: x**3, x), from_.gradgradcheck(lambda x: x**3, x, check_fwd_over_rev=True))
print(from_.gradgradcheck(lambda x: x.exp(), x, torch.ones(2, dtype=torch.float64, requires_grad=True)))
print(raised(lambda: from_.gradcheck(lambda x: x * 2, torch.ones(2))))
print(warned(lambda: from_.gradcheck(lambda x: x * 2, torch.ones(2, requires_grad=True), eps=1e-2)))
""",
    "wrong": """
class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2
    @staticmethod
    def backward(ctx, g):
        return g * 3 * ctx.saved_tensors[0]
x = torch.tensor([1., 2.], dtype=torch.float64, requires_grad=True)
def text(call):
    try:
        print(call())
    except RuntimeError as error:
        print(type(error).__name__)
        print(getattr(error, 'message', str(error)))
text(lambda: torch.autograd.gradcheck(Bad.apply, x))
print(torch.autograd.gradcheck(Bad.apply, x, raise_exception=False))
print(torch.autograd.gradcheck(Bad.apply, x, raise_exception=False, fast_mode=True))
text(lambda: torch.autograd.gradcheck(lambda x, y: y * Bad.apply(x), (x, x.detach())))
text(lambda: torch.autograd.gradcheck(lambda x: (x, Bad.apply(x.sum())), (x,)))
text(lambda: torch.autograd.gradcheck(lambda x: x.detach(), x))
class Conj(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]
z = torch.tensor([1. + 2.j], dtype=torch.complex128, requires_grad=True)
text(lambda: torch.autograd.gradcheck(Conj.apply, z))
class Forward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**2
    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]
    @staticmethod
    def jvp(ctx, t):
        return t * 5
text(lambda: torch.autograd.gradcheck(Forward.apply, x, check_forward_ad=True))
""",
    "subtly wrong": """
x = torch.tensor([1., 2.], dtype=torch.float64, requires_grad=True)
calls = [0]
class Noise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2
    @staticmethod
    def backward(ctx, g):
        calls[0] += 1
        return g * 2 * ctx.saved_tensors[0] + calls[0] * 1e-9
print(raised(lambda: torch.autograd.gradcheck(Noise.apply, x)))
class Zero(Noise):
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 2 * x if g.abs().sum() > 0 else torch.ones_like(x)
print(raised(lambda: torch.autograd.gradcheck(Zero.apply, x)))
class None_(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
print(raised(lambda: torch.autograd.gradcheck(None_.apply, x)))
print(torch.autograd.gradcheck(None_.apply, x, check_undefined_grad=False))
class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2
    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0].detach()
print(torch.autograd.gradcheck(Once.apply, x), torch.autograd.gradgradcheck(Once.apply, x, raise_exception=False))
""",
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_prints_what_pytorch_prints(name: str) -> None:
    assert sessions.printed(SESSIONS[name], torch) == sessions.recorded("gradcheck")[name]
