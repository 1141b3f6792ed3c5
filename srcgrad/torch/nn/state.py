"""The state of a module as a dictionary, and back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from srcgrad.torch.errors import TensorError, TensorTypeError
from srcgrad.torch.graph import moved_on
from srcgrad.torch.modes import no_grad
from srcgrad.torch.nn.parameter import Parameter
from srcgrad.torch.tensor import Tensor

if TYPE_CHECKING:
    from srcgrad.torch.nn.module import Module


def new_state() -> Any:
    """A dictionary for values by dotted names; its attribute ``_metadata`` holds the version of each module."""
    state: Any = OrderedDict()
    state._metadata = OrderedDict()
    return state


class Keys(NamedTuple):
    """Two lists of names."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class IncompatibleKeys(Keys):
    """The names that a loaded dictionary lacks, and those that the module lacks."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def save(module: Module, destination: Any, prefix: str, keep_vars: bool) -> None:
    """Put the state of a module and of all below it into a dictionary."""
    metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    for hook in list(module.__dict__["_state_dict_pre_hooks"].values()):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in list(module.__dict__["_state_dict_hooks"].values()):
        hook(module, destination, prefix, metadata)


def load(module: Module, state_dict: Any, strict: bool, assign: bool) -> IncompatibleKeys:
    """`Module.load_state_dict`."""
    if not isinstance(state_dict, Mapping):
        raise TensorTypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    versions = getattr(state_dict, "_metadata", None) or {}
    given = OrderedDict(state_dict)
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []

    def visit(owner: Module, local: Any, prefix: str) -> None:
        metadata = dict(versions.get(prefix[:-1], {}))
        if assign:
            metadata["assign_to_params_buffers"] = True
        for hook in list(owner.__dict__["_load_pre_hooks"].values()):
            hook(owner, local, prefix, metadata, True, missing, unexpected, errors)
        owner._load_from_state_dict(local, prefix, metadata, True, missing, unexpected, errors)
        for name, child in owner._modules.items():
            if child is not None:
                start = f"{prefix}{name}."
                visit(child, OrderedDict((k, v) for k, v in local.items() if k.startswith(start)), start)
        found = IncompatibleKeys(missing, unexpected)
        for hook in list(owner.__dict__["_load_post_hooks"].values()):
            if hook(owner, found) is not None:
                raise TensorError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values"
                )

    visit(module, given, "")
    if strict:
        if unexpected:
            names = ", ".join(f'"{name}"' for name in unexpected)
            errors.insert(0, f"Unexpected key(s) in state_dict: {names}. ")
        if missing:
            names = ", ".join(f'"{name}"' for name in missing)
            errors.insert(0, f"Missing key(s) in state_dict: {names}. ")
    if errors:
        raise TensorError(
            "Error(s) in loading state_dict for {}:\n\t{}".format(module._get_name(), "\n\t".join(errors))
        )
    return IncompatibleKeys(missing, unexpected)


def load_own(
    module: Module,
    state_dict: Any,
    prefix: str,
    metadata: dict[str, Any],
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
    keeps_extra: bool,
) -> None:
    """Copy the values of one module's parameters and buffers."""
    known = dict(module._own_state())
    for name, current in known.items():
        key = prefix + name
        if key not in state_dict:
            if strict:
                missing.append(key)
            continue
        given = state_dict[key]
        if not isinstance(given, Tensor):
            errors.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(given)}"
            )
        elif given._data.shape != current._data.shape:
            errors.append(
                f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in "
                f"current model is {current.shape}."
            )
        elif metadata.get("assign_to_params_buffers"):
            assign_to(module, name, current, given)
        else:
            with no_grad():
                current._data[...] = given._data
                moved_on(current._counter)
    extra = prefix + "_extra_state"
    if keeps_extra:
        if extra in state_dict:
            module.set_extra_state(state_dict[extra])
        elif strict:
            missing.append(extra)
    if strict:
        for key in state_dict:
            if not key.startswith(prefix):
                continue
            name, *rest = key[len(prefix) :].split(".")
            if (name in known and not rest) or (key == extra and keeps_extra) or (rest and name in module._modules):
                continue
            unexpected.append(key)


def assign_to(module: Module, name: str, current: Tensor, given: Tensor) -> None:
    """The given tensor itself takes the place of a parameter or buffer."""
    if isinstance(current, Parameter):
        found = (
            given if isinstance(given, Parameter) else Parameter(given.detach(), requires_grad=current.requires_grad)
        )
        module._parameters[name] = found
    else:
        module._buffers[name] = given
