"""Losses of classes: negative log-likelihood, cross entropy, binary cross entropy, margins between classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.torch.dispatch import apply
from srcgrad.torch.errors import TensorError, TensorIndexError, TensorValueError
from srcgrad.torch.nn.functional.activations import logsigmoid
from srcgrad.torch.nn.functional.reduction import as_reduction, reduced, reduction_of
from srcgrad.torch.operation import Op
from srcgrad.torch.tensor import Tensor, wrapped

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "multi_margin_loss",
    "multilabel_soft_margin_loss", "nll_loss", "soft_margin_loss",
]  # fmt: skip


# --- negative log-likelihood ------------------------------------------------------------------------
def class_weights(target: Any, rest: tuple[Any, ...], like: Any) -> tuple[Any, tuple[Any, ...]]:
    """The weight of each target (0 for those that are ignored, None where all are 1), and the static arguments."""
    *given, reduction, ignored, masked = rest
    weight = None
    if given:
        weight = given[0][np.where(target == ignored, 0, target) if masked else target]
    if masked:
        kept = target != ignored
        weight = kept.astype(like.dtype) if weight is None else np.where(kept, weight, 0.0)
    return weight, (reduction, ignored, masked)


def nll_of(scores: Any, target: Any, *rest: Any) -> Any:
    """-w[t] x[t]: their sum, their mean by weight, or each. ``scores`` (N, C, ...) or (C,), ``target`` without C."""
    weight, (reduction, ignored, masked) = class_weights(target, rest, scores)
    axis = min(scores.ndim - 1, 1)
    places = np.where(target == ignored, 0, target) if masked else target
    losses = -np.take_along_axis(scores, np.expand_dims(places, axis), axis).reshape(target.shape)
    if weight is not None:
        losses = np.where(weight == 0, 0.0, losses * weight)
    if reduction == "none":
        return losses
    total = losses.sum()
    if reduction == "mean":
        total = total / (target.size if weight is None else weight.sum())
    return total


def nll_backward(cotangent: Any, result: Any, scores: Any, target: Any, *rest: Any) -> Any:
    weight, (reduction, _, _) = class_weights(target, rest, scores)
    axis = min(scores.ndim - 1, 1)
    if reduction == "mean":
        cotangent = cotangent / (target.size if weight is None else weight.sum())
    factor = -cotangent if weight is None else -cotangent * weight
    if np.shape(factor):
        factor = np.expand_dims(factor, axis)
    classes = np.arange(scores.shape[axis]).reshape((-1,) + (1,) * (scores.ndim - 1 - axis))
    found = np.where(np.expand_dims(target, axis) == classes, factor, 0.0)
    return (found, target, *map(np.zeros_like, rest[:-3]))  # weights have no gradient: they come detached


NLL = Op("nll_loss", "NllLossBackward0", nll_of, pullback=nll_backward)
NLL_2D = Op("nll_loss2d", "NllLoss2DBackward0", nll_of, pullback=nll_backward)
NLL_ND = Op("nll_loss_nd", "ViewBackward0", nll_of, pullback=nll_backward)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-x[target]: log-probabilities (N, C, ...) or (C,), classes (N, ...) or ().

    Args:
        weight: a factor per class; the mean is weighted by them.
        ignore_index: targets of this value do not count.

    Raises:
        TensorIndexError: a class out of range. TensorValueError: sizes that differ.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    scores, classes = input._data, target._data
    if classes.dtype.kind not in "iu":
        raise TensorError(
            f"expected scalar type Long but found {target.dtype}", hint="classes are integers: target.long()"
        )
    check_sizes(scores, classes)
    count = scores.shape[min(scores.ndim - 1, 1)]
    masked = not isinstance(classes, np.ndarray)
    if not masked:
        outside = classes.astype(np.int64, copy=False).view(np.uint64) >= count
        if outside.any():
            masked = True
            wrong = classes[outside & (classes != ignore_index)]
            if wrong.size:
                raise TensorIndexError(
                    f"Target {wrong.flat[0]} is out of bounds.", hint=f"classes are 0 to {count - 1}"
                )
        elif 0 <= ignore_index < count:
            masked = True
    operands = [input, target]
    if weight is not None:
        if weight._data.shape != (count,):
            raise TensorError(
                f"weight tensor should be defined either for all {count} classes or no classes but got weight tensor "
                "of "
                f"shape: {list(weight._data.shape)}"
            )
        if weight.requires_grad:
            raise TensorError("the derivative for 'weight' is not implemented", hint="pass weight.detach()")
        operands.append(weight)
    op = NLL if scores.ndim <= 2 else NLL_2D if scores.ndim == 4 or reduction != "none" else NLL_ND
    return apply(op, operands, (reduction, ignore_index, masked))  # type: ignore[no-any-return]


def check_sizes(scores: Any, classes: Any) -> None:
    if scores.ndim == 0:
        raise TensorValueError(f"Expected 1 or more dimensions (got {scores.ndim})")
    if scores.ndim == 1:
        if classes.ndim > 0:
            raise TensorError("size mismatch (got input: " + f"{list(scores.shape)}, target: {list(classes.shape)})")
        return
    if scores.shape[0] != (classes.shape[0] if classes.ndim else 1):
        batch = classes.shape[0] if classes.ndim else 1
        raise TensorValueError(f"Expected input batch_size ({scores.shape[0]}) to match target batch_size ({batch}).")
    if classes.shape != (scores.shape[0], *scores.shape[2:]):
        raise TensorError(f"Expected target size {[scores.shape[0], *scores.shape[2:]]}, got {list(classes.shape)}")


# --- cross entropy ------------------------------------------------------------------------------------
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """`nll_loss` of the log-softmax of ``input``: (N, C, ...) or (C,).

    Args:
        target: classes (N, ...), or probabilities of ``input``'s shape.
        weight: a factor per class.
        label_smoothing: this much of the probability is spread evenly over the classes.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise TensorError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    rank = input._data.ndim
    if not rank:
        raise TensorValueError("Expected 1 or more dimensions (got 0)", hint="input is (N, C) or (C,)")
    axis = min(rank - 1, 1)
    if target._data.dtype.kind == "f" and target._data.shape == input._data.shape:
        return of_probabilities(input.log_softmax(axis), target, weight, reduction, label_smoothing, axis)
    if target._data.dtype.kind == "f":
        raise TensorError(
            f"expected scalar type Long but found {target.dtype}",
            hint="a target of classes is an integer tensor; one of probabilities has the input's shape",
        )
    scores = input.log_softmax(axis)
    found = nll_loss(scores, target, weight, ignore_index=ignore_index, reduction=reduction)
    if not label_smoothing:
        return found
    return smoothed(found, scores, target, weight, ignore_index, reduction, label_smoothing, axis)


