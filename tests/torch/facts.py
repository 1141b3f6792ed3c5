"""One expression on either module: what it gives, its gradients, and what it raises.

A case is text, so that PyTorch and the facade run the same. ``python tests/torch/facts.py AREA ...`` records what
PyTorch says of ``tests/torch/tables/AREA.py`` into ``tests/torch/recorded/AREA.json``; it needs PyTorch, the tests do
not.
"""

from __future__ import annotations

import functools
import importlib
import json
import re
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

HERE = Path(__file__).parent


class Case(NamedTuple):
    """``code`` is an expression in ``torch`` and the inputs' names, or statements that end by setting ``result``.

    ``inputs``: per name a shape, or (shape, kind) with kind one of normal, positive, unit, int, bool, complex, or a
    nested list that is taken as it is; floating ones are float64 and require grad. ``grad``: compare gradients;
    ``second``: gradients of gradients too. ``text``: the printed result is compared, not its numbers.
    """

    name: str
    code: str
    inputs: dict[str, Any] = {}  # noqa: RUF012  never changed
    grad: bool = True
    second: bool = True
    text: bool = False
    rtol: float = 1e-9


def number_of(name: str) -> int:
    return zlib.crc32(name.encode())


def made(case: Case, name: str, spec: Any) -> np.ndarray[Any, Any]:
    """The array of an input: the same on every machine."""
    if isinstance(spec, list):
        return np.array(spec)
    shape, kind = spec if len(spec) == 2 and isinstance(spec[1], str) else (spec, "normal")
    rng = np.random.Generator(np.random.PCG64(number_of(f"{case.name}/{name}")))
    draws: dict[str, Any] = {
        "normal": lambda: rng.standard_normal(shape),
        "float32": lambda: rng.standard_normal(shape).astype(np.float32),
        "positive": lambda: rng.uniform(0.3, 2.0, shape),
        "unit": lambda: rng.uniform(-0.9, 0.9, shape),
        "int": lambda: rng.integers(-4, 5, shape),
        "index": lambda: rng.integers(0, 2, shape),
        "bool": lambda: rng.integers(0, 2, shape).astype(bool),
        "complex": lambda: rng.standard_normal(shape) + 1j * rng.standard_normal(shape),
        "spd": lambda: positive_definite(rng, shape),
    }
    return np.asarray(draws[kind]())


def positive_definite(rng: Any, shape: Any) -> Any:
    x = rng.standard_normal(shape)
    return x @ np.swapaxes(x, -1, -2) + 0.5 * np.eye(shape[-1])


def listed(tensor: Any) -> Any:
    """A tensor as JSON: dtype, shape, and values (complex ones as pairs)."""
    array = np.asarray(tensor.detach().clone().resolve_conj().resolve_neg())
    values = np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
    return {"dtype": str(tensor.dtype), "shape": list(array.shape), "values": values.ravel().tolist()}


def flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [leaf for item in result for leaf in flat(item)]
    return [result]


def weights(case: Case, tensors: list[Any], torch: Any) -> Any:
    """The sum of the differentiable results times fixed weights: a real scalar."""
    total: Any = None
    for k, tensor in enumerate(tensors):
        rng = np.random.Generator(np.random.PCG64(number_of(f"{case.name}/w{k}")))
        weight = torch.tensor(rng.standard_normal(tuple(tensor.shape)).tolist(), dtype=torch.float64)
        weight = weight.reshape(tuple(tensor.shape))
        real = torch.view_as_real(tensor.resolve_conj()).sum(-1) if tensor.is_complex() else tensor
        term = (real * weight.to(real.dtype)).sum()
        total = term if total is None else total + term
    return total


