import numpy as np

from optimizers import mild, optimizer, slot


def averages(m, v, g, beta1, beta2):
    """Returns the averages of the gradient and of its square, with the size of the first and the weight of the error of the second."""
    m, size = m + (g - m) * (1 - beta1), abs(m) + abs(g)
    old, v = v, v + (g * g - v) * (1 - beta2)
    return m, size, v, abs(old) + abs(g * g)


def stepped(var, m, size, v, error, g, alpha, beta1, epsilon, use_nesterov):
    step, reach = (beta1 * m + (1 - beta1) * g, size) if use_nesterov else (m, size)
    rate = alpha / (np.sqrt(v) + epsilon)
    return var - rate * step, abs(var) + rate * reach * (1 + error / np.where(v == 0, 1, v))


def bias(lr, beta1_power, beta2_power):
    return lr * np.sqrt(1 - beta2_power) / (1 - beta1_power)


def adam(var, m, v, g, beta1_power, beta2_power, lr, beta1, beta2, epsilon, use_nesterov):
    m, size, v, error = averages(m, v, g, beta1, beta2)
    alpha = bias(lr, beta1_power, beta2_power)
    return [stepped(var, m, size, v, error, g, alpha, beta1, epsilon, use_nesterov), (m, size), (v, error)]


def amsgrad(var, m, v, vhat, g, beta1_power, beta2_power, lr, beta1, beta2, epsilon):
    m, size, v, error = averages(m, v, g, beta1, beta2)
    most = np.where(vhat > v, vhat, v)
    alpha = bias(lr, beta1_power, beta2_power)
    return [stepped(var, m, size, most, error, g, alpha, beta1, epsilon, False), (m, size), (v, error), (most, most + error)]


domain = dict(var=mild, m=mild, grad=mild, v=slot, vhat=slot)
optimizer("ResourceApplyAdam ApplyAdam", "", adam, asks=["use_nesterov"], domain=domain)
optimizer("ResourceApplyAdamWithAmsgrad", "", amsgrad, domain=domain)