DIVIDED = Op("div", "DivBackward1", np.true_divide)


def of_probabilities(
    scores: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float, axis: int
) -> Tensor:
    count = scores._data.shape[axis]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / count
    products = scores * target
    if weight is not None:
        products = products * weight.reshape((-1,) + (1,) * (scores._data.ndim - 1 - axis))
    if reduction == "none":
        return -products.sum(axis)  # type: ignore[no-any-return]
    total = -products.sum()
    if reduction == "sum":
        return total  # type: ignore[no-any-return]
    return apply(DIVIDED, (total,), (scores._data.size // max(count, 1),))  # type: ignore[no-any-return]


def smoothed(
    found: Tensor,
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    smoothing: float,
    axis: int,
) -> Tensor:
    """The loss of classes, and that of even probabilities."""
    classes, count = target._data, scores._data.shape[axis]
    if weight is None:
        even = -scores.sum(axis)
    else:
        even = -(scores * weight.reshape((-1,) + (1,) * (scores._data.ndim - 1 - axis))).sum(axis)
    ignored = classes == ignore_index
    if ignored.any():
        even = even.masked_fill(wrapped(ignored), 0.0)
    if reduction == "mean":
        counted: Any = float(classes.size - np.count_nonzero(ignored))
        even = even.sum() / (counted if weight is None else weight[wrapped(classes[~ignored])].sum())
    elif reduction == "sum":
        even = even.sum()
    return found * (1 - smoothing) + even * (smoothing / count)  # type: ignore[no-any-return]


# --- two classes --------------------------------------------------------------------------------------
def logarithms(x: Any) -> tuple[Any, Any]:
    """log(x) and log(1 - x), each at least -100."""
    return np.maximum(np.log(x), -100.0), np.maximum(np.log1p(-x), -100.0)


def bce_of(x: Any, target: Any, *rest: Any) -> Any:
    *weight, reduction = rest
    of_one, of_zero = logarithms(x)
    losses = (target - 1) * of_zero - target * of_one
    return reduced(losses * weight[0] if weight else losses, reduction)


def bce_backward(cotangent: Any, result: Any, x: Any, target: Any, *rest: Any) -> Any:
    """(x - t) / (x (1 - x)), the denominator at least 1e-12."""
    *weight, reduction = rest
    if reduction == "mean":
        cotangent = cotangent / x.size
    of_one, of_zero = logarithms(x)
    by_weight = [cotangent * ((target - 1) * of_zero - target * of_one) for _ in weight]
    if weight:
        cotangent = cotangent * weight[0]
    by_x = cotangent * (x - target) / np.maximum((1 - x) * x, 1e-12)
    return (by_x, cotangent * (of_zero - of_one), *by_weight)


def logits_of(x: Any, target: Any, *rest: Any) -> Any:
    """(1 - t) x + (1 + (p - 1) t) log(1 + exp(-x)), times the weight."""
    *factors, has_weight, has_positive, reduction = rest
    scale = (factors[-1] - 1) * target + 1 if has_positive else 1.0
    losses = (1 - target) * x + scale * np.logaddexp(0.0, -x)
    return reduced(losses * factors[0] if has_weight else losses, reduction)


BCE = Op("binary_cross_entropy", "BinaryCrossEntropyBackward0", bce_of, pullback=bce_backward)
BCE_WITH_LOGITS = Op("binary_cross_entropy_with_logits", "BinaryCrossEntropyWithLogitsBackward0", logits_of)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(t log(x) + (1 - t) log(1 - x)) of probabilities; logarithms are at least -100.

    Raises:
        TensorValueError: sizes that differ. TensorError: an input outside of [0, 1].
    """
    reduction = reduction_of(reduction, size_average, reduce)
    x, t = input._data, target._data
    if x.shape != t.shape:
        raise TensorValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if x.dtype != t.dtype:
        raise TensorError(f"Found dtype {target.dtype} but expected {input.dtype}")
    if isinstance(x, np.ndarray) and not ((x >= 0) & (x <= 1)).all():
        raise TensorError("all elements of input should be between 0 and 1", hint="use the loss with logits")
    operands = [input, target]
    if weight is not None:
        operands.append(weight.detach().expand(x.shape))
    return apply(BCE, operands, (reduction,))  # type: ignore[no-any-return]


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of sigmoid(x), computed without it.

    Args:
        weight: a factor per element. pos_weight: a factor of the positive class.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if target._data.shape != input._data.shape:
        raise TensorValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    factors = [factor for factor in (weight, pos_weight) if factor is not None]
    statics = (weight is not None, pos_weight is not None, reduction)
    return apply(BCE_WITH_LOGITS, [input, target, *factors], statics)  # type: ignore[no-any-return]


def soft_margin_of(x: Any, target: Any, reduction: str) -> Any:
    return reduced(np.logaddexp(0.0, -target * x), reduction)


SOFT_MARGIN = Op("soft_margin_loss", "SoftMarginLossBackward0", soft_margin_of)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-t x)), with targets 1 and -1."""
    reduction = reduction_of(reduction, size_average, reduce)
    return apply(SOFT_MARGIN, (input, target), (reduction,))  # type: ignore[no-any-return]


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the classes of the binary cross entropy of logits (N, C)."""
    reduction = reduction_of(reduction, size_average, reduce)
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    return as_reduction(losses.sum(-1) / input._data.shape[-1], reduction)


def multi_margin_of(x: Any, target: Any, *rest: Any) -> Any:
    *weight, p, margin, reduction = rest
    each = target.shape
    x, target = x.reshape(-1, x.shape[-1] if x.ndim else 1), target.reshape(-1)
    places = target[..., None]
    chosen = np.take_along_axis(x, places, -1)
    gaps = margin - chosen + x
    above = (gaps > 0) & (np.arange(x.shape[-1]) != places)
    losses = np.where(above, gaps, 0.0)
    if p == 2:
        losses = losses * losses
    if weight:
        losses = losses * weight[0][target][..., None]
    return reduced((losses.sum(-1) / x.shape[-1]).reshape(each), reduction)


MULTI_MARGIN = Op("multi_margin_loss", "MultiMarginLossBackward0", multi_margin_of)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the other classes j of max(0, margin - x[t] + x[j])^p."""
    reduction = reduction_of(reduction, size_average, reduce)
    if p not in (1, 2):
        raise TensorValueError("only p == 1 and p == 2 supported")
    operands = [input, target] if weight is None else [input, target, weight.detach()]
    return apply(MULTI_MARGIN, operands, (p, margin, reduction))  # type: ignore[no-any-return]
