"""The profiler: names, counts, nesting, times, shapes, memory, the table, the trace, schedules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import srcgrad.torch as torch
from srcgrad.errors import SrcgradError

profiler = torch.autograd.profiler


def step(x: Any, w: Any) -> Any:
    return ((x * w).exp() + 1).sum()


def leaves() -> tuple[Any, Any]:
    return torch.ones(3, 2, requires_grad=True), torch.ones(2, requires_grad=True)


def counts(prof: Any) -> dict[str, int]:
    return {average.key: average.count for average in prof.key_averages()}


def test_operations_are_counted_by_their_aten_names() -> None:
    x, w = leaves()
    with profiler.profile() as prof:
        for _ in range(1000):
            step(x, w)
    assert counts(prof) == {"aten::mul": 1000, "aten::exp": 1000, "aten::add": 1000, "aten::sum": 1000}
    step(x, w)
    assert sum(counts(prof).values()) == 4000


def test_backward_shows_its_nodes() -> None:
    x, w = leaves()
    with profiler.profile() as prof:
        step(x, w).backward()
    found = counts(prof)
    for name in ("SumBackward0", "AddBackward0", "ExpBackward0", "MulBackward0"):
        assert found[name] == found[f"autograd::engine::evaluate_function: {name}"] == 1
    assert found["torch::autograd::AccumulateGrad"] == 2
    assert x.grad.shape == (3, 2)


def test_named_parts_hold_what_ran_inside() -> None:
    x, w = leaves()

    @profiler.record_function("decorated")
    def named() -> Any:
        return step(x, w)

    with profiler.profile() as prof, profiler.record_function("outer"):
        named()
        x * 2
    events = prof.function_events
    outer, inner = events[0], events[1]
    assert (outer.name, inner.name) == ("outer", "decorated")
    assert [child.name for child in outer.cpu_children] == ["decorated", "aten::mul"]
    assert all(child.cpu_parent is inner for child in inner.cpu_children)
    assert outer.cpu_time_total >= inner.cpu_time_total >= sum(c.cpu_time_total for c in inner.cpu_children) > 0
    assert outer.self_cpu_time_total == pytest.approx(
        outer.cpu_time_total - inner.cpu_time_total - outer.cpu_children[1].cpu_time_total
    )
    assert prof.self_cpu_time_total == pytest.approx(outer.cpu_time_total)
    assert prof.total_average().count == len(events)


def test_named_parts_without_a_profiler_cost_nothing_and_change_nothing() -> None:
    x, _ = leaves()
    with profiler.record_function("alone"):
        y = x * 2
    assert y.requires_grad


def test_shapes_group_the_averages() -> None:
    x, w = leaves()
    with profiler.profile(record_shapes=True) as prof:
        x * w
        x * w
        w * w
    found = {str(a.input_shapes): a.count for a in prof.key_averages(group_by_input_shape=True)}
    assert found == {"[[3, 2], [2]]": 2, "[[2], [2]]": 1}
    assert counts(prof) == {"aten::mul": 3}


def test_memory_is_what_results_take() -> None:
    with profiler.profile(profile_memory=True) as prof:
        a = torch.ones(10)
        (a * 2).view(5, 2)
    found = {average.key: average.self_cpu_memory_usage for average in prof.key_averages()}
    assert found["aten::mul"] == 40
    assert found["aten::view"] == 0
    assert "40 B" in prof.key_averages().table()


def test_the_table_has_the_columns_and_the_order_asked_for() -> None:
    x, w = leaves()
    with profiler.profile(record_shapes=True) as prof:
        for k in range(5):
            x * w
            if k < 2:
                x.exp()
    averages = prof.key_averages()
    lines = averages.table(sort_by="count", row_limit=1).splitlines()
    assert lines[1].split() == [
        "Name",
        "Self",
        "CPU",
        "%",
        "Self",
        "CPU",
        "CPU",
        "total",
        "%",
        "CPU",
        "total",
        "CPU",
        "time",
        "avg",
        "#",
        "of",
        "Calls",
    ]
    assert lines[0] == lines[2] == lines[4]
    assert lines[3].split()[0] == "aten::mul"
    assert lines[3].split()[-1] == "5"
    assert lines[5].startswith("Self CPU time total: ")
    assert len(averages.table().splitlines()) == 7
    grouped = prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total")
    assert "Input Shapes" in grouped
    assert "[[3, 2], [2]]" in grouped
    with pytest.raises(ValueError, match="has no attribute 'nothing'"):
        averages.table(sort_by="nothing")


def test_the_trace_is_json_that_a_browser_reads(tmp_path: Path) -> None:
    x, w = leaves()
    with profiler.profile() as prof, profiler.record_function("part"):
        step(x, w).backward()
    prof.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert {event["name"] for event in spans} >= {"part", "aten::mul", "MulBackward0"}
    assert all(event["dur"] >= 0 and event["ts"] > 0 for event in spans)
    part = next(event for event in spans if event["name"] == "part")
    assert part["cat"] == "user_annotation"
    assert all(part["ts"] <= event["ts"] <= part["ts"] + part["dur"] for event in spans)


def test_a_disabled_profiler_records_nothing() -> None:
    x, w = leaves()
    with profiler.profile(enabled=False) as prof:
        step(x, w)
    with pytest.raises(SrcgradError, match="Profiler didn't finish running"):
        prof.key_averages()


def test_profiles_nest() -> None:
    x, w = leaves()
    with profiler.profile() as outer:
        x * w
        with profiler.profile() as inner:
            x + w
    assert counts(outer) == {"aten::mul": 1, "aten::add": 1}
    assert counts(inner) == {"aten::add": 1}


def test_gpu_profiling_is_refused() -> None:
    for refused in (
        lambda: profiler.profile(use_cuda=True),
        lambda: profiler.emit_nvtx(),
        lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]),
    ):
        with pytest.raises(NotImplementedError):
            refused()


def test_a_schedule_picks_the_steps() -> None:
    plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    assert [plan(k).value for k in range(12)] == [0, 0, 1, 2, 3, 0, 1, 2, 3, 0, 0, 0]


def test_steps_and_handlers(tmp_path: Path) -> None:
    x, w = leaves()
    ready: list[tuple[int, dict[str, int]]] = []

    def handler(prof: Any) -> None:
        ready.append((prof.step_num, counts(prof)))
        torch.profiler.tensorboard_trace_handler(str(tmp_path))(prof)

    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=handler,
    ) as prof:
        for _ in range(6):
            x * w
            prof.step()
    assert ready == [(4, {"ProfilerStep*": 2, "aten::mul": 2})]
    (trace,) = tmp_path.glob("*.pt.trace.json")
    assert json.loads(trace.read_text())["traceEvents"]
    with torch.profiler.profile() as plain:
        x * w
    assert counts(plain) == {"aten::mul": 1}


def test_the_profile_of_dual_tensors_and_of_transforms() -> None:
    forward = torch.autograd.forward_ad
    with profiler.profile() as prof, forward.dual_level():
        d = forward.make_dual(torch.ones(2), torch.ones(2))
        tangent = forward.unpack_dual(d * d).tangent
    assert tangent.tolist() == [2.0, 2.0]
    assert counts(prof)["aten::mul"] == 1
