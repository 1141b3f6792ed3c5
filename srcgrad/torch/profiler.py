"""`torch.profiler`: `profile` with schedules and handlers, over the profiler of `torch.autograd`."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from srcgrad.torch.autograd import profiler as plain
from srcgrad.torch.autograd.profiler import record_function
from srcgrad.torch.autograd.profiler_events import EventList
from srcgrad.torch.errors import AutogradError, TensorNotImplementedError, TensorValueError

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerAction(Enum):
    """What the profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class ProfilerActivity(Enum):
    """What can be profiled: ``CPU``; the others are refused."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


def supported_activities() -> set[ProfilerActivity]:
    """The activities that can be profiled here."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """A schedule: after ``skip_first`` steps, cycles of ``wait``, ``warmup`` and ``active`` steps, ``repeat`` times (0:
    without end).

    >>> plan = schedule(wait=1, warmup=1, active=1)
    >>> [plan(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise TensorValueError("Invalid profiler schedule arguments", hint="active is at least 1, the others 0")

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise TensorValueError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        length = wait + warmup + active
        if repeat and step >= length * repeat:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """A handler for ``on_trace_ready`` that writes each trace as a JSON file into a folder."""
    if use_gzip:
        raise TensorNotImplementedError("compressed traces", hint="leave use_gzip out")

    def handler(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json"))

    return handler


class profile:
    """Records operations in a ``with`` block, or in the steps that a schedule picks.

    Args:
        activities: ``[ProfilerActivity.CPU]``; others are refused.
        schedule: from the number of a step (counted by `step`) to a `ProfilerAction`.
        on_trace_ready: called with the profiler when a cycle of the schedule, or the block, is over.
        record_shapes, profile_memory: as in `torch.autograd.profiler.profile`. The other arguments are accepted.

    >>> import srcgrad.torch as torch
    >>> with torch.profiler.profile() as prof:
    ...     y = torch.ones(2) * 3
    >>> [average.key for average in prof.key_averages()]
    ['aten::mul']
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
    ) -> None:
        wanted = {ProfilerActivity.CPU} if activities is None else set(activities)
        if not wanted:
            raise AutogradError("No valid profiler activities found")
        if use_cuda or wanted != {ProfilerActivity.CPU}:
            raise TensorNotImplementedError(
                "profiling of anything but the CPU", hint="activities=[torch.profiler.ProfilerActivity.CPU]"
            )
        self.schedule = schedule or always
        self.has_schedule = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler: plain.profile | None = None
        self.running = False
        self.block: record_function | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin; `stop` ends it."""
        self.current_action = self.schedule(self.step_num)
        self.follow(self.current_action)
        self.name_step()

    def stop(self) -> None:
        """End, and call the handler where something was recorded."""
        self.end_step()
        if self.running:
            self.finish()

    def step(self) -> None:
        """Say that a step is over and the next one begins."""
        self.end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE:
            self.finish()
        self.follow(self.current_action)
        self.name_step()

    def follow(self, action: ProfilerAction) -> None:
        wanted = action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if wanted and not self.running:
            self.profiler = plain.profile(
                record_shapes=self.record_shapes, profile_memory=self.profile_memory
            ).__enter__()
            self.running = True
        elif self.running and not wanted:
            self.finish()

    def finish(self) -> None:
        assert self.profiler is not None
        self.profiler.__exit__(None, None, None)
        self.running = False
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def name_step(self) -> None:
        if self.has_schedule and self.running:
            self.block = record_function("ProfilerStep*")
            self.block.__enter__()

    def end_step(self) -> None:
        if self.block is not None:
            self.block.__exit__()
            self.block = None

    def recorded(self) -> plain.profile:
        if self.profiler is None:
            raise AutogradError("Profiler must be initialized before exporting", hint="nothing was recorded yet")
        return self.profiler

    def events(self) -> EventList:
        """All events of the last cycle."""
        return self.recorded().function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """The events by name; see `EventList.key_averages`."""
        return self.recorded().key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str) -> None:
        """Write a JSON file for ``chrome://tracing`` or Perfetto."""
        self.recorded().export_chrome_trace(path)
