"""``from_jax``: a jax function as one that every transform and backend of srcgrad takes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

import srcgrad.jaxprs.calls
import srcgrad.jaxprs.indexing
import srcgrad.jaxprs.linear_algebra
import srcgrad.jaxprs.windows  # noqa: F401  the rules register themselves
from srcgrad.boundary import checked, described
from srcgrad.errors import ArgumentError
from srcgrad.jaxprs.elementwise import converted
from srcgrad.jaxprs.table import struct, traced
from srcgrad.jaxprs.walk import walk
from srcgrad.lowering import lower
from srcgrad.mapped import Jit
from srcgrad.tracing.function import leaf_spec
from srcgrad.tracing.jax_arrays import double_precision, without_jax_arrays
from srcgrad.tracing.pytree import TreeDef, flatten
from srcgrad.tracing.trace import CURRENT
from srcgrad.tracing.tracer import Tracer

STATIC = (int, bool, str, bytes, type(None), np.integer, np.bool_)


class Alone(Jit):
    """A converted function that is called outside any trace: always traced, since it has no plain form."""

    def plainly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return NotImplemented

    def warn_retrace(self, reason: str) -> None:
        """Nothing that the user could change."""


class Converted:
    """A jax function, and its jaxpr for each signature that it was called with."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f
        self.identity = object()
        self.compiled: Callable[..., Any] = f
        self.programs: dict[Hashable, tuple[Any, Any]] = {}

    # Another function that reads this one from outside is compiled for this one only.
    @property
    def __srcgrad_static__(self) -> Hashable:
        return ("from_jax", self.identity)

    @property
    def __srcgrad_wrapped__(self) -> tuple[Any, ...]:
        return ()

    def __srcgrad_rewrap__(self) -> Converted:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Put the program into the trace in progress, or run it as one."""
        import jax

        if CURRENT.get() is None:
            return self.compiled(*args, **kwargs)

        leaves, treedef = flatten(without_jax_arrays((args, kwargs))[0])
        wide = is_wide(leaves)
        closed, out_tree = self.program(leaves, treedef, wide)
        with precision(wide):
            operands = [leaf for leaf in leaves if not isinstance(leaf, STATIC)]
            given = [
                converted(traced(leaf), np.dtype(param.aval.dtype))
                for leaf, param in zip(operands, closed.jaxpr.invars, strict=True)
            ]
            results = walk(closed.jaxpr, closed.consts, given)
        return jax.tree.unflatten(out_tree, [x if isinstance(x, Tracer) else np.array(x)[()] for x in results])

    def program(self, leaves: list[Any], treedef: TreeDef, wide: bool) -> tuple[Any, Any]:
        """The closed jaxpr for arguments of these types, and the structure of what the function returns."""
        signature: list[Hashable] = [wide, treedef]
        structs: list[Any] = []
        for leaf in leaves:
            if isinstance(leaf, STATIC):
                signature.append((type(leaf), leaf))
                continue
            spec = leaf_spec(leaf)
            if spec is None:
                raise ArgumentError(
                    f"from_jax: an argument is {described(leaf)}", hint="pass arrays, numbers and strings"
                )
            dtype = spec.type.dtype if wide else narrow(spec.type.dtype)
            structs.append(struct(spec.type.static_shape, dtype, spec.weak))
            signature.append((spec.type, spec.weak))
        found = self.programs.get(tuple(signature))
        if found is None:
            found = self.traced(leaves, treedef, structs, wide)
            self.programs[tuple(signature)] = found
        return found

    def traced(self, leaves: list[Any], treedef: TreeDef, structs: list[Any], wide: bool) -> tuple[Any, Any]:
        import jax

        structure: list[Any] = []

        def call(*given: Any) -> list[Any]:
            values = iter(given)
            args, kwargs = treedef.unflatten([leaf if isinstance(leaf, STATIC) else next(values) for leaf in leaves])
            found, tree = jax.tree.flatten(self.f(*args, **kwargs))
            structure[:] = [tree]
            return list(found)

        with precision(wide):
            closed = jax.make_jaxpr(call)(*structs)
        return closed, structure[0]


def is_wide(leaves: list[Any]) -> bool:
    """Whether jax traces with 64-bit types: an array asks for them, or there are Python numbers only."""
    specs = [spec for spec in map(leaf_spec, leaves) if spec is not None]
    dtypes = [spec.type.dtype for spec in specs if not spec.weak and spec.type.dtype.kind in "fc"]
    return not dtypes or any(dtype.name in ("float64", "complex128") for dtype in dtypes)


def narrow(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype as jax has it: of 32 bits, unless 64 are enabled."""
    import jax

    return np.dtype(jax.dtypes.canonicalize_dtype(dtype))


def precision(wide: bool) -> AbstractContextManager[Any]:
    return double_precision() if wide else nullcontext()


@checked
def from_jax(f: Callable[..., Any], *example: Any) -> Callable[..., Any]:
    """A function written with jax, as one that srcgrad traces: for every transform and backend, alone or inside code
    written with NumPy.

    Args:
        f: a function of arrays and numbers in containers; whole numbers, booleans and strings are static.
        example: arguments to translate for at once, which reports what has no counterpart now instead of at the call.

    Returns:
        A function with ``f``'s arguments. ``f`` is traced by jax once for each signature (arrays it closes over are
        constants from then on); where a floating argument has 64 bits, or all are Python numbers, with 64-bit types
        whatever jax's configuration says.

    Custom rules of jax are kept. A branch on a traced value computes both sides and chooses; a scan, and a while loop
    whose trip count is known, are unrolled.

    Raises (at translation):
        UnsupportedError: a primitive of jax has no counterpart; the message names it and the line it comes from.

    >>> import numpy as np, srcgrad as sg, jax.numpy as jnp
    >>> softplus = sg.from_jax(lambda x: jnp.sum(jnp.logaddexp(x, 0.0)))
    >>> sg.grad(softplus)(np.array([0.0, 0.0]))
    array([0.5, 0.5])
    """
    if not callable(f):
        raise ArgumentError(
            f"from_jax takes a function, not {described(f)}", hint="from_jax(f) returns a function to call"
        )
    program = Converted(f)

    @functools.wraps(f, updated=())
    def function(*args: Any, **kwargs: Any) -> Any:
        return program(*args, **kwargs)

    program.compiled = Alone(function, False, None)
    if example:
        lower(function, example, {}, "from_jax")  # traces, and compiles nothing
    return function
