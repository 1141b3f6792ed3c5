"""Bad calls of the public functions themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

import srcgrad as sg
from tests.api.error_table import case

X = np.array([1.0, 2.0, 3.0])
M = np.arange(6.0).reshape(2, 3)


def total(x: Any) -> Any:
    return np.sum(x * x)


def product(x: Any, y: Any) -> Any:
    return np.sum(x * y)


# --- what is not a function ------------------------------------------------------------------------------------------
@case("ArgumentError", TypeError, at="sg.grad(3)")
def grad_of_an_int() -> Any:
    return sg.grad(3)


@case("ArgumentError", TypeError, at="sg.value_and_grad(X)")
def value_and_grad_of_an_array() -> Any:
    return sg.value_and_grad(X)


@case("ArgumentError", TypeError, at='sg.jacobian("f")')
def jacobian_of_text() -> Any:
    return sg.jacobian("f")


@case("ArgumentError", TypeError, at="sg.jacfwd(total(X))")
def jacfwd_of_a_result() -> Any:
    return sg.jacfwd(total(X))


@case("ArgumentError", TypeError, at="sg.jacrev([total])")
def jacrev_of_a_list() -> Any:
    return sg.jacrev([total])


@case("ArgumentError", TypeError, at="sg.hessian({})")
def hessian_of_a_dict() -> Any:
    return sg.hessian({})


@case("ArgumentError", TypeError, at="sg.vmap(0)")
def vmap_of_an_int() -> Any:
    return sg.vmap(0)


@case("ArgumentError", TypeError, at="sg.jit(1.0)")
def jit_of_a_float() -> Any:
    return sg.jit(1.0)


@case("ArgumentError", TypeError, at="sg.vjp(None, X)")
def vjp_of_none() -> Any:
    return sg.vjp(None, X)


@case("ArgumentError", TypeError, at="sg.jvp(X, (X,), (X,))")
def jvp_of_an_array() -> Any:
    return sg.jvp(X, (X,), (X,))


@case("ArgumentError", TypeError, at="sg.linearize(X)")
def linearize_of_an_array() -> Any:
    return sg.linearize(X)


@case("ArgumentError", TypeError, at="sg.hvp(1, (X,), (X,))")
def hvp_of_an_int() -> Any:
    return sg.hvp(1, (X,), (X,))


@case("ArgumentError", TypeError, at="sg.checkpoint(3)")
def checkpoint_of_an_int() -> Any:
    return sg.checkpoint(3)


@case("ArgumentError", TypeError, at="sg.to_jax(3)")
def to_jax_of_an_int() -> Any:
    return sg.to_jax(3)


@case("ArgumentError", TypeError, at="sg.from_jax(3)")
def from_jax_of_an_int() -> Any:
    return sg.from_jax(3)


@case("CustomRuleError", TypeError, at="sg.custom_jvp(3)")
def custom_jvp_of_an_int() -> Any:
    return sg.custom_jvp(3)


@case("CustomRuleError", TypeError, at="sg.custom_vjp(None)")
def custom_vjp_of_none() -> Any:
    return sg.custom_vjp(None)


# --- argnums and arguments -------------------------------------------------------------------------------------------
@case("ArgumentError", ValueError, at="sg.grad(total, argnums=1)(X)")
def argnums_out_of_range() -> Any:
    return sg.grad(total, argnums=1)(X)


@case("ArgumentError", ValueError, at="sg.grad(product, argnums=-3)(X, X)")
def argnums_negative_out_of_range() -> Any:
    return sg.grad(product, argnums=-3)(X, X)


@case("ArgumentError", TypeError, at="sg.grad(total, argnums=1.0)")
def argnums_a_float() -> Any:
    return sg.grad(total, argnums=1.0)


@case("ArgumentError", TypeError, at="sg.hessian(total, argnums=True)")
def argnums_a_bool() -> Any:
    return sg.hessian(total, argnums=True)


@case("ArgumentError", TypeError, at='sg.jacobian(total, argnums="x")')
def argnums_a_name() -> Any:
    return sg.jacobian(total, argnums="x")


@case("ArgumentError", ValueError, at="sg.jacrev(product, argnums=())")
def argnums_empty() -> Any:
    return sg.jacrev(product, argnums=())


@case("ArgumentError", ValueError, at="sg.grad(product, argnums=(0, 0))(X, X)")
def argnums_twice() -> Any:
    return sg.grad(product, argnums=(0, 0))(X, X)


@case("ArgumentError", ValueError, at="sg.jacfwd(product, argnums=(1, -1))(X, X)")
def argnums_twice_negative() -> Any:
    return sg.jacfwd(product, argnums=(1, -1))(X, X)


@case("ArgumentError", TypeError, at="sg.grad(total)(x=X)")
def differentiated_by_keyword() -> Any:
    return sg.grad(total)(x=X)


@case("ArgumentError", TypeError, at="sg.grad(total)()")
def no_arguments() -> Any:
    return sg.grad(total)()


@case("ArgumentError", TypeError, at="sg.grad(total)(X, X)")
def too_many_arguments() -> Any:
    return sg.grad(total)(X, X)


@case("ArgumentError", TypeError, at="sg.grad(total)(X, scale=2.0)")
def unknown_keyword() -> Any:
    return sg.grad(total)(X, scale=2.0)


@case("IntegerInputError", TypeError, at="sg.grad(total)(3)")
def integer_input() -> Any:
    return sg.grad(total)(3)


@case("IntegerInputError", TypeError, at="sg.value_and_grad(total)(np.arange(3))")
def integer_array() -> Any:
    return sg.value_and_grad(total)(np.arange(3))


@case("IntegerInputError", TypeError, at='sg.jacfwd(total)({"w": X, "n": 3})')
def integer_leaf() -> Any:
    return sg.jacfwd(total)({"w": X, "n": 3})


@case("IntegerInputError", TypeError, at="sg.jacrev(total)(True)")
def bool_input() -> Any:
    return sg.jacrev(total)(True)


@case("IntegerInputError", TypeError, at='sg.hessian(total)("x")')
def text_input() -> Any:
    return sg.hessian(total)("x")


@case("IntegerInputError", TypeError, at="sg.grad(total)(object())")
def object_input() -> Any:
    return sg.grad(total)(object())


class AttributeDict(dict[str, float]):
    __getattr__ = dict.__getitem__


@case("IntegerInputError", TypeError, at="sg.grad(lambda p: p.a * p.b)(AttributeDict(a=1.0, b=2.0))")
def attribute_dictionary_input() -> Any:
    return sg.grad(lambda p: p.a * p.b)(AttributeDict(a=1.0, b=2.0))


@case("DTypeError", TypeError, at="sg.grad(total)(np.array([1.0, None]))")
def object_array() -> Any:
    return sg.grad(total)(np.array([1.0, None]))


@case("DTypeError", TypeError, at='sg.hessian(total)(np.array(["a", "b"]))')
def text_array() -> Any:
    return sg.hessian(total)(np.array(["a", "b"]))


@case("DTypeError", TypeError, at="sg.jit(total)(np.array([[], print], object))")
def array_of_what_can_change() -> Any:
    return sg.jit(total)(np.array([[], print], object))


@case("DTypeError", TypeError, at='sg.vmap(total)(np.array(["2020-01-01"], "M8[D]"))')
def date_array() -> Any:
    return sg.vmap(total)(np.array(["2020-01-01"], "M8[D]"))


@case("DTypeError", TypeError, at="sg.grad(total)(np.ma.masked_array(X))")
def masked_array() -> Any:
    return sg.grad(total)(np.ma.masked_array(X))


# --- outputs ---------------------------------------------------------------------------------------------------------
@case("NonScalarOutputError", TypeError, at="sg.grad(np.sin)(X)")
def grad_of_an_array_output() -> Any:
    return sg.grad(np.sin)(X)


@case("NonScalarOutputError", TypeError, at="sg.grad(lambda x: (x, x))(1.0)")
def grad_of_a_pair() -> Any:
    return sg.grad(lambda x: (x, x))(1.0)


@case("NonScalarOutputError", TypeError, at="sg.value_and_grad(lambda x: None)(1.0)")
def value_and_grad_of_no_output() -> Any:
    return sg.value_and_grad(lambda x: None)(1.0)


@case("NonScalarOutputError", TypeError, at='sg.grad(lambda x: "loss")(1.0)')
def grad_of_a_text_output() -> Any:
    return sg.grad(lambda x: "loss")(1.0)


@case("NonScalarOutputError", TypeError, at="sg.grad(np.argmax)(X)")
def grad_of_an_integer_output() -> Any:
    return sg.grad(np.argmax)(X)


@case("NonScalarOutputError", TypeError, at="sg.jacfwd(lambda x: 3)(X)")
def jacfwd_of_an_int_output() -> Any:
    return sg.jacfwd(lambda x: 3)(X)


@case("NonScalarOutputError", TypeError, at='sg.jacrev(lambda x: {"y": x, "name": "y"})(X)')
def jacrev_of_a_text_leaf() -> Any:
    return sg.jacrev(lambda x: {"y": x, "name": "y"})(X)


@case("NonScalarOutputError", TypeError, at="sg.hessian(lambda x: x > 0)(X)")
def hessian_of_a_bool_output() -> Any:
    return sg.hessian(lambda x: x > 0)(X)


@case("NonScalarOutputError", TypeError, at="sg.hvp(np.sin, (X,), (X,))")
def hvp_of_an_array_output() -> Any:
    return sg.hvp(np.sin, (X,), (X,))


@case("NonScalarOutputError", TypeError, at="sg.hvp(np.argmax, (X,), (X,))")
def hvp_of_an_integer_output() -> Any:
    return sg.hvp(np.argmax, (X,), (X,))


@case("StructureError", TypeError, at="sg.grad(total, has_aux=True)(X)")
def aux_missing() -> Any:
    return sg.grad(total, has_aux=True)(X)


@case("StructureError", TypeError, at="sg.jacobian(lambda x: (x, x, x), has_aux=True)(X)")
def aux_of_three() -> Any:
    return sg.jacobian(lambda x: (x, x, x), has_aux=True)(X)


@case("StructureError", TypeError, at="sg.vjp(lambda x: [x, x, x], X, has_aux=True)")
def aux_in_a_list() -> Any:
    return sg.vjp(lambda x: [x, x, x], X, has_aux=True)


@case("HolomorphicError", TypeError, at="sg.jacrev(np.conj)(1j)")
def not_holomorphic() -> Any:
    return sg.jacrev(np.conj)(1j)


@case("HolomorphicError", TypeError, at="sg.jacfwd(np.conj)(1j)")
def not_holomorphic_forward() -> Any:
    return sg.jacfwd(np.conj)(1j)


@case("HolomorphicError", TypeError, at="sg.grad(total, holomorphic=True)(X)")
def holomorphic_of_reals() -> Any:
    return sg.grad(total, holomorphic=True)(X)


@case("HolomorphicError", TypeError, at="sg.value_and_grad(lambda x: np.sum(np.exp(1j * x)))(X)")
def complex_output_of_reals() -> Any:
    return sg.value_and_grad(lambda x: np.sum(np.exp(1j * x)))(X)


@case("HolomorphicError", TypeError, at="sg.grad(lambda z, x: z * x, argnums=(0, 1))(1j, 2.0)")
def complex_output_of_both() -> Any:
    return sg.grad(lambda z, x: z * x, argnums=(0, 1))(1j, 2.0)


# --- tangents and cotangents -----------------------------------------------------------------------------------------
@case("ShapeError", ValueError, at="sg.vjp(np.sin, X)[1](np.ones(4))")
def cotangent_shape() -> Any:
    return sg.vjp(np.sin, X)[1](np.ones(4))


@case("StructureError", ValueError, at='sg.vjp(lambda x: {"a": x, "b": x}, X)[1]({"a": X})')
def cotangent_structure() -> Any:
    return sg.vjp(lambda x: {"a": x, "b": x}, X)[1]({"a": X})


@case("DTypeError", TypeError, at="sg.vjp(np.sin, X)[1](X * 1j)")
def cotangent_complex() -> Any:
    return sg.vjp(np.sin, X)[1](X * 1j)


@case("DTypeError", TypeError, at='sg.vjp(total, X)[1]("one")')
def cotangent_text() -> Any:
    return sg.vjp(total, X)[1]("one")


@case("DTypeError", TypeError, at="sg.vjp(total, X)[1](None)")
def cotangent_none() -> Any:
    return sg.vjp(total, X)[1](None)


@case("ArgumentError", TypeError, at="sg.vjp(total, X)[1](1.0, 2.0)")
def cotangents_two() -> Any:
    return sg.vjp(total, X)[1](1.0, 2.0)


@case("ShapeError", ValueError, at="sg.jvp(total, (X,), (np.ones(2),))")
def tangent_shape() -> Any:
    return sg.jvp(total, (X,), (np.ones(2),))


@case("StructureError", ValueError, at="sg.jvp(product, (X, X), (X,))")
def tangents_missing() -> Any:
    return sg.jvp(product, (X, X), (X,))


@case("ArgumentError", TypeError, at="sg.jvp(total, X, X)")
def tangents_bare() -> Any:
    return sg.jvp(total, X, X)


@case("StructureError", ValueError, at='sg.jvp(lambda p: total(p["w"]), ({"w": X},), ((X,),))')
def tangent_structure() -> Any:
    return sg.jvp(lambda p: total(p["w"]), ({"w": X},), ((X,),))


@case("DTypeError", TypeError, at="sg.jvp(total, (X,), (1j * X,))")
def tangent_complex() -> Any:
    return sg.jvp(total, (X,), (1j * X,))


@case("DTypeError", TypeError, at="sg.hvp(total, (X,), ([None, 1, 2],))")
def tangent_objects() -> Any:
    return sg.hvp(total, (X,), ([None, 1, 2],))


@case("ArgumentError", TypeError, at="sg.hvp(total, X, (X,))")
def hvp_primals_bare() -> Any:
    return sg.hvp(total, X, (X,))


@case("StructureError", ValueError, at="sg.linearize(total, X)[1]()")
def linearize_without_tangents() -> Any:
    return sg.linearize(total, X)[1]()


@case("ShapeError", ValueError, at="sg.linearize(total, X)[1](M)")
def linearize_tangent_shape() -> Any:
    return sg.linearize(total, X)[1](M)


# --- vmap ------------------------------------------------------------------------------------------------------------
@case("ShapeError", ValueError, at="sg.vmap(product)(X, np.ones(4))")
def vmap_sizes_differ() -> Any:
    return sg.vmap(product)(X, np.ones(4))


@case("ShapeError", ValueError, at="sg.vmap(total, in_axes=2)(M)")
def vmap_axis_out_of_range() -> Any:
    return sg.vmap(total, in_axes=2)(M)


@case("ShapeError", ValueError, at="sg.vmap(product)(M, 2.0)")
def vmap_of_a_number() -> Any:
    return sg.vmap(product)(M, 2.0)


@case("ArgumentError", TypeError, at='sg.vmap(total, in_axes="0")')
def vmap_axes_text() -> Any:
    return sg.vmap(total, in_axes="0")


@case("ArgumentError", ValueError, at="sg.vmap(product, in_axes=(0,))(M, M)")
def vmap_axes_too_few() -> Any:
    return sg.vmap(product, in_axes=(0,))(M, M)


@case("ArgumentError", ValueError, at="sg.vmap(total, in_axes=None)(M)")
def vmap_nothing_mapped() -> Any:
    return sg.vmap(total, in_axes=None)(M)


@case("StructureError", ValueError, at="sg.vmap(total, in_axes=([0, 0],))(M)")
def vmap_axes_structure() -> Any:
    return sg.vmap(total, in_axes=([0, 0],))(M)


@case("ShapeError", ValueError, at="sg.vmap(total, out_axes=1)(M)")
def vmap_out_axis_out_of_range() -> Any:
    return sg.vmap(total, out_axes=1)(M)


@case("ArgumentError", ValueError, at="sg.vmap(total, out_axes=None)(M)")
def vmap_out_axes_none() -> Any:
    return sg.vmap(total, out_axes=None)(M)


@case("ArgumentError", TypeError, at="sg.vmap(total, axis_size=2.0)")
def vmap_axis_size_a_float() -> Any:
    return sg.vmap(total, axis_size=2.0)


@case("ShapeError", ValueError, at="sg.vmap(total, axis_size=5)(M)")
def vmap_axis_size_differs() -> Any:
    return sg.vmap(total, axis_size=5)(M)


# --- backends --------------------------------------------------------------------------------------------------------
@case("UnknownBackendError", ValueError, at='sg.set_backend("nunpy")')
def set_backend_unknown() -> Any:
    return sg.set_backend("nunpy")


@case("UnknownBackendError", ValueError, at="sg.set_backend(3)")
def set_backend_an_int() -> Any:
    return sg.set_backend(3)  # type: ignore[arg-type]


@case("UnknownBackendError", ValueError, at='sg.use_backend("cuda")')
def use_backend_unknown() -> Any:
    with sg.use_backend("cuda"):
        pass


@case("UnknownBackendError", ValueError, at='sg.grad(total, backend="numpi")')
def grad_backend_unknown() -> Any:
    return sg.grad(total, backend="numpi")


@case("UnknownBackendError", ValueError, at="sg.jvp(total, (X,), (X,), backend=np)")
def jvp_backend_a_module() -> Any:
    return sg.jvp(total, (X,), (X,), backend=np)


# --- pytrees and control ---------------------------------------------------------------------------------------------
@case("StructureError", TypeError, at="sg.register_pytree_node(3, list, tuple)")
def register_an_instance() -> Any:
    return sg.register_pytree_node(3, list, tuple)  # type: ignore[arg-type, type-var]


@case("StructureError", ValueError, at="sg.register_pytree_node(dict, list, tuple)")
def register_twice() -> Any:
    return sg.register_pytree_node(dict, list, tuple)  # type: ignore[arg-type]


@case("StructureError", TypeError, at="sg.register_pytree_node(Unregistered, None, tuple)")
def register_without_flatten() -> Any:
    return sg.register_pytree_node(Unregistered, None, tuple)  # type: ignore[arg-type]


@case("StructureError", TypeError, at="sg.register_pytree_node_class(Unregistered)")
def register_class_without_methods() -> Any:
    return sg.register_pytree_node_class(Unregistered)


class Unregistered:
    """A class that is no container."""


drawing = eval(compile("lambda x: x * np.random.rand()", "<input>", "eval"))  # which has no source


@case("ArgumentError", TypeError, at="sg.jit(drawing, strict=True)(X)")
def strict_jit_of_random_draws_without_a_source() -> Any:
    return sg.jit(drawing, strict=True)(X)


def selecting(x: Any) -> Any:
    return x[x > 0] * 2.0


@case("ArgumentError", TypeError, at="sg.jit(selecting, strict=True)(X)")
def strict_jit_of_a_selection() -> Any:
    return sg.jit(selecting, strict=True)(X)
