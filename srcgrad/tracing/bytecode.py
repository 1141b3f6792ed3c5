"""The bytecode of Python 3.11 to 3.14 as the few kinds of steps that decide what a function reads from outside."""

from __future__ import annotations

import dis
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from srcgrad.tracing.on_demand import MISSING, made_of
from srcgrad.tracing.purity import TRUSTED_ROOTS

__all__ = ["Find", "Found", "Imported", "Refusal", "Scope", "Step"]

_IGNORED: Final = frozenset(
    {"EXTENDED_ARG", "CACHE", "NOP", "PUSH_NULL", "PRECALL", "RESUME", "COPY_FREE_VARS", "MAKE_CELL", "NOT_TAKEN"}
)
_CALLED: Final = "LOAD_GLOBAL called"
"""A global that is loaded to be called, and by no other code than this."""
_KINDS: Final = {
    "LOAD_GLOBAL": "global",
    _CALLED: "global",
    "LOAD_DEREF": "free",
    "STORE_DEREF": "store",
    "DELETE_DEREF": "store",
    "LOAD_ATTR": "attribute",
    "LOAD_METHOD": "attribute",
    "IMPORT_NAME": "import",
    "IMPORT_FROM": "import from",
    "LOAD_CONST": "constant",
    "LOAD_SMALL_INT": "constant",
    "CALL": "call",
    "COPY": "copy",
    "IS_OP": "comparison",
    "COMPARE_OP": "comparison",
    "CONTAINS_OP": "comparison",
    "BINARY_OP": "binary",
    "BINARY_SUBSCR": "subscript",
    "STORE_GLOBAL": "store global",
}
_REFUSED: Final = {
    "LOAD_NAME": "reads the name '{}' from a namespace of its own",
    "LOAD_LOCALS": "reads its own namespace",
    "LOAD_CLASSDEREF": "defines a class",
    "LOAD_FROM_DICT_OR_DEREF": "defines a class",
    "LOAD_FROM_DICT_OR_GLOBALS": "defines a class",
    "LOAD_BUILD_CLASS": "defines a class",
    "LOAD_SUPER_ATTR": "uses super()",
    "LOAD_SUPER_METHOD": "uses super()",
    "STORE_GLOBAL": "assigns the global '{}'",
    "DELETE_GLOBAL": "deletes the global '{}'",
    "STORE_NAME": "assigns the name '{}' in a namespace of its own",
    "DELETE_NAME": "deletes the name '{}'",
    "STORE_ATTR": "assigns the attribute '{}'",
    "DELETE_ATTR": "deletes the attribute '{}'",
    "IMPORT_STAR": "imports every name of a module",
}
_IN_CLASSES: Final = {
    "LOAD_BUILD_CLASS": "other",
    "LOAD_LOCALS": "other",
    "LOAD_NAME": "global",
    "STORE_NAME": "other",
    "LOAD_CLASSDEREF": "free",
    "LOAD_FROM_DICT_OR_DEREF": "free",
    "LOAD_FROM_DICT_OR_GLOBALS": "global",
}
"""What the body of a class does, which is run anew at each call of the function that it stands in."""
_ASYNC: Final = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE


class Refusal(Exception):
    """Internal to the analysis: the function cannot be cached, because of what stands at `line` of `code`."""

    def __init__(
        self, reason: str, code: types.CodeType | None = None, line: int | None = None, name: Any = None
    ) -> None:
        """``name``: what is read there."""
        place = "" if code is None else f" ({code.co_filename}:{line or code.co_firstlineno})"
        super().__init__(reason + place)
        self.placed: Final = code is not None
        self.code, self.line, self.name = code, line, name


