"""Products: dot, matmul, einsum and their kin, all of them sums of products over shared axes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcgrad.errors import AxisError, DTypeError, ShapeError
from srcgrad.tracing.functions.registry import (
    as_array,
    broadcast_shape,
    cast,
    finish,
    numpy_rule,
    ordered_axes,
    refuse,
    scalar_if_rank0,
)
from srcgrad.tracing.functions.shapes import broadcast_to, moveaxis
from srcgrad.tracing.tracer import METHODS, Tracer, as_tracer, emit
from srcgrad.tracing.views import WritableDiagonalView

Axes = tuple[int, ...]
Product = Callable[[Any, Any], Any]


def promoted(*operands: Any) -> list[Any]:
    """The operands in their common dtype. NumPy makes arrays of them first: no number is weak."""
    tracers = [as_tracer(item) for item in operands]
    dtype = np.result_type(*[tracer.dtype for tracer in tracers])
    return [cast(tracer, dtype) for tracer in tracers]


def contract(left: Any, right: Any, axes: tuple[Axes, Axes], batch: tuple[Axes, Axes] = ((), ())) -> Any:
    """The sum of products over pairs of axes: batched axes first, then the left's free ones, then the right's."""
    for pairs in (batch, axes):
        for i, j in zip(*pairs, strict=True):
            if left.shape[i] != right.shape[j]:
                raise ShapeError(
                    f"shapes {left.shape} and {right.shape} not aligned: "
                    f"{left.shape[i]} (dim {i}) != {right.shape[j]} (dim {j})"
                )
    return emit("dot_general", left, right, contract=axes, batch=batch)


# --- vectors and matrices --------------------------------------------------------------------------------------------


@numpy_rule("dot")
def dot(a: Any, b: Any, out: Any = None) -> Any:
    x, y = promoted(a, b)
    if not x.ndim or not y.ndim:
        return finish(np.multiply(x, y), out)
    return finish(contract(x, y, ((x.ndim - 1,), (max(y.ndim - 2, 0),))), out)


METHODS["dot"] = dot


@numpy_rule("vdot")
def vdot(a: Any, b: Any, /) -> Any:
    x, y = (as_array(part).ravel() for part in promoted(a, b))
    return contract(conjugated(x), y, ((0,), (0,)))


def conjugated(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


@numpy_rule("inner")
def inner(a: Any, b: Any, /) -> Any:
    x, y = promoted(a, b)
    if not x.ndim or not y.ndim:
        return np.multiply(x, y)
    return contract(x, y, ((x.ndim - 1,), (y.ndim - 1,)))


@numpy_rule("outer")
def outer(a: Any, b: Any, out: Any = None) -> Any:
    x, y = as_array(a).ravel(), as_array(b).ravel()
    return finish(np.multiply(x.reshape((-1, 1)), y), out, broadcasts=True)


@numpy_rule("linalg.outer")
def linalg_outer(x1: Any, x2: Any, /) -> Any:
    x, y = as_tracer(x1), as_tracer(x2)
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeError(f"Input arrays must be one-dimensional, but they are {x.ndim=} and {y.ndim=}.")
    return outer(x, y)


def stacked(x: Any, y: Any, core: tuple[int, int]) -> tuple[Any, Any, Axes]:
    """The operands with common stack axes, before the last ``core`` axes of each."""
    stacks = x.shape[: x.ndim - core[0]], y.shape[: y.ndim - core[1]]
    shape = broadcast_shape(stacks)
    x = x if stacks[0] == shape else broadcast_to(x, shape + x.shape[x.ndim - core[0] :])
    y = y if stacks[1] == shape else broadcast_to(y, shape + y.shape[y.ndim - core[1] :])
    return x, y, tuple(range(len(shape)))


def core_mismatch(name: str, x: Any, y: Any) -> ShapeError:
    return ShapeError(f"{name}: Input operand 1 has a mismatch in its core dimension: {x.shape} and {y.shape}")


def placed(name: str, entry: Any, rank: int, core: int) -> Axes:
    """The axes of an operand or a result that one entry of ``axes=`` names.

    Raises:
        AxisError: they are not as many as the product has of it, or there is none of them.
    """
    found = (entry,) if isinstance(entry, (int, np.integer)) and core == 1 else entry
    if not isinstance(found, tuple) or len(found) != core:
        raise AxisError(f"{name}: there are {core} core dimensions, but the item of axes= is {entry!r}")
    return ordered_axes(found, rank)


def along_axes(name: str, rule: Product, operands: Sequence[Any], cores: Axes, axes: Any) -> Any:
    """A product of the axes that ``axes=`` names, each of them last; the result's are put where its last item says."""
    if not isinstance(axes, list):
        raise DTypeError("axes should be a list.")
    if len(axes) != 3 and (cores[2] or len(axes) != 2):
        raise ShapeError(
            "axes should be a list with an entry for all 3 inputs and outputs; entries for outputs can only be "
            "omitted if none of them has core axes."
        )
    moved = []
    for x, core, entry in zip(operands, cores, axes, strict=False):
        moved.append(moveaxis(x, placed(name, entry, x.ndim, core), range(-core, 0)))
    result = rule(*moved)
    places = placed(name, axes[2] if len(axes) == 3 else (), result.ndim, cores[2])
    return moveaxis(result, range(-cores[2], 0), places) if cores[2] else result


