"""From a function to its converted twin: same cells, globals, defaults and names, code with operators."""

from __future__ import annotations
import __future__

import ast
import dis
import inspect
import os
import sys
import sysconfig
import types
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np

from srcgrad.boundary import from_outside
from srcgrad.ir.source import internal
from srcgrad.tracing.asked_signatures import with_annotations
from srcgrad.tracing.bytecode import opnames
from srcgrad.tracing.conversion.blocks import Block, Unreached, without_blocks
from srcgrad.tracing.conversion.names import OPERATORS, located
from srcgrad.tracing.conversion.sources import Unconvertible, find_source
from srcgrad.tracing.members import names_in
from srcgrad.tracing.trace import CURRENT

KEPT: Final = 1024
"""How many converted code objects are remembered."""
FUNCTION: Final = "_sg_function"
Ends = frozenset[tuple[Block, str]]
NOTHING: Final[Ends] = frozenset()
ASKING: Final = frozenset({"isinstance", "print", "type"})
FRAMES: Final = frozenset({"f_locals", "f_globals", "getargvalues"})
"""What code names that reads the variables of the frames on the stack, between which converted code has its own."""
CONVERTED_LIBRARIES: Final = (
    "numpy.polynomial.", "scipy._external.", "scipy._lib.", "scipy.cluster.vq", "scipy.integrate._cubature",
    "scipy.integrate._quadrature", "scipy.interpolate._pade", "scipy.interpolate._polyint",
    "scipy.linalg._decomp_svd", "scipy.linalg._procrustes", "scipy.ndimage._measurements", "scipy.signal.",
    "scipy.sparse.linalg._expm_multiply", "scipy.spatial._geometric_slerp", "scipy.spatial._kdtree",
    "scipy.spatial._procrustes", "scipy.spatial.distance", "scipy.special._basic", "scipy.stats._axis_nan_policy",
    "scipy.stats._continuous_distns", "scipy.stats._discrete_distns", "scipy.stats._distn_infrastructure",
    "scipy.stats._entropy", "scipy.stats._morestats", "scipy.stats._multivariate", "scipy.stats._stats_py",
    "scipy.stats._variation", "srcgrad.tracing.functions.written_loops",
)  # fmt: skip
"""Python code of arrays that does not dispatch: it is converted as the user's where it has no rule."""
LEFT_ALONE: Final = frozenset(
    {"numpy", "scipy", "jax", "jaxlib", "numba", "llvmlite", "torch", "pytest", "_pytest", "pluggy", "hypothesis"}
    | {"pandas", "matplotlib", "sympy", "mpmath"}
)
"""Installed packages that run as they are: they have rules, a compiler or traces of their own, hold no arrays, or are
much code that takes no traced value in the end.
"""
IN_NUMPY: Final = (os.path.join("torch", "testing", ""),)
"""Parts of these that are functions of NumPy arrays: references of what the package has."""


def folders(*names: str) -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({os.path.join(os.path.realpath(paths[name]), "") for name in names})


INSTALLED: Final = folders("purelib", "platlib")
STANDARD: Final = folders("stdlib", "platstdlib")


@lru_cache(maxsize=4096)
def library_file(file: str) -> bool:
    """Whether this is a file of Python's own library, or of a package that runs as it is: others are the user's code,
    wherever they are installed.
    """
    if file.startswith("<"):
        return False
    path = os.path.realpath(file)
    for folder in INSTALLED:  # which may be in the folder of the standard library
        if path.startswith(folder):
            inside = path[len(folder) :]
            return inside.split(os.sep)[0].removesuffix(".py") in LEFT_ALONE and not inside.startswith(IN_NUMPY)
    return path.startswith(STANDARD)


