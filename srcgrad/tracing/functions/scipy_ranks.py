"""Rules of ``scipy.ndimage`` and ``scipy.signal`` for what stands at a rank among the elements of a window: medians,
percentiles, extremes, and the morphology of grey images that is made of them.

Where elements are equal, the one that comes first in the window has the derivative of a rank; extremes share it.
Importing this module imports SciPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import scipy.ndimage
import scipy.signal

from srcgrad.errors import EvaluationError, ShapeError
from srcgrad.tracing.functions.registry import (
    as_array,
    cast,
    concrete_array,
    finish,
    function_rule,
    ordered_axes,
    require_cast,
)
from srcgrad.tracing.functions.scipy_ndimage import each, filter_rule, span, target, widened
from srcgrad.tracing.functions.signal import sliding_window_view
from srcgrad.tracing.tracer import Tracer


class Window:
    """The elements of a window: its truth values in some axes of an image, and how each of these is read.

    The axes of a footprint are those of the image in their order, as SciPy's; those of a box are in the order given.
    """

    def __init__(self, x: Any, size: Any, footprint: Any, mode: Any, origin: Any, axes: Any, box: bool = True):
        places = tuple(range(x.ndim)) if axes is None else ordered_axes(axes, x.ndim)
        if footprint is None:
            if size is None:
                raise EvaluationError("no footprint or filter size provided")
            truth = np.ones([int(one) for one in each(size, len(places))], bool)
        else:
            truth = concrete_array(footprint, "a footprint").astype(bool)
            if truth.ndim != len(places):
                raise EvaluationError(f"footprint.ndim ({truth.ndim}) must match len(axes) ({len(places)})")
            if not truth.any():
                raise ShapeError("All-zero footprint is not supported.")
        is_box = box and bool(truth.all())
        self.places = places if is_box else tuple(sorted(places))
        named = places if is_box or len(places) < x.ndim else self.places  # of all axes SciPy forgets the order
        told = dict(zip(named, zip(each(mode, len(places)), each(origin, len(places)), strict=True), strict=True))
        self.truth, self.one_mode = truth, isinstance(mode, str)
        sizes = zip(self.places, truth.shape, strict=True)
        self.ways = [(axis, size, *span(size, told[axis][1]), told[axis][0]) for axis, size in sizes]

    def widened(self, x: Any, cval: Any) -> Any:
        for axis, _, before, after, mode in self.ways:
            x = widened(x, axis, before, after, mode, cval)
        return x

    def elements(self, x: Any, cval: Any) -> Any:
        """Those around each place, in the last axis."""
        if not self.one_mode:
            raise EvaluationError("A sequence of modes is not supported for non-separable filters")
        windows = sliding_window_view(self.widened(x, cval), self.truth.shape, self.places)
        flat = windows.reshape((*x.shape, self.truth.size))
        return flat if self.truth.all() else flat[..., np.flatnonzero(self.truth)]

    def extreme(self, x: Any, choose: Callable[..., Any], cval: Any, raised: Any = None) -> Any:
        """The largest or smallest; of a box without heights axis by axis."""
        if raised is not None or not self.truth.all():
            found = self.elements(x, cval)
            return choose(found if raised is None else found + raised, axis=-1)
        for axis, size, before, after, mode in self.ways:
            if size > 1:
                x = choose(sliding_window_view(widened(x, axis, before, after, mode, cval), size, axis), axis=-1)
        return x

    def ranked(self, x: Any, rank: int, cval: Any) -> Any:
        count = int(self.truth.sum())
        if rank in (0, count - 1):
            return self.extreme(x, np.max if rank else np.min, cval)
        return np.sort(self.elements(x, cval), axis=-1)[..., rank]


def image(input: Any, output: Any) -> Any:
    x = as_array(input)
    return cast(x, target(x, x, output))


def extreme_filter(choose: Callable[..., Any]) -> Callable[..., Any]:
    """The largest or smallest element around each place."""

    def rule(
        input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
        cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
    ) -> Any:  # fmt: skip
        x = image(input, output)
        return Window(x, size, footprint, mode, origin, axes).extreme(x, choose, cval)

    return rule


filter_rule(scipy.ndimage.maximum_filter)(extreme_filter(np.max))
filter_rule(scipy.ndimage.minimum_filter)(extreme_filter(np.min))


def extreme_filter1d(choose: Callable[..., Any]) -> Callable[..., Any]:
    def rule(
        input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
        origin: int = 0,
    ) -> Any:  # fmt: skip
        x = image(input, output)
        if size < 1:
            raise EvaluationError("incorrect filter size")
        return Window(x, size, None, mode, origin, axis).extreme(x, choose, cval)

    return rule


filter_rule(scipy.ndimage.maximum_filter1d)(extreme_filter1d(np.max))
filter_rule(scipy.ndimage.minimum_filter1d)(extreme_filter1d(np.min))


@filter_rule(scipy.ndimage.rank_filter)
def rank_filter(
    input: Any, rank: int, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
    cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    x = image(input, output)
    window = Window(x, size, footprint, mode, origin, axes, box=False)
    count = int(window.truth.sum())
    place = int(rank) + (count if rank < 0 else 0)
    if not 0 <= place < count:
        raise EvaluationError("rank not within filter footprint size")
    return window.ranked(x, place, cval)


@filter_rule(scipy.ndimage.median_filter)
def median_filter(
    input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect", cval: Any = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """Of an even number of elements the upper one of the two in the middle."""
    x = image(input, output)
    window = Window(x, size, footprint, mode, origin, axes, box=False)
    return window.ranked(x, int(window.truth.sum()) // 2, cval)


@filter_rule(scipy.ndimage.percentile_filter)
def percentile_filter(
    input: Any, percentile: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
    cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    x = image(input, output)
    window = Window(x, size, footprint, mode, origin, axes, box=False)
    share = percentile + 100.0 if percentile < 0.0 else percentile
    if not 0.0 <= share <= 100.0:
        raise EvaluationError("invalid percentile")
    count = int(window.truth.sum())
    return window.ranked(x, count - 1 if share == 100.0 else int(float(count) * share / 100.0), cval)


# --- morphology ------------------------------------------------------------------------------------------------------

Options = dict[str, Any]


def eroded(x: Any, options: Options, sign: int) -> Any:
    """The least of the elements less the heights of the structure, or for -1 the largest of elements and heights.

    A dilation's window is the one of the erosion turned round.
    """
    size, footprint, structure, axes = (options[name] for name in ("size", "footprint", "structure", "axes"))
    if size is None and footprint is None and structure is None:
        raise ShapeError("size, footprint, or structure must be specified")
    heights: Any = None if structure is None else as_array(structure)
    truth = None if footprint is None else concrete_array(footprint, "a footprint").astype(bool)
    if truth is None and heights is not None:
        truth = np.ones(heights.shape, bool)
    origin: Any = options["origin"]
    if sign < 0:
        heights = None if heights is None else np.flip(heights)
        truth = None if truth is None else np.flip(truth)
        shape = each(size, x.ndim if axes is None else len(np.atleast_1d(axes))) if truth is None else truth.shape
        origin = [-at - (1 - width % 2) for at, width in zip(each(origin, len(shape)), shape, strict=True)]
    window = Window(x, size, truth, options["mode"], origin, axes, box=heights is None)
    raised = None if heights is None else -sign * heights[window.truth]
    return window.extreme(x, np.min if sign > 0 else np.max, options["cval"], raised)


def opened(x: Any, options: Options, signs: Sequence[int]) -> Any:
    for sign in signs:
        x = eroded(x, options, sign)
    return x


MORPHOLOGY: dict[str, Callable[[Any, Options, Any], Any]] = {
    "grey_erosion": lambda x, options, output: eroded(image(x, output), options, 1),
    "grey_dilation": lambda x, options, output: eroded(image(x, output), options, -1),
    "grey_opening": lambda x, options, output: opened(image(x, output), options, (1, -1)),
    "grey_closing": lambda x, options, output: opened(image(x, output), options, (-1, 1)),
}


def laplace_of(x: Any, options: Options, dtype: Any) -> Any:
    total = cast(eroded(x, options, -1) + cast(eroded(x, options, 1), dtype), dtype)
    return cast(total - x, dtype) - x


DIFFERENCES: dict[str, Callable[[Any, Options, Any], Any]] = {
    "white_tophat": lambda x, options, dtype: x - cast(opened(x, options, (1, -1)), dtype),
    "black_tophat": lambda x, options, dtype: cast(opened(x, options, (-1, 1)), dtype) - x,
    "morphological_gradient": lambda x, options, dtype: eroded(x, options, -1) - cast(eroded(x, options, 1), dtype),
    "morphological_laplace": laplace_of,
}
"""What is computed of an image and what morphology makes of it, which has the dtype of the result."""
DTYPES_OF: Final = ("white_tophat", "black_tophat")
"""Those that take a dtype as ``output=``: of the others SciPy looks at arrays alone."""


def differences(name: str) -> Callable[[Any, Options, Any], Any]:
    """One of `DIFFERENCES`, which NumPy writes into what has the dtype of the result, if it may."""
    compute = DIFFERENCES[name]

    def written(input: Any, options: Options, output: Any) -> Any:
        x, is_array = as_array(input), isinstance(output, (Tracer, np.ndarray))
        given = output.dtype if is_array else output if name in DTYPES_OF else None
        dtype = target(x, x, given)
        require_cast(np.result_type(x.dtype, dtype), dtype, "same_kind")
        found = cast(compute(x, options, dtype), dtype)
        return finish(found, output) if is_array else found

    return written


def morphology(compute: Callable[[Any, Options, Any], Any]) -> Callable[..., Any]:
    """The rule of what is computed of an image, the options of its window, and ``output``."""

    def rule(
        input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
        mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
    ) -> Any:  # fmt: skip
        options = {
            "size": size, "footprint": footprint, "structure": structure, "mode": mode, "cval": cval,
            "origin": origin, "axes": axes,
        }  # fmt: skip
        return compute(input, options, output)

    return rule


for _name, _compute in MORPHOLOGY.items():
    filter_rule(getattr(scipy.ndimage, _name))(morphology(_compute))
for _name in DIFFERENCES:
    function_rule(getattr(scipy.ndimage, _name))(morphology(differences(_name)))

# --- scipy.signal ----------------------------------------------------------------------------------------------------


def odd_sizes(given: Any, count: int) -> list[int]:
    sizes = [int(size) for size in each(3 if given is None else given, count)]
    if any(size % 2 != 1 for size in sizes):
        raise ShapeError("Each element of kernel_size should be odd.")
    return sizes


@function_rule(scipy.signal.medfilt)
def medfilt(volume: Any, kernel_size: Any = None) -> Any:
    x = np.atleast_1d(as_array(volume))
    return median_filter(x, odd_sizes(kernel_size, x.ndim), mode="constant")


@function_rule(scipy.signal.medfilt2d)
def medfilt2d(input: Any, kernel_size: Any = 3) -> Any:
    x = as_array(input)
    if x.ndim != 2:
        raise ShapeError("object of too small depth for desired array" if x.ndim < 2 else "object too deep")
    return medfilt(x, kernel_size)


@function_rule(scipy.signal.order_filter)
def order_filter(a: Any, domain: Any, rank: int) -> Any:
    truth = concrete_array(domain, "a domain")
    if any(size % 2 != 1 for size in truth.shape):
        raise ShapeError("Each dimension of domain argument should have an odd number of elements.")
    return rank_filter(a, rank, footprint=truth, mode="constant", cval=0.0)
