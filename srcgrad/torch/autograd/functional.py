"""Jacobians, Hessians and their products of functions of tensors, by recorded gradients.

Forward products come from two reverse passes: the pullback is linear in its cotangent, so the pullback of it is the
pushforward (Townsend's trick, 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcgrad.torch.autograd import forward_ad
from srcgrad.torch.engine import grad
from srcgrad.torch.errors import AutogradError, TensorNotImplementedError, TensorTypeError, TensorValueError
from srcgrad.torch.modes import enable_grad
from srcgrad.torch.ops.joining import stack
from srcgrad.torch.tensor import Tensor, wrapped

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Fn = Callable[..., Any]
NOT_DIFFERENTIABLE = (
    "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode."
)
INDEPENDENT_HESSIAN = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    "independent of the input. This is not allowed in strict mode. You should ensure that your function is twice "
    "differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for "
    "example)."
)
INDEPENDENT_JACOBIAN = (
    "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode when "
    "create_graph=True."
)
FORWARD_ALONE = (
    "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for `vectorize=True`."
)


def tensors_of(given: Any, name: str, function: str) -> tuple[tuple[Tensor, ...], bool]:
    """Tensors as a tuple, and whether a tuple was given.

    Raises:
        TensorTypeError: they are something else.
    """
    is_tuple = isinstance(given, tuple)
    found = given if is_tuple else (given,)
    for k, x in enumerate(found):
        if not isinstance(x, Tensor):
            what = (
                f"the value at index {k} has type {type(x)}" if is_tuple else f"the given {name} has type {type(given)}"
            )
            raise TensorTypeError(
                f"The {name} given to {function} must be either a Tensor or a tuple of Tensors but {what}."
            )
    return found, is_tuple


def leaves(inputs: Sequence[Tensor], create_graph: bool) -> tuple[Tensor, ...]:
    """The inputs as what is differentiated in: in their graph if the results are to be in it, else out of it."""
    if not create_graph:
        return tuple(x.detach().requires_grad_() for x in inputs)
    return tuple(x.view_as(x) if x.requires_grad else x.clone().requires_grad_() for x in inputs)


def outputs_of(func: Fn, inputs: Sequence[Tensor], function: str) -> tuple[tuple[Tensor, ...], bool]:
    return tensors_of(func(*inputs), "outputs of the user-provided function", function)


def shaped_like(v: Any, like: Sequence[Tensor], function: str) -> tuple[Tensor, ...]:
    """The vector of a product.

    Raises:
        AutogradError: it does not fit.
    """
    found, _ = tensors_of(v, "v", function)
    if len(found) != len(like):
        raise AutogradError(
            "The given v should contain a single Tensor."
            if len(like) == 1
            else f"v is a tuple of invalid length: should be {len(like)} but got {len(found)}."
        )
    for k, (x, expected) in enumerate(zip(found, like, strict=True)):
        if x._data.shape != expected._data.shape:
            entry = f"Entry {k} in " if len(like) > 1 else ""
            raise AutogradError(f"{entry}v has invalid size: should be {expected.shape} but got {x.shape}.")
    return tuple(x.detach() if not x.requires_grad else x for x in found)


def single_vector(like: Sequence[Tensor], message: str) -> tuple[Tensor, ...]:
    """The vector where none is given, which is 1 for a single number.

    Raises:
        AutogradError: there is more than one.
    """
    if len(like) != 1 or like[0]._data.size != 1:
        raise AutogradError(message)
    return (wrapped(np.ones_like(like[0]._data)),)


def gradients(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], cotangents: Sequence[Tensor | None], create_graph: bool
) -> list[Tensor | None]:
    """The gradients, None where there is no graph."""
    pairs = [(x, ct) for x, ct in zip(outputs, cotangents, strict=True) if x.requires_grad]
    if not pairs:
        return [None] * len(inputs)
    found = grad(
        [x for x, _ in pairs],
        inputs,
        [ct for _, ct in pairs],
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
    )
    return list(found)


def filled(
    found: Sequence[Tensor | None], like: Sequence[Tensor], strict: bool, create_graph: bool, stage: str
) -> tuple[Tensor, ...]:
    """Zeros where nothing depends.

    Raises:
        AutogradError: with ``strict``, instead.
    """
    results = []
    for k, (x, shape) in enumerate(zip(found, like, strict=True)):
        if x is None:
            if strict:
                raise AutogradError(independent(stage, k))
            x = wrapped(np.zeros_like(shape._data))
        elif strict and create_graph and not x.requires_grad:
            if "double" not in stage:
                raise AutogradError(INDEPENDENT_JACOBIAN.format(k))
            raise AutogradError(
                f"The hessian of the user-provided function is independent of input {k}. This is not allowed in strict "
                "mode when create_graph=True."
            )
        results.append(x)
    return tuple(results)


def independent(stage: str, k: int) -> str:
    messages = {
        "back": f"The output of the user-provided function is independent of input {k}. This is not allowed in strict "
        "mode.",
        "back_trick": f"The gradient with respect to the input is independent of entry {k} in the grad_outputs when "
        "using "
        "the double backward trick to compute forward mode gradients. This is not allowed in strict mode.",
        "double_back": f"The hessian of the user-provided function is independent of entry {k} in the "
        "grad_jacobian. This "
        "is not allowed in strict mode as it prevents from using the double backward trick to replace forward mode AD.",
    }
    return messages[stage]


def require_graph(outputs: Sequence[Tensor], strict: bool) -> None:
    for k, x in enumerate(outputs):
        if strict and not x.requires_grad:
            raise AutogradError(NOT_DIFFERENTIABLE.format(k))


def finished(found: Any, create_graph: bool) -> Any:
    """Results, out of the graph unless it is wanted."""
    if isinstance(found, tuple):
        return tuple(finished(x, create_graph) for x in found)
    return found if create_graph else found.detach()


def packed(found: Sequence[Any], is_tuple: bool) -> Any:
    return tuple(found) if is_tuple else found[0]


def vjp(func: Fn, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs, and a vector times the Jacobian.

    Args:
        func: a function of tensors that returns a tensor or a tuple.
        inputs: a tensor or a tuple.
        v: of the outputs' shapes; may be left out for a single number.
        create_graph: the results can be differentiated again.
        strict: an input that the outputs do not depend on is an error, in place of zeros.

    >>> import srcgrad.torch as torch
    >>> torch.autograd.functional.vjp(lambda x: x**2, torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        given, is_tuple = tensors_of(inputs, "inputs", "vjp")
        primals = leaves(given, create_graph)
        outputs, out_tuple = outputs_of(func, primals, "vjp")
        require_graph(outputs, strict)
        vector = (
            shaped_like(v, outputs, "vjp")
            if v is not None
            else single_vector(
                outputs,
                "The vector v can only be None if the user-provided function returns a single Tensor with a single "
                "element.",
            )
        )
        found = filled(gradients(outputs, primals, vector, create_graph), primals, strict, create_graph, "back")
    return finished(packed(outputs, out_tuple), create_graph), finished(packed(found, is_tuple), create_graph)


def jvp(func: Fn, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs, and the Jacobian times a vector of the inputs' shapes. See `vjp`."""
    with enable_grad():
        given, _ = tensors_of(inputs, "inputs", "jvp")
        primals = leaves(given, create_graph)
        vector = (
            shaped_like(v, primals, "jvp")
            if v is not None
            else single_vector(
                primals,
                "The vector v can only be None if the input to the user-provided function is a single Tensor with a "
                "single element.",
            )
        )
        outputs, out_tuple = outputs_of(func, primals, "jvp")
        require_graph(outputs, strict)
        dummies = tuple(wrapped(np.zeros_like(x._data)).requires_grad_() for x in outputs)
        pulled = filled(gradients(outputs, primals, dummies, True), primals, strict, create_graph, "back")
        pushed = gradients(pulled, dummies, vector, create_graph)
        found = filled(pushed, outputs, strict, create_graph, "back_trick")
    return finished(packed(outputs, out_tuple), create_graph), finished(packed(found, out_tuple), create_graph)


