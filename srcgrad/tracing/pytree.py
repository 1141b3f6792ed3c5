"""Pytrees: nested containers of leaves, taken apart and put together again.

Containers are `dict` and `defaultdict` (leaves by sorted key where keys can be sorted; built again they have their
own order), `OrderedDict`, `list`, `tuple`, namedtuples, dataclass instances (every field, by name), `None` (a container
without leaves) and registered classes. Everything else is a leaf, subclasses of the containers
included.

>>> leaves, definition = flatten({"w": [1.0, 2.0], "b": None})
>>> leaves, definition
([1.0, 2.0], {'w': [*, *], 'b': None})
>>> definition.unflatten([3.0, 4.0])
{'w': [3.0, 4.0], 'b': None}
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from srcgrad.errors import StructureError
from srcgrad.tracing.alike import value_key

__all__ = [
    "TreeDef",
    "broadcast_prefix",
    "flatten",
    "flatten_up_to",
    "register_leaf_type",
    "register_pytree_node",
    "register_pytree_node_class",
    "tree_leaves",
    "tree_map",
    "tree_structure",
]

IsLeaf = Callable[[Any], bool]
ClassT = TypeVar("ClassT", bound=type)
_TEXT: Final = frozenset({str})


class _Handler(NamedTuple):
    """How one container class is taken apart, rebuilt, and how its children are called in a path."""

    flatten: Callable[[Any], tuple[Iterable[Any], Hashable]]
    unflatten: Callable[[Any, list[Any]], Any]
    steps: Callable[[Any, int], list[str]]


class TreeDef:
    """The structure of a pytree: a container class, its auxiliary data and the structures of its children.

    Immutable, hashable, and equal to every structure of the same classes, keys in the same order, and arity; keys 1 and
    True are not the same. `repr` shows leaves as `*`.
    """

    __slots__ = ("_hash", "_key", "auxiliary", "children", "kind", "num_leaves")

    kind: type | None
    auxiliary: Hashable
    children: tuple[TreeDef, ...]
    num_leaves: int
    _hash: int | None
    _key: Hashable

    def __init__(self, kind: type | None, auxiliary: Hashable, children: tuple[TreeDef, ...], num_leaves: int) -> None:
        self.kind = kind
        self.auxiliary = auxiliary
        self.children = children
        self.num_leaves = num_leaves
        self._hash = None
        self._key = None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The pytree of this structure that holds `leaves`, left to right; StructureError unless there are `num_leaves`
        of them.
        """
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise StructureError(f"the structure {self!r} has {self.num_leaves} leaves, but {len(leaves)} were given")
        return leaves[0] if self is _LEAF else _build(self, iter(leaves))

    def paths(self) -> list[str]:
        """One suffix per leaf, such as `['w'][0].bias`: what to write after a variable's name to reach that leaf."""
        found: list[str] = []
        pending: list[tuple[str, TreeDef]] = [("", self)]
        while pending:
            prefix, definition = pending.pop()
            if definition is _LEAF:
                found.append(prefix)
            else:
                pending.extend(
                    (prefix + step, child)
                    for step, child in reversed(list(zip(_steps(definition), definition.children, strict=True)))
                )
        return found

    def node_types(self) -> frozenset[type]:
        """The container classes that occur in this structure, without the built-in ones: whose code a function given
        this tree may run.
        """
        found = {self.kind} if self.kind is not None and self.kind not in _BUILTIN_KINDS else set()
        return frozenset(found).union(*(child.node_types() for child in self.children))

    def key(self) -> Hashable:
        """The auxiliary data as they are compared."""
        if self._key is None and self.auxiliary is not None:
            names: Any = self.auxiliary
            if self.kind is dict:
                names = _order(names)
            elif self.kind is defaultdict:
                names = names[0], _order(names[1])
            plain = type(names) is tuple and _TEXT.issuperset(map(type, names))
            self._key = names if plain else value_key(names)
        return self._key

    def fits(self, other: TreeDef) -> bool:
        """Whether what one structure has at its leaves can stand at the other's: dicts may differ in their order."""
        if self == other:
            return True
        if self.kind is not other.kind or len(self.children) != len(other.children):
            return False
        same = self.auxiliary == other.auxiliary if self.kind in (dict, defaultdict) else self.key() == other.key()
        return same and all(one.fits(another) for one, another in zip(self.children, other.children, strict=True))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeDef):
            return NotImplemented
        return (
            self.kind is other.kind
            and self.num_leaves == other.num_leaves
            and self.key() == other.key()
            and self.children == other.children
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.kind, self.key(), self.children))
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.kind, self.auxiliary, self.children, self.num_leaves)

    def __repr__(self) -> str:
        return _text(self)


