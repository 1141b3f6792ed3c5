"""Indexing, assignment, views and aliasing on traced arrays mean what they mean in NumPy."""

from __future__ import annotations

import array
import re
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import srcgrad as sg
from srcgrad.errors import IndexingError, MutationError, ShapeError, SrcgradError, UnsupportedError
from srcgrad.tracing.trace import NeedsConcrete
from tests.tracing.trace_support import compare, directional, run

X = np.arange(24.0).reshape(2, 3, 4) * 0.5 - 3.0
M = np.arange(12.0).reshape(3, 4) - 4.5
V = np.arange(5.0)
MASK = np.array([True, False, True])
MASK2 = M > 0

BASIC: list[tuple[Any, ...]] = [
    (),
    (...,),
    (0,),
    (-1,),
    (1, 2),
    (1, 2, 3),
    (1, ..., 3),
    (..., 0),
    (slice(None),),
    (slice(1, None), slice(None, -1)),
    (slice(None, None, -1),),
    (slice(None, None, -2), slice(None), slice(3, 0, -2)),
    (slice(5, 1),),
    (slice(-2, None),),
    (None,),
    (None, 0),
    (0, None, ..., None),
    (..., None),
    (slice(0, 0),),
    (slice(None), 1),
    (slice(None), slice(None), 2),
    (np.int64(1),),
    (np.array(1),),
    (np.array(1), 2, 3),
    (slice(np.int64(1), None),),
    (1, slice(None, None, 2), ...),
    (slice(None, None, 5), slice(2, None, -1)),
]
ADVANCED: list[tuple[Any, ...]] = [
    ([0, 1, 0],),
    (range(2),),
    (slice(None), range(2, -1, -2), deque([3, 3])),
    (array.array("l", [1]), ..., memoryview(b"\x02\x00")),
    (np.array([[1, 0], [0, -1]]),),
    (slice(None), [2, 0]),
    (slice(None), slice(None), [3, -1, 0]),
    ([0, 1], [2, 0]),
    ([0, 1], 2),
    (0, [1, 2]),
    (0, slice(None), [1, 2]),
    ([0, 1], slice(None), [1, 2]),
    (slice(None), [0, 1], [1, 2]),
    (slice(None), [[0], [1]], [1, 2]),
    (..., [1, 2]),
    ([1], None, [2]),
    (None, [1, 0]),
    ([0, 1], [0, 1], [0, 1]),
    ([],),
    (slice(None), []),
    (slice(1, None), [0, 1], slice(None, None, -1)),
    (slice(None), MASK),
    (slice(None), MASK, 0),
    (slice(None), MASK2),
    (0, MASK2),
    (slice(None, None, -1), [0, 2], 1),
    (X > 0,),
    (slice(None), MASK, [1, 2]),
    (np.array([1, 0], np.uint8),),
    ((0, 1), (1, 2)),
    (slice(None), np.zeros(3, bool)),
    (1, MASK, slice(None)),
    (MASK[:2], 0),
    ([0, 1], ..., 0),
    (0, ..., [0, 1]),
    # an ellipsis that stands for no axes separates the arrays around it
    (None, [1, 0], ..., [0, 2], 1),
    (None, [1, 0], [0, 2], ..., 1),
    (None, 1, ..., [0, 1], [2, 3]),
    (slice(None), [0, 1], ..., 0),
    (None, [1, 0], 1, [0, 2], ...),
    (None, ..., [1, 0], 1, [0, 2]),
    (True,),
    (False,),
    (np.array(True), None),
    (np.True_, [0, 1]),
    ([0, 1], True),
    (True, slice(None), [0, 1]),
    (slice(None), True, 0),
    (0, True),
    (..., True),
    (True, ..., True),
    (True, False),
    (None, True, ..., 0, 1),
    (1, 2, 3, True),
    (False, [[0], [1]]),
    (slice(None, None, -1), True, MASK),
]


def unwrap(index: tuple[Any, ...]) -> Any:
    return index[0] if len(index) == 1 else index


def shown(index: Any) -> str:
    """The index in an id, without addresses of objects."""
    return re.sub(r"<memory at \w+>", "memory", repr(index))


@pytest.mark.parametrize("concrete", [False, True])
@pytest.mark.parametrize("index", [*BASIC, *ADVANCED], ids=shown)
def test_getitem(index: tuple[Any, ...], concrete: bool) -> None:
    compare(lambda x: x[unwrap(index)], (X,), concrete)


