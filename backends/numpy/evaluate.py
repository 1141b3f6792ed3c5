"""Running a function operation by operation, without generating a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from srcgrad.backends.numpy.expressions import SITES, expression, helpers_of, namespace, scipy_modules, takes_scalars
from srcgrad.ir.core import NO_ATTRS, Attrs, Literal, Region, Value
from srcgrad.ir.errors import InternalError, UnsupportedError
from srcgrad.ir.opdef import Op, written_out
from srcgrad.ir.types import ArrayType

Array = Any
"""A NumPy array of rank 1 or more, or a NumPy scalar."""

_CACHED_MEANINGS: Final = 4096


def evaluate(region: Region, args: Sequence[Array], sites: Any = None) -> list[Array]:
    """The results of a region on arrays of its parameters' types; operations with an effect run in order.

    Each result has exactly the declared dtype and shape; those of rank 0 are NumPy scalars. A result may be an
    argument, or a view of one. ``sites`` is what the effects of the region refer to.

    Raises:
        whatever a ``check`` or a ``host_call`` raises, and ``numpy.linalg.LinAlgError``.
    """
    with np.errstate(all="ignore"):
        return _run_region(region, args, sites)


def evaluate_operation(
    op: Op,
    operands: Sequence[Array],
    attrs: Attrs = NO_ATTRS,
    operand_types: Sequence[ArrayType] | None = None,
    result_types: Sequence[ArrayType] | None = None,
    regions: Sequence[Region] = (),
    sites: Any = None,
) -> list[Array]:
    """The results of one application, as `evaluate` gives them; types that are not given are found.

    An elementwise op also takes a scalar where the type says array.

    >>> from srcgrad.ir.opdef import REGISTRY
    >>> import srcgrad.ir.ops
    >>> evaluate_operation(REGISTRY["mul"], [np.array([1.0, 2.0]), np.array([3.0, 5.0])])
    [array([ 3., 10.])]
    """
    if operand_types is None:
        operand_types = [ArrayType(np.asarray(operand).dtype, np.shape(operand)) for operand in operands]
    if result_types is None:
        result_types = op.result_types(operand_types, attrs, regions)
    with np.errstate(all="ignore"):
        return _run(op, operands, attrs, tuple(operand_types), tuple(result_types), regions, sites)


def _run_region(region: Region, args: Sequence[Array], sites: Any) -> list[Array]:
    if len(args) != len(region.params):
        raise InternalError(f"{len(args)} arguments for {len(region.params)} parameters")
    env: dict[Value, Array] = dict(zip(region.params, args, strict=True))
    for operation in region.operations:
        op = operation.op
        scalars = takes_scalars(op)
        operands = [
            _literal(value, scalars) if isinstance(value, Literal) else env[value] for value in operation.operands
        ]
        results = _run(
            op,
            operands,
            operation.attrs,
            tuple([value.type for value in operation.operands]),
            tuple([value.type for value in operation.results]),
            operation.regions,
            sites,
        )
        env.update(zip(operation.results, results, strict=True))
    return [
        _exact(_literal(value, False) if isinstance(value, Literal) else env[value], value.type)
        for value in region.results
    ]


def _literal(value: Literal, scalar: bool) -> Array:
    if scalar or not value.splat or not value.type.rank:
        return value.value
    return np.full(value.type.static_shape, value.value)


def _run(
    op: Op,
    operands: Sequence[Array],
    attrs: Attrs,
    operand_types: tuple[ArrayType, ...],
    result_types: tuple[ArrayType, ...],
    regions: Sequence[Region],
    sites: Any,
) -> list[Array]:
    if op.expanded:
        return _run_region(written_out(op, operand_types, attrs, regions), operands, sites)
    if regions:
        if not getattr(op, "transparent", False):
            raise UnsupportedError(f"the NumPy backend cannot run op {op.name!r}")
        return _run_region(regions[0], operands, sites)
    meaning = _meaning(op, tuple(attrs.items()), operand_types, result_types)
    found = meaning(sites, *operands)
    if len(result_types) == 1:
        return [_exact(found, result_types[0])]
    return [_exact(array, type) for array, type in zip(found or (), result_types, strict=True)]


@lru_cache(_CACHED_MEANINGS)
def _meaning(
    op: Op,
    attrs: tuple[tuple[str, Any], ...],
    operand_types: tuple[ArrayType, ...],
    result_types: tuple[ArrayType, ...],
) -> Callable[..., Any]:
    names = [f"operand_{k}" for k in range(len(operand_types))]
    text = expression(op, names, operand_types, result_types, dict(attrs))
    code = f"lambda {', '.join([SITES, *names])}: {text}"
    return eval(compile(code, f"<srcgrad {op.name}>", "eval"), namespace(scipy_modules([text]), helpers_of(op)))  # type: ignore[no-any-return]


def _exact(array: Array, type: ArrayType) -> Array:
    """The array in the declared dtype and shape; what only was broadcast too little is broadcast."""
    if not isinstance(array, np.ndarray | np.generic) or array.dtype != type.dtype:
        array = np.asarray(array, type.dtype)
    if type.rank == 0:
        return array[()]
    if array.shape == () or isinstance(array, np.generic):
        return np.full(type.static_shape, array)
    return array
