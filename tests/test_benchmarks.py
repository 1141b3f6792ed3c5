"""The benchmarks measure what they say: which rows run, how calls are counted, and peers that compute the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import measure, run
from benchmarks.rows import algebra, gradients, matrices


def test_patterns_choose_rows() -> None:
    assert run.chosen(None) == run.ROWS
    assert list(run.chosen(["fused-1*", "chain"])) == [
        *(name for name in run.ROWS if name.startswith("fused-1")),
        "chain",
    ]
    assert set(run.chosen(["matrix-*", "algebra-*", "gradients-*"])) == set(run.DETAILED)
    assert not set(run.ROWS) & set(run.DETAILED)
    with pytest.raises(ValueError, match="no row is named nothing-"):
        run.chosen(["chain", "nothing-*"])


class Clock:
    """Time that goes by in calls and between them."""

    def __init__(self) -> None:
        self.now, self.calls = 0.0, 0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def call(self, taken: Callable[[int], float]) -> Callable[[], None]:
        def call() -> None:
            self.now += taken(self.calls)
            self.calls += 1

        return call


@pytest.mark.parametrize("late", [0, 1, 3])
def test_early_calls_that_compile_do_not_count(late: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call, or one of the next, may take a thousand times as long as those that are measured."""
    clock = Clock()
    monkeypatch.setattr(measure, "time", clock)
    call = clock.call(lambda k: 0.1 if k == late else 1e-6)
    assert measure.repeats_for(call, 0.02) == pytest.approx(20_000, abs=1)


def test_medians_are_of_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(measure, "time", clock)
    calls = {"fast": clock.call(lambda k: 1.0), "slow": clock.call(lambda k: 3.0)}
    assert measure.interleaved(calls, 3, {"fast": 2, "slow": 1}) == pytest.approx({"fast": 1.0, "slow": 3.0})
    assert clock.now > 15.0  # the wait is not part of what is measured


@pytest.mark.usefixtures("jax_as_it_was")
@pytest.mark.parametrize(
    "name",
    ["matrix-layer-norm-64-float32", "matrix-logsumexp-64-float64", "algebra-slogdet-64", "gradients-log-density-40"],
)
def test_rows_check_their_results(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    for rows in (matrices, algebra, gradients):
        monkeypatch.setattr(rows, "measured", lambda row, calls, rounds, scale: row)
    assert not run.DETAILED[name](1).notes
    monkeypatch.setitem(matrices.CASES, "softmax", lambda xp: lambda x, v: x + (xp.__name__ != "numpy"))
    with pytest.raises(AssertionError):
        matrices.row("softmax", 64, "float64", 1)
