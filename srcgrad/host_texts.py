"""What a program calls in Python, as functions of the module that `srcgrad.source` writes.

Each `host_call` of a program names one of its sites, which are objects of the trace. Here each becomes a function of
the module: prints with their texts, messages, draws, errors. Lists and objects that the function changes, and random
generators, are parameters of the program already; a module is given themselves, where a program in a call is given
their numbers. What else belongs to the user, a file to print to, say, is a name to be set in the module.
"""

from __future__ import annotations

import builtins
import enum
import functools
import operator
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.backends.numpy.expressions import HELPERS
from srcgrad.backends.numpy.literals import Names, array_text, typed_text
from srcgrad.errors import UnsupportedError
from srcgrad.ir.core import Function, Literal, Operation, Region
from srcgrad.ir.types import ArrayType
from srcgrad.tracing import journals
from srcgrad.tracing.conversion.choices import KeySite
from srcgrad.tracing.conversion.effects import RaiseSite
from srcgrad.tracing.conversion.logs import emitted, emitted_by_root
from srcgrad.tracing.conversion.placed_texts import PlacedText
from srcgrad.tracing.conversion.texts import HostSite, Made, Place, Text, print_to
from srcgrad.tracing.hosts import CLOCKS, OTHERS, FunctionSite, MakeSite, MethodSite
from srcgrad.tracing.trace import UnboundSite

OPERATORS: Final = dict(
    zip(journals.OPERATORS, ("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>"), strict=True)
)
"""The symbols of what counting does: ``+`` of ``calls += 1``."""
CHANGES: Final = (journals.append, journals.count, journals.store)
"""What is done with the container or object that is the first operand."""
OBJECTS: Final = '''objects = {-1: np.random, -2: random}


def object_of(number):
    """An object that the program works with: given to it, or made by it and known to it by a number."""
    return objects[int(number)] if isinstance(number, (int, np.integer)) else number


def number_of(thing):
    """The number of an object that the program has made."""
    objects[len(objects)] = thing
    return np.int64(len(objects) - 1)'''
LEAVES: Final = '''def leaves_of(found):
    """The numbers and arrays in what a call gives."""
    if not isinstance(found, (list, tuple)):
        return () if found is None else (found,)
    return tuple(leaf for item in found for leaf in leaves_of(item))'''
TAKEN: Final = (
    *("objects", "object_of", "number_of", "leaves_of", "sites"),
    *("logging", "random", "sys", "time", "warnings"),
)
"""Names that a module may have whatever its functions are."""
CONVERSIONS: Final = {ord("s"): "str", ord("r"): "repr", ord("a"): "ascii"}


