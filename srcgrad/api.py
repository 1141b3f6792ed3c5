"""The transforms as Python functions: each takes a function and returns one, or is used as a decorator.

All of them trace plain NumPy code, transform the trace, and run what comes out on a backend. Names, arguments and the
structure of what they return are JAX's. The mathematics: Griewank and Walther, *Evaluating Derivatives* (2nd ed., SIAM
2008), chapters 3 and 13; reverse mode as the transpose of a linearisation: Radul et al., *You Only Linearize Once*
(2023).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from srcgrad.boundary import checked
from srcgrad.cache import PURE_FUNCTIONS
from srcgrad.custom import checkpoint, stop_gradient
from srcgrad.differentiate import Argnums, Grad, Hessian, Jacobian
from srcgrad.directional import Hvp, Jvp, Linearize, Vjp
from srcgrad.mapped import Axes, Jit, Vmap, check_static

Function = Callable[..., Any]


@checked
def grad(
    f: Function | None = None,
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    backend: str | None = None,
) -> Any:
    """The gradient of a scalar function, by reverse mode.

    Args:
        f: a function of pytrees of arrays and numbers that returns a floating or complex scalar (with ``has_aux``:
            ``(scalar, aux)``). Without it, a decorator is returned.
        argnums: which positional arguments to differentiate, an int or a sequence of ints; negative ones count from the
            end of the call's positional arguments.
        has_aux: ``f`` returns auxiliary data besides; the result is ``(gradient, aux)``.
        holomorphic: ``f`` maps complex to complex numbers and is holomorphic.
        backend: ``"llvm"``, ``"numpy"`` or ``"xla"``; None is what `use_backend`, `set_backend` or the variable
            ``SRCGRAD_BACKEND`` chose, or llvm. Of nested transforms the outermost decides.

    Returns:
        A function with ``f``'s arguments that returns the gradient: the structure, shapes and dtypes of the argument (a
        tuple of these if ``argnums`` is a sequence). For a complex argument of a real function: JAX's convention,
        ``df/dx - 1j df/dy``.

    Raises (when called):
        NonScalarOutputError: the result is no scalar. IntegerInputError: an argument to differentiate has integers or
        booleans. HolomorphicError: a complex function of complex numbers is not holomorphic, or real numbers are to be.
        StructureError: ``has_aux``, and no pair is returned. ArgumentError: there is no such argument. And what tracing
        raises.

    >>> import numpy as np, srcgrad as sg
    >>> @sg.grad
    ... def slope(x):
    ...     return np.sum(np.sin(x) ** 2)
    >>> slope(np.array([0.0, np.pi / 4]))
    array([0., 1.])
    """
    if f is None:
        return partial(grad, argnums=argnums, has_aux=has_aux, holomorphic=holomorphic, backend=backend)
    return Grad(f, argnums, has_aux, holomorphic, backend, with_value=False)


@checked
def value_and_grad(
    f: Function | None = None,
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    backend: str | None = None,
) -> Any:
    """Like `grad`, returning ``(value, gradient)``; with ``has_aux``, ``((value, aux), gradient)``.

    Args and errors are `grad`'s. The function runs once for both.

    >>> import numpy as np, srcgrad as sg
    >>> sg.value_and_grad(lambda x: x * x)(3.0)
    (np.float64(9.0), np.float64(6.0))
    """
    if f is None:
        return partial(value_and_grad, argnums=argnums, has_aux=has_aux, holomorphic=holomorphic, backend=backend)
    return Grad(f, argnums, has_aux, holomorphic, backend, with_value=True)


@checked
def jacobian(
    f: Function | None = None,
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    backend: str | None = None,
) -> Any:
    """The Jacobian, by forward or reverse mode, whichever needs fewer passes for the shapes at hand.

    Args and errors are `grad`'s, but ``f`` may return any pytree of float arrays.

    Returns:
        A function that returns, in the structure of ``f``'s output, arrays of shape ``output.shape + input.shape`` in
        the structure and the precision of the argument; with ``has_aux``, ``(jacobian, aux)``.

    >>> import numpy as np, srcgrad as sg
    >>> sg.jacobian(lambda x: x**2)(np.array([1.0, 3.0]))
    array([[2., 0.],
           [0., 6.]])
    """
    return make_jacobian(jacobian, f, argnums, has_aux, holomorphic, backend, "auto")


@checked
def jacfwd(
    f: Function | None = None,
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    backend: str | None = None,
) -> Any:
    """The Jacobian by forward mode: one pass per input element, all at once. See `jacobian`.

    >>> import numpy as np, srcgrad as sg
    >>> sg.jacfwd(np.sin)(np.array([0.0]))
    array([[1.]])
    """
    return make_jacobian(jacfwd, f, argnums, has_aux, holomorphic, backend, "forward")


@checked
def jacrev(
    f: Function | None = None,
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    backend: str | None = None,
) -> Any:
    """The Jacobian by reverse mode: one pass per output element, all at once. See `jacobian`.

    >>> import numpy as np, srcgrad as sg
    >>> sg.jacrev(np.sin)(np.array([0.0]))
    array([[1.]])
    """
    return make_jacobian(jacrev, f, argnums, has_aux, holomorphic, backend, "reverse")


def make_jacobian(
    maker: Function,
    f: Function | None,
    argnums: Argnums,
    has_aux: bool,
    holomorphic: bool,
    backend: str | None,
    mode: str,
) -> Any:
    if f is None:
        return partial(maker, argnums=argnums, has_aux=has_aux, holomorphic=holomorphic, backend=backend)
    return Jacobian(f, argnums, has_aux, holomorphic, backend, mode)


@checked
def hessian(
    f: Function | None = None,
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    backend: str | None = None,
) -> Any:
    """The matrix of second derivatives, forward over reverse.

    Args and errors are `jacobian`'s.

    Returns:
        A function that returns arrays of shape ``output.shape + input.shape + input.shape`` in the precision of the
        argument, in the structure of the output, of the argument and of the argument again; with ``has_aux``,
        ``(hessian, aux)``.

    >>> import numpy as np, srcgrad as sg
    >>> sg.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    if f is None:
        return partial(hessian, argnums=argnums, has_aux=has_aux, holomorphic=holomorphic, backend=backend)
    return Hessian(f, argnums, has_aux, holomorphic, backend)


