"""Elementwise arithmetic of two tensors or numbers, and of three."""

from __future__ import annotations

from typing import Any

from tests.torch.facts import Case

PLAIN = {"a": (2, 2), "b": (2,)}
POSITIVE = {"a": ((2, 2), "positive"), "b": ((2,), "positive")}
TWO = {"a": (2,), "b": (2,)}
WITHOUT_A_DERIVATIVE = ("floor_divide", "heaviside")
"""In PyTorch; here they have one."""


def forms(name: str, inputs: dict[str, Any], *, inplace: bool = True, is_method: bool = True) -> list[Case]:
    """Every form of a function of two operands, at every kind of dtype."""
    known = name not in WITHOUT_A_DERIVATIVE
    second = name not in ("hypot", "copysign")
    pair = {"a": inputs["a"] if isinstance(inputs["a"], list) else inputs["b"], "b": inputs["b"]}
    one = {"a": pair["a"]}
    found = [
        Case(name, f"torch.{name}(a, b)", inputs, grad=known),
        Case(f"{name}-number", f"torch.{name}(a, 2)", one, grad=known, second=second),
        Case(f"{name}-number-float", f"torch.{name}(input=a, other=1.5)", one, grad=known, second=second),
        Case(f"{name}-number-left", f"torch.{name}(2, a)", one, grad=known and name != "remainder"),
        Case(f"{name}-0-d", f"torch.{name}(a, b[0])", pair, grad=known),
        Case(f"{name}-same", f"torch.{name}(a, a)", one, grad=known and name != "nextafter", second=second),
        Case(f"{name}-int", f"torch.{name}(n, k)", {"n": ((3,), "int"), "k": [1, 2, 3]}),
        Case(f"{name}-int-number", f"torch.{name}(n, 2)", {"n": ((3,), "int")}),
        Case(f"{name}-int-float-number", f"torch.{name}(n, 0.5)", {"n": [1, 2, 3]}),
        Case(f"{name}-int-float", f"torch.{name}(n, b)", {"n": [1, 2], "b": pair["b"]}, grad=known),
        Case(f"{name}-float32-float64", f"torch.{name}(a.float(), b)", pair, grad=known, rtol=2e-5),
        Case(
            f"{name}-float32-int", f"torch.{name}(a.float(), n)", {"a": pair["a"], "n": [1, 2]}, grad=known, rtol=2e-5
        ),
        Case(f"{name}-bool", f"torch.{name}(m, m)", {"m": [True, False]}),
        Case(f"{name}-bool-int", f"torch.{name}(n, m)", {"n": [3, 4], "m": [True, True]}),
        Case(f"{name}-complex", f"torch.{name}(z, w)", {"z": ((2,), "complex"), "w": ((2,), "complex")}),
        Case(
            f"{name}-complex-real",
            f"torch.{name}(z, a)",
            {"z": ((2,), "complex"), "a": pair["a"]},
            grad=name != "logaddexp",
        ),
        Case(f"{name}-empty", f"torch.{name}(a, b)", {"a": (0, 1), "b": (2,)}, grad=known, second=False),
        Case(f"{name}-no-broadcast", f"torch.{name}(a, b)", {"a": (2,), "b": (3,)}),
        Case(f"{name}-text", f"torch.{name}(a, 'b')", one),
        Case(f"{name}-none", f"torch.{name}(a, None)", one),
        Case(f"{name}-out", f"o = torch.empty(2, 2)\nresult = torch.{name}(a, b, out=o)", inputs, grad=False),
    ]
    if is_method:
        found.append(Case(f"{name}-method", f"a.{name}(b)", pair, grad=known, second=False))
        found.append(Case(f"{name}-method-number", f"a.{name}(2)", one, grad=known, second=False))
    if inplace:
        found += [
            Case(f"{name}-inplace", f"y = a.clone()\ny.{name}_(b)\nresult = y", pair, grad=known),
            Case(f"{name}-inplace-number", f"y = a.clone()\nresult = y.{name}_(2)", one, grad=known),
            Case(f"{name}-inplace-int", f"y = n.clone()\nresult = y.{name}_(2)", {"n": [1, 5]}),
            Case(f"{name}-inplace-int-float", f"y = n.clone()\nresult = y.{name}_(1.5)", {"n": [1, 5]}),
            Case(f"{name}-inplace-wide", f"y = a.clone()\nresult = y.{name}_(b)", {"a": (2,), "b": (2, 2)}),
            Case(f"{name}-inplace-leaf", f"a.{name}_(2)", one),
            Case(
                f"{name}-inplace-narrow", f"y = a.clone().float()\nresult = y.{name}_(b)", pair, grad=known, rtol=2e-5
            ),
        ]
    return found


