from __future__ import annotations

import functools
import gc
import itertools
import math
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from srcgrad.tracing.aliasing import AliasPattern, alias_groups
from srcgrad.tracing.capture import Captures, analyze
from srcgrad.tracing.purity import static_key
from tests.tracing.capture_support import captures_of, is_pure, module, paths, reason_of, values_of

# ---- hidden inputs


def test_globals_are_read_at_each_call() -> None:
    space = module("def f(x): return alpha * W @ x + beta", alpha=2.0, W=np.ones((2, 2)), beta=np.float32(1))
    f = space["f"]
    captures = captures_of(f)
    assert {hidden.path: hidden.kind for hidden in captures.hidden} == {
        "global alpha": "float",
        "global W": "array",
        "global beta": "numpy scalar",
    }
    assert values_of(captures, f)[0] == 2.0
    space["alpha"] = 5.0
    space["W"][0, 0] = 7.0
    values = values_of(captures, f)
    assert values[0] == 5.0 and values[1] is space["W"] and values[2] == np.float32(1)
    space["W"] = np.zeros((3, 3))
    assert values_of(captures, f)[1] is space["W"]


@pytest.mark.parametrize("new", [3, np.float64(3), "three", [3.0], None, np.ones(2)])
def test_a_float_that_becomes_something_else_fails_the_guard(new: Any) -> None:
    space = module("def f(x): return alpha * x", alpha=2.0)
    captures = captures_of(space["f"])
    space["alpha"] = new
    assert captures.bind(space["f"]) is None


def test_an_array_that_becomes_a_subclass_fails_the_guard() -> None:
    space = module("def f(x): return W * x", W=np.ones(2))
    captures = captures_of(space["f"])
    space["W"] = np.ma.masked_array(np.ones(2))
    assert captures.bind(space["f"]) is None
    assert "MaskedArray" in reason_of(space["f"])


def test_complex_and_array_attributes() -> None:
    space = module("def f(x): return W.T.sum() * z.real * x.shape[0]", W=np.ones((2, 2)), z=1j)
    captures = captures_of(space["f"])
    assert [hidden.kind for hidden in captures.hidden] == ["array", "complex"]
    assert captures.local_attributes == {"T", "sum", "real", "shape"}


def test_closure_cells_of_factories_and_fresh_lambdas() -> None:
    def make(alpha: float, offset: Any) -> Callable[[Any], Any]:
        return lambda x: alpha * x + offset

    first, second = make(2.0, np.ones(2)), make(3.0, np.zeros(2))
    captures = captures_of(first)
    assert paths(captures) == ["closure alpha of <lambda>", "closure offset of <lambda>"]
    assert values_of(captures, first)[0] == 2.0
    assert values_of(captures, second)[0] == 3.0
    assert captures.code_key == captures_of(second).code_key
    rebuilt = captures.rebuild(second, [10.0, 1.0])
    assert rebuilt(2.0) == 21.0
    for k in range(3):
        fresh = make(float(k), np.ones(1))
        assert values_of(captures, fresh)[0] == float(k)


def test_closure_cell_that_changes() -> None:
    def outer() -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
        alpha: Any = 1.0

        def change(value: Any) -> None:
            nonlocal alpha
            alpha = value

        return lambda x: alpha * x, change

    f, change = outer()
    captures = captures_of(f)
    change(4.0)
    assert values_of(captures, f) == (4.0,)
    change("text")
    assert captures.bind(f) is None
    assert "assigns 'alpha' of an enclosing function" in reason_of(change)


def test_one_cell_shared_by_two_functions_is_one_hidden_input() -> None:
    def outer(weights: Any) -> Callable[[Any], Any]:
        def helper(x: Any) -> Any:
            return weights @ x

        return lambda x: helper(x) + weights.sum()

    f = outer(np.eye(2))
    captures = captures_of(f)
    assert len(captures.hidden) == 1
    other = outer(np.ones((2, 2)))
    assert values_of(captures, other)[0][0, 1] == 1.0
    assert captures.rebuild(other, [3 * np.eye(2)])(np.ones(2)).tolist() == [9.0, 9.0]