class Step(NamedTuple):
    """`kind` is "local", "store", "global", "free", "attribute", "import", "import from", "constant", "call", "copy",
    "binary", "comparison", "subscript", "store global", "store attribute" (of what ``base`` loads), "asking" (for
    `getattr` or `hasattr` of a name that is written out, which follows as an attribute), "asking for any" (for a call
    of them with a name that is computed, of `setattr` or of `vars`) or "other".

    `called`: a global or an attribute is loaded to be called.
    `joined`: another step than the one before may have come here, so that an attribute may be that of another value.
    `optional`: the attribute need not be there.
    `begins`: what is called by ``type(x)(y)`` begins here, with all before the parentheses; since Python 3.13 what
    follows it does.
    `only`: what a global, captured variable or attribute is loaded for where that is all: "append", to append to it,
    "count", for an augmented assignment, or "item append" and "item count", for the same of an item.
    """

    kind: str
    name: Any
    line: int | None
    joined: bool = False
    optional: bool = False
    called: bool = False
    begins: bool = False
    only: str = ""
    base: tuple[str, ...] = ()


class Found(NamedTuple):
    """A module that code imports, by its whole name; what is read of one that is `watched` is a guard or an input."""

    name: str
    module: types.ModuleType
    watched: bool


class Imported(NamedTuple):
    """What a local variable is bound to by ``import`` alone: a module, or what is read by that name of a `module`."""

    value: Any
    name: str
    module: types.ModuleType | None
    watched: bool


class Absent(NamedTuple):
    """A package that is not installed, so that importing it is an error."""

    name: str


Find = Callable[[str, int, tuple[str, ...], bool], "Found | Absent | str | None"]
"""What finds a module by its name and level, and says why there is none. The third argument is what is taken of it, the
last one says that it is imported in any case.
"""

COMPUTING: Final = ("getattr", "hasattr", "setattr", "vars")
"""The built-ins that find or change attributes by names which the program computes."""
_IN_PLACE: Final = 13
"""From which number on the argument of BINARY_OP is that of an augmented assignment."""
_ITEM: Final = 26
"""The number of an item, which from Python 3.14 on is one of them."""
_INDICES: Final = ("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_FAST")
_LOADED: Final = ("local", "free", "global")
_REWRITTEN: Final = "@"
SUPER: Final = ("LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD")
"""How Python since 3.12 reads attributes of ``super()``."""
_METHODS: Final = {"LOAD_ATTR": "LOAD_METHOD", "LOAD_SUPER_ATTR": "LOAD_SUPER_METHOD"}
"""What an instruction is called here that loads an attribute to be called."""


_CACHE: Final = bytes([dis.opmap["CACHE"], 0])
_EXTENDED: Final = dis.opmap["EXTENDED_ARG"]
_JUMPS: Final = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
_MOST_KEPT: Final = 8192
"""The most bytes of code whose instructions are kept."""
Instruction = tuple[str, Any, int | None, bool]
_KEPT: Final[WeakKeyDictionary[types.CodeType, tuple[Instruction, ...]]] = WeakKeyDictionary()
"""What a call of a function that has no program looks at each time, for all of its callees."""


def opnames(code: types.CodeType) -> frozenset[str]:
    """The names of the operations in the code."""
    return frozenset([dis.opname[number] for number in set(code.co_code[::2])])


def instructions(code: types.CodeType) -> Iterable[Instruction]:
    """Of each instruction the operation, its argument, the line, and whether it is jumped to."""
    if len(code.co_code) > _MOST_KEPT:
        return _decoded(code)
    found = _KEPT.get(code)
    if found is None:
        found = _KEPT[code] = tuple(_decoded(code))
    return found


