"""Anomaly detection: what it finds, and how it names the forward line."""

from __future__ import annotations

import pytest

import srcgrad.torch as torch
from tests.torch import sessions

SESSIONS: dict[str, str] = {
    "nan": """
x = torch.tensor([-1., 4.], requires_grad=True)
print(torch.is_anomaly_enabled())
with torch.autograd.set_detect_anomaly(True):
    print(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
    y = torch.sqrt(x).sum()
    print(raised(lambda: y.backward()))
print(torch.is_anomaly_enabled())
with torch.autograd.set_detect_anomaly(True, check_nan=False):
    print(torch.is_anomaly_check_nan_enabled())
    torch.sqrt(x).sum().backward()
print(x.grad)
z = torch.tensor([0., 1.], requires_grad=True)
with torch.autograd.set_detect_anomaly(True):
    a = z * 0
    b = a / a.detach()
    print(raised(lambda: b.sum().backward()))
""",
    "warnings": """
def run():
    x = torch.tensor([-1., 4.], requires_grad=True)
    with torch.autograd.detect_anomaly():
        y = torch.sqrt(x).sum()
        print(raised(lambda: y.backward()))
for text in warned(run):
    print(text.split(' Traceback')[0])
class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1
    @staticmethod
    def backward(ctx, g):
        raise ValueError('mine')
def run():
    x = torch.tensor([-1., 4.], requires_grad=True)
    y = Bad.apply(x)
    with torch.autograd.set_detect_anomaly(True):
        print(raised(lambda: y.sum().backward()))
for text in warned(run):
    print(text)
""",
    "set for good": """
block = torch.autograd.set_detect_anomaly(True)
print(torch.is_anomaly_enabled())
torch.autograd.set_detect_anomaly(False)
print(torch.is_anomaly_enabled())
""",
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_prints_what_pytorch_prints(name: str) -> None:
    assert sessions.printed(SESSIONS[name], torch) == sessions.recorded("anomaly")[name]
