"""Finding the forward line whose derivative made a nan: `detect_anomaly`, `set_detect_anomaly`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from srcgrad.ir.source import user_frames
from srcgrad.torch.errors import AutogradError
from srcgrad.torch.modes import MODE

if TYPE_CHECKING:
    from srcgrad.torch.graph import GraphNode


class set_detect_anomaly:
    """Anomaly detection on or off, at once; as a ``with`` block, until its end.

    ``check_nan``: a gradient with a nan in it is an error that names the operation of the forward pass.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        before = MODE.get()
        self.before = (before.anomaly, before.check_nan)
        MODE.set(before._replace(anomaly=bool(mode), check_nan=bool(check_nan)))

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        anomaly, check_nan = self.before
        MODE.set(MODE.get()._replace(anomaly=anomaly, check_nan=check_nan))


class detect_anomaly:
    """A ``with`` block in which a nan in a gradient is an error, and errors of backward name the forward line.

    It slows everything down, and a warning says so.

    >>> import srcgrad.torch as torch
    >>> torch.is_anomaly_enabled()
    False
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            UserWarning,
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.block = set_detect_anomaly(True, self.check_nan)

    def __exit__(self, *error: Any) -> None:
        self.block.__exit__(*error)


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on here."""
    return MODE.get().anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection looks for nan."""
    return MODE.get().check_nan


RUNNING: ContextVar[GraphNode | None] = ContextVar("srcgrad_torch_running", default=None)
"""The node that runs with anomaly detection: what is recorded meanwhile was induced by it."""


def forward_trace() -> tuple[str, GraphNode | None]:
    """The stack as text, outermost first, without this library's own frames; and the node that is running."""
    lines = []
    for span in reversed(user_frames()):
        function = span.function.rpartition(".")[2]
        lines.append(f'  File "{span.file}", line {span.line}, in {function}\n')
        if span.text:
            lines.append(f"    {span.text}\n")
    return "".join(lines), RUNNING.get()


def describe_forward(node: GraphNode) -> None:
    """Warn with the forward call of a node at which an error was found."""
    parts = []
    stack = node.forward_stack
    if stack is None:
        parts.append(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
            "forward pass for more information."
        )
    else:
        parts.append(f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{stack[0]}")
        parent = stack[1]
        while parent is not None:
            known = parent.forward_stack
            text = known[0] if known is not None else "No forward pass information available.\n"
            parts.append(
                f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the "
                f"previous calculation:\n{text}"
            )
            parent = None if known is None else known[1]
    warnings.warn("".join(parts), UserWarning, stacklevel=user_level())


def user_level() -> int:
    """The stack level of the user's call, for the caller's warning."""
    from srcgrad.boundary import user_stack_level

    return user_stack_level()


def check_results(node: GraphNode, outgoing: Sequence[Any]) -> None:
    """Refuse nan in what a node gave.

    Raises:
        AutogradError: with the number of the first such result.
    """
    for k, x in enumerate(outgoing):
        array = getattr(x, "_data", x)
        if array is not None and np.isnan(array).any():
            raise AutogradError(
                f"Function '{node.name()}' returned nan values in its {k}th output.",
                span=node.span if node.span is not None else ...,
                hint="the line shown is the forward operation; look at the values that reached it",
            )
