import numpy as np

from arrays import zeros
from declare import op, refuses
from domains import between
from ulps import near

FLOAT_ONLY = "float is its only type; gradient_of_floats_test.py checks it"


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(d):
    batch, n, cell = (37, 21, 66) if d.large else (d.integer(0, 3), d.integer(0, 4), d.integer(1, 5))
    states = [d("x", (batch, n)), d("h_prev", (batch, cell))]
    return states + [d("w_ru", (n + cell, 2 * cell)), d("w_c", (n + cell, cell)), d("b_ru", (2 * cell,)), d("b_c", (cell,))]


def step_back(d):
    inputs = step(d)
    return inputs + [d(name, inputs[1].shape) for name in ("r", "u", "c", "d_h")]


def close(values, *sums):
    reach = 1 + max(float(s.max(initial=0)) for s in sums)
    return [near(v, np.full(v.shape, reach)) for v in values]


def oracle(x, h_prev, w_ru, w_c, b_ru, b_c):
    both = np.concatenate([x, h_prev], 1)
    r, u = np.split(sigmoid(both @ w_ru + b_ru), 2, 1)
    c = np.tanh(np.concatenate([x, r * h_prev], 1) @ w_c + b_c)
    return close([r, u, c, u * h_prev + (1 - u) * c], abs(both) @ abs(w_ru), abs(both) @ abs(w_c))


def grad_oracle(x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, d_h):
    n = x.shape[1]
    d_c, d_u = d_h * (1 - u) * (1 - c ** 2), d_h * (h_prev - c) * u * (1 - u)
    through_c = d_c @ w_c.T
    d_r = through_c[:, n:] * h_prev * r * (1 - r)
    d_ru = np.concatenate([d_r, d_u], 1)
    through_ru = d_ru @ w_ru.T
    d_h_prev = through_ru[:, n:] + through_c[:, n:] * r + d_h * u
    sums = abs(d_c) @ abs(w_c).T, abs(d_ru) @ abs(w_ru).T, abs(d_h)
    return close([through_c[:, :n] + through_ru[:, :n], d_h_prev, d_c, d_ru], *sums)


common = dict(domain=between(-1, 1).plain, ulps=32, zero_signs=False, denormals=False, no_gradient=FLOAT_ONLY)
op("GRUBlockCell", oracle, step, **common)
op("GRUBlockCellGrad", grad_oracle, step_back, **common)


right = [zeros(2, 4), zeros(2, 3), zeros(7, 6), zeros(7, 3), zeros(6), zeros(3)]
wrong = [(0, zeros(2)), (0, zeros(2, 5)), (1, zeros(1, 3)), (1, zeros(2, 4)), (2, zeros(7, 3)), (2, zeros(6, 6)), (3, zeros(7, 6)),
         (4, zeros(3)), (4, zeros(2, 3)), (5, zeros(6))]
names = "x h_prev w_ru w_c b_ru b_c".split()
for name, rest in (("GRUBlockCell", []), ("GRUBlockCellGrad", [zeros(2, 3)] * 4)):
    for k, array in wrong:
        refuses(name, [*right[:k], array, *right[k + 1:], *rest])
    for k in (2, 4):
        refuses(name, [*right[:k], zeros(5, 5) if k == 2 else zeros(5), *right[k + 1:], *rest], names[k])
refuses("GRUBlockCellGrad", [*right, zeros(2, 3), zeros(2, 3), zeros(2, 4), zeros(2, 3)], "'c'", "[2, 4]")