def scalar_output(func: Fn, primals: Sequence[Tensor], function: str, strict: bool) -> Tensor:
    """The output of a function whose Hessian is asked for.

    Raises:
        AutogradError: it is not one number.
    """
    outputs, out_tuple = outputs_of(func, primals, function)
    require_graph(outputs, strict)
    if out_tuple or not isinstance(outputs[0], Tensor):
        raise AutogradError(f"The function given to {function} should return a single Tensor")
    if outputs[0]._data.size != 1:
        raise AutogradError(f"The Tensor returned by the function given to {function} should contain a single element")
    return outputs[0]


def first_derivative(output: Tensor, primals: Sequence[Tensor], strict: bool, strict_use: bool) -> tuple[Tensor, ...]:
    """The gradient, recorded.

    Raises:
        AutogradError: with ``strict``, it does not depend on an input; with ``strict_use``, the output does not.
    """
    found = filled(gradients((output,), primals, (None,), True), primals, strict_use, False, "back")
    for k, x in enumerate(found):
        if strict and not x.requires_grad:
            raise AutogradError(INDEPENDENT_HESSIAN.format(k))
    return found


def hessian_product(function: str, func: Fn, inputs: Any, v: Any, create_graph: bool, strict: bool) -> tuple[Any, Any]:
    with enable_grad():
        given, is_tuple = tensors_of(inputs, "inputs", function)
        primals = leaves(given, create_graph)
        vector = (
            shaped_like(v, primals, function)
            if v is not None
            else single_vector(
                primals,
                "The vector v can only be None if the input to the user-provided function is a single Tensor with a "
                "single element.",
            )
        )
        output = scalar_output(func, primals, function, strict)
        first = first_derivative(output, primals, strict, strict)
        found = filled(gradients(first, primals, vector, create_graph), primals, strict, create_graph, "double_back")
    return finished(output, create_graph), finished(packed(found, is_tuple), create_graph)


