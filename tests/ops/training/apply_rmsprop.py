import numpy as np

from domains import between
from optimizers import mild, optimizer, slot


def rmsprop(var, ms, mom, g, lr, rho, momentum, epsilon):
    ms, error = ms + (1 - rho) * (g * g - ms), abs(ms) + abs(g * g)
    step = lr * g / np.sqrt(ms + epsilon)
    kept, size = momentum * mom + step, abs(momentum * mom) + abs(step) * (1 + error / (ms + epsilon))
    return [(var - kept, abs(var) + size), (ms, error), (kept, size)]


def centered_rmsprop(var, mg, ms, mom, g, lr, rho, momentum, epsilon):
    ms, error = ms + (1 - rho) * (g * g - ms), abs(ms) + abs(g * g)
    mg, mean = mg + (1 - rho) * (g - mg), abs(mg) + abs(g)
    rest = ms - mg * mg + epsilon
    step = lr * g / np.sqrt(rest)
    kept, size = momentum * mom + step, abs(momentum * mom) + abs(step) * (1 + (error + mean * mean) / abs(rest))
    return [(var - kept, abs(var) + size), (mg, mean), (ms, error), (kept, size)]


domain = dict(var=mild, ms=slot, mom=mild, grad=mild)
optimizer("ResourceApplyRMSProp ApplyRMSProp", "ResourceSparseApplyRMSProp", rmsprop, domain=domain)
# The mean's square must stay below the mean of the squares.
optimizer("ResourceApplyCenteredRMSProp", "ResourceSparseApplyCenteredRMSProp", centered_rmsprop,
          domain=domain | dict(mg=between(-0.2, 0.2).plain, ms=between(0.1, 4).plain))
