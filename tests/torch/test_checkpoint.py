"""Checkpoints: the same gradients as without, what is run again, and the errors."""

from __future__ import annotations

import pytest

import srcgrad.torch as torch
from tests.torch import sessions

SESSIONS: dict[str, str] = {
    "both forms": """
ck = load('utils.checkpoint')
x = torch.tensor([1., 2.], requires_grad=True)
w = torch.tensor([3., 4.], requires_grad=True)
def part(x, k=1):
    print('run', torch.is_grad_enabled())
    return (x * w).sin() * k
for reentrant in (True, False):
    x.grad = w.grad = None
    y = ck.checkpoint(part, x, use_reentrant=reentrant)
    print(y.requires_grad)
    (y * y).sum().backward()
    print(x.grad, w.grad)
y = ck.checkpoint(part, x, k=2, use_reentrant=False)
print(torch.autograd.grad(y.sum(), x))
print(raised(lambda: ck.checkpoint(part, x, k=2, use_reentrant=True)))
y = ck.checkpoint(part, x, use_reentrant=True)
print(raised(lambda: torch.autograd.grad(y.sum(), x)))
""",
    "several results and other arguments": """
ck = load('utils.checkpoint')
x = torch.tensor([1., 2.], requires_grad=True)
def part(x, scale, flag):
    return x * scale, (x**2).sum() if flag else None, 3
for reentrant in (True, False):
    x.grad = None
    a, b, c = ck.checkpoint(part, x, 2.0, True, use_reentrant=reentrant)
    print(c)
    (a.sum() + b).backward()
    print(x.grad)
""",
    "higher order": """
ck = load('utils.checkpoint')
x = torch.tensor([1., 2.], requires_grad=True)
y = ck.checkpoint(lambda x: (x**3).sum(), x, use_reentrant=False)
g, = torch.autograd.grad(y, x, create_graph=True)
print(g)
print(torch.autograd.grad(g.sum(), x))
""",
    "random numbers": """
ck = load('utils.checkpoint')
torch.manual_seed(0)
x = torch.ones(100, requires_grad=True)
for reentrant in (True, False):
    x.grad = None
    y = ck.checkpoint(lambda x: x * torch.rand(100), x, use_reentrant=reentrant)
    y.sum().backward()
    print(torch.equal(x.grad, y.detach()))
""",
    "in sequence": """
ck = load('utils.checkpoint')
x = torch.tensor([1., 2.], requires_grad=True)
chain = [lambda x: x * 2, torch.sin, lambda x: x**2, torch.exp]
for reentrant in (True, False):
    x.grad = None
    ck.checkpoint_sequential(chain, 2, x, use_reentrant=reentrant).sum().backward()
    print(x.grad)
print(warned(lambda: ck.checkpoint(torch.sin, x)) != [])
print(warned(lambda: ck.checkpoint(torch.sin, x.detach(), use_reentrant=True)))
""",
    "without grad, nested, and unequal": """
ck = load('utils.checkpoint')
x = torch.tensor([1., 2.], requires_grad=True)
with torch.no_grad():
    print(ck.checkpoint(torch.sin, x, use_reentrant=False))
inner = lambda x: ck.checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False) * x
y = ck.checkpoint(inner, x, use_reentrant=False)
y.sum().backward()
print(x.grad)
calls = [0]
def changing(x):
    calls[0] += 1
    return x.sin() if calls[0] == 1 else x.sin().exp()
y = ck.checkpoint(changing, x, use_reentrant=False)
print(raised(lambda: y.sum().backward()).split(':')[0])
y = ck.checkpoint(lambda x: x.sin(), x, use_reentrant=False)
y.sum().backward(retain_graph=True)
y.sum().backward()
print(x.grad)
""",
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_prints_what_pytorch_prints(name: str) -> None:
    assert sessions.printed(SESSIONS[name], torch) == sessions.recorded("checkpoint")[name]