def test_defaults_and_keyword_only_defaults() -> None:
    space = module("def f(x, a=2.0, n=3, *, b=4.0, mode='k'): return x * a ** n * b")
    f = space["f"]
    captures = captures_of(f)
    assert paths(captures) == ["default a of f", "default b of f"]
    assert captures.rebuild(f, [3.0, 1.0])(1.0) == 27.0
    f.__defaults__ = (5.0, 3)
    assert values_of(captures, f) == (5.0, 4.0)
    f.__kwdefaults__ = {"b": 6.0, "mode": "k"}
    assert values_of(captures, f) == (5.0, 6.0)
    f.__defaults__ = (5.0, 4)
    assert captures.bind(f) is None
    f.__defaults__ = (3,)
    assert captures.bind(f) is None
    f.__defaults__ = None
    assert captures.bind(f) is None
    assert "reads the list 'a' (user_code.py:1)" in reason_of(module("def f(x, a=[]): return x")["f"])
    assert "module 'numpy' around" in reason_of(module("def f(x, m=np): return m.random.normal()")["f"])


def test_floats_static_guards_by_value() -> None:
    space = module("def f(x): return alpha * x + W", alpha=0.0, W=np.ones(1))
    f = space["f"]
    captures = captures_of(f, floats_static=True)
    assert paths(captures) == ["global W"]
    assert captures.bind(f) is not None
    space["alpha"] = float("0.0")
    assert captures.bind(f) is not None
    for other in (-0.0, 1.0, 0, np.float64(0.0), float("nan")):
        space["alpha"] = other
        assert captures.bind(f) is None
    space["alpha"] = float("nan")
    captures = captures_of(f, floats_static=True)
    space["alpha"] = -float("nan") * 2
    assert captures.bind(f) is not None


def test_attribute_of_a_module_or_of_a_local_value() -> None:
    space = module("def f(x):\n    y = (x if x else np).sum(x)\n    return y")
    assert captures_of(space["f"]).local_attributes == {"sum"}
    space = module("def f(x): return np.sum(x) + math.pi")
    assert captures_of(space["f"]).local_attributes == frozenset()


# ---- guards


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (3, 4),
        (1, True),
        (1, 1.0),
        ("a", "b"),
        (b"a", b"b"),
        (None, 0),
        ((1, 2), (1, 3)),
        ((1,), (True,)),
        (np.int64(3), np.int32(3)),
        (np.dtype("f4"), np.dtype("f8")),
        (np.float64, np.float32),
        (slice(1, 2), slice(1, 3)),
        (..., None),
        (True, np.True_),
    ],
)
def test_static_values_are_guarded(old: Any, new: Any) -> None:
    space = module("def f(x): return x, n", n=old)
    captures = captures_of(space["f"])
    assert captures.hidden == () and captures.bind(space["f"]) == ((), None)
    space["n"] = new
    assert captures.bind(space["f"]) is None


def test_equal_static_values_pass() -> None:
    space = module("def f(x): return x, n, m", n=12345, m=("a", (1, 2)))
    captures = captures_of(space["f"])
    space["n"] = int("12345")
    space["m"] = ("".join(["a"]), tuple(range(1, 3)))
    assert captures.bind(space["f"]) is not None


def test_static_keys_tell_signed_zeros_and_types_apart() -> None:
    def key(value: Any) -> Any:
        return static_key(value, is_pure, floats=True)

    values = [
        0.0,
        -0.0,
        0,
        False,
        0j,
        -0j,
        np.float64(0.0),
        np.float64(-0.0),
        np.float32(0),
        np.int64(0),
        np.int8(0),
        (0,),
        (0.0,),
    ]
    for one, other in itertools.combinations(values, 2):
        assert key(one) != key(other), (one, other)
    assert key(float("nan")) == key(-float("nan"))
    assert static_key(0.0, is_pure) is None and static_key((0.0,), is_pure) is None and key([1]) is None


def test_modules_and_pure_functions_are_guarded_by_identity() -> None:
    space = module(
        "from math import sin\ndef f(x): return sin(x) + np.sin(x) + math.pi + np.linalg.solve(x, x) + np.add.reduce(x)"
    )
    f = space["f"]
    captures = captures_of(f)
    assert captures.bind(f) is not None
    for name, new in (("sin", math.cos), ("np", math), ("math", np)):
        old = space[name]
        space[name] = new
        assert captures.bind(f) is None, name
        space[name] = old
    assert captures.bind(f) is not None
    del space["np"]
    assert captures.bind(f) is None


