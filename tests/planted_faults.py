"""Plant single faults, one at a time, and see that the tests catch each one.

    python tests/planted_faults.py [--only NAME …] [--list] [--jobs 2]

A fault is a text that stands exactly once in a file, and what stands there instead: ``tests/faults/*.toml`` list them.
Each is planted in a copy of the repository; the tests that should catch it run there, and if they pass, all tests of
the layers do. A test that fails with a fault must pass without it. A run that does not end, or that a signal ends,
catches nothing, unless the list says that the fault is ``endless``: that it may make a program one that never ends. The
exit status is 0 if every fault was caught.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import queue
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
COPIED: Final = ("srcgrad", "ir", "backends", "tests", "pyproject.toml")
WIDER: Final = ("tests/ir", "tests/tracing", "tests/backends", "tests/api", "tests/hard_points")
"""What runs where the tests that a fault names have passed."""
CONFTEST: Final = """
from hypothesis import Phase, settings

phases = [Phase.explicit, Phase.generate]
settings.register_profile("planted", derandomize=True, database=None, deadline=None, phases=phases)
settings.load_profile("planted")
"""
"""In a copy, random tests are the same at each run, and no time goes into making their failures small."""
SECONDS: Final = 300
"""How long a fault's own tests may take: a fault may make a program endless."""
WIDER_SECONDS: Final = 3600
"""The same of all tests of the layers."""

_stamps: Final = itertools.count(1_000_000_000)


@dataclass(frozen=True)
class Fault:
    """``old``, which stands once in ``file``, becomes ``new``; pytest with the arguments ``tests`` should fail then."""

    name: str
    area: str
    file: str
    breaks: str
    tests: tuple[str, ...]
    old: str
    new: str
    endless: bool = False
    """Whether a run of tests that does not end is what catches it."""

    def planted(self, text: str) -> str:
        """The file's text with the fault.

        Raises:
            ValueError: the old text does not stand there exactly once.
        """
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"{self.name}: the text to replace stands {count} times in {self.file}")
        return text.replace(self.old, self.new)


class Verdict(NamedTuple):
    """What became of one fault: the test that failed, None if none did; ``unended`` is the run that did not end."""

    fault: Fault
    test: str | None
    wider: bool
    seconds: float
    unended: str | None = None

    @property
    def caught(self) -> bool:
        return self.test is not None or (self.unended is not None and self.fault.endless)


class NoEnd(Exception):
    """A run of tests took longer than it may, or crashed; the text says which."""


