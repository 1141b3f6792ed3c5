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
from tests import sampling
from tests.sampling import pytest_collection_modifyitems, pytest_terminal_summary

__all__ = ["pytest_collection_modifyitems", "pytest_terminal_summary"]

settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""No test depends on how fast the machine is."""
if settings.default is settings.get_profile("default"):
    settings.load_profile("any speed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden anew from what the code gives now"
    )
    sampling.pytest_addoption(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Machine code is kept for this run alone, so that nothing depends on what an earlier one has left.

    So is bytecode where none is to be written beside the sources: the processes that tests start would compile every
    module again, each of them.
    """
    if "SRCGRAD_CACHE_DIR" not in os.environ:
        os.environ["SRCGRAD_CACHE_DIR"] = of_this_run(config)
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ["PYTHONPYCACHEPREFIX"] = of_this_run(config)
    if getattr(config.option, "numprocesses", None):  # threads of BLAS wait busily, on the cores of other workers
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    llvm_programs.KEPT = False  # tests have one function written in several ways, as other machines would


def of_this_run(config: pytest.Config) -> str:
    """A directory that goes with this run; its workers and the processes that tests start use it too."""
    directory = tempfile.TemporaryDirectory(prefix="srcgrad-tests-", ignore_cleanup_errors=True)
    config.add_cleanup(directory.cleanup)
    return directory.name


def pytest_collection_finish() -> None:
    """``gc.collect`` leaves alone what lives as long as the run: modules, and tens of thousands of tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def older_objects_left_alone() -> None:
    """``gc.collect`` looks at what is made from here on only: late in a run there are millions of older objects."""
    gc.collect()
    gc.freeze()  # for good: to undo it would be to undo what was done with the tests


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
