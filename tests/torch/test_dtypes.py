"""Dtypes, promotion, sizes and devices are PyTorch's: `recorded/promotion.json`, made by `record_printing.py`."""

from __future__ import annotations

import copy
import json
import operator
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srcgrad.errors import DTypeError, NoAttributeError, SrcgradError
from srcgrad.torch import dtypes
from srcgrad.torch.dtypes import NUMBER, SCALAR_TENSOR, TENSOR, Size, device

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded" / "promotion.json").read_text("utf-8"))
KINDS = {"tensor": TENSOR, "scalar": SCALAR_TENSOR, "number": NUMBER}
NAMES = [each.name for each in dtypes.DTYPES]


@pytest.fixture(autouse=True)
def default_dtype() -> Iterator[None]:
    yield
    dtypes.set_default_dtype(dtypes.float32)


def outcome(call: Callable[[], Any]) -> str:
    """The name of a dtype, or "error" where PyTorch raises RuntimeError."""
    try:
        found = call()
    except RuntimeError:
        return "error"
    return dtypes.of(found).name if isinstance(found, np.dtype) else found.name


@pytest.mark.parametrize("default", ["float16", "float32", "float64"])
def test_result_dtype_is_that_of_every_pair_of_operands(default: str) -> None:
    dtypes.set_default_dtype(dtypes.named(default))
    table = RECORDED["result_type"][default]
    assert len(table) == (2 * len(NAMES) + 4) ** 2
    wrong = {}
    for key, recorded in table.items():
        a, kind_a, b, kind_b = key.split()
        operands = ((np.dtype(a), KINDS[kind_a]), (np.dtype(b), KINDS[kind_b]))
        expected = recorded.replace("complex32", "complex64")  # NumPy has no complex32
        for attempt in ("computed", "remembered"):
            found = outcome(lambda operands=operands: dtypes.result_dtype(operands))
            if found != expected:
                wrong[f"{key} {attempt}"] = (found, expected)
    assert wrong == {}


def test_promote_types_and_can_cast_of_every_pair() -> None:
    assert len(RECORDED["promote_types"]) == len(RECORDED["can_cast"]) == len(NAMES) ** 2
    for key, expected in RECORDED["promote_types"].items():
        a, b = map(dtypes.named, key.split())
        assert outcome(lambda a=a, b=b: dtypes.promote_types(a, b)) == expected, key
    for key, expected in RECORDED["can_cast"].items():
        a, b = map(dtypes.named, key.split())
        assert dtypes.can_cast(a, b) is expected, key


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ([("int32", TENSOR), ("float32", SCALAR_TENSOR), ("float64", NUMBER)], "float32"),
        ([("float16", TENSOR), ("float64", SCALAR_TENSOR), ("complex128", NUMBER)], "complex64"),
        ([("uint8", TENSOR), ("int64", SCALAR_TENSOR), ("bool", NUMBER)], "uint8"),
        ([("bool", TENSOR), ("bool", SCALAR_TENSOR), ("int64", NUMBER)], "int64"),
        ([("bool", TENSOR)] * 3 + [("int8", TENSOR)] * 3 + [("float16", SCALAR_TENSOR)], "float16"),
        ([("int16", NUMBER)], "int16"),
    ],
)
def test_promotion_of_more_than_two(operands: list[tuple[str, int]], expected: str) -> None:
    """By the rule: combine(tensors, combine(0-d tensors, numbers))."""
    given = tuple((np.dtype(name), kind) for name, kind in operands)
    assert dtypes.result_dtype(given) == np.dtype(expected)


def test_promotion_follows_a_change_of_the_default_dtype() -> None:
    operands = ((np.dtype(np.int64), TENSOR), (np.dtype(float), NUMBER))
    assert dtypes.result_dtype(operands) == np.float32
    dtypes.set_default_dtype(dtypes.float64)
    assert dtypes.result_dtype(operands) == np.float64
    assert dtypes.get_default_dtype() is dtypes.float64
    assert dtypes.default_numpy_dtype(np.dtype(complex)) == np.complex128


def test_what_promotion_remembers_is_bounded() -> None:
    """A `cat` of every length there is does not fill the memory."""
    before = len(dtypes._RESULTS)
    for count in range(10, 60):
        dtypes.result_dtype(((np.dtype(np.float32), TENSOR),) * count)
    assert len(dtypes._RESULTS) == before


@pytest.mark.parametrize("name", NAMES)
def test_attributes_and_limits_are_pytorchs(name: str) -> None:
    each = dtypes.named(name)
    assert {key: getattr(each, key) for key in RECORDED["attributes"][name]} == RECORDED["attributes"][name]
    assert repr(each) == f"torch.{name}"
    assert each.numpy == np.dtype(name)
    if name in RECORDED["limits"]:
        limits = (dtypes.finfo if each.numpy.kind in "fc" else dtypes.iinfo)(each)
        assert {key: getattr(limits, key) for key in RECORDED["limits"][name]} == RECORDED["limits"][name]
        assert repr(limits) == RECORDED["limit_texts"][name]