@pytest.mark.parametrize("index", [*BASIC, *ADVANCED], ids=shown)
def test_setitem(index: tuple[Any, ...]) -> None:
    def scalar(x: Any) -> Any:
        y = x.copy()
        y[unwrap(index)] = 7.0
        return y

    def array(x: Any) -> Any:
        y = x.copy()
        y[unwrap(index)] = x[unwrap(index)] * 2.0
        return y

    def augmented(x: Any) -> Any:
        y = x.copy()
        y[unwrap(index)] += x.max()
        return y

    for program in (scalar, array, augmented):
        compare(program, (X,))
    directional(array, (X,))


@pytest.mark.parametrize("index", [*BASIC, *ADVANCED], ids=shown)
def test_aliasing_of_an_index(index: tuple[Any, ...]) -> None:
    """What is a view in NumPy is a view here; what is a copy is a copy; both ways of the aliasing."""

    def through_the_view(x: Any) -> Any:
        y = x.copy()
        part = y[unwrap(index)]
        if np.ndim(part) or isinstance(part, np.ndarray):
            part[...] = -1.0
        return y

    def through_the_base(x: Any) -> Any:
        y = x.copy()
        part = y[unwrap(index)]
        y[...] = 5.0
        return part

    compare(through_the_view, (X,))
    compare(through_the_base, (X,))


ASSIGNMENTS: list[Callable[[Any, Any], Any]] = [
    lambda y, x: y.__setitem__(slice(1, None), y[:-1]),
    lambda y, x: y.__setitem__(slice(None, None, -1), y),
    lambda y, x: y.__setitem__((0, slice(None)), [1.0, 2.0, 3.0, 4.0]),
    lambda y, x: y.__setitem__(0, x[0, 0]),
    lambda y, x: y.__setitem__(slice(None), x[:1][None]),
    lambda y, x: y.__setitem__(([0, 0, 1], 1), [5.0, 6.0, 7.0]),
    lambda y, x: y.__setitem__([0, 0], np.array([[1.0], [2.0]])),
    lambda y, x: y.__setitem__(y > 0, 0.0),
    lambda y, x: y.__setitem__(y[:, 0] > -2, 1.0),
    lambda y, x: y.__setitem__(y[:, 0] > -2, x[0]),
    lambda y, x: y.__setitem__(y[0, 0] > -9, x[0]),
    lambda y, x: y.__setitem__(y[0, 0] > 9, x[0]),
    lambda y, x: y.T.__setitem__(1, 3.0),
    lambda y, x: y.T[::-1].reshape(2, 2, 3)[0].__setitem__(0, 3.0),
    lambda y, x: y.ravel().__setitem__(slice(None, None, 5), 3.0),
    lambda y, x: y[:, :2].ravel().__setitem__(0, 3.0),
    lambda y, x: y.reshape(4, 3).T[1].__iadd__(1.0),
    lambda y, x: np.add(y[0], 1.0, out=y[1]),
    lambda y, x: np.multiply(y, 2.0, out=y, where=y > 0),
    lambda y, x: np.add.at(y, ([0, 0, 2], [1, 1, 3]), [1.0, 2.0, 3.0]),
    lambda y, x: np.subtract.at(y, [0, 0], x[1]),
    lambda y, x: np.add.at(y, slice(1, None), 1.0),
    lambda y, x: y.swapaxes(0, 1)[::2].__imul__(x.T[::2]),
    lambda y, x: np.swapaxes(y, 0, 1)[0].sort(),
    lambda y, x: setattr(y, "shape", (4, 3)),
    lambda y, x: setattr(y, "flat", [1.0, 2.0]),
    lambda y, x: y.squeeze()[None][0, 1].fill(2.0),
]


@pytest.mark.parametrize("number", range(len(ASSIGNMENTS)))
def test_assignment(number: int) -> None:
    def program(x: Any) -> Any:
        y = x.copy()
        ASSIGNMENTS[number](y, x)
        return y

    compare(program, (M,))
    compare(program, (M,), concrete=True)
    directional(program, (M,))


