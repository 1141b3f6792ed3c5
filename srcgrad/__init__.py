"""srcgrad differentiates Python functions written in plain NumPy.

>>> import numpy as np, srcgrad as sg
>>> sg.grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
array([2., 4.])

Names are loaded when they are first used: ``import srcgrad`` itself costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from srcgrad import errors, testing
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
    from srcgrad.building import RetraceWarning
    from srcgrad.cache import clear_caches
    from srcgrad.compiler import set_backend, use_backend
    from srcgrad.custom import checkpoint, custom_jvp, custom_vjp, stop_gradient
    from srcgrad.debugging import debug
    from srcgrad.errors import SrcgradError
    from srcgrad.explaining import explain, source
    from srcgrad.jax_bridge import to_jax
    from srcgrad.jaxprs.convert import from_jax
    from srcgrad.tracing.pytree import register_pytree_node, register_pytree_node_class

__version__ = "0.1.0"

__all__ = [
    "RetraceWarning",
    "SrcgradError",
    "checkpoint",
    "clear_caches",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "errors",
    "explain",
    "from_jax",
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
    "source",
    "stop_gradient",
    "testing",
    "to_jax",
    "use_backend",
    "value_and_grad",
    "vjp",
    "vmap",
]

_HOMES: Final[dict[str, str]] = {
    "RetraceWarning": "building",
    "SrcgradError": "errors",
    "checkpoint": "custom",
    "clear_caches": "cache",
    "custom_jvp": "custom",
    "custom_vjp": "custom",
    "debug": "debugging",
    "explain": "explaining",
    "from_jax": "jaxprs.convert",
    "register_pytree_node": "tracing.pytree",
    "register_pytree_node_class": "tracing.pytree",
    "set_backend": "compiler",
    "source": "explaining",
    "stop_gradient": "custom",
    "to_jax": "jax_bridge",
    "use_backend": "compiler",
}
"""The module that each name comes from; the transforms come from ``api``."""
_MODULES: Final = frozenset({"errors", "testing"})


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"srcgrad.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'srcgrad' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"srcgrad.{_HOMES.get(name, 'api')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names and ``torch`` where it is loaded; neither what this module imports nor modules of its own."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__") or name == "torch")})
