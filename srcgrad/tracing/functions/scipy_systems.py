"""Rules of ``scipy.signal`` for linear systems: their polynomials, and responses to inputs, steps and frequencies.

Importing this module imports SciPy.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import scipy.linalg
import scipy.signal

from srcgrad.errors import NoAttributeError, ShapeError, UnsupportedError
from srcgrad.tracing.conversion.calls import call, call_rule
from srcgrad.tracing.functions.polynomials import from_roots
from srcgrad.tracing.functions.registry import as_array, cast, function_rule, require
from srcgrad.tracing.functions.scipy_interpolate import of_traced

POLYUTILS: Any = getattr(scipy.signal, "_polyutils", None)
"""Of SciPy since 1.16: before, it called ``np.poly`` itself."""


def of_roots(seq_of_zeros: Any, *, xp: Any = None) -> Any:
    """The polynomial that the designs of filters take for ``np.poly``: real where imaginary parts come in pairs.

    The numbers decide this, and with it the dtype of what follows: the pairs are a guard of a path.
    """
    roots: Any = np.atleast_1d(as_array(seq_of_zeros))
    if not roots.shape[0]:
        return np.asarray(1.0, roots.real.dtype)
    return from_roots(roots, sorted_part=lambda x: x.imag, name="scipy.signal.zpk2tf")


if POLYUTILS is not None:
    function_rule(POLYUTILS.poly)(of_roots)

EQUAL_STEPS = "Time steps are not equally spaced."


class States(NamedTuple):
    """A system by its matrices: x' = A x + B u and y = C x + D u; ``dt`` is a discrete one's."""

    a: Any
    b: Any
    c: Any
    d: Any
    dt: Any = None


class System:
    """What stands for a system of SciPy's of traced numbers: two polynomials, zeros, poles and a gain, or matrices."""

    def __init__(self, *parts: Any, dt: Any = None) -> None:
        if len(parts) not in KINDS:
            raise ShapeError("2, 3 or 4 arguments are needed: polynomials; zeros, poles and a gain; or matrices")
        if len(parts) == 2:
            parts = tuple(call(scipy.signal.normalize, *parts))
        elif len(parts) == 4:
            parts = tuple(np.atleast_2d(as_array(part)) for part in parts)
        self.parts, self.dt = parts, dt

    def __getattr__(self, name: str) -> Any:
        if name in KINDS[len(self.parts)]:
            return self.parts[KINDS[len(self.parts)].index(name)]
        if name in ("zeros", "poles"):
            return getattr(self.to_zpk(), name)
        raise UnsupportedError(
            f"scipy.signal: {name} of a system of traced values is not supported",
            hint="there are to_tf, to_zpk, to_ss, output, impulse, step, freqresp and bode",
        )

    def converted(self, count: int) -> System:
        if len(self.parts) == count:
            return self
        return System(*call(CONVERSIONS[len(self.parts), count], *self.parts), dt=self.dt)

    def to_tf(self) -> System:
        return self.converted(2)

    def to_zpk(self) -> System:
        return self.converted(3)

    def to_ss(self) -> System:
        return self.converted(4)

    def output(self, *args: Any, **kwargs: Any) -> Any:
        return (lsim if self.dt is None else dlsim)(self, *args, **kwargs)

    def impulse(self, *args: Any, **kwargs: Any) -> Any:
        return (impulse if self.dt is None else dimpulse)(self, *args, **kwargs)

    def step(self, *args: Any, **kwargs: Any) -> Any:
        return (step if self.dt is None else dstep)(self, *args, **kwargs)

    def freqresp(self, *args: Any, **kwargs: Any) -> Any:
        return (freqresp if self.dt is None else dfreqresp)(self, *args, **kwargs)

    def bode(self, *args: Any, **kwargs: Any) -> Any:
        return (bode if self.dt is None else dbode)(self, *args, **kwargs)


KINDS: Final = {2: ("num", "den"), 3: ("zeros", "poles", "gain"), 4: ("A", "B", "C", "D")}
"""What a system is made of, by how much that is."""
CONVERSIONS: Final = {
    (2, 3): scipy.signal.tf2zpk, (2, 4): scipy.signal.tf2ss, (3, 2): scipy.signal.zpk2tf, (3, 4): scipy.signal.zpk2ss,
    (4, 2): scipy.signal.ss2tf, (4, 3): scipy.signal.ss2zpk,
}  # fmt: skip


