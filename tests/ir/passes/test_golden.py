"""Text before and after each pass."""

from __future__ import annotations

from textwrap import dedent

import pytest

import srcgrad.ir.ops  # noqa: F401  (registers the ops)
from srcgrad.backends.numpy.evaluate import evaluate_operation
from srcgrad.ir.parser import parse
from srcgrad.ir.passes.cse import cse
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.fold import fold
from srcgrad.ir.passes.pipeline import optimise, prepare
from srcgrad.ir.passes.rules import simplify
from srcgrad.ir.text import show

PASSES = {
    "cse": cse,
    "dce": dce,
    "fold": lambda function: fold(function, evaluate_operation),
    "simplify": simplify,
    "prepare": prepare,
    "optimise": lambda function: optimise(function, evaluate_operation),
}

EXAMPLES = {
    "dce: an effect stays": """
        func @f(%x: f64[3]) -> (f64[3]) {
          # demo.py:1 | y = np.sin(x)
          %y: f64[3] = sin %x
          # demo.py:2 | if not x.max() > 0: raise ValueError
          %p: bool[3] = greater %x, 0.0:f64[3]
          check %p {kind="ValueError", message="x <= 0"}
          # demo.py:3 | return np.exp(x)
          %z: f64[3] = exp %x
          return %z
        }
        ---
        func @f(%x: f64[3]) -> (f64[3]) {
          # demo.py:2 | if not x.max() > 0: raise ValueError
          %p: bool[3] = greater %x, 0.0:f64[3]
          check %p {kind="ValueError", message="x <= 0"}
          # demo.py:3 | return np.exp(x)
          %z: f64[3] = exp %x
          return %z
        }
    """,
    "fold: splats of any size": """
        func @f(%x: f64[1000,1000]) -> (f64[1000,1000]) {
          %a: f64[1000,1000] = add 2.0:f64[1000,1000], 3.0:f64[1000,1000]
          %y: f64[1000,1000] = mul %x, %a
          return %y
        }
        ---
        func @f(%x: f64[1000,1000]) -> (f64[1000,1000]) {
          %y: f64[1000,1000] = mul %x, 5.0:f64[1000,1000]
          return %y
        }
    """,
    "cse: signs of zero differ": """
        func @f(%x: f64[]) -> (f64[], f64[], f64[]) {
          %a: f64[] = add %x, 0.0
          %b: f64[] = add %x, -0.0
          %c: f64[] = add %x, 0.0
          return %a, %b, %c
        }
        ---
        func @f(%x: f64[]) -> (f64[], f64[], f64[]) {
          %a: f64[] = add %x, 0.0
          %b: f64[] = add %x, -0.0
          return %a, %b, %a
        }
    """,
    "simplify: masks": """
        func @f(%p: bool[3], %x: f64[3], %y: f64[3]) -> (f64[3]) {
          %q: bool[3] = logical_not %p
          %all: bool[3] = logical_or %p, %q
          %z: f64[3] = select %all, %x, %y
          %t: f64[3] = select %q, %z, %y
          %u: f64[3] = select %p, %x, %t
          return %u
        }
        ---
        func @f(%p: bool[3], %x: f64[3], %y: f64[3]) -> (f64[3]) {
          %q: bool[3] = logical_not %p
          %t: f64[3] = select %p, %y, %x
          return %x
        }
    """,
    "prepare: the square of a norm": """
        func @f(%x: f64[3]) -> (f64[]) {
          # demo.py:1 | n = np.linalg.norm(x)
          %n: f64[] = reduce_norm %x {axes=[0]}
          # demo.py:2 | return n * n
          %s: f64[] = mul %n, %n
          return %s
        }
        ---
        func @f(%x: f64[3]) -> (f64[]) {
          # demo.py:2 | return n * n
          %0: f64[3] = mul %x, %x
          %s: f64[] = reduce_sum %0 {axes=[0]}
          return %s
        }
    """,
    "optimise: all at once": """
        func @f(%x: f64[2,3]) -> (f64[2,3]) {
          # demo.py:1 | y = (-x.T).T + np.sin(0.0)
          %a: f64[2,3] = neg %x
          %b: f64[3,2] = transpose %a {perm=[1,0]}
          %c: f64[2,3] = transpose %b {perm=[1,0]}
          %zero: f64[2,3] = sin 0.0:f64[2,3]
          %y: f64[2,3] = add %zero, %c
          # demo.py:2 | return stop_gradient(y) * np.cos(0.0)
          %s: f64[2,3] = stop_gradient %y
          %one: f64[2,3] = cos 0.0:f64[2,3]
          %z: f64[2,3] = mul %s, %one
          return %z
        }
        ---
        func @f(%x: f64[2,3]) -> (f64[2,3]) {
          # demo.py:1 | y = (-x.T).T + np.sin(0.0)
          %y: f64[2,3] = sub 0.0:f64[2,3], %x
          return %y
        }
    """,
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_text_before_and_after(example):
    before, after = dedent(EXAMPLES[example]).split("---\n")
    function = parse(before)
    assert show(PASSES[example.partition(":")[0]](function)).strip() == after.strip()
    assert show(function).strip() == before.strip()