def product(name: str, rule: Product, cores: Axes, x1: Any, x2: Any, out: Any, options: dict[str, Any]) -> Any:
    """A stack of products of the last ``cores`` axes of the operands, or of those that ``axes=`` names."""
    axes = options.pop("axes", None)
    refuse(f"np.{name}", **{key: (value, None) for key, value in options.items() if key != "casting"})
    x, y = promoted(x1, x2)
    for operand, rank in ((x, cores[0]), (y, cores[1])):
        if operand.ndim < rank:
            raise ShapeError(f"{name}: operand {operand.type} does not have enough dimensions, at least {rank}")
    found = rule(x, y) if axes is None else along_axes(name, rule, (x, y), cores, axes)
    return finish(found, out, broadcasts=True)


@numpy_rule("matmul", "linalg.matmul")
def matmul(x1: Any, x2: Any, /, out: Any = None, **kwargs: Any) -> Any:
    left, right = (min(max(as_tracer(x).ndim, 1), 2) for x in (x1, x2))
    return product("matmul", matrix_product, (left, right, left + right - 2), x1, x2, out, kwargs)


def matrix_product(x: Any, y: Any) -> Any:
    if x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        raise core_mismatch("matmul", x, y)
    if x.ndim <= 2 and y.ndim <= 2:
        return contract(x, y, ((x.ndim - 1,), (max(y.ndim - 2, 0),)))
    if y.ndim == 1 or (y.ndim == 2 and x.ndim > 2):  # one right operand for the whole stack
        return contract(x, y, ((x.ndim - 1,), (0,)))
    if x.ndim == 1:
        return contract(x, y, ((0,), (y.ndim - 2,)))
    x, y, stack = stacked(x, y, (2, 2))
    return contract(x, y, ((x.ndim - 1,), (y.ndim - 2,)), (stack, stack))


