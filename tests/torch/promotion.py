"""Operations on operands of all dtypes and kinds, and what they give: one code for PyTorch and for the facade.

``python tests/torch/promotion.py`` records what PyTorch says into ``tests/torch/recorded/promoted_operations.json``.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).parent / "recorded" / "promoted_operations.json"
DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"
)  # fmt: skip
LETTERS = dict(zip([f"torch.{name}" for name in DTYPES], "?BbhilefdFD", strict=True))
LETTERS["torch.complex32"] = "F"
"""NumPy has no complex32, in place of which the facade has complex64."""
NUMBERS: dict[str, Any] = {"bool": True, "int": 3, "float": 1.5, "complex": 1 + 2j}
OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "lt": operator.lt,
    "eq": operator.eq,
    "and": operator.and_,
    "iadd": lambda x, y: x.add_(y) if hasattr(x, "add_") else operator.add(x, y),
    "idiv": lambda x, y: x.div_(y) if hasattr(x, "div_") else operator.truediv(x, y),
}
ERRORS = {"RuntimeError": "R", "TypeError": "T", "NotImplementedError": "N"}
DRAWN = 400


def tensor(torch: Any, name: str, kind: str, rng: Any) -> Any:
    """A tensor of two elements, or of none of its dimensions, with small positive numbers."""
    values = rng.integers(1, 4, 2).tolist()
    return torch.tensor(values if kind == "tensor" else values[0], dtype=getattr(torch, name))


def operands(torch: Any, left: str, right: str, rng: Any) -> tuple[Any, Any]:
    """The operands that two words name: ``tensor int8``, ``scalar float32``, ``number complex``."""
    found = []
    for word in (left, right):
        kind, name = word.split()
        found.append(NUMBERS[name] if kind == "number" else tensor(torch, name, kind, rng))
    return found[0], found[1]


def pairs() -> Iterator[tuple[str, str]]:
    """All pairs of words, one of which at least is a tensor's."""
    words = [f"{kind} {name}" for kind in ("tensor", "scalar") for name in DTYPES]
    words += [f"number {name}" for name in NUMBERS]
    for left in words:
        for right in words:
            if not (left.startswith("number") and right.startswith("number")):
                yield left, right


def result_of(torch: Any, name: str, left: str, right: str, rng: Any) -> Any:
    return OPERATIONS[name](*operands(torch, left, right, rng))


def codes(torch: Any, name: str) -> str:
    """A letter per pair: the dtype of the result, or the class of the error."""
    found = []
    for left, right in pairs():
        try:
            found.append(LETTERS[str(result_of(torch, name, left, right, np.random.default_rng(0)).dtype)])
        except (RuntimeError, TypeError, NotImplementedError) as error:
            kind = next(k.__name__ for k in type(error).__mro__ if k.__module__ == "builtins")
            found.append(ERRORS[kind])
    return "".join(found)


def drawn() -> list[tuple[str, str, str, int]]:
    """Operations, pairs and seeds of operands whose values are compared, too."""
    rng = np.random.default_rng(20)
    listed = list(pairs())
    return [
        (str(rng.choice(list(OPERATIONS))), *listed[rng.integers(len(listed))], int(rng.integers(1000)))
        for _ in range(DRAWN)
    ]


def values(torch: Any, name: str, left: str, right: str, seed: int) -> Any:
    """The elements, complex ones as pairs; None for an error."""
    try:
        found = result_of(torch, name, left, right, np.random.default_rng(seed))
    except (RuntimeError, TypeError, NotImplementedError):
        return None
    if str(found.dtype) == "torch.complex32":
        found = found.to(torch.complex64)
    flat = np.atleast_1d(np.asarray(found))
    return [[x.real, x.imag] for x in flat.tolist()] if flat.dtype.kind == "c" else flat.astype(float).tolist()


def main() -> None:
    import torch

    found = {
        "dtypes": {name: codes(torch, name) for name in OPERATIONS},
        "values": [values(torch, *case) for case in drawn()],
    }
    RECORD.write_text(json.dumps(found, indent=None, separators=(",", ":")).replace('],"', '],\n"') + "\n")


if __name__ == "__main__":
    main()
