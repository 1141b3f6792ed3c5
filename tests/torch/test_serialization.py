"""`torch.save` and `torch.load`: what was saved comes back, shared memory shared, and no code runs."""

from __future__ import annotations

import io
import json
import math
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcgrad.torch as torch


def again(x: Any) -> Any:
    """What comes back of an object."""
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file)


DTYPES = [
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "bool",
]


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_a_tensor_of_each_dtype_and_shape(name: str, shape: tuple[int, ...]) -> None:
    x = torch.ones(shape, dtype=getattr(torch, name))
    found = again(x)
    assert found.dtype is x.dtype
    assert found.shape == x.shape
    assert torch.equal(found, x)


def test_numbers_come_back_exactly() -> None:
    values = [0.1, -0.0, math.inf, -math.inf, 1e-320, 2**70, -3, True, None, "a\u00e9", 1 + 2j, complex(math.nan, -0.0)]
    found = again(values)
    assert list(map(repr, found)) == list(map(repr, values))
    assert list(map(type, found)) == list(map(type, values))
    assert math.isnan(again(math.nan))


def test_containers_keep_their_kinds_and_orders() -> None:
    x = OrderedDict([("b", [1, (2.5, None)]), ("a", {3: "x", (1, 2): torch.float64, None: torch.Size([2, 3])})])
    found = again(x)
    assert found == x
    assert type(found) is OrderedDict
    assert list(found) == ["b", "a"]
    assert type(found["a"]) is dict
    assert type(found["b"][1]) is tuple
    assert type(found["a"][None]) is torch.Size
    assert again({"array": np.arange(3)})["array"].tolist() == [0, 1, 2]
    assert again({}) == {}
    assert again([]) == []
    assert again(()) == ()


def test_keys_that_look_like_the_format_are_keys() -> None:
    for x in ({"tensor": 0}, {"list": [1]}, {"number": "nan"}, {"dict": {}}, {"__class__": "os.system"}):
        assert again(x) == x


def test_tensors_that_share_memory_share_it_again() -> None:
    base = torch.arange(12.0).reshape(3, 4)
    found = again({"base": base, "row": base[1], "same": base, "turned": base.t(), "steps": base[:, ::2]})
    found["base"][1, 2] = -1.0
    assert found["row"][2] == -1
    assert found["turned"][2, 1] == -1
    assert found["steps"].tolist() == [[0, 2], [4, -1], [8, 10]]
    assert found["same"][1, 2] == -1


def test_memory_of_any_layout_is_shared_again() -> None:
    whole = np.arange(24.0).reshape(4, 6)
    for array in (whole[:, ::2], whole.T, np.asfortranarray(whole), whole[1:3, 2:5]):
        base = torch.from_numpy(array)
        found = again([base, base[1], base[:, 1:]])
        assert found[0].tolist() == array.tolist()
        assert found[1].tolist() == array[1].tolist()
        found[0][1, 1] = -5.0
        assert found[1][1] == found[2][1, 0] == -5
    double = torch.zeros(2, dtype=torch.complex64)
    assert again(torch.view_as_real(double)).shape == (2, 2)


def test_a_view_alone_comes_with_its_values() -> None:
    base = torch.arange(12.0).reshape(3, 4)
    assert again(base[1:, ::3]).tolist() == [[4.0, 7.0], [8.0, 11.0]]
    assert again(base.t()).tolist() == base.t().tolist()
    assert again(torch.ones(1, 3).expand(2, 3)).tolist() == [[1.0] * 3] * 2


def test_leaves_stay_leaves() -> None:
    x = torch.ones(2, requires_grad=True)
    found = again([x, x.detach(), torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1), False)])
    assert [t.requires_grad for t in found] == [True, False, True, False]
    assert [type(t) for t in found] == [torch.Tensor, torch.Tensor, torch.nn.Parameter, torch.nn.Parameter]


