"""What NumPy refuses, in PyTorch's words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from srcgrad.errors import SrcgradError
from srcgrad.torch.errors import TensorError, TensorIndexError, TensorTypeError

if TYPE_CHECKING:
    from srcgrad.torch.operation import Op
    from srcgrad.torch.tensor import Tensor

BROADCAST = re.compile("could not be broadcast|could not broadcast|shape mismatch")


def explained(op: Op, operands: Sequence[Tensor], error: Exception) -> Exception:
    """The facade's error for what an operation's function raised."""
    if isinstance(error, SrcgradError) and isinstance(error, RuntimeError):
        return error
    text = str(error.args[0]) if error.args else str(error)
    if BROADCAST.search(text):
        found = size_mismatch([tuple(operand._data.shape) for operand in operands])
        if found is not None:
            return TensorError(found)
    kind: Any = TensorIndexError if isinstance(error, IndexError) else TensorError
    kind = TensorTypeError if isinstance(error, TypeError) else kind
    return kind(f"{op.name}: {text}")  # type: ignore[no-any-return]


def size_mismatch(shapes: Sequence[tuple[int, ...]]) -> str | None:
    """The sentence about the last dimension in which shapes do not broadcast."""
    rank = max(map(len, shapes))
    for axis in range(rank - 1, -1, -1):
        sizes = [shape[axis - rank + len(shape)] for shape in shapes if axis - rank + len(shape) >= 0]
        wide = [size for size in sizes if size != 1]
        if any(size != wide[0] for size in wide):
            other = next(size for size in wide if size != wide[0])
            return (
                f"The size of tensor a ({wide[0]}) must match the size of tensor b ({other}) "
                f"at non-singleton dimension {axis}"
            )
    return None