def is_user_function(thing: object) -> bool:
    """Whether this is a Python function that is converted when called: no library's, and not converted yet."""
    if not isinstance(thing, types.FunctionType):
        return False
    code = thing.__code__
    if OPERATORS in code.co_freevars:
        return False
    if library_code(thing) is not None:
        return True
    if library_file(code.co_filename) or internal(code):
        return False
    return thing.__globals__.get("__name__", "").partition(".")[0] not in ("srcgrad", "numpy", "scipy", "jax")


def library_code(thing: Any) -> types.FunctionType | None:
    """The Python function of a library that is converted as the user's, under NumPy's dispatcher if it has one."""
    inner = getattr(thing, "_implementation", thing) if type(thing) is type(np.sum) else thing
    if not isinstance(inner, types.FunctionType):
        return None
    return inner if inner.__globals__.get("__name__", "").startswith(CONVERTED_LIBRARIES) else None


@lru_cache(maxsize=4096)
def needs_conversion(code: types.CodeType) -> bool:
    """Whether the code has loops or ``try``, or asks what its values are, by ``is`` too: then it is converted first."""
    if code.co_exceptiontable or ASKING.intersection(code.co_names):
        return True
    if any("JUMP_BACKWARD" in name or name == "IS_OP" for name in opnames(code)):
        return True
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return any(needs_conversion(constant) for constant in inner if constant.co_name != "<genexpr>")


def is_straight(code: types.CodeType) -> bool:
    """Whether the code has no jumps and no effects, so that it traces as it is."""
    if needs_conversion(code) or any("JUMP" in name for name in opnames(code)):
        return False
    return all(is_straight(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))


def reads_frames(code: types.CodeType) -> bool:
    """Whether a function, or one inside it, may read the variables of what calls it."""
    return not FRAMES.isdisjoint(names_in(code))


def convert(function: types.FunctionType) -> Callable[..., Any]:
    """The converted twin of a user function.

    Raises:
        Unconvertible: it has no source, or a construct in it has no operator; the message says which.
    """
    code, trace = function.__code__, CURRENT.get()
    unreached = NOTHING if trace is None else trace.unreached.get((code, code.co_filename), NOTHING)
    found = convert_code(code, code.co_filename, unreached)
    if isinstance(found, str):
        raise Unconvertible(f"{function.__qualname__} is run as it is: {found}")
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells[OPERATORS] = operators_cell()
    closure = tuple(cells[name] for name in found.co_freevars)
    twin = types.FunctionType(found, function.__globals__, function.__name__, function.__defaults__, closure)
    twin.__kwdefaults__ = function.__kwdefaults__
    twin.__qualname__, twin.__module__ = function.__qualname__, function.__module__
    twin.__dict__.update(function.__dict__)
    with_annotations(twin, function)
    return twin


@lru_cache(maxsize=1)
def operators_cell() -> types.CellType:
    from srcgrad.tracing.conversion import operators  # which converts what it calls

    return types.CellType(operators)


@lru_cache(maxsize=KEPT)
def convert_code(code: types.CodeType, file: str, unreached: Ends = NOTHING) -> types.CodeType | str:
    """The converted code, or why there is none. ``file`` tells codes apart that are equal but for their files;
    ``unreached``: blocks that end where the code comes to them, and what is said there.

    Raises:
        RecursionError: so much of the stack is in use that this says nothing of the code.
    """
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return "it is asynchronous"
    try:
        return compiled(code, dict(unreached), True)
    except Unconvertible as error:
        return str(error)
    except (SyntaxError, RecursionError, ValueError) as error:
        if from_outside(error) or (isinstance(error, RecursionError) and crowded()):
            raise  # which is not remembered
        return f"{type(error).__name__}: {error}"


def crowded() -> bool:
    """Whether more than half of the stack is in use, so that an overflow may be of what called and not of what ran."""
    depth, frame = 0, sys._getframe(1)
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    return 2 * depth > sys.getrecursionlimit()


