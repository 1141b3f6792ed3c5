"""What holds for a thread or task while the facade runs: whether operations are recorded, and who else watches them.

One context variable holds all of it, so that an operation looks once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, Final, NamedTuple, Self


class Mode(NamedTuple):
    """``grad``: operations are recorded. ``watchers``: what intercepts operations, outermost first."""

    grad: bool = True
    inference: bool = False
    watchers: tuple[Any, ...] = ()
    saved_hooks: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...] = ()
    anomaly: bool = False
    check_nan: bool = True

    @property
    def plain(self) -> bool:
        """Whether nothing but ``grad`` is said."""
        return not (self.inference or self.watchers or self.saved_hooks or self.anomaly)


MODE: Final[ContextVar[Mode]] = ContextVar("srcgrad_torch_mode", default=Mode())  # noqa: B039  immutable


MAPPING: Final[ContextVar[int]] = ContextVar("srcgrad_torch_vmap", default=0)
"""How many functions that `vmap` maps and that must not draw random numbers are running, one inside the other."""


def refuse_random() -> None:
    """Called where random numbers are drawn.

    Raises:
        TensorError: inside a function that `vmap` maps.
    """
    if MAPPING.get():
        from srcgrad.torch.errors import TensorError

        raise TensorError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
            "randomness flags on vmap or perform the randomness operation out of vmap",
            hint="draw outside, and pass the numbers as an argument",
        )


class ModeBlock:
    """A change of mode for a ``with`` block, or for the calls of a decorated function."""

    __slots__ = ("changes", "tokens")

    def __init__(self, **changes: Any) -> None:
        self.changes = changes
        self.tokens: list[Token[Mode]] = []

    def __enter__(self) -> Self:
        self.tokens.append(MODE.set(MODE.get()._replace(**self.changes)))
        return self

    def __exit__(self, *error: object) -> None:
        MODE.reset(self.tokens.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if isgeneratorfunction(function):
            return self.generator(function)

        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            token = MODE.set(MODE.get()._replace(**self.changes))
            try:
                return function(*args, **kwargs)
            finally:
                MODE.reset(token)

        return wrapped

    def generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A generator function whose body runs in this mode, and the code between its values in the caller's."""

        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with type(self).again(self):
                running = function(*args, **kwargs)
            sent = None
            while True:
                try:
                    with type(self).again(self):
                        value = running.send(sent)
                except StopIteration as stop:
                    return stop.value
                sent = yield value

        return wrapped

    @staticmethod
    def again(block: ModeBlock) -> ModeBlock:
        return ModeBlock(**block.changes)


class no_grad(ModeBlock):
    """Operations inside are not recorded; results do not require grad."""

    __slots__ = ()

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        block = object.__new__(cls)
        ModeBlock.__init__(block, grad=False)
        return block if function is None else block(function)

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__(grad=False)


class enable_grad(ModeBlock):
    """Operations inside are recorded, also within `no_grad`."""

    __slots__ = ()

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        block = object.__new__(cls)
        ModeBlock.__init__(block, grad=True)
        return block if function is None else block(function)

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__(grad=True)


class set_grad_enabled(ModeBlock):
    """Recording on or off, at once; as a ``with`` block, until its end."""

    __slots__ = ("before",)

    def __init__(self, mode: bool) -> None:
        super().__init__(grad=bool(mode))
        self.before = MODE.get()
        MODE.set(self.before._replace(grad=bool(mode)))

    def __exit__(self, *error: object) -> None:
        self.tokens.pop()
        MODE.set(MODE.get()._replace(grad=self.before.grad))

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        MODE.set(MODE.get()._replace(grad=self.before.grad))
        return super().__call__(function)


class inference_mode(ModeBlock):
    """As `no_grad`; the tensors made inside can never be recorded."""

    __slots__ = ()

    def __new__(cls, mode: Any = True) -> Any:
        block = object.__new__(cls)
        if callable(mode):
            ModeBlock.__init__(block, grad=False, inference=True)
            return block(mode)
        return block

    def __init__(self, mode: bool = True) -> None:
        if mode:
            super().__init__(grad=False, inference=True)
        else:
            super().__init__()


def is_grad_enabled() -> bool:
    """Whether operations are recorded here.

    >>> import srcgrad.torch as torch
    >>> with torch.no_grad():
    ...     torch.is_grad_enabled()
    False
    """
    return MODE.get().grad


def is_inference_mode_enabled() -> bool:
    """Whether this runs inside `inference_mode`."""
    return MODE.get().inference
