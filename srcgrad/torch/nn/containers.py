"""Modules and parameters in lists and dictionaries."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Self

from srcgrad.torch.errors import TensorIndexError, TensorTypeError, TensorValueError
from srcgrad.torch.graph import type_name
from srcgrad.torch.nn.module import Module, indented
from srcgrad.torch.nn.parameter import Parameter
from srcgrad.torch.tensor import Tensor

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def position(index: Any, length: int) -> int:
    """A position that is not negative.

    Raises:
        TensorIndexError: it is out of range.
    """
    found = operator.index(index)
    if not -length <= found < length:
        raise TensorIndexError(f"index {found} is out of range")
    return found % length


class Modules(Module):
    """What `Sequential` and `ModuleList` share: modules named by their positions."""

    def _keep(self, modules: Iterable[Any]) -> None:
        """Hold these modules, named anew."""
        self._modules = {str(k): module for k, module in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def _name_at(self, index: Any) -> str:
        return list(self._modules)[position(index, len(self))]

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [self._name_at(index)]:
            delattr(self, name)
        self._keep(list(self._modules.values()))

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before the one at a position.

        Raises:
            TensorTypeError: it is no module. TensorIndexError: there is no such position.
        """
        if not isinstance(module, Module):
            raise TensorTypeError(f"module should be of type: {Module}")
        length = len(self)
        if not -length <= index <= length:
            raise TensorIndexError(f"Index out of range: {index}")
        modules = list(self._modules.values())
        modules.insert(index if index >= 0 else index + length, module)
        self._keep(modules)
        return self

    def pop(self, key: int | slice) -> Any:
        """Take a module out, and return it."""
        found = self[key]
        del self[key]
        return found

    def __getitem__(self, index: Any) -> Any:
        return self._modules[self._name_at(index)]


class Sequential(Modules):
    """Modules that are called one after the other, each with the result of the one before.

    ``Sequential(a, b)``, or ``Sequential(OrderedDict(first=a, second=b))``.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for k, module in enumerate(args):
                self.add_module(str(k), module)

    def forward(self, input: Any) -> Any:
        """The result of the last module."""
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name_at(index)]

    def __delitem__(self, index: Any) -> None:
        super().__delitem__(index)

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add the modules of another one at the end."""
        for module in list(sequential):
            self.append(module)
        return self

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise TensorValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Self:
        if not isinstance(other, Sequential):
            raise TensorValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is given."
            )
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        if not isinstance(other, int):
            raise TensorTypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise TensorValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return Sequential(*[module for _ in range(other) for module in self])

    __rmul__ = __mul__


class ModuleList(Modules):
    """Modules in a list."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._modules[self._name_at(index)]

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end.

        Raises:
            TensorTypeError: it is no iterable.
        """
        if not isinstance(modules, Iterable):
            raise TensorTypeError(
                f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __repr__(self) -> str:
        """Equal modules one after the other are one line."""
        if not len(self):
            return f"{self._get_name()}()"
        lines = []
        start = 0
        for text, same in groupby(map(repr, self)):
            times = len(list(same))
            place = f"({start})" if times == 1 else f"({start}-{start + times - 1})"
            lines.append(f"{place}: {'' if times == 1 else f'{times} x '}{indented(text)}")
            start += times
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """Modules in a dictionary, whose keys are strings."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Take a module out, and return it."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The keys."""
        return self._modules.keys()

    def items(self) -> Any:
        """The keys and modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add the modules of a mapping, or of pairs of a key and a module."""
        for key, module in pairs(modules, "ModuleDict"):
            self[key] = module


def pairs(given: Any, kind: str) -> list[tuple[str, Any]]:
    """The pairs of a mapping, or of an iterable of pairs."""
    if not isinstance(given, Iterable):
        raise TensorTypeError(
            f"{kind}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}"
        )
    if isinstance(given, (Mapping, ModuleDict, ParameterDict)):
        return list(given.items())
    found = []
    for k, item in enumerate(given):
        if not isinstance(item, Iterable):
            raise TensorTypeError(f"{kind} update sequence element #{k} should be Iterable; is{type(item).__name__}")
        listed = list(item)
        if len(listed) != 2:
            raise TensorValueError(f"{kind} update sequence element #{k} has length {len(listed)}; 2 is required")
        found.append((listed[0], listed[1]))
    return found


def as_parameter(value: Any) -> Any:
    """A plain tensor as a parameter; anything else as it is."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def described(value: Any) -> str:
    """The type of a tensor: ``torch.FloatTensor``."""
    return type_name(value._data.dtype) if isinstance(value, Tensor) else ""


def entry_text(value: Any, kind: str) -> str:
    """How a list or dictionary of parameters shows one; ``kind`` names the type of a tensor."""
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    name = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{name} containing: [{kind} of size {'x'.join(map(str, value._data.shape))}]"


class ParameterList(Module):
    """Parameters in a list; tensors that are put in become parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _name_at(self, index: Any) -> str:
        return str(position(index, self._size))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[k] for k in range(*index.indices(self._size))])
        return getattr(self, self._name_at(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        setattr(self, self._name_at(index), as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[k] for k in range(self._size)])

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def append(self, value: Any) -> Self:
        """Add a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TensorTypeError(
                f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(
            f"  ({k}): {entry_text(value, str(getattr(value, 'dtype', '')))}" for k, value in enumerate(self)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TensorTypeError("ParameterList should not be called.", hint="index it: parameters[0]")


class ParameterDict(Module):
    """Parameters in a dictionary, in the order in which they came; tensors that are put in become parameters."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _name_of(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TensorTypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"{type(key).__name__!r})."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        name = self._name_of(key)
        self._keys[name] = None
        setattr(self, name, as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __or__(self, other: ParameterDict) -> ParameterDict:
        found = self.copy()
        found.update(other)
        return found

    def copy(self) -> ParameterDict:
        """A dictionary of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, which becomes ``default`` if there is none."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Take all values out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Take a value out, and return it."""
        found = self[key]
        del self[key]
        return found

    def popitem(self) -> tuple[str, Any]:
        """Take out what came last: its key and value."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or ``default``."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dictionary of one value for all keys."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The keys and values."""
        return [(key, self[key]) for key in self._keys]

    def values(self) -> Iterable[Any]:
        """The values."""
        return [self[key] for key in self._keys]

    def update(self, parameters: Any) -> None:
        """Add the values of a mapping, or of pairs of a key and a value."""
        for key, value in pairs(parameters, "ParameterDict"):
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {entry_text(value, described(value))}" for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TensorTypeError("ParameterDict should not be called.", hint="index it: parameters['name']")
