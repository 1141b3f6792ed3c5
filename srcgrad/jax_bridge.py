"""``to_jax``: a function written in NumPy as one that jax traces."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from srcgrad.boundary import checked, described
from srcgrad.building import Job
from srcgrad.cache import PROGRAMS, Known, find_captures
from srcgrad.errors import ConcretizationError, DTypeError, SrcgradError, UnsupportedError
from srcgrad.ir.collector import without_gc
from srcgrad.ir.core import Function, Literal, Operation, Region, Value
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.types import DTYPE_NAMES, ArrayType
from srcgrad.mapped import Jit
from srcgrad.signatures import HELD, UNKEYED, argument_reason, leaf_key
from srcgrad.tracing.capture import Uncacheable
from srcgrad.tracing.function import LeafSpec, as_array
from srcgrad.tracing.jax_arrays import is_jax_value
from srcgrad.tracing.trace import NeedsConcrete, Refused
from srcgrad.ways import first_lines

NARROW = {np.dtype(wide): np.dtype(wide[:-2] + half) for wide, half in (("float64", "32"), ("int64", "32"))} | {
    np.dtype(np.uint64): np.dtype(np.uint32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}
"""jax's types of 32 bits in place of those of 64, where its configuration has no 64-bit types."""


class ToJax(Jit):
    """What `to_jax` returns: an ordinary jax function that inlines the program of the traced NumPy function."""

    kind = "to_jax"
    writes_back = False

    def __init__(self, f: Callable[..., Any]) -> None:
        super().__init__(f, False, None)

    def has_no_key(self, leaf: Any) -> bool:
        return jax_spec(leaf, True) is None and super().has_no_key(leaf)

    def dispatched(self, job: Job, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import jax

        wide = bool(getattr(jax.config, "jax_enable_x64")) or any(map(has_64_bits, job.leaves))  # noqa: B009
        failures: list[NeedsConcrete | UnsupportedError] = []
        settled: set[bool] = set()
        for way in self.ways():
            found = find_captures(job.holder(self.f), way.floats_static, way.converted, job.treedef)
            captures, (hidden, aliases) = (None, ((), None)) if isinstance(found, Uncacheable) else found
            if way.converted in settled:
                continue
            specs = [jax_spec(leaf, wide) for leaf in (*job.leaves, *hidden)]
            keys = [
                HELD if place in job.held else leaf_key(leaf) if spec is None else spec
                for place, (leaf, spec) in enumerate(zip((*job.leaves, *hidden), specs, strict=True))
            ]
            if UNKEYED in keys or (captures is not None and argument_reason(captures, job.leaves, job.treedef)):
                captures = None
            key = (type(self), wide, captures, way.converted, job.treedef, tuple(keys), aliases)
            program = None if captures is None else PROGRAMS.get(key)
            if program is None:
                try:
                    program = self.lowered(job, hidden, specs, captures, aliases, wide, way.converted)
                except (NeedsConcrete, UnsupportedError) as error:
                    failures.append(error)
                    if captures is None or not hidden:  # captured floats make no difference
                        settled.add(way.converted)
                    continue
                if captures is not None:
                    PROGRAMS.put(key, program)
            run, finish = program
            leaves = (*job.leaves, *hidden)
            given = [jax_value(leaf, spec) for leaf, spec in zip(leaves, specs, strict=True) if spec is not None]
            return finish(run(*given), ())
        raise self.refusal(failures)

    def refusal(self, failures: Sequence[NeedsConcrete | UnsupportedError]) -> SrcgradError:
        """The error of a function that is no one program: what conversion refuses, else what the function asks for."""
        refused = [error for error in failures if isinstance(error, Refused)]
        needed = [error for error in failures if isinstance(error, NeedsConcrete)]
        if not needed:
            return failures[-1]
        error = (refused or needed)[0]
        return ConcretizationError(
            f"to_jax({self.name}) cannot be one program: {first_lines(error)}",
            span=error.span,
            hint=error.hint if refused else f"{error.hint}; np.where stands for a branch on values",
        )

    def lowered(
        self,
        job: Job,
        hidden: Sequence[Any],
        specs: Sequence[LeafSpec | None],
        captures: Known | None,
        aliases: Any,
        wide: bool,
        converting: bool,
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """The program as a jax function of the traced leaves, and how its results become what the user gets."""
        from srcgrad.backends.xla.lowering import lower

        leaves = [*job.leaves, *hidden]
        rebuilt = None if captures is None else self.rebuilding(captures, aliases, hidden, job)
        with without_gc():
            numbers = [None] * sum(spec is not None for spec in specs)
            traced = self.trace(job, leaves, specs, False, numbers, rebuilt, converting)
            built = self.build_checked(traced, job, specs)
            function = dce(built.function)
            if not wide:
                function = narrowed(function)
        return typed(lower(function, traced.sites), function), built.finish

    def warn_retrace(self, reason: str) -> None:
        """jax traces again whenever it likes: not worth a warning."""


def typed(run: Callable[..., Any], function: Function) -> Callable[..., Any]:
    """The lowered function, whose results have exactly the types of the function's: counts are int64 until here."""
    import jax

    dtypes = [result.type.dtype for result in function.results]

    def call(*arguments: Any) -> list[Any]:
        return [
            result if result.dtype == dtype else jax.lax.convert_element_type(result, dtype)
            for result, dtype in zip(run(*arguments), dtypes, strict=True)
        ]

    return call


def has_64_bits(leaf: Any) -> bool:
    """Whether an array of jax has more precision than jax's configuration gives."""
    return is_jax_value(leaf) and np.dtype(leaf.dtype) in NARROW


def jax_spec(leaf: Any, wide: bool) -> LeafSpec | None:
    """How a leaf that jax holds enters the trace; None for a static one.

    Raises:
        DTypeError: an array of a dtype that has no type in srcgrad.
    """
    if is_jax_value(leaf):
        dtype, shape, weak = leaf.dtype, leaf.shape, bool(leaf.weak_type) and not leaf.shape
        if str(dtype) not in DTYPE_NAMES:
            raise DTypeError(f"a jax array of dtype {dtype} cannot be traced", hint="use booleans, integers or floats")
        if weak and np.dtype(dtype).kind not in "fc":
            weak = False
        return LeafSpec(ArrayType(np.dtype(dtype), shape), not shape, weak)
    if isinstance(leaf, (float, complex, np.inexact, np.ndarray)):
        array = np.asarray(leaf)
        if array.dtype.name not in DTYPE_NAMES:
            raise DTypeError(f"{described(leaf)} cannot be traced", hint="use booleans, integers or floats")
        dtype = array.dtype if wide else NARROW.get(array.dtype, array.dtype)
        scalar = not isinstance(leaf, np.ndarray)
        return LeafSpec(ArrayType(dtype, array.shape), scalar, type(leaf) in (float, complex))
    return None


def jax_value(leaf: Any, spec: LeafSpec) -> Any:
    """A leaf as the lowered program takes it."""
    return leaf if is_jax_value(leaf) else np.asarray(as_array(leaf), spec.type.dtype)


def narrowed(function: Function) -> Function:
    """The function with 32-bit types in place of 64-bit ones, as jax has them where it has no 64-bit types."""
    region = narrowed_region(function)
    return Function(function.name, region.params, region.operations, region.results)


def narrowed_region(region: Region) -> Region:
    env: dict[Value, Value] = {}

    def read(value: Value) -> Value:
        if not isinstance(value, Literal):
            return env[value]
        type = narrow_type(value.type)
        return value if type is value.type else Literal(value.value.astype(type.dtype), type)

    for param in region.params:
        env[param] = Value(narrow_type(param.type), None, param.name, param.linear)
    operations = []
    for old in region.operations:
        attrs = {name: narrow_attribute(value) for name, value in old.attrs.items()}
        types = [narrow_type(result.type) for result in old.results]
        regions = tuple(narrowed_region(inner) for inner in old.regions)
        operation = Operation(old.op, tuple(map(read, old.operands)), attrs, regions, types, old.span)
        operations.append(operation)
        env.update(zip(old.results, operation.results, strict=True))
    return Region([env[param] for param in region.params], operations, [*map(read, region.results)])


def narrow_type(type: ArrayType) -> ArrayType:
    found = NARROW.get(type.dtype)
    return type if found is None else ArrayType(found, type.shape)


def narrow_attribute(value: Any) -> Hashable:
    if isinstance(value, np.dtype):
        return NARROW.get(value, value)
    if isinstance(value, ArrayType):
        return narrow_type(value)
    return tuple(map(narrow_attribute, value)) if isinstance(value, tuple) else value


@checked
def to_jax(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function written in NumPy, with Python's own control flow, as an ordinary jax function: ``jax.jit``,
    ``jax.grad``, ``jax.vmap`` and all others apply to it.

    Args:
        f: a function of pytrees of arrays and numbers, also one that srcgrad made, such as ``grad(g)``.

    Returns:
        A function with ``f``'s arguments, of jax arrays and tracers. It traces ``f`` for the shapes and dtypes it is
        given, which is remembered, and inlines the program. Floats are traced; whole numbers, booleans and strings are
        static. What it changes in place changes for itself only. Without jax's 64-bit types everything has 32 bits.
        Branches and loops on traced values become ``lax.cond``, ``lax.while_loop`` and ``lax.scan``; of a loop with a
        number of trips that depends on values jax has forward derivatives only (``jax.jvp``, ``jax.jacfwd``).
        Custom rules, checkpoints and `stop_gradient` keep their meaning under jax's transforms. What NumPy checks
        (LinAlgError) is not checked, as in jax.

    Raises (when called):
        ConcretizationError: Python code needs the value of a traced array.

    >>> import numpy as np, srcgrad as sg, jax
    >>> energy = sg.to_jax(lambda x: np.sum(np.square(x)))
    >>> jax.jit(jax.grad(energy))(np.array([1.0, 2.0]))
    Array([2., 4.], dtype=float32)
    """
    return ToJax(f)
