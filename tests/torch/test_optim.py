"""Optimisers take the steps that PyTorch was recorded to take, keep its state and refuse what it refuses."""

from __future__ import annotations

import pytest

import srcgrad.torch as torch
from tests.torch.observing import difference, recorded, scenes, seen

SCENES = scenes("optim")
KNOWN = recorded("optim")


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_goes_as_in_pytorch(name: str) -> None:
    found, known = seen(SCENES[name], torch), KNOWN[name]
    if "path" in known:  # what float32 loses in a step stays in the running sums
        assert difference(found.pop("state"), known["state"], 1e-5) is None
        known = {key: value for key, value in known.items() if key != "state"}
    assert difference(found, known, 1e-6) is None


def test_gradients_through_steps_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="differentiable"):
        torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1, differentiable=True)


def test_a_step_moves_the_version_on() -> None:
    x = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([x], lr=0.1)
    y = x * x
    x.grad = torch.ones(2)
    optimizer.step()
    assert x._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_loaded_state_shares_nothing_with_the_saved_one() -> None:
    x = torch.ones(2, requires_grad=True)
    first, second = (torch.optim.SGD([x], lr=0.1, momentum=0.9) for _ in range(2))
    x.grad = torch.ones(2)
    first.step()
    second.load_state_dict(first.state_dict())
    first.step()
    assert second.state[x]["momentum_buffer"].tolist() == [1.0, 1.0]