def discrete_system(*parts: Any, dt: Any = True) -> System:
    return System(*parts, dt=dt)


for _kind in (scipy.signal.lti, scipy.signal.TransferFunction, scipy.signal.ZerosPolesGain, scipy.signal.StateSpace):
    call_rule(_kind)(of_traced(_kind, System))
call_rule(scipy.signal.dlti)(of_traced(scipy.signal.dlti, discrete_system))


def require_kind(system: Any, discrete: bool, name: str) -> None:
    """Raise SciPy's error of a system in the other kind of time."""
    if isinstance(system, System):
        wrong = discrete is (system.dt is None)
    else:
        wrong = isinstance(system, scipy.signal.lti if discrete else scipy.signal.dlti)
    if wrong:
        kind = "discrete-time dlti" if discrete else "continuous-time"
        raise NoAttributeError(f"{name} can only be used with {kind} systems.")


def states(system: Any, discrete: bool, name: str) -> States:
    """A system of SciPy's, or its numbers: of a quotient of polynomials, of zeros and poles, or matrices.

    Raises:
        NoAttributeError: it is of the other kind.
        ShapeError: the matrices do not fit each other.
    """
    require_kind(system, discrete, name)
    dt: Any = None
    if isinstance(system, System):
        parts, dt = list(system.parts), system.dt
    elif isinstance(system, (scipy.signal.lti, scipy.signal.dlti)):
        found: Any = system.to_ss()
        parts, dt = [found.A, found.B, found.C, found.D], found.dt
    else:
        parts = list(system)
        if discrete:
            dt = parts.pop()
    if len(parts) not in (2, 3, 4):
        raise ShapeError("num_inputs must be 2, 3 or 4")
    if len(parts) != 4:
        parts = list(call({2: scipy.signal.tf2ss, 3: scipy.signal.zpk2ss}[len(parts)], *parts))
    a, b, c, d = (np.atleast_2d(as_array(part)) for part in parts)
    if a.shape[0] != a.shape[1] or b.shape[0] != a.shape[0] or c.shape[1] != a.shape[0]:
        raise ShapeError(f"the matrices do not fit each other: {a.shape}, {b.shape} and {c.shape}")
    if d.shape != (c.shape[0], b.shape[1]):
        raise ShapeError(f"D must have the shape {(c.shape[0], b.shape[1])}, not {d.shape}")
    dtype = np.result_type(*(part.dtype for part in (a, b, c, d)), np.float64)
    a, b, c, d = (cast(part, dtype) for part in (a, b, c, d))
    return States(a, b, c, d, dt)


def trajectory(a: Any, start: Any, forces: Any) -> Any:
    """The rows x[0] = start and x[i + 1] = x[i] a + forces[i]."""
    rows = np.zeros((forces.shape[0] + 1, a.shape[0]), np.result_type(a.dtype, start.dtype, forces.dtype))
    rows[0] = start
    for k in range(forces.shape[0]):
        rows[k + 1] = rows[k] @ a + forces[k]
    return rows


def moved(a: Any, start: Any, forces: Any) -> Any:
    from srcgrad.tracing.conversion.convert import convert  # which needs the rules

    return convert(trajectory)(a, start, forces)  # type: ignore[arg-type]


