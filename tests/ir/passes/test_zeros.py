"""Zeros that loops need not put, as they are there: `select(mask, x, 0.0)` in sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.ir.parser import parse
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.zeros import without_zeros
from tests.ir.ops.harness import run

HALVES = "mul 0.5:f64[4], %y"


def loop(body: str, chosen: str = "%m, %y", start: str = "0.0:f64[4], false:bool[4]") -> str:
    """Three trips over a value and its mask, which ``body`` makes ``%a`` and ``%b``; ``%x`` is an argument.

    ``%k`` is the number of the trip; the last carry is the sum of what is chosen.
    """
    attrs = "{trips=3, carries=4, consts=1, reverse=false}"
    return f"""func @f(%x: f64[4]) -> (f64[4], f64[4]) {{
      %y: f64[4], %m: bool[4], %n: bool[4], %s: f64[4] = for {start}, false:bool[4], %x, %x {attrs}
        body (%k: i64[], %y: f64[4], %m: bool[4], %n: bool[4], %s: f64[4], %x: f64[4]) {{
          {body}
          %w: bool[4] = logical_or %n, %m
          %t: f64[4] = select {chosen}, 0.0:f64[4]
          %u: f64[4] = add %s, %t
          yield %a, %b, %v, %u
        }}
      return %s, %y
    }}"""


PART = "{starts=[0], limits=[2], strides=[1]}"
OTHER = "{starts=[2], limits=[4], strides=[1]}"
SAME = "%v: bool[4] = logical_or %n, false:bool[4]"


def body(value: str, place: str = PART, mask: str = PART) -> str:
    """Two elements are added to a value, and said in its mask."""
    return f"""{SAME}
      %0: f64[4] = {value}
      %1: f64[2] = slice %x {place}
      %2: f64[4] = slice_set 0.0:f64[4], %1 {place}
      %a: f64[4] = add %0, %2
      %3: bool[4] = slice_set false:bool[4], true:bool[2] {mask}
      %b: bool[4] = logical_or %m, %3"""


AT_TRIP = f"""{SAME}
      %0: f64[4] = mul -2.0:f64[4], %y
      %1: f64[] = gather %x, %k {{axis=0}}
      %a: f64[4] = scatter_add %0, %1, %k {{axis=0}}
      %b: bool[4] = scatter_add %m, true, %k {{axis=0}}"""
ELSEWHERE = AT_TRIP.replace("true, %k", "true, 3")
SHIFTED = """%a: f64[4] = scatter_set %y, 1.0, %k {axis=0}
      %b: bool[4] = logical_and %m, false:bool[4]
      %0: bool[4] = scatter_set false:bool[4], true, %k {axis=0}
      %v: bool[4] = logical_or %m, %0"""
ACCUMULATED = """%0: f64[4] = scatter_set 0.0:f64[4], 1.0, %k {axis=0}
      %a: f64[4] = add %y, %0
      %b: bool[4] = logical_and %m, false:bool[4]
      %1: bool[4] = scatter_set false:bool[4], true, %k {axis=0}
      %v: bool[4] = logical_or %m, %1"""


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        (loop(body(HALVES)), True),
        (loop(AT_TRIP), True),
        (loop(AT_TRIP, "%w, %y"), True),
        (loop(body(HALVES), start="1.0:f64[4], true:bool[4]"), True),
        (loop(body("mul inf:f64[4], %y")), False),
        (loop(body("mul %x, %y")), False),
        (loop(body(HALVES, OTHER)), False),
        (loop(body(HALVES), start="1.0:f64[4], false:bool[4]"), False),
        (loop(ELSEWHERE), False),
        (loop(SHIFTED, "%w, %y"), False),
        (loop(ACCUMULATED, "%w, %y"), False),
        (loop(body(HALVES), "%m, %x"), False),
    ],
)
def test_zeros_are_put_where_there_may_be_others(text: str, gone: bool) -> None:
    """By what is finite alone the value is multiplied, and it and its mask begin, and go on, in the same places."""
    function = parse(text)
    found = without_zeros(function)
    given = [np.array([np.inf, 2.0, 3.0, 5.0])]
    for one, other in zip(run(function, given), run(found, given), strict=True):
        np.testing.assert_array_equal(one, other)
    assert ("select" not in str(dce(found))) is gone


def waves(ex: Any, ey: Any, hz: Any) -> Any:
    """Maxwell's equations in two dimensions, on a staggered grid."""
    ex, ey, hz = ex.copy(), ey.copy(), hz.copy()
    for t in range(20):
        ey[0, :] = t * 0.1
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return np.sum(hz**2)


def shallow(u: Any, v: Any, h: Any) -> Any:
    u, v = u.copy(), v.copy()
    for _ in range(20):
        u[:-1] += -0.1 * (h[1:] - h[:-1])
        v[:, :-1] += -0.1 * (h[:, 1:] - h[:, :-1])
        h = h.copy()
        h[1:-1, 1:-1] -= 0.1 * (u[1:-1, 1:-1] - u[:-2, 1:-1] + v[1:-1, 1:-1] - v[1:-1, :-2])
    return np.sum(h**2) + np.sum(u)


def test_of_a_mask_and_others_the_others_are_left() -> None:
    text = loop(body(HALVES), "%w, %y").replace(
        "logical_or %n, %m",
        """logical_and %q, %m
          %l: bool[4] = logical_not %m
          %j: bool[4] = logical_or %w, %l""",
    )
    text = text.replace("select %w", "select %j").replace(
        SAME, SAME + "\n          %q: bool[4] = greater %x, 2.5:f64[4]"
    )
    function, given = parse(text), [np.array([np.inf, 2.0, 3.0, 5.0])]
    found = without_zeros(function)
    for one, other in zip(run(function, given), run(found, given), strict=True):
        np.testing.assert_array_equal(one, other)
    assert "select" in str(dce(found)) and "%m" in str(dce(function)) and "%m" not in str(dce(found))


def shortest(lengths: Any) -> Any:
    """Floyd and Warshall's paths."""
    for k in range(20):
        lengths = np.minimum(lengths, lengths[:, k][:, None] + lengths[k, :])
    return np.sum(lengths**2)


def test_adjoints_of_minima_in_loops_carry_no_masks() -> None:
    lengths = np.random.default_rng(5).uniform(0.1, 2.0, size=(20, 20))
    text = sg.explain(sg.grad(shortest))(lengths)["optimised ir"]
    assert "= for " in text and not [line for line in text.splitlines() if "bool[" in line and "scatter" in line]
    sg.testing.check_grads(shortest, (lengths,), order=1, modes=("fwd", "rev"))


@pytest.mark.parametrize("function", [waves, shallow])
def test_adjoints_of_stencils_with_known_coefficients_carry_no_masks(function: Callable[..., Any]) -> None:
    fields = tuple(np.random.default_rng(4).normal(size=(3, 6, 6)))
    text = sg.explain(sg.grad(function, argnums=(0, 1, 2)))(*fields)["optimised ir"]
    assert "= for " in text and "bool[" not in text
    sg.testing.check_grads(function, fields, order=1, modes=("fwd", "rev"))