@checked
def vmap(
    f: Function | None = None,
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    *,
    axis_size: int | None = None,
    backend: str | None = None,
) -> Any:
    """Map a function over an axis of its arguments, as array operations instead of a loop.

    Args:
        f: a function of one example.
        in_axes: the axis of each argument's examples: an int for all, or a tuple with an entry per positional argument,
            each an int, None (the same for all examples) or a pytree of these that is a prefix of the argument.
        out_axes: where the axis of examples goes in each output: an int, or a pytree prefix of the output; None for an
            output that is the same for all examples and has no such axis.
        axis_size: the number of examples, where no argument is mapped.
        backend: as in `grad`.

    Returns:
        A function of ``f``'s arguments with an axis of examples more, which returns ``f``'s outputs with one more, of
        the same dtypes; so do integers and booleans, as ``x.shape[0]``. What ``f`` says of one example holds of each.

    Raises (when called):
        ShapeError: mapped axes differ in size or do not exist. ArgumentError: nothing is mapped, or bad axes.

    >>> import numpy as np, srcgrad as sg
    >>> sg.vmap(sg.grad(lambda x: x**3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    """
    if f is None:
        return partial(vmap, in_axes=in_axes, out_axes=out_axes, axis_size=axis_size, backend=backend)
    return Vmap(f, in_axes, out_axes, axis_size, backend)


@checked
def jit(
    f: Function | None = None,
    *,
    static_argnums: Argnums | None = None,
    static_argnames: str | Sequence[str] | None = None,
    strict: bool = False,
    donate_argnums: Argnums | None = None,
    backend: str | None = None,
) -> Any:
    """Compile a function: traced once per signature, simplified, and run as one program.

    Args:
        f: a function of pytrees of arrays and numbers. Arrays that it changes in place are changed for the caller, and
            so are the lists, dicts and dataclasses that it lets hold something else.
        static_argnums, static_argnames: taken for JAX's sake. Integers, texts, functions and other objects are
            compiled in without being named; floats and arrays are arguments of the program, of which it may ask the
            values. They must name parameters of the function.
        strict: raise where the function cannot be one program, instead of running it as it is with one warning.
        donate_argnums: positional arguments whose jax arrays are not used after the call: on the xla backend their
            memory is used for results, and they are deleted. Other backends and NumPy arrays are not concerned.
        backend: as in `grad`.

    Returns:
        A function that returns what ``f`` does: the same structures, shapes, dtypes and, but for roundings, numbers.

    Raises (when called):
        ArgumentError: with ``strict``, the function cannot be one program, and the message says why; or the call has no
            positional argument of a number in ``donate_argnums``.

    >>> import numpy as np, srcgrad as sg
    >>> sg.jit(lambda x: np.sqrt(x) + 1.0)(np.array([4.0]))
    array([3.])
    """
    if f is None:
        return partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            strict=strict,
            donate_argnums=donate_argnums,
            backend=backend,
        )
    numbers, names = (() if given is None else given for given in (static_argnums, static_argnames))
    if numbers != () or names != ():
        check_static(f, numbers, names)
    return Jit(f, bool(strict), backend, () if donate_argnums is None else donate_argnums)


