"""Saving tensors and what holds them, without pickle: nothing that is loaded can run code.

A file is a zip archive: ``structure.json``, and one ``.npy`` per tensor memory. Tensors that share memory share it
again.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections import OrderedDict
from collections.abc import Sequence
from os import PathLike
from typing import IO, Any, Final

import numpy as np

from srcgrad.torch import dtypes
from srcgrad.torch.errors import TensorError, TensorTypeError, TensorValueError
from srcgrad.torch.tensor import Tensor, wrapped

FORMAT: Final = "srcgrad.torch 1"
File = str | PathLike[str] | IO[bytes]


def save(obj: Any, f: File) -> None:
    """Save tensors, parameters, numbers, texts, dtypes and dictionaries, lists and tuples of them.

    Args:
        f: a path, or a file opened for writing bytes.

    Raises:
        TensorTypeError: something else is among them; save a module's ``state_dict()``, not the module.

    >>> import io, srcgrad.torch as torch
    >>> file = io.BytesIO()
    >>> torch.save({"w": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'w': tensor([1., 1.])}
    """
    writer = Writer()
    structure = {"format": FORMAT, "object": writer.listed(obj)}  # before the file is opened, which may overwrite one
    with zipfile.ZipFile(f, "w") as archive:
        archive.writestr("structure.json", json.dumps(structure))
        for number, array in enumerate(writer.arrays):
            data = io.BytesIO()
            np.save(data, array, allow_pickle=False)
            archive.writestr(f"{number}.npy", data.getvalue())


def load(f: File, map_location: Any = None, *, weights_only: bool = True, mmap: bool | None = None) -> Any:
    """What `save` saved.

    Raises:
        TensorValueError: no such file.
    """
    try:
        with zipfile.ZipFile(f) as archive:
            names = set(archive.namelist())
            if "structure.json" not in names:
                raise TensorValueError(
                    "this file was not written by srcgrad.torch.save",
                    hint="PyTorch's own files are pickles: load them with PyTorch and save their arrays with np.savez",
                )
            structure = json.loads(archive.read("structure.json"))
            found = structure.get("format") if isinstance(structure, dict) else None
            if found != FORMAT:
                raise TensorValueError(f"a file of an unknown format, {found!r}")
            arrays = [read_array(archive.read(f"{number}.npy")) for number in range(len(names) - 1)]
    except zipfile.BadZipFile:
        raise TensorValueError("this file was not written by srcgrad.torch.save, or is damaged") from None
    return checked(structure["object"], arrays)


def read_array(data: bytes) -> Any:
    """An array of an ``.npy`` file; nothing of it is unpickled.

    Raises:
        TensorValueError: it is none, or holds objects.
    """
    try:
        return np.load(io.BytesIO(data), allow_pickle=False)
    except ValueError as error:
        raise TensorValueError(f"this file is damaged: {error}") from None


class Writer:
    """An object as JSON, with its tensors' arrays aside."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.known: dict[int, int] = {}
        self.kept: list[Tensor] = []

    def listed(self, x: Any) -> Any:
        if x is None or isinstance(x, (bool, int, float, str)):
            return {"number": repr(x)} if isinstance(x, float) else x
        if isinstance(x, Tensor):
            return self.tensor(x)
        if isinstance(x, (np.ndarray, np.generic)):
            self.arrays.append(np.asarray(x))
            return {"array": len(self.arrays) - 1}
        if isinstance(x, complex):
            return {"complex": [repr(x.real), repr(x.imag)]}
        if isinstance(x, dtypes.dtype):
            return {"dtype": x.name}
        if isinstance(x, dtypes.Size):
            return {"size": list(x)}
        if isinstance(x, dict):
            kind = "ordered" if isinstance(x, OrderedDict) else "dict"
            return {kind: [[self.listed(key), self.listed(value)] for key, value in x.items()]}
        if type(x) in (list, tuple):
            return {type(x).__name__: [self.listed(item) for item in x]}
        raise TensorTypeError(
            f"torch.save: cannot save a {type(x).__name__}",
            hint="save tensors, numbers, texts and containers of them; of a module or an optimizer, its state_dict()",
        )

    def tensor(self, x: Tensor) -> Any:
        """A tensor as the memory that it lies in, by number, and its place there."""
        if not isinstance(x._data, np.ndarray):
            raise TensorError("a tensor cannot be saved while it is traced")
        kind = "parameter" if type(x).__name__ == "Parameter" else "tensor"
        listed: dict[str, Any] = {"requires_grad": x._requires}
        base = x if x._base is None else x._base
        place = placed_in(x._data, base._data)
        if place is None:
            self.arrays.append(np.ascontiguousarray(x._data))
            return {kind: len(self.arrays) - 1} | listed
        number = self.known.get(id(base))
        if number is None:
            number = self.known[id(base)] = len(self.arrays)
            self.arrays.append(base._data if base._data.flags.c_contiguous else span_of(base._data))
            self.kept.append(base)
        if base is not x or not x._data.flags.c_contiguous:
            listed |= {"shape": list(x._data.shape), "strides": list(x._data.strides), "offset": place}
        return {kind: number} | listed


def last_place(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    """The place of the last element, in elements from the first one; -1 where there are none."""
    if 0 in shape:
        return -1
    return sum((size - 1) * step for size, step in zip(shape, strides, strict=True)) // itemsize


def span_of(array: Any) -> Any:
    """The memory from the first element to the last one, with what lies between."""
    count = last_place(array.shape, array.strides, array.itemsize) + 1
    return np.lib.stride_tricks.as_strided(array, (count,), (array.itemsize,))


def placed_in(array: Any, base: Any) -> int | None:
    """Where the first element lies in the base's memory, in elements; None where the array is not part of it."""
    size = base.itemsize
    if array.dtype != base.dtype or any(step % size or step < 0 for step in (*array.strides, *base.strides)):
        return None
    distance = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    start, rest = divmod(distance, size)
    end = start + last_place(array.shape, array.strides, size)
    inside = not rest and start >= 0 and end <= last_place(base.shape, base.strides, size)
    return start if inside and array.size else 0 if array is base else None


def checked(x: Any, arrays: list[Any]) -> Any:
    """An object from its JSON, which may say anything.

    Raises:
        TensorValueError: it makes no sense.
    """
    try:
        return built(x, arrays)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise TensorValueError(f"this file is damaged: {error}") from None


def built(x: Any, arrays: list[Any]) -> Any:
    """An object from its JSON."""
    if not isinstance(x, dict):
        return x
    kind = next(iter(x))
    value = x[kind]
    if kind in ("tensor", "parameter"):
        return built_tensor(kind, x, arrays)
    if kind == "array":
        return arrays[value]
    if kind == "number":
        return float(value)
    if kind == "complex":
        return complex(*map(float, value))
    if kind == "dtype":
        return dtypes.named(value)
    if kind == "size":
        return dtypes.Size(value)
    if kind in ("dict", "ordered"):
        pairs = [(built(key, arrays), built(item, arrays)) for key, item in value]
        return OrderedDict(pairs) if kind == "ordered" else dict(pairs)
    if kind not in ("list", "tuple"):
        raise ValueError(f"an unknown kind of object, {kind!r}")
    items = [built(item, arrays) for item in value]
    return tuple(items) if kind == "tuple" else items


def built_tensor(kind: str, x: dict[str, Any], arrays: list[Any]) -> Tensor:
    array = arrays[x[kind]]
    if "strides" in x:
        shape, strides, start = tuple(x["shape"]), tuple(x["strides"]), int(x["offset"])
        size = array.itemsize
        if start < 0 or any(n < 0 for n in shape) or any(step < 0 or step % size for step in strides):
            raise ValueError("a tensor outside its memory")
        if start + last_place(shape, strides, size) >= array.size:
            raise ValueError("a tensor outside its memory")
        array = np.lib.stride_tricks.as_strided(array.reshape(-1)[start:], shape, strides)
    found = wrapped(array)
    if kind == "parameter":
        from srcgrad.torch.nn import Parameter

        return Parameter(found, requires_grad=x["requires_grad"])
    if x["requires_grad"]:
        found.requires_grad_()
    return found