def test_aliases_name_the_same_objects() -> None:
    for alias, expected in RECORDED["aliases"].items():
        assert repr(dtypes.named(alias)) == expected
    assert dtypes.double is dtypes.float64
    assert dtypes.bool_ is dtypes.named("bool")


@pytest.mark.parametrize(
    "each", [*dtypes.DTYPES, dtypes.strided, dtypes.channels_last, dtypes.preserve_format], ids=repr
)
def test_dtypes_and_layouts_copy_and_pickle_to_themselves(each: object) -> None:
    assert pickle.loads(pickle.dumps(each)) is each
    assert copy.copy(each) is each
    assert copy.deepcopy([each])[0] is each


def test_a_dtype_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="cannot create"):
        dtypes.dtype("float32")


def test_of_finds_the_dtype_of_arrays() -> None:
    for each in dtypes.DTYPES:
        assert dtypes.of(np.zeros(1, each.numpy).dtype) is each
    assert dtypes.of(np.dtype(np.longlong)) is dtypes.int64
    assert dtypes.of(np.float32) is dtypes.float32  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "hint"),
    [(np.longdouble, "np.float64"), (np.clongdouble, "np.complex128"), (">f4", "np.float32"), ("U3", "float16"),
     ("M8[s]", "float16"), (object, "float16")],
)  # fmt: skip
def test_a_numpy_dtype_that_no_tensor_has_is_an_error_with_a_remedy(given: Any, hint: str) -> None:
    with pytest.raises(DTypeError) as caught:
        dtypes.of(np.dtype(given))
    assert caught.value.hint is not None
    assert hint in caught.value.hint


def test_bfloat16_is_an_error_that_says_why() -> None:
    error = dtypes.lacking("bfloat16")
    assert isinstance(error, NoAttributeError)
    assert "NumPy has no bfloat16" in str(error)
    assert dtypes.lacking("float32") is dtypes.lacking("nonsense") is None
    with pytest.raises(DTypeError, match="NumPy has no bfloat16"):
        dtypes.named("bfloat16")
    with pytest.raises(DTypeError, match="no dtype is named 'flaot32'") as caught:
        dtypes.named("flaot32")
    assert caught.value.hint == "did you mean float32? also close: float, cfloat"


def test_as_dtype_takes_what_pytorch_takes() -> None:
    assert dtypes.as_dtype(dtypes.float16) is dtypes.float16
    assert [dtypes.as_dtype(kind) for kind in (bool, int, float, complex)] == [
        dtypes.bool_, dtypes.int64, dtypes.float64, dtypes.complex128
    ]  # fmt: skip
    for wrong in (np.float32, np.dtype("f4"), "float32", 3, str, None, []):
        with pytest.raises(TypeError, match=r"dtype must be a torch\.dtype") as caught:
            dtypes.as_dtype(wrong)
        if wrong not in (3, str, None, []):
            assert caught.value.hint == "write torch.float32"  # type: ignore[attr-defined]


def test_real_and_complex_dtypes_of_a_precision() -> None:
    assert dtypes.float32.to_complex() is dtypes.complex64.to_complex() is dtypes.complex64
    assert dtypes.float64.to_complex() is dtypes.complex128
    assert dtypes.complex128.to_real() is dtypes.float64.to_real() is dtypes.float64
    assert dtypes.int8.to_real() is dtypes.int8
    with pytest.raises(RuntimeError):
        dtypes.int32.to_complex()


@pytest.mark.parametrize("wrong", [dtypes.int32, dtypes.complex64, "float32", np.float32])
def test_a_default_that_is_not_floating_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="only floating-point types"):
        dtypes.set_default_dtype(wrong)
    assert dtypes.get_default_dtype() is dtypes.float32


def test_limits_refuse_the_other_category_and_compare_by_dtype() -> None:
    for call, argument in [(dtypes.finfo, dtypes.int8), (dtypes.iinfo, dtypes.float32), (dtypes.iinfo, dtypes.bool_)]:
        with pytest.raises(TypeError, match="requires"):
            call(argument)
    assert dtypes.finfo() == dtypes.finfo(dtypes.float32) == dtypes.finfo(dtypes.complex64)
    assert dtypes.iinfo(dtypes.int8) != dtypes.iinfo(dtypes.int16)
    assert len({dtypes.finfo(), dtypes.finfo(dtypes.float32), dtypes.finfo(dtypes.float64)}) == 2


def test_helpers_tell_the_categories() -> None:
    table = {
        name: (dtypes.is_floating(d), dtypes.is_complex(d), dtypes.is_inexact(d), dtypes.is_integral(d))
        for name, d in [(name, np.dtype(name)) for name in ("bool", "uint8", "int64", "float16", "complex64")]
    }
    assert table == {
        "bool": (False, False, False, False),
        "uint8": (False, False, False, True),
        "int64": (False, False, False, True),
        "float16": (True, False, True, False),
        "complex64": (False, True, True, False),
    }
    assert dtypes.is_integral(np.dtype(bool), with_bool=True)


# --- sizes ------------------------------------------------------------------------------------------------------------


