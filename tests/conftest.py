"""Options of the tests, and what several of them use."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from srcgrad import cache, compiler
from srcgrad.backends.llvm import programs as llvm_programs

settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""No test depends on how fast the machine is."""
if settings.default is settings.get_profile("default"):
    settings.load_profile("any speed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden anew from what the code gives now"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Machine code is kept for this run alone, so that nothing depends on what an earlier one has left."""
    if "SRCGRAD_CACHE_DIR" not in os.environ:
        directory = tempfile.TemporaryDirectory(prefix="srcgrad-tests-", ignore_cleanup_errors=True)
        os.environ["SRCGRAD_CACHE_DIR"] = directory.name
        config.add_cleanup(directory.cleanup)
    llvm_programs.KEPT = False  # tests have one function written in several ways, as other machines would


@pytest.fixture(scope="module")
def older_objects_left_alone() -> Iterator[None]:
    """``gc.collect`` looks at what is made from here on only: late in a run there are millions of older objects."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def programs() -> cache.Table:
    """The table of programs, empty: at its capacity one program more does not show in their number."""
    cache.PROGRAMS.clear()
    return cache.PROGRAMS


@pytest.fixture(autouse=True)
def default_backend() -> Iterator[None]:
    """Examples choose a backend for all that comes later: no test does so for the next one."""
    before = list(compiler.DEFAULT)
    yield
    compiler.DEFAULT[:] = before


@pytest.fixture
def jax_as_it_was() -> Iterator[None]:
    """The benchmarks set jax to double precision: it is set back."""
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)
