"""Special functions: gamma, error, Bessel, zeta; `srcgrad.torch.special` names them as PyTorch does.

SciPy computes them, in double precision for the dtypes that it has no loop for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from srcgrad.torch.dispatch import apply, apply_inplace
from srcgrad.torch.errors import TensorError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.define import binary, floating, method, not_a_tensor, refused, store, unary
from srcgrad.torch.tensor import Tensor

__all__ = [
    "digamma", "erf", "erfc", "erfinv", "i0", "igamma", "igammac", "lgamma", "logit", "mvlgamma", "polygamma", "xlogy",
]  # fmt: skip


def kept(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function in its first operand's dtype: SciPy gives float32 for float16."""

    def call(*operands: Any) -> Any:
        found = function(*operands)
        dtype = operands[-1].dtype
        return found if found.dtype == dtype else found.astype(dtype)

    return call


def real(name: str, node: str | None, function: Callable[..., Any], *, public: bool = True, **options: Any) -> Any:
    """A function of one real tensor."""
    return unary(name, node, kept(function), accepts="f", is_method=public, inplace=public, **options)


erf = real("erf", "ErfBackward0", special.erf)
erfc = real("erfc", "ErfcBackward0", special.erfc)
erfinv = real("erfinv", "ErfinvBackward0", special.erfinv)
lgamma = real("lgamma", "LgammaBackward0", lambda x: np.where(x == -np.inf, np.inf, special.gammaln(x)))
digamma = real("digamma", "DigammaBackward0", special.digamma)
i0 = real("i0", "I0Backward0", special.i0)

erfcx = real("erfcx", "SpecialErfcxBackward0", special.erfcx, public=False)
i0e = real("i0e", "SpecialI0EBackward0", special.i0e, public=False)
i1 = real("i1", "SpecialI1Backward0", special.i1, public=False)
i1e = real("i1e", "SpecialI1EBackward0", special.i1e, public=False)
log_ndtr = real("log_ndtr", "SpecialLogNdtrBackward0", special.log_ndtr, public=False)
ndtri = real("ndtri", "SpecialNdtriBackward0", special.ndtri, public=False)
ndtr = real("ndtr", "MulBackward1", special.ndtr, public=False)
entr = real("entr", "SpecialEntrBackward0", special.entr, public=False)
bessel_j0 = real("bessel_j0", "SpecialBesselJ0Backward0", special.j0, public=False)
bessel_j1 = real("bessel_j1", "SpecialBesselJ1Backward0", special.j1, public=False)
bessel_y0 = real("bessel_y0", "SpecialBesselY0Backward0", special.y0, public=False)
bessel_y1 = real("bessel_y1", "SpecialBesselY1Backward0", special.y1, public=False)
modified_bessel_i0 = real("modified_bessel_i0", "SpecialModifiedBesselI0Backward0", special.i0, public=False)
modified_bessel_i1 = real("modified_bessel_i1", "SpecialModifiedBesselI1Backward0", special.i1, public=False)
modified_bessel_k0 = real("modified_bessel_k0", "SpecialModifiedBesselK0Backward0", special.k0, public=False)
modified_bessel_k1 = real("modified_bessel_k1", "SpecialModifiedBesselK1Backward0", special.k1, public=False)
scaled_modified_bessel_k0 = real("scaled_modified_bessel_k0", "SpecialScaledModifiedBesselK0Backward0", special.k0e,
                                 public=False)  # fmt: skip
scaled_modified_bessel_k1 = real("scaled_modified_bessel_k1", "SpecialScaledModifiedBesselK1Backward0", special.k1e,
                                 public=False)  # fmt: skip
airy_ai = real("airy_ai", "SpecialAiryAiBackward0", lambda x: special.airy(x)[0], public=False)


def spherical_j0(x: Any) -> Any:
    """sin(x)/x, 1 at 0 and 0 at the infinities."""
    return np.where(np.isinf(x), x.dtype.type(0), np.sinc(x / math.pi))


spherical_bessel_j0 = real("spherical_bessel_j0", "SpecialSphericalBesselJ0Backward0", spherical_j0, public=False)