FUNCTIONS = {
    "add": PLAIN, "sub": PLAIN, "mul": PLAIN, "div": POSITIVE, "remainder": PLAIN, "fmod": PLAIN, "pow": POSITIVE,
    "floor_divide": PLAIN, "atan2": PLAIN, "hypot": PLAIN, "copysign": PLAIN,
}  # fmt: skip
ALIASES = ("true_divide", "divide", "multiply", "subtract", "arctan2")

CASES: list[Case] = [case for name, inputs in FUNCTIONS.items() for case in forms(name, inputs)]
for _name in ("maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2"):
    CASES += forms(_name, PLAIN, inplace=False)
CASES += forms("float_power", POSITIVE)
CASES += [case for case in forms("heaviside", PLAIN) if "number" not in case.name]
CASES += [case for case in forms("nextafter", PLAIN) if "number" not in case.name]
for _name in ALIASES:
    CASES += [
        Case(_name, f"torch.{_name}(a, b)", TWO, second=False),
        Case(f"{_name}-method", f"a.{_name}(b)", TWO, second=False),
        Case(f"{_name}-inplace", f"result = a.clone().{_name}_(b)", TWO, second=False),
    ]

OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow"}
for _sign, _name in OPERATORS.items():
    _known = _name != "floordiv"
    CASES += [
        Case(f"{_name}-operator", f"a {_sign} b", POSITIVE, grad=_known),
        Case(f"{_name}-operator-number", f"a {_sign} 2", {"a": ((2,), "positive")}, grad=_known),
        Case(
            f"{_name}-operator-reflected",
            f"2 {_sign} a",
            {"a": ((2,), "positive")},
            grad=_name not in ("floordiv", "mod"),
        ),
        Case(f"{_name}-operator-reflected-float", f"1.5 {_sign} n", {"n": [1, 2, 3]}),
        Case(f"{_name}-operator-int", f"n {_sign} k", {"n": [-3, 2, 5], "k": [2, 3, 2]}),
        Case(f"{_name}-operator-int-reflected", f"7 {_sign} n", {"n": [1, 2, 3]}),
        Case(f"{_name}-operator-inplace", f"y = a.clone()\ny {_sign}= b\nresult = y", POSITIVE, grad=_known),
        Case(
            f"{_name}-operator-inplace-number",
            f"y = a.clone()\ny {_sign}= 2\nresult = y",
            {"a": ((2,), "positive")},
            grad=_known,
        ),
        Case(f"{_name}-operator-bool", f"m {_sign} True", {"m": [True, False]}),
        Case(f"{_name}-operator-complex", f"a {_sign} 1j", {"a": ((2,), "positive")}),
        Case(f"{_name}-operator-text", f"a {_sign} 'b'", {"a": (2,)}),
        Case(f"{_name}-operator-list", f"a {_sign} [1.0, 2.0]", {"a": (2,)}),
        Case(f"{_name}-operator-none", f"None {_sign} a", {"a": (2,)}),
    ]

