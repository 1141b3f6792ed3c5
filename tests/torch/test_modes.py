"""Modes as contexts and decorators, and what they do to results."""

from __future__ import annotations

import pytest

import srcgrad.torch as torch
from tests.torch import sessions

SESSIONS: dict[str, str] = {
    "contexts": """
x = torch.tensor([1.], requires_grad=True)
with torch.no_grad():
    y = x * 2
    print(torch.is_grad_enabled(), y.requires_grad)
    with torch.enable_grad():
        print((x * 2).requires_grad)
    with torch.set_grad_enabled(True):
        print((x * 2).requires_grad)
    print(torch.is_grad_enabled())
@torch.no_grad()
def f(x):
    return x * 2
@torch.no_grad
def g(x):
    return x * 2
@torch.enable_grad()
def h(x):
    return x * 2
with torch.no_grad():
    print(f(x).requires_grad, g(x).requires_grad, h(x).requires_grad)
torch.set_grad_enabled(False)
print((x * 2).requires_grad)
torch.set_grad_enabled(True)
@torch.set_grad_enabled(False)
def k(x):
    return (x * 2).requires_grad
print(k(x), torch.is_grad_enabled())
@torch.no_grad()
def gen():
    yield torch.is_grad_enabled()
    yield torch.is_grad_enabled()
for inside in gen():
    print(inside, torch.is_grad_enabled())
try:
    with torch.no_grad():
        raise ValueError
except ValueError:
    print(torch.is_grad_enabled())
""",
    "inference": """
x = torch.tensor([1., 2.], requires_grad=True)
with torch.inference_mode():
    y = x * 2
    print(y.is_inference(), y.requires_grad, torch.is_inference_mode_enabled(), torch.is_grad_enabled())
print(torch.is_inference_mode_enabled())
print(raised(lambda: y.requires_grad_()))
print(raised(lambda: x * y))
print((y + 1).is_inference(), y.clone().is_inference())
with torch.inference_mode(False):
    print(torch.is_grad_enabled())
@torch.inference_mode()
def f(x):
    return x * 3
print(f(x).is_inference())
""",
    "in-place changes of leaves": """
x = torch.tensor([1., 2.], requires_grad=True)
print(raised(lambda: x.mul_(2)))
with torch.no_grad():
    x.mul_(2)
print(x, x._version)
x.data.mul_(2)
print(x, x._version)
y = x.detach()
y.zero_()
print(x, x._version)
""",
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_prints_what_pytorch_prints(name: str) -> None:
    assert sessions.printed(SESSIONS[name], torch) == sessions.recorded("modes")[name]
