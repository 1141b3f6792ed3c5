"""What is done twice to one place of an array is done once: where, and that results, errors and zeros stay."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.ir.parser import parse
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.same_places import as_written, written_once
from tests.ir.ops.harness import run

SIZE = 17


def program(body: str, results: str, dtype: str = "f64") -> str:
    kind = results.count(",") * f", {dtype}[]"
    return f"""func @f(%x: {dtype}[9], %v: {dtype}[], %w: {dtype}[], %k: i64[]) -> ({dtype}[9]{kind}) {{
      {body}
      return {results}
    }}"""


def names(rewrite: Any, text: str) -> list[str]:
    return [operation.op.name for operation in dce(rewrite(parse(text))).operations]


SET, ADD = "%a: f64[9] = scatter_set %x, %v, %k {axis=0}", "%a: f64[9] = scatter_add %x, %v, %k {axis=0}"
READ = "%r: f64[] = gather %a, %k {axis=0}"
SET_AGAIN, ADD_AGAIN = "%b: f64[9] = scatter_set %a, %w, %k {axis=0}", "%b: f64[9] = scatter_add %a, %w, %k {axis=0}"


@pytest.mark.parametrize(
    ("body", "results", "left"),
    [
        ([SET, SET_AGAIN], "%b", ["scatter_set"]),
        ([ADD, SET_AGAIN], "%b", ["scatter_set"]),
        ([SET, ADD_AGAIN], "%b", ["add", "scatter_set"]),
        ([ADD, READ, SET_AGAIN], "%b, %r", ["gather", "add", "scatter_set"]),
        ([ADD, ADD_AGAIN], "%b", ["scatter_add", "scatter_add"]),  # (x + v) + w is no x + (v + w)
        ([SET, READ, SET_AGAIN], "%b, %r", ["scatter_set", "gather", "scatter_set"]),  # the read may be nowhere
        ([ADD, READ], "%a, %r", ["scatter_add", "gather"]),
        ([ADD, READ, SET_AGAIN.replace("%k", "3")], "%b, %r", ["scatter_add", "gather", "scatter_set"]),
        ([ADD, READ.replace("%k", "3"), SET_AGAIN], "%b, %r", ["scatter_add", "gather", "scatter_set"]),
    ],
)
def test_what_is_written_again(body: list[str], results: str, left: list[str]) -> None:
    text = program("\n      ".join(body), results)
    assert names(written_once, text) == left
    given = [np.linspace(-1.0, 1.0, 9), np.array(0.3), np.array(-0.0), np.array(2)]
    for one, other in zip(run(parse(text), given), run(written_once(parse(text)), given), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_sum_of_booleans_is_a_disjunction() -> None:
    text = program("\n".join([SET, ADD_AGAIN]), "%b").replace("f64", "bool")
    assert names(written_once, text) == ["logical_or", "scatter_set"]


@pytest.mark.parametrize(
    ("body", "result"),
    [
        (["%a: f64[9] = scatter_set %x, %v, 4 {axis=0}"], "v"),
        (["%b: f64[9] = scatter_set %x, %v, 4 {axis=0}", "%a: f64[9] = scatter_set %b, %w, 3 {axis=0}"], "v"),
        (["%b: f64[9] = scatter_set %x, %v, 4 {axis=0}", "%a: f64[9] = scatter_set %b, %w, %k {axis=0}"], None),
        (["%a: f64[9] = scatter_add %x, %v, 4 {axis=0}"], None),
    ],
)
def test_what_was_written_is_not_read(body: list[str], result: str | None) -> None:
    text = program("\n".join([*body, "%r: f64[] = gather %a, 4 {axis=0}"]), "%a, %r")
    assert as_written(parse(text)).results[1].name == (result or "r")


def test_a_place_that_may_be_nowhere_is_read() -> None:
    text = program("\n".join([SET, READ]), "%a, %r")
    assert names(as_written, text) == ["scatter_set", "gather"]


def test_a_column_is_written_once_in_a_trip_of_the_adjoint() -> None:
    """Each trip cleared a column of the cotangent, and then added to it."""

    def mixed(a: Any) -> Any:
        a = a.copy()
        for k in range(SIZE):
            for j in range(k + 1, SIZE):
                a[:, j] -= a[:, k] * np.sum(np.sin(a[:, j]))
        return np.sum(a * a)

    a = np.random.default_rng(1).normal(size=(SIZE, SIZE)) * 0.05
    grad = sg.grad(mixed)
    *_, inner = sg.explain(grad)(a)["optimised ir"].split("body")
    assert inner.split("yield")[0].count("scatter") == 1
    way = np.random.default_rng(2).normal(size=a.shape)
    np.testing.assert_allclose(np.sum(grad(a) * way), mixed(a + 1e-30j * way).imag / 1e-30, rtol=1e-11)


@pytest.mark.parametrize("seed", range(6))
def test_random_updates(seed: int) -> None:
    """Of few places, in any order, some of them by the same number."""
    chosen = random.Random(seed)
    lines, array, reads = [], "%x", []
    for n in range(12):
        k = chosen.choice(["%k", "%k", "2", "3"])
        kind = chosen.choice(["gather", "scatter_set", "scatter_add"])
        if kind == "gather":
            lines.append(f"%r{n}: f64[] = gather {array}, {k} {{axis=0}}")
            reads.append(f"%r{n}")
        else:
            value = chosen.choice(["%v", "%w", "0.0", "-0.0", *reads])
            lines.append(f"%a{n}: f64[9] = {kind} {array}, {value}, {k} {{axis=0}}")
            array = f"%a{n}"
    text = program("\n      ".join(lines), ", ".join([array, *reads]))
    before = parse(text)
    after = as_written(written_once(before))
    for number in range(4):
        given = [np.linspace(-1.0, 1.0, 9), np.array(0.3), np.array(1e-17), np.array(number)]
        for one, other in zip(run(before, given), run(after, given), strict=True):
            assert np.array_equal(one, other) and np.array_equal(np.signbit(one), np.signbit(other))
