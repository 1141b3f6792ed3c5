"""What a profile holds: events, their averages by name, and the table and trace made of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from srcgrad.torch.errors import TensorValueError


def shown_time(microseconds: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"


def shown_share(part: float, whole: float) -> str:
    return f"{part * 100.0 / whole:.2f}%" if whole else "NaN" if part else "0.00%"


def shown_memory(count: int) -> str:
    for unit, size in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if abs(count) >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"


class Timed:
    """Times in microseconds, as numbers and as text."""

    self_cpu_time_total: float
    cpu_time_total: float
    count: int

    @property
    def cpu_time(self) -> float:
        """The time of one call, on average."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        return shown_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        return shown_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return shown_time(self.self_cpu_time_total)


class FunctionEvent(Timed):
    """One call of an operation, a node of the graph, or a part that the user named."""

    count = 1

    def __init__(self, number: int, name: str, start: float, shapes: list[Any], parent: FunctionEvent | None) -> None:
        self.id = number
        self.name = name
        self.start = self.end = start
        self.input_shapes = shapes
        self.cpu_parent = parent
        self.cpu_children: list[FunctionEvent] = []
        self.self_cpu_memory_usage = 0
        self.is_named = False
        if parent is not None:
            parent.cpu_children.append(self)

    @property
    def key(self) -> str:
        return self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return self.end - self.start

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        return self.cpu_time_total - sum([child.cpu_time_total for child in self.cpu_children])

    @property
    def cpu_memory_usage(self) -> int:
        """Bytes of the arrays made here and below."""
        total, stack = 0, [self]
        while stack:
            event = stack.pop()
            total += event.self_cpu_memory_usage
            stack += event.cpu_children
        return total

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} cpu_start_us={self.start:.3f} "
            f"cpu_end_us={self.end:.3f} cpu_children={[child.id for child in self.cpu_children]} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


class FunctionEventAvg(Timed):
    """The events of one name (and one list of input shapes) together."""

    def __init__(self, key: str = "Total") -> None:
        self.key = key
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.input_shapes: Any = ""

    def add(self, event: Any) -> FunctionEventAvg:
        """Count another event, or the events of another average."""
        self.count += event.count
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        return self

    def __iadd__(self, event: Any) -> FunctionEventAvg:
        return self.add(event)

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} "
            f" input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


class EventList(list[Any]):
    """Events or averages."""

    def __init__(self, events: Iterable[Any] = (), profile_memory: bool = False) -> None:
        super().__init__(events)
        self.profile_memory = profile_memory

    @property
    def self_cpu_time_total(self) -> float:
        return float(sum(event.self_cpu_time_total for event in self))

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """One average per name; with ``group_by_input_shape`` per name and shapes of the operands."""
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key = (event.key, str(event.input_shapes) if group_by_input_shape else "")
            average = found.get(key)
            if average is None:
                average = found[key] = FunctionEventAvg(event.key)
                if group_by_input_shape:
                    average.input_shapes = event.input_shapes
            average.add(event)
        return EventList(found.values(), self.profile_memory)

    def total_average(self) -> FunctionEventAvg:
        """All events as one."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """The events as text, one row each.

        Args:
            sort_by: an attribute, the largest first: ``"cpu_time_total"``, ``"self_cpu_time_total"``, ``"cpu_time"``,
                ``"cpu_memory_usage"``, ``"self_cpu_memory_usage"``, ``"count"``.
            row_limit: how many rows. max_name_column_width, max_shapes_column_width: longer text is cut.
            header: a title. top_level_events_only: leave out what ran inside something else.

        Raises:
            TensorValueError: there is no such attribute.
        """
        if not self:
            return ""
        rows = list(self)
        if sort_by is not None:
            if not hasattr(rows[0], sort_by):
                raise TensorValueError(
                    f"{type(rows[0]).__name__!r} object has no attribute {sort_by!r}", hint='sort_by="cpu_time_total"'
                )
            rows.sort(key=lambda event: getattr(event, sort_by), reverse=True)
        if top_level_events_only:
            rows = [event for event in rows if getattr(event, "cpu_parent", None) is None]
        shapes = any(event.input_shapes for event in rows)
        titles = ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        titles += ["CPU Mem", "Self CPU Mem"] if self.profile_memory else []
        titles += ["# of Calls"]
        widths = [min(max(len(event.key) for event in rows) + 4, max_name_column_width), *[12] * len(titles)]
        if shapes:
            titles.append("Input Shapes")
            widths.append(min(max(len(str(event.input_shapes)) for event in rows) + 4, max_shapes_column_width))
        whole = self.self_cpu_time_total
        lines = [["Name", *titles]]
        for event in rows[:row_limit]:
            lines.append([shortened(event.key, max_name_column_width), *cells(event, whole, self.profile_memory)])
            if shapes:
                lines[-1].append(str(event.input_shapes)[:max_shapes_column_width])
        rule = "  ".join("-" * width for width in widths) + "  "
        text = [rule, padded(lines[0], widths), rule, *(padded(line, widths) for line in lines[1:]), rule]
        if header is not None:
            text[:0] = ["=" * len(rule), header]
        return "\n".join(text) + f"\nSelf CPU time total: {shown_time(whole)}\n"

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events as a JSON file for ``chrome://tracing`` or Perfetto."""
        process = os.getpid()
        events: list[dict[str, Any]] = [
            {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": "python"}}
        ]
        for event in self:
            kind = "user_annotation" if event.is_named else "cpu_op"
            arguments: dict[str, Any] = {"External id": event.id}
            if event.input_shapes:
                arguments["Input Dims"] = event.input_shapes
            if event.self_cpu_memory_usage:
                arguments["Bytes"] = event.self_cpu_memory_usage
            events.append(
                {
                    "ph": "X",
                    "cat": kind,
                    "name": event.name,
                    "pid": process,
                    "tid": process,
                    "ts": event.start,
                    "dur": event.end - event.start,
                    "args": arguments,
                }
            )
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": events}, file)

    def __str__(self) -> str:
        return self.table()


def shortened(name: str, width: int) -> str:
    return name if len(name) <= width else name[: width - 3] + "..."


def padded(cells: Iterable[str], widths: Iterable[int]) -> str:
    return "".join(f"{cell:>{width}}  " for cell, width in zip(cells, widths, strict=True))


def cells(event: Any, whole: float, memory: bool) -> list[str]:
    found = [
        shown_share(event.self_cpu_time_total, whole),
        event.self_cpu_time_total_str,
        shown_share(event.cpu_time_total, whole),
        event.cpu_time_total_str,
        event.cpu_time_str,
    ]
    if memory:
        found += [shown_memory(event.cpu_memory_usage), shown_memory(event.self_cpu_memory_usage)]
    return [*found, str(event.count)]