def all_faults() -> list[Fault]:
    """The faults of every list, in order."""
    found = []
    for path in sorted((ROOT / "tests" / "faults").glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["fault"]:
            tests = tuple(shlex.split(entry.pop("tests")))
            found.append(Fault(area=path.stem, tests=tests, **entry))
    return found


class Copy:
    """A copy of the repository in which faults are planted."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        for name in COPIED:
            source, target = ROOT / name, folder / name
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")

    def write(self, file: str, text: str) -> None:
        path = self.root / file
        path.write_text(text, encoding="utf-8")
        # Compiled files are known by the time and size of their source: each text gets a time of its own.
        stamp = next(_stamps)
        os.utime(path, (stamp, stamp))

    @contextmanager
    def with_fault(self, fault: Fault) -> Iterator[None]:
        text = (self.root / fault.file).read_text(encoding="utf-8")
        planted = fault.planted(text)
        compile(planted, fault.file, "exec")  # a file that Python does not read would be caught by any test
        self.write(fault.file, planted)
        try:
            yield
        finally:
            self.write(fault.file, text)

    def failing(self, arguments: Sequence[str], first: bool = True, limit: float = SECONDS) -> list[str]:
        """The names of the tests that fail (the first one only, if ``first``).

        Raises:
            NoEnd: it took more than ``limit`` seconds, or a signal ended it.
            RuntimeError: pytest could not run them (a fault must let every file be imported), or found none.
        """
        cache = self.root / ".cache"
        shutil.rmtree(cache, ignore_errors=True)
        options = ["-q", "--tb=no", "-p", "no:randomly", "-o", f"cache_dir={cache}", *(["-x"] if first else [])]
        environment = {**os.environ, "PYTHONPATH": str(self.root), "SRCGRAD_BACKEND": ""}
        environment.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads of BLAS wait busily, on the cores of other copies
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *options, *arguments],
                cwd=self.root,
                env=environment,
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NoEnd(f"{limit:g} s of {' '.join(arguments)}") from None
        if done.returncode == 0:
            return []
        if done.returncode < 0:
            raise NoEnd(f"signal {-done.returncode} in {' '.join(arguments)}")
        known = cache / "v" / "cache" / "lastfailed"
        if done.returncode in (1, 2) and known.exists():
            failed = list(json.loads(known.read_text(encoding="utf-8")))
            if all("::" in name for name in failed):
                return failed
        raise RuntimeError(f"pytest {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def judge(copy: Copy, fault: Fault) -> Verdict:
    """Plant one fault, and run the tests that should catch it, then the others."""
    start = time.perf_counter()
    failed: list[str] = []
    wider, unended = False, None
    with copy.with_fault(fault):
        try:
            failed = copy.failing(fault.tests)
            wider = not failed
            if wider:
                failed = copy.failing(WIDER, limit=WIDER_SECONDS)
        except NoEnd as error:
            unended = str(error)
    return Verdict(fault, failed[0] if failed else None, wider, time.perf_counter() - start, unended)


def judge_all(faults: Sequence[Fault], jobs: int, report: Callable[[Verdict], None]) -> list[Verdict]:
    """Judge faults on several copies at once; a test that also fails without a fault catches none."""
    waiting: queue.SimpleQueue[Fault] = queue.SimpleQueue()
    for fault in faults:
        waiting.put(fault)
    found: dict[str, Verdict] = {}
    errors: list[BaseException] = []
    lock = threading.Lock()

    def work(copy: Copy) -> None:
        while not errors:
            try:
                fault = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                verdict = judge(copy, fault)
            except (RuntimeError, ValueError) as error:
                errors.append(error)
                return
            with lock:
                found[fault.name] = verdict
                report(verdict)

    with tempfile.TemporaryDirectory(prefix="planted_faults_") as folder:
        copies = []
        for number in range(min(jobs, len(faults))):
            place = Path(folder, str(number))
            place.mkdir()
            copies.append(Copy(place))
        threads = [threading.Thread(target=work, args=(copy,)) for copy in copies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        verdicts = [found[fault.name] for fault in faults]
        tests = sorted({verdict.test for verdict in verdicts if verdict.test is not None})
        limit = SECONDS + WIDER_SECONDS
        broken = set(copies[0].failing(tests, first=False, limit=limit)) if tests else set()
    return [verdict._replace(test=None) if verdict.test in broken else verdict for verdict in verdicts]


def line(verdict: Verdict) -> str:
    """One line of the report."""
    fault = verdict.fault
    where = f"{fault.area}/{fault.name}"
    if not verdict.caught:
        outcome = "NOT caught " if verdict.unended is None else "NO END     "
        after = "" if verdict.unended is None else f", after {verdict.unended}"
        return f"{outcome} {where}: {fault.breaks} ({fault.file}){after}"
    if verdict.test is None:
        return f"caught      {where}  by no end after {verdict.unended}"
    return f"caught      {where}  by {verdict.test}{' (not one of its own)' if verdict.wider else ''}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Plant single faults and see that the tests catch each one.")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="faults or areas")
    parser.add_argument("--list", action="store_true", help="show the faults")
    parser.add_argument("--jobs", type=int, default=2, help="how many copies work at once")
    options = parser.parse_args(arguments)
    faults = all_faults()
    if options.only:
        unknown = set(options.only) - {name for fault in faults for name in (fault.name, fault.area)}
        if unknown:
            parser.error(f"there is no fault {', '.join(sorted(unknown))}")
        faults = [fault for fault in faults if fault.name in options.only or fault.area in options.only]
    if options.list:
        for fault in faults:
            print(f"{fault.area}/{fault.name}: {fault.breaks} ({fault.file})")
        return 0
    start = time.perf_counter()

    def report(verdict: Verdict) -> None:
        print(f"{verdict.seconds:5.1f} s  {line(verdict)}", flush=True)

    verdicts = judge_all(faults, options.jobs, report)
    missed = [verdict for verdict in verdicts if not verdict.caught]
    print(f"\n{len(verdicts) - len(missed)} of {len(verdicts)} faults caught in {time.perf_counter() - start:.0f} s")
    for verdict in missed:
        print(line(verdict))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
