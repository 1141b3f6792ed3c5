"""Running a function operation by operation, without generating a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import lru_cache, partial
from itertools import count as numbers_from
from typing import Any, Final, Protocol

import numpy as np

from srcgrad.backends.numpy import helpers
from srcgrad.backends.numpy.expressions import SITES, expression, helpers_of, namespace, scipy_modules, takes_scalars
from srcgrad.ir.core import NO_ATTRS, Attrs, Literal, Operation, Region, Value
from srcgrad.ir.errors import InternalError, UnsupportedError
from srcgrad.ir.opdef import Op, written_out
from srcgrad.ir.types import ArrayType, TapeType

Array = Any
"""A NumPy array of rank 1 or more, or a NumPy scalar; a tape is a list of them."""

_CACHED_MEANINGS: Final = 4096


class Observer(Protocol):
    """What sees every operation of the regions that `evaluate` runs."""

    def ran(
        self, operation: Operation, operands: Sequence[Array], run: Callable[[], Sequence[Array]]
    ) -> Sequence[Array]:
        """The results of ``run()``, which runs the operation."""

    def trips(self, numbers: Iterable[int]) -> Iterable[int]:
        """The numbers of a loop's trips, as they begin."""


OBSERVER: Final[ContextVar[Observer | None]] = ContextVar("srcgrad_observer", default=None)


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
    observer = OBSERVER.get()
    env: dict[Value, Array] = dict(zip(region.params, args, strict=True))
    for operation in region.operations:
        op = operation.op
        scalars = takes_scalars(op)
        operands = [
            _literal(value, scalars) if isinstance(value, Literal) else env[value] for value in operation.operands
        ]
        run = partial(
            _run,
            op,
            operands,
            operation.attrs,
            tuple([value.type for value in operation.operands]),
            tuple([value.type for value in operation.results]),
            operation.regions,
            sites,
        )
        results = run() if observer is None else observer.ran(operation, operands, run)
        env.update(zip(operation.results, results, strict=True))
    return [
        _exact(_literal(value, False) if isinstance(value, Literal) else env[value], value.type)
        for value in region.results
    ]


def _literal(value: Literal, scalar: bool) -> Array:
    if isinstance(value.type, TapeType):
        return helpers.filled_tape(_literal(Literal(value.value, value.type.element), False))
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
    control = _CONTROL.get(op.name)
    if control is not None:
        return control(operands, attrs, regions, sites)
    if regions:
        if not getattr(op, "transparent", False):
            raise UnsupportedError(f"the NumPy backend cannot run op {op.name!r}")
        return _run_region(regions[0], operands, sites)
    meaning = _meaning(op, tuple(attrs.items()), operand_types, result_types)
    found = meaning(sites, *operands)
    if len(result_types) == 1:
        return [_exact(found, result_types[0])]
    return [_exact(array, type) for array, type in zip(found or (), result_types, strict=True)]


# --- control flow -----------------------------------------------------------------------------------------------------


def _run_cond(operands: Sequence[Array], attrs: Attrs, regions: Sequence[Region], sites: Any) -> list[Array]:
    then, orelse = regions
    return _run_region(then if operands[0] else orelse, operands[1:], sites)


def _run_while(operands: Sequence[Array], attrs: Attrs, regions: Sequence[Region], sites: Any) -> list[Array]:
    condition, body = regions
    count = attrs["carries"]
    carries, consts, trips = list(operands[:count]), list(operands[count:]), 0
    tapes: list[list[Array]] = [[] for _ in body.results[count:]]
    for _ in _numbered(numbers_from()):
        if not _run_region(condition, [*carries, *consts], sites)[0]:
            break
        found = _run_region(body, [*carries, *consts], sites)
        carries = found[:count]
        for tape, element in zip(tapes, found[count:], strict=True):
            tape.append(element)
        trips += 1
    return [*carries, np.int64(trips), *tapes]


def _run_for(operands: Sequence[Array], attrs: Attrs, regions: Sequence[Region], sites: Any) -> list[Array]:
    (body,) = regions
    trips, carries_end = attrs["trips"], attrs["carries"]
    given = list(operands)
    count = int(given.pop(0)) if trips is None else trips
    filled = count < 0 and attrs.get("lifted", False)
    count = 1 if filled else max(count, 0)
    consts_end = carries_end + attrs["consts"]
    carries, consts, columns = given[:carries_end], given[carries_end:consts_end], given[consts_end:]
    rows: list[list[Array]] = []
    for index in _numbered(reversed(range(count)) if attrs["reverse"] else range(count)):
        elements = [column[index] for column in columns]
        found = _run_region(body, [np.int64(index), *carries, *consts, *elements], sites)
        carries = found[:carries_end]
        rows.append(found[carries_end:])
    if attrs["reverse"]:
        rows.reverse()
    results: list[Array] = list(carries)
    for position, value in enumerate(body.results[carries_end:]):
        column = [row[position] for row in rows]
        if trips is not None and not isinstance(value.type, TapeType):
            stacked = np.empty((count, *value.type.static_shape), value.type.dtype)
            for index, element in enumerate(column):
                stacked[index] = element
            results.append(stacked)
        else:
            results.append(helpers.filled_tape(column[0]) if filled else column)
    return results


def _numbered(trips: Iterable[int]) -> Iterable[int]:
    observer = OBSERVER.get()
    return trips if observer is None else observer.trips(trips)


_CONTROL: Final[dict[str, Callable[..., list[Array]]]] = {"cond": _run_cond, "for": _run_for, "while": _run_while}


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
    if isinstance(type, TapeType):
        return array
    if not isinstance(array, np.ndarray | np.generic) or array.dtype != type.dtype:
        array = np.asarray(array, type.dtype)
    if type.rank == 0:
        return array[()]
    if array.shape == () or isinstance(array, np.generic):
        return np.full(type.static_shape, array)
    return array
