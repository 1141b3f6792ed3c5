"""Jacobi's elliptic functions and Carlson's symmetric integrals.

Source: NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, chapters 19 and 22.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.opdef import REGISTRY, Operand, Sample, Term
from srcgrad.ir.ops.special import Special, SpecialFamily


class JacobiFunction(Special, abstract=True):
    """One of the results of ellipj(u, m), a function of the amplitude ph with F(ph, m) = u."""

    arity = 2
    kinds = "f"
    intervals = ((-2.0, 2.0), (0.1, 0.9))
    points = (0.0, 1.0, -1.0, float("nan"))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        outer = self.slope(*operands)
        dn = REGISTRY["jacobi_dn"](*operands)
        if index == 0:
            return outer * dn
        amplitude = REGISTRY["jacobi_amplitude"](*operands)
        return -(outer * dn * REGISTRY["elliptic_incomplete_derivative"](amplitude, operands[1], n=1, kind="k"))

    def slope(self, u: Term, m: Term) -> Operand:
        """The derivative in the amplitude."""
        raise NotImplementedError


class JacobiAmplitude(JacobiFunction):
    """The amplitude ph of Jacobi's elliptic functions; its derivative in u is dn, and in m -dn dF(ph, m)/dm."""

    meaning = "scipy.special.ellipj({0}, {1})[3]"

    def slope(self, u: Term, m: Term) -> Operand:
        return u.like(1.0)


class JacobiSn(JacobiFunction):
    """Jacobi's elliptic function sn, the sine of the amplitude."""

    meaning = "scipy.special.ellipj({0}, {1})[0]"

    def slope(self, u: Term, m: Term) -> Operand:
        return REGISTRY["jacobi_cn"](u, m)


class JacobiCn(JacobiFunction):
    """Jacobi's elliptic function cn, the cosine of the amplitude."""

    meaning = "scipy.special.ellipj({0}, {1})[1]"

    def slope(self, u: Term, m: Term) -> Operand:
        return -REGISTRY["jacobi_sn"](u, m)


class JacobiDn(JacobiFunction):
    """Jacobi's elliptic function dn, the root of 1 - m sn**2; its derivative in u is -m sn cn."""

    meaning = "scipy.special.ellipj({0}, {1})[2]"

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """In m, by the chain rule: -(sn**2/dn)/2 + m sn cn dF(ph, m)/dm."""
        m = operands[1]
        sn, cn = REGISTRY["jacobi_sn"](*operands), REGISTRY["jacobi_cn"](*operands)
        if index == 0:
            return -(m * sn * cn)
        amplitude = REGISTRY["jacobi_amplitude"](*operands)
        inner = REGISTRY["elliptic_incomplete_derivative"](amplitude, m, n=1, kind="k")
        return m * sn * cn * inner - 0.5 * (sn * sn / result)


# --- Carlson's symmetric integrals ------------------------------------------------------------------


class CarlsonIntegral(SpecialFamily):
    """The integral of t**n (t + x)**-a (t + y)**-b (t + z)**-c (t + p)**-d over t > 0, the attribute ``powers`` a to d.

    Where it diverges, as an operand is 0, it is inf. Its derivatives are such integrals with a power raised by 1.
    """

    arity = 4
    kinds = "f"
    intervals = ((0.3, 2.0),) * 4
    points = (0.0, 1.0, float("nan"))
    meaning = "carlson_integral({0}, {1}, {2}, {3}, {n}, {powers})"
    helpers: ClassVar[tuple[str, ...]] = ("carlson_integral",)

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        return integral(attrs["n"], raised(attrs["powers"], index), *operands, factor=-attrs["powers"][index])

    def samples(self) -> Iterator[Sample]:
        families = ((0, (0.5, 0.5, 0.5, 0.0)), (1, (1.5, 0.5, 0.5, 0.0)), (0, (0.5, 0.5, 1.5, 1.0)))
        for k, sample in enumerate(super().samples()):
            n, powers = families[k % 3]
            yield replace(sample, attrs={"n": n, "powers": powers})


Powers = tuple[float, float, float, float]
Intervals = tuple[tuple[float, float], ...]
HALVES: Powers = (0.5, 0.5, 0.5, 0.0)


def raised(powers: Powers, index: int) -> Powers:
    a, b, c, d = (power + (k == index) for k, power in enumerate(powers))
    return a, b, c, d


def integral(n: int, powers: Powers, *operands: Term, factor: float) -> Operand:
    """A factor times an integral of Carlson's; 0 where the factor is, as in an operand that it does not have."""
    return factor * REGISTRY["carlson_integral"](*operands, n=n, powers=powers) if factor else 0.0