def test_shadowed_and_replaced_builtins(monkeypatch: pytest.MonkeyPatch) -> None:
    space = module("def f(x): return len(x)")
    f = space["f"]
    captures = captures_of(f)
    assert captures.bind(f) is not None
    space["len"] = lambda x: 7
    assert captures.bind(f) is None
    shadowed = captures_of(f)
    assert shadowed.bind(f) is not None
    del space["len"]
    assert shadowed.bind(f) is None and captures.bind(f) is not None
    monkeypatch.setitem(f.__builtins__, "len", lambda x: 8)
    replaced = captures.bind(f)
    monkeypatch.undo()
    assert replaced is None


def test_unbound_names_become_guards() -> None:
    space = module("def f(x): return x + later")
    f = space["f"]
    captures = captures_of(f)
    assert captures.bind(f) is not None and "unbound" in captures.explain()
    space["later"] = 3.0
    assert captures.bind(f) is None
    assert paths(captures_of(f)) == ["global later"]

    def outer(bound: bool) -> Any:
        def inner(x: Any) -> Any:
            return x + late

        if bound:
            late = 1.0
        return inner

    empty = captures_of(outer(False))
    assert empty.bind(outer(False)) is not None and empty.bind(outer(True)) is None
    full = captures_of(outer(True))
    assert full.bind(outer(True)) is not None and full.bind(outer(False)) is None


# ---- user functions


HELPERS = """
def inner(x): return x * alpha
def helper(x): return inner(x) + 1
def plain(x): return np.sin(x)
def f(x): return helper(x) + plain(x)
"""


def test_helpers_are_searched_and_rebuilt() -> None:
    space = module(HELPERS, alpha=2.0)
    f = space["f"]
    captures = captures_of(f)
    assert paths(captures) == ["global alpha"]
    copy = captures.rebuild(f, [10.0])
    assert copy(1.0) == 11.0 + math.sin(1.0)
    assert f(1.0) == 3.0 + math.sin(1.0)
    assert copy.__code__ is f.__code__ and copy.__name__ == "f" and copy.__qualname__ == f.__qualname__
    assert copy.__module__ == f.__module__ and copy.__globals__["plain"] is space["plain"]
    assert copy.__globals__["helper"] is not space["helper"]


def test_redefined_helpers() -> None:
    space = module(HELPERS, alpha=2.0)
    f = space["f"]
    captures = captures_of(f)
    exec("def inner(x): return x - alpha", space)
    assert captures.bind(f) is None
    assert captures_of(f).code_key != captures.code_key
    again = module(HELPERS, alpha=3.0)
    assert values_of(captures, again["f"]) == (3.0,)
    again["plain"] = np.sin
    assert captures.bind(again["f"]) is None
    exec("f.__code__ = (lambda x: x).__code__", again)
    assert captures.bind(again["f"]) is None


def test_helper_with_other_globals_fails_where_they_were_shared() -> None:
    space, other = module(HELPERS, alpha=2.0), module(HELPERS, alpha=5.0)
    captures = captures_of(space["f"])
    space["helper"] = other["helper"]
    assert captures.bind(space["f"]) is None
    assert values_of(captures_of(space["f"]), space["f"]) == (5.0,)


def test_recursion_of_one_and_of_two_functions() -> None:
    space = module(
        "def even(n, x): return x if n == 0 else odd(n - 1, x * alpha)\n"
        "def odd(n, x): return even(n - 1, x + beta)\n"
        "def power(n, x): return 1.0 if n == 0 else alpha * x * power(n - 1, x)",
        alpha=2.0,
        beta=3.0,
    )
    captures = captures_of(space["even"])
    assert captures.rebuild(space["even"], [10.0, 1.0])(4, 1.0) == 111.0
    captures = captures_of(space["power"])
    assert captures.rebuild(space["power"], [3.0])(2, 1.0) == 9.0
    assert len(captures.code_key) == 1

    def outer(scale: float) -> Any:
        def fact(n: int) -> Any:
            return scale if n == 0 else n * fact(n - 1)

        return fact

    captures = captures_of(outer(1.0))
    assert captures.rebuild(outer(2.0), [10.0])(3) == 60.0


