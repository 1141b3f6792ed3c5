"""Kernels that are the same code are one function: those of an unrolled loop; and what differs is not the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from srcgrad.backends.llvm import loops, nests, program
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.likeness import Likenesses
from srcgrad.backends.llvm.partition import partitioned
from srcgrad.backends.llvm.writing import GroupWriter
from srcgrad.backends.numpy.evaluate import evaluate
from tests.backends.llvm.support import OPS, agree, build, groups, normal, total

pytestmark = pytest.mark.usefixtures("nothing_on_disk")


def functions_in(text: str) -> list[str]:
    """The functions of kernels, but those of their chunks."""
    return re.findall(r"define .*void @(kernel_\d+(?:_again\d+)?)_loops\(", text)


def unrolled(x: Any, w: Any) -> Any:
    """Steps with a sum between, backwards too."""
    made, sums = [x], []
    for _ in range(40):
        sums.append(total(made[-1] * w))
        made.append(OPS["tanh"](made[-1] / sums[-1] + w))
    back = made[-1]
    for term, scale in zip(reversed(made), reversed(sums), strict=False):
        back = back * term / scale + total(back * w) * w
    return back, made[-1]


# --- one function for all --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("most", [1, 1 << 30])
def test_an_unrolled_loop_is_a_few_functions(most: int, texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where kernels of so many arrays would know places in the arena, which differ from step to step."""
    monkeypatch.setattr(program, "MANY", most)
    given = normal(37) + 3.0, normal(37, seed=1) + 4.0
    agree(unrolled, *given, rtol=1e-11)
    assert len(groups(unrolled, *given).groups) > 80
    assert len(functions_in(texts[-1])) < 20


def layers(x: Any, w: Any) -> Any:
    """Rows are normalised after each product: a nest."""
    for _ in range(8):
        y = OPS["dot_general"](x, w, contract=((1,), (0,)), batch=((), ()))
        mean = OPS["broadcast"](total(y, 1) * (1.0 / 24), shape=(16, 24), dims=(0,))
        scale = OPS["sqrt"](total((y - mean) * (y - mean), 1) + 1.0)
        x = x + (y - mean) / OPS["broadcast"](scale, shape=(16, 24), dims=(0,))
    return x


def test_unrolled_nests_are_a_few_functions(texts: list[str]) -> None:
    given = normal(16, 24), normal(24, 24, seed=1) * 0.1
    made = groups(layers, *given).groups
    assert sum(isinstance(group, nests.Nest) for group in made) >= 7
    agree(layers, *given, rtol=1e-11)
    assert len(functions_in(texts[-1])) <= 5


# --- what differs ----------------------------------------------------------------------------------------------------
def moved(x: Any, start: int, stride: int = 1) -> Any:
    return OPS["slice"](x, starts=(start,), limits=(start + 10 * stride,), strides=(stride,))


PAIRS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "constants": (lambda x, y: x * 2.0, lambda x, y: x * 3.0),
    "signs of zero": (lambda x, y: x * 0.0 * y, lambda x, y: x * -0.0 * y),
    "ops": (lambda x, y: OPS["sin"](x), lambda x, y: OPS["tanh"](x)),
    "orders": (lambda x, y: x - y, lambda x, y: y - x),
    "one array": (lambda x, y: x * y, lambda x, y: x * x),
    "attributes": (lambda x, y: OPS["integer_pow"](x, y=3), lambda x, y: OPS["integer_pow"](x, y=4)),
    "offsets": (lambda x, y: moved(x, 0), lambda x, y: moved(x, 7)),
    "strides": (lambda x, y: moved(x, 0), lambda x, y: moved(x, 0, 2)),
    "operands": (lambda x, y: (x + y) * x * (x - y), lambda x, y: (x + y) * y * (x - y)),
    "functions": (lambda x, y: (x * y - x) * (x - y), lambda x, y: (x - x * y) * (x - y)),
}