def test_a_model_and_its_optimizer_go_on_from_a_file(tmp_path: Path) -> None:
    def made() -> tuple[Any, Any]:
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
        return model, torch.optim.Adam(model.parameters(), lr=0.1)

    def step(model: Any, optimizer: Any) -> float:
        optimizer.zero_grad()
        loss = model(torch.arange(6.0).reshape(2, 3)).pow(2).sum()
        loss.backward()
        optimizer.step()
        return float(loss)

    model, optimizer = made()
    step(model, optimizer)
    file = tmp_path / "checkpoint.pt"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}, file)
    other, other_optimizer = made()
    saved = torch.load(file, weights_only=True)
    assert type(saved["model"]) is OrderedDict
    other.load_state_dict(saved["model"])
    other_optimizer.load_state_dict(saved["optimizer"])
    for _ in range(3):
        assert step(other, other_optimizer) == step(model, optimizer)


def test_a_loaded_tensor_can_be_changed() -> None:
    x = again(torch.zeros(2))
    x += 1
    assert x.tolist() == [1.0, 1.0]


class Evil:
    ran = False

    def __reduce__(self) -> Any:
        return exec, (f"import {__name__}\n{__name__}.Evil.ran = True",)


def test_no_code_runs_on_load(tmp_path: Path) -> None:
    file = tmp_path / "evil.pt"
    file.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ValueError, match="not written by"):
        torch.load(file)
    array = np.empty(1, object)
    array[0] = Evil()
    data = io.BytesIO()
    np.save(data, array, allow_pickle=True)
    with zipfile.ZipFile(file, "w") as archive:
        structure = {"format": "srcgrad.torch 1", "object": {"tensor": 0, "requires_grad": False}}
        archive.writestr("structure.json", json.dumps(structure))
        archive.writestr("0.npy", data.getvalue())
    with pytest.raises(ValueError, match="damaged"):
        torch.load(file)
    assert not Evil.ran


@pytest.mark.parametrize(
    "given",
    [
        {"tensor": 7, "requires_grad": False},
        {"tensor": 0, "requires_grad": False, "shape": [10**6], "strides": [8], "offset": 0},
        {"tensor": 0, "requires_grad": False, "shape": [2], "strides": [-8], "offset": 0},
        {"tensor": 0, "requires_grad": False, "shape": [1], "strides": [8], "offset": 99},
        {"unknown": 3},
        {"tensor": "x"},
        {"dict": 3},
    ],
    ids=str,
)
def test_a_damaged_structure_is_an_error(given: Any, tmp_path: Path) -> None:
    data = io.BytesIO()
    np.save(data, np.arange(3.0))
    file = tmp_path / "damaged.pt"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("structure.json", json.dumps({"format": "srcgrad.torch 1", "object": given}))
        archive.writestr("0.npy", data.getvalue())
    with pytest.raises(ValueError, match="damaged"):
        torch.load(file)


def test_foreign_files_are_errors(tmp_path: Path) -> None:
    file = tmp_path / "foreign.pt"
    for content in (b"", b"hello", pickle.dumps([1])):
        file.write_bytes(content)
        with pytest.raises(ValueError, match="not written by srcgrad"):
            torch.load(file)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", b"x")  # as PyTorch's own
    with pytest.raises(ValueError, match="not written by srcgrad") as caught:
        torch.load(file)
    assert "np.savez" in str(caught.value)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("structure.json", json.dumps({"format": "srcgrad.torch 9", "object": None}))
    with pytest.raises(ValueError, match="unknown format"):
        torch.load(file)
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "none.pt")


def test_what_cannot_be_saved_is_named() -> None:
    for x, name in ((torch.nn.Linear(1, 1), "Linear"), ({1, 2}, "set"), (lambda: 1, "function")):
        with pytest.raises(TypeError, match=f"cannot save a {name}") as caught:
            torch.save(x, io.BytesIO())
        assert "state_dict" in str(caught.value)


def test_nothing_is_written_where_saving_fails(tmp_path: Path) -> None:
    file = tmp_path / "kept.pt"
    torch.save([1], file)
    with pytest.raises(TypeError, match="cannot save"):
        torch.save([object()], file)
    assert torch.load(file) == [1]
