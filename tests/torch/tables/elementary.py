"""Elementwise functions of one tensor: elementary functions, roundings, signs, complex parts."""

from __future__ import annotations

from typing import Any

from tests.torch.facts import Case

WITHOUT_INPLACE_DERIVATIVE = ("asinh", "acosh", "atanh", "arcsinh", "arccosh", "arctanh")
"""In PyTorch; here they have one."""
REAL_POINTS = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.0, -1.0, 0.5, -2.5]


def forms(name: str, domain: Any = "normal", *, inplace: bool = True, is_method: bool = True) -> list[Case]:
    """Every form of a function of one tensor, at every kind of dtype."""
    known = name not in WITHOUT_INPLACE_DERIVATIVE

    def of(*shape: int) -> Any:
        return domain if isinstance(domain, list) else (shape, domain)

    found = [
        Case(name, f"torch.{name}(a)", {"a": of(2, 2)}),
        Case(f"{name}-0-d", f"torch.{name}(input=a)", {"a": domain[0] if isinstance(domain, list) else ((), domain)})
        if not isinstance(domain, list)
        else Case(f"{name}-0-d", f"torch.{name}(input=a[0])", {"a": domain}),
        Case(f"{name}-empty", f"torch.{name}(a)", {"a": (0,)}, second=False),
        Case(f"{name}-float32", f"torch.{name}(a.float())", {"a": of(2)}, rtol=2e-5),
        Case(f"{name}-half", f"torch.{name}(a.half())", {"a": of(2)}, grad=False),
        Case(f"{name}-int", f"torch.{name}(n)", {"n": ((3,), "int")}),
        Case(f"{name}-uint8", f"torch.{name}(n)", {"n": [0, 1, 2]}),
        Case(f"{name}-bool", f"torch.{name}(m)", {"m": [True, False]}),
        Case(f"{name}-complex", f"torch.{name}(z)", {"z": ((2,), "complex")}),
        Case(f"{name}-points", f"torch.{name}(a)", {"a": REAL_POINTS}, grad=False),
        Case(f"{name}-out", f"o = torch.empty(2)\nresult = torch.{name}(a, out=o)", {"a": of(2)}, grad=False),
        Case(f"{name}-number", f"torch.{name}(2.0)"),
    ]
    if is_method:
        found.append(Case(f"{name}-method", f"a.{name}()", {"a": of(2)}, second=False))
    if inplace:
        found += [
            Case(f"{name}-inplace", f"y = a.clone()\nresult = y.{name}_()", {"a": of(2)}, grad=known),
            Case(f"{name}-inplace-int", f"y = n.clone()\nresult = y.{name}_()", {"n": ((2,), "int")}),
            Case(f"{name}-inplace-leaf", f"a.{name}_()", {"a": of(2)}),
        ]
    return found


FUNCTIONS: dict[str, Any] = {
    "neg": "normal", "abs": "normal", "sign": "normal", "sgn": "normal", "sqrt": "positive", "rsqrt": "positive",
    "square": "normal", "reciprocal": "positive", "exp": "normal", "exp2": "normal", "expm1": "normal",
    "log": "positive", "log2": "positive", "log10": "positive", "log1p": "positive", "sin": "normal", "cos": "normal",
    "tan": "unit", "asin": "unit", "acos": "unit", "atan": "normal", "sinh": "normal", "cosh": "normal",
    "tanh": "normal", "asinh": "normal", "acosh": [1.5, 2.5], "atanh": "unit", "sigmoid": "normal", "floor": "normal",
    "ceil": "normal", "round": "normal", "trunc": "normal", "frac": "normal", "deg2rad": "normal",
    "rad2deg": "normal", "sinc": "normal", "nan_to_num": "normal", "conj_physical": "normal",
}  # fmt: skip
ALIASES = {
    "negative": "neg", "absolute": "abs", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "fix": "trunc",
}  # fmt: skip