@function_rule(scipy.signal.lsim)
def lsim(system: Any, U: Any, T: Any, X0: Any = None, interp: bool = True) -> Any:
    """By the exponentials of the system with its input, which is linear or constant between two times.

    With M the matrix of x, u and the difference of u over a step, expm(M^T) holds what each of them adds.
    """
    sys = states(system, False, "lsim")
    times = np.atleast_1d(as_array(T))
    if times.ndim != 1:
        raise ShapeError("T must be a rank-1 array.")
    count: int = times.shape[0]
    size, inputs = sys.b.shape
    zero = np.zeros(size, sys.a.dtype)
    require(times[0] >= 0.0, "ValueError", "Initial time must be nonnegative")
    start = (zero if X0 is None else as_array(X0) + zero) @ call(scipy.linalg.expm, sys.a.T * times[0])
    is_free = U is None or (isinstance(U, (int, float)) and U == 0)
    given: Any = np.zeros((count, inputs)) if is_free else np.atleast_1d(as_array(U))
    given = cast(given[:, None] if given.ndim == 1 else given, sys.a.dtype)
    if given.shape[0] != count:
        raise ShapeError("U must have the same number of rows as elements in T.")
    if given.shape[1] != inputs:
        raise ShapeError("System does not define that many inputs.")
    rows = start[None] if count == 1 else None
    if rows is None:
        step = times[1] - times[0]
        require(np.allclose(times[1:] - times[:-1], step), "ValueError", EQUAL_STEPS)
        rows = stepped(sys, start, given, step, interp)
    out = np.squeeze(rows @ sys.c.T) + np.squeeze(given @ sys.d.T)
    return times, out, np.squeeze(rows)


def stepped(sys: States, start: Any, given: Any, step: Any, interp: bool) -> Any:
    size, inputs = sys.b.shape
    blocks = [np.concatenate([sys.a, sys.b], axis=1) * step]
    if interp:
        blocks[0] = np.concatenate([blocks[0], np.zeros((size, inputs))], axis=1)
        blocks.append(np.eye(inputs, size + 2 * inputs, k=size + inputs))
    blocks.append(np.zeros((inputs, blocks[0].shape[1])))
    grown = call(scipy.linalg.expm, np.concatenate(blocks).T)
    state, first = grown[:size, :size], grown[size : size + inputs, :size]
    if not interp:
        return moved(state, start, given[:-1] @ first)
    last = grown[size + inputs :, :size]
    return moved(state, start, given[:-1] @ (first - last) + given[1:] @ last)


def response_times(T: Any, name: str) -> Any:
    if T is None:
        raise UnsupportedError(
            f"scipy.signal.{name} without T= is not supported on traced arrays: the eigenvalues decide the times",
            hint="pass T=, as np.linspace(0, 10, 100)",
        )
    return as_array(T)


@function_rule(scipy.signal.step)
def step(system: Any, X0: Any = None, T: Any = None, N: Any = None) -> Any:
    times = response_times(T, "step")
    sys = states(system, False, "step")
    return lsim(sys[:4], np.ones(times.shape), times, X0, interp=False)[:2]


@function_rule(scipy.signal.impulse)
def impulse(system: Any, X0: Any = None, T: Any = None, N: Any = None) -> Any:
    """The input is gone when the time begins: it has moved the state by B, and adds nothing to the output."""
    times = response_times(T, "impulse")
    sys = states(system, False, "impulse")
    start = np.squeeze(sys.b if X0 is None else sys.b + as_array(X0))
    return times, lsim(sys[:4], None, times, start, interp=False)[1]


@function_rule(scipy.signal.dlsim)
def dlsim(system: Any, u: Any, t: Any = None, x0: Any = None) -> Any:
    sys = states(system, True, "dlsim")
    is_states = isinstance(system, scipy.signal.StateSpace) or (isinstance(system, tuple) and len(system) == 5)
    is_states = is_states or (isinstance(system, System) and len(system.parts) == 4)
    if t is not None:
        raise UnsupportedError(
            "scipy.signal.dlsim with t= is not supported on traced arrays", hint="give the input at the steps"
        )
    given = np.atleast_1d(as_array(u))
    given = given[:, None] if given.ndim == 1 else given
    start = np.zeros(sys.a.shape[0]) if x0 is None else as_array(x0) + np.zeros(sys.a.shape[0])
    rows = moved(sys.a.T, start, given[:-1] @ sys.b.T)
    out = rows @ sys.c.T + given @ sys.d.T
    times = np.linspace(0.0, (given.shape[0] - 1) * sys.dt, num=given.shape[0])
    return (times, out, rows) if is_states else (times, out)