class HostTexts:
    """The parts of a module for the sites that its functions call."""

    def __init__(self, functions: Sequence[Function], sites: Sequence[Any]) -> None:
        self.names: Final = Names([*HELPERS, *TAKEN, *[function.name for function in functions]])
        self.imports: Final[set[str]] = set()
        self.placeholders: Final[dict[int, tuple[str, str]]] = {}
        """Of things that a module cannot hold, by identity: the name and what it stands for."""
        self.classes: Final[dict[type, tuple[str, str]]] = {}
        """The user's classes of errors and warnings: their names, and the texts of classes in their place."""
        self.held: Final[list[Any]] = []
        self.helpers: Final[dict[str, None]] = {}
        called: dict[int, Operation] = {}
        for function in functions:
            for operation in host_calls(function):
                called.setdefault(operation.attrs["site"], operation)
        self.functions: Final = {number: self.function(number, sites[number], called[number]) for number in called}

    def parts(self) -> list[str]:
        """The texts that stand before the program, in order."""
        if not self.functions:
            return []
        found = []
        if self.placeholders:
            found.append("\n".join(f"{name} = None  # {what}" for name, what in self.placeholders.values()))
        found += [text for _, text in self.classes.values()]
        found += list(self.helpers)
        found += [text for _, text in self.functions.values()]
        table = ", ".join(f"{number}: {name}" for number, (name, _) in self.functions.items())
        return [*found, f"sites = {{{table}}}"]

    def taken(self) -> list[str]:
        """The names that the module has besides the program's."""
        classes, placeholders = self.classes.values(), self.placeholders.values()
        return [*TAKEN, *[name for name, _ in (*classes, *placeholders, *self.functions.values())]]

    def description(self) -> list[str]:
        """What a reader must put into the module, as lines of its docstring."""
        found = []
        if self.placeholders:
            found += ["", "Names to be set in this module, which are the caller's own:"]
            found += [f"    {name}: {what}" for name, what in self.placeholders.values()]
        if self.classes:
            found += ["", "Classes that stand for the caller's own:"]
            found += [f"    {name}: {kind.__module__}.{kind.__qualname__}" for kind, (name, _) in self.classes.items()]
        return found

    # --- sites ---------------------------------------------------------------------------------------
    def function(self, number: int, site: Any, operation: Operation) -> tuple[str, str]:
        """The function of one site: its name and text."""
        results = len(operation.attrs["results"])
        names = Names([*TAKEN, *dir(builtins), "np"])
        params = [names.named(getattr(operand, "name", None) or "value") for operand in operation.operands]
        verb, lines = self.body(site, params, results)
        name = self.names.named(f"{verb}_{number}")
        place = "" if operation.span is None else f"    # {operation.span.label()}\n"
        return name, f"def {name}({', '.join(params)}):\n{place}" + "\n".join(f"    {line}" for line in lines)

    def body(self, site: Any, params: list[str], results: int) -> tuple[str, list[str]]:
        """What a site does, in a word, and the lines that do it."""
        if isinstance(site, UnboundSite):
            return "raise", [f"if not {params[0]}:", f"    {unbound(site.name)}"]
        if isinstance(site, KeySite):
            given = f"int({params[0]})"
            return "raise", [f"if {given} not in {sorted(site.keys)}:", f"    raise KeyError({given})"]
        if isinstance(site, RaiseSite):
            return "raise", [f"if {params[0]}:", *[f"    {line}" for line in self.raising(site, params[1:])]]
        if isinstance(site, HostSite):
            return self.calling(site, params)
        if isinstance(site, MethodSite):
            self.needs_objects()
            call = f"object_of({params[0]}).{site.name}({self.arguments(site.args, site.kwargs)})"
            return "draw", [self.returned(call, results)]
        if isinstance(site, MakeSite):
            self.needs_objects()
            return "make", [f"return number_of({self.function_call(site)})"]
        if isinstance(site, FunctionSite):
            call = self.function_call(site)
            return "call", [self.returned(call, results) if results else call]
        what = getattr(site, "name", None) or getattr(site, "__name__", type(site).__name__)
        raise UnsupportedError(
            f"a module cannot call {what}, which the program asks when it runs",
            hint=f"run the program itself; for its source, make what {what} gives an argument of the function",
        )

    def needs_objects(self) -> None:
        self.imports.add("random")
        self.helpers[OBJECTS] = None

    def returned(self, call: str, results: int) -> str:
        if results == 1:
            return f"return {call}"
        self.helpers[LEAVES] = None
        return f"return leaves_of({call})"

    def function_call(self, site: FunctionSite) -> str:
        function, args = site.function, site.args
        if function is warnings.warn_explicit:
            args = (*args[:2], os.path.basename(args[2]), *args[3:])
            module = "warnings"
        elif function in CLOCKS or function.__module__ == "time":
            module = "time"
        else:
            module = "random" if function is random.Random else "np.random"
        if module != "np.random":
            self.imports.add(module)
        return f"{module}.{function.__name__}({self.arguments(args, site.kwargs)})"

    def raising(self, site: RaiseSite, params: list[str]) -> list[str]:
        given, values = self.given(site.made, params)
        args, names = site.made.arguments
        error = site.error
        made = f"{self.text(type(error), given)}({self.arguments(args, {}, given)})"
        behind = ""
        if error.__suppress_context__:
            behind = f" from {self.text(error.__cause__)}"
        if not names:
            return [*values(made), f"raise {made}{behind}"]
        attributes = f"vars(error).update({self.text(names, given)})"
        return [*values(made + attributes), f"error = {made}", attributes, f"raise error{behind}"]

    def calling(self, site: HostSite, params: list[str]) -> tuple[str, list[str]]:
        given, values = self.given(site, params)
        function: Any = site.function
        kind = function.func if isinstance(function, functools.partial) else function
        if kind in CHANGES:
            verb, line = self.changing(kind, function.args, params[0], self.text(site.arguments[1], given))
        elif kind in (emitted, emitted_by_root):
            verb, line = "log", self.logging(kind, function.args, self.arguments(site.arguments, {}, given))
        elif kind is print_to:
            self.imports.add("sys")
            options = [self.arguments(site.arguments, site.options, given), f"file=sys.{function.args[0]}"]
            verb, line = "print", f"print({', '.join(filter(None, options))})"
        elif kind is warnings.warn_explicit:
            self.imports.add("warnings")
            message, category, file, line = site.arguments
            place = [message, category, os.path.basename(file), line]
            verb, line = "warn", f"warnings.warn_explicit({self.arguments(place, site.options, given)})"
        elif kind is print:
            verb, line = "print", f"print({self.arguments(site.arguments, site.options, given)})"
        else:
            raise UnsupportedError(f"a module cannot call {getattr(kind, '__name__', kind)}")
        return verb, [*values(line), line]

    def changing(self, kind: Any, known: Sequence[Any], target: str, value: str) -> tuple[str, str]:
        """A change of a list, of a number or of an object's attribute. A number is given as a list that holds it."""
        key = known[-1]
        if kind is journals.store:
            return "store", f"setattr({target}, {key!r}, {value})"
        if kind is journals.append:
            return "append", f"{target}{'' if key is None else f'[{self.text(key)}]'}.append({value})"
        return "count", f"{target}[{0 if key is None else self.text(key)}] {OPERATORS[known[0]]}= {value}"

    def logging(self, kind: Any, known: Sequence[Any], arguments: str) -> str:
        logger, level, _, extra = known
        self.imports.add("logging")
        more = "" if extra is None else f", extra={self.text(extra)}"
        owner = f".getLogger({logger.name!r})" if kind is emitted else ""
        return f"logging{owner}.log({level}, {arguments}{more})"

    def given(self, site: HostSite, params: Sequence[str]) -> tuple[dict[int, str], Callable[[str], list[str]]]:
        """The parameters by the traced values that they stand for, and the lines that make Python's objects of them."""
        names = dict(zip(site.keys, params, strict=True))
        kinds = dict(zip(names.values(), dict(zip(site.keys, site.kinds, strict=True)).values(), strict=True))
        changed = isinstance(site.function, functools.partial) and site.function.func in CHANGES

        def lines(text: str) -> list[str]:
            found = []
            for position, (name, (scalar, weak)) in enumerate(kinds.items()):
                if (position or not changed) and name in words(text):
                    made = "np.asarray({}).item()" if weak else "np.asarray({})[()]" if scalar else "np.array({})"
                    found.append(f"{name} = {made.format(name)}")
            return found

        return names, lines

    # --- values --------------------------------------------------------------------------------------
    def arguments(self, args: Sequence[Any], kwargs: dict[str, Any], given: dict[int, str] | None = None) -> str:
        return ", ".join(
            [*[self.text(arg, given) for arg in args], *[f"{name}={self.text(v, given)}" for name, v in kwargs.items()]]
        )

    def text(self, thing: Any, given: dict[int, str] | None = None) -> str:
        """A value as an expression."""
        kind = type(thing)
        if kind is Place:
            assert given is not None
            return given[thing.key]
        if kind is Text:
            return self.joined(thing, given)
        if kind is PlacedText:
            return f"{self.container(thing.texts, given)}[{self.text(thing.place, given)}]"
        if kind in (list, tuple, set, frozenset, dict):
            return self.container(thing, given)
        if kind in (type(None), bool, int, str, bytes) or thing is Ellipsis:
            return repr(thing)
        if kind in (float, complex):
            return number_text(thing)
        if isinstance(thing, np.generic) and thing.dtype.kind in "biufc":
            return typed_text(Literal(np.asarray(thing), ArrayType(thing.dtype, ())))
        if kind is np.ndarray and thing.dtype.kind in "biufc":
            return array_text(thing)
        if isinstance(thing, type):
            return self.class_text(thing)
        if isinstance(thing, BaseException):
            return f"{self.class_text(kind)}({self.arguments(thing.args, {}, given)})"
        for name in ("stdout", "stderr"):
            if thing is getattr(sys, name):
                self.imports.add("sys")
                return f"sys.{name}"
        return self.placeholder(thing)

    def container(self, thing: Any, given: dict[int, str] | None) -> str:
        if type(thing) is dict:
            return "{" + ", ".join(f"{self.text(k)}: {self.text(v, given)}" for k, v in thing.items()) + "}"
        items = ", ".join(self.text(item, given) for item in thing)
        if type(thing) is tuple:
            return f"({items},)" if len(thing) == 1 else f"({items})"
        if type(thing) is list:
            return f"[{items}]"
        return f"{type(thing).__name__}([{items}])"

    def class_text(self, kind: type) -> str:
        """A class: Python's and NumPy's by name; an error of the user's by a class with the same name and base."""
        if kind.__module__ == "builtins" and hasattr(builtins, kind.__name__):
            return kind.__name__
        if kind is np.linalg.LinAlgError:
            return "np.linalg.LinAlgError"
        if getattr(np, kind.__name__, None) is kind:
            return f"np.{kind.__name__}"
        if not issubclass(kind, BaseException):
            return self.placeholder(kind)
        if kind not in self.classes:
            base = next(base for base in kind.__mro__ if base.__module__ == "builtins")
            name = self.names.named(kind.__name__)
            text = f'class {name}({base.__name__}):\n    """Stands for {kind.__module__}.{kind.__qualname__}."""'
            self.classes[kind] = (name, text)
        return self.classes[kind][0]

    def placeholder(self, thing: Any) -> str:
        known = self.placeholders.get(id(thing))
        if known is None:
            kind = type(thing).__name__
            name = self.names.named(f"the_{kind.lower()}")
            what = str(thing) if isinstance(thing, enum.Enum) else f"an object of the class {kind}"
            known = self.placeholders[id(thing)] = (name, f"stands for {what}")
            self.held.append(thing)
        return known[0]

    def joined(self, made: Text, given: dict[int, str] | None) -> str:
        """A text with values in it: an f-string as far as its values are parameters."""
        found: list[str] = []
        inside = ""
        for part in made.parts:
            if isinstance(part, str):
                inside += quoted(part.replace("{", "{{").replace("}", "}}"))
                continue
            short = self.field(part, given)
            if short is not None:
                inside += short
                continue
            found += [f'f"{inside}"', self.part(part, given)] if inside else [self.part(part, given)]
            inside = ""
        found += [f'f"{inside}"'] if inside or not found else []
        return found[0] if len(found) == 1 else f"({' + '.join(found)})"

    def field(self, part: Any, given: dict[int, str] | None) -> str | None:
        """A value as it stands in an f-string, if it is a parameter in a plain format."""
        if not isinstance(part, tuple) or isinstance(part, Made) or type(part[0]) is not Place:
            return None
        value, conversion, spec = part
        if not isinstance(spec, str) or set(spec) & set("{}\"'\\"):
            return None
        mark = f"!{chr(conversion)}" if conversion in CONVERSIONS else ""
        return f"{{{self.text(value, given)}{mark}{':' * bool(spec)}{spec}}}"

    def part(self, part: Any, given: dict[int, str] | None) -> str:
        if isinstance(part, Text):
            return self.joined(part, given)
        if isinstance(part, Made):
            arguments = self.arguments(part.arguments, part.options, given)
            if part.function is operator.mod:
                return f"({self.text(part.arguments[0], given)} % {self.text(part.arguments[1], given)})"
            return f"str.{part.function.__name__}({arguments})"
        value, conversion, spec = part
        inner = self.text(value, given)
        inner = f"{CONVERSIONS[conversion]}({inner})" if conversion in CONVERSIONS else inner
        return inner if conversion in CONVERSIONS and spec == "" else f"format({inner}, {self.text(spec, given)})"


