"""The walk over what a Python function reaches: each name that its code reads becomes an edge, with a guard or a node.

The nodes are the function, the user functions that it reaches, and modules; an edge leads to a hidden input, a node or
a value that a guard compares. What can be none of them is refused. `capture` says what comes of it.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, Final

from srcgrad.tracing.asked_signatures import Told, asks_for_signatures
from srcgrad.tracing.bytecode import Refusal, Scope, Step
from srcgrad.tracing.class_uses import is_asked_about
from srcgrad.tracing.floating_errors import STATED
from srcgrad.tracing.imports import Finder, follow_imports
from srcgrad.tracing.kept_results import is_asked_by_item
from srcgrad.tracing.lookups import MISSING, is_unbound_cell, module_attribute, state_of
from srcgrad.tracing.members import ABSENCE, handles, stored_attributes
from srcgrad.tracing.on_demand import is_made, made_of
from srcgrad.tracing.purity import (
    METACLASSES,
    class_reason,
    hidden_kind,
    impurity,
    is_trusted_module,
    static_key,
)
from srcgrad.tracing.read_attributes import ReadAttributes
from srcgrad.tracing.rebuild import COPIED, Edge, Hidden, Node, Plan, wrapped_functions
from srcgrad.tracing.ruled_out import Codes, Reader
from srcgrad.tracing.unasked import attribute

_MOST_NODES: Final = 512


def is_asked_for_item(steps: Sequence[Step], position: int, name: str) -> bool:
    """Whether the environment, or what has been imported, is loaded to say whether it has a name, or the environment
    for what is under one: as ``environ``, by which its items are known in the code (`conversion.expressions`).
    """
    kinds = [step.kind for step in steps[position : position + 2]]
    loaded = kinds in (["constant", "subscript"], ["local", "subscript"])
    return kinds[:1] == ["comparison"] or (loaded and name.rpartition(".")[2] == "environ")


def is_elsewhere(value: Any, source: str) -> bool:
    """Whether a module, or what is asked for items, is where it is not followed: under another name these are not
    known to be asked for.
    """
    if is_asked_by_item(value):
        return source != "global"
    return isinstance(value, types.ModuleType) and source not in ("global", "cell", "import")


def classes_in(asked: Any) -> list[type]:
    """Those that `isinstance` is asked about: a class, or a tuple of some; none if a metaclass may answer."""
    if type(asked) is not tuple:
        return [asked] if type(asked) in METACLASSES else []
    found = [classes_in(part) for part in asked]
    return [cls for part in found for cls in part] if all(found) else []


class Analysis(ReadAttributes):
    """One run of `analyze`: the plan, and the guard function as its lines are found."""

    def __init__(self, is_pure: Callable[[object], bool], floats_static: bool) -> None:
        super().__init__(is_pure, floats_static)
        self.plan = Plan()
        self.asked_about: list[type] = []
        """The classes of which nothing is read: it is only asked whether something is of them."""
        # The objects met, by identity; they are alive while the analysis runs, and dropped with it.
        self.node_of: dict[int, int] = {}
        self.stand_ins = set[int]()
        """The objects, by identity, that take the places of modules."""
        self.namespace_of: dict[int, int] = {}
        self.edge_of: dict[tuple[Any, ...], int] = {}
        self.methods: set[int] = set()
        self.settled: set[tuple[Any, ...]] = set()
        self.asks = False
        """Whether attributes are read by names that are computed."""
        self.signatures = False
        """Whether something asks functions for their signatures."""
        self.at = Reader(0)
        """Where is read what is being looked at."""
        self.origins: list[Reader] = []
        """Where each of the objects was first read."""
        self.results: frozenset[Any] = frozenset()
        """What is asked of functions with caches: `kept_results`."""
        self.unreached: Codes = {}
        """What is passed over: `ruled_out`."""
        self.followed: set[type] = set()
        """The classes of arguments whose methods are looked at."""

    # -- the walk over nodes

    def run(self, root: Any, classes: frozenset[type] = frozenset()) -> None:
        if self.node_kind(root) in (None, "module"):
            raise Refusal(impurity(root, attribute(root, "__name__", repr(type(root)))))
        self.guard_node(self.node(root), "function")
        self.follow(classes)
        done = 0
        while done < len(self.objects):
            self.visit(done)
            done += 1
            if done == len(self.objects):
                self.settle()
        self._check_local_attributes()
        self.require_absent()
        if self.signatures:
            for index, value in enumerate(self.objects):
                if isinstance(value, (types.FunctionType, type)):
                    self.require(f"{self.constant(Told(value))}(n{index})")
        self.finish()

    def again(self) -> Analysis | None:
        """Another one, not run yet, where only all that was found shows that it has to be done otherwise."""
        return None

    def without(self, refusal: Refusal) -> Analysis | None:
        """Another one that passes over the code which leads to what is refused, if a call may not come to that."""
        return None

    def follow(self, classes: frozenset[type]) -> None:
        """Look at the methods of the arguments' classes, which the function may call."""

    def settle(self) -> bool:
        """Read what only now is known to be read; whether there was something new."""
        return False

    def finish(self) -> None:
        """Refuse what only the whole plan shows."""

    def finder(self, index: int) -> Finder:
        return Finder(self.objects[index].__globals__, self.is_pure, not index)

    def note_code(self, code: types.CodeType) -> bool:
        """Whether code assigns or deletes attributes, maybe of what is captured."""
        self.handling = self.handling or handles(code, ABSENCE)
        assigned = stored_attributes(code)
        self.plan.assigned |= assigned
        return bool(assigned)

    def scope_of(self, index: int, code: types.CodeType) -> Scope:
        self.note_code(code)
        return Scope(code, None, self.finder(index))

    def visit(self, index: int) -> None:
        value, node = self.objects[index], self.plan.nodes[index]
        name = f"n{index}"
        self.at = Reader(index)
        if node.kind == "function":
            try:
                self._visit_defaults(index, value)
            except Refusal as refusal:
                raise Refusal(str(refusal), value.__code__) from None
            if value.__code__ is STATED:
                self.visit_stated(index, value)
            else:
                self._scan(index, self.scope_of(index, value.__code__))
        elif node.kind == "partial":
            self.read(index, "function", None, value.func, f"{name}.func", f"function of {node.label}")
            for position, argument in enumerate(value.args):
                place = f"{name}.args[{position}]"
                self.read(index, "argument", position, argument, place, f"argument {position} of {node.label}")
            for key, argument in value.keywords.items():
                place = f"{name}.keywords[{key!r}]"
                self.read(index, "keyword", key, argument, place, f"argument {key} of {node.label}")
        elif node.kind == "transform":
            for position, inner in enumerate(wrapped_functions(value)):
                place = f"wrapped_functions({name})[{position}]"
                self.read(index, "wrapped", position, inner, place, f"function of {node.label}")

    def visit_stated(self, index: int, function: Any) -> None:
        """What ``np.errstate`` has decorated: the function, and which errors are raised in it."""
        names = function.__code__.co_freevars
        self._cell(index, "func")
        state = function.__closure__[names.index("self")].cell_contents
        self.require(f"n{index}.__closure__[{names.index('self')}].cell_contents is {self.constant(state)}")

    def _visit_defaults(self, index: int, function: Any) -> None:
        label = self.plan.nodes[index].label
        code = function.__code__
        positional = code.co_varnames[: code.co_argcount]
        defaults, keywords = function.__defaults__ or (), function.__kwdefaults__ or {}
        more = max(len(defaults) - len(positional), 0)  # assigned ones, which Python passes over
        for position, value in enumerate(defaults[more:], more):
            name = positional[position - len(defaults)]
            self.read(
                index, "default", position, value, f"n{index}.__defaults__[{position}]", f"default {name} of {label}"
            )
        for name, value in keywords.items():
            place = f"n{index}.__kwdefaults__[{name!r}]"
            self.read(index, "keyword default", name, value, place, f"default {name} of {label}")

    # -- nodes, namespaces and their guards

    def node_kind(self, value: Any) -> str | None:
        if isinstance(value, types.FunctionType):
            home = str(value.__module__ or "").partition(".")[0]
            return None if home in ("numpy", "scipy") else "function"
        if type(value) is functools.partial:
            return "partial"
        if isinstance(value, types.ModuleType) or id(value) in self.stand_ins:
            return "module"
        if not isinstance(value, type) and (
            attribute(type(value), "__srcgrad_static__") is not None or "__srcgrad_static__" in state_of(value)
        ):
            return "transform"
        return None

    def node(self, value: Any) -> int:
        """The node of `value`, made if it is new; `_guard_node` must follow for a new one."""
        if id(value) not in self.node_of:
            if len(self.objects) >= _MOST_NODES:
                raise Refusal(f"reaches more than {_MOST_NODES} functions, objects and containers")
            kind = self.node_kind(value)
            label = attribute(value, "__name__") or f"the {kind}"
            if kind == "partial":
                label = f"partial({attribute(value.func, '__name__', '...')})"
            self.node_of[id(value)] = len(self.objects)
            self.objects.append(value)
            self.origins.append(self.at)
            self.plan.nodes.append(Node(kind or "", str(label)))
        return self.node_of[id(value)]

    def guard_node(self, index: int, expression: str) -> None:
        value, node = self.objects[index], self.plan.nodes[index]
        name = f"n{index}"
        self.lines.append(f"{name} = {expression}")
        if node.kind == "function":
            code = self.constant(value.__code__)
            self.identity.append(value.__code__)
            self.require(
                f"type({name}) is FunctionType and ({name}.__code__ is {code} or same_code({name}.__code__, {code}))"
            )
            self.guard_length(f"{name}.__defaults__", value.__defaults__)
            self.guard_length(f"{name}.__kwdefaults__", value.__kwdefaults__)
            node.namespace = self._namespace(index, value.__globals__, f"{name}.__globals__")
            self.report.append(
                f"function {node.label}: same code ({value.__code__.co_filename}:{value.__code__.co_firstlineno})"
            )
        elif node.kind == "module":
            kind = "ModuleType" if type(value) is types.ModuleType else self.constant(type(value))
            self.require(f"type({name}) is {kind}")
            node.namespace = self._namespace(index, vars(value), f"{name}.__dict__")
        elif node.kind == "partial":
            keywords = self.constant(tuple(value.keywords))
            self.identity.append(("partial", len(value.args), tuple(value.keywords)))
            self.require(f"type({name}) is partial and len({name}.args) == {len(value.args)}")
            self.require(f"tuple({name}.keywords) == {keywords}")
        else:
            static = self.constant(value.__srcgrad_static__)
            self.identity.append((type(value), value.__srcgrad_static__))
            self.require(f"type({name}) is {self.constant(type(value))} and {name}.__srcgrad_static__ == {static}")
            self.require(f"len(wrapped_functions({name})) == {len(wrapped_functions(value))}")
            self.report.append(f"transformed function {node.label}: same transforms")

    def namespace(self, module: types.ModuleType) -> int:
        """That of a module which is a node."""
        return self.plan.nodes[self.node_of[id(module)]].namespace

    def place_of_global(self, module: types.ModuleType, name: str) -> str:
        """Where guards find what a module has, or makes when it is asked."""
        if is_made(module, name):
            return f"made(n{self.node_of[id(module)]}, {name!r})"
        return f"g{self.namespace(module)}[{name!r}]"

    def _namespace(self, index: int, names: dict[str, Any], expression: str) -> int:
        if id(names) in self.namespace_of:
            known = self.namespace_of[id(names)]
            self.require(f"{expression} is g{known}")
            return known
        known = self.namespace_of[id(names)] = len(self.plan.namespaces)
        self.plan.namespaces.append(index)
        self.lines.append(f"g{known} = {expression}")
        return known

    # -- values

    def read(self, holder: int, source: str, key: Any, value: Any, expression: str, path: str) -> int:
        """Record the edge to `value`, its guard or its node; refuse what can be none of them."""
        edges = self.plan.edges
        self.signatures |= asks_for_signatures(value)
        kind = hidden_kind(value)
        hidden: int | None = None
        node: int | None = None
        if kind is not None and (kind in ("array", "jax array", "generator", "tape") or not self.floats_static):
            hidden = len(self.hidden)
            self.hidden.append(Hidden(path, kind))
            self.guard_hidden(hidden, value, expression)
            self.report.append(f"{path}: hidden input ({kind})")
        elif source != "class" and (static := static_key(value, self.is_pure, self.floats_static)) is not None:
            self.guard_static(value, static, expression, path)
        elif isinstance(value, types.ModuleType) and is_trusted_module(value, self.is_pure):
            if source not in ("global", "cell"):
                self.handed_on.setdefault(value, Refusal)
            self.require(f"{expression} is {self.constant(value)}")
            self.report.append(f"{path}: the module {value.__name__}")
        elif is_elsewhere(value, source):
            raise Refusal(impurity(value, path))
        elif isinstance(value, type):
            node = self.guard_class(value, expression, path)
        elif self.node_kind(value) is not None:
            known = id(value) in self.node_of
            node = self.node(value)
            if known:
                self.require(f"{expression} is n{node}")
            else:
                if self.plan.nodes[node].kind in COPIED:
                    self.plan.nodes[node].label = path.partition(" of ")[0].rpartition(" ")[2]
                self.guard_node(node, expression)
        else:
            raise Refusal(impurity(value, path.partition(" of ")[0].partition(" ")[2] or path))
        edges.append(Edge(source, holder, key, hidden, node))
        if source != "global":
            self.plan.nodes[holder].edges.append(len(edges) - 1)
        return len(edges) - 1

    def guard_class(self, cls: type, expression: str, path: str) -> int | None:
        reason = class_reason(cls, frozenset(), constructed=True)
        if reason is not None:
            raise Refusal(reason)
        self.classes.add(cls)
        self.require(f"{expression} is {self.constant(cls)}")
        self.report.append(f"{path}: the class {cls.__name__}")
        return None

    # -- names read by code

    def _scan(self, index: int, scope: Scope) -> None:
        """Follow every name that the code of node `index` reads, and the code nested in it."""
        follow_imports(self, index, scope)
        for value, name, step in scope.imported:
            self.at = Reader(index, scope.code, step.line, step.name)
            self._check_trusted(value, name, scope, step)
            self.require_converted(index, scope, value, name)
        for module in scope.among_others:
            self.handed_on.setdefault(module, scope.refuse)
        position = 0
        while position < len(scope.steps):
            step = scope.steps[position]
            position += 1
            self.at = Reader(index, scope.code, step.line, step.name)
            if step.kind == "attribute":
                if step.name != "__class__" or not self.tells_apart(index, scope, position):
                    self._check_attribute(step, scope)
            elif step.kind in ("asking", "asking for any"):
                self._ask(index, step.name)
                if step.kind == "asking for any":
                    self.ask_for_any(index, scope, step)
            elif step.kind == "store":
                if step.name in scope.code.co_freevars and scope.owner(step.name) is None:
                    raise scope.refuse(f"assigns '{step.name}' of an enclosing function", step)
            elif step.kind == "store attribute":
                self.check_stored(index, scope, step)
            elif step.kind == "store global":
                self.check_rebound(index, scope, step)
            elif step.kind in ("local", "free", "global"):
                position = self._follow(index, scope, position, step)
        for code in scope.nested():
            self.at = Reader(index, code)
            self._scan(index, Scope(code, scope, scope.find, scope.deep, scope.stores))

    def _find(self, index: int, scope: Scope, step: Step, position: int | None = None) -> tuple[Any, str]:
        """What the name of `step` stands for (MISSING for a local value or an unbound name) and how to call it;
        ``position`` is that of the step behind it.
        """
        name = step.name
        alias = scope.alias(step)
        if alias is not None and alias.module is None:
            return alias.value, name
        try:
            if alias is not None and alias.module is not None:
                asked = self.deep and position is not None and is_asked_about(scope.steps, position - 1, position)
                namespace = self.namespace(alias.module)
                return self.read_global(index, namespace, alias.name, alias.module, asked), name
            if step.kind == "global":
                asked = self.deep and position is not None and is_asked_about(scope.steps, position - 1, position)
                return self.read_global(index, self.plan.nodes[index].namespace, name, None, asked), name
            if step.kind == "local" or scope.owner(name) is not None:
                return MISSING, name
            if name == "__class__" and not self.deep:
                raise scope.refuse("uses super() or __class__", step)
            return self._cell(index, name), name
        except Refusal as refusal:
            raise refusal if refusal.placed else scope.refuse(str(refusal), step) from None

    def _follow(self, index: int, scope: Scope, position: int, read: Step) -> int:
        """Resolve the attributes taken of what `read` stands for by the steps from `position` on; returns the position
        behind them.
        """
        start = position - 1
        value, name = self._find(index, scope, read, position)
        alias = scope.alias(read)
        imported = alias is not None and not alias.watched
        while isinstance(value, types.ModuleType):
            step = scope.steps[position] if position < len(scope.steps) else None
            if step is None or step.kind != "attribute":
                if not is_trusted_module(value, self.is_pure):
                    raise scope.refuse(impurity(value, name), step)
                self.handed_on.setdefault(value, functools.partial(scope.refuse, step=step))
                return position
            if step.joined:
                self._check_attribute(step, scope)
            module, name = value, f"{name}.{step.name}"
            self.at = Reader(index, scope.code, step.line, step.name)
            position += 1
            if imported or is_trusted_module(module, self.is_pure):
                value = module_attribute(module, step.name)
                if value is MISSING:  # it raises where it is reached: code for another version may read it
                    return position
                if not isinstance(value, types.ModuleType):
                    self._check_trusted(value, f"{module.__name__}.{step.name}", scope, step)
            else:
                asked = self.deep and is_asked_about(scope.steps, start, position)
                try:
                    value = self.read_global(index, self.namespace(module), step.name, module, asked)
                except Refusal as refusal:
                    raise scope.refuse(str(refusal), step) from None
                behind = scope.steps[position] if position < len(scope.steps) else None
                ends = behind is None or behind.kind != "attribute"  # CPython 3.11 marks the module of what is called
                self.note_use(value, scope, start, position, step.called or (read.called and ends))
        self.require_converted(index, scope, value, name)
        if value is dataclasses.asdict or value is dataclasses.astuple:  # which read all fields by their names
            self.ask_for_any(index, scope, Step("asking for any", value.__name__, read.line))
        step = scope.steps[position] if position < len(scope.steps) else None
        self.signatures |= asks_for_signatures(value)
        others = is_asked_by_item(value) and (step is None or step.kind != "attribute")
        if others and not is_asked_for_item(scope.steps, position, name):
            raise scope.refuse(impurity(value, name), step)
        if value is not MISSING and step is not None and step.kind == "attribute":
            self.check_captured_attribute(value, name, step, scope)
        return position

    def tells_apart(self, index: int, scope: Scope, position: int) -> bool:
        """Whether of a class that was read by ``x.__class__`` nothing matters but which one it is: `reach`."""
        return False

    def note_use(self, value: Any, scope: Scope, start: int, position: int | None, called: bool) -> None:
        """What code does with a class that these steps load, the last of them to call it or not."""

    def require_converted(self, index: int, scope: Scope, value: Any, name: str) -> None:
        """Refuse what only converted code may use, in code that is run as it is: `reach`."""

    def _check_trusted(self, value: Any, name: str, scope: Scope, step: Step) -> None:
        home = name.rpartition(".")[0]
        if is_asked_by_item(value) and self.deep:
            return  # of which `_follow` knows what is asked
        if hidden_kind(value) in ("float", "complex", "numpy scalar") or static_key(value, self.is_pure) is not None:
            module = sys.modules.get(home)
            if callable(value) or module is None or is_trusted_module(module, self.is_pure):
                self.note_constant(value)
                return
            raise scope.refuse(f"reads '{name}', which can change", step)
        raise scope.refuse(impurity(value, name, home=home), step)

    def read_global(
        self, index: int, namespace: int, name: str, module: types.ModuleType | None = None, asked: bool = False
    ) -> Any:
        """The value of a global name or of an attribute of a module that is not trusted, with its edge and guard;
        ``asked``: that `isinstance` is asked about.
        """
        owner = self.objects[self.plan.namespaces[namespace]]
        home = str(attribute(module, "__name__") or type(module).__name__)
        names = owner.__globals__ if isinstance(owner, types.FunctionType) else vars(owner)
        value = names.get(name, MISSING) if module is None else made_of(module, name)
        if value is MISSING and module is not None:
            raise Refusal(f"reads '{home}.{name}', which does not exist or is made anew")
        place = f"g{namespace}[{name!r}]" if module is None else self.place_of_global(module, name)
        known = self.edge_of.get((namespace, name))
        classes = classes_in(value) if known is None and asked else ()
        if classes and self.node_of.keys().isdisjoint(map(id, classes)):
            if (namespace, "asked", name) not in self.edge_of:
                self.edge_of[namespace, "asked", name] = -1
                self.require(f"{place} is {self.constant(value)}")
                self.asked_about += classes
            return value
        if known is None and value is not MISSING:
            path = f"global {name}" if module is None else f"{home}.{name}"
            known = self.read(namespace, "global", name, value, place, path)
            self.edge_of[namespace, name] = known
        elif known is None:
            return self._builtin(index, namespace, name, asked=asked)
        reader = self.plan.nodes[index if module is None else self.node_of[id(module)]]
        if known not in reader.edges:
            reader.edges.append(known)
        return value

    def _ask(self, index: int, name: str) -> None:
        """`getattr` or `hasattr` that is called, of what is known or asked for while tracing."""
        namespace = self.plan.nodes[index].namespace
        owner = self.objects[self.plan.namespaces[namespace]]
        if name in (vars(owner) if isinstance(owner, types.ModuleType) else owner.__globals__):
            self.read_global(index, namespace, name)
        else:
            self._builtin(index, namespace, name, followed=True)

    def check_stored(self, index: int, scope: Scope, step: Step) -> None:
        """An attribute is assigned of an object from outside, or of what that leads to: `reach`."""

    def check_rebound(self, index: int, scope: Scope, step: Step) -> None:
        """A global is assigned, for which a trace needs a namespace of its own: `reach`."""
        raise scope.refuse(f"assigns the global '{step.name}'", step)

    def ask_for_any(self, index: int, scope: Scope, step: Step) -> None:
        """An attribute is read by a name that only the trace knows: `reach`."""

    def _builtin(self, index: int, namespace: int, name: str, followed: bool = False, asked: bool = False) -> Any:
        """The built-in of that name, guarded against being shadowed or replaced; MISSING if there is none.

        ``followed``: what it reads is known; ``asked``: so it is of a class, which `isinstance` is asked about here.
        """
        value = self.objects[index].__builtins__.get(name, MISSING)
        asked &= isinstance(value, type)
        followed |= asked
        key = (namespace, "asked builtin" if asked else "builtin", name)
        if key in self.edge_of:
            return value
        self.edge_of[key] = -1
        table = f"n{index}.__builtins__"
        if value is MISSING:
            self.require(f"{name!r} not in g{namespace} and {name!r} not in {table}")
            self.report.append(f"global {name}: guard, unbound")
            return value
        if not followed and static_key(value, self.is_pure) is None and not self.is_pure(value):
            raise Refusal(impurity(value, name))
        self.require(f"{name!r} not in g{namespace} and {table}[{name!r}] is {self.constant(value)}")
        self.report.append(f"built-in {name}: guard, not shadowed")
        return value

    def _cell(self, index: int, name: str) -> Any:
        """The value of a free variable, with its edge and guard."""
        function, node = self.objects[index], self.plan.nodes[index]
        position = function.__code__.co_freevars.index(name)
        cell = function.__closure__[position]
        place = f"n{index}.__closure__[{position}]"
        known = self.edge_of.get((id(cell), "cell"))
        if is_unbound_cell(cell):
            self.require(f"is_unbound_cell({place})")
            self.report.append(f"closure {name} of {node.label}: guard, unbound")
            return MISSING
        if known is None:
            path = f"closure {name} of {node.label}"
            known = self.read(index, "cell", position, cell.cell_contents, f"{place}.cell_contents", path)
            self.edge_of[id(cell), "cell"] = known
        elif all(edge != known for edge in node.edges):
            edge = self.plan.edges[known]
            self.require(f"{place} is n{edge.holder}.__closure__[{edge.key}]")
            node.edges.append(known)
        if (position, known) not in node.cells:
            node.cells.append((position, known))
        return cell.cell_contents
