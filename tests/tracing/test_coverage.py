"""What of NumPy's namespace a traced array can be given to: every function and ufunc, but for those on a list here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.fft

import srcgrad.tracing.functions.scipy_fourier
import srcgrad.tracing.functions.scipy_signal  # noqa: F401  (registers the rules)
from srcgrad.tracing.tracer import FUNCTIONS
from srcgrad.tracing.ufuncs import ELEMENTWISE, UFUNCS, UNTRACED

DATES = "it computes with dates, which are never traced"
FILES = "it writes numbers into a file: a program that is run later has none while it is traced"

UNTRACED_FUNCTIONS: dict[str, str] = {
    "busday_count": DATES,
    "busday_offset": DATES,
    "datetime_as_string": DATES,
    "is_busday": DATES,
    "save": FILES,
    "savetxt": FILES,
    "savez": FILES,
    "savez_compressed": FILES,
}
"""Functions that dispatch on their arguments and have no rule, by name, with the reason."""

NAMESPACES: dict[str, Any] = {
    "np": np,
    "np.linalg": np.linalg,
    "np.fft": np.fft,
    "np.lib.stride_tricks": np.lib.stride_tricks,
}

SCIPY_FFT_WITHOUT_ARRAYS: dict[str, str] = {
    "fht": "the logarithmic Hankel transform takes coefficients that SciPy keeps to itself",
    "ifht": "the logarithmic Hankel transform takes coefficients that SciPy keeps to itself",
    "get_workers": "a setting of how work is done",
    "set_workers": "a setting of how work is done",
    "register_backend": "a setting of how work is done",
    "set_backend": "a setting of how work is done",
    "set_global_backend": "a setting of how work is done",
    "skip_backend": "a setting of how work is done",
}
"""Functions of ``scipy.fft`` without a rule, and why."""


def public(namespace: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The callables that dispatch: ufuncs, and functions of the array function protocol."""
    for name in dir(namespace):
        thing = None if name.startswith("_") else getattr(namespace, name)
        if isinstance(thing, np.ufunc) or hasattr(thing, "_implementation"):
            yield name, thing


def handled(thing: Any) -> bool:
    return thing in FUNCTIONS or (isinstance(thing, np.ufunc) and (thing in ELEMENTWISE or thing in UFUNCS))


def reason_for(name: str, thing: Any) -> str | None:
    return UNTRACED.get(thing) if isinstance(thing, np.ufunc) else UNTRACED_FUNCTIONS.get(name)


@pytest.mark.parametrize("where", NAMESPACES)
def test_everything_that_dispatches_is_handled_or_has_a_reason(where: str) -> None:
    found = dict(public(NAMESPACES[where]))
    missing = [name for name, thing in found.items() if not handled(thing) and reason_for(name, thing) is None]
    assert missing == []
    stale = [name for name, thing in found.items() if handled(thing) and reason_for(name, thing) is not None]
    assert stale == [], "there is a rule for what a list calls untraced"
    print(f"{where}: {sum(map(handled, found.values()))} of {len(found)} have a rule")


def test_every_name_on_the_list_is_numpys() -> None:
    names = {name for namespace in NAMESPACES.values() for name, _ in public(namespace)}
    assert set(UNTRACED_FUNCTIONS) <= names
    assert all(len(reason.split()) >= 3 for reason in (*UNTRACED_FUNCTIONS.values(), *UNTRACED.values()))


def test_the_counts() -> None:
    """Of the functions and ufuncs that dispatch in NumPy 2, nearly all have a rule: fewer is a loss."""
    things = {thing for namespace in NAMESPACES.values() for _, thing in public(namespace)}
    rules = sum(map(handled, things))
    print(f"{rules} of {len(things)} functions and ufuncs have a rule")
    assert len(things) - rules == len(UNTRACED_FUNCTIONS) + len([ufunc for ufunc in UNTRACED if ufunc in things])


def test_scipy_fft_is_handled_or_has_a_reason() -> None:
    names = set(scipy.fft.__all__)
    without = {name for name in names if getattr(scipy.fft, name) not in FUNCTIONS}
    assert without == set(SCIPY_FFT_WITHOUT_ARRAYS)