def host_calls(region: Region | Function) -> Iterator[Operation]:
    for operation in region.operations:
        if operation.op.name == "host_call":
            yield operation
        for inner in operation.regions:
            yield from host_calls(inner)


def unbound(name: str) -> str:
    if name.endswith("]"):
        return "raise IndexError('list index out of range')"
    said = f"cannot access local variable {name!r} where it is not associated with a value"
    return f"raise UnboundLocalError({said!r})"


def words(text: str) -> set[str]:
    """The names in a text, and more that are in strings."""
    return set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())


def quoted(text: str) -> str:
    """A text as it stands between double quotes."""
    return "".join(c if c == "'" else '\\"' if c == '"' else repr(c)[1:-1] for c in text)


def number_text(number: complex) -> str:
    """A float or a complex number, those that are not finite too."""
    if isinstance(number, complex):
        return f"complex({number_text(number.real)}, {number_text(number.imag)})"
    return repr(number) if np.isfinite(number) else f"float('{number}')"


def given_as(leaf: Any) -> str | None:
    """What a module takes for a leaf that a program in a call knows by its number."""
    if isinstance(leaf, journals.Appended):
        return "a list, to which it appends"
    if isinstance(leaf, (journals.Named, journals.Counted)):
        return "a list of one number, which it changes"
    if isinstance(leaf, journals.Owned):
        return "an object, whose attributes it assigns"
    if isinstance(leaf, journals.Journal):
        return f"a {type(leaf.target).__name__}, whose items it changes"
    return f"a {type(leaf).__name__}" if type(leaf) in OTHERS else None
