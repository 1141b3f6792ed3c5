"""Scaled dot-product attention, and attention with several heads (Vaswani et al. 2017, arXiv:1706.03762)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from srcgrad.torch.dispatch import apply
from srcgrad.torch.errors import TensorError, TensorNotImplementedError
from srcgrad.torch.nn.functional.dropout import dropout
from srcgrad.torch.nn.functional.linear import linear
from srcgrad.torch.nn.functional.padding import pad
from srcgrad.torch.operation import Op
from srcgrad.torch.tensor import Tensor, wrapped

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]


def weights_of(query: Any, key: Any, *rest: Any) -> Any:
    """softmax(scale q k^T + mask) along the keys; a row that sees no key has weights 0."""
    *mask, scale, causal = rest
    scores = np.matmul(query * scale, key.swapaxes(-1, -2))
    if causal:
        seen = np.tril(np.ones(scores.shape[-2:], np.bool_))
        scores = np.where(seen, scores, -np.inf)
    if mask:
        scores = np.where(mask[0], scores, -np.inf) if mask[0].dtype.kind == "b" else scores + mask[0]
    top = scores.max(-1, keepdims=True)
    top = np.where(np.isinf(top), 0.0, top)
    powers = np.exp(scores - top)
    total = powers.sum(-1, keepdims=True)
    return powers / np.where(total == 0, 1.0, total)


def attention_of(query: Any, key: Any, value: Any, *rest: Any) -> Any:
    return np.matmul(weights_of(query, key, *rest), value)


FLASH = Op("scaled_dot_product_attention", "ScaledDotProductFlashAttentionForCpuBackward0", attention_of)
MATH = Op("scaled_dot_product_attention", "UnsafeViewBackward0", attention_of)
WEIGHTS = Op("attention_weights", "SoftmaxBackward0", weights_of)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(q k^T / sqrt(E) + mask) v: queries (..., L, E), keys (..., S, E), values (..., S, V).

    Args:
        attn_mask: added to the scores; of bools, true for what is seen.
        is_causal: query k sees the keys up to k.
        scale: in place of 1 / sqrt(E).

    Raises:
        TensorError: a mask and ``is_causal``, or tensors of fewer than two dimensions.
    """
    if is_causal and attn_mask is not None:
        raise TensorError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if min(query._data.ndim, key._data.ndim, value._data.ndim) < 2:
        raise TensorError(
            "scaled_dot_product_attention: Expected query, key, and value to all be at least 2 dimensional, but got "
            f"query dim: {query.ndim}, key dim: {key.ndim} and value dim: {value.ndim} instead."
        )
    if enable_gqa:
        times = query._data.shape[-3] // key._data.shape[-3]
        key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
    width = query._data.shape[-1]
    factor = 1 / math.sqrt(width) if scale is None else float(scale)
    operands = [query, key, value]
    masks = [] if attn_mask is None else [attn_mask]
    statics = (factor, bool(is_causal))
    if dropout_p > 0.0:
        weights = dropout(apply(WEIGHTS, [query, key, *masks], statics), dropout_p)
        return weights @ value
    op = FLASH if query._data.ndim == 4 else MATH
    return apply(op, [*operands, *masks], statics)  # type: ignore[no-any-return]


