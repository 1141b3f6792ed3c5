"""Bits and exponents of numbers, special functions: those that jax has as accurately as NumPy and SciPy have them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax

Array = jax.Array


def shift(left: bool) -> Callable[[Array, Array], Array]:
    """A shift; one by the width or more, or by a negative number, leaves nothing but the sign."""

    def line(x: Array, count: Array) -> Array:
        width = 8 * x.dtype.itemsize
        inside = (count >= 0) & (count < width)
        by = jnp.where(inside, count, 0).astype(x.dtype)
        if left:
            return jnp.where(inside, lax.shift_left(x, by), jnp.zeros_like(x))
        signed = jnp.issubdtype(x.dtype, jnp.signedinteger)
        moved = lax.shift_right_arithmetic(x, by) if signed else lax.shift_right_logical(x, by)
        return jnp.where(inside, moved, jnp.where(x < 0, -jnp.ones_like(x), jnp.zeros_like(x)))

    return line


def logaddexp2(x: Array, y: Array) -> Array:
    """The larger operand and log2(1 + 2**-d), d the distance; equal infinities as they are."""
    larger = jnp.maximum(x, y)
    distance = jnp.abs(x - y)
    value = larger + jnp.log1p(jnp.exp2(-distance)) / math.log(2.0)
    return jnp.where(x == y, x + 1, jnp.where(jnp.isnan(distance), x + y, value)).astype(x.dtype)


def gaussian(x: Array, n: int, a: float) -> Array:
    """The n-th derivative of exp(-a x**2); the square is split, as exp magnifies its rounding error."""
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    far = jnp.abs(wide) > 100
    at = jnp.where(far, jnp.zeros_like(wide), wide)
    head = at.astype(jnp.float32).astype(at.dtype)
    polynomial, lower = jnp.ones_like(at), jnp.zeros_like(at)
    for k in range(n):
        raised = at * polynomial + k * lower if k else at
        polynomial, lower = -2 * a * raised, polynomial
    value = polynomial * (jnp.exp(-a * head * head) * jnp.exp(-a * (at - head) * (at + head)))
    return jnp.where(far, jnp.zeros_like(at), value).astype(x.dtype)


def ndtr(x: Array) -> Array:
    """erfc(-x/sqrt(2))/2."""
    return (0.5 * lax.erfc(-x * math.sqrt(0.5))).astype(x.dtype)


def logit(x: Array) -> Array:
    """log(x/(1 - x)); near 1/2, where that is near 0, by log1p."""
    near = jnp.abs(x - 0.5) < 0.2
    ratio = jnp.where(near, (2 * x - 1) / (1 - x), jnp.zeros_like(x))
    return jnp.where(near, jnp.log1p(ratio), jnp.log(x / (1 - x))).astype(x.dtype)


TABLE: Final[dict[str, Callable[..., Any]]] = {
    "bitwise_and": lax.bitwise_and,
    "bitwise_count": lambda x: lax.population_count(jnp.abs(x)).astype(jnp.uint8),
    "bitwise_not": lax.bitwise_not,
    "bitwise_or": lax.bitwise_or,
    "bitwise_xor": lax.bitwise_xor,
    "gaussian": gaussian,
    "left_shift": shift(True),
    "logaddexp2": logaddexp2,
    "logit": logit,
    "ndtr": ndtr,
    "nextafter": lax.nextafter,
    "right_shift": shift(False),
    "sign_bit": jnp.signbit,
}

NO_SUCH: Final = """
    agm elliprc elliprd elliprf elliprg elliprj jacobi_amplitude jacobi_cn jacobi_dn jacobi_sn struve modstruve
    parabolic_d parabolic_slope_of_d parabolic_slope_of_v parabolic_v voigt_profile wofz wrightomega betainccinv
    integral_i0 integral_j0 integral_k0 integral_y0 integral_ai integral_bi integral_ai_below integral_bi_below
    integral_struve integral_modstruve bei beip ber berp kei keip ker kerp hankel1 hankel1e hankel2 hankel2e
    mathieu_a mathieu_b mathieu_function parabolic_w parabolic_slope_of_w besselpoly log_wright_bessel lpmv
    wright_bessel chndtr stdtrit airy_ai airy_ai_prime airy_bi airy_bi_prime airye_ai airye_ai_prime airye_bi
    airye_bi_prime betaincinv binom boxcox boxcox1p cosine_below cosine_integral cosine_quantile cosm1 dawsn ellipe
    ellipeinc ellipk ellipkinc ellipkm1 erfcinv erfcx erfi eval_chebyt eval_chebyu eval_gegenbauer eval_genlaguerre
    eval_hermite eval_hermitenorm eval_jacobi eval_laguerre eval_legendre expn exprel frexp_exponent fresnel_cosine
    fresnel_sine gammainccinv gammaincinv hyp0f1 hyperbolic_cosine_integral hyperbolic_sine_integral hyperu
    inv_boxcox inv_boxcox1p i2 iv ive j0 j1 jv k0 k0e k1 k1e kolmogi kolmogorov kolmogorov_below kolmogorov_quantile
    kolmogorov_slope kv kve lambertw ndtri_exp owens_t powm1 sine_integral spacing spherical_in spherical_jn
    spherical_kn spherical_yn stdtr y0 y1 yv
"""
INEXACT: Final = """
    beta betainc betaincc betaln erfinv exp1 expi gamma gammainc gammaincc gammasgn gcd hyp1f1 hyp2f1 i0 i0e i1 i1e
    kl_div lcm ldexp log_ndtr loggamma ndtri poch rel_entr rgamma spence zeta
"""
DERIVATIVES: Final = """
    beta_density betainc_derivative boxcox_derivative dawsn_derivative digamma_difference elliptic_derivative
    elliptic_incomplete_derivative erfcx_derivative exprel_derivative fresnel_phase gamma_density gammainc_derivative
    hyperu_integral noncentral_density student_slope
    voigt_derivative wofz_derivative carlson_integral
    bessel_order_derivative bessel_slope log1p_ratio log_ratio rgamma_derivative scaled_bessel_derivative
    zeta_derivative
"""

CALLED_BACK: Final[dict[str, str]] = {
    **dict.fromkeys(NO_SUCH.split(), "jax has no such function"),
    **dict.fromkeys(INEXACT.split(), "jax has it of fewer arguments or to fewer digits than SciPy"),
    **dict.fromkeys(DERIVATIVES.split(), "jax has neither the function nor its derivatives to any order"),
}
"""op -> why it has no lowering and is called back."""
