"""Products of vectors, matrices, and stacks of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.torch.dispatch import apply, apply_inplace, named
from srcgrad.torch.errors import TensorError, TensorNotImplementedError, TensorTypeError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import need_tensor, one_axis
from srcgrad.torch.ops.define import method, number, pair, promoted, store
from srcgrad.torch.tensor import Tensor

DOT: Final = Op("dot", "DotBackward0", np.matmul)
MV: Final = Op("mv", "MvBackward0", np.matmul)
MM: Final = Op("mm", "MmBackward0", np.matmul)
BMM: Final = Op("bmm", "BmmBackward0", np.matmul)
VECTOR_MATRIX: Final = Op("matmul", "SqueezeBackward4", np.matmul)
STACKS: Final = Op("matmul", "UnsafeViewBackward0", np.matmul)
MATRIX_STACK: Final = Op("matmul", "TransposeBackward0", np.matmul)

C_NAMES: Final = {
    "float16": "c10::Half", "float32": "float", "float64": "double", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>", "int8": "signed char", "uint8": "unsigned char", "int16": "short",
    "int32": "int", "int64": "long int", "bool": "bool",
}  # fmt: skip
"""What PyTorch calls dtypes in the messages of its products."""


def refuse_dtypes(a: Any, b: Any) -> None:
    """Raise what PyTorch says where dtypes differ, or are bool."""
    if a.dtype != b.dtype:
        names = [C_NAMES.get(x.dtype.name, x.dtype.name) for x in (a, b)]
        raise TensorError(
            f"expected m1 and m2 to have the same dtype, but got: {names[0]} != {names[1]}",
            hint="convert one: x.to(y.dtype)",
        )
    if a.dtype == np.bool_:
        raise TensorNotImplementedError(
            "\"addmm_impl_cpu_\" not implemented for 'Bool'", hint="convert it first: x.int()"
        )


def refuse_lengths(a: Any, b: Any) -> None:
    """Raise what PyTorch says where the lengths to be contracted differ."""
    if a.ndim == b.ndim == 1:
        raise TensorError(
            f"inconsistent tensor size, expected tensor [{len(a)}] and src [{len(b)}] to have the same number of "
            f"elements, but got {len(a)} and {len(b)} elements respectively"
        )
    if a.ndim == 2 and b.ndim == 1:
        raise TensorError(f"size mismatch, got input ({a.shape[0]}), mat ({shown(a)}), vec ({len(b)})")
    if a.ndim <= 2 and b.ndim <= 2:
        a = a.reshape(1, -1) if a.ndim == 1 else a
        raise TensorError(f"mat1 and mat2 shapes cannot be multiplied ({shown(a)} and {shown(b)})")
    raise TensorError(
        f"matmul: the last dimension of {list(a.shape)} must have the length of the one but last of {list(b.shape)}"
    )


def shown(matrix: Any) -> str:
    return "x".join(map(str, matrix.shape))


@method("matmul", "__matmul__")
def matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The matrix product; vectors are rows on the left and columns on the right, stacks broadcast.

    Raises:
        TensorError: dtypes differ, or the lengths do not fit.
    """
    need_tensor("matmul", input)
    need_tensor("matmul", other, "other", 2)
    a, b = input._data, other._data
    left, right = a.ndim, b.ndim
    if a.dtype is not b.dtype or a.dtype.kind == "b":
        refuse_dtypes(a, b)
    if left == 2 and right == 2:
        op = MM
    elif not left or not right:
        raise TensorError(f"both arguments to matmul need to be at least 1D, but they are {left}D and {right}D")
    elif left == 1:
        op = DOT if right == 1 else VECTOR_MATRIX if right == 2 else STACKS
    elif left == 2:
        op = MV if right == 1 else MATRIX_STACK
    else:
        op = STACKS
    if a.shape[-1] != b.shape[0 if right == 1 else -2]:
        refuse_lengths(a, b)
    found: Tensor = apply(op, (input, other))
    return found if out is None else store(out, found)


@method("__rmatmul__")
def rmatmul(self: Tensor, other: Any) -> Tensor:
    """``other @ self``."""
    return matmul(other, self)


@method("mm")
def mm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor:
    """The product of two matrices."""
    need_tensor("mm", input)
    need_tensor("mm", mat2, "mat2", 2)
    for name, x in (("self", input), ("mat2", mat2)):
        if x._data.ndim != 2:
            raise TensorError(f"{name} must be a matrix", hint="use torch.matmul")
    return matmul(input, mat2, out=out)


