"""Patterns: what is known of masks, against the masks themselves; and what derivatives leave out for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Value, literal
from srcgrad.ir.opdef import REGISTRY, Lin, Term, Zero
from srcgrad.ir.transforms import patterns
from srcgrad.ir.transforms.linear import Masked
from srcgrad.ir.transforms.patterns import MOST_CELLS, Pattern, Patterns, constant
from srcgrad.ir.types import BOOL, FLOAT64, ArrayType

Array = np.ndarray[Any, Any]
SIZES = (0, 1, 2, 3, 5, 8)


def shown(pattern: Pattern) -> Array:
    """The mask that a pattern is of."""
    found = pattern.cells
    for axis, cuts in enumerate(pattern.cuts):
        found = np.repeat(found, np.diff(cuts), axis)
    return found


class Drawing:
    """Draws masks: constants, and what moves, joins and combines them."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.builder = Builder()
        self.masks = [self.flag(self.shape()) for _ in range(3)]

    def draw(self, options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def shape(self) -> tuple[int, ...]:
        return tuple(int(self.draw(SIZES)) for _ in range(int(self.random.integers(4))))

    def flag(self, shape: tuple[int, ...]) -> Value:
        return literal(bool(self.random.random() < 0.5), ArrayType(BOOL, shape))

    def like(self, shape: Any) -> Value:
        same = [mask for mask in self.masks if mask.type.shape == shape]
        return self.draw(same) if same and self.random.random() < 0.7 else self.flag(shape)  # type: ignore[no-any-return]

    def bounds(self, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        starts = tuple(int(self.random.integers(size + 1)) for size in shape)
        pairs = zip(starts, shape, strict=True)
        limits = tuple(int(self.random.integers(start, size + 1)) for start, size in pairs)
        return {"starts": starts, "limits": limits, "strides": tuple(int(self.draw((1, 1, 1, 2, 3))) for _ in shape)}

    def step(self) -> None:
        mask = self.draw(self.masks)
        shape = mask.type.static_shape
        name = self.draw(tuple(patterns.RULES))
        attrs: dict[str, Any] = {}
        operands = [mask]
        if name in ("slice", "slice_set"):
            attrs = self.bounds(shape)
        if name == "slice_set":
            part = tuple(map(len, patterns.ranges_of(attrs)))
            operands.append(self.like(part))
        if name in ("concatenate", "reverse", "reduce_or", "restarting_cumsum") and not shape:
            return
        if name == "restarting_cumsum":
            attrs = {"axis": int(self.random.integers(len(shape))), "reverse": bool(self.random.random() < 0.5)}
            operands.append(literal(False, ArrayType(BOOL, shape)))
        if name == "concatenate":
            attrs = {"axis": int(self.random.integers(len(shape)))}
            operands.append(self.like(shape))
        if name in ("reverse", "reduce_or"):
            attrs = {"axes": (int(self.random.integers(len(shape))),)}
        if name == "transpose":
            attrs = {"perm": tuple(int(axis) for axis in self.random.permutation(len(shape)))}
        if name == "broadcast":
            place = int(self.random.integers(len(shape) + 1))
            dims = tuple(axis + (axis >= place) for axis in range(len(shape)))
            sizes = [int(self.draw((1, 4))) if size == 1 else size for size in shape]
            attrs = {"shape": (*sizes[:place], 3, *sizes[place:]), "dims": dims}
        if name == "reshape":
            attrs = {
                "shape": self.draw(((1, *shape), (*shape, 1), (mask.type.size,), tuple(s for s in shape if s != 1)))
            }
        if name in ("logical_or", "logical_and"):
            operands.append(self.like(shape))
        found = self.builder.emit(REGISTRY[name], operands, attrs)
        if found.type.size <= 1 << 12:
            self.masks.append(found)


@pytest.mark.parametrize("seed", range(60))
def test_patterns_are_where_masks_are_true(seed: int) -> None:
    drawing = Drawing(seed)
    for _ in range(30):
        drawing.step()
    known = Patterns()
    masks = [mask for mask in drawing.masks if mask.producer is not None]
    truths = evaluate(drawing.builder.function("masks", masks), [])
    found = [known.of(mask) for mask in masks]
    assert sum(pattern is not None for pattern in found) * 2 > len(masks)
    for pattern, truth in zip(found, truths, strict=True):
        if pattern is not None:
            np.testing.assert_array_equal(shown(pattern), truth)
            assert (pattern.always, pattern.never) == (np.all(truth), not np.any(truth))


def test_patterns_of_huge_masks_have_few_cells() -> None:
    builder, size = Builder(), 10**9
    whole = Term(builder, literal(False, ArrayType(BOOL, (size, size))))
    attrs = {"starts": (1, 5), "limits": (size - 1, size), "strides": (1, 1)}
    inner = REGISTRY["slice_set"](whole, literal_term(builder, (size - 2, size - 5)), **attrs)
    found = Patterns().of(inner.value)
    assert found is not None and found.cells.shape == (3, 2)
    assert found.cuts == ((0, 1, size - 1, size), (0, 5, size))


def literal_term(builder: Builder, shape: tuple[int, ...]) -> Term:
    return Term(builder, literal(True, ArrayType(BOOL, shape)))


def test_what_has_many_cells_or_is_not_known_is_unknown() -> None:
    builder = Builder()
    for size, known in ((MOST_CELLS // 2, True), (MOST_CELLS * 2, False)):
        whole = Term(builder, literal(False, ArrayType(BOOL, (size,))))
        attrs = {"starts": (0,), "limits": (size,), "strides": (2,)}
        every = REGISTRY["slice_set"](whole, literal_term(builder, (size // 2,)), **attrs)
        assert (Patterns().of(every.value) is not None) == known
    param = Term(builder, builder.param(ArrayType(BOOL, (4,))))
    assert Patterns().of(param.value) is None
    assert Patterns().of((param | param.like(True)).value) is None
    assert constant(True, ()).always and constant(False, ()).never


def test_parts_with_too_many_cells_are_added() -> None:
    """Every second row is known, and so is every other one; not where columns are cut too."""

    def f(x: Any) -> Any:
        return np.sum(np.sin(x[::2]) * 2.0) + np.sum(x[1::2, 2:5] ** 2)

    x = np.linspace(0.0, 1.0, 40_000).reshape(4_000, 10)
    wanted = np.zeros_like(x)
    wanted[::2] = 2 * np.cos(x[::2])
    wanted[1::2, 2:5] = 2 * x[1::2, 2:5]
    np.testing.assert_allclose(sg.grad(f, backend="numpy")(x), wanted, rtol=1e-14)


def test_masks_that_hold_everywhere_or_nowhere_are_none() -> None:
    builder = Builder()
    emitter = Masked(builder)
    values = [Term(builder, builder.param(ArrayType(FLOAT64, (size,)))) for size in (3, 2, 5)]
    pad = [{"starts": (0,), "limits": (3,), "strides": (1,)}, {"starts": (3,), "limits": (5,), "strides": (1,)}]
    zero = Zero(ArrayType(FLOAT64, (5,)))
    first, second = (
        emitter.apply(REGISTRY["slice_set"], [zero, Lin(value.value)], attrs)
        for value, attrs in zip(values, pad, strict=False)
    )
    assert isinstance(first, Lin) and first.mask is not None
    assert isinstance(emitter.apply(REGISTRY["slice"], [first], pad[1]), Zero)
    both = emitter.add(first, second)
    assert isinstance(both, Lin) and both.mask is None
    assert "add" not in {operation.op.name for operation in builder.operations}
    (found,) = evaluate(builder.function("f", [both.value]), [np.arange(3.0), -np.zeros(2), np.ones(5)])
    np.testing.assert_array_equal(found, [0, 1, 2, 0, 0])
    assert np.signbit(found[3:]).all()


def updated(u: Any, steps: int) -> Any:
    u = u.copy()
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**2)


def cleared(u: Any, steps: int) -> Any:
    """Ends that are zero: their derivative is structurally zero in every trip but the last."""
    u = u.copy()
    for _ in range(steps):
        u[1:-1] = u[1:-1] + 0.1 * np.sqrt(u[2:] + u[:-2])
        u[0] = 0.0
        u[-1] = 0.0
    return np.sum(u**2)


@pytest.mark.parametrize("trips", [3, 40])
def test_loops_over_slices_carry_no_masks(trips: int) -> None:
    """The masks of the parts of a stencil together hold everywhere, so no trip needs one."""
    x = np.linspace(1.0, 2.0, 12)
    text = str(sg.explain(sg.grad(lambda u: updated(u, trips), backend="numpy"))(x)["optimised ir"])
    assert "slice_set" in text and "bool" not in text and "select" not in text


@pytest.mark.parametrize("f", [updated, cleared])
@pytest.mark.parametrize("trips", [1, 3, 40])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_derivatives_of_updates_in_loops(f: Callable[..., Any], trips: int, backend: str) -> None:
    x = np.linspace(1.0, 2.0, 12)
    x[3] = 0.5
    found = sg.grad(lambda u: f(u, trips), backend=backend)(x)
    ahead = sg.jacfwd(lambda u: f(u, trips), backend=backend)(x)
    np.testing.assert_allclose(found, ahead, rtol=1e-12)
    h = 1e-6
    wanted = [(f(x + h * row, trips) - f(x - h * row, trips)) / (2 * h) for row in np.eye(12)]
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)


def test_what_is_written_over_has_no_part_in_the_derivative() -> None:
    """The root of what is 0 has an infinite slope; it is written over, in the middle and at the ends."""

    def f(x: Any) -> Any:
        y = np.sqrt(x)
        y[1:-1] = x[1:-1] * 2
        y[0] = 1.0
        return np.sum(y)

    x = np.array([0.0, 0.0, 0.0, 4.0])
    for backend in ("numpy", "llvm"):
        np.testing.assert_array_equal(sg.grad(f, backend=backend)(x), [0, 2, 2, 0.25])
        np.testing.assert_array_equal(sg.jacfwd(f, backend=backend)(x), [0, 2, 2, 0.25])
