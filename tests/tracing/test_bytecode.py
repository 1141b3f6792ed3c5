"""Instructions of long straight code are decoded once for all that are the same, and are those that `dis` gives."""

from __future__ import annotations

import argparse
import ast
import dis
import inspect
import json
import random
import statistics
import types
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from srcgrad.tracing.bytecode import instructions, opnames
from srcgrad.tracing.conversion.convert import asks_in_vain, needs_conversion

METHODS = {"LOAD_ATTR": "LOAD_METHOD", "LOAD_SUPER_ATTR": "LOAD_SUPER_METHOD"}
LEFT_OUT = ("EXTENDED_ARG", "CACHE")


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def by_dis(code: types.CodeType) -> list[tuple[str, Any, int | None, bool]]:
    found = [item for item in dis.get_instructions(code) if item.opname not in LEFT_OUT]
    lines = [item.positions.lineno if item.positions is not None else None for item in found]
    named = [METHODS[item.opname] if is_method(item) else item.opname + " called" * is_called(item) for item in found]
    targets = [item.is_jump_target for item in found]
    return list(zip(named, [item.argval for item in found], lines, targets, strict=True))


def is_called(item: dis.Instruction) -> bool:
    """Whether a global is loaded to be called at once."""
    return item.opname == "LOAD_GLOBAL" and "NULL" in item.argrepr.replace(str(item.argval), "")


def is_method(item: dis.Instruction) -> bool:
    """Whether an attribute is loaded to be called: since Python 3.12 in an instruction of the same name."""
    return item.opname in METHODS and "NULL" in item.argrepr.replace(str(item.argval), "")


def check(code: types.CodeType) -> None:
    found = [item for item in instructions(code) if item[0] not in LEFT_OUT]
    assert repr(found) == repr(by_dis(code)), code
    own = {item.opname for item in dis.get_instructions(code)} - set(LEFT_OUT)
    assert opnames(code) - set(LEFT_OUT) == own


@pytest.mark.parametrize("module", [argparse, ast, inspect, json, random, statistics, typing])
def test_the_code_of_modules(module: types.ModuleType) -> None:
    assert module.__file__ is not None
    with open(module.__file__, encoding="utf-8") as file:
        whole = compile(file.read(), module.__file__, "exec")
    for code in codes(whole):
        check(code)


def test_many_names_and_constants() -> None:
    """Arguments of more than one byte, which come in several instructions."""
    lines = [f"    x{k} = (x + {k}.5) * np.f{k}(w.a{k}) - g{k}" for k in range(700)]
    names: dict[str, Any] = {}
    exec("\n".join(["def straight(x, w):", *lines, "    return x699"]), names)
    check(names["straight"].__code__)


def looping(x: Any) -> Any:
    for _ in range(3):
        x = x * x
    return x


def guarded(x: Any) -> Any:
    try:
        return x + 1
    except ValueError:
        return x


def nested(x: Any) -> Any:
    def inner(y: Any) -> Any:
        while y < 3:
            y = y + x
        return y

    return inner(x)


def straight(x: Any) -> Any:
    return x * x if x is None else x + 1


@pytest.mark.parametrize(("function", "wanted"), [(looping, True), (guarded, True), (nested, True), (straight, False)])
def test_what_has_loops_is_converted(function: types.FunctionType, wanted: bool) -> None:
    assert needs_conversion(function.__code__) is wanted


def attribute(x: Any) -> Any:
    return x.type


def test_an_attribute_named_type_asks_nothing() -> None:
    assert asks_in_vain(attribute.__code__) is None


def test_globals_that_are_called() -> None:
    def f(x: Any) -> Any:
        return len(x), len, max(map(len, x))

    found = [(item[0], item[1]) for item in instructions(f.__code__) if item[0].startswith("LOAD_GLOBAL")]
    names = [("called", "len"), ("LOAD_GLOBAL", "len"), ("called", "max"), ("called", "map"), ("LOAD_GLOBAL", "len")]
    assert [(kind.removeprefix("LOAD_GLOBAL "), name) for kind, name in found] == names
