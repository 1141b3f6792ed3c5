"""What may be written in place, and what PyTorch says of what may not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from srcgrad.torch.errors import AutogradError, TensorError
from srcgrad.torch.modes import MODE
from srcgrad.torch.tensor import Tensor

MULTIPLE: Final = 1
UNRECORDED: Final = 2
INFERENCE: Final = 3
"""How a view came about that must not be changed in place: as one of several, without recording, in inference mode."""


def refuse_write(tensor: Tensor, *others: Any) -> None:
    """Raise unless the tensor may be changed in place together with the others: asked before arguments are read."""
    if MODE.get().grad and any(isinstance(x, Tensor) and x.requires_grad for x in (tensor, *others)):
        refuse_leaf(tensor)


def refuse_leaf(tensor: Tensor) -> None:
    """Raise unless a recorded operation may write into the tensor."""
    base = tensor._base
    if tensor._custom_view is not None:
        raise AutogradError(
            f"{tensor._custom_view} is a view and is being modified inplace. This view was created inside a custom "
            "Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would "
            "override the custom backward associated with the custom Function, leading to incorrect gradients. This "
            "behavior is forbidden. You can fix this by cloning the output of the custom Function."
        )
    if base is not None:
        refuse_creation(tensor)
        if tensor.requires_grad and base.is_leaf:
            raise AutogradError(
                "a view of a leaf Variable that requires grad is being used in an in-place operation.",
                hint="change it inside torch.no_grad(), or work on a clone()",
            )
    if tensor.requires_grad and tensor.is_leaf:
        raise AutogradError(
            "a leaf Variable that requires grad is being used in an in-place operation.",
            hint="change it inside torch.no_grad(), or work on a clone()",
        )


REASONS: Final = {
    MULTIPLE: "This view is the output of a function that returns multiple views. Such functions do not allow the "
    "output views to be modified inplace. You should replace the inplace operation by an out-of-place one.",
    UNRECORDED: "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
    "moving both the view and the inplace either both inside the no_grad block (if you don't want the inplace to be "
    "tracked) or both outside (if you want the inplace to be tracked).",
    INFERENCE: "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
    "moving both the view and the inplace either both inside the inference_mode block (if you don't want the inplace "
    "to be tracked) or both outside (if you want the inplace to be tracked).",
}


def refuse_creation(view: Tensor, indirect: bool = False) -> None:
    """Raise if the view came about in a way in which a change of its memory cannot be recorded."""
    creation = view._creation
    if not creation:
        return
    changed = "its base or another view of its base has been" if indirect else "is being"
    node = view._node
    name = "" if node is None else f"Output {view._output} of {node.name().removesuffix('Backward0')} is a view"
    if creation == MULTIPLE and node is not None:
        head = f"{name} and {changed} modified inplace."
    else:
        prefix = f"{name} of a view which was created in" if name else "A view was created in"
        mode = "inference mode" if creation == INFERENCE else "no_grad mode"
        now = "in normal mode" if creation == INFERENCE else "with grad mode enabled"
        head = f"{prefix} {mode} and {changed} modified inplace {now}."
    raise AutogradError(f"{head} {REASONS[creation]}")


def refuse_inference(tensor: Tensor) -> None:
    if tensor._inference and not MODE.get().inference:
        raise AutogradError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
            "normal tensor before doing inplace update."
        )


def check_fits(tensor: Tensor, out: Any) -> None:
    """Raise what PyTorch says where the result cannot be written into the tensor."""
    data = tensor._data
    shape = out.shape
    if shape == data.shape and out.dtype is data.dtype:
        return
    if shape != data.shape:
        try:
            fits = np.broadcast_shapes(shape, data.shape) == data.shape
        except ValueError:
            fits = False
        if not fits:
            raise TensorError(f"output with shape {list(data.shape)} doesn't match the broadcast shape {list(shape)}")
    dtype = out.dtype
    if dtype != data.dtype and "biufc".index(dtype.kind.replace("u", "i")) > "biufc".index(
        data.dtype.kind.replace("u", "i")
    ):
        raise TensorError(f"result type {named(dtype)} can't be cast to the desired output type {named(data.dtype)}")


IDEMPOTENT: Final = ("FillBackward2", "ZeroBackward0")
"""Nodes of operations that write the same into all elements, so that these may share their memory."""


def check_overlap(data: Any, others: Sequence[Tensor], repeated: bool = False) -> None:
    """Raise where elements written are one place in memory (unless ``repeated``), or are read at other places."""
    if not repeated:
        refuse_repeated(data)
    for other in others:
        array = other._data
        if array is data or type(array) is not np.ndarray or not np.may_share_memory(array, data):
            continue
        if is_dense(array) and is_dense(data) and not same_memory(array, data):
            raise TensorError(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                "memory location. Please clone() the tensor before performing the operation."
            )


def refuse_same(tensor: Tensor, others: Sequence[Tensor]) -> None:
    """Raise where an operand is the very memory that an operation by indices writes into."""
    data = tensor._data
    for other in others:
        array = other._data
        known = type(array) is np.ndarray and type(data) is np.ndarray and array.size
        if other is tensor or (known and np.may_share_memory(array, data) and is_dense(array) and is_dense(data)):
            raise TensorError(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                "memory location. Please clone() the tensor before performing the operation."
            )


def refuse_repeated(data: Any) -> None:
    if not data.flags.c_contiguous and any(
        not step and size > 1 for step, size in zip(data.strides, data.shape, strict=True)
    ):
        raise TensorError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


def same_memory(a: Any, b: Any) -> bool:
    return bool(
        a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
        and a.nbytes == b.nbytes
        and steps_of(a) == steps_of(b)
    )


def steps_of(array: Any) -> list[int]:
    """The strides of the dimensions that have more than one element."""
    return [step for step, size in zip(array.strides, array.shape, strict=True) if size != 1]


def is_dense(array: Any) -> bool:
    """Whether the elements stand side by side in memory, in some order."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return True
    expected = array.itemsize
    for step, size in sorted((step, size) for step, size in zip(array.strides, array.shape, strict=True) if size != 1):
        if step != expected:
            return False
        expected *= size
    return True


def named(dtype: Any) -> str:
    """The name of a dtype in messages: Float, Long."""
    names = {"float32": "Float", "float64": "Double", "float16": "Half", "int64": "Long", "int32": "Int"}
    names |= {"int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool"}
    names |= {"complex64": "ComplexFloat", "complex128": "ComplexDouble"}
    return names.get(np.dtype(dtype).name, str(np.dtype(dtype).name))
