"""The base of the optimisers: parameter groups, state, and their dictionaries."""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from itertools import chain
from typing import Any

import numpy as np

from srcgrad.boundary import user_stack_level
from srcgrad.torch.errors import TensorError, TensorTypeError, TensorValueError
from srcgrad.torch.graph import Hooks, RemovableHandle, moved_on
from srcgrad.torch.modes import enable_grad, no_grad
from srcgrad.torch.tensor import Tensor, wrapped

Group = dict[str, Any]


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


def hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """A ``step`` with the hooks around it; schedules ask whether it ran."""

    @wraps(step)
    def run(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        self._opt_called = True
        given: tuple[Any, ...] = (self, *args)
        for hook in list(self._pre_hooks.values()):
            found = hook(self, given, kwargs)
            if found is None:
                continue
            if not (isinstance(found, tuple) and len(found) == 2):
                raise TensorError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {found}.")
            given, kwargs = found
        result = step(*given, **kwargs)
        for hook in list(self._post_hooks.values()):
            hook(self, given, kwargs)
        return result

    return run


class Optimizer:
    """What all optimisers share. A subclass gives `update`, which changes one parameter in place.

    Args:
        params: tensors that are leaves, (name, tensor) pairs, or dictionaries with such a ``"params"`` and options of
            their own.
        defaults: the options of groups that give none.

    Raises:
        TensorTypeError: params is a tensor, or what it holds is none.
        TensorValueError: nothing to optimise, a tensor that is no leaf, or one that stands in two groups.
    """

    _opt_called = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in cls.__dict__:
            cls.step = hooked(cls.__dict__["step"])  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TensorTypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                "torch.FloatTensor",
                hint="pass [w], or model.parameters()",
            )
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self._pre_hooks, self._post_hooks = Hooks(), Hooks()
        groups = list(params)
        if not groups:
            raise TensorValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group))

    def add_param_group(self, param_group: Group) -> None:
        """Add a dictionary with ``"params"`` and the options that differ from the defaults."""
        if not isinstance(param_group, dict):
            raise TensorTypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, (set, frozenset)):
            raise TensorTypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        listed = [params] if isinstance(params, Tensor) else list(params)
        named = [isinstance(item, tuple) for item in listed]
        if any(named):
            if not all(named):
                raise TensorValueError(
                    "all optimizer params should be with/without names. Some param names are missing"
                )
            param_group["param_names"] = [name for name, _ in listed]
            listed = [tensor for _, tensor in listed]
        if self.param_groups and ("param_names" in self.param_groups[0]) != ("param_names" in param_group):
            without = "with" if "param_names" in param_group else "without"
            raise TensorValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{without} names to the optimizer"
            )
        for tensor in listed:
            if not isinstance(tensor, Tensor):
                raise TensorTypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {type_name(tensor)}"
                )
            if not tensor.is_leaf:
                raise TensorValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise TensorValueError(
                    f"parameter group didn't specify a value of required optimization parameter {name}"
                )
            param_group.setdefault(name, default)
        if len(set(map(id, listed))) != len(listed):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                UserWarning,
                stacklevel=user_stack_level(),
            )
        known = {id(tensor) for group in self.param_groups for tensor in group["params"]}
        if known.intersection(map(id, listed)):
            raise TensorValueError("some parameters appear in more than one parameter group")
        param_group["params"] = listed
        self.param_groups.append(param_group)

    # --- steps -------------------------------------------------------------------------------------
    def update(self, value: Any, gradient: Any, state: dict[str, Any], group: Group) -> None:
        """Change one parameter's array in place, given its gradient's."""
        raise NotImplementedError

    @hooked
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change all parameters that have a gradient, once.

        Args:
            closure: evaluates the model and returns the loss, which is returned.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad(), np.errstate(all="ignore"):
            for group in self.param_groups:
                for parameter in group["params"]:
                    gradient = parameter._grad
                    if gradient is None:
                        continue
                    array = gradient._data
                    if group.get("maximize"):
                        array = -array
                    state = self.state.get(parameter)
                    known = {} if state is None else state
                    self.update(parameter._data, array, known, group)
                    if state is None and known:
                        self.state[parameter] = known
                    moved_on(parameter._counter)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the parameters' gradients; or set them to zero."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter._grad is None:
                    continue
                if set_to_none:
                    parameter._grad = None
                elif parameter._grad._node is None:
                    parameter._grad.requires_grad_(False)
                    parameter._grad._data[...] = 0
                    moved_on(parameter._grad._counter)
                else:
                    parameter._grad = wrapped(np.zeros_like(parameter._data))

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step."""
        return RemovableHandle(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return RemovableHandle(self._post_hooks, hook)

    # --- dictionaries ------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """``{"state": ..., "param_groups": ...}``, in which parameters are numbers in order."""
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for tensor in group["params"]:
                numbers.setdefault(id(tensor), len(numbers))
            listed = {name: value for name, value in group.items() if name != "params"}
            groups.append(listed | {"params": [numbers[id(tensor)] for tensor in group["params"]]})
        return {"state": {numbers[id(tensor)]: state for tensor, state in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave.

        Raises:
            TensorValueError: it has other groups.
        """
        saved = copy.deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise TensorValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(saved, self.param_groups, strict=True)):
            raise TensorValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        tensors = list(chain.from_iterable(group["params"] for group in self.param_groups))
        numbers = list(chain.from_iterable(group["params"] for group in saved))
        place = dict(zip(numbers, tensors, strict=True))
        self.state = defaultdict(dict)
        for position, state in state_dict["state"].items():
            tensor = place[position]
            self.state[tensor] = {name: loaded(name, value, tensor) for name, value in state.items()}
        for group, other in zip(self.param_groups, saved, strict=True):
            params = group["params"]
            group.update(other)
            group["params"] = params

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for position, group in enumerate(self.param_groups):
            lines += ["", f"Parameter Group {position}"] if position else ["Parameter Group 0"]
            lines += [f"    {name}: {plain(group[name])}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def number(x: Any) -> Any:
    """A rate that may be a tensor, as a number."""
    return x._data.item() if isinstance(x, Tensor) else x


def plain(x: Any) -> Any:
    """An option as it is shown."""
    return x._data.item() if isinstance(x, Tensor) and x._data.size == 1 else x


def type_name(x: Any) -> str:
    """What errors call the type of a thing: that of a module's function in PyTorch's form."""
    return type(x).__name__ if type(x).__module__ == "builtins" else f"{type(x).__module__}.{type(x).__name__}"


def loaded(name: str, value: Any, parameter: Tensor) -> Any:
    """One entry of a saved state, in the dtype of its parameter; how many steps there were keeps its own."""
    if not isinstance(value, Tensor):
        return copy.deepcopy(value)
    cast = name != "step" and parameter._data.dtype.kind == "f"
    return wrapped(value._data.astype(parameter._data.dtype if cast else value._data.dtype))


def checked(condition: bool, name: str, value: Any) -> None:
    """Raise a TensorValueError in PyTorch's words unless an option is in its range."""
    if not condition:
        raise TensorValueError(f"Invalid {name}: {value}")


def counted(state: dict[str, Any]) -> int:
    """One more step of a parameter; the steps so far."""
    step = state.get("step")
    if step is None:
        step = state["step"] = wrapped(np.zeros((), np.float32))
    step._data += 1
    return int(step._data)


def buffer(state: dict[str, Any], name: str, like: Any, start: complex = 0) -> Any:
    """A parameter's running array of this name, at first filled with ``start``; complex ones as pairs."""
    found = state.get(name)
    if found is None:
        filled = np.zeros_like(like) if start == 0 else np.full_like(like, start)
        found = state[name] = wrapped(filled)
    return as_pairs(found._data)


def as_pairs(array: Any) -> Any:
    """The same memory with complex numbers as pairs of real ones: the adaptive methods treat each by itself."""
    kind = array.dtype
    return array if kind.kind != "c" else array[..., None].view(np.float32 if kind.itemsize == 8 else np.float64)
