"""Linear maps, and the rows of a table: linear, bilinear, embedding, one_hot."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.torch.dispatch import apply, named
from srcgrad.torch.errors import (
    TensorError,
    TensorIndexError,
    TensorNotImplementedError,
    TensorTypeError,
    TensorValueError,
)
from srcgrad.torch.graph import moved_on
from srcgrad.torch.modes import MODE
from srcgrad.torch.operation import Op, analytic
from srcgrad.torch.tensor import Tensor, wrapped

__all__ = ["bilinear", "embedding", "embedding_bag", "linear", "one_hot"]


def affine(bias: Any, x: Any, weight: Any) -> Any:
    return x @ weight.T + bias


def product(x: Any, weight: Any) -> Any:
    return x @ weight.T


def product_backward(cotangent: Any, result: Any, x: Any, weight: Any) -> Any:
    """The cotangent of the weight is computed in its own layout, (out, in)."""
    rows = cotangent.reshape(-1, weight.shape[0]) if weight.ndim == 2 else cotangent.reshape(-1, 1)
    by_weight = (rows.T @ x.reshape(-1, x.shape[-1])).reshape(weight.shape)
    return (rows @ weight.reshape(-1, x.shape[-1])).reshape(x.shape), by_weight


def affine_backward(cotangent: Any, result: Any, bias: Any, x: Any, weight: Any) -> Any:
    by_bias = cotangent.sum(tuple(range(cotangent.ndim - bias.ndim))) if cotangent.ndim > bias.ndim else cotangent
    return by_bias, *product_backward(cotangent, None, x, weight)


ADDMM = Op("addmm", "AddmmBackward0", affine, pullback=analytic(affine_backward))
MM = Op("mm", "MmBackward0", product, pullback=analytic(product_backward))
ADDMM_VIEW = Op("linear", "ViewBackward0", affine, pullback=analytic(affine_backward))
MM_VIEW = Op("linear", "UnsafeViewBackward0", product, pullback=analytic(product_backward))
MV = Op("linear", "SqueezeBackward4", product, pullback=analytic(product_backward))


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b: ``input`` (..., in), ``weight`` (out, in) or (in,), ``bias`` (out,).

    Raises:
        TensorError: the sizes or the dtypes do not fit.
    """
    x, w = input._data, weight._data
    if (x.dtype is not w.dtype and x.dtype != w.dtype) or not x.ndim or x.shape[-1] != w.shape[-1]:
        refuse(x, w)
    if bias is None:
        return apply(MM if x.ndim == 2 else MV if x.ndim == 1 else MM_VIEW, (input, weight))  # type: ignore[no-any-return]
    return apply(ADDMM if x.ndim == 2 else ADDMM_VIEW, (bias, input, weight))  # type: ignore[no-any-return]


def refuse(x: Any, w: Any) -> None:
    """Raise what PyTorch says of operands that do not fit."""
    if not x.ndim:
        raise TensorError("both arguments to linear need to be at least 1D, but they are 0D and 2D")
    if x.shape[-1] != w.shape[-1]:
        rows = x.size // x.shape[-1] if x.shape[-1] else 0
        columns = "x".join(map(str, w.shape[::-1]))
        raise TensorError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{x.shape[-1]} and {columns})")
    raise TensorError(f"mat1 and mat2 must have the same dtype, but got {named(x.dtype)} and {named(w.dtype)}")


def trilinear(x: Any, weight: Any, y: Any) -> Any:
    """sum over i, j of x[..., i] w[k, i, j] y[..., j]."""
    rows = np.matmul(x[..., None, None, :], weight)[..., 0, :]
    return np.matmul(rows, y[..., :, None])[..., 0]


def trilinear_with_bias(bias: Any, x: Any, weight: Any, y: Any) -> Any:
    return trilinear(x, weight, y) + bias


