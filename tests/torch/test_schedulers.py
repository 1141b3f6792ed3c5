"""Learning-rate schedules give the rates that PyTorch was recorded to give, and its states and errors."""

from __future__ import annotations

import pytest

import srcgrad.torch as torch
from tests.torch.observing import difference, recorded, scenes, seen

SCENES = scenes("schedulers")
KNOWN = recorded("schedulers")


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_goes_as_in_pytorch(name: str) -> None:
    assert difference(seen(SCENES[name], torch), KNOWN[name], 1e-12) is None
