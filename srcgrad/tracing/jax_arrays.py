"""jax arrays as srcgrad meets them: what is one, and the way to NumPy and back.

Nothing here imports jax until one is there: an array of jax can only come from a jax that is imported.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np

from srcgrad.errors import UnsupportedError
from srcgrad.tracing.pytree import flatten

JAX_TYPES: Final[set[type]] = set()
"""The classes of jax arrays met so far: a look into a set says whether a value is one of a known class."""


def is_jax_array(value: object) -> bool:
    """Whether this is a concrete jax array.

    Raises:
        UnsupportedError: it is a tracer of jax: a call inside ``jax.jit`` or ``jax.grad``.
    """
    if not is_jax_value(value):
        return False
    kind = type(value)
    if kind not in JAX_TYPES:
        if isinstance(value, sys.modules["jax"].core.Tracer):
            raise UnsupportedError(
                f"a tracer of jax was given to srcgrad: {kind.__name__} has no numbers to compute with",
                hint="inside jax.jit, jax.grad and jax.vmap call srcgrad.to_jax(f), an ordinary jax function",
            )
        JAX_TYPES.add(kind)
    return True


def is_jax_value(value: object) -> bool:
    """Whether this is an array or a tracer of jax."""
    kind = type(value)
    if kind in JAX_TYPES:
        return True
    if kind.__module__ in ("builtins", "numpy"):
        return False
    base = getattr(sys.modules.get("jax"), "Array", None)
    return base is not None and isinstance(value, base)


def to_numpy(value: Any) -> Any:
    """A jax array as a read-only NumPy array, of rank 0 as a NumPy scalar; anything else as it is."""
    return np.asarray(value)[()] if type(value) in JAX_TYPES or is_jax_array(value) else value


def double_precision() -> AbstractContextManager[Any]:
    """A context in which jax keeps 64-bit types, whatever its configuration says."""
    import jax

    context: Any = getattr(jax, "enable_x64", None)
    if context is None:  # before it was public
        context = importlib.import_module("jax.experimental").enable_x64
    found: AbstractContextManager[Any] = context(True)
    return found


def to_jax_array(value: Any) -> Any:
    """A number or NumPy array as a jax array of the same dtype (a copy); a jax array as it is."""
    if type(value) in JAX_TYPES:
        return value
    import jax

    with double_precision():
        found = jax.numpy.array(value)
    JAX_TYPES.add(type(found))
    return found


def lies_elsewhere(values: Sequence[Any]) -> bool:
    """Whether an array of jax lies on several devices, or on another one than jax's default."""
    shardings = {value.sharding for value in values if type(value) in JAX_TYPES}
    return bool(shardings) and shardings != {to_jax_array(np.int32(0)).sharding}


def to_jax_results(tree: Any) -> Any:
    """A pytree with every array and every float as a jax array; what has no dtype of its own stays."""
    leaves, treedef = flatten(tree)
    numbers = (np.ndarray, np.inexact, float, complex)
    return treedef.unflatten([to_jax_array(leaf) if isinstance(leaf, numbers) else leaf for leaf in leaves])


def without_jax_arrays(tree: Any) -> tuple[Any, bool]:
    """A pytree with NumPy arrays in place of jax arrays, and whether there were any."""
    if "jax" not in sys.modules:
        return tree, False
    leaves, treedef = flatten(tree)
    found = any(is_jax_array(leaf) for leaf in leaves)
    return (treedef.unflatten([to_numpy(leaf) for leaf in leaves]), True) if found else (tree, False)
