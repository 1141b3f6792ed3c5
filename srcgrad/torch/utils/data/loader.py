"""Samplers, collation, and the loader of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from srcgrad.torch import dtypes
from srcgrad.torch.errors import TensorError, TensorTypeError, TensorValueError
from srcgrad.torch.tensor import Tensor
from srcgrad.torch.utils.data.datasets import IterableDataset


class Sampler:
    """Gives numbers of examples, one after the other."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class SequentialSampler(Sampler):
    """All numbers in order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """All numbers in random order; with ``replacement``, ``num_samples`` independent draws."""

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples
        if not isinstance(replacement, bool):
            raise TensorTypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        from srcgrad.torch import randint, randperm

        count = len(self.data_source)
        if self.replacement:
            yield from randint(0, count, (self.num_samples,), generator=self.generator).tolist()
            return
        for _ in range(self.num_samples // count):
            yield from randperm(count, generator=self.generator).tolist()
        yield from randperm(count, generator=self.generator).tolist()[: self.num_samples % count]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Given numbers, in random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        from srcgrad.torch import randperm

        for k in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[k]

    def __len__(self) -> int:
        return len(self.indices)


def positive(name: str, value: Any) -> None:
    """Raise a TensorValueError unless it is a positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise TensorValueError(f"{name} should be a positive integer value, but got {name}={value}")


class WeightedRandomSampler(Sampler):
    """Independent draws of numbers, each with its weight."""

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        from srcgrad.torch import as_tensor

        positive("num_samples", num_samples)
        self.weights = as_tensor(weights, dtype=dtypes.float64)
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        from srcgrad.torch import multinomial

        yield from multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """The numbers of another sampler in lists of ``batch_size``."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise TensorValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for k in self.sampler:
            batch.append(k)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def default_collate(batch: Sequence[Any]) -> Any:
    """Examples as a batch: tensors and arrays stacked, numbers as a tensor, structures of them element by element.

    Raises:
        TensorTypeError: examples of another type.
    """
    from srcgrad.torch import as_tensor, stack, tensor

    first = batch[0]
    if isinstance(first, Tensor):
        return stack(list(batch))
    if isinstance(first, (np.ndarray, np.generic)):
        return stack([as_tensor(np.asarray(item)) for item in batch])
    if isinstance(first, float):
        return tensor(batch, dtype=dtypes.float64)
    if isinstance(first, int):
        return tensor(batch)
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        return {key: default_collate([item[key] for item in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(default_collate, zip(*batch, strict=True)))
    if isinstance(first, (tuple, list)):
        if any(len(item) != len(first) for item in batch):
            raise TensorError("each element in list of batch should be of equal size")
        columns = [default_collate(column) for column in zip(*batch, strict=True)]
        return columns
    raise TensorTypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
        f"{type(first).__module__}.{type(first).__name__}"
    )


class DataLoader:
    """Batches of a dataset, anew in each ``for`` loop.

    Args:
        batch_size: None for single examples.
        shuffle: in a new random order each time, drawn from ``generator``.
        sampler, batch_sampler: which examples, in place of ``shuffle`` and ``batch_size``.
        collate_fn: makes a batch of a list of examples; see `default_collate`.
        drop_last: leave a last batch out that is not full.
        num_workers, pin_memory and what else tunes processes: taken, and without effect: batches are made when they
            are asked for, in the caller's process.

    Raises:
        TensorValueError: options that exclude each other.

    >>> import srcgrad.torch as torch
    >>> from srcgrad.torch.utils.data import DataLoader, TensorDataset
    >>> [x for (x,) in DataLoader(TensorDataset(torch.arange(5)), batch_size=2)]
    [tensor([0, 1]), tensor([2, 3]), tensor([4])]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        **tuning: Any,
    ) -> None:
        if num_workers < 0:
            raise TensorValueError(
                "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."
            )
        if timeout < 0:
            raise TensorValueError("timeout option should be non-negative")
        if sampler is not None and shuffle:
            raise TensorValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise TensorValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise TensorValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
            )
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.num_workers, self.generator = num_workers, generator
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise TensorValueError("DataLoader with IterableDataset: expected unspecified shuffle and sampler options")
        if sampler is None and not self._iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler: Any = sampler
        if batch_sampler is None and batch_size is not None and not self._iterable:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler: Any = batch_sampler
        batched = batch_size is not None or batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if batched else converted)

    def __iter__(self) -> Iterator[Any]:
        if self._iterable:
            return self.batches_of(iter(self.dataset))
        if self.batch_sampler is not None:
            return (self.collate_fn([self.dataset[k] for k in numbers]) for numbers in self.batch_sampler)
        return (self.collate_fn(self.dataset[k]) for k in self.sampler)

    def batches_of(self, examples: Iterator[Any]) -> Iterator[Any]:
        if self.batch_size is None:
            yield from map(self.collate_fn, examples)
            return
        batch = []
        for example in examples:
            batch.append(example)
            if len(batch) == self.batch_size:
                yield self.collate_fn(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.collate_fn(batch)

    def __len__(self) -> int:
        if self._iterable:
            count = len(self.dataset)
            if self.batch_size is None:
                return count
            return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        return len(self.batch_sampler if self.batch_sampler is not None else self.sampler)


def converted(example: Any) -> Any:
    """An example that is not batched: its arrays as tensors."""
    from srcgrad.torch import as_tensor

    if isinstance(example, (np.ndarray, np.generic)):
        return as_tensor(np.asarray(example))
    if isinstance(example, Mapping):
        return {key: converted(item) for key, item in example.items()}
    if isinstance(example, tuple):
        return tuple(map(converted, example))
    return list(map(converted, example)) if isinstance(example, list) else example
