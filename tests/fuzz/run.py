"""Many random programs, and what became of them.

    python tests/fuzz/run.py [--programs 5000] [--seed 0] [--xla-every 0] [--seconds 0] [--faulty] [--loops]

Goes on after a mismatch, and prints at the end how many programs there were, how many mismatches, what was refused by
kind, and the ops that the programs had. ``--xla-every N`` runs every N-th program on XLA too (compiling takes a second
or more each). ``--loops`` runs programs of long loops instead, those of the seeds from ``--seed`` on, and notes no ops.
The exit status is 1 if there was a mismatch, or if more than a twentieth was refused.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

import srcgrad as sg
from srcgrad.errors import SrcgradError
from srcgrad.ir.opdef import REGISTRY
from srcgrad.lowering import lower
from tests.fuzz.checks import LOOPS, check, check_error, counts, everything
from tests.fuzz.loops import loop_program, runs
from tests.fuzz.programs import Program, fresh, program_of, programs

MOST_REFUSED = 0.05
SHOWN = 3
"""How many mismatches of a kind are printed: hypothesis draws neighbours of what it has drawn."""


class Record:
    """What a run has seen."""

    def __init__(self) -> None:
        self.programs = 0
        self.mismatches: Counter[str] = Counter()
        """By kind: the first line of what is wrong, without its numbers."""
        self.ops: set[str] = set()
        self.start = time.perf_counter()

    @property
    def refused(self) -> int:
        return counts["programs refused in part or whole"]

    def note_ops(self, program: Program) -> None:
        """The ops of the program, and of it with its derivatives; where one cannot be made, the other's."""
        for f in (program_of(program), everything(program)):
            try:
                found = lower(sg.jit(f), tuple(fresh(program.args)), {})
            except (SrcgradError, TypeError):
                continue
            self.ops |= {operation.op.name for operation in found.built.function.walk()}

    def report(self) -> str:
        lines = [f"{self.programs} programs in {time.perf_counter() - self.start:.0f} s"]
        lines += [f"{count:>8} {what}" for what, count in sorted(counts.items())]
        share = self.refused / max(self.programs, 1)
        lines.append(f"{share:>8.1%} of the programs are refused in part or whole")
        missing = sorted(set(REGISTRY) - self.ops)
        lines.append(f"{len(self.ops):>8} of {len(REGISTRY)} ops, derivatives' too; without {', '.join(missing)}")
        lines.append(f"{self.mismatches.total():>8} mismatches")
        lines += [f"{count:>16} {kind}" for kind, count in self.mismatches.most_common()]
        return "\n".join(lines)


def run(options: argparse.Namespace) -> Record:
    record = Record()

    def over() -> bool:
        return bool(options.seconds and time.perf_counter() - record.start > options.seconds)

    def loops() -> None:
        for seed in range(options.seed, options.seed + options.programs):
            program = loop_program(seed)
            if not over() and runs(program):
                tried(program)
                sg.clear_caches()

    @seeded(options.seed)
    @settings(
        max_examples=options.programs, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(programs(faulty=options.faulty))
    def one(program: Program) -> None:
        tried(program)

    def tried(program: Program) -> None:
        if over():
            return
        record.programs += 1
        if not (options.faulty or options.loops):
            record.note_ops(program)
        try:
            if options.faulty:
                check_error(program)
            elif options.loops:
                check(program, oracles=LOOPS)
            else:
                check(program, xla=bool(options.xla_every) and record.programs % options.xla_every == 0)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            kind = re.sub(r"[-+\d.e]*\d[-+\d.e]*", "#", text.partition("\n")[0])
            record.mismatches[kind] += 1
            if record.mismatches[kind] <= SHOWN:
                shown = text if repr(program) in text else f"{text}\n{program!r}"
                print(f"--- mismatch {record.mismatches.total()} (program {record.programs})\n{shown}", flush=True)

    (loops if options.loops else one)()
    return record


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run many random programs, and print the totals.")
    parser.add_argument("--programs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--xla-every", type=int, default=0, help="run every so-manieth program on XLA too; 0: none")
    parser.add_argument("--seconds", type=float, default=0, help="stop after so many seconds; 0: never")
    parser.add_argument("--faulty", action="store_true", help="programs that NumPy refuses: errors must agree")
    parser.add_argument("--loops", action="store_true", help="programs of long loops, by their seeds")
    options: Any = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    print(f"seed {options.seed}")
    record = run(options)
    print(record.report())
    return int(bool(record.mismatches) or record.refused > MOST_REFUSED * record.programs)


if __name__ == "__main__":
    sys.exit(main())
