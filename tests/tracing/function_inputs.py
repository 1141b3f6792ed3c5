"""The arrays that the function cases are run on."""

from __future__ import annotations

import numpy as np

RANDOM = np.random.default_rng(7)
V = RANDOM.standard_normal(5)
W = RANDOM.standard_normal(5)
M = RANDOM.standard_normal((3, 4))
N = RANDOM.standard_normal((4, 3))
S = RANDOM.standard_normal((3, 3))
T = RANDOM.standard_normal((2, 3, 4))
SPD = S @ S.T + 3 * np.eye(3)
C = RANDOM.standard_normal((2, 3)) + 1j * RANDOM.standard_normal((2, 3))
Z = np.array([1.5 - 0.5j, -2.0 + 1.0j, 0.5j])
INTS = np.array([3, -1, 2, 7], np.int32)
I8 = np.array([[3, -1], [2, 7]], np.int8)
U8 = np.array([3, 250, 7], np.uint8)
B = np.array([[True, False, True], [False, False, True]])
F32 = M.astype(np.float32)
F16 = M.astype(np.float16)
E = np.zeros((0, 3))
A0 = np.array(1.5)
SC = np.float64(0.7)
NAN = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, 2.0]])
INF = np.array([np.inf, -np.inf, np.nan, 1.0, -0.0])
MASK = np.array([True, False, True, True, False])
