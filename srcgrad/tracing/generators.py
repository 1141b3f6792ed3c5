"""NumPy's random generators, and what makes them, among the objects that programs work with."""

from __future__ import annotations

import numpy as np

from srcgrad.tracing.hosts import MAKERS, OTHERS, SILENT

OTHERS[np.random.Generator] = lambda: np.random.default_rng(0)
OTHERS[np.random.RandomState] = lambda: np.random.RandomState(0)
MAKERS[np.random.default_rng] = np.random.Generator
MAKERS[np.random.RandomState] = np.random.RandomState
SILENT[np.random.seed] = None
