"""`Module`: a function with parameters, buffers and submodules, which its attributes are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

import numpy as np

from srcgrad.ir.errors import nearest_hint
from srcgrad.torch import dtypes
from srcgrad.torch.errors import TensorError, TensorNotImplementedError, TensorTypeError, TensorValueError
from srcgrad.torch.graph import Hooks, RemovableHandle, dtype_of_type, moved_on, type_name
from srcgrad.torch.modes import no_grad
from srcgrad.torch.nn.hooks import Border, registered
from srcgrad.torch.nn.parameter import Buffer, Parameter
from srcgrad.torch.nn.stateful import Stateful
from srcgrad.torch.tensor import Tensor

T = TypeVar("T")
TABLES = ("_parameters", "_buffers", "_modules")


def described(value: Any) -> str:
    """The type of a value, as PyTorch's messages name it."""
    if isinstance(value, Tensor) and type(value) is Tensor:
        return type_name(value._data.dtype)
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


class Module(Stateful):
    """The base of all models and layers. A subclass makes its parts in ``__init__`` and computes in ``forward``.

    Parameters, buffers and modules that are assigned as attributes are registered: `parameters`, `state_dict` and
    the other methods find them, and those of the modules among them.

    >>> import srcgrad.torch as torch
    >>> class Scale(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(2.0))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> Scale()(torch.tensor(3.0))
    tensor(6., grad_fn=<MulBackward0>)
    """

    training: bool
    _version: int = 1
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]
    _forward_hooks: Hooks
    _forward_pre_hooks: Hooks
    _backward_hooks: Hooks
    _backward_pre_hooks: Hooks

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            what = (
                f"got an unexpected keyword argument '{next(iter(kwargs))}'"
                if kwargs
                else (f"takes 1 positional argument but {len(args) + 1} were given")
            )
            raise TensorTypeError(f"{type(self).__name__}.__init__() {what}")
        space = self.__dict__
        space["training"] = True
        for table in TABLES:
            space[table] = {}
        space["_non_persistent_buffers_set"] = set()
        for kind in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
            space[kind] = Hooks()
        space["_hooks_with_kwargs"] = set()
        space["_hooks_always_called"] = set()
        for kind in ("_state_dict_hooks", "_state_dict_pre_hooks", "_load_pre_hooks", "_load_post_hooks"):
            space[kind] = Hooks()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; to be overridden. Call the module itself, so that its hooks run."""
        raise TensorNotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function',
            hint="define forward(self, ...) in the class",
        )

    # --- calling -----------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks):
            return self.forward(*args, **kwargs)
        called: set[int] = set()
        try:
            return self._hooked_call(args, kwargs, called)
        except BaseException:
            for key, hook in list(self._forward_hooks.items()):
                if key in self._hooks_always_called and key not in called:
                    self._run_hook(key, hook, args, kwargs, None)
            raise

    def _hooked_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]) -> Any:
        for key, hook in list(self._forward_pre_hooks.items()):
            if key in self._hooks_with_kwargs:
                found = hook(self, args, kwargs)
                if found is not None:
                    if not (isinstance(found, tuple) and len(found) == 2):
                        raise TensorError(
                            f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {found}."
                        )
                    args, kwargs = found
            else:
                found = hook(self, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        border = Border(self) if self._backward_hooks or self._backward_pre_hooks else None
        if border is not None:
            args = border.enter(args)
        result = self.forward(*args, **kwargs)
        for key, hook in list(self._forward_hooks.items()):
            called.add(key)
            found = self._run_hook(key, hook, args, kwargs, result)
            if found is not None:
                result = found
        return result if border is None else border.leave(result)

    def _run_hook(self, key: int, hook: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        if key in self._hooks_with_kwargs:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before ``forward``; what it returns replaces the arguments.

        Args:
            prepend: before the hooks that are there already.
            with_kwargs: call ``hook(module, args, kwargs)``, which returns None or both.
        """
        handle = registered(self._forward_pre_hooks, hook, prepend)
        if with_kwargs:
            self._hooks_with_kwargs.add(handle.key)
        return handle

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after ``forward``; what it returns replaces the output.

        Args:
            prepend: before the hooks that are there already.
            with_kwargs: call ``hook(module, args, kwargs, output)``.
            always_call: also where ``forward`` raised, with None for the output.
        """
        handle = registered(self._forward_hooks, hook, prepend)
        if with_kwargs:
            self._hooks_with_kwargs.add(handle.key)
        if always_call:
            self._hooks_always_called.add(handle.key)
        return handle

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are known.

        Both are tuples; what the hook returns replaces ``grad_input``.
        """
        return registered(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are known; it may replace them."""
        return registered(self._backward_pre_hooks, hook, prepend)

    # --- attributes --------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        space = self.__dict__
        for table in TABLES:
            known = space.get(table)
            if known is not None and name in known:
                return known[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        space = self.__dict__
        if isinstance(value, Parameter):
            self._owned(name, "parameters", "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._owned(name, "module", "_modules")
            space["_modules"][name] = value
        elif isinstance(value, Buffer):
            self._owned(name, "buffer", "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif name in space.get("_parameters", ()):
            if value is not None:
                raise TensorTypeError(
                    f"cannot assign '{described(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)",
                    hint="with torch.no_grad(): parameter.copy_(value)",
                )
            space["_parameters"][name] = None
        elif name in space.get("_modules", ()):
            if value is not None:
                raise TensorTypeError(
                    f"cannot assign '{described(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            space["_modules"][name] = None
        elif name in space.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TensorTypeError(
                    f"cannot assign '{described(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            space["_buffers"][name] = value
        else:
            object.__setattr__(self, name, value)

    def _owned(self, name: str, kind: str, table: str) -> None:
        """Make room for a registered attribute."""
        space = self.__dict__
        if table not in space:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        space.pop(name, None)
        for other in TABLES:
            if other != table:
                space[other].pop(name, None)
        space["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name: str) -> None:
        for table in TABLES:
            if name in self.__dict__[table]:
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[0].isdigit())

    # --- registration ------------------------------------------------------------------------------
    def _check_name(self, kind: str, name: Any, table: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TensorTypeError(f"{kind} name should be a string. Got {described(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if not name:
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, which becomes an attribute.

        Raises:
            KeyError: there is such an attribute, or the name has a dot.
            TensorTypeError: it is no parameter. TensorValueError: it is no leaf.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TensorTypeError(
                f"cannot assign '{described(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is no parameter, which becomes an attribute.

        ``persistent``: it is part of the ``state_dict``.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TensorTypeError(
                f"cannot assign '{described(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule, which becomes an attribute."""
        if module is not None and not isinstance(module, Module):
            raise TensorTypeError(f"{described(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """`add_module`."""
        self.add_module(name, module)

    # --- what it holds -----------------------------------------------------------------------------
    def get_submodule(self, target: str) -> Module:
        """The module of a dotted name; the module itself for ``""``.

        Raises:
            AttributeError: there is none.
        """
        found: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(found, name):
                hint = nearest_hint(name, found._modules)
                raise AttributeError(f"{found._get_name()} has no attribute `{name}`" + (f"; {hint}" if hint else ""))
            found = getattr(found, name)
            if not isinstance(found, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return found  # type: ignore[no-any-return]

    def set_submodule(self, target: str, module: Module) -> None:
        """Replace the module of a dotted name."""
        parent, _, name = target.rpartition(".")
        owner = self.get_submodule(parent)
        if not isinstance(getattr(owner, name, None), Module):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        setattr(owner, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a dotted name."""
        return self._named(target, Parameter, "_parameters", "an nn.Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a dotted name."""
        return self._named(target, Tensor, "_buffers", "a buffer")

    def _named(self, target: str, kind: type[T], table: str, what: str) -> T:
        parent, _, name = target.rpartition(".")
        owner = self.get_submodule(parent)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        found = getattr(owner, name)
        if name not in owner.__dict__[table] or not isinstance(found, kind):
            raise AttributeError(f"`{name}` is not {what}")
        return found

    def _members(self, table: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for owner, module in modules:
            for name, value in module.__dict__[table].items():
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield f"{owner}.{name}" if owner else name, value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once; with ``recurse``, those of the submodules too."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Dotted names and parameters."""
        yield from self._members("_parameters", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Dotted names and buffers."""
        yield from self._members("_buffers", prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """The direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Names and direct submodules."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self) -> Iterator[Module]:
        """The module itself and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Dotted names and modules, the module itself first."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    # --- changing it -------------------------------------------------------------------------------
    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call a function on every submodule, then on the module itself."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set ``training`` here and below."""
        if not isinstance(mode, bool):
            raise TensorValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Whether all parameters require grad."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for parameter in self.parameters():
            gradient = parameter._grad
            if gradient is None:
                continue
            if set_to_none:
                parameter._grad = None
            else:
                zeros = np.zeros_like(gradient._data)
                if gradient.grad_fn is None:
                    gradient._data[...] = zeros
                    moved_on(gradient._counter)
                    gradient._requires = False
                else:
                    parameter._grad = gradient.detach()
                    parameter._grad._data[...] = zeros

    def _apply(self, convert: Callable[[Tensor], Tensor]) -> Self:
        """Replace the values of all parameters, their gradients and all buffers."""
        for module in self.children():
            module._apply(convert)
        with no_grad():
            for parameter in self._parameters.values():
                if parameter is None:
                    continue
                parameter.data = convert(parameter)
                if parameter._grad is not None:
                    requires = parameter._grad.requires_grad
                    gradient = convert(parameter._grad.detach())
                    parameter._grad = gradient.requires_grad_(requires)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = convert(buffer)
        return self

    def _floating_to(self, dtype: np.dtype[Any]) -> Self:
        def convert(tensor: Tensor) -> Tensor:
            data = tensor._data
            if data.dtype.kind not in "fc" or data.dtype == dtype:
                return tensor
            return tensor.detach().to(dtypes.of(dtype))  # type: ignore[no-any-return]

        return self._apply(convert)

    def float(self) -> Self:
        """All floating-point parameters and buffers in float32."""
        return self._floating_to(np.dtype(np.float32))

    def double(self) -> Self:
        """All floating-point parameters and buffers in float64."""
        return self._floating_to(np.dtype(np.float64))

    def half(self) -> Self:
        """All floating-point parameters and buffers in float16."""
        return self._floating_to(np.dtype(np.float16))

    def type(self, dst_type: Any) -> Self:
        """All parameters and buffers in a dtype."""
        dtype = dtype_of_type(dst_type)
        return self._apply(lambda tensor: tensor.detach().to(dtype))

    def cpu(self) -> Self:
        """The module: everything lies on the CPU."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Refused: there is no other device.

        Raises:
            TensorError: always.
        """
        dtypes.usable_device("cuda" if device is None else device)
        raise TensorError("tensors here are NumPy arrays, which lie on the CPU", hint="leave .cuda() out")

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The floating-point parameters and buffers in a dtype: ``to(dtype)``, ``to("cpu")``, ``to(tensor)``.

        Raises:
            TensorTypeError: the dtype is no floating one. TensorError: a device other than the CPU.
        """
        wanted = [*args, *(kwargs[name] for name in ("device", "dtype", "tensor") if kwargs.get(name) is not None)]
        dtype = None
        for item in wanted:
            if isinstance(item, Tensor):
                dtype = item.dtype
            elif isinstance(item, dtypes.dtype):
                dtype = item
            elif isinstance(item, (str, int, dtypes.device)) and not isinstance(item, bool):
                dtypes.usable_device(item)
        if dtype is None:
            return self
        if dtype.numpy.kind not in "fc":
            raise TensorTypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        return self._floating_to(dtype.numpy)

    # --- text --------------------------------------------------------------------------------------
    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the parentheses; to be overridden."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        body = "\n  ".join([*lines, *children])
        return f"{self._get_name()}(\n  {body}\n)"


def indented(text: str) -> str:
    """Text whose lines after the first are moved in."""
    return text.replace("\n", "\n  ")
