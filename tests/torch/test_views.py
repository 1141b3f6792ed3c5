"""Views and changes in place: recorded random programs, what PyTorch has wrong, messages, memory."""

from __future__ import annotations

import gc
import importlib.util
import json
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcgrad.torch as torch
from srcgrad.torch.errors import AutogradError, TensorError
from tests.torch import fuzz_views

HERE = Path(__file__).parent
PROGRAMS: list[dict[str, Any]] = json.loads((HERE / "recorded" / "view_programs.json").read_text("utf-8"))


def same(mine: Any, other: Any) -> bool:
    if isinstance(mine, float) and isinstance(other, float):
        return bool(np.isclose(mine, other, rtol=1e-7, atol=1e-8))
    if isinstance(mine, list) and isinstance(other, list):
        return len(mine) == len(other) and all(map(same, mine, other))
    return bool(mine == other)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_recorded_program_gives_what_pytorch_gave(number: int) -> None:
    fact = PROGRAMS[number]
    found = fuzz_views.summary(fuzz_views.run(torch, fact["program"], fact["watch"]))
    text = "\n".join(fact["program"])
    assert found["errors"] == fact["errors"], text
    assert list(found["variables"]) == list(fact["variables"]), text
    for name, seen in fact["variables"].items():
        assert same(found["variables"][name], seen), f"{name}: {found['variables'][name]} against {seen}\n{text}"
    if fact["errors"][-1] is None:
        assert found["gradients"].keys() == fact["gradients"].keys(), text
        for name, total in fact["gradients"].items():
            assert same(found["gradients"][name], total), f"gradient of {name}\n{text}"


def test_the_recorded_programs_change_things_and_fail() -> None:
    errors = [error for fact in PROGRAMS for error in fact["errors"]]
    assert sum(error is not None for error in errors) > len(PROGRAMS)
    assert sum(bool(fact["gradients"]) for fact in PROGRAMS) > len(PROGRAMS) // 2
    nodes = {seen[4] for fact in PROGRAMS for seen in fact["variables"].values()}
    assert {"torch::autograd::CopySlices", "AsStridedBackward0", "SelectBackward0"} <= nodes


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="compares with PyTorch")
def test_new_programs_give_what_pytorch_gives() -> None:
    real = importlib.import_module("torch")
    for seed in range(100_000, 100_060):
        program, watch, theirs = fuzz_views.made(real, seed)
        found = fuzz_views.differences(fuzz_views.run(torch, program, watch), theirs)
        assert not found or fuzz_views.known_difference(program, found, theirs), "\n".join([*program, *found])


# --- where PyTorch is wrong -------------------------------------------------------------------------------------


def test_of_two_values_for_one_place_the_last_counts_in_the_derivative_too() -> None:
    values = torch.tensor([2.0, 3.0], requires_grad=True)
    x = torch.zeros(3)
    x[torch.tensor([1, 1])] = values
    assert x.tolist() == [0.0, 3.0, 0.0]
    (x * torch.tensor([1.0, 5.0, 7.0])).sum().backward()
    assert values.grad is not None and values.grad.tolist() == [0.0, 5.0]


@pytest.mark.parametrize(
    "write",
    [
        lambda x, v: x.index_put((torch.tensor([1, 1]),), v),
        lambda x, v: x.scatter(0, torch.tensor([1, 1]), v),
        lambda x, v: x.index_copy(0, torch.tensor([1, 1]), v),
        lambda x, v: x.put(torch.tensor([1, 1]), v),
    ],
)
def test_the_last_value_counts_in_every_form(write: Any) -> None:
    values = torch.tensor([2.0, 3.0], requires_grad=True)
    x = torch.ones(3, requires_grad=True)
    result = write(x, values)
    assert result.tolist() == [1.0, 3.0, 1.0]
    result.sum().backward()
    assert values.grad is not None and values.grad.tolist() == [0.0, 1.0]
    assert x.grad is not None and x.grad.tolist() == [1.0, 0.0, 1.0]


def test_operands_that_overlap_are_read_before_anything_is_written() -> None:
    x = torch.arange(9.0).reshape(3, 3)
    expected = x.numpy() + x.numpy()[:, 1:2]
    x += x[:, 1:2].expand(3, 3)
    assert np.array_equal(x.numpy(), expected)


def test_a_filled_expanded_tensor_has_a_derivative() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 1
    y.expand(3).fill_(5.0)
    (y * x).backward()
    assert x.grad is not None and x.grad.item() == 5.0


# --- messages -----------------------------------------------------------------------------------------------------

