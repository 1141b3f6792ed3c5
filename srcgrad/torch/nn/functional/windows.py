"""Windows of images: what convolutions and poolings are made of.

A window operation takes, for each element of the kernel, the strided slice of the image that this element meets. All of
it is slices, sums and one matrix product, so that the derivative is too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from srcgrad.torch.errors import TensorError

Sizes = tuple[int, ...]
Windows = tuple[Sizes, Sizes, Sizes, Sizes]
"""The kernel, the stride, the dilation, and how many windows there are."""


def sizes_of(value: Any, rank: int, name: str) -> Sizes:
    """One number per dimension, from one for all or from a sequence.

    Raises:
        TensorError: it has another length.
    """
    if isinstance(value, (tuple, list)):
        found = tuple(int(n) for n in value)
        if len(found) == 1 and rank > 1:
            return found * rank
        if len(found) != rank:
            raise TensorError(f"expected {name} to be a single integer value or a list of {rank} values, got {value}")
        return found
    return (int(value),) * rank


def slices(kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes) -> Iterator[tuple[Any, ...]]:
    """For each element of the kernel, in C order, the index of what it meets in the last dimensions of the image."""
    for place in product(*map(range, kernel)):
        yield (
            ...,
            *(
                slice(k * d, k * d + s * (n - 1) + 1, s)
                for k, d, s, n in zip(place, dilation, stride, out, strict=True)
            ),
        )


def inner(pairs: Sequence[tuple[int, int]], x: Any) -> Any:
    """The index of an image without its border."""
    sizes = x.shape[x.ndim - len(pairs) :]
    return (..., *[slice(a, n - b) for n, (a, b) in zip(sizes, pairs, strict=True)])


def padded(x: Any, padding: tuple[tuple[int, int], ...], value: float = 0.0) -> Any:
    """The image with a border of one value around its last dimensions."""
    if not any(map(any, padding)):
        return x
    return np.pad(x, ((0, 0),) * (x.ndim - len(padding)) + padding, constant_values=value)


class Layout(NamedTuple):
    """How images lie while windows are taken from them: channels first; the batch second, or last.

    With the batch last, what a window meets lies together in memory, but images have to be turned there and back: that
    pays where there are many input channels.
    """

    batch_last: bool

    @staticmethod
    def best(channels: int, outputs: int, kernel: Sizes) -> Layout:
        """The layout for a product of so many channels times kernel elements."""
        return Layout(channels * math.prod(kernel) > 2 * (channels + outputs))

    @property
    def axis(self) -> int:
        return -1 if self.batch_last else 1

    def turned(self, x: Any) -> Any:
        """(N, C, ...) in this layout."""
        return np.moveaxis(x, 0, self.axis)

    def back(self, x: Any) -> Any:
        """The inverse of `turned`."""
        return np.moveaxis(x, self.axis, 0)

    def shape(self, first: tuple[int, ...], size: Sizes, batch: int) -> tuple[int, ...]:
        """The shape of an array of so many channels, of images of a size."""
        return (*first, *size, batch) if self.batch_last else (*first, batch, *size)

    def at(self, places: tuple[Any, ...]) -> tuple[Any, ...]:
        """An index of the dimensions of the image."""
        return (slice(None), *places) if self.batch_last else (slice(None), slice(None), *places)


def grown(size: Sizes, padding: Sizes) -> Sizes:
    return tuple(n + 2 * p for n, p in zip(size, padding, strict=True))


def within(size: Sizes, padding: Sizes) -> tuple[slice, ...]:
    return tuple(slice(p, p + n) for n, p in zip(size, padding, strict=True))


def columns(x: Any, padding: Sizes, windows: Windows, layout: Layout) -> Any:
    """(N, C, ...) to (C K, windows and batch): per channel and element of the kernel, what it meets."""
    image, size = layout.turned(x), x.shape[2:]
    if any(padding):
        whole = np.zeros_like(image, order="C", shape=layout.shape((x.shape[1],), grown(size, padding), x.shape[0]))
        whole[layout.at(within(size, padding))] = image
        image = whole
    elif layout.batch_last:
        image = image.copy()
    met = np.stack([image[layout.at(index[1:])] for index in slices(*windows)], 1)
    return met.reshape(met.shape[0] * met.shape[1], -1)


def gathered(columns: Any, shape: Sizes, padding: Sizes, windows: Windows, layout: Layout) -> Any:
    """The transpose of `columns`: added up to an image (N, C, ...) of a shape."""
    batch, channels, *size = shape
    count = math.prod(windows[0])
    parts = columns.reshape(layout.shape((channels, count), windows[3], batch))
    found = np.zeros_like(columns, order="C", shape=layout.shape((channels,), grown(tuple(size), padding), batch))
    for k, index in enumerate(slices(*windows)):
        place = found[layout.at(index[1:])]
        np.add(place, parts[:, k], out=place)
    return layout.back(found[layout.at(within(tuple(size), padding))])
