"""Special functions: gamma, error, Bessel, zeta; the namespace ``torch.special``."""

from __future__ import annotations

from typing import Any

from tests.torch.facts import Case
from tests.torch.tables.elementary import forms

PROBABILITIES = [0.2, 0.7]

FUNCTIONS: dict[str, Any] = {
    "logit": PROBABILITIES, "erf": "normal", "erfc": "normal", "erfinv": "unit", "lgamma": "positive",
    "digamma": "positive", "i0": "normal",
}  # fmt: skip

CASES: list[Case] = [case for name, domain in FUNCTIONS.items() for case in forms(name, domain)]

OF_ONE: dict[str, Any] = {
    "bessel_j0": ((2,), "positive"), "bessel_j1": ((2,), "positive"), "bessel_y0": ((2,), "positive"),
    "bessel_y1": ((2,), "positive"), "digamma": ((2,), "positive"), "entr": ((2,), "positive"), "erf": (2,),
    "erfc": (2,), "erfcx": (2,), "erfinv": ((2,), "unit"), "exp2": (2,), "expit": (2,), "expm1": (2,),
    "gammaln": ((2,), "positive"), "i0": (2,), "i0e": (2,), "i1": (2,), "i1e": (2,), "log1p": ((2,), "positive"),
    "log_ndtr": (2,), "logit": PROBABILITIES, "modified_bessel_i0": (2,), "modified_bessel_i1": (2,),
    "modified_bessel_k0": ((2,), "positive"), "modified_bessel_k1": ((2,), "positive"), "ndtr": (2,),
    "ndtri": PROBABILITIES, "psi": ((2,), "positive"), "round": (2,), "sinc": (2,), "airy_ai": (2,),
    "scaled_modified_bessel_k0": ((2,), "positive"), "scaled_modified_bessel_k1": ((2,), "positive"),
    "spherical_bessel_j0": ((2,), "positive"),
}  # fmt: skip
WITHOUT_A_DERIVATIVE = (
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0", "modified_bessel_i1",
    "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
    "spherical_bessel_j0",
)  # fmt: skip
"""In PyTorch; here they have one."""

for _name, _spec in OF_ONE.items():
    _differentiable = _name not in WITHOUT_A_DERIVATIVE
    CASES += [
        Case(f"special-{_name}", f"torch.special.{_name}(a)", {"a": _spec}, grad=_differentiable, rtol=1e-7),
        Case(f"special-{_name}-float32", f"torch.special.{_name}(a.float())", {"a": _spec}, grad=False),
        Case(f"special-{_name}-int", f"torch.special.{_name}(n)", {"n": [1, 2, 3]}, grad=False),
        Case(f"special-{_name}-bool", f"torch.special.{_name}(m)", {"m": [True, False]}, grad=False),
        Case(f"special-{_name}-empty", f"torch.special.{_name}(a)", {"a": (0,)}, grad=False),
        Case(
            f"special-{_name}-out",
            f"o = torch.empty(2, dtype=torch.float64)\nresult = torch.special.{_name}(a, out=o)",
            {"a": _spec},
            grad=False,
        ),
    ]
