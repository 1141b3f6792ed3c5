"""The state of a `Module`: `state_dict`, and loading it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from srcgrad.torch.errors import TensorError
from srcgrad.torch.graph import RemovableHandle
from srcgrad.torch.nn.hooks import registered
from srcgrad.torch.nn.parameter import Parameter
from srcgrad.torch.nn.state import IncompatibleKeys, load, load_own, new_state, save
from srcgrad.torch.tensor import Tensor

if TYPE_CHECKING:
    from srcgrad.torch.nn.module import Module


class Stateful:
    """What a `Module` does with its state; the tables are the module's."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """The parameters and persistent buffers by their dotted names, detached (as they are with ``keep_vars``)."""
        found = new_state() if destination is None else destination
        save(cast("Module", self), found, prefix, keep_vars)
        return found

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> IncompatibleKeys:
        """Copy values into the parameters and buffers of the same names.

        Args:
            strict: names that are missing or unexpected are errors.
            assign: the tensors themselves take the place of the parameters' values.

        Returns:
            the names that are missing, and those that are unexpected.

        Raises:
            TensorError: names or shapes differ; the message lists all of them.
        """
        return load(cast("Module", self), state_dict, strict, assign)

    def get_extra_state(self) -> Any:
        """More to be kept in the ``state_dict``; to be overridden."""
        raise TensorError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave; to be overridden."""
        raise TensorError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put this module's own parameters and buffers into a dictionary."""
        for name, value in self._own_state():
            destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + "_extra_state"] = self.get_extra_state()

    def _own_state(self) -> Iterator[tuple[str, Tensor]]:
        for name, parameter in self._parameters.items():
            if parameter is not None:
                yield name, parameter
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                yield name, buffer

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Take this module's own parameters and buffers from a dictionary; what is wrong is put into the lists."""
        extra = type(self).set_extra_state is not Stateful.set_extra_state
        wrong = (missing_keys, unexpected_keys, error_msgs)
        load_own(cast("Module", self), state_dict, prefix, local_metadata, strict, *wrong, extra)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after `state_dict`."""
        return registered(self.__dict__["_state_dict_hooks"], hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before `state_dict`."""
        return registered(self.__dict__["_state_dict_pre_hooks"], hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)`` before loading."""
        return registered(self.__dict__["_load_pre_hooks"], hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may change the lists of names."""
        return registered(self.__dict__["_load_post_hooks"], hook)
