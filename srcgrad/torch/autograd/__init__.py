"""`torch.autograd`: gradients of recorded computations, and what helps to write and to check them."""

from __future__ import annotations

from srcgrad.torch.autograd import forward_ad, functional, graph, profiler
from srcgrad.torch.autograd.anomaly_mode import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from srcgrad.torch.autograd.function import Function, FunctionCtx, once_differentiable
from srcgrad.torch.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from srcgrad.torch.engine import backward, grad
from srcgrad.torch.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from srcgrad.torch.tensor import Tensor as Variable

__all__ = [
    "Function",
    "FunctionCtx",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "no_grad",
    "once_differentiable",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
]