def in_turn(bodies: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Each body on arrays of its own, all else alike: a factor is the sum of what the one before gave."""

    def rule(scale: Any, *arrays: Any) -> Any:
        found = []
        for k, body in enumerate(bodies):
            factor = OPS["tanh"](scale)
            made = body(arrays[2 * k], arrays[2 * k + 1])
            made = made * OPS["cast"](factor, dtype=made.dtype)
            scale = OPS["cast"](total(made), dtype=scale.dtype)
            found += [made, scale]
        return tuple(found)

    return rule


@pytest.mark.parametrize("name", PAIRS)
def test_what_differs_is_not_one_function(name: str, texts: list[str]) -> None:
    """Two of each kind, which share one function and no more."""
    bodies = PAIRS[name] * 2
    given = [np.float64(0.7), *[normal(40, seed=k) for k in range(2 * len(bodies))]]
    function = build(in_turn(bodies), *given)
    wanted = evaluate(function, given)
    found = BACKEND.compile(function).run(*given)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)
        assert (np.signbit(one) == np.signbit(other)).all()
    assert len(functions_in(texts[-1])) == (1 if name == "orders" else 2)  # the arrays come the other way round


def test_other_folds_are_other_functions(texts: list[str]) -> None:
    def rule(scale: Any, *arrays: Any) -> Any:
        found = []
        kinds = (("sum", 0), ("max", 0), ("sum", 1), ("min", 0), ("prod", 0))
        for k, (name, axis) in enumerate((*kinds, *kinds)):
            made = OPS[f"reduce_{name}"](arrays[k] * OPS["tanh"](scale), axes=(axis,))
            scale = OPS["tanh"](total(made))
            found += [made, scale]
        return tuple(found)

    agree(rule, np.float64(0.3), *[normal(12, 12, seed=k) for k in range(10)], rtol=1e-11)
    assert 5 <= len(functions_in(texts[-1])) < 12


def test_other_types_are_other_functions(texts: list[str]) -> None:
    def rule(*arrays: Any) -> Any:
        found: list[Any] = []
        for k, array in enumerate(arrays):
            made = OPS["tanh"](array * (found[k - 2][0] if k > 1 else total(array)))
            found.append((total(made), made))
        return tuple([term for pair in found for term in pair])

    agree(rule, *[normal(24, seed=k, dtype=(np.float64, np.float32)[k % 2]) for k in range(6)], rtol=1e-6)
    assert len(functions_in(texts[-1])) == 2


def test_what_is_written_over_its_operand_is_another_function() -> None:
    """The same group, once for an operand that is read again and once for one that is not."""

    def rule(scale: Any, *arrays: Any) -> Any:
        found = []
        for k, array in enumerate(arrays):
            made = OPS["cumsum"](array, axis=0, reverse=False)
            after = OPS["tanh"](made * scale)
            scale = total(after)
            found += [OPS["cumsum"](after, axis=0, reverse=False), scale]
            if k % 2:
                found.append(made)
        return tuple(found)

    agree(rule, np.float64(0.3), *[normal(50, seed=k) for k in range(6)], rtol=1e-11)


def test_kernels_that_python_calls_have_their_own_names() -> None:
    """Two groups that are the same, with an operation of NumPy's between them."""

    def rule(x: Any) -> Any:
        for _ in range(3):
            x = OPS["dct"](OPS["tanh"](x * 0.5), type=2, axis=0, norm=None, orthogonalize=False)
        return x

    agree(rule, normal(21), rtol=1e-12)


def test_long_groups_are_not_asked() -> None:
    def long(x: Any) -> Any:
        for k in range(300):
            x = x * (1.0 + k) + 0.5
        return x

    made = groups(long, normal(9)).groups
    known = Likenesses([*made, *made])
    assert not known.is_repeated(made[0]) and known.key(made[0], {}, {}) is None


# --- how much is written ---------------------------------------------------------------------------------------------
def test_groups_do_not_compute_all_again_that_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even while it is found out what to keep: with many sums that is most of the time it takes."""
    added: list[Any] = []
    add = GroupWriter.add

    def counted(self: GroupWriter, statement: loops.Statement, axes: int) -> int:
        added.append(statement)
        return add(self, statement, axes)

    def rule(x: Any, w: Any) -> Any:
        for _ in range(100):
            x = OPS["tanh"](x * w / total(x * w + w) + x) - w * x
        return x

    function = build(rule, normal(9), normal(9, seed=1))
    monkeypatch.setattr(GroupWriter, "add", counted)
    assert len(partitioned(function).groups) > 90
    assert len(added) < 4 * len(function.operations)