class Carlson(Special, abstract=True):
    """A symmetric integral: ``factor`` times `carlson_integral` of ``powers`` in its operands, without p or with it."""

    arity = 3
    kinds = "f"
    intervals: ClassVar[Intervals] = ((0.3, 2.0),) * 3
    points: ClassVar[tuple[float, ...]] = (0.0, 1.0, float("inf"), float("nan"))
    factor: ClassVar[float] = 0.5
    powers: ClassVar[Powers] = HALVES

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        given = (*operands, operands[0].like(1.0))[:4]
        return integral(0, raised(self.powers, index), *given, factor=-self.factor * self.powers[index])


class Elliprf(Carlson):
    """Carlson's integral of the first kind."""

    meaning = "scipy.special.elliprf"


class Elliprd(Carlson):
    """Carlson's integral of the second kind, symmetric in x and y only."""

    meaning = "scipy.special.elliprd"
    factor = 1.5
    powers = (0.5, 0.5, 1.5, 0.0)


class Elliprj(Carlson):
    """Carlson's integral of the third kind; of a negative p, its principal value, without a derivative."""

    meaning = "scipy.special.elliprj"
    arity = 4
    intervals = ((0.3, 2.0),) * 4
    points = (0.0, 1.0, float("nan"))
    factor = 1.5
    powers = (0.5, 0.5, 0.5, 1.0)


class Elliprg(Carlson):
    """Carlson's symmetric integral of the second kind; its derivative in x is R_{-1/2}(3/2, 1/2, 1/2; x, y, z)/6."""

    meaning = "scipy.special.elliprg"

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        return integral(1, raised(HALVES, index), *operands, operands[0].like(1.0), factor=0.125)


SMALL_SHARE = 1e-18
"""Below it neither a number beside 1 nor its square in float32 is to be seen."""


class Agm(Special):
    """The arithmetic-geometric mean, pi/2 over elliprf(0, a**2, b**2); 0, with an infinite slope, where a or b is."""

    meaning = "scipy.special.agm"
    arity = 2
    kinds = "f"
    intervals = ((0.3, 2.0), (0.3, 2.0))
    points = (0.0, 1.0, -1.0, float("nan"))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """Of the operands over their sum, on which it does not depend, as their squares may overflow.

        Where a share s is so small that its square may underflow, the shares' mean m is pi/(2 log(4/s)), and so the
        slope in it is 2 m**2/(pi s), and that in the other one is what Euler's rule for homogeneous functions leaves.
        """
        total = operands[0] + operands[1]
        shares = [operand / total for operand in operands]
        squares = [share * share for share in shares]
        one, mean = total.like(1.0), result / total
        powers = raised((0.0, 0.5, 0.5, 0.5), index + 1)
        inner = integral(0, powers, one, *squares, total.like(0.0), factor=1.0 / np.pi)
        select, part = REGISTRY["select"], (2.0 / np.pi) * mean * mean
        slope = mean * mean * shares[index] * inner
        slope = select(shares[1 - index] < SMALL_SHARE, (mean - part) / shares[index], slope)
        slope = select(shares[index] < SMALL_SHARE, part / shares[index], slope)
        slope = select(result == 0.0, 0.0, slope)
        return select((operands[index] == 0.0) & (result == 0.0), float("inf"), slope)


class Elliprc(Special):
    """Carlson's degenerate integral, elliprf(x, y, y); of a negative y, its principal value."""

    meaning = "scipy.special.elliprc"
    arity = 2
    kinds = "f"
    intervals = ((0.3, 2.0), (0.3, 2.0))
    points = (0.0, 1.0, -1.0, float("inf"), float("nan"))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """For y < 0 that of the principal value, sqrt(x/(x - y)) elliprc(x - y, -y) (DLMF 19.2.20)."""
        x, y = operands
        select, negative = REGISTRY["select"], y < 0.0
        u, v, one = select(negative, x - y, x), select(negative, -y, y), x.like(1.0)

        def slope(powers: Powers, factor: float) -> Operand:
            return integral(0, powers, u, one, one, v, factor=factor)

        in_u, in_v = slope((1.5, 0.0, 0.0, 1.0), -0.25), slope((0.5, 0.0, 0.0, 2.0), -0.5)
        root = REGISTRY["sqrt"](x / u)
        if index == 0:
            return select(negative, root * in_u - result * (0.5 * y / (x * u)), in_u)
        return select(negative, 0.5 * (result / u) - root * (in_u + in_v), in_v)