CASES += [
    Case("erf-points-grad", "torch.erf(a)", {"a": [0.0, float("inf"), 30.0]}, second=False),
    Case("erfcx-far", "torch.special.erfcx(a)", {"a": [50.0, -3.0, 1e10]}, second=False, rtol=1e-8),
    Case("log_ndtr-far", "torch.special.log_ndtr(a)", {"a": [-50.0, 10.0]}, second=False, rtol=1e-8),
    Case("entr-points", "torch.special.entr(a)", {"a": [0.0, -1.0, 1.0, float("inf")]}, grad=False),
    Case("i1-zero", "torch.special.i1(a)", {"a": [0.0, 1.0]}, second=False),
    Case("i1e-zero", "torch.special.i1e(a)", {"a": [0.0, 1.0]}, second=False),
    Case("lgamma-negative", "torch.lgamma(a)", {"a": [-0.5, -1.5, 0.0, -1.0]}, grad=False),
    Case("digamma-poles", "torch.digamma(a)", {"a": [0.0, -0.5, -1.0, 1.0]}, grad=False),
    Case("logit-eps", "torch.logit(a, eps=0.25)", {"a": [0.1, 0.25, 0.5, 0.9]}),
    Case("logit-eps-method", "a.logit(1e-6)", {"a": [0.0, 0.5, 1.0]}, second=False),
    Case("logit-eps-inplace", "result = a.clone().logit_(0.2)", {"a": [0.1, 0.5, 0.9]}),
    Case("logit-outside", "torch.logit(a)", {"a": [-0.5, 0.5, 1.5]}, grad=False),
    Case("polygamma", "torch.polygamma(1, a)", {"a": ((2,), "positive")}, rtol=1e-7),
    Case("polygamma-0", "torch.polygamma(0, a)", {"a": ((2,), "positive")}, rtol=1e-7),
    Case("polygamma-2", "torch.special.polygamma(2, a)", {"a": ((2,), "positive")}, rtol=1e-7),
    Case("polygamma-method", "a.polygamma(1)", {"a": ((2,), "positive")}, rtol=1e-7),
    Case("polygamma-inplace", "result = a.clone().polygamma_(1)", {"a": ((2,), "positive")}, rtol=1e-7),
    Case("polygamma-int", "torch.polygamma(1, n)", {"n": [1, 2]}),
    Case("polygamma-negative", "torch.polygamma(-1, a)", {"a": (2,)}),
    Case("mvlgamma", "torch.mvlgamma(a + 2, 2)", {"a": ((2,), "positive")}),
    Case("mvlgamma-method", "(a + 2).mvlgamma(p=3)", {"a": ((2,), "positive")}),
    Case("multigammaln", "torch.special.multigammaln(a + 2, 2)", {"a": ((2,), "positive")}),
    Case("mvlgamma-outside", "torch.mvlgamma(a, 0)", {"a": ((2,), "positive")}),
    Case("xlogy", "torch.xlogy(a, b)", {"a": (2, 2), "b": ((2,), "positive")}),
    Case(
        "xlogy-zero", "torch.xlogy(a, b)", {"a": [0.0, 0.0, 1.0, 0.0], "b": [0.0, 2.0, 2.0, float("nan")]}, grad=False
    ),
    Case("xlogy-number", "torch.xlogy(a, 2.0)", {"a": (2,)}),
    Case("xlogy-number-left", "torch.xlogy(2, b)", {"b": ((2,), "positive")}),
    Case("xlogy-method", "a.xlogy(b)", {"a": (2,), "b": ((2,), "positive")}),
    Case("xlogy-inplace", "result = a.clone().xlogy_(b)", {"a": (2,), "b": ((2,), "positive")}),
    Case("xlogy-int", "torch.xlogy(n, n)", {"n": [1, 2]}),
    Case("special-xlogy", "torch.special.xlogy(a, b)", {"a": (2,), "b": ((2,), "positive")}),
    Case("xlog1py", "torch.special.xlog1py(a, b)", {"a": (2, 2), "b": ((2,), "positive")}),
    Case("xlog1py-number", "torch.special.xlog1py(a, 2)", {"a": (2,)}),
    Case("xlog1py-number-left", "torch.special.xlog1py(2, b)", {"b": ((2,), "positive")}),
    Case("zeta", "torch.special.zeta(a + 1.5, b)", {"a": ((2,), "positive"), "b": ((2,), "positive")}, grad=False),
    Case("zeta-number", "torch.special.zeta(2, b)", {"b": ((2,), "positive")}, rtol=1e-7),
    Case("zeta-number-right", "torch.special.zeta(a + 1.5, 1)", {"a": ((2,), "positive")}, grad=False),
    Case("igamma", "torch.igamma(a.detach(), b)", {"a": ((2,), "positive"), "b": ((2,), "positive")}, rtol=1e-7),
    Case("igammac", "torch.igammac(a.detach(), b)", {"a": ((2,), "positive"), "b": ((2,), "positive")}, rtol=1e-7),
    Case("igamma-method", "a.igamma(b)", {"a": ((2,), "positive"), "b": ((2,), "positive")}, grad=False, rtol=1e-7),
    Case(
        "gammainc",
        "torch.special.gammainc(a.detach(), b)",
        {"a": ((2,), "positive"), "b": ((2,), "positive")},
        rtol=1e-7,
    ),
    Case(
        "gammaincc",
        "torch.special.gammaincc(a.detach(), b)",
        {"a": ((2,), "positive"), "b": ((2,), "positive")},
        rtol=1e-7,
    ),
    Case("igamma-int", "torch.igamma(n, n)", {"n": [1, 2]}),
    Case("special-round-decimals", "torch.special.round(a, decimals=1)", {"a": (3,)}),
    *(
        Case(f"special-{name}", f"torch.special.{name}(a, n)", {"a": (3,), "n": [0, 2, 5]}, grad=False)
        for name in (
            "chebyshev_polynomial_t",
            "chebyshev_polynomial_u",
            "hermite_polynomial_h",
            "hermite_polynomial_he",
            "laguerre_polynomial_l",
            "legendre_polynomial_p",
            "chebyshev_polynomial_v",
            "chebyshev_polynomial_w",
            "shifted_chebyshev_polynomial_t",
            "shifted_chebyshev_polynomial_u",
        )
    ),
    *(
        Case(f"special-{name}-number", f"torch.special.{name}(a, 3)", {"a": (3,)}, grad=False)
        for name in ("chebyshev_polynomial_t", "hermite_polynomial_h", "legendre_polynomial_p")
    ),
]
