"""How operations become groups, and how groups are printed."""

from __future__ import annotations

import numpy as np

from tests.backends.llvm.support import OPS, agree, groups, names, normal, total


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
        assert len(groups(rule, *given).groups) > 1
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