_LEAF: Final = TreeDef(None, None, (), 1)
_NONE: Final = TreeDef(type(None), None, (), 0)
_TUPLES: Final = tuple(TreeDef(tuple, None, (_LEAF,) * count, count) for count in range(17))


def _restore(kind: type | None, auxiliary: Hashable, children: tuple[TreeDef, ...], num_leaves: int) -> TreeDef:
    # The leaf is recognised by identity, so an unpickled or copied structure must hold this process's own.
    return _LEAF if kind is None else TreeDef(kind, auxiliary, children, num_leaves)


def _text(definition: TreeDef) -> str:
    kind, children = definition.kind, definition.children
    if kind is None:
        return "*"
    if kind is type(None):
        return "None"
    if kind is tuple:
        return f"({', '.join(map(_text, children))}{',' if len(children) == 1 else ''})"
    if kind is list:
        return f"[{', '.join(map(_text, children))}]"
    if kind is dict:
        names: Any = definition.auxiliary
        return "{" + ", ".join(f"{name!r}: {_text(child)}" for name, child in _items(names, children)) + "}"
    parts = [
        f"{step.removeprefix('.')}{'=' if step.startswith('.') else ': '}{_text(child)}"
        for step, child in zip(_steps(definition), children, strict=True)
    ]
    return f"{kind.__name__}({', '.join(parts)})"


def _steps(definition: TreeDef) -> list[str]:
    handler = _HANDLERS[definition.kind] if definition.kind in _HANDLERS else _derive(definition.kind)
    return [] if handler is None else handler.steps(definition.auxiliary, len(definition.children))


def _build(definition: TreeDef, leaves: Iterator[Any]) -> Any:
    if definition is _LEAF:
        return next(leaves)
    kind = definition.kind
    children = [_build(child, leaves) for child in definition.children]
    if kind is tuple:
        return tuple(children)
    if kind is list:
        return children
    handler = _HANDLERS[kind] if kind in _HANDLERS else _derive(kind)
    return None if handler is None else handler.unflatten(definition.auxiliary, children)


# ---- the container classes


class _Keys(tuple[Any, ...]):
    """The sorted keys of a dict that holds them in another order."""

    order: tuple[Any, ...]


def _sorted_keys(mapping: dict[Any, Any]) -> tuple[Any, ...]:
    order = tuple(mapping)
    try:
        names = tuple(sorted(order))
    except TypeError:
        return order
    if names == order:
        return order
    found = _Keys(names)
    found.order = order
    return found


def _order(names: tuple[Any, ...]) -> tuple[Any, ...]:
    return names.order if isinstance(names, _Keys) else names


