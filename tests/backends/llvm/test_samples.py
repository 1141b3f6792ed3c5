"""Every op's samples on the llvm backend: one of each op in the normal run, all of them in the slow one.

A program per check: the value, forward and reverse derivatives, second orders (the normal run has one of the four for
each op), and a batch, against the NumPy backend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.ir.opdef import Elementwise, Op
from srcgrad.ir.passes.expand import expand
from tests.ir.ops.harness import SITES, Case, cases, drawn, ops, run

pytest.importorskip("jax")  # the module that makes the programs imports it

from tests.backends.xla.agreement import NESTINGS, SIGNS_OF_ZERO, programs, ulps_apart, zeros_differ

SEED = 5
ULPS = 16.0
"""How far results may be apart, in units of the last place: of each element of a value, or else of the largest."""

LESS_ACCURATE: dict[str, tuple[float, str]] = {
    "matrix_function": (64.0, "powers are exponentials of logarithms"),
    "det": (256.0, "its derivatives are the cofactors"),
    "det_derivative": (256.0, "cofactors of a matrix of rank n - 2 are nothing but its rounding, times larger numbers"),
    "gammaln": (64.0, "SciPy's has an error of some units near its roots, and is inf at the smallest numbers"),
    "zeta_derivative": (1024.0, "at negative exponents what is left of the sum is a hundredth of it, or less"),
}
"""op -> how many ulps its programs may be apart, and why more than `ULPS`."""
COUNTS: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def total() -> Iterator[None]:
    COUNTS.clear()
    yield
    print(f"\nprogram x sample: {COUNTS.total()}, of which {dict(COUNTS)}")


def require_agreement(case: Case, nestings: Sequence[str] = NESTINGS) -> None:
    """The programs of a sample agree with the NumPy backend."""
    bound = LESS_ACCURATE.get(case.op.name, (ULPS, ""))[0]
    for program in programs(case, nestings):
        COUNTS[program.check] += 1
        arguments = [np.asarray(argument)[()] for argument in program.arguments]
        found = [np.asarray(array) for array in BACKEND.compile(expand(program.function), SITES).run(*arguments)]
        expected = run(program.function, program.arguments)
        if case.op.name == "gammaln":  # 744.4 at the smallest number
            expected = [np.where(np.isinf(a) & (b > 700), b, a) for a, b in zip(expected, found, strict=True)]
        direct = program.check in ("value", "batched")
        scaled = not (direct and isinstance(case.op, Elementwise))
        for actual, wanted in zip(found, expected, strict=True):
            apart = ulps_apart(actual, wanted, scaled)
            assert apart <= bound, f"{program.check} of {case}: {apart} ulps"
            if direct:
                differ = zeros_differ(actual, wanted)
                assert not differ or case.op.name in SIGNS_OF_ZERO, f"{program.check} of {case}: a zero of another sign"


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