@lru_cache(maxsize=KEPT)
def asks_in_vain(code: types.CodeType) -> str | None:
    """Why code is run as it is although it asks what its values are, which are not what they stand for; else None."""
    if "type" not in code.co_names:
        return None
    asked = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    found = convert_code(code, code.co_filename) if "type" in asked else None
    return found if isinstance(found, str) else None


@lru_cache(maxsize=KEPT)
def code_without(code: types.CodeType, file: str, unreached: Ends) -> types.CodeType:
    """The code without some blocks: what is left to look at."""
    return compiled(code, dict(unreached), False)


def compiled(code: types.CodeType, unreached: Unreached, converting: bool) -> types.CodeType:
    source = find_source(code)
    node = source.node
    if unreached:
        without_blocks(node, unreached, converting)
    if isinstance(node, ast.Lambda):
        body = ast.copy_location(ast.Return(node.body), node.body)
        definition = ast.FunctionDef(FUNCTION, node.args, [body], [], None)
        if sys.version_info >= (3, 12):
            definition.type_params = []
        ast.copy_location(definition, node)
    else:
        definition = node
    definition.decorator_list, definition.returns = [], None
    strip(definition.args)
    if converting:
        from srcgrad.tracing.conversion.statements import convert_function  # not read where no function is converted

        definition = convert_function(definition)
    definition.name = FUNCTION  # its own name means what it means outside
    inner: list[ast.stmt] = [definition]
    names = [free for free in code.co_freevars if free != "__class__" or source.owner is None]
    if source.owner is not None:  # private names are mangled as in the class
        inner = [ast.ClassDef(f"___{source.owner.lstrip('_')}", [], [], inner, [])]
        if sys.version_info >= (3, 12):
            inner[0].type_params = []  # type: ignore[attr-defined]
    arguments = ast.arguments([], [ast.arg(free) for free in [OPERATORS, *names]], None, [], [], None, [])
    factory = ast.FunctionDef("_sg_factory", arguments, inner, [], None)
    if sys.version_info >= (3, 12):
        factory.type_params = []
    module = ast.Module([factory], [])
    ast.copy_location(factory, definition)
    if inner[0] is not definition:
        ast.copy_location(inner[0], definition)
    located(module)
    flags = code.co_flags & future_flags()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the compiler has to say of this text it has said before
        made = compile(module, code.co_filename, "exec", flags, dont_inherit=True)
    found = find_code(made, FUNCTION)
    if found is None or set(found.co_freevars) - {OPERATORS} - set(code.co_freevars):
        raise Unconvertible("its variables could not be found again")
    return renamed(found, code.co_name, code.co_qualname, code.co_firstlineno)


@lru_cache(maxsize=1)
def future_flags() -> int:
    flags = 0
    for name in __future__.all_feature_names:
        flags |= getattr(__future__, name).compiler_flag
    return flags


def strip(arguments: ast.arguments) -> None:
    """Without annotations and defaults, which the function object has."""
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in [*named, *(extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None)]:
        argument.annotation = None
    arguments.defaults = []
    arguments.kw_defaults = [None for _ in arguments.kwonlyargs]


def find_code(code: types.CodeType, name: str) -> types.CodeType | None:
    """The code of the function of this name in the factory, or in the class in it."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_name == name and constant.co_flags & inspect.CO_OPTIMIZED:  # no class of that name
                return constant
            found = find_code(constant, name)
            if found is not None:
                return found
    return None


def renamed(code: types.CodeType, name: str, qualname: str, first: int) -> types.CodeType:
    """The code under the user's name; functions made of its blocks too, so that tracebacks name what the user wrote."""
    constants = []
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            made = constant.co_name.startswith("_sg_")
            inner = name if made else constant.co_name
            inside = qualname if made else f"{qualname}.<locals>.{constant.co_name}"
            constant = renamed(constant, inner, inside, constant.co_firstlineno)
        constants.append(constant)
    return code.replace(co_name=name, co_qualname=qualname, co_consts=tuple(constants), co_firstlineno=first)