# --- logit --------------------------------------------------------------------------------------------


def clamped_logit(x: Any, eps: float | None) -> Any:
    """log(x/(1 - x)); with ``eps``, of x within [eps, 1 - eps], and nothing of the derivative remains outside."""
    if eps is not None:
        low, high = x.dtype.type(eps), x.dtype.type(1 - eps)
        x = np.where(x < low, low, np.where(x > high, high, x))
    found = special.logit(x)
    return found if found.dtype == x.dtype else found.astype(x.dtype)


LOGIT = Op("logit", "LogitBackward0", clamped_logit)


def logit_dtype(input: Any) -> Any:
    if not isinstance(input, Tensor):
        raise not_a_tensor("logit", "input", 1, input)
    if input._data.dtype.kind == "c":
        raise refused("logit", input._data.dtype)
    return floating(input)


@method("logit")
def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """``log(input / (1 - input))``; with ``eps``, the input is first clamped to ``[eps, 1 - eps]``."""
    return store(out, apply(LOGIT, (input,), (eps,), logit_dtype(input)), "logit")  # type: ignore[no-any-return]


@method("logit_")
def logit_(self: Tensor, eps: float | None = None) -> Tensor:
    """`logit`, written into the tensor."""
    return apply_inplace(LOGIT, self, (), (eps,), logit_dtype(self))


# --- gamma functions ----------------------------------------------------------------------------------


def polygamma_of(x: Any, n: int) -> Any:
    """(-1)**(n+1) n! zeta(n+1, x)."""
    factor = (-1) ** (n + 1) * math.factorial(n)
    found = factor * special.zeta(x.dtype.type(n + 1), x) if n else special.digamma(x)
    return found if found.dtype == x.dtype else found.astype(x.dtype)


POLYGAMMA = Op("polygamma", "PolygammaBackward0", polygamma_of)
POLYGAMMA_INPLACE = Op("polygamma_", "PolygammaBackward1", polygamma_of)


def polygamma_dtype(n: int, input: Any) -> Any:
    if not isinstance(input, Tensor):
        raise not_a_tensor("polygamma", "input", 2, input)
    if n < 0:
        raise TensorError("polygamma(n, x) does not support negative n.")
    if input._data.dtype.kind == "c":
        raise refused("polygamma", input._data.dtype)
    return floating(input)


def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of `digamma`, elementwise."""
    found = apply(POLYGAMMA, (input,), (int(n),), polygamma_dtype(n, input))
    return store(out, found, "polygamma")  # type: ignore[no-any-return]


@method("polygamma")
def polygamma_method(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of `digamma`, elementwise."""
    return polygamma(n, self)


@method("polygamma_")
def polygamma_(self: Tensor, n: int) -> Tensor:
    """`polygamma`, written into the tensor."""
    return apply_inplace(POLYGAMMA_INPLACE, self, (), (int(n),), polygamma_dtype(n, self))


def multivariate(x: Any, p: int) -> Any:
    """The sum of gammaln(x - j/2) for j < p, and p (p - 1)/4 log(pi)."""
    total = special.gammaln(x)
    for j in range(1, p):
        total = total + special.gammaln(x - j / 2)
    total = total + p * (p - 1) / 4 * math.log(math.pi)
    return total if total.dtype == x.dtype else total.astype(x.dtype)


MVLGAMMA = Op("mvlgamma", "MvlgammaBackward0", multivariate)


