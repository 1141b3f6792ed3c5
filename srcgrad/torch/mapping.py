"""`torch.vmap`: a function of one example, over a dimension of examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import numpy as np

import srcgrad.api as api
from srcgrad.errors import StructureError
from srcgrad.torch.errors import TensorError, TensorIndexError, TensorValueError
from srcgrad.torch.modes import MAPPING
from srcgrad.torch.outermost import Taken, flat, lifted_args, ordered, outermost, taken
from srcgrad.torch.tensor import Tensor, wrapped
from srcgrad.tracing.pytree import broadcast_prefix
from srcgrad.tracing.tracer import Tracer

Fn = Callable[..., Any]


def check_randomness(randomness: str) -> None:
    """Raise unless it is known."""
    if randomness not in ("error", "different", "same"):
        raise TensorError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")


def vmap(
    func: Fn, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Fn:
    """A function that maps ``func`` over a dimension of its arguments.

    Args:
        func: a function of pytrees of tensors, of one example.
        in_dims: the dimension of each argument: an int for all, or a tuple with an entry per argument, each an int,
            None (the same for all examples) or a pytree prefix.
        out_dims: where the dimension goes in the outputs: an int, or a pytree prefix of them.
        randomness: ``"error"``: random numbers cannot be drawn inside. ``"same"``: all examples have the same ones.
            ``"different"``: each has its own, and they are run one after the other.
        chunk_size: how many examples at once; all if it is None.

    Raises (when called):
        TensorValueError: dimensions that do not fit.

    >>> import srcgrad.torch as torch
    >>> torch.vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2))
    tensor([2., 2., 2.])
    """
    check_randomness(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise TensorValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        dims = input_dims(func, in_dims, args)
        size = batch_size(dims, args)
        chunk = size if chunk_size is None else chunk_size
        if randomness == "different":
            chunk = 1
        forbids = int(randomness == "error")
        if chunk >= size:
            return outermost(partial(mapped, func, dims, out_dims, args, kwargs, forbids), "vmap")
        return in_chunks(func, dims, out_dims, args, kwargs, forbids, size, chunk)

    return wrapper


def function_name(func: Fn) -> str:
    return getattr(func, "__name__", repr(func))


def input_dims(func: Fn, in_dims: Any, args: tuple[Any, ...]) -> list[int | None]:
    """A dimension per leaf of the arguments.

    Raises:
        TensorValueError: they do not fit.
    """
    name = function_name(func)
    start = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise TensorValueError(
            f"{start}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            "got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise TensorValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    leaves, tree = flat(args)
    try:
        dims = broadcast_prefix(arranged(in_dims, args), tree)
    except StructureError as error:
        raise TensorValueError(
            f"{start}in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{flat(in_dims)[1]!r} but inputs has structure {tree!r}."
        ) from error
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise TensorValueError(
                f"{start}Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise TensorValueError(
                f"{start}Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise TensorValueError(
                f"{start}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {leaf.dim()} so "
                f"expected in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
    return dims


def arranged(prefix: Any, tree: Any) -> Any:
    """A prefix whose dictionaries have the key order of those of the tree."""
    if type(prefix) is dict and type(tree) is dict and prefix.keys() == tree.keys():
        return ordered({name: arranged(prefix[name], value) for name, value in tree.items()})
    if type(prefix) is type(tree) and type(prefix) in (list, tuple) and len(prefix) == len(tree):
        return type(prefix)(arranged(part, value) for part, value in zip(prefix, tree, strict=True))
    return ordered(prefix)


def batch_size(dims: Sequence[int | None], args: tuple[Any, ...]) -> int:
    """How many examples there are.

    Raises:
        TensorValueError: arguments differ in this, or none is mapped.
    """
    leaves = flat(args)[0]
    sizes = [leaf._data.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise TensorValueError("vmap: at least one input must have an in_dim that is not None")
    if any(size != sizes[0] for size in sizes):
        raise TensorValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return int(sizes[0])


def mapped(
    func: Fn,
    dims: Sequence[int | None],
    out_dims: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    forbids: int,
) -> Any:
    """The function over all examples; ``forbids``: 1 where it must not draw random numbers, else 0."""
    leaves, tree = flat(lifted_args(args))
    places = [k for k, dim in enumerate(dims) if dim is not None]
    axes: Any = tuple(dims[k] for k in places)
    kept: list[Any] = []
    wanted: list[int | None] = []

    def example(*arrays: Any) -> Any:
        given = list(leaves)
        for k, array in zip(places, arrays, strict=True):
            given[k] = wrapped(array)
        token = MAPPING.set(MAPPING.get() + forbids)
        try:
            found = taken(func(*tree.unflatten(given), **kwargs))
        finally:
            MAPPING.reset(token)
        wanted[:] = output_dims(func, out_dims, found)
        kept[:] = [found.emptied()]
        return tuple(found.arrays)

    # One program per layout of the outputs: they all come in front, and are moved afterwards.
    results = api.vmap(example, in_axes=axes)(*[leaves[k]._data for k in places])
    found = kept[0]
    name = function_name(func)
    return found.put([moved(x, wanted[k], name) for k, x in zip(found.places, results, strict=True)])


def output_dims(func: Fn, out_dims: Any, found: Taken) -> list[int | None]:
    """A dimension per leaf of the output.

    Raises:
        TensorValueError: they are no ints or do not fit, or a leaf that is no tensor has one.
    """
    name = function_name(func)
    if found.tree.kind is None and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    for dim in flat(out_dims)[0]:
        if type(dim) is not int:
            raise TensorValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of "
                "ints representing where in the outputs the vmapped dimension should appear."
            )
    try:
        wanted: list[int | None] = broadcast_prefix(ordered(out_dims), found.tree)
    except StructureError as error:
        raise TensorValueError(
            f"vmap({name}, ..., out_dims={out_dims}): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {flat(out_dims)[1]!r} but outputs has structure {found.tree!r}."
        ) from error
    for leaf, dim in zip(found.leaves, wanted, strict=True):
        if dim is not None and not isinstance(leaf, Tensor):
            raise TensorValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type "
                f"{type(leaf)}. Did you mean to set out_dims= to None for output?"
            )
    return wanted


def moved(array: Any, dim: int | None, name: str) -> Any:
    """A result with its dimension of examples where it is wanted.

    Raises:
        TensorValueError: it is to have none, and the examples differ. TensorIndexError: there is no such place.
    """
    if dim is None:
        number = array.number() if isinstance(array, Tracer) else array
        if number is not None and not np.array_equal(number, np.broadcast_to(number[:1], number.shape), equal_nan=True):
            raise TensorValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None",
                hint="out_dims=0 puts the examples in front",
            )
        return array[0]
    if not -array.ndim <= dim < array.ndim:
        raise TensorIndexError(
            f"Dimension out of range (expected to be in range of [-{array.ndim}, {array.ndim - 1}], but got {dim})"
        )
    return np.moveaxis(array, 0, dim) if dim else array


def in_chunks(
    func: Fn,
    dims: Sequence[int | None],
    out_dims: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    forbids: int,
    size: int,
    chunk: int,
) -> Any:
    from srcgrad.torch import cat

    leaves, tree = flat(args)
    parts = []
    for start in range(0, size, chunk):
        length = min(chunk, size - start)
        given = [
            leaf if dim is None else leaf.narrow(dim, start, length) for leaf, dim in zip(leaves, dims, strict=True)
        ]
        some = tree.unflatten(given)
        parts.append(flat(outermost(partial(mapped, func, dims, out_dims, some, kwargs, forbids), "vmap")))
    first, structure = parts[0]
    wanted = output_dims(func, out_dims, Taken(first, structure, []))
    columns = zip(*[found for found, _ in parts], strict=True)
    return structure.unflatten(
        [column[0] if dim is None else cat(column, dim) for column, dim in zip(columns, wanted, strict=True)]
    )