def test_size_stays_a_size() -> None:
    size = Size([2, 3])
    for made, text in [
        (size, "torch.Size([2, 3])"),
        (Size(), "torch.Size([])"),
        (size[1:], "torch.Size([3])"),
        (size + (1,), "torch.Size([2, 3, 1])"),  # noqa: RUF005  the sum is what is meant
        ((1,) + size, "torch.Size([1, 2, 3])"),  # noqa: RUF005
        (size + size, "torch.Size([2, 3, 2, 3])"),
        (size * 2, "torch.Size([2, 3, 2, 3])"),
        (2 * size, "torch.Size([2, 3, 2, 3])"),
        (Size((True, np.int64(2))), "torch.Size([1, 2])"),
        (pickle.loads(pickle.dumps(size)), "torch.Size([2, 3])"),
        (copy.deepcopy(size), "torch.Size([2, 3])"),
    ]:
        assert type(made) is Size
        assert repr(made) == text
    assert size == (2, 3)
    assert hash(size) == hash((2, 3))
    assert size[-1] == 3
    assert (size.numel(), Size().numel(), Size((4, 0)).numel()) == (6, 1, 0)


@pytest.mark.parametrize(
    "wrong", [lambda: Size([2.0]), lambda: Size("ab"), lambda: operator.add(Size((2,)), [1]), lambda: Size(5)]
)
def test_what_is_no_size_is_a_type_error(wrong: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        wrong()


# --- devices ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text", "plain"),
    [
        (("cpu",), "device(type='cpu')", "cpu"),
        (("cpu", 0), "device(type='cpu', index=0)", "cpu:0"),
        (("cpu:1",), "device(type='cpu', index=1)", "cpu:1"),
        (("cuda:0",), "device(type='cuda', index=0)", "cuda:0"),
        ((0,), "device(type='cuda', index=0)", "cuda:0"),
        (("meta",), "device(type='meta')", "meta"),
        ((device("cpu:2"),), "device(type='cpu', index=2)", "cpu:2"),
    ],
)
def test_devices_are_named_as_in_pytorch(arguments: tuple[Any, ...], text: str, plain: str) -> None:
    made = device(*arguments)
    assert (repr(made), str(made)) == (text, plain)
    assert pickle.loads(pickle.dumps(made)) == made == device(plain)
    assert hash(made) == hash(device(plain))


def test_devices_compare_by_type_and_index() -> None:
    assert device("cpu") != device("cpu", 0)
    assert device("cpu") != "cpu"
    assert device(type="cpu", index=0) == device("cpu:0")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [((), TypeError), ((1.5,), TypeError), ((True,), TypeError), (("cpu", "0"), TypeError), (("foo",), RuntimeError),
     (("cuda:x",), RuntimeError), (("cuda:",), RuntimeError), (("cpu:-1",), RuntimeError), (("cpu", -1), RuntimeError),
     (("cpu:0", 1), RuntimeError), (("cuda:01",), RuntimeError)],
)  # fmt: skip
def test_a_device_that_makes_no_sense_is_an_error(arguments: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        device(*arguments)
    assert isinstance(caught.value, SrcgradError)


def test_tensors_are_made_on_the_cpu_alone() -> None:
    assert dtypes.usable_device() == dtypes.usable_device("cpu") == device("cpu")
    assert dtypes.usable_device(device("cpu", 0)) == device("cpu:0")
    for wanted in ("cuda", "cuda:1", 0, device("mps"), "meta"):
        with pytest.raises(RuntimeError, match="none can be made on"):
            dtypes.usable_device(wanted)


def test_a_device_is_a_context_and_a_decorator() -> None:
    @device("cuda")
    def inside() -> device:
        return dtypes.get_default_device()

    with device("meta"), device("cpu", 0) as entered:
        assert dtypes.get_default_device() is entered
        assert dtypes.usable_device() == device("cpu:0")
    with pytest.raises(RuntimeError, match="cuda"), device("cuda"):
        dtypes.usable_device()
    assert inside() == device("cuda")
    assert dtypes.get_default_device() == device("cpu")


def test_the_default_device_of_a_block_is_its_threads_own() -> None:
    seen: list[device] = []
    with device("cuda"):
        thread = threading.Thread(target=lambda: seen.append(dtypes.get_default_device()))
        thread.start()
        thread.join()
    assert seen == [device("cpu")]


def test_set_default_device_holds_outside_of_blocks() -> None:
    dtypes.set_default_device("cpu:0")
    try:
        with device("cpu"):
            assert str(dtypes.get_default_device()) == "cpu"
        assert str(dtypes.get_default_device()) == "cpu:0"
    finally:
        dtypes.set_default_device(None)
    assert str(dtypes.get_default_device()) == "cpu"


def test_layouts_are_named() -> None:
    named = (dtypes.strided, dtypes.contiguous_format, dtypes.channels_last, dtypes.channels_last_3d)
    assert [repr(each) for each in named] == [
        "torch.strided", "torch.contiguous_format", "torch.channels_last", "torch.channels_last_3d"
    ]  # fmt: skip
    assert isinstance(dtypes.strided, dtypes.layout)
    assert isinstance(dtypes.preserve_format, dtypes.memory_format)
