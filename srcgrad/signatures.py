"""What of a call's arguments decides which program serves it, and what its inputs are called."""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from srcgrad.annotations import signature_of
from srcgrad.cache import Known, is_pure
from srcgrad.compiler import backend_name
from srcgrad.tracing.bytecode import Instruction, instructions
from srcgrad.tracing.frozen import key_of
from srcgrad.tracing.hosts import is_host_object
from srcgrad.tracing.jax_arrays import JAX_TYPES, is_jax_array
from srcgrad.tracing.journals import Journal
from srcgrad.tracing.kept import KEPT
from srcgrad.tracing.layout import strides_of
from srcgrad.tracing.purity import is_plain_type, is_trusted_module, module_reason, static_key
from srcgrad.tracing.pytree import TreeDef
from srcgrad.tracing.tables import KINDS


def plain_key(backend: str | None, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The types of arguments that are arrays of numbers, of NumPy or jax, and floats only; None for others."""
    key: list[Any] = [backend_name(backend)]
    for argument in args:
        kind = type(argument)
        if kind is np.ndarray and argument.flags.c_contiguous and argument.dtype.kind not in KINDS:
            key.append(argument.dtype)
            key.append(argument.shape)
        elif kind is float or kind is np.float64:
            key.append(kind)
        elif kind in JAX_TYPES:
            key.append(argument.aval)
            key.append(argument.sharding)
        else:
            return None
    return tuple(key)


UNKEYED = object()
HELD = object()
"""The key of an object of which the guards say what it is."""
STATIC_TYPES = frozenset({int, bool, str, bytes, type(None), type(Ellipsis), np.dtype})


def leaf_key(leaf: Any) -> Any:
    """What of a leaf decides the program: the type of a traced one, the value of a static one; UNKEYED if neither."""
    kind = type(leaf)
    if kind is np.ndarray:
        if leaf.dtype.kind in KINDS:
            return table_key(leaf)
        return (leaf.dtype, leaf.shape, strides_of(leaf))
    if kind is float or kind is complex:
        return kind
    if kind in STATIC_TYPES:
        return (kind, leaf)
    if isinstance(leaf, np.inexact):
        return kind
    if isinstance(leaf, (np.generic, enum.Enum)) or kind is slice or kind is range:
        key = static_key(leaf, is_pure, floats=True)
        return UNKEYED if key is None else key
    if isinstance(leaf, np.ndarray):
        return (kind, leaf.dtype, leaf.shape, strides_of(leaf))
    if kind in JAX_TYPES or is_jax_array(leaf):
        return (kind, leaf.dtype, leaf.shape, leaf.sharding)
    if kind in KEPT:
        return (kind, leaf.type)
    if is_host_object(leaf) or isinstance(leaf, Journal):
        return kind
    if isinstance(leaf, np.ufunc) or is_plain_type(leaf) or (callable(leaf) and is_pure(leaf)):
        return leaf  # of other classes and of what has been built in, attributes and results change
    if kind is types.ModuleType and is_trusted_module(leaf, is_pure):
        return leaf
    return UNKEYED


def table_key(leaf: Any) -> Any:
    """`leaf_key` of an array of texts, dates or records, which is a constant."""
    key = key_of(leaf)
    return UNKEYED if key is None else ("table", key)


def unread_leaves(f: Any, treedef: TreeDef) -> frozenset[int]:
    """The leaves that are arguments which no code of a Python function reads: ``i`` of ``loss(params, i)`` often is."""
    if type(f) is not types.FunctionType:
        return frozenset()
    code = f.__code__
    read = {name for argument in map(_local, instructions(code)) for name in argument}
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    unread = set(names) - read - set(code.co_cellvars)
    places = {f"[0][{position}]": name for position, name in enumerate(code.co_varnames[: code.co_argcount])}
    places |= {f"[1][{name!r}]": name for name in names}
    return frozenset(number for number, path in enumerate(treedef.paths()) if places.get(path) in unread)


class LeafFacts(NamedTuple):
    """What the structure of the arguments says of their leaves."""

    names: list[str]
    """A name for each of them, no two the same, and none that of a keyword of a partial."""
    unread: frozenset[int]
    """Those that the function does not read: constants there decide nothing."""

    @classmethod
    def of(cls, f: Callable[..., Any], tree: TreeDef) -> LeafFacts:
        names = leaf_names(f, tree)
        if isinstance(f, functools.partial) or len({*names}) < len(names):  # no keyword of a partial has a space
            names = [f"{name} {place}" for place, name in enumerate(names)]
        return cls(names, unread_leaves(f, tree))


def unread_key(leaf: Any) -> Any:
    """`leaf_key` of such a leaf: what kind of constant it is."""
    kind = type(leaf)
    key = kind if kind in STATIC_TYPES else leaf_key(leaf)
    return kind if key is UNKEYED else key


def _local(instruction: Instruction) -> tuple[str, ...]:
    """The local variables that an instruction knows, if it does more than store one."""
    operation, argument, *_ = instruction
    if "_FAST" not in operation or operation == "STORE_FAST":
        return ()
    return argument if isinstance(argument, tuple) else (argument,)


def argument_reason(captures: Known, leaves: Sequence[Any], treedef: TreeDef) -> str | None:
    """Why a function cannot be one program for such arguments: what their classes, or modules among them, would run."""
    for kind in treedef.node_types():
        reason = captures.class_reason(kind)
        if reason is not None:
            return reason
    for leaf in leaves:
        if type(leaf) is types.ModuleType:
            reason = module_reason(leaf, captures.local_attributes, is_pure)
            if reason is not None:
                return reason
    return None


def parameter_names(f: Callable[..., Any]) -> list[str]:
    """The names of a function's parameters, where its signature is known."""
    try:
        return list(signature_of(f).parameters)
    except (TypeError, ValueError):
        return []


def leaf_names(f: Callable[..., Any], treedef: TreeDef) -> list[str]:
    """A name for each leaf of the arguments: the parameter's, followed by the path inside it."""
    parameters = parameter_names(f)
    names = []
    for path in treedef.paths():
        kind, _, rest = path.lstrip("[").partition("]")
        first, _, inner = rest.lstrip("[").partition("]")
        label = first.strip("'")
        if kind == "0" and first.isdigit():
            label = parameters[int(first)] if int(first) < len(parameters) else f"arg{first}"
        suffix = "".join(character if character.isalnum() else "_" for character in inner)
        names.append((label + suffix).rstrip("_").replace("__", "_"))
    return names