CASES += [
    Case("add-alpha", "torch.add(a, b, alpha=2)", PLAIN),
    Case("add-alpha-float", "a.add(b, alpha=0.5)", PLAIN),
    Case("add-alpha-number", "torch.add(a, 3, alpha=2)", {"a": (2,)}),
    Case("add-alpha-int", "torch.add(n, n, alpha=2)", {"n": ((2,), "int")}),
    Case("add-alpha-int-float", "torch.add(n, n, alpha=0.5)", {"n": ((2,), "int")}),
    Case("add-alpha-bool", "torch.add(m, m, alpha=2)", {"m": [True, False]}),
    Case("add-alpha-inplace", "result = a.clone().add_(b, alpha=-1)", TWO),
    Case("sub-alpha", "torch.sub(a, b, alpha=2)", PLAIN),
    Case("sub-alpha-inplace", "result = a.clone().sub_(b, alpha=0.5)", TWO),
    Case("rsub", "torch.rsub(a, b)", PLAIN),
    Case("rsub-number", "torch.rsub(a, 2)", {"a": (2,)}),
    Case("rsub-alpha", "torch.rsub(a, b, alpha=2)", PLAIN),
    Case("rsub-bool", "torch.rsub(m, m)", {"m": [True, False]}),
    Case("add-list", "torch.add(a, [1.0, 2.0])", {"a": (2,)}),
    Case("add-numpy-scalar", "a + np.float64(2)", {"a": (2,)}),
    Case("add-numpy-scalar-float32", "a.float() + np.float64(2)", {"a": (2,)}),
    Case("add-big-int", "n + 2**70", {"n": [1, 2]}),
    Case("add-uint8-number", "n.to(torch.uint8) + 300", {"n": [1, 2]}),
    Case("add-uint8-negative", "n.to(torch.uint8) + (-1)", {"n": [1, 2]}),
    Case("add-half-number", "a.half() + 1.5", {"a": (2,)}, grad=False),
    Case("add-half-0-d-float64", "a.half() + b[0]", TWO, grad=False),
    Case("div-floor", "torch.div(a, b, rounding_mode='floor')", PLAIN),
    Case("div-trunc", "torch.div(a, b, rounding_mode='trunc')", PLAIN),
    Case("div-unrounded", "torch.div(a, b, rounding_mode=None)", PLAIN, grad=False),
    Case("div-mode-unknown", "torch.div(a, b, rounding_mode='ceil')", PLAIN),
    Case("div-floor-int", "torch.div(n, k, rounding_mode='floor')", {"n": [-7, 7, -6], "k": [2, -2, 3]}),
    Case("div-trunc-int", "torch.div(n, k, rounding_mode='trunc')", {"n": [-7, 7, -6], "k": [2, -2, 3]}),
    Case("div-trunc-number", "a.div(2, rounding_mode='trunc')", {"a": (2,)}),
    Case("div-floor-inplace", "result = (a * 3).div_(b, rounding_mode='floor')", TWO),
    Case("div-trunc-inplace-int", "result = n.clone().div_(2, rounding_mode='trunc')", {"n": [-7, 7]}),
    Case("div-by-zero", "torch.div(a, b)", {"a": [1.0, -1.0, 0.0], "b": [0.0, 0.0, 0.0]}, grad=False),
    Case("div-int-by-zero", "n // 0", {"n": [1, 2]}),
    Case("remainder-int-by-zero", "n % 0", {"n": [1, 2]}),
    Case(
        "floor_divide-points",
        "a // b",
        {"a": [7.0, -7.0, 1.0, float("inf"), 0.0], "b": [2.0, 2.0, 0.0, 2.0, 0.0]},
        grad=False,
    ),
    Case("remainder-signs", "a % b", {"a": [7.0, -7.0, 7.0, -7.0], "b": [3.0, 3.0, -3.0, -3.0]}),
    Case("fmod-signs", "torch.fmod(a, b)", {"a": [7.0, -7.0, 7.0, -7.0], "b": [3.0, 3.0, -3.0, -3.0]}),
    Case("fmod-int-signs", "torch.fmod(n, k)", {"n": [7, -7, 7, -7], "k": [3, 3, -3, -3]}),
    Case("remainder-int-signs", "n % k", {"n": [7, -7, 7, -7], "k": [3, 3, -3, -3]}),
    # powers
    *(
        Case(f"pow-{str(exponent).replace('.', '_')}", f"torch.pow(a, {exponent})", {"a": ((3,), "positive")})
        for exponent in (0, 1, 2, 3, 4, 5, -1, -2, 0.5, -0.5, 1.5, 2.5, 0.0, 1.0, 2.0, 0.3, 2.7)
    ),
    *(
        Case(f"pow-{str(exponent).replace('.', '_')}-negative-base", f"a ** {exponent}", {"a": [-2.0, -0.5, 1.0]})
        for exponent in (0, 1, 2, 3, 4, -1, -3, 2.0, 3.0)
    ),
    *(
        Case(f"pow-{exponent}-at-zero", f"a ** {exponent}", {"a": [0.0, 2.0]}, rtol=1e-9)
        for exponent in (0, 1, 2, 3, 4)
    ),
    Case("pow-half-at-zero", "a ** 0.5", {"a": [0.0, 2.0]}, second=False),
    Case("pow-three-halves-at-zero", "a ** 1.5", {"a": [0.0, 2.0]}, second=False),
    Case("pow-minus-one-at-zero", "a ** -1", {"a": [0.0, 2.0]}, second=False),
    Case("pow-tensor-at-zero", "torch.pow(a, b)", {"a": [0.0, 0.0, 0.0, 2.0], "b": [1.0, 2.0, 3.0, 0.0]}, second=False),
    Case("pow-zero-zero", "torch.pow(a, b)", {"a": [0.0], "b": [0.0]}, second=False),
    Case("pow-negative-tensor", "torch.pow(a, b.detach())", {"a": [-2.0, -3.0], "b": [2.0, 3.0]}),
    Case("pow-base-zero", "0 ** b", {"b": [0.0, 1.0, 2.0]}, second=False),
    Case("pow-base-one", "1.0 ** b", {"b": [0.0, 1.0, 2.0]}),
    Case("pow-base-negative", "(-2.0) ** b", {"b": [2.0, 3.0]}, grad=False),
    Case("pow-int-negative", "n ** -1", {"n": [1, 2]}),
    Case("pow-int-int", "n ** k", {"n": [2, -3], "k": [3, 2]}),
    Case("pow-int-tensor-negative", "n ** k", {"n": [2, 1, -1], "k": [-1, -2, -3]}),
    Case("pow-int-half", "n ** 0.5", {"n": [1, 4]}),
    Case("pow-float32-square", "a.float() ** 2", {"a": (2,)}),
    Case("pow-complex-int", "z ** 2", {"z": ((2,), "complex")}),
    Case("pow-complex-complex", "z ** (1 + 2j)", {"z": ((2,), "complex")}),
    Case("pow-complex-half", "z ** 0.5", {"z": ((2,), "complex")}),
    Case("pow-number-number", "torch.pow(2, 3)"),
    Case("pow-inplace-tensor", "result = a.clone().pow_(b)", {"a": ((2,), "positive"), "b": (2,)}),
    Case("pow-exponent-0-d", "a ** b[0]", {"a": ((2,), "positive"), "b": (2,)}),
    Case("pow-true", "a ** True", {"a": (2,)}),
    # ties and nan
    *(
        Case(f"{name}-ties", f"torch.{name}(a, b)", {"a": [1.0, 2.0, 3.0], "b": [1.0, 3.0, 2.0]})
        for name in ("maximum", "minimum", "fmax", "fmin")
    ),
    *(
        Case(
            f"{name}-nan",
            f"torch.{name}(a, b)",
            {"a": [float("nan"), 2.0, float("nan")], "b": [1.0, float("nan"), float("nan")]},
            grad=False,
        )
        for name in ("maximum", "minimum", "fmax", "fmin")
    ),
    Case(
        "logaddexp-far",
        "torch.logaddexp(a, b)",
        {"a": [1000.0, -1000.0, 0.0], "b": [1000.0, 0.0, -1000.0]},
        second=False,
    ),
    Case("logaddexp-inf", "torch.logaddexp(a, b)", {"a": [float("inf"), float("-inf")], "b": [1.0, 2.0]}, grad=False),
    Case("atan2-quadrants", "torch.atan2(a, b)", {"a": [1.0, 1.0, -1.0, -1.0], "b": [1.0, -1.0, -1.0, 1.0]}),
    Case("copysign-points", "torch.copysign(a, b)", {"a": [1.0, 1.0, -1.0], "b": [-0.0, 0.0, 2.0]}),
    Case("copysign-of-zeros", "torch.copysign(a, b)", {"a": [0.0, -0.0, 0.0], "b": [1.0, 1.0, -1.0]}, second=False),
    Case("copysign-number-of-zeros", "torch.copysign(a, -2)", {"a": [0.0, -0.0]}, second=False),
    Case("copysign-number-negative", "torch.copysign(a, -2)", {"a": (2,)}),
    Case(
        "heaviside-points",
        "torch.heaviside(a, b)",
        {"a": [-1.0, 0.0, 1.0, float("nan")], "b": [5.0, 6.0, 7.0, 8.0]},
        grad=False,
    ),
    # of three
    Case("lerp", "torch.lerp(a, b, c)", {"a": (2, 2), "b": (2,), "c": (2,)}),
    Case("lerp-number", "torch.lerp(a, b, 0.3)", PLAIN),
    Case("lerp-number-far", "torch.lerp(a, b, 0.8)", PLAIN),
    Case("lerp-method", "a.lerp(b, weight=0.25)", TWO),
    Case("lerp-inplace", "result = a.clone().lerp_(b, 0.1)", TWO),
    Case("lerp-inplace-tensor", "result = a.clone().lerp_(b, c)", {**TWO, "c": (2,)}),
    Case("lerp-mixed", "torch.lerp(a.float(), b, 0.5)", TWO),
    Case("lerp-int", "torch.lerp(n, n, 0.5)", {"n": [1, 2]}),
    Case("addcmul", "torch.addcmul(a, b, c)", {"a": (2, 2), "b": (2,), "c": (2, 1)}),
    Case("addcmul-value", "torch.addcmul(a, b, c, value=2)", {**TWO, "c": (2,)}),
    Case("addcmul-method", "a.addcmul(b, c, value=0.5)", {**TWO, "c": (2,)}),
    Case("addcmul-inplace", "result = a.clone().addcmul_(b, c, value=-1)", {**TWO, "c": (2,)}),
    Case("addcmul-int", "torch.addcmul(n, n, n)", {"n": [1, 2]}),
    Case("addcmul-int-float", "torch.addcmul(n, n, n, value=0.5)", {"n": [1, 2]}),
    Case("addcmul-mixed", "torch.addcmul(a.float(), b, n)", {**TWO, "n": [1, 2]}),
    Case("addcdiv", "torch.addcdiv(a, b, c)", {"a": (2, 2), "b": (2,), "c": ((2, 1), "positive")}),
    Case("addcdiv-value", "torch.addcdiv(a, b, c, value=2)", {**TWO, "c": ((2,), "positive")}),
    Case("addcdiv-inplace", "result = a.clone().addcdiv_(b, c, value=-0.1)", {**TWO, "c": ((2,), "positive")}),
    Case("addcdiv-int", "torch.addcdiv(n, n, n)", {"n": [1, 2]}),
    Case("addcdiv-int-float", "torch.addcdiv(a, n, n)", {"a": (2,), "n": [1, 2]}),
    Case("ldexp", "torch.ldexp(a, n)", {"a": (2,), "n": [1, 2]}),
    Case("ldexp-method", "a.ldexp(n)", {"a": (2,), "n": [1, 2]}),
    Case("ldexp-inplace", "result = a.clone().ldexp_(n)", {"a": (2,), "n": [1, 2]}),
    Case("ldexp-negative", "torch.ldexp(a, n)", {"a": (2,), "n": [1, -2]}, grad=False),
    Case("ldexp-int", "torch.ldexp(n, n)", {"n": [1, 3]}),
    Case("ldexp-float", "torch.ldexp(a, b.detach())", TWO),
    Case("frexp", "torch.frexp(a)", {"a": (3,)}),
    Case("frexp-method", "a.frexp().exponent", {"a": (3,)}),
    Case("frexp-points", "torch.frexp(a)", {"a": [0.0, 1.0, -8.0, 0.3]}, grad=False),
    Case("frexp-printed", "torch.frexp(a)", {"a": [0.5, 3.0]}, grad=False, text=True),
    Case("frexp-int", "torch.frexp(n)", {"n": [1, 2]}),
    Case("gcd", "torch.gcd(n, k)", {"n": [12, -9], "k": [18, 6]}),
    Case("gcd-inplace", "result = n.clone().gcd_(k)", {"n": [12, -9], "k": [18, 6]}),
    Case("lcm", "torch.lcm(n, k)", {"n": [12, -9], "k": [18, 6]}),
    Case("gcd-float", "torch.gcd(a, a)", {"a": (2,)}),
    # saved values that are changed in place
    *(
        Case(
            f"saved-operand-{name}",
            f"y = a * 1\nresult = y.{name}()\ny.mul_(2)",
            {"a": ((2,), "positive")},
            second=False,
        )
        for name in (
            "exp",
            "sqrt",
            "rsqrt",
            "reciprocal",
            "tanh",
            "sigmoid",
            "relu",
            "expm1",
            "exp2",
            "tan",
            "sin",
            "log",
            "square",
            "abs",
            "neg",
            "erf",
            "floor",
            "sign",
        )
    ),
    *(
        Case(
            f"saved-result-{name}",
            f"y = a.{name}()\nresult = y * 1\ny.mul_(2)\nresult = result + y",
            {"a": ((2,), "positive")},
            second=False,
        )
        for name in (
            "exp",
            "sqrt",
            "rsqrt",
            "reciprocal",
            "tanh",
            "sigmoid",
            "relu",
            "expm1",
            "exp2",
            "tan",
            "sin",
            "log",
            "square",
            "abs",
            "neg",
            "erf",
            "floor",
            "sign",
            "erfinv",
            "digamma",
        )
    ),
    *(
        Case(
            f"saved-{name}-left",
            f"x, y = a * 1, b * 1\nresult = torch.{name}(x, y)\nx.mul_(2)",
            {"a": ((2,), "positive"), "b": ((2,), "positive")},
            second=False,
        )
        for name in ("add", "mul", "div", "pow", "maximum", "atan2", "hypot", "logaddexp", "fmod", "xlogy")
    ),
    *(
        Case(
            f"saved-{name}-right",
            f"x, y = a * 1, b * 1\nresult = torch.{name}(x, y)\ny.mul_(2)",
            {"a": ((2,), "positive"), "b": ((2,), "positive")},
            second=False,
        )
        for name in ("add", "mul", "div", "pow", "maximum", "atan2", "hypot", "logaddexp", "fmod", "xlogy")
    ),
    Case("saved-pow-number", "y = a * 1\nresult = y ** 2\ny.mul_(2)", {"a": (2,)}, second=False),
    Case("saved-clamp", "y = a * 1\nresult = y.clamp(0, 1)\ny.mul_(2)", {"a": (2,)}, second=False),
]