@numpy_rule("vecdot")
def vecdot(x1: Any, x2: Any, /, out: Any = None, *, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
    axes = kwargs.pop("axes", None)
    if axis is not None:
        axes = [axis] * (3 if keepdims else 2)
    if not keepdims:
        return product("vecdot", vector_product, (1, 1, 0), x1, x2, out, {"axes": axes, **kwargs})
    if axes is not None and len(axes) == 2:
        axes = [*axes, -1]
    return product("vecdot", kept_product, (1, 1, 1), x1, x2, out, {"axes": axes, **kwargs})


def vector_product(x: Any, y: Any) -> Any:
    if x.shape[-1] != y.shape[-1]:
        raise core_mismatch("vecdot", x, y)
    x, y, stack = stacked(conjugated(x), y, (1, 1))
    return contract(x, y, ((x.ndim - 1,), (y.ndim - 1,)), (stack, stack))


def kept_product(x: Any, y: Any) -> Any:
    return as_array(vector_product(x, y))[..., None]


@numpy_rule("linalg.vecdot")
def linalg_vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return vecdot(x1, x2, axis=axis)


@numpy_rule("matvec")
def matvec(x1: Any, x2: Any, /, out: Any = None, **kwargs: Any) -> Any:
    return product("matvec", matrix_by_vector, (2, 1, 1), x1, x2, out, kwargs)


def matrix_by_vector(x: Any, y: Any) -> Any:
    if x.shape[-1] != y.shape[-1]:
        raise core_mismatch("matvec", x, y)
    x, y, stack = stacked(x, y, (2, 1))
    return contract(x, y, ((x.ndim - 1,), (y.ndim - 1,)), (stack, stack))


@numpy_rule("vecmat")
def vecmat(x1: Any, x2: Any, /, out: Any = None, **kwargs: Any) -> Any:
    return product("vecmat", vector_by_matrix, (1, 2, 1), x1, x2, out, kwargs)


def vector_by_matrix(x: Any, y: Any) -> Any:
    if x.shape[-1] != y.shape[-2]:
        raise core_mismatch("vecmat", x, y)
    x, y, stack = stacked(conjugated(x), y, (1, 2))
    return contract(x, y, ((x.ndim - 1,), (y.ndim - 2,)), (stack, stack))


@numpy_rule("tensordot")
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    x, y = promoted(a, b)
    if isinstance(axes, (int, np.integer)):
        count = operator.index(axes)
        left, right = tuple(range(x.ndim - count, x.ndim)), tuple(range(count))
    else:
        left, right = (ordered_axes(part, operand.ndim) for part, operand in zip(axes, (x, y), strict=True))
    if len(left) != len(right) or any(x.shape[i] != y.shape[j] for i, j in zip(left, right, strict=True)):
        raise ShapeError(f"shape-mismatch for sum: axes {axes} of {x.shape} and {y.shape}")
    return as_array(contract(x, y, (left, right)))


@numpy_rule("linalg.tensordot")
def linalg_tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    return tensordot(x1, x2, axes)


@numpy_rule("kron")
def kron(a: Any, b: Any) -> Any:
    x, y = as_array(a), as_array(b)
    rank = max(x.ndim, y.ndim)
    if not x.ndim or not y.ndim:
        return as_array(np.multiply(x, y)) if rank == 0 else np.multiply(x, y)
    x, y = (part.reshape((1,) * (rank - part.ndim) + part.shape) for part in (x, y))
    product: Any = np.multiply(
        x.reshape([size for full in x.shape for size in (full, 1)]),
        y.reshape([size for full in y.shape for size in (1, full)]),
    )
    return product.reshape([m * n for m, n in zip(x.shape, y.shape, strict=True)])


@numpy_rule("cross")
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    x: Any = moveaxis(as_tracer(a), axisa, -1)
    y: Any = moveaxis(as_tracer(b), axisb, -1)
    if not {x.shape[-1], y.shape[-1]} <= {2, 3}:
        raise ShapeError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    if x.shape[-1] == y.shape[-1] == 2:
        return as_array(x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0])
    plane = [np.zeros_like(part[..., :1]) for part in (x, y)]
    x, y = (
        np.concatenate([part, zero], axis=-1) if part.shape[-1] == 2 else part
        for part, zero in zip((x, y), plane, strict=True)
    )
    (x0, x1, x2), (y0, y1, y2) = ([part[..., k] for k in range(3)] for part in (x, y))
    product = np.stack([x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0], axis=-1)
    return moveaxis(product, -1, axisc)


