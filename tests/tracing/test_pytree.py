from __future__ import annotations

import copy
import pickle
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srcgrad.errors import StructureError
from srcgrad.tracing.pytree import (
    broadcast_prefix,
    flatten,
    flatten_up_to,
    register_leaf_type,
    register_pytree_node,
    register_pytree_node_class,
    tree_leaves,
    tree_map,
    tree_structure,
)


class Layer(NamedTuple):
    weight: Any
    bias: Any


@dataclass(frozen=True)
class Model:
    layer: Any
    scale: Any = 1.0
    derived: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "derived", self.scale * 2)


@dataclass(frozen=True, slots=True)
class Slotted:
    value: Any


trees = st.recursive(
    st.integers() | st.none() | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2) | st.integers(), inner, max_size=3)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3).map(OrderedDict)
        | st.builds(Layer, inner, inner)
        | st.builds(Slotted, inner)
    ),
    max_leaves=12,
)


@given(trees)
def test_flatten_and_unflatten_are_inverse(tree: Any) -> None:
    leaves, definition = flatten(tree)
    assert definition.unflatten(leaves) == tree
    assert definition.num_leaves == len(leaves) == len(definition.paths())
    assert flatten(tree)[1] == definition
    assert hash(flatten(copy.deepcopy(tree))[1]) == hash(definition)
    assert flatten_up_to(definition, tree) == leaves
    assert flatten(tree, is_leaf=lambda node: False) == (leaves, definition)
    assert pickle.loads(pickle.dumps(definition)) == definition


@given(trees)
def test_paths_lead_to_their_leaves(tree: Any) -> None:
    leaves, definition = flatten(tree)
    for path, leaf in zip(definition.paths(), leaves, strict=True):
        assert eval(f"tree{path}", {"tree": tree}) is leaf


@given(trees, trees)
def test_equal_structures_are_those_that_print_alike(one: Any, other: Any) -> None:
    first, second = tree_structure(one), tree_structure(other)
    assert (first == second) == (repr(first) == repr(second))


def test_repr_and_order_of_keys() -> None:
    leaves, definition = flatten({"b": (2, None), "a": 1, "c": Layer(3, [4]), "d": (5,)})
    assert leaves == [1, 2, 3, 4, 5]
    assert repr(definition) == "{'b': (*, None), 'a': *, 'c': Layer(weight=*, bias=[*]), 'd': (*,)}"
    assert definition.paths() == ["['a']", "['b'][0]", "['c'].weight", "['c'].bias[0]", "['d'][0]"]
    assert repr(tree_structure(OrderedDict(z=1, a=2))) == "OrderedDict(['z']: *, ['a']: *)"
    assert tree_structure(OrderedDict(z=1, a=2)) != tree_structure(OrderedDict(a=2, z=1))


@pytest.mark.parametrize("kind", [dict, partial(defaultdict, list)])
def test_a_dict_has_its_own_order_again(kind: Any) -> None:
    one, other = kind({"b": 1, "a": 2}), kind({"a": 2, "b": 1})
    definition = tree_structure(one)
    for same in (definition, copy.deepcopy(definition), pickle.loads(pickle.dumps(definition))):
        assert same == definition and hash(same) == hash(definition)
        assert list(same.unflatten([3, 4]).items()) == [("b", 4), ("a", 3)]
    assert definition != tree_structure(other) and definition.fits(tree_structure(other))
    assert not definition.fits(tree_structure(kind({"a": 1, "c": 2})))
    assert not definition.fits(tree_structure(kind({"a": [1], "b": 2})))
    assert flatten_up_to(definition, other) == [2, 1]


def test_keys_that_cannot_be_sorted_keep_their_order() -> None:
    tree = {"a": 1, 2: 3}
    leaves, definition = flatten(tree)
    assert leaves == [1, 3]
    assert flatten_up_to(definition, {2: "x", "a": "y"}) == ["y", "x"]


def test_default_dict_keeps_its_factory() -> None:
    tree = defaultdict(list, {"b": 1.0, "a": 2.0})
    again = tree_map(lambda leaf: -leaf, tree)
    assert type(again) is defaultdict and again == {"a": -2.0, "b": -1.0} and again["new"] == []


def test_none_is_an_empty_container_unless_it_is_called_a_leaf() -> None:
    assert flatten(None)[0] == []
    assert flatten(None)[1].unflatten([]) is None
    assert flatten((None, 1), is_leaf=lambda node: node is None)[0] == [None, 1]


def test_frozen_dataclass_is_rebuilt_without_running_its_code() -> None:
    leaves, definition = flatten(Model(Layer(1.0, 2.0)))
    assert leaves == [1.0, 2.0, 1.0, 2.0]
    rebuilt = definition.unflatten(["w", "b", "s", "d"])
    assert (rebuilt.layer, rebuilt.scale, rebuilt.derived) == (Layer("w", "b"), "s", "d")
    assert definition.paths() == [".layer.weight", ".layer.bias", ".scale", ".derived"]
    assert definition.node_types() == {Model, Layer}


