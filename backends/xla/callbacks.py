"""Calls from a compiled program into Python: ops that jax has no function for, and the user's host calls.

Arrays go in and out as bytes: jax would convert float64 and int64 to half their size in the thread that makes the call,
whatever the precision of the program is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import numpy as np
from jax import lax
from jax.experimental import io_callback

from srcgrad.backends.numpy import helpers
from srcgrad.backends.numpy.evaluate import evaluate_operation
from srcgrad.backends.xla.program import HOST, Application, Effect, Program, in_full_precision
from srcgrad.backends.xla.tables import special
from srcgrad.ir.core import Builder, Function, Operation
from srcgrad.ir.errors import BackendError
from srcgrad.ir.opdef import Elementwise, Lin, Tangent, Zero
from srcgrad.ir.transforms.interpret import push_forward
from srcgrad.ir.transforms.linear import Masked
from srcgrad.ir.types import ArrayType

CALLBACKS: Final[dict[str, str]] = {
    "sylvester": "jax solves for one pair of matrices at a time, and says by an error that they share an eigenvalue",
    "banded_solve": "jax has no solver for banded matrices but tridiagonal ones, which it does not pivot",
    "sparse_solve": "jax has no solver for sparse matrices on CPUs",
    **special.CALLED_BACK,
}
"""op -> why it has no lowering and is called back."""

COMPLEX_CALLBACKS: Final[dict[str, str]] = {
    "digamma": "jax has it of real numbers only",
    "polygamma": "jax has it of real numbers only",
    "erf": "jax has the error function of real numbers only",
    "erfc": "jax has the error function of real numbers only",
}
"""op -> why it is called back on complex operands."""

CALLING: Final = ("cpu", "gpu", "tpu")
"""The platforms whose programs can call Python."""

BYTE: Final = np.dtype(np.uint8)
Host = np.ndarray[Any, Any]


def to_bytes(array: Any) -> Any:
    """The bytes of each element, along a new last axis."""
    if array.dtype.kind == "c":
        return lax.concatenate([to_bytes(lax.real(array)), to_bytes(lax.imag(array))], array.ndim)
    if array.dtype.kind == "b" or array.dtype.itemsize == 1:
        plain = lax.convert_element_type(array, BYTE) if array.dtype.kind == "b" else array
        plain = lax.bitcast_convert_type(plain, BYTE) if plain.dtype != BYTE else plain
        return lax.expand_dims(plain, (array.ndim,))
    return lax.bitcast_convert_type(array, BYTE)


def from_bytes(array: Any, dtype: np.dtype[Any]) -> Any:
    """The inverse of `to_bytes`."""
    last = array.ndim - 1
    if dtype.kind == "c":
        part, half = np.empty(0, dtype).real.dtype, dtype.itemsize // 2
        halves = (lax.slice_in_dim(array, start, start + half, axis=last) for start in (0, half))
        return lax.complex(*(from_bytes(half_bytes, part) for half_bytes in halves))
    if dtype.itemsize == 1:
        plain = lax.squeeze(array, (last,))
        return lax.ne(plain, np.uint8(0)) if dtype.kind == "b" else lax.bitcast_convert_type(plain, dtype)
    return lax.bitcast_convert_type(array, dtype)


def on_host(array: Any, dtype: np.dtype[Any]) -> Host:
    """The array whose bytes a callback is given: writable, and the callback's own."""
    return np.array(array).view(dtype)[..., 0]


def host_bytes(array: Any) -> Host:
    array = np.asarray(array)
    return np.ascontiguousarray(array)[..., None].view(BYTE).reshape(*array.shape, array.dtype.itemsize)


def byte_types(types: Sequence[ArrayType]) -> tuple[jax.ShapeDtypeStruct, ...]:
    struct: Any = jax.ShapeDtypeStruct
    return tuple([struct((*type.static_shape, type.dtype.itemsize), BYTE) for type in types])


def require_callbacks(what: str) -> None:
    """Refuse what is called back where jax cannot: operands go to the host and results come back on these platforms."""
    platform = jax.default_backend()
    if platform not in CALLING:
        raise BackendError(
            f"the xla backend runs {what} on {', '.join(CALLING)} only, not on {platform}",
            hint="use the numpy backend for it",
        )


# --- ops without a lowering ---------------------------------------------------------------------------


