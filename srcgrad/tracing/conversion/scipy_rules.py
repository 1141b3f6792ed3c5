"""Where the rules of SciPy's functions and objects stand: tables of module names, so that nothing is imported before it
is met.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final

from srcgrad.tracing.unasked import attribute

SCIPY_RULES: Final = {
    "scipy._external": ("scipy_chosen",),
    "scipy._lib": ("scipy_chosen",),
    "scipy.linalg": (
        "scipy_linalg",
        "scipy_decompositions",
        "scipy_schur",
        "scipy_structured",
        "scipy_riccati",
        "matrix_functions",
        "scipy_routines",
    ),
    "scipy.fft": ("scipy_fourier",),
    "scipy.fftpack": ("scipy_fourier", "scipy_fftpack"),
    "scipy.interpolate": ("scipy_interpolate", "scipy_polynomials", "scipy_splines", "scipy_scattered"),
    "scipy.integrate": ("scipy_integrate", "scipy_ode", "scipy_quad"),
    "scipy.ndimage": ("scipy_ndimage", "scipy_images", "scipy_ranks"),
    "scipy.optimize": ("scipy_optimize", "scipy_roots", "scipy_bounded"),
    "scipy.signal": ("scipy_signal", "scipy_filters", "scipy_ranks", "scipy_systems", "scipy_short_time"),
    "scipy.sparse": (
        "scipy_sparse",
        "scipy_sparse_assembly",
        "scipy_sparse_operators",
        "scipy_sparse_parts",
        "scipy_sparse_solvers",
    ),
    "scipy.spatial": ("scipy_distance", "scipy_rotations", "scipy_trees"),
    "scipy.special": ("special", "scipy_gauss"),
    "scipy.stats": ("distributions", "scipy_kde", "scipy_stats"),
}
"""The modules with the rules of SciPy's functions, loaded when a function of SciPy is first met."""
OBJECTS: Final = {
    "scipy.interpolate.": "scipy_splines",
    "scipy.signal._short_time_fft": "scipy_short_time",
    "scipy.sparse.": "scipy_sparse",
    "scipy.spatial._ckdtree": "scipy_trees",
    "scipy.spatial._kdtree": "scipy_trees",
    "scipy.spatial.transform": "scipy_rotations",
    "scipy.stats._kde": "scipy_kde",
}
"""Where objects of SciPy's are made, and the modules whose ``of_method`` stands for their methods."""


PRODUCTS: Final = frozenset({"matvec", "rmatvec", "matmat", "rmatmat", "dot"})
"""The methods of operators of ``scipy.sparse.linalg``."""


def load_scipy_rules(function: Any) -> None:
    """Load the rules of the part of SciPy that a function is of."""
    module = attribute(function, "__module__")
    if isinstance(module, str) and module.startswith("scipy."):
        for package, names in SCIPY_RULES.items():
            if module == package or module.startswith(package + "."):
                for name in names:
                    if f"srcgrad.tracing.functions.{name}" not in sys.modules:
                        importlib.import_module(f"srcgrad.tracing.functions.{name}")


def is_multimethod(function: Any) -> bool:
    """Whether it is a function of SciPy's that several libraries may serve: those of ``scipy.fft``."""
    return type(function).__module__ == "uarray"


def is_routine(thing: Any) -> bool:
    """Whether it is one of LAPACK or BLAS, as SciPy gives them."""
    return type(thing).__name__ == "fortran"


def routines() -> Any:
    return importlib.import_module("srcgrad.tracing.functions.scipy_routines")


def distributions() -> Any:
    return importlib.import_module("srcgrad.tracing.functions.distributions")


def is_distribution(thing: Any) -> bool:
    """Whether it is one of ``scipy.stats``, or one with its parameters, with rules or without."""
    if not type(thing).__module__.startswith("scipy.stats."):
        return False
    name_of = distributions().name_of
    return name_of(thing) is not None or name_of(getattr(thing, "dist", None)) is not None


def rules_of_object(thing: Any) -> Any:
    """The module with the rules of an object's methods; None for any other object."""
    module = type(thing).__module__
    if not module.startswith("scipy."):
        return None
    name = next((name for home, name in OBJECTS.items() if module.startswith(home)), None)
    return None if name is None else importlib.import_module(f"srcgrad.tracing.functions.{name}")


def is_own_operator(x: Any) -> bool:
    """Whether it is of a class of the user's of operators of ``scipy.sparse.linalg``, which may hold traced values."""
    bases = type(x).__mro__
    return len(bases) > 2 and not bases[0].__module__.startswith("scipy.") and any(map(is_interface, bases))


def is_interface(cls: type) -> bool:
    return cls.__name__ == "LinearOperator" and cls.__module__.startswith("scipy.sparse.linalg.")


def rules_of_method(method: Any, traced: bool) -> Any:
    """The module with the rule of a method; ``traced``: it is given traced values.

    A class of the user's of operators may hold them; what it has of SciPy's class asks its own methods for products.
    """
    rules = rules_of_object(method.__self__) if traced else None
    own = rules is None and method.__name__ in PRODUCTS and is_own_operator(method.__self__)
    if own and method.__func__.__module__.startswith("scipy."):
        return importlib.import_module("srcgrad.tracing.functions.scipy_sparse")
    return rules


def is_joint(thing: Any) -> bool:
    """Whether it is one of ``scipy.stats`` of several variables without rules, whose Python code is converted."""
    kind = type(thing)
    if kind.__module__ != "scipy.stats._multivariate" or is_distribution(thing):
        return False
    return any(base.__name__ == "multi_rv_generic" for base in kind.__mro__)
