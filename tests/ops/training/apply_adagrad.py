import numpy as np

from optimizers import mild, optimizer, slot


def adagrad(var, accum, g, lr, update_slots, epsilon=0):
    accum, size = (accum + g * g, abs(accum) + abs(g * g)) if update_slots else (accum, accum)
    step = lr * g / (np.sqrt(accum) + epsilon)
    return [(var - step, abs(var) + abs(step)), (accum, size)]


more = dict(asks=["update_slots"], domain=dict(var=mild, accum=slot, grad=mild))
optimizer("ResourceApplyAdagrad ApplyAdagrad", "ResourceSparseApplyAdagrad", adagrad, **more)
optimizer("ResourceApplyAdagradV2", "ResourceSparseApplyAdagradV2", adagrad, **more)