MESSAGES = {
    "leaf": (lambda x: x.mul_(2), "a leaf Variable that requires grad is being used in an in-place operation."),
    "view of leaf": (
        lambda x: x[0].mul_(2),
        "a view of a leaf Variable that requires grad is being used in an in-place",
    ),
    "several": (
        lambda x: (x * 1).unbind()[1].mul_(2),
        "Output 1 of Unbind is a view and is being modified inplace. This",
    ),
    "size": (lambda x: x.view(7), "shape '[7]' is invalid for input of size 6"),
    "stride": (lambda x: x.t().view(6), "view size is not compatible with input tensor's size and stride"),
    "expand": (
        lambda x: x.expand(4, 4),
        "The expanded size of the tensor (4) must match the existing size (3) at non-",
    ),
    "index": (lambda x: x[5], "index 5 is out of bounds for dimension 0 with size 2"),
    "indices": (lambda x: x[[0, 2]], "index 2 is out of bounds for dimension 0 with size 2"),
    "mask": (lambda x: x[torch.tensor([True])], "The shape of the mask [1] at index 0 does not match the shape of the"),
    "step": (lambda x: x[::-1], "step must be greater than zero"),
    "cat": (
        lambda x: torch.cat([x, x.t()]),
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got",
    ),
    "expanded": (
        lambda x: torch.ones(1).expand(2).add_(1),
        "unsupported operation: more than one element of the written",
    ),
    "detach": (lambda x: (x * 1)[0].detach_(), "Can't detach views in-place. Use detach() instead."),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_an_error_has_the_words_of_pytorch(name: str) -> None:
    call, words = MESSAGES[name]
    with pytest.raises(Exception) as caught:
        call(torch.ones(2, 3, requires_grad=True))
    assert str(caught.value).startswith(words)


def test_a_view_made_in_no_grad_says_so_where_it_is_changed() -> None:
    y = torch.ones(2, requires_grad=True) * 1
    with torch.no_grad():
        view = y[:1]
    with pytest.raises(AutogradError, match="A view was created in no_grad mode and is being modified inplace with"):
        view.mul_(2)
    y.mul_(2)
    with pytest.raises(AutogradError, match="its base or another view of its base has been modified inplace with grad"):
        view.sin()


def test_a_leaf_whose_shape_changed_is_refused_the_old_gradient() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    loss = (x * x).sum()
    with torch.no_grad():
        x.t_()
    with pytest.raises(TensorError):
        loss.backward()


# --- graphs, memory -----------------------------------------------------------------------------------------------


def test_views_share_memory_and_copies_do_not() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    for view in (
        x[0],
        x[:, 1:],
        x.t(),
        x.expand(2, 2, 3)[0],
        x.diagonal(),
        x.unfold(1, 2, 1),
        x.as_strided((2,), (2,)),
    ):
        assert np.shares_memory(view.numpy(), x.numpy()) and view._base is x._base
        assert view.numpy().flags.writeable
    for copy in (x[[0]], x.flip(0), x.repeat(1, 1), x.t().reshape(6), x.clone(), torch.cat([x])):
        assert not np.shares_memory(copy.numpy(), x.numpy()) and copy._base is None


def test_rows_at_many_places_share_one_signature() -> None:
    x = torch.ones(5, 2, requires_grad=True)
    nodes = [x[k].grad_fn for k in range(5)]
    assert len({node.signature for node in nodes}) == 1


def test_a_view_of_a_changed_base_keeps_no_dead_graph() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    view = y[1:]
    first = weakref.ref(view.grad_fn)
    y.mul_(3)
    view.grad_fn  # noqa: B018  it is made anew
    gc.collect()
    assert first() is None


def test_a_part_changed_by_a_factor_saves_the_part_alone() -> None:
    x = torch.ones(1000, 2, requires_grad=True)
    factor = torch.ones(2, requires_grad=True)
    y = x * 1
    y[0].mul_(factor)
    saved = [saved.packed.size for saved in y.grad_fn.saved]
    assert saved and max(saved) == 2


def test_second_derivatives_go_through_changes_of_views() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * x
    y[1:].mul_(x[1:])
    y[0] = x[2] ** 2
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert first.tolist() == [0.0, 12.0, 33.0]
    assert second.tolist() == [0.0, 12.0, 20.0]


def test_parts_of_a_complex_tensor_can_be_written_through_pairs() -> None:
    x = torch.tensor([1.0 + 2.0j, 3.0 - 1.0j], requires_grad=True)
    y = x * 1
    torch.view_as_real(y)[0] = 5.0
    y.real.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0, 1]
    z = torch.view_as_real(x.detach().requires_grad_() * 1)
    torch.view_as_complex(z)[0] = 1j
    assert z.tolist() == [[0.0, 1.0], [3.0, -1.0]] and z.grad_fn.name() == "ViewAsRealBackward0"


CHANGES = {
    "method": lambda y: y.mul_(2),
    "assignment": lambda y: y.__setitem__(0, 2.0),
    "out": lambda y: torch.exp(torch.ones(3), out=y),
    "increment_version": lambda y: torch.autograd.graph.increment_version(y),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_error_names_the_line_of_the_last_change_in_place(change: Any) -> None:
    factor, x = torch.ones(3), torch.ones(3, requires_grad=True)
    factor.add_(1)
    y = (x * factor).sum()
    factor.sub_(1)
    line = change.__code__.co_firstlineno
    change(factor)
    with pytest.raises(AutogradError, match=rf"changed in place at .*test_views.py:{line}"):
        y.backward()


def test_a_window_of_a_number_has_no_place() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    window = x.unfold(0, 1, 1)
    assert tuple(window.shape) == (1,)
    (3.0 * window).sum().backward()
    assert x.grad.item() == 3.0
