import numpy as np

from declare import op, refuses
from domains import normal
from ulps import near


def factors(d):
    m, k, n = (130, 70, 257) if d.large else (d.integer(0, 3 if d.smooth else 20) for _ in range(3))
    return [d("a", (k, m) if d.attrs["transpose_a"] else (m, k)), d("b", (n, k) if d.attrs["transpose_b"] else (k, n))]


def product(a, b, *, transpose_a, transpose_b):
    a, b = a.T if transpose_a else a, b.T if transpose_b else b
    return near(a @ b, abs(a) @ abs(b))


op("MatMul", product, factors, domain=normal.calm, ulps=16, zero_signs=False)
refuses("MatMul", [np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)], "[2, 3]")
refuses("MatMul", [np.zeros(3, np.float32), np.zeros((3, 2), np.float32)], "[3]")
