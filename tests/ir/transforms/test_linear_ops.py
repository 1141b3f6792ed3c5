"""Each linear op applied to linear values themselves: rules need not emit it, so samples may never transpose it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Function, Value, literal
from srcgrad.ir.opdef import REGISTRY, Linear, Op, Sample
from srcgrad.ir.transforms.transpose import transpose
from srcgrad.ir.types import ArrayType


def applications() -> list[Any]:
    """Every linear op, on the first sample of each dtype, in each set of operands in which it is linear."""
    found = []
    for name, op in sorted(REGISTRY.items()):
        seen = set()
        for sample in op.samples() if isinstance(op, Linear) and not op.effect else ():
            arrays = [np.asarray(operand) for operand in sample.operands]
            positions = op.linear_positions(len(arrays), dict(sample.attrs))
            dtype = arrays[positions[0]].dtype if positions else None
            if dtype is None or dtype in seen or any(arrays[k].dtype.kind not in "fc" for k in positions):
                continue
            seen.add(dtype)
            for chosen in [(k,) for k in positions] if op.separate else [positions]:
                found.append(pytest.param(op, sample, chosen, id=f"{name}-{dtype}-{chosen}"))
    return found


@pytest.mark.whole
@pytest.mark.parametrize(("op", "sample", "chosen"), applications())
def test_the_transpose_pairs_as_the_op_does(op: Op, sample: Sample, chosen: tuple[int, ...]) -> None:
    """<u, L t> = <L^T u, t>."""
    random = np.random.default_rng(7)
    arrays = [np.asarray(operand) for operand in sample.operands]
    builder = Builder()
    types = [ArrayType(array.dtype, array.shape) for array in arrays]
    linear = {k: Value(types[k], None, None, linear=True) for k in chosen}
    operands = [linear[k] if k in linear else literal(array, types[k]) for k, array in enumerate(arrays)]
    results = builder.emit_operation(op, operands, dict(sample.attrs)).results
    if any(not result.type.differentiable for result in results):
        return  # a cast to integers has no transpose
    program = Function("linear", list(linear.values()), builder.operations, results)

    def draw(type: ArrayType) -> Any:
        numbers = random.normal(size=(2, *type.static_shape))
        return (numbers[0] + 1j * numbers[1] if type.dtype.kind == "c" else numbers[0]).astype(type.dtype)[()]

    tangents = [draw(types[k]) for k in chosen]
    cotangents = [draw(result.type) for result in results]
    pushed = evaluate(program, tangents)
    pulled = evaluate(transpose(program), cotangents)
    left = sum(np.sum(u * t, dtype=np.complex128).real for u, t in zip(cotangents, pushed, strict=True))
    right = sum(np.sum(u * t, dtype=np.complex128).real for u, t in zip(pulled, tangents, strict=True))
    dtypes = [type.dtype for type in (*types, *(result.type for result in results)) if type.differentiable]
    tolerance = 1e3 * max(float(np.finfo(dtype).eps) for dtype in dtypes)
    np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)