def vhp(func: Fn, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The output, and a vector times the Hessian. See `vjp`."""
    return hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(func: Fn, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The output, and the Hessian times a vector: what `vhp` gives, since Hessians are symmetric."""
    return hessian_product("hvp", func, inputs, v, create_graph, strict)


def jacobian(
    func: Fn,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian: of shape ``output.shape + input.shape``; a tuple per tuple of inputs and of outputs.

    Args:
        func, inputs, create_graph, strict: as in `vjp`.
        vectorize: accepted; it decides how fast PyTorch is.
        strategy: ``"reverse-mode"``, or with ``vectorize`` also ``"forward-mode"``.

    >>> import srcgrad.torch as torch
    >>> torch.autograd.functional.jacobian(lambda x: x**2, torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    check_strategy(strategy)
    if strategy == "forward-mode":
        return forward_jacobian(func, inputs, create_graph, strict, vectorize)
    if strict and vectorize:
        raise AutogradError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
            "Please "
            "either set `strict=False` or `vectorize=False`."
        )
    with enable_grad():
        given, is_tuple = tensors_of(inputs, "inputs", "jacobian")
        primals = leaves(given, create_graph)
        outputs, out_tuple = outputs_of(func, primals, "jacobian")
        require_graph(outputs, strict)
        rows = [
            packed(output_jacobian(k, output, primals, create_graph, strict), is_tuple)
            for k, output in enumerate(outputs)
        ]
    return finished(packed(rows, out_tuple), create_graph)


def check_strategy(strategy: str) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise TensorValueError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )


def output_jacobian(
    k: int, output: Tensor, primals: Sequence[Tensor], create_graph: bool, strict: bool
) -> tuple[Tensor, ...]:
    """The Jacobians of one output, one per input: a backward for each element."""
    columns: list[list[Tensor]] = [[] for _ in primals]
    for element in output.reshape(-1):
        found = gradients(
            (element,), primals, (None if element.dtype.is_floating_point else one(element),), create_graph
        )
        for j, (x, primal, column) in enumerate(zip(found, primals, columns, strict=True)):
            if x is None and strict:
                raise AutogradError(
                    f"Output {k} of the user-provided function is independent of input {j}. This is not allowed in "
                    "strict mode."
                )
            if strict and create_graph and x is not None and not x.requires_grad:
                raise AutogradError(INDEPENDENT_JACOBIAN.format(j))
            column.append(wrapped(np.zeros_like(primal._data)) if x is None else x)
    from srcgrad.torch import stack

    shape = output._data.shape
    return tuple(
        stack(column).view((*shape, *primal._data.shape))
        if column
        else wrapped(np.zeros((*shape, *primal._data.shape), primal._data.dtype))
        for column, primal in zip(columns, primals, strict=True)
    )


def one(element: Tensor) -> Tensor:
    return wrapped(np.ones_like(element._data))


def forward_jacobian(func: Fn, inputs: Any, create_graph: bool, strict: bool, vectorize: bool) -> Any:
    """The Jacobian by forward mode: a run of the function for each element of the inputs."""
    given, is_tuple = tensors_of(inputs, "inputs", "jacobian")
    if create_graph:
        raise TensorNotImplementedError(
            'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported '
            'together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strict:
        raise AutogradError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported '
            'together (yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    if not vectorize:
        raise TensorNotImplementedError(FORWARD_ALONE)
    columns: list[list[list[Any]]] = []
    out_tuple = False
    for k, x in enumerate(given):
        blocks: list[list[Any]] = []
        for index in np.ndindex(x._data.shape):
            tangent = np.zeros_like(x._data)
            tangent[index] = 1
            with forward_ad.dual_level():
                duals = list(given)
                duals[k] = forward_ad.make_dual(x, wrapped(tangent))
                outputs, out_tuple = outputs_of(func, duals, "jacobian")
                blocks.append([forward_ad.unpack_dual(output) for output in outputs])
        columns.append(blocks)
    count = len(columns[0][0])
    rows = []
    for k in range(count):
        row = []
        for x, blocks in zip(given, columns, strict=True):
            pushed = [block[k] for block in blocks]
            tangents = [
                wrapped(np.zeros_like(pair.primal._data)) if pair.tangent is None else pair.tangent for pair in pushed
            ]
            row.append(stack(tangents, -1).reshape((*tangents[0].shape, *x.shape)))
        rows.append(packed(row, is_tuple))
    return packed(rows, out_tuple)


def hessian(
    func: Fn,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The matrix of second derivatives of a function that returns one number; a tuple of tuples for several inputs.

    ``outer_jacobian_strategy``: which mode differentiates the gradient, see `jacobian`.

    >>> import srcgrad.torch as torch
    >>> torch.autograd.functional.hessian(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    given, is_tuple = tensors_of(inputs, "inputs", "hessian")
    check_strategy(outer_jacobian_strategy)

    def slope(*primals: Tensor) -> Any:
        starts = primals if outer_jacobian_strategy == "reverse-mode" else tuple(x.requires_grad_() for x in primals)
        output = scalar_output(func, starts, "hessian", strict)
        return packed(first_derivative(output, starts, strict, False), is_tuple)

    if outer_jacobian_strategy == "forward-mode":
        with enable_grad():
            fresh = packed([x.detach().requires_grad_() for x in given], is_tuple)
            return forward_jacobian(slope, fresh, create_graph, strict, vectorize)
    return jacobian(slope, packed(given, is_tuple), create_graph=create_graph, strict=strict, vectorize=vectorize)
