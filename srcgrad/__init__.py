"""srcgrad differentiates Python functions written in plain NumPy.

>>> import numpy as np, srcgrad as sg
>>> sg.grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
array([2., 4.])
"""

from __future__ import annotations

from srcgrad import errors
from srcgrad.api import (
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    linearize,
    value_and_grad,
    vjp,
    vmap,
)
from srcgrad.cache import clear_caches
from srcgrad.compiler import set_backend, use_backend
from srcgrad.custom import checkpoint, custom_jvp, custom_vjp, stop_gradient
from srcgrad.errors import SrcgradError
from srcgrad.tracing.pytree import register_pytree_node, register_pytree_node_class
from srcgrad.transformed import RetraceWarning

__version__ = "0.1.0"

__all__ = [
    "RetraceWarning",
    "SrcgradError",
    "checkpoint",
    "clear_caches",
    "custom_jvp",
    "custom_vjp",
    "errors",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linearize",
    "register_pytree_node",
    "register_pytree_node_class",
    "set_backend",
    "stop_gradient",
    "use_backend",
    "value_and_grad",
    "vjp",
    "vmap",
]
