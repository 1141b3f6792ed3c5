"""Functions of the language, compiled by XLA through jax."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import numpy as np

from srcgrad.backends.base import Backend, Executable
from srcgrad.backends.xla.lowering import Lowered, lower
from srcgrad.backends.xla.program import INT64, grown, raise_first
from srcgrad.ir.core import Function
from srcgrad.ir.types import TapeType

OPTIONS: Final[dict[str, Any]] = {"xla_allow_excess_precision": False, "xla_disable_hlo_passes": "algsimp"}
"""Every operation is rounded to its dtype: float16 is not kept in float32 from one to the next.

XLA's algebraic simplifier is off. It rewrites ``x / y / y`` to ``x / (y * y)`` and ``exp(x) * exp(y)`` to
``exp(x + y)``, which overflow where the derivatives here are written not to. The passes of the language have simplified
the program already.
"""


class XlaExecutable(Executable):
    """A compiled function. ``run`` takes NumPy arrays; ``run_device`` takes jax arrays and returns jax arrays."""

    __slots__ = ("run_device",)

    run_device: Callable[..., tuple[Any, ...]]
    """Runs on arrays of jax (or NumPy), and returns arrays of jax without waiting for them, unless there are checks."""


class XlaBackend(Backend):
    """Runs functions on jax's default device."""

    name = "xla"
    weight = 4

    def compile(self, function: Function, sites: Any = None, donate: Sequence[int] = ()) -> XlaExecutable:
        """Compile a function; ``donate``: positions of parameters whose buffers results may take over.

        Raises:
            DTypeError: it has long doubles.
            BackendError: an op that cannot run on jax's default device.
        """
        lowered = lower(function, sites, checks=True)
        compiled = Compiled(lowered, () if keeps_tapes(function) else donate)
        executable = XlaExecutable(host_runner(compiled), compiled.text)
        executable.run_device = device_runner(compiled)
        return executable


def keeps_tapes(function: Function) -> bool:
    """Whether a call may have to run again, so that its arguments must stay as they are."""
    return any(isinstance(value.type, TapeType) for operation in function.walk() for value in operation.results)


class Compiled:
    """A lowered function compiled for the capacities of its tapes that are known so far."""

    def __init__(self, lowered: Lowered, donate: Sequence[int]) -> None:
        self.lowered = lowered
        self.donate = donate
        self.lock = threading.Lock()
        self.literals = lowered.large_literals()
        with jax.enable_x64(True):
            self.constants = [jax.device_put(np.asarray(literal.value)) for literal in self.literals]
        self.texts: list[Callable[[], str]] = []
        self.takes_tapes = any(isinstance(param.type, TapeType) for param in lowered.function.params)
        self.by_shape: dict[tuple[tuple[int, ...], ...], Callable[..., Any]] = {}
        if self.takes_tapes:
            self.call: Callable[..., Any] = self.call_by_shape
        else:
            self.call = self.built([type.static_shape for type in lowered.function.param_types])

    def text(self) -> str:
        return "\n".join(text() for text in self.texts)

    def rebuild(self) -> None:
        """Compile again, with the room for tapes that is known now."""
        self.texts.clear()
        if self.takes_tapes:
            self.by_shape.clear()
            self.call = self.call_by_shape
        else:
            self.call = self.built([type.static_shape for type in self.lowered.function.param_types])

    def call_by_shape(self, *arguments: Any) -> Any:
        """A tape that is an argument has the capacity that it was made with."""
        params = arguments[1:] if self.lowered.replays else arguments
        shapes = tuple([tuple(np.shape(argument)) for argument in params])
        call = self.by_shape.get(shapes)
        if call is None:
            call = self.by_shape[shapes] = self.built(shapes)
        return call(*arguments)

    def built(self, shapes: Sequence[tuple[int, ...]]) -> Callable[..., Any]:
        lowered, literals = self.lowered, self.literals
        count = len(literals)

        def traced(*arguments: Any) -> tuple[Any, ...]:
            return lowered.run(literals, arguments[:count], arguments[count:])

        traced.__name__ = traced.__qualname__ = lowered.__name__
        with jax.enable_x64(True):
            make: Any = jax.ShapeDtypeStruct
            structs = [make(literal.type.static_shape, literal.type.dtype) for literal in literals]
            structs += [make((), INT64)] if lowered.replays else []
            params = zip(shapes, lowered.function.params, strict=True)
            structs += [make(shape, param.type.dtype) for shape, param in params]
            donated = tuple(count + position for position in self.donate)
            stage = jax.jit(traced, donate_argnums=donated).lower(*structs)
            program = stage.compile(compiler_options=OPTIONS)
        self.texts.append(stage.as_text)
        return functools.partial(program, *self.constants) if self.constants else program

    def unpacked(self, *arguments: Any) -> tuple[Any, ...]:
        """The results of any program."""
        call = self.call
        if self.takes_tapes:
            shapes = tuple([tuple(np.shape(argument)) for argument in arguments])
            call = self.by_shape.get(shapes) or self.by_shape.setdefault(shapes, self.built(shapes))
        if has_status(self.lowered):
            return tuple(self.checked(*arguments))
        with jax.enable_x64(True):
            return tuple(call(*arguments))

    def checked(self, *arguments: Any) -> list[Any]:
        """The results of a program with a status, which is looked at; it is compiled again as long as it lacks room."""
        lowered = self.lowered
        results: list[Any]
        with lowered.recorded() as begin:
            while True:
                call = self.call
                with jax.enable_x64(True):
                    *results, status = call(*begin(), *arguments)
                numbers = np.asarray(status)
                if not grown(numbers, lowered.demands, lowered.capacities):
                    if call is self.call:
                        break
                    continue  # another thread has made room since
                with self.lock:
                    self.rebuild()
        raise_first(numbers, lowered.effects, lowered.exceptions)
        return results


def device_runner(compiled: Compiled) -> Callable[..., tuple[Any, ...]]:
    """The compiled program; if it has a status, it is waited for."""
    enable_x64 = jax.enable_x64
    if compiled.takes_tapes:
        return compiled.unpacked
    if not has_status(compiled.lowered):
        call = compiled.call

        def run_plain(*arguments: Any) -> tuple[Any, ...]:
            try:
                return call(*arguments)  # type: ignore[no-any-return]
            except TypeError:  # NumPy arrays of double precision are taken only where that is on
                with enable_x64(True):
                    return call(*arguments)  # type: ignore[no-any-return]

        return run_plain

    def run(*arguments: Any) -> tuple[Any, ...]:
        return tuple(compiled.checked(*arguments))

    return run


def has_status(lowered: Lowered) -> bool:
    return bool(lowered.effects or lowered.demands)


def host_runner(compiled: Compiled) -> Callable[..., tuple[Any, ...]]:
    """The program on NumPy arrays: its results are copied to arrays of the caller's own."""
    enable_x64 = jax.enable_x64
    if not has_status(compiled.lowered) and not compiled.takes_tapes:
        call = compiled.call

        def run(*arguments: Any) -> tuple[Any, ...]:
            with enable_x64(True):
                results = call(*arguments)
            return tuple([np.array(result)[()] for result in results])

        return run

    def run_checked(*arguments: Any) -> tuple[Any, ...]:
        return tuple([np.array(result)[()] for result in compiled.unpacked(*arguments)])

    return run_checked


BACKEND: Final = XlaBackend()
