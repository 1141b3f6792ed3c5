"""The module form: complete, runnable, equal."""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.backends.numpy.expressions import HELPERS, helper
from srcgrad.backends.numpy.module import module_source
from srcgrad.ir.core import Builder, literal
from srcgrad.ir.opdef import REGISTRY, Op, Sample
from srcgrad.ir.types import FLOAT64, ArrayType
from tests.backends.numpy.programs import (
    Step,
    arguments,
    build,
    on_every_sample,
    one_operation,
    random_steps,
    same,
)
from tests.backends.numpy.test_reuse import matrices


def run(text: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, "<srcgrad module>", "exec"), namespace)
    return namespace


@on_every_sample
def test_every_sample(op: Op, sample: Sample) -> None:
    """All but the calls back into the program's own Python functions, which a text cannot hold."""
    if op.name == "host_call":
        return
    function = one_operation(op, sample)
    found = run(module_source(function))["f"](*arguments(sample))
    expected = evaluate(function, arguments(sample))
    results = [found] if len(expected) == 1 else list(found)
    assert len(results) == len(expected)
    for left, right in zip(results, expected, strict=True):
        assert same(left, right)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(random_steps(4, 16), st.integers(0, 9))
def test_random_programs(steps: list[Step], output: int) -> None:
    function = build(steps, [output, 0])
    results = run(module_source(function))["f"](*matrices())
    for left, right in zip(results, evaluate(function, matrices()), strict=True):
        assert same(left, right)


def globals_read(code: CodeType) -> set[str]:
    own = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    return own.union(*(globals_read(held) for held in code.co_consts if isinstance(held, CodeType)))


def test_helpers_call_helpers_that_a_module_holds() -> None:
    """`polygamma` of complex numbers called a function of its own file that no written module had."""
    found = {name: helper(name) for name in HELPERS}
    missed = {
        (name, read)
        for name, function in found.items()
        for read in globals_read(function.__code__) & function.__globals__.keys() - {"np"}
        if found.get(read) is not function.__globals__[read]
    }
    assert not missed


def test_several_functions_share_a_module() -> None:
    type = ArrayType(FLOAT64, (2,))
    functions = []
    for number in (1.0, 2.0):
        builder = Builder()
        x = builder.param(type, "x")
        y = builder.emit(REGISTRY["mul"], [x, literal([number, -number], type)])
        functions.append(builder.function("f", [builder.emit(REGISTRY["gammaln"], [y])]))
    text = module_source(functions, "Two functions.")
    head = '"""Two functions."""\n\nimport numpy as np\nimport scipy.special\n\n\nc0 = np.array([1.0, -1.0])\n'
    assert text.startswith(head)
    names = run(text)
    for name, function in zip(("f", "f_2"), functions, strict=True):
        assert same(names[name](np.array([0.5, 1.5])), evaluate(function, [np.array([0.5, 1.5])])[0])


def test_constants_are_exact() -> None:
    random = np.random.default_rng(3)
    arrays = [
        random.standard_normal((2, 3)).astype(dtype) for dtype in (np.float16, np.float32, np.float64, np.longdouble)
    ]
    arrays[3] = arrays[3] / np.longdouble(3)
    arrays += [random.standard_normal(4) + 1j * random.standard_normal(4), np.array([np.nan, np.inf, -np.inf, -0.0])]
    arrays += [np.array([complex(-0.0, np.nan), complex(np.inf, -0.0)], np.complex64), np.array([[1], [2]], np.int8)]
    arrays += [np.array([True, False]), arrays[3] + np.clongdouble(1j) / 3]
    builder = Builder()
    outputs = [literal(array, ArrayType(array.dtype, array.shape)) for array in arrays]
    for left, right in zip(run(module_source(builder.function("f", outputs)))["f"](), arrays, strict=True):
        assert same(left, right)


def test_warnings_are_off() -> None:
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64), "x")
    function = builder.function("f", [builder.emit(REGISTRY["div"], [literal(1.0, x.type), x])])
    with np.errstate(all="raise"):
        assert run(module_source(function))["f"](np.float64(0)) == np.inf
