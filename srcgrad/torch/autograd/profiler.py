"""Where the time goes: `profile` records every operation, forward and backward, and `record_function` names parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import wraps
from time import perf_counter_ns
from typing import Any

import numpy as np

from srcgrad.torch.autograd.profiler_events import EventList, FunctionEvent, FunctionEventAvg
from srcgrad.torch.dispatch import apply, apply_inplace
from srcgrad.torch.errors import AutogradError, TensorNotImplementedError
from srcgrad.torch.graph import GraphNode
from srcgrad.torch.modes import MODE
from srcgrad.torch.operation import Op
from srcgrad.torch.tensor import Tensor

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "emit_itt", "emit_nvtx", "profile", "record_function"]


class Recorder:
    """Watches operations and takes their times."""

    pushes = False

    def __init__(self, shapes: bool, memory: bool) -> None:
        self.shapes, self.memory = shapes, memory
        self.events: list[FunctionEvent] = []
        self.open: list[FunctionEvent] = []

    def enter(self, name: str, operands: Sequence[Any] = ()) -> FunctionEvent:
        shapes = [list(x._data.shape) for x in operands] if self.shapes else []
        parent = self.open[-1] if self.open else None
        event = FunctionEvent(len(self.events), name, perf_counter_ns() / 1e3, shapes, parent)
        self.events.append(event)
        self.open.append(event)
        return event

    def leave(self) -> None:
        self.open.pop().end = perf_counter_ns() / 1e3

    def made(self, event: FunctionEvent, results: Any) -> None:
        """Count the memory of what an operation made."""
        if self.memory:
            for x in results if type(results) is tuple else (results,):
                data = getattr(x, "_data", None)
                if type(data) is np.ndarray and data.base is None:
                    event.self_cpu_memory_usage += data.nbytes

    def intercept(self, op: Op, operands: Sequence[Tensor], statics: tuple[Any, ...], dtype: Any) -> Any:
        mode = MODE.get()
        token = MODE.set(mode._replace(watchers=mode.watchers[:-1]))
        event = self.enter(f"aten::{op.name.replace('.', '_')}", operands)
        try:
            found = apply(op, operands, statics, dtype)
            self.made(event, found)
            return found
        finally:
            self.leave()
            MODE.reset(token)

    def intercept_inplace(
        self, op: Op, tensor: Tensor, others: Sequence[Tensor], statics: tuple[Any, ...], dtype: Any
    ) -> Tensor:
        mode = MODE.get()
        token = MODE.set(mode._replace(watchers=mode.watchers[:-1]))
        self.enter(f"aten::{op.name.removesuffix('_')}_", (tensor, *others))
        try:
            return apply_inplace(op, tensor, others, statics, dtype)
        finally:
            self.leave()
            MODE.reset(token)

    def enter_node(self, node: GraphNode) -> None:
        """A node of the graph begins to run."""
        name = node.name()
        self.enter(f"autograd::engine::evaluate_function: {name}")
        self.enter(name)

    def leave_node(self, outgoing: Sequence[Any]) -> None:
        if self.memory and not isinstance(outgoing, tuple):
            self.made(self.open[-1], tuple(Held(x) for x in outgoing if type(x) is np.ndarray))
        self.leave()
        self.leave()


class Held:
    """An array where a tensor is expected."""

    def __init__(self, array: Any) -> None:
        self._data = array


class profile:
    """Records operations inside its ``with`` block; afterwards `key_averages` and its ``table`` say where time went.

    Args:
        enabled: record nothing if it is False.
        record_shapes: remember the shapes of operands. profile_memory: remember the bytes of results.
        use_cuda, use_device: refused: there are no GPU tensors. The other arguments are accepted.

    >>> import srcgrad.torch as torch
    >>> x = torch.ones(3)
    >>> with torch.autograd.profiler.profile() as prof:
    ...     y = x * 2 + x
    >>> [(average.key, average.count) for average in prof.key_averages()]
    [('aten::mul', 1), ('aten::add', 1)]
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
    ) -> None:
        if use_cuda or use_device not in (None, "cpu"):
            raise TensorNotImplementedError("profiling of a GPU", hint="tensors here are NumPy arrays: leave it out")
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.recorder: Recorder | None = None
        self.entered = False

    def __enter__(self) -> profile:
        if self.entered:
            raise AutogradError("Profiler context manager is not reentrant")
        self.entered = True
        if self.enabled:
            self.recorder = Recorder(self.record_shapes, self.profile_memory)
            mode = MODE.get()
            MODE.set(mode._replace(watchers=(self.recorder, *mode.watchers)))
        return self

    def __exit__(self, *error: object) -> None:
        mode = MODE.get()
        MODE.set(mode._replace(watchers=tuple(w for w in mode.watchers if w is not self.recorder)))

    @property
    def function_events(self) -> EventList:
        """All events in the order in which they began.

        Raises:
            AutogradError: nothing was recorded.
        """
        if self.recorder is None:
            raise AutogradError("Profiler didn't finish running", hint="enter the block: with profile() as prof: ...")
        return EventList(self.recorder.events, self.profile_memory)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """The events by name; see `EventList.key_averages`."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """All events as one."""
        return self.function_events.total_average()

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """The single events as text; see `EventList.table`."""
        return self.function_events.table(sort_by=sort_by, row_limit=row_limit, **options)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file for ``chrome://tracing`` or Perfetto."""
        self.function_events.export_chrome_trace(path)

    @property
    def self_cpu_time_total(self) -> float:
        """All the time that was recorded, in microseconds."""
        return self.function_events.self_cpu_time_total

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.recorder is None else repr(self.function_events)

    def __str__(self) -> str:
        return repr(self) if self.recorder is None else str(self.function_events)


class record_function:
    """Names a part of the program in the profile: as a ``with`` block or a decorator."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self.recorders: list[Recorder] = []

    def __enter__(self) -> record_function:
        self.recorders = [w for w in MODE.get().watchers if isinstance(w, Recorder)]
        for recorder in self.recorders:
            recorder.enter(self.name).is_named = True
        return self

    def __exit__(self, *error: object) -> None:
        for recorder in self.recorders:
            recorder.leave()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapper


class emit_nvtx:
    """Refused: it marks ranges for a profiler of GPUs."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        if enabled:
            raise TensorNotImplementedError("emit_nvtx: there is no GPU to be profiled", hint="use profile()")


class emit_itt:
    """Refused: it marks ranges for VTune."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        if enabled:
            raise TensorNotImplementedError("emit_itt: ranges for VTune", hint="use profile()")