def test_none_is_nan_where_it_is_assigned() -> None:
    def program(x: Any) -> Any:
        y = x.copy()
        y[0] = None
        y[y > 0.5] = None
        y[1, 1] = x[0, 0]
        return y

    compare(program, (M,))
    compare(program, (M,), concrete=True)


def test_a_traced_integer_picks_a_view() -> None:
    def program(x: Any, i: Any) -> Any:
        y = x.copy()
        row = y[i]
        row += 10.0
        y[i, 1] = 7.0
        y[:, i][0] = 3.0
        y[i - 1][...] *= 2.0
        return y, row, y[i, i], y[:, i], y[i, ::-1], y[..., i]

    compare(program, (M, np.int64(1)))
    compare(program, (M, np.int64(-2)), concrete=True)
    directional(program, (M, np.int64(1)))


def test_several_traced_indices() -> None:
    """Next to one another they are one view, with the integers beside them; elsewhere several."""

    def program(x: Any, i: Any, j: Any) -> Any:
        y = x.copy()
        y[i, j] = 5.0
        y[i][j] *= 2.0
        y[i, 1][j] += 1.0
        y[-1, j, i] = 7.0
        row = y[i, j]
        row -= 0.5
        y[i, :, j] += row[:3]
        y[:, i, j][...] *= 3.0
        y[0, 1:, j] = y[i, None, j, 2:].sum()
        read = (
            y[i][j][1],
            y[i, j, 2],
            y[i, j][j],
            y[..., i, j],
            y[j, None, i],
            y[0, i, None, j],
            y[1, ::-1, j],
            y[i, -1, -1],
            y[0, j, 3],
        )
        return y, row, *read

    for k, other in ((0, 1), (1, 0), (-1, -2), (-2, 1)):
        compare(program, (X, np.int64(k), np.int64(other)))
        compare(program, (X, np.int64(k), np.int64(other)), concrete=True)
        directional(program, (X, np.int64(k), np.int64(other)))


def test_an_element_at_traced_indices_is_read_and_written_alone() -> None:
    """A row that it is in would make a loop over all elements a loop over all rows, each time."""

    def program(x: Any) -> Any:
        y = x.copy()
        for i in range(1, len(y)):
            for j in range(1, y.shape[1]):
                y[i, j] += y[i - 1][j] * y[i, 0]
            y[i, 1:-1] -= y[i - 1, 2:]
        return y

    ir = sg.explain(sg.jit(program, backend="numpy"))(np.ones((40, 50)))["ir"]
    assert "for" in ir and "f64[40] = gather" not in ir
    assert ir.count("f64[50] = gather") == ir.count(" = slice ") > 0  # of rows, for the last line


@pytest.mark.parametrize("place", [(0, 3), (1, -4), (2, 5)])
def test_an_integer_beside_a_traced_index_must_be_within_bounds(place: tuple[int, int]) -> None:
    def program(x: Any, i: Any) -> Any:
        return x[i, place[1]]

    with pytest.raises(IndexingError, match=f"index {place[1]} is out of bounds for axis 1 with size 3"):
        run(program, (X, np.int64(0)))


def test_a_traced_index_array() -> None:
    def program(x: Any, i: Any) -> Any:
        y = x.copy()
        y[i] = 1.0
        y[0, i] *= 2.0
        return y, x[i], x[:, i], x[i, i], x[i[0]], x[i][0]

    compare(program, (M, np.array([1, 0, -1])))
    directional(program, (M, np.array([1, 0, -1])))


def test_scalars_are_immutable_and_arrays_of_rank_0_are_not() -> None:
    def scalars(x: Any) -> Any:
        s = x[0]
        t = s
        t += 1.0
        r = s.reshape(1)
        r += 5.0
        return s, t, r, x

    def rank0(x: Any) -> Any:
        s = x[0, ...]
        t = s
        t += 1.0
        return s, t, x

    def arguments(x: Any) -> Any:
        y = x
        y += 1.0
        return x

    compare(scalars, (V.copy(),))
    compare(rank0, (V.copy(),))
    compare(arguments, (V.copy(),))
    compare(arguments, (1.5,))
    compare(arguments, (np.float64(1.5),))
    compare(arguments, (np.array(1.5),))


def test_the_order_of_what_unknown_masks_select_needs_a_concrete_trace() -> None:
    with pytest.raises(NeedsConcrete):
        run(lambda x: np.sort(x[x > 0]), (V,))
    compare(lambda x: x[x > 1], (V,), concrete=True)