# --- several heads ------------------------------------------------------------------------------------
def projected(
    query: Tensor, key: Tensor, value: Tensor, weights: Any, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values through their linear maps: one weight for the three, or a weight each."""
    if isinstance(weights, Tensor):
        weights = weights.chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    found = [linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]
    return found[0], found[1], found[2]


def heads_of(x: Tensor, batch: int, heads: int) -> Tensor:
    """(L, N, E) to (N, heads, L, E / heads)."""
    return x.reshape(x._data.shape[0], batch, heads, -1).permute(1, 2, 0, 3)  # type: ignore[no-any-return]


def additive(mask: Tensor | None, like: Tensor, name: str) -> Tensor | None:
    """A mask as numbers that are added: -inf where a mask of bools is true.

    Raises:
        TensorError: it is neither of bools nor of floating-point numbers.
    """
    if mask is None:
        return None
    if mask._data.dtype.kind == "b":
        return wrapped(np.where(mask._data, -np.inf, 0.0).astype(like._data.dtype))
    if mask._data.dtype.kind != "f":
        raise TensorError(f"only bool and floating types of {name} are supported")
    return mask


def joined_mask(
    padding: Tensor | None, mask: Tensor | None, batch: int, heads: int, shape: tuple[int, int]
) -> Tensor | None:
    """The masks of what attends (L, S) or (N heads, L, S) and of keys (N, S) as one, for (N, heads, L, S)."""
    if mask is not None:
        given = mask._data.shape
        if len(given) == 3 and given != (batch * heads, *shape):
            raise TensorError(f"The shape of the 3D attn_mask is {given}, but should be {(batch * heads, *shape)}.")
        if len(given) == 2 and given != shape:
            raise TensorError(f"The shape of the 2D attn_mask is {given}, but should be {shape}.")
        if len(given) not in (2, 3):
            raise TensorError(f"attn_mask's dimension {len(given)} is not supported")
        mask = mask.reshape(batch, heads, *shape) if len(given) == 3 else mask.reshape(1, 1, *shape)
    if padding is None:
        return mask
    keys = padding.reshape(batch, 1, 1, shape[1])
    return keys if mask is None else mask + keys  # type: ignore[no-any-return]


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention with several heads, of (L, N, E) or (L, E): see `torch.nn.MultiheadAttention`.

    Returns:
        the result, and the weights if they are needed: their mean over the heads, or one set per head.

    Raises:
        TensorError: sizes that do not fit.
    """
    if static_k is not None or static_v is not None:
        raise TensorNotImplementedError("static_k and static_v", hint="use scaled_dot_product_attention")
    if is_causal and attn_mask is None:
        raise TensorError(
            "Need attn_mask if specifying the is_causal hint.", hint="torch.full((L, L), float('-inf')).triu(1)"
        )
    batched = query._data.ndim == 3
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch = require_sizes(query, key, value, embed_dim_to_check)
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight
    q, k, v = projected(query, key, value, weights, in_proj_bias)
    mask = additive(attn_mask, q, "attn_mask")
    padding = additive(key_padding_mask, q, "key_padding_mask")
    given = k._data.shape[0]
    k, v = with_added_rows(k, v, bias_k, bias_v, add_zero_attn)
    if added := k._data.shape[0] - given:
        mask = None if mask is None else pad(mask, (0, added))
        padding = None if padding is None else pad(padding, (0, added))
    whole = joined_mask(padding, mask, batch, num_heads, (length, k._data.shape[0]))
    q, k, v = (heads_of(x, batch, num_heads) for x in (q, k, v))
    rate = dropout_p if training else 0.0
    found_weights = weighted(q, k, whole, rate) if need_weights else None
    found = scaled_dot_product_attention(q, k, v, whole, rate) if found_weights is None else found_weights @ v
    found = linear(found.permute(2, 0, 1, 3).reshape(length, batch, -1), out_proj_weight, out_proj_bias)
    if found_weights is not None and average_attn_weights:
        found_weights = found_weights.mean(1)
    if batched:
        return found, found_weights
    return found.squeeze(1), None if found_weights is None else found_weights.squeeze(0)


def require_sizes(query: Tensor, key: Tensor, value: Tensor, width: int) -> tuple[int, int]:
    """The number of queries and the batch size.

    Raises:
        AssertionError: the sizes do not fit.
    """
    length, batch, found = query._data.shape
    if found != width:
        raise AssertionError(f"was expecting embedding dimension of {width}, but got {found}")
    if key._data.shape[:2] != value._data.shape[:2]:
        raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    return length, batch


def weighted(q: Tensor, k: Tensor, mask: Tensor | None, rate: float) -> Tensor:
    """The attention weights of each head, some of them dropped."""
    statics = (1 / math.sqrt(q._data.shape[-1]), False)
    return dropout(apply(WEIGHTS, [q, k, *([] if mask is None else [mask])], statics), rate)


def with_added_rows(
    k: Tensor, v: Tensor, bias_k: Tensor | None, bias_v: Tensor | None, zeros: bool
) -> tuple[Tensor, Tensor]:
    """Keys and values with one more row of the biases, if there are two, and one of zeros, if so wanted."""
    if bias_k is not None and bias_v is not None:
        batch = k._data.shape[1]
        k, v = with_row(k, bias_k, batch), with_row(v, bias_v, batch)
    if zeros:
        k, v = pad(k, (0, 0, 0, 0, 0, 1)), pad(v, (0, 0, 0, 0, 0, 1))
    return k, v


def with_row(x: Tensor, row: Tensor, batch: int) -> Tensor:
    """(S, N, E) with one more row, the same for each example."""
    from srcgrad.torch.ops.joining import cat

    return cat([x, row.repeat(1, batch, 1)])  # type: ignore[no-any-return]
