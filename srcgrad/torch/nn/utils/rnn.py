"""Sequences of different lengths: padded to one tensor, or packed without padding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from srcgrad.torch.errors import TensorError, TensorTypeError, TensorValueError
from srcgrad.torch.ops.joining import cat
from srcgrad.torch.tensor import Tensor, wrapped

__all__ = [
    "PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence", "unpad_sequence",
]  # fmt: skip


class PackedSequence(NamedTuple):
    """Sequences, longest first, step by step: the first elements of all, the second ones of those that have one, ..."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Tensors (L, ...) of different lengths as one, (longest, N, ...) or (N, longest, ...)."""
    if padding_side not in ("left", "right"):
        raise TensorError(f'Expected padding_side to be one of "left" or "right", but got {padding_side}.')
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    if not isinstance(sequences, Iterable):
        raise TensorError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: " + str(type(sequences))
        )
    from srcgrad.torch.nn.functional.padding import pad
    from srcgrad.torch.ops.joining import stack

    parts = list(sequences)
    longest = max(part._data.shape[0] for part in parts)
    padded = []
    for part in parts:
        missing = longest - part._data.shape[0]
        widths = (0, 0) * (part._data.ndim - 1) + ((missing, 0) if padding_side == "left" else (0, missing))
        padded.append(pad(part, widths, value=padding_value) if missing else part)
    return stack(padded, 0 if batch_first else 1)  # type: ignore[no-any-return]


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded tensor."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(padded_sequences, lengths.tolist(), strict=True)]


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a padded tensor; ``enforce_sorted``: the sequences come longest first.

    Raises:
        TensorError: they do not, or a length is not positive.
    """
    sizes = np.asarray(lengths._data if isinstance(lengths, Tensor) else lengths, np.int64)
    order = None
    if not enforce_sorted:
        order = np.argsort(-sizes, kind="stable")
        sizes = sizes[order]
        input = input.index_select(0 if batch_first else 1, wrapped(order))
    if batch_first:
        input = input.transpose(0, 1)
    if not input._data.size:
        raise TensorError("Cannot pack empty tensors.")
    if sizes.shape != (input._data.shape[1],):
        raise TensorError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {sizes.size} "
            f"(batch_size={input._data.shape[1]})"
        )
    if sizes.min() <= 0:
        raise TensorError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if (np.diff(sizes) > 0).any():
        raise TensorError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not "
            "need ONNX exportability."
        )
    counts = (sizes[:, None] > np.arange(sizes[0])).sum(0)
    rows = cat([input[step, :count] for step, count in enumerate(counts.tolist())])
    if order is None:
        return PackedSequence(rows, wrapped(counts))
    return PackedSequence(rows, wrapped(counts), wrapped(order), wrapped(np.argsort(order)))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The padded tensor, and the lengths, of packed sequences, in their first order.

    Raises:
        TensorValueError: ``total_length`` is less than the longest one.
    """
    if not isinstance(sequence, PackedSequence):
        raise TensorTypeError(f"expected a PackedSequence, not {type(sequence).__name__}")
    counts = sequence.batch_sizes._data
    length = len(counts)
    if total_length is not None:
        if total_length < length:
            raise TensorValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {length}"
            )
        length = total_length
    lengths = (counts[:, None] > np.arange(counts[0])).sum(0)
    starts = np.cumsum(counts) - counts
    steps, examples = np.arange(length)[:, None], np.arange(counts[0])
    inside = steps < lengths
    places = np.where(inside, starts[np.minimum(steps, len(counts) - 1)] + examples, 0)
    found = sequence.data[wrapped(places)]
    mask = wrapped(~inside.reshape(*inside.shape, *(1,) * (found._data.ndim - 2)))
    found = found.masked_fill(mask, padding_value)
    sizes = wrapped(lengths)
    if sequence.unsorted_indices is not None:
        found = found.index_select(1, sequence.unsorted_indices)
        sizes = wrapped(lengths[sequence.unsorted_indices._data])
    return (found.transpose(0, 1) if batch_first else found), sizes


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Pack tensors of different lengths."""
    sizes = [sequence._data.shape[0] for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), sizes, enforce_sorted=enforce_sorted)
