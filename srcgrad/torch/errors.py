"""What the facade raises: PyTorch's words and Python error classes, with the user's line."""

from __future__ import annotations

from srcgrad.errors import SrcgradError


class TensorError(SrcgradError, RuntimeError):
    """What PyTorch reports as a RuntimeError: shapes, dtypes, in-place writes."""


class AutogradError(TensorError):
    """A graph that cannot be differentiated as asked."""


class TensorTypeError(SrcgradError, TypeError):
    """An argument of a type that the operation does not take."""


class TensorValueError(SrcgradError, ValueError):
    """An argument of the right type with a value that makes no sense."""


class TensorIndexError(SrcgradError, IndexError):
    """An index or a dimension out of range."""


class TensorOverflowError(SrcgradError, OverflowError):
    """A Python integer that no dtype holds."""


class TensorNotImplementedError(SrcgradError, NotImplementedError):
    """What PyTorch has and the facade has not, or a method that is to be overridden."""


class LinAlgError(TensorError):
    """A matrix that is singular, or not positive-definite, where it must not be: ``torch.linalg.LinAlgError``."""


class TensorKeyError(SrcgradError, KeyError):
    """A name that is not among those of a dictionary or a parameter group."""