def test_two_closures_of_one_code_keep_their_own_values() -> None:
    def scaled(factor: float) -> Any:
        return lambda x: factor * x

    double, triple = scaled(2.0), scaled(3.0)

    def f(x: Any) -> Any:
        return double(x) + 10 * triple(x)

    captures = captures_of(f)
    assert values_of(captures, f) == (2.0, 3.0)
    assert captures.rebuild(f, [5.0, 7.0])(1.0) == 75.0


def test_nested_functions_comprehensions_and_generators() -> None:
    space = module(
        "def f(x):\n"
        "    local = 3\n"
        "    def g(y):\n"
        "        nonlocal local\n"
        "        local = local + 1\n"
        "        return y * alpha + local\n"
        "    pairs = [g(i) * beta for i in x]\n"
        "    table = {i: gamma for i in x}\n"
        "    return sum(v + delta for v in pairs) + sum(table.values()) + (lambda: epsilon)()\n"
        "def steps(x):\n"
        "    yield x * alpha",
        **dict.fromkeys(("alpha", "beta", "gamma", "delta", "epsilon"), 1.0),
    )
    captures = captures_of(space["f"])
    assert sorted(paths(captures)) == ["global alpha", "global beta", "global delta", "global epsilon", "global gamma"]
    replacements = [2.0 if hidden.path == "global beta" else 1.0 for hidden in captures.hidden]
    assert captures.rebuild(space["f"], replacements)([0, 1]) == 2 * (4 + 6) + 2 + 2 + 1
    assert list(captures_of(space["steps"]).rebuild(space["steps"], [4.0])(2.0)) == [8.0]


def test_captured_name_that_is_also_a_comprehension_variable() -> None:
    def outer(x: Any) -> Any:
        def f(y: Any) -> Any:
            return [lambda: x for x in y], x  # noqa: B023

        return f

    found = analyze(outer(2.0), is_pure=is_pure)
    if isinstance(found, Captures):
        assert paths(found) == ["closure x of f"]
    else:
        assert sys.version_info >= (3, 12) and "'x' is captured" in found.reason


def test_functions_of_other_modules() -> None:
    helpers = types.ModuleType("helpers")
    exec("import numpy as np\nscale = 2.0\ndef g(x): return scale * x\ndef h(x): return g(x) + scale", vars(helpers))
    space = module("def f(x): return helpers.h(x) + helpers.scale + helpers.np.sin(x)", helpers=helpers)
    f = space["f"]
    captures = captures_of(f)
    assert paths(captures) == ["helpers.scale"]
    assert captures.rebuild(f, [10.0])(0.0) == 20.0
    helpers.scale = 3.0  # type: ignore[attr-defined]
    assert values_of(captures, f) == (3.0,)
    exec("def h(x): return x", vars(helpers))
    assert captures.bind(f) is None
    assert "passes the module 'helpers' around" in reason_of(module("def f(x): return helpers", helpers=helpers)["f"])
    assert "helpers.missing" in reason_of(module("def f(x): return helpers.missing", helpers=helpers)["f"])


def test_partial_objects() -> None:
    def g(x: Any, a: Any, b: Any = 1.0, c: int = 2) -> Any:
        return x + 10 * a + 100 * b

    bound = functools.partial(g, a=2.0, c=3)
    captures = captures_of(bound)
    assert sorted(paths(captures)) == ["argument a of partial(g)", "default b of g"]
    assert values_of(captures, functools.partial(g, a=4.0, c=3))[0] == 4.0
    assert captures.bind(functools.partial(g, a=4.0, c=4)) is None
    assert captures.bind(functools.partial(g, c=3, a=4.0)) is None
    assert captures.bind(functools.partial(g, 1.0, a=4.0, c=3)) is None
    assert captures.bind(g) is None

    def f(x: Any) -> Any:
        return bound(x) * 2

    captures = captures_of(f)
    replacements = [7.0 if "argument" in hidden.path else 0.0 for hidden in captures.hidden]
    assert captures.rebuild(f, replacements)(1.0) == 142.0
    assert captures_of(functools.partial(np.sin)).hidden == ()


class Transformed:
    def __init__(self, order: int, *functions: Any) -> None:
        self.__srcgrad_static__ = ("grad", order)
        self.__srcgrad_wrapped__ = functions if len(functions) > 1 else functions[0]

    def __srcgrad_rewrap__(self, *functions: Any) -> Transformed:
        return Transformed(self.__srcgrad_static__[1], *functions)

    def __call__(self, x: Any) -> Any:
        wrapped: Any = self.__srcgrad_wrapped__
        return 2 * (wrapped[0] if isinstance(wrapped, tuple) else wrapped)(x)


