"""Every op's samples on the xla backend: one of each op in the normal run, all of them in the slow one.

Of the second orders the normal run has one for each op, since XLA takes long for the programs of all four.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from srcgrad.backends.xla.callbacks import CALLBACKS, COMPLEX_CALLBACKS
from srcgrad.backends.xla.lowering import EXPANDED, LOWERINGS, TABLES
from srcgrad.ir.opdef import REGISTRY, Op
from tests.backends.xla.agreement import NESTINGS, OF_BOTH_SIGNS, OVERFLOWS, SIGNS_OF_ZERO, ULPS, compare
from tests.ir.ops.harness import Case, cases, drawn, ops

SEED = 11

LESS_ACCURATE: dict[str, tuple[float, str]] = {
    "det": (16.0, "jax's LU and LAPACK's round otherwise, and the terms of a sum over a matrix's minors cancel"),
    "eigh": (16.0, "the LAPACK of jaxlib and SciPy's round otherwise, and differences of eigenvalues divide that"),
    "binom": (64.0, "by gammaln and digamma, which XLA approximates to a few ulp of 1"),
    "lstsq": (32.0, "by singular vectors, not by LAPACK's driver: roundings times the condition number"),
    "matrix_function": (32.0, "jax's exponential halves the matrix another number of times than SciPy's"),
    "matrix_function_derivative": (32.0, "jax's exponential halves the matrix another number of times than SciPy's"),
    "digamma": (64.0, "XLA's approximation has an absolute error of a few ulp of 1, also near the root at 1.46"),
    "gammaln": (64.0, "XLA's approximation has an absolute error of a few ulp of 1, also near the roots at 1 and 2"),
    "logaddexp": (8.0, "the larger operand and the rest cancel where the result is near 0, in NumPy too"),
    "sinc_derivative": (32.0, "the recurrence divides differences of sines by a small number several times"),
}
"""op -> how many ulps, of 1 at least, its programs may be apart, and why more than `ULPS`."""

SIGNS = SIGNS_OF_ZERO | {"cummax": OF_BOTH_SIGNS}
"""op -> why a zero of its value may have another sign."""

COUNTS: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def total() -> Iterator[None]:
    COUNTS.clear()
    yield
    print(f"\nop x check x sample: {COUNTS.total()}, of which {dict(COUNTS)}")


def require_agreement(case: Case, nestings: Sequence[str] = NESTINGS) -> None:
    """The programs of a sample agree with the NumPy backend."""
    bound = LESS_ACCURATE.get(case.op.name, (ULPS, ""))[0]
    for check, apart, zeros_differ in compare(case, float(case.op.name in LESS_ACCURATE), nestings):
        COUNTS[check] += 1
        assert apart <= bound, f"{check} of {case}: {apart} ulps"
        if check in ("value", "batched"):
            assert not zeros_differ or case.op.name in SIGNS, f"{check} of {case}: a zero of another sign"


@pytest.mark.parametrize("op", ops(), ids=lambda op: op.name)
def test_a_sample(op: Op) -> None:
    print(f"seed {SEED}")
    random = np.random.default_rng([SEED, *op.name.encode()])
    for case in drawn(op, SEED):
        require_agreement(case, [str(random.choice(NESTINGS))])


@pytest.mark.slow
@pytest.mark.parametrize("op", ops(), ids=lambda op: op.name)
def test_all_samples(op: Op) -> None:
    for case in cases(op):
        require_agreement(case)


def test_every_op_has_a_lowering_or_says_why_not() -> None:
    assert set(LOWERINGS) | set(CALLBACKS) | set(EXPANDED) == set(REGISTRY)
    assert not set(LOWERINGS) & set(CALLBACKS)
    assert not (set(LOWERINGS) | set(CALLBACKS)) & set(EXPANDED)
    assert set(COMPLEX_CALLBACKS) <= set(LOWERINGS)


def test_no_op_is_in_two_tables() -> None:
    assert sum(map(len, TABLES)) == len(LOWERINGS)


def test_every_exception_has_a_reason() -> None:
    reasons = {**CALLBACKS, **COMPLEX_CALLBACKS, **EXPANDED, **SIGNS, **OVERFLOWS}
    reasons |= {name: reason for name, (_, reason) in LESS_ACCURATE.items()}
    assert set(reasons) <= set(REGISTRY)
    assert all(len(reason.split()) >= 5 for reason in reasons.values())