EDGES = (
    "a + 2", "2 + a", "a - 2", "2 - a", "a * 2", "2 * a", "a / 2", "2 / a", "a ** 2", "a ** 0.3", "2 ** a", "a ** b",
    "a % 2", "a % b", "torch.fmod(a, 2)", "torch.add(a, b, alpha=2)", "torch.add(a, 1, alpha=2)",
    "torch.sub(a, b, alpha=2)", "torch.rsub(a, b)", "torch.rsub(a, b, alpha=2)", "torch.addcmul(a, b, b, value=2)",
    "torch.addcdiv(a, b, b)", "torch.lerp(a, b, 0.5)", "torch.lerp(a, b, b)", "a.clamp(0, 1)", "a.clamp(b, b)",
    "a.clamp_min(0)", "a.clamp_min(b)", "torch.where(a > 0, a, b)", "torch.where(a > 0, a, 0)",
    "a.masked_fill(a > 0, 1.0)", "a.float()", "a.clone()", "torch.copysign(a, 2)", "torch.xlogy(a, 2)",
    "torch.xlogy(2, a)", "torch.special.zeta(2, a)", "a.square()", "torch.maximum(a, b.detach())", "a.sin()",
    "a.nan_to_num()", "a.logit(0.1)", "a.polygamma(1)", "torch.div(a, 2, rounding_mode='floor')", "a + n", "a * n",
    "torch.frexp(a)[0]", "torch.ldexp(a, n)", "torch.complex(a, b)", "(a * 1).fill_(2)", "(a * 1).fill_(b[0])",
    "(a * 1).copy_(b)", "(a * 1).mul_(2)", "(a * 1).add_(b, alpha=2)", "(a * 1).masked_fill_(a > 0, 1.0)",
    "(a * 1).zero_()",
)  # fmt: skip
CASES += [
    Case(
        f"edges of {code}",
        f"[None if node is None else node.name() for node, _ in ({code}).grad_fn.next_functions]",
        {"a": [0.5, 0.7], "b": [0.6, 0.9], "n": [1, 2]},
    )
    for code in EDGES
]
