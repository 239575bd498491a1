import numpy as np

from optimizers import mild, optimizer, slot


def ada_max(var, m, v, g, beta1_power, lr, beta1, beta2, epsilon):
    m, size = m + (g - m) * (1 - beta1), abs(m) + abs(g)
    v = np.where(beta2 * v > abs(g), beta2 * v, abs(g))
    rate = lr / (1 - beta1_power) / (v + epsilon)
    return [(var - rate * m, abs(var) + rate * size), (m, size), (v, v)]


optimizer("ResourceApplyAdaMax", "", ada_max, domain=dict(var=mild, m=mild, grad=mild, v=slot))