@method("mvlgamma")
def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension ``p``, elementwise."""
    if p < 1:
        raise TensorError("p has to be greater than or equal to 1")
    return store(out, apply(MVLGAMMA, (input,), (int(p),), floating(input)), "mvlgamma")  # type: ignore[no-any-return]


@method("mvlgamma_")
def mvlgamma_(self: Tensor, p: int) -> Tensor:
    """`mvlgamma`, written into the tensor."""
    if p < 1:
        raise TensorError("p has to be greater than or equal to 1")
    return apply_inplace(MVLGAMMA, self, (), (int(p),), floating(self))


igamma = binary("igamma", "IgammaBackward0", kept(special.gammainc), numbers="", accepts="f")
igammac = binary("igammac", "IgammacBackward0", kept(special.gammaincc), numbers="", accepts="f")

# --- of two operands ----------------------------------------------------------------------------------


def product_with_log(x: Any, y: Any) -> Any:
    """x log(y), 0 where x is 0; nan where y is nan, whatever x is."""
    found = special.xlogy(x, y)
    return found if found.dtype == x.dtype else found.astype(x.dtype)


xlogy = binary("xlogy", "XlogyBackward0", product_with_log, numbers="lr", accepts="f", casts="biu",
               left_node="XlogyBackward1", right_node="XlogyBackward2")  # fmt: skip
xlog1py = binary("xlog1py", "SpecialXlog1PyBackward0", kept(special.xlog1py), numbers="lr", accepts="f", casts="biu",
                 left_node="SpecialXlog1PyBackward1", right_node="SpecialXlog1PyBackward2", is_method=False,
                 inplace=False)  # fmt: skip
zeta = binary("zeta", "SpecialZetaBackward0", kept(special.zeta), numbers="lr", accepts="f", casts="biu",
              left_node="SpecialZetaBackward1", right_node="SpecialZetaBackward2", is_method=False,
              inplace=False)  # fmt: skip

# --- orthogonal polynomials ---------------------------------------------------------------------------


def polynomial(name: str, evaluate: Callable[[Any, Any], Any]) -> Any:
    """A polynomial of a degree that is an operand: a number or a tensor of whole numbers; 0 for negative degrees."""

    def call(x: Any, n: Any) -> Any:
        degree = np.trunc(n)
        found = evaluate(np.maximum(degree, n.dtype.type(0)), x)
        return np.where(degree < 0, x.dtype.type(0), found.astype(x.dtype))

    node = "Special" + "".join(part.capitalize() for part in name.split("_")) + "Backward0"
    return binary(name, node, call, numbers="lr", accepts="f", casts="biu", is_method=False, inplace=False)


def whole_degree(evaluate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """SciPy takes the degree of these as an integer."""
    return lambda n, x: evaluate(n.astype(np.int64), x)


chebyshev_polynomial_t = polynomial("chebyshev_polynomial_t", special.eval_chebyt)
chebyshev_polynomial_u = polynomial("chebyshev_polynomial_u", special.eval_chebyu)
shifted_chebyshev_polynomial_t = polynomial("shifted_chebyshev_polynomial_t", special.eval_sh_chebyt)
shifted_chebyshev_polynomial_u = polynomial("shifted_chebyshev_polynomial_u", special.eval_sh_chebyu)
hermite_polynomial_h = polynomial("hermite_polynomial_h", whole_degree(special.eval_hermite))
hermite_polynomial_he = polynomial("hermite_polynomial_he", whole_degree(special.eval_hermitenorm))
laguerre_polynomial_l = polynomial("laguerre_polynomial_l", special.eval_laguerre)
legendre_polynomial_p = polynomial("legendre_polynomial_p", special.eval_legendre)


def third_kind(n: Any, x: Any) -> Any:
    """V_n = U_n - U_(n-1)."""
    return special.eval_chebyu(n, x) - np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0)


def fourth_kind(n: Any, x: Any) -> Any:
    """W_n = U_n + U_(n-1)."""
    return special.eval_chebyu(n, x) + np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0)


chebyshev_polynomial_v = polynomial("chebyshev_polynomial_v", third_kind)
chebyshev_polynomial_w = polynomial("chebyshev_polynomial_w", fourth_kind)
shifted_chebyshev_polynomial_v = polynomial("shifted_chebyshev_polynomial_v", lambda n, x: third_kind(n, 2 * x - 1))
shifted_chebyshev_polynomial_w = polynomial("shifted_chebyshev_polynomial_w", lambda n, x: fourth_kind(n, 2 * x - 1))

INPLACE = ("erf", "erfc", "i0", "logit", "xlogy")
"""In-place methods that PyTorch has as functions, too: ``torch.erf_(x)``."""

for _name in INPLACE:
    globals()[f"{_name}_"] = getattr(Tensor, f"{_name}_")
__all__ += [f"{_name}_" for _name in INPLACE]