@method("bmm")
def bmm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor:
    """The products of two stacks of matrices, both of three dimensions."""
    need_stacks("bmm", input, mat2)
    return store(out, apply(BMM, (input, mat2)))  # type: ignore[no-any-return]


def need_stacks(name: str, first: Tensor, second: Tensor) -> None:
    need_tensor(name, first)
    need_tensor(name, second, "mat2", 2)
    a, b = first._data, second._data
    for position, x in ((1, a), (2, b)):
        if x.ndim != 3:
            raise TensorError(f"batch{position} must be a 3D tensor", hint="use torch.matmul, which broadcasts")
    refuse_dtypes(a, b)
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise TensorError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] but got: "
            f"[{b.shape[0]}, {b.shape[1]}]."
        )


@method("mv")
def mv(input: Tensor, vec: Tensor, *, out: Any = None) -> Tensor:
    """The product of a matrix and a vector."""
    need_tensor("mv", input)
    need_tensor("mv", vec, "vec", 2)
    if input._data.ndim != 2 or vec._data.ndim != 1:
        raise TensorError(
            f"vector + matrix @ vector expected, got {vec._data.ndim}, {input._data.ndim}, {vec._data.ndim}"
        )
    return matmul(input, vec, out=out)


def need_vectors(name: str, input: Tensor, other: Tensor) -> None:
    need_tensor(name, input)
    need_tensor(name, other, "tensor", 2)
    if input._data.ndim != 1 or other._data.ndim != 1:
        raise TensorError(f"1D tensors expected, but got {input._data.ndim}D and {other._data.ndim}D tensors")


@method("dot")
def dot(input: Tensor, tensor: Tensor, *, out: Any = None) -> Tensor:
    """The sum of products of two vectors, none conjugated."""
    need_vectors("dot", input, tensor)
    return matmul(input, tensor, out=out)


VDOT: Final = Op("vdot", "VdotBackward0", lambda x, y: np.matmul(np.conjugate(x), y))


@method("vdot")
def vdot(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The sum of products of two vectors, the first one conjugated."""
    need_vectors("vdot", input, other)
    if input._data.shape != other._data.shape:
        refuse_lengths(input._data, other._data)
    refuse_dtypes(input._data, other._data)
    return store(out, apply(VDOT, (input, other)))  # type: ignore[no-any-return]


INNER: Final = Op("inner", "ViewBackward0", np.inner)
INNER_NUMBER: Final = Op("inner", "MulBackward0", np.multiply)


@method("inner")
def inner(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The sums of products over the last dimensions."""
    need_tensor("inner", input)
    need_tensor("inner", other, "other", 2)
    a, b = input._data, other._data
    if not a.ndim or not b.ndim:
        left, right, dtype = pair("inner", input, other)
        return store(out, apply(INNER_NUMBER, (left, right), (), dtype))  # type: ignore[no-any-return]
    refuse_dtypes(a, b)
    if a.shape[-1] != b.shape[-1]:
        raise TensorError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(a.shape)} and {list(b.shape)}"
        )
    return store(out, apply(INNER, (input, other)))  # type: ignore[no-any-return]


OUTER: Final = Op("outer", "MulBackward0", lambda x, y: x[:, None] * y[None, :])


@method("outer", "ger")
def outer(input: Tensor, vec2: Tensor, *, out: Any = None) -> Tensor:
    """The matrix of products of the elements of two vectors."""
    need_tensor("outer", input)
    need_tensor("outer", vec2, "vec2", 2)
    for name, x in (("self", input), ("vec2", vec2)):
        if x._data.ndim != 1:
            raise TensorError(f"outer: Expected 1-D argument {name}, but got {x._data.ndim}-D")
    left, right, dtype = pair("outer", input, vec2)
    return store(out, apply(OUTER, (left, right), (), dtype))  # type: ignore[no-any-return]


ger = outer


# --- added products -----------------------------------------------------------------------------------


def scaled(x: Any, factor: Any) -> Any:
    return x if factor is None else x * factor