def test_subclasses_of_containers_and_classes_are_leaves() -> None:
    class Names(dict[str, int]):
        pass

    assert tree_leaves([Names(a=1), Model, np.ones(2)])[:2] == [Names(a=1), Model]


def test_long_tuple_and_nested_tuple() -> None:
    for count in (0, 1, 16, 17, 40):
        tree = tuple(range(count))
        leaves, definition = flatten((tree, tree))
        assert definition.unflatten(leaves) == (tree, tree)
        assert definition == tree_structure([tree, tree]).__class__(tuple, None, definition.children, 2 * count)


def test_registration_by_functions_and_by_class() -> None:
    class Pair:
        def __init__(self, first: Any, second: Any) -> None:
            self.first, self.second = first, second

    register_pytree_node(Pair, lambda pair: ((pair.first, pair.second), "tag"), lambda tag, items: (tag, Pair(*items)))
    leaves, definition = flatten([Pair(1, [2])])
    assert leaves == [1, 2]
    tag, pair = definition.unflatten([3, 4])[0]
    assert (tag, pair.first, pair.second) == ("tag", 3, [4])
    assert repr(definition) == "[Pair([0]: *, [1]: [*])]"
    with pytest.raises(StructureError, match="registered already"):
        register_pytree_node(Pair, lambda pair: ((), None), lambda tag, items: None)

    @register_pytree_node_class
    class Line:
        def __init__(self, slope: Any) -> None:
            self.slope = slope

        def tree_flatten(self) -> tuple[tuple[Any], None]:
            return (self.slope,), None

        @classmethod
        def tree_unflatten(cls, auxiliary: None, children: tuple[Any]) -> Line:
            return cls(*children)

    assert tree_map(lambda leaf: leaf + 1, Line(1.0)).slope == 2.0


def test_registration_refuses_what_it_cannot_use() -> None:
    with pytest.raises(StructureError, match="needs a class"):
        register_pytree_node(3, None, None)  # type: ignore[arg-type]
    with pytest.raises(StructureError, match="no method tree_flatten"):
        register_pytree_node_class(type("Empty", (), {}))


def test_registered_leaf_type_is_a_leaf() -> None:
    class Box(NamedTuple):
        value: int

    register_leaf_type(Box)
    assert tree_leaves((Box(1), 2)) == [Box(1), 2]


def test_unflatten_counts_its_leaves() -> None:
    with pytest.raises(StructureError, match=r"\(\*, \*\) has 2 leaves, but 1"):
        tree_structure((1, 2)).unflatten([1])
    with pytest.raises(StructureError, match="has 1 leaves, but 2"):
        tree_structure(1).unflatten([1, 2])


def test_pickled_and_copied_structures_still_work() -> None:
    definition = tree_structure({"a": (1, None)})
    for again in (pickle.loads(pickle.dumps(definition)), copy.deepcopy(definition)):
        assert again == definition and again.unflatten([5]) == {"a": (5, None)} and again.paths() == ["['a'][0]"]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": (1, 2)}, r"at the top: expected a dict with the keys \['a', 'b'\], got a dict with the keys \['a'\]"),
        ({"a": (1, 2, 3), "b": None}, r"at \['a'\]: expected a tuple of 2, got a tuple of 3"),
        ({"a": [1, 2], "b": None}, r"at \['a'\]: expected a tuple of 2, got a list of 2"),
        ({"a": (1, 2), "b": 3.0}, r"at \['b'\]: expected None, got a value of type float"),
        ((1, 2), r"at the top: expected a dict .* got a tuple of 2"),
        (None, r"got None"),
    ],
)
def test_flatten_up_to_names_the_place(tree: Any, message: str) -> None:
    with pytest.raises(StructureError, match=message):
        flatten_up_to(tree_structure({"a": (1, 2), "b": None}), tree)


def test_tree_map_takes_subtrees_and_refuses_others() -> None:
    assert tree_map(lambda a, b: (a, b), [1, 2], [{"x": 1}, None]) == [(1, {"x": 1}), (2, None)]
    with pytest.raises(StructureError, match="at the top"):
        tree_map(lambda a, b: a, [1, 2], [1])


def test_broadcast_prefix() -> None:
    full = tree_structure(({"a": 1, "b": (2, 3)}, 4, None))
    assert broadcast_prefix(0, full) == [0] * 4
    assert broadcast_prefix(None, full) == [None] * 4
    assert broadcast_prefix((0, 1, None), full) == [0, 0, 0, 1]
    assert broadcast_prefix(({"a": None, "b": 2}, 1, None), full) == [None, 2, 2, 1]
    with pytest.raises(StructureError, match=r"at \[0\]: expected a dict with the keys \['a', 'b'\], got a tuple of 2"):
        broadcast_prefix(((0, 1), 1, None), full)
    with pytest.raises(StructureError, match=r"at \[1\]: expected one value for a leaf, got a tuple of 1"):
        broadcast_prefix((0, (1,), None), full)