def _items(names: tuple[Any, ...], children: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    """The keys of a dict in its own order, each with its child."""
    if not isinstance(names, _Keys):
        return zip(names, children, strict=True)
    values = dict(zip(names, children, strict=True))
    return [(name, values[name]) for name in names.order]


def _flatten_dict(tree: dict[Any, Any]) -> tuple[Iterable[Any], Hashable]:
    names = _sorted_keys(tree)
    return [tree[name] for name in names], names


def _flatten_default_dict(tree: defaultdict[Any, Any]) -> tuple[Iterable[Any], Hashable]:
    names = _sorted_keys(tree)
    return [tree[name] for name in names], (tree.default_factory, names)


def _index_steps(auxiliary: Any, count: int) -> list[str]:
    return [f"[{index}]" for index in range(count)]


def _key_steps(auxiliary: Any, count: int) -> list[str]:
    return [f"[{name!r}]" for name in auxiliary]


def _attribute_steps(auxiliary: Any, count: int) -> list[str]:
    return [f".{name}" for name in auxiliary]


def _dataclass_handler(cls: Any) -> _Handler:
    names = tuple(field.name for field in dataclasses.fields(cls))

    def take_apart(tree: Any) -> tuple[Iterable[Any], Hashable]:
        # A field with init=False may not have been set yet.
        present = tuple(name for name in names if hasattr(tree, name))
        return [getattr(tree, name) for name in present], present

    def put_together(auxiliary: Any, children: list[Any]) -> Any:
        # Neither __init__ nor __post_init__ may see tracers, and a frozen class forbids plain assignment.
        instance: Any = object.__new__(cls)
        for name, child in zip(auxiliary, children, strict=True):
            object.__setattr__(instance, name, child)
        return instance

    return _Handler(take_apart, put_together, _attribute_steps)


def _namedtuple_handler(cls: Any) -> _Handler:
    names: tuple[str, ...] = cls._fields
    return _Handler(
        lambda tree: (tree, names), lambda auxiliary, children: tuple.__new__(cls, children), _attribute_steps
    )


_LEAVES: Final = (None, np.ndarray, np.float64, np.float32, np.int64, np.bool_, float, int, complex, bool, str, bytes)
_HANDLERS: Final[dict[Any, _Handler | None]] = {
    **dict.fromkeys(_LEAVES),
    type(None): _Handler(lambda tree: ((), None), lambda auxiliary, children: None, _index_steps),
    tuple: _Handler(lambda tree: (tree, None), lambda auxiliary, children: tuple(children), _index_steps),
    list: _Handler(lambda tree: (tree, None), lambda auxiliary, children: children, _index_steps),
    dict: _Handler(_flatten_dict, lambda names, children: dict(_items(names, children)), _key_steps),
    OrderedDict: _Handler(
        lambda tree: (tree.values(), tuple(tree)),
        lambda names, children: OrderedDict(zip(names, children, strict=True)),
        _key_steps,
    ),
    defaultdict: _Handler(
        _flatten_default_dict,
        lambda auxiliary, children: defaultdict(auxiliary[0], _items(auxiliary[1], children)),
        lambda auxiliary, count: _key_steps(auxiliary[1], count),
    ),
}
_BUILTIN_KINDS: Final = frozenset(_HANDLERS)
# Classes met on the way are held weakly: a namedtuple made inside a function must be able to go.
_DERIVED: Final[WeakKeyDictionary[type, _Handler | None]] = WeakKeyDictionary()


def _lasting(kind: type) -> type:
    """A class as structures name it: the user's own of one that the trace in progress has made of it."""
    return kind if kind in _HANDLERS else vars(kind).get("__srcgrad_original__", kind)


def _derive(cls: Any) -> _Handler | None:
    """The handler of a class that nobody registered: namedtuples and dataclasses are containers, others leaves."""
    try:
        return _DERIVED[cls]
    except KeyError:
        pass
    handler: _Handler | None = None
    if issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple):
        handler = _namedtuple_handler(cls)
    elif dataclasses.is_dataclass(cls):
        handler = _dataclass_handler(cls)
    _DERIVED[cls] = handler
    return handler


def register_pytree_node(
    cls: type,
    flatten: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten: Callable[[Any, tuple[Any, ...]], Any],
) -> None:
    """Make instances of `cls` containers, as in JAX: arguments and results of functions may be or hold them.

    Args:
        cls: the class itself; its subclasses are no containers by this.
        flatten: `flatten(x) -> (children, auxiliary)`; children are arrays, numbers or containers again, and
            `auxiliary` is all else, hashable and comparable.
        unflatten: `unflatten(auxiliary, children)` makes an instance, also of children that are traced.

    Raises:
        StructureError: `cls` is a container already or no class, or what is given for a function is none.

    >>> import srcgrad as sg
    >>> class Pair:
    ...     def __init__(self, first, second):
    ...         self.first, self.second = first, second
    >>> sg.register_pytree_node(
    ...     Pair, lambda pair: ((pair.first, pair.second), None), lambda _, children: Pair(*children)
    ... )
    >>> slope = sg.grad(lambda pair: pair.first * pair.second)(Pair(2.0, 3.0))
    >>> slope.first, slope.second
    (np.float64(3.0), np.float64(2.0))
    """
    if not isinstance(cls, type):
        raise StructureError(f"register_pytree_node needs a class, not {cls!r}")
    for given, takes in ((flatten, "an instance"), (unflatten, "(auxiliary, children)")):
        if not callable(given):
            raise StructureError(f"register_pytree_node needs a function of {takes}, not {given!r}")
    if cls in _HANDLERS:
        raise StructureError(f"{cls.__name__} is registered already")
    _HANDLERS[cls] = _Handler(flatten, lambda auxiliary, children: unflatten(auxiliary, tuple(children)), _index_steps)


def record_fields(cls: type) -> tuple[str, ...] | None:
    """The names of what the instances of a namedtuple or dataclass hold; None for other and for registered classes."""
    if cls in _HANDLERS or _derive(cls) is None:
        return None
    kind: Any = cls
    return kind._fields if issubclass(cls, tuple) else tuple([field.name for field in dataclasses.fields(kind)])


