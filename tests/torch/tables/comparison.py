"""Comparison, logic, bits, predicates, selection by a mask, bounds."""

from __future__ import annotations

from tests.torch.facts import Case

INF, NAN = float("inf"), float("nan")
TWO = {"a": (2, 2), "b": (2,)}
COMPARISONS = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
COMPARISON_ALIASES = {
    "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
}  # fmt: skip

CASES: list[Case] = []
for _name, _sign in COMPARISONS.items():
    CASES += [
        Case(_name, f"torch.{_name}(a, b)", TWO),
        Case(f"{_name}-int", f"torch.{_name}(n, k)", {"n": ((2, 3), "int"), "k": ((3,), "int")}),
        Case(f"{_name}-number", f"torch.{_name}(n, 1)", {"n": ((4,), "int")}),
        Case(f"{_name}-float-number", f"torch.{_name}(n, 0.5)", {"n": ((4,), "int")}),
        Case(f"{_name}-number-left", f"torch.{_name}(1, n)", {"n": ((4,), "int")}),
        Case(f"{_name}-method", f"a.{_name}(0)", {"a": (2,)}),
        Case(f"{_name}-operator", f"a {_sign} b", TWO),
        Case(f"{_name}-operator-reflected", f"0.5 {_sign} a", {"a": (3,)}),
        Case(f"{_name}-operator-none", f"a {_sign} None", {"a": (3,)}),
        Case(f"{_name}-operator-text", f"a {_sign} 'x'", {"a": (3,)}),
        Case(f"{_name}-inplace", f"result = a.detach().clone().{_name}_(0)", {"a": (3,)}),
        Case(f"{_name}-inplace-grad", f"result = a.clone().{_name}_(0)", {"a": (3,)}),
        Case(f"{_name}-nan", f"torch.{_name}(a, b)", {"a": [NAN, 1.0, INF], "b": [NAN, NAN, INF]}),
        Case(f"{_name}-float32-number", f"a.float() {_sign} 0.1", {"a": [0.1, 0.2]}),
        Case(f"{_name}-uint8-negative", f"n.to(torch.uint8) {_sign} -1", {"n": [0, 1]}),
        Case(f"{_name}-bool", f"m {_sign} k", {"m": [True, False], "k": [True, True]}),
        Case(f"{_name}-complex", f"z {_sign} z", {"z": ((2,), "complex")}),
        Case(f"{_name}-no-broadcast", f"a {_sign} b", {"a": (2,), "b": (3,)}),
        Case(f"{_name}-out", f"o = torch.empty(2, 2, dtype=torch.bool)\nresult = torch.{_name}(a, b, out=o)", TWO),
    ]
for _alias in COMPARISON_ALIASES:
    CASES += [
        Case(_alias, f"torch.{_alias}(a, b)", TWO),
        Case(f"{_alias}-method", f"a.{_alias}(0)", TWO),
        Case(f"{_alias}-inplace", f"result = a.detach().clone().{_alias}_(0)", TWO),
    ]
for _name in ("and", "or", "xor"):
    CASES += [
        Case(f"logical_{_name}", f"torch.logical_{_name}(a, m)", {"a": [0.0, 2.0, NAN], "m": [True, False, True]}),
        Case(f"logical_{_name}-int", f"n.logical_{_name}(k)", {"n": ((4,), "int"), "k": ((4,), "int")}),
        Case(f"logical_{_name}-inplace", f"result = n.clone().logical_{_name}_(m)", {"n": [0, 3], "m": [True, True]}),
        Case(f"logical_{_name}-number", f"torch.logical_{_name}(n, 1)", {"n": [0, 1]}),
        Case(f"logical_{_name}-complex", f"torch.logical_{_name}(z, z)", {"z": ((2,), "complex")}),
        Case(f"bitwise_{_name}", f"torch.bitwise_{_name}(n, k)", {"n": ((2, 3), "int"), "k": ((3,), "int")}),
        Case(f"bitwise_{_name}-bool", f"torch.bitwise_{_name}(m, k)", {"m": [True, False], "k": [True, True]}),
        Case(f"bitwise_{_name}-mixed", f"torch.bitwise_{_name}(n.to(torch.uint8), k)", {"n": [5, 6], "k": [3, 3]}),
        Case(f"bitwise_{_name}-number", f"torch.bitwise_{_name}(n, 3)", {"n": ((3,), "int")}),
        Case(f"bitwise_{_name}-number-left", f"torch.bitwise_{_name}(3, n)", {"n": ((3,), "int")}),
        Case(f"bitwise_{_name}-float", f"torch.bitwise_{_name}(a, a)", {"a": (2,)}),
        Case(f"bitwise_{_name}-inplace", f"result = n.clone().bitwise_{_name}_(3)", {"n": ((3,), "int")}),
    ]