BILINEAR = Op("bilinear", "ViewBackward0", trilinear)
BILINEAR_WITH_BIAS = Op("bilinear", "AddBackward0", trilinear_with_bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x1^T W[k] x2 + b[k] for each k: inputs (..., in1) and (..., in2), ``weight`` (out, in1, in2)."""
    x, y, w = input1._data, input2._data, weight._data
    if x.ndim != y.ndim:
        raise TensorError(f"bilinear(): input dimensions do not match: got {x.ndim} and {y.ndim}")
    if x.shape[:-1] != y.shape[:-1]:
        axis = next(k for k, (n, m) in enumerate(zip(x.shape, y.shape, strict=True)) if n != m)
        raise TensorError(
            f"bilinear(): input batch dimensions do not match at dim {axis}: got {x.shape[axis]} and {y.shape[axis]}"
        )
    for k, given in ((1, x), (2, y)):
        if given.shape[-1] != w.shape[k]:
            raise TensorError(
                f"bilinear(): input{k} size does not match weight size: got {given.shape[-1]} but expected {w.shape[k]}"
            )
    if bias is None:
        return apply(BILINEAR, (input1, weight, input2))  # type: ignore[no-any-return]
    return apply(BILINEAR_WITH_BIAS, (bias, input1, weight, input2))  # type: ignore[no-any-return]


def rows_of(weight: Any, index: Any, padding_idx: int | None, by_frequency: bool) -> Any:
    return weight[index]


def rows_backward(
    cotangent: Any, result: Any, weight: Any, index: Any, padding_idx: int | None, by_frequency: bool
) -> Any:
    """Rows added to the rows they came from; none to the padding row."""
    found = np.zeros_like(weight)
    if by_frequency:
        counts = np.zeros_like(weight, shape=weight.shape[:1])
        np.add.at(counts, index, 1.0)
        cotangent = cotangent / counts[index][..., None]
    if padding_idx is not None:
        cotangent = np.where((index == padding_idx)[..., None], 0.0, cotangent)
    np.add.at(found, index, cotangent)
    return found, np.zeros(index.shape)


EMBEDDING = Op("embedding", "EmbeddingBackward0", rows_of, pullback=rows_backward, quiet=True)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of ``weight`` that integers name; the result has the shape of ``input`` and one dimension more.

    Args:
        padding_idx: the row that gets no gradient.
        max_norm: rows that are used and whose norm (of ``norm_type``) is larger are first scaled down, in place.
        scale_grad_by_freq: gradients are divided by how often their row is used.

    Raises:
        TensorIndexError: an index out of range. TensorNotImplementedError: ``sparse``.
    """
    if sparse:
        raise TensorNotImplementedError("gradients here are dense arrays", hint="leave sparse=True out")
    index, table = input._data, weight._data
    if index.dtype.kind != "i" or index.dtype.itemsize < 4:
        raise TensorError(
            f"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{named(index.dtype)}Tensor instead (while checking arguments for embedding)"
        )
    if table.ndim != 2:
        raise TensorError("'weight' must be 2-D")
    count = table.shape[0]
    if padding_idx is not None:
        if not -count <= padding_idx < count:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= count
    if isinstance(index, np.ndarray) and (index.astype(np.int64, copy=False).view(np.uint64) >= count).any():
        raise TensorIndexError("index out of range in self", hint=f"indices go from 0 to {count - 1}")
    if max_norm is not None:
        shrink_rows(weight, index, max_norm, norm_type)
    return apply(EMBEDDING, (weight, input), (padding_idx, scale_grad_by_freq))  # type: ignore[no-any-return]


def shrink_rows(weight: Tensor, index: Any, max_norm: float, norm_type: float) -> None:
    """Scale down the rows in use whose norm is too large."""
    if MODE.get().grad and weight.requires_grad and not weight.is_leaf:
        raise TensorError("embedding with max_norm changes weight in place, which must be a leaf")
    rows = np.unique(index)
    with np.errstate(all="ignore"):
        norms = np.linalg.norm(weight._data[rows], norm_type, axis=-1)
        large = norms > max_norm
        if not large.any():
            return
        weight._data[rows[large]] *= (max_norm / (norms[large] + 1e-7))[:, None].astype(weight._data.dtype)
    moved_on(weight._counter)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Integers as rows of zeros with a 1 at their place; as many places as the largest needs unless given.

    Raises:
        TensorError: an integer that is negative, or too large.
    """
    index = tensor._data
    if index.dtype != np.int64:
        raise TensorError(f"one_hot is only applicable to index tensor of type LongTensor, not {tensor.dtype}")
    if isinstance(num_classes, bool) or not isinstance(num_classes, int):
        raise TensorTypeError(f"one_hot(): argument 'num_classes' must be int, not {type(num_classes).__name__}")
    if num_classes < -1 or (num_classes == 0 and index.size):
        raise TensorError("num_classes should be positive")
    if not index.size:
        if num_classes <= 0:
            raise TensorError("Can not infer total number of classes from empty tensor.")
        return wrapped(np.zeros((*index.shape, num_classes), np.int64))
    if index.min() < 0:
        raise TensorError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(index.max()) + 1
    elif index.max() >= num_classes:
        raise TensorError("Class values must be smaller than num_classes.")
    return wrapped((index[..., None] == np.arange(num_classes)).astype(np.int64))


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sums, means or maxima of bags of rows; an empty bag gives zeros.

    Args:
        input: integers (bags, length), or of all bags one after the other, with ``offsets`` where each begins.
        mode: sum, mean or max.
        per_sample_weights: factors of the rows, of the shape of ``input``; with sum only.
        include_last_offset: the last offset is where the last bag ends.
        padding_idx: rows of this number are left out.
    """
    if mode not in ("sum", "mean", "max"):
        raise TensorValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise TensorNotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    given = input._data
    if given.ndim == 2:
        if offsets is not None:
            raise TensorValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        starts = np.arange(given.shape[0]) * given.shape[1]
    elif given.ndim == 1:
        if offsets is None:
            raise TensorValueError("offsets has to be a 1D Tensor but got None")
        starts = offsets._data[:-1] if include_last_offset else offsets._data
    else:
        raise TensorValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {given.ndim}")
    kept = np.ones(given.size, bool) if padding_idx is None else given.reshape(-1) != padding_idx % len(weight._data)
    bag = (np.searchsorted(starts, np.arange(given.size), "right") - 1)[kept]
    flat = input.reshape(-1)[wrapped(np.flatnonzero(kept))]
    rows: Any = embedding(flat, weight, None, max_norm, norm_type, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1)[wrapped(np.flatnonzero(kept))].unsqueeze(-1)
    found: Any = wrapped(np.zeros_like(rows._data, shape=(len(starts), weight._data.shape[1])))
    places = wrapped(bag)
    if mode == "max":
        return found.scatter_reduce(0, places.unsqueeze(-1).expand_as(rows), rows, "amax", include_self=False)  # type: ignore[no-any-return]
    found = found.index_add(0, places, rows)
    if mode == "mean":
        counts = np.maximum(np.bincount(bag, minlength=len(starts)), 1).astype(weight._data.dtype)
        found = found / wrapped(counts).unsqueeze(-1)
    return found  # type: ignore[no-any-return]