def is_registered(cls: type) -> bool:
    """Whether it is known what the instances of a class hold, because it was said or is Python's own."""
    return cls in _HANDLERS


def register_pytree_node_class(cls: ClassT) -> ClassT:
    """Class decorator: `register_pytree_node` through methods `tree_flatten(self)` and, a class method,
    `tree_unflatten(cls, auxiliary, children)`.

    Raises:
        StructureError: the class lacks one of them, or is a container already.

    >>> import srcgrad as sg
    >>> @sg.register_pytree_node_class
    ... class Line:
    ...     def __init__(self, slope):
    ...         self.slope = slope
    ...     def tree_flatten(self):
    ...         return (self.slope,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, auxiliary, children):
    ...         return cls(*children)
    >>> sg.grad(lambda line: line.slope**2)(Line(2.0)).slope
    np.float64(4.0)
    """
    for name in ("tree_flatten", "tree_unflatten"):
        if not callable(getattr(cls, name, None)):
            raise StructureError(f"register_pytree_node_class: {cls!r} has no method {name}")
    methods: Any = cls
    register_pytree_node(cls, methods.tree_flatten, methods.tree_unflatten)
    return cls


def register_leaf_type(cls: type) -> None:
    """Declare that instances of `cls` are leaves, which spares the look-up of what they are at each call."""
    _HANDLERS.setdefault(cls, None)


# ---- taking trees apart


def flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], TreeDef]:
    """The leaves of `tree`, left to right, and its structure. `is_leaf(node)` stops at a node that is a container
    otherwise.

    >>> flatten((1, None, {"b": 2, "a": 3}))
    ([1, 3, 2], (*, None, {'b': *, 'a': *}))
    """
    leaves: list[Any] = []
    if is_leaf is not None:
        return leaves, _walk_until(tree, leaves, is_leaf)
    kind = type(tree)
    if kind is tuple:
        return leaves, _walk_tuple(tree, leaves)
    if kind in _HANDLERS and _HANDLERS[kind] is None:
        return [tree], _LEAF
    return leaves, _walk(tree, leaves)


def _walk_tuple(tree: tuple[Any, ...], leaves: list[Any]) -> TreeDef:
    handlers = _HANDLERS
    for item in tree:
        kind = type(item)
        if kind not in handlers or handlers[kind] is not None:
            break
    else:
        count = len(tree)
        leaves += tree
        return _TUPLES[count] if count < 17 else TreeDef(tuple, None, (_LEAF,) * count, count)
    start = len(leaves)
    return TreeDef(tuple, None, _walk_items(tree, leaves), len(leaves) - start)


def _walk_items(items: Iterable[Any], leaves: list[Any]) -> tuple[TreeDef, ...]:
    found = []
    handlers = _HANDLERS
    for item in items:
        kind = type(item)
        if kind in handlers and handlers[kind] is None:
            leaves.append(item)
            found.append(_LEAF)
        else:
            found.append(_walk(item, leaves))
    return tuple(found)


def _walk(tree: Any, leaves: list[Any]) -> TreeDef:
    kind = type(tree)
    handler = _HANDLERS[kind] if kind in _HANDLERS else _derive(kind)
    if handler is None:
        leaves.append(tree)
        return _LEAF
    if kind is tuple:
        return _walk_tuple(tree, leaves)
    if tree is None:
        return _NONE
    start = len(leaves)
    items, auxiliary = handler.flatten(tree)
    return TreeDef(_lasting(kind), auxiliary, _walk_items(items, leaves), len(leaves) - start)


def _walk_until(tree: Any, leaves: list[Any], is_leaf: IsLeaf) -> TreeDef:
    kind = type(tree)
    handler = None if is_leaf(tree) else _HANDLERS[kind] if kind in _HANDLERS else _derive(kind)
    if handler is None:
        leaves.append(tree)
        return _LEAF
    if tree is None:
        return _NONE
    start = len(leaves)
    items, auxiliary = handler.flatten(tree)
    children = tuple([_walk_until(item, leaves, is_leaf) for item in items])
    return TreeDef(_lasting(kind), auxiliary, children, len(leaves) - start)


