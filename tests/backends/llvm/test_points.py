"""The hard points, and random NumPy programs, with every program on the llvm backend."""

from __future__ import annotations

import os
import random
import warnings

import pytest
from hypothesis import HealthCheck, given, settings

import srcgrad as sg
from srcgrad.errors import SrcgradError
from tests.fuzz.checks import check_backends, documented
from tests.fuzz.programs import Program, programs
from tests.hard_points.points import Point
from tests.hard_points.table import POINTS
from tests.hard_points.test_hard_points import test_numpy as check_point

SAMPLE = random.Random(3).sample(list(POINTS), 40)
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("point", SAMPLE, ids=[point.id for point in SAMPLE])
def test_point(point: Point) -> None:
    with sg.use_backend("llvm"):
        check_point(point)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("point", POINTS, ids=[point.id for point in POINTS])
def test_every_point(point: Point) -> None:
    with sg.use_backend("llvm"):
        check_point(point)


def check_program(program: Program) -> None:
    """What can be made of a program is the same on both backends."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sg.RetraceWarning)
            check_backends(program, "llvm")
    except SrcgradError as error:
        assert documented(error), f"{error!r}\n{program!r}"


@settings(max_examples=25, derandomize=True, database=None, deadline=None, suppress_health_check=QUIET)
@given(programs())
def test_program(program: Program) -> None:
    check_program(program)


@pytest.mark.slow
@settings(
    max_examples=int(os.environ.get("FUZZ_PROGRAMS", "1500")), database=None, deadline=None, print_blob=True,
    suppress_health_check=QUIET,
)  # fmt: skip
@given(programs())
def test_many_programs(program: Program) -> None:
    check_program(program)
