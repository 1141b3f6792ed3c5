"""Gradients against differences: `gradcheck`, and `gradgradcheck` for gradients of gradients.

Jacobians are matrices with a row per input element and a column per output element. A complex output is checked as its
real and its imaginary part; for a complex input the entry is d/dx + 1j d/dy, PyTorch's gradient.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from srcgrad.ir.source import user_span
from srcgrad.torch.autograd import forward_ad
from srcgrad.torch.engine import Walk, grad, leading_to, reachable
from srcgrad.torch.errors import TensorError, TensorValueError
from srcgrad.torch.modes import MODE
from srcgrad.torch.tensor import Tensor, edge_of, wrapped

Array = Any
Fn = Callable[..., Any]

NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
    "values, although analytical gradient matches numerical gradient."
)


class GradcheckError(TensorError):
    """`gradcheck` or `gradgradcheck` found a wrong derivative."""


class Settings(NamedTuple):
    """The arguments of a check."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    undefined: bool
    dtypes: bool
    batched: bool
    forward: bool
    backward: bool
    fast: bool


def gradcheck(
    func: Fn,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of a function agree with central differences.

    Args:
        func: a function of tensors that returns a tensor or a tuple of them.
        inputs: a tensor or a tuple; those of floating or complex dtype that require grad are checked. Give float64.
        eps: the step of the differences. atol, rtol: the tolerances, as in `allclose`.
        raise_exception: raise where the check fails, in place of returning False.
        nondet_tol: how much two backward runs may differ.
        check_undefined_grad: also check that missing gradients of outputs count as zeros.
        check_grad_dtypes: gradients must have their inputs' dtypes.
        check_batched_grad, check_batched_forward_grad: also check gradients of a batch of cotangents.
        check_forward_ad, check_backward_ad: which modes are checked.
        fast_mode: compare one random projection of the Jacobians.

    Raises:
        GradcheckError: the check failed; the message has both Jacobians.
        TensorValueError: no input requires grad, or neither mode is to be checked.

    >>> import srcgrad.torch as torch
    >>> x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(torch.exp, x)
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise TensorValueError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    settings = Settings(
        eps,
        atol,
        rtol,
        nondet_tol,
        check_undefined_grad and check_backward_ad,
        check_grad_dtypes,
        check_batched_grad,
        check_forward_ad,
        check_backward_ad,
        fast_mode,
    )
    given = as_tuple(inputs)
    if raise_exception:
        check(func, given, settings)
        return True
    try:
        check(func, given, settings)
    except GradcheckError:
        return False
    return True


def gradgradcheck(
    func: Fn,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether the gradients of a function's gradients agree with central differences.

    ``grad_outputs``: the cotangents, drawn between -1 and 1 if they are not given; the other arguments are
    `gradcheck`'s.

    >>> import srcgrad.torch as torch
    >>> x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradgradcheck(torch.exp, x)
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise TensorValueError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    given = as_tuple(inputs)
    if grad_outputs is None:
        draws = np.random.default_rng(0)
        cotangents = tuple(drawn(draws, output) for output in differentiable(func(*given)))
    else:
        cotangents = as_tuple(grad_outputs)
    count = len(cotangents)

    def gradients(*arguments: Any) -> tuple[Any, ...]:
        leaves = tuple(
            x.requires_grad_() if isinstance(x, Tensor) and is_inexact(x) and x.is_leaf and not x.requires_grad else x
            for x in arguments
        )
        primals, seeds = leaves[:-count], leaves[-count:]
        outputs = differentiable(func(*primals))
        wanted = [x for x in primals if isinstance(x, Tensor) and x.requires_grad]
        found = grad(outputs, wanted, seeds, create_graph=True, allow_unused=True)
        return tuple(x for x in found if isinstance(x, Tensor) and x.requires_grad)

    return gradcheck(
        gradients,
        (*given, *cotangents),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad and check_rev_over_rev,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def drawn(draws: np.random.Generator, output: Tensor) -> Tensor:
    data = output._data
    values = np.asarray(draws.uniform(-1, 1, data.shape), data.dtype)
    if data.dtype.kind == "c":
        values = values + 1j * draws.uniform(-1, 1, data.shape)
    return wrapped(np.asarray(values, data.dtype)).requires_grad_()


def as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def is_inexact(x: Tensor) -> bool:
    return bool(x._data.dtype.kind in "fc")


def differentiable(output: Any) -> tuple[Tensor, ...]:
    return tuple(x for x in as_tuple(output) if isinstance(x, Tensor) and x.requires_grad)


# --- the check --------------------------------------------------------------------------------------


def check(func: Fn, inputs: tuple[Any, ...], settings: Settings) -> None:
    wanted = checked_inputs(inputs)
    outputs = tuple(x for x in as_tuple(func(*inputs)) if isinstance(x, Tensor))
    numbers = [k for k, output in enumerate(outputs) if output.requires_grad]
    numerical = numerical_jacobians(func, inputs, wanted, len(outputs), settings.eps)
    if not numbers:
        if any(np.any(jacobian) for row in numerical for pair in row for jacobian in pair):
            raise GradcheckError(
                "Numerical gradient for function expected to be zero",
                hint="the outputs do not require grad: something detached them",
            )
        return
    if settings.forward:
        check_forward(func, inputs, wanted, outputs, numerical, settings)
    if not settings.backward:
        return
    for place, k in enumerate(numbers):
        check_output(func, inputs, wanted, (place, k), numerical[k], settings)
    check_zero_cotangents(func, inputs, wanted)
    if settings.undefined:
        check_undefined(func, inputs, wanted)


def checked_inputs(inputs: Sequence[Any]) -> list[int]:
    """The positions of the inputs that are checked."""
    wanted = [k for k, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise TensorValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have "
            "requires_grad=True.",
            hint="x.requires_grad_()",
        )
    for k in wanted:
        data = inputs[k]._data
        if data.dtype not in (np.float64, np.complex128):
            from srcgrad.boundary import user_stack_level

            warnings.warn(
                f"Input #{k} requires gradient and is not a double precision floating point or complex. This check "
                "will "
                "likely fail if all the inputs are not of double precision floating point or complex. ",
                UserWarning,
                stacklevel=user_stack_level(),
            )
        if data.size and any(step == 0 and size > 1 for step, size in zip(data.strides, data.shape, strict=True)):
            raise TensorError(
                f"The {k}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping "
                "to be able to compute the numerical gradients correctly. You should call .contiguous on the input "
                "before passing it to gradcheck."
            )
    return wanted


def directions(data: Array) -> Iterator[tuple[int, tuple[int, ...], complex]]:
    """The steps in each element: (its number, its index, the unit)."""
    for number, index in enumerate(np.ndindex(data.shape)):
        yield number, index, 1.0
        if data.dtype.kind == "c":
            yield number, index, 1j


def numerical_jacobians(
    func: Fn, inputs: Sequence[Any], wanted: Sequence[int], count: int, eps: float
) -> list[list[tuple[Array, Array]]]:
    """Central differences: per output and input, d/dx and (for a complex input, else zeros) d/dy of each element."""
    found: list[list[tuple[Array, Array]]] = [[] for _ in range(count)]
    for k in wanted:
        columns: list[dict[complex, list[Array]]] = [{1.0: [], 1j: []} for _ in range(count)]
        for _, index, unit in directions(inputs[k]._data):
            upper = stepped(func, inputs, k, index, unit * eps)
            lower = stepped(func, inputs, k, index, -unit * eps)
            for column, plus, minus in zip(columns, upper, lower, strict=True):
                column[unit].append(np.ravel(difference(plus, minus) / (2 * eps)))
        for row, column in zip(found, columns, strict=True):
            real = np.array(column[1.0])
            row.append((real, np.array(column[1j]) if column[1j] else np.zeros_like(real)))
    return found


def difference(plus: Array, minus: Array) -> Array:
    if plus.dtype == np.bool_:
        plus, minus = plus.astype(np.float64), minus.astype(np.float64)
    return plus - minus


def stepped(func: Fn, inputs: Sequence[Any], k: int, index: tuple[int, ...], step: complex) -> list[Array]:
    """The outputs with one element moved; the input is as it was afterwards."""
    data = inputs[k]._data
    before = data[index]
    data[index] = before + (step if data.dtype.kind == "c" else np.real(step))
    try:
        # Recorded all the same: the function may call `grad` itself.
        return [np.array(x._data) for x in as_tuple(func(*inputs)) if isinstance(x, Tensor)]
    finally:
        data[index] = before


def part_names(output: Tensor) -> tuple[str, ...]:
    return ("imaginary", "real") if output.is_complex() else ("",)


def mismatch(
    numerical: Any, analytical: Any, output: int, number: int, part: str = "", forward: bool = False
) -> GradcheckError:
    """The error with both Jacobians."""
    element = "inputs" if forward else "outputs"
    prefix = f"While considering the {part} part of complex {element} only, " if part else ""
    mode = "computed with forward mode " if forward else ""
    shown = [x if isinstance(x, float) else repr(wrapped(np.asarray(x))) for x in (numerical, analytical)]
    return GradcheckError(
        f"{prefix}Jacobian {mode}mismatch for output {output} with respect to input {number},\nnumerical:{shown[0]}\n"
        f"analytical:{shown[1]}\n",
        span=user_span(),
    )


def close(analytical: Array, numerical: Array, settings: Settings) -> bool:
    return bool(np.allclose(analytical, numerical, rtol=settings.rtol, atol=settings.atol, equal_nan=True))


def gradient_rows(
    func: Fn, inputs: Sequence[Any], wanted: Sequence[int], place: int, part: str, settings: Settings
) -> tuple[list[Array], Tensor]:
    """The Jacobians of one output by backward, one per input, computed twice; and the output.

    Raises:
        GradcheckError: gradients of a wrong dtype or shape, or the two differ.
    """
    outputs = differentiable(func(*inputs))
    output = outputs[place]
    data = output._data
    targets = [inputs[k] for k in wanted]
    found = [np.zeros((x.numel(), data.size), x._data.dtype) for x in targets]
    again = [x.copy() for x in found]
    for column, index in enumerate(np.ndindex(data.shape)):
        seed = np.zeros(data.shape, data.dtype)
        # The real part of conj(w) z is Re z for w = 1, and Im z for w = 1j.
        seed[index] = 1j if part == "imaginary" else 1
        for jacobians in (found, again):
            given = grad([output], targets, [wrapped(seed)], retain_graph=True, allow_unused=True)
            for x, gradient, jacobian in zip(targets, given, jacobians, strict=True):
                if gradient is not None:
                    check_gradient(x, gradient, settings)
                    jacobian[:, column] = np.ravel(gradient._data)
    for first, second in zip(found, again, strict=True):
        if not np.allclose(first, second, rtol=0, atol=settings.nondet_tol, equal_nan=True):
            raise GradcheckError(
                f"{NOT_REENTRANT}The tolerance for nondeterminism was {settings.nondet_tol}.",
                hint="pass nondet_tol= if the operation is not deterministic by its nature",
            )
    return found, output


def check_gradient(x: Tensor, gradient: Tensor, settings: Settings) -> None:
    if settings.dtypes and gradient._data.dtype != x._data.dtype:
        raise GradcheckError("Gradient has dtype mismatch")
    if gradient._data.shape != x._data.shape:
        raise GradcheckError("Analytical gradient has incorrect size")


def check_output(
    func: Fn,
    inputs: Sequence[Any],
    wanted: Sequence[int],
    numbers: tuple[int, int],
    numerical: Sequence[tuple[Array, Array]],
    settings: Settings,
) -> None:
    """One output (its place among the differentiable ones, its number) against differences, by backward."""
    place, number = numbers
    output = differentiable(func(*inputs))[place]
    for part in part_names(output):
        analytical, _ = gradient_rows(func, inputs, wanted, place, part, settings)
        for k, found, (along_real, along_imaginary) in zip(wanted, analytical, numerical, strict=True):
            take = np.imag if part == "imaginary" else np.real
            expected = take(along_real)
            if found.dtype.kind == "c":
                expected = expected + 1j * take(along_imaginary)
            expected = expected.astype(found.dtype).reshape(found.shape)
            if settings.fast:
                check_projection(found, expected, (number, k), part, settings)
            elif not close(found, expected, settings):
                raise mismatch(expected, found, number, k, part)
    if settings.batched:
        check_batched(func, inputs, wanted, place)


def check_projection(found: Array, expected: Array, place: tuple[int, int], part: str, settings: Settings) -> None:
    """Fast mode: one random combination of the elements of both Jacobians."""
    draws = np.random.default_rng(0)
    left = draws.uniform(0.1, 1.0, found.shape[0])
    right = draws.uniform(0.1, 1.0, found.shape[1])
    left, right = left / max(np.linalg.norm(left), 1e-30), right
    ours, theirs = left @ found @ right, left @ expected @ right
    if abs(ours - theirs) <= settings.atol * max(1.0, np.sum(left) * np.sum(right)) + settings.rtol * abs(theirs):
        return
    error = mismatch(float(np.real(theirs)), float(np.real(ours)), place[0], place[1], part)
    largest = float(np.max(np.abs(found - expected)))
    error.add_context(
        "the numbers above are projections (fast mode); in full,\n"
        f"Numerical:\n {wrapped(expected)!r}\nAnalytical:\n{wrapped(found)!r}\n\n"
        f"The max per-element difference (slow mode) is: {largest}."
    )
    raise error


def check_batched(func: Fn, inputs: Sequence[Any], wanted: Sequence[int], place: int) -> None:
    """A batch of cotangents must give what they give one by one."""
    output = differentiable(func(*inputs))[place]
    targets = [inputs[k] for k in wanted]
    draws = np.random.default_rng(0)
    rows = [drawn(draws, output).detach() for _ in range(3)]
    batch = wrapped(np.stack([row._data for row in rows]))
    together = grad([output], targets, [batch], retain_graph=True, allow_unused=True, is_grads_batched=True)
    for row, seed in enumerate(rows):
        single = grad([output], targets, [seed], retain_graph=True, allow_unused=True)
        for k, one, all_ in zip(wanted, single, together, strict=True):
            if one is not None and not np.allclose(one._data, all_._data[row], equal_nan=True):
                raise GradcheckError(
                    f"For output {place} and input {k}: the gradient of a batch of cotangents differs from theirs"
                )


def check_forward(
    func: Fn,
    inputs: Sequence[Any],
    wanted: Sequence[int],
    outputs: Sequence[Tensor],
    numerical: Sequence[Sequence[tuple[Array, Array]]],
    settings: Settings,
) -> None:
    """Forward mode against differences, one direction at a time."""
    for place, k in enumerate(wanted):
        data = inputs[k]._data
        found = {unit: [np.zeros((data.size, x.numel()), x._data.dtype) for x in outputs] for unit in (1.0, 1j)}
        for row, index, unit in directions(data):
            tangent = np.zeros(data.shape, data.dtype)
            tangent[index] = unit
            with forward_ad.dual_level():
                given = [x.detach() if isinstance(x, Tensor) else x for x in inputs]
                given[k] = forward_ad.make_dual(given[k], wrapped(tangent))
                pushed = [x for x in as_tuple(func(*given)) if isinstance(x, Tensor)]
                for jacobian, output in zip(found[unit], pushed, strict=True):
                    push = forward_ad.unpack_dual(output).tangent
                    if push is not None:
                        if settings.dtypes and push._data.dtype != output._data.dtype:
                            raise GradcheckError("Forward AD gradient has dtype mismatch.")
                        jacobian[row] = np.ravel(push._data)
        for number, output in enumerate(outputs):
            if not is_inexact(output):
                continue
            pairs = zip((1.0, 1j), ("real", "imaginary"), numerical[number][place], strict=True)
            for unit, part, expected in pairs:
                ours = found[unit][number]
                theirs = expected.astype(ours.dtype).reshape(ours.shape)
                if not close(ours, theirs, settings):
                    named = part if data.dtype.kind == "c" else ""
                    raise mismatch(theirs, ours, number, k, named, forward=True)


def check_zero_cotangents(func: Fn, inputs: Sequence[Any], wanted: Sequence[int]) -> None:
    """Zero cotangents must give zero gradients."""
    outputs = differentiable(func(*inputs))
    zeros = [wrapped(np.zeros_like(x._data)) for x in outputs]
    for gradient in grad(outputs, [inputs[k] for k in wanted], zeros, allow_unused=True):
        if gradient is not None and np.any(gradient._data != 0):
            raise GradcheckError("backward not multiplied by grad_output")


def check_undefined(func: Fn, inputs: Sequence[Any], wanted: Sequence[int]) -> None:
    """Missing cotangents must count as zeros."""
    outputs = differentiable(func(*inputs))
    targets = [edge_of(inputs[k]) for k in wanted]
    ends = [edge for edge in targets if edge is not None]
    starts = [edge[0] for edge in map(edge_of, outputs) if edge is not None]
    nodes = leading_to(reachable(starts), {node for node, _ in ends})
    token = MODE.set(MODE.get()._replace(grad=False))
    try:
        found = Walk(nodes, True, False, ends).run([])
    except TensorError as error:
        raise GradcheckError(
            "Expected backward function to handle undefined output grads.",
            hint="backward was called with None in place of gradients, since materialize_grads is off",
        ) from error
    finally:
        MODE.reset(token)
    if any(gradient is not None and np.any(gradient != 0) for gradient in found):
        raise GradcheckError(
            "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
        )
