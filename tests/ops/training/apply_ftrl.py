import numpy as np

from domains import between
from optimizers import mild, optimizer, slot


def ftrl(var, accum, linear, g, lr, l1, l2, lr_power, multiply_linear_by_lr, l2_shrinkage=0):
    """Applies FTRL. With multiply_linear_by_lr, linear is stored as a multiple of lr."""
    rate, scale = (1, lr) if multiply_linear_by_lr else (lr, 1)
    new = accum + g * g
    root, was = new ** -lr_power, accum ** -lr_power
    l = linear + (g + 2 * l2_shrinkage * var) * scale - (root - was) / rate * var
    size = abs(linear) + (abs(g) + 2 * l2_shrinkage * abs(var)) * scale + (root + was) / rate * abs(var)
    below = root / rate + 2 * l2 * scale
    w = np.where(abs(l) <= l1 * scale, 0, (np.sign(l) * l1 * scale - l) / below)
    return [(w, (l1 * scale + size) / below), (new, new), (l, size)]


more = dict(asks=["multiply_linear_by_lr"],
            domain=dict(var=mild, accum=slot, linear=mild, grad=mild, lr=between(0.1, 1).plain, lr_power=between(-1, 0).plain))
optimizer("ResourceApplyFtrl ApplyFtrl", "ResourceSparseApplyFtrl", ftrl, **more)
optimizer("ResourceApplyFtrlV2", "ResourceSparseApplyFtrlV2", ftrl, **more)