def test_transformed_functions() -> None:
    space = module("def inner(x): return alpha * x\ndef f(x): return g(x) + 1", alpha=2.0)
    space["g"] = Transformed(1, space["inner"])
    captures = captures_of(space["f"])
    assert captures.rebuild(space["f"], [10.0])(1.0) == 21.0
    space["g"] = Transformed(1, space["inner"])
    assert values_of(captures, space["f"]) == (2.0,)
    space["g"] = Transformed(2, space["inner"])
    assert captures.bind(space["f"]) is None
    space["g"] = Transformed(1, space["inner"], None)
    assert captures.bind(space["f"]) is None
    captures = captures_of(space["f"])
    assert captures.rebuild(space["f"], [10.0])(1.0) == 21.0
    assert captures_of(Transformed(1, space["inner"])).rebuild(space["g"], [5.0])(1.0) == 10.0


def test_recursion_through_a_transformed_function() -> None:
    space = module("def f(x): return alpha if x is None else g(None)", alpha=2.0)
    space["g"] = Transformed(1, space["f"])
    captures = captures_of(space["f"])
    assert captures.rebuild(space["f"], [5.0])(1.0) == 10.0


# ---- aliasing and lifetime


def test_alias_pattern_in_bind() -> None:
    space = module("def f(x): return A @ x + B @ x", A=np.eye(2), B=np.ones((2, 2)))
    captures = captures_of(space["f"])
    bound = captures.bind(space["f"])
    assert bound is not None and bound[1] is None
    space["B"] = space["A"]
    bound = captures.bind(space["f"])
    assert bound is not None and bound[1] == AliasPattern((0, 0), ())
    space["B"] = space["A"].T
    bound = captures.bind(space["f"])
    assert bound is not None and bound[1] == AliasPattern((0, 1), ((0, 1),))
    space["B"] = np.arange(8.0).reshape(4, 2)[:2]
    bound = captures.bind(space["f"])
    assert bound is not None and bound[1] is None


def test_alias_groups() -> None:
    base = np.arange(10.0)
    assert alias_groups([]) is None
    assert alias_groups([1.0, 1.0, base, base.copy()]) is None
    assert alias_groups([base[:5], base[5:]]) is None
    assert alias_groups([base[::2], base[1::2]]) is None
    assert alias_groups([base[:6], 2.0, base[5:]]) == AliasPattern((0, 1, 2), ((0, 2),))
    raw = bytearray(16)
    one, other = np.frombuffer(raw), np.frombuffer(raw)
    assert alias_groups([one, other]) == AliasPattern((0, 1), ((0, 1),))
    assert alias_groups([one[:1], other[:]]) == AliasPattern((0, 1), ((0, 1),))


def test_no_user_object_is_kept_alive() -> None:
    def make() -> tuple[Captures, list[weakref.ref[Any]]]:
        space = module("def helper(x): return W @ x\ndef f(x): return helper(x) + len(x)", W=np.eye(2))
        f = space["f"]
        captures = captures_of(f)
        captures.rebuild(f, [np.ones((2, 2))])
        captures.bind(f)
        return captures, [weakref.ref(space["W"]), weakref.ref(f), weakref.ref(space["helper"])]

    captures, references = make()
    gc.collect()
    assert [reference() for reference in references] == [None, None, None]
    assert captures.hidden[0].path == "global W"


def test_explain_and_source() -> None:
    space = module("def f(x): return np.sin(x) * alpha + n + len(x)", alpha=2.0, n=3)
    text = captures_of(space["f"]).explain()
    for part in (
        "function f: same code (user_code.py:1)",
        "global np: the module numpy",
        "global alpha: hidden input (float)",
    ):
        assert part in text
    assert "global n: guard, 3" in text and "built-in len: guard, not shadowed" in text
    assert "alias_groups" not in captures_of(space["f"]).source


def test_errors_point_at_the_users_line() -> None:
    space = module("def f(x):\n    return alpha / x", alpha=2.0)
    copy = captures_of(space["f"]).rebuild(space["f"], [1])
    with pytest.raises(ZeroDivisionError) as caught:
        copy(0)
    last = caught.traceback[-1]
    assert last.lineno == 1 and str(last.path).endswith("user_code.py")