@numpy_rule("linalg.cross")
def linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    if as_tracer(x1).shape[axis] != 3 or as_tracer(x2).shape[axis] != 3:
        raise ShapeError("Both input arrays must be (arrays of) 3-dimensional vectors")
    return cross(x1, x2, axis=axis)


# --- einsum ----------------------------------------------------------------------------------------------------------


@numpy_rule("einsum")
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    """Pairwise, in the order of ``np.einsum_path``."""
    dtype = kwargs.pop("dtype", None)
    casting = kwargs.pop("casting", "safe")
    kwargs.pop("order", None)
    refuse("np.einsum", **{name: (value, None) for name, value in kwargs.items()})
    subscripts, arrays = parse_einsum(operands)
    tracers = promoted(*arrays)
    if dtype is not None:
        tracers = [cast(tracer, dtype) for tracer in tracers]
    inputs, output = explicit_subscripts(subscripts, [tracer.ndim for tracer in tracers])
    require_sizes(inputs, tracers)
    terms = [diagonals(tracer, labels) for tracer, labels in zip(tracers, inputs, strict=True)]
    for pair in contraction_order(inputs, output, tracers):
        chosen = [terms.pop(k) for k in sorted(pair, reverse=True)][::-1]
        needed = set(output).union(*(labels for _, labels in terms))
        chosen = [summed(x, labels, needed.union(*others(chosen, k))) for k, (x, labels) in enumerate(chosen)]
        terms.append(chosen[0] if len(chosen) == 1 else multiplied(chosen[0], chosen[1], needed))
    x, labels = terms[0]
    x, labels = summed(x, labels, set(output))
    perm = [labels.index(label) for label in output]
    result = x if perm == sorted(perm) else x.transpose(perm)
    if casting == "unsafe" and isinstance(out, Tracer):
        result = cast(result, out.dtype)
    return finish(scalar_if_rank0(result), out)


def others(chosen: Sequence[tuple[Any, str]], k: int) -> list[str]:
    return [labels for j, (_, labels) in enumerate(chosen) if j != k]


