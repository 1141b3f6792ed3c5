"""The cases of the tables by every way to a derivative: recorded gradients, dual tensors, transforms."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

import srcgrad.torch as torch
from tests.torch import facts


class Problem(NamedTuple):
    """A case with its inputs, the outputs that have gradients, cotangents of them, and the gradients."""

    case: facts.Case
    arrays: dict[str, Any]
    names: list[str]
    cotangents: list[Any]
    gradients: list[Any]


def tensor_of(array: Any) -> Any:
    return torch.tensor(array.tolist(), dtype=getattr(torch, array.dtype.name)).reshape(tuple(array.shape))


def result_of(case: facts.Case, tensors: dict[str, Any]) -> list[Any]:
    """The tensors that the case's code gives."""
    scope = {"torch": torch, "np": np, **tensors}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if ("result" in case.code and "\n" in case.code) or case.code.startswith("result"):
            exec(case.code, scope)
            found = scope["result"]
        else:
            found = eval(case.code, scope)
    return [x for x in facts.flat(found) if isinstance(x, torch.Tensor)]


def drawn(rng: Any, array: Any) -> Any:
    found = rng.standard_normal(array.shape)
    if array.dtype.kind == "c":
        found = found + 1j * rng.standard_normal(array.shape)
    return tensor_of(np.asarray(found, array.dtype))


def problems(group: tuple[str, str]) -> list[Problem]:
    """The cases of a group that have gradients, with them."""
    known = facts.recorded(group[0])
    found = []
    for case in facts.GROUPS[group]:
        if not case.grad or case.text or "raises" in known[case.name]:
            continue
        arrays = {name: facts.made(case, name, spec) for name, spec in case.inputs.items()}
        names = [name for name, array in arrays.items() if array.dtype.kind in "fc"]
        tensors = {name: tensor_of(array) for name, array in arrays.items()}
        for name in names:
            tensors[name].requires_grad_()
        outputs = [x for x in result_of(case, tensors) if x.requires_grad]
        if not outputs or not names:  # what a module has alone is no operand
            continue
        rng = np.random.default_rng(0)
        cotangents = [drawn(rng, output._data) for output in outputs]
        leaves = [tensors[name] for name in names]
        gradients = torch.autograd.grad(outputs, leaves, cotangents, allow_unused=True)
        if all(gradient is None for gradient in gradients):
            continue
        found.append(Problem(case, arrays, names, cotangents, list(gradients)))
    return found


def tolerance(problem: Problem) -> float:
    kinds = {array.dtype.itemsize for array in problem.arrays.values() if array.dtype.kind in "fc"}
    kinds |= {x._data.dtype.itemsize for x in problem.cotangents}
    return 4e-3 if 2 in kinds or "half" in problem.case.code else 1e-3 if 4 in kinds else 1e-6


def forward_difference(problem: Problem) -> str:
    """Where the tangents of dual tensors disagree with the gradients; empty where they agree."""
    forward = torch.autograd.forward_ad
    rng = np.random.default_rng(1)
    tangents = {name: drawn(rng, problem.arrays[name]) for name in problem.names}
    with forward.dual_level():
        duals = {name: tensor_of(array) for name, array in problem.arrays.items()}
        for name in problem.names:
            duals[name] = forward.make_dual(duals[name], tangents[name])
        pairs = [forward.unpack_dual(x) for x in result_of(problem.case, duals)]
    pushed = [pair.tangent for pair in pairs if pair.tangent is not None]
    if len(pushed) != len(problem.cotangents):
        return f"{len(pushed)} tangents for {len(problem.cotangents)} outputs"
    ours = sum(product(ct, tangent) for ct, tangent in zip(problem.cotangents, pushed, strict=True))
    parts = [(g, tangents[name]) for name, g in zip(problem.names, problem.gradients, strict=True) if g is not None]
    theirs = sum(product(g, tangent) for g, tangent in parts)
    scale = 1.0 + sum(float(np.sum(np.abs(g._data) * np.abs(tangent._data))) for g, tangent in parts)
    if np.isfinite(theirs) and not abs(ours - theirs) <= tolerance(problem) * scale:
        return f"forward {ours}, reverse {theirs}"
    return ""


def product(a: Any, b: Any) -> float:
    return float(np.real(np.vdot(a._data, b._data)))


def transform_difference(problem: Problem) -> str:
    """Where the gradients by torch.func.vjp disagree with the recorded ones; empty where they agree."""
    tensors = {name: tensor_of(array) for name, array in problem.arrays.items()}

    def function(*given: Any) -> Any:
        found = result_of(problem.case, {**tensors, **dict(zip(problem.names, given, strict=True))})
        return tuple(x for x in found if x.is_floating_point() or x.is_complex())

    outputs, pull = torch.func.vjp(function, *[tensors[name] for name in problem.names])
    if len(outputs) != len(problem.cotangents):  # some output is constant, and its cotangent is not known
        return ""
    for name, expected, found in zip(problem.names, problem.gradients, pull(tuple(problem.cotangents)), strict=True):
        known = np.zeros_like(problem.arrays[name]) if expected is None else expected._data
        rtol = tolerance(problem)
        if not np.allclose(known, found._data, rtol=10 * rtol, atol=rtol, equal_nan=True):
            return f"{name}: recorded {known.ravel()[:4]}, transformed {found._data.ravel()[:4]}"
    return ""