for _sign, _name in {"&": "and", "|": "or", "^": "xor"}.items():
    CASES += [
        Case(f"{_name}-operator", f"n {_sign} k", {"n": ((3,), "int"), "k": ((3,), "int")}),
        Case(f"{_name}-operator-number", f"n {_sign} 3", {"n": ((3,), "int")}),
        Case(f"{_name}-operator-reflected", f"3 {_sign} n", {"n": ((3,), "int")}),
        Case(f"{_name}-operator-masks", f"(a > 0) {_sign} (a < 1)", {"a": (4,)}),
        Case(f"{_name}-operator-inplace", f"y = n.clone()\ny {_sign}= 5\nresult = y", {"n": ((3,), "int")}),
        Case(f"{_name}-operator-float", f"a {_sign} a", {"a": (2,)}),
    ]
for _sign, _name in {"<<": "left", ">>": "right"}.items():
    CASES += [
        Case(f"{_name}-shift-operator", f"n {_sign} 2", {"n": ((3,), "int")}),
        Case(f"{_name}-shift-operator-reflected", f"64 {_sign} n", {"n": [0, 1, 2]}),
        Case(f"{_name}-shift", f"torch.bitwise_{_name}_shift(n, k)", {"n": [8, 9], "k": [1, 2]}),
        Case(f"{_name}-shift-number", f"torch.bitwise_{_name}_shift(n, 1)", {"n": [8, 9]}),
        Case(f"{_name}-shift-method", f"n.bitwise_{_name}_shift(k)", {"n": [8, 9], "k": [1, 2]}),
        Case(f"{_name}-shift-inplace", f"result = n.clone().bitwise_{_name}_shift_(k)", {"n": [8, 9], "k": [1, 2]}),
        Case(f"{_name}-shift-operator-inplace", f"y = n.clone()\ny {_sign}= 1\nresult = y", {"n": [8, 9]}),
        Case(f"{_name}-shift-float", f"a {_sign} 1", {"a": (2,)}),
    ]
for _name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "isreal", "signbit", "logical_not"):
    CASES += [
        Case(_name, f"torch.{_name}(a)", {"a": [NAN, INF, -INF, 0.0, -1.0, -0.0]}),
        Case(f"{_name}-method", f"a.{_name}()", {"a": [NAN, INF, -INF, 0.0]}),
        Case(f"{_name}-int", f"torch.{_name}(n)", {"n": [0, -1]}),
        Case(f"{_name}-bool", f"torch.{_name}(m)", {"m": [True, False]}),
        Case(f"{_name}-complex", f"torch.{_name}(z)", {"z": ((2,), "complex")}),
    ]
