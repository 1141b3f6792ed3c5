"""Captured containers, objects, methods and classes, for converted functions.

`ObjectAnalysis` follows what `analysis` refuses: lists, dicts and tuples element by element, the attributes of objects
that any of the code reads, bound methods, and the methods of the classes that are reached. A trace is given copies of
the containers and objects; one that the function changes makes it no single program (`Watch`).
"""

from __future__ import annotations

import functools
import itertools
import operator
import sys
import types
from abc import ABCMeta, get_cache_token
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Any, Final

from srcgrad.tracing.alike import items_of, same_items
from srcgrad.tracing.analysis import Analysis
from srcgrad.tracing.built_on import built_on, items_in, own_attributes, viewed
from srcgrad.tracing.bytecode import Refusal, Scope, Step
from srcgrad.tracing.caches import keep_caches, read_answers, read_results, require_new_results
from srcgrad.tracing.class_uses import (
    begins_call,
    is_asked_for_methods,
    is_compared,
    is_only_called,
    is_only_compared,
    is_only_named,
    is_only_told_apart,
)
from srcgrad.tracing.conversion.classes import twin_of
from srcgrad.tracing.conversion.convert import code_without, convert_code, is_user_function
from srcgrad.tracing.conversion.scipy_rules import is_distribution, is_joint
from srcgrad.tracing.descriptors import is_descriptor
from srcgrad.tracing.dispatching import DISPATCHED
from srcgrad.tracing.frozen import ASKED, HOMES
from srcgrad.tracing.held import holding, is_slotted
from srcgrad.tracing.hosts import (
    ASKED_OF_LOGGERS,
    LEVELS,
    LOGGERS_KNOW,
    STREAMS,
    STREAMS_DO,
    is_host_function,
    is_log_function,
    is_logger,
)
from srcgrad.tracing.imports import first_imported
from srcgrad.tracing.jitted import made_of, path_in
from srcgrad.tracing.journaling import JournalReader, Place
from srcgrad.tracing.kept_results import CHANGING, is_asked
from srcgrad.tracing.members import compares_objects, has_class_patterns
from srcgrad.tracing.packing import FLOATS, are_apart, packing
from srcgrad.tracing.purity import impurity
from srcgrad.tracing.pytree import record_fields
from srcgrad.tracing.reached_nodes import CONTAINERS, DETERMINED, NodeAnalysis
from srcgrad.tracing.rebound import note_rebound, settle_rebound
from srcgrad.tracing.rebuild import COPIED, Edge, Hidden
from srcgrad.tracing.ruled_out import Codes, Reader, look_at, passing_over, require_conversion
from srcgrad.tracing.trace import REBINDING, STORES
from srcgrad.tracing.unasked import attribute
from srcgrad.tracing.users_classes import is_user_class

CACHES_KNOW: Final = frozenset({"cache_clear", "cache_info", "cache_parameters", "__wrapped__"})
DECIDING: Final = frozenset({bool, int, str})
BY_METHODS: Final = {"__getattribute__": "getattr", "__setattr__": "setattr"}
"""The methods that find or change attributes as built-ins do: ``object.__setattr__(self, name, value)``."""
NAMES_OF_KINDS: Final = {"logger": "logger", "cached": "cache", "asked": "context variable"}
MOST_ASKED: Final = 128
"""The most names that traces ask for: each is found by a trace of its own."""
DRAWING: Final = frozenset({"cdf", "logcdf", "rvs"})
"""What draws of distributions of several variables."""


def copies(value: Any) -> bool:
    """Whether this, or a module that has it, makes an object of another one by what its class says of copies."""
    return str(value.__name__ if isinstance(value, types.ModuleType) else attribute(value, "__module__")) in (
        *("copy", "copyreg", "pickle", "_pickle"),
    )


def is_whole_read(step: Step, then: Step | None) -> bool:
    """Whether an attribute is read for another thing than an attribute of it."""
    return step.kind == "attribute" and (then is None or then.kind != "attribute")


