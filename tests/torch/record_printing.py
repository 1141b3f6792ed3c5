"""Records the facts of PyTorch that `test_printing.py` and `test_dtypes.py` compare with.

Run with a Python that has PyTorch: `python tests/torch/record_printing.py`. It writes `recorded/printing.json` and
`recorded/promotion.json`.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

RECORDED = Path(__file__).parent / "recorded"
SEED = 20
INTEGERS = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
SHAPES = [[], [1], [3], [7], [25], [2, 3], [3, 1], [2, 2, 3], [1, 1, 1, 2], [2, 1, 3, 2], [9, 21]]
EMPTY = [[0], [0, 3], [3, 0], [2, 0, 2]]
LARGE = [[1001], [7, 150], [3, 400], [1000, 2], [20, 8, 9], [6, 6, 6, 6], [2, 501], [1, 1, 1200]]

Case = dict[str, Any]


def number(source: random.Random, style: str, dtype: str) -> Any:
    """One number of a style, as Python writes it exactly for the dtype."""
    if dtype == "bool":
        return source.random() < 0.5
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        wide = source.randint(int(info.min), int(info.max))
        small = source.randint(0 if info.min == 0 else -9, 9)
        return wide if style in ("large", "mixed") else small
    value = {
        "whole": lambda: float(source.randint(-9, 9)),
        "unit": lambda: round(source.uniform(-1, 1), 6),
        "positive": lambda: round(source.uniform(0.1, 60), 5),
        "large": lambda: round(source.uniform(-3e4, 3e4), 3),
        "small": lambda: source.uniform(-2e-4, 2e-4),
        "wholes": lambda: float(source.randint(1, 12000)),
        "huge": lambda: source.choice([1e8, 1e8 + 8, 5e7, 2.0]) if dtype != "float16" else 1000.0,
        "mixed": lambda: source.uniform(-1, 1) * 10.0 ** source.randint(-5, 4),
        "special": lambda: source.choice([float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.0, -2.0]),
        "specials": lambda: source.choice([float("nan"), float("-inf"), 0.25, -0.0, 123.456]),
        "odd": lambda: source.choice([float("nan"), float("inf"), 0.0]),
        "zero": lambda: 0.0,
    }[style]
    return value()


STYLES = (
    "whole", "unit", "positive", "large", "small", "wholes", "huge", "mixed", "special", "specials", "odd", "zero"
)  # fmt: skip


def values(source: random.Random, style: str, dtype: str, count: int) -> list[Any]:
    if dtype in COMPLEX:
        return [
            [number(source, style, dtype), number(source, source.choice([style, style, "whole"]), dtype)]
            for _ in range(count)
        ]
    return [number(source, style, dtype) for _ in range(count)]


def exact(array: np.ndarray[Any, Any]) -> list[Any]:
    """The numbers of an array as JSON keeps them; complex ones as pairs."""
    flat = array.ravel()
    if array.dtype == np.float32:  # the shortest text of each, where that is exact in float32
        return [float(str(value)) for value in flat]
    return flat.view(flat.real.dtype).reshape(-1, 2).tolist() if array.dtype.kind == "c" else flat.tolist()


def made(dtype: str, shape: list[int], numbers: list[Any]) -> np.ndarray[Any, Any]:
    if dtype in COMPLEX:
        numbers = [complex(real, imaginary) for real, imaginary in numbers]
    with np.errstate(over="ignore"):
        return np.array(numbers, dtype=dtype).reshape(shape)


def generated(dtype: str, shape: list[int], rule: str) -> np.ndarray[Any, Any]:
    """Large arrays are recorded as a rule: `ramp` counts up, `wave` is a scaled quadratic residue."""
    count = int(np.prod(shape))
    index = np.arange(count)
    if rule == "ramp":
        found = index
    elif rule == "wave":
        found = (index * index % 211) / 64.0 - 1.5
    else:
        found = np.where(index % 97 == 0, 2.0**20, (index % 13) / 8.0)
    return found.astype(dtype).reshape(shape)


def numeric_cases(source: random.Random) -> Iterator[Case]:
    for dtype in ["bool", *INTEGERS, *FLOATS, *COMPLEX]:
        styles = STYLES if dtype in FLOATS + COMPLEX else ["small", "large"]
        shapes = SHAPES if dtype in ("float32", "float64", "int64", "complex64") else SHAPES[:6]
        for style in styles:
            for shape in shapes:
                often = style in ("unit", "mixed", "large", "special") and len(shape) < 4
                if source.random() < (0.1 if often else 0.5) or (shape == [9, 21] and source.random() < 0.6):
                    continue
                drawn = values(source, style, dtype, int(np.prod(shape)))
                yield {"dtype": dtype, "shape": shape, "values": exact(made(dtype, shape, drawn))}
        for shape in EMPTY:
            yield {"dtype": dtype, "shape": shape, "values": []}


def large_cases() -> Iterator[Case]:
    for shape in LARGE:
        for dtype, rule in [("float32", "wave"), ("int64", "ramp"), ("float64", "spikes"), ("complex64", "wave")]:
            yield {"dtype": dtype, "shape": shape, "rule": rule}
    for shape in [[10, 10], [3, 4, 5], [40]]:
        for options in [{"threshold": 5}, {"threshold": 5, "edgeitems": 1}, {"profile": "full"}, {"threshold": 39}]:
            yield {"dtype": "float32", "shape": shape, "rule": "wave", "options": options}
    yield {"dtype": "int64", "shape": [2, 3, 200], "rule": "ramp", "options": {"edgeitems": 0}}
    yield {"dtype": "float32", "shape": [1100], "rule": "ramp", "options": {"edgeitems": 0}}
    yield {"dtype": "int64", "shape": [10], "rule": "ramp", "options": {"threshold": 10, "edgeitems": 2}}
    for linewidth in range(20, 100, 3):
        for shape in ([5], [0, 3]):
            narrow: Case = {"dtype": "float64", "rule": "wave", "options": {"linewidth": linewidth}}
            yield {**narrow, "shape": shape, "grad": "LongNamedFunctionBackward"}
            yield {**narrow, "shape": shape, "tangent": True}
    for shape in ([], [2], [0], [2, 0]):
        yield {"dtype": "float64", "shape": shape, "rule": "ramp", "options": {"edgeitems": 0}}
        yield {"dtype": "float32", "shape": shape, "rule": "ramp", "options": {"edgeitems": 0}, "meta": True}
    yield {"dtype": "float32", "shape": [1100], "rule": "wave", "options": {"threshold": float("inf")}}


def option_cases(source: random.Random) -> Iterator[Case]:
    options: list[dict[str, Any]] = [
        {"precision": 2}, {"precision": 0}, {"precision": 8}, {"linewidth": 40}, {"linewidth": 1}, {"linewidth": 200},
        {"sci_mode": True}, {"sci_mode": False}, {"profile": "short"}, {"profile": "short", "precision": 6},
        {"profile": "full", "sci_mode": True}, {"precision": 1, "sci_mode": True, "linewidth": 60},
        {"profile": "default"},
    ]  # fmt: skip
    for chosen in options:
        for dtype in ("float32", "complex64", "int16"):
            for style in ("whole", "unit", "mixed", "specials") if dtype != "int16" else ("large",):
                for shape in ([], [9], [3, 4]):
                    drawn = values(source, style, dtype, int(np.prod(shape)))
                    yield {
                        "dtype": dtype,
                        "shape": shape,
                        "values": exact(made(dtype, shape, drawn)),
                        "options": chosen,
                    }


def suffix_cases(source: random.Random) -> Iterator[Case]:
    """What stands after the numbers, at every length of the last line."""
    extras: list[dict[str, Any]] = [
        {"requires_grad": True}, {"grad": "MulBackward0"}, {"grad": "LongNamedFunctionBackward"}, {"parameter": True},
        {"default": "float64"}, {"default": "float64", "grad": "SqueezeBackward1"}, {"default": "float16"},
        {"tangent": True},        {"meta": True}, {"meta": True, "requires_grad": True}, {"prefix": "MyTensor("},
        {"prefix": "MyTensor(", "grad": "AddBackward0"}, {"parameter": True, "default": "float64"},
    ]  # fmt: skip
    for extra in extras:
        for dtype in ("float32", "float64", "float16", "complex64", "complex128", "int64", "int32", "bool"):
            if dtype[:5] not in ("float", "compl") and not {"default", "meta", "prefix"} & extra.keys():
                continue
            if dtype[:5] not in ("float", "compl") and (
                "grad" in extra or "parameter" in extra or "requires_grad" in extra
            ):
                continue
            for shape in ([], [1], [2, 2], [0], [0, 3]):
                drawn = values(source, "unit", dtype, int(np.prod(shape)))
                yield {"dtype": dtype, "shape": shape, "values": exact(made(dtype, shape, drawn)), **extra}
    for length in range(1, 18):
        for extra in ({"grad": "MulBackward0"}, {"requires_grad": True}, {"parameter": True}, {"tangent": True}):
            for dtype in ("float32", "float64"):
                drawn = values(source, "unit", dtype, length)
                yield {"dtype": dtype, "shape": [length], "values": exact(made(dtype, [length], drawn)), **extra}


class MyTensor(torch.Tensor):
    pass


def text_of(case: Case) -> str:
    """What PyTorch prints for a case."""
    array = (
        generated(case["dtype"], case["shape"], case["rule"])
        if "rule" in case
        else made(case["dtype"], case["shape"], case["values"])
    )
    torch.set_printoptions(profile="default")
    torch.set_printoptions(**case.get("options", {}))
    torch.set_default_dtype(getattr(torch, case.get("default", "float32")))
    try:
        x = torch.from_numpy(array.copy())
        if case.get("meta"):
            x = x.to("meta")
        if case.get("requires_grad"):
            x.requires_grad_()
        if "prefix" in case:
            x = x.as_subclass(MyTensor)
        if case.get("parameter"):
            x = torch.nn.Parameter(x)
        if "grad" in case:
            x = NODES[case["grad"]](x.requires_grad_())
        if case.get("tangent"):
            with torch.autograd.forward_ad.dual_level():
                tangent = torch.ones_like(x)
                case["tangent"] = f"{tangent}"
                return repr(torch.autograd.forward_ad.make_dual(x, tangent))
        return repr(x)
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_printoptions(profile="default")


class LongNamedFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()


NODES = {
    "MulBackward0": lambda x: x * 1,
    "AddBackward0": lambda x: x + 0,
    "SqueezeBackward1": lambda x: x.unsqueeze(0).squeeze(0),
    "LongNamedFunctionBackward": LongNamedFunction.apply,
}


KINDS = {
    "tensor": lambda dtype: torch.ones(2, dtype=dtype),
    "scalar": lambda dtype: torch.ones((), dtype=dtype),
}
NUMBERS = {"bool": True, "int64": 1, "float64": 1.0, "complex128": 1j}
DTYPES = ["bool", *INTEGERS, *FLOATS, *COMPLEX]


def promotion() -> dict[str, Any]:
    """`result_type` of every pair of operands under each default, `promote_types` and `can_cast` of every pair."""
    operands: list[tuple[str, str, Any]] = [
        (dtype, kind, make(getattr(torch, dtype))) for dtype in DTYPES for kind, make in KINDS.items()
    ]
    operands += [(dtype, "number", value) for dtype, value in NUMBERS.items()]

    def outcome(call: Any) -> str:
        try:
            return str(call()).removeprefix("torch.")
        except RuntimeError:
            return "error"

    found: dict[str, Any] = {"result_type": {}, "promote_types": {}, "can_cast": {}}
    for default in FLOATS:
        torch.set_default_dtype(getattr(torch, default))
        table = {}
        for a, b in itertools.product(operands, repeat=2):
            table[f"{a[0]} {a[1]} {b[0]} {b[1]}"] = outcome(lambda a=a, b=b: torch.result_type(a[2], b[2]))
        found["result_type"][default] = table
    torch.set_default_dtype(torch.float32)
    for a, b in itertools.product(DTYPES, repeat=2):
        pair = getattr(torch, a), getattr(torch, b)
        found["promote_types"][f"{a} {b}"] = outcome(lambda pair=pair: torch.promote_types(*pair))
        found["can_cast"][f"{a} {b}"] = torch.can_cast(*pair)
    found["limits"] = {
        **{name: {key: getattr(torch.finfo(getattr(torch, name)), key) for key in FINFO} for name in FLOATS + COMPLEX},
        **{name: {key: getattr(torch.iinfo(getattr(torch, name)), key) for key in IINFO} for name in INTEGERS},
    }
    found["limit_texts"] = {
        **{name: repr(torch.finfo(getattr(torch, name))) for name in FLOATS + COMPLEX},
        **{name: repr(torch.iinfo(getattr(torch, name))) for name in INTEGERS},
    }
    found["attributes"] = {name: {key: getattr(getattr(torch, name), key) for key in ATTRIBUTES} for name in DTYPES}
    found["aliases"] = {name: repr(getattr(torch, name)) for name in ALIASES}
    return found


FINFO = ["bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"]
IINFO = ["bits", "max", "min", "dtype"]
ATTRIBUTES = ["is_floating_point", "is_complex", "is_signed", "itemsize"]
ALIASES = ["half", "float", "double", "cfloat", "cdouble", "short", "int", "long", "bool"]


def main() -> None:
    warnings.simplefilter("ignore")
    source = random.Random(SEED)
    cases = [*numeric_cases(source), *large_cases(), *option_cases(source), *suffix_cases(source)]
    for case in cases:
        case["text"] = text_of(case)
        if "grad" in case:  # what PyTorch calls it in the end: a subclass adds a node of its own
            (case["grad"],) = re.findall("grad_fn=<(\\w+)>", case["text"])
    RECORDED.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(case) for case in cases)
    (RECORDED / "printing.json").write_text(f"[\n{lines}\n]\n", "utf-8")
    (RECORDED / "promotion.json").write_text(json.dumps(promotion(), indent=0) + "\n", "utf-8")
    print(len(cases), "texts of PyTorch", torch.__version__)


if __name__ == "__main__":
    main()
