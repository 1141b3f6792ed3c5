"""Datasets, samplers and loaders: what is not random in them, and what is refused."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.torch.observing import Scene, outcome

Pair = namedtuple("Pair", ["image", "label"])


def rows(torch: Any, count: int = 7) -> Any:
    return torch.utils.data.TensorDataset(torch.arange(2.0 * count).reshape(count, 2), torch.arange(count))


def loaders(torch: Any) -> Any:
    data = torch.utils.data
    dataset = rows(torch)
    options: dict[str, dict[str, Any]] = {
        "default": {},
        "three": {"batch_size": 3},
        "full ones": {"batch_size": 3, "drop_last": True},
        "none": {"batch_size": None},
        "sampler": {"batch_size": 2, "sampler": [5, 1, 1, 0]},
        "batches": {"batch_sampler": [[0, 2], [6], [1, 2, 3]]},
        "sequence": {"sampler": data.SequentialSampler(dataset), "batch_size": 4},
        "own collate": {"batch_size": 3, "collate_fn": lambda batch: [int(label) for _, label in batch]},
        "batch sampler": {"batch_sampler": data.BatchSampler(range(7), 4, True)},
    }
    found = {}
    for name, given in options.items():
        loader = data.DataLoader(dataset, **given)
        found[name] = [list(loader), list(loader)[-1], len(loader), loader.batch_size, loader.drop_last]
    return found


def shuffled(torch: Any) -> Any:
    """Every example once, in batches of the right sizes, in another order each time."""
    loader = torch.utils.data.DataLoader(rows(torch, 40), batch_size=9, shuffle=True)
    first, second = ([labels.tolist() for _, labels in loader] for _ in range(2))
    flat = [[k for batch in x for k in batch] for x in (first, second)]
    return [[sorted(x) for x in flat], flat[0] == flat[1], flat[0] == list(range(40)), [len(x) for x in first]]


def iterable(torch: Any) -> Any:
    class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Any:
            return iter(range(5))

    class Sized(Stream):
        def __len__(self) -> int:
            return 5

    loader = torch.utils.data.DataLoader
    return [
        list(loader(Stream(), batch_size=2)),
        list(loader(Stream(), batch_size=2, drop_last=True)),
        list(loader(Stream(), batch_size=None)),
        len(loader(Sized(), batch_size=2)),
        len(loader(Sized(), batch_size=2, drop_last=True)),
        outcome(lambda: len(loader(Stream())))[0],
        outcome(lambda: loader(Stream(), shuffle=True))[0],
        outcome(lambda: loader(Stream(), sampler=[1]))[0],
    ]


def datasets(torch: Any) -> Any:
    data = torch.utils.data
    first, second = rows(torch, 3), rows(torch, 2)
    joined = first + second
    chained = data.ConcatDataset([first, second, first])
    stacked = data.StackDataset(first, rows(torch, 3))
    named = data.StackDataset(image=torch.arange(3.0), label=[5, 6, 7])
    subset = data.Subset(chained, [7, 0, 3])
    return [
        [joined[k] for k in range(-2, 5)],
        chained.cumulative_sizes,
        [len(chained), len(stacked), len(named), len(subset)],
        [stacked[1], named[2], subset[0], subset[2]],
        [[subset[k] for k in range(3)], first[1:], first[[0, 2]]],
    ]


def collated(torch: Any) -> Any:
    collate = torch.utils.data.default_collate
    batches = [
        [1, 2, 3],
        [1.5, 2],
        [True, False],
        ["a", "b"],
        [{"x": 1, "y": torch.ones(2)}, {"x": 2, "y": torch.zeros(2)}],
        [(1, 2.5), (3, 4.5)],
        [[1, "a"], [2, "b"]],
        [np.float32(1.5), np.float32(2.5)],
        [np.arange(3), np.arange(3)],
        [torch.tensor(1), torch.tensor(2)],
        [((1, {"a": 2}),), ((3, {"a": 4}),)],
    ]
    pairs = collate([Pair(torch.ones(1), 1), Pair(torch.zeros(1), 2)])
    kinds = [type(collate(batch)).__name__ for batch in batches]
    return [[collate(batch) for batch in batches], kinds, type(pairs).__name__, pairs.label]


def splits(torch: Any) -> Any:
    """Sizes of random splits, and that they share nothing."""
    found = []
    for lengths in ([3, 4], [0.5, 0.5], [0.3, 0.3, 0.4], [7, 0], [1]):
        parts = torch.utils.data.random_split(rows(torch), lengths)
        numbers = sorted(int(k) for part in parts for k in part.indices)
        found.append([[len(part) for part in parts], numbers, type(parts[0]).__name__])
    return found


def samplers(torch: Any) -> Any:
    data = torch.utils.data
    dataset = rows(torch)
    weighted = list(data.WeightedRandomSampler([0.0, 0.0, 1.0], 5))
    return [
        list(data.SequentialSampler(dataset)),
        sorted(data.RandomSampler(dataset)),
        [len(data.RandomSampler(dataset)), len(data.RandomSampler(dataset, num_samples=17))],
        sorted(list(data.RandomSampler(dataset, num_samples=17))[:14]),
        len(list(data.RandomSampler(dataset, num_samples=17))),
        len(list(data.RandomSampler(dataset, replacement=True, num_samples=30))),
        sorted(data.SubsetRandomSampler([4, 1, 6])),
        weighted,
        list(data.BatchSampler(data.SequentialSampler(dataset), 3, False)),
        [len(data.BatchSampler(range(7), 3, drop)) for drop in (False, True)],
        sorted(data.WeightedRandomSampler([1.0, 0.0, 1.0], 2, replacement=False)),
    ]


ERRORS: dict[str, Callable[[Any, Any], Any]] = {
    "both": lambda data, d: data.DataLoader(d, sampler=[0], shuffle=True),
    "batch sampler": lambda data, d: data.DataLoader(d, batch_sampler=[[0]], batch_size=3),
    "drop last": lambda data, d: data.DataLoader(d, batch_size=None, drop_last=True),
    "workers": lambda data, d: data.DataLoader(d, num_workers=-1),
    "batch size": lambda data, d: data.DataLoader(d, batch_size=0),
    "timeout": lambda data, d: data.DataLoader(d, timeout=-1),
    "sum": lambda data, d: data.random_split(d, [3, 3]),
    "fractions": lambda data, d: data.random_split(d, [1.5, -0.5]),
    "no getitem": lambda data, d: data.Dataset()[0],
    "no samples": lambda data, d: data.RandomSampler(d, num_samples=0),
    "replacement": lambda data, d: data.RandomSampler(d, replacement=3),
    "ragged": lambda data, d: data.default_collate([[1], [1, 2]]),
    "a set": lambda data, d: data.default_collate([{1}, {2}]),
    "shapes": lambda data, d: data.default_collate([d[0][0], d[0][0][:1]]),
    "batch of a float": lambda data, d: data.BatchSampler([0], 1.5, False),
    "drop last of 1": lambda data, d: data.BatchSampler([0], 1, 1),
    "empty dataset": lambda data, d: data.DataLoader([], shuffle=True),
    "weights": lambda data, d: data.WeightedRandomSampler([1.0], 0),
    "out of range": lambda data, d: data.ConcatDataset([d])[-8],
}


def errors(torch: Any) -> Any:
    return {name: outcome(lambda f=f: repr(f(torch.utils.data, rows(torch)))[:0])[:1] for name, f in ERRORS.items()}


SCENES: dict[str, Scene] = {
    "loaders": loaders,
    "shuffled": shuffled,
    "iterable": iterable,
    "datasets": datasets,
    "collated": collated,
    "splits": splits,
    "samplers": samplers,
    "errors": errors,
}