def added(m: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """beta m + alpha product, None for a factor of 1; with beta the number 0 what m holds does not count."""
    if type(beta) is int:
        return np.broadcast_to(scaled(product, alpha), np.broadcast_shapes(m.shape, product.shape)) + 0
    return scaled(m, beta) + scaled(product, alpha)


def factors_of(dtype: Any, beta: Any, alpha: Any) -> tuple[list[Tensor], tuple[str, str]]:
    """The factors that are operands, and what is static: ``"1"``, ``"0"`` (beta alone), or ``""`` for an operand."""
    kinds = ("1" if beta == 1 else "0" if beta == 0 else "", "1" if alpha == 1 else "")
    return [number(x, dtype) for x, kind in zip((beta, alpha), kinds, strict=True) if not kind], kinds


ONES: Final[tuple[list[Tensor], tuple[str, str]]] = ([], ("1", "1"))


def scaled_by(product: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """``added`` of a product, with the factors that `factors_of` gives."""

    def call(m: Any, a: Any, b: Any, *rest: Any) -> Any:
        *given, of_m, of_product = rest
        factors = iter(given)
        beta = None if of_m == "1" else 0 if of_m else next(factors)
        return added(m, product(a, b), beta, None if of_product else next(factors))

    return call


added_matmul = scaled_by(np.matmul)
added_outer = scaled_by(lambda a, b: a[:, None] * b[None, :])
added_sum = scaled_by(lambda a, b: np.sum(np.matmul(a, b), axis=0, dtype=a.dtype))


def check_factors(name: str, m: Tensor, beta: Any, alpha: Any) -> None:
    if m._data.dtype.kind in "iu" and (isinstance(alpha, float) or isinstance(beta, float)):
        which = "alpha" if isinstance(alpha, float) else "beta"
        raise TensorError(f"For integral input tensors, argument {which} must not be a floating point number.")


def check_expands(m: Any, shape: tuple[int, ...]) -> None:
    if m.shape == shape:
        return
    extra = len(shape) - m.ndim
    if extra < 0:
        raise TensorError(
            f"expand({named(m.dtype)}[{', '.join(map(str, m.shape))}], size={list(shape)}): the number of sizes "
            "provided must be greater or equal to the number of dimensions in the tensor"
        )
    for axis in range(len(shape) - 1, extra - 1, -1):
        size = m.shape[axis - extra]
        if size not in (1, shape[axis]):
            raise TensorError(
                f"The expanded size of the tensor ({shape[axis]}) must match the existing size ({size}) at "
                f"non-singleton dimension {axis}.  Target sizes: {list(shape)}.  Tensor sizes: {list(m.shape)}"
            )


def added_function(name: str, node: str, function: Any, first: str, second: str) -> tuple[Any, Any]:
    """``addmm`` and its like, and the in-place form."""
    op = Op(name, node, function, shown=3)

    def checked(input: Tensor, a: Tensor, b: Tensor, beta: Any, alpha: Any) -> None:
        need_tensor(name, input)
        need_tensor(name, a, first, 2)
        need_tensor(name, b, second, 3)
        x, y = a._data, b._data
        if x.dtype is not y.dtype or input._data.dtype is not x.dtype:
            refuse_dtypes(x, y)
            if name != "addr" and input._data.dtype != x.dtype:
                raise TensorError("self and mat2 must have the same dtype, but got " + mismatch(input._data, y))
        if beta != 1 or alpha != 1:
            check_factors(name, input, beta, alpha)
        check_expands(input._data, result_shape(name, x, y))

    def call(
        input: Tensor, a: Any = None, b: Any = None, *, beta: Any = 1, alpha: Any = 1, out: Any = None, **names: Any
    ) -> Tensor:
        if names:
            a, b = by_name(name, names, (first, second), (a, b))
        checked(input, a, b, beta, alpha)
        dtype = promoted((input, a)) if name == "addr" else None
        factors, kinds = ONES if beta == 1 == alpha else factors_of(dtype or a._data.dtype, beta, alpha)
        found: Tensor = apply(op, (input, a, b, *factors), kinds, dtype)
        return found if out is None else store(out, found)

    def call_inplace(
        self: Tensor, a: Any = None, b: Any = None, *, beta: Any = 1, alpha: Any = 1, **names: Any
    ) -> Tensor:
        if names:
            a, b = by_name(f"{name}_", names, (first, second), (a, b))
        checked(self, a, b, beta, alpha)
        factors, kinds = ONES if beta == 1 == alpha else factors_of(a._data.dtype, beta, alpha)
        return apply_inplace(op, self, (a, b, *factors), kinds)

    call.__name__ = call.__qualname__ = name
    call_inplace.__name__ = call_inplace.__qualname__ = f"{name}_"
    call.__doc__ = f"`torch.{name}`: beta times the tensor plus alpha times the product of {first} and {second}."
    call_inplace.__doc__ = f"`{name}`, written into the tensor."
    setattr(Tensor, name, call)
    setattr(Tensor, f"{name}_", call_inplace)
    return call, call_inplace


def by_name(name: str, given: dict[str, Any], known: Sequence[str], values: Sequence[Any]) -> list[Any]:
    """Operands of which some are given by keyword."""
    for keyword in given:
        if keyword not in known:
            raise TensorTypeError(f"{name}() got an unexpected keyword argument '{keyword}'")
    return [given.get(keyword, value) for keyword, value in zip(known, values, strict=True)]


def mismatch(a: Any, b: Any) -> str:
    return f"{named(a.dtype)} and {named(b.dtype)}"


def result_shape(name: str, x: Any, y: Any) -> tuple[int, ...]:
    """The shape of the product.

    Raises:
        TensorError: the operands have none.
    """
    if name == "addr":
        if x.ndim != 1 or y.ndim != 1:
            raise TensorError(f"addr: Expected 1-D arguments, but got {x.ndim}-D and {y.ndim}-D")
        return (len(x), len(y))
    if name == "addmm":
        if x.ndim != 2 or y.ndim != 2:
            raise TensorError(f"mat1 and mat2 must be matrices, got {x.ndim}-D and {y.ndim}-D tensors")
    elif name == "addmv":
        if x.ndim != 2 or y.ndim != 1:
            raise TensorError(f"vector + matrix @ vector expected, got a {x.ndim}-D and a {y.ndim}-D tensor")
    elif x.ndim != 3 or y.ndim != 3 or x.shape[0] != y.shape[0]:
        raise TensorError(f"{name}: batch1 and batch2 must be 3D tensors of one length: {shown(x)} and {shown(y)}")
    if x.shape[-1] != y.shape[0 if y.ndim == 1 else -2]:
        refuse_lengths(x, y)
    if name == "addmv":
        return (x.shape[0],)
    return (x.shape[-2], y.shape[-1]) if name != "baddbmm" else (*x.shape[:2], y.shape[-1])


addmm, addmm_ = added_function("addmm", "AddmmBackward0", added_matmul, "mat1", "mat2")
addmv, addmv_ = added_function("addmv", "AddmvBackward0", added_matmul, "mat", "vec")
addr, addr_ = added_function("addr", "AddrBackward0", added_outer, "vec1", "vec2")
baddbmm, baddbmm_ = added_function("baddbmm", "BaddbmmBackward0", added_matmul, "batch1", "batch2")
addbmm, addbmm_ = added_function("addbmm", "AddbmmBackward0", added_sum, "batch1", "batch2")


# --- chains and contractions --------------------------------------------------------------------------

CHAIN: Final = Op("multi_dot", "ViewBackward0", lambda *arrays: np.linalg.multi_dot(arrays))


def multi_dot(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """The product of matrices (the first and the last may be vectors) in the order that takes the least time."""
    given = list(tensors)
    if len(given) < 2:
        raise TensorError("multi_dot(): expected at least 2 tensors but got " + str(len(given)))
    for x in given:
        need_tensor("multi_dot", x, "tensors")
    for position, x in enumerate(given):
        inner_one = 0 < position < len(given) - 1
        if x._data.ndim != 2 and (inner_one or x._data.ndim != 1):
            raise TensorError(f"multi_dot(): tensor {position} must be 2D but got {x._data.ndim}D")
    if len(given) == 2:
        return matmul(given[0], given[1], out=out)
    return store(out, apply(CHAIN, given))  # type: ignore[no-any-return]


def chain_matmul(*matrices: Tensor, out: Any = None) -> Tensor:
    """The product of matrices, as `torch.linalg.multi_dot`."""
    return multi_dot(matrices, out=out)


KRON: Final = Op("kron", "UnsafeViewBackward0", np.kron)


def contraction(x: Any, y: Any, axes: tuple[tuple[int, ...], tuple[int, ...]]) -> Any:
    """``np.tensordot``; where one of two contracted lengths is 1, the other dimension is summed first."""
    for left, right in zip(*axes, strict=True):
        if x.shape[left] == 1 != y.shape[right]:
            y = np.sum(y, axis=right, keepdims=True)
        elif y.shape[right] == 1 != x.shape[left]:
            x = np.sum(x, axis=left, keepdims=True)
    return np.tensordot(x, y, axes)


TENSORDOT: Final = Op("tensordot", "ViewBackward0", contraction)


@method("kron")
def kron(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The Kronecker product."""
    need_tensor("kron", input)
    need_tensor("kron", other, "other", 2)
    left, right, dtype = pair("kron", input, other)
    return store(out, apply(KRON, (left, right), (), dtype))  # type: ignore[no-any-return]


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Any = None) -> Tensor:
    """The sum of products over the last ``dims`` dimensions of a and the first of b, or over two lists of them."""
    need_tensor("tensordot", a, "a")
    need_tensor("tensordot", b, "b", 2)
    refuse_dtypes(a._data, b._data)
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    left, right = a._data.ndim, b._data.ndim
    if isinstance(dims, int):
        if dims < 0:
            raise TensorError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(left, right):
            raise TensorError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims = (range(left - dims, left), range(dims))
    pairs = [(one,) if isinstance(one, int) else one for one in dims]
    axes = tuple(
        tuple(one_axis(d, rank, "tensordot") for d in one) for one, rank in zip(pairs, (left, right), strict=True)
    )
    if len(axes[0]) != len(axes[1]):
        raise TensorError("both dimension lists should have same length")
    for d, e in zip(*axes, strict=True):
        one, other = a._data.shape[d], b._data.shape[e]
        if one != other and 1 not in (one, other):
            raise TensorError(
                f"contracted dimensions need to match, but first has size {one} in dim {d} and second has size {other} "
                f"in dim {e}"
            )
    return store(out, apply(TENSORDOT, (a, b), (axes,)))  # type: ignore[no-any-return]


def contracted(*operands_and_equation: Any) -> Any:
    *operands, equation = operands_and_equation
    size = 1
    for operand in operands:
        size *= operand.size
    if len(operands) == 1 and operands[0].dtype.kind in "biu" and einsum_node(equation, 1) == "SumBackward1":
        operands = [operands[0].astype(np.int64)]  # a sum, and sums of whole numbers are int64
    found = np.einsum(equation, *operands, optimize=len(operands) > 2 or size > 4096)
    return found if len(operands) > 1 else np.copy(found)  # NumPy's is a view where nothing is summed


EINSUMS: Final = {
    node: Op("einsum", node, contracted)
    for node in ("ViewBackward0", "MulBackward0", "SumBackward1", "PermuteBackward0")
}


def einsum_node(equation: str, count: int) -> str:
    """What PyTorch's last step is called."""
    inputs, arrow, output = equation.partition("->")
    letters = {letter for letter in inputs if letter.isalpha()}
    if not arrow:
        output = "".join(letter for letter in letters if inputs.count(letter) == 1)
    sums = any(letter not in output for letter in letters)
    if count == 1:
        return "SumBackward1" if sums else "PermuteBackward0"
    return "ViewBackward0" if sums else "MulBackward0"


def letters_of(indices: Sequence[Any]) -> str:
    """A list of numbers (and ...) as the letters of an equation."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return "".join("..." if index is ... else alphabet[index] for index in indices)


def einsum(*args: Any) -> Tensor:
    """Sums of products by an equation: ``einsum("ij,jk->ik", a, b)``, or ``einsum(a, [0, 1], b, [1, 2], [0, 2])``."""
    if not args:
        raise TensorTypeError("einsum() needs an equation and operands")
    if isinstance(args[0], str):
        equation, *operands = args
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
    else:
        output = letters_of(args[-1]) if len(args) % 2 else None
        pairs = args[: len(args) // 2 * 2]
        operands = list(pairs[::2])
        equation = ",".join(map(letters_of, pairs[1::2])) + ("" if output is None else "->" + output)
    equation = equation.replace(" ", "")
    for position, x in enumerate(operands, 1):
        need_tensor("einsum", x, "operands", position)
    wanted = equation.partition("->")[0].count(",") + 1
    if wanted != len(operands):
        which = "fewer" if len(operands) < wanted else "more"
        raise TensorError(f"einsum(): {which} operands were provided than specified in the equation")
    for x in operands[1:]:
        refuse_dtypes(operands[0]._data, x._data)
    return apply(EINSUMS[einsum_node(equation, len(operands))], operands, (equation,))  # type: ignore[no-any-return]


__all__ = [
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "chain_matmul", "dot", "einsum", "ger", "inner", "kron",
    "matmul", "mm", "mv", "outer", "tensordot", "vdot",
]  # fmt: skip
