"""Datasets: what has examples by number, or gives them one after the other."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from srcgrad.torch.errors import TensorNotImplementedError, TensorValueError
from srcgrad.torch.tensor import Tensor

T = TypeVar("T")


class Dataset(Generic[T]):
    """Examples by number: a subclass gives ``__getitem__``, and mostly ``__len__``."""

    def __getitem__(self, index: Any) -> T:
        raise TensorNotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """Examples one after the other: a subclass gives ``__iter__``."""

    def __iter__(self) -> Iterator[T]:
        raise TensorNotImplementedError("Subclasses of IterableDataset should implement __iter__.")


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of tensors of equal length."""

    def __init__(self, *tensors: Tensor) -> None:
        if any(len(tensor) != len(tensors[0]) for tensor in tensors):
            raise TensorValueError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """Datasets side by side: examples are tuples, or dictionaries where they are given by name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise TensorValueError("Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like")
        self.datasets: Any = args or kwargs
        lengths = {len(dataset) for dataset in (args or kwargs.values())}
        if len(lengths) != 1:
            raise TensorValueError("Size mismatch between datasets")
        self._length = lengths.pop()

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Any]):
    """Datasets one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise TensorValueError("datasets should not be an empty iterable")
        self.cumulative_sizes = list(accumulate(len(dataset) for dataset in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            if -index > len(self):
                raise TensorValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class Subset(Dataset[Any]):
    """Some of the examples of a dataset."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[k] for k in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Subsets of these lengths (or fractions, if they sum to 1) that share no example.

    Raises:
        TensorValueError: the lengths do not sum to the dataset's.
    """
    from srcgrad.torch import randperm

    count = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        if any(not 0 <= fraction <= 1 for fraction in lengths):
            raise TensorValueError("every fraction must be between 0 and 1")
        sizes = [math.floor(count * fraction) for fraction in lengths]
        for k in range(count - sum(sizes)):
            sizes[k % len(sizes)] += 1
    else:
        sizes = [int(length) for length in lengths]
    if sum(sizes) != count:
        raise TensorValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = randperm(count, generator=generator).tolist()
    ends = list(accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes, strict=True)]
