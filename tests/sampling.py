"""A run of all files takes a sample of the cases of large tables.

The sample is the same at each run of one seed, which is printed. A run of files that are named takes every case, and so
does ``--every``; ``--seed`` takes another sample. What is left out is counted by pytest as deselected.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import pytest

WHOLE: Final = 2
"""A test of so many cases, or fewer, is run whole."""
SHARE: Final = 0.1
"""Of the cases of others, this share is run at least."""


class Case(NamedTuple):
    """One case of a test: ``values`` are its arguments, each as its name and its number in the table."""

    name: str
    values: frozenset[tuple[str, int]]

    @property
    def test(self) -> str:
        return self.name.partition("[")[0]


def sample(cases: Iterable[Case], seed: int) -> set[str]:
    """The names of the cases to run: of each large test a share, in which each value of each argument occurs.

    Arguments with a value for every case, or nearly so, are what the test is a table of: these are sampled.
    """
    tests: defaultdict[str, list[Case]] = defaultdict(list)
    for case in cases:
        tests[case.test].append(case)
    return {name for of_one in tests.values() for name in _of_test(of_one, seed)}


def _of_test(cases: Sequence[Case], seed: int) -> list[str]:
    if len(cases) <= WHOLE:
        return [case.name for case in cases]
    count = max(WHOLE, round(SHARE * len(cases)))
    number: defaultdict[str, set[int]] = defaultdict(set)
    for case in cases:
        for argument, index in case.values:
            number[argument].add(index)
    wanted = {argument for argument, found in number.items() if 2 * len(found) <= len(cases)}
    ordered = sorted(cases, key=lambda case: hashlib.sha256(f"{seed} {case.name}".encode()).digest())
    met: set[tuple[str, int]] = set()
    first, rest = [], []
    for case in ordered:
        new = {value for value in case.values if value[0] in wanted} - met
        (first if new else rest).append(case.name)
        met |= new
    return first + rest[: max(0, count - len(first))]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--every", action="store_true", help="run every case; without it, a run that names no file takes a sample"
    )
    parser.addoption("--seed", type=int, default=0, help="the sample of cases to take")


def takes_a_sample(config: pytest.Config) -> bool:
    """Whether a run is one of all files; a worker is started with the arguments of the run, so it says the same."""
    option = config.option
    chosen = option.keyword or option.every or option.markexpr != "not slow"
    return not chosen and config.args_source is pytest.Config.ArgsSource.TESTPATHS


@pytest.hookimpl(trylast=True)  # -m has left out its own by then
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not takes_a_sample(config):
        return
    cases = [
        Case(item.nodeid, frozenset(item.callspec.indices.items()))
        for item in items
        if hasattr(item, "callspec") and not item.get_closest_marker("whole")
    ]
    left_out = {case.name for case in cases} - sample(cases, config.option.seed)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if takes_a_sample(config):
        seed = config.option.seed
        terminalreporter.write_line(
            f"of large tables a sample of the cases was taken, of seed {seed}; --every takes all"
        )
