import numpy as np

from optimizers import mild, optimizer, slot


def adadelta(var, accum, accum_update, g, lr, rho, epsilon):
    accum, size = rho * accum + (1 - rho) * g * g, abs(rho * accum) + abs((1 - rho) * g * g)
    update = g * np.sqrt(accum_update + epsilon) / np.sqrt(accum + epsilon)
    kept = rho * accum_update + (1 - rho) * update * update
    more = abs(rho * accum_update) + abs((1 - rho) * update * update)
    return [(var - lr * update, abs(var) + abs(lr * update)), (accum, size), (kept, more)]


optimizer("ResourceApplyAdadelta ApplyAdadelta", "ResourceSparseApplyAdadelta", adadelta,
          domain=dict(var=mild, accum=slot, accum_update=slot, grad=mild))
