"""Training on the digits follows the loss curve of PyTorch from the same parameters, and learns."""

from __future__ import annotations

import pytest

import srcgrad.torch as torch
from tests.torch.observing import recorded, scenes, seen

SCENES = scenes("training")
KNOWN = recorded("training")


@pytest.mark.parametrize("name", SCENES)
def test_the_losses_are_pytorchs(name: str) -> None:
    losses = seen(SCENES[name], torch)
    assert losses == pytest.approx(KNOWN[name], rel=1e-4)
    assert len(losses) == 100
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10])