class ObjectAnalysis(NodeAnalysis):
    """The analysis of a function that is converted."""

    deep = True

    def __init__(
        self, is_pure: Callable[[object], bool], floats_static: bool, asked: frozenset[Hashable] = frozenset(),
        records: bool = True, plain: frozenset[Place] = frozenset(), unreached: Codes | None = None,
    ) -> None:  # fmt: skip
        """``asked``: the names that traces have asked for by `getattr` and its kin, and results of caches; ``records``:
        may be packed; ``plain``: what is no journal, although some of the code treats it so; ``unreached``: what is
        passed over.
        """
        super().__init__(is_pure, floats_static)
        self.unreached = unreached or {}
        self.begun = 0
        """How often the analysis has begun again to pass over blocks."""
        self.whole = False
        """Whether nothing is passed over from now on."""
        self.results = frozenset(name for name in asked if type(name) is not str)
        self.asked: Final = frozenset(name for name in asked if type(name) is str) - {STORES, REBINDING}
        self.plan.stores, self.plan.rebinds = STORES in asked, REBINDING in asked
        if self.plan.stores:  # traces have asked for what they may leave as it is
            self.local_attributes |= self.asked
        self.records: Final = records
        self.journals: Final = JournalReader(self, plain)
        self.packed: list[Any] = []
        """The records that are."""
        self.comparing = False
        """Whether any code compares objects by ``is``."""
        self.changing = False
        """Whether any method but those that make an object stores attributes."""
        self.streaming: types.CodeType | None = None
        """Code that reads the streams which are printed to."""
        self.logs = False
        """Whether there may be loggers, captured or asked for by their names."""
        self.joint: types.CodeType | None = None
        """Code that reads a distribution of several variables."""
        self.rebinding = False
        """Whether any code assigns globals."""
        self.ordered = False
        """Whether any code reads the attributes of objects one after the other."""

    def again(self) -> Analysis | None:
        """One without journals that are read elsewhere, and without packed records, where something else leads to one
        of these: it has to find the same object.
        """
        plain = self.journals.read_elsewhere()
        apart = are_apart(self.packed) and not any(id(record) in self.node_of for record in self.packed)
        if plain is None and apart:
            return None
        plain = self.journals.plain if plain is None else plain
        return self.anew(self.records and apart, plain, self.unreached)

    def anew(self, records: bool, plain: frozenset[Place], unreached: Codes) -> ObjectAnalysis:
        also = {STORES: self.plan.stores, REBINDING: self.plan.rebinds}
        asked = self.asked | self.results | {name for name, known in also.items() if known}
        other = ObjectAnalysis(self.is_pure, self.floats_static, asked, records, plain, unreached)
        other.begun = self.begun + (unreached is not self.unreached)
        return other

    def without(self, refusal: Refusal) -> Analysis | None:
        found = None if self.whole else passing_over(self, refusal)
        if found is None and (self.plan.rebinds or not self.rebinding):
            return None
        other = self.anew(self.records, self.journals.plain, self.unreached if found is None else found)
        other.plan.rebinds |= found is None
        return other

    def follow(self, classes: frozenset[type]) -> None:
        """Look at the methods of those that are the user's.

        What Python calls by itself is converted in records only: those that registered functions build have no twins,
        nor have the records in them.
        """
        records = all(record_fields(cls) is not None for cls in classes)
        for cls in sorted(classes, key=lambda cls: (cls.__module__, cls.__qualname__)):
            if is_user_class(cls) and (records or twin_of(cls) is None):
                self.read(0, "argument class", cls, cls, self.constant(cls), f"class {cls.__name__} of an argument")
                self.followed.add(cls)

    def visit(self, index: int) -> None:
        look_at(self, index)

    def visit_node(self, index: int) -> None:
        value, node = self.objects[index], self.plan.nodes[index]
        name = f"n{index}"
        if not index:
            read_answers(self)
        if node.kind == "method":
            self.read(index, "func", None, value.__func__, f"{name}.__func__", f"function of {node.label}")
            self.read(index, "self", None, value.__self__, f"{name}.__self__", f"object of {node.label}")
        elif node.kind == "cached":
            self.read(index, "cached", None, value.__wrapped__, f"{name}.__wrapped__", f"function of {node.label}")
        elif node.kind == "jitted":
            place = f"{name}{path_in(value)}"
            if isinstance(value, types.FunctionType):  # another function may hold the same one
                self.require(f"{name}.__code__ is {self.constant(value.__code__)}")
            self.read(index, "jitted", None, made_of(value), place, f"function of {node.label}")
        elif node.kind == "vectorized":
            self.read(index, "pyfunc", None, value.pyfunc, f"{name}.pyfunc", f"function of {node.label}")
        elif node.kind == "view":
            place = f"{self.constant(viewed)}({name})"
            self.read(index, "viewed", None, viewed(value), place, f"dict of {node.label}")
        elif node.kind == "container":
            if type(value) is defaultdict and value.default_factory is not None:
                place = f"{name}.default_factory"
                self.read(index, "factory", None, value.default_factory, place, f"factory of {node.label}")
            if isinstance(value, (dict, set)):
                for key in filter(self.is_followed, tuple(items_in(value))):
                    self.read(index, "key", key, key, self.constant(key), f"key {key.__name__} of {node.label}")
            if isinstance(value, set) or self.read_together(index, value):
                return
            items, held = items_in(value), name if built_on(type(value)) is None else f"i{index}"
            for key, element in list(items.items()) if isinstance(value, dict) else enumerate(items):
                shown = key.__name__ if isinstance(key, type) else repr(key)
                place = f"{held}[{self.constant(key) if not isinstance(key, (int, str)) else repr(key)}]"
                self.read(index, "item", key, element, place, f"{node.label}[{shown}]")
            if type(value) not in CONTAINERS and is_user_class(type(value)):
                self.read(index, "class", None, type(value), f"type({name})", f"class of {node.label}")
        elif node.kind in ("object", "constant"):
            self.read(index, "class", None, type(value), f"type({name})", f"class of {node.label}")
        elif node.kind == "class":
            self.visit_class(index, value)
        elif node.kind == "function" and value.__code__ is DISPATCHED:
            kinds = tuple(value.registry)
            self.require(f"tuple({name}.registry) == {self.constant(kinds)}")
            for kind in kinds:
                place = f"{name}.registry[{self.constant(kind)}]"
                label = f"{node.label} of {kind.__name__}"
                self.read(index, "registered", kind, value.registry[kind], place, label)
        elif node.kind not in ("frozen", "logger", "asked", "table", "sentinel"):
            super().visit(index)

    def read_together(self, index: int, container: Any) -> bool:
        """One guard for all constants in a large container and one hidden input for all floats; whether it is one."""
        items, label = items_of(container), self.plan.nodes[index].label
        static = self.constants["static_key"]
        found = packing(items, static, len(self.hidden)) if type(container) in CONTAINERS else None
        if found is None or (found.width and not self.records):
            return False
        if not found.width and FLOATS.isdisjoint(found.kinds):
            check = functools.partial(same_items, static=static, items=items, keys=found.keys)
            self.require(f"{self.constant(check)}(n{index})")
            self.report.append(f"{label}: guard, the same {len(items)} elements")
            return True
        if self.floats_static:
            return False
        if found.width:
            self.packed.extend(items)
        hidden = len(self.hidden)
        self.hidden.append(Hidden(f"floats of {label}", "floats"))
        self.lines.append(f"v{hidden} = {self.constant(found)}.read(n{index})")
        self.require(f"v{hidden} is not None")
        self.plan.nodes[index].edges.append(len(self.plan.edges))
        self.plan.edges.append(Edge("items", index, found, hidden, None))
        self.report.append(f"floats of {label}: hidden input (floats)")
        return True

    def scope_of(self, index: int, code: types.CodeType) -> Scope:
        stores = id(self.objects[index]) in self.methods
        passed = self.unreached.get((code, code.co_filename))
        if passed is not None and self.objects[index].__code__ is code:
            self.report += [f"not looked at: {reason}" for reason in sorted({reason for _, reason in passed})]
            code = code_without(code, code.co_filename, passed)
        self.changing |= self.note_code(code) and code.co_name not in ("__init__", "__post_init__")
        self.matching |= has_class_patterns(code)
        self.comparing = self.comparing or compares_objects(code)
        return Scope(code, None, self.finder(index), deep=True, stores=stores)

    def _scan(self, index: int, scope: Scope) -> None:
        following = itertools.zip_longest(scope.steps, scope.steps[1:])
        self.whole_reads |= {step.name for step, then in following if is_whole_read(step, then)}
        super()._scan(index, scope)

    def note_attribute(self, step: Step) -> None:
        self.noted.setdefault(step.name, self.at)
        if not self.journals.note(step):
            super().note_attribute(step)

    def _find(self, index: int, scope: Scope, step: Step, position: int | None = None) -> tuple[Any, str]:
        self.journals.only = "" if scope.alias(step) else step.only
        try:
            value, name = super()._find(index, scope, step, position)
        finally:
            self.journals.only = ""
        self.journals.looked_up(index, scope, step)
        self.note_use(value, scope, (position or 0) - 1, position, step.called)
        if value is type and position is not None and is_only_called(scope.steps, position):
            self.types_called = True
        elif value is type and (position is None or not is_only_compared(scope.steps, position)):
            self.types_asked = True
        return value, name

    def note_use(self, value: Any, scope: Scope, start: int, position: int | None, called: bool) -> None:
        if not isinstance(value, type) or id(value) not in self.node_of or called:
            return
        if position is not None and is_asked_for_methods(value, scope.steps, start, position):
            return
        if position is not None and is_compared(scope.steps, start, position) and self.is_run_converted(self.at.node):
            return
        if position is None or hasattr(value, "__class_getitem__") or not begins_call(scope.steps, start, position):
            self.loose.add(self.node_of[id(value)])

    def read(self, holder: int, source: str, key: Any, value: Any, expression: str, path: str) -> int:
        journal = self.journals.of_name(holder, source, key, value, expression, path)
        if journal is not None:
            return journal
        if path in STREAMS:
            self.report.append(f"{path}: printed to when the program runs")
            self.plan.edges.append(Edge(source, holder, key, None, None))
            return len(self.plan.edges) - 1
        if source not in ("global", "cell") and is_host_function(value):
            raise Refusal(impurity(value, path.partition(" of ")[0]))  # nobody knows who calls it
        self.types_asked |= value is type and source != "global"
        self.copying |= copies(value)
        edge = super().read(holder, source, key, value, expression, path)
        if path.startswith("closure __class__ of "):  # what reads it is looked at by `may_name` and `may_make`
            return edge
        if source not in ("class", "argument class") and isinstance(value, type) and id(value) in self.node_of:
            self.named.add(self.node_of[id(value)])
            if source in ("attribute", "class attribute"):
                self.inner.setdefault(self.node_of[id(value)], set()).add(key[1] if type(key) is tuple else key)
            elif source not in ("global", "cell"):
                self.loose.add(self.node_of[id(value)])
        return edge

    def require_converted(self, index: int, scope: Scope, value: Any, name: str) -> None:
        """Refuse draws and clocks in code that is run as it is, which would make them while tracing; what reads
        attributes by names that are computed is followed.
        """
        if name in STREAMS:
            self.streaming = scope.code
        if is_joint(value):
            self.joint = scope.code
        self.copying |= copies(value)
        if value is operator.attrgetter or value is operator.methodcaller:
            self.ask_for_any(index, scope, Step("global", name, None))
        logs = is_logger(value) or is_log_function(value)
        self.logs |= logs
        if (is_host_function(value) or logs or is_asked(value) or name in STREAMS) and not self.is_converted(
            self.objects[index]
        ):
            raise Refusal(impurity(value, name, home=name.rpartition(".")[0] or None), scope.code)

    def _check_attribute(self, step: Step, scope: Scope) -> None:
        """What reads ``x.__dict__`` asks as `vars` does."""
        if step.name == "__dict__":
            self.ask_for_any(self.at.node, scope, step)
        elif step.name == "__class__" and step.called:
            self.types_called = True
        elif step.name in BY_METHODS and step.called:
            self.ask_for_any(self.at.node, scope, step._replace(name=BY_METHODS[step.name]))
        else:
            super()._check_attribute(step, scope)

    def ask_for_any(self, index: int, scope: Scope, step: Step) -> None:
        """The trace is told which names are watched, and has others watched before it reads or assigns them."""
        if not self.is_run_converted(index):
            raise scope.refuse(f"{step.name} reads what the compiled program cannot watch", step)
        if step.name in ("setattr", "vars", "__dict__"):
            self.plan.assigned |= {step.name, *self.asked}
            self.changing |= scope.code.co_name not in ("__init__", "__post_init__")
            self.ordered |= step.name != "setattr"
        if len(self.asked) > MOST_ASKED:
            raise scope.refuse(f"{step.name} reads more than {MOST_ASKED} attributes by names that are computed", step)
        self.asks = True
        self.optional |= self.asked
        for name in sorted(self.asked - self.local_attributes):
            self._check_attribute(Step("attribute", name, step.line, optional=step.name == "hasattr"), scope)

    def check_stored(self, index: int, scope: Scope, step: Step) -> None:
        """A trace assigns attributes of copies of objects; of a class it is found out (`rebuild.watch`)."""
        kind, name, *path = step.base
        read = Step(kind, name, step.line)
        value, _ = self._find(index, scope, read)
        if kind == "free" and scope.owner(name) is not None and scope.alias(read) is None:
            return  # as a local variable of the function around it
        for part in path:
            value = attribute(value, part)
        counted = isinstance(value, types.FunctionType) and self.journals.is_counted(value, step.name)
        kept = counted or self.node_kind(value) in ("object", "class")
        if not kept or not self.is_converted(self.objects[index]):
            raise scope.refuse(f"assigns the attribute '{step.name}'", step)

    def check_rebound(self, index: int, scope: Scope, step: Step) -> None:
        note_rebound(self, index, scope, step)

    def is_run_converted(self, index: int) -> bool:
        """Whether code of a node runs converted wherever it is called."""
        return self.is_converted(self.objects[index]) and id(self.objects[index]) not in self.unconverted

    def tells_apart(self, index: int, scope: Scope, position: int) -> bool:
        if is_only_named(scope.steps, position):
            return True
        return is_only_told_apart(scope.steps, position) and self.is_run_converted(index)

    def is_converted(self, function: Any) -> bool:
        code = function.__code__
        return is_user_function(function) and not isinstance(convert_code(code, code.co_filename), str)

    def check_captured_attribute(self, value: Any, name: str, step: Step, scope: Scope) -> None:
        if self.node_kind(value) in ("object", "container", "view", "class", "method", "constant", "table"):
            self.note_attribute(step)
            return
        if isinstance(value, types.FunctionType) and step.name == "__name__" and id(value) in self.node_of:
            self.require(f"n{self.node_of[id(value)]}.__name__ == {value.__name__!r}")
            return
        if isinstance(value, types.FunctionType) and step.name in vars(value) and id(value) in self.node_of:
            return  # `settle` reads it, of any function
        if step.name in ASKED and type(value).__module__.startswith(HOMES) and self.node_kind(value) == "frozen":
            return
        joint = is_joint(value)
        if step.name in (DETERMINED - DRAWING if joint else DETERMINED) and (joint or is_distribution(value)):
            return
        if is_asked(value) and step.name == "get" and value is not sys.modules:
            return
        if is_logger(value) and (step.name in LEVELS or step.name in ASKED_OF_LOGGERS):
            return
        if joint or is_distribution(value):
            draws = step.name in DRAWING if joint else step.name == "rvs"
            raise scope.refuse(f"{name}.{step.name} {'draws at each call' if draws else 'has no rule'}", step)
        super().check_captured_attribute(value, name, step, scope)

    def read_of_function(self, index: int, function: types.FunctionType) -> bool:
        """What code may read of a function as of an object, ``f.table``; whether there was something new."""
        names, label, place = vars(function), self.plan.nodes[index].label, f"n{index}.__dict__"
        read = sorted(self.local_attributes & names.keys())
        for name in self.plan.assigned.intersection(names):
            if self.journals.is_counted(function, name):  # then the trace has a copy, and sees what else is assigned
                continue
            raise Refusal(f"assigns the attribute '{name}', which the function {label} has")
        new = [name for name in read if (index, name) not in self.settled]
        for name in new:
            self.settled.add((index, name))
            self.read(index, "function attribute", name, names[name], f"{place}[{name!r}]", f"{label}.{name}")
        return self.journals.of_function(index, function) or bool(new)

    def is_untold(self, name: str, value: Any) -> bool:
        """Whether what an attribute holds would be a guard and may be assigned before it is read: the trace says that
        it is not, and only then what earlier calls have left there decides anything.
        """
        return self.plan.stores and type(value) in DECIDING and name in self.plan.assigned - self.asked

    def settle(self) -> bool:
        """Read the attributes of objects, and of their classes, whose names have turned up; whether any was new."""
        found = self.read_members()
        for index, value in enumerate(list(self.objects)):
            node = self.plan.nodes[index]
            if node.kind == "function" and vars(value):
                found |= self.read_of_function(index, value)
            built = node.kind == "container" and built_on(type(value)) is not None
            if node.kind not in ("object", "class") and not built:
                continue
            own = own_attributes(value) if built else holding(value) if node.kind == "object" else None
            names = own or {}
            patterns = set(names) if self.matching else set()
            classes = (value if node.kind == "class" else type(value)).__mro__[:-1]
            found |= self.journals.settle(index, names, classes, self.matching)
            put = self.plan.assigned if node.kind == "class" else ()
            patterns.update(name for name in put if any(is_descriptor(vars(base).get(name)) for base in classes))
            for name in sorted(self.local_attributes | patterns):
                if (index, name) in self.settled:
                    continue
                self.settled.add((index, name))
                self.at = self.noted.get(name, Reader(index))
                if node.kind == "object" and self.is_untold(name, names.get(name)):
                    continue
                if name in names:
                    place = f"n{index}.__dict__[{name!r}]" if built or not is_slotted(value) else f"n{index}.{name}"
                    self.read(index, "attribute", name, names[name], place, f"{node.label}.{name}")
                    found = True
                elif node.kind == "class":
                    self.guard_class_attribute(index, value, name)
                else:
                    found |= self.read_shared(index, type(value), name, is_slotted(value) or (built and own is None))
        found = self.read_members() or self.read_shared_by_name() or found
        return read_results(self) or found

    def classes_asked_about(self) -> list[Any]:
        """Those that `isinstance` may be asked about."""
        return [*[self.objects[index] for index in self.named], *self.asked_about]

    def of_protocols(self) -> frozenset[str]:
        """The names that classes have which are of the protocols that are asked about."""
        nodes = [self.objects[index] for index, node in enumerate(self.plan.nodes) if node.kind == "class"]
        asked = [cls for cls in (*self.classes_asked_about(), *nodes) if attribute(cls, "_is_protocol", False)]
        bases = {base for cls in asked for base in cls.__mro__ if base is not object}
        return frozenset(name for base in bases for name in (*vars(base), *vars(base).get("__annotations__", ())))

    def finish(self) -> None:
        require_conversion(self)
        passed = {first_imported(reason) for blocks in self.unreached.values() for _, reason in blocks}
        for name in sorted(name for name in passed if name is not None):  # with it, there is more to look at
            self.require(f"{name!r} not in modules")
        for resolution in self.resolutions:
            resolution.settle(self.local_attributes | self.of_protocols())
        for kind, names in (("logger", LOGGERS_KNOW), ("cached", CACHES_KNOW), ("asked", CHANGING)):
            asked = self.local_attributes & names
            if asked and ((kind == "logger" and self.logs) or any(node.kind == kind for node in self.plan.nodes)):
                raise Refusal(f"reads the attribute '{min(asked)}' of a {NAMES_OF_KINDS[kind]}")
        if self.streaming is not None and not self.local_attributes.isdisjoint(STREAMS_DO):
            read = min(self.local_attributes & STREAMS_DO)
            raise Refusal(f"reads the attribute '{read}', which streams have", self.streaming)
        if self.joint is not None and not self.local_attributes.isdisjoint(DRAWING):
            raise Refusal(
                f"reads the attribute '{min(self.local_attributes & DRAWING)}', by which it draws", self.joint
            )
        if self.comparing or self.changing or self.plan.stores:
            # What are two objects now may be one at another call, where what is stored in one is read of the other; no
            # guard of either one says so.
            found = [f"id(n{index})" for index, node in enumerate(self.plan.nodes) if node.kind in COPIED]
            if len(found) > 1:
                self.require(f"len({{{', '.join(found)}}}) == {len(found)}")
        for index, node in enumerate(self.plan.nodes) if self.ordered else ():
            if node.kind == "object" and not is_slotted(self.objects[index]):
                self.require(f"tuple(n{index}.__dict__) == {self.constant(tuple(vars(self.objects[index])))}")
        require_new_results(self)
        classes = self.classes_asked_about()
        if any(isinstance(cls, ABCMeta) for cls in classes):  # which isinstance may be asked about
            self.require(f"{self.constant(get_cache_token)}() == {self.constant(get_cache_token())}")
        keep_caches(self)
        settle_rebound(self)
        for index, dirty in enumerate(self.plan.dirty()):
            if dirty and attribute(self.objects[index], "__code__") is DISPATCHED:
                raise Refusal(f"{self.plan.nodes[index].label} dispatches to a function that reads what can change")
            if dirty and id(self.objects[index]) in self.described:
                raise Refusal(f"{self.plan.nodes[index].label} reads what can change")
            if dirty and self.plan.nodes[index].kind == "class":
                self.require_twin(index)
