"""Datasets, samplers and loaders give what PyTorch's give, where nothing is random, and repeat what is."""

from __future__ import annotations

import pytest

import srcgrad.torch as torch
from srcgrad.torch.utils.data import DataLoader, Dataset, TensorDataset, random_split
from tests.torch.observing import difference, recorded, scenes, seen

SCENES = scenes("data")
KNOWN = recorded("data")


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_goes_as_in_pytorch(name: str) -> None:
    assert difference(seen(SCENES[name], torch), KNOWN[name], 0.0) is None


def test_what_pytorch_asserts_is_a_value_error_here() -> None:
    with pytest.raises(ValueError, match="Size mismatch between tensors"):
        TensorDataset(torch.ones(2), torch.ones(3))
    with pytest.raises(ValueError, match="empty iterable"):
        torch.utils.data.ConcatDataset([])


def test_the_same_seed_gives_the_same_batches() -> None:
    dataset = TensorDataset(torch.arange(20))

    def order(seed: int | None) -> list[int]:
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        return [int(k) for (batch,) in DataLoader(dataset, 3, shuffle=True, generator=generator) for k in batch]

    assert order(1) == order(1) != order(2)
    torch.manual_seed(5)
    first = order(None), [part.indices for part in random_split(dataset, [5, 15])]
    torch.manual_seed(5)
    assert (order(None), [part.indices for part in random_split(dataset, [5, 15])]) == first


def test_a_dataset_of_ones_own() -> None:
    class Squares(Dataset[float]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> float:
            return float(index**2)

    batches = list(DataLoader(Squares(), batch_size=3))
    assert [batch.tolist() for batch in batches] == [[0.0, 1.0, 4.0], [9.0]]
    assert batches[0].dtype == torch.float64


def test_workers_are_taken_and_change_nothing() -> None:
    loader = DataLoader(TensorDataset(torch.arange(5)), batch_size=2, num_workers=2, pin_memory=True)
    assert [x.tolist() for (x,) in loader] == [[0, 1], [2, 3], [4]]
