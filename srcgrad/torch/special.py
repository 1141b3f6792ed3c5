"""``torch.special``: special functions by PyTorch's names; most of those that it shares with `torch` are the same."""

from __future__ import annotations

from srcgrad.torch.ops.elementary import exp2, expm1, log1p, sinc
from srcgrad.torch.ops.elementary import round as rounded
from srcgrad.torch.ops.elementary import sigmoid as expit
from srcgrad.torch.ops.reductions import log_softmax, logsumexp, softmax
from srcgrad.torch.ops.special import (
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    digamma,
    entr,
    erf,
    erfc,
    erfcx,
    erfinv,
    hermite_polynomial_h,
    hermite_polynomial_he,
    i0,
    i0e,
    i1,
    i1e,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    log_ndtr,
    logit,
    modified_bessel_i0,
    modified_bessel_i1,
    modified_bessel_k0,
    modified_bessel_k1,
    ndtr,
    ndtri,
    polygamma,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
    spherical_bessel_j0,
    xlog1py,
    xlogy,
    zeta,
)
from srcgrad.torch.ops.special import igamma as gammainc
from srcgrad.torch.ops.special import igammac as gammaincc
from srcgrad.torch.ops.special import lgamma as gammaln
from srcgrad.torch.ops.special import mvlgamma as multigammaln
from srcgrad.torch.tensor import Tensor

psi = digamma

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t", "chebyshev_polynomial_u",
    "chebyshev_polynomial_v", "chebyshev_polynomial_w", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2",
    "expit", "expm1", "gammainc", "gammaincc", "gammaln", "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e",
    "i1", "i1e", "laguerre_polynomial_l", "legendre_polynomial_p", "log1p", "log_ndtr", "log_softmax", "logit",
    "logsumexp", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
    "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round", "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "sinc", "softmax", "spherical_bessel_j0",
    "xlog1py", "xlogy", "zeta",
]  # fmt: skip


def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """`torch.round`, to whole numbers unless ``decimals`` is given; of floating-point numbers."""
    return rounded(input, decimals=decimals, out=out)