def parse_einsum(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """``einsum("ij,jk", a, b)`` or ``einsum(a, [0, 1], b, [1, 2], [0, 2])``."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    count = len(operands) // 2
    lists = [operands[2 * k + 1] for k in range(count)]
    text = ",".join(map(letters, lists))
    if len(operands) % 2:
        text += "->" + letters(operands[-1])
    return text, [operands[2 * k] for k in range(count)]


ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def letters(sublist: Any) -> str:
    return "".join("..." if item is Ellipsis else ALPHABET[operator.index(item)] for item in sublist)


def explicit_subscripts(subscripts: str, ranks: list[int]) -> tuple[list[str], str]:
    """Labels of each operand and of the result; axes under an ellipsis get labels of their own."""
    left, arrow, right = subscripts.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ranks):
        raise ShapeError(f"einsum: {subscripts!r} names {len(inputs)} operands, {len(ranks)} were given")
    hidden = [rank - len(labels.replace("...", "")) for labels, rank in zip(inputs, ranks, strict=True)]
    for labels, count in zip(inputs, hidden, strict=True):
        if count < 0 or (count and "..." not in labels):
            raise ShapeError(f"einsum: subscripts {labels!r} do not fit the rank of their operand")
    free = [letter for letter in reversed(ALPHABET) if letter not in subscripts]
    stack = "".join(reversed(free[: max(hidden, default=0)]))
    expanded = [
        labels.replace("...", stack[len(stack) - count :]) for labels, count in zip(inputs, hidden, strict=True)
    ]
    if arrow:
        if stack and "..." not in right:
            raise ShapeError(
                f"einsum: the operands of {subscripts!r} have axes under '...', which the output leaves out",
                hint="name the axes to sum over, or write '...' in the output",
            )
        output = right.replace("...", stack)
    else:
        named = "".join(labels.replace("...", "") for labels in inputs)
        output = stack + "".join(sorted(label for label in set(named) if named.count(label) == 1))
    for label in output:
        if output.count(label) > 1 or not any(label in labels for labels in expanded):
            raise ShapeError(f"einsum: the output subscript {label!r} is repeated or names no input")
    return expanded, output


def require_sizes(inputs: list[str], tracers: list[Any]) -> None:
    sizes: dict[str, int] = {}
    for labels, tracer in zip(inputs, tracers, strict=True):
        for label, size in zip(labels, tracer.shape, strict=True):
            known = sizes.setdefault(label, size)
            if known == 1:
                sizes[label] = size
            elif size not in (1, known):
                raise ShapeError(f"einsum: label {label!r} has sizes {known} and {size}")


def diagonals(x: Any, labels: str) -> tuple[Any, str]:
    """Take the diagonal of labels that are repeated."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = x.viewed(WritableDiagonalView(0, first, second))
            labels = labels.replace(label, "", 2) + label
    return x, labels


def summed(x: Any, labels: str, needed: set[str]) -> tuple[Any, str]:
    """Sum over the axes that nobody else needs."""
    axes = tuple(k for k, label in enumerate(labels) if label not in needed)
    if not axes:
        return x, labels
    return emit("reduce_sum" if x.dtype.kind != "b" else "reduce_or", x, axes=axes), "".join(
        label for label in labels if label in needed
    )


def multiplied(left: tuple[Any, str], right: tuple[Any, str], needed: set[str]) -> tuple[Any, str]:
    """The product of two operands, summed over the shared labels that are not needed."""
    (x, xs), (y, ys) = left, right
    shared = [label for label in xs if label in ys]
    if any(x.shape[xs.index(label)] != y.shape[ys.index(label)] for label in shared):  # a size of 1 is broadcast
        x, y = stretched(x, xs, y, ys), stretched(y, ys, x, xs)
    batch = [label for label in shared if label in needed]
    inside = [label for label in shared if label not in needed]

    def axes(names: list[str]) -> tuple[Axes, Axes]:
        return tuple(xs.index(label) for label in names), tuple(ys.index(label) for label in names)

    product = contract(x, y, axes(inside), axes(batch))
    free = [label for label in xs + ys if label not in shared]
    return product, "".join(batch + free)


def stretched(x: Any, labels: str, other: Any, other_labels: str) -> Any:
    """The operand with the other one's sizes in place of its axes of size 1."""
    shape = [
        other.shape[other_labels.index(label)] if size == 1 and label in other_labels else size
        for label, size in zip(labels, x.shape, strict=True)
    ]
    return broadcast_to(x, shape)


def contraction_order(inputs: list[str], output: str, tracers: list[Any]) -> list[Axes]:
    """Which operands to multiply at each step; the product is put last."""
    if len(tracers) <= 2:
        return [tuple(range(len(tracers)))]
    ghosts = [np.broadcast_to(np.empty(()), tracer.shape) for tracer in tracers]
    path, _ = np.einsum_path(f"{','.join(inputs)}->{output}", *ghosts, optimize="greedy")
    steps: list[Axes] = []
    for step in path[1:]:
        steps.extend(pairwise(tuple(step), len(tracers) - sum(len(done) - 1 for done in steps)))
    return steps


def pairwise(step: Axes, count: int) -> list[Axes]:
    """A step that joins more than two operands, as steps of two: the last operand is the product so far."""
    if len(step) <= 2:
        return [step]
    first = step[:2]
    renumbered = tuple(k - sum(done < k for done in first) for k in step[2:])
    return [first, *pairwise((*renumbered, count - 2), count - 1)]


@numpy_rule("einsum_path")
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    subscripts, arrays = parse_einsum(operands)
    return np.einsum_path(subscripts, *(np.broadcast_to(np.empty(()), np.shape(x)) for x in arrays), optimize=optimize)