@checked
def vjp(f: Function, *primals: Any, has_aux: bool = False, backend: str | None = None) -> Any:
    """The value of ``f`` and its pullback (vector-Jacobian product).

    Args:
        f: a function of pytrees of arrays.
        primals: its arguments.
        has_aux: ``f`` returns ``(output, aux)``.
        backend: as in `grad`.

    Returns:
        ``(output, vjp_fn)``, with ``has_aux`` ``(output, vjp_fn, aux)``. ``vjp_fn(cotangent)``, with a cotangent in the
        structure and shapes of the output, returns a tuple of cotangents, one per primal, in its structure, shapes and
        dtypes; it can be called again.

    Raises:
        StructureError: ``has_aux``, and no pair is returned; StructureError, ShapeError, DTypeError of ``vjp_fn``: the
        cotangent does not fit the output. And what tracing raises.

    >>> import numpy as np, srcgrad as sg
    >>> out, vjp_fn = sg.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> out, vjp_fn(1.0)
    (np.float64(6.0), (np.float64(3.0), np.float64(2.0)))
    """
    return Vjp(f, has_aux, backend)(*primals)


@checked
def jvp(
    f: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False, *, backend: str | None = None
) -> Any:
    """The value of ``f`` and its pushforward (Jacobian-vector product), by forward mode.

    Args:
        f: a function of pytrees of arrays.
        primals: a tuple of its arguments.
        tangents: a tuple of tangents in their structures and shapes; those of integers are ignored.
        has_aux: ``f`` returns ``(output, aux)``.
        backend: as in `grad`.

    Returns:
        ``(output, tangent_out)``, with ``has_aux`` ``(output, tangent_out, aux)``; the tangent has the structure,
        shapes and dtypes of the output.

    Raises:
        ArgumentError, StructureError, ShapeError, DTypeError: primals and tangents do not fit each other.

    >>> import numpy as np, srcgrad as sg
    >>> sg.jvp(np.sin, (0.0,), (1.0,))
    (np.float64(0.0), np.float64(1.0))
    """
    return Jvp(f, has_aux, backend)(primals, tangents)


@checked
def linearize(f: Function, *primals: Any, has_aux: bool = False, backend: str | None = None) -> Any:
    """The value of ``f`` and its derivative as a function of tangents; the primal part is run once.

    Args:
        f: a function of pytrees of arrays.
        primals: its arguments.
        has_aux: ``f`` returns ``(output, aux)``.
        backend: as in `grad`.

    Returns:
        ``(output, linear_fn)``, with ``has_aux`` ``(output, linear_fn, aux)``. ``linear_fn(*tangents)`` takes one
        tangent per primal, in its structure and shapes, and returns a tangent like the output; it can be called again.

    Raises:
        StructureError: ``has_aux``, and no pair is returned; StructureError, ShapeError, DTypeError of ``linear_fn``:
        the tangents do not fit the primals. And what tracing raises.

    >>> import numpy as np, srcgrad as sg
    >>> out, linear_fn = sg.linearize(np.exp, 0.0)
    >>> out, linear_fn(2.0)
    (np.float64(1.0), np.float64(2.0))
    """
    return Linearize(f, has_aux, backend)(*primals)


@checked
def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any], *, backend: str | None = None) -> Any:
    """The Hessian of a scalar function, in all primals, times tangents (forward over reverse).

    Args:
        f: a function of pytrees of arrays that returns a scalar.
        primals: a tuple of its arguments.
        tangents: a tuple of tangents in their structures and shapes.
        backend: as in `grad`.

    Returns:
        The product in the structure, shapes and dtypes of the primal, or a tuple of these for several primals.

    Raises:
        NonScalarOutputError, and what `jvp` raises.

    >>> import numpy as np, srcgrad as sg
    >>> sg.hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
    array([6., 0.])
    """
    return Hvp(f, False, backend)(primals, tangents)


PURE_FUNCTIONS.update(
    {
        grad,
        value_and_grad,
        jacobian,
        jacfwd,
        jacrev,
        hessian,
        vmap,
        jit,
        vjp,
        jvp,
        linearize,
        hvp,
        stop_gradient,
        checkpoint,
    }
)