def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of `tree`, left to right."""
    return flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf | None = None) -> TreeDef:
    """The structure of `tree`."""
    return flatten(tree, is_leaf)[1]


def tree_map(function: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """`tree` with `function(leaf, *subtrees)` at each leaf; every tree of `rest` must have the structure of `tree` as a
    prefix.

    StructureError, with the path, where one of `rest` differs.

    >>> tree_map(lambda a, b: a + b, {"x": 1, "y": (2, 3)}, {"x": 10, "y": (20, 30)})
    {'x': 11, 'y': (22, 33)}
    """
    leaves, definition = flatten(tree, is_leaf)
    columns = [flatten_up_to(definition, other) for other in rest]
    return definition.unflatten([function(*row) for row in zip(leaves, *columns, strict=True)])


def _describe(tree: Any) -> str:
    if tree is None:
        return "None"
    kind = type(tree)
    if kind is dict:
        return f"a dict with the keys {list(_sorted_keys(tree))}"
    if kind in (tuple, list):
        return f"a {kind.__name__} of {len(tree)}"
    return f"a value of type {kind.__name__}"


def _describe_definition(definition: TreeDef) -> str:
    kind = definition.kind
    if kind is None:
        return "a leaf"
    if kind is dict:
        names: Any = definition.auxiliary
        return f"a dict with the keys {list(names)}"
    if kind in (tuple, list):
        return f"a {kind.__name__} of {len(definition.children)}"
    return "None" if kind is type(None) else f"a value of type {kind.__name__}"


def _children_like(definition: TreeDef, tree: Any, path: str) -> list[Any]:
    """The children of `tree`, one level, in the order of `definition`; StructureError if it is another container."""
    kind: Any = definition.kind
    items: list[Any] | None = None
    if _lasting(type(tree)) is kind:
        if kind is dict:
            # Unsortable keys keep their insertion order, which may differ between equal dictionaries.
            names: Any = definition.auxiliary
            items = [tree[name] for name in names] if tree.keys() == set(names) else None
        else:
            handler = _HANDLERS[kind] if kind in _HANDLERS else _derive(kind)
            found, auxiliary = handler.flatten(tree) if handler is not None else ((), None)
            items = list(found)
            if auxiliary != definition.auxiliary or len(items) != len(definition.children):
                items = None
    if items is None:
        place = f"at {path}" if path else "at the top"
        raise StructureError(
            f"structures differ {place}: expected {_describe_definition(definition)}, got {_describe(tree)}"
        )
    return items


def flatten_up_to(definition: TreeDef, tree: Any, absent: bool = False) -> list[Any]:
    """The subtrees of `tree` where `definition` has its leaves; StructureError, with the path, where `tree` differs
    above them. With `absent`, None stands for a container whose leaves are all None.

    >>> flatten_up_to(tree_structure({"a": 0, "b": 0}), {"a": 1, "b": [2, 3]})
    [1, [2, 3]]
    """
    found: list[Any] = []
    _flatten_like(definition, tree, "", found, absent)
    return found


# Not a function inside: one that calls itself is a reference cycle, and would keep the leaves until the collector runs.
def _flatten_like(expected: TreeDef, subtree: Any, path: str, found: list[Any], absent: bool) -> None:
    if expected is _LEAF:
        found.append(subtree)
        return
    if subtree is None and absent:
        found.extend([None] * expected.num_leaves)
        return
    items = _children_like(expected, subtree, path)
    for step, child, item in zip(_steps(expected), expected.children, items, strict=True):
        _flatten_like(child, item, path + step, found, absent)


def broadcast_prefix(prefix: Any, definition: TreeDef) -> list[Any]:
    """One entry per leaf of `definition`: the leaf of `prefix` above it. `None` is a leaf of `prefix` here (`in_axes`,
    `out_axes`).

    StructureError, with the path, where `prefix` is not a prefix of the structure.

    >>> broadcast_prefix((0, None), tree_structure(({"a": 1, "b": 2}, 3)))
    [0, 0, None]
    """
    found: list[Any] = []
    _broadcast_like(prefix, definition, "", found)
    return found


def _broadcast_like(part: Any, expected: TreeDef, path: str, found: list[Any]) -> None:
    kind = type(part)
    handler = None if part is None else _HANDLERS[kind] if kind in _HANDLERS else _derive(kind)
    if handler is None:
        found.extend([part] * expected.num_leaves)
        return
    if expected is _LEAF:
        place = f"at {path}" if path else "at the top"
        raise StructureError(f"structures differ {place}: expected one value for a leaf, got {_describe(part)}")
    items = _children_like(expected, part, path)
    for step, child, item in zip(_steps(expected), expected.children, items, strict=True):
        _broadcast_like(item, child, path + step, found)
