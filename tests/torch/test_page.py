"""docs/torch.md counts what the facade has, and its claims about differences hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import srcgrad.torch as torch
from tests.scripts import load

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def page() -> Any:
    return load(ROOT / "benchmarks" / "torch_page.py")


def test_the_page_is_what_is_counted(page: Any) -> None:
    text = page.PAGE.read_text("utf-8")
    counted = text.partition(page.START)[2].partition(page.END)[0].strip()
    names = json.loads(page.RECORD.read_text("utf-8"))
    assert counted == "\n".join(page.table(names)), "run: python benchmarks/torch_page.py --write"


def test_names_that_are_missing_are_found(page: Any) -> None:
    names = {"torch": ["sin", "no_such_name"], "no_such_space": ["x"]}
    assert page.missing(names) == {"torch": ["no_such_name"], "no_such_space": ["x"]}


def test_the_determinant_is_right_at_singular_matrices() -> None:
    x = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    value = torch.linalg.det(x + torch.diag(torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)))
    (slope,) = torch.autograd.grad(value, x, create_graph=True)
    (second,) = torch.autograd.grad(slope[0, 0], x)
    assert slope.abs().sum() == 0
    assert second.tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_the_last_of_two_writes_gets_the_gradient() -> None:
    v = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    z = torch.zeros(3)
    z[torch.tensor([0, 0, 1])] = v
    (z * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert z.tolist() == [2, 3, 0]
    assert v.grad.tolist() == [0, 1, 10]


def test_a_branch_that_is_infinite_gives_nan_as_in_pytorch() -> None:
    x = torch.tensor(0.0, requires_grad=True)
    torch.where(x > 0, torch.sqrt(x), torch.zeros(())).backward()
    assert x.grad.isnan()
