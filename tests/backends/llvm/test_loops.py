"""How operations become groups, and how groups are printed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm.kernels import kernel_text
from srcgrad.backends.llvm.loops import Compute, Group
from srcgrad.backends.llvm.nests import Nest
from srcgrad.backends.llvm.target import Target
from srcgrad.backends.numpy.evaluate import evaluate
from tests.backends.llvm.support import OPS, agree, build, groups, names, normal, run, total


def test_value_and_gradients_are_one_pass() -> None:
    def rule(x, w, b):  # type: ignore[no-untyped-def]
        t = OPS["tanh"](x * w + b)
        slope = (1.0 - t * t) * t
        return total(t * t), slope * w, slope * x, slope

    given = [normal(37, seed=k) for k in range(3)]
    found = groups(rule, *given)
    assert names(found) == ["fused"] and len(found.groups[0].outputs) == 4
    agree(rule, *given)


def test_views_are_strides_of_the_loop() -> None:
    def rule(x):  # type: ignore[no-untyped-def]
        turned = OPS["transpose"](x, perm=(1, 0))
        part = OPS["slice"](turned, starts=(1, 0), limits=(4, 6), strides=(1, 2))
        return OPS["reverse"](part, axes=(1,)) + 1.0

    x = normal(6, 5)
    found = groups(rule, x)
    (group,) = found.groups
    assert names(found) == ["fused"]
    assert "in0[i0 - 10*i1 + 21]" in group.text() or "in0[-10*i0 + i1 + 21]" in group.text(), group.text()
    agree(rule, x)


def test_axes_that_can_be_one_loop_are_one() -> None:
    (group,) = groups(lambda x, y: x * y + y, normal(3, 4, 5), normal(3, 4, 5)).groups
    assert group.domain == (60,)
    (group,) = groups(lambda x: total(x, 0), normal(3, 4, 5)).groups
    assert group.domain == (3, 20)
    (group,) = groups(lambda x: total(x, 1), normal(3, 4, 5)).groups
    assert len(group.domain) == 3


def test_what_is_cheap_is_computed_again_and_what_is_dear_is_kept() -> None:
    def rule(x, name):  # type: ignore[no-untyped-def]
        value = OPS[name](x)
        most = OPS["reduce_max"](value, axes=(0, 1))
        return OPS["broadcast"](most, shape=(8, 9), dims=()) - value

    cheap = groups(lambda x: rule(x, "neg"), normal(8, 9))
    assert [len(group.outputs) for group in cheap.groups] == [1, 1]
    dear = groups(lambda x: rule(x, "exp"), normal(8, 9))
    assert [len(group.outputs) for group in dear.groups] == [2, 1]
    assert "exp" not in dear.groups[1].text()


def test_what_varies_along_rows_alone_is_computed_once_a_row() -> None:
    def rule(x, v):  # type: ignore[no-untyped-def]
        return x * OPS["broadcast"](OPS["exp"](v), shape=(6, 40), dims=(0,))

    (group,) = groups(rule, normal(6, 40), normal(6)).groups
    depths = group.depths()
    assert sorted(set(depths)) == [1, 2], group.text()
    agree(rule, normal(6, 40), normal(6))
    dear = groups(lambda x, v: x * OPS["broadcast"](OPS["exp"](v), shape=(6, 40), dims=(1,)), normal(6, 40), normal(40))
    assert len(dear.groups) == 2


def test_a_group_waits_for_what_is_between() -> None:
    def rule(x):  # type: ignore[no-untyped-def]
        product = OPS["cumsum"](x * 2.0, axis=0, reverse=False)
        return product + x * 2.0, x - 1.0

    found = groups(rule, normal(7))
    assert names(found) == ["fused", "cumsum", "fused"]
    agree(rule, normal(7))


def test_a_reshape_of_what_is_computed_reads_what_is_kept() -> None:
    def rule(x):  # type: ignore[no-untyped-def]
        return OPS["reshape"](OPS["exp"](x), shape=(6,)) * 2.0

    agree(rule, normal(2, 3))
    agree(lambda x: OPS["reshape"](OPS["transpose"](x * 2.0, perm=(1, 0)), shape=(6,)) + 1.0, normal(2, 3))


def test_results_that_are_views_are_in_c_order() -> None:
    def rule(x):  # type: ignore[no-untyped-def]
        return OPS["transpose"](OPS["exp"](x), perm=(1, 0)), x * 2.0

    agree(rule, normal(5, 3))
    found = groups(rule, normal(5, 3))
    assert names(found) == ["fused"] * len(found.groups)


def test_complex_numbers_are_left_to_numpy() -> None:
    z = normal(3) + 1j
    assert names(groups(lambda z: z * z, z)) == ["mul"]
    agree(lambda z: OPS["abs"](z * z) + 1.0, z)


def test_long_chains_need_no_stack() -> None:
    def rule(x):  # type: ignore[no-untyped-def]
        for k in range(3000):
            x = x * 0.5 + float(k % 3)
        return x

    found = groups(rule, np.zeros(4))
    assert names(found) == ["fused"] * len(found.groups)


def test_a_long_program_is_several_groups() -> None:
    def rule(x, y):  # type: ignore[no-untyped-def]
        v = x
        for k in range(400):
            v = OPS["tanh"](v) * y + OPS["transpose"](x, perm=(1, 0)) if k % 3 == 0 else v - y * 0.1
        return v, total(v, 0)

    for size in (5, 13):
        given = normal(size, size), normal(size, size, seed=1)
        found = groups(rule, *given).groups
        assert sum(len(group.phases) if isinstance(group, Nest) else 1 for group in found) > 1
        agree(rule, *given, rtol=1e-9)


def test_the_text_names_every_loop() -> None:
    (group,) = groups(lambda x: total(OPS["exp"](x), 1), normal(3, 4)).groups
    assert group.text().splitlines() == [
        "kernel_1(in0: f64[3,4]) -> (out0: f64[3])",
        "  for i0 in 0..3:",
        "    for i1 in 0..4:",
        "      %0: f64 = in0[4*i0 + i1]",
        "      %1: f64 = exp %0",
        "      out0[i0] sum= %1",
    ]


# --- nests -----------------------------------------------------------------------------------------------------------


def again(term, like, axes=(1,)):  # type: ignore[no-untyped-def]
    """What rows fold to, at each of their elements."""
    return OPS["broadcast"](term, shape=like.shape, dims=tuple(k for k in range(like.rank) if k not in axes))


def softmax(x, *axes):  # type: ignore[no-untyped-def]
    axes = axes or (x.rank - 1,)
    e = OPS["exp"](x - again(OPS["reduce_max"](x, axes=axes), x, axes))
    return e / again(total(e, *axes), x, axes)


def logsumexp(x):  # type: ignore[no-untyped-def]
    most = OPS["reduce_max"](x, axes=(1,))
    return OPS["log"](total(OPS["exp"](x - again(most, x)), 1)) + most


def layer_norm(x, w, b):  # type: ignore[no-untyped-def]
    count = float(x.shape[1])
    d = x - again(total(x, 1) / count, x)
    return d / OPS["sqrt"](again(total(d * d, 1) / count + 1e-5, x)) * again(w, x, (0,)) + again(b, x, (0,))


@pytest.mark.parametrize("shape", [(2, 3), (7, 9), (40, 64), (300, 33), (1000, 5), (3, 2000)], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["f64", "f32"])
def test_rows_that_fold_are_one_nest(shape: tuple[int, int], dtype: Any) -> None:
    x, w, b = normal(*shape, dtype=dtype), normal(shape[1], seed=1, dtype=dtype), normal(shape[1], seed=2, dtype=dtype)
    rtol = 1e-12 if dtype == np.float64 else 1e-4
    for rule, given in ((softmax, (x,)), (logsumexp, (x,)), (layer_norm, (x, w, b))):
        found = groups(rule, *given)
        assert names(found) == ["fused"] and isinstance(found.groups[0], Nest), found.groups[0].text()
        for actual, wanted in zip(run(rule, *given), evaluate(build(rule, *given), given), strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=rtol, atol=rtol)


def test_the_text_of_a_nest() -> None:
    (nest,) = groups(softmax, normal(100, 64)).groups
    assert nest.text().splitlines()[:8] == [
        "kernel_1(in0: f64[100,64]) -> (out0: f64[100,64])",
        "  local0: f64[100], 16 rows of it",
        "  local1: f64[100,64], 16 rows of it",
        "  local2: f64[100], 16 rows of it",
        "  for each 16 of i0 in 0..100:",
        "    for i0 of these:",
        "      for i1 in 0..64:",
        "        %0: f64 = in0[64*i0 + i1]",
    ]


def test_folds_over_all_rows_are_part_of_a_nest_but_not_read_in_it() -> None:
    def rule(x, w):  # type: ignore[no-untyped-def]
        y = softmax(x)
        z = y * again(w, x, (0,)) - x
        return total(z), total(z, 0), OPS["reduce_max"](z, axes=(1,)), y

    for shape in ((300, 33), (1000, 5), (7, 9)):
        x, w = normal(*shape), normal(shape[1], seed=1)
        (nest,) = groups(rule, x, w).groups
        assert isinstance(nest, Nest) and len(nest.outputs) == 4
        agree(rule, x, w, rtol=1e-11)

    def means(x):  # type: ignore[no-untyped-def]
        y = softmax(x)
        return y - again(total(y, 0), x, (0,)), OPS["log"](total(x * x, 1)) * 0.5, total(OPS["log"](total(x * x, 1)))

    x = normal(300, 33)
    assert len(groups(means, x).groups) > 1
    agree(means, x, rtol=1e-11)
    agree(lambda x: (softmax(x, 2, 3), total(softmax(x, 2, 3), 0, 1), total(softmax(x), 1)), normal(3, 4, 5, 6))


def test_what_the_first_of_many_phases_folds_over_rows_is_not_read_by_the_last() -> None:
    """Of as many rows as columns: row k reads of it element k."""

    def along_rows(x: Any) -> Any:
        return OPS["broadcast"](x, shape=(30, 30), dims=(0,))

    def rule(x: Any) -> Any:
        down = total(x, 0)
        for _ in range(3):
            x = OPS["tanh"](x / along_rows(total(x, 1)))
        return x + along_rows(down / total(x, 1))

    agree(rule, normal(30, 30) + 3.0, rtol=1e-11)


def test_what_all_rows_of_a_square_fold_to_is_read_after_the_nest() -> None:
    """Of as many rows as columns, what row k reads of it is element k: the same place, and not complete."""

    def rule(x):  # type: ignore[no-untyped-def]
        e = OPS["exp"](x)
        sums = total(e, 0)
        return e * again(sums, x), sums, OPS["reduce_max"](e * again(sums, x), axes=(1,))

    for size in (2, 9, 70, 200):
        agree(rule, normal(size, size), rtol=1e-11)


def test_several_outer_axes_are_one_where_every_array_goes_on() -> None:
    x, mask = normal(3, 4, 5, 17), normal(3, 5, 17, seed=1)
    (nest,) = groups(softmax, x).groups
    assert isinstance(nest, Nest) and nest.domain == (60,)
    agree(softmax, x)

    def masked(x, mask):  # type: ignore[no-untyped-def]
        return softmax(x + OPS["broadcast"](mask, shape=x.shape, dims=(0, 2, 3)))

    (nest,) = groups(masked, x, mask).groups
    assert isinstance(nest, Nest) and nest.domain == (3, 4, 5)
    agree(masked, x, mask)
    (nest,) = groups(lambda x: softmax(x, 2, 3), x).groups
    assert isinstance(nest, Nest) and nest.domain == (12,)
    agree(lambda x: softmax(x, 2, 3), x)


def test_what_phases_fold_in_memory_begins_anew_in_each_block() -> None:
    def rule(x):  # type: ignore[no-untyped-def]
        return x / again(total(OPS["exp"](x), 1), x) + 1.0

    x = normal(200, 6, 33)
    (nest,) = groups(rule, x).groups
    assert isinstance(nest, Nest) and nest.block < 200
    agree(rule, x)


def test_what_other_operations_read_is_kept() -> None:
    def rule(x):  # type: ignore[no-untyped-def]
        e = OPS["exp"](x)
        s = total(e, 1)
        return OPS["cumsum"](s, axis=0, reverse=False), e / again(s, x), OPS["cumsum"](e, axis=0, reverse=False)

    x = normal(30, 21)
    found = groups(rule, x)
    assert names(found).count("fused") == 1 and isinstance(found.groups[0], Nest)
    assert len(found.groups[0].outputs) == 3 and not found.groups[0].locals
    agree(rule, x)


def test_what_reads_other_rows_is_no_part_of_a_nest() -> None:
    def turned(x):  # type: ignore[no-untyped-def]
        e = OPS["exp"](x)
        return OPS["transpose"](e, perm=(1, 0)) / again(total(e, 1), x)

    def backwards(x):  # type: ignore[no-untyped-def]
        return OPS["reverse"](OPS["exp"](x), axes=(0,)) / again(total(x, 1), x)

    def columns(x):  # type: ignore[no-untyped-def]
        return x - again(total(x, 0), x, (0,))

    def all_of_it(x):  # type: ignore[no-untyped-def]
        return x - again(total(x), x, (0, 1))

    def first(x):  # type: ignore[no-untyped-def]
        e = OPS["exp"](x)
        row = OPS["slice"](e, starts=(0, 0), limits=(1, x.shape[1]), strides=(1, 1))
        return OPS["broadcast"](row, shape=x.shape, dims=(0, 1)) / again(total(e, 1), x)

    for rule in (turned, backwards, first, columns, all_of_it):
        for size in (21, 40):
            agree(rule, normal(size, size, seed=size), rtol=1e-9)
    assert len(groups(columns, normal(21, 21)).groups) == len(groups(all_of_it, normal(21, 21)).groups) == 2
    assert not any(isinstance(group, Nest) for group in groups(columns, normal(21, 21)).groups)


def test_independent_nests_and_what_is_between() -> None:
    def rule(x, y):  # type: ignore[no-untyped-def]
        first, second = softmax(x), softmax(y)
        counted = OPS["cumsum"](first, axis=1, reverse=False)
        return softmax(counted), second, total(second)

    x, y = normal(30, 21), normal(40, 17, seed=1)
    found = groups(rule, x, y)
    assert sum(isinstance(group, Nest) for group in found.groups) == 3
    agree(rule, x, y)


def test_what_a_phase_needs_runs_before_the_nest() -> None:
    def rule(x, y):  # type: ignore[no-untyped-def]
        e = OPS["exp"](x)
        mean = total(OPS["tanh"](y)) / 500.0
        return e / again(total(e, 1), x) + OPS["broadcast"](OPS["exp"](mean) * mean, shape=x.shape, dims=())

    x, y = normal(30, 21), normal(500, seed=1)
    found = groups(rule, x, y)
    assert [isinstance(group, Nest) for group in found.groups].count(True) == 1 and len(found.groups) > 1
    assert names(found)[-1] == "fused" and isinstance(found.groups[-1], Nest)
    agree(rule, x, y, rtol=1e-10)


def test_passes_between_which_a_number_is_found_are_one() -> None:
    """The number, which a step finds, is there before both: what the second one reads of the first is no array."""

    def rule(x, y, table):  # type: ignore[no-untyped-def]
        first = OPS["exp"](x) * y
        number = OPS["slice"](OPS["sort"](table, axis=0), starts=(3,), limits=(4,), strides=(1,))
        second = OPS["tanh"](first * OPS["broadcast"](OPS["reshape"](number, shape=()), shape=x.shape, dims=()))
        return second, second * x, total(second * y)

    x, y, table = normal(90), normal(90, seed=1), normal(7, seed=2)
    found = groups(rule, x, y, table)
    (group,) = [group for group in found.groups if group.domain == (90,)]
    assert not isinstance(group, Nest) and len(group.outputs) == 3, group.text()
    assert group.text().count("in0[i0]") == 1, "what both read is read once"
    agree(rule, x, y, table)
    kept = lambda x, y, table: (OPS["exp"](x) * y, *rule(x, y, table))  # noqa: E731
    assert len([group for group in groups(kept, x, y, table).groups if group.domain == (90,)]) == 1
    agree(kept, x, y, table)


def test_a_pass_that_reads_another_elsewhere_is_another() -> None:
    def rule(x, y, table):  # type: ignore[no-untyped-def]
        first = OPS["exp"](x) * OPS["tanh"](y)
        number = OPS["slice"](OPS["sort"](table, axis=0), starts=(3,), limits=(4,), strides=(1,))
        scale = OPS["broadcast"](OPS["reshape"](number, shape=()), shape=x.shape, dims=())
        return first, OPS["reverse"](first, axes=(1,)) * OPS["exp"](y * scale)

    x, y, table = normal(40, 30), normal(40, 30, seed=1), normal(7, seed=2)
    (nest,) = [group for group in groups(rule, x, y, table).groups if isinstance(group, Nest)]
    assert len(nest.phases) == 2
    agree(rule, x, y, table)


def test_rows_that_do_not_fit_into_the_cache_are_no_nest() -> None:
    found = groups(softmax, normal(3, 200_000))
    assert not any(isinstance(group, Nest) for group in found.groups)
    agree(softmax, normal(3, 200_000), rtol=1e-12)


# --- tiles and several rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(8, 8), (16, 16), (9, 9), (23, 40), (40, 23), (64, 7), (7, 64), (33, 129)], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.bool_], ids=lambda dtype: dtype.__name__)
def test_transposed_operands(shape: tuple[int, int], dtype: Any) -> None:
    x, y = (normal(*sizes, seed=k) > 0.3 for k, sizes in enumerate((shape, shape[::-1])))
    if dtype != np.bool_:
        x, y = (np.random.default_rng(k).integers(-9, 9, z.shape).astype(dtype) for k, z in enumerate((x, y)))
    rule = lambda x, y: OPS["maximum"](x, OPS["transpose"](y, perm=(1, 0)))  # noqa: E731
    agree(rule, x, y)
    if dtype != np.bool_:
        agree(lambda x, y: (rule(x, y), total(rule(x, y), 0), total(rule(x, y), 1)), x, y)


def test_a_transposed_part_of_an_array() -> None:
    def rule(x, y):  # type: ignore[no-untyped-def]
        turned = OPS["transpose"](y, perm=(2, 0, 1))
        part = OPS["slice"](turned, starts=(2, 1, 3), limits=(27, 5, 40), strides=(1, 1, 2))
        return x + part, OPS["reverse"](part, axes=(2,)) * x

    agree(rule, normal(25, 4, 19), normal(6, 50, 30, seed=1))


@pytest.mark.parametrize("rows", [1, 2, 7, 8, 9, 17, 64])
@pytest.mark.parametrize("columns", [1, 5, 8, 33, 64])
def test_folds_over_rows(rows: int, columns: int) -> None:
    def rule(x):  # type: ignore[no-untyped-def]
        return total(x, 0), OPS["reduce_max"](x, axes=(0,)), total(x * 2.0, 1), total(x), x - 1.0

    agree(rule, normal(rows, columns), rtol=1e-11)
    agree(lambda x: (total(x, 0), OPS["reduce_prod"](x, axes=(0,))), normal(rows, columns), rtol=1e-11)
    agree(lambda x: total(x, 1), normal(3, rows, columns), rtol=1e-11)
    agree(lambda x: total(x, 0, 2), normal(rows, 3, columns), rtol=1e-11)


def test_the_square_of_a_sech_is_one_function() -> None:
    """The derivative of tanh is not computed from a sech, unless that is there; other squares are as they were."""

    def slope(x: Any) -> Any:
        return OPS["tanh"](x), OPS["square"](OPS["sech"](x))

    def kept(x: Any) -> Any:
        known = OPS["sech"](x)
        return known, OPS["square"](known)

    def other(x: Any) -> Any:
        return OPS["square"](OPS["tanh"](x))

    x = normal(37) * 5
    for rule, joined in ((slope, True), (kept, False), (other, False)):
        text = groups(rule, x).groups[0].text()
        assert ("sech_squared" in text) == joined and ("= square" in text) != joined
        agree(rule, x, rtol=1e-14)
        agree(rule, x.astype(np.float32), rtol=1e-6)
    assert "sech_squared" not in groups(slope, x.astype(np.float16)).groups[0].text()  # rounded after each operation


def test_reciprocals_of_roots_are_one_function() -> None:
    """They take no divider where the processor has estimates; roots that are kept, and other quotients, stay."""
    sqrt, reciprocal = OPS["sqrt"], OPS["reciprocal"]

    def kept(x: Any) -> Any:
        root = sqrt(x)
        return root, 0.5 / root

    rules: list[tuple[Callable[[Any], Any], str]] = [
        (lambda x: -0.5 / sqrt(x), "inverse_root"),
        (lambda x: reciprocal(sqrt(x)), "inverse_root"),
        (lambda x: 1.0 / OPS["hypot"](x, 1.0), "arcsinh_slope"),
        (lambda x: reciprocal(sqrt(x - 1.0)) * reciprocal(sqrt(x + 1.0)), "inverse_root_of_product"),
        (lambda x: reciprocal(sqrt(x)) * reciprocal(sqrt(x + 1.0)) + x, "inverse_root_of_product"),
        (lambda x: 3.0 / OPS["hypot"](x, x + 1.0) / OPS["hypot"](x, x + 1.0), "over_square_of_hypot"),
        (lambda x: x / OPS["hypot"](x, x + 1.0) / OPS["hypot"](x + 1.0, x), ""),
        (lambda x: 3.0 / sqrt(x), ""),
        (lambda x: x / sqrt(x), ""),
        (lambda x: 0.5 / OPS["hypot"](x, 1.0), ""),
        (lambda x: 1.0 / OPS["hypot"](x, 2.0), ""),
        (kept, ""),
    ]
    functions = "inverse_root_of_product|inverse_root|arcsinh_slope|over_square_of_hypot"
    x = 1.0 + np.abs(normal(37)) * 5
    for rule, function in rules:
        found = re.findall(functions, groups(rule, x).groups[0].text())
        assert set(found) == ({function} if function else set()), found
        agree(rule, x, rtol=1e-14)
        agree(rule, x.astype(np.float32), rtol=1e-6)
    assert "inverse_root" not in groups(rules[0][0], x.astype(np.float16)).groups[0].text()


def test_gradients_of_what_is_repeated_make_no_array_of_it() -> None:
    """A reshape between two loops is not affine, and each row of three was an array of its own."""
    x = normal(1000)

    def repeated(x: Any) -> Any:
        return np.sum(np.repeat(x, 3) ** 2)

    def tiled(x: Any) -> Any:
        return np.sum(np.tile(x, 3) ** 2)

    for loss in (repeated, tiled):
        slope = sg.grad(loss, backend="llvm")
        assert "local" not in sg.explain(slope)(x)["llvm source"].partition("declare")[0]
        np.testing.assert_allclose(slope(x), 6 * x, rtol=1e-15)


def test_roots_are_left_to_the_divider_where_other_work_takes_as_long() -> None:
    """It works beside the products of that; a gradient of many `where` took a fifth longer without it."""
    sqrt, exp, sin = OPS["sqrt"], OPS["exp"], OPS["sin"]
    rules: list[tuple[Callable[[Any], Any], bool]] = [
        (lambda x: 0.5 / sqrt(x), False),
        (lambda x: 0.5 / sqrt(x) * x + x, False),
        (lambda x: 0.5 / sqrt(x) / x + 1.0 / sqrt(x + 1.0) / (x + 2.0), False),
        (lambda x: 0.5 / sqrt(x) * exp(x), True),
        (lambda x: 0.5 / sqrt(x) * exp(x) / sqrt(x + 1.0) + 1.0 / sqrt(x + 2.0), False),
        (lambda x: 1.0 / OPS["hypot"](x, 1.0) * sin(x), True),
        (lambda x: exp(x), False),
    ]
    x = 1.0 + np.abs(normal(37)) * 5
    wide = Target("x86_64-unknown-linux-gnu", "skylake-avx512", frozenset({"sse2", "fma", "avx512f", "avx512vl"}))
    for rule, divides in rules:
        group = groups(rule, x).groups[0]
        assert group.divides() == divides
        joined = re.search("inverse_root|arcsinh_slope", group.text())
        assert ("rsqrt14" in kernel_text(group, wide, "kernel")[0]) == (joined is not None and not divides)
        agree(rule, x, rtol=1e-14)
        agree(rule, x.astype(np.float32), rtol=1e-6)


def flow(x: Any, limited: bool) -> Any:
    """Differences of the Laplacian from point to point, where these go against the slope, and what flows out."""

    def inner(x: Any, first: tuple[int, int], last: tuple[int, int]) -> Any:
        limits = tuple(size + k for size, k in zip(x.shape, last, strict=True))
        return OPS["slice"](x, starts=first, limits=limits, strides=(1, 1))

    around = [
        inner(x, *ends) for ends in (((0, 1), (-2, -1)), ((2, 1), (0, -1)), ((1, 0), (-1, -2)), ((1, 2), (-1, 0)))
    ]
    bent = 4.0 * inner(x, (1, 1), (-1, -1)) - (around[0] + around[1] + around[2] + around[3])
    found = []
    for axis in range(2):
        one = tuple(int(k == axis) for k in range(2))
        other, zero, back = (one[1], one[0]), (0, 0), tuple(-k for k in one)
        beside = (other, (-other[0], -other[1]))
        steps = inner(bent, one, zero) - inner(bent, zero, back)
        steps = inner(steps, *beside)
        if limited:
            slopes = inner(x, (1, 1), (-1, -1))
            slopes = inner(inner(slopes, one, zero) - inner(slopes, zero, back), *beside)
            steps = OPS["select"](OPS["greater"](steps * slopes, steps.like(0)), steps.like(0), steps)
        else:
            steps = OPS["sin"](steps)
        found.append(inner(steps, one, zero) - inner(steps, zero, back))
    return found[0] + found[1]


@pytest.mark.parametrize("limited", [True, False])
def test_what_neighbours_share_is_computed_again_and_what_they_do_not_is_kept(limited: bool) -> None:
    """Four differences of five Laplacians are less than arrays of them are, and a sine more than a number in memory."""
    x = normal(40, 60)
    assert len(groups(lambda x: flow(x, limited), x).groups) == (1 if limited else 2)
    agree(lambda x: flow(x, limited), x, rtol=1e-9)


def test_what_rows_would_compute_again_is_computed_once() -> None:
    """The deviations of columns: rows of ten would take ten roots each."""

    def scaled(x: Any) -> Any:
        return (x - x.mean(0)) / x.std(0)

    x = normal(300, 10)
    text = sg.explain(sg.jit(scaled))(x)["llvm source"].split("\n\n")[0]
    rows = text.split("for i0 in 0..300:")
    assert len(rows) > 2 and "sqrt" in text and "300.0" in text
    assert not any("sqrt" in part.split("# kernel")[0] or "300.0" in part.split("# kernel")[0] for part in rows[1:])
    np.testing.assert_allclose(sg.jit(scaled)(x), scaled(x), rtol=1e-13)


@pytest.mark.parametrize("n", [40, 70])
def test_directions_of_a_hessian_are_no_array_and_rows_of_it_are_written_as_they_lie(n: int) -> None:
    """Where unit vectors were an array, it was read at each point, and the matrix was written by columns."""

    def rosenbrock(x):  # type: ignore[no-untyped-def]
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    x = normal(n)
    text = sg.explain(sg.hessian(rosenbrock, backend="llvm"))(x)["llvm source"].split("; ModuleID")[0]
    assert text.count("for i0 in") == 1 and f"out0[{n}*i0 + i1]" in text
    lines = [line for line in text.splitlines() if re.match(r"#\s+%\d+: i64 = i\d", line)]
    assert len(lines) == len({line.partition(" = ")[2] for line in lines}) == 4
    found = sg.hessian(rosenbrock, backend="llvm")(x)
    assert np.allclose(found, sg.hessian(rosenbrock, backend="numpy")(x), rtol=1e-13, atol=1e-12)
    wanted = np.diag(np.r_[2 - 400 * (x[1:] - 3 * x[:-1] ** 2), 0.0] + np.r_[0.0, np.full(n - 1, 200.0)])
    wanted -= np.diag(400 * x[:-1], 1) + np.diag(400 * x[:-1], -1)
    assert np.allclose(found, wanted, rtol=1e-12, atol=1e-10)


def test_what_is_dear_stays_outside_of_inner_loops() -> None:
    """The slope of each column, of which a Jacobian has many copies, although arrays lie along the columns."""

    def rule(w, a, b):  # type: ignore[no-untyped-def]
        slope = OPS["broadcast"](1.0 - OPS["square"](OPS["tanh"](w)), shape=(8, 40, 12), dims=(0, 2))
        return OPS["transpose"](a * slope * b, perm=(0, 2, 1))

    given = [normal(8, 12), normal(8, 40, 12, seed=1), normal(8, 40, 12, seed=2)]
    (group,) = groups(rule, *given).groups
    assert isinstance(group, Group)
    depths = [
        depth
        for item, depth in zip(group.statements, group.depths(), strict=True)
        if isinstance(item, Compute) and "tanh" in (item.function, item.operation.op.name)
    ]
    assert len(depths) == 1 and depths[0] < len(group.domain)
    agree(rule, *given)