CASES: list[Case] = [case for name, domain in FUNCTIONS.items() for case in forms(name, domain)]
CASES += [
    case
    for alias, name in ALIASES.items()
    for case in (
        Case(alias, f"torch.{alias}(a)", {"a": ((2,), "unit")}, second=False),
        Case(f"{alias}-method", f"a.{alias}()", {"a": ((2,), "unit")}, second=False),
        Case(
            f"{alias}-inplace",
            f"result = a.clone().{alias}_()",
            {"a": ((2,), "unit")},
            grad=alias not in WITHOUT_INPLACE_DERIVATIVE,
            second=False,
        ),
    )
]
CASES = [case._replace(grad=False) if case.name == "nan_to_num-complex" else case for case in CASES]
CASES += forms("positive", inplace=False) + forms("relu") + forms("angle", inplace=False)
CASES += [
    # a point where the derivative is a limit, a convention, or infinite
    Case("abs-kink", "torch.abs(a)", {"a": [0.0, -0.0, 1.0]}),
    Case("abs-complex-zero", "torch.abs(torch.complex(a, b))", {"a": [0.0, 3.0], "b": [0.0, 4.0]}),
    Case("relu-kink", "torch.relu(a)", {"a": [0.0, -1.0, 1.0]}),
    Case("relu-nan", "torch.relu(a)", {"a": [float("nan"), 1.0]}, second=False),
    Case("sinc-zero", "torch.sinc(a)", {"a": [0.0, 1.0, 0.01]}, second=False),
    Case("square-zero", "torch.square(a)", {"a": [0.0, 1.0]}),
    Case("sqrt-zero", "torch.sqrt(a)", {"a": [0.0, 4.0]}, second=False),
    Case("log-zero", "torch.log(a)", {"a": [0.0, 4.0]}, second=False),
    Case("rsqrt-zero", "torch.rsqrt(a)", {"a": [0.0, 4.0]}, second=False),
    Case("sigmoid-far", "torch.sigmoid(a)", {"a": [800.0, -800.0, 30.0, -30.0]}),
    Case("tanh-far", "torch.tanh(a)", {"a": [800.0, -800.0, 15.0, -15.0]}, second=False),
    Case("asin-edge", "torch.asin(a)", {"a": [1.0, -1.0]}, second=False),
    Case("round-halves", "torch.round(a)", {"a": [0.5, 1.5, 2.5, -0.5, -1.5]}),
    Case("round-decimals", "torch.round(a, decimals=2)", {"a": (3,)}),
    Case("round-decimals-method", "a.round(decimals=1)", {"a": (3,)}),
    Case("round-decimals-negative", "torch.round(a * 100, decimals=-1)", {"a": (3,)}),
    Case("round-decimals-inplace", "result = a.clone().round_(decimals=1)", {"a": (3,)}),
    Case("round-decimals-0", "torch.round(a, decimals=0)", {"a": (3,)}),
    Case("round-decimals-int", "torch.round(n, decimals=1)", {"n": ((3,), "int")}),
    Case("nan_to_num-given", "torch.nan_to_num(a, nan=1.0, posinf=2.0, neginf=-2.0)", {"a": REAL_POINTS}),
    Case("nan_to_num-nan", "a.nan_to_num(0.5)", {"a": REAL_POINTS}),
    Case("nan_to_num-inplace-given", "result = (a * 1).nan_to_num_(posinf=3.0)", {"a": REAL_POINTS}),
    Case("nan_to_num-float32-points", "torch.nan_to_num(a.float())", {"a": REAL_POINTS}, second=False),
    Case("abs-operator", "abs(a)", {"a": (2,)}),
    Case("neg-operator", "-a", {"a": (2,)}),
    Case("pos-operator", "+a", {"a": (2,)}, grad=False),
    Case("pos-operator-bool", "+m", {"m": [True]}),
    Case("neg-operator-bool", "-m", {"m": [True]}),
    Case("inplace-functions", "y = a * 1\nresult = torch.sin_(torch.exp_(torch.neg_(y)))", {"a": (2,)}),
    # complex numbers
    Case("real", "torch.real(z)", {"z": ((2,), "complex")}),
    Case("real-of-real", "torch.real(a) is a", {"a": (2,)}),
    Case("real-attribute", "z.real", {"z": ((2,), "complex")}),
    Case("imag", "torch.imag(z)", {"z": ((2,), "complex")}),
    Case("imag-attribute", "z.imag", {"z": ((2,), "complex")}),
    Case("imag-of-real", "torch.imag(a)", {"a": (2,)}),
    Case("imag-of-real-attribute", "a.imag", {"a": (2,)}),
    Case("real-is-a-view", "y = z.detach().clone()\ny.real.mul_(2)\nresult = y", {"z": ((2,), "complex")}),
    Case("imag-is-a-view", "y = z * 1\ny.imag.mul_(2)\nresult = y", {"z": ((2,), "complex")}),
    Case("real-set", "y = z * 1\ny.real = 2.0\nresult = y", {"z": ((2,), "complex")}),
    Case("imag-set", "y = z * 1\ny.imag = a\nresult = y", {"z": ((2,), "complex"), "a": (2,)}),
    Case("conj", "torch.conj(z)", {"z": ((2,), "complex")}),
    Case("conj-method", "z.conj()", {"z": ((2, 2), "complex")}),
    Case("conj-of-real", "a.conj() is a", {"a": (2,)}),
    Case("conj-resolved", "z.conj().resolve_conj()", {"z": ((2,), "complex")}, grad=False),
    Case("resolve", "(z.resolve_conj() is z, z.resolve_neg() is z, z.is_conj(), z.is_neg())", {"z": ((2,), "complex")}),
    Case("angle-real", "torch.angle(a)", {"a": [-1.0, 0.0, 2.0, float("nan")]}, second=False),
    Case("angle-method-complex", "z.angle()", {"z": ((2,), "complex")}),
    Case("view_as_real", "torch.view_as_real(z)", {"z": ((2,), "complex")}),
    Case("view_as_real-of-real", "torch.view_as_real(a)", {"a": (2,)}),
    Case("view_as_complex", "torch.view_as_complex(a)", {"a": (3, 2)}),
    Case("view_as_complex-0-d", "torch.view_as_complex(a)", {"a": (2,)}),
    Case("view_as_complex-wrong", "torch.view_as_complex(a)", {"a": (2, 3)}),
    Case("view_as_complex-int", "torch.view_as_complex(n)", {"n": ((3, 2), "int")}),
    Case("complex-of-parts", "torch.complex(a, b)", {"a": (2,), "b": (2,)}),
    Case("complex-of-parts-broadcast", "torch.complex(a, b)", {"a": (2, 1), "b": (2,)}),
    Case("complex-of-parts-float32", "torch.complex(a.float(), b.float())", {"a": (2,), "b": (2,)}),
    Case("complex-of-parts-mixed", "torch.complex(a.float(), b)", {"a": (2,), "b": (2,)}),
    Case("complex-of-parts-int", "torch.complex(n, n)", {"n": ((2,), "int")}),
    Case("polar", "torch.polar(a, b)", {"a": ((2,), "positive"), "b": (2,)}),
    Case("polar-mixed", "torch.polar(a.float(), b)", {"a": ((2,), "positive"), "b": (2,)}),
    Case("complex-holomorphic", "torch.exp(z) * torch.sin(z) / z", {"z": ((2,), "complex")}),
    Case("complex-out-int", "torch.exp(n, out=torch.empty(2, dtype=torch.int64))", {"n": ((2,), "int")}),
    Case("out-requires-grad", "torch.exp(a, out=torch.empty(2))", {"a": (2,)}),
    Case("out-resized", "o = torch.empty(0)\nresult = torch.exp(a, out=o)", {"a": (2,)}, grad=False),
    Case("out-is-returned", "o = torch.empty(2)\nresult = torch.exp(a, out=o) is o", {"a": (2,)}, grad=False),
]
