import numpy as np

from declare import op, refuses
from domains import normal
from ulps import near


def factors(d):
    m, k, n = (130, 70, 257) if d.large else (d.integer(0, 3 if d.smooth else 20) for _ in range(3))
    return [d("a", (k, m) if d.attrs["transpose_a"] else (m, k)), d("b", (n, k) if d.attrs["transpose_b"] else (k, n))]


def sized(m, k, n, transpose_a=False, transpose_b=False):
    def draw(d):
        d.set(transpose_a=transpose_a, transpose_b=transpose_b)
        return [d("a", (k, m) if transpose_a else (m, k)), d("b", (n, k) if transpose_b else (k, n))]
    return draw


# Vectors, also long ones; rows whose distance is a large power of two; more columns than a stripe has; a product that is divided
# into many cells; few rows.
others = [sized(*sizes) for sizes in (
    (1, 21, 32), (1, 21, 37), (1, 300, 9, False, True), (300, 21, 1, True), (48, 300, 1), (9, 512, 70), (9, 1030, 70), (1024, 9, 70, True),
    (30, 9, 600), (230, 40, 8, True), (370, 370, 371), (2, 1030, 9, False, True), (5, 300, 70, False, True), (8, 128, 3, False, True))]


def product(a, b, *, transpose_a, transpose_b):
    a, b = a.T if transpose_a else a, b.T if transpose_b else b
    return near(a @ b, abs(a) @ abs(b))


op("MatMul", product, factors, domain=normal.calm, ulps=16, zero_signs=False, also=others)
refuses("MatMul", [np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)], "[2, 3]")
refuses("MatMul", [np.zeros(3, np.float32), np.zeros((3, 2), np.float32)], "[3]")
