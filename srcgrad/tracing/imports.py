"""Modules that functions import where they use them: which ones, and what a trace finds in their place.

Of NumPy, SciPy and Python's own modules nothing is watched. Others are found in ``sys.modules`` at each call, as the
statement finds them, and what is read of them is a guard or an input, as of a module that the file imports.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from srcgrad.tracing.bytecode import Absent, Found, Refusal, Scope
from srcgrad.tracing.conversion.convert import LEFT_ALONE
from srcgrad.tracing.on_demand import MISSING, made_of, stands_in
from srcgrad.tracing.purity import TRUSTED_ROOTS, is_trusted_module
from srcgrad.tracing.ruled_out import Reader

if TYPE_CHECKING:
    from srcgrad.tracing.analysis import Analysis


FIRST: Final = " for the first time"


def first_import(name: str) -> str:
    """Why a function that imports a module which nobody has imported yet is traced alone this time."""
    return f"imports '{name}'{FIRST}"


def first_imported(reason: str) -> str | None:
    """The module that is the reason; None if it is another one."""
    reason = reason.partition(" (")[0]
    return reason.split("'")[1] if reason.endswith(FIRST) else None


def is_absent(package: str) -> bool:
    """Whether there is no package of this name."""
    if package in sys.modules or package in sys.builtin_module_names:
        return False
    try:
        return importlib.util.find_spec(package) is None
    except (ImportError, ValueError):
        return False


class Finder:
    """The modules that a function with these globals finds."""

    def __init__(self, names: dict[str, Any], is_pure: Callable[[object], bool], first: bool) -> None:
        """``first``: it is the one that is called."""
        self.names: Final = names
        self.is_pure: Final = is_pure
        self.first: Final = first

    def __call__(self, name: str, level: int, taken: tuple[str, ...], begins: bool) -> Found | Absent | str | None:
        """The module of that name, or why there is none; None if it may not be imported.

        ``taken``: what is taken of it; ``begins``: the function imports it whatever else it does, so that this may be
        done now.
        """
        if level:
            package = self.names.get("__package__")
            if not isinstance(package, str):
                return None
            try:
                name = importlib.util.resolve_name("." * level + name, package)
            except ImportError:
                return None
        elif is_absent(name.partition(".")[0]):
            return Absent(name.partition(".")[0])
        if self.is_trusted(name):
            return Found(name, importlib.import_module(name), False)
        if name.partition(".")[0] in LEFT_ALONE:  # of which there is no end
            return None
        if begins and self.first:
            try:
                imported = importlib.import_module(name)
                for part in taken if hasattr(imported, "__path__") else ():
                    if not hasattr(imported, part):
                        importlib.import_module(f"{name}.{part}")
            except Exception:  # which the function itself raises
                return first_import(name)
        if name not in sys.modules:
            return first_import(name)
        module, package = sys.modules[name], sys.modules.get(name.partition(".")[0])
        if type(module) is not types.ModuleType and not (stands_in(module) and taken and "*" not in taken):
            return None
        if type(package) is not types.ModuleType and not taken:
            return None
        parts = [part for part in taken if made_of(module, part) is MISSING and hasattr(module, "__path__")]
        missing = [f"{name}.{part}" for part in parts if f"{name}.{part}" not in sys.modules]
        return first_import(missing[0]) if missing else Found(name, module, True)

    def is_trusted(self, name: str) -> bool:
        """Whether nothing of it is watched: a trusted module, or one of Python's that is there."""
        module = sys.modules.get(name)
        if module is not None:
            return name.partition(".")[0] in sys.stdlib_module_names or is_trusted_module(module, self.is_pure)
        if name.partition(".")[0] not in TRUSTED_ROOTS:
            return False
        try:
            importlib.import_module(name)
        except ImportError:
            return False
        return True


def follow_imports(analysis: Analysis, index: int, scope: Scope) -> None:
    """Read the modules that code imports, and what it takes of them. Those that are not installed may be by another
    call, if they are loaded or looked for elsewhere then."""
    for name in scope.absent:
        known = analysis.constant(list(sys.path))
        analysis.require(f"{name!r} not in modules and {analysis.constant(sys)}.path == {known}")
        analysis.report.append(f"module {name}: guard, not installed")
    for found, path, names, step in scope.watched:
        analysis.at = Reader(index, scope.code, step.line, step.name)
        try:
            _read_module(analysis, index, found.name)
            module = found.module
            if path is not None:  # beginning with the package: ``import a.b as c``
                module = _read_module(analysis, index, found.name.partition(".")[0])
                for name in path:
                    module = _read_name(analysis, index, module, name)
            for name, imported in names.items():
                _read_imported(analysis, index, scope, module, name, imported)
        except Refusal as refusal:
            raise refusal if refusal.placed else scope.refuse(str(refusal), step) from None


def _read_module(analysis: Analysis, index: int, name: str) -> types.ModuleType:
    module = sys.modules[name]
    if not isinstance(module, types.ModuleType):
        analysis.stand_ins.add(id(module))
    analysis.read(index, "import", name, module, f"modules[{name!r}]", f"module {name}")
    return module


def _read_name(analysis: Analysis, index: int, module: types.ModuleType, name: str) -> Any:
    return analysis.read_global(index, analysis.namespace(module), name, module)


def _read_imported(
    analysis: Analysis, index: int, scope: Scope, module: types.ModuleType, name: str, alias: bool
) -> None:
    value = made_of(module, name)
    if alias and isinstance(value, type):  # where it is used says what is read of it
        analysis.require(f"{analysis.place_of_global(module, name)} is {analysis.constant(value)}")
        return
    _read_name(analysis, index, module, name)
    if not alias:
        if isinstance(value, types.ModuleType):
            raise Refusal(f"imports the module '{name}' under a name that is assigned otherwise too")
        analysis.note_use(value, scope, 0, None, False)