def call_back(application: Application, *operands: Any) -> Sequence[Any]:
    """The results of one application by the op's NumPy meaning; jax can differentiate it by the op's own rule."""
    operation = application.operation
    require_callbacks(f"op {operation.op.name!r}")
    plain = meaning_of(operation)
    if not application.program.rules:
        return plain(*operands)
    call = jax.custom_jvp(plain)
    tangent_program = tangents_of(operation)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        types = [value.type for value in operation.operands]
        active = [tangent for tangent, type in zip(tangents, types, strict=True) if type.differentiable]
        inner = Program(None, application.program.walk, checks=False, rules=True)
        with in_full_precision():
            found = iter(inner.walk(tangent_program, [*primals, *active], inner))
        outgoing = tuple(
            next(found) if value.type.differentiable else np.zeros(value.type.static_shape, jax.dtypes.float0)
            for value in operation.results
        )
        return call(*primals), outgoing

    call.defjvp(rule)
    return call(*operands)


def meaning_of(operation: Operation) -> Callable[..., tuple[Any, ...]]:
    op, attrs = operation.op, operation.attrs
    operand_types = [value.type for value in operation.operands]
    result_types = [value.type for value in operation.results]
    elementwise = isinstance(op, Elementwise)

    def host(*arrays: Any) -> tuple[Host, ...]:
        operands = [on_host(array, type.dtype) for array, type in zip(arrays, operand_types, strict=True)]
        if elementwise:  # under jax.vmap operands have more axes, of which some have size 1
            operands = [np.asarray(operand) for operand in np.broadcast_arrays(*operands)]
        found = evaluate_operation(op, [operand[()] for operand in operands], attrs)
        return tuple([host_bytes(result) for result in found])

    def call(*operands: Any) -> tuple[Any, ...]:
        method = "expand_dims" if elementwise else "sequential"
        with jax.enable_x64(True):
            found = jax.pure_callback(host, byte_types(result_types), *map(to_bytes, operands), vmap_method=method)
            return tuple([from_bytes(array, type.dtype) for array, type in zip(found, result_types, strict=True)])

    return call


def tangents_of(operation: Operation) -> Function:
    """The function of the operands and a tangent of each differentiable one that gives the results' tangents."""
    body, builder = Builder(), Builder()
    emitted = body.emit_operation(
        operation.op, [body.param(value.type) for value in operation.operands], operation.attrs, operation.regions
    )
    primals = [builder.param(value.type) for value in operation.operands]
    tangents: list[Tangent] = [
        Lin(builder.param(value.type)) if value.type.differentiable else Zero(value.type)
        for value in operation.operands
    ]
    s = Masked(builder)
    _, outgoing = push_forward(builder, s, body.region(emitted.results), primals, tangents)
    return builder.function("tangents", [s.materialise(t) for t in outgoing if t.type.differentiable])


# --- host calls ---------------------------------------------------------------------------------------


def call_host(application: Application, *operands: Any) -> tuple[Any, ...]:
    """Call the program's site, unless something has failed before; its exception is kept for the caller."""
    program, attrs = application.program, application.attrs
    require_callbacks("a host call")
    types: tuple[ArrayType, ...] = attrs["results"]
    expected = tuple((type.dtype.name, type.static_shape) for type in types)
    operand_types = [value.type for value in application.operation.operands]
    nothing = tuple([np.zeros(struct.shape, BYTE) for struct in byte_types(types)])

    def call(*arrays: Any) -> tuple[Host, ...]:
        given = [on_host(array, type.dtype)[()] for array, type in zip(arrays, operand_types, strict=True)]
        found = helpers.host_call(program.sites, attrs["site"], tuple(given), expected)
        results = (found,) if len(types) == 1 else found
        return tuple([host_bytes(result) for result in results])

    def guarded(alive: Any, run: Any, *arrays: Any) -> tuple[Host, ...]:
        if not np.asarray(alive):
            return (host_bytes(np.int64(0)), *nothing)
        if program.run is None:
            return caught(*arrays)
        found: tuple[Host, ...] = program.recordings[int(on_host(run, number.dtype))].next(lambda: caught(*arrays))
        return found

    def caught(*arrays: Any) -> tuple[Host, ...]:
        try:
            return (host_bytes(np.int64(0)), *call(*arrays))
        except BaseException as error:
            return (host_bytes(np.int64(program.exceptions.keep(error))), *nothing)

    number = ArrayType(np.dtype(np.int64))
    given = [to_bytes(operand) for operand in operands]
    if not program.checks:
        found = io_callback(call, byte_types(types), *given, ordered=True)
    else:
        run = to_bytes(lax.convert_element_type(np.int64(0) if program.run is None else program.run, number.dtype))
        results = byte_types([number, *types])
        status, *found = io_callback(guarded, results, program.alive(), run, *given, ordered=True)
        raised = from_bytes(status, number.dtype)
        program.report(raised, raised, Effect(HOST, "", span=application.operation.span))
    return tuple([from_bytes(array, type.dtype) for array, type in zip(found, types, strict=True)])