def observe(case: Case, torch: Any) -> dict[str, Any]:
    """What a module says of a case."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return observed(case, torch)
    except Exception as error:
        kind = next(k for k in type(error).__mro__ if k.__module__ == "builtins")
        return {"raises": kind.__name__, "message": str(error).splitlines()[0] if str(error) else ""}


def observed(case: Case, torch: Any) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    for name, spec in case.inputs.items():
        array = made(case, name, spec)
        tensor = torch.tensor(array.tolist(), dtype=getattr(torch, array.dtype.name)).reshape(tuple(array.shape))
        if case.grad and array.dtype.kind in "fc":
            tensor.requires_grad_()
        inputs[name] = tensor
    scope = {"torch": torch, "np": np, **inputs}
    if ("result" in case.code and "\n" in case.code) or case.code.startswith("result"):
        exec(case.code, scope)
        result = scope["result"]
    else:
        result = eval(case.code, scope)
    if case.text:
        return {"text": repr(result)}
    leaves = flat(result)
    found: dict[str, Any] = {"values": [], "grad_fn": []}
    for leaf in leaves:
        is_tensor = isinstance(leaf, torch.Tensor)
        found["values"].append(listed(leaf) if is_tensor else repr(leaf))
        node = leaf.grad_fn if is_tensor else None
        found["grad_fn"].append(None if node is None else node.name())
    wanted = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    leaf_inputs = [tensor for tensor in inputs.values() if tensor.requires_grad]
    if not (case.grad and wanted and leaf_inputs):
        return found
    first = torch.autograd.grad(weights(case, wanted, torch), leaf_inputs, create_graph=case.second, allow_unused=True)
    found["grad"] = [None if g is None else listed(g) for g in first]
    if case.second:
        again = [g for g in first if g is not None and g.requires_grad]
        if again:
            second = torch.autograd.grad(weights(case, again, torch), leaf_inputs, allow_unused=True)
            found["second"] = [None if g is None else listed(g) for g in second]
    return found


def cases(area: str) -> list[Case]:
    sys.path.insert(0, str(HERE.parent.parent))
    table: list[Case] = importlib.import_module(f"tests.torch.tables.{area}").CASES
    return table


def differences(case: Case, ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """Where two observations differ; an error is compared by its class."""
    if "raises" in ours or "raises" in theirs:
        same = ours.get("raises") == theirs.get("raises")
        return [] if same else [f"ours: {ours.get('raises')} {ours.get('message')}; theirs: {theirs}"[:600]]
    if "text" in theirs:
        return [] if ours["text"] == theirs["text"] else [f"ours:\n{ours['text']}\ntheirs:\n{theirs['text']}"]
    found = []
    for key in ("values", "grad", "second"):
        all_mine, all_others = ours.get(key) or [], theirs.get(key) or []
        if key == "second":  # what is linear is not differentiated again, or its derivative is 0
            all_mine, all_others = all_mine or [None] * len(all_others), all_others or [None] * len(all_mine)
        if len(all_mine) == len(all_others):
            for k, (mine, other) in enumerate(zip(all_mine, all_others, strict=True)):
                if not close(mine, other, case.rtol, CANCELLED if key == "second" else 0.0):
                    found.append(f"{key}[{k}]: ours {mine}; theirs {other}"[:600])
        else:
            found.append(f"{key}: ours {ours.get(key)}; theirs {theirs.get(key)}"[:600])
    if ours.get("grad_fn") != theirs.get("grad_fn"):
        found.append(f"grad_fn: ours {ours.get('grad_fn')}; theirs {theirs.get('grad_fn')}")
    return found


CANCELLED: Final = 2.0**-50
"""What is left where second derivatives cancel, as those of a / a: rounding, by the order of the steps."""


def close(mine: Any, other: Any, rtol: float, atol: float = 0.0) -> bool:
    """Equal dtypes, shapes and numbers; no gradient is a gradient of zeros."""
    if not isinstance(mine, dict) or not isinstance(other, dict):
        if mine is None and isinstance(other, dict):
            return not np.any(np.array(other["values"], float))
        if other is None and isinstance(mine, dict):
            return not np.any(np.array(mine["values"], float))
        return bool(mine == other)
    if mine["dtype"] != other["dtype"] or mine["shape"] != other["shape"]:
        return False
    a, b = np.array(mine["values"], float), np.array(other["values"], float)
    narrow = {"torch.float32": 2e-5, "torch.complex64": 2e-5, "torch.float16": 4e-3}.get(mine["dtype"], rtol)
    scale = np.max(np.abs(b[np.isfinite(b)]), initial=1e-300)
    return bool(np.allclose(a, b, rtol=narrow, atol=max(atol, narrow * min(1.0, scale)), equal_nan=True))


@functools.cache
def recorded(area: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "recorded" / f"{area}.json").read_text())
    return found


AREAS: Final = sorted(path.stem for path in (HERE / "tables").glob("*.py"))
"""All tables: of operations, and of modules."""
GROUPS: Final[dict[tuple[str, str], list[Case]]] = {}
"""The cases that are one test: there are thousands, and to be a test takes most of them longer than to run."""


def group_of(area: str, case: Case) -> tuple[str, str]:
    """The area, and how the name of the case begins; those of complex numbers are apart."""
    return area, re.split(r"[^A-Za-z]", case.name)[0] + (" complex" if "complex" in case.name else "")


for _area in AREAS:
    for _case in cases(_area):
        GROUPS.setdefault(group_of(_area, _case), []).append(_case)


def main() -> None:
    import torch

    for area in sys.argv[1:]:
        facts = {case.name: observe(case, torch) for case in cases(area)}
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(fact)}" for name, fact in facts.items())
        (HERE / "recorded" / f"{area}.json").write_text(f"{{\n{lines}\n}}\n")
        print(area, len(facts))


if __name__ == "__main__":
    main()