CASES += [
    Case("logical_not-inplace", "result = n.clone().logical_not_()", {"n": [0, 3]}),
    Case("bitwise_not", "torch.bitwise_not(n)", {"n": ((3,), "int")}),
    Case("bitwise_not-bool", "~m", {"m": [True, False]}),
    Case("bitwise_not-uint8", "~n.to(torch.uint8)", {"n": [0, 3]}),
    Case("bitwise_not-float", "~a", {"a": (2,)}),
    Case("bitwise_not-inplace", "result = n.clone().bitwise_not_()", {"n": [0, 3]}),
    Case("equal", "torch.equal(a, a.clone())", {"a": (2,)}),
    Case("equal-shapes", "a.equal(b)", TWO),
    Case("equal-dtypes", "torch.equal(n, n.double())", {"n": [1, 2]}),
    Case("equal-nan", "torch.equal(a, a)", {"a": [NAN]}),
    Case("isclose", "torch.isclose(a, b)", {"a": [1.0, 1.0, NAN, INF], "b": [1.0 + 1e-9, 1.1, NAN, INF]}),
    Case("isclose-options", "a.isclose(b, rtol=0.2, atol=0.0, equal_nan=True)", {"a": [1.0, NAN], "b": [1.1, NAN]}),
    Case("isclose-int", "torch.isclose(n, k)", {"n": [1, 2], "k": [1, 3]}),
    Case("isclose-dtypes", "torch.isclose(a, a.float())", {"a": (2,)}),
    Case("isclose-negative", "torch.isclose(a, a, rtol=-1.0)", {"a": (2,)}),
    Case("allclose", "torch.allclose(a, a + 1e-9)", {"a": (2,)}),
    Case("allclose-not", "a.allclose(a + 1e-3)", {"a": (2,)}),
    Case("allclose-nan", "torch.allclose(a, a, equal_nan=True)", {"a": [NAN, 1.0]}),
    Case("contains", "(1.0 in a, 2 in a, a[0] in a)", {"a": [1.0, 3.0]}),
    Case("contains-text", "'x' in a", {"a": [1.0, 3.0]}),
    Case("is_tensor", "(torch.is_tensor(a), torch.is_tensor(1.0), torch.is_tensor([a]))", {"a": (2,)}),
    Case("is_floating_point", "(torch.is_floating_point(a), torch.is_floating_point(n))", {"a": (2,), "n": [1]}),
    Case("is_complex", "(torch.is_complex(a), torch.is_complex(z))", {"a": (2,), "z": ((2,), "complex")}),
    Case("is_nonzero", "(torch.is_nonzero(a[0]), a[1].is_nonzero())", {"a": [0.0, 2.0]}),
    Case("is_nonzero-many", "torch.is_nonzero(a)", {"a": (2,)}),
    Case("is_nonzero-none", "torch.is_nonzero(a)", {"a": (0,)}),
    Case(
        "is_signed",
        "(a.is_signed(), n.is_signed(), m.is_signed(), torch.is_signed(n.to(torch.uint8)))",
        {"a": (2,), "n": [1], "m": [True]},
    ),
    Case("is_same_size", "(a.is_same_size(b), torch.is_same_size(a, a))", TWO),
    Case("numel", "(torch.numel(a), a.numel(), a.nelement())", {"a": (2, 3)}),
    Case(
        "result_type",
        "(torch.result_type(n, 1.0), torch.result_type(n, a), torch.result_type(1, 2.0))",
        {"n": [1], "a": (2,)},
    ),
    Case("result_type-0-d", "torch.result_type(a.float(), b)", {"a": (2,), "b": ()}),
    # where
    Case("where", "torch.where(m, a, b)", {"m": [True, False], "a": (2, 2), "b": (2,)}),
    Case("where-number", "torch.where(m, a, 0.0)", {"m": [True, False], "a": (2, 2)}),
    Case("where-number-left", "torch.where(m, 2, a)", {"m": [True, False], "a": (2, 2)}),
    Case("where-numbers", "torch.where(m, 1.0, 2.0)", {"m": [True, False]}),
    Case("where-ints", "torch.where(m, 1, 2)", {"m": [True, False]}),
    Case("where-int-float", "torch.where(m, n, a)", {"m": [True, False], "n": [1, 2], "a": (2,)}),
    Case("where-method", "a.where(m, b)", {"m": [True, False], "a": (2,), "b": (2,)}),
    Case("where-method-number", "a.where(a > 0, 0)", {"a": (3,)}),
    Case("where-condition", "torch.where(m)", {"m": [[True, False], [True, True]]}),
    Case("where-trap", "torch.where(a > 0, torch.sqrt(a), b)", {"a": [4.0, 1.0], "b": (2,)}),
    Case("where-condition-int", "torch.where(n, a, a)", {"n": [1, 0], "a": (2,)}),
    Case("where-condition-uint8", "torch.where(n.to(torch.uint8), a, -a)", {"n": [1, 0], "a": (2,)}),
    Case("where-no-broadcast", "torch.where(m, a, b)", {"m": [True, False], "a": (2,), "b": (3,)}),
    Case("where-condition-wider", "torch.where(m, a, b)", {"m": [[True, False], [False, True]], "a": (2,), "b": ()}),
    Case("where-float32", "torch.where(m, a.float(), 1.5)", {"m": [True, False], "a": (2,)}),
    # masked_fill
    Case("masked_fill", "a.masked_fill(m, 2.0)", {"m": [True, False], "a": (2, 2)}),
    Case("masked_fill-function", "torch.masked_fill(a, mask=m, value=2)", {"m": [True, False], "a": (2, 2)}),
    Case("masked_fill-tensor", "a.masked_fill(m, b)", {"m": [True, False], "a": (2, 2), "b": ()}),
    Case("masked_fill-tensor-1-d", "a.masked_fill(m, b)", {"m": [True, False], "a": (2, 2), "b": (1,)}),
    Case("masked_fill-wider", "a.masked_fill(m, 0.0)", {"m": [[True, False], [False, True]], "a": (2,)}),
    Case("masked_fill-inf", "a.masked_fill(m, float('-inf'))", {"m": [True, False], "a": (2, 2)}),
    Case("masked_fill-inplace", "result = (a * 2).masked_fill_(m, 0.0)", {"m": [True, False], "a": (2, 2)}),
    Case(
        "masked_fill-inplace-tensor", "result = (a * 2).masked_fill_(m, b)", {"m": [True, False], "a": (2, 2), "b": ()}
    ),
    Case("masked_fill-inplace-wide", "(a * 2).masked_fill_(m, 0.0)", {"m": [[True, False], [False, True]], "a": (2,)}),
    Case("masked_fill-int-float", "n.masked_fill(m, 2.5)", {"m": [True, False], "n": [1, 2]}),
    Case("masked_fill-mask-int", "a.masked_fill(n, 0.0)", {"n": [1, 0], "a": (2,)}),
    # bounds
    Case("clamp", "torch.clamp(a, -0.5, 0.5)", {"a": (2, 2)}),
    Case("clamp-at-bounds", "torch.clamp(a, 0, 1)", {"a": [0.0, 1.0, 0.5, -1.0, 2.0]}),
    Case("clamp-min", "a.clamp(min=0)", {"a": [0.0, 1.0, -1.0]}),
    Case("clamp-max", "a.clamp(max=0.5)", {"a": [0.5, 1.0, -1.0]}),
    Case("clamp-nan", "torch.clamp(a, 0, 1)", {"a": [NAN, 2.0]}, grad=False),
    Case("clamp-crossed", "torch.clamp(a, 1, 0)", {"a": [0.0, 0.5, 2.0]}),
    Case("clamp-none", "torch.clamp(a)", {"a": (2,)}),
    Case("clamp-int", "torch.clamp(n, 0, 2)", {"n": ((4,), "int")}),
    Case("clamp-int-float", "torch.clamp(n, 0.5, 2)", {"n": ((4,), "int")}),
    Case("clamp-bool", "torch.clamp(m, 0, 1)", {"m": [True]}),
    Case("clamp-float32", "torch.clamp(a.float(), 0.1, 0.7)", {"a": (3,)}),
    Case("clamp-inplace", "result = a.clone().clamp_(0, 1)", {"a": (3,)}),
    Case("clamp-inplace-int-float", "result = n.clone().clamp_(0.5, 1)", {"n": [1]}),
    Case("clamp-tensors", "torch.clamp(a, b, c)", {"a": (2, 3), "b": [-0.5, 0.0, 0.2], "c": [0.5, 0.1, 1.0]}),
    Case(
        "clamp-tensors-at-bounds",
        "torch.clamp(a, b, c)",
        {"a": [0.0, 1.0, 2.0, 0.5], "b": [0.0, 0.0, 0.0, 1.0], "c": [1.0, 1.0, 1.0, 0.0]},
    ),
    Case("clamp-tensor-min", "torch.clamp(a, min=b)", {"a": [0.0, 1.0, -1.0], "b": [0.0, 0.0, 0.0]}),
    Case("clamp-tensor-max", "torch.clamp(a, max=b)", {"a": [0.0, 1.0, -1.0], "b": [0.0, 0.0, 0.0]}),
    Case("clamp-tensor-number", "torch.clamp(a, b, 1.0)", {"a": (2,), "b": (2,)}),
    Case("clamp-tensors-int", "torch.clamp(a, n, k)", {"a": (2,), "n": [0, 0], "k": [1, 1]}),
    Case("clamp-out", "torch.clamp(a, 0, 1, out=torch.empty(2))", {"a": (2,)}, grad=False),
    Case("clip", "torch.clip(a, -0.5, 0.5)", {"a": (2,)}),
    Case("clip-method", "a.clip(max=0.5)", {"a": (2,)}),
    Case("clip-inplace", "result = a.clone().clip_(0, 1)", {"a": (2,)}),
    Case("clamp_min", "torch.clamp_min(a, 0)", {"a": [0.0, 1.0, -1.0]}),
    Case("clamp_min-method", "a.clamp_min(0.5)", {"a": (2,)}),
    Case("clamp_min-tensor", "torch.clamp_min(a, b)", {"a": [0.0, 1.0, -1.0], "b": [0.0, 0.0, 0.0]}),
    Case("clamp_min-inplace", "result = a.clone().clamp_min_(0)", {"a": (2,)}),
    Case("clamp_min-int", "torch.clamp_min(n, 0.5)", {"n": ((3,), "int")}),
    Case("clamp_max", "torch.clamp_max(a, 0)", {"a": [0.0, 1.0, -1.0]}),
    Case("clamp_max-tensor", "a.clamp_max(b)", {"a": [0.0, 1.0, -1.0], "b": [0.0, 0.0, 0.0]}),
    Case("clamp_max-inplace", "result = a.clone().clamp_max_(0)", {"a": (2,)}),
]
