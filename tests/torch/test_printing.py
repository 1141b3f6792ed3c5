"""The text of tensors is PyTorch's, character for character: `recorded/printing.json`, made by `record_printing.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcgrad.torch as torch
from srcgrad.errors import DTypeError, SrcgradError
from srcgrad.torch import dtypes
from srcgrad.torch.printing import PRINT_OPTS, get_printoptions, printoptions, set_printoptions, tensor_text

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "recorded" / "printing.json").read_text("utf-8"))

RULES = {
    "ramp": lambda index: index,
    "wave": lambda index: (index * index % 211) / 64.0 - 1.5,
    "spikes": lambda index: np.where(index % 97 == 0, 2.0**20, (index % 13) / 8.0),
}


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    set_printoptions(profile="default")
    yield
    set_printoptions(profile="default")


def array_of(case: dict[str, Any]) -> np.ndarray[Any, Any]:
    dtype, shape = case["dtype"], case["shape"]
    if "rule" in case:
        return np.asarray(RULES[case["rule"]](np.arange(int(np.prod(shape))))).astype(dtype).reshape(shape)
    numbers = case["values"]
    if dtype.startswith("complex"):
        numbers = [complex(real, imaginary) for real, imaginary in numbers]
    return np.array(numbers, dtype=dtype).reshape(shape)


def text_of(case: dict[str, Any]) -> str:
    set_printoptions(profile="default")
    set_printoptions(**case.get("options", {}))
    return tensor_text(
        array_of(case),
        case.get("prefix", "tensor("),
        requires_grad=not case.keys().isdisjoint({"requires_grad", "parameter", "grad"}),
        grad_fn_name=case.get("grad"),
        is_parameter=case.get("parameter", False),
        default=case.get("default", "float32"),
        tangent=case.get("tangent"),
        meta=case.get("meta", False),
    )


@pytest.mark.parametrize("dtype", sorted({case["dtype"] for case in CASES}))
def test_every_recorded_text_is_matched(dtype: str) -> None:
    cases = [case for case in CASES if case["dtype"] == dtype]
    assert len(cases) >= 8
    wrong = [(case, found) for case in cases if (found := text_of(case)) != case["text"]]
    assert wrong == []


def test_what_is_recorded_covers_every_form() -> None:
    said = {key for case in CASES for key in case}
    assert {"options", "grad", "requires_grad", "parameter", "default", "tangent", "meta", "prefix", "rule"} <= said
    texts = "\n".join(case["text"] for case in CASES)
    for form in (
        "Parameter containing:\n",
        "e+",
        "e-",
        " ...,",
        "inf",
        "nan",
        "j]",
        "size=(0, 3)",
        "\n\n",
        "[...]",
        "tensor(...,",
    ):
        assert form in texts
    assert len(CASES) > 1000


def test_a_view_with_negative_strides_prints_its_numbers() -> None:
    base = np.arange(6, dtype=np.int64).reshape(2, 3)
    assert tensor_text(base[:, ::-1].T) == "tensor([[2, 5],\n        [1, 4],\n        [0, 3]])"
    assert tensor_text(np.broadcast_to(np.float32(1.5), (2,))) == "tensor([1.5000, 1.5000])"


def test_extreme_numbers_warn_of_nothing() -> None:
    """The ratio of the largest to the smallest overflows."""
    extremes = np.array([5e-324, 1.7e308])
    assert tensor_text(extremes, default=np.float64) == "tensor([4.9407e-324, 1.7000e+308])"


def test_a_summary_of_much_reads_little() -> None:
    """The array has 2^60 elements: any pass over all of them would never end."""
    huge = np.broadcast_to(np.float32(2.0), (1 << 30, 1 << 30))
    assert tensor_text(huge).count("2., 2., 2.,  ..., 2., 2., 2.") == 6


@pytest.mark.parametrize("name", ["short", "full", "default"])
def test_profiles_set_all_options(name: str) -> None:
    set_printoptions(precision=7, threshold=3, edgeitems=1, linewidth=33)
    set_printoptions(profile=name)
    expected = {
        "short": {"precision": 2, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None},
        "full": {"precision": 4, "threshold": float("inf"), "edgeitems": 3, "linewidth": 80, "sci_mode": None},
        "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None},
    }
    assert get_printoptions() == expected[name]


def test_sci_mode_is_set_by_every_call() -> None:
    set_printoptions(sci_mode=True)
    set_printoptions(precision=3)
    assert PRINT_OPTS.sci_mode is None
    assert PRINT_OPTS.precision == 3


def test_printoptions_puts_back_what_was_set_also_after_an_error() -> None:
    set_printoptions(sci_mode=True, precision=6)
    with pytest.raises(ZeroDivisionError), printoptions(precision=2, profile="full"):
        assert get_printoptions()["precision"] == 2
        raise ZeroDivisionError
    assert (PRINT_OPTS.sci_mode, PRINT_OPTS.precision, PRINT_OPTS.threshold) == (True, 6, 1000)


@pytest.mark.parametrize("options", [{"profile": "ful"}, {"precision": 1.5}, {"linewidth": "80"}, {"edgeitems": 2.0}])
def test_options_that_make_no_sense_change_nothing(options: dict[str, Any]) -> None:
    before = get_printoptions()
    with pytest.raises(SrcgradError):
        set_printoptions(**{"threshold": 7, **options})
    assert get_printoptions() == before


def test_the_default_dtype_in_force_goes_without_saying() -> None:
    single, double = np.ones(1, np.float32), np.ones(1, np.complex128)
    dtypes.set_default_dtype(dtypes.float64)
    try:
        assert tensor_text(single) == "tensor([1.], dtype=torch.float32)"
        assert tensor_text(double) == "tensor([1.+0.j])"
    finally:
        dtypes.set_default_dtype(dtypes.float32)
    assert tensor_text(single) == "tensor([1.])"
    assert tensor_text(double) == "tensor([1.+0.j], dtype=torch.complex128)"


def test_an_array_that_no_tensor_has_is_an_error() -> None:
    with pytest.raises(DTypeError, match="no tensor has NumPy's dtype"):
        tensor_text(np.ones(2, np.longdouble))


def test_a_number_without_dimensions_is_formatted_as_the_number() -> None:
    x = torch.tensor(1.5, requires_grad=True)
    assert f"{x} {x * 2} {torch.tensor(3)} {torch.tensor(True)}" == "1.5 3.0 3 True"
    assert f"{x:.2f} {x!s}" == "1.50 tensor(1.5000, requires_grad=True)"
    assert f"{torch.tensor([1.0])} {torch.nn.Parameter(torch.tensor(1.0))}" == (
        "tensor([1.]) Parameter containing:\ntensor(1., requires_grad=True)"
    )
    shown = []
    torch.func.grad(lambda y: (shown.append(f"{y}"), y * y)[1])(torch.tensor(2.0))
    assert len(shown) == 1