def discrete_response(name: str, system: Any, x0: Any, t: Any, n: Any) -> Any:
    """For each input the output, where that one is 1 at all times or at the first."""
    sys = states(system, True, name)
    if t is not None:
        raise UnsupportedError(f"scipy.signal.{name} with t= is not supported on traced arrays", hint="pass n=")
    count, inputs = 100 if n is None else int(n), sys.b.shape[1]
    outputs = []
    for k in range(inputs):
        given = np.zeros((count, inputs))
        given[slice(None) if name == "dstep" else 0, k] = 1.0
        times, out, _ = dlsim(tuple(sys), given, x0=x0)
        outputs.append(out)
    return times, tuple(outputs)


@function_rule(scipy.signal.dstep)
def dstep(system: Any, x0: Any = None, t: Any = None, n: Any = None) -> Any:
    return discrete_response("dstep", system, x0, t, n)


@function_rule(scipy.signal.dimpulse)
def dimpulse(system: Any, x0: Any = None, t: Any = None, n: Any = None) -> Any:
    return discrete_response("dimpulse", system, x0, t, n)


# --- responses to frequencies ----------------------------------------------------------------------------------------


def frequencies(w: Any, name: str) -> Any:
    if w is None:
        raise UnsupportedError(
            f"scipy.signal.{name} without w= is not supported on traced arrays: the poles decide the frequencies",
            hint="pass w=, as np.logspace(-2, 2, 100)",
        )
    return as_array(w)


def response(system: Any, discrete: bool, places: Any, name: str) -> Any:
    """What a system does to exp(s t), or to z**k: its quotient of polynomials, or of their factors."""
    require_kind(system, discrete, name)
    parts = system
    if isinstance(system, System):
        parts = system.parts
    elif isinstance(system, (scipy.signal.lti, scipy.signal.dlti)):
        parts = tuple(getattr(system, part) for part in kinds_of(system))
    elif discrete:
        parts = system[:-1]
    if len(parts) == 2:
        top, bottom = (np.polyval(np.atleast_1d(as_array(part)).reshape(-1), places) for part in parts)
        return top / bottom
    if len(parts) == 3:
        zeros, poles = (np.atleast_1d(as_array(part)) for part in parts[:2])
        return parts[2] * np.prod(places[:, None] - zeros, axis=-1) / np.prod(places[:, None] - poles, axis=-1)
    sys = states(system, discrete, name)
    if sys.b.shape[1] != 1 or sys.c.shape[0] != 1:
        raise ShapeError(f"{name}() requires a SISO (single input, single output) system.")
    shifted = places[:, None, None] * np.eye(sys.a.shape[0]) - sys.a
    return (sys.c @ np.linalg.solve(shifted, sys.b[None]))[:, 0, 0] + sys.d[0, 0]


def kinds_of(system: Any) -> tuple[str, ...]:
    if isinstance(system, scipy.signal.TransferFunction):
        return KINDS[2]
    return KINDS[3 if isinstance(system, scipy.signal.ZerosPolesGain) else 4]


@function_rule(scipy.signal.freqresp)
def freqresp(system: Any, w: Any = None, n: int = 10000) -> Any:
    places = frequencies(w, "freqresp")
    return places, response(system, False, 1j * places, "freqresp")


@function_rule(scipy.signal.dfreqresp)
def dfreqresp(system: Any, w: Any = None, n: int = 10000, whole: bool = False) -> Any:
    places = np.linspace(0.0, (2 if whole else 1) * np.pi, n, endpoint=False) if w is None else as_array(w)
    return places, response(system, True, np.exp(1j * places), "dfreqresp")


def magnitude_and_phase(y: Any) -> tuple[Any, Any]:
    return 20.0 * np.log10(np.abs(y)), np.unwrap(np.arctan2(y.imag, y.real)) * 180.0 / np.pi


@function_rule(scipy.signal.bode)
def bode(system: Any, w: Any = None, n: int = 100) -> Any:
    places, y = freqresp(system, frequencies(w, "bode"))
    return places, *magnitude_and_phase(y)


@function_rule(scipy.signal.dbode)
def dbode(system: Any, w: Any = None, n: int = 100) -> Any:
    places, y = dfreqresp(system, w, n)
    step = system.dt if isinstance(system, (scipy.signal.dlti, System)) else system[-1]
    return places / step, *magnitude_and_phase(y)