@pytest.mark.parametrize(
    ("program", "error"),
    [
        (lambda x: x[3], IndexingError),
        (lambda x: x[0, 4], IndexingError),
        (lambda x: x[0, 0, 0], IndexingError),
        (lambda x: x[[0, 3]], IndexingError),
        (lambda x: x[..., ...], IndexingError),
        (lambda x: x[0.5], IndexingError),
        (lambda x: x["a"], IndexingError),
        (lambda x: x[np.array([0.5])], IndexingError),
        (lambda x: x[[0, 1], [0, 1, 2]], IndexingError),
        (lambda x: x[np.array([True, False])], IndexingError),
        (lambda x: x[::0], ShapeError),
        (lambda x: x[0.5:], UnsupportedError),
        (lambda x: x.__setitem__(0, np.zeros(3)), ShapeError),
        (lambda x: x[0, 0].__setitem__((), 1.0), UnsupportedError),
        (lambda x: np.broadcast_to(x, (2, 3, 4)).__setitem__(0, 1.0), MutationError),
        (lambda x: x.__setitem__(0, 1j), SrcgradError),
        (lambda x: setattr(x[:, :2], "shape", (6,)), MutationError),
    ],
)
def test_refused(program: Callable[[Any], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        run(program, (M,))


# --- random programs -------------------------------------------------------------------------------------------------

PERMS = {1: [(0,)], 2: [(1, 0), (0, 1)], 3: [(2, 0, 1), (1, 0, 2), (0, 2, 1)]}


def step_slices(draw: Any, shape: tuple[int, ...]) -> Any:
    index: list[Any] = []
    for size in shape:
        kind = draw(st.integers(0, 5))
        if kind == 0 and size:
            index.append(draw(st.integers(-size, size - 1)))
        elif kind == 1:
            index.append(None)
            index.append(slice(None))
        else:
            bounds = st.one_of(st.none(), st.integers(-size - 1, size + 1))
            index.append(slice(draw(bounds), draw(bounds), draw(st.sampled_from([None, 1, 2, -1, -2]))))
    return tuple(index)


def fancy(draw: Any, shape: tuple[int, ...]) -> Any:
    axis = draw(st.sampled_from([k for k, size in enumerate(shape) if size]))
    picked = draw(st.lists(st.integers(-shape[axis], shape[axis] - 1), max_size=4))
    return (*[slice(None)] * axis, np.array(picked, np.int64))


VIEWS = [
    "slice",
    "slice",
    "transpose",
    "reshape",
    "ravel",
    "flip",
    "diagonal",
    "squeeze",
    "expand",
    "broadcast",
    "swap",
    "split",
]
COPIES = ["arithmetic", "copy", "fancy", "sum", "roll"]
CHANGES = ["assign", "assign", "augment", "augment", "out", "fancy set", "add at", "mask set", "fill", "sort", "copyto"]


def make_view(draw: Any, y: Any, kind: str) -> Any:
    if kind == "slice":
        return y[step_slices(draw, y.shape)]
    if kind == "transpose":
        return np.transpose(y, draw(st.sampled_from(PERMS[y.ndim]))) if y.ndim in PERMS else y.T
    if kind == "reshape":
        return np.reshape(y, draw(st.sampled_from([(-1,), (1, -1), y.shape[::-1]])) if y.size else y.shape)
    if kind == "ravel":
        return y.ravel()
    if kind == "flip":
        return np.flip(y)
    if kind == "diagonal":
        return np.diagonal(y) if y.ndim >= 2 else y[:]
    if kind == "squeeze":
        return np.squeeze(y)
    if kind == "expand":
        return np.expand_dims(y, draw(st.integers(0, y.ndim)))
    if kind == "broadcast":
        return np.broadcast_to(y, (2, *y.shape)) if y.ndim < 3 else y[...]
    if kind == "swap":
        return y.swapaxes(0, -1) if y.ndim else y[...]
    return np.array_split(y, 2)[draw(st.integers(0, 1))] if y.ndim else y[...]


def make_copy(draw: Any, y: Any, kind: str) -> Any:
    """A new array in C order: NumPy's own results may have another order, which decides what their ravel() copies."""
    return new_array(draw, y, kind).copy()


def new_array(draw: Any, y: Any, kind: str) -> Any:
    if kind == "arithmetic":
        return y * 0.5 + 1.0
    if kind == "copy":
        return y.copy()
    if kind == "fancy":
        return y[fancy(draw, y.shape)] if any(y.shape) else y.copy()
    if kind == "sum":
        return np.cumsum(y)
    return np.roll(y, 1)


def change(draw: Any, y: Any, kind: str, number: float) -> None:
    if kind == "assign":
        y[step_slices(draw, y.shape)] = number
    elif kind == "augment":
        part = y[step_slices(draw, y.shape)]
        if draw(st.booleans()):
            part += number
        else:
            part *= 0.5
    elif kind == "out":
        np.subtract(number, y, out=y)
    elif kind == "fancy set" and any(y.shape):
        index = fancy(draw, y.shape)
        y[index] = np.arange(y[index].size).reshape(y[index].shape) * number
    elif kind == "add at" and any(y.shape) and y.flags.writeable:
        np.add.at(y, fancy(draw, y.shape), number)
    elif kind == "mask set":
        y[y > number] = number
    elif kind == "fill":
        y.fill(number)
    elif kind == "sort" and y.ndim:
        y.sort()
    elif kind == "copyto":
        np.copyto(y, number, where=y < 0)


class Choices:
    """What was drawn while NumPy ran, to be replayed for the trace."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.made: list[Any] = []
        self.position: int | None = None

    def __call__(self, strategy: Any) -> Any:
        if self.position is None:
            self.made.append(self.draw(strategy))
            return self.made[-1]
        self.position += 1
        return self.made[self.position - 1]


def random_program(choose: Choices, steps: int, x: Any, z: Any) -> Any:
    arrays = [x, z]
    for _ in range(steps):
        y = arrays[choose(st.integers(0, len(arrays) - 1))]
        family = choose(st.sampled_from(["view", "view", "copy", "change", "change", "change"]))
        if family == "change":
            try:
                change(choose, y, choose(st.sampled_from(CHANGES)), float(choose(st.integers(-3, 3))))
            except (ValueError, MutationError) as error:  # read-only views refuse in both
                if "read-only" not in str(error):
                    raise
            continue
        if y.ndim > 3:
            continue
        made = (
            make_view(choose, y, choose(st.sampled_from(VIEWS)))
            if family == "view"
            else make_copy(choose, y, choose(st.sampled_from(COPIES)))
        )
        if np.ndim(made):
            arrays.append(made)
    return arrays


@settings(max_examples=150, deadline=None)
@given(data=st.data(), steps=st.integers(1, 14), concrete=st.booleans())
def test_random_programs_of_views_and_mutation(data: Any, steps: int, concrete: bool) -> None:
    choose = Choices(data.draw)
    x, z = np.arange(12.0).reshape(3, 4) - 5.0, np.arange(8.0).reshape(2, 2, 2) * 0.25
    expected = random_program(choose, steps, x.copy(), z.copy())

    def replay(x: Any, z: Any) -> Any:
        choose.position = 0
        return random_program(choose, steps, x, z)

    found = run(replay, (x, z), concrete)
    assert len(found) == len(expected)
    for (value, _), wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, wanted)


def zeroed(x: Any) -> Any:
    np.einsum("ii->i", x)[...] = 0.0
    return x


def scaled(x: Any) -> Any:
    diagonal = np.einsum("ii->i", x)
    diagonal *= x[0]
    x[0, 0] += 1.0
    return x, diagonal * 2.0


def rows_of_a_diagonal(x: Any) -> Any:
    y = np.multiply.outer(x, x)
    shown = np.einsum("ijkj->kij", y)
    shown[0] = np.sin(shown[1])
    np.einsum("ijij->ji", y)[...] += x
    np.einsum("ij->ji", x)[1] *= 2.0
    return y, x


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("program", [zeroed, scaled, rows_of_a_diagonal])
def test_what_einsum_shows_of_one_array_may_be_written_through(program: Any, backend: str) -> None:
    start = np.random.default_rng(0).standard_normal((3, 3))
    x, seen = start.copy(), start.copy()
    compare(lambda x: program(x.copy()), (start,))
    directional(lambda x: program(x.copy()), (start,))
    sg.jit(program, backend=backend)(x)
    program(seen)
    np.testing.assert_allclose(x, seen, rtol=1e-14)