def _decoded(code: types.CodeType) -> Iterator[Instruction]:
    """Instructions of code without jumps are decoded once for all that are the same."""
    raw = code.co_code
    if code.co_exceptiontable or not _JUMPS.isdisjoint(raw[::2]):
        for found in dis.get_instructions(code):
            line = found.positions.lineno if found.positions is not None else None
            yield _named(found), found.argval, line, found.is_jump_target
        return
    lines: list[int | None] = []
    for start, stop, line in code.co_lines():
        lines += [line] * ((stop - start) // 2)
    units: list[int] = memoryview(raw).cast("H").tolist()
    pairs = {unit: unit.to_bytes(2, sys.byteorder) for unit in set(units)}
    keys, high = [], b""
    caches: dict[bytes, int] = {}
    """How many units each instruction has for what it caches: dis shows all that are more as instructions."""
    key, count = b"", 0
    for unit, line in zip(units, lines, strict=True):
        if unit == 0:  # of a cache
            count += 1
            continue
        caches[key], count = count, 0
        key = high + pairs[unit]
        if key[-2] == _EXTENDED:
            high = key
        elif key[-2]:
            keys.append((key, line))
            high = b""
    caches[key] = count
    known: dict[bytes, tuple[str, Any]] = dict.fromkeys([key for key, _ in keys], ("", None))
    each = code.replace(co_code=b"".join([key + caches[key] * _CACHE for key in known]), co_linetable=b"")
    decoded = [item for item in dis.get_instructions(each) if item.opcode not in (0, _EXTENDED)]
    for key, item in zip(known, decoded, strict=True):
        known[key] = _named(item), item.argval
    for key, line in keys:
        operation, argument = known[key]
        yield operation, argument, line, False


def _named(found: dis.Instruction) -> str:
    """The operation; the lowest bit of the argument says of a global, and since Python 3.12 of an attribute, also of
    ``super()``, that it is loaded to be called.
    """
    if found.opname == "LOAD_GLOBAL" and (found.arg or 0) & 1:
        return _CALLED
    method = found.opname in _METHODS and sys.version_info >= (3, 12) and (found.arg or 0) & 1
    return _METHODS[found.opname] if method else found.opname


@cache
def _moves(operation: str) -> tuple[str, ...]:
    """What an instruction does to local variables: from 3.13 on one may move two, as STORE_FAST_LOAD_FAST does."""
    if "_FAST" not in operation or operation == "LOAD_FAST_AND_CLEAR":
        return ()
    return tuple(part for part in operation.split("_") if part in ("LOAD", "STORE", "DELETE"))


def _steps(code: types.CodeType, deep: bool, stores: bool) -> Iterator[Step]:
    cells = frozenset(code.co_cellvars) | frozenset(code.co_freevars)
    joined = False
    base: tuple[str, ...] = ()
    holder: tuple[str, ...] = ()
    """Of what an index follows that one instruction loads."""
    copied: list[tuple[str, ...]] = [()]
    before = ""
    own = {"__annotations__"}  # the names that the body of a class has assigned
    null = False
    for operation, argument, line, target in instructions(code):
        joined |= target
        if operation == "PUSH_NULL":
            null = True
        if operation in _IGNORED:
            continue
        begins, null = null, False
        if operation == "STORE_ATTR" and argument == "__class__":  # no copy of an object notes that
            raise Refusal(_REFUSED[operation].format(argument), code, line, argument)
        augmented = before == "COPY" and operation == "LOAD_ATTR" and not target
        before = operation
        if not deep:
            pass
        elif operation == "COPY":  # what an augmented assignment stores into
            copied.append(base)
        elif operation == "SWAP":
            base = copied.pop() if len(copied) > 1 else ()
        elif operation == "LOAD_ATTR" and base:
            base, holder = (*base, argument), ()
        elif holder[:1] == ("local",) and _is_item(operation, argument) and not target:  # copied with its holder
            base, holder = ("local", ""), ()
        elif operation not in ("LOAD_ATTR", "STORE_ATTR", "DELETE_ATTR"):
            last, base = base, _base(operation, argument, code)
            pair = operation.startswith("LOAD_FAST") and isinstance(argument, tuple)
            holder = base if pair else last if operation.startswith(_INDICES) and not target else ()
        elif base[:1] == ("local",) and operation != "LOAD_ATTR":  # objects from outside are copied, and watched
            yield Step("other", argument, line)
            continue
        elif base and operation == "STORE_ATTR":
            yield Step("store attribute", argument, line, base=base)
            continue
        if deep and operation in SUPER:
            yield Step("attribute", argument, line, True, called=operation == "LOAD_SUPER_METHOD")
            continue
        if stores and operation in ("STORE_ATTR", "DELETE_ATTR"):
            yield Step("other", argument, line)
            continue
        if (
            deep
            and operation in _IN_CLASSES
            and not (operation == "STORE_NAME" and _JUMPS.intersection(code.co_code[::2]))
        ):
            own |= {argument} if operation == "STORE_NAME" else set()
            kind = "other" if argument in own else _IN_CLASSES[operation]
            yield Step(kind, argument, line, joined)
            joined = False
            continue
        if operation in _REFUSED and not (deep and operation == "STORE_GLOBAL"):
            raise Refusal(_REFUSED[operation].format(argument), code, line, argument)
        verbs = _moves(operation)
        if verbs:
            names = argument if isinstance(argument, tuple) else (argument,)
            for verb, name in zip(verbs, names, strict=True):
                # A cell is read by LOAD_DEREF; LOAD_FAST on one only hands the cell itself to a closure.
                if verb != "LOAD" or name not in cells:
                    yield Step("local" if verb == "LOAD" else "store", name, line, begins=begins)
                    begins = False
        else:
            kind, only = _KINDS.get(operation, "other"), "count" if augmented else ""
            kind = "subscript" if kind == "binary" and argument == _ITEM else kind
            called = operation in (_CALLED, "LOAD_METHOD")
            yield Step(kind, argument, line, joined, called=called, begins=begins, only=only)
        joined = False


def _is_item(operation: str, argument: Any) -> bool:
    return operation == "BINARY_SUBSCR" or (operation == "BINARY_OP" and argument == _ITEM)


def _base(operation: str, argument: Any, code: types.CodeType) -> tuple[str, ...]:
    """From where an instruction loads an object: "local", "global" or "free", and by which name; attributes follow."""
    if operation.startswith("LOAD_FAST"):
        return "local", ""
    if operation == "LOAD_DEREF":
        return ("local", "") if argument in code.co_cellvars else ("free", argument)
    return ("global", argument) if operation == "LOAD_GLOBAL" else ()


def _asked(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with ``getattr(x.y, "name")`` as the attribute that it reads, other calls of it as questions."""
    found = list(steps)
    for index, step in enumerate(steps):
        if step.kind != "global" or step.name not in COMPUTING:
            continue
        if step.called and steps[index + 1].kind != "call":  # without arguments it is of the code itself
            found[index] = step._replace(kind="asking for any")
        if step.name in ("setattr", "vars"):
            continue
        place = _behind(steps, index + 1, _LOADED)
        if place is not None and steps[place].kind == "constant" and _ends(steps, place + 1):
            name = steps[place].name
            if isinstance(name, str) and name.isidentifier() and (step.name == "hasattr" or name[:2] != "__"):
                found[index] = step._replace(kind="asking")
                found[place] = Step("attribute", name, step.line, optional=True)
    return tuple(found)


def _as_written(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps without what pytest has put into the code of assertions to tell why one fails: names that no source
    can have, read with one attribute.
    """
    if not any(step.kind == "global" and step.name[0] == _REWRITTEN for step in steps):
        return steps
    found = list(steps)
    for place, step in enumerate(steps):
        if step.kind == "global" and step.name[0] == _REWRITTEN:
            found[place] = step._replace(kind="other")
            if steps[place + 1].kind == "attribute":
                found[place + 1] = steps[place + 1]._replace(kind="other")
    return tuple(found)


def _journals(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with what names and attributes are loaded for, where that is only to append or to count."""
    found = list(steps)
    for place, step in enumerate(steps):
        if step.kind not in ("global", "free", "attribute") or step.only:
            continue
        after = [following._replace(line=None) for following in steps[place + 1 : place + 6]]
        kinds = [following.kind for following in after]
        if any(following.joined for following in after[:4]):
            continue
        constant = kinds[:1] == ["constant"]
        if kinds[:1] == ["attribute"] and after[0].name == "append":
            found[place] = step._replace(only="append")
        elif constant and kinds[1:3] == ["subscript", "attribute"] and after[2].name == "append":
            found[place] = step._replace(only="item append")
        elif constant and kinds[1:4] == ["copy", "copy", "subscript"] and (after[1].name, after[2].name) == (2, 2):
            found[place] = step._replace(only="item count")
        elif constant and kinds[1:2] == ["binary"] and after[1].name >= _IN_PLACE and step.kind != "attribute":
            stored = {"global": "store global", "free": "store"}[step.kind]
            if kinds[2:3] == [stored] and after[2].name == step.name:
                found[place] = step._replace(only="count")
                found[place + 3] = steps[place + 3]._replace(kind="other")
    return tuple(found)


def _behind(steps: tuple[Step, ...], place: int, kinds: tuple[str, ...]) -> int | None:
    """The place behind a value that is loaded there, and behind attributes of it; None if there is none."""
    if place >= len(steps) or steps[place].kind not in kinds:
        return None
    place += 1
    while place < len(steps) and steps[place].kind == "attribute":
        place += 1
    return place if place < len(steps) else None


def _ends(steps: tuple[Step, ...], place: int) -> bool:
    """Whether a call of two arguments follows, or a third one and its call: a text before may begin an expression."""
    if place < len(steps) and steps[place].kind == "call":
        return bool(steps[place].name == 2)
    behind = _behind(steps, place, (*_LOADED, "constant"))
    return behind is not None and steps[behind].kind == "call" and steps[behind].name == 3


class Scope:
    """One code object inside the function analysed: its steps, the modules it imports, and the scope around it."""

    def __init__(
        self,
        code: types.CodeType,
        parent: Scope | None,
        find: Find,
        deep: bool = False,
        stores: bool = False,
    ) -> None:
        """``find``: the modules that it imports; ``deep``: ``super()`` is followed; ``stores``: attributes may be
        assigned.
        """
        if code.co_flags & _ASYNC:
            raise Refusal(f"'{code.co_name}' is asynchronous", code)
        for name in set(code.co_cellvars) & set(code.co_freevars):
            # A comprehension inlined from Python 3.12 on: its variable and the captured one cannot be told apart by
            # name.
            raise Refusal(f"'{name}' is captured and the variable of a comprehension", code)
        self.code: Final = code
        self.parent: Final = parent
        self.deep: Final = deep
        self.stores: Final = stores
        steps = _as_written(tuple(_steps(code, deep, stores)))
        self.steps: Final = _journals(_asked(steps)) if deep else steps
        self.aliases: Final[dict[str, Imported]] = {}
        self.imported: Final[list[tuple[Any, str, Step]]] = []
        """What is imported from modules that are not watched, but for modules."""
        self.watched: Final[list[tuple[Found, list[str] | None, dict[str, bool], Step]]] = []
        """Other imports: of a module, by which names from its package on (none of ``from``), and what is taken of it,
        whether under a name in `aliases`.
        """
        self.absent: Final[list[str]] = []
        """Packages that it would import and that are not installed."""
        self.among_others: Final[list[types.ModuleType]] = []
        """Modules under names that are assigned otherwise too, so that any local value may be one."""
        self.find: Final = find
        self._find_imports(find)

    def nested(self) -> list[types.CodeType]:
        """Code objects of the functions, lambdas and comprehensions written inside, without annotations that nobody
        evaluates.
        """
        inner = [constant for constant in self.code.co_consts if isinstance(constant, types.CodeType)]
        return [code for code in inner if code.co_name != "__annotate__"]

    def owner(self, name: str) -> Scope | None:
        """The scope inside the analysed function that the cell variable `name` belongs to; None if it is captured from
        outside.
        """
        scope: Scope | None = self
        while scope is not None:
            if name in scope.code.co_cellvars:
                return scope
            scope = scope.parent
        return None

    def alias(self, step: Step) -> Imported | None:
        """What is imported under the name that a step reads, if something is that is found again at each call."""
        if step.kind == "local":
            return self.aliases.get(step.name)
        owner = self.owner(step.name) if step.kind == "free" else None
        return None if owner is None else owner.aliases.get(step.name)

    def refuse(self, reason: str, step: Step | None = None) -> Refusal:
        return Refusal(reason, self.code, *((None, None) if step is None else (step.line, step.name)))

    def _find_imports(self, find: Find) -> None:
        bound: dict[str, int] = {}
        otherwise: set[str] = set()
        watched: list[tuple[Found, list[str] | None, list[tuple[str, str]], Step]] = []
        for index, step in enumerate(self.steps):
            if step.kind != "import":
                continue
            level, names = self.steps[index - 2].name, self.steps[index - 1].name
            begins = self.parent is None and _is_begun(self.steps[: index - 2])
            found = find(step.name, level, names or (), begins)
            if isinstance(found, str):
                raise self.refuse(found, step)
            if isinstance(found, Absent):
                self.absent.append(found.name)
            elif found is None or (found.watched and not self.code.co_flags & inspect.CO_OPTIMIZED):
                raise self.refuse(f"imports '{step.name}'", step)
            following = list(_bindings(self.steps, index + 1, len(names) if names else 1))
            for path, variable in following:
                bound[variable] = bound.get(variable, 0) + 1
                if isinstance(found, Absent):
                    continue
                imported = _imported(found, bool(names), path)
                if isinstance(imported.value, types.ModuleType) or found.watched:
                    if self.aliases.setdefault(variable, imported).value is not imported.value:
                        if not found.watched:
                            raise self.refuse(f"imports two modules as '{variable}'", step)
                        otherwise.add(variable)
                else:
                    self.imported.append((imported.value, f"{step.name}.{path[-1]}", step))
            if isinstance(found, Found) and found.watched:
                whole = None if names else following[0][0]
                watched.append((found, whole, [(path[-1], name) for path, name in following if names], step))
        arguments = self.code.co_varnames[: self.code.co_argcount + self.code.co_kwonlyargcount]
        for variable, imported in list(self.aliases.items()):
            stores = sum(step.kind == "store" and step.name == variable for step in self.steps)
            if variable in otherwise or stores != bound[variable] or variable in arguments or self._is_set(variable):
                if isinstance(imported.value, types.ModuleType) and (imported.module is None or not imported.watched):
                    if imported.value.__name__.partition(".")[0] not in TRUSTED_ROOTS:
                        raise self.refuse(f"assigns '{variable}', which is also the name of a module here")
                    self.among_others.append(imported.value)
                del self.aliases[variable]
        for found, whole, pairs, step in watched:
            self.watched.append((found, whole, {name: variable in self.aliases for name, variable in pairs}, step))

    def _is_set(self, variable: str) -> bool:
        """Whether a function inside assigns a variable of this one."""
        if variable not in self.code.co_cellvars:
            return False
        pending = self.nested()
        for code in pending:
            if variable in code.co_freevars:
                pending += [inner for inner in code.co_consts if isinstance(inner, types.CodeType)]
                for operation, argument, *_ in instructions(code):
                    if argument == variable and operation in ("STORE_DEREF", "DELETE_DEREF"):
                        return True
        return False


def _is_begun(steps: tuple[Step, ...]) -> bool:
    """Whether nothing stands before that could lead elsewhere: other imports alone."""
    return all(
        step.kind in ("constant", "import", "import from", "store") or (step.kind, step.name) == ("other", None)
        for step in steps
    )


def _imported(found: Found, from_it: bool, path: list[str]) -> Imported:
    """What a variable is bound to, by these names taken of a module or of its package."""
    if not found.watched:
        value: Any = found.module
        if from_it:
            value = getattr(value, path[-1], None)
        elif not path:
            value = importlib.import_module(found.name.partition(".")[0])
        return Imported(value, found.name, None, False)
    if from_it:
        return Imported(made_of(found.module, path[-1]), path[-1], found.module, True)
    above, value = None, sys.modules[found.name.partition(".")[0]]
    for name in path:
        above, value = value, vars(value).get(name, MISSING)
        if not isinstance(value, types.ModuleType):
            break
    return Imported(value, path[-1] if path else found.name, above, True)


def _bindings(steps: tuple[Step, ...], start: int, count: int) -> Iterator[tuple[list[str], str]]:
    """The next `count` stores after an import, each with the names that IMPORT_FROM took before it."""
    path: list[str] = []
    for step in steps[start:]:
        if step.kind == "import from":
            path.append(step.name)
        elif step.kind == "store":
            yield path, step.name
            path, count = [], count - 1
            if count == 0:
                return
